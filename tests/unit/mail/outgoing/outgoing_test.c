/* A message on its way (mail/outgoing/outgoing.h OGM1 to OGM4; E1.9, K11).
 *
 * Goal: whatever is lost on the way, and wherever the process dies, the message is sent once, is in
 * sent mail once, and no draft is left.  Method: the cloud in a box behind a network that ends
 * connections before or after a request had its effect, and a store that the process dies before or
 * after.  Each scenario is first run whole; then once for every such point, and from the state that
 * was kept to its end.  The cloud's referee writes down what is sent or uploaded twice. */
#include "../../cloud/gmail_client/gmail_client_fixture.h"

#include "cloudbox/gate/user.h"
#include "mail/outgoing/outgoing.h"
#include "support/heap.h"

enum { LARGE_BYTES = (2 << 20) + 4321, RUNS_MAX = 40 };

#define ID  "one@home.cz"
#define BOB "bob@example.org"
#define HEAD                                                                                       \
    "From: " ME "\r\nTo: " BOB "\r\nSubject: Plan\r\n"                                             \
    "Date: Wed, 18 Nov 2026 18:00:00 +0000\r\nMessage-ID: <" ID ">\r\n\r\n"

/* The process dies at the n-th point: before or after a state is stored, before or after a call has
 * its effect. */
static struct {
    struct tide_outgoing state; /* of the process */
    tide_buf kept;              /* what is stored */
    unsigned keeps;
    unsigned points; /* passed in this run */
    unsigned die_at; /* 0: never */
    bool dead;
    tide_buf raw;
    tide_text thread;
    tide_status (*what)(const struct tide_outgoing_call *, struct tide_outgoing *, tide_error *);
} scene;

static bool dies_here(void)
{
    scene.points++;
    scene.dead = scene.dead || (scene.die_at != 0 && scene.points == scene.die_at);
    return scene.dead;
}

static bool cut(struct fixture *f, bool after)
{
    (void)f;
    (void)after;
    return dies_here();
}

static tide_status keep(void *arg, const struct tide_outgoing *state, tide_error *err)
{
    (void)arg;
    if (dies_here())
        return tide_error_set(err, TIDE_STOPPED, "dead");
    tide_buf_clear(&scene.kept);
    assert_int_equal(tide_outgoing_write(state, &scene.kept), TIDE_OK);
    scene.keeps++;
    if (dies_here())
        return tide_error_set(err, TIDE_STOPPED, "dead");
    return TIDE_OK;
}

static tide_status play_outgoing(struct fixture *f, tide_job *job, tide_error *err)
{
    const struct tide_outgoing_call call = {.gmail = f->gmail,
                                            .job = job,
                                            .raw = tide_buf_text(&scene.raw),
                                            .thread_id = scene.thread,
                                            .now_unix_ms = tide_sim_net_unix_ms(f->sim),
                                            .keep = keep};
    return scene.what(&call, &scene.state, err);
}

static void compose(size_t bytes)
{
    tide_buf_clear(&scene.raw);
    assert_int_equal(tide_buf_add_text(&scene.raw, HEAD), TIDE_OK);
    while (scene.raw.bytes < bytes)
        assert_int_equal(tide_buf_print(&scene.raw, "line %zu of the text\r\n", scene.raw.bytes),
                         TIDE_OK);
}

static void rewind_scene(void)
{
    tide_error err = {TIDE_OK, 0, ""};
    scene.keeps = scene.points = scene.die_at = 0;
    scene.dead = false;
    scene.thread = TIDE_TEXT("");
    scene.what = tide_outgoing_send;
    assert_int_equal(tide_outgoing_init(&scene.state, TIDE_TEXT(ID), &err), TIDE_OK);
    tide_buf_clear(&scene.kept);
    assert_int_equal(tide_outgoing_write(&scene.state, &scene.kept), TIDE_OK);
}

