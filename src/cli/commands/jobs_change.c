/* jobs_change.c - `tidemark jobs retry|cancel|accept|pause|resume|purge`: change the ledger,
 * through the running engine if there is one.  A shared ledger is changed directly, with a hint
 * to all its members. */
#include "cli/commands/jobs_item.h"

#include "base/check.h"
#include "base/clocktext.h"
#include "base/limits.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    RUNNING_MAX = 64,
    SLICES_MAX = 1 << 20,
    LOST_MAX = 10,
    END_WAIT_MS = 30000, /* a handler that is canceled ends within seconds */
    END_TICK_US = 50000,
    ITEM_TURNS_MAX = 5,
};

struct change {
    struct tide_control_filter named;
    uint64_t count;
    uint64_t running[RUNNING_MAX];
    size_t running_count;
    bool by_engine;
};

static tide_status filter_of_flags(struct cli *cli, struct tide_control_filter *named)
{
    tide_status rc = TIDE_OK;
    named->account = cli_flag(cli, "account");
    named->kind = cli_flag(cli, "kind");
    named->state = cli_flag(cli, "state");
    rc = cli_state_check(cli, named->state);
    if (rc == TIDE_OK && cli->arguments_count > 0)
        rc = cli_number(cli, cli->arguments[0], "the id", &named->id);
    if (rc == TIDE_OK && cli->arguments_count > 0 && named->id == 0)
        rc = cli_fail(cli, TIDE_NOT_FOUND, "Ids start at 1.", "there is no job 0");
    if (rc == TIDE_OK && cli_flag(cli, "cycle") != NULL)
        rc = cli_number(cli, cli_flag(cli, "cycle"), "--cycle", &named->cycle);
    named->expects = cli_flag(cli, "expect") != NULL;
    if (rc == TIDE_OK && named->expects)
        rc = cli_number(cli, cli_flag(cli, "expect"), "--expect", &named->expected);
    if (rc == TIDE_OK && named->expects &&
        (cli->arguments_count > 0 || cli_flag(cli, "item") != NULL))
        rc = cli_wrong(cli, "Omit it.", "--expect counts what flags select, not named jobs");
    if (rc != TIDE_OK)
        return rc;
    if (cli->arguments_count == 0 && cli->values_count == (named->expects ? 1u : 0u)) {
        cli->exit_code = CLI_EXIT_USAGE;
        return cli_fail(cli, TIDE_INVALID,
                        "Give an ID, --item, --kind, --account, --state, --cycle or --all.",
                        "no jobs selected");
    }
    return TIDE_OK;
}

/* ---- asking the engine ------------------------------------------------------------ */

static tide_status ask_with_filter(struct cli *cli, tide_control_op op, struct change *change,
                                   bool *runs_out)
{
    tide_json request;
    json_t *answer = NULL;
    const json_t *running = NULL;
    tide_control_request(op, &request);
    tide_control_filter_set(&request, &change->named);
    tide_status rc = cli_change_ask(cli, &request, runs_out, &answer);
    if (rc != TIDE_OK)
        return rc;
    change->by_engine = true;
    rc = tide_json_get_u64(answer, "count", &change->count, &cli->err);
    if (tide_json_get_array(answer, "running", &running, NULL) == TIDE_OK)
        for (size_t i = 0; i < json_array_size(running) && change->running_count < RUNNING_MAX; i++)
            change->running[change->running_count++] =
                (uint64_t)json_integer_value(json_array_get(running, i));
    json_decref(answer);
    return rc;
}

/* ---- writing ourselves -------------------------------------------------------------- */

struct account_ids {
    uint32_t ids[TIDE_HINTS_ACCOUNTS_MAX +
                 1]; /* one more than fits: then all members check everything */
    size_t count;
};

static bool account_note(const struct tide_account_row *row, void *arg)
{
    struct account_ids *accounts = arg;
    accounts->ids[accounts->count++] = row->id;
    return accounts->count <= TIDE_HINTS_ACCOUNTS_MAX;
}

/* Sends hints to all members.  A cancel concerns running jobs; the other changes made jobs ready:
 * of the named account, or of any. */
