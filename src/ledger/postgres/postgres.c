/* postgres.c - transactions of a ledger on PostgreSQL: the fence, the commit token,
 * savepoints, and the table of operations. */
#include "ledger/postgres/postgres.h"
#include "base/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    BACKOFF_FIRST_MS = 50,
    BACKOFF_MS_MAX = 2000,
    SAVEPOINTS_MAX = 1000,
    MUTE_MS = 60000,
};

tide_status tide_pgl_no_memory(tide_error *err)
{
    return tide_error_set(err, TIDE_NO_MEMORY, "ledger: no memory");
}

static bool ends_transaction(tide_status rc)
{
    return rc == TIDE_IO || rc == TIDE_CORRUPT || rc == TIDE_DISK_FULL || rc == TIDE_NO_MEMORY ||
           rc == TIDE_NETWORK || rc == TIDE_BUSY;
}

/* The transaction is over after a failure of the store, and also when the server reports an
 * error: after a refused statement it accepts only a rollback (LPG7). */
tide_status tide_pgl_end(struct tide_postgres *self, tide_status rc)
{
    if (rc == TIDE_OK || !self->in_tx)
        return rc;
    bool over = ends_transaction(rc);
    PGconn *conn = tide_pg_handle(self->pg);
    if (conn == NULL || (!tide_pg_leads(self->pg) && PQtransactionStatus(conn) != PQTRANS_INTRANS))
        over = true;
    if (over && self->tx_failed == TIDE_OK)
        self->tx_failed = rc;
    return rc;
}

tide_status tide_pgl_ready(struct tide_postgres *self, tide_error *err)
{
    if (!self->in_tx)
        return tide_pg_ready(self->pg, err);
    if (self->tx_failed != TIDE_OK)
        return tide_error_set(err, self->tx_failed, "%s: an earlier step failed (%s)",
                              tide_pg_name(self->pg), tide_status_name(self->tx_failed));
    return TIDE_OK;
}

/* Whether a character of several bytes may begin with `lead`; *bytes_out: how many, and
 * the least second byte that is not an overlong form. */
static size_t utf8_bytes(unsigned char lead, unsigned char *low_out, unsigned char *high_out)
{
    *low_out = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    *high_out = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    if (lead >= 0xC2 && lead <= 0xDF)
        return 2;
    if (lead >= 0xE0 && lead <= 0xEF)
        return 3;
    return lead >= 0xF0 && lead <= 0xF4 ? 4 : 0;
}

bool tide_pgl_text_ok(tide_text text)
{
    if (text.bytes == 0) /* its pointer may be NULL, which has no places */
        return true;
    const unsigned char *at = (const unsigned char *)text.data;
    const unsigned char *end = at + text.bytes;
    while (at < end) {
        if (*at != 0 && *at < 0x80) {
            at++;
            continue;
        }
        unsigned char low = 0;
        unsigned char high = 0;
        size_t bytes = *at == 0 ? 0 : utf8_bytes(*at, &low, &high);
        if (bytes == 0 || (size_t)(end - at) < bytes || at[1] < low || at[1] > high)
            return false;
        for (size_t i = 2; i < bytes; i++)
            if ((at[i] & 0xC0) != 0x80)
                return false;
        at += bytes;
    }
    return true;
}

/* ---- begin --------------------------------------------------------------------- */

/* One text, so that all of it costs one round trip. */
static void begin_text(const struct tide_postgres *self, bool by_place, char *sql, size_t bytes)
{
    size_t at =
        (size_t)snprintf(sql, bytes, TIDE_PGL_BEGIN "; %s", tide_pg_local_settings(self->pg));
    if (self->owner == 0)
        return;
    at += (size_t)snprintf(sql + at, bytes - at,
                           "UPDATE tidemark.member SET seq = %" PRId64 " WHERE owner = %" PRId64,
                           (int64_t)self->seq, (int64_t)self->owner);
    if (by_place)
        at += (size_t)snprintf(sql + at, bytes - at, " AND ctid = '%s'", self->place);
    at += (size_t)snprintf(sql + at, bytes - at, " AND NOT dead RETURNING ctid");
    TIDE_ASSERT(at < bytes);
}

