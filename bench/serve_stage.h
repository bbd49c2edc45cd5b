/* serve_stage.h - the home that serve_bench measures: an account with an archive that is generated, and
 * small mailboxes that tidemark-cloud serves.
 *
 * What fails ends the program (bench.h). */
#ifndef TIDE_BENCH_SERVE_STAGE_H
#define TIDE_BENCH_SERVE_STAGE_H

#include "serve_client.h"

#define LARGE "large@example.com" /* has the archive */
#define BUSY  "busy@example.com"  /* its backfill runs while others are measured */

enum {
    STAGE_ROUNDS = 6, /* mailboxes for syncs that are measured */
    STAGE_KEY_BYTES = 64,
};

struct stage {
    char tidemark[BENCH_PATH_BYTES], cloud[BENCH_PATH_BYTES]; /* the programs */
    char dir[BENCH_PATH_BYTES];
    char home[BENCH_PATH_BYTES + 16], empty[BENCH_PATH_BYTES + 16];
    char log[BENCH_PATH_BYTES + 16]; /* of the last command */
    char key[STAGE_KEY_BYTES];
    uint64_t messages; /* in the archive */
    struct server provider;
    struct serving serving;
};

void stage_make(struct stage *stage, const char *argv0);
void stage_remove(struct stage *stage); /* the serve has ended */

/* Starts serve without a quota, so that a sync is as fast as the machine, and with the webhook. */
struct serving stage_serve(const struct stage *stage, const char *home);
void stage_key(struct stage *stage); /* of the scope `work`, while `serving` runs */
/* Starts `tidemark mail sync`, which hands over to `serving`. */
pid_t stage_sync(const struct stage *stage, const char *account);
void stage_round(size_t round, char out[48]); /* the account of a round */
/* The id of one of the archive's messages, the same for the same number. */
void stage_message(const struct stage *stage, uint64_t number, char out[40]);

#endif
