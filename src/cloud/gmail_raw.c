/* gmail_raw.c - decodes "raw" and copies the rest of the answer for the JSON library.
 *
 * Every byte outside of "raw" is copied unchanged, and of "raw" the two quotes are.  So the copy is
 * valid JSON if and only if the answer was, except for the content of that one string, which is
 * fully checked here.  This reader therefore has to know only where strings begin and end and how
 * deep it is; a text that confuses it is invalid up to that point, and the library reports that. */
#include "cloud/gmail_raw.h"

#include "base/check.h"
#include "base/encode.h"

#include <string.h>

enum { IN_NOTHING, IN_STRING, IN_KEY, IN_RAW };

enum {
    ESCAPE_BEGUN = 5, /* after the backslash; 4 to 1: hex digits still to come */
    NOT_ASCII = 0xff, /* any character that does not occur in our keys */
    GROUP = 8,        /* characters decoded at once, to 6 bytes */
    REST_BYTES_USUAL = 600,
    SLACK = 16, /* after the content: for the wide store and an unfinished group */
};

/* ---- base64 ---- */

/* Both alphabets at once: the characters that differ have the same value. */
/* clang-format off */
#define ALPHABET(at) \
    ['A'] = at(0), ['B'] = at(1), ['C'] = at(2), ['D'] = at(3), ['E'] = at(4), ['F'] = at(5), \
    ['G'] = at(6), ['H'] = at(7), ['I'] = at(8), ['J'] = at(9), ['K'] = at(10), ['L'] = at(11), \
    ['M'] = at(12), ['N'] = at(13), ['O'] = at(14), ['P'] = at(15), ['Q'] = at(16), \
    ['R'] = at(17), ['S'] = at(18), ['T'] = at(19), ['U'] = at(20), ['V'] = at(21), \
    ['W'] = at(22), ['X'] = at(23), ['Y'] = at(24), ['Z'] = at(25), ['a'] = at(26), \
    ['b'] = at(27), ['c'] = at(28), ['d'] = at(29), ['e'] = at(30), ['f'] = at(31), \
    ['g'] = at(32), ['h'] = at(33), ['i'] = at(34), ['j'] = at(35), ['k'] = at(36), \
    ['l'] = at(37), ['m'] = at(38), ['n'] = at(39), ['o'] = at(40), ['p'] = at(41), \
    ['q'] = at(42), ['r'] = at(43), ['s'] = at(44), ['t'] = at(45), ['u'] = at(46), \
    ['v'] = at(47), ['w'] = at(48), ['x'] = at(49), ['y'] = at(50), ['z'] = at(51), \
    ['0'] = at(52), ['1'] = at(53), ['2'] = at(54), ['3'] = at(55), ['4'] = at(56), \
    ['5'] = at(57), ['6'] = at(58), ['7'] = at(59), ['8'] = at(60), ['9'] = at(61), \
    ['+'] = at(62), ['-'] = at(62), ['/'] = at(63), ['_'] = at(63)
/* clang-format on */

/* The value at its position in a group of four, plus ONE above it; 0: in neither alphabet.  Four
 * of them are added, and the sum reaches ALL_VALID only if none was 0. */
#define ONE       (UINT32_C(1) << 26)
#define ALL_VALID (UINT32_C(4) << 26)
#define FIRST(v)  (ONE + ((uint32_t)(v) << 18))
#define SECOND(v) (ONE + ((uint32_t)(v) << 12))
#define THIRD(v)  (ONE + ((uint32_t)(v) << 6))
#define FOURTH(v) (ONE + (uint32_t)(v))
static const uint32_t letters[4][256] = {
    {ALPHABET(FIRST)}, {ALPHABET(SECOND)}, {ALPHABET(THIRD)}, {ALPHABET(FOURTH)}};

static uint32_t four(const unsigned char *at)
{
    return letters[0][at[0]] + letters[1][at[1]] + letters[2][at[2]] + letters[3][at[3]];
}

