#include "cloud/searchconsole.h"

#include "base/check.h"
#include "base/encode.h"
#include "cloud/searchconsole_rows.h"
#include "net/api/ask.h"
#include "net/batch/multipart.h"
#include "net/judge_google.h"

#include <string.h>
#include <strings.h>

/* The numbers identify latencies that the governor keeps and saves: they must not change. */
enum method { SITES = 1, QUERY = 2, METHODS };

/* Names as in Google's discovery document. */
static const struct tide_api_method methods[METHODS] = {
    [SITES] = {"sites.list", "GET", 1, true},
    [QUERY] = {"searchanalytics.query", "POST", 1, true},
};

static const struct tide_provider_net searchconsole_api = {
    .name = "Search Console API",
    .url = "https://searchconsole.googleapis.com",
    .judge = tide_google_judge,
    .methods = methods,
    .methods_count = METHODS,
};

const char *tide_searchconsole_method_name(uint32_t method)
{
    return method < METHODS ? methods[method].name : NULL;
}

enum {
    SITES_BYTES_MAX = 4 << 20,
    TRY_TIMEOUT_MS = 30000,
    ROW_BYTES_GUESS = 190, /* of a row with query and page, in the answer */
};

struct tide_searchconsole {
    tide_mem *mem;
    tide_api *api;
    tide_batcher *batcher;
};

/* ---- names ---- */

static const char *const dimension_names[TIDE_SC_DIMENSIONS] = {
    "date", "query", "page", "country", "device", "searchAppearance"};
static const char *const type_names[TIDE_SC_TYPES] = {"web",  "image",    "video",
                                                      "news", "discover", "googleNews"};

/* As in Google's discovery document. */
static const char *const dimension_enums[TIDE_SC_DIMENSIONS] = {
    "DATE", "QUERY", "PAGE", "COUNTRY", "DEVICE", "SEARCH_APPEARANCE"};
static const char *const type_enums[TIDE_SC_TYPES] = {"WEB",  "IMAGE",    "VIDEO",
                                                      "NEWS", "DISCOVER", "GOOGLE_NEWS"};

const char *tide_sc_dimension_name(tide_sc_dimension dimension)
{
    return dimension_names[dimension];
}

const char *tide_sc_type_name(tide_sc_type type)
{
    return type_names[type];
}

/* "query,page" to bits; case is ignored. */
static tide_status names_parse(tide_text text, const char *const *names, unsigned count,
                               const char *what, uint32_t *bits_out, tide_error *err)
{
    uint32_t bits = 0;
    while (text.bytes > 0) {
        const char *comma = memchr(text.data, ',', text.bytes);
        const size_t bytes = comma == NULL ? text.bytes : (size_t)(comma - text.data);
        unsigned i = 0;
        while (i < count &&
               (strlen(names[i]) != bytes || strncasecmp(names[i], text.data, bytes) != 0))
            i++;
        if (i == count)
            return tide_error_set(err, TIDE_INVALID, "unknown %s \"%.*s\"", what,
                                  (int)(bytes > 60 ? 60 : bytes), text.data);
        bits |= 1u << i;
        const size_t used = comma == NULL ? bytes : bytes + 1;
        text = (tide_text){text.data + used, text.bytes - used};
    }
    *bits_out = bits;
    return TIDE_OK;
}

tide_status tide_sc_dimensions_parse(tide_text text, uint32_t *bits_out, tide_error *err)
{
    return names_parse(text, dimension_names, TIDE_SC_DIMENSIONS, "dimension", bits_out, err);
}

tide_status tide_sc_types_parse(tide_text text, uint32_t *bits_out, tide_error *err)
{
    return names_parse(text, type_names, TIDE_SC_TYPES, "search type", bits_out, err);
}

/* ---- open and close ---- */

