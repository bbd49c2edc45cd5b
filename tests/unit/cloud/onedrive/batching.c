/* Changes of many jobs in few requests (net/batch/json.h): each job gets the answer of its own part. */
#include "onedrive_fixture.h"

#include "net/batch/batch.h"

enum { JOBS = 40 };

/* A server that takes batches apart. */
struct batches {
    tide_sim *sim;
    tide_onedrive *onedrive;
    tide_engine *engine;
    uint32_t kind;
    unsigned requests, parts, parts_most, guarded, throttled;
    unsigned runs;
    tide_status outcomes[JOBS];
    char ids[JOBS][32];
};

/* Number n is in the name of a folder, or in the id of a deleted item. */
static json_t *answer_part(struct batches *b, const json_t *part)
{
    const char *method = json_string_value(json_object_get(part, "method"));
    const char *url = json_string_value(json_object_get(part, "url"));
    const json_t *headers = json_object_get(part, "headers");
    const json_t *body = json_object_get(part, "body");
    const json_t *id = json_object_get(part, "id");
    unsigned n = 0;
    b->parts++;
    if (strcmp(method, "DELETE") == 0) {
        assert_int_equal(sscanf(url, "/me/drive/items/item%u", &n), 1);
        b->guarded += strcmp(json_string_value(json_object_get(headers, "If-Match")), "\"e\"") == 0;
        if (n % 7 == 0)
            return json_pack("{s:O,s:i,s:{s:{s:s}}}", "id", id, "status", 412, "body", "error",
                             "code", "resourceModified");
        return json_pack("{s:O,s:i}", "id", id, "status", 204);
    }
    if (strcmp(method, "GET") == 0) {
        assert_int_equal(sscanf(url, "/me/drive/items/item%u", &n), 1);
        assert_null(headers);
        if (n % 7 == 0)
            return json_pack("{s:O,s:i,s:{s:{s:s}}}", "id", id, "status", 404, "body", "error",
                             "code", "itemNotFound");
        return json_pack("{s:O,s:i,s:{s:s,s:{}}}", "id", id, "status", 200, "body", "id",
                         textf("id%u", n), "file");
    }
    assert_string_equal(method, "POST");
    assert_string_equal(url, "/me/drive/items/P/children");
    assert_string_equal(json_string_value(json_object_get(headers, "Content-Type")),
                        "application/json");
    assert_int_equal(sscanf(json_string_value(json_object_get(body, "name")), "folder%u", &n), 1);
    if (n % 7 == 0)
        return json_pack("{s:O,s:i,s:{s:{s:s}}}", "id", id, "status", 409, "body", "error", "code",
                         "nameAlreadyExists");
    if (n == 37 && b->throttled++ == 0)
        return json_pack("{s:O,s:i,s:{s:s},s:{s:{s:s}}}", "id", id, "status", 429, "headers",
                         "Retry-After", "3", "body", "error", "code", "activityLimitReached");
    return json_pack("{s:O,s:i,s:{s:s,s:s,s:{}}}", "id", id, "status", 201, "body", "id",
                     textf("id%u", n), "name", textf("folder%u", n), "folder");
}

static void provide(void *arg, const struct tide_request *request, uint64_t now_unix_ms,
                    tide_rng *rng, struct tide_sim_answer *answer)
{
    struct batches *b = arg;
    (void)now_unix_ms;
    (void)rng;
    answer->http = 200;
    tide_sim_answer_header(answer, "Content-Type", "application/json");
    b->requests++;
    assert_string_equal(request->url, ORIGIN "/v1.0/$batch");
    json_t *batch = NULL;
    OK(tide_json_parse(request->body, &batch, NULL));
    const json_t *parts = json_object_get(batch, "requests");
    json_t *answers = json_array();
    const size_t count = json_array_size(parts);
    for (size_t i = count; i-- > 0;) /* in another order than asked */
        assert_int_equal(json_array_append_new(answers, answer_part(b, json_array_get(parts, i))),
                         0);
    if (count > b->parts_most)
        b->parts_most = (unsigned)count;
    json_t *whole = json_pack("{s:o}", "responses", answers);
    char *text = json_dumps(whole, 0);
    OK(tide_buf_add_text(&answer->body, text));
    free(text);
    json_decref(whole);
    json_decref(batch);
}

