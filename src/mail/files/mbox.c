/* mbox.c - reads mbox files; mbox_write.c writes them. */
#include "mail/files/mbox.h"
#include "base/calendar.h"
#include "base/check.h"

enum {
    WINDOW_BYTES = 256 << 10,
    LOOK_BYTES = TIDE_MBOX_LINE_BYTES_MAX + 128, /* a line, and the start of the next */
};

struct tide_mbox {
    tide_mem *mem;
    tide_mbox_source *source;
    void *source_arg;
    uint64_t bytes_max;
    uint64_t base;    /* of the window in the file */
    size_t at, count; /* in the window */
    bool ended;       /* the window reaches the end of the file */
    bool forward;     /* never look ahead of the window */
    bool began;       /* the first line was seen */
    bool undated;     /* the first From_ line had no date */
    bool blank;       /* the line before this one was blank */
    /* State of the current message. */
    bool in_head;
    bool too_long;
    bool quoted; /* remove one ">" */
    uint64_t length;
    bool has_length;
    uint64_t bytes;
    size_t last_line; /* where its last line starts in raw, or beyond it when it was skipped */
    char line[TIDE_MBOX_LINE_BYTES_MAX + 1];
    tide_buf raw;
    char window[WINDOW_BYTES];
};

/* ---- dates ------------------------------------------------------------------------- */

enum { TOKENS_MAX = 32 };

static int month_of(tide_text token)
{
    static const char names[] = "janfebmaraprmayjunjulaugsepoctnovdec";
    if (token.bytes != 3)
        return 0;
    for (int month = 0; month < 12; month++) {
        bool same = true;
        for (int i = 0; i < 3; i++)
            same = same && (token.data[i] | 0x20) == names[month * 3 + i];
        if (same)
            return month + 1;
    }
    return 0;
}

/* A number of at most `digits_max` digits; -1: not a number. */
static int number_of(tide_text token, size_t digits_max)
{
    int number = 0;
    if (token.bytes == 0 || token.bytes > digits_max)
        return -1;
    for (size_t i = 0; i < token.bytes; i++) {
        if (token.data[i] < '0' || token.data[i] > '9')
            return -1;
        number = number * 10 + (token.data[i] - '0');
    }
    return number;
}

/* "04:42:58" or "04:42" as seconds; -1: not a time. */
static int clock_of(tide_text token)
{
    int parts[3] = {0, 0, 0};
    size_t count = 0;
    size_t begin = 0;
    for (size_t i = 0; i <= token.bytes; i++) {
        if (i < token.bytes && token.data[i] != ':')
            continue;
        if (count == 3)
            return -1;
        parts[count] = number_of((tide_text){token.data + begin, i - begin}, 2);
        if (parts[count++] < 0)
            return -1;
        begin = i + 1;
    }
    if (count < 2 || parts[0] > 23 || parts[1] > 59 || parts[2] > 60)
        return -1;
    return parts[0] * 3600 + parts[1] * 60 + parts[2];
}

/* "+0100" as seconds east; zone names are ambiguous and ignored. */
static bool zone_of(tide_text token, int *seconds_out)
{
    if (token.bytes != 5 || (token.data[0] != '+' && token.data[0] != '-'))
        return false;
    const int number = number_of((tide_text){token.data + 1, 4}, 4);
    if (number < 0 || number / 100 > 14 || number % 100 > 59)
        return false;
    const int seconds = number / 100 * 3600 + number % 100 * 60;
    *seconds_out = token.data[0] == '-' ? -seconds : seconds;
    return true;
}

static size_t split(tide_text line, tide_text tokens[TOKENS_MAX])
{
    size_t count = 0;
    for (size_t i = 0; i < line.bytes && count < TOKENS_MAX;) {
        while (i < line.bytes && (unsigned char)line.data[i] <= ' ')
            i++;
        size_t begin = i;
        while (i < line.bytes && (unsigned char)line.data[i] > ' ')
            i++;
        if (i > begin)
            tokens[count++] = (tide_text){line.data + begin, i - begin};
    }
    return count;
}

