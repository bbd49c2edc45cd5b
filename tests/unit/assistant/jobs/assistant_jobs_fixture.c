#include "assistant_jobs_fixture.h"

#include "base/encode.h"
#include "cloudbox/gate/service.h"
#include "cloudbox/gate/user.h"
#include "cloudbox/mailbox/mime.h"
#include "ledger/rows.h"
#include "net/oauth/google.h"

#include <inttypes.h>

/* ---- the model ---- */

/* The answer that follows the answers that the conversation has. */
static tide_status agent_says(struct fixture *f, tide_text talk, tide_buf *answer)
{
    json_t *value = json_loadb(talk.data, talk.bytes, 0, NULL);
    assert_non_null(value);
    size_t said = 0, i;
    json_t *message;
    json_array_foreach(json_object_get(value, "messages"), i, message) said +=
        strcmp(json_string_value(json_object_get(message, "role")), "assistant") == 0;
    json_decref(value);
    size_t known = 0;
    while (f->says != NULL && f->says[known] != NULL && known < said)
        known++;
    const char *says = f->says == NULL ? NULL : f->says[known];
    return tide_buf_add_text(answer, says != NULL ? says
                                                  : "{\"text\":\"bye\",\"stop\":\"done\","
                                                    "\"parts\":[{\"text\":\"bye\"}]}");
}

static tide_status model(void *arg, tide_job *job, const struct tide_assistant_question *question,
                         struct tide_assistant_answer *answer, tide_error *err)
{
    static const char *const kinds[] = {"classify", "context", "draft", "rework", "agent"};
    struct fixture *f = arg;
    unsigned kind = 0;
    while (kind < 5 && strcmp(kinds[kind], question->kind) != 0)
        kind++;
    assert_true(kind < 5);
    const tide_text prompt = kind == ASKED_AGENT ? question->talk : question->prompt;
    f->asked[kind]++;
    const struct tide_chat_part part = {.kind = TIDE_CHAT_TEXT, .text = question->prompt};
    const struct tide_chat_message message = {TIDE_CHAT_USER, &part, 1};
    const struct tide_chat_talk talk = {
        .system = question->system, .messages = &message, .messages_count = 1};
    f->cost = tide_chat_cost_of(&talk, question->tokens_max);
    if (f->chat.chat != NULL)
        return tide_assistant_chat_ask(&f->chat, job, question, answer, err);
    (void)snprintf(f->prompt, sizeof f->prompt, "%.*s", (int)prompt.bytes, prompt.data);
    if (f->during != NULL)
        f->during(f, question->kind);
    if (f->again_ms > 0) {
        const uint64_t at_ms = tide_job_now_ms(job) + f->again_ms;
        f->again_ms = 0;
        return tide_job_again(job, at_ms);
    }
    if (f->model_fails != TIDE_OK)
        return tide_error_set(err, f->model_fails, "the model is out of order");
    answer->tokens_in = 100;
    answer->tokens_out = 10;
    answer->latency_ms = 5;
    if (kind == ASKED_AGENT)
        return agent_says(f, prompt, answer->text);
    if (kind == ASKED_CLASSIFY && f->answer == NULL)
        return tide_buf_print(answer->text,
                              "{\"category\":\"%s\",\"confidence\":\"high\",\"reasoning\":\"so\","
                              "\"detected_language\":\"en\",\"resolved_style\":\"business\"}",
                              f->category);
    return tide_buf_add_text(answer->text, kind == ASKED_CLASSIFY  ? f->answer
                                           : kind == ASKED_CONTEXT ? f->searches
                                                                   : f->text);
}

static tide_status gmail_of(void *arg, const struct tide_assistant_user *user,
                            tide_gmail **gmail_out, tide_error *err)
{
    struct fixture *f = arg;
    (void)err;
    assert_string_equal(user->email, ME);
    *gmail_out = f->gmail;
    return TIDE_OK;
}

/* ---- lives ---- */

static tide_status put_user(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct fixture *f = arg;
    const tide_rows db = tide_transaction_rows(transaction);
    struct tide_assistant_user user = {.account = f->account};
    if (tide_assistant_user_get(db, f->account, &user, NULL) == TIDE_OK)
        return TIDE_OK;
    (void)snprintf(user.email, sizeof user.email, ME);
    return tide_assistant_user_put(db, &user, err);
}

