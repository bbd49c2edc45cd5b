/* snippet.c - makes a snippet: the piece of a text that shows the matches.
 *
 * The text is split into words as in the index; phrases are found as runs of words.  The snippet
 * shows the place with the most different phrases, the first of them if there are several. */
#include "mail/search/plan.h"

#include "base/check.h"
#include "base/json.h"

enum {
    PHRASES_MAX = 16,
    MARKS_MAX = 4096, /* remembered hits */
    LEAD_BYTES = 40,  /* shown before the first hit */
    RECENT_BYTES = 4096,
};

struct mark {
    size_t begin, end; /* in the text */
    unsigned phrase;
};

/* The last words, as a sequence (plan.h), and where each began: a phrase is found when the sequence
 * ends with it. */
struct looking {
    struct tide_searching *searching;
    size_t phrases;
    tide_text sequences[PHRASES_MAX];
    size_t counts[PHRASES_MAX]; /* number of words of each */
    const struct tide_form *forms[PHRASES_MAX];
    bool prefixes[PHRASES_MAX];
    char recent[RECENT_BYTES];
    size_t recent_bytes;
    size_t begins[RECENT_BYTES]; /* of the words in `recent` */
    size_t words;
    struct mark *marks;
    size_t marks_count;
    unsigned seen; /* phrases, as bits */
};

static size_t words_in(tide_text sequence)
{
    size_t count = 0;
    for (size_t i = 1; i < sequence.bytes; i++)
        count += sequence.data[i] == TIDE_WORD_GAP;
    return count;
}

/* Drops the older half of the words. */
static void recent_halve(struct looking *looking)
{
    size_t at = looking->recent_bytes / 2;
    while (at < looking->recent_bytes && looking->recent[at] != TIDE_WORD_GAP)
        at++;
    const size_t kept = words_in((tide_text){looking->recent + at, looking->recent_bytes - at});
    memmove(looking->recent, looking->recent + at, looking->recent_bytes - at);
    looking->recent_bytes -= at;
    memmove(looking->begins, looking->begins + (looking->words - kept),
            kept * sizeof looking->begins[0]);
    looking->words = kept;
}

static bool ends_with(const struct looking *looking, tide_text sequence)
{
    return sequence.bytes <= looking->recent_bytes &&
           memcmp(looking->recent + looking->recent_bytes - sequence.bytes, sequence.data,
                  sequence.bytes) == 0;
}

/* The last word continues where the sequence ends. */
static bool ends_with_prefix(const struct looking *looking, tide_text sequence, size_t word_bytes)
{
    size_t rest = sequence.bytes;
    while (rest > 0 && sequence.data[rest - 1] != TIDE_WORD_GAP)
        rest--;
    const size_t begin = looking->recent_bytes - 1 - word_bytes; /* of the last word */
    return rest <= begin && sequence.bytes - rest <= word_bytes &&
           memcmp(looking->recent + begin - rest, sequence.data, sequence.bytes) == 0;
}

static bool is_found(const struct looking *looking, size_t phrase, tide_text word)
{
    if (looking->forms[phrase] != NULL)
        return tide_form_is(looking->searching, looking->forms[phrase], word);
    if (looking->prefixes[phrase])
        return ends_with_prefix(looking, looking->sequences[phrase], word.bytes);
    return ends_with(looking, looking->sequences[phrase]);
}

static bool look(void *arg, tide_text word, size_t begin, size_t end)
{
    struct looking *looking = arg;
    if (word.bytes + 2 > RECENT_BYTES / 4) { /* longer than any searched word */
        looking->recent_bytes = 0;
        looking->words = 0;
        return true;
    }
    if (looking->recent_bytes + word.bytes + 2 > RECENT_BYTES)
        recent_halve(looking);
    if (looking->recent_bytes == 0)
        looking->recent[looking->recent_bytes++] = TIDE_WORD_GAP;
    memcpy(looking->recent + looking->recent_bytes, word.data, word.bytes);
    looking->recent_bytes += word.bytes;
    looking->recent[looking->recent_bytes++] = TIDE_WORD_GAP;
    looking->begins[looking->words++] = begin;
    for (unsigned i = 0; i < looking->phrases; i++) {
        if (looking->marks_count < MARKS_MAX && is_found(looking, i, word)) {
            looking->marks[looking->marks_count++] =
                (struct mark){looking->begins[looking->words - looking->counts[i]], end, i};
            looking->seen |= 1u << i;
        }
    }
    return looking->marks_count < MARKS_MAX;
}

static void looking_add(struct looking *looking, const struct tide_phrase *phrase,
                        tide_text sequence)
{
    const bool prefix = phrase->term->prefix;
    if (looking->phrases == PHRASES_MAX ||
        sequence.bytes > RECENT_BYTES / 4) /* at least this much is always remembered */
        return;
    looking->sequences[looking->phrases] = sequence;
    looking->forms[looking->phrases] = phrase->form;
    looking->prefixes[looking->phrases] = prefix;
    looking->counts[looking->phrases] = words_in(sequence) + (prefix ? 1 : 0);
    looking->phrases++;
}

static void looking_start(struct looking *looking, struct tide_searching *searching)
{
    looking->searching = searching;
    const struct tide_phrase *phrase = searching->plan.phrases;
    for (; phrase != NULL; phrase = phrase->next) {
        looking_add(looking, phrase, phrase->sequence);
        if (phrase->other.bytes > 0)
            looking_add(looking, phrase, phrase->other);
    }
}