/* Reads a date around the month at `at`: "Nov 06 04:42:58 [zone] 2017 [zone]" or
 * "06 Nov 2017 04:42:58 [zone]". */
static bool date_at(const tide_text *tokens, size_t count, size_t at, int64_t *date_ms_out)
{
    const int month = month_of(tokens[at]);
    int day = -1;
    int clock = -1;
    int year = -1;
    int zone = 0;
    if (month == 0)
        return false;
    for (size_t i = at + 1; i < count && i <= at + 5; i++) {
        const int number = number_of(tokens[i], 4);
        if (number >= 0 && tokens[i].bytes == 4 && year < 0)
            year = number;
        else if (number >= 1 && tokens[i].bytes <= 2 && day < 0 && i == at + 1)
            day = number;
        else if (clock < 0 && clock_of(tokens[i]) >= 0)
            clock = clock_of(tokens[i]);
        else if (!zone_of(tokens[i], &zone) && clock >= 0 && year >= 0)
            break;
    }
    if (day < 0 && at > 0)
        day = number_of(tokens[at - 1], 2);
    if (day < 1 || day > 31 || clock < 0 || year < 1900)
        return false;
    *date_ms_out = (tide_days_of((struct tide_date){year, (uint32_t)month, (uint32_t)day}) * 86400 +
                    clock - zone) *
                   1000;
    return true;
}

bool tide_mbox_date(tide_text line, int64_t *date_ms_out)
{
    tide_text tokens[TOKENS_MAX];
    const size_t count = split(line, tokens);
    for (size_t i = count; i > 0; i--) /* the date is at the end */
        if (date_at(tokens, count, i - 1, date_ms_out))
            return true;
    return false;
}

/* ---- the window ---------------------------------------------------------------------- */

static tide_text seen(const tide_mbox *mbox)
{
    return (tide_text){mbox->window + mbox->at, mbox->count - mbox->at};
}

/* Keeps at least LOOK_BYTES in the window, unless the file ends before. */
static tide_status look(tide_mbox *mbox, tide_error *err)
{
    const size_t left = mbox->count - mbox->at;
    if (mbox->ended || left >= LOOK_BYTES)
        return TIDE_OK;
    memmove(mbox->window, mbox->window + mbox->at, left);
    mbox->base += mbox->at;
    mbox->at = 0;
    mbox->count = left;
    size_t got = 0;
    TIDE_TRY(mbox->source(mbox->source_arg, mbox->base + left, mbox->window + left,
                          WINDOW_BYTES - left, &got, err));
    TIDE_ASSERT(got <= WINDOW_BYTES - left);
    mbox->count += got;
    mbox->ended = mbox->count < WINDOW_BYTES;
    return TIDE_OK;
}

uint64_t tide_mbox_at(const tide_mbox *mbox)
{
    return mbox->base + mbox->at;
}

/* ---- lines --------------------------------------------------------------------------- */

static bool is_from(tide_text text)
{
    return text.bytes >= 5 && memcmp(text.data, "From ", 5) == 0;
}

/* "Name:" at the start of a line, or ">From ", which some programs leave after a From_ line. */
static bool is_header(tide_text text)
{
    size_t i = 0;
    while (i < text.bytes && i < 100 && text.data[i] > ' ' && text.data[i] < 0x7f &&
           text.data[i] != ':')
        i++;
    return (i > 0 && i < text.bytes && text.data[i] == ':') ||
           (text.bytes > 6 && memcmp(text.data, ">From ", 6) == 0);
}

/* Whether a message starts at `text`, which is at the start of a line. */
static bool begins(const tide_mbox *mbox, tide_text text, bool blank)
{
    int64_t date_ms = 0;
    if (!is_from(text))
        return false;
    const size_t room =
        text.bytes < TIDE_MBOX_LINE_BYTES_MAX ? text.bytes : (size_t)TIDE_MBOX_LINE_BYTES_MAX;
    const char *end = memchr(text.data, '\n', room);
    if (end == NULL && room < text.bytes)
        return false; /* too long for a From_ line */
    const size_t line_bytes = end == NULL ? room : (size_t)(end - text.data);
    const size_t next = end == NULL ? line_bytes : line_bytes + 1;
    const bool dated = tide_mbox_date((tide_text){text.data + 5, line_bytes - 5}, &date_ms);
    const bool header = is_header((tide_text){text.data + next, text.bytes - next});
    if (blank)
        return dated || (mbox->undated && header);
    return dated && header;
}

