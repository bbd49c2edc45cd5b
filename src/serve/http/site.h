/* site.h - the page's files, which are part of the program.
 *
 * The build packs web/ (web/embed.c): every file is compressed, and a digest over all of them
 * is in the path of each, /app/DIGEST/app.js.  So a browser may keep a file for good, and never
 * mixes files of two versions: `/` names the digest and is never kept.
 */
#ifndef TIDE_SERVE_HTTP_SITE_H
#define TIDE_SERVE_HTTP_SITE_H

#include "serve/http/answer.h"

struct tide_httpd_file {
    const char *name; /* "app.js" */
    const char *type;
    const unsigned char *gzip;
    size_t gzip_bytes;
    size_t bytes; /* unpacked */
};

struct tide_httpd_site {
    const char *digest;
    const struct tide_httpd_file *files; /* the first one is the page itself */
    size_t files_count;
};

extern const struct tide_httpd_site tide_httpd_site_page; /* made by the build */

/* Handlers of MEMORY routes; their arg is the site, NULL: tide_httpd_site_page. */
tide_httpd_handler tide_httpd_site_index; /* GET /, with TIDE_HTTPD_ANYWHERE */
tide_httpd_handler tide_httpd_site_file;  /* GET /app/{digest}/{file} */

#endif
