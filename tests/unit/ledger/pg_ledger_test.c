/* pg_ledger_test.c - what only a ledger on PostgreSQL can meet: a connection that dies
 * during COMMIT, two processes that queue the same keys, schemas of other versions, roles
 * with few rights, other programs that queue in SQL, hints.
 *
 * Each test has a database of its own.  A connection that must die at a certain word goes
 * through a proxy in the test, which knows the words. */
#include "base/rng.h"
#include "ledger/ledger.h"
#include "support/pg_test.h"
#include "support/ok.h"
#include "support/test.h"
#include "support/heap.h"

#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>

#define NOW      1790000000000u
#define LEASE_MS 15000u

struct fixture {
    char url[PG_TEST_URL_BYTES];
    tide_world *world;
    tide_error err;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    if (f == NULL || tide_world_real_new(tide_mem_heap(), &f->world, &f->err) != TIDE_OK)
        return -1;
    pg_test_create(NULL, f->url, sizeof f->url);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    pg_test_drop(f->url);
    tide_world_real_free(f->world);
    free(f);
    return 0;
}

static tide_status open_at(struct fixture *f, const char *url, bool must_exist, bool read_only,
                           tide_ledger **ledger_out)
{
    struct tide_ledger_options options = {.path = url,
                                          .run_id = "run",
                                          .now_unix_ms = NOW,
                                          .must_exist = must_exist,
                                          .read_only = read_only};
    return tide_ledger_open(f->world, &options, ledger_out, &f->err);
}

static tide_ledger *open_one(struct fixture *f, const char *url)
{
    tide_ledger *ledger = NULL;
    tide_status rc = open_at(f, url, false, false, &ledger);
    if (rc != TIDE_OK)
        print_error("%s\n", f->err.text);
    OK(rc);
    return ledger;
}

static uint32_t kind_of(struct fixture *f, tide_ledger *ledger)
{
    tide_tx *tx = NULL;
    uint32_t kind = 0;
    OK(tide_tx_begin(ledger, &tx, &f->err));
    OK(tide_ledger_kind(tx, "test.kind", TIDE_DEDUPE_PENDING, &kind, &f->err));
    OK(tide_tx_commit(tx, &f->err));
    return kind;
}

/* ---- the schema ------------------------------------------------------------------------- */

#define CASE(name) TEST_ON(name, struct fixture *f, setup, teardown)

CASE(nothing_is_made_where_something_must_be)
{
    tide_ledger *ledger = NULL;
    assert_int_equal(open_at(f, f->url, true, false, &ledger), TIDE_NOT_FOUND);
    assert_non_null(strstr(f->err.text, "tidemark ledger migrate"));
    assert_int_equal(open_at(f, f->url, false, true, &ledger), TIDE_NOT_FOUND);
    assert_int_equal(pg_test_exec(f->url, "SELECT count(*) FROM pg_namespace"
                                          " WHERE nspname = 'tidemark'"),
                     0);
}

CASE(tables_of_other_programs_are_left_alone)
{
    tide_ledger *ledger = NULL;
    (void)pg_test_exec(f->url, "CREATE SCHEMA tidemark; CREATE TABLE tidemark.tides (height int)");
    assert_int_equal(open_at(f, f->url, false, false, &ledger), TIDE_INVALID);
    (void)pg_test_exec(f->url, "CREATE TABLE tidemark.meta (other int)");
    assert_int_equal(open_at(f, f->url, false, false, &ledger), TIDE_INVALID);
}

/* Machines are upgraded one after the other: a newer schema may still serve an older one. */
CASE(a_newer_schema_says_whom_it_serves)
{
    tide_ledger *ledger = open_one(f, f->url);
    tide_ledger_close(ledger, true);
    (void)pg_test_exec(f->url, "UPDATE tidemark.meta SET value = '99' WHERE key = 'version'");
    ledger = open_one(f, f->url);
    tide_ledger_close(ledger, true);
    assert_int_equal(pg_test_exec(f->url, "SELECT value::int FROM tidemark.meta"
                                          " WHERE key = 'version'"),
                     99);
    (void)pg_test_exec(f->url,
                       "UPDATE tidemark.meta SET value = '98' WHERE key = 'oldest_program'");
    assert_int_equal(open_at(f, f->url, false, false, &ledger), TIDE_NEWER);
}

