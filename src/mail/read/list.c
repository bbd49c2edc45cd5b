#include "mail/read/list.h"

#include <stdio.h>
#include <string.h>

enum {
    GAP = 2,
    DATE_COLUMNS = 16, /* "2026-05-04 03:02" */
    DAY_COLUMNS = 10,
    NARROW = 70,      /* below this, subjects have lines of their own */
    FROM_MIN = 10,    /* a name is worth nothing if it is cut further */
    FROM_MAX = 60,    /* where nothing is fitted */
    ACCOUNT_MAX = 24, /* the same for accounts, where lines are fitted */
    LABELS_MAX = 30,
    SUBJECT_MIN = 12,
    INDENT = 4, /* of snippets */
    CELL_BYTES = 1024,
};

struct layout {
    struct cli *cli;
    const struct mail_list *list;
    unsigned columns; /* 0: lines have any length */
    bool stacked;     /* the subject is on a line of its own */
    bool accounts;    /* a column for them: there are several, and there is room */
    unsigned id, date, account, marks, from, subject;
};

static const char *text_of(const json_t *row, const char *field)
{
    const char *text = json_string_value(json_object_get(row, field));
    return text == NULL ? "" : text;
}

static bool has_label(const json_t *row, const char *id)
{
    size_t index = 0;
    const json_t *label = NULL;
    json_array_foreach(json_object_get(row, "labels"), index,
                       label) if (strcmp(text_of(label, "id"), id) == 0) return true;
    return false;
}

/* ---- cells ---- */

/* u unread, s starred, a attachments, g gone from Gmail; "-": none. */
static void marks_write(const json_t *row, char marks[8])
{
    size_t used = 0;
    if (has_label(row, "UNREAD"))
        marks[used++] = 'u';
    if (has_label(row, "STARRED"))
        marks[used++] = 's';
    if (json_integer_value(json_object_get(row, "attachments_count")) > 0)
        marks[used++] = 'a';
    if (json_is_true(json_object_get(row, "gone")))
        marks[used++] = 'g';
    if (used == 0)
        marks[used++] = '-';
    marks[used] = '\0';
}

/* The name of the sender where lines are fitted, else all of it. */
static tide_text sender(const struct layout *layout, const json_t *row)
{
    tide_text from = tide_text_of(text_of(row, "from"));
    if (layout->columns == 0)
        return from;
    const char *address = from.bytes == 0 ? NULL : memchr(from.data, '<', from.bytes);
    if (address != NULL && address > from.data)
        from.bytes = (size_t)(address - from.data);
    while (from.bytes > 0 && (from.data[from.bytes - 1] == ' ' || from.data[from.bytes - 1] == '"'))
        from.bytes--;
    while (from.bytes > 0 && (from.data[0] == '"' || from.data[0] == ' ')) {
        from.data++;
        from.bytes--;
    }
    return from;
}

/* " [Invoices, Travel]": those that the user made; system labels are marks or places. */
static void labels_write(const json_t *row, char labels[CELL_BYTES])
{
    size_t used = 0, index = 0;
    const json_t *label = NULL;
    labels[0] = '\0';
    json_array_foreach(json_object_get(row, "labels"), index, label)
    {
        if (strcmp(text_of(label, "type"), "user") != 0)
            continue;
        const int wrote = snprintf(labels + used, CELL_BYTES - used, "%s%s",
                                   used == 0 ? " [" : ", ", text_of(label, "name"));
        if (wrote < 0 || used + (size_t)wrote >= CELL_BYTES - 2)
            break;
        used += (size_t)wrote;
    }
    if (used > 0)
        (void)snprintf(labels + used, CELL_BYTES - used, "]");
}

static void date_write(const struct layout *layout, const json_t *row, char when[32])
{
    const json_int_t ms = json_integer_value(json_object_get(row, "internal_unix_ms"));
    (void)cli_time(ms > 0 ? (uint64_t)ms : 0, when);
    if (strlen(when) > layout->date)
        when[layout->date] = '\0';
}

/* ---- lines ---- */

static void out(struct cli *cli, tide_text text)
{
    if (tide_buf_add(&cli->out, text.data == NULL ? "" : text.data, text.bytes) != TIDE_OK)
        (void)cli_fail(cli, TIDE_FULL, "Ask for less, such as with --limit.",
                       "the output is too large");
}

