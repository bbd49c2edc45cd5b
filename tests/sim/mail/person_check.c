/* person_check.c - what must be true after a command, seen past the program: the mailboxes
 * of the cloud, the files of the archive, the rows of the ledger. */
#include "person.h"

#include "cli/cli.h"
#include "ledger/ledger.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void person_check_hash(struct person_account *account, uint32_t slot)
{
    struct person_fact *fact = &account->facts[slot];
    if (!fact->hashed)
        fact->hash = tide_sim_mail_slot_hash(account->mailbox, slot);
    fact->hashed = true;
}

void person_broken(struct person *self, const char *format, ...)
{
    char text[400];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const unsigned long rule = strtoul(text + 1, NULL, 10); /* "PER4: ..." */
    if ((self->plan.rules >> rule & 1) != 0)
        tide_sim_fail(self->sim, "%s", text);
}

/* ---- looking ---- */

struct look {
    struct person *self;
    struct person_account *account;
    tide_archive *archive; /* NULL: none, or it cannot be read */
    struct sqlite3 *state;
    sqlite3_stmt *bad;
    tide_buf raw;
};

static void look_open(struct look *look, struct person *self, struct person_account *account)
{
    char dir[120];
    *look = (struct look){.self = self, .account = account};
    tide_sim_faults(self->sim, false);
    tide_buf_init(&look->raw, tide_mem_heap(), 64 << 20);
    (void)snprintf(dir, sizeof dir, PERSON_HOME "/archive/%s", account->email);
    const struct tide_archive_options options = {
        .dir = dir, .account = account->email, .world = self->world, .read_only = true};
    if (tide_archive_open(&options, tide_mem_heap(), &look->archive, NULL) != TIDE_OK)
        look->archive = NULL;
    if (sqlite3_open_v2(PERSON_HOME "/state.db", &look->state, SQLITE_OPEN_READWRITE,
                        tide_world_vfs(self->world)) != SQLITE_OK ||
        sqlite3_prepare_v2(look->state,
                           "SELECT b.state FROM bad b JOIN account a ON a.id = b.account"
                           " WHERE a.name = ?1 AND b.item = ?2",
                           -1, &look->bad, NULL) != SQLITE_OK)
        tide_sim_fail(self->sim, "the ledger cannot be read: %s", sqlite3_errmsg(look->state));
}

static void look_done(struct look *look)
{
    (void)sqlite3_finalize(look->bad);
    (void)sqlite3_close(look->state);
    (void)tide_archive_close(look->archive, NULL);
    tide_buf_done(&look->raw);
    tide_sim_faults(look->self->sim, true);
}

/* The state of its record, or -1. */
static int bad_state(struct look *look, const char *id)
{
    int state = -1;
    (void)sqlite3_bind_text(look->bad, 1, look->account->email, -1, SQLITE_STATIC);
    (void)sqlite3_bind_text(look->bad, 2, id, -1, SQLITE_STATIC);
    if (sqlite3_step(look->bad) == SQLITE_ROW)
        state = sqlite3_column_int(look->bad, 0);
    (void)sqlite3_reset(look->bad);
    return state;
}

struct found {
    char id[BOX_ID_TEXT_BYTES];
    bool there; /* a row */
    bool exact; /* with the server's bytes */
    bool gone;  /* marked so */
    int state;  /* in the registry; -1: none */
    struct tide_stored stored;
};

static struct found find(struct look *look, uint32_t slot)
{
    struct found found = {.there = false};
    box_id_text(box_mailbox_at(look->account->mailbox, slot)->id, found.id);
    found.state = bad_state(look, found.id);
    if (look->archive == NULL ||
        tide_archive_find(look->archive, tide_text_of(found.id), &found.stored, NULL) != TIDE_OK)
        return found;
    found.there = true;
    found.gone = found.stored.gone;
    tide_buf_clear(&look->raw);
    found.exact = tide_archive_raw(look->archive, &found.stored, &look->raw, NULL) == TIDE_OK &&
                  tide_sim_mail_hash(tide_buf_text(&look->raw)) == look->account->facts[slot].hash;
    return found;
}

