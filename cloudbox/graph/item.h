/* item.h - a driveItem as JSON, and $select. */
#ifndef BOX_GRAPH_ITEM_H
#define BOX_GRAPH_ITEM_H

#include "cloudbox/drive/drive.h"
#include "cloudbox/gate/service.h"

enum {
    BOX_ITEM_IN_DELTA = 1, /* no download address; a business drive has no path and no cTag */
    BOX_ITEM_FORMER = 2,   /* as it was before its latest change, if that is known */
    BOX_TAG_BYTES = 80,
};

/* $select as a set of fields; all when there is none.  Fields that are not known are left
 * out. */
uint32_t box_item_select(const struct box_call *call);
/* Appends the item as a JSON object. */
void box_item_write(const struct box_call *call, const box_drive *drive, uint32_t slot,
                    uint32_t select, uint32_t how, tide_buf *out);
/* Answers with it, in full unless $select says otherwise. */
void box_item_reply(struct box_call *call, box_drive *drive, uint32_t slot, int status);

/* Without the quotes. */
void box_item_etag(const box_drive *drive, uint32_t slot, char tag_out[BOX_TAG_BYTES]);
void box_item_ctag(const box_drive *drive, uint32_t slot, char tag_out[BOX_TAG_BYTES]);
/* "2026-09-11T20:00:00Z" */
enum { BOX_SECONDS_TEXT_BYTES = 24 };
void box_seconds_text(uint64_t unix_ms, char text_out[BOX_SECONDS_TEXT_BYTES]);

#endif
