/* plan.c - console.plan: finds the missing days and opens cycles for them (B2, B10).
 *
 * Everything it decides is written with its own `done`, so a crash leaves either the old state or
 * all of the new cycles. */
#include "console/console_inside.h"

#include "base/check.h"
#include "base/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    LOOK_BACK_DAYS = 10,  /* how far back to look for the last final day */
    FINAL_AFTER_DAYS = 3, /* if the server does not say */
    MONTHS_16_DAYS = 480,
};

struct plan {
    tide_console *console;
    struct tide_console_open_site *site;
    uint32_t account;
    uint64_t number; /* of this plan */
    struct tide_console_series_row row;
    struct tide_console_series_row seen; /* the row as read */
    struct tide_stream_state state;
    uint64_t stream;
    bool again, totals, sync;
    uint32_t row_limit, days;
    int32_t from, to;                   /* requested; from may be earlier than any data */
    int32_t last_final;                 /* according to the server */
    int32_t first;                      /* first cycle to open; the last is min(to, last_final) */
    bool stored[TIDE_CONSOLE_DAYS_MAX]; /* final and stored, from `from` on */
};

/* ---- stored days ---- */

static bool note_day(const struct tide_console_day_row *day, void *arg)
{
    struct plan *plan = arg;
    int32_t number = 0;
    if (!day->final || !tide_date_parse(day->date, &number) || number < plan->from ||
        number - plan->from >= TIDE_CONSOLE_DAYS_MAX)
        return true;
    /* A day with missing rows is requested again, as long as the server has it. */
    plan->stored[number - plan->from] =
        (day->counted && day->missing == 0) || number <= plan->last_final - MONTHS_16_DAYS;
    return true;
}

/* The last day with any data. */
static tide_status take_date(const struct tide_sc_row *row, void *arg)
{
    int32_t *last = arg;
    int32_t number = 0;
    char date[16];
    const tide_text key = row->keys[TIDE_SC_DATE];
    (void)snprintf(date, sizeof date, "%.*s", (int)(key.bytes < 15 ? key.bytes : 15), key.data);
    if (tide_date_parse(date, &number) && number > *last)
        *last = number;
    return TIDE_OK;
}

static void forget_date(void *arg)
{
    *(int32_t *)arg = INT32_MIN;
}

/* One call: the first day whose numbers may still change.  The server is sometimes days late, and a
 * day without data yet looks like a day without searches; so a recent day is final only if it, or a
 * later one, has data. */
static tide_status ask_final(struct plan *plan, tide_job *job, int32_t today, tide_error *err)
{
    char from[16];
    char to[16];
    tide_date_format(today - LOOK_BACK_DAYS, from);
    tide_date_format(today, to);
    const struct tide_sc_query query = {.site = plan->site->row.site,
                                        .date = from,
                                        .date_to = to,
                                        .type = plan->row.set.type,
                                        .dimensions = 1u << TIDE_SC_DATE,
                                        .row_limit = 100,
                                        .fresh = true,
                                        .expected_bytes = 4096};
    int32_t last = INT32_MIN;
    const struct tide_sc_sink sink = {take_date, forget_date, &last};
    struct tide_sc_page page;
    const tide_status rc =
        tide_searchconsole_query(plan->site->user->client, job, &query, &sink, &page, err);
    int32_t incomplete = 0;
    plan->last_final = today - FINAL_AFTER_DAYS;
    if (rc == TIDE_OK && tide_date_parse(page.first_incomplete, &incomplete) &&
        incomplete <= today && incomplete >= today - LOOK_BACK_DAYS)
        plan->last_final = incomplete - 1;
    if (last < today - LOOK_BACK_DAYS)
        last = today - LOOK_BACK_DAYS;
    if (plan->last_final > last)
        plan->last_final = last;
    return rc;
}

/* ---- deciding ---- */

static tide_status read_series(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct plan *plan = arg;
    const tide_status rc =
        tide_console_series_get(tide_transaction_rows(transaction), &plan->row, err);
    plan->seen = plan->row;
    return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
}

/* Another plan of this series may have been written meanwhile; then this one starts again. */
static tide_status series_unchanged(tide_transaction *transaction, const struct plan *plan,
                                    tide_error *err)
{
    struct tide_console_series_row now = {.site = plan->row.site, .set = plan->row.set};
    const tide_status rc = tide_console_series_get(tide_transaction_rows(transaction), &now, err);
    if (rc != TIDE_OK && rc != TIDE_NOT_FOUND)
        return rc;
    if (now.epoch != plan->seen.epoch || strcmp(now.floor, plan->seen.floor) != 0 ||
        strcmp(now.opened, plan->seen.opened) != 0)
        return tide_error_set(err, TIDE_STALE, "another plan of this site was written first");
    return TIDE_OK;
}

