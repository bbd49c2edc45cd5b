#include "assistant/match/pattern.h"

#include "assistant/match/fold.h"
#include "base/check.h"

typedef enum op {
    OP_CHAR, /* one character, folded */
    OP_ANY,
    OP_SET,     /* one of the ranges, or none of them */
    OP_FRONT,   /* ^ */
    OP_END,     /* $ */
    OP_EDGE,    /* \b */
    OP_NO_EDGE, /* \B */
    OP_SPLIT,   /* goes on at both */
    OP_JUMP,
    OP_FOUND,
} op;

/* Jumps are relative, so that code can be moved and copied. */
struct step {
    op op;
    bool negated;    /* SET */
    uint32_t code;   /* CHAR; the first range of a SET */
    uint32_t ranges; /* SET: how many */
    int32_t a, b;    /* SPLIT, JUMP (a) */
};

struct range {
    uint32_t first, last;
};

struct tide_pattern {
    const struct step *steps;
    size_t count;
    const struct range *ranges;
};

enum { RANGES_MAX = TIDE_PATTERN_BYTES_MAX * 4 };

/* A group that is open; the outermost one is the whole pattern. */
struct group {
    size_t begin;       /* of its code */
    size_t alternative; /* of the alternative that is being read */
    size_t jumps;       /* of `jumps` that belong to groups around it */
};

struct compiler {
    tide_text source, rest;
    struct step steps[TIDE_PATTERN_STEPS_MAX];
    size_t count;
    struct range ranges[RANGES_MAX];
    size_t ranges_count;
    struct group groups[TIDE_PATTERN_DEEP + 1];
    size_t depth;
    size_t jumps[TIDE_PATTERN_BYTES_MAX]; /* from the end of an alternative to that of its group */
    size_t jumps_count;
    size_t atom;   /* where the code of the last one begins */
    bool has_atom; /* there is something that could be repeated */
    tide_error *err;
};

static tide_status refuse(struct compiler *self, const char *reason)
{
    return tide_error_set(self->err, TIDE_INVALID, "%s, at character %zu of the pattern", reason,
                          self->source.bytes - self->rest.bytes + 1);
}

/* ---- code ----------------------------------------------------------------------- */

static tide_status emit(struct compiler *self, struct step step)
{
    if (self->count == TIDE_PATTERN_STEPS_MAX)
        return refuse(self, "the pattern is too large");
    self->steps[self->count++] = step;
    return TIDE_OK;
}

/* Puts a step in front of the code from `at` on.  Jumps inside that code stay right because they
 * are relative; none from before `at` leads behind it yet. */
static tide_status insert(struct compiler *self, size_t at, struct step step)
{
    TIDE_TRY(emit(self, step));
    memmove(&self->steps[at + 1], &self->steps[at], (self->count - 1 - at) * sizeof step);
    self->steps[at] = step;
    return TIDE_OK;
}

static tide_status copy_code(struct compiler *self, size_t from, size_t count)
{
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < count; i++)
        rc = emit(self, self->steps[from + i]);
    return rc;
}

static tide_status add_atom(struct compiler *self, struct step step)
{
    self->atom = self->count;
    self->has_atom = true;
    return emit(self, step);
}

/* ---- repetition ------------------------------------------------------------------ */

/* x* */
static tide_status repeat_any(struct compiler *self, size_t at)
{
    const int32_t body = (int32_t)(self->count - at);
    TIDE_TRY(insert(self, at, (struct step){.op = OP_SPLIT, .a = 1, .b = body + 2}));
    return emit(self, (struct step){.op = OP_JUMP, .a = -(body + 1)});
}

/* x+ */
static tide_status repeat_some(struct compiler *self, size_t at)
{
    const int32_t body = (int32_t)(self->count - at);
    return emit(self, (struct step){.op = OP_SPLIT, .a = -body, .b = 1});
}

/* x? */
static tide_status repeat_once(struct compiler *self, size_t at)
{
    const int32_t body = (int32_t)(self->count - at);
    return insert(self, at, (struct step){.op = OP_SPLIT, .a = 1, .b = body + 1});
}

