/* store.c - writes one message or one change into its shard.
 *
 * Why an id is unique over all shards (ARC3).  A message goes into the last part of the year of its
 * internal date, which never changes on the server; so an earlier copy can only be in a part of the
 * same year.  That is what servers promise, but ARC3 must not depend on it.  Therefore every shard
 * that may have the id is searched, whatever its year.  That is cheap because each shard knows its
 * least and greatest id: Gmail's ids ascend with time, so that the ranges of two years hardly
 * overlap and nearly every new message is looked up in one shard.  With unordered ids all shards
 * are searched, which is slower and just as correct.  There is one writer, and its connections see
 * its own open transactions, so that nothing can happen between the lookup and the insert. */
#include "mail/archive/inside.h"
#include "base/check.h"

/* ---- finding ---------------------------------------------------------------------- */

static tide_status find_stored(tide_archive *archive, tide_text gmail_id,
                               struct tide_shard **shard_out, struct tide_stored *stored_out,
                               tide_error *err)
{
    tide_shards *shards = &archive->writer->shards;
    *shard_out = NULL;
    for (size_t left = shards->count; left > 0; left--) { /* the newest is the most likely */
        struct tide_shard *shard = shards->list[left - 1];
        /* Its id range is known once it was open, and stays known. */
        TIDE_TRY(shard->known ? TIDE_OK : tide_shards_open(shards, shard, err));
        if (!tide_shard_may_have(shard, gmail_id))
            continue;
        bool found = false;
        TIDE_TRY(tide_shards_open(shards, shard, err));
        TIDE_TRY(tide_shard_find(shard, gmail_id, &found, stored_out, err));
        if (found) {
            *shard_out = shard;
            return TIDE_OK;
        }
    }
    return TIDE_OK;
}

/* ---- content ----------------------------------------------------------------------- */

struct storing {
    tide_archive *archive;
    struct tide_shard *shard;
    tide_text raw;
    size_t cuts_count;
    int64_t content;
    int64_t damaged; /* the row of these bytes whose body must be written again; 0: none */
};

/* Whether a row with that hash is there; `find` is CONTENT_FIND or PIECE_FIND. */
static tide_status find_hash(struct tide_shard *shard, tide_shard_sql find,
                             const uint8_t hash[TIDE_CONTENT_HASH_BYTES], int64_t *id_out,
                             tide_error *err)
{
    sqlite3_stmt *row =
        tide_db_ask(&shard->db, find, tide_value_bytes(hash, TIDE_CONTENT_HASH_BYTES));
    bool there = false;
    tide_status rc = tide_db_step(&shard->db, row, &there, err);
    if (rc == TIDE_OK)
        *id_out = there ? sqlite3_column_int64(row, 0) : 0;
    tide_db_end(row);
    return rc;
}

/* SQLite first copies a value that goes into a row.  A large body is therefore bound as a zeroblob,
 * which takes no memory, and then written over it. */
enum { LARGE_BODY_BYTES = 1 << 20 };

static void bind_body(sqlite3_stmt *stmt, int at, tide_text body)
{
    if (body.bytes > LARGE_BODY_BYTES)
        (void)sqlite3_bind_zeroblob64(stmt, at, body.bytes);
    else
        (void)sqlite3_bind_blob64(stmt, at, body.bytes == 0 ? "" : body.data, body.bytes,
                                  SQLITE_STATIC);
}

/* Adds the row, whose body was bound with bind_body(), and returns its id; or overwrites the row
 * `old`, if that is not 0. */
static tide_status add_row(tide_db *db, sqlite3_stmt *stmt, const char *table, tide_text body,
                           int64_t old, int64_t *id_out, tide_error *err)
{
    const tide_status rc = tide_db_run(db, stmt, err);
    if (stmt != NULL)
        (void)sqlite3_clear_bindings(stmt);
    if (rc != TIDE_OK)
        return rc;
    *id_out = old != 0 ? old : sqlite3_last_insert_rowid(db->handle);
    if (body.bytes <= LARGE_BODY_BYTES)
        return TIDE_OK;
    sqlite3_blob *blob = NULL;
    int code = sqlite3_blob_open(db->handle, "main", table, "body", *id_out, 1, &blob);
    if (code == SQLITE_OK)
        code = sqlite3_blob_write(blob, body.data, (int)body.bytes, 0);
    const int closed = sqlite3_blob_close(blob);
    if (code == SQLITE_OK)
        code = closed;
    return code == SQLITE_OK ? TIDE_OK : tide_db_failed(db, code, "write a large body", err);
}

