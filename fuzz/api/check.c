#include "check.h"

#include "../../tests/support/wash_scan.h"
#include "../fuzz.h"
#include "home.h"

static const struct tide_httpd_answer *seen; /* for fail() */

static void fail(const char *what, const char *detail)
{
    const tide_text body = tide_httpd_answer_body(seen);
    (void)fprintf(stderr, "%s%s%s\nstatus %d, %s\n%.*s\n", what, detail == NULL ? "" : ": ",
                  detail == NULL ? "" : detail, seen->status,
                  seen->type == NULL ? "no type" : seen->type,
                  (int)(body.bytes < 4000 ? body.bytes : 4000), body.data == NULL ? "" : body.data);
    abort();
}

static bool contains(tide_text text, const char *word)
{
    return text.bytes > 0 && memmem(text.data, text.bytes, word, strlen(word)) != NULL;
}

static bool starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static void check_status(void)
{
    static const int known[] = {200, 201, 202, 400, 401, 403, 404, 409, 413, 422, 429, 503};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (seen->status == known[i] && !seen->failed)
            return;
    fail("the answer is unfinished, or has a status that is not known", NULL);
}

static void check_headers(void)
{
    if (seen->type == NULL)
        fail("no Content-Type", NULL);
    for (size_t i = 0; i < seen->headers_count; i++)
        for (const char *c = seen->headers[i].value; *c != '\0'; c++)
            if ((unsigned char)*c < ' ' || *c == 127)
                fail("a header has a control character", seen->headers[i].name);
}

static void check_problem(const json_t *json)
{
    const char *code = json_string_value(json_object_get(json, "code"));
    const char *detail = json_string_value(json_object_get(json, "detail"));
    if (code == NULL || code[0] == '\0' || detail == NULL || detail[0] == '\0')
        fail("a problem without code or detail", NULL);
    if (json_integer_value(json_object_get(json, "status")) != seen->status)
        fail("a problem with another status than its answer", NULL);
}

static void check_json(void)
{
    const bool problem = strcmp(seen->type, "application/problem+json") == 0;
    json_t *json = NULL;
    if (problem != (seen->status >= 400))
        fail("an error is a problem, and nothing else is", NULL);
    if (!problem && strcmp(seen->type, "application/json") != 0)
        return;
    if (tide_json_parse(tide_httpd_answer_body(seen), &json, NULL) != TIDE_OK ||
        !json_is_object(json))
        fail("the answer is not a JSON object", NULL);
    if (problem)
        check_problem(json);
    json_decref(json);
}

/* What a stranger wrote never runs in the page's origin: it is sandboxed, and only HTML that was
 * washed is HTML. */
static void check_part(const struct tide_httpd_request *request)
{
    static const char head[] = "<body>\n";
    static const char tail[] = "\n</body></html>\n";
    const tide_text body = tide_httpd_answer_body(seen);
    const bool html = strcmp(request->route->path, "/v/{cap}/html") == 0;
    if (seen->status != 200)
        return;
    if (html != starts(seen->type, "text/html") ||
        (!html && !starts(seen->type, "image/") &&
         strcmp(seen->type, "application/octet-stream")) ||
        contains(tide_text_of(seen->type), "svg"))
        fail("a part has a type that a browser may run", NULL);
    if (seen->csp != NULL ? strstr(seen->csp, "sandbox") == NULL ||
                                strstr(seen->csp, "default-src 'none'") == NULL
                          : html || !starts(seen->type, "image/"))
        fail("a part has no policy", seen->csp);
    if (!html)
        return;
    const char *from = memmem(body.data, body.bytes, head, sizeof head - 1);
    if (from == NULL || body.bytes < sizeof tail - 1 ||
        memcmp(body.data + body.bytes - (sizeof tail - 1), tail, sizeof tail - 1) != 0)
        fail("the frame of a message is not whole", NULL);
    from += sizeof head - 1;
    const char *problem =
        wash_scan((tide_text){from, (size_t)(body.data + body.bytes - (sizeof tail - 1) - from)});
    if (problem != NULL)
        fail("HTML is not washed", problem);
}

static void check_secret(tide_text input, const char *secret)
{
    bool found = contains(tide_httpd_answer_body(seen), secret);
    for (size_t i = 0; i < seen->headers_count; i++)
        found = found || contains(tide_text_of(seen->headers[i].value), secret);
    if (found && !contains(input, secret))
        fail("the answer has a secret", secret);
}

void check_answer(const struct tide_httpd_request *request, tide_text input,
                  const struct tide_httpd_answer *answer)
{
    const bool part = starts(request->route->path, "/v/");
    seen = answer;
    check_status();
    check_headers();
    check_json();
    if (part)
        check_part(request);
    for (const char *const *secret = home_secrets(); *secret != NULL; secret++)
        check_secret(input, *secret);
    if (!part && request->who->scope < TIDE_HTTPD_WORK)
        check_secret(input, HOME_MAIL_WORD);
}
