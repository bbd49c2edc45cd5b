/* Goal: whatever file a ledger is pointed at, it is opened, upgraded or refused
 * with a text that helps, and what is refused is not touched.  Method: make each
 * such file, open it, and look at the answer and at the bytes. */
#include "db/migrate.h"
#include "ledger/ledger.h"
#include "ledger/sqlite/sqlite.h"
#include "support/ok.h"
#include "support/heap.h"
#include "support/test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

struct fixture {
    tide_world *world;
    char dir[64];
    char path[96];
    tide_error err;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    (void)snprintf(f->dir, sizeof f->dir, "/tmp/tide-migrate-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    (void)snprintf(f->path, sizeof f->path, "%s/state.db", f->dir);
    OK(tide_world_real_new(tide_mem_heap(), &f->world, &f->err));
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    static const char *const names[] = {"", "-wal", "-shm", "-journal"};
    for (size_t i = 0; i < 4; i++) {
        const char *path = textf("%s%s", f->path, names[i]);
        (void)unlink(path);
    }
    (void)rmdir(f->path);
    (void)rmdir(f->dir);
    tide_world_real_free(f->world);
    free(f);
    return 0;
}

static tide_status open_at(struct fixture *f, const char *path, tide_ledger **ledger_out)
{
    struct tide_ledger_options options = {.path = path, .run_id = "r", .now_unix_ms = 1};
    f->err.text[0] = '\0';
    return tide_ledger_open(f->world, &options, ledger_out, &f->err);
}

/* Opens, expects that to work, and closes. */
static void open_and_close(struct fixture *f, bool clean)
{
    tide_ledger *ledger = NULL;
    tide_status rc = open_at(f, f->path, &ledger);
    if (rc != TIDE_OK)
        (void)fprintf(stderr, "%s\n", f->err.text);
    OK(rc);
    tide_buf problems = heap_buf(1000);
    OK(tide_ledger_check(ledger, &problems, &f->err));
    tide_buf_done(&problems);
    tide_ledger_close(ledger, clean);
}

static void assert_refused(struct fixture *f, const char *path, tide_status status,
                           const char *says)
{
    tide_ledger *ledger = NULL;
    tide_status rc = open_at(f, path, &ledger);
    if (rc != status || strstr(f->err.text, says) == NULL)
        (void)fprintf(stderr, "%s: %s\n", tide_status_name(rc), f->err.text);
    assert_int_equal(rc, status);
    assert_null(ledger);
    assert_non_null(strstr(f->err.text, says));
    assert_non_null(strstr(f->err.text, path));
}

static void sql(struct fixture *f, const char *text)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
    char *why = NULL;
    if (sqlite3_exec(db, text, NULL, NULL, &why) != SQLITE_OK) {
        (void)fprintf(stderr, "%s\n", why);
        fail();
    }
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static size_t read_all(const char *path, char *room, size_t room_bytes)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t bytes = fread(room, 1, room_bytes, file);
    (void)fclose(file);
    return bytes;
}

static void write_all(const char *path, const char *bytes, size_t count)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}

static char before[1 << 20];
static char after[1 << 20];

/* Runs `refuse` and asserts that the file's bytes are what they were. */
static void assert_untouched(struct fixture *f, tide_status status, const char *says)
{
    size_t bytes = read_all(f->path, before, sizeof before);
    assert_refused(f, f->path, status, says);
    assert_int_equal(read_all(f->path, after, sizeof after), bytes);
    assert_memory_equal(before, after, bytes);
}

/* ---- tests ----------------------------------------------------------------------- */

#define CASE(name) TEST_ON(name, struct fixture *f, set_up, tear_down)

CASE(a_new_file_and_an_empty_file_become_a_ledger)
{
    struct tide_ledger_options options = {.path = f->path, .must_exist = true};
    tide_ledger *ledger = NULL;
    assert_int_equal(tide_ledger_open(f->world, &options, &ledger, &f->err), TIDE_NOT_FOUND);
    options = (struct tide_ledger_options){.path = f->path, .read_only = true};
    assert_int_equal(tide_ledger_open(f->world, &options, &ledger, &f->err), TIDE_NOT_FOUND);
    assert_int_equal(access(f->path, F_OK), -1);
    open_and_close(f, true);
    assert_int_equal(unlink(f->path), 0);
    write_all(f->path, "", 0);
    open_and_close(f, true);
    open_and_close(f, true);
}

CASE(a_newer_ledger_is_refused_naming_both_versions)
{
    open_and_close(f, true);
    sql(f, "PRAGMA user_version = 99");
    assert_untouched(f, TIDE_NEWER, "schema 99");
    assert_untouched(f, TIDE_NEWER, "knows 3");
}

