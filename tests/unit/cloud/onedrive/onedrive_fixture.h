/* onedrive_fixture.h - what the tests of the OneDrive client share: a server that writes down what it
 * was asked and answers as the test wants, in the simulated world.  Calls are made without a job;
 * onedrive_test.c has those with one. */
#ifndef TIDE_TESTS_ONEDRIVE_FIXTURE_H
#define TIDE_TESTS_ONEDRIVE_FIXTURE_H

#include "cloud/onedrive/inside.h"
#include "net/judge_graph.h"
#include "sim.h"
#include "support/heap.h"
#include "support/ok.h"
#include "support/test.h"

#define ORIGIN "http://127.0.0.1:4443"

struct fixture {
    tide_sim *sim;
    tide_world *world;
    tide_mem *mem;
    tide_onedrive *onedrive;
    tide_error err;

    /* The server. */
    int http; /* of the answer */
    const char *answer;
    size_t answer_bytes; /* 0: up to its end */
    const char *header, *value;
    const char *header2, *value2;
    bool reset;
    uint64_t truncate_from; /* 0: whole */

    /* What it was asked last. */
    unsigned requests;
    unsigned refreshes; /* of the token, which do not count as requests */
    char method[16];
    char url[4096];
    char headers[2048]; /* "Name: value\n" */
    tide_buf body;

    struct tide_onedrive_answer item;
};

struct fixture *begin(void);
struct fixture *begin_in(tide_mem *mem);
void finish(struct fixture *f);
#define CASE(name) TEST_OF(name, struct fixture *f, begin(), finish)

/* The next answers; without other headers. */
void answers(struct fixture *f, int http, const char *body);
/* The call returns this status, and its error belongs to it. */
#define EXPECT(call, status) expect(f, call, status, __FILE__, __LINE__)
void expect(struct fixture *f, tide_status rc, tide_status expected, const char *file, int line);
/* The last request. */
void assert_asked(struct fixture *f, const char *method, const char *path);
bool has_header(const struct fixture *f, const char *line);
json_t *body_of(struct fixture *f); /* owned by the caller */

#define ITEM                                                                                       \
    "{\"id\":\"01ABC\",\"name\":\"a.txt\",\"size\":11,\"eTag\":\"\\\"e1\\\"\",\"cTag\":"           \
    "\"\\\"c1\\\"\",\"file\":{\"hashes\":{\"quickXorHash\":\"aCgDG9jwBhDc4Q1yawMZAAAAAAA=\"}},"    \
    "\"parentReference\":{\"driveId\":\"b!d\",\"id\":\"01ROOT\"},\"fileSystemInfo\":{"             \
    "\"lastModifiedDateTime\":\"2026-05-04T03:02:01.1234567Z\"}}"

#endif
