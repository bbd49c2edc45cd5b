/* draw.c - puts text on the screen: the line at the bottom, the help, and one line of any of them. */
#include "mail/browse/browse.h"

#include <curses.h>
#include <stdarg.h>
#include <stdio.h>

int browse_lines_on_screen(void)
{
    return LINES > 1 ? LINES - 1 : 1;
}

int browse_columns_on_screen(void)
{
    return COLS > 0 ? COLS : 1;
}

/* ---- one line ---- */

/* For a terminal that shows ASCII only: a mark for each other character, in as many columns. */
static void ascii_of(tide_text text, tide_buf *out)
{
    for (size_t bytes; text.bytes > 0; text.data += bytes, text.bytes -= bytes) {
        const unsigned width = cli_char_width(text, &bytes);
        if (bytes == 1 && (unsigned char)text.data[0] < 0x80)
            (void)tide_buf_add(out, text.data, 1);
        else
            (void)tide_buf_add(out, "??", width);
    }
}

void browse_put(const struct browse *browse, int line, int column, int columns, tide_text text,
                struct browse_look look)
{
    tide_auto_buf clean = tide_buf_in(browse->cli->mem, 1 << 20);
    tide_auto_buf ascii = tide_buf_in(browse->cli->mem, 1 << 20);
    if (columns < 1 || column >= browse_columns_on_screen())
        return;
    (void)browse_clean(cli_text_fit(text, (unsigned)columns * 4), &clean);
    tide_text shown = cli_text_fit(tide_buf_text(&clean), (unsigned)columns);
    const unsigned width = cli_text_width(shown);
    if (browse->plain) {
        ascii_of(shown, &ascii);
        shown = tide_buf_text(&ascii);
    }
    const attr_t attributes = (look.bold ? A_BOLD : A_NORMAL) | (look.dim ? A_DIM : A_NORMAL) |
                              (look.turned ? A_REVERSE : A_NORMAL);
    (void)attrset((int)attributes);
    if (shown.bytes > 0)
        (void)mvaddnstr(line, column, shown.data, (int)shown.bytes);
    else
        (void)move(line, column);
    for (unsigned at = width; at < (unsigned)columns; at++)
        (void)addch(' ');
    (void)attrset(A_NORMAL);
}

/* ---- the line at the bottom ---- */

void browse_note(struct browse *browse, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(browse->note, sizeof browse->note, format, args);
    va_end(args);
}

void browse_note_failure(struct browse *browse, const struct cli_called *called)
{
    const bool canceled = called->status == TIDE_CANCELED;
    if (!canceled)
        browse_note(browse, "%.200s%s%.150s", called->line, called->hint[0] == '\0' ? "" : ". ",
                    called->hint);
}

static void list_line(struct browse *browse, char text[BROWSE_QUERY_BYTES + 200])
{
    const struct browse_list *list = &browse->list;
    const size_t known = browse_rows_known(&list->rows);
    const size_t selected = json_object_size(browse->selected);
    char where[100], marked[40] = "";
    if (known == 0)
        (void)snprintf(where, sizeof where, "%s", list->asked ? "searching" : "nothing");
    else if (list->from_oldest && !list->rows.complete)
        (void)snprintf(where, sizeof where, "message %zu from the oldest", list->at + 1);
    else
        (void)snprintf(where, sizeof where, "%zu of %zu%s",
                       list->from_oldest ? known - list->at : list->at + 1, known,
                       list->rows.complete ? "" : " or more");
    if (selected > 0)
        (void)snprintf(marked, sizeof marked, "  %zu selected", selected);
    (void)snprintf(text, BROWSE_QUERY_BYTES + 200, "%s%s  %s%s   ?: help", where, marked,
                   list->query[0] == '\0' ? "all mail" : "search: ", list->query);
}

static void message_line(const struct browse *browse, char text[BROWSE_QUERY_BYTES + 200])
{
    const struct browse_message *message = &browse->message;
    const size_t height = (size_t)browse_lines_on_screen();
    const size_t lines = message->lines.count;
    const size_t to = message->top + height < lines ? message->top + height : lines;
    if (message->shown == NULL)
        (void)snprintf(text, BROWSE_QUERY_BYTES + 200, "reading");
    else
        (void)snprintf(text, BROWSE_QUERY_BYTES + 200, "%s  lines %zu to %zu of %zu   ?: help",
                       message->thread ? "conversation" : "message", message->top + 1, to, lines);
}

static void bottom_draw(struct browse *browse)
{
    char text[BROWSE_QUERY_BYTES + 200];
    const int columns = browse_columns_on_screen();
    const bool types = browse->input.kind != BROWSE_NO_INPUT;
    if (types)
        (void)snprintf(text, sizeof text, "%s%s",
                       browse->input.kind == BROWSE_INPUT_SEARCH ? "/" : "save attachments in: ",
                       browse->input.text);
    else if (browse->note[0] != '\0')
        (void)snprintf(text, sizeof text, "%s", browse->note);
    else if (browse->message.open)
        message_line(browse, text);
    else
        list_line(browse, text);
    tide_text shown = tide_text_of(text);
    while (types && cli_text_width(shown) + 1 > (unsigned)columns) { /* the end is what is typed */
        size_t bytes = 1;
        (void)cli_char_width(shown, &bytes);
        shown.data += bytes;
        shown.bytes -= bytes;
    }
    browse_put(browse, LINES - 1, 0, columns, shown, (struct browse_look){.turned = !types});
    (void)curs_set(types ? 1 : 0);
    if (types)
        (void)move(LINES - 1, (int)cli_text_width(shown));
}

/* ---- help ---- */

static const char *const help[] = {
    "j k, arrows         next, previous; in a message: scroll",
    "PgDn PgUp, g G      a screen, the newest, the oldest",
    "Enter, t            open the message, the whole conversation",
    "n p                 next, previous message while one is open",
    "/                   search as you type; Enter keeps it, Esc returns",
    "space, u            select a message, select none",
    "s                   save the attachments of the selected messages or this one",
    "o                   open the message in a web browser, without remote images",
    "r                   look for new mail in the archive",
    "q, Esc              back; at the list: end, and print the selected ids",
    "",
    "Marks: u unread, s starred, a attachments, g gone from Gmail, * selected.",
    "`tidemark mail search --help` lists the operators of a search.",
};

static void help_draw(const struct browse *browse)
{
    const int count = (int)(sizeof help / sizeof help[0]);
    for (int line = 0; line < browse_lines_on_screen(); line++)
        browse_put(browse, line, 0, browse_columns_on_screen(),
                   tide_text_of(line < count ? help[line] : ""),
                   (struct browse_look){.bold = false});
}

void browse_draw(struct browse *browse)
{
    if (browse->help)
        help_draw(browse);
    else if (browse->message.open)
        browse_message_draw(browse);
    else
        browse_list_draw(browse);
    bottom_draw(browse);
    (void)refresh();
}
