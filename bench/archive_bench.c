/* archive_bench.c - measures storing and indexing mail, in time and in bytes.
 *
 *   archive_bench [MESSAGES] [DIR [KIND]]
 *
 * Mail of 10 kB on average (headers, text and HTML in words of a language, one in
 * twelve with an attachment) is stored in a real archive under /tmp, indexed, and read
 * back, one step after the other; then mail of several kinds is stored and indexed at
 * once, as a sync does it.  Bytes are those of whole pages, compared with every
 * message compressed alone by zstd -3, and with the raw bytes.  With DIR only one kind
 * (mixed, short, newsletter or attachment; mixed), at once, and the archive is kept.
 * Prints figures without a verdict. */
#include "bench.h"

#include "base/check.h"
#include "base/rng.h"
#include "mail/archive/archive.h"

#include <inttypes.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

enum { WORDS = 40000 };

struct language {
    char words[WORDS][16];
    double sums[WORDS];
};

static void language_make(struct language *language)
{
    static const char letters[] = "etaoinshrdlucmfwypvbgk";
    tide_rng rng = tide_rng_seeded(1);
    double sum = 0;
    for (size_t i = 0; i < WORDS; i++) {
        size_t length = 2 + (size_t)(log((double)i + 2) / 1.4) + (size_t)tide_rng_below(&rng, 3);
        for (size_t j = 0; j < length && j < 15; j++)
            language->words[i][j] = letters[tide_rng_below(&rng, 18)];
        sum += 1.0 / ((double)i + 5);
        language->sums[i] = sum;
    }
}

static const char *word(const struct language *language, tide_rng *rng)
{
    double at = (double)tide_rng_below(rng, 1 << 30) / (1 << 30) * language->sums[WORDS - 1];
    size_t low = 0;
    size_t high = WORDS - 1;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (language->sums[middle] < at)
            low = middle + 1;
        else
            high = middle;
    }
    return language->words[low];
}

static void add_base64(tide_buf *raw, tide_rng *rng, size_t bytes)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char line[78];
    for (size_t done = 0; done < bytes; done += 57) {
        for (size_t i = 0; i < 76; i++)
            line[i] = alphabet[tide_rng_below(rng, 64)];
        line[76] = '\r';
        line[77] = '\n';
        TIDE_ASSERT(tide_buf_add(raw, line, sizeof line) == TIDE_OK);
    }
}

/* ---- mail of several kinds ---- */

enum kind { KIND_MIXED, KIND_SHORT, KIND_NEWSLETTER, KIND_ATTACHMENT, KINDS };
static const char *const kind_names[KINDS] = {"mixed", "short", "newsletter", "attachment"};

static void add_words(tide_buf *raw, const struct language *language, tide_rng *rng, size_t count)
{
    for (size_t i = 0; i < count; i++)
        (void)tide_buf_print(raw, i % 12 == 11 ? "%s\r\n" : "%s ", word(language, rng));
    (void)tide_buf_print(raw, "\r\n");
}

static void add_head(tide_buf *raw, const struct language *language, tide_rng *rng, uint64_t number)
{
    (void)tide_buf_print(raw,
                         "Received: by 10.0.0.%u with SMTP id %016" PRIx64 ";\r\n"
                         "DKIM-Signature: v=1; a=rsa-sha256; d=example.com; s=k1;\r\n b=",
                         (unsigned)(number % 250), tide_rng_next(rng));
    add_base64(raw, rng, 200);
    (void)tide_buf_print(raw, "From: %s <%s@example.com>\r\nTo: me@example.com\r\nSubject:",
                         word(language, rng), word(language, rng));
    for (int i = 0; i < 6; i++)
        (void)tide_buf_print(raw, " %s", word(language, rng));
    (void)tide_buf_print(raw,
                         "\r\nMessage-ID: <%016" PRIx64 "@example.com>\r\nMIME-Version: 1.0\r\n",
                         tide_rng_next(rng));
}

static void add_file(tide_buf *raw, const struct language *language, tide_rng *rng, uint64_t number,
                     size_t bytes)
{
    (void)tide_buf_print(raw,
                         "--b\r\nContent-Type: application/pdf; name=%s.pdf\r\n"
                         "Content-Transfer-Encoding: base64\r\n\r\n",
                         word(language, rng));
    tide_rng file = tide_rng_seeded(number % 36 == 0 ? number % 1000 : number);
    add_base64(raw, &file, bytes + (size_t)tide_rng_below(&file, bytes));
}

static const char parts[] = "Content-Type: multipart/mixed; boundary=b\r\n\r\n"
                            "--b\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n";

