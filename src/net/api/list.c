#include "net/api/list.h"

#include "base/check.h"

#include <string.h>

void tide_api_list_init(struct tide_api_list *self, const char *name, size_t element_bytes_max,
                        tide_api_element_visit *visit, void *arg, tide_mem *mem)
{
    TIDE_ASSERT(strlen(name) < sizeof self->key);
    *self = (struct tide_api_list){.name = name, .visit = visit, .arg = arg};
    tide_buf_init(&self->element, mem, element_bytes_max);
    tide_buf_init(&self->rest, mem, TIDE_API_LIST_REST_BYTES_MAX);
}

void tide_api_list_init_text(struct tide_api_list *self, const char *name, size_t element_bytes_max,
                             tide_api_element_text *text, void *arg, tide_mem *mem)
{
    tide_api_list_init(self, name, element_bytes_max, NULL, arg, mem);
    self->text = text;
}

void tide_api_list_done(struct tide_api_list *self)
{
    tide_buf_done(&self->element);
    tide_buf_done(&self->rest);
}

void tide_api_list_restart(void *arg)
{
    struct tide_api_list *self = arg;
    const struct tide_api_list old = *self;
    *self = (struct tide_api_list){.name = old.name,
                                   .visit = old.visit,
                                   .text = old.text,
                                   .arg = old.arg,
                                   .optional = old.optional,
                                   .element = old.element,
                                   .rest = old.rest};
    tide_buf_rest(&self->element);
    tide_buf_clear(&self->rest);
}

static tide_status fail(struct tide_api_list *self, tide_status rc, const char *why)
{
    self->failed = rc;
    self->wrong = why;
    return rc;
}

/* ---- elements ---- */

/* Scans inside an element; returns how many bytes belong to it. */
static size_t element_part(struct tide_api_list *self, const char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char byte = bytes[i];
        if (self->escaped) {
            self->escaped = false;
        } else if (self->in_string) {
            self->escaped = byte == '\\';
            self->in_string = byte != '"';
        } else if (byte == '"') {
            self->in_string = true;
        } else if (byte == '{' || byte == '[') {
            self->element_depth++;
        } else if ((byte == '}' || byte == ']') && --self->element_depth == 0) {
            self->in_element = false;
            return i + 1;
        }
    }
    return count;
}

static tide_status element_parse(struct tide_api_list *self, tide_text text)
{
    json_t *element = NULL;
    tide_status rc = tide_json_parse(text, &element, NULL);
    if (rc == TIDE_NO_MEMORY)
        return fail(self, rc, "no memory for an element of the list");
    if (rc != TIDE_OK || !json_is_object(element)) {
        json_decref(element);
        return fail(self, TIDE_SERVER, "an element of the list is malformed");
    }
    rc = self->visit(self->arg, element);
    json_decref(element);
    return rc;
}

static tide_status element_give(struct tide_api_list *self, tide_text text)
{
    self->elements++;
    const tide_status rc =
        self->text != NULL ? self->text(self->arg, text) : element_parse(self, text);
    if (rc != TIDE_OK && self->failed == TIDE_OK)
        return fail(self, rc, "an element of the list was not accepted");
    return rc;
}

/* Takes bytes of an element.  One that is whole in `bytes` is not copied. */
static tide_status element_bytes(struct tide_api_list *self, const char *bytes, size_t count,
                                 size_t *used_out)
{
    const size_t part = element_part(self, bytes, count);
    *used_out = part;
    if (part > self->element.bytes_max - self->element.bytes)
        return fail(self, TIDE_SERVER, "an element of the list is too long");
    if ((self->in_element || self->element.bytes > 0) &&
        tide_buf_add(&self->element, bytes, part) != TIDE_OK)
        return fail(self, TIDE_NO_MEMORY, "no memory for an element of the list");
    if (self->in_element)
        return TIDE_OK;
    const tide_text whole =
        self->element.bytes > 0 ? tide_buf_text(&self->element) : (tide_text){bytes, part};
    const tide_status rc = element_give(self, whole);
    tide_buf_rest(&self->element);
    self->want_comma = true;
    self->comma = false;
    return rc;
}

