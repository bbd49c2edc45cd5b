/* read.c - finds and reads messages across all shards. */
#include "mail/archive/inside.h"
#include "base/check.h"

#include <stdio.h>

/* Prefixes the error with the message and its shard. */
static tide_status about(const char *gmail_id, const char *shard, tide_status rc, tide_error *err)
{
    if (err == NULL || rc == TIDE_OK)
        return rc;
    char text[sizeof err->text];
    (void)snprintf(text, sizeof text, "%.300s", err->text);
    int code = err->code;
    (void)tide_error_set(err, rc, "message %s in shard %s: %.300s", gmail_id, shard, text);
    err->code = code;
    return rc;
}

/* ---- finding ------------------------------------------------------------------------ */

/* Opens the n-th shard from the newest; NULL when it is not completely created (H3). */
static tide_status open_nth(tide_archive *archive, size_t left, struct tide_shard **shard_out,
                            tide_error *err)
{
    struct tide_shard *shard = archive->reads.list[left - 1];
    tide_status rc = tide_shards_open(&archive->reads, shard, err);
    *shard_out = rc == TIDE_OK ? shard : NULL;
    return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
}

/* The caller has the turn. */
static tide_status find_in_all(tide_archive *archive, tide_text gmail_id, bool former, bool *found,
                               struct tide_stored *stored_out, tide_error *err)
{
    tide_status rc = TIDE_OK;
    for (size_t left = archive->reads.count; rc == TIDE_OK && !*found && left > 0; left--) {
        struct tide_shard *shard = NULL;
        rc = open_nth(archive, left, &shard, err);
        if (rc != TIDE_OK || shard == NULL)
            continue;
        rc = former ? tide_shard_find_former(shard, gmail_id, found, stored_out, err)
                    : tide_shard_find(shard, gmail_id, found, stored_out, err);
    }
    return rc;
}

tide_status tide_archive_find(tide_archive *archive, tide_text gmail_id,
                              struct tide_stored *stored_out, tide_error *err)
{
    struct tide_stored stored;
    bool found = false;
    tide_status rc = tide_archive_turn_take(archive, err);
    if (rc != TIDE_OK)
        return rc;
    rc = tide_shards_look(&archive->reads, err);
    if (rc == TIDE_OK)
        rc = find_in_all(archive, gmail_id, false, &found, &stored, err);
    if (rc == TIDE_OK && !found)
        rc = find_in_all(archive, gmail_id, true, &found, &stored, err);
    tide_archive_turn_drop(archive);
    if (rc == TIDE_OK && !found)
        return tide_error_set(err, TIDE_NOT_FOUND, "no message %.*s is stored", (int)gmail_id.bytes,
                              gmail_id.data);
    if (rc == TIDE_OK)
        *stored_out = stored;
    return rc;
}

/* Reads the first and the last Gmail id of a shard.  Ids of one server grow with time, so for most
 * shards these two answer the lookup. */
static tide_status ids_look(struct tide_shard *shard, tide_error *err)
{
    sqlite3_stmt *row = tide_db_stmt(&shard->db, TIDE_SHARD_IDS);
    bool there = false;
    const tide_status rc = tide_db_step(&shard->db, row, &there, err);
    if (rc == TIDE_OK && there) {
        tide_column_copy(row, 0, shard->id_least, sizeof shard->id_least);
        tide_column_copy(row, 1, shard->id_greatest, sizeof shard->id_greatest);
    }
    tide_db_end(row);
    return rc;
}

