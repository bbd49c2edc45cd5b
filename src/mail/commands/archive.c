/* archive.c - `tidemark mail archive`: removes mail from Gmail that is safely stored (M11-M15a). */
#include "mail/commands/archive.h"

#include "base/clocktext.h"
#include "engine/tuning.h"
#include "mail/rows.h"
#include "mail/status.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    SYNC_AFTER_BATCHES = 10, /* otherwise every batch reads the history of all batches before it */
};

/* ---- what is asked for ---- */

static tide_status usage(struct cli *cli, const char *hint, const char *what, const char *value)
{
    cli->exit_code = CLI_EXIT_USAGE;
    return cli_fail(cli, TIDE_INVALID, hint, "%s \"%.100s\"", what, value);
}

static tide_status mode_of(struct cli *cli, tide_removal_mode *mode_out)
{
    const char *name = cli_flag(cli, "mode");
    *mode_out = TIDE_REMOVE_FROM_INBOX;
    for (int mode = TIDE_REMOVE_FROM_INBOX; name != NULL; mode++) {
        if (mode > TIDE_REMOVE_FOR_GOOD)
            return usage(cli, "Modes: inbox, trash, delete.", "there is no mode", name);
        *mode_out = (tide_removal_mode)mode;
        if (strcmp(name, tide_removal_mode_name(*mode_out)) == 0)
            break;
    }
    return TIDE_OK;
}

/* Filters come before the query, so that the query can only narrow them. */
static tide_status add_filter(struct cli *cli, tide_buf *query, const char *flag, const char *name)
{
    const char *value = cli_flag(cli, flag);
    if (value == NULL)
        return TIDE_OK;
    if (value[0] == '\0' || strpbrk(value, "\"(){}") != NULL)
        return usage(cli, "Give a value without quotes and brackets.",
                     "not a value for a filter:", value);
    return tide_buf_print(query, "%s%s:\"%s\"", query->bytes == 0 ? "" : " ", name, value);
}

static tide_status query_add_words(struct cli *cli, tide_buf *query)
{
    const bool filtered = query->bytes > 0;
    if (cli->arguments_count == 0)
        return TIDE_OK;
    if (filtered)
        TIDE_TRY(tide_buf_add_text(query, " ("));
    TIDE_TRY(mail_query_words(cli, 0, TIDE_ARCHIVING_QUERY_BYTES, query));
    return filtered ? tide_buf_add_text(query, ")") : TIDE_OK;
}

static tide_status query_of(struct cli *cli, char query_out[TIDE_ARCHIVING_QUERY_BYTES + 1])
{
    tide_auto_buf query = tide_buf_in(cli->mem, TIDE_ARCHIVING_QUERY_BYTES);
    tide_status rc = add_filter(cli, &query, "older-than", "older_than");
    if (rc == TIDE_OK)
        rc = add_filter(cli, &query, "label", "label");
    if (rc == TIDE_OK)
        rc = add_filter(cli, &query, "larger-than", "larger");
    if (rc == TIDE_OK)
        rc = query_add_words(cli, &query);
    if (rc == TIDE_FULL)
        rc = cli_fail(cli, TIDE_INVALID, "Use a shorter query.", "the query is too long");
    if (rc == TIDE_OK && query.bytes == 0) {
        cli->exit_code = CLI_EXIT_USAGE;
        rc = cli_fail(
            cli, TIDE_INVALID,
            "Give a query or a filter, such as --older-than 1y. For all mail, use in:anywhere.",
            "no messages selected");
    }
    if (rc == TIDE_OK)
        (void)snprintf(query_out, TIDE_ARCHIVING_QUERY_BYTES + 1, "%s", tide_buf_cstr(&query));
    return rc;
}

