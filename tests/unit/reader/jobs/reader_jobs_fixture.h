/* reader_jobs_fixture.h - the reader on an engine in the simulated world, with two mailboxes of the cloud
 * in a box behind its network.  A life is an engine from its start to its end, or to a crash; the
 * mailboxes stay, and so do the disks. */
#ifndef TIDE_TESTS_READER_JOBS_FIXTURE_H
#define TIDE_TESTS_READER_JOBS_FIXTURE_H

#include "cloudbox/mailbox/mailbox.h"
#include "cloudbox/services.h"
#include "reader/inside.h"
#include "reader/view/view.h"
#include "sim.h"
#include "sim_cloud.h"
#include "support/heap.h"
#include "support/test.h"

#define ORIGIN "http://127.0.0.1:4443"
#define ME     "me@example.org"
#define YOU    "you@example.org"

enum { USERS = 2, CALLS_MAX = 4000 };
#define DAY_MS (24 * 3600 * UINT64_C(1000))

/* A call that reached the cloud. */
struct call {
    char what[120]; /* "GET messages/17f2?format=raw..." behind users/me/ */
    unsigned user;
    uint64_t at_ms;
};

struct fixture {
    tide_sim *sim;
    tide_sim_cloud *cloud;
    box_mailbox *mailboxes[USERS];
    const char *const *settings; /* of a life; NULL: none */

    /* Of a life. */
    tide_secrets *secrets;
    tide_engine *engine;
    tide_reader *reader;
    uint32_t accounts[USERS];

    struct call calls[CALLS_MAX];
    size_t calls_count;
    uint64_t think_us; /* of every answer */
    bool may_die;      /* failures of a life are not the test's */
    unsigned delivered;
};

#define OK(call)                                                                                   \
    do {                                                                                           \
        tide_error err_ = {TIDE_OK, 0, ""};                                                        \
        tide_error *err = &err_;                                                                   \
        const tide_status rc_ = (call);                                                            \
        if (rc_ != TIDE_OK)                                                                        \
            fail_msg("%s: %s: %s", #call, tide_status_name(rc_), err->text);                       \
        (void)err;                                                                                 \
    } while (0)

struct fixture *begin_in(uint64_t seed,
                         const struct tide_sim_options *options); /* without a life */
struct fixture *begin(void);                                      /* with one */
void finish(struct fixture *f);
#define CASE(name) TEST_OF(name, struct fixture *f, begin(), finish)

tide_status life_begin(struct fixture *f);
void life_end(struct fixture *f);
/* Waits until nothing is left to do. */
tide_status settle(struct fixture *f);
void pass(struct fixture *f, uint64_t ms);
uint64_t now_ms(struct fixture *f);
void poll_now(struct fixture *f, unsigned user);

/* A message of `age_ms` in the inbox, unread; its id lasts until 31 others were made. */
const char *deliver(struct fixture *f, unsigned user, uint64_t age_ms);
const char *deliver_big(struct fixture *f, unsigned user, uint64_t age_ms, size_t bytes);
/* The server has the label on the message. */
bool labeled(struct fixture *f, unsigned user, const char *id, uint16_t label);
void relabel(struct fixture *f, unsigned user, const char *id, uint16_t label, bool on);

/* Calls whose text contains `part`. */
size_t calls_with(struct fixture *f, const char *part);
const struct call *call_with(struct fixture *f, const char *part); /* the first; NULL: none */

/* What a person sees: ids of a list, newest first, separated by blanks. */
const char *shown(struct fixture *f, unsigned user, const char *label);
/* The same of a search of what is here; "no label": the query has one that is not known. */
const char *found(struct fixture *f, unsigned user, const char *query);
/* How many are in it. */
size_t count_shown(struct fixture *f, unsigned user, const char *label);
bool has_body(struct fixture *f, unsigned user, const char *id);
/* How many messages were refused, as `reader status` says. */
uint64_t refused_here(struct fixture *f, unsigned user);
struct tide_reader_action act(struct fixture *f, unsigned user, const char *what, const char *id);
struct tide_reader_action action_of(struct fixture *f, unsigned user, uint64_t id);
uint64_t failed_jobs(struct fixture *f);
/* Stores a message of the mailbox in the archive, as the mirror does. */
void archive(struct fixture *f, unsigned user, const char *id);

#endif
