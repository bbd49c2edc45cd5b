/* Goal: a message that the server was given back under another id is one message: the same
 * row, the same bytes, found by either id, once (ARC3, ARC4), whatever happens while the archive
 * learns it.  Method: real files, and a simulated disk whose power fails at every step. */
#include "mail/archive/archive.h"
#include "mail/mime/message.h"
#include "mail/search/search.h"
#include "mail/archive/shard.h"

#include "sim.h"
#include "support/ok.h"
#include "support/heap.h"
#include "support/test.h"

#include <dirent.h>
#include <unistd.h>

static const int64_t year_2019 = 1546300800000;
static const int64_t year_2020 = 1577836800000;
static const char raw_text[] = "From: a@example.com\r\nMessage-ID: <1@example.com>\r\n"
                               "Subject: lighthouse\r\n\r\nbody\r\n";

struct fixture {
    tide_world *world;
    char dir[64];
    tide_archive *archive;
    tide_error err;
};

static void open_archive(struct fixture *f)
{
    const struct tide_archive_options options = {
        .dir = f->dir, .account = "me@example.com", .world = f->world, .index_later = true};
    OK(tide_archive_open(&options, tide_mem_heap(), &f->archive, &f->err));
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    (void)snprintf(f->dir, sizeof f->dir, "/tmp/tide-rename-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    OK(tide_world_real_new(tide_mem_heap(), &f->world, &f->err));
    open_archive(f);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    OK(tide_archive_close(f->archive, &f->err));
    DIR *dir = opendir(f->dir);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        const char *path = textf("%s/%s", f->dir, entry->d_name);
        (void)unlink(path);
    }
    (void)closedir(dir);
    (void)rmdir(f->dir);
    tide_world_real_free(f->world);
    free(f);
    return 0;
}

static void put(tide_archive *archive, const char *id, int64_t internal_ms, const char *raw)
{
    static const tide_text labels[] = {{"INBOX", 5}, {"Label_1", 7}};
    const struct tide_incoming incoming = {.gmail_id = tide_text_of(id),
                                           .thread_id = TIDE_TEXT("t1"),
                                           .history_id = TIDE_TEXT("100"),
                                           .internal_ms = internal_ms,
                                           .labels = labels,
                                           .labels_count = 2,
                                           .raw = tide_text_of(raw)};
    OK(tide_archive_put(archive, &incoming, NULL, NULL, NULL));
}

static tide_status rename_to(tide_archive *archive, const char *old_id, const char *new_id,
                             uint64_t *ticket_out, tide_error *err)
{
    static const tide_text labels[] = {{"INBOX", 5}, {"Label_2", 7}};
    const struct tide_renaming renaming = {.old_id = tide_text_of(old_id),
                                           .new_id = tide_text_of(new_id),
                                           .thread_id = TIDE_TEXT("t9"),
                                           .labels = labels,
                                           .labels_count = 2,
                                           .at_ms = year_2020};
    return tide_archive_rename(archive, &renaming, ticket_out, err);
}

static void rename_and_sync(struct fixture *f, const char *old_id, const char *new_id)
{
    uint64_t ticket = 0;
    OK(rename_to(f->archive, old_id, new_id, &ticket, &f->err));
    OK(tide_archive_sync(f->archive, ticket, NULL, &f->err));
}

static void gone(struct fixture *f, const char *id)
{
    uint64_t ticket = 0;
    OK(tide_archive_gone(f->archive, tide_text_of(id), 5, &ticket, &f->err));
    OK(tide_archive_sync(f->archive, ticket, NULL, &f->err));
}

static struct tide_stored find(struct fixture *f, const char *id)
{
    struct tide_stored stored;
    OK(tide_archive_find(f->archive, tide_text_of(id), &stored, &f->err));
    return stored;
}

static void no_damage(const struct tide_damage *damage, void *arg)
{
    (void)arg;
    fail_msg("%s: %s", damage->gmail_id, damage->what);
}

static void assert_sound(struct fixture *f, uint64_t messages)
{
    uint64_t checked = 0;
    OK(tide_archive_verify(f->archive, 0, no_damage, NULL, &checked, &f->err));
    assert_int_equal(checked, messages);
}

static bool is_missing(struct fixture *f, const char *id)
{
    const tide_text text = tide_text_of(id);
    bool missing = false;
    OK(tide_archive_missing(f->archive, &text, 1, &missing, &f->err));
    return missing;
}

