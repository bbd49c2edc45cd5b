/* search_bench.c - measures the time of a page of search results.
 *
 * Builds an archive of twelve years directly in the documented schema, one shard a year,
 * with word frequencies as in real text (Zipf), then runs many queries of each class
 * through the public interface, a page of fifty each, the rows of the results included.
 * Prints one JSON object per line: p50 and p95 in ms, and how much of it is CPU time,
 * which says more on a busy machine.
 *
 *     search_bench [DIR]
 *
 * With DIR the archive is made there once and used again the next time.
 * TIDE_BENCH_MESSAGES sets the number of messages (120,000). */
#include "bench.h"

#include "base/check.h"
#include "base/rng.h"
#include "mail/search/search.h"
#include "mail/archive/shard.h"
#include "world/real.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    YEARS = 12,
    YEAR_FIRST = 2012,
    VOCABULARY = 60000,
    WORDS = 110,   /* in a text */
    BODIES = 2000, /* different ones; messages share them */
    GROUP = 1000,  /* messages per transaction, as when indexing a sync */
    ROUNDS = 60,   /* queries of a class */
    PEOPLE = 5000,
};

struct bench {
    tide_world *world;
    char dir[BENCH_PATH_BYTES];
    uint64_t messages;
    double *weights; /* cumulative */
    tide_rng rng;
    tide_archive *archive;
    bool missed;
};

/* ---- words ---- */

/* The n-th word in order of frequency, as letters: readable in a query. */
static const char *word_of(uint32_t rank, char room[16])
{
    static const char consonants[] = "bdfghklmnprstvwz", vowels[] = "aeiou";
    size_t bytes = 0;
    uint32_t left = rank + 16 * 5; /* two syllables at least */
    while (left > 0 && bytes < 14) {
        room[bytes++] = consonants[left % 16];
        left /= 16;
        room[bytes++] = vowels[left % 5];
        left /= 5;
    }
    room[bytes] = '\0';
    return room;
}

