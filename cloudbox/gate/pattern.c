#include "cloudbox/gate/pattern.h"

#include "base/check.h"

#include <assert.h>

/* The bounds RE2 keeps, and what POSIX needs to be fast. */
static bool is_modest(tide_text text)
{
    uint64_t repeats = 1;
    size_t depth = 0;
    for (size_t i = 0; i < text.bytes; i++) {
        const char c = text.data[i];
        if (c == '\\' && i + 1 < text.bytes) {
            i++;
            if (text.data[i] >= '1' && text.data[i] <= '9')
                return false; /* a back reference */
        } else if (c == '(' && ++depth > BOX_PATTERN_DEPTH_MAX) {
            return false;
        } else if (c == ')' && depth > 0) {
            depth--;
        } else if (c == '{') {
            uint64_t count = 0;
            uint64_t highest = 1;
            for (i++; i < text.bytes && text.data[i] != '}'; i++) {
                const char digit = text.data[i];
                count = digit >= '0' && digit <= '9' ? count * 10 + (uint64_t)(digit - '0') : 0;
                if (count > BOX_PATTERN_REPEAT_MAX)
                    return false;
                highest = count > highest ? count : highest;
            }
            repeats *= highest;
            if (repeats > BOX_PATTERN_REPEAT_MAX || repeats * text.bytes > BOX_PATTERN_SIZE_MAX)
                return false;
        }
    }
    return true;
}

/* `to` has room for six times the text. */
static void translate(tide_text text, char *to)
{
    size_t at = 0;
    bool in_set = false;
    size_t i = text.bytes >= 4 && memcmp(text.data, "(?i)", 4) == 0 ? 4 : 0;
    for (; i < text.bytes; i++) {
        const char c = text.data[i];
        const char next = i + 1 < text.bytes ? text.data[i + 1] : '\0';
        if (c == '\\' && (next == 'd' || (next == 'D' && !in_set))) {
            const char *set = in_set ? "0-9" : next == 'd' ? "[0-9]" : "[^0-9]";
            memcpy(to + at, set, strlen(set));
            at += strlen(set);
            i++;
        } else if (c == '\\' && in_set && (next == 'w' || next == 's')) {
            const char *set = next == 'w' ? "a-zA-Z0-9_" : " \t\r\n";
            memcpy(to + at, set, strlen(set));
            at += strlen(set);
            i++;
        } else if (c == '\\' && next != '\0') {
            if (!in_set) /* inside a set POSIX takes a backslash for itself */
                to[at++] = '\\';
            to[at++] = next;
            i++;
        } else if (!in_set && c == '(' && next == '?' && i + 2 < text.bytes &&
                   text.data[i + 2] == ':') {
            to[at++] = '(';
            i += 2;
        } else {
            if (c == '[' && !in_set)
                in_set = true;
            else if (c == ']')
                in_set = false;
            to[at++] = c;
        }
    }
    to[at] = '\0';
}

static_assert(sizeof "a-zA-Z0-9_" <= 12, "two bytes become at most twelve");

bool box_pattern_compile(tide_text text, bool fold_case, tide_arena *arena, regex_t *regex_out)
{
    if (text.bytes > BOX_PATTERN_BYTES_MAX || !is_modest(text))
        return false;
    char *translated = tide_arena_take(arena, text.bytes * 6 + 1);
    TIDE_ASSERT(translated != NULL);
    translate(text, translated);
    return regcomp(regex_out, translated, REG_EXTENDED | REG_NOSUB | (fold_case ? REG_ICASE : 0)) ==
           0;
}

/* ---- examples ---- */

enum { EXAMPLE_BYTES_MAX = 4096, EXAMPLE_STEPS_MAX = 20000 };

struct example {
    tide_text text;
    size_t at;
    size_t more;
    size_t steps; /* left; a bound for patterns that repeat repetitions */
    tide_buf *out;
};

static void put(struct example *example, char c)
{
    if (example->out->bytes < EXAMPLE_BYTES_MAX)
        TIDE_ASSERT(tide_buf_add(example->out, &c, 1) == TIDE_OK);
}

static bool more_left(const struct example *example)
{
    return example->at < example->text.bytes && example->steps > 0;
}

static char peek(const struct example *example)
{
    return example->at < example->text.bytes ? example->text.data[example->at] : '\0';
}