static bool has(const struct person_account *account, enum person_trouble trouble)
{
    return (account->troubles >> trouble & 1) != 0;
}

/* ---- what status says ---- */

static bool ends_with(const char *text, const char *end)
{
    const size_t bytes = strlen(text);
    return bytes >= strlen(end) && strcmp(text + bytes - strlen(end), end) == 0;
}

/* Numbers of `mail status` that name no message which is missing. */
static bool is_neutral(const char *field)
{
    static const char *const fields[] = {"messages_total", "stored",      "gone",
                                         "not_indexed",    "unreadable",  "partly_indexed",
                                         "shards",         "cycles_open", "jobs_left",
                                         "jobs_running",   "failed_jobs", "messages_left"};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (strcmp(fields[i], field) == 0)
            return true;
    return ends_with(field, "_ms") || ends_with(field, "_bytes") || ends_with(field, "_units");
}

struct says {
    int code;
    uint64_t named;    /* messages that it counts as bad, missing, unproven ... */
    uint64_t doubtful; /* of them, copies that are not what the server said */
    uint64_t unlisted; /* of them, those that the server counts and did not list */
    bool warns;        /* with a notice or an alert */
    bool done;         /* "last_run" is done or bad_items, and there are no gaps */
};

/* Copies that are not what the server said, by their kind (M19a). */
static uint64_t doubtful(const json_t *copies)
{
    const char *kind = NULL;
    json_t *value = NULL;
    uint64_t count = 0;
    json_object_foreach((json_t *)(uintptr_t)copies, kind, value)
    {
        if (strcmp(kind, "exact") != 0 && strcmp(kind, "only_here") != 0)
            count += (uint64_t)json_integer_value(value);
    }
    return count;
}

static struct says ask_status(struct person *self, const struct person_account *account)
{
    const char *const words[] = {"mail", "status", account->email, NULL};
    struct person_said said = person_command(self, words);
    struct says says = {.code = said.code};
    const json_t *one = json_array_get(json_object_get(said.json, "accounts"), 0);
    const char *field = NULL;
    json_t *value = NULL;
    json_object_foreach((json_t *)(uintptr_t)one, field, value)
    {
        if (json_is_integer(value) && !is_neutral(field))
            says.named += (uint64_t)json_integer_value(value);
        if (strcmp(field, "unlisted") == 0)
            says.unlisted = (uint64_t)json_integer_value(value);
        if (strcmp(field, "copies") == 0)
            says.doubtful = doubtful(value);
        if (json_is_array(value) && strcmp(field, "gaps") != 0 &&
            strcmp(field, "covered_beyond") != 0 && json_array_size(value) > 0)
            says.warns = true;
    }
    const char *notice = json_string_value(json_object_get(one, "notice"));
    says.warns = says.warns || (notice != NULL && notice[0] != '\0') ||
                 json_array_size(json_object_get(said.json, "alerts")) > 0;
    const char *run = json_string_value(json_object_get(one, "last_run"));
    says.done = run != NULL && (strcmp(run, "done") == 0 || strcmp(run, "bad_items") == 0) &&
                json_array_size(json_object_get(one, "gaps")) == 0;
    says.named += says.doubtful;
    person_said_done(&said);
    return says;
}

bool person_check_doubted(struct person *self, struct person_account *account)
{
    return ask_status(self, account).doubtful > 0;
}

bool person_check_unlisted(struct person *self, struct person_account *account)
{
    return ask_status(self, account).unlisted > 0;
}

/* ---- PER1, PER2, PER4, PER7, PER8: after a sync ---- */

/* Messages that this sync could know of. */
static bool is_due(const struct person_account *account, uint32_t slot, uint64_t began_ms)
{
    const struct person_fact *fact = &account->facts[slot];
    return !box_mailbox_at(account->mailbox, slot)->gone && fact->arrived_ms < began_ms;
}

struct tally {
    uint64_t missing; /* neither stored exactly nor in the registry */
    uint64_t gone;    /* on the server, and recorded as gone */
    char one[BOX_ID_TEXT_BYTES];
    char one_gone[BOX_ID_TEXT_BYTES];
};

