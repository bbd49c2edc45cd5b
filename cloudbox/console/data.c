#include "cloudbox/console/data.h"

#include "base/calendar.h"
#include "base/check.h"
#include "base/clocktext.h"

#include <assert.h>
#include <stdio.h>

/* ---- Pacific days ---- */

static int32_t day_of(int32_t year, int32_t month, int32_t day)
{
    return (int32_t)tide_days_of((struct tide_date){year, (uint32_t)month, (uint32_t)day});
}

bool box_day_parse(tide_text text, int32_t *day_out)
{
    uint64_t ms = 0;
    if (text.bytes != 10 || !tide_time_parse(text, &ms))
        return false;
    *day_out = (int32_t)(ms / 86400000);
    return true;
}

void box_day_print(int32_t day, char text_out[11])
{
    const struct tide_date date = tide_date_of(day);
    TIDE_ASSERT(date.year >= 0 && date.year <= 9999);
    (void)snprintf(text_out, 11, "%04u-%02u-%02u", (unsigned)date.year % 10000, date.month % 100,
                   date.day % 100);
}

/* The first Sunday on or after that date. */
static int32_t sunday_from(int32_t year, int32_t month, int32_t day)
{
    const int32_t days = day_of(year, month, day);
    return days + (int32_t)((7 - tide_weekday_of(days)) % 7);
}

/* Summer time lasts from the second Sunday in March to the first in November,
 * changing at two in the morning: at midnight of both days the old time holds. */
static bool summer_at_midnight(int32_t day)
{
    const int32_t year = tide_date_of(day).year;
    return day > sunday_from(year, 3, 8) && day <= sunday_from(year, 11, 1);
}

int64_t box_day_start_ms(int32_t day)
{
    return ((int64_t)day * 24 + (summer_at_midnight(day) ? 7 : 8)) * 3600 * 1000;
}

int32_t box_day_at(uint64_t unix_ms)
{
    const int64_t shifted = (int64_t)unix_ms - 7 * 3600 * 1000;
    int32_t day = (int32_t)(shifted / 86400000);
    while (box_day_start_ms(day) > (int64_t)unix_ms)
        day--;
    return day;
}

uint32_t box_day_hours(int32_t day)
{
    return (uint32_t)((box_day_start_ms(day + 1) - box_day_start_ms(day)) / 3600000);
}

void box_hour_print(int32_t day, uint32_t hour, char text_out[26])
{
    TIDE_ASSERT(hour < box_day_hours(day));
    char date[11];
    box_day_print(day, date);
    const bool summer_first = summer_at_midnight(day);
    const bool changed = summer_first != summer_at_midnight(day + 1) && hour >= 2;
    /* In March the clock skips 02:00, in November it shows 01:00 twice. */
    const uint32_t shown = !changed ? hour : (summer_first ? hour - 1 : hour + 1);
    const bool summer = changed ? !summer_first : summer_first;
    (void)snprintf(text_out, 26, "%sT%02u:00:00-0%c:00", date, shown % 24, summer ? '7' : '8');
}

int32_t box_day_oldest(int32_t today)
{
    const struct tide_date date = tide_date_of(today);
    const int32_t months = date.year * 12 + (int32_t)date.month - 1 - BOX_RETENTION_MONTHS;
    const int32_t first = day_of(months / 12, months % 12 + 1, 1);
    const int32_t next = day_of((months + 1) / 12, (months + 1) % 12 + 1, 1);
    const int32_t wanted = first + (int32_t)date.day - 1;
    return wanted < next ? wanted : next - 1;
}

/* ---- rows ---- */

static inline uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static inline uint64_t hash_of(uint64_t seed, uint64_t number)
{
    return mix(seed + (number + 1) * 0x9e3779b97f4a7c15u);
}

/* How many rows of each type there are for a hundred rows on the web. */
static const uint32_t type_percent[BOX_SEARCHES] = {100, 25, 10, 6, 12, 4};

