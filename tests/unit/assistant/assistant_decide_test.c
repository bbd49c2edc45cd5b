/* What the assistant decides (jobs/decide.h): every cell of its tables, and DCD1 to DCD5 over all
 * records that can be. */
#include "assistant/jobs/decide.h"
#include "support/test.h"

/* ---- sync ---- */

TEST(every_sight_of_every_status_has_its_work)
{
    /* Columns: none, pending, drafted, rework_requested, sent, skipped, archived.
     * . nothing, C classify, T retriage, D done, S check_sent, R rework, M manual_draft, W draft, A agent. */
    static const char letters[TIDE_WORKS + 1] = ".CTDSRMWAL";
    static const struct {
        tide_assistant_sight sight;
        bool same;
        const char *works;
    } table[] = {
        {TIDE_SIGHT_MESSAGE, false, "CTTTTTT"},
        {TIDE_SIGHT_LISTED, false, "C......"}, /* J5 */
        {TIDE_SIGHT_LISTED_GAP, false, "CTTTTTT"},
        {TIDE_SIGHT_LISTED_GAP, true, "......."},
        {TIDE_SIGHT_LABELED_GAP, false, ".TTTTTT"},
        {TIDE_SIGHT_LABELED_GAP, true, "......."},
        {TIDE_SIGHT_DONE, false, "DDDDDDD"},
        {TIDE_SIGHT_REWORK, false, "..RR..."},
        {TIDE_SIGHT_NEEDS_RESPONSE, false, "MMM.MMM"}, /* J14 */
        {TIDE_SIGHT_DELETED, false, "..SS..."},
        {TIDE_SIGHT_DONE_GAP, false, "DDDDDD."},
        {TIDE_SIGHT_REWORK_GAP, false, "..RR..."},
        {TIDE_SIGHT_NEEDS_RESPONSE_GAP, false, "M.M.MMM"},
        {TIDE_SIGHT_DRAFT_GAP, false, "..SS..."},
        {TIDE_SIGHT_STUCK, false, ".W.W..."},
        {TIDE_SIGHT_STUCK, true, ".W.R..."},
        {TIDE_SIGHT_RUN, false, "AAAAAAA"},
        {TIDE_SIGHT_LEFT, false, "L.L.LLL"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        for (unsigned status = 0; status < TIDE_ASSISTANT_STATUSES; status++) {
            const tide_assistant_work work = tide_assistant_work_for(
                table[i].sight, (tide_assistant_status)status, table[i].same);
            if (letters[work] != table[i].works[status])
                fail_msg("sight %u, status %s: %c instead of %c", (unsigned)table[i].sight,
                         tide_assistant_status_name((tide_assistant_status)status), letters[work],
                         table[i].works[status]);
        }
}

/* ---- all records there can be ---- */

typedef void check_one(const struct tide_assistant_facts *facts);

static void each(check_one *visit)
{
    struct tide_assistant_facts facts = {.newer = false};
    for (unsigned status = 0; status < TIDE_ASSISTANT_STATUSES; status++)
        for (unsigned category = 0; category < TIDE_ASSISTANT_CATEGORIES; category++)
            for (unsigned more = 0; more < 2; more++)
                for (unsigned reworks = 0; reworks < 5; reworks++)
                    for (unsigned draft = 0; draft < 6; draft++) {
                        facts.status = (tide_assistant_status)status;
                        facts.category = (tide_assistant_category)category;
                        facts.newer = more > 0;
                        facts.reworks = reworks;
                        facts.draft = draft % 2 == 1;
                        facts.done = (tide_assistant_done)(draft / 2);
                        visit(&facts);
                    }
}

#define L(name) TIDE_LABEL_BIT(name)
#define CATEGORIES                                                                                 \
    (L(NEEDS_RESPONSE) | L(ACTION_REQUIRED) | L(PAYMENT_REQUESTS) | L(FYI) | L(WAITING))
#define STATE (CATEGORIES | L(OUTBOX))

/* DCD1 and DCD2. */
static void check(const struct tide_assistant_facts *facts, const struct tide_assistant_plan *plan)
{
    if (!plan->act) {
        assert_int_equal(plan->add | plan->take, 0);
        assert_int_equal(plan->status, TIDE_ASSISTANT_NO_STATUS);
        assert_false(plan->draft_stale || plan->write || plan->take_inbox);
        return;
    }
    assert_int_equal(plan->add & plan->take, 0);
    if (plan->add != 0) {
        assert_int_equal(plan->add & (plan->add - 1), 0); /* one */
        assert_int_equal(plan->add & STATE, plan->add);
        for (unsigned label = 0; label < TIDE_ASSISTANT_LABELS; label++) {
            const uint32_t bit = 1u << label & CATEGORIES & ~plan->add;
            assert_int_equal(plan->take & bit, bit); /* and no other category stays */
        }
    }
    if (plan->status != TIDE_ASSISTANT_NO_STATUS)
        assert_true(tide_assistant_may_follow(facts->status, plan->status));
}

/* DCD5, of a plan that begins a round: a Done that is over goes; one that was put on since the look, or
 * is not carried out, stays, and of a record that was archived a job follows. */
static void check_done(const struct tide_assistant_facts *facts,
                       const struct tide_assistant_plan *plan)
{
    assert_int_equal(plan->take & L(DONE), facts->done == TIDE_DONE_OVER ? L(DONE) : 0);
    assert_int_equal(plan->done,
                     facts->done == TIDE_DONE_OPEN && facts->status == TIDE_ASSISTANT_ARCHIVED);
}

static struct tide_assistant_facts after(const struct tide_assistant_facts *facts,
                                         const struct tide_assistant_plan *plan,
                                         tide_assistant_category category)
{
    struct tide_assistant_facts next = *facts;
    if (plan->status != TIDE_ASSISTANT_NO_STATUS)
        next.status = plan->status;
    next.category = category;
    next.newer = false;
    if (plan->draft_stale)
        next.draft = false;
    return next;
}

/* ---- classify ---- */

static void check_classified(const struct tide_assistant_facts *facts)
{
    const bool is_new = facts->status == TIDE_ASSISTANT_NO_STATUS;
    const bool more = facts->newer;
    assert_int_equal(tide_assistant_classify_wanted(TIDE_ROUND_NEW, facts), is_new);
    assert_true(tide_assistant_classify_wanted(TIDE_ROUND_FORCE, facts));
    assert_int_equal(tide_assistant_classify_wanted(TIDE_ROUND_RETRIAGE, facts), is_new || more);
    for (unsigned round = 0; round < 3; round++)
        for (unsigned to = 1; to < TIDE_ASSISTANT_CATEGORIES; to++) {
            const tide_assistant_category category = (tide_assistant_category)to;
            const struct tide_assistant_plan plan =
                tide_assistant_plan_classified((tide_assistant_round)round, facts, category);
            check(facts, &plan);
            assert_int_equal(plan.act,
                             tide_assistant_classify_wanted((tide_assistant_round)round, facts));
            if (!plan.act)
                continue;
            const bool drafted = facts->status == TIDE_ASSISTANT_DRAFTED ||
                                 facts->status == TIDE_ASSISTANT_REWORK_REQUESTED;
            const bool kept = round == TIDE_ROUND_FORCE && facts->draft && drafted &&
                              category == TIDE_ASSISTANT_NEEDS_RESPONSE;
            assert_string_equal(plan.event, round == TIDE_ROUND_RETRIAGE && !is_new ? "retriaged"
                                                                                    : "classified");
            assert_int_equal(plan.write, category == TIDE_ASSISTANT_NEEDS_RESPONSE && !kept);
            assert_int_equal(plan.status, kept         ? TIDE_ASSISTANT_NO_STATUS
                                          : plan.write ? TIDE_ASSISTANT_PENDING
                                                       : TIDE_ASSISTANT_SKIPPED);
            assert_int_equal(plan.draft_stale, facts->draft && !kept); /* DCD3 */
            assert_int_equal(plan.add, kept ? L(OUTBOX) : 1u << tide_assistant_label_of(category));
            if (kept)
                assert_false((plan.take & L(DONE)) != 0 || plan.done);
            else
                check_done(facts, &plan);
            /* DCD4: the same round again finds nothing more to do, but for a forced one, which
             * says the same again. */
            const struct tide_assistant_facts next = after(facts, &plan, category);
            if (round != TIDE_ROUND_FORCE) {
                assert_false(tide_assistant_classify_wanted((tide_assistant_round)round, &next));
            } else {
                const struct tide_assistant_plan again =
                    tide_assistant_plan_classified(TIDE_ROUND_FORCE, &next, category);
                assert_int_equal(again.add, plan.add);
                assert_int_equal(again.write, plan.write);
            }
        }
}

TEST(every_classification_of_every_record)
{
    each(check_classified);
}

/* ---- drafts ---- */

static void check_drafts(const struct tide_assistant_facts *facts)
{
    const bool pending = facts->status == TIDE_ASSISTANT_PENDING;
    const bool drafted = facts->status == TIDE_ASSISTANT_DRAFTED;
    const bool in_work = facts->status == TIDE_ASSISTANT_REWORK_REQUESTED;
    assert_int_equal(tide_assistant_draft_wanted(facts), pending);
    const struct tide_assistant_plan manual = tide_assistant_plan_manual(facts);
    check(facts, &manual);
    assert_int_equal(manual.write, !drafted && !in_work);
    assert_int_equal(manual.act, !in_work);
    assert_int_equal(manual.take, drafted                                    ? L(NEEDS_RESPONSE)
                                  : facts->status == TIDE_ASSISTANT_ARCHIVED ? L(DONE)
                                                                             : 0);
    const struct tide_assistant_plan gone = tide_assistant_plan_gone(facts);
    check(facts, &gone);
    assert_int_equal(gone.act, pending || in_work);
    assert_true(!gone.act || (gone.status == TIDE_ASSISTANT_SKIPPED && gone.draft_stale));
    assert_int_equal(gone.take, gone.act ? STATE | L(REWORK) : 0);
    struct tide_assistant_plan plan = tide_assistant_plan_drafted(facts);
    check(facts, &plan);
    assert_int_equal(plan.act, pending);
    if (plan.act) {
        assert_int_equal(plan.add, L(OUTBOX));
        assert_int_equal(plan.status, TIDE_ASSISTANT_DRAFTED);
        assert_string_equal(plan.event, "draft_created");
        check_done(facts, &plan);
        const struct tide_assistant_facts next = after(facts, &plan, facts->category);
        assert_false(tide_assistant_draft_wanted(&next)); /* DCD4 */
    }
}

TEST(drafts_are_made_for_pending_records_alone)
{
    each(check_drafts);
}

/* ---- rework ---- */

static void check_rework(const struct tide_assistant_facts *facts)
{
    static const tide_assistant_rework wanted[] = {TIDE_REWORK_WRITE, TIDE_REWORK_WRITE,
                                                   TIDE_REWORK_LAST, TIDE_REWORK_LIMIT,
                                                   TIDE_REWORK_LIMIT};
    const bool has =
        facts->status == TIDE_ASSISTANT_DRAFTED || facts->status == TIDE_ASSISTANT_REWORK_REQUESTED;
    const tide_assistant_rework rework = tide_assistant_rework_for(facts, 3);
    assert_int_equal(rework, has ? wanted[facts->reworks] : TIDE_REWORK_NONE);
    /* drafts.rework_limit may be 0. */
    assert_int_equal(tide_assistant_rework_for(facts, 0),
                     has ? TIDE_REWORK_LIMIT : TIDE_REWORK_NONE);
    const struct tide_assistant_plan plan = tide_assistant_plan_rework(facts, 3);
    check(facts, &plan);
    assert_int_equal(plan.act, has);
    assert_int_equal(plan.write, rework == TIDE_REWORK_WRITE || rework == TIDE_REWORK_LAST);
    if (rework == TIDE_REWORK_LIMIT) {
        assert_int_equal(plan.status, TIDE_ASSISTANT_SKIPPED);
        assert_string_equal(plan.event, "rework_limit_reached");
        assert_int_equal(plan.take & L(REWORK), L(REWORK));
        const struct tide_assistant_facts next = after(facts, &plan, facts->category);
        assert_int_equal(tide_assistant_rework_for(&next, 3), TIDE_REWORK_NONE);
    }
    const struct tide_assistant_plan made = tide_assistant_plan_reworked(facts, 3);
    check(facts, &made);
    assert_int_equal(made.act, facts->status == TIDE_ASSISTANT_REWORK_REQUESTED);
    if (made.act) {
        assert_int_equal(made.add, facts->reworks == 2 ? L(ACTION_REQUIRED) : L(OUTBOX));
        assert_int_equal(made.status, TIDE_ASSISTANT_DRAFTED);
        assert_int_equal(made.take & L(REWORK), L(REWORK));
    }
}

TEST(the_third_rework_is_the_last_and_the_fourth_asks_no_model)
{
    each(check_rework);
}

/* ---- cleanup ---- */

static void check_cleanup(const struct tide_assistant_facts *facts)
{
    const bool is_new = facts->status == TIDE_ASSISTANT_NO_STATUS;
    const bool had =
        facts->status == TIDE_ASSISTANT_DRAFTED || facts->status == TIDE_ASSISTANT_REWORK_REQUESTED;
    const struct tide_assistant_plan done = tide_assistant_plan_done(facts);
    check(facts, &done);
    assert_true(done.act && done.take_inbox);
    assert_int_equal(done.take, STATE | L(REWORK));
    assert_int_equal(done.status, is_new ? TIDE_ASSISTANT_NO_STATUS : TIDE_ASSISTANT_ARCHIVED);
    for (unsigned there = 0; there < 2; there++)
        for (unsigned sent = 0; sent < 2; sent++) {
            const struct tide_assistant_plan plan =
                tide_assistant_plan_check_sent(facts, there == 1, sent == 1);
            check(facts, &plan);
            assert_int_equal(plan.act, had && facts->draft && there == 0);
            if (!plan.act)
                continue;
            assert_int_equal(plan.status, sent ? TIDE_ASSISTANT_SENT : TIDE_ASSISTANT_SKIPPED);
            assert_string_equal(plan.event, sent ? "sent" : "draft_discarded");
            assert_int_equal(plan.take & L(OUTBOX), L(OUTBOX));
            const struct tide_assistant_facts next = after(facts, &plan, facts->category);
            assert_false(tide_assistant_plan_check_sent(&next, false, sent == 1).act);
        }
}

TEST(done_archives_and_a_draft_that_is_gone_was_sent_or_discarded)
{
    each(check_cleanup);
}

/* ---- agents ---- */

/* J15, J28: each end of a run, for each record. */
static void check_agent(const struct tide_assistant_facts *facts)
{
    for (unsigned bits = 0; bits < 16; bits++) {
        const struct tide_assistant_agent_end end = {.drafted = (bits & 1u) != 0,
                                                     .sent = (bits & 2u) != 0,
                                                     .look = (bits & 4u) != 0,
                                                     .doubt = (bits & 8u) != 0};
        const struct tide_assistant_plan plan = tide_assistant_plan_agent(facts, &end);
        struct tide_assistant_facts from = *facts;
        if (!tide_assistant_may_follow(from.status, plan.status)) {
            assert_true(tide_assistant_may_follow(from.status, TIDE_ASSISTANT_PENDING));
            from.status = TIDE_ASSISTANT_PENDING;
        }
        check(&from, &plan);
        check_done(facts, &plan);
        assert_true(plan.act);
        assert_int_equal(plan.add, end.look      ? L(ACTION_REQUIRED)
                                   : end.drafted ? L(OUTBOX)
                                   : end.sent    ? 0
                                                 : L(FYI));
        assert_int_equal((plan.add | plan.take) & STATE, STATE);
        assert_int_equal(plan.status, end.drafted ? TIDE_ASSISTANT_DRAFTED
                                      : end.sent  ? TIDE_ASSISTANT_SENT
                                                  : TIDE_ASSISTANT_SKIPPED);
        assert_int_equal(plan.draft_stale, !end.drafted && (facts->draft || end.doubt)); /* DCD3 */
        const tide_assistant_category category = tide_assistant_agent_category(&end);
        assert_int_equal(category, end.look                  ? TIDE_ASSISTANT_ACTION_REQUIRED
                                   : end.drafted || end.sent ? TIDE_ASSISTANT_NEEDS_RESPONSE
                                                             : TIDE_ASSISTANT_FYI);
        /* Done meanwhile: it stays as the user left it, unless a person must look. */
        struct tide_assistant_agent_end done = end;
        done.done = true;
        const struct tide_assistant_plan left = tide_assistant_plan_agent(facts, &done);
        assert_int_equal(left.status, end.look ? plan.status : TIDE_ASSISTANT_ARCHIVED);
        assert_int_equal(left.add | left.take, end.look ? plan.add | plan.take : 0);
    }
}

TEST(every_end_of_an_agent_for_every_record)
{
    each(check_agent);
}
