/* sole.c - the ledger's list of messages that exist only in the archive (lost.h LOST2).
 *
 * A shard's number of gone messages and the sum of their rows show whether anything changed since
 * the list was written; if so, the two lists are compared, and the differences are written with the
 * job's end. */
#include "base/check.h"
#include "mail/sync/lost.h"
#include "mail/inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WHAT "the list of what exists nowhere else"

enum { IDS_MAX = 50000000 };

typedef char only_id[TIDE_GMAIL_ID_BYTES_MAX + 1];

struct list {
    tide_mem *mem;
    only_id *ids;
    size_t count, capacity;
    bool full;
};

/* A changed shard, as the effect writes it. */
struct change {
    uint32_t account;
    struct tide_shard_state shard;
    tide_text *added, *taken;
    size_t added_count, taken_count;
};

static void list_add(const char *id, void *arg)
{
    struct list *list = arg;
    if (list->full ||
        !TIDE_GROW_IN(list->mem, list->ids, list->capacity, list->count + 1, IDS_MAX)) {
        list->full = true;
        return;
    }
    (void)snprintf(list->ids[list->count++], sizeof list->ids[0], "%s", id);
}

static void list_done(struct list *list)
{
    tide_mem_free(list->mem, list->ids, list->capacity * sizeof *list->ids);
}

static int id_order(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* ---- the stored list ---- */

struct noted {
    uint32_t account;
    const struct tide_shard_state *shard;
    struct list list;
};

static tide_status noted_ids(tide_rows db, struct noted *noted, tide_error *err)
{
    tide_auto_rows stmt;
    tide_status rc =
        tide_rows_ask(db, WHAT, &stmt, err,
                      "SELECT gmail_id FROM mail_only WHERE account = ?1 AND shard = ?2"
                      " AND accepted_ms = 0",
                      noted->account, noted->shard->name);
    noted->list.count = 0;
    while (tide_rows_next(&stmt, &rc, err)) {
        only_id id;
        tide_rows_get_copy(&stmt, 0, id, sizeof id);
        list_add(id, &noted->list);
    }
    return rc;
}

static tide_status noted_read(tide_transaction *transaction, void *arg, tide_error *err)
{
    return noted_ids(tide_transaction_rows(transaction), arg, err);
}

/* The recorded state of each shard. */
struct seen {
    uint32_t account;
    struct tide_shard_state *shards; /* `same` says whether they are unchanged */
    bool *same;
    size_t count;
};

static tide_status seen_read(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct seen *seen = arg;
    tide_auto_rows stmt;
    tide_status rc = tide_rows_ask(
        tide_transaction_rows(transaction), WHAT, &stmt, err,
        "SELECT name, gone, gone_sum FROM mail_only_seen WHERE account = ?1", seen->account);
    for (size_t i = 0; i < seen->count; i++)
        seen->same[i] = seen->shards[i].gone == 0;
    while (tide_rows_next(&stmt, &rc, err)) {
        char name[32];
        tide_rows_get_copy(&stmt, 0, name, sizeof name);
        for (size_t i = 0; i < seen->count; i++)
            if (strcmp(seen->shards[i].name, name) == 0)
                seen->same[i] = tide_rows_get_u64(&stmt, 1) == seen->shards[i].gone &&
                                tide_rows_get_u64(&stmt, 2) == seen->shards[i].gone_sum;
    }
    return rc;
}

/* ---- differences ---- */

static tide_status write_ids(tide_rows db, const char *sql, const struct change *change,
                             const tide_text *ids, size_t count, tide_error *err)
{
    tide_auto_rows stmt;
    tide_status rc = tide_rows_ask(db, WHAT, &stmt, err, sql, change->account, change->shard.name);
    for (size_t i = 0; rc == TIDE_OK && i < count; i++) {
        bool row = false;
        tide_rows_text(&stmt, 3, ids[i]);
        rc = tide_rows_step(&stmt, &row, err);
        tide_rows_again(&stmt);
    }
    return rc;
}

static tide_status write_change(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct change *change = arg;
    const tide_rows db = tide_transaction_rows(transaction);
    TIDE_TRY(write_ids(db,
                       "DELETE FROM mail_only WHERE account = ?1 AND shard = ?2"
                       " AND gmail_id = ?3 AND accepted_ms = 0",
                       change, change->taken, change->taken_count, err));
    /* a message accepted as lost is back */
    TIDE_TRY(write_ids(db,
                       "INSERT INTO mail_only(account, shard, gmail_id, accepted_ms)"
                       " VALUES(?1, ?2, ?3, 0) ON CONFLICT(account, gmail_id) DO UPDATE"
                       " SET shard = excluded.shard, accepted_ms = 0",
                       change, change->added, change->added_count, err));
    return tide_rows_do(db, WHAT, err,
                        "INSERT INTO mail_only_seen(account, name, gone, gone_sum)"
                        " VALUES(?1, ?2, ?3, ?4) ON CONFLICT(account, name) DO UPDATE"
                        " SET gone = excluded.gone, gone_sum = excluded.gone_sum",
                        change->account, change->shard.name, change->shard.gone,
                        change->shard.gone_sum);
}

/* Copies the ids of `list` that `other` does not have into the job's memory; both are sorted. */
static tide_status only_in(tide_job *job, const struct list *list, const struct list *other,
                           tide_text **texts_out, size_t *count_out)
{
    size_t count = 0;
    tide_text *texts = tide_job_memory(job, (list->count + 1) * sizeof *texts);
    if (texts == NULL)
        return TIDE_NO_MEMORY;
    for (size_t i = 0, k = 0; i < list->count; i++) {
        while (k < other->count && strcmp(other->ids[k], list->ids[i]) < 0)
            k++;
        if (k < other->count && strcmp(other->ids[k], list->ids[i]) == 0)
            continue;
        const size_t bytes = strlen(list->ids[i]);
        char *copy = tide_job_memory(job, bytes + 1);
        if (copy == NULL)
            return TIDE_NO_MEMORY;
        memcpy(copy, list->ids[i], bytes + 1);
        texts[count++] = (tide_text){copy, bytes};
    }
    *texts_out = texts;
    *count_out = count;
    return TIDE_OK;
}

/* Ids that left the list because the message is no longer gone; those of a lost shard are missing
 * in either case and must stay (LOST2). */
static tide_status keep_here(tide_archive *archive, struct change *change, tide_error *err)
{
    size_t kept = 0;
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < change->taken_count; i++) {
        bool absent = true;
        rc = tide_archive_absent(archive, &change->taken[i], 1, &absent, err);
        if (!absent)
            change->taken[kept++] = change->taken[i];
    }
    change->taken_count = kept;
    return rc;
}

