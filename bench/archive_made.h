/* archive_made.h - an archive of twelve years, written directly in the documented schema: one shard a
 * year, with word frequencies as in real text (Zipf). */
#ifndef TIDE_BENCH_ARCHIVE_MADE_H
#define TIDE_BENCH_ARCHIVE_MADE_H

#include "base/rng.h"
#include "world/real.h"

struct archive_made {
    tide_world *world;
    const char *dir;     /* exists */
    const char *account; /* "me@example.com" */
    uint64_t messages;
    size_t words; /* in a text */
    bool html;    /* one body in four is a page of 12 kB, as newsletters are */
    tide_rng rng;
    double *weights; /* cumulative; its own */
};

/* Makes it, or nothing where there is one.  Says on stderr how long that took. */
void archive_make(struct archive_made *made);
/* The n-th word in order of frequency, as letters: readable in a query.  Every message has "the". */
const char *archive_word(uint32_t rank, char room[16]);

/* The id of a message, by any number. */
void archive_id(uint64_t messages, uint64_t number, char out[40]);

#endif
