/* model.c - a model that answers, lies, fails, is slow, and has no tokens left. */
#include "assistant_sim.h"

static const char *pick(struct asim_stage *stage, const char *const *from, size_t count)
{
    return from[tide_rng_below(&stage->rng, count)];
}
#define PICK(stage, list) pick(stage, list, sizeof(list) / sizeof((list)[0]))

/* ---- what it says ---- */

static const char *verdict(struct asim_stage *stage)
{
    static const char *const categories[] = {
        "needs_response", "needs_response",  "needs_response", "fyi",
        "waiting",        "action_required", "payment_request"};
    static const char *const lies[] = {
        "I am a teapot",
        "",
        "{\"category\":\"urgent\"}",
        "{\"category\":\"fyi\"} {\"category\":\"waiting\"}",
        "{\"category\":[\"fyi\"],\"thread_id\":\"0000000000000001\"}",
    };
    if (asim_happens(stage, AFAULT_MODEL_LIES, 8))
        return PICK(stage, lies);
    return textf("{\"category\":\"%s\",\"confidence\":\"high\",\"reasoning\":\"so\","
                 "\"detected_language\":\"en\",\"resolved_style\":\"business\"}",
                 PICK(stage, categories));
}

static const char *searches(struct asim_stage *stage)
{
    static const char *const all[] = {"{\"searches\":[]}", "{\"searches\":[]}",
                                      "{\"searches\":[\"subject:s1\"]}", "what?"};
    return PICK(stage, all);
}

#define SAYS(name, arguments)                                                                      \
    "{\"text\":\"\",\"stop\":\"tools\",\"parts\":[{\"call\":{\"id\":\"c\",\"name\":\"" name        \
    "\",\"arguments\":{" arguments "}}}]}"
#define LAST "{\"text\":\"bye\",\"stop\":\"done\",\"parts\":[{\"text\":\"bye\"}]}"

static const char *turn(struct asim_stage *stage)
{
    static const char *const all[] = {SAYS("create_draft", "\"text\":\"A draft.\""),
                                      SAYS("create_draft", "\"text\":\"A draft.\""),
                                      SAYS("send_reply", "\"text\":\"On its way.\""),
                                      SAYS("send_reply", "\"text\":\"On its way.\""),
                                      SAYS("add_label", "\"label\":\"Clients\""),
                                      SAYS("read_thread", "\"thread\":\"0000000000000001\""),
                                      SAYS("escalate", "\"reason\":\"A lawyer.\""),
                                      "{\"text\":7}",
                                      LAST,
                                      LAST,
                                      LAST};
    return PICK(stage, all);
}

static const char *answer_to(struct asim_stage *stage, const char *kind)
{
    static const char *const drafts[] = {"Dear Anna, yes.", "Dear Anna, yes.", "Dear Anna, no.",
                                         " \n", "Above.\n\n\xe2\x9c\x82\xef\xb8\x8f\n\nBelow."};
    return strcmp(kind, "classify") == 0  ? verdict(stage)
           : strcmp(kind, "context") == 0 ? searches(stage)
           : strcmp(kind, "agent") == 0   ? turn(stage)
                                          : PICK(stage, drafts);
}

/* ---- ASM7 ---- */

/* Whose question it is: "agent/1/THREAD/MESSAGE/2". */
static struct asim_thread *thread_of(struct asim_stage *stage, const char *key)
{
    char id[64] = "";
    (void)sscanf(key, "%*[^/]/%*[^/]/%63[^/]", id);
    return asim_thread(stage, id);
}

static struct asim_thread *answered(struct asim_stage *stage, tide_job *job)
{
    json_auto_t *payload = json_loads(tide_job_payload(job).data, 0, NULL);
    const char *key = json_string_value(json_object_get(payload, "key"));
    const uint32_t life = tide_sim_life(stage->f->sim);
    struct asim_question *question = stage->questions;
    const struct asim_question *const end = question + stage->questions_count;
    assert_non_null(key);
    while (question < end && strcmp(question->key, key) != 0)
        question++;
    if (question == end) {
        assert_true(stage->questions_count < ASIM_QUESTIONS_MAX);
        (void)snprintf(question->key, sizeof question->key, "%s", key);
        stage->questions_count++;
    }
    if (question->life == life)
        tide_sim_fail(stage->f->sim, "ASM7: %s is answered again", key);
    question->life = life;
    asim_say("answer to %s", key);
    stage->totals.questions++;
    return thread_of(stage, key);
}

/* ---- the call ---- */

static tide_status think(struct asim_stage *stage, tide_job *job)
{
    uint64_t ms = 1 + tide_rng_below(&stage->rng, 300);
    if (asim_happens(stage, AFAULT_MODEL_SLOW, 6))
        ms = 1000 * (1 + tide_rng_below(&stage->rng, 240));
    if (asim_happens(stage, AFAULT_ACT_WHILE_THINKING, 4)) {
        const tide_status rc = tide_job_sleep(job, ms / 2);
        if (rc != TIDE_OK)
            return rc;
        asim_act(stage);
    }
    return tide_job_sleep(job, ms);
}

static tide_status ask(struct asim_stage *stage, tide_job *job,
                       const struct tide_assistant_question *question,
                       struct tide_assistant_answer *answer, tide_error *err)
{
    static const tide_status failures[] = {TIDE_SERVER, TIDE_TIMEOUT, TIDE_PERMANENT, TIDE_NETWORK};
    const tide_status rc = think(stage, job);
    if (rc != TIDE_OK)
        return rc;
    if (asim_happens(stage, AFAULT_MODEL_FAILS, 10))
        return tide_error_set(err, failures[tide_rng_below(&stage->rng, 4)],
                              "the model is out of order");
    struct asim_thread *thread = answered(stage, job);
    const char *says = answer_to(stage, question->kind);
    if (thread != NULL) {
        thread->drafts += strstr(says, "create_draft") != NULL;
        thread->agent = thread->agent || strcmp(question->kind, "agent") == 0;
    }
    answer->tokens_in = 100;
    answer->tokens_out = 10;
    answer->latency_ms = 5;
    return tide_buf_add_text(answer->text, says);
}

tide_status asim_model(void *arg, tide_job *job, const struct tide_assistant_question *question,
                       struct tide_assistant_answer *answer, tide_error *err)
{
    struct asim_stage *stage = asim_now;
    const uint64_t now_us = asim_now_us(stage);
    (void)arg;
    if (stage->budget_until_us > now_us) { /* J27 */
        stage->totals.faults[AFAULT_OVER_BUDGET]++;
        return tide_job_again(job,
                              tide_job_now_ms(job) + (stage->budget_until_us - now_us) / 1000 + 1);
    }
    stage->open[AOPEN_QUESTION] = 0;
    asim_opens(TIDE_OK, AOPEN_ASKING);
    const tide_status rc = ask(stage, job, question, answer, err);
    if (rc != TIDE_STOPPED)
        stage->open[AOPEN_ASKING]--;
    asim_opens(rc, AOPEN_ANSWERED);
    return rc;
}
