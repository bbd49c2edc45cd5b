#include "mail/result.h"

#include "db/rows.h"

#define WHAT "the results of jobs"

tide_status tide_result_tables(tide_rows db, tide_error *err)
{
    return tide_rows_tables(db,
                            "CREATE TABLE IF NOT EXISTS mail_result("
                            " job INTEGER PRIMARY KEY, result TEXT NOT NULL) STRICT;",
                            WHAT, err);
}

struct put {
    uint64_t job;
    tide_text text;
};

static tide_status put_row(tide_rows db, const struct put *put, tide_error *err)
{
    return tide_rows_do(db, WHAT, err,
                        "INSERT INTO mail_result(job, result) VALUES(?1, ?2)"
                        " ON CONFLICT(job) DO UPDATE SET result = ?2",
                        put->job, put->text);
}

/* All but that of `job`: one that runs for hours is older than many that ended. */
static tide_status forget_old(tide_rows db, uint64_t job, tide_error *err)
{
    return tide_rows_do(db, WHAT, err,
                        "DELETE FROM mail_result WHERE job <> ?2 AND job <= (SELECT job FROM"
                        " mail_result ORDER BY job DESC LIMIT 1 OFFSET ?1)",
                        TIDE_RESULTS_KEPT, job);
}

static tide_status put_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    const tide_rows db = tide_transaction_rows(transaction);
    const struct put *put = arg;
    TIDE_TRY(put_row(db, put, err));
    return forget_old(db, put->job, err);
}

tide_status tide_result_put(tide_engine *engine, tide_job *job, tide_json *result, tide_error *err)
{
    tide_auto_buf line = tide_buf_heap(TIDE_RESULT_BYTES_MAX);
    tide_status rc = tide_json_line(result, &line);
    if (rc != TIDE_OK)
        (void)tide_error_set(err, rc, "no memory for the result of a job");
    struct put put = {tide_job_id(job), tide_buf_text(&line)};
    if (rc == TIDE_OK)
        rc = tide_transact(engine, put_run, &put, err);
    tide_json_done(result);
    return rc;
}

tide_status tide_result_get(tide_rows db, uint64_t job, json_t **result_out, tide_error *err)
{
    tide_auto_rows stmt;
    TIDE_TRY(tide_rows_first(db, WHAT, &stmt, err, "SELECT result FROM mail_result WHERE job = ?1",
                             job));
    return tide_json_parse_stored(tide_rows_get_text(&stmt, 0), result_out, err);
}