/* One byte of the list, between elements; *taken_out: false: it begins an element. */
static tide_status between(struct tide_api_list *self, char byte, bool *taken_out)
{
    *taken_out = true;
    if (byte == '{' && !self->want_comma) {
        self->in_element = true;
        self->element_depth = 0;
        *taken_out = false;
    } else if (byte == ',' && self->want_comma) {
        self->want_comma = false;
        self->comma = true;
    } else if (byte == ']' && !self->comma) {
        self->in_list = false;
    } else if (byte != ' ' && byte != '\t' && byte != '\r' && byte != '\n') {
        return fail(self, TIDE_SERVER, "the list is malformed");
    }
    return TIDE_OK;
}

/* ---- the rest ---- */

static tide_status rest_add(struct tide_api_list *self, char byte)
{
    const tide_status rc = tide_buf_add(&self->rest, &byte, 1);
    if (rc == TIDE_NO_MEMORY)
        return fail(self, rc, "no memory for an answer");
    return rc == TIDE_OK ? rc : fail(self, TIDE_SERVER, "the answer is too long");
}

/* A byte within a string outside of the list: keys are remembered. */
static void string_byte(struct tide_api_list *self, char byte)
{
    if (self->escaped) {
        self->escaped = false;
    } else if (byte == '\\') {
        self->escaped = true;
    } else if (byte == '"') {
        self->in_string = false;
        return;
    }
    if (self->key_bytes < sizeof self->key)
        self->key[self->key_bytes] = byte;
    self->key_bytes++;
}

static tide_status list_begin(struct tide_api_list *self)
{
    if (self->list_seen)
        return fail(self, TIDE_SERVER, "the list occurs twice");
    self->list_seen = true;
    self->list_next = false;
    self->in_list = true;
    self->want_comma = false;
    self->comma = false;
    return rest_add(self, ']');
}

/* One byte outside of the list: copied, and examined for the list's name. */
static tide_status rest_byte(struct tide_api_list *self, char byte)
{
    TIDE_TRY(rest_add(self, byte));
    if (self->in_string) {
        string_byte(self, byte);
        return TIDE_OK;
    }
    const bool blank = byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';
    if (byte == '[' && self->list_next)
        return list_begin(self);
    if (byte == ':')
        self->list_next = self->depth == 1 && self->key_bytes == strlen(self->name) &&
                          memcmp(self->key, self->name, self->key_bytes) == 0;
    else if (!blank)
        self->list_next = false;
    if (byte == '"') {
        self->in_string = true;
        self->key_bytes = 0;
    } else if (byte == '{' || byte == '[') {
        if (++self->depth > TIDE_API_LIST_DEPTH_MAX)
            return fail(self, TIDE_SERVER, "the answer is nested too deep");
    } else if (byte == '}' || byte == ']') {
        if (self->depth-- == 0)
            return fail(self, TIDE_SERVER, "the answer is not a JSON object");
    }
    return TIDE_OK;
}

/* ---- all of it ---- */

tide_status tide_api_list_write(void *arg, const char *bytes, size_t count)
{
    struct tide_api_list *self = arg;
    size_t i = 0;
    while (self->failed == TIDE_OK && i < count) {
        size_t used = 1;
        bool taken = true;
        if (!self->in_list)
            (void)rest_byte(self, bytes[i]);
        else if (self->in_element)
            (void)element_bytes(self, bytes + i, count - i, &used);
        else
            (void)between(self, bytes[i], &taken);
        i += taken ? used : 0;
    }
    return self->failed;
}

tide_status tide_api_list_end(struct tide_api_list *self, json_t **rest_out, tide_error *err)
{
    json_t *rest = NULL;
    if (self->failed == TIDE_OK && self->in_list)
        (void)fail(self, TIDE_SERVER, "the answer is cut off");
    if (self->failed == TIDE_OK) {
        const tide_status rc = tide_json_parse(tide_buf_text(&self->rest), &rest, NULL);
        if (rc == TIDE_NO_MEMORY)
            (void)fail(self, rc, "no memory for an answer");
        else if (rc != TIDE_OK || !json_is_object(rest))
            (void)fail(self, TIDE_SERVER, "the answer is not a JSON object");
        /* A name with escapes was not recognized: its elements must not be taken for none. */
        else if ((!self->list_seen && !self->optional) ||
                 json_array_size(json_object_get(rest, self->name)) != 0)
            (void)fail(self, TIDE_SERVER, "the answer has no list");
    }
    if (self->failed != TIDE_OK) {
        json_decref(rest);
        return tide_error_set(err, self->failed, "%s", self->wrong);
    }
    *rest_out = rest;
    return TIDE_OK;
}
