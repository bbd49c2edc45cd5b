/* owned.h - short forms for tests: variables freed with their block, assert_ok(), add_fault(). */
#ifndef BOX_TESTS_OWNED_H
#define BOX_TESTS_OWNED_H

#include "cloudbox/mailbox/mailbox.h"
#include "cloudbox/services.h"
#include "support/test.h"

#include <stdlib.h>

#define assert_ok(status) assert_int_equal(status, TIDE_OK)

static inline void owned_cloud(box_cloud **cloud)
{
    box_cloud_free(*cloud);
}

static inline void owned_mailbox(box_mailbox **mailbox)
{
    box_mailbox_free(*mailbox);
}

static inline void owned_text(char **text)
{
    free(*text);
}

/* A rule as POST /_cloud/faults takes it. */
static inline void add_fault(box_cloud *cloud, const char *rule)
{
    tide_error err = {0};
    if (box_cloud_add_fault(cloud, tide_text_of(rule), &err) != TIDE_OK)
        fail_msg("%s: %s", rule, err.text);
}

#define auto_cloud   __attribute__((cleanup(owned_cloud))) box_cloud /* auto_cloud *cloud = ... */
#define auto_mailbox __attribute__((cleanup(owned_mailbox))) box_mailbox
#define auto_text    __attribute__((cleanup(owned_text))) char
#define auto_answer  __attribute__((cleanup(box_answer_done))) struct box_answer

/* A test in a world that setup() makes and teardown() frees. */
#define CASE(name)                                                                                 \
    static void in_##name(struct world *world);                                                    \
    TEST_WITH(name, setup, teardown)                                                               \
    {                                                                                              \
        in_##name(*state);                                                                         \
    }                                                                                              \
    static void in_##name(struct world *world)

#endif
