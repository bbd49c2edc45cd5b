/* mirror.c - the handlers, and how one life of the engine begins and ends. */
#include "mirror.h"

#include "base/hash.h"
#include "base/json.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdlib.h>

enum {
    METHOD_LIST = 1,
    METHOD_GET,
    METHOD_CHANGES,
    METHOD_NOTE,
    UNITS_LIST = 5,
    UNITS_GET = 20,
    GHOST_MS = 5000, /* after so long no call that we gave up takes effect any more */
    STUBBORN_US_MAX = 300000000,
    CLOSE_SECONDS_MAX = 600, /* a thread may stand still on its way out */
};

struct mirror_account *mirror_account_of(struct mirror *mirror, uint32_t id)
{
    for (size_t i = 0; i < MIRROR_ACCOUNTS; i++)
        if (mirror->accounts[i].id == id)
            return &mirror->accounts[i];
    return NULL;
}

void *mirror_scrap(struct mirror *mirror, size_t bytes)
{
    struct mirror_scrap *scrap = calloc(1, sizeof *scrap + bytes);
    TIDE_ASSERT(scrap != NULL);
    scrap->next = mirror->scraps;
    mirror->scraps = scrap;
    return scrap->bytes;
}

/* ---- calls ------------------------------------------------------------------- */

static uint64_t sum_of(tide_text body)
{
    return tide_hash(TIDE_HASH_START, body);
}

/* Routes by host, and adds the checksum that TLS would be in life: a scrambled
 * body is noticed, never believed. */
static void provide(void *arg, const struct tide_request *request, uint64_t now_unix_ms,
                    tide_rng *rng, struct tide_sim_answer *answer)
{
    struct mirror *mirror = arg;
    char sum[32];
    for (size_t i = 0; i < MIRROR_ACCOUNTS; i++)
        if (strstr(request->url, mirror->accounts[i].host) != NULL)
            tide_sim_provider_call(mirror->accounts[i].provider, request, now_unix_ms, rng, answer);
    uint64_t age_ms = now_unix_ms - mirror->plan.provider[0].start_unix_ms;
    if (mirror->plan.slow_spell && age_ms / 60000 % 4 == 2)
        answer->think_us += 4000000;
    (void)snprintf(sum, sizeof sum, "%016" PRIx64, sum_of(tide_buf_text(&answer->body)));
    tide_sim_answer_header(answer, "X-Sum", sum);
}

static tide_status judge(const struct tide_response *response, uint64_t *retry_after_ms_out,
                         tide_error *err)
{
    char sum[32];
    (void)snprintf(sum, sizeof sum, "%016" PRIx64, sum_of(tide_buf_text(&response->body)));
    if (!tide_text_equal(tide_text_of(sum), tide_response_header(response, "X-Sum")))
        return tide_error_set(err, TIDE_SERVER, "the answer is damaged");
    if (response->http == 403 && strstr(tide_buf_cstr(&response->body), "ateLimitExceeded") != NULL)
        return tide_error_set(err, TIDE_THROTTLED, "rate limit");
    return tide_http_judge(response, retry_after_ms_out, err);
}

struct ask {
    const char *method;
    const char *path;
    tide_text body;
    uint32_t units;
    uint32_t number;
};

/* The answer as JSON; the caller owns it. */
static tide_status ask(struct mirror *mirror, tide_job *job, const struct ask *what,
                       json_t **answer_out, tide_error *err)
{
    struct mirror_account *account = mirror_account_of(mirror, tide_job_account(job));
    TIDE_ASSERT(account != NULL);
    char url[400];
    (void)snprintf(url, sizeof url, "https://%s%s", account->host, what->path);
    struct tide_request request = {.method = what->method,
                                   .url = url,
                                   .body = what->body,
                                   .connect_timeout_ms = 5000,
                                   .stall_timeout_ms = 20000,
                                   .total_timeout_ms = 60000};
    struct tide_response response;
    tide_response_init(&response, tide_mem_heap());
    tide_status rc;
    if (mirror->plan.plant == PLANT_QUOTA_IGNORED) {
        uint64_t retry_after_ms = 0;
        rc = tide_world_call(mirror->world, &request, &response, &job->cancel, err);
        rc = rc == TIDE_OK ? judge(&response, &retry_after_ms, err) : rc;
    } else {
        rc = tide_job_call(job, what->units, what->number, judge, &request, &response, err);
    }
    if (rc == TIDE_OK && tide_json_parse(tide_buf_text(&response.body), answer_out, err) != TIDE_OK)
        rc = TIDE_SERVER;
    tide_response_done(&response);
    return rc;
}

/* ---- SIM1: no job is done twice ---------------------------------------------------- */

struct done_effect {
    struct mirror *mirror;
    uint64_t id;
};

