/* mail.history: what changed since the adopted history id (M5, M6a).
 *
 * New messages become mail.fetch jobs of the same cycle; changes of labels and
 * deletions are recorded, the local copy stays.  The id the last page names is
 * noted for this cycle with the job's end: it is adopted when the cycle and all
 * before it are finished.  An expired id lets the whole mailbox be listed and
 * compared instead. */
#include "base/check.h"
#include "base/json.h"
#include "mail/mail_inside.h"
#include "mail/slice.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { PAGES_MAX = 100000, CHANGES_MAX = 1000, RELIST_DAYS = 30 };

struct history {
    tide_mail *mail;
    struct tide_mail_user *user;
    tide_job *job;
    json_t *payload; /* owned by the handler; token points into it */
    tide_text token;
    uint64_t page;
    char start[64];
    uint64_t stream;
    uint64_t ordinal;
    char end[64]; /* the id to adopt */
    int64_t now_ms;
    uint64_t ticket;
};

static tide_status write_mark(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct history *history = arg;
    return tide_mail_mark_put(tide_transaction_sqlite(transaction), history->stream,
                              history->ordinal, tide_text_of(history->end), err);
}

/* ---- records ---- */

static tide_text id_of(const json_t *entry)
{
    return tide_text_of(
        json_string_value(json_object_get(json_object_get(entry, "message"), "id")));
}

static tide_status take_labels(struct history *history, const json_t *record, const char *key,
                               bool added, tide_error *err)
{
    struct tide_label_change changes[CHANGES_MAX];
    size_t count = 0;
    size_t index = 0;
    const json_t *entry = NULL;
    json_array_foreach(json_object_get(record, key), index, entry)
    {
        size_t at = 0;
        const json_t *label = NULL;
        json_array_foreach(json_object_get(entry, "labelIds"), at, label)
        {
            if (count == CHANGES_MAX || id_of(entry).bytes == 0 || !json_is_string(label))
                continue;
            changes[count++] = (struct tide_label_change){
                .gmail_id = id_of(entry),
                .label = tide_text_of(json_string_value(label)),
                .added = added,
                .at_ms = history->now_ms,
                .history_id = tide_text_of(json_string_value(json_object_get(record, "id"))),
            };
        }
    }
    return count == 0
               ? TIDE_OK
               : tide_archive_labels(history->user->archive, changes, count, &history->ticket, err);
}

static tide_status take_record(struct history *history, const json_t *record, tide_error *err)
{
    tide_status rc = take_labels(history, record, "labelsAdded", true, err);
    if (rc == TIDE_OK)
        rc = take_labels(history, record, "labelsRemoved", false, err);
    size_t index = 0;
    const json_t *entry = NULL;
    json_array_foreach(json_object_get(record, "messagesDeleted"), index,
                       entry) if (rc == TIDE_OK && id_of(entry).bytes > 0) rc =
        tide_archive_gone(history->user->archive, id_of(entry), history->now_ms, &history->ticket,
                          err);
    return rc;
}

/* The ids a page adds, to be fetched by jobs of this cycle. */
static tide_status take_added(struct history *history, const json_t *records, tide_error *err)
{
    tide_text ids[TIDE_GMAIL_PAGE_MAX];
    size_t count = 0;
    tide_status rc = TIDE_OK;
    size_t index = 0;
    const json_t *record = NULL;
    json_array_foreach(records, index, record)
    {
        size_t at = 0;
        const json_t *entry = NULL;
        json_array_foreach(json_object_get(record, "messagesAdded"), at, entry)
        {
            if (id_of(entry).bytes == 0 || id_of(entry).bytes > TIDE_GMAIL_ID_BYTES_MAX)
                return tide_error_set(err, TIDE_SERVER, "history names a message without an id");
            ids[count++] = id_of(entry);
            if (count < TIDE_GMAIL_PAGE_MAX)
                continue;
            rc = tide_mail_fetch_missing(history->mail, history->user, history->job, ids, count,
                                         err);
            if (rc != TIDE_OK)
                return rc;
            count = 0;
        }
    }
    return tide_mail_fetch_missing(history->mail, history->user, history->job, ids, count, err);
}

static tide_status take_page(struct history *history, const struct tide_gmail_history *page,
                             tide_error *err)
{
    tide_status rc = take_added(history, page->records, err);
    size_t index = 0;
    const json_t *record = NULL;
    json_array_foreach(page->records, index, record) if (rc == TIDE_OK) rc =
        take_record(history, record, err);
    if (rc == TIDE_OK &&
        (page->history_id.bytes == 0 || page->history_id.bytes >= sizeof history->end))
        rc = tide_error_set(err, TIDE_SERVER, "history does not say where it stands");
    if (rc == TIDE_OK)
        (void)snprintf(history->end, sizeof history->end, "%.*s", (int)page->history_id.bytes,
                       page->history_id.data);
    return rc;
}

