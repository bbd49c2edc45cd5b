#include "console/console.h"

#include "base/check.h"
#include "base/json.h"
#include "console/console_inside.h"
#include "net/oauth/google.h"
#include "settings/settings.h"
#include "system/system.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { BUSY_MS = 2000 };

/* ---- tables in the ledger's database ---- */

#define WHAT "Search Console's rows"

static const char tables[] =
    "CREATE TABLE IF NOT EXISTS console_account("
    " account INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, endpoint TEXT NOT NULL"
    ") STRICT;"
    "CREATE TABLE IF NOT EXISTS console_site("
    " id INTEGER PRIMARY KEY, account INTEGER NOT NULL, site TEXT NOT NULL UNIQUE"
    ") STRICT;"
    "CREATE TABLE IF NOT EXISTS console_series("
    " site INTEGER NOT NULL, type INTEGER NOT NULL, dimensions INTEGER NOT NULL,"
    " epoch INTEGER NOT NULL, floor TEXT NOT NULL, opened TEXT NOT NULL,"
    " PRIMARY KEY(site, type, dimensions)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS console_refused("
    " site INTEGER PRIMARY KEY, reason TEXT NOT NULL, at INTEGER NOT NULL"
    ") STRICT;"
    "CREATE TABLE IF NOT EXISTS console_listed("
    " account INTEGER NOT NULL, place INTEGER NOT NULL, site TEXT NOT NULL, level TEXT NOT NULL,"
    " PRIMARY KEY(account, place)"
    ") STRICT, WITHOUT ROWID;";

tide_status tide_console_tables(tide_rows db, tide_error *err)
{
    return tide_rows_tables(db, tables, WHAT, err);
}

static tide_status make_tables(tide_transaction *transaction, void *arg, tide_error *err)
{
    (void)arg;
    tide_rows db = tide_transaction_rows(transaction);
    return tide_console_tables(db, err);
}

tide_status tide_console_series_get(tide_rows db, struct tide_console_series_row *row,
                                    tide_error *err)
{
    tide_auto_rows stmt;
    TIDE_TRY(tide_rows_first(db, WHAT, &stmt, err,
                             "SELECT epoch, floor, opened FROM console_series WHERE site = ?1"
                             " AND type = ?2 AND dimensions = ?3",
                             row->site, row->set.type, row->set.dimensions));
    row->epoch = tide_rows_get_u32(&stmt, 0);
    tide_rows_get_copy(&stmt, 1, row->floor, sizeof row->floor);
    tide_rows_get_copy(&stmt, 2, row->opened, sizeof row->opened);
    return TIDE_OK;
}

tide_status tide_console_series_put(tide_rows db, const struct tide_console_series_row *row,
                                    tide_error *err)
{
    return tide_rows_do(db, WHAT, err,
                        "INSERT INTO console_series(site, type, dimensions, epoch, floor, opened)"
                        " VALUES(?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT(site, type, dimensions)"
                        " DO UPDATE SET epoch = ?4, floor = ?5, opened = ?6",
                        row->site, row->set.type, row->set.dimensions, row->epoch, row->floor,
                        row->opened);
}

/* ---- the snapshot ---- */

static void state_of(struct tide_console_user *user, struct tide_console_state *out)
{
    tide_searchconsole_batches(user->client, &out->batches);
    out->days = __atomic_load_n(&user->days, __ATOMIC_RELAXED);
    out->rows = __atomic_load_n(&user->rows, __ATOMIC_RELAXED);
    out->bytes = __atomic_load_n(&user->bytes, __ATOMIC_RELAXED);
    out->readings_more = __atomic_load_n(&user->readings_more, __ATOMIC_RELAXED);
    out->rows_missing = __atomic_load_n(&user->rows_missing, __ATOMIC_RELAXED);
}