static tide_status read_flags(struct archiving *archiving)
{
    struct cli *cli = archiving->cli;
    const char *limit = cli_flag(cli, "limit");
    const bool resume = cli_flag(cli, "resume") != NULL;
    archiving->dry = cli_flag(cli, "dry-run") != NULL;
    archiving->sync = !archiving->dry && cli_flag(cli, "no-sync") == NULL;
    archiving->ask.query = archiving->query;
    archiving->ask.email = archiving->email;
    archiving->ask.now_ms = cli->now_unix_ms;
    unsigned beside = 1;
    beside += cli_flag(cli, "yes") != NULL;
    beside += cli_flag(cli, "no-sync") != NULL;
    if (resume && (cli->arguments_count > 0 || cli->values_count > beside))
        return usage(cli, "Give only --yes and --no-sync with it.",
                     "a run keeps its own query and flags; --resume", cli_flag(cli, "resume"));
    if (resume)
        return cli_number(cli, cli_flag(cli, "resume"), "--resume", &archiving->manifest.id);
    TIDE_TRY(mode_of(cli, &archiving->ask.mode));
    if (limit != NULL)
        TIDE_TRY(cli_number(cli, limit, "--limit", &archiving->ask.limit));
    return query_of(cli, archiving->query);
}

/* ---- the guard ---- */

static tide_status stored_in(struct archiving *archiving, uint64_t *stored_out)
{
    struct cli *cli = archiving->cli;
    struct tide_mail_kept kept = {.stored = 0};
    struct mail_home places = {.engine = NULL};
    tide_archive *archive = NULL;
    char email[256];
    tide_status rc = mail_home_archive(cli, &places, archiving->email, email, &archive);
    if (rc == TIDE_OK)
        rc = tide_mail_kept(archive, &kept, &cli->err);
    (void)tide_archive_close(archive, NULL);
    *stored_out = kept.stored;
    return rc;
}

/* Asks for consent to what the manifest still names. */
static tide_status confirm(struct archiving *archiving)
{
    struct cli *cli = archiving->cli;
    const struct tide_manifest *run = &archiving->manifest;
    const uint64_t messages = run->entries[TIDE_REMOVAL_PLANNED] + run->entries[TIDE_REMOVAL_ASKED];
    const uint64_t bytes = run->bytes[TIDE_REMOVAL_PLANNED] + run->bytes[TIDE_REMOVAL_ASKED];
    uint64_t stored = 0;
    char size[TIDE_SIZE_TEXT_BYTES];
    char typed[64] = "";
    char wanted[32];
    TIDE_TRY(stored_in(archiving, &stored));
    const uint64_t guard =
        tide_tuning_engine(tide_settings_of(cli->settings, archiving->email)).archive_guard;
    const bool much = messages > guard || messages > stored / 4;
    const bool final = archiving->ask.mode == TIDE_REMOVE_FOR_GOOD;
    if (messages == 0 || cli_flag(cli, "yes") != NULL || (!much && !final))
        return TIDE_OK;
    tide_size_human(bytes, size);
    if (isatty(STDIN_FILENO) != 1 || isatty(STDERR_FILENO) != 1)
        return cli_fail(
            cli, TIDE_INVALID, "Nothing was changed. Check with --dry-run, then add --yes.",
            "%" PRIu64 " message%s (%s) would be %s, and there is no terminal to confirm it",
            messages, messages == 1 ? "" : "s", size, archiving_words(archiving->ask.mode));
    (void)snprintf(wanted, sizeof wanted, "%" PRIu64, messages);
    (void)fprintf(
        stderr, "%" PRIu64 " message%s (%s) of %s will be %s.%s\nType %s to continue: ", messages,
        messages == 1 ? "" : "s", size, archiving->email, archiving_words(archiving->ask.mode),
        final ? " Gmail keeps no copy." : "", wanted);
    if (fgets(typed, sizeof typed, stdin) != NULL)
        typed[strcspn(typed, "\r\n")] = '\0';
    if (strcmp(typed, wanted) != 0)
        return cli_fail(cli, TIDE_CANCELED, "Nothing was changed.", "not confirmed");
    return TIDE_OK;
}

/* ---- the run ---- */

