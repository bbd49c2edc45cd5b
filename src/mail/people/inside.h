/* inside.h - shared by the files of people: the file, and what a message adds to it.
 *
 *   people.c  the file: opening, statements, writing
 *   gather.c  from messages to scores, from the archive to the file
 *   find.c    looking for people */
#ifndef TIDE_MAIL_PEOPLE_INSIDE_H
#define TIDE_MAIL_PEOPLE_INSIDE_H

#include "base/map.h"
#include "db/db.h"
#include "mail/people/people.h"
#include "mail/search/plan.h"

enum {
    TIDE_PEOPLE_BEGIN,
    TIDE_PEOPLE_COMMIT,
    TIDE_PEOPLE_ROLLBACK,
    TIDE_PEOPLE_PERSON,
    TIDE_PEOPLE_PERSON_ADD,
    TIDE_PEOPLE_PERSON_NAME,
    TIDE_PEOPLE_PERSON_SCORE,
    TIDE_PEOPLE_PERSON_DROP,
    TIDE_PEOPLE_WORD_ADD,
    TIDE_PEOPLE_WORDS_DROP,
    TIDE_PEOPLE_TALLY,
    TIDE_PEOPLE_TALLY_PUT,
    TIDE_PEOPLE_TALLIES,
    TIDE_PEOPLE_TOUCH,
    TIDE_PEOPLE_TOUCH_SHARD,
    TIDE_PEOPLE_TOUCHED,
    TIDE_PEOPLE_UNTOUCH,
    TIDE_PEOPLE_SHARD_DROP,
    TIDE_PEOPLE_SEEN,
    TIDE_PEOPLE_SEEN_PUT,
    TIDE_PEOPLE_RANGE,
    TIDE_PEOPLE_AT,
    TIDE_PEOPLE_BEST,
    TIDE_PEOPLE_SQL,
};

struct tide_people {
    tide_mem *mem;
    tide_world *world;
    tide_db db;
    tide_words words;
};

/* What messages add to one person. */
struct tide_gathered {
    char address[TIDE_MAILBOX_BYTES_MAX + 1];
    char name[TIDE_PEOPLE_NAME_BYTES_MAX + 1];
    int64_t name_ms; /* of the message that has the name */
    double score;
};

/* Messages taken in, before they are written.  Some more people than TIDE_GATHERING_MAX are too many
 * to hold: write them. */
enum { TIDE_GATHERING_MAX = 10000 };
struct tide_gathering {
    tide_mem *mem;
    tide_map index; /* address -> its place */
    struct tide_gathered *list;
    size_t count, capacity;
    bool failed; /* no memory */
};
void tide_gathering_init(struct tide_gathering *gathering, tide_mem *mem);
void tide_gathering_done(struct tide_gathering *gathering);
void tide_gathering_add(struct tide_gathering *gathering, const struct tide_parties *head);
double tide_people_add_scores(double a, double b);

/* One shard's part, in one transaction: begun, added to, ended or undone.  `anew` replaces what the
 * shard had.  Adding empties the gathering.  At its end `ready` messages up to `top` are counted. */
tide_status tide_people_begin(tide_people *people, uint32_t shard, bool anew, tide_error *err);
tide_status tide_people_add(tide_people *people, uint32_t shard, struct tide_gathering *gathering,
                            tide_error *err);
tide_status tide_people_end(tide_people *people, uint32_t shard, const char *shard_id,
                            uint64_t ready, int64_t top, tide_error *err);
void tide_people_undo(tide_people *people);

/* The words of a person or of what was typed, with a gap before, between and after them. */
tide_status tide_people_words(tide_people *people, tide_text name, tide_text address, tide_buf *out,
                              tide_error *err);

#endif
