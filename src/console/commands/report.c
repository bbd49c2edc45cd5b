/* report.c - `tidemark console report`: totals of days, the top of a dimension, comparison of two
 * ranges (B10). */
#include "console/commands/home.h"

#include "console/dates.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { DAYS_DEFAULT = 28, TOP_DEFAULT = 10, DAYS_MAX = 100000 };

struct day {
    char date[16];
    double clicks, impressions, position;
    double row_clicks;
    bool final, totals;
};

struct range {
    tide_mem *mem;
    char from[16], to[16];
    size_t wanted; /* days from `from` to `to` */
    struct day *days;
    size_t count, capacity; /* those that are stored */
    bool no_memory;
    double clicks, impressions, weight, hidden;
};

struct report {
    struct cli *cli;
    tide_console_store *store;
    struct tide_console_set set;
    bool found;
    uint64_t rows;
    tide_sc_type type;
    tide_sc_dimension by;
    uint64_t limit;
    struct range now, before;
    bool compare;
    tide_json top;
};

/* ---- dates ---- */

static bool shifted(const char *date, int32_t days, char out[16])
{
    int32_t day = 0;
    if (!tide_date_parse(date, &day))
        return false;
    tide_date_format(day + days, out);
    return true;
}

static int32_t days_between(const char *from, const char *to)
{
    int32_t first = 0;
    int32_t last = 0;
    return tide_date_parse(from, &first) && tide_date_parse(to, &last) ? last - first : 0;
}

/* ---- reading ---- */

/* The largest series of that type that has the dimension. */
static void choose(const struct tide_console_set *set, uint64_t days, uint64_t rows, void *arg)
{
    struct report *report = arg;
    (void)days;
    if (set->type != report->type || (set->dimensions >> report->by & 1u) == 0 ||
        (report->found && rows <= report->rows))
        return;
    report->found = true;
    report->rows = rows;
    report->set = *set;
}

struct last {
    bool final; /* only such days: a day's numbers grow until it is */
    char date[16];
};

static bool last_day(const struct tide_console_day_row *day, void *arg)
{
    struct last *last = arg;
    if (day->final || !last->final)
        (void)snprintf(last->date, sizeof last->date, "%s", day->date);
    return true;
}

/* The last day that is stored, or that can be compared. */
static tide_status choose_to(struct report *report)
{
    struct last last = {.final = report->compare};
    const tide_status rc = tide_console_store_days(report->store, &report->set, NULL, NULL,
                                                   last_day, &last, &report->cli->err);
    if (rc == TIDE_OK && last.date[0] == '\0')
        return cli_fail(report->cli, TIDE_NOT_FOUND,
                        "`tidemark console status` shows which days are stored.",
                        "no final day is stored");
    (void)snprintf(report->now.to, sizeof report->now.to, "%s", last.date);
    return rc;
}

static bool take_day(const struct tide_console_day_row *row, void *arg)
{
    struct range *range = arg;
    range->no_memory =
        !TIDE_GROW_IN(range->mem, range->days, range->capacity, range->count + 1, DAYS_MAX);
    if (range->no_memory)
        return false;
    struct day *day = &range->days[range->count++];
    day->totals = !isnan(row->clicks);
    (void)snprintf(day->date, sizeof day->date, "%s", row->date);
    day->clicks = day->totals ? row->clicks : row->row_clicks;
    day->impressions = day->totals ? row->impressions : row->row_impressions;
    day->position = row->position;
    day->row_clicks = row->row_clicks;
    day->final = row->final;
    range->clicks += day->clicks;
    range->impressions += day->impressions;
    if (!isnan(row->position))
        range->weight += row->position * row->impressions;
    range->hidden += day->clicks - day->row_clicks;
    return true;
}

static tide_status read_range(struct report *report, struct range *range)
{
    range->mem = report->cli->mem;
    range->wanted = (size_t)days_between(range->from, range->to) + 1;
    TIDE_TRY(tide_console_store_days(report->store, &report->set, range->from, range->to, take_day,
                                     range, &report->cli->err));
    if (range->no_memory)
        return cli_fail(report->cli, TIDE_NO_MEMORY, "Ask for fewer days.",
                        "out of memory for %zu days", range->wanted);
    return TIDE_OK;
}

static void range_done(struct range *range)
{
    if (range->mem != NULL)
        tide_mem_free(range->mem, range->days, range->capacity * sizeof *range->days);
}

/* Sums over different numbers of days cannot be compared. */
static bool is_comparable(const struct report *report)
{
    return report->now.count == report->now.wanted && report->before.count == report->before.wanted;
}

/* ---- showing ---- */

static const char *const bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

