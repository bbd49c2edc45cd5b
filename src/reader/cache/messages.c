#include "reader/cache/inside.h"

#include <string.h>

#define COLUMNS                                                                                    \
    "SELECT m.id, m.gmail_id, m.thread_id, m.history_id, m.internal_ms, m.bytes, m.headers,"       \
    " m.sender, m.recipients, m.cc, m.subject, m.snippet, m.message_id, m.files, m.gone,"          \
    " m.pinned, m.evicted, EXISTS (SELECT 1 FROM body b WHERE b.message = m.id),"                  \
    " m.epoch < coalesce((SELECT CAST(value AS INTEGER) FROM value WHERE name = 'epoch'), 0)"

static void row_read(const tide_rows_stmt *stmt, struct tide_cached *cached)
{
    cached->row = tide_rows_get_i64(stmt, 0);
    tide_rows_get_copy(stmt, 1, cached->id, sizeof cached->id);
    tide_rows_get_copy(stmt, 2, cached->thread, sizeof cached->thread);
    tide_rows_get_copy(stmt, 3, cached->history_id, sizeof cached->history_id);
    cached->internal_ms = tide_rows_get_i64(stmt, 4);
    cached->bytes = tide_rows_get_u64(stmt, 5);
    cached->headers = tide_rows_get_u64(stmt, 6) != 0;
    cached->from = tide_rows_get_text(stmt, 7);
    cached->to = tide_rows_get_text(stmt, 8);
    cached->cc = tide_rows_get_text(stmt, 9);
    cached->subject = tide_rows_get_text(stmt, 10);
    cached->snippet = tide_rows_get_text(stmt, 11);
    cached->message_id = tide_rows_get_text(stmt, 12);
    cached->files = tide_rows_get_u64(stmt, 13) != 0;
    cached->gone = tide_rows_get_u64(stmt, 14) != 0;
    cached->pinned = tide_rows_get_u64(stmt, 15) != 0;
    cached->evicted = tide_rows_get_u64(stmt, 16) != 0;
    cached->body = tide_rows_get_u64(stmt, 17) != 0;
    cached->stale = tide_rows_get_u64(stmt, 18) != 0;
}

static tide_status visit_all(tide_rows_stmt *stmt, tide_status rc, tide_cached_visit *visit,
                             void *arg, tide_error *err)
{
    bool on = true;
    while (on && tide_rows_next(stmt, &rc, err)) {
        struct tide_cached cached;
        row_read(stmt, &cached);
        on = visit(&cached, arg);
    }
    return rc;
}

/* ---- labels of a message ---- */

tide_status tide_cache_row_of(tide_cache *cache, tide_text id, int64_t *row_out, tide_error *err)
{
    uint64_t row = 0;
    const tide_status rc = tide_rows_number(cache->rows, TIDE_CACHE_WHAT, &row, err,
                                            "SELECT id FROM message WHERE gmail_id = ?1", id);
    if (rc == TIDE_OK)
        *row_out = (int64_t)row;
    return rc;
}

static tide_status label_add(tide_cache *cache, int64_t row, tide_text label, uint64_t *changed,
                             tide_error *err)
{
    int64_t label_row = 0;
    uint64_t added = 0;
    TIDE_TRY(tide_cache_label_row(cache, label, true, &label_row, err));
    TIDE_TRY(tide_rows_change(cache->rows, TIDE_CACHE_WHAT, &added, err,
                              "INSERT INTO message_label (label, internal_ms, message)"
                              " SELECT ?1, internal_ms, id FROM message WHERE id = ?2"
                              " ON CONFLICT DO NOTHING",
                              label_row, row));
    *changed += added;
    return TIDE_OK;
}

static tide_status label_take(tide_cache *cache, int64_t row, tide_text label, uint64_t *changed,
                              tide_error *err)
{
    uint64_t taken = 0;
    TIDE_TRY(tide_rows_change(cache->rows, TIDE_CACHE_WHAT, &taken, err,
                              "DELETE FROM message_label WHERE message = ?1 AND label ="
                              " (SELECT id FROM label WHERE label = ?2)",
                              row, label));
    *changed += taken;
    return TIDE_OK;
}

