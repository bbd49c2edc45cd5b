/* owned.h - short forms for tests: variables that are freed at the end of their block, assert_ok(). */
#ifndef BOX_TESTS_OWNED_H
#define BOX_TESTS_OWNED_H

#include "cloudbox/mailbox/mailbox.h"
#include "cloudbox/services.h"

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

#define auto_cloud   __attribute__((cleanup(owned_cloud))) box_cloud /* auto_cloud *cloud = ... */
#define auto_mailbox __attribute__((cleanup(owned_mailbox))) box_mailbox
#define auto_text    __attribute__((cleanup(owned_text))) char
#define auto_answer  __attribute__((cleanup(box_answer_done))) struct box_answer

#endif
