/* The provider and its referee. */
#include "sim_world_fixture.h"

TEST(listing_pages_through_a_span_once)
{
    const struct tide_sim_provider_options items = {
        .seed = 5, .items_count = 1234, .new_count = 100, .vanish_permille = 100};
    tide_sim_provider *provider = tide_sim_provider_new(&items);
    const struct tide_sim_options options = {
        .net = {.provide = tide_sim_provider_call, .provide_arg = provider}};
    tide_sim *sim = tide_sim_new(5, &options);
    size_t count = 0;
    const struct tide_sim_item *all = tide_sim_provider_items(provider, &count);
    uint64_t start_ms = all[100].time_ms;
    uint64_t end_ms = all[1200].time_ms;
    char token[40] = "";
    size_t at = 0;
    uint32_t pages = 0;
    while (pages == 0 || token[0] != '\0') {
        char path[200];
        int http = 0;
        (void)snprintf(path, sizeof path,
                       "/items?start=%" PRIu64 "&end=%" PRIu64 "&pageSize=97%s%s", start_ms, end_ms,
                       token[0] ? "&pageToken=" : "", token);
        json_t *page = ask(sim, "GET", path, TIDE_TEXT_NONE, &http);
        assert_int_equal(http, 200);
        const json_t *list = json_object_get(page, "items");
        for (size_t i = 0; i < json_array_size(list); i++) {
            const char *id = json_string_value(json_object_get(json_array_get(list, i), "id"));
            const struct tide_sim_item *item = tide_sim_provider_item(provider, tide_text_of(id));
            assert_non_null(item);
            size_t index = (size_t)(item - all);
            assert_true(index >= at); /* in order, none twice */
            for (; at < index; at++)  /* none left out but what was not there */
                assert_true(all[at].time_ms < start_ms || all[at].vanishes_ms < UINT64_MAX);
            at = index + 1;
        }
        const char *next = json_string_value(json_object_get(page, "nextPageToken"));
        (void)snprintf(token, sizeof token, "%s", next == NULL ? "" : next);
        json_decref(page);
        pages++;
    }
    assert_in_range(at, 1150, 1200);
    assert_in_range(pages, 11, 12);
    tide_sim_free(sim);
    tide_sim_provider_free(provider);
}

TEST(items_appear_vanish_and_fail_as_planned)
{
    const struct tide_sim_provider_options items = {.seed = 6,
                                                    .items_count = 600,
                                                    .new_count = 100,
                                                    .vanish_permille = 200,
                                                    .poison_500_permille = 50,
                                                    .poison_400_permille = 50,
                                                    .stalls_permille = 20,
                                                    .resets_permille = 20};
    tide_sim_provider *provider = tide_sim_provider_new(&items);
    const struct tide_sim_options options = {
        .net = {.provide = tide_sim_provider_call, .provide_arg = provider, .latency_us_max = 100}};
    tide_sim *sim = tide_sim_new(6, &options);
    size_t count = 0;
    const struct tide_sim_item *all = tide_sim_provider_items(provider, &count);
    tide_sim_pause(sim, 1800ull * 1000 * 1000); /* half of the changes have happened */
    uint32_t seen[2] = {0};
    for (size_t i = 0; i < count; i++) {
        char path[100];
        int http = 0;
        (void)snprintf(path, sizeof path, "/items/%s", all[i].id);
        bool there = tide_sim_item_there(&all[i], tide_sim_net_unix_ms(sim));
        json_t *answer = ask(sim, "GET", path, TIDE_TEXT_NONE, &http);
        bool still = tide_sim_item_there(&all[i], tide_sim_net_unix_ms(sim));
        if (!there && !still)
            assert_int_equal(http, 404);
        else if (all[i].kind == TIDE_SIM_ITEM_POISON_500)
            assert_int_equal(http, 500);
        else if (all[i].kind == TIDE_SIM_ITEM_POISON_400)
            assert_int_equal(http, 400);
        else if (all[i].kind != TIDE_SIM_ITEM_PLAIN)
            assert_int_equal(http, 0);
        else if (there && still)
            assert_int_equal(http, 200);
        if (http == 200) {
            json_t *data = json_object_get(answer, "data");
            tide_text text = {json_string_value(data), json_string_length(data)};
            assert_true(tide_sim_provider_content_is(provider, tide_text_of(all[i].id), text));
            assert_int_equal(all[i].given, 1);
        }
        seen[http == 404]++;
        json_decref(answer);
    }
    assert_true(seen[0] > 400);
    assert_true(seen[1] > 50);
    tide_sim_free(sim);
    tide_sim_provider_free(provider);
}

