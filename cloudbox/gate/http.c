#include "cloudbox/gate/http.h"

#include "base/check.h"
#include "base/encode.h"
#include "base/json.h"

#include <stdarg.h>
#include <stdio.h>
#include <strings.h>

/* ---- verbs and headers ---- */

static const char *const verb_names[] = {"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"};

box_verb box_verb_of(tide_text name)
{
    for (size_t i = 0; i < sizeof verb_names / sizeof verb_names[0]; i++)
        if (tide_text_equal(name, tide_text_of(verb_names[i])))
            return (box_verb)i;
    return BOX_VERB_OTHER;
}

const char *box_verb_name(box_verb verb)
{
    return verb < BOX_VERB_OTHER ? verb_names[verb] : "OTHER";
}

tide_text box_request_header(const struct box_request *request, const char *name)
{
    const size_t bytes = strlen(name);
    for (size_t i = 0; i < request->headers_count; i++) {
        const struct box_header *header = &request->headers[i];
        if (header->name.bytes == bytes && strncasecmp(header->name.data, name, bytes) == 0)
            return header->value;
    }
    return TIDE_TEXT_NONE;
}

bool box_sink_write(struct box_sink *sink, tide_text piece)
{
    sink->bytes += piece.bytes;
    return sink->write(sink->arg, piece);
}

void box_sink_done(struct box_sink *sink)
{
    if (sink->done != NULL)
        sink->done(sink->arg);
    *sink = (struct box_sink){0};
}

/* ---- answers ---- */

void box_answer_init(struct box_answer *answer)
{
    answer->status = 200;
    answer->type[0] = '\0';
    answer->headers_count = 0;
    tide_buf_init(&answer->body, tide_mem_heap(), BOX_ANSWER_BYTES_MAX);
    answer->source = (struct box_source){0};
    answer->plan = (struct box_plan){0};
    answer->ticket = (struct box_ticket){0};
}

static void source_done(struct box_answer *answer)
{
    if (answer->source.done != NULL)
        answer->source.done(answer->source.arg);
    answer->source = (struct box_source){0};
}

void box_answer_done(struct box_answer *answer)
{
    source_done(answer);
    tide_buf_done(&answer->body);
}

void box_answer_clear(struct box_answer *answer)
{
    answer->status = 200;
    answer->settle = NULL;
    answer->type[0] = '\0';
    answer->headers_count = 0;
    source_done(answer);
    tide_buf_clear(&answer->body);
}

void box_answer_source(struct box_answer *answer, const struct box_source *source)
{
    source_done(answer);
    tide_buf_clear(&answer->body);
    if (source != NULL)
        answer->source = *source;
}

uint64_t box_answer_bytes(const struct box_answer *answer)
{
    return answer->source.read != NULL ? answer->source.bytes : answer->body.bytes;
}

void box_answer_header(struct box_answer *answer, const char *name, const char *value)
{
    TIDE_ASSERT(answer->headers_count < BOX_ANSWER_HEADERS_MAX);
    const size_t i = answer->headers_count++;
    (void)snprintf(answer->headers[i].name, sizeof answer->headers[i].name, "%s", name);
    (void)snprintf(answer->headers[i].value, sizeof answer->headers[i].value, "%s", value);
}

/* ---- writing ---- */

void box_add(tide_buf *out, const void *bytes, size_t count)
{
    TIDE_ASSERT(tide_buf_add(out, bytes, count) == TIDE_OK);
}

void box_add_cstr(tide_buf *out, const char *text)
{
    box_add(out, text, strlen(text));
}

void box_print(tide_buf *out, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    va_list again;
    va_copy(again, args);
    const int bytes = vsnprintf(NULL, 0, format, args);
    va_end(args);
    TIDE_ASSERT(bytes >= 0);
    char *room = tide_buf_reserve(out, (size_t)bytes + 1);
    TIDE_ASSERT(room != NULL);
    (void)vsnprintf(room, (size_t)bytes + 1, format, again);
    va_end(again);
    out->bytes += (size_t)bytes;
}

void box_add_json_text(tide_buf *out, tide_text text)
{
    TIDE_ASSERT(tide_json_escape(text, out) == TIDE_OK);
}

