#include "net/batch/multipart.h"

#include "world/world.h"

#include <string.h>
#include <strings.h>

/* Where the next byte belongs. */
enum place {
    BEFORE, /* the first boundary */
    BORDER, /* after a boundary: the end of its line, or the closing dashes */
    OUTER,  /* the part's own headers */
    STATUS, /* "HTTP/1.1 200 OK" */
    INNER,  /* the headers of the answer inside */
    BODY,
    BEHIND, /* the last boundary */
};

typedef struct tide_multipart {
    tide_mem *mem;
    struct tide_batch_events events;
    /* CR LF -- and the boundary: it separates a body from the next head.  The first boundary has
     * nothing in front of it, so reading begins as if after a CR LF. */
    char delimiter[TIDE_MULTIPART_BOUNDARY_MAX + 4];
    size_t delimiter_bytes;
    size_t matched; /* bytes of the delimiter matched at the end of the input so far */
    enum place place;
    tide_buf line;  /* the current line of a head */
    tide_buf inner; /* the headers of the answer inside, as far as there is room */
    char id[256];
    int http;
    bool open; /* on_part was called and on_end was not */
    tide_status failed;
} tide_multipart;

/* ---- the request ---- */

static tide_status write_request(const struct tide_batch_part *parts, unsigned count,
                                 const char *boundary, tide_buf *type_out, tide_buf *body_out)
{
    TIDE_TRY(tide_buf_print(type_out, "multipart/mixed; boundary=%s", boundary));
    for (unsigned i = 0; i < count; i++) {
        TIDE_TRY(
            tide_buf_print(body_out,
                           "--%s\r\nContent-Type: application/http\r\nContent-ID: <q%u>\r\n\r\n"
                           "%s %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n",
                           boundary, i, parts[i].verb, parts[i].path, parts[i].body.bytes));
        for (size_t j = 0; j < parts[i].headers_count; j++)
            TIDE_TRY(tide_buf_print(body_out, "%.*s: %.*s\r\n", (int)parts[i].headers[j].name.bytes,
                                    parts[i].headers[j].name.data,
                                    (int)parts[i].headers[j].value.bytes,
                                    parts[i].headers[j].value.data));
        TIDE_TRY(tide_buf_add_text(body_out, "\r\n"));
        TIDE_TRY(tide_buf_add(body_out, parts[i].body.data, parts[i].body.bytes));
        TIDE_TRY(tide_buf_add_text(body_out, "\r\n"));
    }
    return tide_buf_print(body_out, "--%s--\r\n", boundary);
}

/* ---- create and free ---- */

/* The value of boundary= in a Content-Type, quoted or not. */
static tide_text boundary_of(tide_text type)
{
    static const char name[] = "boundary=";
    for (size_t i = 0; i + sizeof name - 1 <= type.bytes; i++) {
        if (strncasecmp(type.data + i, name, sizeof name - 1) != 0)
            continue;
        const char *value = type.data + i + sizeof name - 1;
        size_t left = type.bytes - i - (sizeof name - 1);
        const bool quoted = left > 0 && *value == '"';
        value += quoted ? 1 : 0;
        left -= quoted ? 1 : 0;
        size_t bytes = 0;
        while (bytes < left &&
               (quoted ? value[bytes] != '"' : strchr("; \t", value[bytes]) == NULL))
            bytes++;
        return (tide_text){value, bytes};
    }
    return TIDE_TEXT_NONE;
}

