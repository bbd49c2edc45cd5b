/* Goal: calls that read an archive wait for no other call, however long one of them takes (RDR1), keep few
 * files open (RDR2), and read what is on the disk (ARC7, ARC8).  Method: real files and threads; a search
 * is stopped inside SQLite, at its first MATCH, until everything else was done beside it. */
#include "archive_fixture.h"
#include "mail/archive/inside.h"
#include "mail/search/search.h"
#include "support/heap.h"

#include <fcntl.h>
#include <sys/stat.h>

/* ---- a search that is held ---- */

struct gate {
    tide_world *world;
    tide_lock *lock;
    tide_cond *moved;
    bool armed, held, open;
    bool late; /* never opened: the others waited for the search */
};
static struct gate gate;

/* With the lock. */
static bool wait_for(const bool *flag)
{
    enum { LATE_US = 20000000 }; /* turns a deadlock into a failure */
    const uint64_t deadline_us = tide_world_now_us(gate.world) + LATE_US;
    tide_status rc = TIDE_OK;
    while (!*flag && rc == TIDE_OK)
        rc = tide_cond_wait(gate.world, gate.moved, gate.lock, deadline_us);
    return *flag;
}

static int hold_match(unsigned event, void *arg, void *stmt, void *sql)
{
    (void)event;
    (void)arg;
    (void)stmt;
    if (gate.lock == NULL || strstr(sql, "MATCH") == NULL)
        return 0;
    tide_lock_take(gate.world, gate.lock);
    if (gate.armed) {
        gate.armed = false;
        gate.held = true;
        tide_cond_wake_all(gate.world, gate.moved);
        gate.late = !wait_for(&gate.open);
    }
    tide_lock_drop(gate.world, gate.lock);
    return 0;
}

static int watch_connection(sqlite3 *handle, const char **why,
                            const struct sqlite3_api_routines *api)
{
    (void)why;
    (void)api;
    return sqlite3_trace_v2(handle, SQLITE_TRACE_STMT, hold_match, NULL);
}

static bool count_found(const struct tide_found *found, void *arg)
{
    assert_string_equal(found->stored.gmail_id, "a");
    ++*(size_t *)arg;
    return true;
}

struct searcher {
    tide_archive *archive;
    const tide_query *query;
    size_t found;
    tide_status rc;
};

static void search_run(void *arg)
{
    struct searcher *searcher = arg;
    const struct tide_search search = {.query = searcher->query, .snippets = true};
    bool more = false;
    searcher->rc = tide_search_run(searcher->archive, &search, count_found, &searcher->found, NULL,
                                   &more, NULL);
}

static bool visit_one(const struct tide_stored *stored, void *arg)
{
    (void)stored;
    ++*(size_t *)arg;
    return true;
}

OPENED(a_search_that_is_held_delays_neither_a_put_nor_a_show)
{
    uint64_t done = 0;
    size_t seen = 0;
    uint64_t count = 0, bytes = 0;
    tide_thread *thread = NULL;
    put_text(f, "a", year_2019, letter);
    sync_all(f);
    OK(tide_archive_index(f->archive, 10, &done, &f->err));
    struct searcher searcher = {.archive = f->archive};
    tide_query *query = NULL;
    OK(tide_query_parse(TIDE_TEXT("danube"), 0, 0, tide_mem_heap(), &query, &f->err));
    searcher.query = query;
    gate = (struct gate){.world = f->world, .armed = true};
    OK(tide_lock_new(f->world, &gate.lock));
    OK(tide_cond_new(f->world, &gate.moved));
    OK(tide_world_thread(f->world, "searcher", search_run, &searcher, &thread, NULL));
    tide_lock_take(f->world, gate.lock);
    assert_true(wait_for(&gate.held));
    tide_lock_drop(f->world, gate.lock);

    put_text(f, "b", year_2019 + 5, "Subject: Danube\r\n\r\nagain\r\n"); /* into the same shard */
    sync_all(f);
    assert_raw(f, "a", tide_text_of(letter));
    assert_raw(f, "b", TIDE_TEXT("Subject: Danube\r\n\r\nagain\r\n"));
    assert_labels(f, "a", "");
    OK(tide_archive_thread(f->archive, TIDE_TEXT("t1"), visit_one, &seen, &f->err));
    assert_int_equal(seen, 2);
    OK(tide_search_count(f->archive, query, &count, &bytes, &f->err));
    assert_int_equal(count, 1); /* "b" is not indexed yet */
    assert_sound(f, 2);

    tide_lock_take(f->world, gate.lock);
    gate.open = true;
    tide_cond_wake_all(f->world, gate.moved);
    tide_lock_drop(f->world, gate.lock);
    tide_world_join(f->world, thread);
    assert_false(gate.late);
    OK(searcher.rc);
    assert_int_equal(searcher.found, 1);
    tide_query_free(query);
    tide_cond_free(f->world, gate.moved);
    tide_lock_free(f->world, gate.lock);
    gate = (struct gate){0};
}