json_t *box_json_text(tide_text text)
{
    json_t *value = json_stringn(text.data == NULL ? "" : text.data, text.bytes);
    if (value != NULL)
        return value;
    tide_auto_buf clean = tide_buf_heap(BOX_ANSWER_BYTES_MAX);
    while (text.bytes > 0) {
        const size_t bytes = tide_utf8_bytes(text);
        if (bytes == 0)
            box_add_cstr(&clean, "\xef\xbf\xbd");
        else
            box_add(&clean, text.data, bytes);
        text.data += bytes == 0 ? 1 : bytes;
        text.bytes -= bytes == 0 ? 1 : bytes;
    }
    value = json_stringn(tide_buf_cstr(&clean), clean.bytes);
    TIDE_ASSERT(value != NULL);
    return value;
}

static int add_dumped(const char *bytes, size_t count, void *arg)
{
    return tide_buf_add(arg, bytes, count) == TIDE_OK ? 0 : -1;
}

void box_answer_json(struct box_answer *answer, int status, json_t *value, bool pretty)
{
    TIDE_ASSERT(value != NULL);
    answer->status = status;
    (void)snprintf(answer->type, sizeof answer->type, "application/json; charset=UTF-8");
    source_done(answer);
    tide_buf_clear(&answer->body);
    const size_t flags =
        (pretty ? JSON_INDENT(2) : JSON_COMPACT) | JSON_ENCODE_ANY | BOX_JSON_REALS;
    TIDE_ASSERT(json_dump_callback(value, add_dumped, &answer->body, flags) == 0);
    if (pretty)
        box_add(&answer->body, "\n", 1);
    json_decref(value);
}

/* ---- base64 ---- */

/* Two digits at once: all 4096 pairs, in order. */
#define PAIRS(a)                                                                                   \
    {a, 'A'}, {a, 'B'}, {a, 'C'}, {a, 'D'}, {a, 'E'}, {a, 'F'}, {a, 'G'}, {a, 'H'}, {a, 'I'},      \
        {a, 'J'}, {a, 'K'}, {a, 'L'}, {a, 'M'}, {a, 'N'}, {a, 'O'}, {a, 'P'}, {a, 'Q'}, {a, 'R'},  \
        {a, 'S'}, {a, 'T'}, {a, 'U'}, {a, 'V'}, {a, 'W'}, {a, 'X'}, {a, 'Y'}, {a, 'Z'}, {a, 'a'},  \
        {a, 'b'}, {a, 'c'}, {a, 'd'}, {a, 'e'}, {a, 'f'}, {a, 'g'}, {a, 'h'}, {a, 'i'}, {a, 'j'},  \
        {a, 'k'}, {a, 'l'}, {a, 'm'}, {a, 'n'}, {a, 'o'}, {a, 'p'}, {a, 'q'}, {a, 'r'}, {a, 's'},  \
        {a, 't'}, {a, 'u'}, {a, 'v'}, {a, 'w'}, {a, 'x'}, {a, 'y'}, {a, 'z'}, {a, '0'}, {a, '1'},  \
        {a, '2'}, {a, '3'}, {a, '4'}, {a, '5'}, {a, '6'}, {a, '7'}, {a, '8'}, {a, '9'}, {a, '-'},  \
    {                                                                                              \
        a, '_'                                                                                     \
    }
static const char pairs_url[4096][2] = {
    PAIRS('A'), PAIRS('B'), PAIRS('C'), PAIRS('D'), PAIRS('E'), PAIRS('F'), PAIRS('G'), PAIRS('H'),
    PAIRS('I'), PAIRS('J'), PAIRS('K'), PAIRS('L'), PAIRS('M'), PAIRS('N'), PAIRS('O'), PAIRS('P'),
    PAIRS('Q'), PAIRS('R'), PAIRS('S'), PAIRS('T'), PAIRS('U'), PAIRS('V'), PAIRS('W'), PAIRS('X'),
    PAIRS('Y'), PAIRS('Z'), PAIRS('a'), PAIRS('b'), PAIRS('c'), PAIRS('d'), PAIRS('e'), PAIRS('f'),
    PAIRS('g'), PAIRS('h'), PAIRS('i'), PAIRS('j'), PAIRS('k'), PAIRS('l'), PAIRS('m'), PAIRS('n'),
    PAIRS('o'), PAIRS('p'), PAIRS('q'), PAIRS('r'), PAIRS('s'), PAIRS('t'), PAIRS('u'), PAIRS('v'),
    PAIRS('w'), PAIRS('x'), PAIRS('y'), PAIRS('z'), PAIRS('0'), PAIRS('1'), PAIRS('2'), PAIRS('3'),
    PAIRS('4'), PAIRS('5'), PAIRS('6'), PAIRS('7'), PAIRS('8'), PAIRS('9'), PAIRS('-'), PAIRS('_'),
};
#undef PAIRS

