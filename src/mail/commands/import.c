/* import.c - `tidemark mail import`: mail from files into an archive (M17). */
#include "mail/commands/home.h"

#include "base/clocktext.h"
#include "mail/files/import.h"
#include "mail/mime/message.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- showing ---- */

static void show(const struct tide_imported *imported, void *arg)
{
    char size[TIDE_SIZE_TEXT_BYTES];
    tide_size_human(imported->read_bytes, size);
    cli_progress(arg, "%" PRIu64 " messages, %" PRIu64 " stored  %s read", imported->messages,
                 imported->stored, size);
}

static void report(struct cli *cli, const char *email, bool dry_run,
                   const struct tide_imported *imported)
{
    char size[TIDE_SIZE_TEXT_BYTES];
    const struct {
        const char *name;
        uint64_t count;
        const char *text; /* NULL: in JSON only */
    } rows[] = {
        {"files", imported->files, NULL},
        {"messages", imported->messages, NULL},
        {"stored", imported->stored, NULL},
        {"there", imported->there, NULL},
        {"bytes", imported->bytes, NULL},
        {"takeout", imported->takeout, "are from Google Takeout, with labels and conversation"},
        {"held", imported->held,
         "have their Gmail id: a sync replaces their bytes by Gmail's own, newest first"},
        {"dated_by_header", imported->by_header, "have the time of their Date header"},
        {"dated_by_file", imported->by_file, "have the time of their file: they have no date"},
        {"undated", imported->undated, "have no date at all and are stored with the year 1970"},
        {"changed", imported->changed, "have changed since they were exported; stored as they are"},
        {"empty", imported->empty, "were empty and left out"},
        {"too_long", imported->too_long, "were longer than 200 MiB and left out"},
        {"files_skipped", imported->files_skipped, "files were neither mail nor a mailbox"},
    };
    tide_size_human(imported->bytes, size);
    cli_print(cli, "%s: %" PRIu64 " message%s %s (%s), %" PRIu64 " %s already there\n", email,
              imported->stored, imported->stored == 1 ? "" : "s",
              dry_run ? "would be stored" : "stored", size, imported->there,
              imported->there == 1 ? "was" : "were");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tide_json_set_u64(&cli->json, rows[i].name, rows[i].count);
        if (rows[i].text != NULL && rows[i].count > 0)
            cli_print(cli, "  %" PRIu64 " %s\n", rows[i].count, rows[i].text);
    }
    tide_json_set_cstr(&cli->json, "account", email);
    tide_json_set_bool(&cli->json, "dry_run", dry_run);
}

/* ---- where to ---- */

/* An address that is safe as a directory name: with an @ inside and no path in it. */
static bool is_address(const char *email)
{
    const char *at = strchr(email, '@');
    return at != NULL && at != email && at[1] != '\0' && email[0] != '.' && strlen(email) < 200 &&
           strpbrk(email, "/\\ \t\r\n") == NULL;
}

static tide_status account_of(struct cli *cli, struct mail_home *home, char email[256])
{
    const char *named = cli_flag(cli, "account");
    if (named != NULL && !is_address(named))
        return cli_wrong(cli, "Give an address like you@example.com.",
                         "\"%.100s\" is not an e-mail address", named);
    const tide_status rc = mail_home_account(cli, home, named, email);
    if (rc == TIDE_NOT_FOUND)
        return cli_fail(cli, TIDE_INVALID,
                        "Name the new archive with --account you@example.com. It needs no sign-in.",
                        "there is no mail archive yet");
    return rc;
}

/* In a dry run *archive_out is NULL if there is no archive. */
static tide_status archive_of(struct cli *cli, const char *dir, const char *email, bool dry_run,
                              tide_archive **archive_out)
{
    const struct tide_archive_options options = {.dir = dir,
                                                 .account = email,
                                                 .world = cli->world,
                                                 .read_only = dry_run,
                                                 .index_later = true,
                                                 .lean = true};
    tide_status rc = tide_archive_open(&options, cli->mem, archive_out, &cli->err);
    if (rc == TIDE_NOT_FOUND && dry_run) {
        cli->err = (tide_error){TIDE_OK, 0, ""};
        return TIDE_OK;
    }
    return cli_hint(cli, rc, "Wait for the other process, or stop it, and run this command again.");
}

static tide_status guard(struct cli *cli)
{
    const tide_status rc = cli_lock(cli);
    if (rc != TIDE_BUSY)
        return rc;
    char holder[200];
    (void)snprintf(holder, sizeof holder, "%.190s", cli->err.text);
    cli->hint[0] = '\0';
    return cli_fail(
        cli, rc,
        "Wait until the sync or engine there ends, or stop it, and run this command again.",
        "%.150s is in use (%s)", cli->state_dir, holder);
}

/* Indexes all stored messages before the command ends, so that searches find them. */
static tide_status index_all(struct cli *cli, tide_archive *archive, const tide_cancel *cancel)
{
    tide_status rc = TIDE_OK;
    uint64_t indexed = 0;
    for (uint64_t done = 1; rc == TIDE_OK && done > 0;) {
        if (tide_canceled(cancel) != TIDE_CANCEL_NONE)
            return TIDE_OK; /* the next writer continues */
        done = 0;
        rc = tide_archive_index(archive, 500, &done, &cli->err);
        indexed += done;
        cli_progress(cli, "indexing: %" PRIu64, indexed);
    }
    return rc;
}

tide_status cli_mail_import(struct cli *cli)
{
    struct mail_home home = {0};
    char email[256];
    char dir[CLI_PATH_BYTES + 300];
    tide_archive *archive = NULL;
    struct tide_imported imported = {0};
    struct tide_import wanted = {.label = cli_flag(cli, "label"),
                                 .dry_run = cli_flag(cli, "dry-run") != NULL,
                                 .now_ms = (int64_t)cli->now_unix_ms,
                                 .cancel = cli_interruptible(cli),
                                 .progress = show,
                                 .progress_arg = cli};
    tide_status rc = cli_settings(cli);
    if (rc == TIDE_OK)
        rc = mail_home_places(cli, &home);
    if (rc == TIDE_OK)
        rc = account_of(cli, &home, email);
    if (rc == TIDE_OK && !wanted.dry_run)
        rc = guard(cli);
    if (rc == TIDE_OK) {
        (void)snprintf(dir, sizeof dir, "%s/%s", home.archive_dir, email);
        rc = archive_of(cli, dir, email, wanted.dry_run, &archive);
    }
    if (rc == TIDE_OK) {
        wanted.archive = archive;
        wanted.disk_path = dir;
        wanted.free_min_bytes = cli_free_min(cli);
        rc = tide_import_run(cli->world, &wanted, cli->arguments, cli->arguments_count, cli->mem,
                             &imported, &cli->err);
    }
    if (rc == TIDE_OK && !wanted.dry_run)
        rc = index_all(cli, archive, wanted.cancel);
    cli_progress(cli, NULL);
    if (rc == TIDE_OK)
        report(cli, email, wanted.dry_run, &imported);
    rc =
        cli_hint(cli, rc,
                 rc == TIDE_DISK_FULL
                     ? "Stored mail is safe. Free disk space, then run the command again to resume."
                     : "Stored mail is safe; run the command again to resume.");
    const tide_status closed = tide_archive_close(archive, &cli->err);
    cli_ledger_close(cli);
    return rc == TIDE_OK ? closed : rc;
}
