/* gmail_raw.h - extracts and decodes a message from its JSON while the answer streams in.
 *
 * An answer to messages.get?format=raw is a small object with one huge string in it:
 * the message in base64.  A JSON library would build that string first and then have
 * it decoded; here the bytes are decoded in place, straight into their final buffer,
 * and only the rest of the object goes to the library.  The order of the members,
 * spacing, escapes and the places where the answer was split do not matter.
 *
 * It repairs nothing: an answer that is not exactly one JSON object
 * with one "raw" of exactly one piece of base64 is TIDE_SERVER.
 *
 * Invariants:
 *   RAW1  TIDE_OK at the end means: the whole text is valid JSON, no key occurs twice, and "raw" of
 *         the outermost object was a string of base64 (either alphabet; padded in full or not at
 *         all; no stray bits), which `raw` holds decoded.
 *   RAW2  the result does not depend on how the text is split.
 *   RAW3  a failure is final: everything after it is refused with the same status.
 *   RAW4  memory: at most one and a half times the message, and 2 MiB for the rest.
 */
#ifndef TIDE_CLOUD_GMAIL_RAW_H
#define TIDE_CLOUD_GMAIL_RAW_H

#include "base/buf.h"
#include "base/json.h"

enum {
    TIDE_GMAIL_REST_BYTES_MAX = 1 << 20, /* of the answer, "raw" aside */
    TIDE_GMAIL_DEPTH_MAX = 32,           /* objects and arrays in each other */
};

/* Embedded; use only `failed` and `wrong`. */
struct tide_gmail_raw {
    tide_buf *raw; /* borrowed */
    tide_buf rest; /* the text with an empty "raw" */
    tide_status failed;
    const char *wrong; /* why; a literal */
    uint64_t expected_bytes;
    uint64_t estimate_bytes; /* "sizeEstimate", if it came before */
    unsigned depth;
    int in;           /* what the next byte is inside of */
    bool ended;       /* the outermost object is closed */
    bool after_colon; /* in the outermost object: a value follows, else a key */
    bool found;
    bool escaped;        /* of a string that is only copied */
    unsigned escape;     /* of a string that is read: where in an escape */
    unsigned escape_sum; /* of its hex digits */
    char key[16];        /* of the outermost object */
    size_t key_bytes;    /* more than fits: not one of our keys */
    uint32_t bits;       /* of an unfinished group */
    unsigned group;      /* characters in it */
    unsigned pads;
};

/* `raw` receives the message; its ceiling is the largest one allowed (TIDE_FULL).  It must be
 * empty and must not move. */
void tide_gmail_raw_init(struct tide_gmail_raw *self, tide_mem *mem, tide_buf *raw);
void tide_gmail_raw_done(struct tide_gmail_raw *self); /* a zeroed one is fine */
/* Sets the length of the whole answer, if its head has it: `raw` is then allocated once.  Only a
 * hint. */
void tide_gmail_raw_expect(struct tide_gmail_raw *self, uint64_t answer_bytes);
/* A tide_sink_write for `self`.  TIDE_SERVER (RAW1), TIDE_FULL, TIDE_NO_MEMORY. */
tide_status tide_gmail_raw_write(void *self, const char *bytes, size_t count);
/* The answer ended.  *fields_out has everything but "raw"; owned by the caller. */
tide_status tide_gmail_raw_end(struct tide_gmail_raw *self, json_t **fields_out, tide_error *err);

#endif
