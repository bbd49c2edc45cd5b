/* Chat models as accounts: how a server is spoken to, by name, as JSON and in rows (J19). */
#include "assistant/account/account.h"

#include "unit/db/rows_fixture.h"

static int setup(void **state)
{
    const int failed = rows_setup(state);
    OK(tide_assistant_account_tables(rows_now, err));
    OK(tide_assistant_account_tables(rows_now, err)); /* twice is harmless */
    return failed;
}

#define CASE(name) TEST_ON(name, const tide_rows *rows, setup, rows_teardown)

static struct tide_assistant_account account_of(uint32_t number, const char *name,
                                                const char *options)
{
    struct tide_assistant_account account = {.number = number};
    (void)snprintf(account.name, sizeof account.name, "%s", name);
    OK(tide_assistant_options_set(&account, options, err));
    return account;
}

CASE(an_account_comes_back_as_it_was_put)
{
    const struct tide_assistant_account put = account_of(
        3, "claude",
        "dialect=anthropic,model=good,fast_model=fast,version=2026-10-21,auth=x-api-key,stream=no,"
        "endpoint=https://api.example.com/v1");
    struct tide_assistant_account back;
    OK(tide_assistant_options_check(&put, err));
    OK(tide_assistant_account_put(*rows, &put, err));
    OK(tide_assistant_account_get(*rows, 3, &back, err));
    assert_memory_equal(&back, &put, sizeof put);
    OK(tide_assistant_account_named(*rows, "claude", &back, err));
    assert_int_equal(back.number, 3);
    const struct tide_chat_options options = tide_assistant_chat_options(&back);
    assert_int_equal(options.dialect, TIDE_CHAT_ANTHROPIC);
    assert_string_equal(options.endpoint, "https://api.example.com/v1");
    assert_string_equal(options.version, "2026-10-21");
    assert_true(options.key_plain && options.no_stream);
    /* Added again, and another one of the same name after it was removed from the ledger. */
    const struct tide_assistant_account other =
        account_of(4, "claude", "model=m,auth=none,json=off");
    OK(tide_assistant_account_put(*rows, &other, err));
    assert_int_equal(tide_assistant_account_get(*rows, 3, &back, NULL), TIDE_NOT_FOUND);
    OK(tide_assistant_account_get(*rows, 4, &back, err));
    assert_true(back.no_key && !back.key_plain);
    assert_int_equal(back.format, TIDE_CHAT_FORMAT_OFF);
    assert_null(tide_assistant_chat_options(&back).endpoint);
    OK(tide_assistant_account_drop(*rows, 4, err));
    assert_int_equal(tide_assistant_account_named(*rows, "claude", &back, NULL), TIDE_NOT_FOUND);
}

CASE(options_are_refused_with_what_may_be_said)
{
    static const struct {
        const char *list;
        const char *text;
    } rows_wrong[] = {
        {"dialect=french", "openai, anthropic"},
        {"stream=maybe", "yes, no"},
        {"color=red", "dialect, auth, limit, json, stream, usage, model"},
        {"stream", "not NAME=VALUE"},
        {"model=a,stream=no,limit=none", "max_completion_tokens, max_tokens"},
        {"version=2026-10-21-and-much-more-than-a-version-can-have", "at most 39 bytes"},
        {"model=a\nb", "one line"},
    };
    for (size_t i = 0; i < sizeof rows_wrong / sizeof rows_wrong[0]; i++) {
        struct tide_assistant_account account = {.number = 0};
        tide_error err = {TIDE_OK, 0, ""};
        assert_int_equal(tide_assistant_options_set(&account, rows_wrong[i].list, &err),
                         TIDE_INVALID);
        if (strstr(err.text, rows_wrong[i].text) == NULL)
            fail_msg("%s: %s", rows_wrong[i].list, err.text);
    }
    struct tide_assistant_account account = account_of(1, "a", "stream=no");
    assert_int_equal(tide_assistant_options_check(&account, NULL), TIDE_INVALID); /* no model */
    account = account_of(1, "a", "model=m,version=2023-06-01");
    assert_int_equal(tide_assistant_options_check(&account, NULL), TIDE_INVALID);
    account = account_of(1, "a", "dialect=anthropic,model=m,limit=max_tokens");
    assert_int_equal(tide_assistant_options_check(&account, NULL), TIDE_INVALID);
}

/* What a newer version wrote beside is left alone; what is damaged is refused. */
CASE(options_of_other_versions_are_read)
{
    struct tide_assistant_account account = {.number = 0};
    OK(tide_assistant_options_read(TIDE_TEXT("{\"model\":\"m\",\"wings\":4}"), &account, err));
    assert_string_equal(account.model, "m");
    assert_int_equal(tide_assistant_options_read(TIDE_TEXT("{\"json\":\"xml\"}"), &account, NULL),
                     TIDE_INVALID);
    assert_int_equal(tide_assistant_options_read(TIDE_TEXT("nothing"), &account, NULL),
                     TIDE_INVALID);
}

int main(void)
{
    return rows_tests_run();
}
