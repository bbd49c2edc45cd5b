/* mail_sim.c - one seed: a server with troubles, lives with faults, one without. */
#include "mail_sim.h"

#include "base/json.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

enum {
    MINUTE_MS = 60000,
    ROUNDS_MAX =
        280, /* each asks for the history: below its limit, so that what is left is reported */
    YEAR_S = 31557600,
    IDS_OF_ONE_CHANGE_MAX = 4,
    HISTORIES_OF_A_LIFE_MAX = 300, /* a job that goes in a circle asks for thousands */
};

#define TOKEN "tok"

/* ---- what a seed decides ------------------------------------------------------- */

static uint32_t sometimes(tide_rng *rng, uint32_t high)
{
    return tide_rng_chance(rng, 1, 2) ? 0 : 1 + (uint32_t)tide_rng_below(rng, high);
}

static void plan_disk(tide_rng *rng, struct tide_sim_disk_options *disk)
{
    if (tide_rng_chance(rng, 1, 6))
        disk->sync_error_per_million = 500;
    if (tide_rng_chance(rng, 1, 6))
        disk->full_per_million = 1500;
    if (tide_rng_chance(rng, 1, 6))
        disk->write_error_per_million = 150;
}

/* What TLS would notice is not simulated: a scrambled body never arrives whole.  The
 * clock of the machine is right, but for the skew between it and the server's. */
static void plan_net(tide_rng *rng, struct mail_plan *plan)
{
    struct tide_sim_net_options *net = &plan->sim.net;
    net->garbage_permille = 0;
    plan->sim.wall_jump_every_steps = 0;
    plan->quiet = tide_rng_chance(rng, 1, 4);
    if (plan->quiet) {
        net->refuse_permille = net->loss_permille = net->reset_permille = 0;
        net->stall_permille = net->truncate_permille = net->outage_per_million = 0;
    } else {
        plan->server_faults_permille = sometimes(rng, 100);
    }
    plan->strict_quota = plan->quiet || tide_rng_chance(rng, 1, 2);
    if (plan->strict_quota) {
        /* The promises the governor relies on (GOV1). */
        net->duplicate_permille = 0;
        net->slow_permille = 0;
    }
}

struct mail_plan mail_plan_seeded(uint64_t seed)
{
    tide_rng rng = tide_rng_seeded(seed ^ 0x6d61696c73696du);
    struct mail_plan plan = {.seed = seed, .sim = tide_sim_options_seeded(seed)};
    plan_net(&rng, &plan);
    if (!plan.quiet)
        plan_disk(&rng, &plan.sim.disk);
    plan.messages = 50 + (uint32_t)tide_rng_below(&rng, tide_rng_chance(&rng, 1, 6) ? 350 : 100);
    plan.size_bytes = tide_rng_chance(&rng, 1, 3) ? 1000 : 0;
    plan.lives = (uint32_t)tide_rng_below(&rng, 8);
    plan.workers = 1 + (uint32_t)tide_rng_below(&rng, 12);
    plan.crash_steps_max = 1000u << tide_rng_below(&rng, 6);
    plan.news_max = sometimes(&rng, 40);
    plan.news_every_calls = 2 + (uint32_t)tide_rng_below(&rng, 40);
    plan.planted = tide_rng_chance(&rng, 1, 3) ? 1 + (uint32_t)tide_rng_below(&rng, 3) : 0;
    plan.inversions_permille = sometimes(&rng, 100);
    plan.newest_first = tide_rng_chance(&rng, 1, 3);
    plan.settled_first = tide_rng_chance(&rng, 1, 2);
    plan.shard_lost = plan.lives > 2 && tide_rng_chance(&rng, 1, 8);
    plan.seeded = tide_rng_chance(&rng, 1, 3);
    return plan;
}

