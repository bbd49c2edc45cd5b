#include "mail/people/inside.h"

#include "base/check.h"

#include <math.h>
#include <stdio.h>

enum { BUSY_MS = 5000, CACHE_KIB = 2048, WORDS_BYTES_MAX = 2048, VERSION = 1 };

static const char schema[] =
    "CREATE TABLE person (id INTEGER PRIMARY KEY, address TEXT NOT NULL UNIQUE,"
    " name TEXT NOT NULL, name_ms INTEGER NOT NULL, score REAL NOT NULL, words TEXT NOT NULL);"
    "CREATE INDEX person_score ON person (score DESC);"
    "CREATE TABLE word (word TEXT NOT NULL, person INTEGER NOT NULL,"
    " PRIMARY KEY (word, person)) WITHOUT ROWID;"
    "CREATE INDEX word_person ON word (person);"
    "CREATE TABLE tally (shard INTEGER NOT NULL, person INTEGER NOT NULL, score REAL NOT NULL,"
    " PRIMARY KEY (shard, person)) WITHOUT ROWID;"
    "CREATE INDEX tally_person ON tally (person);"
    /* People whose score is to be summed up again; empty between transactions. */
    "CREATE TABLE touched (person INTEGER PRIMARY KEY);"
    "CREATE TABLE seen (shard INTEGER PRIMARY KEY, id TEXT NOT NULL, ready INTEGER NOT NULL,"
    " top INTEGER NOT NULL);"
    "PRAGMA user_version = 1;";

static const char *const statements[TIDE_PEOPLE_SQL] = {
    [TIDE_PEOPLE_BEGIN] = "BEGIN IMMEDIATE",
    [TIDE_PEOPLE_COMMIT] = "COMMIT",
    [TIDE_PEOPLE_ROLLBACK] = "ROLLBACK",
    [TIDE_PEOPLE_PERSON] = "SELECT id, name, name_ms FROM person WHERE address = ?1",
    [TIDE_PEOPLE_PERSON_ADD] = ("INSERT INTO person (address, name, name_ms, score, words)"
                                " VALUES (?1, ?2, ?3, 0, ?4)"),
    [TIDE_PEOPLE_PERSON_NAME] =
        "UPDATE person SET name = ?2, name_ms = ?3, words = ?4 WHERE id = ?1",
    [TIDE_PEOPLE_PERSON_SCORE] = "UPDATE person SET score = ?2 WHERE id = ?1",
    [TIDE_PEOPLE_PERSON_DROP] = "DELETE FROM person WHERE id = ?1",
    [TIDE_PEOPLE_WORD_ADD] = "INSERT OR IGNORE INTO word (word, person) VALUES (?1, ?2)",
    [TIDE_PEOPLE_WORDS_DROP] = "DELETE FROM word WHERE person = ?1",
    [TIDE_PEOPLE_TALLY] = "SELECT score FROM tally WHERE shard = ?1 AND person = ?2",
    [TIDE_PEOPLE_TALLY_PUT] =
        "INSERT OR REPLACE INTO tally (shard, person, score) VALUES (?1, ?2, ?3)",
    [TIDE_PEOPLE_TALLIES] = "SELECT score FROM tally WHERE person = ?1",
    [TIDE_PEOPLE_TOUCH] = "INSERT OR IGNORE INTO touched (person) VALUES (?1)",
    [TIDE_PEOPLE_TOUCH_SHARD] =
        "INSERT OR IGNORE INTO touched (person) SELECT person FROM tally WHERE shard = ?1",
    [TIDE_PEOPLE_TOUCHED] = "SELECT person FROM touched",
    [TIDE_PEOPLE_UNTOUCH] = "DELETE FROM touched",
    [TIDE_PEOPLE_SHARD_DROP] = "DELETE FROM tally WHERE shard = ?1",
    [TIDE_PEOPLE_SEEN] = "SELECT id, ready, top FROM seen WHERE shard = ?1",
    [TIDE_PEOPLE_SEEN_PUT] =
        "INSERT OR REPLACE INTO seen (shard, id, ready, top) VALUES (?1, ?2, ?3, ?4)",
    [TIDE_PEOPLE_RANGE] = "SELECT person FROM word WHERE word >= ?1 AND word < ?2 LIMIT ?3",
    [TIDE_PEOPLE_AT] = "SELECT address, name, words, score FROM person WHERE id = ?1",
    [TIDE_PEOPLE_BEST] = "SELECT address, name, words FROM person ORDER BY score DESC LIMIT ?1",
};

