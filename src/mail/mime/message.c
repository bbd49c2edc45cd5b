#include "mail/mime/message.h"
#include "mail/mime/address.h"
#include "mail/mime/body.h"
#include "mail/mime/part.h"
#include "mail/mime/transfer.h"
#include "base/check.h"

#include <gmime/gmime.h>
#include <threads.h>

enum {
    DATE_BYTES_MAX = 120,
    NAME_BYTES_MAX = 200, /* of an attachment; file systems allow 255 */
    EXTENSION_BYTES_MAX = 16,
    HINT_BYTES_MAX = 60,
    TEXT_SOURCE_BYTES_MAX = 4 * TIDE_MESSAGE_TEXT_BYTES_MAX, /* read for the text of a message */
};

struct work {
    tide_text raw;
    tide_arena *arena;
    tide_decoder decoder;
    struct tide_parts parts;
    tide_buf hint;                     /* the charset of the first text */
    tide_buf field;                    /* one header, before it goes to the arena */
    tide_buf utf8;                     /* one part, converted */
    tide_buf text;                     /* the text of the whole message */
    size_t source;                     /* bytes of text parts read so far */
    uint32_t sibling;                  /* the parent of the text that was added last ... */
    size_t sibling_begin, sibling_end; /* ... and its range in `text` */
    const char *problem;
    struct tide_attachment *attachments;
    size_t attachments_count, attachments_capacity;
};

static void problem_set(struct work *work, const char *problem)
{
    if (work->problem == NULL)
        work->problem = problem;
}

/* A full buffer is a limit: the part that fits is kept, and the message is marked as partial. */
static tide_status cut_when_full(struct work *work, tide_status rc, const char *problem)
{
    if (rc != TIDE_FULL)
        return rc;
    problem_set(work, problem);
    return TIDE_OK;
}

static tide_status keep(struct work *work, tide_text text, tide_text *kept_out)
{
    if (text.bytes == 0) {
        *kept_out = TIDE_TEXT("");
        return TIDE_OK;
    }
    char *copy = tide_arena_copy(work->arena, text.data, text.bytes);
    if (copy == NULL)
        return TIDE_NO_MEMORY;
    *kept_out = (tide_text){copy, text.bytes};
    return TIDE_OK;
}

/* ---- headers ---- */

enum {
    FIELD_FROM,
    FIELD_TO,
    FIELD_CC,
    FIELD_BCC,
    FIELD_REPLY_TO,
    FIELD_SUBJECT,
    FIELD_MESSAGE_ID,
    FIELD_IN_REPLY_TO,
    FIELD_REFERENCES,
    FIELD_LIST_ID,
    FIELD_DATE,
    FIELDS,
    FIELDS_OF_ADDRESSES = FIELD_SUBJECT,
};

static const char *const field_names[FIELDS] = {
    "from",       "to",          "cc",         "bcc",     "reply-to", "subject",
    "message-id", "in-reply-to", "references", "list-id", "date",
};

struct fields {
    tide_text first[FIELDS];
    uint32_t count[FIELDS];
};

static int field_of(tide_text name)
{
    for (int i = 0; i < FIELDS; i++) {
        if (name.bytes > 0 && (name.data[0] | 0x20) == field_names[i][0] &&
            tide_text_equal_nocase(name, field_names[i]))
            return i;
    }
    return -1;
}

/* The next header of headers that were scanned before; false: no more. */
static bool next_header(const struct work *work, const struct tide_part *part, size_t *at,
                        struct tide_mail_header *header_out)
{
    while (*at < part->head_end) {
        size_t bytes = 0, lines = 0;
        tide_text rest = {work->raw.data + *at, (size_t)part->head_end - *at};
        tide_header_line kind =
            tide_header_read(rest, work->parts.line_end, header_out, &bytes, &lines);
        *at += bytes;
        if (kind == TIDE_HEADER_LINE_NAMED)
            return true;
    }
    return false;
}

