/* rules.c - what a person sees, compared with what the server has; and what must hold in the end. */
#include "reader_sim.h"

#include "ledger/rows.h"

enum { SHOWN_MAX = 4096, PAGE_ROWS = 50 };

/* ---- a mailbox as it is shown ---- */

struct looking {
    struct rsim_stage *stage;
    struct tide_reader_mailbox mailbox;
    struct tide_reader_user *user;
};

/* false: the process died. */
static bool look_begin(struct rsim_stage *stage, struct looking *looking)
{
    tide_error err = {TIDE_OK, 0, ""};
    *looking = (struct looking){.stage = stage};
    const tide_status rc = tide_reader_cache_take(stage->reader, stage->account, &looking->user,
                                                  &looking->mailbox.cache, &err);
    if (rc != TIDE_OK && !tide_world_dead(stage->world))
        RSIM_FAIL(stage, "RSM7: the cache does not open: %s", err.text);
    if (rc != TIDE_OK)
        return false;
    looking->mailbox.mem = tide_mem_heap();
    looking->mailbox.account = stage->account;
    looking->mailbox.archive = tide_reader_archive(stage->reader, looking->user);
    looking->mailbox.has_overlay = true;
    return true;
}

static void look_end(struct looking *looking)
{
    tide_reader *reader = looking->stage->reader;
    if (looking->mailbox.archive != NULL)
        tide_shelf_give(reader->shelf, looking->mailbox.archive);
    tide_reader_cache_give(reader, looking->user, looking->mailbox.cache);
}

/* ---- an action is shown at once ---- */

struct showing {
    struct looking looking;
    const struct rsim_action *action;
    const struct rsim_change *wrong; /* NULL: none is */
};

static tide_status read_shown(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct showing *showing = arg;
    struct tide_reader_mailbox *mailbox = &showing->looking.mailbox;
    mailbox->db = tide_transaction_rows(transaction);
    for (size_t i = 0; i < showing->action->changes_count; i++) {
        const struct rsim_change *change = &showing->action->changes[i];
        struct tide_reader_shown shown = {.labels = NULL};
        const tide_status rc =
            tide_shown_labels(mailbox, tide_text_of(change->message), &shown, err);
        const bool gone = strcmp(change->label, TIDE_OVERLAY_GONE) == 0;
        const bool right =
            rc != TIDE_OK || shown.gone || /* another client deleted it */
            (!gone && (json_object_get(shown.labels, change->label) != NULL) == change->added);
        tide_shown_done(&shown);
        if (!right)
            showing->wrong = change;
    }
    return TIDE_OK;
}

/* An action that has ended may have been refused. */
void rsim_check_shown(struct rsim_stage *stage, const struct rsim_action *action)
{
    struct showing showing = {.action = action};
    if (!look_begin(stage, &showing.looking))
        return;
    const tide_status rc = tide_transact(stage->life.engine, read_shown, &showing, NULL);
    look_end(&showing.looking);
    if (rc == TIDE_OK && showing.wrong != NULL && !action->ended)
        RSIM_FAIL(stage, "RSM7: action %" PRIu64 ": %s of message %s is not shown", action->id,
                  showing.wrong->label, showing.wrong->message);
}

/* ---- lists ---- */

struct list {
    struct looking looking;
    const char *label;
    char (*ids)[BOX_ID_TEXT_BYTES];
    size_t count;
};

static tide_status read_page(struct list *list, tide_buf *after, tide_error *err)
{
    const struct tide_listing listing = {.label = tide_text_of(list->label),
                                         .after = tide_buf_text(after),
                                         .before_ms = INT64_MAX,
                                         .limit = PAGE_ROWS};
    struct tide_listed listed = {.next = tide_buf_heap(1000)};
    size_t at = 0;
    const json_t *one = NULL;
    tide_auto_json items;
    tide_json_array(&items);
    tide_status rc = tide_reader_list(&list->looking.mailbox, &listing, &items, &listed, err);
    json_array_foreach(items.value, at, one)
    {
        if (list->count < SHOWN_MAX)
            (void)snprintf(list->ids[list->count++], BOX_ID_TEXT_BYTES, "%s",
                           json_string_value(json_object_get(one, "id")));
    }
    tide_buf_rest(after);
    if (rc == TIDE_OK)
        rc = tide_buf_add(after, tide_buf_cstr(&listed.next), listed.next.bytes);
    tide_buf_done(&listed.next);
    return rc;
}

static tide_status read_list(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct list *list = arg;
    tide_auto_buf after = tide_buf_heap(1000);
    list->looking.mailbox.db = tide_transaction_rows(transaction);
    list->count = 0;
    do {
        TIDE_TRY(read_page(list, &after, err));
    } while (after.bytes > 0);
    return TIDE_OK;
}

static bool is_thrown_away(const box_mailbox *mailbox, uint32_t slot)
{
    return box_mailbox_has_label(mailbox, slot, BOX_LABEL_TRASH) ||
           box_mailbox_has_label(mailbox, slot, BOX_LABEL_SPAM);
}

static bool is_listed(const struct list *list, const char *id)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->ids[i], id) == 0)
            return true;
    return false;
}