static void *open_and_close(void *arg)
{
    struct fixture *f = arg;
    tide_ledger *ledger = NULL;
    struct fixture own = *f; /* an error text of its own */
    tide_status rc = open_at(&own, own.url, false, false, &ledger);
    if (rc != TIDE_OK)
        print_error("%s\n", own.err.text);
    else
        tide_ledger_close(ledger, true);
    return rc == TIDE_OK ? f : NULL;
}

CASE(processes_that_start_together_make_it_once)
{
    enum { STARTS = 6 };
    pthread_t threads[STARTS];
    for (int i = 0; i < STARTS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, open_and_close, f), 0);
    for (int i = 0; i < STARTS; i++) {
        void *well = NULL;
        assert_int_equal(pthread_join(threads[i], &well), 0);
        assert_non_null(well);
    }
    assert_int_equal(pg_test_exec(f->url, "SELECT count(*) FROM tidemark.run"), STARTS);
}

/* ---- the same keys from two processes ----------------------------------------------------- */

enum { KEYS = 200, ROUNDS = 15 };

struct queuer {
    struct fixture *f;
    uint64_t seed;
    uint64_t ids[KEYS];
    bool well;
};

static tide_status queue_all(tide_ledger *ledger, const struct tide_job_new *jobs,
                             struct tide_enqueued *enqueued, tide_error *err)
{
    tide_tx *tx = NULL;
    tide_status rc = tide_tx_begin(ledger, &tx, err);
    if (rc != TIDE_OK)
        return rc;
    rc = tide_ledger_enqueue(tx, jobs, KEYS, NOW, enqueued, err);
    if (rc == TIDE_OK)
        return tide_tx_commit(tx, err);
    tide_tx_rollback(tx);
    return rc;
}

/* All keys, each time in another order.  The losers of a deadlock try again. */
static void *queue_main(void *arg)
{
    struct queuer *self = arg;
    struct fixture own = *self->f;
    tide_ledger *ledger = NULL;
    tide_rng rng = tide_rng_seeded(self->seed);
    static _Thread_local char keys[KEYS][16];
    static _Thread_local struct tide_job_new jobs[KEYS];
    static _Thread_local struct tide_enqueued enqueued[KEYS];
    uint32_t order[KEYS];
    if (open_at(&own, own.url, false, false, &ledger) != TIDE_OK)
        return NULL;
    uint32_t kind = 0;
    bool paused = false;
    if (tide_ledger_kind_find(ledger, "test.kind", &kind, &paused, &own.err) != TIDE_OK)
        return NULL;
    for (uint32_t i = 0; i < KEYS; i++)
        order[i] = i;
    self->well = true;
    for (int round = 0; self->well && round < ROUNDS; round++) {
        for (uint32_t i = KEYS - 1; i > 0; i--) {
            uint32_t j = (uint32_t)tide_rng_below(&rng, i + 1);
            uint32_t swap = order[i];
            order[i] = order[j];
            order[j] = swap;
        }
        for (uint32_t i = 0; i < KEYS; i++) {
            (void)snprintf(keys[i], sizeof keys[i], "key %u", order[i]);
            jobs[i] = (struct tide_job_new){.kind = kind,
                                            .payload = TIDE_TEXT("{}"),
                                            .dedupe_key = tide_text_of(keys[i]),
                                            .attempts_max = 5,
                                            .priority = 50};
        }
        tide_status rc = TIDE_BUSY;
        for (int tries = 0; rc == TIDE_BUSY && tries < 50; tries++)
            rc = queue_all(ledger, jobs, enqueued, &own.err);
        self->well = rc == TIDE_OK;
        if (!self->well)
            print_error("%s\n", own.err.text);
        for (uint32_t i = 0; self->well && i < KEYS; i++) {
            uint64_t *id = &self->ids[order[i]];
            self->well = *id == 0 || *id == enqueued[i].id;
            *id = enqueued[i].id;
        }
    }
    tide_ledger_close(ledger, true);
    return NULL;
}

