/* How the calls fail: every way of a server has its status. */
#include "gmail_client_fixture.h"
#include "support/heap.h"

/* What each call makes of a fault of the cloud. */
typedef enum answers { WITH_JSON, WITH_NOTHING, MAKES } answers;
struct subject {
    const char *name;
    play *play;
    answers answers;
    bool gone_is_fine;
    size_t ids_count;
};

static const struct subject subjects[] = {
    {"profile", play_profile, WITH_JSON, false, 0},
    {"list", play_list, WITH_JSON, false, 0},
    {"get", play_get, WITH_JSON, false, 0},
    {"minimal", play_minimal, WITH_JSON, false, 0},
    {"history", play_history, WITH_JSON, false, 0},
    {"labels", play_labels, WITH_JSON, false, 0},
    {"label_create", play_label_create, MAKES, false, 0},
    {"modify one", play_modify, WITH_NOTHING, true, 1},
    {"modify", play_modify, WITH_NOTHING, false, 3},
    {"delete one", play_delete, WITH_NOTHING, true, 1},
    {"delete", play_delete, WITH_NOTHING, false, 3},
    {"insert", play_insert, MAKES, false, 0},
    {"thread_get", play_thread_get, WITH_JSON, false, 0},
    {"thread_look", play_thread_look, WITH_JSON, false, 0},
    {"thread_modify", play_thread_modify, WITH_NOTHING, false, 0},
    {"trash", play_trash, WITH_NOTHING, true, 0},
    {"draft_create", play_draft_create, MAKES, false, 0},
    {"draft_get", play_draft_get, WITH_JSON, false, 0},
    {"drafts_list", play_drafts_list, WITH_JSON, false, 0},
    {"draft_delete", play_draft_delete, WITH_NOTHING, true, 0},
};

static const struct {
    const char *fault;
    tide_status status;
} faults[] = {
    {"404", TIDE_GONE},
    {"403", TIDE_PERMANENT},
    {"403-rate", TIDE_THROTTLED},
    {"429", TIDE_THROTTLED},
    {"403-user-rate", TIDE_THROTTLED},
    {"429-time", TIDE_THROTTLED},
    {"403-daily", TIDE_THROTTLED},
    {"500", TIDE_SERVER},
    {"502", TIDE_SERVER},
    {"503", TIDE_SERVER},
    {"504", TIDE_SERVER},
    {"html", TIDE_SERVER},
    {"reset-before", TIDE_UNKNOWN},
    {"stall-start", TIDE_TIMEOUT},
};

static void prepare(struct fixture *f, const struct subject *subject)
{
    static const char *const star[] = {"STARRED", NULL};
    f->query = NULL;
    run_ok(f, play_profile);
    look(f, 3);
    f->ids_count = subject->ids_count;
    f->add = star;
    f->text = TIDE_TEXT_NONE;
    if (subject->play == play_label_create)
        f->text = TIDE_TEXT("a label");
    if (subject->play == play_insert || subject->play == play_draft_create) {
        f->text = TIDE_TEXT("Subject: x\r\n\r\nhello\r\n");
        f->id[0] = '\0';
    }
    const json_t *thread = json_object_get(json_array_get(f->page.ids, 0), "threadId");
    (void)snprintf(f->thread_id, sizeof f->thread_id, "%s", json_string_value(thread));
    if (subject->play == play_draft_get || subject->play == play_draft_delete) {
        f->text = TIDE_TEXT("Subject: x\r\n\r\nhello\r\n");
        run_ok(f, play_draft_create);
        f->text = TIDE_TEXT_NONE;
    }
}

static void strike(struct fixture *f, const char *fault, const char *count)
{
    const char *rule = textf("{\"method\":\"gmail.*\",\"fault\":\"%s\"%s}", fault, count);
    control(f, "POST", "/_cloud/faults", rule);
}

