/* import.c - `tidemark mail import`: mail from files into an archive (M17).
 *
 * Beside a process that has the home, that process imports, with the archive that it has open, and this
 * one shows its progress (E12.2, decision 74). */
#include "mail/commands/home.h"

#include "base/clocktext.h"
#include "mail/files/import.h"
#include "mail/result.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

/* Less than a job may carry: quotation marks and escapes come with it. */
enum { PATH_BYTES = 4096, PATHS_BYTES_MAX = 40 << 10, TICK_US = 100000 };

struct importing {
    struct cli *cli;
    struct mail_home home; /* its places */
    char email[256];
    struct tide_import wanted;
    struct tide_imported imported;
    uint64_t indexed;
    bool handed_over;
};

/* ---- showing ---- */

static void show_counts(struct cli *cli, const struct tide_imported *imported, uint64_t indexed)
{
    char size[TIDE_SIZE_TEXT_BYTES];
    tide_size_human(imported->read_bytes, size);
    if (indexed > 0)
        cli_progress(cli, "indexing: %" PRIu64, indexed);
    else
        cli_progress(cli, "%" PRIu64 " messages, %" PRIu64 " stored  %s read", imported->messages,
                     imported->stored, size);
}

static void show(const struct tide_imported *imported, void *arg)
{
    const struct importing *self = arg;
    show_counts(self->cli, imported, self->indexed);
}

static void report(struct importing *self)
{
    struct cli *cli = self->cli;
    const struct tide_imported *imported = &self->imported;
    const bool dry_run = self->wanted.dry_run;
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
        {"takeout", imported->takeout, "came from Google Takeout, with labels and conversation"},
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
    cli_print(cli, "%s: %" PRIu64 " message%s %s (%s), %" PRIu64 " %s already there\n", self->email,
              imported->stored, imported->stored == 1 ? "" : "s",
              dry_run ? "would be stored" : "stored", size, imported->there,
              imported->there == 1 ? "was" : "were");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tide_json_set_u64(&cli->json, rows[i].name, rows[i].count);
        if (rows[i].text != NULL && rows[i].count > 0)
            cli_print(cli, "  %" PRIu64 " %s\n", rows[i].count, rows[i].text);
    }
    tide_json_set_cstr(&cli->json, "account", self->email);
    tide_json_set_bool(&cli->json, "dry_run", dry_run);
    tide_json_set_bool(&cli->json, "handed_over", self->handed_over);
}

/* ---- where to ---- */

static tide_status account_of(struct importing *self)
{
    struct cli *cli = self->cli;
    const char *named = cli_flag(cli, "account");
    if (named != NULL && !tide_import_is_address(named))
        return cli_wrong(cli, "Give an address like you@example.com.",
                         "\"%.100s\" is not an e-mail address", named);
    if (named != NULL) {
        mail_home_spelling(cli, named, self->email);
        if (self->email[0] != '\0')
            return TIDE_OK;
    }
    const tide_status rc = mail_home_account(cli, &self->home, named, self->email);
    if (rc == TIDE_NOT_FOUND)
        return cli_fail(cli, TIDE_INVALID,
                        "Name the new archive with --account you@example.com. It needs no sign-in.",
                        "there is no mail archive yet");
    return rc;
}

/* In a dry run *archive_out is NULL if there is no archive. */
static tide_status archive_of(struct importing *self, const char *dir, tide_archive **archive_out)
{
    struct cli *cli = self->cli;
    const bool dry_run = self->wanted.dry_run;
    const struct tide_archive_options options = {.dir = dir,
                                                 .account = self->email,
                                                 .world = cli->world,
                                                 .read_only = dry_run,
                                                 .index_later = true,
                                                 .lean = true};
    tide_status rc = (dry_run ? tide_archive_open : tide_archive_open_next)(&options, cli->mem,
                                                                            archive_out, &cli->err);
    if (rc == TIDE_NOT_FOUND && dry_run) {
        cli->err = (tide_error){TIDE_OK, 0, ""};
        return TIDE_OK;
    }
    return cli_hint(cli, rc, "Wait for the other process, or stop it, and run this command again.");
}

