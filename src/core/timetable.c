#include "core/timetable.h"

#include "base/calendar.h"
#include "base/hash.h"

#include <string.h>

enum {
    MINUTE_S = 60,
    QUARTER_S = 15 * 60,
    HOUR_S = 3600,
    DAY_S = 86400,
    JUMP_S_MAX = 3 * HOUR_S, /* local time jumps by less */
    WORD_BYTES_MAX = 256,    /* "0,1,2,...,59" has 169 */
    FIELDS = 5,
};
static const int64_t horizon_s = (int64_t)9 * 366 * DAY_S;

/* ---- words ---- */

struct words {
    tide_text rest;
};

/* The next word in small letters; "" at the end; one that is too long is "?", which nothing takes. */
static void word_next(struct words *words, char word[WORD_BYTES_MAX])
{
    size_t used = 0;
    while (words->rest.bytes > 0 && words->rest.data[0] == ' ') {
        words->rest.data++;
        words->rest.bytes--;
    }
    for (; words->rest.bytes > 0 && words->rest.data[0] != ' '; used++) {
        const char c = words->rest.data[0];
        if (used < WORD_BYTES_MAX)
            word[used] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
        words->rest.data++;
        words->rest.bytes--;
    }
    if (used >= WORD_BYTES_MAX) {
        word[0] = '?';
        used = 1;
    }
    word[used] = '\0';
}

static bool ends(struct words *words)
{
    char word[WORD_BYTES_MAX];
    word_next(words, word);
    return word[0] == '\0';
}

/* Digits at *at; false: there are none, or too many. */
static bool number_take(const char **at, uint32_t *number_out)
{
    uint32_t number = 0;
    int digits = 0;
    for (; **at >= '0' && **at <= '9' && digits < 9; digits++)
        number = number * 10 + (uint32_t)(*(*at)++ - '0');
    *number_out = number;
    return digits > 0 && (**at < '0' || **at > '9');
}

/* ---- fields of cron ---- */

struct field {
    const char *name;
    uint32_t min, max;
    const char (*names)[4]; /* "Jan"; NULL: none */
    uint32_t names_from;    /* the number of the first */
};

static const struct field fields[FIELDS] = {
    {"minute", 0, 59, NULL, 0},
    {"hour", 0, 23, NULL, 0},
    {"day", 1, 31, NULL, 0},
    {"month", 1, 12, tide_month_names, 1},
    {"weekday", 0, 7, tide_day_names, 0}, /* 7 is Sunday, too */
};

static bool name_take(const struct field *field, const char **at, uint32_t *number_out)
{
    const uint32_t count = field->names == NULL ? 0 : field->names_from == 1 ? 12 : 7;
    for (uint32_t i = 0; i < count; i++) {
        const char *name = field->names[i];
        const char small[3] = {(char)(name[0] - 'A' + 'a'), name[1], name[2]};
        if (strncmp(*at, small, 3) == 0) {
            while (**at >= 'a' && **at <= 'z') /* "sun" and "sunday" */
                (*at)++;
            *number_out = i + field->names_from;
            return true;
        }
    }
    return number_take(at, number_out);
}

/* "*", "5", "1-5", each perhaps with "/2". */
static bool range_take(const struct field *field, const char **at, uint64_t *bits)
{
    uint32_t from = field->min;
    uint32_t to = field->max;
    uint32_t step = 1;
    const bool any = **at == '*';
    if (any)
        (*at)++;
    else if (!name_take(field, at, &from))
        return false;
    else
        to = from;
    if (!any && **at == '-') {
        (*at)++;
        if (!name_take(field, at, &to))
            return false;
    }
    if (**at == '/') {
        (*at)++;
        if (!number_take(at, &step) || step == 0)
            return false;
        if (!any && to == from)
            to = field->max; /* "5/15": from 5 on */
    }
    if (from < field->min || to > field->max || from > to)
        return false;
    for (uint32_t n = from; n <= to; n += step)
        *bits |= (uint64_t)1 << n;
    return true;
}

static tide_status field_parse(const struct field *field, const char *word, uint64_t *bits_out,
                               tide_error *err)
{
    const char *at = word;
    *bits_out = 0;
    bool good = range_take(field, &at, bits_out);
    while (good && *at == ',') {
        at++;
        good = range_take(field, &at, bits_out);
    }
    if (!good || *at != '\0')
        return tide_error_set(err, TIDE_INVALID, "\"%s\" is not a %s: %u to %u, *, */2, 1-5 or 1,3",
                              word, field->name, field->min, field->max == 7 ? 6 : field->max);
    return TIDE_OK;
}

