/* Goal: user, password and mail go without TLS to this machine only (net/smtp.h).  How servers are
 * met is in tests/e2e/alerts_mail_test.sh. */
#include "net/smtp.h"

#include "support/test.h"

TEST(only_a_server_on_this_machine_may_be_plain)
{
    static const char *const plain[] = {"smtp://127.0.0.1",      "smtp://127.0.0.1:2525",
                                        "smtp://127.255.1.2:25", "smtp://localhost",
                                        "smtp://localhost:25",   "smtp://[::1]:25"};
    static const char *const others[] = {
        "smtps://127.0.0.1",
        "smtp://127.0.0.1.example.com",
        "smtp://127.example.com",
        "smtp://localhost.evil",
        "smtp://mail.example.com:25",
        "smtp://10.0.0.1",
        "smtp://[::ffff:1.2.3.4]",
        "smtp://[fe80::1]",
        "smtp://127.1.evil:25",
        "smtp://0.0.0.0",
        "smtp://",
        "smtp://1270.0.1",
    };
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++) {
        if (!tide_smtp_may_be_plain(plain[i], ""))
            fail_msg("%s is on this machine", plain[i]);
        assert_false(tide_smtp_may_be_plain(plain[i], "/etc/ca.pem"));
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (tide_smtp_may_be_plain(others[i], ""))
            fail_msg("%s may be another machine", others[i]);
}

TEST(a_server_that_is_not_there_is_an_error_of_the_network)
{
    const struct tide_smtp smtp = {.url = "smtp://127.0.0.1:1",
                                   .ca_file = "",
                                   .user = "ada",
                                   .password = "secret",
                                   .from = "a@example.com",
                                   .to = "b@example.com"};
    char answer[TIDE_SMTP_ANSWER_BYTES] = "x";
    tide_error err = {TIDE_OK, 0, ""};
    assert_int_equal(
        tide_smtp_send(&smtp, tide_text_of("Subject: x\r\n\r\nx\r\n"), NULL, answer, &err),
        TIDE_NETWORK);
    assert_string_equal(answer, "");
    assert_null(strstr(err.text, "secret"));
    tide_cancel cancel = {TIDE_CANCEL_USER};
    assert_int_equal(tide_smtp_send(&smtp, tide_text_of("x\r\n"), &cancel, answer, &err),
                     TIDE_CANCELED);
}
