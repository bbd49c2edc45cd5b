/* generate.h - a mailbox of any size out of a seed.
 *
 * The n-th message is a function of (seed, n, count): its plan in a fraction of
 * a microsecond, its bytes in a few more, whenever they are asked for.  So a
 * million messages are ready at once and need no room.
 *
 * Realistic where a mirror would notice: twelve years of dates, growing in
 * number; sizes with a median near 4 kB, a mean near 20 kB and a long tail to
 * some 25 MB (rare); threads of one to forty messages with References; labels and
 * categories; several languages and charsets (also encoded words, quoted-printable, base64,
 * 8-bit, ISO-8859-1, Shift JIS); newsletters with HTML alternatives, invoices with
 * attachments, calendar invitations, delivery reports; about 1 % duplicates
 * (same bytes as an earlier message) and 0.5 % without Message-ID; some broken ones.
 *
 * Invariants:
 *   BGEN1  the same (seed, count, n) gives the same plan and the same bytes, forever.
 *   BGEN2  the bytes are exactly plan.bytes long.
 *   BGEN3  dates never decrease with n; a message's thread root is at or before it. The Date header
 *          says the same second, for a duplicate that of its twin.
 *   BGEN4  lines end with CRLF and stay below 998 bytes, except in the broken ones.
 */
#ifndef BOX_GENERATE_H
#define BOX_GENERATE_H

#include "base/buf.h"
#include "base/rng.h"

struct box_generator {
    uint64_t seed;
    uint32_t count;
    uint32_t size_bytes; /* all exactly so large (at least 1,000); 0: a spread */
    uint64_t newest_ms;
    char email[256];
};

enum { BOX_GENERATED_LABELS_MAX = 6, BOX_GENERATED_USER_LABELS = 12 };

struct box_generated {
    uint64_t date_ms;
    uint32_t root;            /* the thread's first message; itself when it starts one */
    uint32_t bytes;           /* BGEN2 */
    uint32_t twin;            /* the earlier message whose bytes it repeats; itself when none */
    uint64_t message_id_hash; /* of the Message-ID without <>; 0: it has none */
    uint16_t labels[BOX_GENERATED_LABELS_MAX]; /* system numbers, then 1000 + user label */
    uint8_t labels_count;
};

void box_generate_plan(const struct box_generator *generator, uint32_t n,
                       struct box_generated *plan_out);
/* Appends the message. */
void box_generate_raw(const struct box_generator *generator, uint32_t n, tide_buf *out);
/* Appends up to 200 characters of its text, escaped as snippets are: what
 * box_mime_snippet() gives for the bytes, in a fraction of the time (but for
 * the broken ones, whose damage is not looked at). */
void box_generate_snippet(const struct box_generator *generator, uint32_t n, tide_buf *out);
/* "Work", "Invoices", ...: the names of the user labels the plans use. */
const char *box_generated_label(uint32_t user_label);
/* The hash of message_id_hash, for a Message-ID from anywhere; never 0. */
uint64_t box_message_id_hash(tide_text message_id);

#endif