static void find_fields(const struct work *work, const struct tide_part *part,
                        struct fields *fields)
{
    for (size_t i = 0; i < FIELDS; i++) {
        fields->first[i] = TIDE_TEXT("");
        fields->count[i] = 0;
    }
    struct tide_mail_header header;
    for (size_t at = (size_t)part->head_begin; next_header(work, part, &at, &header);) {
        int field = field_of(header.name);
        /* An empty header does not hide a later one with a value. */
        if (field >= 0 && header.value.bytes > 0 && fields->count[field]++ == 0)
            fields->first[field] = header.value;
    }
}

/* Header bytes without a charset are probably in the charset of the text. */
static tide_status find_hint(struct work *work)
{
    tide_status rc = TIDE_OK;
    bool found = false;
    for (size_t i = 0; rc == TIDE_OK && !found && i < work->parts.count; i++) {
        const struct tide_part *part = &work->parts.part[i];
        if (tide_text_equal_nocase(part->major, "text") && part->type.bytes > 0)
            rc = tide_header_param_raw(part->type, "charset", &work->hint, &found);
    }
    work->decoder.hint = tide_buf_text(&work->hint);
    return rc == TIDE_FULL ? TIDE_OK : rc;
}

/* Joins all headers of one name into one list. */
static tide_status read_addresses(struct work *work, const struct tide_part *part,
                                  const struct fields *fields, int field, tide_text *kept_out)
{
    tide_buf_clear(&work->field);
    bool deep = false;
    tide_status rc = TIDE_OK;
    if (fields->count[field] == 1) {
        rc = tide_address_add(&work->decoder, fields->first[field], &work->field, &deep);
    } else if (fields->count[field] > 1) {
        struct tide_mail_header header;
        for (size_t at = (size_t)part->head_begin;
             rc == TIDE_OK && next_header(work, part, &at, &header);) {
            if (field_of(header.name) == field)
                rc = tide_address_add(&work->decoder, header.value, &work->field, &deep);
        }
    }
    if (deep)
        problem_set(work, "addresses nested deeper than the limit");
    rc = cut_when_full(work, rc, "addresses longer than the limit");
    return rc == TIDE_OK ? keep(work, tide_buf_text(&work->field), kept_out) : rc;
}

static tide_status read_words(struct work *work, tide_text value, tide_text *kept_out)
{
    tide_buf_clear(&work->field);
    tide_status rc = tide_header_words(&work->decoder, value, &work->field);
    rc = cut_when_full(work, rc, "a header longer than the limit");
    return rc == TIDE_OK ? keep(work, tide_text_trimmed(tide_buf_text(&work->field)), kept_out)
                         : rc;
}

/* The next id of a list: the text in brackets, else a word without them. */
static bool next_id(tide_text value, size_t *at, bool words, tide_text *id_out)
{
    while (*at < value.bytes) {
        tide_text rest = {value.data + *at, value.bytes - *at};
        const char *open = memchr(rest.data, '<', rest.bytes);
        if (open == NULL) {
            *at = value.bytes;
            *id_out = tide_text_trimmed(rest);
            return words && id_out->bytes > 0;
        }
        size_t begin = (size_t)(open - value.data) + 1;
        size_t end = begin;
        while (end < value.bytes && value.data[end] != '>' && value.data[end] != '<')
            end++;
        *at = end + (end < value.bytes && value.data[end] == '>');
        *id_out = tide_text_trimmed((tide_text){value.data + begin, end - begin});
        if (id_out->bytes > 0)
            return true;
    }
    return false;
}

