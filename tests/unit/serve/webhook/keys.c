/* keys.c - the issuer's keys: fetched when they are needed, kept, renewed, and not trusted for longer. */
#include "unit/serve/webhook/webhook_fixture.h"

#include <unistd.h>

TEST(keys_are_fetched_once_for_many_pushes)
{
    struct hook *hook = hook_start();
    char message[8];
    assert_int_equal(atomic_load(&hook->fetches), 0);
    for (int i = 0; i < 20; i++) {
        (void)snprintf(message, sizeof message, "%d", i);
        assert_int_equal(push_good(hook, message), 204);
    }
    assert_int_equal(atomic_load(&hook->fetches), 1);
    hook_stop(hook);
}

/* The default time is an hour: after three quarters they are renewed beside the push. */
TEST(keys_are_renewed_before_they_end_and_no_push_waits)
{
    struct hook *hook = hook_start();
    assert_int_equal(push_good(hook, "1"), 204);
    later(TIDE_ISSUER_LIFE_MS_DEFAULT / 4 * 3 - 10000);
    assert_int_equal(push_good(hook, "2"), 204);
    assert_int_equal(atomic_load(&hook->fetches), 1);
    later(20000);
    atomic_store(&hook->stall, true);
    assert_int_equal(push_good(hook, "3"), 204); /* the issuer does not answer */
    until(atomic_load(&hook->fetches) == 2);
    assert_int_equal(push_good(hook, "4"), 204);
    atomic_store(&hook->stall, false);
    hook_stop(hook);
}

TEST(keys_end_also_if_there_are_no_new_ones)
{
    struct hook *hook = hook_start();
    assert_int_equal(push_good(hook, "1"), 204);
    until(counted(hook, TIDE_WEBHOOK_ACCEPTED) == 1);
    later(TIDE_ISSUER_LIFE_MS_DEFAULT);
    atomic_store(&hook->issuer_status, 500);
    assert_int_equal(push_good(hook, "2"), 503);
    const int fetches = atomic_load(&hook->fetches);
    assert_int_equal(fetches, 2);
    assert_int_equal(push_good(hook, "3"), 503); /* the pause after a failure */
    assert_int_equal(atomic_load(&hook->fetches), fetches);
    assert_int_equal(counted(hook, TIDE_WEBHOOK_NO_KEYS), 2);
    assert_int_equal(atomic_load(&hook->wakes), 1);
    atomic_store(&hook->issuer_status, 200);
    later(TIDE_ISSUER_PAUSE_MS_MAX);
    assert_int_equal(push_good(hook, "4"), 204);
    hook_stop(hook);
}

/* Keys that are not known yet are either new or invented: asked for once a minute at most. */
TEST(unknown_keys_cause_one_fetch_a_minute)
{
    struct hook *hook = hook_start();
    assert_int_equal(push_good(hook, "1"), 204);
    for (int i = 0; i < 10; i++) {
        char *forged = token_of(hook->other, claims_good(hook));
        assert_int_equal(push(hook, forged, push_of("ada@example.com", "2")), 401);
        free(forged);
    }
    assert_int_equal(atomic_load(&hook->fetches), 1);
    later(TIDE_ISSUER_AGAIN_MS);
    for (int i = 0; i < 10; i++) {
        char *forged = token_of(hook->other, claims_good(hook));
        assert_int_equal(push(hook, forged, push_of("ada@example.com", "2")), 401);
        free(forged);
    }
    assert_int_equal(atomic_load(&hook->fetches), 2);
    assert_int_equal(counted(hook, TIDE_WEBHOOK_FORGED), 20);
    /* The issuer begins to sign with it. */
    later(TIDE_ISSUER_AGAIN_MS);
    atomic_store(&hook->second_key, true);
    char *good = token_of(hook->other, claims_good(hook));
    assert_int_equal(push(hook, good, push_of("ada@example.com", "3")), 204);
    free(good);
    hook_stop(hook);
}

TEST(a_push_waits_for_the_first_keys_and_no_longer_than_it_may)
{
    struct hook *hook = hook_start();
    struct reply reply;
    char *token = token_good(hook);
    const char *body = push_of("ada@example.com", "1");
    atomic_store(&hook->stall, true);
    int fd[2];
    for (int i = 0; i < 2; i++) {
        fd[i] = client_connect_to(tide_webhook_port(hook->webhook));
        client_print(fd[i],
                     "POST /webhook/gmail HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                     "Content-Type: application/json\r\nContent-Length: %zu\r\n"
                     "Authorization: Bearer %s\r\n\r\n%s",
                     strlen(body), token, body);
        if (i == 0) { /* held, until its time is over */
            until(atomic_load(&hook->fetches) == 1);
            later(TIDE_WEBHOOK_HOLD_MS);
        } else { /* its arrival makes the server look at the clock; it is held itself */
            client_read_all(fd[0], &reply);
            assert_int_equal(reply.status, 503);
            reply_done(&reply);
            atomic_store(&hook->stall, false);
        }
    }
    client_read_all(fd[1], &reply);
    assert_int_equal(reply.status, 204);
    reply_done(&reply);
    (void)close(fd[0]);
    (void)close(fd[1]);
    free(token);
    hook_stop(hook);
}

TEST(stopping_does_not_wait_for_an_issuer_that_does_not_answer)
{
    struct hook *hook = hook_start();
    char *token = token_good(hook);
    const char *body = push_of("ada@example.com", "1");
    atomic_store(&hook->stall, true);
    const int fd = client_connect_to(tide_webhook_port(hook->webhook));
    client_print(fd,
                 "POST /webhook/gmail HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                 "Content-Length: %zu\r\nAuthorization: Bearer %s\r\n\r\n%s",
                 strlen(body), token, body);
    until(atomic_load(&hook->fetches) == 1);
    tide_webhook_free(hook->webhook);
    hook->webhook = NULL;
    assert_int_equal(atomic_load(&hook->wakes), 0);
    (void)close(fd);
    free(token);
    hook_stop(hook);
}
