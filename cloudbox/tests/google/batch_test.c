/* Batches as clients write them, and what comes back. */
#include "cloudbox/tests/gate/gate_support.h"

static const struct box_options plain = {.seed = 5};
#define TYPE "multipart/mixed; boundary=\"b 1\""

static int batch(box_cloud *cloud, const char *body, struct box_answer *answer)
{
    return ask(cloud, START_MS,
               &(struct ask){.verb = BOX_POST,
                             .target = "/batch/gmail/v1",
                             .token = "a",
                             .body = body,
                             .type = TYPE},
               answer);
}

static size_t times(const char *text, const char *word)
{
    size_t count = 0;
    for (; (text = strstr(text, word)) != NULL; text += strlen(word))
        count++;
    return count;
}

/* `count` gets of messages m0, m1, ... */
static char *many_gets(size_t count)
{
    tide_auto_buf out = tide_buf_heap(1 << 20);
    for (size_t i = 0; i < count; i++)
        box_print(&out,
                  "--b 1\r\nContent-Type: application/http\r\nContent-ID: <item%zu>\r\n\r\n"
                  "GET /gmail/v1/users/me/messages/m%zu HTTP/1.1\r\n\r\n\r\n",
                  i, i);
    box_add_cstr(&out, "--b 1--\r\n");
    char *copy = strdup(tide_buf_cstr(&out));
    assert_non_null(copy);
    return copy;
}

TEST(parts_are_answered_in_their_order_under_their_names)
{
    auto_cloud *cloud = cloud_with(&plain);
    auto_text *body = many_gets(10);
    auto_answer answer;
    assert_int_equal(batch(cloud, body, &answer), 200);
    assert_memory_equal(answer.type, "multipart/mixed; boundary=batch_", 32);
    const char *at = tide_buf_cstr(&answer.body);
    bool in_order = true;
    long last_run = 0;
    for (int i = 0; i < 10; i++) {
        char name[64];
        (void)snprintf(name, sizeof name,
                       "Content-ID: <response-item%d>\r\n\r\nHTTP/1.1 200 OK\r\n", i);
        at = strstr(at, name);
        assert_non_null(at);
        at += strlen(name);
        (void)snprintf(name, sizeof name, "\"id\":\"m%d\"", i);
        const char *id = strstr(at, name);
        const char *next = strstr(at, "Content-ID");
        assert_non_null(id);
        assert_true(next == NULL || id < next);
        const long run = strtol(strstr(at, "\"run\":") + 6, NULL, 10);
        in_order = in_order && run > last_run;
        last_run = run;
    }
    assert_false(in_order); /* executed in an order of the seed's */
    assert_int_equal(handled, 10);
    assert_int_equal(answer.ticket.user, 1);
    assert_int_equal(answer.ticket.slots, 10);
    box_cloud_finished(cloud, &answer.ticket, START_MS);
    assert_int_equal(box_quota_in_flight(box_cloud_quota(cloud), 1), 0);
}

/* An answer that is itself a well-formed multipart message: each part's length
 * is what its Content-Length says. */
TEST(the_answer_is_well_formed)
{
    auto_cloud *cloud = cloud_with(&plain);
    auto_text *body = many_gets(5);
    auto_answer answer;
    assert_int_equal(batch(cloud, body, &answer), 200);
    char delimiter[80];
    (void)snprintf(delimiter, sizeof delimiter, "--%s", strchr(answer.type, '=') + 1);
    const char *at = tide_buf_cstr(&answer.body);
    for (int i = 0; i < 5; i++) {
        assert_memory_equal(at, delimiter, strlen(delimiter));
        const char *length = strstr(at, "Content-Length: ");
        assert_non_null(length);
        at = strstr(length, "\r\n\r\n") + 4;
        const size_t bytes = strtoul(length + 16, NULL, 10);
        json_auto_t *value = json_loadb(at, bytes, 0, NULL);
        assert_non_null(value);
        at += bytes;
        assert_memory_equal(at, "\r\n", 2);
        at += 2;
    }
    assert_memory_equal(at, delimiter, strlen(delimiter));
    assert_string_equal(at + strlen(delimiter), "--\r\n");
}

