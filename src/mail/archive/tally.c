/* tally.c - counts messages: those that are gone, imported, not indexed, or unreadable; those of a label,
 * and by day.  And whether there is anything to count again. */
#include "mail/archive/inside.h"

#include "base/hash.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

bool tide_import_id_is(tide_text id)
{
    return id.bytes > sizeof TIDE_IMPORT_ID - 1 &&
           memcmp(id.data, TIDE_IMPORT_ID, sizeof TIDE_IMPORT_ID - 1) == 0;
}

bool tide_stored_in_gmail(const struct tide_stored *stored)
{
    const bool heard = stored->history_id[0] != '\0' ||
                       stored->copy == TIDE_COPY_HELD; /* Takeout has no history ids */
    return !stored->gone && heard && !tide_import_id_is(tide_text_of(stored->gmail_id));
}

tide_status tide_archive_tally(tide_archive *archive, struct tide_archive_tally *tally_out,
                               tide_error *err)
{
    tide_auto_reader *reader = NULL;
    struct tide_archive_tally tally = {0};
    tide_status rc = tide_reader_take_all(archive, &reader, err);
    for (struct tide_shard *shard = NULL;
         tide_reader_next(reader, TIDE_OLDEST_FIRST, &shard, &rc, err);) {
        bool there = false;
        sqlite3_stmt *row = tide_db_stmt(&shard->db, TIDE_SHARD_TALLY);
        rc = tide_db_step(&shard->db, row, &there, err);
        if (rc == TIDE_OK && there) {
            tally.gone += tide_column_u64(row, 0);
            tally.unindexed += tide_column_u64(row, 1);
            tally.unreadable += tide_column_u64(row, 2);
            tally.partly += tide_column_u64(row, 3);
            for (int copy = TIDE_COPY_HELD; copy < TIDE_COPIES; copy++)
                tally.copies[copy] += tide_column_u64(row, 3 + copy);
            tally.imported += tide_column_u64(row, 3 + TIDE_COPIES);
            tally.imported_damaged += tide_column_u64(row, 4 + TIDE_COPIES);
        }
        tide_db_end(row);
    }
    if (rc == TIDE_OK)
        *tally_out = tally;
    return rc;
}

/* ---- by day ---- */

enum { DAY_MS = 86400000, DAY_IDS = DAY_MS / TIDE_SHARD_UNIT_MS };

struct counting {
    struct tide_shard *shard;
    tide_text label; /* "": all but spam and trash */
    int64_t from_id;
    void (*visit)(int64_t day, int64_t count, void *arg);
    void *arg;
    tide_error *err;
};

static int64_t day_of(const struct counting *self, int64_t id)
{
    return self->shard->start_ms / DAY_MS + id / DAY_IDS;
}

static tide_status day_count(const struct counting *self, int64_t from_id, int64_t to_id)
{
    bool there = false;
    tide_db *db = &self->shard->db;
    tide_auto_stmt *row = self->label.bytes == 0
                              ? tide_db_ask(db, TIDE_SHARD_DAY_ALL, from_id, to_id)
                              : tide_db_ask(db, TIDE_SHARD_DAY_LABEL, self->label, from_id, to_id);
    TIDE_TRY(tide_db_step(db, row, &there, self->err));
    const int64_t count = there ? sqlite3_column_int64(row, 0) : 0;
    if (count > 0)
        self->visit(day_of(self, from_id), count, self->arg);
    return TIDE_OK;
}

/* The last day takes what was placed behind the end of the year (SHD4). */
static tide_status days_count(const struct counting *self)
{
    const int64_t end_id = (self->shard->end_ms - self->shard->start_ms) / TIDE_SHARD_UNIT_MS;
    for (int64_t id = self->from_id; id < end_id;) {
        const int64_t next = (id / DAY_IDS + 1) * DAY_IDS;
        TIDE_TRY(day_count(self, id, next >= end_id ? INT64_MAX : next));
        id = next;
    }
    return TIDE_OK;
}

static tide_status less_count(const struct counting *self)
{
    tide_status rc = TIDE_OK;
    tide_db *db = &self->shard->db;
    tide_auto_stmt *row = self->label.bytes == 0
                              ? tide_db_stmt(db, TIDE_SHARD_LESS_ALL)
                              : tide_db_ask(db, TIDE_SHARD_LESS_LABEL, self->label);
    while (tide_db_next(db, row, &rc, self->err)) {
        const int64_t id = sqlite3_column_int64(row, 0);
        if (id >= self->from_id)
            self->visit(day_of(self, id), -1, self->arg);
    }
    return rc;
}

