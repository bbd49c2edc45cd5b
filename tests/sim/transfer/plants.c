/* plants.c - what the linker puts between src/drive/act and what it calls (--wrap in meson.build): kills
 * at the disk, a full disk, users who write in that moment; and bugs on purpose. */
#include "seeds/token.h"
#include "support/heap.h"
#include "support/wrap.h"
#include "transfer.h"

#include <fcntl.h>

struct transfer_stage *transfer_now;

static bool planted(enum transfer_plant plant)
{
    return transfer_now != NULL && transfer_now->plant == plant;
}

static bool is_partial(tide_text name)
{
    return name.bytes > 8 && memcmp(name.data + name.bytes - 8, ".partial", 8) == 0;
}

static tide_status stopped(tide_error *err)
{
    return tide_error_set(err, TIDE_STOPPED, "the process was killed");
}

/* ---- the disk ---- */

static bool killed_writing(struct transfer_stage *stage)
{
    const bool killed = transfer_killed(stage, T_KILLED_AT_DISK, 20);
    stage->pieces += killed;
    return killed;
}

WRAP(tide_status, tide_folder_write, int dir, tide_text name, uint64_t offset, tide_text bytes,
     tide_error *err)
{
    struct transfer_stage *stage = transfer_now;
    if (transfer_dead(stage) || killed_writing(stage))
        return stopped(err);
    if (transfer_happens(stage, T16_DISK_FULL, 20))
        return tide_error_set(err, TIDE_DISK_FULL, "No space left on device");
    if (planted(TPLANT_EARLY_NAME) && is_partial(name) && !transfer_is_up(stage))
        (void)__real_tide_folder_write(dir, tide_text_of(stage->name), offset, bytes, NULL);
    TIDE_TRY(__real_tide_folder_write(dir, name, offset, bytes, err));
    return killed_writing(stage) ? stopped(err) : TIDE_OK;
}

WRAP(tide_status, tide_folder_place, int dir, tide_text partial, tide_text name, uint64_t mtime_s,
     const struct tide_entry *expected, tide_error *err)
{
    struct transfer_stage *stage = transfer_now;
    if (transfer_dead(stage) || transfer_killed(stage, T_KILLED_AT_DISK, 10))
        return stopped(err);
    if (!stage->linked && transfer_happens(stage, T18_TARGET_CHANGED, 8))
        transfer_put_here(stage, stage->name, 3000);
    TIDE_TRY(__real_tide_folder_place(dir, partial, name, mtime_s, expected, err));
    return transfer_killed(stage, T_KILLED_AT_DISK, 6) ? stopped(err) : TIDE_OK;
}

WRAP(tide_status, tide_folder_move, int dir, tide_text name, int to_dir, tide_text to_name,
     tide_error *err)
{
    struct transfer_stage *stage = transfer_now;
    if (transfer_dead(stage) || transfer_killed(stage, T_KILLED_AT_DISK, 10))
        return stopped(err);
    TIDE_TRY(__real_tide_folder_move(dir, name, to_dir, to_name, err));
    return transfer_killed(stage, T_KILLED_AT_DISK, 10) ? stopped(err) : TIDE_OK;
}

WRAP(tide_status, tide_folder_remove, int dir, tide_text name, const struct tide_entry *expected,
     tide_error *err)
{
    struct transfer_stage *stage = transfer_now;
    if (transfer_dead(stage) || transfer_killed(stage, T_KILLED_AT_DISK, 10))
        return stopped(err);
    return __real_tide_folder_remove(dir, name, expected, err);
}

WRAP(tide_status, tide_folder_enter, int root, tide_text path, int *dir_out, tide_error *err)
{
    if (!planted(TPLANT_LINKS_FOLLOWED) || path.bytes == 0)
        return __real_tide_folder_enter(root, path, dir_out, err);
    const char *name = textf("%.*s", (int)path.bytes, path.data);
    *dir_out = openat(root, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return *dir_out >= 0 ? TIDE_OK : tide_error_set(err, TIDE_NOT_FOUND, "%s", name);
}

/* ---- the network ---- */

bool seeds_token_is_sent(void)
{
    return planted(TPLANT_TOKEN_SENT);
}

/* A server that replaces by name would answer with a session for whoever has it. */
WRAP(tide_status, tide_onedrive_session_create, tide_onedrive *onedrive, tide_job *job,
     const struct tide_onedrive_target *target, uint64_t bytes, uint64_t modified_unix_ms,
     struct tide_onedrive_session *session_out, tide_error *err)
{
    struct tide_onedrive_target other = *target;
    tide_status rc = __real_tide_onedrive_session_create(onedrive, job, &other, bytes,
                                                         modified_unix_ms, session_out, err);
    if (rc == TIDE_EXISTS && planted(TPLANT_TWICE)) {
        other.name = tide_text_of(textf("%.*s 1", (int)target->name.bytes, target->name.data));
        rc = __real_tide_onedrive_session_create(onedrive, job, &other, bytes, modified_unix_ms,
                                                 session_out, err);
    }
    if (rc != TIDE_EXISTS || !planted(TPLANT_BY_NAME))
        return rc;
    struct tide_onedrive_answer there = {.value = NULL};
    TIDE_TRY(tide_onedrive_get_at(onedrive, job, target->drive, target->parent, target->name,
                                  &there, err));
    other.id = there.item.id;
    other.parent = other.name = TIDE_TEXT("");
    rc = __real_tide_onedrive_session_create(onedrive, job, &other, bytes, modified_unix_ms,
                                             session_out, err);
    tide_onedrive_answer_done(&there);
    return rc;
}
