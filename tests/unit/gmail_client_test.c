/* The calls to the Gmail API, through the engine and the simulated network to the
 * cloud in a box.
 *
 * Goal: every call does what it says and costs what it should; every way in which a
 * server can fail becomes the status that the engine needs to hear; a body arrives
 * byte for byte or not at all; memory is bounded; no token is ever told.
 * Method: a job per call.  In front of the cloud stands a provider that keeps the
 * last request, answers token refreshes, and can say something else than the cloud. */
#include "cloud/gmail.h"
#include "logic/cloud.h"
#include "logic/mailbox.h"
#include "logic/mime.h"
#include "logic/service.h"
#include "logic/user.h"
#include "sim.h"
#include "sim_cloud.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <cmocka.h>

#define ORIGIN "http://127.0.0.1:4443"
#define ME     "me@example.org"

struct fixture;
typedef tide_status play(struct fixture *f, tide_job *job, tide_error *err);

struct fixture {
    tide_sim *sim;
    tide_sim_cloud *cloud;
    tide_secrets *secrets;
    tide_tokens *tokens;
    struct tide_mem_faulty mem; /* of the client */
    tide_gmail *gmail;
    tide_engine *engine;
    uint32_t kind, account;

    /* The job that runs, and what came of it. */
    play *play;
    tide_status status;
    tide_error err;
    uint64_t took_ms;

    /* The network. */
    const char *say; /* instead of the cloud's answer */
    const char *say_type;
    int say_http;
    unsigned requests;  /* to the API */
    unsigned refreshes; /* of the token */
    char url[4096];     /* of the last one */
    char method[16];
    char authorization[64];
    char encoding[64];
    char agent[64];
    tide_buf body;

    /* What the calls work on. */
    char id[64];
    const char *query;
    tide_text text;
    tide_text ids[TIDE_GMAIL_IDS_MAX + 1];
    size_t ids_count;
    const char *const *add, *const *take;
    struct tide_gmail_profile profile;
    struct tide_gmail_page page;
    struct tide_gmail_message message;
    struct tide_gmail_history history;
    json_t *labels;
    tide_buf new_id;
};

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
    if (f->say == NULL) {
        tide_sim_cloud_call(f->cloud, request, now_unix_ms, rng, answer);
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

#define OK(f, call)                                                                                \
    do {                                                                                           \
        tide_error err_ = {TIDE_OK, 0, ""};                                                        \
        tide_error *err = &err_;                                                                   \
        const tide_status rc_ = (call);                                                            \
        if (rc_ != TIDE_OK)                                                                        \
            tide_sim_fail((f)->sim, "%s: %s: %s", #call, tide_status_name(rc_), err->text);        \
        (void)err;                                                                                 \
    } while (0)

static void begin_engine(struct fixture *f, const char *grant)
{
    tide_world *world = tide_sim_world(f->sim);
    OK(f,
       tide_secrets_open(world, "/secrets", TIDE_SECRETS_FILES, tide_mem_heap(), &f->secrets, err));
    OK(f, tide_secrets_put(f->secrets, "gmail/" ME "/token", tide_text_of(grant), err));
    OK(f,
       tide_tokens_open(world, f->secrets, "gmail/" ME "/token", tide_mem_heap(), &f->tokens, err));
    const struct tide_engine_options options = {
        .state_dir = "/state", .world = world, .no_control_socket = true, .workers = 2};
    OK(f, tide_engine_open(&options, &f->engine, err));
    const struct tide_kind kind = {.name = "play", .handler = handler, .context = f};
    OK(f, tide_engine_kind(f->engine, &kind, &f->kind, err));
    OK(f, tide_engine_account(f->engine, ME, "gmail", &f->account, err));
    OK(f, tide_engine_start(f->engine, err));
}

static struct fixture *begin_with(const char *endpoint, const char *grant, uint32_t messages)
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
        char token[8];
        (void)snprintf(token, sizeof token, "me-%u", i);
        OK(f, box_cloud_add_token(box, tide_text_of(token), TIDE_TEXT(ME), err));
    }
    begin_engine(f, grant);
    tide_mem_faulty_once(&f->mem, UINT64_MAX);
    OK(f, tide_gmail_open(endpoint, f->tokens, &f->mem.base, &f->gmail, err));
    tide_gmail_message_init(&f->message, &f->mem.base);
    tide_buf_init(&f->new_id, &f->mem.base, 100);
    tide_buf_init(&f->body, tide_mem_heap(), (size_t)1 << 28);
    return f;
}

