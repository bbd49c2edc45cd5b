/* person.c - one seed: a person's days with the program, then without troubles. */
#include "person.h"

#include "cli/cli.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    SYNCS_MAX = 6,  /* to set all right */
    MANY_DAYS = 70, /* and nights: more than the ledger keeps a proof of each of */
    SERVER_TROUBLES = PERSON_SHARD_LOST,
    DISK_TROUBLES_END = PERSON_REMOVES,
};

const char *const person_troubles[PERSON_TROUBLES] = {
    [PERSON_LIST_EMPTY] = "list-empty",
    [PERSON_LIST_SHORT] = "list-short",
    [PERSON_LIST_FAILS] = "list-fails",
    [PERSON_LIST_LOOPS] = "list-loops",
    [PERSON_LIST_RESTARTS] = "list-restarts",
    [PERSON_HISTORY_FAILS] = "history-fails",
    [PERSON_HISTORY_LOOPS] = "history-loops",
    [PERSON_HISTORY_GARBLED] = "history-garbled",
    [PERSON_HISTORY_AHEAD] = "history-ahead",
    [PERSON_ID_GARBLED] = "id-garbled",
    [PERSON_GET_403] = "get-403",
    [PERSON_GET_404] = "get-404",
    [PERSON_RAW_HALF] = "raw-half",
    [PERSON_RAW_EMPTY] = "raw-empty",
    [PERSON_HIDDEN] = "hidden",
    [PERSON_POISON] = "poison",
    [PERSON_RETRY_AFTER] = "retry-after",
    [PERSON_SIGN_IN] = "sign-in",
    [PERSON_UNREACHABLE] = "unreachable",
    [PERSON_OTHER_MAILBOX] = "other-mailbox",
    [PERSON_ALL_403] = "all-403",
    [PERSON_SHARD_LOST] = "shard-lost",
    [PERSON_SHARD_EMPTY] = "shard-empty",
    [PERSON_SHARD_CUT] = "shard-cut",
    [PERSON_SHARD_OLD] = "shard-old",
    [PERSON_SHARD_ANCIENT] = "shard-ancient",
    [PERSON_SHARD_FOREIGN] = "shard-foreign",
    [PERSON_ARCHIVE_LOST] = "archive-lost",
    [PERSON_DAMAGE] = "damage",
    [PERSON_REMOVES] = "removes",
    [PERSON_KILLS] = "kills",
};

/* ---- what a seed decides ---- */

static bool plans(const struct person_plan *plan, size_t account, enum person_trouble trouble)
{
    return (plan->troubles[account] >> trouble & 1) != 0;
}

static uint64_t draw(tide_rng *rng, uint64_t allowed)
{
    for (int tries = 0; tries < 200; tries++) {
        const uint64_t bit = UINT64_C(1) << tide_rng_below(rng, PERSON_KILLS);
        if ((allowed & bit) != 0)
            return bit;
    }
    return 0;
}

struct person_plan person_plan_seeded(uint64_t seed, uint64_t allowed)
{
    tide_rng rng = tide_rng_seeded(seed ^ 0x706572736f6eu);
    struct person_plan plan = {.seed = seed, .rules = UINT64_MAX};
    plan.sim.cost_us_max = 50;
    plan.sim.net.latency_us_max = 50000 + (uint32_t)tide_rng_below(&rng, 200000);
    plan.accounts = 2 + (uint32_t)tide_rng_below(&rng, PERSON_ACCOUNTS_MAX - 1);
    plan.settled_first = tide_rng_chance(&rng, 1, 2);
    plan.days = 1 + (uint32_t)tide_rng_below(&rng, tide_rng_chance(&rng, 1, 5) ? 12 : 3);
    plan.kills = (allowed >> PERSON_KILLS & 1) != 0 && tide_rng_chance(&rng, 1, 4);
    for (uint32_t i = 0; i < plan.accounts; i++) {
        plan.messages[i] = 5 + (uint32_t)tide_rng_below(&rng, 30);
        if (i == 0)
            continue; /* the first account never has troubles of its own (PER4) */
        plan.troubles[i] = draw(&rng, allowed);
        if (tide_rng_chance(&rng, 1, 3))
            plan.troubles[i] |= draw(&rng, allowed);
        if (plans(&plan, i, PERSON_SHARD_ANCIENT))
            plan.days = MANY_DAYS;
    }
    return plan;
}

/* ---- what a person does ---- */

static void add_account(struct person *self, struct person_account *account, const char *token)
{
    const char *const words[] = {"account",      "add",        "gmail",
                                 account->email, "--endpoint", "https://provider",
                                 "--bearer",     token,        NULL};
    struct person_said said = person_command(self, words);
    if (said.code == CLI_EXIT_DONE)
        account->added = true;
    person_said_done(&said);
}

