/* The process dies again and again while mail comes and a user acts (J17; jobs.h JBS1 to JBS7).
 *
 * Goal: after a calm life every thread of the inbox has a record, at most one draft of ours, at most one
 * label of a category or Outbox, and record, labels and drafts say the same.
 * Method: the simulated world kills the process, or takes the power away, at any of its steps; the
 * mailbox is another machine and stays.  Two sweeps: one scenario that is interrupted everywhere, and
 * many random ones. */
#include "assistant_jobs_fixture.h"
#include "ledger/rows.h"

#include "support/scale.h"

enum { LIVES = 8, THREADS_MAX = 12, ACTS_MAX = 3 };

static void try_sync(struct fixture *f)
{
    if (tide_assistant_sync(f->jobs, f->account, false, NULL) == TIDE_OK)
        (void)settle(f);
}

/* One life that ends after so many steps, or by itself. */
static void live(struct fixture *f, uint64_t steps, tide_sim_crash_kind kind)
{
    f->may_die = true;
    tide_sim_crash_after(f->sim, steps, kind);
    if (life_begin(f) == TIDE_OK)
        try_sync(f);
    life_end(f);
    tide_sim_reboot(f->sim);
    f->may_die = false;
}

static void calm(struct fixture *f)
{
    tide_sim_crash_after(f->sim, 0, TIDE_SIM_CRASH_KILL);
    OK(life_begin(f));
    for (int i = 0; i < 3; i++) {
        pass(f, 61); /* J4: a full sync each hour */
        sync_now(f, i == 1);
    }
}

static void onboarded(struct fixture *f)
{
    OK(life_begin(f));
    OK(tide_assistant_onboard(f->jobs, f->account, err));
    (void)settle(f);
    life_end(f);
    tide_sim_reboot(f->sim);
}

static unsigned words_of(const char *labels)
{
    unsigned count = labels[0] == '\0' ? 0 : 1;
    for (const char *c = labels; *c != '\0'; c++)
        count += *c == ',';
    return count;
}

/* What holds for a thread after a calm life. */
static void check(struct fixture *f, const char *thread, uint64_t seed)
{
    const struct tide_assistant_email email = record(f, thread);
    /* A Rework label where there is nothing to rework is the user's own. */
    label(f, thread, TIDE_ASSISTANT_LABEL_REWORK, false);
    const char *labels = labels_of(f, thread);
    const unsigned drafts = drafts_of(f, thread, false);
    const char *why = NULL;
    if (drafts > 1)
        why = "two drafts";
    else if (words_of(labels) > 1)
        why = "two labels";
    else if (in_inbox(f, thread) && email.status == TIDE_ASSISTANT_NO_STATUS)
        why = "no record";
    else if (email.status == TIDE_ASSISTANT_PENDING ||
             email.status == TIDE_ASSISTANT_REWORK_REQUESTED)
        why = "in work for good";
    else if (strcmp(labels, "Action Required") != 0 && /* also after the last rework */
             (email.status == TIDE_ASSISTANT_DRAFTED) != (strcmp(labels, "Outbox") == 0))
        why = "the label is not that of the status";
    else if (email.status == TIDE_ASSISTANT_DRAFTED && drafts != 1)
        why = "drafted without a draft";
    else if (email.status == TIDE_ASSISTANT_ARCHIVED && strcmp(labels, "Done") != 0)
        why = "archived without Done";
    if (why != NULL)
        fail_msg("seed %" PRIu64 ", thread %s: %s (status %s, labels \"%s\", %u drafts)", seed,
                 thread, why, tide_assistant_status_name(email.status), labels, drafts);
}

/* A message comes, and the process dies once at each step of what follows.  It asks the model once
 * for each question, and once more where it died during the call. */
TEST(one_message_is_one_draft_wherever_the_process_dies)
{
    const struct tide_sim_options options = {.net = {.latency_us_max = 20000}};
    const uint64_t stride = 9700 / scaled_at_least(100, 10);
    uint64_t last = 0;
    for (uint64_t steps = 1;; steps += stride) {
        struct fixture *f = begin_in(5, &options, NULL);
        onboarded(f);
        deliver(f, "anna@example.com", "Offer", "Can you come?", NULL);
        live(f, steps, steps % 2 == 0 ? TIDE_SIM_CRASH_KILL : TIDE_SIM_CRASH_POWER);
        const bool died = tide_sim_stats(f->sim).crashes > 0;
        calm(f);
        check(f, f->thread, steps);
        assert_int_equal(record(f, f->thread).status, TIDE_ASSISTANT_DRAFTED);
        assert_true(f->asked[ASKED_CLASSIFY] <= 2 && f->asked[ASKED_DRAFT] <= 2);
        assert_int_equal(failed_jobs(f), 0);
        finish(f);
        if (!died)
            break;
        last = steps;
    }
    (void)printf("interrupted up to step %" PRIu64 "\n", last);
    assert_true(last > 200);
}

