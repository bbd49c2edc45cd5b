/* tries.c - one transfer, tried until it is done. */
#include "drive/local/hash.h"
#include "support/heap.h"
#include "transfer.h"

#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    CALM_AFTER = 14,
    TRIES_MAX = 40,
    PIECE_BYTES = (1 << 20) + (256 << 10), /* of a download: what was not written yet */
};
#define FOLDER "d"

/* What a job has in its row: it stays the same until it is superseded. */
struct plan {
    struct tide_onedrive_answer item;
    struct tide_entry entry; /* of the file here */
    bool is_here;
    struct tide_drive_download down;
    struct tide_drive_upload up;
};

struct trial {
    struct transfer_stage *stage;
    struct plan plan;
    uint64_t moved_bytes;
    tide_error err;
};

/* ---- plans ---- */

static tide_status get_item(struct transfer_stage *stage, const char *name,
                            struct tide_onedrive_answer *answer, tide_error *err)
{
    stage->quiet = true;
    tide_sim_faults(stage->sim, false);
    const tide_status rc =
        tide_onedrive_get_at(stage->onedrive, NULL, TIDE_TEXT(""), TIDE_TEXT(""),
                             tide_text_of(textf(FOLDER "/%s", name)), answer, err);
    stage->quiet = false;
    tide_sim_faults(stage->sim, !stage->calm && !stage->only_kills);
    return rc;
}

static struct tide_drive_content content_of(const struct tide_onedrive_item *item)
{
    struct tide_drive_content content = {.bytes = item->size, .has_qxh = item->has_hash};
    memcpy(content.qxh, item->hash, sizeof content.qxh);
    return content;
}

static void plan_download(struct trial *trial, int dir)
{
    struct transfer_stage *stage = trial->stage;
    struct plan *plan = &trial->plan;
    const struct tide_onedrive_item *item = &plan->item.item;
    struct tide_drive_content here;
    struct tide_entry entry;
    /* Placed by a try that was killed: the same on both sides, only to be recorded (D19, F3). */
    stage->same = plan->is_here &&
                  tide_drive_hash_file(dir, item->name, &here, &entry, &trial->err) == TIDE_OK &&
                  here.bytes == item->size && memcmp(here.qxh, item->hash, sizeof here.qxh) == 0;
    plan->down = (struct tide_drive_download){.id = item->id,
                                              .folder = TIDE_TEXT(FOLDER),
                                              .name = item->name,
                                              .ctag = item->ctag,
                                              .expected = plan->is_here ? &plan->entry : NULL,
                                              .content = content_of(item),
                                              .accept = stage->plant == TPLANT_HASH_BELIEVED};
}

static void plan_upload(struct trial *trial, int dir)
{
    struct transfer_stage *stage = trial->stage;
    struct plan *plan = &trial->plan;
    const struct tide_onedrive_item *item = &plan->item.item;
    struct tide_drive_upload *up = &plan->up;
    *up = (struct tide_drive_upload){.folder = TIDE_TEXT(FOLDER),
                                     .here = tide_text_of(stage->name),
                                     .name = tide_text_of(stage->name),
                                     .business = true};
    if (tide_drive_hash_file(dir, up->here, &up->content, &up->entry, &trial->err) != TIDE_OK)
        tide_sim_fail(stage->sim, "the source cannot be read: %s", trial->err.text);
    if (stage->kind == TRANSFER_UP_OVER) {
        up->id = item->id;
        up->ctag = item->ctag;
        up->replaces = content_of(item);
    } else {
        up->parent_id = item->id;
    }
}

/* From what both sides have now. */
static void make_plan(struct trial *trial)
{
    struct transfer_stage *stage = trial->stage;
    struct plan *plan = &trial->plan;
    int dir = -1;
    if (stage->linked)
        transfer_link_folder(stage);
    tide_onedrive_answer_done(&plan->item);
    const bool is_new = stage->kind == TRANSFER_UP_NEW;
    if (get_item(stage, is_new ? "" : stage->name, &plan->item, &trial->err) != TIDE_OK ||
        tide_folder_enter(stage->act.root, TIDE_TEXT(FOLDER), &dir, &trial->err) != TIDE_OK)
        tide_sim_fail(stage->sim, "nothing can be planned: %s", trial->err.text);
    plan->is_here =
        tide_folder_look(dir, tide_text_of(stage->name), &plan->entry, &trial->err) == TIDE_OK;
    if (transfer_is_up(stage))
        plan_upload(trial, dir);
    else
        plan_download(trial, dir);
    tide_folder_close(dir);
}

/* ---- a try ---- */

/* F8: the session is there, and nobody remembers it. */
static tide_status save(void *arg, tide_text resume, tide_error *err)
{
    struct transfer_stage *stage = arg;
    if (transfer_killed(stage, T8_SESSION_NOT_STORED, 6))
        return tide_error_set(err, TIDE_STOPPED, "the process was killed");
    if (stage->plant != TPLANT_NOT_SAVED)
        (void)snprintf(stage->saved, sizeof stage->saved, "%.*s", (int)resume.bytes, resume.data);
    return TIDE_OK;
}