static tide_status add_piece(struct storing *storing, tide_text piece, int64_t *id_out,
                             tide_error *err)
{
    struct tide_shard *shard = storing->shard;
    tide_packer *packer = storing->archive->writer->packer;
    uint8_t hash[TIDE_CONTENT_HASH_BYTES];
    struct tide_packed packed;
    tide_status rc = tide_content_hash(packer, piece, hash, err);
    bool whole = true;
    if (rc == TIDE_OK)
        rc = find_hash(shard, TIDE_SHARD_PIECE_FIND, hash, id_out, err);
    if (rc == TIDE_OK && *id_out != 0)
        rc = tide_shard_piece_is(shard, packer, *id_out, piece, &whole, err);
    if (rc != TIDE_OK || (*id_out != 0 && whole))
        return rc;
    TIDE_TRY(tide_content_pack(packer, piece, &packed, err));
    const int64_t old = *id_out;
    sqlite3_stmt *stmt =
        tide_db_stmt(&shard->db, old == 0 ? TIDE_SHARD_PIECE_ADD : TIDE_SHARD_PIECE_MEND);
    if (old != 0)
        (void)sqlite3_bind_int64(stmt, 5, old);
    (void)sqlite3_bind_blob(stmt, 1, hash, sizeof hash, SQLITE_STATIC);
    tide_bind_u64(stmt, 2, piece.bytes);
    (void)sqlite3_bind_int(stmt, 3, (int)packed.codec);
    bind_body(stmt, 4, packed.body);
    return add_row(&shard->db, stmt, "piece", packed.body, old, id_out, err);
}

/* Decodes the n-th cut, stores it and passes it to the join: the check uses the same bytes that
 * went into the file. */
static tide_status store_piece(void *arg, size_t index, tide_text *piece_out, tide_error *err)
{
    struct storing *storing = arg;
    struct tide_writer *writer = storing->archive->writer;
    const struct tide_cut *cut = &writer->cuts[index];
    int64_t piece = 0;
    tide_buf_rest(&writer->piece);
    TIDE_TRY(tide_cut_decode(storing->raw, cut, &writer->piece, err));
    TIDE_TRY(add_piece(storing, tide_buf_text(&writer->piece), &piece, err));
    sqlite3_stmt *stmt = tide_db_ask(&storing->shard->db, TIDE_SHARD_CUT_ADD, storing->content,
                                     cut->at, piece, cut->line, cut->crlf);
    *piece_out = tide_buf_text(&writer->piece);
    return tide_db_run(&storing->shard->db, stmt, err);
}

static tide_status add_content(struct storing *storing, tide_text body,
                               const uint8_t hash[TIDE_CONTENT_HASH_BYTES], tide_error *err)
{
    struct tide_shard *shard = storing->shard;
    struct tide_packed packed;
    TIDE_TRY(tide_content_pack(storing->archive->writer->packer, body, &packed, err));
    sqlite3_stmt *stmt = tide_db_stmt(&shard->db, storing->damaged == 0 ? TIDE_SHARD_CONTENT_ADD
                                                                        : TIDE_SHARD_CONTENT_MEND);
    if (storing->damaged != 0)
        (void)sqlite3_bind_int64(stmt, 6, storing->damaged);
    (void)sqlite3_bind_blob(stmt, 1, hash, TIDE_CONTENT_HASH_BYTES, SQLITE_STATIC);
    tide_bind_u64(stmt, 2, storing->raw.bytes);
    tide_bind_u64(stmt, 3, body.bytes);
    (void)sqlite3_bind_int(stmt, 4, (int)packed.codec);
    bind_body(stmt, 5, packed.body);
    TIDE_TRY(add_row(&shard->db, stmt, "content", packed.body, storing->damaged, &storing->content,
                     err));
    /* Cuts of the damaged content, or of a lost row that had the same id. */
    return tide_db_do(&shard->db, err, TIDE_SHARD_CUTS_DROP, storing->content);
}

/* A message without its cuts, in the writer's scratch buffer. */
static tide_status leave_out(struct storing *storing, tide_error *err)
{
    struct tide_writer *writer = storing->archive->writer;
    size_t done = 0;
    tide_status rc = TIDE_OK;
    tide_buf_rest(&writer->scratch);
    for (size_t i = 0; rc == TIDE_OK && i < storing->cuts_count; i++) {
        rc = tide_buf_add(&writer->scratch, storing->raw.data + done, writer->cuts[i].begin - done);
        done = writer->cuts[i].end;
    }
    if (rc == TIDE_OK)
        rc = tide_buf_add(&writer->scratch, storing->raw.data + done, storing->raw.bytes - done);
    return rc == TIDE_OK ? TIDE_OK
                         : tide_error_set(err, TIDE_NO_MEMORY, "no memory to store %zu bytes",
                                          storing->raw.bytes);
}

/* Stores it with its cuts, and joins it again to check it (ARC2).  *exact_out false: the check
 * failed, and the savepoint must be rolled back. */
static tide_status store_cut(struct storing *storing, const uint8_t hash[TIDE_CONTENT_HASH_BYTES],
                             bool *exact_out, tide_error *err)
{
    struct tide_writer *writer = storing->archive->writer;
    TIDE_TRY(leave_out(storing, err));
    TIDE_TRY(add_content(storing, tide_buf_text(&writer->scratch), hash, err));
    struct tide_comparison with = {storing->raw, 0, false};
    tide_status rc =
        tide_content_join(tide_buf_text(&writer->scratch), writer->cuts, storing->cuts_count,
                          store_piece, storing, tide_content_compare, &with, err);
    *exact_out = rc == TIDE_OK && with.at == with.raw.bytes;
    return with.differs ? TIDE_OK : rc;
}

