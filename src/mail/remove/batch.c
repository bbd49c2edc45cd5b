/* batch.c - mail.remove: one batch of a run, from the tidemark to the call.
 *
 * The order of the steps is essential; remove.h gives it.  Whenever the job is run again (no units,
 * a refusal, a crash), it starts at step 1, with the entries as the manifest has them then. */
#include "mail/remove/inside.h"

#include "base/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What this batch does with an entry. */
typedef enum fate {
    FATE_REMOVE, /* remove it with the call */
    FATE_REFUSE, /* an asked entry only after the server has answered (RMV6) */
    FATE_THERE,  /* asked before, and already where it was to go (RMV4) */
} fate;

struct entry {
    struct tide_removal removal;
    fate fate;
    char reason[sizeof((struct tide_removal *)0)->reason];
    /* From the history. */
    bool changed, deleted;
    bool in_gmail;       /* according to the archive */
    bool unsure;         /* stored before a gap: only the server knows its labels */
    bool answered;       /* the server's answer was read (RMV6) */
    int8_t inbox, trash; /* last seen: 1 added, -1 removed, 0 neither */
};

struct batch {
    tide_mail *mail;
    tide_job *job;
    struct tide_mail_user *user;
    struct tide_manifest manifest;
    struct tide_archiver_standing standing;
    struct entry *entries; /* TIDE_REMOVE_IDS */
    size_t count;
    uint64_t bytes;
    tide_map index;   /* key of an id to its entry */
    uint64_t seen_ms; /* when the history was requested, on both clocks */
    uint64_t seen_unix_ms;
    uint64_t waited_ms; /* total wait for units */
    uint64_t wanted;    /* ids at most, as requested; 0: no limit but ours */
    uint64_t until_ms;  /* it must begin before this time (RMV7); 0: at any time */
};

static bool was_asked(const struct entry *entry)
{
    return entry->removal.state == TIDE_REMOVAL_ASKED;
}

static void refuse(struct entry *entry, const char *why)
{
    if (entry->fate != FATE_REMOVE)
        return;
    entry->fate = FATE_REFUSE;
    (void)snprintf(entry->reason, sizeof entry->reason, "%s", why);
}

/* ---- the entries ---- */

/* Where the server may have to be asked for every message, after a gap or because a call was sent
 * before (RMV6), a batch is small, so that it finishes before the units of a minute are spent. */
static size_t ids_max(const struct batch *batch)
{
    const bool unsure =
        batch->standing.gap_ms > 0 || (batch->count > 0 && was_asked(&batch->entries[0]));
    const size_t most = unsure ? TIDE_REMOVE_UNSURE_IDS : TIDE_REMOVE_IDS;
    return batch->wanted == 0 || batch->wanted > most ? most : (size_t)batch->wanted;
}

static bool take_entry(const struct tide_removal *removal, void *arg)
{
    struct batch *batch = arg;
    /* A large message is a batch by itself. */
    if (batch->count > 0 && batch->bytes + removal->bytes > TIDE_REMOVE_BYTES)
        return false;
    batch->entries[batch->count++] = (struct entry){.removal = *removal};
    batch->bytes += removal->bytes;
    return batch->count < ids_max(batch);
}

/* Asked entries come first: their state must be known before more calls are sent. */
static tide_status load_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct batch *batch = arg;
    const tide_rows db = tide_transaction_rows(transaction);
    static const tide_removal_state states[] = {TIDE_REMOVAL_ASKED, TIDE_REMOVAL_PLANNED};
    tide_status rc = tide_manifest_get(db, batch->manifest.id, &batch->manifest, err);
    if (rc == TIDE_OK && (batch->manifest.account != tide_job_account(batch->job) ||
                          batch->manifest.mode > TIDE_REMOVE_FOR_GOOD))
        rc = tide_error_set(err, TIDE_INVALID, "manifest %" PRIu64 " is not a run of this archiver",
                            batch->manifest.id);
    if (rc == TIDE_OK && batch->manifest.planned_ms == 0) /* its first batch (MAN5) */
        rc = tide_manifest_planned(db, batch->manifest.id,
                                   tide_world_now_unix_ms(batch->mail->world), err);
    batch->count = 0;
    batch->bytes = 0;
    for (size_t i = 0; rc == TIDE_OK && i < sizeof states / sizeof states[0]; i++)
        if (batch->count < ids_max(batch))
            rc = tide_removal_list(db, batch->manifest.id, (int)states[i], 0, TIDE_REMOVE_IDS,
                                   take_entry, batch, err);
    return rc;
}