/* Ids without their brackets, separated by spaces. */
static tide_status read_ids(struct work *work, tide_text value, bool one, tide_text *kept_out)
{
    tide_buf_clear(&work->field);
    tide_status rc = TIDE_OK;
    tide_text id;
    size_t count = 0;
    for (size_t at = 0; rc == TIDE_OK && next_id(value, &at, count == 0, &id); count++) {
        if (one && count > 0)
            break;
        if (count > 0)
            rc = tide_buf_add(&work->field, " ", 1);
        if (rc == TIDE_OK)
            rc = tide_charset_add(&work->decoder, TIDE_TEXT(""), id, TIDE_CLEAN_LINE, &work->field);
    }
    rc = cut_when_full(work, rc, "a header longer than the limit");
    return rc == TIDE_OK ? keep(work, tide_text_trimmed(tide_buf_text(&work->field)), kept_out)
                         : rc;
}

/* Removes comments and the white space around colons: GMime fails on both. */
static size_t date_settle(tide_text value, char text[DATE_BYTES_MAX + 1])
{
    size_t bytes = 0;
    unsigned depth = 0;
    for (size_t i = 0; i < value.bytes && i < DATE_BYTES_MAX; i++) {
        char c = value.data[i] > ' ' && value.data[i] < 0x7f ? value.data[i] : ' ';
        depth += c == '(';
        bool comment = depth > 0;
        depth -= c == ')' && depth > 0;
        char last = bytes > 0 ? text[bytes - 1] : ' ';
        if (comment || (c == ' ' && (last == ' ' || last == ':')))
            continue;
        bytes -= c == ':' && last == ' ' && bytes > 0;
        text[bytes++] = c;
    }
    text[bytes] = '\0';
    return bytes;
}

bool tide_message_date(tide_text value, int64_t *date_ms_out)
{
    char text[DATE_BYTES_MAX + 1];
    size_t bytes = date_settle(value, text);
    if (strcspn(text, "0123456789") == bytes)
        return false;
    static once_flag started = ONCE_FLAG_INIT;
    call_once(&started, g_mime_init);
    GDateTime *date = g_mime_utils_header_decode_date(text);
    if (date == NULL)
        return false;
    *date_ms_out = g_date_time_to_unix(date) * 1000;
    g_date_time_unref(date);
    return true;
}

static tide_status read_fields(struct work *work, struct tide_message *message)
{
    const struct tide_part *part = &work->parts.part[0];
    struct fields fields;
    find_fields(work, part, &fields);
    tide_text *const addresses[FIELDS_OF_ADDRESSES] = {
        &message->from, &message->to, &message->cc, &message->bcc, &message->reply_to,
    };
    tide_status rc = TIDE_OK;
    for (int i = 0; rc == TIDE_OK && i < FIELDS_OF_ADDRESSES; i++)
        rc = read_addresses(work, part, &fields, i, addresses[i]);
    if (rc == TIDE_OK)
        rc = read_words(work, fields.first[FIELD_SUBJECT], &message->subject);
    if (rc == TIDE_OK)
        rc = read_ids(work, fields.first[FIELD_MESSAGE_ID], true, &message->message_id);
    if (rc == TIDE_OK)
        rc = read_ids(work, fields.first[FIELD_IN_REPLY_TO], false, &message->in_reply_to);
    if (rc == TIDE_OK)
        rc = read_ids(work, fields.first[FIELD_REFERENCES], false, &message->references);
    if (rc == TIDE_OK)
        rc = read_ids(work, fields.first[FIELD_LIST_ID], true, &message->list_id);
    message->has_date = tide_message_date(fields.first[FIELD_DATE], &message->date_ms);
    return rc;
}

/* ---- text ---- */

