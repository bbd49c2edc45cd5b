/* mail.plan: looks where an account stands and opens what is to be done (M1, M5).
 *
 * Everything it decides is written with its own `done`, so a crash leaves either
 * the old state or all of the new cycles. */
#include "base/check.h"
#include "base/json.h"
#include "mail/mail_inside.h"
#include "mail/manifest.h"
#include "mail/slice.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    CYCLES_WAITING_MAX = 8,   /* unfinished runs on top of each other */
    NEWEST_PRIORITY_MAX = 59, /* of slices by their age: below mail.list, above mail.fetch */
};

struct plan {
    tide_mail *mail;
    struct tide_mail_user *user;
    struct tide_mail_row row;
    uint64_t stream;
    struct tide_stream_state state;
    bool force, newest_first;
    uint32_t slice_days;
    uint64_t now_ms;     /* taken before the first call: where this run will reach */
    char history_id[64]; /* to go on from, or the one read before listing */
    bool by_history;
    struct tide_slices slices; /* when listing */
    bool one_cycle;            /* all slices in one cycle: the watermark must not go back */
    bool asked;                /* the server was asked for its profile */
    uint64_t none_s, some_s;   /* there is no mail before, there is some before */
    bool labels;               /* were read */
};

/* ---- does the archive still hold what the ledger remembers? (M4, W3) ---- */

struct proof {
    tide_archive *archive;
    bool proven;
};

static void prove_shard(const struct tide_shard_state *seen, void *arg)
{
    struct proof *proof = arg;
    for (size_t i = 0; i < tide_archive_shards(proof->archive); i++) {
        struct tide_shard_state now;
        if (tide_archive_shard(proof->archive, i, &now, NULL) != TIDE_OK)
            continue;
        if (strcmp(now.name, seen->name) == 0 && strcmp(now.id, seen->id) == 0 &&
            now.generation >= seen->generation && now.messages >= seen->messages)
            return;
    }
    proof->proven = false;
}

struct proof_ask {
    uint32_t account;
    struct proof proof;
};

static tide_status prove_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct proof_ask *ask = arg;
    return tide_mail_shards(tide_transaction_sqlite(transaction), ask->account, prove_shard,
                            &ask->proof, err);
}

/* An archive that lost something starts a new stream: its watermark is at the
 * beginning again, and what is still there is not fetched again. */
static tide_status prove(struct plan *plan, tide_error *err)
{
    struct proof_ask ask = {plan->row.account, {plan->user->archive, true}};
    tide_status rc = tide_transact(plan->mail->engine, prove_run, &ask, err);
    if (rc != TIDE_OK || ask.proof.proven)
        return rc;
    plan->row.epoch++;
    rc = tide_mail_stream(plan->mail, &plan->row, &plan->stream, err);
    if (rc == TIDE_OK)
        rc = tide_stream_state(plan->mail->engine, plan->stream, &plan->state, err);
    return rc;
}

/* ---- what to do ---- */

static tide_status read_mark(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct plan *plan = arg;
    const tide_status rc = tide_mail_mark_get(tide_transaction_sqlite(transaction), plan->stream,
                                              plan->state.cycles_finished, plan->history_id, err);
    return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
}

/* ---- going on after a wait ----
 *
 * Each call may find no units left, and then the job comes back later (E4.3a):
 * what was learned so far comes back with it. */

static tide_status plan_keep(const struct plan *plan, tide_job *job, tide_error *err)
{
    char text[320];
    const int used = snprintf(text, sizeof text,
                              "{\"now\":%" PRIu64 ",\"history_id\":\"%s\",\"messages\":%" PRIu64
                              ",\"none\":%" PRIu64 ",\"some\":%" PRIu64 ",\"labels\":%s}",
                              plan->now_ms, plan->history_id, plan->row.messages_total,
                              plan->none_s, plan->some_s, plan->labels ? "true" : "false");
    TIDE_ASSERT(used > 0 && (size_t)used < sizeof text);
    return tide_job_resume_set(job, (tide_text){text, (size_t)used}, err);
}

