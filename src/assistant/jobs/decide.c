#include "assistant/jobs/decide.h"

#include "base/check.h"

/* ---- sync ---- */

#define N TIDE_WORK_NONE
#define C TIDE_WORK_CLASSIFY
#define T TIDE_WORK_RETRIAGE
#define D TIDE_WORK_DONE
#define S TIDE_WORK_CHECK_SENT
#define R TIDE_WORK_REWORK
#define M TIDE_WORK_MANUAL_DRAFT
#define W TIDE_WORK_DRAFT
#define A TIDE_WORK_AGENT
#define L TIDE_WORK_LEFT

/* Rows: what is seen; columns: none, pending, drafted, rework_requested, sent, skipped, archived. */
static const unsigned char works[TIDE_SIGHTS][TIDE_ASSISTANT_STATUSES] = {
    [TIDE_SIGHT_MESSAGE] = {C, T, T, T, T, T, T},
    [TIDE_SIGHT_LISTED] = {C, N, N, N, N, N, N}, /* J5 */
    [TIDE_SIGHT_LISTED_GAP] = {C, T, T, T, T, T, T},
    [TIDE_SIGHT_LABELED_GAP] = {N, T, T, T, T, T,
                                T}, /* J5: without a record it is not ours to sort */
    [TIDE_SIGHT_DONE] = {D, D, D, D, D, D, D},
    [TIDE_SIGHT_REWORK] = {N, N, R, R, N, N, N},
    [TIDE_SIGHT_NEEDS_RESPONSE] = {M, M, M, N, M, M, M},
    [TIDE_SIGHT_DELETED] = {N, N, S, S, N, N, N},
    [TIDE_SIGHT_DONE_GAP] = {D, D, D, D, D, D, N},
    [TIDE_SIGHT_REWORK_GAP] = {N, N, R, R, N, N, N},
    /* A pending record has the label from us. */
    [TIDE_SIGHT_NEEDS_RESPONSE_GAP] = {M, N, M, N, M, M, M},
    [TIDE_SIGHT_DRAFT_GAP] = {N, N, S, S, N, N, N},
    [TIDE_SIGHT_STUCK] = {N, W, N, W, N, N, N},
    [TIDE_SIGHT_RUN] = {A, A, A, A, A, A, A},
    /* A round that is in work looks after it. */
    [TIDE_SIGHT_LEFT] = {L, N, L, N, L, L, L},
};

tide_assistant_work tide_assistant_work_for(tide_assistant_sight sight,
                                            tide_assistant_status status, bool same)
{
    TIDE_ASSERT(sight < TIDE_SIGHTS);
    TIDE_ASSERT(status < TIDE_ASSISTANT_STATUSES);
    if ((sight == TIDE_SIGHT_LISTED_GAP || sight == TIDE_SIGHT_LABELED_GAP) && same)
        return N;
    if (sight == TIDE_SIGHT_STUCK && same && status == TIDE_ASSISTANT_REWORK_REQUESTED)
        return R;
    return (tide_assistant_work)works[sight][status];
}

#undef N
#undef C
#undef T
#undef D
#undef S
#undef R
#undef M
#undef W
#undef A
#undef L

/* ---- labels ---- */

enum {
    BITS_CATEGORIES = TIDE_LABEL_BIT(NEEDS_RESPONSE) | TIDE_LABEL_BIT(ACTION_REQUIRED) |
                      TIDE_LABEL_BIT(PAYMENT_REQUESTS) | TIDE_LABEL_BIT(FYI) |
                      TIDE_LABEL_BIT(WAITING),
    BITS_STATE = BITS_CATEGORIES | TIDE_LABEL_BIT(OUTBOX), /* one of these at most (DCD1) */
    BITS_ALL = BITS_STATE | TIDE_LABEL_BIT(REWORK) | TIDE_LABEL_BIT(DONE),
};

/* The thread has `label` of ours and no other, Rework included: a new round begins, and a command of the
 * user that was carried out must not be seen again (J23).  Done is taken off only if the thread showed
 * one that is over: another one may come between the look and the change (DCD5). */
static void only(struct tide_assistant_plan *plan, const struct tide_assistant_facts *facts,
                 uint32_t label)
{
    plan->add = label;
    plan->take =
        (facts->done == TIDE_DONE_OVER ? BITS_ALL : BITS_ALL & ~TIDE_LABEL_BIT(DONE)) & ~label;
    plan->done = facts->done == TIDE_DONE_OPEN && facts->status == TIDE_ASSISTANT_ARCHIVED;
}

/* ---- classify ---- */