static tide_status shard_changed(struct tide_mail_user *user, tide_job *job, struct noted *noted,
                                 tide_error *err)
{
    struct list now = {.mem = noted->list.mem};
    struct change *change = tide_job_memory(job, sizeof *change);
    if (change == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for the ids of gone messages");
    change->account = user->account;
    change->shard = *noted->shard;
    tide_status rc = tide_archive_gone_ids(user->archive, noted->shard->key, list_add, &now, err);
    if (rc == TIDE_OK && (now.full || noted->list.full))
        rc = tide_error_set(err, TIDE_NO_MEMORY, "no memory for the ids of gone messages");
    if (rc == TIDE_OK && now.count > 0)
        qsort(now.ids, now.count, sizeof *now.ids, id_order);
    if (rc == TIDE_OK && noted->list.count > 0)
        qsort(noted->list.ids, noted->list.count, sizeof *noted->list.ids, id_order);
    if (rc == TIDE_OK)
        rc = only_in(job, &now, &noted->list, &change->added, &change->added_count);
    if (rc == TIDE_OK)
        rc = only_in(job, &noted->list, &now, &change->taken, &change->taken_count);
    if (rc == TIDE_NO_MEMORY)
        (void)tide_error_set(err, rc, "no memory for the ids of gone messages");
    if (rc == TIDE_OK)
        rc = keep_here(user->archive, change, err);
    list_done(&now);
    return rc == TIDE_OK ? tide_job_effect(job, write_change, change, err) : rc;
}

static tide_status seen_now(tide_mail *mail, struct tide_mail_user *user, tide_job *job,
                            struct seen *seen, tide_error *err)
{
    const size_t count = tide_archive_shards(user->archive);
    tide_status rc = TIDE_OK;
    seen->account = user->account;
    seen->shards = tide_job_memory(job, (count + 1) * sizeof *seen->shards);
    seen->same = tide_job_memory(job, count + 1);
    if (seen->shards == NULL || seen->same == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for %zu shards", count);
    for (size_t i = 0; rc == TIDE_OK && i < count; i++) {
        rc = tide_archive_shard(user->archive, i, &seen->shards[i], err);
        seen->count += rc == TIDE_OK;
    }
    return rc == TIDE_OK ? tide_transact(mail->engine, seen_read, seen, err) : rc;
}

tide_status tide_mail_remember_gone(tide_mail *mail, struct tide_mail_user *user, tide_job *job,
                                    tide_error *err)
{
    struct seen seen = {.count = 0};
    tide_status rc = seen_now(mail, user, job, &seen, err);
    for (size_t i = 0; rc == TIDE_OK && i < seen.count; i++) {
        struct noted noted = {
            .account = user->account, .shard = &seen.shards[i], .list = {.mem = mail->mem}};
        if (seen.same[i])
            continue;
        rc = tide_transact(mail->engine, noted_read, &noted, err);
        if (rc == TIDE_OK)
            rc = shard_changed(user, job, &noted, err);
        list_done(&noted.list);
    }
    return rc;
}
