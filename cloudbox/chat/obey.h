/* obey.h - a model that does what any text in the conversation orders: the worst case of a mail that
 * takes a model over.  A client is safe if such a model can do no more than the tools it was given,
 * on what they are meant for.
 *
 * Orders stand between double brackets, in anything that the user said or a tool answered; they need
 * no quotes, so that they survive in JSON, headers and names of files:
 *
 *     [[call NAME key=value; key=value]]   calls that tool, whether it was offered or not
 *     [[say TEXT]]                         answers that; ' becomes ", for JSON
 *
 * Calls are made one after the other, each once; then it says the first TEXT. */
#ifndef BOX_CHAT_OBEY_H
#define BOX_CHAT_OBEY_H

#include "cloudbox/chat/model.h"

/* Whether there was an order left. */
bool box_model_obey(const struct box_talk *talk, struct box_said *said);

#endif
