/* draft.c - `tidemark reader drafts|draft|continue|save|discard|attach|detach`: messages that a person
 * writes. */
#include "cli/archive_here.h"
#include "reader/commands/home.h"
#include "reader/reader.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { FILE_BYTES_MAX = 25 << 20, FILE_NAME_BYTES = 33 };

static tide_status account_of(struct cli *cli, const char **account_out)
{
    *account_out = cli_flag(cli, "account");
    return *account_out != NULL
               ? TIDE_OK
               : cli_wrong(cli, "Name it with --account EMAIL.", "no account is named");
}

/* ---- looking ---- */

struct looking {
    struct cli *cli;
    json_t *items;
};

static void texts_set(const json_t *form, tide_json *one)
{
    static const char *const names[] = {"to",   "cc",          "bcc",        "subject",
                                        "text", "in_reply_to", "references", "thread"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *text = json_string_value(json_object_get(form, names[i]));
        tide_json_set_cstr(one, names[i], text == NULL ? "" : text);
    }
}

static void files_set(const json_t *files, tide_json *one)
{
    tide_json list;
    size_t at = 0;
    const json_t *file = NULL;
    tide_json_array(&list);
    json_array_foreach(files, at, file)
    {
        tide_json entry;
        tide_json_object(&entry);
        tide_json_set_cstr(&entry, "name", json_string_value(json_object_get(file, "name")));
        tide_json_set_u64(&entry, "bytes",
                          (uint64_t)json_integer_value(json_object_get(file, "bytes")));
        tide_json_append(&list, &entry);
    }
    tide_json_set(one, "attachments", &list);
}

static void draft_add(const struct tide_draft *draft, void *arg)
{
    struct looking *looking = arg;
    json_auto_t *form = NULL;
    json_auto_t *files = NULL;
    bool formatted = false;
    bool removed = false;
    tide_json one;
    (void)tide_json_parse_stored(draft->json, &form, NULL);
    (void)tide_json_parse_stored(draft->files, &files, NULL);
    tide_json_object(&one);
    tide_json_set_cstr(&one, "id", draft->id);
    texts_set(form, &one);
    files_set(files, &one);
    tide_json_set_u64(&one, "saved_unix_ms", draft->changed_ms);
    tide_json_set_u64(&one, "sending", draft->sending);
    tide_reader_draft_told(draft->outgoing, &formatted, &removed);
    tide_json_set_bool(&one, "formatted", formatted);
    tide_json_set_bool(&one, "removed", removed);
    (void)json_array_append_new(looking->items, one.value);
}

/* One that is being thrown away is not shown any more. */
static tide_status discarded_drop(const struct reader_home *home, json_t *items)
{
    for (size_t i = json_array_size(items); i > 0; i--) {
        struct tide_reader_action action;
        const uint64_t id =
            (uint64_t)json_integer_value(json_object_get(json_array_get(items, i - 1), "sending"));
        if (id == 0)
            continue;
        const tide_status rc =
            tide_action_get(home->mailbox.db, home->mailbox.account, id, &action, &home->cli->err);
        if (rc != TIDE_OK && rc != TIDE_NOT_FOUND)
            return rc;
        if (rc == TIDE_OK && strcmp(action.what, "discard") == 0)
            (void)json_array_remove(items, i - 1);
    }
    return TIDE_OK;
}

static void draft_cells(struct cli *cli, const json_t *one)
{
    char when[32];
    cli_cell(cli, "%s", json_string_value(json_object_get(one, "id")));
    cli_cell(cli, "%s",
             cli_time((uint64_t)json_integer_value(json_object_get(one, "saved_unix_ms")), when));
    cli_cell_text(cli, tide_text_of(json_string_value(json_object_get(one, "to"))));
    cli_cell_text(cli, tide_text_of(json_string_value(json_object_get(one, "subject"))));
    cli_cell(cli, "%zu", json_array_size(json_object_get(one, "attachments")));
}

static tide_status drafts_read(const struct reader_home *home, const char *id, json_t *items)
{
    struct looking looking = {home->cli, items};
    if (!home->mailbox.has_overlay)
        return TIDE_OK;
    const tide_status rc = id == NULL ? tide_drafts_each(home->mailbox.db, home->mailbox.account,
                                                         draft_add, &looking, &home->cli->err)
                                      : tide_draft_get(home->mailbox.db, home->mailbox.account, id,
                                                       draft_add, &looking, &home->cli->err);
    return rc == TIDE_OK || rc == TIDE_NOT_FOUND ? discarded_drop(home, items) : rc;
}

