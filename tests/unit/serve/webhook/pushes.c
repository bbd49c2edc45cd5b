/* pushes.c - bodies of pushes; and what a good one does. */
#include "unit/serve/webhook/webhook_fixture.h"

#include "base/encode.h"

static tide_status read_data(const char *data, struct tide_push *push)
{
    char body[1024];
    tide_buf encoded;
    tide_error err;
    tide_buf_init(&encoded, tide_mem_heap(), 1024);
    assert_int_equal(tide_base64_add(&encoded, tide_text_of(data), tide_base64_url, false),
                     TIDE_OK);
    (void)snprintf(body, sizeof body, "{\"message\":{\"data\":\"%s\"}}", tide_buf_cstr(&encoded));
    tide_buf_done(&encoded);
    return tide_push_read(tide_text_of(body), tide_mem_heap(), push, &err);
}

TEST(the_address_and_the_history_id_are_read_as_google_has_sent_them)
{
    struct tide_push push;
    tide_error err;
    assert_int_equal(
        tide_push_read(tide_text_of(push_of("ada@example.com", "1")), tide_mem_heap(), &push, &err),
        TIDE_OK);
    assert_string_equal(push.address, "ada@example.com");
    assert_string_equal(push.history_id, "9876");
    const uint64_t message = push.message;
    assert_true(message != 0);
    assert_int_equal(
        tide_push_read(tide_text_of(push_of("ada@example.com", "2")), tide_mem_heap(), &push, &err),
        TIDE_OK);
    assert_true(push.message != 0 && push.message != message);
    assert_int_equal(read_data("{\"emailAddress\":\"a@b\",\"historyId\":17}", &push), TIDE_OK);
    assert_string_equal(push.history_id, "17");
    assert_int_equal(push.message, 0); /* no id: never one that came before */
    assert_int_equal(read_data("{\"emailAddress\":\"a@b\",\"new\":1}", &push), TIDE_OK);
    assert_string_equal(push.history_id, "");
}

TEST(other_data_is_refused)
{
    static const char *const wrong[] = {
        "",
        "{}",
        "[]",
        "null",
        "{\"emailAddress\":1}",
        "{\"emailAddress\":\"\"}",
        "{\"emailAddress\":\"ada\"}",
        "{\"emailAddress\":\"@b\"}",
        "{\"emailAddress\":\"a@\"}",
        "{\"emailAddress\":\"a@b@c\"}",
        "{\"emailAddress\":\"a b@c\"}",
        "{\"emailAddress\":\"a@b\\n\"}",
        "{\"emailAddress\":\"\xc3\xa9@b\"}",
        "{\"emailAddress\":\"a@b\",\"historyId\":\"x\"}",
        "{\"emailAddress\":\"a@b\",\"historyId\":-1}",
        "{\"emailAddress\":\"a@b\",\"historyId\":1.5}",
        "{\"emailAddress\":\"a@b\",\"historyId\":\"99999999999999999999\"}",
        "{\"emailAddress\":\"a@b\",\"emailAddress\":\"c@d\"}",
    };
    static const char *const bodies[] = {
        "",
        "{",
        "[]",
        "{}",
        "{\"message\":1}",
        "{\"message\":{}}",
        "{\"message\":{\"data\":1}}",
        "{\"message\":{\"data\":\"\"}}",
        "{\"message\":{\"data\":\"!\"}}",
        "{\"message\":{\"data\":\"e30\"}} x",
    };
    struct tide_push push;
    tide_error err;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        if (read_data(wrong[i], &push) != TIDE_INVALID)
            fail_msg("%s", wrong[i]);
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++)
        if (tide_push_read(tide_text_of(bodies[i]), tide_mem_heap(), &push, &err) != TIDE_INVALID)
            fail_msg("%s", bodies[i]);
    char address[300];
    char data[400];
    memset(address, 'a', sizeof address);
    address[1] = '@';
    address[TIDE_PUSH_ADDRESS_BYTES_MAX + 1] = '\0';
    (void)snprintf(data, sizeof data, "{\"emailAddress\":\"%s\"}", address);
    assert_int_equal(read_data(data, &push), TIDE_INVALID);
    address[TIDE_PUSH_ADDRESS_BYTES_MAX] = '\0';
    (void)snprintf(data, sizeof data, "{\"emailAddress\":\"%s\"}", address);
    assert_int_equal(read_data(data, &push), TIDE_OK);
}

