#include "drive/local/trash.h"

#include "base/calendar.h"
#include "base/encode.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

enum { NAMES_TRIED_MAX = 1000, INFO_BYTES_MAX = 16 << 10, DAY_MS = 86400000, DAY_BYTES = 16 };

/* "report.txt", then "report.txt.2": the first that is free. */
static void numbered(tide_text name, unsigned number, char out[NAME_MAX + 1])
{
    char ending[16] = "";
    if (number > 1)
        (void)snprintf(ending, sizeof ending, ".%u", number);
    const size_t room = NAME_MAX - strlen(ending) - sizeof ".trashinfo";
    const size_t bytes = name.bytes < room ? name.bytes : room;
    (void)snprintf(out, NAME_MAX + 1, "%.*s%s", (int)bytes, name.data, ending);
}

/* The record that file managers read: where it was, and when it was deleted. */
static tide_status info_print(const struct tide_drive_trash *trash, tide_text folder,
                              tide_text name, tide_buf *out)
{
    const struct tide_date date = tide_date_of((int64_t)(trash->now_unix_ms / DAY_MS));
    const uint64_t second = trash->now_unix_ms % DAY_MS / 1000;
    TIDE_TRY(tide_buf_add_text(out, "[Trash Info]\nPath="));
    TIDE_TRY(tide_percent_add(out, tide_text_of(trash->path), TIDE_URL_UNRESERVED "/"));
    TIDE_TRY(tide_buf_add_text(out, "/"));
    TIDE_TRY(tide_percent_add(out, folder, TIDE_URL_UNRESERVED "/"));
    if (folder.bytes > 0)
        TIDE_TRY(tide_buf_add_text(out, "/"));
    TIDE_TRY(tide_percent_add(out, name, TIDE_URL_UNRESERVED));
    return tide_buf_print(out, "\nDeletionDate=%04d-%02u-%02uT%02u:%02u:%02u\n", (int)date.year,
                          date.month, date.day, (unsigned)(second / 3600),
                          (unsigned)(second / 60 % 60), (unsigned)(second % 60));
}

/* Moves it to the first free name; TIDE_EXISTS: none is. */
static tide_status move_in(int dir, tide_text name, int to, char taken[NAME_MAX + 1],
                           tide_error *err)
{
    tide_status rc = TIDE_EXISTS;
    for (unsigned number = 1; rc == TIDE_EXISTS && number <= NAMES_TRIED_MAX; number++) {
        numbered(name, number, taken);
        rc = tide_folder_move(dir, name, to, tide_text_of(taken), err);
    }
    return rc;
}

static tide_status to_desktop(const struct tide_drive_trash *trash, int dir, tide_text folder,
                              tide_text name, const struct tide_entry *entry, tide_error *err)
{
    char taken[NAME_MAX + 1], info_name[NAME_MAX + 1];
    int top = -1, files = -1, info = -1;
    struct tide_entry files_entry;
    tide_auto_buf text = tide_buf_heap(INFO_BYTES_MAX);
    TIDE_TRY(tide_folder_open(trash->desktop, &top, err));
    tide_status rc = tide_folder_enter(top, TIDE_TEXT("files"), &files, err);
    if (rc == TIDE_OK)
        rc = tide_folder_enter(top, TIDE_TEXT("info"), &info, err);
    if (rc == TIDE_OK)
        rc = tide_folder_look_self(files, &files_entry, err);
    if (rc == TIDE_OK && files_entry.dev != entry->dev)
        rc = tide_error_set(err, TIDE_NOT_FOUND, "the trash is on another disk");
    if (rc == TIDE_OK)
        rc = info_print(trash, folder, name, &text);
    if (rc == TIDE_OK)
        rc = move_in(dir, name, files, taken, err);
    if (rc == TIDE_OK) {
        /* Without its record the file is in the trash all the same, only without its path. */
        (void)snprintf(info_name, sizeof info_name, "%.*s.trashinfo", NAME_MAX - 10, taken);
        (void)tide_folder_write(info, tide_text_of(info_name), 0, tide_buf_text(&text), NULL);
    }
    tide_folder_close(info);
    tide_folder_close(files);
    tide_folder_close(top);
    return rc;
}

/* "2026-11-17" */
static void day_print(uint64_t day, char out[DAY_BYTES])
{
    const struct tide_date date = tide_date_of((int64_t)day);
    (void)snprintf(out, DAY_BYTES, "%04u-%02u-%02u", (unsigned)date.year % 10000, date.month,
                   date.day);
}

