/* cloud_load.h - sends many requests at once to one server on loopback.
 *
 * The cheapest client possible: a few kept connections, one request at a time on each,
 * answers counted and dropped; so that the server is what is measured. */
#ifndef BENCH_CLOUD_LOAD_H
#define BENCH_CLOUD_LOAD_H

#include <stddef.h>
#include <stdint.h>

struct load {
    uint16_t port;
    uint32_t connections;
    uint32_t requests; /* in all */
    /* Writes the target ("/path?query") of the n-th request. */
    void (*target)(void *arg, uint32_t n, char *text_out, size_t text_bytes);
    void *arg;
    const char *headers; /* "Authorization: Bearer x\r\n" */
};

struct load_result {
    double seconds;
    uint64_t ok; /* answers with 200 */
    uint64_t other;
    uint64_t bytes; /* of bodies */
};

/* Exits the program when the server does not answer. */
struct load_result load_run(const struct load *load);

#endif
