#include "cloudbox/mailbox/mime_tree.h"
#include "base/check.h"

#include <gmime/gmime.h>

/* ---- header lines ---- */

/* The line at the start, with its end. */
static size_t line_bytes(tide_text text)
{
    const char *end = memchr(text.data, '\n', text.bytes);
    return end == NULL ? text.bytes : (size_t)(end - text.data) + 1;
}

static bool is_empty_line(tide_text text)
{
    return text.data[0] == '\n' ||
           (text.bytes >= 2 && text.data[0] == '\r' && text.data[1] == '\n');
}

void box_head_split(tide_text text, tide_text *head_out, tide_text *body_out)
{
    tide_text rest = text;
    while (rest.bytes > 0 && !is_empty_line(rest)) {
        size_t bytes = line_bytes(rest);
        rest.data += bytes;
        rest.bytes -= bytes;
    }
    *head_out = (tide_text){text.data, text.bytes - rest.bytes};
    size_t skip = rest.bytes == 0 ? 0 : rest.data[0] == '\n' ? 1 : 2;
    *body_out = (tide_text){rest.data + skip, rest.bytes - skip};
}

static void take(tide_text *rest, size_t bytes)
{
    rest->data += bytes;
    rest->bytes -= bytes;
}

/* The name ends at the colon; spaces before it are accepted, others are not. */
static size_t name_bytes(tide_text line, size_t *colon_out)
{
    const char *colon = memchr(line.data, ':', line.bytes);
    if (colon == NULL)
        return 0;
    size_t bytes = (size_t)(colon - line.data);
    *colon_out = bytes;
    while (bytes > 0 && (line.data[bytes - 1] == ' ' || line.data[bytes - 1] == '\t'))
        bytes--;
    for (size_t i = 0; i < bytes; i++) {
        if (line.data[i] <= ' ' || line.data[i] == 0x7f)
            return 0;
    }
    return bytes;
}

bool box_head_next(tide_text *rest, tide_text *name_out, tide_text *raw_value_out)
{
    while (rest->bytes > 0) {
        tide_text line = {rest->data, line_bytes(*rest)};
        take(rest, line.bytes);
        size_t colon, bytes = name_bytes(line, &colon);
        if (bytes == 0)
            continue;
        const char *value = line.data + colon + 1;
        while (rest->bytes > 0 && (rest->data[0] == ' ' || rest->data[0] == '\t'))
            take(rest, line_bytes(*rest));
        *name_out = (tide_text){line.data, bytes};
        *raw_value_out = (tide_text){value, (size_t)(rest->data - value)};
        return true;
    }
    return false;
}

/* Unfolding takes out the line ends and nothing else, as Gmail does it. */
tide_text box_value_plain(tide_text raw_value, tide_arena *arena)
{
    if (raw_value.bytes > BOX_VALUE_BYTES_MAX)
        raw_value.bytes = BOX_VALUE_BYTES_MAX;
    char *text = tide_arena_take(arena, raw_value.bytes + 1);
    TIDE_ASSERT(text != NULL);
    size_t bytes = 0;
    for (size_t i = 0; i < raw_value.bytes; i++) {
        char c = raw_value.data[i];
        if (c == '\r' || c == '\n' || (bytes == 0 && (c == ' ' || c == '\t')))
            continue;
        text[bytes++] = c == '\0' ? ' ' : c;
    }
    while (bytes > 0 && (text[bytes - 1] == ' ' || text[bytes - 1] == '\t'))
        bytes--;
    text[bytes] = '\0';
    return (tide_text){text, bytes};
}

tide_text box_value_decoded(tide_text raw_value, tide_arena *arena)
{
    tide_text plain = box_value_plain(raw_value, arena);
    bool ascii = true;
    for (size_t i = 0; i < plain.bytes; i++)
        ascii = ascii && (unsigned char)plain.data[i] < 0x80;
    if (ascii && memmem(plain.data, plain.bytes, "=?", 2) == NULL)
        return plain;
    if (!ascii && box_utf8_valid(plain) && memmem(plain.data, plain.bytes, "=?", 2) == NULL)
        return plain;
    char *decoded = g_mime_utils_header_decode_text(NULL, plain.data);
    tide_text text = tide_text_of(decoded);
    if (text.data != NULL && box_utf8_valid(text)) {
        text = box_arena_text(arena, text.data, text.bytes);
    } else {
        tide_auto_buf repaired = tide_buf_heap(8 * (size_t)BOX_VALUE_BYTES_MAX);
        box_add_utf8(&repaired, "", text.data != NULL ? text : plain);
        text = box_arena_text(arena, tide_buf_cstr(&repaired), repaired.bytes);
    }
    g_free(decoded);
    return text;
}