CASE(two_processes_queue_the_same_keys_once)
{
    enum { QUEUERS = 3 };
    struct queuer queuers[QUEUERS];
    pthread_t threads[QUEUERS];
    tide_ledger *ledger = open_one(f, f->url);
    (void)kind_of(f, ledger);
    for (int i = 0; i < QUEUERS; i++) {
        queuers[i] = (struct queuer){.f = f, .seed = (uint64_t)i + 1};
        assert_int_equal(pthread_create(&threads[i], NULL, queue_main, &queuers[i]), 0);
    }
    for (int i = 0; i < QUEUERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_true(queuers[i].well);
        assert_memory_equal(queuers[i].ids, queuers[0].ids, sizeof queuers[0].ids);
    }
    assert_int_equal(pg_test_exec(f->url, "SELECT count(*) FROM tidemark.job"), KEYS);
    tide_ledger_close(ledger, true);
}

/* Another process queues one of many keys after they were looked up: the copy waits for it, is
 * refused, and undone; all of them are there once all the same. */
CASE(a_key_that_is_queued_during_a_copy_is_queued_once)
{
    struct queuer queuer = {.f = f, .seed = 1};
    struct tide_enqueued first;
    pthread_t thread;
    tide_tx *tx = NULL;
    tide_ledger *ledger = open_one(f, f->url);
    struct tide_job_new job = {.kind = kind_of(f, ledger),
                               .payload = TIDE_TEXT("{}"),
                               .dedupe_key = TIDE_TEXT("key 7"),
                               .attempts_max = 5,
                               .priority = 50};
    OK(tide_tx_begin(ledger, &tx, &f->err));
    OK(tide_ledger_enqueue(tx, &job, 1, NOW, &first, &f->err));
    assert_int_equal(pthread_create(&thread, NULL, queue_main, &queuer), 0);
    /* Until it waits for us; it has nothing else to wait for. */
    while (pg_test_exec(f->url, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type ="
                                " 'Lock' AND datname = current_database()") == 0)
        ;
    OK(tide_tx_commit(tx, &f->err));
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(queuer.well);
    assert_int_equal(queuer.ids[7], first.id);
    assert_int_equal(pg_test_exec(f->url, "SELECT count(*) FROM tidemark.job"), KEYS);
    tide_ledger_close(ledger, true);
}

/* ---- a begin that goes with the first statement ------------------------------------------- */

static tide_ledger *open_joined(struct fixture *f, uint64_t owner)
{
    tide_ledger *ledger = open_one(f, f->url);
    struct tide_member member = {.owner = owner, .name = "test", .version = "0"};
    OK(tide_ledger_member_join(ledger, &member, 60000, NOW, &f->err));
    return ledger;
}

static void note_lazily(struct fixture *f, tide_ledger *ledger, const char *key)
{
    tide_tx *tx = NULL;
    OK(tide_tx_begin_lazily(ledger, &tx, &f->err));
    OK(tide_ledger_note(tx, key, TIDE_TEXT("x"), &f->err));
    OK(tide_tx_commit(tx, &f->err));
}

CASE(a_lazy_begin_finds_a_new_connection)
{
    tide_ledger *ledger = open_joined(f, 77);
    uint32_t kind = kind_of(f, ledger);
    note_lazily(f, ledger, "before"); /* a statement that is not prepared */
    (void)pg_test_exec(f->url, "SELECT count(pg_terminate_backend(pid, 5000)) FROM"
                               " pg_stat_activity WHERE datname = current_database()"
                               " AND pid <> pg_backend_pid()");
    note_lazily(f, ledger, "after");
    (void)pg_test_exec(f->url, "SELECT count(pg_terminate_backend(pid, 5000)) FROM"
                               " pg_stat_activity WHERE datname = current_database()"
                               " AND pid <> pg_backend_pid()");
    struct tide_job_new job = {
        .kind = kind, .payload = TIDE_TEXT("{}"), .attempts_max = 5, .priority = 50};
    struct tide_enqueued enqueued;
    tide_tx *tx = NULL;
    OK(tide_tx_begin_lazily(ledger, &tx, &f->err)); /* and with one that is */
    OK(tide_ledger_enqueue(tx, &job, 1, NOW, &enqueued, &f->err));
    OK(tide_tx_commit(tx, &f->err));
    assert_int_equal(pg_test_exec(f->url, "SELECT count(*) FROM tidemark.note"
                                          " WHERE key IN ('before', 'after')"),
                     2);
    assert_int_equal(pg_test_exec(f->url, "SELECT id FROM tidemark.job"), enqueued.id);
    tide_ledger_close(ledger, true);
}

