/* hostile_test.c - a world that is against us: what cannot be opened, written or
 * believed is refused with the right status and a sentence that helps, and nothing
 * is lost or changed by it. */
#include "support/test.h"
#include "tidemark.h"
#include "settings/settings.h"
#include "support/temp_dir.h"
#include "world/world.h"

#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { JOBS = 50, FILE_BYTES_MAX = 1 << 20, NOBODY = 65534 };

struct house {
    char dir[64];
    char file[96]; /* state.db */
    tide_engine *engine;
    uint32_t kind;
    uint64_t ran; /* atomic */
    tide_error err;
};

#define OK(call)                                                                                   \
    do {                                                                                           \
        tide_status rc_ = (call);                                                                  \
        if (rc_ != TIDE_OK)                                                                        \
            fail_msg("%s: %s: %s", #call, tide_status_name(rc_), house->err.text);                 \
    } while (0)

static int set_up(void **state)
{
    struct house *house = calloc(1, sizeof *house);
    (void)snprintf(house->dir, sizeof house->dir, "/tmp/tide-hostile.XXXXXX");
    if (mkdtemp(house->dir) == NULL)
        return -1;
    (void)snprintf(house->file, sizeof house->file, "%s/state.db", house->dir);
    *state = house;
    return 0;
}

static int tear_down(void **state)
{
    struct house *house = *state;
    (void)tide_engine_close(house->engine);
    (void)chmod(house->dir, 0700);
    (void)temp_dir_remove(house->dir);
    free(house);
    return 0;
}

static tide_status count_handler(tide_job *job, void *context, tide_error *err)
{
    (void)job;
    (void)err;
    struct house *house = context;
    (void)__atomic_add_fetch(&house->ran, 1, __ATOMIC_SEQ_CST);
    return TIDE_OK;
}

static tide_status try_open(struct house *house)
{
    struct tide_engine_options options = {.state_dir = house->dir, .workers = 4};
    return tide_engine_open(&options, &house->engine, &house->err);
}

static void open_engine(struct house *house)
{
    OK(try_open(house));
    struct tide_kind kind = {.name = "work", .handler = count_handler, .context = house};
    OK(tide_engine_kind(house->engine, &kind, &house->kind, &house->err));
}

static void close_engine(struct house *house)
{
    OK(tide_engine_close(house->engine));
    house->engine = NULL;
}

static void enqueue_some(struct house *house)
{
    struct tide_spec specs[JOBS] = {{0}};
    for (int i = 0; i < JOBS; i++)
        specs[i].kind = house->kind;
    OK(tide_enqueue(house->engine, specs, JOBS, NULL, &house->err));
}

/* A ledger with waiting jobs, closed. */
static void make_ledger(struct house *house)
{
    open_engine(house);
    enqueue_some(house);
    close_engine(house);
}

static int64_t ask(const char *file, const char *sql)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    assert_int_equal(sqlite3_open_v2(file, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
    int code = sqlite3_step(stmt);
    assert_true(code == SQLITE_ROW || code == SQLITE_DONE);
    int64_t number = code == SQLITE_ROW ? sqlite3_column_int64(stmt, 0) : 0;
    (void)sqlite3_finalize(stmt);
    (void)sqlite3_close(db);
    return number;
}

/* ---- bytes that must not change ------------------------------------------------- */

struct bytes {
    char *data;
    size_t count;
};

static struct bytes read_file(const char *file)
{
    struct bytes bytes = {malloc(FILE_BYTES_MAX), 0};
    FILE *stream = fopen(file, "rb");
    assert_non_null(stream);
    bytes.count = fread(bytes.data, 1, FILE_BYTES_MAX, stream);
    assert_true(bytes.count > 0 && bytes.count < FILE_BYTES_MAX);
    (void)fclose(stream);
    return bytes;
}

static void write_file(const char *file, const char *data, size_t count)
{
    FILE *stream = fopen(file, "wb");
    assert_non_null(stream);
    assert_int_equal(fwrite(data, 1, count, stream), count);
    assert_int_equal(fclose(stream), 0);
}

static void assert_unchanged(const char *file, struct bytes before)
{
    struct bytes now = read_file(file);
    assert_int_equal(now.count, before.count);
    assert_memory_equal(now.data, before.data, before.count);
    free(now.data);
    free(before.data);
}

static void assert_refused(struct house *house, tide_status expected, const char *word)
{
    struct bytes before = read_file(house->file);
    tide_status rc = try_open(house);
    if (rc != expected)
        fail_msg("expected %s, got %s: %s", tide_status_name(expected), tide_status_name(rc),
                 house->err.text);
    if (strstr(house->err.text, word) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", house->err.text, word);
    assert_null(house->engine);
    assert_unchanged(house->file, before);
}

/* ---- what cannot be believed ------------------------------------------------------ */

#define CASE(name) TEST_ON(name, struct house *house, set_up, tear_down)

CASE(a_damaged_ledger_is_refused_and_left_as_it_is)
{
    make_ledger(house);
    /* As after a crash: only then the whole file is read through. */
    (void)ask(house->file, "INSERT INTO note VALUES ('running', '?')");
    (void)ask(house->file, "PRAGMA wal_checkpoint(TRUNCATE)");
    struct bytes bytes = read_file(house->file);
    assert_true(bytes.count > 5 * 4096);
    memset(bytes.data + 4096, 0x5a, 4 * 4096);
    write_file(house->file, bytes.data, bytes.count);
    free(bytes.data);
    assert_refused(house, TIDE_CORRUPT, "backup");
}

CASE(a_file_that_is_no_database_is_refused)
{
    char text[8192];
    memset(text, 'x', sizeof text);
    write_file(house->file, text, sizeof text);
    assert_refused(house, TIDE_INVALID, house->file);
}

CASE(a_database_of_another_program_is_refused)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(house->file, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "CREATE TABLE treasure (x); INSERT INTO treasure VALUES (1)",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    (void)sqlite3_close(db);
    assert_refused(house, TIDE_INVALID, house->file);
}

CASE(a_ledger_of_a_newer_program_is_refused)
{
    make_ledger(house);
    (void)ask(house->file, "PRAGMA user_version = 999");
    (void)ask(house->file, "PRAGMA wal_checkpoint(TRUNCATE)");
    assert_refused(house, TIDE_NEWER, "999");
    (void)ask(house->file, "PRAGMA user_version");
}

CASE(a_second_engine_is_refused_and_names_the_first)
{
    open_engine(house);
    enqueue_some(house);
    struct house second = {0};
    char process[40];
    (void)snprintf(process, sizeof process, "process %ld", (long)getpid());
    memcpy(second.dir, house->dir, sizeof second.dir);
    assert_int_equal(try_open(&second), TIDE_BUSY);
    assert_null(second.engine);
    assert_non_null(strstr(second.err.text, process));
    assert_non_null(strstr(second.err.text, house->dir));
    /* The first one did not notice. */
    OK(tide_engine_start(house->engine, &house->err));
    OK(tide_engine_wait(house->engine, 30000, &house->err));
    assert_int_equal(house->ran, JOBS);
}

/* ---- what cannot be written --------------------------------------------------------- */

/* Root may write anywhere: it leaves its rights behind first. */
static void become_nobody(void)
{
    if (geteuid() != 0)
        return;
    if (setgroups(0, NULL) != 0 || setresgid(NOBODY, NOBODY, NOBODY) != 0 ||
        setresuid(NOBODY, NOBODY, NOBODY) != 0)
        _exit(99);
}

/* Opens as nobody, in a process of its own; the status comes back as its exit code. */
static tide_status open_as_nobody(struct house *house, char text[400])
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        become_nobody();
        tide_status rc = try_open(house);
        (void)!write(ends[1], house->err.text, sizeof house->err.text);
        _exit(-(int)rc);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(read(ends[0], text, 400), 400);
    (void)close(ends[0]);
    (void)close(ends[1]);
    assert_true(WIFEXITED(status));
    return (tide_status)-WEXITSTATUS(status);
}

CASE(a_directory_that_may_only_be_read_is_refused)
{
    char text[400];
    make_ledger(house);
    struct bytes before = read_file(house->file);
    char lock[96];
    (void)snprintf(lock, sizeof lock, "%s/engine.lock", house->dir);
    assert_int_equal(chmod(lock, 0444), 0);
    assert_int_equal(chmod(house->file, 0444), 0);
    assert_int_equal(chmod(house->dir, 0555), 0);
    assert_int_equal(open_as_nobody(house, text), TIDE_IO);
    if (strstr(text, house->dir) == NULL)
        fail_msg("\"%s\" does not name %s", text, house->dir);
    assert_int_equal(chmod(house->dir, 0700), 0);
    assert_unchanged(house->file, before);
}

CASE(a_missing_directory_that_cannot_be_made_is_refused)
{
    char text[400];
    assert_int_equal(chmod(house->dir, 0555), 0);
    char dir[64];
    memcpy(dir, house->dir, sizeof dir);
    (void)snprintf(house->dir + strlen(house->dir), 8, "/new");
    assert_int_equal(open_as_nobody(house, text), TIDE_IO);
    assert_non_null(strstr(text, "make directory"));
    memcpy(house->dir, dir, sizeof dir);
}

static tide_status page_limit(tide_transaction *transaction, void *arg, tide_error *err)
{
    (void)err;
    sqlite3 *db = tide_transaction_sqlite(transaction);
    int *pages = arg;
    sqlite3_stmt *stmt = NULL;
    if (*pages == 0) {
        assert_int_equal(sqlite3_prepare_v2(db, "PRAGMA page_count", -1, &stmt, NULL), SQLITE_OK);
        assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
        *pages = sqlite3_column_int(stmt, 0);
        (void)sqlite3_finalize(stmt);
    }
    char sql[64];
    (void)snprintf(sql, sizeof sql, "PRAGMA max_page_count = %d", *pages);
    return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK ? TIDE_OK : TIDE_IO;
}

/* The disk is full, then it has room again: what was taken is kept, what was not is
 * said so, and the engine continues by itself. */
CASE(a_full_disk_refuses_work_and_keeps_what_it_has)
{
    open_engine(house);
    enqueue_some(house);
    int pages = 0;
    OK(tide_transact(house->engine, page_limit, &pages, &house->err));
    char payload[20000];
    memset(payload, 'x', sizeof payload);
    memcpy(payload, "{\"x\":\"", 6);
    memcpy(payload + sizeof payload - 3, "\"}", 3);
    struct tide_spec spec = {.kind = house->kind, .payload = payload};
    uint64_t taken = 0;
    tide_status rc = TIDE_OK;
    while (rc == TIDE_OK && taken < 1000) {
        rc = tide_enqueue(house->engine, &spec, 1, NULL, &house->err);
        taken += rc == TIDE_OK;
    }
    assert_int_equal(rc, TIDE_DISK_FULL);
    assert_non_null(strstr(house->err.text, "room"));
    int room = 100000;
    /* The writer pauses for a second after a failure; then it takes requests again. */
    OK(tide_transact(house->engine, page_limit, &room, &house->err));
    OK(tide_enqueue(house->engine, &spec, 1, NULL, &house->err));
    OK(tide_engine_start(house->engine, &house->err));
    OK(tide_engine_wait(house->engine, 30000, &house->err));
    assert_int_equal(house->ran, JOBS + taken + 1);
}

/* A file that may not grow: the log cannot be written.  The engine stops by itself
 * and says why (E1.10); the next start, with room, finds every job. */
CASE(a_file_that_may_not_grow_stops_the_engine_and_loses_nothing)
{
    open_engine(house);
    enqueue_some(house);
    assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    struct rlimit small = {.rlim_cur = 200000, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    uint64_t taken = 0;
    tide_status rc = TIDE_OK;
    while (rc == TIDE_OK && taken < 5000) {
        struct tide_spec spec = {.kind = house->kind};
        rc = tide_enqueue(house->engine, &spec, 1, NULL, &house->err);
        taken += rc == TIDE_OK;
    }
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_true(rc == TIDE_IO || rc == TIDE_DISK_FULL);
    assert_non_null(strstr(house->err.text, "state.db"));
    OK(tide_engine_close(house->engine));
    open_engine(house);
    OK(tide_engine_start(house->engine, &house->err));
    OK(tide_engine_wait(house->engine, 60000, &house->err));
    /* The one that was refused may have been written: its commit was not answered. */
    assert_true(house->ran == JOBS + taken || house->ran == JOBS + taken + 1);
}

/* ---- what cannot be enqueued ----------------------------------------------------------- */

static void assert_not_taken(struct house *house, const struct tide_spec *specs, size_t count,
                             const char *word)
{
    assert_int_equal(tide_enqueue(house->engine, specs, count, NULL, &house->err), TIDE_INVALID);
    if (strstr(house->err.text, word) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", house->err.text, word);
    assert_int_equal(ask(house->file, "SELECT count(*) FROM job"), JOBS);
}

CASE(wrong_jobs_are_refused_before_anything_is_written)
{
    open_engine(house);
    enqueue_some(house);
    static char large[(64 << 10) + 16];
    memset(large, 'x', sizeof large - 1);
    memcpy(large, "{\"x\":\"", 6);
    memcpy(large + sizeof large - 3, "\"}", 3);
    struct tide_spec good = {.kind = house->kind};
    struct tide_spec over[] = {good, {.kind = house->kind, .payload = large}};
    assert_not_taken(house, over, 2, "payload");
    struct tide_spec unknown[] = {good, {.kind = 4711}};
    assert_not_taken(house, unknown, 2, "unknown kind 4711");
    uint32_t first = 0, second = 1, third = 2;
    struct tide_spec cycle[] = {
        {.kind = house->kind, .needs_index = &third, .needs_index_count = 1},
        {.kind = house->kind, .needs_index = &first, .needs_index_count = 1},
        {.kind = house->kind, .needs_index = &second, .needs_index_count = 1}};
    assert_not_taken(house, cycle, 3, "depends on itself");
    struct tide_spec text[] = {good, {.kind = house->kind, .payload = "not json"}};
    assert_not_taken(house, text, 2, "JSON");
    struct tide_spec foreign[] = {good, {.kind = house->kind, .account = 99}};
    assert_not_taken(house, foreign, 2, "account");
    OK(tide_engine_start(house->engine, &house->err));
    OK(tide_engine_wait(house->engine, 30000, &house->err));
    assert_int_equal(house->ran, JOBS);
}

CASE(a_need_that_does_not_exist_is_refused)
{
    open_engine(house);
    enqueue_some(house);
    uint64_t need = 123456;
    struct tide_spec specs[] = {{.kind = house->kind},
                                {.kind = house->kind, .needs = &need, .needs_count = 1}};
    assert_int_equal(tide_enqueue(house->engine, specs, 2, NULL, &house->err), TIDE_NOT_FOUND);
    assert_non_null(strstr(house->err.text, "123456"));
    assert_int_equal(ask(house->file, "SELECT count(*) FROM job"), JOBS);
}