/* x{least,most}; `most` 0: no bound.  The code of x is at the end. */
static tide_status repeat_counted(struct compiler *self, unsigned least, unsigned most, bool open)
{
    const size_t begin = self->atom, body = self->count - begin;
    if (least == 0 && open)
        return repeat_any(self, begin);
    if (most == 0 && !open) { /* x{0}: nothing of it is left */
        self->count = begin;
        return TIDE_OK;
    }
    tide_status rc = TIDE_OK;
    for (unsigned i = 1; rc == TIDE_OK && i < least; i++)
        rc = copy_code(self, begin, body);
    if (rc == TIDE_OK && open)
        return repeat_some(self, self->count - body);
    /* The rest is optional, one inside the other: each may jump to the end of all. */
    unsigned more = least == 0 ? most - 1 : most - least;
    if (rc == TIDE_OK && least == 0)
        rc = insert(self, begin,
                    (struct step){.op = OP_SPLIT, .a = 1, .b = (int32_t)((body + 1) * most)});
    const size_t from = least == 0 ? begin + 1 : begin;
    for (; rc == TIDE_OK && more > 0; more--) {
        rc = emit(self, (struct step){.op = OP_SPLIT, .a = 1, .b = (int32_t)((body + 1) * more)});
        if (rc == TIDE_OK)
            rc = copy_code(self, from, body);
    }
    return rc;
}

static bool take_count(struct compiler *self, unsigned *count_out)
{
    unsigned count = 0;
    size_t digits = 0;
    while (digits < self->rest.bytes && self->rest.data[digits] >= '0' &&
           self->rest.data[digits] <= '9' && digits < 4)
        count = count * 10 + (unsigned)(self->rest.data[digits++] - '0');
    self->rest = (tide_text){self->rest.data + digits, self->rest.bytes - digits};
    *count_out = count;
    return digits > 0;
}

static bool take(struct compiler *self, char c)
{
    if (self->rest.bytes == 0 || self->rest.data[0] != c)
        return false;
    self->rest = (tide_text){self->rest.data + 1, self->rest.bytes - 1};
    return true;
}

/* After the '{'. */
static tide_status read_braces(struct compiler *self)
{
    unsigned least = 0, most = 0;
    const bool has_least = take_count(self, &least);
    bool open = false;
    most = least;
    if (take(self, ','))
        open = !take_count(self, &most);
    if (!has_least || !take(self, '}'))
        return refuse(self, "expected {m}, {m,} or {m,n}");
    if (least > TIDE_PATTERN_REPEAT_MAX || most > TIDE_PATTERN_REPEAT_MAX)
        return refuse(self, "repeated more than 100 times");
    if (!open && least > most)
        return refuse(self, "the first number in {m,n} is the larger one");
    return repeat_counted(self, least, most, open);
}

static tide_status read_repetition(struct compiler *self, char sign)
{
    if (!self->has_atom)
        return refuse(self, "nothing to repeat");
    self->has_atom = false; /* x** is x*: one is enough, and POSIX leaves it open */
    if (sign == '*')
        return repeat_any(self, self->atom);
    if (sign == '+')
        return repeat_some(self, self->atom);
    if (sign == '?')
        return repeat_once(self, self->atom);
    return read_braces(self);
}

/* ---- sets ------------------------------------------------------------------------ */

static tide_status add_range(struct compiler *self, uint32_t first, uint32_t last)
{
    if (self->ranges_count == RANGES_MAX)
        return refuse(self, "the pattern is too large");
    self->ranges[self->ranges_count++] = (struct range){first, last};
    return TIDE_OK;
}

struct class
{
    const char *name;
    char pairs[11]; /* first and last of each range */
};

static tide_status add_class(struct compiler *self, tide_text name)
{
    static const struct class classes[] = {
        {"alpha", "AZaz"},    {"digit", "09"},      {"alnum", "09AZaz"}, {"upper", "AZaz"},
        {"lower", "AZaz"},    {"space", "\t\r  "},  {"blank", "\t\t  "}, {"punct", "!/:@[`{~"},
        {"xdigit", "09AFaf"}, {"word", "09AZaz__"},
    };
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++) {
        if (!tide_text_equal(name, tide_text_of(classes[i].name)))
            continue;
        tide_status rc = TIDE_OK;
        for (const char *pair = classes[i].pairs; rc == TIDE_OK && pair[0] != '\0'; pair += 2)
            rc = add_range(self, (unsigned char)pair[0], (unsigned char)pair[1]);
        return rc;
    }
    return refuse(self, "no such class of characters");
}

