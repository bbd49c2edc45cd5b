/* Drafts that were begun in Gmail and are continued here, and what is done to ours there (K14, K9;
 * reader/drafts.h DRF9 to DRF11). */
#include "letters.h"

#include "reader/drafts.h"
#include "support/scale.h"

#define BEGUN                                                                                      \
    "From: " ME "\r\nTo: Anna <anna@example.com>\r\nCc: " YOU "\r\nSubject: Harbour\r\n"           \
    "Message-ID: <begun@mail.example.com>\r\nIn-Reply-To: <first@example.com>\r\n"                 \
    "References: <zero@example.com> <first@example.com>\r\nMIME-Version: 1.0\r\n"                  \
    "Content-Type: multipart/mixed; boundary=m\r\n\r\n--m\r\n"                                     \
    "Content-Type: multipart/alternative; boundary=a\r\n\r\n--a\r\n"                               \
    "Content-Type: text/plain; charset=utf-8\r\n\r\nBegun on a phone.\r\n--a\r\n"                  \
    "Content-Type: text/html; charset=utf-8\r\n\r\n<div dir=\"ltr\">Begun on a <b>phone</b>."      \
    "</div>\r\n--a--\r\n--m\r\nContent-Type: text/plain; name=\"list.txt\"\r\n"                    \
    "Content-Disposition: attachment; filename=\"list.txt\"\r\n"                                   \
    "Content-Transfer-Encoding: base64\r\n\r\ndGhlIGxpc3Q=\r\n--m--\r\n"
#define PHONE "To: " YOU "\r\nSubject: Plan\r\n\r\nFrom a phone.\r\n"

/* ---- what somebody does in Gmail ---- */

static uint32_t begin_there(struct fixture *f, const char *raw)
{
    const struct box_insert insert = {
        .raw = tide_text_of(raw), .date_ms = now_ms(f), .thread_id = TIDE_TEXT_NONE};
    return box_mailbox_draft_create(f->mailboxes[0], &insert);
}

static void change_there(struct fixture *f, uint32_t draft)
{
    const struct box_insert insert = {
        .raw = TIDE_TEXT(PHONE), .date_ms = now_ms(f), .thread_id = TIDE_TEXT_NONE};
    box_mailbox_draft_update(f->mailboxes[0], draft, &insert);
}

static void look(struct fixture *f)
{
    poll_now(f, 0);
    (void)settle(f);
}

/* ---- what is here ---- */

struct kept {
    uint32_t account;
    unsigned count;
    char id[TIDE_DRAFT_ID_BYTES];
    char json[2000], files[1000];
    struct tide_outgoing state;
};

static void note(const struct tide_draft *draft, void *arg)
{
    struct kept *kept = arg;
    kept->count++;
    memcpy(kept->id, draft->id, sizeof kept->id);
    (void)snprintf(kept->json, sizeof kept->json, "%.*s", (int)draft->json.bytes, draft->json.data);
    (void)snprintf(kept->files, sizeof kept->files, "%.*s", (int)draft->files.bytes,
                   draft->files.data);
    if (draft->outgoing.bytes > 0)
        assert_int_equal(tide_outgoing_read(draft->outgoing, &kept->state, NULL), TIDE_OK);
}

static tide_status read_kept(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct kept *kept = arg;
    *kept = (struct kept){.account = kept->account};
    return tide_drafts_each(tide_transaction_rows(transaction), kept->account, note, kept, err);
}

static struct kept kept_here(struct fixture *f)
{
    struct kept kept = {.account = f->accounts[0]};
    OK(tide_transact(f->engine, read_kept, &kept, err));
    return kept;
}

static bool has(const char *text, const char *part)
{
    return strstr(text, part) != NULL;
}

/* Its text is fetched first, unless it is here.  "": it was not to be. */
static const char *resume(struct fixture *f, const char *message)
{
    static char id[TIDE_DRAFT_ID_BYTES];
    uint64_t job = 0;
    for (unsigned tries = 0; tries < 2; tries++) {
        id[0] = '\0';
        if (tide_reader_continue(f->reader, f->accounts[0], message, id, &job, NULL) != TIDE_OK)
            return "";
        if (id[0] != '\0')
            break;
        assert_true(job > 0 || f->may_die);
        (void)settle(f);
    }
    return id;
}

