/* refetch.c - fetches again copies that are not exact (M19, M19a, mail/archive/archive.h ARC6).
 *
 * Every sync refetches copies that are known to be incomplete or damaged, with growing delays if
 * the server sends nothing better.  `mail heal` looks for unknown damage: damaged files are set
 * aside (aside.c), and mail.heal reads every message back, page by page, marks damaged ones and
 * fetches them.  The archive compares the bytes before it accepts them. */
#include "base/json.h"
#include "mail/sync/lost.h"
#include "mail/inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    REFETCH_MAX = 1000, /* per run; the next run continues */
    PAGE = 200,         /* messages verified by one job ... */
    PAGE_BYTES = 64 << 20,
    PAGE_MAX = 4 * PAGE, /* more messages of one millisecond are skipped */
};

struct due {
    uint64_t now_ms;
    bool all; /* also those whose retry is not due */
    char (*ids)[TIDE_GMAIL_ID_BYTES_MAX + 1];
    size_t count;
};

static bool due_visit(const struct tide_doubted *doubted, void *arg)
{
    struct due *due = arg;
    /* Imported messages are on no server.  A place taken by one would hide another. */
    const bool there = !doubted->gone && !tide_import_id_is(tide_text_of(doubted->gmail_id));
    const bool wanted = there && (due->all || doubted->next_ms <= due->now_ms);
    if (wanted)
        memcpy(due->ids[due->count++], doubted->gmail_id, sizeof due->ids[0]);
    return due->count < REFETCH_MAX;
}

tide_status tide_mail_refetch(tide_mail *mail, struct tide_mail_user *user, tide_job *job, bool all,
                              tide_error *err)
{
    struct due due = {.now_ms = tide_world_now_unix_ms(mail->world), .all = all};
    due.ids = tide_job_memory(job, REFETCH_MAX * sizeof *due.ids);
    tide_text *texts = tide_job_memory(job, REFETCH_MAX * sizeof *texts);
    if (due.ids == NULL || texts == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for the messages to fetch again");
    const tide_status rc = tide_archive_doubted(user->archive, due_visit, &due, err);
    for (size_t i = 0; i < due.count; i++)
        texts[i] = tide_text_of(due.ids[i]);
    return rc == TIDE_OK ? tide_mail_fetch_missing(mail, user, job, texts, due.count, err) : rc;
}

/* ---- verifying ---- */

struct healing {
    tide_mail *mail;
    struct tide_mail_user *user;
    tide_job *job;
    uint64_t from_ms;
    char (*ids)[TIDE_GMAIL_ID_BYTES_MAX + 1]; /* damaged */
    bool *there;                              /* per id: the server may have it */
    size_t count;
    size_t visited;
    uint64_t bytes;
    int64_t last_ms;
    bool more;
    tide_buf raw;
    tide_status rc;
    tide_error *err;
};

static bool is_damage(tide_status rc)
{
    return rc == TIDE_CORRUPT || rc == TIDE_INVALID || rc == TIDE_NEWER || rc == TIDE_FULL;
}

/* An imported message is on no server; one of a Takeout that was found to be gone has never been
 * there since. */
static bool may_be_there(const struct tide_stored *stored)
{
    return !tide_import_id_is(tide_text_of(stored->gmail_id)) &&
           !(stored->gone && stored->history_id[0] == '\0');
}

/* A page ends between two milliseconds, so that the next one can start at a time. */
static bool read_back(const struct tide_stored *stored, void *arg)
{
    struct healing *healing = arg;
    tide_error why = {TIDE_OK, 0, ""};
    const bool full = healing->visited >= PAGE || healing->bytes >= PAGE_BYTES;
    if (full && stored->internal_ms != healing->last_ms) {
        healing->last_ms = stored->internal_ms;
        healing->more = true;
        return false;
    }
    healing->visited++;
    healing->bytes += stored->bytes;
    healing->last_ms = stored->internal_ms;
    tide_job_beat(healing->job, healing->visited);
    tide_buf_clear(&healing->raw);
    tide_status rc = tide_archive_raw(healing->user->archive, stored, &healing->raw, &why);
    if (rc == TIDE_OK && healing->raw.bytes != stored->bytes)
        rc = TIDE_CORRUPT;
    if (is_damage(rc) && healing->count < PAGE_MAX) {
        healing->there[healing->count] = may_be_there(stored);
        memcpy(healing->ids[healing->count++], stored->gmail_id, sizeof stored->gmail_id);
    } else if (rc != TIDE_OK && !is_damage(rc)) {
        healing->rc = rc;
        if (healing->err != NULL)
            *healing->err = why;
    }
    return healing->rc == TIDE_OK && !tide_job_canceled(healing->job);
}

/* Mark them first, durably: messages that the server does not return stay known as damaged. */
static tide_status mark_damaged(struct healing *healing, tide_error *err)
{
    uint64_t ticket = 0;
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < healing->count; i++)
        rc =
            tide_archive_doubt(healing->user->archive, tide_text_of(healing->ids[i]), &ticket, err);
    if (rc == TIDE_OK && ticket > 0)
        rc = tide_archive_sync(healing->user->archive, ticket, tide_job_cancellation(healing->job),
                               err);
    return tide_mail_archived(healing->user, rc, err);
}

static tide_status fetch_damaged(struct healing *healing, tide_error *err)
{
    tide_text texts[PAGE_MAX];
    size_t count = 0;
    for (size_t i = 0; i < healing->count; i++)
        if (healing->there[i])
            texts[count++] = tide_text_of(healing->ids[i]);
    return tide_mail_fetch_missing(healing->mail, healing->user, healing->job, texts, count, err);
}