static void sparkline(struct cli *cli, const struct range *range)
{
    double top = 0;
    for (size_t i = 0; i < range->count; i++)
        top = range->days[i].clicks > top ? range->days[i].clicks : top;
    /* At most 60 columns: more days are grouped. */
    const size_t step = (range->count + 59) / 60;
    for (size_t i = 0; top > 0 && i < range->count; i += step) {
        double best = 0;
        for (size_t j = i; j < i + step && j < range->count; j++)
            best = range->days[j].clicks > best ? range->days[j].clicks : best;
        cli_print(cli, "%s", bars[(int)(best / top * 7.999)]);
    }
    cli_print(cli, "\n");
}

static void change(double now, double before, char out[32])
{
    if (before > 0)
        (void)snprintf(out, 32, "%+.1f %%", 100 * (now - before) / before);
    else
        (void)snprintf(out, 32, "%s", now > 0 ? "new" : "-");
}

static void not_compared(struct report *report, const struct range *range)
{
    if (range->count < range->wanted)
        cli_print(report->cli,
                  "not compared: %s .. %s has only %zu of %zu days stored; fetch them with "
                  "`tidemark console backfill %s --type %s --from %s --to %s`\n",
                  range->from, range->to, range->count, range->wanted, report->cli->arguments[0],
                  tide_sc_type_name(report->type), range->from, range->to);
}

static void compared(struct report *report)
{
    const struct range *now = &report->now;
    const struct range *before = &report->before;
    char clicks[32];
    char impressions[32];
    if (!is_comparable(report)) {
        not_compared(report, before);
        not_compared(report, now);
        return;
    }
    change(now->clicks, before->clicks, clicks);
    change(now->impressions, before->impressions, impressions);
    cli_print(report->cli, "compared with %s .. %s: clicks %s  impressions %s\n", before->from,
              before->to, clicks, impressions);
}

static void totals(struct report *report)
{
    const struct range *now = &report->now;
    struct cli *cli = report->cli;
    cli_print(cli, "%s .. %s, %zu days, %s", now->from, now->to, now->wanted,
              tide_sc_type_name(report->type));
    if (now->count < now->wanted)
        cli_print(cli, " (%zu of them stored)", now->count);
    cli_print(cli, "\n");
    cli_print(cli, "clicks %.0f  impressions %.0f  ctr %.2f %%", now->clicks, now->impressions,
              now->impressions > 0 ? 100 * now->clicks / now->impressions : 0);
    if (now->weight > 0 && now->impressions > 0)
        cli_print(cli, "  position %.1f", now->weight / now->impressions);
    if (now->clicks > 0 && (report->set.dimensions >> TIDE_SC_QUERY & 1u) != 0)
        cli_print(cli, "  hidden %.1f %% of clicks (rare queries)",
                  100 * now->hidden / now->clicks);
    cli_print(cli, "\n");
    if (report->compare)
        compared(report);
    sparkline(cli, now);
    cli_print(cli, "\n");
}

static void json_range(struct cli *cli, const char *name, const struct range *range)
{
    tide_json object;
    tide_json days;
    char number[64];
    tide_json_object(&object);
    tide_json_array(&days);
    tide_json_set_cstr(&object, "from", range->from);
    tide_json_set_cstr(&object, "to", range->to);
    (void)snprintf(number, sizeof number, "%.17g", range->clicks);
    tide_json_set_raw(&object, "clicks", tide_text_of(number));
    (void)snprintf(number, sizeof number, "%.17g", range->impressions);
    tide_json_set_raw(&object, "impressions", tide_text_of(number));
    (void)snprintf(number, sizeof number, "%.17g", range->hidden);
    tide_json_set_raw(&object, "hidden_clicks", tide_text_of(number));
    tide_json_set_u64(&object, "days_missing", range->wanted - range->count);
    for (size_t i = 0; i < range->count; i++) {
        const struct day *day = &range->days[i];
        tide_json one;
        tide_json_object(&one);
        tide_json_set_cstr(&one, "date", day->date);
        (void)snprintf(number, sizeof number, "%.17g", day->clicks);
        tide_json_set_raw(&one, "clicks", tide_text_of(number));
        (void)snprintf(number, sizeof number, "%.17g", day->impressions);
        tide_json_set_raw(&one, "impressions", tide_text_of(number));
        if (!isnan(day->position)) {
            (void)snprintf(number, sizeof number, "%.17g", day->position);
            tide_json_set_raw(&one, "position", tide_text_of(number));
        }
        tide_json_set_bool(&one, "final", day->final);
        tide_json_append(&days, &one);
    }
    tide_json_set(&object, "days", &days);
    tide_json_set(&cli->json, name, &object);
}

