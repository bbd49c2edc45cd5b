/* message_examples.h - small messages with what is read in each (text.c); broken ones are
 * made of them too. */
#ifndef TIDE_TESTS_MESSAGE_EXAMPLES_H
#define TIDE_TESTS_MESSAGE_EXAMPLES_H

#include "mail/mime/message.h"

struct message_example {
    const char *name;
    const char *raw;
    const char *text;
    const char *attachments; /* "name type;" each */
    tide_parsed parsed;
};

extern const struct message_example message_examples[];
extern const size_t message_examples_count;

#endif
