/* Downloads: partial files, resuming, content that lies, placement (D41, D42, S3, S6, S10). */
#include "drive_act_fixture.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BIG = 3 << 20, GET_MAX = 1 << 20 };
#define DOWNLOADS "/_files/download/"

/* A plan made from what is online now. */
struct story {
    struct tide_onedrive_answer item;
    struct tide_drive_download plan;
    struct tide_drive_downloaded out;
};

static struct story story_of(struct fixture *f, const char *path, const struct tide_entry *expected)
{
    struct story s = {.item = item_at(f, path)};
    const struct tide_onedrive_item *item = &s.item.item;
    s.plan = (struct tide_drive_download){.id = item->id,
                                          .name = item->name,
                                          .ctag = item->ctag,
                                          .expected = expected,
                                          .content = {.bytes = item->size, .has_qxh = true}};
    memcpy(s.plan.content.qxh, item->hash, sizeof item->hash);
    return s;
}

static tide_status run(struct fixture *f, struct story *s)
{
    tide_drive_downloaded_done(&s->out);
    f->seen = 0;
    return tide_drive_download(&f->act, &s->plan, &s->out, &f->err);
}

static void end(struct story *s)
{
    tide_drive_downloaded_done(&s->out);
    tide_onedrive_answer_done(&s->item);
}

static struct story big_story(struct fixture *f)
{
    online(f, "put", "{\"path\":\"big.bin\",\"size\":3145728,\"seed\":7}");
    f->watched = DOWNLOADS;
    return story_of(f, "big.bin", NULL);
}

/* The file is whole: its hash is the one that OneDrive has. */
static void assert_placed(struct fixture *f, const struct story *s)
{
    const struct tide_entry entry = entry_at(f, "big.bin");
    assert_int_equal(entry.bytes, BIG);
    assert_true(tide_entry_same(&entry, &s->out.entry));
    assert_memory_equal(s->out.content.qxh, s->item.item.hash, sizeof s->item.item.hash);
    tide_buf bytes = file_at(f, "big.bin");
    tide_quickxor hash = {.bytes = 0};
    uint8_t is[TIDE_QUICKXOR_BYTES];
    tide_quickxor_add(&hash, bytes.data, bytes.bytes);
    tide_quickxor_end(&hash, is);
    assert_memory_equal(is, s->item.item.hash, sizeof is);
    tide_buf_done(&bytes);
    assert_int_equal(temporaries(f, ""), 0);
}

CASE(a_new_file_comes_with_its_bytes_its_time_and_both_hashes)
{
    static const uint8_t strong[] = {0xba, 0x78, 0x16, 0xbf}; /* SHA-256 of "abc" */
    online(f, "put", "{\"path\":\"a.txt\",\"content\":\"abc\"}");
    struct story s = story_of(f, "a.txt", NULL);
    EXPECT(run(f, &s), TIDE_OK);
    assert_file(f, "a.txt", "abc");
    const struct tide_entry entry = entry_at(f, "a.txt");
    assert_true(tide_entry_same(&entry, &s.out.entry));
    assert_int_equal(entry.mtime_ns, s.item.item.modified_unix_ms / 1000 * 1000000000);
    assert_memory_equal(s.out.content.strong, strong, sizeof strong);
    assert_memory_equal(s.out.content.qxh, s.item.item.hash, sizeof s.item.item.hash);
    assert_int_equal(s.out.content.bytes, 3);
    assert_int_equal(s.out.fetched_bytes, 3);
    assert_string_equal(s.out.displaced, "");
    assert_int_equal(temporaries(f, ""), 0);
    end(&s);
}

CASE(an_empty_file_comes_into_a_folder)
{
    online(f, "put", "{\"path\":\"d/e/zero\",\"content\":\"\"}");
    assert_int_equal(mkdir(textf("%s/d", f->root), 0700), 0);
    assert_int_equal(mkdir(textf("%s/d/e", f->root), 0700), 0);
    struct story s = story_of(f, "d/e/zero", NULL);
    s.plan.folder = TIDE_TEXT("d/e");
    s.plan.content.has_qxh = false;
    EXPECT(run(f, &s), TIDE_OK);
    assert_file(f, "d/e/zero", "");
    assert_int_equal(temporaries(f, "d/e"), 0);
    end(&s);
}