/* How busy each hour of a day is, from midnight on; a 25th counts as the last. */
static const uint8_t hour_busy[BOX_DAY_HOURS_MAX] = {3, 2, 2, 1, 1, 2, 3, 4, 6, 7, 7, 7, 6,
                                                     6, 7, 7, 6, 6, 6, 7, 7, 6, 5, 4, 3};
/* Days since 1970-01-01 modulo 7 begin on a Thursday. */
static const uint16_t weekday_permille[7] = {1080, 960, 740, 760, 1120, 1150, 1110};

enum {
    HOUR_MS = 3600 * 1000,
    FRESH_AFTER_MS = 2 * HOUR_MS,  /* from the end of an hour to its first numbers */
    FINAL_AFTER_MS = 24 * HOUR_MS, /* from the end of a day, and up to a day more */
    FRESH_PERMILLE = 500,          /* of an hour, when it first shows */
    ROWS_PER_QUERY = 8,
    SLOW_HOURS = 24,
};

/* A prime above every block size, so that it has no factor in common with any:
 * multiplying by it modulo the size is a permutation. */
static const uint32_t steps[8] = {1000003, 1299709, 1500007, 1600033,
                                  1700021, 1800017, 1900009, 1999993};

static uint32_t block_lowest(uint32_t block)
{
    return 16 * (((1u << (2 * block)) - 1) / 3);
}

/* BCON4: hours show two hours after they end and grow until the day is final,
 * between one and two days after its end; so that the newest final day is the
 * day before yesterday or the one before it. */
static void open_hours(struct box_day *day, uint64_t now_ms)
{
    const int64_t start_ms = box_day_start_ms(day->day);
    const int64_t slow_ms =
        (int64_t)(hash_of(day->seed, (uint64_t)day->day) % SLOW_HOURS) * HOUR_MS;
    const int64_t grow_ms = FINAL_AFTER_MS + slow_ms - FRESH_AFTER_MS;
    day->hours = box_day_hours(day->day);
    day->hours_complete = 0;
    day->weight[0] = 0;
    day->weight_full = 0;
    for (uint32_t hour = 0; hour < day->hours; hour++) {
        const int64_t end_ms = start_ms + (int64_t)(hour + 1) * HOUR_MS;
        const int64_t age_ms = (int64_t)now_ms - end_ms - FRESH_AFTER_MS;
        int64_t permille = 0;
        if (age_ms >= grow_ms)
            permille = 1000;
        else if (age_ms >= 0)
            permille = FRESH_PERMILLE + (1000 - FRESH_PERMILLE) * age_ms / grow_ms;
        if (permille == 1000 && day->hours_complete == hour)
            day->hours_complete++;
        day->weight[hour + 1] = day->weight[hour] + (uint64_t)(hour_busy[hour] * permille);
        day->weight_full += hour_busy[hour] * 1000u;
    }
    day->final = day->hours_complete == day->hours;
}

void box_day_open(const struct box_property *property, box_search type, int32_t day,
                  uint64_t now_ms, struct box_day *day_out)
{
    TIDE_ASSERT(property->rows_per_day <= BOX_SITE_ROWS_MAX);
    TIDE_ASSERT(type < BOX_SEARCHES);
    *day_out = (struct box_day){.day = day};
    day_out->seed = hash_of(property->seed, 1000 + (uint64_t)type);
    day_out->feed = type == BOX_SEARCH_DISCOVER || type == BOX_SEARCH_GOOGLE_NEWS;
    open_hours(day_out, now_ms);

    const uint64_t full = (uint64_t)property->rows_per_day * type_percent[type] / 100;
    const uint64_t hidden = full == 0 ? 0 : full / 4 + 1;
    const uint64_t now = day_out->weight[day_out->hours];
    day_out->rows_full = (uint32_t)full;
    day_out->rows = (uint32_t)(full * now / day_out->weight_full);
    day_out->hidden = (uint32_t)(hidden * now / day_out->weight_full);

    const uint64_t luck = hash_of(day_out->seed ^ 0x64617973, (uint64_t)day);
    const uint64_t permille = (850 + luck % 300) * weekday_permille[(day % 7 + 7) % 7] / 1000;
    day_out->top = (uint32_t)((full / 4 + 1) * permille / 1000 + 1);
    for (uint32_t block = 0; block < BOX_RANK_BLOCKS; block++) {
        const uint64_t hash = hash_of(luck, block);
        day_out->blocks[block].step = steps[hash % 8];
        day_out->blocks[block].shift = (uint32_t)(hash >> 32);
    }
}