/* The only draft in Gmail, which is a message here, is continued. */
static const char *resume_first(struct fixture *f)
{
    look(f);
    assert_int_equal(count_shown(f, 0, "DRAFT"), 1);
    return resume(f, shown(f, 0, "DRAFT"));
}

static unsigned files_kept(struct fixture *f)
{
    struct kept kept = kept_here(f);
    char file[TIDE_DRAFT_FILE_BYTES] = "";
    const char *at = strstr(kept.files, "\"file\":");
    if (at == NULL)
        return 0;
    (void)snprintf(file, sizeof file, "%.32s", strchr(at + 7, '"') + 1);
    return file_is_there(f, file);
}

static void count_file(const char *name, void *arg)
{
    *(unsigned *)arg += strlen(name) == TIDE_DRAFT_FILE_BYTES - 1;
}

static unsigned files_on_disk(struct fixture *f)
{
    char dir[300];
    unsigned count = 0;
    assert_true(tide_draft_path("/archive", ME, "", dir, sizeof dir));
    (void)tide_dir_list(tide_sim_world(f->sim), dir, count_file, &count, NULL);
    return count;
}

/* ---- continuing ---- */

CASE(a_draft_that_was_begun_in_gmail_is_continued_as_the_same_draft)
{
    struct tide_reader_action action;
    tide_auto_buf scratch = tide_buf_heap(1 << 20);
    char message[TIDE_CACHE_ID_BYTES];
    char id[TIDE_DRAFT_ID_BYTES];
    const uint32_t draft = begin_there(f, BEGUN);
    look(f);
    (void)snprintf(message, sizeof message, "%s", shown(f, 0, "DRAFT"));
    (void)snprintf(id, sizeof id, "%s", resume(f, message));
    assert_true(id[0] != '\0');
    assert_string_equal(resume(f, message), id); /* another window */
    struct kept kept = kept_here(f);
    assert_int_equal(kept.count, 1);
    assert_true(has(kept.json, "anna@example.com") && has(kept.json, YOU));
    assert_true(has(kept.json, "Harbour") && has(kept.json, "Begun on a phone."));
    assert_true(has(kept.json, "zero@example.com") && has(kept.json, "first@example.com"));
    assert_true(has(kept.files, "\"list.txt\""));
    assert_int_equal(files_kept(f), 1);
    assert_true(kept.state.formatted);
    close_it(f, id);
    pass(f, 60000);
    look(f);
    assert_int_equal(count_shown(f, 0, "DRAFT"), 0); /* it is shown once: as a draft of ours */
    assert_int_equal(calls_with(f, "POST drafts") + calls_with(f, "PUT drafts"), 0);
    assert_int_equal(calls_with(f, "DELETE drafts"), 0);
    assert_true(server_has(f, "<b>phone</b>"));
    assert_int_equal(save(f, id, SECOND), TIDE_OK);
    (void)settle(f);
    assert_copied(f, "A second thought.");
    assert_true(server_has(f, "dGhlIGxpc3Q="));
    assert_false(kept_here(f).state.formatted);
    assert_string_equal(resume(f, message), id); /* of a window that was left open */
    assert_int_equal(kept_here(f).count, 1);
    assert_int_equal(box_mailbox_drafts(f->mailboxes[0]), 1);
    assert_false(box_mailbox_draft_at(f->mailboxes[0], draft)->gone);
    assert_int_equal(send_draft(f, id, &action), TIDE_OK);
    (void)settle(f);
    assert_int_equal(received(f), 1);
    const tide_text got = box_mailbox_raw(f->mailboxes[1], 0, &scratch);
    assert_non_null(memmem(got.data, got.bytes, "dGhlIGxpc3Q=", 12));
    assert_int_equal(with_label(f, BOX_LABEL_DRAFT), 0);
    assert_int_equal(box_mailbox_drafts(f->mailboxes[0]), 1);
    assert_string_equal(resume(f, message), ""); /* it is gone */
    assert_int_equal(failed_jobs(f), 0);
    assert_no_violation(f);
}

