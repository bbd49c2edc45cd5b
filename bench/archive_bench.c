/* What storing and indexing mail costs, in time and in bytes.
 *
 *   archive_bench [MESSAGES] [DIR]
 *
 * Mail of 10 kB on average (headers, text and HTML in words of a language, one in
 * twelve with an attachment) goes through a real archive in DIR (a directory of
 * its own under /tmp unless given), is indexed, and is read again.  Bytes are compared with what
 * zstd -3 makes of every message by itself.  Figures, no verdicts. */
#include "base/check.h"
#include "base/rng.h"
#include "mail/archive.h"

#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
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

static void mail_make(const struct language *language, uint64_t number, tide_buf *raw)
{
    tide_rng rng = tide_rng_seeded(number + 1);
    tide_buf_clear(raw);
    (void)tide_buf_print(raw,
                         "Received: by 10.0.0.%u with SMTP id %016" PRIx64 ";\r\n"
                         "DKIM-Signature: v=1; a=rsa-sha256; d=example.com; s=k1;\r\n b=",
                         (unsigned)(number % 250), tide_rng_next(&rng));
    add_base64(raw, &rng, 200);
    (void)tide_buf_print(raw, "From: %s <%s@example.com>\r\nTo: me@example.com\r\nSubject:",
                         word(language, &rng), word(language, &rng));
    for (int i = 0; i < 6; i++)
        (void)tide_buf_print(raw, " %s", word(language, &rng));
    (void)tide_buf_print(raw,
                         "\r\nMessage-ID: <%016" PRIx64 "@example.com>\r\nMIME-Version: 1.0\r\n"
                         "Content-Type: multipart/mixed; boundary=b\r\n\r\n"
                         "--b\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n",
                         tide_rng_next(&rng));
    size_t words = 40 + (size_t)tide_rng_below(&rng, 500);
    for (size_t i = 0; i < words; i++)
        (void)tide_buf_print(raw, i % 12 == 11 ? "%s\r\n" : "%s ", word(language, &rng));
    (void)tide_buf_print(raw, "\r\n--b\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<html>");
    for (size_t i = 0; i < words / 4; i++)
        (void)tide_buf_print(raw,
                             "<p style=\"margin:0\"><a href=\"https://example.com/%s\">%s</a>"
                             "\r\n",
                             word(language, &rng), word(language, &rng));
    (void)tide_buf_print(raw, "</html>\r\n");
    if (number % 12 == 0) {
        (void)tide_buf_print(raw,
                             "--b\r\nContent-Type: application/pdf; name=%s.pdf\r\n"
                             "Content-Transfer-Encoding: base64\r\n\r\n",
                             word(language, &rng));
        tide_rng file = tide_rng_seeded(number % 36 == 0 ? number % 1000 : number);
        add_base64(raw, &file, 20000 + (size_t)tide_rng_below(&file, 20000));
    }
    (void)tide_buf_print(raw, "--b--\r\n");
}

