/* probe.h - two shared libraries for late_test.c, which is linked with neither: liblate_probe.so, and
 * liblate_absent.so, which is not found when the test runs. */
#ifndef TIDE_TESTS_LATE_PROBE_H
#define TIDE_TESTS_LATE_PROBE_H

#include <stddef.h>

struct probe_large { /* too large for registers */
    long value[4];
};

long probe_integers(long a, long b, long c, long d, long e, long f, long g, long h, long i);
double probe_doubles(double a, double b, double c, double d, double e, double f, double g, double h,
                     double i);
__attribute__((format(printf, 3, 4))) int probe_print(char *out, size_t bytes, const char *form,
                                                      ...);
struct probe_large probe_large_of(long first);

int probe_absent(void);

#endif
