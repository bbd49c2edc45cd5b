/* salvage.c - copies what is readable in damaged shards into the archive (M19).
 *
 * An unreadable page hides its rows and ends every walk that reaches it.  So the rowids are
 * collected from the table in both directions and from each of its indexes; then every message is
 * read separately.  Bytes that differ from what was stored (ARC2) are not copied. */
#include "mail/archive/inside.h"
#include "base/check.h"

#include <stdlib.h>

enum { ROWS_MAX = 1 << 28, LABELS_MAX = 256 };

struct salvage {
    tide_archive *to;
    tide_shards from;
    struct tide_shard *shard;
    tide_packer *packer;
    int64_t *rows;
    size_t rows_count, rows_capacity;
    tide_buf raw, label_texts;
    tide_text labels[LABELS_MAX];
    size_t labels_count;
    uint64_t ticket;
    struct tide_salvaged *salvaged;
};

/* Errors caused by a damaged file; any other error (no memory, full disk) stops the copying. */
static bool is_damage(tide_status rc)
{
    return rc == TIDE_CORRUPT || rc == TIDE_INVALID || rc == TIDE_NEWER || rc == TIDE_FULL;
}

/* ---- collecting the rowids ---- */

static tide_status rows_add(struct salvage *salvage, const char *sql, tide_error *err)
{
    tide_db *db = &salvage->shard->db;
    sqlite3_stmt *row = NULL;
    tide_status rc = TIDE_OK;
    if (sqlite3_prepare_v2(db->handle, sql, -1, &row, NULL) != SQLITE_OK)
        return TIDE_OK; /* this path is unreadable; the others remain */
    tide_error damage = {TIDE_OK, 0, ""};
    while (tide_db_next(db, row, &rc, &damage)) {
        if (!TIDE_GROW_IN(salvage->to->mem, salvage->rows, salvage->rows_capacity,
                          salvage->rows_count + 1, ROWS_MAX)) {
            rc = tide_error_set(&damage, TIDE_NO_MEMORY, "no memory for %zu messages",
                                salvage->rows_count);
            break;
        }
        salvage->rows[salvage->rows_count++] = sqlite3_column_int64(row, 0);
    }
    (void)sqlite3_finalize(row);
    if (rc == TIDE_OK || is_damage(rc))
        return TIDE_OK; /* keep what this path gave */
    if (err != NULL)
        *err = damage;
    return rc;
}

static int row_order(const void *a, const void *b)
{
    const int64_t *x = a;
    const int64_t *y = b;
    return (*x > *y) - (*x < *y);
}

static tide_status rows_find(struct salvage *salvage, tide_error *err)
{
    static const char *const ways[] = {
        "SELECT id FROM message NOT INDEXED ORDER BY id",
        "SELECT id FROM message NOT INDEXED ORDER BY id DESC",
        "SELECT id FROM message INDEXED BY message_gmail_id ORDER BY gmail_id",
        "SELECT id FROM message INDEXED BY message_gmail_id ORDER BY gmail_id DESC",
        "SELECT id FROM message INDEXED BY message_thread ORDER BY thread_id",
        "SELECT id FROM message INDEXED BY message_bytes ORDER BY bytes",
        "SELECT id FROM message INDEXED BY message_gone WHERE gone_ms IS NOT NULL ORDER BY id",
    };
    tide_status rc = TIDE_OK;
    salvage->rows_count = 0;
    for (size_t i = 0; rc == TIDE_OK && i < sizeof ways / sizeof ways[0]; i++)
        rc = rows_add(salvage, ways[i], err);
    if (salvage->rows_count > 0)
        qsort(salvage->rows, salvage->rows_count, sizeof *salvage->rows, row_order);
    size_t count = 0;
    for (size_t i = 0; i < salvage->rows_count; i++)
        if (count == 0 || salvage->rows[count - 1] != salvage->rows[i])
            salvage->rows[count++] = salvage->rows[i];
    salvage->rows_count = count;
    return rc;
}

