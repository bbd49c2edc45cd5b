/* faults.h - the faults of the chat service, where its calls meet them. */
#ifndef BOX_CHAT_FAULTS_H
#define BOX_CHAT_FAULTS_H

#include "cloudbox/chat/dialect.h"
#include "cloudbox/gate/faults.h"

enum { BOX_CHAT_FAULTS = 17 };
extern const struct box_fault box_chat_faults[BOX_CHAT_FAULTS];

/* Whether a fault refuses a parameter of the request; then the answer says so. */
bool box_chat_refuses(struct box_call *call, const struct box_dialect *dialect, const json_t *body);
/* Before it is written. */
void box_chat_spoil_said(struct box_call *call, struct box_talk *talk, struct box_said *said,
                         struct box_writing *writing);
/* After it. */
void box_chat_spoil_written(struct box_call *call, const struct box_dialect *dialect, bool stream);

#endif