CASE(what_is_no_draft_or_would_lose_something_is_not_continued)
{
    char id[TIDE_DRAFT_ID_BYTES];
    uint64_t job = 0;
    const char *mail = deliver(f, 0, 1000);
    look(f);
    assert_int_equal(tide_reader_continue(f->reader, f->accounts[0], mail, id, &job, NULL),
                     TIDE_INVALID);
    assert_int_equal(tide_reader_continue(f->reader, f->accounts[0], "none", id, &job, NULL),
                     TIDE_NOT_FOUND);
    assert_int_equal(tide_reader_continue(f->reader, f->accounts[0], "../x", id, &job, NULL),
                     TIDE_NOT_FOUND);
    char *big = malloc(3 << 20);
    assert_non_null(big);
    const int head = snprintf(big, 200, "To: " YOU "\r\nSubject: Long\r\n\r\n");
    for (int i = head; i < (2 << 20); i++)
        big[i] = i % 70 == 0 ? '\n' : 'x';
    big[2 << 20] = '\0';
    (void)begin_there(f, big);
    free(big);
    assert_string_equal(resume_first(f), "");
    assert_int_equal(kept_here(f).count, 0);
    assert_int_equal(count_shown(f, 0, "DRAFT"), 1);
}

/* ---- the text ---- */

#define BOTH(plain, html)                                                                          \
    "Content-Type: multipart/alternative; boundary=a\r\n\r\n--a\r\n"                               \
    "Content-Type: text/plain; charset=utf-8\r\n\r\n" plain "\r\n--a\r\n"                          \
    "Content-Type: text/html; charset=utf-8\r\n\r\n" html "\r\n--a--\r\n"
#define WITH(file)                                                                                 \
    "Content-Type: multipart/mixed; boundary=m\r\n\r\n--m\r\nContent-Type: text/plain\r\n\r\n"     \
    "See it.\r\n--m\r\n" file "\r\n--m--\r\n"

static const struct {
    const char *body; /* behind the headers */
    const char *text, *file;
} texts[] = {
    {BOTH("The plan <https://example.com/a> is here.\r\n",
          "<div>The <a href=\"https://example.com/a\">plan</a> is here.</div>"),
     "The plan <https://example.com/a> is here.", NULL},
    {BOTH("First:\r\n\r\n   1. one\r\n   2. two\r\n",
          "<div>First:<ol><li>one</li><li>two</li></ol></div>"),
     "First:\n\n   1. one\n   2. two", NULL},
    {BOTH("[image: a.png]\r\n", "<div><img src=\"cid:x\" alt=\"a.png\"></div>"), "[image: a.png]",
     NULL},
    {BOTH("Yes.\r\n\r\nOn Monday Anna wrote:\r\n\r\n> Are you\r\n>\r\n> > there?\r\n",
          "<div>Yes.</div><div class=\"gmail_quote\">On Monday Anna wrote:<blockquote>Are you"
          "<blockquote>there?</blockquote></blockquote></div>"),
     "Yes.\n\nOn Monday Anna wrote:\n\n> Are you\n>\n> > there?", NULL},
    {BOTH("\r\n", "<div>Only <b>here</b></div>"), "Only here", NULL},
    {"Content-Type: text/plain; charset=iso-8859-1\r\n\r\n\r\nGr\374\337e\r\n\r\n\r\n  in   "
     "two\r\n",
     "\nGr\303\274\303\237e\n\n\n  in   two", NULL},
    {"Content-Type: text/plain\r\n\r\nBelow is nothing.\r\n\r\n", "Below is nothing.\n\n", NULL},
    {"Content-Type: text/html\r\n\r\n<div dir=\"ltr\">One<br>two</div><div><br></div><div>three"
     "</div>\r\n",
     "One\ntwo\n\nthree", NULL},
    {WITH("Content-Type: message/rfc822\r\nContent-Disposition: attachment; filename=\"old.eml\""
          "\r\n\r\nFrom: " YOU "\r\nSubject: Old\r\n\r\nIts own text.\r\n"),
     "See it.", "old.eml"},
    {WITH("Content-Type: text/plain; name=\"a.txt\"\r\nContent-Disposition: inline; "
          "filename=\"a.txt\"\r\n\r\nA file.\r\n"),
     "See it.", "a.txt"},
    {"\r\n", "", NULL},
};

static void assert_form_text(tide_text json, const char *text)
{
    json_t *form = json_loadb(json.data, json.bytes, 0, NULL);
    assert_string_equal(json_string_value(json_object_get(form, "text")), text);
    json_decref(form);
}

