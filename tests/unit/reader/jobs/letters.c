#include "letters.h"

tide_status save(struct fixture *f, const char *id, const char *json)
{
    struct tide_draft draft = {.account = f->accounts[0], .json = tide_text_of(json)};
    (void)snprintf(draft.id, sizeof draft.id, "%s", id);
    bool created = false;
    return tide_reader_draft_put(f->reader, &draft, &created, NULL);
}

/* As the command does: the file first (DRF1). */
tide_status attach(struct fixture *f, const char *id, const char *file, const char *name,
                   tide_text content)
{
    char path[300];
    tide_world *world = tide_sim_world(f->sim);
    const struct tide_draft_file one = {
        .file = file, .name = name, .type = "text/plain", .bytes = content.bytes};
    assert_true(tide_draft_path("/archive", ME, "", path, sizeof path));
    TIDE_TRY(tide_dir_make(world, path, NULL));
    assert_true(tide_draft_path("/archive", ME, file, path, sizeof path));
    TIDE_TRY(tide_file_replace(world, path, content, 0600, NULL));
    return tide_reader_attach(f->reader, f->accounts[0], id, &one, NULL);
}

bool file_is_there(struct fixture *f, const char *file)
{
    char path[300];
    tide_auto_buf content = tide_buf_heap(1 << 20);
    assert_true(tide_draft_path("/archive", ME, file, path, sizeof path));
    return tide_file_read(tide_sim_world(f->sim), path, 1 << 20, &content, NULL) == TIDE_OK;
}

tide_status send_draft(struct fixture *f, const char *id, struct tide_reader_action *action)
{
    const struct tide_reader_wish wish = {.what = "send", .draft = id};
    return tide_reader_act(f->reader, f->accounts[0], &wish, action, NULL);
}

uint32_t received(struct fixture *f)
{
    return box_mailbox_messages(f->mailboxes[1]);
}

static bool count_slot(void *arg, uint32_t slot)
{
    *(uint32_t *)arg += 1;
    (void)slot;
    return true;
}

uint32_t with_label(struct fixture *f, uint16_t label)
{
    uint32_t count = 0;
    const struct box_walk walk = {.date_high_ms = UINT64_MAX, .labels = &label, .labels_count = 1};
    box_mailbox_walk(f->mailboxes[0], &walk, BOX_WALK_START, count_slot, &count);
    return count;
}

void assert_no_violation(struct fixture *f)
{
    json_t *stats = tide_sim_cloud_control(f->cloud, f->sim, "GET", "/_cloud/stats", TIDE_TEXT(""));
    char *text = json_dumps(json_object_get(stats, "violations"), 0);
    if (strcmp(text, "[]") != 0)
        fail_msg("%s", text);
    free(text);
    json_decref(stats);
}

static void count_draft(const struct tide_draft *draft, void *arg)
{
    struct drafts *drafts = arg;
    drafts->count++;
    drafts->sending = draft->sending;
}

static tide_status read_drafts(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct drafts *drafts = arg;
    drafts->count = 0;
    return tide_drafts_each(tide_transaction_rows(transaction), drafts->account, count_draft,
                            drafts, err);
}

struct drafts drafts_of(struct fixture *f)
{
    struct drafts drafts = {.account = f->accounts[0]};
    OK(tide_transact(f->engine, read_drafts, &drafts, err));
    return drafts;
}

static bool note_slot(void *arg, uint32_t slot)
{
    *(uint32_t *)arg = slot;
    return false;
}

/* Whether the server has one draft, with that text. */
bool server_has(struct fixture *f, const char *text)
{
    uint32_t slot = BOX_SLOT_NONE;
    uint16_t label = BOX_LABEL_DRAFT;
    tide_auto_buf scratch = tide_buf_heap(1 << 23);
    const struct box_walk walk = {.date_high_ms = UINT64_MAX, .labels = &label, .labels_count = 1};
    if (with_label(f, BOX_LABEL_DRAFT) != 1)
        return false;
    box_mailbox_walk(f->mailboxes[0], &walk, BOX_WALK_START, note_slot, &slot);
    const tide_text raw = box_mailbox_raw(f->mailboxes[0], slot, &scratch);
    return memmem(raw.data, raw.bytes, text, strlen(text)) != NULL;
}

/* What another mail program shows is there; here it is a draft of our own, and no message. */
void assert_copied(struct fixture *f, const char *text)
{
    assert_true(server_has(f, text));
    poll_now(f, 0);
    (void)settle(f);
    assert_int_equal(count_shown(f, 0, "DRAFT"), 0);
    assert_int_equal(count_shown(f, 0, "ALL"), 0);
    assert_int_equal(drafts_of(f).count, 1);
}

void close_it(struct fixture *f, const char *id)
{
    struct tide_reader_action action;
    const struct tide_reader_wish wish = {.what = "keep", .draft = id};
    OK(tide_reader_act(f->reader, f->accounts[0], &wish, &action, err));
    assert_int_equal(action.id, 0); /* nothing that a person could undo */
}

static void note_last(const struct tide_draft *draft, void *arg)
{
    struct last *last = arg;
    last->there = true;
    last->sending = draft->sending != 0;
    (void)snprintf(last->text, sizeof last->text, "%.*s", (int)draft->json.bytes, draft->json.data);
}

tide_status read_last(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct last *last = arg;
    last->there = false;
    return tide_drafts_each(tide_transaction_rows(transaction), last->account, note_last, last,
                            err);
}

/* What is here is at the server, once and as it is here; what is not here is not there. */
void check_writing(struct fixture *f, uint64_t steps, bool kept)
{
    struct last last = {.account = f->accounts[0]};
    OK(tide_transact(f->engine, read_last, &last, err));
    const uint32_t there = with_label(f, BOX_LABEL_DRAFT);
    if (last.sending || there != (last.there ? 1 : 0) || received(f) > 1 ||
        (last.there && received(f) > 0))
        fail_msg("step %" PRIu64 ": here %d, there %" PRIu32 ", received %" PRIu32, steps,
                 last.there, there, received(f));
    if (kept && !last.there && received(f) == 0)
        fail_msg("step %" PRIu64 ": what was written is lost", steps);
    if (last.there && !server_has(f, strcmp(last.text, SECOND) == 0 ? "A second" : "Here it is"))
        fail_msg("step %" PRIu64 ": the server has another text than %s", steps, last.text);
    poll_now(f, 0);
    (void)settle(f);
    if (count_shown(f, 0, "DRAFT") != 0)
        fail_msg("step %" PRIu64 ": a copy is shown", steps);
    if (count_shown(f, 0, "SENT") != received(f))
        fail_msg("step %" PRIu64 ": what was sent is not shown", steps);
    assert_int_equal(failed_jobs(f), 0);
    assert_no_violation(f);
}
