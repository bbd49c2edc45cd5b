/* forms.c - the other forms of a word: invoice finds invoices and invoicing (M20).
 *
 * The index has words as they were written, and nothing else: stems in it would make it half as large
 * again, would have to be added to every archive that exists, and would lose the exact word.  Instead
 * each shard is asked which words it has that begin like the searched one, and those with the same
 * stem are searched as well.  FTS5's vocabulary gives one row for each place of a word, so a frequent
 * word is skipped after some rows; a scan costs the distinct words of a narrow range.
 *
 * A stem belongs to a language.  English always counts.  Another language that is written in Latin
 * letters counts in the shards that have a message with all of its function words below; of other
 * scripts the letters say which language it is.  So by the message's language, a year at a time. */
#include "mail/search/plan.h"

#include "base/check.h"
#include "base/json.h"

#include <libstemmer.h>

enum {
    WORD_BYTES_MAX = 64,  /* longer ones are no words of a language */
    WORD_LETTERS_MIN = 3, /* shorter ones have no other forms */
    START_LETTERS = 3,    /* a narrower range of words than this is cheap to read */
    SAME_ROWS_MAX = 400,  /* rows of one word before a new search, which costs as much */
};

/* The tables of these scripts begin and end here; the rest has no stemmer, or no spaces. */
typedef enum script {
    SCRIPT_NONE,
    SCRIPT_LATIN,
    SCRIPT_GREEK,
    SCRIPT_CYRILLIC,
    SCRIPT_ARMENIAN,
} script;

/* Function words are as in the index: without accents.  No two languages have the same four. */
static const struct {
    const char *name; /* libstemmer's */
    script script;
    const char *proof; /* a MATCH expression; NULL: the script is enough */
} languages[] = {
    {"english", SCRIPT_LATIN, NULL},
    {"german", SCRIPT_LATIN, "{text} : (\"und\" AND \"nicht\" AND \"mit\" AND \"ist\")"},
    {"french", SCRIPT_LATIN, "{text} : (\"vous\" AND \"pour\" AND \"avec\" AND \"les\")"},
    {"spanish", SCRIPT_LATIN, "{text} : (\"para\" AND \"los\" AND \"una\" AND \"por\")"},
    {"portuguese", SCRIPT_LATIN, "{text} : (\"para\" AND \"nao\" AND \"uma\" AND \"com\")"},
    {"italian", SCRIPT_LATIN, "{text} : (\"che\" AND \"per\" AND \"della\" AND \"sono\")"},
    {"dutch", SCRIPT_LATIN, "{text} : (\"het\" AND \"een\" AND \"niet\" AND \"van\")"},
    {"swedish", SCRIPT_LATIN, "{text} : (\"och\" AND \"att\" AND \"inte\" AND \"som\")"},
    {"danish", SCRIPT_LATIN, "{text} : (\"og\" AND \"ikke\" AND \"af\" AND \"det\")"},
    {"norwegian", SCRIPT_LATIN, "{text} : (\"og\" AND \"ikke\" AND \"av\" AND \"det\")"},
    {"finnish", SCRIPT_LATIN, "{text} : (\"ja\" AND \"etta\" AND \"ei\" AND \"on\")"},
    {"hungarian", SCRIPT_LATIN, "{text} : (\"hogy\" AND \"nem\" AND \"egy\" AND \"es\")"},
    {"romanian", SCRIPT_LATIN, "{text} : (\"este\" AND \"pentru\" AND \"care\" AND \"si\")"},
    {"turkish", SCRIPT_LATIN, "{text} : (\"ve\" AND \"bir\" AND \"icin\" AND \"bu\")"},
    {"catalan", SCRIPT_LATIN, "{text} : (\"amb\" AND \"per\" AND \"que\" AND \"els\")"},
    {"greek", SCRIPT_GREEK, NULL},
    {"russian", SCRIPT_CYRILLIC, NULL},
    {"armenian", SCRIPT_ARMENIAN, NULL},
};
enum { LANGUAGES = sizeof languages / sizeof languages[0] };
_Static_assert((int)LANGUAGES <= (int)TIDE_LANGUAGES_MAX, "room for every stemmer");

/* ---- letters ---- */

static uint32_t letter_at(tide_text text, size_t *at)
{
    const unsigned char *data = (const unsigned char *)text.data + *at;
    size_t bytes = tide_utf8_bytes((tide_text){text.data + *at, text.bytes - *at});
    bytes = bytes == 0 ? 1 : bytes;
    *at += bytes;
    uint32_t c = bytes == 1 ? data[0] : data[0] & (0x7fu >> bytes);
    for (size_t i = 1; i < bytes; i++)
        c = c << 6 | (data[i] & 0x3fu);
    return c;
}