/* Looks for a row of these bytes and reads it back before a message refers to it: a damaged row
 * would damage every message with the same bytes, so it is written again. */
static tide_status find_content(struct storing *storing,
                                const uint8_t hash[TIDE_CONTENT_HASH_BYTES], tide_error *err)
{
    struct tide_shard *shard = storing->shard;
    bool whole = false;
    TIDE_TRY(find_hash(shard, TIDE_SHARD_CONTENT_FIND, hash, &storing->content, err));
    if (storing->content == 0)
        return TIDE_OK;
    TIDE_TRY(tide_shard_content_is(shard, storing->archive->writer->packer, storing->content,
                                   storing->raw, &whole, err));
    if (whole)
        return TIDE_OK;
    TIDE_SEEN("archive: damaged bytes were written again");
    storing->damaged = storing->content;
    storing->content = 0;
    return TIDE_OK;
}

/* The row of these bytes in this shard, added if missing. */
static tide_status store_content(struct storing *storing,
                                 const uint8_t hash[TIDE_CONTENT_HASH_BYTES], tide_error *err)
{
    struct tide_writer *writer = storing->archive->writer;
    tide_db *db = &storing->shard->db;
    tide_status rc = find_content(storing, hash, err);
    if (rc != TIDE_OK || storing->content != 0)
        return rc;
    storing->cuts_count = tide_content_cuts(storing->raw, writer->cuts);
    if (storing->cuts_count == 0)
        return add_content(storing, storing->raw, hash, err);

    bool exact = false;
    rc = tide_db_exec(db, "SAVEPOINT cut", err);
    if (rc == TIDE_OK)
        rc = store_cut(storing, hash, &exact, err);
    if (rc == TIDE_OK && exact)
        return tide_db_exec(db, "RELEASE cut", err);
    if (rc != TIDE_OK)
        return rc; /* the whole transaction is rolled back */
    TIDE_SEEN("archive: a message could not be cut exactly");
    TIDE_TRY(tide_db_exec(db, "ROLLBACK TO cut; RELEASE cut", err));
    return add_content(storing, storing->raw, hash, err);
}

/* ---- labels -------------------------------------------------------------------------- */

bool tide_history_earlier(tide_text a, tide_text b)
{
    tide_text both[] = {a, b};
    for (int i = 0; i < 2; i++) {
        while (both[i].bytes > 0 && both[i].data[0] == '0')
            both[i] = (tide_text){both[i].data + 1, both[i].bytes - 1};
        for (size_t at = 0; at < both[i].bytes; at++)
            if (both[i].data[at] < '0' || both[i].data[at] > '9')
                return false;
    }
    if (a.bytes == 0 || b.bytes == 0)
        return false;
    if (both[0].bytes != both[1].bytes)
        return both[0].bytes < both[1].bytes;
    return both[0].bytes > 0 && memcmp(both[0].data, both[1].data, both[0].bytes) < 0;
}

/* What the server last said about a label, to this process; NULL: nothing. */
static const struct tide_label_known *label_known(const struct tide_writer *writer, tide_text label)
{
    for (size_t i = 0; i < writer->labels_count; i++)
        if (tide_text_equal(writer->labels[i].id, label))
            return &writer->labels[i];
    return NULL;
}

static tide_status label_row(tide_archive *archive, struct tide_shard *shard, tide_text label,
                             int64_t *id_out, tide_error *err)
{
    sqlite3_stmt *row = tide_db_ask(&shard->db, TIDE_SHARD_LABEL_FIND, label);
    bool there = false;
    tide_status rc = tide_db_step(&shard->db, row, &there, err);
    if (rc == TIDE_OK && there)
        *id_out = sqlite3_column_int64(row, 0);
    tide_db_end(row);
    if (rc != TIDE_OK || there)
        return rc;
    /* Every shard names its own labels: a user may have only this one. */
    const struct tide_label_known *known = label_known(archive->writer, label);
    rc = tide_db_do(&shard->db, err, TIDE_SHARD_LABEL_ADD, label,
                    tide_value_or_null(known == NULL ? TIDE_TEXT_NONE : known->name),
                    tide_value_or_null(known == NULL ? TIDE_TEXT_NONE : known->type));
    *id_out = sqlite3_last_insert_rowid(shard->db.handle);
    return rc;
}

/* Adds or removes a label; *changed_out says whether that changed anything. */
static tide_status label_set(struct tide_shard *shard, int64_t message, int64_t label, bool added,
                             bool *changed_out, tide_error *err)
{
    TIDE_TRY(tide_db_do(&shard->db, err, added ? TIDE_SHARD_LABEL_PUT : TIDE_SHARD_LABEL_TAKE,
                        message, label));
    if (changed_out != NULL)
        *changed_out = sqlite3_changes(shard->db.handle) > 0;
    return TIDE_OK;
}

