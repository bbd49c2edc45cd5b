/* Where the calls go. */
#include "gmail_client_fixture.h"

CASE(an_address_is_a_scheme_a_host_and_no_more, 0)
{
    static const char *const wrong[] = {
        "",           "/",
        "http://",    "https:///",
        "ftp://x",    "gmail.googleapis.com",
        "http://x/y", "http://x?y",
        "http://x#y", "http://u:p@x",
        "http://x y", "http://x\r\nHost: z",
    };
    tide_gmail *gmail = NULL;
    tide_error err;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(tide_gmail_open(wrong[i], f->tokens, tide_mem_heap(), &gmail, &err),
                         TIDE_INVALID);
    assert_null(gmail);
    tide_gmail_close(NULL);
}

TEST(compression_is_asked_for_over_https_only)
{
    static const char *const endpoints[] = {"https://gmail.example/", NULL, ORIGIN "/"};
    for (size_t i = 0; i < sizeof endpoints / sizeof endpoints[0]; i++) {
        struct fixture *f = begin(1);
        tide_gmail_close(f->gmail);
        OK(f, tide_gmail_open(endpoints[i], f->tokens, &f->mem.base, &f->gmail, err));
        run_ok(f, play_profile);
        static const char *const urls[] = {
            "https://gmail.example/gmail/v1/users/me/profile?",
            "https://gmail.googleapis.com/gmail/v1/users/me/profile?",
            ORIGIN "/gmail/v1/users/me/profile?"};
        assert_memory_equal(f->url, urls[i], strlen(urls[i]));
        assert_string_equal(f->encoding, i == 2 ? "identity" : ""); /* the world's own then */
        assert_int_equal(strstr(f->agent, "gzip") != NULL, i != 2);
        finish(f);
    }
}

CASE(an_id_cannot_leave_its_place_in_the_address, 1)
{
    (void)snprintf(f->id, sizeof f->id, "../../x?a=b&c#d%%2f e");
    assert_int_equal(run(f, play_get), TIDE_GONE);
    assert_non_null(strstr(f->url, "/messages/..%2F..%2Fx%3Fa%3Db%26c%23d%252f%20e?format=raw"));
}