static tide_status tell_all(struct cli *cli, tide_control_op op, tide_tx *tx,
                            const struct tide_job_filter *filter)
{
    struct account_ids accounts = {{0}, 1};
    tide_status rc = cli_tell(cli, tx, TIDE_HINT_CONTROL, 0);
    if (rc != TIDE_OK || op == TIDE_OP_CANCEL || cli->shared == NULL)
        return rc;
    if (filter->account != UINT32_MAX)
        return cli_tell(cli, tx, TIDE_HINT_WORK, filter->account);
    rc = tide_ledger_accounts(cli->ledger, account_note, &accounts, &cli->err);
    for (size_t i = 0; rc == TIDE_OK && i < accounts.count; i++)
        rc = cli_tell(cli, tx, TIDE_HINT_WORK, accounts.ids[i]);
    return rc;
}

/* On state.db the next engine does this when it opens; a fleet may run without a restart. */
static tide_status cursors_advance(struct cli *cli, tide_tx *tx, const struct tide_changes *changes)
{
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < changes->cycles_count; i++) {
        const struct tide_cycle_change *cycle = &changes->cycles[i];
        uint64_t ordinal = 0;
        if (cycle->outstanding == 0 && cycle->failed == 0)
            rc = tide_ledger_cursor_advance(tx, cycle->stream, cli->now_unix_ms, &ordinal, NULL,
                                            &cli->err);
    }
    return rc;
}

static tide_status write_slice(struct cli *cli, tide_control_op op,
                               const struct tide_job_filter *filter, struct change *change,
                               struct tide_changes *changes, size_t *count_out)
{
    tide_tx *tx = NULL;
    size_t running = 0;
    tide_status rc = tide_tx_begin(cli->ledger, &tx, &cli->err);
    if (rc != TIDE_OK)
        return rc;
    tide_changes_clear(changes);
    rc = tide_ledger_jobs_expect(cli->ledger, filter, &cli->err);
    if (rc != TIDE_OK) {
        tide_tx_rollback(tx);
        return rc;
    }
    if (op == TIDE_OP_RETRY)
        rc = tide_ledger_retry(tx, filter, cli->now_unix_ms, count_out, changes, &cli->err);
    else if (op == TIDE_OP_ACCEPT)
        rc = tide_ledger_accept(tx, filter, cli->now_unix_ms, count_out, changes, &cli->err);
    else
        rc = tide_ledger_cancel(tx, filter, cli->now_unix_ms, count_out, change->running,
                                RUNNING_MAX, &running, changes, &cli->err);
    if (rc == TIDE_OK && op == TIDE_OP_ACCEPT && cli->shared != NULL)
        rc = cursors_advance(cli, tx, changes);
    if (rc == TIDE_OK)
        rc = tell_all(cli, op, tx, filter);
    if (rc != TIDE_OK) {
        tide_tx_rollback(tx);
        return rc;
    }
    rc = tide_tx_commit(tx, &cli->err);
    if (rc == TIDE_OK && op == TIDE_OP_CANCEL)
        change->running_count = running; /* each slice counts all running jobs again */
    return rc;
}

/* Reclaims the rows of a dead engine first, so that they can be canceled like any
 * other: we hold the lock, therefore no engine runs them (E1.7). */
static tide_status reclaim_all(struct cli *cli, struct tide_changes *changes)
{
    size_t count = TIDE_CLAIM_MAX;
    tide_status rc = TIDE_OK;
    while (rc == TIDE_OK && count == TIDE_CLAIM_MAX) {
        tide_tx *tx = NULL;
        rc = tide_tx_begin(cli->ledger, &tx, &cli->err);
        if (rc != TIDE_OK)
            break;
        tide_changes_clear(changes);
        rc = tide_ledger_reclaim(tx, 0, TIDE_CLAIM_MAX, cli->now_unix_ms, &count, changes,
                                 &cli->err);
        if (rc == TIDE_OK)
            rc = tide_tx_commit(tx, &cli->err);
        else
            tide_tx_rollback(tx);
    }
    return rc;
}

