/* list.c - a list of three sources: archive, cache, and what the overlay adds (VWR1, VWR2, VWR3).
 *
 * Each source gives its next rows, newest first; the first of them by time are the page.  A cursor names
 * where each source continues: "ARCHIVE|MS.ROW|MS.ID"; "-" for one that has not begun. */
#include "reader/view/view.h"

#include "mail/search/search.h"
#include "reader/store/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOKEN_BYTES = 128, CURSOR_BYTES = 400, SOURCES = 3, LIMIT_MAX = 2000, PAGE_MAX = 500 };
enum { ARCHIVE, CACHE, OVERLAY };

/* Where a source continues. */
struct cursor {
    char archive[TOKEN_BYTES]; /* "": its top */
    struct tide_cache_place cache;
    int64_t overlay_ms;
    char overlay_id[TIDE_CACHE_ID_BYTES];
};

struct candidate {
    int source;
    int64_t internal_ms;
    size_t order;
    char id[TIDE_CACHE_ID_BYTES];
    char token[TOKEN_BYTES]; /* of the archive */
    int64_t row;             /* of the cache */
};

struct gathering {
    const struct tide_reader_mailbox *mailbox;
    const struct tide_listing *listing;
    struct tide_search search;
    int64_t bottom_ms;
    struct candidate *list;
    size_t count, capacity;
    size_t of[SOURCES];
    bool more[SOURCES]; /* it has rows beyond those in the list */
    bool stopped;       /* the archive's walk: at its bottom, or enough were found */
    tide_status rc;
    tide_error *err;
};

/* ---- cursors ---- */

static tide_status cursor_bad(tide_error *err)
{
    return tide_error_set(err, TIDE_INVALID, "this is not the end of a page of this list");
}

static tide_status cursor_read(const struct tide_listing *listing, struct cursor *cursor,
                               tide_error *err)
{
    char text[CURSOR_BYTES];
    *cursor = (struct cursor){.cache = TIDE_CACHE_TOP, .overlay_ms = INT64_MAX};
    if (listing->before_ms != INT64_MAX) {
        cursor->cache = (struct tide_cache_place){listing->before_ms, INT64_MIN};
        cursor->overlay_ms = listing->before_ms;
    }
    if (listing->after.bytes == 0)
        return TIDE_OK;
    if (listing->after.bytes >= sizeof text)
        return cursor_bad(err);
    memcpy(text, listing->after.data, listing->after.bytes);
    text[listing->after.bytes] = '\0';
    char *cache = strchr(text, '|');
    char *overlay = cache == NULL ? NULL : strchr(cache + 1, '|');
    if (overlay == NULL)
        return cursor_bad(err);
    *cache++ = *overlay++ = '\0';
    if (strcmp(text, "-") != 0)
        (void)snprintf(cursor->archive, sizeof cursor->archive, "%.100s", text);
    if (strcmp(cache, "-") != 0 &&
        sscanf(cache, "%" SCNd64 ".%" SCNd64, &cursor->cache.internal_ms, &cursor->cache.row) != 2)
        return cursor_bad(err);
    if (strcmp(overlay, "-") != 0 &&
        sscanf(overlay, "%" SCNd64 ".%64s", &cursor->overlay_ms, cursor->overlay_id) != 2)
        return cursor_bad(err);
    return TIDE_OK;
}

static tide_status cursor_write(const struct cursor *cursor, tide_buf *out)
{
    TIDE_TRY(tide_buf_print(out, "%s|", cursor->archive[0] == '\0' ? "-" : cursor->archive));
    TIDE_TRY(cursor->cache.internal_ms == INT64_MAX
                 ? tide_buf_add_text(out, "-|")
                 : tide_buf_print(out, "%" PRId64 ".%" PRId64 "|", cursor->cache.internal_ms,
                                  cursor->cache.row));
    return cursor->overlay_id[0] == '\0'
               ? tide_buf_add_text(out, "-")
               : tide_buf_print(out, "%" PRId64 ".%s", cursor->overlay_ms, cursor->overlay_id);
}