/* The message that the form makes has the same text again. */
static void assert_stays(struct fixture *f, const char *text)
{
    uint32_t slot = box_mailbox_draft_at(f->mailboxes[0], 0)->slot;
    tide_auto_buf scratch = tide_buf_heap(1 << 20);
    const tide_text raw = box_mailbox_raw(f->mailboxes[0], slot, &scratch);
    struct tide_reader_taken taken;
    assert_non_null(memmem(raw.data, raw.bytes, "Another", 7));
    OK(tide_reader_taken_read(f->reader, ME, raw, TIDE_TEXT(""), &taken, err));
    assert_form_text(tide_buf_text(&taken.json), text);
    tide_reader_letter_files_remove(f->reader, ME, taken.files);
    tide_reader_taken_done(&taken);
}

/* Only the subject is changed. */
static void save_again(struct fixture *f, const char *id, const char *json)
{
    json_t *form = json_loads(json, 0, NULL);
    assert_int_equal(json_object_set_new(form, "subject", json_string("Another")), 0);
    char *line = json_dumps(form, JSON_COMPACT);
    assert_int_equal(save(f, id, line), TIDE_OK);
    free(line);
    json_decref(form);
}

TEST(the_form_has_the_text_as_it_was_typed_and_keeps_it)
{
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct fixture *f = begin();
        char raw[3000];
        (void)snprintf(raw, sizeof raw, "To: " YOU "\r\nSubject: Text\r\nMIME-Version: 1.0\r\n%s",
                       texts[i].body);
        (void)begin_there(f, raw);
        const char *id = resume_first(f);
        assert_true(id[0] != '\0');
        const struct kept kept = kept_here(f);
        assert_form_text(tide_text_of(kept.json), texts[i].text);
        assert_int_equal(files_on_disk(f), texts[i].file != NULL ? 1 : 0);
        assert_true(texts[i].file == NULL || has(kept.files, texts[i].file));
        save_again(f, id, kept.json);
        (void)settle(f);
        assert_stays(f, texts[i].text);
        finish(f);
    }
}

/* ---- the sender ---- */

static const struct {
    const char *headers;
    const char *refused; /* a part of the reason; NULL: it is continued */
} senders[] = {
    {"", NULL},
    {"From: Me <ME@Example.ORG>\r\n", NULL},
    {"From: " YOU "\r\n", "from another address"},
    {"From: Me <alias@example.org>\r\n", "from another address"},
    {"From: Me\r\n", "from another address"},
    {"From: " ME "\r\nReply-To: desk@example.org\r\n", "asks for answers to another address"},
};

TEST(a_draft_with_another_sender_or_another_address_for_answers_is_not_continued)
{
    for (size_t i = 0; i < sizeof senders / sizeof senders[0]; i++) {
        struct fixture *f = begin();
        char raw[1000], id[TIDE_DRAFT_ID_BYTES];
        uint64_t job = 0;
        tide_error err = {.status = TIDE_OK};
        (void)snprintf(raw, sizeof raw, "%sTo: " YOU "\r\nMIME-Version: 1.0\r\n%s",
                       senders[i].headers,
                       WITH("Content-Type: image/png; name=\"a.png\"\r\n\r\nx"));
        (void)begin_there(f, raw);
        const bool taken = resume_first(f)[0] != '\0';
        assert_int_equal(taken, senders[i].refused == NULL);
        assert_int_equal(kept_here(f).count, taken);
        assert_int_equal(files_on_disk(f), taken);
        if (!taken) {
            assert_int_equal(tide_reader_continue(f->reader, f->accounts[0], shown(f, 0, "DRAFT"),
                                                  id, &job, &err),
                             TIDE_INVALID);
            assert_true(has(err.text, senders[i].refused));
        }
        finish(f);
    }
}

