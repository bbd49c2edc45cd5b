#include "metrics/lines.h"

#include "base/check.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

tide_status tide_metrics_head(tide_buf *text, const char *name, const char *type, const char *help)
{
    return tide_buf_print(text, "# HELP tidemark_%s %s\n# TYPE tidemark_%s %s\n", name, help, name,
                          type);
}

tide_status tide_metrics_label(tide_buf *text, const char *value)
{
    tide_status rc = tide_buf_add(text, "\"", 1);
    for (; rc == TIDE_OK && *value != '\0'; value++) {
        if (*value == '\n')
            rc = tide_buf_add(text, "\\n", 2);
        else if (*value == '\\' || *value == '"')
            rc = tide_buf_print(text, "\\%c", *value);
        else
            rc = tide_buf_add(text, value, 1);
    }
    return rc == TIDE_OK ? tide_buf_add(text, "\"", 1) : rc;
}

void tide_metrics_begin(tide_metrics *metrics, tide_buf *text)
{
    *metrics = (tide_metrics){.text = text, .rc = TIDE_OK};
}

tide_status tide_metrics_end(tide_metrics *metrics)
{
    const double left_out = metrics->left_out;
    metrics->series = 0; /* this line has a place in any case */
    tide_metric_single(metrics, "metrics_left_out", "gauge",
                       "Lines that this text has no room for.", left_out);
    return metrics->rc;
}

void tide_metric(tide_metrics *metrics, const char *name, const char *type, const char *help)
{
    metrics->metric = name;
    if (metrics->rc == TIDE_OK)
        metrics->rc = tide_metrics_head(metrics->text, name, type, help);
}

/* Numbers that are whole are written as such, however large. */
static tide_status value_add(tide_buf *text, double value)
{
    if (value >= 0 && value < 9e15 && value == floor(value))
        return tide_buf_print(text, " %" PRIu64 "\n", (uint64_t)value);
    return tide_buf_print(text, " %.15g\n", value);
}

static tide_status labels_add(tide_buf *text, const struct tide_label *labels)
{
    TIDE_TRY(tide_buf_add(text, "{", 1));
    for (size_t i = 0; labels[i].name != NULL; i++) {
        TIDE_TRY(tide_buf_print(text, "%s%s=", i == 0 ? "" : ",", labels[i].name));
        TIDE_TRY(tide_metrics_label(text, labels[i].value == NULL ? "" : labels[i].value));
    }
    return tide_buf_add(text, "}", 1);
}

static tide_status line_add(tide_metrics *metrics, const char *suffix, double value,
                            const struct tide_label *labels)
{
    TIDE_ASSERT(metrics->metric != NULL);
    TIDE_TRY(tide_buf_print(metrics->text, "tidemark_%s%s", metrics->metric, suffix));
    if (labels != NULL && labels[0].name != NULL)
        TIDE_TRY(labels_add(metrics->text, labels));
    return value_add(metrics->text, value);
}

static bool has_room(tide_metrics *metrics, uint32_t lines)
{
    if (metrics->series + lines > TIDE_METRICS_SERIES_MAX) {
        metrics->left_out += lines;
        return false;
    }
    metrics->series += lines;
    return true;
}

void tide_metric_line(tide_metrics *metrics, double value, const struct tide_label *labels)
{
    if (metrics->rc == TIDE_OK && has_room(metrics, 1))
        metrics->rc = line_add(metrics, "", value, labels);
}

void tide_metric_histogram(tide_metrics *metrics, const tide_histogram *histogram,
                           tide_histogram_bounds bounds_us, const struct tide_label *labels)
{
    struct tide_label all[TIDE_METRICS_LABELS_MAX + 1] = {{NULL, NULL}};
    size_t count = 0;
    uint64_t below = 0;
    if (metrics->rc != TIDE_OK || !has_room(metrics, TIDE_HISTOGRAM_STEPS + 2))
        return;
    for (; labels != NULL && labels[count].name != NULL; count++) {
        TIDE_ASSERT(count < TIDE_METRICS_LABELS_MAX - 1);
        all[count] = labels[count];
    }
    for (int i = 0; metrics->rc == TIDE_OK && i < TIDE_HISTOGRAM_STEPS; i++) {
        char bound[32] = "+Inf";
        if (i < TIDE_HISTOGRAM_STEPS - 1)
            (void)snprintf(bound, sizeof bound, "%g", (double)bounds_us[i] / 1e6);
        all[count] = (struct tide_label){"le", bound};
        below += histogram->counts[i];
        metrics->rc = line_add(metrics, "_bucket", (double)below, all);
    }
    all[count] = (struct tide_label){NULL, NULL};
    if (metrics->rc == TIDE_OK)
        metrics->rc = line_add(metrics, "_sum", (double)histogram->sum_us / 1e6, all);
    if (metrics->rc == TIDE_OK)
        metrics->rc = line_add(metrics, "_count", (double)below, all);
}

void tide_metric_single(tide_metrics *metrics, const char *name, const char *type, const char *help,
                        double value)
{
    tide_metric(metrics, name, type, help);
    tide_metric_line(metrics, value, NULL);
}
