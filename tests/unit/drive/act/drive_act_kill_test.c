/* Transfers that are killed again and again, over real sockets: PROGRAM TIDEMARK-CLOUD.
 *
 * Goal: kill -9 at any moment costs at most one fragment or one buffer (DAC3, I9), and the bytes are
 * right at the end.  Method: a child transfers and is killed as soon as it has made some progress,
 * which it counts in shared memory; the next child continues, until one gets to the end. */
#include "drive/act/act.h"
#include "drive/local/hash.h"
#include "support/heap.h"
#include "support/ok.h"
#include "support/temp_dir.h"
#include "support/test.h"
#include "world/world.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 40000000, ROUNDS_MAX = 60, BUFFER = 1 << 20, POLL_US = 200 };

static const char *cloud_program;

struct shared {
    struct tide_drive_downloaded down;
    struct tide_drive_uploaded up;
    char saved[4096];
};

struct fixture {
    char dir[64], origin[64];
    pid_t cloud;
    struct shared *shared;
    tide_world *world;
    tide_onedrive *onedrive;
    struct tide_drive_act act;
    tide_error err;
};

static void start_cloud(struct fixture *f)
{
    int ends[2];
    char line[128] = "";
    assert_int_equal(pipe(ends), 0);
    f->cloud = fork();
    assert_true(f->cloud >= 0);
    if (f->cloud == 0) {
        (void)dup2(ends[1], STDOUT_FILENO);
        (void)close(ends[0]);
        (void)close(ends[1]);
        (void)execl(cloud_program, cloud_program, "--listen", "127.0.0.1:0", "--quiet", "--quota",
                    "off", "--token", "t=me@example.org", "--mailbox", "me@example.org=0",
                    "--drive", "me@example.org=1,size=40000000", (char *)NULL);
        _exit(127);
    }
    (void)close(ends[1]);
    FILE *out = fdopen(ends[0], "r");
    assert_non_null(out);
    assert_non_null(fgets(line, sizeof line, out));
    assert_int_equal(sscanf(line, "ready %60s", f->origin), 1);
    (void)fclose(out);
}

/* In every process anew: threads and sockets do not survive a fork. */
static void connect_to(struct fixture *f)
{
    OK(tide_world_real_new(tide_mem_heap(), &f->world, &f->err));
    const struct tide_onedrive_options options = {
        .endpoint = f->origin, .bearer = TIDE_TEXT("t"), .world = f->world};
    OK(tide_onedrive_open(&options, tide_mem_heap(), &f->onedrive, &f->err));
    f->act.onedrive = f->onedrive;
}

static void disconnect(struct fixture *f)
{
    tide_onedrive_close(f->onedrive);
    tide_world_real_free(f->world);
}

static struct fixture *begin(void)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    (void)snprintf(f->dir, sizeof f->dir, "/tmp/tidemark-act-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    f->shared =
        mmap(NULL, sizeof *f->shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(f->shared != MAP_FAILED);
    f->act.mem = tide_mem_heap();
    OK(tide_folder_open(f->dir, &f->act.root, &f->err));
    start_cloud(f);
    return f;
}

static void finish(struct fixture *f)
{
    (void)kill(f->cloud, SIGKILL);
    (void)waitpid(f->cloud, NULL, 0);
    tide_folder_close(f->act.root);
    (void)munmap(f->shared, sizeof *f->shared);
    assert_int_equal(temp_dir_remove(f->dir), 0);
    free(f);
}

/* Runs children until one succeeds; each is killed when *count reaches `enough`.  Returns the sum of
 * all counts. */
static uint64_t run_and_kill(struct fixture *f, tide_status (*run)(struct fixture *, void *),
                             void *plan, volatile uint64_t *count, uint64_t enough,
                             unsigned *kills_out)
{
    uint64_t sum = 0;
    *kills_out = 0;
    for (unsigned round = 0; round < ROUNDS_MAX; round++) {
        int status = 0;
        pid_t ended = 0;
        *count = 0;
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            connect_to(f);
            const tide_status rc = run(f, plan);
            if (rc != TIDE_OK)
                print_error("%s: %s\n", tide_status_name(rc), f->err.text);
            _exit(rc == TIDE_OK ? 0 : 1);
        }
        while (ended == 0 && *count < enough) {
            (void)usleep(POLL_US);
            ended = waitpid(child, &status, WNOHANG);
        }
        if (ended == 0) {
            (void)kill(child, SIGKILL);
            assert_int_equal(waitpid(child, &status, 0), child);
        }
        sum += *count;
        if (WIFEXITED(status)) {
            assert_int_equal(WEXITSTATUS(status), 0);
            return sum;
        }
        (*kills_out)++;
    }
    fail_msg("no end after %d kills", (int)ROUNDS_MAX);
    return sum;
}

/* ---- downloads ---- */