/* Some bugs show only in worlds of a kind; the seed decides the rest. */
void mail_plan_plant(struct mail_plan *plan, enum mail_plant plant)
{
    plan->plant = plant;
    if (plant == MAIL_PLANT_SYNC_LIES || plant == MAIL_PLANT_FETCH_AGAIN)
        plan->lives += 3;
    if (plant == MAIL_PLANT_CHEAP_GET || plant == MAIL_PLANT_FETCH_AGAIN) {
        struct tide_sim_net_options *net = &plan->sim.net;
        plan->messages = 390; /* more than a minute's units */
        plan->size_bytes = 1000;
        plan->workers = 12;
        plan->crash_steps_max = 30000;
        plan->quiet = plan->strict_quota = true;
        plan->shard_lost = false;
        plan->server_faults_permille = plan->planted = 0;
        *net = (struct tide_sim_net_options){.latency_us_max = net->latency_us_max};
        plan->sim.pause_every_steps = 0;
        plan->sim.disk = (struct tide_sim_disk_options){0};
    }
    if (plant == MAIL_PLANT_GONE_LOST || plant == MAIL_PLANT_LABELS_LOST) {
        plan->news_max = 40;
        plan->news_every_calls = 4;
        plan->settled_first = true;
        plan->lives += 2;
    }
    if (plant == MAIL_PLANT_PROOF_LOST) {
        plan->shard_lost = true;
        plan->lives += 4;
        plan->crash_steps_max = 30000;
    }
    if (plant == MAIL_PLANT_BAD_FORGIVEN && plan->planted == 0)
        plan->planted = 2;
}

/* ---- the server ------------------------------------------------------------------- */

static json_t *control(struct mail_sim *self, const char *method, const char *path, tide_text body)
{
    return tide_sim_cloud_control(self->cloud, self->sim, method, path, body);
}

json_t *mail_sim_stats(struct mail_sim *self, const json_t **user_out)
{
    json_t *stats = control(self, "GET", "/_cloud/stats?fetched=1", TIDE_TEXT_NONE);
    *user_out = json_object_get(json_object_get(stats, "users"), MAIL_SIM_USER);
    return stats;
}

static uint32_t some_slot(struct mail_sim *self, tide_rng *rng)
{
    const uint32_t slots = box_mailbox_slots(self->mailbox);
    for (int i = 0; i < 20 && slots > 0; i++) {
        const uint32_t slot = (uint32_t)tide_rng_below(rng, slots);
        if (!box_mailbox_at(self->mailbox, slot)->gone)
            return slot;
    }
    return BOX_SLOT_NONE;
}

static void arrives(struct mail_sim *self, tide_rng *rng, uint64_t now_unix_ms)
{
    const uint32_t slot = box_mailbox_slots(self->mailbox);
    char path[120];
    tide_buf raw;
    uint64_t date_ms = now_unix_ms;
    if (slot == MAIL_SIM_MESSAGES_MAX)
        return;
    if (tide_rng_chance(rng, 1, 4)) /* another client imports old mail */
        date_ms -= tide_rng_below(rng, UINT64_C(8) * YEAR_S * 1000);
    tide_buf_init(&raw, tide_mem_heap(), 1 << 20);
    TIDE_ASSERT(tide_buf_print(&raw, "From: x@example.org\r\nSubject: number %u\r\n\r\n", slot) ==
                TIDE_OK);
    for (uint64_t left = tide_rng_below(rng, tide_rng_chance(rng, 1, 10) ? 20000 : 200); left > 0;
         left--)
        TIDE_ASSERT(tide_buf_print(&raw, "%" PRIx64 "\r\n", tide_rng_next(rng)) == TIDE_OK);
    (void)snprintf(path, sizeof path, "/_cloud/mail?user=" MAIL_SIM_USER "&date=%" PRIu64, date_ms);
    self->facts[slot].arrived_ms = tide_world_now_unix_ms(self->world);
    json_decref(control(self, "POST", path, tide_buf_text(&raw)));
    mail_check_hash(self, slot);
    tide_buf_done(&raw);
}