static tide_status write_with_filter(struct cli *cli, tide_control_op op, struct change *change)
{
    struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
    struct tide_changes changes;
    tide_changes_init(&changes, cli->mem);
    tide_status rc = cli_ledger_write(cli);
    if (rc == TIDE_OK)
        rc = tide_control_filter_find(&change->named, cli->ledger, &filter, &cli->err);
    if (rc == TIDE_OK && op == TIDE_OP_CANCEL && cli->shared == NULL)
        rc = reclaim_all(cli, &changes);
    uint64_t left_max = filter.expects && filter.expected > 0 ? filter.expected : UINT64_MAX;
    unsigned lost = 0;
    for (int slice = 0; rc == TIDE_OK && slice < SLICES_MAX; slice++) {
        size_t count = 0;
        filter.count_max = left_max < TIDE_CLAIM_MAX ? (size_t)left_max : TIDE_CLAIM_MAX;
        rc = write_slice(cli, op, &filter, change, &changes, &count);
        if (rc == TIDE_BUSY && cli->shared != NULL && ++lost < LOST_MAX) {
            rc = TIDE_OK; /* conflict with another process: try again */
            continue;
        }
        change->count += rc == TIDE_OK ? count : 0;
        filter.expects = false; /* compared in the transaction of the first slice */
        left_max -= count;
        if (count < filter.count_max || left_max == 0)
            break;
    }
    tide_changes_done(&changes);
    return rc;
}

/* ---- retry and cancel ----------------------------------------------------------------- */

struct one_state {
    tide_row_state state;
    bool found;
};

static bool state_note(const struct tide_job_row *row, void *arg)
{
    struct one_state *one = arg;
    one->state = row->state;
    one->found = true;
    return false;
}

/* A named job that did not change gets an explanation. */
static tide_status explain_none(struct cli *cli, uint64_t id, const char *verb)
{
    struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
    struct one_state one = {.found = false};
    filter.id = id;
    tide_status rc = cli_ledger_read(cli);
    if (rc == TIDE_OK)
        rc = tide_ledger_jobs(cli->ledger, &filter, state_note, &one, &cli->err);
    if (rc != TIDE_OK)
        return rc;
    if (!one.found)
        return cli_fail(cli, TIDE_NOT_FOUND, "`tidemark jobs list` shows the jobs.",
                        "there is no job %" PRIu64, id);
    cli_print(cli, "job %" PRIu64 " is %s: nothing to %s\n", id, tide_row_state_name(one.state),
              verb);
    return TIDE_OK;
}

/* Through the running engine, or here if none runs. */
static tide_status change_once(struct cli *cli, tide_control_op op, struct change *change)
{
    bool runs = false;
    const tide_status rc = ask_with_filter(cli, op, change, &runs);
    return runs ? rc : write_with_filter(cli, op, change);
}

/* ---- by item ---- */

/* In which states a job can be changed. */
static bool may_change(tide_control_op op, tide_row_state state)
{
    if (op == TIDE_OP_CANCEL)
        return state == TIDE_ROW_PENDING || state == TIDE_ROW_RUNNING;
    return state == TIDE_ROW_FAILED || state == TIDE_ROW_CANCELED ||
           (op == TIDE_OP_RETRY && state == TIDE_ROW_PENDING);
}

static tide_status item_find(struct cli *cli, tide_control_op op,
                             const struct tide_control_filter *named, struct jobs_item *list)
{
    tide_status rc = TIDE_OK;
    for (int at = 0; rc == TIDE_OK && at <= (int)TIDE_ROW_CANCELED; at++) {
        const tide_row_state state = (tide_row_state)at;
        if (may_change(op, state) &&
            (named->state == NULL || strcmp(named->state, tide_row_state_name(state)) == 0))
            rc = jobs_item_find(cli, named, state, list);
    }
    return rc;
}

static void change_add(struct change *change, const struct change *one)
{
    change->count += one->count;
    change->by_engine = one->by_engine;
    for (size_t k = 0; k < one->running_count && change->running_count < RUNNING_MAX; k++)
        change->running[change->running_count++] = one->running[k];
}

/* The jobs that were found, one by one; what they are in the end is in `change`. */
static tide_status item_change(struct cli *cli, tide_control_op op, const struct jobs_item *list,
                               size_t first, struct change *change)
{
    tide_status rc = TIDE_OK;
    for (size_t i = first; rc == TIDE_OK && i < list->count; i++) {
        struct change one = {.named = {.id = list->jobs[i].id}};
        rc = change_once(cli, op, &one);
        change_add(change, &one);
    }
    return rc;
}

/* Those that the command names.  Of several, one that is gone or cannot be changed is not counted; the
 * others are changed all the same. */
