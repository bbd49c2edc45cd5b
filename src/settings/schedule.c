#include "settings/schedule.h"

#include "base/check.h"
#include "base/clocktext.h"

static const char day_names[7][4] = {"mon", "tue", "wed", "thu", "fri", "sat", "sun"};

enum { EVERY_DAY = 0x7f, MINUTES_PER_DAY = 1440 };

/* Takes the part up to `end` (or the whole rest) off the front. */
static tide_text take_part(tide_text *rest, char end)
{
    size_t bytes = 0;
    while (bytes < rest->bytes && rest->data[bytes] != end)
        bytes++;
    tide_text part = {rest->data, bytes};
    size_t used = bytes + (bytes < rest->bytes);
    rest->data += used;
    rest->bytes -= used;
    return part;
}

static tide_text take_word(tide_text *rest)
{
    while (rest->bytes > 0 && rest->data[0] == ' ') {
        rest->data++;
        rest->bytes--;
    }
    return take_part(rest, ' ');
}

static int day_of(tide_text name)
{
    for (int day = 0; day < 7; day++)
        if (tide_text_equal(name, tide_text_of(day_names[day])))
            return day;
    return -1;
}

/* "mon-fri", "sat,sun", "mon,wed-fri"; "sat-mon" goes over the week's end. */
static bool days_parse(tide_text text, uint8_t *days_out)
{
    uint8_t days = 0;
    while (text.bytes > 0) {
        tide_text range = take_part(&text, ',');
        tide_text first_name = take_part(&range, '-');
        int first = day_of(first_name);
        int last = range.bytes > 0 ? day_of(range) : first;
        if (first < 0 || last < 0)
            return false;
        for (int day = first;; day = (day + 1) % 7) {
            days = (uint8_t)(days | 1u << day);
            if (day == last)
                break;
        }
    }
    *days_out = days;
    return days != 0;
}

static bool minute_parse(tide_text text, uint16_t *minute_out)
{
    uint64_t hour = 0, minute = 0;
    if (text.bytes != 5 || text.data[2] != ':' ||
        !tide_text_to_u64((tide_text){text.data, 2}, &hour) ||
        !tide_text_to_u64((tide_text){text.data + 3, 2}, &minute))
        return false;
    if (minute > 59 || hour * 60 + minute > MINUTES_PER_DAY)
        return false;
    *minute_out = (uint16_t)(hour * 60 + minute);
    return true;
}

static bool limit_parse(tide_text word, struct tide_setting_window *window)
{
    tide_text size = word;
    tide_text side = take_part(&size, '=');
    if (side.bytes == word.bytes)
        return tide_size_parse(word, &window->both_bytes_per_s);
    if (tide_text_equal(side, TIDE_TEXT("down")))
        return tide_size_parse(size, &window->down_bytes_per_s);
    if (tide_text_equal(side, TIDE_TEXT("up")))
        return tide_size_parse(size, &window->up_bytes_per_s);
    if (tide_text_equal(side, TIDE_TEXT("both")))
        return tide_size_parse(size, &window->both_bytes_per_s);
    return false;
}

static const char *window_parse(tide_text text, struct tide_setting_window *window)
{
    tide_text word = take_word(&text);
    window->days = EVERY_DAY;
    if (word.bytes > 0 && (word.data[0] < '0' || word.data[0] > '9')) {
        if (!days_parse(word, &window->days))
            return "days are mon tue wed thu fri sat sun, as mon-fri or sat,sun";
        word = take_word(&text);
    }
    tide_text from = take_part(&word, '-');
    if (!minute_parse(from, &window->from_minute) || !minute_parse(word, &window->to_minute) ||
        window->from_minute == MINUTES_PER_DAY)
        return "hours are written 08:00-18:00";
    word = take_word(&text);
    if (tide_text_equal(word, TIDE_TEXT("full")))
        return take_word(&text).bytes == 0 ? NULL : "nothing may follow \"full\"";
    for (unsigned limits = 0; word.bytes > 0 || limits == 0; limits++) {
        if (limits == 3 || !limit_parse(word, window))
            return "a limit is full, a size per second, or down=SIZE up=SIZE both=SIZE";
        word = take_word(&text);
    }
    return NULL;
}

static bool is_blank(tide_text text)
{
    for (size_t i = 0; i < text.bytes; i++)
        if (text.data[i] != ' ')
            return false;
    return true;
}

bool tide_schedule_parse(tide_text text,
                         struct tide_setting_window windows_out[TIDE_SETTING_WINDOWS_MAX],
                         size_t *count_out, const char **reason_out)
{
    TIDE_ASSERT(count_out != NULL && reason_out != NULL);
    struct tide_setting_window windows[TIDE_SETTING_WINDOWS_MAX] = {{0}};
    size_t count = 0;
    while (text.bytes > 0) {
        tide_text part = take_part(&text, ';');
        if (is_blank(part))
            continue;
        if (count == TIDE_SETTING_WINDOWS_MAX) {
            *reason_out = "too many entries";
            return false;
        }
        const char *reason = window_parse(part, &windows[count++]);
        if (reason != NULL) {
            *reason_out = reason;
            return false;
        }
    }
    memcpy(windows_out, windows, sizeof windows);
    *count_out = count;
    return true;
}
