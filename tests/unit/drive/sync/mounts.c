/* Folders that others share (D10, D16, D35): a drive of its own at the place of its shortcut.
 *
 * Goal: what is in it crosses both ways; whatever happens to its folder here, to its shortcut or to its
 * target, nothing is deleted on any side that was not deleted in it, and the drive around it never sends
 * it as its own.
 * Method: a second user whose folder the first one has a shortcut to. */
#include "drive_sync_fixture.h"

#include "drive/local/scan.h"
#include "drive/mounts.h"
#include "ledger/rows.h"
#include "support/temp_dir.h"

#include <sys/stat.h>
#include <unistd.h>

#define ADA "ada@example.org"

static void ada(struct fixture *f, const char *what, const char *body)
{
    const char *whole = textf("{\"user\":\"" ADA "\",%s", body + 1);
    json_decref(tide_sim_cloud_control(f->cloud, f->sim, "POST", textf("/_cloud/drive/%s", what),
                                       tide_text_of(whole)));
}

static void put_ada(struct fixture *f, const char *path, const char *text)
{
    ada(f, "put", textf("{\"path\":\"%s\",\"content\":\"%s\"}", path, text));
}

static bool has_ada(struct fixture *f, const char *path)
{
    tide_buf text = tide_sim_cloud_text(f->cloud, f->sim, "/_cloud/drive?user=" ADA);
    const bool has = strstr(tide_buf_cstr(&text), textf(" %s\n", path)) != NULL;
    tide_buf_done(&text);
    return has;
}

static bool has_me(struct fixture *f, const char *path)
{
    char *tree = tree_online(f);
    const bool has = strstr(tree, textf(" %s\n", path)) != NULL;
    free(tree);
    return has;
}

static void shortcut(struct fixture *f, const char *path, const char *to)
{
    online(f, "shortcut",
           textf("{\"path\":\"%s\",\"to\":{\"user\":\"" ADA "\",\"path\":\"%s\"}}", path, to));
}

/* Ada has Team/plan.txt, Team/deep/old.txt and secret.txt; Shared leads to Team. */
static void share(struct fixture *f)
{
    (void)tide_sim_cloud_user(f->cloud, f->sim, ADA, "bearer-2", (struct box_mailbox_options){0});
    put_ada(f, "Team/plan.txt", "plan");
    put_ada(f, "Team/deep/old.txt", "old");
    put_ada(f, "secret.txt", "secret");
    shortcut(f, "Shared", "Team");
    put_online(f, "mine.txt", "mine");
}

/* ---- all drives ---- */

struct rows {
    struct tide_drive_row list[4];
    size_t count;
};

static void take_row(const struct tide_drive_row *row, void *arg)
{
    struct rows *rows = arg;
    assert_true(rows->count < 4);
    rows->list[rows->count++] = *row;
}

static tide_status read_rows(tide_transaction *transaction, void *arg, tide_error *err)
{
    ((struct rows *)arg)->count = 0;
    return tide_drives_each(tide_transaction_rows(transaction), take_row, arg, err);
}

static struct rows *drives(struct fixture *f)
{
    static struct rows rows;
    OK(tide_transact(f->engine, read_rows, &rows, &f->err));
    return &rows;
}

/* As `drive sync` does it, without a failed job. */
static void sync_all(struct fixture *f)
{
    const struct rows rows = *drives(f);
    struct tide_progress progress;
    for (size_t i = 0; i < rows.count; i++)
        OK(tide_drive_sync(f->drive, &rows.list[i], false, &f->err));
    OK(tide_engine_wait(f->engine, 3600000, &f->err));
    tide_engine_progress(f->engine, &progress);
    assert_int_equal(progress.failed, 0);
}

struct found {
    struct tide_drive_mount mount;
    size_t count;
    uint32_t parent;
};

static void take_mount(const struct tide_drive_mount *mount, void *arg)
{
    struct found *found = arg;
    found->mount = *mount;
    found->count++;
}

static tide_status read_mounts(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct found *found = arg;
    return tide_drive_mounts_each(tide_transaction_rows(transaction), found->parent, take_mount,
                                  found, err);
}

