/* gmail.h - the handlers of the Gmail service. */
#ifndef BOX_GMAIL_H
#define BOX_GMAIL_H

#include "logic/service.h"
#include "logic/user.h"

/* gmail_list.c: pages of ids, newest first. */
void box_gmail_messages_list(struct box_call *call);
void box_gmail_threads_list(struct box_call *call);
void box_gmail_drafts_list(struct box_call *call);

/* gmail_history.c */
void box_gmail_history_list(struct box_call *call);

#endif
