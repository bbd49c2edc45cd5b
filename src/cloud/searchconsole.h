/* searchconsole.h - a client of the Search Console API: sites, and search analytics by batch.
 *
 * Every query is one part of a batch (net/batch/batch.h); rows are extracted from the
 * answer while it streams in (searchconsole_rows.h).  Requests follow Google's
 * discovery document exactly.
 *
 * Invariants:
 *   GSC1  rows are asked for one day at a time: longer ranges do not raise the cap of 50,000 rows.
 *   GSC2  the rows of a query are valid only if the page was complete.
 */
#ifndef TIDE_CLOUD_SEARCHCONSOLE_H
#define TIDE_CLOUD_SEARCHCONSOLE_H

#include "net/batch/batch.h"
#include "net/oauth/oauth.h"

typedef struct tide_searchconsole tide_searchconsole;

/* "searchanalytics.query"; NULL: there is none. */
const char *tide_searchconsole_method_name(uint32_t method);

enum {
    TIDE_SC_ROWS_MAX = 25000, /* of one page */
    TIDE_SC_DAY_ROWS_MAX = 50000,
    TIDE_SC_SITE_BYTES_MAX = 512,
    TIDE_SC_DIMENSIONS_MAX = 6,
    TIDE_SC_KEY_BYTES_MAX = 16 << 10,
};

typedef enum tide_sc_dimension {
    TIDE_SC_DATE,
    TIDE_SC_QUERY,
    TIDE_SC_PAGE,
    TIDE_SC_COUNTRY,
    TIDE_SC_DEVICE,
    TIDE_SC_APPEARANCE,
    TIDE_SC_DIMENSIONS,
} tide_sc_dimension;
const char *tide_sc_dimension_name(tide_sc_dimension dimension); /* "searchAppearance" */
/* Parses a list, "query,page"; names in any case.  Bits of the enum, in its order.  TIDE_INVALID
 * names the wrong one. */
tide_status tide_sc_dimensions_parse(tide_text text, uint32_t *bits_out, tide_error *err);

typedef enum tide_sc_type {
    TIDE_SC_WEB,
    TIDE_SC_IMAGE,
    TIDE_SC_VIDEO,
    TIDE_SC_NEWS,
    TIDE_SC_DISCOVER,
    TIDE_SC_GOOGLE_NEWS,
    TIDE_SC_TYPES,
} tide_sc_type;
const char *tide_sc_type_name(tide_sc_type type); /* "googleNews" */
tide_status tide_sc_types_parse(tide_text text, uint32_t *bits_out, tide_error *err);

/* `endpoint` as in gmail.h; NULL: Google's.  Both borrowed objects outlive it.  Of `batches` the
 * sizes are used. */
tide_status tide_searchconsole_open(const char *endpoint, tide_tokens *tokens, tide_world *world,
                                    const struct tide_batch_options *batches, tide_mem *mem,
                                    tide_searchconsole **client_out, tide_error *err);
void tide_searchconsole_close(tide_searchconsole *client); /* NULL is fine */
/* Other limits of its batches from now on (net/batch/batch.h). */
void tide_searchconsole_tune(tide_searchconsole *client, unsigned requests, unsigned parts);
void tide_searchconsole_batches(tide_searchconsole *client, struct tide_batch_state *state_out);

/* Visits the properties of the account; level as Google spells it ("siteOwner"). */
typedef void tide_sc_site_visit(const char *site, const char *level, void *arg);
tide_status tide_searchconsole_sites(tide_searchconsole *client, tide_job *job,
                                     tide_sc_site_visit *visit, void *arg, tide_error *err);
/* The same with a token that is not stored yet, outside of any job. */
tide_status tide_searchconsole_try(tide_world *world, const char *endpoint, tide_text bearer,
                                   tide_mem *mem, const tide_cancel *cancel,
                                   tide_sc_site_visit *visit, void *arg, tide_error *err);

struct tide_sc_query {
    const char *site;    /* "sc-domain:example.com", "https://www.example.com/" */
    const char *date;    /* "2026-09-01", Pacific time */
    const char *date_to; /* NULL: that day alone (GSC1) */
    tide_sc_type type;
    uint32_t dimensions; /* bits */
    uint32_t start_row;
    uint32_t row_limit;
    bool fresh;              /* also days that are not final yet */
    uint64_t expected_bytes; /* of the answer; 0: unknown */
};

/* A row; texts are borrowed for the call.  keys[d] for the dimensions asked for, in the
 * order of the enum; empty for others. */
struct tide_sc_row {
    tide_text keys[TIDE_SC_DIMENSIONS];
    double clicks, impressions, ctr, position; /* position is NaN when absent */
};
struct tide_sc_page {
    uint32_t rows;
    bool by_page;              /* responseAggregationType */
    char first_incomplete[16]; /* date; "" */
    uint64_t bytes;
};
/* Calls `visit` for each row as it arrives, and `restart` before the rows start again (a
 * repeated part): drop the earlier ones.  TIDE_OK: the page was complete (GSC2). */
struct tide_sc_sink {
    tide_status (*visit)(const struct tide_sc_row *row, void *arg);
    void (*restart)(void *arg);
    void *arg;
};
tide_status tide_searchconsole_query(tide_searchconsole *client, tide_job *job,
                                     const struct tide_sc_query *query,
                                     const struct tide_sc_sink *sink, struct tide_sc_page *page_out,
                                     tide_error *err);

#endif
