#include "gmail_client_fixture.h"
#include "cloudbox/mailbox/mime.h"
#include "cloudbox/gate/service.h"
#include "cloudbox/gate/user.h"
#include "net/oauth/google.h"
#include "support/heap.h"

#include <strings.h>

/* ---- the network ---- */

static void copy_header(const struct tide_request *request, const char *name, char *out,
                        size_t room)
{
    out[0] = '\0';
    for (size_t i = 0; i < request->headers_count; i++)
        if (request->headers[i].name.bytes == strlen(name) &&
            strncasecmp(request->headers[i].name.data, name, strlen(name)) == 0)
            (void)snprintf(out, room, "%.*s", (int)request->headers[i].value.bytes,
                           request->headers[i].value.data);
}

static void provide(void *arg, const struct tide_request *request, uint64_t now_unix_ms,
                    tide_rng *rng, struct tide_sim_answer *answer)
{
    struct fixture *f = arg;
    if (strcmp(request->url, ORIGIN "/token") == 0) {
        f->refreshes++;
        answer->http = 200;
        tide_sim_answer_header(answer, "Content-Type", "application/json");
        (void)tide_buf_print(&answer->body,
                             "{\"access_token\":\"me-%u\",\"expires_in\":3599,"
                             "\"token_type\":\"Bearer\"}",
                             f->refreshes);
        return;
    }
    f->requests++;
    (void)snprintf(f->url, sizeof f->url, "%s", request->url);
    (void)snprintf(f->method, sizeof f->method, "%s", request->method);
    copy_header(request, "Authorization", f->authorization, sizeof f->authorization);
    copy_header(request, "Accept-Encoding", f->encoding, sizeof f->encoding);
    copy_header(request, "User-Agent", f->agent, sizeof f->agent);
    tide_buf_clear(&f->body);
    TIDE_SIM_EXPECT(f->sim,
                    tide_buf_add(&f->body, request->body.data, request->body.bytes) == TIDE_OK);
    answer->reset = f->cut != NULL && f->cut(f, false);
    if (answer->reset)
        return;
    if (f->say == NULL) {
        tide_sim_cloud_call(f->cloud, request, now_unix_ms, rng, answer);
        if (f->cut != NULL && f->cut(f, true))
            answer->reset = true;
        return;
    }
    answer->http = f->say_http;
    tide_sim_answer_header(answer, "Content-Type",
                           f->say_type != NULL ? f->say_type : "application/json; charset=UTF-8");
    (void)tide_buf_add_text(&answer->body, f->say);
}

/* ---- life ---- */

/* A call that has to wait for units comes back by itself; everything else is the
 * test's business, not the engine's. */
static tide_status handler(tide_job *job, void *context, tide_error *err)
{
    struct fixture *f = context;
    memset(&f->err, 0, sizeof f->err);
    const uint64_t start_ms = tide_job_now_ms(job);
    f->status = f->play(f, job, &f->err);
    f->took_ms = tide_job_now_ms(job) - start_ms;
    if (f->status != TIDE_AGAIN)
        return TIDE_OK;
    *err = f->err;
    return TIDE_AGAIN;
}

static void begin_engine(struct fixture *f, const char *grant)
{
    tide_world *world = tide_sim_world(f->sim);
    OK(f,
       tide_secrets_open(world, "/secrets", TIDE_SECRETS_FILES, tide_mem_heap(), &f->secrets, err));
    OK(f, tide_secrets_put(f->secrets, "gmail/" ME "/token", tide_text_of(grant), err));
    const struct tide_tokens_options tokens_options = {.provider = &tide_oauth_google,
                                                       .secret = "gmail/" ME "/token",
                                                       .account = "me",
                                                       .sign_in = "sign in"};
    OK(f, tide_tokens_open(world, f->secrets, &tokens_options, tide_mem_heap(), &f->tokens, err));
    const struct tide_engine_options options = {
        .state_dir = "/state", .world = world, .no_control_socket = true, .workers = 2};
    OK(f, tide_engine_open(&options, &f->engine, err));
    const struct tide_kind kind = {.name = "play", .handler = handler, .context = f};
    OK(f, tide_engine_kind(f->engine, &kind, &f->kind, err));
    OK(f, tide_engine_account(f->engine, ME, "gmail", &f->account, err));
    OK(f, tide_engine_start(f->engine, err));
}

