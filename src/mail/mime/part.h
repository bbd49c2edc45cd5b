/* part.h - what kind of part it is, and in which character set its text is.
 *
 * The rules that indexing (message.h) and display (body.h) share.  Every function is linear in what
 * it is given. */
#ifndef TIDE_MAIL_PART_H
#define TIDE_MAIL_PART_H

#include "mail/mime/check.h"

bool tide_part_is(const struct tide_part *part, const char *major,
                  const char *minor); /* NULL: any */
/* Declared as an attachment, whatever its type. */
bool tide_part_is_attached(const struct tide_part *part);
/* A part that is read as text: HTML, plain text, a delivery status, and a multipart without a
 * boundary. */
bool tide_part_is_text(const struct tide_part *part);
bool tide_part_is_html(const struct tide_part *part);

/* The set in which a page should be read.  `label` is that of its Content-Type; if that is missing,
 * unknown or ASCII, the one that the page declares in its <meta>; "" if there is none either, and
 * the bytes must tell.  Borrowed from one of the two. */
tide_text tide_part_html_charset(tide_text label, tide_text html);

#endif
