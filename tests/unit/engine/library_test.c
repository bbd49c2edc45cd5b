/* What programs outside see of the engine, through the public header alone: layouts that stay,
 * reserved fields, settings by name and value, logs, calls.  The installed library itself is
 * tested by tests/e2e/library_test.sh. */
#include "tidemark.h"

#include "support/http_server.h"

#include <unistd.h>
#include <sqlite3.h>

#if defined(__LP64__)
#define SIZE(type, bytes) _Static_assert(sizeof(struct type) == (bytes), "struct " #type " grew");
#define FIELD(type, field, at, bytes)                                                              \
    _Static_assert(offsetof(struct type, field) == (at), #type "." #field " moved");               \
    _Static_assert(sizeof(((struct type *)0)->field) == (bytes), #type "." #field " changed");
#define NUMBER(name, number) _Static_assert((int)(name) == (number), #name " changed");
#include "abi/layout_0.2.h"
#include "support/ok.h"
#include "support/test.h"
#endif

struct stage {
    char dir[64];
    tide_engine *engine;
};

static int set_up(void **state)
{
    struct stage *stage = calloc(1, sizeof *stage);
    (void)snprintf(stage->dir, sizeof stage->dir, "/tmp/tide-library.XXXXXX");
    *state = stage;
    return mkdtemp(stage->dir) == NULL ? -1 : 0;
}

static int tear_down(void **state)
{
    struct stage *stage = *state;
    (void)tide_engine_close(stage->engine);
    const char *const left[] = {"state.db", "state.db-wal", "state.db-shm", "engine.lock",
                                "engine.sock"};
    for (size_t i = 0; i < sizeof left / sizeof left[0]; i++) {
        char path[96];
        (void)snprintf(path, sizeof path, "%s/%s", stage->dir, left[i]);
        (void)unlink(path);
    }
    (void)rmdir(stage->dir);
    free(stage);
    return 0;
}

static void open_engine(struct stage *stage, struct tide_engine_options options)
{
    tide_error err = {TIDE_OK, 0, ""};
    options.state_dir = stage->dir;
    if (tide_engine_open(&options, &stage->engine, &err) != TIDE_OK)
        fail_msg("%s", err.text);
}

static void refused(struct stage *stage, struct tide_engine_options options, const char *because)
{
    tide_error err = {TIDE_OK, 0, ""};
    options.state_dir = stage->dir;
    assert_int_equal(tide_engine_open(&options, &stage->engine, &err), TIDE_INVALID);
    assert_null(stage->engine);
    if (strstr(err.text, because) == NULL)
        fail_msg("\"%s\" does not speak of %s", err.text, because);
}

static tide_status nothing(tide_job *job, void *context, tide_error *err)
{
    (void)job;
    (void)context;
    (void)err;
    return TIDE_OK;
}

static tide_status fail_always(tide_job *job, void *context, tide_error *err)
{
    ++*(int *)context; /* one attempt at a time */
    assert_int_equal(tide_job_attempt(job), *(int *)context);
    return tide_error_set(err, TIDE_SERVER, "always");
}

static uint32_t define(struct stage *stage, tide_handler *handler, void *context)
{
    uint32_t kind = 0;
    struct tide_kind row = {.name = "kind", .handler = handler, .context = context};
    OK(tide_engine_kind(stage->engine, &row, &kind, NULL));
    return kind;
}

TEST(the_header_and_the_library_have_the_same_version)
{
    assert_string_equal(tide_version(), TIDEMARK_VERSION);
}

#define CASE(name) TEST_ON(name, struct stage *stage, set_up, tear_down)

/* A program that sets a field of a later version must learn that this library does not know it:
 * every single reserved byte is tried. */
CASE(a_reserved_field_that_is_used_is_refused)
{
    for (size_t i = 0; i < 8; i++) {
        struct tide_engine_options options = {0};
        options.reserved[i] = 1;
        refused(stage, options, "tide_engine_options");
    }
    for (size_t i = 0; i < 6; i++) {
        struct tide_engine_options options = {0};
        options.reserved_flags[i] = 1;
        refused(stage, options, tide_version());
    }
    open_engine(stage, (struct tide_engine_options){0});
    const uint32_t kind = define(stage, nothing, NULL);

    struct tide_kind other = {.name = "other", .handler = nothing};
    other.reserved[5] = 1;
    assert_int_equal(tide_engine_kind(stage->engine, &other, NULL, NULL), TIDE_INVALID);
    other.reserved[5] = 0;
    other.reserved_flags[3] = 1;
    assert_int_equal(tide_engine_kind(stage->engine, &other, NULL, NULL), TIDE_INVALID);

    /* Among many, so that nothing of the call is written. */
    struct tide_spec specs[3] = {{.kind = kind}, {.kind = kind}, {.kind = kind}};
    specs[2].reserved[3] = 1;
    assert_int_equal(tide_enqueue(stage->engine, specs, 3, NULL, NULL), TIDE_INVALID);
    specs[2].reserved[3] = 0;
    specs[2].reserved_flags[0] = 1;
    assert_int_equal(tide_enqueue(stage->engine, specs, 3, NULL, NULL), TIDE_INVALID);

    struct tide_schedule schedule = {.name = "often", .kind = kind, .period_ms = 1000};
    schedule.reserved[0] = 1;
    assert_int_equal(tide_engine_schedule(stage->engine, &schedule, NULL), TIDE_INVALID);

    OK(tide_engine_start(stage->engine, NULL));
    OK(tide_engine_wait(stage->engine, 60000, NULL));
    struct tide_progress progress;
    tide_engine_progress(stage->engine, &progress);
    assert_int_equal(progress.done, 0);
}

CASE(settings_are_given_by_name_and_value)
{
    const char *const unknown[] = {"workers.cuont=3", NULL};
    refused(stage, (struct tide_engine_options){.set = unknown}, "workers.cuont");
    const char *const wrong[] = {"workers.count=many", NULL};
    refused(stage, (struct tide_engine_options){.set = wrong}, "workers.count");

    /* What is given counts more than the environment: two attempts, not four. */
    assert_int_equal(setenv("TIDEMARK_RETRY_ATTEMPTS_MAX", "4", 1), 0);
    const char *const set[] = {"retry.attempts_max=2", "retry.backoff_start=1ms", NULL};
    open_engine(stage, (struct tide_engine_options){.set = set});
    assert_int_equal(unsetenv("TIDEMARK_RETRY_ATTEMPTS_MAX"), 0);
    int attempts = 0;
    struct tide_spec spec = {.kind = define(stage, fail_always, &attempts)};
    uint64_t id = 0;
    OK(tide_enqueue(stage->engine, &spec, 1, &id, NULL));
    OK(tide_engine_start(stage->engine, NULL));
    OK(tide_engine_wait(stage->engine, 60000, NULL));
    assert_int_equal(tide_job_ended(stage->engine, id, NULL), TIDE_SERVER);
    assert_int_equal(attempts, 2);
}

static tide_status fail_with(tide_job *job, void *context, tide_error *err)
{
    (void)job;
    return tide_error_set(err, *(tide_status *)context, "as the test said");
}

/* "Not ended" and "there is none" are answers of their own, whatever a job failed with. */
CASE(how_a_job_failed_is_told_from_not_ended)
{
    static const struct {
        tide_status failed, told;
    } cases[] = {
        {TIDE_TIMEOUT, TIDE_UNKNOWN}, {TIDE_NOT_FOUND, TIDE_PERMANENT}, {TIDE_SERVER, TIDE_SERVER}};
    const char *const set[] = {"retry.attempts_max=1", NULL};
    open_engine(stage, (struct tide_engine_options){.set = set});
    tide_status fails = TIDE_OK;
    struct tide_spec spec = {.kind = define(stage, fail_with, &fails)};
    struct tide_spec later = {.kind = spec.kind, .delay_ms = 3600000};
    uint64_t id = 0;
    OK(tide_engine_start(stage->engine, NULL));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fails = cases[i].failed;
        OK(tide_enqueue(stage->engine, &spec, 1, &id, NULL));
        OK(tide_engine_wait(stage->engine, 60000, NULL));
        tide_error err = {TIDE_OK, 0, ""};
        assert_int_equal(tide_job_ended(stage->engine, id, &err), cases[i].told);
        assert_string_equal(err.text, "as the test said");
    }
    OK(tide_enqueue(stage->engine, &later, 1, &id, NULL));
    assert_int_equal(tide_job_ended(stage->engine, id, NULL), TIDE_TIMEOUT);
    assert_int_equal(tide_job_ended(stage->engine, id + 1, NULL), TIDE_NOT_FOUND);
}

/* SQLite belongs to the whole process: the library does not set it up for a host program that
 * has not used it yet.  Runs first, because SQLite refuses this configuration once it runs. */
CASE(sqlite_stays_as_the_program_has_it)
{
    if (sqlite3_compileoption_used("DEFAULT_MEMSTATUS=0"))
        skip();
    open_engine(stage, (struct tide_engine_options){0});
    assert_true(sqlite3_memory_used() > 0); /* it still counts its memory */
}

struct heard {
    char text[16384];
    size_t bytes;
    int lock;
};

static void hear(void *arg, const char *line, size_t bytes)
{
    struct heard *heard = arg;
    while (__atomic_exchange_n(&heard->lock, 1, __ATOMIC_ACQUIRE) != 0)
        continue;
    assert_int_equal(line[bytes - 1], '\n');
    if (heard->bytes + bytes < sizeof heard->text) {
        memcpy(heard->text + heard->bytes, line, bytes);
        heard->bytes += bytes;
    }
    __atomic_store_n(&heard->lock, 0, __ATOMIC_RELEASE);
}

/* Every step of a job is logged at this level. */
static const char *const debug[] = {"log.level=debug", NULL};

static void run_one_job(struct stage *stage)
{
    const uint32_t kind = define(stage, nothing, NULL);
    struct tide_spec spec = {.kind = kind};
    OK(tide_enqueue(stage->engine, &spec, 1, NULL, NULL));
    OK(tide_engine_start(stage->engine, NULL));
    OK(tide_engine_wait(stage->engine, 60000, NULL));
    OK(tide_engine_close(stage->engine));
    stage->engine = NULL;
}

CASE(lines_reach_a_function)
{
    static struct heard heard;
    open_engine(stage, (struct tide_engine_options){
                           .log_line = hear, .log_arg = &heard, .log_json = true, .set = debug});
    run_one_job(stage);
    assert_non_null(strstr(heard.text, "\"job done\""));
    assert_non_null(strstr(heard.text, "\"kind\":\"kind\""));
}

CASE(lines_reach_a_descriptor)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    open_engine(stage, (struct tide_engine_options){.log_fd = fileno(file), .set = debug});
    run_one_job(stage);
    char text[16384] = "";
    rewind(file);
    assert_true(fread(text, 1, sizeof text - 1, file) > 0);
    (void)fclose(file);
    assert_non_null(strstr(text, "job done"));
    assert_non_null(strstr(text, "kind=kind"));
}

