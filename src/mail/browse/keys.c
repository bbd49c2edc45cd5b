/* keys.c - what keys do. */
#include "mail/browse/browse.h"

#include <curses.h>
#include <glib.h>
#include <stdio.h>

enum { ESCAPE = 27, CONTROL_H = 8, CONTROL_L = 12, CONTROL_U = 21, CONTROL_W = 23, DELETE = 127 };

/* ---- the line that is typed ---- */

/* While a word is typed, its beginning is searched. */
static void search_typed(struct browse *browse)
{
    const char *text = browse->input.text;
    const size_t bytes = strlen(text);
    char query[BROWSE_QUERY_BYTES + 1];
    const gunichar last =
        bytes == 0 ? 0 : g_utf8_get_char(g_utf8_find_prev_char(text, text + bytes));
    const size_t word =
        bytes == 0 ? 0 : strlen(strrchr(text, ' ') == NULL ? text : strrchr(text, ' ') + 1);
    const bool begins = word > 1 && g_unichar_isalnum(last) && strchr(text, '"') == NULL &&
                        strchr(text + bytes - word, ':') == NULL &&
                        strchr(text + bytes - word, '+') == NULL && bytes + 2 < sizeof query;
    (void)snprintf(query, sizeof query, "%s%s", text, begins ? "*" : "");
    browse_list_search(browse, query, false);
}

static void input_begin(struct browse *browse, browse_input_kind kind, const char *text)
{
    struct browse_input *input = &browse->input;
    input->kind = kind;
    (void)snprintf(input->before, sizeof input->before, "%s", browse->list.query);
    (void)snprintf(input->text, sizeof input->text, "%s", text);
}

static void input_end(struct browse *browse, bool accept)
{
    struct browse_input *input = &browse->input;
    const browse_input_kind kind = input->kind;
    input->kind = BROWSE_NO_INPUT;
    if (kind == BROWSE_INPUT_SEARCH && !accept)
        browse_list_search(browse, input->before, false);
    else if (kind == BROWSE_INPUT_DIR && accept)
        browse_save(browse, input->text);
}

/* Without its last character, or its last word. */
static void input_cut(struct browse_input *input, bool word)
{
    size_t bytes = strlen(input->text);
    while (word && bytes > 0 && input->text[bytes - 1] == ' ')
        bytes--;
    do {
        const char *before = g_utf8_find_prev_char(input->text, input->text + bytes);
        bytes = before == NULL ? 0 : (size_t)(before - input->text);
    } while (word && bytes > 0 && input->text[bytes - 1] != ' ');
    input->text[bytes] = '\0';
}

static void input_add(struct browse_input *input, gunichar character)
{
    char utf8[8];
    const size_t bytes = strlen(input->text);
    const int count = g_unichar_to_utf8(character, utf8);
    if (bytes + (size_t)count + 2 >= sizeof input->text)
        return;
    memcpy(input->text + bytes, utf8, (size_t)count);
    input->text[bytes + (size_t)count] = '\0';
}

static void input_character(struct browse *browse, unsigned unicode)
{
    struct browse_input *input = &browse->input;
    if (unicode == '\r' || unicode == '\n' || unicode == ESCAPE) {
        input_end(browse, unicode != ESCAPE);
        return;
    }
    if (unicode == DELETE || unicode == CONTROL_H)
        input_cut(input, false);
    else if (unicode == CONTROL_W)
        input_cut(input, true);
    else if (unicode == CONTROL_U)
        input->text[0] = '\0';
    else if (g_unichar_isprint(unicode))
        input_add(input, unicode);
    else
        return;
    if (input->kind == BROWSE_INPUT_SEARCH)
        search_typed(browse);
}

/* ---- both screens ---- */

static void step(struct browse *browse, long rows)
{
    browse_list_move(browse, rows);
    if (browse->message.open && browse_list_chosen(browse) != NULL)
        browse_message_open(browse, browse_list_chosen(browse), browse->message.thread);
}

