/* tidemark mail sync|status (M1-M6b). */
#include "cli/mail_home.h"

#include "base/clocktext.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

enum { ACCOUNTS_MAX = 64, TICK_MS = 500 };

/* Ctrl-C asks once; a second one ends the program as usual.  What is stored is
 * stored either way. */
static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    interrupted = 1;
    (void)signal(number, SIG_DFL);
}

struct names {
    char email[ACCOUNTS_MAX][256];
    size_t count;
};

static void take_name(const char *email, const char *endpoint, void *arg)
{
    struct names *names = arg;
    (void)endpoint;
    if (names->count < ACCOUNTS_MAX)
        (void)snprintf(names->email[names->count++], sizeof names->email[0], "%s", email);
}

static tide_status which(struct cli *cli, struct mail_home *home, struct names *names)
{
    struct names all = {.count = 0};
    tide_status rc = tide_mail_accounts(home->mail, take_name, &all, &cli->err);
    if (rc != TIDE_OK)
        return rc;
    if (all.count == 0)
        return cli_fail(cli, TIDE_NOT_FOUND, "Add one with `tidemark account add gmail EMAIL`.",
                        "there is no mail account");
    if (cli->arguments_count == 0) {
        *names = all;
        return TIDE_OK;
    }
    for (unsigned i = 0; i < cli->arguments_count; i++)
        take_name(cli->arguments[i], "", names);
    return TIDE_OK;
}

/* ---- the live block ---- */

struct live {
    struct mail_home *home;
    const struct names *names;
    bool terminal;
    uint64_t started_ms;
    unsigned lines; /* of the block on the screen */
    char signed_out[256];
    char why[400];
};

static void totals(struct cli *cli, const struct live *live, struct tide_mail_state *sum)
{
    *sum = (struct tide_mail_state){.watermark_ms = UINT64_MAX};
    for (size_t i = 0; i < live->names->count; i++) {
        struct tide_mail_state one;
        if (tide_mail_state(live->home->mail, live->names->email[i], &one, &cli->err) != TIDE_OK)
            continue;
        sum->stored += one.stored;
        sum->messages_total += one.messages_total;
        sum->raw_bytes += one.raw_bytes;
        sum->fetched = one.fetched;
        if (one.watermark_ms < sum->watermark_ms)
            sum->watermark_ms = one.watermark_ms;
    }
    if (sum->watermark_ms == UINT64_MAX)
        sum->watermark_ms = 0;
}

static void show(struct cli *cli, struct live *live)
{
    struct tide_mail_state sum;
    struct tide_progress progress;
    char tidemark[32];
    char left[TIDE_DURATION_TEXT_BYTES] = "-";
    totals(cli, live, &sum);
    tide_engine_progress(live->home->engine, &progress);
    const uint64_t now_ms = tide_world_now_ms(cli->world);
    const double seconds = (double)(now_ms - live->started_ms) / 1000;
    const double rate = seconds > 0 ? (double)sum.fetched / seconds : 0;
    if (rate > 0 && sum.messages_total > sum.stored)
        tide_duration_human((uint64_t)((double)(sum.messages_total - sum.stored) / rate * 1000),
                            left);
    if (live->terminal && live->lines > 0)
        (void)fprintf(stderr, "\033[%uA\033[J", live->lines);
    (void)fprintf(stderr,
                  "stored %" PRIu64 " of %" PRIu64 "  %.1f/s  tidemark %s  in flight %u  "
                  "retried %" PRIu64 "  bad %" PRIu64 "  left %s\n",
                  sum.stored, sum.messages_total, rate,
                  sum.watermark_ms == 0 ? "none yet" : cli_time(sum.watermark_ms, tidemark),
                  progress.running[0] + progress.running[1], progress.retried, progress.bad, left);
    live->lines = 1;
}

static tide_status run(struct cli *cli, struct live *live)
{
    tide_status rc = tide_engine_start(live->home->engine, &cli->err);
    uint64_t shown_ms = 0;
    bool asked = false;
    while (rc == TIDE_OK || rc == TIDE_TIMEOUT) {
        rc = tide_engine_wait(live->home->engine, TICK_MS, &cli->err);
        if (rc == TIDE_OK)
            break;
        const bool out = tide_mail_signed_out(live->home->mail, live->signed_out, live->why);
        if ((interrupted || out) && !asked) {
            asked = true;
            tide_engine_stop(live->home->engine);
        }
        const uint64_t now_ms = tide_world_now_ms(cli->world);
        if (!cli->quiet && now_ms - shown_ms >= (live->terminal ? TICK_MS : 10000)) {
            show(cli, live);
            shown_ms = now_ms;
        }
    }
    /* What is stored can be found when we say that we are done. */
    uint64_t indexed = 1;
    while (rc == TIDE_OK && indexed > 0 && !interrupted)
        rc = tide_mail_index(live->home->mail, &indexed, &cli->err);
    if (!cli->quiet)
        show(cli, live);
    return rc;
}