/* ---- 1: the tidemark ---- */

static tide_status below_tidemark(struct batch *batch, tide_error *err)
{
    TIDE_TRY(
        tide_archiver_standing(batch->mail, tide_job_account(batch->job), &batch->standing, err));
    for (size_t i = 0; i < batch->count; i++) {
        const int64_t at_ms = batch->entries[i].removal.internal_ms;
        if (at_ms < 0 || (uint64_t)at_ms >= batch->standing.tidemark_ms)
            refuse(&batch->entries[i], TIDE_REFUSED_PAST);
    }
    return TIDE_OK;
}

/* ---- 2: the history ---- */

static struct entry *entry_of(struct batch *batch, tide_text id)
{
    uint32_t at = 0;
    if (!tide_map_get(&batch->index, tide_archiver_key(id), &at))
        return NULL;
    if (tide_text_equal(tide_text_of(batch->entries[at].removal.gmail_id), id))
        return &batch->entries[at];
    for (size_t i = 0; i < batch->count; i++) /* two ids with one key */
        if (tide_text_equal(tide_text_of(batch->entries[i].removal.gmail_id), id))
            return &batch->entries[i];
    return NULL;
}

static void see_change(void *arg, tide_text id, tide_history_change change, tide_text label)
{
    struct entry *entry = entry_of(arg, id);
    if (entry == NULL)
        return;
    entry->changed = true;
    if (change == TIDE_HISTORY_DELETED) {
        entry->deleted = true;
    } else if (change == TIDE_HISTORY_LABEL_ADDED || change == TIDE_HISTORY_LABEL_TAKEN) {
        const int8_t way = change == TIDE_HISTORY_LABEL_ADDED ? 1 : -1;
        if (tide_text_equal(label, TIDE_TEXT("INBOX")))
            entry->inbox = way;
        else if (tide_text_equal(label, TIDE_TEXT("TRASH")))
            entry->trash = way;
    }
}

/* RMV4.  A message that was to go to the trash and is deleted went further the same way; one that was
 *      to leave the inbox and is deleted did not. */
static bool is_there(tide_removal_mode mode, bool gone, bool in_inbox, bool in_trash)
{
    switch (mode) {
    case TIDE_REMOVE_FROM_INBOX:
        return !gone && !in_inbox;
    case TIDE_REMOVE_TO_TRASH:
        return gone || in_trash;
    default:
        return gone;
    }
}

/* According to the changes since the adopted id. */
static bool history_says_there(const struct entry *entry, tide_removal_mode mode)
{
    return is_there(mode, entry->deleted, entry->inbox >= 0, entry->trash > 0);
}

static tide_status unchanged(struct batch *batch, tide_error *err)
{
    tide_world *world = batch->mail->world;
    for (size_t i = 0; i < batch->count; i++)
        if (!tide_map_put(&batch->index,
                          tide_archiver_key(tide_text_of(batch->entries[i].removal.gmail_id)),
                          (uint32_t)i))
            return tide_error_set(err, TIDE_NO_MEMORY, "no memory for a batch");
    batch->seen_ms = tide_world_now_ms(world);
    batch->seen_unix_ms = tide_world_now_unix_ms(world);
    TIDE_TRY(tide_archiver_history(batch->user, batch->job, batch->standing.history_id,
                                   &batch->waited_ms, batch->mail->mem, see_change, batch, err));
    for (size_t i = 0; i < batch->count; i++) {
        struct entry *entry = &batch->entries[i];
        if (!entry->changed)
            continue;
        if (was_asked(entry) && history_says_there(entry, batch->manifest.mode)) {
            TIDE_SEEN("archiver: a batch recognised its own work in the history");
            entry->fate = FATE_THERE; /* even if it is past the tidemark by now */
        } else {
            refuse(entry, entry->deleted ? TIDE_REFUSED_GONE : TIDE_REFUSED_CHANGED);
        }
    }
    return TIDE_OK;
}

