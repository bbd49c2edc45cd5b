/* restore.c - `tidemark mail restore`: puts removed mail back into Gmail (M14). */
#include "mail/commands/home.h"

#include "base/clocktext.h"
#include "mail/restore/restore.h"
#include "tidemark_inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

enum { TICK_MS = 500, QUIET_TICK_MS = 10000, INSERT_UNITS = 25, UNITS_PER_S = 100 };

static const char *const deed_names[TIDE_DEEDS] = {
    [TIDE_DEED_THERE] = "there",   [TIDE_DEED_INBOX] = "inbox",   [TIDE_DEED_TRASH] = "trash",
    [TIDE_DEED_INSERT] = "insert", [TIDE_DEED_REFUSE] = "refuse",
};

/* ---- what is meant ---- */

static tide_status read_options(struct cli *cli, struct mail_home *home, char email[256],
                                tide_buf *words, struct tide_restore_options *options)
{
    const char *manifest = cli_flag(cli, "manifest");
    tide_status rc = TIDE_OK;
    options->mail = home->mail;
    if (cli_flag(cli, "limit") != NULL)
        rc = cli_number(cli, cli_flag(cli, "limit"), "--limit", &options->limit);
    if (rc == TIDE_OK && manifest != NULL) {
        rc = cli_number(cli, manifest, "--manifest", &options->manifest);
        if (rc == TIDE_OK && options->manifest == 0)
            rc = cli_fail(cli, TIDE_NOT_FOUND, "Numbers start at 1.", "there is no manifest 0");
        options->email = cli_flag(cli, "account");
        options->ids = cli->arguments;
        options->ids_count = cli->arguments_count;
        return rc;
    }
    if (rc == TIDE_OK && cli->arguments_count == 0) {
        cli->exit_code = CLI_EXIT_USAGE;
        return cli_fail(cli, TIDE_INVALID,
                        "Give a query as for `tidemark mail search`, or --manifest N.",
                        "no messages selected");
    }
    for (unsigned i = 0; rc == TIDE_OK && i < cli->arguments_count; i++)
        rc = tide_buf_print(words, "%s%s", i == 0 ? "" : " ", cli->arguments[i]);
    if (rc == TIDE_OK)
        rc = mail_home_account(cli, home, cli_flag(cli, "account"), email);
    options->email = email;
    options->query = tide_buf_cstr(words);
    return rc;
}

/* ---- showing ---- */

static struct tide_restore_sum sum_of(const struct tide_restore_sum sums[TIDE_DEEDS])
{
    struct tide_restore_sum all = {0};
    for (int i = 0; i < TIDE_DEED_REFUSE; i++) {
        all.messages += sums[i].messages;
        all.bytes += sums[i].bytes;
    }
    return all;
}

static void print_sums(struct cli *cli, const struct tide_restore_sum sums[TIDE_DEEDS],
                       const char *key)
{
    static const char *const lines[TIDE_DEEDS] = {
        [TIDE_DEED_THERE] = "already in Gmail",
        [TIDE_DEED_INBOX] = "put back into the inbox",
        [TIDE_DEED_TRASH] = "taken out of the trash",
        [TIDE_DEED_INSERT] = "inserted from the archive",
        [TIDE_DEED_REFUSE] = "refused",
    };
    tide_json object;
    tide_json_object(&object);
    for (int i = 0; i < TIDE_DEEDS; i++) {
        char size[TIDE_SIZE_TEXT_BYTES];
        tide_json one;
        tide_size_human(sums[i].bytes, size);
        if (sums[i].messages > 0)
            cli_print(cli, "  %8" PRIu64 "  %9s  %s\n", sums[i].messages, size, lines[i]);
        tide_json_object(&one);
        tide_json_set_u64(&one, "messages", sums[i].messages);
        tide_json_set_u64(&one, "bytes", sums[i].bytes);
        tide_json_set(&object, deed_names[i], &one);
    }
    tide_json_set(&cli->json, key, &object);
}