/* Another client sorts, or deletes for good. */
static void changes(struct mail_sim *self, tide_rng *rng, bool deletes)
{
    static const char *const labels[] = {"STARRED", "UNREAD", "INBOX", "TRASH", "SPAM", "Label_1"};
    char body[400];
    int used = snprintf(body, sizeof body, "{\"user\":\"" MAIL_SIM_USER "\",\"ids\":[");
    const uint64_t count = 1 + tide_rng_below(rng, IDS_OF_ONE_CHANGE_MAX);
    const char *comma = "";
    for (uint64_t i = 0; i < count; i++) {
        const uint32_t slot = some_slot(self, rng);
        char id[BOX_ID_TEXT_BYTES];
        if (slot == BOX_SLOT_NONE)
            return;
        box_id_text(box_mailbox_at(self->mailbox, slot)->id, id);
        if (strstr(body, id) != NULL)
            continue;
        used += snprintf(body + used, sizeof body - (size_t)used, "%s\"%s\"", comma, id);
        comma = ",";
        tide_sim_note(self->sim, "%s %s", deletes ? "delete" : "label", id);
    }
    used += snprintf(body + used, sizeof body - (size_t)used, "]");
    if (!deletes)
        used +=
            snprintf(body + used, sizeof body - (size_t)used, ",\"%s\":[\"%s\"]",
                     tide_rng_chance(rng, 1, 2) ? "add" : "remove", labels[tide_rng_below(rng, 6)]);
    (void)snprintf(body + used, sizeof body - (size_t)used, "}");
    json_decref(control(self, "POST", deletes ? "/_cloud/mail/delete" : "/_cloud/mail/label",
                        tide_text_of(body)));
}

/* No history tells which labels changed between the last run that finished and the next one: the id
 * that the client has is dead, and each label must be listed (M19). */
static void expires(struct mail_sim *self)
{
    json_decref(control(self, "POST", "/_cloud/history/expire",
                        TIDE_TEXT("{\"user\":\"" MAIL_SIM_USER "\"}")));
    tide_sim_note(self->sim, "history expires");
    self->totals.expired++;
}

static void news(struct mail_sim *self, tide_rng *rng, uint64_t now_unix_ms)
{
    self->news_left--;
    self->totals.news++;
    const uint64_t what = tide_rng_below(rng, 20);
    if (what == 0)
        expires(self);
    else if (what < 4)
        changes(self, rng, true);
    else if (what < 10)
        changes(self, rng, false);
    else
        arrives(self, rng, now_unix_ms);
}

/* Tries of a message that always fails come when they are due, in a sync or not (MSIM7). */
static bool is_planted(struct mail_sim *self, const char *path)
{
    static const char lead[] = "/messages/";
    char id[BOX_ID_TEXT_BYTES];
    if (strncmp(path, lead, sizeof lead - 1) != 0)
        return false;
    (void)snprintf(id, sizeof id, "%.16s", path + sizeof lead - 1);
    return mail_check_planted(self, id);
}

static void provide(void *arg, const struct tide_request *request, uint64_t now_unix_ms,
                    tide_rng *rng, struct tide_sim_answer *answer)
{
    struct mail_sim *self = arg;
    if (self->faults && self->news_left > 0 && tide_rng_chance(rng, 1, self->plan.news_every_calls))
        news(self, rng, now_unix_ms);
    const char *path = strstr(request->url, "/me/");
    path = path == NULL ? request->url : path + 3;
    tide_sim_note(self->sim, "%s", path);
    self->calls += is_planted(self, path) ? 0 : 1;
    if (strncmp(path, "/history", 8) == 0 && ++self->histories > HISTORIES_OF_A_LIFE_MAX)
        tide_sim_fail(self->sim, "MSIM6: %" PRIu64 " calls for the history in one life",
                      self->histories);
    tide_sim_cloud_call(self->cloud, request, now_unix_ms, rng, answer);
    if (answer->http != 200)
        tide_sim_note(self->sim, "answers %d", answer->http);
}