/* Looks up the ids in one shard, in one snapshot. */
static tide_status missing_in(struct tide_shard *shard, tide_shard_sql sql, const tide_text *ids,
                              size_t count, bool *missing, size_t *left, tide_error *err)
{
    tide_db *db = &shard->db;
    sqlite3_stmt *row = tide_db_stmt(db, sql);
    tide_status rc = tide_db_run(db, tide_db_stmt(db, TIDE_SHARD_BEGIN), err);
    if (rc != TIDE_OK)
        return rc;
    rc = ids_look(shard, err);
    for (size_t i = 0; rc == TIDE_OK && *left > 0 && i < count; i++) {
        if (!missing[i] || !tide_shard_may_have(shard, ids[i]))
            continue;
        bool there = false;
        tide_bind_text(row, 1, ids[i]);
        rc = tide_db_step(db, row, &there, err);
        tide_db_end(row);
        if (rc == TIDE_OK && there) {
            missing[i] = false;
            --*left;
        }
    }
    if (!sqlite3_get_autocommit(db->handle))
        (void)tide_db_run(db, tide_db_stmt(db, TIDE_SHARD_COMMIT), NULL);
    return rc;
}

/* The ids that `sql` finds in no shard. */
static tide_status not_found_by(tide_archive *archive, tide_shard_sql sql, const tide_text *ids,
                                size_t count, bool *missing_out, tide_error *err)
{
    size_t left = count;
    tide_status rc = tide_archive_turn_take(archive, err);
    if (rc != TIDE_OK)
        return rc;
    for (size_t i = 0; i < count; i++)
        missing_out[i] = true;
    rc = tide_shards_look(&archive->reads, err);
    for (size_t at = archive->reads.count; rc == TIDE_OK && left > 0 && at > 0; at--) {
        struct tide_shard *shard = NULL;
        rc = open_nth(archive, at, &shard, err);
        if (rc == TIDE_OK && shard != NULL)
            rc = missing_in(shard, sql, ids, count, missing_out, &left, err);
    }
    tide_archive_turn_drop(archive);
    return rc;
}

tide_status tide_archive_missing(tide_archive *archive, const tide_text *ids, size_t count,
                                 bool *missing_out, tide_error *err)
{
    return not_found_by(archive, TIDE_SHARD_WHOLE, ids, count, missing_out, err);
}

tide_status tide_archive_absent(tide_archive *archive, const tide_text *ids, size_t count,
                                bool *absent_out, tide_error *err)
{
    return not_found_by(archive, TIDE_SHARD_HAS, ids, count, absent_out, err);
}

/* ---- reading ------------------------------------------------------------------------- */

tide_status tide_archive_raw(tide_archive *archive, const struct tide_stored *stored, tide_buf *out,
                             tide_error *err)
{
    struct tide_shard *shard = NULL;
    tide_status rc = tide_archive_turn_take(archive, err);
    if (rc != TIDE_OK)
        return rc;
    rc = tide_archive_reads_open(archive, stored->shard, &shard, err);
    if (rc == TIDE_OK) {
        rc = tide_shard_raw(shard, archive->packer, stored->content, out, err);
        rc = about(stored->gmail_id, shard->name, rc, err);
    }
    tide_archive_turn_drop(archive);
    return rc;
}

tide_status tide_archive_labels_of(tide_archive *archive, const struct tide_stored *stored,
                                   tide_buf *out, tide_error *err)
{
    struct tide_shard *shard = NULL;
    tide_status rc = tide_archive_turn_take(archive, err);
    if (rc != TIDE_OK)
        return rc;
    rc = tide_archive_reads_open(archive, stored->shard, &shard, err);
    if (rc == TIDE_OK) {
        sqlite3_stmt *row = tide_db_stmt(&shard->db, TIDE_SHARD_LABELS_OF);
        (void)sqlite3_bind_int64(row, 1, stored->rowid);
        bool there = false;
        rc = tide_db_step(&shard->db, row, &there, err);
        while (rc == TIDE_OK && there) {
            tide_text label = tide_column_text(row, 0);
            rc = tide_buf_print(out, "%.*s\n", (int)label.bytes, label.data);
            if (rc == TIDE_OK)
                rc = tide_db_step(&shard->db, row, &there, err);
            else
                (void)tide_error_set(err, rc, "no memory for the labels of %s", stored->gmail_id);
        }
        tide_db_end(row);
    }
    tide_archive_turn_drop(archive);
    return rc;
}

/* ---- queries for restores ------------------------------------------------------------ */

