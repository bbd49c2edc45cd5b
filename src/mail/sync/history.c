/* history.c - mail.history: reads the changes since the adopted history id (M5, M6a).
 *
 * New messages become mail.fetch jobs of the same cycle; label changes and deletions are recorded,
 * and the local copy stays.  The id that the last page names is recorded for this cycle with the
 * job's end: it is adopted when the cycle and all before it are finished.  If the id has expired or
 * is not a history id, the whole mailbox is listed and compared instead. */
#include "base/check.h"
#include "base/json.h"
#include "mail/inside.h"
#include "mail/manifest.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CHANGES_MAX = 256, /* passed to the archive at once */
    IDS_MAX = 1 << 20, /* of one page; the size of the answer limits it earlier */
    BAD_REQUEST = 400,
    FLIGHT_WAIT_MS = 20, /* between two checks of a message that is being fetched */
};

struct history {
    tide_mail *mail;
    struct tide_mail_user *user;
    struct tide_mail_row row;
    tide_job *job;
    json_t *payload; /* owned by the handler; the page's token points into it */
    struct tide_mail_page page;
    uint64_t tries;
    char start[64];
    uint64_t stream;
    uint64_t ordinal;
    char end[64]; /* the id to adopt */
    bool relist;  /* the start has expired */
    bool dates;
    int64_t now_ms;
    uint64_t ticket;
};

static tide_status write_history(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct history *history = arg;
    const struct tide_mail_relist relist = {.cycle = tide_job_cycle(history->job),
                                            .account = tide_job_account(history->job),
                                            .from_ms = history->row.since_ms,
                                            .now_ms = (uint64_t)history->now_ms,
                                            .dates = history->dates};
    if (history->relist)
        TIDE_TRY(tide_mail_relist(transaction, history->mail, &relist, err));
    /* The id that will be adopted is not reached by reading the history. */
    if (history->relist)
        TIDE_TRY(tide_mail_labels_wanted(transaction, &relist, history->end, err));
    if (history->end[0] != '\0')
        TIDE_TRY(tide_mail_mark_put(tide_transaction_rows(transaction), history->stream,
                                    history->ordinal, tide_text_of(history->end), err));
    return TIDE_OK;
}

/* ---- records ---- */

static tide_text id_of(const json_t *entry)
{
    return tide_text_of(
        json_string_value(json_object_get(json_object_get(entry, "message"), "id")));
}

/* The answer to a get in flight is older than this page: the archive must take the page's changes
 * after it. */
static tide_status wait_for_flight(struct history *history, tide_text id, tide_error *err)
{
    while (tide_mail_in_flight(history->mail, history->user, id)) {
        const tide_status rc = tide_job_sleep(history->job, FLIGHT_WAIT_MS);
        if (rc != TIDE_OK)
            return tide_error_set(err, rc, "canceled");
        tide_job_beat(history->job, 0);
    }
    return TIDE_OK;
}

struct changes {
    struct tide_label_change list[CHANGES_MAX];
    size_t count;
};

static tide_status changes_flush(struct history *history, struct changes *changes, tide_error *err)
{
    if (changes->count == 0)
        return TIDE_OK;
    const size_t count = changes->count;
    changes->count = 0;
    return tide_mail_archived(
        history->user,
        tide_archive_labels(history->user->archive, changes->list, count, &history->ticket, err),
        err);
}

static tide_status take_labels(struct history *history, const json_t *record, const char *key,
                               bool added, struct changes *changes, tide_error *err)
{
    size_t index = 0;
    const json_t *entry = NULL;
    json_array_foreach(json_object_get(record, key), index, entry)
    {
        size_t at = 0;
        const json_t *label = NULL;
        tide_status rc = wait_for_flight(history, id_of(entry), err);
        if (rc != TIDE_OK)
            return rc;
        json_array_foreach(json_object_get(entry, "labelIds"), at, label)
        {
            if (!json_is_string(label))
                continue;
            changes->list[changes->count++] = (struct tide_label_change){
                .gmail_id = id_of(entry),
                .label = tide_text_of(json_string_value(label)),
                .added = added,
                .at_ms = history->now_ms,
                .history_id = tide_text_of(json_string_value(json_object_get(record, "id"))),
            };
            if (changes->count == CHANGES_MAX)
                rc = changes_flush(history, changes, err);
            if (rc != TIDE_OK)
                return rc;
        }
    }
    return TIDE_OK;
}

