/* http.h - a request and its answer, as the cloud's logic sees them.
 *
 * Plain values: no socket, no clock.  libmicrohttpd is one front end that fills
 * a request and sends an answer (cloudbox/serve), the simulated world's network
 * the other, so both use the same provider.
 *
 * Running out of memory ends the program: an emulator that cannot answer is of
 * no use, and every size that a client can choose has a limit below.
 *
 * Invariants:
 *   BHTP1  a request is borrowed and never changed while it is served.
 *   BHTP2  an answer is always complete: one status, one body, and a plan that says what happens to
 *          them on the wire.  A plan changes no effect.
 */
#ifndef BOX_HTTP_H
#define BOX_HTTP_H

#include "base/buf.h"
#include "base/mem.h"
#include "base/text.h"

#include <jansson.h>

enum {
    BOX_BODY_BYTES_MAX = 160 << 20,   /* of a request without a sink: an import has up to 150 MB */
    BOX_ANSWER_BYTES_MAX = 512 << 20, /* of an answer without a source: a batch of large ones */
    BOX_TARGET_BYTES_MAX = 64 << 10,  /* path and query */
    BOX_HEADERS_MAX = 64,
    BOX_PARAMS_MAX = 256,   /* of one query string */
    BOX_SEGMENTS_MAX = 260, /* of a path: files are addressed by theirs */
    BOX_ANSWER_HEADERS_MAX = 12,
    BOX_SCRATCH_BYTES_MAX = 1 << 30, /* of one call's arena */
};

typedef enum box_verb {
    BOX_GET,
    BOX_POST,
    BOX_PUT,
    BOX_PATCH,
    BOX_DELETE,
    BOX_OPTIONS,
    BOX_VERB_OTHER,
} box_verb;

box_verb box_verb_of(tide_text name);
const char *box_verb_name(box_verb verb);

struct box_header {
    tide_text name;
    tide_text value;
};

/* Takes a request body piece by piece (service.h, `sink`), so that a body may be larger
 * than memory.  What it gathers changes nothing until the handler runs (BHTP1, BCLD2). */
struct box_sink {
    bool (*write)(void *arg, tide_text piece); /* false: too large; the answer is a 413 */
    void (*done)(void *arg);
    void *arg;
    uint64_t bytes; /* taken so far; counted by box_sink_write() */
};
bool box_sink_write(struct box_sink *sink, tide_text piece);
void box_sink_done(struct box_sink *sink); /* one that was never opened is fine */

struct box_request {
    box_verb verb;
    tide_text target; /* raw, as on the request line: path, '?', query */
    const struct box_header *headers;
    size_t headers_count;
    tide_text body;
    const struct box_sink *sink; /* took the body instead; NULL: `body` is whole */
    tide_text origin;            /* "http://127.0.0.1:4443", for links in answers */
};

/* The first header with that name, case aside; {NULL, 0} when there is none. */
tide_text box_request_header(const struct box_request *request, const char *name);

/* ---- what happens to an answer on the wire ---- */

typedef enum box_fate {
    BOX_FATE_WHOLE,    /* arrives */
    BOX_FATE_STALL,    /* stops at `fate_at` and stays silent for stall_ms, then closes */
    BOX_FATE_RESET,    /* the connection is reset at `fate_at` */
    BOX_FATE_TRUNCATE, /* the connection closes properly in the middle of the body */
} box_fate;

typedef enum box_place { BOX_AT_START, BOX_IN_HEAD, BOX_IN_BODY } box_place;

struct box_plan {
    uint32_t delay_ms; /* until the first byte */
    box_fate fate;
    box_place fate_at;
    uint32_t stall_ms;
    uint32_t bytes_per_s; /* a trickle; 0: as fast as it goes */
    uint32_t held_by;     /* a rule of faults: nothing is sent while it stands; 0: none */
};

/* What a call in flight holds until box_cloud_finished(). */
struct box_ticket {
    uint32_t user;  /* 1-based; 0: none */
    uint32_t slots; /* calls, each part of a batch being one */
};

/* Gives an answer body piece by piece, any piece at any time, so that a body may be
 * larger than memory: a function of `arg` and the offset alone. */
