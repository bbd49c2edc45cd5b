/* mail.list and mail.fetch: from a slice to ids, from ids to the archive (M1-M3). */
#include "base/check.h"
#include "base/json.h"
#include "mail/mail_inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    PAGES_MAX = 100000, /* of one slice */
    OVERLAP_S = 1,      /* whether a border second is inside is not promised */
    ID_BYTES_MAX = TIDE_GMAIL_ID_BYTES_MAX,
};

/* ---- ids ---- */

static tide_status fetch_job(tide_mail *mail, tide_job *job, const tide_text *ids, size_t count,
                             tide_error *err)
{
    tide_buf payload;
    tide_buf_init(&payload, mail->mem, 64 << 10);
    tide_status rc = tide_buf_add_text(&payload, "{\"items\":[");
    for (size_t i = 0; rc == TIDE_OK && i < count; i++) {
        if (i > 0)
            rc = tide_buf_add_text(&payload, ",");
        if (rc == TIDE_OK)
            rc = tide_json_escape(ids[i], &payload);
    }
    if (rc == TIDE_OK)
        rc = tide_buf_add_text(&payload, "]}");
    if (rc == TIDE_OK) {
        const struct tide_spec spec = {.kind = mail->fetch_kind,
                                       .account = tide_job_account(job),
                                       .payload = tide_buf_cstr(&payload)};
        rc = tide_job_enqueue(job, &spec, err);
    } else {
        (void)tide_error_set(err, rc, "no memory for a job of %zu messages", count);
    }
    tide_buf_done(&payload);
    return rc;
}

tide_status tide_mail_fetch_missing(tide_mail *mail, struct tide_mail_user *user, tide_job *job,
                                    const tide_text *ids, size_t count, tide_error *err)
{
    tide_text part[TIDE_MAIL_FETCH_IDS];
    size_t part_count = 0;
    tide_status rc = TIDE_OK;
    for (size_t from = 0; rc == TIDE_OK && from < count; from += TIDE_GMAIL_PAGE_MAX) {
        bool missing[TIDE_GMAIL_PAGE_MAX];
        const size_t some = count - from < TIDE_GMAIL_PAGE_MAX ? count - from : TIDE_GMAIL_PAGE_MAX;
        rc = tide_archive_missing(user->archive, ids + from, some, missing, err);
        for (size_t i = 0; rc == TIDE_OK && i < some; i++) {
            if (missing[i])
                part[part_count++] = ids[from + i];
            if (part_count == TIDE_MAIL_FETCH_IDS) {
                rc = fetch_job(mail, job, part, part_count, err);
                part_count = 0;
            }
        }
    }
    if (rc == TIDE_OK && part_count > 0)
        rc = fetch_job(mail, job, part, part_count, err);
    return rc;
}

/* ---- a slice ---- */

struct slice_page {
    uint64_t after_s, before_s;
    uint64_t page;
    tide_text token; /* none: the first page */
};

/* A page's ids into jobs; what is not an id of reasonable length is the server's fault. */
static tide_status take_page(tide_mail *mail, struct tide_mail_user *user, tide_job *job,
                             const struct tide_gmail_page *page, tide_error *err)
{
    tide_text ids[TIDE_GMAIL_PAGE_MAX];
    size_t count = 0;
    size_t index = 0;
    const json_t *entry = NULL;
    json_array_foreach(page->ids, index, entry)
    {
        const char *id = json_string_value(json_object_get(entry, "id"));
        if (id == NULL || id[0] == '\0' || strlen(id) > ID_BYTES_MAX)
            return tide_error_set(err, TIDE_SERVER, "a listing has an entry without an id");
        if (count == TIDE_GMAIL_PAGE_MAX)
            return tide_error_set(err, TIDE_SERVER, "a page has more than %d entries",
                                  TIDE_GMAIL_PAGE_MAX);
        ids[count++] = tide_text_of(id);
    }
    return tide_mail_fetch_missing(mail, user, job, ids, count, err);
}

/* The next page is a job of its own: one call each, so that nothing is asked
 * twice when the account's units run out between two pages (E4.3a). */
static tide_status next_page(tide_mail *mail, tide_job *job, const struct slice_page *slice,
                             tide_text token, tide_error *err)
{
    tide_json payload;
    tide_buf line;
    if (tide_text_equal(token, slice->token) || slice->page == PAGES_MAX)
        return tide_error_set(err, TIDE_SERVER, "a listing names the same page again");
    tide_buf_init(&line, mail->mem, 16 << 10);
    tide_json_object(&payload);
    tide_json_set_u64(&payload, "after", slice->after_s);
    tide_json_set_u64(&payload, "before", slice->before_s);
    tide_json_set_u64(&payload, "page", slice->page + 1);
    tide_json_set_text(&payload, "token", token);
    tide_status rc = tide_json_line(&payload, &line);
    tide_json_done(&payload);
    if (rc != TIDE_OK)
        rc = tide_error_set(err, TIDE_SERVER, "a page token of %zu bytes", token.bytes);
    const struct tide_spec spec = {
        .kind = mail->list_kind, .account = tide_job_account(job), .payload = tide_buf_cstr(&line)};
    if (rc == TIDE_OK)
        rc = tide_job_enqueue(job, &spec, err);
    tide_buf_done(&line);
    return rc;
}

