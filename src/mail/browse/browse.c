/* browse.c - the command: takes the terminal, waits for keys and answers, gives the terminal back. */
#include "mail/browse/browse.h"

#include "mail/commands/home.h"

#include <curses.h>
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ESCAPE_MS = 25 };

/* ---- the terminal ---- */

static tide_status terminal_check(struct cli *cli)
{
    if (isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1)
        return TIDE_OK;
    return cli_wrong(cli, "`tidemark mail search` and `tidemark mail show` need none.",
                     "`mail browse` needs a terminal for its input and output");
}

static void terminal_give(SCREEN *screen)
{
    if (screen == NULL)
        return;
    (void)endwin();
    delscreen(screen);
}

static tide_status terminal_take(struct browse *browse, SCREEN **screen_out)
{
    const char *term = getenv("TERM");
    (void)setlocale(LC_CTYPE, "");
    browse->plain = strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
    SCREEN *screen = newterm(NULL, stdout, stdin);
    /* One that cannot move the cursor would show a mixture of screens. */
    const bool moves = screen != NULL && tigetstr("cup") != NULL;
    if (!moves) {
        terminal_give(screen);
        return cli_wrong(browse->cli, "Set TERM to the name of your terminal, such as xterm.",
                         "the terminal \"%.60s\" cannot show a screen", term == NULL ? "" : term);
    }
    (void)set_escdelay(ESCAPE_MS);
    (void)cbreak();
    (void)noecho();
    (void)nonl();
    (void)keypad(stdscr, TRUE);
    (void)nodelay(stdscr, TRUE);
    *screen_out = screen;
    return TIDE_OK;
}

void browse_terminal_lend(void)
{
    (void)def_prog_mode();
    (void)endwin();
}

void browse_terminal_return(void)
{
    (void)reset_prog_mode();
    (void)clearok(stdscr, TRUE);
    (void)refresh();
}

/* ---- waiting ---- */

static void answers_take(struct browse *browse)
{
    struct cli_called called;
    browse_topic topic = BROWSE_ROWS;
    while (browse_answer_take(browse->asking, &topic, &called)) {
        if (topic == BROWSE_MESSAGE)
            browse_message_answer(browse, &called);
        else if (topic == BROWSE_ROWS)
            browse_list_answer(browse, &called);
        else if (topic == BROWSE_HTML)
            browse_html_answer(browse, &called);
        else
            browse_save_answer(browse, &called);
        cli_called_done(&called);
    }
}

static void keys_take(struct browse *browse)
{
    wint_t key = 0;
    for (int kind = get_wch(&key); kind != ERR && !browse->over; kind = get_wch(&key)) {
        if (kind != KEY_CODE_YES || key != KEY_RESIZE)
            browse->note[0] = '\0';
        if (kind == KEY_CODE_YES)
            browse_key(browse, (int)key);
        else
            browse_character(browse, (unsigned)key);
    }
}

/* Signals come only while it waits: none is missed between looking and waiting.  A terminal that is
 * gone ends it. */
static void loop(struct browse *browse, const sigset_t *waiting)
{
    struct pollfd files[2] = {{.fd = STDIN_FILENO, .events = POLLIN},
                              {.fd = browse_asking_fd(browse->asking), .events = POLLIN}};
    while (!browse->over && !cli_interrupted(browse->cli)) {
        browse_list_fill(browse);
        browse_draw(browse);
        const int ready = ppoll(files, 2, NULL, waiting);
        if (ready < 0 && errno != EINTR)
            break;
        if (ready > 0 && (files[0].revents & (POLLHUP | POLLERR | POLLNVAL)) != 0)
            break;
        keys_take(browse);
        answers_take(browse);
    }
}

/* ---- the command ---- */

static void selected_print(const struct browse *browse)
{
    struct cli *cli = browse->cli;
    const char *key = NULL;
    json_t *row = NULL;
    tide_json list;
    tide_json_array(&list);
    json_object_foreach(browse->selected, key, row)
    {
        tide_json one;
        tide_json_object(&one);
        tide_json_set_cstr(&one, "account", browse_text(row, "account"));
        tide_json_set_cstr(&one, "id", browse_text(row, "id"));
        tide_json_append(&list, &one);
        cli_print(cli, "%s\n", browse_text(row, "id"));
    }
    tide_json_set(&cli->json, "selected", &list);
}

static tide_status run(struct browse *browse, const char *query)
{
    struct cli *cli = browse->cli;
    SCREEN *screen = NULL;
    sigset_t blocked, before;
    (void)cli_interruptible(cli);
    (void)sigemptyset(&blocked);
    (void)sigaddset(&blocked, SIGINT);
    (void)sigaddset(&blocked, SIGTERM);
    (void)sigaddset(&blocked, SIGWINCH);
    TIDE_TRY(browse_asking_new(cli, &browse->asking));
    tide_status rc = terminal_take(browse, &screen);
    if (rc == TIDE_OK) {
        (void)sigprocmask(SIG_BLOCK, &blocked, &before);
        browse_list_search(browse, query, false);
        loop(browse, &before);
        (void)sigprocmask(SIG_SETMASK, &before, NULL);
    }
    terminal_give(screen);
    browse_asking_free(browse->asking);
    if (rc == TIDE_OK)
        selected_print(browse);
    return rc;
}

/* An account without an archive is an error before there is a screen. */
static tide_status accounts_look(struct browse *browse)
{
    struct cli *cli = browse->cli;
    struct mail_home home = {0};
    struct mail_names names;
    char email[256];
    tide_archive *archive = NULL;
    tide_status rc = mail_names_find(cli, browse->account, &names);
    browse->list.several = names.count > 1;
    mail_names_done(&names);
    if (rc == TIDE_OK && browse->account != NULL)
        rc = mail_home_take(cli, &home, browse->account, email, &archive);
    mail_home_give(cli, archive);
    return rc;
}

static void browse_done(struct browse *browse)
{
    browse_files_end(browse);
    browse_rows_done(&browse->list.rows);
    browse_lines_done(&browse->message.lines);
    json_decref(browse->message.shown);
    json_decref(browse->selected);
}

tide_status cli_mail_browse(struct cli *cli)
{
    struct browse *browse = NULL;
    tide_auto_buf query = tide_buf_in(cli->mem, BROWSE_QUERY_BYTES - 2);
    TIDE_TRY(terminal_check(cli));
    for (unsigned i = 0; i < cli->arguments_count; i++)
        if (tide_buf_print(&query, "%s%s", i == 0 ? "" : " ", cli->arguments[i]) != TIDE_OK)
            return cli_wrong(cli, "Give fewer words.", "the query is too long");
    browse = tide_mem_new(cli->mem, sizeof *browse);
    if (browse == NULL)
        return cli_fail(cli, TIDE_NO_MEMORY, "Free some memory.", "out of memory");
    browse->cli = cli;
    browse->account = cli_flag(cli, "account");
    browse->selected = json_object();
    browse_rows_init(&browse->list.rows, cli->mem);
    browse_lines_init(&browse->message.lines, cli->mem);
    tide_status rc = accounts_look(browse);
    if (rc == TIDE_OK)
        browse_files_begin(browse);
    if (rc == TIDE_OK)
        rc = cli_kept_begin(cli);
    if (rc == TIDE_OK)
        rc = run(browse, query.bytes == 0 ? "" : tide_buf_cstr(&query));
    cli_kept_end(cli);
    browse_done(browse);
    tide_mem_free(cli->mem, browse, sizeof *browse);
    return rc;
}