static struct fixture *scene_begin(void)
{
    struct fixture *f = begin(0);
    tide_error err = {TIDE_OK, 0, ""};
    scene.raw = heap_buf(64 << 20);
    scene.kept = heap_buf(TIDE_OUTGOING_STATE_BYTES_MAX);
    const struct box_mailbox_options empty = {.messages = 0};
    assert_int_equal(
        box_cloud_add_mailbox(tide_sim_cloud_box(f->cloud), TIDE_TEXT(BOB), &empty, &err), TIDE_OK);
    be_patient(f);
    compose(2000);
    rewind_scene();
    return f;
}

static void scene_end(struct fixture *f)
{
    tide_buf_done(&scene.raw);
    tide_buf_done(&scene.kept);
    finish(f);
}
#define SCENE(name) TEST_OF(name, struct fixture *f, scene_begin(), scene_end)

/* ---- looking ---- */

static unsigned count(struct fixture *f, const char *query)
{
    f->query = query;
    f->text = TIDE_TEXT_NONE;
    f->cut = NULL;
    run_ok(f, play_list);
    return (unsigned)json_array_size(f->page.ids);
}

static unsigned drafts(struct fixture *f)
{
    return box_mailbox_drafts(mailbox_of(f)) == 0 ? 0 : count(f, "in:draft");
}

static unsigned received(struct fixture *f)
{
    return box_mailbox_messages(
        box_user_mailbox(box_cloud_user(tide_sim_cloud_box(f->cloud), TIDE_TEXT(BOB))));
}

static void assert_no_violation(struct fixture *f)
{
    json_t *stats = ask(f, "GET", "/_cloud/stats", "", NULL);
    char *text = json_dumps(json_object_get(stats, "violations"), 0);
    if (strcmp(text, "[]") != 0)
        fail_msg("%s", text);
    free(text);
    json_decref(stats);
}

/* Sent once, received once, with these bytes, and nothing left over. */
static void assert_sent_once(struct fixture *f)
{
    assert_int_equal(scene.state.stage, TIDE_OUTGOING_SENT);
    assert_int_equal(count(f, "in:sent rfc822msgid:<" ID ">"), 1);
    assert_stored(f, id_at(f->page.ids, 0), tide_buf_text(&scene.raw));
    assert_string_equal(scene.state.sent_id, id_at(f->page.ids, 0).data);
    assert_int_equal(received(f), 1);
    assert_int_equal(drafts(f), 0);
    assert_no_violation(f);
}

/* Runs it as a process that may die, until it is done: the next one knows what was kept. */
static unsigned run_to_end(struct fixture *f)
{
    for (unsigned runs = 1; runs < RUNS_MAX; runs++) {
        tide_error err = {TIDE_OK, 0, ""};
        assert_int_equal(tide_outgoing_read(tide_buf_text(&scene.kept), &scene.state, &err),
                         TIDE_OK);
        scene.points = 0;
        f->cut = cut;
        const tide_status rc = run(f, play_outgoing);
        f->cut = NULL;
        if (rc == TIDE_OK && !scene.dead)
            return runs;
        scene.dead = false;
        scene.die_at = 0;
    }
    fail_msg("it never ended: %s", f->err.text);
    return 0;
}

/* ---- the plain way ---- */

SCENE(a_message_is_sent_through_a_draft)
{
    const uint64_t before = units(f);
    run_ok(f, play_outgoing);
    assert_int_equal(units(f) - before, 110);
    assert_int_equal(scene.keeps, 4); /* making, draft, sending, sent */
    assert_sent_once(f);
    /* Again is nothing. */
    scene.what = tide_outgoing_send;
    run_ok(f, play_outgoing);
    assert_int_equal(f->requests, 0);
    scene.what = tide_outgoing_save;
    assert_int_equal(run(f, play_outgoing), TIDE_INVALID);
    scene.what = tide_outgoing_discard;
    assert_int_equal(run(f, play_outgoing), TIDE_INVALID);
}

