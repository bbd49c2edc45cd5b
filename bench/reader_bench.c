/* reader_bench.c - measures the mail reader in `tidemark serve` as its page sees it, over HTTP (K15, K14).
 *
 *   reader_bench [PART]
 *
 * Gmail is tidemark-cloud on this machine.  Two accounts: one whose mailbox is backfilled while messages of it are
 * opened, and one with an archive of 200,000 messages (TIDE_BENCH_MESSAGES).  Measured are:
 *
 *   open     a click on a message that is not here: until its call reaches the server, and until the page can show the
 *            body, less what the server took; first without a backfill, then with one at the edge of the quota
 *   cached   a message that is here; a page of the list
 *   typing   a search for each letter that is typed, in the archive
 *
 * The quota is ten times Gmail's, so that sixty opens a minute are in the reserve (K15: 2 % of the window) and the
 * samples take two minutes.  reader_hour.c shows the real quota, simulated.  Other programs of the machine delay all of
 * this: reader_machine_late is by how much a thread that does nothing woke up late. */
#include "bench.h"

#include "archive_made.h"
#include "base/text.h"
#include "serve_client.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define READER "ada@example.com"
#define LARGE  "large@example.com"

enum {
    OPENS = 100,
    CACHED = 500,
    TYPED = 400,
    MAILBOX = 20000, /* more than are synced meanwhile */
    MESSAGE_BYTES = 4000,
    WORDS = 24,
    UNITS = 60000, /* a minute */
    WAIT_S_MAX = 60,
    ID_BYTES = 40,
};

struct stage {
    char tidemark[BENCH_PATH_BYTES], cloud[BENCH_PATH_BYTES]; /* the programs */
    char dir[BENCH_PATH_BYTES];
    char home[BENCH_PATH_BYTES + 16], log[BENCH_PATH_BYTES + 16];
    char key[64];
    uint64_t messages;
    struct server provider;
    struct serving serving;
    struct client page, box, gmail;
    struct client stream;  /* a page that is open: the reader is active */
    char (*ids)[ID_BYTES]; /* of the mailbox, newest first */
    size_t ids_count, ids_used;
};

static uint64_t samples[TYPED > CACHED ? TYPED : CACHED];

/* ---- the calls that reach the server ----
 *
 * tidemark-cloud prints a line for each request when it has answered it: its path, how long it took and when it
 * began, by the wall clock.  So the time at which this process reads the line does not count. */

static struct {
    pthread_mutex_t lock;
    int fd;
    char id[ID_BYTES];          /* the one that is waited for */
    uint64_t begun_us, took_us; /* 0, 0: its call has not ended */
} calls = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t wall_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void call_note(const char *line)
{
    uint64_t took_ms = 0, at_s = 0, at_us = 0;
    const char *id = strstr(line, "/users/me/messages/");
    const char *took = strstr(line, " bytes ");
    if (id == NULL || took == NULL ||
        sscanf(took, " bytes %" SCNu64 " ms at %" SCNu64 ".%6" SCNu64, &took_ms, &at_s, &at_us) !=
            3)
        return;
    (void)pthread_mutex_lock(&calls.lock);
    if (calls.id[0] != '\0' && calls.begun_us == 0 &&
        strncmp(id + strlen("/users/me/messages/"), calls.id, strlen(calls.id)) == 0) {
        calls.begun_us = at_s * 1000000 + at_us;
        calls.took_us = took_ms * 1000;
    }
    (void)pthread_mutex_unlock(&calls.lock);
}

/* Without a FILE: its lock, held while it waits, would hold up fflush(NULL) before a fork. */
static void *calls_read(void *arg)
{
    static char text[65536];
    size_t bytes = 0;
    for (;;) {
        const ssize_t got = read(calls.fd, text + bytes, sizeof text - 1 - bytes);
        if (got <= 0)
            return arg;
        bytes += (size_t)got;
        text[bytes] = '\0';
        char *line = text;
        for (char *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
            *end = '\0';
            call_note(line);
        }
        bytes -= (size_t)(line - text);
        memmove(text, line, bytes);
        expect(bytes < sizeof text - 1, "a long line");
    }
}