static struct fixture *begin(uint32_t messages)
{
    return begin_with(ORIGIN,
                      "{\"v\":1,\"type\":\"user\",\"client_id\":\"c\",\"client_secret\":\"s\","
                      "\"refresh_token\":\"r\",\"token_url\":\"" ORIGIN "/token\",\"revoke_url\":"
                      "\"" ORIGIN "/revoke\",\"scopes\":\"https://mail.google.com/\","
                      "\"access_token\":\"me-0\",\"expires_unix_ms\":4000000000000}",
                      messages);
}

static void forget(struct fixture *f)
{
    tide_gmail_page_done(&f->page);
    tide_gmail_history_done(&f->history);
    tide_gmail_message_done(&f->message);
    json_decref(f->labels);
    f->labels = NULL;
}

static void end(struct fixture *f)
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

/* Runs one call in a job of its own. */
static tide_status run(struct fixture *f, play *call)
{
    f->play = call;
    f->status = TIDE_BUG;
    f->requests = 0;
    const struct tide_spec spec = {.kind = f->kind, .account = f->account};
    OK(f, tide_enqueue(f->engine, &spec, 1, NULL, err));
    OK(f, tide_engine_wait(f->engine, TIDE_WAIT_FOR_EVER, err));
    assert_null(strstr(f->err.text, "me-")); /* never a token */
    if (f->status != TIDE_OK) {
        assert_int_equal(f->err.status, f->status);
        assert_true(f->err.text[0] != '\0');
    }
    return f->status;
}

static void run_ok(struct fixture *f, play *call)
{
    const tide_status rc = run(f, call);
    if (rc != TIDE_OK)
        fail_msg("%s: %s (%s)", tide_status_name(rc), f->err.text, f->url);
}

/* ---- the calls ---- */

static tide_status play_profile(struct fixture *f, tide_job *job, tide_error *err)
{
    return tide_gmail_profile(f->gmail, job, &f->profile, err);
}

static tide_status play_list(struct fixture *f, tide_job *job, tide_error *err)
{
    struct tide_gmail_page page;
    const tide_status rc = tide_gmail_list(f->gmail, job, f->query, f->text, &page, err);
    if (rc == TIDE_OK) {
        tide_gmail_page_done(&f->page);
        f->page = page;
    }
    return rc;
}

static tide_status play_get(struct fixture *f, tide_job *job, tide_error *err)
{
    return tide_gmail_get(f->gmail, job, tide_text_of(f->id), &f->message, err);
}

static tide_status play_minimal(struct fixture *f, tide_job *job, tide_error *err)
{
    return tide_gmail_get_minimal(f->gmail, job, tide_text_of(f->id), &f->message, err);
}

static tide_status play_history(struct fixture *f, tide_job *job, tide_error *err)
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

static tide_status play_labels(struct fixture *f, tide_job *job, tide_error *err)
{
    json_decref(f->labels);
    f->labels = NULL;
    return tide_gmail_labels(f->gmail, job, &f->labels, err);
}

static tide_status play_label_create(struct fixture *f, tide_job *job, tide_error *err)
{
    return tide_gmail_label_create(f->gmail, job, f->text, &f->new_id, err);
}

static tide_status play_modify(struct fixture *f, tide_job *job, tide_error *err)
{
    return tide_gmail_modify(f->gmail, job, f->ids, f->ids_count, f->add, f->take, err);
}

static tide_status play_delete(struct fixture *f, tide_job *job, tide_error *err)
{
    return tide_gmail_delete(f->gmail, job, f->ids, f->ids_count, err);
}

static tide_status play_insert(struct fixture *f, tide_job *job, tide_error *err)
{
    static const tide_text labels[] = {{"INBOX", 5}, {"STARRED", 7}};
    return tide_gmail_insert(f->gmail, job, f->text, labels, 2, tide_text_of(f->id), &f->new_id,
                             NULL, err);
}

/* ---- looking at the cloud ---- */

static json_t *ask(struct fixture *f, const char *method, const char *target, const char *body,
                   int *http_out)
{
    return tide_sim_cloud_ask(f->cloud, method, target, tide_text_of(body),
                              tide_sim_net_unix_ms(f->sim), http_out);
}

static void control(struct fixture *f, const char *method, const char *target, const char *body)
{
    int http = 0;
    json_decref(ask(f, method, target, body, &http));
    assert_int_equal(http, 200);
}

static uint64_t units(struct fixture *f)
{
    json_t *stats = ask(f, "GET", "/_cloud/stats", "", NULL);
    const json_t *me = json_object_get(json_object_get(stats, "users"), ME);
    const uint64_t count = (uint64_t)json_integer_value(json_object_get(me, "units"));
    json_decref(stats);
    return count;
}