/* The next page is a job of its own, of the same cycle; only the last one notes
 * the id to adopt. */
static tide_status next_page(struct history *history, tide_text token, tide_error *err)
{
    tide_json payload;
    tide_buf line;
    if (tide_text_equal(token, history->token) || history->page == PAGES_MAX)
        return tide_error_set(err, TIDE_SERVER, "history names the same page again");
    tide_buf_init(&line, history->mail->mem, 16 << 10);
    tide_json_object(&payload);
    tide_json_set_cstr(&payload, "start", history->start);
    tide_json_set_u64(&payload, "stream", history->stream);
    tide_json_set_u64(&payload, "ordinal", history->ordinal);
    tide_json_set_u64(&payload, "page", history->page + 1);
    tide_json_set_text(&payload, "token", token);
    tide_status rc = tide_json_line(&payload, &line);
    tide_json_done(&payload);
    if (rc != TIDE_OK)
        rc = tide_error_set(err, TIDE_SERVER, "a page token of %zu bytes", token.bytes);
    const struct tide_spec spec = {.kind = history->mail->history_kind,
                                   .account = tide_job_account(history->job),
                                   .payload = tide_buf_cstr(&line)};
    if (rc == TIDE_OK)
        rc = tide_job_enqueue(history->job, &spec, err);
    tide_buf_done(&line);
    return rc;
}

static tide_status walk(struct history *history, tide_error *err)
{
    struct tide_gmail_history page = {0};
    tide_status rc = tide_gmail_history(history->user->gmail, history->job,
                                        tide_text_of(history->start), history->token, &page, err);
    if (rc == TIDE_OK)
        rc = take_page(history, &page, err);
    if (rc == TIDE_OK && page.next.bytes > 0) {
        rc = next_page(history, page.next, err);
        history->end[0] = '\0'; /* adopted with the last page */
    }
    tide_gmail_history_done(&page);
    return rc;
}

/* ---- an expired id ---- */

/* Lists everything again, as children of this job and so in its cycle: listing
 * costs 5 units for 500 ids, and only what is not stored is fetched. */
static tide_status relist(struct history *history, tide_error *err)
{
    struct tide_gmail_profile profile = {0};
    tide_status rc = tide_gmail_profile(history->user->gmail, history->job, &profile, err);
    if (rc != TIDE_OK)
        return rc;
    (void)snprintf(history->end, sizeof history->end, "%s", profile.history_id);
    const struct tide_slices slices =
        tide_slices_plan(0, (uint64_t)history->now_ms / 1000 + 1, RELIST_DAYS * 12);
    for (size_t i = 0; rc == TIDE_OK && i < slices.count; i++) {
        const struct tide_slice slice = tide_slices_at(&slices, i);
        char payload[128];
        (void)snprintf(payload, sizeof payload, "{\"after\":%" PRIu64 ",\"before\":%" PRIu64 "}",
                       slice.after_s, slice.before_s);
        const struct tide_spec spec = {.kind = history->mail->list_kind,
                                       .account = tide_job_account(history->job),
                                       .payload = payload};
        rc = tide_job_enqueue(history->job, &spec, err);
    }
    return rc;
}

static tide_status read_payload(struct history *history, tide_error *err)
{
    tide_text start;
    tide_status rc = tide_json_parse(tide_job_payload(history->job), &history->payload, err);
    const json_t *payload = history->payload;
    if (rc == TIDE_OK)
        rc = tide_json_get_text(payload, "start", &start, err);
    if (rc == TIDE_OK && start.bytes < sizeof history->start)
        memcpy(history->start, start.data, start.bytes);
    if (rc == TIDE_OK)
        rc = tide_json_get_u64(payload, "stream", &history->stream, err);
    if (rc == TIDE_OK)
        rc = tide_json_get_u64(payload, "ordinal", &history->ordinal, err);
    if (rc == TIDE_OK && tide_json_get_text(payload, "token", &history->token, NULL) == TIDE_OK)
        rc = tide_json_get_u64(payload, "page", &history->page, err);
    return rc;
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
        rc = walk(history, err);
    if (rc == TIDE_GONE)
        rc = relist(history, err);
    json_decref(history->payload);
    if (rc == TIDE_OK && history->ticket > 0)
        rc = tide_mail_archived(history->user,
                                tide_archive_sync(history->user->archive, history->ticket,
                                                  tide_job_cancellation(job), err),
                                err);
    if (rc != TIDE_OK || history->end[0] == '\0')
        return rc;
    return tide_job_effect(job, write_mark, history, err);
}

tide_status tide_mail_history(tide_job *job, void *context, tide_error *err)
{
    return tide_mail_ended(context, job, history_run(job, context, err), err);
}