/* `mail sync` with these words. */
static int run_words(struct person *self, const char *const *words, bool checks)
{
    const uint64_t began_ms = tide_world_now_unix_ms(self->world);
    struct person_said said = person_command(self, words);
    const int code = said.killed ? -1 : said.code;
    tide_sim_crash_after(self->sim, 0, TIDE_SIM_CRASH_SEEDED);
    if (said.killed)
        tide_sim_reboot(self->sim);
    self->totals.syncs++;
    if (checks)
        person_check_sync(self, &said, began_ms);
    person_said_done(&said);
    return code;
}

/* `mail sync`, or for one account `mail heal`, which is a sync too. */
static int run_sync(struct person *self, const char *heal_email)
{
    const char *const words[] = {"mail", heal_email == NULL ? "sync" : "heal", heal_email, NULL};
    return run_words(self, words, heal_email == NULL);
}

static void list_again(struct person *self, const char *email)
{
    const char *const words[] = {"mail", "sync", "--force", email, NULL};
    (void)run_words(self, words, false);
}

static void sleep_hours(struct person *self, uint64_t hours)
{
    (void)tide_world_sleep_until(
        self->world, tide_world_now_us(self->world) + hours * UINT64_C(3600000000), NULL);
}

static void remove_mail(struct person *self, struct person_account *account)
{
    const char *const words[] = {"mail",   "archive", "in:anywhere", "--account", account->email,
                                 "--mode", "delete",  "--limit",     "5",         "--yes",
                                 NULL};
    struct person_said said = person_command(self, words);
    if (said.killed)
        tide_sim_reboot(self->sim);
    person_said_done(&said);
    person_check_removed(self, account);
}

/* ---- days ---- */

static void news(struct person *self)
{
    for (uint32_t i = 0; i < self->plan.accounts; i++)
        person_cloud_news(self, &self->accounts[i]);
}

/* An account whose token is another mailbox's, given by mistake; the right one later. */
static void add_all(struct person *self)
{
    for (uint32_t i = 0; i < self->plan.accounts; i++) {
        struct person_account *account = &self->accounts[i];
        const bool mistake = plans(&self->plan, i, PERSON_OTHER_MAILBOX);
        if (mistake)
            self->totals.troubles[PERSON_OTHER_MAILBOX]++;
        add_account(self, account, mistake ? "tok-mallory" : account->token);
        if (!account->added && !mistake)
            tide_sim_fail(self->sim, "%s could not be added", account->email);
        if (!account->added)
            add_account(self, account, account->token);
    }
}

static void begin_troubles(struct person *self)
{
    const uint64_t of_server = (UINT64_C(1) << SERVER_TROUBLES) - 1;
    for (uint32_t i = 1; i < self->plan.accounts; i++)
        person_cloud_trouble(self, &self->accounts[i], self->plan.troubles[i] & of_server);
}

static void end_troubles(struct person *self)
{
    for (uint32_t i = 1; i < self->plan.accounts; i++) {
        struct person_account *account = &self->accounts[i];
        const bool signed_out = (account->troubles >> PERSON_SIGN_IN & 1) != 0;
        person_cloud_trouble(self, account, 0);
        /* A sync ended with "sign in again", which is what a person does. */
        if (signed_out)
            add_account(self, account, account->token);
        if (account->told_to_resume) {
            const char *const words[] = {"account", "resume", account->email, NULL};
            struct person_said said = person_command(self, words);
            person_said_done(&said);
        }
    }
}

static void disk_troubles(struct person *self)
{
    for (uint32_t i = 1; i < self->plan.accounts; i++) {
        struct person_account *account = &self->accounts[i];
        for (int trouble = SERVER_TROUBLES; trouble < DISK_TROUBLES_END; trouble++) {
            if (!plans(&self->plan, i, (enum person_trouble)trouble) || account->damaged)
                continue;
            person_check_stored(self, account);
            if (person_disk_trouble(self, account, (enum person_trouble)trouble))
                person_check_damage(self, account, (enum person_trouble)trouble);
        }
    }
}

static void removals(struct person *self)
{
    for (uint32_t i = 1; i < self->plan.accounts; i++)
        if (plans(&self->plan, i, PERSON_REMOVES)) {
            self->totals.troubles[PERSON_REMOVES]++;
            remove_mail(self, &self->accounts[i]);
        }
}

static void copies(struct person *self)
{
    for (uint32_t i = 1; i < self->plan.accounts; i++)
        if (plans(&self->plan, i, PERSON_SHARD_OLD) || plans(&self->plan, i, PERSON_SHARD_ANCIENT))
            person_disk_copy(self, &self->accounts[i]);
}

