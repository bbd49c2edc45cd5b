/* httpd_admit_test.c - the verdict on a head, row by row.  A row changes one thing of a request that is admitted. */
#include "serve/http/route.h"
#include "support/test.h"

#include <stdio.h>

#define KEY "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

static void handler(void *arg, const struct tide_httpd_request *request,
                    struct tide_httpd_answer *answer)
{
    (void)arg, (void)request, (void)answer;
}

static const struct tide_httpd_route routes[] = {
    {"GET", "/", TIDE_HTTPD_NONE, TIDE_HTTPD_MEMORY, handler, NULL, TIDE_HTTPD_ANYWHERE, 0},
    {"GET", "/api/v1/state", TIDE_HTTPD_LOOK, TIDE_HTTPD_READER, handler, NULL, 0, 0},
    {"GET", "/api/v1/jobs/{job}/why", TIDE_HTTPD_LOOK, TIDE_HTTPD_READER, handler, NULL, 0, 0},
    {"POST", "/api/v1/jobs/cancel", TIDE_HTTPD_WORK, TIDE_HTTPD_READER, handler, NULL, 0, 0},
    {"POST", "/api/v1/pairings", TIDE_HTTPD_NONE, TIDE_HTTPD_MEMORY, handler, NULL,
     TIDE_HTTPD_REPEATS, 256},
};
enum { ROUTES = sizeof routes / sizeof routes[0] };

static bool look(void *arg, tide_text key, struct tide_httpd_who *who_out)
{
    const tide_httpd_scope *scope = arg;
    *who_out = (struct tide_httpd_who){.id = 1, .scope = *scope};
    return tide_text_equal(key, TIDE_TEXT(KEY));
}

/* `lines` are headers, "Name: value" each, ended by a newline. */
static void admit_as(tide_httpd_scope scope, const char *method, const char *target,
                     const char *lines, struct tide_httpd_verdict *verdict)
{
    struct tide_httpd_pair headers[TIDE_HTTPD_HEADERS_MAX];
    size_t count = 0;
    while (*lines != '\0') {
        const char *colon = strchr(lines, ':'), *end = strchr(lines, '\n');
        headers[count++] = (struct tide_httpd_pair){{lines, (size_t)(colon - lines)},
                                                    {colon + 2, (size_t)(end - colon - 2)}};
        lines = end + 1;
    }
    const struct tide_httpd_head head = {tide_text_of(method), tide_text_of(target), headers,
                                         count};
    tide_httpd_admit(routes, ROUTES, &head, look, &scope, verdict);
}

static int admit(const char *method, const char *target, const char *lines)
{
    struct tide_httpd_verdict verdict;
    admit_as(TIDE_HTTPD_PAGE, method, target, lines, &verdict);
    assert_true((verdict.status == 0) == (verdict.route != NULL && verdict.code == NULL));
    return verdict.status;
}

#define HOST "Host: 127.0.0.1:7433\n"
#define AUTH "Authorization: Bearer " KEY "\n"

