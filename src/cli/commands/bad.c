/* bad.c - `tidemark bad list|explain|retry|accept`: items that fail while others succeed (E6). */
#include "cli/bad.h"

#include "base/check.h"
#include "base/limits.h"

#include <inttypes.h>
#include <stdio.h>

struct bad_scope {
    struct cli *cli;
    struct cli_bad *bad;
    uint32_t account, kind;
    tide_json items;
    char
        next[24 + TIDE_ITEM_BYTES_MAX]; /* the last row of a page that is full; "": all are shown */
};

static tide_status scope_find(struct bad_scope *scope)
{
    struct cli *cli = scope->cli;
    struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
    struct tide_control_filter named = {.account = scope->bad->account, .kind = scope->bad->kind};
    tide_status rc = tide_control_filter_find(&named, cli->ledger, &filter, &cli->err);
    scope->account = filter.account;
    scope->kind = filter.kind;
    return cli_hint(cli, rc, "`tidemark bad list` shows the names.");
}

static bool scope_has(const struct bad_scope *scope, const struct tide_bad_row *row)
{
    const struct cli_bad *bad = scope->bad;
    if (bad->item != NULL && !tide_text_equal(row->item, tide_text_of(bad->item)))
        return false;
    if (bad->prefix != NULL && (row->kind_name.bytes < strlen(bad->prefix) ||
                                memcmp(row->kind_name.data, bad->prefix, strlen(bad->prefix)) != 0))
        return false;
    return bad->state == NULL || strcmp(bad->state, tide_bad_state_name(row->state)) == 0;
}

static void bad_to_json(const struct tide_bad_row *row, tide_json *json)
{
    tide_json_object(json);
    tide_json_set_text(json, "item", row->item);
    tide_json_set_text(json, "account", row->account_name);
    tide_json_set_text(json, "kind", row->kind_name);
    tide_json_set_cstr(json, "state", tide_bad_state_name(row->state));
    tide_json_set_text(json, "reason", row->reason);
    tide_json_set_u64(json, "retries", row->retries);
    tide_json_set_u64(json, "cycle", row->cycle);
    tide_json_set_u64(json, "first_seen_unix_ms", row->first_seen_unix_ms);
    tide_json_set_u64(json, "last_tried_unix_ms", row->last_tried_unix_ms);
}

static const char *state_advice(tide_bad_state state)
{
    switch (state) {
    case TIDE_BAD_BAD:
        return "It failed the same way every time while others succeeded. Retry it with `tidemark "
               "bad "
               "retry`, or let its cycle finish without it with `tidemark bad accept`.";
    case TIDE_BAD_GONE:
        return "It no longer exists at the provider; there is nothing to do.";
    case TIDE_BAD_OWED:
        return "It stalls or resets the connection; it is retried with backoff and blocks "
               "nothing.";
    case TIDE_BAD_ACCEPTED:
        return "A user accepted it as bad; its cycle does not wait for it.";
    case TIDE_BAD_RETRYING:
        return "It is being retried.";
    }
    return "Its state is unknown to this version.";
}

static bool bad_row(const struct tide_bad_row *row, void *arg)
{
    struct bad_scope *scope = arg;
    struct cli *cli = scope->cli;
    char when[32];
    tide_json json;
    if (!scope_has(scope, row))
        return true;
    scope->bad->count++;
    bad_to_json(row, &json);
    if (scope->bad->full)
        tide_json_set_cstr(&json, "advice", state_advice(row->state));
    tide_json_append(&scope->items, &json);
    cli_cell_text(cli, row->item);
    cli_cell(cli, "%s", tide_bad_state_name(row->state));
    cli_cell_text(cli, row->account_name);
    cli_cell_text(cli, row->kind_name);
    cli_cell(cli, "%" PRIu32, row->retries);
    cli_cell(cli, "%s", cli_time(row->first_seen_unix_ms, when));
    cli_cell(cli, "%s", cli_time(row->last_tried_unix_ms, when));
    cli_cell_text(cli, row->reason);
    if (scope->bad->full)
        cli_print(cli, "%s\n", state_advice(row->state));
    if (scope->bad->count < scope->bad->limit)
        return true;
    (void)snprintf(scope->next, sizeof scope->next, "%" PRIu32 ".%" PRIu32 ".%.*s", row->account,
                   row->kind, (int)row->item.bytes, row->item.data);
    return false;
}

