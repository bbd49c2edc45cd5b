/* mail_check.c - what must be true of the mirror while no engine runs, and in the end. */
#include "mail_sim.h"

#include "ledger/ledger.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

struct at_rest {
    struct mail_sim *self;
    struct sqlite3 *state;
    tide_archive *archive; /* NULL: there is none yet */
    sqlite3_stmt *bad;     /* id to state */
    uint64_t epoch;
    uint64_t tidemark_ms;
    bool all_finished; /* every cycle: the tidemark is the time of the last run */
    tide_buf raw;
};

void mail_check_hash(struct mail_sim *self, uint32_t slot)
{
    struct mail_fact *fact = &self->facts[slot];
    if (!fact->hashed)
        fact->hash = tide_sim_mail_slot_hash(self->mailbox, slot);
    fact->hashed = true;
}

/* ---- opening what a crash left ----------------------------------------------------- */

static void nothing(const char *name, void *arg)
{
    (void)name;
    (void)arg;
}

static void open_archive(struct at_rest *rest)
{
    struct mail_sim *self = rest->self;
    tide_error err = {TIDE_OK, 0, ""};
    const struct tide_archive_options options = {.dir = MAIL_SIM_ARCHIVE "/" MAIL_SIM_USER,
                                                 .account = MAIL_SIM_USER,
                                                 .world = self->world,
                                                 .read_only = true};
    if (tide_dir_list(self->world, options.dir, nothing, NULL, NULL) != TIDE_OK)
        return;
    if (tide_archive_open(&options, tide_mem_heap(), &rest->archive, &err) != TIDE_OK)
        tide_sim_fail(self->sim, "the archive does not open after a crash: %s", err.text);
}

/* false: there is no ledger yet. */
static bool rest_open(struct at_rest *rest, struct mail_sim *self)
{
    *rest = (struct at_rest){.self = self};
    tide_buf_init(&rest->raw, tide_mem_heap(), 64 << 20);
    open_archive(rest);
    rest->state = tide_sim_ledger_file(self->sim, MAIL_SIM_STATE "/state.db");
    if (rest->state == NULL)
        return false;
    rest->bad = tide_sim_ledger_prepare(rest->state, "SELECT state FROM bad WHERE item = ?1");
    sqlite3_stmt *stmt = tide_sim_ledger_prepare(
        rest->state, "SELECT m.epoch, s.cursor, s.ordinal = s.ordinal_next FROM mail_account m"
                     " JOIN stream s ON s.account = m.account AND s.name = 'mail.' || m.epoch");
    if (stmt != NULL && sqlite3_step(stmt) == SQLITE_ROW) {
        rest->epoch = (uint64_t)sqlite3_column_int64(stmt, 0);
        rest->tidemark_ms = (uint64_t)sqlite3_column_int64(stmt, 1);
        rest->all_finished = sqlite3_column_int(stmt, 2) == 1;
    }
    (void)sqlite3_finalize(stmt);
    return rest->bad != NULL;
}

static void rest_done(struct at_rest *rest)
{
    (void)sqlite3_finalize(rest->bad);
    (void)sqlite3_close(rest->state);
    (void)tide_archive_close(rest->archive, NULL);
    tide_buf_done(&rest->raw);
}

bool mail_check_shard_known(struct mail_sim *self, int year)
{
    struct at_rest rest;
    char name[16];
    bool known = false;
    tide_sim_faults(self->sim, false);
    (void)rest_open(&rest, self);
    (void)snprintf(name, sizeof name, "%d", year);
    sqlite3_stmt *stmt = tide_sim_ledger_prepare(
        rest.state, "SELECT 1 FROM mail_shard WHERE name = ?1"
                    " AND EXISTS (SELECT 1 FROM stream WHERE ordinal_next > 0)");
    if (stmt != NULL) {
        (void)sqlite3_bind_text(stmt, 1, name, -1, SQLITE_STATIC);
        known = sqlite3_step(stmt) == SQLITE_ROW;
    }
    (void)sqlite3_finalize(stmt);
    rest_done(&rest);
    tide_sim_faults(self->sim, self->faults);
    return known;
}

/* The state of its record, or -1. */
static int bad_state(struct at_rest *rest, const char *id)
{
    int state = -1;
    if (rest->bad == NULL)
        return state;
    (void)sqlite3_bind_text(rest->bad, 1, id, -1, SQLITE_STATIC);
    if (sqlite3_step(rest->bad) == SQLITE_ROW)
        state = sqlite3_column_int(rest->bad, 0);
    (void)sqlite3_reset(rest->bad);
    return state;
}

/* ---- one message ---------------------------------------------------------------------- */

