#include "cloud/gmail_parts.h"

#include "base/encode.h"
#include "cloud/gmail_answer.h"
#include "cloud/gmail_methods.h"
#include "cloud/gmail_raw.h"

#include <string.h>
#include <strings.h>

void tide_gmail_parts_init(struct tide_gmail_parts *parts, tide_mem *mem)
{
    *parts = (struct tide_gmail_parts){.snippet = TIDE_TEXT("")};
    tide_gmail_message_init(&parts->message, mem);
    tide_buf_init(&parts->plain.bytes, mem, TIDE_GMAIL_TEXT_BYTES_MAX);
    tide_buf_init(&parts->html.bytes, mem, TIDE_GMAIL_TEXT_BYTES_MAX);
    parts->plain.type = parts->html.type = TIDE_TEXT("");
}

void tide_gmail_parts_done(struct tide_gmail_parts *parts)
{
    tide_mem *mem = parts->plain.bytes.mem;
    tide_buf_done(&parts->plain.bytes);
    tide_buf_done(&parts->html.bytes);
    tide_gmail_message_done(&parts->message);
    tide_gmail_parts_init(parts, mem);
}

/* ---- headers ---- */

static tide_status headers_check(const json_t *headers, tide_error *err)
{
    for (size_t i = 0; i < json_array_size(headers); i++) {
        const json_t *header = json_array_get(headers, i);
        if (!json_is_string(json_object_get(header, "name")) ||
            !json_is_string(json_object_get(header, "value")))
            return tide_error_set(err, TIDE_SERVER, "an entry of \"headers\" is not a header");
    }
    return TIDE_OK;
}

static tide_text header_of(const json_t *headers, const char *name)
{
    for (size_t i = 0; i < json_array_size(headers); i++) {
        const json_t *header = json_array_get(headers, i);
        if (strcasecmp(json_string_value(json_object_get(header, "name")), name) == 0) {
            const json_t *value = json_object_get(header, "value");
            return (tide_text){json_string_value(value), json_string_length(value)};
        }
    }
    return TIDE_TEXT_NONE;
}

tide_text tide_gmail_parts_header(const struct tide_gmail_parts *parts, const char *name)
{
    return header_of(parts->headers, name);
}

bool tide_gmail_parts_labeled(const struct tide_gmail_parts *parts, const char *label)
{
    for (size_t i = 0; i < json_array_size(parts->message.labels); i++)
        if (strcmp(json_string_value(json_array_get(parts->message.labels, i)), label) == 0)
            return true;
    return false;
}

/* ---- parts ---- */

/* Decodes what fits (GPT2).  A front of base64 whose length is a multiple of 4 is base64 itself. */
static tide_status text_take(const json_t *body, tide_text type, struct tide_gmail_text *text,
                             tide_error *err)
{
    const size_t chars_max = (size_t)TIDE_GMAIL_TEXT_BYTES_MAX / 3 * 4;
    tide_text data = TIDE_TEXT("");
    TIDE_TRY(tide_gmail_field_text(body, "data", &data, err));
    text->type = type;
    text->cut = data.bytes > chars_max ||
                (data.bytes == 0 && json_is_string(json_object_get(body, "attachmentId")));
    if (data.bytes > chars_max)
        data.bytes = chars_max;
    const tide_status rc = tide_base64_read(&text->bytes, data);
    if (rc == TIDE_INVALID)
        return tide_error_set(err, TIDE_SERVER, "\"data\" of a part is not base64");
    return rc == TIDE_OK ? rc : tide_error_set(err, rc, "no memory for the text of a message");
}

/* One part, without those inside of it.  `kept` holds on to the headers of the two texts. */
static tide_status part_take(const json_t *part, struct tide_gmail_parts *parts, json_t *kept,
                             tide_error *err)
{
    tide_text type = TIDE_TEXT(""), name = TIDE_TEXT("");
    const json_t *headers = NULL, *body = NULL;
    TIDE_TRY(tide_gmail_field_text(part, "mimeType", &type, err));
    TIDE_TRY(tide_gmail_field_text(part, "filename", &name, err));
    TIDE_TRY(tide_gmail_field_array(part, "headers", &headers, err));
    TIDE_TRY(tide_gmail_field_object(part, "body", &body, err));
    TIDE_TRY(headers_check(headers, err));
    if (name.bytes > 0) {
        parts->attachments++;
        return TIDE_OK;
    }
    const bool plain = strcasecmp(type.data, "text/plain") == 0;
    struct tide_gmail_text *text = plain ? &parts->plain : &parts->html;
    if ((!plain && strcasecmp(type.data, "text/html") != 0) || text->bytes.bytes > 0 || text->cut)
        return TIDE_OK;
    if (headers != NULL && json_array_append(kept, (json_t *)headers) != 0)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for the headers of a part");
    const tide_text written = header_of(headers, "Content-Type");
    return text_take(body, written.data != NULL ? written : TIDE_TEXT(""), text, err);
}