tide_status cli_reader_drafts(struct cli *cli)
{
    static const char *const headings[] = {"ID", "SAVED", "TO", "SUBJECT", "FILES"};
    struct reader_home home;
    tide_json items;
    size_t at = 0;
    const json_t *one = NULL;
    tide_json_array(&items);
    tide_status rc = reader_home_open(cli, cli->arguments[0], &home);
    if (rc == TIDE_OK)
        rc = drafts_read(&home, NULL, items.value);
    cli_table_begin(cli, headings, sizeof headings / sizeof headings[0]);
    json_array_foreach(items.value, at, one)
    {
        draft_cells(cli, one);
    }
    cli_table_end(cli, "no drafts");
    tide_json_set(&cli->json, "items", &items);
    reader_home_close(&home);
    return rc;
}

static tide_status no_draft(struct cli *cli, const char *account)
{
    char hint[300];
    (void)snprintf(hint, sizeof hint, "`tidemark reader drafts %.200s` lists them.", account);
    return cli_fail(cli, TIDE_NOT_FOUND, hint, "there is no draft \"%.64s\"", cli->arguments[0]);
}

tide_status cli_reader_draft(struct cli *cli)
{
    const char *account = NULL;
    struct reader_home home;
    json_auto_t *items = json_array();
    TIDE_TRY(account_of(cli, &account));
    tide_status rc = reader_home_open(cli, account, &home);
    if (rc == TIDE_OK)
        rc = drafts_read(&home, cli->arguments[0], items);
    reader_home_close(&home);
    if (rc != TIDE_OK)
        return rc;
    const json_t *one = json_array_get(items, 0);
    if (one == NULL)
        return no_draft(cli, account);
    (void)json_object_update(cli->json.value, (json_t *)(uintptr_t)one);
    if (json_is_true(json_object_get(one, "formatted")))
        cli_print(cli, "Gmail has it with formatting, which the first change here takes away.\n");
    if (json_is_true(json_object_get(one, "removed")))
        cli_print(cli, "It was sent or deleted in Gmail; this is a draft of its own.\n");
    cli_print(cli, "To: %s\nSubject: %s\n\n%s\n", json_string_value(json_object_get(one, "to")),
              json_string_value(json_object_get(one, "subject")),
              json_string_value(json_object_get(one, "text")));
    return TIDE_OK;
}

/* ---- changing ---- */

static tide_status ask(struct cli *cli, const char *what, tide_json *request, json_t **answer_out)
{
    tide_json_set_cstr(request, "draft", cli->arguments[0]);
    TIDE_TRY(reader_ask(cli, what, request, answer_out));
    tide_json_set_cstr(&cli->json, "id", cli->arguments[0]);
    return TIDE_OK;
}

tide_status cli_reader_continue(struct cli *cli)
{
    const char *message = cli_flag(cli, "message");
    json_auto_t *answer = NULL;
    tide_json request;
    if (message == NULL)
        return cli_wrong(cli, "Name it with --message ID.", "no message is named");
    tide_json_object(&request);
    tide_json_set_cstr(&request, "account", cli->arguments[0]);
    tide_json_set_cstr(&request, "message", message);
    TIDE_TRY(reader_ask(cli, "continue", &request, &answer));
    const char *id = json_string_value(json_object_get(answer, "draft"));
    const json_int_t job = json_integer_value(json_object_get(answer, "job"));
    tide_json_set_cstr(&cli->json, "id", id == NULL ? "" : id);
    tide_json_set_u64(&cli->json, "job", (uint64_t)job);
    if (id == NULL || id[0] == '\0')
        cli_print(cli, "job %" JSON_INTEGER_FORMAT " fetches its text; ask again then\n", job);
    else
        cli_print(cli, "draft %s\n", id);
    return TIDE_OK;
}

tide_status cli_reader_save(struct cli *cli)
{
    const char *account = NULL;
    json_auto_t *answer = NULL;
    tide_auto_buf text = tide_buf_in(cli->mem, TIDE_DRAFT_BYTES_MAX + 1);
    tide_json request;
    TIDE_TRY(account_of(cli, &account));
    TIDE_TRY(cli_input(cli, TIDE_DRAFT_BYTES_MAX, &text));
    tide_json_object(&request);
    tide_json_set_cstr(&request, "account", account);
    tide_json_set_text(&request, "json", tide_buf_text(&text));
    TIDE_TRY(ask(cli, "save", &request, &answer));
    tide_json_set_u64(&cli->json, "saved_unix_ms",
                      (uint64_t)json_integer_value(json_object_get(answer, "saved_unix_ms")));
    tide_json_set_bool(&cli->json, "created", json_is_true(json_object_get(answer, "created")));
    cli_print(cli, "saved\n");
    return TIDE_OK;
}

static tide_status removed(struct cli *cli, const json_t *answer)
{
    const bool is = json_is_true(json_object_get(answer, "removed"));
    tide_json_set_bool(&cli->json, "removed", is);
    cli_print(cli, is ? "removed\n" : "there was none\n");
    return TIDE_OK;
}