/* CCH2. */
static tide_status all_settle(tide_cache *cache, int64_t row, tide_error *err)
{
    uint64_t hidden = 0;
    uint64_t changed = 0;
    TIDE_TRY(tide_rows_number(cache->rows, TIDE_CACHE_WHAT, &hidden, err,
                              "SELECT m.gone + (SELECT count(*) FROM message_label ml JOIN label l"
                              " ON l.id = ml.label WHERE ml.message = m.id"
                              " AND l.label IN ('SPAM', 'TRASH')) FROM message m WHERE m.id = ?1",
                              row));
    return hidden == 0 ? label_add(cache, row, TIDE_TEXT(TIDE_CACHE_ALL), &changed, err)
                       : label_take(cache, row, TIDE_TEXT(TIDE_CACHE_ALL), &changed, err);
}

static bool named(const struct tide_cache_message *message, tide_text label)
{
    for (size_t i = 0; i < message->labels_count; i++)
        if (tide_text_equal(message->labels[i], label))
            return true;
    return false;
}

enum { PRUNED_AT_ONCE = 64 };

/* Labels that the server does not name any more; some of them. */
static tide_status labels_prune(tide_cache *cache, int64_t row,
                                const struct tide_cache_message *message, size_t *pruned_out,
                                tide_error *err)
{
    int64_t over[PRUNED_AT_ONCE];
    size_t count = 0;
    {
        tide_auto_rows stmt = {.what = NULL};
        tide_status rc = tide_rows_ask(cache->rows, TIDE_CACHE_WHAT, &stmt, err,
                                       "SELECT l.id, l.label FROM message_label ml JOIN label l"
                                       " ON l.id = ml.label WHERE ml.message = ?1",
                                       row);
        while (count < PRUNED_AT_ONCE && tide_rows_next(&stmt, &rc, err)) {
            const tide_text label = tide_rows_get_text(&stmt, 1);
            if (!named(message, label) && !tide_text_equal(label, TIDE_TEXT(TIDE_CACHE_ALL)))
                over[count++] = tide_rows_get_i64(&stmt, 0);
        }
        if (rc != TIDE_OK)
            return rc;
    }
    for (size_t i = 0; i < count; i++)
        TIDE_TRY(tide_rows_do(cache->rows, TIDE_CACHE_WHAT, err,
                              "DELETE FROM message_label WHERE message = ?1 AND label = ?2", row,
                              over[i]));
    *pruned_out = count;
    return TIDE_OK;
}

static tide_status labels_set(tide_cache *cache, int64_t row,
                              const struct tide_cache_message *message, uint64_t *changed,
                              tide_error *err)
{
    size_t pruned = 0;
    do {
        TIDE_TRY(labels_prune(cache, row, message, &pruned, err));
        *changed += pruned;
    } while (pruned == PRUNED_AT_ONCE);
    for (size_t i = 0; i < message->labels_count && i < TIDE_CACHE_LABELS_MAX; i++)
        TIDE_TRY(label_add(cache, row, message->labels[i], changed, err));
    return all_settle(cache, row, err);
}

/* ---- what the server says ---- */

static tide_text cut(tide_text text)
{
    return text.bytes <= TIDE_CACHE_FIELD_BYTES_MAX
               ? text
               : (tide_text){text.data, TIDE_CACHE_FIELD_BYTES_MAX};
}

static tide_status row_add(tide_cache *cache, const struct tide_cache_message *message,
                           int64_t *row_out, tide_error *err)
{
    TIDE_TRY(tide_rows_do(
        cache->rows, TIDE_CACHE_WHAT, err,
        "INSERT INTO message (gmail_id, thread_id, history_id, internal_ms, bytes, headers,"
        " sender, recipients, cc, subject, snippet, message_id, files, gone, pinned, evicted, "
        "epoch)"
        " VALUES (?1, ?2, ?3, ?4, ?5, 0, '', '', '', '', '', '', 0, 0, 0, 0, 0)",
        message->id, message->thread, message->history_id, message->internal_ms, message->bytes));
    return tide_cache_row_of(cache, message->id, row_out, err);
}

