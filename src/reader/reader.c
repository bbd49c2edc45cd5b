#include "reader/inside.h"

#include "base/check.h"
#include "ledger/rows.h"
#include "mail/people/people.h"
#include "mail/rows.h"
#include "settings/settings.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* K2, K3.  Attempts: what a person did is never given up because a server is ill for a day; the rest is
 * asked for again by whoever wants it.  A follower of a job is no duplicate of it: the ledger ends the
 * one before it adds the other. */
static const struct {
    const char *name;
    tide_handler *handler;
    uint8_t priority, level;
    uint16_t attempts_max; /* 0: retry.attempts_max */
    bool dedupe_running, together;
} kinds[TIDE_READER_KINDS] = {
    [TIDE_READER_BODY] = {"reader.body", tide_reader_body_run, 95, 1, 0, true, false},
    [TIDE_READER_PAGE] = {"reader.page", tide_reader_page_run, 90, 1, 0, true, false},
    [TIDE_READER_REFRESH] = {"reader.refresh", tide_reader_refresh_run, 88, 1, 0, true, false},
    [TIDE_READER_SEARCH] = {"reader.search", tide_reader_search_run, 85, 1, 0, true, false},
    [TIDE_READER_ACTION] = {"reader.action", tide_reader_action_run, 75, 2, 10000, false, false},
    [TIDE_READER_OFFLINE] = {"reader.offline", tide_reader_offline_run, 65, 3, 0, true, false},
    [TIDE_READER_HEADERS] = {"reader.headers", tide_reader_headers_run, 50, 4, 0, true, false},
    [TIDE_READER_FOLDERS] = {"reader.folders", tide_reader_folders_run, 40, 4, 0, true, false},
    [TIDE_READER_EVICT] = {"reader.evict", tide_reader_evict_run, 10, 4, 0, false, true},
    [TIDE_READER_PEOPLE] = {"reader.people", tide_reader_people_run, 10, 4, 0, false, true},
};

unsigned tide_reader_level(tide_text kind)
{
    for (unsigned i = 0; i < TIDE_READER_KINDS; i++)
        if (tide_text_equal(kind, tide_text_of(kinds[i].name)))
            return kinds[i].level;
    return 0;
}

static tide_status make_tables(tide_transaction *transaction, void *arg, tide_error *err)
{
    (void)arg;
    return tide_reader_tables(tide_transaction_rows(transaction), err);
}

static tide_status kinds_define(tide_reader *reader, tide_error *err)
{
    for (unsigned i = 0; i < TIDE_READER_KINDS; i++) {
        const struct tide_kind kind = {.name = kinds[i].name,
                                       .handler = kinds[i].handler,
                                       .context = reader,
                                       .lane = TIDE_KIND_INTERACTIVE,
                                       .priority = kinds[i].priority,
                                       .level = kinds[i].level,
                                       .attempts_max = kinds[i].attempts_max,
                                       .dedupe_running = kinds[i].dedupe_running,
                                       .one_per_account = !kinds[i].together};
        TIDE_TRY(tide_engine_kind(reader->options.engine, &kind, &reader->kinds[i], err));
    }
    return TIDE_OK;
}

struct waking {
    tide_reader *reader;
    tide_transaction *transaction;
    tide_status rc;
    tide_error *err;
};

static void upload_wake(uint32_t account, void *arg)
{
    struct waking *waking = arg;
    const struct tide_reader_action now = {.account = account};
    if (waking->rc == TIDE_OK)
        waking->rc = tide_reader_upload(waking->reader, waking->transaction, &now, 0, waking->err);
}

static void copy_wake(uint32_t account, void *arg)
{
    struct waking *waking = arg;
    if (waking->rc == TIDE_OK)
        waking->rc =
            tide_reader_copy_later(waking->reader, waking->transaction, account, 0, waking->err);
}

/* The job that uploads a held action is stored with its time.  After the clock was set back that is
 * too late: another one looks when it is due (store.h). */