/* Whether the archive has it; what it has must be the server's bytes. */
static bool is_stored(struct at_rest *rest, uint32_t slot, const char *id,
                      struct tide_stored *stored_out)
{
    struct mail_sim *self = rest->self;
    struct mail_fact *fact = &self->facts[slot];
    tide_error err = {TIDE_OK, 0, ""};
    if (rest->archive == NULL)
        return false;
    tide_status rc = tide_archive_find(rest->archive, tide_text_of(id), stored_out, &err);
    if (rc == TIDE_NOT_FOUND)
        return false;
    mail_check_hash(self, slot);
    tide_buf_clear(&rest->raw);
    if (rc == TIDE_OK)
        rc = tide_archive_raw(rest->archive, stored_out, &rest->raw, &err);
    if (rc != TIDE_OK)
        tide_sim_fail(self->sim, "MSIM2: message %s cannot be read: %s", id, err.text);
    /* Held bytes are a Takeout's; the check of their hash above is all they promise. */
    if (stored_out->copy != TIDE_COPY_HELD &&
        tide_sim_mail_hash(tide_buf_text(&rest->raw)) != fact->hash)
        tide_sim_fail(self->sim, "MSIM2: message %s is stored with other bytes than the server's",
                      id);
    return true;
}

bool mail_check_planted(struct mail_sim *self, const char *id)
{
    for (uint32_t slot = 0; slot < self->plan.messages; slot++) {
        char text[BOX_ID_TEXT_BYTES];
        box_id_text(box_mailbox_at(self->mailbox, slot)->id, text);
        if (self->facts[slot].planted && strcmp(text, id) == 0)
            return true;
    }
    return false;
}

/* MSIM1 and the second half of MSIM2, for every message there ever was. */
static void check_messages(struct at_rest *rest)
{
    struct mail_sim *self = rest->self;
    const uint32_t slots = box_mailbox_slots(self->mailbox);
    for (uint32_t slot = 0; slot < slots; slot++) {
        const struct box_message *message = box_mailbox_at(self->mailbox, slot);
        struct mail_fact *fact = &self->facts[slot];
        struct tide_stored stored;
        char id[BOX_ID_TEXT_BYTES];
        box_id_text(message->id, id);
        const bool there = is_stored(rest, slot, id, &stored);
        if (fact->durable && !there)
            tide_sim_fail(self->sim, "MSIM2: message %s was durable and is no longer there", id);
        fact->durable = there;
        if (self->shard_missing || message->gone || message->date_ms >= rest->tidemark_ms ||
            fact->arrived_ms >= rest->tidemark_ms)
            continue;
        self->totals.marks_checked++;
        if (!there && bad_state(rest, id) < 0)
            tide_sim_fail(self->sim,
                          "MSIM1: the tidemark %" PRIu64 " passed message %s of %" PRIu64
                          ", which is neither stored nor named",
                          rest->tidemark_ms, id, message->date_ms);
    }
}

/* ---- the ledger ------------------------------------------------------------------------ */

/* MSIM2: ids of fetches that are done, unless recorded, or handed on to a part. */
static void check_done(struct at_rest *rest)
{
    struct mail_sim *self = rest->self;
    sqlite3_stmt *stmt = tide_sim_ledger_prepare(
        rest->state,
        "SELECT DISTINCT e.value FROM job j JOIN kind k ON k.id = j.kind, json_each(j.payload,"
        " '$.items') e WHERE k.name = 'mail.fetch' AND j.state = 2 AND j.finished >= ?1 AND "
        "e.value NOT IN"
        " (SELECT item FROM bad) AND e.value NOT IN (SELECT e2.value FROM job j2 JOIN kind k2 ON"
        " k2.id = j2.kind, json_each(j2.payload, '$.items') e2 WHERE k2.name = 'mail.fetch' AND"
        " j2.state <> 2)");
    if (stmt != NULL)
        (void)sqlite3_bind_int64(stmt, 1, (sqlite3_int64)self->shard_lost_ms);
    while (stmt != NULL && sqlite3_step(stmt) == SQLITE_ROW) {
        const char *id = (const char *)sqlite3_column_text(stmt, 0);
        const uint32_t slot = box_mailbox_find(self->mailbox, tide_text_of(id));
        if (slot == BOX_SLOT_NONE)
            continue; /* it is gone from the server */
        if (!self->facts[slot].durable)
            tide_sim_fail(self->sim, "MSIM2: message %s of a job that is done is not durable", id);
    }
    (void)sqlite3_finalize(stmt);
}