/* Which combination stands at a rank today.  Combinations change places inside
 * their block only, so that what is popular stays popular. */
static inline uint32_t combination_at(const struct box_day *day, uint32_t rank)
{
    const uint32_t block = (31 - (uint32_t)__builtin_clz(3 * (rank / 16) + 1)) / 2;
    const uint32_t low = block_lowest(block);
    const uint32_t high = block_lowest(block + 1);
    const uint32_t size = (high < day->rows_full ? high : day->rows_full) - low;
    const uint64_t place =
        (uint64_t)(rank - low) * day->blocks[block].step + day->blocks[block].shift;
    return low + (uint32_t)(place % size);
}
static_assert(16ull * ((1ull << (2 * BOX_RANK_BLOCKS)) - 1) / 3 > BOX_SITE_ROWS_MAX,
              "the blocks cover every rank");

/* BDAT2: device and country follow from the query and the place in its eight rows
 * without repeating, since the three groups of countries share none. */
static inline void name_row(const struct box_day *day, uint32_t combination, struct box_row *row)
{
    static const uint8_t group_first[3] = {0, 8, 24};
    static const uint8_t group_size[3] = {8, 16, 24};
    static const uint8_t feed_appearances[3] = {1, 5, 7};
    const uint32_t query = combination / ROWS_PER_QUERY;
    const uint32_t place = combination % ROWS_PER_QUERY;
    const uint64_t of_query = hash_of(day->seed, query);
    const uint32_t group = place / 3;
    const uint64_t of_page = mix(of_query + place / 4);
    const uint64_t skewed = ((of_page >> 32) * (of_page & 0xffffffffu)) >> 32;
    const uint32_t pages = day->rows_full / 40 + 1;

    row->query = query;
    row->page = (uint32_t)((skewed * pages) >> 32);
    row->device = (uint8_t)((place + of_query) % 3);
    row->country =
        (uint8_t)(group_first[group] + ((of_query >> (16 + 8 * group)) & 255) % group_size[group]);
    row->hash = mix(of_query ^ (place * 0x9e3779b97f4a7c15u));
    row->appearance = 0;
    if ((row->hash & 3) == 0)
        row->appearance = day->feed ? feed_appearances[(row->hash >> 2) % 3]
                                    : (uint8_t)(1 + (row->hash >> 2) % 6);
}

/* From the final numbers to those of now: clicks and other impressions shrink
 * apart from each other, so that clicks never exceed impressions (BDAT1). */
static inline void count_row(const struct box_day *day, uint64_t clicks, uint64_t others,
                             uint64_t of_day, struct box_row *row)
{
    const uint64_t now = day->weight[day->hours];
    if (now < day->weight_full) {
        clicks = clicks * now / day->weight_full;
        others = others * now / day->weight_full;
    }
    row->clicks = clicks;
    row->impressions = clicks + others > 0 ? clicks + others : 1;
    const uint64_t base = 1 + (row->hash >> 20) % 30;
    row->positions = row->impressions * base + (of_day >> 40) % row->impressions;
}

void box_day_row(const struct box_day *day, uint32_t rank, struct box_row *row_out)
{
    TIDE_ASSERT(rank < day->rows);
    name_row(day, combination_at(day, rank), row_out);
    const uint64_t of_day = mix(row_out->hash + (uint64_t)day->day);
    const uint64_t clicks = day->top / (rank + 1);
    const uint64_t others = clicks * (2 + of_day % 40) + 1 + (of_day >> 8) % 12;
    count_row(day, clicks, others, of_day, row_out);
}