struct refusals {
    struct cli *cli;
    tide_json list;
};

static void print_refusal(const char *gmail_id, const char *reason, void *arg)
{
    struct refusals *refusals = arg;
    tide_json one;
    cli_print(refusals->cli, "REFUSED  %s  %s\n", gmail_id, reason);
    tide_json_object(&one);
    tide_json_set_cstr(&one, "id", gmail_id);
    tide_json_set_cstr(&one, "reason", reason);
    tide_json_append(&refusals->list, &one);
}

static void print_refusals(struct cli *cli, tide_restore *restore)
{
    struct refusals refusals = {.cli = cli};
    tide_json_array(&refusals.list);
    tide_restore_refused(restore, print_refusal, &refusals);
    tide_json_set(&cli->json, "refused", &refusals.list);
}

static void print_plan(struct cli *cli, tide_restore *restore)
{
    struct tide_restore_state state;
    tide_restore_state(restore, &state);
    cli_print(cli, "%s: nothing was changed; this would be done:\n", state.email);
    print_sums(cli, state.planned, "planned");
    if (sum_of(state.planned).messages + state.planned[TIDE_DEED_REFUSE].messages == 0)
        cli_print(cli, "  nothing: Gmail already has all of it, or the archive has none of it\n");
    if (state.planned[TIDE_DEED_TRASH].messages > 0)
        cli_print(cli,
                  "  Messages that Gmail has meanwhile removed from its trash are inserted.\n");
    print_refusals(cli, restore);
    tide_json_set_bool(&cli->json, "dry_run", true);
    tide_json_set_cstr(&cli->json, "account", state.email);
    if (state.planned[TIDE_DEED_REFUSE].messages > 0)
        cli->exit_code = CLI_EXIT_BAD_ITEMS;
}

static void print_result(struct cli *cli, tide_restore *restore)
{
    struct tide_restore_state state;
    tide_restore_state(restore, &state);
    cli_print(cli, "%s: %" PRIu64 " message%s restored (manifest %" PRIu64 ")\n", state.email,
              sum_of(state.done).messages, sum_of(state.done).messages == 1 ? "" : "s",
              state.manifest);
    print_sums(cli, state.done, "done");
    if (state.labels > 0)
        cli_print(cli, "%" PRIu64 " label%s created again.\n", state.labels,
                  state.labels == 1 ? " was" : "s were");
    if (state.labels_lost > 0)
        cli_print(cli, "%" PRIu64 " label%s could not be restored: %s unknown.\n",
                  state.labels_lost, state.labels_lost == 1 ? "" : "s",
                  state.labels_lost == 1 ? "its name is" : "their names are");
    if (state.twice > 0)
        cli_print(cli,
                  "%" PRIu64 " message%s fetched by a sync before the new id was known: "
                  "the archive has %s twice, once as gone.\n",
                  state.twice, state.twice == 1 ? " was" : "s were",
                  state.twice == 1 ? "it" : "them");
    print_refusals(cli, restore);
    tide_json_set_cstr(&cli->json, "account", state.email);
    tide_json_set_u64(&cli->json, "manifest", state.manifest);
    tide_json_set_u64(&cli->json, "labels_made", state.labels);
    tide_json_set_u64(&cli->json, "labels_lost", state.labels_lost);
    tide_json_set_u64(&cli->json, "stored_twice", state.twice);
    if (state.done[TIDE_DEED_REFUSE].messages > 0)
        cli->exit_code = CLI_EXIT_BAD_ITEMS;
}

struct progress {
    bool terminal;
    uint64_t started_ms;
    uint64_t shown_ms;
};

/* How long the rest takes: at the rate the quota allows, or at the rate so far if that is
 * slower. */
