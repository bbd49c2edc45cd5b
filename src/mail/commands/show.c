/* show.c - `tidemark mail show`: a message, its conversation, its attachments (M9).
 *
 * Mail is untrusted input: only clean text reaches the terminal (mail/mime/message.h MSG3: no control
 * characters), and no text of a message becomes a path on the disk. */
#include "mail/commands/home.h"

#include "base/clocktext.h"
#include "mail/mime/message.h"
#include "world/userfile.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    RAW_BYTES_MAX = 600 << 20,
    TEXT_ARENA_BYTES = 256 << 20,
    NAME_BYTES_MAX = 180, /* of a file, before a number */
    NUMBERS_MAX = 10000,  /* of files with one name */
};

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

static void files_show(struct cli *cli, tide_json *json, const struct tide_message *message,
                       bool compact)
{
    tide_json files;
    tide_json_array(&files);
    for (size_t i = 0; i < message->attachments_count; i++) {
        const struct tide_attachment *file = &message->attachments[i];
        tide_json one;
        char size[TIDE_SIZE_TEXT_BYTES];
        uint64_t bytes = file->end - file->begin;
        if (file->encoding == TIDE_ENCODING_BASE64)
            bytes = bytes * 37 / 50; /* base64: 4 characters hold 3 bytes, plus line ends */
        tide_size_human(bytes, size);
        if (!compact || !file->inlined) {
            add(cli, TIDE_TEXT("Attachment: "));
            add(cli, file->name.bytes == 0 ? TIDE_TEXT("(no name)") : file->name);
            cli_print(cli, " (%.*s, about %s)\n", (int)file->type.bytes, file->type.data, size);
        }
        tide_json_object(&one);
        tide_json_set_text(&one, "name", file->name);
        tide_json_set_text(&one, "type", file->type);
        tide_json_set_u64(&one, "bytes_about", bytes);
        tide_json_set_bool(&one, "inline", file->inlined);
        tide_json_append(&files, &one);
    }
    tide_json_set(json, "attachments", &files);
}

static void heads_show(struct cli *cli, tide_json *json, const struct tide_stored *stored,
                       const struct tide_message *message)
{
    char when[32];
    const struct {
        const char *name;
        tide_text value;
    } heads[] = {{"From", message->from},       {"To", message->to},
                 {"Cc", message->cc},           {"Bcc", message->bcc},
                 {"Subject", message->subject}, {"Message-ID", message->message_id}};
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        add_line(cli, heads[i].name, heads[i].value);
        tide_json_set_text(json, heads[i].name, heads[i].value);
    }
    add_line(cli, "Received", tide_text_of(cli_time((uint64_t)stored->internal_ms, when)));
    tide_json_set_cstr(json, "id", stored->gmail_id);
    tide_json_set_cstr(json, "thread", stored->thread_id);
    tide_json_set_i64(json, "internal_unix_ms", stored->internal_ms);
    tide_json_set_u64(json, "bytes", stored->bytes);
}

static tide_status parse(struct cli *cli, tide_text raw, tide_arena *arena,
                         struct tide_message *message)
{
    tide_arena_init(arena, cli->mem, TEXT_ARENA_BYTES);
    const tide_status rc = tide_message_parse(raw, arena, message);
    return rc == TIDE_OK ? rc
                         : cli_fail(cli, rc, "Use --raw.", "out of memory to read the message");
}

static void label_line(const struct tide_label_row *label, void *arg)
{
    tide_buf *line = arg;
    const tide_text text = label->name.bytes > 0 ? label->name : label->id;
    (void)tide_buf_print(line, "%s%.*s", line->bytes == 0 ? "" : ", ", (int)text.bytes, text.data);
}

static tide_status show_one(struct cli *cli, tide_archive *archive,
                            const struct tide_stored *stored, tide_text raw)
{
    struct tide_message message;
    tide_arena arena;
    tide_auto_buf labels = tide_buf_in(cli->mem, 64 << 10);
    tide_status rc = parse(cli, raw, &arena, &message);
    if (rc == TIDE_OK)
        rc = tide_archive_label_rows(archive, stored, label_line, &labels, &cli->err);
    if (rc == TIDE_OK) {
        heads_show(cli, &cli->json, stored, &message);
        add_line(cli, "Labels", tide_buf_text(&labels));
        tide_json_set_text(&cli->json, "labels", tide_buf_text(&labels));
        files_show(cli, &cli->json, &message, false);
        if (message.problem != NULL)
            cli_print(cli, "Note: %s\n", message.problem);
        add(cli, TIDE_TEXT("\n"));
        add(cli, message.text);
        add(cli, TIDE_TEXT("\n"));
        tide_json_set_text(&cli->json, "text", message.text);
    }
    tide_arena_done(&arena);
    return rc;
}