/* ---- many at once ---- */

enum { YEARS = 20, DEPTH = TIDE_READERS_IDLE + 3 };

struct nested {
    struct fixture *f;
    size_t depth;
};

static bool visit_nested(const struct tide_stored *stored, void *arg)
{
    struct nested *nested = arg;
    struct tide_stored found;
    (void)stored;
    OK(tide_archive_find(nested->f->archive, TIDE_TEXT("0"), &found, &nested->f->err)); /* oldest */
    if (++nested->depth < DEPTH)
        OK(tide_archive_thread(nested->f->archive, TIDE_TEXT("t1"), visit_nested, nested,
                               &nested->f->err));
    return false;
}

CASE(readers_inside_readers_keep_few_shards_open)
{
    struct nested nested = {.f = f};
    open_archive(f);
    for (int i = 0; i < YEARS; i++) {
        const char *id = textf("%d", i);
        put_text(f, id, tide_shard_year_ms(2000 + i), "x");
    }
    sync_all(f);
    OK(tide_archive_thread(f->archive, TIDE_TEXT("t1"), visit_nested, &nested, &f->err));
    assert_int_equal(nested.depth, DEPTH);
    assert_int_equal(f->archive->readers, TIDE_READERS_IDLE);
    for (size_t i = 0; i < TIDE_READERS_IDLE; i++) {
        assert_non_null(f->archive->idle[i]);
        assert_true(f->archive->idle[i]->first == (i == 0));
        assert_true(f->archive->idle[i]->shards.open_count <=
                    (i == 0 ? YEARS : TIDE_READER_OPEN_MAX));
    }
    assert_sound(f, YEARS);
}

/* ---- files that were replaced ---- */

/* As heal does it (mail/sync/aside.c). */
static void move_shard(const char *from, const char *to)
{
    static const char *const ends[] = {".db-wal", ".db-shm", ".db"};
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        char old_path[200], new_path[200];
        (void)snprintf(old_path, sizeof old_path, "%s/2019%s", from, ends[i]);
        (void)snprintf(new_path, sizeof new_path, "%s/2019%s", to, ends[i]);
        const int rc = rename(old_path, new_path);
        assert_true(rc == 0 || i < 2);
    }
}

