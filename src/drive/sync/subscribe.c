/* subscribe.c - OneDrive tells this process of changes, while it can be reached (D9).
 *
 * A subscription is made, or renewed, by the job that looks online, before it does: so a change is in what
 * it reads, or is told.  Its row is beside the drive's, so that a restart keeps it.  It lasts three days and
 * is renewed when two are left; one that nobody renews ends by itself.
 *
 * Nothing depends on it: if it cannot be made, the drive is polled as without it, and it is tried again
 * later.  What a notification says is never believed: it makes a job that looks. */
#include "drive/sync/inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { SECRET_RANDOM = 4 };
#define LIFE_MS  (UINT64_C(72) * 3600 * 1000)
#define RENEW_MS (UINT64_C(48) * 3600 * 1000)
#define AGAIN_MS (UINT64_C(10) * 60 * 1000)
#define POLL_MS  (UINT64_C(15) * 60 * 1000) /* between looks online that no notification asks for */
#define SUBJECT  "drive/"
#define WHAT     "the subscriptions of drives"

/* ---- what is known ---- */

/* The lock is held. */
static struct tide_drive_heard *find(tide_drive *drive, uint32_t number)
{
    for (size_t i = 0; i < drive->heard_count; i++)
        if (drive->heard[i].number == number)
            return &drive->heard[i];
    return NULL;
}

static void put(tide_drive *drive, const struct tide_drive_heard *heard)
{
    tide_lock_take(drive->options.world, drive->lock);
    struct tide_drive_heard *at = find(drive, heard->number);
    if (at == NULL && drive->heard_count < TIDE_DRIVES_OPEN_MAX)
        at = &drive->heard[drive->heard_count++];
    if (at != NULL)
        *at = *heard;
    tide_lock_drop(drive->options.world, drive->lock);
}

/* In a time that does not depend on where they differ. */
static bool is_same(tide_text given, const char *secret)
{
    const size_t bytes = strlen(secret);
    unsigned differs = given.bytes != bytes;
    for (size_t i = 0; i < bytes; i++)
        differs |= (unsigned char)((i < given.bytes ? given.data[i] : 0) ^ secret[i]);
    return differs == 0;
}

bool tide_drive_notified(tide_drive *drive, tide_text subscription, tide_text secret,
                         char subject_out[TIDE_SUBJECT_BYTES])
{
    uint32_t number = 0;
    tide_lock_take(drive->options.world, drive->lock);
    for (size_t i = 0; i < drive->heard_count; i++) {
        struct tide_drive_heard *heard = &drive->heard[i];
        if (heard->id[0] == '\0' || !tide_text_equal(subscription, tide_text_of(heard->id)) ||
            !is_same(secret, heard->secret))
            continue;
        heard->told = true;
        number = heard->number;
    }
    tide_lock_drop(drive->options.world, drive->lock);
    (void)snprintf(subject_out, TIDE_SUBJECT_BYTES, SUBJECT "%" PRIu32, number);
    return number != 0;
}

bool tide_drive_is_heard(tide_drive *drive, uint32_t number)
{
    const uint64_t now_ms = tide_world_now_unix_ms(drive->options.world);
    tide_lock_take(drive->options.world, drive->lock);
    struct tide_drive_heard *heard = find(drive, number);
    const bool lives =
        drive->hear_url != NULL && heard != NULL && heard->told && heard->expires_ms > now_ms;
    const bool rests = lives && now_ms >= heard->polled_ms && now_ms - heard->polled_ms < POLL_MS;
    if (lives && !rests)
        heard->polled_ms = now_ms;
    tide_lock_drop(drive->options.world, drive->lock);
    return rests;
}

/* ---- making and renewing ---- */

static tide_status store(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct tide_drive_heard *heard = arg;
    return tide_rows_do(tide_transaction_rows(transaction), WHAT, err,
                        "INSERT INTO drive_subscription(drive, id, secret, url, expires_ms)"
                        " VALUES(?1, ?2, ?3, ?4, ?5) ON CONFLICT(drive) DO UPDATE SET id = ?2,"
                        " secret = ?3, url = ?4, expires_ms = ?5",
                        heard->number, heard->id, heard->secret, heard->url, heard->expires_ms);
}

static void secret_make(tide_world *world, struct tide_drive_heard *heard)
{
    for (size_t i = 0; i < SECRET_RANDOM; i++)
        (void)snprintf(heard->secret + 16 * i, 17, "%016" PRIx64, tide_world_random_u64(world));
}

static tide_status ask(const struct tide_drive_looking *looking, struct tide_drive_heard *heard,
                       uint64_t now_ms, tide_error *err)
{
    struct tide_onedrive_watch watch;
    char address[sizeof heard->url + 32];
    tide_status rc = TIDE_GONE;
    (void)snprintf(address, sizeof address, "%s/webhook/onedrive", heard->url);
    if (heard->id[0] != '\0' && heard->expires_ms > now_ms)
        rc = tide_onedrive_watch_renew(looking->user->client, looking->job, tide_text_of(heard->id),
                                       now_ms + LIFE_MS, &watch, err);
    if (rc == TIDE_GONE) {
        secret_make(looking->drive->options.world, heard);
        rc = tide_onedrive_watch_create(looking->user->client, looking->job,
                                        tide_text_of(looking->row->drive_id), address,
                                        tide_text_of(heard->secret), now_ms + LIFE_MS, &watch, err);
    }
    if (rc != TIDE_OK)
        return rc;
    (void)snprintf(heard->id, sizeof heard->id, "%s", watch.id);
    heard->expires_ms = watch.expires_unix_ms;
    put(looking->drive, heard); /* what is told from now on counts */
    return tide_transact(looking->drive->options.engine, store, heard, err);
}