static tide_status done_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct done_effect *effect = arg;
    struct sqlite3 *db = tide_transaction_sqlite(transaction);
    char sql[100];
    (void)snprintf(sql, sizeof sql, "INSERT INTO mirror_done VALUES (%" PRIu64 ")", effect->id);
    int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
    if (rc == SQLITE_CONSTRAINT)
        tide_sim_fail(effect->mirror->sim, "SIM1: job %" PRIu64 " is done twice", effect->id);
    effect->mirror->totals.jobs_done++;
    if (rc != SQLITE_OK)
        return tide_error_set(err, rc == SQLITE_FULL ? TIDE_DISK_FULL : TIDE_IO, "%s",
                              sqlite3_errmsg(db));
    return TIDE_OK;
}

static tide_status done_once(struct mirror *mirror, tide_job *job, tide_error *err)
{
    struct done_effect *effect = mirror_scrap(mirror, sizeof *effect);
    effect->mirror = mirror;
    effect->id = tide_job_id(job);
    return tide_job_effect(job, done_run, effect, err);
}

/* ---- our own tables -------------------------------------------------------------- */

tide_status mirror_sql(struct mirror *mirror, const char *sql, uint64_t *number_out)
{
    tide_error err = {TIDE_OK, 0, ""};
    return tide_sim_ledger_sql(mirror->sim, mirror->engine, sql, number_out, &err);
}

/* ---- the shard ----------------------------------------------------------------------- */

static tide_status shard_status(struct mirror *mirror, struct sqlite3 *shard, tide_error *err)
{
    int code = sqlite3_extended_errcode(shard);
    if (code == SQLITE_IOERR_FSYNC || code == SQLITE_IOERR_DIR_FSYNC) {
        mirror->store_lost = true; /* E1.10: never again in this life */
        tide_world_cancel(mirror->world, &mirror->operator_cancel, TIDE_CANCEL_STOP);
    }
    tide_status status = (code & 0xff) == SQLITE_FULL   ? TIDE_DISK_FULL
                         : (code & 0xff) == SQLITE_BUSY ? TIDE_BUSY
                                                        : TIDE_IO;
    return tide_error_set(err, status, "shard: %s", sqlite3_errmsg(shard));
}