struct change {
    int64_t message, label;
    bool added;
    int64_t at_ms;
    tide_text history_id;
};

static tide_status change_add(struct tide_shard *shard, const struct change *change,
                              tide_error *err)
{
    return tide_db_do(&shard->db, err, TIDE_SHARD_CHANGE_ADD, change->message, change->label,
                      change->added, change->at_ms, change->history_id);
}

static tide_status change_known(struct tide_shard *shard, const struct change *change,
                                bool *known_out, tide_error *err)
{
    tide_auto_stmt *row = tide_db_ask(&shard->db, TIDE_SHARD_CHANGE_FIND, change->message,
                                      change->label, change->added, change->history_id);
    return tide_db_step(&shard->db, row, known_out, err);
}

/* Reads the labels that a message has first, because removing while reading would change what is
 * read. */
static tide_status labels_now(struct tide_shard *shard, int64_t message,
                              int64_t labels[TIDE_ARCHIVE_LABELS_MAX], size_t *count_out,
                              tide_error *err)
{
    tide_auto_stmt *row = tide_db_ask(&shard->db, TIDE_SHARD_LABELS_NOW, message);
    bool there = false;
    tide_status rc = tide_db_step(&shard->db, row, &there, err);
    for (*count_out = 0; rc == TIDE_OK && there && *count_out < TIDE_ARCHIVE_LABELS_MAX;) {
        labels[(*count_out)++] = sqlite3_column_int64(row, 0);
        rc = tide_db_step(&shard->db, row, &there, err);
    }
    return rc;
}

/* Sets the labels to those of `incoming` and records the changes. */
static tide_status labels_follow(tide_archive *archive, struct tide_shard *shard, int64_t message,
                                 const struct tide_incoming *incoming, int64_t now_ms,
                                 tide_error *err)
{
    int64_t had[TIDE_ARCHIVE_LABELS_MAX];
    size_t had_count = 0;
    struct change change = {
        .message = message, .added = true, .at_ms = now_ms, .history_id = incoming->history_id};
    tide_status rc = labels_now(shard, message, had, &had_count, err);
    for (size_t i = 0; rc == TIDE_OK && i < incoming->labels_count; i++) {
        bool changed = false;
        rc = label_row(archive, shard, incoming->labels[i], &change.label, err);
        if (rc == TIDE_OK)
            rc = label_set(shard, message, change.label, true, &changed, err);
        if (rc == TIDE_OK && changed)
            rc = change_add(shard, &change, err);
        for (size_t j = 0; j < had_count; j++)
            if (had[j] == change.label)
                had[j] = 0; /* kept */
    }
    change.added = false;
    for (size_t j = 0; rc == TIDE_OK && j < had_count; j++) {
        change.label = had[j];
        if (change.label != 0)
            rc = label_set(shard, message, change.label, false, NULL, err);
        if (rc == TIDE_OK && change.label != 0)
            rc = change_add(shard, &change, err);
    }
    return rc;
}

/* ---- messages ------------------------------------------------------------------------ */

/* The server has it, even if it was marked as gone (M21).  Thread and labels are updated unless the
 * stored ones are newer. */
static tide_status is_back(tide_archive *archive, struct tide_shard *shard,
                           const struct tide_stored *stored, const struct tide_incoming *incoming,
                           int64_t now_ms, tide_error *err)
{
    TIDE_TRY(tide_db_do(&shard->db, err, TIDE_SHARD_BACK, stored->rowid));
    if (tide_history_earlier(incoming->history_id, tide_text_of(stored->history_id)))
        return TIDE_OK;
    TIDE_TRY(tide_db_do(&shard->db, err, TIDE_SHARD_MESSAGE_AGAIN, stored->rowid,
                        incoming->thread_id, incoming->history_id));
    return labels_follow(archive, shard, stored->rowid, incoming, now_ms, err);
}

static int64_t second_end(int64_t internal_ms)
{
    const int64_t over = internal_ms % 1000;
    return internal_ms - over + (over < 0 ? -1 : 999);
}

/* Makes room for the milliseconds that the server will add to the date of a held copy: its id is that
 * of the end of its second, so that no date of that second is behind the id (SHD4). */
static tide_status place_in(struct tide_shard *shard, int64_t internal_ms, bool held,
                            int64_t *id_out, tide_error *err)
{
    TIDE_TRY(tide_shard_place(shard, held ? second_end(internal_ms) : internal_ms, id_out, err));
    const int64_t late = *id_out - tide_shard_wanted(shard, internal_ms);
    if (late > shard->late)
        shard->late = late;
    return TIDE_OK;
}

/* The shard for a new message and its position there. */
static tide_status find_place(tide_archive *archive, int64_t internal_ms, bool held,
                              struct tide_shard **shard_out, int64_t *id_out, tide_error *err)
{
    tide_shards *shards = &archive->writer->shards;
    int32_t year = tide_shard_year(internal_ms);
    uint32_t part = 1;
    while (tide_shards_get(shards, tide_shard_key(year, part + 1)) != NULL)
        part++;
    for (;; part++) { /* terminates: tide_shards_make() refuses too many */
        struct tide_shard *shard = NULL;
        TIDE_TRY(tide_shards_make(shards, year, part, &shard, err));
        if (shard->full)
            continue;
        TIDE_TRY(tide_writer_begin(archive, shard, err));
        *shard_out = shard;
        return place_in(shard, internal_ms, held, id_out, err);
    }
}