static tide_status reader_new(tide_text type, const struct tide_batch_events *events, tide_mem *mem,
                              void **reader_out, tide_error *err)
{
    const tide_text boundary = boundary_of(type);
    if (boundary.bytes == 0 || boundary.bytes > TIDE_MULTIPART_BOUNDARY_MAX)
        return tide_error_set(err, TIDE_SERVER, "the answer to a batch names no boundary");
    tide_multipart *self = tide_mem_new(mem, sizeof *self);
    if (self == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for a batch");
    self->mem = mem;
    self->events = *events;
    memcpy(self->delimiter, "\r\n--", 4);
    memcpy(self->delimiter + 4, boundary.data, boundary.bytes);
    self->delimiter_bytes = 4 + boundary.bytes;
    self->matched = 2;
    tide_buf_init(&self->line, mem, TIDE_MULTIPART_HEAD_MAX);
    tide_buf_init(&self->inner, mem, TIDE_MULTIPART_HEAD_MAX);
    *reader_out = self;
    return TIDE_OK;
}

static void reader_free(void *reader)
{
    tide_multipart *self = reader;
    if (self == NULL)
        return;
    tide_buf_done(&self->line);
    tide_buf_done(&self->inner);
    tide_mem_free(self->mem, self, sizeof *self);
}

/* ---- heads ---- */

static tide_text trimmed(tide_text text)
{
    while (text.bytes > 0 && (text.data[0] == ' ' || text.data[0] == '\t')) {
        text.data++;
        text.bytes--;
    }
    while (text.bytes > 0 && strchr(" \t\r", text.data[text.bytes - 1]) != NULL)
        text.bytes--;
    return text;
}

/* <response-q1> and response-q1 are q1; an id that does not fit matches no caller. */
static void take_id(tide_multipart *self, tide_text value)
{
    static const char prefix[] = "response-";
    if (value.bytes >= 2 && value.data[0] == '<' && value.data[value.bytes - 1] == '>')
        value = (tide_text){value.data + 1, value.bytes - 2};
    if (value.bytes >= sizeof prefix - 1 && strncmp(value.data, prefix, sizeof prefix - 1) == 0)
        value = (tide_text){value.data + sizeof prefix - 1, value.bytes - (sizeof prefix - 1)};
    if (value.bytes >= sizeof self->id)
        return;
    memcpy(self->id, value.data, value.bytes);
    self->id[value.bytes] = '\0';
}

static void outer_header(tide_multipart *self, tide_text line)
{
    static const char name[] = "content-id:";
    if (line.bytes > sizeof name - 1 && strncasecmp(line.data, name, sizeof name - 1) == 0)
        take_id(self,
                trimmed((tide_text){line.data + sizeof name - 1, line.bytes - (sizeof name - 1)}));
}

/* Keeps a header of the answer inside.  One that does not fit is dropped: a part with a long head
 * is still an answer. */
static void inner_header(tide_multipart *self, tide_text line)
{
    const size_t bytes = self->inner.bytes;
    if (tide_buf_add(&self->inner, line.data, line.bytes) != TIDE_OK ||
        tide_buf_add(&self->inner, "\n", 1) != TIDE_OK)
        self->inner.bytes = bytes;
}

/* The kept headers, as name and value. */
static size_t inner_headers(const tide_multipart *self,
                            struct tide_header headers[TIDE_RESPONSE_HEADERS_MAX])
{
    tide_text rest = tide_buf_text(&self->inner);
    size_t count = 0;
    while (rest.bytes > 0 && count < TIDE_RESPONSE_HEADERS_MAX) {
        const char *end = memchr(rest.data, '\n', rest.bytes);
        const size_t bytes = (size_t)(end - rest.data); /* each kept line has its end */
        const char *colon = memchr(rest.data, ':', bytes);
        if (colon != NULL) {
            const size_t name = (size_t)(colon - rest.data);
            headers[count].name = trimmed((tide_text){rest.data, name});
            headers[count++].value = trimmed((tide_text){colon + 1, bytes - name - 1});
        }
        rest = (tide_text){end + 1, rest.bytes - bytes - 1};
    }
    return count;
}

/* "HTTP/1.1 200 OK" */
static tide_status status_line(tide_multipart *self, tide_text line)
{
    const char *space = memchr(line.data, ' ', line.bytes);
    const size_t at = space == NULL ? 0 : (size_t)(space - line.data) + 1;
    if (line.bytes < 5 || strncasecmp(line.data, "HTTP/", 5) != 0 || at == 0 || line.bytes < at + 3)
        return TIDE_SERVER;
    int http = 0;
    for (size_t i = at; i < at + 3; i++) {
        if (line.data[i] < '0' || line.data[i] > '9')
            return TIDE_SERVER;
        http = http * 10 + (line.data[i] - '0');
    }
    self->http = http;
    return TIDE_OK;
}

static tide_status head_line(tide_multipart *self)
{
    const tide_text line = trimmed(tide_buf_text(&self->line));
    tide_status rc = TIDE_OK;
    if (self->place == OUTER) {
        if (line.bytes == 0)
            self->place = STATUS;
        else
            outer_header(self, line);
    } else if (self->place == STATUS) {
        /* Some servers leave an empty line before it. */
        if (line.bytes > 0) {
            rc = status_line(self, line);
            self->place = INNER;
        }
    } else if (line.bytes == 0) {
        self->place = BODY;
        self->open = true;
        rc = self->events.on_part(self->events.arg, tide_text_of(self->id), self->http);
    } else {
        inner_header(self, line);
    }
    tide_buf_clear(&self->line);
    return rc;
}

/* ---- borders ---- */

static tide_status part_ended(tide_multipart *self, bool whole)
{
    if (!self->open)
        return TIDE_OK;
    struct tide_header headers[TIDE_RESPONSE_HEADERS_MAX];
    self->open = false;
    const size_t count = inner_headers(self, headers);
    return self->events.on_end(self->events.arg, whole, headers, count);
}

/* The delimiter is complete.  Its CR LF may be the empty line that ended a head: then the answer
 * has no body.  A head that is cut off earlier is a part without an answer. */
static tide_status border(tide_multipart *self)
{
    tide_status rc = TIDE_OK;
    if (self->place == INNER) {
        self->open = true;
        rc = self->events.on_part(self->events.arg, tide_text_of(self->id), self->http);
    }
    if (rc == TIDE_OK)
        rc = part_ended(self, /* whole= */ true);
    self->matched = 0;
    self->place = BORDER;
    self->id[0] = '\0';
    self->http = 0;
    tide_buf_clear(&self->line);
    tide_buf_clear(&self->inner);
    return rc;
}

/* After the boundary: "--" closes, the end of the line begins a part. */
static void border_byte(tide_multipart *self, char byte)
{
    if (byte == '\n') {
        self->place = OUTER;
        tide_buf_clear(&self->line);
        return;
    }
    (void)tide_buf_add(&self->line, &byte, 1);
    const tide_text seen = tide_buf_text(&self->line);
    if (seen.bytes == 2 && memcmp(seen.data, "--", 2) == 0)
        self->place = BEHIND;
}

/* ---- bytes ---- */

static tide_status plain(tide_multipart *self, const char *bytes, size_t count)
{
    tide_status rc = TIDE_OK;
    if (count == 0)
        return TIDE_OK;
    if (self->place == BODY)
        return self->events.on_bytes(self->events.arg, bytes, count);
    if (self->place == BEFORE || self->place == BEHIND)
        return TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < count; i++) {
        if (self->place == BORDER)
            border_byte(self, bytes[i]);
        else if (self->place == BODY)
            return self->events.on_bytes(self->events.arg, bytes + i, count - i);
        else if (self->place == BEHIND)
            return TIDE_OK;
        else if (bytes[i] == '\n')
            rc = head_line(self);
        else
            rc = tide_buf_add(&self->line, &bytes[i], 1);
    }
    return rc == TIDE_FULL ? TIDE_SERVER : rc;
}

