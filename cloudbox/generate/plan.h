/* plan.h - the facts of a generated message that its bytes follow from.
 *
 * Private to generate*.c.  Everything here is a pure function of the generator
 * and n, and cheap enough to be asked for neighbours.
 *
 * Threads live in blocks of 64 neighbours: each block has eight roots at places
 * that its hash names, and any other message may join a root before it.  So a
 * message finds its thread by looking at itself and its block's hash.
 */
#ifndef BOX_GENERATE_PLAN_H
#define BOX_GENERATE_PLAN_H

#include "cloudbox/generate/generate.h"
#include "cloudbox/generate/text.h"

enum {
    BOX_BLOCK = 64,               /* neighbours that may share a thread */
    BOX_SMALLEST_BYTES = 1000,    /* what every message fits into */
    BOX_LARGEST_BYTES = 25000000, /* what a mail system lets through */
    BOX_MESSAGE_ID_BYTES_MAX = 80,
};

/* Of the bytes: a message and its twins have the same. */
struct box_traits {
    uint32_t n;
    uint32_t root;
    uint32_t bytes;
    uint64_t date_ms;
    uint64_t hash;  /* of the message */
    uint64_t topic; /* of its thread: equal for all of it */
    box_kind kind;
    box_lang lang;
    bool mine;     /* sent by the owner of the mailbox */
    bool file;     /* carries attachments */
    bool nameless; /* has no Message-ID */
    bool broken;   /* breaks rules of RFC 5322 or MIME on purpose */
};

/* The message whose bytes n has: itself, or an earlier one that is its own twin. */
uint32_t box_twin(const struct box_generator *generator, uint32_t n);
void box_traits(const struct box_generator *generator, uint32_t n, struct box_traits *traits_out);
/* The message before n in its thread that is no twin, or n for a root. */
uint32_t box_parent(const struct box_generator *generator, uint32_t n);
/* Without <>; returns its length. */
size_t box_message_id(const struct box_traits *traits, char text_out[BOX_MESSAGE_ID_BYTES_MAX]);
uint64_t box_mix(uint64_t a, uint64_t b);

/* Writes the message into `room`, which has bytes + BOX_ROOM_SPARE.  With `peek`
 * it stops behind the first text, or once BOX_PEEK_BYTES of it are in `peek`
 * (UTF-8, as a reader sees it); then twice BOX_ROOM_SPARE is room enough. */
enum { BOX_ROOM_SPARE = 32 << 10, BOX_PEEK_BYTES = 900 };
struct box_peek {
    char text[BOX_PEEK_BYTES + 4096];
    size_t bytes;
};
void box_render(const struct box_generator *generator, const struct box_traits *traits, char *room,
                struct box_peek *peek);

#endif
