/* page.h - the assistant for the page of `tidemark serve`: routes of its API that run its commands
 * (cli/serve/api.h).  All of them read (J20). */
#ifndef TIDE_ASSISTANT_PAGE_H
#define TIDE_ASSISTANT_PAGE_H

#include "cli/serve/api.h"

extern const struct cli_api assistant_page_api[];
extern const struct cli_api_object assistant_page_objects[];

#endif
