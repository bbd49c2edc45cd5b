/* assistant_bench.c - measures the pages of the mail assistant's records over the API of `tidemark serve`.
 *
 *   assistant_bench
 *
 * A home gets TIDE_BENCH_RECORDS threads (100,000 unless given), each with an event and a model call, each
 * tenth with a run of an agent (tests/e2e/seed_assistant.c).  Then each list is asked for with every
 * filter, at its beginning and in its middle, and one thread, call and run in full. */
#include "bench.h"

#include "serve_client.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { SAMPLES = 100, KEY_BYTES = 64 };

#define API "/api/v1/assistant/"

static const struct {
    const char *name, *path;
} pages[] = {
    {"status", "status"},
    {"users", "users"},
    {"threads", "emails"},
    {"threads_long", "emails?limit=500"},
    {"threads_oldest", "emails?order=oldest"},
    {"threads_user", "emails?account=ben@example.com"},
    {"threads_status", "emails?status=drafted"},
    {"threads_none", "emails?status=archived&category=fyi"},
    {"threads_category", "emails?account=ada@example.com&category=waiting"},
    {"threads_sender", "emails?sender=sender7@example.org"},
    {"thread", "ada@example.com/threads/story"},
    {"events", "events"},
    {"events_user", "events?account=ben@example.com&limit=500"},
    {"events_kind", "events?kind=draft_created"},
    {"events_thread", "events?account=ada@example.com&thread=t500"},
    {"calls", "calls"},
    {"calls_middle", "calls?after=50000"},
    {"calls_failed", "calls?state=failed"},
    {"calls_user_kind", "calls?account=ben@example.com&kind=agent"},
    {"call", "calls/500"},
    {"runs", "runs"},
    {"runs_status", "runs?status=failed"},
    {"run", "runs/50"},
};

static void measure(struct client *client, const char *name, const char *path)
{
    static uint64_t samples[SAMPLES];
    char whole[200], figure_name[80];
    (void)snprintf(whole, sizeof whole, API "%s", path);
    for (size_t i = 0; i <= SAMPLES; i++) { /* the first one is not counted: it reads from disk */
        const uint64_t begin_us = now_us();
        if (client_get(client, whole) != 200)
            die(whole, client->body);
        samples[i > 0 ? i - 1 : 0] = now_us() - begin_us;
    }
    (void)snprintf(figure_name, sizeof figure_name, "assistant_page_%s_p95", name);
    figure(figure_name, quantile_ms(samples, SAMPLES, 950), "ms", 0, NULL);
}

static void key_make(const char *tidemark, const char *home, const char *log, char key[KEY_BYTES])
{
    const char *args[] = {tidemark, "--home",  home,   "token",  "add",
                          "bench",  "--scope", "work", "--json", NULL};
    char text[1024] = "";
    (void)run_program(args, log);
    FILE *file = fopen(log, "r");
    expect(file != NULL && fread(text, 1, sizeof text - 1, file) > 0, "no key");
    (void)fclose(file);
    const char *at = strstr(text, "\"key\":");
    expect(at != NULL && sscanf(at, "\"key\": \"%63[^\"]", key) == 1, "no key");
}

int main(int argc, char **argv)
{
    static char tidemark[BENCH_PATH_BYTES], seed[BENCH_PATH_BYTES], dir[BENCH_PATH_BYTES];
    static char home[BENCH_PATH_BYTES + 8], log[BENCH_PATH_BYTES + 8];
    char key[KEY_BYTES] = "";
    const char *given = getenv("TIDE_BENCH_RECORDS");
    const char *records = given == NULL ? "100000" : given;
    struct client client;
    (void)argc;
    build_path(argv[0], "src/cli/tidemark", tidemark);
    build_path(argv[0], "tests/e2e/seed_assistant", seed);
    dir_make(dir);
    (void)snprintf(home, sizeof home, "%s/home", dir);
    (void)snprintf(log, sizeof log, "%s/log", dir);
    expect(mkdir(home, 0700) == 0, "mkdir");
    const char *fill[] = {seed, home, records, NULL};
    figure("assistant_seed", run_program(fill, log).wall_s, "s", 0, NULL);
    const char *args[] = {tidemark, "--home", home, "serve", "--listen", "127.0.0.1:0", NULL};
    struct serving serving = serve_start(args, log);
    key_make(tidemark, home, log, key);
    client_open(&client, serving.port, key);
    figure("assistant_records", strtod(records, NULL), "", 0, NULL);
    for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++)
        measure(&client, pages[i].name, pages[i].path);
    client_close(&client);
    (void)serve_stop(&serving);
    dir_remove(dir);
    return 0;
}
