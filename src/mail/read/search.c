/* search.c - `tidemark mail search`: one archive, or all of them as one list (M10, M20).
 *
 * Each archive gives a page of its own, newest first; the pages are merged by time.  The token of the
 * next page names for each account where its part of the list ended: "EMAIL TOKEN EMAIL TOKEN ...".
 *
 * With --threads a row is a conversation, at the place of its first match in the list.  A page ends
 * after such a match, and the next one leaves out conversations that have a match before it. */
#include "mail/commands/home.h"

#include "base/check.h"
#include "base/limits.h"
#include "mail/read/list.h"
#include "mail/read/pasted.h"
#include "mail/search/search.h"
#include "mail/view/view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PAGE_DEFAULT = 20, TOKEN_BYTES = 64, AFTER_BYTES_MAX = 64 << 10, SCAN_PAGE = 200 };

/* A message that was found. */
struct row {
    int64_t internal_ms;
    size_t source;
    size_t order; /* in its archive */
    char token[TOKEN_BYTES];
    char thread[TIDE_GMAIL_ID_BYTES_MAX + 1];
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
    bool threads;
    size_t limit;          /* rows of a page */
    tide_archive *archive; /* that is searched */
    struct source *sources;
    size_t sources_count, sources_capacity;
    struct row *rows;
    size_t rows_count, rows_capacity;
    size_t current; /* the source that is searched */
    bool passed;    /* an archive could not be searched */
    struct tide_search_labels labels;
    tide_status rc; /* of a visit */
};

/* ---- one archive ---- */

static void label_add(const struct tide_label_row *label, void *arg)
{
    tide_json one;
    tide_json_object(&one);
    tide_json_set_text(&one, "id", label->id);
    tide_json_set_text(&one, "name", label->name.bytes == 0 ? label->id : label->name);
    tide_json_set_text(&one, "type", label->type);
    tide_json_append(arg, &one);
}

/* A message without one has a surrogate in the index (M8). */
static tide_text message_id_of(const struct tide_found *found)
{
    static const char surrogate[] = "sha256:";
    const bool none =
        found->message_id.bytes == sizeof surrogate - 1 + 2 * TIDE_CONTENT_HASH_BYTES &&
        memcmp(found->message_id.data, surrogate, sizeof surrogate - 1) == 0;
    return none ? TIDE_TEXT("") : found->message_id;
}

/* The same names as in `mail show --json`, as far as the index has them. */
static tide_status row_json(const struct finding *finding, const struct tide_found *found,
                            tide_json *one)
{
    const struct {
        const char *name;
        tide_text value;
    } heads[] = {{"from", found->from},       {"to", found->to},
                 {"cc", found->cc},           {"bcc", found->bcc},
                 {"subject", found->subject}, {"message_id", message_id_of(found)}};
    tide_json labels;
    tide_json_object(one);
    tide_json_set_cstr(one, "account", finding->sources[finding->current].email);
    tide_view_stored_json(&found->stored, found->stored.copy, one);
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++)
        tide_json_set_text(one, heads[i].name, heads[i].value);
    if (found->has_date)
        tide_json_set_i64(one, "date_unix_ms", found->date_ms);
    else
        tide_json_set_null(one, "date_unix_ms");
    tide_json_set_u64(one, "attachments_count", found->files);
    tide_json_set_text(one, "snippet", found->snippet);
    tide_json_array(&labels);
    const tide_status rc = tide_archive_label_rows(finding->archive, &found->stored, label_add,
                                                   &labels, &finding->cli->err);
    tide_json_set(one, "labels", &labels);
    return rc;
}

/* ---- conversations ---- */

static bool row_of_thread(const struct finding *finding, const char *thread)
{
    for (size_t i = finding->rows_count; i > 0; i--) {
        const struct row *row = &finding->rows[i - 1];
        if (row->source == finding->current && strcmp(row->thread, thread) == 0)
            return true;
    }
    return false;
}

/* Whether a message that is not before `place` in the list is a match. */
struct matching {
    struct finding *finding;
    const struct tide_stored *place;
    uint64_t messages;
    bool earlier;
    tide_status rc;
};

