#include "reader/inside.h"

#include "base/check.h"
#include "ledger/rows.h"
#include "mail/mail.h"
#include "mail/rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- accounts ---- */

struct looking {
    uint32_t account;
    struct tide_mail_row row;
};

static tide_status read_row(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct looking *looking = arg;
    return tide_mail_row_get(tide_transaction_rows(transaction), looking->account, &looking->row,
                             err);
}

struct naming {
    void (*visit)(uint32_t account, const char *email, void *arg);
    void *arg;
};

static void name_one(const struct tide_mail_row *row, void *arg)
{
    const struct naming *naming = arg;
    naming->visit(row->account, row->email, naming->arg);
}

static tide_status name_all(tide_transaction *transaction, void *arg, tide_error *err)
{
    const tide_rows db = tide_transaction_rows(transaction);
    bool has = false;
    TIDE_TRY(tide_rows_has(db, "mail_account", "the mail accounts", &has, err));
    return has ? tide_mail_rows(db, name_one, arg, err) : TIDE_OK;
}

tide_status tide_reader_accounts(tide_reader *reader,
                                 void (*visit)(uint32_t account, const char *email, void *arg),
                                 void *arg, tide_error *err)
{
    struct naming naming = {visit, arg};
    return tide_transact(reader->options.engine, name_all, &naming, err);
}