tide_status mirror_shard_take(struct mirror *mirror, struct sqlite3 **shard_out, tide_error *err)
{
    if (mirror->store_lost)
        return tide_error_set(err, TIDE_DISK_FULL, "a sync of the shard failed");
    if (mirror->shards_count > 0) {
        *shard_out = mirror->shards[--mirror->shards_count];
        return TIDE_OK;
    }
    struct sqlite3 *shard = NULL;
    int rc = sqlite3_open_v2("/shard.db", &shard, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
                             tide_world_vfs(mirror->world));
    if (rc == SQLITE_OK)
        (void)sqlite3_busy_timeout(shard, 20000);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(shard,
                          mirror->plan.plant == PLANT_STORE_UNSYNCED
                              ? "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
                              : "PRAGMA synchronous=EXTRA; PRAGMA journal_mode=WAL;"
                                " PRAGMA synchronous=FULL;", /* as tide_db_wal() */
                          NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(shard,
                          "CREATE TABLE IF NOT EXISTS item (account INTEGER NOT NULL,"
                          " id TEXT NOT NULL, data BLOB NOT NULL, PRIMARY KEY (account, id))",
                          NULL, NULL, NULL);
    if (rc != SQLITE_OK) {
        tide_status status = shard_status(mirror, shard, err);
        (void)sqlite3_close(shard);
        return status;
    }
    *shard_out = shard;
    return TIDE_OK;
}

void mirror_shard_give(struct mirror *mirror, struct sqlite3 *shard, bool good)
{
    if (good && mirror->shards_count < MIRROR_SHARDS_MAX)
        mirror->shards[mirror->shards_count++] = shard;
    else
        (void)sqlite3_close(shard);
}

/* One transaction, synced before it returns (E1.4). */
static tide_status shard_store(struct mirror *mirror, uint32_t account, json_t *items,
                               tide_error *err)
{
    struct sqlite3 *shard = NULL;
    sqlite3_stmt *stmt = NULL;
    tide_status status = mirror_shard_take(mirror, &shard, err);
    if (status != TIDE_OK)
        return status;
    int rc = sqlite3_exec(shard, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_prepare_v2(shard,
                                "INSERT INTO item VALUES (?1, ?2, ?3) ON CONFLICT (account, id)"
                                " DO UPDATE SET data = excluded.data",
                                -1, &stmt, NULL);
    for (size_t i = 0; rc == SQLITE_OK && i < json_array_size(items); i++) {
        json_t *item = json_array_get(items, i);
        json_t *data = json_object_get(item, "data");
        (void)sqlite3_bind_int64(stmt, 1, (sqlite3_int64)account);
        (void)sqlite3_bind_text(stmt, 2, json_string_value(json_object_get(item, "id")), -1,
                                SQLITE_TRANSIENT);
        (void)sqlite3_bind_blob(stmt, 3, json_string_value(data), (int)json_string_length(data),
                                SQLITE_TRANSIENT);
        rc = sqlite3_step(stmt) == SQLITE_DONE ? sqlite3_reset(stmt) : SQLITE_ERROR;
    }
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(shard, "COMMIT", NULL, NULL, NULL);
    if (rc != SQLITE_OK)
        status = shard_status(mirror, shard, err);
    (void)sqlite3_finalize(stmt);
    mirror_shard_give(mirror, shard, status == TIDE_OK);
    return status;
}

/* ---- fetch ------------------------------------------------------------------------------ */

/* Remembers in the ledger's own file what this job says is stored (SIM4). */
struct stored_effect {
    uint32_t account;
    size_t count;
    char ids[][24];
};

static tide_status stored_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct stored_effect *effect = arg;
    struct sqlite3 *db = tide_transaction_sqlite(transaction);
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(db, "INSERT OR IGNORE INTO mirror_item VALUES (?1, ?2)", -1, &stmt,
                                NULL);
    for (size_t i = 0; rc == SQLITE_OK && i < effect->count; i++) {
        (void)sqlite3_bind_int64(stmt, 1, (sqlite3_int64)effect->account);
        (void)sqlite3_bind_text(stmt, 2, effect->ids[i], -1, SQLITE_STATIC);
        rc = sqlite3_step(stmt) == SQLITE_DONE ? sqlite3_reset(stmt) : SQLITE_ERROR;
    }
    if (rc != SQLITE_OK)
        (void)tide_error_set(err,
                             (sqlite3_errcode(db) & 0xff) == SQLITE_FULL ? TIDE_DISK_FULL : TIDE_IO,
                             "%s", sqlite3_errmsg(db));
    (void)sqlite3_finalize(stmt);
    return rc == SQLITE_OK ? TIDE_OK : err->status;
}

static bool ends_batch(const struct mirror *mirror, tide_status status)
{
    if (mirror->plan.whole_batches && tide_status_class(status) == TIDE_CLASS_RETRY)
        return true;
    return status == TIDE_AGAIN || status == TIDE_THROTTLED || status == TIDE_NETWORK ||
           status == TIDE_CANCELED || status == TIDE_STOPPED || status == TIDE_AUTH;
}

static tide_status get_item(struct mirror *mirror, tide_job *job, tide_text id, json_t *fetched,
                            tide_error *err)
{
    struct mirror_account *account = mirror_account_of(mirror, tide_job_account(job));
    char path[100];
    (void)snprintf(path, sizeof path, "/items/%.*s", (int)id.bytes, id.data);
    json_t *item = NULL;
    struct ask what = {.method = "GET", .path = path, .units = UNITS_GET, .number = METHOD_GET};
    tide_status rc = ask(mirror, job, &what, &item, err);
    if (rc != TIDE_OK)
        return rc;
    json_t *data = json_object_get(item, "data");
    tide_text content = {json_string_value(data), json_string_length(data)};
    if (!tide_sim_provider_content_is(account->provider, id, content))
        rc = tide_error_set(err, TIDE_SERVER, "this is not the item");
    else
        (void)json_array_append(fetched, item);
    json_decref(item);
    return rc;
}

static tide_status store_and_mark(struct mirror *mirror, tide_job *job, json_t *fetched,
                                  const size_t *indexes, tide_error *err)
{
    size_t count = json_array_size(fetched);
    if (count == 0)
        return TIDE_OK;
    tide_status rc = shard_store(mirror, tide_job_account(job), fetched, err);
    if (rc != TIDE_OK)
        return rc;
    struct stored_effect *effect =
        mirror_scrap(mirror, sizeof *effect + count * sizeof effect->ids[0]);
    effect->account = tide_job_account(job);
    for (size_t i = 0; i < count; i++) {
        tide_text id = tide_job_item(job, indexes[i]);
        memcpy(effect->ids[effect->count++], id.data, id.bytes);
        tide_job_item_done(job, indexes[i]);
    }
    return tide_job_effect(job, stored_run, effect, err);
}

static tide_status fetch_items(struct mirror *mirror, tide_job *job, tide_error *err)
{
    json_t *fetched = json_array();
    size_t count = tide_job_items(job);
    size_t *indexes = calloc(count + 1, sizeof *indexes);
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < count; i++) {
        if (!tide_job_item_open(job, i))
            continue;
        size_t before = json_array_size(fetched);
        rc = get_item(mirror, job, tide_job_item(job, i), fetched, err);
        if (rc == TIDE_OK)
            indexes[before] = i;
        else if (!ends_batch(mirror, rc)) {
            tide_job_item_failed(job, i, rc, err->text);
            rc = TIDE_OK;
        }
    }
    tide_error store_err = {TIDE_OK, 0, ""};
    tide_status stored = store_and_mark(mirror, job, fetched, indexes, &store_err);
    if (stored == TIDE_BUSY)
        rc = tide_job_again(job, tide_job_now_ms(job) + 200);
    else if (stored != TIDE_OK) {
        rc = stored;
        *err = store_err;
    }
    json_decref(fetched);
    free(indexes);
    return rc;
}

/* ---- list --------------------------------------------------------------------------------- */

