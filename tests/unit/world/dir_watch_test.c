/* dir_watch_test.c - events of directories (DWA1, DWA2).
 *
 * Goal: what happens in a watched directory is told, under the right number; a wait ends when it should.
 * Method: real directories; one change of each kind and the event it must have; more events than the
 * kernel keeps; waits that are woken, that time out, and that must not. */
#include "support/heap.h"
#include "support/ok.h"
#include "support/temp_dir.h"
#include "support/test.h"
#include "world/watch/dir_watch.h"
#include "world/folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct fixture {
    char dir[64];
    int fd, id;
    tide_dir_watch *watch;
    struct tide_waker waker;
    tide_error err;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    (void)snprintf(f->dir, sizeof f->dir, "/tmp/dir-watch-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    OK(tide_folder_open(f->dir, &f->fd, &f->err));
    OK(tide_dir_watch_new(tide_mem_heap(), &f->watch, &f->err));
    OK(tide_dir_watch_add(f->watch, f->fd, &f->id, &f->err));
    OK(tide_waker_open(&f->waker, &f->err));
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    tide_waker_close(&f->waker);
    tide_dir_watch_free(f->watch);
    tide_folder_close(f->fd);
    (void)temp_dir_remove(f->dir);
    free(f);
    return 0;
}

static void touch(const char *path)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    (void)close(fd);
}

/* All that waits about one name, together. */
static unsigned told(struct fixture *f, const char *name)
{
    struct tide_dir_event event;
    unsigned what = 0;
    while (tide_dir_watch_next(f->watch, &event))
        if (tide_text_equal(event.name, tide_text_of(name))) {
            assert_int_equal(event.id, f->id);
            what |= event.what;
        }
    return what;
}

static uint64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* DWA1. */
TEST_ON(each_kind_of_change_is_told, struct fixture *f, setup, teardown)
{
    const char *file = textf("%s/file", f->dir), *other = textf("%s/other", f->dir);
    assert_int_equal(told(f, "file"), 0);
    touch(file);
    assert_int_equal(told(f, "file"), TIDE_DIR_CHANGED);
    assert_int_equal(chmod(file, 0400), 0);
    assert_int_equal(told(f, "file"), TIDE_DIR_CHANGED);
    assert_int_equal(link(file, other), 0);
    assert_int_equal(told(f, "other"), TIDE_DIR_CHANGED);
    assert_int_equal(unlink(other), 0);
    assert_int_equal(told(f, "other"), TIDE_DIR_LEFT);
    assert_int_equal(rename(file, other), 0);
    struct tide_dir_event event;
    assert_true(tide_dir_watch_next(f->watch, &event));
    assert_int_equal(event.what & (TIDE_DIR_LEFT | TIDE_DIR_CHANGED),
                     tide_text_equal(event.name, TIDE_TEXT("file")) ? TIDE_DIR_LEFT
                                                                    : TIDE_DIR_CHANGED);
    (void)told(f, "");
    assert_int_equal(mkdir(textf("%s/folder", f->dir), 0700), 0);
    assert_int_equal(told(f, "folder"), TIDE_DIR_CHANGED | TIDE_DIR_FOLDER);
    assert_int_equal(rmdir(textf("%s/folder", f->dir)), 0);
    assert_int_equal(told(f, "folder"), TIDE_DIR_LEFT | TIDE_DIR_FOLDER);
}

TEST_ON(a_directory_that_moves_or_ends_says_so, struct fixture *f, setup, teardown)
{
    char moved[80];
    (void)snprintf(moved, sizeof moved, "%s-moved", f->dir);
    assert_int_equal(rename(f->dir, moved), 0);
    const unsigned what = told(f, "");
    assert_int_equal(what & (TIDE_DIR_MOVED | TIDE_DIR_ENDED), TIDE_DIR_MOVED);
    assert_int_equal(rmdir(moved), 0);
    tide_folder_close(f->fd); /* an open directory lives on */
    f->fd = -1;
    assert_true((told(f, "") & TIDE_DIR_ENDED) != 0);
}

/* The same directory has one number, whatever path leads to it. */
TEST_ON(a_directory_is_added_once, struct fixture *f, setup, teardown)
{
    int again = -1, id = -1;
    OK(tide_folder_open(textf("/tmp/../%s", f->dir), &again, &f->err));
    OK(tide_dir_watch_add(f->watch, again, &id, &f->err));
    tide_folder_close(again);
    assert_int_equal(id, f->id);
    tide_dir_watch_remove(f->watch, id);
    touch(textf("%s/file", f->dir));
    assert_int_equal(told(f, "file"), 0);
}

/* DWA1: more than the kernel keeps. */
TEST_ON(too_many_events_are_told_as_lost, struct fixture *f, setup, teardown)
{
    struct tide_dir_event event;
    bool lost = false;
    unsigned events_max = 16384;
    FILE *file = fopen("/proc/sys/fs/inotify/max_queued_events", "r");
    if (file != NULL) {
        assert_int_equal(fscanf(file, "%u", &events_max), 1);
        (void)fclose(file);
    }
    for (unsigned i = 0; i < events_max / 2; i++) {
        touch(textf("%s/file", f->dir));
        assert_int_equal(unlink(textf("%s/file", f->dir)), 0);
    }
    while (tide_dir_watch_next(f->watch, &event))
        if ((event.what & TIDE_DIR_LOST) != 0) {
            assert_int_equal(event.id, -1);
            lost = true;
        }
    assert_true(lost);
}

/* DWA2. */
TEST_ON(a_wait_ends_by_an_event_a_wake_or_its_time, struct fixture *f, setup, teardown)
{
    tide_dir_watch *watches[2] = {NULL, f->watch};
    uint64_t start_ms = now_ms();
    tide_dir_watch_wait(watches, 2, &f->waker, 60);
    assert_true(now_ms() >= start_ms + 59);
    tide_waker_wake(&f->waker);
    start_ms = now_ms();
    tide_dir_watch_wait(watches, 2, &f->waker, UINT64_MAX);
    tide_dir_watch_wait(watches, 2, &f->waker, 60); /* one wake, one wait */
    assert_true(now_ms() >= start_ms + 59);
    touch(textf("%s/file", f->dir));
    tide_dir_watch_wait(watches, 2, &f->waker, UINT64_MAX);
    struct tide_dir_event event;
    assert_true(tide_dir_watch_next(f->watch, &event)); /* more were read with it */
    tide_dir_watch_wait(watches, 2, &f->waker, UINT64_MAX);
    assert_int_equal(told(f, "file"), TIDE_DIR_CHANGED);
}
