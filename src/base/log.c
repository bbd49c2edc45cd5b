#include "base/log.h"

#include "base/check.h"
#include "base/clocktext.h"
#include "base/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <strings.h>

static const char *const level_names[] = {"debug", "info", "warn", "error", "none"};

/* Room to close a line that was cut: ` cut=true`, braces, newline. */
enum { LINE_TAIL_BYTES = 24 };

struct line {
    char data[TIDE_LOG_LINE_BYTES_MAX];
    size_t bytes;
    bool cut;
};

static void line_add(struct line *line, const char *bytes, size_t count)
{
    if (line->cut)
        return;
    if (count > sizeof line->data - LINE_TAIL_BYTES - line->bytes) {
        line->cut = true;
        return;
    }
    memcpy(line->data + line->bytes, bytes, count);
    line->bytes += count;
}

static void line_add_cstr(struct line *line, const char *text)
{
    line_add(line, text, strlen(text));
}

/* ---- secrets ---------------------------------------------------------------- */

static const char *const secret_words[] = {
    "token",   "authorization", "password", "passphrase", "secret",
    "api_key", "apikey",        "cookie",   "credential", "private_key",
};
enum { SECRET_WORDS = sizeof secret_words / sizeof secret_words[0] };

bool tide_log_key_is_secret(const char *key)
{
    for (int i = 0; i < SECRET_WORDS; i++)
        if (strcasestr(key, secret_words[i]) != NULL)
            return true;
    return false;
}

static bool starts_with_word(tide_text text, const char *word)
{
    size_t bytes = strlen(word);
    /* `word` is in lower case; the first letter decides most comparisons. */
    return text.bytes >= bytes && (text.data[0] | 0x20) == word[0] &&
           strncasecmp(text.data, word, bytes) == 0;
}

static bool ends_secret(char c)
{
    return c == ' ' || c == '&' || c == '"' || c == '\'' || c == ',' || c == ';' || c == '\n' ||
           c == '}' || c == ')';
}

/* Bytes that may surround a name, its colon and its secret: single or double quotes, also escaped
 * ones (JSON inside JSON), and spaces. */
static size_t around_bytes(tide_text text, size_t at)
{
    size_t from = at;
    while (at < text.bytes && text.data[at] != '\0' &&
           strchr("\"'\\ \t\r\n", text.data[at]) != NULL)
        at++;
    return at - from;
}

/* "Bearer " or "Basic ": the scheme in front of a secret. */
static size_t scheme_bytes(tide_text text)
{
    size_t bytes = starts_with_word(text, "bearer ") ? 7 : starts_with_word(text, "basic ") ? 6 : 0;
    return bytes == 0 ? 0 : bytes + around_bytes(text, bytes);
}

/* How many bytes at the front introduce a secret ("Bearer ", "token=",
 * "secret":"), 0 when they do not. */
static size_t secret_lead(tide_text text)
{
    size_t scheme = scheme_bytes(text);
    if (scheme > 0)
        return scheme;
    for (int i = 0; i < SECRET_WORDS; i++) {
        if (!starts_with_word(text, secret_words[i]))
            continue;
        size_t at = strlen(secret_words[i]);
        at += around_bytes(text, at);
        if (at >= text.bytes || (text.data[at] != '=' && text.data[at] != ':'))
            return 0;
        at++;
        at += around_bytes(text, at);
        return at + scheme_bytes((tide_text){text.data + at, text.bytes - at});
    }
    return 0;
}

static bool holds_secret(tide_text text)
{
    for (; text.bytes > 0; text.data++, text.bytes--)
        if (secret_lead(text) > 0)
            return true;
    return false;
}

/* ---- values ------------------------------------------------------------------ */

static void add_char(struct line *line, tide_text rest, size_t *used_out)
{
    unsigned char c = (unsigned char)rest.data[0];
    size_t bytes = c == '\0' ? 0 : tide_utf8_bytes(rest);
    char escaped[8];
    *used_out = bytes == 0 ? 1 : bytes;
    if (bytes == 0) {
        line_add_cstr(line, "\xef\xbf\xbd");
    } else if (c == '"' || c == '\\') {
        escaped[0] = '\\';
        escaped[1] = (char)c;
        line_add(line, escaped, 2);
    } else if (c < 0x20 || c == 0x7f) {
        (void)snprintf(escaped, sizeof escaped, "\\u%04x", c);
        line_add(line, escaped, 6);
    } else {
        line_add(line, rest.data, bytes);
    }
}

/* Text in quotes, with secrets blanked (LOG2, LOG3). */
static void add_quoted(struct line *line, tide_text text)
{
    line_add(line, "\"", 1);
    while (text.bytes > 0 && !line->cut) {
        size_t lead = secret_lead(text);
        for (size_t end = text.bytes - lead; lead > 0 && text.bytes > end;) {
            size_t used = 0;
            add_char(line, text, &used);
            text.data += used;
            text.bytes -= used;
        }
        if (lead > 0) {
            line_add_cstr(line, "(hidden)");
            /* "token= password: x": an empty secret must not swallow the next name. */
            while (text.bytes > 0 && !ends_secret(text.data[0]) && secret_lead(text) == 0) {
                text.data++;
                text.bytes--;
            }
            continue;
        }
        size_t used = 0;
        add_char(line, text, &used);
        text.data += used;
        text.bytes -= used;
    }
    line_add(line, "\"", 1);
}