bool tide_assistant_classify_wanted(tide_assistant_round round,
                                    const struct tide_assistant_facts *facts)
{
    if (facts->status == TIDE_ASSISTANT_NO_STATUS || round == TIDE_ROUND_FORCE)
        return true;
    return round == TIDE_ROUND_RETRIAGE && facts->newer;
}

struct tide_assistant_plan tide_assistant_plan_classified(tide_assistant_round round,
                                                          const struct tide_assistant_facts *facts,
                                                          tide_assistant_category category)
{
    struct tide_assistant_plan plan = {.act = tide_assistant_classify_wanted(round, facts)};
    if (!plan.act)
        return plan;
    plan.event = round == TIDE_ROUND_RETRIAGE && facts->status != TIDE_ASSISTANT_NO_STATUS
                     ? "retriaged"
                     : "classified";
    if (category != TIDE_ASSISTANT_NEEDS_RESPONSE) {
        only(&plan, facts, 1u << tide_assistant_label_of(category));
        plan.status = TIDE_ASSISTANT_SKIPPED;
        plan.draft_stale = facts->draft;
        return plan;
    }
    /* J21: forced, with a draft that lives: it is answered already. */
    const bool in_work =
        facts->status == TIDE_ASSISTANT_DRAFTED || facts->status == TIDE_ASSISTANT_REWORK_REQUESTED;
    if (round == TIDE_ROUND_FORCE && facts->draft && in_work) {
        plan.add = TIDE_LABEL_BIT(OUTBOX);
        plan.take = BITS_CATEGORIES; /* a Rework label has its job */
        return plan;
    }
    only(&plan, facts, TIDE_LABEL_BIT(NEEDS_RESPONSE));
    plan.status = TIDE_ASSISTANT_PENDING;
    plan.draft_stale = facts->draft;
    plan.write = true;
    return plan;
}

/* ---- drafts ---- */

bool tide_assistant_draft_wanted(const struct tide_assistant_facts *facts)
{
    return facts->status == TIDE_ASSISTANT_PENDING;
}

struct tide_assistant_plan tide_assistant_plan_manual(const struct tide_assistant_facts *facts)
{
    if (facts->status == TIDE_ASSISTANT_REWORK_REQUESTED) /* its end takes the label off */
        return (struct tide_assistant_plan){.act = false};
    if (facts->status == TIDE_ASSISTANT_DRAFTED)
        return (struct tide_assistant_plan){.act = true, .take = TIDE_LABEL_BIT(NEEDS_RESPONSE)};
    /* A Done that was carried out must not be seen again (J23); one that was not is the user's last
     * word, perhaps. */
    return (struct tide_assistant_plan){
        .act = true,
        .write = true,
        .take = facts->status == TIDE_ASSISTANT_ARCHIVED ? TIDE_LABEL_BIT(DONE) : 0,
        .status = TIDE_ASSISTANT_PENDING,
        .event = "manual_draft"};
}

struct tide_assistant_plan tide_assistant_plan_drafted(const struct tide_assistant_facts *facts)
{
    struct tide_assistant_plan plan = {.act = tide_assistant_draft_wanted(facts)};
    if (!plan.act)
        return plan;
    only(&plan, facts, TIDE_LABEL_BIT(OUTBOX));
    plan.status = TIDE_ASSISTANT_DRAFTED;
    plan.event = "draft_created";
    return plan;
}

struct tide_assistant_plan tide_assistant_plan_gone(const struct tide_assistant_facts *facts)
{
    if (facts->status != TIDE_ASSISTANT_PENDING && facts->status != TIDE_ASSISTANT_REWORK_REQUESTED)
        return (struct tide_assistant_plan){.act = false};
    return (struct tide_assistant_plan){
        .act = true,
        /* What is in the trash may come back: not with the label of a draft that is gone.  Done has a
         * job of its own. */
        .take = BITS_STATE | TIDE_LABEL_BIT(REWORK),
        .status = TIDE_ASSISTANT_SKIPPED,
        .draft_stale = true,
        .event = "thread_gone"};
}

/* ---- rework ---- */

tide_assistant_rework tide_assistant_rework_for(const struct tide_assistant_facts *facts,
                                                uint32_t limit)
{
    if (facts->status != TIDE_ASSISTANT_DRAFTED && facts->status != TIDE_ASSISTANT_REWORK_REQUESTED)
        return TIDE_REWORK_NONE;
    if (facts->reworks >= limit)
        return TIDE_REWORK_LIMIT;
    return facts->reworks + 1 == limit ? TIDE_REWORK_LAST : TIDE_REWORK_WRITE;
}