/* Messages that always fail, each in its own way. */
static void plant_faults(struct mail_sim *self)
{
    static const char *const ways[] = {"500", "garbage", "html", "truncate"};
    char json[160];
    unsigned way = 0;
    for (uint32_t slot = 0; slot < self->plan.messages; slot++) {
        char id[BOX_ID_TEXT_BYTES];
        if (!self->facts[slot].planted)
            continue;
        box_id_text(box_mailbox_at(self->mailbox, slot)->id, id);
        (void)snprintf(json, sizeof json,
                       "{\"method\":\"gmail.users.messages.get\",\"id\":\"%s\",\"rate\":1,"
                       "\"fault\":\"%s\"}",
                       id, ways[way++ % 3]);
        tide_sim_cloud_fault(self->cloud, self->sim, json);
    }
}

static void server_faults(struct mail_sim *self)
{
    static const char *const faults[] = {"500",          "502",         "503",           "429",
                                         "429-time",     "403-rate",    "403-user-rate", "html",
                                         "reset-before", "reset-after", "stall-body",    "truncate",
                                         "garbage",      "latency",     "slow"};
    const size_t count = sizeof faults / sizeof faults[0];
    char json[160];
    for (size_t i = 0; self->plan.server_faults_permille > 0 && i < count; i++) {
        if (!tide_rng_chance(&self->rng, 1, 2))
            continue;
        const double rate = (double)self->plan.server_faults_permille / 1000 * 2 / (double)count;
        (void)snprintf(json, sizeof json,
                       "{\"method\":\"gmail.*\",\"rate\":%.5f,\"fault\":\"%s\"%s}", rate, faults[i],
                       strcmp(faults[i], "latency") == 0 ? ",\"ms\":3000"
                       : strcmp(faults[i], "slow") == 0  ? ",\"bytes_per_s\":20000"
                                                         : "");
        tide_sim_cloud_fault(self->cloud, self->sim, json);
    }
}

static void make_mailbox(struct mail_sim *self)
{
    self->mailbox =
        tide_sim_cloud_user(self->cloud, self->sim, MAIL_SIM_USER, TOKEN,
                            (struct box_mailbox_options){.messages = self->plan.messages,
                                                         .size_bytes = self->plan.size_bytes,
                                                         .seed = self->plan.seed});
    for (uint32_t i = 0; i < self->plan.planted; i++)
        self->facts[tide_rng_below(&self->rng, self->plan.messages)].planted = true;
    for (uint32_t i = 0; i < 6; i++) /* some of it is in spam and trash from the start */
        changes(self, &self->rng, false);
    plant_faults(self);
    server_faults(self);
}

/* ---- a Takeout --------------------------------------------------------------------------- */

/* What Google would give of a message: line ends of Unix, a date without milliseconds, labels by
 * their names; some of them were others on the day of the Takeout. */
