/* page.h - mail for the page of `tidemark serve`: routes and parts of messages (cli/serve/page.h).
 *
 * The HTML of a message is shown in a sandboxed frame.  Two walls keep it there: it is washed
 * (mail/wash/wash.h), and its answer carries a policy that allows no script, no form, no connection.
 */
#ifndef TIDE_MAIL_PAGE_H
#define TIDE_MAIL_PAGE_H

#include "cli/serve/page.h"

extern const struct cli_api mail_page_api[];
extern const struct cli_page_part mail_page_parts[];

#endif
