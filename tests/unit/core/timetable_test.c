/* Goal: every slot of a timetable once, also where local time jumps (E8).  Method: examples, then
 * random timetables against a model that walks minute by minute around two jumps. */
#include "core/timetable.h"
#include "base/calendar.h"
#include "base/rng.h"
#include "support/scale.h"
#include "support/test.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Like Berlin in 2026: ahead by one hour, by two from 29 March 01:00 UTC to 25 October 01:00. */
enum { HOUR_S = 3600 };
static const int64_t summer_s = 1774746000, winter_s = 1792890000;

static int32_t berlin_ahead(void *arg, int64_t unix_s)
{
    (void)arg;
    return unix_s >= summer_s && unix_s < winter_s ? 2 * HOUR_S : HOUR_S;
}

static int32_t utc_ahead(void *arg, int64_t unix_s)
{
    (void)arg;
    (void)unix_s;
    return 0;
}

static int32_t lima_ahead(void *arg, int64_t unix_s)
{
    (void)arg;
    (void)unix_s;
    return -5 * HOUR_S;
}

static const struct tide_zone lima = {lima_ahead, NULL};
static const struct tide_zone berlin = {berlin_ahead, NULL};
static const struct tide_zone utc = {utc_ahead, NULL};

static uint64_t utc_ms(int32_t year, uint32_t month, uint32_t day, int hour, int minute)
{
    const int64_t days = tide_days_of((struct tide_date){year, month, day});
    return (uint64_t)(days * 86400 + hour * 3600 + minute * 60) * 1000;
}

static struct tide_timetable parsed(const char *text)
{
    struct tide_timetable timetable;
    tide_error err;
    if (tide_timetable_parse(tide_text_of(text), &timetable, &err) != TIDE_OK)
        fail_msg("\"%s\": %s", text, err.text);
    return timetable;
}

static void next_is(const char *text, const struct tide_zone *zone, uint64_t after_ms,
                    uint64_t want_ms)
{
    const struct tide_timetable timetable = parsed(text);
    const uint64_t got_ms = tide_timetable_next(&timetable, 0, after_ms, zone);
    if (got_ms != want_ms)
        fail_msg("\"%s\" after %" PRIu64 ": %" PRIu64 ", not %" PRIu64, text, after_ms, got_ms,
                 want_ms);
}

