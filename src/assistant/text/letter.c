#include "assistant/text/letter.h"

#include "assistant/match/fold.h"
#include "assistant/text/html.h"
#include "mail/compose/mailbox.h"
#include "base/check.h"
#include "mail/mime/address.h"
#include "mail/mime/body.h"
#include "mail/mime/header.h"

bool tide_letter_header(const struct tide_letter *letter, const char *name, size_t *cursor_io,
                        tide_text *value_out)
{
    for (size_t i = *cursor_io; i < letter->headers_count; i++) {
        if (tide_fold_equal(letter->headers[i].name, tide_text_of(name))) {
            *cursor_io = i + 1;
            *value_out = letter->headers[i].value;
            return true;
        }
    }
    *cursor_io = letter->headers_count;
    return false;
}

tide_text tide_letter_sender(const struct tide_letter *letter)
{
    return tide_mailbox_first(letter->from).address;
}

struct tide_answered tide_letter_answered(const struct tide_letter *letter)
{
    return (struct tide_answered){.from = letter->from,
                                  .to = letter->to,
                                  .cc = letter->cc,
                                  .reply_to = letter->reply_to,
                                  .subject = letter->subject,
                                  .message_id = letter->message_id,
                                  .references = letter->references,
                                  .has_date = letter->has_date,
                                  .date_unix_ms = letter->date_unix_ms,
                                  .text = letter->text};
}

static tide_text first_value(const struct tide_letter *letter, const char *name)
{
    size_t cursor = 0;
    tide_text value = TIDE_TEXT("");
    (void)tide_letter_header(letter, name, &cursor, &value);
    return value;
}

/* ---- headers --------------------------------------------------------------------- */

static bool has_addresses(tide_text name)
{
    static const char *const names[] = {
        "From", "To", "Cc", "Bcc", "Reply-To", "Sender", "X-Forwarded-From", "X-Forwarded-To"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (tide_fold_equal(name, tide_text_of(names[i])))
            return true;
    return false;
}

/* What is left out when it is full is only text of a stranger (LTR2). */
static tide_status harmless(tide_status rc)
{
    return rc == TIDE_FULL ? TIDE_OK : rc;
}

static tide_status decode(tide_decoder *decoder, const struct tide_letter_header *raw,
                          tide_arena *arena, struct tide_letter_header *out)
{
    tide_auto_buf value = tide_buf_in(decoder->mem, TIDE_LETTER_HEADER_BYTES_MAX);
    tide_auto_buf name = tide_buf_in(decoder->mem, 200);
    bool deep = false;
    TIDE_TRY(harmless(tide_clean_add(raw->name, TIDE_CLEAN_LINE, &name)));
    TIDE_TRY(harmless(has_addresses(tide_buf_text(&name))
                          ? tide_address_add(decoder, raw->value, &value, &deep)
                          : tide_header_words(decoder, raw->value, &value)));
    const tide_text shown = tide_text_trimmed(tide_buf_text(&value));
    const char *name_copy = tide_arena_copy(arena, tide_buf_cstr(&name), name.bytes);
    const char *value_copy =
        tide_arena_copy(arena, shown.bytes == 0 ? "" : shown.data, shown.bytes);
    if (name_copy == NULL || value_copy == NULL)
        return TIDE_NO_MEMORY;
    *out = (struct tide_letter_header){{name_copy, name.bytes}, {value_copy, shown.bytes}};
    return TIDE_OK;
}

/* Appends the ids of a header, "<a@b> <c@d>". */
static tide_status add_ids(tide_text value, tide_buf *out)
{
    for (size_t i = 0; i < value.bytes; i++) {
        if (value.data[i] != '<')
            continue;
        const char *end = memchr(value.data + i, '>', value.bytes - i);
        if (end == NULL)
            break;
        const tide_text id = {value.data + i + 1, (size_t)(end - value.data) - i - 1};
        i = (size_t)(end - value.data);
        if (!tide_compose_is_id(id))
            continue;
        if (out->bytes > 0)
            TIDE_TRY(tide_buf_add(out, " ", 1));
        TIDE_TRY(tide_buf_add(out, id.data, id.bytes));
    }
    return TIDE_OK;
}

static tide_status take_ids(struct tide_letter *letter, tide_arena *arena)
{
    tide_auto_buf ids = tide_buf_in(arena->mem, TIDE_LETTER_HEADER_BYTES_MAX);
    tide_auto_buf own = tide_buf_in(arena->mem, TIDE_LETTER_HEADER_BYTES_MAX);
    TIDE_TRY(harmless(add_ids(first_value(letter, "References"), &ids)));
    if (ids.bytes == 0)
        TIDE_TRY(harmless(add_ids(first_value(letter, "In-Reply-To"), &ids)));
    TIDE_TRY(harmless(add_ids(first_value(letter, "Message-ID"), &own)));
    const char *space = own.bytes == 0 ? NULL : memchr(own.data, ' ', own.bytes);
    const size_t own_bytes = space == NULL ? own.bytes : (size_t)(space - own.data);
    const char *references = tide_arena_copy(arena, tide_buf_cstr(&ids), ids.bytes);
    const char *message_id = tide_arena_copy(arena, tide_buf_cstr(&own), own_bytes);
    if (references == NULL || message_id == NULL)
        return TIDE_NO_MEMORY;
    letter->references = (tide_text){references, ids.bytes};
    letter->message_id = (tide_text){message_id, own_bytes};
    return TIDE_OK;
}

static tide_status take_text(struct tide_letter *letter, tide_text text, tide_arena *arena)
{
    tide_auto_buf clean = tide_buf_in(arena->mem, TIDE_LETTER_TEXT_BYTES_MAX);
    const tide_status rc = tide_clean_add(text, TIDE_CLEAN_TEXT, &clean);
    letter->cut = letter->cut || rc == TIDE_FULL;
    TIDE_TRY(harmless(rc));
    const char *copy = tide_arena_copy(arena, tide_buf_cstr(&clean), clean.bytes);
    if (copy == NULL)
        return TIDE_NO_MEMORY;
    letter->text = (tide_text){copy, clean.bytes};
    return TIDE_OK;
}

tide_status tide_letter_make(const struct tide_letter_header *headers, size_t count, tide_text text,
                             tide_arena *arena, struct tide_letter *letter_out)
{
    struct tide_letter letter = {.cut = false};
    const size_t kept = count > TIDE_LETTER_HEADERS_MAX ? TIDE_LETTER_HEADERS_MAX : count;
    struct tide_letter_header *decoded = tide_arena_take(arena, kept * sizeof *decoded + 1);
    if (decoded == NULL)
        return TIDE_NO_MEMORY;
    tide_decoder decoder;
    tide_decoder_init(&decoder, arena->mem);
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < kept; i++)
        rc = decode(&decoder, &headers[i], arena, &decoded[i]);
    tide_decoder_done(&decoder);
    if (rc != TIDE_OK)
        return rc;
    letter.headers = decoded;
    letter.headers_count = kept;
    letter.from = first_value(&letter, "From");
    letter.to = first_value(&letter, "To");
    letter.cc = first_value(&letter, "Cc");
    letter.reply_to = first_value(&letter, "Reply-To");
    letter.subject = first_value(&letter, "Subject");
    letter.has_date = tide_message_date(first_value(&letter, "Date"), &letter.date_unix_ms);
    TIDE_TRY(take_ids(&letter, arena));
    TIDE_TRY(take_text(&letter, text, arena));
    *letter_out = letter;
    return TIDE_OK;
}