/* A caller that uses the connection directly is in the transaction, too. */
CASE(a_lazy_begin_is_before_the_callers_own_statements)
{
    tide_ledger *ledger = open_joined(f, 78);
    tide_tx *tx = NULL;
    (void)pg_test_exec(f->url, "CREATE TABLE mine (n int)");
    OK(tide_tx_begin_lazily(ledger, &tx, &f->err));
    PQclear(PQexec(tide_tx_postgres(tx), "INSERT INTO mine VALUES (1)"));
    tide_tx_rollback(tx);
    assert_int_equal(pg_test_exec(f->url, "SELECT count(*) FROM mine"), 0);
    OK(tide_tx_begin_lazily(ledger, &tx, &f->err));
    PQclear(PQexec(tide_tx_postgres(tx), "INSERT INTO mine VALUES (1)"));
    OK(tide_tx_commit(tx, &f->err));
    assert_int_equal(pg_test_exec(f->url, "SELECT count(*) FROM mine"), 1);
    /* Declared dead: its statements are not stored one by one. */
    OK(tide_tx_begin_lazily(ledger, &tx, &f->err));
    (void)pg_test_exec(f->url, "UPDATE tidemark.member SET dead = true");
    PGconn *conn = tide_tx_postgres(tx);
    if (conn != NULL)
        PQclear(PQexec(conn, "INSERT INTO mine VALUES (2)"));
    assert_int_not_equal(tide_tx_commit(tx, NULL), TIDE_OK);
    assert_int_equal(pg_test_exec(f->url, "SELECT count(*) FROM mine"), 1);
    assert_int_equal(tide_tx_begin_lazily(ledger, &tx, &f->err), TIDE_STALE);
    tide_ledger_close(ledger, true);
}

/* ---- a COMMIT whose outcome is unknown ------------------------------------------------------ */

/* A server of our own before the real one, for one connection after the other.  It watches
 * for a word from the client and then hangs up: before the server got it, or after. */
struct proxy {
    char dir[64];
    char url[PG_TEST_URL_BYTES];
    char server[120]; /* the real socket */
    int listener;
    pthread_t thread;
    int mode; /* atomic: enum */
    int stop; /* atomic */
    int cuts; /* atomic */
};
enum { PROXY_PASS, PROXY_CUT_BEFORE, PROXY_CUT_AFTER, PROXY_NO_WORDS };

/* What libpq makes of an answer it had no memory for: an error without a code of the
 * server's, on a connection that lives. */
static const char no_words[] = "E\0\0\0\x1bSERROR\0Mout of memory\0\0Z\0\0\0\5I";

static int unix_socket(const char *path, bool listening)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    int rc = listening ? bind(fd, (struct sockaddr *)&address, sizeof address)
                       : connect(fd, (struct sockaddr *)&address, sizeof address);
    if (rc == 0 && listening)
        rc = listen(fd, 8);
    assert_int_equal(rc, 0);
    return fd;
}

static bool pass_on(int from, int to, char *bytes, size_t room, ssize_t *count_out)
{
    ssize_t count = read(from, bytes, room);
    *count_out = count;
    return count > 0 && write(to, bytes, (size_t)count) == count;
}

