/* What servers refuse, and what changes while it is worked on (D5, D37, S10, S13, S17, I19). */
#include "drive_sync_fixture.h"

#include "drive/local/scan.h"
#include "ledger/rows.h"

#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- what a server refuses (D37) ---- */

static unsigned calls_with;

static void count_sessions(struct fixture *f, const struct tide_request *request)
{
    (void)f;
    calls_with +=
        strstr(request->url, "createUploadSession") != NULL ||
                (request->body.bytes > 0 &&
                 memmem(request->body.data, request->body.bytes, "createUploadSession", 19) != NULL)
            ? 1
            : 0;
}

CASE(nothing_is_written_below_a_folder_that_is_read_only)
{
    put_online(f, "Docs/a.txt", "alpha");
    put_online(f, "mine.txt", "mine");
    sync_now(f);
    sync_now(f);
    fault(f, "{\"method\":\"graph.drive.upload.create\",\"rate\":1,\"fault\":\"403\"}");
    put_here(f, "Docs/new.txt", "new");
    calls_with = 0;
    f->on_call = count_sessions;
    sync_now(f);
    assert_int_equal(calls_with, 1); /* not tried again and again */
    assert_int_equal(rows_of(f, "SELECT count(*) FROM drive_@_owed"), 1);
    assert_int_equal(
        rows_of(f,
                "SELECT count(*) FROM drive_@_owed WHERE loop = 2"
                " AND error LIKE 'it is read-only online: %403%'"
                " AND item = (SELECT item FROM drive_@_remote WHERE name = CAST('Docs' AS BLOB))"),
        1);
    /* What is new in it is held, too; what comes from there comes, and the tidemark goes on. */
    const uint64_t applied_ms = rows_of(f, "SELECT applied_ms FROM drive_@_state");
    make_here(f, "Docs/Deep");
    put_here(f, "Docs/Deep/b.txt", "beta");
    put_online(f, "Docs/c.txt", "gamma");
    pass(f, 3600);
    sync_changed(f);
    sync_changed(f);
    assert_int_equal(calls_with, 1);
    assert_here(f, "Docs/c.txt", "gamma");
    assert_true(rows_of(f, "SELECT applied_ms FROM drive_@_state") > applied_ms);
    /* Beside it nothing is held. */
    no_faults(f);
    put_here(f, "mine.txt", "mine two");
    sync_changed(f);
    assert_int_equal(calls_with, 2);
    char *tree = tree_online(f);
    assert_null(strstr(tree, "new.txt"));
    free(tree);
    /* A day later it is tried again, and when a user asks for a sync. */
    pass(f, 25 * 3600);
    fault(f, "{\"method\":\"graph.drive.upload.create\",\"rate\":1,\"fault\":\"403\"}");
    sync_changed(f);
    assert_in_range(calls_with, 3, 4); /* both at once */
    no_faults(f);
    sync_now(f);
    assert_equal_trees(f);
    assert_int_equal(rows_of(f, "SELECT count(*) FROM drive_@_owed"), 0);
}

CASE(a_file_that_is_open_elsewhere_is_owed)
{
    put_online(f, "a.txt", "alpha");
    put_online(f, "b.txt", "beta");
    sync_now(f);
    fault(f, "{\"method\":\"graph.drive.item.update\",\"rate\":1,\"fault\":\"locked\"}");
    move_here(f, "a.txt", "c.txt");
    put_here(f, "b.txt", "beta two");
    sync_now(f);
    assert_int_equal(rows_of(f, "SELECT count(*) FROM drive_@_owed WHERE loop = 0 AND error LIKE"
                                " 'it is open elsewhere: %423%'"),
                     1);
    char *tree = tree_online(f);
    assert_non_null(strstr(tree, " a.txt\n"));
    free(tree);
    no_faults(f);
    pass(f, 3700);
    sync_now(f);
    assert_equal_trees(f);
    assert_int_equal(rows_of(f, "SELECT count(*) FROM drive_@_owed"), 0);
}

