/* bench.h - what the benchmarks share: clocks, figures, failures, temporary directories and
 * child processes.
 *
 * A failure prints a line with the program's name and exits with 1. */
#ifndef TIDE_BENCH_H
#define TIDE_BENCH_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

enum { BENCH_PATH_BYTES = 4096 };

double now_s(void); /* monotonic */
uint64_t now_us(void);
double cpu_s(void); /* user and system time of all threads of this process */
double thread_cpu_s(void);
void nap_us(long us); /* less than a second */

_Noreturn void die(const char *what, const char *why);
void expect(bool holds, const char *what);
void must(tide_status rc, const char *what, const tide_error *err);

/* Prints a JSON line: {"name","value","unit","ratio","to"}; `to` NULL: without a ratio. */
void figure(const char *name, double value, const char *unit, double ratio, const char *to);
/* The same with the ratio of `value` to `base`; base 0: without a ratio. */
void compared(const char *name, double value, const char *unit, double base, const char *to);
/* Sorts the samples; the share is in permille. */
double quantile_ms(uint64_t *samples_us, size_t count, size_t permille);
/* An argument between 1 and `max`. */
size_t number(const char *text, size_t max);

/* A new directory below $TMPDIR or /tmp. */
void dir_make(char dir[BENCH_PATH_BYTES]);
void dir_remove(const char *dir);

/* A file of the build directory, found from the path of this program. */
void build_path(const char *argv0, const char *name, char path[BENCH_PATH_BYTES]);

struct cost {
    double wall_s, cpu_s;
    double rss_mb;
};

/* Runs a program to the end with its output in the file `log`; an exit code but 0 is a failure. */
struct cost run_program(const char *const args[], const char *log);

struct server {
    pid_t pid;
    char url[128];
    FILE *out;
};

/* Starts tidemark-cloud on a free port; args[0] is its path. */
struct server server_start(const char *const args[]);
/* The CPU time that it used. */
double server_stop(struct server *server);

#endif