/* The fence: updates the member's own row; fails if the member was declared dead. */
static bool fence(struct tide_postgres *self, const PGresult *result)
{
    if (PQntuples(result) != 1)
        return false;
    (void)snprintf(self->place_next, sizeof self->place_next, "%.31s", PQgetvalue(result, 0, 0));
    return true;
}

static tide_status begin_once(struct tide_postgres *self, tide_error *err)
{
    char sql[1500];
    PGresult *result = NULL;
    bool by_place = self->owner != 0 && self->place[0] != '\0';
    TIDE_TRY(tide_pg_ready(self->pg, err));
    begin_text(self, by_place, sql, sizeof sql);
    tide_status rc = tide_pg_texts(self->pg, sql, &result, err);
    if (rc != TIDE_OK || self->owner == 0)
        return rc;
    bool found = fence(self, result);
    if (!found && by_place) {
        (void)snprintf(sql, sizeof sql,
                       "UPDATE tidemark.member SET seq = %" PRId64 " WHERE owner = %" PRId64
                       " AND NOT dead RETURNING ctid",
                       (int64_t)self->seq, (int64_t)self->owner);
        rc = tide_pg_texts(self->pg, sql, &result, err);
        found = rc == TIDE_OK && fence(self, result);
    }
    if (rc == TIDE_OK && !found) {
        TIDE_SEEN("ledger: a member that was declared dead came back");
        rc = tide_error_set(err, TIDE_STALE, "%s: this process was declared dead",
                            tide_pg_name(self->pg));
    }
    return rc;
}

static void undo(struct tide_postgres *self)
{
    tide_pg_lead_drop(self->pg);
    PGconn *conn = tide_pg_handle(self->pg);
    if (conn != NULL && PQtransactionStatus(conn) != PQTRANS_IDLE &&
        tide_pg_exec(self->pg, "ROLLBACK", NULL) != TIDE_OK)
        tide_pg_drop(self->pg);
}

static void begun(struct tide_postgres *self, tide_tx **tx_out)
{
    self->in_tx = true;
    self->tx_failed = TIDE_OK;
    self->savepoints = 0;
    self->xact = 0;
    self->xact_in_run = false;
    self->deltas_count = 0;
    self->leaves = false;
    self->hints = (struct pg_hints){.control = false};
    *tx_out = &self->tx;
}

static tide_status begin(tide_ledger *ledger, tide_tx **tx_out, tide_error *err)
{
    struct tide_postgres *self = postgres_of(ledger);
    TIDE_ASSERT(!self->in_tx);
    TIDE_ASSERT(!self->read_only);
    self->seq++;
    bool was_connected = tide_pg_handle(self->pg) != NULL;
    tide_status rc = begin_once(self, err);
    /* The server may have been restarted since the last transaction; nothing was done yet, so
     * an old connection may be replaced at once. */
    if (rc == TIDE_NETWORK && was_connected)
        rc = begin_once(self, err);
    if (rc != TIDE_OK) {
        undo(self);
        return rc;
    }
    begun(self, tx_out);
    return TIDE_OK;
}

/* The statement that was sent with a failed fence returns its status.  The next begin finds
 * out whether the member is dead or its row just moved. */
static tide_status accept_fence(void *arg, const PGresult *result, tide_error *err)
{
    struct tide_postgres *self = arg;
    if (fence(self, result))
        return TIDE_OK;
    self->place[0] = '\0';
    return tide_error_set(err, TIDE_BUSY, "%s: this process's row has moved; retry",
                          tide_pg_name(self->pg));
}

