/* server.c - what reaches the server: changes of messages, compared with what the person asked for (RSM5, RSM6),
 * calls for opened messages (RSM8), units (RSM4). */
#include "reader_sim.h"

#include <jansson.h>

enum {
    CALL_IDS_MAX = 16,
    CALL_LABELS_MAX = 8,
    OPEN_US_MAX = 50000,       /* K15 */
    WAY_US_MAX = 20000 + 5000, /* to the server; and the steps of this machine */
};

/* ---- a call that changes messages ---- */

struct call {
    char ids[CALL_IDS_MAX][BOX_ID_TEXT_BYTES];
    size_t ids_count;
    char add[CALL_LABELS_MAX][64], take[CALL_LABELS_MAX][64];
    size_t add_count, take_count;
};

static void texts_read(const json_t *array, char (*out)[64], size_t *count_out)
{
    size_t at = 0;
    const json_t *one = NULL;
    json_array_foreach(array, at, one)
    {
        if (*count_out < CALL_LABELS_MAX)
            (void)snprintf(out[(*count_out)++], 64, "%s", json_string_value(one));
    }
}

static void id_add(struct call *call, const char *id)
{
    if (call->ids_count < CALL_IDS_MAX)
        (void)snprintf(call->ids[call->ids_count++], BOX_ID_TEXT_BYTES, "%.16s", id);
}

/* false: it changes no message, or it is not the reader's: the assistant changes threads, drafts, and puts
 * messages into the trash. */
static bool call_read(const struct tide_request *request, struct call *call)
{
    const char *path = strstr(request->url, "/users/me/messages/");
    if (path == NULL)
        return false;
    path += strlen("/users/me/messages/");
    const bool one = strncmp(path + 16, "/modify", 7) == 0;
    const bool deletes = strcmp(request->method, "DELETE") == 0;
    const bool many = strncmp(path, "batchModify", 11) == 0;
    const bool all_go = strncmp(path, "batchDelete", 11) == 0;
    if (!one && !deletes && !many && !all_go)
        return false;
    json_auto_t *body = json_loadb(request->body.data, request->body.bytes, 0, NULL);
    size_t at = 0;
    const json_t *id = NULL;
    if (one || deletes)
        id_add(call, path);
    json_array_foreach(json_object_get(body, "ids"), at, id)
    {
        id_add(call, json_string_value(id));
    }
    texts_read(json_object_get(body, "addLabelIds"), call->add, &call->add_count);
    texts_read(json_object_get(body, "removeLabelIds"), call->take, &call->take_count);
    if (deletes || all_go)
        (void)snprintf(call->add[call->add_count++], 64, TIDE_OVERLAY_GONE);
    return true;
}

static bool has(const char (*list)[64], size_t count, const char *label)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i], label) == 0)
            return true;
    return false;
}

/* ---- whose it is ---- */

static bool matches_one(const struct rsim_action *action, const struct call *call, const char *id)
{
    size_t count = 0;
    for (size_t i = 0; i < action->changes_count; i++) {
        const struct rsim_change *change = &action->changes[i];
        if (strcmp(change->message, id) != 0)
            continue;
        count++;
        if (change->added ? !has(call->add, call->add_count, change->label)
                          : !has(call->take, call->take_count, change->label))
            return false;
    }
    return count > 0 && count == call->add_count + call->take_count;
}

static bool matches(const struct rsim_action *action, const struct call *call)
{
    for (size_t i = 0; i < call->ids_count; i++)
        if (!matches_one(action, call, call->ids[i]))
            return false;
    return call->ids_count > 0;
}

/* The one that was begun last.  Or an earlier one: a call that was made before a crash may come late. */
static struct rsim_action *whose(struct rsim_stage *stage, const struct call *call)
{
    struct rsim_action *found = NULL;
    for (size_t i = 0; i < stage->actions_count; i++) {
        struct rsim_action *action = &stage->actions[i];
        if (!action->gone && action->begun && !action->ended && matches(action, call) &&
            (found == NULL || action->id == stage->begun_id))
            found = action;
    }
    return found;
}

/* What was stored when the process died is not known: neither may be blamed. */
void rsim_note_begun(struct rsim_stage *stage, uint64_t id)
{
    struct rsim_action *action = rsim_action(stage, id);
    if (action == NULL)
        RSIM_FAIL(stage, "RSM5: action %" PRIu64 " is none of the person's", id);
    if (action->ended)
        RSIM_FAIL(stage, "RSM5: action %" PRIu64 " is begun, and it has ended", id);
    for (size_t i = 0; !action->begun && i < stage->actions_count; i++) {
        const struct rsim_action *other = &stage->actions[i];
        if (other == action || other->gone || other->ended || other->unsure || !other->accepted)
            continue;
        if (other->begun || (other->id < id && other->due_ms <= stage->chosen_ms))
            RSIM_FAIL(stage, "RSM5: action %" PRIu64 " is begun before action %" PRIu64 " (%s)", id,
                      other->id, other->begun ? "which was begun" : "which is due");
    }
    action->begun = true;
    action->unsure = false;
    stage->begun_id = id;
    action->life = tide_sim_life(stage->sim);
}

