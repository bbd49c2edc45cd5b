/* find.c - the best people that fit what was typed. */
#include "mail/people/inside.h"

#include "base/json.h"
#include "mail/mime/charset.h"

#include <stdio.h>

enum { TYPED_BYTES_MAX = 200, WORDS_MAX = 8, SEQUENCE_BYTES_MAX = 1024 };

struct looking {
    tide_text words[WORDS_MAX]; /* typed, each with the gap before it */
    size_t words_count;
    const tide_text *without;
    size_t without_count;
    size_t count_max;
    struct tide_person *found;
    double scores[TIDE_PEOPLE_FOUND_MAX]; /* of the range, best first */
    size_t count;
};

static bool fits(const struct looking *look, tide_text address, tide_text words)
{
    for (size_t i = 0; i < look->words_count; i++)
        if (words.bytes < look->words[i].bytes ||
            memmem(words.data, words.bytes, look->words[i].data, look->words[i].bytes) == NULL)
            return false;
    for (size_t i = 0; i < look->without_count; i++)
        if (tide_mailbox_equal(look->without[i], address))
            return false;
    return true;
}

static void copy_person(sqlite3_stmt *row, struct tide_person *person)
{
    tide_column_copy(row, 0, person->address, sizeof person->address);
    tide_column_copy(row, 1, person->name, sizeof person->name);
}

/* Keeps the best ones in order. */
static void insert(struct looking *look, sqlite3_stmt *row)
{
    const double score = sqlite3_column_double(row, 3);
    size_t at = look->count;
    while (at > 0 && look->scores[at - 1] < score)
        at--;
    if (at == look->count_max)
        return;
    if (look->count < look->count_max)
        look->count++;
    const size_t behind = look->count - at - 1;
    memmove(&look->found[at + 1], &look->found[at], behind * sizeof look->found[0]);
    memmove(&look->scores[at + 1], &look->scores[at], behind * sizeof look->scores[0]);
    copy_person(row, &look->found[at]);
    look->scores[at] = score;
}

static bool is_found(const struct looking *look, tide_text address)
{
    for (size_t i = 0; i < look->count; i++)
        if (tide_text_equal(tide_text_of(look->found[i].address), address))
            return true;
    return false;
}

/* The people who have a word that begins so; false in *few_out: too many to read. */
static tide_status range_of(tide_people *people, tide_text word, int64_t *ids, size_t *count_out,
                            bool *few_out, tide_error *err)
{
    char end[TYPED_BYTES_MAX + 8];
    tide_status rc = TIDE_OK;
    const tide_text begin = {word.data + 1, word.bytes - 1}; /* without the gap */
    (void)snprintf(end, sizeof end, "%.*s\xf4\x8f\xbf\xbf", (int)begin.bytes, begin.data);
    size_t count = 0;
    sqlite3_stmt *row =
        tide_db_ask(&people->db, TIDE_PEOPLE_RANGE, begin, end, TIDE_PEOPLE_RANGE_MAX + 1);
    while (tide_db_next(&people->db, row, &rc, err))
        ids[count++] = sqlite3_column_int64(row, 0);
    *few_out = count <= TIDE_PEOPLE_RANGE_MAX;
    *count_out = count;
    return rc;
}

static tide_status look_at(tide_people *people, struct looking *look, const int64_t *ids,
                           size_t count, tide_error *err)
{
    for (size_t i = 0; i < count; i++) {
        bool there = false;
        tide_auto_stmt *row = tide_db_ask(&people->db, TIDE_PEOPLE_AT, ids[i]);
        TIDE_TRY(tide_db_step(&people->db, row, &there, err));
        if (there && fits(look, tide_column_text(row, 0), tide_column_text(row, 2)) &&
            !is_found(look, tide_column_text(row, 0)))
            insert(look, row);
    }
    return TIDE_OK;
}

/* What many have is soon found among the best. */
static tide_status walk_best(tide_people *people, struct looking *look, tide_error *err)
{
    tide_status rc = TIDE_OK;
    tide_auto_stmt *row = tide_db_ask(&people->db, TIDE_PEOPLE_BEST, TIDE_PEOPLE_WALK_MAX);
    while (look->count < look->count_max && tide_db_next(&people->db, row, &rc, err))
        if (fits(look, tide_column_text(row, 0), tide_column_text(row, 2)))
            copy_person(row, &look->found[look->count++]);
    return rc;
}

/* Takes "gap word gap word gap" apart, each word with the gap before it. */
static void split(tide_text sequence, struct looking *look)
{
    while (sequence.bytes > 1 && look->words_count < WORDS_MAX) {
        const char *end = memchr(sequence.data + 1, TIDE_WORD_GAP, sequence.bytes - 1);
        const size_t bytes = end == NULL ? sequence.bytes : (size_t)(end - sequence.data);
        look->words[look->words_count++] = (tide_text){sequence.data, bytes};
        sequence = (tide_text){sequence.data + bytes, sequence.bytes - bytes};
    }
}

static tide_status look_for(tide_people *people, struct looking *look, tide_error *err)
{
    int64_t *ids = tide_mem_array(people->mem, TIDE_PEOPLE_RANGE_MAX + 1, sizeof *ids);
    tide_status rc =
        ids == NULL ? tide_error_set(err, TIDE_NO_MEMORY, "no memory for people") : TIDE_OK;
    bool few = false;
    size_t count = 0;
    for (size_t i = 0; rc == TIDE_OK && !few && i < look->words_count; i++)
        rc = range_of(people, look->words[i], ids, &count, &few, err);
    if (rc == TIDE_OK)
        rc = few ? look_at(people, look, ids, count, err) : walk_best(people, look, err);
    tide_mem_free(people->mem, ids, (TIDE_PEOPLE_RANGE_MAX + 1) * sizeof *ids);
    return rc;
}

tide_status tide_people_find(tide_people *people, tide_text typed, const tide_text *without,
                             size_t without_count, size_t count_max, struct tide_person *found_out,
                             size_t *count_out, tide_error *err)
{
    tide_auto_buf sequence = tide_buf_in(people->mem, SEQUENCE_BYTES_MAX);
    struct looking look = {.without = without,
                           .without_count = without_count,
                           .count_max = count_max < TIDE_PEOPLE_FOUND_MAX ? count_max
                                                                          : TIDE_PEOPLE_FOUND_MAX,
                           .found = found_out};
    typed = tide_utf8_cut(typed, TYPED_BYTES_MAX);
    *count_out = 0;
    TIDE_TRY(tide_words_sequence(&people->words, typed, &sequence, err));
    /* Signs without a word fit nobody. */
    if (sequence.bytes == 0 && tide_text_trimmed(typed).bytes > 0)
        return TIDE_OK;
    split(tide_buf_text(&sequence), &look);
    TIDE_TRY(look_for(people, &look, err));
    *count_out = look.count;
    return TIDE_OK;
}
