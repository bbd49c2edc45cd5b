/* users.c - mail that comes, the user of the mailbox, and the troubles of the server. */
#include "assistant_sim.h"

#define DAY_MS UINT64_C(86400000)

/* ---- mail ---- */

static const char *sender(struct asim_stage *stage)
{
    static const char *const senders[] = {"anna@example.com",     "bob@example.com",
                                          "anna@desk.example",    "anna@desk.example",
                                          "noreply@shop.example", "x@ads.example"};
    return senders[tide_rng_below(&stage->rng, sizeof senders / sizeof senders[0])];
}

/* Mail from before the window comes in by an import: history alone tells of it. */
static void deliver_old(struct asim_stage *stage)
{
    static const uint16_t labels[] = {BOX_LABEL_INBOX};
    struct fixture *f = stage->f;
    const char *raw = textf("From: old@example.com\r\nTo: " ME "\r\nSubject: old\r\n"
                            "Message-ID: <old%u@example.com>\r\n\r\ntext\r\n",
                            ++f->delivered);
    const struct box_insert message = {.raw = tide_text_of(raw),
                                       .date_ms = tide_sim_net_unix_ms(f->sim) - 20 * DAY_MS,
                                       .labels = labels,
                                       .labels_count = 1};
    const uint32_t slot = box_mailbox_insert(f->mailbox, &message);
    box_id_text(box_mailbox_at(f->mailbox, slot)->thread_id, f->thread);
    stage->totals.faults[AFAULT_OLD_MAIL]++;
}

/* `thread` NULL: of a new one.  A thread that is gone is a new one, too. */
static void come(struct asim_stage *stage, struct asim_thread *thread)
{
    struct fixture *f = stage->f;
    if (stage->threads_count == ASIM_THREADS_MAX)
        return;
    if (thread == NULL && tide_rng_below(&stage->rng, 25) == 0)
        deliver_old(stage);
    else
        deliver(f, sender(stage), textf("s%u", f->delivered), "text",
                thread == NULL ? NULL : thread->id);
    thread = asim_thread(stage, f->thread);
    if (thread == NULL) {
        thread = &stage->threads[stage->threads_count++];
        (void)snprintf(thread->id, sizeof thread->id, "%s", f->thread);
    }
    thread->inbound++;
    stage->totals.messages++;
}

/* ---- the user and labels ---- */

struct labelling {
    uint16_t add, take;
    bool changed;
};

static void relabel_one(struct fixture *f, uint32_t slot, void *arg)
{
    struct labelling *one = arg;
    const uint16_t none = BOX_LABEL_DRAFT;
    if (box_mailbox_has_label(f->mailbox, slot, BOX_LABEL_DRAFT) ||
        box_mailbox_has_label(f->mailbox, slot, BOX_LABEL_TRASH))
        return;
    const bool adds = one->add != none && !box_mailbox_has_label(f->mailbox, slot, one->add);
    const bool takes = one->take != none && box_mailbox_has_label(f->mailbox, slot, one->take);
    one->changed = one->changed || adds || takes;
    box_mailbox_relabel(f->mailbox, slot, &one->add, adds, &one->take, takes);
}

/* Whether a message changed; BOX_LABEL_DRAFT: no label. */
static bool relabel(struct asim_stage *stage, const struct asim_thread *thread, uint16_t add,
                    uint16_t take)
{
    struct labelling one = {add, take, false};
    each_message(stage->f, thread->id, relabel_one, &one);
    return one.changed;
}

static void command(struct asim_stage *stage, struct asim_thread *thread,
                    tide_assistant_label label, unsigned *count)
{
    if (relabel(stage, thread, label_number(stage->f, label), BOX_LABEL_DRAFT))
        (*count)++;
    /* Taken back: at once, or when it may have been seen. */
    if (tide_rng_below(&stage->rng, 12) == 0 &&
        relabel(stage, thread, BOX_LABEL_DRAFT, label_number(stage->f, label))) {
        thread->fiddled = true;
        stage->totals.faults[AFAULT_TAKEN_BACK]++;
    }
}

static void fiddle(struct asim_stage *stage, struct asim_thread *thread)
{
    const tide_assistant_label label =
        (tide_assistant_label)(1 + tide_rng_below(&stage->rng, TIDE_ASSISTANT_LABELS - 1));
    const bool command = label == TIDE_ASSISTANT_LABEL_NEEDS_RESPONSE ||
                         label == TIDE_ASSISTANT_LABEL_REWORK || label == TIDE_ASSISTANT_LABEL_DONE;
    const uint16_t number = label_number(stage->f, label);
    const bool changed = command || tide_rng_below(&stage->rng, 2) == 0
                             ? relabel(stage, thread, BOX_LABEL_DRAFT, number)
                             : relabel(stage, thread, number, BOX_LABEL_DRAFT);
    if (!changed)
        return;
    thread->fiddled = true;
    stage->totals.faults[AFAULT_FIDDLED]++;
}

/* ---- the user and drafts ---- */

