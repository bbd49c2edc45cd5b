#include "cli/serve/metrics_accounts.h"

#include "base/calendar.h"

#include <stdio.h>
#include <string.h>

enum { SYSTEMS_MAX = 16 };

static double number(const json_t *object, const char *field)
{
    return json_number_value(json_object_get(object, field));
}

static const char *word(const json_t *object, const char *field)
{
    const char *text = json_string_value(json_object_get(object, field));
    return text == NULL ? "" : text;
}

/* Nothing is known of it: a 0 would be read as a figure. */
static bool is_broken(const json_t *account)
{
    return strcmp(word(account, "now"), "broken") == 0;
}

/* ---- by system ---- */

struct system_jobs {
    const char *name;
    double waiting, failed;
};

static size_t by_system(const json_t *accounts, struct system_jobs systems[SYSTEMS_MAX])
{
    size_t count = 0;
    for (size_t i = 0; i < json_array_size(accounts); i++) {
        const json_t *account = json_array_get(accounts, i);
        size_t at = 0;
        while (at < count && strcmp(systems[at].name, word(account, "system")) != 0)
            at++;
        if (at == SYSTEMS_MAX)
            continue;
        if (at == count)
            systems[count++] = (struct system_jobs){.name = word(account, "system")};
        systems[at].waiting += number(account, "jobs_waiting");
        systems[at].failed += number(account, "jobs_failed");
    }
    return count;
}

static void jobs(const json_t *accounts, tide_metrics *metrics)
{
    struct system_jobs systems[SYSTEMS_MAX];
    const size_t count = by_system(accounts, systems);
    tide_metric(metrics, "queue_depth", "gauge", "Jobs in the ledger that wait to run.");
    for (size_t i = 0; i < count; i++)
        tide_metric_line(metrics, systems[i].waiting, TIDE_LABELS({"system", systems[i].name}));
    tide_metric(metrics, "failed_jobs", "gauge",
                "Failed jobs in the ledger, for a user to decide.");
    for (size_t i = 0; i < count; i++)
        tide_metric_line(metrics, systems[i].failed, TIDE_LABELS({"system", systems[i].name}));
}

/* ---- by account ---- */

/* 0: the account has no tidemark yet.  That of Search Console is a day. */
static double mark_s(const json_t *account)
{
    struct tide_date date = {.year = 0};
    const double unix_ms = number(account, "tidemark_unix_ms");
    if (unix_ms > 0)
        return unix_ms / 1000;
    if (sscanf(word(account, "tidemark"), "%4d-%2u-%2u", &date.year, &date.month, &date.day) != 3 ||
        !tide_date_is_real(date))
        return 0;
    return (double)tide_days_of(date) * 86400;
}

static void marks(const json_t *accounts, tide_metrics *metrics)
{
    tide_metric(metrics, "stream_mark_timestamp_seconds", "gauge",
                "The tidemark: everything before it is stored; 0: none yet.");
    for (size_t i = 0; i < json_array_size(accounts) && i < TIDE_METRICS_ACCOUNTS_MAX; i++) {
        const json_t *account = json_array_get(accounts, i);
        if (is_broken(account))
            continue;
        tide_metric_line(metrics, mark_s(account),
                         TIDE_LABELS({"account", word(account, "account")},
                                     {"stream", word(account, "system")}));
    }
    tide_metric(metrics, "stream_gaps", "gauge",
                "Parts beyond the tidemark that are not complete.");
    for (size_t i = 0; i < json_array_size(accounts) && i < TIDE_METRICS_ACCOUNTS_MAX; i++) {
        const json_t *account = json_array_get(accounts, i);
        if (is_broken(account))
            continue;
        tide_metric_line(metrics, number(account, "gaps"),
                         TIDE_LABELS({"account", word(account, "account")},
                                     {"stream", word(account, "system")}));
    }
}

static void gauge(const json_t *accounts, const char *metric, const char *help, const char *field,
                  tide_metrics *metrics)
{
    tide_metric(metrics, metric, "gauge", help);
    for (size_t i = 0; i < json_array_size(accounts) && i < TIDE_METRICS_ACCOUNTS_MAX; i++) {
        const json_t *account = json_array_get(accounts, i);
        if (is_broken(account))
            continue;
        tide_metric_line(metrics, number(account, field),
                         TIDE_LABELS({"account", word(account, "account")}));
    }
}

static void broken(const json_t *accounts, tide_metrics *metrics)
{
    double count = 0;
    for (size_t i = 0; i < json_array_size(accounts); i++)
        count += is_broken(json_array_get(accounts, i)) ? 1 : 0;
    tide_metric_single(metrics, "accounts_broken", "gauge",
                       "Accounts whose state cannot be read; `tidemark status` says why.", count);
}

/* ---- what is stored ---- */

/* The place of an account, which it keeps; TIDE_METRICS_ACCOUNTS_MAX: it is one of the others. */
static size_t place_of(struct cli_stored *stored, const char *account)
{
    for (size_t i = 0; i < stored->count; i++)
        if (strcmp(stored->list[i].account, account) == 0)
            return i;
    if (stored->count == TIDE_METRICS_ACCOUNTS_MAX)
        return stored->count;
    (void)snprintf(stored->list[stored->count].account, sizeof stored->list[0].account, "%s",
                   account);
    return stored->count++;
}

static void raise_to(uint64_t *most, double now)
{
    if (now > (double)*most)
        *most = (uint64_t)now;
}

static void items_stored(const json_t *accounts, struct cli_stored *stored, tide_metrics *metrics)
{
    double others = 0;
    for (size_t i = 0; i < json_array_size(accounts); i++) {
        const json_t *account = json_array_get(accounts, i);
        const size_t at = place_of(stored, word(account, "account"));
        if (at < TIDE_METRICS_ACCOUNTS_MAX)
            raise_to(&stored->list[at].items, number(account, "stored"));
        else
            others += number(account, "stored");
    }
    raise_to(&stored->others, others);
    tide_metric(metrics, "items_stored_total", "counter",
                "Items in the archive, in the unit of the system: messages, rows.");
    for (size_t i = 0; i < stored->count; i++)
        tide_metric_line(metrics, (double)stored->list[i].items,
                         TIDE_LABELS({"account", stored->list[i].account}));
    if (stored->others > 0)
        tide_metric_line(metrics, (double)stored->others,
                         TIDE_LABELS({"account", TIDE_METRICS_OTHER}));
}

void cli_metrics_accounts(const json_t *status, struct cli_stored *stored, tide_metrics *metrics)
{
    const json_t *accounts = json_object_get(status, "accounts");
    tide_metric_single(metrics, "ledger_up", "gauge", "1 if the ledger could be read just now.",
                       status == NULL ? 0 : 1);
    broken(accounts, metrics);
    jobs(accounts, metrics);
    marks(accounts, metrics);
    items_stored(accounts, stored, metrics);
    gauge(accounts, "items_left", "Items that are known to be left to fetch.", "left", metrics);
    gauge(accounts, "bad_items", "Items that cannot be had, or not yet.", "bad", metrics);
}
