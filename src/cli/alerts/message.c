#include "cli/alerts/message.h"

#include "base/clocktext.h"
#include "base/encode.h"
#include "cli/advice.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { LINE_BYTES = 76 };

/* ---- words ---------------------------------------------------------------------------- */

/* Copies a text from outside into one line. */
static void one_line(const char *text, char *out, size_t out_bytes)
{
    size_t used = 0;
    for (; *text != '\0' && used + 1 < out_bytes; text++) {
        const unsigned char c = (unsigned char)*text;
        out[used++] = c < 0x20 || c == 0x7f ? ' ' : (char)c;
    }
    if (*text != '\0') { /* cut: not in the middle of a character */
        while (used > 0 && ((unsigned char)out[used - 1] & 0xc0) == 0x80)
            used--;
        if (used > 0 && (unsigned char)out[used - 1] >= 0xc0)
            used--;
    }
    out[used] = '\0';
}

static bool is_ascii(tide_text text)
{
    for (size_t i = 0; i < text.bytes; i++)
        if ((unsigned char)text.data[i] >= 0x80)
            return false;
    return true;
}

/* "2026-11-16 10:02:03 UTC" */
static void when(uint64_t unix_ms, char out[TIDE_TIME_TEXT_BYTES])
{
    char text[TIDE_TIME_TEXT_BYTES];
    tide_time_format(unix_ms, text);
    (void)snprintf(out, TIDE_TIME_TEXT_BYTES, "%.10s %.8s UTC", text,
                   strlen(text) > 18 ? text + 11 : "");
}