tide_status tide_archive_stored_ms(tide_archive *archive, const struct tide_stored *stored,
                                   int64_t *stored_ms_out, tide_error *err)
{
    struct tide_shard *shard = NULL;
    bool there = false;
    tide_status rc = tide_archive_turn_take(archive, err);
    if (rc != TIDE_OK)
        return rc;
    rc = tide_archive_reads_open(archive, stored->shard, &shard, err);
    if (rc == TIDE_OK) {
        sqlite3_stmt *row = tide_db_stmt(&shard->db, TIDE_SHARD_STORED_MS);
        (void)sqlite3_bind_int64(row, 1, stored->rowid);
        rc = tide_db_step(&shard->db, row, &there, err);
        if (rc == TIDE_OK && there)
            *stored_ms_out = sqlite3_column_int64(row, 0);
        else if (rc == TIDE_OK)
            rc = tide_error_set(err, TIDE_NOT_FOUND, "no message %s is stored", stored->gmail_id);
        tide_db_end(row);
    }
    tide_archive_turn_drop(archive);
    return rc;
}

tide_status tide_archive_thread_now(tide_archive *archive, tide_text thread_id,
                                    char thread_out[TIDE_GMAIL_ID_BYTES_MAX + 1], tide_error *err)
{
    char thread[TIDE_GMAIL_ID_BYTES_MAX + 1] = "";
    bool itself = thread_id.bytes == 0;
    tide_status rc = tide_archive_turn_take(archive, err);
    if (rc != TIDE_OK)
        return rc;
    rc = tide_shards_look(&archive->reads, err);
    for (size_t left = archive->reads.count; rc == TIDE_OK && !itself && left > 0; left--) {
        struct tide_shard *shard = NULL;
        bool there = false;
        rc = open_nth(archive, left, &shard, err);
        if (rc != TIDE_OK || shard == NULL)
            continue;
        sqlite3_stmt *row = tide_db_stmt(&shard->db, TIDE_SHARD_THREAD_NOW);
        tide_bind_text(row, 1, thread_id);
        rc = tide_db_step(&shard->db, row, &there, err);
        if (rc == TIDE_OK && there) {
            itself = sqlite3_column_int(row, 0) == 1;
            tide_column_copy(row, 1, thread, sizeof thread);
        }
        tide_db_end(row);
    }
    tide_archive_turn_drop(archive);
    if (rc == TIDE_OK)
        memcpy(thread_out, thread, sizeof thread);
    return rc;
}

tide_status tide_archive_label_called(tide_archive *archive, tide_text label,
                                      struct tide_label_called *called_out, tide_error *err)
{
    bool found = false;
    tide_status rc = tide_archive_turn_take(archive, err);
    if (rc != TIDE_OK)
        return rc;
    rc = tide_shards_look(&archive->reads, err);
    for (size_t left = archive->reads.count; rc == TIDE_OK && !found && left > 0; left--) {
        struct tide_shard *shard = NULL;
        bool there = false;
        rc = open_nth(archive, left, &shard, err);
        if (rc != TIDE_OK || shard == NULL)
            continue;
        sqlite3_stmt *row = tide_db_stmt(&shard->db, TIDE_SHARD_LABEL_CALLED);
        tide_bind_text(row, 1, label);
        rc = tide_db_step(&shard->db, row, &there, err);
        found = rc == TIDE_OK && there && sqlite3_column_bytes(row, 0) > 0;
        if (found) {
            tide_column_copy(row, 0, called_out->name, sizeof called_out->name);
            called_out->user = !tide_text_equal(tide_column_text(row, 1), TIDE_TEXT("system"));
        }
        tide_db_end(row);
    }
    tide_archive_turn_drop(archive);
    if (rc == TIDE_OK && !found)
        return tide_error_set(err, TIDE_NOT_FOUND, "the name of label %.*s is not known",
                              (int)label.bytes, label.data);
    return rc;
}

/* ---- walking ------------------------------------------------------------------------- */

enum { PAGE = 64 };

