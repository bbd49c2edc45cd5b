/* fetch.c - mail.list and mail.fetch: from a span of time to ids, from ids to the archive (M1-M3).
 *
 * A listing is not a snapshot: while mail arrives and is deleted, entries shift across the border
 * between two pages, and one may be missed.  So a span that fills more than a page is halved
 * (E5.5), until every span is one page, which has no border.  Only spans that cannot be halved (a
 * second, or a server that does not understand dates) are paged. */
#include "base/check.h"
#include "base/hash.h"
#include "base/json.h"
#include "mail/inside.h"
#include "settings/settings.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    FEW_IDS = TIDE_GMAIL_PAGE_MAX / 2,
    HALVES_MAX = 10,  /* how often a slice is halved: stops with a server that ignores dates */
    OVERLAP_S = 1,    /* servers do not promise on which side a border second is */
    AGAIN_MS = 500,   /* until the next check for the end of another job's fetch */
    SPENT_MS = 1000,  /* between two checks whether the run has ended */
    CHUNK = 20,       /* ids between two lookups of what is stored */
    ID_BYTES_MIN = 6, /* Gmail's have 15 or 16 */
    ID_BYTES_MAX = TIDE_GMAIL_ID_BYTES_MAX,
    FETCH_IDS_MAX = TIDE_MAIL_FETCH_IDS_MAX,
};

/* ---- ids ---- */

tide_status tide_mail_items_job(tide_mail *mail, tide_job *job, uint32_t kind, const tide_text *ids,
                                size_t count, const char *known, tide_error *err)
{
    tide_auto_buf payload = tide_buf_in(mail->mem, 64 << 10);
    tide_status rc = tide_buf_add_text(&payload, "{");
    if (rc == TIDE_OK && known != NULL)
        rc = tide_buf_add_text(&payload, "\"known\":");
    if (rc == TIDE_OK && known != NULL)
        rc = tide_json_escape(tide_text_of(known), &payload);
    if (rc == TIDE_OK)
        rc = tide_buf_add_text(&payload, known == NULL ? "\"items\":[" : ",\"items\":[");
    for (size_t i = 0; rc == TIDE_OK && i < count; i++) {
        if (i > 0)
            rc = tide_buf_add_text(&payload, ",");
        if (rc == TIDE_OK)
            rc = tide_json_escape(ids[i], &payload);
    }
    if (rc == TIDE_OK)
        rc = tide_buf_add_text(&payload, "]}");
    if (rc == TIDE_OK) {
        const struct tide_spec spec = {
            .kind = kind, .account = tide_job_account(job), .payload = tide_buf_cstr(&payload)};
        rc = tide_job_enqueue(job, &spec, err);
    } else {
        (void)tide_error_set(err, rc, "no memory for a job of %zu messages", count);
    }
    return rc;
}

uint32_t tide_mail_ids_per_job(tide_mail *mail, uint32_t account)
{
    enum { GET_UNITS = 20 };
    return tide_slice_fetch_ids(
        tide_engine_setting_u64(mail->engine, account, TIDE_SET_GOVERNOR_GMAIL_WINDOW_UNITS),
        tide_engine_setting_u64(mail->engine, account, TIDE_SET_GOVERNOR_GMAIL_WINDOW), GET_UNITS);
}