struct fixture *begin_with(const char *endpoint, const char *grant, uint32_t messages)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    box_mime_start();
    f->cloud = tide_sim_cloud_new(
        &(struct box_options){.seed = 3, .quota = BOX_QUOTA_2026, .concurrency_max = 10});
    struct tide_sim_options options = {.net = {.latency_us_max = 20000}};
    options.net.provide = provide;
    options.net.provide_arg = f;
    f->sim = tide_sim_new(11, &options);
    box_cloud *box = tide_sim_cloud_box(f->cloud);
    const struct box_mailbox_options mailbox = {.messages = messages,
                                                .now_unix_ms = tide_sim_net_unix_ms(f->sim)};
    OK(f, box_cloud_add_mailbox(box, TIDE_TEXT(ME), &mailbox, err));
    for (unsigned i = 0; i < 4; i++) {
        const char *token = textf("me-%u", i);
        OK(f, box_cloud_add_token(box, tide_text_of(token), TIDE_TEXT(ME), err));
    }
    begin_engine(f, grant);
    tide_mem_faulty_once(&f->mem, UINT64_MAX);
    OK(f, tide_gmail_open(endpoint, f->tokens, &f->mem.base, &f->gmail, err));
    tide_gmail_message_init(&f->message, &f->mem.base);
    tide_gmail_thread_init(&f->thread, &f->mem.base);
    tide_gmail_parts_init(&f->parts, &f->mem.base);
    tide_buf_init(&f->new_id, &f->mem.base, 100);
    tide_buf_init(&f->body, tide_mem_heap(), (size_t)1 << 28);
    return f;
}

struct fixture *begin(uint32_t messages)
{
    return begin_with(ORIGIN,
                      "{\"v\":1,\"type\":\"user\",\"client_id\":\"c\",\"client_secret\":\"s\","
                      "\"refresh_token\":\"r\",\"token_url\":\"" ORIGIN "/token\",\"revoke_url\":"
                      "\"" ORIGIN "/revoke\",\"scopes\":\"https://mail.google.com/\","
                      "\"access_token\":\"me-0\",\"expires_unix_ms\":4000000000000}",
                      messages);
}

void be_patient(struct fixture *f)
{
    tide_gmail_close(f->gmail);
    OK(f, tide_gmail_open_patient(ORIGIN, f->tokens, 60000, &f->mem.base, &f->gmail, err));
}

void forget(struct fixture *f)
{
    tide_gmail_page_done(&f->page);
    tide_gmail_history_done(&f->history);
    tide_gmail_message_done(&f->message);
    tide_gmail_thread_done(&f->thread);
    tide_gmail_parts_done(&f->parts);
    tide_gmail_drafts_done(&f->drafts);
    json_decref(f->labels);
    f->labels = NULL;
}

void finish(struct fixture *f)
{
    forget(f);
    OK(f, tide_engine_close(f->engine));
    tide_gmail_close(f->gmail);
    tide_buf_done(&f->new_id);
    tide_buf_done(&f->body);
    assert_int_equal(f->mem.bytes_live, 0);
    tide_tokens_close(f->tokens);
    tide_secrets_close(f->secrets);
    tide_sim_free(f->sim);
    tide_sim_cloud_free(f->cloud);
    free(f);
}

tide_status run(struct fixture *f, play *call)
{
    f->play = call;
    f->status = TIDE_BUG;
    f->requests = 0;
    const struct tide_spec spec = {.kind = f->kind, .account = f->account};
    OK(f, tide_enqueue(f->engine, &spec, 1, NULL, err));
    OK(f, tide_engine_wait(f->engine, TIDE_WAIT_FOREVER, err));
    assert_null(strstr(f->err.text, "me-")); /* never a token */
    if (f->status != TIDE_OK) {
        assert_int_equal(f->err.status, f->status);
        assert_true(f->err.text[0] != '\0');
    }
    return f->status;
}

void run_ok(struct fixture *f, play *call)
{
    const tide_status rc = run(f, call);
    if (rc != TIDE_OK)
        fail_msg("%s: %s (%s)", tide_status_name(rc), f->err.text, f->url);
}

/* ---- the calls ---- */

