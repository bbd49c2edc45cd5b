/* command_test.c - programs of this machine, run for real. */
#include "support/ok.h"
#include "support/test.h"
#include "world/programs/command.h"

#include <signal.h>
#include <unistd.h>

enum { WAIT_MS = 60000, OUTPUT_MAX = 1 << 20, ERRORS_MAX = 4096 };

struct fixture {
    tide_world *world;
    tide_buf output, errors;
    struct tide_command_end end;
    tide_error err;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    OK(tide_world_real_new(tide_mem_heap(), &f->world, NULL));
    f->output = tide_buf_heap(2 * OUTPUT_MAX);
    f->errors = tide_buf_heap(2 * ERRORS_MAX);
    (void)signal(SIGPIPE, SIG_IGN); /* as in our program */
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    tide_buf_done(&f->output);
    tide_buf_done(&f->errors);
    tide_world_real_free(f->world);
    free(f);
    return 0;
}

#define CASE(test) TEST_ON(test, struct fixture *f, set_up, tear_down)

static tide_status run_with(struct fixture *f, struct tide_command command,
                            const tide_cancel *cancel)
{
    static const char *const none[] = {NULL};
    tide_buf_clear(&f->output);
    tide_buf_clear(&f->errors);
    f->end = (struct tide_command_end){-2, -2};
    command.environment = command.environment != NULL ? command.environment : none;
    command.wait_ms = command.wait_ms > 0 ? command.wait_ms : WAIT_MS;
    command.output_bytes_max = command.output_bytes_max > 0 ? command.output_bytes_max : OUTPUT_MAX;
    command.errors_bytes_max = ERRORS_MAX;
    return tide_command_run(f->world, &command, cancel, &f->output, &f->errors, &f->end, &f->err);
}

#define SHELL(f, script, ...)                                                                      \
    run_with(f,                                                                                    \
             (struct tide_command){                                                                \
                 .arguments = (const char *const[]){"/bin/sh", "-c", script, NULL}, __VA_ARGS__},  \
             NULL)

static bool lives(long pid)
{
    char path[64], line[512] = "";
    (void)snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return false;
    const bool read = fgets(line, sizeof line, file) != NULL;
    (void)fclose(file);
    const char *state = strrchr(line, ')');
    return read && state != NULL && state[2] != 'Z'; /* a dead one that nobody has reaped yet */
}

CASE(what_a_program_prints_and_how_it_ends_is_told)
{
    OK(SHELL(f, "echo out; echo err >&2; exit 3"));
    assert_string_equal(f->output.data, "out\n");
    assert_string_equal(f->errors.data, "err\n");
    assert_int_equal(f->end.code, 3);
    assert_int_equal(f->end.signal, 0);
    OK(SHELL(f, "kill -TERM $$"));
    assert_int_equal(f->end.code, -1);
    assert_int_equal(f->end.signal, SIGTERM);
}

CASE(its_input_may_be_large_and_need_not_be_read)
{
    enum { BYTES = 600000 };
    char *input = malloc(BYTES);
    assert_non_null(input);
    for (size_t i = 0; i < BYTES; i++)
        input[i] = (char)('a' + i % 26);
    OK(SHELL(f, "exec /bin/cat", .input = {input, BYTES}));
    assert_int_equal(f->output.bytes, BYTES);
    assert_memory_equal(f->output.data, input, BYTES);
    OK(SHELL(f, "echo done", .input = {input, BYTES}));
    assert_string_equal(f->output.data, "done\n");
    free(input);
}

