#include "serve_stage.h"

#include "archive_made.h"
#include "base/text.h"
#include "serve_push.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    WORDS = 24, /* in a generated text */
    ROUND_MESSAGES = 10000,
    BUSY_MESSAGES = 400000, /* more than are synced while all is measured */
    MESSAGE_BYTES = 4000,
};

/* ---- commands ---- */

static void run(const struct stage *stage, const char *const *words)
{
    const char *args[16] = {stage->tidemark, "--home", stage->home};
    for (size_t i = 0; words[i] != NULL; i++)
        args[3 + i] = words[i];
    (void)run_program(args, stage->log);
}
#define RUN(stage, ...) run(stage, (const char *const[]){__VA_ARGS__, NULL})

struct serving stage_serve(const struct stage *stage, const char *home)
{
    char log[BENCH_PATH_BYTES + 16];
    const char *args[9 + 2 * PUSHER_SETTINGS] = {
        stage->tidemark, "--home",      home,    "serve",
        "--listen",      "127.0.0.1:0", "--set", "governor.gmail.window_units=0"};
    (void)snprintf(log, sizeof log, "%s/serve.log", stage->dir);
    for (size_t i = 0; i < PUSHER_SETTINGS; i++) {
        args[8 + 2 * i] = "--set";
        args[9 + 2 * i] = pusher_setting(i);
    }
    return serve_start(args, log);
}

void stage_key(struct stage *stage)
{
    char text[1024] = "";
    RUN(stage, "token", "add", "bench", "--scope", "work", "--json");
    FILE *file = fopen(stage->log, "r");
    expect(file != NULL && fread(text, 1, sizeof text - 1, file) > 0, "no key");
    (void)fclose(file);
    const char *key = strstr(text, "\"key\":");
    expect(key != NULL && sscanf(key, "\"key\": \"%63[^\"]", stage->key) == 1, "no key");
}

pid_t stage_sync(const struct stage *stage, const char *account)
{
    (void)fflush(NULL);
    const pid_t pid = fork();
    expect(pid >= 0, "fork");
    if (pid == 0) {
        const char *const args[] = {stage->tidemark, "--home", stage->home, "mail",
                                    "sync",          account,  "--quiet",   NULL};
        expect(freopen("/dev/null", "w", stdout) != NULL, "/dev/null");
        (void)execv(args[0], (char *const *)(uintptr_t)args);
        _exit(127);
    }
    return pid;
}

/* ---- the provider ---- */

void stage_round(size_t round, char out[48])
{
    (void)snprintf(out, 48, "round%zu@example.com", round);
}

/* The mailboxes: those of the rounds, then the other two. */
static uint64_t mailbox(size_t index, char out[48])
{
    if (index < STAGE_ROUNDS) {
        stage_round(index, out);
        return ROUND_MESSAGES;
    }
    (void)snprintf(out, 48, "%s", index == STAGE_ROUNDS ? LARGE : BUSY);
    return index == STAGE_ROUNDS ? 1 : BUSY_MESSAGES;
}
enum { MAILBOXES = STAGE_ROUNDS + 2 };

static void provider_start(struct stage *stage)
{
    char text[MAILBOXES][2][128];
    const char *args[8 + 4 * MAILBOXES] = {stage->cloud, "--listen", "127.0.0.1:0",
                                           "--quiet",    "--quota",  "off"};
    size_t count = 6;
    for (size_t i = 0; i < MAILBOXES; i++) {
        char name[48];
        const uint64_t messages = mailbox(i, name);
        (void)snprintf(text[i][0], sizeof text[i][0], "%s=%" PRIu64 ",size=%d", name, messages,
                       MESSAGE_BYTES);
        (void)snprintf(text[i][1], sizeof text[i][1], "tok-%s=%s", name, name);
        args[count++] = "--mailbox";
        args[count++] = text[i][0];
        args[count++] = "--token";
        args[count++] = text[i][1];
    }
    stage->provider = server_start(args);
}

/* ---- the home ---- */

static void account_add(const struct stage *stage, const char *name)
{
    char token[64];
    (void)snprintf(token, sizeof token, "tok-%s", name);
    RUN(stage, "account", "add", "gmail", name, "--endpoint", stage->provider.url, "--bearer",
        token);
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

void stage_message(const struct stage *stage, uint64_t number, char out[40])
{
    /* A large step visits all years in turn. */
    archive_id(stage->messages, number * 7919 * 1009, out);
}

void stage_make(struct stage *stage, const char *argv0)
{
    const char *messages = getenv("TIDE_BENCH_MESSAGES");
    stage->messages = 1000000;
    if (messages != NULL)
        (void)tide_text_to_u64(tide_text_of(messages), &stage->messages);
    build_path(argv0, "src/cli/tidemark", stage->tidemark);
    build_path(argv0, "cloudbox/serve/tidemark-cloud", stage->cloud);
    dir_make(stage->dir);
    (void)snprintf(stage->home, sizeof stage->home, "%s/home", stage->dir);
    (void)snprintf(stage->empty, sizeof stage->empty, "%s/empty", stage->dir);
    (void)snprintf(stage->log, sizeof stage->log, "%s/log", stage->dir);
    pusher_start();
    provider_start(stage);
    for (size_t i = 0; i < MAILBOXES; i++) {
        char name[48];
        (void)mailbox(i, name);
        account_add(stage, name);
    }
    archive_put(stage);
}

void stage_remove(struct stage *stage)
{
    (void)server_stop(&stage->provider);
    pusher_stop();
    dir_remove(stage->dir);
}
