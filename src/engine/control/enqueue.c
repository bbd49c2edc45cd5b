/* enqueue.c - jobs that a command hands to the engine of its directory (decision 10), and the
 * notice that a user signed in.
 *
 * Requests carry names.  The kind must be one that this engine has a handler for, or the job
 * would wait forever and no user would know why.  tide_enqueue() checks the rest. */
#include "engine/control/answers.h"
#include "engine/control/control.h"
#include "engine/engine.h"
#include "tidemark_inside.h"

#include <stdlib.h>

/* An optional field may be missing, but must not have another type. */
static tide_status optional(tide_status rc)
{
    return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
}

tide_status tide_control_enqueue(tide_engine *engine, const json_t *request, tide_json *answer,
                                 tide_error *err)
{
    struct tide_spec spec = {.kind = 0};
    tide_text kind = TIDE_TEXT_NONE;
    tide_text dedupe = TIDE_TEXT_NONE;
    const json_t *payload = NULL;
    char *text = NULL;
    uint64_t id = 0;
    tide_status rc = tide_json_get_text(request, "kind", &kind, err);
    if (rc == TIDE_OK)
        rc = tide_engine_kind_named(engine, kind, &spec.kind, err);
    else
        rc = tide_error_set(err, TIDE_INVALID, "enqueue: name the kind of the job");
    if (rc == TIDE_OK && json_object_get(request, "account") != NULL)
        rc = tide_control_account(engine, request, &spec.account, err);
    if (rc == TIDE_OK)
        rc = optional(tide_json_get_text(request, "dedupe", &dedupe, err));
    if (rc == TIDE_OK)
        rc = optional(tide_json_get_bool(request, "force", &spec.force, err));
    if (rc == TIDE_OK)
        rc = optional(tide_json_get_object(request, "payload", &payload, err));
    if (rc == TIDE_OK && payload != NULL) {
        text = json_dumps(payload, JSON_COMPACT);
        if (text == NULL)
            rc = tide_error_set(err, TIDE_NO_MEMORY, "no memory for a payload");
    }
    spec.payload = text;
    spec.dedupe = dedupe.bytes > 0 ? dedupe.data : NULL;
    if (rc == TIDE_OK && spec.account != 0)
        rc = tide_account_asked(engine, spec.account, err);
    if (rc == TIDE_OK)
        rc = tide_enqueue(engine, &spec, 1, &id, err);
    if (rc == TIDE_OK)
        tide_json_set_u64(answer, "id", id);
    free(text);
    return rc;
}

/* A refused sign-in pauses an account for minutes.  The user has just signed in again, so
 * the next call may be made now; a halt or a throttle is not lifted. */
tide_status tide_control_signed_in(tide_engine *engine, const json_t *request, tide_json *answer,
                                   tide_error *err)
{
    uint32_t id = 0;
    bool lifted = false;
    TIDE_TRY(tide_control_account(engine, request, &id, err));
    tide_lock_take(engine->world, engine->lock);
    struct tide_account *account = tide_engine_account_of(engine, id);
    if (account != NULL) {
        const uint64_t now_ms = tide_world_now_ms(engine->world);
        lifted = tide_governor_signed_in(account->governor, now_ms);
        tide_account_came_to(engine, account, TIDE_OK, TIDE_TEXT_NONE, "");
        tide_account_refresh(engine, account, now_ms);
        tide_cond_wake_one(engine->world, engine->pump);
    }
    tide_lock_drop(engine->world, engine->lock);
    tide_json_set_bool(answer, "lifted", lifted);
    return TIDE_OK;
}
