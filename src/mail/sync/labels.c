/* labels.c - mail.labels: reads the labels of stored messages again, by listing each label (M19).
 *
 * When a history id has expired, or an archive had mail before its first sync (M18), nothing says which
 * labels changed since.  A complete listing names the messages; then each label is listed, 5 units
 * for 500 messages, one label after the other, in the same cycle:
 *
 *   next     chooses the next label of the server or the archive, in the order of ids, and opens
 *            mail.list jobs for its messages; a label that was deleted is not listed
 *   (list)   adds the label to the listed messages that are stored without it (fetch.c)
 *   compare  walks the messages that have the label here, in pages, and takes it from those that were
 *            not listed
 *   forget   deletes the listed ids, then: next
 *
 * Why that is right.  The history id P was read before the listing and is adopted after it.  A change
 * before P is in what is listed; one after P is in the history from P on, which is read later and
 * applied over it, whether the listing has seen it or not.  A message whose own history id is later
 * than P is left alone: it was fetched with its labels.
 *
 * A listing may leave entries out.  So a label is taken only if at least as many messages were
 * listed as the server counts with it; else the label stays where it is, and the gap stays open
 * (mail/manifest.h): the archiver asks.
 *
 * Each step and the job of the next one commit together, and each may be repeated. */
#include "base/check.h"
#include "base/json.h"
#include "mail/inside.h"
#include "mail/manifest.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    PAGE = 500,        /* messages compared by one job */
    SPAN_IDS = 400,    /* planned for a page of 500: there may be more than we know */
    SPANS_MAX = 10000, /* per label; fuller ones halve themselves */
    FORGET_MAX = 5000, /* rows deleted in one transaction (E2.5) */
};

struct labels {
    tide_mail *mail;
    struct tide_mail_user *user;
    tide_job *job;
    struct tide_mail_label_pass pass;
    uint64_t listing;
    tide_labels_step step;
    bool listed; /* the label was listed, not found to be deleted */
    /* next: */
    char label[TIDE_LABEL_BYTES_MAX + 1]; /* the chosen one; "": all are done */
    uint64_t *borders_s;                  /* between its spans */
    size_t borders_count;
    uint64_t in_span;
    uint64_t last_s;
    /* compare: */
    bool begun;
    struct tide_labeled at;
    struct tide_labeled *page;
    size_t page_count;
    bool more;
    bool *seen;
    tide_text *texts;
    uint64_t named;
};

/* ---- between the steps ---- */

static tide_status enqueue_step(tide_transaction *transaction, const struct labels *labels,
                                tide_labels_step step, bool listed, const struct tide_labeled *at,
                                tide_error *err)
{
    char payload[200];
    int used =
        snprintf(payload, sizeof payload, "{\"listing\":%" PRIu64 ",\"step\":%d,\"listed\":%s",
                 labels->listing, (int)step, listed ? "true" : "false");
    TIDE_ASSERT(used > 0 && (size_t)used < sizeof payload);
    if (at != NULL)
        used += snprintf(payload + used, sizeof payload - (size_t)used,
                         ",\"shard\":%" PRIu32 ",\"row\":%" PRId64, at->shard, at->rowid);
    (void)snprintf(payload + used, sizeof payload - (size_t)used, "}");
    const struct tide_spec spec = {.kind = labels->mail->labels_kind,
                                   .account = tide_job_account(labels->job),
                                   .cycle = tide_job_cycle(labels->job),
                                   .payload = payload};
    return tide_transaction_enqueue(transaction, &spec, 1, NULL, err);
}

tide_status tide_mail_labels_wanted(tide_transaction *transaction,
                                    const struct tide_mail_relist *relist, const char *history_id,
                                    tide_error *err)
{
    const tide_rows db = tide_transaction_rows(transaction);
    struct tide_mail_label_pass pass = {.listing =
                                            relist->listing != 0 ? relist->listing : relist->cycle,
                                        .account = relist->account,
                                        .from_ms = relist->from_ms,
                                        .begun_ms = relist->now_ms,
                                        .dates = relist->dates};
    (void)snprintf(pass.history_id, sizeof pass.history_id, "%s", history_id);
    TIDE_TRY(tide_gap_put(db, relist->account, relist->now_ms, err));
    return tide_mail_pass_put(db, &pass, err);
}

