/* search_bench.c - measures the time of a page of search results.
 *
 * Makes an archive of twelve years (archive_made.h), then runs many queries of each class
 * through the public interface, a page of fifty each, the rows of the results included.
 * Prints one JSON object per line: p50 and p95 in ms, and how much of it is CPU time,
 * which says more on a busy machine.
 *
 *     search_bench [DIR]
 *
 * With DIR the archive is made there once and used again the next time.
 * TIDE_BENCH_MESSAGES sets the number of messages (120,000). */
#include "archive_made.h"
#include "bench.h"

#include "mail/search/search.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WORDS = 110, /* in a text */
    ROUNDS = 60, /* queries of a class */
};

struct bench {
    tide_world *world;
    char dir[BENCH_PATH_BYTES];
    tide_rng rng;
    tide_archive *archive;
    bool missed;
};

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
            (void)tide_buf_add_text(out, archive_word(20000 + chance * 30, room));
        else if (*form == 'm')
            (void)tide_buf_add_text(out, archive_word(500 + chance, room));
        else if (*form == 'c')
            (void)tide_buf_add_text(out, archive_word(chance % 20, room));
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
    {.name = "word_exact", .target_ms = 50, .query = "+%m"},
    {.name = "prefix", .target_ms = 50, .query = "%m*"},
    {.name = "rare_word", .target_ms = 50, .query = "%r"},
    {.name = "absent_word", .target_ms = 50, .query = "zzzzz"},
    {.name = "two_frequent", .target_ms = 50, .query = "%c %c"},
    {.name = "two_words", .target_ms = 50, .query = "%m %m"},
    {.name = "two_words_exact", .target_ms = 50, .query = "+%m +%m"},
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
    struct bench bench = {.rng = tide_rng_seeded(11)};
    struct archive_made made = {
        .account = "me@example.com", .messages = 120000, .words = WORDS, .rng = tide_rng_seeded(7)};
    tide_error err = {TIDE_OK, 0, ""};
    const char *messages = getenv("TIDE_BENCH_MESSAGES");
    if (messages != NULL)
        (void)tide_text_to_u64(tide_text_of(messages), &made.messages);
    must(tide_world_real_new(tide_mem_heap(), &bench.world, &err), "world", &err);
    if (argc > 1)
        (void)snprintf(bench.dir, sizeof bench.dir, "%s", argv[1]);
    else
        dir_make(bench.dir);
    must(tide_dir_make(bench.world, bench.dir, &err), "directory", &err);
    made.world = bench.world;
    made.dir = bench.dir;
    archive_make(&made);
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
    return bench.missed ? 1 : 0;
}
