/* absent.c - mail.absent and mail.confirm: finds messages that the server no longer has (M5, M6a).
 *
 * When a complete listing has ended, mail.absent walks the archive in pages, oldest first, and
 * looks up which of its messages the listing did not name.  A listing may miss an entry, and mail
 * may have been stored while it ran; so mail.confirm gets each of these by its id, and only a 404
 * makes it gone, provided the server still returns a message that was listed.  A listing with far
 * fewer messages than the server reports is rejected.  A page and the job of the next one commit
 * together, and marking a marked message again is harmless: a crash costs at most a page. */
#include "base/check.h"
#include "base/json.h"
#include "mail/inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    PAGE = 500,          /* messages looked up at once */
    PAGE_MAX = 4 * PAGE, /* more messages of one millisecond are skipped */
    FORGET_MAX = 5000,   /* rows deleted in one transaction (E2.5) */
    CONFIRM_IDS = 50,
    PROVEN_MS = 600000, /* how long a successful get of a listed message stays valid as proof */
};

#define SHORT TIDE_TEXT("short")

struct absent {
    tide_mail *mail;
    struct tide_mail_user *user;
    tide_job *job;
    struct tide_mail_listing listing;
    bool forget; /* the walk has ended; delete the listing */
    uint64_t from_ms;
    /* A page of the archive. */
    char (*ids)[TIDE_GMAIL_ID_BYTES_MAX + 1];
    size_t count;
    size_t visited;
    int64_t last_ms;
    bool more;
    bool *seen;
    tide_text *texts;
    /* The messages of the listing. */
    uint64_t named;
    char known[TIDE_GMAIL_ID_BYTES_MAX + 1];
    struct tide_mail_position position;
};

/* ---- a page of the archive ---- */

/* A page ends between two milliseconds, so that the next one can start at a time. */
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
    /* Imported mail was never on the server. */
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
    TIDE_TRY(tide_archive_walk(absent->user->archive, (int64_t)absent->from_ms,
                               (int64_t)absent->listing.begun_ms, page_visit, absent, err));
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
    const char *known = absent->known[0] == '\0' ? NULL : absent->known;
    size_t count = 0;
    for (size_t i = 0; i < absent->count; i++) {
        if (!absent->seen[i])
            part[count++] = absent->texts[i];
        if (count < CONFIRM_IDS)
            continue;
        TIDE_TRY(tide_mail_items_job(absent->mail, absent->job, absent->mail->confirm_kind, part,
                                     count, known, err));
        count = 0;
    }
    if (count > 0)
        TIDE_TRY(tide_mail_items_job(absent->mail, absent->job, absent->mail->confirm_kind, part,
                                     count, known, err));
    return next_job(absent, err);
}

/* ---- the job ---- */

/* The job enqueues itself until nothing is left. */
static tide_status write_forget(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct absent *absent = arg;
    bool empty = true;
    TIDE_TRY(tide_mail_seen_forget(tide_transaction_rows(transaction), absent->listing.id,
                                   FORGET_MAX, &empty, err));
    if (empty)
        return tide_mail_labels_go(transaction, absent->mail, absent->job, absent->listing.id,
                                   TIDE_LABELS_NEXT, err);
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
    const tide_rows db = tide_transaction_rows(transaction);
    TIDE_TRY(tide_mail_listing_get(db, absent->listing.id, &absent->listing, err));
    return tide_mail_seen_some(db, absent->listing.id, &absent->named, absent->known, err);
}

/* ---- an incomplete listing ---- */

static tide_status write_again(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct absent *absent = arg;
    const struct tide_mail_relist relist = {.cycle = tide_job_cycle(absent->job),
                                            .listing = absent->listing.id,
                                            .account = tide_job_account(absent->job),
                                            .from_ms = absent->listing.from_ms,
                                            .now_ms = absent->listing.begun_ms,
                                            .dates = absent->position.dates};
    return tide_mail_relist(transaction, absent->mail, &relist, err);
}

/* A listing that is too short fails the job; a later sync that restarts the job lists everything
 * again.  *again_out: this attempt does so. */
static tide_status check_length(struct absent *absent, bool *again_out, tide_error *err)
{
    if (absent->from_ms > absent->listing.from_ms || absent->listing.from_ms > 0)
        return TIDE_OK; /* checked with the first page; parts of a mailbox have no count */
    tide_status rc =
        tide_mail_position(absent->mail, absent->user, absent->job, &absent->position, err);
    if (rc != TIDE_OK || !tide_mail_is_short(absent->named, absent->position.messages))
        return rc;
    *again_out = tide_text_equal(tide_job_resume(absent->job), SHORT);
    if (*again_out)
        return tide_job_effect(absent->job, write_again, absent, err);
    rc = tide_job_resume_set(absent->job, SHORT, err);
    return rc != TIDE_OK
               ? rc
               : tide_error_set(err, TIDE_PERMANENT,
                                "the server reports %" PRIu64 " messages, but listed %" PRIu64,
                                absent->position.messages, absent->named);
}

