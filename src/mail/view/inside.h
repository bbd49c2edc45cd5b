/* inside.h - what the files of this folder share. */
#ifndef TIDE_MAIL_VIEW_INSIDE_H
#define TIDE_MAIL_VIEW_INSIDE_H

#include "mail/view/view.h"

/* Takes back what was appended since the buffer had `bytes`. */
static inline void tide_view_back(tide_buf *out, size_t bytes)
{
    out->bytes = bytes;
    if (out->data != NULL)
        out->data[bytes] = '\0';
}

#endif