/* ---- what is there already ---- */

CASE(a_file_is_replaced_and_the_old_one_kept_for_a_while)
{
    bool kept = true;
    online(f, "put", "{\"path\":\"a.txt\",\"content\":\"new\"}");
    put_file(f, "a.txt", "old");
    assert_int_equal(chmod(textf("%s/a.txt", f->root), 0640), 0);
    const struct tide_entry old = entry_at(f, "a.txt");
    struct story s = story_of(f, "a.txt", &old);
    EXPECT(run(f, &s), TIDE_OK);
    assert_file(f, "a.txt", "new");
    assert_int_equal(s.out.entry.mode, 0640);
    assert_file(f, s.out.displaced, "old");
    EXPECT(tide_drive_displaced_end(&f->act, TIDE_TEXT(""), s.out.displaced, &s.out.displaced_entry,
                                    TIDE_TEXT("copy"), &kept, &f->err),
           TIDE_OK);
    assert_false(kept);
    assert_int_equal(temporaries(f, ""), 0);
    assert_false(is_here(f, "copy"));
    /* Again, as after a crash. */
    EXPECT(tide_drive_displaced_end(&f->act, TIDE_TEXT(""), s.out.displaced, &s.out.displaced_entry,
                                    TIDE_TEXT("copy"), &kept, &f->err),
           TIDE_OK);
    end(&s);
}

/* F18: a program had the old file open and saves into it. */
CASE(what_is_written_to_a_replaced_file_becomes_a_copy)
{
    bool kept = false;
    online(f, "put", "{\"path\":\"a.txt\",\"content\":\"new\"}");
    put_file(f, "a.txt", "old");
    const struct tide_entry old = entry_at(f, "a.txt");
    FILE *open_file = fopen(textf("%s/a.txt", f->root), "r+");
    assert_non_null(open_file);
    struct story s = story_of(f, "a.txt", &old);
    EXPECT(run(f, &s), TIDE_OK);
    (void)fputs("mine, too", open_file);
    (void)fclose(open_file);
    EXPECT(tide_drive_displaced_end(&f->act, TIDE_TEXT(""), s.out.displaced, &s.out.displaced_entry,
                                    TIDE_TEXT("copy"), &kept, &f->err),
           TIDE_OK);
    assert_true(kept);
    assert_file(f, "copy", "mine, too");
    assert_file(f, "a.txt", "new");
    assert_int_equal(temporaries(f, ""), 0);
    end(&s);
}

/* A crash right after the exchange: the user's file still has the name of the partial one. */
CASE(a_placement_that_a_crash_cut_short_is_finished)
{
    char partial[TIDE_DRIVE_TEMPORARY_BYTES];
    online(f, "put", "{\"path\":\"a.txt\",\"content\":\"new\"}");
    put_file(f, "a.txt", "old");
    const struct tide_entry old = entry_at(f, "a.txt");
    struct story s = story_of(f, "a.txt", &old);
    tide_drive_partial_name(s.plan.id, s.plan.ctag, &s.plan.content, partial);
    assert_int_equal(rename(textf("%s/a.txt", f->root), textf("%s/%s", f->root, partial)), 0);
    put_file(f, "a.txt", "new");
    EXPECT(run(f, &s), TIDE_OK);
    assert_false(is_here(f, partial));
    assert_string_equal(s.out.displaced, textf("%.18s.old", partial));
    assert_file(f, s.out.displaced, "old");
    assert_file(f, "a.txt", "new");
    assert_int_equal(s.out.fetched_bytes, 0);
    /* What was written meanwhile is not what was planned. */
    put_file(f, "a.txt", "mine");
    EXPECT(run(f, &s), TIDE_SUPERSEDED);
    assert_file(f, "a.txt", "mine");
    end(&s);
}

