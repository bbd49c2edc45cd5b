/* list.h - a list of messages as a person reads it: fitted to the terminal, in local time, with
 * marks, labels and snippets (M20). */
#ifndef TIDE_MAIL_READ_LIST_H
#define TIDE_MAIL_READ_LIST_H

#include "cli/cli.h"

/* How a list is printed. */
struct mail_list {
    bool accounts; /* of several: each row names its own */
    bool snippets; /* a second line for each message */
    bool threads;  /* rows are conversations */
};
/* Prints messages as the JSON of `mail search` has them.  `rows` is an array of such objects. */
void mail_list_show(struct cli *cli, const struct mail_list *list, const json_t *rows);

#endif