tide_status tide_drive_subscribe(const struct tide_drive_looking *looking, tide_error *err)
{
    tide_drive *drive = looking->drive;
    tide_world *world = drive->options.world;
    const uint64_t now_ms = tide_world_now_unix_ms(world);
    struct tide_drive_heard heard = {.number = looking->row->number};
    tide_error why = {TIDE_OK, 0, ""};
    tide_lock_take(world, drive->lock);
    const char *url = drive->hear_url;
    const struct tide_drive_heard *known = find(drive, heard.number);
    if (known != NULL)
        heard = *known;
    tide_lock_drop(world, drive->lock);
    /* Only the owner of a drive may subscribe to it. */
    if (url == NULL || looking->row->parent != 0 || now_ms < heard.again_ms ||
        (strcmp(heard.url, url) == 0 && heard.expires_ms > now_ms + RENEW_MS))
        return TIDE_OK;
    if (strcmp(heard.url, url) != 0)
        heard.id[0] = '\0'; /* the old one ends by itself */
    (void)snprintf(heard.url, sizeof heard.url, "%s", url);
    heard.again_ms = 0;
    const tide_status rc = ask(looking, &heard, now_ms, &why);
    if (rc == TIDE_OK)
        return TIDE_OK;
    heard.again_ms = now_ms + AGAIN_MS;
    if (known == NULL || heard.id[0] == '\0')
        put(drive, &heard);
    switch (rc) {
    case TIDE_AUTH: /* these concern the whole job */
    case TIDE_CANCELED:
    case TIDE_STOPPED:
    case TIDE_THROTTLED:
        if (err != NULL)
            *err = why;
        return rc;
    default:
        tide_drive_tell(drive, looking->row->name, why.text);
        return TIDE_OK;
    }
}

/* ---- the beginning ---- */

static tide_status load(tide_drive *drive, tide_rows db, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    tide_status rc = tide_rows_ask(db, WHAT, &stmt, err,
                                   "SELECT drive, id, secret, url, expires_ms"
                                   " FROM drive_subscription");
    while (tide_rows_next(&stmt, &rc, err)) {
        struct tide_drive_heard heard = {.number = tide_rows_get_u32(&stmt, 0),
                                         .expires_ms = tide_rows_get_u64(&stmt, 4)};
        tide_rows_get_copy(&stmt, 1, heard.id, sizeof heard.id);
        tide_rows_get_copy(&stmt, 2, heard.secret, sizeof heard.secret);
        tide_rows_get_copy(&stmt, 3, heard.url, sizeof heard.url);
        put(drive, &heard);
    }
    return rc;
}

struct asking {
    const char *account; /* NULL: any */
    uint32_t number;     /* 0: any */
    struct tide_drive_row *rows;
    size_t count;
};

static void take_row(const struct tide_drive_row *row, void *arg)
{
    struct asking *asking = arg;
    if (asking->count < TIDE_DRIVES_OPEN_MAX &&
        (asking->account == NULL || strcmp(asking->account, row->account_name) == 0) &&
        (asking->number == 0 || asking->number == row->number))
        asking->rows[asking->count++] = *row;
}

/* Has these looked at.  TIDE_NOT_FOUND: there is none. */
static tide_status look_at(tide_drive *drive, struct asking *asking, bool full, tide_error *err)
{
    struct tide_drive_reader *reader = NULL;
    asking->rows = tide_mem_array(drive->mem, TIDE_DRIVES_OPEN_MAX, sizeof *asking->rows);
    if (asking->rows == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for the drives");
    tide_status rc = tide_drive_reader_take(drive, &reader, err);
    if (rc == TIDE_OK)
        rc = tide_drives_each((tide_rows){.sqlite = reader->db.handle, .kept = &reader->kept},
                              take_row, asking, err);
    tide_drive_reader_give(drive, reader);
    for (size_t i = 0; rc == TIDE_OK && i < asking->count; i++)
        rc = full ? tide_drive_sync(drive, &asking->rows[i], true, err)
                  : tide_drive_sync_changed(drive, &asking->rows[i], err);
    tide_mem_free(drive->mem, asking->rows, TIDE_DRIVES_OPEN_MAX * sizeof *asking->rows);
    return rc == TIDE_OK && asking->count == 0 ? TIDE_NOT_FOUND : rc;
}

tide_status tide_drive_changed_online(tide_drive *drive, const char *subject, bool full,
                                      tide_error *err)
{
    struct asking asking = {.account = subject};
    uint64_t number = 0;
    if (tide_engine_shared(drive->options.engine))
        return TIDE_NOT_FOUND;
    /* No account has a slash in its name. */
    if (strncmp(subject, SUBJECT, strlen(SUBJECT)) == 0 &&
        tide_text_to_u64(tide_text_of(subject + strlen(SUBJECT)), &number) && number > 0 &&
        number <= UINT32_MAX)
        asking = (struct asking){.number = (uint32_t)number};
    return look_at(drive, &asking, full, err);
}

tide_status tide_drive_hear(tide_drive *drive, const char *url, tide_error *err)
{
    struct asking all = {.account = NULL};
    struct tide_drive_reader *reader = NULL;
    if (tide_engine_shared(drive->options.engine))
        return TIDE_OK;
    TIDE_TRY(tide_drive_reader_take(drive, &reader, err));
    tide_status rc =
        load(drive, (tide_rows){.sqlite = reader->db.handle, .kept = &reader->kept}, err);
    tide_drive_reader_give(drive, reader);
    tide_lock_take(drive->options.world, drive->lock);
    drive->hear_url = url;
    tide_lock_drop(drive->options.world, drive->lock);
    if (rc == TIDE_OK)
        rc = look_at(drive, &all, false, err); /* which subscribes */
    return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
}