/* Text, the same length of links as HTML, and now and then an attachment. */
static void add_mixed(tide_buf *raw, const struct language *language, tide_rng *rng,
                      uint64_t number)
{
    (void)tide_buf_add_text(raw, parts);
    const size_t words = 40 + (size_t)tide_rng_below(rng, 500);
    add_words(raw, language, rng, words);
    (void)tide_buf_print(raw, "--b\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<html>");
    for (size_t i = 0; i < words / 4; i++)
        (void)tide_buf_print(raw,
                             "<p style=\"margin:0\"><a href=\"https://example.com/%s\">%s</a>"
                             "\r\n",
                             word(language, rng), word(language, rng));
    (void)tide_buf_print(raw, "</html>\r\n");
    if (number % 12 == 0)
        add_file(raw, language, rng, number, 20000);
    (void)tide_buf_print(raw, "--b--\r\n");
}

/* A page of a newsletter: a style sheet, tables, links that count clicks, and the
 * same words as plain text with the same links. */
static void add_newsletter(tide_buf *raw, const struct language *language, tide_rng *rng)
{
    enum { ARTICLES = 12, WORDS_EACH = 30 };
    tide_rng plain = *rng;
    (void)tide_buf_add_text(raw, "Content-Type: multipart/alternative; boundary=b\r\n\r\n"
                                 "--b\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n");
    for (int i = 0; i < ARTICLES; i++) {
        add_words(raw, language, &plain, WORDS_EACH);
        (void)tide_buf_print(raw, "https://click.example.com/u/?qs=%016" PRIx64 "%016" PRIx64,
                             tide_rng_next(&plain), tide_rng_next(&plain));
        (void)tide_buf_print(raw, "\r\n\r\n");
    }
    (void)tide_buf_add_text(raw, "--b\r\nContent-Type: text/html; charset=utf-8\r\n\r\n"
                                 "<html><head><style>\r\n");
    for (int i = 0; i < 40; i++)
        (void)tide_buf_print(raw, ".c%d td{padding:%dpx 8px;font:12px Arial;color:#3%d3}\r\n", i,
                             i % 9, i % 10);
    (void)tide_buf_add_text(raw, "</style></head><body><table>\r\n");
    for (int i = 0; i < ARTICLES; i++) {
        (void)tide_buf_print(raw,
                             "<tr><td align=\"left\" style=\"padding:0 20px 10px 20px;font-family:"
                             "Arial,sans-serif;font-size:15px;line-height:22px;color:#333333\">"
                             "\r\n");
        add_words(raw, language, rng, WORDS_EACH);
        (void)tide_buf_print(raw,
                             "<a href=\"https://click.example.com/u/?qs=%016" PRIx64 "%016" PRIx64
                             "\" style=\"color:#0066cc;text-decoration:none\"><img width=\"600\" "
                             "src=\"https://img.example.com/%d.png\"></a></td></tr>\r\n",
                             tide_rng_next(rng), tide_rng_next(rng), i);
    }
    (void)tide_buf_add_text(raw, "</table></body></html>\r\n--b--\r\n");
}

static void mail_make(const struct language *language, enum kind kind, uint64_t number,
                      tide_buf *raw)
{
    tide_rng rng = tide_rng_seeded(number + 1);
    tide_buf_clear(raw);
    add_head(raw, language, &rng, number);
    switch (kind) {
    case KIND_SHORT:
        (void)tide_buf_add_text(raw, "Content-Type: text/plain; charset=utf-8\r\n\r\n");
        add_words(raw, language, &rng, 20 + (size_t)tide_rng_below(&rng, 200));
        break;
    case KIND_NEWSLETTER:
        add_newsletter(raw, language, &rng);
        break;
    case KIND_ATTACHMENT:
        (void)tide_buf_add_text(raw, parts);
        add_words(raw, language, &rng, 20 + (size_t)tide_rng_below(&rng, 200));
        add_file(raw, language, &rng, number, 30000);
        (void)tide_buf_add_text(raw, "--b--\r\n");
        break;
    case KIND_MIXED:
    case KINDS:
        add_mixed(raw, language, &rng, number);
        break;
    }
}

/* ---- measuring ---- */

static uint64_t bytes_of(tide_archive *archive)
{
    uint64_t sum = 0;
    size_t count = tide_archive_shards(archive);
    TIDE_ASSERT(tide_archive_checkpoint(archive, NULL, NULL) == TIDE_OK);
    for (size_t i = 0; i < count; i++) {
        struct tide_shard_state state;
        TIDE_ASSERT(tide_archive_shard(archive, i, &state, NULL) == TIDE_OK);
        sum += state.bytes;
    }
    return sum;
}