tide_status tide_archive_days(tide_archive *archive, tide_text label, int64_t from_ms,
                              void (*visit)(int64_t day, int64_t count, void *arg), void *arg,
                              tide_error *err)
{
    tide_auto_reader *reader = NULL;
    tide_status rc = tide_reader_take_all(archive, &reader, err);
    for (struct tide_shard *shard = NULL;
         tide_reader_next(reader, TIDE_OLDEST_FIRST, &shard, &rc, err);) {
        const struct counting counting = {
            .shard = shard,
            .label = label,
            .from_id =
                from_ms <= shard->start_ms ? 0 : (from_ms - shard->start_ms) / TIDE_SHARD_UNIT_MS,
            .visit = visit,
            .arg = arg,
            .err = err};
        if (from_ms >= shard->end_ms)
            continue;
        rc = days_count(&counting);
        if (rc == TIDE_OK)
            rc = less_count(&counting);
    }
    return rc;
}

/* ---- by label ---- */

static tide_status counts_read(struct tide_shard *shard, unsigned statement, json_t *counts,
                               tide_error *err)
{
    tide_status rc = TIDE_OK;
    tide_auto_stmt *row = tide_db_stmt(&shard->db, statement);
    while (tide_db_next(&shard->db, row, &rc, err)) {
        const tide_text text = tide_column_text(row, 0);
        char label[TIDE_LABEL_BYTES_MAX + 1];
        (void)snprintf(label, sizeof label, "%.*s", (int)text.bytes, text.data);
        const json_int_t before = json_integer_value(json_object_get(counts, label));
        (void)json_object_set_new(counts, label,
                                  json_integer(before + sqlite3_column_int64(row, 1)));
    }
    return rc;
}

void tide_shard_counts_forget(struct tide_shard *shard)
{
    json_decref(shard->counts);
    json_decref(shard->unread);
    shard->counts = shard->unread = NULL;
}

/* The file's version changes with every commit of another connection: what was counted before holds
 * until then.  Of many years of mail only the last one changes. */
static tide_status counts_know(struct tide_shard *shard, tide_error *err)
{
    int64_t version = 0;
    TIDE_TRY(tide_db_number(&shard->db, "PRAGMA data_version", &version, err));
    if (shard->counts != NULL && shard->counts_version == version)
        return TIDE_OK;
    tide_shard_counts_forget(shard);
    shard->counts = json_object();
    shard->unread = json_object();
    tide_status rc = shard->counts == NULL || shard->unread == NULL
                         ? tide_error_set(err, TIDE_NO_MEMORY, "no memory to count")
                         : counts_read(shard, TIDE_SHARD_COUNTS, shard->counts, err);
    if (rc == TIDE_OK)
        rc = counts_read(shard, TIDE_SHARD_UNREAD, shard->unread, err);
    if (rc != TIDE_OK)
        tide_shard_counts_forget(shard);
    shard->counts_version = version;
    return rc;
}

tide_status tide_archive_counts(tide_archive *archive,
                                void (*visit)(const char *label, int64_t count, int64_t unread,
                                              void *arg),
                                void *arg, tide_error *err)
{
    tide_auto_reader *reader = NULL;
    tide_status rc = tide_reader_take_all(archive, &reader, err);
    for (struct tide_shard *shard = NULL;
         tide_reader_next(reader, TIDE_OLDEST_FIRST, &shard, &rc, err);) {
        const char *label = NULL;
        json_t *count = NULL;
        rc = counts_know(shard, err);
        json_object_foreach(rc == TIDE_OK ? shard->counts : NULL, label, count)
        {
            visit(label, json_integer_value(count),
                  json_integer_value(json_object_get(shard->unread, label)), arg);
        }
    }
    return rc;
}

/* ---- whether anything has changed ---- */

tide_status tide_archive_version(tide_archive *archive, uint64_t *version_out, tide_error *err)
{
    tide_auto_reader *reader = NULL;
    uint64_t version = TIDE_HASH_START;
    tide_status rc = tide_reader_take_all(archive, &reader, err);
    for (struct tide_shard *shard = NULL;
         tide_reader_next(reader, TIDE_OLDEST_FIRST, &shard, &rc, err);) {
        char one[120];
        bool there = false;
        tide_auto_stmt *row = tide_db_stmt(&shard->db, TIDE_SHARD_VERSION);
        rc = tide_db_step(&shard->db, row, &there, err);
        if (rc != TIDE_OK || !there)
            continue;
        const tide_text id = tide_column_text(row, 0);
        (void)snprintf(one, sizeof one, "%u %.*s %" PRIu64 "\n", shard->key, (int)id.bytes, id.data,
                       tide_column_u64(row, 1));
        version = tide_hash(version, tide_text_of(one));
    }
    if (rc == TIDE_OK)
        *version_out = version;
    return rc;
}