struct tide_assistant_plan tide_assistant_plan_rework(const struct tide_assistant_facts *facts,
                                                      uint32_t limit)
{
    struct tide_assistant_plan plan = {.act = true};
    switch (tide_assistant_rework_for(facts, limit)) {
    case TIDE_REWORK_NONE:
        plan.act = false;
        break;
    case TIDE_REWORK_WRITE:
    case TIDE_REWORK_LAST:
        plan.status = TIDE_ASSISTANT_REWORK_REQUESTED; /* J26: before the model is called */
        plan.event = "rework_requested";
        plan.write = true;
        break;
    case TIDE_REWORK_LIMIT:
        plan.status = TIDE_ASSISTANT_SKIPPED;
        plan.add = TIDE_LABEL_BIT(ACTION_REQUIRED);
        plan.take = (BITS_STATE | TIDE_LABEL_BIT(REWORK)) & ~TIDE_LABEL_BIT(ACTION_REQUIRED);
        plan.event = "rework_limit_reached";
        break;
    }
    return plan;
}

struct tide_assistant_plan tide_assistant_plan_reworked(const struct tide_assistant_facts *facts,
                                                        uint32_t limit)
{
    struct tide_assistant_plan plan = {.act = facts->status == TIDE_ASSISTANT_REWORK_REQUESTED};
    if (!plan.act)
        return plan;
    plan.add = tide_assistant_rework_for(facts, limit) == TIDE_REWORK_LAST
                   ? TIDE_LABEL_BIT(ACTION_REQUIRED)
                   : TIDE_LABEL_BIT(OUTBOX);
    plan.take = (BITS_STATE | TIDE_LABEL_BIT(REWORK)) & ~plan.add;
    plan.status = TIDE_ASSISTANT_DRAFTED;
    plan.event = "draft_reworked";
    return plan;
}

/* ---- agents ---- */

tide_assistant_category tide_assistant_agent_category(const struct tide_assistant_agent_end *agent)
{
    return agent->look                     ? TIDE_ASSISTANT_ACTION_REQUIRED
           : agent->drafted || agent->sent ? TIDE_ASSISTANT_NEEDS_RESPONSE
                                           : TIDE_ASSISTANT_FYI;
}

struct tide_assistant_plan tide_assistant_plan_agent(const struct tide_assistant_facts *facts,
                                                     const struct tide_assistant_agent_end *agent)
{
    struct tide_assistant_plan plan = {.act = true, .event = "classified"};
    if (agent->done && !agent->look) { /* it stays as the user left it */
        plan.status = TIDE_ASSISTANT_ARCHIVED;
        return plan;
    }
    only(&plan, facts,
         agent->look      ? TIDE_LABEL_BIT(ACTION_REQUIRED)
         : agent->drafted ? TIDE_LABEL_BIT(OUTBOX)
         : agent->sent    ? 0
                          : TIDE_LABEL_BIT(FYI));
    plan.status = agent->drafted ? TIDE_ASSISTANT_DRAFTED
                  : agent->sent  ? TIDE_ASSISTANT_SENT
                                 : TIDE_ASSISTANT_SKIPPED;
    /* A draft of an earlier round; that of the run has taken its place. */
    plan.draft_stale = !agent->drafted && (facts->draft || agent->doubt);
    return plan;
}

/* ---- cleanup ---- */

struct tide_assistant_plan tide_assistant_plan_done(const struct tide_assistant_facts *facts)
{
    return (struct tide_assistant_plan){
        .act = true,
        .take = BITS_ALL & ~TIDE_LABEL_BIT(DONE),
        .take_inbox = true,
        .status = facts->status == TIDE_ASSISTANT_NO_STATUS ? TIDE_ASSISTANT_NO_STATUS
                                                            : TIDE_ASSISTANT_ARCHIVED,
        .event = facts->status == TIDE_ASSISTANT_NO_STATUS ? NULL : "archived",
    };
}

struct tide_assistant_plan tide_assistant_plan_check_sent(const struct tide_assistant_facts *facts,
                                                          bool there, bool sent)
{
    const bool had =
        facts->status == TIDE_ASSISTANT_DRAFTED || facts->status == TIDE_ASSISTANT_REWORK_REQUESTED;
    struct tide_assistant_plan plan = {.act = had && facts->draft && !there};
    if (!plan.act)
        return plan;
    plan.take = TIDE_LABEL_BIT(OUTBOX) | TIDE_LABEL_BIT(REWORK);
    plan.status = sent ? TIDE_ASSISTANT_SENT : TIDE_ASSISTANT_SKIPPED;
    plan.event = sent ? "sent" : "draft_discarded";
    return plan;
}
