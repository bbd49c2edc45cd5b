/* Where secrets are kept: files of the real and of the simulated world, and a keyring
 * made for the test (no D-Bus here). */
#include "net/secrets.h"

#include "sim.h"
#include "support/temp_dir.h"
#include "support/ok.h"
#include "support/sweep.h"
#include "support/heap.h"
#include "support/test.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME "gmail/ada@example.com"

struct fixture {
    tide_world *world;
    char dir[64];
    char secrets_dir[PATH_MAX];
    tide_secrets *secrets;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    (void)snprintf(f->dir, sizeof f->dir, "/tmp/tide-secrets-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    (void)snprintf(f->secrets_dir, sizeof f->secrets_dir, "%s/a/b", f->dir);
    OK(tide_world_real_new(tide_mem_heap(), &f->world, NULL));
    OK(tide_secrets_open(f->world, f->secrets_dir, TIDE_SECRETS_FILES, tide_mem_heap(), &f->secrets,
                         NULL));
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    tide_secrets_close(f->secrets);
    tide_world_real_free(f->world);
    assert_int_equal(temp_dir_remove(f->dir), 0);
    free(f);
    return 0;
}

/* The only file in the directory of secrets. */
static void only_file(const struct fixture *f, char path_out[PATH_MAX])
{
    DIR *dir = opendir(f->secrets_dir);
    assert_non_null(dir);
    size_t count = 0;
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        const int bytes = snprintf(path_out, PATH_MAX, "%.2000s/%s", f->secrets_dir, entry->d_name);
        assert_in_range(bytes, 1, PATH_MAX - 1);
        count++;
    }
    (void)closedir(dir);
    assert_int_equal(count, 1);
}

static void check_get(tide_secrets *secrets, const char *name, const char *expected)
{
    tide_buf value = heap_buf(TIDE_SECRET_BYTES_MAX);
    tide_error err = {0};
    const tide_status rc = tide_secrets_get(secrets, name, &value, &err);
    if (expected == NULL) {
        assert_int_equal(rc, TIDE_NOT_FOUND);
    } else {
        if (rc != TIDE_OK)
            fail_msg("%s: %s", name, err.text);
        assert_string_equal(tide_buf_cstr(&value), expected);
    }
    tide_secret_wipe(&value);
}

#define WITH_FILES(name) TEST_ON(name, struct fixture *f, set_up, tear_down)

WITH_FILES(a_secret_is_kept_replaced_and_removed)
{
    tide_error err = {0};
    assert_string_equal(tide_secrets_where(f->secrets), "file");
    check_get(f->secrets, NAME, NULL);
    assert_int_equal(tide_secrets_remove(f->secrets, NAME, &err), TIDE_NOT_FOUND);
    OK(tide_secrets_put(f->secrets, NAME, TIDE_TEXT("one"), &err));
    check_get(f->secrets, NAME, "one");
    OK(tide_secrets_put(f->secrets, NAME, TIDE_TEXT("a longer two"), &err));
    check_get(f->secrets, NAME, "a longer two");
    OK(tide_secrets_put(f->secrets, NAME, TIDE_TEXT(""), &err));
    check_get(f->secrets, NAME, "");
    OK(tide_secrets_remove(f->secrets, NAME, &err));
    check_get(f->secrets, NAME, NULL);
}

WITH_FILES(only_the_owner_can_read_the_file_and_its_directory)
{
    char path[PATH_MAX];
    struct stat info;
    const mode_t mask = umask(0); /* the most generous one */
    OK(tide_secrets_put(f->secrets, NAME, TIDE_TEXT("x"), NULL));
    (void)umask(mask);
    only_file(f, path);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    assert_int_equal(stat(f->secrets_dir, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0700);
}

WITH_FILES(a_file_that_others_can_read_is_refused_with_the_cure)
{
    char path[PATH_MAX];
    OK(tide_secrets_put(f->secrets, NAME, TIDE_TEXT("s3cret"), NULL));
    only_file(f, path);
    static const mode_t modes[] = {0640, 0604, 0620, 0602, 0601, 0610, 0644, 0777};
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        tide_error err = {0};
        tide_buf value = heap_buf(TIDE_SECRET_BYTES_MAX);
        assert_int_equal(chmod(path, modes[i]), 0);
        assert_int_equal(tide_secrets_get(f->secrets, NAME, &value, &err), TIDE_INVALID);
        assert_int_equal(value.bytes, 0);
        char cure[PATH_MAX + 32];
        (void)snprintf(cure, sizeof cure, "chmod 600 %s", path);
        assert_non_null(strstr(err.text, cure));
        assert_null(strstr(err.text, "s3cret"));
        tide_buf_done(&value);
    }
    assert_int_equal(chmod(path, 0400), 0); /* less is fine */
    check_get(f->secrets, NAME, "s3cret");
}

