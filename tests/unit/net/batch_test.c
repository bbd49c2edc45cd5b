/* The batcher alone (BAT1 to BAT4 of net/batch/batch.h), with a server that is the test's.
 *
 * Goal: each caller gets the answer of its own part, once, whatever happened to the others.
 * Method: an engine in the simulated world whose jobs each ask for one item; the server
 * takes the request apart, decides a fate for every part from the seed, writes it down
 * and answers; every job compares what it got with what was written down. */
#include "base/json.h"
#include "base/rng.h"
#include "net/batch/batch.h"
#include "net/batch/multipart.h"
#include "net/judge_google.h"
#include "net/oauth/google.h"
#include "net/secrets.h"
#include "sim.h"
#include "support/test.h"
#include "tidemark_inside.h"
#include "support/scale.h"
#include "support/heap.h"

#define ORIGIN "http://127.0.0.1:4443"
enum { ITEMS = 120, WORKERS = 24, IN_FLIGHT = 3, SIZE_MAX_ = 20 };

enum fate {
    FINE,
    TWICE,   /* answered a second time, wrongly */
    MISSING, /* not answered */
    BROKEN,  /* its head makes no sense */
    FAILED,  /* 500 */
    GONE_,   /* 404 */
    LIMITED, /* 429 */
    FATES,
};

struct item {
    enum fate fate;
    unsigned asked;       /* parts that the server saw */
    unsigned ended;       /* outcomes that the job saw */
    tide_cancel *running; /* of the handler that asks now; NULL: none does */
    tide_status status;
    tide_buf body;
};

struct fixture {
    tide_sim *sim;
    tide_secrets *secrets;
    tide_tokens *tokens;
    tide_api *api;
    tide_engine *engine;
    tide_batcher *batcher;
    struct tide_mem_faulty mem;
    uint32_t kind, account;
    tide_status expect;  /* instead of what the fate says */
    bool grant_gone;     /* no token is to be had */
    bool ungoverned;     /* jobs of no account: all workers ask at once */
    bool once;           /* an outcome is compared and not tried again */
    unsigned fates;      /* of the first so many */
    enum fate fate;      /* or this one, when fates is 0 */
    char token_good[16]; /* "": any */
    const struct tide_batch_format *format;
    unsigned retry_after_seen; /* by the judge, in the head of a part */
    int whole_http;            /* answers the whole call with it; 0: with parts */
    uint64_t think_us;         /* until the first byte */
    unsigned refreshes, requests, parts_most, refused_401;
    uint64_t ids[ITEMS]; /* of the jobs */
    struct item items[ITEMS];
};