/* ---- before the id of a draft is known ---- */

static struct fixture *saving; /* whose user saves the next draft at once; NULL: nobody's */
static const char *saved_text;

static void save_at_once(void *cloud, const struct tide_request *request, uint64_t now_unix_ms,
                         tide_rng *rng, struct tide_sim_answer *answer)
{
    const uint32_t before = saving == NULL ? 0 : box_mailbox_drafts(saving->mailbox);
    tide_sim_cloud_call(cloud, request, now_unix_ms, rng, answer);
    if (saving == NULL || box_mailbox_drafts(saving->mailbox) == before)
        return;
    edit_draft(saving, saving->thread, saved_text);
    saving = NULL;
}

/* A draft is made, its answer is lost, and the user saves it before it is looked for: the header with its
 * token is gone. */
static struct fixture *saved_before_its_id_was_known(const char *text)
{
    static const struct tide_sim_options options = {
        .net = {.latency_us_max = 20000, .provide = save_at_once}};
    struct fixture *f = begin_in(5, &options, NULL);
    onboarded(f);
    OK(life_begin(f));
    saving = f;
    saved_text = text;
    tide_sim_cloud_fault(
        f->cloud, f->sim,
        "{\"method\":\"gmail.users.drafts.create\",\"fault\":\"reset-after\",\"count\":1}");
    deliver(f, "anna@example.com", "Offer", "Can you come?", NULL);
    sync_now(f, false);
    assert_null(saving);
    assert_int_equal(record(f, f->thread).status, TIDE_ASSISTANT_DRAFTED);
    return f;
}

TEST(a_draft_that_was_saved_before_its_id_was_known_is_found_by_its_sign)
{
    struct fixture *f = saved_before_its_id_was_known(
        "Shorter.\r\n\r\n\xe2\x9c\x82\xef\xb8\x8f\r\n\r\nDear Anna\r\n");
    assert_int_equal(drafts_of(f, f->thread, false), 1);
    send_draft(f, f->thread); /* it is the one of the record */
    sync_now(f, false);
    assert_int_equal(record(f, f->thread).status, TIDE_ASSISTANT_SENT);
    finish(f);
}

/* What cannot be known: without the sign it is the user's own, which is left alone. */
TEST(a_draft_that_lost_its_sign_too_is_the_users)
{
    struct fixture *f = saved_before_its_id_was_known("Dear Anna\r\n");
    assert_int_equal(drafts_of(f, f->thread, true), 1);
    assert_int_equal(drafts_of(f, f->thread, false), 2);
    finish(f);
}

/* JBS8: a command whose job was refused as often as jobs are tried. */
TEST(a_command_whose_job_failed_is_carried_out_after_the_next_full_sync)
{
    struct fixture *f = begin(NULL);
    deliver(f, "anna@example.com", "Offer", "Can you come?", NULL);
    sync_now(f, false);
    tide_sim_cloud_fault(f->cloud, f->sim,
                         "{\"method\":\"gmail.users.threads.modify\",\"fault\":\"403\"}");
    label(f, f->thread, TIDE_ASSISTANT_LABEL_DONE, true);
    sync_now(f, false);
    json_decref(
        tide_sim_cloud_control(f->cloud, f->sim, "DELETE", "/_cloud/faults", TIDE_TEXT_NONE));
    assert_int_equal(failed_jobs(f), 1);
    sync_now(f, false);
    assert_true(in_inbox(f, f->thread));
    sync_now(f, true);
    assert_int_equal(record(f, f->thread).status, TIDE_ASSISTANT_ARCHIVED);
    assert_string_equal(labels_of(f, f->thread), "Done");
    assert_false(in_inbox(f, f->thread));
    finish(f);
}

static void fail_modify(struct fixture *f, bool on)
{
    if (on)
        tide_sim_cloud_fault(f->cloud, f->sim,
                             "{\"method\":\"gmail.users.threads.modify\",\"fault\":\"403\"}");
    else
        json_decref(
            tide_sim_cloud_control(f->cloud, f->sim, "DELETE", "/_cloud/faults", TIDE_TEXT_NONE));
}

static tide_status read_counts(tide_transaction *transaction, void *arg, tide_error *err)
{
    return tide_assistant_counts(tide_transaction_rows(transaction), 1, 0, arg, err);
}

static uint64_t given_up(struct fixture *f)
{
    struct tide_assistant_counts counts;
    assert_int_equal(f->account, 1);
    OK(tide_transact(f->engine, read_counts, &counts, err));
    return counts.given_up;
}

