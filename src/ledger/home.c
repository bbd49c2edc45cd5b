#include "ledger/home.h"

#include "world/process.h"

#include <stdlib.h>
#include <string.h>

enum { WAIT_US = 3000000, LOOK_US = 20000 };

static const char engine_mark[] = "engine, process";

static long pid_in(const char *holder)
{
    static const char mark[] = "process ";
    const char *at = strstr(holder, mark);
    return at == NULL ? 0 : strtol(at + sizeof mark - 1, NULL, 10);
}

tide_status tide_home_lock(tide_world *world, const char *path, const char *holder, bool engines,
                           tide_file_lock **lock_out, tide_error *err)
{
    const uint64_t give_up_us = tide_world_now_us(world) + WAIT_US;
    tide_error busy = {TIDE_OK, 0, ""};
    for (;;) {
        tide_status rc = tide_file_lock_take(world, path, tide_text_of(holder), lock_out, &busy);
        const uint64_t now_us = tide_world_now_us(world);
        const long pid = rc == TIDE_BUSY ? pid_in(busy.text) : 0;
        if (tide_process_is_stopped(pid))
            return tide_error_set(err, TIDE_BUSY, "%.100s, is stopped; `kill -CONT %ld` resumes it",
                                  busy.text, pid);
        if (rc != TIDE_OK && err != NULL)
            *err = busy;
        if (rc != TIDE_BUSY || now_us >= give_up_us ||
            (!engines && strstr(busy.text, engine_mark) != NULL))
            return rc;
        rc = tide_world_sleep_until(world, now_us + LOOK_US, NULL);
        if (rc != TIDE_OK)
            return tide_error_set(err, rc, "stopped while waiting for %.200s", path);
    }
}

bool tide_home_has_engine(tide_world *world, const char *path, const char *holder)
{
    tide_file_lock *lock = NULL;
    tide_error busy = {TIDE_OK, 0, ""};
    const tide_status rc = tide_file_lock_take(world, path, tide_text_of(holder), &lock, &busy);
    if (rc == TIDE_OK)
        tide_file_lock_drop(world, lock);
    return rc == TIDE_BUSY && strstr(busy.text, engine_mark) != NULL &&
           !tide_process_is_stopped(pid_in(busy.text));
}
