/* bad.c - `tidemark mail bad [list|explain ID...|retry [ID...]]`: messages that could not be fetched,
 * and messages that are stored but could not be parsed (M6, M9). */
#include "cli/bad.h"
#include "mail/commands/home.h"
#include "mail/mime/message.h"

#include <inttypes.h>
#include <stdio.h>

enum { UNREADABLE_SHOWN = 1000, IDS_BYTES_MAX = 1 << 20 };

/* ---- ids ---- */

/* The bad message that a user named by its id or the beginning of it. */
struct naming {
    const char *start;
    const char *account; /* NULL: any */
    unsigned count;      /* 2 for more */
    bool exact;
    char id[256];
};

static void naming_look(struct naming *naming, tide_text id)
{
    const size_t bytes = strlen(naming->start);
    if (naming->exact || id.bytes < bytes || id.bytes >= sizeof naming->id ||
        memcmp(id.data, naming->start, bytes) != 0)
        return;
    naming->exact = id.bytes == bytes;
    if (!naming->exact && bytes < MAIL_SHORT_ID_MIN)
        return;
    if (naming->exact)
        naming->count = 1;
    else if (naming->count == 0 || !tide_text_equal(id, tide_text_of(naming->id)))
        naming->count++;
    (void)snprintf(naming->id, sizeof naming->id, "%.*s", (int)id.bytes, id.data);
}

static bool naming_row(const struct tide_bad_row *row, void *arg)
{
    static const char prefix[] = "mail.";
    struct naming *naming = arg;
    if (row->kind_name.bytes > sizeof prefix - 1 &&
        memcmp(row->kind_name.data, prefix, sizeof prefix - 1) == 0 &&
        (naming->account == NULL ||
         tide_text_equal(row->account_name, tide_text_of(naming->account))))
        naming_look(naming, row->item);
    return !naming->exact;
}

/* ---- stored, but not read ---- */

struct unreadable {
    struct cli *cli;
    const char *account; /* the current one */
    const char *only;    /* an id; NULL: all */
    tide_json list;
    uint64_t count;
    bool full;
    bool silent;           /* counts only */
    struct naming *naming; /* NULL; else only its message is looked for */
};

static void unreadable_row(const struct tide_stored *stored, const char *problem, void *arg)
{
    struct unreadable *seen = arg;
    struct cli *cli = seen->cli;
    char when[32];
    tide_json one;
    if (seen->naming != NULL) {
        naming_look(seen->naming, tide_text_of(stored->gmail_id));
        return;
    }
    if (seen->only != NULL && strcmp(seen->only, stored->gmail_id) != 0)
        return;
    seen->count++;
    if (seen->silent)
        return;
    const uint64_t at_ms = stored->internal_ms < 0 ? 0 : (uint64_t)stored->internal_ms;
    tide_json_object(&one);
    tide_json_set_cstr(&one, "id", stored->gmail_id);
    tide_json_set_cstr(&one, "account", seen->account);
    tide_json_set_cstr(&one, "problem", problem);
    tide_json_set_bool(&one, "indexed", stored->indexed);
    tide_json_set_u64(&one, "bytes", stored->bytes);
    tide_json_set_u64(&one, "internal_unix_ms", at_ms);
    tide_json_append(&seen->list, &one);
    if (seen->count > UNREADABLE_SHOWN)
        return;
    cli_cell(cli, "%s", stored->gmail_id);
    cli_cell(cli, "%s", stored->indexed ? "partly read" : "unreadable");
    cli_cell(cli, "%s", seen->account);
    cli_cell(cli, "%s", cli_time(at_ms, when));
    cli_cell(cli, "%" PRIu64, stored->bytes);
    cli_cell(cli, "%s", problem);
    if (seen->full)
        cli_print(cli,
                  "%s is stored byte for byte (`tidemark mail show %s --raw`); only its text "
                  "cannot be searched. `tidemark mail bad retry` reads it again; that can help "
                  "after an update of tidemark.\n",
                  stored->gmail_id, stored->gmail_id);
}

/* Visits all archives. */
static tide_status unreadable_visit(struct unreadable *seen, const struct cli_names *names)
{
    struct cli *cli = seen->cli;
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < names->count; i++) {
        struct mail_home home = {0};
        tide_archive *archive = NULL;
        char email[256];
        seen->account = names->list[i];
        rc = mail_home_archive(cli, &home, names->list[i], email, &archive);
        if (rc == TIDE_NOT_FOUND) { /* no archive yet */
            cli->hint[0] = '\0';
            rc = TIDE_OK;
            continue;
        }
        if (rc == TIDE_OK)
            rc = tide_archive_unreadable(archive, unreadable_row, seen, &cli->err);
        (void)tide_archive_close(archive, NULL);
    }
    return rc;
}

