/* plan.c - mail.plan: reads the state of an account and opens the cycles to run (M1, M4, M5).
 *
 * Everything it decides is written with its own `done`, so a crash leaves either the old state or
 * all of the new cycles.
 *
 * The tidemark covers [since, mark).  When the archive lost something, or when the user asks for
 * more of the mailbox than before, a new epoch begins: a new stream, whose cycles list only what is
 * not proven, and then continue with the history from where the old epoch was. */
#include "base/check.h"
#include "base/json.h"
#include "mail/inside.h"
#include "mail/manifest.h"
#include "settings/settings.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    CYCLES_WAITING_MAX = 8, /* unfinished runs of one account */
    RELIST_DAYS = 360,
    RANGES_MAX = 2,
    EMPTY_PAGES = 3, /* consecutive empty pages of a listing after which it counts as having mail */
};

typedef enum plan_work {
    PLAN_NOTHING, /* open cycles continue by themselves */
    PLAN_SLICES,
    PLAN_HISTORY,
    PLAN_RELIST, /* a complete listing, in one cycle: the tidemark must not move back */
} plan_work;

/* Mail to be listed: slices of [floor, end), each a cycle. */
struct range {
    struct tide_slices slices;
    uint64_t end_ms; /* the cursor's value after the last slice */
    bool open;       /* the last slice is open to the future */
};

struct plan {
    tide_mail *mail;
    struct tide_mail_user *user;
    struct tide_mail_row row;
    uint64_t stream, stream_before; /* before: of the epoch that ends; 0: none ends */
    struct tide_stream_state state;
    bool force, heal, inexact;
    uint64_t order; /* tide_mail_order */
    uint32_t slice_days;
    uint64_t since_ms;   /* requested by this run */
    uint64_t now_ms;     /* read before the first call: the new tidemark of this run */
    char history_id[64]; /* to continue from; "": there is none */
    bool listing;        /* a complete listing is in progress */
    plan_work work;
    struct tide_mail_position position;
    bool asked;              /* the server was asked for the position */
    uint64_t none_s, some_s; /* in the first range: no mail before none_s, some before some_s */
    bool labels;             /* the labels were read */
    bool has_mail;           /* the archive has mail, of another stream or an unknown one */
    uint64_t stored;         /* messages in the archive */
    uint64_t recorded;       /* messages recorded as bad or owed */
    /* Ranges to list: [low, proven_from) and [proven_to, now), or everything. */
    uint64_t proven_from_ms, proven_to_ms; /* equal: nothing is proven */
    bool compares; /* a new epoch also finds what is gone: an older copy of a shard does not know */
    struct range ranges[RANGES_MAX];
    size_t ranges_count;
    /* While it is written. */
    bool seeded;         /* the slices are a complete listing */
    uint64_t listing_id; /* of the complete listing; 0: there is none */
};

/* ---- the server's position ---- */

/* Any message has a history id, and the history from there names its end. */
static tide_status position_of_newest(tide_mail *mail, struct tide_mail_user *user, tide_job *job,
                                      struct tide_mail_position *position, tide_error *err)
{
    struct tide_gmail_page page = {0};
    struct tide_gmail_message message;
    struct tide_gmail_history history = {0};
    tide_status rc = TIDE_OK;
    do
        rc = tide_gmail_list(user->gmail, job, NULL, TIDE_TEXT_NONE, &page, err);
    while (tide_mail_wait(job, rc, TIDE_MAIL_WAIT_PACE_MS));
    const char *id = json_string_value(json_object_get(json_array_get(page.ids, 0), "id"));
    if (rc != TIDE_OK || id == NULL) {
        tide_gmail_page_done(&page);
        return rc;
    }
    tide_gmail_message_init(&message, mail->mem);
    do
        rc = tide_gmail_get_minimal(user->gmail, job, tide_text_of(id), &message, err);
    while (tide_mail_wait(job, rc, TIDE_MAIL_WAIT_PACE_MS));
    if (rc == TIDE_GONE) /* deleted meanwhile; the next attempt finds another message */
        rc = tide_error_set(err, TIDE_SERVER, "the newest message is gone");
    tide_text found = rc == TIDE_OK ? message.history_id : TIDE_TEXT_NONE;
    if (found.bytes > 0) {
        do
            rc = tide_gmail_history(user->gmail, job, found, TIDE_TEXT_NONE, &history, err);
        while (tide_mail_wait(job, rc, TIDE_MAIL_WAIT_PACE_MS));
        if (rc == TIDE_OK && history.history_id.bytes > 0)
            found = history.history_id;
        if (rc == TIDE_GONE || rc == TIDE_PERMANENT)
            rc = TIDE_OK; /* an earlier start works too, it only takes longer */
    }
    if (rc == TIDE_OK && found.bytes > 0 && found.bytes < sizeof position->history_id)
        (void)snprintf(position->history_id, sizeof position->history_id, "%.*s", (int)found.bytes,
                       found.data);
    tide_gmail_history_done(&history);
    tide_gmail_message_done(&message);
    tide_gmail_page_done(&page);
    return rc;
}

