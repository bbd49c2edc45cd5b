#include "mail/archive/shelf.h"

#include "base/check.h"
#include "base/rng.h"
#include "mail/archive/inside.h"

enum { PLACES_MAX = 64 }; /* in use or idle; what has no place is opened for one call */

struct place {
    tide_archive *archive; /* NULL: free */
    size_t users;
    size_t shards; /* open, when the last user gave it back */
    bool doubtful; /* closed when nobody uses it any more */
    bool taken;    /* since the last rest */
};

struct tide_shelf {
    tide_mem *mem;
    tide_world *world;
    tide_lock *lock; /* guards the rest; not held while an archive is opened, read or closed */
    struct place places[PLACES_MAX];
    tide_rng rng;
    uint64_t rest_us;
    uint64_t rest_at_us; /* TIDE_NEVER: there is no archive */
    bool stopping;
    tide_cond *news; /* wakes the thread: rest_at_us or stopping changed */
    tide_thread *thread;
};

/* ---- places, with the lock ---- */

static struct place *place_of_dir(tide_shelf *shelf, const struct tide_archive_options *options)
{
    for (size_t i = 0; i < PLACES_MAX; i++) {
        struct place *place = &shelf->places[i];
        if (place->archive != NULL && !place->doubtful &&
            strcmp(place->archive->options.dir, options->dir) == 0 &&
            strcmp(place->archive->options.account, options->account) == 0)
            return place;
    }
    return NULL;
}

static struct place *place_of(tide_shelf *shelf, const tide_archive *archive)
{
    for (size_t i = 0; i < PLACES_MAX; i++)
        if (shelf->places[i].archive == archive)
            return &shelf->places[i];
    return NULL;
}

/* Empties a place; the caller closes the archive without the lock. */
static tide_archive *place_empty(struct place *place)
{
    tide_archive *archive = place->archive;
    *place = (struct place){.archive = NULL};
    return archive;
}

/* One that nobody uses, at random (SLF1), and how many shards all of those have open.  NULL: there is
 * none. */
static struct place *idle_draw(tide_shelf *shelf, size_t *shards_out)
{
    struct place *drawn = NULL;
    uint64_t idle = 0;
    *shards_out = 0;
    for (size_t i = 0; i < PLACES_MAX; i++) {
        struct place *place = &shelf->places[i];
        if (place->archive == NULL || place->users > 0)
            continue;
        *shards_out += place->shards;
        if (tide_rng_below(&shelf->rng, ++idle) == 0)
            drawn = place;
    }
    return drawn;
}

static void rest_plan(tide_shelf *shelf)
{
    bool any = false;
    for (size_t i = 0; i < PLACES_MAX; i++)
        any = any || shelf->places[i].archive != NULL;
    shelf->rest_at_us = any ? tide_world_now_us(shelf->world) + shelf->rest_us : TIDE_NEVER;
}

/* ---- taking and giving back ---- */

static tide_archive *known_take(tide_shelf *shelf, const struct tide_archive_options *options)
{
    tide_archive *archive = NULL;
    tide_lock_take(shelf->world, shelf->lock);
    struct place *place = place_of_dir(shelf, options);
    if (place != NULL) {
        place->users++;
        place->taken = true;
        archive = place->archive;
    }
    tide_lock_drop(shelf->world, shelf->lock);
    return archive;
}

/* Two threads may open the same one: the second is not kept. */
static void opened_put(tide_shelf *shelf, tide_archive *archive)
{
    tide_archive *closing = NULL;
    size_t shards = 0;
    tide_lock_take(shelf->world, shelf->lock);
    if (place_of_dir(shelf, &archive->options) == NULL) {
        struct place *place = place_of(shelf, NULL);
        if (place == NULL && (place = idle_draw(shelf, &shards)) != NULL)
            closing = place_empty(place);
        if (place != NULL)
            *place = (struct place){.archive = archive, .users = 1, .taken = true};
        if (place != NULL && shelf->rest_at_us == TIDE_NEVER) {
            rest_plan(shelf);
            tide_cond_wake_all(shelf->world, shelf->news);
        }
    }
    tide_lock_drop(shelf->world, shelf->lock);
    (void)tide_archive_close(closing, NULL);
}

static void doubt(tide_shelf *shelf, tide_archive *archive)
{
    tide_lock_take(shelf->world, shelf->lock);
    place_of(shelf, archive)->doubtful = true;
    tide_lock_drop(shelf->world, shelf->lock);
    tide_shelf_give(shelf, archive);
}

tide_status tide_shelf_take(tide_shelf *shelf, const struct tide_archive_options *options,
                            tide_mem *mem, tide_archive **archive_out, tide_error *err)
{
    TIDE_ASSERT(options->read_only);
    if (shelf == NULL)
        return tide_archive_open(options, mem, archive_out, err);
    tide_archive *archive = known_take(shelf, options);
    if (archive != NULL) { /* SLF2; what is wrong now, opening it anew says best */
        if (tide_archive_look(archive, NULL) == TIDE_OK) {
            *archive_out = archive;
            return TIDE_OK;
        }
        doubt(shelf, archive);
    }
    struct tide_archive_options keeping = *options;
    keeping.lean = true; /* many stay open; the system caches their pages, too */
    TIDE_TRY(tide_archive_open(&keeping, shelf->mem, &archive, err));
    opened_put(shelf, archive);
    *archive_out = archive;
    return TIDE_OK;
}

