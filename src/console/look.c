#include "console/look.h"

#include "console/console_inside.h"

#include <stdio.h>
#include <string.h>

#define WHAT "Search Console's rows"

tide_status tide_console_look_sites(tide_ledger *ledger,
                                    void (*visit)(const struct tide_console_site *site, void *arg),
                                    void *arg, tide_error *err)
{
    const tide_rows db = tide_ledger_rows(ledger);
    bool has = false;
    const tide_status rc = tide_rows_has(db, "console_site", WHAT, &has, err);
    return rc == TIDE_OK && has ? tide_console_sites_read(db, visit, arg, err) : rc;
}

tide_status tide_console_look_refused(tide_ledger *ledger, tide_console_refused_visit *visit,
                                      void *arg, tide_error *err)
{
    const tide_rows db = tide_ledger_rows(ledger);
    bool has = false; /* false: the ledger is of an older version, or the system was never used */
    const tide_status rc = tide_rows_has(db, "console_refused", WHAT, &has, err);
    return rc == TIDE_OK && has ? tide_console_refused_read(db, visit, arg, err) : rc;
}

tide_status tide_console_look_listed(tide_ledger *ledger, uint32_t account,
                                     void (*visit)(const char *site, const char *level, void *arg),
                                     void *arg, tide_error *err)
{
    tide_auto_rows stmt;
    tide_status rc = tide_rows_ask(
        tide_ledger_rows(ledger), WHAT, &stmt, err,
        "SELECT site, level FROM console_listed WHERE account = ?1 ORDER BY place", account);
    while (tide_rows_next(&stmt, &rc, err)) {
        char site[TIDE_SC_SITE_BYTES_MAX + 1];
        char level[64];
        tide_rows_get_copy(&stmt, 0, site, sizeof site);
        tide_rows_get_copy(&stmt, 1, level, sizeof level);
        visit(site, level, arg);
    }
    return rc;
}

/* Payloads of plans and pages begin with the number of their site. */
static uint64_t site_of(tide_text payload)
{
    static const char start[] = "{\"site\":";
    const size_t skip = sizeof start - 1;
    uint64_t site = 0;
    if (payload.bytes <= skip || memcmp(payload.data, start, skip) != 0)
        return 0;
    for (size_t i = skip; i < payload.bytes && payload.data[i] >= '0' && payload.data[i] <= '9';
         i++)
        site = site * 10 + (uint64_t)(payload.data[i] - '0');
    return site;
}

tide_status tide_console_look_left(tide_ledger *ledger, uint32_t account,
                                   bool (*is_wanted)(uint64_t site, void *arg), void *arg,
                                   struct tide_console_left *left_out, tide_error *err)
{
    struct tide_console_left left = {0};
    tide_auto_rows stmt;
    tide_status rc =
        tide_rows_ask(tide_ledger_rows(ledger), WHAT, &stmt, err,
                      "SELECT job.payload, job.state FROM job JOIN kind ON kind.id = job.kind"
                      " WHERE job.account = ?1 AND job.state IN (0, 1, 3)"
                      " AND kind.name IN ('console.plan', 'console.page')",
                      account);
    while (tide_rows_next(&stmt, &rc, err)) {
        if (!is_wanted(site_of(tide_rows_get_text(&stmt, 0)), arg))
            continue;
        if (tide_rows_get_u64(&stmt, 1) == TIDE_ROW_FAILED)
            left.failed++;
        else
            left.waiting++;
    }
    if (rc == TIDE_OK)
        *left_out = left;
    return rc;
}

struct stream_ask {
    uint32_t account;
    char name[TIDE_CONSOLE_STREAM_BYTES];
    struct tide_console_mark *mark;
};

static bool take_stream(const struct tide_stream_row *row, void *arg)
{
    struct stream_ask *ask = arg;
    if (row->account != ask->account || !tide_text_equal(row->name, tide_text_of(ask->name)))
        return true;
    if (row->ordinal > 0)
        (void)snprintf(ask->mark->tidemark, sizeof ask->mark->tidemark, "%.*s",
                       (int)row->cursor.bytes, row->cursor.data);
    ask->mark->days_left = row->ordinal_next - row->ordinal;
    return false;
}

tide_status tide_console_look_mark(tide_ledger *ledger, const struct tide_console_site *site,
                                   const struct tide_console_set *set,
                                   struct tide_console_mark *mark_out, tide_error *err)
{
    struct tide_console_series_row row = {.site = site->id, .set = *set};
    struct tide_console_mark mark = {.floor = ""};
    struct stream_ask ask = {.account = site->account, .mark = &mark};
    tide_status rc = tide_console_series_get(tide_ledger_rows(ledger), &row, err);
    if (rc == TIDE_OK) {
        (void)snprintf(mark.floor, sizeof mark.floor, "%s", row.floor);
        tide_console_stream_name(site, set, row.epoch, ask.name);
        rc = tide_ledger_streams(ledger, take_stream, &ask, err);
    }
    if (rc == TIDE_OK || rc == TIDE_NOT_FOUND)
        *mark_out = mark;
    return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
}
