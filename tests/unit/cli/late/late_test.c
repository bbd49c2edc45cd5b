/* late_test.c - libraries that are loaded by the first call (cli/late/late.h).
 *
 * Each test calls a function for the first time in a process of its own: only then do the arguments
 * go through the code that loads the library. */
#include "probe.h"
#include "support/test.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

/* The status with which a process ends that does this; what it prints on stderr is in `said`. */
static int status_of(int (*does)(void), char *said, size_t bytes)
{
    int ends[2];
    int status = 0;
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)dup2(ends[1], STDERR_FILENO);
        _exit(does());
    }
    (void)close(ends[1]);
    size_t count = 0;
    for (ssize_t got;
         count < bytes - 1 && (got = read(ends[0], said + count, bytes - 1 - count)) > 0;)
        count += (size_t)got;
    said[count] = '\0';
    (void)close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void works(int (*does)(void))
{
    char said[512];
    assert_int_equal(status_of(does, said, sizeof said), 0);
    assert_string_equal(said, "");
}

static int integers(void)
{
    /* Twice: the second call goes straight to the library. */
    return probe_integers(1, 2, 3, 4, 5, 6, 7, 8, 9) != 987654321 ||
           probe_integers(9, 8, 7, 6, 5, 4, 3, 2, 1) != 123456789;
}

static int doubles(void)
{
    return probe_doubles(1, 2, 3, 4, 5, 6, 7, 8, 9) != 987654321.0 ||
           probe_doubles(9, 8, 7, 6, 5, 4, 3, 2, 1) != 123456789.0;
}

static int variable(void)
{
    char out[64];
    return probe_print(out, sizeof out, "%d %.1f %s %.1f", 1, 2.5, "three", 4.5) != 15 ||
           strcmp(out, "1 2.5 three 4.5") != 0;
}

static int large(void)
{
    const struct probe_large got = probe_large_of(7);
    return got.value[0] != 7 || got.value[3] != 10;
}

TEST(the_first_call_gets_its_arguments_and_returns_its_result)
{
    works(integers);
    works(doubles);
    works(variable);
    works(large);
}

static void *caller(void *arg)
{
    pthread_barrier_t *together = arg;
    (void)pthread_barrier_wait(together);
    return (void *)(intptr_t)integers();
}

static int threads(void)
{
    enum { THREADS = 8 };
    pthread_t thread[THREADS];
    pthread_barrier_t together;
    intptr_t failed = 0;
    if (pthread_barrier_init(&together, NULL, THREADS) != 0)
        return 1;
    for (size_t i = 0; i < THREADS; i++)
        if (pthread_create(&thread[i], NULL, caller, &together) != 0)
            return 1;
    for (size_t i = 0; i < THREADS; i++) {
        void *result = NULL;
        failed |= pthread_join(thread[i], &result) != 0 || result != NULL;
    }
    return (int)failed;
}

TEST(threads_may_make_the_first_call_together)
{
    for (int i = 0; i < 20; i++)
        works(threads);
}

static int function_as_a_value(void)
{
    long (*const call)(long, long, long, long, long, long, long, long, long) = probe_integers;
    return call(1, 2, 3, 4, 5, 6, 7, 8, 9) != 987654321;
}

TEST(the_address_of_a_function_can_be_passed_on)
{
    works(function_as_a_value);
}

TEST(a_library_that_is_missing_is_named_when_it_is_needed)
{
    char said[512];
    assert_int_equal(status_of(probe_absent, said, sizeof said), 127);
    assert_non_null(strstr(said, "tidemark: liblate_absent.so cannot be loaded: "));
    assert_non_null(strstr(said, "\nInstall the package that has it"));
}
