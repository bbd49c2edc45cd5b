/* find.c - `tidemark mail search|verify`: read the archive, also while other processes run
 * (M9, M10). */
#include "mail/commands/home.h"
#include "mail/commands/known.h"

#include "base/clocktext.h"
#include "mail/search/search.h"

#include <inttypes.h>
#include <stdio.h>

enum { PAGE_DEFAULT = 20 };

/* ---- search ---- */

struct finding {
    struct cli *cli;
    tide_json list;
    unsigned count;
};

static bool found_row(const struct tide_found *found, void *arg)
{
    struct finding *finding = arg;
    char when[32];
    tide_json one;
    finding->count++;
    cli_cell(finding->cli, "%s", found->stored.gmail_id);
    cli_cell(finding->cli, "%s", cli_time((uint64_t)found->stored.internal_ms, when));
    cli_cell_text(finding->cli, found->from);
    cli_cell_text(finding->cli, found->subject);
    tide_json_object(&one);
    tide_json_set_cstr(&one, "id", found->stored.gmail_id);
    tide_json_set_cstr(&one, "thread", found->stored.thread_id);
    tide_json_set_i64(&one, "internal_unix_ms", found->stored.internal_ms);
    tide_json_set_u64(&one, "bytes", found->stored.bytes);
    tide_json_set_text(&one, "from", found->from);
    tide_json_set_text(&one, "subject", found->subject);
    tide_json_set_text(&one, "snippet", found->snippet);
    tide_json_append(&finding->list, &one);
    return true;
}

static tide_status search_pages(struct cli *cli, tide_archive *archive, const tide_query *query)
{
    static const char *const headings[] = {"ID", "DATE", "FROM", "SUBJECT"};
    struct finding finding = {.cli = cli};
    uint64_t limit = PAGE_DEFAULT;
    bool more = false;
    tide_auto_buf next = tide_buf_in(cli->mem, 4096);
    tide_json_array(&finding.list);
    tide_status rc = TIDE_OK;
    if (cli_flag(cli, "limit") != NULL)
        rc = cli_number(cli, cli_flag(cli, "limit"), "--limit", &limit);
    const struct tide_search search = {
        .query = query,
        .ranked = cli_flag(cli, "rank") != NULL,
        .oldest_first = cli_flag(cli, "oldest-first") != NULL,
        .limit = limit > TIDE_SEARCH_PAGE_MAX ? TIDE_SEARCH_PAGE_MAX : (uint32_t)limit,
        .after = tide_text_of(cli_flag(cli, "after-page")),
        .snippets = cli->want_json,
    };
    cli_table_begin(cli, headings, 4);
    if (rc == TIDE_OK)
        rc = tide_search_run(archive, &search, found_row, &finding, &next, &more, &cli->err);
    cli_table_end(cli, "no messages match");
    if (rc == TIDE_OK && more)
        cli_print(cli, "more: tidemark mail search ... --after-page %s\n", tide_buf_cstr(&next));
    tide_json_set(&cli->json, "messages", &finding.list);
    if (more)
        tide_json_set_text(&cli->json, "next", tide_buf_text(&next));
    return rc;
}

tide_status cli_mail_search(struct cli *cli)
{
    struct mail_home home = {0};
    char email[256];
    tide_archive *archive = NULL;
    tide_query *query = NULL;
    tide_auto_buf words = tide_buf_in(cli->mem, TIDE_QUERY_BYTES_MAX);
    tide_status rc = TIDE_OK;
    for (unsigned i = 0; rc == TIDE_OK && i < cli->arguments_count; i++)
        rc = tide_buf_print(&words, "%s%s", i == 0 ? "" : " ", cli->arguments[i]);
    if (rc != TIDE_OK)
        rc = cli_fail(cli, TIDE_INVALID, "Use a shorter query.", "the query is too long");
    if (rc == TIDE_OK)
        rc = tide_query_parse(tide_buf_text(&words), (int64_t)cli->now_unix_ms, 0, cli->mem, &query,
                              &cli->err);
    rc = cli_hint(cli, rc, "`man tidemark` lists the operators.");
    if (rc == TIDE_OK)
        rc = mail_home_archive(cli, &home, cli_flag(cli, "account"), email, &archive);
    if (rc == TIDE_OK)
        rc = search_pages(cli, archive, query);
    if (rc == TIDE_OK)
        rc = mail_home_broken(cli, archive);
    tide_query_free(query);
    const tide_status closed = tide_archive_close(archive, &cli->err);
    return rc == TIDE_OK ? closed : rc;
}

/* ---- verify ---- */

struct verifying {
    struct cli *cli;
    tide_json list;
    uint64_t damaged;
    uint64_t foreign; /* of them, files that heal leaves alone */
};

static void damage_row(const struct tide_damage *damage, void *arg)
{
    struct verifying *verifying = arg;
    tide_json one;
    verifying->damaged++;
    cli_print(verifying->cli, "DAMAGED  %s  %s  %s\n", damage->shard,
              damage->gmail_id[0] == '\0' ? "-" : damage->gmail_id, damage->what);
    tide_json_object(&one);
    tide_json_set_cstr(&one, "shard", damage->shard);
    tide_json_set_cstr(&one, "id", damage->gmail_id);
    tide_json_set_cstr(&one, "what", damage->what);
    tide_json_append(&verifying->list, &one);
}