static void span_add(struct tide_shard *shard, tide_text gmail_id)
{
    char text[TIDE_GMAIL_ID_BYTES_MAX + 1];
    memcpy(text, gmail_id.data, gmail_id.bytes);
    text[gmail_id.bytes] = '\0';
    if (shard->id_least[0] == '\0' || strcmp(text, shard->id_least) < 0)
        memcpy(shard->id_least, text, gmail_id.bytes + 1);
    if (strcmp(text, shard->id_greatest) > 0)
        memcpy(shard->id_greatest, text, gmail_id.bytes + 1);
}

static tide_status add_message(tide_archive *archive, struct tide_entry *entry,
                               const uint8_t hash[TIDE_CONTENT_HASH_BYTES], int64_t now_ms,
                               tide_error *err)
{
    const struct tide_incoming *incoming = &entry->as.message.incoming;
    const tide_text raw = tide_buf_text(&entry->as.message.raw);
    struct storing storing = {.archive = archive, .raw = raw};
    int64_t id = 0;
    TIDE_TRY(find_place(archive, incoming->internal_ms, incoming->held, &storing.shard, &id, err));
    TIDE_TRY(store_content(&storing, hash, err));
    struct tide_shard *shard = storing.shard;
    tide_status rc = tide_db_do(&shard->db, err, TIDE_SHARD_MESSAGE_ADD, id, incoming->gmail_id,
                                incoming->thread_id, incoming->history_id, incoming->internal_ms,
                                storing.content, raw.bytes, now_ms);
    for (size_t i = 0; rc == TIDE_OK && i < incoming->labels_count; i++) {
        int64_t label = 0;
        rc = label_row(archive, shard, incoming->labels[i], &label, err);
        if (rc == TIDE_OK)
            rc = label_set(shard, id, label, true, NULL, err);
    }
    if (rc == TIDE_OK)
        rc = incoming->held
                 ? tide_doubt_held(shard, id, now_ms, err)
                 : tide_doubt_new(shard, id, incoming->said_bytes, raw.bytes, now_ms, err);
    shard->messages++;
    shard->raw_bytes += raw.bytes;
    shard->indexed = false;
    entry->as.message.shard = shard->key;
    entry->as.message.content = storing.content;
    span_add(shard, incoming->gmail_id);
    return rc;
}

/* Indexes it again.  More words are added to the existing ones: if several rows of words have the
 * same rowid, FTS5 uses the newest for each word. */
static tide_status index_anew(struct tide_shard *shard, int64_t message, tide_error *err)
{
    static const tide_shard_sql both[] = {TIDE_SHARD_HEAD_DROP, TIDE_SHARD_UNMARK};
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < sizeof both / sizeof both[0]; i++)
        rc = tide_db_do(&shard->db, err, both[i], message);
    shard->indexed = false;
    return rc;
}

/* Whether the bytes that a message has now say anything that the new ones do not. */
static tide_status adds_something(const struct storing *storing, const struct tide_stored *stored,
                                  bool *adds_out, tide_error *err)
{
    tide_packer *packer = storing->archive->writer->packer;
    if (stored->copy == TIDE_COPY_HELD) /* where it came from, line ends were another's choice */
        return tide_shard_content_differs(storing->shard, packer, stored->content, storing->raw,
                                          adds_out, err);
    return tide_shard_content_adds(storing->shard, packer, stored->content,
                                   stored->copy == TIDE_COPY_SHORT ? storing->raw : TIDE_TEXT_NONE,
                                   adds_out, err);
}

/* Points a message to other bytes.  The earlier ones are kept, unless they cannot be read, are short
 * and the beginning of the new ones, or held and the same lines. */
static tide_status refer_to(struct storing *storing, const struct tide_stored *stored,
                            int64_t now_ms, tide_error *err)
{
    struct tide_shard *shard = storing->shard;
    bool adds = false;
    TIDE_TRY(adds_something(storing, stored, &adds, err));
    if (adds)
        TIDE_TRY(tide_db_do(&shard->db, err, TIDE_SHARD_EARLIER_ADD, stored->rowid, stored->content,
                            now_ms));
    if (stored->copy == TIDE_COPY_SHORT || (stored->copy == TIDE_COPY_HELD && adds))
        TIDE_TRY(index_anew(shard, stored->rowid, err));
    shard->raw_bytes += storing->raw.bytes - stored->bytes;
    return tide_db_do(&shard->db, err, TIDE_SHARD_MESSAGE_CONTENT, stored->rowid, storing->content,
                      storing->raw.bytes);
}

/* The new bytes of a stored message.  A server should never send other bytes than before; the new
 * ones are what it has now, the old ones are what the user had. */
