#include "cli/log_file.h"
#include "engine/tuning.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

struct cli_log_file {
    tide_log log;
    struct cli *cli;
    pthread_mutex_t lock; /* lines come from every thread of the engine */
    int fd;               /* -1: not open */
    uint64_t bytes;       /* of the file; other processes may have added more */
    uint64_t bytes_max;
    unsigned files_max;
};

void cli_log_path(const struct cli *cli, unsigned number, char path[CLI_PATH_BYTES + 32])
{
    if (number == 0)
        (void)snprintf(path, CLI_PATH_BYTES + 32, "%s/" CLI_LOG_NAME, cli->state_dir);
    else
        (void)snprintf(path, CLI_PATH_BYTES + 32, "%s/" CLI_LOG_NAME ".%u", cli->state_dir, number);
}

static void open_file(struct cli_log_file *file)
{
    char path[CLI_PATH_BYTES + 32];
    struct stat known = {.st_size = 0};
    cli_log_path(file->cli, 0, path);
    file->fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    file->bytes = file->fd >= 0 && fstat(file->fd, &known) == 0 ? (uint64_t)known.st_size : 0;
}

/* Whether the path still names our file: another process may have renamed it. */
static bool still_ours(const struct cli_log_file *file, const char *path)
{
    struct stat named, ours;
    return stat(path, &named) == 0 && fstat(file->fd, &ours) == 0 && named.st_ino == ours.st_ino &&
           named.st_dev == ours.st_dev;
}

static void set_aside(struct cli_log_file *file)
{
    char from[CLI_PATH_BYTES + 32];
    char to[CLI_PATH_BYTES + 32];
    cli_log_path(file->cli, 0, from);
    if (still_ours(file, from)) {
        for (unsigned number = file->files_max; number > 0; number--) {
            cli_log_path(file->cli, number - 1, from);
            cli_log_path(file->cli, number, to);
            (void)rename(from, to); /* fails when there is no such file yet */
        }
    }
    (void)close(file->fd);
    open_file(file);
}

/* A line that cannot be written is lost: a log cannot report its own errors, and no thread may
 * wait for it. */
static void write_line(void *arg, const char *line, size_t bytes)
{
    struct cli_log_file *file = arg;
    (void)pthread_mutex_lock(&file->lock);
    if (file->fd < 0)
        open_file(file);
    if (file->fd >= 0 && file->bytes > 0 && file->bytes + bytes > file->bytes_max)
        set_aside(file);
    ssize_t written = -1;
    do
        written = file->fd < 0 ? 0 : write(file->fd, line, bytes);
    while (written < 0 && errno == EINTR);
    file->bytes += written > 0 ? (uint64_t)written : 0;
    (void)pthread_mutex_unlock(&file->lock);
}

tide_log *cli_log_file(struct cli *cli)
{
    if (cli->log_file != NULL)
        return &cli->log_file->log;
    struct cli_log_file *file = tide_mem_new(cli->mem, sizeof *file);
    if (file == NULL)
        return NULL;
    file->cli = cli;
    file->fd = -1;
    const struct tide_tuning tuning = tide_tuning_engine(cli->settings);
    file->bytes_max = tuning.log_file_bytes;
    file->files_max = tuning.log_files;
    (void)pthread_mutex_init(&file->lock, NULL);
    tide_log_init(&file->log, cli->verbose ? TIDE_LOG_DEBUG : TIDE_LOG_INFO, TIDE_LOG_JSON, "-",
                  write_line, file);
    cli->log_file = file;
    return &file->log;
}

void cli_log_file_close(struct cli *cli)
{
    struct cli_log_file *file = cli->log_file;
    if (file == NULL)
        return;
    cli->log_file = NULL;
    if (file->fd >= 0)
        (void)close(file->fd);
    (void)pthread_mutex_destroy(&file->lock);
    tide_mem_free(cli->mem, file, sizeof *file);
}
