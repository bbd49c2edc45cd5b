/* Goal: archives that stay open between requests are read as they are on the disk (SLF2, SLF3), by
 * many threads at once, keep few files open (SLF1) and none that is of no use (SLF4).  Method: real
 * files and threads. */
#include "archive_fixture.h"
#include "mail/archive/shelf.h"
#include "support/heap.h"
#include "support/temp_dir.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

enum { THREADS = 33, TURNS = 3, YEARS = 20, FAR_MS = 3600000 };

static tide_shelf *shelf_resting(struct fixture *f, uint64_t rest_ms)
{
    tide_shelf *shelf = NULL;
    OK(tide_shelf_new(f->world, tide_mem_heap(), rest_ms, &shelf, &f->err));
    return shelf;
}

static tide_shelf *shelf_of(struct fixture *f)
{
    return shelf_resting(f, FAR_MS);
}

static struct tide_archive_options reading(const struct fixture *f)
{
    struct tide_archive_options options = f->options;
    options.read_only = true;
    return options;
}

static tide_archive *take(struct fixture *f, tide_shelf *shelf)
{
    const struct tide_archive_options options = reading(f);
    tide_archive *archive = NULL;
    OK(tide_shelf_take(shelf, &options, tide_mem_heap(), &archive, &f->err));
    return archive;
}

static tide_status found(tide_archive *archive, const char *id)
{
    struct tide_stored stored;
    return tide_archive_find(archive, tide_text_of(id), &stored, NULL);
}

/* Takes it, looks for a message, and gives it back. */
static tide_status seen(struct fixture *f, tide_shelf *shelf, const char *id)
{
    tide_archive *archive = take(f, shelf);
    const tide_status rc = found(archive, id);
    tide_shelf_give(shelf, archive);
    return rc;
}

/* ---- staying open ---- */

OPENED(it_stays_open_and_is_shared)
{
    tide_shelf *shelf = shelf_of(f);
    put_text(f, "a", year_2019, "x");
    sync_all(f);
    tide_archive *first = take(f, shelf);
    assert_ptr_equal(take(f, shelf), first);
    OK(found(first, "a"));
    tide_shelf_give(shelf, first);
    tide_shelf_give(shelf, first);
    assert_ptr_equal(take(f, shelf), first);
    OK(found(first, "a"));
    tide_shelf_give(shelf, first);
    tide_shelf_free(shelf);
}

OPENED(without_a_shelf_each_is_opened_anew)
{
    put_text(f, "a", year_2019, "x");
    sync_all(f);
    OK(seen(f, NULL, "a"));
    tide_shelf_give(NULL, NULL);
    tide_shelf_free(NULL);
}

/* ---- as it is on the disk ---- */

OPENED(what_is_stored_later_is_seen)
{
    tide_shelf *shelf = shelf_of(f);
    put_text(f, "a", year_2019, "x");
    sync_all(f);
    OK(seen(f, shelf, "a"));
    put_text(f, "b", year_2019 + 1, "x");
    put_text(f, "c", year_2020, "x"); /* a new shard */
    sync_all(f);
    OK(seen(f, shelf, "b"));
    OK(seen(f, shelf, "c"));
    tide_shelf_free(shelf);
}

OPENED(an_archive_that_was_removed_is_not_found_and_one_in_its_place_is)
{
    char aside[100];
    const struct tide_archive_options options = reading(f);
    tide_archive *archive = NULL;
    tide_shelf *shelf = shelf_of(f);
    put_text(f, "a", year_2019, "x");
    close_archive(f);
    OK(seen(f, shelf, "a"));
    (void)snprintf(aside, sizeof aside, "%s-aside", f->dir);
    assert_int_equal(rename(f->dir, aside), 0);
    assert_int_equal(tide_shelf_take(shelf, &options, tide_mem_heap(), &archive, &f->err),
                     TIDE_NOT_FOUND);
    assert_null(archive);
    f->options.read_only = false;
    open_archive(f);
    put_text(f, "b", year_2019, "x");
    close_archive(f);
    OK(seen(f, shelf, "b"));
    assert_int_equal(seen(f, shelf, "a"), TIDE_NOT_FOUND);
    tide_shelf_free(shelf);
    assert_int_equal(temp_dir_remove(aside), 0);
}

OPENED(a_shard_that_was_broken_is_tried_again)
{
    tide_shelf *shelf = shelf_of(f);
    put_text(f, "a", year_2019, "x");
    put_text(f, "b", year_2020, "x");
    close_archive(f);
    char path[100], aside[100];
    (void)snprintf(path, sizeof path, "%s/2019.db", f->dir);
    (void)snprintf(aside, sizeof aside, "%s/2019.aside", f->dir);
    assert_int_equal(rename(path, aside), 0);
    const int fd = open(path, O_WRONLY | O_CREAT, 0600);
    assert_true(fd >= 0 && write(fd, "not a database, by any means", 28) == 28 && close(fd) == 0);
    assert_int_equal(seen(f, shelf, "a"), TIDE_NOT_FOUND);
    OK(seen(f, shelf, "b"));
    assert_int_equal(rename(aside, path), 0);
    OK(seen(f, shelf, "a"));
    tide_shelf_free(shelf);
}

