/* check.h - assertions that stay on in release, and marks on rare paths.
 *
 * Assert what we control, validate what we are given: arguments, results and
 * invariants are asserted; replies, rows and files get a status.
 */
#ifndef TIDE_BASE_CHECK_H
#define TIDE_BASE_CHECK_H

#include <stdbool.h>
#include <stddef.h>

_Noreturn void tide_assert_failed(const char *condition, const char *file, int line);

#define TIDE_ASSERT(condition)                                                                     \
    ((condition) ? (void)0 : tide_assert_failed(#condition, __FILE__, __LINE__))

/* Marks a path that is rare in production and must be covered by the simulation: the campaign fails
 * if a mark was never reached.  Costs one relaxed store. */
struct tide_mark {
    const char *name;
    struct tide_mark *next;
    unsigned char seen;
    unsigned char listed;
};

void tide_mark_hit(struct tide_mark *mark);
/* Calls `visit` for every mark that was reached at least once. */
void tide_marks_each(void (*visit)(const char *name, void *arg), void *arg);

#define TIDE_SEEN(text)                                                                            \
    do {                                                                                           \
        static struct tide_mark tide_mark_here = {text, NULL, 0, 0};                               \
        if (!__atomic_load_n(&tide_mark_here.seen, __ATOMIC_RELAXED))                              \
            tide_mark_hit(&tide_mark_here);                                                        \
    } while (0)

#endif
