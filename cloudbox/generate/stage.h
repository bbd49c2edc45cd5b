/* stage.h - one message while it is being written.
 *
 * Private to render.c (who writes, headers), say.c (what is
 * said) and body.c (parts and layouts).
 */
#ifndef BOX_GENERATE_STAGE_H
#define BOX_GENERATE_STAGE_H

#include "cloudbox/generate/plan.h"
#include "cloudbox/generate/sink.h"

enum { BOX_LINE_ROOM = BOX_SINK_LINE_BYTES_MAX };

struct box_stage {
    const struct box_generator *generator;
    const struct box_traits *traits;
    struct box_pen pen;
    struct box_peek *peek; /* NULL: the whole message is wanted */
    box_lang lang;
    const struct box_tongue *tongue;
    const struct box_notice *notice; /* or */
    const struct box_topic *topic;
    struct box_person other; /* who writes to the owner, or is written to */
    const char *other_domain;
    tide_text owner_name; /* first name, from the address; may be empty */
    char owner_room[32];
    box_charset charset;
    box_coding coding;
    uint64_t root_date_ms;
    uint64_t noise;
};

/* Fills the slots of `text` and appends it to the pen. */
void box_stage_expand(const struct box_stage *stage, const char *text, struct box_pen *pen);
void box_stage_subject(const struct box_stage *stage, struct box_pen *pen);
tide_text box_first_name(const char *name);
void box_pen_date(struct box_pen *pen, uint64_t date_ms);  /* as in a Date header */
void box_pen_stamp(struct box_pen *pen, uint64_t date_ms); /* 20240314T093000Z */
/* Written by a person, not by a company's machine. */
bool box_personal(const struct box_stage *stage);
/* What the message says, up to the sink's limit; with `whole` until there. */
void box_say_text(struct box_stage *stage, struct box_sink *sink, bool whole);
void box_say_html(struct box_stage *stage, struct box_sink *sink);
void box_say_offer(struct box_stage *stage, struct box_sink *sink);
/* Content-Type and all that follows, so that the message has its full size. */
void box_stage_body(struct box_stage *stage);

#endif
