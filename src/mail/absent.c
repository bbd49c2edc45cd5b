/* mail.absent and mail.confirm: what the server no longer has (M5, M6a).
 *
 * When a complete listing has ended, mail.absent walks the archive in pages, oldest
 * first, and looks up which of its messages the listing did not name.  A listing may
 * miss an entry, and mail may have been stored while it ran; so mail.confirm asks for
 * each of these by its id, and only a 404 makes it gone.  A page and the next one's
 * job commit together, and to mark what is marked is harmless: a crash anywhere
 * costs a page. */
#include "base/check.h"
#include "base/json.h"
#include "mail/import.h"
#include "mail/mail_inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    PAGE = 500,          /* messages looked up at once */
    PAGE_MAX = 4 * PAGE, /* more of one millisecond are not judged */
    FORGET_MAX = 5000,   /* rows deleted in one transaction (E2.5) */
    CONFIRM_IDS = 50,
};

struct absent {
    tide_mail *mail;
    struct tide_mail_user *user;
    tide_job *job;
    struct tide_mail_listing listing;
    bool forget; /* the walk has ended */
    uint64_t from_ms;
    /* A page of the archive. */
    char (*ids)[TIDE_GMAIL_ID_BYTES_MAX + 1];
    size_t count;
    size_t visited;
    int64_t last_ms;
    bool more;
    bool *seen;
    tide_text *texts;
};

/* ---- a page of the archive ---- */

/* Ends between two milliseconds, so that the next page begins with a time. */
static bool page_visit(const struct tide_stored *stored, void *arg)
{
    struct absent *absent = arg;
    if (absent->visited >= PAGE && stored->internal_ms != absent->last_ms) {
        absent->last_ms = stored->internal_ms;
        absent->more = true;
        return false;
    }
    absent->visited++;
    absent->last_ms = stored->internal_ms;
    /* What was imported from a file never was at the server. */
    if (tide_import_id_is(tide_text_of(stored->gmail_id)))
        return true;
    if (!stored->gone && absent->count < PAGE_MAX)
        memcpy(absent->ids[absent->count++], stored->gmail_id, sizeof stored->gmail_id);
    return true;
}

static tide_status look_up(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct absent *absent = arg;
    return tide_mail_seen_get(tide_transaction_rows(transaction), absent->listing.id, absent->texts,
                              absent->count, absent->seen, err);
}

static tide_status page_read(struct absent *absent, tide_error *err)
{
    absent->ids = tide_job_memory(absent->job, PAGE_MAX * sizeof *absent->ids);
    absent->seen = tide_job_memory(absent->job, PAGE_MAX * sizeof *absent->seen);
    absent->texts = tide_job_memory(absent->job, PAGE_MAX * sizeof *absent->texts);
    if (absent->ids == NULL || absent->seen == NULL || absent->texts == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for a page of the archive");
    const tide_status rc =
        tide_archive_walk(absent->user->archive, (int64_t)absent->from_ms,
                          (int64_t)absent->listing.begun_ms, page_visit, absent, err);
    if (rc != TIDE_OK)
        return rc;
    for (size_t i = 0; i < absent->count; i++)
        absent->texts[i] = tide_text_of(absent->ids[i]);
    return absent->count == 0 ? TIDE_OK : tide_transact(absent->mail->engine, look_up, absent, err);
}

static tide_status next_job(struct absent *absent, tide_error *err)
{
    char payload[128];
    if (absent->more)
        (void)snprintf(payload, sizeof payload, "{\"listing\":%" PRIu64 ",\"from\":%" PRIi64 "}",
                       absent->listing.id, absent->last_ms);
    else
        (void)snprintf(payload, sizeof payload, "{\"listing\":%" PRIu64 ",\"forget\":true}",
                       absent->listing.id);
    const struct tide_spec spec = {.kind = absent->mail->absent_kind,
                                   .account = tide_job_account(absent->job),
                                   .payload = payload};
    return tide_job_enqueue(absent->job, &spec, err);
}

static tide_status page_judge(struct absent *absent, tide_error *err)
{
    tide_text part[CONFIRM_IDS];
    size_t count = 0;
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < absent->count; i++) {
        if (!absent->seen[i])
            part[count++] = absent->texts[i];
        if (count < CONFIRM_IDS)
            continue;
        rc = tide_mail_items_job(absent->mail, absent->job, absent->mail->confirm_kind, part, count,
                                 err);
        count = 0;
    }
    if (rc == TIDE_OK && count > 0)
        rc = tide_mail_items_job(absent->mail, absent->job, absent->mail->confirm_kind, part, count,
                                 err);
    return rc == TIDE_OK ? next_job(absent, err) : rc;
}

/* ---- the job ---- */

/* Its own successor until nothing is left. */
static tide_status write_forget(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct absent *absent = arg;
    bool empty = true;
    tide_status rc = tide_mail_seen_forget(tide_transaction_rows(transaction), absent->listing.id,
                                           FORGET_MAX, &empty, err);
    if (rc != TIDE_OK || empty)
        return rc;
    char payload[128];
    (void)snprintf(payload, sizeof payload, "{\"listing\":%" PRIu64 ",\"forget\":true}",
                   absent->listing.id);
    const struct tide_spec spec = {.kind = absent->mail->absent_kind,
                                   .account = tide_job_account(absent->job),
                                   .cycle = tide_job_cycle(absent->job),
                                   .payload = payload};
    return tide_transaction_enqueue(transaction, &spec, 1, NULL, err);
}