WITH_FILES(a_link_or_a_pipe_in_its_place_is_refused)
{
    char path[PATH_MAX];
    char other[PATH_MAX];
    tide_buf value = heap_buf(TIDE_SECRET_BYTES_MAX);
    OK(tide_secrets_put(f->secrets, NAME, TIDE_TEXT("x"), NULL));
    only_file(f, path);
    (void)snprintf(other, sizeof other, "%s/elsewhere", f->dir);
    assert_int_equal(rename(path, other), 0);
    assert_int_equal(symlink(other, path), 0);
    assert_int_equal(tide_secrets_get(f->secrets, NAME, &value, NULL), TIDE_INVALID);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(tide_secrets_get(f->secrets, NAME, &value, NULL), TIDE_INVALID);
    /* Putting one there replaces whatever it was, and writes through no link. */
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink(other, path), 0);
    OK(tide_secrets_put(f->secrets, NAME, TIDE_TEXT("new"), NULL));
    check_get(f->secrets, NAME, "new");
    struct stat info;
    assert_int_equal(stat(other, &info), 0);
    assert_int_equal(info.st_size, 1);
    tide_buf_done(&value);
}

/* Names that a careless encoding would send to one file, out of the directory, or to a
 * file that cannot be made. */
WITH_FILES(every_name_has_a_file_of_its_own)
{
    char longest[TIDE_SECRET_NAME_BYTES_MAX + 1];
    char twin[TIDE_SECRET_NAME_BYTES_MAX + 1];
    memset(longest, '/', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    memcpy(twin, longest, sizeof twin);
    twin[sizeof twin - 2] = '%';
    const char *const names[] = {"a/b",  "a%2Fb", "a%2fb", "A/b",      "a/B",  "..",    ".",
                                 "../x", "/x",    "x",     "x/",       ".x",   "x.new", ".x.new",
                                 "a b",  "a+b",   "a~b",   "\xc3\xa9", "a\\b", longest, twin};
    enum { NAMES = sizeof names / sizeof names[0] };
    for (size_t i = 0; i < NAMES; i++) {
        tide_error err = {0};
        if (tide_secrets_put(f->secrets, names[i], tide_text_of(names[i]), &err) != TIDE_OK)
            fail_msg("%s: %s", names[i], err.text);
    }
    for (size_t i = 0; i < NAMES; i++)
        check_get(f->secrets, names[i], names[i]);
    for (size_t i = 0; i < NAMES; i++)
        OK(tide_secrets_remove(f->secrets, names[i], NULL));
    assert_int_equal(rmdir(f->secrets_dir), 0); /* all of them were in it */
}

WITH_FILES(bad_names_and_values_are_refused)
{
    char large[TIDE_SECRET_BYTES_MAX + 1];
    char name[TIDE_SECRET_NAME_BYTES_MAX + 2];
    tide_buf value = heap_buf(TIDE_SECRET_BYTES_MAX);
    memset(large, 'x', sizeof large);
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    const char *const names[] = {"", "a\nb", "a\x7f", name};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_int_equal(tide_secrets_put(f->secrets, names[i], TIDE_TEXT("x"), NULL),
                         TIDE_INVALID);
        assert_int_equal(tide_secrets_get(f->secrets, names[i], &value, NULL), TIDE_INVALID);
        assert_int_equal(tide_secrets_remove(f->secrets, names[i], NULL), TIDE_INVALID);
    }
    assert_int_equal(tide_secrets_put(f->secrets, NAME, (tide_text){large, sizeof large}, NULL),
                     TIDE_FULL);
    assert_int_equal(tide_secrets_put(f->secrets, NAME, (tide_text){"a\0b", 3}, NULL),
                     TIDE_INVALID);
    check_get(f->secrets, NAME, NULL);
    OK(tide_secrets_put(f->secrets, NAME, (tide_text){large, sizeof large - 1}, NULL));
    OK(tide_secrets_get(f->secrets, NAME, &value, NULL));
    assert_int_equal(value.bytes, TIDE_SECRET_BYTES_MAX);
    /* Too little room leaves what was there. */
    tide_buf small = heap_buf(100);
    OK(tide_buf_add_text(&small, "before"));
    assert_int_equal(tide_secrets_get(f->secrets, NAME, &small, NULL), TIDE_FULL);
    assert_string_equal(tide_buf_cstr(&small), "before");
    tide_buf_done(&small);
    tide_secret_wipe(&value);
}

