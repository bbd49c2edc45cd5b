/* Who sees which sites. */
#include "console_fixture.h"

CASE(everybody_sees_their_own_sites)
{
    assert_int_equal(serve(world, "bob", BOX_GET, "/webmasters/v3/sites", ""), 200);
    json_auto_t *wanted = json_loads("{\"siteEntry\":[{\"siteUrl\":\"sc-domain:example.com\","
                                     "\"permissionLevel\":\"siteFullUser\"},"
                                     "{\"siteUrl\":\"sc-domain:other.org\","
                                     "\"permissionLevel\":\"siteOwner\"}]}",
                                     0, NULL);
    assert_true(json_equal(world->json, wanted));
    assert_int_equal(serve(world, "ann", BOX_GET, "/webmasters/v3/sites", ""), 200);
    assert_int_equal(json_array_size(json_object_get(world->json, "siteEntry")), 4);
    tide_error err;
    assert_ok(
        box_cloud_add_token(world->cloud, TIDE_TEXT("eve"), TIDE_TEXT("eve@example.com"), &err));
    assert_int_equal(serve(world, "eve", BOX_GET, "/webmasters/v3/sites", ""), 200);
    assert_int_equal(json_object_size(world->json), 0);
}

CASE(a_site_says_what_its_asker_may)
{
    static const struct {
        const char *token;
        const char *target;
        int status;
        const char *word;
    } cases[] = {
        {"ann", "/webmasters/v3/sites/sc-domain%3Aexample.com", 200, "siteOwner"},
        {"ann", "/webmasters/v3/sites/https%3A%2F%2Fshop.example.com%2F", 200, "siteOwner"},
        {"bob", "/webmasters/v3/sites/https%3A%2F%2Fshop.example.com%2F", 200,
         "siteUnverifiedUser"},
        {"ann", "/webmasters/v3/sites/https%3A%2F%2Fshop.example.com", 404, NULL},
        {"ann", "/webmasters/v3/sites/sc-domain%3Anowhere.org", 404, NULL},
        {"ann", "/webmasters/v3/sites/example.com", 400, NULL},
        {"ann", "/webmasters/v3/sites/sc-domain%3Aexample.com/sitemaps", 200, NULL},
        {"bob", "/webmasters/v3/sites/https%3A%2F%2Fshop.example.com%2F/sitemaps", 403, NULL},
        {"ann", "/webmasters/v3/sites/sc-domain%3Aexample.com/sitemaps/x.xml", 404, NULL},
        {"nobody", "/webmasters/v3/sites", 401, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(serve(world, cases[i].token, BOX_GET, cases[i].target, ""),
                         cases[i].status);
        if (cases[i].word != NULL)
            assert_string_equal(json_string_value(json_object_get(world->json, "permissionLevel")),
                                cases[i].word);
    }
}

CASE(an_unknown_user_may_not_query)
{
    static const char *const sites[] = {"https%3A%2F%2Fshop.example.com%2F",
                                        "sc-domain%3Anowhere.org"};
    for (size_t i = 0; i < 2; i++) {
        char target[200];
        (void)snprintf(target, sizeof target, "/webmasters/v3/sites/%s/searchAnalytics/query",
                       sites[i]);
        assert_int_equal(serve(world, "bob", BOX_POST, target, "{}"), 403);
        assert_string_equal(reason_of(world), "forbidden");
        assert_non_null(strstr(message_of(world), "User does not have sufficient permission"));
    }
}

TEST(only_properties_can_be_added)
{
    static const struct box_service *const services[] = {&box_console, NULL};
    auto_cloud *cloud = box_cloud_new(&(struct box_options){.seed = 1, .services = services});
    struct box_sites *sites = box_cloud_sites(cloud);
    struct box_user user = {.number = 1};
    static const char *const wrong[] = {"",
                                        "example.com",
                                        "sc-domain:",
                                        "https://",
                                        "https://a.com",
                                        "sc-domain:a.com/",
                                        "ftp://a.com/",
                                        "https://a\"b.com/",
                                        "https://a b.com/"};
    tide_error err;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(box_sites_add(sites, tide_text_of(wrong[i]), &user, 10, &err),
                         TIDE_INVALID);
    const tide_text name = TIDE_TEXT("sc-domain:a.com");
    assert_int_equal(box_sites_add(sites, name, &user, BOX_SITE_ROWS_MAX + 1, &err), TIDE_INVALID);
    assert_int_equal(box_sites_number(sites, name), 0);
    assert_ok(box_sites_add(sites, name, &user, 10, &err));
    assert_int_equal(box_sites_add(sites, name, &user, 10, &err), TIDE_EXISTS);
    assert_int_equal(box_sites_number(sites, name), 1);
}