/* K11: the text is here, and that is all it needs. */
TEST(a_draft_is_continued_without_a_network_and_thrown_away_when_it_is_back)
{
    struct fixture *f = begin();
    char message[TIDE_CACHE_ID_BYTES];
    bool removed = false;
    uint64_t job = 0;
    (void)begin_there(f, BEGUN);
    look(f);
    (void)snprintf(message, sizeof message, "%s", shown(f, 0, "DRAFT"));
    OK(tide_reader_fetch(f->reader, f->accounts[0], message, &job, err));
    (void)settle(f);
    tide_sim_net_down(f->sim, true);
    const char *id = resume(f, message);
    assert_true(id[0] != '\0');
    assert_int_equal(save(f, id, SECOND), TIDE_OK);
    pass(f, 30000);
    OK(tide_reader_draft_drop(f->reader, f->accounts[0], id, &removed, err));
    tide_sim_net_down(f->sim, false);
    (void)settle(f);
    assert_int_equal(with_label(f, BOX_LABEL_DRAFT), 0);
    assert_int_equal(kept_here(f).count, 0);
    assert_int_equal(calls_with(f, "POST drafts"), 0);
    finish(f);
}

/* ---- what is done there ---- */

static void draft_ends_there(struct fixture *f, bool taken, bool sent)
{
    const char *id = "d1";
    if (taken)
        (void)begin_there(f, BEGUN);
    look(f);
    if (taken) {
        id = resume(f, shown(f, 0, "DRAFT"));
    } else {
        assert_int_equal(save(f, id, LETTER), TIDE_OK);
        assert_int_equal(attach(f, id, FILE_A, "plan.txt", TIDE_TEXT("the plan")), TIDE_OK);
    }
    (void)settle(f);
    assert_int_equal(kept_here(f).count, 1);
    if (sent)
        (void)box_mailbox_draft_send(f->mailboxes[0], 0, now_ms(f));
    else
        box_mailbox_draft_remove(f->mailboxes[0], 0);
    look(f);
    assert_int_equal(kept_here(f).count, 0);
    assert_int_equal(with_label(f, BOX_LABEL_DRAFT), 0);
    assert_int_equal(count_shown(f, 0, "DRAFT"), 0);
    assert_int_equal(count_shown(f, 0, "SENT"), sent ? 1 : 0);
    assert_false(file_is_there(f, FILE_A));
    assert_int_equal(failed_jobs(f), 0);
    assert_no_violation(f);
}

TEST(a_draft_that_is_sent_or_deleted_in_gmail_goes_away_here_too)
{
    for (unsigned i = 0; i < 4; i++) {
        struct fixture *f = begin();
        draft_ends_there(f, i % 2 == 1, i / 2 == 1);
        finish(f);
    }
}

/* DRF10: where a history begins every draft is asked for, and nothing else says that it is gone. */
CASE(a_draft_stays_that_one_answer_denies)
{
    assert_int_equal(save(f, "d1", LETTER), TIDE_OK);
    (void)settle(f);
    tide_sim_cloud_fault(f->cloud, f->sim,
                         "{\"method\":\"gmail.users.drafts.get\",\"fault\":\"404\",\"count\":1}");
    look(f);
    look(f);
    assert_int_equal(kept_here(f).count, 1);
    assert_int_equal(with_label(f, BOX_LABEL_DRAFT), 1);
}

/* DRF10: what a person wrote stays, and is at Gmail as a draft of its own. */
TEST(what_was_changed_here_meanwhile_is_kept_and_says_that_it_was_sent_or_deleted)
{
    for (unsigned i = 0; i < 4; i++) {
        struct fixture *f = begin();
        const char *id = "d1";
        if (i % 2 == 1) {
            (void)begin_there(f, BEGUN);
            id = resume_first(f);
        } else {
            assert_int_equal(save(f, id, LETTER), TIDE_OK);
        }
        (void)settle(f);
        assert_int_equal(save(f, id, SECOND), TIDE_OK); /* not copied yet */
        if (i / 2 == 1)
            (void)box_mailbox_draft_send(f->mailboxes[0], 0, now_ms(f));
        else
            box_mailbox_draft_remove(f->mailboxes[0], 0);
        look(f);
        (void)settle(f);
        assert_true(server_has(f, "A second thought."));
        assert_int_equal(count_shown(f, 0, "DRAFT"), 0);
        assert_int_equal(count_shown(f, 0, "SENT"), i / 2);
        assert_int_equal(kept_here(f).count, 1);
        assert_true(kept_here(f).state.removed);
        assert_true(has(kept_here(f).json, "A second thought."));
        assert_int_equal(failed_jobs(f), 0);
        finish(f);
    }
}