/* What this process has done for each sign-in (B8). */
static void show(json_t *object, void *arg)
{
    tide_console *console = arg;
    tide_lock_take(console->options.world, console->lock);
    for (size_t i = 0; i < console->users_count; i++) {
        struct tide_console_state now;
        tide_json one;
        tide_json_object(&one);
        state_of(console->users[i], &now);
        tide_json_set_u64(&one, "days", now.days);
        tide_json_set_u64(&one, "rows", now.rows);
        tide_json_set_u64(&one, "bytes", now.bytes);
        tide_json_set_u64(&one, "queries", now.batches.parts);
        tide_json_set_u64(&one, "batches", now.batches.requests);
        tide_json_set_u64(&one, "batch_size", now.batches.size);
        tide_json_set_u64(&one, "batch_latency_ms", now.batches.latency_ms);
        tide_json_set_u64(&one, "batches_waiting", now.batches.waiting);
        tide_json_set_u64(&one, "refused", now.batches.refused);
        tide_json_set_u64(&one, "missing", now.batches.missing);
        tide_json_set_u64(&one, "readings_more", now.readings_more);
        tide_json_set_u64(&one, "rows_missing", now.rows_missing);
        (void)json_object_set(object, console->users[i]->name, one.value);
        tide_json_done(&one);
    }
    tide_lock_drop(console->options.world, console->lock);
}

/* ---- opening and closing ---- */

static tide_status define_kinds(tide_console *console, tide_error *err)
{
    struct tide_kind plan = {.name = "console.plan",
                             .handler = tide_console_plan,
                             .context = console,
                             .priority = 80,
                             .dedupe_running = true};
    struct tide_kind page = {.name = "console.page",
                             .handler = tide_console_page_job,
                             .context = console,
                             .dedupe_running = true,
                             .lane = TIDE_KIND_BULK_ONLY};
    struct tide_kind sites = {.name = "console.sites",
                              .handler = tide_console_list_job,
                              .context = console,
                              .priority = 90,
                              .lane = TIDE_KIND_INTERACTIVE,
                              .dedupe_running = true};
    tide_engine *engine = console->options.engine;
    TIDE_TRY(tide_engine_kind(engine, &plan, &console->plan_kind, err));
    TIDE_TRY(tide_engine_kind(engine, &page, &console->page_kind, err));
    return tide_engine_kind(engine, &sites, &console->sites_kind, err);
}

