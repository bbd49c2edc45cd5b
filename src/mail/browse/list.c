/* list.c - the list of messages: which rows there are, which one is chosen, how they look. */
#include "mail/browse/browse.h"

#include <stdio.h>

enum {
    DATE_COLUMNS = 16, /* "2026-05-04 03:02" */
    DAY_COLUMNS = 10,
    MARKS_COLUMNS = 4,
    ACCOUNT_COLUMNS = 16,
    WIDE = 100, /* columns of a screen that has room for times and accounts */
    FROM_MIN = 12,
    FROM_MAX = 28,
    CELL_BYTES = 1024,
};

const char *browse_text(const json_t *row, const char *field)
{
    const char *text = json_string_value(json_object_get(row, field));
    return text == NULL ? "" : text;
}

bool browse_has_label(const json_t *row, const char *id)
{
    size_t index = 0;
    const json_t *label = NULL;
    json_array_foreach(json_object_get(row, "labels"), index, label)
    {
        if (strcmp(browse_text(label, "id"), id) == 0)
            return true;
    }
    return false;
}

/* ---- asking for rows ---- */

static size_t height(void)
{
    const int lines = browse_lines_on_screen();
    return lines < 1 ? 1 : (size_t)lines;
}

static void ask_page(struct browse *browse, size_t page)
{
    struct browse_list *list = &browse->list;
    const char *after = list->begins ? NULL : browse_rows_after(&list->rows, page);
    const char *words[BROWSE_WORDS_MAX] = {"mail", "search", "--snippets", "never", "--limit"};
    char limit[16];
    size_t count = 5;
    (void)snprintf(limit, sizeof limit, "%d", BROWSE_PAGE_ROWS);
    words[count++] = limit;
    if (browse->account != NULL) {
        words[count++] = "--account";
        words[count++] = browse->account;
    }
    if (list->begins ? list->to_oldest : list->from_oldest)
        words[count++] = "--oldest-first";
    if (after != NULL) {
        words[count++] = "--after";
        words[count++] = after;
    }
    words[count++] = "--";
    words[count++] = list->query;
    words[count] = NULL;
    if (browse_ask(browse->asking, BROWSE_ROWS, words) != TIDE_OK) {
        browse_note(browse, "out of memory");
        return;
    }
    list->asked = true;
    list->page = page;
}

/* A screen more than is shown, so that the next one is there when it is wanted. */
void browse_list_fill(struct browse *browse)
{
    struct browse_list *list = &browse->list;
    size_t page = 0;
    if (!list->asked && !list->failed &&
        browse_rows_missing(&list->rows, list->top, 2 * height(), &page))
        ask_page(browse, page);
}

void browse_list_search(struct browse *browse, const char *query, bool from_oldest)
{
    struct browse_list *list = &browse->list;
    (void)snprintf(list->query, sizeof list->query, "%s", query);
    list->to_oldest = from_oldest;
    list->begins = true;
    list->failed = false;
    ask_page(browse, 0);
}

static void notes(struct browse *browse, const struct cli_called *called)
{
    const json_t *spelling = json_array_get(json_object_get(called->json.value, "spelling"), 0);
    if (spelling != NULL)
        browse_note(browse, "No message has \"%.100s\"; did you mean \"%.100s\"?",
                    browse_text(spelling, "word"), browse_text(spelling, "better"));
    else if (called->exit_code != 0)
        browse_note(browse, "A part of the archive cannot be read: run `tidemark mail verify`.");
}

void browse_list_answer(struct browse *browse, struct cli_called *called)
{
    struct browse_list *list = &browse->list;
    list->asked = false;
    if (called->status != TIDE_OK) {
        list->failed = true; /* until another search: it would fail again */
        browse_note_failure(browse, called);
        return;
    }
    if (list->begins) {
        browse_rows_done(&list->rows);
        list->top = list->at = 0;
        list->from_oldest = list->to_oldest;
        list->begins = false;
    }
    if (browse_rows_put(&list->rows, list->page, called->json.value) != TIDE_OK)
        browse_note(browse, "out of memory");
    notes(browse, called);
    browse_list_move(browse, 0);
}