static tide_status headers_set(tide_cache *cache, int64_t row,
                               const struct tide_cache_message *message, tide_error *err)
{
    TIDE_TRY(tide_rows_do(cache->rows, TIDE_CACHE_WHAT, err,
                          "UPDATE message SET headers = 1, sender = ?2, recipients = ?3, cc = ?4,"
                          " subject = ?5, snippet = ?6, message_id = ?7, files = ?8, epoch ="
                          " coalesce((SELECT CAST(value AS INTEGER) FROM value"
                          " WHERE name = 'epoch'), 0) WHERE id = ?1",
                          row, cut(message->from), cut(message->to), cut(message->cc),
                          cut(message->subject), cut(message->snippet), cut(message->message_id),
                          message->files ? 1 : 0));
    return tide_cache_words_headers(cache, row, err);
}

static tide_status known_history(tide_cache *cache, int64_t row, char out[32], tide_error *err)
{
    return tide_rows_copy(cache->rows, TIDE_CACHE_WHAT, out, 32, err,
                          "SELECT history_id FROM message WHERE id = ?1", row);
}

tide_status tide_cache_put(tide_cache *cache, const struct tide_cache_message *message,
                           tide_error *err)
{
    char history_id[32] = "";
    int64_t row = 0;
    uint64_t changed = 0;
    tide_status rc = tide_cache_row_of(cache, message->id, &row, err);
    if (rc == TIDE_NOT_FOUND) {
        changed = 1;
        rc = row_add(cache, message, &row, err);
    } else if (rc == TIDE_OK) {
        rc = known_history(cache, row, history_id, err);
    }
    if (rc == TIDE_OK && message->headers)
        rc = headers_set(cache, row, message, err);
    if (rc == TIDE_OK)
        rc = tide_cache_refused_drop(cache, message->id, err); /* CCH6 */
    if (rc != TIDE_OK)
        return rc;
    if (tide_history_compare(message->history_id, tide_text_of(history_id)) >= 0) { /* CCH3 */
        TIDE_TRY(tide_rows_do(cache->rows, TIDE_CACHE_WHAT, err,
                              "UPDATE message SET history_id = ?2, gone = 0 WHERE id = ?1", row,
                              message->history_id));
        TIDE_TRY(labels_set(cache, row, message, &changed, err));
    }
    return changed > 0 || message->headers ? tide_cache_changed(cache, row, err) : TIDE_OK;
}

tide_status tide_cache_label(tide_cache *cache, tide_text id, tide_text label, bool added,
                             tide_text history_id, tide_error *err)
{
    char known[32] = "";
    int64_t row = 0;
    uint64_t changed = 0;
    TIDE_TRY(tide_cache_row_of(cache, id, &row, err));
    TIDE_TRY(known_history(cache, row, known, err));
    /* The row has it already: it was read after that change (CCH3). */
    if (history_id.bytes > 0 && tide_history_compare(history_id, tide_text_of(known)) < 0)
        return TIDE_OK;
    TIDE_TRY(added ? label_add(cache, row, label, &changed, err)
                   : label_take(cache, row, label, &changed, err));
    if (history_id.bytes > 0)
        TIDE_TRY(tide_rows_do(cache->rows, TIDE_CACHE_WHAT, err,
                              "UPDATE message SET history_id = ?2 WHERE id = ?1", row, history_id));
    TIDE_TRY(all_settle(cache, row, err));
    return changed > 0 ? tide_cache_changed(cache, row, err) : TIDE_OK;
}

tide_status tide_cache_gone(tide_cache *cache, tide_text id, tide_error *err)
{
    const struct tide_cache_message nothing = {.id = id, .thread = TIDE_TEXT("")};
    int64_t row = 0;
    tide_status rc = tide_cache_row_of(cache, id, &row, err);
    if (rc == TIDE_NOT_FOUND)
        rc = row_add(cache, &nothing, &row, err);
    if (rc == TIDE_OK)
        rc = tide_rows_do(cache->rows, TIDE_CACHE_WHAT, err,
                          "UPDATE message SET gone = 1 WHERE id = ?1", row);
    if (rc == TIDE_OK)
        rc = tide_rows_do(cache->rows, TIDE_CACHE_WHAT, err,
                          "DELETE FROM message_label WHERE message = ?1", row);
    if (rc == TIDE_OK)
        rc = tide_cache_refused_drop(cache, id, err); /* CCH6 */
    return rc == TIDE_OK ? tide_cache_changed(cache, row, err) : rc;
}