static tide_status plan_resume(struct plan *plan, tide_job *job, tide_error *err)
{
    json_t *kept = NULL;
    tide_text history_id = TIDE_TEXT_NONE;
    if (tide_job_resume(job).bytes == 0)
        return TIDE_OK;
    tide_status rc = tide_json_parse(tide_job_resume(job), &kept, err);
    if (rc == TIDE_OK)
        rc = tide_json_get_u64(kept, "now", &plan->now_ms, err);
    if (rc == TIDE_OK)
        rc = tide_json_get_u64(kept, "messages", &plan->row.messages_total, err);
    if (rc == TIDE_OK)
        rc = tide_json_get_u64(kept, "none", &plan->none_s, err);
    if (rc == TIDE_OK)
        rc = tide_json_get_u64(kept, "some", &plan->some_s, err);
    if (rc == TIDE_OK)
        rc = tide_json_get_bool(kept, "labels", &plan->labels, err);
    if (rc == TIDE_OK)
        rc = tide_json_get_text(kept, "history_id", &history_id, err);
    if (rc == TIDE_OK && history_id.bytes < sizeof plan->history_id)
        (void)snprintf(plan->history_id, sizeof plan->history_id, "%.*s", (int)history_id.bytes,
                       history_id.data);
    plan->asked = rc == TIDE_OK && plan->some_s > 0;
    json_decref(kept);
    return rc;
}

/* The oldest year that has mail, found by halving: five calls instead of a
 * thousand empty slices. */
static tide_status probe_oldest(struct plan *plan, tide_job *job, tide_error *err)
{
    while (plan->some_s > plan->none_s + 366 * (uint64_t)TIDE_DAY_S) {
        const uint64_t middle_s = plan->none_s + (plan->some_s - plan->none_s) / 2;
        char query[64];
        (void)snprintf(query, sizeof query, "before:%" PRIu64, middle_s);
        struct tide_gmail_page page = {0};
        tide_status rc = tide_gmail_list(plan->user->gmail, job, query, TIDE_TEXT_NONE, &page, err);
        if (rc != TIDE_OK)
            return rc;
        if (page.ids == NULL && page.next.bytes == 0)
            plan->none_s = middle_s;
        else
            plan->some_s = middle_s;
        tide_gmail_page_done(&page);
        rc = plan_keep(plan, job, err);
        if (rc != TIDE_OK)
            return rc;
    }
    return TIDE_OK;
}

/* A server without a profile (some emulators): the newest message tells its
 * history id, the number of messages stays unknown. */
static tide_status history_id_of_newest(struct plan *plan, tide_job *job, tide_error *err)
{
    struct tide_gmail_page page = {0};
    tide_status rc = tide_gmail_list(plan->user->gmail, job, "", TIDE_TEXT_NONE, &page, err);
    const char *id = json_string_value(json_object_get(json_array_get(page.ids, 0), "id"));
    if (rc == TIDE_OK && id != NULL) {
        struct tide_gmail_message message;
        tide_gmail_message_init(&message, plan->mail->mem);
        rc = tide_gmail_get_minimal(plan->user->gmail, job, tide_text_of(id), &message, err);
        if (rc == TIDE_OK)
            (void)snprintf(plan->history_id, sizeof plan->history_id, "%.*s",
                           (int)message.history_id.bytes, message.history_id.data);
        tide_gmail_message_done(&message);
    }
    tide_gmail_page_done(&page);
    return rc;
}

/* The history id is read before the first listing (M6a). */
static tide_status read_server(struct plan *plan, tide_job *job, tide_error *err)
{
    struct tide_gmail_profile profile = {0};
    tide_status rc = tide_gmail_profile(plan->user->gmail, job, &profile, err);
    if (rc == TIDE_OK) {
        plan->row.messages_total = profile.messages;
        (void)snprintf(plan->history_id, sizeof plan->history_id, "%s", profile.history_id);
        return TIDE_OK;
    }
    if (rc != TIDE_GONE && rc != TIDE_PERMANENT)
        return rc;
    return history_id_of_newest(plan, job, err);
}

