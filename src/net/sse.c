#include "net/sse.h"

#include <stdio.h>
#include <string.h>

enum { FIELD_BYTES = 16 }; /* "data: " */

void tide_sse_init(struct tide_sse *self, size_t event_bytes_max, tide_sse_visit *visit, void *arg,
                   tide_mem *mem)
{
    *self = (struct tide_sse){.visit = visit, .arg = arg};
    tide_buf_init(&self->line, mem, event_bytes_max + FIELD_BYTES);
    tide_buf_init(&self->data, mem, event_bytes_max);
}

void tide_sse_done(struct tide_sse *self)
{
    tide_buf_done(&self->line);
    tide_buf_done(&self->data);
}

/* ---- lines ---- */

static tide_status event_end(struct tide_sse *self)
{
    tide_status rc = TIDE_OK;
    if (self->has_data) {
        self->events++;
        rc = self->visit(self->arg, self->name, tide_buf_text(&self->data));
    }
    self->has_data = false;
    self->name[0] = '\0';
    tide_buf_rest(&self->data);
    return rc;
}

static tide_status data_add(struct tide_sse *self, tide_text value)
{
    tide_status rc = self->has_data ? tide_buf_add(&self->data, "\n", 1) : TIDE_OK;
    self->has_data = true;
    return rc == TIDE_OK ? tide_buf_add(&self->data, value.data, value.bytes) : rc;
}

static bool field_is(tide_text line, const char *name, tide_text *value_out)
{
    const size_t bytes = strlen(name);
    if (line.bytes < bytes || memcmp(line.data, name, bytes) != 0)
        return false;
    if (line.bytes > bytes && line.data[bytes] != ':')
        return false;
    size_t at = line.bytes > bytes ? bytes + 1 : bytes;
    at += at < line.bytes && line.data[at] == ' ' ? 1 : 0;
    *value_out = (tide_text){line.data + at, line.bytes - at};
    return true;
}

static tide_status line_take(struct tide_sse *self, tide_text line)
{
    tide_text value = TIDE_TEXT_NONE;
    if (!self->begun && line.bytes >= 3 && memcmp(line.data, "\xef\xbb\xbf", 3) == 0)
        line = (tide_text){line.data + 3, line.bytes - 3};
    self->begun = true;
    if (line.bytes == 0)
        return event_end(self);
    if (field_is(line, "data", &value))
        return data_add(self, value);
    if (field_is(line, "event", &value))
        (void)snprintf(self->name, sizeof self->name, "%.*s",
                       (int)(value.bytes < sizeof self->name ? value.bytes : sizeof self->name - 1),
                       value.bytes == 0 ? "" : value.data);
    return TIDE_OK;
}

/* ---- bytes ---- */

/* A line that is whole in `bytes` is not copied. */
static tide_status line_bytes(struct tide_sse *self, const char *bytes, size_t count, bool ends)
{
    if (count > self->line.bytes_max - self->line.bytes) /* SSE1: also of one that is not copied */
        return TIDE_FULL;
    if (ends && self->line.bytes == 0)
        return line_take(self, (tide_text){bytes, count});
    TIDE_TRY(tide_buf_add(&self->line, bytes, count));
    if (!ends)
        return TIDE_OK;
    const tide_status rc = line_take(self, tide_buf_text(&self->line));
    tide_buf_rest(&self->line);
    return rc;
}

static size_t line_length(const char *bytes, size_t count)
{
    size_t length = 0;
    while (length < count && bytes[length] != '\n' && bytes[length] != '\r')
        length++;
    return length;
}

tide_status tide_sse_write(struct tide_sse *self, const char *bytes, size_t count)
{
    size_t at = 0;
    while (self->failed == TIDE_OK && at < count) {
        if (self->after_cr && bytes[at] == '\n') {
            self->after_cr = false;
            at++;
            continue;
        }
        self->after_cr = false;
        const size_t length = line_length(bytes + at, count - at);
        const bool ends = at + length < count;
        self->failed = line_bytes(self, bytes + at, length, ends);
        self->after_cr = ends && bytes[at + length] == '\r';
        at += length + (ends ? 1 : 0);
    }
    return self->failed;
}
