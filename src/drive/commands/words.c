#include "drive/commands/words.h"

#include <stddef.h>

struct word {
    const char *name, *words;
};

static const struct word verbs[] = {
    [TIDE_DRIVE_UP] = {"upload", "upload"},
    [TIDE_DRIVE_NEW] = {"upload_new", "upload (new)"},
    [TIDE_DRIVE_DOWN] = {"download", "download"},
    [TIDE_DRIVE_MKDIR_REMOTE] = {"make_folder_online", "make folder online"},
    [TIDE_DRIVE_MKDIR_LOCAL] = {"make_folder_here", "make folder here"},
    [TIDE_DRIVE_MOVE_REMOTE] = {"move_online", "move online"},
    [TIDE_DRIVE_MOVE_LOCAL] = {"move_here", "move here"},
    [TIDE_DRIVE_DEL_REMOTE] = {"delete_online", "delete online"},
    [TIDE_DRIVE_DEL_LOCAL] = {"delete_here", "delete here"},
    [TIDE_DRIVE_BASE] = {"record", "same on both sides"},
    [TIDE_DRIVE_DROP] = {"forget", "gone on both sides"},
};

static const struct word states[] = {
    [TIDE_DRIVE_READY] = {"ready", ""},
    [TIDE_DRIVE_WAITS_CONSENT] = {"waits_for_consent", "waits for your consent"},
    [TIDE_DRIVE_HELD_MODE] = {"held_by_mode", "held back by the mode of the drive"},
    [TIDE_DRIVE_HELD_NAME] = {"held_by_name", "held back: its name is taken"},
    [TIDE_DRIVE_HELD_OTHER] = {"held_by_other", "waits for another change that is held back"},
    [TIDE_DRIVE_HELD_OWED] = {"held_by_failure", "failed, and waits for its next try"},
    [TIDE_DRIVE_HELD_UNREAD] = {"held_by_unread",
                                "waits: it may be where something cannot be read"},
};

static const struct word notices[] = {
    [TIDE_DRIVE_QUIET] = {"none", "was decided"},
    [TIDE_DRIVE_K1] = {"edit_edit", "was edited on both sides: both are kept"},
    [TIDE_DRIVE_K2] = {"create_create", "was created on both sides: both are kept"},
    [TIDE_DRIVE_K3] = {"edit_delete", "was changed on one side and deleted on the other: kept"},
    [TIDE_DRIVE_K4] = {"move_delete", "was moved here and deleted online: kept"},
    [TIDE_DRIVE_K5] = {"delete_move", "was moved online and deleted here: kept"},
    [TIDE_DRIVE_K6] = {"type", "is a file on one side and a folder on the other: both are kept"},
    [TIDE_DRIVE_K7] = {"move_move", "was moved on both sides: the place online is used"},
    [TIDE_DRIVE_K8] = {"name_clash", "has a name that another one has: renamed"},
    [TIDE_DRIVE_PARTED] = {"hard_link_parted",
                           "was a hard link: new content came from OneDrive, for this name alone"},
};

/* Numbers come from rows, which another version may have written. */
static const struct word *pick(const struct word *list, size_t count, size_t at)
{
    static const struct word unknown = {"unknown", "unknown"};
    return at < count ? &list[at] : &unknown;
}

#define PICK(list, at) pick(list, sizeof(list) / sizeof(list)[0], (size_t)(at))

const char *drive_verb_name(tide_drive_verb verb)
{
    return PICK(verbs, verb)->name;
}

const char *drive_verb_words(tide_drive_verb verb)
{
    return PICK(verbs, verb)->words;
}

const char *drive_state_name(tide_drive_action_state state)
{
    return PICK(states, state)->name;
}

const char *drive_state_words(tide_drive_action_state state)
{
    return PICK(states, state)->words;
}

const char *drive_notice_name(tide_drive_notice notice)
{
    return PICK(notices, notice)->name;
}

const char *drive_notice_words(tide_drive_notice notice)
{
    return PICK(notices, notice)->words;
}

const char *drive_reason_text(tide_drive_reason reason)
{
    switch (reason) {
    case TIDE_DRIVE_REASON_SHARED_FOLDER:
        return "is a shared folder that is not synced";
    case TIDE_DRIVE_REASON_SHARED_FILE:
        return "is a shortcut to a file of another drive";
    case TIDE_DRIVE_REASON_MALWARE:
        return "is said to be malware, and is not downloaded";
    case TIDE_DRIVE_REASON_NOTEBOOK:
        return "is a notebook, which only its own program can open";
    case TIDE_DRIVE_REASON_NONE:
        break;
    }
    return "is ignored, or is in what is not synced";
}