/* A sync that waited for room would never end: uploads of the account are owed, the rest goes on. */
CASE(a_drive_that_is_full_owes_its_uploads_and_nothing_else)
{
    put_online(f, "a.txt", "alpha");
    sync_now(f);
    json_decref(tide_sim_cloud_control(f->cloud, f->sim, "POST", "/_cloud/drive",
                                       TIDE_TEXT("{\"user\":\"" ME "\",\"total\":10}")));
    put_here(f, "b.txt", "more than ten bytes");
    put_here(f, "c.txt", "also more than that");
    put_online(f, "d.txt", "delta");
    sync_now(f);
    assert_int_equal(rows_of(f, "SELECT count(*) FROM drive_@_owed WHERE loop = 0 AND error LIKE"
                                " 'there is no room in this OneDrive: %'"),
                     2);
    assert_here(f, "d.txt", "delta");
    json_decref(tide_sim_cloud_control(f->cloud, f->sim, "POST", "/_cloud/drive",
                                       TIDE_TEXT("{\"user\":\"" ME "\",\"total\":1000000}")));
    sync_now(f);
    assert_equal_trees(f);
    assert_int_equal(rows_of(f, "SELECT count(*) FROM drive_@_owed"), 0);
}

/* ---- what is owed and no longer there ---- */

CASE(what_a_user_took_away_is_owed_no_longer)
{
    sync_now(f);
    fault(f, "{\"method\":\"graph.drive.upload.create\",\"rate\":1,\"fault\":\"500\"}");
    put_here(f, "a.txt", "alpha");
    sync_now(f);
    assert_int_equal(rows_of(f, "SELECT count(*) FROM drive_@_owed"), 1);
    remove_here(f, "a.txt");
    sync_now(f);
    assert_int_equal(rows_of(f, "SELECT count(*) FROM drive_@_owed"), 0);
}

/* ---- files that change under an upload (D5) ---- */

static unsigned fragments, ended;

static void count_fragments(struct fixture *f, const struct tide_request *request)
{
    (void)f;
    const bool session = strstr(request->url, "/v1.0/") == NULL;
    fragments += session && strcmp(request->method, "PUT") == 0 ? 1 : 0;
    ended += session && strcmp(request->method, "DELETE") == 0 ? 1 : 0;
}

static void put_large(struct fixture *f, const char *path, char letter, size_t bytes)
{
    char *text = malloc(bytes + 1);
    assert_non_null(text);
    memset(text, letter, bytes);
    text[bytes] = '\0';
    put_here(f, path, text);
    free(text);
}

CASE(an_upload_ends_at_once_when_its_file_changed)
{
    sync_now(f);
    fragments = ended = 0;
    f->on_call = count_fragments;
    put_large(f, "large.bin", 'a', 12 << 20);
    fault(f, "{\"method\":\"graph.upload.put\",\"rate\":1,\"fault\":\"latency\",\"ms\":100000}");
    OK(tide_drive_sync(f->drive, &f->row, false, &f->err));
    pass(f, 20);
    assert_int_equal(fragments, 1); /* it is on its way, for more than a minute */
    put_large(f, "large.bin", 'b', 12 << 20);
    OK(tide_drive_sync(f->drive, &f->row, false, &f->err));
    pass(f, 10);
    assert_int_equal(ended, 1);     /* nothing of it becomes visible, and nothing more is sent */
    assert_int_equal(fragments, 2); /* the first of the new content */
    no_faults(f);
    OK(tide_engine_wait(f->engine, 3600000, &f->err));
    assert_equal_trees(f);
    assert_int_equal(rows_of(f, "SELECT count(*) FROM drive_@_conflict"), 0);
    assert_int_equal(rows_of(f, "SELECT count(*) FROM drive_@_doubt"), 0);
}

CASE(a_last_fragment_is_let_be)
{
    sync_now(f);
    fragments = ended = 0;
    f->on_call = count_fragments;
    put_here(f, "small.txt", "one");
    fault(f, "{\"method\":\"graph.upload.put\",\"count\":1,\"fault\":\"latency\",\"ms\":50000}");
    OK(tide_drive_sync(f->drive, &f->row, false, &f->err));
    pass(f, 20);
    assert_int_equal(fragments, 1);
    put_here(f, "small.txt", "two!");
    sync_now(f);
    sync_now(f);
    assert_int_equal(ended, 0);
    assert_here(f, "small.txt", "two!");
    assert_equal_trees(f);
    assert_int_equal(rows_of(f, "SELECT count(*) FROM drive_@_base"), 1); /* no copy */
}

