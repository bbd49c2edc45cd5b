/* message.c - an open message or conversation: its lines, and which of them are on the screen. */
#include "mail/browse/browse.h"

#include "base/clocktext.h"

#include <stdio.h>

/* ---- opening ---- */

static void ask_message(struct browse *browse)
{
    struct browse_message *message = &browse->message;
    const char *words[BROWSE_WORDS_MAX] = {"mail", "show"};
    size_t count = 2;
    if (message->thread)
        words[count++] = "--thread";
    words[count++] = "--account";
    words[count++] = message->account;
    words[count++] = "--";
    words[count++] = message->id;
    words[count] = NULL;
    if (browse_ask(browse->asking, BROWSE_MESSAGE, words) != TIDE_OK)
        browse_note(browse, "out of memory");
}

void browse_message_open(struct browse *browse, const json_t *row, bool thread)
{
    struct browse_message *message = &browse->message;
    if (row == NULL)
        return;
    /* `row` may be that of the message that is open. */
    char account[BROWSE_NAME_BYTES], id[BROWSE_NAME_BYTES];
    (void)snprintf(account, sizeof account, "%.500s", browse_text(row, "account"));
    (void)snprintf(id, sizeof id, "%.500s", browse_text(row, "id"));
    browse_message_close(browse);
    message->open = true;
    message->thread = thread;
    (void)snprintf(message->account, sizeof message->account, "%s", account);
    (void)snprintf(message->id, sizeof message->id, "%s", id);
    ask_message(browse);
}

void browse_message_close(struct browse *browse)
{
    struct browse_message *message = &browse->message;
    browse_ask_no_more(browse->asking, BROWSE_MESSAGE);
    json_decref(message->shown);
    message->shown = NULL;
    message->open = false;
    message->top = 0;
    browse_lines_clear(&message->lines, 1);
}

/* ---- its lines ---- */

static tide_status head(struct browse_lines *lines, const char *name, const char *value)
{
    tide_auto_buf line = tide_buf_in(lines->mem, 1 << 20);
    if (value[0] == '\0')
        return TIDE_OK;
    if (tide_buf_print(&line, "%s: ", name) != TIDE_OK ||
        tide_buf_add_text(&line, value) != TIDE_OK)
        return TIDE_OK; /* a header of a megabyte is no header */
    return browse_lines_add(lines, BROWSE_HEAD, tide_buf_text(&line));
}

static tide_status labels_add(struct browse_lines *lines, const json_t *message)
{
    tide_auto_buf text = tide_buf_in(lines->mem, 64 << 10);
    size_t index = 0;
    const json_t *label = NULL;
    tide_status rc = TIDE_OK;
    json_array_foreach(json_object_get(message, "labels"), index, label)
    {
        if (rc == TIDE_OK)
            rc = tide_buf_print(&text, "%s%.300s", index == 0 ? "" : ", ",
                                browse_text(label, "name"));
    }
    return text.bytes == 0 ? TIDE_OK : head(lines, "Labels", tide_buf_cstr(&text));
}

static tide_status files_add(struct browse_lines *lines, const json_t *message)
{
    size_t index = 0;
    const json_t *file = NULL;
    json_array_foreach(json_object_get(message, "attachments"), index, file)
    {
        char line[1024], size[TIDE_SIZE_TEXT_BYTES];
        const char *name = browse_text(file, "name");
        const json_int_t bytes = json_integer_value(json_object_get(file, "bytes"));
        tide_size_human(bytes < 0 ? 0 : (uint64_t)bytes, size);
        (void)snprintf(line, sizeof line, "%.600s (%.200s, %s)",
                       name[0] == '\0' ? "(no name)" : name, browse_text(file, "type"), size);
        TIDE_TRY(head(lines, "Attachment", line));
    }
    return TIDE_OK;
}

static const char *copy_note(const json_t *message)
{
    const char *copy = browse_text(message, "copy");
    if (json_is_true(json_object_get(message, "gone")))
        return "no longer in Gmail";
    return strcmp(copy, "held") == 0
               ? "from another source; Gmail's own bytes are still to be fetched"
           : strcmp(copy, "short") == 0   ? "shorter than Gmail said"
           : strcmp(copy, "damaged") == 0 ? "damaged; `tidemark mail heal` fetches it again"
                                          : "";
}