static tide_status seed_one(struct mail_sim *self, tide_archive *archive, uint32_t slot,
                            tide_error *err)
{
    const struct box_message *message = box_mailbox_at(self->mailbox, slot);
    char id[BOX_ID_TEXT_BYTES];
    char thread[BOX_ID_TEXT_BYTES];
    tide_text labels[BOX_MESSAGE_LABELS_MAX];
    size_t count = 0;
    size_t kept = 0;
    tide_buf raw;
    tide_buf_init(&raw, tide_mem_heap(), 64 << 20);
    const tide_text bytes = box_mailbox_raw(self->mailbox, slot, &raw);
    tide_buf held;
    tide_buf_init(&held, tide_mem_heap(), 64 << 20);
    for (size_t i = 0; i < bytes.bytes; i++)
        if (bytes.data[i] != '\r')
            (void)tide_buf_add(&held, bytes.data + i, 1);
    const uint16_t *numbers = box_mailbox_labels(self->mailbox, message->label_set, &count);
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < count; i++) {
        const struct box_label *label = box_mailbox_label(self->mailbox, numbers[i]);
        const tide_text name = tide_text_of(label->system ? label->id : label->name);
        if (tide_rng_chance(&self->rng, 1, 8))
            continue;
        labels[kept++] = name;
        if (!label->system)
            rc = tide_archive_label_name(archive, name, name, TIDE_TEXT("user"), NULL, err);
    }
    if (tide_rng_chance(&self->rng, 1, 8))
        labels[kept++] = TIDE_TEXT("Deleted since");
    box_id_text(message->id, id);
    box_id_text(message->thread_id, thread);
    const struct tide_incoming incoming = {.gmail_id = tide_text_of(id),
                                           .thread_id = tide_text_of(thread),
                                           .internal_ms = (int64_t)(message->date_ms / 1000 * 1000),
                                           .labels = labels,
                                           .labels_count = kept,
                                           .held = true,
                                           .raw = tide_buf_text(&held)};
    if (rc == TIDE_OK)
        rc = tide_archive_put(archive, &incoming, NULL, NULL, err);
    self->totals.seeded += rc == TIDE_OK;
    tide_buf_done(&held);
    tide_buf_done(&raw);
    return rc;
}

/* The disk may fail meanwhile: what is there is there. */
static void seed_archive(struct mail_sim *self)
{
    tide_archive *archive = NULL;
    tide_error err = {TIDE_OK, 0, ""};
    const struct tide_archive_options options = {.dir = MAIL_SIM_ARCHIVE "/" MAIL_SIM_USER,
                                                 .account = MAIL_SIM_USER,
                                                 .world = self->world,
                                                 .index_later = true};
    tide_status rc = tide_archive_open(&options, tide_mem_heap(), &archive, &err);
    for (uint32_t slot = 0; rc == TIDE_OK && slot < self->plan.messages; slot++)
        if (!self->facts[slot].planted && !tide_rng_chance(&self->rng, 1, 5))
            rc = seed_one(self, archive, slot, &err);
    if (tide_archive_close(archive, &err) != TIDE_OK)
        tide_sim_crash(self->sim,
                       TIDE_SIM_CRASH_POWER); /* a failed sync, as in live_with_faults() */
    tide_sim_reboot(self->sim);
    /* Some of it the server no longer has when the first sync begins. */
    for (uint64_t i = tide_rng_below(&self->rng, 3); i > 0; i--)
        changes(self, &self->rng, true);
}

/* ---- a life --------------------------------------------------------------------------- */

/* As `tidemark mail sync` does: the account is known, its run is asked for, the
 * engine starts. */
static tide_status open_life(struct mail_sim *self, bool force, tide_error *err)
{
    const struct tide_sim_mail_options options = {.world = self->world,
                                                  .state_dir = MAIL_SIM_STATE,
                                                  .archive_dir = MAIL_SIM_ARCHIVE,
                                                  .email = MAIL_SIM_USER,
                                                  .token = TOKEN,
                                                  .setting = "purge.after=300d",
                                                  .workers = self->plan.workers,
                                                  .log = tide_sim_log()};
    tide_status rc = tide_sim_mail_open(&self->life, &options, err);
    const struct tide_mail_run run = {.email = MAIL_SIM_USER,
                                      .order = self->plan.newest_first ? TIDE_MAIL_NEWEST
                                                                       : TIDE_MAIL_OLDEST,
                                      .force = force};
    self->histories = 0;
    if (rc == TIDE_OK)
        rc = tide_mail_run(self->life.mail, &run, err);
    return rc == TIDE_OK ? tide_engine_start(self->life.engine, err) : rc;
}

static void close_life(struct mail_sim *self)
{
    tide_sim_mail_close(&self->life, self->sim);
}

static bool may_fail(struct mail_sim *self)
{
    const struct tide_sim_disk_options *disk = &self->plan.sim.disk;
    return tide_world_dead(self->world) ||
           disk->sync_error_per_million + disk->full_per_million + disk->write_error_per_million >
               0;
}

