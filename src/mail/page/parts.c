/* parts.c - what a browser loads of a message: its HTML, images and attachments. */
#include "mail/page/page.h"

#include "cli/archive_here.h"
#include "mail/archive/shelf.h"
#include "mail/mail.h"
#include "mail/mime/file_name.h"
#include "mail/view/view.h"
#include "net/image/fetch.h"
#include "net/image/type.h"

#include <stdio.h>
#include <string.h>

/* Scripts, forms, popups and connections are never allowed; allow-same-origin lets the page measure
 * the frame, and is no danger without scripts. */
static const char frame_csp[] =
    "default-src 'none'; img-src 'self' data:; style-src 'unsafe-inline'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'self'; sandbox allow-same-origin";
static const char file_csp[] = "sandbox; default-src 'none'";

static const char frame_head[] =
    "<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\"><title>Message</title></head>\n<body>\n";
static const char frame_tail[] = "\n</body></html>\n";

/* ---- the message ---- */

struct opened {
    tide_shelf *shelf;
    tide_archive *archive;
    struct tide_view view;
};

/* An account is the name of a directory: nothing that leads elsewhere is one. */
static bool is_account(const char *name)
{
    return name[0] != '.' && strchr(name, '@') != NULL && strchr(name, '/') == NULL;
}

static tide_status message_open(struct cli *cli, const struct cli_page_ask *ask,
                                struct opened *opened)
{
    char archive_dir[CLI_PATH_BYTES];
    char secrets_dir[CLI_PATH_BYTES];
    char dir[CLI_PATH_BYTES + 300];
    struct tide_stored stored;
    *opened = (struct opened){.shelf = ask->kept};
    tide_status rc = is_account(ask->account)
                         ? archive_here_places(cli, archive_dir, secrets_dir)
                         : tide_error_set(&cli->err, TIDE_NOT_FOUND, "there is no such account");
    if (rc != TIDE_OK)
        return rc;
    tide_mail_dir(archive_dir, ask->account, dir, sizeof dir);
    const struct tide_archive_options options = {
        .dir = dir, .account = ask->account, .world = cli->world, .read_only = true};
    rc = tide_shelf_take(opened->shelf, &options, cli->mem, &opened->archive, &cli->err);
    if (rc == TIDE_OK)
        rc = tide_archive_find(opened->archive, tide_text_of(ask->item), &stored, &cli->err);
    if (rc == TIDE_OK)
        rc = tide_view_open(opened->archive, &stored, cli->mem, &opened->view, &cli->err);
    return rc;
}

static void message_close(struct opened *opened)
{
    tide_view_done(&opened->view);
    tide_shelf_give(opened->shelf, opened->archive);
}

static tide_status no_part(struct cli *cli)
{
    return tide_error_set(&cli->err, TIDE_NOT_FOUND, "the message has no such part");
}

/* ---- html ---- */

static tide_status html_get(struct cli *cli, const struct cli_page_ask *ask,
                            struct tide_httpd_answer *answer)
{
    struct opened opened;
    struct tide_view_page page;
    tide_status rc = message_open(cli, ask, &opened);
    if (rc == TIDE_OK)
        rc = tide_buf_add_text(&answer->body, frame_head);
    if (rc == TIDE_OK)
        rc = tide_view_html(&opened.view, &answer->body, &page);
    if (rc == TIDE_OK)
        rc = tide_buf_add_text(&answer->body, frame_tail);
    message_close(&opened);
    if (rc != TIDE_OK)
        return rc;
    answer->status = 200;
    answer->type = "text/html; charset=utf-8";
    answer->csp = frame_csp;
    return TIDE_OK;
}

/* ---- images ---- */

static tide_status cid_get(struct cli *cli, const struct cli_page_ask *ask,
                           struct tide_httpd_answer *answer)
{
    struct opened opened;
    struct tide_view_page page;
    tide_buf html;
    tide_buf_init(&html, cli->mem, TIDE_VIEW_HTML_BYTES_MAX);
    tide_status rc = message_open(cli, ask, &opened);
    if (rc == TIDE_OK)
        rc = tide_view_html(&opened.view, &html, &page);
    if (rc == TIDE_OK)
        rc =
            tide_view_image(&opened.view, &page, (size_t)ask->number, &answer->body, &answer->type);
    tide_buf_done(&html);
    message_close(&opened);
    if (rc == TIDE_NOT_FOUND)
        return no_part(cli);
    answer->status = rc == TIDE_OK ? 200 : 0;
    return rc;
}

