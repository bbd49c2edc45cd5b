/* proofs.c - the two proofs of a batch: nothing has changed in Gmail, and the copy can be read from
 * the disk (M13). */
#include "mail/remove/inside.h"

#include "base/check.h"
#include "base/hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- the state of the account ---- */

struct mark_ask {
    uint64_t stream;
    uint64_t finished;
    struct tide_archiver_standing *standing;
};

static tide_status mark_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct mark_ask *ask = arg;
    const tide_rows db = tide_transaction_rows(transaction);
    const tide_status rc =
        tide_mail_mark_get(db, ask->stream, ask->finished, ask->standing->history_id, err);
    if (rc != TIDE_OK && rc != TIDE_NOT_FOUND)
        return rc;
    return tide_gap_get(db, ask->standing->row.account, &ask->standing->gap_ms, err);
}

tide_status tide_archiver_standing(tide_mail *mail, uint32_t account,
                                   struct tide_archiver_standing *standing_out, tide_error *err)
{
    struct tide_archiver_standing standing = {.history_id = ""};
    struct tide_stream_state state = {.cycles_finished = 0};
    TIDE_TRY(tide_mail_row_read(mail, account, &standing.row, err));
    TIDE_TRY(tide_mail_stream(mail, &standing.row, &standing.stream, err));
    TIDE_TRY(tide_stream_state(mail->engine, standing.stream, &state, err));
    struct mark_ask ask = {standing.stream, state.cycles_finished, &standing};
    TIDE_TRY(tide_transact(mail->engine, mark_run, &ask, err));
    if (!tide_text_to_u64(tide_text_of(state.cursor), &standing.tidemark_ms))
        standing.tidemark_ms = 0; /* no tidemark yet: everything is past it */
    if (standing.row.lost && standing.row.lost_ms < standing.tidemark_ms)
        standing.tidemark_ms =
            standing.row.lost_ms; /* the next sync moves it back (mail.h MAIL3) */
    *standing_out = standing;
    return TIDE_OK;
}

/* ---- history ---- */

uint64_t tide_archiver_key(tide_text id)
{
    return tide_hash_key(id);
}

static tide_text id_of(const json_t *entry)
{
    return tide_text_of(
        json_string_value(json_object_get(json_object_get(entry, "message"), "id")));
}

static void visit_list(const json_t *record, const char *key, tide_history_change change,
                       tide_history_visit *visit, void *arg)
{
    size_t index = 0;
    const json_t *entry = NULL;
    json_array_foreach(json_object_get(record, key), index, entry)
    {
        const tide_text id = id_of(entry);
        const json_t *labels = json_object_get(entry, "labelIds");
        const bool of_labels =
            change == TIDE_HISTORY_LABEL_ADDED || change == TIDE_HISTORY_LABEL_TAKEN;
        if (!of_labels || json_array_size(labels) == 0) {
            visit(arg, id, change, TIDE_TEXT_NONE);
            continue;
        }
        size_t at = 0;
        const json_t *label = NULL;
        json_array_foreach(labels, at, label)
            visit(arg, id, change, tide_text_of(json_string_value(label)));
    }
}

static void visit_page(const struct tide_gmail_history *page, tide_history_visit *visit, void *arg)
{
    size_t index = 0;
    const json_t *record = NULL;
    json_array_foreach(page->records, index, record)
    {
        visit_list(record, "messagesAdded", TIDE_HISTORY_ADDED, visit, arg);
        visit_list(record, "labelsAdded", TIDE_HISTORY_LABEL_ADDED, visit, arg);
        visit_list(record, "labelsRemoved", TIDE_HISTORY_LABEL_TAKEN, visit, arg);
        visit_list(record, "messagesDeleted", TIDE_HISTORY_DELETED, visit, arg);
    }
}

bool tide_archiver_wait(tide_job *job, tide_status rc, uint64_t *waited_ms)
{
    enum { STEP_MS = 100 };
    if (rc != TIDE_AGAIN || *waited_ms >= TIDE_REMOVE_PATIENCE_MS)
        return false;
    *waited_ms += STEP_MS;
    tide_job_beat(job, 0);
    return tide_job_sleep(job, STEP_MS) == TIDE_OK;
}

/* Keeps the token of the next page; false: there is none. */
static tide_status next_token(tide_buf *token, tide_text next, bool *more_out, tide_error *err)
{
    *more_out = next.bytes > 0;
    if (*more_out && tide_text_equal(next, tide_buf_text(token)))
        return tide_error_set(err, TIDE_SERVER, "the history repeats a page");
    tide_buf_clear(token);
    const tide_status rc = tide_buf_add(token, next.data, next.bytes);
    return rc == TIDE_OK ? rc : tide_error_set(err, rc, "a page token of %zu bytes", next.bytes);
}