/* What a character of a message becomes in a line.  Control characters of both sets would control
 * the terminal or be a mark; line and paragraph separators end a line.  Marks that set the direction
 * of what follows would turn the other cells round: what is written from right to left is shown so
 * without them. */
static tide_text clean(tide_text character)
{
    const unsigned char *bytes = (const unsigned char *)character.data;
    if (character.bytes == 1)
        return bytes[0] < 0x20 || bytes[0] >= 0x7f ? TIDE_TEXT(" ") : character;
    if (character.bytes == 2 && bytes[0] == 0xc2 && bytes[1] < 0xa0) /* U+0080 to U+009F */
        return TIDE_TEXT(" ");
    if (character.bytes != 3 || bytes[0] != 0xe2)
        return character;
    if (bytes[1] == 0x80 && (bytes[2] == 0xa8 || bytes[2] == 0xa9)) /* U+2028 and U+2029 */
        return TIDE_TEXT(" ");
    const bool turns = (bytes[1] == 0x80 && bytes[2] >= 0xaa && bytes[2] <= 0xae) || /* U+202A-E */
                       (bytes[1] == 0x81 && bytes[2] >= 0xa6 && bytes[2] <= 0xa9);   /* U+2066-9 */
    return turns ? TIDE_TEXT_NONE : character;
}

/* One line of clean text. */
static void out_clean(struct cli *cli, tide_text text)
{
    for (size_t bytes; text.bytes > 0; text.data += bytes, text.bytes -= bytes) {
        (void)cli_char_width(text, &bytes);
        out(cli, clean((tide_text){text.data, bytes}));
    }
}

/* At most `width` columns, and exactly so many if `pad`; 0: all of it. */
static void cell(struct cli *cli, tide_text text, unsigned width, bool pad)
{
    static const tide_text cut = {"...", 3};
    unsigned used = cli_text_width(text);
    const bool fits = width == 0 || used <= width;
    const tide_text shown =
        fits ? text : cli_text_fit(text, width > cut.bytes ? width - (unsigned)cut.bytes : width);
    out_clean(cli, shown);
    used = cli_text_width(shown);
    if (!fits && width > cut.bytes) {
        out(cli, cut);
        used += (unsigned)cut.bytes;
    }
    for (; pad && used < width + GAP; used++)
        out(cli, TIDE_TEXT(" "));
}

static void subject_show(const struct layout *layout, const json_t *row)
{
    struct cli *cli = layout->cli;
    char labels[CELL_BYTES];
    char count[32] = "";
    labels_write(row, labels);
    const json_int_t messages = json_integer_value(json_object_get(row, "thread_messages"));
    if (layout->list->threads && messages > 1)
        (void)snprintf(count, sizeof count, " (%" JSON_INTEGER_FORMAT ")", messages);
    unsigned width = layout->subject;
    if (width > 0) { /* labels give way to the subject */
        tide_text shown = cli_text_fit(tide_text_of(labels), LABELS_MAX);
        if (shown.bytes < strlen(labels))
            (void)snprintf(labels + shown.bytes, sizeof labels - shown.bytes, "]");
        if (cli_text_width(tide_text_of(labels)) + SUBJECT_MIN > width)
            labels[0] = '\0';
        width -= cli_text_width(tide_text_of(labels));
        width -= strlen(count) < width ? (unsigned)strlen(count) : 0;
    }
    const char *subject = text_of(row, "subject");
    cell(cli, tide_text_of(subject[0] == '\0' ? "(no subject)" : subject), width, false);
    out_clean(cli, tide_text_of(count));
    out_clean(cli, tide_text_of(labels));
    out(cli, TIDE_TEXT("\n"));
}

/* The marks of matches take no room. */
static void snippet_show(const struct layout *layout, const json_t *row)
{
    struct cli *cli = layout->cli;
    tide_text text = tide_text_of(text_of(row, "snippet"));
    unsigned left = layout->columns == 0 ? UINT32_MAX : layout->columns - INDENT;
    bool marked = false;
    if (text.bytes == 0)
        return;
    out(cli, TIDE_TEXT("    "));
    while (text.bytes > 0) {
        size_t bytes = 1;
        const bool mark = text.data[0] == '\x01' || text.data[0] == '\x02';
        const unsigned width = mark ? 0 : cli_char_width(text, &bytes);
        if (width > left)
            break;
        left -= width;
        marked = mark ? text.data[0] == '\x01' : marked;
        const tide_text next = {text.data, bytes};
        out(cli, mark ? next : clean(next));
        text.data += bytes;
        text.bytes -= bytes;
    }
    if (marked)
        out(cli, TIDE_TEXT("\x02"));
    out(cli, TIDE_TEXT("\n"));
}

