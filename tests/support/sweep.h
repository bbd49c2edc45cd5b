/* sweep.h - a scenario runs with its first allocation failing, then with its second, and so on.
 *
 *     for (struct tide_mem_faulty mem = {0}; sweep_next(&mem);) {
 *         const tide_status rc = scenario(&mem.base);
 *         assert_swept(mem, rc);
 *     }
 *
 * The last run is the one in which no allocation failed.  The loop ends because a scenario makes
 * finitely many allocations. */
#ifndef TIDE_TESTS_SUPPORT_SWEEP_H
#define TIDE_TESTS_SUPPORT_SWEEP_H

#include "base/mem.h"

static inline bool sweep_next(struct tide_mem_faulty *mem)
{
    const bool first = mem->base.resize == NULL;
    if (!first && !mem->fired)
        return false;
    tide_mem_faulty_once(mem, first ? 0 : mem->fail_at + 1);
    return true;
}

/* Nothing leaked, and a failed allocation is reported as one. */
#define assert_swept(mem, rc)                                                                      \
    do {                                                                                           \
        assert_int_equal((mem).bytes_live, 0);                                                     \
        assert_int_equal(rc, (mem).fired ? TIDE_NO_MEMORY : TIDE_OK);                              \
    } while (0)

#endif