/* What the ledger knows about the account; TIDE_NOT_FOUND: nothing. */
static tide_status look_at(struct cli *cli, const char *email, struct tide_mail_look *look)
{
    tide_error none = {TIDE_OK, 0, ""};
    tide_status rc = cli_ledger_read(cli);
    if (rc == TIDE_OK)
        rc = tide_mail_look(cli->ledger, email, false, look, &none);
    if (rc == TIDE_NOT_FOUND) {
        cli->err = (tide_error){TIDE_OK, 0, ""};
        cli->hint[0] = '\0';
    }
    return rc;
}

/* Compares the archive with the ledger and the manifests; skips one that the ledger does not
 * know. */
static tide_status compare(struct cli *cli, const char *email, tide_archive *archive)
{
    struct tide_mail_look look;
    struct tide_mail_kept kept = {0};
    tide_mail_look_init(&look, cli->mem);
    tide_status rc = look_at(cli, email, &look);
    const bool unknown = rc == TIDE_NOT_FOUND;
    if (rc == TIDE_OK && archive != NULL)
        rc = tide_mail_kept(archive, &kept, &cli->err);
    const struct mail_known_ask ask = {
        .look = &look, .archive = archive, .stored = kept.stored, .thorough = true};
    if (rc == TIDE_OK)
        rc = mail_known_show(cli, &ask, &cli->json);
    tide_mail_look_done(&look);
    return unknown ? TIDE_OK : rc;
}

/* Without an archive, takes the accounts from the ledger and reports what is missing. */
static tide_status verify_nothing(struct cli *cli, const char *named)
{
    const tide_error why = cli->err;
    char hint[sizeof cli->hint];
    struct cli_names names = {.count = 0};
    memcpy(hint, cli->hint, sizeof hint);
    cli->hint[0] = '\0';
    const tide_status rc = cli_names(cli, &tide_mail_system, &named, named != NULL, &names);
    for (size_t i = 0; rc == TIDE_OK && i < names.count; i++) {
        cli_print(cli, "%s: there is no archive\n", names.list[i]);
        (void)compare(cli, names.list[i], NULL);
    }
    cli_names_done(&names);
    if (cli->exit_code == CLI_EXIT_BAD_ITEMS)
        return TIDE_OK;
    cli->err = why; /* nothing was ever stored */
    memcpy(cli->hint, hint, sizeof hint);
    return TIDE_NOT_FOUND;
}

/* Says what to do about a file that heal leaves alone. */
static void foreign_row(const char *shard, tide_status why, const char *text, void *arg)
{
    struct verifying *verifying = arg;
    (void)text;
    if (why == TIDE_CORRUPT)
        return;
    verifying->foreign++;
    cli_print(verifying->cli, "%s.db: %s\n", shard, mail_home_broken_remedy(why));
}

static tide_status verify(struct cli *cli, const char *email, tide_archive *archive,
                          uint64_t sample)
{
    struct verifying verifying = {.cli = cli};
    uint64_t checked = 0;
    tide_json_array(&verifying.list);
    tide_status rc =
        tide_archive_verify(archive, (uint32_t)sample, damage_row, &verifying, &checked, &cli->err);
    if (rc == TIDE_OK)
        cli_print(cli, "%s: %" PRIu64 " message%s read back, %" PRIu64 " damaged\n", email, checked,
                  checked == 1 ? "" : "s", verifying.damaged);
    if (rc == TIDE_OK && verifying.damaged > 0) {
        cli->exit_code = CLI_EXIT_BAD_ITEMS;
        rc = tide_archive_broken(archive, foreign_row, &verifying, &cli->err);
    }
    if (rc == TIDE_OK && verifying.damaged > verifying.foreign)
        cli_print(cli, "Run `tidemark mail heal %s` to fetch damaged messages again.\n", email);
    tide_json_set_u64(&cli->json, "checked", checked);
    tide_json_set(&cli->json, "damage", &verifying.list);
    return rc == TIDE_OK ? compare(cli, email, archive) : rc;
}

tide_status cli_mail_verify(struct cli *cli)
{
    struct mail_home home = {0};
    char email[256];
    tide_archive *archive = NULL;
    uint64_t sample = 0;
    if (cli_flag(cli, "sample") != NULL)
        TIDE_TRY(cli_number(cli, cli_flag(cli, "sample"), "--sample", &sample));
    tide_status rc = mail_home_archive(cli, &home, cli_flag(cli, "account"), email, &archive);
    if (rc == TIDE_NOT_FOUND)
        return verify_nothing(cli, cli_flag(cli, "account"));
    if (rc == TIDE_OK)
        rc = verify(cli, email, archive, sample);
    const tide_status closed = tide_archive_close(archive, &cli->err);
    return rc == TIDE_OK ? closed : rc;
}