/* The referee's window against a sum over all pairs. */
TEST(the_referee_counts_every_sliding_window)
{
    enum { CALLS = 3000 };
    const struct tide_sim_provider_options options = {
        .seed = 7, .items_count = 10, .units_per_minute = 1000, .think_us_max = 1};
    tide_sim_provider *provider = tide_sim_provider_new(&options);
    tide_rng rng = tide_rng_seeded(7);
    static uint64_t at_ms[CALLS];
    static uint32_t units[CALLS];
    uint64_t now_ms = 1772323200000;
    uint64_t highest = 0;
    uint64_t refused = 0;
    for (size_t i = 0; i < CALLS; i++) {
        now_ms += tide_rng_below(&rng, 1200);
        bool item = tide_rng_chance(&rng, 1, 2);
        struct tide_request request = {.method = "GET",
                                       .url = item ? "http://x/items/i0-0" : "http://x/items"};
        struct tide_sim_answer answer = {.truncate_from = UINT64_MAX};
        tide_buf_init(&answer.body, tide_mem_heap(), 1 << 20);
        tide_sim_provider_call(provider, &request, now_ms, &rng, &answer);
        uint64_t sum = 0;
        for (size_t past = 0; past < i; past++)
            if (at_ms[past] + 60000 > now_ms)
                sum += units[past];
        uint32_t cost = item ? 20 : 5;
        bool over = sum + cost > 1000;
        assert_int_equal(over, answer.http == 429 || answer.http == 403);
        at_ms[i] = now_ms;
        units[i] = over ? 0 : cost;
        refused += over;
        if (!over && sum + cost > highest)
            highest = sum + cost;
        tide_buf_done(&answer.body);
    }
    struct tide_sim_truth truth = tide_sim_provider_truth(provider);
    assert_int_equal(truth.over_quota, refused);
    assert_int_equal(truth.units_highest, highest);
    assert_true(refused > 100);
    for (int form = 0; form < TIDE_SIM_REFUSALS; form++)
        assert_true(truth.refusals[form] > 0);
    tide_sim_provider_free(provider);
}

TEST(notes_made_twice_are_noticed)
{
    tide_sim_provider *provider =
        tide_sim_provider_new(&(struct tide_sim_provider_options){.seed = 1});
    const struct tide_sim_options options = {
        .net = {.provide = tide_sim_provider_call, .provide_arg = provider}};
    tide_sim *sim = tide_sim_new(8, &options);
    int http = 0;
    json_decref(ask(sim, "POST", "/notes", TIDE_TEXT("{\"tag\":\"a\"}"), &http));
    json_decref(ask(sim, "POST", "/notes", TIDE_TEXT("{\"tag\":\"b\"}"), &http));
    assert_int_equal(tide_sim_provider_truth(provider).notes_doubled, 0);
    json_decref(ask(sim, "POST", "/notes", TIDE_TEXT("{\"tag\":\"a\"}"), &http));
    assert_int_equal(tide_sim_provider_truth(provider).notes_doubled, 1);
    json_t *count = ask(sim, "GET", "/notes?tag=a", TIDE_TEXT_NONE, &http);
    assert_int_equal(json_integer_value(json_object_get(count, "count")), 2);
    json_decref(count);
    tide_sim_free(sim);
    tide_sim_provider_free(provider);
}