static tide_status page_read(struct tide_mail_user *user, tide_job *job, const char *start,
                             const tide_buf *token, uint64_t *waited_ms,
                             struct tide_gmail_history *page, tide_error *err)
{
    tide_status rc = TIDE_OK;
    do
        rc = tide_gmail_history(user->gmail, job, tide_text_of(start), tide_buf_text(token), page,
                                err);
    while (tide_archiver_wait(job, rc, waited_ms));
    return rc;
}

tide_status tide_archiver_history(struct tide_mail_user *user, tide_job *job, const char *start,
                                  uint64_t *waited_ms, tide_mem *mem, tide_history_visit *visit,
                                  void *arg, tide_error *err)
{
    tide_status rc = TIDE_OK;
    bool more = true;
    if (start[0] == '\0')
        return tide_error_set(err, TIDE_PERMANENT,
                              "%s is not completely synced yet: run `tidemark mail sync` first",
                              user->email);
    tide_auto_buf token = tide_buf_in(mem, 16 << 10);
    for (size_t pages = 0; rc == TIDE_OK && more; pages++) {
        struct tide_gmail_history page = {.value = NULL};
        if (pages == TIDE_REMOVE_PAGES_MAX)
            rc = tide_error_set(err, TIDE_PERMANENT,
                                "too much has changed in Gmail: run `tidemark mail sync` first");
        else
            rc = page_read(user, job, start, &token, waited_ms, &page, err);
        if (rc == TIDE_OK)
            rc = tide_mail_history_ids(page.records, err);
        if (rc == TIDE_OK)
            visit_page(&page, visit, arg);
        if (rc == TIDE_OK)
            rc = next_token(&token, page.next, &more, err);
        tide_gmail_history_done(&page);
        /* A different status: the engine takes TIDE_GONE for an item that vanished. */
        if (rc == TIDE_GONE)
            rc = tide_error_set(err, TIDE_PERMANENT,
                                "Gmail no longer has the changes since the last sync of %s: run "
                                "`tidemark mail sync` first",
                                user->email);
    }
    return rc;
}

/* ---- verifying copies ---- */

static void unproven(struct tide_proof *proof, const char *what, const char *detail)
{
    (void)snprintf(proof->reason, sizeof proof->reason, "%s%s%.120s", what,
                   detail[0] == '\0' ? "" : ": ", detail);
}

const char *tide_archiver_inexact(tide_copy copy)
{
    switch (copy) {
    case TIDE_COPY_EXACT:
        return NULL;
    case TIDE_COPY_SHORT:
        return "its copy is shorter than Gmail says it is";
    case TIDE_COPY_DAMAGED:
        return TIDE_REFUSED_DAMAGED;
    case TIDE_COPY_HELD:
    case TIDE_COPIES:
        break;
    }
    return "its copy did not come from Gmail";
}

/* Only errors about the message itself; any other error ends the proof. */
static bool is_damage(tide_status rc)
{
    return rc == TIDE_CORRUPT || rc == TIDE_IO || rc == TIDE_INVALID || rc == TIDE_NEWER ||
           rc == TIDE_FULL;
}

/* Reads and hashes with its own connection and memory. */
struct reader {
    tide_archive *archive;
    tide_packer *packer;
    tide_buf raw;
};

static tide_status compare(struct reader *reader, const struct tide_stored *stored,
                           struct tide_proof *proof, tide_error *err)
{
    uint8_t hash[TIDE_CONTENT_HASH_BYTES];
    TIDE_TRY(tide_content_hash(reader->packer, tide_buf_text(&reader->raw), hash, err));
    if (reader->raw.bytes != stored->bytes)
        unproven(proof, TIDE_REFUSED_DAMAGED, "its length differs from its row");
    else if (memcmp(hash, stored->hash, sizeof hash) != 0 ||
             memcmp(hash, proof->hash, sizeof hash) != 0)
        unproven(proof, TIDE_REFUSED_DAMAGED, "its bytes have changed since it was chosen");
    else
        proof->proven = true;
    return TIDE_OK;
}

