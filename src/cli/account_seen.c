#include "cli/account_seen.h"

#include <stdio.h>
#include <string.h>

static json_t *snapshot_of_ours(struct cli *cli, tide_engine *engine)
{
    json_t *snapshot = NULL;
    tide_auto_buf text = tide_buf_in(cli->mem, 64 << 20);
    if (tide_engine_snapshot(engine, &text, NULL) == TIDE_OK)
        (void)tide_json_parse(tide_buf_text(&text), &snapshot, NULL);
    return snapshot;
}

json_t *cli_snapshot(struct cli *cli, tide_engine *engine)
{
    if (engine != NULL)
        return snapshot_of_ours(cli, engine);
    /* No running engine is not an error of this command. */
    const tide_error kept = cli->err;
    char hint[sizeof cli->hint];
    memcpy(hint, cli->hint, sizeof hint);
    tide_json request;
    json_auto_t *answer = NULL;
    json_t *snapshot = NULL;
    bool runs = false;
    tide_control_request(TIDE_OP_SNAPSHOT, &request);
    const tide_status rc = cli_engine_ask(cli, &request, &runs, &answer);
    if (rc == TIDE_OK)
        snapshot = json_incref(json_object_get(answer, "snapshot"));
    else if (runs)
        (void)fprintf(stderr, "tidemark: warning: %s\n", cli->err.text);
    cli->err = kept;
    memcpy(cli->hint, hint, sizeof hint);
    return snapshot;
}

const json_t *account_in_snapshot(const json_t *snapshot, const char *name)
{
    const json_t *accounts = json_object_get(snapshot, "accounts");
    for (size_t i = 0; i < json_array_size(accounts); i++) {
        const json_t *account = json_array_get(accounts, i);
        const char *found = json_string_value(json_object_get(account, "account"));
        if (found != NULL && strcmp(found, name) == 0)
            return account;
    }
    return NULL;
}

static uint64_t number_of(const json_t *object, const char *field)
{
    const json_int_t number = json_integer_value(json_object_get(object, field));
    return number < 0 ? 0 : (uint64_t)number;
}

void account_seen(struct cli *cli, const json_t *snapshot, uint32_t account, const char *name,
                  struct account_seen *seen_out)
{
    const json_t *live = account_in_snapshot(snapshot, name);
    *seen_out = (struct account_seen){.next_try_ms = number_of(live, "next_try_unix_ms")};
    tide_outcome_read(cli->ledger, account, cli->mem, &seen_out->outcome);
    struct tide_outcome fresh = {.ok_unix_ms = number_of(live, "last_ok_unix_ms"),
                                 .failed_unix_ms = number_of(live, "last_failed_unix_ms"),
                                 .since_unix_ms = number_of(live, "failing_since_unix_ms")};
    /* On a shared ledger another process may have made newer calls. */
    if (fresh.ok_unix_ms < seen_out->outcome.ok_unix_ms ||
        fresh.failed_unix_ms < seen_out->outcome.failed_unix_ms)
        return;
    const char *text = json_string_value(json_object_get(live, "last_failure"));
    const char *status = json_string_value(json_object_get(live, "last_failure_status"));
    if (text != NULL)
        (void)snprintf(fresh.text, sizeof fresh.text, "%s", text);
    if (status != NULL)
        fresh.status = tide_status_from_name(status);
    seen_out->outcome = fresh;
}

void account_seen_json(const struct account_seen *seen, tide_json *json)
{
    const struct tide_outcome *outcome = &seen->outcome;
    tide_json_set_u64(json, "last_ok_unix_ms", outcome->ok_unix_ms);
    tide_json_set_u64(json, "last_failed_unix_ms", outcome->failed_unix_ms);
    if (tide_outcome_is_bad(outcome) && outcome->since_unix_ms > 0)
        tide_json_set_u64(json, "failing_since_unix_ms", outcome->since_unix_ms);
    else
        tide_json_set_null(json, "failing_since_unix_ms");
    tide_json_set_cstr(json, "last_failure", outcome->failed_unix_ms == 0 ? NULL : outcome->text);
    if (seen->next_try_ms == 0)
        tide_json_set_null(json, "next_try_unix_ms");
    else
        tide_json_set_u64(json, "next_try_unix_ms", seen->next_try_ms);
}

void account_seen_text(const struct account_seen *seen, char *out, size_t out_bytes)
{
    const struct tide_outcome *outcome = &seen->outcome;
    char ok[32];
    char failed[32];
    char next[32];
    int used = 0;
    if (outcome->ok_unix_ms == 0)
        used = snprintf(out, out_bytes, "no answer yet");
    else
        used = snprintf(out, out_bytes, "last answer %s", cli_time(outcome->ok_unix_ms, ok));
    if (!tide_outcome_is_bad(outcome) || used < 0 || (size_t)used >= out_bytes)
        return;
    (void)snprintf(out + used, out_bytes - (size_t)used, "; failed %s: %s%s%s",
                   cli_time(outcome->failed_unix_ms, failed), outcome->text,
                   seen->next_try_ms == 0 ? "" : "; next try ",
                   seen->next_try_ms == 0 ? "" : cli_time(seen->next_try_ms, next));
}

bool account_is_kept(const struct tide_account_row *row)
{
    return row->archive[0] != '\0';
}

void account_rows_missing(const struct tide_system *system, const char *name, char *out,
                          size_t out_bytes)
{
    (void)snprintf(out, out_bytes,
                   "its entry in the %s system is missing: it was not added completely, or the "
                   "entry was lost; add %.200s again with `tidemark account add %s %s`, its "
                   "archive is kept",
                   system->name, name, system->provider, system->subject);
}