/* The N-th URL of this message, and no other one: the browser names no host. */
static tide_status img_get(struct cli *cli, const struct cli_page_ask *ask,
                           struct tide_httpd_answer *answer)
{
    struct opened opened;
    struct tide_view_page page = {.remote_count = 0};
    tide_buf html;
    tide_buf url;
    tide_buf_init(&html, cli->mem, TIDE_VIEW_HTML_BYTES_MAX);
    tide_buf_init(&url, cli->mem, 64 << 10);
    tide_status rc = message_open(cli, ask, &opened);
    if (rc == TIDE_OK)
        rc = tide_view_html(&opened.view, &html, &page);
    if (rc == TIDE_OK && ask->number >= page.remote_count)
        rc = no_part(cli);
    if (rc == TIDE_OK)
        rc = tide_buf_add(&url, page.remote[ask->number].data, page.remote[ask->number].bytes);
    tide_buf_done(&html);
    message_close(&opened); /* not held while another machine is asked */
    if (rc == TIDE_OK)
        rc = tide_image_fetch(cli->world, tide_buf_text(&url), NULL, ask->cancel, &answer->body,
                              &answer->type, &cli->err);
    tide_buf_done(&url);
    answer->status = rc == TIDE_OK ? 200 : 0;
    return rc;
}

/* ---- attachments ---- */

/* RFC 8187: everything but letters, digits and a few marks is escaped. */
static void escape(const char *name, char *out, size_t out_bytes)
{
    size_t used = 0;
    for (const char *at = name; *at != '\0' && used + 4 < out_bytes; at++) {
        const unsigned char byte = (unsigned char)*at;
        const bool plain = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                           (byte >= '0' && byte <= '9') || byte == '.' || byte == '-' ||
                           byte == '_';
        used += (size_t)snprintf(out + used, out_bytes - used, plain ? "%c" : "%%%02X", byte);
    }
    out[used] = '\0';
}

/* A browser shows an image by its bytes, whatever the sender calls it; all else is only saved. */
static void file_answer(const struct tide_attachment *file, size_t number,
                        struct tide_httpd_answer *answer)
{
    char name[TIDE_FILE_NAME_BYTES_MAX + 1];
    char escaped[TIDE_HTTPD_ANSWER_HEADER_BYTES_MAX - 40];
    const char *image = tide_image_type(tide_buf_text(&answer->body));
    tide_file_name(file, number, name);
    escape(name, escaped, sizeof escaped);
    answer->status = 200;
    answer->type = image == NULL ? "application/octet-stream" : image;
    answer->csp = file_csp;
    tide_httpd_set(answer, "Content-Disposition", "%s; filename*=UTF-8''%s",
                   image == NULL ? "attachment" : "inline", escaped);
}

static tide_status att_get(struct cli *cli, const struct cli_page_ask *ask,
                           struct tide_httpd_answer *answer)
{
    struct opened opened;
    tide_status rc = message_open(cli, ask, &opened);
    const struct tide_message *message = &opened.view.message;
    if (rc == TIDE_OK && (ask->number == 0 || ask->number > message->attachments_count))
        rc = no_part(cli);
    if (rc == TIDE_OK) {
        const struct tide_attachment *file = &message->attachments[ask->number - 1];
        rc =
            tide_attachment_decode(tide_buf_text(&opened.view.raw), file, &answer->body, &cli->err);
        if (rc == TIDE_OK)
            file_answer(file, (size_t)ask->number, answer);
        else if (rc == TIDE_FULL)
            rc = cli_fail(cli, rc, "Use `tidemark mail show --save-attachments DIR`.",
                          "the attachment is too large for the page");
    }
    message_close(&opened);
    return rc;
}

const struct cli_page_part mail_page_parts[] = {
    {"html", false, false, html_get}, {"cid", true, false, cid_get}, {"img", true, true, img_get},
    {"att", true, false, att_get},    {NULL, false, false, NULL},
};