/* ---- dates ---- */

static void skip_space(tide_text *text)
{
    while (text->bytes > 0) {
        if (text->data[0] == '(') { /* a comment */
            const char *end = memchr(text->data, ')', text->bytes);
            take(text, end == NULL ? text->bytes : (size_t)(end - text->data) + 1);
        } else if (strchr(" \t\r\n,", text->data[0]) != NULL && text->data[0] != '\0') {
            take(text, 1);
        } else {
            return;
        }
    }
}

static bool read_number(tide_text *text, uint64_t *number_out, size_t *digits_out)
{
    uint64_t number = 0;
    size_t digits = 0;
    while (digits < text->bytes && digits < 9 && text->data[digits] >= '0' &&
           text->data[digits] <= '9')
        number = number * 10 + (uint64_t)(text->data[digits++] - '0');
    take(text, digits);
    *number_out = number;
    *digits_out = digits;
    return digits > 0;
}

static bool read_month(tide_text *text, uint64_t *month_out)
{
    static const char names[] = "janfebmaraprmayjunjulaugsepoctnovdec";
    if (text->bytes < 3)
        return false;
    for (uint64_t i = 0; i < 12; i++) {
        if (strncasecmp(text->data, names + 3 * i, 3) == 0) {
            *month_out = i + 1;
            while (text->bytes > 0 && ((text->data[0] | 32) >= 'a') &&
                   ((text->data[0] | 32) <= 'z'))
                take(text, 1);
            return true;
        }
    }
    return false;
}

/* Minutes east of Greenwich. */
static int64_t read_zone(tide_text text)
{
    static const struct {
        char name[4];
        int hours;
    } zones[] = {{"EST", -5}, {"EDT", -4}, {"CST", -6}, {"CDT", -5},
                 {"MST", -7}, {"MDT", -6}, {"PST", -8}, {"PDT", -7}};
    if (text.bytes >= 5 && (text.data[0] == '+' || text.data[0] == '-')) {
        tide_text digits = {text.data + 1, 4};
        uint64_t number;
        size_t count;
        if (!read_number(&digits, &number, &count) || count != 4)
            return 0;
        int64_t minutes = (int64_t)(number / 100 * 60 + number % 100);
        return text.data[0] == '-' ? -minutes : minutes;
    }
    for (size_t i = 0; text.bytes >= 3 && i < sizeof zones / sizeof zones[0]; i++) {
        if (strncasecmp(text.data, zones[i].name, 3) == 0)
            return zones[i].hours * 60;
    }
    return 0;
}

/* Days from 1 January 1970 to the first of that month, in the Gregorian calendar. */
static int64_t days_before(uint64_t year, uint64_t month)
{
    static const uint16_t days[12] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
    uint64_t past = year - 1;
    int64_t leap = (int64_t)(past / 4 - past / 100 + past / 400);
    bool leap_year = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return (int64_t)past * 365 + leap + days[month - 1] + (leap_year && month > 2 ? 1 : 0) - 719162;
}