static tide_status change_by_ids(struct cli *cli, tide_control_op op, struct change *change)
{
    tide_status rc = TIDE_OK;
    for (unsigned i = 0; rc == TIDE_OK && i < cli->arguments_count; i++) {
        struct change one = {.named = change->named};
        rc = cli_number(cli, cli->arguments[i], "the id", &one.named.id);
        if (rc == TIDE_OK && one.named.id != 0)
            rc = change_once(cli, op, &one);
        if (rc == TIDE_NOT_FOUND) {
            cli->err = (tide_error){TIDE_OK, 0, ""};
            cli->hint[0] = '\0';
            rc = TIDE_OK;
        }
        change_add(change, &one);
    }
    change->named.id = 0;
    return rc;
}

static void item_show(struct cli *cli, const struct jobs_item *list, const char *past)
{
    tide_json jobs;
    tide_json_array(&jobs);
    for (size_t i = 0; i < list->count; i++) {
        const uint64_t others = list->jobs[i].items - 1;
        tide_json_append_u64(&jobs, list->jobs[i].id);
        if (!cli->quiet && others > 0)
            cli_print(cli, "job %" PRIu64 " has %" PRIu64 " other item%s: %s with it\n",
                      list->jobs[i].id, others, others == 1 ? "" : "s", past);
    }
    tide_json_set_cstr(&cli->json, "item", list->item);
    tide_json_set(&cli->json, "jobs", &jobs);
}

/* A job may be split in two between the look and the change; the next turn finds its parts. */
static tide_status change_by_item(struct cli *cli, tide_control_op op, const char *past,
                                  struct change *change)
{
    struct jobs_item *list = tide_mem_new(cli->mem, sizeof *list);
    size_t first = 0;
    tide_status rc = TIDE_OK;
    if (list == NULL)
        return cli_fail(cli, TIDE_NO_MEMORY, "Free some memory.", "out of memory");
    list->item = cli_flag(cli, "item");
    for (int turn = 0; rc == TIDE_OK && turn < ITEM_TURNS_MAX; turn++) {
        cli_ledger_close(cli); /* the change may have opened it for writing */
        rc = item_find(cli, op, &change->named, list);
        if (rc != TIDE_OK || list->count == first)
            break;
        rc = item_change(cli, op, list, first, change);
        first = list->count;
    }
    if (rc == TIDE_OK && list->count == 0)
        rc = cli_fail(cli, TIDE_NOT_FOUND,
                      "`tidemark jobs list` and `tidemark bad explain ITEM` show what is known.",
                      "no job that can be %s has the item \"%.200s\"", past, list->item);
    if (rc == TIDE_OK)
        item_show(cli, list, past);
    tide_mem_free(cli->mem, list, sizeof *list);
    return rc;
}

static tide_status change_jobs(struct cli *cli, tide_control_op op, const char *verb,
                               const char *past)
{
    struct change change = {.count = 0};
    tide_json running;
    tide_status rc = filter_of_flags(cli, &change.named);
    if (rc != TIDE_OK)
        return rc;
    if (cli_flag(cli, "item") != NULL && cli_flag(cli, "item")[0] == '\0')
        return cli_wrong(cli, "Give a message id or a path.", "--item is empty");
    if (cli_flag(cli, "item") != NULL)
        rc = change_by_item(cli, op, op == TIDE_OP_RETRY ? "retried" : past, &change);
    else
        rc = cli->arguments_count > 1 ? change_by_ids(cli, op, &change)
                                      : change_once(cli, op, &change);
    if (rc != TIDE_OK)
        return cli_hint(cli, rc,
                        rc == TIDE_STALE
                            ? "`tidemark jobs list` shows what matches now."
                            : "`tidemark account list` and `tidemark jobs stats` show names.");

    if (change.count == 0 && change.running_count == 0 && change.named.id != 0)
        rc = explain_none(cli, change.named.id, verb);
    else if (!cli->quiet && (change.count > 0 || change.running_count == 0))
        cli_print(cli, "%s %" PRIu64 " job%s%s\n", past, change.count, change.count == 1 ? "" : "s",
                  change.by_engine || cli->shared != NULL || op != TIDE_OP_RETRY
                      ? ""
                      : "; no engine is running, the next one starts them");
    if (change.running_count > 0 && !cli->quiet)
        cli_print(cli, "%zu running job%s asked to stop\n", change.running_count,
                  change.running_count == 1 ? " is" : "s are");
    tide_json_array(&running);
    for (size_t i = 0; i < change.running_count; i++)
        tide_json_append_u64(&running, change.running[i]);
    tide_json_set_u64(&cli->json, "count", change.count);
    tide_json_set(&cli->json, "running", &running);
    tide_json_set_bool(&cli->json, "engine", change.by_engine);
    return rc;
}