/* ---- examples ------------------------------------------------------------------------ */

#define CASE(name) TEST_ON(name, struct fixture *f, set_up, tear_down)

CASE(a_message_keeps_its_place_and_bytes_under_its_new_id)
{
    tide_buf out = heap_buf(10000);
    put(f->archive, "b2", year_2019 + 7, raw_text);
    gone(f, "b2");
    const struct tide_stored before = find(f, "b2");
    assert_true(before.gone);
    rename_and_sync(f, "b2", "f7");
    const struct tide_stored after = find(f, "f7");
    assert_int_equal(after.rowid, before.rowid); /* ARC4 */
    assert_int_equal(after.shard, before.shard);
    assert_int_equal(after.internal_ms, before.internal_ms);
    assert_string_equal(after.thread_id, "t9");
    assert_false(after.gone);
    OK(tide_archive_raw(f->archive, &after, &out, &f->err));
    assert_string_equal(tide_buf_cstr(&out), raw_text);
    tide_buf_clear(&out);
    OK(tide_archive_labels_of(f->archive, &after, &out, &f->err));
    assert_string_equal(tide_buf_cstr(&out), "INBOX\nLabel_2\n");
    tide_buf_done(&out);
    assert_sound(f, 1);
}

CASE(the_former_id_finds_it_and_counts_as_stored)
{
    put(f->archive, "b2", year_2019, raw_text);
    rename_and_sync(f, "b2", "f7");
    rename_and_sync(f, "f7", "g8"); /* lost and given back again */
    assert_string_equal(find(f, "b2").gmail_id, "g8");
    assert_string_equal(find(f, "f7").gmail_id, "g8");
    assert_string_equal(find(f, "g8").gmail_id, "g8");
    assert_false(is_missing(f, "b2"));
    assert_false(is_missing(f, "f7"));
    assert_false(is_missing(f, "g8"));
    assert_true(is_missing(f, "b3"));
    assert_sound(f, 1);
    /* Another life knows as much. */
    OK(tide_archive_close(f->archive, &f->err));
    open_archive(f);
    assert_string_equal(find(f, "b2").gmail_id, "g8");
    assert_false(is_missing(f, "b2"));
}

/* The next history run tells that the former id was deleted, and what its labels were. */
CASE(what_the_server_tells_of_the_former_id_changes_nothing)
{
    uint64_t ticket = 0;
    tide_buf out = heap_buf(10000);
    put(f->archive, "b2", year_2019, raw_text);
    rename_and_sync(f, "b2", "f7");
    gone(f, "b2");
    assert_false(find(f, "f7").gone);
    const struct tide_label_change changes[] = {
        {.gmail_id = TIDE_TEXT("b2"),
         .label = TIDE_TEXT("TRASH"),
         .added = true,
         .history_id = TIDE_TEXT("200")},
        {.gmail_id = TIDE_TEXT("f7"),
         .label = TIDE_TEXT("STARRED"),
         .added = true,
         .history_id = TIDE_TEXT("201")},
    };
    OK(tide_archive_labels(f->archive, changes, 2, &ticket, &f->err));
    OK(tide_archive_sync(f->archive, ticket, NULL, &f->err));
    const struct tide_stored stored = find(f, "f7");
    OK(tide_archive_labels_of(f->archive, &stored, &out, &f->err));
    assert_string_equal(tide_buf_cstr(&out), "INBOX\nLabel_2\nSTARRED\n");
    gone(f, "f7"); /* and of the new one everything */
    assert_true(find(f, "f7").gone);
    tide_buf_done(&out);
}

CASE(a_new_id_that_is_stored_already_stays_as_it_is)
{
    put(f->archive, "b2", year_2019, raw_text);
    put(f->archive, "f7", year_2020 + 5, raw_text); /* a sync came first */
    rename_and_sync(f, "b2", "f7");
    assert_true(find(f, "b2").gone);
    assert_string_equal(find(f, "b2").gmail_id, "b2");
    assert_false(find(f, "f7").gone);
    assert_int_equal(find(f, "f7").internal_ms, year_2020 + 5);
    assert_sound(f, 2);
}