/* MSIM8, and that the tidemark does not go back. */
static void check_mark(struct at_rest *rest)
{
    struct mail_sim *self = rest->self;
    if (rest->epoch == self->epoch_seen && rest->tidemark_ms < self->tidemark_seen)
        tide_sim_fail(self->sim, "MSIM1: the tidemark went back from %" PRIu64 " to %" PRIu64,
                      self->tidemark_seen, rest->tidemark_ms);
    if (rest->epoch > self->epoch_seen && !self->shard_missing)
        tide_sim_fail(self->sim, "MSIM8: the tidemark started again, though no shard was lost");
    if (rest->epoch > self->epoch_seen)
        self->shard_missing = false;
    self->epoch_seen = rest->epoch;
    self->tidemark_seen = rest->tidemark_ms;
}

/* Whether the file became a ledger before the first crash. */
static bool is_ledger(struct at_rest *rest)
{
    sqlite3_stmt *stmt = tide_sim_ledger_prepare(rest->state, "SELECT count(*) FROM alert");
    const bool ledger = stmt != NULL;
    (void)sqlite3_finalize(stmt);
    return ledger;
}

/* ---- the referee ------------------------------------------------------------------------- */

static uint64_t count_of(const json_t *object, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(object, key));
}

/* Messages that were asked for again, but for those that always fail. */
static uint64_t fetched_again(struct mail_sim *self, const json_t *ids)
{
    uint64_t again = 0;
    const char *id = NULL;
    const json_t *count = NULL;
    json_object_foreach((json_t *)(uintptr_t)ids, id, count) if (!mail_check_planted(self, id))
        again += (uint64_t)json_integer_value(count) - 1;
    return again;
}

/* MSIM5: a stop cuts off what is in flight as a kill does, and so does a machine that
 * sleeps: the calls have timed out when it wakes. */
static void check_again(struct mail_sim *self, uint64_t again)
{
    self->totals.fetched_again = again;
    if (!self->plan.quiet || self->totals.shards_lost > 0)
        return;
    if (again - self->again_seen > self->totals.again_per_crash_max)
        self->totals.again_per_crash_max = again - self->again_seen;
    self->again_seen = again;
    self->totals.quiet = 1;
    const uint64_t crashes = tide_sim_stats(self->sim).crashes;
    const uint64_t stops =
        self->totals.lives - crashes + tide_sim_stats(self->sim).pauses; /* calls time out */
    if (again >
        crashes * (MAIL_SIM_IN_FLIGHT + TIDE_ARCHIVE_GROUP_MESSAGES) + stops * MAIL_SIM_IN_FLIGHT)
        tide_sim_fail(self->sim,
                      "MSIM5: %" PRIu64 " messages were fetched again after %" PRIu64
                      " crashes and %" PRIu64 " stops and sleeps",
                      again, crashes, stops);
}

/* How often a rule was broken, by its name. */
static uint64_t violations_of(const json_t *stats, const char *name)
{
    size_t index = 0;
    const json_t *kind = NULL;
    json_array_foreach(json_object_get(stats, "violations"), index, kind)
    {
        const char *text = json_string_value(json_object_get(kind, "kind"));
        if (text != NULL && strcmp(text, name) == 0)
            return count_of(kind, "count");
    }
    return 0;
}

/* MSIM4 and MSIM5, by the server's own record.  A call that was in flight
 * when the server named a time is refused too, so refusals are not counted. */
static void check_referee(struct mail_sim *self)
{
    const json_t *user = NULL;
    json_t *stats = mail_sim_stats(self, &user);
    const uint64_t early = violations_of(stats, "early-retry");
    const uint64_t highest = count_of(user, "offered_units_highest_in_60s");
    const uint64_t again =
        fetched_again(self, json_object_get(json_object_get(user, "fetched"), "ids"));
    json_decref(stats);
    if (self->plan.strict_quota && highest > MAIL_SIM_UNITS)
        tide_sim_fail(self->sim, "MSIM4: %" PRIu64 " units in a minute", highest);
    if (self->plan.strict_quota && early > 0)
        tide_sim_fail(self->sim,
                      "MSIM4: asked %" PRIu64 " times before the time that the server named",
                      early);
    if (self->plan.strict_quota && highest > self->totals.highest_units)
        self->totals.highest_units = highest;
    check_again(self, again);
}

void mail_check_at_rest(struct mail_sim *self)
{
    struct at_rest rest;
    tide_sim_faults(self->sim, false);
    tide_sim_net_settle(self->sim);
    const bool ledger = rest_open(&rest, self) && is_ledger(&rest);
    if (ledger)
        check_mark(&rest);
    check_messages(&rest);
    if (ledger && !self->shard_missing)
        check_done(&rest);
    rest_done(&rest);
    if (ledger)
        tide_sim_ledger_check(self->sim, "MSIM9");
    check_referee(self);
    tide_sim_faults(self->sim, self->faults);
}

