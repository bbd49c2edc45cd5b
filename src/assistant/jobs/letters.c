/* letters.c - a message in Gmail's parts as a letter, and what a record says of it.
 *
 * The parts are put together as a message again, with one text in it: then one reader knows character
 * sets, encoded words and HTML, for archives and for this. */
#include "assistant/jobs/inside.h"

#include "assistant/rules/triage.h"
#include "base/check.h"

#include <string.h>
#include <strings.h>

enum { HEADERS_BYTES_MAX = 1 << 20 };

/* Headers of the body, which is another one now. */
static bool is_of_body(const char *name)
{
    static const char *const names[] = {"Content-Type", "Content-Transfer-Encoding",
                                        "Content-Disposition", "MIME-Version"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcasecmp(name, names[i]) == 0)
            return true;
    return false;
}

/* A line end inside a value would begin another header. */
static tide_status add_line(tide_text text, tide_buf *out)
{
    for (size_t i = 0; i < text.bytes; i++) {
        const char c = text.data[i] == '\r' || text.data[i] == '\n' ? ' ' : text.data[i];
        TIDE_TRY(tide_buf_add(out, &c, 1));
    }
    return TIDE_OK;
}

static tide_status add_headers(const struct tide_gmail_parts *parts, tide_buf *raw)
{
    for (size_t i = 0; i < json_array_size(parts->headers); i++) {
        const json_t *header = json_array_get(parts->headers, i);
        const char *name = json_string_value(json_object_get(header, "name"));
        const json_t *value = json_object_get(header, "value");
        if (is_of_body(name) || strpbrk(name, ": \t\r\n") != NULL || name[0] == '\0')
            continue;
        TIDE_TRY(tide_buf_print(raw, "%s: ", name));
        TIDE_TRY(add_line((tide_text){json_string_value(value), json_string_length(value)}, raw));
        TIDE_TRY(tide_buf_add_text(raw, "\r\n"));
    }
    return TIDE_OK;
}

static tide_status put_together(const struct tide_gmail_parts *parts, tide_buf *raw)
{
    const bool plain = parts->plain.bytes.bytes > 0 || parts->html.bytes.bytes == 0;
    const struct tide_gmail_text *text = plain ? &parts->plain : &parts->html;
    TIDE_TRY(add_headers(parts, raw));
    TIDE_TRY(tide_buf_add_text(raw, "MIME-Version: 1.0\r\nContent-Type: "));
    TIDE_TRY(add_line(text->type.bytes > 0 ? text->type
                      : plain              ? TIDE_TEXT("text/plain; charset=utf-8")
                                           : TIDE_TEXT("text/html; charset=utf-8"),
                      raw));
    TIDE_TRY(tide_buf_add_text(raw, "\r\nContent-Transfer-Encoding: 8bit\r\n\r\n"));
    return tide_buf_add(raw, text->bytes.bytes > 0 ? text->bytes.data : "", text->bytes.bytes);
}

tide_status tide_task_letter(struct tide_task *task, const struct tide_gmail_parts *parts,
                             struct tide_letter *letter_out, tide_error *err)
{
    tide_auto_buf raw = tide_buf_in(task->jobs->mem, HEADERS_BYTES_MAX + TIDE_GMAIL_TEXT_BYTES_MAX);
    tide_status rc = put_together(parts, &raw);
    /* Headers without end are cut: what is left is a message too. */
    if (rc == TIDE_OK || rc == TIDE_FULL)
        rc = tide_letter_read(tide_buf_text(&raw), &task->arena, letter_out);
    if (rc != TIDE_OK)
        return tide_error_set(err, rc, "no memory for a message");
    letter_out->cut = letter_out->cut || parts->plain.cut || parts->html.cut;
    return TIDE_OK;
}

tide_status tide_task_letters(struct tide_task *task, const struct tide_gmail_thread *thread,
                              const struct tide_gmail_parts *except,
                              struct tide_letter **letters_out, size_t *count_out, tide_error *err)
{
    struct tide_letter *letters =
        tide_arena_take(&task->arena, (thread->count + 1) * sizeof *letters);
    size_t count = 0;
    if (letters == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for a thread");
    for (size_t i = 0; i < thread->count; i++) {
        const struct tide_gmail_parts *parts = &thread->messages[i];
        if (parts == except || tide_gmail_parts_labeled(parts, "DRAFT") ||
            tide_gmail_parts_labeled(parts, "TRASH"))
            continue;
        TIDE_TRY(tide_task_letter(task, parts, &letters[count], err));
        count++;
    }
    *letters_out = letters;
    *count_out = count;
    return TIDE_OK;
}

/* ---- as a record ---- */

void tide_task_copy(char *to, size_t room, tide_text text)
{
    const tide_text cut = tide_utf8_cut(text, room - 1);
    if (cut.bytes > 0)
        memcpy(to, cut.data, cut.bytes);
    to[cut.bytes] = '\0';
}

void tide_task_record(const struct tide_task *task, tide_text message_id,
                      const struct tide_letter *letter, struct tide_assistant_email *email_out)
{
    memset(email_out, 0, sizeof *email_out);
    email_out->account = task->account;
    tide_task_copy(email_out->thread_id, sizeof email_out->thread_id,
                   tide_text_of(task->thread_id));
    tide_task_copy(email_out->message_id, sizeof email_out->message_id, message_id);
    tide_task_copy(email_out->sender, sizeof email_out->sender, tide_letter_sender(letter));
    tide_task_copy(email_out->subject, sizeof email_out->subject, letter->subject);
    const struct tide_assistant_config *config = task->terms.config;
    tide_style_from from;
    const size_t style =
        tide_style_resolve(config, tide_letter_sender(letter), TIDE_STYLE_NONE, &from);
    tide_task_copy(email_out->style, sizeof email_out->style, config->styles[style].name);
    email_out->messages = (uint32_t)tide_gmail_thread_letters(&task->thread);
    email_out->updated_ms = task->now_ms;
}