static tide_status put_bytes(tide_archive *archive, struct tide_shard *shard,
                             const struct tide_stored *stored, tide_text raw,
                             const uint8_t hash[TIDE_CONTENT_HASH_BYTES], int64_t now_ms,
                             tide_error *err)
{
    struct storing storing = {.archive = archive, .shard = shard, .raw = raw};
    const tide_status rc = store_content(&storing, hash, err);
    if (rc != TIDE_OK || (storing.content == stored->content && raw.bytes == stored->bytes))
        return rc;
    TIDE_SEEN("archive: other bytes for a stored message");
    return refer_to(&storing, stored, now_ms, err);
}

/* Adopts the server's date of a held message, whose own has no milliseconds.  Another second would
 * be another position, which a message does not leave. */
static tide_status mend_date(struct tide_shard *shard, const struct tide_stored *stored,
                             int64_t internal_ms, tide_error *err)
{
    if (stored->copy != TIDE_COPY_HELD || stored->internal_ms == internal_ms ||
        second_end(stored->internal_ms) != second_end(internal_ms) ||
        tide_shard_wanted(shard, internal_ms) > stored->rowid)
        return TIDE_OK;
    const int64_t late = stored->rowid - tide_shard_wanted(shard, internal_ms);
    if (late > shard->late)
        shard->late = late;
    return tide_db_do(&shard->db, err, TIDE_SHARD_DATE_MEND, stored->rowid, internal_ms);
}

/* A held copy of a message that is stored is of use only where the stored bytes cannot be read. */
static tide_status put_held(tide_archive *archive, struct tide_shard *shard,
                            const struct tide_stored *stored, tide_text raw,
                            const uint8_t hash[TIDE_CONTENT_HASH_BYTES], int64_t now_ms,
                            tide_error *err)
{
    if (stored->copy != TIDE_COPY_DAMAGED)
        return TIDE_OK;
    TIDE_TRY(tide_writer_begin(archive, shard, err));
    TIDE_TRY(put_bytes(archive, shard, stored, raw, hash, now_ms, err));
    return tide_doubt_held(shard, stored->rowid, now_ms, err);
}

static tide_status put_again(tide_archive *archive, struct tide_shard *shard,
                             const struct tide_stored *stored, const struct tide_incoming *incoming,
                             tide_text raw, const uint8_t hash[TIDE_CONTENT_HASH_BYTES],
                             int64_t now_ms, tide_error *err)
{
    TIDE_TRY(tide_writer_begin(archive, shard, err));
    if (tide_doubt_is_better(stored, incoming->said_bytes, raw.bytes))
        TIDE_TRY(put_bytes(archive, shard, stored, raw, hash, now_ms, err));
    TIDE_TRY(mend_date(shard, stored, incoming->internal_ms, err));
    TIDE_TRY(tide_doubt_again(shard, stored, incoming->said_bytes, raw.bytes, now_ms, err));
    if (tide_import_id_is(incoming->gmail_id))
        return TIDE_OK; /* a file takes no labels: others may have had the message too */
    return is_back(archive, shard, stored, incoming, now_ms, err);
}

static tide_status apply_message(tide_archive *archive, struct tide_entry *entry, tide_error *err)
{
    const struct tide_incoming *incoming = &entry->as.message.incoming;
    const tide_text raw = tide_buf_text(&entry->as.message.raw);
    const int64_t now_ms = (int64_t)tide_world_now_unix_ms(archive->world);
    uint8_t hash[TIDE_CONTENT_HASH_BYTES];
    struct tide_shard *shard = NULL;
    struct tide_stored stored;
    TIDE_TRY(tide_content_hash(archive->writer->packer, raw, hash, err));
    TIDE_TRY(find_stored(archive, incoming->gmail_id, &shard, &stored, err));
    entry->as.message.content = 0; /* it may have been added in a transaction that failed */
    if (shard != NULL && incoming->held)
        return put_held(archive, shard, &stored, raw, hash, now_ms, err);
    if (shard != NULL)
        return put_again(archive, shard, &stored, incoming, raw, hash, now_ms, err);
    return add_message(archive, entry, hash, now_ms, err);
}

/* ---- changes -------------------------------------------------------------------------- */

