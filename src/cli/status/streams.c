/* streams.c - `tidemark series` and `tidemark stream list|cycles`: how work went over time, and how far
 * each stream is (E5, E9.1). */
#include "cli/cli.h"

#include <inttypes.h>
#include <string.h>

/* ---- series ---- */

static void series_row(struct cli *cli, const json_t *one)
{
    const json_t *values = json_object_get(one, "values");
    const size_t count = json_array_size(values);
    json_int_t sum = 0, most = 0;
    for (size_t i = 0; i < count; i++) {
        const json_int_t value = json_integer_value(json_array_get(values, i));
        sum += value;
        most = value > most ? value : most;
    }
    const char *account = json_string_value(json_object_get(one, "account"));
    cli_cell(cli, "%s", account == NULL ? "" : account);
    cli_cell(cli, "%" JSON_INTEGER_FORMAT,
             count == 0 ? 0 : json_integer_value(json_array_get(values, count - 1)));
    cli_cell(cli, "%" JSON_INTEGER_FORMAT, most);
    cli_cell(cli, "%" JSON_INTEGER_FORMAT, sum);
}

tide_status cli_series(struct cli *cli)
{
    static const char *const headings[] = {"ACCOUNT", "NOW", "MOST", "SUM"};
    static const char *const fields[] = {"name", "step_ms", "end_unix_ms", "series"};
    const char *span = cli_flag(cli, "span") == NULL ? "hour" : cli_flag(cli, "span");
    bool runs = false;
    tide_json request;
    json_t *answer = NULL;
    if (strcmp(span, "hour") != 0 && strcmp(span, "day") != 0)
        return cli_wrong(cli, "Give hour or day.", "there is no span \"%.40s\"", span);
    tide_control_request(TIDE_OP_SERIES, &request);
    tide_json_set_cstr(&request, "name", cli->arguments[0]);
    tide_json_set_cstr(&request, "span", span);
    if (cli_flag(cli, "account") != NULL)
        tide_json_set_cstr(&request, "account", cli_flag(cli, "account"));
    const tide_status rc = cli_engine_ask(cli, &request, &runs, &answer);
    if (!runs)
        return cli_fail(cli, TIDE_NOT_FOUND, "Start `tidemark serve`.",
                        "no process runs in %.300s; series are kept in its memory", cli->state_dir);
    if (rc != TIDE_OK)
        return cli_hint(cli, rc, "Series are rate, quota and held.");
    const json_t *list = json_object_get(answer, "series");
    cli_table_begin(cli, headings, 4);
    for (size_t i = 0; i < json_array_size(list); i++)
        series_row(cli, json_array_get(list, i));
    cli_table_end(cli, "no accounts");
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        tide_json value = {.value = json_incref(json_object_get(answer, fields[i]))};
        tide_json_set(&cli->json, fields[i], &value);
    }
    tide_json_set_cstr(&cli->json, "span", span);
    json_decref(answer);
    return TIDE_OK;
}

/* ---- streams ---- */

struct streams {
    struct cli *cli;
    tide_json list;
    uint64_t id; /* the only one that is looked for; 0: none, all are listed */
    bool found;
    /* Names of accounts, collected before: the ledger runs one query at a time. */
    const char *wanted; /* account; NULL: all */
    uint32_t wanted_id;
};

static bool stream_row(const struct tide_stream_row *row, void *arg)
{
    struct streams *streams = arg;
    struct cli *cli = streams->cli;
    char when[32];
    tide_json one;
    streams->found = streams->found || row->id == streams->id;
    if (streams->id != 0 || (streams->wanted != NULL && row->account != streams->wanted_id))
        return true;
    tide_json_object(&one);
    tide_json_set_u64(&one, "id", row->id);
    tide_json_set_text(&one, "name", row->name);
    tide_json_set_text(&one, "cursor", row->cursor);
    tide_json_set_u64(&one, "cycles_done", row->ordinal);
    tide_json_set_u64(&one, "cycles_open", row->ordinal_next - row->ordinal);
    tide_json_set_u64(&one, "moved_unix_ms", row->moved_unix_ms);
    tide_json_append(&streams->list, &one);
    cli_cell(cli, "%" PRIu64, row->id);
    cli_cell_text(cli, row->name);
    cli_cell_text(cli, row->cursor);
    cli_cell(cli, "%" PRIu64, row->ordinal_next - row->ordinal);
    cli_cell(cli, "%s", cli_time(row->moved_unix_ms, when));
    return true;
}