static tide_status sleep_ms(void *arg, uint64_t wait_ms)
{
    struct transfer_stage *stage = arg;
    tide_world *world = tide_sim_world(stage->sim);
    return tide_world_sleep_until(world, tide_world_now_us(world) + wait_ms * 1000, NULL);
}

/* Faults that a server is told before. */
static void set_faults(struct transfer_stage *stage)
{
    json_decref(tide_sim_cloud_control(stage->cloud, stage->sim, "DELETE", "/_cloud/faults",
                                       TIDE_TEXT("")));
    stage->misfits = 0;
    if (transfer_is_up(stage)) {
        if (strstr(stage->name, ".docx") != NULL && transfer_happens(stage, T33_REWRITTEN, 3))
            stage->rewrites = true;
        if (stage->rewrites && !stage->calm)
            transfer_fault_rule(stage, "{\"count\":1,\"fault\":\"rewrite\"}");
        return;
    }
    if (transfer_happens(stage, T37_NEVER_FITS, 8))
        stage->misfits = TIDE_DRIVE_MISFITS_MAX;
    else if (transfer_happens(stage, T37_MALWARE, 10))
        transfer_fault_rule(stage, "{\"count\":1,\"fault\":\"malware\"}");
    if (!stage->linked && transfer_happens(stage, T_LINK, 15))
        transfer_link_folder(stage);
}

static tide_status try_download(struct trial *trial)
{
    struct transfer_stage *stage = trial->stage;
    struct tide_drive_downloaded out = {.same = false};
    const tide_status rc = tide_drive_download(&stage->act, &trial->plan.down, &out, &trial->err);
    trial->moved_bytes += out.fetched_bytes;
    if (rc == TIDE_OK && !stage->plant && stage->misfits == 0 &&
        memcmp(out.content.qxh, trial->plan.down.content.qxh, sizeof out.content.qxh) != 0)
        tide_sim_fail(stage->sim, "DTR20: %s has other bytes here", stage->name);
    tide_drive_downloaded_done(&out);
    return rc;
}

static tide_status try_upload(struct trial *trial)
{
    struct transfer_stage *stage = trial->stage;
    struct tide_drive_uploaded out = {.rewritten = false};
    struct tide_onedrive_answer item = {.value = NULL};
    stage->act.resume = tide_text_of(stage->saved);
    const tide_status rc = tide_drive_upload(&stage->act, &trial->plan.up, &out, &trial->err);
    trial->moved_bytes += out.sent_bytes;
    const bool rewritten = out.rewritten; /* or later, after its answer */
    tide_drive_uploaded_done(&out);
    if (rc != TIDE_OK || transfer_dead(stage))
        return rc;
    if (get_item(stage, stage->name, &item, &trial->err) != TIDE_OK)
        tide_sim_fail(stage->sim, "DTR20: %s was uploaded and is not online", stage->name);
    const struct tide_drive_content is = content_of(&item.item);
    if (rewritten || stage->rewrites)
        transfer_note(stage, is.bytes, is.qxh); /* the server made it */
    else if (is.bytes != trial->plan.up.content.bytes ||
             (is.bytes > 0 && memcmp(is.qxh, trial->plan.up.content.qxh, sizeof is.qxh) != 0))
        tide_sim_fail(stage->sim, "DTR20: %s has other bytes online", stage->name);
    tide_onedrive_answer_done(&item);
    return TIDE_OK;
}

/* DTR9: what was moved more than once. */
static void check_bytes(const struct trial *trial)
{
    struct transfer_stage *stage = trial->stage;
    const bool up = transfer_is_up(stage);
    const uint64_t bytes = up ? trial->plan.up.content.bytes : trial->plan.down.content.bytes;
    const uint64_t piece = up ? TIDE_DRIVE_FRAGMENT_BYTES : PIECE_BYTES;
    if (stage->only_kills && trial->moved_bytes > bytes + stage->pieces * piece)
        tide_sim_fail(stage->sim,
                      "DTR9: %" PRIu64 " bytes moved for %" PRIu64 ", after %" PRIu64 " kills",
                      trial->moved_bytes, bytes, stage->kills);
}