tide_status tide_mail_fetch_missing(tide_mail *mail, struct tide_mail_user *user, tide_job *job,
                                    const tide_text *ids, size_t count, tide_error *err)
{
    tide_text part[FETCH_IDS_MAX];
    size_t part_count = 0;
    const uint32_t ids_max = tide_mail_ids_per_job(mail, user->account);
    TIDE_ASSERT(ids_max > 0 && ids_max <= FETCH_IDS_MAX);
    for (size_t from = 0; from < count; from += TIDE_GMAIL_PAGE_MAX) {
        bool missing[TIDE_GMAIL_PAGE_MAX];
        const size_t some = count - from < TIDE_GMAIL_PAGE_MAX ? count - from : TIDE_GMAIL_PAGE_MAX;
        TIDE_TRY(tide_archive_missing(user->archive, ids + from, some, missing, err));
        for (size_t i = 0; i < some; i++) {
            if (missing[i])
                part[part_count++] = ids[from + i];
            if (part_count == ids_max) {
                TIDE_TRY(
                    tide_mail_items_job(mail, job, mail->fetch_kind, part, part_count, NULL, err));
                part_count = 0;
            }
        }
    }
    if (part_count > 0)
        TIDE_TRY(tide_mail_items_job(mail, job, mail->fetch_kind, part, part_count, NULL, err));
    return TIDE_OK;
}

/* ---- a span of time ---- */

struct span {
    tide_mail *mail;
    struct tide_mail_user *user;
    tide_job *job;
    json_t *payload; /* owned; `page`'s token points into it */
    struct tide_slice slice;
    bool all;                         /* list without a query */
    uint64_t listing;                 /* the complete listing it is part of; 0: none */
    tide_text label;                  /* list messages with this one (M19); "": all */
    struct tide_mail_label_pass pass; /* then */
    uint64_t ticket;                  /* of labels that were added */
    uint64_t depth;                   /* how often it was halved */
    uint64_t tries;
    bool check; /* reached from a page with few ids: may be empty */
    struct tide_mail_page page;
    /* What the effect writes. */
    tide_text *ids; /* copies in the job's memory */
    size_t ids_count;
    uint64_t more; /* spans that replace this one */
};

bool tide_mail_id_can_be(const char *id)
{
    const size_t bytes = id == NULL ? 0 : strlen(id);
    for (size_t i = 0; i < bytes && i <= ID_BYTES_MAX; i++) {
        const bool letter = (id[i] >= 'a' && id[i] <= 'z') || (id[i] >= 'A' && id[i] <= 'Z');
        if (!letter && !(id[i] >= '0' && id[i] <= '9') && id[i] != '-' && id[i] != '_')
            return false;
    }
    return bytes >= ID_BYTES_MIN && bytes <= ID_BYTES_MAX;
}

/* The ids of a page.  An entry with an invalid id may stand for a real message, so the page is
 * rejected. */
static tide_status page_ids(const struct tide_gmail_page *page, tide_text *ids, size_t *count_out,
                            tide_error *err)
{
    size_t count = 0;
    size_t index = 0;
    const json_t *entry = NULL;
    json_array_foreach(page->ids, index, entry)
    {
        const char *id = json_string_value(json_object_get(entry, "id"));
        if (!tide_mail_id_can_be(id))
            return tide_error_set(err, TIDE_SERVER, "a listing has an entry with an invalid id");
        if (count == TIDE_GMAIL_PAGE_MAX)
            return tide_error_set(err, TIDE_SERVER, "a page has more than %d entries",
                                  TIDE_GMAIL_PAGE_MAX);
        ids[count++] = tide_text_of(id);
    }
    *count_out = count;
    return TIDE_OK;
}