TEST(only_this_machine_by_its_number_is_a_host)
{
    static const struct {
        const char *lines;
        int status;
    } rows[] = {
        {"Host: 127.0.0.1\n", 0},
        {"host: 127.0.0.1:1\n", 0},
        {"Host: 127.0.0.1:65535\n", 0},
        {"Host: 127.0.0.1:65536\n", 421},
        {"Host: 127.0.0.1:0\n", 421},
        {"Host: 127.0.0.1:\n", 421},
        {"Host: 127.0.0.1:80x\n", 421},
        {"Host: 127.0.0.1:80:80\n", 421},
        {"Host: 127.0.0.1.example\n", 421},
        {"Host: 127.0.0.10\n", 421},
        {"Host: 127.0.0.1@example\n", 421},
        {"Host: localhost\n", 421},
        {"Host: localhost:7433\n", 421},
        {"Host: [::1]:7433\n", 421},
        {"Host: 0.0.0.0\n", 421},
        {"Host: 127.1\n", 421},
        {"Host: 2130706433\n", 421},
        {"Host: \n", 421},
        {"", 421},
        {"Host: 127.0.0.1\nHost: 127.0.0.1\n", 421},
        {"X: 127.0.0.1\n", 421},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (admit("GET", "/", rows[i].lines) != rows[i].status)
            fail_msg("%s", rows[i].lines);
}

TEST(a_webhook_takes_any_host_and_nothing_else_changes)
{
    static const struct tide_httpd_route hook[] = {
        {"POST", "/hook", TIDE_HTTPD_NONE, TIDE_HTTPD_READER, handler, NULL,
         TIDE_HTTPD_ANY_HOST | TIDE_HTTPD_REPEATS, 1000}};
    static const struct tide_httpd_pair headers[] = {
        {{"Host", 4}, {"mail.example.org", 16}},
        {{"Content-Type", 12}, {"application/json", 16}},
        {{"Origin", 6}, {"https://evil.example", 20}},
        {{"Host", 4}, {"other", 5}},
    };
    static const int wanted[] = {421, 415, 0, 403};
    for (size_t count = 0; count <= 3; count++) {
        struct tide_httpd_verdict verdict;
        const struct tide_httpd_head head = {TIDE_TEXT("POST"), TIDE_TEXT("/hook"), headers, count};
        tide_httpd_admit(hook, 1, &head, NULL, NULL, &verdict);
        assert_int_equal(verdict.status, wanted[count]);
    }
    struct tide_httpd_verdict verdict;
    const struct tide_httpd_head twice = {TIDE_TEXT("POST"), TIDE_TEXT("/hook"), headers, 4};
    tide_httpd_admit(hook, 1, &twice, NULL, NULL, &verdict);
    assert_int_equal(verdict.status, 421);
}

TEST(another_origin_may_only_open_the_page)
{
    static const struct {
        const char *line;
        int status;
    } rows[] = {
        {"Origin: http://127.0.0.1:7433\n", 0},
        {"Sec-Fetch-Site: same-origin\n", 0},
        {"Origin: http://127.0.0.1:7433\nSec-Fetch-Site: same-origin\n", 0},
        {"Origin: http://127.0.0.1:7434\n", 403},
        {"Origin: http://127.0.0.1\n", 403},
        {"Origin: https://127.0.0.1:7433\n", 403},
        {"Origin: HTTP://127.0.0.1:7433\n", 403},
        {"Origin: null\n", 403},
        {"Origin: \n", 403},
        {"Origin: http://\n", 403},
        {"Origin: http://127.0.0.1:7433/\n", 403},
        {"Origin: http://127.0.0.1:7433\nOrigin: http://127.0.0.1:7433\n", 403},
        {"Sec-Fetch-Site: same-site\n", 403},
        {"Sec-Fetch-Site: cross-site\n", 403},
        {"Sec-Fetch-Site: none\n", 403},
        {"Sec-Fetch-Site: \n", 403},
        {"Sec-Fetch-Site: same-origin\nSec-Fetch-Site: cross-site\n", 403},
        {"Origin: http://127.0.0.1:7433\nSec-Fetch-Site: cross-site\n", 403},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char lines[512];
        (void)snprintf(lines, sizeof lines, HOST AUTH "%s", rows[i].line);
        if (admit("GET", "/api/v1/state", lines) != rows[i].status)
            fail_msg("%s", rows[i].line);
        assert_int_equal(admit("GET", "/", lines), 0);
        /* What does not exist is not told to another site. */
        assert_int_equal(admit("GET", "/api/v1/none", lines), rows[i].status == 0 ? 404 : 403);
    }
}

TEST(a_key_is_in_one_header_only)
{
    static const struct {
        const char *lines;
        int status;
    } rows[] = {
        {AUTH, 0},
        {"authorization: bearer " KEY "\n", 0},
        {"", 401},
        {"Authorization: " KEY "\n", 401},
        {"Authorization: Bearer\n", 401},
        {"Authorization: Bearer \n", 401},
        {"Authorization: Bearer  " KEY "\n", 401},
        {"Authorization: Bearer " KEY " \n", 401},
        {"Authorization: Basic " KEY "\n", 401},
        {"Authorization: Pairing " KEY "\n", 401},
        {"Authorization: Bearer" KEY "\n", 401},
        {AUTH AUTH, 401},
        {"Cookie: key=" KEY "\n", 401},
        {"X-Api-Key: " KEY "\n", 401},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char lines[512];
        (void)snprintf(lines, sizeof lines, HOST "%s", rows[i].lines);
        if (admit("GET", "/api/v1/state", lines) != rows[i].status)
            fail_msg("%s", rows[i].lines);
    }
    assert_int_equal(admit("GET", "/api/v1/state?key=" KEY "&access_token=" KEY, HOST), 401);
}

TEST(every_scope_meets_every_need)
{
    static const char *const paths[] = {"GET /", "GET /api/v1/state", "POST /api/v1/jobs/cancel"};
    static const tide_httpd_scope needs[] = {TIDE_HTTPD_NONE, TIDE_HTTPD_LOOK, TIDE_HTTPD_WORK};
    for (int have = TIDE_HTTPD_METRICS; have <= TIDE_HTTPD_PAGE; have++)
        for (size_t i = 0; i < 3; i++) {
            struct tide_httpd_verdict verdict;
            const bool post = paths[i][0] == 'P';
            admit_as((tide_httpd_scope)have, post ? "POST" : "GET", strchr(paths[i], ' ') + 1,
                     post ? HOST AUTH "Content-Type: application/json\nIdempotency-Key: 1\n"
                          : HOST AUTH,
                     &verdict);
            assert_int_equal(verdict.status, have >= (int)needs[i] ? 0 : 403);
        }
}

#define JSON "Content-Type: application/json\n"
#define ONCE "Idempotency-Key: 1\n"

TEST(a_body_is_json_of_a_clear_length)
{
    static const struct {
        const char *lines;
        int status;
    } rows[] = {
        {JSON ONCE "Content-Length: 2\n", 0},
        {JSON ONCE, 0},
        {JSON ONCE "Transfer-Encoding: chunked\n", 0},
        {"Content-Type: Application/JSON; charset=utf-8\n" ONCE, 0},
        {ONCE "Content-Length: 2\n", 415},
        {ONCE, 415},
        {"Content-Type: text/plain\n" ONCE, 415},
        {"Content-Type: application/x-www-form-urlencoded\n" ONCE, 415},
        {"Content-Type: multipart/form-data; boundary=application/json\n" ONCE, 415},
        {"Content-Type: application/jsonp\n" ONCE, 415},
        {JSON JSON ONCE, 415},
        {JSON ONCE "Content-Length: 1048576\n", 0},
        {JSON ONCE "Content-Length: 1048577\n", 413},
        {JSON ONCE "Content-Length: 99999999999999999999\n", 400},
        {JSON ONCE "Content-Length: -1\n", 400},
        {JSON ONCE "Content-Length: 1\nContent-Length: 1\n", 400},
        {JSON ONCE "Content-Length: 1\nTransfer-Encoding: chunked\n", 400},
        {JSON ONCE "Transfer-Encoding: gzip, chunked\n", 501},
        {JSON, 400},
        {JSON "Idempotency-Key: \n", 400},
        {JSON "Idempotency-Key: a b\n", 400},
        {JSON ONCE ONCE, 400},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char lines[512];
        (void)snprintf(lines, sizeof lines, HOST AUTH "%s", rows[i].lines);
        if (admit("POST", "/api/v1/jobs/cancel", lines) != rows[i].status)
            fail_msg("%s", rows[i].lines);
    }
    assert_int_equal(admit("POST", "/api/v1/pairings", HOST JSON "Content-Length: 257\n"), 413);
    assert_int_equal(admit("POST", "/api/v1/pairings", HOST JSON "Content-Length: 256\n"), 0);
    assert_int_equal(admit("GET", "/", HOST "Content-Length: 0\n"), 0);
    assert_int_equal(admit("GET", "/", HOST "Content-Length: 1\n"), 400);
    assert_int_equal(admit("GET", "/", HOST "Transfer-Encoding: chunked\n"), 400);
}

TEST(methods_and_paths_are_what_the_table_says)
{
    static const struct {
        const char *method, *target;
        int status;
    } rows[] = {
        {"GET", "/api/v1/state", 0},
        {"HEAD", "/api/v1/state", 0},
        {"GET", "/api/v1/state?a=b", 0},
        {"GET", "/api/v1/state/", 404},
        {"GET", "/api/v1/jobs/7/why", 0},
        {"GET", "/api/v1/jobs//why", 404},
        {"GET", "/api/v1/jobs/7", 404},
        {"GET", "//api/v1/state", 404},
        {"GET", "/api/v1/./state", 404},
        {"GET", "/api/v1/jobs/../state", 404},
        {"get", "/api/v1/state", 405},
        {"PATCH", "/api/v1/state", 405},
        {"TRACE", "/", 405},
        {"OPTIONS", "/", 405},
        {"OPTIONS", "/none", 405},
        {"OPTIONS", "*", 405},
        {"CONNECT", "127.0.0.1:1", 400},
        {"GET", "http://127.0.0.1:7433/", 400},
        {"GET", "", 400},
        {"", "/", 405},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (admit(rows[i].method, rows[i].target, HOST AUTH) != rows[i].status)
            fail_msg("%s %s", rows[i].method, rows[i].target);
}

TEST(parts_are_found_by_name)
{
    tide_text parts[TIDE_HTTPD_PARTS_MAX];
    assert_true(tide_httpd_match("/a/{one}/b/{two}", TIDE_TEXT("/a/x/b/y%2Fz"), parts));
    assert_true(tide_text_equal(parts[0], TIDE_TEXT("x")));
    assert_true(tide_text_equal(parts[1], TIDE_TEXT("y%2Fz")));
    assert_int_equal(tide_httpd_part_at("/a/{one}/b/{two}", "two"), 1);
    assert_int_equal(tide_httpd_part_at("/a/{one}/b/{two}", "tw"), TIDE_HTTPD_PARTS_MAX);
}

TEST(a_query_is_cut_before_it_is_decoded)
{
    struct tide_httpd_pair params[TIDE_HTTPD_PARAMS_MAX];
    size_t count = 0;
    char query[] = "a=1%262&&b&=c&d=e=f&g%3D=+";
    assert_true(tide_httpd_query_read(query, sizeof query - 1, params, &count));
    static const char *const wanted[][2] = {
        {"a", "1&2"}, {"b", ""}, {"", "c"}, {"d", "e=f"}, {"g=", " "}};
    assert_int_equal(count, 5);
    for (size_t i = 0; i < count; i++) {
        assert_true(tide_text_equal(params[i].name, tide_text_of(wanted[i][0])));
        assert_true(tide_text_equal(params[i].value, tide_text_of(wanted[i][1])));
    }
    static const char *const broken[] = {"a=%", "a=%1", "a=%0g", "a=%00", "%=1"};
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        char text[16];
        (void)snprintf(text, sizeof text, "%s", broken[i]);
        assert_false(tide_httpd_query_read(text, strlen(text), params, &count));
    }
}