TEST(a_good_push_is_answered_and_wakes_its_address)
{
    struct hook *hook = hook_start();
    assert_int_equal(push_good(hook, "1"), 204);
    until(counted(hook, TIDE_WEBHOOK_ACCEPTED) == 1);
    assert_int_equal(atomic_load(&hook->wakes), 1);
    assert_string_equal(hook->woken, "ada@example.com");
    struct tide_webhook_counts counts;
    until(
        (tide_webhook_count(hook->webhook, &counts), tide_histogram_count(&counts.duration) == 1));
    hook_stop(hook);
}

TEST(a_message_that_comes_again_wakes_nothing)
{
    struct hook *hook = hook_start();
    assert_int_equal(push_good(hook, "1"), 204);
    until(counted(hook, TIDE_WEBHOOK_ACCEPTED) == 1);
    later(10000);
    for (int i = 0; i < 5; i++)
        assert_int_equal(push_good(hook, "1"), 204);
    assert_int_equal(counted(hook, TIDE_WEBHOOK_REPEATED), 5);
    assert_int_equal(push_good(hook, "2"), 204);
    until(counted(hook, TIDE_WEBHOOK_ACCEPTED) == 2);
    assert_int_equal(atomic_load(&hook->wakes), 2);
    hook_stop(hook);
}

TEST(pushes_of_one_second_are_one_and_none_is_forgotten)
{
    struct hook *hook = hook_start();
    assert_int_equal(push_good(hook, "0"), 204);
    until(counted(hook, TIDE_WEBHOOK_ACCEPTED) == 1);
    char message[8];
    for (int i = 1; i <= 9; i++) {
        (void)snprintf(message, sizeof message, "%d", i);
        assert_int_equal(push_good(hook, message), 204);
    }
    assert_int_equal(atomic_load(&hook->wakes), 1);
    later(TIDE_WAKER_APART_MS);
    until(counted(hook, TIDE_WEBHOOK_ACCEPTED) == 10);
    assert_int_equal(atomic_load(&hook->wakes), 2);
    hook_stop(hook);
}

TEST(an_address_that_is_unknown_is_acknowledged_and_counted)
{
    struct hook *hook = hook_start();
    atomic_store(&hook->wake_status, TIDE_NOT_FOUND);
    assert_int_equal(push_good(hook, "1"), 204);
    until(counted(hook, TIDE_WEBHOOK_UNKNOWN) == 1);
    assert_int_equal(counted(hook, TIDE_WEBHOOK_ACCEPTED), 0);
    assert_int_equal(atomic_load(&hook->wakes), 1);
    hook_stop(hook);
}

TEST(a_wake_that_fails_is_repeated)
{
    struct hook *hook = hook_start();
    atomic_store(&hook->wake_status, TIDE_BUSY);
    assert_int_equal(push_good(hook, "1"), 204);
    /* The pause begins after the call: the clock moves until it is over. */
    until((later(1), atomic_load(&hook->wakes) >= 2));
    assert_int_equal(counted(hook, TIDE_WEBHOOK_ACCEPTED), 0);
    atomic_store(&hook->wake_status, TIDE_OK);
    until((later(1), counted(hook, TIDE_WEBHOOK_ACCEPTED) == 1));
    hook_stop(hook);
}

TEST(a_process_that_stops_takes_no_push)
{
    struct hook *hook = hook_start();
    tide_webhook_stopping(hook->webhook);
    assert_int_equal(push_good(hook, "1"), 503);
    assert_int_equal(counted(hook, TIDE_WEBHOOK_STOPPING), 1);
    assert_int_equal(atomic_load(&hook->wakes), 0);
    hook_stop(hook);
}