TEST(many_ways_of_writing_a_part_are_understood)
{
    static const char *const bodies[] = {
        /* line feeds only, preamble, epilogue, no version, no Content-ID */
        "This is a preamble.\n--b 1\nContent-Type: application/http\n\n"
        "GET /gmail/v1/users/me/messages/m7?q=one\n\n--b 1--\nepilogue",
        /* names in any case, blanks behind the delimiter, an absolute URL */
        "--b 1 \r\ncontent-type: application/http; msgtype=request\r\ncontent-id: x\r\n\r\n"
        "GET http://www.example.com/gmail/v1/users/me/messages/m7?q=one HTTP/1.1\r\n"
        "Accept: application/json\r\n\r\n\r\n--b 1--",
        /* no head at all, no last delimiter */
        "--b 1\r\n\r\nGET /gmail/v1/users/me/messages/m7?q=one HTTP/1.1\r\n\r\n",
        /* blank lines ahead of the request, https */
        "--b 1\r\nContent-Type: application/http\r\n\r\n\r\n\r\n"
        "GET https://gmail.googleapis.com/gmail/v1/users/me/messages/m7?q=one\r\n\r\n--b 1--\r\n",
    };
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        auto_cloud *cloud = cloud_with(&plain);
        auto_answer answer;
        assert_int_equal(batch(cloud, bodies[i], &answer), 200);
        const char *text = tide_buf_cstr(&answer.body);
        if (strstr(text, "\"id\":\"m7\"") == NULL || strstr(text, "\"q\":\"one\"") == NULL)
            fail_msg("%zu: %s", i, text);
        assert_int_equal(times(text, "Content-ID: "), i == 1 ? 1 : 0);
    }
}

TEST(bodies_end_where_their_length_says)
{
    auto_cloud *cloud = cloud_with(&plain);
    auto_answer answer;
    assert_int_equal(
        batch(cloud,
              "--b 1\r\nContent-Type: application/http\r\nContent-ID: <1>\r\n\r\n"
              "POST /gmail/v1/users/me/messages/m1/modify\r\nContent-Length: 2\r\n\r\n{}junk\r\n"
              "--b 1\r\nContent-Type: application/http\r\nContent-ID: <2>\r\n\r\n"
              "POST /gmail/v1/users/me/messages/m1/modify\r\n\r\n[rest]\r\n"
              "--b 1\r\nContent-Type: application/http\r\nContent-ID: <3>\r\n\r\n"
              "POST /gmail/v1/users/me/messages/m1/modify\r\nContent-Length: 900\r\n\r\n{}\r\n"
              "--b 1--\r\n",
              &answer),
        200);
    const char *text = tide_buf_cstr(&answer.body);
    assert_non_null(strstr(text, "\"body\":\"{}\""));
    assert_non_null(strstr(text, "\"body\":\"[rest]\""));
    assert_non_null(strstr(text, "shorter than its Content-Length"));
    assert_int_equal(handled, 2);
}