static size_t mounts(struct fixture *f, struct tide_drive_mount *last_out)
{
    struct found found = {.parent = f->row.number};
    OK(tide_transact(f->engine, read_mounts, &found, &f->err));
    if (last_out != NULL)
        *last_out = found.mount;
    return found.count;
}

static void assert_mount_at(struct fixture *f, tide_drive_mount_state state, const char *why,
                            int line)
{
    struct tide_drive_mount mount = {.drive = 0};
    const size_t count = mounts(f, &mount);
    if (count != 1 || mount.state != state || strstr(mount.why, why) == NULL)
        fail_msg("line %d: %zu, it is %d: %s", line, count, (int)mount.state, mount.why);
}
#define assert_mount(f, state, why) assert_mount_at(f, state, why, __LINE__)

static void remove_tree(struct fixture *f, const char *path)
{
    char whole[256];
    (void)snprintf(whole, sizeof whole, "%s/%s", f->root, path);
    assert_int_equal(temp_dir_remove(whole), 0);
}

/* ---- syncing ---- */

CASE(a_shared_folder_is_synced_as_a_drive_of_its_own)
{
    share(f);
    sync_now(f); /* attached, and synced for the first time, by one sync */
    assert_here(f, "mine.txt", "mine");
    assert_here(f, "Shared/plan.txt", "plan");
    assert_here(f, "Shared/deep/old.txt", "old");
    assert_false(is_here(f, "secret.txt"));
    assert_mount(f, TIDE_DRIVE_MOUNT_ATTACHED, "");
    const struct rows rows = *drives(f);
    assert_int_equal(rows.count, 2);
    assert_string_equal(rows.list[1].name, "docs/Shared");
    assert_int_equal(rows.list[1].parent, f->row.number);
    assert_string_equal(rows.list[1].parent_name, "docs");
    assert_string_equal(rows.list[1].dir, textf("%s/Shared", f->root));

    /* Both ways: changes, new ones, moves and deletions, and none of it in the drive around it. */
    put_here(f, "Shared/plan.txt", "plan two");
    put_here(f, "Shared/new.txt", "new");
    make_here(f, "Shared/made");
    move_here(f, "Shared/deep/old.txt", "Shared/made/older.txt");
    put_ada(f, "Team/hers.txt", "hers");
    sync_all(f);
    sync_all(f);
    assert_here(f, "Shared/hers.txt", "hers");
    assert_true(has_ada(f, "Team/new.txt"));
    assert_true(has_ada(f, "Team/made/older.txt"));
    assert_false(has_ada(f, "Team/deep/old.txt"));
    ada(f, "delete", "{\"path\":\"Team/hers.txt\"}");
    remove_here(f, "Shared/new.txt");
    sync_all(f);
    pass(f, 15);
    sync_all(f);
    assert_false(is_here(f, "Shared/hers.txt"));
    assert_false(has_ada(f, "Team/new.txt"));
    assert_false(has_me(f, "Shared/plan.txt"));
    assert_int_equal(rows_of(f, "SELECT count(*) FROM drive_@_base"), 1);
    assert_int_equal(rows_of(f, "SELECT count(*) FROM drive_@_conflict"), 0);
    assert_int_equal(temporaries(f), 0);

    /* At rest each of them asks once. */
    sync_all(f);
    f->calls = 0;
    sync_all(f);
    assert_int_equal(f->calls, 2);
}

CASE(a_shared_folder_in_a_folder_comes_when_that_is_here)
{
    share(f);
    online(f, "delete", "{\"path\":\"Shared\"}");
    put_online(f, "Work/notes.txt", "notes");
    shortcut(f, "Work/Shared", "Team");
    sync_now(f);
    assert_here(f, "Work/notes.txt", "notes");
    assert_here(f, "Work/Shared/plan.txt", "plan");
    /* It moves with the folder that it is in: here, */
    move_here(f, "Work", "Job");
    sync_all(f);
    sync_all(f);
    assert_true(has_me(f, "Job/notes.txt"));
    put_here(f, "Job/Shared/plan.txt", "plan two");
    sync_all(f);
    assert_mount(f, TIDE_DRIVE_MOUNT_ATTACHED, "");
    /* and online. */
    online(f, "move", "{\"path\":\"Job\",\"to\":\"Office\"}");
    sync_all(f);
    sync_all(f);
    put_ada(f, "Team/later.txt", "later");
    sync_all(f);
    assert_here(f, "Office/Shared/plan.txt", "plan two");
    assert_here(f, "Office/Shared/later.txt", "later");
    assert_mount(f, TIDE_DRIVE_MOUNT_ATTACHED, "");
}

