/* search.c - `mail_search`: a page of matches, with what a person would see in a list. */
#include "mail/tools/tools.h"

#include "mail/search/search.h"

enum { NEXT_BYTES_MAX = 4096, FIELD_BYTES_MAX = 500 };

struct matches {
    const struct tide_tool_call *call;
    tide_json list;
};

static bool match_add(const struct tide_found *found, void *arg)
{
    struct matches *matches = arg;
    tide_json one, written;
    tide_json_object(&one);
    mail_tool_stored(&found->stored, &one);
    tide_json_object(&written);
    tide_json_set_text(&written, "from", tide_utf8_cut(found->from, FIELD_BYTES_MAX));
    tide_json_set_text(&written, "subject", tide_utf8_cut(found->subject, FIELD_BYTES_MAX));
    /* The marks of matches in it are control characters, which are removed later. */
    tide_json_set_text(&written, "snippet", tide_utf8_cut(found->snippet, FIELD_BYTES_MAX));
    tide_json_set(&one, TIDE_TOOL_UNTRUSTED, &written);
    tide_json_append(&matches->list, &one);
    return tide_canceled(matches->call->cancel) == TIDE_CANCEL_NONE;
}

static tide_status page_run(struct tide_tool_call *call, tide_archive *archive,
                            const tide_query *query)
{
    const char *order = tide_tool_text(call, "order");
    struct matches matches = {.call = call};
    bool more = false;
    tide_buf next;
    const struct tide_search search = {
        .query = query,
        .ranked = order != NULL && strcmp(order, "best") == 0,
        .oldest_first = order != NULL && strcmp(order, "oldest") == 0,
        .limit = (uint32_t)tide_tool_number(call, "limit", MAIL_TOOL_SEARCH_DEFAULT),
        .after = tide_text_of(tide_tool_text(call, "page")),
        .snippets = true,
        .cancel = call->cancel,
    };
    tide_buf_init(&next, call->cli->mem, NEXT_BYTES_MAX);
    tide_json_array(&matches.list);
    tide_status rc =
        tide_search_run(archive, &search, match_add, &matches, &next, &more, &call->cli->err);
    tide_json_set(call->result, "messages", &matches.list);
    if (rc == TIDE_OK && more)
        tide_json_set_text(call->result, "next", tide_buf_text(&next));
    tide_buf_done(&next);
    return rc == TIDE_OK ? mail_tool_wanted(call) : rc;
}

tide_status mail_tool_search(struct tide_tool_call *call)
{
    struct cli *cli = call->cli;
    struct mail_tool_archive at = {.archive = NULL};
    tide_query *query = NULL;
    tide_auto_buf words = tide_buf_in(cli->mem, TIDE_QUERY_BYTES_MAX);
    tide_status rc = mail_tool_query(cli, tide_tool_text(call, "query"), &words);
    if (rc == TIDE_OK)
        rc = tide_query_parse(tide_buf_text(&words), (int64_t)cli->now_unix_ms, TIDE_QUERY_LOCAL,
                              cli->mem, &query, &cli->err);
    rc = cli_hint(cli, rc,
                  "Operators: from: to: cc: bcc: subject: after:2024/01/31 before: older_than:2y "
                  "newer_than:7d has:attachment filename: label: in: is: category: larger:5M "
                  "smaller: list: deliveredto: rfc822msgid: saved:NAME OR \"phrase\" +exact "
                  "begin* one AROUND 5 other -word (group).");
    if (rc == TIDE_OK)
        rc = mail_tool_open(call, &at);
    if (rc == TIDE_OK)
        rc = page_run(call, at.archive, query);
    tide_query_free(query);
    return mail_tool_close(call, &at, rc);
}