tide_status cli_jobs_retry(struct cli *cli)
{
    return change_jobs(cli, TIDE_OP_RETRY, "retry", "retrying");
}

tide_status cli_jobs_cancel(struct cli *cli)
{
    return change_jobs(cli, TIDE_OP_CANCEL, "cancel", "canceled");
}

tide_status cli_jobs_accept(struct cli *cli)
{
    return change_jobs(cli, TIDE_OP_ACCEPT, "accept", "accepted");
}

/* Cancels until none runs; then accepts them, if wanted. */
static tide_status end_jobs(struct cli *cli, const struct tide_control_filter *named, bool accept)
{
    const uint64_t give_up_ms = tide_world_now_ms(cli->world) + END_WAIT_MS;
    struct change change = {.named = *named};
    for (;;) {
        change.running_count = 0;
        tide_status rc = change_once(cli, TIDE_OP_CANCEL, &change);
        if (rc == TIDE_OK && change.running_count == 0 && accept)
            rc = change_once(cli, TIDE_OP_ACCEPT, &change);
        /* An engine that ends does not answer any more; the next step is ours. */
        if (!cli_engine_ended(rc) && (rc != TIDE_OK || change.running_count == 0))
            return rc;
        if (tide_world_now_ms(cli->world) >= give_up_ms)
            return cli_fail(cli, TIDE_TIMEOUT, "Run the command again.",
                            "jobs were asked to stop and still run");
        cli->err = (tide_error){TIDE_OK, 0, ""};
        cli->hint[0] = '\0';
        cli_ledger_close(cli);
        (void)tide_world_sleep_until(cli->world, tide_world_now_us(cli->world) + END_TICK_US, NULL);
    }
}

tide_status cli_jobs_stop(struct cli *cli, const struct tide_control_filter *named)
{
    return end_jobs(cli, named, false);
}

tide_status cli_jobs_end(struct cli *cli, const struct tide_control_filter *named)
{
    return end_jobs(cli, named, true);
}

tide_status cli_jobs_end_of(struct cli *cli, const char *account, const char *kind)
{
    return cli_jobs_end(cli, &(struct tide_control_filter){.account = account, .kind = kind});
}

/* ---- pause and resume -------------------------------------------------------------------- */

static tide_status pause_write(struct cli *cli, const struct tide_control_filter *named,
                               bool paused)
{
    struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
    tide_tx *tx = NULL;
    tide_status rc = cli_ledger_write(cli);
    if (rc == TIDE_OK)
        rc = tide_control_filter_find(named, cli->ledger, &filter, &cli->err);
    if (rc == TIDE_OK)
        rc = tide_tx_begin(cli->ledger, &tx, &cli->err);
    if (rc != TIDE_OK)
        return rc;
    if (named->kind != NULL)
        rc = tide_ledger_kind_pause(tx, filter.kind, paused, &cli->err);
    if (rc == TIDE_OK && named->account != NULL)
        rc = tide_ledger_account_pause(tx, filter.account, paused, &cli->err);
    if (rc == TIDE_OK)
        rc = cli_tell(cli, tx, TIDE_HINT_CONTROL, 0);
    if (rc == TIDE_OK)
        return tide_tx_commit(tx, &cli->err);
    tide_tx_rollback(tx);
    return rc;
}

