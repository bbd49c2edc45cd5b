/* mbox_write.c - writes our own mailboxes; reads and writes the note at the top of a message. */
#include "mail/files/mbox.h"
#include "base/check.h"

#include <inttypes.h>
#include <stdio.h>

static const char hex_digits[] = "0123456789abcdef";

/* ---- encoding -------------------------------------------------------------------------- */

static bool is_plain(unsigned char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-' ||
           c == '_' || c == '.' || c == '/';
}

tide_status tide_mbox_encode(tide_text piece, tide_buf *out)
{
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < piece.bytes; i++) {
        const unsigned char c = (unsigned char)piece.data[i];
        const char escaped[3] = {'%', hex_digits[c >> 4], hex_digits[c & 15]};
        rc = is_plain(c) ? tide_buf_add(out, &piece.data[i], 1) : tide_buf_add(out, escaped, 3);
    }
    return rc;
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

tide_status tide_mbox_decode(tide_text piece, tide_buf *out)
{
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < piece.bytes; i++) {
        char c = piece.data[i];
        if (c == '%' && i + 2 < piece.bytes && hex_value(piece.data[i + 1]) >= 0 &&
            hex_value(piece.data[i + 2]) >= 0) {
            c = (char)(hex_value(piece.data[i + 1]) << 4 | hex_value(piece.data[i + 2]));
            i += 2;
        }
        rc = tide_buf_add(out, &c, 1);
    }
    return rc;
}

/* ---- reading the note ------------------------------------------------------------------ */

static bool takes(tide_text *text, const char *word)
{
    const size_t bytes = strlen(word);
    if (text->bytes < bytes || memcmp(text->data, word, bytes) != 0)
        return false;
    text->data += bytes;
    text->bytes -= bytes;
    return true;
}

/* Takes one line off the front, without its line end. */
static bool take_line(tide_text *text, tide_text *line_out)
{
    const char *end = text->bytes == 0 ? NULL : memchr(text->data, '\n', text->bytes);
    if (end == NULL)
        return false;
    *line_out = (tide_text){text->data, (size_t)(end - text->data)};
    if (line_out->bytes > 0 && line_out->data[line_out->bytes - 1] == '\r')
        line_out->bytes--;
    text->bytes -= (size_t)(end - text->data) + 1;
    text->data = end + 1;
    return true;
}

/* "name=value" up to the next "; ". */
static bool take_field(tide_text *line, const char *name, tide_text *value_out)
{
    if (!takes(line, name) || !takes(line, "="))
        return false;
    size_t i = 0;
    while (i < line->bytes && line->data[i] != ';')
        i++;
    *value_out = (tide_text){line->data, i};
    line->data += i;
    line->bytes -= i;
    (void)takes(line, "; ");
    return true;
}