/* ---- sources ---- */

static struct candidate *candidate_add(struct gathering *self, int source, const char *id,
                                       int64_t internal_ms)
{
    void *list = self->list;
    if (!tide_mem_grow(self->mailbox->mem, &list, &self->capacity, self->count + 1,
                       (size_t)SOURCES * (LIMIT_MAX + 1), sizeof *self->list)) {
        self->rc = tide_error_set(self->err, TIDE_NO_MEMORY, "no memory for the list");
        return NULL;
    }
    self->list = list;
    struct candidate *one = &self->list[self->count];
    *one = (struct candidate){.source = source, .internal_ms = internal_ms, .order = self->count};
    (void)snprintf(one->id, sizeof one->id, "%s", id);
    self->count++;
    self->of[source]++;
    return one;
}

/* A source that has given enough has more. */
static bool enough(struct gathering *self, int source)
{
    self->more[source] = self->of[source] == self->listing->limit;
    return self->more[source];
}

static bool from_archive(const struct tide_found *found, void *arg)
{
    struct gathering *self = arg;
    const struct tide_stored *stored = &found->stored;
    tide_auto_buf token = tide_buf_in(self->mailbox->mem, 1024);
    bool cached = false;
    /* Newest first: beyond the bottom the rest is older. */
    self->stopped = stored->internal_ms < self->bottom_ms || enough(self, ARCHIVE);
    if (self->stopped)
        return false;
    if (self->mailbox->cache != NULL)
        self->rc = tide_cache_has(self->mailbox->cache, tide_text_of(stored->gmail_id), &cached,
                                  self->err);
    if (self->rc != TIDE_OK)
        return false;
    if (cached || stored->gone)
        return true; /* the cache knows better */
    self->rc = tide_search_token(&self->search, stored, &token);
    struct candidate *one =
        self->rc != TIDE_OK ? NULL
                            : candidate_add(self, ARCHIVE, stored->gmail_id, stored->internal_ms);
    if (one != NULL)
        (void)snprintf(one->token, sizeof one->token, "%s", tide_buf_cstr(&token));
    return one != NULL;
}

static tide_status archive_gather(struct gathering *self, const struct cursor *cursor)
{
    const tide_text label = self->listing->label;
    tide_auto_buf text = tide_buf_in(self->mailbox->mem, 2048);
    tide_auto_buf next = tide_buf_in(self->mailbox->mem, 4096);
    char token[TOKEN_BYTES];
    tide_query *query = NULL;
    bool more = false;
    tide_error why = {TIDE_OK, 0, ""};
    if (self->mailbox->archive == NULL || label.bytes == 0 ||
        memchr(label.data, '"', label.bytes) != NULL)
        return TIDE_OK; /* no label of the server's has a quote in its id */
    if (!tide_text_equal(label, TIDE_TEXT(TIDE_CACHE_ALL)))
        TIDE_TRY(tide_buf_print(&text, "label:\"%.*s\"", (int)label.bytes, label.data));
    if (self->listing->before_ms != INT64_MAX)
        TIDE_TRY(tide_buf_print(&text, " before:%" PRId64, self->listing->before_ms / 1000));
    tide_status rc = tide_query_parse(tide_buf_text(&text), 0, 0, self->mailbox->mem, &query, &why);
    self->search = (struct tide_search){
        .query = query, .limit = TIDE_SEARCH_PAGE_MAX, .after = tide_text_of(cursor->archive)};
    do { /* a page of which all are in the cache as well leads to the next one */
        tide_buf_rest(&next);
        self->stopped = false;
        if (rc == TIDE_OK)
            rc = tide_search_run(self->mailbox->archive, &self->search, from_archive, self, &next,
                                 &more, &why);
        (void)snprintf(token, sizeof token, "%s", tide_buf_cstr(&next));
        self->search.after = tide_text_of(token);
    } while (rc == TIDE_OK && self->rc == TIDE_OK && more && !self->stopped);
    tide_query_free(query);
    /* A label that no shard has is not an error here: the list has none of it. */
    if (rc == TIDE_INVALID)
        rc = cursor->archive[0] == '\0' ? TIDE_OK : cursor_bad(self->err);
    else if (rc != TIDE_OK && self->err != NULL)
        *self->err = why;
    return rc == TIDE_OK ? self->rc : rc;
}