static void no_damage(const struct tide_damage *damage, void *arg)
{
    (void)arg;
    fprintf(stderr, "%s: %s\n", damage->gmail_id, damage->what);
    abort();
}

static void show(const char *prefix, const char *name, double value, const char *unit, double ratio,
                 const char *to)
{
    char whole[80];
    (void)snprintf(whole, sizeof whole, "archive_%s%s", prefix, name);
    figure(whole, value, unit, ratio, to);
}

struct bench {
    const struct language *language;
    tide_world *world;
    const char *dir;
    uint64_t messages;
    ZSTD_CCtx *zstd;
    char *room;
    tide_buf raw;
    /* Of the last filling. */
    uint64_t raw_bytes, zstd_bytes;
    double aside_s; /* making mail and compressing it alone: not counted */
    double zstd_s;
};

enum { RAW_BYTES_MAX = 1 << 20 };

static tide_archive *open_archive(const struct bench *bench, bool index_later)
{
    tide_archive *archive = NULL;
    tide_error err = {0};
    const struct tide_archive_options options = {.dir = bench->dir,
                                                 .account = "bench@example.com",
                                                 .world = bench->world,
                                                 .index_later = index_later};
    TIDE_ASSERT(tide_archive_open(&options, tide_mem_heap(), &archive, &err) == TIDE_OK);
    return archive;
}

/* Makes the n-th message of a year, compresses it alone, and stores it. */
static uint64_t put(struct bench *bench, tide_archive *archive, enum kind kind, uint64_t number)
{
    const double made_s = thread_cpu_s();
    uint64_t ticket = 0;
    mail_make(bench->language, kind, number, &bench->raw);
    const double packed_s = thread_cpu_s();
    bench->raw_bytes += bench->raw.bytes;
    bench->zstd_bytes +=
        ZSTD_compressCCtx(bench->zstd, bench->room, ZSTD_compressBound(RAW_BYTES_MAX),
                          bench->raw.data, bench->raw.bytes, 3);
    const double done_s = thread_cpu_s();
    bench->zstd_s += done_s - packed_s;
    bench->aside_s += done_s - made_s;
    char id[32];
    (void)snprintf(id, sizeof id, "%016" PRIx64, 0x16f0000000000000 + number * 1000003);
    const tide_text labels[] = {TIDE_TEXT("INBOX"), TIDE_TEXT("CATEGORY_UPDATES")};
    const struct tide_incoming incoming = {
        .gmail_id = tide_text_of(id),
        .thread_id = tide_text_of(id),
        .history_id = TIDE_TEXT("123456"),
        .internal_ms = 1546300800000 + (int64_t)(number * (31536000000 / bench->messages)),
        .labels = labels,
        .labels_count = 2,
        .raw = tide_buf_text(&bench->raw),
    };
    TIDE_ASSERT(tide_archive_put(archive, &incoming, NULL, &ticket, NULL) == TIDE_OK);
    return ticket;
}

static void fill(struct bench *bench, tide_archive *archive, enum kind kind)
{
    bench->raw_bytes = bench->zstd_bytes = 0;
    bench->aside_s = bench->zstd_s = 0;
    uint64_t ticket = 0;
    for (uint64_t i = 0; i < bench->messages; i++)
        ticket = put(bench, archive, kind, i);
    TIDE_ASSERT(tide_archive_sync(archive, ticket, NULL, NULL) == TIDE_OK);
}

/* Bytes of pages; `index` selects the full-text index, or everything stored of the messages
 * themselves. 0 if SQLite was built without dbstat. */
static double pages_of(const char *dir, bool index)
{
    char path[400];
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    double bytes = 0;
    (void)snprintf(path, sizeof path, "%s/2019.db", dir);
    TIDE_ASSERT(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK);
    const char *sql = index ? "SELECT sum(pgsize) FROM dbstat WHERE name LIKE 'words%'"
                            : "SELECT sum(pgsize) FROM dbstat WHERE name NOT LIKE 'words%'"
                              " AND name NOT LIKE 'head%'";
    if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) == SQLITE_OK &&
        sqlite3_step(stmt) == SQLITE_ROW)
        bytes = sqlite3_column_double(stmt, 0);
    (void)sqlite3_finalize(stmt);
    (void)sqlite3_close(db);
    return bytes;
}