static box_mailbox *mailbox_of(struct fixture *f)
{
    return box_cloud_user(tide_sim_cloud_box(f->cloud), TIDE_TEXT(ME))->mailbox;
}

static void assert_stored(struct fixture *f, tide_text id, tide_text bytes)
{
    tide_buf scratch;
    tide_buf_init(&scratch, tide_mem_heap(), (size_t)1 << 28);
    const uint32_t slot = box_mailbox_find(mailbox_of(f), id);
    assert_int_not_equal(slot, BOX_SLOT_NONE);
    const tide_text raw = box_mailbox_raw(mailbox_of(f), slot, &scratch);
    assert_int_equal(raw.bytes, bytes.bytes);
    assert_memory_equal(raw.data, bytes.data, raw.bytes);
    tide_buf_done(&scratch);
}

static bool has_label(struct fixture *f, tide_text id, const char *label)
{
    uint32_t number = 0;
    const uint32_t slot = box_mailbox_find(mailbox_of(f), id);
    assert_int_not_equal(slot, BOX_SLOT_NONE);
    assert_true(box_mailbox_label_by_id(mailbox_of(f), tide_text_of(label), &number));
    return box_mailbox_has_label(mailbox_of(f), slot, (uint16_t)number);
}

static tide_text id_at(const json_t *ids, size_t index)
{
    const json_t *id = json_object_get(json_array_get(ids, index), "id");
    return (tide_text){json_string_value(id), json_string_length(id)};
}

/* The first page of the mailbox; `id` and `ids` name its messages. */
static void look(struct fixture *f, size_t ids_count)
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

/* ---- what they do ---- */

static void the_profile_tells_address_count_and_history(void **state)
{
    (void)state;
    struct fixture *f = begin(7);
    run_ok(f, play_profile);
    assert_string_equal(f->profile.email, ME);
    assert_int_equal(f->profile.messages, 7);
    assert_true(strlen(f->profile.history_id) > 0);
    assert_string_equal(f->authorization, "Bearer me-0");
    assert_int_equal(units(f), 1);
    end(f);
}

static void a_server_without_profiles_is_told_from_a_failing_one(void **state)
{
    (void)state;
    struct fixture *f = begin(1);
    static const struct {
        int http;
        const char *say, *type;
        tide_status status;
    } cases[] = {
        {404, "{\"error\":{\"code\":404,\"message\":\"Not Found\"}}", NULL, TIDE_GONE},
        {404, "404 Not Found", "text/plain", TIDE_GONE},
        {405, "", "text/plain", TIDE_GONE},
        {501, "{}", NULL, TIDE_GONE},
        {500, "{}", NULL, TIDE_SERVER},
        {403, "{\"error\":{\"code\":403,\"errors\":[{\"reason\":\"insufficientPermissions\"}]}}",
         NULL, TIDE_PERMANENT},
        {200, "[]", NULL, TIDE_SERVER},
        {200, "{\"historyId\":7}", NULL, TIDE_SERVER},
        {200, "{\"messagesTotal\":-1}", NULL, TIDE_SERVER},
        {200, "{}", NULL, TIDE_OK},
        /* An emulator's history ids are wider than 64 bits. */
        {200, "{\"historyId\":\"340282366920938463463374607431768211456\",\"messagesTotal\":3}",
         NULL, TIDE_OK},
        {200,
         "{\"historyId\":\"1234567890123456789012345678901234567890123456789012345678901234\"}",
         NULL, TIDE_SERVER},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        f->say = cases[i].say;
        f->say_type = cases[i].type;
        f->say_http = cases[i].http;
        if (run(f, play_profile) != cases[i].status)
            fail_msg("%d %s: %s: %s", cases[i].http, cases[i].say, tide_status_name(f->status),
                     f->err.text);
        if (f->status == TIDE_GONE)
            assert_int_equal(f->err.code, cases[i].http);
    }
    end(f);
}

