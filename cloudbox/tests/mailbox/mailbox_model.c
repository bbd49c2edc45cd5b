#include "mailbox_model.h"

uint32_t below(struct world *world, uint32_t bound)
{
    return (uint32_t)tide_rng_below(&world->rng, bound);
}

static void journal_add(void *arg, json_t *change)
{
    struct world *world = arg;
    assert_int_equal(json_array_append_new(world->journal, change), 0);
}

void model_record(struct world *world, uint32_t slot, const struct labels *changed,
                  box_change change, uint64_t history_id)
{
    struct model_message *message = &world->messages[slot];
    assert_true(world->records_count < RECORDS_MAX);
    assert_in_range(history_id, world->history_last + 1, world->history_last + 5);
    world->history_last = message->history_id = history_id;
    struct model_record *record = &world->records[world->records_count++];
    *record =
        (struct model_record){history_id, world->now_ms, slot, message->labels, {{0}}, change};
    if (changed != NULL)
        record->changed = *changed;
}

/* The history id of the record the mailbox wrote `back` places before its last. */
static uint64_t recorded(const struct world *world, uint32_t back)
{
    uint32_t count = box_mailbox_history_count(world->mailbox);
    assert_true(count > back);
    return box_mailbox_history_at(world->mailbox, count - 1 - back)->history_id;
}

static void take_generated(struct world *world)
{
    struct box_generator generator = {
        .seed = world->seed, .count = world->spec.generated, .newest_ms = NOW_MS};
    (void)snprintf(generator.email, sizeof generator.email, "%s", world->spec.email);
    world->history_last = 0;
    for (uint32_t n = 0; n < world->spec.generated; n++) {
        struct box_generated plan;
        box_generate_plan(&generator, n, &plan);
        struct model_message *message = &world->messages[world->messages_count++];
        message->date_ms = plan.date_ms;
        message->root = plan.root;
        message->message_id = -1;
        for (size_t i = 0; i < plan.labels_count; i++)
            message->labels.on[plan.labels[i] < 1000 ? plan.labels[i]
                                                     : plan.labels[i] - 1000 + BOX_LABELS_SYSTEM] =
                true;
        message->history_id = box_mailbox_at(world->mailbox, n)->history_id;
        assert_true(message->history_id > world->history_last);
        world->history_last = message->history_id;
        if (plan.date_ms < NOW_MS - KEEP_MS) {
            world->forgotten = world->history_last;
            continue;
        }
        struct model_record *record = &world->records[world->records_count++];
        *record = (struct model_record){message->history_id, plan.date_ms, n,
                                        message->labels,     {{0}},        BOX_CHANGE_ADDED};
    }
}

struct world *world_new(uint64_t seed, uint32_t generated)
{
    struct world *world = calloc(1, sizeof *world);
    assert_non_null(world);
    world->seed = seed;
    world->rng = tide_rng_seeded(seed * 977);
    world->now_ms = NOW_MS;
    world->journal = json_array();
    world->spec = (struct box_mailbox_spec){.seed = seed,
                                            .generated = generated,
                                            .now_ms = NOW_MS,
                                            .history_keep_ms = KEEP_MS,
                                            .email = "ada@example.com",
                                            .changed = journal_add,
                                            .changed_arg = world};
    world->mailbox = box_mailbox_new(&world->spec);
    world->forgotten = box_mailbox_history_oldest(world->mailbox);
    world->labels_count = BOX_LABELS_SYSTEM + (generated > 0 ? BOX_GENERATED_USER_LABELS : 0);
    assert_int_equal(box_mailbox_labels_count(world->mailbox), world->labels_count);
    take_generated(world);
    if (generated == 0)
        world->history_last = box_mailbox_history_id(world->mailbox);
    return world;
}

void world_free(struct world *world)
{
    box_mailbox_free(world->mailbox);
    json_decref(world->journal);
    free(world);
}

static uint32_t pick_message(struct world *world)
{
    if (world->messages_count == 0)
        return BOX_SLOT_NONE;
    for (int tries = 0; tries < 20; tries++) {
        /* The newest ones more often, as in life. */
        uint32_t slot = below(world, world->messages_count);
        if (below(world, 2) == 0)
            slot = world->messages_count - 1 - slot % (world->messages_count / 20 + 1);
        if (!world->messages[slot].gone)
            return slot;
    }
    return BOX_SLOT_NONE;
}

static uint32_t pick_draft(struct world *world)
{
    for (int tries = 0; tries < 10 && world->drafts_count > 0; tries++) {
        uint32_t draft = below(world, world->drafts_count);
        if (!world->drafts[draft].gone)
            return draft;
    }
    return BOX_SLOT_NONE;
}

