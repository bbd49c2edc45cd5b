/* run.c - mail.restore: one job restores everything that is wanted, some entries at a time, and
 * lets other jobs run in between (restore.h).
 *
 * What it knows besides the manifest (labels of the server, refusals, an insert that was certainly
 * not sent) is kept from one attempt to the next, under the number of the job. */
#include "mail/restore/inside.h"

#include "base/check.h"
#include "mail/result.h"

#include <stdio.h>
#include <string.h>

enum { BUSY_MS = 1000 };

/* ---- the restores of this process ---- */

/* Takes the restore of a job; NULL: it has none yet.  *busy_out: an attempt that was given up still
 * uses it. */
static tide_restore *take(tide_mail *mail, uint64_t job, bool *busy_out)
{
    tide_lock_take(mail->world, mail->lock);
    tide_restore *restore = mail->restores;
    while (restore != NULL && restore->job != job)
        restore = restore->next;
    *busy_out = restore != NULL && restore->running;
    if (restore != NULL && !restore->running)
        restore->running = true;
    tide_lock_drop(mail->world, mail->lock);
    return restore;
}

static void add(tide_mail *mail, tide_restore *restore)
{
    tide_lock_take(mail->world, mail->lock);
    restore->running = true;
    restore->next = mail->restores;
    mail->restores = restore;
    tide_lock_drop(mail->world, mail->lock);
}

static void give_back(tide_mail *mail, tide_restore *restore, bool over)
{
    tide_lock_take(mail->world, mail->lock);
    restore->running = false;
    tide_restore **at = &mail->restores;
    while (over && *at != restore)
        at = &(*at)->next;
    if (over)
        *at = restore->next;
    tide_lock_drop(mail->world, mail->lock);
    if (over)
        tide_restore_close(restore);
}

/* A job that was canceled while it waited has left its restore. */
static tide_restore *take_any_idle(tide_mail *mail, uint64_t after)
{
    tide_restore *found = NULL;
    tide_lock_take(mail->world, mail->lock);
    for (tide_restore *one = mail->restores; one != NULL; one = one->next)
        if (!one->running && one->job > after && (found == NULL || one->job < found->job))
            found = one;
    if (found != NULL)
        found->running = true;
    tide_lock_drop(mail->world, mail->lock);
    return found;
}

static void forget_ended(tide_mail *mail)
{
    uint64_t after = 0;
    for (tide_restore *one = take_any_idle(mail, 0); one != NULL;
         one = take_any_idle(mail, after)) {
        after = one->job;
        give_back(mail, one, tide_job_ended(mail->engine, one->job, NULL) != TIDE_TIMEOUT);
    }
}

void tide_restores_close(tide_mail *mail)
{
    while (mail->restores != NULL) {
        tide_restore *restore = mail->restores;
        mail->restores = restore->next;
        tide_restore_close(restore);
    }
}

/* ---- opening ---- */

struct aim_ask {
    tide_restore *restore;
    uint64_t manifest;
    const char *email;
};

static tide_status aim_read(tide_rows db, void *arg, tide_error *err)
{
    const struct aim_ask *ask = arg;
    return tide_restore_aim(ask->restore, db, ask->manifest, ask->email, err);
}

static tide_status open_wanted(tide_mail *mail, tide_job *job,
                               const struct tide_restore_wanted *wanted,
                               struct tide_mail_user *user, tide_restore **restore_out,
                               tide_error *err)
{
    tide_restore *restore = NULL;
    TIDE_TRY(tide_restore_new(wanted, mail->mem, &restore, err));
    restore->mail = mail;
    restore->world = mail->world;
    restore->job = tide_job_id(job);
    struct aim_ask ask = {restore, wanted->manifest, user->email};
    tide_status rc = tide_restore_read(restore, aim_read, &ask, err);
    if (rc != TIDE_OK) {
        tide_restore_close(restore);
        return rc;
    }
    add(mail, restore);
    *restore_out = restore;
    return TIDE_OK;
}

static tide_status open_payload(tide_mail *mail, tide_job *job, const json_t *payload,
                                struct tide_mail_user *user, tide_restore **restore_out,
                                tide_error *err)
{
    const char *ids[TIDE_RESTORE_IDS_MAX];
    const json_t *named = json_object_get(payload, "ids");
    struct tide_restore_wanted wanted = {
        .email = user->email,
        .query = json_string_value(json_object_get(payload, "query")),
        .manifest = (uint64_t)json_integer_value(json_object_get(payload, "manifest")),
        .limit = (uint64_t)json_integer_value(json_object_get(payload, "limit")),
        .ids = ids,
    };
    if (json_array_size(named) > TIDE_RESTORE_IDS_MAX)
        return tide_error_set(err, TIDE_INVALID, "a restore of %zu ids", json_array_size(named));
    size_t index = 0;
    const json_t *id = NULL;
    json_array_foreach(named, index, id) if (json_is_string(id)) ids[wanted.ids_count++] =
        json_string_value(id);
    forget_ended(mail);
    return open_wanted(mail, job, &wanted, user, restore_out, err);
}