static void proxy_serve(struct proxy *proxy, int client)
{
    char bytes[65536];
    int server = unix_socket(proxy->server, false);
    for (;;) {
        struct pollfd fds[2] = {{.fd = client, .events = POLLIN}, {.fd = server, .events = POLLIN}};
        ssize_t count = 0;
        if (poll(fds, 2, 100) < 0 || __atomic_load_n(&proxy->stop, __ATOMIC_ACQUIRE))
            break;
        if (fds[0].revents != 0) {
            int mode = __atomic_load_n(&proxy->mode, __ATOMIC_ACQUIRE);
            count = read(client, bytes, sizeof bytes);
            if (count <= 0)
                break;
            bool commit = mode != PROXY_PASS && memmem(bytes, (size_t)count, "COMMIT", 6) != NULL;
            if (commit) {
                __atomic_store_n(&proxy->mode, PROXY_PASS, __ATOMIC_RELEASE);
                (void)__atomic_add_fetch(&proxy->cuts, 1, __ATOMIC_ACQ_REL);
            }
            if (commit && mode == PROXY_CUT_BEFORE)
                break;
            if (write(server, bytes, (size_t)count) != count)
                break;
            if (commit) { /* its answer is swallowed */
                count = read(server, bytes, sizeof bytes);
                if (mode != PROXY_NO_WORDS ||
                    write(client, no_words, sizeof no_words - 1) != sizeof no_words - 1)
                    break;
                continue;
            }
        }
        if (fds[1].revents != 0 && !pass_on(server, client, bytes, sizeof bytes, &count))
            break;
    }
    (void)close(server);
    (void)close(client);
}

static void *proxy_main(void *arg)
{
    struct proxy *proxy = arg;
    while (!__atomic_load_n(&proxy->stop, __ATOMIC_ACQUIRE)) {
        struct pollfd fd = {.fd = proxy->listener, .events = POLLIN};
        if (poll(&fd, 1, 100) > 0)
            proxy_serve(proxy, accept(proxy->listener, NULL, NULL));
    }
    return NULL;
}

static void proxy_start(struct proxy *proxy, const char *url)
{
    char path[120];
    char name[PG_TEST_NAME_BYTES];
    memset(proxy, 0, sizeof *proxy);
    const char *host = strstr(url, "host=") + 5;
    (void)snprintf(proxy->server, sizeof proxy->server, "%.*s/.s.PGSQL.5432",
                   (int)strcspn(host, "&"), host);
    (void)snprintf(proxy->dir, sizeof proxy->dir, "/tmp/tide-proxy-XXXXXX");
    assert_non_null(mkdtemp(proxy->dir));
    (void)snprintf(path, sizeof path, "%s/.s.PGSQL.5432", proxy->dir);
    proxy->listener = unix_socket(path, true);
    pg_test_name(url, name);
    (void)snprintf(proxy->url, sizeof proxy->url, "postgres:///%s?host=%s&user=postgres", name,
                   proxy->dir);
    assert_int_equal(pthread_create(&proxy->thread, NULL, proxy_main, proxy), 0);
}

static void proxy_stop(struct proxy *proxy)
{
    __atomic_store_n(&proxy->stop, 1, __ATOMIC_RELEASE);
    assert_int_equal(pthread_join(proxy->thread, NULL), 0);
    (void)close(proxy->listener);
    const char *path = textf("%s/.s.PGSQL.5432", proxy->dir);
    (void)unlink(path);
    (void)rmdir(proxy->dir);
}

/* A transaction that writes one note, its COMMIT cut off. */
static tide_status note_cut(struct fixture *f, tide_ledger *ledger, struct proxy *proxy, int mode,
                            const char *key)
{
    tide_tx *tx = NULL;
    OK(tide_tx_begin(ledger, &tx, &f->err));
    OK(tide_ledger_note(tx, key, TIDE_TEXT("x"), &f->err));
    __atomic_store_n(&proxy->mode, mode, __ATOMIC_RELEASE);
    return tide_tx_commit(tx, &f->err);
}

/* Cut before the server has it: nothing was written, and that is what is said.  Cut after
 * it: written, and said so.  As a member (its row's number is the token) and as nobody (the
 * transaction's own number in the row of its start is).  And where nothing understandable
 * is said at all, on a connection that lives. */
