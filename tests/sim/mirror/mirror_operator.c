/* mirror_operator.c - an operator who clicks, enqueues, cancels, halts and watches
 * while the engine runs, at random. */
#include "mirror.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdlib.h>

/* ---- SIM3: the window against the ledger ----------------------------------------- */

struct audit {
    struct tide_write write; /* first: apply() is handed the audit */
    struct mirror *mirror;
    struct sqlite3 *db; /* the writer's own */
    sqlite3_stmt *row;
    bool looked;
};

static bool audit_tracked(const struct tide_tracked *tracked, void *arg)
{
    struct audit *audit = arg;
    tide_sim *sim = audit->mirror->sim;
    uint64_t id = tracked->brief.id;
    (void)sqlite3_reset(audit->row);
    (void)sqlite3_bind_int64(audit->row, 1, (sqlite3_int64)id);
    int rc = sqlite3_step(audit->row);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        return false; /* the disk failed or the world died: nothing can be said */
    if (rc == SQLITE_DONE)
        tide_sim_fail(sim, "SIM3: job %" PRIu64 " is in the window but not in the ledger", id);
    int state = sqlite3_column_int(audit->row, 0);
    uint64_t token = (uint64_t)sqlite3_column_int64(audit->row, 1);
    bool waits = tracked->state == TIDE_JOB_BLOCKED || tracked->state == TIDE_JOB_WAITING ||
                 tracked->state == TIDE_JOB_READY || tracked->state == TIDE_JOB_CLAIMING;
    if (!waits && audit->mirror->plan.rescues)
        return true; /* a zombie: its row is another machine's */
    if (state > TIDE_ROW_RUNNING)
        tide_sim_fail(sim, "SIM3: job %" PRIu64 " is in the window (%d) but finished (%d)", id,
                      (int)tracked->state, state);
    if (waits != (state == TIDE_ROW_PENDING))
        tide_sim_fail(sim, "SIM3: job %" PRIu64 " is %d in the window, %d in the ledger", id,
                      (int)tracked->state, state);
    const tide_job *job = tracked->body;
    if (!waits && (job == NULL || job->body->token != token))
        tide_sim_fail(sim, "SIM3: job %" PRIu64 " runs under another token", id);
    if (waits && tracked->state == TIDE_JOB_BLOCKED && sqlite3_column_int(audit->row, 2) == 0)
        tide_sim_fail(sim, "SIM3: job %" PRIu64 " is blocked in the window only", id);
    return true;
}

/* Every claim under our name belongs to a job that the window has. */
static void audit_claims(struct audit *audit)
{
    tide_engine *engine = audit->mirror->engine;
    sqlite3_stmt *stmt = NULL;
    (void)sqlite3_prepare_v2(audit->db, "SELECT job FROM claim WHERE owner = ?1", -1, &stmt, NULL);
    (void)sqlite3_bind_int64(stmt, 1, (sqlite3_int64)engine->owner);
    while (sqlite3_step(stmt) == SQLITE_ROW) {
        uint64_t id = (uint64_t)sqlite3_column_int64(stmt, 0);
        if (tide_tracker_find(engine->tracker, id) == NULL)
            tide_sim_fail(audit->mirror->sim,
                          "SIM3: job %" PRIu64 " is claimed by us and no worker has it", id);
    }
    (void)sqlite3_finalize(stmt);
}

static tide_status audit_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct audit *audit = arg;
    (void)err;
    audit->db = tide_transaction_sqlite(transaction);
    return TIDE_OK;
}

/* On the writer's thread, under the lock, after its transaction: here the window
 * and the ledger must agree, unless another request was committed beside ours and
 * is not applied yet. */