/* ---- few files ---- */

/* Files of shards that this process has open; `end`: of their names, as the system gives them. */
static size_t files_open(const char *end)
{
    size_t count = 0;
    DIR *dir = opendir("/proc/self/fd");
    assert_non_null(dir);
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        char to[500] = "";
        const ssize_t bytes = readlinkat(dirfd(dir), entry->d_name, to, sizeof to - 1);
        count += bytes >= (ssize_t)strlen(end) && strcmp(to + bytes - strlen(end), end) == 0;
    }
    (void)closedir(dir);
    return count;
}

static size_t shards_open(void)
{
    return files_open(".db") + files_open(".db (deleted)");
}

static void copy_file(int from_dir, int to_dir, const char *name)
{
    struct stat file;
    const int from = openat(from_dir, name, O_RDONLY);
    const int to = openat(to_dir, name, O_WRONLY | O_CREAT, 0600);
    assert_true(from >= 0 && to >= 0 && fstat(from, &file) == 0);
    assert_int_equal(sendfile(to, from, NULL, (size_t)file.st_size), file.st_size);
    assert_true(close(from) == 0 && close(to) == 0);
}

static void copy_dir(const char *from, const char *to)
{
    assert_int_equal(mkdir(to, 0700), 0);
    DIR *dir = opendir(from);
    const int to_dir = open(to, O_RDONLY | O_DIRECTORY);
    assert_true(dir != NULL && to_dir >= 0);
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir))
        if (entry->d_name[0] != '.')
            copy_file(dirfd(dir), to_dir, entry->d_name);
    (void)closedir(dir);
    assert_int_equal(close(to_dir), 0);
}

/* An archive with one message in each year. */
static void years_put(struct fixture *f, int years)
{
    open_archive(f);
    for (int i = 0; i < years; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "%d", i);
        put_text(f, id, tide_shard_year_ms(2000 + i), "x");
    }
    close_archive(f);
}

/* Copies it to `count` directories, beginning with number `from`. */
static void copies_make(const struct fixture *f, int from, int count)
{
    for (int i = from; i < from + count; i++)
        copy_dir(f->dir, textf("%s-%d", f->dir, i));
}

static void copies_remove(const struct fixture *f, int count)
{
    for (int i = 0; i < count; i++)
        assert_int_equal(temp_dir_remove(textf("%s-%d", f->dir, i)), 0);
}

/* Takes a copy, opens all of its shards and gives it back. */
static tide_archive *copy_look(struct fixture *f, tide_shelf *shelf, int number)
{
    const char *dir = textf("%s-%d", f->dir, number);
    f->options.dir = dir;
    tide_archive *archive = take(f, shelf);
    f->options.dir = f->dir;
    assert_int_equal(found(archive, "none"), TIDE_NOT_FOUND);
    tide_shelf_give(shelf, archive); /* which may close it */
    assert_true(shards_open() <= TIDE_SHELF_SHARDS_MAX);
    return archive;
}

CASE(few_shards_stay_open_and_a_look_at_all_finds_some_of_them)
{
    enum { NAMES = TIDE_SHELF_SHARDS_MAX / YEARS + 3, LOOKS = 3 };
    tide_archive *before[NAMES] = {NULL};
    size_t again = 0;
    tide_shelf *shelf = shelf_of(f);
    years_put(f, YEARS);
    copies_make(f, 0, NAMES);
    for (int look = 0; look < LOOKS; look++)
        for (int name = 0; name < NAMES; name++) {
            tide_archive *archive = copy_look(f, shelf, name);
            again += archive == before[name];
            before[name] = archive;
        }
    assert_true(again > 0);
    tide_shelf_free(shelf);
    assert_int_equal(shards_open(), 0);
    copies_remove(f, NAMES);
}

/* One that is closed for another may have fewer shards than that. */
CASE(large_archives_among_many_small_ones_keep_few_shards_open)
{
    enum { SMALL = 30, LARGE = TIDE_SHELF_SHARDS_MAX / YEARS + 1, ALL = SMALL + LARGE };
    tide_shelf *shelf = shelf_of(f);
    years_put(f, 1);
    copies_make(f, 0, SMALL);
    years_put(f, YEARS);
    copies_make(f, SMALL, LARGE);
    for (int i = 0; i < ALL; i++)
        (void)copy_look(f, shelf, i);
    tide_shelf_free(shelf);
    copies_remove(f, ALL);
}