static tide_status begin_lazily(tide_ledger *ledger, tide_tx **tx_out, tide_error *err)
{
    struct tide_postgres *self = postgres_of(ledger);
    if (self->owner == 0 || self->place[0] == '\0' || tide_pg_pooled(self->pg) ||
        tide_pg_handle(self->pg) == NULL)
        return begin(ledger, tx_out, err);
    self->seq++;
    (void)snprintf(self->seq_text, sizeof self->seq_text, "%" PRId64, (int64_t)self->seq);
    (void)snprintf(self->owner_text, sizeof self->owner_text, "%" PRId64, (int64_t)self->owner);
    memcpy(self->place_next, self->place, sizeof self->place_next);
    self->fence_texts[0] = self->seq_text;
    self->fence_texts[1] = self->owner_text;
    self->fence_texts[2] = self->place;
    tide_pg_lead(self->pg, &(struct tide_pg_lead){.begin = PGSQL_BEGIN,
                                                  .first = PGSQL_FENCE,
                                                  .texts = self->fence_texts,
                                                  .texts_count = 3,
                                                  .accept = accept_fence,
                                                  .arg = self});
    begun(self, tx_out);
    return TIDE_OK;
}

void tide_pgl_forget_heads(struct tide_postgres *self)
{
    memset(self->heads, 0, sizeof self->heads);
    self->look_due_us = 0;
    self->look_allowed_us = 0;
    self->due_unix_ms = 0;
    self->due_looked_unix_ms = 0;
}

/* ---- end ----------------------------------------------------------------------- */

static void ended(struct tide_postgres *self, bool committed)
{
    self->in_tx = false;
    if (committed) {
        memcpy(self->place, self->place_next, sizeof self->place);
        if (self->leaves)
            self->owner = 0;
        return;
    }
    /* A cached name may no longer exist. */
    tide_map_clear(&self->kinds);
    tide_map_clear(&self->accounts);
    self->day = 0;
    tide_pgl_forget_heads(self);
}

static void rollback(tide_tx *tx)
{
    struct tide_postgres *self = postgres_of_tx(tx);
    TIDE_ASSERT(self->in_tx);
    undo(self);
    ended(self, false);
}

/* Without a member the row of this start carries the commit token: the transaction's own
 * number as its xmin.  The number alone would not be enough: a server that crashes forgets the
 * numbers of transactions that never reached its disk, and gives them to others.  Only a
 * transaction that wrote something has a number. */
static tide_status take_token(struct tide_postgres *self, tide_error *err)
{
    PGresult *result = NULL;
    if (self->owner != 0)
        return TIDE_OK;
    tide_pg_params(self->pg);
    tide_pg_u64(self->pg, self->run);
    TIDE_TRY(
        tide_pg_query(self->pg,
                      "WITH own AS (UPDATE tidemark.run SET started = started WHERE id = $1"
                      "  AND pg_catalog.pg_current_xact_id_if_assigned() IS NOT NULL RETURNING id)"
                      " SELECT pg_catalog.pg_current_xact_id_if_assigned()::text::bigint,"
                      "  EXISTS (SELECT 1 FROM own)",
                      &result, err));
    self->xact = tide_pg_get_u64(result, 0, 0);
    self->xact_in_run = tide_pg_get_bool(result, 0, 1);
    return TIDE_OK;
}

/* The outcome of a transaction without such a row (a copy under construction), by its
 * number. */
static tide_status ask_by_number(struct tide_postgres *self, bool *committed_out, tide_error *err)
{
    PGresult *result = NULL;
    tide_pg_params(self->pg);
    tide_pg_u64(self->pg, self->xact);
    tide_status rc =
        tide_pg_query(self->pg, "SELECT pg_catalog.pg_xact_status($1::text::xid8)", &result, err);
    if (rc != TIDE_OK && strcmp(tide_pg_sqlstate(self->pg), "22023") == 0) {
        *committed_out = false; /* the server crashed and does not know the number */
        return TIDE_OK;
    }
    if (rc != TIDE_OK)
        return rc;
    tide_text said = tide_pg_get_text(result, 0, 0);
    if (tide_text_equal(said, TIDE_TEXT("in progress")))
        return TIDE_BUSY;
    *committed_out = tide_text_equal(said, TIDE_TEXT("committed"));
    return TIDE_OK;
}

