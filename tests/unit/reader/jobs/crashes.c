/* The process dies while a person acts (K11; reader.h KR2 to KR4).
 *
 * Goal: after a calm life the server has every action, in order, and the person sees what the server has.
 * Method: the simulated world kills the process, or takes the power away, at any of its steps; the
 * mailbox is another machine and stays. */
#include "reader_jobs_fixture.h"

#include "ledger/rows.h"
#include "support/scale.h"

enum { MESSAGES = 4 };

/* What a person does in the life that dies; some of it may not be accepted any more. */
static void live(struct fixture *f, const char *const *ids, uint64_t steps)
{
    static const char *const what[] = {"archive", "star", "trash", "read", "unstar"};
    static const int on[] = {0, 1, 2, 3, 1};
    f->may_die = true;
    tide_sim_crash_after(f->sim, steps,
                         steps % 2 == 0 ? TIDE_SIM_CRASH_KILL : TIDE_SIM_CRASH_POWER);
    if (life_begin(f) == TIDE_OK) {
        for (int i = 0; i < 5; i++) {
            const tide_text message = tide_text_of(ids[on[i]]);
            const struct tide_reader_wish wish = {
                .what = what[i], .messages = &message, .messages_count = 1};
            struct tide_reader_action action;
            (void)tide_reader_act(f->reader, f->accounts[0], &wish, &action, NULL);
        }
        (void)settle(f);
    }
    life_end(f);
    tide_sim_reboot(f->sim);
    f->may_die = false;
}

struct counting {
    uint32_t account;
    uint64_t waiting, refused, actions;
};

static void count_one(const struct tide_reader_action *action, void *arg)
{
    struct counting *counting = arg;
    counting->actions++;
    (void)action;
}

static tide_status count(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct counting *counting = arg;
    const tide_rows db = tide_transaction_rows(transaction);
    counting->actions = 0;
    TIDE_TRY(tide_actions_each(db, counting->account, 100, count_one, counting, err));
    return tide_actions_count(db, counting->account, 0, &counting->waiting, &counting->refused,
                              err);
}

static void check(struct fixture *f, const char *const *ids, uint64_t steps)
{
    struct counting counting = {.account = f->accounts[0]};
    OK(tide_transact(f->engine, count, &counting, err));
    assert_int_equal(counting.waiting, 0);
    assert_int_equal(counting.refused, 0);
    /* Actions are accepted in order: what was accepted is a prefix, and all of it is there. */
    const uint64_t n = counting.actions;
    const bool want[] = {n < 1, n >= 2 && n < 5, n >= 3, n < 4};
    const bool have[] = {
        labeled(f, 0, ids[0], BOX_LABEL_INBOX), labeled(f, 0, ids[1], BOX_LABEL_STARRED),
        labeled(f, 0, ids[2], BOX_LABEL_TRASH), labeled(f, 0, ids[3], BOX_LABEL_UNREAD)};
    for (int i = 0; i < 4; i++)
        if (want[i] != have[i])
            fail_msg("step %" PRIu64 ": of %" PRIu64 " actions, message %d is wrong", steps, n, i);
    const char *inbox = shown(f, 0, "INBOX");
    for (int i = 0; i < MESSAGES; i++)
        if ((strstr(inbox, ids[i]) != NULL) != labeled(f, 0, ids[i], BOX_LABEL_INBOX))
            fail_msg("step %" PRIu64 ": message %d is shown otherwise than it is", steps, i);
    assert_int_equal(failed_jobs(f), 0);
}

TEST(every_accepted_action_reaches_the_server_wherever_the_process_dies)
{
    const struct tide_sim_options options = {.net = {.latency_us_max = 20000}};
    const uint64_t stride = 4000 / scaled_at_least(60, 10);
    uint64_t last = 0;
    for (uint64_t steps = 1;; steps += stride) {
        char room[MESSAGES][32];
        const char *ids[MESSAGES];
        struct fixture *f = begin_in(5, &options);
        for (uint64_t i = 0; i < MESSAGES; i++) {
            (void)snprintf(room[i], sizeof room[i], "%s", deliver(f, 0, 1000 * (i + 1)));
            ids[i] = room[i];
        }
        OK(life_begin(f));
        poll_now(f, 0);
        (void)settle(f);
        life_end(f);
        tide_sim_reboot(f->sim);
        live(f, ids, steps);
        const bool died = tide_sim_stats(f->sim).crashes > 0;
        tide_sim_crash_after(f->sim, 0, TIDE_SIM_CRASH_KILL);
        OK(life_begin(f));
        (void)settle(f);
        poll_now(f, 0);
        (void)settle(f);
        check(f, ids, steps);
        finish(f);
        if (!died)
            break;
        last = steps;
    }
    (void)printf("interrupted up to step %" PRIu64 "\n", last);
    assert_true(last > 200);
}

/* K8: the first listing survives deaths, and ends with the same mailbox. */
TEST(the_first_listing_ends_wherever_the_process_dies)
{
    const struct tide_sim_options options = {.net = {.latency_us_max = 20000}};
    const uint64_t stride = 12000 / scaled_at_least(40, 8);
    for (uint64_t steps = 1;; steps += stride) {
        struct fixture *f = begin_in(7, &options);
        for (uint64_t i = 0; i < 25; i++)
            (void)deliver(f, 0, 3600000 * i);
        f->may_die = true;
        tide_sim_crash_after(f->sim, steps, TIDE_SIM_CRASH_POWER);
        if (life_begin(f) == TIDE_OK) {
            (void)tide_reader_begin(f->reader, f->accounts[0], NULL);
            (void)settle(f);
        }
        life_end(f);
        const bool died = tide_sim_stats(f->sim).crashes > 0;
        tide_sim_reboot(f->sim);
        f->may_die = false;
        tide_sim_crash_after(f->sim, 0, TIDE_SIM_CRASH_KILL);
        OK(life_begin(f));
        poll_now(f, 0);
        (void)settle(f);
        if (count_shown(f, 0, "ALL") != 25)
            fail_msg("step %" PRIu64 ": %zu of 25", steps, count_shown(f, 0, "ALL"));
        assert_int_equal(failed_jobs(f), 0);
        finish(f);
        if (!died)
            break;
    }
}