static void a_listing_has_every_message_once(void **state)
{
    (void)state;
    struct fixture *f = begin(1203);
    bool *seen = calloc(box_mailbox_slots(mailbox_of(f)), sizeof *seen);
    assert_non_null(seen);
    size_t count = 0, pages = 0;
    char token[256] = "";
    do {
        f->text = tide_text_of(token);
        run_ok(f, play_list);
        pages++;
        for (size_t i = 0; i < json_array_size(f->page.ids); i++, count++) {
            const uint32_t slot = box_mailbox_find(mailbox_of(f), id_at(f->page.ids, i));
            assert_int_not_equal(slot, BOX_SLOT_NONE);
            assert_false(seen[slot]);
            seen[slot] = true;
        }
        (void)snprintf(token, sizeof token, "%.*s", (int)f->page.next.bytes, f->page.next.data);
    } while (token[0] != '\0');
    assert_int_equal(count, 1203); /* spam and trash too */
    assert_int_equal(pages, 3);
    assert_int_equal(units(f), 15);
    free(seen);
    end(f);
}

static void a_query_goes_through_unharmed(void **state)
{
    (void)state;
    struct fixture *f = begin(50);
    f->query = "after:1388552400 before:1391230800";
    run_ok(f, play_list);
    assert_null(f->page.ids); /* long before the oldest */
    assert_int_equal(f->page.next.bytes, 0);
    assert_non_null(strstr(f->url, "&q=after%3A1388552400%20before%3A1391230800"));
    assert_non_null(strstr(f->url, "maxResults=500"));
    assert_non_null(strstr(f->url, "includeSpamTrash=true"));
    f->query = "subject:\"a&b=c#d%e+f\" \xc3\xa9";
    run_ok(f, play_list);
    assert_non_null(strstr(f->url, "&q=subject%3A%22a%26b%3Dc%23d%25e%2Bf%22%20%C3%A9"));
    char *long_query = malloc(40000);
    assert_non_null(long_query);
    memset(long_query, 'x', 39999);
    long_query[39999] = '\0';
    f->query = long_query;
    assert_int_equal(run(f, play_list), TIDE_FULL);
    assert_int_equal(f->requests, 0);
    free(long_query);
    end(f);
}

static void a_message_arrives_as_it_is_stored(void **state)
{
    (void)state;
    struct fixture *f = begin(40);
    look(f, 40);
    const uint64_t before = units(f);
    char ids[40][64];
    for (size_t i = 0; i < 40; i++)
        (void)snprintf(ids[i], sizeof ids[i], "%.*s", (int)f->ids[i].bytes, f->ids[i].data);
    for (size_t i = 0; i < 40; i++) {
        memcpy(f->id, ids[i], sizeof f->id);
        run_ok(f, play_get);
        assert_true(tide_text_equal(f->message.id, tide_text_of(f->id)));
        assert_stored(f, f->message.id, tide_buf_text(&f->message.raw));
        const uint32_t slot = box_mailbox_find(mailbox_of(f), f->message.id);
        const struct box_message *stored = box_mailbox_at(mailbox_of(f), slot);
        assert_int_equal(f->message.internal_ms, stored->date_ms);
        assert_true(f->message.thread_id.bytes > 0 && f->message.history_id.bytes > 0);
        for (size_t k = 0; k < json_array_size(f->message.labels); k++)
            assert_true(has_label(f, f->message.id,
                                  json_string_value(json_array_get(f->message.labels, k))));
        assert_null(json_object_get(f->message.fields, "raw"));
        assert_null(json_object_get(f->message.fields, "snippet")); /* not asked for */

        run_ok(f, play_minimal);
        assert_int_equal(f->message.raw.bytes, 0);
        assert_int_equal(f->message.internal_ms, stored->date_ms);
    }
    assert_int_equal(units(f) - before, 40 * 40);
    assert_string_equal(f->encoding, "identity");
    (void)snprintf(f->id, sizeof f->id, "ffffffffffffff");
    assert_int_equal(run(f, play_get), TIDE_GONE);
    assert_int_equal(f->err.code, 404);
    assert_null(f->message.fields);
    assert_int_equal(run(f, play_minimal), TIDE_GONE);
    end(f);
}

static void every_byte_value_survives_both_ways(void **state)
{
    (void)state;
    struct fixture *f = begin(0);
    char bytes[256 * 3];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i / 3 + i % 3 * 85);
    for (size_t cut = 0; cut < 4; cut++) {
        f->id[0] = '\0';
        f->text = (tide_text){bytes, sizeof bytes - cut};
        run_ok(f, play_insert);
        assert_stored(f, tide_buf_text(&f->new_id), f->text);
        (void)snprintf(f->id, sizeof f->id, "%s", tide_buf_cstr(&f->new_id));
        run_ok(f, play_get);
        assert_int_equal(f->message.raw.bytes, f->text.bytes);
        assert_memory_equal(f->message.raw.data, bytes, f->text.bytes);
    }
    end(f);
}