/* Storing, indexing and reading, one after the other. */
static void apart(struct bench *bench)
{
    const double n = (double)bench->messages;
    const double begin_s = now_s();
    double spent_s = cpu_s();
    tide_archive *archive = open_archive(bench, true);
    fill(bench, archive, KIND_MIXED);
    spent_s = cpu_s() - spent_s - bench->aside_s;
    const double wall_s = now_s() - begin_s;
    const uint64_t stored_bytes = bytes_of(archive);
    const double raw = (double)bench->raw_bytes, stored = (double)stored_bytes;
    show("", "mail_mean", raw / n / 1000, "kB", 0, NULL);
    show("", "put", spent_s / n * 1e6, "us", spent_s / bench->zstd_s, "zstd -3 alone");
    show("", "put_wall", wall_s / n * 1e6, "us", 0, NULL);
    show("", "stored", stored / 1e6, "MB", stored / (double)bench->zstd_bytes,
         "the sum of zstd -3");
    show("", "stored_of_raw", stored / 1e6, "MB", stored / raw, "raw");
    uint64_t done = 0;
    spent_s = cpu_s();
    TIDE_ASSERT(tide_archive_index(archive, UINT64_MAX, &done, NULL) == TIDE_OK);
    spent_s = cpu_s() - spent_s;
    const double grown = (double)(bytes_of(archive) - stored_bytes);
    show("", "index", spent_s / n * 1e6, "us", spent_s / bench->zstd_s, "zstd -3 alone");
    show("", "index_bytes", grown / 1e6, "MB", grown / raw, "raw");
    spent_s = cpu_s();
    TIDE_ASSERT(tide_archive_verify(archive, 0, no_damage, NULL, &done, NULL) == TIDE_OK);
    TIDE_ASSERT(done == bench->messages);
    show("", "verify", (cpu_s() - spent_s) / n * 1e6, "us", 0, NULL);
    TIDE_ASSERT(tide_archive_close(archive, NULL) == TIDE_OK);
}

/* Storing and indexing at once, as a sync does it. */
static void together(struct bench *bench, enum kind kind)
{
    char name[32];
    (void)snprintf(name, sizeof name, "%s_", kind_names[kind]);
    const double n = (double)bench->messages;
    uint64_t done = 0;
    double spent_s = cpu_s();
    tide_archive *archive = open_archive(bench, false);
    fill(bench, archive, kind);
    TIDE_ASSERT(tide_archive_index(archive, UINT64_MAX, &done, NULL) == TIDE_OK);
    TIDE_ASSERT(tide_archive_checkpoint(archive, NULL, NULL) == TIDE_OK);
    spent_s = cpu_s() - spent_s - bench->aside_s;
    TIDE_ASSERT(tide_archive_close(archive, NULL) == TIDE_OK);
    const double raw = (double)bench->raw_bytes;
    const double stored = pages_of(bench->dir, false), words = pages_of(bench->dir, true);
    show(name, "mean", raw / n / 1000, "kB", 0, NULL);
    show(name, "cpu", spent_s / n * 1e6, "us", spent_s / bench->zstd_s, "zstd -3 alone");
    show(name, "stored", stored / 1e6, "MB", stored / (double)bench->zstd_bytes,
         "the sum of zstd -3");
    show(name, "words", words / 1e6, "MB", words / raw, "raw");
}

int main(int count, char **args)
{
    char temp[BENCH_PATH_BYTES];
    tide_error err = {0};
    struct bench bench = {.messages = 20000, .dir = temp};
    if (count > 1 && (!tide_text_to_u64(tide_text_of(args[1]), &bench.messages) ||
                      bench.messages < 100 || bench.messages > 10000000))
        return 2;
    enum kind only = KIND_MIXED;
    while (count > 3 && only < KINDS && strcmp(args[3], kind_names[only]) != 0)
        only++;
    if (only == KINDS)
        return 2;
    struct language *language = calloc(1, sizeof *language);
    bench.room = malloc(ZSTD_compressBound(RAW_BYTES_MAX));
    bench.zstd = ZSTD_createCCtx();
    TIDE_ASSERT(language != NULL && bench.room != NULL && bench.zstd != NULL);
    language_make(language);
    bench.language = language;
    tide_buf_init(&bench.raw, tide_mem_heap(), RAW_BYTES_MAX);
    TIDE_ASSERT(tide_world_real_new(tide_mem_heap(), &bench.world, &err) == TIDE_OK);
    if (count > 2) {
        bench.dir = args[2];
        together(&bench, only);
    } else {
        dir_make(temp);
        apart(&bench);
        for (enum kind kind = KIND_MIXED; kind < KINDS; kind++) {
            dir_remove(temp);
            together(&bench, kind);
        }
        dir_remove(temp);
    }
    tide_world_real_free(bench.world);
    tide_buf_done(&bench.raw);
    (void)ZSTD_freeCCtx(bench.zstd);
    free(bench.room);
    free(language);
    return 0;
}