TEST(every_refusal_has_its_status)
{
    for (size_t s = 0; s < sizeof subjects / sizeof subjects[0]; s++) {
        for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
            struct fixture *f = begin(5);
            prepare(f, &subjects[s]);
            strike(f, faults[i].fault, "");
            tide_status wanted = faults[i].status;
            if (wanted == TIDE_GONE && subjects[s].gone_is_fine)
                wanted = TIDE_OK;
            const size_t live = f->mem.bytes_live;
            if (run(f, subjects[s].play) != wanted)
                fail_msg("%s, %s: %s instead of %s: %s", subjects[s].name, faults[i].fault,
                         tide_status_name(f->status), tide_status_name(wanted), f->err.text);
            assert_int_equal(f->requests, 1);
            assert_true(f->mem.bytes_live <= live);
            if (wanted == TIDE_TIMEOUT)
                assert_true(f->took_ms >= 60000 && f->took_ms < 70000);
            finish(f);
        }
    }
}

/* The answer begins, and then something happens to it. */
TEST(half_an_answer_is_none)
{
    static const char *const ways[] = {"garbage", "truncate", "stall-body"};
    for (size_t s = 0; s < sizeof subjects / sizeof subjects[0]; s++) {
        for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
            struct fixture *f = begin(5);
            prepare(f, &subjects[s]);
            strike(f, ways[i], "");
            const tide_status rc = run(f, subjects[s].play);
            tide_status wanted = i == 2 ? TIDE_TIMEOUT : TIDE_SERVER;
            /* It was made, but its id is unknown. */
            if (subjects[s].answers == MAKES && i < 2)
                wanted = TIDE_UNKNOWN;
            /* Where the answer says nothing, its loss says nothing either. */
            const bool fine = subjects[s].answers == WITH_NOTHING && rc == TIDE_OK;
            if (rc != wanted && !fine)
                fail_msg("%s, %s: %s: %s", subjects[s].name, ways[i], tide_status_name(rc),
                         f->err.text);
            assert_int_equal(f->message.raw.bytes, 0);
            finish(f);
        }
    }
}

TEST(a_stale_token_is_refreshed_once)
{
    for (size_t s = 0; s < sizeof subjects / sizeof subjects[0]; s++) {
        struct fixture *f = begin(5);
        prepare(f, &subjects[s]);
        strike(f, "401", ",\"count\":1");
        run_ok(f, subjects[s].play);
        assert_int_equal(f->requests, 2);
        assert_string_equal(f->authorization, "Bearer me-1");
        control(f, "DELETE", "/_cloud/faults", "");
        strike(f, "401", "");
        if (subjects[s].play == play_label_create)
            f->text = TIDE_TEXT("another label");
        assert_int_equal(run(f, subjects[s].play), TIDE_AUTH);
        assert_int_equal(f->err.code, 401);
        assert_int_equal(f->requests, 2); /* and no more */
        control(f, "DELETE", "/_cloud/faults", "");
        /* Once it works again it needs no intervention. */
        run_ok(f, subjects[s].play);
        finish(f);
    }
}

