#include "onedrive_fixture.h"

static void provide(void *arg, const struct tide_request *request, uint64_t now_unix_ms,
                    tide_rng *rng, struct tide_sim_answer *answer)
{
    struct fixture *f = arg;
    (void)now_unix_ms;
    (void)rng;
    if (strcmp(request->url, ORIGIN "/token") == 0) {
        answer->http = 200;
        OK(tide_buf_print(&answer->body,
                          "{\"access_token\":\"bearer-%u\",\"refresh_token\":\"r\","
                          "\"expires_in\":3599,\"token_type\":\"Bearer\"}",
                          ++f->refreshes + 1));
        return;
    }
    f->requests++;
    (void)snprintf(f->method, sizeof f->method, "%s", request->method);
    (void)snprintf(f->url, sizeof f->url, "%s", request->url);
    f->headers[0] = '\0';
    size_t bytes = 0;
    for (size_t i = 0; i < request->headers_count; i++)
        bytes +=
            (size_t)snprintf(f->headers + bytes, sizeof f->headers - bytes, "%.*s: %.*s\n",
                             (int)request->headers[i].name.bytes, request->headers[i].name.data,
                             (int)request->headers[i].value.bytes, request->headers[i].value.data);
    tide_buf_clear(&f->body);
    OK(tide_buf_add(&f->body, request->body.data, request->body.bytes));
    answer->http = f->http;
    answer->reset = f->reset;
    if (f->truncate_from > 0)
        answer->truncate_from = f->truncate_from;
    OK(tide_buf_add(&answer->body, f->answer,
                    f->answer_bytes > 0 ? f->answer_bytes : strlen(f->answer)));
    if (f->header != NULL)
        tide_sim_answer_header(answer, f->header, f->value);
    if (f->header2 != NULL)
        tide_sim_answer_header(answer, f->header2, f->value2);
}

struct fixture *begin_in(tide_mem *mem)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    const struct tide_sim_options options = {.net = {.provide = provide, .provide_arg = f}};
    f->mem = mem;
    f->sim = tide_sim_new(11, &options);
    f->world = tide_sim_world(f->sim);
    tide_buf_init(&f->body, tide_mem_heap(), 64 << 20);
    answers(f, 200, "{}");
    return f;
}

struct fixture *begin(void)
{
    struct fixture *f = begin_in(tide_mem_heap());
    const struct tide_onedrive_options options = {
        .endpoint = ORIGIN, .bearer = TIDE_TEXT("bearer-1"), .world = f->world};
    OK(tide_onedrive_open(&options, f->mem, &f->onedrive, &f->err));
    return f;
}

void finish(struct fixture *f)
{
    tide_onedrive_answer_done(&f->item);
    tide_onedrive_close(f->onedrive);
    tide_buf_done(&f->body);
    tide_sim_free(f->sim);
    free(f);
}

void answers(struct fixture *f, int http, const char *body)
{
    f->http = http;
    f->answer = body;
    f->answer_bytes = 0;
    f->header = f->header2 = NULL;
    f->reset = false;
    f->truncate_from = 0;
}

void expect(struct fixture *f, tide_status rc, tide_status expected, const char *file, int line)
{
    if (rc == expected && (rc == TIDE_OK || (f->err.status == rc && f->err.text[0] != '\0')))
        return;
    print_error("%s, not %s: %s\n", tide_status_name(rc), tide_status_name(expected), f->err.text);
    _fail(file, line);
}

void assert_asked(struct fixture *f, const char *method, const char *path)
{
    assert_string_equal(f->method, method);
    assert_string_equal(f->url, textf(ORIGIN "%s", path));
    assert_true(has_header(f, "Authorization: Bearer bearer-1\n"));
}

bool has_header(const struct fixture *f, const char *line)
{
    return strstr(f->headers, line) != NULL;
}

json_t *body_of(struct fixture *f)
{
    json_t *value = NULL;
    OK(tide_json_parse(tide_buf_text(&f->body), &value, NULL));
    return value;
}
