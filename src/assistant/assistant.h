/* assistant.h - the mail assistant of one home: its jobs with the configuration, the chat model and the
 * Gmail clients that they work with (J1, J20, J27).
 *
 *     assistant.c  open and close, what wakes it
 *     terms.c      the configuration that holds now, and the chat account that it names
 *     clients.c    the model, and the clients of the users
 *     plan.c       what happens by itself: syncs, the renewal of watches (J4)
 *
 * Its kinds exist whether there is a configuration or not: a user may write assistant.yaml, add a chat
 * account or onboard while the process runs.  Until then its jobs wait, and an alert says for what.
 *
 * Invariants:
 *   ASN1  assistant.yaml is read again when it changed, or a file that it names.  What is refused changes
 *         nothing: the last good one holds, and the alert assistant_config has file, line and reason.
 *   ASN2  without a configuration or a chat account no job of a user fails: it comes back.
 *   ASN3  a client that was lent lives until the assistant is closed.
 *   ASN4  nothing here reaches the mail system, which works whatever is wrong here.
 */
#ifndef TIDE_ASSISTANT_ASSISTANT_H
#define TIDE_ASSISTANT_ASSISTANT_H

#include "db/rows.h"
#include "net/secrets.h"
#include "tidemark.h"
#include "world/world.h"

typedef struct tide_assistant tide_assistant;

/* Alerts (tide_engine_alert()). */
#define TIDE_ASSISTANT_ALERT_CONFIG "assistant_config"
#define TIDE_ASSISTANT_ALERT_MODEL  "assistant_model"
#define TIDE_ASSISTANT_ALERT_BUDGET "assistant_budget"

/* What a process hands over to the engine of another one: as tide_assistant_onboard() and
 * tide_assistant_sync() do it (assistant/jobs/jobs.h). */
#define TIDE_ASSISTANT_ONBOARD_KIND  "assistant.onboard"
#define TIDE_ASSISTANT_SYNC_KIND     "assistant.sync"
#define TIDE_ASSISTANT_CLASSIFY_KIND "assistant.classify"

struct tide_assistant_options {
    tide_engine *engine; /* borrowed, as the rest; not started yet */
    tide_world *world;
    tide_secrets *secrets;
    const char *config_path;        /* of assistant.yaml; copied */
    const char *const *environment; /* like environ */
};
tide_status tide_assistant_open(const struct tide_assistant_options *options, tide_mem *mem,
                                tide_assistant **assistant_out, tide_error *err);
/* After the engine was closed. */
void tide_assistant_close(tide_assistant *assistant); /* NULL is fine */

/* Something changed in the mailbox: a sync is enqueued (J6).  TIDE_NOT_FOUND: no user has this address. */
tide_status tide_assistant_changed(tide_assistant *assistant, const char *email, bool full,
                                   tide_error *err);

/* A push of Gmail told that (J6): the time of the last one is kept for `assistant status`.  TIDE_NOT_FOUND: as
 * above. */
tide_status tide_assistant_pushed(tide_assistant *assistant, const char *email, tide_error *err);

/* The process stays: from now on users' mail is looked for by itself (J4).  Then the end of that. */
tide_status tide_assistant_watch(tide_assistant *assistant, tide_error *err);
void tide_assistant_watch_end(tide_assistant *assistant);

/* Makes the tables of the assistant where they are missing. */
tide_status tide_assistant_all_tables(tide_rows db, tide_error *err);

#endif