static tide_status show(struct cli *cli, const struct cli_names *names, const char *account,
                        const char *item)
{
    static const char *const headings[] = {"ID",       "STATE", "ACCOUNT",
                                           "RECEIVED", "BYTES", "PROBLEM"};
    struct cli_bad bad = {
        .account = account, .prefix = "mail.", .item = item, .full = item != NULL};
    struct unreadable seen = {.cli = cli, .only = item, .full = item != NULL};
    TIDE_TRY(cli_bad_show(cli, &bad));
    tide_json_array(&seen.list);
    cli_table_begin(cli, headings, 6);
    tide_status rc = unreadable_visit(&seen, names);
    cli_table_end(cli, "no unreadable messages");
    if (seen.count > UNREADABLE_SHOWN)
        cli_print(cli, "and %" PRIu64 " more; --json has all of them\n",
                  seen.count - UNREADABLE_SHOWN);
    tide_json_set(&cli->json, "unreadable", &seen.list);
    if (rc == TIDE_OK && item != NULL && bad.count + seen.count == 0)
        rc = cli_fail(cli, TIDE_NOT_FOUND, "`tidemark mail bad` shows the bad messages.",
                      "there is no bad message \"%.100s\"", item);
    return cli_hint(cli, rc, "Run `tidemark mail verify`.");
}

/* ---- trying again ---- */

static tide_status read_again(struct cli *cli, const struct mail_home *home, const char *email,
                              bool *handed)
{
    char dir[CLI_PATH_BYTES + 300];
    tide_archive *archive = NULL;
    (void)snprintf(dir, sizeof dir, "%s/%s", home->archive_dir, email);
    const struct tide_archive_options options = {
        .dir = dir, .account = email, .world = cli->world, .index_later = true};
    tide_status rc = tide_archive_open(&options, cli->mem, &archive, &cli->err);
    if (rc == TIDE_BUSY) { /* the process that has it open for writing reads them */
        const struct cli_job job = {TIDE_MAIL_INDEX_KIND, email, "index", ""};
        uint64_t id = 0;
        cli->err = (tide_error){TIDE_OK, 0, ""};
        return cli_hint(cli, cli_enqueue(cli, NULL, &job, &id, handed),
                        "Wait until it ends, and run this command again.");
    }
    if (rc == TIDE_OK)
        rc = tide_archive_index_again(archive, NULL, &cli->err);
    if (rc == TIDE_OK)
        rc = tide_archive_index(archive, UINT64_MAX, NULL, &cli->err);
    const tide_status closed = tide_archive_close(archive, &cli->err);
    return cli_hint(cli, rc == TIDE_OK ? closed : rc, "Run `tidemark mail verify`.");
}

static tide_status retry_unreadable(struct cli *cli, const struct cli_names *names,
                                    const char *item, uint64_t *count_out, uint64_t *left_out,
                                    bool *handed_out)
{
    struct mail_home home = {0};
    tide_status rc = mail_home_places(cli, &home);
    for (size_t i = 0; rc == TIDE_OK && i < names->count; i++) {
        struct unreadable seen = {.cli = cli, .only = item, .silent = true};
        const struct cli_names one = {.list = &names->list[i], .count = 1};
        rc = unreadable_visit(&seen, &one);
        if (rc != TIDE_OK || seen.count == 0)
            continue;
        *count_out += seen.count;
        rc = read_again(cli, &home, names->list[i], handed_out);
        seen.count = 0;
        if (rc == TIDE_OK && !*handed_out)
            rc = unreadable_visit(&seen, &one);
        *left_out += seen.count;
    }
    return rc;
}

/* No ids: all of them. */
static tide_status retry(struct cli *cli, const struct cli_names *names, const char *account,
                         const char *const *ids, size_t ids_count)
{
    struct cli_bad bad = {.account = account, .prefix = "mail."};
    bool runs = false;
    bool handed = false;
    uint64_t unreadable = 0;
    uint64_t left = 0;
    uint64_t count = 0;
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < (ids_count == 0 ? 1 : ids_count); i++) {
        bad.item = ids_count == 0 ? NULL : ids[i];
        rc = cli_bad_change(cli, &bad, TIDE_BAD_RETRYING, &runs);
        count += rc == TIDE_OK ? bad.count : 0;
    }
    bad.count = count;
    cli_ledger_close(cli); /* releases the lock before an archive is opened */
    TIDE_TRY(rc);
    for (size_t i = 0; i < (ids_count == 0 ? 1 : ids_count); i++)
        TIDE_TRY(retry_unreadable(cli, names, ids_count == 0 ? NULL : ids[i], &unreadable, &left,
                                  &handed));
    if (!cli->quiet && bad.count > 0)
        cli_print(cli, "retrying %" PRIu64 " message%s%s\n", bad.count, bad.count == 1 ? "" : "s",
                  runs             ? ""
                  : bad.count == 1 ? "; `tidemark mail sync` fetches it"
                                   : "; `tidemark mail sync` fetches them");
    if (!cli->quiet && unreadable > 0 && handed)
        cli_print(cli, "the running engine reads %" PRIu64 " unreadable message%s again\n",
                  unreadable, unreadable == 1 ? "" : "s");
    else if (!cli->quiet && unreadable > 0)
        cli_print(cli, "read %" PRIu64 " unreadable message%s again; %" PRIu64 " still %s\n",
                  unreadable, unreadable == 1 ? "" : "s", left, left == 1 ? "is" : "are");
    if (!cli->quiet && bad.count + unreadable == 0)
        cli_print(cli, "nothing to retry\n");
    tide_json_set_u64(&cli->json, "count", bad.count);
    tide_json_set_bool(&cli->json, "engine", runs);
    tide_json_set_u64(&cli->json, "unreadable", unreadable);
    tide_json_set_u64(&cli->json, "still_unreadable", left);
    return TIDE_OK;
}