/* ---- raw bytes ------------------------------------------------------------------- */

static size_t split_headers(tide_text raw, const struct tide_parts *parts,
                            struct tide_letter_header *headers)
{
    const struct tide_part *top = &parts->part[0];
    tide_text rest = {raw.data + top->head_begin, (size_t)(top->head_end - top->head_begin)};
    size_t count = 0;
    while (rest.bytes > 0 && count < TIDE_LETTER_HEADERS_MAX) {
        struct tide_mail_header header;
        size_t bytes = 0, lines = 0;
        const tide_header_line line =
            tide_header_read(rest, parts->line_end, &header, &bytes, &lines);
        if (line == TIDE_HEADER_LINE_BLANK || bytes == 0)
            break;
        if (line == TIDE_HEADER_LINE_NAMED)
            headers[count++] = (struct tide_letter_header){header.name, header.value};
        rest = (tide_text){rest.data + bytes, rest.bytes - bytes};
    }
    return count;
}

/* The text that a reader shows: of alternatives the HTML, as text. */
static tide_status shown_text(tide_text raw, tide_mem *mem, tide_buf *out, bool *cut_out)
{
    tide_auto_arena arena = tide_arena_in(mem, 128 << 20);
    struct tide_body body;
    TIDE_TRY(tide_body_read(raw, &arena, &body));
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < body.count; i++) {
        const struct tide_body_piece *piece = &body.pieces[i];
        if (out->bytes > 0)
            rc = tide_buf_add(out, "\n", 1);
        if (rc == TIDE_OK)
            rc = piece->html ? tide_html_quoted_text(piece->text, out)
                             : tide_clean_add(piece->text, TIDE_CLEAN_TEXT, out);
    }
    *cut_out = rc == TIDE_FULL || body.problem != NULL;
    return harmless(rc);
}

tide_status tide_letter_read(tide_text raw, tide_arena *arena, struct tide_letter *letter_out)
{
    struct tide_letter_header *headers =
        tide_mem_array(arena->mem, TIDE_LETTER_HEADERS_MAX, sizeof *headers);
    tide_auto_buf text = tide_buf_in(arena->mem, TIDE_LETTER_TEXT_BYTES_MAX);
    struct tide_parts parts = {.mem = NULL};
    struct tide_letter letter = {.cut = false};
    bool cut = false;
    tide_status rc = headers == NULL ? TIDE_NO_MEMORY : tide_parts_scan(raw, arena->mem, &parts);
    if (rc == TIDE_OK)
        rc = shown_text(raw, arena->mem, &text, &cut);
    if (rc == TIDE_OK)
        rc = tide_letter_make(headers, parts.count == 0 ? 0 : split_headers(raw, &parts, headers),
                              tide_buf_text(&text), arena, &letter);
    if (rc == TIDE_OK) {
        letter.cut = letter.cut || cut;
        *letter_out = letter;
    }
    tide_parts_done(&parts);
    tide_mem_free(arena->mem, headers, TIDE_LETTER_HEADERS_MAX * sizeof *headers);
    return rc;
}
