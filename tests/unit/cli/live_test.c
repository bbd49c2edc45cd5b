/* live_test.c - the live block of running work: what fits, what is left out, and that
 * its numbers are honest (LIVE1-LIVE4). */
#include "cli/run/live.h"

#include "base/rng.h"
#include "support/scale.h"
#include "support/ok.h"
#include "support/heap.h"
#include "support/test.h"

#include <inttypes.h>

static const struct cli_columns mail = {.done = "stored",
                                        .done_json = "stored",
                                        .rate = "msg/s",
                                        .rate_json = "messages_per_s",
                                        .units_each = 20,
                                        .tidemark = true};

static struct cli_live example(void)
{
    struct cli_live live = {
        .done = 12345,
        .total = 60000,
        .tidemark_ms = 1551657600000, /* 2019-03-04 */
        .rate_known = true,
        .done_per_s = 4.96,
        .bytes_per_s = 210000,
        .quota_used = 5880,
        .quota_max = 6000,
        .in_flight = 5,
        .retried = 2,
        .bad = 0,
        .left_ms = 3 * 3600000 + 12 * 60000,
    };
    (void)snprintf(live.name, sizeof live.name, "ada@example.com");
    return live;
}

static char *block(const struct cli_live *live, size_t count, unsigned columns, unsigned rows,
                   bool color, unsigned *lines)
{
    static char text[65536];
    tide_buf out = heap_buf(sizeof text - 1);
    OK(cli_live_block(&mail, live, count, columns, rows, color, &out, lines));
    (void)snprintf(text, sizeof text, "%s", tide_buf_cstr(&out));
    tide_buf_done(&out);
    return text;
}

/* LIVE1, and LIVE4 when there is no colour. */
static void fits(const char *text, unsigned columns, unsigned rows, bool color, unsigned lines)
{
    unsigned seen = 0;
    for (const char *at = text; *at != '\0';) {
        const char *end = strchr(at, '\n');
        assert_non_null(end);
        const unsigned width = cli_live_width((tide_text){at, (size_t)(end - at)});
        if (width >= (columns < 2 ? 2 : columns))
            fail_msg("%u columns in %u: %.*s", width, columns, (int)(end - at), at);
        for (const char *c = at; !color && c < end; c++)
            assert_true((unsigned char)*c >= 0x20 && *c != 0x7f);
        seen++;
        at = end + 1;
    }
    assert_int_equal(seen, lines);
    assert_true(seen < (rows < 2 ? 2 : rows));
}

TEST(everything_is_in_two_lines)
{
    unsigned lines = 0;
    struct cli_live live = example();
    assert_string_equal(
        block(&live, 1, 100, 24, false, &lines),
        "ada@example.com  [######........................]  12,345 of 60,000  20%  left 3 h 12 m\n"
        "  5.0 msg/s  0.21 MB/s  tidemark 2019-03-04  quota 98%  in flight 5  retried 2  bad 0\n");
    assert_int_equal(lines, 2);
}

/* What it does comes after the numbers, and goes before them when room is short. */
TEST(the_phase_is_named)
{
    unsigned lines = 0;
    struct cli_live live = example();
    tide_buf out = heap_buf(4096);
    (void)snprintf(live.phase, sizeof live.phase, "listing and fetching");
    assert_non_null(strstr(block(&live, 1, 100, 24, false, &lines),
                           "12,345 of 60,000  20%  left 3 h 12 m  listing and fetching\n"));
    assert_null(strstr(block(&live, 1, 60, 24, false, &lines), "listing"));
    OK(cli_live_line(&mail, &live, &out));
    assert_non_null(
        strstr(tide_buf_cstr(&out), "ada@example.com: listing and fetching,  12,345 of"));
    tide_buf_done(&out);
}

TEST(a_narrow_terminal_keeps_what_matters)
{
    unsigned lines = 0;
    struct cli_live live = example();
    assert_string_equal(block(&live, 1, 46, 24, false, &lines),
                        "ada@example.com  12,345 of 60,000  20%\n"
                        "  5.0 msg/s  tidemark 2019-03-04  quota 98%\n");
    assert_string_equal(block(&live, 1, 20, 24, false, &lines), "12,345 of 60,000\n"
                                                                "  5.0 msg/s  bad 0\n");
    assert_string_equal(block(&live, 1, 7, 24, false, &lines), "12,345\n  5.0 \n");
}

