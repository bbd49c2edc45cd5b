/* search.c - `tidemark reader search`: what is here of a mailbox, archived or cached, by a query. */
#include "mail/commands/home.h"
#include "mail/search/search.h"
#include "reader/commands/home.h"

enum { LIMIT = 50, LIMIT_MAX = 500, NEXT_BYTES_MAX = 1000 };

static tide_status query_of(struct cli *cli, tide_query **query_out)
{
    tide_auto_buf words = tide_buf_in(cli->mem, TIDE_QUERY_BYTES_MAX);
    tide_status rc = mail_query_words(cli, 1, TIDE_QUERY_BYTES_MAX, &words);
    if (rc == TIDE_OK)
        rc = tide_query_parse(tide_buf_text(&words), (int64_t)cli->now_unix_ms, TIDE_QUERY_LOCAL,
                              cli->mem, query_out, &cli->err);
    return cli_hint(cli, rc, "`tidemark mail search --help` lists the operators.");
}

static tide_status find(const struct reader_home *home, struct tide_finding *finding)
{
    struct cli *cli = home->cli;
    tide_auto_buf next = tide_buf_in(cli->mem, NEXT_BYTES_MAX);
    tide_json items;
    finding->email = home->email;
    finding->cancel = cli->cancel;
    tide_json_array(&items);
    const tide_status rc = tide_reader_find(&home->mailbox, finding, &items, &next, &cli->err);
    if (rc == TIDE_OK) {
        reader_rows_print(cli, items.value);
        if (next.bytes > 0)
            cli_print(cli, "more: tidemark reader search ... --after '%s'\n", tide_buf_cstr(&next));
        tide_json_set_cstr(&cli->json, "next", next.bytes == 0 ? NULL : tide_buf_cstr(&next));
    }
    tide_json_set(&cli->json, "items", &items);
    return cli_hint(cli, rc, "`tidemark mail search --help` lists the operators.");
}

tide_status cli_reader_search(struct cli *cli)
{
    struct reader_home home;
    tide_query *query = NULL;
    const char *after = cli_flag(cli, "after");
    struct tide_finding finding = {.after = after == NULL ? TIDE_TEXT("") : tide_text_of(after)};
    uint64_t limit = LIMIT;
    if (cli_flag(cli, "limit") != NULL)
        TIDE_TRY(cli_number(cli, cli_flag(cli, "limit"), "--limit", &limit));
    finding.limit = limit == 0 || limit > LIMIT_MAX ? LIMIT : (uint32_t)limit;
    TIDE_TRY(query_of(cli, &query));
    finding.query = query;
    tide_status rc = reader_home_open(cli, cli->arguments[0], &home);
    if (rc == TIDE_OK)
        rc = find(&home, &finding);
    reader_home_close(&home);
    tide_query_free(query);
    return rc;
}
