#include "cli/run/live.h"

#include "base/check.h"
#include "base/clocktext.h"
#include "base/json.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { FIELDS_MAX = 16, FIELD_BYTES = 320, BAR_MIN = 10, BAR_MAX = 30, METER_MIN_MS = 900 };

/* ---- numbers for eyes ---- */

/* "60,000"; from ten million on "12.3 M", so that the width of a column is limited. */
static void count_text(uint64_t number, char out[32])
{
    static const char units[] = {'M', 'G', 'T', 'P', 'E'};
    char digits[32];
    if (number >= 10000000) {
        double shown = (double)number / 1e6;
        size_t unit = 0;
        for (; shown >= 999.95 && unit + 1 < sizeof units; unit++)
            shown /= 1000;
        (void)snprintf(out, 32, "%.1f %c", shown, units[unit]);
        return;
    }
    const size_t bytes = (size_t)snprintf(digits, sizeof digits, "%" PRIu64, number);
    size_t used = 0;
    for (size_t i = 0; i < bytes; i++) {
        if (i > 0 && (bytes - i) % 3 == 0)
            out[used++] = ',';
        out[used++] = digits[i];
    }
    out[used] = '\0';
}

static void speed_text(double bytes_per_s, char out[32])
{
    if (bytes_per_s >= 1e5)
        (void)snprintf(out, 32, "%.2f MB/s", bytes_per_s < 1e15 ? bytes_per_s / 1e6 : 1e9);
    else
        (void)snprintf(out, 32, "%.1f kB/s", bytes_per_s / 1e3);
}

static void date_text(uint64_t unix_ms, char out[32])
{
    char full[TIDE_TIME_TEXT_BYTES];
    if (unix_ms == 0) {
        (void)snprintf(out, 32, "none yet");
        return;
    }
    tide_time_format(unix_ms, full);
    (void)snprintf(out, 32, "%.10s", full);
}

static void left_text(uint64_t left_ms, char out[TIDE_DURATION_TEXT_BYTES])
{
    if (left_ms == CLI_UNKNOWN)
        (void)snprintf(out, TIDE_DURATION_TEXT_BYTES, "-");
    else if (left_ms < 1000)
        (void)snprintf(out, TIDE_DURATION_TEXT_BYTES, "0 s");
    else
        tide_duration_human(left_ms / 1000 * 1000, out);
}

/* Whole percents, and 100 only when nothing is missing (LIVE2). */
static unsigned percent_of(uint64_t part, uint64_t whole)
{
    if (part >= whole)
        return 100;
    const unsigned percent = (unsigned)((double)part / (double)whole * 100);
    return percent > 99 ? 99 : percent;
}

/* ---- a line made of fields ---- */

struct field {
    char text[FIELD_BYTES];
    unsigned width;
    int weight; /* the field with the smallest weight is dropped first */
    const char *color;
};

struct line {
    struct field fields[FIELDS_MAX];
    size_t count;
    unsigned indent;
};

unsigned cli_live_width(tide_text text)
{
    unsigned columns = 0;
    for (size_t i = 0; i < text.bytes; i++) {
        if (text.data[i] == '\033') {
            while (i < text.bytes && text.data[i] != 'm')
                i++;
            continue;
        }
        columns += ((unsigned char)text.data[i] & 0xc0) != 0x80 && text.data[i] != '\n';
    }
    return columns;
}

/* Text from outside must not control the terminal: removes control characters and
 * invalid UTF-8. */
static void make_plain(char *text)
{
    for (char *at = text; *at != '\0';) {
        const size_t bytes = tide_utf8_bytes(tide_text_of(at));
        const unsigned char first = (unsigned char)at[0];
        const bool control =
            first < 0x20 || first == 0x7f || (first == 0xc2 && (unsigned char)at[1] < 0xa0);
        if (bytes == 0 || control)
            memset(at, '?', bytes == 0 ? 1 : bytes);
        at += bytes == 0 ? 1 : bytes;
    }
}

__attribute__((format(printf, 4, 5))) static void
field_add(struct line *line, int weight, const char *color, const char *format, ...)
{
    TIDE_ASSERT(line->count < FIELDS_MAX);
    struct field *field = &line->fields[line->count++];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(field->text, sizeof field->text, format, args);
    va_end(args);
    make_plain(field->text);
    field->width = cli_live_width(tide_text_of(field->text));
    field->weight = weight;
    field->color = color;
}

static unsigned line_width(const struct line *line)
{
    unsigned width = line->indent;
    for (size_t i = 0; i < line->count; i++)
        width += line->fields[i].width + (i > 0 ? 2 : 0);
    return width;
}