static void audit_apply(tide_engine *engine, void *arg, uint64_t now_ms)
{
    struct audit *audit = arg;
    (void)now_ms;
    if (audit->write.next != NULL)
        return;
    if (!tide_engine_check(engine))
        tide_sim_fail(audit->mirror->sim, "SIM3: the engine's own check failed");
    if (sqlite3_prepare_v2(audit->db,
                           "SELECT j.state, c.token, j.open_deps FROM job j"
                           " LEFT JOIN claim c ON c.job = j.id WHERE j.id = ?1",
                           -1, &audit->row, NULL) != SQLITE_OK)
        return;
    tide_tracker_each(engine->tracker, audit_tracked, audit);
    (void)sqlite3_finalize(audit->row);
    audit_claims(audit);
    audit->looked = true;
}

tide_status mirror_audit(struct mirror *mirror)
{
    struct audit audit = {.mirror = mirror};
    audit.write.run = audit_run;
    audit.write.arg = &audit;
    audit.write.apply = audit_apply;
    tide_error err;
    tide_status rc = tide_write_run(mirror->engine, &audit.write, &err);
    mirror->totals.audits += audit.looked;
    return rc;
}

/* ---- what it enqueues -------------------------------------------------------------- */

static tide_status click(struct mirror *mirror, tide_rng *rng)
{
    struct mirror_account *account = &mirror->accounts[tide_rng_below(rng, MIRROR_ACCOUNTS)];
    size_t count = 0;
    const struct tide_sim_item *items = tide_sim_provider_items(account->provider, &count);
    const struct tide_sim_item *item = &items[tide_rng_below(rng, count)];
    if (item->kind != TIDE_SIM_ITEM_PLAIN)
        return TIDE_OK;
    char payload[200];
    char dedupe[32];
    (void)snprintf(payload, sizeof payload, "{\"at\":%" PRIu64 ",\"life\":%u,\"id\":\"%s\"}",
                   tide_world_now_ms(mirror->world), tide_sim_life(mirror->sim), item->id);
    (void)snprintf(dedupe, sizeof dedupe, "click:%u", (unsigned)tide_rng_below(rng, 5));
    struct tide_spec spec = {.kind = mirror->kinds.click,
                             .account = account->id,
                             .payload = payload,
                             .dedupe = tide_rng_chance(rng, 1, 2) ? dedupe : NULL,
                             .force = tide_rng_chance(rng, 1, 10)};
    mirror->clicks_made++;
    return tide_enqueue(mirror->engine, &spec, 1, NULL, NULL);
}

/* New mail that can be read: without any success no item is called bad (E6.2). */
static tide_status fetch_again(struct mirror *mirror, tide_rng *rng)
{
    struct mirror_account *account = &mirror->accounts[tide_rng_below(rng, MIRROR_ACCOUNTS)];
    size_t count = 0;
    const struct tide_sim_item *items = tide_sim_provider_items(account->provider, &count);
    const struct tide_sim_item *item = &items[tide_rng_below(rng, count)];
    if (item->kind != TIDE_SIM_ITEM_PLAIN ||
        !tide_sim_item_there(item, tide_sim_net_unix_ms(mirror->sim)))
        return TIDE_OK;
    char payload[100];
    (void)snprintf(payload, sizeof payload, "{\"items\":[\"%s\"]}", item->id);
    struct tide_spec spec = {
        .kind = mirror->kinds.fetch, .account = account->id, .payload = payload};
    return tide_enqueue(mirror->engine, &spec, 1, NULL, NULL);
}

struct note_ask {
    struct mirror *mirror;
    char tag[40];
    uint32_t account;
};

static tide_status note_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct note_ask *what = arg;
    char text[100];
    (void)snprintf(text, sizeof text, "INSERT INTO mirror_note VALUES ('%s')", what->tag);
    if (sqlite3_exec(tide_transaction_sqlite(transaction), text, NULL, NULL, NULL) != SQLITE_OK)
        return tide_error_set(err, TIDE_IO, "cannot remember the note");
    (void)snprintf(text, sizeof text, "{\"tag\":\"%s\"}", what->tag);
    struct tide_spec spec = {.kind = what->mirror->kinds.note,
                             .account = what->account,
                             .payload = text,
                             .dedupe = what->tag};
    return tide_transaction_enqueue(transaction, &spec, 1, NULL, err);
}