static uint32_t rank_drawn(struct bench *bench)
{
    const double at = (double)tide_rng_below(&bench->rng, 1u << 30) / (double)(1u << 30) *
                      bench->weights[VOCABULARY - 1];
    uint32_t low = 0, high = VOCABULARY - 1;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (bench->weights[middle] < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void words_write(struct bench *bench, size_t count, tide_buf *out)
{
    char room[16];
    for (size_t i = 0; i < count; i++) {
        (void)tide_buf_add_text(out, word_of(rank_drawn(bench), room));
        (void)tide_buf_add_text(out, " ");
    }
}

/* ---- building ---- */

struct building {
    struct tide_shard *shard;
    sqlite3_stmt *message, *head, *words, *label;
    uint64_t number;
    tide_buf text, subject;
};

static sqlite3_stmt *prepared(struct tide_shard *shard, const char *sql)
{
    sqlite3_stmt *stmt = NULL;
    tide_error err = {TIDE_OK, 0, ""};
    const int code = sqlite3_prepare_v2(shard->db.handle, sql, -1, &stmt, NULL);
    if (code != SQLITE_OK)
        must(tide_db_failed(&shard->db, code, sql, &err), "prepare", &err);
    return stmt;
}

static void run(struct tide_shard *shard, sqlite3_stmt *stmt)
{
    tide_error err = {TIDE_OK, 0, ""};
    must(tide_db_run(&shard->db, stmt, &err), "insert", &err);
}

/* Messages to read snippets from, shared by all messages of the shard. */
static void bodies_put(struct bench *bench, struct building *building)
{
    struct tide_shard *shard = building->shard;
    tide_packer *packer = NULL;
    tide_error err = {TIDE_OK, 0, ""};
    must(tide_packer_new(tide_mem_heap(), 3, &packer, &err), "packer", &err);
    sqlite3_stmt *stmt =
        prepared(shard, "INSERT INTO content (id, hash, bytes, body_bytes, codec, body)"
                        " VALUES (?1, ?2, ?3, ?3, 0, ?4)");
    for (int i = 1; i <= BODIES; i++) {
        uint8_t hash[TIDE_CONTENT_HASH_BYTES];
        tide_buf_clear(&building->text);
        (void)tide_buf_print(&building->text, "Subject: %d\r\n\r\nthe ", i);
        words_write(bench, WORDS, &building->text);
        must(tide_content_hash(packer, tide_buf_text(&building->text), hash, &err), "hash", &err);
        (void)sqlite3_bind_int(stmt, 1, i);
        (void)sqlite3_bind_blob(stmt, 2, hash, sizeof hash, SQLITE_TRANSIENT);
        tide_bind_u64(stmt, 3, building->text.bytes);
        (void)sqlite3_bind_blob(stmt, 4, building->text.data, (int)building->text.bytes,
                                SQLITE_TRANSIENT);
        run(shard, stmt);
    }
    (void)sqlite3_finalize(stmt);
    tide_packer_free(packer);
}

static void label_put(struct building *building, int64_t id, int label)
{
    (void)sqlite3_bind_int64(building->label, 1, id);
    (void)sqlite3_bind_int(building->label, 2, label);
    run(building->shard, building->label);
}

/* Labels by number: 1 INBOX, 2 UNREAD, 3 TRASH, 4 SPAM, 5 SENT, 6 common, 7 rare. */
static void labels_put(struct bench *bench, struct building *building, int64_t id)
{
    static const uint32_t one_in[] = {0, 3, 50, 40, 30, 5, 10, 20000};
    for (int label = 1; label <= 7; label++)
        if (tide_rng_below(&bench->rng, one_in[label]) == 0)
            label_put(building, id, label);
}

static void message_put(struct bench *bench, struct building *building, int64_t id,
                        int64_t internal_ms)
{
    struct tide_shard *shard = building->shard;
    char name[40], person[80], to[80];
    const uint64_t number = building->number++;
    const uint64_t size = tide_rng_below(&bench->rng, 10000) == 0
                              ? 20000000 + tide_rng_below(&bench->rng, 5000000)
                              : 2000 + tide_rng_below(&bench->rng, 60000);
    const int files = tide_rng_below(&bench->rng, 8) == 0;
    (void)snprintf(name, sizeof name, "%d%09" PRIu64, shard->year, number);
    (void)snprintf(person, sizeof person, "Person%" PRIu64 " <p%" PRIu64 "@example.com>",
                   number % PEOPLE, number % PEOPLE);
    (void)snprintf(to, sizeof to, "me@example.com, other%" PRIu64 "@example.org", number % 50);
    tide_buf_clear(&building->subject);
    tide_buf_clear(&building->text);
    words_write(bench, 6, &building->subject);
    (void)tide_buf_add_text(&building->text, "the ");
    words_write(bench, WORDS, &building->text);
    (void)sqlite3_bind_int64(building->message, 1, id);
    tide_bind_text(building->message, 2, tide_text_of(name));
    (void)sqlite3_bind_int64(building->message, 3, internal_ms);
    tide_bind_u64(building->message, 4, 1 + number % BODIES);
    tide_bind_u64(building->message, 5, size);
    run(shard, building->message);
    (void)sqlite3_bind_int64(building->head, 1, id);
    tide_bind_text(building->head, 2, tide_text_of(name));
    tide_bind_text(building->head, 3, tide_text_of(person));
    tide_bind_text(building->head, 4, tide_text_of(to));
    tide_bind_text(building->head, 5, tide_buf_text(&building->subject));
    (void)sqlite3_bind_int(building->head, 6, files);
    run(shard, building->head);
    (void)sqlite3_bind_int64(building->words, 1, id);
    tide_bind_text(building->words, 2, tide_buf_text(&building->subject));
    tide_bind_text(building->words, 3, tide_text_of(person));
    tide_bind_text(building->words, 4, tide_text_of(to));
    tide_bind_text(building->words, 5, tide_buf_text(&building->text));
    tide_bind_text(building->words, 6, files ? TIDE_TEXT("report.pdf") : TIDE_TEXT(""));
    run(shard, building->words);
    labels_put(bench, building, id);
}

static void shard_prepare(struct building *building)
{
    struct tide_shard *shard = building->shard;
    tide_error err = {TIDE_OK, 0, ""};
    must(tide_db_exec(&shard->db,
                      "PRAGMA synchronous = OFF;"
                      "INSERT INTO label (label, name, type) VALUES ('INBOX', 'INBOX', 'system'),"
                      "('UNREAD', 'UNREAD', 'system'), ('TRASH', 'TRASH', 'system'),"
                      "('SPAM', 'SPAM', 'system'), ('SENT', 'SENT', 'system'),"
                      "('Label_1', 'Common', 'user'), ('Label_2', 'Rare one', 'user')",
                      &err),
         "labels", &err);
    building->message =
        prepared(shard, "INSERT INTO message (id, gmail_id, thread_id, history_id, internal_ms,"
                        " content, bytes, stored_ms, mark) VALUES (?1, ?2, ?2, '1', ?3, ?4, ?5, 0,"
                        " 2)");
    building->head =
        prepared(shard, "INSERT INTO head (id, message_id, \"from\", \"to\", cc, bcc, subject,"
                        " files) VALUES (?1, ?2 || '@example.com', ?3, ?4, '', '', ?5, ?6)");
    building->words = prepared(shard, "INSERT INTO words (rowid, subject, \"from\", \"to\", text,"
                                      " files) VALUES (?1, ?2, ?3, ?4, ?5, ?6)");
    building->label = prepared(shard, "INSERT INTO message_label (message, label) VALUES (?1, ?2)");
}

static void shard_build(struct bench *bench, tide_shards *shards, int32_t year)
{
    struct building building = {.number = 0};
    tide_error err = {TIDE_OK, 0, ""};
    tide_buf_init(&building.text, tide_mem_heap(), 1 << 20);
    tide_buf_init(&building.subject, tide_mem_heap(), 1 << 20);
    must(tide_shards_make(shards, year, 1, &building.shard, &err), "make", &err);
    struct tide_shard *shard = building.shard;
    shard_prepare(&building);
    const uint64_t count = bench->messages / YEARS;
    const int64_t step_ms = (shard->end_ms - shard->start_ms) / (int64_t)(count + 1);
    must(tide_shard_begin(shard, &err), "begin", &err);
    bodies_put(bench, &building);
    for (uint64_t i = 0; i < count; i++) {
        const int64_t ms = shard->start_ms + (int64_t)i * step_ms +
                           (int64_t)tide_rng_below(&bench->rng, (uint64_t)step_ms);
        int64_t id = 0;
        must(tide_shard_place(shard, ms, &id, &err), "place", &err);
        message_put(bench, &building, id, ms);
        shard->messages++;
        if (i % GROUP == GROUP - 1) {
            must(tide_shard_commit(shard, UINT64_MAX, &err), "commit", &err);
            must(tide_shard_begin(shard, &err), "begin", &err);
        }
    }
    must(tide_shard_commit(shard, UINT64_MAX, &err), "commit", &err);
    (void)sqlite3_finalize(building.message);
    (void)sqlite3_finalize(building.head);
    (void)sqlite3_finalize(building.words);
    (void)sqlite3_finalize(building.label);
    must(tide_shard_checkpoint(shard, true, &err), "checkpoint", &err);
    tide_shards_close(shards, shard);
    tide_buf_done(&building.text);
    tide_buf_done(&building.subject);
}

static void build(struct bench *bench)
{
    const struct tide_archive_options options = {
        .dir = bench->dir, .account = "me@example.com", .world = bench->world};
    tide_shards shards;
    tide_error err = {TIDE_OK, 0, ""};
    tide_shards_init(&shards, &options, tide_mem_heap());
    must(tide_shards_look(&shards, &err), "look", &err);
    const double start = now_s();
    if (shards.count == 0)
        for (int32_t year = YEAR_FIRST; year < YEAR_FIRST + YEARS; year++)
            shard_build(bench, &shards, year);
    (void)fprintf(stderr, "search_bench: archive ready after %.1f s\n", now_s() - start);
    tide_shards_done(&shards);
}

/* ---- asking ---- */

static bool count_found(const struct tide_found *found, void *arg)
{
    (void)found;
    ++*(size_t *)arg;
    return true;
}

struct question {
    const char *name;
    double target_ms; /* of p95; 0: none */
    /* 'r' a rare word, 'm' one in a hundred, 'c' a frequent one, 'p' a person; other characters
     * are literal. */
    const char *query;
    bool ranked, oldest_first, snippets, count, deep;
};

static void query_write(struct bench *bench, const char *form, tide_buf *out)
{
    char room[16];
    tide_buf_clear(out);
    for (; *form != '\0'; form++) {
        const uint32_t chance = (uint32_t)tide_rng_below(&bench->rng, 1000);
        if (form[0] != '%')
            (void)tide_buf_add(out, form, 1);
        else if (*++form == 'r')
            (void)tide_buf_add_text(out, word_of(20000 + chance * 30, room));
        else if (*form == 'm')
            (void)tide_buf_add_text(out, word_of(500 + chance, room));
        else if (*form == 'c')
            (void)tide_buf_add_text(out, word_of(chance % 20, room));
        else
            (void)tide_buf_print(out, "person%u", chance);
    }
}

static int order(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

struct took {
    double wall_ms, cpu_ms;
};

static struct took ask(struct bench *bench, const struct question *question, tide_text text,
                       size_t *found)
{
    tide_query *query = NULL;
    tide_error err = {TIDE_OK, 0, ""};
    tide_buf next;
    bool more = false;
    tide_buf_init(&next, tide_mem_heap(), 4096);
    struct tide_search search = {.ranked = question->ranked,
                                 .oldest_first = question->oldest_first,
                                 .snippets = question->snippets};
    if (question->deep)
        search.after = TIDE_TEXT("n:2015:117187500");
    const struct took start = {now_s() * 1e3, cpu_s() * 1e3};
    must(tide_query_parse(text, 1710072000000, 0, tide_mem_heap(), &query, &err), "parse", &err);
    search.query = query;
    if (question->count) {
        uint64_t count = 0, bytes = 0;
        must(tide_search_count(bench->archive, query, &count, &bytes, &err), "count", &err);
        *found += (size_t)count;
    } else {
        must(tide_search_run(bench->archive, &search, count_found, found, &next, &more, &err),
             "search", &err);
    }
    const struct took took = {now_s() * 1e3 - start.wall_ms, cpu_s() * 1e3 - start.cpu_ms};
    tide_query_free(query);
    tide_buf_done(&next);
    return took;
}

static void measure(struct bench *bench, const struct question *question)
{
    double times[ROUNDS];
    double cpu[ROUNDS];
    tide_buf text;
    size_t found = 0;
    tide_buf_init(&text, tide_mem_heap(), 4096);
    const size_t rounds = question->count || question->ranked ? ROUNDS / 3 : ROUNDS;
    for (size_t i = 0; i < rounds; i++) {
        query_write(bench, question->query, &text);
        const struct took took = ask(bench, question, tide_buf_text(&text), &found);
        times[i] = took.wall_ms;
        cpu[i] = took.cpu_ms;
    }
    qsort(times, rounds, sizeof times[0], order);
    qsort(cpu, rounds, sizeof cpu[0], order);
    const double p95 = times[rounds * 95 / 100];
    (void)printf("{\"name\":\"search_%s_p50\",\"value\":%.3f,\"unit\":\"ms\",\"found\":%zu}\n",
                 question->name, times[rounds / 2], found / rounds);
    (void)printf("{\"name\":\"search_%s_p95\",\"value\":%.3f,\"unit\":\"ms\",\"cpu\":%.3f,"
                 "\"query\":",
                 question->name, p95, cpu[rounds * 95 / 100]);
    (void)printf("\"");
    for (const char *at = question->query; *at != '\0'; at++)
        (void)printf(*at == '"' ? "\\%c" : "%c", *at);
    (void)printf("\"}\n");
    (void)fflush(stdout);
    bench->missed = bench->missed || (question->target_ms > 0 && p95 > question->target_ms);
    tide_buf_done(&text);
}

static const struct question questions[] = {
    {.name = "all", .target_ms = 50, .query = ""},
    {.name = "every_message_has_it", .target_ms = 50, .query = "the"},
    {.name = "frequent_word", .target_ms = 50, .query = "%c"},
    {.name = "word", .target_ms = 50, .query = "%m"},
    {.name = "rare_word", .target_ms = 50, .query = "%r"},
    {.name = "absent_word", .target_ms = 50, .query = "zzzzz"},
    {.name = "two_frequent", .target_ms = 50, .query = "%c %c"},
    {.name = "two_words", .target_ms = 50, .query = "%m %m"},
    {.name = "two_rare", .target_ms = 50, .query = "%r %r"},
    {.name = "every_and_rare", .target_ms = 50, .query = "the %r"},
    {.name = "every_and_absent", .target_ms = 50, .query = "the zzzzz"},
    {.name = "either", .target_ms = 50, .query = "%m OR %r"},
    {.name = "phrase", .target_ms = 200, .query = "\"%c %c\""},
    {.name = "phrase_words", .target_ms = 200, .query = "\"%m %m\""},
    {.name = "without", .target_ms = 200, .query = "the -%c"},
    {.name = "only_without", .target_ms = 200, .query = "-%c"},
    {.name = "from", .target_ms = 200, .query = "from:%p"},
    {.name = "from_and_word", .target_ms = 200, .query = "from:%p %c"},
    {.name = "subject", .target_ms = 200, .query = "subject:%m"},
    {.name = "subject_never", .target_ms = 200, .query = "subject:the"},
    {.name = "attachment", .target_ms = 200, .query = "the has:attachment"},
    {.name = "attachment_rare", .target_ms = 200, .query = "%r has:attachment"},
    {.name = "filename", .target_ms = 200, .query = "filename:report.pdf %m"},
    {.name = "unread", .target_ms = 200, .query = "is:unread %m"},
    {.name = "label_rare", .target_ms = 200, .query = "the label:rare-one"},
    {.name = "label_rare_alone", .target_ms = 200, .query = "label:rare-one"},
    {.name = "label_and_frequent", .target_ms = 200, .query = "label:common in:inbox %c"},
    {.name = "larger", .target_ms = 200, .query = "the larger:19M"},
    {.name = "larger_alone", .target_ms = 200, .query = "larger:19M"},
    {.name = "larger_never", .target_ms = 200, .query = "larger:100M"},
    {.name = "smaller", .target_ms = 200, .query = "%m smaller:10k"},
    {.name = "dated", .target_ms = 200, .query = "%m after:2015/03/01 before:2015/09/01"},
    {.name = "mixed_or", .target_ms = 200, .query = "(%r OR larger:19M OR label:rare-one) -%c"},
    {.name = "message_id", .target_ms = 200, .query = "rfc822msgid:2017000000123@example.com"},
    {.name = "trash", .target_ms = 200, .query = "in:trash %m"},
    {.name = "archive", .target_ms = 200, .query = "in:archive %m"},
    {.name = "oldest_first", .target_ms = 50, .query = "the", .oldest_first = true},
    {.name = "deep_page", .target_ms = 50, .query = "the", .deep = true},
    {.name = "deep_page_word", .target_ms = 50, .query = "%m", .deep = true},
    {.name = "snippets", .target_ms = 200, .query = "%m", .snippets = true},
    {.name = "ranked_every", .target_ms = 300, .query = "the", .ranked = true},
    {.name = "ranked_two", .target_ms = 300, .query = "%c %c", .ranked = true},
    {.name = "ranked_words", .target_ms = 300, .query = "%m %m", .ranked = true},
    {.name = "ranked_every_and_word", .target_ms = 300, .query = "the %m", .ranked = true},
    {.name = "ranked_either", .target_ms = 300, .query = "%m OR %r", .ranked = true},
    {.name = "ranked_label", .target_ms = 300, .query = "%c label:common", .ranked = true},
    {.name = "count_word", .query = "%m", .count = true},
    {.name = "count_every", .query = "the", .count = true},
};

int main(int argc, char **argv)
{
    struct bench bench = {.messages = 120000, .rng = tide_rng_seeded(7)};
    tide_error err = {TIDE_OK, 0, ""};
    const char *messages = getenv("TIDE_BENCH_MESSAGES");
    if (messages != NULL)
        (void)tide_text_to_u64(tide_text_of(messages), &bench.messages);
    bench.weights = calloc(VOCABULARY, sizeof *bench.weights);
    TIDE_ASSERT(bench.weights != NULL);
    for (uint32_t i = 0; i < VOCABULARY; i++)
        bench.weights[i] = (i > 0 ? bench.weights[i - 1] : 0) + 1.0 / (i + 8);
    must(tide_world_real_new(tide_mem_heap(), &bench.world, &err), "world", &err);
    if (argc > 1)
        (void)snprintf(bench.dir, sizeof bench.dir, "%s", argv[1]);
    else
        dir_make(bench.dir);
    must(tide_dir_make(bench.world, bench.dir, &err), "directory", &err);
    build(&bench);
    const struct tide_archive_options options = {
        .dir = bench.dir, .account = "me@example.com", .world = bench.world, .read_only = true};
    must(tide_archive_open(&options, tide_mem_heap(), &bench.archive, &err), "open", &err);
    for (size_t i = 0; i < sizeof questions / sizeof questions[0]; i++)
        if (argc <= 2 || strcmp(argv[2], questions[i].name) == 0)
            measure(&bench, &questions[i]);
    must(tide_archive_close(bench.archive, &err), "close", &err);
    if (argc <= 1)
        dir_remove(bench.dir);
    tide_world_real_free(bench.world);
    free(bench.weights);
    return bench.missed ? 1 : 0;
}
