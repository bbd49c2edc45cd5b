#include "serve/http/answer.h"

#include "base/check.h"

#include <stdio.h>
#include <string.h>

tide_text tide_httpd_part(const struct tide_httpd_request *request, const char *name)
{
    const size_t at = tide_httpd_part_at(request->route->path, name);
    TIDE_ASSERT(at < TIDE_HTTPD_PARTS_MAX);
    return request->parts[at];
}

tide_text tide_httpd_param(const struct tide_httpd_request *request, const char *name)
{
    for (size_t i = 0; i < request->params_count; i++)
        if (tide_text_equal(request->params[i].name, tide_text_of(name)))
            return request->params[i].value;
    return TIDE_TEXT_NONE;
}

void tide_httpd_answer_init(struct tide_httpd_answer *answer, tide_mem *mem)
{
    memset(answer, 0, sizeof *answer);
    tide_buf_init(&answer->body, mem, TIDE_HTTPD_ANSWER_BYTES_MAX);
}

void tide_httpd_answer_done(struct tide_httpd_answer *answer)
{
    tide_buf_done(&answer->body);
}

void tide_httpd_answer_clear(struct tide_httpd_answer *answer)
{
    tide_buf body = answer->body;
    tide_buf_clear(&body);
    memset(answer, 0, sizeof *answer);
    answer->body = body;
}

tide_text tide_httpd_answer_body(const struct tide_httpd_answer *answer)
{
    return answer->borrowed.data != NULL ? answer->borrowed : tide_buf_text(&answer->body);
}

void tide_httpd_set(struct tide_httpd_answer *answer, const char *name, const char *format, ...)
{
    if (answer->headers_count == TIDE_HTTPD_ANSWER_HEADERS_MAX) {
        answer->failed = true;
        return;
    }
    char *value = answer->headers[answer->headers_count].value;
    va_list args;
    va_start(args, format);
    const int bytes = vsnprintf(value, TIDE_HTTPD_ANSWER_HEADER_BYTES_MAX, format, args);
    va_end(args);
    if (bytes < 0 || bytes >= TIDE_HTTPD_ANSWER_HEADER_BYTES_MAX)
        answer->failed = true;
    else
        for (const char *c = value; *c != '\0'; c++)
            answer->failed |= (unsigned char)*c < ' ' || *c == 127;
    if (answer->failed)
        return;
    answer->headers[answer->headers_count++].name = name;
}

void tide_httpd_json(struct tide_httpd_answer *answer, int status, tide_json *json)
{
    answer->status = status;
    answer->type = "application/json";
    tide_buf_clear(&answer->body);
    if (tide_json_line(json, &answer->body) != TIDE_OK)
        answer->failed = true;
    tide_json_done(json);
}

void tide_httpd_text(struct tide_httpd_answer *answer, int status, const char *type, tide_text text)
{
    answer->status = status;
    answer->type = type;
    tide_buf_clear(&answer->body);
    if (tide_buf_add(&answer->body, text.data, text.bytes) != TIDE_OK)
        answer->failed = true;
}

static const char *title_of(int status)
{
    switch (status) {
    case 400:
        return "Bad request";
    case 401:
        return "Key needed";
    case 403:
        return "Not allowed";
    case 404:
        return "Not found";
    case 405:
        return "Method not allowed";
    case 409:
        return "Changed in between";
    case 410:
        return "Gone";
    case 413:
        return "Too large";
    case 415:
        return "Wrong content type";
    case 421:
        return "Wrong host";
    case 422:
        return "Idempotency key used for another request";
    case 429:
        return "Too many requests";
    case 503:
        return "Not now";
    default:
        return status >= 500 ? "Failed" : "Refused";
    }
}

void tide_httpd_fail(struct tide_httpd_answer *answer, int status, const char *code,
                     const char *detail, const struct tide_httpd_problem *more)
{
    tide_json json;
    tide_httpd_answer_clear(answer);
    tide_json_object(&json);
    tide_json_set_cstr(&json, "type", "about:blank");
    tide_json_set_cstr(&json, "title", title_of(status));
    tide_json_set_u64(&json, "status", (uint64_t)status);
    tide_json_set_cstr(&json, "code", code);
    tide_json_set_cstr(&json, "detail", detail);
    if (more != NULL && more->help != NULL)
        tide_json_set_cstr(&json, "help", more->help);
    if (more != NULL && more->until_unix_ms != 0)
        tide_json_set_u64(&json, "until", more->until_unix_ms);
    tide_httpd_json(answer, status, &json);
    answer->type = "application/problem+json";
    if (more != NULL && more->retry_after_s != 0)
        tide_httpd_set(answer, "Retry-After", "%u", (unsigned)more->retry_after_s);
}

void tide_httpd_hold(struct tide_httpd_answer *answer, uint32_t hold_ms)
{
    answer->status = 0;
    answer->hold_ms = hold_ms == 0 ? 1 : hold_ms;
}
