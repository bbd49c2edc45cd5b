/* rules.c - what holds after each change that a handler makes in the mailbox, and in the end. */
#include "assistant_sim.h"

#include "ledger/rows.h"

#define BIT(label) (1u << TIDE_ASSISTANT_LABEL_##label)
#define DAYS_10_MS UINT64_C(864000000)
#define FAIL(...)  tide_sim_fail(stage->f->sim, __VA_ARGS__)

enum {
    BITS_STATE = BIT(NEEDS_RESPONSE) | BIT(ACTION_REQUIRED) | BIT(PAYMENT_REQUESTS) | BIT(FYI) |
                 BIT(WAITING) | BIT(OUTBOX),
};

/* ---- what a thread has ---- */

struct look {
    unsigned labels, newest_labels; /* bits; of all messages, and of the newest that came */
    uint32_t newest;                /* slot; BOX_SLOT_NONE: none came, or it is in the trash */
    unsigned letters;               /* neither drafts nor in the trash */
    bool inbox;
};

static unsigned labels_at(struct fixture *f, uint32_t slot)
{
    unsigned bits = 0;
    for (unsigned i = 1; i < TIDE_ASSISTANT_LABELS; i++)
        if (box_mailbox_has_label(f->mailbox, slot, label_number(f, (tide_assistant_label)i)))
            bits |= 1u << i;
    return bits;
}

static void look_one(struct fixture *f, uint32_t slot, void *arg)
{
    struct look *look = arg;
    look->labels |= labels_at(f, slot);
    if (box_mailbox_has_label(f->mailbox, slot, BOX_LABEL_DRAFT) ||
        box_mailbox_has_label(f->mailbox, slot, BOX_LABEL_TRASH))
        return;
    look->letters++;
    look->inbox = look->inbox || box_mailbox_has_label(f->mailbox, slot, BOX_LABEL_INBOX);
    if (box_mailbox_has_label(f->mailbox, slot, BOX_LABEL_SENT))
        return;
    look->newest = slot;
    look->newest_labels = labels_at(f, slot);
}

static struct look look_at(struct asim_stage *stage, const struct asim_thread *thread)
{
    struct look look = {.newest = BOX_SLOT_NONE};
    each_message(stage->f, thread->id, look_one, &look);
    return look;
}

/* Drafts that a call of ours made and that are not in the trash. */
static unsigned drafts_of_ours(struct asim_stage *stage, const struct asim_thread *thread)
{
    box_mailbox *mailbox = stage->f->mailbox;
    unsigned count = 0;
    for (uint32_t i = 0; i < box_mailbox_drafts(mailbox); i++) {
        const struct box_draft *draft = box_mailbox_draft_at(mailbox, i);
        char id[64];
        if (!stage->ours[i] || draft->gone ||
            box_mailbox_has_label(mailbox, draft->slot, BOX_LABEL_TRASH))
            continue;
        box_id_text(box_mailbox_at(mailbox, draft->slot)->thread_id, id);
        count += strcmp(id, thread->id) == 0;
    }
    return count;
}

/* ---- after a change ---- */

/* What a call changed in one thread. */
struct effect {
    bool changed, labeled, sent;
};

/* The threads that records of the history after `before` are about. */
static void effects_of(struct asim_stage *stage, uint64_t before,
                       struct effect effects[ASIM_THREADS_MAX])
{
    box_mailbox *mailbox = stage->f->mailbox;
    for (uint32_t i = box_mailbox_history_after(mailbox, before);
         i < box_mailbox_history_count(mailbox); i++) {
        const struct box_record *record = box_mailbox_history_at(mailbox, i);
        char id[64];
        box_id_text(box_mailbox_at(mailbox, record->slot)->thread_id, id);
        const struct asim_thread *thread = asim_thread(stage, id);
        if (thread == NULL)
            FAIL("ASM8: thread %s is none that came", id);
        struct effect *effect = &effects[thread - stage->threads];
        effect->changed = true;
        effect->sent =
            effect->sent || (record->change == BOX_CHANGE_ADDED &&
                             box_mailbox_has_label(mailbox, record->slot, BOX_LABEL_SENT));
        size_t count = 0;
        const uint16_t *labels = box_mailbox_labels(mailbox, record->changed, &count);
        for (size_t k = 0; record->change == BOX_CHANGE_LABELED && k < count; k++)
            for (unsigned label = 1; label < TIDE_ASSISTANT_LABELS; label++)
                effect->labeled =
                    effect->labeled ||
                    ((BITS_STATE >> label & 1u) != 0 &&
                     labels[k] == label_number(stage->f, (tide_assistant_label)label));
    }
}