/* The bytes of a part, borrowed from the raw message if they are not encoded. */
static tide_status part_bytes(struct work *work, const struct tide_part *part, tide_text *bytes_out)
{
    tide_text encoded = {work->raw.data + part->begin, (size_t)(part->end - part->begin)};
    size_t left = TEXT_SOURCE_BYTES_MAX - work->source;
    if (encoded.bytes > left) {
        problem_set(work, "more text than the limit");
        encoded.bytes = left;
    }
    work->source += encoded.bytes;
    *bytes_out = encoded;
    if (part->encoding == TIDE_ENCODING_PLAIN) {
        if (encoded.bytes > TIDE_MESSAGE_TEXT_BYTES_MAX) {
            problem_set(work, "more text than the limit");
            bytes_out->bytes = TIDE_MESSAGE_TEXT_BYTES_MAX;
        }
        return TIDE_OK;
    }
    tide_buf_clear(&work->decoder.bytes);
    tide_status rc = tide_transfer_add(encoded, part->encoding, &work->decoder.bytes);
    rc = cut_when_full(work, rc, "more text than the limit");
    *bytes_out = tide_buf_text(&work->decoder.bytes);
    return rc;
}

static tide_status add_html(struct work *work, tide_text label, tide_text bytes)
{
    label = tide_part_html_charset(label, bytes);
    if (tide_charset_is_utf8(label, bytes))
        return tide_html_text(bytes, &work->text);
    tide_buf_clear(&work->utf8);
    tide_status rc = tide_charset_add(&work->decoder, label, bytes, TIDE_CLEAN_TEXT, &work->utf8);
    tide_status html_rc = TIDE_OK;
    if (rc == TIDE_OK || rc == TIDE_FULL)
        html_rc = tide_html_text(tide_buf_text(&work->utf8), &work->text);
    return rc == TIDE_OK ? html_rc : rc;
}

static bool is_white(char c)
{
    return c == ' ' || c == '\n' || c == '\t';
}

/* Reads the words of a text in order.  Links are skipped: HTML has them after its words, and the
 * plain text next to it among its own. */
struct reader {
    tide_text text;
    size_t at;
    size_t run_end; /* of the text between two blanks */
};

static bool is_letter(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (unsigned char)c >= 0x80;
}

/* The next run without blanks; empty at the end. */
static tide_text run_next(tide_text text, size_t *at)
{
    while (*at < text.bytes && is_white(text.data[*at]))
        ++*at;
    const size_t begin = *at;
    while (*at < text.bytes && !is_white(text.data[*at]))
        ++*at;
    return (tide_text){text.data + begin, *at - begin};
}

static bool is_link(tide_text run)
{
    return memmem(run.data, run.bytes, "://", 3) != NULL;
}

/* Empty at the end. */
static tide_text word_next(struct reader *reader)
{
    const tide_text text = reader->text;
    for (;;) {
        while (reader->at < reader->run_end && !is_letter(text.data[reader->at]))
            reader->at++;
        if (reader->at < reader->run_end)
            break;
        const tide_text run = run_next(text, &reader->run_end);
        if (run.bytes == 0)
            return TIDE_TEXT("");
        reader->at = is_link(run) ? reader->run_end : (size_t)(run.data - text.data);
    }
    const size_t begin = reader->at;
    while (reader->at < reader->run_end && is_letter(text.data[reader->at]))
        reader->at++;
    return (tide_text){text.data + begin, reader->at - begin};
}

/* Whether both have the same words in the same order: HTML, and the plain text made from it. */
static bool same_words(tide_text a, tide_text b)
{
    struct reader one = {.text = a}, other = {.text = b};
    for (;;) {
        const tide_text word = word_next(&one);
        if (!tide_text_equal(word, word_next(&other)))
            return false;
        if (word.bytes == 0)
            return true;
    }
}

static tide_status end_line(struct work *work)
{
    if (work->text.bytes == 0 || work->text.data[work->text.bytes - 1] == '\n')
        return TIDE_OK;
    return tide_buf_add(&work->text, "\n", 1);
}

/* Replaces the text before `begin` by the text from `begin` on, followed by the links of the
 * former: phrases are found as they are shown, and links too. */
