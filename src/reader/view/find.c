/* find.c - a search of archive and cache as one list (K5, K14; VWR1, VWR3).
 *
 * Each source is asked by the words and labels that it has; then what is shown decides by its labels
 * (VWR4).  A message that both have is known by its words in either: the archive has its whole text,
 * the cache only what was fetched, so a query that excludes words is the archive's to answer.
 *
 * A cursor names where each source continues: "ARCHIVE|MS.ROW"; "-" for one that has not begun. */
#include "reader/view/view.h"

#include "mail/search/elsewhere.h"
#include "reader/store/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOKEN_BYTES = 128, CURSOR_BYTES = 300, PAGE_MAX = 500, CHANGED_MAX = 500, SOURCES = 2 };
enum { ARCHIVE, CACHE };

struct cursor {
    char archive[TOKEN_BYTES]; /* "": its top */
    struct tide_cache_place cache;
};

struct candidate {
    int source;
    int64_t internal_ms;
    size_t order;
    char id[TIDE_CACHE_ID_BYTES];
    char token[TOKEN_BYTES];       /* of the archive */
    struct tide_cache_place place; /* of the cache */
    bool shown;
    json_t *snippet; /* of the archive; owned; NULL: none */
};

struct gathering {
    const struct tide_reader_mailbox *mailbox;
    const struct tide_finding *finding;
    struct tide_search search;
    tide_elsewhere *elsewhere; /* NULL: there is no cache */
    tide_buf changed;          /* ids that the overlay has changes of, as a list of SQL */
    size_t changed_count;
    struct candidate *list;
    size_t count, capacity;
    bool more[SOURCES]; /* it has matches beyond those in the list */
    tide_status rc;
    tide_error *err;
};

/* ---- cursors ---- */

static bool cursor_read(tide_text after, struct cursor *cursor)
{
    char text[CURSOR_BYTES];
    *cursor = (struct cursor){.cache = TIDE_CACHE_TOP};
    if (after.bytes == 0)
        return true;
    if (after.bytes >= sizeof text)
        return false;
    memcpy(text, after.data, after.bytes);
    text[after.bytes] = '\0';
    char *cache = strchr(text, '|');
    if (cache == NULL || cache - text >= TOKEN_BYTES)
        return false;
    *cache++ = '\0';
    if (strcmp(text, "-") != 0)
        (void)snprintf(cursor->archive, sizeof cursor->archive, "%.100s", text);
    return strcmp(cache, "-") == 0 || sscanf(cache, "%" SCNd64 ".%" SCNd64,
                                             &cursor->cache.internal_ms, &cursor->cache.row) == 2;
}

static tide_status cursor_write(const struct cursor *cursor, tide_buf *out)
{
    TIDE_TRY(tide_buf_print(out, "%s|", cursor->archive[0] == '\0' ? "-" : cursor->archive));
    return cursor->cache.internal_ms == INT64_MAX
               ? tide_buf_add_text(out, "-")
               : tide_buf_print(out, "%" PRId64 ".%" PRId64, cursor->cache.internal_ms,
                                cursor->cache.row);
}

/* ---- sources ---- */

static struct candidate *candidate_add(struct gathering *self, int source, tide_text id,
                                       int64_t internal_ms)
{
    void *list = self->list;
    if (!tide_mem_grow(self->mailbox->mem, &list, &self->capacity, self->count + 1,
                       (size_t)SOURCES * (PAGE_MAX + 1), sizeof *self->list)) {
        self->rc = tide_error_set(self->err, TIDE_NO_MEMORY, "no memory for the matches");
        return NULL;
    }
    self->list = list;
    struct candidate *one = &self->list[self->count];
    *one = (struct candidate){.source = source, .internal_ms = internal_ms, .order = self->count};
    (void)snprintf(one->id, sizeof one->id, "%.*s", (int)id.bytes, id.data);
    self->count++;
    return one;
}

static bool from_archive(const struct tide_found *found, void *arg)
{
    struct gathering *self = arg;
    const struct tide_stored *stored = &found->stored;
    tide_auto_buf token = tide_buf_in(self->mailbox->mem, 1024);
    self->rc = tide_search_token(&self->search, stored, &token);
    struct candidate *one =
        self->rc != TIDE_OK
            ? NULL
            : candidate_add(self, ARCHIVE, tide_text_of(stored->gmail_id), stored->internal_ms);
    if (one == NULL)
        return false;
    /* Its walk is in the order of arrival but for some that arrived at once, and its cursor is a place
     * of that walk. */
    if (self->count > 1 && self->list[self->count - 2].internal_ms < one->internal_ms)
        one->internal_ms = self->list[self->count - 2].internal_ms;
    (void)snprintf(one->token, sizeof one->token, "%s", tide_buf_cstr(&token));
    if (found->snippet.bytes > 0)
        one->snippet = json_stringn(found->snippet.data, found->snippet.bytes);
    return true;
}

