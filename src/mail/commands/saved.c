/* saved.c - saved searches: `tidemark mail saved`, and saved:NAME in every query of a command (M20).
 *
 * They are lines "NAME: QUERY" in mail-searches.txt beside config.yaml, which a user may edit; lines
 * without a name as below are left as they are.  A command replaces saved:NAME by the query in
 * brackets before anything else reads it: so a job and a manifest have the query itself, whatever
 * becomes of its name.  For the same reason a schedule that removes mail cannot name one
 * (cli_mail_archive_check).
 *
 * Two processes that change the file take turns by a lock beside it; the file itself is replaced, so
 * it cannot be the lock.  Readers need none. */
#include "mail/commands/home.h"

#include "mail/search/search.h"
#include "mail/tools/tools.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FILE_NAME "mail-searches.txt"
#define LOCK_NAME ".mail-searches.lock"

enum {
    FILE_BYTES_MAX = 1 << 20,
    NAME_BYTES_MAX = 64,
    WAIT_US = 10 * 1000000, /* for another process; it needs the lock for one write */
};

/* ---- the file ---- */

static tide_status path_beside(const char *config_path, const char *name, char path[CLI_PATH_BYTES],
                               tide_error *err)
{
    const char *slash = strrchr(config_path, '/');
    const int dir = slash == NULL ? 0 : (int)(slash + 1 - config_path);
    const int used = snprintf(path, CLI_PATH_BYTES, "%.*s%s", dir, config_path, name);
    return used > 0 && used < CLI_PATH_BYTES
               ? TIDE_OK
               : tide_error_set(err, TIDE_INVALID, "the path of %s is too long", name);
}

static tide_status file_read(struct cli *cli, tide_buf *text)
{
    char path[CLI_PATH_BYTES];
    TIDE_TRY(path_beside(cli->config_path, FILE_NAME, path, &cli->err));
    const tide_status rc = tide_file_read(cli->world, path, FILE_BYTES_MAX, text, &cli->err);
    if (rc == TIDE_NOT_FOUND)
        cli->err = (tide_error){TIDE_OK, 0, ""};
    return rc == TIDE_NOT_FOUND ? TIDE_OK
                                : cli_hint(cli, rc, "Check that the file belongs to you.");
}

static tide_status file_write(struct cli *cli, const tide_buf *text)
{
    char path[CLI_PATH_BYTES];
    TIDE_TRY(path_beside(cli->config_path, FILE_NAME, path, &cli->err));
    return cli_hint(cli, tide_file_replace(cli->world, path, tide_buf_text(text), 0600, &cli->err),
                    "Check that the directory belongs to you and has free space.");
}

static tide_status lock_take(struct cli *cli, tide_file_lock **lock_out)
{
    char path[CLI_PATH_BYTES];
    TIDE_TRY(path_beside(cli->config_path, LOCK_NAME, path, &cli->err));
    TIDE_TRY(cli_config_dir_make(cli));
    const tide_status rc =
        tide_file_lock_wait(cli->world, path, WAIT_US, cli->cancel, lock_out, &cli->err);
    if (rc == TIDE_BUSY)
        return cli_fail(cli, rc, "Try again when it has ended.",
                        "another process has been changing " FILE_NAME " for 10 s");
    return cli_hint(cli, rc, "Check that the directory belongs to you.");
}

static tide_text trimmed(tide_text text)
{
    while (text.bytes > 0 && strchr(" \t\r", text.data[0]) != NULL) {
        text.data++;
        text.bytes--;
    }
    while (text.bytes > 0 && strchr(" \t\r", text.data[text.bytes - 1]) != NULL)
        text.bytes--;
    return text;
}

struct saved {
    tide_text line; /* with its end */
    tide_text name, query;
};

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
}

static bool is_name(tide_text text)
{
    bool good = text.bytes > 0 && text.bytes <= NAME_BYTES_MAX;
    for (size_t i = 0; good && i < text.bytes; i++)
        good = is_name_char(text.data[i]);
    return good;
}