static bool is_first(const struct tide_found *found, void *arg)
{
    struct tide_stored *first = arg;
    *first = found->stored;
    return false;
}

/* Searches from just before this message: if it is a match, it is the first. */
static tide_status matches(struct finding *finding, const struct tide_stored *stored, bool *is_out)
{
    struct cli *cli = finding->cli;
    struct tide_search search = finding->search;
    struct tide_stored before = *stored, first = {.rowid = -1};
    tide_auto_buf token = tide_buf_in(cli->mem, 1024);
    bool more = false;
    before.rowid += search.oldest_first ? -1 : 1;
    TIDE_TRY(tide_search_token(&search, &before, &token));
    search.after = tide_buf_text(&token);
    search.limit = 1;
    search.snippets = false;
    TIDE_TRY(tide_search_run(finding->archive, &search, is_first, &first, NULL, &more, &cli->err));
    *is_out = strcmp(first.gmail_id, stored->gmail_id) == 0;
    return TIDE_OK;
}

static bool turn_look(const struct tide_stored *stored, void *arg)
{
    struct matching *matching = arg;
    struct finding *finding = matching->finding;
    const struct tide_stored *place = matching->place;
    const bool oldest = finding->search.oldest_first;
    matching->messages++;
    if (finding->sources[finding->current].after[0] == '\0' || matching->earlier)
        return true; /* the first page: the rows have all that was before */
    const bool before = stored->internal_ms == place->internal_ms
                            ? oldest ? stored->rowid < place->rowid : stored->rowid > place->rowid
                        : oldest ? stored->internal_ms < place->internal_ms
                                 : stored->internal_ms > place->internal_ms;
    if (before)
        matching->rc = matches(finding, stored, &matching->earlier);
    return matching->rc == TIDE_OK;
}

/* The conversation of a match: how long it is, and whether an earlier page or row has it. */
static tide_status thread_look(struct finding *finding, const struct tide_found *found,
                               uint64_t *messages_out, bool *shown_out)
{
    struct matching matching = {.finding = finding, .place = &found->stored, .rc = TIDE_OK};
    *shown_out = row_of_thread(finding, found->stored.thread_id);
    if (*shown_out)
        return TIDE_OK;
    TIDE_TRY(tide_archive_thread(finding->archive, tide_text_of(found->stored.thread_id), turn_look,
                                 &matching, &finding->cli->err));
    *messages_out = matching.messages;
    *shown_out = matching.earlier;
    return matching.rc;
}

/* ---- one archive, continued ---- */

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
    struct source *source = &finding->sources[finding->current];
    uint64_t messages = 0;
    bool shown = false;
    if (finding->threads)
        finding->rc = thread_look(finding, found, &messages, &shown);
    if (finding->rc != TIDE_OK || shown)
        return finding->rc == TIDE_OK;
    if (finding->threads && source->found == finding->limit) {
        source->more = true; /* one more than a page */
        return false;
    }
    struct row *row = &finding->rows[finding->rows_count];
    *row = (struct row){.internal_ms = found->stored.internal_ms,
                        .source = finding->current,
                        .order = finding->rows_count};
    (void)snprintf(row->thread, sizeof row->thread, "%s", found->stored.thread_id);
    finding->rc = token_copy(finding, found, row->token);
    if (finding->rc == TIDE_OK)
        finding->rc = row_json(finding, found, &row->json);
    if (finding->threads)
        tide_json_set_u64(&row->json, "thread_messages", messages);
    finding->rows_count++;
    source->found++;
    return finding->rc == TIDE_OK;
}