/* With the lock.  Returns what to close. */
static tide_archive *put_back(struct place *place)
{
    const bool sound = tide_archive_is_sound(place->archive, &place->shards); /* SLF3 */
    place->users--;
    place->doubtful = place->doubtful || !sound;
    return place->users == 0 && place->doubtful ? place_empty(place) : NULL;
}

/* SLF1. */
static void close_some(tide_shelf *shelf)
{
    tide_archive *closing = NULL;
    do {
        size_t shards = 0;
        tide_lock_take(shelf->world, shelf->lock);
        struct place *drawn = idle_draw(shelf, &shards);
        closing = shards > TIDE_SHELF_SHARDS_MAX ? place_empty(drawn) : NULL;
        tide_lock_drop(shelf->world, shelf->lock);
        (void)tide_archive_close(closing, NULL);
    } while (closing != NULL);
}

void tide_shelf_give(tide_shelf *shelf, tide_archive *archive)
{
    tide_archive *closing = archive;
    if (shelf != NULL && archive != NULL) {
        tide_lock_take(shelf->world, shelf->lock);
        struct place *place = place_of(shelf, archive);
        if (place != NULL)
            closing = put_back(place);
        tide_lock_drop(shelf->world, shelf->lock);
        close_some(shelf);
    }
    (void)tide_archive_close(closing, NULL);
}

/* ---- resting (SLF4) ---- */

/* Takes it if it stays; NULL: it is free now, and closed. */
static tide_archive *rest_take(tide_shelf *shelf, struct place *place)
{
    tide_archive *closing = NULL;
    tide_lock_take(shelf->world, shelf->lock);
    if (place->archive != NULL && place->users == 0 && !place->taken)
        closing = place_empty(place);
    tide_archive *stays = place->archive;
    place->users += stays != NULL;
    place->taken = false;
    tide_lock_drop(shelf->world, shelf->lock);
    (void)tide_archive_close(closing, NULL);
    return stays;
}

void tide_shelf_rest(tide_shelf *shelf)
{
    for (size_t i = 0; i < PLACES_MAX; i++) {
        tide_archive *archive = rest_take(shelf, &shelf->places[i]);
        if (archive != NULL && tide_archive_let_go(archive, NULL) == TIDE_OK)
            tide_shelf_give(shelf, archive);
        else if (archive != NULL)
            doubt(shelf, archive);
    }
}

static void rest_main(void *arg)
{
    tide_shelf *shelf = arg;
    tide_lock_take(shelf->world, shelf->lock);
    while (!shelf->stopping) {
        if (tide_world_now_us(shelf->world) < shelf->rest_at_us) {
            (void)tide_cond_wait(shelf->world, shelf->news, shelf->lock, shelf->rest_at_us);
            continue;
        }
        tide_lock_drop(shelf->world, shelf->lock);
        tide_shelf_rest(shelf);
        tide_lock_take(shelf->world, shelf->lock);
        rest_plan(shelf);
    }
    tide_lock_drop(shelf->world, shelf->lock);
}

/* ---- start and end ---- */

static tide_status shelf_start(tide_shelf *shelf, tide_error *err)
{
    if (tide_lock_new(shelf->world, &shelf->lock) != TIDE_OK ||
        tide_cond_new(shelf->world, &shelf->news) != TIDE_OK)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for open archives");
    return tide_world_thread(shelf->world, "archives", rest_main, shelf, &shelf->thread, err);
}

tide_status tide_shelf_new(tide_world *world, tide_mem *mem, uint64_t rest_ms,
                           tide_shelf **shelf_out, tide_error *err)
{
    tide_shelf *shelf = tide_mem_new(mem, sizeof *shelf);
    if (shelf == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for open archives");
    shelf->mem = mem;
    shelf->world = world;
    shelf->rng = tide_rng_seeded(1);
    shelf->rest_us = rest_ms * 1000;
    shelf->rest_at_us = TIDE_NEVER;
    const tide_status rc = shelf_start(shelf, err);
    if (rc == TIDE_OK)
        *shelf_out = shelf;
    else
        tide_shelf_free(shelf);
    return rc;
}

static void thread_stop(tide_shelf *shelf)
{
    tide_lock_take(shelf->world, shelf->lock);
    shelf->stopping = true;
    tide_cond_wake_all(shelf->world, shelf->news);
    tide_lock_drop(shelf->world, shelf->lock);
    tide_world_join(shelf->world, shelf->thread);
}

void tide_shelf_free(tide_shelf *shelf)
{
    if (shelf == NULL)
        return;
    if (shelf->thread != NULL)
        thread_stop(shelf);
    for (size_t i = 0; i < PLACES_MAX; i++) {
        TIDE_ASSERT(shelf->places[i].users == 0);
        (void)tide_archive_close(shelf->places[i].archive, NULL);
    }
    if (shelf->news != NULL)
        tide_cond_free(shelf->world, shelf->news);
    if (shelf->lock != NULL)
        tide_lock_free(shelf->world, shelf->lock);
    tide_mem_free(shelf->mem, shelf, sizeof *shelf);
}
