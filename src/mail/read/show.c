/* show.c - `tidemark mail show`: a message, its conversation, its attachments (M9).
 *
 * Mail is untrusted input: only clean text reaches the terminal (mail/mime/message.h MSG3: no control
 * characters), and no text of a message becomes a path on the disk. */
#include "mail/commands/home.h"

#include "base/clocktext.h"
#include "mail/mime/file_name.h"
#include "mail/view/view.h"
#include "world/userfile.h"

#include <inttypes.h>
#include <stdio.h>

enum { NUMBERS_MAX = 10000 }; /* of files with one name */

/* Text of any length: cli_print() has a limit. */
static void add(struct cli *cli, tide_text text)
{
    if (tide_buf_add(&cli->out, text.data, text.bytes) != TIDE_OK)
        (void)cli_fail(cli, TIDE_FULL, "Use --raw and a pager.",
                       "the message is too large to show");
}

static void add_line(struct cli *cli, const char *name, tide_text value)
{
    if (value.bytes == 0)
        return;
    cli_print(cli, "%s: ", name);
    add(cli, value);
    add(cli, TIDE_TEXT("\n"));
}

/* ---- a message ---- */

static void files_show(struct cli *cli, const struct tide_view *view, bool compact)
{
    for (size_t i = 0; i < view->message.attachments_count; i++) {
        const struct tide_attachment *file = &view->message.attachments[i];
        char size[TIDE_SIZE_TEXT_BYTES];
        if (compact && file->inlined)
            continue;
        tide_size_human(tide_attachment_bytes(tide_buf_text(&view->raw), file), size);
        add(cli, TIDE_TEXT("Attachment: "));
        add(cli, file->name.bytes == 0 ? TIDE_TEXT("(no name)") : file->name);
        cli_print(cli, " (%.*s, %s)\n", (int)file->type.bytes, file->type.data, size);
    }
}

static void heads_show(struct cli *cli, const struct tide_view *view)
{
    char when[32];
    const struct tide_message *message = &view->message;
    const struct {
        const char *name;
        tide_text value;
    } heads[] = {{"From", message->from},       {"To", message->to},
                 {"Cc", message->cc},           {"Bcc", message->bcc},
                 {"Subject", message->subject}, {"Message-ID", message->message_id}};
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++)
        add_line(cli, heads[i].name, heads[i].value);
    add_line(cli, "Received", tide_text_of(cli_time((uint64_t)view->stored.internal_ms, when)));
}

static void labels_show(struct cli *cli, const struct tide_view *view)
{
    for (size_t i = 0; i < view->labels_count; i++) {
        add(cli, i == 0 ? TIDE_TEXT("Labels: ") : TIDE_TEXT(", "));
        add(cli, view->labels[i].name);
    }
    if (view->labels_count > 0)
        add(cli, TIDE_TEXT("\n"));
}

/* Only what a reader should know: an exact copy needs no line. */
static void copy_show(struct cli *cli, const struct tide_view *view)
{
    static const char *const notes[TIDE_COPIES] = {
        [TIDE_COPY_HELD] = "from another source; Gmail's own bytes are still to be fetched",
        [TIDE_COPY_SHORT] = "shorter than Gmail said",
        [TIDE_COPY_DAMAGED] = "damaged",
    };
    if (notes[view->copy] != NULL)
        cli_print(cli, "Copy: %s\n", notes[view->copy]);
    if (view->stored.gone)
        cli_print(cli, "Copy: no longer in Gmail\n");
}

static void show_one(struct cli *cli, const struct tide_view *view)
{
    heads_show(cli, view);
    labels_show(cli, view);
    copy_show(cli, view);
    files_show(cli, view, false);
    if (view->message.problem != NULL)
        cli_print(cli, "Note: %s\n", view->message.problem);
    add(cli, TIDE_TEXT("\n"));
    add(cli, view->message.text);
    add(cli, TIDE_TEXT("\n"));
    tide_view_json(view, &cli->json);
}

