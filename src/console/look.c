#include "console/look.h"

#include "console/console_inside.h"

#include <stdio.h>

tide_status tide_console_look_sites(tide_ledger *ledger,
                                    void (*visit)(const struct tide_console_site *site, void *arg),
                                    void *arg, tide_error *err)
{
    const tide_rows db = tide_ledger_rows(ledger);
    bool has = false;
    const tide_status rc = tide_rows_has(db, "console_site", "Search Console's rows", &has, err);
    return rc == TIDE_OK && has ? tide_console_sites_read(db, visit, arg, err) : rc;
}

tide_status tide_console_look_endpoint(tide_ledger *ledger, const char *name, char *endpoint_out,
                                       size_t endpoint_bytes, tide_error *err)
{
    static const char what[] = "Search Console's rows";
    const tide_rows db = tide_ledger_rows(ledger);
    tide_rows_stmt stmt;
    bool has = false;
    tide_status rc = tide_rows_has(db, "console_account", what, &has, err);
    if (rc == TIDE_OK && has)
        rc = tide_rows_prepare(db, "SELECT endpoint FROM console_account WHERE name = ?1", what,
                               &stmt, err);
    if (rc == TIDE_OK && has) {
        tide_rows_text(&stmt, 1, tide_text_of(name));
        rc = tide_rows_step(&stmt, &has, err);
        if (rc == TIDE_OK && has)
            tide_rows_get_copy(&stmt, 0, endpoint_out, endpoint_bytes);
        tide_rows_end(&stmt);
    }
    return rc == TIDE_OK && !has
               ? tide_error_set(err, TIDE_NOT_FOUND, "there is no sign-in \"%.100s\"", name)
               : rc;
}

tide_status tide_console_look_refused(tide_ledger *ledger, tide_console_refused_visit *visit,
                                      void *arg, tide_error *err)
{
    const tide_rows db = tide_ledger_rows(ledger);
    bool has = false; /* false: the ledger is of an older version, or the system was never used */
    const tide_status rc = tide_rows_has(db, "console_refused", "Search Console's rows", &has, err);
    return rc == TIDE_OK && has ? tide_console_refused_read(db, visit, arg, err) : rc;
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
