/* Uploads: sessions, fragments, a source that changes, answers that are lost (D36 to D40, S7). */
#include "drive/local/hash.h"
#include "drive_act_fixture.h"

enum { FRAGMENT = TIDE_DRIVE_FRAGMENT_BYTES, BIG = 2 * FRAGMENT + 1000 };
#define PUTS "PUT http://provider/_files/upload/"

struct story {
    struct tide_drive_upload plan;
    struct tide_drive_uploaded out;
    char saved[4096];
    unsigned saves;
    uint64_t slept_ms;
};

static tide_status save(void *arg, tide_text resume, tide_error *err)
{
    struct story *s = arg;
    (void)err;
    s->saves++;
    (void)snprintf(s->saved, sizeof s->saved, "%.*s", (int)resume.bytes, resume.data);
    return TIDE_OK;
}

static tide_status sleep_ms(void *arg, uint64_t wait_ms)
{
    struct story *s = arg;
    s->slept_ms += wait_ms;
    return TIDE_OK;
}

static void make_big(struct fixture *f, const char *name)
{
    FILE *file = fopen(textf("%s/%s", f->root, name), "w");
    assert_non_null(file);
    for (unsigned i = 0; i < BIG / 4; i++) {
        const uint32_t word = i * UINT32_C(2654435761);
        assert_int_equal(fwrite(&word, 4, 1, file), 1);
    }
    assert_int_equal(fclose(file), 0);
}

/* A new file, as it is here now. */
static struct story *story_of(struct fixture *f, const char *name)
{
    struct story *s = calloc(1, sizeof *s);
    assert_non_null(s);
    s->plan.here = s->plan.name = tide_text_of(name);
    OK(tide_drive_hash_file(f->act.root, s->plan.here, &s->plan.content, &s->plan.entry, &f->err));
    f->act.save = save;
    f->act.sleep = sleep_ms;
    f->act.arg = s;
    return s;
}

/* Replaces what is online now. */
static void replace(struct story *s, const struct tide_onedrive_answer *item)
{
    s->plan.id = item->item.id;
    s->plan.ctag = item->item.ctag;
    s->plan.replaces = (struct tide_drive_content){.bytes = item->item.size, .has_qxh = true};
    memcpy(s->plan.replaces.qxh, item->item.hash, sizeof item->item.hash);
}

static tide_status run(struct fixture *f, struct story *s)
{
    tide_drive_uploaded_done(&s->out);
    f->seen = 0;
    f->act.resume = tide_text_of(s->saved);
    return tide_drive_upload(&f->act, &s->plan, &s->out, &f->err);
}

static void end(struct story *s)
{
    tide_drive_uploaded_done(&s->out);
    free(s);
}

static void assert_online(struct fixture *f, const struct story *s, const char *path)
{
    struct tide_onedrive_answer item = item_at(f, path);
    assert_int_equal(item.item.size, s->plan.content.bytes);
    assert_memory_equal(item.item.hash, s->plan.content.qxh, sizeof item.item.hash);
    assert_int_equal(item.item.modified_unix_ms / 1000, s->plan.entry.mtime_ns / 1000000000);
    assert_true(tide_text_equal(item.item.id, s->out.live.item.id));
    tide_onedrive_answer_done(&item);
}

static void reset_it(struct fixture *f, const struct tide_request *request,
                     struct tide_sim_answer *answer)
{
    (void)f;
    (void)request;
    answer->reset = true;
}

CASE(a_new_file_is_sent_by_a_session_that_was_saved_before)
{
    put_file(f, "a.txt", "abc");
    struct story *s = story_of(f, "a.txt");
    EXPECT(run(f, s), TIDE_OK);
    assert_online(f, s, "a.txt");
    assert_int_equal(s->saves, 1);
    assert_int_equal(s->out.sent_bytes, 3);
    assert_false(s->out.rewritten);
    /* Again, as after a crash: the session is gone and the file is found.  So small a fragment is sent
     * without asking where the session stands. */
    EXPECT(run(f, s), TIDE_OK);
    assert_int_equal(s->out.sent_bytes, 3);
    assert_int_equal(s->saves, 1);
    assert_online(f, s, "a.txt");
    /* The same if the crash came so early that the session was never saved. */
    s->saved[0] = '\0';
    EXPECT(run(f, s), TIDE_OK);
    assert_int_equal(s->out.sent_bytes, 0);
    end(s);
}

