/* inside.h - what the files of Graph share. */
#ifndef BOX_GRAPH_INSIDE_H
#define BOX_GRAPH_INSIDE_H

#include "cloudbox/drive/drive.h"
#include "cloudbox/gate/faults.h"
#include "cloudbox/gate/service.h"
#include "cloudbox/gate/user.h"
#include "cloudbox/graph/address.h"
#include "cloudbox/graph/graph.h"
#include "cloudbox/graph/item.h"
#include "cloudbox/microsoft/style.h"

/* ---- place.c: what an address names ---- */

struct box_spot {
    box_drive *drive;
    uint32_t slot; /* BOX_ITEM_NONE: there is nothing at that path, but */
    uint32_t parent;
    tide_text name; /* it could be made here */
    struct box_address address;
};

/* false: the answer says why not. */
bool box_graph_place(struct box_call *call, struct box_spot *place_out);
bool box_graph_item(struct box_call *call, struct box_spot *place_out); /* that is there */
/* The item that {"id"} or {"path"} of a parentReference names. */
bool box_graph_reference(struct box_call *call, box_drive *drive, const json_t *reference,
                         uint32_t *slot_out);
/* A name for a new item, or for one that moves: allowed, and not too deep or long. */
bool box_graph_name(struct box_call *call, const box_drive *drive, uint32_t parent, tide_text name);

/* ---- conditions.c ---- */

/* If-Match and If-None-Match against the item (BOX_ITEM_NONE: there is none).  false: 412, or
 * 304 to a GET. */
bool box_graph_conditions(struct box_call *call, const box_drive *drive, uint32_t slot);
/* Whether a header's list of tags has one of the item. */
bool box_graph_tag_fits(tide_text tags, const box_drive *drive, uint32_t slot);
/* Writes down a change of something that the client might not know. */
void box_graph_judge_overwrite(const struct box_call *call, const box_drive *drive, uint32_t slot,
                               bool checked);
void box_graph_judge_delete(const struct box_call *call, const box_drive *drive, uint32_t slot);

typedef enum box_conflict {
    BOX_CONFLICT_FAIL,
    BOX_CONFLICT_REPLACE,
    BOX_CONFLICT_RENAME
} box_conflict;
/* From the query or `body`'s "@microsoft.graph.conflictBehavior".  false: answered. */
bool box_graph_conflict(struct box_call *call, const json_t *body, box_conflict fallback,
                        box_conflict *conflict_out);
/* "name 1.txt": the first of these that is free. */
tide_text box_graph_free_name(const struct box_call *call, const box_drive *drive, uint32_t parent,
                              tide_text name);

/* ---- write.c ---- */

/* {"fileSystemInfo":{...}}; an absent one is no times.  false: answered. */
bool box_graph_times(struct box_call *call, const json_t *body, struct box_file_times *times_out);
/* Whether so many bytes more fit (507). */
bool box_graph_fits(struct box_call *call, const box_drive *drive, uint64_t more, uint64_t less);
/* Puts a finished content at a place and answers with the item: 201 when it is new.
 * `checked`: the client said which version it replaces. */
void box_graph_put(struct box_call *call, const struct box_spot *place,
                   const struct box_content *content, struct box_file_times times,
                   box_conflict conflict, bool checked);

/* ---- handlers ---- */

void box_graph_me(struct box_call *call);       /* drives.c */
void box_graph_drives(struct box_call *call);   /* drives.c */
void box_graph_drive(struct box_call *call);    /* drives.c */
void box_graph_get(struct box_call *call);      /* read.c */
void box_graph_children(struct box_call *call); /* read.c */
/* read.c: ,"name":"this address?tokenvoid box_graph_delta(struct box_call..." */
void box_graph_link(const struct box_call *call, const char *name, const char *token,
                    tide_buf *out);
void box_graph_delta(struct box_call *call);       /* delta.c */
void box_graph_add(struct box_call *call);         /* write.c */
void box_graph_update(struct box_call *call);      /* write.c */
void box_graph_remove(struct box_call *call);      /* write.c */
void box_graph_content_get(struct box_call *call); /* content.c */
void box_graph_content_put(struct box_call *call); /* content.c */
void box_graph_download(struct box_call *call);    /* content.c */

