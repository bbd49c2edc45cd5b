/* words.c - the tokenizer of the index, for texts outside of it. */
#include "mail/search/plan.h"

#include "base/check.h"

#include <limits.h>

/* As in the schema (mail/archive/shard_schema.c), so that words are the same as in the index. */
static const char *const arguments[] = {"remove_diacritics", "2"};

static fts5_api *api_of(sqlite3 *handle)
{
    fts5_api *api = NULL;
    tide_auto_prepared *stmt = NULL;
    if (sqlite3_prepare_v2(handle, "SELECT fts5(?1)", -1, &stmt, NULL) == SQLITE_OK) {
        (void)sqlite3_bind_pointer(stmt, 1, &api, "fts5_api_ptr", NULL);
        (void)sqlite3_step(stmt);
    }
    return api;
}

static tide_status start(tide_words *words, tide_error *err)
{
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY | SQLITE_OPEN_NOMUTEX;
    int code = sqlite3_open_v2(":memory:", &words->handle, flags, NULL);
    if (code == SQLITE_OK) {
        fts5_api *api = api_of(words->handle);
        void *context = NULL;
        code = SQLITE_ERROR;
        if (api != NULL)
            code = api->xFindTokenizer(api, "unicode61", &context, &words->api);
        /* The list is not const in the interface, but SQLite does not write to it. */
        if (code == SQLITE_OK)
            code = words->api.xCreate(context, (const char **)(uintptr_t)arguments, 2,
                                      &words->tokenizer);
    }
    if (code == SQLITE_OK)
        return TIDE_OK;
    words->tokenizer = NULL;
    return tide_error_set(err, code == SQLITE_NOMEM ? TIDE_NO_MEMORY : TIDE_BUG,
                          "no tokenizer: %s; SQLite must have FTS5", sqlite3_errstr(code));
}

tide_status tide_words_init(tide_words *words, tide_mem *mem, tide_error *err)
{
    *words = (tide_words){.mem = mem};
    const tide_status rc = start(words, err);
    if (rc != TIDE_OK)
        tide_words_done(words);
    return rc;
}

void tide_words_done(tide_words *words)
{
    if (words->tokenizer != NULL)
        words->api.xDelete(words->tokenizer);
    (void)sqlite3_close(words->handle);
    words->tokenizer = NULL;
    words->handle = NULL;
}

struct each {
    tide_words *words;
    tide_text text; /* whose words are shown */
    tide_word_visit *visit;
    void *arg;
    bool ended;
    tide_buf folded;
    tide_status rc;
    /* Inside one run of letters that folding has parted. */
    size_t begin;     /* of the run in `text` */
    size_t folded_at; /* how far the folded run is walked ... */
    size_t text_at;   /* ... and which byte of the text that is */
};

static int show(struct each *each, const char *word, int bytes, size_t begin, size_t end)
{
    each->ended = !each->visit(each->arg, (tide_text){word, (size_t)bytes}, begin, end);
    return each->ended ? SQLITE_DONE : SQLITE_OK;
}

/* Folding only adds blanks, and a run has none of its own: every other byte of
 * the folded run is the next byte of the text. */
static size_t text_place(struct each *each, size_t folded_place)
{
    for (; each->folded_at < folded_place; each->folded_at++)
        each->text_at += each->folded.data[each->folded_at] != ' ';
    return each->text_at < each->text.bytes ? each->text_at : each->text.bytes;
}

static int on_parted(void *arg, int flags, const char *word, int bytes, int begin, int end)
{
    struct each *each = arg;
    if ((flags & FTS5_TOKEN_COLOCATED) != 0)
        return SQLITE_OK;
    const size_t first = text_place(each, (size_t)begin);
    const size_t last = text_place(each, (size_t)end);
    return show(each, word, bytes, first, last);
}

/* Scripts without blanks start at three bytes a character. */
static bool may_part(tide_text run)
{
    for (size_t i = 0; i < run.bytes; i++)
        if ((unsigned char)run.data[i] >= 0xe0)
            return true;
    return false;
}

static int on_run(void *arg, int flags, const char *word, int bytes, int begin, int end)
{
    struct each *each = arg;
    if ((flags & FTS5_TOKEN_COLOCATED) != 0)
        return SQLITE_OK;
    const tide_text run = {each->text.data + begin, (size_t)(end - begin)};
    if (!may_part(run))
        return show(each, word, bytes, (size_t)begin, (size_t)end);
    tide_buf_clear(&each->folded);
    each->rc = tide_search_fold(run, &each->folded);
    if (each->rc != TIDE_OK)
        return SQLITE_NOMEM;
    each->folded_at = 0;
    each->text_at = (size_t)begin;
    const int code =
        each->words->api.xTokenize(each->words->tokenizer, each, FTS5_TOKENIZE_DOCUMENT,
                                   each->folded.data, (int)each->folded.bytes, on_parted);
    return code == SQLITE_OK && each->ended ? SQLITE_DONE : code;
}

tide_status tide_words_each(tide_words *words, tide_text text, tide_word_visit *visit, void *arg,
                            tide_error *err)
{
    TIDE_ASSERT(words->tokenizer != NULL);
    if (text.bytes == 0)
        return TIDE_OK;
    if (text.bytes > INT_MAX / 4)
        text.bytes = INT_MAX / 4;
    struct each each = {.words = words, .text = text, .visit = visit, .arg = arg, .rc = TIDE_OK};
    tide_buf_init(&each.folded, words->mem, INT_MAX);
    const int code = words->api.xTokenize(words->tokenizer, &each, FTS5_TOKENIZE_DOCUMENT,
                                          text.data, (int)text.bytes, on_run);
    tide_buf_done(&each.folded);
    if (code == SQLITE_OK || code == SQLITE_DONE)
        return TIDE_OK;
    return tide_error_set(err, code == SQLITE_NOMEM ? TIDE_NO_MEMORY : TIDE_BUG,
                          "cannot split a text into words: %s", sqlite3_errstr(code));
}

struct sequence {
    tide_buf *out;
    tide_status rc;
};

static bool sequence_add(void *arg, tide_text word, size_t begin, size_t end)
{
    struct sequence *sequence = arg;
    const char gap = TIDE_WORD_GAP;
    (void)begin, (void)end;
    if (sequence->out->bytes == 0)
        sequence->rc = tide_buf_add(sequence->out, &gap, 1);
    if (sequence->rc == TIDE_OK)
        sequence->rc = tide_buf_add(sequence->out, word.data, word.bytes);
    if (sequence->rc == TIDE_OK)
        sequence->rc = tide_buf_add(sequence->out, &gap, 1);
    return sequence->rc == TIDE_OK;
}

tide_status tide_words_sequence(tide_words *words, tide_text text, tide_buf *out, tide_error *err)
{
    struct sequence sequence = {out, TIDE_OK};
    tide_buf_clear(out);
    const tide_status rc = tide_words_each(words, text, sequence_add, &sequence, err);
    if (rc != TIDE_OK || sequence.rc == TIDE_OK)
        return rc;
    return tide_error_set(err, sequence.rc, "no memory for the words of a text");
}

bool tide_sequence_contains(tide_text sequence, tide_text part)
{
    return part.bytes == 0 ||
           (sequence.bytes >= part.bytes &&
            memmem(sequence.data, sequence.bytes, part.data, part.bytes) != NULL);
}
