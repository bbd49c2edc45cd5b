/* plants.c - what the linker puts between the drive's jobs and what they call: where a crash strikes, users
 * who act in that moment, a full disk; and bugs on purpose. */
#include "jobs.h"

#include "drive/plan/plan.h"
#include "drive/act/inside.h"
#include "drive/sync/inside.h"
#include "seeds/token.h"
#include "support/wrap.h"

struct jobs_stage *jobs_now;

static bool planted(enum jobs_plant plant)
{
    return jobs_now != NULL && jobs_now->plant == plant;
}

/* ---- which step of an action is done and not written down ---- */

/* Right there a crash matters most. */
static void may_crash(uint32_t one_in)
{
    struct jobs_stage *stage = jobs_now;
    if (!stage->calm && tide_rng_below(&stage->rng, one_in) == 0)
        tide_sim_crash_after(stage->f->sim, 1 + tide_rng_below(&stage->rng, 30),
                             TIDE_SIM_CRASH_KILL);
}

static void opens(tide_status rc, enum jobs_open open)
{
    if (rc != TIDE_OK)
        return;
    jobs_now->open[open]++;
    may_crash(open == OPEN_DELETE ? 2 : 5); /* deletions are rare */
}

#define DO(verb, kind)                                                                             \
    WRAP(tide_status, tide_drive_do_##verb, struct tide_drive_task *task, tide_error *err)         \
    {                                                                                              \
        const tide_status rc = __real_tide_drive_do_##verb(task, err);                             \
        opens(rc, task->order.copy_of != 0 ? OPEN_ASIDE : (kind));                                 \
        return rc;                                                                                 \
    }
DO(down, OPEN_DOWN)
DO(up, OPEN_UP)
DO(new, OPEN_UP)
DO(del_local, OPEN_DELETE)
DO(del_remote, OPEN_DELETE)
DO(move_local, OPEN_MOVE)
DO(move_remote, OPEN_MOVE)

static enum jobs_open open_of(const struct tide_drive_order *order)
{
    if (order->copy_of != 0)
        return OPEN_ASIDE;
    switch (order->verb) {
    case TIDE_DRIVE_DOWN:
        return OPEN_DOWN;
    case TIDE_DRIVE_UP:
    case TIDE_DRIVE_NEW:
        return OPEN_UP;
    case TIDE_DRIVE_DEL_LOCAL:
    case TIDE_DRIVE_DEL_REMOTE:
        return OPEN_DELETE;
    case TIDE_DRIVE_MOVE_LOCAL:
    case TIDE_DRIVE_MOVE_REMOTE:
        return OPEN_MOVE;
    default:
        return OPENS;
    }
}

WRAP(tide_status, tide_drive_settle, tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct tide_drive_task *task = arg;
    const enum jobs_open open = open_of(&task->order);
    const tide_status rc = __real_tide_drive_settle(transaction, arg, err);
    if (rc == TIDE_OK && task->outcome == TIDE_OK && open < OPENS && jobs_now->open[open] > 0)
        jobs_now->open[open]--;
    return rc;
}

WRAP(tide_status, tide_drive_page, tide_rows db, const struct tide_drive_seen *items, size_t count,
     tide_text next, tide_text delta, uint64_t now_ms, tide_error *err)
{
    const tide_status rc = __real_tide_drive_page(db, items, count, next, delta, now_ms, err);
    jobs_now->in_round = delta.bytes == 0;
    if (jobs_now->in_round)
        may_crash(4);
    return rc;
}

WRAP(tide_status, tide_drive_look_here, const struct tide_drive_looking *looking, tide_error *err)
{
    const tide_status rc = __real_tide_drive_look_here(looking, err);
    jobs_now->seen = jobs_now->seen || rc == TIDE_OK;
    return rc;
}

WRAP(tide_status, tide_drive_plan_write, struct tide_drive_planned *plan, tide_error *err)
{
    jobs_now->seen = false;
    return __real_tide_drive_plan_write(plan, err);
}

WRAP(tide_status, tide_job_save, tide_job *job, tide_text resume, tide_error *err)
{
    const tide_status rc = __real_tide_job_save(job, resume, err);
    jobs_now->session_new = false;
    return rc;
}

/* ---- the disk, and users ---- */

WRAP(tide_status, tide_folder_write, int dir, tide_text name, uint64_t offset, tide_text bytes,
     tide_error *err)
{
    if (!jobs_now->calm && jobs_happens(jobs_now, J16_DISK_FULL, 60))
        return tide_error_set(err, TIDE_DISK_FULL, "No space left on device");
    return __real_tide_folder_write(dir, name, offset, bytes, err);
}

WRAP(tide_status, tide_folder_list, int dir, bool (*visit)(tide_text name, void *arg), void *arg,
     tide_error *err)
{
    if (!jobs_now->calm && jobs_happens(jobs_now, J14_NO_PERMISSION, 80))
        return tide_error_set(err, TIDE_IO, "Permission denied");
    return __real_tide_folder_list(dir, visit, arg, err);
}

WRAP(tide_status, tide_folder_place, int dir, tide_text partial, tide_text name, uint64_t mtime_s,
     const struct tide_entry *expected, tide_error *err)
{
    if (jobs_now->plant == JPLANT_NONE)
        if (!jobs_now->calm && jobs_happens(jobs_now, J18_CHANGED_WHILE_PLACING, 6))
            for (int i = 0; i < 4; i++)
                jobs_edit_any(jobs_now, false);
    return __real_tide_folder_place(dir, partial, name, mtime_s, expected, err);
}

/* ---- bugs on purpose ---- */

WRAP(tide_status, tide_drive_delete_local, const struct tide_drive_act *act,
     const struct tide_drive_here *was, const struct tide_drive_content *baseline, tide_error *err)
{
    int dir = -1;
    struct tide_entry is;
    if (!jobs_now->calm && planted(JPLANT_DELETE_UNGATED))
        for (int i = 0; i < 4; i++)
            jobs_edit_any(jobs_now, false);
    if (!planted(JPLANT_DELETE_UNGATED) || was->entry.kind != TIDE_ENTRY_FILE)
        return __real_tide_drive_delete_local(act, was, baseline, err);
    TIDE_TRY(tide_folder_enter(act->root, was->folder, &dir, err));
    tide_status rc = tide_folder_look(dir, was->name, &is, err);
    if (rc == TIDE_OK)
        rc = tide_folder_remove(dir, was->name, &is, err);
    tide_folder_close(dir);
    return rc;
}

bool seeds_token_is_sent(void)
{
    return planted(JPLANT_TOKEN_SENT);
}

/* Bytes of ours under the name of a user. */
WRAP(tide_status, tide_drive_place, int dir, const char *partial,
     const struct tide_drive_download *plan, uint64_t mtime_s, struct tide_drive_downloaded *out,
     tide_error *err)
{
    if (planted(JPLANT_PART_PLACED) && out->content.bytes > 1)
        (void)__real_tide_folder_write(dir, plan->name, 0, TIDE_TEXT("half"), NULL);
    if (planted(JPLANT_PART_NAMED) && out->content.bytes > 1)
        (void)__real_tide_folder_write(dir, TIDE_TEXT("part.txt"), 0, TIDE_TEXT("half"), NULL);
    return __real_tide_drive_place(dir, partial, plan, mtime_s, out, err);
}

WRAP(tide_status, tide_drive_sweep, const struct tide_drive_looking *looking, tide_error *err)
{
    return planted(JPLANT_LEFT_OVER) ? TIDE_OK : __real_tide_drive_sweep(looking, err);
}