CASE(two_logs_or_two_settings_are_refused)
{
    refused(stage, (struct tide_engine_options){.log_line = hear, .log_fd = 2}, "log");
    refused(stage, (struct tide_engine_options){.log_fd = -1}, "-1");
}

/* ---- calls ---------------------------------------------------------------------------- */

struct asked {
    const char *url;
    int code;
    char body[32];
    char header[32];
    bool reserved_refused;
};

static tide_status ask(tide_job *job, void *context, tide_error *err)
{
    struct asked *asked = context;
    struct tide_response *response = tide_response_new();
    assert_non_null(response);
    assert_int_equal(tide_response_code(response), 0);
    assert_string_equal(tide_response_body(response).data, "");
    struct tide_request request = {.method = "GET", .url = asked->url};
    request.reserved[4] = 1;
    asked->reserved_refused =
        tide_job_call(job, 1, 0, NULL, &request, response, NULL) == TIDE_INVALID;
    request.reserved[4] = 0;
    tide_status rc = tide_job_call(job, 1, 0, NULL, &request, response, err);
    asked->code = tide_response_code(response);
    (void)snprintf(asked->body, sizeof asked->body, "%s", tide_response_body(response).data);
    (void)snprintf(asked->header, sizeof asked->header, "%s",
                   tide_response_header(response, "x-test").data);
    tide_response_free(response);
    return rc;
}