/* All matches until a page of conversations is full. */
static tide_status threads_search(struct finding *finding, struct source *source)
{
    struct tide_search search = finding->search;
    tide_auto_buf token = tide_buf_in(finding->cli->mem, 4096);
    tide_auto_buf next = tide_buf_in(finding->cli->mem, 4096);
    search.limit = SCAN_PAGE;
    for (bool more = true; more && !source->more && finding->rc == TIDE_OK;) {
        TIDE_TRY(tide_search_run(finding->archive, &search, row_add, finding, &next, &more,
                                 &finding->cli->err));
        tide_buf_clear(&token);
        TIDE_TRY(tide_buf_add(&token, tide_buf_cstr(&next), next.bytes));
        search.after = tide_buf_text(&token);
    }
    return TIDE_OK;
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
    const bool passed = mail_home_pass(cli, source->email, finding->sources_count, rc);
    source->over = passed;
    finding->passed = finding->passed || passed;
    finding->archive = archive;
    if (passed)
        rc = TIDE_OK;
    else if (rc == TIDE_OK && finding->threads)
        rc = threads_search(finding, source);
    else if (rc == TIDE_OK)
        rc = tide_search_run(archive, &finding->search, row_add, finding, &next, &source->more,
                             &cli->err);
    if (rc == TIDE_OK && finding->rc == TIDE_NO_MEMORY)
        rc = cli_fail(cli, finding->rc, "Use a smaller --limit.", "out of memory");
    rc = rc == TIDE_OK ? finding->rc : rc;
    if (rc == TIDE_OK && !passed)
        rc = source->more ? mail_home_broken_met(cli, archive) : mail_home_broken(cli, archive);
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

static void row_take(struct finding *finding, struct row *row, tide_json *list)
{
    struct source *source = &finding->sources[row->source];
    source->shown++;
    if (row->token[0] != '\0')
        memcpy(source->after, row->token, sizeof source->after);
    tide_json_append(list, &row->json);
    row->json = (tide_json){.value = NULL};
}

/* ---- the command of the next page ---- */

static void next_show(struct finding *finding, const char *next)
{
    struct cli *cli = finding->cli;
    cli_print(cli, "more: ");
    mail_pasted_command(cli, "mail search");
    for (unsigned i = 0; i < cli->arguments_count; i++)
        mail_pasted_word(cli, cli->arguments[i]);
    for (unsigned i = 0; i < cli->values_count; i++) {
        const struct cli_flag *flag = cli->values[i].flag;
        if (strcmp(flag->name, "after") == 0)
            continue;
        cli_print(cli, " --%s", flag->name);
        if (flag->argument != NULL)
            mail_pasted_word(cli, cli->values[i].value);
    }
    cli_print(cli, " --after");
    mail_pasted_word(cli, next);
    cli_print(cli, "\n");
}

/* ---- showing ---- */

/* ---- what may have been meant ---- */

static void spelling_add(const struct tide_spelling *spelling, void *arg)
{
    tide_json one;
    tide_json_object(&one);
    tide_json_set_text(&one, "word", spelling->word);
    tide_json_set_text(&one, "better", spelling->better);
    tide_json_append(arg, &one);
}

/* Where nothing was found.  Only a help: a failure is none of the search. */
static void spelling_show(struct finding *finding)
{
    struct cli *cli = finding->cli;
    const tide_error before = cli->err;
    const bool asks = finding->rows_count == 0 && cli_flag(cli, "after") == NULL;
    tide_json list;
    tide_json_array(&list);
    for (size_t i = 0; asks && i < finding->sources_count && json_array_size(list.value) == 0;
         i++) {
        struct mail_home home = {0};
        char email[256];
        tide_archive *archive = NULL;
        if (mail_home_take(cli, &home, finding->sources[i].email, email, &archive) == TIDE_OK)
            (void)tide_search_spelling(archive, finding->search.query, finding->search.cancel,
                                       spelling_add, &list, &cli->err);
        mail_home_give(cli, archive);
    }
    cli->err = before;
    size_t index = 0;
    const json_t *one = NULL;
    json_array_foreach(list.value, index, one)
        cli_print(cli, "No message has \"%s\"; did you mean \"%s\"?\n",
                  json_string_value(json_object_get(one, "word")),
                  json_string_value(json_object_get(one, "better")));
    tide_json_set(&cli->json, "spelling", &list);
}

/* On a terminal they are worth a line each; a program that reads lines gets one for each message. */
static tide_status snippets_of(struct cli *cli, bool *snippets_out)
{
    const char *when = cli_flag(cli, "snippets");
    *snippets_out = isatty(STDOUT_FILENO) == 1;
    if (when == NULL || strcmp(when, "auto") == 0)
        return TIDE_OK;
    if (strcmp(when, "always") != 0 && strcmp(when, "never") != 0)
        return cli_wrong(cli, "Give auto, always or never.", "--snippets %.60s", when);
    *snippets_out = when[0] == 'a';
    return TIDE_OK;
}

static tide_status show_all(struct finding *finding)
{
    struct cli *cli = finding->cli;
    const bool merged = finding->sources_count > 1;
    const struct mail_list how = {
        .accounts = merged, .snippets = finding->search.snippets, .threads = finding->threads};
    tide_json list;
    tide_buf next;
    tide_json_array(&list);
    tide_buf_init(&next, cli->mem, AFTER_BYTES_MAX);
    if (merged && finding->rows_count > 0) /* without a row there is no list */
        qsort(finding->rows, finding->rows_count, sizeof *finding->rows,
              finding->search.oldest_first ? oldest_first : newest_first);
    for (size_t i = 0; i < finding->rows_count && i < finding->limit; i++)
        row_take(finding, &finding->rows[i], &list);
    mail_list_show(cli, &how, list.value);
    const tide_status rc = next_write(finding, &next);
    if (rc == TIDE_OK && next.bytes > 0)
        next_show(finding, tide_buf_cstr(&next));
    spelling_show(finding);
    tide_json_set(&cli->json, "messages", &list);
    tide_json_set_cstr(&cli->json, "next", next.bytes == 0 ? NULL : tide_buf_cstr(&next));
    tide_buf_done(&next);
    return rc == TIDE_OK ? rc : cli_fail(cli, rc, "Name one with --account.", "out of memory");
}

/* ---- the command ---- */

static tide_status query_of(struct cli *cli, tide_query **query_out)
{
    tide_auto_buf words = tide_buf_in(cli->mem, TIDE_QUERY_BYTES_MAX);
    tide_status rc = mail_query_words(cli, 0, TIDE_QUERY_BYTES_MAX, &words);
    if (rc == TIDE_OK)
        rc = tide_query_parse(tide_buf_text(&words), (int64_t)cli->now_unix_ms, TIDE_QUERY_LOCAL,
                              cli->mem, query_out, &cli->err);
    return cli_hint(cli, rc, "`tidemark mail search --help` lists the operators.");
}

/* A label of one account is none of the others'.  What cannot be read here may have it, and so may an
 * account whose part of the list is over. */
static tide_status labels_check(const struct finding *finding)
{
    struct cli *cli = finding->cli;
    if (finding->search.labels == NULL || finding->passed || cli_flag(cli, "after") != NULL)
        return TIDE_OK;
    return tide_search_labels_check(&finding->labels, &cli->err);
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
    finding->limit = (size_t)limit;
    if (rc == TIDE_OK && finding->threads && finding->search.ranked)
        rc = cli_wrong(cli, "Give one of them.", "--threads and --rank cannot be used together");
    if (rc == TIDE_OK)
        rc = sources_find(finding);
    if (rc == TIDE_OK)
        rc = after_read(finding, cli_flag(cli, "after"));
    if (finding->sources_count > 1)
        finding->search.labels = &finding->labels;
    for (size_t i = 0; rc == TIDE_OK && i < finding->sources_count; i++)
        rc = source_search(finding, i);
    if (rc == TIDE_OK)
        rc = labels_check(finding);
    return rc == TIDE_OK ? show_all(finding) : mail_label_hint(cli, rc);
}

tide_status cli_mail_search(struct cli *cli)
{
    tide_query *query = NULL;
    struct finding finding = {.cli = cli,
                              .search = {.ranked = cli_flag(cli, "rank") != NULL,
                                         .oldest_first = cli_flag(cli, "oldest-first") != NULL,
                                         .cancel = cli->cancel},
                              .threads = cli_flag(cli, "threads") != NULL};
    bool snippets = false;
    tide_status rc = snippets_of(cli, &snippets);
    finding.search.snippets = snippets || (cli->want_json && cli_flag(cli, "snippets") == NULL);
    if (rc == TIDE_OK)
        rc = query_of(cli, &query);
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