CASE(an_id_that_is_not_stored_is_passed_over)
{
    put(f->archive, "b2", year_2019, raw_text);
    rename_and_sync(f, "nobody", "f7");
    rename_and_sync(f, "b2", "b2");
    assert_true(is_missing(f, "f7"));
    assert_string_equal(find(f, "b2").thread_id, "t1");
    rename_and_sync(f, "b2", "f7");
    rename_and_sync(f, "b2", "f7"); /* once more is harmless */
    assert_string_equal(find(f, "f7").gmail_id, "f7");
    assert_sound(f, 1);
}

CASE(impossible_ids_are_refused)
{
    char long_id[TIDE_GMAIL_ID_BYTES_MAX + 2];
    uint64_t ticket = 0;
    memset(long_id, 'x', sizeof long_id - 1);
    long_id[sizeof long_id - 1] = '\0';
    assert_int_equal(rename_to(f->archive, "", "f7", &ticket, &f->err), TIDE_INVALID);
    assert_int_equal(rename_to(f->archive, "b2", "", &ticket, &f->err), TIDE_INVALID);
    assert_int_equal(rename_to(f->archive, "b2", long_id, &ticket, &f->err), TIDE_INVALID);
}

static bool count_found(const struct tide_found *found, void *arg)
{
    assert_string_equal(found->stored.gmail_id, "f7");
    ++*(unsigned *)arg;
    return true;
}

CASE(a_search_finds_it_once_under_the_new_id)
{
    const char *queries[] = {"lighthouse", "rfc822msgid:1@example.com", "in:anywhere",
                             "label:Label_2"};
    uint64_t done = 0;
    put(f->archive, "b2", year_2019, raw_text);
    gone(f, "b2");
    OK(tide_archive_index(f->archive, UINT64_MAX, &done, &f->err));
    rename_and_sync(f, "b2", "f7");
    for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++) {
        tide_query *query = NULL;
        unsigned found = 0;
        bool more = false;
        OK(tide_query_parse(tide_text_of(queries[i]), year_2020, 0, tide_mem_heap(), &query,
                            &f->err));
        const struct tide_search search = {.query = query};
        OK(tide_search_run(f->archive, &search, count_found, &found, NULL, &more, &f->err));
        if (found != 1)
            fail_msg("%s: %u", queries[i], found);
        tide_query_free(query);
    }
}

CASE(a_thread_is_followed_to_where_its_messages_are_now)
{
    char thread[TIDE_GMAIL_ID_BYTES_MAX + 1];
    put(f->archive, "b2", year_2019, raw_text);
    put(f->archive, "b3", year_2020, "Subject: second\r\n\r\n");
    gone(f, "b2");
    OK(tide_archive_thread_now(f->archive, TIDE_TEXT("t1"), thread, &f->err));
    assert_string_equal(thread, "t1"); /* b3 is in it */
    gone(f, "b3");
    OK(tide_archive_thread_now(f->archive, TIDE_TEXT("t1"), thread, &f->err));
    assert_string_equal(thread, "");
    rename_and_sync(f, "b2", "f7");
    OK(tide_archive_thread_now(f->archive, TIDE_TEXT("t1"), thread, &f->err));
    assert_string_equal(thread, "t9");
    OK(tide_archive_thread_now(f->archive, TIDE_TEXT(""), thread, &f->err));
    assert_string_equal(thread, "");
}

CASE(a_label_is_called_what_the_server_called_it)
{
    struct tide_label_called called;
    uint64_t ticket = 0;
    put(f->archive, "b2", year_2019, raw_text);
    gone(f, "nobody");
    assert_int_equal(tide_archive_label_called(f->archive, TIDE_TEXT("Label_1"), &called, &f->err),
                     TIDE_NOT_FOUND);
    OK(tide_archive_label_name(f->archive, TIDE_TEXT("Label_1"), TIDE_TEXT("Boats"),
                               TIDE_TEXT("user"), &ticket, &f->err));
    OK(tide_archive_label_name(f->archive, TIDE_TEXT("INBOX"), TIDE_TEXT("INBOX"),
                               TIDE_TEXT("system"), &ticket, &f->err));
    OK(tide_archive_sync(f->archive, ticket, NULL, &f->err));
    OK(tide_archive_label_called(f->archive, TIDE_TEXT("Label_1"), &called, &f->err));
    assert_string_equal(called.name, "Boats");
    assert_true(called.user);
    OK(tide_archive_label_called(f->archive, TIDE_TEXT("INBOX"), &called, &f->err));
    assert_false(called.user);
}

/* ---- crashes -------------------------------------------------------------------------- */

enum { CRASH_MESSAGES = 6 };