static tide_status engine_begin(struct fixture *f, tide_error *err)
{
    tide_world *world = tide_sim_world(f->sim);
    const struct tide_engine_options options = {
        .state_dir = "/state", .world = world, .no_control_socket = true, .workers = 3};
    TIDE_TRY(tide_engine_open(&options, &f->engine, err));
    TIDE_TRY(tide_engine_account(f->engine, ME, "gmail", &f->account, err));
    TIDE_TRY(tide_engine_account(f->engine, "model", "chat", &f->model_account, err));
    const struct tide_assistant_jobs_options jobs = {.engine = f->engine,
                                                     .world = world,
                                                     .terms = {f->config, f->model_account},
                                                     .model = f->model != NULL ? f->model : model,
                                                     .model_arg = f,
                                                     .gmail = gmail_of,
                                                     .gmail_arg = f};
    TIDE_TRY(tide_assistant_jobs_open(&jobs, tide_mem_heap(), &f->jobs, err));
    TIDE_TRY(tide_transact(f->engine, put_user, f, err));
    return tide_engine_start(f->engine, err);
}

tide_status life_begin(struct fixture *f)
{
    tide_world *world = tide_sim_world(f->sim);
    tide_error err = {TIDE_OK, 0, ""};
    tide_status rc =
        tide_sim_signed_in(world, "/secrets", "gmail/" ME "/token", "me-0", &f->secrets, &err);
    const struct tide_tokens_options tokens = {.provider = &tide_oauth_google,
                                               .secret = "gmail/" ME "/token",
                                               .account = "me",
                                               .sign_in = "sign in"};
    if (rc == TIDE_OK)
        rc = tide_tokens_open(world, f->secrets, &tokens, tide_mem_heap(), &f->tokens, &err);
    if (rc == TIDE_OK)
        rc = tide_gmail_open_patient(ORIGIN, f->tokens, TIDE_ASSISTANT_PATIENCE_MS, tide_mem_heap(),
                                     &f->gmail, &err);
    if (rc == TIDE_OK)
        rc = engine_begin(f, &err);
    if (rc != TIDE_OK && !f->may_die)
        fail_msg("a life did not begin: %s", err.text);
    return rc;
}

void life_end(struct fixture *f)
{
    const tide_status rc = tide_engine_close(f->engine);
    if (!f->may_die)
        assert_int_equal(rc, TIDE_OK);
    f->engine = NULL;
    tide_assistant_jobs_close(f->jobs);
    f->jobs = NULL;
    tide_gmail_close(f->gmail);
    f->gmail = NULL;
    tide_tokens_close(f->tokens);
    f->tokens = NULL;
    tide_secrets_close(f->secrets);
    f->secrets = NULL;
}

tide_status settle(struct fixture *f)
{
    tide_error err = {TIDE_OK, 0, ""};
    const tide_status rc = tide_engine_wait(f->engine, TIDE_WAIT_FOREVER, &err);
    if (rc != TIDE_OK && !f->may_die)
        fail_msg("settle: %s", err.text);
    return rc;
}

void sync_now(struct fixture *f, bool full)
{
    OK(tide_assistant_sync(f->jobs, f->account, full, err));
    (void)settle(f);
}

void pass(struct fixture *f, uint64_t minutes)
{
    tide_world *world = tide_sim_world(f->sim);
    const uint64_t until_us = tide_world_now_us(world) + minutes * 60000000u;
    (void)tide_world_sleep_until(world, until_us, NULL);
}

struct fixture *begin_in(uint64_t seed, const struct tide_sim_options *options, const char *yaml)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    box_mime_start();
    f->category = "needs_response";
    f->text = "Dear Anna, yes.";
    f->searches = "{\"searches\":[]}";
    f->cloud = tide_sim_cloud_new(
        &(struct box_options){.seed = 3, .quota = BOX_QUOTA_2026, .concurrency_max = 10});
    struct tide_sim_options world = *options;
    if (world.net.provide == NULL)
        world.net.provide = tide_sim_cloud_call;
    world.net.provide_arg = f->cloud;
    f->sim = tide_sim_new(seed, &world);
    f->mailbox = tide_sim_cloud_user(f->cloud, f->sim, ME, "me-0",
                                     (struct box_mailbox_options){.messages = 0});
    const struct tide_assistant_source source = {
        .path = "assistant.yaml",
        .yaml = tide_text_of(yaml != NULL ? yaml : "models: {fast: small, better: large}\n")};
    OK(tide_assistant_config_read(&source, tide_mem_heap(), &f->config, err));
    return f;
}