TEST(what_the_outside_says_counts_inside_unless_overridden)
{
    auto_cloud *cloud = cloud_with(&plain);
    auto_answer answer;
    assert_int_equal(
        ask(cloud, START_MS,
            &(struct ask){.verb = BOX_POST,
                          .target = "/batch?q=outer&x=1",
                          .token = "a",
                          .type = TYPE,
                          .body = "--b 1\r\n\r\nGET /gmail/v1/users/me/messages/m1\r\n\r\n"
                                  "--b 1\r\n\r\nGET /gmail/v1/users/me/messages/m2?q=inner\r\n"
                                  "Authorization: Bearer b\r\n\r\n"
                                  "--b 1\r\n\r\nGET /gmail/v1/users/me/messages/m3\r\n"
                                  "AUTHORIZATION: Bearer nobody\r\n\r\n--b 1--\r\n"},
            &answer),
        200);
    const char *text = tide_buf_cstr(&answer.body);
    assert_int_equal(times(text, "\"q\":\"outer\""), 1);
    assert_int_equal(times(text, "\"q\":\"inner\""), 1);
    assert_int_equal(times(text, "HTTP/1.1 401 Unauthorized"), 1);
    box_cloud_finished(cloud, &answer.ticket, START_MS);
    assert_int_equal(box_quota_in_flight(box_cloud_quota(cloud), 1), 0);
    assert_int_equal(box_quota_in_flight(box_cloud_quota(cloud), 2), 0);
    json_auto_t *stats = box_cloud_stats(cloud, NULL, false);
    assert_int_equal(json_integer_value(inside(stats, "users", "a@x.org", "calls", NULL)), 1);
    assert_int_equal(json_integer_value(inside(stats, "users", "b@x.org", "calls", NULL)), 1);
    assert_int_equal(json_integer_value(inside(stats, "nobody", "calls", NULL)), 1);
}

TEST(more_than_a_hundred_parts_are_refused_as_a_whole)
{
    auto_cloud *cloud = cloud_with(&plain);
    struct box_answer answer;
    char *body = many_gets(101);
    assert_int_equal(batch(cloud, body, &answer), 400);
    assert_non_null(strstr(tide_buf_cstr(&answer.body),
                           "Inner request count exceeds the limit. Received: 101, Limit: 100"));
    assert_int_equal(handled, 0);
    box_answer_done(&answer);
    free(body);
    json_auto_t *stats = box_cloud_stats(cloud, NULL, false);
    const json_t *violation = json_array_get(json_object_get(stats, "violations"), 0);
    assert_string_equal(json_string_value(json_object_get(violation, "kind")), "batch-size");
    body = many_gets(100);
    assert_int_equal(batch(cloud, body, &answer), 200);
    assert_int_equal(handled, 100);
    box_answer_done(&answer);
    free(body);
}

TEST(what_is_no_batch_is_refused)
{
    static const struct {
        const char *type;
        const char *body;
    } cases[] = {
        {TYPE, ""},
        {TYPE, "no delimiter at all"},
        {TYPE, "--b 1--\r\n"},
        {TYPE, "--b 12\r\n\r\nGET /\r\n\r\n--b 12--\r\n"},
        {NULL, "--b 1\r\n\r\nGET /\r\n\r\n--b 1--\r\n"},
        {"multipart/mixed", "--b 1\r\n\r\nGET /\r\n\r\n--b 1--\r\n"},
        {"multipart/mixed; boundary=", "--\r\n\r\nGET /\r\n\r\n----\r\n"},
        {"multipart/mixedness; boundary=b", "--b\r\n\r\nGET /\r\n\r\n--b--\r\n"},
        {"multipart/mixed; boundary=\"b", "--b\r\n\r\nGET /\r\n\r\n--b--\r\n"},
        {"application/json", "{}"},
    };
    auto_cloud *cloud = cloud_with(&plain);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct ask what = {.verb = BOX_POST,
                                 .target = "/batch",
                                 .token = "a",
                                 .type = cases[i].type,
                                 .body = cases[i].body};
        if (ask_status(cloud, START_MS, &what) != 400)
            fail_msg("case %zu", i);
    }
    assert_int_equal(handled, 0);
}