/* Decodes whole groups, up to the first that contains any other byte.  Returns its position;
 * writes up to two bytes after the content. */
static const char *decode_groups(tide_buf *raw, const char *at, const char *end)
{
    char *to = raw->data + raw->bytes;
    while (end - at >= GROUP) {
        const unsigned char *bytes = (const unsigned char *)at;
        const uint32_t high = four(bytes), low = four(bytes + 4);
        if ((high & low & ALL_VALID) == 0)
            break;
        const uint64_t six = (uint64_t)high << 40 | (uint64_t)(low & 0xffffffu) << 16;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
        const uint64_t wire = __builtin_bswap64(six);
#else
        const uint64_t wire = six;
#endif
        memcpy(to, &wire, sizeof wire);
        to += 6;
        at += GROUP;
    }
    raw->bytes = (size_t)(to - raw->data);
    return at;
}

static void fail(struct tide_gmail_raw *self, tide_status status, const char *wrong)
{
    self->failed = status;
    self->wrong = wrong;
}

static void emit(tide_buf *raw, uint32_t bits, unsigned bytes)
{
    TIDE_ASSERT(raw->capacity - raw->bytes > bytes);
    for (unsigned i = 0; i < bytes; i++)
        raw->data[raw->bytes++] = (char)(bits >> (16 - 8 * i) & 0xff);
}

/* Takes one character of the string, unescaped. */
static void take_character(struct tide_gmail_raw *self, unsigned char c)
{
    if (c == '=') {
        self->pads++;
        if (self->group < 2 || self->group + self->pads > 4)
            fail(self, TIDE_SERVER, "\"raw\" has padding in the wrong place");
        return;
    }
    if (letters[3][c] == 0 || self->pads > 0) {
        fail(self, TIDE_SERVER, "\"raw\" is not base64");
        return;
    }
    self->bits = self->bits << 6 | (letters[3][c] & 63u);
    if (++self->group < 4)
        return;
    emit(self->raw, self->bits, 3);
    self->bits = 0;
    self->group = 0;
}

/* The last group.  Bits that belong to no byte must be zero: otherwise the text was cut off or
 * changed in transit. */
static void finish_base64(struct tide_gmail_raw *self)
{
    const unsigned group = self->group;
    const uint32_t bits = self->bits << 6 * (4 - group);
    const unsigned bytes = group * 6 / 8;
    if (group == 1 || (self->pads > 0 && group + self->pads != 4))
        fail(self, TIDE_SERVER, "\"raw\" ends inside a group of base64");
    else if (group > 0 && (bits & (0xffffffu >> 8 * bytes)) != 0)
        fail(self, TIDE_SERVER, "\"raw\" has bits after its last byte");
    else if (group > 0)
        emit(self->raw, bits, bytes);
}

/* ---- memory ---- */

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* The expected size of the message, as far as it is known. */
static uint64_t promised_bytes(const struct tide_gmail_raw *self)
{
    uint64_t bytes = self->expected_bytes;
    if (self->estimate_bytes > 0) /* plus the text after it in the same part */
        bytes = larger(bytes, self->estimate_bytes + self->estimate_bytes / 64 + 1024);
    return bytes < self->raw->bytes_max ? bytes : self->raw->bytes_max;
}

/* Reserves room for `count` more characters.  The first allocation trusts the expected size;
 * after that the buffer grows by half, so that the room is never more than one and a half times
 * what is needed (RAW4). */
static bool make_room(struct tide_gmail_raw *self, size_t count)
{
    tide_buf *raw = self->raw;
    const size_t needed = raw->bytes + count / 4 * 3 + SLACK;
    if (needed < raw->capacity)
        return true;
    uint64_t wanted = larger(needed, raw->capacity + raw->capacity / 2);
    if (raw->capacity == 0)
        wanted = larger(needed, promised_bytes(self));
    const tide_status rc = tide_buf_room(raw, (size_t)wanted);
    if (rc != TIDE_OK)
        fail(self, rc, "no memory for the message");
    return rc == TIDE_OK;
}