static tide_status note(struct mirror *mirror, tide_rng *rng)
{
    struct note_ask what = {.mirror = mirror};
    what.account = mirror->accounts[tide_rng_below(rng, MIRROR_ACCOUNTS)].id;
    (void)snprintf(what.tag, sizeof what.tag, "note-%" PRIu64, mirror->notes_made++);
    return tide_transact(mirror->engine, note_run, &what, NULL);
}

enum { GROUP_MAX = 300 };

struct group_ask {
    struct mirror *mirror;
    uint64_t group;
    size_t count;
    enum group_shape { CHAIN, GRAPH, FLAT } shape;
    uint32_t account;
    tide_rng rng;
};

static size_t needs_of(const struct group_ask *what, size_t step, tide_rng *rng)
{
    size_t count = what->shape == CHAIN ? 1 : what->shape == GRAPH ? tide_rng_below(rng, 4) : 0;
    return count > step ? step : count;
}

/* A chain (each needs the one before), a graph in which each step needs a few
 * earlier ones, or many that need nothing. */
static tide_status group_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct group_ask *what = arg;
    struct tide_spec *specs = calloc(what->count, sizeof *specs);
    char(*payloads)[120] = calloc(what->count, sizeof *payloads);
    uint32_t(*needs)[3] = calloc(what->count, sizeof *needs);
    tide_rng rng = what->rng;
    for (size_t i = 0; i < what->count; i++) {
        size_t needs_count = needs_of(what, i, &rng);
        char list[60] = "";
        size_t bytes = 0;
        for (size_t j = 0; j < needs_count; j++) {
            needs[i][j] = (uint32_t)(i - 1 - j);
            bytes += (size_t)snprintf(list + bytes, sizeof list - bytes, "%s%u", j > 0 ? "," : "",
                                      needs[i][j]);
        }
        (void)snprintf(payloads[i], sizeof payloads[i],
                       "{\"group\":%" PRIu64 ",\"step\":%zu,\"needs\":[%s]}", what->group, i, list);
        specs[i] = (struct tide_spec){.kind = what->mirror->kinds.step,
                                      .account = what->account,
                                      .payload = payloads[i],
                                      .needs_index = needs[i],
                                      .needs_index_count = needs_count,
                                      .delay_ms = tide_rng_chance(&rng, 1, 30) ? 5000 : 0};
    }
    char sql[100];
    (void)snprintf(sql, sizeof sql, "INSERT INTO mirror_group VALUES (%" PRIu64 ", %zu)",
                   what->group, what->count);
    tide_status rc = TIDE_OK;
    if (sqlite3_exec(tide_transaction_sqlite(transaction), sql, NULL, NULL, NULL) != SQLITE_OK)
        rc = tide_error_set(err, TIDE_IO, "cannot remember the group");
    if (rc == TIDE_OK)
        rc = tide_transaction_enqueue(transaction, specs, what->count, NULL, err);
    free(needs);
    free(payloads);
    free(specs);
    return rc;
}

static tide_status group(struct mirror *mirror, tide_rng *rng)
{
    struct group_ask what = {.mirror = mirror, .group = mirror->groups_made++};
    what.shape = (enum group_shape)tide_rng_below(rng, 3);
    what.count = 1 + tide_rng_below(rng, tide_rng_chance(rng, 1, 8) ? GROUP_MAX : 12);
    if (tide_rng_chance(rng, 1, 2))
        what.account = mirror->accounts[tide_rng_below(rng, MIRROR_ACCOUNTS)].id;
    what.rng = tide_rng_seeded(tide_rng_next(rng));
    tide_status rc = tide_transact(mirror->engine, group_run, &what, NULL);
    tide_sim_note(mirror->sim, "group %" PRIu64 " of %zu: %s", what.group, what.count,
                  tide_status_name(rc));
    return rc;
}

/* ---- what it does to jobs and accounts ------------------------------------------------ */

