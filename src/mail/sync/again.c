/* again.c - what a run does about earlier runs that failed (E5.2). */
#include "base/json.h"
#include "mail/inside.h"

/* Listings and what follows from them may be repeated, and nothing else repeats them: a run
 * starts again what failed in earlier ones. */
tide_status tide_mail_retry_failed(tide_mail *mail, tide_job *job, tide_error *err)
{
    const uint32_t kinds[] = {mail->list_kind,   mail->history_kind, mail->fetch_kind,
                              mail->absent_kind, mail->confirm_kind, mail->heal_kind,
                              mail->held_kind,   mail->exact_kind,   mail->labels_kind};
    uint64_t count = 0;
    if (tide_job_resume(job).bytes > 0)
        return TIDE_OK; /* this run has done so */
    return tide_retry_failed(mail->engine, tide_job_account(job), kinds,
                             sizeof kinds / sizeof kinds[0], &count, err);
}

/* What a run was asked for beyond the news. */
struct run_request {
    bool force, heal;
    bool since;       /* it says from when on mail is wanted */
    uint64_t from_ms; /* it began then */
};

static tide_status request_read(tide_text payload, struct run_request *request_out, tide_error *err)
{
    json_t *json = NULL;
    struct run_request request = {.force = false};
    uint64_t since_ms = 0;
    TIDE_TRY(tide_json_parse(payload, &json, err));
    (void)tide_json_get_bool(json, "force", &request.force, NULL);
    (void)tide_json_get_bool(json, "heal", &request.heal, NULL);
    (void)tide_json_get_u64(json, "since", &since_ms, NULL);
    json_decref(json);
    request.since = since_ms > 0;
    *request_out = request;
    return TIDE_OK;
}

/* From when on mail is wanted, the later run decides, if it says so. */
static bool is_over(tide_text payload, uint64_t failed_unix_ms, void *arg)
{
    const struct run_request *now = arg;
    struct run_request then;
    return failed_unix_ms <= now->from_ms && request_read(payload, &then, NULL) == TIDE_OK &&
           (now->force || !then.force) && (now->heal || !then.heal) && (now->since || !then.since);
}

/* A crash before the end of this run undoes none of it, and needs not: this run is tried again, or
 * fails itself. */
tide_status tide_mail_accept_failed(tide_mail *mail, tide_job *job, uint64_t began_ms,
                                    tide_error *err)
{
    struct run_request request = {.force = false};
    const tide_status rc = request_read(tide_job_payload(job), &request, err);
    request.from_ms = began_ms;
    return rc != TIDE_OK ? rc
                         : tide_accept_failed(mail->engine, tide_job_account(job), mail->plan_kind,
                                              is_over, &request, err);
}