/* D37: what is changed in it stays here, what comes from there comes. */
CASE(a_shared_folder_that_is_read_only_is_held)
{
    share(f);
    online(f, "shortcut", "{\"path\":\"Shared\",\"role\":\"read\"}");
    sync_now(f);
    put_here(f, "Shared/mine too.txt", "mine too");
    put_ada(f, "Team/more.txt", "more");
    sync_all(f);
    sync_all(f);
    assert_here(f, "Shared/more.txt", "more");
    assert_here(f, "Shared/mine too.txt", "mine too");
    assert_false(has_ada(f, "Team/mine too.txt"));
    f->row = drives(f)->list[1];
    assert_int_equal(rows_of(f, "SELECT count(*) FROM drive_@_owed WHERE loop = 2"), 1);
}

/* ---- removed here ---- */

CASE(a_shared_folder_that_is_removed_here_is_detached)
{
    share(f);
    sync_now(f);
    remove_tree(f, "Shared");
    sync_all(f);
    pass(f, 30);
    sync_all(f);
    sync_full(f);
    assert_mount(f, TIDE_DRIVE_MOUNT_DETACHED, "removed");
    assert_true(has_ada(f, "Team/plan.txt")); /* its target is untouched, */
    assert_true(has_ada(f, "Team/deep/old.txt"));
    assert_true(has_me(f, "Shared")); /* and so is the shortcut */
    assert_false(is_here(f, "Shared"));
    /* An empty folder in its place: it comes again, from the start. */
    put_ada(f, "Team/plan.txt", "plan two");
    make_here(f, "Shared");
    sync_now(f);
    assert_mount(f, TIDE_DRIVE_MOUNT_ATTACHED, "");
    assert_here(f, "Shared/plan.txt", "plan two");
    assert_here(f, "Shared/deep/old.txt", "old");
    assert_int_equal(drives(f)->count, 2);
}

/* A rename here is not sent: the folder is not synced until it is back, and not sent as another one. */
CASE(a_shared_folder_that_is_moved_here_waits_for_its_place)
{
    share(f);
    sync_now(f);
    move_here(f, "Shared", "Elsewhere");
    sync_all(f);
    pass(f, 30);
    put_here(f, "Elsewhere/plan.txt", "plan two");
    sync_all(f);
    assert_mount(f, TIDE_DRIVE_MOUNT_DETACHED, "moved");
    assert_false(has_me(f, "Elsewhere"));
    assert_true(has_ada(f, "Team/plan.txt"));
    move_here(f, "Elsewhere", "Shared");
    sync_all(f);
    sync_all(f);
    assert_mount(f, TIDE_DRIVE_MOUNT_ATTACHED, "");
    tide_buf text = tide_sim_cloud_text(f->cloud, f->sim, "/_cloud/drive?user=" ADA);
    assert_non_null(strstr(tide_buf_cstr(&text), "file 8 "));
    tide_buf_done(&text);
    f->row = drives(f)->list[1];
    assert_int_equal(rows_of(f, "SELECT count(*) FROM drive_@_conflict"), 0);
}

static tide_status remove_mount(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct rows *rows = arg;
    return tide_drives_remove(tide_transaction_rows(transaction), rows->list[1].number, err);
}

CASE(a_shared_folder_that_a_user_ends_is_not_attached_again)
{
    share(f);
    sync_now(f);
    struct rows rows = *drives(f);
    OK(tide_transact(f->engine, remove_mount, &rows, &f->err));
    put_ada(f, "Team/later.txt", "later");
    sync_all(f);
    sync_all(f);
    assert_mount(f, TIDE_DRIVE_MOUNT_DETACHED, "drive remove");
    assert_int_equal(drives(f)->count, 1);
    assert_here(f, "Shared/plan.txt", "plan"); /* its files stay, */
    assert_false(is_here(f, "Shared/later.txt"));
    online(f, "delete", "{\"path\":\"Shared\"}");
    sync_all(f);
    sync_all(f);
    assert_false(has_me(f, "Shared")); /* and are never sent */
    assert_true(has_ada(f, "Team/plan.txt"));
}

