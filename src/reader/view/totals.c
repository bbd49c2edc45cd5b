/* totals.c - how many messages each list has, and how many of them are unread: the archive's counts, then what cache and overlay change of
 * them, as in days.c but for all labels at once, and without a bottom. */
#include "reader/view/view.h"

#include "reader/store/store.h"

#include <stdio.h>

enum { ROWS_AT_ONCE = 500 };

struct counting {
    const struct tide_reader_mailbox *mailbox;
    json_t *totals, *unread;
    int64_t last_row;
    size_t seen;
    tide_error *err;
};

static void one_add(json_t *counts, const char *label, int64_t count)
{
    const json_int_t before = json_integer_value(json_object_get(counts, label));
    if (count != 0)
        (void)json_object_set_new(counts, label, json_integer(before + count));
}

static void label_add(struct counting *self, const char *label, int64_t count, int64_t unread)
{
    one_add(self->totals, label, count);
    one_add(self->unread, label, unread);
}

static void archived_add(const char *label, int64_t count, int64_t unread, void *arg)
{
    label_add(arg, label[0] == '\0' ? TIDE_CACHE_ALL : label, count, unread);
}

/* All labels of a message as the given sources have it. */
static void message_add(struct counting *self, bool cache, bool overlay, tide_text id,
                        int64_t count)
{
    struct tide_reader_mailbox part = *self->mailbox;
    struct tide_reader_shown shown = {.labels = NULL};
    const char *label = NULL;
    json_t *value = NULL;
    part.has_overlay = part.has_overlay && overlay;
    if (!cache)
        part.cache = NULL;
    if (tide_shown_labels(&part, id, &shown, NULL) == TIDE_OK && !shown.gone) {
        const int64_t unread = json_object_get(shown.labels, "UNREAD") != NULL ? count : 0;
        json_object_foreach(shown.labels, label, value)
        {
            label_add(self, label, count, unread);
        }
        if (tide_shown_belongs(&shown, TIDE_TEXT(TIDE_CACHE_ALL)))
            label_add(self, TIDE_CACHE_ALL, count, unread);
    }
    tide_shown_done(&shown);
}

/* What the archive says of a message in the cache does not count. */
static bool see_row(const struct tide_cached *cached, void *arg)
{
    struct counting *self = arg;
    self->seen++;
    self->last_row = cached->row;
    message_add(self, false, false, tide_text_of(cached->id), -1);
    return true;
}

static void cached_add(tide_text label, uint64_t count, uint64_t unread, void *arg)
{
    char name[TIDE_LABEL_BYTES_MAX + 1];
    (void)snprintf(name, sizeof name, "%.*s", (int)label.bytes, label.data);
    label_add(arg, name, (int64_t)count, (int64_t)unread);
}

static tide_status cache_count(struct counting *self)
{
    do {
        self->seen = 0;
        if (self->mailbox->archive != NULL)
            TIDE_TRY(tide_cache_rows(self->mailbox->cache, self->last_row, ROWS_AT_ONCE, see_row,
                                     self, self->err));
    } while (self->seen == ROWS_AT_ONCE);
    return tide_cache_counts(self->mailbox->cache, cached_add, self, self->err);
}

static void see_changed(tide_text id, void *arg)
{
    message_add(arg, true, false, id, -1);
    message_add(arg, true, true, id, 1);
}

tide_status tide_reader_totals(const struct tide_reader_mailbox *mailbox, json_t *totals,
                               json_t *unread, tide_error *err)
{
    struct counting self = {.mailbox = mailbox, .totals = totals, .unread = unread, .err = err};
    if (mailbox->archive != NULL)
        TIDE_TRY(tide_archive_counts(mailbox->archive, archived_add, &self, err));
    if (mailbox->cache != NULL)
        TIDE_TRY(cache_count(&self));
    return mailbox->has_overlay
               ? tide_overlay_messages(mailbox->db, mailbox->account, see_changed, &self, err)
               : TIDE_OK;
}