/* ---- 3: the registry of bad items, and the archive ---- */

static tide_status not_bad(struct batch *batch, tide_error *err)
{
    tide_text ids[TIDE_REMOVE_IDS];
    bool bad[TIDE_REMOVE_IDS];
    for (size_t i = 0; i < batch->count; i++)
        ids[i] = tide_text_of(batch->entries[i].removal.gmail_id);
    TIDE_TRY(tide_items_bad(batch->mail->engine, tide_job_account(batch->job), ids, batch->count,
                            bad, err));
    for (size_t i = 0; i < batch->count; i++) {
        if (bad[i])
            refuse(&batch->entries[i], TIDE_REFUSED_BAD);
    }
    return TIDE_OK;
}

/* RMV4, according to a later sync: the adopted id has passed our own change. */
static bool archive_says_there(const struct tide_stored *stored, const char *labels,
                               tide_removal_mode mode)
{
    return is_there(mode, stored->gone, tide_archiver_has_label(labels, "INBOX"),
                    tide_archiver_has_label(labels, "TRASH"));
}

static tide_status look_at_copy(struct batch *batch, struct entry *entry, tide_error *err)
{
    char labels[sizeof entry->removal.labels];
    struct tide_stored stored;
    tide_archive *archive = batch->user->archive;
    tide_status rc =
        tide_archive_find(archive, tide_text_of(entry->removal.gmail_id), &stored, err);
    if (rc == TIDE_NOT_FOUND) {
        refuse(entry, TIDE_REFUSED_MISSING);
        return TIDE_OK;
    }
    entry->in_gmail = rc == TIDE_OK && !stored.gone;
    if (rc == TIDE_OK)
        rc = tide_archiver_labels(archive, &stored, batch->mail->mem, labels, err);
    if (rc == TIDE_FULL) {
        refuse(entry, TIDE_REFUSED_SINCE); /* it had fewer labels when it was chosen */
        return TIDE_OK;
    }
    if (rc == TIDE_CORRUPT || rc == TIDE_IO) {
        refuse(entry, TIDE_REFUSED_DAMAGED);
        return TIDE_OK;
    }
    int64_t stored_ms = 0;
    if (rc == TIDE_OK && batch->standing.gap_ms > 0)
        rc = tide_archive_stored_ms(archive, &stored, &stored_ms, err);
    if (rc != TIDE_OK)
        return rc;
    entry->unsure = batch->standing.gap_ms > 0 && stored_ms < (int64_t)batch->standing.gap_ms;
    if (was_asked(entry) && !entry->changed &&
        archive_says_there(&stored, labels, batch->manifest.mode)) {
        TIDE_SEEN("archiver: a batch recognised its own work in the archive");
        entry->fate = FATE_THERE;
    } else if (stored.gone) {
        refuse(entry, TIDE_REFUSED_GONE);
    } else if (stored.copy != TIDE_COPY_EXACT) {
        refuse(entry, tide_archiver_inexact(stored.copy));
    } else if (strcmp(labels, entry->removal.labels) != 0) {
        refuse(entry, TIDE_REFUSED_SINCE);
    }
    return TIDE_OK;
}

static tide_status as_chosen(struct batch *batch, tide_error *err)
{
    for (size_t i = 0; i < batch->count; i++) {
        if (batch->entries[i].fate != FATE_THERE)
            TIDE_TRY(look_at_copy(batch, &batch->entries[i], err));
    }
    return TIDE_OK;
}