/* JBS8: also with the model's questions, which each try would ask. */
TEST(a_thread_whose_jobs_fail_for_good_is_given_up_until_something_happens_to_it)
{
    struct fixture *f = begin(NULL);
    f->category = "fyi";
    fail_modify(f, true);
    deliver(f, "anna@example.com", "Offer", "Can you come?", NULL);
    sync_now(f, false);
    assert_int_equal(failed_jobs(f), 1);
    for (int i = 0; i < TIDE_ASSISTANT_FAILURES_MAX - 1; i++) {
        assert_int_equal(given_up(f), 0);
        sync_now(f, true);
    }
    sync_now(f, true); /* counts the last of them */
    assert_int_equal(given_up(f), 1);
    assert_int_equal(events_of(f, f->thread, "given_up"), 1);
    const uint64_t failed = failed_jobs(f);
    const unsigned asked = f->asked[ASKED_CLASSIFY];
    assert_int_equal(failed, TIDE_ASSISTANT_FAILURES_MAX); /* a try makes no further job */
    fail_modify(f, false);
    for (int i = 0; i < 3; i++)
        sync_now(f, true);
    assert_int_equal(failed_jobs(f), failed);
    assert_int_equal(f->asked[ASKED_CLASSIFY], asked);
    assert_int_equal(events_of(f, f->thread, "given_up"), 1);
    assert_string_equal(labels_of(f, f->thread), "");
    char thread[sizeof f->thread];
    memcpy(thread, f->thread, sizeof thread);
    deliver(f, "anna@example.com", "Re: Offer", "Well?", thread);
    sync_now(f, false);
    assert_string_equal(labels_of(f, thread), "FYI");
    sync_now(f, true);
    assert_int_equal(failed_jobs(f), failed);
    sync_now(f, true);
    assert_int_equal(given_up(f), 0);
    finish(f);
}

TEST(a_label_of_the_user_tries_a_thread_again_that_was_given_up)
{
    struct fixture *f = begin(NULL);
    f->category = "fyi";
    deliver(f, "anna@example.com", "Offer", "Can you come?", NULL);
    sync_now(f, false);
    fail_modify(f, true);
    label(f, f->thread, TIDE_ASSISTANT_LABEL_DONE, true);
    for (int i = 0; i <= TIDE_ASSISTANT_FAILURES_MAX; i++)
        sync_now(f, true);
    assert_int_equal(given_up(f), 1);
    fail_modify(f, false);
    sync_now(f, true);
    assert_true(in_inbox(f, f->thread));
    label(f, f->thread, TIDE_ASSISTANT_LABEL_DONE, false);
    label(f, f->thread, TIDE_ASSISTANT_LABEL_DONE, true);
    sync_now(f, false);
    assert_false(in_inbox(f, f->thread));
    finish(f);
}

static struct fixture
    *refusing; /* whose threads cannot be read after the next label; NULL: nobody's */

static void refuse_after_label(void *cloud, const struct tide_request *request,
                               uint64_t now_unix_ms, tide_rng *rng, struct tide_sim_answer *answer)
{
    tide_sim_cloud_call(cloud, request, now_unix_ms, rng, answer);
    if (refusing == NULL || strstr(request->url, "/modify") == NULL)
        return;
    tide_sim_cloud_fault(refusing->cloud, refusing->sim,
                         "{\"method\":\"gmail.users.threads.get\",\"fault\":\"403\"}");
    refusing = NULL;
}

/* J22, J23: a classification puts Needs Response on and fails before its record; then history expires. */
TEST(a_label_of_ours_without_its_record_is_no_command_after_an_expired_history_id)
{
    static const struct tide_sim_options options = {
        .net = {.latency_us_max = 20000, .provide = refuse_after_label}};
    struct fixture *f = begin_in(5, &options, NULL);
    onboarded(f);
    OK(life_begin(f));
    refusing = f;
    tide_sim_cloud_fault(
        f->cloud, f->sim,
        "{\"method\":\"gmail.users.threads.modify\",\"fault\":\"reset-after\",\"count\":1}");
    deliver(f, "anna@example.com", "Offer", "Can you come?", NULL);
    sync_now(f, false);
    assert_null(refusing);
    assert_int_equal(failed_jobs(f), 1);
    assert_string_equal(labels_of(f, f->thread), "Needs Response");
    assert_int_equal(record(f, f->thread).status, TIDE_ASSISTANT_NO_STATUS);
    /* The round begins again with another message, so that a wish would come first. */
    char thread[64];
    (void)snprintf(thread, sizeof thread, "%s", f->thread);
    deliver(f, "anna@example.com", "Re: Offer", "And when?", thread);
    json_decref(
        tide_sim_cloud_control(f->cloud, f->sim, "DELETE", "/_cloud/faults", TIDE_TEXT_NONE));
    tide_sim_cloud_fault(f->cloud, f->sim,
                         "{\"method\":\"gmail.users.history.list\",\"fault\":\"404\",\"count\":1}");
    sync_now(f, false);
    assert_int_equal(record(f, f->thread).status, TIDE_ASSISTANT_DRAFTED);
    assert_int_equal(events_of(f, f->thread, "manual_draft"), 0);
    assert_int_equal(f->asked[ASKED_DRAFT], 1);
    finish(f);
}

