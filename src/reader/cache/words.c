/* words.c - the words of the messages in the cache, and rows by a condition (CCH7).
 *
 * As in a shard of the archive, so that the same queries find them: the words of the whole message where
 * its body is here, else those of its headers and of the server's snippet. */
#include "reader/cache/inside.h"

#include "mail/mime/message.h"
#include "mail/search/search.h"

#include <stdio.h>

enum {
    FOLDED_BYTES_MAX = 32 << 20,
    /* Of a text; what follows is found when the archive has it.  What is deleted from the index takes
     * room until it is merged, and room is what an eviction wants. */
    TEXT_BYTES_MAX = 64 << 10,
    PARSE_BYTES_MAX = 256 << 20,
};

enum { TEXT, SUBJECT, FROM, TO, FILES, COLUMNS };

/* Texts of a column, a blank line between them, as the index has to have them. */
static tide_status column_fold(const tide_text *texts, size_t count, tide_buf *out)
{
    for (size_t i = 0; i < count; i++) {
        const tide_text text = {texts[i].data,
                                texts[i].bytes < TEXT_BYTES_MAX ? texts[i].bytes : TEXT_BYTES_MAX};
        if (i > 0)
            TIDE_TRY(tide_buf_add_text(out, "\n"));
        TIDE_TRY(tide_search_fold(text, out));
    }
    return TIDE_OK;
}

struct column {
    const tide_text *texts;
    size_t count;
};

static tide_status words_put(tide_cache *cache, int64_t row, const struct column *columns,
                             tide_error *err)
{
    tide_auto_buf folded = tide_buf_in(cache->mem, FOLDED_BYTES_MAX);
    size_t bytes[COLUMNS];
    tide_text values[COLUMNS];
    size_t begin = 0;
    for (size_t i = 0; i < COLUMNS; i++) {
        const size_t before = folded.bytes;
        const tide_status rc = column_fold(columns[i].texts, columns[i].count, &folded);
        if (rc != TIDE_OK)
            return tide_error_set(err, rc, "no memory for the words of a message");
        bytes[i] = folded.bytes - before;
    }
    for (size_t i = 0; i < COLUMNS; begin += bytes[i++])
        values[i] = (tide_text){tide_buf_cstr(&folded) + begin, bytes[i]};
    TIDE_TRY(tide_cache_words_drop(cache, row, err));
    return tide_rows_do(cache->rows, TIDE_CACHE_WHAT, err,
                        "INSERT INTO words (rowid, text, subject, \"from\", \"to\", files)"
                        " VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                        row, values[TEXT], values[SUBJECT], values[FROM], values[TO],
                        values[FILES]);
}

tide_status tide_cache_words_drop(tide_cache *cache, int64_t row, tide_error *err)
{
    return tide_rows_do(cache->rows, TIDE_CACHE_WHAT, err, "DELETE FROM words WHERE rowid = ?1",
                        row);
}

tide_status tide_cache_words_headers(tide_cache *cache, int64_t row, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    const tide_status rc = tide_rows_first(
        cache->rows, TIDE_CACHE_WHAT, &stmt, err,
        "SELECT m.snippet, m.subject, m.sender, m.recipients, m.cc FROM message m WHERE m.id = ?1"
        " AND m.headers = 1 AND NOT EXISTS (SELECT 1 FROM body b WHERE b.message = m.id)",
        row);
    if (rc != TIDE_OK)
        return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
    tide_text texts[5];
    for (int i = 0; i < 5; i++)
        texts[i] = tide_rows_get_text(&stmt, i);
    const struct column columns[COLUMNS] = {[TEXT] = {&texts[0], 1},
                                            [SUBJECT] = {&texts[1], 1},
                                            [FROM] = {&texts[2], 1},
                                            [TO] = {&texts[3], 2}};
    return words_put(cache, row, columns, err);
}

tide_status tide_cache_words_body(tide_cache *cache, int64_t row, tide_text raw, tide_error *err)
{
    struct tide_message message;
    tide_text names[TIDE_MESSAGE_ATTACHMENTS_MAX];
    size_t count = 0;
    tide_auto_arena arena = tide_arena_in(cache->mem, PARSE_BYTES_MAX);
    const tide_status rc = tide_message_parse(raw, &arena, &message);
    if (rc != TIDE_OK)
        return tide_error_set(err, rc, "no memory to read a message");
    if (message.parsed == TIDE_PARSED_NOT) /* its headers, as the server gave them, stay */
        return TIDE_OK;
    for (; count < message.attachments_count && count < TIDE_MESSAGE_ATTACHMENTS_MAX; count++)
        names[count] = message.attachments[count].name;
    const tide_text to[] = {message.to, message.cc, message.bcc};
    const struct column columns[COLUMNS] = {[TEXT] = {&message.text, 1},
                                            [SUBJECT] = {&message.subject, 1},
                                            [FROM] = {&message.from, 1},
                                            [TO] = {to, 3},
                                            [FILES] = {names, count}};
    return words_put(cache, row, columns, err);
}

/* ---- rows by a condition ---- */

const tide_db *tide_cache_db(const tide_cache *cache)
{
    return &cache->db;
}

tide_status tide_cache_where(tide_cache *cache, const struct tide_cache_where *where,
                             bool (*visit)(tide_text id, struct tide_cache_place place, void *arg),
                             void *arg, tide_error *err)
{
    tide_auto_buf sql = tide_buf_in(cache->mem, TIDE_CACHE_WHERE_BYTES_MAX);
    tide_auto_prepared *stmt = NULL;
    tide_status rc =
        tide_buf_print(&sql,
                       "SELECT m.gmail_id, m.internal_ms, m.id FROM message m WHERE m.gone = 0"
                       " AND (m.internal_ms, m.id) < (?1, ?2) AND (%.*s)"
                       " ORDER BY m.internal_ms DESC, m.id DESC LIMIT ?3",
                       (int)where->condition.bytes, where->condition.data);
    if (rc != TIDE_OK)
        return tide_error_set(err, rc, "the query is too large");
    /* Not by rows.h: an '@' of the query is no mark. */
    const int code = sqlite3_prepare_v2(cache->db.handle, tide_buf_cstr(&sql), -1, &stmt, NULL);
    if (code != SQLITE_OK)
        return tide_db_failed(&cache->db, code, "search the cache", err);
    (void)sqlite3_bind_int64(stmt, 1, where->place.internal_ms);
    (void)sqlite3_bind_int64(stmt, 2, where->place.row);
    (void)sqlite3_bind_int64(stmt, 3, where->limit);
    for (bool on = true; on && tide_db_next(&cache->db, stmt, &rc, err);)
        on = visit(
            tide_column_text(stmt, 0),
            (struct tide_cache_place){sqlite3_column_int64(stmt, 1), sqlite3_column_int64(stmt, 2)},
            arg);
    return rc;
}
