/* Goal: what /metrics says of accounts is what `tidemark status` says, and its counter never goes back
 * (cli/serve/metrics_accounts.h).  Method: made-up objects of the command. */
#include "cli/serve/metrics_accounts.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

static json_t *account_of(const char *name, const char *system, int stored)
{
    return json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:i}", "account", name, "system", system,
                     "stored", stored, "left", 5, "bad", 2, "gaps", 1, "jobs_waiting", 3,
                     "jobs_failed", 4);
}

static void text_of(const json_t *status, struct cli_stored *stored, tide_buf *text)
{
    tide_metrics metrics;
    tide_metrics_begin(&metrics, text);
    cli_metrics_accounts(status, stored, &metrics);
    assert_int_equal(tide_metrics_end(&metrics), TIDE_OK);
}

static void has(const tide_buf *text, const char *line)
{
    char whole[200];
    (void)snprintf(whole, sizeof whole, "\n%s\n", line);
    if (strstr(tide_buf_cstr(text), whole) == NULL)
        fail_msg("no line %s in\n%s", line, tide_buf_cstr(text));
}

TEST(each_account_has_its_lines_and_each_system_its_sums)
{
    static struct cli_stored stored;
    tide_auto_buf text = tide_buf_heap(TIDE_METRICS_BYTES_MAX);
    json_auto_t *status =
        json_pack("{s:[o, o, o]}", "accounts", account_of("ada", "mail", 40),
                  account_of("bob", "mail", 50), account_of("shop.example", "console", 60));
    json_t *accounts = json_object_get(status, "accounts");
    (void)json_object_set_new(json_array_get(accounts, 0), "tidemark_unix_ms",
                              json_integer(1794700000500));
    (void)json_object_set_new(json_array_get(accounts, 2), "tidemark", json_string("2026-11-12"));
    text_of(status, &stored, &text);
    has(&text, "tidemark_ledger_up 1");
    has(&text, "tidemark_queue_depth{system=\"mail\"} 6");
    has(&text, "tidemark_queue_depth{system=\"console\"} 3");
    has(&text, "tidemark_failed_jobs{system=\"mail\"} 8");
    has(&text,
        "tidemark_stream_mark_timestamp_seconds{account=\"ada\",stream=\"mail\"} 1794700000.5");
    has(&text, "tidemark_stream_mark_timestamp_seconds{account=\"bob\",stream=\"mail\"} 0");
    has(&text, "tidemark_stream_mark_timestamp_seconds{account=\"shop.example\","
               "stream=\"console\"} 1794441600");
    has(&text, "tidemark_stream_gaps{account=\"bob\",stream=\"mail\"} 1");
    has(&text, "tidemark_items_stored_total{account=\"bob\"} 50");
    has(&text, "tidemark_items_left{account=\"ada\"} 5");
    has(&text, "tidemark_bad_items{account=\"ada\"} 2");
}

TEST(of_a_broken_account_only_its_jobs_are_told)
{
    static struct cli_stored stored;
    tide_auto_buf text = tide_buf_heap(TIDE_METRICS_BYTES_MAX);
    json_auto_t *status = json_pack("{s:[o, o]}", "accounts", account_of("ada", "mail", 40),
                                    account_of("bob", "mail", 0));
    json_t *bob = json_array_get(json_object_get(status, "accounts"), 1);
    (void)json_object_set_new(bob, "now", json_string("broken"));
    text_of(status, &stored, &text);
    has(&text, "tidemark_accounts_broken 1");
    has(&text, "tidemark_queue_depth{system=\"mail\"} 6");
    has(&text, "tidemark_items_left{account=\"ada\"} 5");
    assert_null(strstr(tide_buf_cstr(&text), "tidemark_items_left{account=\"bob\"}"));
    assert_null(strstr(tide_buf_cstr(&text), "seconds{account=\"bob\""));
    assert_null(strstr(tide_buf_cstr(&text), "gaps{account=\"bob\""));
}

/* MAC1: mail can leave an archive, an account can be removed, and the ledger can be unreadable. */
TEST(what_was_stored_never_goes_back)
{
    static struct cli_stored stored;
    tide_auto_buf text = tide_buf_heap(TIDE_METRICS_BYTES_MAX);
    json_auto_t *first = json_pack("{s:[o, o]}", "accounts", account_of("ada", "mail", 40),
                                   account_of("bob", "mail", 50));
    json_auto_t *later = json_pack("{s:[o]}", "accounts", account_of("bob", "mail", 49));
    text_of(first, &stored, &text);
    tide_buf_clear(&text);
    text_of(later, &stored, &text);
    has(&text, "tidemark_items_stored_total{account=\"ada\"} 40");
    has(&text, "tidemark_items_stored_total{account=\"bob\"} 50");
    tide_buf_clear(&text);
    text_of(NULL, &stored, &text);
    has(&text, "tidemark_ledger_up 0");
    has(&text, "tidemark_items_stored_total{account=\"bob\"} 50");
    assert_null(strstr(tide_buf_cstr(&text), "tidemark_items_left{"));
}

TEST(accounts_beyond_the_bound_are_one)
{
    static struct cli_stored stored;
    tide_auto_buf text = tide_buf_heap(TIDE_METRICS_BYTES_MAX);
    json_auto_t *status = json_pack("{s:[]}", "accounts");
    for (int i = 0; i < TIDE_METRICS_ACCOUNTS_MAX + 4; i++) {
        char name[40];
        (void)snprintf(name, sizeof name, "account %d", i);
        (void)json_array_append_new(json_object_get(status, "accounts"),
                                    account_of(name, "mail", 10));
    }
    text_of(status, &stored, &text);
    has(&text, "tidemark_items_stored_total{account=\"account 63\"} 10");
    has(&text, "tidemark_items_stored_total{account=\"other\"} 40");
    has(&text, "tidemark_queue_depth{system=\"mail\"} 204");
    assert_null(strstr(tide_buf_cstr(&text), "account 64"));
}