/* ---- running ---- */

static tide_status collect(tide_restore *restore, tide_error *err)
{
    if (restore->collected)
        return TIDE_OK;
    restore->refusals_count = 0;
    memset(restore->state.done, 0, sizeof restore->state.done);
    const tide_status rc = tide_restore_collect(restore, err);
    restore->collected = rc == TIDE_OK;
    return rc;
}

static tide_status end_manifest(tide_transaction *transaction, void *arg, tide_error *err)
{
    const tide_restore *restore = arg;
    const tide_rows db = tide_transaction_rows(transaction);
    struct tide_manifest manifest;
    TIDE_TRY(tide_manifest_get(db, restore->state.manifest, &manifest, err));
    if (manifest.mode != TIDE_REMOVE_NOTHING || manifest.ended_ms != 0 ||
        manifest.entries[TIDE_REMOVAL_REMOVED] > 0)
        return TIDE_OK;
    return tide_manifest_end(db, manifest.id, tide_world_now_unix_ms(restore->world), err);
}

/* The next entries.  Label changes share calls, so there are more of them. */
static tide_status some(tide_restore *restore, tide_job *job, tide_error *err)
{
    const tide_removal_mode mode = restore->state.mode;
    const size_t most = mode == TIDE_REMOVE_FROM_INBOX || mode == TIDE_REMOVE_TO_TRASH
                            ? TIDE_RESTORE_LABELED
                            : TIDE_RESTORE_ENTRIES;
    const size_t left = restore->entries_count - restore->entries_next;
    const size_t count = left < most ? left : most;
    TIDE_TRY(
        tide_restore_entries(restore, job, restore->entries + restore->entries_next, count, err));
    restore->entries_next += count;
    return TIDE_OK;
}

static tide_status tell(tide_restore *restore, tide_job *job, tide_error *err)
{
    tide_json result;
    tide_restore_result(restore, &result);
    return tide_result_put(restore->mail->engine, job, &result, err);
}

/* TIDE_AGAIN: there is more. */
static tide_status step(tide_restore *restore, tide_job *job, tide_error *err)
{
    tide_status rc = collect(restore, err);
    if (rc == TIDE_OK && restore->entries_next < restore->entries_count)
        rc = some(restore, job, err);
    const bool over = rc == TIDE_OK && restore->entries_next == restore->entries_count;
    if (over)
        rc = tide_transact(restore->mail->engine, end_manifest, restore, err);
    const tide_status told = tell(restore, job, rc == TIDE_OK ? err : NULL);
    if (rc != TIDE_OK)
        return rc;
    if (told != TIDE_OK)
        return told;
    return over ? TIDE_OK : tide_job_again(job, tide_job_now_ms(job));
}

/* Failures that end by themselves: the engine runs the job again. */
static bool passes(tide_status rc)
{
    switch (tide_status_class(rc)) {
    case TIDE_CLASS_THROTTLED:
    case TIDE_CLASS_AUTH:
    case TIDE_CLASS_NETWORK:
    case TIDE_CLASS_DISK:
    case TIDE_CLASS_CANCELED:
        return true;
    default:
        return rc == TIDE_AGAIN;
    }
}

static tide_status run(tide_mail *mail, tide_job *job, const json_t *payload, tide_error *err)
{
    struct tide_mail_user *user = NULL;
    tide_restore *restore = NULL;
    bool busy = false;
    TIDE_TRY(tide_mail_user(mail, tide_job_account(job), &user, err));
    restore = take(mail, tide_job_id(job), &busy);
    if (busy)
        return tide_job_again(job, tide_job_now_ms(job) + BUSY_MS);
    if (restore == NULL)
        TIDE_TRY(open_payload(mail, job, payload, user, &restore, err));
    restore->user = user;
    restore->archive = user->archive;
    tide_status rc = step(restore, job, err);
    give_back(mail, restore, !passes(rc));
    return rc;
}

tide_status tide_mail_restore(tide_job *job, void *context, tide_error *err)
{
    tide_mail *mail = context;
    json_auto_t *payload = NULL;
    tide_error own = {TIDE_OK, 0, ""};
    tide_status rc = tide_json_parse(tide_job_payload(job), &payload, &own);
    const bool here = rc == TIDE_OK && tide_engine_asked_here(mail->engine, payload);
    if (here)
        rc = run(mail, job, payload, &own);
    /* RST4.  What is left is in the manifest. */
    if (rc == TIDE_OK && !here)
        return TIDE_OK;
    /* Messages were tried again one by one; trying all of them again does not help. */
    if (rc != TIDE_OK && !passes(rc) && tide_status_class(rc) != TIDE_CLASS_BUG)
        rc = own.status = TIDE_PERMANENT;
    if (err != NULL)
        *err = own;
    return tide_mail_ended(mail, job, rc, err);
}