static uint64_t left_ms(const struct tide_restore_state *state, uint64_t passed_ms)
{
    const uint64_t done = sum_of(state->done).messages + state->done[TIDE_DEED_REFUSE].messages;
    const uint64_t all =
        sum_of(state->planned).messages + state->planned[TIDE_DEED_REFUSE].messages;
    if (all <= done)
        return 0;
    const uint64_t inserts =
        state->planned[TIDE_DEED_INSERT].messages > state->done[TIDE_DEED_INSERT].messages
            ? state->planned[TIDE_DEED_INSERT].messages - state->done[TIDE_DEED_INSERT].messages
            : 0;
    const uint64_t by_quota_ms = inserts * INSERT_UNITS * 1000 / UNITS_PER_S;
    const uint64_t by_pace_ms = done == 0 ? 0 : passed_ms * (all - done) / done;
    return by_pace_ms > by_quota_ms ? by_pace_ms : by_quota_ms;
}

static void show_progress(struct cli *cli, tide_restore *restore, struct progress *progress,
                          bool last)
{
    const uint64_t now_ms = tide_world_now_ms(cli->world);
    const uint64_t tick_ms = progress->terminal ? TICK_MS : QUIET_TICK_MS;
    struct tide_restore_state state;
    char left[TIDE_DURATION_TEXT_BYTES];
    char size[TIDE_SIZE_TEXT_BYTES];
    if (cli->quiet || (!last && now_ms - progress->shown_ms < tick_ms))
        return;
    const bool first = progress->shown_ms == 0;
    progress->shown_ms = now_ms;
    tide_restore_state(restore, &state);
    const struct tide_restore_sum done = sum_of(state.done);
    const double seconds = (double)(now_ms - progress->started_ms) / 1000;
    tide_duration_human(left_ms(&state, now_ms - progress->started_ms), left);
    tide_size_human(done.bytes, size);
    if (progress->terminal && !first)
        (void)fprintf(stderr, "\033[1A\033[J");
    (void)fprintf(
        stderr, "restored %" PRIu64 " of %" PRIu64 " (%s)  %.1f/s  refused %" PRIu64 "  left %s\n",
        done.messages, sum_of(state.planned).messages, size,
        seconds > 0 ? (double)done.messages / seconds : 0, state.done[TIDE_DEED_REFUSE].messages,
        left);
}

/* ---- doing ---- */

/* Asks on a terminal; a script needs --yes. */
static tide_status confirm(struct cli *cli, tide_restore *restore)
{
    struct tide_restore_state state;
    char size[TIDE_SIZE_TEXT_BYTES];
    char answer[16] = "";
    if (cli_flag(cli, "yes") != NULL)
        return TIDE_OK;
    tide_restore_state(restore, &state);
    const struct tide_restore_sum sum = sum_of(state.planned);
    tide_size_human(sum.bytes, size);
    if (isatty(STDIN_FILENO) != 1) {
        cli->exit_code = CLI_EXIT_USAGE;
        return cli_fail(cli, TIDE_INVALID,
                        "Add --yes to restore, or --dry-run to see what would be done.",
                        "%" PRIu64 " message%s (%s) would be put back into %s", sum.messages,
                        sum.messages == 1 ? "" : "s", size, state.email);
    }
    (void)fprintf(stderr, "Put %" PRIu64 " message%s (%s) back into %s? [y/N] ", sum.messages,
                  sum.messages == 1 ? "" : "s", size, state.email);
    if (fgets(answer, sizeof answer, stdin) == NULL || (answer[0] != 'y' && answer[0] != 'Y'))
        return cli_fail(cli, TIDE_CANCELED, "Nothing was changed.", "not confirmed");
    return TIDE_OK;
}

static tide_status denied(struct cli *cli, const char *email)
{
    char hint[400];
    const tide_error why = cli->err;
    (void)snprintf(hint, sizeof hint,
                   "Sign in again with `tidemark account add gmail %.100s --for archive` and the "
                   "flags it was added with, then run this again.",
                   email);
    return cli_fail(cli, TIDE_AUTH, hint, "%s: the sign-in has no permission for this: %.200s",
                    email, why.text);
}