TEST(an_unknown_total_has_no_bar_and_no_percent)
{
    unsigned lines = 0;
    struct cli_live live = example();
    live.total = CLI_UNKNOWN;
    live.left_ms = CLI_UNKNOWN;
    live.rate_known = false;
    live.tidemark_ms = 0;
    live.quota_max = 0;
    assert_string_equal(block(&live, 1, 80, 24, false, &lines),
                        "ada@example.com  12,345 stored  left -\n"
                        "  - msg/s  tidemark none yet  in flight 5  retried 2  bad 0\n");
}

TEST(a_hundred_percent_means_all)
{
    unsigned lines = 0;
    struct cli_live live = example();
    live.total = 1000000;
    live.done = 999999;
    assert_non_null(strstr(block(&live, 1, 80, 24, false, &lines), "  99%"));
    live.done = 1000000;
    assert_non_null(strstr(block(&live, 1, 80, 24, false, &lines), "  100%"));
    live.done = 1000007; /* mail that the server no longer has */
    assert_non_null(strstr(block(&live, 1, 80, 24, false, &lines), "1,000,007 of 1,000,007  100%"));
}

TEST(bad_mail_is_red_and_stays_when_room_is_short)
{
    unsigned lines = 0;
    struct cli_live live = example();
    live.bad = 3;
    assert_non_null(strstr(block(&live, 1, 80, 24, true, &lines), "\033[31mbad 3\033[0m"));
    assert_non_null(strstr(block(&live, 1, 48, 24, false, &lines), "bad 3"));
    assert_null(strchr(block(&live, 1, 80, 24, false, &lines), '\033'));
}

TEST(a_note_says_why_nothing_moves)
{
    unsigned lines = 0;
    struct cli_live live = example();
    (void)snprintf(live.note, sizeof live.note, "waits 12 s: throttled\033[2J");
    const char *text = block(&live, 1, 60, 24, false, &lines);
    assert_non_null(strstr(text, "waits 12 s: throttled?[2J"));
    fits(text, 60, 24, false, lines);
}

TEST(many_accounts_never_scroll)
{
    enum { COUNT = 40 };
    static struct cli_live many[COUNT];
    unsigned lines = 0;
    for (size_t i = 0; i < COUNT; i++) {
        many[i] = example();
        (void)snprintf(many[i].name, sizeof many[i].name, "user%zu@example.com", i);
    }
    fits(block(many, COUNT, 80, 100, false, &lines), 80, 100, false, 80);
    fits(block(many, COUNT, 80, 50, false, &lines), 80, 50, false, 40);
    const char *text = block(many, COUNT, 80, 10, false, &lines);
    fits(text, 80, 10, false, 9);
    assert_non_null(strstr(text, "... and 32 more accounts"));
    fits(block(many, COUNT, 80, 1, false, &lines), 80, 1, false, 1);
}

static uint64_t any_number(tide_rng *rng)
{
    return tide_rng_next(rng) >> tide_rng_below(rng, 64);
}

TEST(whatever_the_numbers_it_fits)
{
    const unsigned rounds = (unsigned)scaled(20000);
    tide_rng rng = tide_rng_seeded(7);
    for (unsigned i = 0; i < rounds; i++) {
        struct cli_live live[3];
        const size_t count = 1 + tide_rng_below(&rng, 3);
        for (size_t k = 0; k < count; k++) {
            live[k] = example();
            live[k].done = any_number(&rng);
            live[k].total = tide_rng_chance(&rng, 1, 4) ? CLI_UNKNOWN : any_number(&rng);
            live[k].done_per_s = (double)any_number(&rng);
            live[k].bytes_per_s = (double)any_number(&rng);
            live[k].quota_used = any_number(&rng);
            live[k].quota_max = any_number(&rng);
            live[k].in_flight = any_number(&rng);
            live[k].retried = any_number(&rng);
            live[k].bad = any_number(&rng);
            live[k].left_ms = any_number(&rng);
            live[k].tidemark_ms = any_number(&rng);
            const size_t bytes = tide_rng_below(&rng, sizeof live[k].name);
            for (size_t c = 0; c < bytes; c++)
                live[k].name[c] = (char)(1 + tide_rng_below(&rng, 255));
            live[k].name[bytes] = '\0';
        }
        const unsigned columns = (unsigned)tide_rng_below(&rng, 320);
        const unsigned rows = (unsigned)tide_rng_below(&rng, 12);
        const bool color = tide_rng_chance(&rng, 1, 2);
        unsigned lines = 0;
        const char *text = block(live, count, columns, rows, color, &lines);
        fits(text, columns, rows, color, lines);
    }
}

