#include "engine/control/metrics.h"

#include "engine/engine.h"
#include "ledger/notices.h"

#include <string.h>

static double number(const json_t *object, const char *field)
{
    return json_number_value(json_object_get(object, field));
}

static const char *word(const json_t *object, const char *field)
{
    return json_string_value(json_object_get(object, field));
}

/* ---- jobs ---- */

static void lanes(tide_metrics *metrics, const json_t *snapshot)
{
    static const char *const names[] = {"interactive", "bulk"};
    static const char *const states[] = {"running", "waiting"};
    tide_metric(metrics, "lane_jobs", "gauge", "Jobs in memory, by lane and state.");
    for (size_t i = 0; i < 4; i++) {
        const json_t *lane = json_object_get(json_object_get(snapshot, "lanes"), names[i / 2]);
        tide_metric_line(metrics, number(lane, states[i % 2]),
                         TIDE_LABELS({"lane", names[i / 2]}, {"state", states[i % 2]}));
    }
}

static void by_system(tide_metrics *metrics, const json_t *work, const char *label,
                      const char *const *fields)
{
    for (size_t i = 0; i < json_array_size(work); i++) {
        const json_t *system = json_array_get(work, i);
        for (const char *const *field = fields; *field != NULL; field++)
            tide_metric_line(metrics, number(system, *field),
                             TIDE_LABELS({"system", word(system, "system")}, {label, *field}));
    }
}

static void jobs(tide_metrics *metrics, const json_t *snapshot)
{
    static const char *const states[] = {"running", "parked",  "waiting",
                                         "delayed", "blocked", NULL};
    static const char *const outcomes[] = {"done", "failed", "canceled", NULL};
    const json_t *work = json_object_get(snapshot, "work");
    tide_metric(metrics, "jobs", "gauge", "Jobs in memory, by system and state.");
    by_system(metrics, work, "state", states);
    tide_metric(metrics, "jobs_finished_total", "counter", "Jobs that ended.");
    by_system(metrics, work, "outcome", outcomes);
    tide_metric(metrics, "job_duration_seconds", "histogram",
                "Time that a job ran; a job that is tried again counts each time.");
    for (size_t i = 0; i < json_array_size(work); i++) {
        const json_t *system = json_array_get(work, i);
        const tide_histogram duration = tide_histogram_of(json_object_get(system, "duration"));
        tide_metric_histogram(metrics, &duration, tide_histogram_work_us,
                              TIDE_LABELS({"system", word(system, "system")}));
    }
    tide_metric_single(metrics, "jobs_window", "gauge", "Unfinished jobs that are loaded.",
                       number(snapshot, "window"));
    tide_metric_single(metrics, "transactions_total", "counter", "Transactions on the ledger.",
                       number(snapshot, "transactions"));
}

/* ---- alerts ---- */

static bool same_alert(const json_t *a, const json_t *b)
{
    return json_equal(json_object_get(a, "condition"), json_object_get(b, "condition")) &&
           json_equal(json_object_get(a, "level"), json_object_get(b, "level"));
}

static void alerts_lines(tide_metrics *metrics, const json_t *alerts)
{
    tide_metric(metrics, "alerts", "gauge", "Active alerts, by condition and severity.");
    for (size_t i = 0; i < json_array_size(alerts); i++) {
        const json_t *alert = json_array_get(alerts, i);
        double count = 0;
        bool first = true;
        for (size_t k = 0; k < json_array_size(alerts); k++) {
            const bool same = same_alert(alert, json_array_get(alerts, k));
            first = first && (!same || k >= i);
            count += same;
        }
        if (first)
            tide_metric_line(metrics, count,
                             TIDE_LABELS({"condition", word(alert, "condition")},
                                         {"severity", word(alert, "level")}));
    }
}

/* ---- one line for each account ---- */

struct per_account {
    const char *metric, *type, *help;
    const char *field;
    double scale;
};

