/* Drafts are changed and sent, and uploaded in parts (gmail_drafts.h GUP1, GUP2).  What happens when
 * this is interrupted is in tests/unit/mail/outgoing. */
#include "gmail_client_fixture.h"
#include "support/heap.h"

enum { UNIT = TIDE_GMAIL_UPLOAD_UNIT, TOTAL = 2 * UNIT + 100 };

#define MAIL "To: anna@example.com\r\nMessage-ID: <up@x>\r\n\r\n"

static char session[TIDE_GMAIL_SESSION_BYTES];
static char bytes[TOTAL + 1];
static struct {
    size_t from, count;
    uint64_t total;
} part;
static struct tide_gmail_uploaded uploaded;
static struct tide_gmail_sent sent;

static tide_status play_begin(struct fixture *f, tide_job *job, tide_error *err)
{
    return tide_gmail_upload_begin(f->gmail, job, tide_text_of(f->draft.id),
                                   tide_text_of(f->thread_id), part.total, session, err);
}

static tide_status play_put(struct fixture *f, tide_job *job, tide_error *err)
{
    return tide_gmail_upload_put(f->gmail, job, session, (tide_text){bytes + part.from, part.count},
                                 part.from, part.total, &uploaded, err);
}

static tide_status play_send(struct fixture *f, tide_job *job, tide_error *err)
{
    return tide_gmail_draft_send(f->gmail, job, tide_text_of(f->draft.id), &sent, err);
}

static tide_status play_sent_find(struct fixture *f, tide_job *job, tide_error *err)
{
    return tide_gmail_sent_find(f->gmail, job, "<up@x>", &sent, err);
}

static tide_status play_update(struct fixture *f, tide_job *job, tide_error *err)
{
    return tide_gmail_draft_update(f->gmail, job, tide_text_of(f->draft.id), f->text,
                                   tide_text_of(f->thread_id), &f->draft, err);
}

static void put_part(struct fixture *f, size_t from, size_t count)
{
    part.from = from;
    part.count = count;
    run_ok(f, play_put);
}

static void begin_upload(struct fixture *f)
{
    memset(bytes, 'x', TOTAL);
    memcpy(bytes, MAIL, sizeof MAIL - 1);
    part.total = TOTAL;
    f->draft.id[0] = '\0';
    run_ok(f, play_begin);
    assert_memory_equal(session, "/upload/", 8); /* a path: never another host's */
}

CASE(an_upload_of_parts_becomes_a_draft, 0)
{
    begin_upload(f);
    put_part(f, 0, 0); /* how far is it? */
    assert_false(uploaded.finished);
    assert_int_equal(uploaded.next, 0);
    put_part(f, 0, UNIT);
    assert_int_equal(uploaded.next, UNIT);
    put_part(f, 0, UNIT); /* GUP2 */
    assert_int_equal(uploaded.next, UNIT);
    put_part(f, UNIT, TOTAL - UNIT);
    assert_true(uploaded.finished);
    assert_stored(f, tide_text_of(uploaded.draft.message_id), (tide_text){bytes, TOTAL});
    char id[64];
    (void)snprintf(id, sizeof id, "%s", uploaded.draft.id);
    put_part(f, 0, 0);
    assert_true(uploaded.finished);
    assert_string_equal(uploaded.draft.id, id);
    assert_int_equal(box_mailbox_drafts(mailbox_of(f)), 1);
    /* As another content of the same draft. */
    (void)snprintf(f->draft.id, sizeof f->draft.id, "%s", id);
    run_ok(f, play_begin);
    put_part(f, 0, TOTAL);
    assert_true(uploaded.finished);
    assert_string_equal(uploaded.draft.id, id);
    f->text = TIDE_TEXT(MAIL "x");
    run_ok(f, play_send);
    assert_true(sent.message_id[0] != '\0');
    assert_int_equal(run(f, play_send), TIDE_GONE);
    assert_int_equal(run(f, play_update), TIDE_GONE);
    assert_int_equal(run(f, play_begin), TIDE_GONE);
    id[0] = '\0';
    (void)snprintf(id, sizeof id, "%s", sent.message_id);
    run_ok(f, play_sent_find);
    assert_string_equal(sent.message_id, id);
}

CASE(what_the_upload_server_says_is_checked, 0)
{
    part.total = (uint64_t)TIDE_GMAIL_UPLOAD_BYTES_MAX + 1;
    assert_int_equal(run(f, play_begin), TIDE_INVALID);
    assert_int_equal(f->requests, 0);
    begin_upload(f);
    /* A 308 although a 200 was asked for is understood. */
    f->say = "";
    f->say_http = 308;
    put_part(f, 0, UNIT);
    assert_false(uploaded.finished);
    assert_int_equal(uploaded.next, 0);
    f->say_http = 200; /* the draft is there; its id must be found */
    put_part(f, 0, TOTAL);
    assert_true(uploaded.finished);
    assert_string_equal(uploaded.draft.id, "");
    assert_int_equal(run(f, play_begin), TIDE_SERVER); /* no address */
    f->say = NULL;
    (void)snprintf(session, sizeof session,
                   "/upload/gmail/v1/users/me/drafts?uploadType=resumable&upload_id=ff");
    assert_int_equal(run(f, play_put), TIDE_GONE);
    assert_int_equal(run(f, play_sent_find), TIDE_NOT_FOUND);
}