/* ---- asking the server ---- */

static int order_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* In the format of tide_archiver_labels(); false: they do not fit. */
static bool labels_text(const json_t *labels, char out[2048])
{
    const char *ids[500];
    size_t count = 0;
    size_t used = 0;
    size_t index = 0;
    const json_t *label = NULL;
    if (json_array_size(labels) > sizeof ids / sizeof ids[0])
        return false;
    json_array_foreach(labels, index, label) ids[count++] = json_string_value(label);
    qsort(ids, count, sizeof ids[0], order_texts);
    out[0] = '\0';
    for (size_t i = 0; i < count && used < 2048; i++)
        used += (size_t)snprintf(out + used, 2048 - used, "%s%s", i == 0 ? "" : " ", ids[i]);
    return used < 2048;
}

/* The server's answer. */
struct answer {
    bool gone, in_inbox, in_trash;
    bool as_chosen; /* its labels are as they were when it was chosen */
};

static void read_labels(const json_t *labels, const struct entry *entry, struct answer *answer)
{
    char text[sizeof entry->removal.labels] = "";
    size_t index = 0;
    const json_t *label = NULL;
    json_array_foreach(labels, index, label)
    {
        const tide_text id = tide_text_of(json_string_value(label));
        answer->in_inbox = answer->in_inbox || tide_text_equal(id, TIDE_TEXT("INBOX"));
        answer->in_trash = answer->in_trash || tide_text_equal(id, TIDE_TEXT("TRASH"));
    }
    answer->as_chosen = labels_text(labels, text) && strcmp(text, entry->removal.labels) == 0;
}

/* A 404 is no proof if neither the archive nor the history knows of a deletion.  That matters for a
 * message that an earlier call may have removed from the inbox: if it counted as gone, it would be
 * refused (RMV6). */
static bool is_denied(const struct batch *batch, const struct entry *entry)
{
    return was_asked(entry) && batch->manifest.mode == TIDE_REMOVE_FROM_INBOX && entry->in_gmail &&
           !entry->deleted;
}

/* Reads the labels, not the message.  Sets FATE_THERE (RMV4). */
static tide_status ask_server(struct batch *batch, struct entry *entry, struct answer *answer_out,
                              tide_error *err)
{
    struct answer answer = {.gone = false};
    struct tide_gmail_message message;
    tide_gmail_message_init(&message, batch->mail->mem);
    tide_status rc = TIDE_OK;
    do
        rc = tide_gmail_get_minimal(batch->user->gmail, batch->job,
                                    tide_text_of(entry->removal.gmail_id), &message, err);
    while (tide_archiver_wait(batch->job, rc, &batch->waited_ms));
    if (rc == TIDE_OK)
        read_labels(message.labels, entry, &answer);
    tide_gmail_message_done(&message);
    if (rc == TIDE_GONE && is_denied(batch, entry))
        return tide_error_set(err, TIDE_SERVER,
                              "Gmail has no message %s, but reports no deletion: run `tidemark "
                              "mail sync`, then resume the run",
                              entry->removal.gmail_id);
    if (rc != TIDE_OK && rc != TIDE_GONE)
        return rc;
    answer.gone = rc == TIDE_GONE;
    entry->answered = true;
    if (was_asked(entry) &&
        is_there(batch->manifest.mode, answer.gone, answer.in_inbox, answer.in_trash))
        entry->fate = FATE_THERE;
    *answer_out = answer;
    return TIDE_OK;
}

/* After a gap the history cannot tell the labels. */
static tide_status ask_labels(struct batch *batch, struct entry *entry, tide_error *err)
{
    struct answer answer;
    TIDE_TRY(ask_server(batch, entry, &answer, err));
    if (entry->fate == FATE_THERE) {
        TIDE_SEEN("archiver: a batch recognised its own work behind a gap");
    } else if (answer.gone) {
        refuse(entry, TIDE_REFUSED_GONE);
    } else if (!answer.as_chosen) {
        TIDE_SEEN("archiver: a message had other labels behind a gap");
        refuse(entry, TIDE_REFUSED_UNSEEN);
    }
    return TIDE_OK;
}