static tide_status pause_set(struct cli *cli, bool paused)
{
    struct tide_control_filter named = {
        .kind = cli_flag(cli, "kind"),
        .account = cli_flag(cli, "account"),
    };
    tide_json request;
    json_t *answer = NULL;
    bool runs = false;
    if ((named.kind == NULL && named.account == NULL) ||
        (named.account != NULL && named.account[0] == '\0')) {
        return cli_wrong(cli, "Give --kind KIND, --account ACCOUNT or both.",
                         "no kind or account to %s", paused ? "pause" : "resume");
    }
    tide_control_request(paused ? TIDE_OP_PAUSE : TIDE_OP_RESUME, &request);
    if (named.kind != NULL)
        tide_json_set_cstr(&request, "kind", named.kind);
    if (named.account != NULL)
        tide_json_set_cstr(&request, "account", named.account);
    tide_status rc = cli_change_ask(cli, &request, &runs, &answer);
    json_decref(answer);
    if (!runs)
        rc = pause_write(cli, &named, paused);
    if (rc != TIDE_OK)
        return cli_hint(cli, rc, "`tidemark account list` and `tidemark jobs stats` show names.");
    const char *past = paused ? "paused" : "resumed";
    if (named.kind != NULL && !cli->quiet)
        cli_print(cli, "%s kind %s\n", past, named.kind);
    if (named.account != NULL && !cli->quiet)
        cli_print(cli, "%s account %s\n", past, named.account);
    tide_json_set_bool(&cli->json, "paused", paused);
    tide_json_set_cstr(&cli->json, "kind", named.kind);
    tide_json_set_cstr(&cli->json, "account", named.account);
    tide_json_set_bool(&cli->json, "engine", runs);
    return TIDE_OK;
}

tide_status cli_jobs_pause(struct cli *cli)
{
    return pause_set(cli, true);
}

tide_status cli_jobs_resume(struct cli *cli)
{
    return pause_set(cli, false);
}

/* ---- purge --------------------------------------------------------------------------------- */

static tide_status purge_write(struct cli *cli, uint64_t older_ms, uint64_t *count_out)
{
    tide_status rc = cli_ledger_write(cli);
    uint64_t before = older_ms < cli->now_unix_ms ? cli->now_unix_ms - older_ms : 0;
    uint64_t total = 0;
    for (int slice = 0; rc == TIDE_OK && slice < SLICES_MAX; slice++) {
        tide_tx *tx = NULL;
        size_t count = 0;
        rc = tide_tx_begin(cli->ledger, &tx, &cli->err);
        if (rc != TIDE_OK)
            break;
        rc = tide_ledger_purge(tx, before, TIDE_PURGE_SLICE, &count, &cli->err);
        if (rc == TIDE_OK)
            rc = tide_tx_commit(tx, &cli->err);
        else
            tide_tx_rollback(tx);
        total += rc == TIDE_OK ? count : 0;
        if (!tide_ledger_purge_more(cli->ledger))
            break;
    }
    *count_out = total;
    return rc;
}

tide_status cli_jobs_purge(struct cli *cli)
{
    const char *flag = cli_flag(cli, "older-than");
    uint64_t older_ms = 0, count = 0;
    bool runs = false;
    tide_json request;
    json_t *answer = NULL;
    tide_status rc = cli_settings(cli);
    if (rc != TIDE_OK)
        return rc;
    if (flag == NULL)
        older_ms = tide_setting_u64(cli->settings, TIDE_SET_PURGE_AFTER);
    else if (!tide_duration_parse(tide_text_of(flag), &older_ms)) {
        cli->exit_code = CLI_EXIT_USAGE;
        return cli_fail(cli, TIDE_INVALID, "Write a duration such as 12h or 7d.",
                        "--older-than \"%.40s\" is not a duration", flag);
    }
    tide_control_request(TIDE_OP_PURGE, &request);
    tide_json_set_u64(&request, "older_than_ms", older_ms);
    rc = cli_change_ask(cli, &request, &runs, &answer);
    if (rc == TIDE_OK)
        rc = tide_json_get_u64(answer, "count", &count, &cli->err);
    json_decref(answer);
    if (!runs)
        rc = purge_write(cli, older_ms, &count);
    if (rc != TIDE_OK)
        return cli_hint(cli, rc, "Run `tidemark ledger check`.");
    if (!cli->quiet)
        cli_print(cli, "removed %" PRIu64 " finished job%s\n", count, count == 1 ? "" : "s");
    if (!cli->quiet && cli->shared != NULL)
        cli_print(
            cli,
            "A shared ledger removes whole days (UTC), once all jobs of a day are that old.\n");
    tide_json_set_u64(&cli->json, "count", count);
    tide_json_set_bool(&cli->json, "engine", runs);
    return TIDE_OK;
}
