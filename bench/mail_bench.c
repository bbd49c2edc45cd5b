/* mail_bench.c - measures mirroring a mailbox, as a whole and in parts.
 *
 *   mail_bench [MESSAGES] [BYTES]
 *
 * MESSAGES (20,000 unless given) of BYTES each (10,000; 0: a spread as in real
 * mailboxes, with attachments) are served by tidemark-cloud without quota or latency.
 * The real `tidemark mail sync` fetches, stores and indexes them all; then a second
 * run finds nothing new.  Then this program extracts the same bytes from JSON in
 * memory, and stores and indexes them in the same archive: the ratio is what the
 * network and the engine add.  Finally Debian's lieer and the mirror pull a smaller
 * mailbox from one server (mail_lieer.sh), where that is possible.
 *
 * CPU time is user and system time of all threads (wait4).  Prints one JSON object
 * per line: {"name","value","unit","ratio","to"}. */
#include "bench.h"

#include "base/check.h"
#include "base/json.h"
#include "cloud/gmail_raw.h"
#include "cloudbox/generate/generate.h"
#include "cloudbox/gate/http.h"
#include "mail/archive/archive.h"
#include "world/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define EMAIL "ada@example.com"

enum {
    PART_BYTES = 16 << 10, /* as the network delivers them */
    LIEER_MESSAGES = 3000, /* enough that the start-up time does not matter */
    ARGS_MAX = 20,
};

struct bench {
    char tidemark[BENCH_PATH_BYTES], cloud[BENCH_PATH_BYTES]; /* the programs */
    char build[BENCH_PATH_BYTES];
    char dir[BENCH_PATH_BYTES];
    unsigned long messages, bytes;
};

/* ---- children ---- */

static struct server start_cloud(const struct bench *bench)
{
    char mailbox[128];
    (void)snprintf(mailbox, sizeof mailbox,
                   bench->bytes == 0 ? EMAIL "=%lu" : EMAIL "=%lu,size=%lu", bench->messages,
                   bench->bytes);
    const char *const args[] = {bench->cloud, "--listen",   "127.0.0.1:0", "--quiet",
                                "--quota",    "off",        "--mailbox",   mailbox,
                                "--token",    "tok=" EMAIL, NULL};
    return server_start(args);
}

/* Runs tidemark with its output in a file. */
static struct cost run(const struct bench *bench, const char *const args[])
{
    char log[BENCH_PATH_BYTES + 8];
    (void)snprintf(log, sizeof log, "%s/log", bench->dir);
    return run_program(args, log);
}

/* The number of calls the server received, by its own count. */
static uint64_t server_calls(const struct server *server)
{
    tide_world *world = NULL;
    tide_error err = {0};
    struct tide_response response;
    char url[160];
    (void)snprintf(url, sizeof url, "%s/_cloud/stats", server->url);
    expect(tide_world_real_new(tide_mem_heap(), &world, &err) == TIDE_OK, "no world");
    tide_response_init(&response, tide_mem_heap());
    const struct tide_request request = {.method = "GET", .url = url};
    expect(tide_world_call(world, &request, &response, NULL, &err) == TIDE_OK, err.text);
    json_t *stats = NULL;
    expect(tide_json_parse(tide_buf_text(&response.body), &stats, &err) == TIDE_OK, err.text);
    const json_t *user = json_object_get(json_object_get(stats, "users"), EMAIL);
    const json_int_t calls = json_integer_value(json_object_get(user, "calls"));
    json_decref(stats);
    tide_response_done(&response);
    tide_world_real_free(world);
    return (uint64_t)calls;
}

/* ---- the mirror ---- */

static struct cost sync_cost(const struct bench *bench, const char *home)
{
    const char *args[ARGS_MAX] = {bench->tidemark,
                                  "--home",
                                  home,
                                  "mail",
                                  "sync",
                                  "--set",
                                  "governor.gmail.window_units=0",
                                  NULL};
    return run(bench, args);
}

static struct cost mirror(const struct bench *bench)
{
    char home[BENCH_PATH_BYTES + 8];
    struct server server = start_cloud(bench);
    (void)snprintf(home, sizeof home, "%s/home", bench->dir);
    const char *add[ARGS_MAX] = {bench->tidemark, "--home",   home,  "account",
                                 "add",           "gmail",    EMAIL, "--endpoint",
                                 server.url,      "--bearer", "tok", NULL};
    (void)run(bench, add);

