#include "cloud/chat/intake.h"

#include "base/check.h"
#include "net/judge_chat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WHOLE_BYTES_MORE = 256 << 10, /* of an object, beside its texts */
    ESCAPED = 4,                  /* how much longer a text is as JSON, at most as a rule */
    TOKENS_BELIEVED_MAX = 100000000,
    SHOWN_BYTES_MAX = 200,
};

void tide_chat_intake_init(struct tide_chat_intake *self, const struct tide_chat_reader *reader,
                           size_t bytes_max, tide_mem *mem)
{
    *self = (struct tide_chat_intake){
        .reader = reader, .mem = mem, .bytes_max = bytes_max, .stop = TIDE_CHAT_STOP_OTHER};
}

static void blocks_done(struct tide_chat_intake *self)
{
    for (size_t i = 0; i < self->blocks_count; i++) {
        tide_buf_done(&self->blocks[i].text);
        tide_buf_done(&self->blocks[i].id);
        tide_buf_done(&self->blocks[i].name);
        json_decref(self->blocks[i].value);
    }
    tide_mem_free(self->mem, self->blocks, self->blocks_capacity * sizeof *self->blocks);
}

void tide_chat_intake_done(struct tide_chat_intake *self)
{
    blocks_done(self);
    tide_sse_done(&self->sse);
    tide_buf_done(&self->whole);
    tide_chat_intake_init(self, self->reader, self->bytes_max, self->mem);
}

void tide_chat_intake_restart(void *arg)
{
    tide_chat_intake_done(arg);
}

/* ---- failures ---- */

void tide_chat_intake_fail(struct tide_chat_intake *self, tide_status status, const char *format,
                           ...)
{
    if (self->failed != TIDE_OK) /* ITK2 */
        return;
    char text[SHOWN_BYTES_MAX];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    self->failed = tide_error_set(&self->wrong, status, "%s", text);
}

void tide_chat_intake_refused(struct tide_chat_intake *self, const json_t *value)
{
    if (self->failed != TIDE_OK)
        return;
    char *text = json_dumps(value, JSON_COMPACT);
    if (text == NULL) {
        tide_chat_intake_fail(self, TIDE_NO_MEMORY, "no memory for an answer");
        return;
    }
    self->failed = tide_chat_judge_event(tide_text_of(text), &self->wrong);
    free(text);
}

static void too_long(struct tide_chat_intake *self)
{
    tide_chat_intake_fail(self, TIDE_SERVER, "the answer of the model is longer than %zu bytes",
                          self->bytes_max);
}

/* ---- blocks ---- */

struct tide_chat_block *tide_chat_block_new(struct tide_chat_intake *self, tide_chat_part_kind kind,
                                            uint64_t index)
{
    if (self->failed != TIDE_OK)
        return NULL;
    if (self->blocks_count == TIDE_CHAT_PARTS_MAX) {
        tide_chat_intake_fail(self, TIDE_SERVER, "the answer of the model has more than %d parts",
                              TIDE_CHAT_PARTS_MAX);
        return NULL;
    }
    if (kind == TIDE_CHAT_CALL && self->calls == TIDE_CHAT_CALLS_MAX) {
        tide_chat_intake_fail(self, TIDE_SERVER, "the model calls more than %d tools at once",
                              TIDE_CHAT_CALLS_MAX);
        return NULL;
    }
    if (!TIDE_GROW_IN(self->mem, self->blocks, self->blocks_capacity, self->blocks_count + 1,
                      TIDE_CHAT_PARTS_MAX)) {
        tide_chat_intake_fail(self, TIDE_NO_MEMORY, "no memory for an answer");
        return NULL;
    }
    struct tide_chat_block *block = &self->blocks[self->blocks_count++];
    *block = (struct tide_chat_block){.kind = kind, .index = index};
    self->calls += kind == TIDE_CHAT_CALL ? 1 : 0;
    tide_buf_init(&block->text, self->mem, self->bytes_max);
    tide_buf_init(&block->id, self->mem, TIDE_CHAT_ID_BYTES_MAX);
    tide_buf_init(&block->name, self->mem, TIDE_CHAT_ID_BYTES_MAX);
    return block;
}

struct tide_chat_block *tide_chat_block_at(struct tide_chat_intake *self, uint64_t index)
{
    for (size_t i = self->blocks_count; i > 0; i--)
        if (self->blocks[i - 1].index == index)
            return &self->blocks[i - 1];
    return NULL;
}

