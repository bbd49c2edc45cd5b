/* tidemark_inside.h - what Tidemark's own systems need of the engine and other programs do
 * not.  Not installed. */
#ifndef TIDEMARK_INSIDE_H
#define TIDEMARK_INSIDE_H

#include "tidemark.h"

struct tide_cancel;

/* A job's cancellation as a token, for what waits on its behalf; borrowed. */
const struct tide_cancel *tide_job_cancellation(const tide_job *job);

/* Whether the engine asks by this job if its one item, which succeeded before, still does
 * (E6.2).  The handler makes a real call and stores nothing. */
bool tide_job_is_probe(tide_job *job);
/* The item is done, but no call was made for it: others cannot be compared with it. */
void tide_job_item_skipped(tide_job *job, size_t index);

/* What the job's first effect with this `run` was given, NULL if it has none: a job of items that
 * waited for units comes back with its effects, and need not add another one. */
void *tide_job_effect_arg(const tide_job *job, tide_transact_fn *run);

/* From now on the handler waits for room in a queue that others empty; `queue` is static and
 * names what it holds ("messages for the archive").  NULL: it waits no longer.  If it waits too
 * long, a person is told (E6.4, B13).  Waiting for quota is not such a wait. */
void tide_job_queued(tide_job *job, const char *queue);

/* Failed jobs of an account and of these kinds wait again, with a fresh budget: for kinds
 * that may be repeated and that nobody else would start again (E5.2).  What a person
 * canceled stays canceled. */
tide_status tide_retry_failed(tide_engine *engine, uint32_t account, const uint32_t *kinds,
                              size_t kinds_count, uint64_t *count_out, tide_error *err);

/* Failed jobs of an account and of a kind become done, where `is_over` says that nothing of them
 * is left to do.  It is called in a transaction: it reads and decides, no more. */
typedef bool tide_failed_fn(tide_text payload, uint64_t failed_unix_ms, void *arg);
tide_status tide_accept_failed(tide_engine *engine, uint32_t account, uint32_t kind,
                               tide_failed_fn *is_over, void *arg, tide_error *err);

/* A call for this account succeeded that no job made: a sign-in was tried out. */
tide_status tide_account_answered(tide_engine *engine, uint32_t account, tide_error *err);

/* From now on this process runs jobs of these accounts only, and of no account; what waits for
 * other accounts stays in the ledger.  Before the start.  `count` 0: of all.  A command that hands
 * work for another account to this process (control.h) adds that account. */
tide_status tide_engine_only(tide_engine *engine, const char *const *names, size_t count,
                             tide_error *err);

#endif
