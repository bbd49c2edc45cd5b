#include "console_fixture.h"
#include "support/scale.h"

#include <math.h>

int32_t day(const char *text)
{
    int32_t number = 0;
    assert_true(box_day_parse(tide_text_of(text), &number));
    return number;
}

int setup(void **state)
{
    static const struct box_service *const services[] = {&box_console, &box_signin, NULL};
    struct world *world = calloc(1, sizeof *world);
    world->cloud = box_cloud_new(&(struct box_options){.seed = 3, .services = services});
    world->now_ms = NOW_MS;
    box_answer_init(&world->answer);
    tide_error err;
    static const struct {
        const char *site;
        const char *user;
        uint32_t rows;
    } sites[] = {
        {"sc-domain:example.com", "ann@example.com", 600},
        {"https://shop.example.com/", "ann@example.com", 50},
        {"sc-domain:example.com", "bob@example.com", 0},
        {"sc-domain:other.org", "bob@example.com", 100},
        {"sc-domain:large.org", "ann@example.com", BOX_SITE_ROWS_MAX},
        {"sc-domain:empty.org", "ann@example.com", 0},
    };
    assert_ok(
        box_cloud_add_token(world->cloud, TIDE_TEXT("ann"), TIDE_TEXT("ann@example.com"), &err));
    assert_ok(
        box_cloud_add_token(world->cloud, TIDE_TEXT("bob"), TIDE_TEXT("bob@example.com"), &err));
    for (size_t i = 0; i < sizeof sites / sizeof sites[0]; i++)
        assert_ok(box_cloud_add_site(world->cloud, tide_text_of(sites[i].site),
                                     tide_text_of(sites[i].user), sites[i].rows, &err));
    *state = world;
    return 0;
}

int teardown(void **state)
{
    struct world *world = *state;
    json_decref(world->json);
    box_answer_done(&world->answer);
    box_cloud_free(world->cloud);
    free(world);
    return 0;
}

int serve(struct world *world, const char *token, box_verb verb, const char *target,
          const char *body)
{
    char bearer[64];
    (void)snprintf(bearer, sizeof bearer, "Bearer %s", token);
    const struct box_header headers[] = {
        {TIDE_TEXT("Authorization"), tide_text_of(bearer)},
        {TIDE_TEXT("Content-Type"), TIDE_TEXT("application/json")},
    };
    const struct box_request request = {.verb = verb,
                                        .target = tide_text_of(target),
                                        .headers = headers,
                                        .headers_count = 2,
                                        .body = tide_text_of(body),
                                        .origin = TIDE_TEXT("http://box")};
    box_answer_clear(&world->answer);
    box_cloud_serve(world->cloud, &request, world->now_ms, &world->answer);
    box_cloud_finished(world->cloud, &world->answer.ticket, world->now_ms);
    json_decref(world->json);
    world->json = json_loadb(tide_buf_cstr(&world->answer.body), world->answer.body.bytes, 0, NULL);
    assert_non_null(world->json);
    return world->answer.status;
}

const char *message_of(struct world *world)
{
    const char *text =
        json_string_value(json_object_get(json_object_get(world->json, "error"), "message"));
    return text == NULL ? "" : text;
}

const char *reason_of(struct world *world)
{
    const json_t *errors = json_object_get(json_object_get(world->json, "error"), "errors");
    const char *text = json_string_value(json_object_get(json_array_get(errors, 0), "reason"));
    return text == NULL ? "" : text;
}

json_t *rows_of(struct world *world, const char *body)
{
    const int status = serve(world, "ann", BOX_POST, QUERY_AT "?prettyPrint=false", body);
    if (status != 200)
        print_error("%d %s\n%s\n", status, message_of(world), body);
    assert_int_equal(status, 200);
    json_t *rows = json_object_get(world->json, "rows");
    if (rows != NULL)
        assert_true(json_array_size(rows) > 0);
    return rows;
}

struct sums sums_of(const json_t *rows)
{
    struct sums sums = {.rows = json_array_size(rows)};
    double last = INFINITY;
    for (size_t i = 0; i < sums.rows; i++) {
        const json_t *row = json_array_get(rows, i);
        const double clicks = json_number_value(json_object_get(row, "clicks"));
        const double impressions = json_number_value(json_object_get(row, "impressions"));
        assert_true(clicks <= last);
        last = clicks;
        sums.clicks += clicks;
        sums.impressions += impressions;
        sums.positions += impressions * json_number_value(json_object_get(row, "position"));
        const double ctr = json_number_value(json_object_get(row, "ctr"));
        assert_true(fabs(ctr - clicks / impressions) < 1e-14);
    }
    return sums;
}

void page_body(char *out, size_t bytes, const char *dimensions, const char *last, size_t start,
               size_t limit)
{
    (void)snprintf(out, bytes,
                   "{\"startDate\":\"2026-08-01\",\"endDate\":\"%s\",\"dimensions\":[%s],"
                   "\"startRow\":%zu,\"rowLimit\":%zu}",
                   last, dimensions, start, limit);
}
