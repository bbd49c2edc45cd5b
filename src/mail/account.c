/* account.c - adds and removes mail accounts, on any engine of the program: the mail system need
 * not be open on it. */
#include "mail/inside.h"

#include "engine/accounts/archive_id.h"
#include "mail/rows.h"

#include <stdio.h>
#include <string.h>

/* ---- names and places ---- */

void tide_mail_secret_name(const char *email, char name_out[TIDE_SECRET_NAME_BYTES_MAX])
{
    (void)snprintf(name_out, TIDE_SECRET_NAME_BYTES_MAX, "gmail/%s", email);
}

void tide_mail_dir(const char *archive_dir, const char *email, char *dir_out, size_t dir_bytes)
{
    (void)snprintf(dir_out, dir_bytes, "%s/%s", archive_dir, email);
}

tide_status tide_mail_place(const struct tide_mail_options *at, const char *email, uint32_t account,
                            bool added, bool *shared_out, tide_error *err)
{
    char dir[4096 + 256];
    tide_mail_dir(at->archive_dir, email, dir, sizeof dir);
    const struct tide_placing placing = {.account = account,
                                         .name = email,
                                         .dir = dir,
                                         .secret = tide_secrets_where(at->secrets),
                                         .added = added};
    return tide_archive_place(at->engine, at->world, &placing, shared_out, err);
}

struct tide_mail_options tide_mail_at(const tide_mail *mail)
{
    return (struct tide_mail_options){.engine = mail->engine,
                                      .world = mail->world,
                                      .secrets = mail->secrets,
                                      .archive_dir = mail->archive_dir};
}

/* ---- adding and removing ---- */

/* A known account keeps what it has done so far. */
static tide_status put_row(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct tide_mail_row *wanted = arg;
    const tide_rows db = tide_transaction_rows(transaction);
    struct tide_mail_row row = *wanted;
    tide_status rc = tide_mail_row_get(db, wanted->account, &row, err);
    if (rc == TIDE_NOT_FOUND) {
        row = *wanted;
        rc = tide_mail_epoch_get(db, wanted->account, &row.epoch, err);
    }
    if (rc != TIDE_OK)
        return rc;
    memcpy(row.email, wanted->email, sizeof row.email);
    memcpy(row.endpoint, wanted->endpoint, sizeof row.endpoint);
    return tide_mail_row_put(db, &row, err);
}

tide_status tide_mail_account_add_at(const struct tide_mail_options *at, const char *email,
                                     const char *endpoint, tide_error *err)
{
    struct tide_mail_row row = {.account = 0};
    bool shared = false;
    (void)snprintf(row.email, sizeof row.email, "%s", email);
    (void)snprintf(row.endpoint, sizeof row.endpoint, "%s", endpoint == NULL ? "" : endpoint);
    TIDE_TRY(tide_engine_account(at->engine, email, "gmail", &row.account, err));
    TIDE_TRY(tide_mail_place(at, email, row.account, true, &shared, err));
    return tide_transact(at->engine, put_row, &row, err);
}

tide_status tide_mail_account_add(tide_mail *mail, const char *email, const char *endpoint,
                                  tide_error *err)
{
    const struct tide_mail_options at = tide_mail_at(mail);
    return tide_mail_account_add_at(&at, email, endpoint, err);
}

static tide_status remove_row(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct tide_mail_row *row = arg;
    const tide_rows db = tide_transaction_rows(transaction);
    TIDE_TRY(tide_mail_row_get(db, row->account, row, err));
    /* An account that is added again may get another place. */
    const tide_status gone = tide_transaction_place(transaction, row->account, "", "", err);
    return gone == TIDE_OK ? tide_mail_row_remove(db, row->account, err) : gone;
}

tide_status tide_mail_account_remove(tide_engine *engine, const char *email, tide_error *err)
{
    struct tide_mail_row row = {.account = 0};
    TIDE_TRY(tide_engine_account(engine, email, "gmail", &row.account, err));
    return tide_transact(engine, remove_row, &row, err);
}