/* `label` BOX_LABEL_NONE: all mail.  What is in spam or trash besides is not compared. */
static void compare(struct rsim_stage *stage, const struct list *list, int label)
{
    uint64_t last_ms = UINT64_MAX;
    for (size_t i = 0; i < list->count; i++) {
        const uint32_t slot = box_mailbox_find(stage->mailbox, tide_text_of(list->ids[i]));
        if (slot == BOX_SLOT_NONE ||
            (label >= 0 && !box_mailbox_has_label(stage->mailbox, slot, (uint32_t)label)))
            RSIM_FAIL(stage, "RSM7: %s shows message %s, and the server does not", list->label,
                      list->ids[i]);
        const uint64_t date_ms = box_mailbox_at(stage->mailbox, slot)->date_ms;
        if (date_ms > last_ms)
            RSIM_FAIL(stage, "RSM7: %s is not in the order of time", list->label);
        last_ms = date_ms;
    }
    for (uint32_t slot = 0; slot < box_mailbox_slots(stage->mailbox); slot++) {
        char id[BOX_ID_TEXT_BYTES];
        if (box_mailbox_at(stage->mailbox, slot)->gone || is_thrown_away(stage->mailbox, slot) ||
            (label >= 0 && !box_mailbox_has_label(stage->mailbox, slot, (uint32_t)label)))
            continue;
        box_id_text(box_mailbox_at(stage->mailbox, slot)->id, id);
        if (!is_listed(list, id))
            RSIM_FAIL(stage, "RSM7: %s does not show message %s", list->label, id);
    }
}

static void check_lists(struct rsim_stage *stage)
{
    static const struct {
        const char *name;
        int label;
    } lists[] = {{"ALL", -1},
                 {"INBOX", BOX_LABEL_INBOX},
                 {"UNREAD", BOX_LABEL_UNREAD},
                 {"STARRED", BOX_LABEL_STARRED}};
    struct list list = {.ids = calloc(SHOWN_MAX, sizeof *list.ids)};
    tide_error err = {TIDE_OK, 0, ""};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        list.label = lists[i].name;
        (void)look_begin(stage, &list.looking);
        const tide_status rc = tide_transact(stage->life.engine, read_list, &list, &err);
        look_end(&list.looking);
        if (rc != TIDE_OK)
            RSIM_FAIL(stage, "RSM7: %s cannot be read: %s", list.label, err.text);
        compare(stage, &list, lists[i].label);
    }
    free(list.ids);
}

/* ---- actions ---- */

struct reading {
    struct rsim_stage *stage;
    size_t found; /* of those that were accepted */
};

static void check_done(struct rsim_stage *stage, const struct rsim_action *action)
{
    if (action->refused)
        RSIM_FAIL(stage, "RSM6: action %" PRIu64 " is done, and the server refused it", action->id);
    for (size_t i = 0; i < action->changes_count; i++)
        if (action->changes[i].effects == 0)
            RSIM_FAIL(stage, "RSM5: action %" PRIu64 " is done, and never reached the server",
                      action->id);
}

static void check_action(const struct tide_reader_action *stored, void *arg)
{
    struct reading *reading = arg;
    struct rsim_stage *stage = reading->stage;
    const struct rsim_action *action = rsim_action(stage, stored->id);
    if (action == NULL)
        RSIM_FAIL(stage, "RSM5: action %" PRIu64 " is none of the person's", stored->id);
    reading->found += action->accepted;
    switch (stored->state) {
    case TIDE_ACTION_WAITING:
        RSIM_FAIL(stage, "RSM10: action %" PRIu64 " waits for good", stored->id);
    case TIDE_ACTION_DONE:
        check_done(stage, action);
        break;
    case TIDE_ACTION_REFUSED:
        if (!action->refused || stored->error[0] == '\0')
            RSIM_FAIL(stage, "RSM6: action %" PRIu64 " counts as refused: %s", stored->id,
                      stored->error);
        break;
    case TIDE_ACTION_UNDONE:
        for (size_t i = 0; i < action->changes_count; i++)
            if (action->changes[i].effects > 0)
                RSIM_FAIL(stage, "RSM5: action %" PRIu64 " was taken back, and is at the server",
                          stored->id);
    }
}

static tide_status read_actions(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct reading *reading = arg;
    reading->found = 0;
    return tide_actions_each(tide_transaction_rows(transaction), reading->stage->account,
                             RSIM_ACTIONS_MAX, check_action, reading, err);
}

static void check_actions(struct rsim_stage *stage)
{
    struct reading reading = {.stage = stage};
    size_t accepted = 0;
    for (size_t i = 0; i < stage->actions_count; i++)
        accepted += stage->actions[i].accepted && !stage->actions[i].gone;
    if (tide_transact(stage->life.engine, read_actions, &reading, NULL) != TIDE_OK)
        RSIM_FAIL(stage, "the actions cannot be read");
    if (reading.found != accepted)
        RSIM_FAIL(stage, "RSM5: of %zu accepted actions %zu are left", accepted, reading.found);
}

/* ---- the end ---- */

static bool see_body(const struct tide_cached *cached, void *arg)
{
    *(bool *)arg = cached->body;
    return false;
}

static void check_bodies(struct rsim_stage *stage)
{
    struct looking looking;
    (void)look_begin(stage, &looking);
    for (size_t i = stage->opened_calm; i < stage->opened_count; i++) {
        const tide_text id = tide_text_of(stage->opened[i].message);
        bool body = false;
        (void)tide_cache_find(looking.mailbox.cache, id, see_body, &body, NULL);
        if (!body && box_mailbox_find(stage->mailbox, id) != BOX_SLOT_NONE &&
            !rsim_in_archive(stage, stage->opened[i].message))
            RSIM_FAIL(stage, "RSM8: message %s was opened, and its body is not here",
                      stage->opened[i].message);
    }
    look_end(&looking);
}

void rsim_check_end(struct rsim_stage *stage)
{
    struct tide_progress progress;
    tide_engine_progress(stage->life.engine, &progress);
    if (progress.failed > 0)
        RSIM_FAIL(stage, "RSM10: %d jobs failed in calm hours", (int)progress.failed);
    check_actions(stage);
    check_bodies(stage);
    check_lists(stage);
    (void)rsim_units(stage);
}