/* Where the stream continues, or starts again: the cursor only moves forward, so a day before its
 * floor needs another stream; stored days are not requested again. */
static tide_status place(struct plan *plan, tide_error *err)
{
    int32_t floor = 0;
    int32_t cursor = 0;
    char text[16];
    if (!tide_date_parse(plan->row.floor, &floor) || plan->from < floor) {
        plan->row.epoch++;
        tide_date_format(plan->from, plan->row.floor);
        plan->row.opened[0] = '\0';
    }
    tide_date_format(plan->from - 1, text);
    TIDE_TRY(tide_console_stream(plan->console, &plan->site->row, &plan->row.set, plan->row.epoch,
                                 text, &plan->stream, err));
    TIDE_TRY(tide_stream_state(plan->console->options.engine, plan->stream, &plan->state, err));
    plan->first = plan->from;
    if (plan->state.cycles_opened > 0)
        plan->first = tide_date_parse(plan->row.opened, &cursor) ? cursor + 1 : plan->from;
    return TIDE_OK;
}

/* ---- writing ---- */

static tide_status open_day(tide_transaction *transaction, const struct plan *plan, int32_t day,
                            uint64_t cycle, tide_error *err)
{
    struct tide_console_ask ask = {.site = plan->row.site,
                                   .plan = plan->number,
                                   .set = plan->row.set,
                                   .final = day <= plan->last_final,
                                   .totals_next = plan->totals,
                                   .row_limit = plan->row_limit};
    char dedupe[96];
    tide_date_format(day, ask.date);
    (void)snprintf(dedupe, sizeof dedupe, "%" PRIu64 "/%d/%" PRIu32 "/%s", ask.site,
                   (int)ask.set.type, ask.set.dimensions, ask.date);
    tide_auto_buf payload = tide_buf_in(plan->console->mem, 4096);
    TIDE_TRY(tide_console_ask_write(&ask, &payload));
    const struct tide_spec spec = {.kind = plan->console->page_kind,
                                   .account = plan->account,
                                   .cycle = cycle,
                                   .dedupe = cycle == 0 ? dedupe : NULL,
                                   .payload = tide_buf_cstr(&payload)};
    return tide_transaction_enqueue(transaction, &spec, 1, NULL, err);
}

/* The last day that gets a cycle.  The requested days are followed by those stored already, so that
 * the tidemark does not fall back when an earlier day starts a new stream. */
static int32_t last_cycle(const struct plan *plan)
{
    int32_t last = plan->to < plan->last_final ? plan->to : plan->last_final;
    while (last >= plan->from && last < plan->last_final &&
           last + 1 - plan->from < TIDE_CONSOLE_DAYS_MAX && plan->stored[last + 1 - plan->from])
        last++;
    return last;
}

static tide_status open_cycle(tide_transaction *transaction, struct plan *plan, int32_t day,
                              tide_error *err)
{
    char start[16];
    char end[16];
    uint64_t cycle = 0;
    tide_date_format(day - 1, start);
    tide_date_format(day, end);
    const tide_status rc =
        tide_transaction_cycle(transaction, plan->stream, start, end, &cycle, err);
    const bool again = plan->again && day <= plan->to;
    const bool there = !again && day >= plan->from && plan->stored[day - plan->from];
    (void)snprintf(plan->row.opened, sizeof plan->row.opened, "%s", end);
    return rc == TIDE_OK && !there ? open_day(transaction, plan, day, cycle, err) : rc;
}

static tide_status write_plan(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct plan *plan = arg;
    tide_status rc = series_unchanged(transaction, plan, err);
    const int32_t last = last_cycle(plan);
    for (int32_t day = plan->first; rc == TIDE_OK && day <= last; day++)
        rc = open_cycle(transaction, plan, day, err);
    /* Days behind the tidemark that are missing or requested again. */
    for (int32_t day = plan->from; rc == TIDE_OK && day < plan->first && day <= last; day++)
        if ((plan->again && day <= plan->to) ||
            (!plan->stored[day - plan->from] &&
             plan->state.cycles_opened == plan->state.cycles_finished))
            rc = open_day(transaction, plan, day, 0, err);
    int32_t day = last < plan->from ? plan->from : last + 1;
    for (; rc == TIDE_OK && day <= plan->to; day++)
        if (!plan->stored[day - plan->from])
            rc = open_day(transaction, plan, day, 0, err);
    return rc == TIDE_OK
               ? tide_console_series_put(tide_transaction_rows(transaction), &plan->row, err)
               : rc;
}

/* ---- the job ---- */