#define OK(f, call)                                                                                \
    do {                                                                                           \
        tide_error err_ = {TIDE_OK, 0, ""};                                                        \
        tide_error *err = &err_;                                                                   \
        const tide_status rc_ = (call);                                                            \
        if (rc_ != TIDE_OK)                                                                        \
            tide_sim_fail((f)->sim, "%s: %s: %s", #call, tide_status_name(rc_), err->text);        \
        (void)err;                                                                                 \
    } while (0)

/* ---- the server ---- */

static const struct tide_batch_format lines; /* below */

static void answer_part(const struct fixture *f, tide_buf *out, unsigned part, int http,
                        const char *body)
{
    if (f->format == &lines) {
        (void)tide_buf_print(out, "q%u %d 7 %s\n", part, http, body);
        return;
    }
    (void)tide_buf_print(out,
                         "--xyz\r\nContent-Type: application/http\r\nContent-ID: <response-q%u>"
                         "\r\n\r\nHTTP/1.1 %d Said\r\nContent-Type: application/json\r\n"
                         "Content-Length: %zu\r\n\r\n%s\r\n",
                         part, http, strlen(body), body);
}

static void body_of(unsigned item, char body[64])
{
    (void)snprintf(body, 64, "{\"item\":%u,\"square\":%u}", item, item * item);
}

static void serve_part(struct fixture *f, tide_rng *rng, unsigned part, unsigned number,
                       tide_buf *out)
{
    struct item *item = &f->items[number];
    char body[64];
    body_of(number, body);
    item->asked++;
    item->fate = f->fates == 0 ? f->fate : (enum fate)tide_rng_below(rng, f->fates);
    switch (item->fate) {
    case TWICE:
        answer_part(f, out, part, 200, body);
        answer_part(f, out, part, 200, "{\"item\":\"of nobody\"}");
        return;
    case MISSING:
        return;
    case BROKEN:
        (void)tide_buf_print(out,
                             "--xyz\r\nContent-Type: application/http\r\nContent-ID: "
                             "<response-q%u>\r\n\r\nnothing that is HTTP\r\n",
                             part);
        return;
    case FAILED:
        answer_part(f, out, part, 500,
                    "{\"error\":{\"code\":500,\"errors\":[{\"reason\":\"backendError\"}]}}");
        return;
    case GONE_:
        answer_part(f, out, part, 404,
                    "{\"error\":{\"code\":404,\"errors\":[{\"reason\":\"notFound\"}]}}");
        return;
    case LIMITED:
        answer_part(f, out, part, 429,
                    "{\"error\":{\"code\":429,\"errors\":[{\"reason\":\"rateLimitExceeded\"}]}}");
        return;
    case FINE:
    case FATES:
        answer_part(f, out, part, 200, body);
        return;
    }
}

static bool token_refused(const struct fixture *f, const struct tide_request *request)
{
    char wanted[32];
    (void)snprintf(wanted, sizeof wanted, "Bearer %s", f->token_good);
    for (size_t i = 0; f->token_good[0] != '\0' && i < request->headers_count; i++)
        if (tide_text_equal(request->headers[i].name, TIDE_TEXT("Authorization")))
            return !tide_text_equal(request->headers[i].value, tide_text_of(wanted));
    return false;
}

static void provide(void *arg, const struct tide_request *request, uint64_t now_unix_ms,
                    tide_rng *rng, struct tide_sim_answer *answer)
{
    struct fixture *f = arg;
    unsigned parts = 0;
    (void)now_unix_ms;
    answer->http = 200;
    if (strcmp(request->url, ORIGIN "/token") == 0 && f->grant_gone) {
        answer->http = 400;
        tide_sim_answer_header(answer, "Content-Type", "application/json");
        (void)tide_buf_add_text(&answer->body, "{\"error\":\"invalid_grant\"}");
        return;
    }
    if (strcmp(request->url, ORIGIN "/token") == 0) {
        tide_sim_answer_header(answer, "Content-Type", "application/json");
        (void)tide_buf_print(&answer->body,
                             "{\"access_token\":\"me-%u\",\"expires_in\":3599,"
                             "\"token_type\":\"Bearer\"}",
                             ++f->refreshes);
        return;
    }
    const bool refused = token_refused(f, request);
    f->requests++;
    answer->think_us = f->think_us;
    if (f->whole_http != 0) {
        answer->http = f->whole_http;
        tide_sim_answer_header(answer, "Content-Type", "application/json");
        (void)tide_buf_print(&answer->body, "{\"error\":{\"code\":%d}}", f->whole_http);
        return;
    }
    tide_sim_answer_header(answer, "Content-Type", "multipart/mixed; boundary=xyz");
    char *text = strndup(request->body.data, request->body.bytes);
    const bool plain = f->format == &lines;
    for (char *at = text; (at = strstr(at, plain ? "(q" : "Content-ID: <q")) != NULL;
         at++, parts++) {
        unsigned part = 0;
        unsigned number = 0;
        const int found =
            plain ? sscanf(at, "(q%u) POST /item/%u", &part, &number)
                  : sscanf(at, "Content-ID: <q%u>\r\n\r\nPOST /item/%u", &part, &number);
        TIDE_SIM_EXPECT(f->sim, found == 2);
        TIDE_SIM_EXPECT(f->sim, part == parts && number < ITEMS);
        if (refused)
            answer_part(f, &answer->body, part, 401,
                        "{\"error\":{\"code\":401,\"errors\":[{\"reason\":\"authError\"}]}}");
        else
            serve_part(f, rng, part, number, &answer->body);
    }
    free(text);
    answer_part(f, &answer->body, 77777, 200, "{\"item\":\"nobody asked for\"}");
    (void)tide_buf_add_text(&answer->body, plain ? "end\n" : "--xyz--\r\n");
    f->refused_401 += refused ? 1 : 0;
    f->parts_most = parts > f->parts_most ? parts : f->parts_most;
}

/* ---- another wire format ---- */

/* A part is a line, "(q0) POST /item/7 {}"; its answer too, "q0 200 7 {...}", where the 7 is its
 * Retry-After.  "end" ends it. */
struct line_reader {
    tide_mem *mem;
    struct tide_batch_events events;
    tide_buf line;
    bool ended;
};

static tide_status lines_write(const struct tide_batch_part *parts, unsigned count,
                               const char *boundary, tide_buf *type_out, tide_buf *body_out)
{
    (void)boundary;
    tide_status rc = tide_buf_add_text(type_out, "text/x-lines");
    for (unsigned i = 0; rc == TIDE_OK && i < count; i++)
        rc = tide_buf_print(body_out, "(q%u) %s %s %.*s\n", i, parts[i].verb, parts[i].path,
                            (int)parts[i].body.bytes, parts[i].body.data);
    return rc;
}

static tide_status lines_new(tide_text type, const struct tide_batch_events *events, tide_mem *mem,
                             void **reader_out, tide_error *err)
{
    (void)type;
    (void)err;
    struct line_reader *self = tide_mem_new(mem, sizeof *self);
    if (self == NULL)
        return TIDE_NO_MEMORY;
    self->mem = mem;
    self->events = *events;
    tide_buf_init(&self->line, mem, 1000);
    *reader_out = self;
    return TIDE_OK;
}

static tide_status lines_take(struct line_reader *self)
{
    const struct tide_batch_events *events = &self->events;
    const char *line = tide_buf_cstr(&self->line);
    char id[16];
    char wait[16];
    int http = 0;
    int at = 0;
    if (strcmp(line, "end") == 0)
        self->ended = true;
    if (sscanf(line, "%15s %d %15s %n", id, &http, wait, &at) != 3)
        return TIDE_OK;
    const struct tide_header header = {TIDE_TEXT("Retry-After"), tide_text_of(wait)};
    tide_status rc = events->on_part(events->arg, tide_text_of(id), http);
    if (rc == TIDE_OK)
        rc = events->on_bytes(events->arg, line + at, strlen(line + at));
    return rc == TIDE_OK ? events->on_end(events->arg, true, &header, 1) : rc;
}

static tide_status lines_read(void *reader, const char *bytes, size_t count)
{
    struct line_reader *self = reader;
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < count; i++) {
        if (bytes[i] != '\n') {
            rc = tide_buf_add(&self->line, &bytes[i], 1);
            continue;
        }
        rc = lines_take(self);
        tide_buf_clear(&self->line);
    }
    return rc;
}