static void row_show(const struct layout *layout, const json_t *row)
{
    struct cli *cli = layout->cli;
    char when[32], marks[8];
    date_write(layout, row, when);
    marks_write(row, marks);
    cell(cli, tide_text_of(text_of(row, "id")), layout->id, true);
    cell(cli, tide_text_of(when), layout->date, true);
    if (layout->accounts)
        cell(cli, tide_text_of(text_of(row, "account")), layout->account, true);
    cell(cli, tide_text_of(marks), layout->marks, true);
    cell(cli, sender(layout, row), layout->from, !layout->stacked);
    if (layout->stacked)
        out(cli, TIDE_TEXT("\n    "));
    subject_show(layout, row);
    if (layout->list->snippets)
        snippet_show(layout, row);
}

static void headings_show(const struct layout *layout)
{
    struct cli *cli = layout->cli;
    cell(cli, TIDE_TEXT("ID"), layout->id, true);
    cell(cli, TIDE_TEXT("DATE"), layout->date, true);
    if (layout->accounts)
        cell(cli, TIDE_TEXT("ACCOUNT"), layout->account, true);
    cell(cli, TIDE_TEXT("MARKS"), layout->marks, true);
    cell(cli, TIDE_TEXT("FROM"), layout->from, !layout->stacked);
    out(cli, layout->stacked ? TIDE_TEXT("\n") : TIDE_TEXT("SUBJECT\n"));
}

/* ---- widths ---- */

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static void measure(struct layout *layout, const json_t *rows)
{
    size_t index = 0;
    const json_t *row = NULL;
    layout->id = 2;
    layout->account = 7;
    layout->marks = 5;
    layout->from = 4;
    json_array_foreach(rows, index, row)
    {
        const unsigned id = cli_text_width(tide_text_of(text_of(row, "id")));
        const unsigned account = cli_text_width(tide_text_of(text_of(row, "account")));
        const unsigned from = cli_text_width(sender(layout, row));
        layout->id = id > layout->id ? id : layout->id;
        layout->account = account > layout->account ? account : layout->account;
        layout->from = from > layout->from ? from : layout->from;
    }
}

/* A quarter of what is left is the sender's, the rest is the subject's. */
static void fit(struct layout *layout)
{
    layout->date = DATE_COLUMNS;
    layout->subject = 0;
    if (layout->columns == 0) {
        layout->from = least(layout->from, FROM_MAX);
        return;
    }
    const bool narrow = layout->columns < NARROW;
    layout->date = narrow ? DAY_COLUMNS : DATE_COLUMNS;
    layout->account = least(layout->account, narrow ? FROM_MIN : ACCOUNT_MAX);
    unsigned used = layout->id + layout->date + layout->marks + 4 * GAP;
    /* Ids name a message among all accounts, so the account may give way. */
    layout->accounts =
        layout->accounts && used + layout->account + GAP + FROM_MIN <= layout->columns;
    used += layout->accounts ? layout->account + GAP : 0;
    const unsigned left = layout->columns > used ? layout->columns - used : 0;
    layout->stacked = narrow || left < FROM_MIN + SUBJECT_MIN;
    if (layout->stacked) {
        layout->from = left == 0 ? 1 : left;
        layout->subject = layout->columns - INDENT;
        return;
    }
    unsigned from = left / 3;
    from = from < FROM_MIN ? FROM_MIN : from;
    layout->from = least(layout->from, from);
    layout->subject = left > layout->from + 1 ? left - layout->from : 1;
}

void mail_list_show(struct cli *cli, const struct mail_list *list, const json_t *rows)
{
    struct layout layout = {
        .cli = cli, .list = list, .columns = cli_columns(), .accounts = list->accounts};
    size_t index = 0;
    const json_t *row = NULL;
    if (json_array_size(rows) == 0) {
        cli_print(cli, "no messages match\n");
        return;
    }
    measure(&layout, rows);
    fit(&layout);
    cli->marked = true;
    cli->paged = true;
    headings_show(&layout);
    json_array_foreach(rows, index, row) row_show(&layout, row);
}
