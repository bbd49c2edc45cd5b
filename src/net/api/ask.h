/* ask.h - one call as a client writes it: builds the path, sends, parses the answer.
 *
 * A failure while building is kept and returned when the call is sent.  Errors begin with the
 * name of the method.
 */
#ifndef TIDE_NET_API_ASK_H
#define TIDE_NET_API_ASK_H

#include "base/json.h"
#include "net/api/call.h"

enum { TIDE_API_SMALL_BYTES_MAX = 1 << 20 }; /* of an answer without lists */

/* One call and its answer; embedded value. */
struct tide_api_ask {
    tide_api *api;
    tide_job *job;
    tide_buf path;
    tide_status failed;
    struct tide_api_call call; /* for the caller to complete; its path is set when it is sent */
    struct tide_response response;
};
/* `path` from the root.  The answer is a small one, unless the caller sets another limit. */
void tide_api_ask_init(struct tide_api_ask *ask, tide_api *api, tide_job *job, uint32_t method,
                       const char *path);
void tide_api_ask_done(struct tide_api_ask *ask);
void tide_api_ask_add(struct tide_api_ask *ask, const char *text);
/* Appends an untrusted value: everything but letters, digits and "-._~" is escaped. */
void tide_api_ask_value(struct tide_api_ask *ask, tide_text value);

const char *tide_api_ask_name(const struct tide_api_ask *ask); /* "messages.get" */
tide_status tide_api_ask_send(struct tide_api_ask *ask, tide_error *err);
/* Sends and parses the answer as a JSON object. */
tide_status tide_api_ask_json(struct tide_api_ask *ask, json_t **value_out, tide_error *err);
/* Prefixes an error with its method; text, status and code stay.  Returns `rc`. */
tide_status tide_api_ask_named(const struct tide_api_ask *ask, tide_status rc, tide_error *err);

/* Parses a JSON object.  TIDE_SERVER: it is none, which may be right next time. */
tide_status tide_api_object(tide_text body, json_t **value_out, tide_error *err);

#endif
