/* restore.c - what a restore wants, and what it has done (restore.h). */
#include "mail/restore/restore.h"

#include "base/check.h"
#include "mail/restore/inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- what was done ---- */

void tide_restore_refuse(tide_restore *restore, uint64_t entry, const char *gmail_id,
                         uint64_t bytes, const char *reason)
{
    if (TIDE_GROW_IN(restore->mem, restore->refusals, restore->refusals_capacity,
                     restore->refusals_count + 1, TIDE_RESTORE_REFUSALS_MAX)) {
        struct tide_refusal *refusal = &restore->refusals[restore->refusals_count++];
        *refusal = (struct tide_refusal){.entry = entry};
        (void)snprintf(refusal->gmail_id, sizeof refusal->gmail_id, "%s", gmail_id);
        (void)snprintf(refusal->reason, sizeof refusal->reason, "%.250s", reason);
    }
    if (entry != 0)
        tide_restore_count(restore, TIDE_DEED_REFUSE, bytes);
}

void tide_restore_count(tide_restore *restore, tide_deed deed, uint64_t bytes)
{
    restore->state.done[deed].messages++;
    restore->state.done[deed].bytes += bytes;
}

bool tide_restore_was_refused(const tide_restore *restore, uint64_t entry)
{
    for (size_t i = 0; i < restore->refusals_count; i++)
        if (restore->refusals[i].entry == entry)
            return true;
    return false;
}

const struct tide_restore_state *tide_restore_state(const tide_restore *restore)
{
    return &restore->state;
}

void tide_restore_refused(const tide_restore *restore,
                          void (*visit)(const char *gmail_id, const char *reason, void *arg),
                          void *arg)
{
    for (size_t i = 0; i < restore->refusals_count; i++)
        visit(restore->refusals[i].gmail_id, restore->refusals[i].reason, arg);
}

/* ---- as the result of a job ---- */

void tide_restore_result(const tide_restore *restore, tide_json *result)
{
    const struct tide_restore_state *state = &restore->state;
    tide_json done;
    tide_json refused;
    tide_json_object(result);
    tide_json_array(&done);
    tide_json_array(&refused);
    for (int i = 0; i < TIDE_DEEDS; i++) {
        tide_json_append_u64(&done, state->done[i].messages);
        tide_json_append_u64(&done, state->done[i].bytes);
    }
    for (size_t i = 0; i < restore->refusals_count; i++) {
        tide_json one;
        tide_json_object(&one);
        tide_json_set_cstr(&one, "id", restore->refusals[i].gmail_id);
        tide_json_set_cstr(&one, "reason", restore->refusals[i].reason);
        tide_json_append(&refused, &one);
    }
    tide_json_set_u64(result, "manifest", state->manifest);
    tide_json_set_u64(result, "labels", state->labels);
    tide_json_set_u64(result, "labels_lost", state->labels_lost);
    tide_json_set_u64(result, "twice", state->twice);
    tide_json_set_bool(result, "denied", restore->denied);
    tide_json_set(result, "done", &done);
    tide_json_set(result, "refused", &refused);
}

static uint64_t number_at(const json_t *list, size_t index)
{
    return (uint64_t)json_integer_value(json_array_get(list, index));
}

bool tide_restore_answer(const json_t *result, struct tide_restore_state *state)
{
    const json_t *done = json_object_get(result, "done");
    for (size_t i = 0; i < TIDE_DEEDS; i++)
        state->done[i] =
            (struct tide_restore_sum){number_at(done, 2 * i), number_at(done, 2 * i + 1)};
    (void)tide_json_get_u64(result, "manifest", &state->manifest, NULL);
    (void)tide_json_get_u64(result, "labels", &state->labels, NULL);
    (void)tide_json_get_u64(result, "labels_lost", &state->labels_lost, NULL);
    (void)tide_json_get_u64(result, "twice", &state->twice, NULL);
    return json_is_true(json_object_get(result, "denied"));
}

void tide_restore_answer_refused(const json_t *result,
                                 void (*visit)(const char *gmail_id, const char *reason, void *arg),
                                 void *arg)
{
    size_t index = 0;
    const json_t *one = NULL;
    json_array_foreach(json_object_get(result, "refused"), index, one)
        visit(json_string_value(json_object_get(one, "id")),
              json_string_value(json_object_get(one, "reason")), arg);
}

/* ---- what is wanted ---- */

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

static tide_status aim_at_query(tide_rows db, const char *email, uint32_t *account_out,
                                tide_error *err)
{
    struct account_ask ask = {.email = email};
    const tide_status rc = tide_mail_rows(db, account_match, &ask, err);
    *account_out = ask.account;
    return rc != TIDE_OK || ask.account != 0
               ? rc
               : tide_error_set(err, TIDE_NOT_FOUND, "there is no mail account %.100s", email);
}

static tide_status aim_at_manifest(tide_rows db, uint64_t manifest, const char *email,
                                   struct tide_manifest *found, tide_error *err)
{
    struct tide_mail_row row;
    TIDE_TRY(tide_manifest_get(db, manifest, found, err));
    TIDE_TRY(tide_mail_row_get(db, found->account, &row, err));
    if (email != NULL && strcmp(email, row.email) != 0)
        return tide_error_set(err, TIDE_INVALID, "manifest %" PRIu64 " is of %s, not of %.100s",
                              manifest, row.email, email);
    return TIDE_OK;
}

