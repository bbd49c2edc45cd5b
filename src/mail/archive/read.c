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

static tide_status find_in_all(struct tide_reader *reader, tide_text gmail_id, bool former,
                               bool *found, struct tide_stored *stored_out, tide_error *err)
{
    tide_status rc = TIDE_OK;
    for (struct tide_shard *shard = NULL;
         !*found && tide_reader_next(reader, TIDE_NEWEST_FIRST, &shard, &rc, err);)
        rc = former ? tide_shard_find_former(shard, gmail_id, found, stored_out, err)
                    : tide_shard_find(shard, gmail_id, found, stored_out, err);
    return rc;
}

tide_status tide_archive_find(tide_archive *archive, tide_text gmail_id,
                              struct tide_stored *stored_out, tide_error *err)
{
    tide_auto_reader *reader = NULL;
    struct tide_stored stored;
    bool found = false;
    TIDE_TRY(tide_reader_take_all(archive, &reader, err));
    TIDE_TRY(find_in_all(reader, gmail_id, false, &found, &stored, err));
    if (!found)
        TIDE_TRY(find_in_all(reader, gmail_id, true, &found, &stored, err));
    if (!found)
        return tide_error_set(err, TIDE_NOT_FOUND, "no message %.*s is stored", (int)gmail_id.bytes,
                              gmail_id.data);
    *stored_out = stored;
    return TIDE_OK;
}

tide_status tide_archive_find_short(tide_archive *archive, tide_text start, unsigned *count_out,
                                    struct tide_stored *stored_out, tide_error *err)
{
    tide_auto_reader *reader = NULL;
    struct tide_stored stored = {.rowid = 0};
    unsigned count = 0;
    char end[TIDE_GMAIL_ID_BYTES_MAX + 2];
    *count_out = 0;
    if (start.bytes == 0 || start.bytes > TIDE_GMAIL_ID_BYTES_MAX)
        return TIDE_OK;
    memcpy(end, start.data, start.bytes);
    end[start.bytes] = '\x7f'; /* after every character of an id */
    tide_status rc = tide_reader_take_all(archive, &reader, err);
    for (struct tide_shard *shard = NULL;
         count < 2 && tide_reader_next(reader, TIDE_NEWEST_FIRST, &shard, &rc, err);) {
        tide_auto_stmt *row = tide_db_ask(&shard->db, TIDE_SHARD_FIND_SHORT, start,
                                          ((tide_text){end, start.bytes + 1}));
        while (tide_db_next(&shard->db, row, &rc, err)) {
            tide_shard_stored(shard, row, &stored);
            count++;
        }
    }
    if (rc == TIDE_OK) {
        *count_out = count > 2 ? 2 : count;
        *stored_out = stored;
    }
    return rc;
}

/* Reads the first and the last Gmail id of a shard.  Ids of one server grow with time, so for most
 * shards these two answer the lookup. */
static tide_status ids_look(struct tide_shard *shard, tide_error *err)
{
    tide_auto_stmt *row = tide_db_stmt(&shard->db, TIDE_SHARD_IDS);
    bool there = false;
    TIDE_TRY(tide_db_step(&shard->db, row, &there, err));
    if (there) {
        tide_column_copy(row, 0, shard->id_least, sizeof shard->id_least);
        tide_column_copy(row, 1, shard->id_greatest, sizeof shard->id_greatest);
    }
    return TIDE_OK;
}

/* Looks up the ids in one shard, in one snapshot. */
static tide_status missing_in(struct tide_shard *shard, tide_shard_sql sql, const tide_text *ids,
                              size_t count, bool *missing, size_t *left, tide_error *err)
{
    tide_db *db = &shard->db;
    sqlite3_stmt *row = tide_db_stmt(db, sql);
    TIDE_TRY(tide_db_run(db, tide_db_stmt(db, TIDE_SHARD_BEGIN), err));
    tide_status rc = ids_look(shard, err);
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
    tide_auto_reader *reader = NULL;
    size_t left = count;
    tide_status rc = tide_reader_take_all(archive, &reader, err);
    for (size_t i = 0; i < count; i++)
        missing_out[i] = true;
    for (struct tide_shard *shard = NULL;
         left > 0 && tide_reader_next(reader, TIDE_NEWEST_FIRST, &shard, &rc, err);)
        rc = missing_in(shard, sql, ids, count, missing_out, &left, err);
    return rc;
}