static tide_status enqueue_batches(struct mirror *mirror, tide_job *job, json_t *ids, bool no_cycle,
                                   tide_error *err)
{
    tide_status rc = TIDE_OK;
    size_t count = json_array_size(ids);
    for (size_t at = 0; rc == TIDE_OK && at < count; at += mirror->plan.batch) {
        json_t *items = json_array();
        for (size_t i = at; i < count && i < at + mirror->plan.batch; i++)
            (void)json_array_append(items, json_array_get(ids, i));
        json_t *payload = json_pack("{s:o}", "items", items);
        char *text = json_dumps(payload, JSON_COMPACT);
        struct tide_spec spec = {
            .kind = mirror->kinds.fetch, .payload = text, .no_cycle = no_cycle};
        rc = tide_job_enqueue(job, &spec, err);
        free(text);
        json_decref(payload);
    }
    return rc;
}

/* Where a listing stands: the ids so far go with the token, because children
 * appear only with the job's end (E1.6). */
static tide_status keep_place(struct mirror *mirror, tide_job *job, json_t *place, tide_error *err)
{
    char *text = json_dumps(place, JSON_COMPACT);
    bool durable = tide_rng_chance(&mirror->rng, 1, 3);
    tide_status rc = durable ? tide_job_save(job, tide_text_of(text), err)
                             : tide_job_resume_set(job, tide_text_of(text), err);
    free(text);
    return rc;
}

/* One page; *more_out says that another one follows. */
static tide_status list_page(struct mirror *mirror, tide_job *job, json_t *slice, json_t *place,
                             bool *more_out, tide_error *err)
{
    const char *token = json_string_value(json_object_get(place, "token"));
    char path[300];
    (void)snprintf(path, sizeof path,
                   "/items?start=%" JSON_INTEGER_FORMAT "&end=%" JSON_INTEGER_FORMAT
                   "&pageSize=%" PRIu32 "%s%s",
                   json_integer_value(json_object_get(slice, "start")),
                   json_integer_value(json_object_get(slice, "end")), mirror->plan.page,
                   token == NULL ? "" : "&pageToken=", token == NULL ? "" : token);
    json_t *page = NULL;
    struct ask what = {.method = "GET", .path = path, .units = UNITS_LIST, .number = METHOD_LIST};
    tide_status rc = ask(mirror, job, &what, &page, err);
    if (rc != TIDE_OK)
        return rc;
    json_t *ids = json_object_get(place, "ids");
    json_t *next = json_object_get(page, "nextPageToken");
    size_t index = 0;
    json_t *item = NULL;
    bool lose = mirror->plan.plant == PLANT_PAGE_LOST && token != NULL &&
                tide_rng_chance(&mirror->rng, 1, 4);
    if (next != NULL && token != NULL && strcmp(token, json_string_value(next)) == 0) {
        json_decref(page);
        return tide_error_set(err, TIDE_SERVER, "the page names itself as the next one");
    }
    json_array_foreach(json_object_get(page, "items"), index, item)
    {
        if (!lose)
            (void)json_array_append(ids, json_object_get(item, "id"));
    }
    *more_out = next != NULL;
    if (next != NULL)
        (void)json_object_set(place, "token", next);
    json_decref(page);
    return *more_out ? keep_place(mirror, job, place, err) : TIDE_OK;
}

static tide_status list_slice(struct mirror *mirror, tide_job *job, tide_error *err)
{
    json_t *slice = NULL;
    json_t *place = NULL;
    tide_status rc = tide_json_parse(tide_job_payload(job), &slice, err);
    tide_text resume = tide_job_resume(job);
    if (resume.bytes > 0 && tide_json_parse(resume, &place, err) != TIDE_OK)
        tide_sim_fail(mirror->sim, "resume data came back damaged: %.*s", (int)resume.bytes,
                      resume.data);
    if (place == NULL)
        place = json_pack("{s:[]}", "ids");
    bool more = true;
    while (rc == TIDE_OK && more)
        rc = list_page(mirror, job, slice, place, &more, err);
    if (rc == TIDE_OK)
        rc = enqueue_batches(mirror, job, json_object_get(place, "ids"), false, err);
    if (rc == TIDE_OK)
        rc = done_once(mirror, job, err);
    json_decref(slice);
    json_decref(place);
    return rc;
}

/* ---- changes ---------------------------------------------------------------------------------- */

struct feed_effect {
    uint32_t account;
    uint64_t from, to;
};

static tide_status feed_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct feed_effect *effect = arg;
    char sql[200];
    (void)snprintf(sql, sizeof sql,
                   "UPDATE mirror_feed SET since = %" PRIu64 " WHERE account = %" PRIu32
                   " AND since = %" PRIu64 "; SELECT changes()",
                   effect->to, effect->account, effect->from);
    uint64_t moved = 0;
    const tide_status rc = tide_sim_ledger_run(transaction, sql, &moved, err);
    if (rc == TIDE_OK && moved != 1)
        return tide_error_set(err, TIDE_STALE, "another one moved the feed");
    return rc;
}