/* Says how to resume. */
static tide_status resumable(struct cli *cli, tide_status rc)
{
    return cli_hint(
        cli, rc,
        rc == TIDE_DISK_FULL
            ? "Stored mail is safe. Free disk space, then run the command again to resume."
            : "Stored mail is safe; run the command again to resume.");
}

/* In this process, which has the home, or only reads. */
static tide_status import_here(struct importing *self)
{
    struct cli *cli = self->cli;
    struct tide_import *wanted = &self->wanted;
    char dir[CLI_PATH_BYTES + 300];
    tide_archive *archive = NULL;
    (void)snprintf(dir, sizeof dir, "%s/%s", self->home.archive_dir, self->email);
    tide_status rc = archive_of(self, dir, &archive);
    wanted->archive = archive;
    wanted->disk_path = dir;
    wanted->free_min_bytes = cli_free_min(cli);
    wanted->progress = show;
    wanted->progress_arg = self;
    if (rc == TIDE_OK)
        rc = tide_import_run(cli->world, wanted, cli->arguments, cli->arguments_count, cli->mem,
                             &self->imported, &cli->err);
    if (rc == TIDE_OK && !wanted->dry_run) /* so that searches find them */
        rc = tide_import_index(wanted, &self->imported, &self->indexed, &cli->err);
    rc = resumable(cli, rc);
    const tide_status closed = tide_archive_close(archive, &cli->err);
    return rc == TIDE_OK ? closed : rc;
}

struct asking {
    struct importing *importing;
    struct cli_ask ask;
    tide_arena texts;
    const char *paths[CLI_ARGUMENTS_MAX]; /* absolute */
    uint64_t answered;                    /* the job that `answer` is of; 0: none has begun */
    struct tide_import_answer answer;
};

/* ---- in the process that has the home: what is asked ---- */

/* The other process has another working directory. */
static tide_status paths_complete(struct asking *self)
{
    struct cli *cli = self->importing->cli;
    char here[PATH_BYTES];
    size_t bytes = 0;
    if (getcwd(here, sizeof here) == NULL)
        return cli_fail(cli, TIDE_IO, "Give absolute paths.",
                        "the working directory cannot be read: %s", strerror(errno));
    for (size_t i = 0; i < cli->arguments_count; i++) {
        char path[2 * PATH_BYTES];
        const char *named = cli->arguments[i];
        const bool whole = named[0] == '/';
        if (!tide_utf8_is_clean(tide_text_of(named)) ||
            (!whole && !tide_utf8_is_clean(tide_text_of(here))))
            return cli_fail(
                cli, TIDE_INVALID,
                "Name the directory it is in by an absolute path, or stop that process.",
                "the path %.200s is not UTF-8, and cannot be told process %" PRIu64
                ", which works in this directory",
                named, self->ask.pid);
        const int used =
            snprintf(path, sizeof path, "%s%s%s", whole ? "" : here, whole ? "" : "/", named);
        bytes += (size_t)used;
        if (used < 0 || (size_t)used >= PATH_BYTES || bytes > PATHS_BYTES_MAX)
            return cli_fail(cli, TIDE_INVALID,
                            "Name the directory they are in, or import some of them at a time.",
                            "the names of the files are too long for process %" PRIu64
                            ", which works in this directory",
                            self->ask.pid);
        self->paths[i] = tide_arena_copy(&self->texts, path, (size_t)used);
        if (self->paths[i] == NULL)
            return cli_fail(cli, TIDE_NO_MEMORY, "Free some memory.", "out of memory");
    }
    return TIDE_OK;
}