/* A complete listing stores the ids it named (M5). */
static tide_status keep_ids(struct span *span, const tide_text *ids, size_t count, tide_error *err)
{
    if (span->listing == 0 || count == 0)
        return TIDE_OK;
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += ids[i].bytes;
    span->ids = tide_job_memory(span->job, count * sizeof *span->ids);
    char *room = tide_job_memory(span->job, bytes);
    if (span->ids == NULL || room == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for %zu ids", count);
    for (size_t i = 0; i < count; i++) {
        memcpy(room, ids[i].data, ids[i].bytes);
        span->ids[i] = (tide_text){room, ids[i].bytes};
        room += ids[i].bytes;
    }
    span->ids_count = count;
    return TIDE_OK;
}

/* Another part of the same span, or its next page, as a separate job: one call per job, so that no
 * call is repeated when the account runs out of units (E4.3a). */
static tide_status span_job(struct span *span, struct tide_slice slice, uint64_t depth, bool check,
                            const struct tide_mail_page *page, tide_error *err)
{
    tide_auto_json payload;
    tide_json_object(&payload);
    tide_json_set_u64(&payload, "after", slice.after_s);
    tide_json_set_u64(&payload, "before", slice.before_s);
    tide_json_set_u64(&payload, "depth", depth);
    if (span->all)
        tide_json_set_bool(&payload, "all", true);
    if (span->listing > 0)
        tide_json_set_u64(&payload, "listing", span->listing);
    if (span->label.bytes > 0)
        tide_json_set_text(&payload, "label", span->label);
    if (span->tries > 0)
        tide_json_set_u64(&payload, "tries", span->tries);
    if (check)
        tide_json_set_bool(&payload, "check", true);
    TIDE_TRY(tide_mail_page_job(span->mail, span->job, span->mail->list_kind, &payload, page, err));
    span->more++;
    return TIDE_OK;
}

static bool may_cut(const struct span *span, struct tide_slice halves[2])
{
    return !span->all && (span->check || span->page.number == 0) && span->depth < HALVES_MAX &&
           tide_slice_halves(span->slice, tide_world_now_unix_ms(span->mail->world) / 1000, halves);
}

/* Replaces the span by its halves; a span that is too short is paged from the first page. */
static tide_status cut(struct span *span, tide_error *err)
{
    const struct tide_mail_page first = {0};
    struct tide_slice halves[2];
    if (!may_cut(span, halves))
        return span_job(span, span->slice, HALVES_MAX, false, &first, err);
    for (int i = 1; i >= 0; i--) /* the newer first: the order in which a server lists */
        TIDE_TRY(span_job(span, halves[i], span->depth + 1, false, &first, err));
    return TIDE_OK;
}

/* A page with few ids and a next page is not halved at once: a server that always sends a token
 * would turn an empty span into a thousand.  The next page shows whether there is more. */
static tide_status take_page(struct span *span, const struct tide_gmail_page *page, tide_error *err)
{
    struct tide_slice halves[2];
    struct tide_mail_page next = {0};
    tide_text ids[TIDE_GMAIL_PAGE_MAX];
    size_t count = 0;
    TIDE_TRY(page_ids(page, ids, &count, err));
    if (page->next.bytes > 0 && !tide_mail_page_next(&span->page, page->next, &next)) {
        (void)tide_error_set(err, TIDE_SERVER, "a listing repeats a page");
        return tide_mail_over(span->job, span->tries, err);
    }
    if (page->next.bytes > 0 && span->page.number == 0 && count < FEW_IDS && may_cut(span, halves))
        return span_job(span, span->slice, span->depth, true, &next, err);
    if (span->check || (page->next.bytes > 0 && may_cut(span, halves)))
        return cut(span, err); /* the halves list what this page listed */
    TIDE_TRY(keep_ids(span, ids, count, err));
    if (span->label.bytes > 0)
        TIDE_TRY(tide_mail_labels_add(span->user, &span->pass, ids, count,
                                      (int64_t)tide_world_now_unix_ms(span->mail->world),
                                      &span->ticket, err));
    TIDE_TRY(tide_mail_fetch_missing(span->mail, span->user, span->job, ids, count, err));
    if (page->next.bytes == 0)
        return TIDE_OK;
    return span_job(span, span->slice, span->depth, false, &next, err);
}

static tide_status list_page(struct span *span, tide_error *err)
{
    struct tide_gmail_page page = {0};
    char query[96] = "";
    size_t used = 0;
    if (!span->all && span->slice.after_s > 0)
        used = (size_t)snprintf(query, sizeof query, "after:%" PRIu64,
                                span->slice.after_s - OVERLAP_S);
    if (!span->all && span->slice.before_s > 0)
        (void)snprintf(query + used, sizeof query - used, "%sbefore:%" PRIu64, used > 0 ? " " : "",
                       span->slice.before_s + OVERLAP_S);
    const struct tide_gmail_listing listing = {
        .label = span->label, .query = query, .count_max = TIDE_GMAIL_PAGE_MAX, .all = true};
    tide_status rc =
        tide_gmail_list_some(span->user->gmail, span->job, &listing, span->page.token, &page, err);
    if (rc == TIDE_OK)
        rc = take_page(span, &page, err);
    else if (rc == TIDE_PERMANENT && span->page.number > 0)
        rc = tide_mail_over(span->job, span->tries, err); /* page token refused */
    else if (span->label.bytes > 0 && (rc == TIDE_PERMANENT || rc == TIDE_GONE)) {
        span->pass.refused = true; /* no such label: it was deleted, or cannot be listed */
        rc = TIDE_OK;
    }
    tide_gmail_page_done(&page);
    return rc;
}

static tide_status read_pass(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct span *span = arg;
    return tide_mail_pass_get(tide_transaction_rows(transaction), span->listing, &span->pass, err);
}

/* Labels that were added must be durable before the span counts as listed. */
static tide_status settle_labels(struct span *span, tide_error *err)
{
    if (span->ticket == 0)
        return TIDE_OK;
    TIDE_TRY(tide_mail_archived(
        span->user,
        tide_archive_sync(span->user->archive, span->ticket, tide_job_cancellation(span->job), err),
        err));
    return tide_mail_remember(span->mail, span->user, span->job, err);
}

/* The last span of a complete listing starts the search for messages that were not listed. */
static tide_status write_span(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct span *span = arg;
    const tide_rows db = tide_transaction_rows(transaction);
    uint64_t left = 1;
    tide_status rc = tide_mail_seen_add(db, span->listing, span->ids, span->ids_count, err);
    if (rc == TIDE_OK)
        rc = tide_mail_listing_step(db, span->listing, span->more, &left, err);
    if (rc == TIDE_NOT_FOUND)
        return TIDE_OK; /* the account was removed meanwhile */
    if (rc == TIDE_OK && span->pass.refused)
        rc = tide_mail_pass_put(db, &span->pass, err);
    if (rc != TIDE_OK || left > 0)
        return rc;
    if (span->label.bytes > 0)
        return tide_mail_labels_go(transaction, span->mail, span->job, span->listing,
                                   TIDE_LABELS_COMPARE, err);
    char payload[64];
    (void)snprintf(payload, sizeof payload, "{\"listing\":%" PRIu64 "}", span->listing);
    const struct tide_spec spec = {.kind = span->mail->absent_kind,
                                   .account = tide_job_account(span->job),
                                   .cycle = tide_job_cycle(span->job),
                                   .payload = payload};
    return tide_transaction_enqueue(transaction, &spec, 1, NULL, err);
}

static tide_status span_read(struct span *span, tide_error *err)
{
    TIDE_TRY(tide_json_parse(tide_job_payload(span->job), &span->payload, err));
    const json_t *payload = span->payload;
    TIDE_TRY(tide_json_get_u64(payload, "after", &span->slice.after_s, err));
    TIDE_TRY(tide_json_get_u64(payload, "before", &span->slice.before_s, err));
    (void)tide_json_get_bool(payload, "all", &span->all, NULL);
    (void)tide_json_get_u64(payload, "listing", &span->listing, NULL);
    (void)tide_json_get_text(payload, "label", &span->label, NULL);
    (void)tide_json_get_u64(payload, "depth", &span->depth, NULL);
    (void)tide_json_get_u64(payload, "tries", &span->tries, NULL);
    (void)tide_json_get_bool(payload, "check", &span->check, NULL);
    tide_status rc = tide_mail_page_read(payload, &span->page, err);
    if (rc == TIDE_OK)
        tide_mail_over_begin(span->job, &span->page, &span->tries);
    if (span->page.number == 0)
        span->check = false;
    return rc;
}

static tide_status list_run(tide_job *job, void *context, tide_error *err)
{
    struct span *span = tide_job_memory(job, sizeof *span);
    if (span == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for a listing");
    span->mail = context;
    span->job = job;
    tide_status rc = span_read(span, err);
    if (rc == TIDE_OK)
        rc = tide_mail_user(span->mail, tide_job_account(job), &span->user, err);
    if (rc == TIDE_OK && span->label.bytes > 0)
        rc = tide_transact(span->mail->engine, read_pass, span, err);
    if (rc == TIDE_NOT_FOUND && span->label.bytes > 0) { /* the account was removed meanwhile */
        json_decref(span->payload);
        return TIDE_OK;
    }
    if (rc == TIDE_OK)
        rc = list_page(span, err);
    if (rc == TIDE_OK)
        rc = settle_labels(span, err);
    json_decref(span->payload);
    if (rc == TIDE_OK && span->listing > 0)
        rc = tide_job_effect(job, write_span, span, err);
    return rc;
}

/* ---- messages ---- */

/* Whether the error concerns this message only, not the account or the process. */
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

size_t tide_mail_labels(const json_t *labels, tide_text *texts, size_t room)
{
    size_t count = 0;
    size_t index = 0;
    const json_t *label = NULL;
    json_array_foreach(labels, index, label) if (json_is_string(label) && count < room)
        texts[count++] = tide_text_of(json_string_value(label));
    return count;
}

/* The archive takes over the bytes: two copies of a large message would be too many (M3). */
static tide_status put_message(struct tide_mail_user *user, tide_job *job,
                               struct tide_gmail_message *message, uint64_t *ticket_out,
                               tide_error *err)
{
    tide_text labels[500];
    const size_t count =
        tide_mail_labels(message->labels, labels, sizeof labels / sizeof labels[0]);
    const struct tide_incoming incoming = {
        .gmail_id = message->id,
        .thread_id = message->thread_id,
        .history_id = message->history_id,
        .internal_ms = message->internal_ms,
        .labels = labels,
        .labels_count = count,
        .said_bytes = message->size_estimate,
        .take = &message->raw,
    };
    tide_job_queued(job, "messages that wait for the archive");
    const tide_status rc =
        tide_archive_put(user->archive, &incoming, tide_job_cancellation(job), ticket_out, err);
    tide_job_queued(job, NULL);
    return tide_mail_archived(user, rc, err);
}

/* ---- claims: no message is requested twice at once ---- */

/* How many claims have ended: what is looked up now includes what they stored. */
static uint64_t claims_ended(tide_mail *mail, const struct tide_mail_user *user)
{
    tide_lock_take(mail->world, mail->lock);
    const uint64_t ended = user->claims.ended;
    tide_lock_drop(mail->world, mail->lock);
    return ended;
}

/* false: another job is fetching it.  *ended_out: another job may have fetched it since. */
static bool claim(tide_mail *mail, struct tide_mail_user *user, tide_text id, uint64_t since,
                  bool *ended_out)
{
    const uint64_t key = tide_hash_key(id);
    tide_lock_take(mail->world, mail->lock);
    const bool taken = tide_claim_take(&user->claims, key);
    *ended_out = tide_claim_ended(&user->claims, key, since);
    tide_lock_drop(mail->world, mail->lock);
    return taken;
}

static void claim_put(tide_mail *mail, struct tide_mail_user *user, tide_text id)
{
    tide_lock_take(mail->world, mail->lock);
    tide_claim_put(&user->claims, tide_hash_key(id));
    tide_lock_drop(mail->world, mail->lock);
}

static void claim_end(tide_mail *mail, struct tide_mail_user *user, tide_text id)
{
    tide_lock_take(mail->world, mail->lock);
    tide_claim_end(&user->claims, tide_hash_key(id));
    tide_lock_drop(mail->world, mail->lock);
}

bool tide_mail_in_flight(tide_mail *mail, struct tide_mail_user *user, tide_text id)
{
    tide_lock_take(mail->world, mail->lock);
    const bool in_flight = tide_claim_in_flight(&user->claims, tide_hash_key(id));
    tide_lock_drop(mail->world, mail->lock);
    return in_flight;
}

/* Takes one of the messages that this run may fetch; false: none is left. */
static bool take_allowance(tide_mail *mail, struct tide_mail_user *user)
{
    bool taken = true;
    tide_lock_take(mail->world, mail->lock);
    if (user->budget != NULL) {
        taken = user->budget->left > 0;
        user->budget->left -= taken;
        user->budget->spent = user->budget->spent || !taken;
    }
    tide_lock_drop(mail->world, mail->lock);
    return taken;
}

static void return_allowance(tide_mail *mail, struct tide_mail_user *user)
{
    tide_lock_take(mail->world, mail->lock);
    if (user->budget != NULL)
        user->budget->left++;
    tide_lock_drop(mail->world, mail->lock);
}

/* ---- a job of messages ---- */

struct fetch {
    tide_mail *mail;
    struct tide_mail_user *user;
    tide_job *job;
    bool exact; /* held copies are fetched too (M18) */
    size_t count;
    uint64_t *tickets; /* per item; 0: not stored by this attempt */
    bool *claimed;
    bool *gone; /* per item: a copy of a Takeout that the server did not find */
    uint64_t last;
    uint64_t ended;    /* ended claims when the stored ids were looked up */
    uint64_t again_ms; /* when to retry the items left for later; 0: none were */
};

static tide_status fetch_one(struct fetch *fetch, tide_text id, uint64_t *ticket_out,
                             tide_error *err)
{
    struct tide_gmail_message message;
    tide_gmail_message_init(&message, fetch->mail->mem);
    tide_status rc = tide_gmail_get(fetch->user->gmail, fetch->job, id, &message, err);
    if (rc == TIDE_OK && !tide_text_equal(message.id, id))
        rc = tide_error_set(err, TIDE_SERVER, "asked for %.*s, got %.*s", (int)id.bytes, id.data,
                            (int)message.id.bytes, message.id.data);
    if (rc == TIDE_OK)
        rc = put_message(fetch->user, fetch->job, &message, ticket_out, err);
    tide_gmail_message_done(&message);
    return rc;
}

static tide_status lookup(const struct fetch *fetch, const tide_text *ids, size_t count,
                          bool *missing_out, tide_error *err)
{
    tide_archive *archive = fetch->user->archive;
    return fetch->exact ? tide_archive_inexact(archive, ids, count, missing_out, err)
                        : tide_archive_missing(archive, ids, count, missing_out, err);
}

/* Ids that another slice or an earlier attempt has stored cost no call; nor do those of imported
 * messages, which earlier versions asked for and recorded as failed. */
static tide_status skip_stored(struct fetch *fetch, size_t from, tide_error *err)
{
    tide_text ids[CHUNK];
    bool missing[CHUNK];
    const size_t some = fetch->count - from < CHUNK ? fetch->count - from : CHUNK;
    fetch->ended = claims_ended(fetch->mail, fetch->user);
    for (size_t i = 0; i < some; i++)
        ids[i] = tide_job_item(fetch->job, from + i);
    TIDE_TRY(lookup(fetch, ids, some, missing, err));
    for (size_t i = 0; i < some; i++) {
        if (!missing[i] || tide_import_id_is(ids[i]))
            tide_job_item_skipped(fetch->job, from + i);
    }
    return TIDE_OK;
}

/* Only synced messages count as done (MAIL2), and only in shards that the ledger remembers: what
 * leaves the job is fetched again only if their loss is noticed (MAIL3). */
static tide_status settle(struct fetch *fetch, tide_error *err)
{
    if (fetch->last > 0)
        TIDE_TRY(tide_mail_archived(fetch->user,
                                    tide_archive_sync(fetch->user->archive, fetch->last,
                                                      tide_job_cancellation(fetch->job), err),
                                    err));
    TIDE_TRY(tide_mail_remember(fetch->mail, fetch->user, fetch->job, err));
    for (size_t i = 0; i < fetch->count; i++)
        if (fetch->tickets[i] != 0)
            tide_job_item_done(fetch->job, i);
    return TIDE_OK;
}

static void release(struct fetch *fetch, size_t i)
{
    if (fetch->claimed[i])
        claim_end(fetch->mail, fetch->user, tide_job_item(fetch->job, i));
    fetch->claimed[i] = false;
}

/* Whether the copy here is of a Takeout, and the server never said anything about the message. */
static bool is_unheard(const struct fetch *fetch, tide_text id)
{
    struct tide_stored stored;
    return tide_archive_find(fetch->user->archive, id, &stored, NULL) == TIDE_OK &&
           stored.history_id[0] == '\0';
}

static tide_status fetch_item(struct fetch *fetch, size_t i, tide_error *err)
{
    const tide_text id = tide_job_item(fetch->job, i);
    const uint64_t now_ms = tide_job_now_ms(fetch->job);
    bool ended = false;
    if (!claim(fetch->mail, fetch->user, id, fetch->ended, &ended)) {
        fetch->again_ms = now_ms + AGAIN_MS;
        return TIDE_OK;
    }
    fetch->claimed[i] = true;
    bool missing = true;
    if (ended)
        TIDE_TRY(lookup(fetch, &id, 1, &missing, err));
    if (!missing) {
        release(fetch, i);
        tide_job_item_skipped(fetch->job, i);
        return TIDE_OK;
    }
    if (!take_allowance(fetch->mail, fetch->user))
        return tide_job_again(fetch->job, now_ms + SPENT_MS);
    const tide_status rc = fetch_one(fetch, id, &fetch->tickets[i], err);
    if (rc == TIDE_OK) {
        fetch->last = fetch->tickets[i];
        claim_put(fetch->mail, fetch->user, id);
        return TIDE_OK;
    }
    return_allowance(fetch->mail, fetch->user);
    release(fetch, i);
    fetch->gone[i] = rc == TIDE_GONE && (fetch->exact || is_unheard(fetch, id));
    if (fetch->gone[i])
        return TIDE_OK;
    if (!is_of_the_item(rc))
        return rc;
    tide_job_item_failed(fetch->job, i, rc, err == NULL ? "" : err->text);
    return TIDE_OK;
}

static tide_status fetch_items(struct fetch *fetch, tide_error *err)
{
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < fetch->count; i++) {
        if (i % CHUNK == 0)
            rc = skip_stored(fetch, i, err);
        if (rc == TIDE_OK && tide_job_item_open(fetch->job, i))
            rc = fetch_item(fetch, i, err);
        tide_job_beat(fetch->job, (uint64_t)i);
    }
    return rc;
}

tide_status tide_mail_probe(tide_mail *mail, struct tide_mail_user *user, tide_job *job,
                            tide_error *err)
{
    struct tide_gmail_message message;
    tide_gmail_message_init(&message, mail->mem);
    const tide_status rc =
        tide_gmail_get_minimal(user->gmail, job, tide_job_item(job, 0), &message, err);
    tide_gmail_message_done(&message);
    if (!is_of_the_item(rc))
        return rc;
    tide_job_item_failed(job, 0, rc, err == NULL ? "" : err->text);
    return TIDE_OK;
}

/* Copies of a Takeout that the server does not have: it may have deleted them before the Takeout was
 * imported, and then no listing will find that out.  mail.confirm asks for them again, and for a
 * message that the server returned before, and marks them as gone (MAIL4). */
static tide_status settle_gone(struct fetch *fetch, tide_error *err)
{
    tide_text ids[TIDE_MAIL_FETCH_IDS_MAX];
    size_t count = 0;
    bool any = false;
    char known[TIDE_GMAIL_ID_BYTES_MAX + 1] = "";
    for (size_t i = 0; i < fetch->count; i++)
        any = any || fetch->gone[i];
    if (!any)
        return TIDE_OK;
    TIDE_TRY(tide_archive_some_exact(fetch->user->archive, known, err));
    for (size_t i = 0; i < fetch->count; i++) {
        if (!fetch->gone[i])
            continue;
        if (known[0] == '\0' || count == TIDE_MAIL_FETCH_IDS_MAX) {
            tide_job_item_failed(fetch->job, i, TIDE_GONE, "the server does not have it");
        } else {
            ids[count++] = tide_job_item(fetch->job, i);
            tide_job_item_skipped(fetch->job, i);
        }
    }
    return count == 0 ? TIDE_OK
                      : tide_mail_items_job(fetch->mail, fetch->job, fetch->mail->confirm_kind, ids,
                                            count, known, err);
}

static tide_status fetch_run(tide_job *job, void *context, bool exact, tide_error *err)
{
    struct fetch fetch = {
        .mail = context, .job = job, .exact = exact, .count = tide_job_items(job)};
    tide_mem *mem = fetch.mail->mem;
    tide_status rc = tide_mail_user(fetch.mail, tide_job_account(job), &fetch.user, err);
    if (rc != TIDE_OK || fetch.count == 0)
        return rc;
    if (tide_job_is_probe(job))
        return tide_mail_probe(fetch.mail, fetch.user, job, err);
    fetch.tickets = tide_mem_array(mem, fetch.count, sizeof *fetch.tickets);
    fetch.claimed = tide_mem_array(mem, fetch.count, sizeof *fetch.claimed);
    fetch.gone = tide_job_memory(job, fetch.count * sizeof *fetch.gone);
    if (fetch.tickets == NULL || fetch.claimed == NULL || fetch.gone == NULL)
        rc = tide_error_set(err, TIDE_NO_MEMORY, "no memory for a fetch");
    if (rc == TIDE_OK)
        rc = fetch_items(&fetch, err);
    /* Also when the loop ended early, so that fetched messages are not fetched again. */
    tide_error other = {TIDE_OK, 0, ""};
    const tide_status settled = fetch.tickets == NULL ? TIDE_OK : settle(&fetch, &other);
    for (size_t i = 0; fetch.claimed != NULL && i < fetch.count; i++)
        release(&fetch, i);
    if (rc == TIDE_OK && settled != TIDE_OK && err != NULL)
        *err = other;
    if (rc == TIDE_OK)
        rc = settled;
    if (rc == TIDE_OK)
        rc = settle_gone(&fetch, err);
    if (rc == TIDE_OK && fetch.again_ms > 0)
        rc = tide_job_again(job, fetch.again_ms);
    tide_mem_free(mem, fetch.tickets, fetch.count * sizeof *fetch.tickets);
    tide_mem_free(mem, fetch.claimed, fetch.count * sizeof *fetch.claimed);
    return rc;
}

tide_status tide_mail_list(tide_job *job, void *context, tide_error *err)
{
    return tide_mail_ended(context, job, list_run(job, context, err), err);
}

tide_status tide_mail_fetch(tide_job *job, void *context, tide_error *err)
{
    return tide_mail_ended(context, job, fetch_run(job, context, false, err), err);
}

/* Jobs that an earlier run left do nothing in a run that leaves held copies alone. */
static tide_status exact_run(tide_job *job, void *context, tide_error *err)
{
    bool inexact = false;
    TIDE_TRY(tide_mail_inexact(context, tide_job_account(job), &inexact, err));
    for (size_t i = 0; inexact && i < tide_job_items(job); i++)
        if (tide_job_item_open(job, i))
            tide_job_item_skipped(job, i);
    if (inexact)
        return TIDE_OK;
    TIDE_TRY(fetch_run(job, context, true, err));
    return tide_mail_held_swept(context, job, err);
}

tide_status tide_mail_exact(tide_job *job, void *context, tide_error *err)
{
    return tide_mail_ended(context, job, exact_run(job, context, err), err);
}