/* No message is both after and before: a server that returns one does not understand dates. */
static tide_status ask_dates(struct tide_mail_user *user, tide_job *job, bool *dates_out,
                             tide_error *err)
{
    struct tide_gmail_page page = {0};
    tide_status rc = TIDE_OK;
    do
        rc = tide_gmail_list(user->gmail, job, "after:4102444800 before:86400", TIDE_TEXT_NONE,
                             &page, err);
    while (tide_mail_wait(job, rc, TIDE_MAIL_WAIT_PACE_MS));
    if (rc == TIDE_OK)
        *dates_out = page.ids == NULL && page.next.bytes == 0;
    tide_gmail_page_done(&page);
    return rc;
}

/* A mailbox that reports mail but lists none is rejected: otherwise everything would count as
 * synced, or as deleted (M6a). */
static tide_status ask_any(struct tide_mail_user *user, tide_job *job, uint64_t messages,
                           tide_error *err)
{
    struct tide_gmail_page page = {0};
    tide_status rc = tide_gmail_list(user->gmail, job, NULL, TIDE_TEXT_NONE, &page, err);
    if (rc == TIDE_OK && page.ids == NULL && page.next.bytes == 0)
        rc = tide_error_set(err, TIDE_SERVER,
                            "the server reports %" PRIu64 " messages, but lists none", messages);
    tide_gmail_page_done(&page);
    return rc;
}

tide_status tide_mail_position(tide_mail *mail, struct tide_mail_user *user, tide_job *job,
                               struct tide_mail_position *position_out, tide_error *err)
{
    struct tide_gmail_profile profile = {0};
    struct tide_mail_position position = {.dates = true};
    tide_status rc = TIDE_OK;
    if (user->profile_job != tide_job_id(job))
        rc = tide_gmail_profile(user->gmail, job, &profile, err);
    else if (user->profile_none)
        rc = TIDE_GONE;
    else
        profile = user->profile; /* read when this job began (identity.c) */
    if (rc == TIDE_OK) {
        position.messages = profile.messages;
        memcpy(position.history_id, profile.history_id, sizeof position.history_id);
        if (profile.messages > 0)
            rc = ask_any(user, job, profile.messages, err);
    } else if (rc == TIDE_GONE || rc == TIDE_PERMANENT) {
        rc = position_of_newest(mail, user, job, &position, err);
        if (rc == TIDE_OK)
            rc = ask_dates(user, job, &position.dates, err);
    }
    if (rc == TIDE_OK)
        *position_out = position;
    return rc;
}

/* ---- a complete listing ---- */

tide_status tide_mail_relist(tide_transaction *transaction, tide_mail *mail,
                             const struct tide_mail_relist *relist, tide_error *err)
{
    const struct tide_slices slices = tide_slices_plan(
        relist->from_ms / 1000, 0, relist->now_ms / 1000 + 1,
        relist->dates ? RELIST_DAYS : UINT32_MAX); /* one slice when dates are ignored */
    const uint64_t id = relist->listing != 0 ? relist->listing : relist->cycle;
    const struct tide_mail_listing listing = {.id = id,
                                              .account = relist->account,
                                              .from_ms = relist->dates ? relist->from_ms : 0,
                                              .begun_ms = relist->now_ms,
                                              .left = slices.count};
    TIDE_TRY(tide_mail_listing_put(tide_transaction_rows(transaction), &listing, err));
    for (size_t i = 0; i < slices.count; i++) {
        const struct tide_slice slice = tide_slices_at(&slices, i);
        char payload[160];
        (void)snprintf(payload, sizeof payload,
                       "{\"after\":%" PRIu64 ",\"before\":%" PRIu64
                       ",\"all\":%s,\"listing\":%" PRIu64 "}",
                       slice.after_s, i + 1 == slices.count ? 0 : slice.before_s,
                       relist->dates ? "false" : "true", id);
        const struct tide_spec spec = {.kind = mail->list_kind,
                                       .account = relist->account,
                                       .cycle = relist->cycle,
                                       .payload = payload};
        TIDE_TRY(tide_transaction_enqueue(transaction, &spec, 1, NULL, err));
    }
    return TIDE_OK;
}

