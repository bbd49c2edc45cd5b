/* metrics.h - the state of the engine as Prometheus text (metrics/lines.h, E9.1).
 *
 * It is made from a snapshot, so that the numbers are those that every other display shows.
 *
 * Invariants:
 *   MET1  no line has a label from a message, a path, a query or an id.  Streams of the ledger have
 *         names with ids: how far an account is says its system (cli/serve/metrics.c).
 *   MET2  TIDE_METRICS_ACCOUNTS_MAX accounts have lines of their own.  Counters of further accounts
 *         are added up as account="other"; their gauges are left out.
 *   MET3  a counter never goes back while the process runs: accounts keep their order, and a
 *         series that was shown is shown again, or its account is one of the others for good.
 */
#ifndef TIDE_ENGINE_CONTROL_METRICS_H
#define TIDE_ENGINE_CONTROL_METRICS_H

#include "metrics/lines.h"
#include "tidemark.h"

#include <jansson.h>

/* Room for calls_total alone, which has a line for each account, method and class. */
enum { TIDE_METRICS_CALLS_MAX = 1000, TIDE_METRICS_ERRORS_MAX = 500 };

/* Of an engine, as a text of its own.  TIDE_NO_MEMORY, TIDE_FULL. */
tide_status tide_metrics_text(tide_engine *engine, tide_buf *text, tide_error *err);
/* The same lines among others.  Returns the snapshot that they are from, for the caller to free. */
json_t *tide_metrics_engine(tide_engine *engine, tide_metrics *metrics);
/* The same from a snapshot and the alerts that hold: [{"condition","level"}]. */
void tide_metrics_of(const json_t *snapshot, const json_t *alerts, tide_metrics *metrics);

#endif
