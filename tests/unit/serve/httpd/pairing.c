/* pairing.c - a browser is let in by the terminal, over HTTP. */
#include "unit/serve/httpd/httpd_fixture.h"

#include <stdio.h>
#include <unistd.h>

struct browser {
    char code[16];
    char ticket[64];
};

static void value_of(const char *json, const char *name, char *out, size_t room)
{
    char wanted[32];
    (void)snprintf(wanted, sizeof wanted, "\"%s\":\"", name);
    const char *at = strstr(json, wanted);
    assert_non_null(at);
    at += strlen(wanted);
    const char *end = strchr(at, '"');
    assert_true(end != NULL && (size_t)(end - at) < room);
    memcpy(out, at, (size_t)(end - at));
    out[end - at] = '\0';
}

static void browser_asks(const struct fixture *fixture, struct browser *browser)
{
    struct reply reply;
    ask(fixture, &reply,
        "POST /api/v1/pairings HTTP/1.1\r\nHost: 127.0.0.1:1\r\nOrigin: http://127.0.0.1:1\r\n"
        "User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) "
        "Chrome/131.0.0.0 Safari/537.36\r\n"
        "Content-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}");
    assert_int_equal(reply.status, 201);
    value_of(reply.body, "code", browser->code, sizeof browser->code);
    value_of(reply.body, "ticket", browser->ticket, sizeof browser->ticket);
    reply_done(&reply);
}

static int browser_waits(const struct fixture *fixture, const struct browser *browser)
{
    const int fd = client_connect(fixture);
    client_print(fd,
                 "GET /api/v1/pairings HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Pairing "
                 "%s\r\nConnection: close\r\n\r\n",
                 browser->ticket);
    return fd;
}

static int read_status(int fd)
{
    struct reply reply;
    client_read_all(fd, &reply);
    (void)close(fd);
    reply_done(&reply);
    return reply.status;
}

static int state_status(const struct fixture *fixture, const char *key)
{
    struct reply reply;
    ask(fixture, &reply,
        "GET /api/v1/state HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\nConnection: "
        "close\r\n\r\n",
        key);
    reply_done(&reply);
    return reply.status;
}

TEST(a_browser_gets_its_key_once_after_the_terminal_said_yes)
{
    struct fixture *fixture = fixture_start(NULL);
    struct browser browser;
    struct tide_pairing_row rows[TIDE_PAIRINGS_MAX];
    struct reply reply;
    char key[64];
    uint64_t id = 0;
    tide_error err;
    browser_asks(fixture, &browser);
    assert_int_equal(tide_pairing_wait(fixture->pairings, TIDE_NEVER), TIDE_OK);
    assert_int_equal(
        tide_pairing_list(fixture->pairings, tide_pairings_now_ms(fixture->pairings), rows), 1);
    assert_string_equal(rows[0].code, browser.code);
    assert_string_equal(rows[0].agent, "Chrome on Linux");
    const int fd = browser_waits(fixture, &browser);
    eventually(counts.held == 1);
    assert_int_equal(
        tide_pairing_approve(fixture->pairings, tide_text_of(browser.code), 0, 60000, &id, &err),
        TIDE_OK);
    client_read_all(fd, &reply);
    assert_int_equal(reply.status, 200);
    assert_true(head_has(&reply, "\r\nCache-Control: no-store\r\n"));
    value_of(reply.body, "key", key, sizeof key);
    reply_done(&reply);
    (void)close(fd);
    assert_int_equal(state_status(fixture, key), 200);
    assert_int_equal(read_status(browser_waits(fixture, &browser)), 404);
    assert_int_equal(tide_keys_revoke(fixture->keys, id, &err), TIDE_OK);
    assert_int_equal(state_status(fixture, key), 401);
    fixture_stop(fixture);
}

TEST(a_refused_browser_is_told)
{
    struct fixture *fixture = fixture_start(NULL);
    struct browser browser;
    tide_error err;
    browser_asks(fixture, &browser);
    const int fd = browser_waits(fixture, &browser);
    eventually(counts.held == 1);
    assert_int_equal(tide_pairing_refuse(fixture->pairings, tide_text_of(browser.code), &err),
                     TIDE_OK);
    assert_int_equal(read_status(fd), 403);
    assert_int_equal(read_status(browser_waits(fixture, &browser)), 404);
    fixture_stop(fixture);
}

TEST(a_newer_request_with_the_same_ticket_replaces_the_older_one)
{
    struct fixture *fixture = fixture_start(NULL);
    struct browser browser;
    uint64_t id;
    tide_error err;
    browser_asks(fixture, &browser);
    const int older = browser_waits(fixture, &browser);
    eventually(counts.held == 1);
    const int newer = browser_waits(fixture, &browser);
    assert_int_equal(read_status(older), 409);
    assert_int_equal(
        tide_pairing_approve(fixture->pairings, tide_text_of(browser.code), 0, 60000, &id, &err),
        TIDE_OK);
    assert_int_equal(read_status(newer), 200);
    fixture_stop(fixture);
}

