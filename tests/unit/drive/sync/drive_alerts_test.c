/* drive_alerts_test.c - what a user is told of a drive without asking, and that it ends (E6.4, E9.1). */
#include "drive_sync_fixture.h"

#include "drive/local/scan.h"
#include "drive/sync/inside.h"
#include "support/wrap.h"

#include <unistd.h>

/* Whether the drive is watched: the watcher itself needs a real clock. */
static bool watched;

WRAP(bool, tide_drive_is_watched, tide_drive *drive, const struct tide_drive_row *row)
{
    (void)drive;
    (void)row;
    return watched;
}

static uint64_t alerts(struct fixture *f, const char *condition)
{
    return rows_of(f, textf("SELECT count(*) FROM alert WHERE condition = '%s' AND account = %u",
                            condition, (unsigned)f->row.account));
}

static uint64_t alerts_with(struct fixture *f, const char *condition, int level, const char *text)
{
    return rows_of(f, textf("SELECT count(*) FROM alert WHERE condition = '%s' AND level = %d"
                            " AND text LIKE '%s'",
                            condition, level, text));
}

static uint64_t all_alerts(struct fixture *f)
{
    return rows_of(f, "SELECT count(*) FROM alert");
}

/* A number of the drive in the snapshot of the engine; -1: there is none. */
static int64_t shown(struct fixture *f, const char *name)
{
    tide_auto_buf text = tide_buf_heap(1 << 20);
    OK(tide_engine_snapshot(f->engine, &text, &f->err));
    json_auto_t *snapshot = json_loads(tide_buf_cstr(&text), 0, NULL);
    const json_t *drives = json_object_get(json_object_get(snapshot, "systems"), "drive");
    const json_t *one = json_object_get(drives, textf("%u", (unsigned)f->row.number));
    const json_t *number = json_object_get(one, name);
    return number == NULL ? -1 : (int64_t)json_integer_value(number);
}

CASE(a_drive_that_is_well_raises_nothing)
{
    put_online(f, "a.txt", "alpha");
    sync_now(f);
    assert_int_equal(all_alerts(f), 0);
    assert_int_equal(shown(f, "owed"), 0);
    assert_int_equal(shown(f, "bad"), 0);
    assert_int_equal(shown(f, "conflicts"), 0);
    assert_int_equal(shown(f, "deletions_waiting"), 0);
    pass(f, 60);
    sync_now(f);
    assert_in_range(shown(f, "round_age_ms"), 60000, 120000); /* of the round before */
}

CASE(a_folder_that_is_not_mounted_is_an_alert_until_it_is)
{
    put_online(f, "a.txt", "alpha");
    sync_now(f);
    remove_here(f, ".tidemark-root");
    (void)try_sync(f, false);
    assert_int_equal(alerts_with(f, "drive_stopped", 2, "docs: %not mounted%"), 1);
    /* It belongs to the home: the next process knows it, and does not think that it is over. */
    life_end(f);
    OK(life_begin(f));
    assert_int_equal(alerts(f, "drive_stopped"), 1);
    (void)try_sync(f, false);
    assert_int_equal(alerts(f, "drive_stopped"), 1);
    OK(tide_drive_marker_make(f->root, f->row.marker, &f->err));
    OK(try_sync(f, false));
    assert_int_equal(all_alerts(f), 0);
}

CASE(a_folder_that_is_gone_is_an_alert_until_it_is_back)
{
    put_online(f, "a.txt", "alpha");
    sync_now(f);
    const char *away = textf("%s/away", f->dir);
    assert_int_equal(rename(f->root, away), 0);
    (void)try_sync(f, false);
    assert_int_equal(alerts_with(f, "drive_stopped", 2, "docs: %"), 1);
    assert_int_equal(rename(away, f->root), 0);
    OK(try_sync(f, false));
    assert_int_equal(all_alerts(f), 0);
    assert_equal_trees(f);
}

CASE(a_sign_in_that_is_refused_is_an_alert_until_it_is_not)
{
    put_online(f, "a.txt", "alpha");
    sync_now(f);
    fault(f, "{\"method\":\"*\",\"rate\":1,\"fault\":\"401\"}");
    (void)try_sync(f, false);
    assert_int_equal(alerts_with(f, "drive_stopped", 2, "docs: %"), 1);
    no_faults(f);
    life_end(f); /* a token that was refused is not tried again by this process */
    OK(life_begin(f));
    pass(f, 600);
    sync_now(f);
    assert_int_equal(all_alerts(f), 0);
}

/* One 500 or a network that is away is tried again, and no reason to call a user. */
CASE(a_server_that_fails_once_raises_nothing)
{
    put_online(f, "a.txt", "alpha");
    fault(f, "{\"method\":\"graph.drive.delta\",\"rate\":1,\"fault\":\"500\",\"count\":1}");
    (void)try_sync(f, false);
    assert_int_equal(all_alerts(f), 0);
}

CASE(deletions_that_wait_are_an_alert_until_they_are_decided)
{
    for (int i = 0; i < 30; i++)
        put_online(f, textf("f%d.txt", i), textf("text %d", i));
    sync_now(f);
    for (int i = 0; i < 20; i++)
        remove_here(f, textf("f%d.txt", i));
    sync_now(f);
    assert_int_equal(alerts_with(f, "drive_deletions", 1, "docs: 20 deletions wait%"), 1);
    assert_int_equal(shown(f, "deletions_waiting"), 20);
    const uint64_t since = rows_of(f, "SELECT since FROM alert");
    pass(f, 60);
    remove_here(f, "f20.txt");
    sync_now(f); /* another text, the same alert */
    assert_int_equal(alerts_with(f, "drive_deletions", 1, "docs: 21 deletions wait%"), 1);
    assert_int_equal(rows_of(f, "SELECT since FROM alert"), since);
    accept_deletions(f);
    sync_now(f);
    assert_int_equal(all_alerts(f), 0);
    assert_int_equal(shown(f, "deletions_waiting"), 0);
}