/* How many images the HTML would load from elsewhere. */
static tide_status remote_count(struct cli *cli, struct tide_view *view)
{
    struct tide_view_page page = {.remote_count = 0};
    tide_buf html;
    tide_buf_init(&html, cli->mem, TIDE_VIEW_HTML_BYTES_MAX);
    const tide_status rc = tide_view_html(view, &html, &page);
    tide_buf_done(&html);
    tide_json_set_u64(&cli->json, "remote_images", page.remote_count);
    return rc == TIDE_OK ? rc
                         : cli_fail(cli, rc, "Use --raw.", "out of memory to show the message");
}

/* ---- a conversation ---- */

struct conversation {
    struct cli *cli;
    const char *account;
    tide_json list;
    unsigned count;
    char subject[256];
};

/* Skips quoted lines: the conversation shows them above. */
static void add_unquoted(struct cli *cli, tide_text text)
{
    unsigned quoted = 0;
    while (text.bytes > 0) {
        const char *end = memchr(text.data, '\n', text.bytes);
        const tide_text line = {text.data,
                                end == NULL ? text.bytes : (size_t)(end - text.data) + 1};
        text.data += line.bytes;
        text.bytes -= line.bytes;
        if (line.data[0] == '>') {
            quoted++;
            continue;
        }
        if (quoted > 0)
            cli_print(cli, "  [%u quoted lines]\n", quoted);
        quoted = 0;
        add(cli, line);
    }
    if (quoted > 0)
        cli_print(cli, "  [%u quoted lines]", quoted);
    add(cli, TIDE_TEXT("\n\n"));
}

static void turn_text(struct conversation *conversation, const struct tide_view *view)
{
    struct cli *cli = conversation->cli;
    const struct tide_message *message = &view->message;
    char subject[256];
    add_line(cli, "From", message->from);
    (void)snprintf(subject, sizeof subject, "%.*s", (int)message->subject.bytes,
                   message->subject.bytes == 0 ? "" : message->subject.data);
    if (strcmp(subject, conversation->subject) != 0)
        add_line(cli, "Subject", message->subject);
    (void)snprintf(conversation->subject, sizeof subject, "%s", subject);
    files_show(cli, view, true);
    add(cli, TIDE_TEXT("\n"));
    add_unquoted(cli, message->text);
}

/* For a copy that cannot be read. */
static const char *remedy_of(const struct tide_stored *stored)
{
    return tide_import_id_is(tide_text_of(stored->gmail_id))
               ? "Run `tidemark mail heal`, then `tidemark mail import` with its file again: Gmail "
                 "does not have it."
               : "Run `tidemark mail heal` to fetch it again.";
}

/* A message that cannot be read does not hide the others. */
static bool turn(const struct tide_view *view, void *arg)
{
    struct conversation *conversation = arg;
    struct cli *cli = conversation->cli;
    char when[32];
    tide_json one;
    cli_print(cli, "---- %u  %s  %s\n", ++conversation->count,
              cli_time((uint64_t)view->stored.internal_ms, when), view->stored.gmail_id);
    if (view->readable) {
        turn_text(conversation, view);
    } else {
        cli->exit_code = CLI_EXIT_BAD_ITEMS;
        cli_print(cli, "%s\n%s\n\n", view->why.text, remedy_of(&view->stored));
    }
    tide_json_object(&one);
    tide_json_set_cstr(&one, "account", conversation->account);
    tide_view_json(view, &one);
    tide_json_append(&conversation->list, &one);
    return true;
}

static tide_status show_thread(struct cli *cli, const struct mail_found *found)
{
    const struct tide_stored *stored = &found->stored;
    struct conversation conversation = {.cli = cli, .account = found->email};
    bool more = false;
    tide_json_array(&conversation.list);
    const tide_status rc =
        tide_view_thread(found->archive, stored, cli->mem, turn, &conversation, &more, &cli->err);
    if (more)
        cli_print(cli,
                  "Only the first %d messages are shown; `tidemark mail search` finds the "
                  "others.\n",
                  TIDE_VIEW_THREAD_MAX);
    tide_json_set_cstr(&cli->json, "thread", stored->thread_id);
    tide_json_set(&cli->json, "messages", &conversation.list);
    tide_json_set_bool(&cli->json, "more", more);
    return rc;
}