static tide_status user_make(tide_reader *reader, const struct tide_mail_row *row,
                             struct tide_reader_user **user_out, tide_error *err)
{
    struct tide_reader_user *user = tide_mem_new(reader->mem, sizeof *user);
    if (user == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for an account");
    user->account = row->account;
    (void)snprintf(user->email, sizeof user->email, "%s", row->email);
    (void)snprintf(user->endpoint, sizeof user->endpoint, "%s", row->endpoint);
    user->pace.initial = true;
    tide_status rc = tide_mail_tokens(reader->options.world, reader->options.secrets, user->email,
                                      reader->mem, &user->tokens, err);
    if (rc == TIDE_OK)
        rc = tide_gmail_open(user->endpoint[0] == '\0' ? NULL : user->endpoint, user->tokens,
                             reader->mem, &user->gmail, err);
    if (rc != TIDE_OK) {
        tide_tokens_close(user->tokens);
        tide_mem_free(reader->mem, user, sizeof *user);
        return rc;
    }
    *user_out = user;
    return TIDE_OK;
}

static void user_free(tide_reader *reader, struct tide_reader_user *user)
{
    while (user->idle_count > 0)
        tide_cache_close(user->idle[--user->idle_count]);
    json_decref(user->loose);
    tide_gmail_close(user->gmail);
    tide_tokens_close(user->tokens);
    tide_mem_free(reader->mem, user, sizeof *user);
}

/* Under the lock. */
static struct tide_reader_user *user_find(tide_reader *reader, uint32_t account,
                                          const struct tide_mail_row *row)
{
    for (size_t i = 0; i < reader->users_count; i++) {
        struct tide_reader_user *user = reader->users[i];
        if (user->account == account && strcmp(user->email, row->email) == 0 &&
            strcmp(user->endpoint, row->endpoint) == 0)
            return user;
    }
    return NULL;
}

/* Made without the lock, because its sign-in is read; another thread may have been faster. */
static tide_status user_add(tide_reader *reader, const struct tide_mail_row *row,
                            struct tide_reader_user **user_out, tide_error *err)
{
    struct tide_reader_user *made = NULL;
    tide_status rc = user_make(reader, row, &made, err);
    if (rc != TIDE_OK)
        return rc;
    tide_lock_take(reader->options.world, reader->lock);
    struct tide_reader_user *user = user_find(reader, row->account, row);
    if (user == NULL && reader->users_count < TIDE_READER_USERS_MAX) {
        user = made;
        made = NULL;
        reader->users[reader->users_count++] = user;
    }
    tide_lock_drop(reader->options.world, reader->lock);
    if (made != NULL)
        user_free(reader, made);
    if (user == NULL)
        return tide_error_set(err, TIDE_FULL, "more than %d accounts", TIDE_READER_USERS_MAX);
    *user_out = user;
    return TIDE_OK;
}

tide_status tide_reader_user(tide_reader *reader, uint32_t account,
                             struct tide_reader_user **user_out, tide_error *err)
{
    tide_world *world = reader->options.world;
    struct looking looking = {.account = account};
    tide_status rc = tide_transact(reader->options.engine, read_row, &looking, err);
    if (rc == TIDE_NOT_FOUND)
        return tide_error_set(err, TIDE_NOT_FOUND, "there is no such mail account");
    if (rc != TIDE_OK)
        return rc;
    tide_lock_take(world, reader->lock);
    struct tide_reader_user *user = user_find(reader, account, &looking.row);
    tide_lock_drop(world, reader->lock);
    if (user == NULL)
        rc = user_add(reader, &looking.row, &user, err);
    if (rc == TIDE_OK)
        *user_out = user;
    return rc;
}

/* ---- caches ---- */

bool tide_reader_has_cache(tide_reader *reader, const char *email)
{
    const struct tide_cache_options options = {.dir = reader->cache_dir,
                                               .account = email,
                                               .world = reader->options.world,
                                               .read_only = true};
    tide_cache *cache = NULL;
    if (tide_cache_open(&options, reader->mem, &cache, NULL) != TIDE_OK)
        return false;
    tide_cache_close(cache);
    return true;
}

/* An idle connection whose file is still there; NULL: none.  Under the lock. */
static tide_cache *cache_idle(struct tide_reader_user *user)
{
    while (user->idle_count > 0) {
        tide_cache *cache = user->idle[--user->idle_count];
        if (!tide_cache_moved(cache))
            return cache;
        tide_cache_close(cache); /* somebody cleared the caches of this machine: it begins anew */
        user->pace.initial = true;
    }
    return NULL;
}

tide_status tide_reader_cache_take(tide_reader *reader, uint32_t account,
                                   struct tide_reader_user **user_out, tide_cache **cache_out,
                                   tide_error *err)
{
    tide_world *world = reader->options.world;
    struct tide_reader_user *user = NULL;
    uint64_t listed = 0;
    TIDE_TRY(tide_reader_user(reader, account, &user, err));
    const struct tide_cache_options options = {
        .dir = reader->cache_dir, .account = user->email, .world = world};
    tide_lock_take(world, reader->lock);
    tide_cache *cache = cache_idle(user);
    tide_lock_drop(world, reader->lock);
    if (cache == NULL) {
        TIDE_TRY(tide_cache_open(&options, reader->mem, &cache, err));
        (void)tide_cache_get_u64(cache, "listed", &listed, NULL);
    }
    tide_lock_take(world, reader->lock);
    user->begun = true;
    if (listed != 0)
        user->pace.initial = false;
    tide_lock_drop(world, reader->lock);
    *user_out = user;
    *cache_out = cache;
    return TIDE_OK;
}

void tide_reader_cache_give(tide_reader *reader, struct tide_reader_user *user, tide_cache *cache)
{
    if (cache == NULL)
        return;
    tide_lock_take(reader->options.world, reader->lock);
    const bool keep = user->idle_count < TIDE_READER_IDLE_MAX;
    if (keep)
        user->idle[user->idle_count++] = cache;
    tide_lock_drop(reader->options.world, reader->lock);
    if (!keep)
        tide_cache_close(cache);
}

/* ---- people ---- */

enum { PEOPLE_REST_MS = 10000 }; /* between two updates of the list, while somebody types */

tide_status tide_reader_people_path(const char *cache_dir, const char *email,
                                    char out[TIDE_CACHE_PATH_BYTES], tide_error *err)
{
    if (email[0] == '.' || email[0] == '\0' || strchr(email, '/') != NULL ||
        (size_t)snprintf(out, TIDE_CACHE_PATH_BYTES, "%s/%s.people", cache_dir, email) >=
            TIDE_CACHE_PATH_BYTES - 8)
        return tide_error_set(err, TIDE_INVALID, "there can be no list of people of \"%.100s\"",
                              email);
    return TIDE_OK;
}

tide_status tide_reader_people(tide_reader *reader, uint32_t account, tide_error *err)
{
    tide_world *world = reader->options.world;
    struct tide_reader_user *user = NULL;
    TIDE_TRY(tide_reader_user(reader, account, &user, err));
    const uint64_t now_ms = tide_world_now_ms(world);
    tide_lock_take(world, reader->lock);
    if (user->people_ms == 0 || now_ms >= user->people_ms + PEOPLE_REST_MS) {
        user->people_ms = now_ms;
        user->people_asked = reader->asked = true;
        tide_cond_wake_all(world, reader->news);
    }
    tide_lock_drop(world, reader->lock);
    return TIDE_OK;
}

tide_status tide_reader_identify(struct tide_reader_user *user, tide_job *job, tide_error *err)
{
    struct tide_gmail_profile profile = {.messages = 0};
    if (user->known)
        return TIDE_OK;
    const tide_status rc = tide_gmail_profile(user->gmail, job, &profile, err);
    if (rc != TIDE_OK && rc != TIDE_GONE)
        return rc;
    if (rc == TIDE_OK)
        TIDE_TRY(tide_mail_compare(user->email, &profile, err));
    user->known = true;
    return TIDE_OK;
}

void tide_reader_users_done(tide_reader *reader)
{
    for (size_t i = 0; i < reader->users_count; i++)
        user_free(reader, reader->users[i]);
    reader->users_count = 0;
}

/* ---- archives ---- */

tide_archive *tide_reader_archive(tide_reader *reader, const struct tide_reader_user *user)
{
    char dir[4096 + 300];
    tide_archive *archive = NULL;
    tide_mail_dir(reader->archive_dir, user->email, dir, sizeof dir);
    const struct tide_archive_options options = {
        .dir = dir, .account = user->email, .world = reader->options.world, .read_only = true};
    return tide_shelf_take(reader->shelf, &options, reader->mem, &archive, NULL) == TIDE_OK
               ? archive
               : NULL;
}

bool tide_reader_archived(tide_archive *archive, tide_text id, struct tide_stored *stored)
{
    return archive != NULL && tide_archive_find(archive, id, stored, NULL) == TIDE_OK &&
           (stored->copy == TIDE_COPY_EXACT || stored->copy == TIDE_COPY_HELD);
}

tide_status tide_reader_shadow(tide_cache *cache, tide_archive *archive, tide_text id,
                               tide_error *err)
{
    tide_text labels[TIDE_CACHE_LABELS_MAX];
    size_t count = 0;
    struct tide_stored stored;
    bool has = false;
    tide_auto_buf lines = tide_buf_heap(1 << 20);
    TIDE_TRY(tide_cache_has(cache, id, &has, err));
    if (has)
        return TIDE_OK;
    if (!tide_reader_archived(archive, id, &stored) || stored.gone)
        return tide_error_set(err, TIDE_NOT_FOUND, "message %.*s is not known here", (int)id.bytes,
                              id.data);
    TIDE_TRY(tide_archive_labels_of(archive, &stored, &lines, err));
    for (const char *at = tide_buf_cstr(&lines); *at != '\0' && count < TIDE_CACHE_LABELS_MAX;) {
        const size_t bytes = strcspn(at, "\n");
        if (bytes > 0)
            labels[count++] = (tide_text){at, bytes};
        at += bytes + (at[bytes] == '\n');
    }
    const struct tide_cache_message message = {.id = id,
                                               .thread = tide_text_of(stored.thread_id),
                                               .history_id = tide_text_of(stored.history_id),
                                               .internal_ms = stored.internal_ms,
                                               .bytes = stored.bytes,
                                               .labels = labels,
                                               .labels_count = count};
    return tide_cache_put(cache, &message, err);
}

/* ---- the mirror ---- */

struct place {
    uint32_t account;
    char history_id[64]; /* "": there is none */
};

static tide_status mirror_place(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct place *place = arg;
    const tide_rows db = tide_transaction_rows(transaction);
    struct tide_mail_row row;
    uint64_t stream = 0;
    char name[32];
    place->history_id[0] = '\0';
    TIDE_TRY(tide_mail_row_get(db, place->account, &row, err));
    (void)snprintf(name, sizeof name, "mail.%" PRIu32, row.epoch);
    tide_status rc = tide_rows_number(db, "the mirror's stream", &stream, err,
                                      "SELECT id FROM stream WHERE account = ?1 AND name = ?2",
                                      place->account, name);
    if (rc == TIDE_OK)
        rc = tide_mail_mark_first(db, stream, place->history_id, err);
    return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
}

tide_status tide_reader_mirror_place(tide_reader *reader, uint32_t account, char history_id_out[64],
                                     tide_error *err)
{
    struct place place = {.account = account};
    TIDE_TRY(tide_transact(reader->options.engine, mirror_place, &place, err));
    memcpy(history_id_out, place.history_id, sizeof place.history_id);
    return TIDE_OK;
}