static tide_status find_file(const struct tide_onedrive_item *item, void *arg)
{
    char *id = arg;
    if (item->kind == TIDE_ONEDRIVE_FILE || id[0] == '\0')
        (void)snprintf(id, TIDE_ONEDRIVE_ID_BYTES_MAX + 1, "%.*s", (int)item->id.bytes,
                       item->id.data);
    return TIDE_OK;
}

/* The generated file, wherever it is. */
static struct tide_onedrive_answer only_file(struct fixture *f)
{
    char id[TIDE_ONEDRIVE_ID_BYTES_MAX + 1] = "";
    const struct tide_onedrive_sink sink = {find_file, NULL, id};
    struct tide_onedrive_page page;
    struct tide_onedrive_answer item = {.value = NULL};
    tide_onedrive_page_init(&page, tide_mem_heap());
    OK(tide_onedrive_delta(f->onedrive, NULL, TIDE_TEXT(""), TIDE_TEXT(""), "", &sink, &page,
                           &f->err));
    tide_onedrive_page_done(&page);
    OK(tide_onedrive_get(f->onedrive, NULL, TIDE_TEXT(""), tide_text_of(id), &item, &f->err));
    assert_int_equal(item.item.size, BYTES);
    return item;
}

static tide_status download(struct fixture *f, void *plan)
{
    return tide_drive_download(&f->act, plan, &f->shared->down, &f->err);
}

TEST_OF(a_download_survives_kills, struct fixture *f, begin(), finish)
{
    unsigned kills = 0;
    struct tide_drive_content content;
    struct tide_entry entry;
    connect_to(f);
    struct tide_onedrive_answer item = only_file(f);
    disconnect(f);
    struct tide_drive_download plan = {.id = item.item.id,
                                       .name = TIDE_TEXT("file"),
                                       .ctag = item.item.ctag,
                                       .content = {.bytes = BYTES, .has_qxh = true}};
    memcpy(plan.content.qxh, item.item.hash, sizeof plan.content.qxh);
    const uint64_t fetched =
        run_and_kill(f, download, &plan, &f->shared->down.fetched_bytes, 4 * BUFFER, &kills);
    print_message("%u kills, %" PRIu64 " bytes for %d\n", kills, fetched, (int)BYTES);
    assert_true(kills >= 3);
    assert_true(fetched <= BYTES + (uint64_t)kills * BUFFER);
    OK(tide_drive_hash_file(f->act.root, TIDE_TEXT("file"), &content, &entry, &f->err));
    assert_memory_equal(content.qxh, item.item.hash, sizeof content.qxh);
    tide_onedrive_answer_done(&item);
}

/* ---- uploads ---- */

static tide_status save(void *arg, tide_text resume, tide_error *err)
{
    struct fixture *f = arg;
    (void)err;
    (void)snprintf(f->shared->saved, sizeof f->shared->saved, "%.*s", (int)resume.bytes,
                   resume.data);
    return TIDE_OK;
}

static tide_status sleep_ms(void *arg, uint64_t wait_ms)
{
    (void)arg;
    (void)usleep((useconds_t)wait_ms * 1000);
    return TIDE_OK;
}

static tide_status upload(struct fixture *f, void *plan)
{
    f->act.resume = tide_text_of(f->shared->saved);
    return tide_drive_upload(&f->act, plan, &f->shared->up, &f->err);
}

TEST_OF(an_upload_survives_kills, struct fixture *f, begin(), finish)
{
    unsigned kills = 0;
    struct tide_drive_upload plan = {.name = TIDE_TEXT("new.bin"), .here = TIDE_TEXT("new.bin")};
    FILE *file = fopen(textf("%s/new.bin", f->dir), "w");
    assert_non_null(file);
    for (uint32_t i = 0; i < BYTES / 4; i++) {
        const uint32_t word = i * UINT32_C(2654435761);
        assert_int_equal(fwrite(&word, 4, 1, file), 1);
    }
    assert_int_equal(fclose(file), 0);
    OK(tide_drive_hash_file(f->act.root, plan.here, &plan.content, &plan.entry, &f->err));
    f->act.save = save;
    f->act.sleep = sleep_ms;
    f->act.arg = f;
    const uint64_t sent = run_and_kill(f, upload, &plan, &f->shared->up.sent_bytes,
                                       (uint64_t)2 * TIDE_DRIVE_FRAGMENT_BYTES, &kills);
    print_message("%u kills, %" PRIu64 " bytes for %d\n", kills, sent, (int)BYTES);
    assert_true(kills >= 3);
    assert_true(sent <= BYTES + (uint64_t)kills * TIDE_DRIVE_FRAGMENT_BYTES);
    connect_to(f);
    struct tide_onedrive_answer item = {.value = NULL};
    OK(tide_onedrive_get_at(f->onedrive, NULL, TIDE_TEXT(""), TIDE_TEXT(""), TIDE_TEXT("new.bin"),
                            &item, &f->err));
    assert_memory_equal(item.item.hash, plan.content.qxh, sizeof plan.content.qxh);
    tide_onedrive_answer_done(&item);
    disconnect(f);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    cloud_program = argv[1];
    return tests_run(NULL);
}