CASE(a_lost_commit_tells_the_truth)
{
    struct proxy proxy;
    static const char *const keys[2][3] = {
        {"nobody before", "nobody after", "nobody, no words, after"},
        {"member before", "member after", "member, no words, after"}};
    proxy_start(&proxy, f->url);
    tide_ledger *ledger = open_one(f, proxy.url);
    for (int member = 0; member < 2; member++) {
        if (member == 1) {
            struct tide_member me = {.owner = 77, .name = "host", .version = "1"};
            OK(tide_ledger_member_join(ledger, &me, LEASE_MS, NOW, &f->err));
        }
        for (int round = 0; round < 3; round++) {
            int cuts = __atomic_load_n(&proxy.cuts, __ATOMIC_ACQUIRE);
            assert_int_equal(note_cut(f, ledger, &proxy, PROXY_CUT_BEFORE, keys[member][0]),
                             TIDE_NETWORK);
            OK(note_cut(f, ledger, &proxy, PROXY_CUT_AFTER, keys[member][1]));
            OK(note_cut(f, ledger, &proxy, PROXY_NO_WORDS, keys[member][2]));
            assert_int_equal(__atomic_load_n(&proxy.cuts, __ATOMIC_ACQUIRE), cuts + 3);
            OK(note_cut(f, ledger, &proxy, PROXY_PASS, "plain")); /* it still works */
        }
    }
    tide_ledger_close(ledger, true);
    proxy_stop(&proxy);
    assert_int_equal(
        pg_test_exec(f->url, "SELECT count(*) FROM tidemark.note WHERE key LIKE '%before'"), 0);
    assert_int_equal(
        pg_test_exec(f->url, "SELECT count(*) FROM tidemark.note WHERE key LIKE '%after'"), 4);
}

/* ---- other programs, other roles ----------------------------------------------------------- */

CASE(a_program_queues_in_its_own_transaction)
{
    tide_ledger *ledger = open_one(f, f->url);
    tide_listener *listener = NULL;
    struct tide_hints hints;
    uint32_t kind = kind_of(f, ledger);
    OK(tide_listener_open(f->world, f->url, tide_mem_heap(), &listener, &f->err));
    long long id = pg_test_exec(f->url, "SELECT tidemark.add_job('test.kind', '{\"a\":1}',"
                                        " dedupe => 'k', priority => 20)");
    assert_true(id > 0);
    OK(tide_listener_wait(listener, 10000, &hints, &f->err));
    assert_true(hints.free_work && !hints.all && !hints.control);
    assert_int_equal(pg_test_exec(f->url, "SELECT tidemark.add_job('test.kind', '{\"a\":2}',"
                                          " dedupe => 'k', priority => 70, force => true)"),
                     id);
    assert_int_equal(pg_test_exec(f->url, "SELECT tidemark.add_job('test.kind',"
                                          " delay => interval '1 hour')"),
                     id + 2); /* the refused one had a number, too */

    tide_tx *tx = NULL;
    struct tide_brief briefs[4];
    struct tide_job_body *bodies[4];
    const uint32_t counts[2] = {2, 2};
    size_t count = 0;
    uint64_t due = 0;
    uint64_t now_unix_ms = tide_world_now_unix_ms(f->world);
    OK(tide_tx_begin(ledger, &tx, &f->err));
    OK(tide_ledger_claim_free(tx, &kind, 1, counts, 5, 1, now_unix_ms, tide_mem_heap(), briefs,
                              bodies, &count, &due, &f->err));
    OK(tide_tx_commit(tx, &f->err));
    assert_int_equal(count, 1);
    assert_int_equal(briefs[0].id, id);
    assert_int_equal(briefs[0].priority, 70);
    assert_true(bodies[0]->force);
    assert_string_equal(bodies[0]->payload.data, "{\"a\":1}");
    assert_true(due > now_unix_ms + 3500000 && due < now_unix_ms + 3700000);
    tide_job_body_free(tide_mem_heap(), bodies[0]);

    /* The listener's connection is lost: everything may have been missed. */
    (void)pg_test_exec(f->url, "SELECT count(pg_terminate_backend(pid, 5000)) FROM"
                               " pg_stat_activity WHERE application_name = 'tidemark listener'"
                               " AND datname = current_database()");
    tide_status rc = TIDE_OK;
    do
        rc = tide_listener_wait(listener, 10000, &hints, &f->err);
    while (rc == TIDE_OK && !hints.all);
    OK(rc);
    tide_listener_stop(listener);
    assert_int_equal(tide_listener_wait(listener, 10000, &hints, &f->err), TIDE_STOPPED);
    tide_listener_close(listener);
    tide_ledger_close(ledger, true);
}

