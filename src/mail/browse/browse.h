/* browse.h - `tidemark mail browse`: mail on a terminal, to read and not to change.
 *
 * One thread draws and reads keys; whatever reads mail runs behind it (asking.h), so that a key is
 * answered at once, however large the archive is.  Rows and messages are the JSON of `mail search` and
 * `mail show`.
 *
 * Invariants:
 *   BRO1  what is on the screen is clean (lines.h BLN2) and fits its columns.
 *   BRO2  the terminal is as it was before, however the command ends.
 *   BRO3  nothing is written except attachments where the user said, and files for the web browser
 *         in a directory that only this user can read, which a start after an hour removes.
 */
#ifndef TIDE_MAIL_BROWSE_H
#define TIDE_MAIL_BROWSE_H

#include "mail/browse/asking.h"
#include "mail/browse/lines.h"
#include "mail/browse/rows.h"

enum { BROWSE_QUERY_BYTES = 2048, BROWSE_NOTE_BYTES = 400, BROWSE_NAME_BYTES = 512 };

/* ---- the parts of its state ---- */

/* The list.  Rows count from the newest message or, after a jump to its end, from the oldest. */
struct browse_list {
    struct browse_rows rows;
    char query[BROWSE_QUERY_BYTES];
    bool from_oldest;
    size_t top, at; /* the row nearest to the beginning on the screen, and the chosen one */
    bool begins;    /* the rows are those of the search before, until the new one is answered ... */
    bool to_oldest; /* ... from this end */
    bool failed;    /* the search */
    bool asked;     /* for `page` */
    size_t page;
    bool several; /* accounts: each row names its own */
};

/* The message, or conversation, that is open. */
struct browse_message {
    bool open, thread;
    json_t *shown; /* as `mail show --json` has it; NULL: it comes */
    struct browse_lines lines;
    size_t top;
    char account[BROWSE_NAME_BYTES], id[BROWSE_NAME_BYTES];
};

/* The line that is typed at the bottom. */
typedef enum browse_input_kind {
    BROWSE_NO_INPUT,
    BROWSE_INPUT_SEARCH,
    BROWSE_INPUT_DIR
} browse_input_kind;
struct browse_input {
    browse_input_kind kind;
    char text[BROWSE_QUERY_BYTES];
    char before[BROWSE_QUERY_BYTES]; /* the query to return to */
};

struct browse_files {
    json_t *left; /* messages whose attachments are to be saved, the next one last; NULL: none */
    char to[CLI_PATH_BYTES];
    size_t saved;
    char pages_dir[CLI_PATH_BYTES]; /* of files for the web browser; "": none yet (BRO3) */
    unsigned pages;
};

struct browse {
    struct cli *cli;
    browse_asking *asking;
    const char *account; /* NULL: all */
    struct browse_list list;
    struct browse_message message;
    struct browse_input input;
    struct browse_files files;
    json_t *selected; /* an object: "ACCOUNT ID" to the row */
    bool help;
    bool over;
    bool plain; /* the terminal shows ASCII only */
    char note[BROWSE_NOTE_BYTES];
};

/* ---- list.c ---- */

/* Begins the list of a query anew. */
void browse_list_search(struct browse *browse, const char *query, bool from_oldest);
/* Asks for rows that the screen wants and that are not there. */
void browse_list_fill(struct browse *browse);
void browse_list_answer(struct browse *browse, struct cli_called *called);
const json_t *browse_list_chosen(struct browse *browse); /* NULL: none */
void browse_list_move(struct browse *browse, long rows); /* down is positive */
void browse_list_end(struct browse *browse, bool oldest);
void browse_list_draw(struct browse *browse);
bool browse_is_selected(const struct browse *browse, const json_t *row);
void browse_select(struct browse *browse, const json_t *row);

/* ---- message.c ---- */

void browse_message_open(struct browse *browse, const json_t *row, bool thread);
void browse_message_answer(struct browse *browse, struct cli_called *called);
void browse_message_close(struct browse *browse);
void browse_message_wrap(struct browse *browse); /* for another width */
void browse_message_move(struct browse *browse, long lines);
void browse_message_draw(struct browse *browse);

/* ---- files.c ---- */

/* Saves the attachments of the selected messages, or else of the open or chosen one. */
void browse_save(struct browse *browse, const char *dir);
void browse_save_answer(struct browse *browse, struct cli_called *called);
void browse_html(struct browse *browse);
void browse_html_answer(struct browse *browse, struct cli_called *called);
void browse_files_begin(struct browse *browse); /* removes files of earlier commands (BRO3) */
void browse_files_end(struct browse *browse);

/* ---- browse.c ---- */

/* The terminal as it was before, for another program; and back. */
void browse_terminal_lend(void);
void browse_terminal_return(void);

/* ---- keys.c ---- */

void browse_key(struct browse *browse, int key);                /* one of curses' */
void browse_character(struct browse *browse, unsigned unicode); /* a character, Enter, Escape */

/* ---- draw.c ---- */

void browse_draw(struct browse *browse);
/* One line of clean text in that many columns, padded; `bold` and `turned` (reverse). */
struct browse_look {
    bool bold, dim, turned;
};
void browse_put(const struct browse *browse, int line, int column, int columns, tide_text text,
                struct browse_look look);
int browse_lines_on_screen(void); /* without the line at the bottom */
int browse_columns_on_screen(void);
/* The line at the bottom, until the next key. */
void browse_note(struct browse *browse, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Of a command that failed. */
void browse_note_failure(struct browse *browse, const struct cli_called *called);

/* A text field of a row or message; "" if it has none. */
const char *browse_text(const json_t *row, const char *field);
bool browse_has_label(const json_t *row, const char *id);

#endif