tide_status tide_mail_heal_job(tide_mail *mail, tide_job *job, int64_t from_ms, tide_error *err)
{
    char payload[64];
    (void)snprintf(payload, sizeof payload, "{\"from\":%" PRId64 "}", from_ms);
    const struct tide_spec spec = {
        .kind = mail->heal_kind, .account = tide_job_account(job), .payload = payload};
    return tide_job_enqueue(job, &spec, err);
}

static tide_status heal_page(struct healing *healing, tide_error *err)
{
    healing->ids = tide_job_memory(healing->job, PAGE_MAX * sizeof *healing->ids);
    healing->there = tide_job_memory(healing->job, PAGE_MAX * sizeof *healing->there);
    if (healing->ids == NULL || healing->there == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for a page of the archive");
    tide_status rc = tide_archive_walk(healing->user->archive, (int64_t)healing->from_ms, INT64_MAX,
                                       read_back, healing, err);
    if (rc == TIDE_OK)
        rc = healing->rc;
    if (rc == TIDE_OK && tide_job_canceled(healing->job))
        rc = tide_error_set(err, TIDE_CANCELED, "canceled");
    if (rc == TIDE_OK && healing->count > 0)
        rc = mark_damaged(healing, err);
    if (rc == TIDE_OK && healing->count > 0)
        rc = fetch_damaged(healing, err);
    if (rc == TIDE_OK && !healing->more)
        rc = tide_mail_archived(
            healing->user,
            tide_archive_tidy(healing->user->archive, tide_job_cancellation(healing->job), err),
            err);
    if (rc == TIDE_OK && !healing->more)
        rc = tide_mail_archived(
            healing->user,
            tide_archive_sweep(healing->user->archive, tide_job_cancellation(healing->job), err),
            err);
    if (rc == TIDE_OK && healing->more)
        rc = tide_mail_heal_job(healing->mail, healing->job, healing->last_ms, err);
    if (rc == TIDE_OK && healing->count > 0)
        rc = tide_mail_remember(healing->mail, healing->user, healing->job, err);
    return rc;
}

static tide_status heal_run(tide_job *job, tide_mail *mail, tide_error *err)
{
    struct healing healing = {.mail = mail, .job = job, .rc = TIDE_OK, .err = err};
    json_auto_t *payload = NULL;
    TIDE_TRY(tide_json_parse(tide_job_payload(job), &payload, err));
    TIDE_TRY(tide_json_get_u64(payload, "from", &healing.from_ms, err));
    TIDE_TRY(tide_mail_user(mail, tide_job_account(job), &healing.user, err));
    tide_buf_init(&healing.raw, mail->mem, TIDE_MESSAGE_BYTES_MAX);
    tide_status rc = heal_page(&healing, err);
    tide_buf_done(&healing.raw);
    return rc;
}

tide_status tide_mail_heal(tide_job *job, void *context, tide_error *err)
{
    return tide_mail_ended(context, job, heal_run(job, context, err), err);
}

/* ---- accepting ---- */

struct accepting {
    tide_mail *mail;
    struct tide_mail_user *user;
};

static tide_status accept_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct accepting *accepting = arg;
    const struct tide_lost_ask ask = {.db = tide_transaction_rows(transaction),
                                      .archive = accepting->user->archive,
                                      .account = accepting->user->account,
                                      .thorough = true,
                                      .mem = accepting->mail->mem};
    return tide_mail_lost_accept(&ask, tide_world_now_unix_ms(accepting->mail->world), err);
}

static tide_status accept(tide_mail *mail, uint32_t account, tide_error *err)
{
    struct accepting accepting = {.mail = mail};
    TIDE_TRY(tide_mail_user(mail, account, &accepting.user, err));
    return tide_transact(mail->engine, accept_run, &accepting, err);
}

/* A job that an engine left when it ended accepts nothing: the command that asked has done it itself,
 * or said that it was not done. */
static bool accept_asked(const tide_mail *mail, tide_job *job)
{
    json_auto_t *payload = NULL;
    const bool named = tide_json_parse(tide_job_payload(job), &payload, NULL) == TIDE_OK &&
                       json_object_get(payload, "engine") != NULL;
    const bool asked = !named || tide_engine_asked_here(mail->engine, payload);
    return asked;
}

tide_status tide_mail_accept(tide_job *job, void *context, tide_error *err)
{
    const tide_status rc =
        accept_asked(context, job) ? accept(context, tide_job_account(job), err) : TIDE_OK;
    return tide_mail_ended(context, job, rc, err);
}

tide_status tide_mail_lost_accepted(tide_mail *mail, const char *email, tide_error *err)
{
    uint32_t account = 0;
    TIDE_TRY(tide_engine_account(mail->engine, email, "gmail", &account, err));
    return accept(mail, account, err);
}

static tide_status settle_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct accepting *settling = arg;
    const struct tide_lost_ask ask = {.db = tide_transaction_rows(transaction),
                                      .archive = settling->user->archive,
                                      .account = settling->user->account,
                                      .mem = settling->mail->mem};
    return tide_mail_lost_settle(&ask, err);
}

tide_status tide_mail_settle(tide_mail *mail, struct tide_mail_user *user, tide_error *err)
{
    struct accepting settling = {.mail = mail, .user = user};
    return tide_transact(mail->engine, settle_run, &settling, err);
}