/* M3: streamed both ways, one copy at a time. */
static void a_large_message_costs_one_copy(void **state)
{
    (void)state;
    struct fixture *f = begin(0);
    const size_t bytes = 30000001;
    char *large = malloc(bytes);
    assert_non_null(large);
    tide_rng rng = tide_rng_seeded(5);
    for (size_t i = 0; i < bytes; i++)
        large[i] = (char)tide_rng_next(&rng);
    /* Lines that look like the end of what it is wrapped in. */
    memcpy(large, "Subject: x\r\n\r\n--tidemark_part_0--\r\n--tidemark_part_1", 50);
    f->text = (tide_text){large, bytes};
    f->mem.bytes_peak = f->mem.bytes_live;
    run_ok(f, play_insert);
    assert_true(f->mem.bytes_peak < 1u << 20);
    assert_non_null(strstr(f->url, "/upload/"));
    assert_stored(f, tide_buf_text(&f->new_id), f->text);

    (void)snprintf(f->id, sizeof f->id, "%s", tide_buf_cstr(&f->new_id));
    f->mem.bytes_peak = f->mem.bytes_live;
    run_ok(f, play_get);
    assert_int_equal(f->message.raw.bytes, bytes);
    assert_memory_equal(f->message.raw.data, large, bytes);
    print_message("30 MB: peak %.3f of the message\n", (double)f->mem.bytes_peak / (double)bytes);
    assert_true(f->mem.bytes_peak <= bytes + bytes / 2 + (2u << 20));
    run_ok(f, play_get); /* never two of them */
    assert_true(f->mem.bytes_peak <= bytes + bytes / 2 + (2u << 20));
    free(large);
    end(f);
}

static void an_inserted_message_has_its_labels_date_and_thread(void **state)
{
    (void)state;
    struct fixture *f = begin(0);
    static const char first[] = "Message-ID: <a@x>\r\nSubject: s\r\n"
                                "Date: Wed, 01 Jan 2020 00:00:00 +0000\r\n\r\nhello\r\n";
    f->text = TIDE_TEXT(first);
    const uint64_t before = units(f);
    run_ok(f, play_insert);
    assert_int_equal(units(f) - before, 25);
    assert_true(has_label(f, tide_buf_text(&f->new_id), "INBOX"));
    assert_true(has_label(f, tide_buf_text(&f->new_id), "STARRED"));
    (void)snprintf(f->id, sizeof f->id, "%s", tide_buf_cstr(&f->new_id));
    run_ok(f, play_get);
    assert_int_equal(f->message.internal_ms, INT64_C(1577836800000));

    /* The reply goes into its thread. */
    static const char second[] = "Message-ID: <b@x>\r\nIn-Reply-To: <a@x>\r\nReferences: <a@x>\r\n"
                                 "Subject: Re: s\r\n\r\nhello\r\n";
    (void)snprintf(f->id, sizeof f->id, "%.*s", (int)f->message.thread_id.bytes,
                   f->message.thread_id.data);
    f->text = TIDE_TEXT(second);
    char thread[64];
    (void)snprintf(thread, sizeof thread, "%s", f->id);
    run_ok(f, play_insert);
    (void)snprintf(f->id, sizeof f->id, "%s", tide_buf_cstr(&f->new_id));
    run_ok(f, play_minimal);
    assert_true(tide_text_equal(f->message.thread_id, tide_text_of(thread)));
    end(f);
}

static void history_tells_what_changed_until_it_expires(void **state)
{
    (void)state;
    struct fixture *f = begin(10);
    run_ok(f, play_profile);
    f->text = TIDE_TEXT_NONE;
    run_ok(f, play_history);
    assert_null(f->history.records);
    assert_true(tide_text_equal(f->history.history_id, tide_text_of(f->profile.history_id)));

    look(f, 3);
    char gone[64];
    (void)snprintf(gone, sizeof gone, "%.*s", (int)f->ids[2].bytes, f->ids[2].data);
    static const char *const star[] = {"STARRED", NULL};
    f->ids_count = 2;
    f->add = star;
    run_ok(f, play_modify);
    f->ids[0] = tide_text_of(gone);
    f->ids_count = 1;
    run_ok(f, play_delete);
    f->text = TIDE_TEXT_NONE;
    const uint64_t before = units(f);
    run_ok(f, play_history);
    assert_int_equal(units(f) - before, 2);
    const json_t *record = NULL;
    size_t index = 0;
    size_t labels = 0, deletes = 0;
    json_array_foreach((json_t *)f->history.records, index, record)
    {
        labels += json_array_size(json_object_get(record, "labelsAdded"));
        const json_t *deleted = json_object_get(record, "messagesDeleted");
        deletes += json_array_size(deleted);
        for (size_t i = 0; i < json_array_size(deleted); i++)
            assert_string_equal(json_string_value(json_object_get(
                                    json_object_get(json_array_get(deleted, i), "message"), "id")),
                                gone);
        assert_null(json_object_get(record, "messages"));
    }
    assert_int_equal(deletes, 1);
    assert_true(labels >= 1 && labels <= 2); /* one may have had its star */
    assert_true(f->history.history_id.bytes > 0);
    assert_int_equal(f->history.next.bytes, 0);

    control(f, "POST", "/_cloud/history/expire", "{\"user\":\"" ME "\"}");
    assert_int_equal(run(f, play_history), TIDE_GONE);
    end(f);
}

