#include "chat_client_fixture.h"

#include "net/oauth/google.h"
#include "support/heap.h"

#include <strings.h>

const struct way ways[WAYS] = {
    {"openai, streamed", TIDE_CHAT_OPENAI, NULL, false, false},
    {"openai", TIDE_CHAT_OPENAI, NULL, true, false},
    {"anthropic, streamed", TIDE_CHAT_ANTHROPIC, NULL, false, false},
    {"anthropic", TIDE_CHAT_ANTHROPIC, NULL, true, true},
    {"anthropic 2026, streamed", TIDE_CHAT_ANTHROPIC, "2026-10-21", false, false},
    {"anthropic 2026", TIDE_CHAT_ANTHROPIC, "2026-10-21", true, true},
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
    f->requests++;
    (void)snprintf(f->url, sizeof f->url, "%s", request->url);
    (void)snprintf(f->method, sizeof f->method, "%s", request->method);
    copy_header(request, "Authorization", f->authorization, sizeof f->authorization);
    copy_header(request, "x-api-key", f->plain_key, sizeof f->plain_key);
    copy_header(request, "anthropic-version", f->version, sizeof f->version);
    copy_header(request, "Accept", f->accept, sizeof f->accept);
    tide_buf_clear(&f->body);
    TIDE_SIM_EXPECT(f->sim,
                    tide_buf_add(&f->body, request->body.data, request->body.bytes) == TIDE_OK);
    if (f->say == NULL) {
        tide_sim_cloud_call(f->cloud, request, now_unix_ms, rng, answer);
        return;
    }
    answer->http = f->say_http;
    tide_sim_answer_header(answer, "Content-Type",
                           f->say_type != NULL ? f->say_type : "application/json");
    (void)tide_buf_add_text(&answer->body, f->say);
}

/* ---- life ---- */

/* A call that has to wait for units comes back by itself; everything else is the test's business,
 * unless it says so. */
static tide_status handler(tide_job *job, void *context, tide_error *err)
{
    struct fixture *f = context;
    tide_error why = {TIDE_OK, 0, ""}; /* two jobs may run at once */
    const uint64_t start_ms = tide_job_now_ms(job);
    const tide_status rc = f->play(f, job, &why);
    f->status = rc;
    f->err = why;
    f->took_ms = tide_job_now_ms(job) - start_ms;
    if (rc != TIDE_AGAIN && !f->give_up)
        return TIDE_OK;
    *err = why;
    return rc;
}

static void begin_engine(struct fixture *f)
{
    tide_world *world = tide_sim_world(f->sim);
    tide_buf grant;
    OK(f,
       tide_secrets_open(world, "/secrets", TIDE_SECRETS_FILES, tide_mem_heap(), &f->secrets, err));
    tide_buf_init(&grant, tide_mem_heap(), 1000);
    OK(f, tide_oauth_key(KEY, "1", &grant, err));
    OK(f, tide_secrets_put(f->secrets, "chat/" NAME "/token", tide_buf_text(&grant), err));
    tide_buf_done(&grant);
    const struct tide_tokens_options tokens_options = {.provider = &tide_oauth_google,
                                                       .secret = "chat/" NAME "/token",
                                                       .account = NAME,
                                                       .sign_in =
                                                           "tidemark account add chat " NAME};
    OK(f, tide_tokens_open(world, f->secrets, &tokens_options, tide_mem_heap(), &f->tokens, err));
    const struct tide_engine_options options = {
        .state_dir = "/state", .world = world, .no_control_socket = true, .workers = 2};
    OK(f, tide_engine_open(&options, &f->engine, err));
    const struct tide_kind kind = {.name = "play", .handler = handler, .context = f};
    OK(f, tide_engine_kind(f->engine, &kind, &f->kind, err));
    OK(f, tide_engine_account(f->engine, NAME, "chat", &f->account, err));
    OK(f, tide_engine_start(f->engine, err));
}

struct fixture *begin(void)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->cloud = tide_sim_cloud_new(&(struct box_options){.seed = 3, .quota = BOX_QUOTA_2026});
    struct tide_sim_options options = {.net = {.latency_us_max = 20000}};
    options.net.provide = provide;
    options.net.provide_arg = f;
    f->sim = tide_sim_new(11, &options);
    tide_buf_init(&f->body, tide_mem_heap(), (size_t)1 << 28);
    tide_mem_faulty_once(&f->mem, UINT64_MAX);
    begin_engine(f);
    speak(f, &ways[0], NULL);
    return f;
}

void speak(struct fixture *f, const struct way *way, void (*change)(struct tide_chat_options *o))
{
    struct tide_chat_options options = {.dialect = way->dialect,
                                        .endpoint = ORIGIN,
                                        .model = "tide-fast",
                                        .tokens = f->tokens,
                                        .version = way->version,
                                        .no_stream = way->no_stream,
                                        .key_plain = way->key_plain,
                                        .world = tide_sim_world(f->sim)};
    if (change != NULL)
        change(&options);
    tide_chat_close(f->chat);
    OK(f, tide_chat_open(&options, &f->mem.base, &f->chat, err));
    f->way = way;
}

void forget(struct fixture *f)
{
    tide_chat_answer_done(&f->answer);
}

void finish(struct fixture *f)
{
    forget(f);
    OK(f, tide_engine_close(f->engine));
    tide_chat_close(f->chat);
    assert_int_equal(f->mem.bytes_live, 0);
    tide_buf_done(&f->body);
    tide_tokens_close(f->tokens);
    tide_secrets_close(f->secrets);
    tide_sim_free(f->sim);
    tide_sim_cloud_free(f->cloud);
    free(f);
}