/* Asks once for the outcome of the commit.  TIDE_OK with *committed_out; TIDE_BUSY: not
 * decided.  The lock waits for the old server process, if that still works on the commit. */
static tide_status ask_outcome(struct tide_postgres *self, bool *committed_out, tide_error *err)
{
    static const char of_member[] = "SELECT seq FROM tidemark.member WHERE owner = $1 FOR UPDATE";
    static const char of_run[] =
        "SELECT xmin::text::bigint FROM tidemark.run WHERE id = $1 FOR UPDATE";
    PGresult *result = NULL;
    bool member = self->owner != 0;
    TIDE_TRY(tide_pg_ready(self->pg, err));
    if (!member && !self->xact_in_run)
        return ask_by_number(self, committed_out, err);
    uint64_t token = member ? self->seq : self->xact & UINT32_MAX;
    tide_pg_params(self->pg);
    tide_pg_u64(self->pg, member ? self->owner : self->run);
    TIDE_TRY(tide_pg_query(self->pg, member ? of_member : of_run, &result, err));
    *committed_out = PQntuples(result) == 1 && tide_pg_get_u64(result, 0, 0) == token;
    return TIDE_OK;
}

/* The connection was lost during COMMIT.  The writer must not continue before it knows
 * whether that transaction was stored. */
static tide_status resolve(struct tide_postgres *self, tide_error *err)
{
    uint64_t wait_ms = BACKOFF_FIRST_MS;
    if (self->owner == 0 && self->xact == 0)
        return TIDE_OK; /* it wrote nothing */
    TIDE_SEEN("ledger: a commit whose outcome was unknown");
    for (;;) {
        bool committed = false;
        if (ask_outcome(self, &committed, NULL) == TIDE_OK) {
            if (committed)
                return TIDE_OK;
            return tide_error_set(err, TIDE_NETWORK,
                                  "%s: the connection was lost during a commit, nothing was stored",
                                  tide_pg_name(self->pg));
        }
        if (tide_world_dead(self->world) || __atomic_load_n(&self->given_up, __ATOMIC_RELAXED) ||
            tide_world_sleep_until(self->world, tide_world_now_us(self->world) + wait_ms * 1000,
                                   NULL) == TIDE_STOPPED)
            return tide_error_set(err, TIDE_STOPPED,
                                  "%s: stopped before the outcome of a commit was known",
                                  tide_pg_name(self->pg));
        wait_ms = wait_ms * 2 > BACKOFF_MS_MAX ? BACKOFF_MS_MAX : wait_ms * 2;
    }
}

static void give_up(tide_ledger *ledger)
{
    __atomic_store_n(&postgres_of(ledger)->given_up, true, __ATOMIC_RELAXED);
}

/* A session that listens and does not read fills the server's NOTIFY queue, and then every
 * commit with a NOTIFY is refused.  Hints are optional: the next commits send none. */
static tide_status mute(struct tide_postgres *self, tide_error *err)
{
    TIDE_SEEN("ledger: no room for hints");
    self->mute_until_us = tide_world_now_us(self->world) + (uint64_t)MUTE_MS * 1000;
    return tide_error_set(err, TIDE_BUSY, "%s: the NOTIFY queue is full; retry without hints",
                          tide_pg_name(self->pg));
}