static void labels_are_listed_and_made(void **state)
{
    (void)state;
    struct fixture *f = begin(0);
    run_ok(f, play_labels);
    const size_t count = json_array_size(json_object_get(f->labels, "labels"));
    assert_true(count > 5);
    assert_int_equal(units(f), 1);
    f->text = TIDE_TEXT("Archived/\"2026\" \xc3\xa9");
    run_ok(f, play_label_create);
    assert_int_equal(units(f), 6);
    assert_true(f->new_id.bytes > 0);
    run_ok(f, play_labels);
    const json_t *labels = json_object_get(f->labels, "labels");
    assert_int_equal(json_array_size(labels), count + 1);
    bool found = false;
    for (size_t i = 0; i < json_array_size(labels); i++) {
        const json_t *label = json_array_get(labels, i);
        if (strcmp(json_string_value(json_object_get(label, "id")), tide_buf_cstr(&f->new_id)) == 0)
            found = strcmp(json_string_value(json_object_get(label, "name")), f->text.data) == 0;
    }
    assert_true(found);
    assert_int_equal(run(f, play_label_create), TIDE_EXISTS);
    assert_int_equal(f->err.code, 409);
    f->text = TIDE_TEXT("INBOX");
    const tide_status reserved = run(f, play_label_create);
    assert_true(reserved == TIDE_PERMANENT || reserved == TIDE_EXISTS);
    end(f);
}

static void labels_change_on_one_message_and_on_many(void **state)
{
    (void)state;
    static const char *const add[] = {"STARRED", "TRASH", NULL};
    static const char *const take[] = {"INBOX", "UNREAD", NULL};
    struct fixture *f = begin(700);
    look(f, 500);
    f->add = add;
    f->take = take;
    for (size_t count = 500; count >= 1; count -= 499) {
        f->ids_count = count;
        f->ids[count - 1] = count == 1 ? f->ids[7] : TIDE_TEXT("ffffffffffffff"); /* gone */
        const uint64_t before = units(f);
        run_ok(f, play_modify);
        assert_int_equal(units(f) - before, count == 1 ? 5 : 50);
        for (size_t i = 0; i + 1 < count; i++) {
            assert_true(has_label(f, f->ids[i], "TRASH"));
            assert_false(has_label(f, f->ids[i], "UNREAD"));
        }
        if (count == 1)
            break;
    }
    /* Nothing to do costs nothing; too much is refused before it is sent. */
    const uint64_t before = units(f);
    f->ids_count = 0;
    run_ok(f, play_modify);
    run_ok(f, play_delete);
    for (size_t i = 0; i <= TIDE_GMAIL_IDS_MAX; i++)
        f->ids[i] = TIDE_TEXT("aa");
    f->ids_count = TIDE_GMAIL_IDS_MAX + 1;
    assert_int_equal(run(f, play_modify), TIDE_INVALID);
    assert_int_equal(run(f, play_delete), TIDE_INVALID);
    f->ids[1] = TIDE_TEXT("");
    f->ids_count = 2;
    assert_int_equal(run(f, play_delete), TIDE_INVALID); /* or it would mean the list */
    assert_int_equal(units(f), before);
    /* A label nobody knows. */
    static const char *const unknown[] = {"Label_999", NULL};
    look(f, 1);
    f->add = unknown;
    assert_int_equal(run(f, play_modify), TIDE_PERMANENT);
    end(f);
}

