/* routes.c - the routes of mail; messages and threads are the reader's (reader/page/routes.c).  All need the scope `work`: `look` is everything but mail. */
#include "mail/page/page.h"

#define MAIL "/api/v1/mail/"

const struct cli_api mail_page_api[] = {
    {.method = "GET",
     .path = MAIL "search",
     .group = "mail",
     .verb = "search",
     .query = "q",
     .params = "account limit after",
     .scope = TIDE_HTTPD_WORK,
     .fields = "messages:[Found] next:string? spelling:array"},
    {.path = NULL},
};
