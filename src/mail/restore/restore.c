/* restore.c - opens a restore and runs it, one job after the other (restore.h). */
#include "mail/restore/restore.h"

#include "base/check.h"
#include "mail/restore/inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- results ---- */

void tide_restore_refuse(tide_restore *restore, uint64_t entry, const char *gmail_id,
                         uint64_t bytes, const char *reason)
{
    tide_lock_take(restore->mail->world, restore->mail->lock);
    void *refusals = restore->refusals;
    if (tide_mem_grow(restore->mem, &refusals, &restore->refusals_capacity,
                      restore->refusals_count + 1, TIDE_RESTORE_REFUSALS_MAX,
                      sizeof *restore->refusals)) {
        restore->refusals = refusals;
        struct tide_refusal *refusal = &restore->refusals[restore->refusals_count++];
        *refusal = (struct tide_refusal){.entry = entry};
        (void)snprintf(refusal->gmail_id, sizeof refusal->gmail_id, "%s", gmail_id);
        (void)snprintf(refusal->reason, sizeof refusal->reason, "%.250s", reason);
    }
    if (entry != 0) {
        restore->state.done[TIDE_DEED_REFUSE].messages++;
        restore->state.done[TIDE_DEED_REFUSE].bytes += bytes;
    }
    tide_lock_drop(restore->mail->world, restore->mail->lock);
}

void tide_restore_count(tide_restore *restore, tide_deed deed, uint64_t bytes)
{
    tide_lock_take(restore->mail->world, restore->mail->lock);
    restore->state.done[deed].messages++;
    restore->state.done[deed].bytes += bytes;
    tide_lock_drop(restore->mail->world, restore->mail->lock);
}

/* Only the handler writes it, and it calls this on its own thread. */
bool tide_restore_was_refused(const tide_restore *restore, uint64_t entry)
{
    for (size_t i = 0; i < restore->refusals_count; i++)
        if (restore->refusals[i].entry == entry)
            return true;
    return false;
}

void tide_restore_state(tide_restore *restore, struct tide_restore_state *state_out)
{
    tide_lock_take(restore->mail->world, restore->mail->lock);
    *state_out = restore->state;
    tide_lock_drop(restore->mail->world, restore->mail->lock);
}

void tide_restore_refused(tide_restore *restore,
                          void (*visit)(const char *gmail_id, const char *reason, void *arg),
                          void *arg)
{
    tide_lock_take(restore->mail->world, restore->mail->lock);
    for (size_t i = 0; i < restore->refusals_count; i++)
        visit(restore->refusals[i].gmail_id, restore->refusals[i].reason, arg);
    tide_lock_drop(restore->mail->world, restore->mail->lock);
}

/* ---- opening ---- */

struct manifest_ask {
    uint64_t id;
    struct tide_manifest manifest;
};

static tide_status read_manifest(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct manifest_ask *ask = arg;
    return tide_manifest_get(tide_transaction_rows(transaction), ask->id, &ask->manifest, err);
}

static tide_status open_manifest(tide_restore *restore, const struct tide_restore_options *options,
                                 tide_error *err)
{
    struct manifest_ask ask = {.id = options->manifest};
    const tide_status rc = tide_transact(restore->mail->engine, read_manifest, &ask, err);
    if (rc != TIDE_OK)
        return rc;
    restore->account = ask.manifest.account;
    restore->state.manifest = ask.manifest.id;
    restore->state.mode = ask.manifest.mode;
    if (options->ids_count > TIDE_RESTORE_IDS_MAX)
        return tide_error_set(err, TIDE_INVALID, "at most %d messages can be named",
                              TIDE_RESTORE_IDS_MAX);
    for (size_t i = 0; i < options->ids_count; i++)
        (void)snprintf(restore->ids[restore->ids_count++], sizeof restore->ids[0], "%s",
                       options->ids[i]);
    return TIDE_OK;
}

struct account_ask {
    const char *email;
    uint32_t account;
};

static void account_match(const struct tide_mail_row *row, void *arg)
{
    struct account_ask *ask = arg;
    if (strcmp(row->email, ask->email) == 0)
        ask->account = row->account;
}