/* ---- the chosen row ---- */

const json_t *browse_list_chosen(struct browse *browse)
{
    return browse_rows_at(&browse->list.rows, browse->list.at);
}

/* Down is away from the newest message: the other way if rows count from the oldest. */
void browse_list_move(struct browse *browse, long rows)
{
    struct browse_list *list = &browse->list;
    const size_t known = browse_rows_known(&list->rows);
    const size_t last = known == 0 ? 0 : known - 1;
    const long by = list->from_oldest ? -rows : rows;
    if (by < 0)
        list->at = list->at < (size_t)-by ? 0 : list->at - (size_t)-by;
    else
        list->at = list->at + (size_t)by;
    list->at = list->at > last ? last : list->at;
    if (list->at < list->top)
        list->top = list->at;
    if (list->at >= list->top + height())
        list->top = list->at - height() + 1;
    browse_list_fill(browse);
}

/* The end that is far away is a list of its own: nobody waits for the rows in between. */
void browse_list_end(struct browse *browse, bool oldest)
{
    struct browse_list *list = &browse->list;
    char query[BROWSE_QUERY_BYTES];
    if (list->rows.complete) {
        const size_t known = browse_rows_known(&list->rows);
        list->at = oldest == list->from_oldest || known == 0 ? 0 : known - 1;
        browse_list_move(browse, 0);
        return;
    }
    if (oldest == list->from_oldest) {
        list->at = list->top = 0;
        browse_list_move(browse, 0);
        return;
    }
    (void)snprintf(query, sizeof query, "%s", list->query);
    browse_list_search(browse, query, oldest);
}

/* ---- selected messages ---- */

static void key_of(const json_t *row, char key[2 * BROWSE_NAME_BYTES])
{
    (void)snprintf(key, 2 * BROWSE_NAME_BYTES, "%.500s %.500s", browse_text(row, "account"),
                   browse_text(row, "id"));
}

bool browse_is_selected(const struct browse *browse, const json_t *row)
{
    char key[2 * BROWSE_NAME_BYTES];
    key_of(row, key);
    return json_object_get(browse->selected, key) != NULL;
}

void browse_select(struct browse *browse, const json_t *row)
{
    char key[2 * BROWSE_NAME_BYTES];
    key_of(row, key);
    if (json_object_del(browse->selected, key) == 0)
        return;
    if (json_object_set_new(browse->selected, key, json_deep_copy(row)) != 0)
        browse_note(browse, "out of memory");
}

/* ---- drawing ---- */

struct columns {
    int date, account, from, subject, subject_columns;
};

static void columns_of(const struct browse *browse, struct columns *columns)
{
    const int width = browse_columns_on_screen();
    const bool wide = width >= WIDE;
    int at = 2; /* the mark of a selected row */
    columns->date = wide ? DATE_COLUMNS : DAY_COLUMNS;
    at += columns->date + 1 + MARKS_COLUMNS + 1;
    columns->account = wide && browse->list.several ? ACCOUNT_COLUMNS : 0;
    at += columns->account == 0 ? 0 : columns->account + 1;
    columns->from = (width - at) / 3;
    columns->from = columns->from < FROM_MIN   ? FROM_MIN
                    : columns->from > FROM_MAX ? FROM_MAX
                                               : columns->from;
    columns->subject = at + columns->from + 1;
    columns->subject_columns = width - columns->subject;
}

/* The sender's name, else the address. */
static tide_text sender(const json_t *row)
{
    tide_text from = tide_text_of(browse_text(row, "from"));
    const char *address = from.bytes == 0 ? NULL : memchr(from.data, '<', from.bytes);
    if (address != NULL && address > from.data)
        from.bytes = (size_t)(address - from.data);
    while (from.bytes > 0 && strchr(" \"", from.data[from.bytes - 1]) != NULL)
        from.bytes--;
    while (from.bytes > 0 && strchr(" \"", from.data[0]) != NULL) {
        from.data++;
        from.bytes--;
    }
    return from;
}