CASE(answers_of_the_wrong_shape_are_the_servers_fault, 1)
{
    static const struct {
        play *play;
        const char *say;
    } cases[] = {
        {play_list, "[]"},
        {play_list, "{\"messages\":{}}"},
        {play_list, "{\"messages\":[1]}"},
        {play_list, "{\"messages\":[{\"threadId\":\"1\"}]}"},
        {play_list, "{\"messages\":[{\"id\":\"\"}]}"},
        {play_list, "{\"messages\":[{\"id\":7}]}"},
        {play_list, "{\"nextPageToken\":7}"},
        {play_list, "{\"messages\":[]"},
        {play_history, "{\"history\":{}}"},
        {play_history, "{\"history\":[7]}"},
        {play_history, "{\"history\":[{\"id\":7}]}"},
        {play_history, "{\"history\":[{\"messagesAdded\":{}}]}"},
        {play_history, "{\"history\":[{\"messagesAdded\":[{}]}]}"},
        {play_history, "{\"history\":[{\"messagesDeleted\":[{\"message\":{}}]}]}"},
        {play_history, "{\"history\":[{\"labelsAdded\":[{\"message\":{\"id\":\"1\"}}]}]}"},
        {play_history, "{\"history\":[{\"labelsRemoved\":[{\"message\":{\"id\":\"1\"},"
                       "\"labelIds\":[1]}]}]}"},
        {play_history, "{\"historyId\":7}"},
        {play_labels, "{\"labels\":[{\"id\":\"1\"}]}"},
        {play_labels, "{\"labels\":[{\"name\":\"1\"}]}"},
        {play_get, "{\"id\":\"a1\"}"}, /* no bytes */
        {play_get, "{\"id\":\"a1\",\"raw\":null}"},
        {play_get, "{\"id\":\"a1\",\"raw\":\"QUJ\"}"},
        {play_get, "{\"raw\":\"QUJD\"}"},
        {play_get, "{\"id\":\"a2\",\"raw\":\"QUJD\"}"}, /* GML4 */
        {play_get, "{\"id\":7,\"raw\":\"QUJD\"}"},
        {play_get, "{\"id\":\"a1\",\"threadId\":7,\"raw\":\"QUJD\"}"},
        {play_get, "{\"id\":\"a1\",\"labelIds\":\"INBOX\",\"raw\":\"QUJD\"}"},
        {play_get, "{\"id\":\"a1\",\"labelIds\":[[]],\"raw\":\"QUJD\"}"},
        {play_get, "{\"id\":\"a1\",\"internalDate\":\"soon\",\"raw\":\"QUJD\"}"},
        {play_get, "{\"id\":\"a1\",\"internalDate\":1.5,\"raw\":\"QUJD\"}"},
        {play_get, "{\"id\":\"a1\",\"historyId\":[],\"raw\":\"QUJD\"}"},
        {play_thread_get, "{\"id\":\"t2\",\"messages\":[{\"id\":\"1\"}]}"}, /* GTH1 */
        {play_thread_get, "{\"messages\":[{\"id\":\"1\"}]}"},
        {play_thread_get, "{\"id\":\"t1\",\"messages\":[{\"threadId\":\"t1\"}]}"},
        {play_thread_get, "{\"id\":\"t1\",\"messages\":[{\"id\":\"1\",\"threadId\":\"t2\"}]}"},
        {play_thread_get, "{\"id\":\"t1\",\"messages\":[7]}"},
        {play_thread_get, "{\"id\":\"t1\",\"messages\":[{\"id\":\"1\",\"payload\":[]}]}"},
        {play_thread_get, "{\"id\":\"t1\",\"messages\":[{\"id\":\"1\",\"labelIds\":[1]}]}"},
        {play_thread_get, "{\"id\":\"t1\",\"messages\":[{\"id\":\"1\",\"snippet\":1}]}"},
        {play_thread_get, "{\"id\":\"t1\",\"messages\":[{\"id\":\"1\",\"payload\":{\"headers\":"
                          "[{\"name\":\"a\"}]}}]}"},
        {play_thread_get, "{\"id\":\"t1\",\"messages\":[{\"id\":\"1\",\"payload\":{\"parts\":"
                          "[1]}}]}"},
        {play_thread_get, "{\"id\":\"t1\",\"messages\":[{\"id\":\"1\",\"payload\":{\"mimeType\":"
                          "\"text/plain\",\"body\":{\"data\":\"*\"}}}]}"},
        {play_thread_get, "{\"id\":\"t1\",\"messages\":[{\"id\":\"1\"}"},
        {play_drafts_list, "{\"drafts\":[{\"id\":\"1\"}]}"},
        {play_drafts_list, "{\"drafts\":[{\"message\":{\"id\":\"1\"}}]}"},
        {play_drafts_list, "{\"drafts\":{}}"},
        {play_draft_get, "{\"id\":\"r2\",\"message\":{\"id\":\"1\"}}"}, /* GML4 */
        {play_draft_get, "{\"id\":\"r1\"}"},
        {play_draft_get, "{\"id\":\"r1\",\"message\":[]}"},
        {play_minimal, "{\"id\":\"a2\"}"},
        {play_minimal, ""},
    };
    (void)snprintf(f->id, sizeof f->id, "a1");
    (void)snprintf(f->thread_id, sizeof f->thread_id, "t1");
    (void)snprintf(f->draft.id, sizeof f->draft.id, "r1");
    f->say_http = 200;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        f->say = cases[i].say;
        if (run(f, cases[i].play) != TIDE_SERVER)
            fail_msg("%s: %s", cases[i].say, tide_status_name(f->status));
        assert_null(f->message.fields);
        assert_int_equal(f->message.raw.bytes, 0);
        assert_null(f->page.value);
        assert_null(f->history.value);
        assert_int_equal(f->thread.count, 0);
        assert_null(f->drafts.value);
    }
    /* The same with as little as possible in them. */
    f->say = "{\"id\":\"a1\",\"raw\":\"QUJD\",\"new\":{\"x\":[1]},\"labelIds\":[]}";
    run_ok(f, play_get);
    assert_string_equal(tide_buf_cstr(&f->message.raw), "ABC");
    assert_null(f->message.labels);
    assert_int_equal(f->message.internal_ms, 0);
    assert_int_equal(f->message.thread_id.bytes, 0);
    f->say = "{\"id\":\"a1\",\"internalDate\":-5}";
    run_ok(f, play_minimal);
    assert_int_equal(f->message.internal_ms, -5);
    f->say = "{\"messages\":[],\"nextPageToken\":\"x\"}";
    run_ok(f, play_list);
    assert_null(f->page.ids);
    assert_int_equal(f->page.next.bytes, 1);
    f->say = "{}";
    run_ok(f, play_history);
    run_ok(f, play_labels);
}

