/* busy.c - what long commands share: interrupt, progress line, free disk space. */
#include "cli/cli.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

enum { PROGRESS_MS = 200 };

static tide_cancel interrupted;

/* Only sets the reason: commands poll this token, none sleeps on it. */
static void on_signal(int number)
{
    __atomic_store_n(&interrupted.reason, (int)TIDE_CANCEL_USER, __ATOMIC_RELEASE);
    (void)signal(number, SIG_DFL);
}

const tide_cancel *cli_interruptible(struct cli *cli)
{
    if (cli->cancel != NULL)
        return cli->cancel;
    __atomic_store_n(&interrupted.reason, (int)TIDE_CANCEL_NONE, __ATOMIC_RELEASE);
    (void)signal(SIGINT, on_signal);
    (void)signal(SIGTERM, on_signal);
    return &interrupted;
}

bool cli_interrupted(const struct cli *cli)
{
    const tide_cancel *cancel = cli->cancel != NULL ? cli->cancel : &interrupted;
    return __atomic_load_n(&cancel->reason, __ATOMIC_ACQUIRE) != TIDE_CANCEL_NONE;
}

uint64_t cli_free_min(const struct cli *cli)
{
    return tide_setting_u64(cli->settings, TIDE_SET_DISK_FREE_MIN);
}

void cli_progress(struct cli *cli, const char *format, ...)
{
    const uint64_t now_ms = tide_world_now_ms(cli->world);
    if (format == NULL) {
        if (cli->progress_ms != 0)
            (void)fprintf(stderr, "\r\033[K");
        cli->progress_ms = 0;
        return;
    }
    if (cli->quiet || (cli->progress_ms != 0 && now_ms - cli->progress_ms < PROGRESS_MS) ||
        isatty(STDERR_FILENO) != 1)
        return;
    va_list args;
    va_start(args, format);
    (void)fprintf(stderr, "\r\033[K");
    (void)vfprintf(stderr, format, args);
    va_end(args);
    cli->progress_ms = now_ms;
}