tide_status tide_archive_missing(tide_archive *archive, const tide_text *ids, size_t count,
                                 bool *missing_out, tide_error *err)
{
    return not_found_by(archive, TIDE_SHARD_WHOLE, ids, count, missing_out, err);
}

tide_status tide_archive_inexact(tide_archive *archive, const tide_text *ids, size_t count,
                                 bool *inexact_out, tide_error *err)
{
    return not_found_by(archive, TIDE_SHARD_EXACT, ids, count, inexact_out, err);
}

tide_status tide_archive_absent(tide_archive *archive, const tide_text *ids, size_t count,
                                bool *absent_out, tide_error *err)
{
    return not_found_by(archive, TIDE_SHARD_HAS, ids, count, absent_out, err);
}

/* The ids that are in this shard without the label. */
static tide_status unlabeled_in(struct tide_shard *shard, tide_text label, tide_text history_id,
                                const tide_text *ids, size_t count, bool *unlabeled,
                                tide_error *err)
{
    for (size_t i = 0; i < count; i++) {
        if (unlabeled[i] || !tide_shard_may_have(shard, ids[i]))
            continue;
        tide_auto_stmt *row =
            tide_db_ask(&shard->db, TIDE_SHARD_UNLABELED, ids[i], label, history_id);
        TIDE_TRY(tide_db_step(&shard->db, row, &unlabeled[i], err));
    }
    return TIDE_OK;
}

tide_status tide_archive_unlabeled(tide_archive *archive, tide_text label, tide_text history_id,
                                   const tide_text *ids, size_t count, bool *unlabeled_out,
                                   tide_error *err)
{
    tide_auto_reader *reader = NULL;
    tide_status rc = tide_reader_take_all(archive, &reader, err);
    for (size_t i = 0; i < count; i++)
        unlabeled_out[i] = false;
    for (struct tide_shard *shard = NULL;
         tide_reader_next(reader, TIDE_NEWEST_FIRST, &shard, &rc, err);) {
        rc = ids_look(shard, err);
        if (rc == TIDE_OK)
            rc = unlabeled_in(shard, label, history_id, ids, count, unlabeled_out, err);
    }
    return rc;
}

/* ---- reading ------------------------------------------------------------------------- */

tide_status tide_reader_raw(struct tide_reader *reader, const struct tide_stored *stored,
                            tide_buf *out, tide_error *err)
{
    struct tide_shard *shard = NULL;
    tide_status rc = tide_reader_at(reader, stored->shard, &shard, err);
    if (rc == TIDE_OK) {
        rc = tide_shard_raw(shard, reader->packer, stored->content, out, err);
        rc = about(stored->gmail_id, shard->name, rc, err);
    }
    return rc;
}

tide_status tide_archive_raw(tide_archive *archive, const struct tide_stored *stored, tide_buf *out,
                             tide_error *err)
{
    tide_auto_reader *reader = NULL;
    TIDE_TRY(tide_reader_take(archive, &reader, err));
    return tide_reader_raw(reader, stored, out, err);
}

tide_status tide_archive_labels_of(tide_archive *archive, const struct tide_stored *stored,
                                   tide_buf *out, tide_error *err)
{
    tide_auto_reader *reader = NULL;
    struct tide_shard *shard = NULL;
    tide_status rc = tide_reader_take_at(archive, stored->shard, &reader, &shard, err);
    if (rc == TIDE_OK) {
        sqlite3_stmt *row = tide_db_ask(&shard->db, TIDE_SHARD_LABELS_OF, stored->rowid);
        while (tide_db_next(&shard->db, row, &rc, err)) {
            tide_text label = tide_column_text(row, 0);
            rc = tide_buf_add(out, label.data, label.bytes);
            if (rc == TIDE_OK)
                rc = tide_buf_add_text(out, "\n");
            if (rc != TIDE_OK) {
                (void)tide_error_set(err, rc, "no memory for the labels of %s", stored->gmail_id);
                break;
            }
        }
        tide_db_end(row);
    }
    return rc;
}

/* ---- queries for restores ------------------------------------------------------------ */