/* ---- looks right before an effect (S10, S13) ---- */

static bool armed;

static void come_back(struct fixture *f, const struct tide_request *request)
{
    if (!armed || strstr(request->url, "delta") != NULL)
        return;
    armed = false;
    put_here(f, "a.txt", "back");
}

CASE(a_file_that_comes_back_is_not_deleted_online)
{
    put_online(f, "a.txt", "alpha");
    sync_now(f);
    const uint64_t item = rows_of(f, "SELECT max(item) FROM drive_@_item");
    remove_here(f, "a.txt");
    armed = true;
    f->on_call = come_back; /* while the item is looked at, before its deletion */
    sync_now(f);
    assert_false(armed);
    sync_now(f);
    assert_here(f, "a.txt", "back");
    assert_equal_trees(f);
    assert_int_equal(rows_of(f, "SELECT max(item) FROM drive_@_item"), item); /* the same one */
}

static void undo_online(struct fixture *f, const struct tide_request *request)
{
    if (!armed || strstr(request->url, "delta") != NULL)
        return;
    armed = false;
    put_online(f, "a.txt", "alpha");
}

/* What the feed told is over when the copy is to be made: there are no two versions. */
CASE(a_state_that_is_over_makes_no_copy)
{
    put_online(f, "a.txt", "alpha");
    sync_now(f);
    put_here(f, "a.txt", "alpha here");
    put_online(f, "a.txt", "alpha online");
    armed = true;
    f->on_call = undo_online;
    sync_now(f);
    assert_false(armed);
    sync_now(f);
    assert_here(f, "a.txt", "alpha here");
    assert_equal_trees(f);
    assert_int_equal(rows_of(f, "SELECT count(*) FROM drive_@_conflict"), 0);
    assert_int_equal(rows_of(f, "SELECT count(*) FROM drive_@_base"), 1);
}

/* S18: no tag of a folder sees a new child. */
CASE(a_folder_with_a_new_child_online_is_not_deleted)
{
    put_online(f, "Docs/a.txt", "alpha");
    sync_now(f);
    remove_here(f, "Docs/a.txt");
    remove_here(f, "Docs");
    put_online(f, "Docs/new.txt", "new");
    fault(f, "{\"method\":\"graph.drive.delta\",\"count\":1,\"fault\":\"delta-empty\"}");
    sync_now(f); /* the feed does not tell yet */
    sync_now(f);
    assert_here(f, "Docs/new.txt", "new");
    assert_false(is_here(f, "Docs/a.txt"));
    assert_equal_trees(f);
}

/* ---- the trash (S17) ---- */

CASE(the_trash_in_the_folder_is_emptied_after_thirty_days)
{
    put_online(f, "a.txt", "alpha");
    put_online(f, "keep.txt", "keep");
    sync_now(f);
    online(f, "delete", "{\"path\":\"a.txt\"}");
    sync_now(f);
    assert_false(is_here(f, "a.txt"));
    const uint64_t day_s = tide_world_now_unix_ms(f->world) / 1000 / 86400 * 86400;
    const time_t when = (time_t)day_s;
    struct tm parts;
    char day[64];
    assert_non_null(gmtime_r(&when, &parts));
    assert_true(strftime(day, sizeof day, ".tidemark-trash/%Y-%m-%d", &parts) > 0);
    char *inside = strdup(textf("%s/a.txt", day));
    assert_here(f, inside, "alpha");
    put_here(f, ".tidemark-trash/users.txt", "not ours");
    make_here(f, textf("%s/folder", day));
    pass(f, 29 * 86400);
    sync_now(f);
    assert_here(f, inside, "alpha");
    pass(f, 2 * 86400 + 1);
    sync_now(f);
    assert_false(is_here(f, inside));
    assert_here(f, ".tidemark-trash/users.txt", "not ours");
    assert_true(is_here(f, textf("%s/folder", day))); /* we put files there, no folders */
    assert_equal_trees(f);
    free(inside);
}

