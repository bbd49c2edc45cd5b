/* Goal: metrics stay bounded and well formed whatever the accounts are called (E9.1).  Method: made-up
 * snapshots. */
#include "engine/control/metrics.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

enum { METHODS = 3 };

static json_t *account_of(int number, int methods)
{
    char name[40];
    (void)snprintf(name, sizeof name, "account %d", number);
    json_t *calls = json_object();
    for (int i = 0; i < methods; i++) {
        char method[40];
        (void)snprintf(method, sizeof method, "gmail.method%d", i);
        (void)json_object_set_new(calls, method, json_pack("{s:i, s:i}", "ok", 10, "retry", 2));
    }
    return json_pack("{s:s, s:s, s:i, s:i, s:o, s:i, s:i, s:{s:i}, s:i, s:i, s:i, s:{s:i, s:i}}",
                     "account", name, "state", "running", "retried", 1, "workers", 3,
                     "calls_by_method", calls, "window_used_units", 3, "window_max_units", 4,
                     "blocked_ms", "throttled", 1500, "units", 20, "bytes_down", 100, "bytes_up", 7,
                     "errors_by_code", "429", 3, "none", 1);
}

static json_t *snapshot_of(int accounts, int methods)
{
    json_t *snapshot = json_pack(
        "{s:i, s:[], s:[{s:s, s:i, s:i, s:{s:[i, i, i], s:i}}], s:[{s:s, s:i, s:i}]}", "window", 7,
        "accounts", "work", "system", "mail", "running", 2, "done", 5, "duration", "counts", 1, 0,
        2, "sum_us", 250000, "limits", "provider", "gmail", "used_units", 1, "max_units", 8);
    for (int i = 0; i < accounts; i++)
        (void)json_array_append_new(json_object_get(snapshot, "accounts"), account_of(i, methods));
    return snapshot;
}

static tide_status text_of(const json_t *snapshot, const json_t *alerts, tide_buf *text)
{
    tide_metrics metrics;
    tide_metrics_begin(&metrics, text);
    tide_metrics_of(snapshot, alerts, &metrics);
    return tide_metrics_end(&metrics);
}

static size_t count_of(const char *text, const char *what)
{
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, what)) != NULL; at += strlen(what))
        count++;
    return count;
}

static void has(const tide_buf *text, const char *line)
{
    char whole[200];
    (void)snprintf(whole, sizeof whole, "\n%s\n", line);
    if (strstr(tide_buf_cstr(text), whole) == NULL)
        fail_msg("no line %s in\n%s", line, tide_buf_cstr(text));
}

TEST(accounts_beyond_the_bound_are_one)
{
    tide_auto_buf text = tide_buf_heap(TIDE_METRICS_BYTES_MAX);
    json_auto_t *snapshot = snapshot_of(TIDE_METRICS_ACCOUNTS_MAX + 6, METHODS);
    assert_int_equal(text_of(snapshot, NULL, &text), TIDE_OK);
    const char *all = tide_buf_cstr(&text);
    assert_int_equal(count_of(all, "\ntidemark_retries_total{"), TIDE_METRICS_ACCOUNTS_MAX + 1);
    has(&text, "tidemark_retries_total{account=\"other\"} 6");
    has(&text,
        "tidemark_calls_total{account=\"account 3\",method=\"gmail.method2\",class=\"retry\"} 2");
    has(&text, "tidemark_calls_total{account=\"other\",method=\"other\",class=\"ok\"} 180");
    has(&text, "tidemark_blocked_seconds_total{account=\"account 63\",reason=\"throttled\"} 1.5");
    has(&text, "tidemark_blocked_seconds_total{account=\"other\",reason=\"throttled\"} 9");
    has(&text, "tidemark_transfer_bytes_total{account=\"other\",direction=\"up\"} 42");
    has(&text, "tidemark_quota_units_total{account=\"other\",limit=\"account\"} 120");
    /* A sum of gauges means nothing. */
    assert_int_equal(count_of(all, "\ntidemark_governor_workers{"), TIDE_METRICS_ACCOUNTS_MAX);
    has(&text, "tidemark_quota_used_ratio{account=\"account 0\",limit=\"account\"} 0.75");
    has(&text, "tidemark_quota_used_ratio{account=\"gmail\",limit=\"project\"} 0.125");
}

