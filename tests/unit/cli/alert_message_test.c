/* Goal: a mail about an alert says all that a user needs, is the same when it is repeated, and takes
 * nothing from names and texts but words (cli/alerts/message.h). */
#include "cli/alerts/message.h"

#include "support/heap.h"
#include "support/test.h"

static const struct tide_notice throttled = {
    .condition = "throttled",
    .account = "ada@example.com",
    .text = "12 of 100 calls were refused (12.0 %)",
    .tag = "0123456789abcdef0123456789abcdef",
    .level = 1,
    .since_unix_ms = 1794700000000,
    .made_unix_ms = 1794700061000,
};

static char *message_of(const struct tide_notice *notice)
{
    static char text[ALERT_MESSAGE_BYTES_MAX + 1];
    tide_buf out;
    tide_buf_init(&out, tide_mem_heap(), ALERT_MESSAGE_BYTES_MAX);
    assert_int_equal(alert_message(notice, "tide@example.org", "ops@example.com", &out), TIDE_OK);
    memcpy(text, out.data, out.bytes);
    text[out.bytes] = '\0';
    tide_buf_done(&out);
    return text;
}

static void has(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("no \"%s\" in %s", part, text);
}

TEST(it_says_what_since_when_what_it_means_and_what_to_do)
{
    const char *text = message_of(&throttled);
    has(text, "From: Tidemark <tide@example.org>\r\nTo: <ops@example.com>\r\n");
    has(text, "Date: Sat, 14 Nov 2026 23:47:41 +0000\r\n");
    has(text, "Message-ID: <0123456789abcdef0123456789abcdef.tidemark@example.org>\r\n");
    has(text, "Subject: Tidemark: warning: throttled, ada@example.com\r\n");
    has(text, "\r\n\r\nWhat:    12 of 100 calls were refused (12.0 %)\r\n");
    has(text, "Account: ada@example.com\r\n");
    has(text, "Since:   2026-11-14 23:46:40 UTC\r\n");
    has(text, "Means:   The provider refuses calls");
    has(text, "To do:   It slows down by itself.");
    has(text, "Command: tidemark status\r\n");
}

TEST(a_repetition_is_the_same_mail)
{
    struct tide_notice again = throttled;
    again.again = true;
    char *first = strdup(message_of(&throttled));
    assert_string_equal(first, message_of(&again));
    free(first);
}

TEST(the_all_clear_says_when_it_ended)
{
    struct tide_notice clear = throttled;
    clear.level = 0;
    clear.ended_unix_ms = 1794703600000;
    const char *text = message_of(&clear);
    has(text, "Subject: Tidemark: all clear: throttled, ada@example.com\r\n");
    has(text, "Ended:   2026-11-15 00:46:40 UTC\r\n");
    has(text, "To do:   Nothing.\r\n");
}

TEST(an_alert_of_no_account_and_one_of_an_unknown_condition_have_a_command_too)
{
    struct tide_notice notice = throttled;
    notice.account = "";
    notice.condition = "bad_rate";
    has(message_of(&notice), "Command: tidemark bad list\r\n");
    notice.account = "ada@example.com";
    has(message_of(&notice), "Command: tidemark bad list --account ada@example.com\r\n");
    notice.condition = "of a system";
    has(message_of(&notice), "Command: tidemark alerts\r\n");
}

TEST(names_and_texts_become_no_headers_and_no_lines)
{
    struct tide_notice hostile = throttled;
    hostile.account = "x\r\nBcc: all@example.com\r\n\r\n.\r\nQUIT";
    hostile.text = "a\nb\r\n.\r\nMAIL FROM:<x>\x01\x7f";
    const char *text = message_of(&hostile);
    assert_null(strstr(text, "\nBcc:"));
    assert_null(strstr(text, "\r\n.\r\n"));
    assert_null(strstr(text, "\nMAIL"));
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '\n')
            assert_true(c > text && c[-1] == '\r');
        else if (*c != '\r')
            assert_true((unsigned char)*c >= 0x20 && *c != 0x7f);
    }
}

TEST(other_letters_are_encoded)
{
    struct tide_notice notice = throttled;
    notice.account = "sc-domain:m\xc3\xbcller.example";
    const char *text = message_of(&notice);
    has(text, "Subject: =?utf-8?B?");
    has(text, "Content-Transfer-Encoding: base64\r\n");
    for (const char *c = text; *c != '\0'; c++)
        assert_true((unsigned char)*c < 0x80);
    for (const char *line = text; *line != '\0';) {
        const size_t bytes = strcspn(line, "\r");
        assert_true(bytes <= 78);
        line += bytes + strspn(line + bytes, "\r\n");
    }
}

TEST(a_text_of_any_length_is_cut_and_wrapped)
{
    char text[2000];
    struct tide_notice notice = throttled;
    for (size_t i = 0; i < sizeof text - 1; i++)
        text[i] = i % 7 == 6 ? ' ' : 'w';
    text[sizeof text - 1] = '\0';
    notice.text = notice.account = notice.condition = text;
    for (const char *line = message_of(&notice); *line != '\0';) {
        const size_t bytes = strcspn(line, "\r");
        assert_true(bytes <= 400);
        line += bytes + strspn(line + bytes, "\r\n");
    }
}