/* "[...]": a member of the set that is easy on the eyes. */
static char set_example(struct example *example)
{
    static const char tries[] = "a1A-_ .,:/@0bBzZ5!";
    bool member[256] = {false};
    bool negated = false;
    example->at++;
    if (peek(example) == '^') {
        negated = true;
        example->at++;
    }
    for (bool first = true; example->at < example->text.bytes; first = false) {
        unsigned char from = (unsigned char)example->text.data[example->at++];
        if (from == ']' && !first)
            break;
        if (from == '\\' && example->at < example->text.bytes) {
            from = (unsigned char)example->text.data[example->at++];
            for (unsigned c = 0; c < 128; c++)
                if ((from == 'd' && c >= '0' && c <= '9') || (from == 's' && c == ' ') ||
                    (from == 'w' &&
                     (c == '_' || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z'))))
                    member[c] = true;
            if (strchr("dsw", from) != NULL)
                continue;
        }
        unsigned char to = from;
        if (peek(example) == '-' && example->at + 1 < example->text.bytes &&
            example->text.data[example->at + 1] != ']') {
            to = (unsigned char)example->text.data[example->at + 1];
            example->at += 2;
        }
        for (unsigned c = from; c <= to; c++)
            member[c] = true;
    }
    for (size_t i = 0; i < sizeof tries - 1; i++)
        if (member[(unsigned char)tries[i]] != negated)
            return tries[i];
    for (unsigned c = 33; c < 127; c++)
        if (member[c] != negated)
            return (char)c;
    return 'a';
}

static void escape_example(struct example *example)
{
    example->at++;
    const char c = peek(example);
    if (c == '\0')
        return;
    example->at++;
    switch (c) {
    case 'd':
        put(example, '1');
        break;
    case 'w':
    case 'D':
    case 'S':
        put(example, 'a');
        break;
    case 's':
    case 'W':
        put(example, ' ');
        break;
    case 'b':
    case 'B':
        break;
    default:
        put(example, c);
    }
}

static void alternatives_example(struct example *example, unsigned depth);

static void atom_example(struct example *example, unsigned depth)
{
    switch (peek(example)) {
    case '(':
        example->at++;
        if (peek(example) == '?') /* (?: and the like; look-arounds are not understood */
            example->at += 2;
        alternatives_example(example, depth + 1);
        if (peek(example) == ')')
            example->at++;
        break;
    case '[':
        put(example, set_example(example));
        break;
    case '\\':
        escape_example(example);
        break;
    case '.':
        put(example, 'a');
        example->at++;
        break;
    case '^':
    case '$':
        example->at++;
        break;
    default:
        put(example, peek(example));
        example->at++;
    }
}

/* How often the atom before is to appear. */
static size_t count_example(struct example *example)
{
    size_t count = 1;
    const char c = peek(example);
    if (c == '*' || c == '+' || c == '?') {
        example->at++;
        count = c == '+' ? 1 : 0;
        count += c == '?' ? 0 : example->more;
    } else if (c == '{') {
        count = 0;
        while (example->at < example->text.bytes && peek(example) != '}' && peek(example) != ',') {
            example->at++;
            if (peek(example) >= '0' && peek(example) <= '9' && count < EXAMPLE_BYTES_MAX)
                count = count * 10 + (size_t)(peek(example) - '0');
        }
        size_t most = count;
        if (peek(example) == ',') {
            most = 0;
            while (example->at < example->text.bytes && peek(example) != '}') {
                example->at++;
                if (peek(example) >= '0' && peek(example) <= '9' && most < EXAMPLE_BYTES_MAX)
                    most = most * 10 + (size_t)(peek(example) - '0');
            }
            if (most == 0)
                most = count + example->more;
        }
        example->at++;
        count = count + example->more < most ? count + example->more : most;
    }
    if (peek(example) == '?')
        example->at++; /* lazy */
    return count;
}

static void sequence_example(struct example *example, unsigned depth)
{
    while (more_left(example) && peek(example) != ')' && peek(example) != '|') {
        const size_t start = example->at;
        const size_t bytes = example->out->bytes;
        example->steps--;
        atom_example(example, depth);
        const size_t count = count_example(example);
        const size_t end = example->at;
        if (count == 0)
            example->out->bytes = bytes;
        for (size_t i = 1;
             i < count && more_left(example) && example->out->bytes < EXAMPLE_BYTES_MAX; i++) {
            example->at = start;
            example->steps--;
            atom_example(example, depth);
        }
        example->at = end;
    }
}

/* The first alternative; the others are walked over. */
static void alternatives_example(struct example *example, unsigned depth)
{
    if (depth > BOX_PATTERN_DEPTH_MAX) {
        example->steps = 0;
        return;
    }
    sequence_example(example, depth);
    const size_t bytes = example->out->bytes;
    while (more_left(example) && peek(example) == '|') {
        example->at++;
        sequence_example(example, depth);
    }
    example->out->bytes = bytes;
}

void box_pattern_example(tide_text pattern, size_t more, tide_buf *out)
{
    if (pattern.bytes > BOX_PATTERN_BYTES_MAX)
        return;
    struct example example = {
        .text = pattern, .more = more, .steps = EXAMPLE_STEPS_MAX, .out = out};
    alternatives_example(&example, 0);
}