static tide_status send(struct asking *self)
{
    struct importing *importing = self->importing;
    struct cli *cli = importing->cli;
    const struct tide_import_ask wanted = {.email = importing->email,
                                           .label = importing->wanted.label,
                                           .paths = self->paths,
                                           .paths_count = cli->arguments_count};
    char dedupe[64];
    tide_json payload;
    TIDE_TRY(paths_complete(self));
    TIDE_TRY(cli_ledger_read(cli));
    if (!cli->quiet && !cli->want_json)
        (void)fprintf(stderr, "Process %" PRIu64 " works in this directory and does this.\n",
                      self->ask.pid);
    importing->handed_over = true;
    tide_import_dedupe(importing->email, dedupe);
    tide_json_object(&payload);
    tide_import_ask(&wanted, &payload);
    return cli_ask_job(&self->ask, TIDE_MAIL_IMPORT, NULL, dedupe, &payload);
}

/* ---- ... what it does ---- */

static void take_answer(struct asking *self)
{
    json_t *result = NULL;
    if (!self->ask.ours)
        return;
    if (tide_result_get(tide_ledger_rows(self->importing->cli->ledger), self->ask.job, &result,
                        NULL) != TIDE_OK)
        return;
    tide_import_answer(result, &self->answer);
    self->answered = self->ask.job;
    json_decref(result);
}

static tide_status interrupted(struct cli *cli)
{
    return cli_fail(cli, TIDE_CANCELED, "Stored mail is safe; run the command again to resume.",
                    "interrupted");
}

/* Until the job has ended. */
static tide_status wait(struct asking *self)
{
    struct cli *cli = self->importing->cli;
    bool stopping = false;
    tide_status rc = TIDE_TIMEOUT;
    while (rc == TIDE_TIMEOUT) {
        (void)tide_world_sleep_until(cli->world, tide_world_now_us(cli->world) + TICK_US, NULL);
        rc = cli_ask_look(&self->ask);
        take_answer(self);
        if (self->answered == self->ask.job)
            show_counts(cli, &self->answer.imported, self->answer.indexed);
        if (rc != TIDE_TIMEOUT || !cli_interrupted(cli) || stopping)
            continue;
        stopping = true;
        if (!cli_ask_cancel(&self->ask))
            rc = TIDE_CANCELED; /* it waits for the import of another command */
    }
    return stopping && rc == TIDE_CANCELED ? interrupted(cli) : rc;
}

/* ---- ... and how it ended ---- */

/* What it could not read, and this process can. */
static const char *hidden(const struct asking *self)
{
    const size_t count = self->importing->cli->arguments_count;
    for (size_t i = 0; i < count; i++) {
        const char *path = self->paths[i];
        const char *at = strstr(self->answer.error, path);
        if (at != NULL && at[strlen(path)] != '/' && access(path, R_OK) == 0)
            return path;
    }
    return NULL;
}

static tide_status failed(struct asking *self)
{
    struct cli *cli = self->importing->cli;
    const struct tide_import_answer *answer = &self->answer;
    const bool reading = answer->status == TIDE_NOT_FOUND || answer->status == TIDE_IO;
    const tide_status rc = tide_error_set(&cli->err, answer->status, "%s", answer->error);
    if (reading && hidden(self) != NULL) {
        char hint[sizeof cli->hint];
        (void)snprintf(hint, sizeof hint,
                       "Process %" PRIu64
                       " cannot read it, perhaps because its service has a /tmp of "
                       "its own. Move the file to where it can; stored mail is safe.",
                       self->ask.pid);
        return cli_hint(cli, rc, hint);
    }
    return resumable(cli, rc);
}