/* ---- the end: MSIM3 --------------------------------------------------------------------------- */

static void check_labels(struct at_rest *rest, uint32_t slot, const struct tide_stored *stored)
{
    tide_error err = {TIDE_OK, 0, ""};
    tide_buf wanted;
    tide_buf got;
    tide_buf_init(&wanted, tide_mem_heap(), 64 << 10);
    tide_buf_init(&got, tide_mem_heap(), 64 << 10);
    tide_sim_mail_labels(rest->self->mailbox, slot, &wanted);
    if (tide_sim_mail_stored_labels(rest->archive, stored, &got, &err) != TIDE_OK)
        tide_sim_fail(rest->self->sim, "MSIM3: labels of %s: %s", stored->gmail_id, err.text);
    if (!tide_text_equal(tide_buf_text(&wanted), tide_buf_text(&got)))
        tide_sim_fail(rest->self->sim, "MSIM3: message %s has labels %s, at the server %s",
                      stored->gmail_id, tide_buf_cstr(&got), tide_buf_cstr(&wanted));
    tide_buf_done(&wanted);
    tide_buf_done(&got);
}

static void check_message(struct at_rest *rest, uint32_t slot)
{
    tide_sim *sim = rest->self->sim;
    const struct box_message *message = box_mailbox_at(rest->self->mailbox, slot);
    const struct mail_fact *fact = &rest->self->facts[slot];
    struct tide_stored stored;
    char id[BOX_ID_TEXT_BYTES];
    box_id_text(message->id, id);
    const bool there = is_stored(rest, slot, id, &stored);
    const int state = bad_state(rest, id);
    if (message->gone) {
        if (there && !stored.gone)
            tide_sim_fail(sim, "MSIM3: message %s is gone from the server, and not marked so", id);
        return;
    }
    if (there && stored.gone)
        tide_sim_fail(sim, "MSIM3: message %s is on the server, and marked as gone", id);
    if (fact->planted) {
        if (there || (state != TIDE_BAD_BAD && state != TIDE_BAD_OWED))
            tide_sim_fail(sim, "MSIM3: planted message %s is stored=%d, recorded as %d", id, there,
                          state);
        return;
    }
    if (!there)
        tide_sim_fail(sim, "MSIM3: message %s is missing (recorded as %d)", id, state);
    if (state >= 0)
        tide_sim_fail(sim, "MSIM3: message %s is stored, and still recorded as %d", id, state);
    if (stored.internal_ms != (int64_t)message->date_ms)
        tide_sim_fail(sim, "MSIM3: message %s has another date", id);
    if (stored.copy != TIDE_COPY_EXACT)
        tide_sim_fail(sim, "MSIM3: message %s is %s, not exact", id, tide_copy_name(stored.copy));
    check_labels(rest, slot, &stored);
}

static void fail_on_damage(const struct tide_damage *damage, void *arg)
{
    const struct mail_sim *self = arg;
    tide_sim_fail(self->sim, "MSIM3: shard %s, message %s: %s", damage->shard, damage->gmail_id,
                  damage->what);
}

static bool count_one(const struct tide_stored *stored, void *arg)
{
    struct at_rest *rest = arg;
    const struct mail_sim *self = rest->self;
    if (box_mailbox_find(self->mailbox, tide_text_of(stored->gmail_id)) == BOX_SLOT_NONE &&
        !stored->gone)
        tide_sim_fail(self->sim, "MSIM3: message %s is nowhere on the server", stored->gmail_id);
    return true;
}

void mail_check_end(struct mail_sim *self)
{
    struct at_rest rest;
    uint64_t checked = 0;
    tide_error err = {TIDE_OK, 0, ""};
    if (!rest_open(&rest, self))
        tide_sim_fail(self->sim, "MSIM3: there is no ledger in the end");
    if (self->shard_missing)
        tide_sim_fail(self->sim, "MSIM8: a shard was lost unnoticed");
    if (rest.archive == NULL)
        tide_sim_fail(self->sim, "MSIM3: there is no archive in the end");
    for (uint32_t slot = 0; slot < box_mailbox_slots(self->mailbox); slot++)
        check_message(&rest, slot);
    if (tide_archive_walk(rest.archive, INT64_MIN, INT64_MAX, count_one, &rest, &err) != TIDE_OK ||
        tide_archive_verify(rest.archive, 0, fail_on_damage, self, &checked, &err) != TIDE_OK)
        tide_sim_fail(self->sim, "MSIM3: %s", err.text);
    rest_done(&rest);
}
