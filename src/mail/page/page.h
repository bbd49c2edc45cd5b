/* page.h - mail for the page of `tidemark serve`: routes, and what a browser gets of a message; the reader
 * opens it (reader/page/parts.c).
 *
 * The HTML of a message is shown in a sandboxed frame.  Two walls keep it there: it is washed
 * (mail/wash/wash.h), and its answer carries a policy that allows no script, no form, no connection.
 */
#ifndef TIDE_MAIL_PAGE_H
#define TIDE_MAIL_PAGE_H

#include "cli/serve/page.h"

extern const struct cli_api mail_page_api[];
/* Parts of a message that is open: its washed HTML, an image of it, an attachment, the URL of a remote
 * image and what that gives.  A failure is in cli->err. */
struct tide_view;
tide_status mail_page_html(struct cli *cli, struct tide_view *view, uint64_t number,
                           struct tide_httpd_answer *answer);
tide_status mail_page_cid(struct cli *cli, struct tide_view *view, uint64_t number,
                          struct tide_httpd_answer *answer);
tide_status mail_page_att(struct cli *cli, struct tide_view *view, uint64_t number,
                          struct tide_httpd_answer *answer);
tide_status mail_page_url(struct cli *cli, struct tide_view *view, uint64_t number, tide_buf *url);
tide_status mail_page_img(struct cli *cli, tide_text url, const tide_cancel *cancel,
                          struct tide_httpd_answer *answer);

#endif