static void effect(struct rsim_stage *stage, struct rsim_action *action, const struct call *call)
{
    stage->reached_id = action->id;
    action->life = tide_sim_life(stage->sim);
    for (size_t i = 0; i < action->changes_count; i++) {
        struct rsim_change *change = &action->changes[i];
        for (size_t k = 0; k < call->ids_count; k++)
            if (strcmp(change->message, call->ids[k]) == 0 &&
                ++change->effects > 1 + action->excuses)
                RSIM_FAIL(stage,
                          "RSM5: action %" PRIu64 " is made again, and nothing interrupted it",
                          action->id);
    }
}

static _Noreturn void stranger(struct rsim_stage *stage, const struct call *call)
{
    for (size_t i = 0; i < stage->actions_count; i++)
        if (!stage->actions[i].gone && matches(&stage->actions[i], call))
            RSIM_FAIL(stage,
                      "RSM5: action %" PRIu64 " (%s) reaches the server after action %" PRIu64,
                      stage->actions[i].id, stage->actions[i].ended ? "which has ended" : "waiting",
                      stage->reached_id);
    RSIM_FAIL(stage, "RSM5: message %s is changed, and nobody asked for it", call->ids[0]);
}

static void changed(struct rsim_stage *stage, const struct call *call, int http)
{
    struct rsim_action *action = whose(stage, call);
    rsim_say("server: change of %s for action %d: %d", call->ids[0],
             action == NULL ? -1 : (int)action->id, http);
    if (action == NULL) {
        if (rsim_us(stage) < stage->excused_until_us)
            return; /* a call that was given up, and that came late (sim_net.h SNET2) */
        stranger(stage, call);
    }
    if (http == 200 || http == 204 || http == 404)
        effect(stage, action, call);
    if (http == 403)
        action->refused = true;
}

/* ---- opened messages ---- */

static void fetched(struct rsim_stage *stage, const struct tide_request *request)
{
    const char *path = strstr(request->url, "/users/me/messages/");
    const uint64_t now_us = rsim_us(stage);
    if (path == NULL || strstr(path, "format=raw") == NULL)
        return;
    path += strlen("/users/me/messages/");
    for (size_t i = 0; i < stage->opened_count; i++) {
        struct rsim_opened *opened = &stage->opened[i];
        if (opened->called || strncmp(path, opened->message, 16) != 0)
            continue;
        opened->called = true;
        const uint64_t waited_us = now_us - opened->asked_us;
        rsim_say("server: opened %s after %d ms", opened->message, (int)(waited_us / 1000));
        if (!opened->timed)
            continue;
        if (waited_us / 1000 > stage->totals.open_ms_highest)
            stage->totals.open_ms_highest = waited_us / 1000;
        if (waited_us > OPEN_US_MAX + WAY_US_MAX)
            RSIM_FAIL(stage, "RSM8: the call for an opened message began after %d ms",
                      (int)(waited_us / 1000));
    }
}

void rsim_provide(void *arg, const struct tide_request *request, uint64_t now_unix_ms,
                  tide_rng *rng, struct tide_sim_answer *answer)
{
    struct rsim_stage *stage = arg;
    struct call call = {.ids_count = 0};
    stage->totals.calls++;
    fetched(stage, request);
    if (stage->world_kind == RWORLD_EDGE)
        answer->think_us = tide_rng_below(rng, 120000);
    tide_sim_cloud_call(stage->cloud, request, now_unix_ms, rng, answer);
    if (call_read(request, &call))
        changed(stage, &call, answer->http);
}

/* ---- crashes ---- */

void rsim_note_crash(struct rsim_stage *stage)
{
    static const enum rsim_fault faults[ROPENS] = {[ROPEN_ACTION] = RFAULT_DIED_ACTION,
                                                   [ROPEN_BODY] = RFAULT_DIED_BODY,
                                                   [ROPEN_POLL] = RFAULT_DIED_POLL,
                                                   [ROPEN_PAGE] = RFAULT_DIED_PAGE};
    const uint32_t life = tide_sim_life(stage->sim);
    stage->totals.crashes++;
    rsim_say("crash");
    for (unsigned i = 0; i < ROPENS; i++)
        stage->totals.faults[faults[i]] += stage->open[i] > 0;
    stage->excused_until_us = rsim_us(stage) + 2 * WAY_US_MAX;
    for (size_t i = 0; i < stage->actions_count; i++) {
        struct rsim_action *action = &stage->actions[i];
        if (action->life != life)
            continue;
        action->excuses++;     /* what it did is perhaps not recorded */
        action->ended = false; /* nor its end */
        action->unsure = true;
    }
}

struct rsim_action *rsim_action(struct rsim_stage *stage, uint64_t id)
{
    for (size_t i = stage->actions_count; i > 0; i--)
        if (stage->actions[i - 1].id == id && !stage->actions[i - 1].gone)
            return &stage->actions[i - 1];
    return NULL;
}

/* ---- units ---- */

static uint64_t count_of(const json_t *object, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(object, key));
}

uint64_t rsim_units(struct rsim_stage *stage)
{
    json_auto_t *stats =
        tide_sim_cloud_control(stage->cloud, stage->sim, "GET", "/_cloud/stats", TIDE_TEXT_NONE);
    const json_t *me = json_object_get(json_object_get(stats, "users"), RSIM_ME);
    const uint64_t crossed = count_of(json_object_get(me, "refused"), "user-minute");
    if (crossed > 0)
        RSIM_FAIL(stage, "RSM4: a window of the quota was crossed %d times", (int)crossed);
    return count_of(me, "units");
}