static void check_effect(struct asim_stage *stage, struct asim_thread *thread,
                         const struct effect *effect)
{
    if (thread->expected == 0)
        FAIL("ASM8: thread %s is changed, and no handler of it asked for that", thread->id);
    thread->expected--;
    asim_say("thread %s: %s, %u drafts", thread->id, labels_of(stage->f, thread->id),
             drafts_of_ours(stage, thread));
    const struct look look = look_at(stage, thread);
    if (effect->labeled) {
        if (__builtin_popcount(look.labels & BITS_STATE) != 1)
            FAIL("ASM1: thread %s has the labels %s", thread->id, labels_of(stage->f, thread->id));
        thread->fiddled = false;
    }
    if (drafts_of_ours(stage, thread) > 1)
        FAIL("ASM2: thread %s has two drafts", thread->id);
    thread->sent += effect->sent;
    stage->totals.replies += effect->sent;
    if (thread->sent > thread->inbound)
        FAIL("ASM11: thread %s has %u replies to %u messages", thread->id, thread->sent,
             thread->inbound);
}

void asim_provide(void *cloud, const struct tide_request *request, uint64_t now_unix_ms,
                  tide_rng *rng, struct tide_sim_answer *answer)
{
    struct asim_stage *stage = asim_now;
    const bool gmail = strstr(request->url, "/gmail/v1/") != NULL;
    box_mailbox *mailbox = stage->f == NULL ? NULL : stage->f->mailbox;
    if (gmail && stage->running && asim_happens(stage, AFAULT_ACT_BETWEEN_CALLS, 40))
        asim_act(stage);
    const uint64_t before = mailbox == NULL ? 0 : box_mailbox_history_id(mailbox);
    const uint32_t drafts = mailbox == NULL ? 0 : box_mailbox_drafts(mailbox);
    tide_sim_cloud_call(cloud, request, now_unix_ms, rng, answer);
    if (!gmail || mailbox == NULL || box_mailbox_history_id(mailbox) == before)
        return;
    struct effect effects[ASIM_THREADS_MAX] = {{.changed = false}};
    effects_of(stage, before, effects);
    assert_true(box_mailbox_drafts(mailbox) <= ASIM_DRAFTS_MAX);
    for (uint32_t i = drafts; i < box_mailbox_drafts(mailbox); i++) {
        char id[64];
        box_id_text(box_mailbox_at(mailbox, box_mailbox_draft_at(mailbox, i)->slot)->thread_id, id);
        stage->ours[i] = true;
        stage->totals.drafts++;
        if (asim_thread(stage, id) != NULL)
            asim_thread(stage, id)->made++;
    }
    for (unsigned i = 0; i < stage->threads_count; i++)
        if (effects[i].changed)
            check_effect(stage, &stage->threads[i], &effects[i]);
}

/* ---- in the end ---- */

struct counting {
    struct asim_stage *stage;
    const char *query, *a, *b;
    uint64_t count;
};

static tide_status count_rows(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct counting *counting = arg;
    return tide_rows_number(tide_transaction_rows(transaction), "test", &counting->count, err,
                            counting->query, counting->a, counting->b);
}

static uint64_t count(struct asim_stage *stage, const char *query, const char *a, const char *b)
{
    struct counting counting = {stage, query, a, b, 0};
    OK(tide_transact(stage->f->engine, count_rows, &counting, err));
    return counting.count;
}

