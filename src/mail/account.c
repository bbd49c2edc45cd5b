/* account.c - names, places and the row of a mail account. */
#include "mail/mail.h"

#include "mail/rows.h"
#include "system/system.h"

#include <stdio.h>

/* ---- names and places ---- */

void tide_mail_secret_name(const char *email, char name_out[TIDE_SECRET_NAME_BYTES_MAX])
{
    (void)snprintf(name_out, TIDE_SECRET_NAME_BYTES_MAX, "gmail/%s", email);
}

void tide_mail_dir(const char *archive_dir, const char *email, char *dir_out, size_t dir_bytes)
{
    (void)snprintf(dir_out, dir_bytes, "%s/%s", archive_dir, email);
}

/* ---- adding ---- */

/* A known account keeps what it has done so far. */
tide_status tide_mail_account_put(tide_rows db, uint32_t account,
                                  const struct tide_account_request *request, tide_error *err)
{
    struct tide_mail_row row;
    tide_status rc = tide_mail_row_get(db, account, &row, err);
    if (rc == TIDE_NOT_FOUND) {
        row = (struct tide_mail_row){.account = account};
        rc = tide_mail_epoch_get(db, account, &row.epoch, err);
    }
    (void)snprintf(row.email, sizeof row.email, "%s", request->name);
    (void)snprintf(row.endpoint, sizeof row.endpoint, "%s", request->endpoint);
    return rc == TIDE_OK ? tide_mail_row_put(db, &row, err) : rc;
}