static tide_status add(tide_mbox *mbox, const char *bytes, size_t count, tide_error *err)
{
    mbox->bytes += count;
    if (mbox->bytes > mbox->bytes_max)
        mbox->too_long = true;
    if (mbox->too_long) {
        tide_buf_clear(&mbox->raw);
        return TIDE_OK;
    }
    tide_status rc = tide_buf_add(&mbox->raw, bytes, count);
    return rc == TIDE_OK ? rc : tide_error_set(err, rc, "no memory for a message");
}

/* The start of a line: ">>>From " loses one ">".  They are counted, not kept, however many there
 * are. */
static tide_status unquote(tide_mbox *mbox, tide_error *err)
{
    uint64_t count = 0;
    tide_status rc = TIDE_OK;
    for (bool more = true; rc == TIDE_OK && more;) {
        tide_text text = seen(mbox);
        size_t run = 0;
        while (run < text.bytes && text.data[run] == '>')
            run++;
        mbox->at += run;
        count += run;
        more = run > 0 && run == text.bytes && !mbox->ended;
        rc = look(mbox, err);
    }
    if (count == 0)
        return rc;
    if (mbox->quoted && is_from(seen(mbox)))
        count--;
    char marks[256];
    memset(marks, '>', sizeof marks);
    while (rc == TIDE_OK && count > 0) {
        const size_t some = count < sizeof marks ? (size_t)count : sizeof marks;
        rc = add(mbox, marks, some, err);
        count -= some;
    }
    return rc;
}

/* Copies up to the end of the line or the file. */
static tide_status copy_line(tide_mbox *mbox, tide_error *err)
{
    tide_status rc = TIDE_OK;
    mbox->last_line = mbox->raw.bytes;
    if (mbox->quoted)
        rc = unquote(mbox, err);
    for (bool more = true; rc == TIDE_OK && more;) {
        tide_text text = seen(mbox);
        const char *end = text.bytes == 0 ? NULL : memchr(text.data, '\n', text.bytes);
        const size_t count = end == NULL ? text.bytes : (size_t)(end - text.data) + 1;
        rc = add(mbox, text.data, count, err);
        mbox->at += count;
        more = end == NULL && !mbox->ended;
        if (rc == TIDE_OK)
            rc = look(mbox, err);
    }
    return rc;
}

/* ---- lengths --------------------------------------------------------------------------- */

static bool named(tide_text line, const char *lower)
{
    size_t i = 0;
    for (; lower[i] != '\0'; i++)
        if (i >= line.bytes ||
            ((line.data[i] >= 'A' && line.data[i] <= 'Z') ? line.data[i] + 32 : line.data[i]) !=
                lower[i])
            return false;
    return true;
}

/* Reads a header line before it is copied. */
static void note_header(tide_mbox *mbox, tide_text text)
{
    static const char name[] = "content-length:";
    if (named(text, "x-tidemark:")) {
        /* Our own files are quoted; a Content-Length after our note belongs to the message. */
        mbox->in_head = false;
        return;
    }
    if (!named(text, name) || mbox->has_length)
        return;
    size_t i = sizeof name - 1;
    while (i < text.bytes && (text.data[i] == ' ' || text.data[i] == '\t'))
        i++;
    uint64_t number = 0;
    size_t digits = 0;
    for (; i < text.bytes && text.data[i] >= '0' && text.data[i] <= '9' && digits < 15; i++) {
        number = number * 10 + (uint64_t)(text.data[i] - '0');
        digits++;
    }
    mbox->has_length = digits > 0 && (i == text.bytes || (unsigned char)text.data[i] <= ' ');
    mbox->length = number;
}