static tide_status account_find(tide_transaction *transaction, void *arg, tide_error *err)
{
    return tide_mail_rows(tide_transaction_rows(transaction), account_match, arg, err);
}

static tide_status open_query(tide_restore *restore, const struct tide_restore_options *options,
                              tide_error *err)
{
    restore->state.mode = TIDE_REMOVE_NOTHING;
    if (options->query == NULL || options->query[0] == '\0')
        return tide_error_set(err, TIDE_INVALID, "no messages selected");
    if (strlen(options->query) >= sizeof restore->query)
        return tide_error_set(err, TIDE_INVALID, "a query of %zu bytes; at most %zu are kept",
                              strlen(options->query), sizeof restore->query - 1);
    (void)snprintf(restore->query, sizeof restore->query, "%s", options->query);
    struct account_ask ask = {.email = options->email};
    const tide_status rc = tide_transact(restore->mail->engine, account_find, &ask, err);
    restore->account = ask.account;
    return rc != TIDE_OK || ask.account != 0
               ? rc
               : tide_error_set(err, TIDE_NOT_FOUND, "there is no mail account %.100s",
                                options->email);
}

static tide_status open_account(tide_restore *restore, const struct tide_restore_options *options,
                                tide_error *err)
{
    tide_status rc = options->manifest != 0 ? open_manifest(restore, options, err)
                                            : open_query(restore, options, err);
    if (rc == TIDE_OK)
        rc = tide_mail_user(restore->mail, restore->account, &restore->user, err);
    if (rc != TIDE_OK)
        return rc;
    (void)snprintf(restore->state.email, sizeof restore->state.email, "%s", restore->user->email);
    if (options->email != NULL && strcmp(options->email, restore->user->email) != 0)
        return tide_error_set(err, TIDE_INVALID, "manifest %" PRIu64 " is of %s, not of %.100s",
                              options->manifest, restore->user->email, options->email);
    return TIDE_OK;
}

