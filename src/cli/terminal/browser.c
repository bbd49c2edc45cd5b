#include "cli/terminal/browser.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { WORDS_MAX = 32, COMMAND_BYTES = 2048, ADDRESS_BYTES = 8192 };

/* A command, in words. */
struct command {
    char text[COMMAND_BYTES];
    char placed[ADDRESS_BYTES]; /* the word with %s in it, with the address */
    const char *words[WORDS_MAX + 2];
    size_t count;
    bool window;
};

/* ---- which ---- */

static bool is_program(const char *path)
{
    struct stat info;
    return access(path, X_OK) == 0 && stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

static bool is_there(const char *program)
{
    const char *path = getenv("PATH");
    char full[COMMAND_BYTES * 2];
    if (program[0] == '\0' || strchr(program, '/') != NULL)
        return is_program(program);
    for (const char *dir = path == NULL ? "/usr/bin:/bin" : path; dir[0] != '\0';) {
        const size_t bytes = strcspn(dir, ":");
        const int written = snprintf(full, sizeof full, "%.*s/%s", (int)bytes, dir, program);
        if (written > 0 && (size_t)written < sizeof full && is_program(full))
            return true;
        dir += bytes + (dir[bytes] == ':');
    }
    return false;
}

static bool is_for_terminals(const char *program)
{
    static const char *const names[] = {"w3m",    "lynx",   "links",    "links2",      "elinks",
                                        "browsh", "chawan", "carbonyl", "www-browser", "cha"};
    const char *slash = strrchr(program, '/');
    const char *name = slash == NULL ? program : slash + 1;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* One of the commands; false: its program is not there. */
static bool take(const char *text, size_t bytes, struct command *command)
{
    char *rest = NULL;
    if (bytes >= sizeof command->text)
        return false;
    memcpy(command->text, text, bytes);
    command->text[bytes] = '\0';
    command->count = 0;
    for (char *word = strtok_r(command->text, " \t", &rest);
         word != NULL && command->count < WORDS_MAX; word = strtok_r(NULL, " \t", &rest))
        command->words[command->count++] = word;
    if (command->count == 0 || !is_there(command->words[0]))
        return false;
    command->window = !is_for_terminals(command->words[0]);
    return true;
}

/* false: there is none. */
static bool find(struct command *command)
{
    static const char desktop[] = "xdg-open:x-www-browser";
    const char *display = getenv("DISPLAY");
    const char *wayland = getenv("WAYLAND_DISPLAY");
    const char *named = getenv("BROWSER");
    const bool ours = named == NULL || named[0] == '\0';
    if (ours && (display == NULL || display[0] == '\0') && (wayland == NULL || wayland[0] == '\0'))
        return false;
    if (!ours && strlen(named) < sizeof command->text && is_program(named)) {
        /* A path may have a space or a colon in it. */
        memcpy(command->text, named, strlen(named) + 1);
        command->words[0] = command->text;
        command->count = 1;
        command->window = !is_for_terminals(named);
        return true;
    }
    for (const char *one = ours ? desktop : named; one[0] != '\0';) {
        const size_t bytes = strcspn(one, ":");
        if (take(one, bytes, command))
            return true;
        one += bytes + (one[bytes] == ':');
    }
    return false;
}

cli_browser cli_browser_look(void)
{
    struct command command;
    if (!find(&command))
        return CLI_BROWSER_NONE;
    return command.window ? CLI_BROWSER_WINDOW : CLI_BROWSER_TEXT;
}

cli_browser cli_browser_here(void)
{
    const char *named = getenv("BROWSER");
    const bool away = getenv("SSH_CONNECTION") != NULL || getenv("SSH_TTY") != NULL;
    return away && (named == NULL || named[0] == '\0') ? CLI_BROWSER_NONE : cli_browser_look();
}

/* ---- starting it ---- */

static bool place(struct command *command, const char *address)
{
    int bytes = 0;
    bool placed = false;
    for (size_t i = 1; !placed && i < command->count; i++) {
        const char *mark = strstr(command->words[i], "%s");
        if (mark == NULL)
            continue;
        bytes = snprintf(command->placed, sizeof command->placed, "%.*s%s%s",
                         (int)(mark - command->words[i]), command->words[i], address, mark + 2);
        command->words[i] = command->placed;
        placed = true;
    }
    if (!placed)
        command->words[command->count++] = address;
    command->words[command->count] = NULL;
    return bytes >= 0 && (size_t)bytes < sizeof command->placed;
}

/* The caller may have blocked signals that a program on a terminal needs, and ignores some. */
static bool spawn(const char *program, const char *const *arguments,
                  const posix_spawn_file_actions_t *files, pid_t *pid_out)
{
    posix_spawnattr_t attributes;
    sigset_t none, usual;
    if (posix_spawnattr_init(&attributes) != 0)
        return false;
    (void)sigemptyset(&none);
    (void)sigemptyset(&usual);
    (void)sigaddset(&usual, SIGPIPE);
    (void)sigaddset(&usual, SIGINT);
    (void)sigaddset(&usual, SIGQUIT);
    /* The list is not const in the interface, but nothing writes to it. */
    const bool started = posix_spawnattr_setsigmask(&attributes, &none) == 0 &&
                         posix_spawnattr_setsigdefault(&attributes, &usual) == 0 &&
                         posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF |
                                                                   POSIX_SPAWN_SETSIGMASK) == 0 &&
                         posix_spawnp(pid_out, program, files, &attributes,
                                      (char *const *)(uintptr_t)arguments, environ) == 0;
    (void)posix_spawnattr_destroy(&attributes);
    return started;
}

/* Whether it ended well. */
static bool ended(pid_t pid)
{
    int how = 0;
    while (waitpid(pid, &how, 0) < 0)
        if (errno != EINTR)
            return false;
    return WIFEXITED(how) && WEXITSTATUS(how) == 0;
}

/* What it prints is not for this terminal.  A shell in between starts it and ends at once, so that no
 * process is left to be waited for; the words are its arguments, not a part of its text. */
static bool start_window(const struct command *command)
{
    const char *arguments[WORDS_MAX + 8] = {"sh", "-c", "\"$@\" &", "sh"};
    posix_spawn_file_actions_t files;
    pid_t pid = 0;
    for (size_t i = 0; i < command->count; i++)
        arguments[4 + i] = command->words[i];
    if (posix_spawn_file_actions_init(&files) != 0)
        return false;
    const bool started =
        posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0) == 0 &&
        posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0) == 0 &&
        posix_spawn_file_actions_adddup2(&files, 1, 2) == 0 &&
        spawn("/bin/sh", arguments, &files, &pid);
    (void)posix_spawn_file_actions_destroy(&files);
    return started && ended(pid);
}

/* Ctrl-C is the browser's while it runs. */
static bool run_text(const struct command *command)
{
    pid_t pid = 0;
    void (*interrupt)(int) = signal(SIGINT, SIG_IGN);
    void (*quit)(int) = signal(SIGQUIT, SIG_IGN);
    const bool fine = spawn(command->words[0], command->words, NULL, &pid) && ended(pid);
    (void)signal(SIGQUIT, quit);
    (void)signal(SIGINT, interrupt);
    return fine;
}

bool cli_browser_open(const char *address)
{
    struct command command;
    if (!find(&command) || !place(&command, address))
        return false;
    return command.window ? start_window(&command) : run_text(&command);
}