/* ---- resuming after a wait ----
 *
 * Each call may find no units left, and then the job is run again later (E4.3a): the facts read so
 * far are kept with it. */

static tide_status plan_keep(const struct plan *plan, tide_job *job, tide_error *err)
{
    tide_auto_json kept;
    tide_auto_buf line = tide_buf_in(plan->mail->mem, 4096);
    tide_json_object(&kept);
    tide_json_set_u64(&kept, "now", plan->now_ms);
    tide_json_set_cstr(&kept, "history_id", plan->position.history_id);
    tide_json_set_u64(&kept, "messages", plan->position.messages);
    tide_json_set_bool(&kept, "dates", plan->position.dates);
    tide_json_set_u64(&kept, "none", plan->none_s);
    tide_json_set_u64(&kept, "some", plan->some_s);
    tide_json_set_bool(&kept, "labels", plan->labels);
    tide_status rc = tide_json_line(&kept, &line);
    return rc == TIDE_OK ? tide_job_resume_set(job, tide_buf_text(&line), err)
                         : tide_error_set(err, rc, "no memory for a plan");
}

static tide_status plan_resume(struct plan *plan, tide_job *job, tide_error *err)
{
    json_auto_t *kept = NULL;
    tide_text history_id = TIDE_TEXT_NONE;
    if (tide_job_resume(job).bytes == 0)
        return TIDE_OK;
    plan->asked = false;
    TIDE_TRY(tide_json_parse(tide_job_resume(job), &kept, err));
    TIDE_TRY(tide_json_get_u64(kept, "now", &plan->now_ms, err));
    TIDE_TRY(tide_json_get_u64(kept, "messages", &plan->position.messages, err));
    TIDE_TRY(tide_json_get_bool(kept, "dates", &plan->position.dates, err));
    TIDE_TRY(tide_json_get_u64(kept, "none", &plan->none_s, err));
    TIDE_TRY(tide_json_get_u64(kept, "some", &plan->some_s, err));
    TIDE_TRY(tide_json_get_bool(kept, "labels", &plan->labels, err));
    TIDE_TRY(tide_json_get_text(kept, "history_id", &history_id, err));
    if (history_id.bytes < sizeof plan->position.history_id)
        (void)snprintf(plan->position.history_id, sizeof plan->position.history_id, "%.*s",
                       (int)history_id.bytes, history_id.data);
    plan->asked = plan->some_s > 0;
    return TIDE_OK;
}

/* ---- what to do ---- */

static tide_status read_marks(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct plan *plan = arg;
    const tide_rows db = tide_transaction_rows(transaction);
    tide_status rc =
        tide_mail_mark_get(db, plan->stream, plan->state.cycles_finished, plan->history_id, err);
    if (rc == TIDE_NOT_FOUND)
        rc = TIDE_OK;
    TIDE_TRY(rc);
    TIDE_TRY(tide_mail_listing_open(db, plan->row.account, &plan->listing, err));
    return tide_mail_recorded(db, plan->row.account, &plan->recorded, err);
}

/* The start of the history of a new epoch: the adopted id; while the first run is not finished, the
 * id that was read before it began, because everything proven was listed after that.  Earlier, if
 * an older copy of a shard has older labels. */
static tide_status read_carry(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct plan *plan = arg;
    const tide_rows db = tide_transaction_rows(transaction);
    tide_status rc = TIDE_OK;
    if (plan->history_id[0] == '\0')
        rc = tide_mail_mark_first(db, plan->stream, plan->history_id, err);
    if (rc == TIDE_NOT_FOUND)
        rc = TIDE_OK;
    if (rc == TIDE_OK && plan->row.rewind_ms > 0)
        rc = tide_mail_proof_history(db, plan->row.account, plan->row.rewind_ms, plan->history_id,
                                     err);
    return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
}

static uint64_t mark_of(const struct plan *plan)
{
    uint64_t mark_ms = 0;
    return tide_text_to_u64(tide_text_of(plan->state.cursor), &mark_ms) ? mark_ms
                                                                        : plan->row.floor_ms;
}