    const double count = (double)bench->messages;
    const struct cost cost = sync_cost(bench, home);
    figure("mail_sync_cpu", cost.cpu_s / count * 1e3, "ms", cost.cpu_s / count * 1e3 / 0.5,
           "0.50 ms a message");
    figure("mail_sync_rate", count / cost.wall_s, "1/s", 0, NULL);
    figure("mail_sync_wall", cost.wall_s, "s", 0, NULL);
    figure("mail_sync_rss", cost.rss_mb, "MB", cost.rss_mb / 150, "150 MB");

    const uint64_t before = server_calls(&server);
    const struct cost again = sync_cost(bench, home);
    figure("mail_nothing_new_wall", again.wall_s, "s", again.wall_s / 0.3, "0.3 s");
    figure("mail_nothing_new_cpu", again.cpu_s, "s", 0, NULL);
    figure("mail_nothing_new_calls", (double)(server_calls(&server) - before), "calls", 0, NULL);
    figure("mail_server_cpu", server_stop(&server) / count * 1e3, "ms", 0, NULL);
    return cost;
}

/* ---- the same bytes from memory ---- */

/* The server's answer: all fields of messages.get that a mirror needs. */
static void answer_make(const struct box_generator *generator, uint32_t n, tide_buf *raw,
                        tide_buf *answer, int64_t *date_ms_out)
{
    struct box_generated plan;
    box_generate_plan(generator, n, &plan);
    tide_buf_clear(raw);
    tide_buf_clear(answer);
    box_generate_raw(generator, n, raw);
    box_print(answer,
              "{\"id\":\"%016x\",\"threadId\":\"%016x\",\"labelIds\":[\"INBOX\",\"UNREAD\","
              "\"CATEGORY_UPDATES\"],\"sizeEstimate\":%zu,\"raw\":\"",
              n + 1, plan.root + 1, raw->bytes);
    box_add_base64url(answer, tide_buf_text(raw));
    box_print(answer, "\",\"historyId\":\"%u\",\"internalDate\":\"%llu\"}", 1000 + n,
              (unsigned long long)plan.date_ms);
    *date_ms_out = (int64_t)plan.date_ms;
}

/* From the bytes of the answer into the archive's queue. */
static uint64_t answer_put(tide_archive *archive, tide_text answer, int64_t date_ms)
{
    static const tide_text labels[] = {{"INBOX", 5}, {"UNREAD", 6}, {"CATEGORY_UPDATES", 16}};
    struct tide_gmail_raw extractor;
    tide_buf raw;
    json_t *fields = NULL;
    tide_error err = {0};
    uint64_t ticket = 0;
    tide_buf_init(&raw, tide_mem_heap(), (size_t)1 << 30);
    tide_gmail_raw_init(&extractor, tide_mem_heap(), &raw);
    tide_gmail_raw_expect(&extractor, answer.bytes);
    for (size_t at = 0; at < answer.bytes; at += PART_BYTES) {
        const size_t left = answer.bytes - at;
        expect(tide_gmail_raw_write(&extractor, answer.data + at,
                                    left < PART_BYTES ? left : PART_BYTES) == TIDE_OK,
               "an answer is refused");
    }
    expect(tide_gmail_raw_end(&extractor, &fields, &err) == TIDE_OK, err.text);
    const struct tide_incoming incoming = {
        .gmail_id = tide_text_of(json_string_value(json_object_get(fields, "id"))),
        .thread_id = tide_text_of(json_string_value(json_object_get(fields, "threadId"))),
        .history_id = tide_text_of(json_string_value(json_object_get(fields, "historyId"))),
        .internal_ms = date_ms,
        .labels = labels,
        .labels_count = 3,
        .take = &raw,
    };
    expect(tide_archive_put(archive, &incoming, NULL, &ticket, &err) == TIDE_OK, err.text);
    json_decref(fields);
    tide_buf_done(&raw);
    tide_gmail_raw_done(&extractor);
    return ticket;
}