/* "[:alpha:]", at its '['; false: it is none. */
static bool take_class_name(struct compiler *self, tide_text *name_out)
{
    const tide_text rest = self->rest;
    if (rest.bytes < 4 || rest.data[0] != '[' || rest.data[1] != ':')
        return false;
    const char *end = memmem(rest.data + 2, rest.bytes - 2, ":]", 2);
    if (end == NULL)
        return false;
    const size_t bytes = (size_t)(end - rest.data);
    *name_out = (tide_text){rest.data + 2, bytes - 2};
    self->rest = (tide_text){rest.data + bytes + 2, rest.bytes - bytes - 2};
    return true;
}

static const char *escape_class(char c)
{
    switch (c | 0x20) {
    case 'd':
        return "digit";
    case 'w':
        return "word";
    case 's':
        return "space";
    default:
        return NULL;
    }
}

/* One member of a set: a class, a character or a range. */
static tide_status read_member(struct compiler *self)
{
    tide_text name = TIDE_TEXT_NONE;
    if (take_class_name(self, &name))
        return add_class(self, name);
    if (self->rest.data[0] == '\\' && self->rest.bytes > 1) {
        (void)take(self, '\\');
        const char *class = escape_class(self->rest.data[0]);
        if (class != NULL && self->rest.data[0] >= 'a') {
            (void)tide_fold_take_exact(&self->rest);
            return add_class(self, tide_text_of(class));
        }
    }
    const uint32_t first = tide_fold_take_exact(&self->rest);
    uint32_t last = first;
    if (self->rest.bytes > 1 && self->rest.data[0] == '-' && self->rest.data[1] != ']') {
        (void)take(self, '-');
        (void)(self->rest.data[0] == '\\' && self->rest.bytes > 1 && take(self, '\\'));
        last = tide_fold_take_exact(&self->rest);
    }
    if (last < first)
        return refuse(self, "a range in [] runs backwards");
    return add_range(self, first, last);
}

/* After the '['. */
static tide_status read_set(struct compiler *self)
{
    struct step step = {.op = OP_SET, .code = (uint32_t)self->ranges_count};
    step.negated = take(self, '^');
    for (bool first = true; first || !take(self, ']'); first = false) {
        if (self->rest.bytes == 0)
            return refuse(self, "a [ is not closed");
        TIDE_TRY(read_member(self));
    }
    step.ranges = (uint32_t)self->ranges_count - step.code;
    return add_atom(self, step);
}

/* ---- reading --------------------------------------------------------------------- */

static tide_status read_escape(struct compiler *self)
{
    if (self->rest.bytes == 0)
        return refuse(self, "the pattern ends in a backslash");
    const char c = self->rest.data[0];
    const char *class = escape_class(c);
    if (c >= '1' && c <= '9')
        return refuse(self, "references to groups are not supported");
    if (class != NULL) {
        (void)tide_fold_take_exact(&self->rest);
        struct step step = {.op = OP_SET, .code = (uint32_t)self->ranges_count};
        step.negated = c < 'a';
        TIDE_TRY(add_class(self, tide_text_of(class)));
        step.ranges = (uint32_t)self->ranges_count - step.code;
        return add_atom(self, step);
    }
    if (c == 'b' || c == 'B') {
        (void)tide_fold_take_exact(&self->rest);
        self->has_atom = false;
        return emit(self, (struct step){.op = c == 'b' ? OP_EDGE : OP_NO_EDGE});
    }
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '0')
        return refuse(self, "unknown escape; a letter stands for itself without a backslash");
    return add_atom(self, (struct step){.op = OP_CHAR, .code = tide_fold_take(&self->rest)});
}

static tide_status open_group(struct compiler *self)
{
    if (take(self, '?') && !take(self, ':'))
        return refuse(self, "groups that begin with (? are not supported");
    if (self->depth == TIDE_PATTERN_DEEP)
        return refuse(self, "groups are nested too deeply");
    self->groups[++self->depth] = (struct group){self->count, self->count, self->jumps_count};
    self->has_atom = false;
    return TIDE_OK;
}

/* The code before: SPLIT to this alternative or to the next, and a jump from its end to that of
 * the group, which is not known yet. */