/* "ACCOUNT.KIND.ITEM", as numbers of the ledger: a place in the order of the rows. */
static bool cursor_read(const char *text, struct tide_bad_key *key)
{
    uint32_t *const numbers[] = {&key->account, &key->kind};
    for (size_t i = 0; i < 2; i++) {
        const char *dot = strchr(text, '.');
        uint64_t number = 0;
        if (dot == NULL || !tide_text_to_u64((tide_text){text, (size_t)(dot - text)}, &number) ||
            number > UINT32_MAX)
            return false;
        *numbers[i] = (uint32_t)number;
        text = dot + 1;
    }
    key->item = tide_text_of(text);
    return true;
}

static tide_status total_of(struct bad_scope *scope, uint64_t *total_out)
{
    const struct cli_bad *bad = scope->bad;
    tide_bad_state state = TIDE_BAD_BAD;
    *total_out = bad->count;
    if (bad->item != NULL || bad->prefix != NULL)
        return TIDE_OK; /* these have one page */
    const bool has_state =
        bad->state != NULL && tide_bad_state_parse(tide_text_of(bad->state), &state);
    return tide_ledger_bad_count(scope->cli->ledger, scope->account, scope->kind,
                                 has_state ? (int)state : -1, total_out, &scope->cli->err);
}

tide_status cli_bad_show(struct cli *cli, struct cli_bad *bad)
{
    static const char *const headings[] = {"ITEM",    "STATE",      "ACCOUNT",    "KIND",
                                           "RETRIES", "FIRST SEEN", "LAST TRIED", "REASON"};
    struct bad_scope scope = {.cli = cli, .bad = bad};
    struct tide_bad_key after = {0, 0, TIDE_TEXT("")};
    uint64_t total = 0;
    if (bad->after != NULL && !cursor_read(bad->after, &after))
        return cli_wrong(cli, "Give the \"next\" of the page before.",
                         "--after %.60s is not a place in the list", bad->after);
    bad->limit = bad->limit == 0 ? CLI_LIST_MAX : bad->limit;
    TIDE_TRY(cli_ledger_read(cli));
    TIDE_TRY(scope_find(&scope));
    tide_json_array(&scope.items);
    cli_table_begin(cli, headings, 8);
    tide_status rc = tide_ledger_bad_after(cli->ledger, scope.account, scope.kind, &after, bad_row,
                                           &scope, &cli->err);
    if (rc == TIDE_OK)
        rc = total_of(&scope, &total);
    cli_table_end(cli, "no bad items");
    if (scope.next[0] != '\0' && !cli->quiet)
        cli_print(cli, "(%" PRIu64 " in all; the next ones: --after %s)\n", total, scope.next);
    tide_json_set(&cli->json, "items", &scope.items);
    tide_json_set_cstr(&cli->json, "next", scope.next[0] == '\0' ? NULL : scope.next);
    tide_json_set_u64(&cli->json, "total", total);
    return cli_hint(cli, rc, "Run `tidemark ledger check`.");
}

/* From the flags of `tidemark bad`. */
static struct cli_bad flags_of(struct cli *cli)
{
    return (struct cli_bad){.account = cli_flag(cli, "account"),
                            .kind = cli_flag(cli, "kind"),
                            .item = cli->arguments_count > 0 ? cli->arguments[0] : NULL};
}

static tide_status bad_state_flag(struct cli *cli, const char **state_out)
{
    tide_bad_state state;
    *state_out = cli_flag(cli, "state");
    if (*state_out == NULL || tide_bad_state_parse(tide_text_of(*state_out), &state))
        return TIDE_OK;
    cli->exit_code = CLI_EXIT_USAGE;
    return cli_fail(cli, TIDE_INVALID, "States are bad, gone, owed, accepted, retrying.",
                    "there is no state \"%.40s\"", *state_out);
}

tide_status cli_bad_list(struct cli *cli)
{
    struct cli_bad bad = flags_of(cli);
    uint64_t limit = CLI_LIST_MAX;
    TIDE_TRY(bad_state_flag(cli, &bad.state));
    bad.after = cli_flag(cli, "after");
    if (cli_flag(cli, "limit") != NULL)
        TIDE_TRY(cli_number(cli, cli_flag(cli, "limit"), "--limit", &limit));
    if (limit == 0 || limit > CLI_LIST_MAX)
        return cli_wrong(cli, "Use --after for the next page.", "--limit must be between 1 and %d",
                         CLI_LIST_MAX);
    bad.limit = (size_t)limit;
    return cli_bad_show(cli, &bad);
}

static tide_status no_item(struct cli *cli, const char *item)
{
    return cli_fail(cli, TIDE_NOT_FOUND, "`tidemark bad list` shows the bad items.",
                    "there is no bad item \"%.100s\"", item);
}

