/* Goal: a copy of a ledger is equal to it, whichever databases they are in and wherever
 * the copying was interrupted; and half a copy is never opened.
 * Method: a ledger with every kind of row is copied from SQLite and back to it, with
 * PostgreSQL in between where there is one (TIDE_TEST_POSTGRES), and stopped at every
 * batch; then each promise of ledger/copy/copy.h by example. */
#include "base/check.h"

#include "base/hash.h"
#include "ledger/copy/inside.h"
#include "support/full_ledger.h"
#include "support/heap.h"
#include "support/test.h"

#include <sys/stat.h>
#include <unistd.h>

enum { JOBS = 2000 };

static tide_status make_mail(const void *arg, tide_rows db, tide_error *err)
{
    (void)arg;
    const tide_status rc = tide_mail_tables(db, err);
    return rc == TIDE_OK ? tide_manifest_tables(db, err) : rc;
}

static tide_status make_console(const void *arg, tide_rows db, tide_error *err)
{
    (void)arg;
    return tide_console_tables(db, err);
}

static const struct tide_copy_system systems[] = {{.name = "mail", .make = make_mail},
                                                  {.name = "console", .make = make_console}};

/* ---- the stage ---- */

struct stage {
    tide_world *world;
    char dir[64];
    char source[100];
    char target[100]; /* of SQLite */
    char second[100];
    char postgres[2][300]; /* "": there is none */
    tide_error err;
    struct tide_copy_report report;
    tide_cancel cancel;
    uint64_t steps, cancel_at; /* calls of the progress function */
};

static void no_notice(void *arg, const char *text)
{
    (void)arg;
    (void)text;
}

static void run_sql(const char *url, const char *sql)
{
    PGconn *conn = PQconnectdb(url);
    (void)PQsetNoticeProcessor(conn, no_notice, NULL);
    PGresult *result = PQexec(conn, sql);
    const ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        fail_msg("%s: %s", sql, PQerrorMessage(conn));
    PQclear(result);
    PQfinish(conn);
}