static tide_status take_place(struct work *work, size_t begin)
{
    const size_t before = work->sibling_begin;
    const tide_text plain = {work->text.data + before, work->sibling_end - before};
    const size_t end = work->text.bytes;
    tide_buf_clear(&work->utf8);
    tide_status rc = TIDE_OK;
    size_t at = 0;
    for (tide_text run = run_next(plain, &at); rc == TIDE_OK && run.bytes > 0;
         run = run_next(plain, &at)) {
        if (!is_link(run))
            continue;
        rc = tide_buf_add(&work->utf8, "\n", 1);
        if (rc == TIDE_OK)
            rc = tide_buf_add(&work->utf8, run.data, run.bytes);
    }
    if (rc != TIDE_OK)
        return rc;
    memmove(work->text.data + before, work->text.data + begin, end - begin);
    work->text.bytes = before + (end - begin);
    work->text.data[work->text.bytes] = '\0';
    /* Not longer than before: every link was a part of it. */
    rc = tide_buf_add(&work->text, tide_buf_cstr(&work->utf8), work->utf8.bytes);
    work->sibling_end = work->text.bytes;
    return rc;
}

static tide_status drop_repeated(struct work *work, const struct tide_part *part, size_t begin)
{
    bool alternative = part->parent != TIDE_PART_NONE && part->parent == work->sibling &&
                       tide_part_is(&work->parts.part[part->parent], "multipart", "alternative");
    tide_text before = {work->text.data + work->sibling_begin,
                        work->sibling_end - work->sibling_begin};
    tide_text added = {work->text.data + begin, work->text.bytes - begin};
    if (alternative && added.bytes > 0 && work->sibling_end + 1 >= begin &&
        same_words(before, added))
        return take_place(work, begin);
    work->sibling = part->parent;
    work->sibling_begin = begin;
    work->sibling_end = work->text.bytes;
    return TIDE_OK;
}

static tide_status add_text(struct work *work, const struct tide_part *part)
{
    tide_text bytes;
    bool found = false;
    tide_buf_clear(&work->field);
    tide_status rc = tide_header_param_raw(part->type, "charset", &work->field, &found);
    if (rc == TIDE_OK)
        rc = part_bytes(work, part, &bytes);
    if (rc == TIDE_OK)
        rc = end_line(work);
    if (rc != TIDE_OK)
        return cut_when_full(work, rc, "more text than the limit");
    size_t begin = work->text.bytes;
    tide_text label = tide_buf_text(&work->field);
    if (tide_part_is_html(part))
        rc = add_html(work, label, bytes);
    else
        rc = tide_charset_add(&work->decoder, label, bytes, TIDE_CLEAN_TEXT, &work->text);
    if (rc == TIDE_OK && work->text.bytes > begin)
        rc = drop_repeated(work, part, begin);
    return cut_when_full(work, rc, "more text than the limit");
}

/* An attached message is also found by its subject. */
static tide_status add_inner_subject(struct work *work, const struct tide_part *part)
{
    struct tide_mail_header header;
    for (size_t at = (size_t)part->head_begin; next_header(work, part, &at, &header);) {
        if (field_of(header.name) != FIELD_SUBJECT)
            continue;
        tide_status rc = end_line(work);
        tide_buf_clear(&work->field);
        if (rc == TIDE_OK)
            rc = tide_header_words(&work->decoder, header.value, &work->field);
        if (rc == TIDE_OK)
            rc = tide_buf_add(&work->text, tide_buf_cstr(&work->field), work->field.bytes);
        return cut_when_full(work, rc, "more text than the limit");
    }
    return TIDE_OK;
}

/* ---- attachments ---- */