/* Six bytes a step, four lookups: this is the inner loop of messages.get. */
void box_add_base64url(tide_buf *out, tide_text bytes)
{
    TIDE_ASSERT(bytes.bytes < BOX_ANSWER_BYTES_MAX / 2);
    char *to = tide_buf_reserve(out, (bytes.bytes + 2) / 3 * 4);
    TIDE_ASSERT(to != NULL);
    const unsigned char *from = (const unsigned char *)bytes.data;
    size_t done = 0;
    for (; bytes.bytes - done >= 8; done += 6, from += 6, to += 8) {
        /* Compilers make one load of this. */
        const uint64_t eight = (uint64_t)from[0] << 56 | (uint64_t)from[1] << 48 |
                               (uint64_t)from[2] << 40 | (uint64_t)from[3] << 32 |
                               (uint64_t)from[4] << 24 | (uint64_t)from[5] << 16 |
                               (uint64_t)from[6] << 8 | from[7];
        memcpy(to, pairs_url[eight >> 52], 2);
        memcpy(to + 2, pairs_url[eight >> 40 & 4095], 2);
        memcpy(to + 4, pairs_url[eight >> 28 & 4095], 2);
        memcpy(to + 6, pairs_url[eight >> 16 & 4095], 2);
    }
    out->bytes += done / 3 * 4;
    const tide_text rest = {(const char *)from, bytes.bytes - done};
    TIDE_ASSERT(tide_base64_add(out, rest, tide_base64_url, true) == TIDE_OK);
}

void box_add_base64(tide_buf *out, tide_text bytes)
{
    TIDE_ASSERT(tide_base64_add(out, bytes, tide_base64_standard, true) == TIDE_OK);
}

/* -1: not a digit of either alphabet. */
static int digit_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    if (c == '+' || c == '-')
        return 62;
    return c == '/' || c == '_' ? 63 : -1;
}

static bool is_padding(char c)
{
    return c == '=' || c == '\r' || c == '\n';
}

/* Decodes into `to`; the number of bytes, or SIZE_MAX. */
static size_t decode_digits(tide_text text, char *to)
{
    uint32_t bits = 0;
    unsigned digits = 0;
    size_t count = 0;
    for (size_t i = 0; i < text.bytes; i++) {
        const int digit = digit_of(text.data[i]);
        if (digit < 0 && (text.data[i] == '\r' || text.data[i] == '\n'))
            continue;
        if (digit < 0)
            return SIZE_MAX;
        bits = bits << 6 | (uint32_t)digit;
        if (++digits % 4 == 0) {
            to[count++] = (char)(bits >> 16);
            to[count++] = (char)(bits >> 8);
            to[count++] = (char)bits;
        }
    }
    if (digits % 4 == 1)
        return SIZE_MAX;
    if (digits % 4 == 2)
        to[count++] = (char)(bits >> 4);
    if (digits % 4 == 3) {
        to[count++] = (char)(bits >> 10);
        to[count++] = (char)(bits >> 2);
    }
    return count;
}

bool box_base64_decode(tide_text text, tide_buf *out)
{
    while (text.bytes > 0 && is_padding(text.data[text.bytes - 1]))
        text.bytes--;
    char *to = tide_buf_reserve(out, text.bytes / 4 * 3 + 3);
    if (to == NULL)
        return false;
    const size_t count = decode_digits(text, to);
    if (count != SIZE_MAX)
        out->bytes += count;
    out->data[out->bytes] = '\0'; /* also after a failure: it wrote behind the end */
    return count != SIZE_MAX;
}

/* ---- reading text ---- */

bool box_is(tide_text text, const char *word)
{
    return text.bytes == strlen(word) &&
           (text.bytes == 0 || strncasecmp(text.data, word, text.bytes) == 0);
}

bool box_starts(tide_text text, const char *word)
{
    const size_t bytes = strlen(word);
    return text.bytes >= bytes && strncasecmp(text.data, word, bytes) == 0;
}

static bool is_among(char c, const char *set)
{
    return c != '\0' && strchr(set, c) != NULL;
}

tide_text box_trim(tide_text text, const char *set)
{
    while (text.bytes > 0 && is_among(text.data[0], set))
        text = (tide_text){text.data + 1, text.bytes - 1};
    while (text.bytes > 0 && is_among(text.data[text.bytes - 1], set))
        text.bytes--;
    return text;
}