/* ---- the file ---- */

static tide_status open_file(tide_people *people, const struct tide_people_options *options,
                             tide_error *err)
{
    const struct tide_db_options db = {.path = options->path,
                                       .vfs = tide_world_vfs(options->world),
                                       .read_only = options->read_only,
                                       .must_exist = options->read_only,
                                       .busy_timeout_ms = BUSY_MS,
                                       .cache_kib = CACHE_KIB};
    int64_t version = 0;
    TIDE_TRY(tide_db_open(&db, people->mem, &people->db, err));
    TIDE_TRY(tide_db_number(&people->db, "PRAGMA user_version", &version, err));
    if (version == 0 && !options->read_only) {
        TIDE_TRY(tide_db_wal(&people->db, err));
        TIDE_TRY(tide_db_exec(&people->db, "BEGIN IMMEDIATE", err));
        tide_status rc = tide_db_exec(&people->db, schema, err);
        if (rc == TIDE_OK)
            rc = tide_db_exec(&people->db, "COMMIT", err);
        TIDE_TRY(rc);
        version = VERSION;
    }
    if (version != VERSION)
        return tide_error_set(err, TIDE_CORRUPT, "%s is not a list of people of this version",
                              options->path);
    return tide_db_statements(&people->db, statements, TIDE_PEOPLE_SQL, err);
}

tide_status tide_people_remove(tide_world *world, const char *path, tide_error *err)
{
    static const char *const ends[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        char file[4096];
        if ((size_t)snprintf(file, sizeof file, "%s%s", path, ends[i]) >= sizeof file)
            return tide_error_set(err, TIDE_INVALID, "the path is too long");
        const tide_status rc = tide_file_remove(world, file, err);
        if (rc != TIDE_OK && rc != TIDE_NOT_FOUND)
            return rc;
    }
    return TIDE_OK;
}

