/* status.c - `tidemark drive status`: how far each drive is, and what is owed, by name (D9, D16, D21). */
#include "base/clocktext.h"
#include "drive/commands/home.h"
#include "drive/commands/look.h"
#include "drive/commands/words.h"
#include "drive/local/scan.h"
#include "drive/mounts.h"
#include "drive/names/key.h"
#include "drive/names/names.h"
#include "world/folder.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { LISTED_MAX = 20, CONFLICTS_MAX = 100, LAST_MAX = 20, PATH_BYTES_MAX = 64 << 10 };

#define SHARED "is a shared folder: "

/* A shortcut to a shared folder. */
struct shown {
    uint64_t item;
    bool attached;
    char why[TIDE_DRIVE_WHY_BYTES + 40];
};

struct showing {
    struct cli *cli;
    const struct tide_drive_row *row;
    tide_rows db;
    int root; /* -1: not mounted */
    tide_buf path;
    tide_json list;
    uint64_t count;
    /* Shared folders of the drive: those that are synced are not among what is not. */
    struct drive_list shared;
    struct shown *shown;
    size_t shown_count, shown_room;
    char lost[TIDE_DRIVE_WHY_BYTES + 40];
};

/* The path of what is listed, or at least its name. */
static void find_path(struct showing *showing, uint64_t item, uint64_t row, tide_text name)
{
    tide_status rc = TIDE_NOT_FOUND;
    if (row != 0)
        rc = tide_drive_path_here(showing->db, row, &showing->path, NULL);
    if (rc != TIDE_OK && item != 0)
        rc = tide_drive_path_of(showing->db, item, &showing->path, NULL);
    if (rc == TIDE_OK)
        return;
    tide_buf_clear(&showing->path);
    (void)tide_buf_add(&showing->path, name.data, name.bytes);
}

/* ---- owed ---- */

static void show_owed(const struct tide_drive_owed *owed, void *arg)
{
    struct showing *showing = arg;
    struct cli *cli = showing->cli;
    char when[32];
    tide_json one;
    if (showing->count++ >= LISTED_MAX && !cli->verbose && !cli->want_json)
        return;
    find_path(showing, owed->item, owed->row, owed->name);
    if (owed->closed && showing->path.bytes == 0)
        (void)tide_buf_add(&showing->path, "/", 1); /* the whole drive */
    tide_json_object(&one);
    tide_json_set_text(&one, "path", tide_buf_text(&showing->path));
    tide_json_set_cstr(&one, "action", drive_verb_name(owed->verb));
    tide_json_set_text(&one, "error", owed->error);
    tide_json_set_u64(&one, "attempts", owed->attempts);
    tide_json_set_u64(&one, "next_unix_ms", owed->next_ms);
    tide_json_set_bool(&one, "read_only", owed->closed);
    tide_json_append(&showing->list, &one);
    if (owed->closed)
        cli_print(cli, "  held: %.*s and all in it: %.*s; next try %s\n", (int)showing->path.bytes,
                  showing->path.data, (int)owed->error.bytes, owed->error.data,
                  cli_time(owed->next_ms, when));
    else
        cli_print(cli, "  owed: %.*s: %.*s; %u tries, next %s\n", (int)showing->path.bytes,
                  showing->path.data, (int)owed->error.bytes, owed->error.data,
                  (unsigned)owed->attempts, cli_time(owed->next_ms, when));
}

/* ---- skipped ---- */

static bool has_marker(const struct showing *showing, tide_text path)
{
    struct tide_entry entry;
    int dir = -1;
    const bool has = tide_folder_enter(showing->root, path, &dir, NULL) == TIDE_OK &&
                     tide_folder_look(dir, TIDE_TEXT(TIDE_DRIVE_MARKER), &entry, NULL) == TIDE_OK;
    tide_folder_close(dir);
    return has;
}

/* Whether it is a shared folder that is shown as a drive; an entry here has its path in `path`.
 * *why_out: it is one that is not synced. */