/* The first mark of the section with the most different phrases. */
static size_t best_mark(const struct looking *looking)
{
    size_t best = 0;
    int best_count = 0;
    for (size_t i = 0; i < looking->marks_count; i++) {
        unsigned seen = 0;
        for (size_t j = i;
             j < looking->marks_count && j < i + 64 &&
             looking->marks[j].end < looking->marks[i].begin + TIDE_SNIPPET_BYTES - LEAD_BYTES;
             j++)
            seen |= 1u << looking->marks[j].phrase;
        const int count = __builtin_popcount(seen);
        if (count > best_count) {
            best_count = count;
            best = i;
        }
        if (seen == looking->seen)
            break;
    }
    return best;
}

/* ---- writing ---- */

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* The next character start at or after `at`, after a blank if one is near. */
static size_t start_near(tide_text text, size_t at)
{
    if (at == 0)
        return 0;
    for (size_t i = at; i < text.bytes && i < at + LEAD_BYTES / 2; i++)
        if (is_blank(text.data[i]))
            return i + 1;
    while (at < text.bytes && ((unsigned char)text.data[at] & 0xc0) == 0x80)
        at++;
    return at;
}

static size_t end_near(tide_text text, size_t at)
{
    if (at >= text.bytes)
        return text.bytes;
    for (size_t i = 0; i < LEAD_BYTES / 2; i++)
        if (is_blank(text.data[at - i]))
            return at - i;
    while (at > 0 && ((unsigned char)text.data[at] & 0xc0) == 0x80)
        at--;
    return at;
}

struct writer {
    tide_buf *out;
    bool blank; /* a blank is pending */
    size_t start;
    tide_status rc;
};

static void put(struct writer *writer, const char *bytes, size_t count)
{
    if (writer->rc == TIDE_OK && writer->blank && writer->out->bytes > writer->start)
        writer->rc = tide_buf_add(writer->out, " ", 1);
    writer->blank = false;
    if (writer->rc == TIDE_OK)
        writer->rc = tide_buf_add(writer->out, bytes, count);
}

/* Writes text on one line: runs of blanks become one, and so do control characters, so that only
 * our own marks look like marks. */
static void put_text(struct writer *writer, tide_text text)
{
    for (size_t at = 0; at < text.bytes;) {
        size_t end = at;
        while (end < text.bytes && (unsigned char)text.data[end] > 0x20 && text.data[end] != 0x7f)
            end++;
        if (end > at)
            put(writer, text.data + at, end - at);
        if (end < text.bytes)
            writer->blank = true;
        at = end + 1;
    }
}

/* Writes text[begin, end) with marked parts between \x01 and \x02; marks that touch or overlap
 * become one. */
static void put_marked(struct writer *writer, const struct looking *looking, tide_text text,
                       size_t begin, size_t end)
{
    size_t at = begin;
    for (size_t i = 0; i < looking->marks_count;) {
        size_t first = looking->marks[i].begin, last = looking->marks[i].end;
        for (i++; i < looking->marks_count && looking->marks[i].begin <= last; i++) {
            first = looking->marks[i].begin < first ? looking->marks[i].begin : first;
            last = looking->marks[i].end > last ? looking->marks[i].end : last;
        }
        if (last > end || last <= at)
            continue;
        first = first > at ? first : at;
        put_text(writer, (tide_text){text.data + at, first - at});
        put(writer, "\x01", 1);
        put_text(writer, (tide_text){text.data + first, last - first});
        writer->blank = false;
        put(writer, "\x02", 1);
        at = last;
    }
    put_text(writer, (tide_text){text.data + at, end - at});
}

static tide_status write_snippet(const struct looking *looking, tide_text text, tide_text whole,
                                 tide_buf *out)
{
    size_t begin = 0;
    size_t marked = 0; /* end of the first mark: it is shown even if it is long */
    if (looking->marks_count > 0) {
        const struct mark *mark = &looking->marks[best_mark(looking)];
        const size_t lead = mark->begin > LEAD_BYTES ? mark->begin - LEAD_BYTES : 0;
        begin = start_near(text, lead);
        begin = begin <= mark->begin ? begin : mark->begin;
        marked = mark->end;
    }
    size_t end = begin + TIDE_SNIPPET_BYTES;
    end = end_near(text, end > marked ? end : marked);
    end = end > marked ? end : marked;
    struct writer writer = {.out = out, .start = out->bytes, .rc = TIDE_OK};
    if (begin > 0)
        put(&writer, "\xe2\x80\xa6", 3);
    put_marked(&writer, looking, text, begin, end);
    writer.blank = false;
    if (end < whole.bytes)
        put(&writer, "\xe2\x80\xa6", 3);
    return writer.rc;
}

tide_status tide_search_snippet(struct tide_searching *searching, tide_text text, tide_buf *out)
{
    const tide_text whole = text;
    if (text.bytes > TIDE_SNIPPET_LOOK_BYTES)
        text.bytes = end_near(text, TIDE_SNIPPET_LOOK_BYTES);
    tide_mem *mem = searching->mem;
    struct looking *looking = tide_mem_new(mem, sizeof *looking);
    tide_status rc = looking == NULL ? TIDE_NO_MEMORY : TIDE_OK;
    if (rc == TIDE_OK) {
        looking_start(looking, searching);
        looking->marks = tide_mem_array(mem, MARKS_MAX, sizeof *looking->marks);
        rc = looking->marks == NULL ? TIDE_NO_MEMORY : TIDE_OK;
    }
    if (rc == TIDE_OK && looking->phrases > 0)
        rc = tide_words_each(&searching->words, text, look, looking, searching->err);
    if (rc == TIDE_OK)
        rc = write_snippet(looking, text, whole, out);
    if (looking != NULL)
        tide_mem_free(mem, looking->marks,
                      looking->marks == NULL ? 0 : MARKS_MAX * sizeof *looking->marks);
    tide_mem_free(mem, looking, sizeof *looking);
    return rc == TIDE_OK ? rc : tide_error_set(searching->err, rc, "no memory for a snippet");
}
