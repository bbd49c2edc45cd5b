/* oauth_real.h - the real world with the cloud in a box in the place of the network: real
 * threads and real sockets, which race detectors and browsers need. */
#ifndef TEST_UNIT_OAUTH_REAL_H
#define TEST_UNIT_OAUTH_REAL_H

#include "oauth_stage.h"

#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

extern struct real_stage {
    tide_world *world;
    struct tide_world_ops ops;
    box_cloud *box;
    pthread_mutex_t lock; /* of the box */
    unsigned refreshes;
    char dir[64];
    tide_secrets *secrets;
} real;

int real_set_up(void **state);
int real_tear_down(void **state);
#define REALLY(test) TEST_WITH(test, real_set_up, real_tear_down)

/* Where the box sends the browser. */
void real_follow(const char *link, char location_out[2048]);
/* GET on an address of this machine over a socket; the code of the answer. */
int browse(const char *url);

struct waiter {
    tide_oauth_flow *flow;
    uint64_t wait_ms;
    tide_cancel cancel;
    tide_status rc;
    tide_error err;
};
void waiter_run(void *waiter);

tide_oauth_flow *real_flow(struct tide_oauth_client *client);
void real_sign_in(void);

#endif