static tide_status say_jobs(tide_transaction *transaction, void *arg, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    (void)arg;
    tide_status rc =
        tide_rows_ask(tide_transaction_rows(transaction), "test", &stmt, err,
                      "SELECT id, state, attempts, open_deps, account, not_before, payload FROM job"
                      " WHERE state IN (0, 1, 3) AND 1 = ?1",
                      1);
    while (tide_rows_next(&stmt, &rc, err)) {
        char payload[400];
        tide_rows_get_copy(&stmt, 6, payload, sizeof payload);
        asim_say("left: job %d, state %d, attempts %d, open %d, account %d, not before %d, %s",
                 (int)tide_rows_get_i64(&stmt, 0), (int)tide_rows_get_i64(&stmt, 1),
                 (int)tide_rows_get_i64(&stmt, 2), (int)tide_rows_get_i64(&stmt, 3),
                 (int)tide_rows_get_i64(&stmt, 4),
                 (int)(tide_rows_get_i64(&stmt, 5) / 1000 % 86400), payload);
    }
    return rc;
}

void asim_say_jobs(struct asim_stage *stage)
{
    if (getenv("TIDE_SIM_LOG") != NULL)
        OK(tide_transact(stage->f->engine, say_jobs, NULL, err));
}

/* Of threads: what a sync that failed did not do the next one does. */
static uint64_t jobs_that_failed(struct asim_stage *stage)
{
    return count(stage, "SELECT count(*) FROM job WHERE state = 3 AND payload LIKE ?1 AND ?2 = ''",
                 "%\"thread_id\"%", "");
}

void asim_note_failed(struct asim_stage *stage)
{
    stage->totals.faults[AFAULT_JOB_FAILED] += jobs_that_failed(stage);
}

/* ASM3, ASM4 */
void asim_check_intake(struct asim_stage *stage)
{
    struct fixture *f = stage->f;
    const uint64_t now_ms = tide_sim_net_unix_ms(f->sim);
    for (unsigned i = 0; i < stage->threads_count; i++) {
        const struct asim_thread *thread = &stage->threads[i];
        const struct look look = look_at(stage, thread);
        if (look.newest == BOX_SLOT_NONE ||
            !box_mailbox_has_label(f->mailbox, look.newest, BOX_LABEL_INBOX) ||
            box_mailbox_at(f->mailbox, look.newest)->date_ms + DAYS_10_MS < now_ms)
            continue;
        const struct tide_assistant_email email = record(f, thread->id);
        /* One with a label of ours and no record is none that a full sync looks for (J4, J5): it came
         * between a look and a label, and history expired. */
        if (look.newest_labels != 0 &&
            (thread->returned || (email.status == TIDE_ASSISTANT_NO_STATUS &&
                                  stage->totals.faults[AFAULT_HISTORY_EXPIRED] > 0)))
            continue;
        uint64_t known = 0;
        if (email.status == TIDE_ASSISTANT_NO_STATUS)
            FAIL("ASM3: thread %s has no record", thread->id);
        if (!box_id_parse(tide_text_of(email.message_id), &known) ||
            known < box_mailbox_at(f->mailbox, look.newest)->id)
            FAIL("ASM4: the record of thread %s does not know its newest message", thread->id);
    }
}

/* ASM5 */
static void check_once(struct asim_stage *stage, const struct asim_thread *thread)
{
    const struct {
        const char *event;
        uint64_t most;
    } events[] = {{"archived", thread->done},
                  {"manual_draft", thread->needs},
                  {"draft_reworked", thread->rework},
                  {"rework_requested", thread->rework}};
    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++) {
        const unsigned is = events_of(stage->f, thread->id, events[i].event);
        if (is > events[i].most)
            FAIL("ASM5: thread %s has %u events %s, of %d commands", thread->id, is,
                 events[i].event, (int)events[i].most);
    }
    const unsigned most = thread->inbound + thread->needs + thread->rework + thread->forced +
                          thread->drafts + thread->touched + thread->orphans +
                          events_of(stage->f, thread->id, "resumed");
    if (thread->made > most)
        FAIL("ASM5: thread %s got %u drafts, and %u were wanted", thread->id, thread->made, most);
}