/* ---- its shortcut ---- */

CASE(files_stay_when_the_shortcut_is_gone)
{
    share(f);
    sync_now(f);
    put_here(f, "Shared/mine too.txt", "mine too");
    online(f, "delete", "{\"path\":\"Shared\"}");
    sync_now(f);
    pass(f, 30);
    sync_all(f);
    sync_full(f);
    assert_mount(f, TIDE_DRIVE_MOUNT_LOST, "shortcut is gone");
    assert_here(f, "Shared/plan.txt", "plan");
    assert_here(f, "Shared/mine too.txt", "mine too");
    assert_false(has_me(f, "Shared"));
    assert_false(has_ada(f, "Team/mine too.txt"));
    assert_true(has_ada(f, "Team/plan.txt"));
    /* A new shortcut to it: as it was, with what changed meanwhile. */
    put_ada(f, "Team/plan.txt", "plan two");
    shortcut(f, "Shared", "Team");
    sync_all(f);
    sync_all(f);
    assert_mount(f, TIDE_DRIVE_MOUNT_ATTACHED, "");
    assert_here(f, "Shared/plan.txt", "plan two");
    assert_true(has_ada(f, "Team/mine too.txt"));
    /* Gone again, and the user takes the files away: then it is forgotten. */
    online(f, "delete", "{\"path\":\"Shared\"}");
    sync_all(f);
    remove_tree(f, "Shared");
    sync_all(f);
    sync_all(f);
    assert_int_equal(mounts(f, NULL), 0);
    assert_int_equal(drives(f)->count, 1);
    assert_true(has_ada(f, "Team/plan.txt"));
}

CASE(the_folder_follows_its_shortcut)
{
    share(f);
    online(f, "folder", "{\"path\":\"Work\"}");
    sync_now(f);
    sync_now(f);
    online(f, "move", "{\"path\":\"Shared\",\"to\":\"Work/Team\"}");
    sync_all(f);
    sync_all(f);
    assert_false(is_here(f, "Shared"));
    assert_here(f, "Work/Team/plan.txt", "plan");
    assert_string_equal(drives(f)->list[1].name, "docs/Team");
    f->got_bytes = 0;
    put_here(f, "Work/Team/plan.txt", "plan two");
    sync_all(f);
    sync_all(f);
    assert_int_equal(f->got_bytes, 0);
    assert_mount(f, TIDE_DRIVE_MOUNT_ATTACHED, "");
    /* Where something else is, it waits. */
    make_here(f, "Other");
    put_here(f, "Other/own.txt", "own");
    online(f, "move", "{\"path\":\"Work/Team\",\"to\":\"Other\"}");
    sync_all(f);
    assert_mount(f, TIDE_DRIVE_MOUNT_HELD, "renamed online");
    assert_here(f, "Other/own.txt", "own");
    assert_here(f, "Work/Team/plan.txt", "plan two");
    assert_false(has_ada(f, "Team/own.txt"));
    /* A rule of the drive that it is in counts for it, too. */
    ignore(f, "/Other/");
    sync_all(f);
    assert_mount(f, TIDE_DRIVE_MOUNT_IGNORED, "ignored");
    assert_here(f, "Work/Team/plan.txt", "plan two");
    assert_true(has_ada(f, "Team/plan.txt"));
}

CASE(a_folder_of_a_user_is_never_attached)
{
    share(f);
    make_here(f, "Shared");
    put_here(f, "Shared/private.txt", "private");
    sync_all(f);
    sync_all(f);
    assert_mount(f, TIDE_DRIVE_MOUNT_HELD, "has its place here");
    assert_int_equal(drives(f)->count, 1);
    assert_false(has_ada(f, "Team/private.txt"));
    assert_false(is_here(f, "Shared/plan.txt"));
    move_here(f, "Shared", "private");
    sync_all(f);
    sync_all(f);
    assert_here(f, "Shared/plan.txt", "plan");
    assert_true(has_me(f, "private/private.txt"));
}

/* ---- its target ---- */