/* The same URL as another user. */
static void url_as(const char *url, const char *user, char *url_out, size_t bytes)
{
    const char *at = strstr(url, "user=");
    assert_non_null(at);
    (void)snprintf(url_out, bytes, "%.*suser=%.80s", (int)(at - url), url, user);
}

CASE(a_worker_needs_few_rights)
{
    char worker_url[PG_TEST_URL_BYTES];
    char unknown_url[PG_TEST_URL_BYTES];
    char sql[600];
    char name[PG_TEST_NAME_BYTES];
    tide_ledger *ledger = open_one(f, f->url);
    tide_ledger_close(ledger, true);
    pg_test_name(f->url, name);
    (void)snprintf(sql, sizeof sql,
                   "CREATE ROLE worker_%s LOGIN; CREATE ROLE unknown_%s LOGIN;"
                   "SELECT tidemark.grant_worker('worker_%s')",
                   name, name, name);
    (void)pg_test_exec(f->url, sql);
    (void)snprintf(sql, sizeof sql, "worker_%s", name);
    url_as(f->url, sql, worker_url, sizeof worker_url);
    (void)snprintf(sql, sizeof sql, "unknown_%s", name);
    url_as(f->url, sql, unknown_url, sizeof unknown_url);

    assert_int_equal(open_at(f, unknown_url, false, false, &ledger), TIDE_INVALID);
    assert_non_null(strstr(f->err.text, "grant_worker"));

    ledger = open_one(f, worker_url);
    uint32_t kind = kind_of(f, ledger);
    tide_tx *tx = NULL;
    struct tide_enqueued enqueued[2];
    struct tide_job_new jobs[2] = {
        {.kind = kind, .payload = TIDE_TEXT("{}"), .dedupe_key = TIDE_TEXT("k"), .priority = 50},
        {.kind = kind, .payload = TIDE_TEXT("{}"), .priority = 50}};
    struct tide_job_body *bodies[2] = {NULL, NULL};
    struct tide_changes changes;
    bool applied[2] = {false, false};
    tide_changes_init(&changes, tide_mem_heap());
    OK(tide_tx_begin(ledger, &tx, &f->err));
    OK(tide_ledger_enqueue(tx, jobs, 2, NOW, enqueued, &f->err));
    const uint64_t ids[2] = {enqueued[0].id, enqueued[1].id};
    OK(tide_ledger_claim(tx, ids, 2, 5, 1, NOW, tide_mem_heap(), bodies, &f->err));
    const struct tide_finish ends[2] = {
        {.id = ids[0], .token = 1, .state = TIDE_ROW_DONE},
        {.id = ids[1], .token = 2, .state = TIDE_ROW_FAILED, .status = TIDE_PERMANENT}};
    OK(tide_ledger_finish(tx, ends, 2, NOW, applied, &changes, &f->err));
    OK(tide_tx_hint(tx, TIDE_HINT_WORK, 0, &f->err));
    OK(tide_tx_commit(tx, &f->err));
    assert_true(applied[0] && applied[1]);
    tide_job_body_free(tide_mem_heap(), bodies[0]);
    tide_job_body_free(tide_mem_heap(), bodies[1]);
    tide_changes_done(&changes);
    tide_ledger_close(ledger, true);
    (void)snprintf(sql, sizeof sql,
                   "DROP OWNED BY worker_%s, unknown_%s;"
                   "DROP ROLE worker_%s, unknown_%s",
                   name, name, name, name);
    (void)pg_test_exec(f->url, sql);
}

int main(void)
{
    return pg_tests_run();
}
