/* routes.c - the routes of mail; all need the scope `work`: `look` is everything but mail. */
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
    {.method = "GET",
     .path = MAIL "{account}/messages/{message}",
     .group = "mail",
     .verb = "show",
     .part = "message",
     .flag_part = "account",
     .view = true,
     .scope = TIDE_HTTPD_WORK,
     .fields = "id:string thread:string internal_unix_ms:integer bytes:integer copy:string "
               "gone:boolean labels:array from:string to:string cc:string bcc:string "
               "reply_to:string subject:string date_unix_ms:integer? html:boolean text:string "
               "attachments:array attachments_count:integer problem:string? remote_images:integer "
               "view:View"},
    {.method = "GET",
     .path = MAIL "{account}/threads/{thread}",
     .group = "mail",
     .verb = "show",
     .part = "thread",
     .flag_part = "account",
     .always = "thread",
     .scope = TIDE_HTTPD_WORK,
     .fields = "thread:string messages:[Message] more:boolean"},
    {.path = NULL},
};