static tide_status follow_changes(struct mirror *mirror, tide_job *job, tide_error *err)
{
    struct mirror_account *account = mirror_account_of(mirror, tide_job_account(job));
    struct feed_effect *effect = mirror_scrap(mirror, sizeof *effect);
    effect->account = account->id;
    char text[100];
    (void)snprintf(text, sizeof text, "SELECT since FROM mirror_feed WHERE account = %" PRIu32,
                   account->id);
    tide_status rc = mirror_sql(mirror, text, &effect->from);
    if (rc != TIDE_OK)
        return tide_error_set(err, rc, "cannot read the feed's place");
    (void)snprintf(text, sizeof text, "/changes?since=%" PRIu64, effect->from);
    struct ask what = {
        .method = "GET", .path = text, .units = UNITS_LIST, .number = METHOD_CHANGES};
    json_t *changes = NULL;
    rc = ask(mirror, job, &what, &changes, err);
    if (rc != TIDE_OK)
        return rc;
    effect->to = (uint64_t)json_integer_value(json_object_get(changes, "now"));
    rc = enqueue_batches(mirror, job, json_object_get(changes, "appeared"), true, err);
    json_decref(changes);
    if (rc == TIDE_OK)
        rc = done_once(mirror, job, err);
    return rc == TIDE_OK ? tide_job_effect(job, feed_run, effect, err) : rc;
}

/* ---- note (E1.9) -------------------------------------------------------------------------------- */

static tide_status note_look(struct mirror *mirror, tide_job *job, const char *tag, bool *there_out,
                             tide_error *err)
{
    /* A call that we gave up may still arrive: look only after that time. */
    tide_status rc = tide_job_sleep(job, GHOST_MS);
    if (rc != TIDE_OK)
        return tide_error_set(err, rc, "canceled");
    char path[100];
    (void)snprintf(path, sizeof path, "/notes?tag=%s", tag);
    json_t *answer = NULL;
    struct ask what = {.method = "GET", .path = path, .units = UNITS_LIST, .number = METHOD_NOTE};
    rc = ask(mirror, job, &what, &answer, err);
    if (rc == TIDE_OK)
        *there_out = json_integer_value(json_object_get(answer, "count")) > 0;
    json_decref(answer);
    return rc;
}

static tide_status post_note(struct mirror *mirror, tide_job *job, tide_error *err)
{
    tide_text payload = tide_job_payload(job);
    json_t *json = NULL;
    tide_status rc = tide_json_parse(payload, &json, err);
    const char *tag = json_string_value(json_object_get(json, "tag"));
    bool there = false;
    if (rc == TIDE_OK)
        rc = tide_job_intent(job, tag, "note", err);
    if (rc == TIDE_EXISTS && mirror->plan.plant == PLANT_INTENT_IGNORED)
        rc = TIDE_OK;
    if (rc == TIDE_EXISTS)
        rc = note_look(mirror, job, tag, &there, err);
    if (rc == TIDE_OK && !there) {
        json_t *answer = NULL;
        struct ask what = {.method = "POST",
                           .path = "/notes",
                           .body = payload,
                           .units = UNITS_LIST,
                           .number = METHOD_NOTE};
        rc = ask(mirror, job, &what, &answer, err);
        json_decref(answer);
    }
    if (rc == TIDE_OK)
        rc = tide_job_intent_end(job, tag, TIDE_OK, "posted", err);
    if (rc == TIDE_OK)
        rc = done_once(mirror, job, err);
    json_decref(json);
    return rc;
}

/* ---- step: diamonds and chains (E2.2) --------------------------------------------------------------- */

struct step_effect {
    struct mirror *mirror;
    uint64_t group, step;
};

static tide_status step_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct step_effect *effect = arg;
    char sql[120];
    (void)snprintf(sql, sizeof sql, "INSERT INTO mirror_step VALUES (%" PRIu64 ", %" PRIu64 ")",
                   effect->group, effect->step);
    uint64_t none = 0;
    const tide_status rc = tide_sim_ledger_run(transaction, sql, &none, err);
    if (rc == TIDE_EXISTS)
        tide_sim_fail(effect->mirror->sim, "SIM1: step %" PRIu64 ".%" PRIu64 " is done twice",
                      effect->group, effect->step);
    return rc;
}

/* SIM2: every need of this step is done, and durably so. */
static tide_status needs_check(struct mirror *mirror, uint64_t group, json_t *needs,
                               tide_error *err)
{
    size_t index = 0;
    json_t *need = NULL;
    json_array_foreach(needs, index, need)
    {
        char sql[120];
        uint64_t count = 0;
        (void)snprintf(sql, sizeof sql,
                       "SELECT count(*) FROM mirror_step WHERE grp = %" PRIu64
                       " AND step = %" JSON_INTEGER_FORMAT,
                       group, json_integer_value(need));
        tide_status rc = mirror_sql(mirror, sql, &count);
        if (rc != TIDE_OK)
            return tide_error_set(err, rc, "cannot look at what it needs");
        if (count != 1)
            tide_sim_fail(mirror->sim,
                          "SIM2: a step of group %" PRIu64
                          " started before step %" JSON_INTEGER_FORMAT " was done",
                          group, json_integer_value(need));
    }
    return TIDE_OK;
}