static tide_status apply_change(tide_archive *archive, const struct tide_label_change *told,
                                tide_error *err)
{
    struct tide_shard *shard = NULL;
    struct tide_stored stored;
    TIDE_TRY(find_stored(archive, told->gmail_id, &shard, &stored, err));
    if (shard == NULL)
        return TIDE_OK;
    if (told->unlisted && stored.gone)
        return TIDE_OK; /* it was found to be gone meanwhile, and keeps the labels it had */
    if (told->offered && stored.history_id[0] != '\0')
        return TIDE_OK; /* a sync beside the import stored it meanwhile: the server decides (M18) */
    struct change change = {.message = stored.rowid,
                            .added = told->added,
                            .at_ms = told->at_ms,
                            .history_id = told->history_id};
    bool known = false;
    TIDE_TRY(tide_writer_begin(archive, shard, err));
    TIDE_TRY(label_row(archive, shard, told->label, &change.label, err));
    if (told->history_id.bytes > 0)
        TIDE_TRY(change_known(shard, &change, &known, err));
    if (known)
        return TIDE_OK;
    TIDE_TRY(change_add(shard, &change, err));
    if (tide_history_earlier(told->history_id, tide_text_of(stored.history_id)))
        return TIDE_OK;
    TIDE_TRY(label_set(shard, stored.rowid, change.label, told->added, NULL, err));
    if (told->history_id.bytes == 0)
        return TIDE_OK;
    /* A message whose labels the server changes exists (M21); a later deletion is applied later. */
    TIDE_TRY(tide_db_do(&shard->db, err, TIDE_SHARD_BACK, stored.rowid));
    return tide_db_do(&shard->db, err, TIDE_SHARD_HISTORY, stored.rowid, told->history_id);
}

static tide_status mark_gone(struct tide_shard *shard, int64_t message, int64_t at_ms,
                             tide_error *err)
{
    return tide_db_do(&shard->db, err, TIDE_SHARD_GONE, message, at_ms);
}

/* Begins a transaction where a message is stored; *shard_out NULL: it is not stored. */
static tide_status begin_stored(tide_archive *archive, tide_text gmail_id,
                                struct tide_shard **shard_out, struct tide_stored *stored_out,
                                tide_error *err)
{
    const tide_status rc = find_stored(archive, gmail_id, shard_out, stored_out, err);
    return rc == TIDE_OK && *shard_out != NULL ? tide_writer_begin(archive, *shard_out, err) : rc;
}

/* `mark` writes the mark of a stored message. */
static tide_status apply_mark(tide_archive *archive, tide_text gmail_id, int64_t at_ms,
                              tide_status (*mark)(struct tide_shard *shard, int64_t message,
                                                  int64_t at_ms, tide_error *err),
                              tide_error *err)
{
    struct tide_shard *shard = NULL;
    struct tide_stored stored;
    const tide_status rc = begin_stored(archive, gmail_id, &shard, &stored, err);
    return rc == TIDE_OK && shard != NULL ? mark(shard, stored.rowid, at_ms, err) : rc;
}

static tide_status apply_back(tide_archive *archive, const struct tide_incoming *told,
                              tide_error *err)
{
    const int64_t now_ms = (int64_t)tide_world_now_unix_ms(archive->world);
    struct tide_shard *shard = NULL;
    struct tide_stored stored;
    const tide_status rc = begin_stored(archive, told->gmail_id, &shard, &stored, err);
    return rc == TIDE_OK && shard != NULL ? is_back(archive, shard, &stored, told, now_ms, err)
                                          : rc;
}

static tide_status rename_row(struct tide_shard *shard, const struct tide_stored *stored,
                              const struct tide_renaming *renaming, tide_error *err)
{
    TIDE_TRY(tide_db_do(&shard->db, err, TIDE_SHARD_FORMER_ADD, stored->rowid, renaming->old_id,
                        stored->thread_id, renaming->at_ms));
    tide_status rc = tide_db_do(&shard->db, err, TIDE_SHARD_RENAME, stored->rowid, renaming->new_id,
                                renaming->thread_id);
    span_add(shard, renaming->new_id);
    return rc;
}

/* Changes one shard, so that a crash leaves either the old or the new id.  The history id stays:
 * all that the server reports about the new id is newer. */
static tide_status apply_rename(tide_archive *archive, const struct tide_renaming *renaming,
                                tide_error *err)
{
    struct tide_shard *shard = NULL;
    struct tide_shard *taken = NULL;
    struct tide_stored stored;
    struct tide_stored other;
    if (tide_text_equal(renaming->old_id, renaming->new_id))
        return TIDE_OK;
    TIDE_TRY(find_stored(archive, renaming->old_id, &shard, &stored, err));
    if (shard != NULL)
        TIDE_TRY(find_stored(archive, renaming->new_id, &taken, &other, err));
    if (shard == NULL)
        return TIDE_OK;
    TIDE_TRY(tide_writer_begin(archive, shard, err));
    if (taken != NULL) {
        TIDE_SEEN("archive: a message came back before its new id was known");
        return mark_gone(shard, stored.rowid, renaming->at_ms, err);
    }
    TIDE_TRY(rename_row(shard, &stored, renaming, err));
    const struct tide_incoming now = {.labels = renaming->labels,
                                      .labels_count = renaming->labels_count};
    return labels_follow(archive, shard, stored.rowid, &now, renaming->at_ms, err);
}

