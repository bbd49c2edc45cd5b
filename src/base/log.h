/* log.h - the structured log (E9.2).
 *
 * A line is an event with named fields, printed as key=value text or as one JSON
 * object, and passed to a sink.  A log reads no clock and opens no file: the caller
 * passes in the time and the sink.  It allocates nothing, so that running out of
 * memory can be logged.
 *
 * Invariants:
 *   LOG1  every line carries time, level, run id and event.
 *   LOG2  a line is one line: control characters are escaped; it has at most
 *         TIDE_LOG_LINE_BYTES_MAX bytes and says so when it was cut.
 *   LOG3  no secrets: the value of a field whose name means a secret is not printed, and text that
 *         looks like a bearer token or a key is blanked.
 */
#ifndef TIDE_BASE_LOG_H
#define TIDE_BASE_LOG_H

#include "base/status.h"
#include "base/text.h"

typedef enum tide_log_level {
    TIDE_LOG_DEBUG,
    TIDE_LOG_INFO,
    TIDE_LOG_WARN,
    TIDE_LOG_ERROR,
    TIDE_LOG_NONE, /* only as a threshold: log nothing */
} tide_log_level;

typedef enum tide_log_format { TIDE_LOG_PLAIN, TIDE_LOG_JSON } tide_log_format;

/* Takes a whole line, newline included.  Any thread that logs may call it; it must write the line
 * in one piece. */
typedef void tide_log_sink(void *arg, const char *line, size_t bytes);

/* Embedded by the owner of the program.  Everything but `level` is fixed once threads log; `level`
 * is read without a lock and may change at any time. */
typedef struct tide_log {
    tide_log_sink *sink; /* NULL: nothing is logged */
    void *sink_arg;
    tide_log_format format;
    int level; /* tide_log_level, atomic */
    char run_id[40];
    struct tide_log *also; /* gets every line too, by its own level and format; NULL: none */
} tide_log;

enum { TIDE_LOG_LINE_BYTES_MAX = 4096 };

typedef enum tide_field_type { TIDE_FIELD_U64, TIDE_FIELD_I64, TIDE_FIELD_TEXT } tide_field_type;

struct tide_field {
    const char *key;
    tide_field_type type;
    uint64_t number;
    tide_text text;
};

#define TIDE_F_U64(key, value) ((struct tide_field){(key), TIDE_FIELD_U64, (value), {NULL, 0}})
#define TIDE_F_I64(key, value)                                                                     \
    ((struct tide_field){(key), TIDE_FIELD_I64, (uint64_t)(int64_t)(value), {NULL, 0}})
#define TIDE_F_TEXT(key, value) ((struct tide_field){(key), TIDE_FIELD_TEXT, 0, (value)})
#define TIDE_F_CSTR(key, value)                                                                    \
    ((struct tide_field){(key), TIDE_FIELD_TEXT, 0, tide_text_of(value)})

void tide_log_init(tide_log *log, tide_log_level level, tide_log_format format, const char *run_id,
                   tide_log_sink *sink, void *sink_arg);
/* Both reach `also` as well. */
void tide_log_level_set(tide_log *log, tide_log_level level);
void tide_log_run_set(tide_log *log, const char *run_id); /* before threads log */
bool tide_log_level_parse(tide_text name, tide_log_level *level_out);

/* `log` may be NULL.  `event` is a constant like "job done". */
void tide_log_write(tide_log *log, tide_log_level level, uint64_t now_unix_ms, const char *event,
                    const struct tide_field *fields, size_t count);

/* tide_log_event(log, TIDE_LOG_INFO, now, "job done", TIDE_F_U64("job", id)); */
#define tide_log_event(log, level, now_unix_ms, event, ...)                                        \
    tide_log_write((log), (level), (now_unix_ms), (event), (struct tide_field[]){__VA_ARGS__},     \
                   sizeof((struct tide_field[]){__VA_ARGS__}) / sizeof(struct tide_field))

/* A sink for a FILE pointer: one fwrite() and a flush per line. */
void tide_log_to_file(void *file, const char *line, size_t bytes);

/* Whether a field of that name may never be shown (LOG3); for other printers. */
bool tide_log_key_is_secret(const char *key);

#endif