static tide_status archive_gather(struct gathering *self, const struct cursor *cursor, bool lenient)
{
    if (self->mailbox->archive == NULL)
        return TIDE_OK;
    self->search = (struct tide_search){.query = self->finding->query,
                                        .limit = self->finding->limit,
                                        .after = tide_text_of(cursor->archive),
                                        .snippets = true,
                                        .lenient = lenient,
                                        .cancel = self->finding->cancel};
    TIDE_TRY(tide_search_run(self->mailbox->archive, &self->search, from_archive, self, NULL,
                             &self->more[ARCHIVE], self->err));
    return self->rc;
}

static bool from_cache(tide_text id, struct tide_cache_place place, void *arg)
{
    struct gathering *self = arg;
    struct candidate *one = candidate_add(self, CACHE, id, place.internal_ms);
    if (one != NULL)
        one->place = place;
    return one != NULL;
}

/* Ids are of the server's, or of a person's who asks for one: not all are plain. */
static void note_changed(tide_text message, void *arg)
{
    struct gathering *self = arg;
    for (size_t i = 0; i < message.bytes; i++)
        if (message.data[i] == '\'')
            return;
    if (self->rc == TIDE_OK && self->changed_count++ < CHANGED_MAX)
        self->rc = tide_buf_print(&self->changed, "%s'%.*s'", self->changed.bytes == 0 ? "" : ", ",
                                  (int)message.bytes, message.data);
}

/* (condition) OR (m.gmail_id IN (changed) AND (loose condition)) */
static tide_status condition_write(struct gathering *self, tide_buf *sql)
{
    const struct tide_reader_mailbox *mailbox = self->mailbox;
    TIDE_TRY(tide_elsewhere_condition(self->elsewhere, false, sql, self->err));
    if (mailbox->has_overlay)
        TIDE_TRY(
            tide_overlay_messages(mailbox->db, mailbox->account, note_changed, self, self->err));
    if (self->rc != TIDE_OK || self->changed.bytes == 0)
        return self->rc;
    TIDE_TRY(tide_buf_print(sql, " OR (m.gmail_id IN (%s) AND ", tide_buf_cstr(&self->changed)));
    TIDE_TRY(tide_elsewhere_condition(self->elsewhere, true, sql, self->err));
    return tide_buf_add_text(sql, ")");
}

static tide_status cache_gather(struct gathering *self, const struct cursor *cursor)
{
    tide_auto_buf sql = tide_buf_in(self->mailbox->mem, TIDE_CACHE_WHERE_BYTES_MAX);
    if (self->elsewhere == NULL)
        return TIDE_OK;
    TIDE_TRY(condition_write(self, &sql));
    const size_t before = self->count;
    const struct tide_cache_where where = {
        .condition = tide_buf_text(&sql), .place = cursor->cache, .limit = self->finding->limit};
    TIDE_TRY(tide_cache_where(self->mailbox->cache, &where, from_cache, self, self->err));
    self->more[CACHE] = self->count - before == self->finding->limit;
    return self->rc;
}

static tide_status elsewhere_make(struct gathering *self, bool lenient, tide_error *err)
{
    const struct tide_elsewhere_options options = {.query = self->finding->query,
                                                   .db = tide_cache_db(self->mailbox->cache),
                                                   .account = self->finding->email,
                                                   .lenient = lenient,
                                                   .cancel = self->finding->cancel};
    return tide_elsewhere_open(&options, self->mailbox->mem, &self->elsewhere, err);
}

/* A label that only one of them knows is no mistake; one that neither knows is. */
static tide_status gather(struct gathering *self, const struct cursor *cursor)
{
    tide_error why = {TIDE_OK, 0, ""};
    tide_status rc = TIDE_INVALID;
    if (self->mailbox->cache != NULL)
        rc = elsewhere_make(self, false, &why);
    if (rc != TIDE_OK && (rc != TIDE_INVALID || self->mailbox->archive == NULL)) {
        if (self->mailbox->cache == NULL)
            return TIDE_OK; /* nothing is known here */
        if (self->err != NULL)
            *self->err = why;
        return rc;
    }
    TIDE_TRY(archive_gather(self, cursor, rc == TIDE_OK));
    if (rc != TIDE_OK && self->mailbox->cache != NULL)
        TIDE_TRY(elsewhere_make(self, true, self->err));
    return cache_gather(self, cursor);
}

/* ---- the page ---- */