static tide_status read_payload(struct plan *plan, tide_job *job, int32_t today, tide_error *err)
{
    json_auto_t *payload = NULL;
    uint64_t type = 0;
    uint64_t dimensions = 0;
    uint64_t limit = 0;
    uint64_t days = 0;
    tide_text from = TIDE_TEXT_NONE;
    tide_text to = TIDE_TEXT_NONE;
    TIDE_TRY(tide_json_parse(tide_job_payload(job), &payload, err));
    TIDE_TRY(tide_json_get_u64(payload, "site", &plan->row.site, err));
    TIDE_TRY(tide_json_get_u64(payload, "type", &type, err));
    TIDE_TRY(tide_json_get_u64(payload, "dimensions", &dimensions, err));
    TIDE_TRY(tide_json_get_u64(payload, "limit", &limit, err));
    TIDE_TRY(tide_json_get_u64(payload, "days", &days, err));
    TIDE_TRY(tide_json_get_bool(payload, "again", &plan->again, err));
    TIDE_TRY(tide_json_get_bool(payload, "totals", &plan->totals, err));
    /* older plans lack it */
    if (json_object_get(payload, "sync") != NULL)
        TIDE_TRY(tide_json_get_bool(payload, "sync", &plan->sync, err));
    TIDE_TRY(tide_json_get_text(payload, "from", &from, err));
    TIDE_TRY(tide_json_get_text(payload, "to", &to, err));
    char text[16];
    plan->row.set = (struct tide_console_set){(tide_sc_type)type, (uint32_t)dimensions};
    plan->row_limit = (uint32_t)limit;
    plan->days = (uint32_t)days;
    (void)snprintf(text, sizeof text, "%.*s", (int)to.bytes, to.data);
    if (!tide_date_parse(text, &plan->to) || plan->to >= today)
        plan->to = today - 1;
    (void)snprintf(text, sizeof text, "%.*s", (int)from.bytes, from.data);
    if (!tide_date_parse(text, &plan->from))
        plan->from = INT32_MIN; /* set when the last final day is known */
    return TIDE_OK;
}

/* Without a first day: `days` days; to keep a series up to date: from its first day. */
static void choose_from(struct plan *plan)
{
    int32_t floor = 0;
    if (plan->from == INT32_MIN && plan->days == 0 && plan->sync &&
        tide_date_parse(plan->row.floor, &floor))
        plan->from = floor;
    if (plan->from == INT32_MIN)
        plan->from = plan->last_final + 1 -
                     (int32_t)(plan->days == 0 ? (uint32_t)MONTHS_16_DAYS : plan->days);
    if (plan->to - plan->from >= TIDE_CONSOLE_DAYS_MAX)
        plan->from = plan->to - TIDE_CONSOLE_DAYS_MAX + 1; /* the server has no older ones */
}

static tide_status plan_run(tide_job *job, tide_console *console,
                            struct tide_console_open_site **site_out, tide_error *err)
{
    struct plan *plan = tide_job_memory(job, sizeof *plan);
    char from[16];
    if (plan == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for a plan");
    plan->console = console;
    plan->account = tide_job_account(job);
    plan->number = tide_world_random_u64(console->options.world) >> 1 | 1;
    const int32_t today = tide_date_pacific(tide_world_now_unix_ms(console->options.world));
    tide_status rc = read_payload(plan, job, today, err);
    if (rc == TIDE_OK)
        rc = tide_console_use(console, plan->row.site, plan->account, &plan->site, err);
    *site_out = plan->site;
    TIDE_TRY(rc);
    TIDE_TRY(tide_transact(console->options.engine, read_series, plan, err));
    TIDE_TRY(ask_final(plan, job, today, err));
    TIDE_TRY(tide_console_accepted(console, plan->site, err));
    choose_from(plan);
    tide_date_format(plan->from, from);
    TIDE_TRY(tide_console_store_days(plan->site->store, &plan->row.set, from, NULL, note_day, plan,
                                     err));
    TIDE_TRY(place(plan, err));
    return tide_job_effect(job, write_plan, plan, err);
}

tide_status tide_console_plan(tide_job *job, void *context, tide_error *err)
{
    tide_console *console = context;
    struct tide_console_open_site *site = NULL;
    tide_error why = {TIDE_OK, 0, ""};
    tide_status rc = plan_run(job, console, &site, &why);
    if (tide_console_is_final(rc)) {
        char text[400];
        (void)snprintf(text, sizeof text, "%.80s: %.300s", site == NULL ? "" : site->row.site,
                       why.text);
        rc = site == NULL ? TIDE_PERMANENT : tide_console_refuse(console, site, text, &why);
    }
    if (rc != TIDE_OK && err != NULL)
        *err = why;
    return tide_console_ended(console, job, rc);
}
