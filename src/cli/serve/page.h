/* page.h - parts of an item that a browser loads by itself: the frame of a message, its images, its
 * attachments.
 *
 * A frame or an image sends no key.  So an answer of the API names a path with a secret in it,
 * /v/CAP/, which stands for one item and the key that asked for it:
 *
 *     GET /api/v1/mail/ada@example.com/messages/18f2   {..., "view": {"path": "/v/4be1.../"}}
 *     GET /v/4be1.../html
 *
 * Invariants:
 *   PAG1  a CAP is 128 random bits, lives ten minutes, and ends with the key it was made for.
 *   PAG2  it opens the parts of one item, and no other part of the API.
 *   PAG3  a part that loads something from the network answers only if the user agreed to it when the
 *         CAP was made (?images=yes).
 *   PAG4  at most CLI_CAPS_MAX; the oldest goes.
 */
#ifndef TIDE_CLI_SERVE_PAGE_H
#define TIDE_CLI_SERVE_PAGE_H

#include "cli/serve/api.h"

enum { CLI_CAPS_MAX = 256, CLI_CAP_MS = 10 * 60 * 1000, CLI_CAP_BYTES = 16 };

/* What is asked for; borrowed for the call. */
struct cli_page_ask {
    const char *account, *item;
    uint64_t number; /* of a numbered part */
    const tide_cancel *cancel;
    void *kept; /* what the system keeps in this process */
};
/* Answers; `call` is a command inside the process (run/call.h).  TIDE_OK: answered.  Else cli->err says
 * why not, and the caller answers. */
typedef tide_status cli_page_fn(struct cli *call, const struct cli_page_ask *ask,
                                struct tide_httpd_answer *answer);

/* A part of a system's items: /v/CAP/NAME, or numbered /v/CAP/NAME/1. */
struct cli_page_part {
    const char *name; /* NULL ends a list */
    bool numbered;
    bool network; /* it asks another machine (PAG3) */
    cli_page_fn *answer;
};

/* Adds the routes of all parts of all systems. */
tide_status cli_page_routes(struct cli_serve *serve, tide_error *err);
void cli_page_free(struct cli_serve *serve);
/* Sets "view" in the answer of a route: where the parts of its item are. */
void cli_page_view(const struct cli_api *api, const struct tide_httpd_request *request,
                   tide_json *json);
/* The HTTP status of a failed command. */
int cli_api_status(tide_status status);

#endif
