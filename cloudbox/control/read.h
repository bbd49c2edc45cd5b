/* read.h - how the control page reads what it is given: strictly.
 *
 * Every function that returns false or NULL has filled the answer with a 400
 * that says what is wrong, so that a typing error in a test setup is found at
 * once and not by its missing effect. */
#ifndef BOX_CONTROL_READ_H
#define BOX_CONTROL_READ_H

#include "cloudbox/gate/service.h"
#include "cloudbox/gate/user.h"
#include "cloudbox/mailbox/mail.h"

enum { BOX_CONTROL_IDS_MAX = 100000 };

/* The body as an object with no other fields than these (NULL-terminated).  The
 * caller owns it. */
json_t *box_control_body(struct box_call *call, const char *const *fields);
/* The same check of an object inside a body, which is called `name` there. */
bool box_control_object(struct box_call *call, const json_t *object, const char *name,
                        const char *const *fields);
/* The existing user that a field of the body names. */
struct box_user *box_control_user(struct box_call *call, const json_t *body);
struct box_user *box_control_user_of(struct box_call *call, tide_text email);
/* A text that must be there. */
bool box_control_text(struct box_call *call, const json_t *body, const char *field,
                      tide_text *text_out);
/* A whole number; `fallback` when absent. */
bool box_control_number(struct box_call *call, const json_t *body, const char *field, uint64_t low,
                        uint64_t high, uint64_t fallback, uint64_t *number_out);
/* A list of label ids or names, as numbers, each once; an absent field is an empty list. */
bool box_control_labels(struct box_call *call, const json_t *body, const char *field,
                        const box_mailbox *mailbox, uint16_t *labels, size_t *count_out);
/* One more label for such a list. */
bool box_control_label(struct box_call *call, tide_text text, const box_mailbox *mailbox,
                       uint16_t *labels, size_t *count);
/* A list of message ids as slots, in the call's scratch memory. */
bool box_control_slots(struct box_call *call, const json_t *body, const box_mailbox *mailbox,
                       uint32_t **slots_out, size_t *count_out);
/* "90s", "1d12h", "250ms". */
bool box_control_duration(tide_text text, uint64_t *ms_out);
/* Answers a failed status: 400, or 409 for what is there already. */
void box_control_failed(struct box_call *call, const tide_error *err);

/* ---- mail.c ---- */
void box_control_mail(struct box_call *call);
void box_control_mail_delete(struct box_call *call);
void box_control_mail_label(struct box_call *call);

/* ---- drive.c ---- */
void box_control_drive_tree(struct box_call *call);
void box_control_drive_bin(struct box_call *call);
void box_control_drive_mark(struct box_call *call);
void box_control_drive_shortcut(struct box_call *call);
void box_control_drive_put(struct box_call *call);
void box_control_drive_folder(struct box_call *call);
void box_control_drive_move(struct box_call *call);
void box_control_drive_delete(struct box_call *call);
void box_control_drive_touch(struct box_call *call);
void box_control_drive_fill(struct box_call *call);
void box_control_drive_set(struct box_call *call);

/* ---- auth.c ---- */
void box_control_auth(struct box_call *call);

#endif