static tide_status prove_one(struct reader *reader, struct tide_proof *proof, tide_error *err)
{
    struct tide_stored stored;
    tide_error why = {.status = TIDE_OK};
    proof->proven = false;
    tide_status rc =
        tide_archive_find(reader->archive, tide_text_of(proof->gmail_id), &stored, &why);
    if (rc == TIDE_NOT_FOUND) {
        unproven(proof, TIDE_REFUSED_MISSING, "");
        return TIDE_OK;
    }
    const char *inexact = rc == TIDE_OK ? tide_archiver_inexact(stored.copy) : NULL;
    if (inexact != NULL) {
        unproven(proof, inexact, "");
        return TIDE_OK;
    }
    tide_buf_clear(&reader->raw);
    if (rc == TIDE_OK)
        rc = tide_archive_raw(reader->archive, &stored, &reader->raw, &why); /* checks ARC2 */
    if (rc == TIDE_OK)
        rc = compare(reader, &stored, proof, &why);
    if (is_damage(rc)) {
        unproven(proof, TIDE_REFUSED_DAMAGED, why.text);
        return TIDE_OK;
    }
    if (rc != TIDE_OK && err != NULL)
        *err = why;
    return rc;
}

/* The shards of these messages, each once: syncs their files and drops them from the system's page
 * cache. */
static tide_status cool(tide_archive *archive, const struct tide_proof *proofs, size_t count,
                        tide_error *err)
{
    uint32_t done[TIDE_REMOVE_IDS];
    size_t done_count = 0;
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < count; i++) {
        struct tide_stored stored;
        tide_error why = {.status = TIDE_OK};
        rc = tide_archive_find(archive, tide_text_of(proofs[i].gmail_id), &stored, &why);
        if (rc == TIDE_NOT_FOUND || is_damage(rc)) {
            rc = TIDE_OK; /* reported when it is read */
            continue;
        }
        bool known = false;
        for (size_t k = 0; k < done_count; k++)
            known = known || done[k] == stored.shard;
        if (rc == TIDE_OK && !known) {
            rc = tide_archive_forget(archive, stored.shard, &why);
            done[done_count++] = stored.shard;
        }
        if (rc != TIDE_OK && err != NULL)
            *err = why;
    }
    return rc;
}

tide_status tide_archiver_prove(tide_mail *mail, struct tide_mail_user *user, tide_job *job,
                                struct tide_proof *proofs, size_t count, tide_error *err)
{
    TIDE_ASSERT(count <= TIDE_REMOVE_IDS);
    char dir[sizeof mail->archive_dir + 260];
    struct reader reader = {.archive = NULL};
    const tide_cancel *cancel = job == NULL ? NULL : tide_job_cancellation(job);
    (void)snprintf(dir, sizeof dir, "%s/%s", mail->archive_dir, user->email);
    const struct tide_archive_options options = {
        .dir = dir, .account = user->email, .world = mail->world, .read_only = true};
    tide_buf_init(&reader.raw, mail->mem, TIDE_MESSAGE_BYTES_MAX);
    tide_status rc = tide_archive_checkpoint(user->archive, cancel, err);
    if (rc == TIDE_OK)
        rc = cool(user->archive, proofs, count, err);
    if (rc == TIDE_OK)
        rc = tide_packer_new(mail->mem, 1, &reader.packer, err);
    if (rc == TIDE_OK)
        rc = tide_archive_open(&options, mail->mem, &reader.archive, err);
    for (size_t i = 0; rc == TIDE_OK && i < count; i++) {
        if (job != NULL)
            tide_job_beat(job, 0);
        if (job != NULL && tide_job_canceled(job))
            rc = tide_error_set(err, TIDE_CANCELED, "canceled");
        else
            rc = prove_one(&reader, &proofs[i], err);
    }
    tide_buf_done(&reader.raw);
    tide_packer_free(reader.packer);
    const tide_status closed = tide_archive_close(reader.archive, NULL);
    return rc == TIDE_OK ? closed : rc;
}

/* ---- labels ---- */

tide_status tide_archiver_labels(tide_archive *archive, const struct tide_stored *stored,
                                 tide_mem *mem, char labels_out[2048], tide_error *err)
{
    tide_auto_buf lines = tide_buf_in(mem, 2048 - 1);
    TIDE_TRY(tide_archive_labels_of(archive, stored, &lines, err));
    size_t bytes = lines.bytes > 0 ? lines.bytes - 1 : 0; /* without the last line's end */
    for (size_t i = 0; i < bytes; i++)
        labels_out[i] = lines.data[i] == '\n' ? ' ' : lines.data[i];
    labels_out[bytes] = '\0';
    return TIDE_OK;
}

bool tide_archiver_has_label(const char *labels, const char *label)
{
    const size_t bytes = strlen(label);
    for (const char *at = labels; *at != '\0';) {
        const size_t word = strcspn(at, " ");
        if (word == bytes && memcmp(at, label, bytes) == 0)
            return true;
        at += word + (at[word] == ' ');
    }
    return false;
}
