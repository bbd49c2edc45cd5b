/* pager.c - shows output that is longer than the screen with the user's pager.
 *
 * PAGER, else less; empty or "cat" means none.  less gets the options that leave
 * what it showed on the screen and understand bold text, unless LESS has others. */
#include "cli/terminal/pager.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* NULL: none. */
static const char *pager_named(void)
{
    const char *named = getenv("PAGER");
    if (named == NULL)
        named = "less";
    return named[0] == '\0' || strcmp(named, "cat") == 0 ? NULL : named;
}

static bool is_longer_than_screen(tide_text text)
{
    struct winsize size = {0};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0)
        return false;
    size_t lines = 1; /* that of the prompt */
    for (size_t i = 0; i < text.bytes; i++)
        lines += text.data[i] == '\n';
    return lines > size.ws_row;
}

/* Reads from `input`; its own signals are as a program expects them. */
static bool start(const char *program, int input, pid_t *pid_out)
{
    const char *const arguments[] = {"sh", "-c", program, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t usual;
    bool started = false;
    if (posix_spawn_file_actions_init(&files) != 0)
        return false;
    if (posix_spawnattr_init(&attributes) != 0) {
        (void)posix_spawn_file_actions_destroy(&files);
        return false;
    }
    (void)sigemptyset(&usual);
    (void)sigaddset(&usual, SIGPIPE);
    if (posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO) == 0 &&
        posix_spawnattr_setsigdefault(&attributes, &usual) == 0 &&
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF) == 0)
        /* The list is not const in the interface, but nothing writes to it. */
        started = posix_spawn(pid_out, "/bin/sh", &files, &attributes,
                              (char *const *)(uintptr_t)arguments, environ) == 0;
    (void)posix_spawnattr_destroy(&attributes);
    (void)posix_spawn_file_actions_destroy(&files);
    return started;
}

FILE *cli_pager_open(struct cli *cli, struct cli_pager *pager)
{
    const char *term = getenv("TERM");
    const char *program = pager_named();
    int ends[2];
    *pager = (struct cli_pager){.to = stdout};
    if (!cli->paged || program == NULL || isatty(STDOUT_FILENO) != 1 || term == NULL ||
        strcmp(term, "dumb") == 0 || !is_longer_than_screen(tide_buf_text(&cli->out)))
        return stdout;
    (void)setenv("LESS", "FRX", 0);
    if (pipe2(ends, O_CLOEXEC) != 0)
        return stdout;
    if (start(program, ends[0], &pager->pid))
        pager->to = fdopen(ends[1], "w");
    (void)close(ends[0]);
    if (pager->pid == 0 || pager->to == NULL) {
        (void)close(ends[1]);
        pager->to = stdout;
    }
    return pager->to;
}

void cli_pager_close(struct cli_pager *pager)
{
    if (pager->to != stdout)
        (void)fclose(pager->to); /* a user who has seen enough closes it first */
    if (pager->pid == 0)
        return;
    /* Ctrl-C is the pager's while it runs. */
    void (*before)(int) = signal(SIGINT, SIG_IGN);
    while (waitpid(pager->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    (void)signal(SIGINT, before);
}
