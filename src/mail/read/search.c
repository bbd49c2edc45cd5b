/* search.c - `tidemark mail search`: one archive, or all of them as one list (M10).
 *
 * Each archive gives a page of its own, newest first; the pages are merged by time.  The token of the
 * next page names for each account where its part of the list ended: "EMAIL TOKEN EMAIL TOKEN ...". */
#include "mail/commands/home.h"

#include "base/check.h"
#include "base/limits.h"
#include "mail/search/search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE_DEFAULT = 20, TOKEN_BYTES = 64, AFTER_BYTES_MAX = 64 << 10 };

/* A message that was found. */
struct row {
    int64_t internal_ms;
    size_t source;
    size_t order; /* in its archive */
    char token[TOKEN_BYTES];
    tide_json json;
};

/* An archive that is searched. */
struct source {
    char email[256];
    char after[TOKEN_BYTES]; /* "": from its first message */
    bool over;               /* an earlier page showed its last one */
    bool more;
    size_t found, shown;
};

struct finding {
    struct cli *cli;
    struct tide_search search;
    struct source *sources;
    size_t sources_count, sources_capacity;
    struct row *rows;
    size_t rows_count, rows_capacity;
    size_t current; /* the source that is searched */
    tide_status rc; /* of a visit */
};

/* ---- one archive ---- */

static void row_json(const struct finding *finding, const struct tide_found *found, tide_json *one)
{
    tide_json_object(one);
    tide_json_set_cstr(one, "account", finding->sources[finding->current].email);
    tide_json_set_cstr(one, "id", found->stored.gmail_id);
    tide_json_set_cstr(one, "thread", found->stored.thread_id);
    tide_json_set_i64(one, "internal_unix_ms", found->stored.internal_ms);
    tide_json_set_u64(one, "bytes", found->stored.bytes);
    tide_json_set_text(one, "from", found->from);
    tide_json_set_text(one, "subject", found->subject);
    tide_json_set_text(one, "snippet", found->snippet);
}

static tide_status token_copy(const struct finding *finding, const struct tide_found *found,
                              char out[TOKEN_BYTES])
{
    tide_buf token;
    out[0] = '\0';
    if (finding->search.ranked)
        return TIDE_OK; /* its pages are counted, not continued after a message */
    tide_buf_init(&token, finding->cli->mem, 1024);
    const tide_status rc = tide_search_token(&finding->search, &found->stored, &token);
    if (rc == TIDE_OK)
        (void)snprintf(out, TOKEN_BYTES, "%s", tide_buf_cstr(&token));
    tide_buf_done(&token);
    return rc;
}

static bool row_add(const struct tide_found *found, void *arg)
{
    struct finding *finding = arg;
    void *rows = finding->rows;
    if (!tide_mem_grow(finding->cli->mem, &rows, &finding->rows_capacity, finding->rows_count + 1,
                       (size_t)TIDE_SEARCH_PAGE_MAX * TIDE_ACCOUNTS_MAX, sizeof *finding->rows)) {
        finding->rc = TIDE_NO_MEMORY;
        return false;
    }
    finding->rows = rows;
    struct row *row = &finding->rows[finding->rows_count];
    *row = (struct row){.internal_ms = found->stored.internal_ms,
                        .source = finding->current,
                        .order = finding->rows_count};
    finding->rc = token_copy(finding, found, row->token);
    if (finding->rc != TIDE_OK)
        return false;
    row_json(finding, found, &row->json);
    finding->rows_count++;
    finding->sources[finding->current].found++;
    return true;
}

/* Of a single archive the token of its page is kept, which ranked searches need. */
static tide_status source_search(struct finding *finding, size_t index)
{
    struct cli *cli = finding->cli;
    struct source *source = &finding->sources[index];
    struct mail_home home = {0};
    char email[256];
    tide_archive *archive = NULL;
    tide_buf next;
    if (source->over)
        return TIDE_OK;
    finding->current = index;
    finding->search.after = tide_text_of(source->after);
    tide_buf_init(&next, cli->mem, 4096);
    tide_status rc = mail_home_take(cli, &home, source->email, email, &archive);
    if (rc == TIDE_OK)
        rc = tide_search_run(archive, &finding->search, row_add, finding, &next, &source->more,
                             &cli->err);
    if (rc == TIDE_OK && finding->rc != TIDE_OK)
        rc = cli_fail(cli, finding->rc, "Use a smaller --limit.", "out of memory");
    if (rc == TIDE_OK)
        rc = mail_home_broken(cli, archive);
    if (rc == TIDE_OK && source->more && finding->search.ranked)
        (void)snprintf(source->after, sizeof source->after, "%s", tide_buf_cstr(&next));
    tide_buf_done(&next);
    mail_home_give(cli, archive);
    return rc;
}

/* ---- which archives ---- */