static tide_status sure(struct batch *batch, tide_error *err)
{
    for (size_t i = 0; i < batch->count; i++) {
        if (batch->entries[i].unsure && batch->entries[i].fate == FATE_REMOVE)
            TIDE_TRY(ask_labels(batch, &batch->entries[i], err));
    }
    return TIDE_OK;
}

/* RMV6: whatever forbids removing an asked message, it may already be removed, and history and
 * archive may not show that: after a gap, or because a user changed it again. */
static tide_status settled(struct batch *batch, tide_error *err)
{
    for (size_t i = 0; i < batch->count; i++) {
        struct entry *entry = &batch->entries[i];
        struct answer answer;
        if (!was_asked(entry) || entry->fate != FATE_REFUSE || entry->answered)
            continue;
        TIDE_TRY(ask_server(batch, entry, &answer, err));
        if (entry->fate == FATE_THERE)
            TIDE_SEEN("archiver: a batch recognised its own work instead of refusing it");
    }
    return TIDE_OK;
}

/* ---- 4: verifying the copies ---- */

static tide_status proven(struct batch *batch, tide_error *err)
{
    tide_mem *mem = batch->mail->mem;
    struct tide_proof *proofs = tide_mem_array(mem, TIDE_REMOVE_IDS, sizeof *proofs);
    size_t of[TIDE_REMOVE_IDS];
    size_t count = 0;
    if (proofs == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory to read %zu messages", batch->count);
    for (size_t i = 0; i < batch->count; i++) {
        const struct tide_removal *removal = &batch->entries[i].removal;
        if (batch->entries[i].fate != FATE_REMOVE)
            continue;
        memcpy(proofs[count].gmail_id, removal->gmail_id, sizeof proofs[count].gmail_id);
        memcpy(proofs[count].hash, removal->hash, sizeof proofs[count].hash);
        of[count++] = i;
    }
    tide_status rc = TIDE_OK;
    if (count > 0)
        rc = tide_archiver_prove(batch->mail, batch->user, batch->job, proofs, count, err);
    for (size_t i = 0; rc == TIDE_OK && i < count; i++)
        if (!proofs[i].proven)
            refuse(&batch->entries[of[i]], proofs[i].reason);
    tide_mem_free(mem, proofs, TIDE_REMOVE_IDS * sizeof *proofs);
    return rc;
}

/* ---- 5: marking as asked ---- */

static tide_status move_entry(tide_rows db, const struct entry *entry, uint64_t now_ms,
                              tide_error *err)
{
    const uint64_t id = entry->removal.id;
    const bool planned = entry->removal.state == TIDE_REMOVAL_PLANNED;
    switch (entry->fate) {
    case FATE_REFUSE:
        TIDE_ASSERT(planned || entry->answered); /* RMV6 */
        return tide_removal_move(db, id, TIDE_REMOVAL_REFUSED, entry->reason, now_ms, err);
    case FATE_THERE:
        return tide_removal_move(db, id, TIDE_REMOVAL_REMOVED, "", now_ms, err);
    case FATE_REMOVE:
        break;
    }
    return planned ? tide_removal_move(db, id, TIDE_REMOVAL_ASKED, "", now_ms, err) : TIDE_OK;
}

/* In one transaction, if the account still has the stream whose tidemark was read (an archive that
 * lost something starts another one). */
static tide_status ask_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct batch *batch = arg;
    const tide_rows db = tide_transaction_rows(transaction);
    const uint64_t now_ms = tide_world_now_unix_ms(batch->mail->world);
    struct tide_mail_row row;
    TIDE_TRY(tide_mail_row_get(db, batch->manifest.account, &row, err));
    if (row.epoch != batch->standing.row.epoch)
        return tide_error_set(err, TIDE_AGAIN, "the tidemark of %s was reset", row.email);
    for (size_t i = 0; i < batch->count; i++)
        TIDE_TRY(move_entry(db, &batch->entries[i], now_ms, err));
    return TIDE_OK;
}