TEST(a_draft_that_is_changed_in_gmail_has_the_newer_text_here_unless_it_was_changed_here_too)
{
    for (unsigned i = 0; i < 4; i++) {
        struct fixture *f = begin();
        const bool both = i / 2 == 1;
        const char *id = "d1";
        if (i % 2 == 1) {
            (void)begin_there(f, BEGUN);
            id = resume_first(f);
        } else {
            assert_int_equal(save(f, id, LETTER), TIDE_OK);
        }
        (void)settle(f);
        if (both)
            assert_int_equal(save(f, id, SECOND), TIDE_OK);
        change_there(f, 0);
        look(f);
        (void)settle(f);
        assert_copied(f, both ? "A second thought." : "From a phone.");
        struct kept kept = kept_here(f);
        assert_true(has(kept.json, both ? "A second thought." : "From a phone."));
        assert_string_equal(kept.id, id);
        assert_false(kept.state.removed);
        assert_int_equal(files_kept(f), both && i % 2 == 1 ? 1 : 0);
        assert_int_equal(box_mailbox_drafts(f->mailboxes[0]), 1);
        assert_int_equal(failed_jobs(f), 0);
        finish(f);
    }
}

/* DRF9: the page shows the newer message before the reader knows whose it is. */
CASE(a_newer_text_that_is_continued_before_it_was_looked_at_is_the_same_draft)
{
    assert_int_equal(save(f, "d1", LETTER), TIDE_OK);
    (void)settle(f);
    look(f);
    change_there(f, 0);
    tide_sim_cloud_fault(f->cloud, f->sim,
                         "{\"method\":\"gmail.users.drafts.get\",\"fault\":\"403\",\"count\":1}");
    look(f);
    assert_int_equal(count_shown(f, 0, "DRAFT"), 1);
    assert_string_equal(resume(f, shown(f, 0, "DRAFT")), "d1");
    assert_int_equal(kept_here(f).count, 1);
    look(f);
    assert_copied(f, "From a phone.");
    assert_true(has(kept_here(f).json, "From a phone."));
}

/* A new message of a draft that the reader has not looked at yet: its text is here. */
static const char *unseen(struct fixture *f)
{
    static char message[TIDE_CACHE_ID_BYTES];
    uint64_t job = 0;
    tide_sim_cloud_fault(f->cloud, f->sim,
                         "{\"method\":\"gmail.users.drafts.get\",\"fault\":\"403\",\"count\":9}");
    look(f);
    (void)snprintf(message, sizeof message, "%s", shown(f, 0, "DRAFT"));
    message[strcspn(message, " ")] = '\0';
    OK(tide_reader_fetch(f->reader, f->accounts[0], message, &job, err));
    (void)settle(f);
    return message;
}

/* DRF9: what was typed here is not opened for what was typed there. */
CASE(a_newer_text_is_not_taken_for_a_draft_that_was_changed_here)
{
    char id[TIDE_DRAFT_ID_BYTES];
    uint64_t job = 0;
    assert_int_equal(save(f, "d1", LETTER), TIDE_OK);
    (void)settle(f);
    look(f);
    change_there(f, 0);
    const char *message = unseen(f);
    assert_int_equal(save(f, "d1", SECOND), TIDE_OK);
    OK(tide_reader_continue(f->reader, f->accounts[0], message, id, &job, err));
    assert_string_not_equal(id, "d1");
    assert_true(has(id, message));
    assert_int_equal(kept_here(f).count, 2);
}

/* Of two in one thread nobody can say which one was changed. */
CASE(a_newer_text_is_not_taken_for_one_of_two_drafts_of_its_thread)
{
    char thread[BOX_ID_TEXT_BYTES], first[TIDE_DRAFT_ID_BYTES], id[TIDE_DRAFT_ID_BYTES];
    uint64_t job = 0;
    const uint32_t draft = begin_there(f, PHONE);
    (void)snprintf(first, sizeof first, "%s", resume_first(f));
    const uint32_t slot = box_mailbox_draft_at(f->mailboxes[0], draft)->slot;
    box_id_text(box_mailbox_at(f->mailboxes[0], slot)->thread_id, thread);
    const struct box_insert insert = {
        .raw = TIDE_TEXT(PHONE), .date_ms = now_ms(f), .thread_id = tide_text_of(thread)};
    const uint32_t other = box_mailbox_draft_create(f->mailboxes[0], &insert);
    assert_string_not_equal(resume_first(f), first);
    look(f); /* their ids are known now */
    assert_int_equal(kept_here(f).count, 2);
    change_there(f, draft);
    change_there(f, other);
    const char *message = unseen(f);
    assert_int_equal(count_shown(f, 0, "DRAFT"), 2);
    OK(tide_reader_continue(f->reader, f->accounts[0], message, id, &job, err));
    assert_true(has(id, message));
    assert_int_equal(kept_here(f).count, 3);
}