tide_status tide_cache_pin(tide_cache *cache, tide_text id, bool pinned, tide_error *err)
{
    int64_t row = 0;
    TIDE_TRY(tide_cache_row_of(cache, id, &row, err));
    TIDE_TRY(tide_rows_do(cache->rows, TIDE_CACHE_WHAT, err,
                          "UPDATE message SET pinned = ?2, evicted = 0 WHERE id = ?1", row,
                          pinned ? 1 : 0));
    return tide_cache_changed(cache, row, err);
}

tide_status tide_cache_drop(tide_cache *cache, int64_t row, tide_error *err)
{
    static const char *const tables[] = {
        "DELETE FROM message_label WHERE message = ?1", "DELETE FROM body_raw WHERE message = ?1",
        "DELETE FROM body WHERE message = ?1",          "DELETE FROM change WHERE message = ?1",
        "DELETE FROM words WHERE rowid = ?1",           "DELETE FROM message WHERE id = ?1"};
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        TIDE_TRY(tide_rows_do(cache->rows, TIDE_CACHE_WHAT, err, tables[i], row));
    return TIDE_OK;
}

/* ---- looking ---- */

tide_status tide_cache_find(tide_cache *cache, tide_text id, tide_cached_visit *visit, void *arg,
                            tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    const tide_status rc = tide_rows_first(cache->rows, TIDE_CACHE_WHAT, &stmt, err,
                                           COLUMNS " FROM message m WHERE m.gmail_id = ?1", id);
    if (rc == TIDE_OK) {
        struct tide_cached cached;
        row_read(&stmt, &cached);
        (void)visit(&cached, arg);
    }
    return rc;
}

tide_status tide_cache_has(tide_cache *cache, tide_text id, bool *has_out, tide_error *err)
{
    int64_t row = 0;
    const tide_status rc = tide_cache_row_of(cache, id, &row, err);
    *has_out = rc == TIDE_OK;
    return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
}

tide_status tide_cache_labels_of(tide_cache *cache, int64_t row,
                                 void (*visit)(tide_text label, void *arg), void *arg,
                                 tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    tide_status rc = tide_rows_ask(cache->rows, TIDE_CACHE_WHAT, &stmt, err,
                                   "SELECT l.label FROM message_label ml JOIN label l"
                                   " ON l.id = ml.label WHERE ml.message = ?1"
                                   " AND l.label <> 'ALL' ORDER BY l.label",
                                   row);
    while (tide_rows_next(&stmt, &rc, err))
        visit(tide_rows_get_text(&stmt, 0), arg);
    return rc;
}

tide_status tide_cache_list(tide_cache *cache, tide_text label, struct tide_cache_place place,
                            uint32_t limit, tide_cached_visit *visit, void *arg, tide_error *err)
{
    int64_t label_row = 0;
    tide_status rc = tide_cache_label_row(cache, label, false, &label_row, err);
    if (rc != TIDE_OK)
        return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
    tide_auto_rows stmt = {.what = NULL};
    rc = tide_rows_ask(cache->rows, TIDE_CACHE_WHAT, &stmt, err,
                       COLUMNS " FROM message_label ml JOIN message m ON m.id = ml.message"
                               " WHERE ml.label = ?1 AND (ml.internal_ms, ml.message) < (?2, ?3)"
                               " ORDER BY ml.internal_ms DESC, ml.message DESC LIMIT ?4",
                       label_row, place.internal_ms, place.row, limit);
    return visit_all(&stmt, rc, visit, arg, err);
}

tide_status tide_cache_thread(tide_cache *cache, tide_text thread, tide_cached_visit *visit,
                              void *arg, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    const tide_status rc = tide_rows_ask(cache->rows, TIDE_CACHE_WHAT, &stmt, err,
                                         COLUMNS " FROM message m WHERE m.thread_id = ?1"
                                                 " ORDER BY m.internal_ms, m.id LIMIT 1000",
                                         thread);
    return visit_all(&stmt, rc, visit, arg, err);
}

#define NOT_REFUSED " NOT EXISTS (SELECT 1 FROM refused r WHERE r.gmail_id = m.gmail_id)"
#define BODYLESS                                                                                   \
    " AND m.headers = 1 AND m.gone = 0 AND m.evicted = 0 AND" NOT_REFUSED " AND NOT EXISTS"        \
    " (SELECT 1 FROM body b WHERE b.message = m.id) ORDER BY m.internal_ms DESC LIMIT ?2"