/* Starts an unused stream; [since, mark) stays proven, except what the archive lost. */
static tide_status begin_epoch(struct plan *plan, tide_error *err)
{
    struct tide_mail_row *row = &plan->row;
    tide_status rc = tide_transact(plan->mail->engine, read_carry, plan, err);
    uint64_t proven_ms = mark_of(plan);
    if (row->lost && row->lost_ms < proven_ms)
        proven_ms = row->lost_ms;
    plan->proven_from_ms = row->since_ms;
    plan->proven_to_ms = proven_ms > row->since_ms ? proven_ms : row->since_ms;
    if (plan->since_ms > row->since_ms)
        plan->since_ms = row->since_ms;
    row->floor_ms = plan->since_ms < row->since_ms ? plan->since_ms : plan->proven_to_ms;
    row->since_ms = plan->since_ms;
    row->lost = false;
    row->rewind_ms = 0;
    plan->stream_before = plan->stream;
    plan->state.cycles_opened = 1;
    while (rc == TIDE_OK && plan->state.cycles_opened > 0) {
        row->epoch++;
        rc = tide_mail_stream(plan->mail, row, &plan->stream, err);
        if (rc == TIDE_OK)
            rc = tide_stream_state(plan->mail->engine, plan->stream, &plan->state, err);
    }
    plan->work = PLAN_SLICES;
    return rc;
}

/* Everything was listed, but far fewer messages are stored than the server reported. */
static tide_status was_short(const struct plan *plan, bool *short_out, tide_error *err)
{
    const uint64_t total = plan->row.messages_total;
    const struct tide_mail_count count = {.archive = plan->user->archive,
                                          .stored = plan->stored,
                                          .recorded = plan->recorded,
                                          .total = total};
    uint64_t missing = 0;
    tide_status rc = TIDE_OK;
    if (plan->row.since_ms == 0)
        rc = tide_mail_missing(&count, &missing, err);
    *short_out = rc == TIDE_OK && tide_mail_is_short(total - missing, total);
    return rc;
}

static tide_status decide(struct plan *plan, tide_error *err)
{
    const uint64_t open = plan->state.cycles_opened - plan->state.cycles_finished;
    const bool known = plan->history_id[0] != '\0';
    if (plan->state.cycles_opened == 0) {
        plan->row.since_ms = plan->since_ms;
        plan->row.floor_ms = plan->since_ms;
        plan->proven_from_ms = plan->proven_to_ms = plan->since_ms;
        plan->row.lost = false;
        plan->row.rewind_ms = 0;
        plan->work = PLAN_SLICES;
        return TIDE_OK;
    }
    plan->compares = plan->row.lost && !plan->listing;
    if (plan->row.lost || plan->since_ms < plan->row.since_ms)
        return begin_epoch(plan, err);
    bool too_few = false;
    if (open == 0) {
        plan->row.notice[0] = '\0'; /* the loss it reports is healed */
        TIDE_TRY(was_short(plan, &too_few, err));
    }
    if (plan->listing)
        plan->work = PLAN_NOTHING;
    else if (plan->force || (!known && open == 0) || too_few)
        plan->work = PLAN_RELIST; /* no history id: an empty mailbox on a server without profile */
    else if (known && open < CYCLES_WAITING_MAX)
        plan->work = PLAN_HISTORY;
    return TIDE_OK;
}

/* ---- slices ---- */

/* Whether a query finds any message.  An empty page may have a next page, which may be empty too:
 * taking every such page as mail would list twenty years of empty slices. */
static tide_status ask_some(struct plan *plan, tide_job *job, const char *query, bool *some_out,
                            tide_error *err)
{
    struct tide_gmail_page page = {0};
    struct tide_mail_page at = {0};
    tide_status rc = tide_gmail_list(plan->user->gmail, job, query, at.token, &page, err);
    while (rc == TIDE_OK && page.ids == NULL && page.next.bytes > 0 && at.number < EMPTY_PAGES) {
        struct tide_gmail_page next = {0};
        if (!tide_mail_page_next(&at, page.next, &at))
            rc = tide_error_set(err, TIDE_SERVER, "a listing repeats a page");
        else
            do
                rc = tide_gmail_list(plan->user->gmail, job, query, at.token, &next, err);
            while (tide_mail_wait(job, rc, TIDE_MAIL_WAIT_PACE_MS));
        tide_gmail_page_done(&page);
        page = next;
    }
    *some_out = page.ids != NULL || page.next.bytes > 0;
    tide_gmail_page_done(&page);
    return rc;
}

/* Finds the oldest year with mail by bisection: five calls instead of a thousand empty slices. */
static tide_status probe_oldest(struct plan *plan, tide_job *job, tide_error *err)
{
    while (plan->some_s > plan->none_s + 366 * (uint64_t)TIDE_DAY_S) {
        const uint64_t middle_s = plan->none_s + (plan->some_s - plan->none_s) / 2;
        char query[64];
        size_t used = 0;
        if (plan->row.since_ms > 0)
            used = (size_t)snprintf(query, sizeof query, "after:%" PRIu64 " ",
                                    plan->row.since_ms / 1000);
        (void)snprintf(query + used, sizeof query - used, "before:%" PRIu64, middle_s);
        bool some = false;
        TIDE_TRY(ask_some(plan, job, query, &some, err));
        if (some)
            plan->some_s = middle_s;
        else
            plan->none_s = middle_s;
        TIDE_TRY(plan_keep(plan, job, err));
    }
    return TIDE_OK;
}