static tide_status commit(tide_tx *tx, tide_error *err)
{
    struct tide_postgres *self = postgres_of_tx(tx);
    TIDE_ASSERT(self->in_tx);
    TIDE_ASSERT(self->savepoints == 0 || self->tx_failed != TIDE_OK);
    tide_status rc = self->tx_failed;
    if (rc != TIDE_OK)
        (void)tide_error_set(err, rc, "%s: nothing was stored, because an earlier step failed (%s)",
                             tide_pg_name(self->pg), tide_status_name(rc));
    if (rc == TIDE_OK)
        rc = tide_pg_lead_go(self->pg, err);
    if (rc == TIDE_OK)
        rc = take_token(self, err);
    if (rc == TIDE_OK) {
        PGresult *result = NULL;
        char sql[TIDE_PGL_HINTS_BYTES + 16] = "";
        if (self->mute_until_us == 0 || tide_world_now_us(self->world) >= self->mute_until_us)
            tide_pgl_hints_text(self, sql, TIDE_PGL_HINTS_BYTES);
        size_t at = strlen(sql);
        (void)snprintf(sql + at, sizeof sql - at, "COMMIT");
        rc = tide_pg_texts(self->pg, sql, &result, err);
        /* No answer from the server: it was lost, or libpq had no memory for it.  Ask on
         * another connection, because on this one the transaction may still be open. */
        if (rc == TIDE_NETWORK || (rc != TIDE_OK && tide_pg_sqlstate(self->pg)[0] == '\0')) {
            tide_pg_drop(self->pg);
            rc = resolve(self, err);
        } else if (rc != TIDE_OK && at > 0 && strcmp(tide_pg_sqlstate(self->pg), "54000") == 0) {
            rc = mute(self, err);
        } else if (rc == TIDE_OK && strcmp(PQcmdStatus(result), "COMMIT") != 0)
            rc = tide_error_set(err, TIDE_IO, "%s: the server rolled the transaction back",
                                tide_pg_name(self->pg));
    }
    if (rc != TIDE_OK)
        undo(self);
    ended(self, rc == TIDE_OK);
    return rc;
}

/* ---- parts of a transaction ------------------------------------------------------- */

/* false for a lost connection: no callback ended the transaction. */
static bool tx_over(tide_tx *tx)
{
    struct tide_postgres *self = postgres_of_tx(tx);
    PGconn *conn = tide_pg_handle(self->pg);
    return conn != NULL && !tide_pg_leads(self->pg) && PQtransactionStatus(conn) == PQTRANS_IDLE;
}

static tide_status savepoint(tide_tx *tx, tide_error *err)
{
    struct tide_postgres *self = postgres_of_tx(tx);
    char sql[48];
    TIDE_TRY(tide_pgl_ready(self, err));
    if (self->savepoints >= SAVEPOINTS_MAX)
        return tide_error_set(err, TIDE_FULL, "%u savepoints inside each other", self->savepoints);
    (void)snprintf(sql, sizeof sql, "SAVEPOINT tm%u", self->savepoints);
    tide_status rc = tide_pg_exec(self->pg, sql, err);
    if (rc == TIDE_OK)
        self->savepoints++;
    return tide_pgl_end(self, rc);
}

/* After a refused statement the transaction is usable again once it is rolled back to this
 * savepoint, if the connection still stands.  If a statement of the caller was refused and
 * the caller did not report it, there is nothing to keep: it is undone, and refused with
 * TIDE_INVALID. */