tide_status cli_bad_explain(struct cli *cli)
{
    struct cli_bad bad = flags_of(cli);
    bad.full = true;
    TIDE_TRY(bad_state_flag(cli, &bad.state));
    TIDE_TRY(cli_bad_show(cli, &bad));
    if (bad.count == 0)
        return no_item(cli, bad.item);
    return TIDE_OK;
}

/* ---- retry and accept ------------------------------------------------------------------ */

/* Keys of rows, collected before anything is written: rows of a list that changes
 * while it is read would be visited twice or not at all. */
struct bad_keys {
    struct bad_scope scope;
    tide_bad_state to;
    tide_buf items; /* each zero-terminated */
    struct bad_key {
        uint32_t account, kind;
        size_t item_at, item_bytes;
    } * keys;
    size_t count, capacity;
    uint64_t matched;
    bool failed;
};

static bool key_collect(const struct tide_bad_row *row, void *arg)
{
    struct bad_keys *list = arg;
    if (!scope_has(&list->scope, row))
        return true;
    list->matched++;
    if (row->state == list->to)
        return true;
    if (!TIDE_GROW_IN(list->scope.cli->mem, list->keys, list->capacity, list->count + 1,
                      CLI_LIST_MAX)) {
        list->failed = true;
        return false;
    }
    list->keys[list->count++] =
        (struct bad_key){row->account, row->kind, list->items.bytes, row->item.bytes};
    list->failed = tide_buf_add(&list->items, row->item.data, row->item.bytes) != TIDE_OK;
    return !list->failed;
}

enum { BAD_SLICE = 200 };

static tide_status keys_write(struct cli *cli, const struct bad_keys *list)
{
    tide_status rc = TIDE_OK;
    for (size_t at = 0; rc == TIDE_OK && at < list->count; at += BAD_SLICE) {
        tide_tx *tx = NULL;
        rc = tide_tx_begin(cli->ledger, &tx, &cli->err);
        if (rc != TIDE_OK)
            break;
        for (size_t i = at; rc == TIDE_OK && i < list->count && i < at + BAD_SLICE; i++) {
            const struct bad_key *key = &list->keys[i];
            tide_text item = {list->items.data + key->item_at, key->item_bytes};
            rc = tide_ledger_bad_state(tx, key->account, key->kind, item, list->to,
                                       cli->now_unix_ms, &cli->err);
        }
        if (rc == TIDE_OK)
            rc = cli_tell(cli, tx, TIDE_HINT_CONTROL, 0);
        if (rc == TIDE_OK)
            rc = tide_tx_commit(tx, &cli->err);
        else
            tide_tx_rollback(tx);
    }
    return rc;
}

static tide_status bad_write(struct cli *cli, struct cli_bad *bad, tide_bad_state to)
{
    struct bad_keys list = {.scope = {.cli = cli, .bad = bad}, .to = to};
    tide_buf_init(&list.items, cli->mem, CLI_OUT_BYTES_MAX);
    tide_status rc = cli_ledger_write(cli);
    if (rc == TIDE_OK)
        rc = scope_find(&list.scope);
    if (rc == TIDE_OK)
        rc = tide_ledger_bad_list(cli->ledger, list.scope.account, list.scope.kind, key_collect,
                                  &list, &cli->err);
    if (rc == TIDE_OK && list.failed)
        rc = cli_fail(cli, TIDE_FULL, "Name an account or kind.", "too many items for one command");
    if (rc == TIDE_OK && bad->expects && list.matched != bad->expected)
        rc = tide_error_set(
            &cli->err, TIDE_STALE, "%" PRIu64 " item%s now, not %" PRIu64 "; nothing was changed",
            list.matched, list.matched == 1 ? " matches" : "s match", bad->expected);
    if (rc == TIDE_OK)
        rc = keys_write(cli, &list);
    bad->count = list.count;
    tide_buf_done(&list.items);
    tide_mem_free(cli->mem, list.keys, list.capacity * sizeof *list.keys);
    return rc;
}

/* The engine knows kinds only by their full name: a prefix means one request for
 * each kind that has such items. */
struct bad_kinds {
    struct bad_scope scope;
    char names[8][64];
    size_t count;
};

static bool kind_collect(const struct tide_bad_row *row, void *arg)
{
    struct bad_kinds *kinds = arg;
    if (!scope_has(&kinds->scope, row))
        return true;
    for (size_t i = 0; i < kinds->count; i++)
        if (tide_text_equal(row->kind_name, tide_text_of(kinds->names[i])))
            return true;
    if (kinds->count < sizeof kinds->names / sizeof kinds->names[0])
        (void)snprintf(kinds->names[kinds->count++], sizeof kinds->names[0], "%.*s",
                       (int)row->kind_name.bytes, row->kind_name.data);
    return true;
}

