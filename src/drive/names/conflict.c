#include "drive/names/conflict.h"

#include "base/calendar.h"
#include "base/encode.h"
#include "base/json.h"
#include "drive/names/key.h"

#include <inttypes.h>
#include <stdio.h>
#include <strings.h>

enum { ENDING_BYTES_MAX = 32, SUFFIX_BYTES = 64, DAY_MS = 86400000 };
static const char mark[] = ".conflict-";

/* ".gz", ".tar.gz", or nothing: a dot at the start begins a hidden file, not an ending. */
static tide_text ending_of(tide_text name)
{
    size_t dot = name.bytes;
    for (size_t i = name.bytes; i > 1; i--)
        if (name.data[i - 1] == '.') {
            dot = i - 1;
            break;
        }
    if (name.bytes - dot > ENDING_BYTES_MAX)
        dot = name.bytes;
    if (dot > 4 && dot < name.bytes && strncasecmp(name.data + dot - 4, ".tar", 4) == 0)
        dot -= 4;
    return (tide_text){name.data + dot, name.bytes - dot};
}

static size_t digits_at(tide_text text, size_t at)
{
    size_t count = 0;
    while (at + count < text.bytes && text.data[at + count] >= '0' && text.data[at + count] <= '9')
        count++;
    return count;
}

/* Whether "-YYYYMMDD-HHMMSS", maybe with "-N", is from `at` to the end. */
static bool is_time(tide_text stem, size_t at)
{
    if (at + 16 > stem.bytes || stem.data[at] != '-' || digits_at(stem, at + 1) != 8 ||
        stem.data[at + 9] != '-' || digits_at(stem, at + 10) != 6)
        return false;
    const size_t rest = at + 16;
    return rest == stem.bytes || (stem.data[rest] == '-' && digits_at(stem, rest + 1) > 0 &&
                                  rest + 1 + digits_at(stem, rest + 1) == stem.bytes);
}

/* Where ".conflict-HOST-..." begins; the length of the stem: nowhere. */
static size_t suffix_at(tide_text stem)
{
    const size_t mark_bytes = sizeof mark - 1;
    for (size_t i = 0; i + mark_bytes <= stem.bytes; i++) {
        if (memcmp(stem.data + i, mark, mark_bytes) != 0)
            continue;
        for (size_t host = 1; host <= TIDE_DRIVE_HOST_BYTES_MAX; host++)
            if (is_time(stem, i + mark_bytes + host))
                return i;
    }
    return stem.bytes;
}

bool tide_drive_is_conflict_name(tide_text name)
{
    const tide_text ending = ending_of(name);
    const tide_text stem = {name.data, name.bytes - ending.bytes};
    /* Without an ending the suffix itself looks like one. */
    return suffix_at(stem) < stem.bytes || suffix_at(name) < name.bytes;
}

static void suffix_print(const struct tide_drive_stamp *stamp, uint32_t ordinal,
                         char out[SUFFIX_BYTES])
{
    char host[TIDE_DRIVE_HOST_BYTES_MAX + 1];
    size_t used = 0;
    for (size_t i = 0; i < stamp->host.bytes && used < TIDE_DRIVE_HOST_BYTES_MAX; i++)
        if (tide_is_plain(stamp->host.data[i], "-"))
            host[used++] = stamp->host.data[i];
    host[used] = '\0';
    const struct tide_date date = tide_date_of((int64_t)(stamp->unix_ms / DAY_MS));
    const uint64_t second = stamp->unix_ms % DAY_MS / 1000;
    char again[16] = "";
    if (ordinal > 1)
        (void)snprintf(again, sizeof again, "-%u", ordinal);
    (void)snprintf(out, SUFFIX_BYTES, "%s%s-%04d%02u%02u-%02u%02u%02u%s", mark,
                   used == 0 ? "here" : host, (int)(date.year % 10000), date.month, date.day,
                   (unsigned)(second / 3600), (unsigned)(second / 60 % 60), (unsigned)(second % 60),
                   again);
}

void tide_drive_conflict_name(tide_text name, const struct tide_drive_stamp *stamp,
                              uint32_t ordinal, char out[TIDE_DRIVE_NAME_BYTES_MAX + 1])
{
    const size_t old = suffix_at(name); /* a copy without an ending */
    tide_text ending = {name.data + name.bytes, 0};
    tide_text stem = {name.data, old};
    if (old == name.bytes) {
        ending = ending_of(name);
        stem.bytes = name.bytes - ending.bytes;
        stem.bytes = suffix_at(stem);
    }
    char suffix[SUFFIX_BYTES];
    suffix_print(stamp, ordinal, suffix);
    /* A name has never more UTF-16 units than bytes: one bound serves both. */
    stem = tide_utf8_cut(stem, TIDE_DRIVE_NAME_BYTES_MAX - strlen(suffix) - ending.bytes);
    (void)snprintf(out, TIDE_DRIVE_NAME_BYTES_MAX + 1, "%.*s%s%.*s", (int)stem.bytes, stem.data,
                   suffix, (int)ending.bytes, ending.data);
}