tide_status tide_archive_stored_ms(tide_archive *archive, const struct tide_stored *stored,
                                   int64_t *stored_ms_out, tide_error *err)
{
    tide_auto_reader *reader = NULL;
    struct tide_shard *shard = NULL;
    bool there = false;
    tide_status rc = tide_reader_take_at(archive, stored->shard, &reader, &shard, err);
    if (rc == TIDE_OK) {
        sqlite3_stmt *row = tide_db_ask(&shard->db, TIDE_SHARD_STORED_MS, stored->rowid);
        rc = tide_db_step(&shard->db, row, &there, err);
        if (rc == TIDE_OK && there)
            *stored_ms_out = sqlite3_column_int64(row, 0);
        else if (rc == TIDE_OK)
            rc = tide_error_set(err, TIDE_NOT_FOUND, "no message %s is stored", stored->gmail_id);
        tide_db_end(row);
    }
    return rc;
}

tide_status tide_archive_thread_now(tide_archive *archive, tide_text thread_id,
                                    char thread_out[TIDE_GMAIL_ID_BYTES_MAX + 1], tide_error *err)
{
    tide_auto_reader *reader = NULL;
    char thread[TIDE_GMAIL_ID_BYTES_MAX + 1] = "";
    bool itself = thread_id.bytes == 0;
    tide_status rc = tide_reader_take_all(archive, &reader, err);
    for (struct tide_shard *shard = NULL;
         !itself && tide_reader_next(reader, TIDE_NEWEST_FIRST, &shard, &rc, err);) {
        bool there = false;
        sqlite3_stmt *row = tide_db_ask(&shard->db, TIDE_SHARD_THREAD_NOW, thread_id);
        rc = tide_db_step(&shard->db, row, &there, err);
        if (rc == TIDE_OK && there) {
            itself = sqlite3_column_int(row, 0) == 1;
            tide_column_copy(row, 1, thread, sizeof thread);
        }
        tide_db_end(row);
    }
    if (rc == TIDE_OK)
        memcpy(thread_out, thread, sizeof thread);
    return rc;
}

tide_status tide_archive_label_called(tide_archive *archive, tide_text label,
                                      struct tide_label_called *called_out, tide_error *err)
{
    tide_auto_reader *reader = NULL;
    bool found = false;
    tide_status rc = tide_reader_take_all(archive, &reader, err);
    for (struct tide_shard *shard = NULL;
         !found && tide_reader_next(reader, TIDE_NEWEST_FIRST, &shard, &rc, err);) {
        bool there = false;
        sqlite3_stmt *row = tide_db_ask(&shard->db, TIDE_SHARD_LABEL_CALLED, label);
        rc = tide_db_step(&shard->db, row, &there, err);
        found = rc == TIDE_OK && there && sqlite3_column_bytes(row, 0) > 0;
        if (found) {
            tide_column_copy(row, 0, called_out->name, sizeof called_out->name);
            called_out->user = !tide_text_equal(tide_column_text(row, 1), TIDE_TEXT("system"));
        }
        tide_db_end(row);
    }
    if (rc == TIDE_OK && !found)
        return tide_error_set(err, TIDE_NOT_FOUND, "the name of label %.*s is not known",
                              (int)label.bytes, label.data);
    return rc;
}

/* ---- walking ------------------------------------------------------------------------- */

enum { PAGE = 64 };

/* Walks the parts of one year side by side, each with a page of rows read ahead, so that no
 * statement is open while `visit` runs: it may take long. */
struct part {
    struct tide_shard *shard;
    int64_t next;           /* the rowid to continue from */
    int64_t last;           /* the last rowid if no message were late (SHD4) */
    int64_t from_ms, to_ms; /* of the walk */
    bool over;
    size_t at, count; /* of the page */
    struct tide_stored page[PAGE];
};

static tide_status part_fill(struct tide_reader *reader, struct part *part, tide_error *err)
{
    struct tide_shard *shard = part->shard;
    part->at = part->count = 0;
    tide_status rc = tide_shards_open(&reader->shards, shard, err);
    if (rc == TIDE_NOT_FOUND) { /* not completely created (SHD3) */
        part->over = true;
        return TIDE_OK;
    }
    if (rc != TIDE_OK)
        return rc;
    tide_auto_stmt *row = tide_db_ask(&shard->db, TIDE_SHARD_WALK, part->next, part->last, PAGE,
                                      part->from_ms, part->to_ms);
    while (part->count < PAGE && tide_db_next(&shard->db, row, &rc, err))
        tide_shard_stored(shard, row, &part->page[part->count++]);
    part->over = part->count < PAGE;
    if (part->count > 0)
        part->next = part->page[part->count - 1].rowid + 1;
    return rc;
}