/* Version 1 as it was, with rows in it. */
static void make_version_1(struct fixture *f)
{
    sql(f, tide_ledger_schema.steps[0]);
    sql(f, "PRAGMA application_id = 0x54494445; PRAGMA user_version = 1;"
           "INSERT INTO kind (id, name, scope) VALUES (1, 'old', 0);"
           "INSERT INTO schedule (name, kind, period, anchor, per_account)"
           " VALUES ('daily', 1, 1000, 0, 0);"
           "INSERT INTO job (id, state, open_deps, account, priority, kind, scope, dedupe,"
           " attempts, attempts_max, traits, created, payload)"
           " VALUES (5, 0, 0, 0, 30, 1, 0, 'k', 0, 5, 1, 1, '{}'),"
           " (6, 0, 1, 0, 30, 1, 0, NULL, 0, 5, 1, 1, '{}');"
           "INSERT INTO dep (needs, job) VALUES (5, 6)");
}

static bool see_schedule(const struct tide_schedule_row *row, void *arg)
{
    *(bool *)arg = row->at_start;
    return tide_text_equal(row->name, TIDE_TEXT("daily"));
}

CASE(an_older_ledger_is_upgraded_and_keeps_its_rows)
{
    make_version_1(f);
    struct tide_ledger_options reading = {.path = f->path, .read_only = true};
    tide_ledger *ledger = NULL;
    assert_int_equal(tide_ledger_open(f->world, &reading, &ledger, &f->err), TIDE_INVALID);
    assert_non_null(strstr(f->err.text, "upgrade"));
    open_and_close(f, true);

    OK(open_at(f, f->path, &ledger));
    bool at_start = true;
    OK(tide_ledger_schedules(ledger, see_schedule, &at_start, &f->err));
    assert_false(at_start);
    struct tide_brief briefs[2];
    size_t count = 0;
    OK(tide_ledger_refill(ledger, 0, 255, 0, briefs, 2, &count, &f->err));
    assert_int_equal(count, 1);
    assert_int_equal(briefs[0].id, 5);
    tide_tx *tx = NULL;
    struct tide_changes changes;
    struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
    uint64_t running[1];
    size_t running_count = 0;
    tide_changes_init(&changes, tide_mem_heap());
    OK(tide_tx_begin(ledger, &tx, &f->err));
    OK(tide_ledger_alert(tx, "c", 0, 1, "text", 1, &f->err));
    OK(tide_ledger_cancel(tx, &filter, 2, &count, running, 1, &running_count, &changes, &f->err));
    assert_int_equal(count, 2); /* the blocked one too: its index was built */
    OK(tide_tx_commit(tx, &f->err));
    tide_changes_done(&changes);
    tide_ledger_close(ledger, true);
}

/* Version 2 with an account and a job that runs: the third step widens both rows. */
static void make_version_2(struct fixture *f)
{
    make_version_1(f);
    sql(f, tide_ledger_schema.steps[1]);
    sql(f, "PRAGMA user_version = 2;"
           "INSERT INTO account (id, name, provider, governor) VALUES (3, 'a', 'gmail', 'saved');"
           "UPDATE job SET state = 1 WHERE id = 5;"
           "INSERT INTO claim (job, token, owner, run, started) VALUES (5, 70, 7, 1, 1)");
}

static bool see_account(const struct tide_account_row *row, void *arg)
{
    *(struct tide_account_row *)arg = *row;
    assert_true(tide_text_equal(row->governor, TIDE_TEXT("saved")));
    return true;
}

CASE(a_ledger_from_before_fleets_is_upgraded_while_jobs_run)
{
    make_version_2(f);
    open_and_close(f, false);
    tide_ledger *ledger = NULL;
    OK(open_at(f, f->path, &ledger));
    struct tide_account_row account = {.owner = 9};
    OK(tide_ledger_accounts(ledger, see_account, &account, &f->err));
    assert_int_equal(account.id, 3);
    assert_int_equal(account.owner, 0);
    assert_string_equal(account.archive, "");
    assert_string_equal(account.secret, "");
    tide_tx *tx = NULL;
    bool applied = false;
    struct tide_changes changes;
    struct tide_finish finish = {.id = 5, .token = 70, .state = TIDE_ROW_DONE};
    tide_changes_init(&changes, tide_mem_heap());
    OK(tide_tx_begin(ledger, &tx, &f->err));
    OK(tide_ledger_finish(tx, &finish, 1, 2, &applied, &changes, &f->err));
    OK(tide_ledger_account_place(tx, 3, "archive-1", NULL, &f->err));
    OK(tide_tx_commit(tx, &f->err));
    assert_true(applied);
    assert_int_equal(changes.released_count, 1);
    OK(tide_ledger_accounts(ledger, see_account, &account, &f->err));
    assert_string_equal(account.archive, "archive-1");
    tide_changes_done(&changes);
    tide_ledger_close(ledger, true);
}

