/* address.c - tests one header for the address or domain that a query names.
 *
 * The index has an address as a row of words, so that from:bob@example.com would also find
 * jim.bob@example.com and bob@example.com.au.  Those rows are candidates only: the header decides. */
#include "mail/search/plan.h"

#include <strings.h>

/* A list of addresses being read.  A mark that is never closed is looked for once, so that the whole
 * is linear. */
struct entries {
    tide_text rest;
    bool no_quote, no_angle; /* none closes any more */
};

/* One entry of a list of addresses. */
struct entry {
    tide_text before; /* its name, and its address up to the '@' */
    tide_text local, domain;
};

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static tide_text trimmed(tide_text text)
{
    while (text.bytes > 0 && is_blank(text.data[0])) {
        text.data++;
        text.bytes--;
    }
    while (text.bytes > 0 && is_blank(text.data[text.bytes - 1]))
        text.bytes--;
    return text;
}

static bool same(tide_text a, tide_text b)
{
    return a.bytes == b.bytes && (a.bytes == 0 || strncasecmp(a.data, b.data, a.bytes) == 0);
}

/* Behind the quotation mark that closes the one here; where none does, behind this one. */
static size_t quoted_end(struct entries *entries, size_t at)
{
    const tide_text text = entries->rest;
    for (size_t end = at + 1; end < text.bytes && !entries->no_quote; end++) {
        if (text.data[end] == '"')
            return end + 1;
        end += text.data[end] == '\\';
    }
    entries->no_quote = true;
    return at + 1;
}

/* The same for "<", with what is in it. */
static size_t angle_end(struct entries *entries, size_t at, tide_text *angle)
{
    const char *begin = entries->rest.data + at;
    const char *close = entries->no_angle ? NULL : memchr(begin, '>', entries->rest.bytes - at);
    entries->no_angle = close == NULL;
    if (close == NULL)
        return at + 1;
    *angle = (tide_text){begin + 1, (size_t)(close - begin) - 1};
    return at + (size_t)(close - begin) + 1;
}

static struct entry entry_of(tide_text all, tide_text address)
{
    const char *sign = address.bytes == 0 ? NULL : memrchr(address.data, '@', address.bytes);
    if (sign == NULL)
        return (struct entry){.before = all};
    const size_t local = (size_t)(sign - address.data);
    return (struct entry){.before = {all.data, (size_t)(sign - all.data)},
                          .local = {address.data, local},
                          .domain = {sign + 1, address.bytes - local - 1}};
}

/* Takes the next entry: as mime/address.h writes them, '"Lee, Ann" <ann@x>, Team: bob@y', or as a raw
 * header has them.  An entry without an address has no domain. */
static bool entry_next(struct entries *entries, struct entry *entry)
{
    const tide_text text = entries->rest;
    size_t begin = 0, at = 0;
    tide_text angle = TIDE_TEXT_NONE; /* the last one counts */
    if (text.bytes == 0)
        return false;
    while (at < text.bytes && text.data[at] != ',' && text.data[at] != ';') {
        const char c = text.data[at];
        if (c == ':' && memchr(text.data + begin, '@', at - begin) == NULL)
            begin = at + 1; /* behind the name of a group */
        at = c == '<'   ? angle_end(entries, at, &angle)
             : c == '"' ? quoted_end(entries, at)
                        : at + 1;
    }
    const tide_text all = {text.data + begin, at - begin};
    *entry = entry_of(all, trimmed(angle.data != NULL ? angle : all));
    at += at < text.bytes;
    entries->rest = (tide_text){text.data + at, text.bytes - at};
    return true;
}

/* Whether the domain is this one, or one under it. */
static bool is_under(tide_text domain, tide_text wanted)
{
    if (domain.bytes <= wanted.bytes)
        return same(domain, wanted);
    const size_t more = domain.bytes - wanted.bytes;
    return domain.data[more - 1] == '.' &&
           same((tide_text){domain.data + more, wanted.bytes}, wanted);
}

static tide_status entry_fits(struct tide_searching *searching, const struct tide_plan *plan,
                              const struct entry *entry, tide_buf *sequence, bool *fits_out)
{
    const char *sign = memrchr(plan->address.data, '@', plan->address.bytes);
    if (sign == NULL) {
        *fits_out = is_under(entry->domain, plan->address);
        if (*fits_out)
            return TIDE_OK;
        TIDE_TRY(tide_words_sequence(&searching->words, entry->before, sequence, searching->err));
        *fits_out = tide_sequence_contains(tide_buf_text(sequence), plan->sequence);
        return TIDE_OK;
    }
    const size_t local = (size_t)(sign - plan->address.data);
    const tide_text domain = {sign + 1, plan->address.bytes - local - 1};
    *fits_out = same(entry->domain, domain) &&
                (local == 0 || same(entry->local, (tide_text){plan->address.data, local}));
    return TIDE_OK;
}

tide_status tide_header_text_holds(struct tide_searching *searching, const struct tide_plan *plan,
                                   tide_text text, bool *holds_out)
{
    tide_auto_buf sequence = tide_buf_in(searching->mem, 64 << 20);
    struct entries entries = {.rest = text};
    struct entry entry;
    *holds_out = false;
    if (plan->address.bytes == 0) {
        TIDE_TRY(tide_words_sequence(&searching->words, text, &sequence, searching->err));
        *holds_out = tide_sequence_contains(tide_buf_text(&sequence), plan->sequence);
        return TIDE_OK;
    }
    while (!*holds_out && entry_next(&entries, &entry))
        TIDE_TRY(entry_fits(searching, plan, &entry, &sequence, holds_out));
    return TIDE_OK;
}
