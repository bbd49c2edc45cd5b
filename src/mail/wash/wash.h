/* wash.h - makes HTML mail safe to show in a sandboxed frame.
 *
 * The html is read as tokens and written anew: only elements and attributes of a list, each value
 * checked by its kind, every character escaped again.  Nothing is copied as it was.  The frame's
 * sandbox and Content-Security-Policy are the other wall: they block, this removes.
 *
 * Why the result means the same to every parser: the only element in it whose content is not
 * markup is <style>, and no style has a '<'; there are no comments and no foreign content (svg,
 * math).  So the parser never leaves the state in which this module wrote, whatever tree it builds.
 *
 * Invariants (fuzz/html_wash.c, tests/unit/mail/wash_test.c):
 *   WSH1  no element, attribute or URL scheme outside the lists; no event handler, form, script,
 *         comment, CSS url(), @import or CSS function outside a list.
 *   WSH2  nothing in it makes a browser ask another host: images are data:, cid/N or img/N.
 *   WSH3  every element is closed, in order, at most TIDE_WASH_DEPTH_MAX deep, also in a result that
 *         was cut off.
 *   WSH4  valid UTF-8 without control characters except \n and \t.
 *   WSH5  washing it again changes nothing.
 *   WSH6  time and memory are linear in the html; the result has at most TIDE_WASH_GROWTH bytes for
 *         each byte of it.
 *
 * What is not promised: the size of what is shown (a page may be a million pixels high), and names:
 * `id`s have the prefix "m-", and no element has a `name`, so that `document.body` of the frame is
 * its body.
 */
#ifndef TIDE_MAIL_WASH_H
#define TIDE_MAIL_WASH_H

#include "base/buf.h"
#include "base/mem.h"
#include "base/text.h"

enum {
    TIDE_WASH_DEPTH_MAX = 256, /* deeper elements lose their tags, not their text */
    TIDE_WASH_IMAGES_MAX = 1000,
    TIDE_WASH_GROWTH = 6,
};

/* What the numbers in the result stand for.  Equal ones share a number (mostly: an attacker can
 * prevent that).  In `arena`. */
struct tide_washed {
    const tide_text *remote; /* img/N: http or https URLs */
    size_t remote_count;
    const tide_text *cids; /* cid/N: Content-IDs without <>; any bytes */
    size_t cids_count;
    uint64_t work; /* steps taken, for tests of WSH6 */
};

/* A part of a message's body. */
struct tide_wash_piece {
    tide_text text; /* should be UTF-8 and may be anything */
    bool plain;     /* text, not HTML: shown as it is, with its line ends */
};

/* Appends the washed content of a <body>, one piece after the other.  No piece reaches into the next
 * one: what it leaves open is closed.
 *   TIDE_FULL       `out` has no more room; what fits is in it (WSH3)
 *   TIDE_NO_MEMORY  `out` is as it was
 * The first wash of a mail that itself says "img/3" leaves that as it is: it can only name what
 * this message names anyway. */
tide_status tide_html_wash_pieces(const struct tide_wash_piece *pieces, size_t count,
                                  tide_arena *arena, tide_buf *out, struct tide_washed *washed_out);
/* The same with one piece of HTML. */
tide_status tide_html_wash(tide_text html, tide_arena *arena, tide_buf *out,
                           struct tide_washed *washed_out);

#endif
