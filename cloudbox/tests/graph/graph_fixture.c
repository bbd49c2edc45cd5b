#include "graph_fixture.h"

#include "base/check.h"

static const struct box_service *const services[] = {&box_graph, &box_signin, &box_microsoft,
                                                     &box_control, NULL};

void world_init(struct world *world, const struct setup_options *options)
{
    memset(world, 0, sizeof *world);
    world->now_ms = NOW_MS;
    world->cloud = box_cloud_new(&(struct box_options){.seed = 7,
                                                       .auto_consent = options->auto_consent,
                                                       .quota = options->quota,
                                                       .latency_ms = options->latency_ms,
                                                       .keep = options->keep,
                                                       .keep_arg = options->keep_arg,
                                                       .services = services});
    box_cloud_tell_time(world->cloud, NOW_MS);
    world->token = "alice-token";
    box_answer_init(&world->answer);
    tide_buf_init(&world->bytes, tide_mem_heap(), 64 << 20);
    if (options->empty)
        return;
    json_t *settings = json_pack("{s:I, s:i}", "drive_bytes", (json_int_t)options->drive_bytes,
                                 "business", (int)options->business);
    assert_ok(box_cloud_user_add(world->cloud, TIDE_TEXT("alice@example.com"), settings, NULL));
    assert_ok(box_cloud_add_token(world->cloud, TIDE_TEXT("alice-token"),
                                  TIDE_TEXT("alice@example.com"), NULL));
    assert_ok(box_cloud_add_token(world->cloud, TIDE_TEXT("bob-token"),
                                  TIDE_TEXT("bob@example.com"), NULL));
    if (options->files > 0)
        box_drive_fill(drive_of(world), options->files, options->file_bytes, NOW_MS);
}

void world_done(struct world *world)
{
    assert_null(box_drive_check(drive_of(world)));
    json_decref(world->json);
    box_answer_done(&world->answer);
    tide_buf_done(&world->bytes);
    box_cloud_free(world->cloud);
}

box_drive *drive_of(struct world *world)
{
    return box_user_drive(box_cloud_user(world->cloud, TIDE_TEXT("alice@example.com")));
}

/* Keeps the body, whichever way it came. */
static void take_body(struct world *world)
{
    const struct box_source *source = &world->answer.source;
    tide_buf_clear(&world->bytes);
    if (source->read == NULL) {
        box_add(&world->bytes, tide_buf_cstr(&world->answer.body), world->answer.body.bytes);
    } else if (source->bytes > 0) {
        char *room = tide_buf_reserve(&world->bytes, (size_t)source->bytes + 1);
        assert_non_null(room);
        source->read(source->arg, 0, room, (size_t)source->bytes);
        world->bytes.bytes += (size_t)source->bytes;
        room[source->bytes] = '\0';
    }
    json_decref(world->json);
    world->json =
        json_loadb(tide_buf_cstr(&world->bytes), world->bytes.bytes, JSON_REJECT_DUPLICATES, NULL);
}

int call_with(struct world *world, const char *verb, const char *target, const char *const *headers,
              tide_text body)
{
    char bearer[200];
    struct box_header list[12];
    size_t count = 0;
    if (strncmp(target, ORIGIN, strlen(ORIGIN)) == 0)
        target += strlen(ORIGIN);
    snprintf(bearer, sizeof bearer, "Bearer %s", world->token == NULL ? "" : world->token);
    if (world->token != NULL && strncmp(target, "/_files", 7) != 0)
        list[count++] = (struct box_header){TIDE_TEXT("Authorization"), tide_text_of(bearer)};
    for (size_t i = 0; headers != NULL && headers[i] != NULL; i += 2)
        list[count++] = (struct box_header){tide_text_of(headers[i]), tide_text_of(headers[i + 1])};
    const struct box_request request = {.verb = box_verb_of(tide_text_of(verb)),
                                        .target = tide_text_of(target),
                                        .headers = list,
                                        .headers_count = count,
                                        .body = body,
                                        .origin = TIDE_TEXT(ORIGIN)};
    box_answer_done(&world->answer);
    box_answer_init(&world->answer);
    box_cloud_serve(world->cloud, &request, world->now_ms, &world->answer);
    box_cloud_finished(world->cloud, &world->answer.ticket, world->now_ms);
    take_body(world);
    return world->answer.status;
}

int call(struct world *world, const char *verb, const char *path, const char *body)
{
    return call_with(world, verb, printed("/v1.0/me/drive%s", path),
                     HEADERS("Content-Type", "application/json"), tide_text_of(body));
}

json_t *at(struct world *world, const char *path)
{
    json_t *value = world->json;
    char name[64];
    while (*path != '\0' && value != NULL) {
        size_t bytes = strcspn(path, ".");
        if (*path == '@')
            bytes = strlen(path);
        snprintf(name, sizeof name, "%.*s", (int)bytes, path);
        value = json_is_array(value) ? json_array_get(value, strtoul(name, NULL, 10))
                                     : json_object_get(value, name);
        path += bytes + (path[bytes] == '.');
    }
    return value;
}

const char *text_at(struct world *world, const char *path)
{
    const char *text = json_string_value(at(world, path));
    return text == NULL ? "" : text;
}

json_int_t number_at(struct world *world, const char *path)
{
    return json_integer_value(at(world, path));
}

const char *header_of(struct world *world, const char *name)
{
    for (size_t i = 0; i < world->answer.headers_count; i++)
        if (strcmp(world->answer.headers[i].name, name) == 0)
            return world->answer.headers[i].value;
    return "";
}

/* ---- texts ---- */

static tide_arena texts;

__attribute__((destructor)) static void texts_done(void)
{
    if (texts.mem != NULL)
        tide_arena_done(&texts);
}

const char *kept(const char *text)
{
    if (texts.mem == NULL)
        tide_arena_init(&texts, tide_mem_heap(), 1 << 28);
    const char *copy = tide_arena_copy(&texts, text, strlen(text));
    TIDE_ASSERT(copy != NULL);
    return copy;
}

const char *printed(const char *format, ...)
{
    char text[8192];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return kept(text);
}

/* ---- short forms ---- */

const char *put_file(struct world *world, const char *path, const char *content)
{
    const int status = call_with(world, "PUT", printed("/v1.0/me/drive/root:/%s:/content", path),
                                 NULL, tide_text_of(content));
    assert_true(status == 201 || status == 200);
    return kept(text_at(world, "id"));
}

const char *make_folder(struct world *world, const char *parent_path, const char *name)
{
    assert_int_equal(call(world, "POST", printed("%s/children", parent_path),
                          printed("{\"name\":\"%s\",\"folder\":{}}", name)),
                     201);
    return kept(text_at(world, "id"));
}

const char *get_bytes(struct world *world, const char *path)
{
    assert_int_equal(call(world, "GET", printed("%s/content", path), NULL), 302);
    assert_int_equal(
        call_with(world, "GET", kept(header_of(world, "Location")), NULL, TIDE_TEXT_NONE), 200);
    return tide_buf_cstr(&world->bytes);
}

json_int_t violations(struct world *world, const char *kind)
{
    json_auto_t *stats = box_cloud_stats(world->cloud, NULL, false);
    size_t i = 0;
    json_t *entry = NULL;
    json_array_foreach(json_object_get(stats, "violations"), i, entry)
    {
        if (strcmp(json_string_value(json_object_get(entry, "kind")), kind) == 0)
            return json_integer_value(json_object_get(entry, "count"));
    }
    return 0;
}