void tide_chat_intake_add(struct tide_chat_intake *self, tide_buf *to, const json_t *text)
{
    const size_t bytes = json_string_length(text);
    if (!json_is_string(text) || self->failed != TIDE_OK || bytes == 0)
        return;
    if (bytes > self->bytes_max - self->bytes_kept) { /* CHT2 */
        too_long(self);
        return;
    }
    const tide_status rc = tide_buf_add(to, json_string_value(text), bytes);
    if (rc == TIDE_FULL) /* an id or a name */
        tide_chat_intake_fail(self, TIDE_SERVER,
                              "the answer of the model has a name that is too long");
    else if (rc != TIDE_OK)
        tide_chat_intake_fail(self, rc, "no memory for an answer");
    self->bytes_kept += bytes;
}

void tide_chat_intake_text(struct tide_chat_intake *self, const json_t *text)
{
    if (!json_is_string(text) || json_string_length(text) == 0)
        return;
    struct tide_chat_block *block =
        self->blocks_count == 0 ? NULL : &self->blocks[self->blocks_count - 1];
    if (block == NULL || block->kind != TIDE_CHAT_TEXT)
        block = tide_chat_block_new(self, TIDE_CHAT_TEXT, UINT64_MAX);
    if (block != NULL)
        tide_chat_intake_add(self, &block->text, text);
}

struct tide_chat_block *tide_chat_block_opaque(struct tide_chat_intake *self, json_t *value,
                                               uint64_t index)
{
    /* What is not known cannot be cut: it counts with the whole event that brought it. */
    if (self->mode == TIDE_INTAKE_EVENTS && self->event_bytes > self->bytes_max - self->bytes_kept)
        too_long(self);
    struct tide_chat_block *block = tide_chat_block_new(self, TIDE_CHAT_OPAQUE, index);
    if (block == NULL)
        return NULL;
    self->bytes_kept += self->mode == TIDE_INTAKE_EVENTS ? self->event_bytes : 0;
    block->value = json_incref(value);
    return block;
}

/* Puts the text that grew into its field. */
static void opaque_settle(struct tide_chat_intake *self, struct tide_chat_block *block)
{
    if (block->field == NULL)
        return;
    json_t *text = json_stringn(tide_buf_cstr(&block->text), block->text.bytes);
    if (json_object_set_new(block->value, block->field, text) != 0)
        tide_chat_intake_fail(self, TIDE_NO_MEMORY, "no memory for an answer");
    tide_buf_clear(&block->text);
    block->field = NULL;
}

void tide_chat_opaque_add(struct tide_chat_intake *self, struct tide_chat_block *block,
                          const char *field, const json_t *text)
{
    enum { TURNS_MAX = 16 }; /* each copies the text */
    if (block->field == NULL || strcmp(block->field, field) != 0) {
        opaque_settle(self, block);
        const json_t *old = json_object_get(block->value, field);
        if (block->turns++ == TURNS_MAX) {
            block->lost = true;
            return;
        }
        block->field = field;
        if (json_is_string(old) &&
            tide_buf_add(&block->text, json_string_value(old), json_string_length(old)) != TIDE_OK)
            tide_chat_intake_fail(self, TIDE_NO_MEMORY, "no memory for an answer");
    }
    tide_chat_intake_add(self, &block->text, text);
}

void tide_chat_intake_tokens(const json_t *usage, const char *key, bool *known, uint64_t *tokens)
{
    uint64_t number = 0;
    if (tide_json_get_u64(usage, key, &number, NULL) != TIDE_OK || number > TOKENS_BELIEVED_MAX)
        return;
    *known = true;
    *tokens = number;
}

void tide_chat_intake_model(struct tide_chat_intake *self, const json_t *value)
{
    const char *model = json_string_value(json_object_get(value, "model"));
    if (model != NULL)
        (void)snprintf(self->model, sizeof self->model, "%.*s",
                       (int)tide_utf8_cut(tide_text_of(model), sizeof self->model - 1).bytes,
                       model);
}

/* ---- bytes ---- */

/* Whether "\\uXXXX" begins here, with a number from `low` to `high`. */
static bool is_escape(tide_text text, unsigned low, unsigned high)
{
    unsigned number = 0;
    if (text.bytes < 6 || text.data[0] != '\\' || text.data[1] != 'u')
        return false;
    for (size_t i = 2; i < 6; i++) {
        const char c = text.data[i];
        const unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                               : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
                               : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10
                                                      : 16;
        if (digit == 16)
            return false;
        number = number * 16 + digit;
    }
    return number >= low && number <= high;
}

