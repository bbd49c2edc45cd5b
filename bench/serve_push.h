/* serve_push.h - Pub/Sub for `tidemark serve`: an issuer with a key, and pushes that it signed.
 *
 * What fails ends the program (bench.h). */
#ifndef TIDE_BENCH_SERVE_PUSH_H
#define TIDE_BENCH_SERVE_PUSH_H

#include "serve_client.h"

enum { PUSHER_SETTINGS = 4 };

/* Starts the issuer, whose keys are on a port of this process; once in a program. */
void pusher_start(void);
void pusher_stop(void);
/* The settings with which a serve takes its pushes, each after a "--set". */
const char *pusher_setting(size_t index);
/* A client of the webhook, with a token as its key. */
void pusher_open(const struct serving *serving, struct client *client);
/* Pushes a change of the account, as a new message each time; returns the HTTP status. */
int pusher_push(struct client *client, const char *account);

#endif