/* The next line; a name that is empty: a comment, or none of ours. */
static bool saved_next(tide_text *rest, struct saved *saved)
{
    if (rest->bytes == 0)
        return false;
    const char *end = memchr(rest->data, '\n', rest->bytes);
    const size_t bytes = end == NULL ? rest->bytes : (size_t)(end - rest->data) + 1;
    *saved = (struct saved){.line = {rest->data, bytes}};
    const tide_text text = trimmed((tide_text){rest->data, bytes - (end != NULL)});
    const char *colon = text.bytes == 0 ? NULL : memchr(text.data, ':', text.bytes);
    const tide_text name = {text.data, colon == NULL ? 0 : (size_t)(colon - text.data)};
    if (is_name(trimmed(name))) {
        saved->name = trimmed(name);
        saved->query =
            trimmed((tide_text){colon + 1, text.bytes - (size_t)(colon + 1 - text.data)});
    }
    rest->data += bytes;
    rest->bytes -= bytes;
    return true;
}

static bool saved_find(const tide_buf *file, tide_text name, struct saved *saved)
{
    tide_text rest = tide_buf_text(file);
    while (saved_next(&rest, saved))
        if (saved->name.bytes > 0 && tide_text_equal(saved->name, name))
            return true;
    return false;
}

tide_status mail_settings_files(const char *config_path, tide_mem *mem,
                                void (*visit)(const char *name, void *arg), void *arg,
                                tide_error *err)
{
    char path[CLI_PATH_BYTES];
    (void)mem;
    TIDE_TRY(path_beside(config_path, FILE_NAME, path, err));
    if (access(path, F_OK) == 0)
        visit(FILE_NAME, arg);
    return TIDE_OK;
}

void mail_saved_names(const struct tide_system_home *home, void (*visit)(tide_text name, void *arg),
                      void *arg)
{
    char path[CLI_PATH_BYTES];
    tide_auto_buf text = tide_buf_in(home->mem, FILE_BYTES_MAX);
    struct saved saved;
    if (path_beside(home->config_path, FILE_NAME, path, NULL) != TIDE_OK ||
        tide_file_read(home->world, path, FILE_BYTES_MAX, &text, NULL) != TIDE_OK)
        return;
    tide_text rest = tide_buf_text(&text);
    while (saved_next(&rest, &saved))
        if (saved.name.bytes > 0)
            visit(saved.name, arg);
}

/* ---- in queries ---- */

/* Where "saved:" begins a term; not inside quotation marks. */
static const char *saved_term(const char *text)
{
    static const char word[] = "saved:";
    bool quoted = false;
    for (const char *at = text; *at != '\0'; at++) {
        quoted = quoted != (*at == '"');
        if (!quoted && strncasecmp(at, word, sizeof word - 1) == 0 &&
            (at == text || strchr(" \t\n(){}|-+", at[-1]) != NULL))
            return at;
    }
    return NULL;
}

static tide_status unknown_name(struct cli *cli, const char *name, size_t bytes)
{
    return cli_fail(cli, TIDE_INVALID, "`tidemark mail saved` lists them.",
                    "there is no saved search \"%.*s\"", (int)(bytes > 100 ? 100 : bytes), name);
}

/* The arguments as one query, as written: a quotation mark may be closed in a later one. */
static tide_status words_join(struct cli *cli, unsigned first, tide_buf *words)
{
    tide_status rc = TIDE_OK;
    for (unsigned i = first; rc == TIDE_OK && i < cli->arguments_count; i++)
        rc = tide_buf_print(words, "%s%s", i == first ? "" : " ", cli->arguments[i]);
    return rc;
}

bool mail_query_names_saved(struct cli *cli)
{
    tide_auto_buf words = tide_buf_in(cli->mem, TIDE_QUERY_BYTES_MAX);
    return words_join(cli, 0, &words) != TIDE_OK || saved_term(tide_buf_cstr(&words)) != NULL;
}

/* One alone must be a query: a bracket too many, in a file that was edited, would change what stands
 * around it. */