/* Walks the parts of one year side by side, each with a page of rows read ahead, so that no
 * statement is open while `visit` runs: it may read the archive. */
struct part {
    uint32_t key;
    int64_t next;           /* the rowid to continue from */
    int64_t last;           /* the last rowid if no message were late (H4) */
    int64_t from_ms, to_ms; /* of the walk */
    bool over;
    size_t at, count; /* of the page */
    struct tide_stored page[PAGE];
};

static tide_status part_fill(tide_archive *archive, struct part *part, tide_error *err)
{
    struct tide_shard *shard = NULL;
    tide_status rc = tide_archive_turn_take(archive, err);
    if (rc != TIDE_OK)
        return rc;
    part->at = part->count = 0;
    rc = tide_archive_reads_open(archive, part->key, &shard, err);
    if (rc == TIDE_NOT_FOUND) { /* not completely created (H3) */
        part->over = true;
        rc = TIDE_OK;
    } else if (rc == TIDE_OK) {
        sqlite3_stmt *row = tide_db_stmt(&shard->db, TIDE_SHARD_WALK);
        (void)sqlite3_bind_int64(row, 1, part->next);
        (void)sqlite3_bind_int64(row, 2, part->last);
        (void)sqlite3_bind_int64(row, 3, PAGE);
        (void)sqlite3_bind_int64(row, 4, part->from_ms);
        (void)sqlite3_bind_int64(row, 5, part->to_ms);
        bool there = false;
        rc = tide_db_step(&shard->db, row, &there, err);
        while (rc == TIDE_OK && there && part->count < PAGE) {
            tide_shard_stored(shard, row, &part->page[part->count++]);
            rc = tide_db_step(&shard->db, row, &there, err);
        }
        tide_db_end(row);
        part->over = part->count < PAGE;
        if (part->count > 0)
            part->next = part->page[part->count - 1].rowid + 1;
    }
    tide_archive_turn_drop(archive);
    return rc;
}

static int64_t row_at(const struct tide_shard *shard, int64_t ms)
{
    return tide_shard_wanted(shard, ms < shard->start_ms ? shard->start_ms
                                    : ms > shard->end_ms ? shard->end_ms
                                                         : ms);
}

/* The parts of `year`, pages empty; *count_out 0: there is none. */
static tide_status parts_of(tide_archive *archive, int32_t year, int64_t from_ms, int64_t to_ms,
                            struct part **parts_out, size_t *count_out, tide_error *err)
{
    tide_status rc = tide_archive_turn_take(archive, err);
    if (rc != TIDE_OK)
        return rc;
    size_t count = 0;
    for (size_t i = 0; i < archive->reads.count; i++)
        count += archive->reads.list[i]->year == year;
    struct part *parts = count == 0 ? NULL : tide_mem_array(archive->mem, count, sizeof *parts);
    if (count > 0 && parts == NULL)
        rc = tide_error_set(err, TIDE_NO_MEMORY, "no memory to walk over %zu shards", count);
    for (size_t i = 0, at = 0; parts != NULL && i < archive->reads.count; i++) {
        const struct tide_shard *shard = archive->reads.list[i];
        if (shard->year != year)
            continue;
        parts[at].key = shard->key;
        parts[at].next = row_at(shard, from_ms);
        parts[at].last = row_at(shard, to_ms);
        parts[at].from_ms = from_ms;
        parts[at++].to_ms = to_ms;
    }
    tide_archive_turn_drop(archive);
    if (rc == TIDE_OK) {
        *parts_out = parts;
        *count_out = count;
    }
    return rc;
}

/* Parts of a year share one scale of rowids: the least rowid is the oldest message. */
static tide_status walk_year(tide_archive *archive, struct part *parts, size_t count,
                             bool (*visit)(const struct tide_stored *stored, void *arg), void *arg,
                             bool *go_on, tide_error *err)
{
    while (*go_on) {
        struct part *least = NULL;
        for (size_t i = 0; i < count; i++) {
            struct part *part = &parts[i];
            if (part->at == part->count && !part->over) {
                tide_status rc = part_fill(archive, part, err);
                if (rc != TIDE_OK)
                    return rc;
            }
            if (part->at < part->count &&
                (least == NULL || part->page[part->at].rowid < least->page[least->at].rowid))
                least = part;
        }
        if (least == NULL)
            return TIDE_OK;
        *go_on = visit(&least->page[least->at++], arg);
    }
    return TIDE_OK;
}