static void live(struct mail_sim *self, uint64_t alive_ms, bool force)
{
    tide_error err = {TIDE_OK, 0, ""};
    tide_status rc = open_life(self, force, &err);
    if (rc != TIDE_OK && !may_fail(self))
        tide_sim_fail(self->sim, "the mail system did not open: %s %s", tide_status_name(rc),
                      err.text);
    if (rc == TIDE_OK)
        rc = tide_engine_wait(self->life.engine, alive_ms, &err);
    if (rc != TIDE_OK && rc != TIDE_TIMEOUT && !may_fail(self))
        tide_sim_fail(self->sim, "the engine stopped by itself: %s %s", tide_status_name(rc),
                      err.text);
    close_life(self);
}

static bool remove_year(struct mail_sim *self, int year)
{
    static const char *const ends[] = {"", "-wal", "-shm"};
    bool removed = false;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        char path[120];
        (void)snprintf(path, sizeof path, MAIL_SIM_ARCHIVE "/" MAIL_SIM_USER "/%d.db%s", year,
                       ends[i]);
        removed = tide_sim_disk_remove(self->sim, path) || removed;
    }
    return removed;
}

/* Deletes a file of the archive, with its log.  No job stored mail in a shard that the ledger does not
 * know, or before the first plan, which lists everything: its loss need not be noticed. */
static void lose_shard(struct mail_sim *self)
{
    const int newest = 2026;
    for (int year = newest - (int)tide_rng_below(&self->rng, 12); year <= newest; year++) {
        const bool known = mail_check_shard_known(self, year);
        if (!remove_year(self, year))
            continue;
        self->shard_missing = known;
        self->shard_lost_ms = tide_world_now_unix_ms(self->world);
        self->totals.shards_lost++;
        for (size_t i = 0; i < MAIL_SIM_MESSAGES_MAX; i++)
            self->facts[i].durable = false;
        return;
    }
}

static void live_with_faults(struct mail_sim *self, uint32_t number)
{
    tide_rng *rng = &self->rng;
    const uint64_t alive_ms = (UINT64_C(1) << tide_rng_below(rng, 10)) * 1000;
    const uint64_t failed_before = tide_sim_disk_stats(self->sim).syncs_failed;
    if (tide_rng_chance(rng, 4, 5))
        tide_sim_crash_after(self->sim, 1 + tide_rng_below(rng, self->plan.crash_steps_max),
                             TIDE_SIM_CRASH_SEEDED);
    live(self, alive_ms, tide_rng_chance(rng, 1, 15));
    /* What a failed sync covered is lost for good, though it can still be read: the
     * machine goes down with it (E1.10). */
    if (tide_sim_disk_stats(self->sim).syncs_failed > failed_before)
        tide_sim_crash(self->sim, TIDE_SIM_CRASH_POWER);
    tide_sim_crash_after(self->sim, 0, TIDE_SIM_CRASH_SEEDED);
    tide_sim_reboot(self->sim);
    self->totals.lives++;
    if (self->plan.shard_lost && self->totals.shards_lost == 0 && number >= 1)
        lose_shard(self);
    /* The mailbox changes also between two runs. */
    for (uint64_t i = tide_rng_below(rng, 4); i > 0 && self->news_left > 0; i--)
        news(self, rng, tide_sim_net_unix_ms(self->sim));
    mail_check_at_rest(self);
}

/* ---- the last life --------------------------------------------------------------------- */

static uint64_t number_of(struct mail_sim *self, const char *sql)
{
    uint64_t number = 0;
    tide_error err = {TIDE_OK, 0, ""};
    if (tide_sim_ledger_sql(self->sim, self->life.engine, sql, &number, &err) != TIDE_OK)
        tide_sim_fail(self->sim, "%s: %s", sql, err.text);
    return number;
}

