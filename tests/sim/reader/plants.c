/* plants.c - what the linker puts between the reader and what it calls: what is done and not written down, where
 * processes die most; what the person asked for, as it is stored; polls; and bugs on purpose. */
#include "reader_sim.h"

#include "reader/jobs/jobs.h"
#include "support/wrap.h"
#include "tidemark_inside.h"

enum {
    LATE_US_MAX = 50000, /* a call that was given up takes effect by then, or never */
    POLLS_END_MS = 30 * 60000,
    ACTIVE_FRESH_US_MAX = 15 * 1000000,
    LOADED_FRESH_US_MAX = 60 * 1000000,
};
#define PASSIVE_FRESH_US_MAX (16 * UINT64_C(60000000))

bool rsim_planted(enum rsim_plant plant)
{
    return rsim_now != NULL && rsim_now->plant == plant;
}

static bool one_in(uint32_t of)
{
    return tide_rng_below(&rsim_now->rng, of) == 0;
}

/* ---- crashes ---- */

/* Right there a crash matters most. */
void rsim_open_at(tide_status rc, enum rsim_open open)
{
    struct rsim_stage *stage = rsim_now;
    if (rc != TIDE_OK)
        return;
    stage->open[open]++;
    /* The archive has most bodies: few are fetched. */
    const uint32_t odds = stage->cursed == open ? 3 : open == ROPEN_BODY ? 8 : 40;
    if (stage->world_kind == RWORLD_STORM && !stage->calm && one_in(odds))
        tide_sim_crash_after(stage->sim, 1 + tide_rng_below(&stage->rng, 30), TIDE_SIM_CRASH_KILL);
}

void rsim_close_at(tide_status rc, enum rsim_open open)
{
    if (rc == TIDE_OK)
        rsim_now->open[open] = 0;
}

static bool is_readers(tide_job *job)
{
    const struct rsim_kind *kind = rsim_kind_of(rsim_now, job);
    return kind != NULL && rsim_is_readers(kind);
}

/* ---- actions at the server ---- */

/* A call that failed may still reach the server. */
static tide_status changed(tide_status rc, tide_error *err)
{
    if (rc != TIDE_OK)
        rsim_now->excused_until_us = rsim_us(rsim_now) + LATE_US_MAX;
    rsim_open_at(rc, ROPEN_ACTION);
    if (rsim_planted(RPLANT_REFUSED_ALWAYS) && rc == TIDE_SERVER)
        return tide_error_set(err, TIDE_PERMANENT, "no");
    return rc;
}

WRAP(tide_status, tide_gmail_modify, tide_gmail *gmail, tide_job *job, const tide_text *ids,
     size_t count, const char *const *add, const char *const *take, tide_error *err)
{
    if (rsim_planted(RPLANT_ACTION_LOST) && one_in(4))
        return TIDE_OK;
    return changed(__real_tide_gmail_modify(gmail, job, ids, count, add, take, err), err);
}

WRAP(tide_status, tide_gmail_delete, tide_gmail *gmail, tide_job *job, const tide_text *ids,
     size_t count, tide_error *err)
{
    return changed(__real_tide_gmail_delete(gmail, job, ids, count, err), err);
}

/* ---- actions as they are stored ---- */

static void note(struct rsim_stage *stage, const struct tide_reader_action *stored,
                 const struct tide_change *changes, size_t count)
{
    struct rsim_action *before = rsim_action(stage, stored->id);
    if (before != NULL && before->accepted)
        RSIM_FAIL(stage, "RSM5: action %" PRIu64 " was accepted, and its number is used again",
                  stored->id);
    if (before != NULL)
        before->gone = true;
    if (stage->actions_count == RSIM_ACTIONS_MAX || count > RSIM_CHANGES_MAX)
        RSIM_FAIL(stage, "too many actions");
    struct rsim_action *action = &stage->actions[stage->actions_count++];
    *action =
        (struct rsim_action){.id = stored->id, .due_ms = stored->due_ms, .changes_count = count};
    for (size_t i = 0; i < count; i++) {
        struct rsim_change *change = &action->changes[i];
        change->added = changes[i].added;
        (void)snprintf(change->message, sizeof change->message, "%.*s",
                       (int)changes[i].message.bytes, changes[i].message.data);
        (void)snprintf(change->label, sizeof change->label, "%.*s", (int)changes[i].label.bytes,
                       changes[i].label.data);
    }
}

WRAP(tide_status, tide_action_add, tide_rows db, struct tide_reader_action *action,
     const struct tide_change *changes, size_t count, tide_error *err)
{
    const tide_status rc = __real_tide_action_add(db, action, changes, count, err);
    if (rc == TIDE_OK)
        note(rsim_now, action, changes, count);
    return rc;
}

