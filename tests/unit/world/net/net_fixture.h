/* net_fixture.h - what every file of the tests of the network needs: a server that behaves
 * as told, and a real world of its own for each test.
 *
 * Times in these tests are either timeouts that the behaviour under test must beat by
 * far, or pauses that end when the thing waited for happens. */
#ifndef TIDE_TESTS_NET_FIXTURE_H
#define TIDE_TESTS_NET_FIXTURE_H

#include "support/http_server.h"
#include "world/real.h"
#include "world/world.h"

#include "base/limits.h"
#include "support/scale.h"
#include "support/test.h"

#include <time.h>
#include <unistd.h>

struct fixture {
    test_http *server;
    tide_world *world;
    struct tide_response response; /* of the test's calls */
};

int set_up(void **state);
int tear_down(void **state);
#define CASE(name) TEST_ON(name, struct fixture *f, set_up, tear_down)

/* The answer is in f->response. */
tide_status fetch(struct fixture *f, const char *method, const char *url, tide_error *err);
/* These bytes are the server's pattern from `from` on. */
void assert_pattern(const char *bytes, size_t count, uint64_t from);

/* Takes the pattern; may pause, or fail. */
struct sink {
    tide_world *world;
    struct tide_response *response;
    uint64_t bytes;
    uint64_t pause_every; /* bytes */
    uint64_t fail_after;
    uint64_t paused_at;
    int http_seen;
};
tide_status sink_write(void *arg, const char *bytes, size_t count);

/* Gives the pattern, `step` bytes at most at a time. */
struct source {
    uint64_t bytes;
    uint64_t given;
    uint64_t end_at; /* earlier than promised, or failing there */
    tide_status fail;
    size_t step;
};
tide_status source_read(void *arg, char *bytes, size_t room, size_t *count_out);

#endif
