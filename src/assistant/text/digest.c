#include "assistant/text/digest.h"

#include "assistant/text/quote.h"
#include "base/clocktext.h"

tide_text tide_chars_cut(tide_text text, size_t chars)
{
    size_t at = 0;
    for (; chars > 0 && at < text.bytes; chars--) {
        const size_t bytes = tide_utf8_bytes((tide_text){text.data + at, text.bytes - at});
        at += bytes == 0 ? 1 : bytes;
    }
    return (tide_text){text.data, at < text.bytes ? at : text.bytes};
}

static size_t chars_of(tide_text text)
{
    size_t chars = 0;
    for (size_t i = 0; i < text.bytes; i++)
        chars += ((unsigned char)text.data[i] & 0xc0) != 0x80;
    return chars;
}

static void set_line(tide_json *json, const char *key, tide_text line)
{
    if (line.bytes > 0)
        tide_json_set_text(json, key, tide_utf8_cut(line, TIDE_DIGEST_LINE_BYTES));
}

static void set_date(tide_json *json, const struct tide_letter *letter)
{
    char date[TIDE_TIME_TEXT_BYTES];
    if (!letter->has_date || letter->date_unix_ms < 0)
        return;
    tide_time_format((uint64_t)letter->date_unix_ms, date);
    tide_json_set_cstr(json, "date", date);
}

/* Sets "text", and "cut" when some is missing.  *chars_out is how many characters it has. */
static tide_status set_text(tide_json *json, const struct tide_letter *letter, size_t chars,
                            bool stripped, size_t *chars_out)
{
    tide_auto_buf kept = tide_buf_heap(TIDE_LETTER_TEXT_BYTES_MAX + 1);
    tide_text text = letter->text;
    if (stripped) {
        TIDE_TRY(tide_quote_strip(text, &kept));
        /* Nothing but repeated text is shown as it is: better than an empty message. */
        text = kept.bytes > 0 ? tide_buf_text(&kept) : text;
    }
    const tide_text shown = tide_chars_cut(text, chars);
    tide_json_set_text(json, "text", shown.bytes == 0 ? TIDE_TEXT("") : shown);
    if (shown.bytes < text.bytes || letter->cut)
        tide_json_set_bool(json, "cut", true);
    *chars_out = chars_of(shown);
    return TIDE_OK;
}

tide_status tide_digest_letter(const struct tide_letter *letter, size_t chars, bool stripped,
                               tide_json *json_out)
{
    size_t used = 0;
    tide_json_object(json_out);
    set_line(json_out, "from", letter->from);
    set_line(json_out, "to", letter->to);
    set_line(json_out, "cc", letter->cc);
    set_line(json_out, "subject", letter->subject);
    set_date(json_out, letter);
    TIDE_TRY(set_text(json_out, letter, chars, stripped, &used));
    return json_out->failed ? TIDE_NO_MEMORY : TIDE_OK;
}

tide_status tide_digest_thread(const struct tide_letter *letters, size_t count, size_t chars,
                               tide_json *json_out)
{
    tide_auto_json messages = {NULL, false};
    size_t shown = 0;
    tide_json_object(json_out);
    tide_json_array(&messages);
    for (size_t i = count; i > 0 && chars > 0 && shown < TIDE_DIGEST_THREAD_MAX; i--, shown++) {
        tide_auto_json one = {NULL, false};
        size_t used = 0;
        tide_json_object(&one);
        set_line(&one, "from", letters[i - 1].from);
        set_date(&one, &letters[i - 1]);
        TIDE_TRY(set_text(&one, &letters[i - 1], chars, true, &used));
        chars -= used;
        tide_json_append(&messages, &one);
    }
    tide_json_set(json_out, "messages", &messages);
    if (shown < count)
        tide_json_set_u64(json_out, "left_out", count - shown);
    return json_out->failed ? TIDE_NO_MEMORY : TIDE_OK;
}
