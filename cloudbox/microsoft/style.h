/* style.h - Microsoft Graph's way of answering:
 * {"error":{"code","message","innerError":{"code","date","request-id"}}} */
#ifndef BOX_MICROSOFT_STYLE_H
#define BOX_MICROSOFT_STYLE_H

#include "cloudbox/gate/service.h"

extern const struct box_style box_graph_style;

/* An error by Graph's own codes; `inner` may be NULL. */
void box_graph_fail(struct box_call *call, int http, const char *code, const char *inner,
                    const char *format, ...) __attribute__((format(printf, 5, 6)));
void box_graph_missing(struct box_call *call); /* 404 itemNotFound */

#endif