/* How many bytes at the front are sound, an escape or a character; 0: a half of one, of which
 * *half_out bytes are to be replaced. */
static size_t sound_bytes(tide_text text, size_t *half_out)
{
    enum { ESCAPE_BYTES = 6 };
    const tide_text next = {text.data + ESCAPE_BYTES,
                            text.bytes > ESCAPE_BYTES ? text.bytes - ESCAPE_BYTES : 0};
    *half_out = 1;
    if (is_escape(text, 0xd800, 0xdbff) && is_escape(next, 0xdc00, 0xdfff))
        return 2 * (size_t)ESCAPE_BYTES;
    if (is_escape(text, 0xd800, 0xdfff)) {
        *half_out = ESCAPE_BYTES;
        return 0;
    }
    if (text.data[0] == '\\' && text.bytes > 1 && (unsigned char)text.data[1] < 0x80)
        return 2; /* so that the second of two backslashes begins no escape */
    return tide_utf8_bytes(text);
}

/* An event as JSON, repaired where a server cut a character in two, between two events: the halves
 * become U+FFFD. */
static tide_status event_parse(tide_text data, json_t **value_out)
{
    const tide_status rc = tide_json_parse(data, value_out, NULL);
    if (rc != TIDE_INVALID)
        return rc;
    tide_auto_buf clean = tide_buf_heap(3 * data.bytes + 1);
    while (data.bytes > 0) {
        size_t half = 0;
        size_t bytes = sound_bytes(data, &half);
        TIDE_TRY(bytes > 0 ? tide_buf_add(&clean, data.data, bytes)
                           : tide_buf_add_text(&clean, "\xef\xbf\xbd"));
        bytes = bytes > 0 ? bytes : half;
        data = (tide_text){data.data + bytes, data.bytes - bytes};
    }
    return tide_json_parse(tide_buf_text(&clean), value_out, NULL);
}

static tide_status on_event(void *arg, const char *name, tide_text data)
{
    struct tide_chat_intake *self = arg;
    json_t *value = NULL;
    (void)name; /* what it is stands in the data, too */
    if (self->over)
        return TIDE_OK; /* after the end: nothing that counts */
    if (self->reader->last != NULL && tide_text_equal(data, tide_text_of(self->reader->last))) {
        self->over = self->said;
        return TIDE_OK;
    }
    const tide_status rc = event_parse(data, &value);
    self->event_bytes = data.bytes;
    if (rc == TIDE_NO_MEMORY)
        tide_chat_intake_fail(self, rc, "no memory for an answer");
    else if (rc != TIDE_OK || !json_is_object(value))
        tide_chat_intake_fail(self, TIDE_SERVER, "an event of the answer is not a JSON object");
    else
        self->reader->event(self, value);
    json_decref(value);
    return self->failed;
}

static size_t event_bytes_max(const struct tide_chat_intake *self)
{
    return self->bytes_max * ESCAPED + WHOLE_BYTES_MORE;
}

/* The first byte that is not blank decides which kind of answer it is. */
static void begin(struct tide_chat_intake *self, char first)
{
    if (first == '{') {
        self->mode = TIDE_INTAKE_WHOLE;
        tide_buf_init(&self->whole, self->mem, event_bytes_max(self));
    } else {
        self->mode = TIDE_INTAKE_EVENTS;
        tide_sse_init(&self->sse, event_bytes_max(self), on_event, self, self->mem);
    }
}

tide_status tide_chat_intake_write(void *arg, const char *bytes, size_t count)
{
    struct tide_chat_intake *self = arg;
    while (count > 0 && self->mode == TIDE_INTAKE_BEGINS) {
        if (strchr(" \t\r\n", bytes[0]) == NULL || bytes[0] == '\0') {
            begin(self, bytes[0]);
        } else {
            bytes++;
            count--;
        }
    }
    if (count == 0 || self->failed != TIDE_OK)
        return self->failed;
    const tide_status rc = self->mode == TIDE_INTAKE_WHOLE
                               ? tide_buf_add(&self->whole, bytes, count)
                               : tide_sse_write(&self->sse, bytes, count);
    if (rc == TIDE_FULL)
        too_long(self);
    else if (rc != TIDE_OK)
        tide_chat_intake_fail(self, rc, "no memory for an answer");
    return self->failed;
}