struct life {
    tide_sim *sim;
    struct tide_archive_options options;
    bool renamed[CRASH_MESSAGES]; /* acknowledged */
};

static void ids_of(uint32_t number, char old_id[8], char new_id[8])
{
    (void)snprintf(old_id, 8, "b%u", number);
    (void)snprintf(new_id, 8, "f%u", number);
}

/* One id or the other, never both, never none; the new one if that was acknowledged. */
static void check_life(struct life *life, tide_archive *archive)
{
    for (uint32_t i = 0; i < CRASH_MESSAGES; i++) {
        char old_id[8];
        char new_id[8];
        struct tide_stored by_old;
        struct tide_stored by_new;
        ids_of(i, old_id, new_id);
        const tide_status found_old =
            tide_archive_find(archive, tide_text_of(old_id), &by_old, NULL);
        const tide_status found_new =
            tide_archive_find(archive, tide_text_of(new_id), &by_new, NULL);
        TIDE_SIM_EXPECT(life->sim, found_old == TIDE_OK);
        if (found_new == TIDE_OK) {
            TIDE_SIM_EXPECT(life->sim, by_old.rowid == by_new.rowid);
            TIDE_SIM_EXPECT(life->sim, strcmp(by_old.gmail_id, new_id) == 0);
            TIDE_SIM_EXPECT(life->sim, !by_new.gone);
        } else {
            TIDE_SIM_EXPECT(life->sim, !life->renamed[i]);
            TIDE_SIM_EXPECT(life->sim, strcmp(by_old.gmail_id, old_id) == 0);
            TIDE_SIM_EXPECT(life->sim, by_old.gone);
        }
    }
}

static void live(struct life *life, tide_archive *archive)
{
    for (uint32_t i = 0; i < CRASH_MESSAGES; i++) {
        char old_id[8];
        char new_id[8];
        uint64_t ticket = 0;
        ids_of(i, old_id, new_id);
        if (rename_to(archive, old_id, new_id, &ticket, NULL) != TIDE_OK)
            return;
        if (i % 2 == 1 && tide_archive_sync(archive, ticket, NULL, NULL) == TIDE_OK)
            life->renamed[i] = life->renamed[i - 1] = true;
    }
}

TEST(a_crash_leaves_the_one_id_or_the_other)
{
    uint64_t crashes = 0;
    for (uint64_t step = 1; step <= 240; step += 3) {
        struct life life = {.sim = tide_sim_new(step, NULL)};
        tide_archive *archive = NULL;
        tide_error err = {TIDE_OK, 0, ""};
        uint64_t ticket = 0;
        life.options = (struct tide_archive_options){.dir = "/mail/me",
                                                     .account = "me",
                                                     .world = tide_sim_world(life.sim),
                                                     .index_later = true};
        OK(tide_archive_open(&life.options, tide_mem_heap(), &archive, &err));
        for (uint32_t i = 0; i < CRASH_MESSAGES; i++) {
            char old_id[8];
            char new_id[8];
            ids_of(i, old_id, new_id);
            put(archive, old_id, i % 2 == 0 ? year_2019 : year_2020, raw_text);
            OK(tide_archive_gone(archive, tide_text_of(old_id), 5, &ticket, &err));
        }
        OK(tide_archive_sync(archive, ticket, NULL, &err));
        tide_sim_crash_after(life.sim, step, TIDE_SIM_CRASH_POWER);
        live(&life, archive);
        (void)tide_archive_close(archive, NULL);
        tide_sim_crash_after(life.sim, 0, TIDE_SIM_CRASH_POWER);
        crashes += tide_sim_stats(life.sim).crashes;
        tide_sim_reboot(life.sim);
        OK(tide_archive_open(&life.options, tide_mem_heap(), &archive, &err));
        check_life(&life, archive);
        live(&life, archive); /* what was not acknowledged is reported again */
        for (uint32_t i = 0; i < CRASH_MESSAGES; i++)
            TIDE_SIM_EXPECT(life.sim, life.renamed[i]);
        check_life(&life, archive);
        uint64_t checked = 0;
        OK(tide_archive_verify(archive, 0, no_damage, NULL, &checked, &err));
        TIDE_SIM_EXPECT(life.sim, checked == CRASH_MESSAGES);
        OK(tide_archive_close(archive, &err));
        tide_sim_free(life.sim);
    }
    assert_true(crashes > 20);
}