static void report(struct cli *cli, struct mail_home *home, const struct names *names)
{
    tide_json list;
    tide_json_array(&list);
    for (size_t i = 0; i < names->count; i++) {
        struct tide_mail_state state;
        char tidemark[32];
        char size[TIDE_SIZE_TEXT_BYTES];
        if (tide_mail_state(home->mail, names->email[i], &state, &cli->err) != TIDE_OK)
            continue;
        tide_size_human(state.archive_bytes, size);
        cli_print(cli, "%s\n", names->email[i]);
        cli_print(cli, "  tidemark   %s%s\n",
                  state.watermark_ms == 0 ? "none yet" : cli_time(state.watermark_ms, tidemark),
                  state.cycles_open == 0 ? "" : "  (work is left before now)");
        cli_print(cli, "  stored     %" PRIu64 " messages of %" PRIu64 " on the server\n",
                  state.stored, state.messages_total);
        cli_print(cli, "  archive    %zu shards, %s\n", state.shards, size);
        tide_json one;
        tide_json_object(&one);
        tide_json_set_cstr(&one, "account", names->email[i]);
        tide_json_set_u64(&one, "watermark_unix_ms", state.watermark_ms);
        tide_json_set_u64(&one, "stored", state.stored);
        tide_json_set_u64(&one, "messages_total", state.messages_total);
        tide_json_set_u64(&one, "fetched", state.fetched);
        tide_json_set_u64(&one, "raw_bytes", state.raw_bytes);
        tide_json_set_u64(&one, "archive_bytes", state.archive_bytes);
        tide_json_set_u64(&one, "shards", state.shards);
        tide_json_set_u64(&one, "cycles_open", state.cycles_open);
        tide_json_set_cstr(&one, "history_id", state.history_id);
        tide_json_append(&list, &one);
    }
    tide_json_set(&cli->json, "accounts", &list);
}

tide_status cli_mail_sync(struct cli *cli)
{
    struct mail_home home = {0};
    struct names names = {.count = 0};
    tide_status rc = mail_home_open(cli, &home);
    if (rc == TIDE_OK)
        rc = which(cli, &home, &names);
    for (size_t i = 0; rc == TIDE_OK && i < names.count; i++) {
        const struct tide_mail_run one = {.email = names.email[i],
                                          .force = cli_flag(cli, "force") != NULL,
                                          .newest_first = cli_flag(cli, "newest-first") != NULL};
        rc = tide_mail_run(home.mail, &one, &cli->err);
        rc = cli_hint(cli, rc, "`tidemark account list` shows the accounts there are.");
    }
    struct live live = {.home = &home,
                        .names = &names,
                        .terminal = isatty(STDERR_FILENO) == 1,
                        .started_ms = tide_world_now_ms(cli->world)};
    if (rc == TIDE_OK) {
        (void)signal(SIGINT, on_signal);
        (void)signal(SIGTERM, on_signal);
        rc = run(cli, &live);
    }
    struct tide_progress progress = {0};
    if (home.engine != NULL)
        tide_engine_progress(home.engine, &progress);
    if (live.signed_out[0] != '\0') {
        char hint[400];
        (void)snprintf(
            hint, sizeof hint,
            "Sign in again with `tidemark account add gmail %.100s` and the flags it was "
            "added with; nothing that is stored is lost.",
            live.signed_out);
        rc = cli_fail(cli, TIDE_AUTH, hint, "%s: %.250s", live.signed_out, live.why);
    } else if (rc == TIDE_OK || rc == TIDE_STOPPED) {
        report(cli, &home, &names);
    }
    if (rc == TIDE_STOPPED || (rc == TIDE_OK && interrupted)) {
        cli->exit_code = CLI_EXIT_INTERRUPTED;
        rc = TIDE_OK;
    } else if (rc == TIDE_OK && (progress.bad > 0 || progress.failed > 0)) {
        cli->exit_code = CLI_EXIT_BAD_ITEMS;
    }
    const tide_status closed = mail_home_close(cli, &home);
    return rc == TIDE_OK ? closed : rc;
}

tide_status cli_mail_status(struct cli *cli)
{
    struct mail_home home = {0};
    struct names names = {.count = 0};
    tide_status rc = mail_home_open(cli, &home);
    if (rc == TIDE_OK)
        rc = which(cli, &home, &names);
    if (rc == TIDE_OK)
        report(cli, &home, &names);
    const tide_status closed = mail_home_close(cli, &home);
    return rc == TIDE_OK ? closed : rc;
}