static void add_range(struct plan *plan, uint64_t low_ms, uint64_t oldest_s, uint64_t high_s,
                      uint64_t end_ms)
{
    TIDE_ASSERT(plan->ranges_count < RANGES_MAX);
    uint32_t days =
        plan->slice_days > 0 ? plan->slice_days : tide_slice_days(plan->position.messages);
    if (!plan->position.dates)
        days = UINT32_MAX;
    plan->ranges[plan->ranges_count++] = (struct range){
        .slices = tide_slices_plan(low_ms / 1000, oldest_s, high_s, days), .end_ms = end_ms};
}

static tide_status plan_slices(struct plan *plan, tide_job *job, tide_error *err)
{
    const uint64_t now_s = plan->now_ms / 1000;
    const bool nothing = plan->proven_from_ms >= plan->proven_to_ms;
    const bool below = !nothing && plan->row.since_ms < plan->proven_from_ms;
    tide_status rc = TIDE_OK;
    if (!plan->asked) {
        rc = tide_mail_position(plan->mail, plan->user, job, &plan->position, err);
        const uint64_t since_s = plan->row.since_ms / 1000;
        plan->none_s = since_s > TIDE_GMAIL_BEGAN_S ? since_s : TIDE_GMAIL_BEGAN_S;
        plan->some_s = below ? plan->proven_from_ms / 1000 : now_s;
        if (rc == TIDE_OK)
            rc = plan_keep(plan, job, err);
    }
    if (rc == TIDE_OK && (nothing || below) && plan->position.dates)
        rc = probe_oldest(plan, job, err);
    if (rc != TIDE_OK)
        return rc;
    plan->row.messages_total = plan->position.messages;
    plan->ranges_count = 0;
    if (nothing || !plan->position.dates) {
        add_range(plan, plan->row.since_ms, plan->none_s, now_s + 1, plan->now_ms);
    } else {
        if (below) /* the part up to proven_to is proven */
            add_range(plan, plan->row.since_ms, plan->none_s, plan->proven_from_ms / 1000 + 1,
                      plan->proven_to_ms);
        add_range(plan, plan->proven_to_ms, plan->proven_to_ms / 1000, now_s + 1, plan->now_ms);
    }
    plan->ranges[plan->ranges_count - 1].open = true;
    return TIDE_OK;
}

/* Label names change rarely and cost one unit. */
static tide_status read_labels(struct plan *plan, tide_job *job, tide_error *err)
{
    json_t *labels = NULL;
    if (plan->labels)
        return TIDE_OK;
    tide_status rc = TIDE_OK;
    do
        rc = tide_gmail_labels(plan->user->gmail, job, &labels, err);
    while (tide_mail_wait(job, rc, TIDE_MAIL_WAIT_PACE_MS));
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
        rc = tide_mail_archived(plan->user, rc, err); /* a full disk costs no attempt (E7.2) */
    }
    json_decref(labels);
    return rc;
}

/* ---- writing it ---- */

static bool is_newest_first(const struct plan *plan)
{
    tide_engine *engine = plan->mail->engine;
    const uint32_t account = plan->row.account;
    if (plan->order != TIDE_MAIL_BY_QUOTA)
        return plan->order == TIDE_MAIL_NEWEST;
    return tide_slice_is_slow(
        plan->position.messages,
        tide_engine_setting_u64(engine, account, TIDE_SET_GOVERNOR_GMAIL_WINDOW_UNITS),
        tide_engine_setting_u64(engine, account, TIDE_SET_GOVERNOR_GMAIL_WINDOW),
        TIDE_GMAIL_GET_UNITS);
}

static tide_status open_list(tide_transaction *transaction, const struct plan *plan,
                             const struct range *range, size_t index, uint64_t cycle,
                             tide_error *err)
{
    const struct tide_slice slice = tide_slices_at(&range->slices, index);
    const bool last = index + 1 == range->slices.count;
    char payload[160];
    (void)snprintf(payload, sizeof payload,
                   "{\"after\":%" PRIu64 ",\"before\":%" PRIu64 ",\"all\":%s,\"listing\":%" PRIu64
                   "}",
                   slice.after_s, last && range->open ? 0 : slice.before_s,
                   plan->position.dates ? "false" : "true", plan->listing_id);
    struct tide_spec spec = {.kind = plan->mail->list_kind,
                             .account = plan->row.account,
                             .cycle = cycle,
                             .payload = payload};
    if (is_newest_first(plan)) {
        /* Older slices get a lower priority: the newest mail is fetched before older mail is
         * listed. */
        const size_t age = range->slices.count - 1 - index;
        const int own = tide_engine_kind_priority(plan->mail->engine, plan->mail->list_kind);
        const int lower = own - (int)(age * 8 / range->slices.count);
        spec.priority = (int16_t)(lower < 1 ? 1 : lower);
    }
    return tide_transaction_enqueue(transaction, &spec, 1, NULL, err);
}