SCENE(a_draft_is_one_draft_however_often_it_is_saved)
{
    scene.what = tide_outgoing_save;
    run_ok(f, play_outgoing);
    run_ok(f, play_outgoing);
    assert_int_equal(f->requests, 0); /* nothing changed */
    char id[64];
    (void)snprintf(id, sizeof id, "%s", scene.state.draft_id);
    compose(3000);
    uint64_t before = units(f);
    run_ok(f, play_outgoing);
    assert_int_equal(units(f) - before, 15);
    compose(LARGE_BYTES);
    before = units(f);
    run_ok(f, play_outgoing);
    assert_int_equal(units(f) - before, 15); /* parts cost nothing */
    assert_string_equal(scene.state.draft_id, id);
    assert_int_equal(drafts(f), 1);
    assert_stored(f, id_at(f->page.ids, 0), tide_buf_text(&scene.raw));
    scene.what = tide_outgoing_send;
    run_ok(f, play_outgoing);
    assert_sent_once(f);
}

/* OGM5: the answer to a change was lost, and what was there before it is to be there again. */
SCENE(a_change_whose_outcome_is_not_known_can_be_taken_back)
{
    scene.what = tide_outgoing_save;
    run_ok(f, play_outgoing);
    char id[64];
    (void)snprintf(id, sizeof id, "%s", scene.state.gmail_id);
    assert_string_not_equal(id, "");
    compose(3000);
    control(f, "POST", "/_cloud/faults",
            "{\"method\":\"gmail.users.drafts.update\",\"fault\":\"reset-after\",\"count\":1}");
    assert_int_not_equal(run(f, play_outgoing), TIDE_OK);
    compose(2000);
    run_ok(f, play_outgoing);
    assert_int_equal(drafts(f), 1);
    assert_stored(f, id_at(f->page.ids, 0), tide_buf_text(&scene.raw));
    assert_string_not_equal(scene.state.gmail_id, id);
}

SCENE(a_draft_is_discarded)
{
    scene.what = tide_outgoing_save;
    run_ok(f, play_outgoing);
    assert_int_equal(drafts(f), 1);
    scene.what = tide_outgoing_discard;
    run_ok(f, play_outgoing);
    assert_int_equal(drafts(f), 0);
    assert_int_equal(scene.state.stage, TIDE_OUTGOING_NEW);
    /* Also one that may have been made. */
    scene.what = tide_outgoing_save;
    control(f, "POST", "/_cloud/faults",
            "{\"method\":\"gmail.users.drafts.create\",\"fault\":\"reset-after\",\"count\":1}");
    assert_int_equal(run(f, play_outgoing), TIDE_UNKNOWN);
    assert_int_equal(scene.state.stage, TIDE_OUTGOING_MAKING);
    scene.what = tide_outgoing_discard;
    run_ok(f, play_outgoing);
    assert_int_equal(drafts(f), 0);
}

SCENE(an_answer_stays_in_its_thread_while_there_is_one)
{
    put(f, "From: " BOB "\r\nSubject: Plan\r\nMessage-ID: <0@x>\r\n\r\nb\r\n", 1);
    char thread[64];
    (void)snprintf(thread, sizeof thread, "%s", f->thread_id);
    scene.thread = tide_text_of(thread);
    run_ok(f, play_outgoing);
    assert_string_equal(scene.state.thread_id, thread);
    /* The thread is gone: the message is not. */
    rewind_scene();
    tide_error err = {TIDE_OK, 0, ""};
    compose(LARGE_BYTES);
    memcpy(strstr(scene.raw.data, ID), "two", 3);
    assert_int_equal(tide_outgoing_init(&scene.state, TIDE_TEXT("two@home.cz"), &err), TIDE_OK);
    scene.thread = TIDE_TEXT("ffffffffffff");
    run_ok(f, play_outgoing);
    assert_int_equal(scene.state.stage, TIDE_OUTGOING_SENT);
    assert_true(scene.state.loose);
    assert_int_equal(count(f, "in:sent"), 2);
    assert_int_equal(drafts(f), 0);
}

/* ---- every point ---- */

/* How many points a whole run has. */
static unsigned points_of(struct fixture *f)
{
    rewind_scene();
    f->cut = cut;
    run_ok(f, play_outgoing);
    f->cut = NULL;
    return scene.points;
}