static void day(struct person *self)
{
    news(self);
    if (self->plan.kills && tide_rng_chance(&self->rng, 1, 2)) {
        self->totals.troubles[PERSON_KILLS]++;
        tide_sim_crash_after(self->sim, 1 + tide_rng_below(&self->rng, 6000),
                             TIDE_SIM_CRASH_SEEDED);
    }
    (void)run_sync(self, NULL);
    removals(self);
    copies(self);
    sleep_hours(self, self->plan.days == MANY_DAYS ? 1 : 1 + tide_rng_below(&self->rng, 20));
}

/* ---- PER6 ---- */

/* A person does what the last sync said.  What `mail verify` names as damaged is fetched again by
 * the command that it names; copies in doubt are counted by `mail status`, which names the same
 * command, and so are messages that were not listed. */
static void heal(struct person *self)
{
    for (uint32_t i = 1; i < self->plan.accounts; i++) {
        struct person_account *account = &self->accounts[i];
        const char *const words[] = {"mail", "verify", "--account", account->email, NULL};
        struct person_said said = {.code = CLI_EXIT_DONE};
        if (account->damaged)
            said = person_command(self, words);
        const bool damaged = said.code != CLI_EXIT_DONE;
        if (account->told_to_move)
            person_disk_away(self, account);
        if (account->told_to_heal || (damaged && account->spoilt) ||
            person_check_doubted(self, account))
            (void)run_sync(self, account->email);
        if (person_check_unlisted(self, account))
            list_again(self, account->email);
        person_said_done(&said);
    }
}

static void set_right(struct person *self)
{
    char why[300] = "";
    bool right = false;
    int code = -1;
    for (uint64_t syncs = 1; !right && syncs <= SYNCS_MAX; syncs++) {
        code = run_sync(self, NULL);
        if (syncs == 2)
            heal(self);
        right = (code == CLI_EXIT_DONE || code == CLI_EXIT_BAD_ITEMS) &&
                person_check_right(self, why, sizeof why);
        if (right && syncs > self->totals.syncs_to_converge_max)
            self->totals.syncs_to_converge_max = syncs;
        sleep_hours(self, 1);
    }
    if (!right && strncmp(why, "PER11", 3) == 0)
        person_broken(self, "%s", why);
    if (!right)
        person_broken(self, "PER6: after %d syncs without troubles (last exit %d): %s", SYNCS_MAX,
                      code, why[0] == '\0' ? "sync does not end well" : why);
}

static void provide(void *arg, const struct tide_request *request, uint64_t now_unix_ms,
                    tide_rng *rng, struct tide_sim_answer *answer)
{
    struct person *self = arg;
    const char *path = strstr(request->url, "/me/");
    tide_sim_note(self->sim, "%s", path == NULL ? request->url : path + 3);
    if (++self->calls > PERSON_CALLS_MAX)
        person_broken(self, "PER10: a command made more than %d calls", PERSON_CALLS_MAX);
    tide_sim_cloud_call(self->cloud, request, now_unix_ms, rng, answer);
    if (answer->http != 200)
        tide_sim_note(self->sim, "answers %d", answer->http);
}

struct person_totals person_run(const struct person_plan *plan)
{
    struct person *self = calloc(1, sizeof *self);
    TIDE_ASSERT(self != NULL);
    self->plan = *plan;
    self->cloud =
        tide_sim_cloud_new(&(struct box_options){.seed = plan->seed, .quota = BOX_QUOTA_2026});
    self->plan.sim.net.provide = provide;
    self->plan.sim.net.provide_arg = self;
    self->sim = tide_sim_new(plan->seed, &self->plan.sim);
    self->world = tide_sim_world(self->sim);
    self->rng = tide_sim_rng(self->sim);
    tide_buf_init(&self->old_shard, tide_mem_heap(), 64 << 20);
    const uint64_t start_us = tide_world_now_us(self->world);
    person_cloud_make(self);
    add_all(self);
    if (plan->settled_first)
        day(self);
    begin_troubles(self);
    for (uint32_t i = 0; i < plan->days; i++)
        day(self);
    disk_troubles(self);
    if (tide_rng_chance(&self->rng, 1, 2))
        day(self);
    end_troubles(self);
    news(self);
    set_right(self);

    struct person_totals totals = self->totals;
    totals.simulated_us = tide_world_now_us(self->world) - start_us;
    totals.steps = tide_sim_stats(self->sim).steps;
    totals.calls = tide_sim_net_stats(self->sim).calls;
    totals.trace_hash = tide_sim_trace_hash(self->sim);
    for (uint32_t i = 0; i < plan->accounts; i++)
        totals.messages += box_mailbox_slots(self->accounts[i].mailbox);
    tide_buf_done(&self->old_shard);
    tide_sim_free(self->sim);
    tide_sim_cloud_free(self->cloud);
    free(self);
    return totals;
}