static tide_status uploads_wake(tide_transaction *transaction, void *arg, tide_error *err)
{
    tide_reader *reader = arg;
    struct waking waking = {reader, transaction, TIDE_OK, err};
    TIDE_TRY(tide_actions_ahead(tide_transaction_rows(transaction),
                                tide_world_now_unix_ms(reader->options.world), upload_wake, &waking,
                                err));
    if (waking.rc == TIDE_OK)
        TIDE_TRY(tide_drafts_ahead(tide_transaction_rows(transaction), copy_wake, &waking, err));
    return waking.rc;
}

tide_status tide_reader_open(const struct tide_reader_options *options, tide_mem *mem,
                             tide_reader **reader_out, tide_error *err)
{
    TIDE_TRY(tide_transact(options->engine, make_tables, NULL, err));
    tide_reader *reader = tide_mem_new(mem, sizeof *reader);
    if (reader == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for the reader");
    reader->mem = mem;
    reader->options = *options;
    (void)snprintf(reader->archive_dir, sizeof reader->archive_dir, "%s", options->archive_dir);
    (void)snprintf(reader->cache_dir, sizeof reader->cache_dir, "%s", options->cache_dir);
    tide_status rc = tide_lock_new(options->world, &reader->lock);
    if (rc == TIDE_OK)
        rc = tide_cond_new(options->world, &reader->news);
    if (rc == TIDE_OK)
        rc = tide_shelf_new(options->world, mem, TIDE_SHELF_REST_MS, &reader->shelf, err);
    if (rc == TIDE_OK && options->ask_link)
        rc = tide_metered_new(&(struct tide_metered_options){.world = options->world}, mem,
                              &reader->metered, err);
    if (rc == TIDE_OK)
        rc = kinds_define(reader, err);
    if (rc == TIDE_OK)
        rc = tide_transact(options->engine, uploads_wake, reader, err);
    if (rc != TIDE_OK) {
        tide_reader_close(reader);
        return rc;
    }
    *reader_out = reader;
    return TIDE_OK;
}

void tide_reader_close(tide_reader *reader)
{
    if (reader == NULL)
        return;
    TIDE_ASSERT(reader->thread == NULL);
    tide_reader_users_done(reader);
    tide_metered_free(reader->metered);
    tide_shelf_free(reader->shelf);
    if (reader->news != NULL)
        tide_cond_free(reader->options.world, reader->news);
    if (reader->lock != NULL)
        tide_lock_free(reader->options.world, reader->lock);
    tide_mem_free(reader->mem, reader, sizeof *reader);
}

/* ---- jobs ---- */

struct spec_room {
    tide_buf payload;
    struct tide_spec spec;
};

static tide_status spec_make(tide_reader *reader, const struct tide_reader_job *wanted,
                             struct spec_room *room, tide_error *err)
{
    tide_auto_json json;
    tide_json_object(&json);
    if (wanted->field != NULL)
        tide_json_set_cstr(&json, wanted->field, wanted->key);
    room->payload = tide_buf_in(reader->mem, TIDE_READER_PAYLOAD_BYTES);
    const tide_status rc = tide_json_line(&json, &room->payload);
    room->spec = (struct tide_spec){.kind = reader->kinds[wanted->kind],
                                    .account = wanted->account,
                                    .dedupe = wanted->key,
                                    .payload = tide_buf_cstr(&room->payload),
                                    .delay_ms = wanted->delay_ms};
    return rc == TIDE_OK ? rc : tide_error_set(err, TIDE_INVALID, "the request is too long");
}

tide_status tide_reader_enqueue(tide_reader *reader, const struct tide_reader_job *wanted,
                                uint64_t *id_out, tide_error *err)
{
    struct spec_room room;
    tide_status rc = spec_make(reader, wanted, &room, err);
    if (rc == TIDE_OK)
        rc = tide_enqueue(reader->options.engine, &room.spec, 1, id_out, err);
    tide_buf_done(&room.payload);
    return rc;
}

tide_status tide_reader_follow(tide_reader *reader, tide_job *job,
                               const struct tide_reader_job *wanted, tide_error *err)
{
    struct spec_room room;
    tide_status rc = spec_make(reader, wanted, &room, err);
    if (rc == TIDE_OK)
        rc = tide_job_enqueue(job, &room.spec, err);
    tide_buf_done(&room.payload);
    return rc;
}

tide_status tide_reader_key(tide_job *job, const char *field, tide_buf *out, tide_error *err)
{
    json_auto_t *payload = NULL;
    tide_text key = TIDE_TEXT_NONE;
    TIDE_TRY(tide_json_parse(tide_job_payload(job), &payload, err));
    const tide_status rc = tide_json_get_text(payload, field, &key, err);
    if (rc != TIDE_OK && rc != TIDE_NOT_FOUND)
        return rc;
    return tide_buf_add(out, key.bytes == 0 ? "" : key.data, key.bytes);
}

/* ---- what happens by itself ---- */

/* Linux says whether power comes from a battery alone; where it says nothing, it does not. */
struct power {
    tide_world *world;
    bool mains, battery;
};

static void power_visit(const char *name, void *arg)
{
    struct power *power = arg;
    char path[300];
    tide_auto_buf text = tide_buf_heap(64);
    (void)snprintf(path, sizeof path, "/sys/class/power_supply/%.100s/online", name);
    if (tide_file_read(power->world, path, 64, &text, NULL) == TIDE_OK && text.bytes > 0) {
        power->mains = power->mains || text.data[0] == '1';
        return;
    }
    tide_buf_rest(&text);
    (void)snprintf(path, sizeof path, "/sys/class/power_supply/%.100s/status", name);
    if (tide_file_read(power->world, path, 64, &text, NULL) == TIDE_OK &&
        strncmp(tide_buf_cstr(&text), "Discharging", 11) == 0)
        power->battery = true;
}

static bool on_battery(tide_world *world)
{
    struct power power = {.world = world};
    if (tide_dir_list(world, "/sys/class/power_supply", power_visit, &power, NULL) != TIDE_OK)
        return false;
    return power.battery && !power.mains;
}

bool tide_reader_saving(tide_reader *reader, uint32_t account)
{
    char how[16] = "";
    tide_engine_setting_text(reader->options.engine, account, TIDE_SET_READER_SAVING, how,
                             sizeof how);
    if (strcmp(how, "auto") != 0)
        return strcmp(how, "always") == 0;
    tide_world *world = reader->options.world;
    return on_battery(world) || tide_metered_now(reader->metered, tide_world_now_ms(world));
}

void tide_reader_listed(tide_reader *reader, struct tide_reader_user *user)
{
    tide_lock_take(reader->options.world, reader->lock);
    if (user->pace.initial) { /* there is mail now, and people in it */
        user->people_asked = reader->asked = true;
        tide_cond_wake_all(reader->options.world, reader->news);
    }
    user->pace.initial = false;
    tide_lock_drop(reader->options.world, reader->lock);
}

static tide_status look_account(tide_reader *reader, uint32_t account, uint64_t now_ms,
                                uint64_t *wake_ms, tide_error *err)
{
    tide_world *world = reader->options.world;
    tide_engine *engine = reader->options.engine;
    struct tide_reader_user *user = NULL;
    tide_cache *cache = NULL;
    const bool saving = tide_reader_saving(reader, account);
    TIDE_TRY(tide_reader_cache_take(reader, account, &user, &cache, err));
    tide_reader_cache_give(reader, user, cache); /* it exists now, and says whether it is listed */
    tide_lock_take(world, reader->lock);
    user->pace.watched = reader->watched;
    user->pace.saving = saving;
    user->window_ms = tide_engine_setting_u64(engine, account, TIDE_SET_READER_WINDOW);
    user->pace.active_ms = tide_engine_setting_u64(engine, account, TIDE_SET_READER_POLL_ACTIVE);
    user->pace.passive_ms = tide_engine_setting_u64(engine, account, TIDE_SET_READER_POLL_PASSIVE);
    const struct tide_pace_due due = tide_pace_look(&user->pace, now_ms);
    if (due.poll)
        user->pace.polled_ms = now_ms;
    if (due.folders)
        user->pace.folders_ms = now_ms;
    const bool people = due.folders || user->people_asked;
    user->people_asked = false;
    tide_lock_drop(world, reader->lock);
    if (due.wake_ms < *wake_ms)
        *wake_ms = due.wake_ms;
    const struct tide_reader_job folders = {
        .kind = TIDE_READER_FOLDERS, .account = account, .key = "folders"};
    const struct tide_reader_job poll = {.kind = TIDE_READER_HEADERS,
                                         .account = account,
                                         .field = "folder",
                                         .key = TIDE_READER_POLL};
    const struct tide_reader_job evict = {
        .kind = TIDE_READER_EVICT, .account = account, .key = "evict"};
    const struct tide_reader_job gather = {
        .kind = TIDE_READER_PEOPLE, .account = account, .key = "people"};
    if (people)
        TIDE_TRY(tide_reader_enqueue(reader, &gather, NULL, err));
    if (due.folders) {
        TIDE_TRY(tide_reader_enqueue(reader, &folders, NULL, err));
        TIDE_TRY(tide_reader_enqueue(reader, &evict, NULL, err));
    }
    return due.poll ? tide_reader_enqueue(reader, &poll, NULL, err) : TIDE_OK;
}

struct seen_accounts {
    tide_reader *reader;
    uint32_t accounts[TIDE_READER_USERS_MAX];
    char emails[TIDE_READER_USERS_MAX][256];
    size_t count;
};

static void see_account(uint32_t account, const char *email, void *arg)
{
    struct seen_accounts *seen = arg;
    if (seen->count == TIDE_READER_USERS_MAX)
        return;
    seen->accounts[seen->count] = account;
    (void)snprintf(seen->emails[seen->count++], 256, "%s", email);
}

struct orphans {
    const struct seen_accounts *seen;
    char names[16][256]; /* some of them; the rest next time */
    size_t count;
};

/* The bytes of the account in the name of a cache or of a list of people; 0: it is neither. */
static size_t account_in(const char *name)
{
    static const char *const ends[] = {".db", ".people"};
    const size_t bytes = strlen(name);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        if (bytes < 256 && bytes > strlen(ends[i]) &&
            strcmp(name + bytes - strlen(ends[i]), ends[i]) == 0)
            return bytes - strlen(ends[i]);
    return 0;
}

static void note_orphan(const char *name, void *arg)
{
    struct orphans *orphans = arg;
    const size_t bytes = account_in(name);
    if (bytes == 0 || orphans->count == 16)
        return;
    for (size_t i = 0; i < orphans->seen->count; i++)
        if (strlen(orphans->seen->emails[i]) == bytes &&
            memcmp(orphans->seen->emails[i], name, bytes) == 0)
            return;
    (void)snprintf(orphans->names[orphans->count++], 256, "%.*s", (int)bytes, name);
}

/* The caches of accounts that were removed. */
static void orphans_remove(tide_reader *reader, const struct seen_accounts *seen)
{
    struct orphans orphans = {.seen = seen};
    (void)tide_dir_list(reader->options.world, reader->cache_dir, note_orphan, &orphans, NULL);
    for (size_t i = 0; i < orphans.count; i++) {
        char path[TIDE_CACHE_PATH_BYTES];
        (void)tide_cache_remove(reader->options.world, reader->cache_dir, orphans.names[i], NULL);
        if (tide_reader_people_path(reader->cache_dir, orphans.names[i], path, NULL) == TIDE_OK)
            (void)tide_people_remove(reader->options.world, path, NULL);
    }
}

/* One step of the thread: enqueues what is due, and says when to come back. */
static uint64_t look_all(tide_reader *reader, bool watched)
{
    const uint64_t now_ms = tide_world_now_ms(reader->options.world);
    uint64_t wake_ms = now_ms + 24 * 3600 * (uint64_t)1000;
    struct seen_accounts *seen = tide_mem_new(reader->mem, sizeof *seen);
    if (seen == NULL)
        return now_ms + 60000;
    seen->reader = reader;
    if (tide_reader_accounts(reader, see_account, seen, NULL) == TIDE_OK)
        orphans_remove(reader, seen);
    for (size_t i = 0; i < seen->count; i++) {
        tide_error why = {TIDE_OK, 0, ""};
        if (!watched && !tide_reader_has_cache(reader, seen->emails[i]))
            continue; /* KR7 */
        /* A failure here is the ledger's or the disk's, which alerts tell of. */
        if (look_account(reader, seen->accounts[i], now_ms, &wake_ms, &why) != TIDE_OK &&
            now_ms + 60000 < wake_ms)
            wake_ms = now_ms + 60000;
    }
    tide_mem_free(reader->mem, seen, sizeof *seen);
    return wake_ms;
}

static void watch_main(void *arg)
{
    tide_reader *reader = arg;
    tide_world *world = reader->options.world;
    tide_lock_take(world, reader->lock);
    while (!reader->stopping) {
        const bool watched = reader->watched;
        reader->asked = false;
        tide_lock_drop(world, reader->lock);
        const uint64_t wake_ms = look_all(reader, watched);
        tide_lock_take(world, reader->lock);
        while (!reader->stopping && reader->watched == watched && !reader->asked &&
               tide_world_now_ms(world) < wake_ms)
            if (tide_cond_wait(world, reader->news, reader->lock, wake_ms * 1000) != TIDE_OK &&
                tide_world_dead(world))
                reader->stopping = true;
    }
    tide_lock_drop(world, reader->lock);
}

tide_status tide_reader_watch(tide_reader *reader, tide_error *err)
{
    return tide_world_thread(reader->options.world, "reader", watch_main, reader, &reader->thread,
                             err);
}

void tide_reader_watch_end(tide_reader *reader)
{
    tide_world *world = reader->options.world;
    if (reader->thread == NULL)
        return;
    tide_lock_take(world, reader->lock);
    reader->stopping = true;
    tide_cond_wake_all(world, reader->news);
    tide_lock_drop(world, reader->lock);
    tide_world_join(world, reader->thread);
    reader->thread = NULL;
}

void tide_reader_look(tide_reader *reader, bool watched)
{
    tide_world *world = reader->options.world;
    tide_lock_take(world, reader->lock);
    reader->watched = watched;
    tide_cond_wake_all(world, reader->news);
    tide_lock_drop(world, reader->lock);
}

void tide_reader_states(tide_reader *reader, tide_json *array)
{
    tide_world *world = reader->options.world;
    const uint64_t now_ms = tide_world_now_ms(world);
    const uint64_t now_unix_ms = tide_world_now_unix_ms(world);
    tide_lock_take(world, reader->lock);
    for (size_t i = 0; i < reader->users_count; i++) {
        const struct tide_reader_user *user = reader->users[i];
        if (!user->begun)
            continue;
        const struct tide_pace_due due = tide_pace_look(&user->pace, now_ms);
        tide_json one;
        tide_json_object(&one);
        tide_json_set_cstr(&one, "account", user->email);
        tide_json_set_cstr(&one, "state", tide_reader_state_name(tide_pace_state(&user->pace)));
        tide_json_set_bool(&one, "watched", user->pace.watched);
        tide_json_set_bool(&one, "saving", user->pace.saving);
        tide_json_set_u64(&one, "window_ms", user->window_ms);
        tide_json_set_u64(&one, "next_poll_unix_ms",
                          now_unix_ms + (due.poll ? 0 : due.wake_ms - now_ms));
        tide_json_append(array, &one);
    }
    tide_lock_drop(world, reader->lock);
}
