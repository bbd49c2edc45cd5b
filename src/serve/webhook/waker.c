#include "serve/webhook/waker.h"

#include <stdio.h>
#include <string.h>

struct entry {
    char address[TIDE_PUSH_ADDRESS_BYTES_MAX + 1];              /* "": free */
    char history_id[sizeof((struct tide_push *)0)->history_id]; /* of the newest; for the log */
    uint32_t waiting;  /* times it was added since it was woken; 0: it only keeps the distance */
    uint64_t since_ms; /* of the first of them */
    uint64_t due_ms;
};

struct tide_waker {
    struct tide_waker_options options;
    tide_mem *mem;
    tide_thread *thread;
    tide_lock *lock; /* for all that follows */
    tide_cond *news;
    bool stopping;
    uint64_t woken, unknown;
    struct entry entries[TIDE_WAKER_ADDRESSES_MAX];
};

/* ---- entries; under the lock ---- */

/* The entry of the address, or a free one; NULL: none. */
static struct entry *entry_of(tide_waker *waker, const char *address, uint64_t now_ms)
{
    struct entry *vacant = NULL;
    for (size_t i = 0; i < TIDE_WAKER_ADDRESSES_MAX; i++) {
        struct entry *entry = &waker->entries[i];
        if (strcmp(entry->address, address) == 0)
            return entry;
        if (entry->address[0] == '\0' || (entry->waiting == 0 && entry->due_ms <= now_ms))
            vacant = entry;
    }
    return vacant;
}

static bool add(tide_waker *waker, const struct entry *wanted, uint64_t now_ms)
{
    struct entry *entry = entry_of(waker, wanted->address, now_ms);
    if (entry == NULL)
        return false;
    if (strcmp(entry->address, wanted->address) != 0)
        *entry = (struct entry){.due_ms = now_ms};
    if (entry->waiting == 0 || wanted->since_ms < entry->since_ms)
        entry->since_ms = wanted->since_ms;
    if (wanted->due_ms > entry->due_ms)
        entry->due_ms = wanted->due_ms;
    entry->waiting += wanted->waiting;
    memcpy(entry->address, wanted->address, sizeof entry->address);
    memcpy(entry->history_id, wanted->history_id, sizeof entry->history_id);
    return true;
}

/* One that is due; NULL: none, and *next_ms_out says when to look again. */
static struct entry *due(tide_waker *waker, uint64_t now_ms, uint64_t *next_ms_out)
{
    *next_ms_out = TIDE_NEVER;
    for (size_t i = 0; i < TIDE_WAKER_ADDRESSES_MAX; i++) {
        struct entry *entry = &waker->entries[i];
        if (entry->waiting == 0)
            continue;
        if (entry->due_ms <= now_ms)
            return entry;
        if (entry->due_ms < *next_ms_out)
            *next_ms_out = entry->due_ms;
    }
    return NULL;
}

/* ---- the thread ---- */

static void tell(tide_waker *waker, tide_log_level level, const char *event,
                 const struct entry *entry, const char *detail)
{
    tide_world *world = waker->options.world;
    tide_log_event(waker->options.log, level, tide_world_now_unix_ms(world), event,
                   TIDE_F_CSTR("account", entry->address),
                   TIDE_F_CSTR("history", entry->history_id), TIDE_F_U64("pushes", entry->waiting),
                   TIDE_F_U64("after_ms", tide_world_now_ms(world) - entry->since_ms),
                   TIDE_F_CSTR("detail", detail));
}

/* WKR2; under the lock. */
static void again(tide_waker *waker, struct entry *entry)
{
    const uint64_t now_ms = tide_world_now_ms(waker->options.world);
    entry->due_ms = now_ms + TIDE_WAKER_RETRY_MS;
    if (!add(waker, entry, now_ms))
        tell(waker, TIDE_LOG_WARN, "a push is forgotten: too many wait", entry, "");
}