WITH_FILES(no_keyring_is_an_error_only_when_asked_for)
{
    tide_secrets *secrets = NULL;
    tide_error err = {0};
    assert_int_equal(tide_secrets_open_with(f->world, f->secrets_dir, TIDE_SECRETS_KEYRING, NULL,
                                            tide_mem_heap(), &secrets, &err),
                     TIDE_NOT_FOUND);
    assert_null(secrets);
    OK(tide_secrets_open_with(f->world, f->secrets_dir, TIDE_SECRETS_BEST, NULL, tide_mem_heap(),
                              &secrets, &err));
    assert_string_equal(tide_secrets_where(secrets), "file");
    tide_secrets_close(secrets);

    /* KEY2: without a session bus no keyring is asked and none is started. */
    char *bus = getenv("DBUS_SESSION_BUS_ADDRESS");
    char *runtime = getenv("XDG_RUNTIME_DIR");
    bus = bus == NULL ? NULL : strdup(bus);
    runtime = runtime == NULL ? NULL : strdup(runtime);
    (void)unsetenv("DBUS_SESSION_BUS_ADDRESS");
    (void)unsetenv("XDG_RUNTIME_DIR");
    assert_int_equal(tide_secrets_open(f->world, f->secrets_dir, TIDE_SECRETS_KEYRING,
                                       tide_mem_heap(), &secrets, &err),
                     TIDE_NOT_FOUND);
    OK(tide_secrets_open(f->world, f->secrets_dir, TIDE_SECRETS_BEST, tide_mem_heap(), &secrets,
                         &err));
    assert_string_equal(tide_secrets_where(secrets), "file");
    tide_secrets_close(secrets);
    if (bus != NULL)
        (void)setenv("DBUS_SESSION_BUS_ADDRESS", bus, 1);
    if (runtime != NULL)
        (void)setenv("XDG_RUNTIME_DIR", runtime, 1);
    free(bus);
    free(runtime);
}

/* ---- with a keyring ---- */

/* Holds one secret, and fails when told to. */
struct ring {
    tide_keyring base;
    char value[64];
    bool holds;
    bool fails;
    unsigned closed;
};

static tide_status ring_put(tide_keyring *keyring, const char *name, tide_text value,
                            tide_error *err)
{
    struct ring *ring = (struct ring *)keyring;
    assert_string_equal(name, NAME);
    if (ring->fails)
        return tide_error_set(err, TIDE_IO, "the keyring is locked");
    (void)snprintf(ring->value, sizeof ring->value, "%.*s", (int)value.bytes, value.data);
    ring->holds = true;
    return TIDE_OK;
}

static tide_status ring_get(tide_keyring *keyring, const char *name, tide_buf *out, tide_error *err)
{
    struct ring *ring = (struct ring *)keyring;
    assert_string_equal(name, NAME);
    if (ring->fails)
        return tide_error_set(err, TIDE_IO, "the keyring is locked");
    return ring->holds ? tide_buf_add_text(out, ring->value)
                       : tide_error_set(err, TIDE_NOT_FOUND, "no");
}

static tide_status ring_remove(tide_keyring *keyring, const char *name, tide_error *err)
{
    struct ring *ring = (struct ring *)keyring;
    assert_string_equal(name, NAME);
    if (ring->fails)
        return tide_error_set(err, TIDE_IO, "the keyring is locked");
    if (!ring->holds)
        return tide_error_set(err, TIDE_NOT_FOUND, "no");
    ring->holds = false;
    return TIDE_OK;
}

static void ring_close(tide_keyring *keyring)
{
    ((struct ring *)keyring)->closed++;
}

static const struct tide_keyring_ops ring_ops = {ring_put, ring_get, ring_remove, ring_close};

static tide_secrets *open_ring(struct fixture *f, struct ring *ring, tide_secrets_place place)
{
    tide_secrets *secrets = NULL;
    ring->base.ops = &ring_ops;
    OK(tide_secrets_open_with(f->world, f->secrets_dir, place, &ring->base, tide_mem_heap(),
                              &secrets, NULL));
    assert_string_equal(tide_secrets_where(secrets), "keyring");
    return secrets;
}