/* Cycles are in the order of time, whatever is listed first: the tidemark passes them so. */
static tide_status open_range(tide_transaction *transaction, struct plan *plan,
                              const struct range *range, uint64_t *cycles, tide_error *err)
{
    const size_t count = range->slices.count;
    char start[32];
    char end[32];
    for (size_t i = 0; i < count; i++) {
        const struct tide_slice slice = tide_slices_at(&range->slices, i);
        (void)snprintf(start, sizeof start, "%" PRIu64, slice.after_s * 1000);
        (void)snprintf(end, sizeof end, "%" PRIu64,
                       i + 1 == count ? range->end_ms : slice.before_s * 1000);
        TIDE_TRY(tide_transaction_cycle(transaction, plan->stream, start, end, &cycles[i], err));
        if (plan->seeded && plan->listing_id == 0)
            plan->listing_id = cycles[i];
    }
    for (size_t i = 0; i < count; i++) {
        const size_t index = is_newest_first(plan) ? count - 1 - i : i;
        TIDE_TRY(open_list(transaction, plan, range, index, cycles[index], err));
    }
    return TIDE_OK;
}

static tide_status open_ranges(tide_transaction *transaction, struct plan *plan, tide_error *err)
{
    tide_mem *mem = plan->mail->mem;
    const size_t bytes = TIDE_SLICES_MAX * sizeof(uint64_t);
    uint64_t *cycles = tide_mem_new(mem, bytes);
    tide_status rc =
        cycles == NULL ? tide_error_set(err, TIDE_NO_MEMORY, "no memory for a plan") : TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < plan->ranges_count; i++)
        rc = open_range(transaction, plan, &plan->ranges[i], cycles, err);
    tide_mem_free(mem, cycles, bytes);
    return rc;
}

/* A cycle that ends now and has no jobs yet. */
static tide_status open_cycle(tide_transaction *transaction, const struct plan *plan,
                              uint64_t *cycle_out, tide_error *err)
{
    char end[32];
    (void)snprintf(end, sizeof end, "%" PRIu64, plan->now_ms);
    return tide_transaction_cycle(transaction, plan->stream, plan->state.cursor, end, cycle_out,
                                  err);
}

static tide_status open_history(tide_transaction *transaction, const struct plan *plan,
                                uint64_t ordinal, tide_error *err)
{
    tide_json payload;
    uint64_t cycle = 0;
    tide_auto_buf line = tide_buf_in(plan->mail->mem, 4096);
    tide_json_object(&payload);
    tide_json_set_cstr(&payload, "start", plan->history_id);
    tide_json_set_u64(&payload, "stream", plan->stream);
    tide_json_set_u64(&payload, "ordinal", ordinal);
    tide_status rc = tide_json_line(&payload, &line);
    tide_json_done(&payload);
    if (rc != TIDE_OK)
        return tide_error_set(err, rc, "no memory for a history run");
    TIDE_TRY(open_cycle(transaction, plan, &cycle, err));
    const struct tide_spec spec = {.kind = plan->mail->history_kind,
                                   .account = plan->row.account,
                                   .cycle = cycle,
                                   .payload = tide_buf_cstr(&line)};
    return tide_transaction_enqueue(transaction, &spec, 1, NULL, err);
}

static struct tide_mail_relist relist_of(const struct plan *plan)
{
    return (struct tide_mail_relist){.listing = plan->listing_id,
                                     .account = plan->row.account,
                                     .from_ms = plan->row.since_ms,
                                     .now_ms = plan->now_ms,
                                     .dates = plan->position.dates};
}

/* Everything is listed: the id adopted with it is not reached by reading the history
 * (manifest.h). */
static tide_status note_gap(tide_transaction *transaction, const struct plan *plan, tide_error *err)
{
    const struct tide_mail_relist relist = relist_of(plan);
    if (!plan->has_mail)
        return TIDE_OK; /* later messages are stored with their labels */
    return tide_mail_labels_wanted(transaction, &relist, plan->position.history_id, err);
}