static tide_status query_check(struct cli *cli, tide_text text)
{
    tide_query *query = NULL;
    char terminated[TIDE_QUERY_BYTES_MAX + 1];
    if (text.bytes > TIDE_QUERY_BYTES_MAX)
        return cli_wrong(cli, "Use a shorter query.", "the query is too long");
    if (text.bytes > 0)
        memcpy(terminated, text.data, text.bytes);
    terminated[text.bytes] = '\0';
    if (saved_term(terminated) != NULL)
        return cli_wrong(cli, "Write the query itself.", "a saved search cannot name another one");
    if (strpbrk(terminated, "\n\r") != NULL)
        return cli_wrong(cli, "Write it on one line.", "the query has several lines");
    if (trimmed(text).bytes == 0)
        return cli_wrong(cli, "Use in:anywhere for all mail.", "the query is empty");
    const tide_status rc = tide_query_parse(text, (int64_t)cli->now_unix_ms, TIDE_QUERY_LOCAL,
                                            cli->mem, &query, &cli->err);
    tide_query_free(query);
    return cli_hint(cli, rc, "`tidemark mail search --help` lists the operators.");
}

static tide_status saved_check(struct cli *cli, const struct saved *saved)
{
    tide_status rc = query_check(cli, saved->query);
    if (rc != TIDE_OK) {
        const tide_error why = cli->err;
        cli->exit_code = 0; /* the command was right */
        rc = cli_fail(cli, rc, "`tidemark mail saved add NAME QUERY...` replaces it.",
                      "the saved search \"%.*s\" cannot be used: %.300s", (int)saved->name.bytes,
                      saved->name.data, why.text);
    }
    return rc;
}

static tide_status expand(struct cli *cli, const char *text, tide_buf *query)
{
    tide_auto_buf file = tide_buf_in(cli->mem, FILE_BYTES_MAX);
    const char *term = saved_term(text);
    if (term != NULL)
        TIDE_TRY(file_read(cli, &file));
    for (; term != NULL; term = saved_term(text)) {
        struct saved saved;
        const char *name = strchr(term, ':') + 1;
        size_t bytes = 0;
        while (is_name_char(name[bytes]))
            bytes++;
        if (!saved_find(&file, (tide_text){name, bytes}, &saved))
            return unknown_name(cli, name, bytes);
        TIDE_TRY(saved_check(cli, &saved));
        TIDE_TRY(tide_buf_print(query, "%.*s(%.*s)", (int)(term - text), text,
                                (int)saved.query.bytes, saved.query.data));
        text = name + bytes;
    }
    return tide_buf_add_text(query, text);
}

static tide_status too_long(struct cli *cli, tide_status rc)
{
    return rc == TIDE_FULL || rc == TIDE_NO_MEMORY
               ? cli_fail(cli, TIDE_INVALID, "Use a shorter query.", "the query is too long")
               : rc;
}

tide_status mail_label_hint(struct cli *cli, tide_status rc)
{
    static const char unknown[] = "no label ";
    return strncmp(cli->err.text, unknown, sizeof unknown - 1) == 0
               ? cli_hint(cli, rc, "`tidemark mail labels` lists the labels.")
               : rc;
}

tide_status mail_query_words(struct cli *cli, unsigned first, size_t bytes_max, tide_buf *query)
{
    tide_auto_buf words = tide_buf_in(cli->mem, bytes_max);
    tide_status rc = words_join(cli, first, &words);
    if (rc == TIDE_OK)
        rc = expand(cli, tide_buf_cstr(&words), query);
    return too_long(cli, rc);
}

tide_status mail_tool_query(struct cli *cli, const char *text, tide_buf *query)
{
    return too_long(cli, expand(cli, text, query));
}

/* ---- the command ---- */

static tide_status list(struct cli *cli)
{
    static const char *const headings[] = {"NAME", "QUERY"};
    tide_auto_buf file = tide_buf_in(cli->mem, FILE_BYTES_MAX);
    struct saved saved;
    tide_json array;
    TIDE_TRY(file_read(cli, &file));
    tide_json_array(&array);
    cli_table_begin(cli, headings, 2);
    for (tide_text rest = tide_buf_text(&file); saved_next(&rest, &saved);) {
        tide_json one;
        if (saved.name.bytes == 0)
            continue;
        cli_cell_text(cli, saved.name);
        cli_cell_text(cli, saved.query);
        tide_json_object(&one);
        tide_json_set_text(&one, "name", saved.name);
        tide_json_set_text(&one, "query", saved.query);
        tide_json_append(&array, &one);
    }
    cli_table_end(cli, "no saved searches; `tidemark mail saved add NAME QUERY...` saves one");
    tide_json_set(&cli->json, "searches", &array);
    return TIDE_OK;
}