WITH_FILES(the_keyring_comes_first_and_no_copy_stays_in_a_file)
{
    struct ring ring = {.holds = false};
    /* From the time before there was a keyring. */
    OK(tide_secrets_put(f->secrets, NAME, TIDE_TEXT("filed"), NULL));
    tide_secrets *secrets = open_ring(f, &ring, TIDE_SECRETS_BEST);
    check_get(secrets, NAME, "filed");
    OK(tide_secrets_put(secrets, NAME, TIDE_TEXT("ringed"), NULL));
    assert_string_equal(ring.value, "ringed");
    check_get(secrets, NAME, "ringed");
    check_get(f->secrets, NAME, NULL); /* the file is gone */
    OK(tide_secrets_remove(secrets, NAME, NULL));
    assert_false(ring.holds);
    check_get(secrets, NAME, NULL);
    tide_secrets_close(secrets);
    assert_int_equal(ring.closed, 1);
}

WITH_FILES(a_locked_keyring_sends_secrets_to_files_and_the_newest_is_read)
{
    struct ring ring = {.holds = false};
    tide_secrets *secrets = open_ring(f, &ring, TIDE_SECRETS_BEST);
    tide_buf value = heap_buf(TIDE_SECRET_BYTES_MAX);
    OK(tide_secrets_put(secrets, NAME, TIDE_TEXT("old"), NULL));
    ring.fails = true;
    assert_int_equal(tide_secrets_get(secrets, NAME, &value, NULL), TIDE_IO); /* not "none" */
    OK(tide_secrets_put(secrets, NAME, TIDE_TEXT("new"), NULL));
    check_get(secrets, NAME, "new");
    ring.fails = false; /* unlocked again, with the old one still in it */
    check_get(secrets, NAME, "new");
    ring.fails = true;
    assert_int_equal(tide_secrets_remove(secrets, NAME, NULL), TIDE_IO);
    check_get(secrets, NAME, "new"); /* nothing was removed by half */
    ring.fails = false;
    OK(tide_secrets_remove(secrets, NAME, NULL));
    check_get(secrets, NAME, NULL);
    assert_false(ring.holds);
    tide_secrets_close(secrets);
}

WITH_FILES(asked_for_the_keyring_no_file_is_ever_made)
{
    struct ring ring = {.fails = true};
    tide_secrets *secrets = open_ring(f, &ring, TIDE_SECRETS_KEYRING);
    tide_buf value = heap_buf(TIDE_SECRET_BYTES_MAX);
    assert_int_equal(tide_secrets_put(secrets, NAME, TIDE_TEXT("x"), NULL), TIDE_IO);
    assert_int_equal(tide_secrets_get(secrets, NAME, &value, NULL), TIDE_IO);
    assert_int_equal(rmdir(f->secrets_dir), 0);
    tide_secrets_close(secrets);
}

/* ---- memory ---- */

/* Under the wiping allocator: sees what is given back. */
struct watching {
    tide_mem base;
    uint64_t dirty;
    uint64_t given_back;
};

static void *watching_resize(tide_mem *base, void *old, size_t old_bytes, size_t new_bytes)
{
    struct watching *mem = (struct watching *)base;
    assert_true(old == NULL || new_bytes == 0); /* never in place */
    if (old != NULL) {
        mem->given_back++;
        for (size_t i = 0; i < old_bytes; i++)
            mem->dirty += ((const char *)old)[i] != '\0';
    }
    return tide_mem_heap()->resize(tide_mem_heap(), old, old_bytes, new_bytes);
}

WITH_FILES(memory_of_secrets_is_wiped_when_it_moves_and_when_it_goes)
{
    struct watching watching = {.base = {watching_resize}};
    struct tide_mem_wiping wiping;
    tide_mem_wiping_init(&wiping, &watching.base);
    tide_buf grown;
    tide_buf_init(&grown, &wiping.base, 1 << 20);
    for (int i = 0; i < 10000; i++)
        OK(tide_buf_add_text(&grown, "secret"));
    assert_true(watching.given_back > 5);
    tide_buf_done(&grown);
    assert_int_equal(watching.dirty, 0);

    tide_buf plain;
    tide_buf_init(&plain, &watching.base, 100);
    assert_non_null(tide_buf_reserve(&plain, 100)); /* grows no more */
    OK(tide_buf_add_text(&plain, "secret"));
    tide_buf_clear(&plain); /* the bytes are still there, past the count */
    tide_secret_wipe(&plain);
    assert_int_equal(watching.dirty, 0);

    /* Reading: into a buffer that holds an older one. */
    char value[30000];
    memset(value, 'v', sizeof value);
    OK(tide_secrets_put(f->secrets, NAME, (tide_text){value, sizeof value}, NULL));
    tide_buf out;
    tide_buf_init(&out, &wiping.base, TIDE_SECRET_BYTES_MAX);
    OK(tide_buf_add_text(&out, "an older one"));
    OK(tide_secrets_get(f->secrets, NAME, &out, NULL));
    assert_int_equal(out.bytes, sizeof value);
    tide_secret_wipe(&out);
    assert_int_equal(watching.dirty, 0);
}

