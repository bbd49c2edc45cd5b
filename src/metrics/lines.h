/* lines.h - writes metrics as Prometheus text, version 0.0.4.
 *
 *     tide_metric(metrics, "retries_total", "counter", "Jobs that were tried again.");
 *     tide_metric_line(metrics, 3, TIDE_LABELS({"account", name}));
 *
 * The first failure is kept and returned by tide_metrics_end(); what follows it does nothing.
 *
 * Invariants:
 *   LIN1  names are constants of the program.  Labels are names of accounts, drives, systems, methods,
 *         routes and states: never an id, a path of a file, a query or text of a message.
 *   LIN2  bounded: TIDE_METRICS_SERIES_MAX lines.  Lines beyond are left out and counted.
 *   LIN3  all lines of a metric stand together, after its HELP and TYPE.
 */
#ifndef TIDE_METRICS_LINES_H
#define TIDE_METRICS_LINES_H

#include "base/buf.h"
#include "metrics/histogram.h"

enum {
    TIDE_METRICS_BYTES_MAX = 4 << 20,
    TIDE_METRICS_SERIES_MAX = 5000,
    TIDE_METRICS_ACCOUNTS_MAX = 64,
    TIDE_METRICS_METHODS_MAX = 64,
    TIDE_METRICS_LABELS_MAX = 3,
};
/* What has no place of its own among them is counted under this name. */
#define TIDE_METRICS_OTHER "other"

typedef struct tide_metrics {
    tide_buf *text;     /* borrowed */
    const char *metric; /* that of the lines that follow */
    uint32_t series, left_out;
    tide_status rc;
} tide_metrics;

struct tide_label {
    const char *name, *value; /* value NULL: "" */
};
#define TIDE_LABELS(...)                                                                           \
    (const struct tide_label[])                                                                    \
    {                                                                                              \
        __VA_ARGS__,                                                                               \
        {                                                                                          \
            NULL, NULL                                                                             \
        }                                                                                          \
    }

void tide_metrics_begin(tide_metrics *metrics, tide_buf *text);
/* TIDE_NO_MEMORY, TIDE_FULL. */
tide_status tide_metrics_end(tide_metrics *metrics);

/* The next metric; `name` is without "tidemark_" and stays until the next one. */
void tide_metric(tide_metrics *metrics, const char *name, const char *type, const char *help);
/* `labels` ends with a NULL name; NULL: none. */
void tide_metric_line(tide_metrics *metrics, double value, const struct tide_label *labels);
/* All lines of a histogram, in seconds; at most two labels. */
void tide_metric_histogram(tide_metrics *metrics, const tide_histogram *histogram,
                           tide_histogram_bounds bounds_us, const struct tide_label *labels);
/* A metric of one line. */
void tide_metric_single(tide_metrics *metrics, const char *name, const char *type, const char *help,
                        double value);

/* HELP and TYPE alone. */
tide_status tide_metrics_head(tide_buf *text, const char *name, const char *type, const char *help);
/* "a\"b": a label's value with its quotes. */
tide_status tide_metrics_label(tide_buf *text, const char *value);

#endif