static tide_status handler(tide_job *job, void *context, tide_error *err)
{
    struct batches *b = context;
    unsigned n = 0;
    assert_int_equal(sscanf(tide_job_payload(job).data, "{\"n\":%u}", &n), 1);
    struct tide_onedrive_answer answer = {.value = NULL};
    tide_status rc = TIDE_OK;
    b->runs++;
    if (n % 3 == 0)
        rc = tide_onedrive_get(b->onedrive, job, TIDE_TEXT(""), tide_text_of(textf("item%u", n)),
                               &answer, err);
    else if (n % 2 == 0)
        rc = tide_onedrive_delete(b->onedrive, job, TIDE_TEXT(""), tide_text_of(textf("item%u", n)),
                                  TIDE_TEXT("\"e\""), err);
    else
        rc = tide_onedrive_folder_create(b->onedrive, job, TIDE_TEXT(""), TIDE_TEXT("P"),
                                         tide_text_of(textf("folder%u", n)), &answer, err);
    b->outcomes[n] = rc;
    if (answer.value != NULL)
        (void)snprintf(b->ids[n], sizeof b->ids[n], "%.*s", (int)answer.item.id.bytes,
                       answer.item.id.data);
    tide_onedrive_answer_done(&answer);
    return rc == TIDE_AGAIN || rc == TIDE_THROTTLED ? rc : TIDE_OK;
}

TEST(changes_of_many_jobs_share_requests)
{
    static struct batches b;
    b = (struct batches){.requests = 0};
    const struct tide_sim_options sim = {.net = {.provide = provide, .provide_arg = &b}};
    b.sim = tide_sim_new(5, &sim);
    tide_world *world = tide_sim_world(b.sim);
    const struct tide_batch_options sizes = {.in_flight_max = 2};
    const struct tide_onedrive_options options = {
        .endpoint = ORIGIN, .bearer = TIDE_TEXT("bearer-1"), .world = world, .batches = &sizes};
    OK(tide_onedrive_open(&options, tide_mem_heap(), &b.onedrive, NULL));
    const struct tide_engine_options engine = {
        .state_dir = "/state", .world = world, .no_control_socket = true, .workers = 16};
    OK(tide_engine_open(&engine, &b.engine, NULL));
    const struct tide_kind kind = {.name = "change", .handler = handler, .context = &b};
    OK(tide_engine_kind(b.engine, &kind, &b.kind, NULL));
    OK(tide_engine_start(b.engine, NULL));
    struct tide_spec specs[JOBS - 1];
    char payloads[JOBS - 1][16];
    for (unsigned n = 1; n < JOBS; n++) {
        (void)snprintf(payloads[n - 1], sizeof payloads[0], "{\"n\":%u}", n);
        /* Of no account: the governor's pace would let them through one by one. */
        specs[n - 1] = (struct tide_spec){.kind = b.kind, .payload = payloads[n - 1]};
    }
    OK(tide_enqueue(b.engine, specs, JOBS - 1, NULL, NULL));
    OK(tide_engine_wait(b.engine, TIDE_WAIT_FOREVER, NULL));
    unsigned deletes = 0;
    for (unsigned n = 1; n < JOBS; n++) {
        const bool item = n % 3 == 0 || n % 2 == 1; /* its answer has one */
        const tide_status expected = n % 7 != 0   ? TIDE_OK
                                     : n % 3 == 0 ? TIDE_GONE
                                     : n % 2 == 0 ? TIDE_SUPERSEDED
                                                  : TIDE_EXISTS;
        assert_int_equal(b.outcomes[n], expected);
        assert_string_equal(b.ids[n], expected == TIDE_OK && item ? textf("id%u", n) : "");
        deletes += !item;
    }
    struct tide_batch_state batches;
    tide_onedrive_batches(b.onedrive, &batches);
    assert_int_equal(b.throttled, 2); /* refused once, then accepted */
    assert_int_equal(b.parts, JOBS);  /* one of them twice */
    assert_int_equal(b.guarded, deletes);
    if (b.requests > JOBS / 2)
        fail_msg("%u requests for %u parts", b.requests, b.parts);
    assert_true(b.parts_most > 1 && b.parts_most <= 20);
    assert_int_equal(batches.requests, b.requests);
    assert_true(tide_batcher_check(b.onedrive->batcher));
    OK(tide_engine_close(b.engine));
    tide_onedrive_close(b.onedrive);
    tide_sim_free(b.sim);
}