/* Passes on bytes that looked like the beginning of a delimiter but were not.  A delimiter
 * begins with its only CR, so nothing within the matched bytes can begin another one. */
static tide_status release(tide_multipart *self)
{
    char held[sizeof self->delimiter];
    const size_t count = self->matched;
    /* At the very beginning the first two bytes (CR LF) were assumed, not read. */
    const size_t imagined = self->place == BEFORE ? 2 : 0;
    memcpy(held, self->delimiter, count);
    self->matched = 0;
    return count <= imagined ? TIDE_OK : plain(self, held + imagined, count - imagined);
}

static tide_status take(tide_multipart *self, const char *bytes, size_t count)
{
    size_t i = 0;
    tide_status rc = TIDE_OK;
    while (rc == TIDE_OK && i < count) {
        if (self->matched == 0) {
            const char *cr = memchr(bytes + i, '\r', count - i);
            const size_t run = cr == NULL ? count - i : (size_t)(cr - (bytes + i));
            rc = plain(self, bytes + i, run);
            i += run;
            if (cr != NULL) {
                self->matched = 1;
                i++;
            }
        } else if (bytes[i] == self->delimiter[self->matched]) {
            self->matched++;
            i++;
            if (self->matched == self->delimiter_bytes)
                rc = border(self);
        } else {
            rc = release(self); /* and examine this byte again */
        }
    }
    return rc;
}

static tide_status reader_write(void *reader, const char *bytes, size_t count)
{
    tide_multipart *self = reader;
    if (self->failed == TIDE_OK)
        self->failed = take(self, bytes, count);
    return self->failed;
}

static tide_status reader_end(void *reader, tide_error *err)
{
    tide_multipart *self = reader;
    const tide_status ended = part_ended(self, /* whole= */ false);
    if (self->failed == TIDE_OK && ended != TIDE_OK)
        self->failed = ended;
    if (self->failed == TIDE_OK && self->place != BEHIND)
        return tide_error_set(err, TIDE_SERVER, "the answer to a batch is cut off");
    if (self->failed != TIDE_OK)
        return tide_error_set(err, self->failed, "the answer to a batch is malformed");
    return TIDE_OK;
}

const struct tide_batch_format tide_batch_multipart = {
    .parts_max = 100,
    .write = write_request,
    .reader_new = reader_new,
    .reader_write = reader_write,
    .reader_end = reader_end,
    .reader_free = reader_free,
};