/* ---- one message ---- */

/* A number about a message; `otherwise` if it cannot be read. */
static int64_t number_of(struct salvage *salvage, const char *sql, int64_t message,
                         int64_t otherwise)
{
    tide_auto_prepared *row = NULL;
    int64_t number = otherwise;
    if (sqlite3_prepare_v2(salvage->shard->db.handle, sql, -1, &row, NULL) != SQLITE_OK)
        return otherwise;
    (void)sqlite3_bind_int64(row, 1, message);
    if (sqlite3_step(row) == SQLITE_ROW)
        number = sqlite3_column_int64(row, 0);
    return number;
}

static tide_status read_row(struct salvage *salvage, int64_t id, bool *there_out,
                            struct tide_stored *stored, tide_error *err)
{
    tide_auto_stmt *row = tide_db_ask(&salvage->shard->db, TIDE_SHARD_AT, id);
    TIDE_TRY(tide_db_step(&salvage->shard->db, row, there_out, err));
    if (*there_out)
        tide_shard_stored(salvage->shard, row, stored);
    return TIDE_OK;
}

/* The readable labels; a message without its labels is better than none. */
static tide_status read_labels(struct salvage *salvage, int64_t id, tide_error *err)
{
    sqlite3_stmt *row = tide_db_stmt(&salvage->shard->db, TIDE_SHARD_LABELS_OF);
    size_t ends[LABELS_MAX];
    size_t count = 0;
    tide_status rc = TIDE_OK;
    tide_buf_clear(&salvage->label_texts);
    (void)sqlite3_bind_int64(row, 1, id);
    while (count < LABELS_MAX && tide_db_next(&salvage->shard->db, row, &rc, err)) {
        const tide_text label = tide_column_text(row, 0);
        rc = tide_buf_add(&salvage->label_texts, label.data, label.bytes);
        if (rc != TIDE_OK)
            break;
        ends[count++] = salvage->label_texts.bytes;
    }
    tide_db_end(row);
    for (size_t i = 0; i < count; i++) {
        const size_t begin = i == 0 ? 0 : ends[i - 1];
        salvage->labels[i] =
            (tide_text){tide_buf_text(&salvage->label_texts).data + begin, ends[i] - begin};
    }
    salvage->labels_count = count;
    return is_damage(rc) ? TIDE_OK : rc;
}

static tide_status put(struct salvage *salvage, const struct tide_stored *stored, tide_text id,
                       tide_text thread, int64_t content, tide_error *err)
{
    tide_buf_clear(&salvage->raw);
    TIDE_TRY(tide_shard_raw(salvage->shard, salvage->packer, content, &salvage->raw, err));
    const struct tide_incoming incoming = {
        .gmail_id = id,
        .thread_id = thread,
        .history_id = tide_text_of(stored->history_id),
        .internal_ms = stored->internal_ms,
        .labels = salvage->labels,
        .labels_count = salvage->labels_count,
        .said_bytes = (uint64_t)number_of(
            salvage, "SELECT said_bytes FROM doubt WHERE message = ?1", stored->rowid, 0),
        .held = stored->copy == TIDE_COPY_HELD,
        .raw = tide_buf_text(&salvage->raw),
    };
    return tide_archive_put(salvage->to, &incoming, NULL, &salvage->ticket, err);
}