static bool hash_of(tide_text text, uint8_t hash[TIDE_CONTENT_HASH_BYTES])
{
    if (text.bytes != TIDE_CONTENT_HASH_BYTES * 2)
        return false;
    for (size_t i = 0; i < TIDE_CONTENT_HASH_BYTES; i++) {
        const int high = hex_value(text.data[i * 2]);
        const int low = hex_value(text.data[i * 2 + 1]);
        if (high < 0 || low < 0)
            return false;
        hash[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

bool tide_mbox_note_read(tide_text raw, struct tide_mbox_note *note_out, tide_text *rest_out)
{
    struct tide_mbox_note note = {0};
    tide_text rest = raw;
    tide_text line = TIDE_TEXT_NONE;
    tide_text value = TIDE_TEXT_NONE;
    /* Lines of mutt and other programs may come before it. */
    for (unsigned i = 0;; i++) {
        if (i == 3 || !take_line(&rest, &line))
            return false;
        if (takes(&line, "X-Tidemark: 1; "))
            break;
        if (!takes(&line, "Status: ") && !takes(&line, "X-Status: "))
            return false;
    }
    if (line.bytes > TIDE_MBOX_NOTE_BYTES_MAX || !take_field(&line, "bytes", &value) ||
        !tide_text_to_u64(value, &note.bytes) || !take_field(&line, "sha256", &value) ||
        !hash_of(value, note.hash) || !take_field(&line, "ms", &value) ||
        !tide_text_to_i64(value, &note.internal_ms) || !take_field(&line, "id", &note.id) ||
        !take_field(&line, "thread", &note.thread) || !take_field(&line, "labels", &note.labels))
        return false;
    *note_out = note;
    *rest_out = rest;
    return true;
}

/* ---- writing --------------------------------------------------------------------------- */

/* The date of a day counted from 1970-01-01, in the Gregorian calendar. */
static void civil(int64_t days, int *year_out, int *month_out, int *day_out)
{
    const int64_t z = days + 719468;
    const int64_t era = (z >= 0 ? z : z - 146096) / 146097;
    const int64_t of_era = z - era * 146097;
    const int64_t years = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    const int64_t of_year = of_era - (365 * years + years / 4 - years / 100);
    const int64_t shifted = (5 * of_year + 2) / 153;
    *day_out = (int)(of_year - (153 * shifted + 2) / 5 + 1);
    *month_out = (int)(shifted < 10 ? shifted + 3 : shifted - 9);
    *year_out = (int)(years + era * 400 + (*month_out <= 2));
}

/* As asctime() writes it, in UTC. */
static void date_text(int64_t ms, char text[64])
{
    static const char days[] = "ThuFriSatSunMonTueWed"; /* 1970 began on a Thursday */
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    int64_t day = ms / 86400000;
    int64_t rest_s = ms % 86400000 / 1000;
    if (ms % 86400000 < 0) {
        day--;
        rest_s = (ms % 86400000 + 86400000) / 1000;
    }
    int year = 0;
    int month = 0;
    int of_month = 0;
    civil(day, &year, &month, &of_month);
    const int week = (int)((day % 7 + 7) % 7);
    (void)snprintf(text, 64, "%.3s %.3s %2d %02d:%02d:%02d %04d", days + week * 3,
                   months + (month - 1) * 3, of_month, (int)(rest_s / 3600),
                   (int)(rest_s / 60 % 60), (int)(rest_s % 60), year);
}

/* A sender must not contain blanks, or the date would not be found. */
static tide_status add_sender(tide_text sender, tide_buf *out)
{
    tide_status rc = TIDE_OK;
    size_t used = 0;
    for (size_t i = 0; rc == TIDE_OK && i < sender.bytes && i < 200; i++) {
        if (sender.data[i] <= ' ' || sender.data[i] >= 0x7f)
            continue;
        rc = tide_buf_add(out, &sender.data[i], 1);
        used++;
    }
    return rc == TIDE_OK && used == 0 ? tide_buf_add_text(out, "MAILER-DAEMON") : rc;
}

static tide_status write_top(const struct tide_mbox_entry *entry, tide_buf *out)
{
    const struct tide_mbox_note *note = &entry->note;
    char date[64];
    char hash[TIDE_CONTENT_HASH_BYTES * 2 + 1] = {0};
    for (size_t i = 0; i < TIDE_CONTENT_HASH_BYTES; i++) {
        hash[i * 2] = hex_digits[note->hash[i] >> 4];
        hash[i * 2 + 1] = hex_digits[note->hash[i] & 15];
    }
    date_text(note->internal_ms, date);
    tide_status rc = tide_buf_add_text(out, "From ");
    if (rc == TIDE_OK)
        rc = add_sender(entry->sender, out);
    if (rc == TIDE_OK)
        rc = tide_buf_print(out, " %s\nStatus: %sO\n", date, entry->is_read ? "R" : "");
    if (rc == TIDE_OK && (entry->is_starred || entry->is_draft || entry->is_trash))
        rc = tide_buf_print(out, "X-Status: %s%s%s\n", entry->is_starred ? "F" : "",
                            entry->is_draft ? "T" : "", entry->is_trash ? "D" : "");
    if (rc == TIDE_OK)
        rc = tide_buf_print(out, "X-Tidemark: 1; bytes=%zu; sha256=%s; ms=%" PRId64 "; id=",
                            entry->raw.bytes, hash, note->internal_ms);
    if (rc == TIDE_OK)
        rc = tide_mbox_encode(note->id, out);
    if (rc == TIDE_OK)
        rc = tide_buf_add_text(out, "; thread=");
    if (rc == TIDE_OK)
        rc = tide_mbox_encode(note->thread, out);
    if (rc == TIDE_OK)
        rc = tide_buf_add_text(out, "; labels=");
    if (rc == TIDE_OK)
        rc = tide_buf_add(out, note->labels.data, note->labels.bytes);
    return rc == TIDE_OK ? tide_buf_add_text(out, "\n") : rc;
}

/* Whether a line is "From " after any number of ">". */
static bool needs_quote(tide_text line)
{
    size_t i = 0;
    while (i < line.bytes && line.data[i] == '>')
        i++;
    return line.bytes - i >= 5 && memcmp(line.data + i, "From ", 5) == 0;
}

/* The next line that needs a ">"; raw.bytes: none.  `at` is at the start of a line. */
static size_t next_quote(tide_text raw, size_t at)
{
    while (at < raw.bytes) {
        const tide_text rest = {raw.data + at, raw.bytes - at};
        if ((rest.data[0] == 'F' || rest.data[0] == '>') && needs_quote(rest))
            return at;
        const char *end = memchr(rest.data, '\n', rest.bytes);
        if (end == NULL)
            break;
        at += (size_t)(end - rest.data) + 1;
    }
    return raw.bytes;
}

tide_status tide_mbox_write(const struct tide_mbox_entry *entry, tide_buf *scratch,
                            tide_mbox_sink *sink, void *sink_arg, tide_error *err)
{
    const tide_text raw = entry->raw;
    tide_buf_clear(scratch);
    tide_status rc = write_top(entry, scratch);
    if (rc != TIDE_OK)
        return tide_error_set(err, rc, "no memory for the header lines of message %.*s",
                              (int)entry->note.id.bytes, entry->note.id.data);
    rc = sink(sink_arg, scratch->data, scratch->bytes, err);
    for (size_t at = 0; rc == TIDE_OK && at < raw.bytes;) {
        const size_t quote = next_quote(raw, at);
        rc = sink(sink_arg, raw.data + at, quote - at, err);
        at = quote;
        if (rc != TIDE_OK || quote == raw.bytes)
            break;
        rc = sink(sink_arg, ">", 1, err);
        /* Copy the line itself: the search continues after it. */
        const char *end = memchr(raw.data + at, '\n', raw.bytes - at);
        const size_t line = end == NULL ? raw.bytes - at : (size_t)(end - raw.data) + 1 - at;
        if (rc == TIDE_OK)
            rc = sink(sink_arg, raw.data + at, line, err);
        at += line;
    }
    /* Ends its last line if needed (the note has the length), and adds the blank line that
     * separates messages. */
    const bool ended = raw.bytes == 0 || raw.data[raw.bytes - 1] == '\n';
    return rc == TIDE_OK ? sink(sink_arg, "\n\n", ended ? 1 : 2, err) : rc;
}