TEST(words_and_fields_say_the_same)
{
    const char *const pairs[][2] = {
        {"hourly", "0 * * * *"},
        {"daily 03:30", "30 3 * * *"},
        {"weekly sun 04:00", "0 4 * * 0"},
        {"weekly Sunday 04:00", "0 4 * * 7"},
        {"weekly mon-fri 23:59", "59 23 * * 1-5"},
        {"monthly 1 05:00", "0 5 1 * *"},
        {"monthly 1,15 05:00", "0 5 1,15 * *"},
        {"*/15 * * * *", "0,15,30,45 * * * *"},
        {"5/20 * * * *", "5,25,45 * * * *"},
        {"5-40/20 * * * *", "5,25 * * * *"},
        {"0 0 1 jan-mar *", "0 0 1 1-3 *"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        const struct tide_timetable a = parsed(pairs[i][0]);
        const struct tide_timetable b = parsed(pairs[i][1]);
        assert_int_equal(a.minutes, b.minutes);
        assert_int_equal(a.hours, b.hours);
        assert_int_equal(a.days, b.days);
        assert_int_equal(a.months, b.months);
        assert_int_equal(a.weekdays, b.weekdays);
    }
}

TEST(what_is_not_a_time_is_refused_with_a_reason)
{
    const char *const wrong[] = {"",
                                 "soon",
                                 "daily",
                                 "daily 24:00",
                                 "daily 3",
                                 "daily x",
                                 "daily 03:",
                                 "daily 03:60",
                                 "daily 03:30x",
                                 "daily 03:30 x",
                                 "weekly 04:00",
                                 "weekly moon 04:00",
                                 "every",
                                 "every 0min",
                                 "every 5 weeks",
                                 "every 5min x",
                                 "every -5min",
                                 "hourly 5",
                                 "60 * * * *",
                                 "* 24 * * *",
                                 "* * 0 * *",
                                 "* * * 13 *",
                                 "* * * * 8",
                                 "* * * *",
                                 "* * * * * *",
                                 "5-1 * * * *",
                                 "*/0 * * * *",
                                 "*/x * * * *",
                                 "* * * * sun~",
                                 "1,,2 * * * *",
                                 "1- * * * *",
                                 "9999999999 * * * *",
                                 "monthly 32 01:00"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct tide_timetable timetable;
        tide_error err = {TIDE_OK, 0, ""};
        if (tide_timetable_parse(tide_text_of(wrong[i]), &timetable, &err) != TIDE_INVALID)
            fail_msg("\"%s\" was taken", wrong[i]);
        assert_true(err.text[0] != '\0');
    }
}

TEST(a_word_may_list_every_minute_and_one_that_is_too_long_is_not_cut_in_two)
{
    char text[400] = "0";
    for (int minute = 1; minute < 60; minute++)
        (void)snprintf(text + strlen(text), sizeof text - strlen(text), ",%d", minute);
    (void)snprintf(text + strlen(text), sizeof text - strlen(text), " * * * *");
    assert_int_equal(parsed(text).minutes, parsed("* * * * *").minutes);
    struct tide_timetable timetable;
    (void)snprintf(text, sizeof text, "%0300d * * *", 1);
    assert_int_equal(tide_timetable_parse(tide_text_of(text), &timetable, NULL), TIDE_INVALID);
    (void)snprintf(text, sizeof text, "daily 03:30 %0300d", 1);
    assert_int_equal(tide_timetable_parse(tide_text_of(text), &timetable, NULL), TIDE_INVALID);
}

TEST(a_slot_is_after_the_time_that_was_asked_about)
{
    next_is("daily 03:30", &utc, utc_ms(2026, 11, 16, 3, 29), utc_ms(2026, 11, 16, 3, 30));
    next_is("daily 03:30", &utc, utc_ms(2026, 11, 16, 3, 30), utc_ms(2026, 11, 17, 3, 30));
    next_is("daily 03:30", &berlin, utc_ms(2026, 12, 1, 0, 0), utc_ms(2026, 12, 1, 2, 30));
    next_is("weekly sun 04:00", &utc, utc_ms(2026, 11, 16, 0, 0), utc_ms(2026, 11, 22, 4, 0));
    next_is("monthly 31 00:00", &utc, utc_ms(2026, 11, 1, 0, 0), utc_ms(2026, 12, 31, 0, 0));
    next_is("0 0 29 2 *", &utc, utc_ms(2026, 1, 1, 0, 0), utc_ms(2028, 2, 29, 0, 0));
    next_is("0 0 31 2 *", &utc, utc_ms(2026, 1, 1, 0, 0), TIDE_TIMETABLE_NEVER);
    /* Day and weekday: one of them suffices; with a star the other one decides. */
    next_is("0 0 13 * fri", &utc, utc_ms(2026, 11, 16, 0, 0), utc_ms(2026, 11, 20, 0, 0));
    next_is("0 0 13 * fri", &utc, utc_ms(2026, 12, 11, 1, 0), utc_ms(2026, 12, 13, 0, 0));
    /* The ends of time: local time is before 1970, or a slot has no number. */
    next_is("daily 03:30", &lima, 0, utc_ms(1970, 1, 1, 8, 30));
    next_is("daily 03:30", &utc, UINT64_MAX, TIDE_TIMETABLE_NEVER);
}

TEST(every_counts_from_its_creation)
{
    const struct tide_timetable timetable = parsed("every 15min");
    const uint64_t made_ms = utc_ms(2026, 11, 16, 12, 7);
    const uint64_t quarter_ms = 15 * 60000;
    assert_int_equal(tide_timetable_next(&timetable, made_ms, made_ms, &utc), made_ms + quarter_ms);
    assert_int_equal(tide_timetable_next(&timetable, made_ms, made_ms + quarter_ms, &utc),
                     made_ms + 2 * quarter_ms);
    /* A clock before the creation waits for the first slot. */
    assert_int_equal(tide_timetable_next(&timetable, made_ms, 5, &utc), made_ms + quarter_ms);
    assert_int_equal(tide_timetable_next(&timetable, made_ms, UINT64_MAX - 1, &utc),
                     TIDE_TIMETABLE_NEVER);
    assert_int_equal(parsed("every 2 h").period_ms, 7200000);
}

TEST(a_jump_of_local_time_neither_loses_nor_repeats_a_slot)
{
    /* 02:30 does not exist on 29 March: its slot is at the end of the jump. */
    next_is("daily 02:30", &berlin, utc_ms(2026, 3, 28, 12, 0), (uint64_t)summer_s * 1000);
    /* Two hours after the jump back nothing is repeated. */
    next_is("daily 04:00", &berlin, utc_ms(2026, 10, 25, 0, 0), utc_ms(2026, 10, 25, 3, 0));
    next_is("daily 02:30", &berlin, (uint64_t)summer_s * 1000, utc_ms(2026, 3, 30, 0, 30));
    /* It comes twice on 25 October: the first counts. */
    next_is("daily 02:30", &berlin, utc_ms(2026, 10, 24, 12, 0), utc_ms(2026, 10, 25, 0, 30));
    next_is("daily 02:30", &berlin, utc_ms(2026, 10, 25, 0, 30), utc_ms(2026, 10, 26, 1, 30));
    /* What is wanted every hour goes on. */
    next_is("30 * * * *", &berlin, utc_ms(2026, 10, 25, 0, 30), utc_ms(2026, 10, 25, 1, 30));
}

/* ---- against a model ---- */

static bool wanted_at(const struct tide_timetable *t, int64_t local_s)
{
    const int64_t day = local_s / 86400;
    const struct tide_date date = tide_date_of(day);
    const bool by_day = (t->days >> date.day & 1) != 0;
    const bool by_weekday = (t->weekdays >> tide_weekday_of(day) & 1) != 0;
    const bool fits = t->any_day || t->any_weekday ? by_day && by_weekday : by_day || by_weekday;
    return fits && (t->months >> date.month & 1) != 0 &&
           (t->hours >> local_s % 86400 / 3600 & 1) != 0 &&
           (t->minutes >> local_s % 3600 / 60 & 1) != 0;
}

/* Is this minute a slot?  Looks at every minute of the hours before it. */
static bool is_slot(const struct tide_timetable *t, int64_t at_s)
{
    const int64_t local_s = at_s + berlin_ahead(NULL, at_s);
    const int64_t before_s = at_s - 60 + berlin_ahead(NULL, at_s - 60);
    for (int64_t skipped_s = before_s + 60; skipped_s < local_s; skipped_s += 60)
        if (wanted_at(t, skipped_s))
            return true;
    if (!wanted_at(t, local_s))
        return false;
    bool seen = false;
    for (int64_t earlier_s = at_s - 4 * HOUR_S; earlier_s < at_s; earlier_s += 60)
        seen = seen || earlier_s + berlin_ahead(NULL, earlier_s) == local_s;
    return !seen || t->hours == 0xffffff;
}

static void field(tide_rng *rng, char *text, size_t bytes, uint32_t min, uint32_t max)
{
    const uint32_t a = min + (uint32_t)(tide_rng_next(rng) % (max - min + 1));
    const uint32_t b = a + (uint32_t)(tide_rng_next(rng) % (max - a + 1));
    switch (tide_rng_next(rng) % 4) {
    case 0:
        (void)snprintf(text, bytes, "*");
        break;
    case 1:
        (void)snprintf(text, bytes, "%u", a);
        break;
    case 2:
        (void)snprintf(text, bytes, "%u-%u", a, b);
        break;
    default:
        (void)snprintf(text, bytes, "%u,%u/%u", a, b, (unsigned)(1 + tide_rng_next(rng) % 20));
    }
}

TEST(random_timetables_agree_with_a_walk_by_minutes)
{
    tide_rng rng = tide_rng_seeded(14);
    for (uint64_t round = 0; round < scaled(400); round++) {
        char minute[16], hour[16], weekday[16], text[80];
        field(&rng, minute, sizeof minute, 0, 59);
        field(&rng, hour, sizeof hour, 0, 23);
        field(&rng, weekday, sizeof weekday, 0, 6);
        (void)snprintf(text, sizeof text, "%s %s * * %s", minute, hour, weekday);
        const struct tide_timetable timetable = parsed(text);
        const int64_t jump_s = tide_rng_next(&rng) % 2 == 0 ? summer_s : winter_s;
        const int64_t after_s = jump_s - 5 * HOUR_S + (int64_t)(tide_rng_next(&rng) % 36000);
        int64_t want_s = after_s / 60 * 60 + 60;
        while (want_s < after_s + 8 * 86400 && !is_slot(&timetable, want_s))
            want_s += 60;
        const uint64_t got_ms =
            tide_timetable_next(&timetable, 0, (uint64_t)after_s * 1000, &berlin);
        if (got_ms != (uint64_t)want_s * 1000)
            fail_msg("\"%s\" after %" PRId64 ": %" PRIu64 ", not %" PRId64, text, after_s,
                     got_ms / 1000, want_s);
    }
}

TEST(the_delay_of_a_slot_is_the_same_everywhere_and_within_its_bound)
{
    uint64_t least = UINT64_MAX;
    uint64_t most = 0;
    for (uint64_t slot = 0; slot < 1000; slot++) {
        const uint64_t delay =
            tide_timetable_delay_ms(TIDE_TEXT("mail-sync"), slot * 900000, 600000);
        assert_int_equal(delay,
                         tide_timetable_delay_ms(TIDE_TEXT("mail-sync"), slot * 900000, 600000));
        assert_true(delay <= 600000);
        least = delay < least ? delay : least;
        most = delay > most ? delay : most;
    }
    assert_true(least < 60000 && most > 540000); /* spread over all of it */
    assert_int_equal(tide_timetable_delay_ms(TIDE_TEXT("x"), 5, 0), 0);
}