/* ---- a drive that is removed ---- */

struct pair {
    struct fixture *f;
    struct tide_drive_row other;
    uint32_t removed;
};

static tide_status add_other(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct pair *pair = arg;
    pair->other = pair->f->row;
    (void)snprintf(pair->other.name, sizeof pair->other.name, "other");
    (void)snprintf(pair->other.dir, sizeof pair->other.dir, "%s/other", pair->f->dir);
    (void)snprintf(pair->other.marker, sizeof pair->other.marker, "fedcba9876543210");
    return tide_drives_add(tide_transaction_rows(transaction), &pair->other, err);
}

static tide_status remove_one(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct pair *pair = arg;
    return tide_drives_remove(tide_transaction_rows(transaction), pair->removed, err);
}

CASE(removing_a_drive_ends_its_own_jobs_and_no_others)
{
    struct pair pair = {.f = f};
    OK(tide_transact(f->engine, add_other, &pair, &f->err));
    assert_int_equal(mkdir(pair.other.dir, 0700), 0);
    OK(tide_drive_marker_make(pair.other.dir, pair.other.marker, &f->err));
    for (int i = 0; i < 40; i++)
        put_online(f, textf("d%d/f%d.txt", i % 4, i), textf("text %d", i));
    fault(f, "{\"method\":\"graph.download.get\",\"rate\":1,\"fault\":\"latency\",\"ms\":60000}");
    OK(tide_drive_sync(f->drive, &f->row, false, &f->err));
    OK(tide_drive_sync(f->drive, &pair.other, false, &f->err));
    pass(f, 30);
    assert_true(rows_of(f, "SELECT count(*) FROM job WHERE state = 0 AND payload LIKE"
                           " '{\"drive\":2,%'") > 10);
    pair.removed = pair.other.number;
    OK(tide_transact(f->engine, remove_one, &pair, &f->err));
    OK(tide_drive_end_waiting(f->engine, f->row.account, pair.removed, &f->err));
    OK(tide_drive_leave(f->drive, pair.removed, NULL, &f->err));
    pass(f, 1);
    assert_int_equal(pair.removed, 2);
    assert_int_equal(rows_of(f, "SELECT count(*) FROM job WHERE state <> 2 AND payload LIKE"
                                " '{\"drive\":2%'"),
                     0);
    assert_int_equal(access(textf("%s/d0/f0.txt", pair.other.dir), F_OK), -1);
    assert_true(rows_of(f, "SELECT count(*) FROM job WHERE state < 2 AND payload LIKE"
                           " '{\"drive\":1%'") > 0);
    no_faults(f);
    OK(tide_engine_wait(f->engine, 7200000, &f->err));
    assert_equal_trees(f);
}

/* ---- what is not synced (D16) ---- */

static uint64_t skipped_as(struct fixture *f, const char *name, int reason)
{
    return rows_of(f, textf("SELECT count(*) FROM drive_@_remote WHERE state = 4 AND reason = %d"
                            " AND name = CAST('%s' AS BLOB)",
                            reason, name));
}

