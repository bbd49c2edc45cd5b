#include "mail/system.h"

#include "mail/files/backup.h"
#include "mail/mail.h"
#include "mail/manifest.h"
#include "mail/rows.h"

#include <string.h>

static tide_status tables(tide_rows db, tide_error *err)
{
    const tide_status rc = tide_mail_tables(db, err);
    return rc == TIDE_OK ? tide_manifest_tables(db, err) : rc;
}

/* ---- running ---- */

static tide_status open_mail(const struct tide_system_home *home, void **state_out, tide_error *err)
{
    const tide_settings *settings = home->settings;
    const struct tide_mail_options *wanted = home->options;
    const struct tide_mail_options options = {
        .engine = home->engine,
        .world = home->world,
        .secrets = home->secrets,
        .archive_dir = home->archive_dir,
        .window_units = tide_setting_u64(settings, TIDE_SET_GOVERNOR_GMAIL_WINDOW_UNITS),
        .window_ms = tide_setting_u64(settings, TIDE_SET_GOVERNOR_GMAIL_WINDOW),
        .archiver = wanted != NULL && wanted->archiver,
        .no_sync = wanted != NULL && wanted->no_sync};
    tide_mail *mail = NULL;
    const tide_status rc = tide_mail_open(&options, home->mem, &mail, err);
    *state_out = mail;
    return rc;
}

static tide_status close_mail(void *state, tide_error *err)
{
    return tide_mail_close(state, err);
}

static tide_status rest(void *state, tide_error *err)
{
    return tide_mail_rest(state, err);
}

/* Indexes stored messages, one group at a time, so that searches find them. */
static tide_status idle(void *state, bool *more_out, tide_error *err)
{
    uint64_t done = 0;
    const tide_status rc = tide_mail_index(state, &done, err);
    *more_out = rc == TIDE_OK && done > 0;
    return rc;
}

/* ---- copies: a directory for each address ---- */

static bool owns_entry(const char *name)
{
    return strchr(name, '@') != NULL;
}

static tide_status backup(const struct tide_system_copy *copy, struct tide_system_copied *done,
                          tide_error *err)
{
    struct tide_backed_up mail = {0};
    const struct tide_backup wanted = {.from_dir = copy->from,
                                       .to_dir = copy->to,
                                       .account = copy->name,
                                       .free_min_bytes = copy->free_min_bytes,
                                       .cancel = copy->cancel,
                                       .progress = copy->progress,
                                       .progress_arg = copy->progress_arg};
    const tide_status rc = tide_backup_archive(copy->world, &wanted, copy->mem, &mail, err);
    *done = (struct tide_system_copied){mail.copied, mail.same, mail.bytes, mail.messages};
    return rc;
}

static void note_damage(const struct tide_damage *damage, void *arg)
{
    tide_error *err = arg;
    if (err->status == TIDE_OK)
        (void)tide_error_set(err, TIDE_CORRUPT, "shard %s %s is damaged: %s", damage->shard,
                             damage->gmail_id, damage->what);
}

static tide_status backup_check(const struct tide_system_copy *copy, tide_error *err)
{
    const struct tide_archive_options options = {
        .dir = copy->to, .account = copy->name, .world = copy->world, .read_only = true};
    tide_archive *archive = NULL;
    tide_error damage = {TIDE_OK, 0, ""};
    uint64_t checked = 0;
    tide_status rc = tide_archive_open(&options, copy->mem, &archive, err);
    if (rc == TIDE_OK)
        rc = tide_archive_verify(archive, 0, note_damage, &damage, &checked, err);
    (void)tide_archive_close(archive, NULL);
    if (rc == TIDE_OK && damage.status != TIDE_OK) {
        *err = damage;
        return damage.status;
    }
    return rc;
}

const struct tide_system tide_mail_system = {
    .name = "mail",
    .provider = "gmail",
    .table_prefix = "mail_",
    .unit = "messages",
    .unit_json = "messages",
    .tables = tables,
    .open = open_mail,
    .close = close_mail,
    .rest = rest,
    .idle = idle,
    .is_here = tide_mail_is_here,
    .archive_path = tide_mail_dir,
    .secret_name = tide_mail_secret_name,
    .owns_entry = owns_entry,
    .backup = backup,
    .backup_check = backup_check,
};
