/* http_server.h - a small HTTP server for tests, well or badly behaved.
 *
 * It listens on 127.0.0.1, on a port the system picks, on threads of its own,
 * from start to stop.  What it does with a request is said by the request's
 * path, so that a test reads as one line; numbers are query arguments:
 *
 *   Well behaved (libmicrohttpd; keep-alive):
 *     /plain?bytes=N        N bytes of a known pattern (default 5), X-Test: yes
 *     /status?code=N        that code, a short body, Retry-After: 7; or after=S
 *     /redirect             302 to /plain
 *     /image?bytes=N        N bytes (at least 8) that begin like a PNG image; with
 *                           headers=1 its first 8 and the request's headers
 *     /hops?left=N          N redirects, then an image; with ms=M each takes so
 *                           long, with cookie=1 each sets one
 *     /to?url=URL           302 to URL; without one, without a Location
 *     /delay?ms=N           /plain, N ms later
 *     /slow?bytes=N&ms=M    one byte every M ms
 *     /gzip?bytes=N         the pattern, gzip if asked for
 *     /huge?bytes=N         N bytes without a length (chunked)
 *     /echo                 what was uploaded, with its method in X-Method and
 *                           its Content-Type in X-Type
 *     /headers              the request's headers, one per line
 *
 *   Badly behaved (a plain socket, see test_http_bad_url()):
 *     /reset-before         resets the connection without reading the request
 *     /reset-after          reads the request, then resets
 *     /close-after          reads the request, then closes without a word
 *     /stall-zero           reads the request and says nothing
 *     /stall-head           half a head, then nothing
 *     /stall-body           half a body, then nothing
 *     /truncated            promises 1000 bytes, sends 500, closes
 *     /truncated-chunk      the same with chunks
 *     /bad-chunk            a chunk size that is no number
 *     /bad-gzip             claims gzip and is not
 *     /half-gzip            a gzip body that breaks off within a proper answer
 *     /garbage              bytes that are not HTTP
 *     /early-hints          103 with 60 headers, then 200 with 62 and a trailer
 *     /many-headers         a hundred headers
 *     /long-header          one header of 200,000 bytes
 *     /one-then-close       a proper answer; the next request on the same
 *                           connection is read and the connection closed
 *     /never-read           never reads a body that is uploaded
 *     /early-413            refuses an upload without reading it
 *
 * Behaviour that waits is ended by test_http_stop(), never by a sleep. */
#ifndef TEST_SUPPORT_HTTP_SERVER_H
#define TEST_SUPPORT_HTTP_SERVER_H

#include <stddef.h>
#include <stdint.h>

typedef struct test_http test_http;

/* Aborts the test program if it cannot start. */
test_http *test_http_start(void);
void test_http_stop(test_http *server);

/* Absolute URLs; `path` begins with '/'.  Valid until the fourth call after. */
const char *test_http_url(test_http *server, const char *path);
const char *test_http_bad_url(test_http *server, const char *path);
/* The well behaved one over TLS, with a self-signed certificate. */
const char *test_http_tls_url(test_http *server, const char *path);

uint64_t test_http_connections(test_http *server);  /* well behaved, so far */
uint64_t test_http_requests(test_http *server);     /* likewise */
uint64_t test_http_bad_requests(test_http *server); /* read whole by the other one */

/* The byte at `index` of the known pattern. */
static inline char test_http_pattern(uint64_t index)
{
    return (char)('a' + (char)((index * 7 + index / 251) % 26));
}

#endif