/* ---- strings that are read: keys, and "raw" ---- */

/* Takes the next byte inside an escape.  Returns the character when it is complete, -1 when more
 * must follow, NOT_ASCII for an invalid escape. */
static int take_escape(struct tide_gmail_raw *self, char c)
{
    if (self->escape == ESCAPE_BEGUN) {
        static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
        const char *found = c == '\0' ? NULL : strchr(from, c);
        self->escape = c == 'u' ? 4 : 0;
        self->escape_sum = 0;
        if (c == 'u')
            return -1;
        return found == NULL ? NOT_ASCII : to[found - from];
    }
    const int digit = tide_hex_digit(c);
    if (digit < 0) {
        self->escape = 0;
        return NOT_ASCII;
    }
    self->escape_sum = self->escape_sum << 4 | (unsigned)digit;
    if (--self->escape > 0)
        return -1;
    return self->escape_sum < 0x80 ? (int)self->escape_sum : NOT_ASCII;
}

static bool key_is(const struct tide_gmail_raw *self, const char *name)
{
    return self->key_bytes == strlen(name) && memcmp(self->key, name, self->key_bytes) == 0;
}

static void take_key(struct tide_gmail_raw *self, char c)
{
    int character = (unsigned char)c;
    if (self->escape > 0) {
        character = take_escape(self, c);
    } else if (c == '\\') {
        self->escape = ESCAPE_BEGUN;
        return;
    } else if (c == '"') {
        self->in = IN_NOTHING;
        return;
    }
    if (character < 0)
        return;
    if (self->key_bytes < sizeof self->key)
        self->key[self->key_bytes] = (char)character;
    if (self->key_bytes <= sizeof self->key)
        self->key_bytes++;
}

/* Takes everything up to the closing quote, which is left to be copied with the rest. */
static const char *take_raw(struct tide_gmail_raw *self, const char *at, const char *end)
{
    if (!make_room(self, (size_t)(end - at)))
        return end;
    while (at < end && self->failed == TIDE_OK) {
        if (self->escape == 0 && self->group == 0 && self->pads == 0)
            at = decode_groups(self->raw, at, end);
        if (at == end)
            break;
        if (self->escape == 0 && *at == '"') {
            finish_base64(self);
            self->in = IN_STRING;
            break;
        }
        const char c = *at++;
        int character = (unsigned char)c;
        if (self->escape > 0)
            character = take_escape(self, c);
        else if (c == '\\')
            self->escape = ESCAPE_BEGUN;
        if (character >= 0 && self->escape == 0)
            take_character(self, (unsigned char)character);
    }
    self->raw->data[self->raw->bytes] = '\0';
    if (self->failed == TIDE_OK && self->raw->bytes > self->raw->bytes_max)
        fail(self, TIDE_FULL, "the message is larger than the limit");
    return at;
}

/* ---- everything else ---- */

static void string_begins(struct tide_gmail_raw *self)
{
    self->escaped = false;
    self->escape = 0;
    self->in = IN_STRING;
    if (self->depth > 1)
        return;
    if (!self->after_colon) {
        self->in = IN_KEY;
        self->key_bytes = 0;
    } else if (key_is(self, "raw")) {
        if (self->found)
            fail(self, TIDE_SERVER, "\"raw\" occurs twice");
        self->in = IN_RAW;
        self->found = true;
    }
}

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* A byte between strings. */
static void take_outside(struct tide_gmail_raw *self, char c)
{
    if (self->depth == 0 && !is_space(c) && (self->ended || c != '{')) {
        fail(self, TIDE_SERVER,
             self->ended ? "data follows the object" : "it is not a JSON object");
        return;
    }
    switch (c) {
    case '"':
        string_begins(self);
        break;
    case '{':
    case '[':
        if (++self->depth > TIDE_GMAIL_DEPTH_MAX)
            fail(self, TIDE_SERVER, "it is nested too deep");
        break;
    case '}':
    case ']':
        self->ended = --self->depth == 0;
        break;
    case ':':
    case ',':
        if (self->depth == 1)
            self->after_colon = c == ':';
        break;
    default:
        /* Google sends it before "raw".  A wrong number only wastes memory. */
        if (c >= '0' && c <= '9' && self->depth == 1 && key_is(self, "sizeEstimate") &&
            self->estimate_bytes < UINT32_MAX)
            self->estimate_bytes = self->estimate_bytes * 10 + (uint64_t)(c - '0');
        break;
    }
}