CASE(an_item_that_is_owed_for_a_day_is_an_alert_until_it_is_paid)
{
    put_online(f, "a.txt", "alpha");
    put_online(f, "b.txt", "beta");
    sync_now(f);
    fault(f, "{\"method\":\"graph.drive.item.update\",\"rate\":1,\"fault\":\"locked\"}");
    move_here(f, "a.txt", "c.txt");
    sync_now(f);
    assert_int_equal(rows_of(f, "SELECT count(*) FROM drive_@_owed WHERE bad = 0"), 1);
    assert_int_equal(shown(f, "owed"), 1);
    assert_int_equal(shown(f, "bad"), 0); /* it is open elsewhere: that passes */
    for (int hour = 0; hour < 23; hour++) {
        pass(f, 3600);
        sync_changed(f);
    }
    assert_int_equal(all_alerts(f), 0);
    pass(f, 3 * 3600);
    sync_changed(f);
    assert_int_equal(alerts_with(f, "drive_owed", 1,
                                 "docs: 1 item is owed, the first since %: c.txt: it is"
                                 " open elsewhere%"),
                     1);
    no_faults(f);
    sync_now(f); /* one run: the action that pays it clears it */
    assert_int_equal(rows_of(f, "SELECT count(*) FROM drive_@_owed"), 0);
    assert_int_equal(all_alerts(f), 0);
    assert_int_equal(shown(f, "owed"), 0);
}

CASE(a_file_whose_hash_never_fits_is_bad)
{
    put_online(f, "a.txt", "alpha");
    fault(f, "{\"method\":\"graph.download.get\",\"rate\":1,\"fault\":\"garbage\"}");
    (void)try_sync(f, false);
    assert_int_equal(rows_of(f, "SELECT count(*) FROM drive_@_owed WHERE bad = 1"), 1);
    assert_int_equal(shown(f, "owed"), 1);
    assert_int_equal(shown(f, "bad"), 1);
    no_faults(f);
    sync_now(f);
    assert_int_equal(shown(f, "bad"), 0);
}

CASE(a_watched_drive_without_a_complete_round_is_late)
{
    put_online(f, "a.txt", "alpha");
    sync_now(f);
    tide_drive_alerts(f->drive, f->row.account);
    pass(f, 23 * 3600);
    watched = true;
    tide_drive_alerts(f->drive, f->row.account);
    assert_int_equal(all_alerts(f), 0);
    pass(f, 2 * 3600);
    watched = false; /* whoever syncs by hand knows when he did */
    tide_drive_alerts(f->drive, f->row.account);
    assert_int_equal(all_alerts(f), 0);
    watched = true;
    tide_drive_alerts(f->drive, f->row.account);
    assert_int_equal(alerts_with(f, "drive_late", 1, "docs: no complete round since 20%"), 1);
    assert_true(shown(f, "round_age_ms") > 24 * 3600 * 1000);
    sync_now(f);
    tide_drive_alerts(f->drive, f->row.account);
    assert_int_equal(all_alerts(f), 0);
    watched = false;
}

/* The machine was off for two days: the round that begins is given time. */
CASE(a_process_that_starts_late_is_not_late_at_once)
{
    put_online(f, "a.txt", "alpha");
    sync_now(f);
    life_end(f);
    pass(f, 48 * 3600);
    OK(life_begin(f));
    watched = true;
    tide_drive_alerts(f->drive, f->row.account);
    pass(f, 600);
    tide_drive_alerts(f->drive, f->row.account);
    assert_int_equal(all_alerts(f), 0);
    pass(f, 600);
    tide_drive_alerts(f->drive, f->row.account);
    assert_int_equal(alerts(f, "drive_late"), 1);
    watched = false;
}

static tide_status remove_drive(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct fixture *f = arg;
    return tide_drives_remove(tide_transaction_rows(transaction), f->row.number, err);
}

CASE(alerts_go_with_the_drive)
{
    put_online(f, "a.txt", "alpha");
    sync_now(f);
    remove_here(f, ".tidemark-root");
    (void)try_sync(f, false);
    assert_int_equal(alerts(f, "drive_stopped"), 1);
    OK(tide_transact(f->engine, remove_drive, f, &f->err));
    OK(tide_drive_leave(f->drive, f->row.number, NULL, &f->err));
    assert_int_equal(all_alerts(f), 0);
    assert_int_equal(shown(f, "owed"), -1);
}

/* ---- the engine's part ---- */

CASE(a_system_cannot_say_what_the_engine_says)
{
    assert_int_equal(tide_engine_alert(f->engine, f->row.account, "throttled", 1, "x", &f->err),
                     TIDE_INVALID);
    assert_int_equal(tide_engine_alert(f->engine, 0, "notices", 1, "x", &f->err), TIDE_INVALID);
    assert_int_equal(tide_engine_alert(f->engine, 0, "drive_x", 3, "x", &f->err), TIDE_INVALID);
    OK(tide_engine_alert(f->engine, 0, "drive_x", 1, "x", &f->err));
    assert_int_equal(all_alerts(f), 1);
    OK(tide_engine_alert(f->engine, 0, "drive_x", 0, "", &f->err));
    OK(tide_engine_alert(f->engine, 0, "drive_x", 0, "", &f->err));
    assert_int_equal(all_alerts(f), 0);
}