/* The same where nothing is compared with the archive: labels stay unsure. */
static tide_status note_gap_only(tide_transaction *transaction, const struct plan *plan,
                                 tide_error *err)
{
    return plan->has_mail ? tide_gap_put(tide_transaction_rows(transaction), plan->row.account,
                                         plan->now_ms, err)
                          : TIDE_OK;
}

/* A cycle with a complete listing. */
static tide_status open_listing(tide_transaction *transaction, struct plan *plan, tide_error *err)
{
    struct tide_mail_relist relist = relist_of(plan);
    TIDE_TRY(open_cycle(transaction, plan, &relist.cycle, err));
    relist.listing = plan->listing_id = relist.cycle;
    return tide_mail_relist(transaction, plan->mail, &relist, err);
}

/* An archive that has mail before its first sync (M18): the slices are one complete listing, which
 * finds what the server no longer has. */
static tide_status open_seeded(tide_transaction *transaction, const struct plan *plan,
                               tide_error *err)
{
    struct tide_mail_listing listing = {.id = plan->listing_id,
                                        .account = plan->row.account,
                                        .from_ms = plan->position.dates ? plan->row.since_ms : 0,
                                        .begun_ms = plan->now_ms};
    for (size_t i = 0; i < plan->ranges_count; i++)
        listing.left += plan->ranges[i].slices.count;
    return tide_mail_listing_put(tide_transaction_rows(transaction), &listing, err);
}

/* The history id read before the listing is recorded with the last cycle; a new epoch continues the
 * history of the old one instead. */
static tide_status open_slices(tide_transaction *transaction, struct plan *plan, tide_error *err)
{
    uint64_t ordinal = plan->state.cycles_opened;
    plan->listing_id = 0; /* this may be another try */
    plan->seeded = plan->has_mail && !plan->compares && plan->history_id[0] == '\0' &&
                   plan->proven_from_ms >= plan->proven_to_ms;
    TIDE_TRY(open_ranges(transaction, plan, err));
    for (size_t i = 0; i < plan->ranges_count; i++)
        ordinal += plan->ranges[i].slices.count;
    if (plan->seeded)
        TIDE_TRY(open_seeded(transaction, plan, err));
    if (plan->compares) {
        TIDE_TRY(open_listing(transaction, plan, err));
        ordinal++;
    }
    if (plan->history_id[0] != '\0')
        return open_history(transaction, plan, ordinal, err);
    if (plan->position.history_id[0] != '\0')
        TIDE_TRY(tide_mail_mark_put(tide_transaction_rows(transaction), plan->stream, ordinal - 1,
                                    tide_text_of(plan->position.history_id), err));
    return plan->listing_id != 0 ? note_gap(transaction, plan, err)
                                 : note_gap_only(transaction, plan, err);
}

static tide_status open_relist(tide_transaction *transaction, struct plan *plan, tide_error *err)
{
    tide_status rc = open_listing(transaction, plan, err);
    /* Stored messages are listed, not read again: changes since the id that an earlier cycle
     * recorded are still to be read, so a newer id must not replace it. */
    char earlier[64];
    if (rc == TIDE_OK)
        rc = tide_mail_mark_first(tide_transaction_rows(transaction), plan->stream, earlier, err);
    if (rc != TIDE_NOT_FOUND || plan->position.history_id[0] == '\0')
        return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
    TIDE_TRY(tide_mail_mark_put(tide_transaction_rows(transaction), plan->stream,
                                plan->state.cycles_opened, tide_text_of(plan->position.history_id),
                                err));
    return note_gap(transaction, plan, err);
}

static tide_status write_plan(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct plan *plan = arg;
    const tide_rows db = tide_transaction_rows(transaction);
    TIDE_TRY(tide_mail_row_put(db, &plan->row, err));
    if (plan->stream_before > 0)
        TIDE_TRY(tide_mail_mark_prune(db, plan->stream_before, UINT64_MAX, err));
    TIDE_TRY(tide_mail_mark_prune(db, plan->stream, plan->state.cycles_finished, err));
    switch (plan->work) {
    case PLAN_NOTHING:
        break;
    case PLAN_SLICES:
        return open_slices(transaction, plan, err);
    case PLAN_HISTORY:
        return open_history(transaction, plan, plan->state.cycles_opened, err);
    case PLAN_RELIST:
        return open_relist(transaction, plan, err);
    }
    return TIDE_OK;
}

/* ---- the job ---- */