static tide_status take_step(struct mirror *mirror, tide_job *job, tide_error *err)
{
    json_t *json = NULL;
    tide_status rc = tide_json_parse(tide_job_payload(job), &json, err);
    struct step_effect *effect = mirror_scrap(mirror, sizeof *effect);
    effect->mirror = mirror;
    effect->group = (uint64_t)json_integer_value(json_object_get(json, "group"));
    effect->step = (uint64_t)json_integer_value(json_object_get(json, "step"));
    rc = needs_check(mirror, effect->group, json_object_get(json, "needs"), err);
    json_decref(json);
    if (rc == TIDE_OK && tide_rng_chance(&mirror->rng, 1, 3))
        rc = tide_job_sleep(job, tide_rng_below(&mirror->rng, 3000));
    if (rc == TIDE_OK && mirror->faults && tide_rng_chance(&mirror->rng, 1, 20))
        return tide_error_set(err, TIDE_SERVER, "this step stumbles");
    if (rc == TIDE_OK)
        rc = done_once(mirror, job, err);
    return rc == TIDE_OK ? tide_job_effect(job, step_run, effect, err) : rc;
}

/* ---- click (K3), and a handler that does not listen (E7.2) ------------------------------------------ */

static tide_status answer_click(struct mirror *mirror, tide_job *job, tide_error *err)
{
    mirror_click_starts(mirror, job);
    json_t *json = NULL;
    tide_status rc = tide_json_parse(tide_job_payload(job), &json, err);
    json_t *id = json_object_get(json, "id");
    (void)tide_job_resume_set(job, TIDE_TEXT("seen"), err);
    json_t *fetched = json_array();
    rc = get_item(mirror, job, (tide_text){json_string_value(id), json_string_length(id)}, fetched,
                  err);
    json_decref(fetched);
    json_decref(json);
    if (rc == TIDE_GONE)
        rc = TIDE_OK;
    mirror_click_ends(mirror, job, rc);
    if (mirror->plan.plant == PLANT_UNITS_TAKEN)
        job->lacks_units = false;
    return rc == TIDE_OK ? done_once(mirror, job, err) : rc;
}

static tide_status ignore_everything(struct mirror *mirror, tide_job *job, tide_error *err)
{
    uint64_t until_us =
        tide_world_now_us(mirror->world) + tide_rng_below(&mirror->rng, STUBBORN_US_MAX);
    if (mirror->faults)
        (void)tide_world_sleep_until(mirror->world, until_us, NULL);
    return done_once(mirror, job, err);
}

/* ---- kinds --------------------------------------------------------------------------------------------- */

typedef tide_status work(struct mirror *mirror, tide_job *job, tide_error *err);

static tide_status run_counted(struct mirror *mirror, tide_job *job, work *run, tide_error *err)
{
    struct mirror_account *account = mirror_account_of(mirror, tide_job_account(job));
    if (account != NULL)
        account->running++;
    if (account != NULL && run != answer_click)
        mirror_lower_starts(mirror, job);
    tide_sim_note(mirror->sim, "job %" PRIu64 " %s starts", tide_job_id(job), job->kind->kind.name);
    tide_status rc = run(mirror, job, err);
    tide_sim_note(mirror->sim, "job %" PRIu64 " ends: %s", tide_job_id(job), tide_status_name(rc));
    while (mirror->plan.plant == PLANT_CANCEL_IGNORED && account != NULL &&
           tide_job_canceled(job) && !tide_world_dead(mirror->world))
        if (tide_world_sleep_until(mirror->world, tide_world_now_us(mirror->world) + 9000000,
                                   NULL) != TIDE_OK ||
            tide_canceled(&job->cancel) == TIDE_CANCEL_STOP || tide_rng_chance(&mirror->rng, 1, 2))
            break;
    if (account != NULL)
        account->running--;
    return rc;
}

#define HANDLER(name, what)                                                                        \
    static tide_status name(tide_job *job, void *context, tide_error *err)                         \
    {                                                                                              \
        return run_counted(context, job, what, err);                                               \
    }
HANDLER(list_handler, list_slice)
HANDLER(fetch_handler, fetch_items)
HANDLER(changes_handler, follow_changes)
HANDLER(note_handler, post_note)
HANDLER(step_handler, take_step)
HANDLER(click_handler, answer_click)
HANDLER(stubborn_handler, ignore_everything)

static tide_status define_kinds(struct mirror *mirror, tide_error *err)
{
    struct mirror_kinds *kinds = &mirror->kinds;
    const struct {
        struct tide_kind kind;
        uint32_t *id;
    } all[] = {
        {{.name = "list", .handler = list_handler, .priority = 30}, &kinds->list},
        {{.name = "fetch",
          .handler = fetch_handler,
          .priority = 30,
          .items = true,
          .stall_after_ms = mirror->plan.impatient ? 15000 : 0},
         &kinds->fetch},
        {{.name = "changes", .handler = changes_handler, .priority = 40}, &kinds->changes},
        {{.name = "note",
          .handler = note_handler,
          .priority = 60,
          .level = 2,
          .dedupe_running = true},
         &kinds->note},
        {{.name = "step", .handler = step_handler, .priority = 20}, &kinds->step},
        {{.name = "click",
          .handler = click_handler,
          .priority = 90,
          .level = 1,
          .lane = TIDE_KIND_INTERACTIVE},
         &kinds->click},
        {{.name = "stubborn", .handler = stubborn_handler, .priority = 10, .stall_after_ms = 20000},
         &kinds->stubborn},
    };
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < sizeof all / sizeof all[0]; i++) {
        struct tide_kind kind = all[i].kind;
        kind.context = mirror;
        rc = tide_engine_kind(mirror->engine, &kind, all[i].id, err);
    }
    return rc;
}

