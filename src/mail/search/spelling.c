/* spelling.c - words of a query that no message has, and what may have been meant (M20).
 *
 * The vocabulary of the archive is the dictionary: of the words that begin with the same letter and
 * differ in one letter, or two of a longer word, the one that most messages of a shard have. */
#include "mail/search/plan.h"

#include "base/check.h"
#include "base/json.h"
#include "mail/archive/inside.h"

#include <stdio.h>

enum {
    WORD_BYTES_MAX = 40,
    LONG_BYTES = 6, /* from here on two letters may differ */
    LETTERS_MIN = 4,
};

struct guess {
    tide_text word; /* of the query */
    char better[WORD_BYTES_MAX + 1];
    size_t distance;
    uint64_t messages;
    bool known; /* a shard has it */
};

/* Whether a message of the shard has it, or another form of it. */
static tide_status look_up(struct tide_walk *walk, const struct tide_phrase *phrase, bool *has_out)
{
    tide_error *err = walk->searching->err;
    tide_auto_prepared *stmt = NULL;
    tide_text match = TIDE_TEXT_NONE;
    TIDE_TRY(tide_walk_match(walk, phrase->match, &match));
    const int code =
        sqlite3_prepare_v2(walk->shard->db.handle,
                           "SELECT 1 FROM words WHERE words MATCH ?1 LIMIT 1", -1, &stmt, NULL);
    if (code != SQLITE_OK)
        return tide_db_failed(&walk->shard->db, code, "prepare a search", err);
    tide_bind_text(stmt, 1, match);
    return tide_db_step(&walk->shard->db, stmt, has_out, err);
}

static void consider(struct guess *guess, tide_text word, uint64_t messages)
{
    const size_t most = guess->word.bytes >= LONG_BYTES ? 2 : 1;
    if (word.bytes > WORD_BYTES_MAX || word.bytes + most < guess->word.bytes ||
        word.bytes > guess->word.bytes + most || !tide_form_can_vary(word))
        return;
    const size_t distance = tide_text_distance(guess->word, word);
    if (distance == 0 || distance > most ||
        (guess->better[0] != '\0' && (distance > guess->distance || (distance == guess->distance &&
                                                                     messages <= guess->messages))))
        return;
    memcpy(guess->better, word.data, word.bytes);
    guess->better[word.bytes] = '\0';
    guess->distance = distance;
    guess->messages = messages;
}

static tide_status vocabulary_read(struct tide_walk *walk, struct guess *guess)
{
    static const char make[] = "CREATE VIRTUAL TABLE IF NOT EXISTS temp.tide_vocabulary"
                               " USING fts5vocab('main', 'words', 'row')";
    tide_db *db = &walk->shard->db;
    tide_error *err = walk->searching->err;
    tide_auto_prepared *stmt = NULL;
    tide_status rc = TIDE_OK;
    char first[8] = "", last[16];
    const size_t bytes = tide_utf8_bytes(guess->word);
    memcpy(first, guess->word.data, bytes);
    (void)snprintf(last, sizeof last, "%s\xf4\x8f\xbf\xbf", first);
    TIDE_TRY(tide_db_exec(db, make, err));
    const int code = sqlite3_prepare_v2(
        db->handle, "SELECT term, doc FROM temp.tide_vocabulary WHERE term >= ?1 AND term < ?2", -1,
        &stmt, NULL);
    if (code != SQLITE_OK)
        return tide_db_failed(db, code, "read the vocabulary", err);
    tide_bind_text(stmt, 1, tide_text_of(first));
    tide_bind_text(stmt, 2, tide_text_of(last));
    while (tide_db_next(db, stmt, &rc, err))
        consider(guess, tide_column_text(stmt, 0), tide_column_u64(stmt, 1));
    return rc;
}

/* Of one shard: whether it has the word, and what is like it. */
static tide_status shard_ask(struct tide_searching *searching, struct tide_shard *shard,
                             const struct tide_phrase *phrase, struct guess *guess, bool vocabulary)
{
    struct tide_walk walk;
    tide_status rc = tide_walk_open(&walk, searching, shard);
    if (rc == TIDE_NOT_FOUND)
        return TIDE_OK;
    TIDE_TRY(rc);
    rc = vocabulary ? vocabulary_read(&walk, guess) : look_up(&walk, phrase, &guess->known);
    tide_walk_close(&walk);
    return rc == TIDE_CORRUPT ? tide_shards_pass(searching->shards, shard, rc, searching->err) : rc;
}

/* A word that stands alone; phrases and parts of words are as the user wants them. */
static bool can_be_wrong(const struct tide_phrase *phrase, tide_text *word_out)
{
    const tide_text sequence = phrase->sequence;
    if (phrase->term->prefix || phrase->term->me || phrase->other.bytes > 0 || sequence.bytes < 3)
        return false;
    *word_out = (tide_text){sequence.data + 1, sequence.bytes - 2};
    return word_out->bytes >= LETTERS_MIN && word_out->bytes <= WORD_BYTES_MAX &&
           memchr(word_out->data, TIDE_WORD_GAP, word_out->bytes) == NULL &&
           tide_form_can_vary(*word_out);
}

static tide_status phrase_ask(struct tide_searching *searching, const struct tide_phrase *phrase,
                              struct guess *guess)
{
    const tide_shards *shards = searching->shards;
    for (int vocabulary = 0; vocabulary < 2 && !guess->known; vocabulary++)
        for (size_t i = shards->count; i > 0 && !guess->known; i--) {
            TIDE_TRY(tide_searching_wanted(searching));
            TIDE_TRY(shard_ask(searching, shards->list[i - 1], phrase, guess, vocabulary == 1));
        }
    return TIDE_OK;
}

static tide_status ask_all(struct tide_searching *searching,
                           void (*visit)(const struct tide_spelling *spelling, void *arg),
                           void *arg)
{
    const struct tide_phrase *phrase = searching->plan.phrases;
    for (; phrase != NULL; phrase = phrase->next) {
        struct guess guess = {.distance = 0};
        if (!can_be_wrong(phrase, &guess.word))
            continue;
        TIDE_TRY(phrase_ask(searching, phrase, &guess));
        if (guess.known || guess.better[0] == '\0')
            continue;
        const struct tide_spelling spelling = {
            .word = guess.word, .better = tide_text_of(guess.better), .messages = guess.messages};
        visit(&spelling, arg);
    }
    return TIDE_OK;
}

tide_status tide_search_spelling(tide_archive *archive, const tide_query *query,
                                 const tide_cancel *cancel,
                                 void (*visit)(const struct tide_spelling *spelling, void *arg),
                                 void *arg, tide_error *err)
{
    tide_auto_reader *reader = NULL;
    struct tide_searching searching;
    TIDE_TRY(tide_reader_take_all(archive, &reader, err));
    TIDE_TRY(tide_searching_init(&searching, &reader->shards, archive->mem, err));
    searching.cancel = cancel;
    tide_status rc = tide_plan_make(&searching, query);
    if (rc == TIDE_OK)
        rc = ask_all(&searching, visit, arg);
    tide_searching_done(&searching);
    return rc;
}