static tide_status ask_engine(struct cli *cli, const struct cli_bad *bad, const char *kind,
                              tide_bad_state to, bool *runs, uint64_t *count)
{
    tide_json request;
    json_auto_t *answer = NULL;
    uint64_t changed = 0;
    tide_control_request(to == TIDE_BAD_RETRYING ? TIDE_OP_BAD_RETRY : TIDE_OP_BAD_ACCEPT,
                         &request);
    if (bad->item != NULL)
        tide_json_set_cstr(&request, "item", bad->item);
    if (kind != NULL)
        tide_json_set_cstr(&request, "kind", kind);
    if (bad->account != NULL)
        tide_json_set_cstr(&request, "account", bad->account);
    if (bad->state != NULL)
        tide_json_set_cstr(&request, "state", bad->state);
    if (bad->expects)
        tide_json_set_u64(&request, "expect", bad->expected);
    tide_status rc = cli_change_ask(cli, &request, runs, &answer);
    if (rc == TIDE_OK)
        rc = tide_json_get_u64(answer, "count", &changed, &cli->err);
    *count += changed;
    return rc;
}

tide_status cli_bad_change(struct cli *cli, struct cli_bad *bad, tide_bad_state to, bool *runs_out)
{
    struct bad_kinds kinds = {.scope = {.cli = cli, .bad = bad}};
    tide_status rc = TIDE_OK;
    bad->count = 0;
    *runs_out = true;
    if (bad->prefix == NULL) {
        rc = ask_engine(cli, bad, bad->kind, to, runs_out, &bad->count);
    } else {
        rc = cli_ledger_read(cli);
        if (rc == TIDE_OK)
            rc = scope_find(&kinds.scope);
        if (rc == TIDE_OK)
            rc = tide_ledger_bad_list(cli->ledger, kinds.scope.account, 0, kind_collect, &kinds,
                                      &cli->err);
        for (size_t i = 0; rc == TIDE_OK && i < kinds.count; i++)
            rc = ask_engine(cli, bad, kinds.names[i], to, runs_out, &bad->count);
    }
    if (!*runs_out)
        rc = bad_write(cli, bad, to);
    return cli_hint(cli, rc, "`tidemark bad list` shows the bad items.");
}

static tide_status bad_change(struct cli *cli, tide_bad_state to, const char *past)
{
    struct cli_bad bad = flags_of(cli);
    bool runs = false;
    uint64_t count = 0;
    TIDE_TRY(bad_state_flag(cli, &bad.state));
    bad.expects = cli_flag(cli, "expect") != NULL;
    if (bad.expects)
        TIDE_TRY(cli_number(cli, cli_flag(cli, "expect"), "--expect", &bad.expected));
    if (bad.expects && bad.item != NULL)
        return cli_wrong(cli, "Omit it.", "--expect counts what flags select, not named items");
    if (bad.item == NULL && cli->values_count == (bad.expects ? 1u : 0u)) {
        cli->exit_code = CLI_EXIT_USAGE;
        return cli_fail(cli, TIDE_INVALID, "Give an ITEM, --kind, --account, --state or --all.",
                        "no items selected");
    }
    TIDE_TRY(cli_bad_change(cli, &bad, to, &runs));
    count = bad.count;
    for (unsigned i = 1; i < cli->arguments_count; i++) {
        bad.item = cli->arguments[i];
        TIDE_TRY(cli_bad_change(cli, &bad, to, &runs));
        count += bad.count;
    }
    bad.count = count;
    if (bad.count == 0 && bad.item != NULL && cli->arguments_count == 1)
        return no_item(cli, bad.item);
    if (!cli->quiet)
        cli_print(cli, "%s %" PRIu64 " item%s%s\n", past, bad.count, bad.count == 1 ? "" : "s",
                  runs || cli->shared != NULL || to != TIDE_BAD_RETRYING
                      ? ""
                      : "; no engine is running, the next one retries them");
    tide_json_set_u64(&cli->json, "count", bad.count);
    tide_json_set_bool(&cli->json, "engine", runs);
    return TIDE_OK;
}

tide_status cli_bad_retry(struct cli *cli)
{
    return bad_change(cli, TIDE_BAD_RETRYING, "retrying");
}

tide_status cli_bad_accept(struct cli *cli)
{
    return bad_change(cli, TIDE_BAD_ACCEPTED, "accepted");
}