struct fixture *begin(const char *yaml)
{
    const struct tide_sim_options options = {.net = {.latency_us_max = 20000}};
    struct fixture *f = begin_in(11, &options, yaml);
    OK(life_begin(f));
    OK(tide_assistant_onboard(f->jobs, f->account, err));
    (void)settle(f);
    return f;
}

void finish(struct fixture *f)
{
    life_end(f);
    tide_sim_free(f->sim);
    tide_sim_cloud_free(f->cloud);
    tide_assistant_config_free(f->config);
    free(f);
}

/* ---- the user ---- */

void deliver_raw(struct fixture *f, const char *raw, const char *thread)
{
    static const uint16_t labels[] = {BOX_LABEL_INBOX, BOX_LABEL_UNREAD};
    const struct box_insert message = {.raw = tide_text_of(raw),
                                       .date_ms = tide_sim_net_unix_ms(f->sim),
                                       .thread_id =
                                           thread == NULL ? TIDE_TEXT_NONE : tide_text_of(thread),
                                       .labels = labels,
                                       .labels_count = 2};
    const uint32_t slot = box_mailbox_insert(f->mailbox, &message);
    box_id_text(box_mailbox_at(f->mailbox, slot)->id, f->message);
    box_id_text(box_mailbox_at(f->mailbox, slot)->thread_id, f->thread);
}

void deliver(struct fixture *f, const char *from, const char *subject, const char *text,
             const char *thread)
{
    deliver_raw(f,
                textf("From: %s\r\nTo: " ME "\r\nSubject: %s\r\nMessage-ID: <%u@example.com>\r\n"
                      "\r\n%s\r\n",
                      from, subject, ++f->delivered, text),
                thread);
}

void each_message(struct fixture *f, const char *thread, message_fn *visit, void *arg)
{
    uint32_t slot = box_mailbox_thread(f->mailbox, tide_text_of(thread));
    while (slot != BOX_SLOT_NONE) {
        const uint32_t next = box_mailbox_at(f->mailbox, slot)->next_in_thread;
        if (!box_mailbox_at(f->mailbox, slot)->gone)
            visit(f, slot, arg);
        slot = next;
    }
}

struct labelling {
    uint16_t label;
    bool on;
};

static void label_one(struct fixture *f, uint32_t slot, void *arg)
{
    const struct labelling *labelling = arg;
    if (!box_mailbox_has_label(f->mailbox, slot, BOX_LABEL_DRAFT))
        box_mailbox_relabel(f->mailbox, slot, &labelling->label, labelling->on, &labelling->label,
                            !labelling->on);
}

uint16_t label_number(struct fixture *f, tide_assistant_label label)
{
    uint32_t number = 0;
    assert_true(box_mailbox_label_by_name(f->mailbox,
                                          tide_text_of(tide_assistant_label_name(label)), &number));
    return (uint16_t)number;
}

void label(struct fixture *f, const char *thread, tide_assistant_label label, bool on)
{
    struct labelling labelling = {label_number(f, label), on};
    each_message(f, thread, label_one, &labelling);
}

uint32_t draft_in(struct fixture *f, const char *thread)
{
    uint32_t found = BOX_SLOT_NONE;
    for (uint32_t i = 0; i < box_mailbox_drafts(f->mailbox); i++) {
        const struct box_draft *draft = box_mailbox_draft_at(f->mailbox, i);
        char id[64];
        if (draft->gone || box_mailbox_has_label(f->mailbox, draft->slot, BOX_LABEL_TRASH))
            continue;
        box_id_text(box_mailbox_at(f->mailbox, draft->slot)->thread_id, id);
        if (strcmp(id, thread) == 0)
            found = i;
    }
    return found;
}

void send_draft(struct fixture *f, const char *thread)
{
    const uint32_t draft = draft_in(f, thread);
    assert_int_not_equal(draft, BOX_SLOT_NONE);
    (void)box_mailbox_draft_send(f->mailbox, draft, tide_sim_net_unix_ms(f->sim));
}