tide_status play_profile(struct fixture *f, tide_job *job, tide_error *err)
{
    return tide_gmail_profile(f->gmail, job, &f->profile, err);
}

tide_status play_list(struct fixture *f, tide_job *job, tide_error *err)
{
    struct tide_gmail_page page;
    const tide_status rc = tide_gmail_list(f->gmail, job, f->query, f->text, &page, err);
    if (rc == TIDE_OK) {
        tide_gmail_page_done(&f->page);
        f->page = page;
    }
    return rc;
}

tide_status play_get(struct fixture *f, tide_job *job, tide_error *err)
{
    return tide_gmail_get(f->gmail, job, tide_text_of(f->id), &f->message, err);
}

tide_status play_minimal(struct fixture *f, tide_job *job, tide_error *err)
{
    return tide_gmail_get_minimal(f->gmail, job, tide_text_of(f->id), &f->message, err);
}

tide_status play_history(struct fixture *f, tide_job *job, tide_error *err)
{
    struct tide_gmail_history history;
    const tide_status rc = tide_gmail_history(f->gmail, job, tide_text_of(f->profile.history_id),
                                              f->text, &history, err);
    if (rc == TIDE_OK) {
        tide_gmail_history_done(&f->history);
        f->history = history;
    }
    return rc;
}

tide_status play_labels(struct fixture *f, tide_job *job, tide_error *err)
{
    json_decref(f->labels);
    f->labels = NULL;
    return tide_gmail_labels(f->gmail, job, &f->labels, err);
}

tide_status play_label_create(struct fixture *f, tide_job *job, tide_error *err)
{
    return tide_gmail_label_create(f->gmail, job, f->text, &f->new_id, err);
}

tide_status play_modify(struct fixture *f, tide_job *job, tide_error *err)
{
    return tide_gmail_modify(f->gmail, job, f->ids, f->ids_count, f->add, f->take, err);
}

tide_status play_delete(struct fixture *f, tide_job *job, tide_error *err)
{
    return tide_gmail_delete(f->gmail, job, f->ids, f->ids_count, err);
}

tide_status play_insert(struct fixture *f, tide_job *job, tide_error *err)
{
    static const tide_text labels[] = {{"INBOX", 5}, {"STARRED", 7}};
    return tide_gmail_insert(f->gmail, job, f->text, labels, 2, tide_text_of(f->id), &f->new_id,
                             NULL, err);
}

tide_status play_label_ensure(struct fixture *f, tide_job *job, tide_error *err)
{
    json_decref(f->labels);
    f->labels = NULL;
    return tide_gmail_label_ensure(f->gmail, job, &f->labels, f->text, &f->new_id, err);
}

tide_status play_thread_get(struct fixture *f, tide_job *job, tide_error *err)
{
    return tide_gmail_thread_get(f->gmail, job, tide_text_of(f->thread_id), &f->thread, err);
}

tide_status play_thread_look(struct fixture *f, tide_job *job, tide_error *err)
{
    return tide_gmail_thread_look(f->gmail, job, tide_text_of(f->thread_id), f->headers, &f->thread,
                                  err);
}

tide_status play_thread_modify(struct fixture *f, tide_job *job, tide_error *err)
{
    return tide_gmail_thread_modify(f->gmail, job, tide_text_of(f->thread_id), f->add, f->take,
                                    err);
}

tide_status play_trash(struct fixture *f, tide_job *job, tide_error *err)
{
    return tide_gmail_trash(f->gmail, job, tide_text_of(f->id), err);
}

tide_status play_draft_create(struct fixture *f, tide_job *job, tide_error *err)
{
    return tide_gmail_draft_create(f->gmail, job, f->text, tide_text_of(f->thread_id), &f->draft,
                                   err);
}

tide_status play_draft_find(struct fixture *f, tide_job *job, tide_error *err)
{
    return tide_gmail_draft_find(f->gmail, job, tide_text_of(f->thread_id), f->text, &f->draft,
                                 err);
}

tide_status play_draft_get(struct fixture *f, tide_job *job, tide_error *err)
{
    return tide_gmail_draft_get(f->gmail, job, tide_text_of(f->draft.id), &f->parts, err);
}

tide_status play_draft_delete(struct fixture *f, tide_job *job, tide_error *err)
{
    return tide_gmail_draft_delete(f->gmail, job, tide_text_of(f->draft.id), err);
}