/* ---- as HTML ---- */

static tide_status html_write(struct cli *cli, const char *path, tide_text document)
{
    tide_writing *writing = NULL;
    bool same = false;
    tide_status rc = tide_writing_open(cli->mem, path, &writing, &cli->err);
    if (rc == TIDE_OK)
        rc = tide_writing_add(writing, document.data, document.bytes, &cli->err);
    if (rc == TIDE_OK) {
        rc = tide_writing_end_keeping(writing, INT64_MIN, &same, &cli->err);
        writing = NULL; /* freed in any case */
    }
    tide_writing_drop(writing);
    return rc == TIDE_EXISTS
               ? cli_fail(cli, rc, "Give another name, or remove the file.",
                          "%.300s exists and has other content", path)
               : cli_hint(cli, rc, "Check that the directory belongs to you and has free space.");
}

static void html_counts(struct cli *cli, const struct tide_view *view,
                        const struct tide_view_page *page)
{
    tide_json urls;
    tide_json_array(&urls);
    for (size_t i = 0; i < page->remote_count; i++) {
        tide_json one;
        tide_json_object(&one);
        tide_json_set_u64(&one, "number", i);
        tide_json_set_text(&one, "url", page->remote[i]);
        tide_json_append(&urls, &one);
    }
    tide_json_set_cstr(&cli->json, "id", view->stored.gmail_id);
    tide_json_set_bool(&cli->json, "html", page->html);
    tide_json_set_bool(&cli->json, "cut", page->cut);
    tide_json_set(&cli->json, "remote_images", &urls);
}

/* To a file, or to standard output, where nothing else is written. */
static tide_status show_html(struct cli *cli, struct tide_view *view, const char *path)
{
    struct tide_view_page page;
    tide_buf document;
    tide_buf_init(&document, cli->mem, TIDE_VIEW_DOCUMENT_BYTES_MAX);
    tide_status rc = tide_view_document(view, &document, &page);
    if (rc != TIDE_OK)
        rc = cli_fail(cli, rc, "Use --raw.", "out of memory to show the message");
    if (rc == TIDE_OK)
        html_counts(cli, view, &page);
    if (rc == TIDE_OK && path == NULL) {
        add(cli, tide_buf_text(&document));
        tide_json_set_text(&cli->json, "document", tide_buf_text(&document));
    } else if (rc == TIDE_OK) {
        rc = html_write(cli, path, tide_buf_text(&document));
        tide_json_set_cstr(&cli->json, "file", path);
        if (rc == TIDE_OK && page.remote_count == 0)
            cli_print(cli, "wrote %s\n", path);
        else if (rc == TIDE_OK)
            cli_print(cli, "wrote %s; remote images not loaded: %zu\n", path, page.remote_count);
    }
    tide_buf_done(&document);
    return rc;
}

/* ---- attachments ---- */

/* The stem and the ending of a file name, between which a number goes. */
static void name_split(const char *name, char stem[TIDE_FILE_NAME_BYTES_MAX + 1], char ending[32])
{
    const char *dot = strrchr(name, '.');
    const bool has_ending = dot != NULL && dot != name && strlen(dot) < 16;
    (void)snprintf(ending, 32, "%s", has_ending ? dot : "");
    (void)snprintf(stem, TIDE_FILE_NAME_BYTES_MAX + 1, "%.*s",
                   has_ending ? (int)(dot - name) : (int)strlen(name), name);
}

