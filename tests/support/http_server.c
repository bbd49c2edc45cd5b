#include "http_server.h"
#include "http_bad.h"

#include <ctype.h>
#include <microhttpd.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <netinet/in.h>
#include <arpa/inet.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

struct test_http {
    struct MHD_Daemon *daemon;
    struct MHD_Daemon *tls_daemon; /* started when first asked for */
    unsigned tls_port;
    struct test_bad *bad;
    unsigned port;
    uint64_t connections;
    uint64_t requests;
    pthread_mutex_t lock;
    pthread_cond_t stop;
    bool stopping;
};

/* One request while it is being read. */
struct upload {
    char *bytes;
    size_t count;
};

/* One body while it is being sent. */
struct stream {
    test_http *server;
    uint64_t bytes;
    uint64_t pause_ms;
};

static void must(bool ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "test server: %s\n", what);
        abort();
    }
}

static uint64_t number_of(struct MHD_Connection *connection, const char *name, uint64_t otherwise)
{
    const char *text = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, name);
    return text == NULL ? otherwise : strtoull(text, NULL, 10);
}

/* Waits for the given time, or until the server is stopped. */
static void pause_for(test_http *server, uint64_t ms)
{
    struct timespec until;
    must(clock_gettime(CLOCK_MONOTONIC, &until) == 0, "clock");
    uint64_t ns = (uint64_t)until.tv_nsec + ms % 1000 * 1000000;
    until.tv_sec += (time_t)(ms / 1000 + ns / 1000000000);
    until.tv_nsec = (long)(ns % 1000000000);
    pthread_mutex_lock(&server->lock);
    while (!server->stopping && pthread_cond_timedwait(&server->stop, &server->lock, &until) == 0)
        continue;
    pthread_mutex_unlock(&server->lock);
}

static ssize_t stream_read(void *arg, uint64_t at, char *bytes, size_t room)
{
    struct stream *stream = arg;
    if (at >= stream->bytes)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (stream->pause_ms > 0) {
        pause_for(stream->server, stream->pause_ms);
        room = 1;
    }
    if (room > stream->bytes - at)
        room = (size_t)(stream->bytes - at);
    for (size_t i = 0; i < room; i++)
        bytes[i] = test_http_pattern(at + i);
    return (ssize_t)room;
}

static struct MHD_Response *stream_new(test_http *server, uint64_t bytes, uint64_t pause_ms,
                                       bool with_length)
{
    struct stream *stream = malloc(sizeof *stream);
    must(stream != NULL, "memory");
    *stream = (struct stream){server, bytes, pause_ms};
    return MHD_create_response_from_callback(with_length ? bytes : MHD_SIZE_UNKNOWN, 64 << 10,
                                             stream_read, stream, free);
}

static char *pattern_new(size_t bytes)
{
    char *body = malloc(bytes + 1);
    must(body != NULL, "memory");
    for (size_t i = 0; i < bytes; i++)
        body[i] = test_http_pattern(i);
    return body;
}

static struct MHD_Response *plain_new(size_t bytes)
{
    return MHD_create_response_from_buffer(bytes, pattern_new(bytes), MHD_RESPMEM_MUST_FREE);
}

static struct MHD_Response *gzip_new(struct MHD_Connection *connection, size_t bytes)
{
    const char *accepts =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Accept-Encoding");
    if (accepts == NULL || strstr(accepts, "gzip") == NULL)
        return plain_new(bytes);
    char *body = pattern_new(bytes);
    z_stream z = {0};
    must(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK, "deflate");
    size_t room = deflateBound(&z, bytes);
    char *packed = malloc(room);
    must(packed != NULL, "memory");
    z.next_in = (Bytef *)body;
    z.avail_in = (uInt)bytes;
    z.next_out = (Bytef *)packed;
    z.avail_out = (uInt)room;
    must(deflate(&z, Z_FINISH) == Z_STREAM_END, "deflate");
    size_t packed_bytes = room - z.avail_out;
    deflateEnd(&z);
    free(body);
    struct MHD_Response *response =
        MHD_create_response_from_buffer(packed_bytes, packed, MHD_RESPMEM_MUST_FREE);
    MHD_add_response_header(response, "Content-Encoding", "gzip");
    return response;
}