/* Cuts a text to `width` columns, between characters. */
static void field_cut(struct field *field, unsigned width)
{
    size_t at = 0;
    tide_text rest = tide_text_of(field->text);
    for (unsigned i = 0; i < width && rest.bytes > 0; i++) {
        const size_t bytes = tide_utf8_bytes(rest);
        at += bytes == 0 ? 1 : bytes;
        rest.data += bytes == 0 ? 1 : bytes;
        rest.bytes -= bytes == 0 ? 1 : bytes;
    }
    field->text[at] = '\0';
    field->width = cli_live_width(tide_text_of(field->text));
}

/* Keeps the fields that fit, by weight; cuts the one with the largest weight if necessary (LIVE1). */
static void line_fit(struct line *line, unsigned width)
{
    bool taken[FIELDS_MAX] = {false};
    if (line->indent >= width)
        line->indent = 0;
    unsigned used = line->indent;
    size_t kept = 0;
    for (size_t round = 0; round < line->count; round++) {
        size_t best = line->count;
        for (size_t i = 0; i < line->count; i++)
            if (!taken[i] && line->fields[i].weight >= 0 &&
                (best == line->count || line->fields[i].weight > line->fields[best].weight))
                best = i;
        if (best == line->count)
            break;
        if (round == 0 && used + line->fields[best].width > width)
            field_cut(&line->fields[best], width - used);
        const unsigned more = line->fields[best].width + (round > 0 ? 2 : 0);
        taken[best] = used + more <= width;
        if (taken[best])
            used += more;
        else
            line->fields[best].weight = -1; /* not considered again */
    }
    for (size_t i = 0; i < line->count; i++)
        if (taken[i])
            line->fields[kept++] = line->fields[i];
    line->count = kept;
}

static tide_status line_write(const struct line *line, bool color, tide_buf *out)
{
    tide_status rc = tide_buf_print(out, "%*s", (int)line->indent, "");
    for (size_t i = 0; rc == TIDE_OK && i < line->count; i++) {
        const struct field *field = &line->fields[i];
        const bool colored = color && field->color != NULL;
        rc = tide_buf_print(out, "%s%s%s%s", i > 0 ? "  " : "", colored ? field->color : "",
                            field->text, colored ? "\033[0m" : "");
    }
    return rc == TIDE_OK ? tide_buf_add_text(out, "\n") : rc;
}

/* ---- the block ---- */

#define GREEN  "\033[32m"
#define RED    "\033[31m"
#define YELLOW "\033[33m"

static void done_fields(const struct cli_columns *of, struct line *line,
                        const struct cli_live *live)
{
    char done[32];
    char total[32];
    count_text(live->done, done);
    if (live->total == CLI_UNKNOWN) {
        field_add(line, 10, NULL, "%s %s", done, of->done);
        return;
    }
    count_text(live->total < live->done ? live->done : live->total, total);
    field_add(line, 10, NULL, "%s of %s", done, total);
    field_add(line, 5, NULL, "%u%%", percent_of(live->done, live->total));
}

/* Adds a bar in the remaining columns. */
static void bar_field(struct line *line, const struct cli_live *live, unsigned width)
{
    const unsigned used = line_width(line) + 2 + 2;
    if (live->total == CLI_UNKNOWN || live->total == 0 || used + BAR_MIN > width || line->count < 2)
        return;
    const unsigned room = width - used;
    const unsigned size = room > BAR_MAX ? BAR_MAX : room;
    const unsigned full = percent_of(live->done, live->total) * size / 100;
    char bar[BAR_MAX + 1];
    memset(bar, '.', size);
    memset(bar, '#', full);
    bar[size] = '\0';
    field_add(line, 1, GREEN, "[%s]", bar);
    /* After the name, before the numbers. */
    const struct field moved = line->fields[line->count - 1];
    memmove(&line->fields[2], &line->fields[1], (line->count - 2) * sizeof line->fields[0]);
    line->fields[1] = moved;
}

static void name_field(struct line *line, const struct cli_live *live, unsigned width)
{
    field_add(line, 9, NULL, "%.200s", live->name);
    if (line->fields[0].width > width / 3 && width / 3 > 3) {
        field_cut(&line->fields[0], width / 3 - 2);
        (void)strncat(line->fields[0].text, "..",
                      sizeof line->fields[0].text - strlen(line->fields[0].text) - 1);
        line->fields[0].width += 2;
    }
}