/* ---- a life -------------------------------------------------------------------------------------------- */

static const char tables[] =
    "CREATE TABLE IF NOT EXISTS mirror_done (job INTEGER PRIMARY KEY);"
    "CREATE TABLE IF NOT EXISTS mirror_item (account INTEGER, id TEXT, PRIMARY KEY (account, id));"
    "CREATE TABLE IF NOT EXISTS mirror_feed (account INTEGER PRIMARY KEY, since INTEGER);"
    "CREATE TABLE IF NOT EXISTS mirror_group (grp INTEGER PRIMARY KEY, steps INTEGER);"
    "CREATE TABLE IF NOT EXISTS mirror_step (grp INTEGER, step INTEGER, PRIMARY KEY (grp, step));"
    "CREATE TABLE IF NOT EXISTS mirror_note (tag TEXT PRIMARY KEY)";

/* The slices of the past, each a cycle with its listing; what an earlier life
 * opened is not opened again. */
static tide_status open_cycles(struct mirror *mirror, struct mirror_account *account,
                               tide_error *err)
{
    const struct tide_sim_provider_options *options =
        &mirror->plan.provider[account - mirror->accounts];
    uint64_t from_ms = options->start_unix_ms - options->span_ms;
    struct tide_stream_state state;
    tide_status rc =
        tide_stream_open(mirror->engine, account->id, "mail", NULL, &account->stream, err);
    if (rc == TIDE_OK)
        rc = tide_stream_state(mirror->engine, account->stream, &state, err);
    for (uint64_t i = rc == TIDE_OK ? state.cycles_opened : 0;
         rc == TIDE_OK && i < mirror->plan.slices; i++) {
        uint64_t start_ms = from_ms + options->span_ms * i / mirror->plan.slices;
        uint64_t end_ms = from_ms + options->span_ms * (i + 1) / mirror->plan.slices;
        char start[24], end[24], payload[100];
        (void)snprintf(start, sizeof start, "%" PRIu64, start_ms);
        (void)snprintf(end, sizeof end, "%" PRIu64, end_ms);
        (void)snprintf(payload, sizeof payload, "{\"start\":%s,\"end\":%s}", start, end);
        struct tide_spec spec = {
            .kind = mirror->kinds.list, .account = account->id, .payload = payload};
        rc = tide_cycle_open(mirror->engine, account->stream, start, end, &spec, 1, NULL, err);
    }
    return rc;
}

static tide_status open_accounts(struct mirror *mirror, tide_error *err)
{
    tide_status rc = mirror_sql(mirror, tables, NULL);
    if (rc != TIDE_OK)
        return tide_error_set(err, rc, "cannot make the mirror's tables");
    for (size_t i = 0; rc == TIDE_OK && i < MIRROR_ACCOUNTS; i++) {
        struct mirror_account *account = &mirror->accounts[i];
        char sql[120];
        account->running = 0;
        account->clicks = NULL;
        rc =
            tide_engine_account(mirror->engine, account->name, account->profile, &account->id, err);
        /* The listings end before the start, and the feed answers for what follows `since`:
         * the start itself belongs to the feed. */
        (void)snprintf(sql, sizeof sql,
                       "INSERT OR IGNORE INTO mirror_feed VALUES (%" PRIu32 ", %" PRIu64 ")",
                       account->id, mirror->plan.provider[i].start_unix_ms - 1);
        if (rc == TIDE_OK)
            rc = mirror_sql(mirror, sql, NULL);
        if (rc == TIDE_OK)
            rc = open_cycles(mirror, account, err);
    }
    return rc;
}

static tide_status open_settings(struct mirror *mirror, tide_error *err)
{
    char flags[3][64];
    (void)snprintf(flags[0], sizeof flags[0], "tracker.window_jobs=%" PRIu32,
                   mirror->plan.window_jobs);
    (void)snprintf(flags[1], sizeof flags[1], "governor.gmail.window_units=%" PRIu32,
                   mirror->plan.provider[0].units_per_minute);
    /* A wrong clock must not purge what this test still wants to retry. */
    (void)snprintf(flags[2], sizeof flags[2], "purge.after=300d");
    tide_status rc = tide_settings_new(tide_mem_heap(), &mirror->settings);
    for (size_t i = 0; rc == TIDE_OK && i < sizeof flags / sizeof flags[0]; i++)
        rc = tide_settings_add_flag(mirror->settings, flags[i], err);
    if (rc != TIDE_OK)
        tide_sim_fail(mirror->sim, "settings: %s", err->text);
    return rc;
}