static tide_status take_deleted(struct history *history, const json_t *record, tide_error *err)
{
    size_t index = 0;
    const json_t *entry = NULL;
    json_array_foreach(json_object_get(record, "messagesDeleted"), index, entry)
    {
        tide_status rc = wait_for_flight(history, id_of(entry), err);
        if (rc == TIDE_OK)
            rc = tide_mail_archived(history->user,
                                    tide_archive_gone(history->user->archive, id_of(entry),
                                                      history->now_ms, &history->ticket, err),
                                    err);
        if (rc != TIDE_OK)
            return rc;
    }
    return TIDE_OK;
}

static tide_status take_records(struct history *history, const json_t *records, tide_error *err)
{
    struct changes *changes = tide_mem_new(history->mail->mem, sizeof *changes);
    if (changes == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for changes of labels");
    tide_status rc = TIDE_OK;
    size_t index = 0;
    const json_t *record = NULL;
    json_array_foreach(records, index, record)
    {
        if (rc == TIDE_OK)
            rc = take_labels(history, record, "labelsAdded", true, changes, err);
        if (rc == TIDE_OK)
            rc = take_labels(history, record, "labelsRemoved", false, changes, err);
        if (rc == TIDE_OK)
            rc = changes_flush(history, changes, err);
        if (rc == TIDE_OK)
            rc = take_deleted(history, record, err);
    }
    tide_mem_free(history->mail->mem, changes, sizeof *changes);
    return rc;
}

tide_status tide_mail_history_ids(const json_t *records, tide_error *err)
{
    static const char *const keys[] = {"messagesAdded", "messagesDeleted", "labelsAdded",
                                       "labelsRemoved"};
    size_t index = 0;
    const json_t *record = NULL;
    json_array_foreach(records, index, record)
    {
        for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
            size_t at = 0;
            const json_t *entry = NULL;
            json_array_foreach(json_object_get(record, keys[i]), at, entry)
            {
                if (!tide_mail_id_can_be(id_of(entry).data))
                    return tide_error_set(err, TIDE_SERVER,
                                          "the history names a message with an invalid id");
            }
        }
    }
    return TIDE_OK;
}

/* ---- messages of a page that are not stored ---- */

struct named {
    tide_mem *mem;
    tide_text *ids;
    size_t count, capacity;
};

static tide_status named_add(struct named *named, const json_t *record, const char *key,
                             tide_error *err)
{
    size_t index = 0;
    const json_t *entry = NULL;
    json_array_foreach(json_object_get(record, key), index, entry)
    {
        if (!TIDE_GROW_IN(named->mem, named->ids, named->capacity, named->count + 1, IDS_MAX))
            return tide_error_set(err, TIDE_NO_MEMORY, "no memory for %zu ids", named->count);
        named->ids[named->count++] = id_of(entry);
    }
    return TIDE_OK;
}