static tide_status lines_end(void *reader, tide_error *err)
{
    const struct line_reader *self = reader;
    return self->ended ? TIDE_OK : tide_error_set(err, TIDE_SERVER, "no end");
}

static void lines_free(void *reader)
{
    struct line_reader *self = reader;
    if (self == NULL)
        return;
    tide_buf_done(&self->line);
    tide_mem_free(self->mem, self, sizeof *self);
}

enum { LINES_MAX = 5 };
static const struct tide_batch_format lines = {.parts_max = LINES_MAX,
                                               .write = lines_write,
                                               .reader_new = lines_new,
                                               .reader_write = lines_read,
                                               .reader_end = lines_end,
                                               .reader_free = lines_free};

/* ---- the jobs ---- */

static tide_status take(void *arg, const char *bytes, size_t count)
{
    return tide_buf_add(arg, bytes, count);
}

static void forget(void *arg)
{
    tide_buf_clear(arg);
}

static tide_status expected(enum fate fate)
{
    switch (fate) {
    case GONE_:
        return TIDE_GONE;
    case LIMITED:
        return TIDE_THROTTLED;
    case MISSING:
    case BROKEN:
    case FAILED:
        return TIDE_SERVER;
    case FINE:
    case TWICE:
    case FATES:
        break;
    }
    return TIDE_OK;
}