static bool is_plain(tide_text text)
{
    for (size_t i = 0; i < text.bytes; i++) {
        unsigned char c = (unsigned char)text.data[i];
        if (c <= ' ' || c == '"' || c == '\\' || c == '=' || c >= 0x7f)
            return false;
    }
    return text.bytes > 0;
}

/* One field, after a separator.  A field that does not fit is left out whole, so that the line
 * stays valid. */
static void add_field(struct line *line, tide_log_format format, const struct tide_field *field)
{
    size_t bytes_before = line->bytes;
    char number[24];
    if (line->cut)
        return;
    if (format == TIDE_LOG_JSON) {
        line_add_cstr(line, ",\"");
        line_add_cstr(line, field->key);
        line_add_cstr(line, "\":");
    } else {
        line_add_cstr(line, " ");
        line_add_cstr(line, field->key);
        line_add_cstr(line, "=");
    }
    if (tide_log_key_is_secret(field->key)) {
        line_add_cstr(line, "\"(hidden)\"");
    } else if (field->type == TIDE_FIELD_TEXT) {
        if (format == TIDE_LOG_PLAIN && is_plain(field->text) && !holds_secret(field->text))
            line_add(line, field->text.data, field->text.bytes);
        else
            add_quoted(line, field->text);
    } else {
        (void)snprintf(number, sizeof number,
                       field->type == TIDE_FIELD_I64 ? "%" PRIi64 : "%" PRIu64, field->number);
        line_add_cstr(line, number);
    }
    if (line->cut)
        line->bytes = bytes_before;
}

/* ---- the log ----------------------------------------------------------------- */

void tide_log_init(tide_log *log, tide_log_level level, tide_log_format format, const char *run_id,
                   tide_log_sink *sink, void *sink_arg)
{
    TIDE_ASSERT(log != NULL);
    TIDE_ASSERT(level <= TIDE_LOG_NONE);
    *log = (tide_log){.sink = sink, .sink_arg = sink_arg, .format = format, .level = (int)level};
    (void)snprintf(log->run_id, sizeof log->run_id, "%s", run_id == NULL ? "-" : run_id);
}

void tide_log_level_set(tide_log *log, tide_log_level level)
{
    for (; log != NULL; log = log->also)
        __atomic_store_n(&log->level, (int)level, __ATOMIC_RELAXED);
}

void tide_log_run_set(tide_log *log, const char *run_id)
{
    for (; log != NULL; log = log->also)
        (void)snprintf(log->run_id, sizeof log->run_id, "%s", run_id);
}

bool tide_log_level_parse(tide_text name, tide_log_level *level_out)
{
    for (int i = 0; i <= TIDE_LOG_NONE; i++) {
        if (tide_text_equal(name, tide_text_of(level_names[i]))) {
            *level_out = (tide_log_level)i;
            return true;
        }
    }
    return false;
}

static void write_line(const tide_log *log, tide_log_level level, uint64_t now_unix_ms,
                       const char *event, const struct tide_field *fields, size_t count)
{
    struct line line = {.bytes = 0, .cut = false};
    char time_text[TIDE_TIME_TEXT_BYTES];
    tide_time_format(now_unix_ms, time_text);
    bool json = log->format == TIDE_LOG_JSON;

    line_add_cstr(&line, json ? "{\"time\":\"" : "");
    line_add_cstr(&line, time_text);
    line_add_cstr(&line, json ? "\",\"level\":\"" : " ");
    line_add_cstr(&line, level_names[level]);
    line_add_cstr(&line, json ? "\"" : "");
    add_field(&line, log->format, &TIDE_F_CSTR("run", log->run_id));
    add_field(&line, log->format, &TIDE_F_CSTR("event", event));
    for (size_t i = 0; i < count; i++)
        add_field(&line, log->format, &fields[i]);

    if (line.cut) {
        TIDE_SEEN("log: line cut");
        const char *mark = json ? ",\"cut\":true" : " cut=true";
        memcpy(line.data + line.bytes, mark, strlen(mark));
        line.bytes += strlen(mark);
    }
    if (json)
        line.data[line.bytes++] = '}';
    line.data[line.bytes++] = '\n';
    TIDE_ASSERT(line.bytes <= sizeof line.data);
    log->sink(log->sink_arg, line.data, line.bytes);
}

void tide_log_write(tide_log *log, tide_log_level level, uint64_t now_unix_ms, const char *event,
                    const struct tide_field *fields, size_t count)
{
    TIDE_ASSERT(level < TIDE_LOG_NONE);
    for (; log != NULL; log = log->also)
        if (log->sink != NULL && (int)level >= __atomic_load_n(&log->level, __ATOMIC_RELAXED))
            write_line(log, level, now_unix_ms, event, fields, count);
}

void tide_log_to_file(void *file, const char *line, size_t bytes)
{
    /* A log that cannot be written has no place to report it. */
    (void)!fwrite(line, 1, bytes, file);
    (void)fflush(file);
}