tide_status tide_restore_aim(tide_restore *restore, tide_rows db, uint64_t manifest,
                             const char *email, tide_error *err)
{
    struct tide_manifest found;
    restore->state.mode = TIDE_REMOVE_NOTHING;
    if (manifest == 0)
        return aim_at_query(db, email, &restore->account, err);
    TIDE_TRY(aim_at_manifest(db, manifest, email, &found, err));
    restore->account = found.account;
    restore->state.manifest = found.id;
    restore->state.mode = found.mode;
    return TIDE_OK;
}

tide_status tide_restore_account(tide_rows db, const struct tide_restore_wanted *wanted,
                                 uint32_t *account_out, char email_out[256], tide_error *err)
{
    struct tide_restore aim = {.account = 0};
    struct tide_mail_row row;
    TIDE_TRY(tide_restore_aim(&aim, db, wanted->manifest, wanted->email, err));
    TIDE_TRY(tide_mail_row_get(db, aim.account, &row, err));
    *account_out = aim.account;
    memcpy(email_out, row.email, sizeof row.email);
    return TIDE_OK;
}

static tide_status take_wanted(tide_restore *restore, const struct tide_restore_wanted *wanted,
                               tide_error *err)
{
    restore->limit = wanted->limit;
    if (wanted->ids_count > TIDE_RESTORE_IDS_MAX)
        return tide_error_set(err, TIDE_INVALID, "at most %d messages can be named",
                              TIDE_RESTORE_IDS_MAX);
    for (size_t i = 0; i < wanted->ids_count; i++)
        (void)snprintf(restore->ids[restore->ids_count++], sizeof restore->ids[0], "%s",
                       wanted->ids[i]);
    if (wanted->manifest != 0)
        return TIDE_OK;
    if (wanted->query == NULL || wanted->query[0] == '\0')
        return tide_error_set(err, TIDE_INVALID, "no messages selected");
    if (strlen(wanted->query) >= sizeof restore->query)
        return tide_error_set(err, TIDE_INVALID, "a query of %zu bytes; at most %zu are kept",
                              strlen(wanted->query), sizeof restore->query - 1);
    (void)snprintf(restore->query, sizeof restore->query, "%s", wanted->query);
    return TIDE_OK;
}

tide_status tide_restore_new(const struct tide_restore_wanted *wanted, tide_mem *mem,
                             tide_restore **restore_out, tide_error *err)
{
    TIDE_ASSERT(wanted->manifest != 0 || wanted->email != NULL);
    tide_restore *restore = tide_mem_new(mem, sizeof *restore);
    if (restore == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for a restore");
    restore->mem = mem;
    tide_status rc = take_wanted(restore, wanted, err);
    if (rc == TIDE_OK)
        rc = tide_packer_new(mem, 0, &restore->packer, err);
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
    json_decref(restore->labels);
    tide_packer_free(restore->packer);
    tide_mem_free(restore->mem, restore->made, restore->made_capacity * sizeof *restore->made);
    tide_mem_free(restore->mem, restore->entries,
                  restore->entries_capacity * sizeof *restore->entries);
    tide_mem_free(restore->mem, restore->refusals,
                  restore->refusals_capacity * sizeof *restore->refusals);
    tide_mem_free(restore->mem, restore, sizeof *restore);
}

/* ---- planning ---- */

struct read_ask {
    tide_restore_read_fn *read;
    void *arg;
};

static tide_status read_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct read_ask *ask = arg;
    return ask->read(tide_transaction_rows(transaction), ask->arg, err);
}

tide_status tide_restore_read(tide_restore *restore, tide_restore_read_fn *read, void *arg,
                              tide_error *err)
{
    struct read_ask ask = {read, arg};
    if (restore->mail == NULL)
        return read(restore->db, arg, err);
    return tide_transact(restore->mail->engine, read_run, &ask, err);
}

tide_status tide_restore_open(tide_world *world, tide_rows db, tide_archive *archive,
                              const struct tide_restore_wanted *wanted, tide_mem *mem,
                              tide_restore **restore_out, tide_error *err)
{
    tide_restore *restore = NULL;
    TIDE_TRY(tide_restore_new(wanted, mem, &restore, err));
    restore->world = world;
    restore->db = db;
    restore->archive = archive;
    tide_status rc = tide_restore_aim(restore, db, wanted->manifest, wanted->email, err);
    if (rc == TIDE_OK)
        rc = tide_restore_plan(restore, err);
    if (rc != TIDE_OK) {
        tide_restore_close(restore);
        return rc;
    }
    *restore_out = restore;
    return TIDE_OK;
}

/* ---- asking for the job ---- */

void tide_restore_dedupe(uint32_t account, char dedupe_out[64])
{
    (void)snprintf(dedupe_out, 64, "restore/%" PRIu32, account);
}

void tide_restore_ask(const struct tide_restore_wanted *wanted, tide_json *payload)
{
    tide_json ids = {.value = json_array()};
    for (size_t i = 0; i < wanted->ids_count; i++)
        (void)json_array_append_new(ids.value, json_string(wanted->ids[i]));
    tide_json_set_u64(payload, "manifest", wanted->manifest);
    tide_json_set_cstr(payload, "query", wanted->query);
    tide_json_set(payload, "ids", &ids);
    tide_json_set_u64(payload, "limit", wanted->limit);
}