static bool is_shared(struct showing *showing, const struct tide_drive_skipped *skipped,
                      const char **why_out)
{
    for (size_t i = 0; skipped->item != 0 && i < showing->shown_count; i++)
        if (showing->shown[i].item == skipped->item) {
            *why_out = showing->shown[i].why;
            return showing->shown[i].attached;
        }
    const size_t bytes = strlen(showing->row->dir);
    const tide_text path = tide_buf_text(&showing->path);
    for (size_t i = 0; skipped->row != 0 && i < showing->shared.count; i++) {
        const struct tide_drive_row *row = &showing->shared.rows[i];
        if (row->parent != showing->row->number || strlen(row->dir) <= bytes ||
            !tide_text_equal(tide_text_of(row->dir + bytes + 1), path))
            continue;
        (void)snprintf(showing->lost, sizeof showing->lost, SHARED "%s", row->mount_why);
        *why_out = showing->lost;
        return row->mount != TIDE_DRIVE_MOUNT_LOST; /* else its shortcut is listed */
    }
    return false;
}

/* What the disk says of the entry at `path`. */
static const char *why_here(const struct showing *showing)
{
    const tide_text path = tide_buf_text(&showing->path);
    struct tide_entry entry = {.kind = TIDE_ENTRY_FILE};
    int dir = -1;
    size_t at = path.bytes;
    while (at > 0 && path.data[at - 1] != '/')
        at--;
    if (showing->root >= 0 &&
        tide_folder_enter(showing->root, (tide_text){path.data, at == 0 ? 0 : at - 1}, &dir,
                          NULL) == TIDE_OK)
        (void)tide_folder_look(dir, (tide_text){path.data + at, path.bytes - at}, &entry, NULL);
    tide_folder_close(dir);
    if (entry.kind == TIDE_ENTRY_FOLDER && has_marker(showing, path))
        return "has the marker of another drive, " TIDE_DRIVE_MARKER;
    return entry.kind == TIDE_ENTRY_LINK    ? "is a link"
           : entry.kind == TIDE_ENTRY_OTHER ? "is neither file nor folder"
                                            : "is ignored, or on another disk";
}

static void show_skipped(const struct tide_drive_skipped *skipped, void *arg)
{
    struct showing *showing = arg;
    struct cli *cli = showing->cli;
    const struct tide_drive_name_rules rules = {.business = showing->row->business,
                                                .at_root = skipped->at_root};
    tide_drive_refusal refusal = skipped->row != 0 ? tide_drive_name_up(skipped->name, rules)
                                                   : tide_drive_name_down(skipped->name);
    tide_json one;
    find_path(showing, skipped->item, skipped->row, skipped->name);
    const char *shared_why = NULL;
    if (is_shared(showing, skipped, &shared_why) ||
        (showing->count++ >= LISTED_MAX && !cli->verbose && !cli->want_json))
        return;
    if (refusal == TIDE_DRIVE_NAME_OK && skipped->row != 0)
        refusal = tide_drive_path_up(tide_drive_utf16_units(tide_buf_text(&showing->path)));
    const char *why = shared_why != NULL              ? shared_why
                      : refusal != TIDE_DRIVE_NAME_OK ? tide_drive_refusal_text(refusal)
                      : skipped->row != 0             ? why_here(showing)
                                                      : drive_reason_text(skipped->reason);
    tide_json_object(&one);
    tide_json_set_text(&one, "path", tide_buf_text(&showing->path));
    tide_json_set_cstr(&one, "side", skipped->row != 0 ? "here" : "online");
    tide_json_set_cstr(&one, "reason", why);
    tide_json_append(&showing->list, &one);
    cli_print(cli, "  not synced: %.*s: %s\n", (int)showing->path.bytes, showing->path.data, why);
}

/* ---- shared folders ---- */