static tide_status handler(tide_job *job, void *context, tide_error *err)
{
    struct fixture *f = context;
    uint64_t number = 0;
    char path[32];
    char body[64];
    tide_error why = {TIDE_OK, 0, ""};
    const tide_text payload = tide_job_payload(job); /* {"i":7} */
    TIDE_SIM_EXPECT(
        f->sim, payload.bytes > 6 &&
                    tide_text_to_u64((tide_text){payload.data + 5, payload.bytes - 6}, &number) &&
                    number < ITEMS);
    struct item *item = &f->items[number];
    (void)snprintf(path, sizeof path, "/item/%" PRIu64, number);
    tide_buf_clear(&item->body);
    const struct tide_batch_call call = {.method = 0,
                                         .path = path,
                                         .body = TIDE_TEXT("{}"),
                                         .expected_bytes = 100,
                                         .sink = take,
                                         .restart = forget,
                                         .sink_arg = &item->body};
    item->running = (tide_cancel *)(uintptr_t)tide_job_cancellation(job);
    const tide_status rc = tide_batch_ask(f->batcher, job, &call, &why);
    item->running = NULL;
    TIDE_SIM_EXPECT(f->sim, tide_batcher_check(f->batcher));
    if (rc == TIDE_AGAIN || rc == TIDE_CANCELED || rc == TIDE_STOPPED) {
        *err = why;
        return rc;
    }
    body_of((unsigned)number, body);
    if (rc == TIDE_OK && !tide_text_equal(tide_buf_text(&item->body), tide_text_of(body)))
        tide_sim_fail(f->sim, "item %" PRIu64 " got %s", number, tide_buf_cstr(&item->body));
    if (f->once && rc != (f->expect != TIDE_OK ? f->expect : expected(item->fate)))
        tide_sim_fail(f->sim, "item %" PRIu64 ", fate %d: %s, %s", number, (int)item->fate,
                      tide_status_name(rc), why.text);
    if (rc != TIDE_OK && !f->once)
        return tide_job_again(job, tide_job_now_ms(job) + 100);
    item->status = rc;
    item->ended++;
    return TIDE_OK;
}

/* ---- life ---- */

static const char grant[] =
    "{\"v\":1,\"type\":\"user\",\"client_id\":\"c\",\"client_secret\":\"s\","
    "\"refresh_token\":\"r\",\"token_url\":\"" ORIGIN "/token\",\"revoke_url\":"
    "\"" ORIGIN "/revoke\",\"scopes\":\"s\",\"access_token\":\"me-0\","
    "\"expires_unix_ms\":4000000000000}";

static const struct tide_api_method methods[] = {{"items.ask", "POST", 1, true}};
/* Of one test at a time. */
static struct fixture *judged;

static tide_status judge(const struct tide_response *response, uint64_t *retry_after_ms_out,
                         tide_error *err)
{
    if (tide_text_equal(tide_response_header(response, "Retry-After"), TIDE_TEXT("7")))
        judged->retry_after_seen++;
    return tide_google_judge(response, retry_after_ms_out, err);
}

static const struct tide_provider_net provider = {
    .name = "test API", .url = ORIGIN, .judge = judge, .methods = methods, .methods_count = 1};

static struct fixture *begin_format(uint64_t seed, const struct tide_sim_net_options *net,
                                    unsigned size, const struct tide_batch_format *format)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->format = format;
    judged = f;
    struct tide_sim_options options = {.net = *net};
    options.net.provide = provide;
    options.net.provide_arg = f;
    f->sim = tide_sim_new(seed, &options);
    f->fates = FINE + 1;
    tide_mem_faulty_once(&f->mem, UINT64_MAX);
    for (unsigned i = 0; i < ITEMS; i++)
        tide_buf_init(&f->items[i].body, tide_mem_heap(), 1000);
    tide_world *world = tide_sim_world(f->sim);
    OK(f,
       tide_secrets_open(world, "/secrets", TIDE_SECRETS_FILES, tide_mem_heap(), &f->secrets, err));
    OK(f, tide_secrets_put(f->secrets, "me/token", tide_text_of(grant), err));
    const struct tide_tokens_options tokens_options = {.provider = &tide_oauth_google,
                                                       .secret = "me/token",
                                                       .account = "me",
                                                       .sign_in = "sign in"};
    OK(f, tide_tokens_open(world, f->secrets, &tokens_options, tide_mem_heap(), &f->tokens, err));
    const struct tide_api_options api = {.provider = &provider, .tokens = f->tokens};
    OK(f, tide_api_open(&api, &f->mem.base, &f->api, err));
    const struct tide_batch_options batches = {.api = f->api,
                                               .path = "/batch",
                                               .format = format,
                                               .world = world,
                                               .in_flight_max = IN_FLIGHT,
                                               .size_start = size,
                                               .size_max = SIZE_MAX_};
    OK(f, tide_batcher_open(&batches, &f->mem.base, &f->batcher, err));
    const struct tide_engine_options engine = {
        .state_dir = "/state", .world = world, .no_control_socket = true, .workers = WORKERS};
    OK(f, tide_engine_open(&engine, &f->engine, err));
    const struct tide_kind kind = {.name = "ask", .handler = handler, .context = f};
    OK(f, tide_engine_kind(f->engine, &kind, &f->kind, err));
    OK(f, tide_engine_account(f->engine, "me", "console", &f->account, err));
    OK(f, tide_engine_start(f->engine, err));
    return f;
}