static struct source *source_add(struct finding *finding, const char *email)
{
    void *sources = finding->sources;
    if (!tide_mem_grow(finding->cli->mem, &sources, &finding->sources_capacity,
                       finding->sources_count + 1, TIDE_ACCOUNTS_MAX, sizeof *finding->sources))
        return NULL;
    finding->sources = sources;
    struct source *source = &finding->sources[finding->sources_count++];
    *source = (struct source){.over = false};
    (void)snprintf(source->email, sizeof source->email, "%s", email);
    return source;
}

static bool source_visit(const char *email, void *arg)
{
    return source_add(arg, email) != NULL;
}

static int by_email(const void *one, const void *other)
{
    return strcmp(((const struct source *)one)->email, ((const struct source *)other)->email);
}

static tide_status sources_find(struct finding *finding)
{
    struct cli *cli = finding->cli;
    struct mail_home home = {0};
    char email[256];
    const char *named = cli_flag(cli, "account");
    tide_status rc = mail_home_places(cli, &home);
    if (rc == TIDE_OK && named == NULL)
        mail_home_archives(home.archive_dir, source_visit, finding);
    if (rc == TIDE_OK && finding->sources_count == 0) { /* the named one, or the error for none */
        rc = mail_home_account(cli, &home, named, email);
        if (rc == TIDE_OK && source_add(finding, email) == NULL)
            rc = cli_fail(cli, TIDE_NO_MEMORY, "Free some memory.", "out of memory");
    }
    if (rc == TIDE_OK && finding->search.ranked && finding->sources_count > 1)
        rc = cli_wrong(cli, "Name one with --account EMAIL.",
                       "--rank compares messages of one account, and there are %zu",
                       finding->sources_count);
    if (finding->sources_count > 1)
        qsort(finding->sources, finding->sources_count, sizeof *finding->sources, by_email);
    return rc;
}

/* ---- the token of a page ---- */

static tide_status after_bad(struct cli *cli, const char *after)
{
    return cli_wrong(cli, "Give the token that the page before printed.",
                     "--after %.60s is not the token of a page of this search", after);
}

/* Accounts that the token does not name were exhausted, or are new: they begin with the next search. */
static tide_status after_read(struct finding *finding, const char *after)
{
    struct cli *cli = finding->cli;
    if (after == NULL)
        return TIDE_OK;
    if (strchr(after, ' ') == NULL) {
        if (finding->sources_count != 1 || strlen(after) >= TOKEN_BYTES)
            return after_bad(cli, after);
        (void)snprintf(finding->sources[0].after, TOKEN_BYTES, "%s", after);
        return TIDE_OK;
    }
    for (size_t i = 0; i < finding->sources_count; i++)
        finding->sources[i].over = true;
    for (const char *at = after; *at != '\0';) {
        const size_t email = strcspn(at, " ");
        const char *token = at + email + (at[email] == ' ');
        const size_t bytes = strcspn(token, " ");
        if (email == 0 || bytes == 0 || bytes >= TOKEN_BYTES)
            return after_bad(cli, after);
        for (size_t i = 0; i < finding->sources_count; i++) {
            struct source *source = &finding->sources[i];
            if (strlen(source->email) != email || memcmp(source->email, at, email) != 0)
                continue;
            source->over = false;
            if (token[0] != '-') /* "-": nothing of it was shown yet */
                (void)snprintf(source->after, TOKEN_BYTES, "%.*s", (int)bytes, token);
        }
        at = token + bytes + (token[bytes] == ' ');
    }
    return TIDE_OK;
}

static tide_status next_write(const struct finding *finding, tide_buf *next)
{
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < finding->sources_count; i++) {
        const struct source *source = &finding->sources[i];
        if (source->over || (!source->more && source->shown == source->found))
            continue;
        if (finding->sources_count == 1)
            rc = tide_buf_add_text(next, source->after);
        else
            rc = tide_buf_print(next, "%s%s %s", next->bytes == 0 ? "" : " ", source->email,
                                source->after[0] == '\0' ? "-" : source->after);
    }
    return rc;
}

/* ---- merging ---- */

static int newest_first(const void *one, const void *other)
{
    const struct row *a = one;
    const struct row *b = other;
    if (a->internal_ms != b->internal_ms)
        return a->internal_ms > b->internal_ms ? -1 : 1;
    return a->order < b->order ? -1 : 1;
}

static int oldest_first(const void *one, const void *other)
{
    const struct row *a = one;
    const struct row *b = other;
    if (a->internal_ms != b->internal_ms)
        return a->internal_ms < b->internal_ms ? -1 : 1;
    return a->order < b->order ? -1 : 1;
}

static const char *json_text(const tide_json *json, const char *field)
{
    const char *text = json_string_value(json_object_get(json->value, field));
    return text == NULL ? "" : text;
}