static const struct per_account per_account[] = {
    {"retries_total", "counter", "Jobs that were tried again.", "retried", 1},
    {"splits_total", "counter", "Jobs that were split to isolate a bad item.", "split", 1},
    {"governor_workers", "gauge", "Jobs of the account that may run at once.", "workers", 1},
    {"governor_rate_units", "gauge", "Units per second that the account may spend.",
     "rate_units_per_s", 1},
    {"calls_in_flight", "gauge", "Calls that were sent and not answered.", "in_flight", 1},
    {"last_success_timestamp_seconds", "gauge", "When a call last succeeded; 0: never.",
     "last_ok_unix_ms", 0.001},
};

static void account_lines(tide_metrics *metrics, const json_t *accounts,
                          const struct per_account *what)
{
    const size_t count = json_array_size(accounts);
    double others = 0;
    tide_metric(metrics, what->metric, what->type, what->help);
    for (size_t i = 0; i < count; i++) {
        const json_t *account = json_array_get(accounts, i);
        const double value = number(account, what->field) * what->scale;
        if (i < TIDE_METRICS_ACCOUNTS_MAX)
            tide_metric_line(metrics, value, TIDE_LABELS({"account", word(account, "account")}));
        else
            others += value;
    }
    /* A sum of gauges means nothing. */
    if (strcmp(what->type, "counter") == 0 && count > TIDE_METRICS_ACCOUNTS_MAX)
        tide_metric_line(metrics, others, TIDE_LABELS({"account", TIDE_METRICS_OTHER}));
}

static void account_states(tide_metrics *metrics, const json_t *accounts)
{
    tide_metric(metrics, "account_state", "gauge", "1 for the state that the account is in.");
    for (size_t i = 0; i < json_array_size(accounts) && i < TIDE_METRICS_ACCOUNTS_MAX; i++) {
        const json_t *account = json_array_get(accounts, i);
        const bool paused = json_is_true(json_object_get(account, "paused"));
        tide_metric_line(
            metrics, 1,
            TIDE_LABELS({"account", word(account, "account")},
                        {"state", paused ? "paused_by_command" : word(account, "state")}));
    }
}

/* ---- one line for each name in an object of the account ---- */

static void add_to(json_t *sums, const char *name, double value)
{
    (void)json_object_set_new(sums, name, json_real(number(sums, name) + value));
}

/* Counters of the accounts beyond the bound. */
static void others_lines(tide_metrics *metrics, const json_t *sums, const char *label)
{
    const char *name = NULL;
    json_t *sum = NULL;
    json_object_foreach((json_t *)sums, name, sum)
    {
        tide_metric_line(metrics, json_number_value(sum),
                         TIDE_LABELS({"account", TIDE_METRICS_OTHER}, {label, name}));
    }
}

static void blocked(tide_metrics *metrics, const json_t *accounts)
{
    json_auto_t *others = json_object();
    tide_metric(metrics, "blocked_seconds_total", "counter",
                "Time in which the account could make no call, by reason.");
    for (size_t i = 0; i < json_array_size(accounts); i++) {
        const json_t *account = json_array_get(accounts, i);
        const char *reason = NULL;
        json_t *ms = NULL;
        json_object_foreach(json_object_get(account, "blocked_ms"), reason, ms)
        {
            const double seconds = json_number_value(ms) / 1000;
            if (i < TIDE_METRICS_ACCOUNTS_MAX)
                tide_metric_line(
                    metrics, seconds,
                    TIDE_LABELS({"account", word(account, "account")}, {"reason", reason}));
            else
                add_to(others, reason, seconds);
        }
    }
    others_lines(metrics, others, "reason");
}

/* Which codes a server uses is its choice: lines beyond the bound are added up by code, which are a
 * fixed list (MTR2). */
static void errors(tide_metrics *metrics, const json_t *accounts)
{
    json_auto_t *others = json_object();
    uint32_t lines = 0;
    tide_metric(metrics, "call_errors_total", "counter",
                "Calls that failed, by the HTTP code of the answer; none: no answer came.");
    for (size_t i = 0; i < json_array_size(accounts); i++) {
        const json_t *account = json_array_get(accounts, i);
        const char *code = NULL;
        json_t *count = NULL;
        json_object_foreach(json_object_get(account, "errors_by_code"), code, count)
        {
            if (i < TIDE_METRICS_ACCOUNTS_MAX && lines++ < TIDE_METRICS_ERRORS_MAX)
                tide_metric_line(
                    metrics, json_number_value(count),
                    TIDE_LABELS({"account", word(account, "account")}, {"code", code}));
            else
                add_to(others, code, json_number_value(count));
        }
    }
    others_lines(metrics, others, "code");
}

