#include "assistant_stage.h"

#include "base/encode.h"
#include "serve_push.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WAIT_S_MAX = 300 };

/* ---- commands ---- */

struct cost assisted_run(const struct assisted *stage, const char *const *words)
{
    const char *args[20] = {stage->tidemark, "--home", stage->home};
    for (size_t i = 0; words[i] != NULL; i++)
        args[3 + i] = words[i];
    return run_program(args, stage->log);
}

static void serve(struct assisted *stage)
{
    char log[BENCH_PATH_BYTES + 16];
    const char *args[9 + 2 * PUSHER_SETTINGS] = {
        stage->tidemark, "--home",      stage->home, "serve",
        "--listen",      "127.0.0.1:0", "--set",     "governor.gmail.window_units=0"};
    (void)snprintf(log, sizeof log, "%s/serve.log", stage->dir);
    for (size_t i = 0; i < PUSHER_SETTINGS; i++) {
        args[8 + 2 * i] = "--set";
        args[9 + 2 * i] = pusher_setting(i);
    }
    stage->serving = serve_start(args, log);
}

static void key_take(struct assisted *stage)
{
    char text[1024] = "";
    (void)ASSISTED_RUN(stage, "token", "add", "bench", "--scope", "work", "--json");
    FILE *file = fopen(stage->log, "r");
    expect(file != NULL && fread(text, 1, sizeof text - 1, file) > 0, "no key");
    (void)fclose(file);
    const char *key = strstr(text, "\"key\":");
    expect(key != NULL && sscanf(key, "\"key\": \"%63[^\"]", stage->key) == 1, "no key");
}

/* ---- the provider ---- */

static void post(struct client *client, const char *path, const char *body)
{
    const int status = client_post(client, path, body);
    if (status != 200)
        die(path, client->body);
}

void assisted_arrive(struct assisted *stage, const char *text, char id_out[40])
{
    char mail[1024], body[2048];
    tide_buf raw;
    tide_buf_init(&raw, tide_mem_heap(), sizeof body);
    const int bytes =
        snprintf(mail, sizeof mail,
                 "From: Bob <bob@example.org>\r\nTo: " ASSISTED
                 "\r\nSubject: Number %u\r\nMessage-ID: <%u@example.org>\r\n\r\n%s\r\n",
                 stage->arrived, stage->arrived, text);
    stage->arrived++;
    expect(bytes > 0 && (size_t)bytes < sizeof mail, "a long mail");
    must(tide_base64_add(&raw, tide_text_of(mail), tide_base64_standard, true), "base64", NULL);
    (void)snprintf(body, sizeof body, "{\"user\":\"" ASSISTED "\",\"raw\":\"%s\"}",
                   tide_buf_cstr(&raw));
    tide_buf_done(&raw);
    post(&stage->box, "/_cloud/mail", body);
    const char *id = strstr(stage->box.body, "\"id\"");
    expect(id != NULL && sscanf(id, "\"id\": \"%39[^\"]", id_out) == 1, "mail without an id");
}

void assisted_push(struct assisted *stage)
{
    const int status = pusher_push(&stage->hook, ASSISTED);
    if (status != 204)
        die("a push", stage->hook.body);
}

bool assisted_labelled(struct assisted *stage, const char *id)
{
    char path[200];
    (void)snprintf(path, sizeof path, "/gmail/v1/users/me/messages/%s?format=minimal", id);
    if (client_get(&stage->gmail, path) != 200)
        die(path, stage->gmail.body);
    return strstr(stage->gmail.body, "\"Label_") != NULL;
}

void assisted_slow(struct assisted *stage, const char *methods, unsigned ms)
{
    char body[200];
    if (ms == 0) {
        expect(client_delete(&stage->box, "/_cloud/faults") == 200, "faults");
        return;
    }
    (void)snprintf(body, sizeof body, "{\"method\":\"%s\",\"fault\":\"latency\",\"ms\":%u}",
                   methods, ms);
    post(&stage->box, "/_cloud/faults", body);
}

/* ---- the ledger ---- */

uint64_t assisted_ask(struct assisted *stage, const char *sql, const char *text)
{
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_prepare_v2(stage->db, sql, -1, &stmt, NULL) != SQLITE_OK)
        die(sql, sqlite3_errmsg(stage->db));
    if (text != NULL)
        (void)sqlite3_bind_text(stmt, 1, text, -1, SQLITE_STATIC);
    expect(sqlite3_step(stmt) == SQLITE_ROW, sql);
    const uint64_t number = (uint64_t)sqlite3_column_int64(stmt, 0);
    (void)sqlite3_finalize(stmt);
    return number;
}

void assisted_until(struct assisted *stage, const char *sql, uint64_t wanted)
{
    const double until_s = now_s() + WAIT_S_MAX;
    while (assisted_ask(stage, sql, NULL) < wanted) {
        expect(now_s() < until_s, sql);
        nap_us(2000);
    }
}

/* ---- the home ---- */

static void key_write(const char *path)
{
    static const char key[] = "any-key\n";
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    expect(file >= 0 && write(file, key, sizeof key - 1) == sizeof key - 1, path);
    (void)close(file);
}

static void accounts_add(struct assisted *stage)
{
    char key[BENCH_PATH_BYTES + 16];
    (void)snprintf(key, sizeof key, "%s/key", stage->dir);
    key_write(key);
    (void)ASSISTED_RUN(stage, "account", "add", "gmail", ASSISTED, "--endpoint",
                       stage->provider.url, "--bearer", "tok");
    (void)ASSISTED_RUN(stage, "account", "add", "chat", "model", "--endpoint", stage->provider.url,
                       "--model", "tide-good", "--fast-model", "tide-fast", "--key-file", key);
    (void)ASSISTED_RUN(stage, "assistant", "onboard", ASSISTED);
}

void assisted_make(struct assisted *stage, const char *argv0)
{
    char path[BENCH_PATH_BYTES + 32];
    unsigned port = 0;
    build_path(argv0, "src/cli/tidemark", stage->tidemark);
    build_path(argv0, "cloudbox/serve/tidemark-cloud", stage->cloud);
    dir_make(stage->dir);
    (void)snprintf(stage->home, sizeof stage->home, "%s/home", stage->dir);
    (void)snprintf(stage->log, sizeof stage->log, "%s/log", stage->dir);
    const char *const args[] = {stage->cloud, "--listen",      "127.0.0.1:0", "--quiet",
                                "--quota",    "off",           "--mailbox",   ASSISTED "=0",
                                "--token",    "tok=" ASSISTED, NULL};
    pusher_start();
    stage->provider = server_start(args);
    accounts_add(stage);
    serve(stage);
    key_take(stage);
    expect(sscanf(stage->provider.url, "http://127.0.0.1:%u", &port) == 1, "no port");
    client_open(&stage->box, port, NULL);
    client_open(&stage->gmail, port, "tok");
    client_open(&stage->page, stage->serving.port, stage->key);
    pusher_open(&stage->serving, &stage->hook);
    (void)snprintf(path, sizeof path, "%s/state.db", stage->home);
    expect(sqlite3_open_v2(path, &stage->db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK, path);
    (void)sqlite3_busy_timeout(stage->db, 10000);
}

void assisted_again(struct assisted *stage)
{
    client_again(&stage->box);
    client_again(&stage->gmail);
    client_again(&stage->page);
    client_again(&stage->hook);
}

void assisted_remove(struct assisted *stage)
{
    (void)sqlite3_close(stage->db);
    client_close(&stage->box);
    client_close(&stage->gmail);
    (void)server_stop(&stage->provider);
    pusher_stop();
    dir_remove(stage->dir);
}
