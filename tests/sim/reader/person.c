/* person.c - mail that comes, the person who reads, other clients of the mailbox, troubles of the server. */
#include "reader_sim.h"

#include "base/check.h"

#define HOUR_MS UINT64_C(3600000)

/* ---- mail ---- */

void rsim_comes(struct rsim_stage *stage, uint64_t age_ms)
{
    static const uint16_t labels[] = {BOX_LABEL_INBOX, BOX_LABEL_UNREAD};
    char raw[400];
    const unsigned number = ++stage->delivered;
    (void)snprintf(raw, sizeof raw,
                   "From: Anna <anna@example.com>\r\nTo: " RSIM_ME "\r\nSubject: letter %u\r\n"
                   "Message-ID: <%u@example.com>\r\n\r\nHello %u\r\n",
                   number, number, number);
    /* No two messages are of one millisecond: the order of a list is that of the server. */
    const struct box_insert message = {.raw = tide_text_of(raw),
                                       .date_ms = tide_sim_net_unix_ms(stage->sim) - age_ms,
                                       .labels = labels,
                                       .labels_count = 2};
    (void)box_mailbox_insert(stage->mailbox, &message);
    stage->totals.messages++;
    if (stage->running && stage->arrived_count < RSIM_ARRIVALS_MAX)
        stage->arrived_us[stage->arrived_count++] = rsim_us(stage);
}

uint32_t rsim_some_slot(struct rsim_stage *stage)
{
    const uint32_t slots = box_mailbox_slots(stage->mailbox);
    for (int i = 0; i < 30 && slots > 0; i++) {
        const uint32_t slot = (uint32_t)tide_rng_below(&stage->rng, slots);
        if (!box_mailbox_at(stage->mailbox, slot)->gone &&
            !box_mailbox_has_label(stage->mailbox, slot, BOX_LABEL_DRAFT) &&
            !box_mailbox_has_label(stage->mailbox, slot, BOX_LABEL_SPAM))
            return slot;
    }
    return BOX_SLOT_NONE;
}

/* ---- reading ---- */

void rsim_look(struct rsim_stage *stage, bool watched)
{
    rsim_say("person: %s", watched ? "looks" : "looks away");
    stage->watched = watched;
    stage->looks_us = rsim_us(stage);
    tide_reader_look(stage->reader, watched);
}

void rsim_opens(struct rsim_stage *stage, uint32_t slot, bool timed)
{
    char id[BOX_ID_TEXT_BYTES];
    uint64_t job = 0;
    if (slot == BOX_SLOT_NONE || stage->opened_count == RSIM_OPENS_MAX)
        return;
    box_id_text(box_mailbox_at(stage->mailbox, slot)->id, id);
    const bool archived = rsim_in_archive(stage, id);
    struct rsim_opened *opened = &stage->opened[stage->opened_count++];
    *opened = (struct rsim_opened){.timed = timed};
    (void)snprintf(opened->message, sizeof opened->message, "%s", id);
    opened->asked_us = rsim_us(stage);
    rsim_say("person: opens %s", id);
    const tide_status rc =
        tide_reader_fetch(stage->reader, stage->account, opened->message, &job, NULL);
    if (rc != TIDE_OK || job == 0)
        opened->called = true;
    stage->totals.opens++;
    if (rc == TIDE_OK && job != 0 && archived)
        RSIM_FAIL(stage, "RSM9: message %s is fetched, and the archive has it", id);
}

static void walks(struct rsim_stage *stage)
{
    static const char *const folders[] = {"INBOX", "ALL", "STARRED", "TRASH"};
    const char *folder = folders[tide_rng_below(&stage->rng, 4)];
    uint64_t job = 0;
    switch (tide_rng_below(&stage->rng, 3)) {
    case 0:
        (void)tide_reader_more(stage->reader, stage->account, folder, &job, NULL);
        break;
    case 1:
        (void)tide_reader_refresh(stage->reader, stage->account, folder, &job, NULL);
        break;
    default:
        (void)tide_reader_search(stage->reader, stage->account, "letter", &job, NULL);
    }
}

/* ---- acting ---- */