tide_status cli_reader_discard(struct cli *cli)
{
    const char *account = NULL;
    json_auto_t *answer = NULL;
    tide_json request;
    TIDE_TRY(account_of(cli, &account));
    tide_json_object(&request);
    tide_json_set_cstr(&request, "account", account);
    TIDE_TRY(ask(cli, "discard", &request, &answer));
    return removed(cli, answer);
}

tide_status cli_reader_detach(struct cli *cli)
{
    const char *account = NULL;
    json_auto_t *answer = NULL;
    tide_json request;
    TIDE_TRY(account_of(cli, &account));
    tide_json_object(&request);
    tide_json_set_cstr(&request, "account", account);
    tide_json_set_cstr(&request, "name", cli->arguments[1]);
    TIDE_TRY(ask(cli, "detach", &request, &answer));
    tide_json_set_cstr(&cli->json, "name", cli->arguments[1]);
    return removed(cli, answer);
}

/* What recipients' programs open it with; a type that is not known here is "some bytes". */
static const char *type_of(const char *name)
{
    static const char *const types[][2] = {
        {".csv", "text/csv"},        {".gif", "image/gif"},         {".htm", "text/html"},
        {".html", "text/html"},      {".ics", "text/calendar"},     {".jpeg", "image/jpeg"},
        {".jpg", "image/jpeg"},      {".json", "application/json"}, {".mp3", "audio/mpeg"},
        {".mp4", "video/mp4"},       {".pdf", "application/pdf"},   {".png", "image/png"},
        {".svg", "image/svg+xml"},   {".txt", "text/plain"},        {".webp", "image/webp"},
        {".zip", "application/zip"},
    };
    const char *end = strrchr(name, '.');
    for (size_t i = 0; end != NULL && i < sizeof types / sizeof types[0]; i++)
        if (strcasecmp(end, types[i][0]) == 0)
            return types[i][1];
    return "application/octet-stream";
}

/* DRF1: the file is on the disk before the engine's process is told of it. */
static tide_status file_write(struct cli *cli, const char *account, tide_text content,
                              char name_out[FILE_NAME_BYTES])
{
    char archive_dir[CLI_PATH_BYTES], secrets_dir[CLI_PATH_BYTES], path[CLI_PATH_BYTES];
    (void)snprintf(name_out, FILE_NAME_BYTES, "%016" PRIx64 "%016" PRIx64,
                   tide_world_random_u64(cli->world), tide_world_random_u64(cli->world));
    TIDE_TRY(archive_here_places(cli, archive_dir, secrets_dir));
    if (!tide_draft_path(archive_dir, account, "", path, sizeof path))
        return cli_fail(cli, TIDE_INVALID, "Use a shorter --home.", "the path is too long");
    TIDE_TRY(tide_dir_make(cli->world, path, &cli->err));
    if (!tide_draft_path(archive_dir, account, name_out, path, sizeof path))
        return cli_fail(cli, TIDE_INVALID, "Use a shorter --home.", "the path is too long");
    return cli_hint(cli, tide_file_replace(cli->world, path, content, 0600, &cli->err),
                    "Make room on the disk, and try again.");
}

/* The account exists: its name becomes that of a directory. */
static tide_status account_check(struct cli *cli, const char *account)
{
    struct reader_home home;
    const tide_status rc = reader_home_open(cli, account, &home);
    reader_home_close(&home);
    return rc;
}

tide_status cli_reader_attach(struct cli *cli)
{
    const char *account = NULL;
    json_auto_t *answer = NULL;
    tide_auto_buf content = tide_buf_in(cli->mem, FILE_BYTES_MAX + 1);
    char file[FILE_NAME_BYTES];
    tide_json request;
    TIDE_TRY(account_of(cli, &account));
    TIDE_TRY(account_check(cli, account));
    TIDE_TRY(cli_input(cli, FILE_BYTES_MAX, &content));
    TIDE_TRY(file_write(cli, account, tide_buf_text(&content), file));
    tide_json_object(&request);
    tide_json_set_cstr(&request, "account", account);
    tide_json_set_cstr(&request, "name", cli->arguments[1]);
    tide_json_set_cstr(&request, "type", type_of(cli->arguments[1]));
    tide_json_set_cstr(&request, "file", file);
    tide_json_set_u64(&request, "bytes", content.bytes);
    TIDE_TRY(ask(cli, "attach", &request, &answer));
    tide_json_set_cstr(&cli->json, "name", cli->arguments[1]);
    tide_json_set_u64(&cli->json, "bytes", content.bytes);
    cli_print(cli, "attached\n");
    return TIDE_OK;
}