static int id_order(const void *a, const void *b)
{
    const tide_text *x = a;
    const tide_text *y = b;
    const size_t bytes = x->bytes < y->bytes ? x->bytes : y->bytes;
    const int order = memcmp(x->data, y->data, bytes);
    return order != 0 ? order : (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* The ids a page adds, to be fetched by jobs of this cycle.  A message whose labels changed and
 * which is not stored was missed by a listing, unless only a part of the mailbox is synced, to
 * which it need not belong. */
static tide_status take_named(struct history *history, const json_t *records, tide_error *err)
{
    struct named named = {.mem = history->mail->mem};
    tide_status rc = TIDE_OK;
    size_t index = 0;
    const json_t *record = NULL;
    json_array_foreach(records, index, record)
    {
        if (rc == TIDE_OK)
            rc = named_add(&named, record, "messagesAdded", err);
        if (rc == TIDE_OK && history->row.since_ms == 0)
            rc = named_add(&named, record, "labelsAdded", err);
        if (rc == TIDE_OK && history->row.since_ms == 0)
            rc = named_add(&named, record, "labelsRemoved", err);
    }
    size_t count = 0;
    if (named.count > 0)
        qsort(named.ids, named.count, sizeof *named.ids, id_order);
    for (size_t i = 0; i < named.count; i++)
        if (count == 0 || !tide_text_equal(named.ids[count - 1], named.ids[i]))
            named.ids[count++] = named.ids[i];
    if (rc == TIDE_OK)
        rc = tide_mail_fetch_missing(history->mail, history->user, history->job, named.ids, count,
                                     err);
    tide_mem_free(named.mem, named.ids, named.capacity * sizeof *named.ids);
    return rc;
}

/* Whether history id a is greater than b, as numbers of any length; false if one is not a
 * number. */
static bool is_behind(tide_text a, tide_text b)
{
    const tide_text both[2] = {a, b};
    for (int i = 0; i < 2; i++)
        for (size_t k = 0; k < both[i].bytes; k++)
            if (both[i].data[k] < '0' || both[i].data[k] > '9')
                return false;
    if (b.bytes == 0 || a.bytes != b.bytes)
        return b.bytes > 0 && a.bytes > b.bytes;
    return memcmp(a.data, b.data, a.bytes) > 0;
}

static tide_status take_page(struct history *history, const struct tide_gmail_history *page,
                             tide_error *err)
{
    TIDE_TRY(tide_mail_history_ids(page->records, err));
    TIDE_TRY(take_named(history, page->records, err));
    TIDE_TRY(take_records(history, page->records, err));
    if (page->history_id.bytes == 0 || page->history_id.bytes >= sizeof history->end)
        return tide_error_set(err, TIDE_SERVER, "the history does not name its last id");
    (void)snprintf(history->end, sizeof history->end, "%.*s", (int)page->history_id.bytes,
                   page->history_id.data);
    return TIDE_OK;
}

/* The next page is a separate job of the same cycle; only the last one records the id to adopt. */
static tide_status page_job(struct history *history, const struct tide_mail_page *page,
                            tide_error *err)
{
    tide_auto_json payload;
    tide_json_object(&payload);
    tide_json_set_cstr(&payload, "start", history->start);
    tide_json_set_u64(&payload, "stream", history->stream);
    tide_json_set_u64(&payload, "ordinal", history->ordinal);
    tide_json_set_u64(&payload, "tries", history->tries);
    return tide_mail_page_job(history->mail, history->job, history->mail->history_kind, &payload,
                              page, err);
}

static tide_status go_on(struct history *history, tide_text next, tide_error *err)
{
    struct tide_mail_page page;
    history->end[0] = '\0'; /* adopted with the last page */
    if (tide_mail_page_next(&history->page, next, &page))
        return page_job(history, &page, err);
    (void)tide_error_set(err, TIDE_SERVER, "the history repeats a page");
    return tide_mail_over(history->job, history->tries, err);
}

/* TIDE_GONE: the start cannot be used.  It has expired; or it is not a history id, or lies after
 * the end, because a corrupt answer was accepted once.  Then everything is listed. */
static tide_status walk(struct history *history, tide_error *err)
{
    struct tide_gmail_history page = {0};
    const tide_text start = tide_text_of(history->start);
    tide_status rc = tide_gmail_history(history->user->gmail, history->job, start,
                                        history->page.token, &page, err);
    const bool later = history->page.number > 0;
    if (rc == TIDE_OK && is_behind(start, page.history_id))
        rc = TIDE_GONE;
    else if (rc == TIDE_PERMANENT && later)
        rc = tide_mail_over(history->job, history->tries, err); /* page token refused */
    else if (rc == TIDE_PERMANENT && err != NULL && err->code == BAD_REQUEST)
        rc = TIDE_GONE;
    else if (rc == TIDE_OK)
        rc = take_page(history, &page, err);
    if (rc == TIDE_OK && page.next.bytes > 0)
        rc = go_on(history, page.next, err);
    tide_gmail_history_done(&page);
    return rc;
}

/* An expired id: everything is listed again, in this cycle.  A listing costs 5 units for 500 ids,
 * only missing messages are fetched, and stored messages that were not listed are checked
 * (absent.c).  The position is read before the listing (M6a). */
static tide_status expired(struct history *history, tide_error *err)
{
    struct tide_mail_position position = {0};
    TIDE_TRY(tide_mail_position(history->mail, history->user, history->job, &position, err));
    memcpy(history->end, position.history_id, sizeof history->end);
    history->dates = position.dates;
    history->relist = true;
    return TIDE_OK;
}

/* The second call may find no units left, and then the job is run again (E4.3a): it must not spend
 * units on the expired id again, or it would never reach the second call. */
static tide_status walk_or_relist(struct history *history, tide_error *err)
{
    const tide_text dead = TIDE_TEXT("expired");
    if (!tide_text_equal(tide_job_resume(history->job), dead)) {
        tide_status rc = walk(history, err);
        if (rc == TIDE_GONE)
            rc = tide_job_resume_set(history->job, dead, err);
        else
            return rc;
        if (rc != TIDE_OK)
            return rc;
    }
    return expired(history, err);
}

static tide_status read_payload(struct history *history, tide_error *err)
{
    tide_text start;
    TIDE_TRY(tide_json_parse(tide_job_payload(history->job), &history->payload, err));
    const json_t *payload = history->payload;
    TIDE_TRY(tide_json_get_text(payload, "start", &start, err));
    if (start.bytes == 0 || start.bytes >= sizeof history->start)
        return tide_error_set(err, TIDE_INVALID, "a history id of %zu bytes", start.bytes);
    memcpy(history->start, start.data, start.bytes);
    TIDE_TRY(tide_json_get_u64(payload, "stream", &history->stream, err));
    TIDE_TRY(tide_json_get_u64(payload, "ordinal", &history->ordinal, err));
    (void)tide_json_get_u64(payload, "tries", &history->tries, NULL);
    TIDE_TRY(tide_mail_page_read(payload, &history->page, err));
    tide_mail_over_begin(history->job, &history->page, &history->tries);
    return TIDE_OK;
}

static tide_status history_run(tide_job *job, void *context, tide_error *err)
{
    struct history *history = tide_job_memory(job, sizeof *history);
    if (history == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for a history run");
    history->mail = context;
    history->job = job;
    history->now_ms = (int64_t)tide_world_now_unix_ms(history->mail->world);
    tide_status rc = read_payload(history, err);
    if (rc == TIDE_OK)
        rc = tide_mail_user(history->mail, tide_job_account(job), &history->user, err);
    if (rc == TIDE_OK)
        rc = tide_mail_row_read(history->mail, tide_job_account(job), &history->row, err);
    if (rc == TIDE_OK)
        rc = walk_or_relist(history, err);
    json_decref(history->payload);
    if (rc == TIDE_OK && history->ticket > 0) {
        rc = tide_mail_archived(history->user,
                                tide_archive_sync(history->user->archive, history->ticket,
                                                  tide_job_cancellation(job), err),
                                err);
        if (rc == TIDE_OK)
            rc = tide_mail_remember(history->mail, history->user, job, err);
        if (rc == TIDE_OK)
            rc = tide_mail_remember_gone(history->mail, history->user, job, err);
    }
    return rc == TIDE_OK ? tide_job_effect(job, write_history, history, err) : rc;
}

tide_status tide_mail_history(tide_job *job, void *context, tide_error *err)
{
    return tide_mail_ended(context, job, history_run(job, context, err), err);
}