/* After a suspended machine or a slow disk the history that was read is too old. */
static bool is_stale(const struct batch *batch)
{
    tide_world *world = batch->mail->world;
    const uint64_t now_unix_ms = tide_world_now_unix_ms(world);
    return tide_world_now_ms(world) - batch->seen_ms > TIDE_REMOVE_STALE_MS ||
           now_unix_ms < batch->seen_unix_ms ||
           now_unix_ms - batch->seen_unix_ms > TIDE_REMOVE_STALE_MS;
}

/* ---- 6 and 7: the call, and the result ---- */

struct removed {
    tide_mail *mail;
    uint64_t ids[TIDE_REMOVE_IDS];
    size_t count;
};

static tide_status removed_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct removed *removed = arg;
    const tide_rows db = tide_transaction_rows(transaction);
    const uint64_t now_ms = tide_world_now_unix_ms(removed->mail->world);
    for (size_t i = 0; i < removed->count; i++)
        TIDE_TRY(tide_removal_move(db, removed->ids[i], TIDE_REMOVAL_REMOVED, "", now_ms, err));
    return TIDE_OK;
}

static tide_status call(struct batch *batch, const tide_text *ids, size_t count, tide_error *err)
{
    static const char *const inbox[] = {"INBOX", NULL};
    static const char *const trash[] = {"TRASH", NULL};
    tide_gmail *gmail = batch->user->gmail;
    switch (batch->manifest.mode) {
    case TIDE_REMOVE_FROM_INBOX:
        return tide_gmail_modify(gmail, batch->job, ids, count, NULL, inbox, err);
    case TIDE_REMOVE_TO_TRASH:
        return tide_gmail_modify(gmail, batch->job, ids, count, trash, NULL, err);
    default:
        return tide_gmail_delete(gmail, batch->job, ids, count, err);
    }
}

static tide_status remove_them(struct batch *batch, tide_error *err)
{
    tide_text ids[TIDE_REMOVE_IDS];
    struct removed *removed = tide_job_memory(batch->job, sizeof *removed);
    if (removed == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for a batch");
    removed->mail = batch->mail;
    for (size_t i = 0; i < batch->count; i++) {
        if (batch->entries[i].fate != FATE_REMOVE)
            continue;
        ids[removed->count] = tide_text_of(batch->entries[i].removal.gmail_id);
        removed->ids[removed->count++] = batch->entries[i].removal.id;
    }
    tide_status rc = tide_transact(batch->mail->engine, ask_run, batch, err);
    if (rc != TIDE_OK)
        return rc == TIDE_AGAIN ? tide_job_again(batch->job, tide_job_now_ms(batch->job)) : rc;
    /* Also durable, and refused when the claim is lost: a handler that lost its claim must not
     * remove anything (E1.8). */
    rc = tide_job_save(batch->job, TIDE_TEXT("asked"), err);
    if (rc != TIDE_OK || removed->count == 0)
        return rc;
    do {
        if (is_stale(batch)) {
            TIDE_SEEN("archiver: a batch was too slow and begins again");
            return tide_job_again(batch->job, tide_job_now_ms(batch->job));
        }
        rc = call(batch, ids, removed->count, err);
    } while (tide_archiver_wait(batch->job, rc, &batch->waited_ms));
    if (rc != TIDE_OK)
        return rc;
    return tide_job_effect(batch->job, removed_run, removed, err);
}

/* ---- the job ---- */

static tide_status end_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct removed *ended = arg;
    return tide_manifest_end(tide_transaction_rows(transaction), ended->ids[0],
                             tide_world_now_unix_ms(ended->mail->world), err);
}