static tide_status batches(struct archiving *archiving)
{
    struct cli *cli = archiving->cli;
    tide_status rc = TIDE_OK;
    for (uint64_t done = 0; rc == TIDE_OK && archiving->manifest.ended_ms == 0; done++) {
        if (done > 0 && done % SYNC_AFTER_BATCHES == 0)
            rc = archiving_sync(archiving);
        if (rc == TIDE_OK)
            rc = archiving_batch(archiving);
        const tide_status read =
            tide_manifest_get(archiving_rows(archiving), archiving->manifest.id,
                              &archiving->manifest, rc == TIDE_OK ? &cli->err : NULL);
        rc = rc == TIDE_OK ? read : rc;
        archiving_show(archiving, archiving->manifest.ended_ms != 0);
    }
    return rc;
}

static tide_status remove_all(struct archiving *archiving)
{
    tide_status rc = batches(archiving);
    if (rc != TIDE_OK)
        return archiving_stopped(archiving, rc);
    TIDE_TRY(archiving_sync(archiving)); /* the archive learns the new labels */
    return archiving_report(archiving);
}

static tide_status new_run(struct archiving *archiving)
{
    json_auto_t *result = NULL;
    tide_status rc = archiving_choose(archiving, &result);
    if (rc == TIDE_OK && archiving->dry) {
        rc = archiving_dry(archiving, result);
    } else if (rc == TIDE_OK) {
        rc = tide_manifest_get(archiving_rows(archiving),
                               (uint64_t)json_integer_value(json_object_get(result, "manifest")),
                               &archiving->manifest, &archiving->cli->err);
        if (rc == TIDE_OK)
            rc = confirm(archiving);
        if (rc == TIDE_OK)
            rc = remove_all(archiving);
    }
    return rc;
}

/* ---- the command ---- */

/* The account of a new run; says what an earlier one has left. */
static tide_status aim_new(struct archiving *archiving)
{
    struct cli *cli = archiving->cli;
    struct tide_manifest left;
    tide_status rc =
        tide_manifest_run_left(archiving_rows(archiving), archiving->account, &left, &cli->err);
    if (rc == TIDE_OK && !cli->quiet)
        (void)fprintf(stderr,
                      "Manifest %" PRIu64 " is not finished, %" PRIu64 " messages are left; "
                      "resume it with `tidemark mail archive --resume %" PRIu64 "`.\n",
                      left.id,
                      left.entries[TIDE_REMOVAL_PLANNED] + left.entries[TIDE_REMOVAL_ASKED],
                      left.id);
    if (rc == TIDE_OK)
        tide_json_set_u64(&cli->json, "unfinished", left.id);
    return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
}

/* The manifest of a run to resume, and its account. */
static tide_status aim_resume(struct archiving *archiving)
{
    struct cli *cli = archiving->cli;
    struct tide_mail_row row;
    tide_status rc = tide_manifest_get(archiving_rows(archiving), archiving->manifest.id,
                                       &archiving->manifest, &cli->err);
    rc = cli_hint(cli, rc, "`tidemark mail manifest` lists the runs.");
    if (rc == TIDE_OK &&
        (archiving->manifest.ended_ms != 0 || archiving->manifest.planned_ms == 0 ||
         archiving->manifest.mode > TIDE_REMOVE_FOR_GOOD))
        rc = cli_fail(cli, TIDE_INVALID, "`tidemark mail manifest` lists the runs.",
                      "manifest %" PRIu64 " is finished, or is not a run of `mail archive`",
                      archiving->manifest.id);
    archiving->ask.mode = archiving->manifest.mode;
    TIDE_TRY(rc);
    TIDE_TRY(
        tide_mail_row_get(archiving_rows(archiving), archiving->manifest.account, &row, &cli->err));
    memcpy(archiving->email, row.email, sizeof row.email);
    return TIDE_OK;
}

static tide_status must_be_synced(struct archiving *archiving)
{
    struct cli *cli = archiving->cli;
    struct tide_mail_look look;
    tide_mail_look_init(&look, cli->mem);
    tide_status rc = tide_mail_look(cli->ledger, archiving->email, false, &look, &cli->err);
    rc = cli_hint(cli, rc, "`tidemark account list` shows the accounts.");
    if (rc == TIDE_OK && look.history_id[0] == '\0')
        rc = cli_fail(cli, TIDE_INVALID, "Run `tidemark mail sync` first.",
                      "%s is not fully synced yet", archiving->email);
    archiving->account = look.account;
    tide_mail_look_done(&look);
    return rc;
}