static void take_string(struct tide_gmail_raw *self, char c)
{
    if (self->escaped)
        self->escaped = false;
    else if (c == '\\')
        self->escaped = true;
    else if (c == '"')
        self->in = IN_NOTHING;
}

static const char *take_rest(struct tide_gmail_raw *self, const char *from, const char *end)
{
    const char *at = from;
    while (at < end && self->in != IN_RAW && self->failed == TIDE_OK) {
        const char c = *at++;
        if (self->in == IN_NOTHING)
            take_outside(self, c);
        else if (self->in == IN_KEY)
            take_key(self, c);
        else
            take_string(self, c);
    }
    if (self->rest.capacity == 0) /* one allocation is enough for nearly all answers */
        (void)tide_buf_room(&self->rest, REST_BYTES_USUAL);
    const tide_status rc = tide_buf_add(&self->rest, from, (size_t)(at - from));
    if (self->failed != TIDE_OK || rc == TIDE_OK)
        return at;
    if (rc == TIDE_FULL)
        fail(self, TIDE_SERVER, "it is too large even without \"raw\"");
    else
        fail(self, rc, "no memory for the answer");
    return at;
}

/* ---- interface ---- */

void tide_gmail_raw_init(struct tide_gmail_raw *self, tide_mem *mem, tide_buf *raw)
{
    TIDE_ASSERT(raw->bytes == 0);
    memset(self, 0, sizeof *self);
    self->raw = raw;
    tide_buf_init(&self->rest, mem, TIDE_GMAIL_REST_BYTES_MAX);
}

void tide_gmail_raw_done(struct tide_gmail_raw *self)
{
    tide_buf_done(&self->rest);
}

void tide_gmail_raw_expect(struct tide_gmail_raw *self, uint64_t answer_bytes)
{
    self->expected_bytes = answer_bytes / 4 * 3 + SLACK;
}

tide_status tide_gmail_raw_write(void *arg, const char *bytes, size_t count)
{
    struct tide_gmail_raw *self = arg;
    const char *at = bytes;
    const char *end = bytes + count;
    while (at < end && self->failed == TIDE_OK)
        at = self->in == IN_RAW ? take_raw(self, at, end) : take_rest(self, at, end);
    return self->failed;
}

tide_status tide_gmail_raw_end(struct tide_gmail_raw *self, json_t **fields_out, tide_error *err)
{
    if (self->failed == TIDE_OK && !self->ended)
        fail(self, TIDE_SERVER, "it is cut off");
    if (self->failed != TIDE_OK)
        return tide_error_set(err, self->failed, "%s", self->wrong);
    json_t *fields = NULL;
    tide_status rc = tide_json_parse(tide_buf_text(&self->rest), &fields, err);
    if (rc == TIDE_INVALID) {
        fail(self, TIDE_SERVER, "it is not JSON");
        return tide_error_set(err, TIDE_SERVER, "%s", self->wrong);
    }
    if (rc != TIDE_OK)
        return rc;
    if (!self->found || !json_is_string(json_object_get(fields, "raw"))) {
        json_decref(fields);
        fail(self, TIDE_SERVER, "it has no \"raw\"");
        return tide_error_set(err, TIDE_SERVER, "%s", self->wrong);
    }
    (void)json_object_del(fields, "raw");
    *fields_out = fields;
    return TIDE_OK;
}