/* ---- calls ---- */

tide_status run(struct fixture *f, play *call)
{
    f->play = call;
    f->status = TIDE_BUG;
    f->requests = 0;
    const struct tide_spec spec = {.kind = f->kind, .account = f->account};
    OK(f, tide_enqueue(f->engine, &spec, 1, NULL, err));
    OK(f, tide_engine_wait(f->engine, TIDE_WAIT_FOREVER, err));
    assert_null(strstr(f->err.text, KEY)); /* CHT3 */
    if (f->status != TIDE_OK) {
        assert_int_equal(f->err.status, f->status);
        assert_true(f->err.text[0] != '\0');
    }
    return f->status;
}

static tide_status play_talk(struct fixture *f, tide_job *job, tide_error *err)
{
    forget(f);
    return tide_chat_call(f->chat, job, f->talk, NULL, &f->answer, err);
}

tide_status say(struct fixture *f, const struct tide_chat_talk *talk)
{
    f->talk = talk;
    return run(f, play_talk);
}

void say_ok(struct fixture *f, const struct tide_chat_talk *talk)
{
    const tide_status rc = say(f, talk);
    if (rc != TIDE_OK)
        fail_msg("%s: %s: %s", f->way->name, tide_status_name(rc), f->err.text);
}

void say_fails(struct fixture *f, const struct tide_chat_talk *talk, tide_status status,
               const char *text)
{
    const tide_status rc = say(f, talk);
    if (rc != status || strstr(f->err.text, text) == NULL)
        fail_msg("%s: %s, not %s: \"%s\" has no \"%s\"", f->way->name, tide_status_name(rc),
                 tide_status_name(status), f->err.text, text);
}

json_t *body_of(struct fixture *f)
{
    json_t *value = NULL;
    OK(f, tide_json_parse(tide_buf_text(&f->body), &value, err));
    return value;
}

/* ---- the cloud ---- */

void fault(struct fixture *f, const char *rule)
{
    char text[300];
    (void)snprintf(text, sizeof text, "{\"method\":\"chat.*\",%s}", rule);
    tide_sim_cloud_fault(f->cloud, f->sim, text);
}

void no_faults(struct fixture *f)
{
    json_decref(
        tide_sim_cloud_control(f->cloud, f->sim, "DELETE", "/_cloud/faults", TIDE_TEXT_NONE));
}

void fixture_reply(struct fixture *f, const char *contains, const char *reply)
{
    json_auto_t *fixture = json_pack("{s:s,s:s}", "contains", contains, "reply", reply);
    assert_non_null(fixture);
    OK(f, box_chat_add_fixture(box_cloud_chat(tide_sim_cloud_box(f->cloud)), fixture, err));
}

uint64_t count(struct fixture *f, const char *part, const char *what)
{
    json_auto_t *stats =
        tide_sim_cloud_control(f->cloud, f->sim, "GET", "/_cloud/stats", TIDE_TEXT_NONE);
    return (uint64_t)json_integer_value(
        json_object_get(json_object_get(json_object_get(stats, part), KEY), what));
}

/* ---- talks ---- */

static const struct tide_chat_part word[] = {
    {.kind = TIDE_CHAT_TEXT, .text = {"Hi there, how are you? \xc5\x99\xf0\x9f\x98\x80", 29}}};
static const struct tide_chat_message words[] = {{TIDE_CHAT_USER, word, 1}};
const struct tide_chat_talk hello = {
    .system = {"You are kind.", 13}, .messages = words, .messages_count = 1, .tokens_max = 500};

#define MAIL                                                                                       \
    "From: Billing <billing@hosting.example>\nSubject: Invoice 2026-117\n\nDear customer,\n"       \
    "please find attached invoice 2026-117 over EUR 1,250.00, payable by 2026-10-15."
static const struct tide_chat_part letter[] = {
    {.kind = TIDE_CHAT_TEXT, .text = {MAIL, sizeof MAIL - 1}}};
static const struct tide_chat_message letters[] = {{TIDE_CHAT_USER, letter, 1}};
#define SCHEMA                                                                                     \
    "{\"type\":\"object\",\"properties\":{\"category\":{\"type\":\"string\",\"enum\":["            \
    "\"needs_response\",\"payment_request\",\"fyi\"]}},\"required\":[\"category\"]}"
const struct tide_chat_talk mail = {.system = {"Classify the mail.", 18},
                                    .messages = letters,
                                    .messages_count = 1,
                                    .json = true,
                                    .schema = {SCHEMA, sizeof SCHEMA - 1},
                                    .has_temperature = true,
                                    .temperature_milli = 200};

#define QUERY "{\"type\":\"object\",\"properties\":{\"query\":{\"type\":\"string\"}}}"
static const struct tide_chat_tool tools[] = {
    {{"set_category", 12}, {"Put the mail into a category", 28}, {SCHEMA, sizeof SCHEMA - 1}},
    {{"search_mail", 11}, {"Search the archive", 18}, {QUERY, sizeof QUERY - 1}}};
const struct tide_chat_talk tooled = {.system = {"Call a tool.", 12},
                                      .messages = letters,
                                      .messages_count = 1,
                                      .tools = tools,
                                      .tools_count = 2,
                                      .choice = TIDE_CHAT_CHOICE_ANY,
                                      .tokens_max = 900};