void discard_draft(struct fixture *f, const char *thread)
{
    const uint32_t draft = draft_in(f, thread);
    assert_int_not_equal(draft, BOX_SLOT_NONE);
    box_mailbox_draft_remove(f->mailbox, draft);
}

/* As a mail program saves it: another message, without our header. */
void edit_draft(struct fixture *f, const char *thread, const char *text)
{
    const uint32_t draft = draft_in(f, thread);
    const char *raw = textf("To: anna@example.com\r\nSubject: Re: x\r\n"
                            "Content-Type: text/plain; charset=utf-8\r\n"
                            "Content-Transfer-Encoding: 8bit\r\n\r\n%s",
                            text);
    const struct box_insert message = {.raw = tide_text_of(raw),
                                       .date_ms = tide_sim_net_unix_ms(f->sim),
                                       .thread_id = tide_text_of(thread)};
    if (draft == BOX_SLOT_NONE)
        (void)box_mailbox_draft_create(f->mailbox, &message);
    else
        box_mailbox_draft_update(f->mailbox, draft, &message);
}

/* ---- looking ---- */

struct reading {
    struct fixture *f;
    const char *thread, *kind;
    struct tide_assistant_email email;
    unsigned events;
};

static tide_status read_record(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct reading *reading = arg;
    memset(&reading->email, 0, sizeof reading->email);
    const tide_status rc =
        tide_assistant_email_get(tide_transaction_rows(transaction), reading->f->account,
                                 reading->thread, &reading->email, err);
    return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
}

struct tide_assistant_email record(struct fixture *f, const char *thread)
{
    struct reading reading = {.f = f, .thread = thread};
    OK(tide_transact(f->engine, read_record, &reading, err));
    return reading.email;
}

static void count_event(const struct tide_assistant_event *event, void *arg)
{
    struct reading *reading = arg;
    reading->events += strcmp(event->kind, reading->kind) == 0;
}

static tide_status read_events(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct reading *reading = arg;
    const struct tide_assistant_explain explain = {.event = count_event, .arg = reading};
    reading->events = 0;
    const tide_status rc = tide_assistant_explain(
        tide_transaction_rows(transaction), reading->f->account, reading->thread, &explain, err);
    return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
}

unsigned events_of(struct fixture *f, const char *thread, const char *kind)
{
    struct reading reading = {.f = f, .thread = thread, .kind = kind};
    OK(tide_transact(f->engine, read_events, &reading, err));
    return reading.events;
}

struct look {
    unsigned labels; /* bits */
    bool inbox;
    unsigned drafts;
    bool ours;
    char *text;
};

static void look_one(struct fixture *f, uint32_t slot, void *arg)
{
    struct look *look = arg;
    look->inbox = look->inbox || box_mailbox_has_label(f->mailbox, slot, BOX_LABEL_INBOX);
    for (unsigned i = 1; i < TIDE_ASSISTANT_LABELS; i++)
        if (box_mailbox_has_label(f->mailbox, slot, label_number(f, (tide_assistant_label)i)))
            look->labels |= 1u << i;
    if (!box_mailbox_has_label(f->mailbox, slot, BOX_LABEL_DRAFT) ||
        box_mailbox_has_label(f->mailbox, slot, BOX_LABEL_TRASH))
        return;
    tide_buf scratch = heap_buf(1 << 22);
    const tide_text raw = box_mailbox_raw(f->mailbox, slot, &scratch);
    if (!look->ours || memmem(raw.data, raw.bytes, "X-Tidemark-Draft:", 17) != NULL) {
        look->drafts++;
        free(look->text);
        look->text = strndup(raw.data, raw.bytes);
    }
    tide_buf_done(&scratch);
}

const char *labels_of(struct fixture *f, const char *thread)
{
    static char text[200];
    struct look look = {.labels = 0};
    each_message(f, thread, look_one, &look);
    free(look.text);
    text[0] = '\0';
    for (unsigned i = 1; i < TIDE_ASSISTANT_LABELS; i++)
        if ((look.labels >> i & 1u) != 0)
            (void)snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s",
                           text[0] == '\0' ? "" : ",",
                           strchr(tide_assistant_label_name((tide_assistant_label)i), '/') + 1);
    return text;
}