WRAP(tide_status, tide_action_end, tide_rows db, uint32_t account, uint64_t id,
     tide_action_state state, const char *error, uint64_t now_ms, tide_error *err)
{
    const bool lost = rsim_planted(RPLANT_ACTION_TWICE) && state == TIDE_ACTION_DONE && one_in(3);
    if (rsim_planted(RPLANT_REFUSED_KEPT) && state == TIDE_ACTION_REFUSED)
        state = TIDE_ACTION_DONE;
    const tide_status rc =
        lost ? TIDE_OK : __real_tide_action_end(db, account, id, state, error, now_ms, err);
    struct rsim_action *action = rsim_action(rsim_now, id);
    rsim_close_at(rc, ROPEN_ACTION);
    rsim_say("action %" PRIu64 " ends: %s %s", id, tide_action_state_name(state), error);
    if (rc != TIDE_OK || action == NULL)
        return rc;
    action->ended = true;
    action->state = state;
    action->life = tide_sim_life(rsim_now->sim);
    return rc;
}

struct newest {
    uint64_t now_ms;
    struct tide_reader_action action;
};

static void note_newest(const struct tide_reader_action *action, void *arg)
{
    struct newest *newest = arg;
    if (newest->action.id == 0 && action->state == TIDE_ACTION_WAITING &&
        action->due_ms <= newest->now_ms)
        newest->action = *action;
}

WRAP(tide_status, tide_action_begin, tide_rows db, uint32_t account, uint64_t id, tide_error *err)
{
    const tide_status rc = __real_tide_action_begin(db, account, id, err);
    if (rc == TIDE_OK)
        rsim_note_begun(rsim_now, id);
    return rc;
}

WRAP(tide_status, tide_action_next, tide_rows db, uint32_t account, uint64_t now_ms,
     struct tide_reader_action *action_out, tide_error *err)
{
    struct newest newest = {.now_ms = now_ms};
    rsim_now->chosen_ms = now_ms;
    const tide_status rc = __real_tide_action_next(db, account, now_ms, action_out, err);
    if (rc != TIDE_OK || !rsim_planted(RPLANT_NEWEST_FIRST))
        return rc;
    TIDE_TRY(tide_actions_each(db, account, 100, note_newest, &newest, err));
    if (newest.action.id != 0)
        *action_out = newest.action;
    return rc;
}

WRAP(tide_status, tide_overlay_of, tide_rows db, uint32_t account, tide_text message,
     void (*visit)(tide_text label, bool added, void *arg), void *arg, tide_error *err)
{
    if (rsim_planted(RPLANT_OVERLAY_BLIND))
        return TIDE_OK;
    return __real_tide_overlay_of(db, account, message, visit, arg, err);
}

/* ---- bodies and lists ---- */

WRAP(tide_status, tide_gmail_get, tide_gmail *gmail, tide_job *job, tide_text id,
     struct tide_gmail_message *message_out, tide_error *err)
{
    const tide_status rc = __real_tide_gmail_get(gmail, job, id, message_out, err);
    if (is_readers(job))
        rsim_open_at(rc, ROPEN_BODY);
    return rc;
}

WRAP(tide_status, tide_cache_body_put, tide_cache *cache, tide_text id, tide_text raw,
     uint64_t now_ms, tide_error *err)
{
    const tide_status rc = __real_tide_cache_body_put(cache, id, raw, now_ms, err);
    rsim_close_at(rc, ROPEN_BODY);
    return rc;
}

WRAP(tide_status, tide_gmail_list_some, tide_gmail *gmail, tide_job *job,
     const struct tide_gmail_listing *listing, tide_text token, struct tide_gmail_page *page_out,
     tide_error *err)
{
    const tide_status rc = __real_tide_gmail_list_some(gmail, job, listing, token, page_out, err);
    if (is_readers(job))
        rsim_open_at(rc, ROPEN_PAGE);
    return rc;
}

WRAP(tide_status, tide_cache_folder_put, tide_cache *cache, tide_text label,
     const struct tide_cache_folder *folder, tide_error *err)
{
    const tide_status rc = __real_tide_cache_folder_put(cache, label, folder, err);
    rsim_close_at(rc, ROPEN_PAGE);
    return rc;
}

WRAP(bool, tide_reader_archived, tide_archive *archive, tide_text id, struct tide_stored *stored)
{
    if (rsim_planted(RPLANT_FETCH_AGAIN))
        return false;
    return __real_tide_reader_archived(archive, id, stored);
}

bool rsim_in_archive(struct rsim_stage *stage, const char *id)
{
    struct tide_reader_user *user = NULL;
    struct tide_stored stored;
    if (tide_reader_user(stage->reader, stage->account, &user, NULL) != TIDE_OK)
        return false;
    tide_archive *archive = tide_reader_archive(stage->reader, user);
    const bool has = __real_tide_reader_archived(archive, tide_text_of(id), &stored);
    if (archive != NULL)
        tide_shelf_give(stage->reader->shelf, archive);
    return has;
}

/* ---- polls (RSM3) ---- */