/* "Thu, 9 Oct 2025 08:20:20 +0200", and what old programs made of it. */
static bool read_date(tide_text text, uint64_t *date_ms_out)
{
    uint64_t day, month, year, clock[3] = {0, 0, 0};
    size_t digits;
    skip_space(&text);
    while (text.bytes > 0 && ((text.data[0] | 32) >= 'a') && ((text.data[0] | 32) <= 'z'))
        take(&text, 1); /* the weekday says nothing new */
    skip_space(&text);
    if (!read_number(&text, &day, &digits))
        return false;
    while (text.bytes > 0 && (text.data[0] == '-' || text.data[0] == ' '))
        take(&text, 1);
    if (!read_month(&text, &month))
        return false;
    while (text.bytes > 0 && (text.data[0] == '-' || text.data[0] == ' '))
        take(&text, 1);
    skip_space(&text);
    if (!read_number(&text, &year, &digits))
        return false;
    if (digits <= 3)
        year += year < 50 ? 2000 : 1900;
    for (size_t i = 0; i < 3; i++) {
        skip_space(&text);
        if (!read_number(&text, &clock[i], &digits))
            break;
        if (text.bytes == 0 || text.data[0] != ':')
            break;
        take(&text, 1);
    }
    skip_space(&text);
    if (day < 1 || day > 31 || year < 1970 || year > 9999 || clock[0] > 24 || clock[1] > 60 ||
        clock[2] > 61)
        return false;
    int64_t seconds = (days_before(year, month) + (int64_t)day - 1) * 86400;
    seconds += (int64_t)(clock[0] * 3600 + clock[1] * 60 + clock[2]) - read_zone(text) * 60;
    if (seconds < 0)
        return false;
    *date_ms_out = (uint64_t)seconds * 1000;
    return true;
}

/* ---- what searching and threading look at ---- */

static tide_text joined(tide_arena *arena, tide_text a, const char *between, tide_text b)
{
    if (a.bytes == 0)
        return b;
    char *text = tide_arena_take(arena, a.bytes + b.bytes + 3);
    TIDE_ASSERT(text != NULL);
    size_t gap = strlen(between);
    memcpy(text, a.data, a.bytes);
    memcpy(text + a.bytes, between, gap);
    if (b.bytes > 0)
        memcpy(text + a.bytes + gap, b.data, b.bytes);
    return (tide_text){text, a.bytes + gap + b.bytes};
}

static tide_text bare_id(tide_text id)
{
    const char *start = memchr(id.data, '<', id.bytes);
    if (start == NULL)
        return id;
    start++;
    size_t left = id.bytes - (size_t)(start - id.data);
    const char *end = memchr(start, '>', left);
    return (tide_text){start, end == NULL ? left : (size_t)(end - start)};
}

/* A field that may stand several times is joined; there is an end to it. */
static void add_addresses(tide_text *field, tide_text raw, tide_arena *arena)
{
    if (field->bytes < BOX_VALUE_BYTES_MAX)
        *field = joined(arena, *field, ", ", box_value_decoded(raw, arena));
}

static void add_ids(tide_text *field, tide_text raw, tide_arena *arena)
{
    if (field->bytes < BOX_VALUE_BYTES_MAX)
        *field = joined(arena, *field, " ", box_value_plain(raw, arena));
}

void box_mime_headers(tide_text raw, tide_arena *arena, struct box_view *view_out)
{
    struct box_view view;
    memset(&view, 0, sizeof view);
    tide_text head, body, name, value, reply = TIDE_TEXT_NONE;
    if (raw.data == NULL)
        raw.data = "";
    box_head_split(raw, &head, &body);
    size_t joins = 0;
    while (box_head_next(&head, &name, &value) && joins < BOX_PARTS_MAX) {
        const struct {
            const char *name;
            tide_text *field;
        } once[] = {{"From", &view.from},
                    {"Subject", &view.subject},
                    {"List-Id", &view.list_id},
                    {"Delivered-To", &view.delivered_to}},
          many[] = {{"To", &view.to}, {"Cc", &view.cc}, {"Bcc", &view.bcc}};
        for (size_t i = 0; i < sizeof once / sizeof once[0]; i++) {
            if (once[i].field->data == NULL && box_is(name, once[i].name))
                *once[i].field = box_value_decoded(value, arena);
        }
        for (size_t i = 0; i < sizeof many / sizeof many[0]; i++) {
            if (box_is(name, many[i].name)) {
                add_addresses(many[i].field, value, arena);
                joins++;
            }
        }
        if (view.message_id.data == NULL && box_is(name, "Message-ID")) {
            view.message_id = bare_id(box_value_plain(value, arena));
        } else if (box_is(name, "References")) {
            add_ids(&view.references, value, arena);
            joins++;
        } else if (box_is(name, "In-Reply-To")) {
            add_ids(&reply, value, arena);
            joins++;
        } else if (!view.has_date && box_is(name, "Date")) {
            view.has_date = read_date(value, &view.date_ms);
        }
    }
    if (reply.bytes > 0)
        view.references = joined(arena, view.references, " ", reply);
    *view_out = view;
}