static struct tally count(struct look *look, uint64_t began_ms)
{
    struct tally tally = {.missing = 0};
    for (uint32_t slot = 0; slot < box_mailbox_slots(look->account->mailbox); slot++) {
        if (!is_due(look->account, slot, began_ms))
            continue;
        const struct found found = find(look, slot);
        const bool gone = found.gone || found.state == TIDE_BAD_GONE;
        const bool named = found.state >= 0 && found.state != TIDE_BAD_GONE;
        if (gone) {
            tally.gone++;
            memcpy(tally.one_gone, found.id, sizeof tally.one_gone);
        }
        /* A byte that turned is found by who reads it, which a sync does not. */
        const bool there = found.exact || (found.there && look->account->spoilt);
        if (!there && !named) {
            tally.missing++;
            memcpy(tally.one, found.id, sizeof tally.one);
        }
    }
    return tally;
}

static struct tally count_once(struct person *self, struct person_account *account,
                               uint64_t began_ms)
{
    struct look look;
    look_open(&look, self, account);
    const struct tally tally = count(&look, began_ms);
    look_done(&look);
    return tally;
}

static bool stray(const struct tide_stored *stored, void *arg)
{
    const struct look *look = arg;
    const struct person_account *account = look->account;
    for (uint32_t slot = 0; slot < box_mailbox_slots(account->mailbox); slot++) {
        char id[BOX_ID_TEXT_BYTES];
        box_id_text(box_mailbox_at(account->mailbox, slot)->id, id);
        if (strcmp(id, stored->gmail_id) == 0)
            return true;
    }
    person_broken(look->self, "PER7: message %s is in the archive of %s, and was never %s's",
                  stored->gmail_id, account->email, account->email);
    return true;
}

static void check_strays(struct person *self, struct person_account *account)
{
    struct look look;
    look_open(&look, self, account);
    if (look.archive != NULL && !account->damaged)
        (void)tide_archive_walk(look.archive, INT64_MIN, INT64_MAX, stray, &look, NULL);
    look_done(&look);
}

/* Everything but the messages that always fail, soon. */
static void check_poison(struct person *self, struct person_account *account, uint64_t began_ms)
{
    const uint64_t took_ms = tide_world_now_ms(self->world) - self->began_ms;
    bool alone = true; /* another account may take its time */
    struct look look;
    for (uint32_t i = 0; i < self->plan.accounts; i++)
        alone = alone && (&self->accounts[i] == account || self->plan.troubles[i] == 0);
    if (alone && took_ms > PERSON_POISON_MS)
        person_broken(self,
                      "PER8: a few messages of %s that always fail held a sync for %" PRIu64 " s",
                      account->email, took_ms / 1000);
    look_open(&look, self, account);
    for (uint32_t slot = 0; slot < box_mailbox_slots(account->mailbox); slot++) {
        if (!is_due(account, slot, began_ms) || account->facts[slot].poison)
            continue;
        const struct found found = find(&look, slot);
        if (!found.exact)
            person_broken(self, "PER8: message %s of %s is not stored: others always fail",
                          found.id, account->email);
    }
    look_done(&look);
}

static void check_account(struct person *self, struct person_account *account,
                          const struct person_said *said, uint64_t began_ms)
{
    const struct tally tally = count_once(self, account, began_ms);
    const bool healthy = self->plan.troubles[account - self->accounts] == 0;
    if (healthy && tally.missing > 0)
        person_broken(self,
                      "PER4: %" PRIu64
                      " messages of %s are not stored after a sync (exit %d), as %s;"
                      " the account has no troubles",
                      tally.missing, account->email, said->code, tally.one);
    if (account->troubles == UINT64_C(1) << PERSON_POISON && !account->damaged)
        check_poison(self, account, began_ms);
    if (said->code != CLI_EXIT_DONE || has(account, PERSON_HIDDEN))
        return;
    if (tally.gone > 0)
        person_broken(self,
                      "PER2: %" PRIu64 " messages of %s are on the server and recorded as gone, as "
                      "%s",
                      tally.gone, account->email, tally.one_gone);
    if (tally.missing == 0)
        return;
    const struct says says = ask_status(self, account);
    if (says.code == CLI_EXIT_DONE && says.named < tally.missing)
        person_broken(self,
                      "PER1: sync ended with 0, %" PRIu64 " messages of %s are not stored, as %s, "
                      "and status names %" PRIu64,
                      tally.missing, account->email, tally.one, says.named);
}