static enum MHD_Result header_list(void *arg, enum MHD_ValueKind kind, const char *key,
                                   const char *value)
{
    (void)kind;
    struct upload *text = arg;
    const char *shown = value == NULL ? "" : value;
    size_t line_bytes = strlen(key) + strlen(shown) + 3;
    text->bytes = realloc(text->bytes, text->count + line_bytes + 1);
    must(text->bytes != NULL, "memory");
    (void)snprintf(text->bytes + text->count, line_bytes + 1, "%s: %s\n", key, shown);
    text->count += line_bytes;
    return MHD_YES;
}

static struct MHD_Response *headers_new(struct MHD_Connection *connection)
{
    struct upload text = {calloc(1, 1), 0};
    MHD_get_connection_values(connection, MHD_HEADER_KIND, header_list, &text);
    return MHD_create_response_from_buffer(text.count, text.bytes, MHD_RESPMEM_MUST_FREE);
}

static struct MHD_Response *echo_new(struct MHD_Connection *connection, const char *method,
                                     struct upload *upload)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(
        upload->count, upload->bytes == NULL ? (void *)"" : upload->bytes, MHD_RESPMEM_MUST_COPY);
    const char *type = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Content-Type");
    MHD_add_response_header(response, "X-Method", method);
    MHD_add_response_header(response, "X-Type", type == NULL ? "none" : type);
    return response;
}

/* Bytes that begin like a PNG image, with the headers of the request behind them if asked for. */
static struct MHD_Response *image_new(struct MHD_Connection *connection, size_t bytes)
{
    static const char magic[8] = "\x89PNG\r\n\x1a\n";
    if (number_of(connection, "headers", 0) == 0) {
        char *body = pattern_new(bytes < sizeof magic ? sizeof magic : bytes);
        memcpy(body, magic, sizeof magic);
        return MHD_create_response_from_buffer(bytes < sizeof magic ? sizeof magic : bytes, body,
                                               MHD_RESPMEM_MUST_FREE);
    }
    struct upload text = {malloc(sizeof magic), sizeof magic};
    must(text.bytes != NULL, "memory");
    memcpy(text.bytes, magic, sizeof magic);
    MHD_get_connection_values(connection, MHD_HEADER_KIND, header_list, &text);
    return MHD_create_response_from_buffer(text.count, text.bytes, MHD_RESPMEM_MUST_FREE);
}

/* A redirect to the next hop, at last to an image; or to the URL that the request names. */
static struct MHD_Response *hop_new(struct MHD_Connection *connection, const char *path,
                                    unsigned *code)
{
    char next[64];
    const uint64_t left = number_of(connection, "left", 0);
    const char *url = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "url");
    if (strcmp(path, "/hops") == 0 && left == 0)
        return image_new(connection, 100);
    (void)snprintf(next, sizeof next, "hops?left=%" PRIu64, left - 1);
    *code = 302;
    struct MHD_Response *response = plain_new(5);
    if (strcmp(path, "/hops") == 0)
        MHD_add_response_header(response, "Location", next);
    else if (url != NULL)
        MHD_add_response_header(response, "Location", url);
    if (number_of(connection, "cookie", 0) != 0)
        MHD_add_response_header(response, "Set-Cookie", "seen=1; Path=/");
    return response;
}