uint16_t pick_label(struct world *world)
{
    for (;;) {
        uint32_t label = below(world, 3) == 0 ? below(world, world->labels_count) : below(world, 6);
        if (!world->label_gone[label])
            return (uint16_t)label;
    }
}

size_t pick_labels(struct world *world, uint16_t labels_out[4])
{
    size_t count = below(world, 5);
    for (size_t i = 0; i < count; i++)
        labels_out[i] = pick_label(world); /* also twice the same */
    return count;
}

uint64_t pick_date(struct world *world)
{
    switch (below(world, 4)) {
    case 0:
        return world->now_ms;
    case 1:
        return world->messages_count == 0
                   ? 5
                   : world->messages[below(world, world->messages_count)].date_ms;
    case 2:
        return NOW_MS - tide_rng_below(&world->rng, 400000000000u);
    default:
        return NOW_MS + below(world, 100) * 1000;
    }
}

bool thread_lives(const struct world *world, uint32_t root)
{
    for (uint32_t slot = root; slot < world->messages_count; slot++)
        if (world->messages[slot].root == root && !world->messages[slot].gone)
            return true;
    return false;
}

/* A thread by an id, else by the references, the nearest first and the newest
 * message of each first. */
static uint32_t model_thread(const struct world *world, const int *references, size_t count,
                             int subject)
{
    for (size_t i = count; i > 0; i--)
        for (uint32_t slot = world->messages_count; slot > 0; slot--) {
            const struct model_message *message = &world->messages[slot - 1];
            if (!message->gone && message->stored && message->message_id == references[i - 1] &&
                message->subject == subject)
                return message->root;
        }
    return BOX_SLOT_NONE;
}

static void arrival_make(struct world *world, struct arrival *arrival)
{
    static const char *const prefixes[] = {"", "Re: ", "FWD: re:", " fw: "};
    memset(arrival, 0, sizeof *arrival);
    arrival->message_id = below(world, 8) == 0 ? -1 : (int)below(world, 60);
    arrival->subject = (int)below(world, 4);
    int references[3];
    size_t references_count = below(world, 4);
    char line[128] = "";
    for (size_t i = 0; i < references_count; i++) {
        references[i] = (int)below(world, 70);
        size_t used = strlen(line);
        (void)snprintf(line + used, sizeof line - used, "%s <m%d@x>", i == 0 ? "References:" : "",
                       references[i]);
    }
    if (references_count > 0)
        (void)snprintf(line + strlen(line), 3, "\r\n");
    char message_id[32] = "";
    if (arrival->message_id >= 0)
        (void)snprintf(message_id, sizeof message_id, "Message-ID: <m%d@x>\r\n",
                       arrival->message_id);
    (void)snprintf(arrival->raw, sizeof arrival->raw, "%sSubject: %sTopic %d\r\n%s\r\nbody %u\r\n",
                   message_id, prefixes[below(world, 4)], arrival->subject, line,
                   below(world, 1000000));
    arrival->insert.raw = tide_text_of(arrival->raw);
    arrival->insert.date_ms = pick_date(world);
    arrival->insert.labels = arrival->labels;
    arrival->insert.labels_count = pick_labels(world, arrival->labels);
    arrival->root = model_thread(world, references, references_count, arrival->subject);
    if (below(world, 4) == 0 && world->messages_count > 0) {
        uint32_t root = world->messages[below(world, world->messages_count)].root;
        box_id_text(box_mailbox_at(world->mailbox, root)->id, arrival->thread_id);
        arrival->insert.thread_id = tide_text_of(arrival->thread_id);
        if (thread_lives(world, root))
            arrival->root = root;
    }
}

static struct model_message *model_arrive(struct world *world, const struct arrival *arrival)
{
    assert_true(world->messages_count < MESSAGES_MAX);
    uint32_t slot = world->messages_count++;
    struct model_message *message = &world->messages[slot];
    *message = (struct model_message){.date_ms = arrival->insert.date_ms,
                                      .root = arrival->root == BOX_SLOT_NONE ? slot : arrival->root,
                                      .message_id = arrival->message_id,
                                      .subject = arrival->subject,
                                      .stored = true};
    memcpy(message->raw, arrival->raw, sizeof message->raw);
    for (size_t i = 0; i < arrival->insert.labels_count; i++)
        message->labels.on[arrival->labels[i]] = true;
    return message;
}

static void model_remove(struct world *world, uint32_t slot, uint64_t history_id)
{
    model_record(world, slot, NULL, BOX_CHANGE_DELETED, history_id);
    world->messages[slot].gone = true;
    for (uint32_t i = 0; i < world->drafts_count; i++)
        if (world->drafts[i].slot == slot)
            world->drafts[i].gone = true;
}

