/* check.h - one pass over the raw bytes of a message: finds its parts and checks the limits.
 *
 * Only boundaries are copied or decoded, and nothing recurses: open containers are a stack of at
 * most TIDE_MESSAGE_PARTS_DEEP frames.  All later code uses the parts found here, so it never sees
 * a structure beyond the limits.  Parts beyond them are still scanned, so that the ends of their
 * containers are right.
 *
 * Invariants (tide_parts_check()):
 *   CHK1  head_begin <= head_end <= begin <= end <= the size of the message.
 *   CHK2  parts are in the order of their headers; a part lies inside its parent, and after the
 *         siblings before it.
 *   CHK3  at most TIDE_MESSAGE_PARTS_MAX parts, at most TIDE_MESSAGE_PARTS_DEEP deep.
 *   CHK4  raw[begin, end) of a part inside a multipart ends before the line end that belongs to the
 *         boundary.
 *   CHK5  time is linear in the message; memory in the parts.
 */
#ifndef TIDE_MAIL_MESSAGE_CHECK_H
#define TIDE_MAIL_MESSAGE_CHECK_H

#include "mail/mime/header.h"
#include "mail/mime/message.h"

typedef enum tide_part_kind {
    TIDE_PART_LEAF,
    TIDE_PART_MULTI,   /* its children are parts between boundaries */
    TIDE_PART_MESSAGE, /* its one child is the contained message */
} tide_part_kind;

struct tide_part {
    tide_part_kind kind;
    tide_encoding encoding;
    uint32_t parent;   /* TIDE_PART_NONE for the message itself */
    uint32_t depth;    /* 0 for the message itself */
    uint32_t children; /* number of recorded ones */
    uint32_t headers;  /* number of lines that start a header */
    uint64_t head_begin, head_end;
    uint64_t begin, end;
    tide_text type;         /* the whole value of Content-Type; "" */
    tide_text major, minor; /* its halves, or the default */
    tide_text disposition;  /* the whole value of Content-Disposition; "" */
    tide_text id;           /* the whole value of Content-ID, by which others refer to it; "" */
    bool beyond;            /* a container that was not opened: too deep */
};
enum { TIDE_PART_NONE = 0x7fffffff };

struct tide_parts {
    tide_mem *mem;
    struct tide_part *part;
    size_t count;
    size_t capacity;
    char line_end;
    const char *problem; /* the first limit that was reached; NULL */
};

/* The only error is TIDE_NO_MEMORY. */
tide_status tide_parts_scan(tide_text raw, tide_mem *mem, struct tide_parts *parts_out);
void tide_parts_done(struct tide_parts *parts); /* a zeroed one is fine */
/* Checks CHK1 to CHK3, as far as possible. */
bool tide_parts_check(const struct tide_parts *parts, tide_text raw);

#endif