tide_status tide_console_open(const struct tide_console_options *options, tide_mem *mem,
                              tide_console **console_out, tide_error *err)
{
    tide_console *console = tide_mem_new(mem, sizeof *console);
    if (console == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for Search Console");
    console->mem = mem;
    console->options = *options;
    if (console->options.workers > TIDE_CONSOLE_WORKERS_MAX)
        console->options.workers = TIDE_CONSOLE_WORKERS_MAX;
    (void)snprintf(console->dir, sizeof console->dir, "%s/console", options->archive_dir);
    tide_status rc = tide_lock_new(options->world, &console->lock);
    if (rc == TIDE_OK)
        rc = define_kinds(console, err);
    if (rc == TIDE_OK)
        rc = tide_transact(options->engine, make_tables, NULL, err);
    if (rc == TIDE_OK)
        rc = tide_engine_snapshot_add(options->engine, "console", show, console, err);
    if (rc != TIDE_OK) {
        (void)tide_console_close(console, NULL);
        return rc;
    }
    *console_out = console;
    return TIDE_OK;
}

static void user_close(tide_console *console, struct tide_console_user *user)
{
    tide_searchconsole_close(user->client);
    tide_tokens_close(user->tokens);
    tide_mem_free(console->mem, user, sizeof *user);
}

static tide_status site_close(tide_console *console, struct tide_console_open_site *site,
                              tide_error *err)
{
    const tide_status rc = tide_console_store_close(site->store, err);
    while (site != NULL) {
        struct tide_console_open_site *former = site->former;
        tide_mem_free(console->mem, site, sizeof *site);
        site = former;
    }
    return rc;
}

tide_status tide_console_close(tide_console *console, tide_error *err)
{
    if (console == NULL)
        return TIDE_OK;
    tide_status rc = TIDE_OK;
    for (size_t i = 0; i < console->sites_count; i++) {
        const tide_status closed = site_close(console, console->sites[i], err);
        rc = rc == TIDE_OK ? closed : rc;
    }
    for (size_t i = 0; i < console->users_count; i++)
        user_close(console, console->users[i]);
    if (console->dir_lock != NULL)
        tide_file_lock_drop(console->options.world, console->dir_lock);
    if (console->lock != NULL)
        tide_lock_free(console->options.world, console->lock);
    tide_mem_free(console->mem, console, sizeof *console);
    return rc;
}

/* ---- sign-ins and sites ---- */

void tide_console_secret_name(const char *name, char out[TIDE_SECRET_NAME_BYTES_MAX])
{
    (void)snprintf(out, TIDE_SECRET_NAME_BYTES_MAX, "console/%s", name);
}

static tide_status write_site(tide_rows db, uint32_t account, const char *site, tide_error *err)
{
    TIDE_TRY(tide_console_site_check(site, err));
    return tide_rows_do(db, WHAT, err,
                        "INSERT INTO console_site(account, site) VALUES(?1, ?2)"
                        " ON CONFLICT(site) DO UPDATE SET account = ?1",
                        account, site);
}

tide_status tide_console_account_put(tide_rows db, uint32_t account,
                                     const struct tide_account_request *request, tide_error *err)
{
    TIDE_TRY(tide_system_row_put("console", db, account, request, err));
    for (size_t i = 0; i < request->subjects_count; i++)
        TIDE_TRY(write_site(db, account, request->subjects[i], err));
    return TIDE_OK;
}

/* Sites keep their numbers, like those that are removed one by one (refused.c). */
tide_status tide_console_account_drop(tide_rows db, uint32_t account, tide_error *err)
{
    static const char *const steps[] = {
        ("DELETE FROM console_refused WHERE site IN"
         " (SELECT id FROM console_site WHERE account = ?1)"),
        "DELETE FROM console_listed WHERE account = ?1",
        "UPDATE console_site SET account = 0 WHERE account = ?1",
        "DELETE FROM console_account WHERE account = ?1",
    };
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        TIDE_TRY(tide_rows_do(db, WHAT, err, steps[i], account));
    return TIDE_OK;
}

tide_status tide_console_site_check(const char *site, tide_error *err)
{
    const bool domain = strncmp(site, "sc-domain:", 10) == 0 && site[10] != '\0' &&
                        strpbrk(site + 10, "/: \t") == NULL;
    const bool prefix = (strncmp(site, "https://", 8) == 0 || strncmp(site, "http://", 7) == 0) &&
                        site[strlen(site) - 1] == '/' && strpbrk(site, " \t\"<>") == NULL;
    if (strlen(site) > TIDE_SC_SITE_BYTES_MAX || (!domain && !prefix))
        return tide_error_set(err, TIDE_INVALID,
                              "\"%.100s\" is not a property: write sc-domain:example.com, or "
                              "https://www.example.com/ with the trailing slash",
                              site);
    return TIDE_OK;
}

tide_status tide_console_sites_read(tide_rows db,
                                    void (*visit)(const struct tide_console_site *site, void *arg),
                                    void *arg, tide_error *err)
{
    tide_auto_rows stmt;
    tide_status rc =
        tide_rows_ask(db, WHAT, &stmt, err,
                      "SELECT console_site.id, console_site.account, name, endpoint, site FROM"
                      " console_site JOIN console_account USING(account) ORDER BY site");
    while (tide_rows_next(&stmt, &rc, err)) {
        struct tide_console_site site = {.id = tide_rows_get_u64(&stmt, 0),
                                         .account = tide_rows_get_u32(&stmt, 1)};
        tide_rows_get_copy(&stmt, 2, site.account_name, sizeof site.account_name);
        tide_rows_get_copy(&stmt, 3, site.endpoint, sizeof site.endpoint);
        tide_rows_get_copy(&stmt, 4, site.site, sizeof site.site);
        visit(&site, arg);
    }
    return rc;
}

struct wanted {
    const char *site; /* NULL: by id */
    uint64_t id;
    struct tide_console_site found;
};

static void pick(const struct tide_console_site *site, void *arg)
{
    struct wanted *wanted = arg;
    if (wanted->site != NULL ? strcmp(wanted->site, site->site) == 0 : wanted->id == site->id)
        wanted->found = *site;
}

static tide_status read_wanted(tide_transaction *transaction, void *arg, tide_error *err)
{
    return tide_console_sites_read(tide_transaction_rows(transaction), pick, arg, err);
}

static tide_status find_site(tide_engine *engine, struct wanted *wanted, tide_error *err)
{
    TIDE_TRY(tide_transact(engine, read_wanted, wanted, err));
    if (wanted->found.id == 0)
        return tide_error_set(err, TIDE_NOT_FOUND, "site %.200s was not added",
                              wanted->site == NULL ? "?" : wanted->site);
    return TIDE_OK;
}

tide_status tide_console_site(tide_engine *engine, const char *site,
                              struct tide_console_site *site_out, tide_error *err)
{
    struct wanted wanted = {.site = site};
    TIDE_TRY(find_site(engine, &wanted, err));
    *site_out = wanted.found;
    return TIDE_OK;
}

/* ---- open sites and sign-ins; under the lock ---- */

/* What a command asked for goes first, then the settings of the account (B12).  With one worker a
 * batch has one query: the way back to sequential. */
static void limits_of(tide_console *console, uint32_t account, unsigned *workers_out,
                      unsigned *batch_out)
{
    tide_engine *engine = console->options.engine;
    unsigned workers = console->options.workers;
    unsigned batch = console->options.batch_max;
    if (workers == 0)
        workers = (unsigned)tide_engine_setting_u64(engine, account, TIDE_SET_CONSOLE_WORKERS);
    if (batch == 0 && workers == 1)
        batch = 1;
    if (batch == 0)
        batch = (unsigned)tide_engine_setting_u64(engine, account, TIDE_SET_CONSOLE_BATCH);
    *workers_out = workers;
    *batch_out = batch;
}

static tide_status user_open(tide_console *console, const struct tide_console_site *site,
                             struct tide_console_user **user_out, tide_error *err)
{
    char secret[TIDE_SECRET_NAME_BYTES_MAX];
    char sign_in[TIDE_SECRET_NAME_BYTES_MAX + 60];
    for (size_t i = 0; i < console->users_count; i++)
        if (console->users[i]->account == site->account) {
            *user_out = console->users[i];
            return TIDE_OK;
        }
    if (console->users_count == TIDE_CONSOLE_USERS_MAX)
        return tide_error_set(err, TIDE_FULL, "more than %d sign-ins in one process",
                              TIDE_CONSOLE_USERS_MAX);
    struct tide_console_user *user = tide_mem_new(console->mem, sizeof *user);
    if (user == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for %s", site->account_name);
    user->account = site->account;
    (void)snprintf(user->name, sizeof user->name, "%s", site->account_name);
    tide_console_secret_name(site->account_name, secret);
    (void)snprintf(sign_in, sizeof sign_in, "tidemark account add console SITE... --name %s",
                   site->account_name);
    const struct tide_tokens_options tokens = {.provider = &tide_oauth_google,
                                               .secret = secret,
                                               .account = site->account_name,
                                               .sign_in = sign_in};
    tide_status rc = tide_tokens_open(console->options.world, console->options.secrets, &tokens,
                                      console->mem, &user->tokens, err);
    struct tide_batch_options batches = {.bytes_max = 32ull << 20};
    limits_of(console, site->account, &batches.in_flight_max, &batches.size_max);
    if (rc == TIDE_OK)
        rc = tide_searchconsole_open(site->endpoint[0] == '\0' ? NULL : site->endpoint,
                                     user->tokens, console->options.world, &batches, console->mem,
                                     &user->client, err);
    if (rc != TIDE_OK) {
        user_close(console, user);
        return rc;
    }
    console->users[console->users_count++] = user;
    *user_out = user;
    return TIDE_OK;
}

static struct tide_console_open_site *site_known(tide_console *console, uint64_t id)
{
    for (size_t i = 0; i < console->sites_count; i++)
        if (console->sites[i]->row.id == id)
            return console->sites[i];
    return NULL;
}

/* A process that lost the account may still have files open here, and text numbers in its memory:
 * wait for it. */
static tide_status dir_take(tide_console *console, tide_error *err)
{
    char path[sizeof console->dir + 8];
    if (console->dir_lock != NULL || !tide_engine_shared(console->options.engine))
        return TIDE_OK;
    (void)snprintf(path, sizeof path, "%s/lock", console->dir);
    return tide_file_lock_take(console->options.world, path, TIDE_TEXT("tidemark"),
                               &console->dir_lock, err);
}

static tide_status site_open(tide_console *console, const struct tide_console_site *row,
                             struct tide_console_open_site **site_out, tide_error *err)
{
    if (console->sites_count == TIDE_CONSOLE_SITES_MAX)
        return tide_error_set(err, TIDE_FULL, "more than %d sites in one process",
                              TIDE_CONSOLE_SITES_MAX);
    struct tide_console_open_site *site = tide_mem_new(console->mem, sizeof *site);
    if (site == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for %s", row->site);
    site->row = *row;
    const struct tide_console_store_options options = {
        .dir = console->dir, .site = row->site, .world = console->options.world};
    tide_status rc = dir_take(console, err);
    if (rc == TIDE_OK)
        rc = user_open(console, row, &site->user, err);
    if (rc == TIDE_OK)
        rc = tide_console_store_open(&options, console->mem, &site->store, err);
    if (rc != TIDE_OK) {
        tide_mem_free(console->mem, site, sizeof *site);
        return rc;
    }
    console->sites[console->sites_count++] = site;
    *site_out = site;
    return TIDE_OK;
}

/* The site was added with another sign-in: it keeps its open file.  Jobs may still use the former
 * one. */
static tide_status site_follow(tide_console *console, const struct tide_console_site *row,
                               struct tide_console_open_site **site, tide_error *err)
{
    struct tide_console_open_site *now = tide_mem_new(console->mem, sizeof *now);
    if (now == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for %s", row->site);
    *now = (struct tide_console_open_site){.row = *row, .former = *site, .store = (*site)->store};
    const tide_status rc = user_open(console, row, &now->user, err);
    if (rc != TIDE_OK) {
        tide_mem_free(console->mem, now, sizeof *now);
        return rc;
    }
    for (size_t i = 0; i < console->sites_count; i++)
        if (console->sites[i] == *site)
            console->sites[i] = now;
    *site = now;
    return TIDE_OK;
}

tide_status tide_console_use(tide_console *console, uint64_t id, uint32_t account,
                             struct tide_console_open_site **site_out, tide_error *err)
{
    tide_world *world = console->options.world;
    tide_lock_take(world, console->lock);
    struct tide_console_open_site *site = site_known(console, id);
    tide_lock_drop(world, console->lock);
    if (site != NULL && site->row.account == account) {
        unsigned workers = 0, batch = 0;
        limits_of(console, account, &workers, &batch);
        tide_searchconsole_tune(site->user->client, workers, batch);
        *site_out = site;
        return TIDE_OK;
    }
    struct wanted wanted = {.id = id};
    TIDE_TRY(find_site(console->options.engine, &wanted, err));
    bool shared = false;
    const struct tide_placing placing = {.account = wanted.found.account,
                                         .name = wanted.found.account_name,
                                         .dir = console->dir,
                                         .secret = tide_secrets_where(console->options.secrets)};
    TIDE_TRY(tide_archive_place(console->options.engine, world, &placing, &shared, err));
    /* Two jobs may call this at once; the file must be opened once. */
    tide_lock_take(world, console->lock);
    site = site_known(console, id);
    tide_status rc = TIDE_OK;
    if (site == NULL)
        rc = site_open(console, &wanted.found, &site, err);
    else if (site->row.account != wanted.found.account)
        rc = site_follow(console, &wanted.found, &site, err);
    tide_lock_drop(world, console->lock);
    if (rc == TIDE_OK)
        *site_out = site;
    return rc;
}

static bool is_used(const tide_console *console, const struct tide_console_open_site *site)
{
    for (; site != NULL; site = site->former)
        if (tide_engine_uses(console->options.engine, site->row.account))
            return true;
    return false;
}

static struct tide_console_open_site *site_resting(tide_console *console)
{
    for (size_t i = 0; i < console->sites_count; i++)
        if (!is_used(console, console->sites[i])) {
            struct tide_console_open_site *resting = console->sites[i];
            console->sites[i] = console->sites[--console->sites_count];
            return resting;
        }
    return NULL;
}

tide_status tide_console_rest(tide_console *console, tide_error *err)
{
    tide_status rc = TIDE_OK;
    tide_lock_take(console->options.world, console->lock);
    for (struct tide_console_open_site *site = site_resting(console); site != NULL;
         site = site_resting(console)) {
        const tide_status closed = site_close(console, site, err);
        rc = rc == TIDE_OK ? closed : rc;
    }
    if (console->sites_count == 0 && console->dir_lock != NULL) {
        tide_file_lock_drop(console->options.world, console->dir_lock);
        console->dir_lock = NULL;
    }
    tide_lock_drop(console->options.world, console->lock);
    return rc;
}

/* Finds an account without sites by its own row. */
struct user_ask {
    uint32_t account;
    struct tide_console_site row;
};

static tide_status read_user(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct user_ask *ask = arg;
    tide_rows db = tide_transaction_rows(transaction);
    tide_auto_rows stmt;
    tide_status rc = tide_rows_first(
        db, WHAT, &stmt, err, "SELECT name, endpoint FROM console_account WHERE account = ?1",
        ask->account);
    if (rc == TIDE_OK) {
        ask->row.account = ask->account;
        tide_rows_get_copy(&stmt, 0, ask->row.account_name, sizeof ask->row.account_name);
        tide_rows_get_copy(&stmt, 1, ask->row.endpoint, sizeof ask->row.endpoint);
    } else if (rc == TIDE_NOT_FOUND)
        rc = tide_error_set(err, TIDE_NOT_FOUND, "this is not an account of Search Console");
    return rc;
}

tide_status tide_console_user(tide_console *console, uint32_t account,
                              struct tide_console_user **user_out, tide_error *err)
{
    struct user_ask ask = {.account = account};
    TIDE_TRY(tide_transact(console->options.engine, read_user, &ask, err));
    tide_lock_take(console->options.world, console->lock);
    tide_status rc = user_open(console, &ask.row, user_out, err);
    tide_lock_drop(console->options.world, console->lock);
    return rc;
}

void tide_console_stream_name(const struct tide_console_site *site,
                              const struct tide_console_set *set, uint32_t epoch,
                              char name_out[TIDE_CONSOLE_STREAM_BYTES])
{
    (void)snprintf(name_out, TIDE_CONSOLE_STREAM_BYTES,
                   "console.%" PRIu64 ".%s.%" PRIu32 ".%" PRIu32, site->id,
                   tide_sc_type_name(set->type), set->dimensions, epoch);
}

tide_status tide_console_stream(tide_console *console, const struct tide_console_site *site,
                                const struct tide_console_set *set, uint32_t epoch,
                                const char *floor, uint64_t *stream_out, tide_error *err)
{
    char name[TIDE_CONSOLE_STREAM_BYTES];
    tide_console_stream_name(site, set, epoch, name);
    return tide_stream_open(console->options.engine, site->account, name, floor, stream_out, err);
}

/* ---- running ---- */

static const uint32_t default_dimensions =
    1u << TIDE_SC_QUERY | 1u << TIDE_SC_PAGE | 1u << TIDE_SC_COUNTRY | 1u << TIDE_SC_DEVICE;

/* Discover and Google News have no queries, Discover no devices. */
static uint32_t dimensions_for(tide_sc_type type, uint32_t wanted)
{
    uint32_t bits = (wanted == 0 ? default_dimensions : wanted) & ~(1u << TIDE_SC_DATE);
    if (type == TIDE_SC_DISCOVER || type == TIDE_SC_GOOGLE_NEWS)
        bits &= ~(1u << TIDE_SC_QUERY);
    if (type == TIDE_SC_DISCOVER)
        bits &= ~(1u << TIDE_SC_DEVICE);
    return bits;
}

void tide_console_request(const struct tide_console_site *site, const struct tide_console_run *run,
                          tide_sc_type type, struct tide_console_request *request_out)
{
    /* The number of the site is first: tide_console_site_like(). */
    (void)snprintf(request_out->payload, sizeof request_out->payload,
                   "{\"site\":%" PRIu64 ",\"type\":%d,\"dimensions\":%" PRIu32 ",\"limit\":%" PRIu32
                   ",\"days\":%" PRIu32
                   ",\"again\":%s,\"totals\":%s,\"sync\":%s,\"from\":\"%s\",\"to\":\"%s\"}",
                   site->id, (int)type, dimensions_for(type, run->dimensions),
                   run->row_limit == 0 ? (uint32_t)TIDE_SC_ROWS_MAX : run->row_limit, run->days,
                   run->again ? "true" : "false", run->no_totals ? "false" : "true",
                   run->sync ? "true" : "false", run->from, run->to);
    /* The whole payload is the key: a plan for fewer days must not replace one for more. */
    (void)snprintf(request_out->dedupe, sizeof request_out->dedupe, "plan%.390s",
                   request_out->payload);
}

uint32_t tide_console_types(const struct tide_console_run *run)
{
    return run->types == 0 ? 1u << TIDE_SC_WEB : run->types;
}

tide_status tide_console_run_check(const struct tide_console_run *run, tide_error *err)
{
    int32_t from = 0;
    int32_t to = 0;
    if ((run->from[0] != '\0' && !tide_date_parse(run->from, &from)) ||
        (run->to[0] != '\0' && !tide_date_parse(run->to, &to)))
        return tide_error_set(err, TIDE_INVALID, "\"%s\" is not a date: write it as 2026-09-01",
                              run->from[0] != '\0' && !tide_date_parse(run->from, &from) ? run->from
                                                                                         : run->to);
    if (run->from[0] != '\0' && run->to[0] != '\0' && from > to)
        return tide_error_set(err, TIDE_INVALID, "%s is after %s", run->from, run->to);
    if (run->row_limit > TIDE_SC_ROWS_MAX)
        return tide_error_set(err, TIDE_INVALID, "a page has at most %d rows", TIDE_SC_ROWS_MAX);
    return TIDE_OK;
}

tide_status tide_console_run(tide_console *console, const struct tide_console_run *run,
                             tide_error *err)
{
    struct tide_console_site site;
    TIDE_TRY(tide_console_site(console->options.engine, run->site, &site, err));
    TIDE_TRY(tide_console_run_check(run, err));
    for (unsigned type = 0; type < TIDE_SC_TYPES; type++) {
        struct tide_console_request request;
        if ((tide_console_types(run) >> type & 1u) == 0)
            continue;
        tide_console_request(&site, run, (tide_sc_type)type, &request);
        const struct tide_spec spec = {.kind = console->plan_kind,
                                       .account = site.account,
                                       .payload = request.payload,
                                       .dedupe = request.dedupe};
        TIDE_TRY(tide_enqueue(console->options.engine, &spec, 1, NULL, err));
    }
    tide_engine_take_soon(console->options.engine);
    return TIDE_OK;
}

/* ---- state ---- */

void tide_console_site_like(uint64_t site, char out[TIDE_CONSOLE_SITE_LIKE_BYTES])
{
    (void)snprintf(out, TIDE_CONSOLE_SITE_LIKE_BYTES, "{\"site\":%" PRIu64 ",%%", site);
}

void tide_console_state(tide_console *console, struct tide_console_state *state_out)
{
    struct tide_console_state state = {.days = 0};
    tide_lock_take(console->options.world, console->lock);
    for (size_t i = 0; i < console->users_count; i++) {
        struct tide_console_state one;
        state_of(console->users[i], &one);
        state.batches.requests += one.batches.requests;
        state.batches.parts += one.batches.parts;
        state.batches.refused += one.batches.refused;
        state.batches.missing += one.batches.missing;
        state.batches.in_flight += one.batches.in_flight;
        state.batches.waiting += one.batches.waiting;
        state.batches.size = one.batches.size;
        state.batches.latency_ms = one.batches.latency_ms;
        state.days += one.days;
        state.rows += one.rows;
        state.bytes += one.bytes;
        state.readings_more += one.readings_more;
        state.rows_missing += one.rows_missing;
    }
    tide_lock_drop(console->options.world, console->lock);
    *state_out = state;
}

tide_status tide_console_ended(tide_console *console, tide_job *job, tide_status rc)
{
    if (rc == TIDE_BUSY && tide_engine_shared(console->options.engine))
        return tide_job_again(job, tide_job_now_ms(job) + BUSY_MS);
    return rc;
}
