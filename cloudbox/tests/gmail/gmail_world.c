#include "gmail_world.h"

void world_init(struct world *world)
{
    static const struct box_service *const services[] = {&box_gmail, &box_mail, &box_pubsub,
                                                         &box_signin, NULL};
    const struct box_options options = {.seed = 7, .quota = BOX_QUOTA_OFF, .services = services};
    const struct box_mailbox_options empty = {.now_unix_ms = NOW_MS};
    memset(world, 0, sizeof *world);
    box_mime_start();
    world->now_ms = NOW_MS;
    world->cloud = box_cloud_new(&options);
    world->token = "alice-token";
    const char *emails[] = {"alice@example.com", "bob@example.com"};
    const char *tokens[] = {"alice-token", "bob-token"};
    for (size_t i = 0; i < 2; i++) {
        TIDE_ASSERT(box_cloud_add_mailbox(world->cloud, tide_text_of(emails[i]), &empty, NULL) ==
                    TIDE_OK);
        TIDE_ASSERT(box_cloud_add_token(world->cloud, tide_text_of(tokens[i]),
                                        tide_text_of(emails[i]), NULL) == TIDE_OK);
    }
    box_answer_init(&world->answer);
}

void world_done(struct world *world)
{
    for (size_t i = 0; box_cloud_user_at(world->cloud, i) != NULL; i++)
        assert_null(box_mailbox_check(box_user_mailbox(box_cloud_user_at(world->cloud, i))));
    json_decref(world->json);
    box_answer_done(&world->answer);
    box_cloud_free(world->cloud);
}

box_mailbox *mailbox_of(struct world *world, const char *email)
{
    return box_user_mailbox(box_cloud_user(world->cloud, tide_text_of(email)));
}

int call_with(struct world *world, const char *verb, const char *target, const char *const *headers,
              tide_text body)
{
    char bearer[200];
    struct box_header list[12];
    size_t count = 0;
    snprintf(bearer, sizeof bearer, "Bearer %s", world->token);
    list[count++] = (struct box_header){TIDE_TEXT("Authorization"), tide_text_of(bearer)};
    for (size_t i = 0; headers != NULL && headers[i] != NULL; i += 2)
        list[count++] = (struct box_header){tide_text_of(headers[i]), tide_text_of(headers[i + 1])};
    const struct box_request request = {.verb = box_verb_of(tide_text_of(verb)),
                                        .target = tide_text_of(target),
                                        .headers = list,
                                        .headers_count = count,
                                        .body = body,
                                        .origin = TIDE_TEXT("http://127.0.0.1:4443")};
    box_answer_done(&world->answer);
    box_answer_init(&world->answer);
    box_cloud_serve(world->cloud, &request, world->now_ms, &world->answer);
    box_cloud_finished(world->cloud, &world->answer.ticket, world->now_ms);
    json_decref(world->json);
    world->json = json_loadb(tide_buf_cstr(&world->answer.body), world->answer.body.bytes,
                             JSON_REJECT_DUPLICATES, NULL);
    if (world->answer.body.bytes > 0)
        assert_non_null(world->json);
    return world->answer.status;
}

int call(struct world *world, const char *verb, const char *path, const char *body)
{
    char target[2048];
    static const char *const json[] = {"Content-Type", "application/json", NULL};
    snprintf(target, sizeof target, "/gmail/v1/users/me%s", path);
    return call_with(world, verb, target, json, tide_text_of(body));
}

json_t *at(struct world *world, const char *path)
{
    json_t *value = world->json;
    char name[64];
    while (*path != '\0' && value != NULL) {
        const size_t bytes = strcspn(path, ".");
        snprintf(name, sizeof name, "%.*s", (int)bytes, path);
        value = json_is_array(value) ? json_array_get(value, (size_t)(name[0] - '0'))
                                     : json_object_get(value, name);
        path += bytes + (path[bytes] == '.');
    }
    return value;
}

const char *text_at(struct world *world, const char *path)
{
    const char *text = json_string_value(at(world, path));
    return text != NULL ? text : "(none)";
}

void assert_labels(json_t *list, const char *wanted)
{
    char have[512] = "";
    size_t used = 0;
    for (size_t i = 0; i < json_array_size(list); i++)
        used += (size_t)snprintf(have + used, sizeof have - used, "%s%s", i > 0 ? " " : "",
                                 json_string_value(json_array_get(list, i)));
    assert_string_equal(have, wanted);
    assert_int_equal(list == NULL, wanted[0] == '\0'); /* BGML3 */
}

void insert(struct world *world, tide_text raw, const char *more, char id_out[BOX_ID_TEXT_BYTES])
{
    tide_auto_buf body = tide_buf_heap(BOX_ANSWER_BYTES_MAX);
    box_add_cstr(&body, "{\"raw\":\"");
    box_add_base64url(&body, raw);
    box_print(&body, "\"%s}", more);
    assert_int_equal(call(world, "POST", "/messages", tide_buf_cstr(&body)), 200);
    snprintf(id_out, BOX_ID_TEXT_BYTES, "%s", text_at(world, "id"));
}

const char *path_print(char *out, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(out, 512, format, args);
    va_end(args);
    return out;
}

void get_raw(struct world *world, const char *id, tide_buf *bytes)
{
    assert_int_equal(call(world, "GET", PATH("/messages/%s?format=raw", id), NULL), 200);
    const json_t *text = at(world, "raw");
    assert_true(json_is_string(text));
    assert_true(
        box_base64_decode((tide_text){json_string_value(text), json_string_length(text)}, bytes));
}

void assert_raw(struct world *world, const char *id, tide_text raw)
{
    tide_auto_buf bytes = tide_buf_heap(BOX_ANSWER_BYTES_MAX);
    get_raw(world, id, &bytes);
    assert_int_equal(bytes.bytes, raw.bytes);
    assert_memory_equal(tide_buf_cstr(&bytes), raw.data, raw.bytes);
    assert_int_equal(json_integer_value(at(world, "sizeEstimate")), raw.bytes);
}

const char *token_with(struct world *world, uint32_t scopes)
{
    struct box_auth *auth = box_cloud_auth(world->cloud);
    struct box_ask ask = {.client = box_auth_client(auth, TIDE_TEXT("tests")),
                          .scopes = scopes,
                          .redirect_uri = "http://127.0.0.1/"};
    const char *code =
        box_auth_code(auth, &ask, box_cloud_user(world->cloud, TIDE_TEXT("alice@example.com")),
                      scopes, world->now_ms);
    struct box_issue issue;
    struct box_oauth_error error;
    const struct box_redeem redeem = {.code = tide_text_of(code),
                                      .redirect_uri = TIDE_TEXT("http://127.0.0.1/"),
                                      .client = ask.client};
    assert_true(box_auth_redeem(auth, &redeem, world->now_ms, &issue, &error));
    return issue.access;
}