tide_status play_drafts_list(struct fixture *f, tide_job *job, tide_error *err)
{
    struct tide_gmail_drafts page;
    const tide_status rc = tide_gmail_drafts_list(f->gmail, job, f->text, &page, err);
    if (rc == TIDE_OK) {
        tide_gmail_drafts_done(&f->drafts);
        f->drafts = page;
    }
    return rc;
}

tide_status play_reply_send(struct fixture *f, tide_job *job, tide_error *err)
{
    return tide_gmail_reply_send(f->gmail, job, &f->send, tide_text_of(f->thread_id), &f->new_id,
                                 err);
}

/* ---- looking at the cloud ---- */

void put(struct fixture *f, const char *raw, uint64_t minute)
{
    static const uint16_t labels[] = {BOX_LABEL_INBOX, BOX_LABEL_UNREAD};
    const struct box_insert message = {
        .raw = tide_text_of(raw),
        .date_ms = UINT64_C(1767225600000) + minute * 60000,
        .thread_id = f->thread_id[0] != '\0' ? tide_text_of(f->thread_id) : TIDE_TEXT_NONE,
        .labels = labels,
        .labels_count = 2};
    box_mailbox *mailbox = mailbox_of(f);
    const uint32_t slot = box_mailbox_insert(mailbox, &message);
    box_id_text(box_mailbox_at(mailbox, slot)->id, f->id);
    box_id_text(box_mailbox_at(mailbox, slot)->thread_id, f->thread_id);
}

json_t *ask(struct fixture *f, const char *method, const char *target, const char *body,
            int *http_out)
{
    return tide_sim_cloud_ask(f->cloud, method, target, tide_text_of(body),
                              tide_sim_net_unix_ms(f->sim), http_out);
}

void control(struct fixture *f, const char *method, const char *target, const char *body)
{
    int http = 0;
    json_decref(ask(f, method, target, body, &http));
    assert_int_equal(http, 200);
}

uint64_t units(struct fixture *f)
{
    json_t *stats = ask(f, "GET", "/_cloud/stats", "", NULL);
    const json_t *me = json_object_get(json_object_get(stats, "users"), ME);
    const uint64_t count = (uint64_t)json_integer_value(json_object_get(me, "units"));
    json_decref(stats);
    return count;
}

box_mailbox *mailbox_of(struct fixture *f)
{
    return box_user_mailbox(box_cloud_user(tide_sim_cloud_box(f->cloud), TIDE_TEXT(ME)));
}

void assert_stored(struct fixture *f, tide_text id, tide_text bytes)
{
    tide_buf scratch = heap_buf((size_t)1 << 28);
    const uint32_t slot = box_mailbox_find(mailbox_of(f), id);
    assert_int_not_equal(slot, BOX_SLOT_NONE);
    const tide_text raw = box_mailbox_raw(mailbox_of(f), slot, &scratch);
    assert_int_equal(raw.bytes, bytes.bytes);
    assert_memory_equal(raw.data, bytes.data, raw.bytes);
    tide_buf_done(&scratch);
}

bool has_label(struct fixture *f, tide_text id, const char *label)
{
    uint32_t number = 0;
    const uint32_t slot = box_mailbox_find(mailbox_of(f), id);
    assert_int_not_equal(slot, BOX_SLOT_NONE);
    assert_true(box_mailbox_label_by_id(mailbox_of(f), tide_text_of(label), &number));
    return box_mailbox_has_label(mailbox_of(f), slot, (uint16_t)number);
}

tide_text id_at(const json_t *ids, size_t index)
{
    const json_t *id = json_object_get(json_array_get(ids, index), "id");
    return (tide_text){json_string_value(id), json_string_length(id)};
}

void look(struct fixture *f, size_t ids_count)
{
    f->text = TIDE_TEXT_NONE;
    run_ok(f, play_list);
    assert_true(json_array_size(f->page.ids) >= ids_count);
    for (size_t i = 0; i < ids_count; i++)
        f->ids[i] = id_at(f->page.ids, i);
    f->ids_count = ids_count;
    if (ids_count > 0)
        (void)snprintf(f->id, sizeof f->id, "%.*s", (int)f->ids[0].bytes, f->ids[0].data);
}