/* ---- random ---- */

struct chaos {
    struct fixture *f;
    tide_rng rng;
    char threads[THREADS_MAX][64];
    unsigned count;
};

static void act(struct chaos *chaos)
{
    static const char *const categories[] = {"needs_response", "needs_response", "fyi", "waiting",
                                             "action_required"};
    struct fixture *f = chaos->f;
    const char *thread =
        chaos->count == 0 ? NULL : chaos->threads[tide_rng_below(&chaos->rng, chaos->count)];
    const uint64_t what = tide_rng_below(&chaos->rng, 8);
    f->category = categories[tide_rng_below(&chaos->rng, 5)];
    if (what < 3 && chaos->count < THREADS_MAX) {
        deliver(f, "anna@example.com", textf("s%u", chaos->count), "text", NULL);
        (void)snprintf(chaos->threads[chaos->count++], 64, "%s", f->thread);
    } else if (thread == NULL) {
        return;
    } else if (what == 3) {
        deliver(f, "anna@example.com", "Re: s", "more", thread);
    } else if (what == 4) {
        label(f, thread, TIDE_ASSISTANT_LABEL_DONE, true);
    } else if (what == 5) {
        label(f, thread, TIDE_ASSISTANT_LABEL_NEEDS_RESPONSE, true);
    } else if (drafts_of(f, thread, false) > 0) {
        if (what == 6)
            label(f, thread, TIDE_ASSISTANT_LABEL_REWORK, true);
        else if (tide_rng_below(&chaos->rng, 2) == 0)
            send_draft(f, thread);
        else
            discard_draft(f, thread);
    }
}

/* What the server does to some calls of the next life: never more than a job has attempts. */
static void strike(struct chaos *chaos)
{
    static const char *const rules[] = {
        "{\"method\":\"gmail.users.history.list\",\"fault\":\"404\",\"count\":1}",
        "{\"method\":\"gmail.users.drafts.create\",\"fault\":\"reset-after\",\"count\":1}",
        "{\"method\":\"gmail.users.drafts.create\",\"fault\":\"500\",\"count\":1}",
        "{\"method\":\"gmail.users.threads.modify\",\"fault\":\"reset-after\",\"count\":1}",
        "{\"method\":\"gmail.users.threads.get\",\"fault\":\"truncate\",\"count\":1}",
        "{\"method\":\"gmail.users.messages.trash\",\"fault\":\"503\",\"count\":1}",
        "{\"method\":\"gmail.*\",\"fault\":\"429\",\"count\":1}",
    };
    const uint64_t which = tide_rng_below(&chaos->rng, 2 * sizeof rules / sizeof rules[0]);
    if (which < sizeof rules / sizeof rules[0])
        tide_sim_cloud_fault(chaos->f->cloud, chaos->f->sim, rules[which]);
}

static void run_seed(uint64_t seed)
{
    const struct tide_sim_options options = {.net = {.latency_us_max = 20000}};
    struct fixture *f = begin_in(seed, &options, NULL);
    struct chaos chaos = {.f = f, .rng = tide_rng_seeded(seed)};
    onboarded(f);
    for (int life = 0; life < LIVES; life++) {
        strike(&chaos);
        for (uint64_t acts = 1 + tide_rng_below(&chaos.rng, ACTS_MAX); acts > 0; acts--)
            act(&chaos);
        live(f, 20 + tide_rng_below(&chaos.rng, 6000),
             tide_rng_below(&chaos.rng, 2) == 0 ? TIDE_SIM_CRASH_KILL : TIDE_SIM_CRASH_POWER);
    }
    json_decref(
        tide_sim_cloud_control(f->cloud, f->sim, "DELETE", "/_cloud/faults", TIDE_TEXT_NONE));
    calm(f);
    for (unsigned i = 0; i < chaos.count; i++)
        check(f, chaos.threads[i], seed);
    assert_int_equal(failed_jobs(f), 0);
    finish(f);
}

TEST(record_labels_and_drafts_agree_after_any_crash)
{
    for (uint64_t seed = 1; seed <= scaled(25); seed++)
        run_seed(seed);
}
