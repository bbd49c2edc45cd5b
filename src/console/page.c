/* page.c - console.page: one request of a day (B1, B2, B6). */
#include "console/console_inside.h"

#include "base/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- the payload ---- */

tide_status tide_console_ask_write(const struct tide_console_ask *ask, tide_buf *out)
{
    TIDE_TRY(tide_buf_print(
        out,
        "{\"site\":%" PRIu64 ",\"plan\":%" PRIu64 ",\"type\":%d,\"dimensions\":%" PRIu32
        ",\"date\":\"%s\",\"start\":%" PRIu32 ",\"limit\":%" PRIu32 ",\"final\":%s,\"first\":%s",
        ask->site, ask->plan, (int)ask->set.type, ask->set.dimensions, ask->date, ask->start_row,
        ask->row_limit, ask->final ? "true" : "false", ask->totals_next ? "true" : "false"));
    if (ask->reading > 0)
        TIDE_TRY(tide_buf_print(out, ",\"reading\":%" PRIu32 ",\"from\":%" PRIu32, ask->reading,
                                ask->from));
    if (ask->totals)
        TIDE_TRY(tide_buf_print(out, ",\"totals\":[%.17g,%.17g", ask->clicks, ask->impressions));
    if (ask->totals && !isnan(ask->position))
        TIDE_TRY(tide_buf_print(out, ",%.17g", ask->position));
    return tide_buf_add_text(out, ask->totals ? "]}" : "}");
}

tide_status tide_console_ask_read(tide_text payload, struct tide_console_ask *ask_out,
                                  tide_error *err)
{
    struct tide_console_ask ask = {.position = NAN};
    json_auto_t *object = NULL;
    tide_text date = TIDE_TEXT_NONE;
    uint64_t type = 0;
    uint64_t dimensions = 0;
    uint64_t start = 0;
    uint64_t limit = 0;
    uint64_t reading = 0;
    uint64_t first = 0;
    int32_t day = 0;
    TIDE_TRY(tide_json_parse(payload, &object, err));
    TIDE_TRY(tide_json_get_u64(object, "site", &ask.site, err));
    TIDE_TRY(tide_json_get_u64(object, "plan", &ask.plan, err));
    TIDE_TRY(tide_json_get_u64(object, "type", &type, err));
    TIDE_TRY(tide_json_get_u64(object, "dimensions", &dimensions, err));
    TIDE_TRY(tide_json_get_text(object, "date", &date, err));
    TIDE_TRY(tide_json_get_u64(object, "start", &start, err));
    TIDE_TRY(tide_json_get_u64(object, "limit", &limit, err));
    TIDE_TRY(tide_json_get_bool(object, "final", &ask.final, err));
    TIDE_TRY(tide_json_get_bool(object, "first", &ask.totals_next, err));
    if (json_object_get(object, "reading") != NULL) {
        TIDE_TRY(tide_json_get_u64(object, "reading", &reading, err));
        TIDE_TRY(tide_json_get_u64(object, "from", &first, err));
    }
    (void)snprintf(ask.date, sizeof ask.date, "%.*s", (int)date.bytes, date.data);
    if (type >= TIDE_SC_TYPES || dimensions >> TIDE_SC_DIMENSIONS != 0 ||
        start > TIDE_SC_DAY_ROWS_MAX || limit == 0 || limit > TIDE_SC_ROWS_MAX || ask.plan == 0 ||
        reading >= TIDE_CONSOLE_READINGS_MAX || first > start ||
        (first > 0 && reading + 1 == TIDE_CONSOLE_READINGS_MAX) || !tide_date_parse(ask.date, &day))
        return tide_error_set(err, TIDE_INVALID, "invalid payload of a console.page job");
    const json_t *totals = json_object_get(object, "totals");
    if (json_array_size(totals) >= 2) {
        ask.totals = true;
        ask.clicks = json_number_value(json_array_get(totals, 0));
        ask.impressions = json_number_value(json_array_get(totals, 1));
        if (json_array_size(totals) > 2)
            ask.position = json_number_value(json_array_get(totals, 2));
    }
    ask.set = (struct tide_console_set){(tide_sc_type)type, (uint32_t)dimensions};
    ask.start_row = (uint32_t)start;
    ask.row_limit = (uint32_t)limit;
    ask.reading = (uint32_t)reading;
    ask.from = (uint32_t)first;
    *ask_out = ask;
    return TIDE_OK;
}