tide_status tide_mail_labels_go(tide_transaction *transaction, tide_mail *mail, tide_job *job,
                                uint64_t listing, tide_labels_step step, tide_error *err)
{
    struct labels labels = {.mail = mail, .job = job, .listing = listing};
    const tide_status rc =
        tide_mail_pass_get(tide_transaction_rows(transaction), listing, &labels.pass, err);
    if (rc != TIDE_OK)
        return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
    return enqueue_step(transaction, &labels, step, true, NULL, err);
}

tide_status tide_mail_labels_add(struct tide_mail_user *user,
                                 const struct tide_mail_label_pass *pass, const tide_text *ids,
                                 size_t count, int64_t now_ms, uint64_t *ticket, tide_error *err)
{
    struct tide_label_change changes[TIDE_GMAIL_PAGE_MAX];
    bool without[TIDE_GMAIL_PAGE_MAX];
    size_t changes_count = 0;
    TIDE_ASSERT(count <= TIDE_GMAIL_PAGE_MAX);
    TIDE_TRY(tide_archive_unlabeled(user->archive, tide_text_of(pass->label),
                                    tide_text_of(pass->history_id), ids, count, without, err));
    for (size_t i = 0; i < count; i++)
        if (without[i])
            changes[changes_count++] =
                (struct tide_label_change){.gmail_id = ids[i],
                                           .label = tide_text_of(pass->label),
                                           .added = true,
                                           .at_ms = now_ms,
                                           .history_id = tide_text_of(pass->history_id)};
    if (changes_count == 0)
        return TIDE_OK;
    return tide_mail_archived(
        user, tide_archive_labels(user->archive, changes, changes_count, ticket, err), err);
}

/* ---- next: choosing ---- */

/* Gmail's own labels: INBOX, CATEGORY_SOCIAL, ...  The server may have more of them than it lists. */
static bool is_system(tide_text id)
{
    for (size_t i = 0; i < id.bytes; i++)
        if (!(id.data[i] >= 'A' && id.data[i] <= 'Z') && id.data[i] != '_')
            return false;
    return id.bytes > 0;
}

static int order(tide_text a, const char *b)
{
    const size_t b_bytes = strlen(b);
    const size_t bytes = a.bytes < b_bytes ? a.bytes : b_bytes;
    const int first = memcmp(a.data, b, bytes);
    return first != 0 ? first : (a.bytes > b_bytes) - (a.bytes < b_bytes);
}

/* Keeps the first id behind the one that was listed last. */
static void offer(struct labels *labels, tide_text id)
{
    if (id.bytes == 0 || id.bytes >= sizeof labels->label || order(id, labels->pass.label) <= 0)
        return;
    if (labels->label[0] == '\0' || order(id, labels->label) < 0) {
        memcpy(labels->label, id.data, id.bytes);
        labels->label[id.bytes] = '\0';
    }
}

static void offer_stored(const struct tide_label_row *row, void *arg)
{
    /* A label that the user gave to an import is on no server. */
    if (!tide_text_equal(row->type, TIDE_TEXT("local")))
        offer(arg, row->id);
}

static tide_status choose(struct labels *labels, tide_error *err)
{
    json_auto_t *answer = NULL;
    size_t index = 0;
    const json_t *label = NULL;
    bool there = false;
    TIDE_TRY(tide_gmail_labels(labels->user->gmail, labels->job, &answer, err));
    const json_t *list = json_object_get(answer, "labels");
    json_array_foreach(list, index, label)
        offer(labels, tide_text_of(json_string_value(json_object_get(label, "id"))));
    TIDE_TRY(tide_archive_labels_all(labels->user->archive, offer_stored, labels, err));
    json_array_foreach(list, index, label)
    {
        const char *id = json_string_value(json_object_get(label, "id"));
        there = there || (id != NULL && strcmp(id, labels->label) == 0);
    }
    labels->listed = there || is_system(tide_text_of(labels->label));
    return TIDE_OK;
}