tide_status cli_stream_list(struct cli *cli)
{
    static const char *const headings[] = {"ID", "STREAM", "MARK", "OPEN", "MOVED"};
    struct streams streams = {.cli = cli, .wanted = cli_flag(cli, "account")};
    tide_status rc = cli_ledger_read(cli);
    if (rc == TIDE_OK && streams.wanted != NULL)
        rc = cli_hint(
            cli,
            tide_ledger_account_find(cli->ledger, streams.wanted, &streams.wanted_id, &cli->err),
            "`tidemark account list` shows the accounts.");
    if (rc != TIDE_OK)
        return rc;
    tide_json_array(&streams.list);
    cli_table_begin(cli, headings, 5);
    rc = tide_ledger_streams(cli->ledger, stream_row, &streams, &cli->err);
    cli_table_end(cli, "no streams");
    tide_json_set(&cli->json, "streams", &streams.list);
    return cli_hint(cli, rc, "Run `tidemark ledger check`.");
}

static bool cycle_row(const struct tide_cycle_row *row, void *arg)
{
    struct streams *streams = arg;
    struct cli *cli = streams->cli;
    char when[32];
    tide_json one;
    tide_json_object(&one);
    tide_json_set_u64(&one, "id", row->id);
    tide_json_set_u64(&one, "ordinal", row->ordinal);
    tide_json_set_text(&one, "start", row->start);
    tide_json_set_text(&one, "end", row->end);
    tide_json_set_u64(&one, "total", row->total);
    tide_json_set_u64(&one, "outstanding", row->outstanding);
    tide_json_set_u64(&one, "failed", row->failed);
    tide_json_set_u64(&one, "bad", row->bad);
    tide_json_set_u64(&one, "opened_unix_ms", row->opened_unix_ms);
    tide_json_append(&streams->list, &one);
    cli_cell(cli, "%" PRIu64, row->id);
    cli_cell_text(cli, row->start);
    cli_cell_text(cli, row->end);
    cli_cell(cli, "%" PRIu64, row->total);
    cli_cell(cli, "%" PRIu64, row->outstanding);
    cli_cell(cli, "%" PRIu64, row->failed);
    cli_cell(cli, "%" PRIu64, row->bad);
    cli_cell(cli, "%s", cli_time(row->opened_unix_ms, when));
    return true;
}

tide_status cli_stream_cycles(struct cli *cli)
{
    static const char *const headings[] = {"ID",   "START",  "END", "JOBS",
                                           "LEFT", "FAILED", "BAD", "OPENED"};
    struct streams streams = {.cli = cli};
    tide_status rc = cli_number(cli, cli->arguments[0], "the id", &streams.id);
    if (rc == TIDE_OK)
        rc = cli_ledger_read(cli);
    if (rc == TIDE_OK && streams.id != 0)
        rc = tide_ledger_streams(cli->ledger, stream_row, &streams, &cli->err);
    if (rc == TIDE_OK && !streams.found)
        return cli_fail(cli, TIDE_NOT_FOUND, "`tidemark stream list` shows the streams.",
                        "there is no stream %.40s", cli->arguments[0]);
    if (rc != TIDE_OK)
        return rc;
    tide_json_array(&streams.list);
    cli_table_begin(cli, headings, 8);
    rc = tide_ledger_cycles(cli->ledger, streams.id, cycle_row, &streams, &cli->err);
    cli_table_end(cli, "no unfinished cycle: everything up to the mark is done");
    tide_json_set_u64(&cli->json, "stream", streams.id);
    tide_json_set(&cli->json, "cycles", &streams.list);
    return cli_hint(cli, rc, "Run `tidemark ledger check`.");
}
