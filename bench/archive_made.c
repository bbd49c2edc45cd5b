#include "archive_made.h"

#include "base/check.h"
#include "bench.h"
#include "mail/archive/shard.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    YEARS = 12,
    YEAR_FIRST = 2012,
    VOCABULARY = 60000,
    BODIES = 2000, /* different ones; messages share them */
    BODY_WORDS = 110,
    GROUP = 1000, /* messages per transaction, as when indexing a sync */
    PEOPLE = 5000,
};

/* ---- words ---- */

/* The n-th word in order of frequency, as letters: readable in a query. */
const char *archive_word(uint32_t rank, char room[16])
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

static double *weights_make(void)
{
    double *weights = calloc(VOCABULARY, sizeof *weights);
    TIDE_ASSERT(weights != NULL);
    for (uint32_t i = 0; i < VOCABULARY; i++)
        weights[i] = (i > 0 ? weights[i - 1] : 0) + 1.0 / (i + 8);
    return weights;
}

static uint32_t rank_drawn(struct archive_made *made)
{
    const double at = (double)tide_rng_below(&made->rng, 1u << 30) / (double)(1u << 30) *
                      made->weights[VOCABULARY - 1];
    uint32_t low = 0, high = VOCABULARY - 1;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (made->weights[middle] < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void words_write(struct archive_made *made, size_t count, tide_buf *out)
{
    char room[16];
    for (size_t i = 0; i < count; i++) {
        (void)tide_buf_add_text(out, archive_word(rank_drawn(made), room));
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

static void html_write(struct archive_made *made, tide_buf *out)
{
    enum { ROWS = 100, ROW_WORDS = 3 };
    (void)tide_buf_add_text(out, "Content-Type: text/html; charset=utf-8\r\n\r\n"
                                 "<html><head><style>td { color: #333 }</style></head><body>"
                                 "the <table width=\"600\">\r\n");
    for (int i = 0; i < ROWS; i++) {
        (void)tide_buf_add_text(out, "<tr><td style=\"padding: 4px; font-size: 14px\">"
                                     "<a href=\"https://example.com/a\">");
        words_write(made, ROW_WORDS, out);
        (void)tide_buf_add_text(out, "</a></td></tr>\r\n");
    }
    (void)tide_buf_add_text(out, "</table></body></html>\r\n");
}

static void body_write(struct archive_made *made, int number, tide_buf *out)
{
    tide_buf_clear(out);
    (void)tide_buf_print(out, "From: a@example.com\r\nSubject: %d\r\n", number);
    if (made->html && number % 4 == 0) {
        html_write(made, out);
        return;
    }
    (void)tide_buf_add_text(out, "\r\nthe ");
    words_write(made, BODY_WORDS, out);
}

/* Messages to read snippets from, shared by all messages of the shard. */
static void bodies_put(struct archive_made *made, struct building *building)
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
        body_write(made, i, &building->text);
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
static void labels_put(struct archive_made *made, struct building *building, int64_t id)
{
    static const uint32_t one_in[] = {0, 3, 50, 40, 30, 5, 10, 20000};
    for (int label = 1; label <= 7; label++)
        if (tide_rng_below(&made->rng, one_in[label]) == 0)
            label_put(building, id, label);
}

static void id_write(int32_t year, uint64_t number, char out[40])
{
    (void)snprintf(out, 40, "%d%09" PRIu64, year, number);
}

void archive_id(uint64_t messages, uint64_t number, char out[40])
{
    number %= messages / YEARS * YEARS;
    id_write(YEAR_FIRST + (int32_t)(number % YEARS), number / YEARS, out);
}

static void message_put(struct archive_made *made, struct building *building, int64_t id,
                        int64_t internal_ms)
{
    struct tide_shard *shard = building->shard;
    char name[40], person[80], to[80];
    const uint64_t number = building->number++;
    const uint64_t size = tide_rng_below(&made->rng, 10000) == 0
                              ? 20000000 + tide_rng_below(&made->rng, 5000000)
                              : 2000 + tide_rng_below(&made->rng, 60000);
    const int files = tide_rng_below(&made->rng, 8) == 0;
    id_write(shard->year, number, name);
    (void)snprintf(person, sizeof person, "Person%" PRIu64 " <p%" PRIu64 "@example.com>",
                   number % PEOPLE, number % PEOPLE);
    (void)snprintf(to, sizeof to, "me@example.com, other%" PRIu64 "@example.org", number % 50);
    tide_buf_clear(&building->subject);
    tide_buf_clear(&building->text);
    words_write(made, 6, &building->subject);
    (void)tide_buf_add_text(&building->text, "the ");
    words_write(made, made->words, &building->text);
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
    labels_put(made, building, id);
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

static void shard_build(struct archive_made *made, tide_shards *shards, int32_t year)
{
    struct building building = {.number = 0};
    tide_error err = {TIDE_OK, 0, ""};
    tide_buf_init(&building.text, tide_mem_heap(), 1 << 20);
    tide_buf_init(&building.subject, tide_mem_heap(), 1 << 20);
    must(tide_shards_make(shards, year, 1, &building.shard, &err), "make", &err);
    struct tide_shard *shard = building.shard;
    shard_prepare(&building);
    const uint64_t count = made->messages / YEARS;
    const int64_t step_ms = (shard->end_ms - shard->start_ms) / (int64_t)(count + 1);
    must(tide_shard_begin(shard, &err), "begin", &err);
    bodies_put(made, &building);
    for (uint64_t i = 0; i < count; i++) {
        const int64_t ms = shard->start_ms + (int64_t)i * step_ms +
                           (int64_t)tide_rng_below(&made->rng, (uint64_t)step_ms);
        int64_t id = 0;
        must(tide_shard_place(shard, ms, &id, &err), "place", &err);
        message_put(made, &building, id, ms);
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

void archive_make(struct archive_made *made)
{
    const struct tide_archive_options options = {
        .dir = made->dir, .account = made->account, .world = made->world};
    tide_shards shards;
    tide_error err = {TIDE_OK, 0, ""};
    tide_shards_init(&shards, &options, tide_mem_heap());
    must(tide_shards_look(&shards, &err), "look", &err);
    const double start = now_s();
    made->weights = weights_make();
    if (shards.count == 0)
        for (int32_t year = YEAR_FIRST; year < YEAR_FIRST + YEARS; year++)
            shard_build(made, &shards, year);
    (void)fprintf(stderr, "archive of %" PRIu64 " messages ready after %.1f s\n", made->messages,
                  now_s() - start);
    tide_shards_done(&shards);
    free(made->weights);
    made->weights = NULL;
}