static void rate_fields(const struct cli_columns *of, struct line *line,
                        const struct cli_live *live)
{
    char speed[32];
    if (!live->rate_known) {
        field_add(line, 9, NULL, "- %s", of->rate);
        return;
    }
    field_add(line, 9, NULL, "%.1f %s", live->done_per_s < 1e9 ? live->done_per_s : 1e9, of->rate);
    speed_text(live->bytes_per_s, speed);
    field_add(line, 4, NULL, "%s", speed);
}

static void more_fields(const struct cli_columns *of, struct line *line,
                        const struct cli_live *live)
{
    char date[32];
    char count[32];
    date_text(live->tidemark_ms, date);
    if (of->tidemark)
        field_add(line, 8, NULL, "tidemark %s", date);
    for (size_t i = 0; i < CLI_LIVE_MORE_MAX && of->more[i].name != NULL; i++) {
        count_text(live->more[i], count);
        field_add(line, 6, NULL, "%s %s", of->more[i].name, count);
    }
    if (live->quota_max > 0)
        field_add(line, 7, NULL, "quota %u%%", percent_of(live->quota_used, live->quota_max));
    field_add(line, 3, NULL, "in flight %" PRIu64, live->in_flight);
    field_add(line, 2, NULL, "retried %" PRIu64, live->retried);
    field_add(line, live->bad > 0 ? 8 : 1, live->bad > 0 ? RED : NULL, "bad %" PRIu64, live->bad);
}

static tide_status account_lines(const struct cli_columns *of, const struct cli_live *live,
                                 unsigned width, bool two, bool color, tide_buf *out)
{
    char left[TIDE_DURATION_TEXT_BYTES];
    struct line first = {.count = 0};
    struct line second = {.count = 0, .indent = 2};
    left_text(live->left_ms, left);
    name_field(&first, live, width);
    done_fields(of, &first, live);
    if (!two)
        rate_fields(of, &first, live);
    field_add(&first, 8, NULL, "left %s", left);
    if (live->phase[0] != '\0')
        field_add(&first, 6, NULL, "%s", live->phase);
    if (!two && live->note[0] != '\0')
        field_add(&first, 7, YELLOW, "%s", live->note);
    line_fit(&first, width);
    if (two)
        bar_field(&first, live, width);
    tide_status rc = line_write(&first, color, out);
    if (!two || rc != TIDE_OK)
        return rc;
    rate_fields(of, &second, live);
    more_fields(of, &second, live);
    if (live->note[0] != '\0')
        field_add(&second, 10, YELLOW, "%s", live->note);
    line_fit(&second, width);
    return line_write(&second, color, out);
}

tide_status cli_live_block(const struct cli_columns *of, const struct cli_live *lives, size_t count,
                           unsigned columns, unsigned rows, bool color, tide_buf *out,
                           unsigned *lines_out)
{
    const unsigned wide = columns > CLI_LIVE_COLUMNS_MAX ? CLI_LIVE_COLUMNS_MAX : columns;
    const unsigned width = wide < 2 ? 1 : wide - 1;
    const size_t lines_max = rows < 2 ? 1 : rows - 1;
    const bool two = 2 * count <= lines_max;
    const bool all = two || count <= lines_max;
    const size_t shown = all ? count : lines_max - 1;
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < shown; i++)
        rc = account_lines(of, &lives[i], width, two, color, out);
    if (rc == TIDE_OK && !all) {
        struct line more = {.count = 0};
        field_add(&more, 1, NULL, "... and %zu more accounts", count - shown);
        line_fit(&more, width);
        rc = line_write(&more, color, out);
    }
    if (rc == TIDE_OK)
        *lines_out = (unsigned)(shown * (two ? 2 : 1) + !all);
    return rc;
}

tide_status cli_live_line(const struct cli_columns *of, const struct cli_live *live, tide_buf *out)
{
    char left[TIDE_DURATION_TEXT_BYTES];
    struct line line = {.count = 0};
    left_text(live->left_ms, left);
    field_add(&line, 9, NULL, "%.200s", live->name);
    if (live->phase[0] != '\0')
        field_add(&line, 9, NULL, "%s,", live->phase);
    done_fields(of, &line, live);
    rate_fields(of, &line, live);
    tide_status rc = TIDE_OK;
    struct line rest = {.count = 0};
    more_fields(of, &rest, live);
    field_add(&rest, 8, NULL, "left %s", left);
    if (live->note[0] != '\0')
        field_add(&rest, 10, NULL, "%s", live->note);
    for (size_t i = 0; rc == TIDE_OK && i < line.count; i++)
        rc = tide_buf_print(out, "%s%s", line.fields[i].text, i == 0 ? ": " : "  ");
    for (size_t i = 0; rc == TIDE_OK && i < rest.count; i++)
        rc = tide_buf_print(out, "%s%s", i > 0 ? "  " : "", rest.fields[i].text);
    return rc == TIDE_OK ? tide_buf_add_text(out, "\n") : rc;
}