static bool from_cache(const struct tide_cached *cached, void *arg)
{
    struct gathering *self = arg;
    if (cached->internal_ms < self->bottom_ms || enough(self, CACHE))
        return false;
    struct candidate *one = candidate_add(self, CACHE, cached->id, cached->internal_ms);
    if (one != NULL)
        one->row = cached->row;
    return one != NULL;
}

static bool from_overlay(tide_text message, int64_t internal_ms, void *arg)
{
    struct gathering *self = arg;
    char id[TIDE_CACHE_ID_BYTES];
    if (internal_ms < self->bottom_ms || enough(self, OVERLAY))
        return false;
    (void)snprintf(id, sizeof id, "%.*s", (int)message.bytes, message.data);
    return candidate_add(self, OVERLAY, id, internal_ms) != NULL;
}

static tide_status gather(struct gathering *self, const struct cursor *cursor, tide_error *err)
{
    const struct tide_reader_mailbox *mailbox = self->mailbox;
    TIDE_TRY(archive_gather(self, cursor));
    if (mailbox->cache != NULL)
        TIDE_TRY(tide_cache_list(mailbox->cache, self->listing->label, cursor->cache,
                                 self->listing->limit + 1, from_cache, self, err));
    if (self->rc == TIDE_OK && mailbox->has_overlay)
        TIDE_TRY(tide_overlay_added(mailbox->db, mailbox->account, self->listing->label,
                                    cursor->overlay_ms, tide_text_of(cursor->overlay_id),
                                    self->listing->limit + 1, from_overlay, self, err));
    return self->rc;
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

static void cursor_pass(struct cursor *cursor, const struct candidate *one)
{
    if (one->source == ARCHIVE)
        memcpy(cursor->archive, one->token, sizeof cursor->archive);
    else if (one->source == CACHE)
        cursor->cache = (struct tide_cache_place){one->internal_ms, one->row};
    else {
        cursor->overlay_ms = one->internal_ms;
        memcpy(cursor->overlay_id, one->id, sizeof cursor->overlay_id);
    }
}

/* All mail is what is neither spam nor trash: it is not a label that an overlay can hold. */
bool tide_shown_belongs(const struct tide_reader_shown *shown, tide_text label)
{
    char name[TIDE_LABEL_BYTES_MAX + 1];
    if (tide_text_equal(label, TIDE_TEXT(TIDE_CACHE_ALL)))
        return json_object_get(shown->labels, "SPAM") == NULL &&
               json_object_get(shown->labels, "TRASH") == NULL;
    (void)snprintf(name, sizeof name, "%.*s", (int)label.bytes, label.data);
    return json_object_get(shown->labels, name) != NULL;
}

/* Whether a base source gives this message, too: then it is shown from there (VWR1). */
static bool in_base(const struct gathering *self, const struct candidate *one)
{
    struct tide_reader_mailbox base = *self->mailbox;
    struct tide_reader_shown shown;
    base.has_overlay = false;
    const bool is = tide_shown_labels(&base, tide_text_of(one->id), &shown, NULL) == TIDE_OK &&
                    !shown.gone && tide_shown_belongs(&shown, self->listing->label);
    tide_shown_done(&shown);
    return is;
}

static tide_status row_show(const struct gathering *self, const struct candidate *one,
                            tide_json *items, uint32_t *shown_count, tide_error *err)
{
    struct tide_reader_shown shown;
    tide_json row;
    if (one->source == OVERLAY && in_base(self, one))
        return TIDE_OK;
    const tide_status rc = tide_shown_read(self->mailbox, tide_text_of(one->id), &shown, err);
    if (rc == TIDE_OK && !shown.gone && tide_shown_belongs(&shown, self->listing->label)) {
        tide_json_object(&row);
        tide_shown_json(&shown, &row);
        tide_json_append(items, &row);
        *shown_count += 1;
    }
    tide_shown_done(&shown);
    return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
}

/* VWR2. */
tide_status tide_reader_bottom(const struct tide_reader_mailbox *mailbox, tide_text label,
                               int64_t *bottom_out, bool *online_out, tide_error *err)
{
    struct tide_cache_folder own = {.floor_ms = INT64_MAX, .shown_ms = INT64_MAX};
    struct tide_cache_folder all = own;
    const bool apart =
        tide_text_equal(label, TIDE_TEXT("SPAM")) || tide_text_equal(label, TIDE_TEXT("TRASH"));
    if (mailbox->cache != NULL) {
        TIDE_TRY(tide_cache_folder_get(mailbox->cache, label, &own, err));
        TIDE_TRY(tide_cache_folder_get(mailbox->cache, TIDE_TEXT(TIDE_CACHE_ALL), &all, err));
    }
    const int64_t floor_ms = !apart && all.shown_ms < own.shown_ms ? all.shown_ms : own.shown_ms;
    const bool over = own.over || (!apart && all.over);
    const bool mirrored = mailbox->mirror_mark_ms > 0;
    const bool joined = mirrored && (mailbox->mirror_mark_ms >= floor_ms || floor_ms == INT64_MAX);
    *bottom_out = over ? INT64_MIN : joined ? mailbox->mirror_since_ms : floor_ms;
    if (floor_ms == INT64_MAX && !joined)
        *bottom_out = INT64_MIN; /* nothing was listed yet: what there is is shown */
    *online_out = !over && !(joined && mailbox->mirror_since_ms <= 0);
    return TIDE_OK;
}

static tide_status page_show(struct gathering *self, struct cursor *cursor, tide_json *items,
                             struct tide_listed *listed, tide_error *err)
{
    uint32_t shown = 0;
    size_t used = 0;
    if (self->count > 0)
        qsort(self->list, self->count, sizeof *self->list, newest_first);
    for (; used < self->count && shown < self->listing->limit; used++) {
        TIDE_TRY(row_show(self, &self->list[used], items, &shown, err));
        cursor_pass(cursor, &self->list[used]);
    }
    const bool more =
        used < self->count || self->more[ARCHIVE] || self->more[CACHE] || self->more[OVERLAY];
    return more ? cursor_write(cursor, &listed->next) : TIDE_OK;
}

tide_status tide_reader_list(const struct tide_reader_mailbox *mailbox,
                             const struct tide_listing *listing, tide_json *items,
                             struct tide_listed *listed, tide_error *err)
{
    struct gathering self = {.mailbox = mailbox, .listing = listing, .rc = TIDE_OK, .err = err};
    struct cursor cursor;
    if (listing->limit == 0 || listing->limit > PAGE_MAX)
        return tide_error_set(err, TIDE_INVALID, "a page has 1 to %d messages", PAGE_MAX);
    TIDE_TRY(cursor_read(listing, &cursor, err));
    TIDE_TRY(
        tide_reader_bottom(mailbox, listing->label, &self.bottom_ms, &listed->more_online, err));
    tide_status rc = gather(&self, &cursor, err);
    if (rc == TIDE_OK)
        rc = page_show(&self, &cursor, items, listed, err);
    tide_mem_free(mailbox->mem, self.list, self.capacity * sizeof *self.list);
    return rc;
}