static const char *const verbs[] = {"archive", "archive", "inbox",  "read",   "read",
                                    "unread",  "star",    "unstar", "trash",  "untrash",
                                    "spam",    "unspam",  "delete", "delete", "important"};

/* Stored in the list by the transaction that adds it (plants.c); here the person is told. */
static void accepted(struct rsim_stage *stage, const struct tide_reader_action *told)
{
    struct rsim_action *action = rsim_action(stage, told->id);
    if (action == NULL)
        RSIM_FAIL(stage, "RSM5: action %" PRIu64 " was accepted and not stored", told->id);
    action->accepted = true;
    stage->totals.actions++;
    rsim_check_shown(stage, action);
}

void rsim_acts(struct rsim_stage *stage)
{
    char ids[3][BOX_ID_TEXT_BYTES];
    tide_text messages[3];
    size_t count = 0;
    const size_t wanted = tide_rng_below(&stage->rng, 4) == 0 ? 3 : 1;
    while (count < wanted) {
        const uint32_t slot = rsim_some_slot(stage);
        if (slot == BOX_SLOT_NONE)
            break;
        box_id_text(box_mailbox_at(stage->mailbox, slot)->id, ids[count]);
        messages[count] = tide_text_of(ids[count]);
        for (size_t i = 0; i < count; i++)
            if (strcmp(ids[i], ids[count]) == 0)
                return;
        count++;
    }
    const struct tide_reader_wish wish = {
        .what = verbs[tide_rng_below(&stage->rng, sizeof verbs / sizeof verbs[0])],
        .messages = messages,
        .messages_count = count};
    struct tide_reader_action action = {.id = 0};
    if (count == 0 || stage->actions_count == RSIM_ACTIONS_MAX)
        return;
    rsim_say("person: %s %s (%zu)", wish.what, ids[0], count);
    if (tide_reader_act(stage->reader, stage->account, &wish, &action, NULL) == TIDE_OK &&
        action.id != 0)
        accepted(stage, &action);
}

static void undoes(struct rsim_stage *stage)
{
    uint64_t inverse = 0;
    if (stage->actions_count == 0)
        return;
    const uint64_t back = tide_rng_below(&stage->rng, 3);
    if (back >= stage->actions_count)
        return;
    const struct rsim_action *action = &stage->actions[stage->actions_count - 1 - back];
    const uint64_t id = action->id;
    rsim_say("person: undoes %" PRIu64, id);
    if (action->gone ||
        tide_reader_undo(stage->reader, stage->account, id, &inverse, NULL) != TIDE_OK)
        return;
    stage->totals.faults[inverse == 0 ? RFAULT_TAKEN_BACK : RFAULT_INVERTED]++;
    if (inverse != 0)
        accepted(stage, &(struct tide_reader_action){.id = inverse});
}

static void pins(struct rsim_stage *stage)
{
    char id[BOX_ID_TEXT_BYTES];
    const uint32_t slot = rsim_some_slot(stage);
    if (slot == BOX_SLOT_NONE)
        return;
    box_id_text(box_mailbox_at(stage->mailbox, slot)->id, id);
    const tide_text message = tide_text_of(id);
    const struct tide_reader_wish wish = {.what = "pin", .messages = &message, .messages_count = 1};
    struct tide_reader_action action;
    (void)tide_reader_act(stage->reader, stage->account, &wish, &action, NULL);
}

/* ---- other clients ---- */

static void other_client(struct rsim_stage *stage)
{
    static const uint16_t labels[] = {BOX_LABEL_INBOX, BOX_LABEL_UNREAD, BOX_LABEL_STARRED,
                                      BOX_LABEL_TRASH};
    const uint32_t slot = rsim_some_slot(stage);
    const uint16_t label = labels[tide_rng_below(&stage->rng, 4)];
    if (slot == BOX_SLOT_NONE)
        return;
    char id[BOX_ID_TEXT_BYTES];
    box_id_text(box_mailbox_at(stage->mailbox, slot)->id, id);
    if (tide_rng_below(&stage->rng, 8) == 0) {
        rsim_say("another client: removes %s", id);
        box_mailbox_remove(stage->mailbox, slot);
        stage->totals.faults[RFAULT_GONE]++;
        return;
    }
    const bool has = box_mailbox_has_label(stage->mailbox, slot, label);
    rsim_say("another client: %s %s %s", id, has ? "loses" : "gets",
             box_mailbox_label(stage->mailbox, label)->id);
    box_mailbox_relabel(stage->mailbox, slot, &label, !has, &label, has);
    stage->totals.faults[RFAULT_OTHER_CLIENT]++;
}