CASE(a_target_that_refuses_is_shown_and_nothing_is_deleted)
{
    share(f);
    sync_now(f);
    put_here(f, "Shared/mine too.txt", "mine too");
    online(f, "shortcut", "{\"path\":\"Shared\",\"lost\":true}");
    sync_all(f);
    sync_full(f);
    assert_mount(f, TIDE_DRIVE_MOUNT_REFUSED, "403");
    assert_here(f, "Shared/plan.txt", "plan");
    assert_here(f, "Shared/mine too.txt", "mine too");
    online(f, "shortcut", "{\"path\":\"Shared\",\"lost\":false}");
    sync_all(f);
    sync_all(f);
    assert_mount(f, TIDE_DRIVE_MOUNT_ATTACHED, "");
    assert_true(has_ada(f, "Team/mine too.txt"));
    /* Its owner deletes it. */
    ada(f, "delete", "{\"path\":\"Team\"}");
    sync_all(f);
    pass(f, 30);
    sync_all(f);
    assert_mount(f, TIDE_DRIVE_MOUNT_REFUSED, "");
    assert_here(f, "Shared/plan.txt", "plan");
    assert_int_equal(drives(f)->count, 2);
}

CASE(a_target_that_never_answered_gets_no_folder)
{
    share(f);
    online(f, "shortcut", "{\"path\":\"Shared\",\"lost\":true}");
    sync_all(f);
    assert_mount(f, TIDE_DRIVE_MOUNT_REFUSED, "403");
    assert_false(is_here(f, "Shared"));
    assert_int_equal(drives(f)->count, 1);
    online(f, "shortcut", "{\"path\":\"Shared\",\"lost\":false}");
    sync_all(f);
    assert_here(f, "Shared/plan.txt", "plan");
}

/* The same folder twice would be two drives at one target; a file is no folder; and in a shared folder no
 * shortcut is followed: two users could share their folders with each other. */
CASE(some_shortcuts_are_not_followed)
{
    share(f);
    sync_now(f);
    shortcut(f, "Again", "Team");
    shortcut(f, "plan.lnk", "Team/plan.txt");
    put_online(f, "Docs/a.txt", "a");
    ada(f, "shortcut", "{\"path\":\"Team/back\",\"to\":{\"user\":\"" ME "\",\"path\":\"Docs\"}}");
    sync_all(f);
    sync_all(f);
    assert_int_equal(drives(f)->count, 2);
    assert_int_equal(mounts(f, NULL), 2);
    assert_false(is_here(f, "Again"));
    assert_false(is_here(f, "plan.lnk"));
    assert_false(is_here(f, "Shared/back"));
    assert_here(f, "Shared/plan.txt", "plan");
}

/* ---- crashes ---- */

/* Between any two steps of attaching, moving and detaching: the next life goes on. */
TEST(a_crash_while_a_shared_folder_is_attached_does_no_harm)
{
    const struct tide_sim_options options = {.net = {.latency_us_max = 20000}};
    unsigned crashes = 0;
    for (uint64_t steps = 20; steps < 900; steps += 23) {
        struct fixture *f = begin_in(steps, &options);
        OK(life_begin(f));
        share(f);
        tide_sim_crash_after(f->sim, steps, TIDE_SIM_CRASH_KILL);
        (void)try_sync(f, false);
        online(f, "move", "{\"path\":\"Shared\",\"to\":\"Renamed\"}");
        (void)try_sync(f, false);
        life_end(f);
        crashes += (unsigned)tide_sim_stats(f->sim).crashes;
        tide_sim_reboot(f->sim);
        tide_sim_crash_after(f->sim, 0, TIDE_SIM_CRASH_KILL);
        OK(life_begin(f));
        sync_all(f);
        sync_all(f);
        assert_mount(f, TIDE_DRIVE_MOUNT_ATTACHED, "");
        assert_int_equal(drives(f)->count, 2);
        assert_false(is_here(f, "Shared"));
        assert_here(f, "Renamed/plan.txt", "plan");
        assert_here(f, "Renamed/deep/old.txt", "old");
        assert_false(has_me(f, "Renamed/plan.txt"));
        assert_true(has_ada(f, "Team/plan.txt"));
        assert_int_equal(temporaries(f), 0);
        finish(f);
    }
    print_message("%u crashes\n", crashes);
    assert_true(crashes > 20);
}