static tide_status must_be_allowed(struct archiving *archiving)
{
    struct cli *cli = archiving->cli;
    tide_secrets *secrets = NULL;
    tide_status rc = tide_secrets_open(cli->world, archiving->home.secrets_dir, TIDE_SECRETS_BEST,
                                       cli->mem, &secrets, &cli->err);
    if (rc == TIDE_OK)
        rc = tide_archiver_allowed(cli->world, secrets, archiving->email, archiving->ask.mode,
                                   cli->mem, &cli->err);
    tide_secrets_close(secrets);
    return rc == TIDE_AUTH ? archiving_needs_scope(archiving) : rc;
}

/* Reads only: nothing is opened that another process may have. */
static tide_status take_aim(struct archiving *archiving)
{
    struct cli *cli = archiving->cli;
    const bool resume = archiving->manifest.id != 0;
    bool has = false;
    tide_status rc = mail_home_places(cli, &archiving->home);
    if (rc == TIDE_OK && !resume)
        rc = mail_home_account(cli, &archiving->home, cli_flag(cli, "account"), archiving->email);
    if (rc == TIDE_OK)
        rc = cli_ledger_read(cli);
    if (rc == TIDE_OK)
        rc = tide_rows_has(archiving_rows(archiving), "mail_removal", "the manifests", &has,
                           &cli->err);
    if (rc == TIDE_OK && !has)
        rc = cli_fail(cli, TIDE_NOT_FOUND, "`tidemark account add gmail EMAIL` adds one.",
                      "there is no mail account");
    if (rc == TIDE_OK && resume)
        rc = aim_resume(archiving);
    if (rc == TIDE_OK)
        rc = must_be_synced(archiving);
    if (rc == TIDE_OK && !resume)
        rc = aim_new(archiving);
    return rc == TIDE_OK && !archiving->dry ? must_be_allowed(archiving) : rc;
}

static tide_status run(struct archiving *archiving)
{
    const bool resume = archiving->manifest.id != 0;
    TIDE_TRY(take_aim(archiving));
    TIDE_TRY(archiving_open(archiving));
    TIDE_TRY(archiving_sync(archiving));
    if (!resume)
        return new_run(archiving);
    TIDE_TRY(confirm(archiving));
    return remove_all(archiving);
}

tide_status cli_mail_archive_check(struct cli *cli)
{
    struct archiving archiving = {.cli = cli};
    TIDE_TRY(read_flags(&archiving));
    if (archiving.manifest.id != 0)
        return cli_wrong(cli, "Resume that run by hand.", "--resume cannot be scheduled");
    /* It would remove other mail as soon as the search is changed, without anyone to ask. */
    if (mail_query_names_saved(cli))
        return cli_wrong(cli, "Write the query itself.",
                         "a schedule that removes mail cannot name a saved search");
    const tide_status rc = tide_archiver_query_check(&archiving.ask, cli->mem, &cli->err);
    if (rc != TIDE_OK) {
        cli->exit_code = CLI_EXIT_USAGE;
        return cli_hint(cli, rc, "`tidemark mail search --help` lists the operators.");
    }
    return mail_home_account_later(cli, cli_flag(cli, "account"));
}

tide_status cli_mail_archive(struct cli *cli)
{
    struct archiving archiving = {.cli = cli};
    TIDE_TRY(read_flags(&archiving));
    archiving.home.archiver = true;
    archiving.home.no_sync = !archiving.sync;
    (void)cli_interruptible(cli);
    tide_status rc = run(&archiving);
    if (rc == TIDE_STOPPED && cli_interrupted(cli))
        cli->exit_code = CLI_EXIT_INTERRUPTED;
    if (archiving.home.engine != NULL)
        tide_engine_stop(archiving.home.engine);
    cli_ask_close(&archiving.ask_of);
    cli_display_close(&archiving.shown.display);
    const tide_status closed = mail_home_close(cli, &archiving.home);
    return rc == TIDE_OK ? closed : rc;
}