/* CMD1 */
CASE(it_gets_three_files_and_the_environment_that_is_named)
{
    static const char *const environment[] = {"ONLY=this", NULL};
    assert_int_equal(setenv("TIDEMARK_TEST_SECRET", "secret", 1), 0);
    const int leaked = dup(0); /* without O_CLOEXEC, as a careless library would */
    assert_true(leaked >= 0);
    OK(SHELL(f, "pwd; exec /usr/bin/env -u PWD", .environment = environment));
    assert_string_equal(f->output.data, "/\nONLY=this\n");
    OK(SHELL(f, "exec ls /proc/self/fd"));
    assert_string_equal(f->output.data, "0\n1\n2\n3\n"); /* the fourth is the folder it reads */
    OK(SHELL(f, "pwd", .dir = "/proc"));
    assert_string_equal(f->output.data, "/proc\n");
    /* A program expects to die when nobody reads what it prints. */
    OK(SHELL(f, "kill -PIPE $$"));
    assert_int_equal(f->end.signal, SIGPIPE);
    assert_int_equal(close(leaked), 0);
}

CASE(arguments_are_not_read_by_a_shell)
{
    OK(run_with(f,
                (struct tide_command){.arguments = (const char *const[]){"/bin/echo",
                                                                         "$(id); `id` | x > /tmp/y",
                                                                         "a b", NULL}},
                NULL));
    assert_string_equal(f->output.data, "$(id); `id` | x > /tmp/y a b\n");
}

/* CMD3 */
CASE(a_program_that_prints_too_much_is_killed)
{
    assert_int_equal(SHELL(f, "while :; do echo xxxxxxxxxxxxxxxx; done", .output_bytes_max = 1000),
                     TIDE_FULL);
    assert_int_equal(f->output.bytes, 1000);
    assert_int_equal(f->end.code, -2); /* outputs stay as they were */
    OK(SHELL(f, "i=0; while [ $i -lt 2000 ]; do echo eeeeeeeeee >&2; i=$((i+1)); done; echo ok"));
    assert_int_equal(f->errors.bytes, ERRORS_MAX);
    assert_string_equal(f->output.data, "ok\n");
}

/* CMD2, CMD4 */
CASE(a_program_that_does_not_end_is_killed_with_its_children)
{
    assert_int_equal(SHELL(f, "trap '' TERM; sleep 1000 & echo $!; sleep 1000", .wait_ms = 700),
                     TIDE_TIMEOUT);
    assert_non_null(strstr(f->err.text, "did not end"));
    assert_true(strtol(f->output.data, NULL, 10) > 1);
    while (lives(strtol(f->output.data, NULL, 10)))
        ; /* it has its SIGKILL */
}

/* CMD2: a child that holds the pipe open does not make the call wait. */
CASE(a_child_that_outlives_its_program_is_killed)
{
    OK(SHELL(f, "sleep 1000 & echo $!"));
    assert_int_equal(f->end.code, 0);
    while (lives(strtol(f->output.data, NULL, 10)))
        ;
}

/* CMD4: without a bound the call would read its standard error forever. */
CASE(a_child_that_goes_on_printing_does_not_hold_the_call)
{
    OK(SHELL(f, "/usr/bin/yes >&2 & "
                "until read name </proc/$!/comm && [ \"$name\" = yes ]; do :; done; echo $!"));
    assert_int_equal(f->end.code, 0);
    while (lives(strtol(f->output.data, NULL, 10)))
        ;
}

CASE(what_cannot_be_run_is_said)
{
    static const char *const missing[] = {"/nonexistent/program", NULL};
    assert_int_equal(run_with(f, (struct tide_command){.arguments = missing}, NULL),
                     TIDE_NOT_FOUND);
    assert_non_null(strstr(f->err.text, "/nonexistent/program"));
    static const char *const folder[] = {"/proc", NULL};
    assert_int_not_equal(run_with(f, (struct tide_command){.arguments = folder}, NULL), TIDE_OK);
    assert_int_not_equal(SHELL(f, "true", .dir = "/nonexistent"), TIDE_OK);
}

CASE(a_canceled_call_ends)
{
    tide_cancel cancel = {0};
    tide_world_cancel(f->world, &cancel, TIDE_CANCEL_STOP);
    static const char *const sleeper[] = {"/bin/sleep", "1000", NULL};
    assert_int_equal(run_with(f, (struct tide_command){.arguments = sleeper}, &cancel),
                     TIDE_CANCELED);
}
