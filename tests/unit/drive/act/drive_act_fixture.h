/* drive_act_fixture.h - what the tests of the executors share: a real folder, the cloud in a box behind a
 * simulated network that can lie, and a second user of both. */
#ifndef TIDE_TESTS_DRIVE_ACT_FIXTURE_H
#define TIDE_TESTS_DRIVE_ACT_FIXTURE_H

#include "drive/act/act.h"
#include "sim.h"
#include "sim_cloud.h"
#include "support/heap.h"
#include "support/ok.h"
#include "support/test.h"

#define ORIGIN "http://127.0.0.1:4443"
#define ME     "me@example.org"

struct fixture {
    char dir[64];  /* has the root, and what is outside of it */
    char root[80]; /* of the drive */
    tide_sim *sim;
    tide_sim_cloud *cloud;
    tide_onedrive *onedrive;
    struct tide_drive_act act;
    tide_error err;

    /* The network.  Each request whose "METHOD URL" contains `watched` counts. */
    const char *watched;
    unsigned seen;
    void (*before)(struct fixture *f); /* of each that counts, before the server sees it */
    void (*after)(struct fixture *f, const struct tide_request *request,
                  struct tide_sim_answer *answer);
    unsigned only; /* the two are called at this one only; 0: at each */
    uint64_t cut;  /* after(): where the body ends */
};

struct fixture *begin(void);
void finish(struct fixture *f);
#define CASE(name) TEST_OF(name, struct fixture *f, begin(), finish)

/* The call returns this status, and its error belongs to it. */
#define EXPECT(call, status) expect(f, call, status, __FILE__, __LINE__)
void expect(struct fixture *f, tide_status rc, tide_status expected, const char *file, int line);

/* The second user: online, */
void online(struct fixture *f, const char *what, const char *body); /* "put", "{\"path\":..}" */
void fault(struct fixture *f, const char *rule);
void no_faults(struct fixture *f);
uint64_t downloaded_bytes(struct fixture *f); /* over the network */
struct tide_onedrive_answer item_at(struct fixture *f, const char *path);
bool is_online(struct fixture *f, const char *path);
/* and here. */
void put_file(struct fixture *f, const char *path, const char *text);
tide_buf file_at(struct fixture *f, const char *path);
void assert_file(struct fixture *f, const char *path, const char *text);
bool is_here(struct fixture *f, const char *path);
struct tide_entry entry_at(struct fixture *f, const char *name); /* in the root */
unsigned temporaries(struct fixture *f, const char *folder);     /* names of ours */

/* Spoilers for `after`. */
void flip_a_byte(struct fixture *f, const struct tide_request *request,
                 struct tide_sim_answer *answer);
void cut_short(struct fixture *f, const struct tide_request *request,
               struct tide_sim_answer *answer);
void break_off(struct fixture *f, const struct tide_request *request,
               struct tide_sim_answer *answer);

#endif
