#include "bench.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- clocks ---- */

static double clock_s(clockid_t clock)
{
    struct timespec time;
    (void)clock_gettime(clock, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

double now_s(void)
{
    return clock_s(CLOCK_MONOTONIC);
}

double cpu_s(void)
{
    return clock_s(CLOCK_PROCESS_CPUTIME_ID);
}

double thread_cpu_s(void)
{
    return clock_s(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t now_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

void nap_us(long us)
{
    (void)nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
}

/* ---- failures ---- */

_Noreturn void die(const char *what, const char *why)
{
    (void)fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, why);
    exit(1);
}

void expect(bool holds, const char *what)
{
    if (!holds)
        die("failed", what);
}

void must(tide_status rc, const char *what, const tide_error *err)
{
    if (rc != TIDE_OK)
        die(what, err != NULL && err->text[0] != '\0' ? err->text : tide_status_name(rc));
}

/* ---- figures ---- */

void figure(const char *name, double value, const char *unit, double ratio, const char *to)
{
    (void)printf("{\"name\":\"%s\",\"value\":%.6g,\"unit\":\"%s\"", name, value, unit);
    if (to != NULL)
        (void)printf(",\"ratio\":%.4g,\"to\":\"%s\"", ratio, to);
    (void)printf("}\n");
    (void)fflush(stdout);
}

void compared(const char *name, double value, const char *unit, double base, const char *to)
{
    figure(name, value, unit, base > 0 ? value / base : 0, base > 0 ? to : NULL);
}

static int number_order(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a;
    const uint64_t y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

double quantile_ms(uint64_t *samples_us, size_t count, size_t permille)
{
    qsort(samples_us, count, sizeof samples_us[0], number_order);
    const size_t at = count * permille / 1000;
    return (double)samples_us[at < count ? at : count - 1] / 1000;
}

size_t number(const char *text, size_t max)
{
    const size_t value = strtoul(text, NULL, 10);
    if (value == 0 || value > max)
        die(text, "not a number in the allowed range");
    return value;
}

/* ---- files ---- */

void dir_make(char dir[BENCH_PATH_BYTES])
{
    const char *temp = getenv("TMPDIR");
    (void)snprintf(dir, BENCH_PATH_BYTES, "%s/%s.XXXXXX", temp != NULL ? temp : "/tmp",
                   program_invocation_short_name);
    if (mkdtemp(dir) == NULL)
        die(dir, strerror(errno));
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    (void)info;
    (void)type;
    (void)walk;
    return remove(path);
}

void dir_remove(const char *dir)
{
    (void)nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

void build_path(const char *argv0, const char *name, char path[BENCH_PATH_BYTES])
{
    const char *slash = strrchr(argv0, '/');
    (void)snprintf(path, BENCH_PATH_BYTES, "%.*s../%s",
                   slash == NULL ? 0 : (int)(slash + 1 - argv0), argv0, name);
}

/* ---- programs ---- */

static double cpu_of(const struct rusage *usage)
{
    return (double)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) +
           (double)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) / 1e6;
}

static pid_t fork_checked(void)
{
    (void)fflush(NULL);
    const pid_t pid = fork();
    if (pid < 0)
        die("fork", strerror(errno));
    return pid;
}

struct cost run_program(const char *const args[], const char *log)
{
    const double begin_s = now_s();
    const pid_t pid = fork_checked();
    if (pid == 0) {
        const int out = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        (void)dup2(out, STDOUT_FILENO);
        (void)dup2(out, STDERR_FILENO);
        (void)execv(args[0], (char *const *)(uintptr_t)args);
        _exit(127);
    }
    int status = 0;
    struct rusage usage;
    expect(wait4(pid, &status, 0, &usage) == pid, "wait4");
    if (status != 0) {
        (void)fprintf(stderr, "%s: wait status %d; its output is in %s\n", args[0], status, log);
        exit(1);
    }
    return (struct cost){now_s() - begin_s, cpu_of(&usage), (double)usage.ru_maxrss / 1024};
}

struct server server_start(const char *const args[])
{
    int ends[2];
    expect(pipe(ends) == 0, "pipe");
    struct server server = {.pid = fork_checked()};
    if (server.pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* it does not outlive a benchmark that fails */
        (void)dup2(ends[1], STDOUT_FILENO);
        (void)close(ends[0]);
        (void)execv(args[0], (char *const *)(uintptr_t)args);
        _exit(127);
    }
    (void)close(ends[1]);
    server.out = fdopen(ends[0], "r");
    if (server.out == NULL || fscanf(server.out, "ready %127s", server.url) != 1)
        die(args[0], "does not start");
    return server;
}

double server_stop(struct server *server)
{
    struct rusage usage;
    (void)kill(server->pid, SIGTERM);
    expect(wait4(server->pid, NULL, 0, &usage) == server->pid, "wait4");
    (void)fclose(server->out);
    return cpu_of(&usage);
}