/* ASM6 */
static void check_commands(struct asim_stage *stage, const struct asim_thread *thread,
                           const struct look *look, const struct tide_assistant_email *email)
{
    const char *why =
        /* The end of an agent's run is the last word about its message. */
        (look->labels & BIT(NEEDS_RESPONSE)) != 0 && !thread->agent ? "Needs Response"
        : (look->labels & BIT(REWORK)) != 0 && email->status == TIDE_ASSISTANT_DRAFTED ? "Rework"
        : (look->labels & BIT(DONE)) != 0 &&
                ((look->inbox && !thread->returned) || (email->status != TIDE_ASSISTANT_ARCHIVED &&
                                                        email->status != TIDE_ASSISTANT_NO_STATUS))
            ? "Done"
            : NULL;
    if (why != NULL)
        FAIL("ASM6: %s of thread %s is not acted upon (status %s, labels %s)", why, thread->id,
             tide_assistant_status_name(email->status), labels_of(stage->f, thread->id));
}

/* ASM10 */
static void check_agree(struct asim_stage *stage, const struct asim_thread *thread,
                        const struct look *look, const struct tide_assistant_email *email)
{
    const unsigned drafts = drafts_of_ours(stage, thread);
    const unsigned state = look->labels & BITS_STATE;
    const bool drafted = email->status == TIDE_ASSISTANT_DRAFTED;
    const char *why = NULL;
    if (drafted && drafts != 1)
        why = "drafted without a draft";
    else if (email->status == TIDE_ASSISTANT_SENT && drafts > 0)
        why = "sent with a draft";
    else if (email->status == TIDE_ASSISTANT_SENT && email->draft_id[0] != '\0')
        why = "sent with a draft that counts as there";
    else if (!thread->fiddled && __builtin_popcount(state) > 1)
        why = "two labels";
    else if (!thread->fiddled && drafted != (state == BIT(OUTBOX)) &&
             (look->inbox || !thread->agent) && /* agents sort what is in the inbox */
             state != BIT(ACTION_REQUIRED))     /* also after the last rework */
        why = "the label is not that of the status";
    else if (!thread->fiddled && email->status == TIDE_ASSISTANT_ARCHIVED &&
             (look->labels & ~BIT(REWORK)) != BIT(DONE))
        why = "archived without Done";
    if (why != NULL)
        FAIL("ASM10: thread %s: %s (status %s, labels %s, %u drafts)", thread->id, why,
             tide_assistant_status_name(email->status), labels_of(stage->f, thread->id), drafts);
}

static void check_thread(struct asim_stage *stage, const struct asim_thread *thread)
{
    const struct look look = look_at(stage, thread);
    const struct tide_assistant_email email = record(stage->f, thread->id);
    if (email.status == TIDE_ASSISTANT_PENDING || email.status == TIDE_ASSISTANT_REWORK_REQUESTED)
        FAIL("ASM9: thread %s is %s for good", thread->id,
             tide_assistant_status_name(email.status));
    if (count(stage, "SELECT count(*) FROM assistant_email WHERE thread_id = ?1 AND ?2 = ''",
              thread->id, "") > 1)
        FAIL("ASM10: thread %s has two records", thread->id);
    if (count(stage,
              "SELECT count(*) FROM assistant_draft WHERE state IN (0, 2) AND thread_id = ?1 AND"
              " ?2 = ''",
              thread->id, "") > 0)
        FAIL("ASM9: a draft of thread %s is stale or being made for good", thread->id);
    check_once(stage, thread);
    if (look.letters == 0)
        return;
    check_commands(stage, thread, &look, &email);
    check_agree(stage, thread, &look, &email);
}

void asim_check_end(struct asim_stage *stage)
{
    struct tide_progress progress;
    tide_engine_progress(stage->f->engine, &progress);
    for (unsigned i = 0; i < stage->threads_count; i++)
        check_thread(stage, &stage->threads[i]);
    if (progress.running[0] + progress.running[1] + progress.waiting[0] + progress.waiting[1] > 0)
        FAIL("ASM9: jobs wait for good");
    if (progress.failed > 0)
        FAIL("ASM9: %d jobs failed in calm hours", (int)progress.failed);
    if (jobs_that_failed(stage) > 0)
        FAIL("ASM9: %d jobs failed for good", (int)jobs_that_failed(stage));
    if (count(stage, "SELECT count(*) FROM assistant_run WHERE ended_ms = 0 AND ?1 = ?2", "", "") >
        0)
        FAIL("ASM9: a run did not end");
}