static script script_of(uint32_t c)
{
    if ((c >= 'a' && c <= 'z') || (c >= 0xdf && c <= 0x24f) || (c >= 0x1e00 && c <= 0x1eff))
        return SCRIPT_LATIN;
    if ((c >= 0x370 && c <= 0x3ff) || (c >= 0x1f00 && c <= 0x1fff))
        return SCRIPT_GREEK;
    if (c >= 0x400 && c <= 0x52f)
        return SCRIPT_CYRILLIC;
    return c >= 0x531 && c <= 0x587 ? SCRIPT_ARMENIAN : SCRIPT_NONE;
}

/* The script of all its letters; SCRIPT_NONE: it has several, digits, or too few letters. */
static script word_script(tide_text word)
{
    if (word.bytes > WORD_BYTES_MAX)
        return SCRIPT_NONE;
    script first = SCRIPT_NONE;
    size_t letters = 0;
    for (size_t at = 0; at < word.bytes; letters++) {
        const script here = script_of(letter_at(word, &at));
        if (here == SCRIPT_NONE || (letters > 0 && here != first))
            return SCRIPT_NONE;
        first = here;
    }
    return letters < WORD_LETTERS_MIN ? SCRIPT_NONE : first;
}

bool tide_form_can_vary(tide_text word)
{
    return word_script(word) != SCRIPT_NONE;
}

/* ---- stems ---- */

void tide_stems_done(tide_stems *stems)
{
    for (size_t i = 0; i < LANGUAGES; i++)
        if (stems->list[i] != NULL)
            sb_stemmer_delete(stems->list[i]);
    *stems = (tide_stems){.seen = 0};
}

/* The text is the stemmer's, until its next word.  Empty: no memory, or an invalid word. */
static tide_text stem_of(tide_stems *stems, size_t language, tide_text word)
{
    if (stems->list[language] == NULL)
        stems->list[language] = sb_stemmer_new(languages[language].name, "UTF_8");
    struct sb_stemmer *stemmer = stems->list[language];
    if (stemmer == NULL || word.bytes > WORD_BYTES_MAX)
        return TIDE_TEXT_NONE;
    const sb_symbol *stem = sb_stemmer_stem(stemmer, (const sb_symbol *)word.data, (int)word.bytes);
    if (stem == NULL)
        return TIDE_TEXT_NONE;
    return (tide_text){(const char *)stem, (size_t)sb_stemmer_length(stemmer)};
}

/* Stems of one word, in the languages of a set. */
struct stemmed {
    uint32_t languages;
    size_t bytes[LANGUAGES];
    char stems[LANGUAGES][WORD_BYTES_MAX * 2];
};

static void stem_all(tide_stems *stems, tide_text word, uint32_t set, struct stemmed *out)
{
    const script letters = word_script(word);
    out->languages = 0;
    for (size_t i = 0; i < LANGUAGES; i++) {
        if ((set & 1u << i) == 0 || languages[i].script != letters)
            continue;
        const tide_text stem = stem_of(stems, i, word);
        if (stem.bytes == 0 || stem.bytes > sizeof out->stems[i])
            continue;
        memcpy(out->stems[i], stem.data, stem.bytes);
        out->bytes[i] = stem.bytes;
        out->languages |= 1u << i;
    }
}

static bool same_stem(tide_stems *stems, const struct stemmed *searched, tide_text word)
{
    for (size_t i = 0; i < LANGUAGES; i++) {
        if ((searched->languages & 1u << i) == 0)
            continue;
        const tide_text stem = stem_of(stems, i, word);
        if (tide_text_equal(stem, (tide_text){searched->stems[i], searched->bytes[i]}))
            return true;
    }
    return false;
}

bool tide_form_is(struct tide_searching *searching, const struct tide_form *form, tide_text word)
{
    if (tide_text_equal(form->word, word))
        return true;
    const script letters = word_script(word);
    if (letters == SCRIPT_NONE || letters != word_script(form->word))
        return false;
    struct stemmed searched;
    stem_all(&searching->stems, form->word, searching->stems.seen | 1u, &searched);
    return same_stem(&searching->stems, &searched, word);
}

/* ---- the languages of a shard ---- */