static tide_status cron_parse(tide_text text, struct tide_timetable *timetable, tide_error *err)
{
    struct words words = {text};
    uint64_t bits[FIELDS] = {0};
    for (int i = 0; i < FIELDS; i++) {
        char word[WORD_BYTES_MAX];
        word_next(&words, word);
        if (word[0] == '\0')
            return tide_error_set(
                err, TIDE_INVALID,
                "a time is \"every 15min\", \"daily 03:30\", \"weekly sun 04:00\", "
                "\"monthly 1 05:00\" or the five fields of cron");
        const tide_status rc = field_parse(&fields[i], word, &bits[i], err);
        if (rc != TIDE_OK)
            return rc;
        if (i == 2)
            timetable->any_day = word[0] == '*';
        if (i == 4)
            timetable->any_weekday = word[0] == '*';
    }
    if (!ends(&words))
        return tide_error_set(err, TIDE_INVALID, "a time in the form of cron has five fields");
    timetable->minutes = bits[0];
    timetable->hours = (uint32_t)bits[1];
    timetable->days = (uint32_t)bits[2];
    timetable->months = (uint32_t)bits[3];
    timetable->weekdays = (uint32_t)((bits[4] | bits[4] >> 7) & 0x7f);
    return TIDE_OK;
}

/* ---- forms in words ---- */

static tide_status every_parse(struct words *words, struct tide_timetable *timetable,
                               tide_error *err)
{
    static const struct {
        const char *name;
        uint64_t ms;
    } units[] = {{"s", 1000},       {"sec", 1000},     {"m", 60000},       {"min", 60000},
                 {"h", 3600000},    {"hour", 3600000}, {"hours", 3600000}, {"d", 86400000},
                 {"day", 86400000}, {"days", 86400000}};
    char word[WORD_BYTES_MAX];
    uint32_t count = 0;
    word_next(words, word);
    const char *at = word;
    const bool good = number_take(&at, &count);
    char next[WORD_BYTES_MAX];
    if (good && *at == '\0') { /* "every 15 min" */
        word_next(words, next);
        at = next;
    }
    for (size_t i = 0; good && count > 0 && i < sizeof units / sizeof units[0]; i++)
        if (strcmp(at, units[i].name) == 0)
            timetable->period_ms = count * units[i].ms;
    if (timetable->period_ms == 0 || !ends(words))
        return tide_error_set(err, TIDE_INVALID, "write \"every 15min\", with s, min, h or d");
    return TIDE_OK;
}

/* "03:30". */
static tide_status clock_parse(struct words *words, struct tide_timetable *timetable,
                               tide_error *err)
{
    char word[WORD_BYTES_MAX];
    uint32_t hour = 0;
    uint32_t minute = 0;
    word_next(words, word);
    const char *at = word;
    const bool good = number_take(&at, &hour) && *at++ == ':' && number_take(&at, &minute) &&
                      *at == '\0' && hour < 24 && minute < 60;
    if (!good || !ends(words))
        return tide_error_set(err, TIDE_INVALID, "\"%s\" is not a time of day; write 03:30", word);
    timetable->hours = (uint32_t)1 << hour;
    timetable->minutes = (uint64_t)1 << minute;
    return TIDE_OK;
}

tide_status tide_timetable_parse(tide_text text, struct tide_timetable *timetable_out,
                                 tide_error *err)
{
    struct tide_timetable timetable = {.hours = 0xffffff,
                                       .minutes = 1,
                                       .days = 0xfffffffe,
                                       .months = 0x1ffe,
                                       .weekdays = 0x7f,
                                       .any_day = true,
                                       .any_weekday = true};
    struct words words = {text};
    char word[WORD_BYTES_MAX];
    uint64_t bits = 0;
    tide_status rc = TIDE_OK;
    word_next(&words, word);
    if (strcmp(word, "every") == 0) {
        timetable = (struct tide_timetable){0};
        rc = every_parse(&words, &timetable, err);
    } else if (strcmp(word, "hourly") == 0) {
        rc = ends(&words) ? TIDE_OK
                          : tide_error_set(err, TIDE_INVALID, "nothing follows \"hourly\"");
    } else if (strcmp(word, "daily") == 0) {
        rc = clock_parse(&words, &timetable, err);
    } else if (strcmp(word, "weekly") == 0 || strcmp(word, "monthly") == 0) {
        const bool weekly = word[0] == 'w';
        char which[WORD_BYTES_MAX];
        word_next(&words, which);
        rc = field_parse(&fields[weekly ? 4 : 2], which, &bits, err);
        timetable.any_weekday = !weekly;
        timetable.any_day = weekly;
        if (weekly)
            timetable.weekdays = (uint32_t)((bits | bits >> 7) & 0x7f);
        else
            timetable.days = (uint32_t)bits;
        if (rc == TIDE_OK)
            rc = clock_parse(&words, &timetable, err);
    } else {
        timetable = (struct tide_timetable){0};
        rc = cron_parse(text, &timetable, err);
    }
    if (rc == TIDE_OK)
        *timetable_out = timetable;
    return rc;
}