/* Bytes that the server replaced later; stored first, so that the newer ones replace them. */
static tide_status put_earlier(struct salvage *salvage, const struct tide_stored *stored,
                               tide_error *err)
{
    const tide_text id = tide_text_of(stored->gmail_id);
    tide_status rc = TIDE_OK;
    for (int64_t until_ms = 0; rc == TIDE_OK || is_damage(rc);) {
        sqlite3_stmt *row = NULL;
        int64_t content = 0;
        if (sqlite3_prepare_v2(salvage->shard->db.handle,
                               "SELECT content, until_ms FROM earlier WHERE message = ?1"
                               " AND until_ms > ?2 ORDER BY until_ms LIMIT 1",
                               -1, &row, NULL) != SQLITE_OK)
            return TIDE_OK;
        (void)sqlite3_bind_int64(row, 1, stored->rowid);
        (void)sqlite3_bind_int64(row, 2, until_ms);
        const bool there = sqlite3_step(row) == SQLITE_ROW;
        if (there) {
            content = sqlite3_column_int64(row, 0);
            until_ms = sqlite3_column_int64(row, 1);
        }
        (void)sqlite3_finalize(row);
        if (!there)
            return TIDE_OK;
        rc = put(salvage, stored, id, tide_text_of(stored->thread_id), content, err);
    }
    return rc;
}

/* The id it had before it was restored to the server; it is found by either (M14). */
struct former {
    char id[TIDE_GMAIL_ID_BYTES_MAX + 1], thread[TIDE_GMAIL_ID_BYTES_MAX + 1];
    int64_t until_ms;
};

static bool read_former(struct salvage *salvage, int64_t message, struct former *former)
{
    tide_auto_prepared *row = NULL;
    if (sqlite3_prepare_v2(salvage->shard->db.handle,
                           "SELECT gmail_id, thread_id, until_ms FROM former WHERE message = ?1"
                           " ORDER BY until_ms DESC LIMIT 1",
                           -1, &row, NULL) != SQLITE_OK)
        return false;
    (void)sqlite3_bind_int64(row, 1, message);
    const bool there = sqlite3_step(row) == SQLITE_ROW;
    if (there) {
        tide_column_copy(row, 0, former->id, sizeof former->id);
        tide_column_copy(row, 1, former->thread, sizeof former->thread);
        former->until_ms = sqlite3_column_int64(row, 2);
    }
    return there && former->id[0] != '\0';
}

static tide_status rename_back(struct salvage *salvage, const struct tide_stored *stored,
                               const struct former *former, tide_error *err)
{
    const struct tide_renaming renaming = {.old_id = tide_text_of(former->id),
                                           .new_id = tide_text_of(stored->gmail_id),
                                           .thread_id = tide_text_of(stored->thread_id),
                                           .labels = salvage->labels,
                                           .labels_count = salvage->labels_count,
                                           .at_ms = former->until_ms};
    return tide_archive_rename(salvage->to, &renaming, &salvage->ticket, err);
}

static tide_status copy_message(struct salvage *salvage, const struct tide_stored *stored,
                                tide_error *err)
{
    const tide_text id = tide_text_of(stored->gmail_id);
    struct former former;
    const bool renamed = read_former(salvage, stored->rowid, &former);
    TIDE_TRY(read_labels(salvage, stored->rowid, err));
    if (!renamed)
        TIDE_TRY(put_earlier(salvage, stored, err));
    TIDE_TRY(put(salvage, stored, renamed ? tide_text_of(former.id) : id,
                 tide_text_of(renamed ? former.thread : stored->thread_id), stored->content, err));
    if (renamed)
        TIDE_TRY(rename_back(salvage, stored, &former, err));
    if (stored->copy == TIDE_COPY_DAMAGED)
        TIDE_TRY(tide_archive_doubt(salvage->to, id, &salvage->ticket, err));
    if (stored->gone)
        TIDE_TRY(tide_archive_gone(salvage->to, id,
                                   number_of(salvage, "SELECT gone_ms FROM message WHERE id = ?1",
                                             stored->rowid, stored->internal_ms),
                                   &salvage->ticket, err));
    return TIDE_OK;
}