CASE(an_answer_is_read_through_functions)
{
    test_http *server = test_http_start();
    struct asked asked = {.url = test_http_url(server, "/plain")};
    open_engine(stage, (struct tide_engine_options){0});
    struct tide_spec spec = {.kind = define(stage, ask, &asked)};
    OK(tide_enqueue(stage->engine, &spec, 1, NULL, NULL));
    OK(tide_engine_start(stage->engine, NULL));
    OK(tide_engine_wait(stage->engine, 60000, NULL));
    assert_true(asked.reserved_refused);
    assert_int_equal(asked.code, 200);
    assert_int_equal(strlen(asked.body), 5);
    assert_string_equal(asked.header, "yes");
    assert_int_equal(test_http_requests(server), 1);
    test_http_stop(server);
}

/* What does not fit into tide_stream_state.cursor is refused, never cut. */
CASE(a_cursor_comes_back_whole_or_is_refused)
{
    open_engine(stage, (struct tide_engine_options){0});
    OK(tide_engine_start(stage->engine, NULL));
    uint64_t stream = 0;
    char end[258];
    memset(end, 'x', sizeof end);
    end[256] = '\0';
    OK(tide_stream_open(stage->engine, 0, "long", "", &stream, NULL));
    assert_int_equal(tide_cycle_open(stage->engine, stream, "", end, NULL, 0, NULL, NULL),
                     TIDE_INVALID);
    end[255] = '\0';
    OK(tide_cycle_open(stage->engine, stream, "", end, NULL, 0, NULL, NULL));
    struct tide_stream_state seen = {0};
    while (seen.cycles_finished == 0) { /* a cycle without jobs ends by itself */
        (void)tide_engine_wait(stage->engine, 10, NULL);
        OK(tide_stream_state(stage->engine, stream, &seen, NULL));
    }
    assert_int_equal(seen.cycles_opened, 1);
    assert_string_equal(seen.cursor, end);
}

CASE(a_snapshot_goes_into_a_buffer_on_the_heap)
{
    open_engine(stage, (struct tide_engine_options){0});
    tide_buf json;
    tide_buf_init(&json, NULL, 1 << 20);
    OK(tide_engine_snapshot(stage->engine, &json, NULL));
    assert_int_equal(tide_buf_cstr(&json)[0], '{');
    assert_int_equal(strlen(tide_buf_cstr(&json)), json.bytes);
    tide_buf_done(&json);
}