static tide_status next_alternative(struct compiler *self)
{
    struct group *group = &self->groups[self->depth];
    const int32_t body = (int32_t)(self->count - group->alternative);
    TIDE_TRY(
        insert(self, group->alternative, (struct step){.op = OP_SPLIT, .a = 1, .b = body + 2}));
    TIDE_ASSERT(self->jumps_count < TIDE_PATTERN_BYTES_MAX); /* one for each '|' */
    self->jumps[self->jumps_count++] = self->count;
    TIDE_TRY(emit(self, (struct step){.op = OP_JUMP}));
    group->alternative = self->count;
    self->has_atom = false;
    return TIDE_OK;
}

static void end_group(struct compiler *self)
{
    const struct group *group = &self->groups[self->depth];
    while (self->jumps_count > group->jumps) {
        const size_t at = self->jumps[--self->jumps_count];
        self->steps[at].a = (int32_t)(self->count - at);
    }
    self->atom = group->begin;
    self->has_atom = true;
}

static tide_status read_next(struct compiler *self)
{
    const char c = self->rest.data[0];
    if (strchr("\\[]().*+?{|^$", c) == NULL)
        return add_atom(self, (struct step){.op = OP_CHAR, .code = tide_fold_take(&self->rest)});
    self->rest = (tide_text){self->rest.data + 1, self->rest.bytes - 1};
    switch (c) {
    case '\\':
        return read_escape(self);
    case '[':
        return read_set(self);
    case '(':
        return open_group(self);
    case ')':
        if (self->depth == 0)
            return refuse(self, "a ) without a (");
        end_group(self);
        self->depth--;
        return TIDE_OK;
    case '|':
        return next_alternative(self);
    case '^':
    case '$':
        self->has_atom = false;
        return emit(self, (struct step){.op = c == '^' ? OP_FRONT : OP_END});
    case '.':
        return add_atom(self, (struct step){.op = OP_ANY});
    case ']':
        return add_atom(self, (struct step){.op = OP_CHAR, .code = ']'});
    default:
        return read_repetition(self, c);
    }
}

static tide_status compile(struct compiler *self)
{
    if (self->source.bytes > TIDE_PATTERN_BYTES_MAX)
        return tide_error_set(self->err, TIDE_INVALID, "the pattern is longer than %d bytes",
                              TIDE_PATTERN_BYTES_MAX);
    if (self->source.bytes > 0 && memchr(self->source.data, '\0', self->source.bytes) != NULL)
        return tide_error_set(self->err, TIDE_INVALID, "the pattern contains a zero byte");
    tide_status rc = TIDE_OK;
    while (rc == TIDE_OK && self->rest.bytes > 0)
        rc = read_next(self);
    if (rc == TIDE_OK && self->depth > 0)
        rc = refuse(self, "a ( is not closed");
    if (rc != TIDE_OK)
        return rc;
    end_group(self);
    return emit(self, (struct step){.op = OP_FOUND});
}

static tide_status keep(const struct compiler *compiler, tide_arena *arena,
                        const tide_pattern **pattern_out)
{
    const size_t steps_bytes = compiler->count * sizeof compiler->steps[0];
    const size_t ranges_bytes = compiler->ranges_count * sizeof compiler->ranges[0];
    tide_pattern *pattern = tide_arena_take(arena, sizeof *pattern);
    struct step *steps = tide_arena_take(arena, steps_bytes);
    struct range *ranges = tide_arena_take(arena, ranges_bytes + 1);
    if (pattern == NULL || steps == NULL || ranges == NULL)
        return tide_error_set(compiler->err, TIDE_NO_MEMORY, "out of memory");
    memcpy(steps, compiler->steps, steps_bytes);
    memcpy(ranges, compiler->ranges, ranges_bytes);
    *pattern = (tide_pattern){steps, compiler->count, ranges};
    *pattern_out = pattern;
    return TIDE_OK;
}

tide_status tide_pattern_new(tide_text source, tide_arena *arena, const tide_pattern **pattern_out,
                             tide_error *err)
{
    TIDE_ASSERT(pattern_out != NULL);
    struct compiler *compiler = tide_mem_new(arena->mem, sizeof *compiler);
    if (compiler == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "out of memory");
    compiler->source = compiler->rest = source;
    compiler->err = err;
    tide_status rc = compile(compiler);
    if (rc == TIDE_OK)
        rc = keep(compiler, arena, pattern_out);
    tide_mem_free(arena->mem, compiler, sizeof *compiler);
    return rc;
}

/* ---- searching ------------------------------------------------------------------- */