/* ---- a conversation ---- */

struct conversation {
    struct cli *cli;
    tide_archive *archive;
    tide_buf raw;
    tide_json list;
    unsigned count;
    char subject[256];
    tide_status rc;
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

static tide_status show_turn(struct conversation *conversation, const struct tide_stored *stored)
{
    struct cli *cli = conversation->cli;
    struct tide_message message;
    tide_arena arena;
    char when[32];
    char subject[256];
    tide_json one;
    tide_buf_clear(&conversation->raw);
    TIDE_TRY(tide_archive_raw(conversation->archive, stored, &conversation->raw, &cli->err));
    const tide_text raw = tide_buf_text(&conversation->raw);
    tide_status rc = parse(cli, raw, &arena, &message);
    if (rc == TIDE_OK) {
        tide_json_object(&one);
        cli_print(cli, "---- %u  %s  %s\n", ++conversation->count,
                  cli_time((uint64_t)stored->internal_ms, when), stored->gmail_id);
        add_line(cli, "From", message.from);
        (void)snprintf(subject, sizeof subject, "%.*s", (int)message.subject.bytes,
                       message.subject.bytes == 0 ? "" : message.subject.data);
        if (strcmp(subject, conversation->subject) != 0)
            add_line(cli, "Subject", message.subject);
        (void)snprintf(conversation->subject, sizeof subject, "%s", subject);
        files_show(cli, &one, &message, true);
        add(cli, TIDE_TEXT("\n"));
        add_unquoted(cli, message.text);
        tide_json_set_cstr(&one, "id", stored->gmail_id);
        tide_json_set_i64(&one, "internal_unix_ms", stored->internal_ms);
        tide_json_set_text(&one, "From", message.from);
        tide_json_set_text(&one, "To", message.to);
        tide_json_set_text(&one, "Subject", message.subject);
        tide_json_set_text(&one, "text", message.text);
        tide_json_append(&conversation->list, &one);
    }
    tide_arena_done(&arena);
    return rc;
}

static bool turn(const struct tide_stored *stored, void *arg)
{
    struct conversation *conversation = arg;
    conversation->rc = show_turn(conversation, stored);
    return conversation->rc == TIDE_OK;
}

static tide_status show_thread(struct cli *cli, tide_archive *archive,
                               const struct tide_stored *stored)
{
    struct conversation conversation = {.cli = cli, .archive = archive, .rc = TIDE_OK};
    tide_buf_init(&conversation.raw, cli->mem, RAW_BYTES_MAX);
    tide_json_array(&conversation.list);
    tide_status rc = TIDE_OK;
    if (stored->thread_id[0] == '\0') /* it belongs to no thread */
        (void)turn(stored, &conversation);
    else
        rc = tide_archive_thread(archive, tide_text_of(stored->thread_id), turn, &conversation,
                                 &cli->err);
    tide_json_set_cstr(&cli->json, "thread", stored->thread_id);
    tide_json_set(&cli->json, "messages", &conversation.list);
    tide_buf_done(&conversation.raw);
    return rc == TIDE_OK ? conversation.rc : rc;
}

/* ---- attachments ---- */

/* Whether a character (UTF-8) changes the direction of writing, which would show "fdp.exe" as
 * "exe.pdf" in a file name. */
static bool turns(tide_text rest)
{
    const unsigned char *c = (const unsigned char *)rest.data;
    return rest.bytes >= 3 && c[0] == 0xe2 &&
           ((c[1] == 0x80 && (c[2] == 0x8e || c[2] == 0x8f || (c[2] >= 0xaa && c[2] <= 0xae))) ||
            (c[1] == 0x81 && c[2] >= 0xa6 && c[2] <= 0xa9));
}

/* The stem and the extension of a safe file name: no slash, no leading dot, no
 * control character, not too long. */
static void safe_name(const struct tide_attachment *file, size_t number, char stem[256],
                      char ending[32])
{
    size_t used = 0;
    char name[NAME_BYTES_MAX + 8];
    for (size_t i = 0; i < file->name.bytes && used < NAME_BYTES_MAX; i++) {
        const unsigned char c = (unsigned char)file->name.data[i];
        if (turns((tide_text){file->name.data + i, file->name.bytes - i})) {
            i += 2;
            continue;
        }
        const bool plain = c >= 0x20 && c != 0x7f && strchr("/\\:*?\"<>|", c) == NULL;
        if (used == 0 && (c == '.' || c == ' '))
            continue;
        name[used++] = plain ? (char)c : '_';
    }
    /* Cut inside a character: go back to its start. */
    while (used == NAME_BYTES_MAX && used > 0 && ((unsigned char)name[used - 1] & 0x80) != 0)
        used--;
    while (used > 0 && (name[used - 1] == ' ' || name[used - 1] == '.'))
        used--;
    name[used] = '\0';
    const bool letter = tide_text_equal(file->type, TIDE_TEXT("message/rfc822"));
    if (used == 0)
        (void)snprintf(name, sizeof name, "attachment-%zu%s", number, letter ? ".eml" : "");
    const char *dot = strrchr(name, '.');
    const bool has_ending = dot != NULL && dot != name && strlen(dot) < 16;
    (void)snprintf(ending, 32, "%s", has_ending ? dot : "");
    (void)snprintf(stem, 256, "%.*s", has_ending ? (int)(dot - name) : (int)strlen(name), name);
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

static tide_status save_all(struct cli *cli, const char *dir, tide_text raw)
{
    struct tide_message message;
    tide_arena arena;
    tide_json list;
    tide_auto_buf content = tide_buf_in(cli->mem, RAW_BYTES_MAX);
    tide_json_array(&list);
    tide_status rc = parse(cli, raw, &arena, &message);
    if (rc == TIDE_OK)
        rc = tide_dir_make(cli->world, dir, &cli->err);
    for (size_t i = 0; rc == TIDE_OK && i < message.attachments_count; i++) {
        char stem[256];
        char ending[32];
        char path[CLI_PATH_BYTES];
        char size[TIDE_SIZE_TEXT_BYTES];
        tide_json one;
        tide_buf_clear(&content);
        rc = tide_attachment_decode(raw, &message.attachments[i], &content, &cli->err);
        if (rc != TIDE_OK)
            break;
        safe_name(&message.attachments[i], i + 1, stem, ending);
        rc = save_as(cli, dir, stem, ending, tide_buf_text(&content), path);
        if (rc != TIDE_OK)
            break;
        tide_size_human(content.bytes, size);
        cli_print(cli, "saved %s (%s)\n", path, size);
        tide_json_object(&one);
        tide_json_set_cstr(&one, "file", path);
        tide_json_set_text(&one, "type", message.attachments[i].type);
        tide_json_set_u64(&one, "bytes", content.bytes);
        tide_json_append(&list, &one);
    }
    if (rc == TIDE_OK && message.attachments_count == 0)
        cli_print(cli, "the message has no attachments\n");
    tide_json_set(&cli->json, "saved", &list);
    tide_arena_done(&arena);
    return cli_hint(cli, rc, "Check that the directory belongs to you and has free space.");
}

tide_status cli_mail_show(struct cli *cli)
{
    struct mail_home home = {0};
    char email[256];
    tide_archive *archive = NULL;
    struct tide_stored stored;
    const char *save_dir = cli_flag(cli, "save-attachments");
    const bool thread = cli_flag(cli, "thread") != NULL;
    tide_auto_buf raw = tide_buf_in(cli->mem, RAW_BYTES_MAX);
    tide_message_start();
    tide_status rc = mail_home_archive(cli, &home, cli_flag(cli, "account"), email, &archive);
    if (rc == TIDE_OK)
        rc = tide_archive_find(archive, tide_text_of(cli->arguments[0]), &stored, &cli->err);
    if (archive != NULL)
        (void)mail_home_broken(cli, archive);
    if (rc == TIDE_NOT_FOUND && archive != NULL)
        rc = cli_fail(cli, rc, "`tidemark mail search` finds the ids of messages.",
                      "there is no message %.100s in the archive of %s", cli->arguments[0], email);
    cli->exact_output = cli_flag(cli, "raw") != NULL;
    if (rc == TIDE_OK && cli->exact_output + thread + (save_dir != NULL) > 1)
        rc = cli_wrong(cli, "Give one of them.",
                       "--raw, --thread and --save-attachments cannot be used together");
    if (rc == TIDE_OK && !thread)
        rc = tide_archive_raw(archive, &stored, &raw, &cli->err);
    rc = cli_hint(cli, rc, "Run `tidemark mail heal` to fetch it again.");
    if (rc == TIDE_OK && cli->exact_output)
        rc = tide_buf_add(&cli->out, tide_buf_cstr(&raw), raw.bytes);
    else if (rc == TIDE_OK && thread)
        rc = show_thread(cli, archive, &stored);
    else if (rc == TIDE_OK && save_dir != NULL)
        rc = save_all(cli, save_dir, tide_buf_text(&raw));
    else if (rc == TIDE_OK)
        rc = show_one(cli, archive, &stored, tide_buf_text(&raw));
    const tide_status closed = tide_archive_close(archive, &cli->err);
    return rc == TIDE_OK ? closed : rc;
}
