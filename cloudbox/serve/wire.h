/* wire.h - one request on its connection, and the fate of its answer.
 *
 * The logic gives an answer and its plan (struct box_plan), which is carried out here on a
 * libmicrohttpd connection: waiting, stopping half way, trickling, resetting, breaking
 * off.
 *
 * Invariants (all on the daemon's one thread, except the ring of a timer):
 *   BWIR1  a connection is suspended exactly while its timer waits.
 *   BWIR2  an exchange exists until its request is completed and its response is destroyed,
 *          whichever comes last.
 *   BWIR3  an answer in memory that must arrive whole and at once is given to the library as it is:
 *          no copy, and head and body leave in one piece.
 */
#ifndef BOX_SERVE_WIRE_H
#define BOX_SERVE_WIRE_H

#include "cloudbox/gate/cloud.h"
#include "cloudbox/serve/timer.h"

#include <microhttpd.h>
#include <time.h>

struct box_server;

typedef enum box_stage {
    BOX_STAGE_HEAD,    /* the request line is known */
    BOX_STAGE_BODY,    /* the body comes in */
    BOX_STAGE_WAITING, /* served; the answer's delay passes */
    BOX_STAGE_ANSWERING,
    BOX_STAGE_ENDING, /* a stall is over: close */
} box_stage;

struct box_exchange {
    struct box_timer timer; /* first: a ring finds its exchange */
    struct box_server *server;
    struct MHD_Connection *connection;
    struct box_exchange *next; /* unused ones */
    int references;
    box_stage stage;
    const char *method;
    tide_buf target;
    tide_buf body;
    struct box_sink sink; /* takes the body instead while .write is not NULL */
    tide_buf packed;      /* the answer's body under gzip */
    struct box_header headers[BOX_HEADERS_MAX];
    size_t headers_count;
    struct box_answer answer;
    bool served; /* answer.ticket is held */
    bool gzipped;
    bool stalled;
    bool unkept;     /* its change could not be written down: no answer */
    bool sent_early; /* refused before or while its body came */
    uint64_t started_ms;
    struct timespec started; /* the same by the wall clock, for a reader of the log */
    uint64_t trickle_from_ms;
};

/* Carries out the plan of a served exchange; called again after each wait. */
enum MHD_Result box_wire_answer(struct box_exchange *exchange);

/* Answers at once with a short error of the front end itself. */
enum MHD_Result box_wire_refuse(struct box_exchange *exchange, int status, const char *reason);
/* The same when the library takes no answer any more: in the middle of a body. */
void box_wire_refuse_raw(struct box_exchange *exchange, int status, const char *reason);

/* The ring of every timer: resumes the connection. */
void box_wire_ring(struct box_timer *timer);

#endif