tide_status tide_searchconsole_open(const char *endpoint, tide_tokens *tokens, tide_world *world,
                                    const struct tide_batch_options *batches, tide_mem *mem,
                                    tide_searchconsole **client_out, tide_error *err)
{
    tide_searchconsole *client = tide_mem_new(mem, sizeof *client);
    if (client == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for Search Console");
    client->mem = mem;
    const struct tide_api_options api = {
        .provider = &searchconsole_api, .endpoint = endpoint, .tokens = tokens};
    tide_status rc = tide_api_open(&api, mem, &client->api, err);
    struct tide_batch_options options = *batches;
    options.api = client->api;
    options.path = "/batch";
    options.format = &tide_batch_multipart;
    options.world = world;
    if (rc == TIDE_OK)
        rc = tide_batcher_open(&options, mem, &client->batcher, err);
    if (rc != TIDE_OK) {
        tide_searchconsole_close(client);
        return rc;
    }
    *client_out = client;
    return TIDE_OK;
}

void tide_searchconsole_close(tide_searchconsole *client)
{
    if (client == NULL)
        return;
    tide_batcher_close(client->batcher);
    tide_api_close(client->api);
    tide_mem_free(client->mem, client, sizeof *client);
}

void tide_searchconsole_tune(tide_searchconsole *client, unsigned requests, unsigned parts)
{
    tide_batcher_tune(client->batcher, requests, parts);
}

void tide_searchconsole_batches(tide_searchconsole *client, struct tide_batch_state *state_out)
{
    tide_batcher_state(client->batcher, state_out);
}

/* ---- sites ---- */

static tide_status sites_get(tide_api *api, tide_job *job, const tide_cancel *cancel,
                             tide_sc_site_visit *visit, void *arg, tide_error *err)
{
    struct tide_api_ask ask;
    json_t *answer = NULL;
    tide_api_ask_init(&ask, api, job, SITES, "/webmasters/v3/sites?prettyPrint=false");
    ask.call.answer_bytes_max = SITES_BYTES_MAX;
    if (job == NULL) {
        ask.call.cancel = cancel;
        ask.call.total_timeout_ms = TRY_TIMEOUT_MS;
    }
    const tide_status rc = tide_api_ask_json(&ask, &answer, err);
    size_t index = 0;
    const json_t *entry = NULL;
    json_array_foreach(json_object_get(answer, "siteEntry"), index, entry)
    {
        const char *site = json_string_value(json_object_get(entry, "siteUrl"));
        const char *level = json_string_value(json_object_get(entry, "permissionLevel"));
        if (site != NULL && strlen(site) <= TIDE_SC_SITE_BYTES_MAX)
            visit(site, level == NULL ? "" : level, arg);
    }
    json_decref(answer);
    tide_api_ask_done(&ask);
    return rc;
}

tide_status tide_searchconsole_sites(tide_searchconsole *client, tide_job *job,
                                     tide_sc_site_visit *visit, void *arg, tide_error *err)
{
    return sites_get(client->api, job, NULL, visit, arg, err);
}

tide_status tide_searchconsole_try(tide_world *world, const char *endpoint, tide_text bearer,
                                   tide_mem *mem, const tide_cancel *cancel,
                                   tide_sc_site_visit *visit, void *arg, tide_error *err)
{
    const struct tide_api_options options = {
        .provider = &searchconsole_api, .endpoint = endpoint, .bearer = bearer, .world = world};
    tide_api *api = NULL;
    tide_status rc = tide_api_open(&options, mem, &api, err);
    if (rc == TIDE_OK)
        rc = sites_get(api, NULL, cancel, visit, arg, err);
    tide_api_close(api);
    return rc;
}

/* ---- a query ---- */

static tide_status query_path(const struct tide_sc_query *query, tide_buf *out)
{
    TIDE_TRY(tide_buf_add_text(out, "/webmasters/v3/sites/"));
    TIDE_TRY(tide_percent_add(out, tide_text_of(query->site), TIDE_URL_UNRESERVED));
    return tide_buf_add_text(out, "/searchAnalytics/query?prettyPrint=false");
}

/* As in Google's discovery document. */
static tide_status query_body(const struct tide_sc_query *query, tide_buf *out)
{
    TIDE_TRY(tide_buf_print(out, "{\"startDate\":\"%.10s\",\"endDate\":\"%.10s\",", query->date,
                            query->date_to == NULL ? query->date : query->date_to));
    const char *before = "\"dimensions\":[";
    for (unsigned d = 0; d < TIDE_SC_DIMENSIONS; d++) {
        if ((query->dimensions >> d & 1u) == 0)
            continue;
        TIDE_TRY(tide_buf_print(out, "%s\"%s\"", before, dimension_enums[d]));
        before = ",";
    }
    if (query->dimensions != 0)
        TIDE_TRY(tide_buf_add_text(out, "],"));
    return tide_buf_print(out,
                          "\"type\":\"%s\",\"rowLimit\":%u,\"startRow\":%u,\"dataState\":\"%s\"}",
                          type_enums[query->type], query->row_limit, query->start_row,
                          query->fresh ? "ALL" : "FINAL");
}

tide_status tide_searchconsole_query(tide_searchconsole *client, tide_job *job,
                                     const struct tide_sc_query *query,
                                     const struct tide_sc_sink *sink, struct tide_sc_page *page_out,
                                     tide_error *err)
{
    TIDE_ASSERT(query->row_limit > 0 && query->row_limit <= TIDE_SC_ROWS_MAX);
    struct tide_sc_rows rows;
    tide_auto_buf path = tide_buf_in(client->mem, 4096);
    tide_auto_buf body = tide_buf_in(client->mem, 4096);
    tide_sc_rows_init(&rows, query->dimensions, sink, client->mem);
    tide_status rc = query_path(query, &path);
    if (rc == TIDE_OK)
        rc = query_body(query, &body);
    if (rc == TIDE_OK) {
        const struct tide_batch_call call = {
            .method = QUERY,
            .path = tide_buf_cstr(&path),
            .body = tide_buf_text(&body),
            .expected_bytes = query->expected_bytes != 0
                                  ? query->expected_bytes
                                  : (uint64_t)query->row_limit * ROW_BYTES_GUESS,
            .sink = tide_sc_rows_write,
            .restart = tide_sc_rows_restart,
            .sink_arg = &rows,
        };
        rc = tide_batch_ask(client->batcher, job, &call, err);
    } else {
        rc = tide_error_set(err, TIDE_INVALID, "the name of site %.100s is too long", query->site);
    }
    if (rc == TIDE_OK || (rc == TIDE_SERVER && rows.list.failed == TIDE_SERVER))
        rc = tide_sc_rows_end(&rows, page_out, err);
    tide_sc_rows_done(&rows);
    return rc;
}
