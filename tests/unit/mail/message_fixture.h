/* message_fixture.h - what the tests of reading messages share: a message that
 * is parsed and checked against MSG1, MSG3 and MSG4 of mail/mime/message.h, and the corpus. */
#ifndef TIDE_TESTS_MESSAGE_FIXTURE_H
#define TIDE_TESTS_MESSAGE_FIXTURE_H

#include "base/json.h"
#include "mail/mime/message.h"
#include "mail/mime/check.h"
#include "support/scale.h"
#include "support/test.h"

#include <dirent.h>
#include <sys/stat.h>

struct parsed {
    tide_arena arena;
    struct tide_message message;
};

/* MSG3: valid UTF-8, no control characters but \n and \t. */
void assert_clean(tide_text text, bool line);

/* Parses bytes that are allocated exactly, so that a sanitizer sees one too far. */
void parse(tide_text raw, struct parsed *parsed);
void parsed_done(struct parsed *parsed);
tide_text exact(tide_text text);
void exact_free(tide_text text);
void assert_text(tide_text text, const char *expected);

/* ---- the corpus ---- */

enum { CORPUS_FILES_MAX = 2000 };

struct corpus {
    tide_text files[CORPUS_FILES_MAX];
    char *names[CORPUS_FILES_MAX];
    size_t count;
};

/* TIDE_CORPUS, or where it lies beside the tree; NULL when there is none. */
struct corpus *corpus_open(void);
void corpus_close(struct corpus *corpus);

/* Base64 as a mailer writes it, without line ends. */
void encode_base64(const char *bytes, size_t count, char *out);

#endif