/* The first year from `year` on that has shards and begins before `to_ms`. */
static tide_status year_next(tide_archive *archive, int32_t year, int64_t to_ms, int32_t *year_out,
                             bool *there_out, tide_error *err)
{
    tide_status rc = tide_archive_turn_take(archive, err);
    if (rc != TIDE_OK)
        return rc;
    *there_out = false;
    for (size_t i = 0; i < archive->reads.count && !*there_out; i++) {
        const struct tide_shard *shard = archive->reads.list[i];
        if (shard->year >= year && shard->start_ms < to_ms) {
            *year_out = shard->year;
            *there_out = true;
        }
    }
    tide_archive_turn_drop(archive);
    return TIDE_OK;
}

tide_status tide_archive_walk(tide_archive *archive, int64_t from_ms, int64_t to_ms,
                              bool (*visit)(const struct tide_stored *stored, void *arg), void *arg,
                              tide_error *err)
{
    tide_status rc = tide_archive_turn_take(archive, err);
    if (rc != TIDE_OK)
        return rc;
    rc = tide_shards_look(&archive->reads, err);
    tide_archive_turn_drop(archive);
    int32_t year = from_ms < tide_shard_year_ms(1) ? 1
                   : from_ms >= tide_shard_year_ms(TIDE_SHARD_YEAR_MAX + 1)
                       ? TIDE_SHARD_YEAR_MAX + 1
                       : tide_shard_year(from_ms);
    for (bool go_on = true; rc == TIDE_OK && go_on; year++) {
        bool there = false;
        struct part *parts = NULL;
        size_t count = 0;
        rc = year_next(archive, year, to_ms, &year, &there, err);
        if (rc != TIDE_OK || !there)
            break;
        rc = parts_of(archive, year, from_ms, to_ms, &parts, &count, err);
        if (rc == TIDE_OK)
            rc = walk_year(archive, parts, count, visit, arg, &go_on, err);
        tide_mem_free(archive->mem, parts, count * sizeof *parts);
    }
    return rc;
}

/* ---- unreadable messages ----------------------------------------------------------- */

tide_status tide_archive_unreadable(tide_archive *archive,
                                    void (*visit)(const struct tide_stored *stored,
                                                  const char *problem, void *arg),
                                    void *arg, tide_error *err)
{
    tide_status rc = tide_archive_turn_take(archive, err);
    if (rc != TIDE_OK)
        return rc;
    rc = tide_shards_look(&archive->reads, err);
    size_t left = archive->reads.count;
    tide_archive_turn_drop(archive);
    int64_t after = -1;
    while (rc == TIDE_OK && left > 0) {
        struct tide_stored stored;
        char problem[200];
        bool there = false;
        struct tide_shard *shard = NULL;
        rc = tide_archive_turn_take(archive, err);
        if (rc != TIDE_OK)
            return rc;
        rc = open_nth(archive, left, &shard, err);
        if (rc == TIDE_OK && shard != NULL) {
            sqlite3_stmt *row = tide_db_stmt(&shard->db, TIDE_SHARD_PROBLEMS);
            (void)sqlite3_bind_int64(row, 1, after);
            rc = tide_db_step(&shard->db, row, &there, err);
            if (rc == TIDE_OK && there) {
                tide_shard_stored(shard, row, &stored);
                tide_column_copy(row, 10, problem, sizeof problem);
            }
            tide_db_end(row);
        }
        tide_archive_turn_drop(archive); /* dropped while `visit` runs: it may read */
        if (there)
            visit(&stored, problem, arg);
        after = there ? stored.rowid : -1;
        left -= !there;
    }
    return rc;
}