static tide_status make_and_enter(int dir, tide_text name, int *made_out, tide_error *err)
{
    const tide_status rc = tide_folder_make(dir, name, err);
    return rc == TIDE_OK || rc == TIDE_EXISTS ? tide_folder_enter(dir, name, made_out, err) : rc;
}

static tide_status to_own(const struct tide_drive_trash *trash, int dir, tide_text name,
                          tide_error *err)
{
    char taken[NAME_MAX + 1], day[DAY_BYTES];
    int own = -1, today = -1;
    day_print(trash->now_unix_ms / DAY_MS, day);
    TIDE_TRY(make_and_enter(trash->root, TIDE_TEXT(TIDE_DRIVE_TRASH), &own, err));
    tide_status rc = make_and_enter(own, tide_text_of(day), &today, err);
    if (rc == TIDE_OK)
        rc = move_in(dir, name, today, taken, err);
    tide_folder_close(today);
    tide_folder_close(own);
    return rc;
}

tide_status tide_drive_trash_file(const struct tide_drive_trash *trash, int dir, tide_text folder,
                                  tide_text name, const struct tide_entry *expected,
                                  tide_error *err)
{
    struct tide_entry is;
    TIDE_TRY(tide_folder_look(dir, name, &is, err));
    if (!tide_entry_same(&is, expected) || is.kind != TIDE_ENTRY_FILE)
        return tide_error_set(err, TIDE_STALE, "the file changed before it was deleted");
    if (trash->desktop != NULL && to_desktop(trash, dir, folder, name, &is, err) == TIDE_OK)
        return TIDE_OK;
    return to_own(trash, dir, name, err);
}

/* ---- emptying ---- */

struct emptying {
    uint64_t now_unix_ms;
    char last[DAY_BYTES]; /* this day and later ones are not emptied */
    int dir;
    tide_status rc;
    tide_error *err;
};

static bool is_day(tide_text name)
{
    static const char shape[] = "dddd-dd-dd";
    for (size_t i = 0; i < name.bytes; i++)
        if (i >= sizeof shape - 1 ||
            (shape[i] == 'd' ? name.data[i] < '0' || name.data[i] > '9' : name.data[i] != '-'))
            return false;
    return name.bytes == sizeof shape - 1;
}

static bool remove_old(tide_text name, void *arg)
{
    struct emptying *emptying = arg;
    struct tide_entry entry;
    const uint64_t keeps_ms = (uint64_t)TIDE_DRIVE_TRASH_DAYS * DAY_MS;
    /* What cannot be looked at or removed now is tried again tomorrow. */
    if (tide_folder_look(emptying->dir, name, &entry, NULL) == TIDE_OK &&
        entry.kind == TIDE_ENTRY_FILE &&
        entry.ctime_ns / 1000000 + keeps_ms < emptying->now_unix_ms)
        (void)tide_folder_remove(emptying->dir, name, &entry, NULL);
    return true;
}

static bool empty_day(tide_text name, void *arg)
{
    struct emptying *emptying = arg;
    struct emptying day = *emptying;
    struct tide_entry entry;
    if (!is_day(name) || memcmp(name.data, emptying->last, name.bytes) >= 0 ||
        tide_folder_look(emptying->dir, name, &entry, NULL) != TIDE_OK ||
        tide_folder_enter(emptying->dir, name, &day.dir, NULL) != TIDE_OK)
        return true;
    emptying->rc = tide_folder_list(day.dir, remove_old, &day, emptying->err);
    tide_folder_close(day.dir);
    (void)tide_folder_remove(emptying->dir, name, &entry, NULL); /* if nothing is left in it */
    return emptying->rc == TIDE_OK;
}

tide_status tide_drive_trash_empty(int root, uint64_t now_unix_ms, tide_error *err)
{
    struct emptying emptying = {.now_unix_ms = now_unix_ms, .dir = -1, .err = err};
    const uint64_t today = now_unix_ms / DAY_MS;
    if (today < TIDE_DRIVE_TRASH_DAYS)
        return TIDE_OK; /* a clock that was never set */
    day_print(today - TIDE_DRIVE_TRASH_DAYS, emptying.last);
    tide_status rc = tide_folder_enter(root, TIDE_TEXT(TIDE_DRIVE_TRASH), &emptying.dir, err);
    if (rc != TIDE_OK)
        return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
    rc = tide_folder_list(emptying.dir, empty_day, &emptying, err);
    tide_folder_close(emptying.dir);
    return rc == TIDE_OK ? emptying.rc : rc;
}