static void show_mount(const struct tide_drive_mount *mount, void *arg)
{
    struct showing *showing = arg;
    struct cli *cli = showing->cli;
    const struct tide_drive_row *row = NULL;
    tide_json one;
    for (size_t i = 0; i < showing->shared.count; i++)
        if (mount->drive != 0 && showing->shared.rows[i].number == mount->drive)
            row = &showing->shared.rows[i];
    if (mount->shortcut == TIDE_DRIVE_SHORTCUT_UNKNOWN ||
        (mount->shortcut == TIDE_DRIVE_SHORTCUT_GONE && row == NULL))
        return;
    const bool attached = mount->state == TIDE_DRIVE_MOUNT_ATTACHED && row != NULL;
    if (mount->item != 0 && TIDE_GROW_IN(cli->mem, showing->shown, showing->shown_room,
                                         showing->shown_count + 1, CLI_LIST_MAX)) {
        struct shown *shown = &showing->shown[showing->shown_count++];
        *shown = (struct shown){.item = mount->item, .attached = attached};
        (void)snprintf(shown->why, sizeof shown->why, SHARED "%s",
                       mount->why[0] == '\0' ? "it comes with the next sync" : mount->why);
    }
    find_path(showing, mount->item, 0,
              tide_text_of(row == NULL ? mount->name : row->dir + strlen(showing->row->dir) + 1));
    const tide_text path = tide_buf_text(&showing->path);
    tide_json_object(&one);
    tide_json_set_text(&one, "path", path);
    tide_json_set_cstr(&one, "state", tide_drive_mount_word(mount->state));
    if (row != NULL)
        tide_json_set_cstr(&one, "drive", row->name);
    else
        tide_json_set_null(&one, "drive");
    tide_json_set_cstr(&one, "reason", mount->why);
    tide_json_append(&showing->list, &one);
    if (attached)
        cli_print(cli, "  shared: %.*s is the drive \"%s\"\n", (int)path.bytes, path.data,
                  row->name);
}

static tide_status show_mounts(struct showing *showing, tide_json *json)
{
    struct cli *cli = showing->cli;
    tide_json_array(&showing->list);
    tide_status rc = drive_list_any(cli, NULL, 0, &showing->shared);
    if (rc == TIDE_OK)
        rc = tide_drive_mounts_each(showing->db, showing->row->number, show_mount, showing,
                                    &cli->err);
    tide_json_set(json, "shared_folders", &showing->list);
    return rc;
}

/* ---- what cannot be read ---- */

/* Why a scan was not sure of it, by another look. */
static const char *why_unsure(const struct showing *showing, tide_drive_kind kind)
{
    const tide_text path = tide_buf_text(&showing->path);
    const char *slash = path.bytes == 0 ? NULL : memrchr(path.data, '/', path.bytes);
    const size_t at = slash == NULL ? 0 : (size_t)(slash - path.data);
    const tide_text name = {path.data + (slash == NULL ? 0 : at + 1),
                            path.bytes - (slash == NULL ? 0 : at + 1)};
    struct tide_entry root, entry;
    int dir = -1, inside = -1;
    const char *why = "cannot be read: give yourself the permission, or ignore it";
    if (showing->root < 0 || tide_folder_look_self(showing->root, &root, NULL) != TIDE_OK ||
        tide_folder_enter(showing->root, (tide_text){path.data, at}, &dir, NULL) != TIDE_OK)
        return why;
    if (tide_folder_look(dir, name, &entry, NULL) == TIDE_OK && entry.dev != root.dev)
        why = "is on another disk: add a drive for it, or ignore it";
    else if (kind == TIDE_DRIVE_FOLDER && tide_folder_enter(dir, name, &inside, NULL) == TIDE_OK)
        why = "is empty, and another folder than the one that was synced: mount its disk, or "
              "remove it to delete what was in it";
    else if (kind == TIDE_DRIVE_FILE && tide_folder_open_file(dir, name, &inside, NULL) == TIDE_OK)
        why = "was being written: it is synced when it rests";
    tide_folder_close(inside);
    tide_folder_close(dir);
    return why;
}

static void show_unsure(const struct tide_drive_skipped *unsure, void *arg)
{
    struct showing *showing = arg;
    struct cli *cli = showing->cli;
    tide_json one;
    if (showing->count++ >= LISTED_MAX && !cli->verbose && !cli->want_json)
        return;
    find_path(showing, 0, unsure->row, unsure->name);
    const char *why = why_unsure(showing, unsure->kind);
    tide_json_object(&one);
    tide_json_set_text(&one, "path", tide_buf_text(&showing->path));
    tide_json_set_cstr(&one, "reason", why);
    tide_json_append(&showing->list, &one);
    cli_print(cli, "  left alone: %.*s: %s\n", (int)showing->path.bytes, showing->path.data, why);
}