static struct fixture *begin_sized(uint64_t seed, const struct tide_sim_net_options *net,
                                   unsigned size)
{
    return begin_format(seed, net, size, &tide_batch_multipart);
}

static struct fixture *begin(uint64_t seed, const struct tide_sim_net_options *net)
{
    return begin_sized(seed, net, 4);
}

static void enqueue_all(struct fixture *f)
{
    for (unsigned i = 0; i < ITEMS; i++) {
        const char *payload = textf("{\"i\":%u}", i);
        const struct tide_spec spec = {
            .kind = f->kind, .account = f->ungoverned ? 0 : f->account, .payload = payload};
        OK(f, tide_enqueue(f->engine, &spec, 1, &f->ids[i], err));
    }
}

static void ask_all(struct fixture *f)
{
    enqueue_all(f);
    OK(f, tide_engine_wait(f->engine, TIDE_WAIT_FOREVER, err));
    for (unsigned i = 0; i < ITEMS; i++) /* BAT1 */
        if (f->items[i].ended != 1)
            tide_sim_fail(f->sim, "item %u has %u outcomes", i, f->items[i].ended);
}

static void finish(struct fixture *f)
{
    OK(f, tide_engine_close(f->engine));
    tide_batcher_close(f->batcher);
    tide_api_close(f->api);
    assert_int_equal(f->mem.bytes_live, 0);
    tide_tokens_close(f->tokens);
    tide_secrets_close(f->secrets);
    for (unsigned i = 0; i < ITEMS; i++)
        tide_buf_done(&f->items[i].body);
    tide_sim_free(f->sim);
    free(f);
}

/* ---- the tests ---- */

static const struct tide_sim_net_options faithful = {.latency_us_max = 20000};

TEST(parts_fly_together_and_the_size_grows)
{
    const struct tide_sim_net_options far = {.latency_us_max = 800000};
    struct fixture *f = begin(1, &far);
    struct tide_batch_state stats;
    ask_all(f);
    tide_batcher_state(f->batcher, &stats);
    assert_int_equal(stats.parts, ITEMS);
    assert_int_equal(stats.requests, f->requests);
    assert_int_equal(stats.missing + stats.refused + stats.waiting + stats.in_flight, 0);
    if (f->requests >= ITEMS / 2)
        fail_msg("%u requests of at most %u parts", f->requests, f->parts_most);
    assert_true(f->parts_most <= SIZE_MAX_ && f->parts_most >= 4);
    assert_true(stats.size > 4);
    for (unsigned i = 0; i < ITEMS; i++)
        assert_int_equal(f->items[i].asked, 1);
    finish(f);
}

/* Failed calls of the account, as the engine shows them (E9.1). */
static uint64_t errors_of(struct fixture *f, const char *code)
{
    json_auto_t *snapshot = NULL;
    tide_auto_buf text = tide_buf_heap(1 << 20);
    OK(f, tide_engine_snapshot(f->engine, &text, err));
    OK(f, tide_json_parse(tide_buf_text(&text), &snapshot, err));
    const json_t *account = json_array_get(json_object_get(snapshot, "accounts"), 0);
    return (uint64_t)json_integer_value(
        json_object_get(json_object_get(account, "errors_by_code"), code));
}

