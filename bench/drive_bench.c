/* drive_bench.c - what a drive of 100,000 files costs when nothing changed, and at first (D8).
 *
 *     drive_bench [FILES]
 *
 * Real files in folders of 100 below $TMPDIR, a state on disk, one connection that reads and one that
 * writes.  Measured: the first scan (all is hashed and written), a plan and its adoption of files that
 * are online with the same bytes, then a scan, a question whether a plan is due, and a plan, each
 * without a change. */
#include "bench.h"

#include "db/db.h"
#include "drive/local/scan.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { IN_FOLDER = 100, PAGE = 200, NEWS = 5000 };

struct stage {
    char dir[BENCH_PATH_BYTES], root[BENCH_PATH_BYTES + 8];
    tide_db writer, reader;
    tide_rows write, read;
    size_t files, written;
    unsigned slices;
};

static tide_error err;

static void exec(tide_db *db, const char *sql)
{
    must(tide_db_exec(db, sql, &err), sql, &err);
}

static double rss_mb(void)
{
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / 1024;
}

static void make_files(struct stage *stage)
{
    char path[BENCH_PATH_BYTES + 64], text[32];
    for (size_t i = 0; i < stage->files; i++) {
        const size_t folder = i / IN_FOLDER;
        (void)snprintf(path, sizeof path, "%s/folder %zu", stage->root, folder);
        if (i % IN_FOLDER == 0)
            expect(mkdir(path, 0700) == 0, "mkdir");
        (void)snprintf(path, sizeof path, "%s/folder %zu/file %zu.txt", stage->root, folder, i);
        const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
        const int bytes = snprintf(text, sizeof text, "the text of file %zu", i);
        expect(fd >= 0 && write(fd, text, (size_t)bytes) == bytes && close(fd) == 0, "write");
    }
}

static void open_state(struct stage *stage)
{
    static const struct tide_drive_home home = {"drive", "root", "marker"};
    char path[BENCH_PATH_BYTES + 16];
    (void)snprintf(path, sizeof path, "%s/state.db", stage->dir);
    const struct tide_db_options options = {.path = path};
    must(tide_db_open(&options, tide_mem_heap(), &stage->writer, &err), "open", &err);
    must(tide_db_wal(&stage->writer, &err), "wal", &err);
    must(tide_db_open(&options, tide_mem_heap(), &stage->reader, &err), "open", &err);
    stage->write = (tide_rows){.sqlite = stage->writer.handle, .number = 1};
    stage->read = (tide_rows){.sqlite = stage->reader.handle, .number = 1};
    must(tide_drive_store_tables(stage->write, &err), "tables", &err);
    must(tide_drive_store_set_up(stage->write, &home, &err), "set up", &err);
    must(tide_drive_marker_make(stage->root, "marker", &err), "marker", &err);
}

/* ---- scans ---- */

static tide_status write_slice(void *arg, struct tide_drive_difference *list, size_t count,
                               tide_error *error)
{
    struct stage *stage = arg;
    stage->slices++;
    stage->written += count;
    exec(&stage->writer, "BEGIN IMMEDIATE");
    const tide_status rc = tide_drive_scan_write(stage->write, list, count, 1000, error);
    exec(&stage->writer, "COMMIT");
    return rc;
}

static void skipped(void *arg, tide_text path, tide_drive_skip why, tide_drive_refusal refusal)
{
    (void)arg;
    (void)path;
    (void)why;
    (void)refusal;
    die("a file was skipped", "");
}

/* What it took, and how much of that was this process: other programs may run. */
static void took(const char *name, double wall_s, double cpu)
{
    char text[64];
    figure(name, wall_s, "s", 0, NULL);
    (void)snprintf(text, sizeof text, "%s, cpu", name);
    figure(text, cpu, "s", 0, NULL);
}

static void scan(struct stage *stage, uint64_t *hashed, const char *name)
{
    static const struct tide_drive_scan_ops ops = {.write = write_slice, .skipped = skipped};
    const struct tide_drive_scan options = {.root = stage->root,
                                            .marker = "marker",
                                            .now_ns = ((uint64_t)time(NULL) + 10) * 1000000000u,
                                            .db = stage->read,
                                            .ops = &ops,
                                            .arg = stage};
    bool complete = false;
    stage->slices = 0;
    stage->written = 0;
    const double start = now_s(), cpu = cpu_s();
    must(tide_drive_scan(&options, tide_mem_heap(), &complete, hashed, &err), "scan", &err);
    took(name, now_s() - start, cpu_s() - cpu);
    expect(complete, "the scan is complete");
}

/* ---- the same files online ---- */

struct feed {
    struct stage *stage;
    struct tide_drive_seen items[PAGE];
    char texts[PAGE][3][64];
    size_t count;
    uint64_t folder;
};

static void send_page(struct feed *feed, bool last)
{
    must(tide_drive_page(feed->stage->write, feed->items, feed->count,
                         last ? TIDE_TEXT_NONE : TIDE_TEXT("next"),
                         last ? TIDE_TEXT("delta") : TIDE_TEXT_NONE, 1000, &err),
         "page", &err);
    feed->count = 0;
}

static void add_online(const struct tide_drive_found *known, void *arg)
{
    struct feed *feed = arg;
    if (feed->count == PAGE)
        send_page(feed, false);
    struct tide_drive_seen *item = &feed->items[feed->count];
    char(*texts)[64] = feed->texts[feed->count++];
    (void)snprintf(texts[0], 64, "id%llu", (unsigned long long)known->row);
    (void)snprintf(texts[1], 64, feed->folder == TIDE_DRIVE_ROOT ? "root" : "id%llu",
                   (unsigned long long)feed->folder);
    (void)snprintf(texts[2], 64, "%.*s", (int)known->name.bytes, known->name.data);
    *item = (struct tide_drive_seen){.id = tide_text_of(texts[0]),
                                     .parent_id = tide_text_of(texts[1]),
                                     .name = tide_text_of(texts[2]),
                                     .etag = TIDE_TEXT("etag"),
                                     .ctag = TIDE_TEXT("ctag"),
                                     .content = known->content,
                                     .kind = known->kind,
                                     .state = TIDE_DRIVE_REMOTE_LIVE};
}