static void transfers(tide_metrics *metrics, const json_t *accounts)
{
    static const char *const directions[][2] = {{"down", "bytes_down"}, {"up", "bytes_up"}};
    json_auto_t *others = json_object();
    tide_metric(metrics, "transfer_bytes_total", "counter",
                "Bytes of requests and answers of the provider, without their heads.");
    for (size_t i = 0; i < json_array_size(accounts); i++)
        for (size_t k = 0; k < 2; k++) {
            const json_t *account = json_array_get(accounts, i);
            const double bytes = number(account, directions[k][1]);
            if (i < TIDE_METRICS_ACCOUNTS_MAX)
                tide_metric_line(metrics, bytes,
                                 TIDE_LABELS({"account", word(account, "account")},
                                             {"direction", directions[k][0]}));
            else
                add_to(others, directions[k][0], bytes);
        }
    others_lines(metrics, others, "direction");
}

/* ---- calls and quota ---- */

struct calls {
    tide_metrics *metrics;
    size_t account; /* its place among all */
    uint32_t lines;
    json_t *others; /* by class */
};

static void calls_of(struct calls *calls, const json_t *account)
{
    const char *method = NULL;
    const char *class = NULL;
    json_t *classes = NULL;
    json_t *count = NULL;
    json_object_foreach(json_object_get(account, "calls_by_method"), method, classes)
    {
        json_object_foreach(classes, class, count)
        {
            if (calls->account < TIDE_METRICS_ACCOUNTS_MAX &&
                calls->lines < TIDE_METRICS_CALLS_MAX) {
                calls->lines++;
                tide_metric_line(calls->metrics, json_number_value(count),
                                 TIDE_LABELS({"account", word(account, "account")},
                                             {"method", method}, {"class", class}));
            } else {
                add_to(calls->others, class, json_number_value(count));
            }
        }
    }
}

static void calls(tide_metrics *metrics, const json_t *snapshot)
{
    const json_t *accounts = json_object_get(snapshot, "accounts");
    const json_t *methods = json_object_get(snapshot, "methods");
    json_auto_t *others = json_object();
    struct calls all = {.metrics = metrics, .others = others};
    const char *class = NULL;
    json_t *count = NULL;
    tide_metric(metrics, "calls_total", "counter", "Calls to the provider, by what they came to.");
    for (all.account = 0; all.account < json_array_size(accounts); all.account++)
        calls_of(&all, json_array_get(accounts, all.account));
    json_object_foreach(others, class, count)
    {
        tide_metric_line(metrics, json_number_value(count),
                         TIDE_LABELS({"account", TIDE_METRICS_OTHER},
                                     {"method", TIDE_METRICS_OTHER}, {"class", class}));
    }
    tide_metric(metrics, "call_duration_seconds", "histogram",
                "Time from sending a request to the end of its answer.");
    for (size_t i = 0; i < json_array_size(methods); i++) {
        const json_t *method = json_array_get(methods, i);
        const tide_histogram duration = tide_histogram_of(json_object_get(method, "duration"));
        tide_metric_histogram(metrics, &duration, tide_histogram_work_us,
                              TIDE_LABELS({"method", word(method, "method")}));
    }
    const tide_histogram batches = tide_histogram_of(json_object_get(snapshot, "batches"));
    tide_metric(metrics, "batch_duration_seconds", "histogram",
                "The same of requests that carried several calls.");
    tide_metric_histogram(metrics, &batches, tide_histogram_work_us, NULL);
}

