/* mbox_write.c - writes our own mailboxes; reads and writes the note at the top of a message. */
#include "mail/files/mbox.h"
#include "base/calendar.h"
#include "base/check.h"
#include "base/encode.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- encoding -------------------------------------------------------------------------- */

tide_status tide_mbox_encode(tide_text piece, tide_buf *out)
{
    for (size_t i = 0; i < piece.bytes; i++) {
        char escaped[4] = "%";
        tide_hex(&piece.data[i], 1, escaped + 1);
        TIDE_TRY(tide_is_plain(piece.data[i], "-_./") ? tide_buf_add(out, &piece.data[i], 1)
                                                      : tide_buf_add(out, escaped, 3));
    }
    return TIDE_OK;
}

tide_status tide_mbox_decode(tide_text piece, tide_buf *out)
{
    for (size_t i = 0; i < piece.bytes; i++) {
        char c = piece.data[i];
        const tide_text behind = {piece.data + i + 1, piece.bytes - i - 1};
        const int byte = c == '%' ? tide_hex_byte(behind) : -1;
        if (byte >= 0) {
            c = (char)byte;
            i += 2;
        }
        TIDE_TRY(tide_buf_add(out, &c, 1));
    }
    return TIDE_OK;
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
        const int byte = tide_hex_byte((tide_text){text.data + i * 2, 2});
        if (byte < 0)
            return false;
        hash[i] = (uint8_t)byte;
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

/* As asctime() writes it, in UTC. */
static void date_text(int64_t ms, char text[64])
{
    const int64_t day_ms = 86400000;
    const int64_t days = ms >= 0 ? ms / day_ms : -((day_ms - 1 - ms) / day_ms);
    const int rest_s = (int)((ms - days * day_ms) / 1000);
    const struct tide_date date = tide_date_of(days);
    (void)snprintf(text, 64, "%s %s %2u %02d:%02d:%02d %04d", tide_day_names[tide_weekday_of(days)],
                   tide_month_names[date.month - 1], date.day, rest_s / 3600, rest_s / 60 % 60,
                   rest_s % 60, (int)date.year);
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
    char hash[TIDE_CONTENT_HASH_BYTES * 2 + 1];
    tide_hex(note->hash, TIDE_CONTENT_HASH_BYTES, hash);
    date_text(note->internal_ms, date);
    TIDE_TRY(tide_buf_add_text(out, "From "));
    TIDE_TRY(add_sender(entry->sender, out));
    TIDE_TRY(tide_buf_print(out, " %s\nStatus: %sO\n", date, entry->is_read ? "R" : ""));
    if (entry->is_starred || entry->is_draft || entry->is_trash)
        TIDE_TRY(tide_buf_print(out, "X-Status: %s%s%s\n", entry->is_starred ? "F" : "",
                                entry->is_draft ? "T" : "", entry->is_trash ? "D" : ""));
    TIDE_TRY(tide_buf_print(out, "X-Tidemark: 1; bytes=%zu; sha256=%s; ms=%" PRId64 "; id=",
                            entry->raw.bytes, hash, note->internal_ms));
    TIDE_TRY(tide_mbox_encode(note->id, out));
    TIDE_TRY(tide_buf_add_text(out, "; thread="));
    TIDE_TRY(tide_mbox_encode(note->thread, out));
    TIDE_TRY(tide_buf_add_text(out, "; labels="));
    TIDE_TRY(tide_buf_add(out, note->labels.data, note->labels.bytes));
    return tide_buf_add_text(out, "\n");
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
