/* asking.h - commands that run behind the screen, so that no key waits for one.
 *
 * The screen shows what `mail search` and `mail show` answer with --json, and has no other way to
 * mail.  A thread runs these commands one after the other.
 *
 * Invariants:
 *   BAS1  of each topic only the newest question is answered: a new one ends the one that runs and
 *         drops the one that waits, and the answer to it.
 *   BAS2  the descriptor is readable while an answer waits to be taken.
 *   BAS3  one thread asks and takes, and the asking is freed by it.
 */
#ifndef TIDE_MAIL_BROWSE_ASKING_H
#define TIDE_MAIL_BROWSE_ASKING_H

#include "cli/run/call.h"

typedef struct browse_asking browse_asking;

/* In the order in which they are answered. */
typedef enum browse_topic {
    BROWSE_MESSAGE, /* the message or conversation to show */
    BROWSE_ROWS,    /* a page of the list */
    BROWSE_HTML,    /* a file for the web browser */
    BROWSE_SAVE,    /* attachments */
    BROWSE_TOPICS,
} browse_topic;

enum { BROWSE_WORDS_MAX = 16, BROWSE_WORDS_BYTES_MAX = 64 << 10 };

/* `host` is the command whose home is used; it outlives the asking. */
tide_status browse_asking_new(struct cli *host, browse_asking **asking_out);
void browse_asking_free(browse_asking *asking); /* NULL is fine */
int browse_asking_fd(const browse_asking *asking);

/* The words of a command, without the program's name; up to NULL.  They are copied. */
tide_status browse_ask(browse_asking *asking, browse_topic topic, const char *const *words);
/* No answer to this topic is wanted any more. */
void browse_ask_no_more(browse_asking *asking, browse_topic topic);
/* false: there is none.  The caller ends *called_out. */
bool browse_answer_take(browse_asking *asking, browse_topic *topic_out,
                        struct cli_called *called_out);

#endif