TEST(a_key_that_no_browser_takes_is_revoked)
{
    struct fixture *fixture = fixture_start(NULL);
    struct browser browser;
    uint64_t id = 0;
    tide_error err;
    browser_asks(fixture, &browser);
    assert_int_equal(
        tide_pairing_approve(fixture->pairings, tide_text_of(browser.code), 0, 1, &id, &err),
        TIDE_TIMEOUT);
    assert_int_equal(read_status(browser_waits(fixture, &browser)), 404);
    assert_int_equal(
        tide_pairing_approve(fixture->pairings, tide_text_of(browser.code), 0, 1, &id, &err),
        TIDE_NOT_FOUND);
    fixture_stop(fixture);
}

TEST(stopping_lets_the_terminal_go)
{
    struct fixture *fixture = fixture_start(NULL);
    struct browser browser;
    uint64_t id = 0;
    tide_error err;
    tide_pairings_stop(fixture->pairings);
    assert_int_equal(tide_pairing_wait(fixture->pairings, TIDE_NEVER), TIDE_STOPPED);
    browser_asks(fixture, &browser);
    assert_int_equal(
        tide_pairing_approve(fixture->pairings, tide_text_of(browser.code), 0, 60000, &id, &err),
        TIDE_STOPPED);
    assert_int_equal(read_status(browser_waits(fixture, &browser)), 404);
    fixture_stop(fixture);
}

TEST(a_ticket_that_was_never_given_is_worth_nothing)
{
    struct fixture *fixture = fixture_start(NULL);
    struct browser browser = {"", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"};
    assert_int_equal(read_status(browser_waits(fixture, &browser)), 404);
    (void)snprintf(browser.ticket, sizeof browser.ticket, "short");
    assert_int_equal(read_status(browser_waits(fixture, &browser)), 404);
    assert_int_equal(get_status(fixture, "/api/v1/pairings"), 404); /* a key is no ticket */
    fixture_stop(fixture);
}

TEST(a_browser_that_leaves_while_it_waits_is_forgotten)
{
    struct fixture *fixture = fixture_start(NULL);
    struct browser browser;
    browser_asks(fixture, &browser);
    const int fd = browser_waits(fixture, &browser);
    eventually(counts.held == 1);
    (void)close(fd);
    eventually(counts.held == 0 && counts.connections == 0);
    fixture_stop(fixture);
}

static void no_wake(void *arg)
{
    (void)arg;
}

TEST(three_wait_for_two_minutes_and_one_begins_a_second)
{
    struct fixture *fixture = fixture_start(NULL);
    tide_pairings *pairings = NULL;
    struct tide_pairing_ask asks[4], other;
    struct tide_pairing_row rows[TIDE_PAIRINGS_MAX];
    char key[TIDE_KEY_TEXT_BYTES + 1];
    uint64_t turn = 0;
    tide_error err;
    assert_int_equal(tide_pairings_new(fixture->world, tide_mem_heap(), fixture->keys, no_wake,
                                       NULL, &pairings, &err),
                     TIDE_OK);
    assert_int_equal(tide_pairing_begin(pairings, "a", 0, &asks[0]), TIDE_OK);
    assert_int_equal(tide_pairing_begin(pairings, "b", 999, &other), TIDE_AGAIN);
    assert_int_equal(tide_pairing_begin(pairings, "b", 1000, &asks[1]), TIDE_OK);
    assert_int_equal(tide_pairing_begin(pairings, "c", 2000, &asks[2]), TIDE_OK);
    assert_int_equal(tide_pairing_begin(pairings, "d", 3000, &other), TIDE_FULL);
    assert_int_equal(tide_pairing_list(pairings, 3000, rows), 3);
    assert_string_equal(rows[0].agent, "a");
    assert_string_equal(rows[2].agent, "c");
    assert_int_equal(rows[1].age_ms, 2000);
    assert_string_not_equal(asks[0].code, asks[1].code);
    assert_int_equal(asks[0].code[3], '-');
    /* The first one's time is over to the millisecond. */
    assert_int_equal(tide_pairing_take(pairings, tide_text_of(asks[0].ticket), 119999, &turn, key),
                     TIDE_PAIRING_WAITING);
    assert_int_equal(tide_pairing_begin(pairings, "d", 119999, &other), TIDE_FULL);
    assert_int_equal(tide_pairing_take(pairings, tide_text_of(asks[0].ticket), 120000, &turn, key),
                     TIDE_PAIRING_UNKNOWN);
    assert_int_equal(tide_pairing_begin(pairings, "d", 120000, &asks[3]), TIDE_OK);
    assert_int_equal(tide_pairing_list(pairings, 120000, rows), 3);
    tide_pairings_free(pairings);
    fixture_stop(fixture);
}

TEST(the_terminal_sees_our_words_for_a_browser_never_its_own)
{
    char agent[TIDE_PAIRING_AGENT_BYTES_MAX];
    tide_pairing_agent(TIDE_TEXT("Mozilla/5.0 (Macintosh; Intel Mac OS X 10.15; rv:1) Gecko/1 "
                                 "Firefox/140.0"),
                       agent);
    assert_string_equal(agent, "Firefox on macOS");
    tide_pairing_agent(TIDE_TEXT("\x1b[2J Let in? y"), agent);
    assert_string_equal(agent, "an unknown program on an unknown system");
    tide_pairing_agent(TIDE_TEXT_NONE, agent);
    assert_string_equal(agent, "an unknown program on an unknown system");
}