static void show_rest(struct showing *showing, const char *what)
{
    if (showing->count > LISTED_MAX && !showing->cli->verbose)
        cli_print(showing->cli, "  and %" PRIu64 " more %s; --verbose lists them\n",
                  showing->count - LISTED_MAX, what);
    showing->count = 0;
}

/* ---- for --json and the page: conflicts, and what was changed last ---- */

static void take_conflict(const struct tide_drive_conflict *conflict, void *arg)
{
    struct showing *showing = arg;
    tide_json one;
    if (showing->count++ >= CONFLICTS_MAX)
        return;
    find_path(showing, conflict->item, 0, conflict->name);
    tide_json_object(&one);
    tide_json_set_u64(&one, "id", conflict->id);
    tide_json_set_cstr(&one, "kind", drive_notice_name(conflict->notice));
    tide_json_set_text(&one, "path", tide_buf_text(&showing->path));
    tide_json_set_text(&one, "copy", conflict->copy);
    tide_json_set_u64(&one, "at_unix_ms", conflict->at_ms);
    tide_json_append(&showing->list, &one);
}

static void take_change(const struct drive_change_made *change, void *arg)
{
    struct showing *showing = arg;
    tide_json one;
    tide_json_object(&one);
    tide_json_set_cstr(&one, "action", drive_verb_name(change->verb));
    tide_json_set_text(&one, "name", change->name);
    tide_json_set_u64(&one, "bytes", change->bytes);
    tide_json_set_u64(&one, "at_unix_ms", change->at_ms);
    tide_json_append(&showing->list, &one);
}

static tide_status json_lists(struct showing *showing, tide_json *json)
{
    struct cli *cli = showing->cli;
    showing->count = 0;
    tide_json_array(&showing->list);
    tide_status rc = tide_drive_conflicts_each(showing->db, take_conflict, showing, &cli->err);
    tide_json_set(json, "conflict_list", &showing->list);
    tide_json_array(&showing->list);
    if (rc == TIDE_OK)
        rc = drive_look_last(cli->ledger, showing->row, LAST_MAX, take_change, showing, &cli->err);
    tide_json_set(json, "last_changes", &showing->list);
    return rc;
}

/* ---- one drive ---- */

static void show_counts(struct cli *cli, const struct tide_drive_row *row,
                        const struct drive_look *look)
{
    char size[TIDE_SIZE_TEXT_BYTES];
    char when[32];
    char words[300];
    tide_size_human(look->counts.bytes, size);
    drive_look_words(look, words, sizeof words);
    cli_print(cli, "%s (%s, %s)\n  folder: %s\n", row->name, row->account_name,
              tide_drive_mode_name(row->mode), row->dir);
    if (row->parent != 0)
        cli_print(cli, "  shared with you, in drive \"%s\"%s%s\n", row->parent_name,
                  row->mount_why[0] == '\0' ? "" : "; not synced: ", row->mount_why);
    cli_print(cli, "  tidemark: %s\n",
              look->tidemark_ms == 0 ? "none yet" : cli_time(look->tidemark_ms, when));
    cli_print(cli, "  synced: %" PRIu64 " files (%s) in %" PRIu64 " folders\n", look->counts.files,
              size, look->counts.folders);
    cli_print(cli, "  now: %s\n", words);
    if (look->counts.conflicts + look->counts.notices > 0)
        cli_print(cli,
                  "  conflicts: %" PRIu64 ", and %" PRIu64
                  " other decisions; see `tidemark drive conflicts list %s`\n",
                  look->counts.conflicts, look->counts.notices, row->name);
    if (look->counts.deletions > 0)
        cli_print(cli,
                  "  deletions: %" PRIu64 " wait for your consent; see `tidemark drive deletions "
                  "list %s`\n",
                  look->counts.deletions, row->name);
    if (look->counts.hidden > 0 && row->mode != TIDE_DRIVE_DOWNLOAD_ONLY)
        cli_print(cli,
                  "  deletions: %" PRIu64
                  " missing here and kept online, because they may have been "
                  "moved to what cannot be read\n",
                  look->counts.hidden);
    if (look->failed > 0)
        cli_print(cli, "  jobs: %" PRIu64 " failed; see `tidemark jobs list --state failed`\n",
                  look->failed);
}