static tide_status plan_read(struct plan *plan, tide_job *job, tide_error *err)
{
    json_auto_t *payload = NULL;
    tide_status rc = tide_json_parse(tide_job_payload(job), &payload, err);
    uint64_t days = 0;
    if (rc == TIDE_OK) {
        (void)tide_json_get_bool(payload, "force", &plan->force, NULL);
        (void)tide_json_get_u64(payload, "order", &plan->order, NULL);
        (void)tide_json_get_bool(payload, "heal", &plan->heal, NULL);
        (void)tide_json_get_bool(payload, "inexact", &plan->inexact, NULL);
        (void)tide_json_get_u64(payload, "slice_days", &days, NULL);
        (void)tide_json_get_u64(payload, "since", &plan->since_ms, NULL);
        plan->slice_days = (uint32_t)days;
    }
    if (rc == TIDE_OK)
        rc = tide_mail_user(plan->mail, tide_job_account(job), &plan->user, err);
    if (rc == TIDE_OK)
        rc = tide_mail_prove(plan->mail, plan->user, err);
    if (rc == TIDE_OK)
        rc = tide_mail_row_read(plan->mail, tide_job_account(job), &plan->row, err);
    if (rc == TIDE_OK && plan->since_ms == 0)
        plan->since_ms = plan->row.since_ms; /* 0 for a new account */
    else if (plan->since_ms == TIDE_MAIL_EVERYTHING)
        plan->since_ms = 0;
    TIDE_TRY(rc);
    TIDE_TRY(tide_mail_stream(plan->mail, &plan->row, &plan->stream, err));
    TIDE_TRY(tide_stream_state(plan->mail->engine, plan->stream, &plan->state, err));
    return tide_transact(plan->mail->engine, read_marks, plan, err);
}

static void mail_add(const struct tide_shard_state *shard, void *arg)
{
    struct plan *plan = arg;
    plan->stored += shard->messages;
}

static tide_status look_for_mail(struct plan *plan, tide_error *err)
{
    TIDE_TRY(tide_archive_states(plan->user->archive, mail_add, plan, err));
    plan->has_mail = plan->stored > 0;
    return TIDE_OK;
}

/* The server's number of messages, read when this job began (identity.c); 0: unknown. */
static uint64_t counted(const struct tide_mail_user *user, const tide_job *job)
{
    const bool read = user->profile_job == tide_job_id(job) && !user->profile_none;
    return read ? user->profile.messages : 0;
}

static tide_status plan_run(tide_job *job, void *context, tide_error *err)
{
    struct plan *plan = tide_job_memory(job, sizeof *plan);
    if (plan == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for a plan");
    plan->mail = context;
    plan->now_ms = tide_world_now_unix_ms(plan->mail->world);
    TIDE_TRY(tide_mail_retry_failed(plan->mail, job, err));
    TIDE_TRY(plan_read(plan, job, err));
    const bool settled = plan->state.cycles_opened > 0 && plan->history_id[0] != '\0' &&
                         plan->state.cycles_opened == plan->state.cycles_finished &&
                         !plan->row.lost;
    if (settled)
        TIDE_TRY(tide_mail_remember_proof(plan->mail, plan->user, job, plan->history_id,
                                          plan->now_ms, err));
    if (settled)
        TIDE_TRY(tide_mail_settle(plan->mail, plan->user, err));
    TIDE_TRY(look_for_mail(plan, err));
    TIDE_TRY(decide(plan, err));
    TIDE_TRY(plan_resume(plan, job, err));
    if (plan->work == PLAN_SLICES)
        TIDE_TRY(plan_slices(plan, job, err));
    if (plan->work == PLAN_RELIST && !plan->asked)
        TIDE_TRY(tide_mail_position(plan->mail, plan->user, job, &plan->position, err));
    if (plan->work == PLAN_RELIST)
        plan->row.messages_total = plan->position.messages;
    if (plan->work == PLAN_HISTORY)
        plan->row.messages_total = counted(plan->user, job);
    TIDE_TRY(read_labels(plan, job, err));
    TIDE_TRY(tide_mail_watch(plan->mail, plan->user, job, plan->row.notice, err));
    TIDE_TRY(tide_mail_refetch(plan->mail, plan->user, job, plan->heal, err));
    TIDE_TRY(tide_mail_held_begin(plan->mail, plan->user, job, plan->inexact, err));
    if (plan->heal)
        TIDE_TRY(tide_mail_heal_job(plan->mail, job, 0, err));
    TIDE_TRY(tide_mail_remember_gone(plan->mail, plan->user, job, err));
    TIDE_TRY(tide_mail_accept_failed(plan->mail, job, plan->now_ms, err));
    plan->row.last_run_ms = plan->now_ms;
    return tide_job_effect(job, write_plan, plan, err);
}

tide_status tide_mail_plan(tide_job *job, void *context, tide_error *err)
{
    return tide_mail_ended(context, job, plan_run(job, context, err), err);
}