/* F3, and the file changed online since: what was placed is known as ours, so it is no change here (I19). */
CASE(a_download_that_was_placed_before_a_crash_is_found)
{
    online(f, "put", "{\"path\":\"a.txt\",\"content\":\"new\"}");
    struct story s = story_of(f, "a.txt", NULL);
    EXPECT(run(f, &s), TIDE_OK);
    online(f, "put", "{\"path\":\"a.txt\",\"content\":\"newer\"}");
    EXPECT(run(f, &s), TIDE_OK);
    assert_true(s.out.same);
    assert_int_equal(s.out.fetched_bytes, 0);
    assert_file(f, "a.txt", "new");
    end(&s);
}

static char vanishing[TIDE_DRIVE_TEMPORARY_BYTES];

static void remove_partial(struct fixture *f)
{
    assert_int_equal(unlink(textf("%s/%s", f->root, vanishing)), 0);
}

/* I7: what comes after a hole is not the file, though its hash fits. */
CASE(a_partial_file_that_vanishes_is_not_continued_behind_a_hole)
{
    struct story s = big_story(f);
    f->after = break_off;
    f->cut = GET_MAX + 1000;
    f->only = 1;
    (void)run(f, &s);
    assert_int_equal(temporaries(f, ""), 1);
    f->after = NULL;
    tide_drive_partial_name(s.plan.id, s.plan.ctag, &s.plan.content, vanishing);
    f->before = remove_partial;
    EXPECT(run(f, &s), TIDE_SUPERSEDED);
    assert_false(is_here(f, "big.bin"));
    f->before = NULL;
    EXPECT(run(f, &s), TIDE_OK);
    assert_placed(f, &s);
    end(&s);
}

CASE(a_file_that_is_gone_online_leaves_no_part)
{
    struct story s = big_story(f);
    f->after = break_off;
    f->cut = GET_MAX + 1000;
    f->only = 1;
    (void)run(f, &s);
    assert_int_equal(temporaries(f, ""), 1);
    f->after = NULL;
    online(f, "delete", "{\"path\":\"big.bin\"}");
    EXPECT(run(f, &s), TIDE_SUPERSEDED);
    assert_int_equal(temporaries(f, ""), 0);
    end(&s);
}

static void user_makes_it(struct fixture *f)
{
    put_file(f, "big.bin", "the user's");
}

CASE(a_target_that_appeared_meanwhile_is_not_touched)
{
    struct story s = big_story(f);
    f->before = user_makes_it;
    EXPECT(run(f, &s), TIDE_SUPERSEDED);
    assert_file(f, "big.bin", "the user's");
    /* Planned again, it goes aside; the bytes that came are not fetched twice. */
    f->before = NULL;
    assert_int_equal(rename(textf("%s/big.bin", f->root), textf("%s/big.conflict.bin", f->root)),
                     0);
    EXPECT(run(f, &s), TIDE_OK);
    assert_int_equal(s.out.fetched_bytes, 0);
    assert_placed(f, &s);
    end(&s);
}

CASE(a_target_that_is_another_one_costs_no_transfer)
{
    struct story s = big_story(f);
    put_file(f, "big.bin", "one");
    const struct tide_entry one = entry_at(f, "big.bin");
    put_file(f, "big.bin", "other");
    EXPECT(run(f, &s), TIDE_SUPERSEDED); /* planned: nothing is there */
    s.plan.expected = &one;
    EXPECT(run(f, &s), TIDE_SUPERSEDED);
    assert_int_equal(f->seen, 0);
    assert_file(f, "big.bin", "other");
    end(&s);
}

static void user_edits_it(struct fixture *f)
{
    put_file(f, "big.bin", "edited while it was downloaded");
}

