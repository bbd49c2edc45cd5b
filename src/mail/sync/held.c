/* held.c - mail.held: has the exact bytes of held copies fetched (M18, mail/archive/archive.h ARC6).
 *
 * An imported Takeout is held: it is found and shown, and its bytes may differ from the server's. A
 * run begins one mail.held, which chooses the newest held copies, adds mail.exact jobs for them and
 * then itself again from there on.  Both have priorities below all other jobs, mail.held below
 * mail.exact: so they use what the others leave of the quota, and few messages are chosen ahead.
 *
 * They belong to no cycle: the tidemark says that mail is stored, not that it is exact.  A copy is
 * held until its exact bytes are durable, so a crash costs only the choice. */
#include "base/check.h"
#include "base/json.h"
#include "mail/inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { CHOSEN_MAX = 1000 }; /* per job */

struct choosing {
    struct tide_held *held;
    size_t count;
};

static bool choose(const struct tide_held *held, void *arg)
{
    struct choosing *choosing = arg;
    choosing->held[choosing->count++] = *held;
    return choosing->count < CHOSEN_MAX;
}

/* ---- whether ---- */

struct inexact_ask {
    uint32_t account;
    bool inexact;
};

static tide_status inexact_read(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct inexact_ask *ask = arg;
    return tide_mail_inexact_get(tide_transaction_rows(transaction), ask->account, &ask->inexact,
                                 err);
}

tide_status tide_mail_inexact(tide_mail *mail, uint32_t account, bool *inexact_out, tide_error *err)
{
    struct inexact_ask ask = {.account = account};
    TIDE_TRY(tide_transact(mail->engine, inexact_read, &ask, err));
    *inexact_out = ask.inexact;
    return TIDE_OK;
}

static tide_status inexact_write(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct inexact_ask *ask = arg;
    return tide_mail_inexact_put(tide_transaction_rows(transaction), ask->account, ask->inexact,
                                 err);
}

/* ---- the jobs ---- */

/* `after` NULL: from the newest on.  Of several that wait, one is enough. */
static tide_status held_job(tide_mail *mail, tide_job *job, const struct tide_held *after,
                            tide_error *err)
{
    char payload[96] = "{}";
    char dedupe[32];
    if (after != NULL)
        (void)snprintf(payload, sizeof payload, "{\"shard\":%" PRIu32 ",\"row\":%" PRId64 "}",
                       after->shard, after->rowid);
    (void)snprintf(dedupe, sizeof dedupe, "held/%" PRIu32, tide_job_account(job));
    const struct tide_spec spec = {.kind = mail->held_kind,
                                   .account = tide_job_account(job),
                                   .payload = payload,
                                   .dedupe = dedupe};
    return tide_job_enqueue(job, &spec, err);
}

tide_status tide_mail_held_begin(tide_mail *mail, struct tide_mail_user *user, tide_job *job,
                                 bool inexact, tide_error *err)
{
    struct tide_archive_tally tally;
    struct inexact_ask *ask = tide_job_memory(job, sizeof *ask);
    if (ask == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for a plan");
    *ask = (struct inexact_ask){.account = user->account, .inexact = inexact};
    TIDE_TRY(tide_job_effect(job, inexact_write, ask, err));
    TIDE_TRY(tide_archive_tally(user->archive, &tally, err));
    return inexact || tally.copies[TIDE_COPY_HELD] == 0 ? TIDE_OK : held_job(mail, job, NULL, err);
}

/* A message that is recorded as bad or owed is left to its record: it costs no call in each run. */
static tide_status exact_jobs(tide_mail *mail, tide_job *job, const struct choosing *choosing,
                              tide_error *err)
{
    tide_text ids[CHOSEN_MAX];
    bool bad[CHOSEN_MAX];
    size_t count = 0;
    const uint32_t ids_max = tide_mail_ids_per_job(mail, tide_job_account(job));
    TIDE_ASSERT(ids_max > 0 && ids_max <= TIDE_MAIL_FETCH_IDS_MAX);
    for (size_t i = 0; i < choosing->count; i++)
        ids[i] = tide_text_of(choosing->held[i].gmail_id);
    TIDE_TRY(tide_items_bad(mail->engine, tide_job_account(job), ids, choosing->count, bad, err));
    for (size_t i = 0; i < choosing->count; i++)
        if (!bad[i])
            ids[count++] = ids[i];
    for (size_t from = 0; from < count; from += ids_max) {
        const size_t some = count - from < ids_max ? count - from : ids_max;
        TIDE_TRY(tide_mail_items_job(mail, job, mail->exact_kind, ids + from, some, NULL, err));
    }
    return TIDE_OK;
}

static tide_status held_read(tide_job *job, struct tide_held *after, bool *begun_out,
                             tide_error *err)
{
    json_auto_t *payload = NULL;
    uint64_t shard = 0;
    uint64_t row = 0;
    TIDE_TRY(tide_json_parse(tide_job_payload(job), &payload, err));
    *begun_out = tide_json_get_u64(payload, "shard", &shard, NULL) == TIDE_OK &&
                 tide_json_get_u64(payload, "row", &row, NULL) == TIDE_OK;
    after->shard = (uint32_t)shard;
    after->rowid = (int64_t)row;
    return TIDE_OK;
}

static tide_status sweep(tide_mail *mail, struct tide_mail_user *user, tide_job *job,
                         tide_error *err)
{
    TIDE_TRY(tide_mail_archived(
        user, tide_archive_sweep(user->archive, tide_job_cancellation(job), err), err));
    return tide_mail_remember(mail, user, job, err);
}

static bool stop(const struct tide_held *held, void *arg)
{
    (void)held;
    *(bool *)arg = true;
    return false;
}

tide_status tide_mail_held_swept(tide_mail *mail, tide_job *job, tide_error *err)
{
    struct tide_mail_user *user = NULL;
    bool more = false;
    TIDE_TRY(tide_mail_user(mail, tide_job_account(job), &user, err));
    TIDE_TRY(tide_archive_held(user->archive, NULL, INT64_MAX, stop, &more, err));
    return more ? TIDE_OK : sweep(mail, user, job, err);
}

static tide_status held_run(tide_job *job, tide_mail *mail, tide_error *err)
{
    struct tide_mail_user *user = NULL;
    struct tide_held after = {0};
    struct choosing choosing = {0};
    bool begun = false;
    bool inexact = false;
    TIDE_TRY(held_read(job, &after, &begun, err));
    TIDE_TRY(tide_mail_inexact(mail, tide_job_account(job), &inexact, err));
    if (inexact)
        return TIDE_OK;
    TIDE_TRY(tide_mail_user(mail, tide_job_account(job), &user, err));
    /* What the jobs before this one replaced; without it the archive would grow to twice its size. */
    TIDE_TRY(sweep(mail, user, job, err));
    choosing.held = tide_job_memory(job, CHOSEN_MAX * sizeof *choosing.held);
    if (choosing.held == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for the messages to fetch");
    TIDE_TRY(tide_archive_held(user->archive, begun ? &after : NULL,
                               tide_world_now_unix_ms(mail->world), choose, &choosing, err));
    if (choosing.count == 0)
        return TIDE_OK;
    TIDE_TRY(exact_jobs(mail, job, &choosing, err));
    return held_job(mail, job, &choosing.held[choosing.count - 1], err);
}

tide_status tide_mail_held(tide_job *job, void *context, tide_error *err)
{
    return tide_mail_ended(context, job, held_run(job, context, err), err);
}
