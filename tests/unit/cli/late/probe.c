#include "probe.h"

#include <stdarg.h>
#include <stdio.h>

long probe_integers(long a, long b, long c, long d, long e, long f, long g, long h, long i)
{
    return a + 10 * (b + 10 * (c + 10 * (d + 10 * (e + 10 * (f + 10 * (g + 10 * (h + 10 * i)))))));
}

double probe_doubles(double a, double b, double c, double d, double e, double f, double g, double h,
                     double i)
{
    return a + 10 * (b + 10 * (c + 10 * (d + 10 * (e + 10 * (f + 10 * (g + 10 * (h + 10 * i)))))));
}

int probe_print(char *out, size_t bytes, const char *form, ...)
{
    va_list values;
    va_start(values, form);
    const int count = vsnprintf(out, bytes, form, values);
    va_end(values);
    return count;
}

struct probe_large probe_large_of(long first)
{
    return (struct probe_large){{first, first + 1, first + 2, first + 3}};
}