/* Takes the lock away for the call. */
static void wake(tide_waker *waker, struct entry *entry)
{
    tide_world *world = waker->options.world;
    tide_error err = {TIDE_OK, 0, ""};
    struct entry taken = *entry;
    entry->waiting = 0;
    entry->due_ms = tide_world_now_ms(world) + TIDE_WAKER_APART_MS; /* WKR1 */
    tide_lock_drop(world, waker->lock);
    const tide_status rc = waker->options.wake(waker->options.arg, taken.address, &err);
    if (rc == TIDE_OK)
        tell(waker, TIDE_LOG_INFO, "woken by a push", &taken, "");
    else if (rc == TIDE_NOT_FOUND)
        tell(waker, TIDE_LOG_WARN, "a push for no account here", &taken, "");
    else if (rc != TIDE_STOPPED)
        tell(waker, TIDE_LOG_WARN, "a push woke nothing yet", &taken, err.text);
    tide_lock_take(world, waker->lock);
    if (rc == TIDE_OK)
        waker->woken += taken.waiting;
    else if (rc == TIDE_NOT_FOUND)
        waker->unknown += taken.waiting;
    else if (rc != TIDE_STOPPED)
        again(waker, &taken);
}

static void waker_main(void *arg)
{
    tide_waker *waker = arg;
    tide_world *world = waker->options.world;
    tide_lock_take(world, waker->lock);
    while (!waker->stopping) {
        uint64_t next_ms = TIDE_NEVER;
        struct entry *entry = due(waker, tide_world_now_ms(world), &next_ms);
        if (entry != NULL)
            wake(waker, entry);
        else if (tide_cond_wait(world, waker->news, waker->lock,
                                next_ms == TIDE_NEVER ? TIDE_NEVER : next_ms * 1000) ==
                 TIDE_STOPPED)
            break;
    }
    tide_lock_drop(world, waker->lock);
}

/* ---- for callers ---- */

bool tide_waker_add(tide_waker *waker, const char *address, const char *history_id)
{
    tide_world *world = waker->options.world;
    const uint64_t now_ms = tide_world_now_ms(world);
    struct entry wanted = {.waiting = 1, .since_ms = now_ms};
    (void)snprintf(wanted.address, sizeof wanted.address, "%s", address);
    (void)snprintf(wanted.history_id, sizeof wanted.history_id, "%s", history_id);
    tide_lock_take(world, waker->lock);
    const bool added = add(waker, &wanted, now_ms);
    tide_cond_wake_one(world, waker->news);
    tide_lock_drop(world, waker->lock);
    return added;
}

void tide_waker_count(tide_waker *waker, uint64_t *woken_out, uint64_t *unknown_out)
{
    tide_lock_take(waker->options.world, waker->lock);
    *woken_out = waker->woken;
    *unknown_out = waker->unknown;
    tide_lock_drop(waker->options.world, waker->lock);
}

/* ---- life ---- */

tide_status tide_waker_new(const struct tide_waker_options *options, tide_mem *mem,
                           tide_waker **waker_out, tide_error *err)
{
    tide_waker *waker = tide_mem_new(mem, sizeof *waker);
    if (waker == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for pushes");
    waker->options = *options;
    waker->mem = mem;
    tide_status rc = tide_lock_new(options->world, &waker->lock);
    if (rc == TIDE_OK)
        rc = tide_cond_new(options->world, &waker->news);
    rc = rc == TIDE_OK
             ? tide_world_thread(options->world, "webhook", waker_main, waker, &waker->thread, err)
             : tide_error_set(err, rc, "no memory for pushes");
    if (rc != TIDE_OK) {
        tide_waker_free(waker);
        return rc;
    }
    *waker_out = waker;
    return TIDE_OK;
}

void tide_waker_stop(tide_waker *waker)
{
    if (waker == NULL || waker->thread == NULL)
        return;
    tide_world *world = waker->options.world;
    tide_lock_take(world, waker->lock);
    waker->stopping = true;
    tide_cond_wake_all(world, waker->news);
    tide_lock_drop(world, waker->lock);
    tide_world_join(world, waker->thread);
    waker->thread = NULL;
}

void tide_waker_free(tide_waker *waker)
{
    if (waker == NULL)
        return;
    tide_waker_stop(waker);
    if (waker->news != NULL)
        tide_cond_free(waker->options.world, waker->news);
    if (waker->lock != NULL)
        tide_lock_free(waker->options.world, waker->lock);
    tide_mem_free(waker->mem, waker, sizeof *waker);
}
