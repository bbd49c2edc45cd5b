/* clocktext.c - times, durations and sizes as text: CLK1 and CLK2 of clocktext.h. */
#include "fuzz.h"
#include "base/clocktext.h"

static void check_time(tide_text text)
{
    uint64_t first = 17, again = 0;
    char printed[TIDE_TIME_TEXT_BYTES];
    if (!tide_time_parse(text, &first)) {
        TIDE_ASSERT(first == 17);
        return;
    }
    tide_time_format(first, printed);
    if (first == 0)
        return; /* "-": never */
    TIDE_ASSERT(tide_time_parse(tide_text_of(printed), &again));
    TIDE_ASSERT(again == first);
}

static void check_duration(tide_text text)
{
    uint64_t first = 17, again = 0;
    char printed[TIDE_DURATION_TEXT_BYTES];
    if (!tide_duration_parse(text, &first)) {
        TIDE_ASSERT(first == 17);
        return;
    }
    tide_duration_format(first, printed);
    TIDE_ASSERT(tide_duration_parse(tide_text_of(printed), &again));
    TIDE_ASSERT(again == first);
    tide_duration_human(first, printed);
}

static void check_size(tide_text text)
{
    uint64_t first = 17, again = 0;
    char printed[TIDE_SIZE_TEXT_BYTES];
    if (!tide_size_parse(text, &first)) {
        TIDE_ASSERT(first == 17);
        return;
    }
    tide_size_format(first, printed);
    TIDE_ASSERT(tide_size_parse(tide_text_of(printed), &again));
    TIDE_ASSERT(again == first);
    tide_size_human(first, printed);
}

/* Any number can be printed, whether or not it can be written. */
static void check_number(uint64_t number)
{
    char text[TIDE_TIME_TEXT_BYTES];
    uint64_t again = 0;
    tide_time_format(number, text);
    TIDE_ASSERT(strlen(text) > 0);
    tide_duration_format(number, text);
    TIDE_ASSERT(tide_duration_parse(tide_text_of(text), &again));
    TIDE_ASSERT(again == number);
    tide_duration_human(number, text);
    tide_size_format(number, text);
    TIDE_ASSERT(tide_size_parse(tide_text_of(text), &again));
    TIDE_ASSERT(again == number);
    tide_size_human(number, text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    tide_text text = {(const char *)data, bytes};
    uint64_t number = 0;
    int64_t whole = 0;
    check_time(text);
    check_duration(text);
    check_size(text);
    (void)tide_text_to_u64(text, &number);
    (void)tide_text_to_i64(text, &whole);
    (void)tide_text_distance(text, TIDE_TEXT("workers.count"));
    struct fuzz_input input = {data, bytes};
    check_number(fuzz_number(&input, 8));
    return 0;
}