/* BAT3: every fate beside every other one, in 40 worlds. */
TEST(the_outcome_of_a_part_is_its_own)
{
    unsigned seen[FATES] = {0};
    for (uint64_t seed = 1; seed <= scaled(40); seed++) {
        struct fixture *f = begin(seed, &faithful);
        struct tide_batch_state stats;
        f->once = true;
        f->fates = seed % 2 == 0 ? (unsigned)FATES : (unsigned)LIMITED;
        ask_all(f);
        tide_batcher_state(f->batcher, &stats);
        unsigned fates[FATES] = {0};
        for (unsigned i = 0; i < ITEMS; i++)
            fates[f->items[i].fate]++;
        if (stats.missing != fates[MISSING] + fates[BROKEN] || stats.refused != fates[LIMITED])
            fail_msg("seed %" PRIu64 ": %" PRIu64 " missing, %" PRIu64 " refused", seed,
                     stats.missing, stats.refused);
        assert_int_equal(errors_of(f, "404"), fates[GONE_]);
        assert_int_equal(errors_of(f, "429"), fates[LIMITED]);
        assert_int_equal(errors_of(f, "500"), fates[FAILED]);
        assert_int_equal(errors_of(f, "2xx"), 0);
        for (unsigned i = 0; i < FATES; i++)
            seen[i] += fates[i];
        finish(f);
    }
    for (unsigned i = 0; i < FATES; i++)
        assert_true(seen[i] > 0);
}

/* Another wire format: the same fates, its own number of parts, and each part's headers reach the
 * judge. */
TEST(another_format_serves_the_same)
{
    unsigned seen = 0;
    for (uint64_t seed = 1; seed <= scaled(10); seed++) {
        const struct tide_sim_net_options far = {.latency_us_max = 800000};
        struct fixture *f = begin_format(seed, &far, 4, &lines);
        f->once = true;
        f->fates = LIMITED;
        ask_all(f);
        assert_true(f->parts_most > 1 && f->parts_most <= LINES_MAX);
        seen += f->retry_after_seen;
        finish(f);
        f = begin_format(seed, &faithful, 4, &lines);
        (void)snprintf(f->token_good, sizeof f->token_good, "me-1");
        f->once = true;
        ask_all(f);
        assert_int_equal(f->refreshes, 1);
        finish(f);
    }
    assert_true(seen > 0);
}

/* A server that refuses a rate makes the batches smaller, down to one part (BAT4). */
TEST(a_refused_rate_halves_the_size)
{
    struct fixture *f = begin(5, &faithful);
    struct tide_batch_state stats;
    f->once = true;
    f->fates = FATES;
    ask_all(f);
    tide_batcher_state(f->batcher, &stats);
    assert_true(stats.refused > 0);
    assert_true(stats.size >= 1 && stats.size < 4);
    finish(f);
}

/* One part alone, whose outcome is `expect`; the size afterwards. */
static uint32_t size_after(struct fixture *f, tide_status expect)
{
    const struct tide_spec spec = {.kind = f->kind, .account = f->account, .payload = "{\"i\":7}"};
    struct tide_batch_state stats;
    f->fates = 0;
    f->once = true;
    f->expect = expect;
    OK(f, tide_enqueue(f->engine, &spec, 1, NULL, err));
    OK(f, tide_engine_wait(f->engine, TIDE_WAIT_FOREVER, err));
    assert_int_equal(f->items[7].ended, 1);
    tide_batcher_state(f->batcher, &stats);
    finish(f);
    return stats.size;
}

/* B13: whatever refuses the whole call halves the size, and never makes it grow. */
TEST(a_whole_call_that_fails_halves_the_size)
{
    static const struct {
        int http;
        tide_status status;
    } refusals[] = {{429, TIDE_THROTTLED}, {500, TIDE_SERVER},    {502, TIDE_SERVER},
                    {503, TIDE_SERVER},    {413, TIDE_PERMANENT}, {0, TIDE_TIMEOUT}};
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++)
        for (unsigned size = 1; size <= 8; size *= 8) {
            struct fixture *f = begin_sized(20 + i, &faithful, size);
            f->whole_http = refusals[i].http;
            f->think_us = refusals[i].http == 0 ? 400 * 1000000ull : 0;
            const uint32_t after = size_after(f, refusals[i].status);
            if (after != (size == 1 ? 1 : size / 2))
                fail_msg("HTTP %d: %u became %" PRIu32, refusals[i].http, size, after);
        }
}