TEST(errors_are_told_by_code)
{
    tide_auto_buf text = tide_buf_heap(TIDE_METRICS_BYTES_MAX);
    json_auto_t *snapshot = snapshot_of(TIDE_METRICS_ACCOUNTS_MAX + 6, 0);
    assert_int_equal(text_of(snapshot, NULL, &text), TIDE_OK);
    has(&text, "tidemark_call_errors_total{account=\"account 3\",code=\"429\"} 3");
    has(&text, "tidemark_call_errors_total{account=\"account 63\",code=\"none\"} 1");
    has(&text, "tidemark_call_errors_total{account=\"other\",code=\"429\"} 18");
    assert_int_equal(count_of(tide_buf_cstr(&text), "\ntidemark_call_errors_total{"),
                     2 * TIDE_METRICS_ACCOUNTS_MAX + 2);
}

TEST(errors_of_many_codes_are_bounded_and_none_is_lost)
{
    enum { CODES = 20 };
    tide_auto_buf text = tide_buf_heap(TIDE_METRICS_BYTES_MAX);
    json_auto_t *snapshot = snapshot_of(TIDE_METRICS_ACCOUNTS_MAX, 0);
    for (size_t i = 0; i < TIDE_METRICS_ACCOUNTS_MAX; i++) {
        json_t *codes = json_object();
        for (int k = 0; k < CODES; k++) {
            char name[16];
            (void)snprintf(name, sizeof name, "%d", 400 + k);
            (void)json_object_set_new(codes, name, json_integer(1));
        }
        (void)json_object_set_new(json_array_get(json_object_get(snapshot, "accounts"), i),
                                  "errors_by_code", codes);
    }
    assert_int_equal(text_of(snapshot, NULL, &text), TIDE_OK);
    assert_int_equal(count_of(tide_buf_cstr(&text), "\ntidemark_call_errors_total{"),
                     TIDE_METRICS_ERRORS_MAX + CODES);
    /* 25 accounts have 20 lines each; the other 39 are in these. */
    has(&text, "tidemark_call_errors_total{account=\"other\",code=\"419\"} 39");
    has(&text, "tidemark_metrics_left_out 0");
}

TEST(calls_of_many_methods_are_bounded_and_none_is_lost)
{
    tide_auto_buf text = tide_buf_heap(TIDE_METRICS_BYTES_MAX);
    json_auto_t *snapshot = snapshot_of(TIDE_METRICS_ACCOUNTS_MAX, 16);
    assert_int_equal(text_of(snapshot, NULL, &text), TIDE_OK);
    const char *all = tide_buf_cstr(&text);
    assert_int_equal(count_of(all, "\ntidemark_calls_total{"), TIDE_METRICS_CALLS_MAX + 2);
    /* 64 accounts, 16 methods, 10 calls each; half of the lines are of this class. */
    has(&text, "tidemark_calls_total{account=\"other\",method=\"other\",class=\"ok\"} 5240");
    has(&text, "tidemark_metrics_left_out 0");
}

/* Counters and histograms as Prometheus wants them: steps add up, and the last is the count. */
TEST(durations_are_histograms)
{
    tide_auto_buf text = tide_buf_heap(TIDE_METRICS_BYTES_MAX);
    json_auto_t *snapshot = snapshot_of(0, 0);
    assert_int_equal(text_of(snapshot, NULL, &text), TIDE_OK);
    has(&text, "# TYPE tidemark_job_duration_seconds histogram");
    has(&text, "tidemark_job_duration_seconds_bucket{system=\"mail\",le=\"0.01\"} 1");
    has(&text, "tidemark_job_duration_seconds_bucket{system=\"mail\",le=\"0.05\"} 1");
    has(&text, "tidemark_job_duration_seconds_bucket{system=\"mail\",le=\"0.1\"} 3");
    has(&text, "tidemark_job_duration_seconds_bucket{system=\"mail\",le=\"60\"} 3");
    has(&text, "tidemark_job_duration_seconds_bucket{system=\"mail\",le=\"+Inf\"} 3");
    has(&text, "tidemark_job_duration_seconds_sum{system=\"mail\"} 0.25");
    has(&text, "tidemark_job_duration_seconds_count{system=\"mail\"} 3");
    has(&text, "tidemark_batch_duration_seconds_bucket{le=\"+Inf\"} 0");
    has(&text, "tidemark_jobs{system=\"mail\",state=\"running\"} 2");
    has(&text, "tidemark_jobs_finished_total{system=\"mail\",outcome=\"done\"} 5");
}

