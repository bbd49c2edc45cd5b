/* setup.h - fills a new cloud with what the options name, and makes sure that a
 * kept state continues with the options it was started with.
 *
 * Mailboxes are generated from the seed and the time they were made, so both
 * stand in the first line of a state and count instead of today's. */
#ifndef BOX_SERVE_SETUP_H
#define BOX_SERVE_SETUP_H

#include "cloudbox/serve/options.h"
#include "cloudbox/serve/shared.h"
#include "cloudbox/serve/state.h"

/* Makes shared->cloud.  `state` may be NULL.  `settings` is completed: the seed and
 * the mailboxes of a state, the demonstration when nothing was asked for. */
tide_status box_setup(struct box_settings *settings, struct box_shared *shared, box_state *state,
                      tide_error *err);

#endif