/* Writes it under the first free name. */
static tide_status save_as(struct cli *cli, const char *dir, const char *stem, const char *ending,
                           tide_text content, char path[CLI_PATH_BYTES])
{
    tide_writing *writing = NULL;
    int used = snprintf(path, CLI_PATH_BYTES, "%s/%s%s", dir, stem, ending);
    if (used < 0 || used >= CLI_PATH_BYTES)
        return cli_fail(cli, TIDE_INVALID, "Use a shorter path.", "the path is too long");
    tide_status rc = tide_writing_open(cli->mem, path, &writing, &cli->err);
    if (rc == TIDE_OK)
        rc = tide_writing_add(writing, content.data, content.bytes, &cli->err);
    for (unsigned number = 2; rc == TIDE_OK; number++) {
        rc = tide_writing_end_new(writing, path, &cli->err);
        if (rc == TIDE_OK)
            return TIDE_OK; /* save took ownership of `writing` */
        if (rc != TIDE_EXISTS || number == NUMBERS_MAX)
            break;
        used = snprintf(path, CLI_PATH_BYTES, "%s/%s (%u)%s", dir, stem, number, ending);
        rc = used < 0 || used >= CLI_PATH_BYTES
                 ? tide_error_set(&cli->err, TIDE_INVALID, "the path is too long")
                 : TIDE_OK;
    }
    tide_writing_drop(writing);
    return rc;
}

static tide_status save_one(struct cli *cli, const char *dir, const struct tide_view *view,
                            size_t index, tide_json *list)
{
    const struct tide_attachment *file = &view->message.attachments[index];
    char name[TIDE_FILE_NAME_BYTES_MAX + 1];
    char stem[TIDE_FILE_NAME_BYTES_MAX + 1];
    char ending[32];
    char path[CLI_PATH_BYTES];
    char size[TIDE_SIZE_TEXT_BYTES];
    tide_json one;
    tide_buf content;
    tide_buf_init(&content, cli->mem, TIDE_VIEW_RAW_BYTES_MAX);
    tide_status rc = tide_attachment_decode(tide_buf_text(&view->raw), file, &content, &cli->err);
    tide_file_name(file, index + 1, name);
    name_split(name, stem, ending);
    if (rc == TIDE_OK)
        rc = save_as(cli, dir, stem, ending, tide_buf_text(&content), path);
    if (rc == TIDE_OK) {
        tide_size_human(content.bytes, size);
        cli_print(cli, "saved %s (%s)\n", path, size);
        tide_json_object(&one);
        tide_json_set_u64(&one, "number", index + 1);
        tide_json_set_cstr(&one, "file", path);
        tide_json_set_text(&one, "type", file->type);
        tide_json_set_u64(&one, "bytes", content.bytes);
        tide_json_append(list, &one);
    }
    tide_buf_done(&content);
    return rc;
}

static tide_status save_all(struct cli *cli, const char *dir, const struct tide_view *view)
{
    tide_json list;
    tide_json_array(&list);
    tide_status rc = tide_dir_make(cli->world, dir, &cli->err);
    for (size_t i = 0; rc == TIDE_OK && i < view->message.attachments_count; i++)
        rc = save_one(cli, dir, view, i, &list);
    if (rc == TIDE_OK && view->message.attachments_count == 0)
        cli_print(cli, "the message has no attachments\n");
    tide_json_set(&cli->json, "saved", &list);
    return cli_hint(cli, rc, "Check that the directory belongs to you and has free space.");
}

/* ---- the command ---- */

/* With --html the second argument is a file, else all are ids. */
static unsigned ids_count(const struct cli *cli)
{
    return cli_flag(cli, "html") != NULL ? 1 : cli->arguments_count;
}

static tide_status flags_check(struct cli *cli)
{
    const char *const one_of[] = {"raw", "thread", "save-attachments", "html"};
    unsigned given = 0;
    for (size_t i = 0; i < sizeof one_of / sizeof one_of[0]; i++)
        given += cli_flag(cli, one_of[i]) != NULL;
    if (given > 1)
        return cli_wrong(cli, "Give one of them.",
                         "--raw, --thread, --html and --save-attachments cannot be used together");
    if (cli->arguments_count > 2 && cli_flag(cli, "html") != NULL)
        return cli_wrong(cli, "Give one ID and the FILE to write.",
                         "\"%.100s\" is one argument too many", cli->arguments[2]);
    if (cli->arguments_count > 1 &&
        (cli_flag(cli, "raw") != NULL || cli_flag(cli, "thread") != NULL))
        return cli_wrong(cli, "Give one ID.", "--raw and --thread show one message at a time");
    return TIDE_OK;
}