static tide_status absent_read(struct absent *absent, tide_error *err)
{
    json_auto_t *payload = NULL;
    TIDE_TRY(tide_json_parse(tide_job_payload(absent->job), &payload, err));
    TIDE_TRY(tide_json_get_u64(payload, "listing", &absent->listing.id, err));
    (void)tide_json_get_bool(payload, "forget", &absent->forget, NULL);
    if (tide_json_get_u64(payload, "from", &absent->from_ms, NULL) != TIDE_OK)
        absent->from_ms = 0;
    return TIDE_OK;
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
    /* Only a finished listing proves absence (M6a). */
    if (rc == TIDE_OK && absent->listing.left > 0)
        rc = tide_error_set(err, TIDE_INVALID, "a listing of %" PRIu64 " spans is not complete",
                            absent->listing.left);
    TIDE_TRY(rc);
    TIDE_TRY(tide_mail_user(absent->mail, tide_job_account(job), &absent->user, err));
    if (absent->from_ms < absent->listing.from_ms)
        absent->from_ms = absent->listing.from_ms;
    bool again = false;
    TIDE_TRY(check_length(absent, &again, err));
    if (again)
        return TIDE_OK;
    TIDE_TRY(page_read(absent, err));
    return page_judge(absent, err);
}

tide_status tide_mail_absent(tide_job *job, void *context, tide_error *err)
{
    return tide_mail_ended(context, job, absent_run(job, context, err), err);
}

/* ---- confirming each message ---- */

struct confirm {
    tide_mail *mail;
    struct tide_mail_user *user;
    tide_job *job;
    bool *asked; /* per item: it is there, or is marked as gone */
    bool *gone;
    uint64_t ticket;
    bool proven;                             /* the server still returns a listed message */
    bool denied;                             /* it lists messages and does not return them */
    char known[TIDE_GMAIL_ID_BYTES_MAX + 1]; /* that message; "": the listing was empty */
};

static tide_status ask_for(struct confirm *confirm, tide_text id, tide_error *err)
{
    struct tide_gmail_message message;
    tide_gmail_message_init(&message, confirm->mail->mem);
    const tide_status rc =
        tide_gmail_get_minimal(confirm->user->gmail, confirm->job, id, &message, err);
    tide_gmail_message_done(&message);
    return rc;
}

/* The listed message was deleted meanwhile: another one that the server lists now takes its place.
 * If it lists none, none is left to compare with. */
static tide_status prove_by_another(struct confirm *confirm, tide_error *err)
{
    struct tide_gmail_page page = {0};
    tide_status rc = TIDE_OK;
    do
        rc = tide_gmail_list(confirm->user->gmail, confirm->job, NULL, TIDE_TEXT_NONE, &page, err);
    while (tide_mail_wait(confirm->job, rc, TIDE_MAIL_WAIT_PACE_MS));
    const char *id = NULL;
    for (size_t i = 0; rc == TIDE_OK && id == NULL && i < json_array_size(page.ids); i++) {
        id = json_string_value(json_object_get(json_array_get(page.ids, i), "id"));
        if (id != NULL && strcmp(id, confirm->known) == 0)
            id = NULL;
    }
    if (id != NULL) {
        do
            rc = ask_for(confirm, tide_text_of(id), err);
        while (tide_mail_wait(confirm->job, rc, TIDE_MAIL_WAIT_PACE_MS));
    }
    tide_gmail_page_done(&page);
    return rc;
}

/* Whether the server still returns a message that it lists.  Asked before the others, and kept with
 * the job: where the quota allows one call at a time, a job that made two calls per item would
 * restart at the first forever. */