CASE(an_empty_file_needs_no_session)
{
    put_file(f, "zero", "");
    struct story *s = story_of(f, "zero");
    EXPECT(run(f, s), TIDE_OK);
    assert_online(f, s, "zero");
    assert_int_equal(s->saves, 0);
    EXPECT(run(f, s), TIDE_OK); /* as after a crash */
    end(s);
}

CASE(content_is_replaced_by_id_only_as_it_was)
{
    online(f, "put", "{\"path\":\"a.txt\",\"content\":\"old\"}");
    struct tide_onedrive_answer item = item_at(f, "a.txt");
    put_file(f, "a.txt", "newer");
    struct story *s = story_of(f, "a.txt");
    replace(s, &item);
    EXPECT(run(f, s), TIDE_OK);
    assert_online(f, s, "a.txt");
    assert_true(tide_text_equal(s->out.live.item.id, item.item.id));
    json_t *stats = tide_sim_cloud_control(f->cloud, f->sim, "GET", "/_cloud/stats", TIDE_TEXT(""));
    assert_null(json_object_get(json_object_get(stats, "violations"), "overwrite-blind"));
    json_decref(stats);

    online(f, "put", "{\"path\":\"a.txt\",\"content\":\"another's\"}");
    s->saved[0] = '\0';
    EXPECT(run(f, s), TIDE_SUPERSEDED);
    assert_int_equal(s->out.live.item.size, 9);
    end(s);
    tide_onedrive_answer_done(&item);
}

/* ---- resuming ---- */

CASE(an_upload_that_ended_in_the_middle_continues_with_its_next_fragment)
{
    make_big(f, "big.bin");
    struct story *s = story_of(f, "big.bin");
    fault(f, "{\"method\":\"graph.upload.put\",\"after\":1,\"count\":1,\"fault\":\"500\"}");
    EXPECT(run(f, s), TIDE_SERVER); /* one fragment is there */
    assert_false(is_online(f, "big.bin"));
    EXPECT(run(f, s), TIDE_OK);
    assert_int_equal(s->out.sent_bytes, BIG - FRAGMENT);
    assert_int_equal(s->saves, 1);
    assert_online(f, s, "big.bin");
    end(s);
}

CASE(a_fragment_without_an_answer_is_asked_for_not_repeated)
{
    make_big(f, "big.bin");
    struct story *s = story_of(f, "big.bin");
    f->watched = PUTS;
    f->after = reset_it;
    f->only = 2; /* it arrived */
    EXPECT(run(f, s), TIDE_OK);
    assert_int_equal(s->out.sent_bytes, BIG);
    assert_online(f, s, "big.bin");
    end(s);
}

/* F4, D38. */
CASE(a_last_fragment_without_an_answer_is_looked_up)
{
    make_big(f, "big.bin");
    struct story *s = story_of(f, "big.bin");
    f->watched = PUTS;
    f->after = reset_it;
    f->only = 3;
    EXPECT(run(f, s), TIDE_OK);
    assert_int_equal(s->out.sent_bytes, BIG);
    assert_online(f, s, "big.bin");
    end(s);
}

/* New items are not found at first. */
CASE(a_finished_upload_is_looked_for_a_while)
{
    make_big(f, "big.bin");
    struct story *s = story_of(f, "big.bin");
    f->watched = PUTS;
    f->after = reset_it;
    f->only = 3;
    fault(f, "{\"method\":\"graph.drive.item.get\",\"count\":2,\"fault\":\"404\"}");
    EXPECT(run(f, s), TIDE_OK);
    assert_int_equal(s->out.sent_bytes, BIG);
    assert_true(s->slept_ms > 0);
    assert_online(f, s, "big.bin");
    end(s);
}

CASE(a_session_that_is_gone_is_replaced_by_a_new_one)
{
    make_big(f, "big.bin");
    struct story *s = story_of(f, "big.bin");
    fault(f, "{\"method\":\"graph.upload.put\",\"after\":1,\"count\":1,\"fault\":\"404\"}");
    EXPECT(run(f, s), TIDE_OK);
    assert_int_equal(s->saves, 2);
    assert_online(f, s, "big.bin");
    end(s);
}