static void calls_watch(const char *id)
{
    (void)pthread_mutex_lock(&calls.lock);
    (void)snprintf(calls.id, sizeof calls.id, "%s", id);
    calls.begun_us = calls.took_us = 0;
    (void)pthread_mutex_unlock(&calls.lock);
}

/* Standard error of the provider is a pipe to this process. */
static void provider_start(struct stage *stage)
{
    char mailbox[2][128];
    int ends[2];
    pthread_t reader;
    (void)snprintf(mailbox[0], sizeof mailbox[0], READER "=%d,size=%d", MAILBOX, MESSAGE_BYTES);
    (void)snprintf(mailbox[1], sizeof mailbox[1], LARGE "=1");
    const char *const args[] = {stage->cloud, "--listen", "127.0.0.1:0", "--verbose",
                                "--mailbox",  mailbox[0], "--token",     "tok-ada=" READER,
                                "--mailbox",  mailbox[1], "--token",     "tok-large=" LARGE,
                                NULL};
    expect(pipe(ends) == 0, "pipe");
    const int kept = dup(STDERR_FILENO);
    expect(kept >= 0 && dup2(ends[1], STDERR_FILENO) >= 0, "dup");
    (void)close(ends[1]);
    calls.fd = ends[0];
    stage->provider = server_start(args);
    expect(dup2(kept, STDERR_FILENO) >= 0, "dup");
    (void)close(kept);
    expect(pthread_create(&reader, NULL, calls_read, NULL) == 0, "thread");
    (void)pthread_detach(reader);
}

/* ---- the home ---- */

static void run(const struct stage *stage, const char *const *words)
{
    const char *args[16] = {stage->tidemark, "--home", stage->home};
    for (size_t i = 0; words[i] != NULL; i++)
        args[3 + i] = words[i];
    (void)run_program(args, stage->log);
}
#define RUN(stage, ...) run(stage, (const char *const[]){__VA_ARGS__, NULL})

static void key_take(struct stage *stage)
{
    char text[1024] = "";
    RUN(stage, "token", "add", "bench", "--scope", "work", "--json");
    FILE *file = fopen(stage->log, "r");
    expect(file != NULL && fread(text, 1, sizeof text - 1, file) > 0, "no key");
    (void)fclose(file);
    const char *key = strstr(text, "\"key\":");
    expect(key != NULL && sscanf(key, "\"key\": \"%63[^\"]", stage->key) == 1, "no key");
}

static void archive_put(struct stage *stage)
{
    char dir[BENCH_PATH_BYTES + 64];
    tide_error err = {TIDE_OK, 0, ""};
    struct archive_made made = {.account = LARGE,
                                .messages = stage->messages,
                                .words = WORDS,
                                .html = true,
                                .rng = tide_rng_seeded(7),
                                .dir = dir};
    (void)snprintf(dir, sizeof dir, "%s/archive/" LARGE, stage->home);
    must(tide_world_real_new(tide_mem_heap(), &made.world, &err), "world", &err);
    must(tide_dir_make(made.world, dir, &err), "directory", &err);
    archive_make(&made);
    tide_world_real_free(made.world);
}

static void serve(struct stage *stage)
{
    char log[BENCH_PATH_BYTES + 16], units[64];
    (void)snprintf(log, sizeof log, "%s/serve.log", stage->dir);
    (void)snprintf(units, sizeof units, "governor.gmail.window_units=%d", UNITS);
    const char *const args[] = {stage->tidemark, "--home", stage->home, "serve", "--listen",
                                "127.0.0.1:0",   "--set",  units,       NULL};
    stage->serving = serve_start(args, log);
}