static void row_show(struct finding *finding, struct row *row, tide_json *list)
{
    struct cli *cli = finding->cli;
    struct source *source = &finding->sources[row->source];
    char when[32];
    source->shown++;
    if (row->token[0] != '\0')
        memcpy(source->after, row->token, sizeof source->after);
    cli_cell(cli, "%s", json_text(&row->json, "id"));
    cli_cell(cli, "%s", cli_time((uint64_t)row->internal_ms, when));
    if (finding->sources_count > 1)
        cli_cell(cli, "%s", source->email);
    cli_cell_text(cli, tide_text_of(json_text(&row->json, "from")));
    cli_cell_text(cli, tide_text_of(json_text(&row->json, "subject")));
    tide_json_append(list, &row->json);
    row->json = (tide_json){.value = NULL};
}

static tide_status show_all(struct finding *finding)
{
    static const char *const alone[] = {"ID", "DATE", "FROM", "SUBJECT"};
    static const char *const several[] = {"ID", "DATE", "ACCOUNT", "FROM", "SUBJECT"};
    struct cli *cli = finding->cli;
    const bool merged = finding->sources_count > 1;
    tide_json list;
    tide_buf next;
    tide_json_array(&list);
    tide_buf_init(&next, cli->mem, AFTER_BYTES_MAX);
    if (merged && finding->rows_count > 0) /* without a row there is no list */
        qsort(finding->rows, finding->rows_count, sizeof *finding->rows,
              finding->search.oldest_first ? oldest_first : newest_first);
    cli_table_begin(cli, merged ? several : alone, merged ? 5 : 4);
    for (size_t i = 0; i < finding->rows_count && i < finding->search.limit; i++)
        row_show(finding, &finding->rows[i], &list);
    cli_table_end(cli, "no messages match");
    const tide_status rc = next_write(finding, &next);
    if (rc == TIDE_OK && next.bytes > 0)
        cli_print(cli,
                  merged ? "more: tidemark mail search ... --after \"%s\"\n"
                         : "more: tidemark mail search ... --after %s\n",
                  tide_buf_cstr(&next));
    tide_json_set(&cli->json, "messages", &list);
    tide_json_set_cstr(&cli->json, "next", next.bytes == 0 ? NULL : tide_buf_cstr(&next));
    tide_buf_done(&next);
    return rc == TIDE_OK ? rc : cli_fail(cli, rc, "Name one with --account.", "out of memory");
}

/* ---- the command ---- */

static tide_status query_of(struct cli *cli, tide_query **query_out)
{
    tide_buf words;
    tide_buf_init(&words, cli->mem, TIDE_QUERY_BYTES_MAX);
    tide_status rc = TIDE_OK;
    for (unsigned i = 0; rc == TIDE_OK && i < cli->arguments_count; i++)
        rc = tide_buf_print(&words, "%s%s", i == 0 ? "" : " ", cli->arguments[i]);
    if (rc != TIDE_OK)
        rc = cli_fail(cli, TIDE_INVALID, "Use a shorter query.", "the query is too long");
    if (rc == TIDE_OK)
        rc = tide_query_parse(tide_buf_text(&words), (int64_t)cli->now_unix_ms, 0, cli->mem,
                              query_out, &cli->err);
    tide_buf_done(&words);
    return cli_hint(cli, rc, "`man tidemark` lists the operators.");
}

static tide_status run(struct finding *finding)
{
    struct cli *cli = finding->cli;
    uint64_t limit = PAGE_DEFAULT;
    tide_status rc = TIDE_OK;
    if (cli_flag(cli, "limit") != NULL)
        rc = cli_number(cli, cli_flag(cli, "limit"), "--limit", &limit);
    if (limit == 0 || limit > TIDE_SEARCH_PAGE_MAX)
        limit = limit == 0 ? PAGE_DEFAULT : TIDE_SEARCH_PAGE_MAX;
    finding->search.limit = (uint32_t)limit;
    if (rc == TIDE_OK)
        rc = sources_find(finding);
    if (rc == TIDE_OK)
        rc = after_read(finding, cli_flag(cli, "after"));
    for (size_t i = 0; rc == TIDE_OK && i < finding->sources_count; i++)
        rc = source_search(finding, i);
    return rc == TIDE_OK ? show_all(finding) : rc;
}

tide_status cli_mail_search(struct cli *cli)
{
    tide_query *query = NULL;
    struct finding finding = {.cli = cli,
                              .search = {.ranked = cli_flag(cli, "rank") != NULL,
                                         .oldest_first = cli_flag(cli, "oldest-first") != NULL,
                                         .snippets = cli->want_json,
                                         .cancel = cli->cancel}};
    tide_status rc = query_of(cli, &query);
    finding.search.query = query;
    if (rc == TIDE_OK)
        rc = run(&finding);
    for (size_t i = 0; i < finding.rows_count; i++)
        tide_json_done(&finding.rows[i].json);
    tide_mem_free(cli->mem, finding.rows, finding.rows_capacity * sizeof *finding.rows);
    tide_mem_free(cli->mem, finding.sources, finding.sources_capacity * sizeof *finding.sources);
    tide_query_free(query);
    return rc;
}