CASE(a_target_that_is_edited_during_the_download_stays)
{
    put_file(f, "big.bin", "as planned");
    const struct tide_entry old = entry_at(f, "big.bin");
    struct story s = big_story(f);
    s.plan.expected = &old;
    f->before = user_edits_it;
    EXPECT(run(f, &s), TIDE_SUPERSEDED);
    assert_file(f, "big.bin", "edited while it was downloaded");
    end(&s);
}

/* I18. */
CASE(a_folder_that_became_a_link_is_not_followed)
{
    online(f, "put", "{\"path\":\"d/a.txt\",\"content\":\"abc\"}");
    struct story s = story_of(f, "d/a.txt", NULL);
    s.plan.folder = TIDE_TEXT("d");
    EXPECT(run(f, &s), TIDE_SUPERSEDED);
    assert_int_equal(mkdir(textf("%s/outside", f->dir), 0700), 0);
    assert_int_equal(symlink("../outside", textf("%s/d", f->root)), 0);
    EXPECT(run(f, &s), TIDE_SUPERSEDED);
    assert_int_equal(rmdir(textf("%s/outside", f->dir)), 0); /* it is empty */
    end(&s);
}

/* ---- resuming ---- */

CASE(a_broken_download_continues_where_it_was)
{
    struct story s = big_story(f);
    f->after = break_off;
    f->only = 1;
    f->cut = 2000000;
    EXPECT(run(f, &s), TIDE_SERVER);
    assert_false(is_here(f, "big.bin"));
    assert_int_equal(temporaries(f, ""), 1);
    const uint64_t before = s.out.fetched_bytes;
    f->after = NULL;
    EXPECT(run(f, &s), TIDE_OK);
    assert_int_equal(before + s.out.fetched_bytes, BIG);
    assert_placed(f, &s);
    end(&s);
}