tide_status tide_cache_bodyless(tide_cache *cache, int64_t since_ms, uint32_t limit,
                                tide_cached_visit *visit, void *arg, tide_error *err)
{
    tide_auto_rows pinned = {.what = NULL};
    tide_auto_rows young = {.what = NULL};
    tide_status rc =
        tide_rows_ask(cache->rows, TIDE_CACHE_WHAT, &pinned, err,
                      COLUMNS " FROM message m WHERE m.pinned = 1 AND m.internal_ms < ?1" BODYLESS,
                      since_ms, limit);
    rc = visit_all(&pinned, rc, visit, arg, err);
    if (rc != TIDE_OK || since_ms == INT64_MAX)
        return rc;
    rc = tide_rows_ask(cache->rows, TIDE_CACHE_WHAT, &young, err,
                       COLUMNS " FROM message m WHERE m.internal_ms >= ?1" BODYLESS, since_ms,
                       limit);
    return visit_all(&young, rc, visit, arg, err);
}

tide_status tide_cache_stale(tide_cache *cache, int64_t since_ms, uint32_t limit,
                             tide_cached_visit *visit, void *arg, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    const tide_status rc = tide_rows_ask(cache->rows, TIDE_CACHE_WHAT, &stmt, err,
                                         COLUMNS " FROM message m WHERE m.internal_ms >= ?1"
                                                 " AND m.gone = 0 AND" NOT_REFUSED
                                                 " AND m.epoch < coalesce((SELECT CAST(value AS"
                                                 " INTEGER) FROM value WHERE name = 'epoch'), 0)"
                                                 " ORDER BY m.internal_ms DESC LIMIT ?2",
                                         since_ms, limit);
    return visit_all(&stmt, rc, visit, arg, err);
}

tide_status tide_cache_current(tide_cache *cache, tide_text id, tide_error *err)
{
    return tide_rows_do(cache->rows, TIDE_CACHE_WHAT, err,
                        "UPDATE message SET epoch = coalesce((SELECT CAST(value AS INTEGER)"
                        " FROM value WHERE name = 'epoch'), 0) WHERE gmail_id = ?1",
                        id);
}

tide_status tide_cache_rows(tide_cache *cache, int64_t after_row, uint32_t limit,
                            tide_cached_visit *visit, void *arg, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    const tide_status rc = tide_rows_ask(
        cache->rows, TIDE_CACHE_WHAT, &stmt, err,
        COLUMNS " FROM message m WHERE m.id > ?1 ORDER BY m.id LIMIT ?2", after_row, limit);
    return visit_all(&stmt, rc, visit, arg, err);
}

tide_status tide_cache_count(tide_cache *cache, tide_text label, uint64_t *total_out,
                             uint64_t *unread_out, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    const tide_status rc = tide_rows_first(
        cache->rows, TIDE_CACHE_WHAT, &stmt, err,
        "SELECT count(*), count(u.message) FROM message_label ml LEFT JOIN message_label u"
        " ON u.message = ml.message AND u.label = (SELECT id FROM label WHERE label = 'UNREAD')"
        " WHERE ml.label = (SELECT id FROM label WHERE label = ?1)",
        label);
    if (rc == TIDE_OK) {
        *total_out = tide_rows_get_u64(&stmt, 0);
        *unread_out = tide_rows_get_u64(&stmt, 1);
    }
    return rc;
}

tide_status tide_cache_counts(tide_cache *cache,
                              void (*visit)(tide_text label, uint64_t count, uint64_t unread,
                                            void *arg),
                              void *arg, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    tide_status rc = tide_rows_ask(cache->rows, TIDE_CACHE_WHAT, &stmt, err,
                                   "SELECT l.label, t.total, t.unread FROM tally t"
                                   " JOIN label l ON l.id = t.label");
    while (tide_rows_next(&stmt, &rc, err))
        visit(tide_rows_get_text(&stmt, 0), tide_rows_get_u64(&stmt, 1),
              tide_rows_get_u64(&stmt, 2), arg);
    return rc;
}
