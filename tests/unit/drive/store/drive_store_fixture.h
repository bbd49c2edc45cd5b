/* drive_store_fixture.h - the state of one drive in memory, and what happens to it in a line. */
#ifndef TIDE_TESTS_DRIVE_STORE_FIXTURE_H
#define TIDE_TESTS_DRIVE_STORE_FIXTURE_H

#include "db/db.h"
#include "drive/store/store.h"
#include "support/heap.h"
#include "support/ok.h"
#include "support/test.h"

struct fixture {
    sqlite3 *handle;
    tide_rows db;
    tide_error err;
    struct tide_drive_loaded loaded;
};

extern const struct tide_drive_home home;

int setup(void **state);
int teardown(void **state);
struct tide_drive_seen seen(const char *id, const char *parent, const char *name, uint64_t content);
struct tide_drive_seen tombstone(const char *id);
void page(struct fixture *f, const struct tide_drive_seen *items, size_t count, bool last);
void round_of(struct fixture *f, tide_drive_round kind, const struct tide_drive_seen *items,
              size_t count);
void load(struct fixture *f, uint64_t now_ms);
const struct tide_drive_remote *remote(struct fixture *f, const char *id);
uint64_t number(struct fixture *f, const char *sql);
struct tide_drive_found found_of(uint64_t parent, const char *name, uint64_t content);
uint64_t put(struct fixture *f, uint64_t parent, const char *name, uint64_t content);
/* A scan finds that the entry has this state. */
void find_state(struct fixture *f, uint64_t row, int state, uint64_t now_ms);
/* Everything that is new on both sides becomes baseline. */
void agree(struct fixture *f);
/* d/x and y, on both sides and in the baseline. */
void two_files(struct fixture *f, uint64_t rows[3]);
bool is_due(struct fixture *f, uint64_t now_ms);
/* As after a plan that found nothing to do. */
void planned(struct fixture *f, uint64_t now_ms);

#endif