/* Jobs that still have something to do, besides items that stay bad, and records of
 * items that are being tried again. */
static const char unfinished[] =
    "SELECT (SELECT count(*) FROM job j JOIN kind k ON k.id = j.kind WHERE j.state <> 2"
    " AND k.name <> 'mail.fetch')"
    " + (SELECT count(*) FROM job j JOIN kind k ON k.id = j.kind WHERE j.state <> 2"
    " AND k.name = 'mail.fetch' AND NOT (j.cycle IS NULL AND j.state < 2"
    " AND json_extract(j.payload, '$.items[0]') IN (SELECT item FROM bad WHERE state = 2)))"
    " + (SELECT count(*) FROM bad WHERE state = 4)"
    " + (SELECT count(*) FROM stream WHERE ordinal < ordinal_next)";

static tide_status show_left(tide_transaction *transaction, void *arg, tide_error *err)
{
    sqlite3_stmt *stmt = NULL;
    (void)arg;
    (void)err;
    (void)sqlite3_prepare_v2(
        tide_transaction_sqlite(transaction),
        "SELECT j.id, k.name, j.state, j.open_deps, j.attempts, j.cycle, j.not_before, d.error,"
        " substr(j.payload, 1, 90) FROM job j JOIN kind k ON k.id = j.kind"
        " LEFT JOIN detail d ON d.job = j.id WHERE j.state <> 2"
        " UNION ALL SELECT 0, item, state, 0, retries, cycle, 0, reason, '' FROM bad LIMIT 20",
        -1, &stmt, NULL);
    while (sqlite3_step(stmt) == SQLITE_ROW) {
        (void)fprintf(stderr, "  left:");
        tide_sim_ledger_row(stmt);
    }
    (void)sqlite3_finalize(stmt);
    return TIDE_OK;
}

/* Good messages that are still named in the registry: what is owed comes back by
 * itself, with growing pauses. */
static uint64_t wrongly_named(struct mail_sim *self)
{
    uint64_t count = number_of(self, "SELECT count(*) FROM bad WHERE state IN (0, 2)");
    for (uint32_t slot = 0; slot < self->plan.messages; slot++) {
        char sql[120];
        char id[BOX_ID_TEXT_BYTES];
        if (!self->facts[slot].planted)
            continue;
        box_id_text(box_mailbox_at(self->mailbox, slot)->id, id);
        (void)snprintf(sql, sizeof sql,
                       "SELECT count(*) FROM bad WHERE state IN (0, 2) AND item = '%s'", id);
        count -= number_of(self, sql);
    }
    return count;
}

static const char failed_forced[] =
    "SELECT count(*) FROM job j JOIN kind k ON k.id = j.kind WHERE j.state = 3"
    " AND k.name = 'mail.plan' AND json_extract(j.payload, '$.force')";

/* What a person does when something is left: the command again, as it was given. */
static void ask_again(struct mail_sim *self)
{
    tide_error err = {TIDE_OK, 0, ""};
    const struct tide_mail_run run = {.email = MAIL_SIM_USER,
                                      .force = number_of(self, failed_forced) > 0};
    if (tide_mail_run(self->life.mail, &run, &err) != TIDE_OK)
        tide_sim_fail(self->sim, "a run in a calm world: %s", err.text);
}

/* MSIM6: lets time pass until nothing is left to do.  No command resumes the account or retries a
 * job: a wrong halt or a wrong failure would be hidden. */
static void settle(struct mail_sim *self)
{
    tide_error err = {TIDE_OK, 0, ""};
    for (int round = 0;; round++) {
        const tide_status rc = tide_engine_wait(self->life.engine, MINUTE_MS, &err);
        if (rc != TIDE_OK && rc != TIDE_TIMEOUT)
            tide_sim_fail(self->sim, "the engine stopped in a calm world: %s", err.text);
        const uint64_t left = number_of(self, unfinished) + wrongly_named(self);
        if (left == 0)
            return;
        if (round == ROUNDS_MAX) {
            (void)tide_transact(self->life.engine, show_left, NULL, NULL);
            tide_sim_fail(self->sim,
                          "MSIM6: %" PRIu64 " jobs, cycles and items do not come to rest", left);
        }
        ask_again(self);
        self->totals.asked_again++;
        (void)tide_world_sleep_until(
            self->world, tide_world_now_us(self->world) + UINT64_C(5) * MINUTE_MS * 1000, NULL);
    }
}