/* Makes the name valid in any directory. */
static void name_settle(tide_buf *name)
{
    for (size_t i = 0; i < name->bytes; i++) {
        if (name->data[i] == '/' || name->data[i] == '\\')
            name->data[i] = '_';
    }
    tide_text trimmed = tide_text_trimmed(tide_buf_text(name));
    memmove(name->data, trimmed.data, trimmed.bytes);
    name->bytes = trimmed.bytes;
    if (name->bytes > NAME_BYTES_MAX) { /* keep the extension */
        size_t dot = name->bytes;
        while (dot > name->bytes - EXTENSION_BYTES_MAX && name->data[dot - 1] != '.')
            dot--;
        bool has = dot > name->bytes - EXTENSION_BYTES_MAX;
        size_t kept = has ? name->bytes - dot + 1 : 0;
        size_t end = NAME_BYTES_MAX - kept;
        while (end > 0 && ((unsigned char)name->data[end] & 0xc0) == 0x80)
            end--;
        memmove(name->data + end, name->data + name->bytes - kept, kept);
        name->bytes = end + kept;
    }
    size_t dots = 0;
    while (dots < name->bytes && name->data[dots] == '.')
        dots++;
    if (dots == name->bytes)
        name->bytes = 0;
    name->data[name->bytes] = '\0';
}

/* Reads the name of a part into work->field. */
static tide_status read_name(struct work *work, const struct tide_part *part)
{
    bool found = false;
    tide_buf_clear(&work->field);
    tide_status rc =
        tide_header_param(&work->decoder, part->disposition, "filename", &work->field, &found);
    if (rc == TIDE_OK && work->field.bytes == 0)
        rc = tide_header_param(&work->decoder, part->type, "name", &work->field, &found);
    rc = cut_when_full(work, rc, "a file name longer than the limit");
    if (rc == TIDE_OK && work->field.bytes > 0)
        name_settle(&work->field);
    return rc;
}

static tide_status keep_type(struct work *work, const struct tide_part *part, tide_text *kept_out)
{
    size_t bytes = part->major.bytes + 1 + part->minor.bytes;
    char *type = tide_arena_take(work->arena, bytes + 1);
    if (type == NULL)
        return TIDE_NO_MEMORY;
    memcpy(type, part->major.data, part->major.bytes);
    type[part->major.bytes] = '/';
    memcpy(type + part->major.bytes + 1, part->minor.data, part->minor.bytes);
    for (size_t i = 0; i < bytes; i++) {
        if (type[i] >= 'A' && type[i] <= 'Z')
            type[i] = (char)(type[i] | 0x20);
    }
    *kept_out = (tide_text){type, bytes};
    return TIDE_OK;
}

static bool is_inlined(const struct work *work, const struct tide_part *part)
{
    if (tide_part_is_attached(part))
        return false;
    if (part->parent != TIDE_PART_NONE &&
        tide_part_is(&work->parts.part[part->parent], "multipart", "related"))
        return true;
    return part->id.bytes > 0 && tide_text_starts_nocase(part->disposition, "inline");
}

/* Text parts only if they are attached or named; all other parts. */
static tide_status add_attachment(struct work *work, const struct tide_part *part)
{
    if (part->kind == TIDE_PART_MULTI || tide_part_is(part, "multipart", NULL))
        return TIDE_OK;
    tide_status rc = read_name(work, part);
    if (rc != TIDE_OK)
        return rc;
    if (tide_part_is_text(part) && !tide_part_is_attached(part) && work->field.bytes == 0)
        return TIDE_OK;
    if (work->attachments_count == TIDE_MESSAGE_ATTACHMENTS_MAX) {
        problem_set(work, "more attachments than the limit");
        return TIDE_OK;
    }
    struct tide_attachment attachment = {
        .encoding = part->encoding,
        .inlined = is_inlined(work, part),
        .begin = part->begin,
        .end = part->end,
    };
    rc = keep(work, tide_buf_text(&work->field), &attachment.name);
    if (rc == TIDE_OK)
        rc = read_ids(work, part->id, true, &attachment.id);
    if (rc == TIDE_OK)
        rc = keep_type(work, part, &attachment.type);
    void *array = work->attachments;
    if (rc == TIDE_OK && !tide_mem_grow(work->arena->mem, &array, &work->attachments_capacity,
                                        work->attachments_count + 1, TIDE_MESSAGE_ATTACHMENTS_MAX,
                                        sizeof(struct tide_attachment)))
        rc = TIDE_NO_MEMORY;
    work->attachments = array;
    if (rc == TIDE_OK)
        work->attachments[work->attachments_count++] = attachment;
    return rc;
}