/* DTR15: the other user's file is as it was.  DTR16: and there is no third one. */
static void check_online(struct transfer_stage *stage)
{
    struct tide_onedrive_answer item = {.value = NULL};
    tide_error err = {TIDE_OK, 0, ""};
    if (get_item(stage, textf("%s 1", stage->name), &item, &err) != TIDE_GONE)
        tide_sim_fail(stage->sim, "DTR16: %s 1 is online, which no user made", stage->name);
    if (!stage->taken)
        return;
    if (get_item(stage, stage->name, &item, &err) != TIDE_OK)
        tide_sim_fail(stage->sim, "DTR15: the file of another user is gone: %s", err.text);
    const struct tide_drive_content is = content_of(&item.item);
    struct tide_drive_content here = {.bytes = 0};
    struct tide_entry entry;
    int dir = -1;
    if (tide_folder_enter(stage->act.root, TIDE_TEXT(FOLDER), &dir, &err) == TIDE_OK)
        (void)tide_drive_hash_file(dir, tide_text_of(stage->name), &here, &entry, &err);
    tide_folder_close(dir);
    if (memcmp(is.qxh, here.qxh, sizeof is.qxh) == 0)
        tide_sim_fail(stage->sim, "DTR15: the file of another user was overwritten");
    tide_onedrive_answer_done(&item);
}

/* ---- until it is done ---- */

static void revive(struct transfer_stage *stage)
{
    tide_error err = {TIDE_OK, 0, ""};
    tide_onedrive_close(stage->onedrive);
    tide_sim_net_settle(stage->sim);
    tide_sim_reboot(stage->sim);
    const struct tide_onedrive_options client = {.endpoint = "http://127.0.0.1:4443",
                                                 .bearer = TIDE_TEXT("bearer-1"),
                                                 .world = tide_sim_world(stage->sim)};
    if (tide_onedrive_open(&client, tide_mem_heap(), &stage->onedrive, &err) != TIDE_OK)
        tide_sim_fail(stage->sim, "no client: %s", err.text);
    stage->act.onedrive = stage->onedrive;
}

/* false: it is done. */
static bool go_on(struct trial *trial, tide_status rc)
{
    struct transfer_stage *stage = trial->stage;
    transfer_check_disk(stage);
    if (transfer_dead(stage)) {
        revive(stage);
        return true;
    }
    /* A name that is taken is for the next plan (D19). */
    if (rc == TIDE_OK || (rc == TIDE_EXISTS && (stage->taken || stage->rewrites || stage->edited)))
        return false;
    if (rc == TIDE_SUPERSEDED) {
        stage->totals.superseded++;
        make_plan(trial);
        if (stage->same)
            return false;
    }
    if (rc == TIDE_PERMANENT && stage->calm)
        tide_sim_fail(stage->sim, "DTR20: a bad item without a fault: %s", trial->err.text);
    if (rc == TIDE_THROTTLED)
        (void)sleep_ms(stage, 301000);
    return true;
}

static uint64_t any_size(struct transfer_stage *stage)
{
    switch (tide_rng_below(&stage->rng, 8)) {
    case 0:
        return 0;
    case 1:
    case 2:
        return (1 << 20) + tide_rng_below(&stage->rng, 3 << 20);
    case 3:
        return TIDE_DRIVE_FRAGMENT_BYTES + tide_rng_below(&stage->rng, 6 << 20);
    default:
        return 1 + tide_rng_below(&stage->rng, 64 << 10);
    }
}

static void prepare(struct transfer_stage *stage, unsigned number)
{
    stage->kind = (transfer_kind)tide_rng_below(&stage->rng, TRANSFER_KINDS);
    (void)snprintf(stage->name, sizeof stage->name, "f%u%s", number,
                   tide_rng_chance(&stage->rng, 1, 3) ? ".docx" : "");
    stage->only_kills = tide_rng_chance(&stage->rng, 1, 3);
    stage->calm = stage->taken = stage->rewrites = stage->same = stage->edited = false;
    stage->kills = stage->pieces = 0;
    stage->saved[0] = '\0';
    const uint64_t bytes = any_size(stage);
    if (transfer_is_up(stage))
        transfer_put_here(stage, stage->name, bytes);
    else
        transfer_put_online(stage, stage->name, bytes);
    if (stage->kind == TRANSFER_DOWN_OVER)
        transfer_put_here(stage, stage->name, 2000);
    if (stage->kind == TRANSFER_UP_OVER)
        transfer_put_online(stage, stage->name, 2000);
}

void transfer_run_one(struct transfer_stage *stage, unsigned number)
{
    struct trial trial = {.stage = stage};
    tide_status rc = TIDE_OK;
    prepare(stage, number);
    stage->act.save = save;
    stage->act.sleep = sleep_ms;
    stage->act.arg = stage;
    make_plan(&trial);
    unsigned tries = 0;
    do {
        stage->calm = tries >= CALM_AFTER;
        tide_sim_faults(stage->sim, !stage->calm && !stage->only_kills);
        if (tries++ == TRIES_MAX)
            tide_sim_fail(stage->sim, "DTR20: %s is never done: %s", stage->name, trial.err.text);
        set_faults(stage);
        rc = transfer_is_up(stage) ? try_upload(&trial) : try_download(&trial);
        stage->totals.tries++;
    } while (go_on(&trial, rc));
    check_bytes(&trial);
    if (stage->linked)
        transfer_link_folder(stage);
    check_online(stage);
    stage->totals.finished++;
    stage->totals.bytes += trial.moved_bytes;
    tide_onedrive_answer_done(&trial.plan.item);
}