static tide_status keep_and_read(struct fixture *f, tide_mem *mem)
{
    tide_secrets *secrets = NULL;
    tide_buf value;
    tide_buf_init(&value, mem, TIDE_SECRET_BYTES_MAX);
    tide_status rc =
        tide_secrets_open(f->world, f->secrets_dir, TIDE_SECRETS_FILES, mem, &secrets, NULL);
    if (rc == TIDE_OK)
        rc = tide_secrets_put(secrets, NAME, TIDE_TEXT("value"), NULL);
    if (rc == TIDE_OK)
        rc = tide_secrets_get(secrets, NAME, &value, NULL);
    if (rc == TIDE_OK)
        assert_string_equal(tide_buf_cstr(&value), "value");
    tide_secret_wipe(&value);
    tide_secrets_close(secrets);
    return rc;
}

WITH_FILES(secrets_survive_every_failed_allocation)
{
    for (struct tide_mem_faulty mem = {0}; sweep_next(&mem);) {
        const tide_status rc = keep_and_read(f, &mem.base);
        assert_swept(mem, rc);
    }
}

/* ---- crashes, in the simulated world ---- */

/* SEC1: power is lost at each step of a replacement in turn. */
TEST(after_a_crash_a_secret_is_the_old_or_the_new_one)
{
    bool saw_old = false;
    bool saw_new = false;
    for (uint64_t steps = 1; steps < 40; steps++) {
        tide_sim *sim = tide_sim_new(steps, NULL);
        tide_world *world = tide_sim_world(sim);
        tide_secrets *secrets = NULL;
        OK(tide_secrets_open(world, "/secrets", TIDE_SECRETS_FILES, tide_mem_heap(), &secrets,
                             NULL));
        OK(tide_secrets_put(secrets, NAME, TIDE_TEXT("the old one"), NULL));
        tide_sim_crash_after(sim, steps, TIDE_SIM_CRASH_POWER);
        const tide_status rc = tide_secrets_put(secrets, NAME, TIDE_TEXT("new"), NULL);
        tide_sim_crash(sim, TIDE_SIM_CRASH_POWER);
        tide_sim_reboot(sim);
        tide_buf value = heap_buf(TIDE_SECRET_BYTES_MAX);
        OK(tide_secrets_get(secrets, NAME, &value, NULL));
        const bool is_new = strcmp(tide_buf_cstr(&value), "new") == 0;
        const bool is_old = strcmp(tide_buf_cstr(&value), "the old one") == 0;
        assert_true(is_new || is_old);
        assert_true(is_new || rc != TIDE_OK); /* what was reported as kept is kept */
        saw_old = saw_old || is_old;
        saw_new = saw_new || is_new;
        tide_secret_wipe(&value);
        tide_secrets_close(secrets);
        tide_sim_free(sim);
    }
    assert_true(saw_old);
    assert_true(saw_new);
}

TEST(a_full_disk_loses_nothing)
{
    tide_sim *sim = tide_sim_new(1, NULL);
    tide_secrets *secrets = NULL;
    tide_error err = {0};
    OK(tide_secrets_open(tide_sim_world(sim), "/secrets", TIDE_SECRETS_FILES, tide_mem_heap(),
                         &secrets, NULL));
    OK(tide_secrets_put(secrets, NAME, TIDE_TEXT("old"), NULL));
    tide_sim_disk_room(sim, 1);
    assert_int_equal(tide_secrets_put(secrets, NAME, TIDE_TEXT("n3wer"), &err), TIDE_DISK_FULL);
    assert_null(strstr(err.text, "n3wer"));
    check_get(secrets, NAME, "old");
    tide_secrets_close(secrets);
    tide_sim_free(sim);
}