/* B13: a full batch with a part that failed did not go well; only one that did grows. */
TEST(a_batch_grows_only_when_all_parts_went_well)
{
    struct fixture *f = begin_sized(31, &faithful, 1);
    f->fate = FINE;
    assert_int_equal(size_after(f, TIDE_OK), 2);
    static const enum fate failing[] = {MISSING, BROKEN, FAILED, GONE_};
    for (size_t i = 0; i < sizeof failing / sizeof failing[0]; i++) {
        f = begin_sized(32 + i, &faithful, 1);
        f->fate = failing[i];
        assert_int_equal(size_after(f, expected(failing[i])), 1);
    }
}

/* B4, B13: 70 s without a byte is no failure; five minutes are. */
TEST(a_slow_server_is_waited_for)
{
    struct fixture *f = begin(41, &faithful);
    f->think_us = 70 * 1000000ull;
    (void)size_after(f, TIDE_OK);
    f = begin(42, &faithful);
    f->think_us = 290 * 1000000ull;
    (void)size_after(f, TIDE_OK);
    f = begin(43, &faithful);
    f->think_us = 301 * 1000000ull;
    (void)size_after(f, TIDE_TIMEOUT);
}

/* A network that loses, cuts, stalls and scrambles answers: all items come in the end, each
 * to the one who asked. */
TEST(every_caller_is_served_in_the_end)
{
    const struct tide_sim_net_options rough = {.latency_us_max = 40000,
                                               .refuse_permille = 30,
                                               .loss_permille = 10,
                                               .reset_permille = 50,
                                               .stall_permille = 10,
                                               .truncate_permille = 100,
                                               .duplicate_permille = 50,
                                               .slow_permille = 50};
    for (uint64_t seed = 1; seed <= scaled(20); seed++) {
        struct fixture *f = begin(seed, &rough);
        f->fates = GONE_;
        ask_all(f);
        for (unsigned i = 0; i < ITEMS; i++)
            assert_int_equal(f->items[i].status, TIDE_OK);
        finish(f);
    }
}

/* The server looks at the token part by part: one that is refused is refreshed once,
 * without an error to a caller. */
TEST(a_token_that_parts_refuse_is_refreshed)
{
    struct fixture *f = begin(3, &faithful);
    (void)snprintf(f->token_good, sizeof f->token_good, "me-1");
    f->once = true;
    ask_all(f);
    assert_true(f->refused_401 > 0);
    assert_int_equal(f->refreshes, 1);
    for (unsigned i = 0; i < ITEMS; i++)
        assert_int_equal(f->items[i].asked, 1);
    finish(f);
}

/* There is no other token: all callers get that status, not a server error. */
TEST(a_grant_that_is_gone_is_told)
{
    struct fixture *f = begin(4, &faithful);
    (void)snprintf(f->token_good, sizeof f->token_good, "me-1");
    f->once = f->grant_gone = true;
    char payload[24] = "{\"i\":7}";
    const struct tide_spec spec = {.kind = f->kind, .account = f->account, .payload = payload};
    f->expect = TIDE_AUTH;
    OK(f, tide_enqueue(f->engine, &spec, 1, NULL, err));
    OK(f, tide_engine_wait(f->engine, TIDE_WAIT_FOREVER, err));
    assert_int_equal(f->items[7].ended, 1);
    assert_int_equal(f->items[7].status, TIDE_AUTH);
    finish(f);
}

/* ---- cancels ---- */

/* Cancels running jobs for good (user) or to be put back (preemption), several at the same instant, so
 * that two requests end before the caller that was chosen to send could wake up. */
/* BAT2, BAT5, BAT6: other limits, also lower ones, while calls are in flight and a caller was just
 * chosen to send (B12).  None waits forever, and a lower limit holds from the next request on. */