static tide_status message_add(struct browse_lines *lines, const json_t *message)
{
    static const struct {
        const char *name, *field;
    } heads[] = {
        {"From", "from"}, {"To", "to"}, {"Cc", "cc"}, {"Bcc", "bcc"}, {"Subject", "subject"}};
    const json_int_t ms = json_integer_value(json_object_get(message, "internal_unix_ms"));
    char when[32];
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++)
        TIDE_TRY(head(lines, heads[i].name, browse_text(message, heads[i].field)));
    TIDE_TRY(head(lines, "Received", cli_time(ms > 0 ? (uint64_t)ms : 0, when)));
    TIDE_TRY(labels_add(lines, message));
    TIDE_TRY(head(lines, "Copy", copy_note(message)));
    TIDE_TRY(files_add(lines, message));
    TIDE_TRY(head(lines, "Note", browse_text(message, "problem")));
    TIDE_TRY(browse_lines_add(lines, BROWSE_PLAIN, TIDE_TEXT("")));
    return browse_lines_add(lines, BROWSE_PLAIN, tide_text_of(browse_text(message, "text")));
}

static tide_status thread_add(struct browse_message *message, const json_t *messages)
{
    struct browse_lines *lines = &message->lines;
    size_t index = 0;
    const json_t *one = NULL;
    json_array_foreach(messages, index, one)
    {
        if (index > 0) {
            TIDE_TRY(browse_lines_add(lines, BROWSE_PLAIN, TIDE_TEXT("")));
            TIDE_TRY(browse_lines_add(lines, BROWSE_QUOTED, TIDE_TEXT("--------")));
        }
        if (strcmp(browse_text(one, "id"), message->id) == 0)
            message->top = lines->count;
        TIDE_TRY(message_add(lines, one));
    }
    return TIDE_OK;
}

void browse_message_wrap(struct browse *browse)
{
    struct browse_message *message = &browse->message;
    const json_t *messages = json_object_get(message->shown, "messages");
    const int columns = browse_columns_on_screen();
    if (message->shown == NULL)
        return;
    message->top = 0;
    browse_lines_clear(&message->lines, columns < 1 ? 1 : (unsigned)columns);
    const tide_status rc = messages != NULL ? thread_add(message, messages)
                                            : message_add(&message->lines, message->shown);
    if (rc != TIDE_OK)
        browse_note(browse, "The message is too large to show whole; `o` opens it in a browser.");
    browse_message_move(browse, 0);
}

void browse_message_answer(struct browse *browse, struct cli_called *called)
{
    struct browse_message *message = &browse->message;
    if (!message->open)
        return;
    if (called->status != TIDE_OK) {
        browse_message_close(browse);
        browse_note_failure(browse, called);
        return;
    }
    json_decref(message->shown);
    message->shown = json_incref(called->json.value);
    browse_message_wrap(browse);
}

/* ---- on the screen ---- */

void browse_message_move(struct browse *browse, long by)
{
    struct browse_message *message = &browse->message;
    const size_t lines = message->lines.count;
    const size_t height = (size_t)browse_lines_on_screen();
    const size_t last = lines > height ? lines - height : 0;
    if (by < 0)
        message->top = message->top < (size_t)-by ? 0 : message->top - (size_t)-by;
    else
        message->top += (size_t)by;
    message->top = message->top > last ? last : message->top;
}

void browse_message_draw(struct browse *browse)
{
    const struct browse_message *message = &browse->message;
    const int columns = browse_columns_on_screen();
    for (int line = 0; line < browse_lines_on_screen(); line++) {
        const size_t index = message->top + (size_t)line;
        const browse_style style =
            index < message->lines.count ? message->lines.list[index].style : BROWSE_PLAIN;
        const struct browse_look look = {.bold = style == BROWSE_HEAD,
                                         .dim = style == BROWSE_QUOTED};
        browse_put(browse, line, 0, columns, browse_lines_at(&message->lines, index), look);
    }
}