/* ---- the next request ---- */

struct tide_console_part tide_console_ask_part(const struct tide_console_ask *ask)
{
    return (struct tide_console_part){.date = ask->date,
                                      .asked = ask->plan,
                                      .reading = ask->reading,
                                      .from = ask->from,
                                      .start_row = ask->start_row,
                                      .last = ask->reading + 1 == TIDE_CONSOLE_READINGS_MAX};
}

bool tide_console_ask_more(const struct tide_console_ask *ask, uint32_t rows)
{
    return ask->from == 0 && rows >= ask->row_limit && ask->start_row + rows < TIDE_SC_DAY_ROWS_MAX;
}

void tide_console_ask_again(struct tide_console_ask *ask,
                            const struct tide_console_committed *so_far)
{
    const bool last = ask->reading + 2 == TIDE_CONSOLE_READINGS_MAX;
    const bool across = !last && !so_far->gap && so_far->counted > TIDE_SC_ROWS_MAX &&
                        ask->from == 0 && ask->row_limit == TIDE_SC_ROWS_MAX;
    ask->reading++;
    ask->row_limit = TIDE_SC_ROWS_MAX;
    ask->start_row = ask->from = across ? TIDE_SC_ROWS_MAX / 2 : 0;
}

/* The next request of the same day: a child, so it is in the same cycle.  It runs before days that
 * have not started, so that days are finished one after another and little is staged. */
static tide_status next(tide_console *console, tide_job *job, const struct tide_console_ask *ask,
                        tide_error *err)
{
    tide_auto_buf payload = tide_buf_in(console->mem, 4096);
    tide_status rc = tide_console_ask_write(ask, &payload);
    const int own = tide_engine_kind_priority(console->options.engine, console->page_kind);
    const struct tide_spec spec = {.kind = console->page_kind,
                                   .account = tide_job_account(job),
                                   .priority = (int16_t)(own + 1),
                                   .payload = tide_buf_cstr(&payload)};
    if (rc == TIDE_OK)
        rc = tide_job_enqueue(job, &spec, err);
    else
        (void)tide_error_set(err, rc, "no memory for the next page");
    return rc;
}

/* ---- totals ---- */

static tide_status take_totals(const struct tide_sc_row *row, void *arg)
{
    struct tide_console_ask *ask = arg;
    ask->clicks = row->clicks;
    ask->impressions = row->impressions;
    ask->position = row->position;
    return TIDE_OK;
}

static void forget_totals(void *arg)
{
    struct tide_console_ask *ask = arg;
    ask->clicks = ask->impressions = 0;
    ask->position = NAN;
}

/* Sums that include the rare queries, which the server hides.  A day without rows has no totals
 * either. */
static tide_status run_totals(tide_console *console, const struct tide_console_open_site *site,
                              tide_job *job, struct tide_console_ask *ask, tide_error *err)
{
    const struct tide_sc_query query = {.site = site->row.site,
                                        .date = ask->date,
                                        .type = ask->set.type,
                                        .row_limit = 1,
                                        .fresh = !ask->final,
                                        .expected_bytes = 1024};
    const struct tide_sc_sink sink = {take_totals, forget_totals, ask};
    struct tide_sc_page page;
    forget_totals(ask);
    TIDE_TRY(tide_searchconsole_query(site->user->client, job, &query, &sink, &page, err));
    ask->totals = true;
    ask->totals_next = false;
    return next(console, job, ask, err);
}

/* ---- rows ---- */

static tide_status take_row(const struct tide_sc_row *row, void *arg)
{
    return tide_console_page_add(arg, row);
}

static void forget_rows(void *arg)
{
    tide_console_page_clear(arg);
}