static tide_status list_page(tide_mail *mail, tide_job *job, const struct slice_page *slice,
                             tide_error *err)
{
    struct tide_mail_user *user = NULL;
    struct tide_gmail_page page = {0};
    char query[96];
    if (slice->after_s == 0)
        (void)snprintf(query, sizeof query, "before:%" PRIu64, slice->before_s + OVERLAP_S);
    else
        (void)snprintf(query, sizeof query, "after:%" PRIu64 " before:%" PRIu64,
                       slice->after_s - OVERLAP_S, slice->before_s + OVERLAP_S);
    tide_status rc = tide_mail_user(mail, tide_job_account(job), &user, err);
    if (rc == TIDE_OK)
        rc = tide_gmail_list(user->gmail, job, query, slice->token, &page, err);
    if (rc == TIDE_OK)
        rc = take_page(mail, user, job, &page, err);
    if (rc == TIDE_OK && page.next.bytes > 0)
        rc = next_page(mail, job, slice, page.next, err);
    tide_gmail_page_done(&page);
    return rc;
}

static tide_status list_run(tide_job *job, void *context, tide_error *err)
{
    struct slice_page slice = {.token = TIDE_TEXT_NONE};
    json_t *payload = NULL;
    tide_status rc = tide_json_parse(tide_job_payload(job), &payload, err);
    if (rc == TIDE_OK)
        rc = tide_json_get_u64(payload, "after", &slice.after_s, err);
    if (rc == TIDE_OK)
        rc = tide_json_get_u64(payload, "before", &slice.before_s, err);
    if (rc == TIDE_OK && tide_json_get_text(payload, "token", &slice.token, NULL) == TIDE_OK)
        rc = tide_json_get_u64(payload, "page", &slice.page, err);
    if (rc == TIDE_OK)
        rc = list_page(context, job, &slice, err);
    json_decref(payload);
    return rc;
}

/* ---- messages ---- */

/* What concerns this message alone, not the account or the process. */
static bool is_of_the_item(tide_status rc)
{
    switch (tide_status_class(rc)) {
    case TIDE_CLASS_RETRY:
    case TIDE_CLASS_GONE:
    case TIDE_CLASS_PERMANENT:
        return true;
    default:
        return false;
    }
}

static tide_status put_message(struct tide_mail_user *user, tide_job *job,
                               const struct tide_gmail_message *message, uint64_t *ticket_out,
                               tide_error *err)
{
    tide_text labels[500];
    size_t count = 0;
    size_t index = 0;
    const json_t *label = NULL;
    json_array_foreach(message->labels, index,
                       label) if (json_is_string(label) && count < sizeof labels / sizeof labels[0])
        labels[count++] = tide_text_of(json_string_value(label));
    const struct tide_incoming incoming = {
        .gmail_id = message->id,
        .thread_id = message->thread_id,
        .history_id = message->history_id,
        .internal_ms = message->internal_ms,
        .labels = labels,
        .labels_count = count,
        .raw = tide_buf_text(&message->raw),
    };
    return tide_mail_archived(
        user,
        tide_archive_put(user->archive, &incoming, tide_job_cancellation(job), ticket_out, err),
        err);
}

static tide_status fetch_one(struct tide_mail_user *user, tide_job *job, tide_mem *mem,
                             tide_text id, uint64_t *ticket_out, tide_error *err)
{
    struct tide_gmail_message message;
    tide_gmail_message_init(&message, mem);
    tide_status rc = tide_gmail_get(user->gmail, job, id, &message, err);
    if (rc == TIDE_OK && !tide_text_equal(message.id, id))
        rc = tide_error_set(err, TIDE_SERVER, "asked for %.*s, got %.*s", (int)id.bytes, id.data,
                            (int)message.id.bytes, message.id.data);
    if (rc == TIDE_OK)
        rc = put_message(user, job, &message, ticket_out, err);
    tide_gmail_message_done(&message);
    return rc;
}

struct fetch {
    tide_mail *mail;
    struct tide_mail_user *user;
    tide_job *job;
    size_t count;
    uint64_t *tickets; /* of each item; 0: not put by this attempt */
    uint64_t last;
    struct tide_shard_state *shards; /* as they are after this job */
    size_t shards_count;
};