static tide_status name_check(struct cli *cli, const char *name)
{
    if (is_name(tide_text_of(name)))
        return TIDE_OK;
    return cli_wrong(cli, "Use up to 64 letters, digits, -, _ and .",
                     "\"%.100s\" cannot be the name of a saved search", name);
}

/* The file without the search of that name; other lines stay as they are. */
static tide_status file_without(struct cli *cli, const char *name, tide_buf *out, bool *had_out)
{
    tide_auto_buf file = tide_buf_in(cli->mem, FILE_BYTES_MAX);
    struct saved saved;
    *had_out = false;
    TIDE_TRY(file_read(cli, &file));
    for (tide_text rest = tide_buf_text(&file); saved_next(&rest, &saved);) {
        const bool is = saved.name.bytes > 0 && tide_text_equal(saved.name, tide_text_of(name));
        *had_out = *had_out || is;
        if (!is)
            TIDE_TRY(tide_buf_add(out, saved.line.data, saved.line.bytes));
    }
    if (out->bytes > 0 && out->data[out->bytes - 1] != '\n')
        TIDE_TRY(tide_buf_add_text(out, "\n"));
    return TIDE_OK;
}

static tide_status file_change(struct cli *cli, const char *name, const char *query)
{
    tide_auto_buf file = tide_buf_in(cli->mem, FILE_BYTES_MAX);
    bool had = false;
    TIDE_TRY(file_without(cli, name, &file, &had));
    if (query == NULL && !had)
        return unknown_name(cli, name, strlen(name));
    if (query != NULL && tide_buf_print(&file, "%s: %s\n", name, query) != TIDE_OK)
        return cli_fail(cli, TIDE_FULL, "Remove some with `tidemark mail saved remove NAME`.",
                        "there is no room for more saved searches");
    return file_write(cli, &file);
}

/* `query` NULL: removes it. */
static tide_status change(struct cli *cli, const char *name, const char *query)
{
    tide_file_lock *lock = NULL;
    TIDE_TRY(lock_take(cli, &lock));
    const tide_status rc = file_change(cli, name, query);
    tide_file_lock_drop(cli->world, lock);
    TIDE_TRY(rc);
    tide_json_set_cstr(&cli->json, "name", name);
    tide_json_set_cstr(&cli->json, "query", query);
    if (query == NULL)
        cli_print(cli, "removed %s\n", name);
    else
        cli_print(cli, "saved; `tidemark mail search saved:%s` uses it\n", name);
    return TIDE_OK;
}

static tide_status add(struct cli *cli)
{
    tide_auto_buf query = tide_buf_in(cli->mem, TIDE_QUERY_BYTES_MAX);
    TIDE_TRY(name_check(cli, cli->arguments[1]));
    if (words_join(cli, 2, &query) != TIDE_OK)
        return cli_fail(cli, TIDE_INVALID, "Use a shorter query.", "the query is too long");
    TIDE_TRY(query_check(cli, tide_buf_text(&query)));
    return change(cli, cli->arguments[1], tide_buf_cstr(&query));
}

tide_status cli_mail_saved(struct cli *cli)
{
    const char *word = cli->arguments_count > 0 ? cli->arguments[0] : "list";
    if (strcmp(word, "list") == 0 && cli->arguments_count <= 1)
        return list(cli);
    if (strcmp(word, "add") == 0 && cli->arguments_count > 2)
        return add(cli);
    if (strcmp(word, "remove") == 0 && cli->arguments_count == 2)
        return change(cli, cli->arguments[1], NULL);
    return cli_wrong(cli, "Write list, add NAME QUERY..., or remove NAME.",
                     "not a command of saved searches: \"%.60s\"", word);
}