static uint64_t run_again(struct mail_sim *self)
{
    const uint64_t before = self->calls;
    ask_again(self);
    settle(self);
    return self->calls - before;
}

static void calm_down(struct mail_sim *self)
{
    self->faults = false;
    tide_sim_faults(self->sim, false);
    json_decref(control(self, "DELETE", "/_cloud/faults", TIDE_TEXT_NONE));
    plant_faults(self);
}

/* A first sync in peace: what follows happens to an archive that is whole, and its
 * lives are histories, not listings. */
static void live_in_peace(struct mail_sim *self)
{
    tide_error err = {TIDE_OK, 0, ""};
    calm_down(self);
    if (open_life(self, false, &err) != TIDE_OK)
        tide_sim_fail(self->sim, "the mail system did not open in a calm world: %s", err.text);
    settle(self);
    close_life(self);
    tide_sim_reboot(self->sim);
    self->totals.lives++;
    mail_check_at_rest(self);
    self->faults = true;
    tide_sim_faults(self->sim, true);
    server_faults(self);
}

static void live_to_the_end(struct mail_sim *self)
{
    tide_error err = {TIDE_OK, 0, ""};
    calm_down(self);
    if (open_life(self, false, &err) != TIDE_OK)
        tide_sim_fail(self->sim, "the mail system did not open in a calm world: %s", err.text);
    settle(self);
    /* What changed since the last history run was asked for. */
    (void)run_again(self);
    const uint64_t calls = run_again(self);
    if (calls > 3)
        tide_sim_fail(self->sim, "MSIM7: a sync without news made %" PRIu64 " calls", calls);
    close_life(self);
    tide_sim_reboot(self->sim);
    self->totals.lives++;
    mail_check_at_rest(self);
    mail_check_end(self);
}

struct mail_totals mail_sim_run(const struct mail_plan *plan)
{
    struct mail_sim *self = calloc(1, sizeof *self);
    TIDE_ASSERT(self != NULL);
    mail_plant_set(plan->plant);
    self->plan = *plan;
    self->plan.sim.net.provide = provide;
    self->plan.sim.net.provide_arg = self;
    self->cloud = tide_sim_cloud_new(
        &(struct box_options){.seed = plan->seed,
                              .quota = BOX_QUOTA_2026,
                              .list_inversions_permille = plan->inversions_permille});
    self->sim = tide_sim_new(plan->seed, &self->plan.sim);
    self->world = tide_sim_world(self->sim);
    self->rng = tide_sim_rng(self->sim);
    self->news_left = plan->news_max;
    self->faults = true;
    make_mailbox(self);
    const uint64_t start_us = tide_world_now_us(self->world);
    if (plan->seeded)
        seed_archive(self);
    if (plan->settled_first)
        live_in_peace(self);
    for (uint32_t i = 0; i < plan->lives; i++)
        live_with_faults(self, i);
    live_to_the_end(self);
    struct mail_totals totals = self->totals;
    totals.simulated_us = tide_world_now_us(self->world) - start_us;
    totals.steps = tide_sim_stats(self->sim).steps;
    totals.crashes = tide_sim_stats(self->sim).crashes;
    totals.calls = tide_sim_net_stats(self->sim).calls;
    totals.messages = box_mailbox_slots(self->mailbox);
    totals.trace_hash = tide_sim_trace_hash(self->sim);
    tide_sim_free(self->sim);
    tide_sim_cloud_free(self->cloud);
    free(self);
    return totals;
}
