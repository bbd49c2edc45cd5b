/* listen.h - the listening socket and the TLS files, with errors that say what
 * is wrong: the HTTP library would only say that it did not start. */
#ifndef BOX_SERVE_LISTEN_H
#define BOX_SERVE_LISTEN_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A listening socket; `origin_out` becomes "http://127.0.0.1:4443" with the port
 * that was really taken. */
tide_status box_listen(const char *host, uint16_t port, bool tls, int *fd_out, char *origin_out,
                       size_t origin_bytes, tide_error *err);

struct box_tls_files {
    char *cert; /* terminated PEM, owned */
    char *key;
};

/* Reads both files and makes sure that they belong together. */
tide_status box_tls_load(const char *cert_file, const char *key_file,
                         struct box_tls_files *files_out, tide_error *err);
void box_tls_files_done(struct box_tls_files *files); /* a zeroed one is fine */

#endif