static tide_status copy_row(struct salvage *salvage, int64_t id, tide_error *err)
{
    struct tide_stored stored;
    tide_error damage = {TIDE_OK, 0, ""};
    bool there = false;
    bool absent = true;
    tide_status rc = read_row(salvage, id, &there, &stored, &damage);
    if (rc == TIDE_OK && there && stored.gmail_id[0] != '\0') {
        const tide_text gmail_id = tide_text_of(stored.gmail_id);
        rc = tide_archive_absent(salvage->to, &gmail_id, 1, &absent, &damage);
        if (rc != TIDE_OK || !absent) {
            if (rc != TIDE_OK && err != NULL)
                *err = damage;
            return rc; /* the archive itself failed, or has it */
        }
        rc = copy_message(salvage, &stored, &damage);
    }
    salvage->salvaged->copied += rc == TIDE_OK && there;
    salvage->salvaged->unreadable += is_damage(rc);
    if (rc == TIDE_OK || is_damage(rc))
        return TIDE_OK;
    if (err != NULL)
        *err = damage;
    return rc;
}

/* ---- one shard ---- */

static tide_status copy_label_names(struct salvage *salvage, tide_error *err)
{
    tide_auto_stmt *row = tide_db_stmt(&salvage->shard->db, TIDE_SHARD_LABELS_ALL);
    tide_status rc = TIDE_OK;
    tide_status put_rc = TIDE_OK;
    while (put_rc == TIDE_OK && tide_db_next(&salvage->shard->db, row, &rc, NULL))
        if (tide_column_text(row, 1).bytes > 0)
            put_rc = tide_archive_label_name(salvage->to, tide_column_text(row, 0),
                                             tide_column_text(row, 1), tide_column_text(row, 2),
                                             &salvage->ticket, err);
    return put_rc;
}

static tide_status copy_shard(struct salvage *salvage, tide_error *err)
{
    TIDE_TRY(rows_find(salvage, err));
    for (size_t i = 0; i < salvage->rows_count; i++)
        TIDE_TRY(copy_row(salvage, salvage->rows[i], err));
    return copy_label_names(salvage, err);
}

static tide_status copy_shards(struct salvage *salvage, tide_error *err)
{
    tide_status rc = tide_shards_look(&salvage->from, err);
    for (size_t i = 0; rc == TIDE_OK && i < salvage->from.count; i++) {
        tide_error closed = {TIDE_OK, 0, ""};
        salvage->shard = salvage->from.list[i];
        rc = tide_shards_open(&salvage->from, salvage->shard, &closed);
        if (rc == TIDE_OK)
            rc = copy_shard(salvage, err);
        else if (rc == TIDE_NOT_FOUND)
            rc = TIDE_OK; /* nothing in it is readable (SHD5) */
        else if (err != NULL)
            *err = closed;
    }
    if (rc == TIDE_OK && salvage->ticket > 0)
        rc = tide_archive_sync(salvage->to, salvage->ticket, NULL, err);
    return rc;
}

tide_status tide_archive_salvage(tide_archive *archive, const char *dir,
                                 struct tide_salvaged *salvaged, tide_error *err)
{
    TIDE_ASSERT(archive->writer != NULL);
    struct tide_archive_options options = archive->options;
    options.dir = dir;
    options.read_only = true;
    struct salvage *salvage = tide_mem_new(archive->mem, sizeof *salvage);
    if (salvage == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory to copy damaged shards");
    salvage->to = archive;
    salvage->salvaged = salvaged;
    tide_shards_init(&salvage->from, &options, archive->mem);
    salvage->from.tolerant = true;
    tide_buf_init(&salvage->raw, archive->mem, TIDE_MESSAGE_BYTES_MAX);
    tide_buf_init(&salvage->label_texts, archive->mem, 1 << 20);
    tide_status rc = tide_packer_new(archive->mem, archive->options.level, &salvage->packer, err);
    if (rc == TIDE_OK)
        rc = copy_shards(salvage, err);
    tide_packer_free(salvage->packer);
    tide_shards_done(&salvage->from);
    tide_buf_done(&salvage->raw);
    tide_buf_done(&salvage->label_texts);
    tide_mem_free(archive->mem, salvage->rows, salvage->rows_capacity * sizeof *salvage->rows);
    tide_mem_free(archive->mem, salvage, sizeof *salvage);
    return rc;
}
