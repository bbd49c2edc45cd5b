/* list.h - what the commands that list records of the assistant share: flags, pages, names of accounts.
 *
 * A list is an array of objects and `next`, the place behind its last one, or null: --after of the next
 * page.  Text of mail and of models is shown as text: only cleaned text reaches a terminal. */
#ifndef TIDE_ASSISTANT_COMMANDS_LIST_H
#define TIDE_ASSISTANT_COMMANDS_LIST_H

#include "assistant/commands/home.h"
#include "assistant/store/look.h"

struct assistant_list {
    struct cli *cli;
    tide_rows db;
    /* --account, --limit, --order */
    uint32_t account; /* 0: all */
    size_t limit;
    bool oldest_first;
    tide_json items;
    uint64_t last;                    /* of events, calls and runs: the id that was seen last */
    struct tide_assistant_user named; /* the account that was named last */
};

/* Reads the flags that lists share, and opens the ledger. */
tide_status assistant_list_begin(struct cli *cli, struct assistant_list *list);
/* The same, and those of events, calls and runs: --thread, --after, and the flag `kind`. */
tide_status assistant_log_begin(struct cli *cli, const char *kind, struct assistant_list *list,
                                struct tide_assistant_log *log);
/* The address of an account; "" if it is no user any more. */
const char *assistant_list_account(struct assistant_list *list, uint32_t account);
/* Sets the array and `next`; `next` "": this was the last page. */
void assistant_list_end(struct assistant_list *list, const char *name, const char *next);
/* The same of events, calls and runs. */
void assistant_log_end(struct assistant_list *list, const char *name, bool more);

/* Prints text from outside without what would act on a terminal. */
void assistant_print(struct cli *cli, tide_text text);
/* A line "NAME: value"; nothing for an empty value. */
void assistant_print_line(struct cli *cli, const char *name, tide_text value);

/* ---- objects ---- */

void assistant_email_json(const struct tide_assistant_email *email, const char *account,
                          tide_json *one);
/* Without texts. */
void assistant_event_json(const struct tide_assistant_event *event, tide_json *one);
void assistant_call_json(const struct tide_assistant_call *call, tide_json *one);
void assistant_run_json(const struct tide_assistant_run *run, tide_json *one);
const char *assistant_call_state(const struct tide_assistant_call *call); /* "answered" */

#endif