/* All parts in their order, without recursion: the tree is the server's. */
static tide_status tree_take(const json_t *payload, struct tide_gmail_parts *parts, json_t *kept,
                             tide_error *err)
{
    struct {
        const json_t *list;
        size_t at;
    } stack[TIDE_GMAIL_DEPTH_MAX];
    size_t depth = 0;
    const json_t *part = payload;
    for (unsigned seen = 0; part != NULL && seen < TIDE_GMAIL_PARTS_MAX; seen++) {
        const json_t *inner = NULL;
        TIDE_TRY(part_take(part, parts, kept, err));
        TIDE_TRY(tide_gmail_field_array(part, "parts", &inner, err));
        if (json_array_size(inner) > 0 && depth < TIDE_GMAIL_DEPTH_MAX) {
            stack[depth].list = inner;
            stack[depth++].at = 0;
        }
        part = NULL;
        while (depth > 0 && part == NULL) {
            part = json_array_get(stack[depth - 1].list, stack[depth - 1].at++);
            depth -= part == NULL;
        }
        if (part != NULL && !json_is_object(part))
            return tide_error_set(err, TIDE_SERVER, "an entry of \"parts\" is not an object");
    }
    return TIDE_OK;
}

/* What is kept of the object: the members that the struct borrows from, not the bodies. */
static json_t *fields_of(const json_t *value, const json_t *headers, json_t *kept)
{
    static const char *const names[] = {"id",        "threadId",     "labelIds",    "snippet",
                                        "historyId", "internalDate", "sizeEstimate"};
    json_t *fields = json_object();
    bool failed = fields == NULL;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        json_t *member = json_object_get(value, names[i]);
        if (member != NULL)
            failed |= json_object_set(fields, names[i], member) != 0;
    }
    if (headers != NULL)
        failed |= json_object_set(fields, "headers", (json_t *)headers) != 0;
    failed |= json_object_set(fields, "kept", kept) != 0;
    if (!failed)
        return fields;
    json_decref(fields);
    return NULL;
}

static tide_status read_into(const json_t *value, struct tide_gmail_parts *parts, json_t *kept,
                             tide_error *err)
{
    const json_t *payload = NULL;
    tide_text id;
    TIDE_TRY(tide_gmail_field_object(value, "payload", &payload, err));
    if (payload != NULL) {
        TIDE_TRY(tide_gmail_field_array(payload, "headers", &parts->headers, err));
        TIDE_TRY(tree_take(payload, parts, kept, err));
    }
    TIDE_TRY(tide_gmail_answer_id(value, &id, err));
    json_t *fields = fields_of(value, parts->headers, kept);
    if (fields == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for a message");
    const tide_status rc = tide_gmail_answer_message(fields, id, &parts->message, err);
    if (rc != TIDE_OK) {
        json_decref(fields);
        return rc;
    }
    return tide_gmail_field_text(fields, "snippet", &parts->snippet, err);
}

tide_status tide_gmail_parts_read(const json_t *value, struct tide_gmail_parts *parts_out,
                                  tide_error *err)
{
    json_auto_t *kept = json_array();
    tide_gmail_parts_done(parts_out);
    const tide_status rc = kept == NULL
                               ? tide_error_set(err, TIDE_NO_MEMORY, "no memory for a message")
                               : read_into(value, parts_out, kept, err);
    if (rc != TIDE_OK)
        tide_gmail_parts_done(parts_out);
    return rc;
}

/* ---- one message ---- */

static tide_status parts_of(const json_t *value, tide_text id, struct tide_gmail_parts *parts_out,
                            tide_error *err)
{
    TIDE_TRY(tide_gmail_parts_read(value, parts_out, err));
    if (tide_text_equal(parts_out->message.id, id))
        return TIDE_OK;
    tide_gmail_parts_done(parts_out); /* gmail.h GML4 */
    return tide_error_set(err, TIDE_SERVER, "the answer is about another message");
}

tide_status tide_gmail_get_headers(tide_gmail *gmail, tide_job *job, tide_text id,
                                   const char *const *headers, struct tide_gmail_parts *parts_out,
                                   tide_error *err)
{
    struct tide_api_ask ask;
    json_auto_t *value = NULL;
    tide_gmail_parts_done(parts_out);
    tide_gmail_ask_message(&ask, gmail, job, TIDE_GMAIL_GET_MINIMAL, id,
                           "?format=metadata&prettyPrint=false");
    for (; *headers != NULL; headers++) {
        tide_api_ask_add(&ask, "&metadataHeaders=");
        tide_api_ask_value(&ask, tide_text_of(*headers));
    }
    tide_status rc = tide_api_ask_json(&ask, &value, err);
    if (rc == TIDE_OK)
        rc = tide_api_ask_named(&ask, parts_of(value, id, parts_out, err), err);
    tide_api_ask_done(&ask);
    return rc;
}
