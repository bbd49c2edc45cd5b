/* sim_net.h - the simulated network: HTTP calls to a pure provider.
 *
 * A call sleeps its thread in simulated time and ends as the contract of
 * tide_world_call() says.  The provider is a function of request, time and
 * randomness; it is called at the instant when the request takes effect, which
 * lies somewhere between sending and the first byte of the answer.  Its clock
 * is the server's: wall time when the world began, plus monotonic time, plus a
 * seeded skew; the client's jumps do not move it.
 *
 * Invariants:
 *   SNET1  the provider sees times that never go back.
 *   SNET2  a call that was sent and then given up (cancel, timeout, crash) may still take effect
 *          afterwards: a toss decides, as in life.
 *   SNET3  TIDE_NETWORK is returned only if the provider never sees the request.
 *   SNET4  a sink is called on the thread that made the call.
 */
#ifndef TIDE_SIM_NET_H
#define TIDE_SIM_NET_H

#include "base/buf.h"
#include "base/rng.h"
#include "world/world.h"

typedef struct tide_sim tide_sim;

enum { TIDE_SIM_ANSWER_HEADERS_MAX = 16 };

/* What the provider says, and what happens to it on its way. */
struct tide_sim_answer {
    int http;
    tide_buf body;
    struct tide_header headers[TIDE_SIM_ANSWER_HEADERS_MAX]; /* into header_text */
    size_t headers_count;
    char header_text[2048];
    size_t header_text_bytes;

    uint64_t think_us;      /* until the first byte; the network adds its own delay */
    bool stall;             /* the answer stops somewhere and never continues */
    bool reset;             /* the connection ends instead of an answer */
    uint64_t truncate_from; /* the connection ends after so many bytes; UINT64_MAX: no */
};

/* Adds a header; both are copied.  Ignored when there is no room left. */
void tide_sim_answer_header(struct tide_sim_answer *answer, const char *name, const char *value);

/* `now_unix_ms` is the server's clock.  The request has its whole body in
 * `body`, also when it was streamed. */
typedef void tide_sim_provide(void *arg, const struct tide_request *request, uint64_t now_unix_ms,
                              tide_rng *rng, struct tide_sim_answer *answer);

/* Chances are per thousand calls; zero is a fast and faithful network. */
struct tide_sim_net_options {
    tide_sim_provide *provide; /* NULL: every call answers 404 */
    void *provide_arg;
    uint32_t latency_us_max;     /* one way; 0: 40,000 */
    uint32_t skew_ms_max;        /* the server's clock, either way */
    uint32_t refuse_permille;    /* no connection: TIDE_NETWORK at once */
    uint32_t loss_permille;      /* no connection: TIDE_NETWORK after the connect timeout */
    uint32_t reset_permille;     /* TIDE_UNKNOWN, before or after the effect */
    uint32_t stall_permille;     /* before the effect, before the answer or inside it */
    uint32_t truncate_permille;  /* the connection ends inside the body */
    uint32_t garbage_permille;   /* the body arrives whole but scrambled */
    uint32_t duplicate_permille; /* the effect happens twice */
    uint32_t outage_per_million; /* an outage of 1 s to 10 min begins */
    uint32_t slow_permille;      /* latency times 10 to 200 */
};

struct tide_sim_net_stats {
    uint64_t calls;
    uint64_t effects; /* calls of the provider */
    uint64_t ghosts;  /* effects after the caller had given up */
    uint64_t duplicates;
    uint64_t answered; /* TIDE_OK */
    uint64_t refused;  /* TIDE_NETWORK */
    uint64_t resets;   /* TIDE_UNKNOWN */
    uint64_t timeouts;
    uint64_t canceled;
    uint64_t garbage;
    uint64_t outages;
    uint32_t in_flight_highest;
    uint64_t budget_bytes_highest;
};

struct tide_sim_net_stats tide_sim_net_stats(tide_sim *sim);
void tide_sim_net_down(tide_sim *sim, bool down);
/* Lets every effect that is due take place; call it before looking at what
 * the provider recorded. */
void tide_sim_net_settle(tide_sim *sim);
/* First pauses until every effect is due. */
void tide_sim_net_drain(tide_sim *sim);
/* The server's clock. */
uint64_t tide_sim_net_unix_ms(tide_sim *sim);

#endif