static bool has_words(const json_t *one, const char *field, const char *words)
{
    const char *text = json_string_value(json_object_get(one, field));
    return text != NULL && strstr(text, words) != NULL;
}

/* What the sync says of an account, and tells a person to do; PER12. */
static void check_outcome(struct person *self, struct person_account *account, const json_t *one)
{
    const uint64_t justified = UINT64_C(1) << PERSON_GET_403 | UINT64_C(1) << PERSON_GET_404 |
                               UINT64_C(1) << PERSON_ALL_403;
    const uint64_t troubles = self->plan.troubles[account - self->accounts];
    account->told_to_move = has_words(one, "remedy", "Move the file");
    account->told_to_heal = has_words(one, "remedy", "mail heal");
    if (!has_words(one, "outcome", "halted"))
        return;
    account->told_to_resume = has_words(one, "remedy", "resume");
    if ((troubles & justified) == 0)
        person_broken(self, "PER12: %s is halted, and its server refused nothing", account->email);
}

static void check_outcomes(struct person *self, const struct person_said *said)
{
    size_t index = 0;
    const json_t *one = NULL;
    json_array_foreach(json_object_get(said->json, "accounts"), index, one)
    {
        for (uint32_t i = 0; i < self->plan.accounts; i++)
            if (has_words(one, "account", self->accounts[i].email))
                check_outcome(self, &self->accounts[i], one);
    }
}

void person_check_sync(struct person *self, const struct person_said *said, uint64_t began_ms)
{
    if (said->killed)
        return;
    check_outcomes(self, said);
    for (uint32_t i = 0; i < self->plan.accounts; i++) {
        struct person_account *account = &self->accounts[i];
        if (!account->added)
            continue;
        check_account(self, account, said, began_ms);
        check_strays(self, account);
    }
}

/* ---- PER3 ---- */

void person_check_removed(struct person *self, struct person_account *account)
{
    struct look look;
    look_open(&look, self, account);
    for (uint32_t slot = 0; slot < box_mailbox_slots(account->mailbox); slot++) {
        struct person_fact *fact = &account->facts[slot];
        if (!box_mailbox_at(account->mailbox, slot)->gone || fact->deleted || fact->checked)
            continue;
        const struct found found = find(&look, slot);
        account->removes = true;
        fact->checked = true;
        if (!found.exact)
            person_broken(
                self,
                "PER3: message %s of %s was removed from the server, and the copy here is "
                "not its bytes",
                found.id, account->email);
    }
    look_done(&look);
}

/* ---- PER5 ---- */

/* What was lost with the server's own copy being gone is lost for good. */
static void note_losses(struct person *self, struct person_account *account)
{
    struct look look;
    look_open(&look, self, account);
    for (uint32_t slot = 0; slot < box_mailbox_slots(account->mailbox); slot++) {
        struct person_fact *fact = &account->facts[slot];
        if (!box_mailbox_at(account->mailbox, slot)->gone || !fact->stored)
            continue;
        if (!find(&look, slot).exact) {
            fact->stored = false;
            account->lost_for_good = true;
        }
    }
    look_done(&look);
}

void person_check_stored(struct person *self, struct person_account *account)
{
    struct look look;
    look_open(&look, self, account);
    for (uint32_t slot = 0; slot < box_mailbox_slots(account->mailbox); slot++)
        account->facts[slot].stored = find(&look, slot).exact;
    look_done(&look);
}

