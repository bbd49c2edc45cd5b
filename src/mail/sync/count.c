/* count.c - compares the server's number of messages with those known here: a listing may leave
 * messages out (M6a). */
#include "mail/mail.h"

enum { SHORT_MIN = 4 }; /* up to this many may arrive or be deleted during a listing */

bool tide_mail_is_short(uint64_t named, uint64_t messages)
{
    return messages > named && messages - named > SHORT_MIN && named < messages / 4 * 3;
}

uint64_t tide_mail_unlisted(uint64_t missing, uint64_t messages)
{
    return missing > messages / 100 ? missing : 0;
}

tide_status tide_mail_missing(const struct tide_mail_count *count, uint64_t *missing_out,
                              tide_error *err)
{
    struct tide_archive_tally tally = {0};
    if (count->archive != NULL)
        TIDE_TRY(tide_archive_tally(count->archive, &tally, err));
    const uint64_t elsewhere = tally.gone + tally.imported; /* the server does not count these */
    const uint64_t here = count->stored > elsewhere ? count->stored - elsewhere : 0;
    const uint64_t known = here + count->recorded;
    *missing_out = count->total > known ? count->total - known : 0;
    return TIDE_OK;
}