static int64_t row_at(const struct tide_shard *shard, int64_t ms)
{
    return tide_shard_wanted(shard, ms < shard->start_ms ? shard->start_ms
                                    : ms > shard->end_ms ? shard->end_ms
                                                         : ms);
}

/* Parts of a year share one scale of rowids: the least rowid is the oldest message. */
static tide_status walk_parts(struct tide_reader *reader, struct part *parts, size_t count,
                              bool (*visit)(const struct tide_stored *stored, void *arg), void *arg,
                              bool *go_on, tide_error *err)
{
    while (*go_on) {
        struct part *least = NULL;
        for (size_t i = 0; i < count; i++) {
            struct part *part = &parts[i];
            if (part->at == part->count && !part->over)
                TIDE_TRY(part_fill(reader, part, err));
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

/* Walks over the `count` shards of one year. */
static tide_status walk_year(struct tide_reader *reader, struct tide_shard *const *shards,
                             size_t count, int64_t from_ms, int64_t to_ms,
                             bool (*visit)(const struct tide_stored *stored, void *arg), void *arg,
                             bool *go_on, tide_error *err)
{
    tide_mem *mem = reader->archive->mem;
    struct part *parts = tide_mem_array(mem, count, sizeof *parts);
    if (parts == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory to walk over %zu shards", count);
    for (size_t i = 0; i < count; i++) {
        parts[i].shard = shards[i];
        parts[i].next = row_at(shards[i], from_ms);
        parts[i].last = row_at(shards[i], to_ms);
        parts[i].from_ms = from_ms;
        parts[i].to_ms = to_ms;
    }
    const tide_status rc = walk_parts(reader, parts, count, visit, arg, go_on, err);
    tide_mem_free(mem, parts, count * sizeof *parts);
    return rc;
}

tide_status tide_archive_walk(tide_archive *archive, int64_t from_ms, int64_t to_ms,
                              bool (*visit)(const struct tide_stored *stored, void *arg), void *arg,
                              tide_error *err)
{
    tide_auto_reader *reader = NULL;
    tide_status rc = tide_reader_take_all(archive, &reader, err);
    const size_t all = rc == TIDE_OK ? reader->shards.count : 0;
    bool go_on = true;
    for (size_t at = 0, count = 0; rc == TIDE_OK && go_on && at < all; at += count) {
        struct tide_shard *const *shards = reader->shards.list + at;
        for (count = 1; at + count < all && shards[count]->year == shards[0]->year;)
            count++;
        if (shards[0]->end_ms > from_ms && shards[0]->start_ms < to_ms)
            rc = walk_year(reader, shards, count, from_ms, to_ms, visit, arg, &go_on, err);
    }
    return rc;
}

/* ---- unreadable messages ----------------------------------------------------------- */

tide_status tide_archive_unreadable(tide_archive *archive,
                                    void (*visit)(const struct tide_stored *stored,
                                                  const char *problem, void *arg),
                                    void *arg, tide_error *err)
{
    tide_auto_reader *reader = NULL;
    tide_status rc = tide_reader_take_all(archive, &reader, err);
    for (struct tide_shard *shard = NULL;
         tide_reader_next(reader, TIDE_NEWEST_FIRST, &shard, &rc, err);) {
        struct tide_stored stored = {.rowid = -1};
        for (bool there = true; rc == TIDE_OK && there;) {
            char problem[200];
            sqlite3_stmt *row = tide_db_ask(&shard->db, TIDE_SHARD_PROBLEMS, stored.rowid);
            rc = tide_db_step(&shard->db, row, &there, err);
            there = there && rc == TIDE_OK;
            if (there) {
                tide_shard_stored(shard, row, &stored);
                tide_column_copy(row, 10, problem, sizeof problem);
            }
            tide_db_end(row); /* no statement is open while `visit` runs: it may take long */
            if (there)
                visit(&stored, problem, arg);
        }
    }
    return rc;
}