static double now_s(clockid_t clock)
{
    struct timespec now;
    (void)clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

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

static void remove_all(const char *dir)
{
    DIR *handle = opendir(dir);
    for (struct dirent *entry; handle != NULL && (entry = readdir(handle)) != NULL;) {
        char path[400];
        (void)snprintf(path, sizeof path, "%s/%s", dir, entry->d_name);
        (void)unlink(path);
    }
    if (handle != NULL)
        (void)closedir(handle);
    (void)rmdir(dir);
}

/* One figure as script/bench wants it. */
static void show(const char *name, double value, const char *unit, double ratio, const char *to)
{
    printf("{\"name\":\"%s\",\"value\":%.6g,\"unit\":\"%s\"", name, value, unit);
    if (to != NULL)
        printf(",\"ratio\":%.4g,\"to\":\"%s\"", ratio, to);
    printf("}\n");
    (void)fflush(stdout);
}

int main(int count, char **args)
{
    uint64_t messages = 20000;
    char temp[] = "/tmp/archive-bench-XXXXXX";
    tide_world *world = NULL;
    tide_archive *archive = NULL;
    tide_error err = {0};
    if (count > 1 && !tide_text_to_u64(tide_text_of(args[1]), &messages))
        return 2;
    const char *dir = count > 2 ? args[2] : mkdtemp(temp);
    TIDE_ASSERT(dir != NULL);
    struct language *language = calloc(1, sizeof *language);
    TIDE_ASSERT(language != NULL);
    language_make(language);
    TIDE_ASSERT(tide_world_real_new(tide_mem_heap(), &world, &err) == TIDE_OK);
    const struct tide_archive_options options = {
        .dir = dir, .account = "bench@example.com", .world = world, .index_later = true};
    TIDE_ASSERT(tide_archive_open(&options, tide_mem_heap(), &archive, &err) == TIDE_OK);

    tide_buf raw;
    tide_buf_init(&raw, tide_mem_heap(), 1 << 20);
    uint64_t raw_bytes = 0;
    uint64_t zstd_bytes = 0;
    ZSTD_CCtx *zstd = ZSTD_createCCtx();
    char *room = malloc(ZSTD_compressBound(1 << 20));
    double making_s = 0;
    const double begin_s = now_s(CLOCK_MONOTONIC);
    const double begin_cpu_s = now_s(CLOCK_PROCESS_CPUTIME_ID);
    double zstd_s = 0;
    uint64_t ticket = 0;
    for (uint64_t i = 0; i < messages; i++) {
        const double made_s = now_s(CLOCK_THREAD_CPUTIME_ID);
        mail_make(language, i, &raw);
        const double packed_s = now_s(CLOCK_THREAD_CPUTIME_ID);
        raw_bytes += raw.bytes;
        zstd_bytes +=
            ZSTD_compressCCtx(zstd, room, ZSTD_compressBound(1 << 20), raw.data, raw.bytes, 3);
        making_s += packed_s - made_s;
        zstd_s += now_s(CLOCK_THREAD_CPUTIME_ID) - packed_s;
        char id[32];
        (void)snprintf(id, sizeof id, "%016" PRIx64, 0x16f0000000000000 + i * 1000003);
        const tide_text labels[] = {TIDE_TEXT("INBOX"), TIDE_TEXT("CATEGORY_UPDATES")};
        const struct tide_incoming incoming = {
            .gmail_id = tide_text_of(id),
            .thread_id = tide_text_of(id),
            .history_id = TIDE_TEXT("123456"),
            .internal_ms = 1546300800000 + (int64_t)(i * (31536000000 / messages)),
            .labels = labels,
            .labels_count = 2,
            .raw = tide_buf_text(&raw),
        };
        TIDE_ASSERT(tide_archive_put(archive, &incoming, NULL, &ticket, &err) == TIDE_OK);
    }
    TIDE_ASSERT(tide_archive_sync(archive, ticket, NULL, &err) == TIDE_OK);
    const double n = (double)messages;
    const double put_s = now_s(CLOCK_MONOTONIC) - begin_s;
    const double put_cpu_s = now_s(CLOCK_PROCESS_CPUTIME_ID) - begin_cpu_s - making_s - zstd_s;
    const uint64_t stored_bytes = bytes_of(archive);
    show("archive_mail_mean", (double)raw_bytes / n / 1000, "kB", 0, NULL);
    show("archive_put", put_cpu_s / n * 1e6, "us", put_cpu_s / zstd_s, "zstd -3 alone");
    show("archive_put_wall", put_s / n * 1e6, "us", 0, NULL);
    show("archive_stored", (double)stored_bytes / 1e6, "MB",
         (double)stored_bytes / (double)zstd_bytes, "the sum of zstd -3");
    show("archive_stored_of_raw", (double)stored_bytes / 1e6, "MB",
         (double)stored_bytes / (double)raw_bytes, "raw");

    uint64_t done = 0;
    double cpu_s = now_s(CLOCK_PROCESS_CPUTIME_ID);
    TIDE_ASSERT(tide_archive_index(archive, UINT64_MAX, &done, &err) == TIDE_OK);
    cpu_s = now_s(CLOCK_PROCESS_CPUTIME_ID) - cpu_s;
    const uint64_t indexed_bytes = bytes_of(archive);
    show("archive_index", cpu_s / n * 1e6, "us", 0, NULL);
    show("archive_index_bytes", (double)(indexed_bytes - stored_bytes) / 1e6, "MB",
         (double)(indexed_bytes - stored_bytes) / (double)raw_bytes, "raw");
    cpu_s = now_s(CLOCK_PROCESS_CPUTIME_ID);
    TIDE_ASSERT(tide_archive_verify(archive, 0, no_damage, NULL, &done, &err) == TIDE_OK);
    TIDE_ASSERT(done == messages);
    show("archive_verify", (now_s(CLOCK_PROCESS_CPUTIME_ID) - cpu_s) / n * 1e6, "us", 0, NULL);
    TIDE_ASSERT(tide_archive_close(archive, &err) == TIDE_OK);
    tide_world_real_free(world);
    tide_buf_done(&raw);
    (void)ZSTD_freeCCtx(zstd);
    free(room);
    free(language);
    if (count <= 2)
        remove_all(dir);
    return 0;
}
