#include "assistant/text/marker.h"

#include "assistant/text/quote.h"
#include "base/json.h"
#include "mail/mime/charset.h"

#define SIGN "\xe2\x9c\x82" /* U+2702; a variation selector may follow */
enum { SIGN_BYTES = 3 };

const char tide_last_rework_notice[] =
    "This was the last automatic draft for this thread. Further changes are up to you.";
static const char default_instruction[] =
    "Write the reply anew: clearer and shorter, with the same facts.";

static const char *find_sign(tide_text text)
{
    return text.bytes < SIGN_BYTES ? NULL : memmem(text.data, text.bytes, SIGN, SIGN_BYTES);
}

/* What follows a sign, without its variation selector (U+FE0E or U+FE0F). */
static tide_text after_sign(tide_text text, const char *sign)
{
    tide_text rest = {sign + SIGN_BYTES, text.bytes - (size_t)(sign + SIGN_BYTES - text.data)};
    if (rest.bytes >= 3 && memcmp(rest.data, "\xef\xb8", 2) == 0 &&
        ((unsigned char)rest.data[2] & 0xfe) == 0x8e)
        rest = (tide_text){rest.data + 3, rest.bytes - 3};
    return rest;
}

/* ---- finding --------------------------------------------------------------------- */

/* The first sign outside repeated text, or NULL; *rest_io is moved behind its line. */
static const char *next_sign(tide_text *rest_io)
{
    while (rest_io->bytes > 0) {
        const tide_text line = tide_text_line(rest_io);
        const char *sign = tide_quote_is_line(line) ? NULL : find_sign(line);
        if (sign != NULL)
            return sign;
    }
    return NULL;
}

void tide_marker_find(tide_text body, struct tide_marked *marked_out)
{
    tide_text rest = {body.data, tide_quote_begin(body)};
    const char *sign = next_sign(&rest);
    struct tide_marked marked = {.found = sign != NULL, .above = TIDE_TEXT("")};
    if (sign == NULL) {
        marked.below = tide_text_trimmed(body);
        *marked_out = marked;
        return;
    }
    while (next_sign(&rest) != NULL)
        marked.further++;
    marked.above = tide_text_trimmed((tide_text){body.data, (size_t)(sign - body.data)});
    marked.below = tide_text_trimmed(after_sign(body, sign));
    *marked_out = marked;
}

/* ---- instructions ----------------------------------------------------------------- */

/* Appends the text without our notice, repeated text and signs, cut at the ceiling (MRK3). */
static tide_status add_words(tide_text text, tide_buf *out)
{
    tide_auto_buf kept = tide_buf_in(out->mem, text.bytes + 1);
    TIDE_TRY(tide_quote_strip(text, &kept));
    tide_text rest = tide_buf_text(&kept);
    tide_auto_buf lines = tide_buf_in(out->mem, text.bytes + 2);
    while (rest.bytes > 0) {
        const tide_text line = tide_text_line(&rest);
        if (tide_text_equal(tide_text_trimmed(line), tide_text_of(tide_last_rework_notice)))
            continue;
        TIDE_TRY(tide_buf_add(&lines, line.data, line.bytes));
        if (rest.bytes > 0)
            TIDE_TRY(tide_buf_add(&lines, "\n", 1));
    }
    const tide_text words =
        tide_utf8_cut(tide_text_trimmed(tide_buf_text(&lines)), TIDE_INSTRUCTION_BYTES_MAX);
    return words.bytes == 0 ? TIDE_OK : tide_buf_add(out, words.data, words.bytes);
}

tide_status tide_rework_instruction(const struct tide_marked *marked, tide_buf *out)
{
    const size_t before = out->bytes;
    TIDE_TRY(add_words(marked->above, out));
    return out->bytes > before ? TIDE_OK : tide_buf_add_text(out, default_instruction);
}

tide_status tide_manual_notes(const struct tide_marked *marked, tide_buf *out)
{
    const size_t before = out->bytes;
    TIDE_TRY(add_words(marked->above, out));
    return out->bytes > before ? TIDE_OK : add_words(marked->below, out);
}

/* ---- writing ---------------------------------------------------------------------- */

static tide_status add_without_signs(tide_text text, tide_buf *out)
{
    for (;;) {
        const char *sign = find_sign(text);
        const size_t bytes = sign == NULL ? text.bytes : (size_t)(sign - text.data);
        if (bytes > 0)
            TIDE_TRY(tide_buf_add(out, text.data, bytes));
        if (sign == NULL)
            return TIDE_OK;
        text = after_sign(text, sign);
    }
}

tide_status tide_draft_add(const char *notice, tide_text text, tide_buf *out)
{
    /* Clean first: a byte that is dropped could otherwise join two halves of a sign. */
    tide_auto_buf clean = tide_buf_in(out->mem, TIDE_DRAFT_BYTES_MAX);
    const tide_status rc = tide_clean_add(text, TIDE_CLEAN_TEXT, &clean);
    if (rc != TIDE_OK && rc != TIDE_FULL)
        return rc;
    tide_auto_buf plain = tide_buf_in(out->mem, TIDE_DRAFT_BYTES_MAX);
    TIDE_TRY(add_without_signs(tide_buf_text(&clean), &plain));
    const tide_text kept = tide_text_trimmed(tide_buf_text(&plain));
    if (notice != NULL) {
        TIDE_TRY(add_without_signs(tide_text_of(notice), out));
        TIDE_TRY(tide_buf_add_text(out, "\n\n"));
    }
    TIDE_TRY(tide_buf_add_text(out, TIDE_MARKER "\n\n"));
    if (kept.bytes > 0)
        TIDE_TRY(tide_buf_add(out, kept.data, kept.bytes));
    return tide_buf_add_text(out, "\n");
}

tide_status tide_draft_error_add(tide_text reason, tide_buf *out)
{
    tide_auto_buf line = tide_buf_in(out->mem, 400);
    const tide_status rc = tide_clean_add(reason, TIDE_CLEAN_LINE, &line);
    if (rc != TIDE_OK && rc != TIDE_FULL)
        return rc;
    return tide_buf_print(out,
                          "[No reply was written: %s]\n\n"
                          "The assistant could not write this draft. Put the label Rework on the "
                          "thread to try again, or write the reply yourself.\n",
                          line.bytes == 0 ? "the model gave no answer" : tide_buf_cstr(&line));
}