static void die_at_each(size_t bytes)
{
    unsigned points = 1, died = 0;
    for (unsigned at = 1; at <= points; at++) {
        struct fixture *f = scene_begin();
        compose(bytes);
        if (at == 1) {
            points = points_of(f);
            scene_end(f);
            f = scene_begin();
            compose(bytes);
        }
        scene.die_at = at;
        died += run_to_end(f) > 1;
        assert_sent_once(f);
        scene_end(f);
    }
    assert_int_equal(died, points);
}

TEST(a_message_is_sent_once_wherever_the_process_dies)
{
    die_at_each(2000);
}

TEST(a_large_message_is_sent_once_wherever_the_process_dies)
{
    die_at_each(LARGE_BYTES);
}

/* The server fails instead of answering, at each call of a whole run: before its effect and
 * after. */
TEST(a_message_is_sent_once_whichever_call_fails)
{
    static const char *const faults[] = {"500", "reset-before", "reset-after", "garbage",
                                         "truncate"};
    for (size_t kind = 0; kind < sizeof faults / sizeof faults[0]; kind++)
        for (unsigned large = 0; large < 2; large++)
            for (unsigned at = 0; at < 6; at++) {
                struct fixture *f = scene_begin();
                compose(large ? LARGE_BYTES : 2000);
                control(f, "POST", "/_cloud/faults",
                        textf("{\"method\":\"gmail.users.drafts.*\",\"fault\":\"%s\",\"count\":1,"
                              "\"after\":%u}",
                              faults[kind], at));
                (void)run_to_end(f);
                assert_sent_once(f);
                scene_end(f);
            }
}

SCENE(an_upload_goes_on_where_it_was)
{
    compose(LARGE_BYTES);
    control(f, "POST", "/_cloud/faults",
            "{\"method\":\"gmail.users.drafts.create\",\"fault\":\"500\",\"count\":1,\"after\":2}");
    assert_int_equal(run(f, play_outgoing), TIDE_SERVER); /* in the middle of the upload */
    assert_true(scene.state.session[0] != '\0');
    assert_int_equal(f->requests, 3); /* begun, a part, a part that failed */
    run_ok(f, play_outgoing);
    assert_int_equal(f->requests, 4); /* asked, two parts, sent */
    assert_sent_once(f);
}

SCENE(an_upload_whose_session_ended_begins_again)
{
    compose(LARGE_BYTES);
    control(f, "POST", "/_cloud/faults",
            "{\"method\":\"gmail.users.drafts.create\",\"fault\":\"500\",\"count\":1,\"after\":2}");
    assert_int_equal(run(f, play_outgoing), TIDE_SERVER);
    control(f, "POST", "/_cloud/clock", "{\"advance\":\"8d\"}"); /* eight days */
    assert_int_equal(run_to_end(f), 1);
    assert_sent_once(f);
}

/* ---- doubts ---- */

/* The draft was sent, the answer lost, and the search is behind. */
SCENE(a_search_that_is_behind_is_not_believed)
{
    control(f, "POST", "/_cloud/faults",
            "[{\"method\":\"gmail.users.drafts.send\",\"fault\":\"reset-after\",\"count\":1},"
            "{\"method\":\"gmail.users.messages.list\",\"fault\":\"list-empty\",\"count\":3}]");
    assert_int_equal(run(f, play_outgoing), TIDE_UNKNOWN);
    assert_int_equal(scene.state.stage, TIDE_OUTGOING_SENDING);
    run_ok(f, play_outgoing); /* comes back by itself until it is found */
    assert_sent_once(f);
}

/* Somebody removed the draft after a call that never reached the server. */
SCENE(a_draft_that_was_removed_while_in_doubt_is_not_sent_again)
{
    control(f, "POST", "/_cloud/faults",
            "{\"method\":\"gmail.users.drafts.send\",\"fault\":\"reset-before\",\"count\":1}");
    assert_int_equal(run(f, play_outgoing), TIDE_UNKNOWN);
    box_mailbox_draft_remove(mailbox_of(f), 0);
    assert_int_equal(run(f, play_outgoing), TIDE_GONE);
    assert_int_equal(scene.state.stage, TIDE_OUTGOING_NEW);
    assert_int_equal(count(f, "in:sent"), 0);
    /* The user sends it all the same. */
    assert_int_equal(run_to_end(f), 1);
    assert_sent_once(f);
}