static tide_status plan_slices(struct plan *plan, tide_job *job, tide_error *err)
{
    tide_status rc = TIDE_OK;
    if (!plan->asked) {
        rc = read_server(plan, job, err);
        plan->none_s = TIDE_GMAIL_BEGAN_S; /* nothing before it */
        plan->some_s = plan->now_ms / 1000;
        if (rc == TIDE_OK)
            rc = plan_keep(plan, job, err);
    }
    if (rc == TIDE_OK)
        rc = probe_oldest(plan, job, err);
    if (rc != TIDE_OK)
        return rc;
    const uint32_t days =
        plan->slice_days > 0 ? plan->slice_days : tide_slice_days(plan->row.messages_total);
    plan->slices = tide_slices_plan(plan->none_s, plan->now_ms / 1000 + 1, days);
    return TIDE_OK;
}

/* Names of labels change rarely and cost one unit. */
static tide_status read_labels(struct plan *plan, tide_job *job, tide_error *err)
{
    json_t *labels = NULL;
    if (plan->labels)
        return TIDE_OK;
    tide_status rc = tide_gmail_labels(plan->user->gmail, job, &labels, err);
    if (rc != TIDE_OK)
        return rc;
    plan->labels = true;
    uint64_t ticket = 0;
    size_t index = 0;
    const json_t *label = NULL;
    json_array_foreach(json_object_get(labels, "labels"), index, label)
    {
        const char *id = json_string_value(json_object_get(label, "id"));
        const char *name = json_string_value(json_object_get(label, "name"));
        const char *type = json_string_value(json_object_get(label, "type"));
        if (rc == TIDE_OK && id != NULL && name != NULL)
            rc = tide_archive_label_name(plan->user->archive, tide_text_of(id), tide_text_of(name),
                                         tide_text_of(type == NULL ? "user" : type), &ticket, err);
    }
    json_decref(labels);
    return rc;
}

/* ---- writing it ---- */

static tide_status open_list(tide_transaction *transaction, const struct plan *plan, size_t index,
                             uint64_t cycle, tide_error *err)
{
    const struct tide_slice slice = tide_slices_at(&plan->slices, index);
    char payload[128];
    (void)snprintf(payload, sizeof payload, "{\"after\":%" PRIu64 ",\"before\":%" PRIu64 "}",
                   slice.after_s, slice.before_s);
    const size_t age = plan->slices.count - 1 - index;
    struct tide_spec spec = {.kind = plan->mail->list_kind,
                             .account = plan->row.account,
                             .cycle = cycle,
                             .payload = payload};
    if (plan->newest_first)
        spec.priority = (int16_t)(NEWEST_PRIORITY_MAX - (int)(age * 8 / plan->slices.count));
    return tide_transaction_enqueue(transaction, &spec, 1, NULL, err);
}

static tide_status open_slices(tide_transaction *transaction, const struct plan *plan,
                               tide_error *err)
{
    char start[32] = "";
    char end[32];
    tide_status rc = TIDE_OK;
    uint64_t cycle = 0;
    (void)snprintf(end, sizeof end, "%" PRIu64, plan->now_ms);
    if (plan->one_cycle)
        rc =
            tide_transaction_cycle(transaction, plan->stream, plan->state.cursor, end, &cycle, err);
    for (size_t i = 0; rc == TIDE_OK && i < plan->slices.count; i++) {
        if (!plan->one_cycle) {
            const struct tide_slice slice = tide_slices_at(&plan->slices, i);
            const bool last = i + 1 == plan->slices.count;
            (void)snprintf(start, sizeof start, "%" PRIu64, slice.after_s * 1000);
            (void)snprintf(end, sizeof end, "%" PRIu64,
                           last ? plan->now_ms : slice.before_s * 1000);
            rc = tide_transaction_cycle(transaction, plan->stream, start, end, &cycle, err);
        }
        if (rc == TIDE_OK)
            rc = open_list(transaction, plan, i, cycle, err);
    }
    return rc;
}