TEST(a_plain_line_has_it_all)
{
    struct cli_live live = example();
    tide_buf out = heap_buf(4096);
    OK(cli_live_line(&mail, &live, &out));
    assert_string_equal(tide_buf_cstr(&out),
                        "ada@example.com: 12,345 of 60,000  20%  5.0 msg/s  0.21 MB/s  tidemark "
                        "2019-03-04  quota 98%  in flight 5  retried 2  bad 0  left 3 h 12 m\n");
    tide_buf_done(&out);
}

/* ---- the time left (LIVE3) ---- */

TEST(the_time_left_is_what_the_quota_demands)
{
    /* 6,000 units a minute and 20 for a message: five a second, however fast it began. */
    assert_int_equal(cli_left_ms(3000, 20, 6000, true, 40.0), 600000);
    assert_int_equal(cli_left_ms(3000, 20, 6000, false, 0), 600000);
    /* Slower than the quota: the rate decides. */
    assert_int_equal(cli_left_ms(3000, 20, 6000, true, 2.0), 1500000);
    /* No quota is known. */
    assert_int_equal(cli_left_ms(3000, 20, 0, true, 10.0), 300000);
    assert_int_equal(cli_left_ms(3000, 20, 0, false, 0), CLI_UNKNOWN);
    /* Nothing moves. */
    assert_int_equal(cli_left_ms(3000, 20, 6000, true, 0), CLI_UNKNOWN);
    assert_int_equal(cli_left_ms(0, 20, 6000, true, 0), 0);
    assert_int_equal(cli_left_ms(UINT64_MAX, UINT64_MAX, 1, true, 1e-9), CLI_UNKNOWN);
}

/* ---- a total that stays (LIVE5) ---- */

TEST(a_total_moves_only_when_the_count_did)
{
    static const struct {
        uint64_t shown, counted, done, slack, total;
    } cases[] = {
        {CLI_UNKNOWN, CLI_UNKNOWN, 5, 100, CLI_UNKNOWN},
        {CLI_UNKNOWN, 1000, 5, 100, 1000},
        {1000, CLI_UNKNOWN, 5, 100, 1000}, /* it was known: that does not get lost */
        {1000, 1050, 5, 100, 1000},        /* a batch that counts twice for a moment */
        {1000, 950, 5, 100, 1000},
        {1000, 1101, 5, 100, 1101}, /* more was found */
        {1000, 899, 5, 100, 899},
        {1000, 1050, 1001, 100, 1050}, /* never below what is done */
        {1000, 990, 990, 100, 990},    /* nothing is left: 100 % */
        {1000, 1001, 5, 0, 1001},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const uint64_t total =
            cli_total_steady(cases[i].shown, cases[i].counted, cases[i].done, cases[i].slack);
        if (total != cases[i].total)
            fail_msg("case %zu: %" PRIu64, i, total);
    }
}

/* Ten seconds of work and fifty of waiting, as a quota by the minute makes it: after four minutes the
 * time left moves by less than a third, while the rate of the last seconds goes from all to nothing. */
TEST(bursts_have_a_steady_pace)
{
    struct cli_pace pace = {.begun = false};
    uint64_t done = 0;
    double per_s = 0;
    cli_pace_add(&pace, 1000, 0);
    assert_false(cli_pace_rate(&pace, &per_s));
    for (uint64_t half = 1; half <= 1200; half++) { /* ten minutes in steps of half a second */
        done += half % 120 < 20 ? 15 : 0;           /* 300 a minute: five a second */
        cli_pace_add(&pace, 1000 + half * 500, done);
        if (half < 480)
            continue;
        assert_true(cli_pace_rate(&pace, &per_s));
        if (per_s < 5 * 0.7 || per_s > 5 * 1.35)
            fail_msg("%.2f a second after %" PRIu64 " s", per_s, half / 2);
    }
}