/* As a fraction; null where there is nothing to divide by. */
static void json_change(tide_json *object, const char *name, double now, double before)
{
    char number[64];
    (void)snprintf(number, sizeof number, "%.17g", before > 0 ? (now - before) / before : 0);
    tide_json_set_raw(object, name, before > 0 ? tide_text_of(number) : TIDE_TEXT("null"));
}

static void json_compared(struct report *report)
{
    tide_json object;
    json_range(report->cli, "compared", &report->before);
    if (!is_comparable(report)) {
        tide_json_set_null(&report->cli->json, "change");
        return;
    }
    tide_json_object(&object);
    json_change(&object, "clicks", report->now.clicks, report->before.clicks);
    json_change(&object, "impressions", report->now.impressions, report->before.impressions);
    tide_json_set(&report->cli->json, "change", &object);
}

static bool show_top(const struct tide_console_top *top, void *arg)
{
    struct report *report = arg;
    char number[64];
    tide_json one;
    cli_cell_text(report->cli, top->key);
    cli_cell(report->cli, "%.0f", top->clicks);
    cli_cell(report->cli, "%.0f", top->impressions);
    cli_cell(report->cli, "%.2f %%", 100 * top->ctr);
    if (isnan(top->position))
        cli_cell(report->cli, "-");
    else
        cli_cell(report->cli, "%.1f", top->position);
    tide_json_object(&one);
    tide_json_set_text(&one, "key", top->key);
    (void)snprintf(number, sizeof number, "%.17g", top->clicks);
    tide_json_set_raw(&one, "clicks", tide_text_of(number));
    (void)snprintf(number, sizeof number, "%.17g", top->impressions);
    tide_json_set_raw(&one, "impressions", tide_text_of(number));
    (void)snprintf(number, sizeof number, "%.17g", top->ctr);
    tide_json_set_raw(&one, "ctr", tide_text_of(number));
    if (!isnan(top->position)) {
        (void)snprintf(number, sizeof number, "%.17g", top->position);
        tide_json_set_raw(&one, "position", tide_text_of(number));
    }
    tide_json_append(&report->top, &one);
    return true;
}

/* ---- CSV (RFC 4180) ---- */

static void csv_text(struct cli *cli, tide_text text)
{
    cli_print(cli, "\"");
    for (size_t i = 0; i < text.bytes; i++)
        cli_print(cli, text.data[i] == '"' ? "\"\"" : "%c", text.data[i]);
    cli_print(cli, "\"");
}

static bool csv_top(const struct tide_console_top *top, void *arg)
{
    struct report *report = arg;
    csv_text(report->cli, top->key);
    cli_print(report->cli, ",%.17g,%.17g,%.17g,", top->clicks, top->impressions, top->ctr);
    if (!isnan(top->position))
        cli_print(report->cli, "%.17g", top->position);
    cli_print(report->cli, "\r\n");
    return true;
}

static tide_status csv(struct report *report, const char *what)
{
    struct cli *cli = report->cli;
    cli->exact_output = true;
    if (strcmp(what, "top") == 0) {
        cli_print(cli, "%s,clicks,impressions,ctr,position\r\n",
                  tide_sc_dimension_name(report->by));
        return tide_console_store_top(report->store, &report->set, report->by, report->now.from,
                                      report->now.to, (uint32_t)report->limit, csv_top, report,
                                      &cli->err);
    }
    if (strcmp(what, "days") != 0)
        return cli_wrong(cli, "Values: days, top.", "there is no CSV of \"%.40s\"", what);
    cli_print(cli, "date,clicks,impressions,ctr,position,final\r\n");
    for (size_t i = 0; i < report->now.count; i++) {
        const struct day *day = &report->now.days[i];
        cli_print(cli, "%s,%.17g,%.17g,%.17g,", day->date, day->clicks, day->impressions,
                  day->impressions > 0 ? day->clicks / day->impressions : 0);
        if (!isnan(day->position))
            cli_print(cli, "%.17g", day->position);
        cli_print(cli, ",%d\r\n", day->final ? 1 : 0);
    }
    return TIDE_OK;
}

/* ---- the command ---- */

static tide_status take_date(struct cli *cli, const char *flag, char out[16])
{
    const char *value = cli_flag(cli, flag);
    int32_t day = 0;
    if (value == NULL)
        return TIDE_OK;
    if (!tide_date_parse(value, &day))
        return cli_wrong(cli, "Write a day such as 2026-01-31.", "--%s %.40s is not a date", flag,
                         value);
    (void)snprintf(out, 16, "%s", value);
    return TIDE_OK;
}

