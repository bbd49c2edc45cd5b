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
    for (size_t i = 0; i < planning->count; i++)
        TIDE_TRY(tide_removal_add(db, &planning->entries[i], err));
    return TIDE_OK;
}

static tide_status end_planning(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct planning *planning = arg;
    return tide_manifest_get(tide_transaction_rows(transaction), planning->manifest.id,
                             &planning->manifest, err);
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

tide_status tide_archiver_forget_unplanned(tide_mail *mail, uint32_t account, tide_error *err)
{
    struct forgetting forgetting = {.account = account, .more = true};
    while (forgetting.more)
        TIDE_TRY(tide_transact(mail->engine, forget_some, &forgetting, err));
    return TIDE_OK;
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

tide_status tide_archiver_plan(tide_mail *mail, const struct tide_archiving *ask, tide_job *job,
                               struct tide_manifest *manifest_out, tide_error *err)
{
    struct planning planning = {.mail = mail, .err = err};
    struct tide_archiver_standing standing;
    struct tide_mail_user *user = NULL;
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
    if (rc ==
        TIDE_OK) /* before there is a manifest: opening forgets those that are not valid yet */
        rc = tide_mail_user(mail, planning.manifest.account, &user, err);
    if (rc == TIDE_OK)
        rc = tide_archiver_standing(mail, planning.manifest.account, &standing, err);
    if (rc == TIDE_OK) {
        planning.manifest.tidemark_ms = standing.tidemark_ms;
        rc = tide_transact(mail->engine, add_manifest, &planning, err);
    }
    if (rc == TIDE_OK)
        rc = tide_archiver_choose(mail, ask, job, plan_candidate, &planning, err);
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

/* ---- batches ---- */

void tide_archiver_batch_ask(uint64_t manifest, uint32_t ids, uint64_t until_ms, tide_json *payload)
{
    tide_json_set_u64(payload, "until", until_ms);
    tide_json_set_u64(payload, "manifest", manifest);
    tide_json_set_u64(payload, "ids", ids);
}

void tide_archiver_batch_dedupe(uint32_t account, char dedupe_out[64])
{
    (void)snprintf(dedupe_out, 64, "remove/%" PRIu32, account);
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

tide_status tide_archiver_allowed(tide_world *world, tide_secrets *secrets, const char *email,
                                  tide_removal_mode mode, tide_mem *mem, tide_error *err)
{
    tide_tokens *tokens = NULL;
    tide_status rc = tide_mail_tokens(world, secrets, email, mem, &tokens, err);
    /* Scopes that are not known (an emulator's fixed token): the server will refuse if needed. */
    if (rc == TIDE_OK && !tide_tokens_cover(tokens, tide_archiver_scope(mode)))
        rc = tide_error_set(err, TIDE_AUTH, "the sign-in of %s does not allow to %s mail", email,
                            mode == TIDE_REMOVE_FOR_GOOD ? "delete" : "change");
    tide_tokens_close(tokens);
    return rc;
}