static tide_status prepare(struct tide_walk *walk, const char *text, sqlite3_stmt **stmt_out)
{
    const int code = sqlite3_prepare_v2(walk->shard->db.handle, text, -1, stmt_out, NULL);
    return code == SQLITE_OK ? TIDE_OK
                             : tide_db_failed(&walk->shard->db, code, "prepare a search for words",
                                              walk->searching->err);
}

/* Those of its script; English, and all that need no proof, are always there. */
static tide_status languages_find(struct tide_walk *walk)
{
    if (walk->languages != 0)
        return TIDE_OK;
    tide_auto_prepared *stmt = NULL;
    TIDE_TRY(prepare(walk, "SELECT 1 FROM words WHERE words MATCH ?1 LIMIT 1", &stmt));
    uint32_t found = 0;
    for (size_t i = 0; i < LANGUAGES; i++) {
        bool there = languages[i].proof == NULL;
        if (!there) {
            tide_bind_text(stmt, 1, tide_text_of(languages[i].proof));
            TIDE_TRY(tide_db_step(&walk->shard->db, stmt, &there, walk->searching->err));
            tide_db_end(stmt);
        }
        found |= there ? 1u << i : 0;
    }
    walk->languages = found;
    walk->searching->stems.seen |= found;
    return TIDE_OK;
}

/* ---- where the other forms are ---- */

/* Prefixes of words; none is the beginning of another. */
struct ranges {
    size_t count;
    size_t bytes[LANGUAGES * 4];
    char starts[LANGUAGES * 4][WORD_BYTES_MAX + 1];
};

static bool begins(const char *text, size_t bytes, const char *start, size_t start_bytes)
{
    return bytes >= start_bytes && memcmp(text, start, start_bytes) == 0;
}

static void range_add(struct ranges *ranges, const char *start, size_t bytes)
{
    for (size_t i = 0; i < ranges->count; i++)
        if (begins(start, bytes, ranges->starts[i], ranges->bytes[i]))
            return;
    size_t kept = 0;
    for (size_t i = 0; i < ranges->count; i++) {
        if (begins(ranges->starts[i], ranges->bytes[i], start, bytes))
            continue;
        if (kept < i)
            memcpy(ranges->starts[kept], ranges->starts[i], ranges->bytes[i]);
        ranges->bytes[kept++] = ranges->bytes[i];
    }
    TIDE_ASSERT(kept < LANGUAGES * 4);
    memcpy(ranges->starts[kept], start, bytes);
    ranges->bytes[kept] = bytes;
    ranges->count = kept + 1;
}

static size_t letters_of(const char *text, size_t bytes)
{
    size_t letters = 0;
    for (size_t i = 0; i < bytes; i++)
        letters += ((unsigned char)text[i] & 0xc0) != 0x80;
    return letters;
}

static size_t last_letter(const char *text, size_t bytes)
{
    while (bytes > 0 && ((unsigned char)text[bytes - 1] & 0xc0) == 0x80)
        bytes--;
    return bytes > 0 ? bytes - 1 : 0;
}

/* Forms begin with their stem, except for its last letter, which may be another one in some of them:
 * happi is the stem of happy, us(e) that of using.  A short stem would leave too wide a range without
 * it: then only the letters that do change are tried. */
static void range_of_stem(struct ranges *ranges, tide_text word, const char *stem, size_t bytes)
{
    static const char changed[] = {'e', 'i', 'y'};
    size_t same = 0;
    while (same < bytes && same < word.bytes && stem[same] == word.data[same])
        same++;
    while (same > 0 && same < word.bytes && ((unsigned char)word.data[same] & 0xc0) == 0x80)
        same--;
    if (same < 2) /* unlike its stem: only itself */
        return;
    const size_t shorter = same < bytes ? same : last_letter(stem, same);
    if (letters_of(stem, shorter) >= START_LETTERS || same < bytes) {
        range_add(ranges, stem, shorter);
        return;
    }
    range_add(ranges, stem, same);
    for (size_t i = 0; i < sizeof changed; i++) {
        char other[WORD_BYTES_MAX + 1];
        memcpy(other, stem, shorter);
        other[shorter] = changed[i];
        range_add(ranges, other, shorter + 1);
    }
}

/* ---- the vocabulary ---- */

struct scan {
    struct tide_walk *walk;
    sqlite3_stmt *stmt;
    const struct tide_form *form;
    const struct stemmed *searched;
    struct tide_words_found *found;
};