bool box_line_next(tide_text *rest, tide_text *line_out)
{
    if (rest->bytes == 0)
        return false;
    const char *end = memchr(rest->data, '\n', rest->bytes);
    const size_t bytes = end == NULL ? rest->bytes : (size_t)(end - rest->data);
    const size_t taken = end == NULL ? bytes : bytes + 1;
    *line_out = (tide_text){rest->data, bytes};
    if (bytes > 0 && rest->data[bytes - 1] == '\r')
        line_out->bytes--;
    *rest = (tide_text){rest->data + taken, rest->bytes - taken};
    return true;
}

/* ---- reading a target ---- */

/* Decodes %-escapes (and '+' in queries).  Text without any is not copied. */
static bool decode(tide_text raw, bool plus, tide_arena *arena, tide_text *text_out)
{
    if (memchr(raw.data, '%', raw.bytes) == NULL &&
        (!plus || memchr(raw.data, '+', raw.bytes) == NULL)) {
        *text_out = raw;
        return true;
    }
    char *to = tide_arena_take(arena, raw.bytes + 1);
    TIDE_ASSERT(to != NULL);
    size_t count = 0;
    for (size_t i = 0; i < raw.bytes; i++) {
        if (raw.data[i] == '%') {
            const int byte = tide_hex_byte((tide_text){raw.data + i + 1, raw.bytes - i - 1});
            if (byte < 0)
                return false;
            to[count++] = (char)byte;
            i += 2;
        } else {
            to[count++] = plus && raw.data[i] == '+' ? ' ' : raw.data[i];
        }
    }
    *text_out = (tide_text){to, count};
    return true;
}

bool box_params_parse(tide_text raw, tide_arena *arena, struct box_param *params, size_t *count_out)
{
    size_t count = 0;
    while (raw.bytes > 0) {
        const char *end = memchr(raw.data, '&', raw.bytes);
        const size_t bytes = end == NULL ? raw.bytes : (size_t)(end - raw.data);
        if (bytes > 0) {
            if (count == BOX_PARAMS_MAX)
                return false;
            const char *equals = memchr(raw.data, '=', bytes);
            const size_t name_bytes = equals == NULL ? bytes : (size_t)(equals - raw.data);
            const tide_text value =
                equals == NULL ? TIDE_TEXT("") : (tide_text){equals + 1, bytes - name_bytes - 1};
            if (!decode((tide_text){raw.data, name_bytes}, true, arena, &params[count].name) ||
                !decode(value, true, arena, &params[count].value))
                return false;
            count++;
        }
        const size_t step = end == NULL ? bytes : bytes + 1;
        raw.data += step;
        raw.bytes -= step;
    }
    *count_out = count;
    return true;
}

bool box_target_parse(tide_text raw, tide_arena *arena, struct box_target *target_out)
{
    if (raw.bytes == 0 || raw.bytes > BOX_TARGET_BYTES_MAX || raw.data[0] != '/' ||
        memchr(raw.data, '\0', raw.bytes) != NULL)
        return false;
    const char *question = memchr(raw.data, '?', raw.bytes);
    tide_text path = {raw.data, question == NULL ? raw.bytes : (size_t)(question - raw.data)};
    target_out->path = path;
    target_out->segments_count = 0;
    target_out->params_count = 0;
    while (path.bytes > 0) {
        path.data++;
        path.bytes--;
        const char *slash = memchr(path.data, '/', path.bytes);
        const size_t bytes = slash == NULL ? path.bytes : (size_t)(slash - path.data);
        if (target_out->segments_count == BOX_SEGMENTS_MAX)
            return false;
        if (!decode((tide_text){path.data, bytes}, false, arena,
                    &target_out->segments[target_out->segments_count++]))
            return false;
        path.data += bytes;
        path.bytes -= bytes;
    }
    if (question == NULL)
        return true;
    const tide_text query = {question + 1, raw.bytes - target_out->path.bytes - 1};
    return box_params_parse(query, arena, target_out->params, &target_out->params_count);
}

tide_text box_param(const struct box_param *params, size_t count, const char *name)
{
    const tide_text wanted = tide_text_of(name);
    for (size_t i = 0; i < count; i++)
        if (tide_text_equal(params[i].name, wanted))
            return params[i].value;
    return TIDE_TEXT_NONE;
}