/* Whether a message starts, or the file ends, where a body of that length ends. */
static tide_status length_holds(tide_mbox *mbox, bool *holds_out, tide_error *err)
{
    char there[LOOK_BYTES + 4];
    size_t count = 0;
    *holds_out = false;
    const uint64_t end = tide_mbox_at(mbox) + mbox->length;
    TIDE_TRY(mbox->source(mbox->source_arg, end, there, sizeof there, &count, err));
    tide_text text = {there, count};
    while (text.bytes > 0 && (text.data[0] == '\n' || text.data[0] == '\r')) {
        text.data++;
        text.bytes--;
    }
    if (text.bytes > 0) {
        *holds_out = begins(mbox, text, true);
        return TIDE_OK;
    }
    /* Only blank lines follow: the end, if the file is that long. */
    char last = 0;
    size_t got = 0;
    if (mbox->length == 0 || count > 0) {
        *holds_out = true;
        return TIDE_OK;
    }
    tide_status rc = mbox->source(mbox->source_arg, end - 1, &last, 1, &got, err);
    *holds_out = rc == TIDE_OK && got == 1;
    return rc;
}

static tide_status copy_length(tide_mbox *mbox, tide_error *err)
{
    tide_status rc = TIDE_OK;
    for (uint64_t left = mbox->length; rc == TIDE_OK && left > 0;) {
        tide_text text = seen(mbox);
        const size_t count = text.bytes < left ? text.bytes : (size_t)left;
        rc = add(mbox, text.data, count, err);
        mbox->at += count;
        left -= count;
        if (rc == TIDE_OK)
            rc = look(mbox, err);
        if (count == 0 && mbox->ended)
            break; /* the file has become shorter meanwhile */
    }
    while (rc == TIDE_OK && seen(mbox).bytes > 0 &&
           (seen(mbox).data[0] == '\n' || seen(mbox).data[0] == '\r')) {
        mbox->at++;
        rc = look(mbox, err);
    }
    mbox->blank = true;
    return rc;
}

/* ---- messages --------------------------------------------------------------------------- */