static tide_status open_history(tide_transaction *transaction, const struct plan *plan,
                                tide_error *err)
{
    char payload[160];
    char end[32];
    uint64_t cycle = 0;
    (void)snprintf(end, sizeof end, "%" PRIu64, plan->now_ms);
    (void)snprintf(payload, sizeof payload,
                   "{\"start\":\"%s\",\"stream\":%" PRIu64 ",\"ordinal\":%" PRIu64 "}",
                   plan->history_id, plan->stream, plan->state.cycles_opened);
    tide_status rc =
        tide_transaction_cycle(transaction, plan->stream, plan->state.cursor, end, &cycle, err);
    const struct tide_spec spec = {.kind = plan->mail->history_kind,
                                   .account = plan->row.account,
                                   .cycle = cycle,
                                   .payload = payload};
    if (rc == TIDE_OK)
        rc = tide_transaction_enqueue(transaction, &spec, 1, NULL, err);
    return rc;
}

static tide_status write_plan(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct plan *plan = arg;
    struct sqlite3 *db = tide_transaction_sqlite(transaction);
    tide_status rc = tide_mail_row_put(db, &plan->row, err);
    if (rc == TIDE_OK && plan->by_history)
        return open_history(transaction, plan, err);
    if (rc == TIDE_OK && plan->slices.count > 0) {
        rc = open_slices(transaction, plan, err);
        const uint64_t cycles = plan->one_cycle ? 1 : plan->slices.count;
        if (rc == TIDE_OK && plan->history_id[0] != '\0')
            rc = tide_mail_mark_put(db, plan->stream, plan->state.cycles_opened + cycles - 1,
                                    tide_text_of(plan->history_id), err);
        if (rc == TIDE_OK && (plan->one_cycle || plan->row.epoch > 0))
            rc = tide_gap_put(db, plan->row.account, plan->now_ms, err);
    }
    return rc;
}

/* ---- the job ---- */

static tide_status plan_read(struct plan *plan, tide_job *job, tide_error *err)
{
    json_t *payload = NULL;
    tide_status rc = tide_json_parse(tide_job_payload(job), &payload, err);
    uint64_t days = 0;
    if (rc == TIDE_OK) {
        (void)tide_json_get_bool(payload, "force", &plan->force, NULL);
        (void)tide_json_get_bool(payload, "newest_first", &plan->newest_first, NULL);
        (void)tide_json_get_u64(payload, "slice_days", &days, NULL);
        plan->slice_days = (uint32_t)days;
    }
    json_decref(payload);
    if (rc == TIDE_OK)
        rc = tide_mail_user(plan->mail, tide_job_account(job), &plan->user, err);
    if (rc == TIDE_OK)
        rc = tide_mail_row_read(plan->mail, tide_job_account(job), &plan->row, err);
    if (rc == TIDE_OK)
        rc = tide_mail_stream(plan->mail, &plan->row, &plan->stream, err);
    if (rc == TIDE_OK)
        rc = tide_stream_state(plan->mail->engine, plan->stream, &plan->state, err);
    return rc;
}

static tide_status plan_run(tide_job *job, void *context, tide_error *err)
{
    struct plan *plan = tide_job_memory(job, sizeof *plan);
    if (plan == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for a plan");
    plan->mail = context;
    plan->now_ms = tide_world_now_unix_ms(plan->mail->world);
    tide_status rc = plan_read(plan, job, err);
    if (rc == TIDE_OK)
        rc = prove(plan, err);
    if (rc == TIDE_OK)
        rc = tide_transact(plan->mail->engine, read_mark, plan, err);
    const bool known = plan->history_id[0] != '\0';
    if (rc == TIDE_OK)
        rc = plan_resume(plan, job, err);
    if (rc != TIDE_OK)
        return rc;
    const uint64_t open = plan->state.cycles_opened - plan->state.cycles_finished;
    const bool first = plan->state.cycles_opened == 0;
    if (first || plan->force) {
        plan->one_cycle = !first;
        rc = plan_slices(plan, job, err);
    } else {
        /* An unfinished first run goes on by itself: its jobs are in the ledger. */
        plan->by_history = known && open < CYCLES_WAITING_MAX;
    }
    if (rc == TIDE_OK)
        rc = read_labels(plan, job, err);
    if (rc != TIDE_OK)
        return rc;
    plan->row.last_run_ms = plan->now_ms;
    return tide_job_effect(job, write_plan, plan, err);
}

tide_status tide_mail_plan(tide_job *job, void *context, tide_error *err)
{
    return tide_mail_ended(context, job, plan_run(job, context, err), err);
}