static void marks_of(const json_t *row, char marks[MARKS_COLUMNS + 1])
{
    const bool files = json_integer_value(json_object_get(row, "attachments_count")) > 0;
    (void)snprintf(marks, MARKS_COLUMNS + 1, "%c%c%c%c",
                   browse_has_label(row, "UNREAD") ? 'u' : ' ',
                   browse_has_label(row, "STARRED") ? 's' : ' ', files ? 'a' : ' ',
                   json_is_true(json_object_get(row, "gone")) ? 'g' : ' ');
}

/* The subject, and the labels that the user made. */
static void subject_of(const json_t *row, char text[CELL_BYTES])
{
    const char *subject = browse_text(row, "subject");
    size_t used = 0, index = 0;
    const json_t *label = NULL;
    int wrote = snprintf(text, CELL_BYTES, "%.700s", subject[0] == '\0' ? "(no subject)" : subject);
    used = wrote < 0 ? 0 : (size_t)wrote;
    json_array_foreach(json_object_get(row, "labels"), index, label)
    {
        if (strcmp(browse_text(label, "type"), "user") != 0 || used > CELL_BYTES - 100)
            continue;
        wrote = snprintf(text + used, CELL_BYTES - used, " [%.80s]", browse_text(label, "name"));
        used += wrote < 0 ? 0 : (size_t)wrote;
    }
}

static void row_draw(const struct browse *browse, const struct columns *columns, int line,
                     const json_t *row, bool chosen)
{
    const struct browse_look look = {.bold = browse_has_label(row, "UNREAD"), .turned = chosen};
    const json_int_t ms = json_integer_value(json_object_get(row, "internal_unix_ms"));
    char when[32], marks[MARKS_COLUMNS + 1], subject[CELL_BYTES];
    int at = 2;
    marks_of(row, marks);
    subject_of(row, subject);
    browse_put(browse, line, 0, 2, browse_is_selected(browse, row) ? TIDE_TEXT("*") : TIDE_TEXT(""),
               look);
    browse_put(browse, line, at, columns->date + 1,
               cli_text_fit(tide_text_of(cli_time(ms > 0 ? (uint64_t)ms : 0, when)),
                            (unsigned)columns->date),
               look);
    at += columns->date + 1;
    browse_put(browse, line, at, MARKS_COLUMNS + 1, tide_text_of(marks), look);
    at += MARKS_COLUMNS + 1;
    if (columns->account > 0) {
        browse_put(
            browse, line, at, columns->account + 1,
            cli_text_fit(tide_text_of(browse_text(row, "account")), (unsigned)columns->account),
            look);
        at += columns->account + 1;
    }
    browse_put(browse, line, at, columns->from + 1,
               cli_text_fit(sender(row), (unsigned)columns->from), look);
    if (columns->subject_columns > 0)
        browse_put(browse, line, columns->subject, columns->subject_columns, tide_text_of(subject),
                   look);
}

void browse_list_draw(struct browse *browse)
{
    struct browse_list *list = &browse->list;
    const int lines = browse_lines_on_screen();
    struct columns columns;
    columns_of(browse, &columns);
    for (int line = 0; line < lines; line++) {
        const size_t from_top = list->from_oldest ? (size_t)(lines - 1 - line) : (size_t)line;
        const size_t index = list->top + from_top;
        const json_t *row = browse_rows_at(&list->rows, index);
        if (row != NULL)
            row_draw(browse, &columns, line, row, index == list->at);
        else
            browse_put(browse, line, 0, browse_columns_on_screen(), TIDE_TEXT(""),
                       (struct browse_look){.bold = false});
    }
    if (list->rows.complete && browse_rows_known(&list->rows) == 0)
        browse_put(browse, 0, 0, browse_columns_on_screen(), TIDE_TEXT("no messages match"),
                   (struct browse_look){.dim = true});
}