static int newest_first(const void *one, const void *other)
{
    const struct candidate *a = one;
    const struct candidate *b = other;
    if (a->internal_ms != b->internal_ms)
        return a->internal_ms > b->internal_ms ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

static bool has_label(tide_text label, void *arg)
{
    const struct tide_reader_shown *shown = arg;
    char name[TIDE_LABEL_BYTES_MAX + 1];
    (void)snprintf(name, sizeof name, "%.*s", (int)label.bytes, label.data);
    return json_object_get(shown->labels, name) != NULL;
}

/* VWR4.  What the server lost and the archive has is found, as long as nobody deleted it here. */
static bool is_match(const struct gathering *self, const struct candidate *one,
                     const struct tide_reader_shown *shown)
{
    if (json_object_get(shown->labels, TIDE_OVERLAY_GONE) != NULL)
        return false;
    if (shown->gone)
        return one->source == ARCHIVE;
    if (one->source == CACHE && shown->archived && !shown->cached_body &&
        tide_query_denies_words(self->finding->query))
        return false; /* the archive would have found it */
    return self->elsewhere == NULL ||
           tide_elsewhere_may(self->elsewhere, has_label, (void *)(uintptr_t)shown);
}

/* Whether it is in the page already, from the other source (VWR1). */
static bool was_shown(const struct gathering *self, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (self->list[i].shown && strcmp(self->list[i].id, self->list[at].id) == 0)
            return true;
    return false;
}

static tide_status row_show(const struct gathering *self, struct candidate *one, tide_json *items)
{
    struct tide_reader_shown shown;
    tide_json row;
    const tide_status rc = tide_shown_read(self->mailbox, tide_text_of(one->id), &shown, self->err);
    if (rc == TIDE_OK && is_match(self, one, &shown)) {
        tide_json_object(&row);
        tide_shown_json(&shown, &row);
        if (one->snippet != NULL)
            (void)json_object_set(row.value, "snippet", one->snippet);
        tide_json_append(items, &row);
        one->shown = true;
    }
    tide_shown_done(&shown);
    return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
}

static void cursor_pass(struct cursor *cursor, const struct candidate *one)
{
    if (one->source == ARCHIVE)
        memcpy(cursor->archive, one->token, sizeof cursor->archive);
    else
        cursor->cache = one->place;
}

/* Of a source that has more, nothing may come before what it has not told yet. */
static int64_t horizon_of(const struct gathering *self)
{
    int64_t horizon = INT64_MIN;
    for (int source = 0; source < SOURCES; source++) {
        int64_t last = INT64_MAX;
        for (size_t i = 0; i < self->count; i++)
            if (self->list[i].source == source && self->list[i].internal_ms < last)
                last = self->list[i].internal_ms;
        if (self->more[source] && last != INT64_MAX && last > horizon)
            horizon = last;
    }
    return horizon;
}

static tide_status page_show(struct gathering *self, struct cursor *cursor, tide_json *items,
                             tide_buf *next)
{
    const int64_t horizon = horizon_of(self);
    uint32_t count = 0;
    size_t used = 0;
    if (self->count > 0)
        qsort(self->list, self->count, sizeof *self->list, newest_first);
    for (; used < self->count && self->list[used].internal_ms >= horizon; used++) {
        struct candidate *one = &self->list[used];
        if (!was_shown(self, used)) {
            if (count == self->finding->limit)
                break;
            TIDE_TRY(row_show(self, one, items));
            count += one->shown;
        }
        cursor_pass(cursor, one);
    }
    const bool more = used < self->count || self->more[ARCHIVE] || self->more[CACHE];
    return more ? cursor_write(cursor, next) : TIDE_OK;
}

tide_status tide_reader_find(const struct tide_reader_mailbox *mailbox,
                             const struct tide_finding *finding, tide_json *items, tide_buf *next,
                             tide_error *err)
{
    struct gathering self = {.mailbox = mailbox,
                             .finding = finding,
                             .changed = tide_buf_in(mailbox->mem, 1 << 20),
                             .rc = TIDE_OK,
                             .err = err};
    struct cursor cursor;
    if (finding->limit == 0 || finding->limit > PAGE_MAX)
        return tide_error_set(err, TIDE_INVALID, "a page has 1 to %d messages", PAGE_MAX);
    if (!cursor_read(finding->after, &cursor))
        return tide_error_set(err, TIDE_INVALID, "this is not the end of a page of this search");
    tide_status rc = gather(&self, &cursor);
    if (rc == TIDE_OK)
        rc = page_show(&self, &cursor, items, next);
    for (size_t i = 0; i < self.count; i++)
        json_decref(self.list[i].snippet);
    tide_mem_free(mailbox->mem, self.list, self.capacity * sizeof *self.list);
    tide_elsewhere_close(self.elsewhere);
    tide_buf_done(&self.changed);
    return rc;
}
