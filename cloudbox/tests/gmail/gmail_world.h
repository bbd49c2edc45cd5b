/* gmail_world.h - a cloud with Gmail alone, its users, and calls to it in
 * memory; for the tests of the Gmail service. */
#ifndef BOX_TESTS_GMAIL_WORLD_H
#define BOX_TESTS_GMAIL_WORLD_H

#include "base/check.h"
#include "cloudbox/mailbox/mime.h"
#include "cloudbox/services.h"
#include "cloudbox/tests/owned.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

#define NOW_MS UINT64_C(1790000000000)

struct world {
    box_cloud *cloud;
    uint64_t now_ms;
    const char *token;
    struct box_answer answer; /* of the last call */
    json_t *json;             /* its body, when it is JSON */
};

void world_init(struct world *world);
void world_done(struct world *world);
/* Ends with its block. */
#define auto_world __attribute__((cleanup(world_done))) struct world
#define WORLD(world)                                                                               \
    auto_world world;                                                                              \
    world_init(&world)
box_mailbox *mailbox_of(struct world *world, const char *email);

/* One call; `headers` are pairs of name and value, NULL-terminated, or NULL. */
int call_with(struct world *world, const char *verb, const char *target, const char *const *headers,
              tide_text body);

/* `path` is below /gmail/v1/users/me. */
int call(struct world *world, const char *verb, const char *path, const char *body);

/* A member by its path: "message.labelIds", or "" for the whole. */
json_t *at(struct world *world, const char *path);
const char *text_at(struct world *world, const char *path);

/* Asserts a refusal: its status and its words. */
#define assert_refused(world, http, words)                                                         \
    do {                                                                                           \
        assert_int_equal((world)->answer.status, http);                                            \
        assert_string_equal(text_at(world, "error.message"), words);                               \
    } while (0)

/* Whether a list of texts has exactly these members, separated by blanks. */
void assert_labels(json_t *list, const char *wanted);

/* messages.insert of these bytes; the id is copied out. */
void insert(struct world *world, tide_text raw, const char *more, char id_out[BOX_ID_TEXT_BYTES]);

/* A path with an id in it: "/messages/%s/trash". */
#define PATH(format, ...) path_print((char[512]){0}, format, __VA_ARGS__)
__attribute__((format(printf, 2, 3))) const char *path_print(char *out, const char *format, ...);

/* The bytes that format=raw gives. */
void get_raw(struct world *world, const char *id, tide_buf *bytes);
/* Asserts that format=raw gives these bytes. */
void assert_raw(struct world *world, const char *id, tide_text raw);

/* A token of alice's with just these scopes; borrowed until the next change. */
const char *token_with(struct world *world, uint32_t scopes);

#endif
