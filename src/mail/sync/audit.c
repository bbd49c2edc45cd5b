/* audit.c - checks that the archive still holds what the ledger recorded (M4, MAIL3).
 *
 * A shard is proven by its id, generation and count.  A shard that is missing, replaced or an older
 * copy is recorded in the account's row together with the start of its year: the next plan moves
 * the tidemark back to there.  The record is durable before anything may be stored in the archive,
 * since new mail would hide the loss.  A shard that the ledger does not know, such as one of a run
 * that was killed before any of its jobs ended, is recorded at the same time: from then on its loss
 * is noticed. */
#include "base/check.h"
#include "base/clocktext.h"
#include "mail/sync/lost.h"
#include "mail/inside.h"
#include "mail/status.h"
#include "mail/manifest.h"
#include "mail/archive/shard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct shards {
    tide_mem *mem;
    struct tide_shard_state *list;
    size_t count, capacity;
    bool full; /* out of memory */
};

static void shards_add(const struct tide_shard_state *shard, void *arg)
{
    struct shards *shards = arg;
    if (shards->full || !TIDE_GROW_IN(shards->mem, shards->list, shards->capacity,
                                      shards->count + 1, TIDE_ARCHIVE_SHARDS_MAX)) {
        shards->full = true;
        return;
    }
    shards->list[shards->count++] = *shard;
}

static void shards_done(struct shards *shards)
{
    tide_mem_free(shards->mem, shards->list, shards->capacity * sizeof *shards->list);
}

/* The current states of the shards. */
static tide_status shards_now(tide_archive *archive, struct shards *now, tide_error *err)
{
    TIDE_TRY(tide_archive_states(archive, shards_add, now, err));
    return now->full ? tide_error_set(err, TIDE_NO_MEMORY, "no memory for more than %zu shards",
                                      now->count)
                     : TIDE_OK;
}

/* ---- comparing ---- */

struct proof {
    uint32_t account;
    struct shards remembered, now;
    uint64_t last_run_ms; /* when the last run of the account was planned */
    uint64_t now_ms;
    /* Results. */
    size_t unproven, unknown;
    uint64_t lost_ms;
    char first[160]; /* a text about the first of them */
    char notice[TIDE_MAIL_NOTICE_BYTES];
};

static tide_status read_remembered(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct proof *proof = arg;
    struct tide_mail_row row;
    const tide_rows db = tide_transaction_rows(transaction);
    proof->remembered.count = 0;
    TIDE_TRY(tide_mail_row_get(db, proof->account, &row, err));
    proof->last_run_ms = row.last_run_ms;
    return tide_mail_shards(db, proof->account, shards_add, &proof->remembered, err);
}

static const struct tide_shard_state *shard_of(const struct shards *shards, const char *name)
{
    for (size_t i = 0; i < shards->count; i++)
        if (strcmp(shards->list[i].name, name) == 0)
            return &shards->list[i];
    return NULL;
}

static bool is_older(const struct tide_shard_state *now, const struct tide_shard_state *seen)
{
    return strcmp(now->id, seen->id) == 0 &&
           (now->generation < seen->generation || now->messages < seen->messages);
}

/* A file with mail that is not in the ledger. */
static bool is_unknown(const struct proof *proof, const struct tide_shard_state *now)
{
    return now->messages > 0 && shard_of(&proof->remembered, now->name) == NULL;
}

/* An unknown file that is older than the account's last run: a user put it there, and its labels
 * may be of any time.  (A file made by a run that crashed is newer.) */
static bool is_foreign(const struct proof *proof, const struct tide_shard_state *now)
{
    return is_unknown(proof, now) && now->made_ms < proof->last_run_ms;
}

/* Returns "" for a proven shard. */
static const char *doubt(const struct tide_shard_state *now, const struct tide_shard_state *seen)
{
    if (now == NULL)
        return "is missing";
    if (strcmp(now->id, seen->id) != 0)
        return "was replaced by another file";
    return is_older(now, seen) ? "is an older copy" : "";
}

struct named {
    const char *name;
    tide_status broken;
};

static void is_named(const char *shard, tide_status rc, const char *why, void *arg)
{
    struct named *named = arg;
    (void)why;
    if (strcmp(shard, named->name) == 0)
        named->broken = rc;
}

/* Why the shard cannot be opened; TIDE_OK: it is missing. */
static tide_status broken_by(tide_archive *archive, const char *name)
{
    struct named named = {.name = name, .broken = TIDE_OK};
    if (archive != NULL)
        (void)tide_archive_broken(archive, is_named, &named, NULL);
    return named.broken;
}