void box_day_hidden(const struct box_day *day, uint32_t nth, struct box_row *row_out)
{
    TIDE_ASSERT(nth < day->hidden);
    name_row(day, day->rows_full + nth, row_out);
    row_out->query = BOX_NO_QUERY;
    const uint64_t of_day = mix(row_out->hash + (uint64_t)day->day);
    uint64_t clicks = (of_day & 3) == 0 ? 1 + (of_day >> 2) % 3 : 0;
    if (nth == 0 && clicks == 0)
        clicks = 1; /* BCON3: something is hidden on every day */
    count_row(day, clicks, 1 + (of_day >> 8) % 9, of_day, row_out);
}

bool box_row_hour(const struct box_day *day, const struct box_row *row, uint32_t hour,
                  struct box_row *part_out)
{
    TIDE_ASSERT(hour < day->hours);
    const uint64_t all = day->weight[day->hours];
    const uint64_t from = day->weight[hour];
    const uint64_t to = day->weight[hour + 1];
    if (from == to)
        return false;
    /* The differences of a rounded line sum to its end (BDAT3); where it is
     * rounded differs by row, or all single clicks would fall into one hour. */
    const uint64_t luck = (row->hash >> 8) % all;
    const uint64_t others = row->impressions - row->clicks;
    const uint64_t clicks = (row->clicks * to + luck) / all - (row->clicks * from + luck) / all;
    const uint64_t rest = (others * to + luck) / all - (others * from + luck) / all;
    if (clicks + rest == 0)
        return false;
    const uint64_t base = row->positions / row->impressions;
    const uint64_t extra = row->positions % row->impressions;
    const uint64_t impressions_before =
        (row->clicks * from + luck) / all + (others * from + luck) / all;
    /* The first `extra` impressions of the day were one place further down. */
    const uint64_t after = impressions_before + clicks + rest;
    const uint64_t high = after < extra ? after : extra;
    const uint64_t low = impressions_before < extra ? impressions_before : extra;
    *part_out = *row;
    part_out->clicks = clicks;
    part_out->impressions = clicks + rest;
    part_out->positions = (clicks + rest) * base + (high - low);
    return true;
}

/* ---- names ---- */

static const char *const heads[32] = {
    "best",  "cheap",         "buy",      "how to clean", "new",     "used",        "small",
    "large", "organic",       "handmade", "vintage",      "local",   "waterproof",  "red",
    "blue",  "how to choose", "",         "what is a",    "compare", "rent",        "light",
    "heavy", "folding",       "electric", "wooden",       "repair",  "\"genuine\"", "men's",
    "kids",  "outdoor",       "günstige", "modern",
};
static const char *const nouns[64] = {
    "kayak",    "tent",   "lantern", "backpack", "compass",  "stove",      "anchor",  "rope",
    "paddle",   "sail",   "buoy",    "harbour",  "pier",     "lighthouse", "chart",   "barometer",
    "jacket",   "boots",  "gloves",  "hat",      "scarf",    "blanket",    "hammock", "chair",
    "table",    "lamp",   "kettle",  "café",     "teapot",   "mug",        "spoon",   "knife",
    "bicycle",  "pump",   "helmet",  "saddle",   "wheel",    "chain",      "lock",    "bell",
    "guitar",   "piano",  "violin",  "drum",     "flute",    "camera",     "tripod",  "telescope",
    "notebook", "pencil", "inkwell", "stamp",    "envelope", "atlas",      "globe",   "puzzle",
    "garden",   "spade",  "seeds",   "trellis",  "beehive",  "windmill",   "sundial", "東京",
};
static const char *const tails[32] = {
    "",           "near me",    "2026",          "review",   "reviews",     "price",
    "sale",       "guide",      "for beginners", "set",      "parts",       "online",
    "shop",       "size chart", "free shipping", "manual",   "under 50",    "under 100",
    "vs",         "ideas",      "pdf",           "warranty", "second hand", "in bulk",
    "with stand", "for two",    "köln",          "delivery", "discount",    "test",
    "diy",        "storage",
};
static const char *const sections[8] = {"shop", "guide",  "blog",   "news",
                                        "help", "offers", "brands", "archive"};