TEST(a_pace_that_ends_is_none)
{
    struct cli_pace pace = {.begun = false};
    double per_s = 0;
    for (uint64_t s = 0; s <= 60; s++)
        cli_pace_add(&pace, s * 1000, s * 10);
    assert_true(cli_pace_rate(&pace, &per_s));
    assert_float_equal(per_s, 10, 0.01);
    for (uint64_t s = 61; s <= 170; s++)
        cli_pace_add(&pace, s * 1000, 600);
    assert_true(cli_pace_rate(&pace, &per_s));
    assert_true(per_s > 0); /* it may be waiting for its quota */
    for (uint64_t s = 171; s <= 182; s++)
        cli_pace_add(&pace, s * 1000, 600);
    assert_true(cli_pace_rate(&pace, &per_s));
    assert_float_equal(per_s, 0, 0);
    cli_pace_add(&pace, 183000, 5); /* another archive: it begins anew */
    assert_false(cli_pace_rate(&pace, &per_s));
}

/* ---- rates ---- */

TEST(a_rate_is_of_the_last_seconds)
{
    struct cli_meter meter = {.count = 0};
    double messages = 0;
    double bytes = 0;
    cli_meter_add(&meter, 1000, 0, 0);
    assert_false(cli_meter_rate(&meter, &messages, &bytes));
    cli_meter_add(&meter, 1500, 5, 5000);
    assert_false(cli_meter_rate(&meter, &messages, &bytes)); /* too short to say */
    for (uint64_t i = 1; i <= 120; i++)                      /* a minute at ten a second ... */
        cli_meter_add(&meter, 1500 + i * 500, 5 + i * 5, 5000 + i * 500);
    assert_true(cli_meter_rate(&meter, &messages, &bytes));
    assert_float_equal(messages, 10, 0.01);
    assert_float_equal(bytes, 1000, 0.01);
    for (uint64_t i = 1; i <= 22; i++) /* ... and eleven seconds of nothing */
        cli_meter_add(&meter, 61500 + i * 500, 605, 65000);
    assert_true(cli_meter_rate(&meter, &messages, &bytes));
    assert_float_equal(messages, 0, 0.01);
}

TEST(a_rate_survives_quick_and_odd_samples)
{
    struct cli_meter meter = {.count = 0};
    double messages = 0;
    double bytes = 0;
    for (uint64_t i = 0; i < 5000; i++) /* far more than there is room for */
        cli_meter_add(&meter, 1000 + i * 20, i, i * 10);
    assert_true(meter.count <= CLI_METER_SAMPLES);
    assert_true(cli_meter_rate(&meter, &messages, &bytes));
    assert_float_equal(messages, 50, 0.5);
    cli_meter_add(&meter, 200000, 1, 1); /* fewer than before: another archive */
    assert_false(cli_meter_rate(&meter, &messages, &bytes));
}

TEST(a_system_brings_its_own_counts)
{
    const struct cli_columns days = {.done = "days",
                                     .done_json = "days",
                                     .rate = "days/s",
                                     .rate_json = "days_per_s",
                                     .more = {{"rows", "rows"}, {"refused", "refused"}}};
    struct cli_live live = example();
    live.more[0] = 1250000;
    tide_buf out = heap_buf(4096);
    OK(cli_live_line(&days, &live, &out));
    assert_string_equal(
        tide_buf_cstr(&out),
        "ada@example.com: 12,345 of 60,000  20%  5.0 days/s  0.21 MB/s  rows "
        "1,250,000  refused 0  quota 98%  in flight 5  retried 2  bad 0  left 3 h 12 m\n");
    tide_buf_done(&out);
}

TEST(no_room_is_a_status)
{
    struct cli_live live = example();
    for (size_t room = 0; room < 160; room++) {
        unsigned lines = 0;
        tide_buf out = heap_buf(room);
        assert_int_equal(cli_live_block(&mail, &live, 1, 100, 24, false, &out, &lines), TIDE_FULL);
        assert_int_equal(lines, 0);
        tide_buf_done(&out);
    }
}