tide_status tide_mail_shards_doubted(tide_rows db, tide_archive *archive, uint32_t account,
                                     tide_mem *mem, tide_shard_doubt *visit, void *arg,
                                     tide_error *err)
{
    struct shards remembered = {.mem = mem};
    struct shards now = {.mem = mem};
    /* Read the ledger first: a process that stores meanwhile only adds to the archive. */
    tide_status rc = tide_mail_shards(db, account, shards_add, &remembered, err);
    if (rc == TIDE_OK && remembered.full)
        rc = tide_error_set(err, TIDE_NO_MEMORY, "no memory for the shards of an account");
    if (rc == TIDE_OK && archive != NULL)
        rc = shards_now(archive, &now, err);
    for (size_t i = 0; rc == TIDE_OK && i < remembered.count; i++) {
        const struct tide_shard_state *there = shard_of(&now, remembered.list[i].name);
        const char *why = doubt(there, &remembered.list[i]);
        const tide_status broken =
            there == NULL ? broken_by(archive, remembered.list[i].name) : TIDE_OK;
        if (broken != TIDE_OK)
            why = "cannot be read";
        if (why[0] != '\0')
            visit(&remembered.list[i], why, broken, arg);
    }
    shards_done(&remembered);
    shards_done(&now);
    return rc;
}

/* The first millisecond of the shard's year: it holds no older mail. */
static uint64_t start_of(const struct tide_shard_state *shard)
{
    const int64_t start_ms = tide_shard_year_ms((int32_t)strtol(shard->name, NULL, 10));
    return start_ms > 0 ? (uint64_t)start_ms : 0;
}

static void compare(struct proof *proof)
{
    proof->lost_ms = UINT64_MAX;
    for (size_t i = 0; i < proof->remembered.count; i++) {
        const struct tide_shard_state *seen = &proof->remembered.list[i];
        const char *why = doubt(shard_of(&proof->now, seen->name), seen);
        if (why[0] == '\0')
            continue;
        if (proof->unproven++ == 0)
            (void)snprintf(proof->first, sizeof proof->first, "%s.db %s", seen->name, why);
        if (start_of(seen) < proof->lost_ms)
            proof->lost_ms = start_of(seen);
    }
    for (size_t i = 0; i < proof->now.count; i++)
        proof->unknown += is_unknown(proof, &proof->now.list[i]);
    if (proof->unproven == 0)
        return;
    char since[TIDE_TIME_TEXT_BYTES] = "the beginning";
    char more[40] = "";
    if (proof->lost_ms > 0)
        tide_time_format(proof->lost_ms, since);
    if (proof->unproven > 1)
        (void)snprintf(more, sizeof more, " (and %zu more)", proof->unproven - 1);
    (void)snprintf(proof->notice, sizeof proof->notice,
                   "the archive lost data: %s%s. The tidemark moves back to %.*s; only what is "
                   "missing is fetched again.",
                   proof->first, more, proof->lost_ms > 0 ? 10 : 32, since);
}

/* A copy that the ledger did not track has labels of another time.  With a proof of that time the
 * history is read again from there.  Without one the changes since are unknown, which is a gap
 * (manifest.h): the archiver requests these labels. */
static tide_status labels_since(tide_rows db, const struct proof *proof,
                                const struct tide_shard_state *now, uint64_t *rewind_ms,
                                tide_error *err)
{
    uint64_t at_ms = 0;
    const tide_status rc = tide_mail_proof_get(db, proof->account, now, &at_ms, err);
    if (rc == TIDE_NOT_FOUND)
        return tide_gap_put(db, proof->account, proof->now_ms, err);
    if (rc == TIDE_OK && (*rewind_ms == 0 || at_ms < *rewind_ms))
        *rewind_ms = at_ms;
    return rc;
}

/* Messages that all shards of the year had, all parts together: refetched mail may go into another
 * part. */
static uint64_t year_total(const struct proof *proof, const struct tide_shard_state *shard)
{
    uint64_t messages = 0;
    for (size_t i = 0; i < proof->remembered.count; i++)
        if (start_of(&proof->remembered.list[i]) == start_of(shard))
            messages += proof->remembered.list[i].messages;
    return messages;
}

/* The current state becomes what the next check compares with. */
static tide_status write_lost(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct proof *proof = arg;
    const tide_rows db = tide_transaction_rows(transaction);
    uint64_t rewind_ms = 0;
    for (size_t i = 0; i < proof->remembered.count; i++) {
        const struct tide_shard_state *seen = &proof->remembered.list[i];
        const struct tide_shard_state *now = shard_of(&proof->now, seen->name);
        if (doubt(now, seen)[0] == '\0')
            continue;
        TIDE_TRY(tide_mail_loss_put(db, proof->account, seen->name, year_total(proof, seen),
                                    proof->now_ms, err));
        if (now != NULL)
            TIDE_TRY(labels_since(db, proof, now, &rewind_ms, err));
        TIDE_TRY(now == NULL ? tide_mail_shard_forget(db, proof->account, seen->name, err)
                             : tide_mail_shard_put(db, proof->account, now, err));
    }
    for (size_t i = 0; i < proof->now.count; i++) {
        const struct tide_shard_state *now = &proof->now.list[i];
        if (!is_unknown(proof, now))
            continue;
        if (is_foreign(proof, now))
            TIDE_TRY(tide_gap_put(db, proof->account, proof->now_ms, err));
        TIDE_TRY(tide_mail_shard_put(db, proof->account, now, err));
    }
    if (proof->unproven == 0)
        return TIDE_OK;
    return tide_mail_lost_put(db, proof->account, proof->lost_ms, rewind_ms, proof->notice, err);
}