static tide_status savepoint_end(tide_tx *tx, bool keep, tide_error *err)
{
    struct tide_postgres *self = postgres_of_tx(tx);
    char sql[96];
    TIDE_ASSERT(self->savepoints > 0);
    unsigned number = --self->savepoints;
    PGconn *conn = tide_pg_handle(self->pg);
    bool refused = keep && !ends_transaction(self->tx_failed) && conn != NULL &&
                   PQtransactionStatus(conn) == PQTRANS_INERROR;
    if (keep && !refused) {
        tide_status ready = tide_pgl_ready(self, err);
        if (ready != TIDE_OK)
            return ready;
        (void)snprintf(sql, sizeof sql, "RELEASE SAVEPOINT tm%u", number);
        return tide_pgl_end(self, tide_pg_exec(self->pg, sql, err));
    }
    if (conn == NULL || PQtransactionStatus(conn) == PQTRANS_IDLE)
        return tide_pgl_ready(self, err);
    (void)snprintf(sql, sizeof sql, "ROLLBACK TO SAVEPOINT tm%u; RELEASE SAVEPOINT tm%u", number,
                   number);
    tide_map_clear(&self->kinds);
    tide_map_clear(&self->accounts);
    tide_status rc = tide_pg_exec(self->pg, sql, err);
    /* A deadlock or a failed read ends the whole transaction, even if the part was undone. */
    if (rc == TIDE_OK && !ends_transaction(self->tx_failed))
        self->tx_failed = TIDE_OK;
    if (rc == TIDE_OK && refused)
        return tide_error_set(err, TIDE_INVALID,
                              "%s: a statement failed and its error was not reported; this part "
                              "of the transaction was undone",
                              tide_pg_name(self->pg));
    return tide_pgl_end(self, rc);
}

/* A caller's own statements run inside the transaction and behind the fence, or not at all:
 * on a connection without a transaction each of them would be stored at once. */
static struct pg_conn *tx_handle(tide_tx *tx)
{
    struct tide_postgres *self = postgres_of_tx(tx);
    tide_status rc = tide_pg_lead_go(self->pg, NULL);
    if (rc != TIDE_OK)
        tide_pg_drop(self->pg);
    (void)tide_pgl_end(self, rc);
    return tide_pg_handle(self->pg);
}

static struct pg_conn *ledger_handle(tide_ledger *ledger)
{
    struct tide_postgres *self = postgres_of(ledger);
    (void)tide_pgl_ready(self, NULL);
    return tide_pg_handle(self->pg);
}

static tide_status rows_of(tide_ledger *ledger, tide_rows *rows_out, tide_error *err)
{
    struct tide_postgres *self = postgres_of(ledger);
    TIDE_TRY(tide_pgl_ready(self, err));
    TIDE_TRY(tide_pg_lead_go(self->pg, err));
    rows_out->postgres = tide_pg_handle(self->pg);
    return TIDE_OK;
}

static tide_status rows_end(tide_ledger *ledger, tide_status rc)
{
    struct tide_postgres *self = postgres_of(ledger);
    if (rc == TIDE_NETWORK)
        tide_pg_drop(self->pg);
    return tide_pgl_end(self, rc);
}

static void names_change(tide_ledger *ledger)
{
    struct tide_postgres *self = postgres_of(ledger);
    tide_map_clear(&self->kinds);
    tide_pgl_forget_heads(self); /* claims have passed the free jobs of a paused kind */
}

/* ---- checkpoints and backups ---------------------------------------------------- */

/* The server does its own checkpoints. */
tide_status tide_pgl_checkpoint(tide_ledger *ledger, uint32_t *pages_left_out, tide_error *err)
{
    (void)ledger;
    (void)err;
    *pages_left_out = 0;
    return TIDE_OK;
}

tide_status tide_pgl_backup(tide_ledger *ledger, const char *path, tide_error *err)
{
    struct tide_postgres *self = postgres_of(ledger);
    (void)path;
    return tide_error_set(err, TIDE_INVALID,
                          "%s: a ledger on PostgreSQL is backed up by PostgreSQL: "
                          "pg_dump --schema=tidemark, or with the whole server",
                          tide_pg_name(self->pg));
}

/* ---- opening --------------------------------------------------------------------- */

/* Every statement of a writer finds a few rows by an index, and its plan is made once:
 * maybe while the tables were empty, or with an array of one element where thousands come
 * next.  So these settings fix the plan, whatever sizes the server estimates. */
