/* copy.h - what a backup asks a system for (M17). */
#ifndef TIDE_SYSTEM_COPY_H
#define TIDE_SYSTEM_COPY_H

#include "world/world.h"

/* One entry of archive/ to be copied. */
struct tide_system_copy {
    tide_world *world;
    tide_mem *mem;
    const char *name, *from, *to;
    uint64_t free_min_bytes; /* to be left on the disk */
    const tide_cancel *cancel;
    void (*progress)(const char *file, uint64_t bytes, void *arg);
    void *progress_arg;
};
struct tide_system_copied {
    uint64_t files; /* copied */
    uint64_t same;  /* not copied: the copy has them */
    uint64_t bytes; /* of the copied ones */
    uint64_t units; /* messages, rows: see `unit` */
};

#endif