static void with_draft(struct asim_stage *stage, struct asim_thread *thread)
{
    struct fixture *f = stage->f;
    const uint32_t draft = draft_in(f, thread->id);
    if (draft == BOX_SLOT_NONE) { /* notes for a draft to come */
        edit_draft(f, thread->id, "say no, politely\r\n");
        return;
    }
    static const uint16_t trash = BOX_LABEL_TRASH;
    const uint64_t what = tide_rng_below(&stage->rng, 5);
    asim_say("draft %d", (int)what);
    thread->touched++;
    switch (what) {
    case 0:
        edit_draft(f, thread->id, "Shorter.\r\n\r\n\xe2\x9c\x82\xef\xb8\x8f\r\n\r\nDear Anna\r\n");
        break;
    case 1:
        discard_draft(f, thread->id);
        break;
    case 2:
        box_mailbox_relabel(f->mailbox, box_mailbox_draft_at(f->mailbox, draft)->slot, &trash, 1,
                            NULL, 0);
        break;
    default:
        send_draft(f, thread->id);
    }
}

/* ---- the user and messages ---- */

static void remove_one(struct fixture *f, uint32_t slot, void *arg)
{
    (void)arg;
    box_mailbox_remove(f->mailbox, slot);
}

static void trash_one(struct fixture *f, uint32_t slot, void *arg)
{
    static const uint16_t trash = BOX_LABEL_TRASH, inbox = BOX_LABEL_INBOX;
    (void)arg;
    if (!box_mailbox_has_label(f->mailbox, slot, BOX_LABEL_DRAFT))
        box_mailbox_relabel(f->mailbox, slot, &trash, 1, &inbox, 1);
}

static void tidy(struct asim_stage *stage, struct asim_thread *thread)
{
    const uint64_t what = tide_rng_below(&stage->rng, 6);
    asim_say("tidy %d", (int)what);
    switch (what) {
    case 0:
        each_message(stage->f, thread->id, remove_one, NULL);
        stage->totals.faults[AFAULT_THREAD_GONE]++;
        break;
    case 1:
        each_message(stage->f, thread->id, trash_one, NULL);
        stage->totals.faults[AFAULT_THREAD_GONE]++;
        break;
    case 2:
        (void)relabel(stage, thread, BOX_LABEL_DRAFT, BOX_LABEL_INBOX);
        break;
    case 3:
        thread->returned =
            relabel(stage, thread, BOX_LABEL_INBOX, BOX_LABEL_DRAFT) || thread->returned;
        break;
    default:
        (void)relabel(stage, thread, BOX_LABEL_DRAFT, BOX_LABEL_UNREAD);
    }
}

void asim_act(struct asim_stage *stage)
{
    struct asim_thread *thread =
        stage->threads_count == 0
            ? NULL
            : &stage->threads[tide_rng_below(&stage->rng, stage->threads_count)];
    const uint64_t what = tide_rng_below(&stage->rng, 32);
    stage->totals.acts++;
    asim_say("act %d on %s", (int)what, thread == NULL ? "" : thread->id);
    if (what < 9 || thread == NULL)
        come(stage, NULL);
    else if (what < 13)
        come(stage, thread);
    else if (what < 16)
        command(stage, thread, TIDE_ASSISTANT_LABEL_DONE, &thread->done);
    else if (what < 19)
        command(stage, thread, TIDE_ASSISTANT_LABEL_NEEDS_RESPONSE, &thread->needs);
    else if (what < 23)
        command(stage, thread, TIDE_ASSISTANT_LABEL_REWORK, &thread->rework);
    else if (what < 28)
        with_draft(stage, thread);
    else if (what < 30)
        fiddle(stage, thread);
    else
        tidy(stage, thread);
}

/* ---- troubles ---- */

void asim_trouble(struct asim_stage *stage)
{
    static const struct {
        enum asim_fault fault;
        const char *rule;
    } troubles[] = {
        {AFAULT_THROTTLED, "{\"method\":\"gmail.*\",\"fault\":\"429\",\"count\":1}"},
        {AFAULT_SERVER_ERROR, "{\"method\":\"gmail.*\",\"fault\":\"500\",\"count\":2}"},
        {AFAULT_SERVER_ERROR,
         "{\"method\":\"gmail.users.messages.trash\",\"fault\":\"503\",\"count\":1}"},
        {AFAULT_RESET_AFTER,
         "{\"method\":\"gmail.users.drafts.create\",\"fault\":\"reset-after\",\"count\":1}"},
        {AFAULT_RESET_AFTER,
         "{\"method\":\"gmail.users.threads.modify\",\"fault\":\"reset-after\",\"count\":2}"},
        {AFAULT_RESET_AFTER,
         "{\"method\":\"gmail.users.messages.send\",\"fault\":\"reset-after\",\"count\":1}"},
        {AFAULT_TRUNCATED,
         "{\"method\":\"gmail.users.threads.get\",\"fault\":\"truncate\",\"count\":1}"},
        {AFAULT_TRUNCATED,
         "{\"method\":\"gmail.users.history.list\",\"fault\":\"truncate\",\"count\":1}"},
    };
    struct fixture *f = stage->f;
    json_decref(
        tide_sim_cloud_control(f->cloud, f->sim, "DELETE", "/_cloud/faults", TIDE_TEXT_NONE));
    if (stage->calm)
        return;
    for (uint64_t i = tide_rng_below(&stage->rng, 3); i > 0; i--) {
        const size_t at = tide_rng_below(&stage->rng, sizeof troubles / sizeof troubles[0]);
        tide_sim_cloud_fault(f->cloud, f->sim, troubles[at].rule);
        stage->totals.faults[troubles[at].fault]++;
    }
    if (asim_happens(stage, AFAULT_HISTORY_EXPIRED, 5))
        box_mailbox_history_expire_all(f->mailbox);
}