static void quota(tide_metrics *metrics, const json_t *snapshot)
{
    const json_t *accounts = json_object_get(snapshot, "accounts");
    const json_t *limits = json_object_get(snapshot, "limits");
    double others = 0;
    tide_metric(
        metrics, "quota_used_ratio", "gauge",
        "Units in the window of the quota, to those that it allows.  The limit of a project "
        "has its provider as account.");
    for (size_t i = 0; i < json_array_size(accounts) && i < TIDE_METRICS_ACCOUNTS_MAX; i++) {
        const json_t *account = json_array_get(accounts, i);
        const double max = number(account, "window_max_units");
        if (max > 0)
            tide_metric_line(
                metrics, number(account, "window_used_units") / max,
                TIDE_LABELS({"account", word(account, "account")}, {"limit", "account"}));
    }
    for (size_t i = 0; i < json_array_size(limits); i++) {
        const json_t *limit = json_array_get(limits, i);
        tide_metric_line(metrics, number(limit, "used_units") / number(limit, "max_units"),
                         TIDE_LABELS({"account", word(limit, "provider")}, {"limit", "project"}));
    }
    tide_metric(metrics, "quota_units_total", "counter", "Units of the quota that calls cost.");
    for (size_t i = 0; i < json_array_size(accounts); i++) {
        const json_t *account = json_array_get(accounts, i);
        if (i < TIDE_METRICS_ACCOUNTS_MAX)
            tide_metric_line(
                metrics, number(account, "units"),
                TIDE_LABELS({"account", word(account, "account")}, {"limit", "account"}));
        else
            others += number(account, "units");
    }
    if (json_array_size(accounts) > TIDE_METRICS_ACCOUNTS_MAX)
        tide_metric_line(metrics, others,
                         TIDE_LABELS({"account", TIDE_METRICS_OTHER}, {"limit", "account"}));
}

/* ---- all ---- */

void tide_metrics_of(const json_t *snapshot, const json_t *alerts, tide_metrics *metrics)
{
    const json_t *accounts = json_object_get(snapshot, "accounts");
    tide_metric(metrics, "build_info", "gauge", "The version that runs.");
    tide_metric_line(metrics, 1, TIDE_LABELS({"version", TIDE_VERSION}));
    lanes(metrics, snapshot);
    jobs(metrics, snapshot);
    alerts_lines(metrics, alerts);
    for (size_t i = 0; i < sizeof per_account / sizeof per_account[0]; i++)
        account_lines(metrics, accounts, &per_account[i]);
    account_states(metrics, accounts);
    quota(metrics, snapshot);
    blocked(metrics, accounts);
    errors(metrics, accounts);
    transfers(metrics, accounts);
    calls(metrics, snapshot);
}

static void alert_add(json_t *list, const char *condition, enum tide_level level)
{
    (void)json_array_append_new(
        list, json_pack("{s:s, s:s}", "condition", condition, "level", tide_level_name(level)));
}

/* Those of the ledger, as `tidemark alerts` lists them. */
static json_t *alerts_of(tide_engine *engine)
{
    json_t *list = json_array();
    struct tide_alert alert;
    size_t cursor = 0;
    tide_lock_take(engine->world, engine->lock);
    while (tide_alerts_each(engine->alerts, &cursor, &alert))
        alert_add(list, tide_condition_name(alert.condition), alert.level);
    for (size_t i = 0; i < engine->system_alerts_count; i++)
        alert_add(list, engine->system_alerts[i].condition, engine->system_alerts[i].level);
    if (engine->notifying.shown)
        alert_add(list, TIDE_NOTICES_CONDITION, TIDE_LEVEL_WARN);
    tide_lock_drop(engine->world, engine->lock);
    return list;
}

json_t *tide_metrics_engine(tide_engine *engine, tide_metrics *metrics)
{
    json_t *snapshot = tide_engine_snapshot_json(engine);
    json_auto_t *alerts = alerts_of(engine);
    tide_metrics_of(snapshot, alerts, metrics);
    return snapshot;
}

tide_status tide_metrics_text(tide_engine *engine, tide_buf *text, tide_error *err)
{
    tide_metrics metrics;
    tide_metrics_begin(&metrics, text);
    json_decref(tide_metrics_engine(engine, &metrics));
    const tide_status rc = tide_metrics_end(&metrics);
    return rc == TIDE_OK ? rc : tide_error_set(err, rc, "no room for the metrics");
}
