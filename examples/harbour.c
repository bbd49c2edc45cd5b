/* harbour.c - a first program with Tidemark.
 *
 * Three hundred crates come ashore; every ten of them are loaded onto a ship, which
 * may only sail when its ten crates are there.  Stop it in any way: with Ctrl-C, with
 * kill -9, by pulling the plug.  Run it again and it resumes: nothing is booked twice,
 * and no ship sails too early.
 *
 *     build/examples/harbour harbour-state
 *     build/tidemark --home harbour-state jobs stats     (while it runs, or later)
 */
#include "tidemark.h"

#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <unistd.h>

enum { SHIPS = 30, CRATES_PER_SHIP = 10, CRATES = SHIPS * CRATES_PER_SHIP };

/* The effect of a job goes into a table of our own, in the same file and in the same transaction
 * that marks the job as done. */
static tide_status write_book(tide_transaction *transaction, void *arg, tide_error *err)
{
    const char *line = arg;
    sqlite3 *db = tide_transaction_sqlite(transaction);
    char *sql = sqlite3_mprintf("CREATE TABLE IF NOT EXISTS book (line TEXT);"
                                "INSERT INTO book VALUES (%Q)",
                                line);
    int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
    sqlite3_free(sql);
    return rc == SQLITE_OK ? TIDE_OK : tide_error_set(err, TIDE_INVALID, "%s", sqlite3_errmsg(db));
}

/* A handler is ordinary C on its own thread.  It may be interrupted at any point: its effect is
 * written together with its end, or not at all. */
static tide_status unload(tide_job *job, void *context, tide_error *err)
{
    tide_status rc = tide_job_sleep(job, 30); /* the work; a cancellation ends it */
    if (rc != TIDE_OK)
        return rc;
    if (tide_job_id(job) % 17 == 0 && tide_job_attempt(job) == 1)
        return tide_error_set(err, TIDE_TIMEOUT, "the rope broke"); /* retried automatically */
    return tide_job_effect(job, write_book, context, err);
}

static tide_status sail(tide_job *job, void *context, tide_error *err)
{
    return tide_job_effect(job, write_book, context, err);
}

/* The whole plan as one call: jobs name what they need by their index in it. */
static tide_status make_plan(tide_transaction *transaction, void *arg, tide_error *err)
{
    const uint32_t *kinds = arg;
    struct tide_spec specs[CRATES + SHIPS] = {{0}};
    uint32_t needs[CRATES];
    for (uint32_t i = 0; i < CRATES; i++) {
        specs[i].kind = kinds[0];
        needs[i] = i;
    }
    for (uint32_t ship = 0; ship < SHIPS; ship++) {
        specs[CRATES + ship].kind = kinds[1];
        specs[CRATES + ship].needs_index = &needs[ship * CRATES_PER_SHIP];
        specs[CRATES + ship].needs_index_count = CRATES_PER_SHIP;
    }
    /* The table records that the plan was made: a restart must not make another. */
    sqlite3 *db = tide_transaction_sqlite(transaction);
    if (sqlite3_exec(db, "CREATE TABLE plan (made)", NULL, NULL, NULL) != SQLITE_OK)
        return tide_error_set(err, TIDE_EXISTS, "the plan was made before");
    return tide_transaction_enqueue(transaction, specs, CRATES + SHIPS, NULL, err);
}

struct count {
    const char *line;
    int seen;
};

static tide_status count_book(tide_transaction *transaction, void *arg, tide_error *err)
{
    (void)err;
    struct count *count = arg;
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_prepare_v2(tide_transaction_sqlite(transaction),
                           "SELECT count(*) FROM book WHERE line = ?1", -1, &stmt,
                           NULL) != SQLITE_OK)
        return TIDE_OK; /* no book yet */
    (void)sqlite3_bind_text(stmt, 1, count->line, -1, SQLITE_STATIC);
    if (sqlite3_step(stmt) == SQLITE_ROW)
        count->seen = sqlite3_column_int(stmt, 0);
    (void)sqlite3_finalize(stmt);
    return TIDE_OK;
}

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    (void)number;
    interrupted = 1;
}

static int fail(const char *what, const tide_error *err)
{
    (void)fprintf(stderr, "harbour: %s: %s\n", what, err->text);
    return 1;
}

int main(int argc, char **argv)
{
    const char *dir = argc > 1 ? argv[1] : "harbour-state";
    tide_error err = {TIDE_OK, 0, ""};
    tide_engine *engine = NULL;
    if (tide_engine_open(&(struct tide_engine_options){.state_dir = dir}, &engine, &err) != TIDE_OK)
        return fail("cannot open", &err);

    static char crate[] = "crate";
    static char ship[] = "ship";
    uint32_t kinds[2];
    struct tide_kind unloading = {.name = "unload", .handler = unload, .context = crate};
    struct tide_kind sailing = {.name = "sail", .handler = sail, .context = ship};
    tide_status rc = tide_engine_kind(engine, &unloading, &kinds[0], &err);
    if (rc == TIDE_OK)
        rc = tide_engine_kind(engine, &sailing, &kinds[1], &err);
    if (rc == TIDE_OK)
        rc = tide_transact(engine, make_plan, kinds, &err);
    if (rc == TIDE_EXISTS)
        rc = TIDE_OK; /* an earlier run made it: continue with that */
    if (rc == TIDE_OK)
        rc = tide_engine_start(engine, &err);

    (void)signal(SIGINT, on_signal);
    (void)signal(SIGTERM, on_signal);
    struct count crates = {crate, 0};
    struct count ships = {ship, 0};
    tide_status work = rc == TIDE_OK ? TIDE_TIMEOUT : rc; /* there is still work to do */
    while (work == TIDE_TIMEOUT && !interrupted) {
        work = tide_engine_wait(engine, 100, &err);
        (void)tide_transact(engine, count_book, &crates, NULL);
        (void)tide_transact(engine, count_book, &ships, NULL);
        (void)printf("%c%3d of %d crates, %2d of %d ships", isatty(1) ? '\r' : '\n', crates.seen,
                     CRATES, ships.seen, SHIPS);
        (void)fflush(stdout);
    }
    (void)printf("\n%s\n", work == TIDE_OK ? "all done" : "interrupted: run it again to resume");
    if (work != TIDE_OK && work != TIDE_TIMEOUT)
        (void)fail("cannot continue", &err);
    (void)tide_engine_close(engine); /* puts running jobs back, loses nothing */
    return work == TIDE_OK && crates.seen == CRATES && ships.seen == SHIPS ? 0 : 2;
}
