/* view.h - archive, cache and overlay as one mailbox, as a person sees it (KR1, KR5).
 *
 *     shown.c  one message: its labels as they are shown, its row
 *     list.c   a list: pages of it, newest first
 *     days.c   how many messages of a list arrived on each day
 *     totals.c how many messages each list has
 *     find.c   a search of archive and cache
 *
 * It reads and changes nothing.  A row of the cache counts before one of the archive: it is there
 * because the archive has the message not, or not as it is now.  The overlay counts before both.
 *
 * Invariants:
 *   VWR1  a message is shown at most once in a page.
 *   VWR2  a list shows a message only where it is known without holes: since the floor of the list in
 *         the cache, and further where the mirror joins it.
 *   VWR3  a page continues after the one before it, in each of the three sources; a message that moves
 *         from one to the other meanwhile may be shown again, or not: `changes` tells of it.
 *   VWR4  a message that a search found has labels with which it can be a match, as they are shown.
 */
#ifndef TIDE_READER_VIEW_H
#define TIDE_READER_VIEW_H

#include "base/json.h"
#include "db/rows.h"
#include "mail/archive/archive.h"
#include "mail/search/search.h"
#include "reader/cache/cache.h"

/* Where a mailbox is read from; all borrowed. */
struct tide_reader_mailbox {
    tide_mem *mem;
    uint32_t account;
    tide_cache *cache;     /* NULL: there is none */
    tide_archive *archive; /* likewise */
    tide_rows db;          /* a ledger, to read */
    bool has_overlay;      /* its tables exist */
    /* What the mirror has without holes: [since, mark). */
    int64_t mirror_since_ms, mirror_mark_ms; /* mark 0: nothing */
};

/* One message; embedded.  Texts live as long as it. */
struct tide_reader_shown {
    char id[TIDE_CACHE_ID_BYTES], thread[TIDE_CACHE_ID_BYTES];
    int64_t internal_ms;
    uint64_t bytes;
    json_t *labels; /* an object whose keys they are, as they are shown; owned */
    bool pending;   /* an action waits */
    bool gone;      /* it is not shown any more */
    bool archived, cached_body;
    bool pinned, files;
    tide_buf from, to, subject, snippet;
};
void tide_shown_done(struct tide_reader_shown *shown); /* a zeroed one is fine */
/* TIDE_NOT_FOUND: neither archive nor cache has it. */
tide_status tide_shown_read(const struct tide_reader_mailbox *mailbox, tide_text id,
                            struct tide_reader_shown *shown, tide_error *err);
/* Its labels alone: id, thread, internal_ms, labels, pending, gone. */
tide_status tide_shown_labels(const struct tide_reader_mailbox *mailbox, tide_text id,
                              struct tide_reader_shown *shown, tide_error *err);
/* A row of the API: id, thread, internal_unix_ms, from, to, subject, snippet, labels, unread, starred,
 * files, bytes, body, pending. */
void tide_shown_json(const struct tide_reader_shown *shown, tide_json *json);

struct tide_listing {
    tide_text label;
    tide_text after;   /* where the page before ended; "": the top */
    int64_t before_ms; /* only what arrived before; INT64_MAX: all */
    uint32_t limit;
};
struct tide_listed {
    tide_buf next;    /* for `after`; empty: there is no more here */
    bool more_online; /* the server may have more */
};
/* Appends rows to `items`.  TIDE_INVALID: `after` is of no page. */
tide_status tide_reader_list(const struct tide_reader_mailbox *mailbox,
                             const struct tide_listing *listing, tide_json *items,
                             struct tide_listed *listed, tide_error *err);

struct tide_finding {
    const tide_query *query;
    const char *email; /* of the mailbox: "me" in a query */
    tide_text after;   /* where the page before ended; "": the top */
    uint32_t limit;
    const tide_cancel *cancel; /* NULL: nothing cancels it */
};
/* Appends rows to `items`, newest first; `next` is for `after`, and stays empty when there is no more
 * here.  A page may be shorter than its limit.  TIDE_INVALID: `after` is of no page, or the query has a
 * label that neither archive nor cache has, or no word. */
tide_status tide_reader_find(const struct tide_reader_mailbox *mailbox,
                             const struct tide_finding *finding, tide_json *items, tide_buf *next,
                             tide_error *err);

/* Since when a list shows what it has (VWR2); *online_out: the server may have more.  In days.c and
 * list.c. */
tide_status tide_reader_bottom(const struct tide_reader_mailbox *mailbox, tide_text label,
                               int64_t *bottom_out, bool *online_out, tide_error *err);
/* Whether a message is in a list, by its labels. */
bool tide_shown_belongs(const struct tide_reader_shown *shown, tide_text label);

/* How many messages of a list are shown, by day in UTC, counted from 1970: newest first, without days
 * that have none. */
tide_status tide_reader_days(const struct tide_reader_mailbox *mailbox, tide_text label,
                             void (*visit)(int64_t day, uint64_t count, void *arg), void *arg,
                             tide_error *err);

/* Sets in `totals`, an object, how many messages that are known here each label has, and ALL; in
 * `unread` how many of them are unread. */
tide_status tide_reader_totals(const struct tide_reader_mailbox *mailbox, json_t *totals,
                               json_t *unread, tide_error *err);

#endif