/* ---- the command ---- */

static tide_status usage(struct cli *cli, const char *what)
{
    cli->exit_code = CLI_EXIT_USAGE;
    return cli_fail(
        cli, TIDE_INVALID,
        "Write `tidemark mail bad`, `tidemark mail bad explain ID...` or `tidemark mail "
        "bad retry [ID...]`.",
        "%s", what);
}

/* The whole id of a bad message. */
static tide_status id_complete(struct cli *cli, const struct cli_names *names,
                               struct naming *naming)
{
    const struct tide_job_filter any = TIDE_JOB_FILTER_ANY;
    const struct tide_bad_key first = {0, 0, TIDE_TEXT("")};
    struct unreadable seen = {.cli = cli, .naming = naming};
    TIDE_TRY(cli_ledger_read(cli));
    TIDE_TRY(tide_ledger_bad_after(cli->ledger, any.account, any.kind, &first, naming_row, naming,
                                   &cli->err));
    if (!naming->exact)
        TIDE_TRY(unreadable_visit(&seen, names));
    if (naming->count == 0)
        return cli_fail(cli, TIDE_NOT_FOUND, "`tidemark mail bad` shows the bad messages.",
                        "there is no bad message \"%.100s\"", naming->start);
    if (naming->count > 1)
        return cli_fail(cli, TIDE_INVALID, "Give more of the id.",
                        "more than one bad message has an id that begins with %.100s",
                        naming->start);
    return TIDE_OK;
}

/* As `mail show` has several messages: each as it is alone. */
static tide_status show_each(struct cli *cli, const struct cli_names *names, const char *account,
                             const char *const *ids, size_t count)
{
    tide_json list;
    tide_status rc = TIDE_OK;
    if (count < 2)
        return show(cli, names, account, count == 0 ? NULL : ids[0]);
    tide_json_array(&list);
    for (size_t i = 0; rc == TIDE_OK && i < count; i++) {
        rc = show(cli, names, account, ids[i]);
        tide_json_append(&list, &cli->json);
        tide_json_object(&cli->json);
    }
    tide_json_set(&cli->json, "messages", &list);
    return rc;
}

/* With the ids of the command, each in full before anything is changed. */
static tide_status with_ids(struct cli *cli, const struct cli_names *names, const char *account,
                            bool retries)
{
    const size_t count = cli->arguments_count < 2 ? 0 : cli->arguments_count - 1;
    const char *ids[CLI_ARGUMENTS_MAX];
    tide_arena texts;
    tide_status rc = TIDE_OK;
    tide_arena_init(&texts, cli->mem, IDS_BYTES_MAX);
    for (size_t i = 0; rc == TIDE_OK && i < count; i++) {
        struct naming naming = {.start = cli->arguments[i + 1], .account = account};
        rc = id_complete(cli, names, &naming);
        ids[i] = tide_arena_copy(&texts, naming.id, strlen(naming.id));
        if (rc == TIDE_OK && ids[i] == NULL)
            rc = cli_fail(cli, TIDE_NO_MEMORY, "Free some memory.", "out of memory");
    }
    if (rc == TIDE_OK)
        rc = retries ? retry(cli, names, account, ids, count)
                     : show_each(cli, names, account, ids, count);
    tide_arena_done(&texts);
    return rc;
}

tide_status cli_mail_bad(struct cli *cli)
{
    const char *word = cli->arguments_count > 0 ? cli->arguments[0] : "list";
    const char *account = cli_flag(cli, "account");
    const bool explains = strcmp(word, "explain") == 0;
    const bool retries = strcmp(word, "retry") == 0;
    if (!explains && !retries && strcmp(word, "list") != 0)
        return usage(cli, "the first word must be list, explain or retry");
    if (explains && cli->arguments_count < 2)
        return usage(cli, "explain needs an ID");
    if (cli->arguments_count > 1 && !explains && !retries)
        return usage(cli, "list takes no ID");
    struct cli_names names;
    tide_status rc = cli_names(cli, &tide_mail_system, &account, account != NULL, &names);
    if (rc == TIDE_OK)
        rc = with_ids(cli, &names, account, retries);
    cli_names_done(&names);
    return rc;
}