TEST(limits_change_while_callers_wait)
{
    unsigned lowered = 0;
    for (uint64_t seed = 1; seed <= scaled(60); seed++) {
        const struct tide_sim_net_options net = {.latency_us_max = seed % 3 == 0 ? 800000 : 60000};
        struct fixture *f = begin(seed, &net);
        tide_world *world = tide_sim_world(f->sim);
        tide_rng rng = tide_sim_rng(f->sim);
        struct tide_batch_state stats;
        unsigned most = IN_FLIGHT;
        f->ungoverned = true;
        enqueue_all(f);
        for (unsigned round = 0; round < 40; round++) {
            const uint64_t wait_us = tide_rng_below(&rng, 40000);
            OK(f, tide_world_sleep_until(world, tide_world_now_us(world) + wait_us, NULL));
            tide_batcher_state(f->batcher, &stats);
            TIDE_SIM_EXPECT(f->sim, stats.in_flight <= most);
            most = 1 + (unsigned)tide_rng_below(&rng, IN_FLIGHT + 2);
            lowered += stats.in_flight > most;
            tide_batcher_tune(f->batcher, most, 1 + (unsigned)tide_rng_below(&rng, SIZE_MAX_));
            TIDE_SIM_EXPECT(f->sim, tide_batcher_check(f->batcher));
            /* As it is after the change: a caller may have sent just before it. */
            tide_batcher_state(f->batcher, &stats);
            most = stats.in_flight > most ? stats.in_flight : most;
        }
        OK(f, tide_engine_wait(f->engine, TIDE_WAIT_FOREVER, err));
        for (unsigned i = 0; i < ITEMS; i++)
            if (f->items[i].ended != 1)
                tide_sim_fail(f->sim, "item %u has %u outcomes", i, f->items[i].ended);
        assert_true(f->parts_most <= SIZE_MAX_);
        finish(f);
    }
    assert_true(lowered > 0);
}

static void cancel_some(struct fixture *f, tide_rng *rng)
{
    tide_world *world = tide_sim_world(f->sim);
    for (unsigned round = 0; round < 40; round++) {
        const uint64_t wait_us = tide_rng_below(rng, 40000);
        OK(f, tide_world_sleep_until(world, tide_world_now_us(world) + wait_us, NULL));
        for (unsigned i = 0; i < ITEMS; i++)
            if (f->items[i].running != NULL && tide_rng_below(rng, 3) == 0)
                tide_world_cancel(world, f->items[i].running, TIDE_CANCEL_PREEMPT);
        OK(f, tide_cancel_job(f->engine, f->ids[tide_rng_below(rng, ITEMS)], err));
        TIDE_SIM_EXPECT(f->sim, tide_batcher_check(f->batcher));
    }
}

/* BAT1, BAT2, BAT5: jobs are canceled while they wait, are chosen, send or are in a batch.  Every other one
 * gets its own answer, and none waits forever: the simulation reports that as a deadlock. */
TEST(cancels_harm_no_other_caller)
{
    unsigned canceled = 0;
    for (uint64_t seed = 1; seed <= scaled(60); seed++) {
        const struct tide_sim_net_options net = {.latency_us_max = seed % 3 == 0 ? 800000 : 60000,
                                                 .stall_permille = seed % 5 == 0 ? 20 : 0,
                                                 .reset_permille = seed % 5 == 0 ? 20 : 0};
        struct fixture *f = begin(seed, &net);
        f->ungoverned = true;
        tide_rng rng = tide_sim_rng(f->sim);
        f->fates = seed % 2 == 0 ? (unsigned)GONE_ : FINE + 1;
        enqueue_all(f);
        cancel_some(f, &rng);
        OK(f, tide_engine_wait(f->engine, TIDE_WAIT_FOREVER, err));
        for (unsigned i = 0; i < ITEMS; i++) {
            const tide_status rc = tide_job_ended(f->engine, f->ids[i], NULL);
            canceled += rc == TIDE_CANCELED ? 1 : 0;
            if (rc == TIDE_OK ? f->items[i].ended != 1 : rc != TIDE_CANCELED)
                tide_sim_fail(f->sim, "item %u: %s, %u outcomes", i, tide_status_name(rc),
                              f->items[i].ended);
        }
        struct tide_batch_state stats;
        tide_batcher_state(f->batcher, &stats);
        assert_int_equal(stats.waiting + stats.in_flight, 0);
        finish(f);
    }
    assert_true(canceled > 0);
}