void rsim_step(struct rsim_stage *stage)
{
    const uint64_t what = tide_rng_below(&stage->rng, 40);
    stage->totals.acts++;
    if (what < 8)
        rsim_comes(stage, 0);
    else if (what < 15)
        rsim_opens(stage, rsim_some_slot(stage), false);
    else if (what < 28)
        rsim_acts(stage);
    else if (what < 31)
        undoes(stage);
    else if (what < 33)
        walks(stage);
    else if (what < 34)
        pins(stage);
    else if (what < 38)
        other_client(stage);
    else
        rsim_look(stage, !stage->watched);
}

/* ---- troubles ---- */

static void cache_lost(struct rsim_stage *stage)
{
    static const char *const ends[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < 3; i++) {
        char path[80];
        (void)snprintf(path, sizeof path, "/cache/" RSIM_ME ".db%s", ends[i]);
        (void)tide_sim_disk_remove(stage->sim, path);
    }
}

void rsim_trouble(struct rsim_stage *stage)
{
    static const struct {
        enum rsim_fault fault;
        const char *rule;
    } troubles[] = {
        {RFAULT_THROTTLED, "{\"method\":\"gmail.*\",\"fault\":\"429\",\"count\":1}"},
        {RFAULT_SERVER_ERROR, "{\"method\":\"gmail.*\",\"fault\":\"500\",\"count\":2}"},
        {RFAULT_SERVER_ERROR,
         "{\"method\":\"gmail.users.messages.modify\",\"fault\":\"503\",\"count\":2}"},
        {RFAULT_RESET_AFTER,
         "{\"method\":\"gmail.users.messages.modify\",\"fault\":\"reset-after\",\"count\":1}"},
        {RFAULT_RESET_AFTER,
         "{\"method\":\"gmail.users.messages.delete\",\"fault\":\"reset-after\",\"count\":1}"},
        {RFAULT_TRUNCATED,
         "{\"method\":\"gmail.users.history.list\",\"fault\":\"truncate\",\"count\":1}"},
        {RFAULT_TRUNCATED,
         "{\"method\":\"gmail.users.messages.get\",\"fault\":\"truncate\",\"count\":2}"},
        {RFAULT_REFUSED,
         "{\"method\":\"gmail.users.messages.modify\",\"fault\":\"403\",\"count\":1}"},
        {RFAULT_REFUSED,
         "{\"method\":\"gmail.users.messages.modify\",\"fault\":\"403\",\"count\":2}"},
    };
    json_decref(tide_sim_cloud_control(stage->cloud, stage->sim, "DELETE", "/_cloud/faults",
                                       TIDE_TEXT_NONE));
    if (stage->calm)
        return;
    for (uint64_t i = tide_rng_below(&stage->rng, 4); i > 0; i--) {
        const size_t at = tide_rng_below(&stage->rng, sizeof troubles / sizeof troubles[0]);
        rsim_say("trouble: %s", troubles[at].rule);
        tide_sim_cloud_fault(stage->cloud, stage->sim, troubles[at].rule);
        stage->totals.faults[troubles[at].fault]++;
    }
    if (rsim_happens(stage, RFAULT_HISTORY_EXPIRED, 8)) {
        rsim_say("the history expires");
        stage->expired = true;
        box_mailbox_history_expire_all(stage->mailbox);
    }
    /* After a gap the mirror does not know which labels changed in it (mail_sim.h), and a reader without
     * a cache has only what the mirror knows. */
    if (!stage->running && !stage->expired && rsim_happens(stage, RFAULT_CACHE_LOST, 6)) {
        rsim_say("the cache is lost");
        cache_lost(stage);
    }
}