static tide_status prove(struct confirm *confirm, tide_error *err)
{
    const uint64_t now_ms = tide_world_now_unix_ms(confirm->mail->world);
    char text[24];
    uint64_t at_ms = 0;
    if (tide_text_to_u64(tide_job_resume(confirm->job), &at_ms) && at_ms <= now_ms &&
        now_ms - at_ms < PROVEN_MS)
        confirm->proven = true;
    if (confirm->proven || confirm->denied || confirm->known[0] == '\0')
        return TIDE_OK;
    tide_status rc = ask_for(confirm, tide_text_of(confirm->known), err);
    if (rc == TIDE_GONE)
        rc = prove_by_another(confirm, err);
    confirm->denied = rc == TIDE_GONE;
    if (rc != TIDE_OK)
        return confirm->denied ? TIDE_OK : rc;
    confirm->proven = true;
    (void)snprintf(text, sizeof text, "%" PRIu64, now_ms);
    return tide_job_resume_set(confirm->job, tide_text_of(text), err);
}

/* A server that denies what it lists proves nothing: then the result of a 404 is TIDE_GONE, and the
 * engine retries and compares with other messages (E6.2, M6a). */
static tide_status confirm_one(struct confirm *confirm, size_t i, tide_error *err)
{
    const tide_text id = tide_job_item(confirm->job, i);
    TIDE_TRY(prove(confirm, err));
    tide_status rc = ask_for(confirm, id, err);
    if (rc != TIDE_GONE || confirm->denied)
        return rc;
    confirm->gone[i] = true;
    return tide_archive_gone(confirm->user->archive, id,
                             (int64_t)tide_world_now_unix_ms(confirm->mail->world),
                             &confirm->ticket, err);
}

static tide_status confirm_all(struct confirm *confirm, tide_error *err)
{
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < tide_job_items(confirm->job); i++) {
        if (!tide_job_item_open(confirm->job, i))
            continue;
        rc = confirm_one(confirm, i, err);
        confirm->asked[i] = rc == TIDE_OK;
        const tide_class class = tide_status_class(rc);
        if (class == TIDE_CLASS_RETRY || class == TIDE_CLASS_PERMANENT ||
            class == TIDE_CLASS_GONE) {
            tide_job_item_failed(confirm->job, i, rc, err == NULL ? "" : err->text);
            rc = TIDE_OK;
        }
        tide_job_beat(confirm->job, (uint64_t)i);
    }
    return rc;
}

static void confirm_read(struct confirm *confirm)
{
    json_auto_t *payload = NULL;
    tide_text known = TIDE_TEXT_NONE;
    if (tide_json_parse(tide_job_payload(confirm->job), &payload, NULL) == TIDE_OK &&
        tide_json_get_text(payload, "known", &known, NULL) == TIDE_OK &&
        known.bytes < sizeof confirm->known)
        memcpy(confirm->known, known.data, known.bytes);
}

/* Only synced marks count as done (MAIL2), and only when the ledger remembers what is gone: also when
 * the loop ended early, so that no item is requested twice. */
static tide_status settle(struct confirm *confirm, tide_error *err)
{
    if (confirm->ticket > 0)
        TIDE_TRY(tide_mail_archived(confirm->user,
                                    tide_archive_sync(confirm->user->archive, confirm->ticket,
                                                      tide_job_cancellation(confirm->job), err),
                                    err));
    if (confirm->ticket > 0)
        TIDE_TRY(tide_mail_remember(confirm->mail, confirm->user, confirm->job, err));
    if (confirm->ticket > 0)
        TIDE_TRY(tide_mail_remember_gone(confirm->mail, confirm->user, confirm->job, err));
    for (size_t i = 0; i < tide_job_items(confirm->job); i++) {
        if (confirm->asked[i] && confirm->gone[i])
            tide_job_item_skipped(confirm->job, i); /* nothing to compare other items with */
        else if (confirm->asked[i])
            tide_job_item_done(confirm->job, i);
    }
    return TIDE_OK;
}

static tide_status confirm_run(tide_job *job, void *context, tide_error *err)
{
    struct confirm confirm = {.mail = context, .job = job};
    const size_t count = tide_job_items(job);
    confirm.asked = tide_job_memory(job, count + 1);
    confirm.gone = tide_job_memory(job, count + 1);
    tide_status rc = tide_mail_user(confirm.mail, tide_job_account(job), &confirm.user, err);
    if (confirm.asked == NULL || confirm.gone == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for %zu messages", count);
    if (rc == TIDE_OK && tide_job_is_probe(job))
        return tide_mail_probe(confirm.mail, confirm.user, job, err);
    if (rc != TIDE_OK)
        return rc;
    confirm_read(&confirm);
    rc = confirm_all(&confirm, err);
    const tide_status settled = settle(&confirm, rc == TIDE_OK ? err : NULL);
    return rc == TIDE_OK ? settled : rc;
}

tide_status tide_mail_confirm(tide_job *job, void *context, tide_error *err)
{
    return tide_mail_ended(context, job, confirm_run(job, context, err), err);
}