static tide_status ended(struct asking *self, tide_status rc, bool *again_out)
{
    struct cli *cli = self->importing->cli;
    if (rc != TIDE_OK && self->ask.gone) {
        *again_out = self->answered == 0;
        return cli_fail(cli, TIDE_STOPPED,
                        "Stored mail is safe; run the command again: nothing is stored twice.",
                        "process %" PRIu64 ", which did the import, ended after %" PRIu64
                        " messages",
                        self->ask.pid, self->answer.imported.messages);
    }
    if (rc != TIDE_OK)
        return resumable(cli, rc);
    if (self->answered != self->ask.job)
        return cli_fail(cli, TIDE_BUG, "Run the command again: nothing is stored twice.",
                        "job %" PRIu64 " did not say what it imported", self->ask.job);
    self->importing->imported = self->answer.imported;
    return self->answer.status == TIDE_OK ? TIDE_OK : failed(self);
}

/* Has that process import, shows its progress, and fills `imported`.  *again_out: it does not answer, or
 * it ended before it began.  The caller closes the ledger. */
static tide_status import_there(struct importing *importing, bool *again_out)
{
    struct cli *cli = importing->cli;
    struct asking *self = tide_mem_new(cli->mem, sizeof *self);
    if (self == NULL)
        return cli_fail(cli, TIDE_NO_MEMORY, "Free some memory.", "out of memory");
    self->importing = importing;
    tide_arena_init(&self->texts, cli->mem, 4 * PATHS_BYTES_MAX);
    tide_status rc = cli_ask_open(cli, NULL, &self->ask);
    *again_out = rc == TIDE_NOT_FOUND;
    if (rc == TIDE_OK) {
        rc = send(self);
        if (rc == TIDE_OK)
            rc = wait(self);
        rc = ended(self, rc, again_out);
    }
    cli_ask_close(&self->ask);
    tide_arena_done(&self->texts);
    tide_mem_free(cli->mem, self, sizeof *self);
    return rc;
}

/* ---- in either ---- */

static tide_status in_use(struct cli *cli, const tide_error *holder)
{
    cli->hint[0] = '\0';
    return cli_fail(
        cli, TIDE_BUSY,
        "Wait until the sync, import or engine there ends, or stop it, and run this command again.",
        "%.150s is in use (%.190s)", cli->state_dir, holder->text);
}

/* In the process that has the home, or here if none has it. */
static tide_status import_anywhere(struct importing *self)
{
    struct cli *cli = self->cli;
    struct cli_tries tries = {0};
    tide_error holder = {TIDE_OK, 0, ""};
    TIDE_TRY(cli_ledger_choose(cli));
    while (!cli_interrupted(cli) && cli_try(cli, &tries)) {
        bool again = false;
        tide_status rc = cli_lock(cli);
        if (rc == TIDE_OK)
            return import_here(self);
        if (rc != TIDE_BUSY)
            return rc;
        holder = cli->err;
        if (cli->shared != NULL)
            break; /* another process may hold the account: it would not know */
        cli->hint[0] = '\0';
        rc = import_there(self, &again);
        cli_ledger_close(cli);
        if (!again)
            return rc;
        if (tries.count == 1 && !cli->quiet && !cli->want_json)
            (void)fprintf(stderr, "Another process works in this directory; waiting for it.\n");
        cli->err = (tide_error){TIDE_OK, 0, ""};
    }
    return cli_interrupted(cli) ? interrupted(cli) : in_use(cli, &holder);
}

tide_status cli_mail_import(struct cli *cli)
{
    struct importing self = {.cli = cli,
                             .wanted = {.label = cli_flag(cli, "label"),
                                        .dry_run = cli_flag(cli, "dry-run") != NULL,
                                        .now_ms = (int64_t)cli->now_unix_ms,
                                        .cancel = cli_interruptible(cli)}};
    tide_status rc = cli_settings(cli);
    if (rc == TIDE_OK)
        rc = mail_home_places(cli, &self.home);
    if (rc == TIDE_OK)
        rc = account_of(&self);
    if (rc == TIDE_OK)
        rc = self.wanted.dry_run ? import_here(&self) : import_anywhere(&self);
    cli_progress(cli, NULL);
    if (rc == TIDE_OK)
        report(&self);
    cli_ledger_close(cli);
    return rc;
}