static void run_sqlite(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static int64_t number(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    const int64_t result = sqlite3_column_int64(stmt, 0);
    assert_int_equal(sqlite3_finalize(stmt), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    return result;
}

/* "postgres:///NAME?..." with another name: a database made for the first test that asks,
 * and emptied for the others, which is much quicker. */
static void fresh_database(const char *base, const char *name, bool first, char url_out[300])
{
    char sql[100];
    const char *query = strchr(base, '?');
    (void)snprintf(url_out, 300, "postgres:///%s%s", name, query == NULL ? "" : query);
    if (!first) {
        run_sql(url_out, "DROP SCHEMA IF EXISTS tidemark CASCADE");
        return;
    }
    (void)snprintf(sql, sizeof sql, "DROP DATABASE IF EXISTS %s WITH (FORCE)", name);
    run_sql(base, sql);
    (void)snprintf(sql, sizeof sql, "CREATE DATABASE %s", name);
    run_sql(base, sql);
}

static void forget(const char *path)
{
    static const char *const ends[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < 3; i++) {
        const char *name = textf("%s%s", path, ends[i]);
        (void)unlink(name);
    }
}

static int set_up(void **state)
{
    struct stage *stage = calloc(1, sizeof *stage);
    const char *base = getenv("TIDE_TEST_POSTGRES");
    if (stage == NULL || tide_world_real_new(tide_mem_heap(), &stage->world, NULL) != TIDE_OK)
        return 1;
    (void)snprintf(stage->dir, sizeof stage->dir, "/tmp/tide-copy.XXXXXX");
    if (mkdtemp(stage->dir) == NULL)
        return 1;
    (void)snprintf(stage->source, sizeof stage->source, "%s/state.db", stage->dir);
    (void)snprintf(stage->target, sizeof stage->target, "%s/target.db", stage->dir);
    (void)snprintf(stage->second, sizeof stage->second, "%s/second.db", stage->dir);
    if (base != NULL) {
        static bool made;
        fresh_database(base, "copy_one", !made, stage->postgres[0]);
        fresh_database(base, "copy_two", !made, stage->postgres[1]);
        made = true;
    }
    *state = stage;
    return 0;
}

static int tear_down(void **state)
{
    struct stage *stage = *state;
    forget(stage->source);
    forget(stage->target);
    forget(stage->second);
    const char *lock = textf("%s/engine.lock", stage->dir);
    (void)unlink(lock);
    tide_world_real_free(stage->world);
    const int left = rmdir(stage->dir); /* a copy leaves nothing beside its target */
    free(stage);
    return left;
}

static void on_progress(const struct tide_copy_progress *progress, void *arg)
{
    struct stage *stage = arg;
    assert_non_null(progress->table);
    if (++stage->steps == stage->cancel_at)
        stage->cancel.reason = TIDE_CANCEL_USER;
}

static struct tide_ledger_copy plan(struct stage *stage, const char *from, const char *to)
{
    return (struct tide_ledger_copy){.from = from,
                                     .to = to,
                                     .systems = systems,
                                     .systems_count = 2,
                                     .batch_rows = 300,
                                     .cancel = &stage->cancel,
                                     .progress = on_progress,
                                     .progress_arg = stage};
}

static tide_status copy(struct stage *stage, const char *from, const char *to)
{
    const struct tide_ledger_copy copying = plan(stage, from, to);
    stage->steps = 0;
    stage->cancel.reason = 0;
    return tide_ledger_copy(stage->world, &copying, tide_mem_heap(), &stage->report, &stage->err);
}

#define OK(stage, call)                                                                            \
    do {                                                                                           \
        if ((call) != TIDE_OK)                                                                     \
            fail_msg("%s: %s", #call, (stage)->err.text);                                          \
    } while (0)

/* All of it on both sides, by the code that compares and by what it says. */
static void assert_equal(struct stage *stage, const char *from, const char *to)
{
    const struct tide_ledger_copy copying = plan(stage, from, to);
    stage->cancel.reason = 0;
    OK(stage,
       tide_ledger_compare(stage->world, &copying, tide_mem_heap(), &stage->report, &stage->err));
    for (size_t i = 0; i < stage->report.tables_count; i++) {
        const struct tide_copy_table *table = &stage->report.tables[i];
        if (!table->equal)
            fail_msg("%s: %" PRIu64 " and %" PRIu64 " rows, %s", table->name, table->rows_from,
                     table->rows_to, table->difference);
        assert_int_equal(table->rows_from, table->rows_to);
        assert_string_equal(table->hash_from, table->hash_to);
    }
    assert_true(stage->report.equal);
}

static uint64_t rows_of(const struct stage *stage, const char *name)
{
    for (size_t i = 0; i < stage->report.tables_count; i++)
        if (strcmp(stage->report.tables[i].name, name) == 0)
            return stage->report.tables[i].rows_from;
    return 0;
}

static tide_status open_as(struct stage *stage, const char *path, bool read_only)
{
    tide_ledger *ledger = NULL;
    const struct tide_ledger_options options = {.path = path,
                                                .run_id = "test",
                                                .now_unix_ms = FULL_NOW,
                                                .read_only = read_only,
                                                .must_exist = true};
    const tide_status rc = tide_ledger_open(stage->world, &options, &ledger, &stage->err);
    if (rc == TIDE_OK)
        tide_ledger_close(ledger, true);
    return rc;
}

/* The bytes of a file, as a number that other bytes do not have. */
static uint64_t file_sum(const char *path)
{
    FILE *file = fopen(path, "rb");
    uint64_t sum = TIDE_HASH_START;
    assert_non_null(file);
    for (int c; (c = getc(file)) != EOF;)
        sum = tide_hash_byte(sum, (uint8_t)c);
    assert_int_equal(fclose(file), 0);
    return sum;
}

/* ---- canonical texts ---- */

TEST(a_value_is_read_back_from_its_canonical_text)
{
    static const struct copy_column number_column = {"n", COPY_INT8, NULL};
    static const struct copy_column text_column = {"t", COPY_TEXT, NULL};
    tide_rng rng = tide_rng_seeded(7);
    tide_buf text = heap_buf(1 << 20);
    for (int round = 0; round < 20000; round++) {
        char bytes[40];
        struct copy_value values[3];
        tide_buf_clear(&text);
        for (int i = 0; i < 3; i++) {
            const size_t count = (size_t)tide_rng_below(&rng, sizeof bytes);
            for (size_t at = 0; at < count; at++)
                bytes[at] = "0:;nit\0\xff"[tide_rng_below(&rng, 8)];
            values[i] = (struct copy_value){.null = i == 0 && round % 3 == 0,
                                            .number = i == 1 ? (int64_t)tide_rng_next(&rng) : 0};
            if (i == 2)
                values[i].text = (tide_text){bytes, count};
            assert_int_equal(
                tide_copy_value_add(&text, i == 2 ? &text_column : &number_column, &values[i]),
                TIDE_OK);
        }
        size_t at = 0;
        for (int i = 0; i < 3; i++) {
            struct copy_value back;
            assert_true(tide_copy_value_take(tide_buf_text(&text), &at, &back));
            assert_int_equal(back.null, values[i].null);
            assert_int_equal(back.number, values[i].number);
            assert_true(tide_text_equal(back.text, values[i].text));
        }
        assert_int_equal(at, text.bytes);
    }
    tide_buf_done(&text);
}

TEST(what_is_no_canonical_text_is_refused)
{
    static const char *const wrong[] = {
        "",    "n",       "nn", "i;", "i1", "i1x;", "t3:ab;", "t-1:;", "t99999999999999999999:a;",
        "x1;", "t2:abc;", "i-;"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct copy_value value;
        size_t at = 0;
        assert_false(tide_copy_value_take(tide_text_of(wrong[i]), &at, &value));
        assert_int_equal(at, 0);
    }
}

/* ---- whole copies ---- */

#define CASE(name) TEST_ON(name, struct stage *stage, set_up, tear_down)

CASE(a_copy_is_equal_and_leaves_its_source_alone)
{
    full_ledger_make(stage->world, stage->source, JOBS);
    const uint64_t before = file_sum(stage->source);
    OK(stage, copy(stage, stage->source, stage->target));
    assert_int_equal(file_sum(stage->source), before);
    assert_true(stage->report.equal);
    assert_int_equal(stage->report.rows_copied, stage->report.rows);
    assert_int_equal(stage->report.rows_resumed, 0);
    assert_string_equal(stage->report.left_out, "");
    assert_equal(stage, stage->source, stage->target);
    /* The stage has what it says. */
    static const char *const filled[] = {
        "run",          "kind",          "account",      "stream",
        "cycle",        "job",           "job_done",     "dep",
        "bad",          "intent",        "schedule",     "alert",
        "note",         "batch",         "mail_account", "mail_mark",
        "mail_shard",   "mail_proof",    "mail_listing", "mail_seen",
        "mail_epoch",   "mail_manifest", "mail_removal", "console_account",
        "console_site", "console_series"};
    for (size_t i = 0; i < sizeof filled / sizeof filled[0]; i++)
        if (rows_of(stage, filled[i]) == 0)
            fail_msg("the test's own ledger has no row in %s", filled[i]);
    for (int job_state = 0; job_state <= 4; job_state++) {
        const char *sql = textf("SELECT count(*) FROM job WHERE state = %d", job_state);
        assert_true(number(stage->target, sql) > 0);
        assert_int_equal(number(stage->target, sql), number(stage->source, sql));
    }
    assert_int_equal(number(stage->target, "SELECT count(*) FROM claim WHERE cancel_wanted = 1"),
                     number(stage->source, "SELECT count(*) FROM claim WHERE cancel_wanted = 1"));
    assert_true(number(stage->target, "SELECT count(*) FROM claim WHERE cancel_wanted = 1") > 0);
    assert_int_equal(number(stage->target, "SELECT sum(traits) FROM job"),
                     number(stage->source, "SELECT sum(traits) FROM job"));
    assert_int_equal(number(stage->target, "SELECT count(*) FROM job WHERE noted = 1"),
                     number(stage->target, "SELECT count(*) FROM detail"));
}

CASE(there_and_back_again_is_the_same)
{
    if (stage->postgres[0][0] == '\0')
        skip();
    full_ledger_make(stage->world, stage->source, JOBS);
    OK(stage, copy(stage, stage->source, stage->postgres[0]));
    assert_equal(stage, stage->source, stage->postgres[0]);
    OK(stage, copy(stage, stage->postgres[0], stage->postgres[1]));
    assert_equal(stage, stage->postgres[0], stage->postgres[1]);
    OK(stage, copy(stage, stage->postgres[1], stage->target));
    assert_equal(stage, stage->source, stage->target);
    assert_int_equal(open_as(stage, stage->target, false), TIDE_OK);
    assert_int_equal(open_as(stage, stage->postgres[0], false), TIDE_OK);
}

CASE(an_empty_ledger_can_be_copied)
{
    assert_int_equal(open_as(stage, stage->source, true), TIDE_NOT_FOUND);
    tide_ledger *ledger = NULL;
    const struct tide_ledger_options options = {.path = stage->source, .now_unix_ms = FULL_NOW};
    OK(stage, tide_ledger_open(stage->world, &options, &ledger, &stage->err));
    tide_ledger_close(ledger, true);
    OK(stage, copy(stage, stage->source, stage->target));
    assert_int_equal(stage->report.rows_copied, 1); /* the run */
    if (stage->postgres[0][0] == '\0')
        return;
    OK(stage, copy(stage, stage->source, stage->postgres[0]));
    OK(stage, copy(stage, stage->postgres[0], stage->second));
    assert_equal(stage, stage->target, stage->second);
}

/* Interrupted at its first look up, then the second, and so on until it gets through.
 * Each time no process may open the target, and resuming costs only what is left. */
static void interrupted_everywhere(struct stage *stage, const char *from, const char *to,
                                   uint64_t stride)
{
    uint64_t resumed_last = 0;
    tide_status rc = TIDE_CANCELED;
    for (stage->cancel_at = 2; rc == TIDE_CANCELED; stage->cancel_at += stride) {
        rc = copy(stage, from, to);
        assert_false(stage->report.restarted);
        if (rc != TIDE_CANCELED)
            break;
        assert_true(stage->report.rows_resumed + stage->report.rows_copied >= resumed_last);
        if (stage->report.rows_copied > 0) {
            resumed_last = stage->report.rows_resumed + stage->report.rows_copied;
            assert_int_equal(open_as(stage, to, true), TIDE_BUSY);
            assert_int_equal(open_as(stage, to, false), TIDE_BUSY);
            assert_non_null(strstr(stage->err.text, "ledger copy"));
        }
    }
    OK(stage, rc);
    assert_true(stage->report.rows_resumed > 0);
    stage->cancel_at = 0;
    assert_equal(stage, from, to);
    assert_int_equal(open_as(stage, to, false), TIDE_OK);
}

CASE(a_copy_goes_on_wherever_it_was_interrupted)
{
    full_ledger_make(stage->world, stage->source, JOBS);
    interrupted_everywhere(stage, stage->source, stage->target, 1);
    if (stage->postgres[0][0] == '\0')
        return;
    interrupted_everywhere(stage, stage->source, stage->postgres[0], 7); /* far away: dearer */
    interrupted_everywhere(stage, stage->postgres[0], stage->second, 5);
}

/* ---- refusals ---- */

CASE(a_target_with_rows_of_its_own_is_refused)
{
    full_ledger_make(stage->world, stage->source, 20);
    full_ledger_make(stage->world, stage->target, 10);
    const int64_t jobs = number(stage->target, "SELECT count(*) FROM job");
    assert_int_equal(copy(stage, stage->source, stage->target), TIDE_EXISTS);
    assert_int_equal(open_as(stage, stage->target, false), TIDE_OK);
    assert_int_equal(number(stage->target, "SELECT count(*) FROM job"), jobs);
    if (stage->postgres[0][0] == '\0')
        return;
    OK(stage, copy(stage, stage->source, stage->postgres[0]));
    assert_int_equal(copy(stage, stage->source, stage->postgres[0]), TIDE_EXISTS);
    assert_int_equal(open_as(stage, stage->postgres[0], true), TIDE_OK);
    assert_equal(stage, stage->source, stage->postgres[0]);
}

CASE(a_file_of_another_program_is_refused)
{
    full_ledger_make(stage->world, stage->source, 20);
    run_sqlite(stage->target, "CREATE TABLE mine (x); INSERT INTO mine VALUES (1)");
    assert_int_equal(copy(stage, stage->source, stage->target), TIDE_INVALID);
    assert_int_equal(number(stage->target, "SELECT count(*) FROM sqlite_schema"), 1);
}

CASE(source_and_target_must_be_two)
{
    full_ledger_make(stage->world, stage->source, 20);
    assert_int_equal(copy(stage, stage->source, stage->source), TIDE_INVALID);
    assert_int_equal(copy(stage, stage->target, stage->second), TIDE_NOT_FOUND);
    assert_int_not_equal(access(stage->second, F_OK), 0);
}

CASE(an_unfinished_copy_of_another_source_is_refused_until_it_is_thrown_away)
{
    full_ledger_make(stage->world, stage->source, JOBS);
    full_ledger_make(stage->world, stage->second, 30);
    const char *targets[] = {stage->target, stage->postgres[0]};
    for (size_t i = 0; i < 2 && targets[i][0] != '\0'; i++) {
        stage->cancel_at = 12;
        assert_int_equal(copy(stage, stage->source, targets[i]), TIDE_CANCELED);
        assert_true(stage->report.rows_copied > 0);
        stage->cancel_at = 0;
        assert_int_equal(copy(stage, stage->second, targets[i]), TIDE_EXISTS);
        assert_non_null(strstr(stage->err.text, "--restart"));
        struct tide_ledger_copy copying = plan(stage, stage->second, targets[i]);
        copying.restart = true;
        OK(stage,
           tide_ledger_copy(stage->world, &copying, tide_mem_heap(), &stage->report, &stage->err));
        assert_true(stage->report.restarted);
        assert_equal(stage, stage->second, targets[i]);
    }
}

CASE(a_source_that_was_written_to_is_copied_from_the_beginning)
{
    full_ledger_make(stage->world, stage->source, JOBS);
    const char *targets[] = {stage->target, stage->postgres[0]};
    for (size_t i = 0; i < 2 && targets[i][0] != '\0'; i++) {
        stage->cancel_at = 15;
        assert_int_equal(copy(stage, stage->source, targets[i]), TIDE_CANCELED);
        assert_true(stage->report.rows_copied > 0);
        stage->cancel_at = 0;
        assert_int_equal(open_as(stage, stage->source, false), TIDE_OK); /* leaves a run */
        run_sqlite(stage->source, "DELETE FROM note; UPDATE kind SET paused = 1 - paused");
        OK(stage, copy(stage, stage->source, targets[i]));
        assert_true(stage->report.restarted);
        assert_int_equal(stage->report.rows_resumed, 0);
        assert_equal(stage, stage->source, targets[i]);
    }
}

/* Another process resumes from the same place and finishes; the first must notice. */
static void second_copy(const struct tide_copy_progress *progress, void *arg)
{
    struct stage *stage = arg;
    if (progress->step != TIDE_COPY_ROWS || progress->rows < 1000 || stage->steps++ > 0)
        return;
    struct tide_ledger_copy copying = plan(stage, stage->source, stage->target);
    copying.progress = NULL;
    struct tide_copy_report *report = calloc(1, sizeof *report);
    assert_non_null(report);
    OK(stage, tide_ledger_copy(stage->world, &copying, tide_mem_heap(), report, &stage->err));
    free(report);
}

CASE(of_two_copies_into_one_target_one_gives_up)
{
    char apart[120];
    full_ledger_make(stage->world, stage->source, JOBS);
    /* Of another name, so that no lock of a state directory decides. */
    (void)snprintf(apart, sizeof apart, "%s/apart.db", stage->dir);
    assert_int_equal(rename(stage->source, apart), 0);
    (void)snprintf(stage->source, sizeof stage->source, "%s/apart.db", stage->dir);
    struct tide_ledger_copy copying = plan(stage, stage->source, stage->target);
    copying.progress = second_copy;
    stage->steps = 0;
    const tide_status rc =
        tide_ledger_copy(stage->world, &copying, tide_mem_heap(), &stage->report, &stage->err);
    assert_true(stage->steps > 0);
    assert_int_equal(rc, TIDE_BUSY);
    assert_equal(stage, stage->source, stage->target);
    assert_int_equal(open_as(stage, stage->target, true), TIDE_OK);
}

CASE(what_is_in_use_is_not_copied)
{
    tide_file_lock *lock = NULL;
    full_ledger_make(stage->world, stage->source, 20);
    const char *lock_path = textf("%s/engine.lock", stage->dir);
    OK(stage, tide_file_lock_take(stage->world, lock_path, TIDE_TEXT("engine, process 1, run x"),
                                  &lock, &stage->err));
    assert_int_equal(copy(stage, stage->source, stage->target), TIDE_BUSY);
    assert_non_null(strstr(stage->err.text, "stop"));
    assert_int_not_equal(access(stage->target, F_OK), 0);
    tide_file_lock_drop(stage->world, lock);
    OK(stage, copy(stage, stage->source, stage->target));
    if (stage->postgres[0][0] == '\0')
        return;
    OK(stage, copy(stage, stage->target, stage->postgres[0]));
    run_sql(stage->postgres[0],
            "INSERT INTO tidemark.member (owner, name, version, joined, until) VALUES"
            " (5, 'host, process 12', '1', 0, extract(epoch FROM now()) * 1000 + 60000)");
    assert_int_equal(copy(stage, stage->postgres[0], stage->second), TIDE_BUSY);
    assert_non_null(strstr(stage->err.text, "host, process 12"));
    run_sql(stage->postgres[0], "UPDATE tidemark.member SET until = 1");
    OK(stage, copy(stage, stage->postgres[0], stage->second));
}

CASE(what_the_target_cannot_hold_is_named_before_anything_is_written)
{
    static const struct {
        const char *sql, *undo, *row, *column;
    } cases[] = {
        {"UPDATE job SET payload = '{' || char(0) || '}' WHERE id = 6",
         "UPDATE job SET payload = '{}' WHERE id = 6", "job 6", "payload"},
        {"UPDATE note SET value = CAST(x'41ff' AS TEXT) WHERE key = 'note 3'",
         "UPDATE note SET value = 'x' WHERE key = 'note 3'", "note \"note 3\"", "value"},
        {"UPDATE mail_account SET notice = char(0) WHERE account = 2",
         "UPDATE mail_account SET notice = '' WHERE account = 2", "mail_account 2", "notice"},
        {"UPDATE job SET attempts_max = 3000000000 WHERE id = 9",
         "UPDATE job SET attempts_max = 3 WHERE id = 9", "job 9", "attempts_max"},
    };
    if (stage->postgres[0][0] == '\0')
        skip();
    full_ledger_make(stage->world, stage->source, 50);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        run_sqlite(stage->source, cases[i].sql);
        assert_int_equal(copy(stage, stage->source, stage->postgres[0]), TIDE_INVALID);
        if (strstr(stage->err.text, cases[i].row) == NULL ||
            strstr(stage->err.text, cases[i].column) == NULL)
            fail_msg("%s does not name %s", stage->err.text, cases[i].row);
        assert_int_equal(open_as(stage, stage->postgres[0], true), TIDE_NOT_FOUND);
        run_sqlite(stage->source, cases[i].undo);
    }
    OK(stage, copy(stage, stage->source, stage->postgres[0]));
}

/* A zero byte is nothing special to SQLite. */
CASE(sqlite_keeps_what_it_had_byte_for_byte)
{
    full_ledger_make(stage->world, stage->source, 50);
    run_sqlite(stage->source, "UPDATE job SET payload = '{' || char(0) || '}' WHERE id = 6");
    run_sqlite(stage->source, "UPDATE note SET value = CAST(x'41ff00' AS TEXT)");
    OK(stage, copy(stage, stage->source, stage->target));
    assert_int_equal(number(stage->target, "SELECT count(DISTINCT hex(value)) FROM note"), 1);
    assert_int_equal(number(stage->target, "SELECT hex(value) = '41FF00' FROM note LIMIT 1"), 1);
}

CASE(a_source_that_breaks_its_rules_is_refused)
{
    full_ledger_make(stage->world, stage->source, 50);
    run_sqlite(stage->source, "UPDATE cycle SET outstanding = outstanding + 1 WHERE id = 2");
    assert_int_equal(copy(stage, stage->source, stage->target), TIDE_CORRUPT);
    assert_non_null(strstr(stage->err.text, "LED3"));
    assert_int_not_equal(access(stage->target, F_OK), 0);
}

/* ---- comparing ---- */

CASE(every_difference_is_found_and_named)
{
    static const struct {
        const char *sql, *table, *says;
    } changes[] = {
        {"UPDATE job SET payload = payload || ' ' WHERE id = 2", "job", "payload differs"},
        {"UPDATE detail SET error = 'x' WHERE job = (SELECT min(id) FROM job WHERE state = 3)",
         "job", "error differs"},
        {"UPDATE claim SET token = token + 1 WHERE job = (SELECT min(job) FROM claim)", "job",
         "token differs"},
        {"DELETE FROM note WHERE key = 'note 3'", "note", "note \"note 3\" is not on both sides"},
        {"UPDATE stream SET floor = '' WHERE floor IS NULL", "stream", "floor differs"},
        {"INSERT INTO mail_epoch VALUES (10, 1)", "mail_epoch", "mail_epoch 10 is not on both"},
        {"UPDATE mail_removal SET hash = x'00'", "mail_removal", "hash differs"},
        {"UPDATE batch SET ids = '[2,1]' WHERE name = 'Batch 2'", "batch", "ids differs"},
    };
    full_ledger_make(stage->world, stage->source, 200);
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        forget(stage->target);
        OK(stage, copy(stage, stage->source, stage->target));
        run_sqlite(stage->target, changes[i].sql);
        const struct tide_ledger_copy copying = plan(stage, stage->source, stage->target);
        OK(stage, tide_ledger_compare(stage->world, &copying, tide_mem_heap(), &stage->report,
                                      &stage->err));
        assert_false(stage->report.equal);
        for (size_t t = 0; t < stage->report.tables_count; t++) {
            const struct tide_copy_table *table = &stage->report.tables[t];
            assert_int_equal(table->equal, strcmp(table->name, changes[i].table) != 0);
            if (!table->equal && strstr(table->difference, changes[i].says) == NULL)
                fail_msg("%s: %s", changes[i].sql, table->difference);
        }
    }
}

/* Another program writes to the target: the mark stays, and the next run repairs it. */
static void spoil(const struct tide_copy_progress *progress, void *arg)
{
    struct stage *stage = arg;
    if (progress->step == TIDE_COPY_COMPARE && stage->steps++ == 0)
        run_sqlite(stage->target, "UPDATE alert SET text = 'spoiled' WHERE account = 1");
}

CASE(a_copy_that_is_not_equal_stays_closed_and_begins_again)
{
    full_ledger_make(stage->world, stage->source, 200);
    struct tide_ledger_copy copying = plan(stage, stage->source, stage->target);
    copying.progress = spoil;
    stage->steps = 0;
    /* Written between the copying and the snapshot that is compared. */
    assert_int_equal(
        tide_ledger_copy(stage->world, &copying, tide_mem_heap(), &stage->report, &stage->err),
        TIDE_CORRUPT);
    assert_non_null(strstr(stage->err.text, "alert"));
    assert_int_equal(open_as(stage, stage->target, true), TIDE_BUSY);
    OK(stage, copy(stage, stage->source, stage->target));
    assert_true(stage->report.restarted);
    assert_equal(stage, stage->source, stage->target);
}

CASE(a_count_touches_nothing)
{
    full_ledger_make(stage->world, stage->source, 100);
    run_sqlite(stage->source, "CREATE TABLE mine (x INTEGER PRIMARY KEY)");
    const struct tide_ledger_copy copying = plan(stage, stage->source, stage->target);
    OK(stage, tide_ledger_copy_count(stage->world, &copying, tide_mem_heap(), &stage->report,
                                     &stage->err));
    assert_int_equal(rows_of(stage, "job") + rows_of(stage, "job_done"), 100);
    assert_string_equal(stage->report.left_out, "mine");
    assert_int_not_equal(access(stage->target, F_OK), 0);
}

/* ---- afterwards ---- */

/* What ran when the source stopped is put back by the first engine there (E1.7). */
CASE(jobs_that_ran_are_put_back_on_the_other_side)
{
    const char *targets[] = {stage->target, stage->postgres[0]};
    full_ledger_make(stage->world, stage->source, 300);
    const int64_t running = number(stage->source, "SELECT count(*) FROM claim");
    assert_true(running > 0);
    for (size_t i = 0; i < 2 && targets[i][0] != '\0'; i++) {
        OK(stage, copy(stage, stage->source, targets[i]));
        tide_ledger *ledger = NULL;
        tide_tx *tx = NULL;
        size_t count = 0;
        struct tide_changes changes;
        tide_changes_init(&changes, tide_mem_heap());
        tide_buf problems = heap_buf(1 << 16);
        const struct tide_ledger_options options = {
            .path = targets[i], .run_id = "next", .now_unix_ms = FULL_NOW};
        OK(stage, tide_ledger_open(stage->world, &options, &ledger, &stage->err));
        OK(stage, tide_tx_begin(ledger, &tx, &stage->err));
        OK(stage, tide_ledger_reclaim(tx, 99, 1000, FULL_NOW, &count, &changes, &stage->err));
        OK(stage, tide_tx_commit(tx, &stage->err));
        assert_int_equal(count, running);
        OK(stage, tide_ledger_check(ledger, &problems, &stage->err));
        tide_buf_done(&problems);
        tide_changes_done(&changes);
        tide_ledger_close(ledger, true);
    }
}

static uint64_t next_id(struct stage *stage, const char *path)
{
    tide_ledger *ledger = NULL;
    tide_tx *tx = NULL;
    uint32_t kind = 0;
    struct tide_enqueued enqueued;
    const struct tide_ledger_options options = {
        .path = path, .run_id = "next", .now_unix_ms = FULL_NOW};
    OK(stage, tide_ledger_open(stage->world, &options, &ledger, &stage->err));
    OK(stage, tide_tx_begin(ledger, &tx, &stage->err));
    OK(stage, tide_ledger_kind(tx, "new", TIDE_DEDUPE_PENDING, &kind, &stage->err));
    const struct tide_job_new job = {.kind = kind, .payload = TIDE_TEXT("{}"), .attempts_max = 1};
    OK(stage, tide_ledger_enqueue(tx, &job, 1, FULL_NOW, &enqueued, &stage->err));
    OK(stage, tide_tx_commit(tx, &stage->err));
    tide_ledger_close(ledger, true);
    return enqueued.id;
}

/* Also of those that were purged where they were. */
CASE(ids_of_jobs_never_return)
{
    full_ledger_make(stage->world, stage->source, 300);
    OK(stage, copy(stage, stage->source, stage->target));
    assert_true(next_id(stage, stage->target) > 300);
    if (stage->postgres[0][0] == '\0')
        return;
    OK(stage, copy(stage, stage->source, stage->postgres[0]));
    run_sql(stage->postgres[0], "SELECT setval('tidemark.job_id', 5000)");
    OK(stage, copy(stage, stage->postgres[0], stage->second));
    assert_equal(stage, stage->source, stage->second);
    OK(stage, copy(stage, stage->second, stage->postgres[1]));
    assert_equal(stage, stage->source, stage->postgres[1]);
    assert_int_equal(next_id(stage, stage->second), 5001);
    assert_true(next_id(stage, stage->postgres[1]) > 5000);
}