/* ---- the end ---- */

static void whole_read(struct tide_chat_intake *self)
{
    json_t *value = NULL;
    const tide_status rc = event_parse(tide_buf_text(&self->whole), &value);
    if (rc == TIDE_NO_MEMORY)
        tide_chat_intake_fail(self, rc, "no memory for an answer");
    else if (rc != TIDE_OK)
        tide_chat_intake_fail(self, TIDE_SERVER, "the answer is not JSON, or it broke off");
    else
        self->reader->whole(self, value);
    json_decref(value);
}

/* Copies the text of a block into the answer; a failure is kept. */
static tide_text keep(struct tide_chat_intake *self, tide_arena *arena, tide_text text)
{
    char *copy = tide_arena_copy(arena, text.bytes == 0 ? "" : text.data, text.bytes);
    if (copy == NULL)
        tide_chat_intake_fail(self, TIDE_NO_MEMORY, "no memory for an answer");
    return (tide_text){copy == NULL ? "" : copy, copy == NULL ? 0 : text.bytes};
}

/* The arguments of a call.  Nothing at all means none; what is no object becomes {} (TLK2). */
static tide_text arguments_of(struct tide_chat_intake *self, const struct tide_chat_block *block,
                              tide_arena *arena, bool *invalid_out)
{
    const tide_text text = tide_buf_text(&block->text);
    json_t *value = NULL;
    tide_text kept = TIDE_TEXT("{}");
    if (text.bytes == 0)
        return kept;
    const tide_status rc = tide_json_parse(text, &value, NULL);
    if (rc == TIDE_NO_MEMORY)
        tide_chat_intake_fail(self, rc, "no memory for an answer");
    else if (rc == TIDE_OK && json_is_object(value))
        kept = keep(self, arena, text);
    else
        *invalid_out = true;
    json_decref(value);
    return kept;
}

static tide_text opaque_of(struct tide_chat_intake *self, struct tide_chat_block *block,
                           tide_arena *arena)
{
    opaque_settle(self, block);
    char *text = json_dumps(block->value, JSON_COMPACT);
    if (text == NULL)
        tide_chat_intake_fail(self, TIDE_NO_MEMORY, "no memory for an answer");
    const tide_text kept = keep(self, arena, tide_text_of(text));
    free(text);
    return kept;
}

/* The id of a call.  Servers that give none get back the number that it had. */
static tide_text id_of(struct tide_chat_intake *self, const struct tide_chat_block *block,
                       tide_arena *arena)
{
    char made[32];
    if (block->id.bytes > 0)
        return keep(self, arena, tide_buf_text(&block->id));
    (void)snprintf(made, sizeof made, "call_%zu", (size_t)(block - self->blocks) + 1);
    return keep(self, arena, tide_text_of(made));
}

static bool is_tool(const struct tide_chat_talk *talk, tide_text name)
{
    for (size_t i = 0; i < talk->tools_count; i++)
        if (tide_text_equal(talk->tools[i].name, name))
            return true;
    return false;
}

static struct tide_chat_part part_of(struct tide_chat_intake *self, struct tide_chat_block *block,
                                     const struct tide_chat_talk *talk, tide_arena *arena)
{
    struct tide_chat_part part = {.kind = block->kind};
    if (block->kind == TIDE_CHAT_OPAQUE) {
        part.text = opaque_of(self, block, arena);
    } else if (block->kind == TIDE_CHAT_TEXT) {
        part.text = keep(self, arena, tide_buf_text(&block->text));
    } else {
        if (block->name.bytes == 0)
            tide_chat_intake_fail(self, TIDE_SERVER, "the model calls a tool without a name");
        part.id = id_of(self, block, arena);
        part.name = keep(self, arena, tide_buf_text(&block->name));
        part.arguments = arguments_of(self, block, arena, &part.invalid);
        part.unknown = !is_tool(talk, part.name);
    }
    return part;
}

/* All texts, one after the other. */
static void text_join(struct tide_chat_intake *self, struct tide_chat_answer *answer)
{
    size_t bytes = 0;
    for (size_t i = 0; i < answer->message.parts_count; i++)
        if (answer->message.parts[i].kind == TIDE_CHAT_TEXT)
            bytes += answer->message.parts[i].text.bytes;
    char *text = tide_arena_take(&answer->arena, bytes + 1);
    if (text == NULL) {
        tide_chat_intake_fail(self, TIDE_NO_MEMORY, "no memory for an answer");
        return;
    }
    size_t at = 0;
    for (size_t i = 0; i < answer->message.parts_count; i++) {
        const struct tide_chat_part *part = &answer->message.parts[i];
        if (part->kind != TIDE_CHAT_TEXT)
            continue;
        memcpy(text + at, part->text.data, part->text.bytes);
        at += part->text.bytes;
    }
    answer->text = (tide_text){text, bytes};
}