CASE(what_cannot_be_synced_is_left_alone_and_its_name_stays_taken)
{
    (void)tide_sim_cloud_user(f->cloud, f->sim, "ada@example.org", "bearer-2",
                              (struct box_mailbox_options){0});
    json_decref(tide_sim_cloud_control(
        f->cloud, f->sim, "POST", "/_cloud/drive/put",
        TIDE_TEXT("{\"user\":\"ada@example.org\",\"path\":\"Team/x.txt\",\"content\":\"x\"}")));
    online(f, "shortcut",
           "{\"path\":\"Shared\",\"to\":{\"user\":\"ada@example.org\",\"path\":\"Team\"}}");
    online(f, "shortcut",
           "{\"path\":\"x.lnk\",\"to\":{\"user\":\"ada@example.org\",\"path\":\"Team/x.txt\"}}");
    put_online(f, "bad.exe", "MZ");
    online(f, "mark", "{\"path\":\"bad.exe\",\"as\":\"malware\"}");
    online(f, "folder", "{\"path\":\"Notes\"}");
    online(f, "mark", "{\"path\":\"Notes\",\"as\":\"package\"}");
    put_online(f, "a.txt", "alpha");
    make_here(f, "Shared"); /* a user's own folder of that name is held, not merged */
    put_here(f, "Shared/mine.txt", "mine");
    sync_now(f);
    sync_now(f);
    assert_here(f, "a.txt", "alpha");
    assert_false(is_here(f, "bad.exe"));
    assert_false(is_here(f, "Notes"));
    assert_false(is_here(f, "x.lnk"));
    assert_int_equal(skipped_as(f, "Shared", TIDE_DRIVE_REASON_SHARED_FOLDER), 1);
    assert_int_equal(skipped_as(f, "x.lnk", TIDE_DRIVE_REASON_SHARED_FILE), 1);
    assert_int_equal(skipped_as(f, "bad.exe", TIDE_DRIVE_REASON_MALWARE), 1);
    assert_int_equal(skipped_as(f, "Notes", TIDE_DRIVE_REASON_NOTEBOOK), 1);
    assert_int_equal(rows_of(f, "SELECT count(*) FROM drive_@_base"), 1);
    /* It goes: what is here of that name is sent, as something new. */
    online(f, "delete", "{\"path\":\"Shared\"}");
    sync_now(f);
    char *tree = tree_online(f);
    assert_non_null(strstr(tree, " Shared/mine.txt\n"));
    free(tree);
}

static tide_status other_root(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct fixture *f = arg;
    return tide_rows_do(tide_transaction_rows(transaction), "rows", err,
                        "UPDATE drive_drive SET root_id = 'another' WHERE number = ?1",
                        f->row.number);
}

/* D35: nothing of another drive is believed. */
CASE(a_drive_with_another_root_stops)
{
    put_online(f, "a.txt", "alpha");
    sync_now(f);
    OK(tide_transact(f->engine, other_root, f, &f->err));
    put_online(f, "b.txt", "beta");
    struct tide_progress progress;
    OK(try_sync(f, true));
    tide_engine_progress(f->engine, &progress);
    assert_int_equal(progress.failed, 1);
    assert_here(f, "a.txt", "alpha");
    assert_false(is_here(f, "b.txt"));
}

/* ---- a disk that is mounted inside of the folder (S13, F13) ---- */

static void die_at_the_first_byte(struct fixture *f, const struct tide_request *request)
{
    if (strstr(request->url, "/_files/") != NULL)
        tide_sim_crash_after(f->sim, 1, TIDE_SIM_CRASH_KILL);
}

/* A download that was planned before the disk went must not be put where it was mounted: then that would be
 * a folder with a file, and all others would count as deleted. */
CASE(nothing_is_put_into_what_a_mount_leaves_behind)
{
    put_online(f, "d/a.txt", "alpha");
    put_online(f, "d/b.txt", "beta");
    put_online(f, "c.txt", "gamma");
    sync_now(f);
    sync_now(f);
    put_online(f, "d/new.txt", "new");
    f->on_call = die_at_the_first_byte;
    (void)try_sync(f, false);
    f->on_call = NULL;
    life_end(f);
    tide_sim_reboot(f->sim);
    char *mounted = strdup(textf("%s/d", f->root));
    char *away = strdup(textf("%s/away", f->dir));
    assert_int_equal(rename(mounted, away), 0);
    assert_int_equal(mkdir(mounted, 0700), 0);
    char *before = tree_online(f);
    OK(life_begin(f));
    for (int i = 0; i < 3; i++) {
        (void)try_sync(f, false);
        pass(f, 60);
    }
    char *after = tree_online(f);
    assert_string_equal(after, before);
    free(after);
    free(before);
    assert_int_equal(rmdir(mounted), 0); /* it is as empty as it was */
    assert_int_equal(rename(away, mounted), 0);
    free(mounted);
    free(away);
    (void)try_sync(f, false);
    pass(f, 3700);
    sync_now(f);
    assert_here(f, "d/new.txt", "new");
    assert_here(f, "d/a.txt", "alpha");
    assert_equal_trees(f);
    assert_int_equal(temporaries(f), 0);
}