/* ---- slots ---- */

static int64_t floor_to(int64_t value, int64_t step)
{
    const int64_t rest = value % step;
    return value - (rest < 0 ? rest + step : rest);
}

static int64_t ahead(const struct tide_zone *zone, int64_t unix_s)
{
    return zone->ahead_s(zone->arg, unix_s);
}

/* The bits of the minutes that are wanted in the quarter of an hour that begins at this local
 * time; bit 0 is its first minute. */
static uint32_t quarter_minutes(const struct tide_timetable *t, int64_t local_s)
{
    const int64_t day = floor_to(local_s, DAY_S) / DAY_S;
    const int64_t of_day_s = local_s - day * DAY_S;
    const struct tide_date date = tide_date_of(day);
    const bool by_day = (t->days >> date.day & 1) != 0;
    const bool by_weekday = (t->weekdays >> tide_weekday_of(day) & 1) != 0;
    const bool day_fits =
        t->any_day || t->any_weekday ? by_day && by_weekday : by_day || by_weekday;
    if (!day_fits || (t->months >> date.month & 1) == 0 || (t->hours >> of_day_s / HOUR_S & 1) == 0)
        return 0;
    return (uint32_t)(t->minutes >> of_day_s % HOUR_S / MINUTE_S) & 0x7fff;
}

/* Whether the local time of this quarter came before, at an earlier instant (TTB2). */
static bool is_repeated(const struct tide_zone *zone, int64_t unix_s, int64_t ahead_s)
{
    const int64_t before_s = ahead(zone, unix_s - JUMP_S_MAX);
    const int64_t earlier_s = unix_s + ahead_s - before_s;
    return before_s > ahead_s && ahead(zone, earlier_s) == before_s;
}

/* Whether a jump forward that ends at this instant skipped a slot. */
static bool is_skipped_to(const struct tide_timetable *t, const struct tide_zone *zone,
                          int64_t unix_s, int64_t ahead_s)
{
    const int64_t before_s = ahead(zone, unix_s - 1);
    for (int64_t local_s = unix_s + before_s; local_s < unix_s + ahead_s; local_s += QUARTER_S)
        if (quarter_minutes(t, local_s) != 0)
            return true;
    return false;
}

/* The first slot from this quarter's beginning on that is after `after_s`; -1: it has none. */
static int64_t slot_in_quarter(const struct tide_timetable *t, const struct tide_zone *zone,
                               int64_t quarter_s, int64_t after_s)
{
    const int64_t ahead_s = ahead(zone, quarter_s);
    if (quarter_s > after_s && is_skipped_to(t, zone, quarter_s, ahead_s))
        return quarter_s;
    const uint32_t minutes = quarter_minutes(t, quarter_s + ahead_s);
    if (minutes == 0 || (t->hours != 0xffffff && is_repeated(zone, quarter_s, ahead_s)))
        return -1;
    for (int64_t i = 0; i < 15; i++)
        if ((minutes >> i & 1) != 0 && quarter_s + i * MINUTE_S > after_s)
            return quarter_s + i * MINUTE_S;
    return -1;
}

uint64_t tide_timetable_next(const struct tide_timetable *timetable, uint64_t anchor_unix_ms,
                             uint64_t after_unix_ms, const struct tide_zone *zone)
{
    if (timetable->period_ms > 0) {
        const uint64_t since_ms =
            after_unix_ms < anchor_unix_ms ? 0 : after_unix_ms - anchor_unix_ms;
        const uint64_t next = since_ms / timetable->period_ms + 1;
        return next > (UINT64_MAX - anchor_unix_ms) / timetable->period_ms
                   ? TIDE_TIMETABLE_NEVER
                   : anchor_unix_ms + next * timetable->period_ms;
    }
    if (after_unix_ms / 1000 > (uint64_t)INT64_MAX / 2000)
        return TIDE_TIMETABLE_NEVER;
    const int64_t after_s = (int64_t)(after_unix_ms / 1000);
    for (int64_t at_s = floor_to(after_s, QUARTER_S); at_s < after_s + horizon_s;
         at_s += QUARTER_S) {
        const int64_t slot_s = slot_in_quarter(timetable, zone, at_s, after_s);
        if (slot_s >= 0)
            return (uint64_t)slot_s * 1000;
    }
    return TIDE_TIMETABLE_NEVER;
}

uint64_t tide_timetable_delay_ms(tide_text name, uint64_t slot_unix_ms, uint64_t jitter_ms)
{
    if (jitter_ms == 0)
        return 0;
    uint64_t hash = tide_hash(TIDE_HASH_START ^ slot_unix_ms, name);
    hash ^= hash >> 29; /* the low bits of an FNV hash alone are not even */
    return hash % (jitter_ms + 1);
}