/* Three groups of 8, 16 and 24 that share none: see name_row(). */
static const char *const countries[BOX_COUNTRIES] = {
    "usa", "gbr", "deu", "fra", "ind", "can", "aus", "jpn", "esp", "ita", "nld", "swe",
    "pol", "cze", "aut", "che", "bra", "mex", "kor", "idn", "dnk", "nor", "fin", "bel",
    "prt", "irl", "nzl", "zaf", "sgp", "mys", "tha", "vnm", "phl", "tur", "grc", "hun",
    "rou", "bgr", "svk", "svn", "hrv", "est", "lva", "ltu", "chl", "arg", "col", "per",
};
static const char *const devices[BOX_DEVICES] = {"DESKTOP", "MOBILE", "TABLET"};
static const char *const appearances[BOX_APPEARANCES] = {
    "",      "AMP_BLUE_LINK", "PRODUCT_SNIPPETS", "REVIEW_SNIPPET", "TRANSLATED_RESULT",
    "VIDEO", "FORUMS",        "NEWS_SHOWCASE",
};
static_assert(BOX_QUERIES_MAX < 1 << 16, "every query has words of its own");

static size_t put(char *to, size_t at, const char *text)
{
    const size_t bytes = strlen(text);
    memcpy(to + at, text, bytes + 1);
    return at + bytes;
}

/* Multiplying by an odd number modulo 65,536 is a permutation: every query has
 * its own three words, and neighbours do not look alike. */
size_t box_query_text(const struct box_property *property, uint32_t query, char *text_out)
{
    TIDE_ASSERT(query < BOX_QUERIES_MAX + 1);
    const uint32_t words = (query * 40503u + (uint32_t)property->seed) & 0xffff;
    const char *head = heads[words & 31];
    const char *tail = tails[words >> 11];
    size_t at = 0;
    if (head[0] != '\0')
        at = put(text_out, put(text_out, 0, head), " ");
    at = put(text_out, at, nouns[words >> 5 & 63]);
    if (tail[0] != '\0')
        at = put(text_out, put(text_out, at, " "), tail);
    return at;
}

static size_t put_number(char *to, size_t at, uint32_t number)
{
    char reversed[10];
    size_t count = 0;
    do {
        reversed[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    while (count > 0)
        to[at++] = reversed[--count];
    to[at] = '\0';
    return at;
}

size_t box_page_text(const struct box_property *property, uint32_t page, char *text_out)
{
    static const char domain[] = "sc-domain:";
    const size_t skip = sizeof domain - 1;
    size_t at = 0;
    tide_text name = property->name;
    if (name.bytes > skip && memcmp(name.data, domain, skip) == 0) {
        name = (tide_text){name.data + skip, name.bytes - skip};
        at = put(text_out, 0, page % 5 == 4 ? "https://blog." : "https://www.");
        memcpy(text_out + at, name.data, name.bytes);
        at = put(text_out, at + name.bytes, "/");
    } else {
        memcpy(text_out, name.data, name.bytes);
        at = name.bytes;
        text_out[at] = '\0';
    }
    if (page == 0)
        return at;
    const uint64_t hash = hash_of(property->seed, 1000000 + (uint64_t)page);
    at = put(text_out, put(text_out, at, sections[hash & 7]), "/");
    /* Only nouns in plain ASCII: those at 27 and 63 are not. */
    at = put(text_out, put(text_out, at, nouns[(hash >> 8) % 27]), "-");
    at = put(text_out, put(text_out, at, nouns[28 + (hash >> 16) % 35]), "-");
    return put_number(text_out, at, page);
}

const char *box_country_text(uint8_t country)
{
    TIDE_ASSERT(country < BOX_COUNTRIES);
    return countries[country];
}

const char *box_device_text(uint8_t device)
{
    TIDE_ASSERT(device < BOX_DEVICES);
    return devices[device];
}

const char *box_appearance_text(uint8_t appearance)
{
    TIDE_ASSERT(appearance > 0 && appearance < BOX_APPEARANCES);
    return appearances[appearance];
}