/* The threads that wait at one place of the text: each step at most once. */
struct threads {
    uint16_t at[TIDE_PATTERN_STEPS_MAX];
    size_t count;
    bool has[TIDE_PATTERN_STEPS_MAX];
};

/* Where in the text a search is. */
struct place {
    bool front, end;
    bool word_before, word_after;
};

static bool is_word(uint32_t code)
{
    return code == '_' || (code >= '0' && code <= '9') || (code >= 'a' && code <= 'z') ||
           (code >= 'A' && code <= 'Z');
}

static bool holds(op asked, const struct place *place)
{
    switch (asked) {
    case OP_FRONT:
        return place->front;
    case OP_END:
        return place->end;
    case OP_EDGE:
        return place->word_before != place->word_after;
    case OP_NO_EDGE:
        return place->word_before == place->word_after;
    default:
        return false;
    }
}

static void push(struct threads *threads, uint16_t *stack, size_t *depth, size_t at)
{
    TIDE_ASSERT(at < TIDE_PATTERN_STEPS_MAX);
    if (threads->has[at])
        return;
    threads->has[at] = true;
    stack[(*depth)++] = (uint16_t)at;
}

/* Adds a thread, and all that it reaches without a character.  true: the pattern is found. */
static bool add_thread(const tide_pattern *pattern, struct threads *threads,
                       const struct place *place, size_t first)
{
    uint16_t stack[TIDE_PATTERN_STEPS_MAX];
    size_t depth = 0;
    push(threads, stack, &depth, first);
    while (depth > 0) {
        const size_t at = stack[--depth];
        const struct step *step = &pattern->steps[at];
        switch (step->op) {
        case OP_FOUND:
            return true;
        case OP_SPLIT:
            push(threads, stack, &depth, (size_t)((int32_t)at + step->b));
            push(threads, stack, &depth, (size_t)((int32_t)at + step->a));
            break;
        case OP_JUMP:
            push(threads, stack, &depth, (size_t)((int32_t)at + step->a));
            break;
        case OP_FRONT:
        case OP_END:
        case OP_EDGE:
        case OP_NO_EDGE:
            if (holds(step->op, place))
                push(threads, stack, &depth, at + 1);
            break;
        default:
            threads->at[threads->count++] = (uint16_t)at;
        }
    }
    return false;
}

static bool in_ranges(const tide_pattern *pattern, const struct step *step, uint32_t code)
{
    for (uint32_t i = 0; i < step->ranges; i++) {
        const struct range *range = &pattern->ranges[step->code + i];
        if (code >= range->first && code <= range->last)
            return true;
    }
    return false;
}

static bool fits(const tide_pattern *pattern, const struct step *step, uint32_t code)
{
    const uint32_t lower = tide_fold_code(code);
    if (step->op == OP_CHAR)
        return lower == step->code;
    if (step->op == OP_ANY)
        return true;
    return (in_ranges(pattern, step, lower) || in_ranges(pattern, step, tide_fold_upper(code))) !=
           step->negated;
}

static struct place place_at(tide_text rest, bool front, bool word_before)
{
    struct place place = {.front = front, .end = rest.bytes == 0, .word_before = word_before};
    place.word_after = rest.bytes > 0 && is_word(tide_fold_take_exact(&rest));
    return place;
}

static void threads_clear(struct threads *threads)
{
    threads->count = 0;
    memset(threads->has, 0, sizeof threads->has);
}

bool tide_pattern_search(const tide_pattern *pattern, tide_text text)
{
    struct threads both[2];
    struct threads *now = &both[0], *next = &both[1];
    if (text.bytes > TIDE_PATTERN_TEXT_BYTES_MAX)
        text.bytes = TIDE_PATTERN_TEXT_BYTES_MAX;
    struct place place = place_at(text, true, false);
    threads_clear(now);
    for (;;) {
        if (add_thread(pattern, now, &place, 0))
            return true;
        if (text.bytes == 0)
            return false;
        const uint32_t code = tide_fold_take_exact(&text);
        place = place_at(text, false, is_word(code));
        threads_clear(next);
        for (size_t i = 0; i < now->count; i++) {
            const size_t at = now->at[i];
            if (fits(pattern, &pattern->steps[at], code) &&
                add_thread(pattern, next, &place, at + 1))
                return true;
        }
        struct threads *swap = now;
        now = next;
        next = swap;
    }
}
