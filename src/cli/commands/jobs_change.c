/* jobs_change.c - `tidemark jobs retry|cancel|accept|pause|resume|purge`: change the ledger,
 * through the running engine if there is one.  A shared ledger is changed directly, with a hint
 * to all its members. */
#include "cli/cli.h"

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
    if (rc != TIDE_OK)
        return rc;
    if (cli->arguments_count == 0 && cli->values_count == 0) {
        cli->exit_code = CLI_EXIT_USAGE;
        return cli_fail(cli, TIDE_INVALID,
                        "Give an ID, --kind, --account, --state, --cycle or --all.",
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
    filter.count_max = TIDE_CLAIM_MAX;
    unsigned lost = 0;
    for (int slice = 0; rc == TIDE_OK && slice < SLICES_MAX; slice++) {
        size_t count = 0;
        rc = write_slice(cli, op, &filter, change, &changes, &count);
        if (rc == TIDE_BUSY && cli->shared != NULL && ++lost < LOST_MAX) {
            rc = TIDE_OK; /* conflict with another process: try again */
            continue;
        }
        change->count += rc == TIDE_OK ? count : 0;
        if (count < filter.count_max)
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

static tide_status change_jobs(struct cli *cli, tide_control_op op, const char *verb,
                               const char *past)
{
    struct change change = {.count = 0};
    bool runs = false;
    tide_json running;
    tide_status rc = filter_of_flags(cli, &change.named);
    if (rc != TIDE_OK)
        return rc;
    rc = ask_with_filter(cli, op, &change, &runs);
    if (!runs)
        rc = write_with_filter(cli, op, &change);
    if (rc != TIDE_OK)
        return cli_hint(cli, rc, "`tidemark account list` and `tidemark jobs stats` show names.");

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

static tide_status end_step(struct cli *cli, tide_control_op op, struct change *change)
{
    bool runs = false;
    const tide_status rc = ask_with_filter(cli, op, change, &runs);
    return runs ? rc : write_with_filter(cli, op, change);
}

tide_status cli_jobs_end(struct cli *cli, const struct tide_control_filter *named)
{
    const uint64_t give_up_ms = tide_world_now_ms(cli->world) + END_WAIT_MS;
    struct change change = {.named = *named};
    for (;;) {
        change.running_count = 0;
        tide_status rc = end_step(cli, TIDE_OP_CANCEL, &change);
        if (rc == TIDE_OK && change.running_count == 0)
            rc = end_step(cli, TIDE_OP_ACCEPT, &change);
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