static void scroll_by(struct browse *browse, long rows)
{
    if (browse->message.open)
        browse_message_move(browse, rows);
    else
        browse_list_move(browse, rows);
}

static void to_end(struct browse *browse, bool last)
{
    if (browse->message.open)
        browse_message_move(browse, last ? (long)browse->message.lines.count
                                         : -(long)browse->message.lines.count);
    else
        browse_list_end(browse, last);
}

static void back(struct browse *browse)
{
    if (browse->message.open)
        browse_message_close(browse);
    else
        browse->over = true;
}

static void thread(struct browse *browse)
{
    const json_t *row = browse_list_chosen(browse);
    browse_message_open(browse, row, !browse->message.open || !browse->message.thread);
}

static void reload(struct browse *browse)
{
    char query[BROWSE_QUERY_BYTES];
    (void)snprintf(query, sizeof query, "%s", browse->list.query);
    browse_message_close(browse);
    browse_list_search(browse, query, false);
}

static void choose(struct browse *browse)
{
    if (browse->message.open) {
        browse_message_move(browse, browse_lines_on_screen());
        return;
    }
    const json_t *row = browse_list_chosen(browse);
    if (row != NULL)
        browse_select(browse, row);
    browse_list_move(browse, 1);
}

void browse_character(struct browse *browse, unsigned unicode)
{
    if (browse->input.kind != BROWSE_NO_INPUT) {
        input_character(browse, unicode);
        return;
    }
    if (browse->help) {
        browse->help = false;
        return;
    }
    switch (unicode) {
    case 'j':
        scroll_by(browse, 1);
        break;
    case 'k':
        scroll_by(browse, -1);
        break;
    case 'g':
        to_end(browse, false);
        break;
    case 'G':
        to_end(browse, true);
        break;
    case 'n':
        step(browse, 1);
        break;
    case 'p':
        step(browse, -1);
        break;
    case ' ':
        choose(browse);
        break;
    case 'u':
        (void)json_object_clear(browse->selected);
        break;
    case '\r':
    case '\n':
        browse_message_open(browse, browse_list_chosen(browse), false);
        break;
    case 't':
        thread(browse);
        break;
    case '/':
        browse_message_close(browse);
        input_begin(browse, BROWSE_INPUT_SEARCH, browse->list.query);
        break;
    case 's':
        input_begin(browse, BROWSE_INPUT_DIR, ".");
        break;
    case 'o':
        browse_html(browse);
        break;
    case 'r':
        reload(browse);
        break;
    case '?':
        browse->help = true;
        break;
    case 'q':
    case ESCAPE:
        back(browse);
        break;
    case CONTROL_L:
        (void)clearok(curscr, TRUE);
        break;
    default:
        break;
    }
}

void browse_key(struct browse *browse, int key)
{
    const long screen = browse_lines_on_screen();
    if (key == KEY_RESIZE) {
        browse_message_wrap(browse);
        browse_list_move(browse, 0);
        return;
    }
    if (key == KEY_BACKSPACE || key == KEY_ENTER || browse->help) {
        browse_character(browse, key == KEY_ENTER ? '\n' : DELETE);
        return;
    }
    if (browse->input.kind != BROWSE_NO_INPUT)
        return;
    switch (key) {
    case KEY_DOWN:
        scroll_by(browse, 1);
        break;
    case KEY_UP:
        scroll_by(browse, -1);
        break;
    case KEY_NPAGE:
        scroll_by(browse, screen);
        break;
    case KEY_PPAGE:
        scroll_by(browse, -screen);
        break;
    case KEY_HOME:
        to_end(browse, false);
        break;
    case KEY_END:
        to_end(browse, true);
        break;
    case KEY_RIGHT:
        if (!browse->message.open)
            browse_message_open(browse, browse_list_chosen(browse), false);
        break;
    case KEY_LEFT:
        if (browse->message.open)
            browse_message_close(browse);
        break;
    default:
        break;
    }
}