tide_status tide_mail_prove(tide_mail *mail, struct tide_mail_user *user, tide_error *err)
{
    struct proof proof = {.account = user->account,
                          .remembered = {.mem = mail->mem},
                          .now = {.mem = mail->mem},
                          .now_ms = tide_world_now_unix_ms(mail->world)};
    tide_status rc = tide_transact(mail->engine, read_remembered, &proof, err);
    if (rc == TIDE_OK && proof.remembered.full)
        rc = tide_error_set(err, TIDE_NO_MEMORY, "no memory for the shards of %s", user->email);
    if (rc == TIDE_OK)
        rc = shards_now(user->archive, &proof.now, err);
    if (rc == TIDE_OK)
        compare(&proof);
    if (rc == TIDE_OK && (proof.unproven > 0 || proof.unknown > 0))
        rc = tide_transact(mail->engine, write_lost, &proof, err);
    shards_done(&proof.remembered);
    shards_done(&proof.now);
    return rc;
}

/* ---- recording ---- */

struct memory {
    uint32_t account;
    struct tide_shard_state *list;
    size_t count, capacity;
    char history_id[64]; /* "": not a proof */
    uint64_t now_ms;
};

static tide_status write_memory(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct memory *memory = arg;
    const tide_rows db = tide_transaction_rows(transaction);
    for (size_t i = 0; i < memory->count; i++) {
        TIDE_TRY(tide_mail_shard_note(db, memory->account, &memory->list[i], err));
        if (memory->history_id[0] != '\0')
            TIDE_TRY(tide_mail_proof_put(db, memory->account, &memory->list[i], memory->now_ms,
                                         tide_text_of(memory->history_id), err));
    }
    return TIDE_OK;
}

/* The job's memory, with room for so many.  NULL: there is none. */
static struct memory *memory_of(tide_job *job, size_t count)
{
    struct memory *memory = tide_job_effect_arg(job, write_memory);
    if (memory == NULL)
        memory = tide_job_memory(job, sizeof *memory);
    if (memory == NULL || memory->capacity >= count)
        return memory;
    struct tide_shard_state *list = tide_job_memory(job, count * sizeof *list);
    if (list == NULL)
        return NULL;
    memory->list = list;
    memory->capacity = count;
    return memory;
}

tide_status tide_mail_remember_proof(tide_mail *mail, struct tide_mail_user *user, tide_job *job,
                                     const char *history_id, uint64_t now_ms, tide_error *err)
{
    struct shards now = {.mem = mail->mem};
    const bool again = tide_job_effect_arg(job, write_memory) != NULL;
    struct memory *memory = NULL;
    tide_status rc = shards_now(user->archive, &now, err);
    if (rc == TIDE_OK)
        memory = memory_of(job, now.count);
    if (rc == TIDE_OK && memory == NULL)
        rc = tide_error_set(err, TIDE_NO_MEMORY, "no memory for %zu shards", now.count);
    if (rc == TIDE_OK) {
        memory->account = user->account;
        memory->now_ms = now_ms;
        (void)snprintf(memory->history_id, sizeof memory->history_id, "%s", history_id);
        memory->count = now.count;
        for (size_t i = 0; i < now.count; i++)
            memory->list[i] = now.list[i];
        rc = again ? TIDE_OK : tide_job_effect(job, write_memory, memory, err);
    }
    shards_done(&now);
    return rc;
}

tide_status tide_mail_remember(tide_mail *mail, struct tide_mail_user *user, tide_job *job,
                               tide_error *err)
{
    return tide_mail_remember_proof(mail, user, job, "", 0, err);
}

tide_status tide_mail_look_proof(tide_ledger *ledger, tide_archive *archive,
                                 struct tide_mail_look *look, tide_error *err)
{
    struct proof proof = {
        .account = look->account, .remembered = {.mem = look->mem}, .now = {.mem = look->mem}};
    /* Read the ledger first: a process that stores meanwhile only adds to the archive. */
    tide_status rc = tide_mail_shards(tide_ledger_rows(ledger), proof.account, shards_add,
                                      &proof.remembered, err);
    if (rc == TIDE_OK && proof.remembered.full)
        rc = tide_error_set(err, TIDE_NO_MEMORY, "no memory for the shards of %s", look->email);
    if (rc == TIDE_OK && archive != NULL)
        rc = shards_now(archive, &proof.now, err);
    if (rc == TIDE_OK)
        compare(&proof);
    look->shards_lost = proof.unproven;
    if (rc == TIDE_OK && proof.unproven > 0) {
        (void)snprintf(look->notice, sizeof look->notice, "%.399s", proof.notice);
        if (proof.lost_ms < look->tidemark_ms)
            look->tidemark_ms = proof.lost_ms;
    }
    shards_done(&proof.remembered);
    shards_done(&proof.now);
    return rc;
}