static const char settings[] =
    "plan_cache_mode = force_generic_plan; enable_seqscan = off; enable_hashjoin = off; "
    "enable_mergejoin = off; enable_bitmapscan = off; jit = off; "
    "max_parallel_workers_per_gather = 0; "
    /* A machine that vanished in the middle of a transaction keeps its member's row locked,
     * so that no process can declare it dead: this ends the transaction before the lease
     * ends (E1.7). */
    "idle_in_transaction_session_timeout = 5000; "
    /* The same for a machine that vanished while it was sending, which the time-out above
     * does not end. */
    "tcp_keepalives_idle = 10; tcp_keepalives_interval = 5; tcp_keepalives_count = 3";

static void destroy(struct tide_postgres *self)
{
    tide_mem *mem = self->mem;
    tide_pg_close(self->pg);
    tide_buf_done(&self->kept);
    tide_map_done(&self->kinds);
    tide_map_done(&self->accounts);
    tide_map_done(&self->rows);
    tide_mem_free(mem, self->deltas, self->deltas_capacity * sizeof self->deltas[0]);
    tide_mem_free(mem, self, sizeof *self);
}

static void close_ledger(tide_ledger *ledger, bool clean)
{
    struct tide_postgres *self = postgres_of(ledger);
    (void)clean; /* an unclean stop is detected by the lease, not by a note */
    TIDE_ASSERT(!self->in_tx);
    destroy(self);
}

static const struct tide_ledger_ops tide_pg_ops = {
    .close = close_ledger,
    .tx_begin = begin,
    .tx_begin_lazily = begin_lazily,
    .tx_commit = commit,
    .tx_rollback = rollback,
    .give_up = give_up,
    .tx_over = tx_over,
    .savepoint = savepoint,
    .savepoint_end = savepoint_end,
    .rows = rows_of,
    .rows_end = rows_end,
    .names_change = names_change,
    .jobs_text = tide_pgl_jobs_text,
    .jobs_count_text = tide_pgl_jobs_count_text,
    .counts_text = tide_pgl_counts_text,
    .counts_left_text = tide_pgl_counts_left_text,
    .work_left_text = tide_pgl_work_left_text,
    .metadata_text = LEDGER_METADATA("octet_length(", ")"),
    .hint = tide_pgl_hint,
    .tx_postgres = tx_handle,
    .postgres = ledger_handle,
#define OP(ledger, name, params, args) .name = tide_pgl_##name,
#include "ledger/operations.h"
};

tide_status tide_ledger_postgres_open(tide_world *world, const struct tide_ledger_options *options,
                                      tide_ledger **ledger_out, tide_error *err)
{
    tide_mem *mem = tide_mem_heap();
    struct tide_postgres *self = tide_mem_new(mem, sizeof *self);
    if (self == NULL)
        return tide_pgl_no_memory(err);
    self->base.ops = &tide_pg_ops;
    self->base.shared = true;
    self->tx.ledger = &self->base;
    self->mem = mem;
    self->world = world;
    self->read_only = options->read_only;
    self->database_clock = options->database_clock;
    (void)snprintf(self->run_name, sizeof self->run_name, "%.64s",
                   options->run_id == NULL ? "" : options->run_id);
    tide_buf_init(&self->kept, mem, (size_t)4 << 20);
    tide_map_init(&self->kinds, mem);
    tide_map_init(&self->accounts, mem);
    tide_map_init(&self->rows, mem);
    struct tide_pg_options pg = {
        .url = options->path,
        .read_only = options->read_only,
        .settings = options->read_only ? NULL : settings,
        .sql = tide_pg_sql,
        .sql_count = PGSQL_COUNT_OF_STATEMENTS,
    };
    tide_status rc = tide_pg_open(&pg, mem, &self->pg, err);
    if (rc == TIDE_OK)
        rc = tide_pgl_schema(self, options, err);
    if (rc == TIDE_OK && !options->read_only && !options->building)
        rc = tide_pgl_run_add(self, options->now_unix_ms, err);
    if (rc == TIDE_OK)
        rc = tide_pgl_days_open(self, err);
    if (rc != TIDE_OK) {
        destroy(self);
        return rc;
    }
    *ledger_out = &self->base;
    return TIDE_OK;
}
