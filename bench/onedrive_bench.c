/* onedrive_bench.c - measures small transfers of OneDrive under the engine and its governor, without the drive
 * system around them: what a sync can reach at most.
 *
 *   onedrive_bench [FILES] [LATENCY_MS] [WORKERS] [IN_FLIGHT]
 *
 * Downloads FILES (3,000 unless given) files of 4 KiB from tidemark-cloud, which answers after LATENCY_MS (30), and uploads as
 * many: a job for each file, with the calls that src/drive/act makes (an item and its bytes; a session and its one
 * fragment).
 *
 * Prints one JSON object per line: {"name","value","unit","ratio","to"}. */
#include "engine_tools.h"

#include "base/check.h"
#include "base/json.h"
#include "base/mem.h"
#include "cloud/onedrive/onedrive.h"
#include "world/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EMAIL "ada@example.com"

enum { FILE_BYTES = 4096, FILES_MAX = 100000, SLICE = 5000 };

struct bench {
    char cloud[BENCH_PATH_BYTES], dir[BENCH_PATH_BYTES];
    size_t files;
    char latency[16], workers[40], in_flight[60];
    tide_world *world;
    tide_onedrive *onedrive;
    char (*ids)[64];
    size_t ids_count;
    char bytes[FILE_BYTES]; /* that are sent */
};

static size_t number_of(const tide_job *job)
{
    const char *payload = tide_job_payload(job).data;
    return strtoul(strchr(payload, ':') + 1, NULL, 10);
}

/* ---- down ---- */

static tide_status drop(void *arg, const char *bytes, size_t count)
{
    (void)bytes;
    *(size_t *)arg += count;
    return TIDE_OK;
}

static tide_status begin(void *arg, uint64_t at)
{
    *(size_t *)arg = (size_t)at;
    return TIDE_OK;
}

static tide_status down(tide_job *job, void *context, tide_error *err)
{
    struct bench *bench = context;
    struct tide_onedrive_answer answer = {.value = NULL};
    struct tide_onedrive_got got;
    char url[TIDE_ONEDRIVE_LINK_BYTES_MAX];
    size_t come = 0;
    TIDE_TRY(tide_onedrive_get(bench->onedrive, job, TIDE_TEXT(""),
                               tide_text_of(bench->ids[number_of(job)]), &answer, err));
    (void)snprintf(url, sizeof url, "%.*s", (int)answer.item.download_url.bytes,
                   answer.item.download_url.data);
    tide_onedrive_answer_done(&answer);
    const struct tide_onedrive_download download = {
        .url = url, .size = FILE_BYTES, .begin = begin, .sink = drop, .arg = &come};
    return tide_onedrive_download(bench->onedrive, job, &download, &got, err);
}

/* ---- up ---- */

struct sending {
    const struct bench *bench;
    size_t at;
};

static tide_status give(void *arg, char *bytes, size_t room, size_t *count_out)
{
    struct sending *sending = arg;
    const size_t left = FILE_BYTES - sending->at;
    *count_out = left < room ? left : room;
    memcpy(bytes, sending->bench->bytes + sending->at, *count_out);
    sending->at += *count_out;
    return TIDE_OK;
}

static void again(void *arg)
{
    struct sending *sending = arg;
    sending->at = 0;
}

static tide_status send_it(struct bench *bench, tide_job *job,
                           const struct tide_onedrive_session *session, tide_error *err)
{
    struct sending sending = {.bench = bench};
    struct tide_onedrive_sent sent = {.finished = false};
    const struct tide_onedrive_fragment fragment = {.url = tide_buf_cstr(&session->url),
                                                    .bytes = FILE_BYTES,
                                                    .total = FILE_BYTES,
                                                    .source = give,
                                                    .rewind = again,
                                                    .source_arg = &sending};
    const tide_status rc = tide_onedrive_fragment_put(bench->onedrive, job, &fragment, &sent, err);
    const bool finished = sent.finished;
    tide_onedrive_sent_done(&sent);
    if (rc == TIDE_OK && !finished)
        return tide_error_set(err, TIDE_SERVER, "the upload is not finished");
    return rc;
}

static tide_status up(tide_job *job, void *context, tide_error *err)
{
    struct bench *bench = context;
    struct tide_onedrive_session session;
    char name[40];
    (void)snprintf(name, sizeof name, "up %zu.bin", number_of(job));
    const struct tide_onedrive_target target = {.drive = TIDE_TEXT(""),
                                                .id = TIDE_TEXT(""),
                                                .parent = TIDE_TEXT(""),
                                                .name = tide_text_of(name),
                                                .if_match = TIDE_TEXT("")};
    tide_onedrive_session_init(&session, tide_mem_heap());
    tide_status rc =
        tide_onedrive_session_create(bench->onedrive, job, &target, FILE_BYTES, 0, &session, err);
    if (rc == TIDE_OK)
        rc = send_it(bench, job, &session, err);
    tide_onedrive_session_done(&session);
    return rc == TIDE_EXISTS ? TIDE_OK : rc; /* it was sent before the job was put back */
}

/* ---- the drive ---- */