TEST(a_bad_part_fails_alone)
{
    static const char *const parts[] = {
        "Content-Type: application/http\r\n\r\nPOST /batch HTTP/1.1\r\n\r\n",
        "Content-Type: application/http\r\n\r\nPOST /batch/gmail/v1?x HTTP/1.1\r\n\r\n",
        "Content-Type: application/http\r\n\r\nPOST /upload/gmail/v1/users/me/messages\r\n\r\n",
        "Content-Type: text/plain\r\n\r\nGET /gmail/v1/users/me/messages\r\n\r\n",
        "Content-Type: application/http\r\n\r\nnonsense\r\n\r\n",
        "Content-Type: application/http\r\n\r\nGET relative/path\r\n\r\n",
        "Content-Type: application/http\r\n\r\nGET /a b c\r\n\r\n",
        "no colon\r\n\r\nGET /gmail/v1/users/me/messages\r\n\r\n",
        "Content-Type: application/http\r\n\r\n",
        "Content-Type: application/http\r\n\r\nGET /gmail/v1/users/me/messages\r\nno colon\r\n\r\n",
        "",
    };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        auto_cloud *cloud = cloud_with(&plain);
        tide_auto_buf body = tide_buf_heap(1 << 20);
        box_print(&body,
                  "--b 1\r\n%s\r\n--b 1\r\n\r\nGET /gmail/v1/users/me/messages/m1\r\n\r\n"
                  "--b 1--\r\n",
                  parts[i]);
        auto_answer answer;
        assert_int_equal(batch(cloud, tide_buf_cstr(&body), &answer), 200);
        const char *text = tide_buf_cstr(&answer.body);
        if (times(text, "HTTP/1.1 400 Bad Request") != 1 || times(text, "HTTP/1.1 200 OK") != 1)
            fail_msg("%s: %s", parts[i], text);
    }
}

TEST(every_part_pays_and_takes_a_slot)
{
    auto_cloud *cloud = cloud_with(&(struct box_options){.seed = 2, .quota = BOX_QUOTA_2026});
    auto_answer answer;
    auto_text *body = many_gets(25);
    assert_int_equal(batch(cloud, body, &answer), 200);
    const char *text = tide_buf_cstr(&answer.body);
    assert_int_equal(times(text, "HTTP/1.1 200 OK"), 10);
    assert_int_equal(times(text, "HTTP/1.1 429 Too Many Requests"), 15);
    assert_int_equal(times(text, "Too many concurrent requests for user"), 30); /* twice each */
    assert_int_equal(answer.ticket.slots, 10);
    box_cloud_finished(cloud, &answer.ticket, START_MS);
    json_auto_t *stats = box_cloud_stats(cloud, NULL, false);
    const json_t *user = inside(stats, "users", "a@x.org", NULL);
    assert_int_equal(json_integer_value(json_object_get(user, "calls")), 25);
    assert_int_equal(json_integer_value(json_object_get(user, "granted_units_highest_in_60s")),
                     200);
    assert_int_equal(json_integer_value(inside(user, "refused", "concurrency", NULL)), 15);
}

TEST(parts_one_after_another_share_one_slot_and_add_up_their_time)
{
    for (int serial = 0; serial < 2; serial++) {
        auto_cloud *cloud = cloud_with(&(struct box_options){
            .seed = 2, .quota = BOX_QUOTA_2026, .latency_ms = 50, .batch_serial = serial == 1});
        auto_answer answer;
        auto_text *body = many_gets(serial == 1 ? 25 : 10);
        assert_int_equal(batch(cloud, body, &answer), 200);
        assert_int_equal(times(tide_buf_cstr(&answer.body), "HTTP/1.1 200 OK"),
                         serial == 1 ? 25 : 10);
        assert_int_equal(answer.ticket.slots, serial == 1 ? 1 : 10);
        assert_int_equal(answer.plan.delay_ms, serial == 1 ? 25 * 50 : 50);
        json_auto_t *stats = box_cloud_stats(cloud, NULL, false);
        assert_int_equal(
            json_integer_value(inside(stats, "users", "a@x.org", "in_flight_highest", NULL)),
            serial == 1 ? 1 : 10);
        box_cloud_finished(cloud, &answer.ticket, START_MS);
        assert_int_equal(box_quota_in_flight(box_cloud_quota(cloud), 1), 0);
    }
}

