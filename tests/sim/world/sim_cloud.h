/* sim_cloud.h - the cloud in a box as the provider of the simulated network.
 *
 * One provider, not two: what libmicrohttpd serves in tidemark-cloud is served
 * here by the simulated world, with its clock and its faults.  The fate a plan
 * asks for (delay, stall, reset, truncation) becomes the network's.
 *
 * Invariant:
 *   SCLD1  a call holds its slot in flight from its effect until its answer has left, on the
 *          server's clock; a stalled one until its stall ends.
 */
#ifndef TIDE_SIM_CLOUD_H
#define TIDE_SIM_CLOUD_H

#include "cloudbox/mailbox/mailbox.h"
#include "cloudbox/services.h"
#include "net/secrets.h"
#include "sim_net.h"
#include "sim_world.h"

typedef struct tide_sim_cloud tide_sim_cloud;

tide_sim_cloud *tide_sim_cloud_new(const struct box_options *options);
void tide_sim_cloud_free(tide_sim_cloud *cloud); /* NULL is fine */
/* To set it up and to ask its referee. */
box_cloud *tide_sim_cloud_box(tide_sim_cloud *cloud);

/* For tide_sim_net_options.provide, with the cloud as its argument. */
void tide_sim_cloud_call(void *cloud, const struct tide_request *request, uint64_t now_unix_ms,
                         tide_rng *rng, struct tide_sim_answer *answer);

/* A request by hand, outside the network: GET or POST on a path; the answer is
 * the caller's to json_decref, NULL when it is not JSON. */
json_t *tide_sim_cloud_ask(tide_sim_cloud *cloud, const char *method, const char *target,
                           tide_text body, uint64_t now_unix_ms, int *http_out);

/* The same; an answer other than 2xx fails the simulation. */
json_t *tide_sim_cloud_control(tide_sim_cloud *cloud, tide_sim *sim, const char *method,
                               const char *target, tide_text body);
/* A GET whose answer is text; the caller's to free. */
tide_buf tide_sim_cloud_text(tide_sim_cloud *cloud, tide_sim *sim, const char *target);
/* Adds a user with a mailbox as of now, and a token. */
box_mailbox *tide_sim_cloud_user(tide_sim_cloud *cloud, tide_sim *sim, const char *email,
                                 const char *token, struct box_mailbox_options mailbox);
void tide_sim_cloud_fault(tide_sim_cloud *cloud, tide_sim *sim, const char *rule);

/* Opens the secrets of a directory of the simulated disk; the account's fixed token is put
 * there in the first life. */
tide_status tide_sim_signed_in(tide_world *world, const char *dir, const char *name,
                               const char *token, tide_secrets **secrets_out, tide_error *err);

#endif
