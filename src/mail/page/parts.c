/* parts.c - what a browser loads of a message: its HTML, images and attachments. */
#include "mail/page/page.h"

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

static tide_status no_part(struct cli *cli)
{
    return tide_error_set(&cli->err, TIDE_NOT_FOUND, "the message has no such part");
}

/* ---- html ---- */

tide_status mail_page_html(struct cli *cli, struct tide_view *view, uint64_t number,
                           struct tide_httpd_answer *answer)
{
    struct tide_view_page page;
    (void)cli;
    (void)number;
    TIDE_TRY(tide_buf_add_text(&answer->body, frame_head));
    TIDE_TRY(tide_view_html(view, &answer->body, &page));
    TIDE_TRY(tide_buf_add_text(&answer->body, frame_tail));
    answer->status = 200;
    answer->type = "text/html; charset=utf-8";
    answer->csp = frame_csp;
    return TIDE_OK;
}

/* ---- images ---- */

tide_status mail_page_cid(struct cli *cli, struct tide_view *view, uint64_t number,
                          struct tide_httpd_answer *answer)
{
    struct tide_view_page page;
    tide_auto_buf html = tide_buf_in(cli->mem, TIDE_VIEW_HTML_BYTES_MAX);
    tide_status rc = tide_view_html(view, &html, &page);
    if (rc == TIDE_OK)
        rc = tide_view_image(view, &page, (size_t)number, &answer->body, &answer->type);
    if (rc == TIDE_NOT_FOUND)
        return no_part(cli);
    answer->status = rc == TIDE_OK ? 200 : 0;
    return rc;
}

/* The N-th URL of this message, and no other one: the browser names no host. */
tide_status mail_page_url(struct cli *cli, struct tide_view *view, uint64_t number, tide_buf *url)
{
    struct tide_view_page page = {.remote_count = 0};
    tide_auto_buf html = tide_buf_in(cli->mem, TIDE_VIEW_HTML_BYTES_MAX);
    TIDE_TRY(tide_view_html(view, &html, &page));
    if (number >= page.remote_count)
        return no_part(cli);
    return tide_buf_add(url, page.remote[number].data, page.remote[number].bytes);
}

tide_status mail_page_img(struct cli *cli, tide_text url, const tide_cancel *cancel,
                          struct tide_httpd_answer *answer)
{
    const tide_status rc =
        tide_image_fetch(cli->world, url, NULL, cancel, &answer->body, &answer->type, &cli->err);
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

tide_status mail_page_att(struct cli *cli, struct tide_view *view, uint64_t number,
                          struct tide_httpd_answer *answer)
{
    if (number == 0 || number > view->message.attachments_count)
        return no_part(cli);
    const struct tide_attachment *file = &view->message.attachments[number - 1];
    const tide_status rc =
        tide_attachment_decode(tide_buf_text(&view->raw), file, &answer->body, &cli->err);
    if (rc == TIDE_OK)
        file_answer(file, (size_t)number, answer);
    return rc == TIDE_FULL ? cli_fail(cli, rc, "Use `tidemark mail show --save-attachments DIR`.",
                                      "the attachment is too large for the page")
                           : rc;
}