bool in_inbox(struct fixture *f, const char *thread)
{
    struct look look = {.labels = 0};
    each_message(f, thread, look_one, &look);
    free(look.text);
    return look.inbox;
}

unsigned drafts_of(struct fixture *f, const char *thread, bool ours)
{
    struct look look = {.ours = ours};
    each_message(f, thread, look_one, &look);
    free(look.text);
    return look.drafts;
}

/* Decoded: ours have one part, in base64. */
const char *draft_text(struct fixture *f, const char *thread)
{
    static char text[8192];
    struct look look = {.labels = 0};
    each_message(f, thread, look_one, &look);
    assert_non_null(look.text);
    const char *body = strstr(look.text, "\r\n\r\n");
    assert_non_null(body);
    tide_buf packed = heap_buf(1 << 20), plain = heap_buf(1 << 20);
    for (const char *c = body + 4; *c != '\0'; c++)
        if (*c != '\r' && *c != '\n')
            OK(tide_buf_add(&packed, c, 1));
    const bool is = strstr(look.text, "base64") != NULL &&
                    tide_base64_read(&plain, tide_buf_text(&packed)) == TIDE_OK;
    (void)snprintf(text, sizeof text, "%.*s\n%s", (int)(body - look.text), look.text,
                   is ? tide_buf_cstr(&plain) : body + 4);
    tide_buf_done(&packed);
    tide_buf_done(&plain);
    free(look.text);
    return text;
}

/* ---- agents ---- */

static void see_run(const struct tide_assistant_run *run, void *arg)
{
    tide_buf *text = arg;
    tide_buf_clear(text);
    OK(tide_buf_print(text, "%s %s %s %u %.*s|%.*s|%s", run->profile, run->rule, run->status,
                      (unsigned)run->iterations, (int)run->tools.bytes - 1, run->tools.data,
                      (int)run->final.bytes, run->final.data, run->error));
}

struct run_reading {
    struct fixture *f;
    const char *thread;
    uint64_t id; /* of the last run */
    tide_buf text;
};

static void see_run_id(const struct tide_assistant_run *run, void *arg)
{
    ((struct run_reading *)arg)->id = run->id;
}

static tide_status read_runs(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct run_reading *reading = arg;
    const tide_rows db = tide_transaction_rows(transaction);
    const struct tide_assistant_explain explain = {.run = see_run_id, .arg = reading};
    tide_status rc =
        tide_assistant_explain(db, reading->f->account, reading->thread, &explain, err);
    if (rc == TIDE_OK && reading->id != 0) /* a list has no texts */
        rc = tide_assistant_run_look(db, reading->id, see_run, &reading->text, err);
    return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
}

const char *run_of(struct fixture *f, const char *thread)
{
    static char text[64 << 10];
    struct run_reading reading = {.f = f, .thread = thread, .text = heap_buf(1 << 20)};
    OK(tide_transact(f->engine, read_runs, &reading, err));
    (void)snprintf(text, sizeof text, "%s", tide_buf_cstr(&reading.text));
    tide_buf_done(&reading.text);
    return text;
}

struct counting {
    uint16_t label;
    unsigned count;
};

static void count_one(struct fixture *f, uint32_t slot, void *arg)
{
    struct counting *counting = arg;
    counting->count += box_mailbox_has_label(f->mailbox, slot, counting->label) &&
                       !box_mailbox_has_label(f->mailbox, slot, BOX_LABEL_DRAFT);
}

unsigned sent_of(struct fixture *f, const char *thread)
{
    struct counting counting = {.label = BOX_LABEL_SENT};
    each_message(f, thread, count_one, &counting);
    return counting.count;
}

unsigned labeled(struct fixture *f, const char *thread, const char *name)
{
    uint32_t number = 0;
    assert_true(box_mailbox_label_by_name(f->mailbox, tide_text_of(name), &number));
    struct counting counting = {.label = (uint16_t)number};
    each_message(f, thread, count_one, &counting);
    return counting.count;
}

uint64_t failed_jobs(struct fixture *f)
{
    struct tide_progress progress;
    tide_engine_progress(f->engine, &progress);
    return progress.failed;
}