static tide_status show_message(struct cli *cli, tide_archive *archive,
                                const struct tide_stored *stored)
{
    const char *save_dir = cli_flag(cli, "save-attachments");
    const char *file = cli->arguments_count > 1 ? cli->arguments[1] : NULL;
    struct tide_view view;
    tide_status rc = tide_view_open(archive, stored, cli->mem, &view, &cli->err);
    if (rc == TIDE_OK && !view.readable) {
        cli->err = view.why;
        rc = view.why.status;
    }
    rc = cli_hint(cli, rc, remedy_of(stored));
    if (rc == TIDE_OK && save_dir != NULL)
        rc = save_all(cli, save_dir, &view);
    else if (rc == TIDE_OK && cli_flag(cli, "html") != NULL)
        rc = show_html(cli, &view, file);
    else if (rc == TIDE_OK) {
        show_one(cli, &view);
        rc = remote_count(cli, &view);
    }
    tide_view_done(&view);
    return rc;
}

/* Without parsing it: a message that no parser can read is still printed. */
static tide_status show_raw(struct cli *cli, tide_archive *archive,
                            const struct tide_stored *stored)
{
    tide_buf raw;
    tide_buf_init(&raw, cli->mem, TIDE_VIEW_RAW_BYTES_MAX);
    tide_status rc = tide_archive_raw(archive, stored, &raw, &cli->err);
    rc = cli_hint(cli, rc, remedy_of(stored));
    if (rc == TIDE_OK)
        rc = tide_buf_add(&cli->out, tide_buf_cstr(&raw), raw.bytes);
    tide_buf_done(&raw);
    return rc;
}

static tide_status show_id(struct cli *cli, const char *id)
{
    struct mail_found found;
    const bool raw = cli_flag(cli, "raw") != NULL;
    const bool thread = cli_flag(cli, "thread") != NULL;
    tide_status rc = mail_home_find(cli, cli_flag(cli, "account"), id, thread, &found);
    if (rc == TIDE_OK && raw)
        rc = show_raw(cli, found.archive, &found.stored);
    else if (rc == TIDE_OK && thread)
        rc = show_thread(cli, &found);
    else if (rc == TIDE_OK)
        rc = show_message(cli, found.archive, &found.stored);
    if (rc == TIDE_OK)
        tide_json_set_cstr(&cli->json, "account", found.email);
    mail_home_give(cli, found.archive);
    return rc;
}

/* Several messages are a list, each as it is alone. */
static tide_status show_ids(struct cli *cli, unsigned count)
{
    tide_json list;
    tide_status rc = TIDE_OK;
    tide_json_array(&list);
    for (unsigned i = 0; rc == TIDE_OK && i < count; i++) {
        if (cli_flag(cli, "save-attachments") == NULL)
            cli_print(cli, "%s---- %u  %.100s\n", i == 0 ? "" : "\n", i + 1, cli->arguments[i]);
        rc = show_id(cli, cli->arguments[i]);
        tide_json_append(&list, &cli->json);
        tide_json_object(&cli->json);
    }
    tide_json_set(&cli->json, "messages", &list);
    return rc;
}

tide_status cli_mail_show(struct cli *cli)
{
    TIDE_TRY(flags_check(cli));
    const unsigned count = ids_count(cli);
    cli->exact_output = cli_flag(cli, "raw") != NULL ||
                        (cli_flag(cli, "html") != NULL && cli->arguments_count == 1);
    cli->paged = !cli->exact_output;
    return count == 1 ? show_id(cli, cli->arguments[0]) : show_ids(cli, count);
}