/* A saved session of other bytes is not continued. */
CASE(a_session_belongs_to_the_bytes_it_was_begun_for)
{
    make_big(f, "big.bin");
    struct story *s = story_of(f, "big.bin");
    fault(f, "{\"method\":\"graph.upload.put\",\"after\":1,\"count\":1,\"fault\":\"500\"}");
    EXPECT(run(f, s), TIDE_SERVER);
    put_file(f, "big.bin", "now it is small");
    OK(tide_drive_hash_file(f->act.root, s->plan.here, &s->plan.content, &s->plan.entry, &f->err));
    EXPECT(run(f, s), TIDE_OK);
    assert_int_equal(s->saves, 2);
    assert_online(f, s, "big.bin");
    end(s);
}

/* ---- the file here changes ---- */

static void append(struct fixture *f)
{
    FILE *file = fopen(textf("%s/big.bin", f->root), "a");
    assert_non_null(file);
    (void)fputs("more", file);
    (void)fclose(file);
}

/* F17, S7. */
CASE(a_file_that_changes_during_its_upload_is_never_finished)
{
    make_big(f, "big.bin");
    struct story *s = story_of(f, "big.bin");
    f->watched = PUTS;
    f->before = append;
    f->only = 2;
    EXPECT(run(f, s), TIDE_SUPERSEDED);
    assert_int_equal(f->seen, 2); /* not the last one */
    assert_false(is_online(f, "big.bin"));
    end(s);
}

/* D39: the stamp says nothing, the bytes are others. */
CASE(bytes_that_are_not_the_planned_ones_are_never_finished)
{
    make_big(f, "big.bin");
    struct story *s = story_of(f, "big.bin");
    s->plan.content.strong[7] ^= 1;
    f->watched = PUTS;
    EXPECT(run(f, s), TIDE_SUPERSEDED);
    assert_int_equal(f->seen, 2);
    assert_false(is_online(f, "big.bin"));
    put_file(f, "big.bin", "another");
    EXPECT(run(f, s), TIDE_SUPERSEDED); /* and here the stamp says it */
    assert_int_equal(f->seen, 0);
    end(s);
}

/* ---- the other side changes ---- */

static void another_makes_it(struct fixture *f)
{
    online(f, "put", "{\"path\":\"big.bin\",\"content\":\"another's\"}");
}

CASE(a_name_that_is_taken_meanwhile_is_not_overwritten)
{
    make_big(f, "big.bin");
    struct story *s = story_of(f, "big.bin");
    f->watched = PUTS;
    f->before = another_makes_it;
    f->only = 3;
    EXPECT(run(f, s), TIDE_EXISTS);
    struct tide_onedrive_answer item = item_at(f, "big.bin");
    assert_int_equal(item.item.size, 9);
    tide_onedrive_answer_done(&item);
    EXPECT(run(f, s), TIDE_EXISTS); /* a new session is refused at once */
    end(s);
}

CASE(an_item_that_changes_during_its_replacement_stays)
{
    online(f, "put", "{\"path\":\"big.bin\",\"content\":\"old\"}");
    struct tide_onedrive_answer item = item_at(f, "big.bin"), now;
    make_big(f, "big.bin");
    struct story *s = story_of(f, "big.bin");
    replace(s, &item);
    f->watched = PUTS;
    f->before = another_makes_it;
    f->only = 3;
    EXPECT(run(f, s), TIDE_SUPERSEDED);
    now = item_at(f, "big.bin");
    assert_int_equal(now.item.size, 9);
    tide_onedrive_answer_done(&now);
    tide_onedrive_answer_done(&item);
    end(s);
}

static void refuse_the_tag(struct fixture *f, const struct tide_request *request,
                           struct tide_sim_answer *answer)
{
    (void)f;
    (void)request;
    answer->http = 412;
    tide_buf_clear(&answer->body);
    OK(tide_buf_add_text(&answer->body, "{\"error\":{\"code\":\"resourceModified\"}}"));
}