tide_status tide_restore_open(const struct tide_restore_options *options, tide_mem *mem,
                              tide_restore **restore_out, tide_error *err)
{
    TIDE_ASSERT(options->mail != NULL);
    TIDE_ASSERT(options->manifest != 0 || options->email != NULL);
    tide_restore *restore = tide_mem_new(mem, sizeof *restore);
    if (restore == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for a restore");
    restore->mail = options->mail;
    restore->mem = mem;
    restore->limit = options->limit;
    tide_status rc = open_account(restore, options, err);
    if (rc == TIDE_OK)
        rc = tide_packer_new(mem, 0, &restore->packer, err);
    if (rc == TIDE_OK)
        rc = tide_restore_plan(restore, err);
    if (rc != TIDE_OK) {
        tide_restore_close(restore);
        return rc;
    }
    *restore_out = restore;
    return TIDE_OK;
}

void tide_restore_close(tide_restore *restore)
{
    if (restore == NULL)
        return;
    tide_mail *mail = restore->mail;
    tide_lock_take(mail->world, mail->lock);
    if (mail->restoring == restore)
        mail->restoring = NULL;
    tide_lock_drop(mail->world, mail->lock);
    json_decref(restore->labels);
    tide_packer_free(restore->packer);
    tide_mem_free(restore->mem, restore->made, restore->made_capacity * sizeof *restore->made);
    tide_mem_free(restore->mem, restore->entries,
                  restore->entries_capacity * sizeof *restore->entries);
    tide_mem_free(restore->mem, restore->refusals,
                  restore->refusals_capacity * sizeof *restore->refusals);
    tide_mem_free(restore->mem, restore, sizeof *restore);
}

/* ---- running ---- */

tide_status tide_restore_begin(tide_restore *restore, tide_error *err)
{
    tide_mail *mail = restore->mail;
    tide_lock_take(mail->world, mail->lock);
    const bool busy = mail->restoring != NULL && mail->restoring != restore;
    if (!busy)
        mail->restoring = restore;
    tide_lock_drop(mail->world, mail->lock);
    if (busy)
        return tide_error_set(err, TIDE_BUSY, "another restore is running in this process");
    restore->number = tide_world_random_u64(mail->world) >> 12; /* exact in JSON */
    restore->refusals_count = 0;
    restore->entries_next = 0;
    return tide_restore_collect(restore, err);
}

/* Enqueues the next entries as a job.  Label changes share calls, so their jobs are larger. */
static tide_status next_job(tide_restore *restore, tide_error *err)
{
    const size_t most =
        restore->state.mode == TIDE_REMOVE_FROM_INBOX || restore->state.mode == TIDE_REMOVE_TO_TRASH
            ? TIDE_RESTORE_LABELED
            : TIDE_RESTORE_ENTRIES;
    size_t count = restore->entries_count - restore->entries_next;
    tide_json payload;
    tide_json entries;
    tide_buf line;
    if (count > most)
        count = most;
    tide_buf_init(&line, restore->mem, 64 << 10);
    tide_json_object(&payload);
    tide_json_array(&entries);
    for (size_t i = 0; i < count; i++)
        tide_json_append_u64(&entries, restore->entries[restore->entries_next + i]);
    tide_json_set_u64(&payload, "run", restore->number);
    tide_json_set_u64(&payload, "manifest", restore->state.manifest);
    tide_json_set(&payload, "entries", &entries);
    tide_status rc = tide_json_line(&payload, &line);
    tide_json_done(&payload);
    const struct tide_spec spec = {.kind = restore->mail->restore_kind,
                                   .account = restore->account,
                                   .payload = tide_buf_cstr(&line)};
    restore->job_over = false;
    if (rc == TIDE_OK)
        rc = tide_enqueue(restore->mail->engine, &spec, 1, &restore->job, err);
    else
        (void)tide_error_set(err, rc, "no memory for a job of %zu messages", count);
    if (rc == TIDE_OK) {
        restore->entries_next += count;
        tide_engine_take_soon(restore->mail->engine);
    }
    tide_buf_done(&line);
    return rc;
}

static tide_status end_manifest(tide_transaction *transaction, void *arg, tide_error *err)
{
    const tide_restore *restore = arg;
    const tide_rows db = tide_transaction_rows(transaction);
    struct tide_manifest manifest;
    const tide_status rc = tide_manifest_get(db, restore->state.manifest, &manifest, err);
    if (rc != TIDE_OK || manifest.mode != TIDE_REMOVE_NOTHING || manifest.ended_ms != 0 ||
        manifest.entries[TIDE_REMOVAL_REMOVED] > 0)
        return rc; /* the archiver ends its own manifests */
    return tide_manifest_end(db, manifest.id, tide_world_now_unix_ms(restore->mail->world), err);
}

/* The result of the job: TIDE_TIMEOUT while it runs. */
static tide_status job_look(tide_restore *restore, tide_error *err)
{
    tide_status rc = restore->job == 0 ? TIDE_OK : TIDE_TIMEOUT;
    tide_lock_take(restore->mail->world, restore->mail->lock);
    if (restore->fatal.status != TIDE_OK) {
        rc = restore->fatal.status;
        if (err != NULL)
            *err = restore->fatal;
    } else if (restore->job_over) {
        rc = TIDE_OK;
    }
    tide_lock_drop(restore->mail->world, restore->mail->lock);
    return rc;
}

tide_status tide_restore_step(tide_restore *restore, uint64_t wait_ms, tide_error *err)
{
    tide_status rc = job_look(restore, err);
    if (rc == TIDE_OK && restore->entries_next == restore->entries_count)
        return tide_transact(restore->mail->engine, end_manifest, restore, err);
    if (rc == TIDE_OK)
        rc = next_job(restore, err);
    else if (rc != TIDE_TIMEOUT)
        (void)tide_cancel_job(restore->mail->engine, restore->job, NULL);
    if (rc != TIDE_OK && rc != TIDE_TIMEOUT)
        return rc;
    rc = tide_engine_wait(restore->mail->engine, wait_ms, err);
    if (rc != TIDE_OK)
        return rc;
    /* Nothing can run: our job has ended, or a user canceled it. */
    rc = job_look(restore, err);
    if (rc == TIDE_TIMEOUT)
        return tide_error_set(
            err, TIDE_CANCELED,
            "the restore job of %s was canceled, or the account was paused or halted",
            restore->state.email);
    return rc == TIDE_OK ? TIDE_TIMEOUT : rc;
}
