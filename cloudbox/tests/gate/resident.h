/* resident.h - how much memory a process holds, and how much more it may hold. */
#ifndef BOX_TESTS_RESIDENT_H
#define BOX_TESTS_RESIDENT_H

#include <stdio.h>
#include <sys/types.h>

/* A sanitizer keeps what was freed for a while, to catch its use. */
#if defined(__SANITIZE_ADDRESS__)
#define RESIDENT_SLACK_KIB (600L << 10)
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RESIDENT_SLACK_KIB (600L << 10)
#endif
#endif
#ifndef RESIDENT_SLACK_KIB
#define RESIDENT_SLACK_KIB 0L
#endif

/* -1: there is no such process. */
static inline long resident_kib(pid_t pid)
{
    char text[256];
    long kib = -1;
    (void)snprintf(text, sizeof text, "/proc/%d/status", (int)pid);
    FILE *in = fopen(text, "re");
    if (in == NULL)
        return -1;
    while (fgets(text, sizeof text, in) != NULL)
        if (sscanf(text, "VmRSS: %ld kB", &kib) == 1)
            break;
    (void)fclose(in);
    return kib;
}

#endif