TEST(a_value_is_in_the_step_whose_bound_it_does_not_exceed)
{
    tide_histogram histogram = {.sum_us = 0};
    tide_histogram_add(&histogram, tide_histogram_local_us, 0);
    tide_histogram_add(&histogram, tide_histogram_local_us, 1000);
    tide_histogram_add(&histogram, tide_histogram_local_us, 1001);
    tide_histogram_add(&histogram, tide_histogram_local_us, UINT64_MAX / 2);
    assert_int_equal(histogram.counts[0], 2);
    assert_int_equal(histogram.counts[1], 1);
    assert_int_equal(histogram.counts[TIDE_HISTOGRAM_STEPS - 1], 1);
    assert_int_equal(tide_histogram_count(&histogram), 4);
    for (int i = 1; i < TIDE_HISTOGRAM_STEPS - 1; i++) {
        assert_true(tide_histogram_work_us[i - 1] < tide_histogram_work_us[i]);
        assert_true(tide_histogram_local_us[i - 1] < tide_histogram_local_us[i]);
    }
}

TEST(series_are_bounded_and_the_rest_is_counted)
{
    tide_auto_buf text = tide_buf_heap(TIDE_METRICS_BYTES_MAX);
    const tide_histogram none = {.sum_us = 0};
    tide_metrics metrics;
    tide_metrics_begin(&metrics, &text);
    tide_metric(&metrics, "many", "gauge", "Many.");
    for (int i = 0; i < TIDE_METRICS_SERIES_MAX + 3; i++)
        tide_metric_line(&metrics, i, TIDE_LABELS({"a", "b"}));
    tide_metric(&metrics, "more", "histogram", "More.");
    tide_metric_histogram(&metrics, &none, tide_histogram_work_us, NULL);
    assert_int_equal(tide_metrics_end(&metrics), TIDE_OK);
    assert_int_equal(count_of(tide_buf_cstr(&text), "\ntidemark_many{"), TIDE_METRICS_SERIES_MAX);
    assert_int_equal(count_of(tide_buf_cstr(&text), "\ntidemark_more"), 0);
    has(&text, "tidemark_metrics_left_out 15");
}

TEST(names_are_escaped_and_large_numbers_are_exact)
{
    tide_auto_buf text = tide_buf_heap(TIDE_METRICS_BYTES_MAX);
    tide_metrics metrics;
    tide_metrics_begin(&metrics, &text);
    tide_metric(&metrics, "one", "gauge", "One.");
    tide_metric_line(&metrics, 1794700000123.0, TIDE_LABELS({"a", "a\\b\n\""}, {"b", NULL}));
    tide_metric_line(&metrics, -0.5, NULL);
    assert_int_equal(tide_metrics_end(&metrics), TIDE_OK);
    has(&text, "tidemark_one{a=\"a\\\\b\\n\\\"\",b=\"\"} 1794700000123");
    has(&text, "tidemark_one -0.5");
}

TEST(alerts_are_counted_by_condition_and_severity)
{
    tide_auto_buf text = tide_buf_heap(TIDE_METRICS_BYTES_MAX);
    json_auto_t *snapshot = snapshot_of(0, 0);
    json_auto_t *alerts = json_pack("[{s:s, s:s}, {s:s, s:s}, {s:s, s:s}]", "condition", "bad_rate",
                                    "level", "warn", "condition", "throttled", "level", "warn",
                                    "condition", "bad_rate", "level", "warn");
    assert_int_equal(text_of(snapshot, alerts, &text), TIDE_OK);
    assert_int_equal(count_of(tide_buf_cstr(&text), "\ntidemark_alerts{"), 2);
    has(&text, "tidemark_alerts{condition=\"bad_rate\",severity=\"warn\"} 2");
}

/* Every line is a comment or a sample, and the samples of a metric follow its type. */
TEST(lines_of_a_metric_stand_together)
{
    tide_auto_buf text = tide_buf_heap(TIDE_METRICS_BYTES_MAX);
    json_auto_t *snapshot = snapshot_of(3, 2);
    char last[80] = "?";
    assert_int_equal(text_of(snapshot, NULL, &text), TIDE_OK);
    for (const char *line = tide_buf_cstr(&text); *line != '\0'; line = strchr(line, '\n') + 1) {
        if (sscanf(line, "# TYPE %79s", last) == 1 || strncmp(line, "# HELP tidemark_", 16) == 0)
            continue;
        assert_true(strncmp(line, last, strlen(last)) == 0);
        const char *rest = line + strlen(last);
        assert_true(*rest == '{' || *rest == ' ' || strncmp(rest, "_bucket{", 8) == 0 ||
                    strncmp(rest, "_sum", 4) == 0 || strncmp(rest, "_count", 6) == 0);
    }
}

TEST(a_text_without_room_is_refused)
{
    tide_auto_buf text = tide_buf_heap(700);
    json_auto_t *snapshot = snapshot_of(5, 5);
    assert_int_equal(text_of(snapshot, NULL, &text), TIDE_FULL);
}