static void check_fresh(struct rsim_stage *stage, uint64_t waited_us)
{
    const uint64_t most_us = stage->world_kind == RWORLD_EDGE ? LOADED_FRESH_US_MAX
                             : stage->watched                 ? ACTIVE_FRESH_US_MAX
                                                              : PASSIVE_FRESH_US_MAX;
    if (stage->world_kind == RWORLD_STORM)
        return;
    if (waited_us / 1000 > stage->totals.fresh_ms_highest)
        stage->totals.fresh_ms_highest = waited_us / 1000;
    if (waited_us > most_us)
        RSIM_FAIL(stage, "RSM3: new mail was looked for %d ms after it came",
                  (int)(waited_us / 1000));
}

/* What came before the call is in its answer.  A person who begins to look sees what came before
 * that, too. */
static void polled(struct rsim_stage *stage, uint64_t asked_us)
{
    const uint64_t now_us = rsim_us(stage);
    size_t left = 0;
    stage->polls++;
    stage->totals.polls++;
    for (size_t i = 0; i < stage->arrived_count; i++) {
        const uint64_t at_us = stage->arrived_us[i];
        if (at_us >= asked_us)
            stage->arrived_us[left++] = at_us;
        else if (!stage->watched || at_us >= stage->looks_us)
            check_fresh(stage, now_us - at_us);
    }
    stage->arrived_count = left;
}

WRAP(tide_status, tide_gmail_history, tide_gmail *gmail, tide_job *job, tide_text start,
     tide_text token, struct tide_gmail_history *history_out, tide_error *err)
{
    const uint64_t asked_us = rsim_us(rsim_now);
    const tide_status rc = __real_tide_gmail_history(gmail, job, start, token, history_out, err);
    if (!is_readers(job))
        return rc;
    if (rc == TIDE_OK)
        polled(rsim_now, asked_us);
    rsim_open_at(rc, ROPEN_POLL);
    return rc;
}

WRAP(tide_status, tide_cache_set, tide_cache *cache, const char *name, tide_text value,
     tide_error *err)
{
    const tide_status rc = __real_tide_cache_set(cache, name, value, err);
    if (strcmp(name, "history_id") == 0)
        rsim_close_at(rc, ROPEN_POLL);
    return rc;
}

WRAP(tide_status, tide_reader_batch_set, struct tide_reader_task *task, json_t *batch,
     tide_error *err)
{
    const tide_text history = tide_reader_text(batch, "history");
    if (rsim_planted(RPLANT_HISTORY_FIRST) && history.bytes > 0) {
        TIDE_TRY(tide_cache_begin(task->cache, err));
        TIDE_TRY(tide_cache_end(
            task->cache, __real_tide_cache_set(task->cache, "history_id", history, err), err));
    }
    return __real_tide_reader_batch_set(task, batch, err);
}

WRAP(tide_status, tide_cache_label, tide_cache *cache, tide_text id, tide_text label, bool added,
     tide_text history_id, tide_error *err)
{
    rsim_say("cache: %.*s %s %.*s at %.*s", (int)id.bytes, id.data, added ? "gets" : "loses",
             (int)label.bytes, label.data, (int)history_id.bytes, history_id.data);
    if (rsim_planted(RPLANT_LABELS_BLIND) && history_id.bytes > 0)
        return TIDE_OK;
    return __real_tide_cache_label(cache, id, label, added, history_id, err);
}

WRAP(tide_status, tide_cache_put, tide_cache *cache, const struct tide_cache_message *message,
     tide_error *err)
{
    const tide_status rc = __real_tide_cache_put(cache, message, err);
    rsim_say("cache: %.*s is put with %zu labels at %.*s: %s", (int)message->id.bytes,
             message->id.data, message->labels_count, (int)message->history_id.bytes,
             message->history_id.data, tide_status_name(rc));
    return rc;
}

WRAP(tide_status, tide_cache_drop, tide_cache *cache, int64_t row, tide_error *err)
{
    rsim_say("cache: row %d is dropped", (int)row);
    return __real_tide_cache_drop(cache, row, err);
}

WRAP(struct tide_pace_due, tide_pace_look, const struct tide_pace *pace, uint64_t now_ms)
{
    struct tide_pace always = *pace;
    always.watched = always.watched || rsim_planted(RPLANT_POLL_ALWAYS);
    struct tide_pace_due due = __real_tide_pace_look(&always, now_ms);
    if (rsim_planted(RPLANT_POLL_STOPS) && now_ms > POLLS_END_MS) {
        due.poll = false;
        due.wake_ms = now_ms + POLLS_END_MS;
    }
    return due;
}

/* ---- units ---- */

WRAP(tide_status, tide_job_call_judged, tide_job *job, uint32_t units, uint32_t parts,
     uint32_t method, tide_judge_with *judge, void *judge_arg, const struct tide_request *request,
     struct tide_response *response, tide_error *err)
{
    if (rsim_planted(RPLANT_DEAR))
        units *= 2;
    if (rsim_planted(RPLANT_CHEAP))
        units = (units + 1) / 2;
    return __real_tide_job_call_judged(job, units, parts, method, judge, judge_arg, request,
                                       response, err);
}
