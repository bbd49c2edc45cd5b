/* export.c - `tidemark mail export`: messages as files (M17). */
#include "mail/commands/home.h"

#include "base/clocktext.h"
#include "mail/files/export.h"

#include <inttypes.h>
#include <stdio.h>

static tide_status format_of(struct cli *cli, tide_export_format *format_out)
{
    static const struct {
        const char *name;
        tide_export_format format;
    } formats[] = {
        {"eml", TIDE_EXPORT_EML}, {"maildir", TIDE_EXPORT_MAILDIR}, {"mbox", TIDE_EXPORT_MBOX}};
    const char *name = cli_flag(cli, "format");
    const size_t path_bytes = strlen(cli->arguments[0]);
    if (name == NULL) /* a file name ending in .mbox means mbox */
        name = path_bytes > 5 && strcmp(cli->arguments[0] + path_bytes - 5, ".mbox") == 0 ? "mbox"
                                                                                          : "eml";
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        if (strcmp(name, formats[i].name) == 0) {
            *format_out = formats[i].format;
            return TIDE_OK;
        }
    }
    return cli_wrong(cli, "Formats: eml, maildir, mbox.", "there is no format \"%.50s\"", name);
}

struct showing {
    struct cli *cli;
    uint64_t total;
};

static void show(const struct tide_exported *exported, void *arg)
{
    struct showing *showing = arg;
    char size[TIDE_SIZE_TEXT_BYTES];
    tide_size_human(exported->bytes, size);
    cli_progress(showing->cli, "%" PRIu64 " of %" PRIu64 " messages  %s",
                 exported->written + exported->there, showing->total, size);
}

static void show_problem(const char *text, void *arg)
{
    const struct showing *showing = arg;
    cli_progress(showing->cli, NULL);
    (void)fprintf(stderr, "tidemark: warning: %s\n", text);
}

/* Names what was not written, and what to do; everything else is written. */
static void tell_problems(struct cli *cli, const struct tide_exported *exported)
{
    if (exported->kept > 0)
        (void)fprintf(stderr,
                      "tidemark: %" PRIu64
                      " existing file%s with other content not overwritten: name another "
                      "directory or file, or add --replace\n",
                      exported->kept, exported->kept == 1 ? "" : "s");
    if (exported->damaged > 0)
        (void)fprintf(stderr,
                      "tidemark: %" PRIu64
                      " message%s left out: run `tidemark mail verify` for details\n",
                      exported->damaged, exported->damaged == 1 ? " was" : "s were");
    if (exported->kept > 0 || exported->damaged > 0)
        cli->exit_code = CLI_EXIT_BAD_ITEMS;
}

tide_status cli_mail_export(struct cli *cli)
{
    struct mail_home home = {0};
    char email[256];
    char size[TIDE_SIZE_TEXT_BYTES];
    tide_archive *archive = NULL;
    tide_query *query = NULL;
    uint64_t bytes = 0;
    struct tide_exported exported = {0};
    struct showing showing = {.cli = cli};
    struct tide_export wanted = {.path = cli->arguments[0],
                                 .cancel = cli_interruptible(cli),
                                 .replace = cli_flag(cli, "replace") != NULL,
                                 .problem = show_problem,
                                 .progress = show,
                                 .progress_arg = &showing};
    tide_status rc = format_of(cli, &wanted.format);
    /* The default exports everything, including spam and trash. */
    tide_auto_buf words = tide_buf_in(cli->mem, TIDE_QUERY_BYTES_MAX);
    if (rc == TIDE_OK)
        rc = mail_query_words(cli, 1, TIDE_QUERY_BYTES_MAX, &words);
    if (rc == TIDE_OK)
        rc = tide_query_parse(
            cli->arguments_count > 1 ? tide_buf_text(&words) : TIDE_TEXT("in:anywhere"),
            (int64_t)cli->now_unix_ms, TIDE_QUERY_LOCAL, cli->mem, &query, &cli->err);
    rc = cli_hint(cli, rc, "`tidemark mail search --help` lists the operators.");
    wanted.query = query;
    if (rc == TIDE_OK)
        rc = cli_settings(cli);
    if (rc == TIDE_OK)
        rc = mail_home_archive(cli, &home, cli_flag(cli, "account"), email, &archive);
    if (rc == TIDE_OK)
        rc = tide_search_count(archive, query, &showing.total, &bytes, &cli->err);
    if (rc == TIDE_OK) {
        wanted.free_min_bytes = cli_free_min(cli);
        rc = tide_export_run(cli->world, archive, &wanted, cli->mem, &exported, &cli->err);
    }
    cli_progress(cli, NULL);
    rc = cli_hint(cli, rc,
                  rc == TIDE_DISK_FULL
                      ? "Free space there, or name another disk; run the command again to resume."
                      : "What was written stays; run the command again to resume.");
    tide_size_human(exported.bytes, size);
    if (rc == TIDE_OK)
        cli_print(cli, "%" PRIu64 " message%s written (%s), %" PRIu64 " %s already there\n",
                  exported.written, exported.written == 1 ? "" : "s", size, exported.there,
                  exported.there == 1 ? "was" : "were");
    if (rc == TIDE_OK)
        tell_problems(cli, &exported);
    tide_json_set_u64(&cli->json, "damaged", exported.damaged);
    tide_json_set_u64(&cli->json, "files_kept", exported.kept);
    tide_json_set_u64(&cli->json, "written", exported.written);
    tide_json_set_u64(&cli->json, "there", exported.there);
    tide_json_set_u64(&cli->json, "bytes", exported.bytes);
    tide_json_set_u64(&cli->json, "files", exported.files);
    tide_query_free(query);
    const tide_status closed = tide_archive_close(archive, &cli->err);
    return rc == TIDE_OK ? closed : rc;
}
