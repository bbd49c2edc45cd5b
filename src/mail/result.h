/* result.h - what a job did or found, for the command that asked for it (table mail_result).
 *
 * The command may be in another process than the engine, so the answer is in the ledger, under the
 * number of the job: a JSON object, written by the handler whenever it changes.  The newest ones
 * are kept. */
#ifndef TIDE_MAIL_RESULT_H
#define TIDE_MAIL_RESULT_H

#include "base/json.h"
#include "ledger/rows.h"
#include "tidemark.h"

enum { TIDE_RESULTS_KEPT = 50, TIDE_RESULT_BYTES_MAX = 64 << 20 };

tide_status tide_result_tables(tide_rows db, tide_error *err);
/* Durable when it returns; replaces an earlier one of the job.  Takes `result`. */
tide_status tide_result_put(tide_engine *engine, tide_job *job, tide_json *result, tide_error *err);
/* Owned by the caller.  TIDE_NOT_FOUND: the job has written none, or it is no longer kept. */
tide_status tide_result_get(tide_rows db, uint64_t job, json_t **result_out, tide_error *err);

#endif