static tide_status ranges(struct report *report)
{
    struct cli *cli = report->cli;
    tide_status rc = take_date(cli, "from", report->now.from);
    if (rc == TIDE_OK)
        rc = take_date(cli, "to", report->now.to);
    if (rc == TIDE_OK)
        rc = take_date(cli, "compare-from", report->before.from);
    report->compare = cli_flag(cli, "compare") != NULL || report->before.from[0] != '\0';
    if (rc == TIDE_OK && report->now.to[0] == '\0')
        rc = choose_to(report);
    if (rc != TIDE_OK)
        return rc;
    if (report->now.from[0] == '\0')
        (void)shifted(report->now.to, 1 - DAYS_DEFAULT, report->now.from);
    if (strcmp(report->now.from, report->now.to) > 0)
        return cli_wrong(cli, "Swap the two dates.", "%s is after %s", report->now.from,
                         report->now.to);
    const int32_t days = days_between(report->now.from, report->now.to);
    if (report->before.from[0] == '\0')
        (void)shifted(report->now.from, -days - 1, report->before.from);
    (void)shifted(report->before.from, days, report->before.to);
    return TIDE_OK;
}

static tide_status options(struct report *report)
{
    struct cli *cli = report->cli;
    uint32_t bits = 1u << TIDE_SC_WEB;
    tide_status rc = TIDE_OK;
    if (cli_flag(cli, "type") != NULL)
        rc = tide_sc_types_parse(tide_text_of(cli_flag(cli, "type")), &bits, &cli->err);
    for (report->type = TIDE_SC_WEB; rc == TIDE_OK && (bits >> report->type & 1u) == 0;)
        report->type++;
    const char *by = cli_flag(cli, "by");
    bits = 1u << (report->type >= TIDE_SC_DISCOVER ? TIDE_SC_PAGE : TIDE_SC_QUERY);
    if (rc == TIDE_OK && by != NULL)
        rc = tide_sc_dimensions_parse(tide_text_of(by), &bits, &cli->err);
    rc = cli_hint(cli, rc, "`tidemark console report --help` lists the values.");
    if (rc == TIDE_OK && (bits < 2 || (bits & (bits - 1)) != 0))
        return cli_wrong(cli, "Give one of query, page, country, device.",
                         "--by takes one dimension");
    for (report->by = TIDE_SC_DATE; rc == TIDE_OK && (bits >> report->by & 1u) == 0;)
        report->by++;
    report->limit = TOP_DEFAULT;
    if (rc == TIDE_OK && cli_flag(cli, "limit") != NULL)
        rc = cli_number(cli, cli_flag(cli, "limit"), "--limit", &report->limit);
    return rc;
}

static tide_status show_all(struct report *report)
{
    const char *headings[] = {"QUERY", "CLICKS", "IMPRESSIONS", "CTR", "POSITION"};
    headings[0] = tide_sc_dimension_name(report->by);
    totals(report);
    json_range(report->cli, "range", &report->now);
    if (report->compare)
        json_compared(report);
    cli_table_begin(report->cli, headings, 5);
    tide_json_array(&report->top);
    const tide_status rc = tide_console_store_top(
        report->store, &report->set, report->by, report->now.from, report->now.to,
        (uint32_t)report->limit, show_top, report, &report->cli->err);
    cli_table_end(report->cli, "no rows in these days");
    tide_json_set(&report->cli->json, "top", &report->top);
    return rc;
}

tide_status cli_console_report(struct cli *cli)
{
    struct report *report = tide_mem_new(cli->mem, sizeof *report);
    if (report == NULL)
        return cli_fail(cli, TIDE_NO_MEMORY, "Free some memory.", "out of memory");
    report->cli = cli;
    tide_status rc = options(report);
    if (rc == TIDE_OK)
        rc = console_home_store(cli, cli->arguments[0], &report->store);
    if (rc == TIDE_OK)
        rc = tide_console_store_sets(report->store, choose, report, &cli->err);
    if (rc == TIDE_OK && !report->found)
        rc = cli_fail(cli, TIDE_NOT_FOUND, "`tidemark console status` shows what is stored.",
                      "%s has no %s rows by %s", cli->arguments[0], tide_sc_type_name(report->type),
                      tide_sc_dimension_name(report->by));
    if (rc == TIDE_OK)
        rc = ranges(report);
    if (rc == TIDE_OK)
        rc = read_range(report, &report->now);
    if (rc == TIDE_OK && report->compare)
        rc = read_range(report, &report->before);
    if (rc == TIDE_OK)
        rc = cli_flag(cli, "csv") != NULL ? csv(report, cli_flag(cli, "csv")) : show_all(report);
    (void)tide_console_store_close(report->store, NULL);
    range_done(&report->now);
    range_done(&report->before);
    tide_mem_free(cli->mem, report, sizeof *report);
    return rc;
}