/* The ids of the mailbox, past the program that is measured. */
static void ids_list(struct stage *stage)
{
    char path[300], next[128] = "";
    stage->ids = calloc(MAILBOX, ID_BYTES);
    expect(stage->ids != NULL, "memory");
    do {
        (void)snprintf(path, sizeof path, "/gmail/v1/users/me/messages?maxResults=500%s%s",
                       next[0] == '\0' ? "" : "&pageToken=", next);
        expect(client_get(&stage->gmail, path) == 200, "messages.list");
        next[0] = '\0';
        for (const char *at = stage->gmail.body; (at = strstr(at, "\"id\": \"")) != NULL; at++)
            if (stage->ids_count < MAILBOX)
                (void)sscanf(at, "\"id\": \"%39[^\"]", stage->ids[stage->ids_count++]);
        const char *token = strstr(stage->gmail.body, "\"nextPageToken\": \"");
        if (token != NULL)
            (void)sscanf(token, "\"nextPageToken\": \"%127[^\"]", next);
    } while (next[0] != '\0' && stage->ids_count < MAILBOX / 2);
    expect(stage->ids_count > 2 * OPENS, "a mailbox");
}

static void make(struct stage *stage, const char *argv0)
{
    char quota[80];
    unsigned port = 0;
    const char *messages = getenv("TIDE_BENCH_MESSAGES");
    stage->messages = 200000;
    if (messages != NULL)
        (void)tide_text_to_u64(tide_text_of(messages), &stage->messages);
    build_path(argv0, "src/cli/tidemark", stage->tidemark);
    build_path(argv0, "cloudbox/serve/tidemark-cloud", stage->cloud);
    dir_make(stage->dir);
    (void)snprintf(stage->home, sizeof stage->home, "%s/home", stage->dir);
    (void)snprintf(stage->log, sizeof stage->log, "%s/log", stage->dir);
    provider_start(stage);
    expect(sscanf(stage->provider.url, "http://127.0.0.1:%u", &port) == 1, "no port");
    client_open(&stage->box, port, NULL);
    client_open(&stage->gmail, port, "tok-ada");
    ids_list(stage);
    (void)snprintf(quota, sizeof quota, "{\"user_units_per_minute\":%d}", UNITS);
    expect(client_post(&stage->box, "/_cloud/quota", quota) == 200, "quota");
    RUN(stage, "account", "add", "gmail", READER, "--endpoint", stage->provider.url, "--bearer",
        "tok-ada");
    RUN(stage, "account", "add", "gmail", LARGE, "--endpoint", stage->provider.url, "--bearer",
        "tok-large");
    archive_put(stage);
    serve(stage);
    key_take(stage);
    client_open(&stage->page, stage->serving.port, stage->key);
    client_open(&stage->stream, stage->serving.port, stage->key);
    expect(stream_open(&stage->stream, "reader") == 200, "stream");
}

static void end(struct stage *stage)
{
    client_close(&stage->stream);
    client_close(&stage->page);
    (void)serve_stop(&stage->serving);
    client_close(&stage->box);
    client_close(&stage->gmail);
    (void)server_stop(&stage->provider);
    free(stage->ids);
    dir_remove(stage->dir);
}

/* ---- figures ---- */

static double quantiles(const char *name, size_t count, double base_ms, const char *to)
{
    static const size_t permilles[] = {500, 950, 990};
    double ms = 0;
    for (size_t i = 0; i < 3; i++) {
        char whole[96];
        ms = quantile_ms(samples, count, permilles[i]);
        (void)snprintf(whole, sizeof whole, "%.64s_p%zu", name, permilles[i] / 10);
        compared(whole, ms, "ms", i == 2 ? base_ms : 0, i == 2 ? to : NULL);
    }
    return ms; /* the last */
}

/* ---- machine ---- */

static atomic_bool sleeping;
static uint64_t late_us_max;