/* A page behind a captive portal must not look like an answer, nor be kept whole. */
CASE(a_long_refusal_is_not_kept, 1)
{
    char *page = malloc(900001);
    assert_non_null(page);
    memset(page, '<', 900000);
    page[900000] = '\0';
    f->say = page;
    f->say_http = 503;
    f->say_type = "text/html";
    (void)snprintf(f->id, sizeof f->id, "a1");
    f->mem.bytes_peak = 0;
    assert_int_equal(run(f, play_get), TIDE_SERVER);
    assert_true(f->mem.bytes_peak < 400000);
    f->say_http = 200;
    assert_int_equal(run(f, play_get), TIDE_SERVER);
    free(page);
}

TEST(every_allocation_fails_in_turn)
{
    for (size_t s = 0; s < sizeof subjects / sizeof subjects[0]; s++) {
        struct fixture *f = begin(2000);
        uint64_t failures = 0;
        for (uint64_t fail_at = 0;; fail_at++) {
            prepare(f, &subjects[s]);
            char name[40];
            (void)snprintf(name, sizeof name, "label %" PRIu64, fail_at);
            if (subjects[s].play == play_label_create)
                f->text = tide_text_of(name);
            forget(f);
            tide_buf_done(&f->new_id);
            for (size_t i = 0; i < subjects[s].ids_count; i++)
                f->ids[i] = TIDE_TEXT("ffffffffffffff");
            const size_t live = f->mem.bytes_live;
            f->mem.fail_at = f->mem.allocations + fail_at;
            f->mem.fired = false;
            const tide_status rc = run(f, subjects[s].play);
            f->mem.fail_at = UINT64_MAX;
            if (f->mem.fired && rc != TIDE_NO_MEMORY && rc != TIDE_OK &&
                (subjects[s].answers != MAKES || rc != TIDE_UNKNOWN))
                fail_msg("%s, allocation %" PRIu64 ": %s: %s", subjects[s].name, fail_at,
                         tide_status_name(rc), f->err.text);
            if (rc != TIDE_OK)
                assert_int_equal(f->mem.bytes_live, live);
            failures += rc != TIDE_OK;
            if (!f->mem.fired) {
                assert_int_equal(rc, TIDE_OK);
                break;
            }
        }
        if (failures < 3)
            fail_msg("%s: only %" PRIu64 " failures", subjects[s].name, failures);
        finish(f);
    }
}

/* A fixed token has no successor: nothing more is sent. */
TEST(a_fixed_token_that_is_refused_stays_so)
{
    tide_buf grant = heap_buf(1000);
    assert_int_equal(tide_oauth_fixed("me-3", &grant, NULL), TIDE_OK);
    struct fixture *f = begin_with(ORIGIN, tide_buf_cstr(&grant), 1);
    run_ok(f, play_profile);
    assert_string_equal(f->authorization, "Bearer me-3");
    strike(f, "401", "");
    assert_int_equal(run(f, play_profile), TIDE_AUTH);
    assert_int_equal(f->requests, 1);
    finish(f);
    tide_buf_done(&grant);
}