static void messages_are_deleted_and_stay_so(void **state)
{
    (void)state;
    struct fixture *f = begin(30);
    look(f, 12);
    char ids[12][64];
    for (size_t i = 0; i < 12; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "%.*s", (int)f->ids[i].bytes, f->ids[i].data);
        f->ids[i] = tide_text_of(ids[i]);
    }
    f->ids_count = 11;
    uint64_t before = units(f);
    run_ok(f, play_delete);
    run_ok(f, play_delete); /* again: harmless */
    assert_int_equal(units(f) - before, 100);
    f->ids[0] = f->ids[11];
    f->ids_count = 1;
    before = units(f);
    run_ok(f, play_delete);
    run_ok(f, play_delete); /* 404 */
    assert_int_equal(units(f) - before, 20);
    for (size_t i = 0; i < 12; i++)
        assert_int_equal(box_mailbox_find(mailbox_of(f), tide_text_of(ids[i])), BOX_SLOT_NONE);
    run_ok(f, play_profile);
    assert_int_equal(f->profile.messages, 18);
    end(f);
}

/* ---- how they fail ---- */

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
    if (subject->play == play_insert) {
        f->text = TIDE_TEXT("Subject: x\r\n\r\nhello\r\n");
        f->id[0] = '\0';
    }
}

static void strike(struct fixture *f, const char *fault, const char *count)
{
    char rule[200];
    (void)snprintf(rule, sizeof rule, "{\"method\":\"gmail.*\",\"fault\":\"%s\"%s}", fault, count);
    control(f, "POST", "/_cloud/faults", rule);
}

static void every_refusal_has_its_status(void **state)
{
    (void)state;
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
            end(f);
        }
    }
}

/* The answer begins, and then something happens to it. */
static void half_an_answer_is_none(void **state)
{
    (void)state;
    static const char *const ways[] = {"garbage", "truncate", "stall-body"};
    for (size_t s = 0; s < sizeof subjects / sizeof subjects[0]; s++) {
        for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
            struct fixture *f = begin(5);
            prepare(f, &subjects[s]);
            strike(f, ways[i], "");
            const tide_status rc = run(f, subjects[s].play);
            tide_status wanted = i == 2 ? TIDE_TIMEOUT : TIDE_SERVER;
            /* It was made, but nobody can say what it is called. */
            if (subjects[s].answers == MAKES && i < 2)
                wanted = TIDE_UNKNOWN;
            /* Where the answer says nothing, its loss says nothing either. */
            const bool fine = subjects[s].answers == WITH_NOTHING && rc == TIDE_OK;
            if (rc != wanted && !fine)
                fail_msg("%s, %s: %s: %s", subjects[s].name, ways[i], tide_status_name(rc),
                         f->err.text);
            assert_int_equal(f->message.raw.bytes, 0);
            end(f);
        }
    }
}

static void a_stale_token_is_refreshed_once(void **state)
{
    (void)state;
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
        /* Once it works again it works without anybody's help. */
        run_ok(f, subjects[s].play);
        end(f);
    }
}

static void answers_of_the_wrong_shape_are_the_servers_fault(void **state)
{
    (void)state;
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
        {play_get, "{\"id\":\"a2\",\"raw\":\"QUJD\"}"}, /* G4 */
        {play_get, "{\"id\":7,\"raw\":\"QUJD\"}"},
        {play_get, "{\"id\":\"a1\",\"threadId\":7,\"raw\":\"QUJD\"}"},
        {play_get, "{\"id\":\"a1\",\"labelIds\":\"INBOX\",\"raw\":\"QUJD\"}"},
        {play_get, "{\"id\":\"a1\",\"labelIds\":[[]],\"raw\":\"QUJD\"}"},
        {play_get, "{\"id\":\"a1\",\"internalDate\":\"soon\",\"raw\":\"QUJD\"}"},
        {play_get, "{\"id\":\"a1\",\"internalDate\":1.5,\"raw\":\"QUJD\"}"},
        {play_get, "{\"id\":\"a1\",\"historyId\":[],\"raw\":\"QUJD\"}"},
        {play_minimal, "{\"id\":\"a2\"}"},
        {play_minimal, ""},
    };
    struct fixture *f = begin(1);
    (void)snprintf(f->id, sizeof f->id, "a1");
    f->say_http = 200;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        f->say = cases[i].say;
        if (run(f, cases[i].play) != TIDE_SERVER)
            fail_msg("%s: %s", cases[i].say, tide_status_name(f->status));
        assert_null(f->message.fields);
        assert_int_equal(f->message.raw.bytes, 0);
        assert_null(f->page.value);
        assert_null(f->history.value);
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
    end(f);
}

/* A page behind a captive portal must not look like an answer, nor be kept whole. */
static void a_long_refusal_is_not_kept(void **state)
{
    (void)state;
    struct fixture *f = begin(1);
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
    end(f);
}