void do_insert(struct world *world)
{
    struct arrival arrival;
    arrival_make(world, &arrival);
    uint32_t slot = box_mailbox_insert(world->mailbox, &arrival.insert);
    assert_int_equal(slot, world->messages_count);
    (void)model_arrive(world, &arrival);
    model_record(world, slot, NULL, BOX_CHANGE_ADDED, recorded(world, 0));
}

static void do_relabel(struct world *world)
{
    uint32_t slot = pick_message(world);
    if (slot == BOX_SLOT_NONE)
        return;
    uint16_t add[4], take[4];
    size_t add_count = pick_labels(world, add);
    size_t take_count = pick_labels(world, take);
    struct model_message *message = &world->messages[slot];
    struct labels old = message->labels;
    struct labels new = old;
    for (size_t i = 0; i < add_count; i++)
        new.on[add[i]] = true;
    for (size_t i = 0; i < take_count; i++)
        new.on[take[i]] = false;
    box_mailbox_relabel(world->mailbox, slot, add, add_count, take, take_count);

    struct labels added = {{0}}, taken = {{0}}, both = old;
    bool any_added = false, any_taken = false;
    for (size_t i = 0; i < LABELS_MAX; i++) {
        added.on[i] = new.on[i] && !old.on[i];
        taken.on[i] = !new.on[i] && old.on[i];
        both.on[i] = new.on[i] || old.on[i];
        any_added = any_added || added.on[i];
        any_taken = any_taken || taken.on[i];
    }
    if (any_added) {
        message->labels = both;
        model_record(world, slot, &added, BOX_CHANGE_LABELED, recorded(world, any_taken));
    }
    message->labels = new;
    if (any_taken)
        model_record(world, slot, &taken, BOX_CHANGE_UNLABELED, recorded(world, 0));
}

static void do_remove(struct world *world)
{
    uint32_t slot = pick_message(world);
    if (slot == BOX_SLOT_NONE)
        return;
    box_mailbox_remove(world->mailbox, slot);
    model_remove(world, slot, recorded(world, 0));
}

static void do_label_create(struct world *world)
{
    if (world->labels_count == LABELS_MAX)
        return;
    struct box_label wanted = {.text_color = "#123456", .message_visibility = "hide"};
    (void)snprintf(wanted.name, sizeof wanted.name, "name %u", below(world, 200));
    bool taken = false;
    for (uint32_t i = 0; i < world->labels_count; i++)
        taken = taken || (!world->label_gone[i] && strcmp(world->label_name[i], wanted.name) == 0);
    uint32_t number = 0;
    tide_status rc = box_mailbox_label_create(world->mailbox, &wanted, &number);
    assert_int_equal(rc, taken ? TIDE_EXISTS : TIDE_OK);
    if (taken)
        return;
    assert_int_equal(number, world->labels_count);
    memcpy(world->label_name[number], wanted.name, sizeof world->label_name[number]);
    world->labels_count++;
}

static void do_label_update(struct world *world)
{
    uint32_t number = below(world, world->labels_count);
    struct box_label wanted = *box_mailbox_label(world->mailbox, number);
    (void)snprintf(wanted.list_visibility, sizeof wanted.list_visibility, "labelHide");
    (void)snprintf(wanted.background_color, sizeof wanted.background_color, "#%06u",
                   below(world, 1000000));
    tide_status rc = box_mailbox_label_update(world->mailbox, number, &wanted);
    assert_int_equal(rc, world->label_gone[number] ? TIDE_NOT_FOUND : TIDE_OK);
    if (rc == TIDE_OK)
        assert_string_equal(box_mailbox_label(world->mailbox, number)->background_color,
                            wanted.background_color);
}

int compare_oldest(const void *a_void, const void *b_void, void *arg)
{
    const struct world *world = arg;
    uint32_t a = *(const uint32_t *)a_void;
    uint32_t b = *(const uint32_t *)b_void;
    uint64_t a_ms = world->messages[a].date_ms;
    uint64_t b_ms = world->messages[b].date_ms;
    return a_ms != b_ms ? (a_ms < b_ms ? -1 : 1) : (a > b) - (a < b);
}