static void *sleeps(void *arg)
{
    while (atomic_load(&sleeping)) {
        const uint64_t begin_us = now_us();
        nap_us(5000);
        const uint64_t late_us = now_us() - begin_us - 5000;
        late_us_max = late_us > late_us_max ? late_us : late_us_max;
    }
    return arg;
}

/* ---- open ---- */

struct opened {
    uint64_t call_us, body_us; /* the second less what the server took */
};

static bool has_body(struct stage *stage, const char *id)
{
    char path[200];
    (void)snprintf(path, sizeof path, "/api/v1/mail/" READER "/messages/%s", id);
    const int status = client_get(&stage->page, path);
    if (status != 200 && status != 404)
        die(path, stage->page.body);
    return status == 200 && strstr(stage->page.body, "\"body\": \"none\"") == NULL &&
           strstr(stage->page.body, "\"body\":\"none\"") == NULL;
}

/* Between two sync runs a message may have come into the archive: those are skipped. */
static bool open_one(struct stage *stage, struct opened *opened)
{
    char path[200], body[100];
    const char *id = stage->ids[stage->ids_used++];
    expect(stage->ids_used < stage->ids_count, "no messages are left");
    (void)snprintf(path, sizeof path, "/api/v1/mail/" READER "/refresh");
    (void)snprintf(body, sizeof body, "{\"message\":\"%s\"}", id);
    if (has_body(stage, id))
        return false;
    calls_watch(id);
    const uint64_t begin_us = now_us(), clicked_us = wall_us();
    if (client_post(&stage->page, path, body) != 202)
        die(path, stage->page.body);
    while (!has_body(stage, id)) {
        expect(now_us() - begin_us < WAIT_S_MAX * UINT64_C(1000000), "no body");
        nap_us(500);
    }
    const uint64_t shown_us = now_us();
    for (;;) {
        (void)pthread_mutex_lock(&calls.lock);
        const uint64_t begun_us = calls.begun_us, took_us = calls.took_us;
        (void)pthread_mutex_unlock(&calls.lock);
        if (begun_us != 0) {
            opened->call_us = begun_us > clicked_us ? begun_us - clicked_us : 0;
            opened->body_us = shown_us - begin_us > took_us ? shown_us - begin_us - took_us : 0;
            return true;
        }
        if (now_us() - shown_us > 1000000) /* the mirror brought it in a batch */
            return false;
        nap_us(500);
    }
}

/* Sixty a minute at most. */
static void measure_opens(struct stage *stage, const char *how, double base_ms[2])
{
    static struct opened opened[OPENS];
    static const char *const names[] = {"call", "body"};
    pthread_t thread;
    late_us_max = 0;
    atomic_store(&sleeping, true);
    expect(pthread_create(&thread, NULL, sleeps, NULL) == 0, "thread");
    for (size_t i = 0; i < OPENS;) {
        const double begin_s = now_s();
        i += open_one(stage, &opened[i]);
        while (now_s() - begin_s < 1.0)
            nap_us(20000);
    }
    atomic_store(&sleeping, false);
    (void)pthread_join(thread, NULL);
    for (int which = 0; which < 2; which++) {
        char name[64];
        for (size_t i = 0; i < OPENS; i++)
            samples[i] = which == 0 ? opened[i].call_us : opened[i].body_us;
        (void)snprintf(name, sizeof name, "reader_open_%s_%s", names[which], how);
        base_ms[which] =
            quantiles(name, OPENS, base_ms[which],
                      which == 0 ? "reader_open_call_idle_p99" : "reader_open_body_idle_p99");
    }
    char name[64];
    (void)snprintf(name, sizeof name, "reader_machine_late_%s", how);
    figure(name, (double)late_us_max / 1e3, "ms", 0, NULL);
}