/* ---- whatever fails ---- */

TEST(there_are_never_two_copies_of_a_continued_draft_whichever_call_fails)
{
    static const char *const faults[] = {"500", "reset-before", "reset-after", "garbage",
                                         "truncate"};
    for (size_t kind = 0; kind < sizeof faults / sizeof faults[0]; kind++)
        for (unsigned at = 0; at < 4; at++) {
            struct fixture *f = begin();
            char rule[200];
            bool removed = false;
            (void)begin_there(f, BEGUN);
            look(f);
            (void)snprintf(rule, sizeof rule,
                           "{\"method\":\"gmail.users.drafts.*\",\"fault\":\"%s\",\"count\":1,"
                           "\"after\":%u}",
                           faults[kind], at);
            tide_sim_cloud_fault(f->cloud, f->sim, rule);
            const char *id = resume(f, shown(f, 0, "DRAFT"));
            (void)settle(f);
            assert_int_equal(save(f, id, SECOND), TIDE_OK);
            (void)settle(f);
            assert_copied(f, "A second thought.");
            assert_int_equal(box_mailbox_drafts(f->mailboxes[0]), 1);
            change_there(f, 0);
            look(f);
            assert_copied(f, "From a phone.");
            OK(tide_reader_draft_drop(f->reader, f->accounts[0], id, &removed, err));
            (void)settle(f);
            assert_int_equal(with_label(f, BOX_LABEL_DRAFT), 0);
            assert_int_equal(kept_here(f).count, 0);
            assert_int_equal(box_mailbox_drafts(f->mailboxes[0]), 1);
            finish(f);
        }
}

/* OGM6. */
CASE(a_list_of_drafts_that_is_behind_makes_no_second_copy)
{
    (void)begin_there(f, BEGUN);
    look(f);
    tide_sim_cloud_fault(
        f->cloud, f->sim,
        "{\"method\":\"gmail.users.drafts.list\",\"fault\":\"list-empty\",\"count\":3}");
    const char *id = resume(f, shown(f, 0, "DRAFT"));
    (void)settle(f);
    assert_int_equal(save(f, id, SECOND), TIDE_OK);
    (void)settle(f);
    assert_copied(f, "A second thought.");
    assert_int_equal(box_mailbox_drafts(f->mailboxes[0]), 1);
}

/* ---- deaths ---- */

enum { THROWN, SENT, CHANGED_THERE, SENT_THERE, ENDS };

struct living {
    char message[TIDE_CACHE_ID_BYTES];
    unsigned end;
    bool saved; /* the change was accepted */
};

/* A draft of Gmail's is continued, changed, copied, and ends here or there. */
static void live(struct fixture *f, struct living *living, uint64_t steps)
{
    const unsigned end = living->end;
    struct tide_reader_action action;
    bool removed = false;
    f->may_die = true;
    tide_sim_crash_after(f->sim, steps,
                         steps % 2 == 0 ? TIDE_SIM_CRASH_KILL : TIDE_SIM_CRASH_POWER);
    if (life_begin(f) == TIDE_OK) {
        const char *id = resume(f, living->message);
        (void)settle(f);
        if (id[0] != '\0' && save(f, id, SECOND) == TIDE_OK)
            living->saved = true;
        (void)settle(f);
        if (end == CHANGED_THERE)
            change_there(f, 0);
        if (end == SENT_THERE)
            (void)box_mailbox_draft_send(f->mailboxes[0], 0, now_ms(f));
        (void)tide_reader_begin(f->reader, f->accounts[0], NULL);
        (void)settle(f);
        if (end == THROWN)
            (void)tide_reader_draft_drop(f->reader, f->accounts[0], id, &removed, NULL);
        if (end == SENT)
            (void)send_draft(f, id, &action);
        (void)settle(f);
    }
    life_end(f);
    tide_sim_reboot(f->sim);
    f->may_die = false;
}

