/* export.h - messages out of the archive as files (M17): eml or Maildir.
 *
 * Every file is the message byte for byte, written whole or not at all; a file
 * that is there with the same bytes is left alone, so that an export can be
 * repeated and goes on where it was stopped. */
#ifndef TIDE_MAIL_EXPORT_H
#define TIDE_MAIL_EXPORT_H

#include "mail/archive.h"
#include "mail/search.h"

typedef enum tide_export_format { TIDE_EXPORT_EML, TIDE_EXPORT_MAILDIR } tide_export_format;

struct tide_export {
    tide_export_format format;
    const char *dir;         /* made when missing */
    const tide_query *query; /* NULL: everything */
    const tide_cancel *cancel;
};
struct tide_exported {
    uint64_t written;
    uint64_t there; /* already */
    uint64_t bytes;
};
/* Stops at the first message that cannot be read back or written; err names it. */
tide_status tide_export_run(tide_world *world, tide_archive *archive,
                            const struct tide_export *wanted, tide_mem *mem,
                            struct tide_exported *exported_out, tide_error *err);

#endif
