#include "assistant/text/quote.h"

#include "assistant/match/fold.h"
#include "mail/mime/charset.h"

bool tide_quote_is_line(tide_text line)
{
    return line.bytes > 0 && line.data[0] == '>';
}

/* ---- headings -------------------------------------------------------------------- */

static bool starts(tide_text line, const char *front)
{
    const size_t bytes = strlen(front);
    return line.bytes >= bytes &&
           tide_fold_equal((tide_text){line.data, bytes}, tide_text_of(front));
}

static bool ends(tide_text line, const char *end)
{
    const size_t bytes = strlen(end);
    return line.bytes >= bytes &&
           tide_fold_equal((tide_text){line.data + line.bytes - bytes, bytes}, tide_text_of(end));
}

/* "On Mon, 16 Nov 2026 Ann <ann@example.org> wrote:" in the languages of common mailers. */
static bool is_attribution(tide_text line)
{
    static const char *const verbs[] = {" wrote:",
                                        " napsal:",
                                        " napsala:",
                                        " napsal(a):",
                                        " schrieb:",
                                        " a \xc3\xa9"
                                        "crit :",
                                        " a \xc3\xa9"
                                        "crit:",
                                        " escribi\xc3\xb3:",
                                        " ha scritto:",
                                        " nap\xc3\xadsal:",
                                        " napisa\xc5\x82(a):"};
    if (line.bytes > 500)
        return false;
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
        if (ends(line, verbs[i]))
            return true;
    return starts(line, "On ") && ends(line, "wrote:");
}

static bool is_original_heading(tide_text line)
{
    static const char *const words[] = {"original message", "p\xc5\xafvodn\xc3\xad zpr\xc3\xa1va",
                                        "urspr\xc3\xbcngliche nachricht", "message d'origine"};
    if (!starts(line, "-----") || line.bytes > 120)
        return false;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (tide_fold_contains(line, tide_text_of(words[i])))
            return true;
    return false;
}

static bool is_forward_heading(tide_text line)
{
    if (line.bytes > 200)
        return false;
    return (starts(line, "---") && (tide_fold_contains(line, TIDE_TEXT("forwarded")) ||
                                    tide_fold_contains(line, TIDE_TEXT("p\xc5\x99"
                                                                       "eposlan")) ||
                                    tide_fold_contains(line, TIDE_TEXT("weitergeleitet")))) ||
           tide_fold_equal(line, TIDE_TEXT("Begin forwarded message:"));
}

/* "From: ...", and "Sent: ..." or the like in one of the three lines below: Outlook's heading. */
static bool is_header_block(tide_text line, tide_text rest)
{
    static const char *const froms[] = {"From:", "Od:", "Von:", "De:"};
    static const char *const dates[] = {
        "Sent:", "Date:", "Odesl\xc3\xa1no:", "Datum:", "Gesendet:", "Envoy\xc3\xa9"};
    bool from = false;
    for (size_t i = 0; i < sizeof froms / sizeof froms[0]; i++)
        from = from || starts(line, froms[i]);
    for (unsigned next = 0; from && next < 3; next++) {
        const tide_text below = tide_text_trimmed(tide_text_line(&rest));
        for (size_t i = 0; i < sizeof dates / sizeof dates[0]; i++)
            if (starts(below, dates[i]))
                return true;
    }
    return false;
}

/* Whether the next line that is not empty begins with '>'. */
static bool quoted_below(tide_text rest)
{
    while (rest.bytes > 0) {
        const tide_text line = tide_text_line(&rest);
        if (tide_text_trimmed(line).bytes > 0)
            return tide_quote_is_line(line);
    }
    return false;
}

static bool has_digit(tide_text line)
{
    for (size_t i = 0; i < line.bytes; i++)
        if (line.data[i] >= '0' && line.data[i] <= '9')
            return true;
    return false;
}

size_t tide_quote_begin(tide_text text)
{
    tide_text rest = text;
    size_t above = 0; /* where the line above begins, if it has a date that was wrapped */
    bool dated = false;
    while (rest.bytes > 0) {
        const size_t begin = text.bytes - rest.bytes;
        const tide_text line = tide_text_trimmed(tide_text_line(&rest));
        if (is_forward_heading(line))
            break;
        const bool attribution = is_attribution(line);
        if (attribution && !quoted_below(rest))
            return dated && !has_digit(line) ? above : begin;
        if (!attribution && (is_original_heading(line) || is_header_block(line, rest)))
            return begin;
        above = begin;
        dated = has_digit(line);
    }
    return text.bytes;
}

/* ---- taking out ------------------------------------------------------------------- */

tide_status tide_quote_strip(tide_text text, tide_buf *out)
{
    text.bytes = tide_quote_begin(text);
    const size_t from = out->bytes;
    bool gap = false, forwarded = false;
    while (text.bytes > 0) {
        const tide_text line = tide_text_line(&text);
        const tide_text trimmed = tide_text_trimmed(line);
        forwarded = forwarded || is_forward_heading(trimmed);
        if (!forwarded && tide_text_equal(trimmed, TIDE_TEXT("--")))
            break;
        if (!forwarded &&
            (tide_quote_is_line(line) || (is_attribution(trimmed) && quoted_below(text))))
            continue;
        if (trimmed.bytes == 0) {
            gap = true;
            continue;
        }
        if (out->bytes > from)
            TIDE_TRY(tide_buf_add(out, gap ? "\n\n" : "\n", gap ? 2 : 1));
        gap = false;
        TIDE_TRY(tide_buf_add(out, line.data, line.bytes));
    }
    return TIDE_OK;
}

tide_status tide_quote_add(const struct tide_letter *letter, size_t bytes_max, tide_buf *out)
{
    const struct tide_answered answered = tide_letter_answered(letter);
    return tide_answer_quote(&answered, bytes_max, out);
}