static struct MHD_Response *answer_new(test_http *server, struct MHD_Connection *connection,
                                       const char *path, const char *method, struct upload *upload,
                                       unsigned *code)
{
    const uint64_t bytes = number_of(connection, "bytes", 5);
    const uint64_t ms = number_of(connection, "ms", 0);
    *code = 200;
    if (strcmp(path, "/plain") == 0)
        return plain_new((size_t)bytes);
    if (strcmp(path, "/delay") == 0) {
        pause_for(server, ms);
        return plain_new((size_t)bytes);
    }
    if (strcmp(path, "/slow") == 0)
        return stream_new(server, bytes, ms, true);
    if (strcmp(path, "/huge") == 0)
        return stream_new(server, bytes, 0, false);
    if (strcmp(path, "/gzip") == 0)
        return gzip_new(connection, (size_t)bytes);
    if (strcmp(path, "/echo") == 0)
        return echo_new(connection, method, upload);
    if (strcmp(path, "/headers") == 0)
        return headers_new(connection);
    if (strcmp(path, "/image") == 0)
        return image_new(connection, (size_t)bytes);
    if (strcmp(path, "/hops") == 0 || strcmp(path, "/to") == 0) {
        pause_for(server, ms);
        return hop_new(connection, path, code);
    }
    if (strcmp(path, "/redirect") == 0) {
        *code = 302;
        struct MHD_Response *response = plain_new(5);
        MHD_add_response_header(response, "Location", "/plain");
        return response;
    }
    *code = strcmp(path, "/status") == 0 ? (unsigned)number_of(connection, "code", 500) : 404;
    struct MHD_Response *response = plain_new(5);
    char after_s[24];
    (void)snprintf(after_s, sizeof after_s, "%" PRIu64, number_of(connection, "after", 7));
    MHD_add_response_header(response, "Retry-After", after_s);
    return response;
}

static enum MHD_Result on_request(void *arg, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *bytes,
                                  size_t *count, void **state)
{
    (void)version;
    test_http *server = arg;
    struct upload *upload = *state;
    if (upload == NULL) {
        *state = calloc(1, sizeof *upload);
        return *state == NULL ? MHD_NO : MHD_YES;
    }
    if (*count > 0) {
        char *longer = realloc(upload->bytes, upload->count + *count);
        if (longer == NULL)
            return MHD_NO;
        upload->bytes = longer;
        memcpy(upload->bytes + upload->count, bytes, *count);
        upload->count += *count;
        *count = 0;
        return MHD_YES;
    }
    (void)__atomic_add_fetch(&server->requests, 1, __ATOMIC_SEQ_CST);
    unsigned code = 200;
    struct MHD_Response *response = answer_new(server, connection, path, method, upload, &code);
    must(response != NULL, "response");
    MHD_add_response_header(response, "X-Test", "yes");
    enum MHD_Result queued = MHD_queue_response(connection, code, response);
    MHD_destroy_response(response);
    return queued;
}

static void on_end(void *arg, struct MHD_Connection *connection, void **state,
                   enum MHD_RequestTerminationCode code)
{
    (void)arg;
    (void)connection;
    (void)code;
    struct upload *upload = *state;
    if (upload != NULL) {
        free(upload->bytes);
        free(upload);
    }
    *state = NULL;
}

static void on_connection(void *arg, struct MHD_Connection *connection, void **state,
                          enum MHD_ConnectionNotificationCode code)
{
    (void)connection;
    (void)state;
    test_http *server = arg;
    if (code == MHD_CONNECTION_NOTIFY_STARTED)
        (void)__atomic_add_fetch(&server->connections, 1, __ATOMIC_SEQ_CST);
}

static unsigned port_of(struct MHD_Daemon *daemon)
{
    must(daemon != NULL, "libmicrohttpd does not start");
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT);
    must(info != NULL && info->port != 0, "no port");
    return info->port;
}

static void pem_keep(BIO *bio, char *pem, size_t room)
{
    int bytes = BIO_read(bio, pem, (int)room - 1);
    must(bytes > 0, "PEM");
    pem[bytes] = '\0';
    BIO_free(bio);
}