/* Ids that another slice or an earlier attempt has stored cost nothing. */
static tide_status skip_stored(struct fetch *fetch, tide_error *err)
{
    tide_text ids[TIDE_GMAIL_PAGE_MAX];
    bool missing[TIDE_GMAIL_PAGE_MAX];
    for (size_t from = 0; from < fetch->count; from += TIDE_GMAIL_PAGE_MAX) {
        const size_t some =
            fetch->count - from < TIDE_GMAIL_PAGE_MAX ? fetch->count - from : TIDE_GMAIL_PAGE_MAX;
        for (size_t i = 0; i < some; i++)
            ids[i] = tide_job_item(fetch->job, from + i);
        const tide_status rc = tide_archive_missing(fetch->user->archive, ids, some, missing, err);
        if (rc != TIDE_OK)
            return rc;
        for (size_t i = 0; i < some; i++)
            if (!missing[i])
                tide_job_item_done(fetch->job, from + i);
    }
    return TIDE_OK;
}

/* Only what the disk has counts as done (W2). */
static tide_status settle(struct fetch *fetch, tide_error *err)
{
    if (fetch->last == 0)
        return TIDE_OK;
    const tide_status rc = tide_archive_sync(fetch->user->archive, fetch->last,
                                             tide_job_cancellation(fetch->job), err);
    if (rc != TIDE_OK)
        return tide_mail_archived(fetch->user, rc, err);
    uint64_t stored = 0;
    for (size_t i = 0; i < fetch->count; i++) {
        if (fetch->tickets[i] == 0)
            continue;
        tide_job_item_done(fetch->job, i);
        stored++;
    }
    (void)__atomic_add_fetch(&fetch->mail->fetched, stored, __ATOMIC_RELAXED);
    return TIDE_OK;
}

static tide_status write_shards(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct fetch *fetch = arg;
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < fetch->shards_count; i++)
        rc = tide_mail_shard_put(tide_transaction_sqlite(transaction), fetch->user->account,
                                 &fetch->shards[i], err);
    return rc;
}

/* What the archive must still show at the next run (M4). */
static tide_status remember_shards(struct fetch *fetch, tide_error *err)
{
    const size_t count = tide_archive_shards(fetch->user->archive);
    fetch->shards = tide_job_memory(fetch->job, (count + 1) * sizeof *fetch->shards);
    if (fetch->shards == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for %zu shards", count);
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < count; i++)
        rc =
            tide_archive_shard(fetch->user->archive, i, &fetch->shards[fetch->shards_count++], err);
    return rc == TIDE_OK ? tide_job_effect(fetch->job, write_shards, fetch, err) : rc;
}

static tide_status fetch_run(tide_job *job, void *context, tide_error *err)
{
    struct fetch *fetch = tide_job_memory(job, sizeof *fetch);
    if (fetch == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for a fetch");
    fetch->mail = context;
    fetch->job = job;
    fetch->count = tide_job_items(job);
    fetch->tickets = tide_job_memory(job, (fetch->count + 1) * sizeof *fetch->tickets);
    if (fetch->tickets == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for a fetch");
    tide_status rc = tide_mail_user(fetch->mail, tide_job_account(job), &fetch->user, err);
    if (rc == TIDE_OK)
        rc = skip_stored(fetch, err);
    for (size_t i = 0; rc == TIDE_OK && i < fetch->count; i++) {
        if (!tide_job_item_open(job, i))
            continue;
        rc = fetch_one(fetch->user, job, fetch->mail->mem, tide_job_item(job, i),
                       &fetch->tickets[i], err);
        if (rc == TIDE_OK) {
            fetch->last = fetch->tickets[i];
        } else if (is_of_the_item(rc)) {
            tide_job_item_failed(job, i, rc, err == NULL ? "" : err->text);
            rc = TIDE_OK;
        }
        tide_job_beat(job, (uint64_t)i);
    }
    /* Also when the loop ended early: what was fetched is not fetched again. */
    tide_error other = {TIDE_OK, 0, ""};
    const tide_status settled = settle(fetch, &other);
    if (rc == TIDE_OK && settled != TIDE_OK && err != NULL)
        *err = other;
    if (rc == TIDE_OK && settled == TIDE_OK && fetch->last > 0)
        return remember_shards(fetch, err);
    return rc == TIDE_OK ? settled : rc;
}

tide_status tide_mail_list(tide_job *job, void *context, tide_error *err)
{
    return tide_mail_ended(context, job, list_run(job, context, err), err);
}

tide_status tide_mail_fetch(tide_job *job, void *context, tide_error *err)
{
    return tide_mail_ended(context, job, fetch_run(job, context, err), err);
}
