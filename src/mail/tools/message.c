/* message.c - `mail_message`: one message, its text in parts. */
#include "mail/tools/tools.h"

#include "base/clocktext.h"
#include "mail/view/view.h"

#include <stdio.h>

enum { LABELS_MAX = 50, LABEL_BYTES_MAX = 100 };

void mail_tool_stored(const struct tide_stored *stored, tide_json *json)
{
    char when[TIDE_TIME_TEXT_BYTES];
    tide_time_format(stored->internal_ms < 0 ? 0 : (uint64_t)stored->internal_ms, when);
    tide_json_set_cstr(json, "id", stored->gmail_id);
    tide_json_set_cstr(json, "thread", stored->thread_id);
    tide_json_set_cstr(json, "received", when);
    tide_json_set_i64(json, "internal_unix_ms", stored->internal_ms);
    tide_json_set_u64(json, "bytes", stored->bytes);
}

/* ---- what the sender wrote ---- */

static void heads_add(const struct tide_message *message, tide_json *json)
{
    const struct {
        const char *name;
        tide_text value;
    } heads[] = {{"from", message->from},       {"to", message->to},
                 {"cc", message->cc},           {"reply_to", message->reply_to},
                 {"subject", message->subject}, {"message_id", message->message_id}};
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++)
        if (heads[i].value.bytes > 0)
            tide_json_set_text(json, heads[i].name,
                               tide_utf8_cut(heads[i].value, MAIL_TOOL_HEAD_MAX));
}

static void files_add(const struct tide_view *view, tide_json *json)
{
    const struct tide_message *message = &view->message;
    tide_json files;
    tide_json_array(&files);
    for (size_t i = 0; i < message->attachments_count && i < MAIL_TOOL_FILES_MAX; i++) {
        const struct tide_attachment *file = &message->attachments[i];
        tide_json one;
        tide_json_object(&one);
        tide_json_set_text(&one, "name", tide_utf8_cut(file->name, 255));
        tide_json_set_text(&one, "type", tide_utf8_cut(file->type, 100));
        tide_json_set_u64(&one, "bytes", tide_attachment_bytes(tide_buf_text(&view->raw), file));
        tide_json_append(&files, &one);
    }
    tide_json_set(json, "attachments", &files);
}

/* The part of the text from `offset`, which a client may have made up: back to a character's
 * start. */
static tide_text part_of(tide_text text, const struct mail_tool_part *part)
{
    const size_t offset = tide_utf8_cut(text, (size_t)part->offset).bytes;
    return tide_utf8_cut((tide_text){text.data + offset, text.bytes - offset},
                         (size_t)part->bytes_max);
}

static void written_add(const struct tide_view *view, struct mail_tool_part *part, tide_json *json)
{
    const struct tide_message *message = &view->message;
    tide_json written;
    const tide_text text = part_of(message->text, part);
    const uint64_t end = (uint64_t)(text.data - message->text.data) + text.bytes;
    part->shown = text.bytes;
    tide_json_object(&written);
    heads_add(message, &written);
    tide_json_set_text(&written, "text", text);
    files_add(view, &written);
    tide_json_set(json, TIDE_TOOL_UNTRUSTED, &written);
    tide_json_set_u64(json, "attachments_count", message->attachments_count);
    tide_json_set_u64(json, "text_bytes", message->text.bytes);
    if (end < message->text.bytes)
        tide_json_set_u64(json, "next_offset", end);
    if (message->problem != NULL)
        tide_json_set_cstr(json, "problem", message->problem);
}

/* ---- what the archive knows ---- */

static void known_add(const struct tide_view *view, tide_json *json)
{
    tide_json labels;
    tide_json_array(&labels);
    for (size_t i = 0; i < view->labels_count && i < LABELS_MAX; i++) {
        char name[LABEL_BYTES_MAX + 1];
        const tide_text text = tide_utf8_cut(view->labels[i].name, LABEL_BYTES_MAX);
        (void)snprintf(name, sizeof name, "%.*s", (int)text.bytes, text.data);
        tide_json_append_cstr(&labels, name);
    }
    tide_json_set(json, "labels", &labels);
    tide_json_set_bool(json, "gone", view->stored.gone);
    tide_json_set_cstr(json, "copy", tide_copy_name(view->copy));
}

tide_status mail_tool_show(struct tide_tool_call *call, const struct mail_tool_archive *at,
                           const struct tide_stored *stored, struct mail_tool_part *part,
                           tide_json *json)
{
    struct cli *cli = call->cli;
    struct tide_view view = {.mem = NULL};
    mail_tool_stored(stored, json);
    tide_status rc = mail_tool_wanted(call);
    if (rc == TIDE_OK)
        rc = tide_view_open(at->archive, stored, cli->mem, &view, &cli->err);
    if (rc == TIDE_OK && !view.readable) {
        cli->err = view.why;
        rc = cli_hint(cli, view.why.status,
                      "The user can fetch it again with `tidemark mail heal`.");
    }
    if (rc == TIDE_OK) {
        known_add(&view, json);
        written_add(&view, part, json);
    }
    tide_view_done(&view);
    return rc;
}

tide_status mail_tool_message(struct tide_tool_call *call)
{
    const char *id = tide_tool_text(call, "id");
    struct mail_tool_part part = {.offset = tide_tool_number(call, "offset", 0),
                                  .bytes_max =
                                      tide_tool_number(call, "max_bytes", MAIL_TOOL_TEXT_DEFAULT)};
    struct mail_tool_archive at;
    struct tide_stored stored;
    tide_status rc = mail_tool_open(call, &at);
    if (rc == TIDE_OK)
        rc = mail_tool_find(call, &at, id, &stored);
    if (rc == TIDE_OK)
        rc = mail_tool_show(call, &at, &stored, &part, call->result);
    return mail_tool_close(call, &at, rc);
}
