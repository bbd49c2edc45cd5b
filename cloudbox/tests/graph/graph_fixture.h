/* graph_fixture.h - a cloud with Graph alone, and calls to it in memory. */
#ifndef BOX_TESTS_GRAPH_FIXTURE_H
#define BOX_TESTS_GRAPH_FIXTURE_H

#include "cloudbox/graph/graph.h"
#include "cloudbox/tests/owned.h"
#include "support/test.h"

#define NOW_MS UINT64_C(1790000000000)
#define ORIGIN "http://127.0.0.1:4443"

struct world {
    box_cloud *cloud;
    uint64_t now_ms;
    const char *token; /* NULL: none is sent */
    struct box_answer answer;
    json_t *json;   /* the last answer's body, when it is JSON */
    tide_buf bytes; /* the last answer's body */
};

struct setup_options {
    uint64_t files;
    uint64_t file_bytes;
    uint64_t drive_bytes;
    uint32_t latency_ms;
    bool business;
    box_quota_rules quota;
    bool auto_consent;
    bool empty; /* no users: they come from a replay */
    void (*keep)(void *arg, tide_text line);
    void *keep_arg;
};
void world_init(struct world *world, const struct setup_options *options);
void world_done(struct world *world);
#define auto_world __attribute__((cleanup(world_done))) struct world
#define WORLD(world, ...)                                                                          \
    auto_world world;                                                                              \
    world_init(&world, &(struct setup_options){__VA_ARGS__})

box_drive *drive_of(struct world *world);

/* One call; headers are pairs of name and value, NULL-terminated, or NULL.  `target` may be a whole
 * address as links have it. */
int call_with(struct world *world, const char *verb, const char *target, const char *const *headers,
              tide_text body);
/* Below /v1.0/me/drive. */
int call(struct world *world, const char *verb, const char *path, const char *body);
#define HEADERS(...) ((const char *const[]){__VA_ARGS__, NULL})

json_t *at(struct world *world, const char *path);
const char *text_at(struct world *world, const char *path);
json_int_t number_at(struct world *world, const char *path);
/* Of the last answer; "" when it is not there. */
const char *header_of(struct world *world, const char *name);
/* error.code, and error.innerError.code or "". */
#define assert_refused(world, http, code_, inner_)                                                 \
    do {                                                                                           \
        assert_int_equal((world)->answer.status, http);                                            \
        assert_string_equal(text_at(world, "error.code"), code_);                                  \
        assert_string_equal(text_at(world, "error.innerError.code"), inner_);                      \
    } while (0)

/* A text on the heap of the test, freed with the program: for ids and tags that outlive a call. */
const char *kept(const char *text);
__attribute__((format(printf, 1, 2))) const char *printed(const char *format, ...);

/* Uploads and gives the id. */
const char *put_file(struct world *world, const char *path, const char *content);
const char *make_folder(struct world *world, const char *parent_path, const char *name);
/* The bytes at /content, through the redirect. */
const char *get_bytes(struct world *world, const char *path);
/* How often the referee wrote that down. */
json_int_t violations(struct world *world, const char *kind);

#endif