static uint64_t some_job(struct mirror *mirror, tide_rng *rng)
{
    uint64_t newest = 0;
    (void)mirror_sql(mirror, "SELECT coalesce(max(id), 1) FROM job", &newest);
    return 1 + tide_rng_below(rng, newest);
}

/* SIM7: nothing of a halted account runs after 5 s. */
static tide_status halt(struct mirror *mirror, tide_rng *rng)
{
    struct mirror_account *account = &mirror->accounts[tide_rng_below(rng, MIRROR_ACCOUNTS)];
    tide_status rc = tide_engine_halt(mirror->engine, account->id, "for a test", NULL);
    if (rc != TIDE_OK)
        return rc;
    uint64_t start_us = tide_world_now_us(mirror->world);
    rc = tide_world_sleep_until(mirror->world, start_us + 5000000, &mirror->operator_cancel);
    bool calm = mirror->plan.calm && !mirror->plan.stubborn &&
                mirror->disturbed_ms < start_us / 1000 && rc == TIDE_OK;
    mirror->totals.halts_checked += calm;
    if (calm && account->running > 0)
        tide_sim_fail(mirror->sim, "SIM7: %u handlers of %s run 5 s after its halt",
                      account->running, account->name);
    if (rc == TIDE_OK && tide_rng_chance(rng, 1, 2))
        rc = tide_world_sleep_until(
            mirror->world, tide_world_now_us(mirror->world) + tide_rng_below(rng, 60000000),
            &mirror->operator_cancel);
    if (rc == TIDE_OK || tide_rng_chance(rng, 1, 2))
        rc = tide_engine_resume(mirror->engine, account->id, NULL);
    return rc;
}

tide_status mirror_pause(struct mirror *mirror, const char *account, const char *kind, bool paused)
{
    return tide_engine_pause(mirror->engine, kind, account, paused, NULL);
}

static tide_status pause_something(struct mirror *mirror, tide_rng *rng)
{
    static const char *const kinds[] = {"list", "fetch", "note", "step"};
    const char *account = NULL;
    const char *kind = NULL;
    if (tide_rng_chance(rng, 1, 2))
        account = mirror->accounts[tide_rng_below(rng, MIRROR_ACCOUNTS)].name;
    else
        kind = kinds[tide_rng_below(rng, 4)];
    tide_status rc = mirror_pause(mirror, account, kind, true);
    if (rc == TIDE_OK)
        rc = tide_world_sleep_until(
            mirror->world, tide_world_now_us(mirror->world) + tide_rng_below(rng, 30000000),
            &mirror->operator_cancel);
    if (rc == TIDE_OK)
        rc = mirror_pause(mirror, account, kind, false);
    return rc;
}

static tide_status look(struct mirror *mirror)
{
    tide_buf text;
    struct tide_progress progress;
    tide_buf_init(&text, tide_mem_heap(), 16 << 20);
    tide_status rc = tide_engine_snapshot(mirror->engine, &text, NULL);
    tide_buf_done(&text);
    tide_engine_progress(mirror->engine, &progress);
    return rc;
}

/* Another machine believes that we are dead and takes our claims: what our
 * handlers do from now on must change nothing (E1.8). */
struct rescue {
    struct tide_changes changes;
    size_t count;
};

static tide_status rescue_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct rescue *rescue = arg;
    tide_changes_clear(&rescue->changes);
    return tide_ledger_reclaim(transaction->tx, 77, 1000, transaction->now_unix_ms, &rescue->count,
                               &rescue->changes, err);
}

static void rescue_apply(tide_engine *engine, void *arg, uint64_t now_ms)
{
    struct rescue *rescue = arg;
    tide_changes_apply(engine, &rescue->changes, now_ms);
}

static tide_status rescue(struct mirror *mirror)
{
    if (!mirror->plan.rescues)
        return TIDE_OK;
    struct rescue what = {.count = 0};
    tide_changes_init(&what.changes, tide_mem_heap());
    struct tide_write write = {.run = rescue_run, .arg = &what, .apply = rescue_apply};
    tide_status rc = tide_write_run(mirror->engine, &write, NULL);
    tide_changes_done(&what.changes);
    mirror->totals.rescues += rc == TIDE_OK && what.count > 0;
    return rc;
}