tide_status tide_mbox_new(tide_mbox_source *source, void *source_arg, uint64_t message_bytes_max,
                          tide_mem *mem, tide_mbox **mbox_out, tide_error *err)
{
    tide_mbox *mbox = tide_mem_new(mem, sizeof *mbox);
    if (mbox == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory to read a mailbox");
    mbox->mem = mem;
    mbox->source = source;
    mbox->source_arg = source_arg;
    mbox->bytes_max =
        message_bytes_max == 0 ? (uint64_t)TIDE_MBOX_MESSAGE_BYTES_MAX : message_bytes_max;
    tide_buf_init(&mbox->raw, mem, (size_t)mbox->bytes_max + 1);
    *mbox_out = mbox;
    return TIDE_OK;
}

void tide_mbox_forward(tide_mbox *mbox)
{
    TIDE_ASSERT(!mbox->began);
    mbox->forward = true;
}

void tide_mbox_free(tide_mbox *mbox)
{
    if (mbox == NULL)
        return;
    tide_buf_done(&mbox->raw);
    tide_mem_free(mbox->mem, mbox, sizeof *mbox);
}

/* Skips blank lines before the first message; then its From_ line, if it has one. */
static tide_status start(tide_mbox *mbox, tide_error *err)
{
    int64_t date_ms = 0;
    tide_status rc = look(mbox, err);
    while (rc == TIDE_OK && seen(mbox).bytes > 0 &&
           (seen(mbox).data[0] == '\n' || seen(mbox).data[0] == '\r')) {
        mbox->at++;
        rc = look(mbox, err);
    }
    tide_text text = seen(mbox);
    const char *end = text.bytes == 0 ? NULL : memchr(text.data, '\n', text.bytes);
    if (end != NULL)
        text.bytes = (size_t)(end - text.data);
    mbox->began = true;
    mbox->undated = is_from(text) && !tide_mbox_date(text, &date_ms);
    return rc;
}

/* Reads the From_ line; a part that does not fit is skipped. */
static tide_status take_from(tide_mbox *mbox, struct tide_mbox_message *message, tide_error *err)
{
    size_t used = 0;
    tide_status rc = TIDE_OK;
    for (bool more = true; rc == TIDE_OK && more;) {
        tide_text text = seen(mbox);
        const char *end = text.bytes == 0 ? NULL : memchr(text.data, '\n', text.bytes);
        const size_t count = end == NULL ? text.bytes : (size_t)(end - text.data) + 1;
        const size_t room = sizeof mbox->line - 1 - used;
        memcpy(mbox->line + used, text.data, count < room ? count : room);
        used += count < room ? count : room;
        mbox->at += count;
        more = end == NULL && !mbox->ended;
        rc = look(mbox, err);
    }
    while (used > 0 && (mbox->line[used - 1] == '\n' || mbox->line[used - 1] == '\r'))
        used--;
    mbox->line[used] = '\0';
    const tide_text line = {mbox->line + 5, used - 5};
    size_t sender_bytes = 0;
    while (sender_bytes < line.bytes && line.data[sender_bytes] != ' ')
        sender_bytes++;
    message->sender = (tide_text){line.data, sender_bytes};
    message->has_date = tide_mbox_date(line, &message->date_ms);
    return rc;
}

/* The length of a blank line at `text` with its line end; 0: it is not blank. */
static size_t blank_bytes(tide_text text)
{
    if (text.bytes >= 1 && text.data[0] == '\n')
        return 1;
    return text.bytes >= 2 && text.data[0] == '\r' && text.data[1] == '\n' ? 2 : 0;
}

/* The last line is the blank one that separates messages, not a part of the message. */
static void drop_blank(tide_mbox *mbox)
{
    if (mbox->too_long || mbox->last_line >= mbox->raw.bytes)
        return;
    const tide_text last = {mbox->raw.data + mbox->last_line, mbox->raw.bytes - mbox->last_line};
    if (blank_bytes(last) != last.bytes)
        return;
    mbox->raw.bytes = mbox->last_line;
    mbox->raw.data[mbox->last_line] = '\0';
    mbox->bytes -= last.bytes;
}

static tide_status take_lines(tide_mbox *mbox, tide_error *err)
{
    tide_status rc = TIDE_OK;
    bool holds = false;
    while (rc == TIDE_OK && seen(mbox).bytes > 0) {
        const tide_text text = seen(mbox);
        if (begins(mbox, text, mbox->blank))
            break;
        const size_t blank = blank_bytes(text);
        if (mbox->in_head && blank == 0)
            note_header(mbox, text);
        rc = copy_line(mbox, err);
        mbox->blank = blank > 0;
        if (rc != TIDE_OK || !mbox->in_head || blank == 0)
            continue;
        mbox->in_head = false;
        if (mbox->has_length)
            rc = length_holds(mbox, &holds, err);
        if (rc == TIDE_OK && holds)
            return copy_length(mbox, err);
    }
    if (rc == TIDE_OK && !holds)
        drop_blank(mbox);
    return rc;
}

tide_status tide_mbox_next(tide_mbox *mbox, struct tide_mbox_message *message_out, tide_error *err)
{
    struct tide_mbox_message message = {0};
    TIDE_TRY(mbox->began ? look(mbox, err) : start(mbox, err));
    if (seen(mbox).bytes == 0)
        return tide_error_set(err, TIDE_NOT_FOUND, "the mailbox has no more messages");
    message.at = tide_mbox_at(mbox);
    tide_buf_clear(&mbox->raw);
    mbox->bytes = 0;
    mbox->too_long = false;
    mbox->has_length = false;
    mbox->in_head = true;
    mbox->blank = false;
    mbox->quoted = true;
    mbox->last_line = 0;
    /* Without a From_ line only at the start of a file that is not a mailbox. */
    if (is_from(seen(mbox)))
        TIDE_TRY(take_from(mbox, &message, err));
    if (message.sender.bytes > 4 &&
        memcmp(message.sender.data + message.sender.bytes - 4, "@xxx", 4) == 0)
        mbox->in_head = false; /* Google quotes, and writes no lengths */
    if (mbox->forward)
        mbox->in_head = false;
    TIDE_TRY(take_lines(mbox, err));
    message.too_long = mbox->too_long;
    message.bytes = mbox->bytes;
    message.raw = &mbox->raw;
    *message_out = message;
    return TIDE_OK;
}
