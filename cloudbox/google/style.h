/* style.h - how Google's services speak: the error envelope, `fields` and `prettyPrint`. */
#ifndef BOX_GOOGLE_STYLE_H
#define BOX_GOOGLE_STYLE_H

#include "cloudbox/gate/service.h"

extern const struct box_style box_google_style;

#endif