CASE(a_step_that_fails_leaves_the_old_version)
{
    make_version_1(f);
    sql(f, "CREATE TABLE alert (mine TEXT)"); /* in the way of the second step */
    tide_ledger *ledger = NULL;
    assert_int_not_equal(open_at(f, f->path, &ledger), TIDE_OK);
    assert_null(ledger);
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "PRAGMA user_version", -1, &stmt, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    assert_int_equal(sqlite3_column_int(stmt, 0), 1);
    assert_int_equal(sqlite3_finalize(stmt), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    sql(f, "DROP TABLE alert");
    open_and_close(f, true);
}

CASE(a_file_of_another_program_is_refused_untouched)
{
    sql(f, "CREATE TABLE mine (a); INSERT INTO mine VALUES (1)");
    assert_untouched(f, TIDE_INVALID, "another program");
    sql(f, "PRAGMA application_id = 1234; PRAGMA user_version = 1");
    assert_untouched(f, TIDE_INVALID, "another program");
    assert_int_equal(unlink(f->path), 0);
    memset(before, 'x', 5000);
    write_all(f->path, before, 5000);
    assert_untouched(f, TIDE_INVALID, "not a database");
}

CASE(a_damaged_file_is_found_after_an_unclean_stop)
{
    tide_ledger *ledger = NULL;
    tide_tx *tx = NULL;
    uint32_t kind = 0;
    uint32_t left = 1;
    OK(open_at(f, f->path, &ledger));
    OK(tide_tx_begin(ledger, &tx, &f->err));
    OK(tide_ledger_kind(tx, "k", TIDE_DEDUPE_PENDING, &kind, &f->err));
    static char payload[3000];
    memset(payload, 'p', sizeof payload);
    for (int i = 0; i < 50; i++) {
        struct tide_job_new job = {.kind = kind, .payload = {payload, sizeof payload}};
        struct tide_enqueued enqueued;
        OK(tide_ledger_enqueue(tx, &job, 1, 1, &enqueued, &f->err));
    }
    OK(tide_tx_commit(tx, &f->err));
    OK(tide_ledger_checkpoint(ledger, &left, &f->err));
    assert_int_equal(left, 0);
    tide_ledger_close(ledger, false);

    size_t bytes = read_all(f->path, before, sizeof before);
    assert_true(bytes > 30 * 4096);
    /* Whole after an unclean stop: opened. */
    open_and_close(f, false);
    bytes = read_all(f->path, before, sizeof before);
    /* A page in the middle lost its bytes. */
    memcpy(after, before, bytes);
    memset(after + bytes / 4096 / 2 * 4096, 0xff, 4096);
    write_all(f->path, after, bytes);
    assert_refused(f, f->path, TIDE_CORRUPT, "backup");
    /* The second half is gone. */
    write_all(f->path, before, bytes / 2);
    assert_refused(f, f->path, TIDE_CORRUPT, "backup");
    write_all(f->path, before, bytes);
    open_and_close(f, true);
}

CASE(a_path_that_cannot_be_is_refused_with_advice)
{
    assert_int_equal(mkdir(f->path, 0700), 0);
    assert_refused(f, f->path, TIDE_IO, "that it is a file");
    assert_int_equal(rmdir(f->path), 0);
    const char *path = textf("%s/missing/state.db", f->dir);
    assert_refused(f, path, TIDE_IO, "directory exists");
}

/* Permissions do not bind root, so the file is opened as another user. */
CASE(a_file_or_directory_without_permission_is_refused)
{
    bool root = geteuid() == 0;
    open_and_close(f, true);
    assert_int_equal(chmod(f->path, 0444), 0);
    assert_int_equal(chmod(f->dir, 0755), 0);
    const char *fresh = textf("%s/new.db", f->dir);
    if (root)
        assert_int_equal(seteuid(65534), 0);
    else
        assert_int_equal(chmod(f->dir, 0555), 0);
    assert_refused(f, f->path, TIDE_IO, "permissions");
    assert_refused(f, fresh, TIDE_IO, "may be written to");
    if (root)
        assert_int_equal(seteuid(0), 0);
    assert_int_equal(chmod(f->dir, 0755), 0);
    assert_int_equal(chmod(f->path, 0644), 0);
    open_and_close(f, true);
}

CASE(a_full_disk_stops_a_transaction_and_loses_nothing)
{
    tide_ledger *ledger = NULL;
    tide_tx *tx = NULL;
    uint32_t kind = 0;
    static char payload[60000];
    memset(payload, 'p', sizeof payload);
    struct tide_enqueued enqueued;
    OK(open_at(f, f->path, &ledger));
    OK(tide_tx_begin(ledger, &tx, &f->err));
    OK(tide_ledger_kind(tx, "k", TIDE_DEDUPE_PENDING, &kind, &f->err));
    OK(tide_tx_commit(tx, &f->err));
    struct tide_job_new job = {.kind = kind, .payload = {payload, sizeof payload}};

    OK(tide_tx_begin(ledger, &tx, &f->err));
    sqlite3 *handle = tide_tx_sqlite(tx);
    assert_int_equal(sqlite3_exec(handle, "PRAGMA max_page_count = 60", NULL, NULL, NULL),
                     SQLITE_OK);
    tide_status rc = TIDE_OK;
    for (int i = 0; rc == TIDE_OK && i < 20; i++)
        rc = tide_ledger_enqueue(tx, &job, 1, 1, &enqueued, &f->err);
    assert_int_equal(rc, TIDE_DISK_FULL);
    assert_non_null(strstr(f->err.text, "make room"));
    assert_non_null(strstr(f->err.text, f->path));
    assert_int_equal(tide_tx_commit(tx, &f->err), TIDE_DISK_FULL);

    /* Room again: it works without being reopened. */
    OK(tide_tx_begin(ledger, &tx, &f->err));
    assert_int_equal(sqlite3_exec(handle, "PRAGMA max_page_count = 10000", NULL, NULL, NULL),
                     SQLITE_OK);
    OK(tide_ledger_enqueue(tx, &job, 1, 1, &enqueued, &f->err));
    OK(tide_tx_commit(tx, &f->err));
    assert_int_equal(enqueued.id, 1); /* nothing of the failed one was left */
    tide_ledger_close(ledger, true);
    open_and_close(f, true);
}

CASE(two_writers_take_turns)
{
    tide_ledger *a = NULL;
    tide_ledger *b = NULL;
    tide_tx *tx = NULL;
    tide_tx *other = NULL;
    OK(open_at(f, f->path, &a));
    OK(open_at(f, f->path, &b));
    OK(tide_tx_begin(a, &tx, &f->err));
    assert_int_equal(tide_tx_begin(b, &other, &f->err), TIDE_BUSY);
    assert_non_null(strstr(f->err.text, "another program"));
    OK(tide_tx_commit(tx, &f->err));
    OK(tide_tx_begin(b, &other, &f->err));
    tide_tx_rollback(other);
    tide_ledger_close(a, true);
    tide_ledger_close(b, true);
}

static const char *const small_steps[] = {"CREATE TABLE small (id INTEGER)"};
static const struct tide_schema small = {
    .what = "small file", .application_id = 7, .steps = small_steps, .steps_count = 1};

/* Another connection creates the file between two reads of the one that looks. */
static int create_meanwhile(unsigned type, void *arg, void *statement, void *text)
{
    tide_db *creator = arg;
    (void)type;
    (void)statement;
    if (strstr(text, "user_version") != NULL)
        OK(tide_migrate(creator, &small, 0, NULL));
    return 0;
}

CASE(a_file_that_is_just_created_is_readable_by_its_owner_only)
{
    const struct tide_db_options options = {.path = f->path};
    tide_db reader;
    tide_db creator;
    uint32_t version = 99;
    sql(f, "PRAGMA journal_mode = WAL");
    OK(tide_db_open(&options, tide_mem_heap(), &reader, &f->err));
    OK(tide_db_open(&options, tide_mem_heap(), &creator, &f->err));
    assert_int_equal(sqlite3_trace_v2(reader.handle, SQLITE_TRACE_STMT, create_meanwhile, &creator),
                     SQLITE_OK);
    OK(tide_migrate_look(&reader, &small, &version, &f->err));
    assert_int_equal(version, 0);
    assert_int_equal(sqlite3_trace_v2(reader.handle, 0, NULL, NULL), SQLITE_OK);
    OK(tide_migrate_look(&reader, &small, &version, &f->err));
    assert_int_equal(version, 1);
    tide_db_close(&reader);
    tide_db_close(&creator);
}

/* Both saw an empty file. */
CASE(a_file_that_two_create_at_once_is_created_once)
{
    const struct tide_db_options options = {.path = f->path};
    tide_db first;
    tide_db second;
    sql(f, "PRAGMA journal_mode = WAL");
    OK(tide_db_open(&options, tide_mem_heap(), &first, &f->err));
    OK(tide_db_open(&options, tide_mem_heap(), &second, &f->err));
    OK(tide_migrate(&first, &small, 0, &f->err));
    OK(tide_migrate(&second, &small, 0, &f->err));
    tide_db_close(&first);
    tide_db_close(&second);
}