static tide_status read_listing(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct absent *absent = arg;
    return tide_mail_listing_get(tide_transaction_rows(transaction), absent->listing.id,
                                 &absent->listing, err);
}

static tide_status absent_read(struct absent *absent, tide_error *err)
{
    json_t *payload = NULL;
    tide_status rc = tide_json_parse(tide_job_payload(absent->job), &payload, err);
    if (rc == TIDE_OK)
        rc = tide_json_get_u64(payload, "listing", &absent->listing.id, err);
    if (rc == TIDE_OK)
        (void)tide_json_get_bool(payload, "forget", &absent->forget, NULL);
    if (rc == TIDE_OK && tide_json_get_u64(payload, "from", &absent->from_ms, NULL) != TIDE_OK)
        absent->from_ms = 0;
    json_decref(payload);
    return rc;
}

static tide_status absent_run(tide_job *job, void *context, tide_error *err)
{
    struct absent *absent = tide_job_memory(job, sizeof *absent);
    if (absent == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for a comparison");
    absent->mail = context;
    absent->job = job;
    tide_status rc = absent_read(absent, err);
    if (rc == TIDE_OK && absent->forget)
        return tide_job_effect(job, write_forget, absent, err);
    if (rc == TIDE_OK)
        rc = tide_transact(absent->mail->engine, read_listing, absent, err);
    if (rc == TIDE_NOT_FOUND)
        return TIDE_OK; /* the account was removed meanwhile */
    /* Only a listing that came to its end says anything about absence (M6a). */
    if (rc == TIDE_OK && absent->listing.left > 0)
        rc = tide_error_set(err, TIDE_INVALID, "a listing of %" PRIu64 " spans is not complete",
                            absent->listing.left);
    if (rc == TIDE_OK)
        rc = tide_mail_user(absent->mail, tide_job_account(job), &absent->user, err);
    if (rc == TIDE_OK && absent->from_ms < absent->listing.from_ms)
        absent->from_ms = absent->listing.from_ms;
    if (rc == TIDE_OK)
        rc = page_read(absent, err);
    return rc == TIDE_OK ? page_judge(absent, err) : rc;
}

tide_status tide_mail_absent(tide_job *job, void *context, tide_error *err)
{
    return tide_mail_ended(context, job, absent_run(job, context, err), err);
}

/* ---- one by one ---- */

static tide_status confirm_one(tide_mail *mail, struct tide_mail_user *user, tide_job *job,
                               tide_text id, uint64_t *ticket, tide_error *err)
{
    struct tide_gmail_message message;
    tide_gmail_message_init(&message, mail->mem);
    tide_status rc = tide_gmail_get_minimal(user->gmail, job, id, &message, err);
    tide_gmail_message_done(&message);
    if (rc == TIDE_GONE)
        rc = tide_archive_gone(user->archive, id, (int64_t)tide_world_now_unix_ms(mail->world),
                               ticket, err);
    return rc;
}

static tide_status confirm_run(tide_job *job, void *context, tide_error *err)
{
    tide_mail *mail = context;
    struct tide_mail_user *user = NULL;
    uint64_t ticket = 0;
    const size_t count = tide_job_items(job);
    bool *asked = tide_job_memory(job, count + 1);
    tide_status rc = tide_mail_user(mail, tide_job_account(job), &user, err);
    if (asked == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for %zu messages", count);
    for (size_t i = 0; rc == TIDE_OK && i < count; i++) {
        if (!tide_job_item_open(job, i))
            continue;
        rc = confirm_one(mail, user, job, tide_job_item(job, i), &ticket, err);
        asked[i] = rc == TIDE_OK;
        const tide_class class = tide_status_class(rc);
        if (class == TIDE_CLASS_RETRY || class == TIDE_CLASS_PERMANENT) {
            tide_job_item_failed(job, i, rc, err == NULL ? "" : err->text);
            rc = TIDE_OK;
        }
        tide_job_beat(job, (uint64_t)i);
    }
    /* Also when the loop ended early, so that nothing is asked twice. */
    tide_status synced = TIDE_OK;
    if (ticket > 0)
        synced = tide_archive_sync(user->archive, ticket, tide_job_cancellation(job), NULL);
    for (size_t i = 0; synced == TIDE_OK && i < count; i++)
        if (asked[i])
            tide_job_item_done(job, i);
    if (rc == TIDE_OK && synced != TIDE_OK)
        rc = tide_mail_archived(user, tide_error_set(err, synced, "the archive could not write"),
                                err);
    if (rc == TIDE_OK && ticket > 0)
        rc = tide_mail_remember(mail, user, job, err);
    if (rc == TIDE_OK && ticket > 0)
        rc = tide_mail_remember_gone(mail, user, job, err);
    return rc;
}

tide_status tide_mail_confirm(tide_job *job, void *context, tide_error *err)
{
    return tide_mail_ended(context, job, confirm_run(job, context, err), err);
}