static tide_status stubborn(struct mirror *mirror)
{
    if (!mirror->plan.stubborn)
        return TIDE_OK;
    struct tide_spec spec = {.kind = mirror->kinds.stubborn};
    return tide_enqueue(mirror->engine, &spec, 1, NULL, NULL);
}

/* ---- broken on purpose ---------------------------------------------------------------- */

static void plant(struct mirror *mirror)
{
    switch (mirror->plan.plant) {
    case PLANT_CURSOR_EARLY:
        (void)mirror_sql(mirror,
                         "UPDATE stream SET ordinal = ordinal + 1, cursor = (SELECT \"end\" FROM"
                         " cycle c WHERE c.stream = stream.id AND c.ordinal = stream.ordinal)"
                         " WHERE ordinal < ordinal_next",
                         NULL);
        break;
    case PLANT_DONE_TWICE:
        (void)mirror_sql(
            mirror, "UPDATE job SET state = 0 WHERE id = (SELECT max(job) FROM mirror_done)", NULL);
        break;
    case PLANT_NEEDS_IGNORED:
        (void)mirror_sql(mirror,
                         "UPDATE job SET open_deps = 0 WHERE state = 0 AND open_deps > 0;"
                         "DELETE FROM dep",
                         NULL);
        break;
    case PLANT_CLAIM_FORGOTTEN:
        (void)mirror_sql(mirror,
                         "UPDATE job SET state = 1 WHERE id = (SELECT id FROM job WHERE state = 0"
                         " ORDER BY id DESC LIMIT 1)",
                         NULL);
        break;
    case PLANT_FENCE_GONE:
        (void)mirror_sql(mirror, "UPDATE claim SET token = token + 1", NULL);
        break;
    default:
        break;
    }
}

/* ---- the thread --------------------------------------------------------------------------- */

static tide_status act(struct mirror *mirror, tide_rng *rng)
{
    if (mirror->plan.plant != PLANT_NONE && tide_rng_chance(rng, 1, 4))
        plant(mirror);
    if (!mirror->faults) /* the end: only what helps to see */
        return tide_rng_chance(rng, 1, 3)   ? click(mirror, rng)
               : tide_rng_chance(rng, 1, 2) ? fetch_again(mirror, rng)
                                            : mirror_audit(mirror);
    switch (tide_rng_below(rng, 17)) {
    case 0:
    case 1:
    case 2:
    case 3:
        return click(mirror, rng);
    case 4:
    case 5:
        return note(mirror, rng);
    case 6:
    case 7:
        return group(mirror, rng);
    case 8:
        return tide_cancel_job(mirror->engine, some_job(mirror, rng), NULL);
    case 9:
        return tide_retry_job(mirror->engine, some_job(mirror, rng), NULL);
    case 10:
        return halt(mirror, rng);
    case 11:
        return pause_something(mirror, rng);
    case 12:
        return stubborn(mirror);
    case 13:
        return look(mirror);
    case 14:
        return rescue(mirror);
    default:
        return mirror_audit(mirror);
    }
}

void mirror_operator_main(void *arg)
{
    struct mirror *mirror = arg;
    tide_rng rng = tide_rng_seeded(mirror->plan.seed * 31 + tide_sim_life(mirror->sim));
    uint64_t haste_us = 1000ull << tide_rng_below(&rng, 16);
    if (!mirror->faults)
        haste_us = 120000000;
    while (!mirror->operator_ends && !tide_world_dead(mirror->world)) {
        uint64_t until_us =
            tide_world_now_us(mirror->world) + 1000 + tide_rng_below(&rng, haste_us);
        tide_status rc = tide_world_sleep_until(mirror->world, until_us, &mirror->operator_cancel);
        if (rc != TIDE_OK || mirror->operator_ends)
            break;
        if (act(mirror, &rng) == TIDE_STOPPED)
            break;
    }
}
