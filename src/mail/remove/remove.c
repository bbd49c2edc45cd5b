#include "mail/remove/remove.h"

#include "base/check.h"
#include "mail/remove/inside.h"
#include "net/judge_google.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { ENTRIES_IN_ONE = 200 }; /* per transaction (E2.5) */

/* ---- planning ---- */

struct planning {
    tide_mail *mail;
    struct tide_manifest manifest;
    struct tide_removal *entries; /* ENTRIES_IN_ONE */
    size_t count;
    tide_status rc;
    tide_error *err;
};

static tide_status add_manifest(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct planning *planning = arg;
    return tide_manifest_add(tide_transaction_rows(transaction), &planning->manifest, err);
}

static tide_status add_entries(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct planning *planning = arg;
    const tide_rows db = tide_transaction_rows(transaction);
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < planning->count; i++)
        rc = tide_removal_add(db, &planning->entries[i], err);
    return rc;
}

static tide_status end_planning(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct planning *planning = arg;
    const tide_rows db = tide_transaction_rows(transaction);
    const uint64_t id = planning->manifest.id;
    tide_status rc =
        tide_manifest_planned(db, id, tide_world_now_unix_ms(planning->mail->world), err);
    return rc == TIDE_OK ? tide_manifest_get(db, id, &planning->manifest, err) : rc;
}

struct forgetting {
    uint32_t account;
    bool more;
};

static tide_status forget_some(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct forgetting *forgetting = arg;
    return tide_manifest_forget_unplanned(tide_transaction_rows(transaction), forgetting->account,
                                          500, &forgetting->more, err);
}

/* F5: what a crash left of planning.  The open archive locks out all other processes: none can be
 * planning for this account. */
static tide_status forget_unplanned(tide_mail *mail, uint32_t account, tide_error *err)
{
    struct tide_mail_user *user = NULL;
    struct forgetting forgetting = {.account = account, .more = true};
    tide_status rc = tide_mail_user(mail, account, &user, err);
    while (rc == TIDE_OK && forgetting.more)
        rc = tide_transact(mail->engine, forget_some, &forgetting, err);
    return rc;
}

static tide_status write_entries(struct planning *planning)
{
    const tide_status rc =
        tide_transact(planning->mail->engine, add_entries, planning, planning->err);
    planning->count = 0;
    return rc;
}

static bool plan_candidate(const struct tide_candidate *candidate, void *arg)
{
    struct planning *planning = arg;
    const struct tide_stored *stored = &candidate->stored;
    struct tide_removal *entry = &planning->entries[planning->count++];
    *entry = (struct tide_removal){
        .manifest = planning->manifest.id,
        .bytes = stored->bytes,
        .internal_ms = stored->internal_ms,
        .state = candidate->refused == NULL ? TIDE_REMOVAL_PLANNED : TIDE_REMOVAL_REFUSED,
        .changed_ms = planning->manifest.made_ms,
    };
    memcpy(entry->gmail_id, stored->gmail_id, sizeof entry->gmail_id);
    memcpy(entry->thread_id, stored->thread_id, sizeof entry->thread_id);
    memcpy(entry->hash, stored->hash, sizeof entry->hash);
    memcpy(entry->labels, candidate->labels, sizeof entry->labels);
    if (candidate->refused != NULL)
        (void)snprintf(entry->reason, sizeof entry->reason, "%s", candidate->refused);
    if (planning->count == ENTRIES_IN_ONE)
        planning->rc = write_entries(planning);
    return planning->rc == TIDE_OK;
}

tide_status tide_archiver_plan(tide_mail *mail, const struct tide_archiving *ask,
                               struct tide_manifest *manifest_out, tide_error *err)
{
    struct planning planning = {.mail = mail, .err = err};
    struct tide_archiver_standing standing;
    TIDE_ASSERT(ask->mode <= TIDE_REMOVE_FOR_GOOD);
    if (strlen(ask->query) > TIDE_ARCHIVING_QUERY_BYTES)
        return tide_error_set(err, TIDE_INVALID, "a query has at most %d bytes",
                              TIDE_ARCHIVING_QUERY_BYTES);
    planning.manifest = (struct tide_manifest){.mode = ask->mode, .made_ms = ask->now_ms};
    (void)snprintf(planning.manifest.query, sizeof planning.manifest.query, "%s", ask->query);
    planning.entries = tide_mem_array(mail->mem, ENTRIES_IN_ONE, sizeof *planning.entries);
    tide_status rc = planning.entries == NULL
                         ? tide_error_set(err, TIDE_NO_MEMORY, "no memory for a manifest")
                         : tide_engine_account(mail->engine, ask->email, "gmail",
                                               &planning.manifest.account, err);
    if (rc == TIDE_OK)
        rc = forget_unplanned(mail, planning.manifest.account, err);
    if (rc == TIDE_OK)
        rc = tide_archiver_standing(mail, planning.manifest.account, &standing, err);
    if (rc == TIDE_OK) {
        planning.manifest.watermark_ms = standing.watermark_ms;
        rc = tide_transact(mail->engine, add_manifest, &planning, err);
    }
    if (rc == TIDE_OK)
        rc = tide_archiver_choose(mail, ask, plan_candidate, &planning, err);
    if (rc == TIDE_OK)
        rc = planning.rc;
    if (rc == TIDE_OK && planning.count > 0)
        rc = write_entries(&planning);
    if (rc == TIDE_OK)
        rc = tide_transact(mail->engine, end_planning, &planning, err);
    tide_mem_free(mail->mem, planning.entries, ENTRIES_IN_ONE * sizeof *planning.entries);
    if (rc == TIDE_OK)
        *manifest_out = planning.manifest;
    return rc;
}

/* ---- runs ---- */

