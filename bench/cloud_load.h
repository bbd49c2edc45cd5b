/* cloud_load.h - asks one server on loopback for many things at once.
 *
 * A client as cheap as can be: a few kept connections, one request out on each,
 * answers counted and thrown away; so that what is measured is the server. */
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

/* Ends the program when the server does not answer. */
struct load_result load_run(const struct load *load);

#endif