struct box_source {
    uint64_t bytes; /* of the body */
    void (*read)(void *arg, uint64_t at, char *out, size_t count);
    void (*done)(void *arg); /* NULL: nothing to free */
    void *arg;
};

struct box_answer {
    int status;
    char type[64]; /* Content-Type */
    struct {
        char name[32];
        char value[2048]; /* a redirect carries state, code and scopes */
    } headers[BOX_ANSWER_HEADERS_MAX];
    size_t headers_count;
    tide_buf body;
    struct box_source source; /* instead of `body`, unless .read is NULL */
    struct box_plan plan;
    struct box_ticket ticket;
    /* A provisional answer: whoever sends it asks until this is true, under the lock of the cloud, and it
     * may replace the answer meanwhile.  NULL: it is final. */
    bool (*settle)(void *arg, uint64_t id, struct box_answer *answer);
    void *settle_arg;
    uint64_t settle_id;
};

void box_answer_init(struct box_answer *answer);
void box_answer_done(struct box_answer *answer);
/* Back to an empty 200, keeping plan and ticket. */
void box_answer_clear(struct box_answer *answer);
void box_answer_header(struct box_answer *answer, const char *name, const char *value);
/* The body comes from `source`, whose done() is called once, at the latest by
 * box_answer_done().  NULL: back to an empty buffer. */
void box_answer_source(struct box_answer *answer, const struct box_source *source);
uint64_t box_answer_bytes(const struct box_answer *answer); /* of the body */

/* ---- writing; a failed append asserts, since the limits are checked before ---- */

void box_add(tide_buf *out, const void *bytes, size_t count);
void box_add_cstr(tide_buf *out, const char *text);
void box_print(tide_buf *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A JSON string in quotes; bytes that are not UTF-8 become U+FFFD. */
void box_add_json_text(tide_buf *out, tide_text text);
/* A jansson string of any bytes, those that are not UTF-8 replaced. */
json_t *box_json_text(tide_text text);
/* Base64url with padding, as Gmail sends it.  Fast: this is the inner loop of
 * messages.get. */
void box_add_base64url(tide_buf *out, tide_text bytes);
void box_add_base64(tide_buf *out, tide_text bytes);
/* Either alphabet, padding optional, line ends skipped.  false: not base64. */
bool box_base64_decode(tide_text text, tide_buf *out);
/* For jansson's dumps: 0.9 reads 0.9 and not 0.90000000000000002. */
#define BOX_JSON_REALS JSON_REAL_PRECISION(15)
/* A body from a jansson value, which is taken; `pretty` as Google's default. */
void box_answer_json(struct box_answer *answer, int status, json_t *value, bool pretty);

/* ---- reading text ---- */

#define BOX_BLANKS "\t "
#define BOX_SPACES "\t\n\v\f\r "
/* Whether it is that word, or starts with it; upper and lower case are the same. */
bool box_is(tide_text text, const char *word);
bool box_starts(tide_text text, const char *word);
/* Without the characters of `set` at both ends. */
tide_text box_trim(tide_text text, const char *set);
/* Takes the next line off the front, without its CRLF or LF; false at the end. */
bool box_line_next(tide_text *rest, tide_text *line_out);

/* ---- reading a target ---- */

struct box_param {
    tide_text name;
    tide_text value; /* decoded, in the arena */
};

struct box_target {
    tide_text path;                       /* raw */
    tide_text segments[BOX_SEGMENTS_MAX]; /* decoded, between the slashes */
    size_t segments_count;
    struct box_param params[BOX_PARAMS_MAX];
    size_t params_count;
};

/* Splits and decodes; a segment may contain a decoded '/'.  false: too long,
 * too many pieces, or a broken %-escape: answer 400. */
bool box_target_parse(tide_text raw, tide_arena *arena, struct box_target *target_out);
/* name=value&... as in a query or a form body. */
bool box_params_parse(tide_text raw, tide_arena *arena, struct box_param *params,
                      size_t *count_out);
/* The first of that name; data == NULL when absent. */
tide_text box_param(const struct box_param *params, size_t count, const char *name);

#endif
