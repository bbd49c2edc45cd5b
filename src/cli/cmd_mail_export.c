/* tidemark mail export: messages as files (M17). */
#include "cli/mail_home.h"

#include "base/clocktext.h"
#include "mail/export.h"

#include <inttypes.h>

static tide_status format_of(struct cli *cli, tide_export_format *format_out)
{
    const char *name = cli_flag(cli, "format");
    if (name == NULL || strcmp(name, "eml") == 0) {
        *format_out = TIDE_EXPORT_EML;
        return TIDE_OK;
    }
    if (strcmp(name, "maildir") == 0) {
        *format_out = TIDE_EXPORT_MAILDIR;
        return TIDE_OK;
    }
    return cli_fail(cli, TIDE_INVALID, "There are: eml, maildir.", "there is no format \"%.50s\"",
                    name);
}

tide_status cli_mail_export(struct cli *cli)
{
    struct mail_home home = {0};
    char email[256];
    char size[TIDE_SIZE_TEXT_BYTES];
    tide_archive *archive = NULL;
    tide_query *query = NULL;
    struct tide_exported exported = {0};
    struct tide_export wanted = {.dir = cli->arguments[0]};
    tide_status rc = format_of(cli, &wanted.format);
    /* Everything means everything: spam and trash too. */
    const char *words = cli->arguments_count > 1 ? cli->arguments[1] : "in:anywhere";
    if (rc == TIDE_OK)
        rc = tide_query_parse(tide_text_of(words), (int64_t)cli->now_unix_ms, 0, cli->mem, &query,
                              &cli->err);
    rc = cli_hint(cli, rc, "`tidemark mail search --help` shows the operators.");
    wanted.query = query;
    if (rc == TIDE_OK)
        rc = mail_home_archive(cli, &home, cli_flag(cli, "account"), email, &archive);
    if (rc == TIDE_OK)
        rc = tide_export_run(cli->world, archive, &wanted, cli->mem, &exported, &cli->err);
    rc = cli_hint(cli, rc, "What was written stays; run the command again to go on.");
    tide_size_human(exported.bytes, size);
    if (rc == TIDE_OK)
        cli_print(cli, "%" PRIu64 " messages written (%s), %" PRIu64 " were there already\n",
                  exported.written, size, exported.there);
    tide_json_set_u64(&cli->json, "written", exported.written);
    tide_json_set_u64(&cli->json, "there", exported.there);
    tide_json_set_u64(&cli->json, "bytes", exported.bytes);
    tide_query_free(query);
    const tide_status closed = tide_archive_close(archive, &cli->err);
    return rc == TIDE_OK ? closed : rc;
}