static tide_status signed_out(struct cli *cli, const char *email, const char *why)
{
    char hint[400];
    (void)snprintf(hint, sizeof hint,
                   "Sign in again with `tidemark account add gmail %.100s` and the flags it was "
                   "added with, then run this again.",
                   email);
    return cli_fail(cli, TIDE_AUTH, hint, "%s: %.250s", email, why);
}

static tide_status drive(struct cli *cli, struct mail_home *home, tide_restore *restore)
{
    struct progress progress = {.terminal = isatty(STDERR_FILENO) == 1,
                                .started_ms = tide_world_now_ms(cli->world)};
    struct tide_restore_state state;
    char why[400];
    bool stopping = false;
    tide_restore_state(restore, &state);
    const char *only = state.email;
    (void)cli_interruptible(cli);
    tide_status rc = tide_engine_only(home->engine, &only, 1, &cli->err);
    if (rc == TIDE_OK)
        rc = tide_restore_begin(restore, &cli->err);
    if (rc == TIDE_OK)
        rc = tide_engine_start(home->engine, &cli->err);
    for (bool more = rc == TIDE_OK; more;) {
        rc = tide_restore_step(restore, TICK_MS, &cli->err);
        more = rc == TIDE_TIMEOUT;
        show_progress(cli, restore, &progress, !more);
        if (more && tide_mail_signed_out(home->mail, state.email, why))
            return signed_out(cli, state.email, why);
        if (cli_interrupted() && !stopping) {
            stopping = true;
            tide_engine_stop(home->engine);
        }
    }
    tide_restore_state(restore, &state);
    if (rc == TIDE_PERMANENT && cli->err.code == 403)
        return denied(cli, state.email);
    if (rc == TIDE_OK || rc == TIDE_STOPPED)
        print_result(cli, restore);
    if (rc == TIDE_STOPPED) {
        cli_print(cli, "For the rest, run `tidemark mail restore --manifest %" PRIu64 " --yes`\n",
                  state.manifest);
        cli->exit_code = CLI_EXIT_INTERRUPTED;
        return TIDE_OK;
    }
    return cli_hint(cli, rc,
                    "Restored messages stay restored; run the same command again to resume.");
}

tide_status cli_mail_restore(struct cli *cli)
{
    struct mail_home home = {0};
    struct tide_restore_options options = {0};
    struct tide_restore_state state;
    tide_restore *restore = NULL;
    char email[256] = "";
    tide_buf words;
    tide_buf_init(&words, cli->mem, 1024);
    tide_status rc = mail_home_open(cli, &home);
    if (rc == TIDE_OK)
        rc = read_options(cli, &home, email, &words, &options);
    if (rc == TIDE_OK)
        rc = tide_restore_open(&options, cli->mem, &restore, &cli->err);
    rc = cli_hint(cli, rc,
                  "`man tidemark` lists the operators, `tidemark account list` the accounts.");
    if (rc == TIDE_OK && cli_flag(cli, "dry-run") != NULL) {
        print_plan(cli, restore);
    } else if (rc == TIDE_OK) {
        tide_restore_state(restore, &state);
        if (sum_of(state.planned).messages > 0)
            rc = confirm(cli, restore);
        if (rc == TIDE_OK && sum_of(state.planned).messages == 0 &&
            state.planned[TIDE_DEED_REFUSE].messages == 0)
            print_result(cli, restore);
        else if (rc == TIDE_OK)
            rc = drive(cli, &home, restore);
    }
    /* Close the engine first: its threads use the restore until they end. */
    const tide_status stopped = tide_engine_close(home.engine);
    home.engine = NULL;
    if (stopped != TIDE_TIMEOUT)
        tide_restore_close(restore);
    const tide_status closed = mail_home_close(cli, &home);
    tide_buf_done(&words);
    if (rc != TIDE_OK)
        return rc;
    return stopped == TIDE_OK ? closed : stopped;
}
