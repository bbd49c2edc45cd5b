/* search_fixture.h - what every file of the tests of searching needs: an archive in a
 * temporary directory, filled with mail from a seed, and what a search of it gave. */
#ifndef TIDE_TESTS_SEARCH_FIXTURE_H
#define TIDE_TESTS_SEARCH_FIXTURE_H

#include "mail/mime/message.h"
#include "mail/search/plan.h"

#include "base/rng.h"
#include "support/ok.h"
#include "support/test.h"

enum {
    MAILS_MAX = 1000,
    LABELS = 8,
    TOKENS_MAX = 128,
    TOKEN_BYTES = 16,
};

static const int64_t start_ms = 1514764800000; /* 2018 */
static const int64_t span_ms = (int64_t)3 * 365 * 86400 * 1000;

/* ---- mail, naively ---- */

struct tokens {
    char list[TOKENS_MAX][TOKEN_BYTES];
    size_t count;
    bool forms;  /* as what is wanted: other forms of it count */
    bool prefix; /* as what is wanted: the last one is the beginning of a word */
};
void tokens_add(struct tokens *tokens, const char *text);

struct mail {
    char id[32];
    char message_id[48];
    char from[80], to[80], cc[80], bcc[80], subject[120], text[400], file[40];
    char headers[200]; /* more of them, each line with its end */
    struct tokens in_from, in_to, in_cc, in_bcc, in_subject, in_text, in_files;
    bool labels[LABELS];
    bool indexed;
    int64_t ms;
    size_t bytes;
};

/* Whether a field of it, or any (0), has these words one after the other. */
bool mail_has(const struct mail *mail, int field, const struct tokens *wanted);

/* From a small stock, so that they meet. */
const char *word(tide_rng *rng);
const char *person(tide_rng *rng);
void words_write(tide_rng *rng, size_t count, char *room, size_t room_bytes);
void mail_make(tide_rng *rng, size_t number, struct mail *mail);

/* ---- an archive ---- */

struct fixture {
    tide_world *world;
    char dir[64];
    tide_archive *archive;
    tide_shards shards; /* beside the archive */
    struct mail *mails;
    size_t count;
    tide_rng rng;
    tide_error err;
};

int set_up(void **state);
int tear_down(void **state);
#define CASE(name) TEST_ON(name, struct fixture *f, set_up, tear_down)

void archive_open(struct fixture *f, bool read_only, uint64_t shard_bytes_max);
void mail_put(struct fixture *f, struct mail *mail);
void sync_all(struct fixture *f);
void index_all(struct fixture *f);
/* Opens an archive with `count` mails to be read; its years have parts that overlap. */
void fill(struct fixture *f, size_t count, size_t unindexed);

/* ---- searching ---- */

struct seen {
    struct fixture *f;
    size_t list[MAILS_MAX]; /* numbers of mails in the order in which they came */
    size_t count;
    uint64_t bytes;
    double rank_last;
    char snippet[1024];
};
/* For tide_search_run(); the argument is the struct. */
bool see(const struct tide_found *found, void *arg);
tide_query *parse(struct fixture *f, const char *text);
/* All pages of a search, of `limit` each. */
void search_all(struct fixture *f, struct tide_search search, struct seen *seen);

#endif
