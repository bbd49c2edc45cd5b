/* parts.c - what a browser loads of a message: as mail/page/parts.c, also for bodies in the cache. */
#include "mail/page/page.h"
#include "reader/commands/home.h"
#include "reader/page/page.h"

struct opened {
    struct reader_home home;
    struct tide_view view;
};

static tide_status message_open(struct cli *cli, const struct cli_page_ask *ask,
                                struct opened *opened)
{
    const char *body = "none";
    opened->view = (struct tide_view){.mem = NULL};
    TIDE_TRY(reader_home_open(cli, ask->account, &opened->home));
    TIDE_TRY(reader_home_view(&opened->home, ask->item, &opened->view, &body));
    return opened->view.mem != NULL
               ? TIDE_OK
               : tide_error_set(&cli->err, TIDE_NOT_FOUND, "the message is not stored here yet");
}

static void message_close(struct opened *opened)
{
    tide_view_done(&opened->view);
    reader_home_close(&opened->home);
}

static tide_status part_get(struct cli *cli, const struct cli_page_ask *ask,
                            tide_status (*part)(struct cli *cli, struct tide_view *view,
                                                uint64_t number, struct tide_httpd_answer *answer),
                            struct tide_httpd_answer *answer)
{
    struct opened opened;
    tide_status rc = message_open(cli, ask, &opened);
    if (rc == TIDE_OK)
        rc = part(cli, &opened.view, ask->number, answer);
    message_close(&opened);
    return rc;
}

static tide_status html_get(struct cli *cli, const struct cli_page_ask *ask,
                            struct tide_httpd_answer *answer)
{
    return part_get(cli, ask, mail_page_html, answer);
}

static tide_status cid_get(struct cli *cli, const struct cli_page_ask *ask,
                           struct tide_httpd_answer *answer)
{
    return part_get(cli, ask, mail_page_cid, answer);
}

static tide_status att_get(struct cli *cli, const struct cli_page_ask *ask,
                           struct tide_httpd_answer *answer)
{
    return part_get(cli, ask, mail_page_att, answer);
}

static tide_status img_get(struct cli *cli, const struct cli_page_ask *ask,
                           struct tide_httpd_answer *answer)
{
    struct opened opened;
    tide_auto_buf url = tide_buf_in(cli->mem, 64 << 10);
    tide_status rc = message_open(cli, ask, &opened);
    if (rc == TIDE_OK)
        rc = mail_page_url(cli, &opened.view, ask->number, &url);
    message_close(&opened); /* not held while another machine is asked */
    return rc == TIDE_OK ? mail_page_img(cli, tide_buf_text(&url), ask->cancel, answer) : rc;
}

const struct cli_page_part reader_page_parts[] = {
    {"html", false, false, html_get}, {"cid", true, false, cid_get}, {"img", true, true, img_get},
    {"att", true, false, att_get},    {NULL, false, false, NULL},
};