static void do_label_remove(struct world *world)
{
    uint32_t number = BOX_LABELS_SYSTEM + below(world, world->labels_count);
    if (number >= world->labels_count || world->label_gone[number] || below(world, 4) != 0)
        return;
    static uint32_t slots[MESSAGES_MAX];
    uint32_t count = 0;
    for (uint32_t slot = 0; slot < world->messages_count; slot++)
        if (!world->messages[slot].gone && world->messages[slot].labels.on[number])
            slots[count++] = slot;
    qsort_r(slots, count, sizeof *slots, compare_oldest, world);
    box_mailbox_label_remove(world->mailbox, number);
    struct labels taken = {{0}};
    taken.on[number] = true;
    for (uint32_t i = 0; i < count; i++) {
        world->messages[slots[i]].labels.on[number] = false;
        model_record(world, slots[i], &taken, BOX_CHANGE_UNLABELED, recorded(world, count - 1 - i));
    }
    world->label_gone[number] = true;
}

static void do_draft_create(struct world *world)
{
    struct arrival arrival;
    arrival_make(world, &arrival);
    uint32_t draft = box_mailbox_draft_create(world->mailbox, &arrival.insert);
    assert_int_equal(draft, world->drafts_count);
    model_arrive(world, &arrival)->labels.on[BOX_LABEL_DRAFT] = true;
    uint32_t slot = world->messages_count - 1;
    world->drafts[world->drafts_count++] = (struct model_draft){slot, false};
    model_record(world, slot, NULL, BOX_CHANGE_ADDED, recorded(world, 0));
}

static void do_draft_update(struct world *world)
{
    uint32_t draft = pick_draft(world);
    if (draft == BOX_SLOT_NONE)
        return;
    uint32_t old = world->drafts[draft].slot;
    struct arrival arrival;
    arrival_make(world, &arrival);
    bool named = false; /* only a thread that was named and exists moves it */
    if (arrival.insert.thread_id.data != NULL) {
        uint32_t slot = box_mailbox_thread(world->mailbox, arrival.insert.thread_id);
        named = slot != BOX_SLOT_NONE;
    }
    if (!named)
        arrival.root = world->messages[old].root;
    box_mailbox_draft_update(world->mailbox, draft, &arrival.insert);
    model_arrive(world, &arrival)->labels.on[BOX_LABEL_DRAFT] = true;
    uint32_t slot = world->messages_count - 1;
    world->drafts[draft].slot = slot;
    model_record(world, slot, NULL, BOX_CHANGE_ADDED, recorded(world, 1));
    model_remove(world, old, recorded(world, 0));
}

static void do_draft_end(struct world *world)
{
    uint32_t draft = pick_draft(world);
    if (draft == BOX_SLOT_NONE)
        return;
    uint32_t old = world->drafts[draft].slot;
    if (below(world, 2) == 0) {
        box_mailbox_draft_remove(world->mailbox, draft);
        model_remove(world, old, recorded(world, 0));
        return;
    }
    uint64_t date_ms = pick_date(world);
    uint32_t sent = box_mailbox_draft_send(world->mailbox, draft, date_ms);
    assert_true(world->messages_count < MESSAGES_MAX);
    assert_int_equal(sent, world->messages_count++);
    world->messages[sent] = world->messages[old];
    world->messages[sent].date_ms = date_ms;
    world->messages[sent].labels.on[BOX_LABEL_DRAFT] = false;
    world->messages[sent].labels.on[BOX_LABEL_SENT] = true;
    model_record(world, sent, NULL, BOX_CHANGE_ADDED, recorded(world, 1));
    model_remove(world, old, recorded(world, 0));
}

static void do_time(struct world *world)
{
    world->now_ms += below(world, 20000);
    box_mailbox_clock(world->mailbox, world->now_ms);
    if (below(world, 8) == 0) {
        world->expired_ms = world->now_ms;
        box_mailbox_history_expire(world->mailbox, world->now_ms);
        while (world->records_first < world->records_count &&
               world->records[world->records_first].at_ms < world->now_ms - KEEP_MS)
            world->forgotten = world->records[world->records_first++].history_id;
    }
    if (below(world, 200) == 0) {
        box_mailbox_history_expire_all(world->mailbox);
        world->forgotten = box_mailbox_history_oldest(world->mailbox);
        assert_in_range(world->forgotten, world->history_last + 1, world->history_last + 5);
        world->history_last = world->forgotten;
        world->records_first = world->records_count;
    }
}

void change(struct world *world)
{
    uint32_t draw = below(world, 100);
    if (draw < 25)
        do_insert(world);
    else if (draw < 60)
        do_relabel(world);
    else if (draw < 70)
        do_remove(world);
    else if (draw < 73)
        do_label_create(world);
    else if (draw < 75)
        do_label_update(world);
    else if (draw < 76)
        do_label_remove(world);
    else if (draw < 80)
        do_draft_create(world);
    else if (draw < 84)
        do_draft_update(world);
    else if (draw < 86)
        do_draft_end(world);
    else
        do_time(world);
}
