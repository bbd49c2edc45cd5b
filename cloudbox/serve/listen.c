#include "cloudbox/serve/listen.h"

#include "base/check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 4096, PEM_BYTES_MAX = 1 << 20 };

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static socklen_t address_of(const char *host, uint16_t port, union address *out)
{
    memset(out, 0, sizeof *out);
    if (strcmp(host, "localhost") == 0)
        host = "127.0.0.1";
    if (inet_pton(AF_INET, host, &out->v4.sin_addr) == 1) {
        out->v4.sin_family = AF_INET;
        out->v4.sin_port = htons(port);
        return sizeof out->v4;
    }
    int parsed = inet_pton(AF_INET6, host, &out->v6.sin6_addr);
    TIDE_ASSERT(parsed == 1); /* the options were checked */
    out->v6.sin6_family = AF_INET6;
    out->v6.sin6_port = htons(port);
    return sizeof out->v6;
}

static tide_status name_origin(int fd, const char *host, bool tls, char *origin_out,
                               size_t origin_bytes, tide_error *err)
{
    union address bound;
    socklen_t bytes = sizeof bound;
    if (getsockname(fd, &bound.any, &bytes) != 0)
        return tide_error_os(err, errno, "ask for the port");
    bool v6 = bound.any.sa_family == AF_INET6;
    unsigned port = ntohs(v6 ? bound.v6.sin6_port : bound.v4.sin_port);
    (void)snprintf(origin_out, origin_bytes, "http%s://%s%s%s:%u", tls ? "s" : "", v6 ? "[" : "",
                   host, v6 ? "]" : "", port);
    return TIDE_OK;
}

static tide_status bind_failed(int os_error, const char *host, uint16_t port, tide_error *err)
{
    if (os_error == EADDRINUSE)
        return tide_error_set(err, TIDE_BUSY,
                              "port %u is taken: another program listens there; give --listen "
                              "%s:0 for a free one",
                              port, host);
    if (os_error == EACCES)
        return tide_error_set(err, TIDE_IO,
                              "port %u is reserved for the system; take one over 1023", port);
    if (os_error == EADDRNOTAVAIL)
        return tide_error_set(err, TIDE_IO, "%s is no address of this machine", host);
    return tide_error_os(err, os_error, "listen on %s:%u", host, port);
}

tide_status box_listen(const char *host, uint16_t port, bool tls, int *fd_out, char *origin_out,
                       size_t origin_bytes, tide_error *err)
{
    union address address;
    socklen_t bytes = address_of(host, port, &address);
    int fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return tide_error_os(err, errno, "make a socket");
    int on = 1;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    /* Connections inherit it: no answer ever waits for an acknowledgement. */
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    tide_status rc = TIDE_OK;
    if (bind(fd, &address.any, bytes) != 0 || listen(fd, BACKLOG) != 0)
        rc = bind_failed(errno, host, port, err);
    if (rc == TIDE_OK)
        rc = name_origin(fd, host, tls, origin_out, origin_bytes, err);
    if (rc == TIDE_OK)
        *fd_out = fd;
    else
        (void)close(fd);
    return rc;
}

/* ---- TLS ---- */

static tide_status read_pem(const char *file, char **text_out, tide_error *err)
{
    FILE *in = fopen(file, "re");
    if (in == NULL)
        return tide_error_os(err, errno, "read %s", file);
    tide_status rc = TIDE_OK;
    char *text = malloc(PEM_BYTES_MAX + 1);
    TIDE_ASSERT(text != NULL);
    size_t bytes = fread(text, 1, PEM_BYTES_MAX + 1, in);
    if (ferror(in))
        rc = tide_error_os(err, errno, "read %s", file);
    else if (bytes > PEM_BYTES_MAX)
        rc = tide_error_set(err, TIDE_INVALID, "%s is too large for a PEM file", file);
    (void)fclose(in);
    if (rc != TIDE_OK) {
        free(text);
        return rc;
    }
    text[bytes] = '\0';
    *text_out = text;
    return TIDE_OK;
}

static tide_status check_pair(const struct box_tls_files *files, const char *cert_file,
                              const char *key_file, tide_error *err)
{
    gnutls_certificate_credentials_t credentials;
    int rc = gnutls_certificate_allocate_credentials(&credentials);
    TIDE_ASSERT(rc == GNUTLS_E_SUCCESS);
    gnutls_datum_t cert = {(unsigned char *)files->cert, (unsigned)strlen(files->cert)};
    gnutls_datum_t key = {(unsigned char *)files->key, (unsigned)strlen(files->key)};
    rc = gnutls_certificate_set_x509_key_mem(credentials, &cert, &key, GNUTLS_X509_FMT_PEM);
    gnutls_certificate_free_credentials(credentials);
    if (rc < 0)
        return tide_error_set(err, TIDE_INVALID, "%s and %s are no certificate with its key: %s",
                              cert_file, key_file, gnutls_strerror(rc));
    return TIDE_OK;
}

tide_status box_tls_load(const char *cert_file, const char *key_file,
                         struct box_tls_files *files_out, tide_error *err)
{
    struct box_tls_files files = {NULL, NULL};
    tide_status rc = read_pem(cert_file, &files.cert, err);
    if (rc == TIDE_OK)
        rc = read_pem(key_file, &files.key, err);
    if (rc == TIDE_OK)
        rc = check_pair(&files, cert_file, key_file, err);
    if (rc == TIDE_OK)
        *files_out = files;
    else
        box_tls_files_done(&files);
    return rc;
}

void box_tls_files_done(struct box_tls_files *files)
{
    free(files->cert);
    free(files->key);
}