void person_check_damage(struct person *self, struct person_account *account,
                         enum person_trouble trouble)
{
    const char *const words[] = {"mail", "verify", "--account", account->email, NULL};
    note_losses(self, account);
    struct person_said verify = person_command(self, words);
    const struct says says = ask_status(self, account);
    const bool told = says.code != CLI_EXIT_DONE || says.named > 0 || says.warns;
    const bool either = trouble == PERSON_SHARD_OLD || trouble == PERSON_SHARD_ANCIENT ||
                        trouble == PERSON_SHARD_FOREIGN;
    if (verify.code == CLI_EXIT_DONE && !(either && told))
        person_broken(self, "PER5: %s of %s, and `mail verify` ends with 0",
                      person_troubles[trouble], account->email);
    if (!told && trouble != PERSON_DAMAGE && !(either && verify.code != CLI_EXIT_DONE))
        person_broken(self, "PER5: %s of %s, and `mail status` says that all is well",
                      person_troubles[trouble], account->email);
    person_said_done(&verify);
}

/* ---- PER6 ---- */

static bool labels_right(struct look *look, uint32_t slot, const struct tide_stored *stored)
{
    tide_buf wanted;
    tide_buf got;
    tide_buf_init(&wanted, tide_mem_heap(), 64 << 10);
    tide_buf_init(&got, tide_mem_heap(), 64 << 10);
    tide_sim_mail_labels(look->account->mailbox, slot, &wanted);
    const bool right = tide_sim_mail_stored_labels(look->archive, stored, &got, NULL) == TIDE_OK &&
                       tide_text_equal(tide_buf_text(&wanted), tide_buf_text(&got));
    tide_buf_done(&wanted);
    tide_buf_done(&got);
    return right;
}

/* NULL: right. */
static const char *wrong_with(struct look *look, uint32_t slot, char id_out[BOX_ID_TEXT_BYTES])
{
    const struct person_fact *fact = &look->account->facts[slot];
    const bool gone = box_mailbox_at(look->account->mailbox, slot)->gone;
    const struct found found = find(look, slot);
    memcpy(id_out, found.id, sizeof found.id);
    if (gone)
        return found.there && !found.gone ? "is gone from the server, and not marked so" : NULL;
    if (found.gone || found.state == TIDE_BAD_GONE)
        return "is on the server, and recorded as gone";
    if (fact->poison && found.state >= 0)
        return NULL;
    if (!found.there)
        return found.state >= 0 ? "is not stored, only recorded as bad" : "is not stored";
    if (!found.exact)
        return "is stored with other bytes than the server's";
    if (!look->account->blind && !labels_right(look, slot, &found.stored))
        return "has other labels than at the server";
    return NULL;
}

static bool account_right(struct person *self, struct person_account *account, char *why,
                          size_t why_bytes)
{
    struct look look;
    const char *wrong = NULL;
    char id[BOX_ID_TEXT_BYTES] = "";
    look_open(&look, self, account);
    for (uint32_t slot = 0; wrong == NULL && slot < box_mailbox_slots(account->mailbox); slot++)
        wrong = wrong_with(&look, slot, id);
    look_done(&look);
    if (wrong != NULL) {
        (void)snprintf(why, why_bytes, "message %s of %s %s", id, account->email, wrong);
        return false;
    }
    const struct says says = ask_status(self, account);
    if (!says.done && (self->plan.rules >> 11 & 1) != 0) {
        (void)snprintf(why, why_bytes, "PER11: `mail status` does not call the sync of %s done",
                       account->email);
        return false;
    }
    const bool told = says.code != CLI_EXIT_DONE || says.named > 0 || says.warns;
    if (account->lost_for_good && !told) {
        (void)snprintf(why, why_bytes,
                       "mail of %s was lost that the server no longer has, and `mail status` does "
                       "not name it",
                       account->email);
        return false;
    }
    return true;
}

bool person_check_right(struct person *self, char *why, size_t why_bytes)
{
    for (uint32_t i = 0; i < self->plan.accounts; i++)
        if (self->accounts[i].added && !account_right(self, &self->accounts[i], why, why_bytes))
            return false;
    return true;
}
