/* days.c - counts of a list by day: the archive's, then what cache and overlay change of them (VWR2).
 *
 * The archive counts quickly whatever its size.  What the cache has counts instead of what the archive
 * says of the same message, and the overlay on top; both are few. */
#include "reader/view/view.h"

#include "reader/store/store.h"

#include <stdlib.h>

enum { DAY_MS = 86400000, ROWS_AT_ONCE = 500, DAYS_MAX = 4 << 20 };

struct day {
    int64_t day, count;
};

struct counting {
    const struct tide_reader_mailbox *mailbox;
    tide_text label;
    int64_t bottom_ms;
    struct day *days;
    size_t count, capacity;
    int64_t last_row; /* of the cache, as the next */
    struct tide_cache_place place;
    size_t seen;
    tide_status rc;
    tide_error *err;
};

static void day_add(int64_t day, int64_t count, void *arg)
{
    struct counting *self = arg;
    void *days = self->days;
    if (self->count > 0 && self->days[self->count - 1].day == day) {
        self->days[self->count - 1].count += count;
        return;
    }
    if (!tide_mem_grow(self->mailbox->mem, &days, &self->capacity, self->count + 1, DAYS_MAX,
                       sizeof *self->days)) {
        self->rc = tide_error_set(self->err, TIDE_NO_MEMORY, "no memory to count days");
        return;
    }
    self->days = days;
    self->days[self->count++] = (struct day){day, count};
}

static void message_add(struct counting *self, int64_t internal_ms, int64_t count)
{
    if (internal_ms >= self->bottom_ms)
        day_add(internal_ms / DAY_MS, count, self);
}

/* ---- the cache ---- */

/* Whether a message is in the list as the given sources have it; when it arrived. */
static bool is_in(const struct counting *self, bool cache, bool overlay, tide_text id,
                  int64_t *internal_ms)
{
    struct tide_reader_mailbox part = *self->mailbox;
    struct tide_reader_shown shown = {.labels = NULL};
    part.has_overlay = part.has_overlay && overlay;
    if (!cache)
        part.cache = NULL;
    const bool is = tide_shown_labels(&part, id, &shown, NULL) == TIDE_OK && !shown.gone &&
                    tide_shown_belongs(&shown, self->label);
    if (is)
        *internal_ms = shown.internal_ms;
    tide_shown_done(&shown);
    return is;
}

/* What the archive says of it does not count. */
static bool see_row(const struct tide_cached *cached, void *arg)
{
    struct counting *self = arg;
    int64_t internal_ms = 0;
    self->seen++;
    self->last_row = cached->row;
    if (is_in(self, false, false, tide_text_of(cached->id), &internal_ms))
        message_add(self, internal_ms, -1);
    return self->rc == TIDE_OK;
}

static bool see_listed(const struct tide_cached *cached, void *arg)
{
    struct counting *self = arg;
    self->seen++;
    self->place = (struct tide_cache_place){cached->internal_ms, cached->row};
    if (!cached->gone)
        message_add(self, cached->internal_ms, 1);
    return self->rc == TIDE_OK && cached->internal_ms >= self->bottom_ms;
}

static tide_status cache_count(struct counting *self)
{
    tide_cache *cache = self->mailbox->cache;
    do {
        self->seen = 0;
        if (self->mailbox->archive != NULL)
            TIDE_TRY(
                tide_cache_rows(cache, self->last_row, ROWS_AT_ONCE, see_row, self, self->err));
    } while (self->rc == TIDE_OK && self->seen == ROWS_AT_ONCE);
    do {
        self->seen = 0;
        TIDE_TRY(tide_cache_list(cache, self->label, self->place, ROWS_AT_ONCE, see_listed, self,
                                 self->err));
    } while (self->rc == TIDE_OK && self->seen == ROWS_AT_ONCE);
    return self->rc;
}

/* ---- the overlay ---- */

static void see_changed(tide_text id, void *arg)
{
    struct counting *self = arg;
    int64_t internal_ms = 0;
    if (is_in(self, true, false, id, &internal_ms))
        message_add(self, internal_ms, -1);
    if (is_in(self, true, true, id, &internal_ms))
        message_add(self, internal_ms, 1);
}

/* ---- all ---- */

static int newest_first(const void *one, const void *other)
{
    const struct day *a = one;
    const struct day *b = other;
    return a->day > b->day ? -1 : a->day < b->day;
}

static void days_show(struct counting *self, void (*visit)(int64_t day, uint64_t count, void *arg),
                      void *arg)
{
    if (self->count > 0)
        qsort(self->days, self->count, sizeof *self->days, newest_first);
    for (size_t i = 0; i < self->count;) {
        const int64_t day = self->days[i].day;
        int64_t count = 0;
        for (; i < self->count && self->days[i].day == day; i++)
            count += self->days[i].count;
        if (count > 0)
            visit(day, (uint64_t)count, arg);
    }
}

static tide_status count_all(struct counting *self)
{
    const struct tide_reader_mailbox *mailbox = self->mailbox;
    const bool all = tide_text_equal(self->label, TIDE_TEXT(TIDE_CACHE_ALL));
    bool online = false;
    TIDE_TRY(tide_reader_bottom(mailbox, self->label, &self->bottom_ms, &online, self->err));
    if (mailbox->archive != NULL)
        TIDE_TRY(tide_archive_days(mailbox->archive, all ? TIDE_TEXT("") : self->label,
                                   self->bottom_ms, day_add, self, self->err));
    if (self->rc == TIDE_OK && mailbox->cache != NULL)
        TIDE_TRY(cache_count(self));
    if (self->rc == TIDE_OK && mailbox->has_overlay)
        TIDE_TRY(
            tide_overlay_messages(mailbox->db, mailbox->account, see_changed, self, self->err));
    return self->rc;
}

tide_status tide_reader_days(const struct tide_reader_mailbox *mailbox, tide_text label,
                             void (*visit)(int64_t day, uint64_t count, void *arg), void *arg,
                             tide_error *err)
{
    struct counting self = {
        .mailbox = mailbox, .label = label, .place = TIDE_CACHE_TOP, .rc = TIDE_OK, .err = err};
    const tide_status rc = count_all(&self);
    if (rc == TIDE_OK)
        days_show(&self, visit, arg);
    tide_mem_free(mailbox->mem, self.days, self.capacity * sizeof *self.days);
    return rc;
}