CASE(a_shard_that_was_replaced_is_not_read_through_its_old_handle)
{
    char aside[100], other[100];
    struct tide_stored before;
    tide_buf out = heap_buf(1000);
    (void)snprintf(aside, sizeof aside, "%s/aside", f->dir);
    (void)snprintf(other, sizeof other, "%s/other", f->dir);
    assert_int_equal(mkdir(aside, 0700), 0);
    const struct {
        const char *dir, *raw;
    } made[] = {{f->dir, "one"}, {other, "another"}};
    for (size_t i = 0; i < 2; i++) {
        f->options.dir = made[i].dir;
        open_archive(f);
        put_text(f, "a", year_2019, made[i].raw);
        put_text(f, "b", year_2020, "stays");
        close_archive(f);
    }
    f->options.dir = f->dir;
    f->options.read_only = true;
    open_archive(f);
    assert_raw(f, "a", TIDE_TEXT("one"));
    assert_raw(f, "b", TIDE_TEXT("stays"));
    OK(tide_archive_find(f->archive, TIDE_TEXT("a"), &before, &f->err));

    move_shard(f->dir, aside);
    assert_int_equal(tide_archive_raw(f->archive, &before, &out, &f->err), TIDE_NOT_FOUND);
    assert_int_equal(tide_archive_find(f->archive, TIDE_TEXT("a"), &before, &f->err),
                     TIDE_NOT_FOUND);
    assert_int_equal(tide_archive_shards(f->archive), 1);
    assert_raw(f, "b", TIDE_TEXT("stays"));

    move_shard(aside, f->dir); /* as a backup that is put back */
    assert_raw(f, "a", TIDE_TEXT("one"));
    move_shard(f->dir, aside);
    move_shard(other, f->dir); /* with no call in between */
    OK(tide_archive_raw(f->archive, &before, &out, &f->err));
    assert_true(tide_text_equal(tide_buf_text(&out), TIDE_TEXT("another")));
    assert_raw(f, "a", TIDE_TEXT("another"));
    tide_buf_done(&out);
}

/* ---- what is on the disk ---- */

enum { BYTES = 100000 };

/* Changes one byte of the stored bytes, behind SQLite's back. */
static void damage(struct fixture *f, const uint8_t *part, size_t count)
{
    struct stat file;
    const char *path = textf("%s/2019.db", f->dir);
    const int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &file), 0);
    char *all = malloc((size_t)file.st_size);
    assert_int_equal(pread(fd, all, (size_t)file.st_size, 0), file.st_size);
    const char *at = memmem(all, (size_t)file.st_size, part, count);
    assert_non_null(at);
    const uint8_t changed = (uint8_t)(part[0] ^ 1);
    assert_int_equal(pwrite(fd, &changed, 1, at - all), 1);
    assert_int_equal(close(fd), 0);
    free(all);
}

static tide_status read_it(struct fixture *f)
{
    struct tide_stored stored;
    tide_buf out = heap_buf(TIDE_MESSAGE_BYTES_MAX);
    tide_status rc = tide_archive_find(f->archive, TIDE_TEXT("a"), &stored, &f->err);
    if (rc == TIDE_OK)
        rc = tide_archive_raw(f->archive, &stored, &out, &f->err);
    tide_buf_done(&out);
    return rc;
}

struct inner {
    struct fixture *f;
    tide_status rc;
};

static bool read_inside(const struct tide_stored *stored, void *arg)
{
    struct inner *inner = arg;
    (void)stored;
    inner->rc = read_it(inner->f);
    return false;
}

/* By the first reader, and by the second while a thread is being walked. */
static void assert_read(struct fixture *f, tide_status wanted)
{
    struct inner inner = {.f = f, .rc = TIDE_BUG};
    assert_int_equal(read_it(f), wanted);
    OK(tide_archive_thread(f->archive, TIDE_TEXT("t1"), read_inside, &inner, &f->err));
    assert_int_equal(inner.rc, wanted);
}

OPENED(after_forgetting_every_reader_reads_the_disk)
{
    static uint8_t bytes[BYTES];
    tide_rng rng = tide_rng_seeded(1);
    struct tide_stored stored;
    random_bytes(&rng, bytes, sizeof bytes);
    struct tide_incoming incoming = mail("a", year_2019, (tide_text){(const char *)bytes, BYTES});
    put(f, &incoming);
    sync_all(f);
    OK(tide_archive_checkpoint(f->archive, NULL, &f->err));
    OK(tide_archive_find(f->archive, TIDE_TEXT("a"), &stored, &f->err));
    assert_read(f, TIDE_OK);
    damage(f, bytes + BYTES / 2, 16);
    assert_read(f, TIDE_OK); /* from the caches of the connections */
    OK(tide_archive_forget(f->archive, stored.shard, &f->err));
    assert_read(f, TIDE_CORRUPT); /* M13 */
}

int main(void)
{
    if (sqlite3_auto_extension((void (*)(void))watch_connection) != SQLITE_OK)
        return 1;
    return tests_run(NULL);
}