static tide_status word_keep(struct scan *scan, tide_text word)
{
    struct tide_words_found *found = scan->found;
    if (found->count == TIDE_FORMS_MAX)
        return TIDE_OK;
    const char *copy = tide_arena_copy(&scan->walk->arena, word.data, word.bytes);
    if (copy == NULL)
        return tide_error_set(scan->walk->searching->err, TIDE_NO_MEMORY,
                              "no memory for the forms of a word");
    found->list[found->count++] = (tide_text){copy, word.bytes};
    return TIDE_OK;
}

static void scan_from(const struct scan *scan, tide_text start, tide_text end)
{
    (void)sqlite3_reset(scan->stmt);
    tide_bind_text(scan->stmt, 1, start);
    tide_bind_text(scan->stmt, 2, end);
}

/* Reads the words that begin with `start`. */
static tide_status range_scan(struct scan *scan, tide_text start)
{
    static const char after_all[] = "\xf4\x8f\xbf\xbf"; /* the last character there is */
    struct tide_searching *searching = scan->walk->searching;
    char end[WORD_BYTES_MAX + sizeof after_all + 1];
    char last[WORD_BYTES_MAX];
    char next[WORD_BYTES_MAX + 1]; /* stays as it is while it is bound */
    size_t last_bytes = 0, rows = 0;
    memcpy(end, start.data, start.bytes);
    memcpy(end + start.bytes, after_all, sizeof after_all);
    const tide_text until = tide_text_of(end);
    scan_from(scan, start, until);
    for (;;) {
        bool row = false;
        TIDE_TRY(tide_db_step(&scan->walk->shard->db, scan->stmt, &row, searching->err));
        if (!row)
            return TIDE_OK;
        const tide_text word = tide_column_text(scan->stmt, 0);
        if (tide_text_equal(word, (tide_text){last, last_bytes})) {
            if (++rows < SAME_ROWS_MAX)
                continue;
            TIDE_TRY(tide_searching_wanted(searching));
            memcpy(next, last, last_bytes);
            next[last_bytes] = '\x01'; /* in no word, and before every word that is longer */
            scan_from(scan, (tide_text){next, last_bytes + 1}, until);
            rows = 0;
            continue;
        }
        rows = 0;
        if (word.bytes > WORD_BYTES_MAX) { /* not kept: its rows are few, as such words are rare */
            last_bytes = 0;
            continue;
        }
        memcpy(last, word.data, word.bytes);
        last_bytes = word.bytes;
        if (!tide_text_equal(word, scan->form->word) && word_script(word) != SCRIPT_NONE &&
            same_stem(&searching->stems, scan->searched, word))
            TIDE_TRY(word_keep(scan, word));
    }
}

/* The vocabulary belongs to the connection and is made when it is first needed. */
static tide_status vocabulary_open(struct tide_walk *walk, sqlite3_stmt **stmt_out)
{
    static const char text[] = "SELECT term FROM temp.tide_terms WHERE term >= ?1 AND term < ?2";
    tide_db *db = &walk->shard->db;
    if (sqlite3_prepare_v2(db->handle, text, -1, stmt_out, NULL) == SQLITE_OK)
        return TIDE_OK;
    TIDE_TRY(tide_db_exec(db,
                          "CREATE VIRTUAL TABLE IF NOT EXISTS temp.tide_terms"
                          " USING fts5vocab('main', 'words', 'instance')",
                          walk->searching->err));
    return prepare(walk, text, stmt_out);
}

tide_status tide_forms_find(struct tide_walk *walk, const struct tide_form *form,
                            struct tide_words_found *found)
{
    TIDE_TRY(languages_find(walk));
    tide_auto_prepared *stmt = NULL;
    struct stemmed searched;
    struct ranges ranges = {.count = 0};
    struct scan scan = {walk, NULL, form, &searched, found};
    TIDE_TRY(word_keep(&scan, form->word));
    stem_all(&walk->searching->stems, form->word, walk->languages, &searched);
    for (size_t i = 0; i < LANGUAGES; i++)
        if ((searched.languages & 1u << i) != 0)
            range_of_stem(&ranges, form->word, searched.stems[i], searched.bytes[i]);
    if (ranges.count == 0)
        return TIDE_OK;
    TIDE_TRY(vocabulary_open(walk, &stmt));
    scan.stmt = stmt;
    for (size_t i = 0; i < ranges.count; i++)
        TIDE_TRY(range_scan(&scan, (tide_text){ranges.starts[i], ranges.bytes[i]}));
    return TIDE_OK;
}