/* Nothing is left: this job ends the run. */
static tide_status end(struct batch *batch, tide_error *err)
{
    struct removed *ended = tide_job_memory(batch->job, sizeof *ended);
    if (ended == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory to end a run");
    ended->mail = batch->mail;
    ended->ids[0] = batch->manifest.id;
    return batch->manifest.ended_ms != 0 ? TIDE_OK
                                         : tide_job_effect(batch->job, end_run, ended, err);
}

/* Steps 1 to 3: none of them takes long. */
static tide_status still_so(struct batch *batch, tide_error *err)
{
    TIDE_TRY(below_tidemark(batch, err));
    TIDE_TRY(unchanged(batch, err));
    TIDE_TRY(not_bad(batch, err));
    return as_chosen(batch, err);
}

static tide_status steps(struct batch *batch, tide_error *err)
{
    TIDE_TRY(
        tide_archiver_standing(batch->mail, tide_job_account(batch->job), &batch->standing, err));
    TIDE_TRY(tide_transact(batch->mail->engine, load_run, batch, err));
    if (batch->count == 0)
        return end(batch, err);
    TIDE_TRY(still_so(batch, err));
    TIDE_TRY(sure(batch, err));
    TIDE_TRY(proven(batch, err));
    /* A slow disk: the verified copies are still valid, the rest is checked again. */
    if (is_stale(batch))
        TIDE_TRY(still_so(batch, err));
    TIDE_TRY(settled(batch, err));
    return remove_them(batch, err);
}

/* RMV7: a command that is alive asks again.  A clock that was set back would let it begin later. */
static bool is_late(const struct batch *batch)
{
    const uint64_t now_ms = tide_world_now_unix_ms(batch->mail->world);
    return batch->until_ms != 0 &&
           (now_ms >= batch->until_ms || batch->until_ms - now_ms > TIDE_REMOVE_ASKED_MS);
}

static tide_status remove_run(tide_job *job, tide_mail *mail, tide_error *err)
{
    struct batch batch = {.mail = mail, .job = job};
    json_auto_t *payload = NULL;
    tide_status rc = tide_json_parse(tide_job_payload(job), &payload, err);
    if (rc == TIDE_OK)
        rc = tide_json_get_u64(payload, "manifest", &batch.manifest.id, err);
    batch.wanted = (uint64_t)json_integer_value(json_object_get(payload, "ids"));
    batch.until_ms = (uint64_t)json_integer_value(json_object_get(payload, "until"));
    const bool here = tide_engine_asked_here(mail->engine, payload); /* RMV7 */
    if (rc != TIDE_OK)
        return rc;
    if (!here)
        return tide_error_set(err, TIDE_PERMANENT,
                              "this batch of manifest %" PRIu64 " was asked of a process that "
                              "has ended; resume the run with "
                              "`tidemark mail archive --resume %" PRIu64 "`",
                              batch.manifest.id, batch.manifest.id);
    if (is_late(&batch))
        return TIDE_OK; /* what is left is in the manifest */
    tide_map_init(&batch.index, mail->mem);
    batch.entries = tide_mem_array(mail->mem, TIDE_REMOVE_IDS, sizeof *batch.entries);
    if (batch.entries == NULL)
        rc = tide_error_set(err, TIDE_NO_MEMORY, "no memory for a batch");
    if (rc == TIDE_OK)
        rc = tide_mail_user(mail, tide_job_account(job), &batch.user, err);
    if (rc == TIDE_OK)
        rc = steps(&batch, err);
    tide_mem_free(mail->mem, batch.entries, TIDE_REMOVE_IDS * sizeof *batch.entries);
    tide_map_done(&batch.index);
    return rc;
}

tide_status tide_mail_remove(tide_job *job, void *context, tide_error *err)
{
    return tide_mail_ended(context, job, remove_run(job, context, err), err);
}