static tide_status note(const struct tide_onedrive_item *item, void *arg)
{
    struct bench *bench = arg;
    if (item->kind == TIDE_ONEDRIVE_FILE && !item->deleted && bench->ids_count < bench->files)
        (void)snprintf(bench->ids[bench->ids_count++], sizeof bench->ids[0], "%.*s",
                       (int)item->id.bytes, item->id.data);
    return TIDE_OK;
}

static void list(struct bench *bench)
{
    const struct tide_onedrive_sink sink = {note, NULL, bench};
    struct tide_onedrive_page page;
    char link[TIDE_ONEDRIVE_LINK_BYTES_MAX] = "";
    tide_error err = {.text = ""};
    bench->ids_count = 0;
    tide_onedrive_page_init(&page, tide_mem_heap());
    do {
        must(tide_onedrive_delta(bench->onedrive, NULL, TIDE_TEXT(""), TIDE_TEXT(""), link, &sink,
                                 &page, &err),
             "delta", &err);
        (void)snprintf(link, sizeof link, "%s", tide_buf_cstr(&page.next));
    } while (link[0] != '\0');
    tide_onedrive_page_done(&page);
    expect(bench->ids_count == bench->files, "files are missing");
}

static struct server start_cloud(struct bench *bench)
{
    char drive[80];
    (void)snprintf(drive, sizeof drive, EMAIL "=%zu,size=%d", bench->files, FILE_BYTES);
    const char *const args[] = {bench->cloud, "--listen",  "127.0.0.1:0",  "--quiet",    "--quota",
                                "off",        "--latency", bench->latency, "--mailbox",  EMAIL "=0",
                                "--drive",    drive,       "--token",      "tok=" EMAIL, NULL};
    const struct server server = server_start(args);
    const struct tide_onedrive_options options = {
        .endpoint = server.url, .bearer = TIDE_TEXT("tok"), .world = bench->world};
    tide_error err = {.text = ""};
    must(tide_onedrive_open(&options, tide_mem_heap(), &bench->onedrive, &err), "client", &err);
    return server;
}

/* ---- runs ---- */

/* Files a second, with a job for each. */
static double run(struct bench *bench, const char *name, tide_handler *handler)
{
    static char payloads[FILES_MAX][16];
    static struct tide_spec specs[FILES_MAX];
    char state[BENCH_PATH_BYTES + 40];
    uint32_t account = 0;
    tide_error err = {.text = ""};
    const char *const set[] = {bench->workers, bench->in_flight, NULL};
    (void)snprintf(state, sizeof state, "%s/%s", bench->dir, name);
    const struct tide_engine_options options = {.state_dir = state, .set = set, .log_fd = 2};
    tide_engine *engine = engine_open(&options);
    const struct tide_kind kind = {.name = name, .handler = handler, .context = bench};
    const uint32_t id = engine_kind(engine, &kind);
    must(tide_engine_account(engine, "ada", "onedrive", &account, &err), "account", &err);
    for (size_t i = 0; i < bench->files; i++) {
        (void)snprintf(payloads[i], sizeof payloads[i], "{\"n\":%zu}", i);
        specs[i] = (struct tide_spec){
            .kind = id, .account = account, .payload = payloads[i], .size_bytes = FILE_BYTES};
    }
    for (size_t i = 0; i < bench->files; i += SLICE)
        enqueue(engine, specs + i, bench->files - i < SLICE ? bench->files - i : SLICE);
    const double begin_s = now_s();
    engine_start(engine);
    must(tide_engine_wait(engine, TIDE_WAIT_FOREVER, &err), "wait", &err);
    const double took_s = now_s() - begin_s;
    engine_close(engine);
    return (double)bench->files / took_s;
}

int main(int argc, char **argv)
{
    static struct bench bench;
    bench.files = argc > 1 ? number(argv[1], FILES_MAX) : 3000;
    (void)snprintf(bench.latency, sizeof bench.latency, "%s", argc > 2 ? argv[2] : "30");
    (void)snprintf(bench.workers, sizeof bench.workers, "workers.count=%s",
                   argc > 3 ? argv[3] : "32");
    (void)snprintf(bench.in_flight, sizeof bench.in_flight, "governor.onedrive.in_flight_max=%s",
                   argc > 4 ? argv[4] : "32");
    build_path(argv[0], "cloudbox/serve/tidemark-cloud", bench.cloud);
    dir_make(bench.dir);
    bench.ids = calloc(bench.files, sizeof *bench.ids);
    expect(bench.ids != NULL, "memory");
    expect(tide_world_real_new(tide_mem_heap(), &bench.world, NULL) == TIDE_OK, "world");
    struct server server = start_cloud(&bench);
    list(&bench);
    compared("onedrive_small_down", run(&bench, "down", down), "files/s", 300, "300 files/s");
    compared("onedrive_small_up", run(&bench, "up", up), "files/s", 300, "300 files/s");
    tide_onedrive_close(bench.onedrive);
    (void)server_stop(&server);
    tide_world_real_free(bench.world);
    free(bench.ids);
    dir_remove(bench.dir);
    return 0;
}