struct manifest_ask {
    uint64_t id;
    uint32_t account;
    bool found;
    struct tide_manifest manifest;
};

static tide_status manifest_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct manifest_ask *ask = arg;
    return tide_manifest_get(tide_transaction_rows(transaction), ask->id, &ask->manifest, err);
}

tide_status tide_archiver_manifest(tide_mail *mail, uint64_t id, struct tide_manifest *manifest_out,
                                   tide_error *err)
{
    struct manifest_ask ask = {.id = id};
    const tide_status rc = tide_transact(mail->engine, manifest_run, &ask, err);
    if (rc == TIDE_OK)
        *manifest_out = ask.manifest;
    return rc;
}

static void unfinished_visit(const struct tide_manifest *manifest, void *arg)
{
    struct manifest_ask *ask = arg;
    if (ask->found || manifest->ended_ms != 0 || manifest->planned_ms == 0 ||
        manifest->mode > TIDE_REMOVE_FOR_GOOD)
        return;
    ask->found = true;
    ask->manifest = *manifest;
}

static tide_status unfinished_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct manifest_ask *ask = arg;
    return tide_manifest_list(tide_transaction_rows(transaction), ask->account, unfinished_visit,
                              ask, err);
}

tide_status tide_archiver_unfinished(tide_mail *mail, const char *email,
                                     struct tide_manifest *manifest_out, tide_error *err)
{
    struct manifest_ask ask = {.found = false};
    tide_status rc = tide_engine_account(mail->engine, email, "gmail", &ask.account, err);
    if (rc == TIDE_OK)
        rc = tide_transact(mail->engine, unfinished_run, &ask, err);
    if (rc == TIDE_OK && !ask.found)
        return TIDE_NOT_FOUND;
    if (rc == TIDE_OK)
        *manifest_out = ask.manifest;
    return rc;
}

tide_status tide_archiver_email(tide_mail *mail, uint32_t account, char email_out[256],
                                tide_error *err)
{
    struct tide_mail_row row;
    const tide_status rc = tide_mail_row_read(mail, account, &row, err);
    if (rc == TIDE_OK)
        memcpy(email_out, row.email, sizeof row.email);
    return rc;
}

/* ---- batches ---- */

tide_status tide_archiver_next(tide_mail *mail, uint64_t manifest, uint32_t ids, uint64_t *job_out,
                               tide_error *err)
{
    struct tide_manifest run;
    char payload[160];
    char dedupe[64];
    TIDE_ASSERT(mail->remove_kind != 0); /* tide_mail_options.archiver was set */
    tide_status rc = tide_archiver_manifest(mail, manifest, &run, err);
    if (rc != TIDE_OK)
        return rc;
    if (run.mode > TIDE_REMOVE_FOR_GOOD || run.planned_ms == 0)
        return tide_error_set(err, TIDE_INVALID,
                              "manifest %" PRIu64 " is not a run of the archiver", manifest);
    (void)snprintf(payload, sizeof payload,
                   "{\"engine\":\"%s\",\"manifest\":%" PRIu64 ",\"ids\":%" PRIu32 "}",
                   tide_engine_run(mail->engine), manifest, ids);
    (void)snprintf(dedupe, sizeof dedupe, "remove/%" PRIu32, run.account);
    const struct tide_spec spec = {
        .kind = mail->remove_kind, .account = run.account, .payload = payload, .dedupe = dedupe};
    if (tide_engine_shared(mail->engine)) {
        /* A job of a dead process has the same key: it would be taken for ours, and do nothing. */
        char email[256];
        rc = tide_archiver_email(mail, run.account, email, err);
        if (rc == TIDE_OK)
            rc = tide_cancel_kind_of(mail->engine, TIDE_MAIL_REMOVE, email, err);
    }
    if (rc == TIDE_OK)
        rc = tide_enqueue(mail->engine, &spec, 1, job_out, err);
    if (rc == TIDE_OK)
        tide_engine_take_soon(mail->engine);
    return rc;
}

tide_status tide_archiver_look(tide_mail *mail, uint64_t job, tide_error *err)
{
    tide_error why = {.status = TIDE_OK};
    tide_status rc = tide_job_ended(mail->engine, job, &why);
    if (rc == TIDE_PERMANENT && tide_google_lacks_scope(why.text))
        rc = why.status = TIDE_AUTH;
    if (rc != TIDE_OK && err != NULL)
        *err = why;
    return rc;
}

/* ---- scopes (M15a) ---- */

#define SCOPE_ALL    "https://mail.google.com/"
#define SCOPE_MODIFY "https://www.googleapis.com/auth/gmail.modify"

const char *tide_archiver_scope(tide_removal_mode mode)
{
    return mode == TIDE_REMOVE_FOR_GOOD ? SCOPE_ALL : SCOPE_MODIFY;
}

const char *tide_archiver_purpose(tide_removal_mode mode)
{
    return mode == TIDE_REMOVE_FOR_GOOD ? "delete" : "archive";
}

tide_status tide_archiver_allowed(tide_mail *mail, const char *email, tide_removal_mode mode,
                                  tide_error *err)
{
    struct tide_mail_user *user = NULL;
    uint32_t account = 0;
    tide_status rc = tide_engine_account(mail->engine, email, "gmail", &account, err);
    if (rc == TIDE_OK)
        rc = tide_mail_user(mail, account, &user, err);
    /* Scopes that are not known (an emulator's fixed token): the server will refuse if needed. */
    if (rc == TIDE_OK && !tide_tokens_cover(user->tokens, tide_archiver_scope(mode)))
        rc = tide_error_set(err, TIDE_AUTH, "the sign-in of %s does not allow to %s mail", email,
                            mode == TIDE_REMOVE_FOR_GOOD ? "delete" : "change");
    return rc;
}
