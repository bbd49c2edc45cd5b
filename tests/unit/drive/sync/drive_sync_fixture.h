/* drive_sync_fixture.h - a drive on a real engine: its folder is a real one, the cloud in a box answers
 * through the simulated network, and the clock is simulated, so that ten seconds cost nothing. */
#ifndef TIDE_TESTS_DRIVE_SYNC_FIXTURE_H
#define TIDE_TESTS_DRIVE_SYNC_FIXTURE_H

#include "drive/sync/sync.h"
#include "sim.h"
#include "sim_cloud.h"
#include "support/heap.h"
#include "support/ok.h"
#include "support/test.h"

#define ME "me@example.org"

struct fixture {
    char dir[64], root[80];
    tide_sim *sim;
    tide_world *world;
    tide_sim_cloud *cloud;
    tide_engine *engine;
    tide_secrets *secrets;
    tide_drive *drive;
    struct tide_drive_row row;
    tide_error err;
    uint64_t calls;                 /* to the server, batched ones counted as one */
    uint64_t sent_bytes, got_bytes; /* of contents */
    /* Before the server sees a call; NULL: nothing.  It must not wait. */
    void (*on_call)(struct fixture *f, const struct tide_request *request);
};

struct fixture *begin(void);
struct fixture *begin_in(uint64_t seed, const struct tide_sim_options *options);
/* `network` gets the fixture. */
struct fixture *begin_with(uint64_t seed, const struct tide_sim_options *options,
                           tide_sim_provide *network);
void finish(struct fixture *f);
#define CASE(name) TEST_OF(name, struct fixture *f, begin(), finish)

/* A process: the engine with the drive.  Returns statuses, because the world may die. */
tide_status life_begin(struct fixture *f);
void life_end(struct fixture *f);
tide_status try_sync(struct fixture *f, bool full);
/* One that must succeed, without a failed job. */
void sync_now(struct fixture *f);
/* As a watcher asks for it. */
void sync_changed(struct fixture *f);
void sync_full(struct fixture *f);

/* The second user: online, */
void online(struct fixture *f, const char *what, const char *body); /* "put", "{\"path\":..}" */
void put_online(struct fixture *f, const char *path, const char *text);
/* and here. */
void put_here(struct fixture *f, const char *path, const char *text);
void make_here(struct fixture *f, const char *path);
void remove_here(struct fixture *f, const char *path);
void move_here(struct fixture *f, const char *from, const char *to);
bool is_here(struct fixture *f, const char *path);
void assert_here(struct fixture *f, const char *path, const char *text);

void make_here_again(struct fixture *f, const char *path); /* it may be there */
void ignore(struct fixture *f, const char *pattern);
void accept_deletions(struct fixture *f);
void set_mode(struct fixture *f, tide_drive_mode mode);
void fault(struct fixture *f, const char *rule);
void no_faults(struct fixture *f);
void pass(struct fixture *f, uint64_t seconds);

/* One line for each item, sorted: kind, size, hash, path.  The caller frees them. */
char *tree_online(struct fixture *f);
char *tree_here(struct fixture *f);
void assert_equal_trees(struct fixture *f);
unsigned temporaries(struct fixture *f);
uint64_t rows_of(struct fixture *f, const char *sql); /* a number; '@' is the drive's */

#endif