SCENE(a_draft_that_was_removed_before_it_was_sent_is_made_anew)
{
    scene.what = tide_outgoing_save;
    run_ok(f, play_outgoing);
    box_mailbox_draft_remove(mailbox_of(f), 0);
    scene.what = tide_outgoing_send;
    run_ok(f, play_outgoing);
    assert_sent_once(f);
}

/* drafts.create was answered to nobody, and the search did not know it: two drafts, one message. */
SCENE(a_second_draft_is_removed)
{
    control(f, "POST", "/_cloud/faults",
            "[{\"method\":\"gmail.users.drafts.create\",\"fault\":\"reset-after\",\"count\":1},"
            "{\"method\":\"gmail.users.drafts.list\",\"fault\":\"list-empty\",\"count\":1}]");
    scene.what = tide_outgoing_save;
    assert_int_equal(run(f, play_outgoing), TIDE_UNKNOWN);
    run_ok(f, play_outgoing);
    assert_int_equal(drafts(f), 1);
    assert_false(scene.state.doubled);
    scene.what = tide_outgoing_send;
    run_ok(f, play_outgoing);
    assert_sent_once(f);
}

SCENE(what_gmail_refuses_is_said_and_stays_a_draft)
{
    tide_buf_clear(&scene.raw);
    assert_int_equal(
        tide_buf_add_text(&scene.raw, "To: nobody\r\nMessage-ID: <" ID ">\r\n\r\nx\r\n"), TIDE_OK);
    assert_int_equal(run(f, play_outgoing), TIDE_PERMANENT);
    assert_non_null(strstr(f->err.text, "Invalid To header"));
    assert_int_equal(scene.state.stage, TIDE_OUTGOING_DRAFT);
    assert_int_equal(drafts(f), 1);
    compose(2000); /* mended */
    run_ok(f, play_outgoing);
    assert_sent_once(f);
}

/* A refusal to look is no refusal of the message: what may have been sent stays in doubt. */
SCENE(a_refused_caller_proves_nothing)
{
    control(f, "POST", "/_cloud/faults",
            "{\"method\":\"gmail.users.drafts.send\",\"fault\":\"reset-after\",\"count\":1}");
    assert_int_equal(run(f, play_outgoing), TIDE_UNKNOWN);
    control(f, "POST", "/_cloud/faults",
            "{\"method\":\"gmail.users.drafts.send\",\"fault\":\"403\",\"count\":1}");
    assert_int_equal(run(f, play_outgoing), TIDE_PERMANENT);
    assert_int_equal(scene.state.stage, TIDE_OUTGOING_SENDING);
    run_ok(f, play_outgoing);
    assert_sent_once(f);
}

SCENE(a_limit_on_sending_is_waited_for)
{
    control(f, "POST", "/_cloud/faults",
            "{\"method\":\"gmail.users.drafts.send\",\"fault\":\"send-limit\",\"count\":1,"
            "\"ms\":30000}");
    assert_int_equal(run(f, play_outgoing), TIDE_THROTTLED);
    assert_int_equal(scene.state.stage, TIDE_OUTGOING_DRAFT);
    run_ok(f, play_outgoing);
    assert_sent_once(f); /* and none too early: the referee would say so */
}

/* ---- throwing away ---- */

/* drafts.create was answered to nobody, and the search is behind: the draft is there. */
SCENE(a_discarded_draft_is_looked_for_until_it_is_found)
{
    control(f, "POST", "/_cloud/faults",
            "[{\"method\":\"gmail.users.drafts.create\",\"fault\":\"reset-after\",\"count\":1},"
            "{\"method\":\"gmail.users.drafts.list\",\"fault\":\"list-empty\",\"count\":3}]");
    scene.what = tide_outgoing_save;
    assert_int_equal(run(f, play_outgoing), TIDE_UNKNOWN);
    assert_int_equal(scene.state.stage, TIDE_OUTGOING_MAKING);
    scene.what = tide_outgoing_discard;
    run_ok(f, play_outgoing); /* comes back by itself */
    assert_int_equal(drafts(f), 0);
    assert_int_equal(scene.state.stage, TIDE_OUTGOING_NEW);
    assert_int_equal(scene.state.doubt_unix_ms, 0);
}

