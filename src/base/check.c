#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>

_Noreturn void tide_assert_failed(const char *condition, const char *file, int line)
{
    (void)fprintf(stderr, "tidemark: broken invariant: %s (%s:%d)\n", condition, file, line);
    (void)fflush(stderr);
    abort();
}

/* The list only grows.  The thread that flips `listed` from 0 to 1 links the mark, so each mark
 * enters once. */
static struct tide_mark *marks;

void tide_mark_hit(struct tide_mark *mark)
{
    __atomic_store_n(&mark->seen, 1, __ATOMIC_RELAXED);
    if (__atomic_exchange_n(&mark->listed, 1, __ATOMIC_ACQ_REL))
        return;
    struct tide_mark *head = __atomic_load_n(&marks, __ATOMIC_ACQUIRE);
    do {
        mark->next = head;
    } while (!__atomic_compare_exchange_n(&marks, &head, mark, false, __ATOMIC_ACQ_REL,
                                          __ATOMIC_ACQUIRE));
}

void tide_marks_each(void (*visit)(const char *name, void *arg), void *arg)
{
    for (struct tide_mark *mark = __atomic_load_n(&marks, __ATOMIC_ACQUIRE); mark != NULL;
         mark = mark->next)
        visit(mark->name, arg);
}