tide_status tide_people_open(const struct tide_people_options *options, tide_mem *mem,
                             tide_people **people_out, tide_error *err)
{
    bool exists = true;
    if (options->read_only)
        TIDE_TRY(tide_db_exists(options->path, tide_world_vfs(options->world), &exists, err));
    if (!exists)
        return tide_error_set(err, TIDE_NOT_FOUND, "there is no list of people yet");
    tide_people *people = tide_mem_new(mem, sizeof *people);
    if (people == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for a list of people");
    people->mem = mem;
    people->world = options->world;
    tide_status rc = tide_words_init(&people->words, mem, err);
    if (rc == TIDE_OK)
        rc = open_file(people, options, err);
    if ((rc == TIDE_CORRUPT || rc == TIDE_INVALID) &&
        !options->read_only) { /* INVALID: no database */
        tide_db_close(&people->db);
        people->db = (tide_db){.handle = NULL};
        rc = tide_people_remove(options->world, options->path, err); /* it can be made again */
        if (rc == TIDE_OK)
            rc = open_file(people, options, err);
    }
    if (rc != TIDE_OK) {
        tide_people_close(people);
        return rc;
    }
    *people_out = people;
    return TIDE_OK;
}

void tide_people_close(tide_people *people)
{
    if (people == NULL)
        return;
    tide_db_close(&people->db);
    tide_words_done(&people->words);
    tide_mem_free(people->mem, people, sizeof *people);
}

/* ---- words ---- */

tide_status tide_people_words(tide_people *people, tide_text name, tide_text address, tide_buf *out,
                              tide_error *err)
{
    tide_auto_buf text = tide_buf_in(people->mem, WORDS_BYTES_MAX);
    /* "cz" and "com" name nobody. */
    const char *dot = address.bytes == 0 ? NULL : memrchr(address.data, '.', address.bytes);
    const char *at = address.bytes == 0 ? NULL : memchr(address.data, '@', address.bytes);
    if (dot != NULL && at != NULL && dot > at)
        address.bytes = (size_t)(dot - address.data);
    tide_status rc = tide_buf_add(&text, name.data, name.bytes);
    if (rc == TIDE_OK)
        rc = tide_buf_add_text(&text, " ");
    if (rc == TIDE_OK)
        rc = tide_buf_add(&text, address.data, address.bytes);
    if (rc != TIDE_OK)
        return tide_error_set(err, rc, "no room for the words of a person");
    return tide_words_sequence(&people->words, tide_buf_text(&text), out, err);
}

static tide_status put_words(tide_people *people, int64_t person, tide_text words, tide_error *err)
{
    TIDE_TRY(tide_db_do(&people->db, err, TIDE_PEOPLE_WORDS_DROP, person));
    while (words.bytes > 0) {
        const char *end = memchr(words.data, TIDE_WORD_GAP, words.bytes);
        const size_t bytes = end == NULL ? words.bytes : (size_t)(end - words.data);
        const tide_text word = {words.data, bytes};
        if (bytes > 0)
            TIDE_TRY(tide_db_do(&people->db, err, TIDE_PEOPLE_WORD_ADD, word, person));
        const size_t skipped = end == NULL ? bytes : bytes + 1;
        words = (tide_text){words.data + skipped, words.bytes - skipped};
    }
    return TIDE_OK;
}

/* ---- writing ---- */

static tide_status add_person(tide_people *people, const struct tide_gathered *entry,
                              int64_t *id_out, tide_error *err)
{
    tide_auto_buf words = tide_buf_in(people->mem, WORDS_BYTES_MAX);
    TIDE_TRY(tide_people_words(people, tide_text_of(entry->name), tide_text_of(entry->address),
                               &words, err));
    TIDE_TRY(tide_db_do(&people->db, err, TIDE_PEOPLE_PERSON_ADD, entry->address, entry->name,
                        entry->name_ms, tide_buf_text(&words)));
    *id_out = sqlite3_last_insert_rowid(people->db.handle);
    return put_words(people, *id_out, tide_buf_text(&words), err);
}

static tide_status rename_person(tide_people *people, int64_t id, const struct tide_gathered *entry,
                                 tide_error *err)
{
    tide_auto_buf words = tide_buf_in(people->mem, WORDS_BYTES_MAX);
    TIDE_TRY(tide_people_words(people, tide_text_of(entry->name), tide_text_of(entry->address),
                               &words, err));
    TIDE_TRY(tide_db_do(&people->db, err, TIDE_PEOPLE_PERSON_NAME, id, entry->name, entry->name_ms,
                        tide_buf_text(&words)));
    return put_words(people, id, tide_buf_text(&words), err);
}

/* Finds or makes the person; a newer name is taken. */
static tide_status person_of(tide_people *people, const struct tide_gathered *entry,
                             int64_t *id_out, tide_error *err)
{
    bool there = false, renamed = false;
    {
        tide_auto_stmt *row = tide_db_ask(&people->db, TIDE_PEOPLE_PERSON, entry->address);
        TIDE_TRY(tide_db_step(&people->db, row, &there, err));
        if (there) {
            *id_out = sqlite3_column_int64(row, 0);
            renamed = entry->name[0] != '\0' && entry->name_ms >= sqlite3_column_int64(row, 2) &&
                      !tide_text_equal(tide_column_text(row, 1), tide_text_of(entry->name));
        }
    }
    if (!there)
        return add_person(people, entry, id_out, err);
    return renamed ? rename_person(people, *id_out, entry, err) : TIDE_OK;
}

/* A number with a fraction is no tide_value. */
static tide_status put_tally(tide_people *people, uint32_t shard, int64_t person, double score,
                             tide_error *err)
{
    sqlite3_stmt *stmt = tide_db_stmt(&people->db, TIDE_PEOPLE_TALLY_PUT);
    tide_bind_u64(stmt, 1, shard);
    (void)sqlite3_bind_int64(stmt, 2, person);
    (void)sqlite3_bind_double(stmt, 3, score);
    TIDE_TRY(tide_db_run(&people->db, stmt, err));
    return tide_db_do(&people->db, err, TIDE_PEOPLE_TOUCH, person);
}

static tide_status add_tally(tide_people *people, uint32_t shard, const struct tide_gathered *entry,
                             tide_error *err)
{
    int64_t person = 0;
    double score = entry->score;
    bool there = false;
    TIDE_TRY(person_of(people, entry, &person, err));
    {
        tide_auto_stmt *row = tide_db_ask(&people->db, TIDE_PEOPLE_TALLY, shard, person);
        TIDE_TRY(tide_db_step(&people->db, row, &there, err));
        if (there)
            score = tide_people_add_scores(score, sqlite3_column_double(row, 0));
    }
    return put_tally(people, shard, person, score, err);
}

static tide_status sum_up(tide_people *people, int64_t person, tide_error *err)
{
    double score = -INFINITY;
    tide_status rc = TIDE_OK;
    sqlite3_stmt *row = tide_db_ask(&people->db, TIDE_PEOPLE_TALLIES, person);
    while (tide_db_next(&people->db, row, &rc, err))
        score = tide_people_add_scores(score, sqlite3_column_double(row, 0));
    TIDE_TRY(rc);
    if (score == -INFINITY) { /* no message names them any more */
        TIDE_TRY(tide_db_do(&people->db, err, TIDE_PEOPLE_WORDS_DROP, person));
        return tide_db_do(&people->db, err, TIDE_PEOPLE_PERSON_DROP, person);
    }
    sqlite3_stmt *stmt = tide_db_stmt(&people->db, TIDE_PEOPLE_PERSON_SCORE);
    (void)sqlite3_bind_int64(stmt, 1, person);
    (void)sqlite3_bind_double(stmt, 2, score);
    return tide_db_run(&people->db, stmt, err);
}

tide_status tide_people_begin(tide_people *people, uint32_t shard, bool anew, tide_error *err)
{
    TIDE_TRY(tide_db_do(&people->db, err, TIDE_PEOPLE_BEGIN));
    if (!anew)
        return TIDE_OK;
    tide_status rc = tide_db_do(&people->db, err, TIDE_PEOPLE_TOUCH_SHARD, shard);
    if (rc == TIDE_OK)
        rc = tide_db_do(&people->db, err, TIDE_PEOPLE_SHARD_DROP, shard);
    if (rc != TIDE_OK)
        tide_people_undo(people);
    return rc;
}

tide_status tide_people_add(tide_people *people, uint32_t shard, struct tide_gathering *gathering,
                            tide_error *err)
{
    for (size_t i = 0; i < gathering->count; i++)
        TIDE_TRY(add_tally(people, shard, &gathering->list[i], err));
    gathering->count = 0;
    tide_map_clear(&gathering->index);
    return TIDE_OK;
}

tide_status tide_people_end(tide_people *people, uint32_t shard, const char *shard_id,
                            uint64_t ready, int64_t top, tide_error *err)
{
    tide_status rc = TIDE_OK;
    {
        tide_auto_stmt *row = tide_db_stmt(&people->db, TIDE_PEOPLE_TOUCHED);
        while (rc == TIDE_OK && tide_db_next(&people->db, row, &rc, err))
            rc = sum_up(people, sqlite3_column_int64(row, 0), err);
    }
    TIDE_TRY(rc);
    TIDE_TRY(tide_db_do(&people->db, err, TIDE_PEOPLE_UNTOUCH));
    TIDE_TRY(tide_db_do(&people->db, err, TIDE_PEOPLE_SEEN_PUT, shard, shard_id, ready, top));
    return tide_db_do(&people->db, err, TIDE_PEOPLE_COMMIT);
}

void tide_people_undo(tide_people *people)
{
    (void)tide_db_do(&people->db, NULL, TIDE_PEOPLE_ROLLBACK);
}