/* ---- next: spans of one page each ---- */

static bool add_border(const struct tide_labeled *labeled, void *arg)
{
    struct labels *labels = arg;
    if (labeled->internal_ms < (int64_t)labels->pass.from_ms || labeled->internal_ms < 1000)
        return true;
    const uint64_t at_s = (uint64_t)labeled->internal_ms / 1000;
    if (++labels->in_span > SPAN_IDS && at_s > labels->last_s + 1) {
        labels->borders_s[labels->borders_count++] = at_s;
        labels->in_span = 1;
    }
    labels->last_s = at_s;
    return labels->borders_count < SPANS_MAX;
}

/* The archive knows about how the label's messages are spread. */
static tide_status plan_spans(struct labels *labels, tide_error *err)
{
    labels->borders_s = tide_job_memory(labels->job, SPANS_MAX * sizeof *labels->borders_s);
    if (labels->borders_s == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for the listing of a label");
    if (!labels->pass.dates || !labels->listed)
        return TIDE_OK;
    return tide_archive_labeled(labels->user->archive, tide_text_of(labels->label), NULL,
                                add_border, labels, err);
}

static tide_status open_span(tide_transaction *transaction, const struct labels *labels,
                             size_t index, tide_error *err)
{
    const bool first = index == 0;
    const bool last = index == labels->borders_count;
    tide_auto_json payload;
    tide_auto_buf line = tide_buf_in(labels->mail->mem, 8192);
    tide_json_object(&payload);
    tide_json_set_u64(&payload, "after",
                      first ? labels->pass.from_ms / 1000 : labels->borders_s[index - 1]);
    tide_json_set_u64(&payload, "before", last ? 0 : labels->borders_s[index]);
    tide_json_set_bool(&payload, "all", !labels->pass.dates);
    tide_json_set_u64(&payload, "listing", labels->listing);
    tide_json_set_cstr(&payload, "label", labels->label);
    if (tide_json_line(&payload, &line) != TIDE_OK)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for the listing of a label");
    const struct tide_spec spec = {.kind = labels->mail->list_kind,
                                   .account = tide_job_account(labels->job),
                                   .cycle = tide_job_cycle(labels->job),
                                   .payload = tide_buf_cstr(&line)};
    return tide_transaction_enqueue(transaction, &spec, 1, NULL, err);
}

static tide_status write_end(tide_rows db, const struct labels *labels, tide_error *err)
{
    if (!labels->pass.unsure)
        TIDE_TRY(tide_gap_close(db, labels->pass.account, labels->pass.begun_ms, err));
    return tide_mail_pass_end(db, labels->listing, err);
}

static tide_status write_next(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct labels *labels = arg;
    const tide_rows db = tide_transaction_rows(transaction);
    struct tide_mail_label_pass pass = labels->pass;
    if (labels->label[0] == '\0')
        return write_end(db, labels, err);
    pass.refused = false;
    memcpy(pass.label, labels->label, sizeof pass.label);
    TIDE_TRY(tide_mail_pass_put(db, &pass, err));
    if (!labels->listed)
        return enqueue_step(transaction, labels, TIDE_LABELS_COMPARE, false, NULL, err);
    const struct tide_mail_listing listing = {.id = labels->listing,
                                              .account = pass.account,
                                              .from_ms = pass.from_ms,
                                              .begun_ms = pass.begun_ms,
                                              .left = labels->borders_count + 1};
    TIDE_TRY(tide_mail_listing_put(db, &listing, err));
    for (size_t i = 0; i <= labels->borders_count; i++)
        TIDE_TRY(open_span(transaction, labels, i, err));
    return TIDE_OK;
}

static tide_status next_run(struct labels *labels, tide_error *err)
{
    TIDE_TRY(choose(labels, err));
    if (labels->label[0] != '\0')
        TIDE_TRY(plan_spans(labels, err));
    return tide_job_effect(labels->job, write_next, labels, err);
}

/* ---- compare ---- */

/* Whether what was listed can prove that a message does not have the label. */
static bool is_judged(const struct labels *labels, const struct tide_labeled *labeled)
{
    return labeled->internal_ms >= (int64_t)labels->pass.from_ms &&
           labeled->internal_ms < (int64_t)labels->pass.begun_ms &&
           !tide_import_id_is(tide_text_of(labeled->gmail_id)) &&
           !tide_history_earlier(tide_text_of(labels->pass.history_id),
                                 tide_text_of(labeled->history_id));
}

static bool page_add(const struct tide_labeled *labeled, void *arg)
{
    struct labels *labels = arg;
    if (labels->page_count == PAGE) {
        labels->more = true;
        return false;
    }
    labels->at = *labeled;
    if (is_judged(labels, labeled))
        labels->page[labels->page_count++] = *labeled;
    return true;
}

static tide_status look_up(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct labels *labels = arg;
    return tide_mail_seen_get(tide_transaction_rows(transaction), labels->listing, labels->texts,
                              labels->page_count, labels->seen, err);
}

static tide_status page_read(struct labels *labels, tide_error *err)
{
    const struct tide_labeled after = labels->at;
    labels->page = tide_job_memory(labels->job, PAGE * sizeof *labels->page);
    labels->seen = tide_job_memory(labels->job, PAGE * sizeof *labels->seen);
    labels->texts = tide_job_memory(labels->job, PAGE * sizeof *labels->texts);
    if (labels->page == NULL || labels->seen == NULL || labels->texts == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for a page of the archive");
    TIDE_TRY(tide_archive_labeled(labels->user->archive, tide_text_of(labels->pass.label),
                                  labels->begun ? &after : NULL, page_add, labels, err));
    for (size_t i = 0; i < labels->page_count; i++)
        labels->texts[i] = tide_text_of(labels->page[i].gmail_id);
    return labels->page_count == 0 ? TIDE_OK
                                   : tide_transact(labels->mail->engine, look_up, labels, err);
}

/* Takes the label from what was not listed, durably. */
static tide_status page_judge(struct labels *labels, tide_error *err)
{
    struct tide_label_change changes[PAGE];
    size_t count = 0;
    uint64_t ticket = 0;
    const int64_t now_ms = (int64_t)tide_world_now_unix_ms(labels->mail->world);
    for (size_t i = 0; i < labels->page_count; i++)
        if (!labels->seen[i])
            changes[count++] =
                (struct tide_label_change){.gmail_id = labels->texts[i],
                                           .label = tide_text_of(labels->pass.label),
                                           .unlisted = true,
                                           .at_ms = now_ms,
                                           .history_id = tide_text_of(labels->pass.history_id)};
    if (count == 0)
        return TIDE_OK;
    tide_archive *archive = labels->user->archive;
    tide_status rc = tide_archive_labels(archive, changes, count, &ticket, err);
    if (rc == TIDE_OK)
        rc = tide_archive_sync(archive, ticket, tide_job_cancellation(labels->job), err);
    rc = tide_mail_archived(labels->user, rc, err);
    return rc == TIDE_OK ? tide_mail_remember(labels->mail, labels->user, labels->job, err) : rc;
}

static tide_status count_named(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct labels *labels = arg;
    char one[TIDE_GMAIL_ID_BYTES_MAX + 1];
    return tide_mail_seen_some(tide_transaction_rows(transaction), labels->listing, &labels->named,
                               one, err);
}

/* Compares the listing with the server's own count.  One that does not count is not believed; a part
 * of a mailbox has no count. */
static tide_status check_total(struct labels *labels, tide_error *err)
{
    uint64_t total = 0;
    if (!labels->listed || labels->begun || labels->pass.refused || labels->pass.from_ms > 0)
        return TIDE_OK;
    const tide_status rc = tide_gmail_label_total(labels->user->gmail, labels->job,
                                                  tide_text_of(labels->pass.label), &total, err);
    if (rc != TIDE_GONE && rc != TIDE_PERMANENT) {
        TIDE_TRY(rc);
        TIDE_TRY(tide_transact(labels->mail->engine, count_named, labels, err));
        if (labels->named >= total)
            return TIDE_OK;
    }
    TIDE_SEEN("labels: a label was not listed completely");
    labels->pass.unsure = true;
    labels->pass.refused = true; /* it stays as it is */
    return TIDE_OK;
}

static tide_status write_compare(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct labels *labels = arg;
    TIDE_TRY(tide_mail_pass_put(tide_transaction_rows(transaction), &labels->pass, err));
    return labels->more ? enqueue_step(transaction, labels, TIDE_LABELS_COMPARE, labels->listed,
                                       &labels->at, err)
                        : enqueue_step(transaction, labels, TIDE_LABELS_FORGET, true, NULL, err);
}

static tide_status compare_run(struct labels *labels, tide_error *err)
{
    TIDE_TRY(check_total(labels, err));
    if (!labels->pass.refused) {
        TIDE_TRY(page_read(labels, err));
        TIDE_TRY(page_judge(labels, err));
    }
    return tide_job_effect(labels->job, write_compare, labels, err);
}

/* ---- forget ---- */

static tide_status write_forget(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct labels *labels = arg;
    bool empty = true;
    TIDE_TRY(tide_mail_seen_forget(tide_transaction_rows(transaction), labels->listing, FORGET_MAX,
                                   &empty, err));
    return enqueue_step(transaction, labels, empty ? TIDE_LABELS_NEXT : TIDE_LABELS_FORGET, true,
                        NULL, err);
}

/* ---- the job ---- */

static tide_status read_pass(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct labels *labels = arg;
    return tide_mail_pass_get(tide_transaction_rows(transaction), labels->listing, &labels->pass,
                              err);
}

static tide_status read_payload(struct labels *labels, tide_error *err)
{
    json_auto_t *payload = NULL;
    uint64_t step = 0;
    uint64_t shard = 0;
    uint64_t row = 0;
    TIDE_TRY(tide_json_parse(tide_job_payload(labels->job), &payload, err));
    TIDE_TRY(tide_json_get_u64(payload, "listing", &labels->listing, err));
    TIDE_TRY(tide_json_get_u64(payload, "step", &step, err));
    (void)tide_json_get_bool(payload, "listed", &labels->listed, NULL);
    labels->begun = tide_json_get_u64(payload, "shard", &shard, NULL) == TIDE_OK &&
                    tide_json_get_u64(payload, "row", &row, NULL) == TIDE_OK;
    labels->at.shard = (uint32_t)shard;
    labels->at.rowid = (int64_t)row;
    if (step > TIDE_LABELS_FORGET)
        return tide_error_set(err, TIDE_INVALID, "a step %" PRIu64 " of reading labels", step);
    labels->step = (tide_labels_step)step;
    return TIDE_OK;
}

static tide_status labels_run(tide_job *job, tide_mail *mail, tide_error *err)
{
    struct labels *labels = tide_job_memory(job, sizeof *labels);
    if (labels == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory to read labels");
    labels->mail = mail;
    labels->job = job;
    TIDE_TRY(read_payload(labels, err));
    const tide_status rc = tide_transact(mail->engine, read_pass, labels, err);
    if (rc != TIDE_OK)
        return rc == TIDE_NOT_FOUND ? TIDE_OK : rc; /* the account was removed meanwhile */
    if (labels->step == TIDE_LABELS_FORGET)
        return tide_job_effect(job, write_forget, labels, err);
    TIDE_TRY(tide_mail_user(mail, tide_job_account(job), &labels->user, err));
    return labels->step == TIDE_LABELS_NEXT ? next_run(labels, err) : compare_run(labels, err);
}

tide_status tide_mail_labels_job(tide_job *job, void *context, tide_error *err)
{
    return tide_mail_ended(context, job, labels_run(job, context, err), err);
}