/* The kernel kills the process at the write that passes 2 MiB: what it had written is there. */
CASE(a_killed_download_continues_and_fetches_at_most_one_buffer_again)
{
    struct story s = big_story(f);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const struct rlimit limit = {2 << 20, 2 << 20}, none = {0, 0};
        (void)setrlimit(RLIMIT_CORE, &none);
        (void)setrlimit(RLIMIT_FSIZE, &limit);
        (void)signal(SIGXFSZ, SIG_DFL);
        (void)run(f, &s);
        _exit(1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_false(is_here(f, "big.bin"));
    EXPECT(run(f, &s), TIDE_OK);
    assert_true(s.out.fetched_bytes <= BIG - (2 << 20) + GET_MAX);
    assert_true(s.out.fetched_bytes > 0);
    assert_placed(f, &s);
    end(&s);
}

CASE(one_500_is_over_with_the_next_run)
{
    struct story s = big_story(f);
    fault(f, "{\"method\":\"graph.download.get\",\"count\":1,\"fault\":\"500\"}");
    EXPECT(run(f, &s), TIDE_SERVER);
    assert_false(is_here(f, "big.bin"));
    EXPECT(run(f, &s), TIDE_OK);
    assert_placed(f, &s);
    fault(f, "{\"method\":\"graph.drive.item.get\",\"count\":1,\"fault\":\"500\"}");
    const struct tide_entry placed = entry_at(f, "big.bin");
    s.plan.expected = &placed;
    EXPECT(run(f, &s), TIDE_SERVER);
    EXPECT(run(f, &s), TIDE_OK);
    end(&s);
}

CASE(a_dead_address_is_replaced_once)
{
    struct story s = big_story(f);
    fault(f, "{\"count\":1,\"fault\":\"url-expired\"}");
    EXPECT(run(f, &s), TIDE_OK);
    assert_int_equal(f->seen, 2);
    assert_placed(f, &s);
    const struct tide_entry placed = entry_at(f, "big.bin");
    s.plan.expected = &placed;
    fault(f, "{\"count\":2,\"fault\":\"url-expired\"}");
    EXPECT(run(f, &s), TIDE_SERVER); /* not "gone": the file is there */
    assert_int_equal(f->seen, 2);
    end(&s);
}

/* F34: 200 to a Range. */
CASE(a_whole_answer_to_a_range_starts_over)
{
    struct story s = big_story(f);
    f->after = break_off;
    f->only = 1;
    f->cut = 1500000;
    EXPECT(run(f, &s), TIDE_SERVER);
    f->after = NULL;
    fault(f, "{\"count\":1,\"fault\":\"no-range\"}");
    EXPECT(run(f, &s), TIDE_OK);
    assert_int_equal(s.out.fetched_bytes, BIG);
    assert_placed(f, &s);
    end(&s);
}

static void other_content(struct fixture *f)
{
    online(f, "put", "{\"path\":\"big.bin\",\"content\":\"shorter now\"}");
}

static void same_size(struct fixture *f)
{
    online(f, "put", "{\"path\":\"big.bin\",\"size\":3145728,\"seed\":8}");
}

/* F35. */
CASE(content_that_changes_during_the_download_is_not_placed)
{
    static void (*const changes[])(struct fixture *) = {other_content, same_size};
    for (size_t i = 0; i < 2; i++) {
        struct story s = big_story(f);
        f->before = changes[i];
        f->only = 1;
        EXPECT(run(f, &s), TIDE_SUPERSEDED);
        assert_false(is_here(f, "big.bin"));
        assert_int_equal(temporaries(f, ""), 0);
        assert_memory_not_equal(s.out.live.item.hash, s.item.item.hash, sizeof s.item.item.hash);
        f->before = NULL;
        end(&s);
    }
}

CASE(a_partial_file_of_other_content_is_not_continued)
{
    struct story s = big_story(f);
    f->after = break_off;
    f->only = 1;
    f->cut = 2000000;
    EXPECT(run(f, &s), TIDE_SERVER);
    f->after = NULL;
    same_size(f);
    EXPECT(run(f, &s), TIDE_SUPERSEDED);
    assert_int_equal(temporaries(f, ""), 0);
    end(&s);
    s = story_of(f, "big.bin", NULL);
    EXPECT(run(f, &s), TIDE_OK);
    assert_int_equal(s.out.fetched_bytes, BIG);
    assert_placed(f, &s);
    end(&s);
}

/* The rows knew of the change before the next run: what is left of the old content is not touched. */
CASE(a_partial_file_is_known_by_its_content)
{
    struct story s = big_story(f);
    f->after = break_off;
    f->only = 1;
    f->cut = 2000000;
    EXPECT(run(f, &s), TIDE_SERVER);
    end(&s);
    f->after = NULL;
    same_size(f);
    s = story_of(f, "big.bin", NULL);
    EXPECT(run(f, &s), TIDE_OK);
    assert_int_equal(f->seen, 1); /* no misfit first */
    assert_int_equal(s.out.fetched_bytes, BIG);
    assert_int_equal(temporaries(f, ""), 1);
    end(&s);
}

CASE(a_file_that_is_gone_online_is_superseded)
{
    struct story s = big_story(f);
    online(f, "delete", "{\"path\":\"big.bin\"}");
    EXPECT(run(f, &s), TIDE_SUPERSEDED);
    assert_int_equal(temporaries(f, ""), 0);
    end(&s);
}

/* ---- lies ---- */

CASE(a_hash_that_never_fits_is_a_bad_item_and_one_misfit_is_not)
{
    struct story s = big_story(f);
    f->after = flip_a_byte;
    EXPECT(run(f, &s), TIDE_PERMANENT);
    assert_int_equal(f->seen, TIDE_DRIVE_MISFITS_MAX);
    assert_false(is_here(f, "big.bin"));
    assert_int_equal(temporaries(f, ""), 0);
    f->only = 1;
    EXPECT(run(f, &s), TIDE_OK);
    assert_int_equal(f->seen, 2);
    assert_placed(f, &s);
    end(&s);
}

CASE(a_misfit_is_placed_if_the_user_accepts_it)
{
    struct story s = big_story(f);
    f->after = flip_a_byte;
    s.plan.accept = true;
    EXPECT(run(f, &s), TIDE_OK);
    assert_int_equal(entry_at(f, "big.bin").bytes, BIG);
    assert_memory_not_equal(s.out.content.qxh, s.item.item.hash, sizeof s.item.item.hash);
    end(&s);
}

/* The item claims less than the address gives. */
static void shrink_the_size(struct fixture *f, const struct tide_request *request,
                            struct tide_sim_answer *answer)
{
    (void)f;
    (void)request;
    json_t *item = json_loadb(answer->body.data, answer->body.bytes, 0, NULL);
    if (json_object_get(item, "size") != NULL) {
        (void)json_object_set_new(item, "size", json_integer(3000000));
        (void)json_object_del(json_object_get(item, "file"), "hashes");
        char *text = json_dumps(item, 0);
        tide_buf_clear(&answer->body);
        OK(tide_buf_add_text(&answer->body, text));
        free(text);
    }
    json_decref(item);
}

CASE(a_size_that_lies_is_never_placed)
{
    struct story s = big_story(f);
    f->after = cut_short;
    f->cut = 3000000;
    EXPECT(run(f, &s), TIDE_PERMANENT);
    assert_int_equal(f->seen, TIDE_DRIVE_MISFITS_MAX);
    assert_false(is_here(f, "big.bin"));
    f->watched = "/v1.0/";
    f->after = shrink_the_size;
    s.plan.content = (struct tide_drive_content){.bytes = 3000000};
    EXPECT(run(f, &s), TIDE_PERMANENT);
    assert_false(is_here(f, "big.bin"));
    assert_int_equal(temporaries(f, ""), 0);
    end(&s);
}

/* ---- a full disk ---- */

CASE(room_on_the_disk_is_checked_before_the_download)
{
    struct story s = big_story(f);
    f->act.free_min_bytes = UINT64_MAX / 2;
    EXPECT(run(f, &s), TIDE_DISK_FULL);
    assert_int_equal(f->seen, 0);
    f->act.free_min_bytes = 0;
    EXPECT(run(f, &s), TIDE_OK);
    assert_placed(f, &s);
    end(&s);
}

/* F16: a write fails in the middle, as when others fill the disk meanwhile. */
CASE(a_disk_that_takes_no_more_loses_nothing)
{
    struct story s = big_story(f);
    struct rlimit old;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    const struct rlimit limit = {1 << 20, old.rlim_max};
    void (*const handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    const tide_status rc = run(f, &s);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    (void)signal(SIGXFSZ, handler);
    EXPECT(rc, TIDE_IO);
    assert_false(is_here(f, "big.bin"));
    EXPECT(run(f, &s), TIDE_OK);
    assert_true(s.out.fetched_bytes <= BIG - (1 << 20));
    assert_placed(f, &s);
    end(&s);
}

/* ---- no hash ---- */

/* D19: both sides have a file without baseline, and OneDrive has no hash of its own. */
CASE(without_a_hash_the_bytes_are_compared)
{
    online(f, "put", "{\"path\":\"a.txt\",\"content\":\"same\"}");
    put_file(f, "a.txt", "same");
    const struct tide_entry here = entry_at(f, "a.txt");
    struct story s = story_of(f, "a.txt", &here);
    s.plan.content.has_qxh = false;
    s.plan.compare = true;
    EXPECT(run(f, &s), TIDE_OK);
    assert_true(s.out.same);
    assert_int_equal(temporaries(f, ""), 0);
    const struct tide_entry after = entry_at(f, "a.txt");
    assert_true(tide_entry_same(&here, &after));

    put_file(f, "a.txt", "else");
    const struct tide_entry other = entry_at(f, "a.txt");
    s.plan.expected = &other;
    EXPECT(run(f, &s), TIDE_SUPERSEDED);
    assert_false(s.out.same);
    assert_memory_equal(s.out.content.qxh, s.item.item.hash, sizeof s.item.item.hash);
    assert_file(f, "a.txt", "else");
    end(&s);
}