/* ---- the whole message ---- */

static tide_status read_parts(struct work *work)
{
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < work->parts.count; i++) {
        const struct tide_part *part = &work->parts.part[i];
        bool inner = part->parent != TIDE_PART_NONE &&
                     work->parts.part[part->parent].kind == TIDE_PART_MESSAGE;
        if (inner)
            rc = add_inner_subject(work, part);
        if (rc == TIDE_OK && tide_part_is_text(part) && !tide_part_is_attached(part))
            rc = add_text(work, part);
        if (rc == TIDE_OK)
            rc = add_attachment(work, part);
    }
    return rc;
}

static tide_status keep_attachments(struct work *work, struct tide_message *message)
{
    if (work->attachments_count == 0)
        return TIDE_OK;
    size_t bytes = work->attachments_count * sizeof(struct tide_attachment);
    struct tide_attachment *kept = tide_arena_take(work->arena, bytes);
    if (kept == NULL)
        return TIDE_NO_MEMORY;
    memcpy(kept, work->attachments, bytes);
    message->attachments = kept;
    message->attachments_count = work->attachments_count;
    return TIDE_OK;
}

static tide_status read_message(struct work *work, struct tide_message *message)
{
    tide_status rc = tide_parts_scan(work->raw, work->arena->mem, &work->parts);
    if (rc != TIDE_OK)
        return rc;
    TIDE_ASSERT(work->parts.count > 0);
    work->problem = work->parts.problem;
    rc = find_hint(work);
    if (rc == TIDE_OK)
        rc = read_fields(work, message);
    if (rc == TIDE_OK)
        rc = read_parts(work);
    if (rc == TIDE_OK)
        rc = keep(work, tide_buf_text(&work->text), &message->text);
    if (rc == TIDE_OK)
        rc = keep_attachments(work, message);
    if (rc == TIDE_OK)
        rc = tide_body_has_html(&work->parts, work->arena->mem, &message->has_html);
    if (work->parts.part[0].headers == 0) {
        message->parsed = TIDE_PARSED_NOT;
        message->problem = "no header could be read";
    } else if (work->problem != NULL) {
        message->parsed = TIDE_PARSED_PARTLY;
        message->problem = work->problem;
    }
    return rc;
}

tide_status tide_message_parse(tide_text raw, tide_arena *arena, struct tide_message *message_out)
{
    if (raw.bytes == 0)
        raw = TIDE_TEXT(""); /* its data may be NULL */
    struct work work = {.raw = raw, .arena = arena, .sibling = TIDE_PART_NONE};
    struct tide_message message = {.parsed = TIDE_PARSED_WHOLE};
    tide_decoder_init(&work.decoder, arena->mem);
    tide_buf_init(&work.hint, arena->mem, HINT_BYTES_MAX);
    tide_buf_init(&work.field, arena->mem, TIDE_MESSAGE_TEXT_BYTES_MAX);
    tide_buf_init(&work.utf8, arena->mem, TIDE_MESSAGE_TEXT_BYTES_MAX);
    tide_buf_init(&work.text, arena->mem, TIDE_MESSAGE_TEXT_BYTES_MAX);
    tide_status rc = read_message(&work, &message);
    if (rc == TIDE_OK)
        *message_out = message;
    if (work.attachments != NULL)
        tide_mem_free(arena->mem, work.attachments,
                      work.attachments_capacity * sizeof(struct tide_attachment));
    tide_parts_done(&work.parts);
    tide_buf_done(&work.text);
    tide_buf_done(&work.utf8);
    tide_buf_done(&work.field);
    tide_buf_done(&work.hint);
    tide_decoder_done(&work.decoder);
    return rc;
}