/* The call never reached the server: that nothing is found is believed after a minute. */
SCENE(a_discarded_draft_that_was_never_made_is_not_looked_for_forever)
{
    control(f, "POST", "/_cloud/faults",
            "{\"method\":\"gmail.users.drafts.create\",\"fault\":\"reset-before\",\"count\":1}");
    scene.what = tide_outgoing_save;
    assert_int_equal(run(f, play_outgoing), TIDE_UNKNOWN);
    const uint64_t begun_ms = tide_sim_net_unix_ms(f->sim);
    scene.what = tide_outgoing_discard;
    run_ok(f, play_outgoing);
    assert_true(tide_sim_net_unix_ms(f->sim) - begun_ms >= TIDE_OUTGOING_SETTLE_MS);
    assert_int_equal(scene.state.stage, TIDE_OUTGOING_NEW);
}

/* Its own draft is known, and a second one may be: it is looked for, too. */
SCENE(a_second_draft_of_a_discarded_one_is_looked_for_until_it_is_found)
{
    control(f, "POST", "/_cloud/faults",
            "[{\"method\":\"gmail.users.drafts.create\",\"fault\":\"reset-after\",\"count\":1},"
            "{\"method\":\"gmail.users.drafts.list\",\"fault\":\"list-empty\",\"count\":4}]");
    scene.what = tide_outgoing_save;
    assert_int_equal(run(f, play_outgoing), TIDE_UNKNOWN);
    run_ok(f, play_outgoing); /* made again: there are two */
    assert_true(scene.state.doubled);
    scene.what = tide_outgoing_discard;
    run_ok(f, play_outgoing);
    assert_int_equal(drafts(f), 0);
    assert_false(scene.state.doubled);
}

/* ---- the state as text ---- */

TEST(a_state_is_read_back)
{
    struct tide_outgoing one, back;
    tide_error err = {TIDE_OK, 0, ""};
    tide_buf text = heap_buf(TIDE_OUTGOING_STATE_BYTES_MAX);
    assert_int_equal(tide_outgoing_init(&one, TIDE_TEXT("a b"), &err), TIDE_INVALID);
    assert_int_equal(tide_outgoing_init(&one, TIDE_TEXT(ID), &err), TIDE_OK);
    one.stage = TIDE_OUTGOING_SENDING;
    memset(one.draft_id, 'd', sizeof one.draft_id - 1);
    memset(one.session, 's', sizeof one.session - 1);
    one.content = UINT64_MAX;
    one.session_content = 1;
    one.doubt_unix_ms = 1795030200000;
    one.doubled = one.loose = true;
    memset(one.refused_id, 'm', sizeof one.refused_id - 1);
    one.again_unix_ms = 1795030500000;
    assert_int_equal(tide_outgoing_write(&one, &text), TIDE_OK);
    assert_int_equal(tide_outgoing_read(tide_buf_text(&text), &back, &err), TIDE_OK);
    assert_memory_equal(&one, &back, sizeof one);
    static const char *const wrong[] = {
        "",
        "[]",
        "{}",
        "{\"stage\":\"new\"}",
        "{\"stage\":\"gone\",\"message_id\":\"a@b\"}",
        "{\"stage\":\"draft\",\"message_id\":\"a@b\"}",
        "{\"stage\":\"new\",\"message_id\":\"a@b\",\"content\":\"xyz\"}",
        "{\"stage\":\"new\",\"message_id\":7}",
        "{\"stage\":\"new\",\"message_id\":\"a@b\",\"again_unix_ms\":-1}",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(tide_outgoing_read(tide_text_of(wrong[i]), &back, &err), TIDE_INVALID);
    tide_buf_done(&text);
}

int main(void)
{
    return tests_run(NULL);
}