static bool note_any(void *arg, uint32_t slot)
{
    *(uint32_t *)arg = slot;
    return false;
}

/* Whether what was typed is what was sent. */
static bool sent_second(struct fixture *f)
{
    uint32_t slot = BOX_SLOT_NONE;
    uint16_t label = BOX_LABEL_SENT;
    tide_auto_buf scratch = tide_buf_heap(1 << 20);
    const struct box_walk walk = {.date_high_ms = UINT64_MAX, .labels = &label, .labels_count = 1};
    box_mailbox_walk(f->mailboxes[0], &walk, BOX_WALK_START, note_any, &slot);
    if (slot == BOX_SLOT_NONE)
        return false;
    const tide_text raw = box_mailbox_raw(f->mailboxes[0], slot, &scratch);
    return memmem(raw.data, raw.bytes, "A second", 8) != NULL;
}

/* A draft at Gmail is one here, or a message that is shown; what was typed is nowhere lost. */
static void check(struct fixture *f, const struct living *living, uint64_t steps)
{
    const struct kept kept = kept_here(f);
    const uint32_t there = with_label(f, BOX_LABEL_DRAFT);
    const size_t listed = count_shown(f, 0, "DRAFT");
    if (kept.count + listed != there || there > 1 || with_label(f, BOX_LABEL_SENT) > 1)
        fail_msg("step %" PRIu64 ", end %u: here %u, shown %zu, there %" PRIu32 ", sent %" PRIu32,
                 steps, living->end, kept.count, listed, there, with_label(f, BOX_LABEL_SENT));
    if (box_mailbox_drafts(f->mailboxes[0]) > (living->end == SENT_THERE ? 2 : 1))
        fail_msg("step %" PRIu64 ", end %u: another draft was made", steps, living->end);
    if (kept.count == 1 && !server_has(f, has(kept.json, "A second") ? "A second"
                                          : has(kept.json, "From a") ? "From a"
                                                                     : "Begun on"))
        fail_msg("step %" PRIu64 ", end %u: the server has another text", steps, living->end);
    const bool safe = (kept.count == 1 && has(kept.json, "A second")) || sent_second(f);
    if (living->saved && !safe && living->end != THROWN && living->end != CHANGED_THERE)
        fail_msg("step %" PRIu64 ", end %u: what was typed is lost", steps, living->end);
    OK(tide_reader_files_sweep(f->reader, f->accounts[0], err));
    pass(f, 3600000);
    OK(tide_reader_files_sweep(f->reader, f->accounts[0], err));
    if (files_on_disk(f) != (has(kept.files, "file") ? 1 : 0))
        fail_msg("step %" PRIu64 ": %u files are left", steps, files_on_disk(f));
    assert_int_equal(failed_jobs(f), 0);
    assert_no_violation(f);
}

TEST(a_continued_draft_is_one_draft_and_never_lost_wherever_the_process_dies)
{
    static const char *const settings[] = {"reader.hold=0s", NULL};
    const struct tide_sim_options options = {.net = {.latency_us_max = 20000}};
    const uint64_t stride = 2400 / scaled_at_least(80, 10);
    uint64_t last = 0;
    bool died = true;
    for (uint64_t steps = 1; died; steps += stride) {
        struct fixture *f = begin_in(11, &options);
        struct living living = {.end = (unsigned)(steps / stride % ENDS)};
        f->settings = settings;
        OK(life_begin(f));
        (void)begin_there(f, BEGUN);
        look(f);
        (void)snprintf(living.message, sizeof living.message, "%s", shown(f, 0, "DRAFT"));
        life_end(f);
        tide_sim_reboot(f->sim);
        live(f, &living, steps);
        died = tide_sim_stats(f->sim).crashes > 0;
        tide_sim_crash_after(f->sim, 0, TIDE_SIM_CRASH_KILL);
        OK(life_begin(f));
        look(f);
        (void)settle(f);
        look(f);
        check(f, &living, steps);
        finish(f);
        last = died ? steps : last;
    }
    (void)printf("interrupted up to step %" PRIu64 "\n", last);
    assert_true(last > 200);
}