static void parts_take(struct tide_chat_intake *self, const struct tide_chat_talk *talk,
                       struct tide_chat_answer *answer)
{
    struct tide_chat_part *parts =
        tide_arena_take(&answer->arena, (self->blocks_count + 1) * sizeof *parts);
    struct tide_chat_part *calls =
        tide_arena_take(&answer->arena, (self->calls + 1) * sizeof *calls);
    if (parts == NULL || calls == NULL) {
        tide_chat_intake_fail(self, TIDE_NO_MEMORY, "no memory for an answer");
        return;
    }
    size_t count = 0;
    for (size_t i = 0; self->failed == TIDE_OK && i < self->blocks_count; i++) {
        struct tide_chat_block *block = &self->blocks[i];
        if (block->lost || (block->kind == TIDE_CHAT_TEXT && block->text.bytes == 0))
            continue;
        parts[count] = part_of(self, block, talk, &answer->arena);
        if (block->kind == TIDE_CHAT_CALL)
            calls[answer->calls_count++] = parts[count];
        count++;
    }
    answer->calls = calls;
    answer->message = (struct tide_chat_message){
        .role = TIDE_CHAT_ASSISTANT, .parts = parts, .parts_count = count};
    text_join(self, answer);
}

static uint64_t said_tokens(const struct tide_chat_intake *self)
{
    enum { BYTES_PER_TOKEN = 4 };
    return (self->bytes_kept + BYTES_PER_TOKEN - 1) / BYTES_PER_TOKEN;
}

static void tokens_take(const struct tide_chat_intake *self, const struct tide_chat_talk *talk,
                        struct tide_chat_answer *answer)
{
    const uint32_t none = 1; /* what the talk costs, without an answer */
    answer->tokens_known = self->in_known && self->out_known;
    answer->in_tokens = self->in_known ? self->in_tokens : tide_chat_cost_of(talk, none) - none;
    answer->out_tokens = self->out_known ? self->out_tokens : said_tokens(self);
}

static tide_chat_stop stop_of(const struct tide_chat_intake *self)
{
    if (self->refused)
        return TIDE_CHAT_STOP_REFUSED;
    if (!self->finished) /* it ended without a reason */
        return self->calls > 0 ? TIDE_CHAT_STOP_TOOLS : TIDE_CHAT_STOP_DONE;
    /* Some servers say "stop" with calls. */
    if (self->stop == TIDE_CHAT_STOP_DONE && self->calls > 0)
        return TIDE_CHAT_STOP_TOOLS;
    if (self->stop == TIDE_CHAT_STOP_TOOLS && self->calls == 0)
        return TIDE_CHAT_STOP_DONE;
    return self->stop;
}

tide_status tide_chat_intake_end(struct tide_chat_intake *self, const struct tide_chat_talk *talk,
                                 struct tide_chat_answer *answer_out, tide_error *err)
{
    struct tide_chat_answer answer = {.text = TIDE_TEXT("")};
    if (self->failed == TIDE_OK && self->mode == TIDE_INTAKE_WHOLE)
        whole_read(self);
    if (self->failed == TIDE_OK && !self->said)
        tide_chat_intake_fail(self, TIDE_SERVER, "the answer is not one of a chat model");
    if (self->failed == TIDE_OK && !self->over && !self->finished) /* ITK4 */
        tide_chat_intake_fail(self, TIDE_SERVER, "the answer of the model broke off");
    if (self->failed == TIDE_OK) {
        tide_arena_init(&answer.arena, self->mem, 4 * self->bytes_max + WHOLE_BYTES_MORE);
        parts_take(self, talk, &answer);
        tokens_take(self, talk, &answer);
        answer.stop = stop_of(self);
        (void)snprintf(answer.model, sizeof answer.model, "%s", self->model);
    }
    if (self->failed == TIDE_OK) {
        *answer_out = answer;
        return TIDE_OK;
    }
    tide_chat_answer_done(&answer);
    if (err != NULL)
        *err = self->wrong;
    return self->failed;
}
