/* identity_test.c - which addresses are one mailbox, and which servers may get a token (M19a). */
#include "mail/mail.h"
#include "net/endpoint.h"
#include "support/ok.h"
#include "support/test.h"

TEST(one_mailbox_has_many_spellings)
{
    static const char *const same[][2] = {
        {"ada@example.com", "ada@example.com"},    {"Ada@Example.COM", "ada@example.com"},
        {"a.da@gmail.com", "ada@gmail.com"},       {"ada+x@gmail.com", "ada@googlemail.com"},
        {"A.D.A@googlemail.com", "ada@gmail.com"},
    };
    static const char *const different[][2] = {
        {"ada@example.com", "bob@example.com"},
        {"ada@example.com", "ada@example.org"},
        {"a.da@example.com", "ada@example.com"},
        {"ada+x@example.com", "ada@example.com"},
        {"ada@gmail.com", "ada@example.com"},
        {"ada", "ada@gmail.com"},
        {"", "ada@gmail.com"},
    };
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++)
        if (!tide_mail_same_mailbox(same[i][0], same[i][1]))
            fail_msg("%s is not %s", same[i][0], same[i][1]);
    for (size_t i = 0; i < sizeof different / sizeof different[0]; i++)
        if (tide_mail_same_mailbox(different[i][0], different[i][1]))
            fail_msg("%s is %s", different[i][0], different[i][1]);
}

TEST(a_profile_is_held_against_the_name)
{
    tide_error err = {TIDE_OK, 0, ""};
    struct tide_gmail_profile profile = {.email = "bob@example.com"};
    OK(tide_mail_compare("bob@example.com", &profile, &err));
    assert_int_equal(tide_mail_compare("ada@example.com", &profile, &err), TIDE_AUTH);
    assert_non_null(strstr(err.text, "bob@example.com, not of ada@example.com"));
    profile.email[0] = '\0'; /* an emulator that does not say */
    OK(tide_mail_compare("ada@example.com", &profile, &err));
}

TEST(a_token_goes_to_safe_places_only)
{
    static const char *const good[] = {
        "https://gmail.googleapis.com",
        "https://mail.example.com:8443/",
        "http://127.0.0.1:4443",
        "http://localhost:80",
        "http://LOCALHOST",
        "http://[::1]:9",
        "http://127.1.2.3:1",
        "https://[2001:db8::1]:443",
    };
    static const char *const bad[] = {
        "",
        "http://",
        "https://",
        "https:///",
        "ftp://127.0.0.1",
        "127.0.0.1:80",
        "http://mail.example.com",
        "http://127.0.0.1.example.com",
        "http://127.example.com",
        "http://localhost.example.com",
        "http://10.0.0.1:80",
        "http://[2001:db8::1]:80",
        "http://user@127.0.0.1",
        "http://127.0.0.1@evil.example",
        "http://127.0.0.1/path",
        "http://127.0.0.1:80/path",
        "https://a?b",
        "https://a#b",
        "https://a b",
        "https://a\n",
        "http://127.0.0.1:0",
        "http://127.0.0.1:65536",
        "http://127.0.0.1:x",
        "http://127.0.0.1:",
        "http://[::1",
        "http://[::1]x",
        "https://exämple.com",
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        if (tide_endpoint_check(good[i], NULL) != TIDE_OK)
            fail_msg("%s is refused", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (tide_endpoint_check(bad[i], NULL) != TIDE_INVALID)
            fail_msg("\"%s\" is taken", bad[i]);
}