/* content.c: bodies of uploads. */
bool box_graph_sink(struct box_call *call, struct box_sink *sink_out);
/* A sink that gathers up to so many bytes, and what it has. */
bool box_graph_receive(uint64_t bytes_max, struct box_sink *sink_out);
const struct box_gather *box_graph_received(const struct box_call *call);
/* The address of an item's bytes, good for an hour. */
void box_graph_download_url(const struct box_call *call, uint32_t slot, tide_buf *out);
/* An address below /_files that carries the caller's permission, for `what` alone. */
void box_graph_pass_url(const struct box_call *call, const char *what, uint32_t slot,
                        uint64_t until_ms, tide_buf *out);
/* What the call's address says; false: it was not made here, or for something else. */
bool box_graph_pass_read(const struct box_call *call, const char *what, uint32_t *slot_out,
                         uint64_t *until_ms_out);
/* Whom such an address was made for; NULL: it is not one of ours. */
struct box_user *box_graph_pass_user(const struct box_call *call, const char *what,
                                     tide_text token);

/* ---- copy.c ---- */

void box_graph_copy(struct box_call *call);
void box_graph_monitor(struct box_call *call);

/* ---- batch.c ---- */

bool box_graph_batch(box_cloud *cloud, const struct box_request *request,
                     struct box_answer *answer);

/* The service's state. */
struct box_graph_state {
    struct box_sessions *sessions;
    struct box_subscriptions *subscriptions;
};

/* ---- subscriptions.c ---- */

struct box_subscriptions *box_subscriptions_new(void);
void box_subscriptions_free(struct box_subscriptions *self);
void box_graph_subscribe(struct box_call *call);
void box_graph_subscriptions(struct box_call *call);
void box_graph_subscription_get(struct box_call *call);
void box_graph_subscription_renew(struct box_call *call);
void box_graph_subscription_delete(struct box_call *call);
void box_graph_changed(box_cloud *cloud, struct box_user *user);
bool box_graph_delivery_next(box_cloud *cloud, uint64_t now_ms, struct box_delivery *delivery_out);
void box_graph_delivery_ended(box_cloud *cloud, uint64_t id, int status, tide_text body,
                              uint64_t now_ms);
uint64_t box_graph_delivery_wake_at_ms(box_cloud *cloud);

/* ---- session.c ---- */

struct box_sessions *box_sessions_new(void);
void box_sessions_free(struct box_sessions *sessions);
struct box_user *box_graph_session_user(const struct box_call *call, tide_text id);
bool box_graph_session_sink(const struct box_call *call, struct box_sink *sink_out);
void box_graph_session_create(struct box_call *call);
void box_graph_session_adopt(struct box_call *call);
void box_graph_session_put(struct box_call *call);
void box_graph_session_get(struct box_call *call);
void box_graph_session_cancel(struct box_call *call);
void box_graph_session_commit(struct box_call *call);

/* delta.c: 410, with the kind of resync */
void box_graph_resync(struct box_call *call, const char *kind);

/* ---- record.c ---- */

struct box_graph_user; /* a user's part */
struct box_graph_user *box_graph_user(const struct box_user *user);
/* So many bytes of an item were given out. */
void box_graph_bytes_sent(const struct box_call *call, box_drive *drive, uint32_t slot,
                          uint64_t bytes);
/* A deltaLink that ended at this line of the log began a round. */
void box_graph_token_used(const struct box_call *call, const box_drive *drive, uint32_t line);
void box_graph_record(box_cloud *cloud, const struct box_user *user, bool details, json_t *object);
void box_graph_record_reset(box_cloud *cloud);
tide_status box_graph_user_open(struct box_user *user, json_t *settings, void **part_out,
                                tide_error *err);
void box_graph_user_close(void *part);

/* ---- limits.c ---- */

enum { BOX_METER_GRAPH = 1, BOX_GRAPH_LIMITS = 3 };
extern const struct box_limit box_graph_limits[BOX_GRAPH_LIMITS];
void box_graph_answered(struct box_call *call);
void box_graph_refuse(struct box_call *call, const struct box_limit *limit, uint64_t retry_at_ms);

/* faults.c: 403 instead of a file's bytes */
void box_graph_malware(struct box_call *call);
/* hostile.c: what a service should never say */
void box_graph_hostile_names(struct box_call *call, const struct box_strike *strike);
void box_graph_odd_times(struct box_call *call, const struct box_strike *strike);
enum { BOX_GRAPH_FAULTS = 17 };
extern const struct box_fault box_graph_faults[BOX_GRAPH_FAULTS];

#endif
