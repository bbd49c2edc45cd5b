/* assistant_stage.h - the home that assistant_mails measures: one user of the assistant, with a Gmail and a chat
 * model that tidemark-cloud serves, and `tidemark serve` that takes pushes.
 *
 * What fails ends the program (bench.h). */
#ifndef TIDE_BENCH_ASSISTANT_STAGE_H
#define TIDE_BENCH_ASSISTANT_STAGE_H

#include "serve_client.h"

#include <sqlite3.h>

#define ASSISTED "ada@example.com"

struct assisted {
    char tidemark[BENCH_PATH_BYTES], cloud[BENCH_PATH_BYTES]; /* the programs */
    char dir[BENCH_PATH_BYTES];
    char home[BENCH_PATH_BYTES + 16];
    char log[BENCH_PATH_BYTES + 16]; /* of the last command */
    char key[64];                    /* of the page */
    struct server provider;
    struct serving serving;
    struct client box, gmail, hook, page;
    sqlite3 *db; /* the ledger, for reading */
    unsigned arrived;
};

void assisted_make(struct assisted *stage, const char *argv0); /* onboarded; it serves */
void assisted_remove(struct assisted *stage);                  /* its serve was stopped */

/* Anew on new connections: a server closes those that are idle for long. */
void assisted_again(struct assisted *stage);

/* Runs a command on the home; the words end with NULL. */
struct cost assisted_run(const struct assisted *stage, const char *const *words);
#define ASSISTED_RUN(stage, ...) assisted_run(stage, (const char *const[]){__VA_ARGS__, NULL})

/* Mail arrives; its thread is new and has the same id. */
void assisted_arrive(struct assisted *stage, const char *text, char id_out[40]);
void assisted_push(struct assisted *stage); /* Gmail says that something changed */
/* Whether a label of the assistant is on the message, as Gmail has it. */
bool assisted_labelled(struct assisted *stage, const char *id);
/* Every call of these methods ("chat.*") takes so long; 0: no call is delayed any more. */
void assisted_slow(struct assisted *stage, const char *methods, unsigned ms);

/* The number that a query on the ledger gives; `text` is its only parameter, or NULL. */
uint64_t assisted_ask(struct assisted *stage, const char *sql, const char *text);
/* Waits until a query gives at least `wanted`. */
void assisted_until(struct assisted *stage, const char *sql, uint64_t wanted);

#endif