static tide_status show_lists(struct showing *showing, const struct drive_look *look,
                              tide_json *json)
{
    struct cli *cli = showing->cli;
    const size_t skipped_max = cli->verbose || cli->want_json ? CLI_LIST_MAX : LISTED_MAX;
    tide_json_array(&showing->list);
    tide_status rc = tide_drive_owed_each(showing->db, show_owed, showing, &cli->err);
    show_rest(showing, "owed");
    tide_json_set(json, "owed", &showing->list);
    tide_json_array(&showing->list);
    if (rc == TIDE_OK)
        rc = tide_drive_unsure_each(showing->db, skipped_max, show_unsure, showing, &cli->err);
    showing->count = look->counts.unsure;
    show_rest(showing, "that cannot be read");
    tide_json_set(json, "unreadable_list", &showing->list);
    tide_json_array(&showing->list);
    if (rc == TIDE_OK)
        rc = tide_drive_skipped_each(showing->db, skipped_max, show_skipped, showing, &cli->err);
    showing->count = look->counts.skipped_here + look->counts.skipped_online;
    show_rest(showing, "not synced");
    tide_json_set(json, "skipped", &showing->list);
    return rc;
}

static tide_status show_drive(struct cli *cli, const struct tide_drive_row *row, tide_json *list)
{
    struct showing showing = {.cli = cli, .row = row, .root = -1};
    struct drive_look look;
    tide_error why = {TIDE_OK, 0, ""};
    tide_json one;
    TIDE_TRY(drive_look(cli->ledger, row, &look, &cli->err));
    const bool mounted = drive_folder_open(row, &showing.root, &why) == TIDE_OK;
    const bool stopped = !mounted && tide_drive_row_syncs(row);
    tide_json_object(&one);
    tide_json_set_cstr(&one, "drive", row->name);
    tide_json_set_cstr(&one, "account", row->account_name);
    tide_json_set_cstr(&one, "dir", row->dir);
    tide_json_set_cstr(&one, "mode", tide_drive_mode_name(row->mode));
    drive_shared_json(row, &one);
    tide_json_set_bool(&one, "mounted", mounted);
    if (row->mount_why[0] != '\0')
        tide_json_set_cstr(&one, "trouble", row->mount_why);
    else if (mounted)
        tide_json_set_null(&one, "trouble");
    else
        tide_json_set_cstr(&one, "trouble", why.text);
    drive_look_json(&look, &one);
    show_counts(cli, row, &look);
    if (stopped)
        cli_print(cli, "  stopped: %s\n", why.text);
    showing.db = drive_rows(cli, row->number);
    showing.path = tide_buf_in(cli->mem, PATH_BYTES_MAX);
    tide_status rc = show_mounts(&showing, &one);
    if (rc == TIDE_OK)
        rc = show_lists(&showing, &look, &one);
    if (rc == TIDE_OK && cli->want_json)
        rc = json_lists(&showing, &one);
    tide_buf_done(&showing.path);
    tide_folder_close(showing.root);
    tide_mem_free(cli->mem, showing.shown, showing.shown_room * sizeof *showing.shown);
    drive_list_done(&showing.shared);
    tide_json_append(list, &one);
    if (stopped || drive_look_needs_user(&look))
        cli->exit_code = CLI_EXIT_BAD_ITEMS;
    return rc;
}

tide_status cli_drive_status(struct cli *cli)
{
    struct drive_list drives;
    tide_json list;
    tide_json_array(&list);
    tide_status rc = drive_list_any(cli, cli->arguments, cli->arguments_count, &drives);
    if (rc == TIDE_OK && drives.count == 0)
        cli_print(cli, "There is no drive. Add one with `tidemark drive add DIR`.\n");
    for (size_t i = 0; rc == TIDE_OK && i < drives.count; i++)
        rc = show_drive(cli, &drives.rows[i], &list);
    tide_json_set(&cli->json, "drives", &list);
    drive_list_done(&drives);
    return rc;
}