/* Remembers it for shards that do not have the label yet. */
static tide_status label_learn(tide_archive *archive, const struct tide_entry *entry,
                               tide_error *err)
{
    struct tide_writer *writer = archive->writer;
    size_t at = 0;
    while (at < writer->labels_count && !tide_text_equal(writer->labels[at].id, entry->as.name.id))
        at++;
    struct tide_label_known known = {.room_bytes = entry->as.name.id.bytes +
                                                   entry->as.name.name.bytes +
                                                   entry->as.name.type.bytes};
    known.room = tide_mem_new(archive->mem, known.room_bytes);
    if (known.room == NULL ||
        !tide_mem_grow(archive->mem, (void **)&writer->labels, &writer->labels_capacity, at + 1,
                       TIDE_ARCHIVE_LABELS_KNOWN_MAX, sizeof writer->labels[0])) {
        tide_mem_free(archive->mem, known.room, known.room_bytes);
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for the name of a label");
    }
    char *to = known.room;
    tide_text texts[] = {entry->as.name.id, entry->as.name.name, entry->as.name.type};
    tide_text *kept[] = {&known.id, &known.name, &known.type};
    for (size_t i = 0; i < 3; i++) {
        if (texts[i].bytes > 0)
            memcpy(to, texts[i].data, texts[i].bytes);
        *kept[i] = (tide_text){to, texts[i].bytes};
        to += texts[i].bytes;
    }
    if (at == writer->labels_count)
        writer->labels_count++;
    else
        tide_mem_free(archive->mem, writer->labels[at].room, writer->labels[at].room_bytes);
    writer->labels[at] = known;
    return TIDE_OK;
}

/* Whether a shard has the label under another name. */
static tide_status name_differs(struct tide_shard *shard, const struct tide_entry *entry,
                                bool *differs_out, tide_error *err)
{
    tide_auto_stmt *row = tide_db_ask(&shard->db, TIDE_SHARD_LABEL_DIFFERS, entry->as.name.id,
                                      tide_value_or_null(entry->as.name.name),
                                      tide_value_or_null(entry->as.name.type));
    return tide_db_step(&shard->db, row, differs_out, err);
}

/* Gives a label that an import could only name the id that the server has for it. */
static tide_status name_adopt(tide_archive *archive, struct tide_shard *shard,
                              const struct tide_entry *entry, tide_error *err)
{
    bool imported = false;
    {
        tide_auto_stmt *row = tide_db_ask(&shard->db, TIDE_SHARD_LABEL_IMPORTED, entry->as.name.id,
                                          entry->as.name.name);
        TIDE_TRY(tide_db_step(&shard->db, row, &imported, err));
    }
    if (!imported)
        return TIDE_OK;
    TIDE_TRY(tide_writer_begin(archive, shard, err));
    return tide_db_do(&shard->db, err, TIDE_SHARD_LABEL_ADOPT, entry->as.name.id,
                      entry->as.name.name, tide_value_or_null(entry->as.name.type));
}

static tide_status apply_name(tide_archive *archive, const struct tide_entry *entry,
                              tide_error *err)
{
    tide_shards *shards = &archive->writer->shards;
    tide_status rc = label_learn(archive, entry, err);
    for (size_t i = 0; rc == TIDE_OK && i < shards->count; i++) {
        struct tide_shard *shard = shards->list[i];
        bool differs = false;
        rc = tide_shards_open(shards, shard, err);
        if (rc == TIDE_OK)
            rc = name_adopt(archive, shard, entry, err);
        if (rc == TIDE_OK)
            rc = name_differs(shard, entry, &differs, err);
        if (rc == TIDE_OK && differs)
            rc = tide_writer_begin(archive, shard, err);
        if (rc != TIDE_OK || !differs)
            continue; /* write nothing where nothing changes */
        rc = tide_db_do(&shard->db, err, TIDE_SHARD_LABEL_NAME, entry->as.name.id,
                        tide_value_or_null(entry->as.name.name),
                        tide_value_or_null(entry->as.name.type));
    }
    return rc;
}

tide_status tide_archive_apply(tide_archive *archive, struct tide_entry *entry, tide_error *err)
{
    tide_status rc = TIDE_OK;
    switch (entry->kind) {
    case TIDE_ENTRY_MESSAGE:
        return apply_message(archive, entry, err);
    case TIDE_ENTRY_LABELS:
        for (size_t i = 0; rc == TIDE_OK && i < entry->as.labels.count; i++)
            rc = apply_change(archive, &entry->as.labels.changes[i], err);
        return rc;
    case TIDE_ENTRY_GONE:
        return apply_mark(archive, entry->as.gone.gmail_id, entry->as.gone.at_ms, mark_gone, err);
    case TIDE_ENTRY_BACK:
        return apply_back(archive, &entry->as.message.incoming, err);
    case TIDE_ENTRY_DOUBT:
        return apply_mark(archive, entry->as.gone.gmail_id, entry->as.gone.at_ms,
                          tide_doubt_damaged, err);
    case TIDE_ENTRY_RENAME:
        return apply_rename(archive, &entry->as.renaming, err);
    case TIDE_ENTRY_NAME:
        return apply_name(archive, entry, err);
    case TIDE_ENTRY_WORK:
        return entry->as.work == NULL ? TIDE_OK : entry->as.work->run(archive, entry->as.work, err);
    }
    return tide_error_set(err, TIDE_BUG, "an entry of unknown kind");
}