/* ---- how long ---- */

uint64_t cli_left_ms(uint64_t left, uint64_t units_each, uint64_t units_per_minute, bool rate_known,
                     double done_per_s)
{
    if (left == 0)
        return 0;
    double quota_ms = -1;
    double rate_ms = -1;
    if (units_per_minute > 0 && units_each > 0)
        quota_ms = (double)left * (double)units_each / (double)units_per_minute * 60000;
    if (rate_known && done_per_s > 0)
        rate_ms = (double)left / done_per_s * 1000;
    /* A known rate of 0 means no progress: any time would be a guess. */
    if (rate_known && done_per_s <= 0)
        return CLI_UNKNOWN;
    const double left_ms = quota_ms > rate_ms ? quota_ms : rate_ms;
    return left_ms < 0 || left_ms > 1e15 ? CLI_UNKNOWN : (uint64_t)left_ms;
}

uint64_t cli_total_steady(uint64_t shown, uint64_t counted, uint64_t done, uint64_t slack)
{
    if (counted == CLI_UNKNOWN || shown == CLI_UNKNOWN)
        return counted == CLI_UNKNOWN ? shown : counted;
    const uint64_t apart = counted > shown ? counted - shown : shown - counted;
    return apart > slack || done > shown || counted <= done ? counted : shown;
}

/* ---- how fast it goes in the long run ---- */

void cli_pace_add(struct cli_pace *pace, uint64_t now_ms, uint64_t done)
{
    if (!pace->begun || done < pace->done || now_ms < pace->at_ms) {
        *pace = (struct cli_pace){
            .first_ms = now_ms, .at_ms = now_ms, .moved_ms = now_ms, .done = done, .begun = true};
        return;
    }
    const double ms = (double)(now_ms - pace->at_ms);
    if (ms <= 0)
        return;
    /* At the beginning all of it counts the same: there is nothing older to forget. */
    const double known_ms = (double)(pace->at_ms - pace->first_ms);
    const double over_ms = known_ms < CLI_PACE_MS ? known_ms : CLI_PACE_MS;
    const double now_per_s = (double)(done - pace->done) / ms * 1000;
    pace->per_s = (pace->per_s * over_ms + now_per_s * ms) / (over_ms + ms);
    if (done > pace->done)
        pace->moved_ms = now_ms;
    pace->at_ms = now_ms;
    pace->done = done;
}

bool cli_pace_rate(const struct cli_pace *pace, double *done_per_s_out)
{
    if (!pace->begun || pace->at_ms - pace->first_ms < METER_MIN_MS)
        return false;
    *done_per_s_out = pace->at_ms - pace->moved_ms > CLI_PACE_MS ? 0 : pace->per_s;
    return true;
}

/* ---- rates ---- */

static const struct cli_meter_sample *sample_at(const struct cli_meter *meter, size_t index)
{
    return &meter->samples[(meter->first + index) % CLI_METER_SAMPLES];
}

void cli_meter_add(struct cli_meter *meter, uint64_t now_ms, uint64_t done, uint64_t bytes)
{
    if (meter->count > 0) {
        const struct cli_meter_sample *last = sample_at(meter, meter->count - 1);
        if (done < last->done || bytes < last->bytes || now_ms < last->at_ms)
            meter->count = 0;
    }
    /* One sample older than the window stays, so that the samples cover the whole window. */
    while (meter->count > 1 && (sample_at(meter, 1)->at_ms + CLI_METER_MS <= now_ms ||
                                meter->count == CLI_METER_SAMPLES)) {
        meter->first = (meter->first + 1) % CLI_METER_SAMPLES;
        meter->count--;
    }
    meter->samples[(meter->first + meter->count) % CLI_METER_SAMPLES] =
        (struct cli_meter_sample){now_ms, done, bytes};
    meter->count++;
}

bool cli_meter_rate(const struct cli_meter *meter, double *done_per_s_out, double *bytes_per_s_out)
{
    if (meter->count < 2)
        return false;
    const struct cli_meter_sample *from = sample_at(meter, 0);
    const struct cli_meter_sample *to = sample_at(meter, meter->count - 1);
    if (to->at_ms - from->at_ms < METER_MIN_MS)
        return false;
    const double seconds = (double)(to->at_ms - from->at_ms) / 1000;
    *done_per_s_out = (double)(to->done - from->done) / seconds;
    *bytes_per_s_out = (double)(to->bytes - from->bytes) / seconds;
    return true;
}
