/* archive_fixture.h - what every file of the tests of the archive needs: an archive in a
 * temporary directory, short ways to put mail into it and to look at it, mail made from a
 * seed, and a simple index.  Each test begins with an empty directory of its own. */
#ifndef TIDE_TESTS_ARCHIVE_FIXTURE_H
#define TIDE_TESTS_ARCHIVE_FIXTURE_H

#include "mail/archive/archive.h"
#include "mail/mime/message.h"
#include "mail/archive/shard.h"

#include "base/rng.h"
#include "support/scale.h"
#include "support/ok.h"
#include "support/test.h"

#include <unistd.h>

static const int64_t year_2019 = 1546300800000;
static const int64_t year_2020 = 1577836800000;

/* ---- an archive ---- */

struct fixture {
    tide_world *world;
    char dir[64];
    struct tide_archive_options options;
    tide_archive *archive;
    tide_error err;
};

int set_up(void **state);
int set_up_opened(void **state);
int tear_down(void **state);
#define CASE(name)   TEST_ON(name, struct fixture *f, set_up, tear_down)
#define OPENED(name) TEST_ON(name, struct fixture *f, set_up_opened, tear_down)

void open_archive(struct fixture *f);
void close_archive(struct fixture *f); /* tear_down() closes what is still open */
void reopen(struct fixture *f);
void reopen_to_read(struct fixture *f);

struct tide_incoming mail(const char *id, int64_t internal_ms, tide_text raw);
void put(struct fixture *f, const struct tide_incoming *incoming);
void put_text(struct fixture *f, const char *id, int64_t internal_ms, const char *raw);
/* Puts something small that covers everything before it. */
void sync_all(struct fixture *f);

/* ---- looking at it ---- */

void assert_raw(struct fixture *f, const char *id, tide_text raw);
void assert_labels(struct fixture *f, const char *id, const char *wanted);
/* One number from a shard, through SQLite alone. */
int64_t ask(struct fixture *f, const char *shard, const char *sql);

/* What the last verification found. */
extern size_t damages;
extern struct tide_damage last_damage;
void count_damage(const struct tide_damage *damage, void *arg);
void assert_sound(struct fixture *f, uint64_t messages);

/* A walk that checks the order (ARC4). */
struct walked {
    struct fixture *f;
    uint64_t count;
    int64_t last_ms;
    int64_t from_ms, to_ms;
    uint64_t stop_after;
    bool read_too;
    bool unordered;
};

bool walk_on(const struct tide_stored *stored, void *arg);
uint64_t walk(struct fixture *f, int64_t from_ms, int64_t to_ms, uint64_t stop_after);

/* ---- mail from a seed ---- */

/* Base64 as a mailer writes it, character by character: nothing shared with the
 * code that is tested. */
void add_base64(tide_buf *out, const uint8_t *bytes, size_t count, size_t line, const char *eol);
void random_bytes(tide_rng *rng, uint8_t *bytes, size_t count);
/* Something like mail, whole or broken, with base64 of every make in it. */
void make_mail(tide_rng *rng, tide_buf *out);

/* ---- an index ---- */

/* Reads "Subject:", "From:", "To:", an empty line, text; refuses what begins with
 * "unreadable". */
extern const struct tide_indexer simple_indexer;
extern uint64_t parsed_count; /* messages that it was given */
extern const char letter[];   /* one that it reads whole */

#endif