static uint64_t units(struct stage *stage)
{
    client_again(&stage->box);
    expect(client_get(&stage->box, "/_cloud/stats?user=" READER) == 200, "stats");
    const char *at = strstr(stage->box.body, "\"units\":");
    return at == NULL ? 0 : strtoull(at + strlen("\"units\":"), NULL, 10);
}

/* `tidemark mail sync` hands over to the serve that runs. */
static pid_t sync_start(const struct stage *stage)
{
    (void)fflush(NULL);
    const pid_t pid = fork();
    expect(pid >= 0, "fork");
    if (pid == 0) {
        const char *const args[] = {stage->tidemark, "--home", stage->home, "mail",
                                    "sync",          READER,   "--quiet",   NULL};
        expect(freopen("/dev/null", "w", stdout) != NULL, "/dev/null");
        (void)execv(args[0], (char *const *)(uintptr_t)args);
        _exit(127);
    }
    return pid;
}

static void measure_open(struct stage *stage)
{
    double base_ms[2] = {0, 0};
    /* The newest month is listed by the reader; what is opened is older. */
    stage->ids_used = stage->ids_count / 4;
    measure_opens(stage, "idle", base_ms);
    const pid_t sync = sync_start(stage);
    for (int i = 0; i < 75; i++) /* until the first window is full */
        nap_us(999999);
    client_again(&stage->page); /* it was idle for longer than serve keeps a connection */
    const uint64_t before = units(stage);
    const double begin_s = now_s();
    measure_opens(stage, "backfill", base_ms);
    const double used = (double)(units(stage) - before) / (now_s() - begin_s) * 60 / UNITS;
    figure("reader_open_quota_used", used * 100, "%", used, "the quota");
    (void)kill(sync, SIGTERM);
    expect(waitpid(sync, NULL, 0) == sync, "wait");
}

/* ---- cached ---- */

static void measure_cached(struct stage *stage)
{
    char path[200];
    struct opened opened;
    while (!open_one(stage, &opened))
        nap_us(1000);
    (void)snprintf(path, sizeof path, "/api/v1/mail/" READER "/messages/%s",
                   stage->ids[stage->ids_used - 1]);
    for (size_t i = 0; i < CACHED; i++) {
        const uint64_t begin_us = now_us();
        expect(client_get(&stage->page, path) == 200, path);
        samples[i] = now_us() - begin_us;
    }
    (void)quantiles("reader_cached_open", CACHED, 0, NULL);
    for (size_t i = 0; i < CACHED; i++) {
        const uint64_t begin_us = now_us();
        expect(client_get(&stage->page, "/api/v1/mail/" READER "/lists/INBOX?limit=50") == 200,
               "list");
        samples[i] = now_us() - begin_us;
    }
    (void)quantiles("reader_list", CACHED, 0, NULL);
}

/* ---- typing ---- */

/* Words letter by letter, frequent and rare ones. */
static void measure_typing(struct stage *stage)
{
    size_t count = 0;
    for (uint32_t word = 0; count < TYPED; word++) {
        char room[16], path[200];
        const char *text = archive_word(word % 3 == 0 ? word : 37 * word + 200, room);
        for (size_t bytes = 2; bytes <= strlen(text) && count < TYPED; bytes++) {
            (void)snprintf(path, sizeof path, "/api/v1/mail/" LARGE "/search?limit=50&q=%.*s",
                           (int)bytes, text);
            const uint64_t begin_us = now_us();
            if (client_get(&stage->page, path) != 200)
                die(path, stage->page.body);
            samples[count++] = now_us() - begin_us;
        }
    }
    (void)quantiles("reader_typing", TYPED, 0, NULL);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*measure)(struct stage *stage);
    } parts[] = {{"open", measure_open}, {"cached", measure_cached}, {"typing", measure_typing}};
    static struct stage stage;
    make(&stage, argv[0]);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (argc < 2 || strcmp(argv[1], parts[i].name) == 0)
            parts[i].measure(&stage);
    end(&stage);
    return 0;
}