/* "Mon, 16 Nov 2026 10:02:03 +0000", in no language but this one. */
static void date(uint64_t unix_ms, char out[48])
{
    static const char days[7][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char months[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                       "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    const time_t seconds = (time_t)(unix_ms / 1000);
    struct tm utc = {.tm_mday = 1};
    (void)gmtime_r(&seconds, &utc);
    (void)snprintf(out, 48, "%s, %02d %s %04d %02d:%02d:%02d +0000", days[utc.tm_wday % 7],
                   utc.tm_mday, months[utc.tm_mon % 12], utc.tm_year + 1900, utc.tm_hour,
                   utc.tm_min, utc.tm_sec);
}

static const char *state_of(const struct tide_notice *notice)
{
    if (strcmp(notice->condition, ALERT_TEST_CONDITION) == 0)
        return "test";
    if (notice->level == 0)
        return "all clear";
    if (notice->still)
        return notice->level == 2 ? "still critical" : "still a warning";
    return notice->level == 2 ? "critical" : "warning";
}

/* ---- headers -------------------------------------------------------------------------- */

void alert_message_id(const struct tide_notice *notice, const char *from,
                      char out[ALERT_MESSAGE_ID_BYTES])
{
    const char *at = strrchr(from, '@');
    (void)snprintf(out, ALERT_MESSAGE_ID_BYTES, "<%.32s.tidemark@%.250s>", notice->tag,
                   at == NULL ? "localhost" : at + 1);
}

static tide_status headers(const struct tide_notice *notice, const char *from, const char *to,
                           bool ascii, tide_buf *out)
{
    char id[ALERT_MESSAGE_ID_BYTES], made[48], subject[400], account[201], condition[64];
    alert_message_id(notice, from, id);
    date(notice->made_unix_ms, made);
    one_line(notice->account, account, sizeof account);
    one_line(notice->condition, condition, sizeof condition);
    (void)snprintf(subject, sizeof subject, "Tidemark: %s: %s%s%s", state_of(notice), condition,
                   account[0] == '\0' ? "" : ", ", account);
    const tide_text text = tide_text_of(subject);
    tide_status rc = tide_buf_print(out,
                                    "From: Tidemark <%s>\r\nTo: <%s>\r\nDate: %s\r\n"
                                    "Message-ID: %s\r\nSubject: ",
                                    from, to, made, id);
    if (rc == TIDE_OK)
        rc = is_ascii(text) ? tide_buf_add(out, text.data, text.bytes)
                            : tide_encoded_words_add(out, text);
    if (rc == TIDE_OK)
        rc = tide_buf_print(out,
                            "\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n"
                            "Content-Transfer-Encoding: %s\r\nAuto-Submitted: auto-generated\r\n"
                            "\r\n",
                            ascii ? "7bit" : "base64");
    return rc;
}

/* ---- body ------------------------------------------------------------------------------ */

/* "Means:   words words", wrapped, with later lines below the first. */
static tide_status paragraph(tide_buf *out, const char *name, const char *text)
{
    tide_status rc = tide_buf_print(out, "%-9s", name);
    size_t column = 9;
    while (rc == TIDE_OK && *text != '\0') {
        const size_t word = strcspn(text, " ");
        if (column > 9 && column + 1 + word > LINE_BYTES) {
            rc = tide_buf_print(out, "\r\n%9s", "");
            column = 9;
        } else if (column > 9) {
            rc = tide_buf_print(out, " ");
            column++;
        }
        if (rc == TIDE_OK)
            rc = tide_buf_add(out, text, word);
        column += word;
        text += word + strspn(text + word, " ");
    }
    return rc == TIDE_OK ? tide_buf_print(out, "\r\n") : rc;
}

static tide_status body(const struct tide_notice *notice, tide_buf *out)
{
    const struct cli_advice *advice = cli_advice(notice->condition);
    char account[201], text[420], since[TIDE_TIME_TEXT_BYTES], ended[TIDE_TIME_TEXT_BYTES];
    char command[300];
    one_line(notice->account, account, sizeof account);
    one_line(notice->text, text, sizeof text);
    when(notice->since_unix_ms, since);
    when(notice->ended_unix_ms, ended);
    cli_advice_command(advice, account, command, sizeof command);
    const bool test = strcmp(notice->condition, ALERT_TEST_CONDITION) == 0;
    const bool over = notice->level == 0 && !test;
    tide_status rc = paragraph(out, "What:", text);
    if (rc == TIDE_OK && account[0] != '\0')
        rc = paragraph(out, "Account:", account);
    if (rc == TIDE_OK)
        rc = paragraph(out, "Level:", state_of(notice));
    if (rc == TIDE_OK && !test)
        rc = paragraph(out, "Since:", since);
    if (rc == TIDE_OK && over && notice->ended_unix_ms != 0)
        rc = paragraph(out, "Ended:", ended);
    if (rc == TIDE_OK)
        rc = paragraph(out, "Means:", over ? "The condition has ended." : advice->means);
    if (rc == TIDE_OK)
        rc = paragraph(out, "To do:", over ? "Nothing." : advice->to_do);
    if (rc == TIDE_OK)
        rc = paragraph(out, "Command:", over ? "tidemark alerts" : command);
    return rc;
}

tide_status alert_message(const struct tide_notice *notice, const char *from, const char *to,
                          tide_buf *out)
{
    tide_buf text;
    tide_buf_init(&text, out->mem, ALERT_MESSAGE_BYTES_MAX);
    tide_status rc = body(notice, &text);
    const bool ascii = is_ascii(tide_buf_text(&text));
    if (rc == TIDE_OK)
        rc = headers(notice, from, to, ascii, out);
    if (rc == TIDE_OK && ascii)
        rc = tide_buf_add(out, text.data, text.bytes);
    for (size_t at = 0; rc == TIDE_OK && !ascii && at < text.bytes; at += 57) {
        const size_t part = text.bytes - at < 57 ? text.bytes - at : 57;
        rc = tide_base64_add(out, (tide_text){text.data + at, part}, tide_base64_standard, true);
        if (rc == TIDE_OK)
            rc = tide_buf_print(out, "\r\n");
    }
    tide_buf_done(&text);
    return rc;
}