/* F32: 412 on the right tag.  The third session goes without one. */
CASE(a_tag_that_moves_alone_is_read_again)
{
    online(f, "put", "{\"path\":\"a.txt\",\"content\":\"old\"}");
    struct tide_onedrive_answer item = item_at(f, "a.txt");
    put_file(f, "a.txt", "newer");
    struct story *s = story_of(f, "a.txt");
    replace(s, &item);
    f->watched = "/createUploadSession";
    f->after = refuse_the_tag;
    f->only = 1;
    EXPECT(run(f, s), TIDE_OK);
    assert_int_equal(f->seen, 2);
    assert_online(f, s, "a.txt");
    tide_onedrive_answer_done(&item);
    end(s);
}

static void refuse_two_tags(struct fixture *f, const struct tide_request *request,
                            struct tide_sim_answer *answer)
{
    if (f->seen <= 2)
        refuse_the_tag(f, request, answer);
}

static void another_edits_it(struct fixture *f)
{
    if (f->seen == 3) /* the session without a tag */
        online(f, "put", "{\"path\":\"a.txt\",\"content\":\"another's\"}");
}

CASE(a_session_without_a_tag_is_finished_only_after_a_look)
{
    for (int edited = 0; edited < 2; edited++) {
        online(f, "put", "{\"path\":\"a.txt\",\"content\":\"old\"}");
        struct tide_onedrive_answer item = item_at(f, "a.txt");
        put_file(f, "a.txt", "newer");
        struct story *s = story_of(f, "a.txt");
        replace(s, &item);
        f->watched = "/createUploadSession";
        f->after = refuse_two_tags;
        f->before = edited ? another_edits_it : NULL;
        EXPECT(run(f, s), edited ? TIDE_SUPERSEDED : TIDE_OK);
        assert_int_equal(f->seen, 3);
        assert_int_equal(s->out.live.item.size, edited ? 9 : 5);
        tide_onedrive_answer_done(&item);
        end(s);
    }
}

CASE(a_full_drive_and_a_missing_folder_are_told_apart)
{
    make_big(f, "big.bin");
    struct story *s = story_of(f, "big.bin");
    json_decref(tide_sim_cloud_control(f->cloud, f->sim, "POST", "/_cloud/drive",
                                       TIDE_TEXT("{\"user\":\"" ME "\",\"total\":1000}")));
    EXPECT(run(f, s), TIDE_DISK_FULL);
    assert_false(is_online(f, "big.bin"));
    online(f, "folder", "{\"path\":\"d\"}");
    struct tide_onedrive_answer folder = item_at(f, "d");
    s->plan.parent_id = folder.item.id;
    s->saved[0] = '\0';
    online(f, "delete", "{\"path\":\"d\"}");
    EXPECT(run(f, s), TIDE_SUPERSEDED);
    tide_onedrive_answer_done(&folder);
    end(s);
}

/* ---- the server's own ideas ---- */

static void other_hash(struct fixture *f, const struct tide_request *request,
                       struct tide_sim_answer *answer)
{
    (void)f;
    (void)request;
    json_t *item = json_loadb(answer->body.data, answer->body.bytes, 0, NULL);
    json_t *hashes = json_object_get(json_object_get(item, "file"), "hashes");
    if (hashes != NULL) {
        (void)json_object_set_new(hashes, "quickXorHash",
                                  json_string("AAAAAAAAAAAAAAAAAAAAAAAAAAA="));
        char *text = json_dumps(item, 0);
        tide_buf_clear(&answer->body);
        OK(tide_buf_add_text(&answer->body, text));
        free(text);
    }
    json_decref(item);
}

/* D40. */
CASE(a_rewritten_file_is_recognized_and_any_other_misfit_is_a_bad_item)
{
    put_file(f, "report.docx", "abc");
    struct story *s = story_of(f, "report.docx");
    s->plan.business = true;
    f->watched = PUTS;
    f->after = other_hash;
    EXPECT(run(f, s), TIDE_OK);
    assert_true(s->out.rewritten);
    assert_int_equal(f->seen, 1);
    end(s);

    put_file(f, "data.bin", "abc");
    s = story_of(f, "data.bin");
    s->plan.business = true;
    f->watched = "http"; /* the item says so, too */
    EXPECT(run(f, s), TIDE_PERMANENT);
    end(s);

    put_file(f, "once.bin", "abc");
    s = story_of(f, "once.bin");
    f->watched = PUTS;
    f->only = 1;
    EXPECT(run(f, s), TIDE_OK);
    assert_false(s->out.rewritten);
    assert_online(f, s, "once.bin");
    end(s);
}
