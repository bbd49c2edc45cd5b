/* onboard.c - assistant.onboard {email, endpoint}: the user is recorded, the nine labels are found or made,
 * the history id is seeded (J9).  Again: finds what is there.  Without an address the user must be known. */
#include "assistant/jobs/inside.h"

#include "mail/mail.h"

#include <stdio.h>
#include <string.h>

struct onboarding {
    struct tide_task task;
    struct tide_gmail_profile profile;
};

static tide_status write_user(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct onboarding *self = arg;
    struct tide_task *task = &self->task;
    const tide_rows db = tide_transaction_rows(transaction);
    struct tide_assistant_sync sync;
    TIDE_TRY(tide_task_labels_write(db, task, err));
    if (task->user.onboarded_ms == 0)
        task->user.onboarded_ms = task->now_ms;
    TIDE_TRY(tide_assistant_user_put(db, &task->user, err));
    TIDE_TRY(tide_assistant_sync_get(db, task->account, &sync, err));
    if (sync.history_id[0] != '\0')
        return TIDE_OK;
    return tide_assistant_sync_move(db, task->account, "", self->profile.history_id, false,
                                    task->now_ms, err);
}

/* A user that is there keeps what it has, but for the endpoint: the account may have been added again. */
static tide_status put_user(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct tide_assistant_user *wanted = arg;
    const tide_rows db = tide_transaction_rows(transaction);
    struct tide_assistant_user user = *wanted;
    const tide_status rc = tide_assistant_user_get(db, wanted->account, &user, err);
    if (rc != TIDE_OK && rc != TIDE_NOT_FOUND)
        return rc;
    user.ended_ms = 0; /* one for whom the assistant had ended begins again */
    memcpy(user.email, wanted->email, sizeof user.email);
    memcpy(user.endpoint, wanted->endpoint, sizeof user.endpoint);
    return tide_assistant_user_put(db, &user, err);
}

static tide_status user_of(tide_job *job, struct tide_assistant_user *user, tide_error *err)
{
    json_auto_t *payload = NULL;
    TIDE_TRY(tide_json_parse(tide_job_payload(job), &payload, err));
    const char *email = json_string_value(json_object_get(payload, "email"));
    const char *endpoint = json_string_value(json_object_get(payload, "endpoint"));
    user->account = tide_job_account(job);
    if (email == NULL)
        return TIDE_OK;
    if ((size_t)snprintf(user->email, sizeof user->email, "%s", email) >= sizeof user->email ||
        (size_t)snprintf(user->endpoint, sizeof user->endpoint, "%s",
                         endpoint == NULL ? "" : endpoint) >= sizeof user->endpoint)
        return tide_error_set(err, TIDE_INVALID, "a text of the payload is too long");
    return TIDE_OK;
}

static tide_status record_user(tide_assistant_jobs *jobs, tide_job *job, tide_error *err)
{
    struct tide_assistant_user user = {.account = 0};
    TIDE_TRY(user_of(job, &user, err));
    if (user.account == 0)
        return tide_error_set(err, TIDE_INVALID, "the job has no account");
    return user.email[0] == '\0' ? TIDE_OK
                                 : tide_transact(jobs->options.engine, put_user, &user, err);
}

tide_status tide_assistant_onboard_run(tide_job *job, void *context, tide_error *err)
{
    TIDE_TRY(record_user(context, job, err));
    struct onboarding self;
    memset(&self, 0, sizeof self);
    tide_status rc = tide_task_begin(&self.task, context, job, err);
    if (rc == TIDE_OK)
        rc = tide_gmail_profile(self.task.gmail, job, &self.profile, err);
    /* A token of another mailbox is no error to any call: labels would be made there. */
    if (rc == TIDE_OK)
        rc = tide_mail_compare(self.task.user.email, &self.profile, err);
    if (rc == TIDE_OK)
        rc = tide_task_labels(&self.task, err);
    if (rc == TIDE_OK)
        rc = tide_transact(self.task.jobs->options.engine, write_user, &self, err);
    tide_task_end(&self.task);
    return rc;
}