/* A key and a certificate for 127.0.0.1, signed by itself. */
static void certificate_new(char *key_pem, char *cert_pem, size_t room)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = X509_new();
    must(key != NULL && cert != NULL, "key");
    ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
    X509_gmtime_adj(X509_getm_notBefore(cert), -3600);
    X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
    X509_set_pubkey(cert, key);
    X509_NAME *name = X509_get_subject_name(cert);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"127.0.0.1", -1, -1,
                               0);
    X509_set_issuer_name(cert, name);
    must(X509_sign(cert, key, EVP_sha256()) > 0, "sign");
    BIO *bio = BIO_new(BIO_s_mem());
    must(PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) == 1, "key PEM");
    pem_keep(bio, key_pem, room);
    bio = BIO_new(BIO_s_mem());
    must(PEM_write_bio_X509(bio, cert) == 1, "certificate PEM");
    pem_keep(bio, cert_pem, room);
    X509_free(cert);
    EVP_PKEY_free(key);
}

static void tls_start(test_http *server)
{
    char key[4096];
    char cert[4096];
    certificate_new(key, cert, sizeof key);
    struct sockaddr_in address = {.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    server->tls_daemon = MHD_start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL | MHD_USE_TLS, 0, NULL, NULL, on_request,
        server, MHD_OPTION_SOCK_ADDR, (struct sockaddr *)&address, MHD_OPTION_NOTIFY_COMPLETED,
        on_end, NULL, MHD_OPTION_HTTPS_MEM_KEY, key, MHD_OPTION_HTTPS_MEM_CERT, cert,
        MHD_OPTION_END);
    server->tls_port = port_of(server->tls_daemon);
}

test_http *test_http_start(void)
{
    test_http *server = calloc(1, sizeof *server);
    must(server != NULL, "memory");
    pthread_condattr_t attr;
    must(pthread_condattr_init(&attr) == 0, "attr");
    must(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0, "clock");
    must(pthread_cond_init(&server->stop, &attr) == 0, "cond");
    pthread_condattr_destroy(&attr);
    must(pthread_mutex_init(&server->lock, NULL) == 0, "lock");

    struct sockaddr_in address = {.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    /* A thread per connection, since some answers wait. */
    server->daemon = MHD_start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL, 0, NULL,
        NULL, on_request, server, MHD_OPTION_SOCK_ADDR, (struct sockaddr *)&address,
        MHD_OPTION_NOTIFY_COMPLETED, on_end, NULL, MHD_OPTION_NOTIFY_CONNECTION, on_connection,
        server, MHD_OPTION_CONNECTION_TIMEOUT, 60u, MHD_OPTION_END);
    server->port = port_of(server->daemon);
    server->bad = test_bad_start();
    return server;
}

void test_http_stop(test_http *server)
{
    if (server == NULL)
        return;
    pthread_mutex_lock(&server->lock);
    server->stopping = true;
    pthread_cond_broadcast(&server->stop);
    pthread_mutex_unlock(&server->lock);
    MHD_stop_daemon(server->daemon);
    if (server->tls_daemon != NULL)
        MHD_stop_daemon(server->tls_daemon);
    test_bad_stop(server->bad);
    pthread_cond_destroy(&server->stop);
    pthread_mutex_destroy(&server->lock);
    free(server);
}

static const char *url_of(const char *scheme, unsigned port, const char *path)
{
    static _Thread_local char urls[4][512];
    static _Thread_local unsigned turn;
    char *url = urls[turn++ % 4];
    must(snprintf(url, sizeof urls[0], "%s://127.0.0.1:%u%s", scheme, port, path) <
             (int)sizeof urls[0],
         "URL too long");
    return url;
}

const char *test_http_url(test_http *server, const char *path)
{
    return url_of("http", server->port, path);
}

const char *test_http_bad_url(test_http *server, const char *path)
{
    return url_of("http", test_bad_port(server->bad), path);
}

const char *test_http_tls_url(test_http *server, const char *path)
{
    if (server->tls_daemon == NULL)
        tls_start(server);
    return url_of("https", server->tls_port, path);
}

uint64_t test_http_connections(test_http *server)
{
    return __atomic_load_n(&server->connections, __ATOMIC_SEQ_CST);
}

uint64_t test_http_requests(test_http *server)
{
    return __atomic_load_n(&server->requests, __ATOMIC_SEQ_CST);
}

uint64_t test_http_bad_requests(test_http *server)
{
    return test_bad_requests(server->bad);
}