TEST(faults_strike_parts_or_the_whole)
{
    static const struct {
        const char *rule;
        int status;
        size_t parts;
        int handled;
        box_fate fate;
    } cases[] = {
        {"{\"method\":\"*\",\"count\":2,\"fault\":\"503\"}", 200, 10, 8, BOX_FATE_WHOLE},
        {"{\"method\":\"batch\",\"fault\":\"503\"}", 503, 0, 0, BOX_FATE_WHOLE},
        {"{\"method\":\"batch\",\"fault\":\"truncate\"}", 200, 10, 10, BOX_FATE_TRUNCATE},
        {"{\"method\":\"*\",\"count\":1,\"fault\":\"reset-after\"}", 200, 10, 10, BOX_FATE_RESET},
        {"{\"method\":\"*\",\"count\":1,\"fault\":\"reset-before\"}", 200, 10, 9, BOX_FATE_RESET},
        {"{\"method\":\"*\",\"count\":1,\"fault\":\"stall-body\"}", 200, 10, 10, BOX_FATE_STALL},
        {"{\"fault\":\"batch-missing\"}", 200, 9, 10, BOX_FATE_WHOLE},
        {"{\"fault\":\"batch-extra\"}", 200, 11, 10, BOX_FATE_WHOLE},
        {"{\"method\":\"batch\",\"fault\":\"batch-reorder\"}", 200, 10, 10, BOX_FATE_WHOLE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        auto_cloud *cloud = cloud_with(&plain);
        add_fault(cloud, cases[i].rule);
        auto_answer answer;
        auto_text *body = many_gets(10);
        assert_int_equal(batch(cloud, body, &answer), cases[i].status);
        const char *text = tide_buf_cstr(&answer.body);
        assert_int_equal(times(text, "Content-ID: <response-"), cases[i].parts);
        assert_int_equal(handled, cases[i].handled);
        assert_int_equal(answer.plan.fate, cases[i].fate);
        if (strstr(cases[i].rule, "reorder") != NULL)
            assert_true(strstr(text, "<response-item9>") < strstr(text, "<response-item0>") ||
                        strstr(text, "<response-item5>") < strstr(text, "<response-item1>"));
    }
}

/* Goal: no bytes can break the reader.  Method: a good batch with random bytes
 * cut, doubled and changed; the answer is a 200 or a 400, and every slot comes back. */
TEST(damaged_batches_do_no_damage)
{
    tide_rng rng = tide_rng_seeded(17);
    auto_cloud *cloud = cloud_with(&plain);
    auto_text *good = many_gets(4);
    const size_t bytes = strlen(good);
    for (uint64_t round = 0; round < scaled(20000); round++) {
        auto_text *bad = strdup(good);
        assert_non_null(bad);
        for (uint64_t n = tide_rng_below(&rng, 6); n > 0; n--) {
            static const char special[] = "\r\n-: <>;=\"b1/?&%";
            const size_t at = (size_t)tide_rng_below(&rng, bytes);
            if (tide_rng_chance(&rng, 1, 2))
                bad[at] = special[tide_rng_below(&rng, sizeof special - 1)];
            else if (tide_rng_chance(&rng, 1, 2))
                bad[at] = (char)(1 + tide_rng_below(&rng, 255));
            else
                memmove(bad + at, bad + at / 2, (bytes - at) / 2);
        }
        if (tide_rng_chance(&rng, 1, 4))
            bad[tide_rng_below(&rng, bytes)] = '\0';
        auto_answer answer;
        const int status = batch(cloud, bad, &answer);
        if (status != 200 && status != 400)
            fail_msg("round %lu: %d", (unsigned long)round, status);
        box_cloud_finished(cloud, &answer.ticket, START_MS);
        assert_int_equal(box_quota_in_flight(box_cloud_quota(cloud), 1), 0);
    }
}