tide_status mirror_open(struct mirror *mirror, tide_error *err)
{
    mirror->store_lost = false;
    mirror->operator_ends = false;
    mirror->operator_cancel = (tide_cancel){0};
    tide_status rc = open_settings(mirror, err);
    const struct tide_engine_options options = {.state_dir = "/state",
                                                .world = mirror->world,
                                                .settings = mirror->settings,
                                                .workers = mirror->plan.workers,
                                                .no_control_socket = true,
                                                .log = tide_sim_log()};
    if (rc == TIDE_OK)
        rc = tide_engine_open(&options, &mirror->engine, err);
    if (rc == TIDE_OK)
        rc = define_kinds(mirror, err);
    if (rc == TIDE_OK)
        rc = open_accounts(mirror, err);
    if (rc == TIDE_OK)
        rc = tide_engine_schedule(mirror->engine,
                                  &(struct tide_schedule){.name = "follow",
                                                          .kind = mirror->kinds.changes,
                                                          .period_ms = 300000,
                                                          .at_start = true,
                                                          .per_account = true},
                                  err);
    if (rc == TIDE_OK)
        rc = tide_engine_start(mirror->engine, err);
    if (rc == TIDE_OK)
        rc = tide_world_thread(mirror->world, "operator", mirror_operator_main, mirror,
                               &mirror->operator_thread, err);
    return rc;
}

/* The engine leaves a handler behind that does not return, or that a suspended machine kept from
 * returning.  Its memory is freed by a further call, once the handler has come back; ours does
 * within five minutes. */
static tide_status close_engine(struct mirror *mirror)
{
    tide_status rc = tide_engine_close(mirror->engine);
    for (int i = 0; rc == TIDE_TIMEOUT && !mirror->plan.calm && i < CLOSE_SECONDS_MAX; i++) {
        (void)tide_world_sleep_until(mirror->world, tide_world_now_us(mirror->world) + 1000000,
                                     NULL);
        rc = tide_engine_close(mirror->engine);
    }
    return rc;
}

void mirror_close(struct mirror *mirror)
{
    mirror->operator_ends = true;
    tide_world_cancel(mirror->world, &mirror->operator_cancel, TIDE_CANCEL_STOP);
    tide_world_join(mirror->world, mirror->operator_thread);
    mirror->operator_thread = NULL;
    if (mirror->engine != NULL) {
        uint64_t start_ms = tide_world_now_ms(mirror->world);
        bool started = mirror->engine->phase == TIDE_PHASE_RUN;
        tide_status rc = close_engine(mirror);
        uint64_t took_ms = tide_world_now_ms(mirror->world) - start_ms;
        if (rc != TIDE_OK)
            tide_sim_fail(mirror->sim, "the engine did not close: %s", tide_status_name(rc));
        if (started && mirror->plan.calm && !tide_world_dead(mirror->world) &&
            start_ms > mirror->disturbed_ms) {
            mirror->totals.stops_checked++;
            if (took_ms > mirror->totals.stop_ms_max)
                mirror->totals.stop_ms_max = took_ms;
            if (took_ms > 6000)
                tide_sim_fail(mirror->sim, "SIM7: stopping took %" PRIu64 " ms", took_ms);
        }
    }
    mirror->engine = NULL;
    for (size_t i = 0; i < mirror->shards_count; i++)
        (void)sqlite3_close(mirror->shards[i]);
    mirror->shards_count = 0;
    tide_settings_free(mirror->settings);
    mirror->settings = NULL;
    while (mirror->scraps != NULL) {
        struct mirror_scrap *scrap = mirror->scraps;
        mirror->scraps = scrap->next;
        free(scrap);
    }
}

struct mirror *mirror_new(const struct mirror_plan *plan)
{
    struct mirror *mirror = calloc(1, sizeof *mirror);
    TIDE_ASSERT(mirror != NULL);
    mirror->plan = *plan;
    mirror->plan.sim.net.provide = provide;
    mirror->plan.sim.net.provide_arg = mirror;
    mirror->accounts[0] = (struct mirror_account){
        .name = "ann@one.example", .profile = "gmail", .host = "one.example"};
    mirror->accounts[1] = (struct mirror_account){
        .name = "bob@two.example", .profile = "default", .host = "two.example"};
    for (size_t i = 0; i < MIRROR_ACCOUNTS; i++)
        mirror->accounts[i].provider = tide_sim_provider_new(&plan->provider[i]);
    mirror->sim = tide_sim_new(plan->seed, &mirror->plan.sim);
    mirror->world = tide_sim_world(mirror->sim);
    mirror->rng = tide_sim_rng(mirror->sim);
    mirror->faults = true;
    return mirror;
}

void mirror_free(struct mirror *mirror)
{
    tide_sim_free(mirror->sim);
    for (size_t i = 0; i < MIRROR_ACCOUNTS; i++)
        tide_sim_provider_free(mirror->accounts[i].provider);
    free(mirror);
}
