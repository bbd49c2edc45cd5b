/* file_name.h - under which name an attachment is saved.
 *
 * The sender chose the name.  It becomes one component of a path, on any system, that looks like
 * what it is.
 *
 * Invariants:
 *   FNM1  not empty, at most TIDE_FILE_NAME_BYTES_MAX bytes, valid UTF-8.
 *   FNM2  no control character, no character that a file system forbids or a shell or browser reads
 *         as a path (/ \ : * ? " < > |), none that turns the direction of writing ("exe.fdp" shown
 *         as "pdf.exe").
 *   FNM3  no dot or blank at its front or end, not the name of a device (CON, LPT1).
 *   FNM4  the end of the name ("pdf") is kept.
 */
#ifndef TIDE_MAIL_FILE_NAME_H
#define TIDE_MAIL_FILE_NAME_H

#include "mail/mime/message.h"

enum { TIDE_FILE_NAME_BYTES_MAX = 210 };

/* `number`, from 1, names an attachment without a name. */
void tide_file_name(const struct tide_attachment *attachment, size_t number,
                    char name_out[TIDE_FILE_NAME_BYTES_MAX + 1]);

#endif