CASE(more_archives_than_places_are_kept_in_turn)
{
    enum { NAMES = 66 };
    tide_shelf *shelf = shelf_of(f);
    years_put(f, 1);
    copies_make(f, 0, NAMES);
    for (int i = 0; i < NAMES; i++) {
        (void)copy_look(f, shelf, i);
        assert_int_equal(files_open(textf("%s-%d/2000.db", f->dir, i)), 1);
    }
    tide_shelf_free(shelf);
    copies_remove(f, NAMES);
}

/* ---- files that are of no use (SLF4) ---- */

OPENED(an_archive_that_nobody_takes_is_closed)
{
    tide_shelf *shelf = shelf_of(f);
    put_text(f, "a", year_2019, "x");
    close_archive(f);
    OK(seen(f, shelf, "a"));
    tide_shelf_rest(shelf);
    assert_int_equal(shards_open(), 1); /* it was taken since the time before */
    tide_archive *archive = take(f, shelf);
    tide_shelf_rest(shelf);
    tide_shelf_rest(shelf);
    OK(found(archive, "a")); /* it is in use */
    tide_shelf_give(shelf, archive);
    tide_shelf_rest(shelf);
    assert_int_equal(shards_open(), 0);
    OK(seen(f, shelf, "a"));
    tide_shelf_free(shelf);
}

static void find_beside(const struct tide_shard_state *shard, void *arg)
{
    tide_archive *archive = arg;
    assert_int_equal(found(archive, "none"), TIDE_NOT_FOUND);
    assert_true(shard->messages > 0);
}

OPENED(a_deleted_shard_is_let_go_by_all_that_have_it_open)
{
    tide_shelf *shelf = shelf_of(f);
    put_text(f, "a", year_2019, "x");
    put_text(f, "b", year_2020, "x");
    close_archive(f);
    tide_archive *archive = take(f, shelf);
    OK(tide_archive_states(archive, find_beside, archive, &f->err)); /* two readers at once */
    tide_shelf_give(shelf, archive);
    assert_int_equal(files_open(".db"), 4);
    assert_int_equal(unlink(textf("%s/2019.db", f->dir)), 0);
    assert_int_equal(files_open(".db (deleted)"), 2);
    tide_shelf_rest(shelf);
    assert_int_equal(files_open(".db (deleted)"), 0);
    assert_int_equal(files_open(".db"), 2);
    assert_ptr_equal(take(f, shelf), archive);
    OK(found(archive, "b"));
    tide_shelf_give(shelf, archive);
    tide_shelf_free(shelf);
}

OPENED(a_deleted_archive_is_let_go)
{
    tide_shelf *shelf = shelf_of(f);
    put_text(f, "a", year_2019, "x");
    close_archive(f);
    OK(seen(f, shelf, "a"));
    assert_int_equal(temp_dir_remove(f->dir), 0);
    assert_int_equal(shards_open(), 1);
    tide_shelf_rest(shelf);
    assert_int_equal(shards_open(), 0);
    tide_shelf_free(shelf);
    assert_int_equal(mkdir(f->dir, 0700), 0); /* for the end of the test */
}

OPENED(it_is_closed_without_a_call)
{
    tide_shelf *shelf = shelf_resting(f, 1);
    put_text(f, "a", year_2019, "x");
    close_archive(f);
    for (int turn = 0; turn < 3; turn++) { /* the thread slept in between, without an end */
        OK(seen(f, shelf, "a"));
        while (shards_open() > 0)
            (void)tide_world_sleep_until(f->world, tide_world_now_us(f->world) + 1000, NULL);
    }
    tide_shelf_free(shelf);
}

/* ---- many threads ---- */

struct taker {
    struct fixture *f;
    tide_shelf *shelf;
    atomic_size_t found;
};

static void take_often(void *arg)
{
    struct taker *taker = arg;
    const struct tide_archive_options options = reading(taker->f);
    for (int i = 0; i < TURNS; i++) {
        tide_archive *archive = NULL;
        if (tide_shelf_take(taker->shelf, &options, tide_mem_heap(), &archive, NULL) == TIDE_OK &&
            found(archive, "a") == TIDE_OK)
            atomic_fetch_add(&taker->found, 1);
        tide_shelf_give(taker->shelf, archive);
    }
}

OPENED(many_threads_take_it_at_once)
{
    struct taker taker = {.f = f, .shelf = shelf_resting(f, 1)}; /* and one that closes it */
    tide_thread *threads[THREADS];
    put_text(f, "a", year_2019, "x");
    sync_all(f);
    for (int i = 0; i < THREADS; i++)
        OK(tide_world_thread(f->world, "taker", take_often, &taker, &threads[i], &f->err));
    for (int i = 0; i < THREADS; i++)
        tide_world_join(f->world, threads[i]);
    assert_int_equal(taker.found, THREADS * TURNS);
    tide_shelf_free(taker.shelf);
}

int main(void)
{
    return tests_run(NULL);
}