static void every_allocation_fails_in_turn(void **state)
{
    (void)state;
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
        end(f);
    }
}

/* A fixed token has no successor: nothing more is sent. */
static void a_fixed_token_that_is_refused_stays_so(void **state)
{
    (void)state;
    tide_buf grant;
    tide_buf_init(&grant, tide_mem_heap(), 1000);
    assert_int_equal(tide_oauth_fixed("me-3", &grant, NULL), TIDE_OK);
    struct fixture *f = begin_with(ORIGIN, tide_buf_cstr(&grant), 1);
    run_ok(f, play_profile);
    assert_string_equal(f->authorization, "Bearer me-3");
    strike(f, "401", "");
    assert_int_equal(run(f, play_profile), TIDE_AUTH);
    assert_int_equal(f->requests, 1);
    end(f);
    tide_buf_done(&grant);
}

/* ---- where they go ---- */

static void an_address_is_a_scheme_a_host_and_no_more(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "",           "/",
        "http://",    "https:///",
        "ftp://x",    "gmail.googleapis.com",
        "http://x/y", "http://x?y",
        "http://x#y", "http://u:p@x",
        "http://x y", "http://x\r\nHost: z",
    };
    struct fixture *f = begin(0);
    tide_gmail *gmail = NULL;
    tide_error err;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(tide_gmail_open(wrong[i], f->tokens, tide_mem_heap(), &gmail, &err),
                         TIDE_INVALID);
    assert_null(gmail);
    tide_gmail_close(NULL);
    end(f);
}

static void compression_is_asked_for_over_https_only(void **state)
{
    (void)state;
    static const char *const endpoints[] = {"https://gmail.example/", NULL, ORIGIN "/"};
    for (size_t i = 0; i < sizeof endpoints / sizeof endpoints[0]; i++) {
        struct fixture *f = begin(1);
        tide_gmail_close(f->gmail);
        OK(f, tide_gmail_open(endpoints[i], f->tokens, &f->mem.base, &f->gmail, err));
        run_ok(f, play_profile);
        static const char *const urls[] = {
            "https://gmail.example/gmail/v1/users/me/profile?",
            "https://gmail.googleapis.com/gmail/v1/users/me/profile?",
            ORIGIN "/gmail/v1/users/me/profile?"};
        assert_memory_equal(f->url, urls[i], strlen(urls[i]));
        assert_string_equal(f->encoding, i == 2 ? "identity" : ""); /* the world's own then */
        assert_int_equal(strstr(f->agent, "gzip") != NULL, i != 2);
        end(f);
    }
}

static void an_id_cannot_leave_its_place_in_the_address(void **state)
{
    (void)state;
    struct fixture *f = begin(1);
    (void)snprintf(f->id, sizeof f->id, "../../x?a=b&c#d%%2f e");
    assert_int_equal(run(f, play_get), TIDE_GONE);
    assert_non_null(strstr(f->url, "/messages/..%2F..%2Fx%3Fa%3Db%26c%23d%252f%20e?format=raw"));
    end(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_profile_tells_address_count_and_history),
        cmocka_unit_test(a_server_without_profiles_is_told_from_a_failing_one),
        cmocka_unit_test(a_listing_has_every_message_once),
        cmocka_unit_test(a_query_goes_through_unharmed),
        cmocka_unit_test(a_message_arrives_as_it_is_stored),
        cmocka_unit_test(every_byte_value_survives_both_ways),
        cmocka_unit_test(a_large_message_costs_one_copy),
        cmocka_unit_test(an_inserted_message_has_its_labels_date_and_thread),
        cmocka_unit_test(history_tells_what_changed_until_it_expires),
        cmocka_unit_test(labels_are_listed_and_made),
        cmocka_unit_test(labels_change_on_one_message_and_on_many),
        cmocka_unit_test(messages_are_deleted_and_stay_so),
        cmocka_unit_test(every_refusal_has_its_status),
        cmocka_unit_test(half_an_answer_is_none),
        cmocka_unit_test(a_stale_token_is_refreshed_once),
        cmocka_unit_test(a_fixed_token_that_is_refused_stays_so),
        cmocka_unit_test(answers_of_the_wrong_shape_are_the_servers_fault),
        cmocka_unit_test(a_long_refusal_is_not_kept),
        cmocka_unit_test(every_allocation_fails_in_turn),
        cmocka_unit_test(an_address_is_a_scheme_a_host_and_no_more),
        cmocka_unit_test(compression_is_asked_for_over_https_only),
        cmocka_unit_test(an_id_cannot_leave_its_place_in_the_address),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