static tide_status finish_day(tide_console *console, const struct tide_console_open_site *site,
                              tide_job *job, struct tide_console_ask *ask,
                              const tide_console_page *page, tide_error *err)
{
    const struct tide_console_part part = tide_console_ask_part(ask);
    const struct tide_console_day day = {
        .final = ask->final,
        .totals = ask->totals,
        .clicks = ask->clicks,
        .impressions = ask->impressions,
        .position = ask->position,
        .fetched_ms = tide_world_now_unix_ms(console->options.world),
    };
    struct tide_console_committed done;
    TIDE_TRY(tide_console_store_commit(site->store, &ask->set, &part, &day, page, &done, err));
    if (done.again) {
        (void)__atomic_add_fetch(&site->user->readings_more, 1, __ATOMIC_RELAXED);
        tide_console_ask_again(ask, &done);
        return next(console, job, ask, err);
    }
    (void)__atomic_add_fetch(&site->user->days, 1, __ATOMIC_RELAXED);
    (void)__atomic_add_fetch(&site->user->rows, done.rows, __ATOMIC_RELAXED);
    (void)__atomic_add_fetch(&site->user->rows_missing, done.missing, __ATOMIC_RELAXED);
    if (console->options.on_day == NULL)
        return TIDE_OK;
    tide_error why = {TIDE_OK, 0, ""};
    if (console->options.on_day(site->row.site, &ask->set, ask->date, done.rows,
                                console->options.on_day_arg, &why) != TIDE_OK)
        (void)tide_engine_halt(console->options.engine, tide_job_account(job), why.text, NULL);
    return TIDE_OK; /* the day itself is stored */
}

static tide_status run_rows(tide_console *console, const struct tide_console_open_site *site,
                            tide_job *job, struct tide_console_ask *ask, tide_error *err)
{
    const struct tide_sc_query query = {.site = site->row.site,
                                        .date = ask->date,
                                        .type = ask->set.type,
                                        .dimensions = ask->set.dimensions,
                                        .start_row = ask->start_row,
                                        .row_limit = ask->row_limit,
                                        .fresh = !ask->final};
    tide_console_page *page = NULL;
    struct tide_sc_page got = {0};
    TIDE_TRY(tide_console_page_new(site->store, &page, err));
    const struct tide_sc_sink sink = {take_row, forget_rows, page};
    tide_status rc = tide_searchconsole_query(site->user->client, job, &query, &sink, &got, err);
    if (rc == TIDE_OK)
        (void)__atomic_add_fetch(&site->user->bytes, got.bytes, __ATOMIC_RELAXED);
    if (rc == TIDE_OK && tide_console_ask_more(ask, got.rows)) {
        const struct tide_console_part part = tide_console_ask_part(ask);
        rc = tide_console_store_stage(site->store, &ask->set, &part, page, err);
        ask->start_row += got.rows;
        if (rc == TIDE_OK)
            rc = next(console, job, ask, err);
    } else if (rc == TIDE_OK) {
        rc = finish_day(console, site, job, ask, page, err);
    }
    tide_console_page_free(page);
    return rc;
}

tide_status tide_console_page_job(tide_job *job, void *context, tide_error *err)
{
    tide_console *console = context;
    struct tide_console_open_site *site = NULL;
    struct tide_console_ask ask = {.date = ""};
    tide_error why = {TIDE_OK, 0, ""};
    tide_status rc = tide_console_ask_read(tide_job_payload(job), &ask, &why);
    if (rc == TIDE_OK)
        rc = tide_console_use(console, ask.site, tide_job_account(job), &site, &why);
    if (rc == TIDE_OK)
        rc = tide_console_is_refused(console, site, &why);
    const bool refused = rc == TIDE_PERMANENT;
    if (rc == TIDE_OK)
        rc = ask.totals_next ? run_totals(console, site, job, &ask, &why)
                             : run_rows(console, site, job, &ask, &why);
    if (tide_console_is_final(rc) && !refused) {
        char text[400];
        (void)snprintf(text, sizeof text, "%.80s %s: %.280s", site == NULL ? "" : site->row.site,
                       ask.date, why.text);
        rc = site == NULL ? TIDE_PERMANENT : tide_console_refuse(console, site, text, &why);
    }
    if (rc != TIDE_OK && err != NULL)
        *err = why;
    return tide_console_ended(console, job, rc);
}