/* Everything in this process.  Making the mail is not counted. */
static double memory_cpu_s(const struct bench *bench, double *mean_bytes_out)
{
    struct box_generator generator = {.seed = 1,
                                      .count = (uint32_t)bench->messages,
                                      .size_bytes = (uint32_t)bench->bytes,
                                      .newest_ms = 1790000000000,
                                      .email = EMAIL};
    char dir[BENCH_PATH_BYTES + 8];
    tide_world *world = NULL;
    tide_archive *archive = NULL;
    tide_error err = {0};
    tide_buf raw, answer;
    (void)snprintf(dir, sizeof dir, "%s/memory", bench->dir);
    tide_buf_init(&raw, tide_mem_heap(), (size_t)1 << 30);
    tide_buf_init(&answer, tide_mem_heap(), (size_t)1 << 30);
    const double begin_s = cpu_s();
    double making_s = 0, bytes = 0;
    uint64_t ticket = 0;
    expect(tide_world_real_new(tide_mem_heap(), &world, &err) == TIDE_OK, "no world");
    const struct tide_archive_options options = {.dir = dir, .account = EMAIL, .world = world};
    expect(tide_archive_open(&options, tide_mem_heap(), &archive, &err) == TIDE_OK, err.text);
    for (uint32_t i = 0; i < generator.count; i++) {
        int64_t date_ms = 0;
        const double made_s = thread_cpu_s();
        answer_make(&generator, i, &raw, &answer, &date_ms);
        making_s += thread_cpu_s() - made_s;
        bytes += (double)raw.bytes;
        ticket = answer_put(archive, tide_buf_text(&answer), date_ms);
    }
    expect(tide_archive_sync(archive, ticket, NULL, &err) == TIDE_OK, err.text);
    expect(tide_archive_index(archive, UINT64_MAX, NULL, &err) == TIDE_OK, err.text);
    expect(tide_archive_close(archive, &err) == TIDE_OK, err.text);
    tide_world_real_free(world);
    const double end_s = cpu_s();
    tide_buf_done(&raw);
    tide_buf_done(&answer);
    *mean_bytes_out = bytes / generator.count;
    return end_s - begin_s - making_s;
}

/* ---- lieer ---- */

static void lieer(const struct bench *bench)
{
    char command[3 * BENCH_PATH_BYTES];
    const unsigned long count = bench->messages < LIEER_MESSAGES ? bench->messages : LIEER_MESSAGES;
    (void)snprintf(command, sizeof command, "'%s/mail_lieer.sh' '%s' %lu %lu", TIDE_BENCH_SOURCE,
                   bench->build, count, bench->bytes);
    FILE *out = popen(command, "r"); /* NOLINT: a constant command */
    expect(out != NULL, "no shell");
    double messages = 0, their_wall_s = 0, their_cpu_s = 0, our_wall_s = 0, our_cpu_s = 0;
    const int read = fscanf(out, "%lf %lf %lf %lf %lf", &messages, &their_wall_s, &their_cpu_s,
                            &our_wall_s, &our_cpu_s);
    const int status = pclose(out);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        (void)fprintf(stderr, "mail_bench: no comparison with lieer here\n");
        return;
    }
    expect(read == 5 && status == 0, "mail_lieer.sh failed");
    figure("mail_lieer_cpu", their_cpu_s / messages * 1e3, "ms", 0, NULL);
    figure("mail_lieer_rate", messages / their_wall_s, "1/s", 0, NULL);
    figure("mail_beside_lieer_cpu", our_cpu_s / messages * 1e3, "ms", their_cpu_s / our_cpu_s,
           "lieer's CPU by ours");
    figure("mail_beside_lieer_rate", messages / our_wall_s, "1/s", their_wall_s / our_wall_s,
           "lieer's time by ours");
}

int main(int argc, char **argv)
{
    struct bench bench = {.messages = 20000, .bytes = 10000};
    char *end = NULL;
    if (argc > 1)
        bench.messages = strtoul(argv[1], &end, 10);
    if (argc > 2)
        bench.bytes = strtoul(argv[2], &end, 10);
    if (argc > 3 || bench.messages == 0 || bench.messages > 10000000 ||
        (end != NULL && *end != 0)) {
        (void)fprintf(stderr, "usage: mail_bench [MESSAGES] [BYTES]\n");
        return 2;
    }
    build_path(argv[0], "src/cli/tidemark", bench.tidemark);
    build_path(argv[0], "cloudbox/serve/tidemark-cloud", bench.cloud);
    build_path(argv[0], "", bench.build);
    dir_make(bench.dir);

    const struct cost whole = mirror(&bench);
    double mean_bytes = 0;
    const double memory_s = memory_cpu_s(&bench, &mean_bytes);
    const double count = (double)bench.messages;
    figure("mail_mean", mean_bytes, "bytes", 0, NULL);
    figure("mail_memory_cpu", memory_s / count * 1e3, "ms", 0, NULL);
    figure("mail_sync_to_memory", (whole.cpu_s - memory_s) / count * 1e3, "ms",
           whole.cpu_s / memory_s, "the same from memory");
    lieer(&bench);
    dir_remove(bench.dir);
    return 0;
}
