#include "cli/terminal/browser.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>

extern char **environ;

/* What a browser prints is not for this terminal.  A shell in between starts it and ends at once, so
 * that no process is left to be waited for; the address is its argument, not a part of its text. */
bool cli_browser_open(const char *address)
{
    const char *named = getenv("BROWSER");
    const char *program = named == NULL || named[0] == '\0' ? "xdg-open" : named;
    const char *const arguments[] = {
        "sh",    "-c",    "command -v \"$0\" >/dev/null || exit 127; \"$0\" \"$1\" &",
        program, address, NULL};
    posix_spawn_file_actions_t files;
    pid_t pid = 0;
    int ended = 0;
    if (posix_spawn_file_actions_init(&files) != 0)
        return false;
    bool started = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0) == 0 &&
                   posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0) == 0 &&
                   posix_spawn_file_actions_adddup2(&files, 1, 2) == 0 &&
                   posix_spawn(&pid, "/bin/sh", &files, NULL, (char *const *)(uintptr_t)arguments,
                               environ) == 0;
    (void)posix_spawn_file_actions_destroy(&files);
    while (started && waitpid(pid, &ended, 0) < 0)
        started = errno == EINTR;
    return started && WIFEXITED(ended) && WEXITSTATUS(ended) == 0;
}