static void listing(struct stage *stage, const char *name)
{
    const double start = now_s(), cpu = cpu_s();
    struct feed *feed = calloc(1, sizeof *feed);
    expect(feed != NULL, "no memory");
    feed->stage = stage;
    exec(&stage->writer, "BEGIN IMMEDIATE");
    must(tide_drive_round_begin(stage->write, TIDE_DRIVE_ROUND_FULL, &err), "round", &err);
    feed->folder = TIDE_DRIVE_ROOT;
    must(tide_drive_known_each(stage->read, TIDE_DRIVE_ROOT, add_online, feed, &err), "rows", &err);
    for (size_t i = 0; i < (stage->files + IN_FOLDER - 1) / IN_FOLDER; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, "folder %zu", i);
        must(tide_drive_folder_at(stage->read, tide_text_of(path), &feed->folder, &err), "folder",
             &err);
        must(tide_drive_known_each(stage->read, feed->folder, add_online, feed, &err), "rows",
             &err);
    }
    send_page(feed, true);
    exec(&stage->writer, "COMMIT");
    took(name, now_s() - start, cpu_s() - cpu);
    free(feed);
}

/* ---- plans ---- */

struct planned {
    double load_s, load_cpu_s, plan_s, commit_s, commit_cpu_s;
    size_t actions;
    bool more;
};

static void adopt(struct stage *stage, const struct tide_drive_plan *plan,
                  const struct tide_drive_loaded *same)
{
    struct tide_drive_outcome *outcomes = calloc(plan->actions_count + 1, sizeof *outcomes);
    expect(outcomes != NULL, "no memory");
    for (size_t i = 0; i < plan->actions_count; i++) {
        outcomes[i] = (struct tide_drive_outcome){.verb = plan->actions[i].verb,
                                                  .item = plan->actions[i].item,
                                                  .row = plan->actions[i].row,
                                                  .now_ms = 1000};
        expect(outcomes[i].verb == TIDE_DRIVE_BASE, "only adoption was planned");
    }
    exec(&stage->writer, "BEGIN IMMEDIATE");
    must(tide_drive_commit_all(stage->write, outcomes, plan->actions_count, &err), "commit", &err);
    must(tide_drive_unmark(stage->write, same->same, same->same_count, &err), "marks", &err);
    exec(&stage->writer, "COMMIT");
    free(outcomes);
}

static void plan_once(struct stage *stage, struct planned *out)
{
    const struct tide_drive_plan_options options = {.guard = {.largest_24h = stage->files}};
    struct tide_drive_loaded loaded;
    struct tide_drive_plan plan;
    double start = now_s(), cpu = cpu_s();
    must(tide_drive_load(stage->read, NEWS, 1000, tide_mem_heap(), &loaded, &err), "load", &err);
    out->load_s += now_s() - start;
    out->load_cpu_s += cpu_s() - cpu;
    start = now_s();
    must(tide_drive_plan(&loaded.trees, &options, tide_mem_heap(), &plan, &err), "plan", &err);
    out->plan_s += now_s() - start;
    out->actions += plan.actions_count;
    out->more = loaded.more;
    start = now_s();
    cpu = cpu_s();
    adopt(stage, &plan, &loaded);
    out->commit_s += now_s() - start;
    out->commit_cpu_s += cpu_s() - cpu;
    tide_drive_plan_done(&plan);
    tide_drive_loaded_done(&loaded);
}

int main(int argc, char **argv)
{
    static struct stage stage;
    stage.files = argc > 1 ? number(argv[1], 10000000) : 100000;
    uint64_t hashed = 0;
    dir_make(stage.dir);
    (void)snprintf(stage.root, sizeof stage.root, "%s/root", stage.dir);
    expect(mkdir(stage.root, 0700) == 0, "mkdir");
    make_files(&stage);
    open_state(&stage);
    scan(&stage, &hashed, "first scan");
    expect(stage.written == stage.files + (stage.files + IN_FOLDER - 1) / IN_FOLDER, "all is new");
    listing(&stage, "full listing");
    struct planned first = {.more = true}, quiet = {.more = false};
    while (first.more)
        plan_once(&stage, &first);
    expect(first.actions == stage.written, "all is adopted");
    took("adoption: load", first.load_s, first.load_cpu_s);
    figure("adoption: plan", first.plan_s, "s", 0, NULL);
    took("adoption: commit", first.commit_s, first.commit_cpu_s);

    scan(&stage, &hashed, "scan without a change");
    expect(stage.slices == 0 && hashed == 0, "nothing is written");
    const double start = now_s();
    struct tide_drive_progress progress, after;
    must(tide_drive_progress_read(stage.read, &progress, &err), "progress", &err);
    figure("is a plan due", now_s() - start, "s", 0, NULL);
    plan_once(&stage, &quiet);
    expect(quiet.actions == 0, "nothing is planned");
    took("load without a change", quiet.load_s, quiet.load_cpu_s);
    listing(&stage, "the same listing again");
    must(tide_drive_progress_read(stage.read, &after, &err), "progress", &err);
    expect(after.changed == progress.changed, "an echo changes nothing");
    figure("memory at most", rss_mb(), "MB", 0, NULL);
    tide_db_close(&stage.reader);
    tide_db_close(&stage.writer);
    dir_remove(stage.dir);
    return 0;
}
