/* offboard.c - assistant.offboard {email}: the assistant ends for a user.  Records stay, and labels and drafts
 * in Gmail; nothing is asked of Gmail, whose sign-in may be gone. */
#include "assistant/jobs/inside.h"

#include "tidemark_inside.h"

struct ending {
    const char *email;
    uint64_t now_ms;
};

static tide_status end_user(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct ending *ending = arg;
    const tide_rows db = tide_transaction_rows(transaction);
    struct tide_assistant_user user;
    TIDE_TRY(tide_assistant_user_named(db, ending->email, &user, err));
    return tide_assistant_user_end(db, user.account, ending->now_ms, err);
}

tide_status tide_assistant_offboard(tide_engine *engine, const char *email, uint64_t now_ms,
                                    tide_error *err)
{
    struct ending ending = {email, now_ms};
    return tide_transact(engine, end_user, &ending, err);
}

/* A job that an engine left when it ended does nothing: the command has done it itself, or said that it was
 * not done, and the user may have been onboarded again since. */
tide_status tide_assistant_offboard_run(tide_job *job, void *context, tide_error *err)
{
    const tide_assistant_jobs *jobs = context;
    tide_engine *engine = jobs->options.engine;
    json_auto_t *payload = NULL;
    TIDE_TRY(tide_json_parse(tide_job_payload(job), &payload, err));
    const char *email = json_string_value(json_object_get(payload, "email"));
    if (email == NULL)
        return tide_error_set(err, TIDE_INVALID, "the payload has no \"email\"");
    if (!tide_engine_asked_here(engine, payload))
        return TIDE_OK;
    const tide_status rc =
        tide_assistant_offboard(engine, email, tide_world_now_unix_ms(jobs->options.world), err);
    return rc == TIDE_NOT_FOUND ? TIDE_INVALID : rc; /* trying again would not help */
}
