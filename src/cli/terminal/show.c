#include "cli/cli.h"

#include "base/check.h"
#include "base/clocktext.h"
#include "cli/advice.h"
#include "cli/terminal/pager.h"
#include "cli/terminal/wrap.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define YEAR_10000_MS 253402300800000ull

/* ---- text --------------------------------------------------------------------------- */

void cli_print(struct cli *cli, const char *format, ...)
{
    char text[4096];
    va_list args;
    va_start(args, format);
    int used = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    TIDE_ASSERT(used >= 0);
    size_t bytes = (size_t)used < sizeof text ? (size_t)used : sizeof text - 1;
    if (tide_buf_add(&cli->out, text, bytes) != TIDE_OK)
        (void)cli_fail(cli, TIDE_FULL, "Ask for less, such as with --limit.",
                       "the output is too large");
}

const char *cli_time(uint64_t unix_ms, char text[32])
{
    const time_t seconds = (time_t)(unix_ms / 1000);
    struct tm local;
    char full[TIDE_TIME_TEXT_BYTES];
    if (unix_ms > 0 && unix_ms < YEAR_10000_MS && localtime_r(&seconds, &local) != NULL &&
        strftime(text, 32, "%Y-%m-%d %H:%M:%S", &local) > 0)
        return text;
    tide_time_format(unix_ms, full); /* "-" or "never" */
    (void)snprintf(text, 32, "%s", full);
    return text;
}

/* ---- tables --------------------------------------------------------------------------- */

struct cli_table {
    unsigned columns;
    unsigned widths[CLI_COLUMNS_MAX];
    tide_buf cells; /* each zero-terminated */
    unsigned column;
    size_t rows;
};

enum { CELL_WIDTH_MAX = 60, LAST_WIDTH_MAX = 200 };

void cli_table_begin(struct cli *cli, const char *const *headings, unsigned columns)
{
    TIDE_ASSERT(columns <= CLI_COLUMNS_MAX);
    TIDE_ASSERT(cli->table == NULL);
    cli->table = tide_mem_new(cli->mem, sizeof *cli->table);
    if (cli->table == NULL)
        return;
    cli->table->columns = columns;
    tide_buf_init(&cli->table->cells, cli->mem, CLI_OUT_BYTES_MAX);
    for (unsigned i = 0; i < columns; i++)
        cli_cell_text(cli, tide_text_of(headings[i]));
}

/* Text from outside may contain control characters, which would control the
 * terminal, and bytes that are not valid UTF-8. */
void cli_cell_text(struct cli *cli, tide_text text)
{
    struct cli_table *table = cli->table;
    char cell[LAST_WIDTH_MAX * 4 + 8];
    size_t used = 0;
    unsigned width = 0;
    if (table == NULL)
        return;
    /* The last column may be wide: no other follows it. */
    const bool whole = cli->verbose && table->column + 1 == table->columns;
    const unsigned width_max = whole ? LAST_WIDTH_MAX : CELL_WIDTH_MAX;
    while (text.bytes > 0 && width < width_max) {
        size_t bytes = tide_utf8_bytes(text);
        bool plain = bytes > 1 ||
                     (bytes == 1 && (unsigned char)text.data[0] >= 0x20 && text.data[0] != 0x7f);
        if (used + (plain ? bytes : 1) > sizeof cell - 4)
            break; /* characters without a width of their own */
        memcpy(cell + used, plain ? text.data : "?", plain ? bytes : 1);
        used += plain ? bytes : 1;
        size_t shown = 0;
        width += plain ? cli_char_width(text, &shown) : 1;
        bytes += bytes == 0;
        text.data += bytes;
        text.bytes -= bytes;
    }
    if (text.bytes > 0) {
        memcpy(cell + used, "...", 3);
        used += 3;
        width += 3;
    }
    if (used == 0)
        cell[used++] = '-';
    cell[used++] = '\0';
    if (width > table->widths[table->column])
        table->widths[table->column] = width;
    if (tide_buf_add(&table->cells, cell, used) != TIDE_OK)
        (void)cli_fail(cli, TIDE_FULL, "Ask for less, such as with --limit.",
                       "the output is too large");
    table->column = (table->column + 1) % table->columns;
    table->rows += table->column == 0;
}

void cli_cell(struct cli *cli, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    int used = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    TIDE_ASSERT(used >= 0);
    cli_cell_text(cli, tide_text_of(text));
}

/* On a terminal that is too narrow, columns that say nothing in any row are left out. */
static void find_silent(const struct cli_table *table, bool silent[CLI_COLUMNS_MAX])
{
    const unsigned columns = isatty(STDOUT_FILENO) == 1 ? cli_columns() : 0;
    unsigned width = 0;
    for (unsigned i = 0; i < table->columns; i++) {
        width += table->widths[i] + 2;
        silent[i] = i > 0;
    }
    const char *cell = tide_buf_cstr(&table->cells);
    for (size_t row = 0; row < table->rows; row++)
        for (unsigned i = 0; i < table->columns; i++, cell += strlen(cell) + 1)
            silent[i] = silent[i] && (row == 0 || strcmp(cell, "-") == 0);
    for (unsigned i = 0; i < table->columns; i++)
        silent[i] = silent[i] && columns > 0 && width - 2 > columns;
}

void cli_table_end(struct cli *cli, const char *when_empty)
{
    struct cli_table *table = cli->table;
    if (table == NULL) {
        (void)cli_fail(cli, TIDE_NO_MEMORY, "Free some memory.", "out of memory");
        return;
    }
    TIDE_ASSERT(table->column == 0);
    const char *cell = tide_buf_cstr(&table->cells);
    bool silent[CLI_COLUMNS_MAX];
    find_silent(table, silent);
    unsigned end = table->columns; /* behind the last one that is shown */
    while (end > 1 && silent[end - 1])
        end--;
    if (table->rows <= 1)
        cli_print(cli, "%s\n", when_empty);
    for (size_t row = 0; table->rows > 1 && row < table->rows; row++) {
        for (unsigned i = 0; i < table->columns; i++, cell += strlen(cell) + 1) {
            if (silent[i])
                continue;
            bool last = i + 1 == end;
            unsigned width = cli_text_width(tide_text_of(cell));
            unsigned pad = last || width > table->widths[i] ? 0 : table->widths[i] - width + 2;
            cli_print(cli, "%s%*s%s", cell, (int)pad, "", last ? "\n" : "");
        }
    }
    tide_buf_done(&table->cells);
    tide_mem_free(cli->mem, table, sizeof *table);
    cli->table = NULL;
}

/* ---- writing out ---------------------------------------------------------------------------- */

/* How many bytes of `text` are next; *plain_out: safe to print unchanged.  Control characters of
 * both sets would control the terminal, and invalid UTF-8 may end in one. */
static size_t next_shown(tide_text text, bool *plain_out)
{
    const unsigned char *bytes = (const unsigned char *)text.data;
    const size_t count = tide_utf8_bytes(text);
    const bool second = count == 2 && bytes[0] == 0xc2 && bytes[1] < 0xa0; /* U+0080 to U+009F */
    *plain_out = bytes[0] == '\n' || bytes[0] == '\t' ||
                 (count > 0 && bytes[0] >= 0x20 && bytes[0] != 0x7f && !second);
    return count == 0 ? 1 : count;
}

/* The marks of cli->marked. */
static const char *const bold[] = {"\033[1m", "\033[0m"};
static const char *const no_marks[] = {"", ""};

static const char *const *marks_of(const struct cli *cli)
{
    const char *no_color = getenv("NO_COLOR");
    if (!cli->marked)
        return NULL;
    return isatty(STDOUT_FILENO) == 1 && (no_color == NULL || no_color[0] == '\0') ? bold
                                                                                   : no_marks;
}

/* The only place where the program prints text; it may contain text from a server, a message or a
 * file.  What is not plain is shown as \x1b.  `marks`: what \x01 and \x02 become; NULL: the same as
 * all other characters. */
static void write_marked(FILE *to, tide_text text, const char *const *marks)
{
    while (text.bytes > 0) {
        size_t run = 0;
        bool plain = true;
        while (run < text.bytes && plain) {
            const size_t step = next_shown((tide_text){text.data + run, text.bytes - run}, &plain);
            run += plain ? step : 0;
        }
        (void)fwrite(text.data, 1, run, to);
        text.data += run;
        text.bytes -= run;
        if (text.bytes == 0)
            return;
        if (marks != NULL && (text.data[0] == '\x01' || text.data[0] == '\x02')) {
            (void)fputs(marks[text.data[0] - 1], to);
            text.data++;
            text.bytes--;
            continue;
        }
        const size_t odd = next_shown(text, &plain);
        for (size_t i = 0; i < odd; i++)
            (void)fprintf(to, "\\x%02x", (unsigned)(unsigned char)text.data[i]);
        text.data += odd;
        text.bytes -= odd;
    }
}

static void write_plain(FILE *to, tide_text text)
{
    write_marked(to, text, NULL);
}

/* ---- alerts (E6.4) ----------------------------------------------------------------------- */

static const char *level_name(int level)
{
    return level >= 2 ? "critical" : "warning";
}

static bool alert_to_json(const struct tide_alert_row *row, void *arg)
{
    const struct cli_advice *advice = cli_advice(row->condition);
    char command[300];
    tide_json alert;
    cli_advice_command(advice, row->account == 0 ? "" : row->account_name, command, sizeof command);
    tide_json_object(&alert);
    tide_json_set_cstr(&alert, "condition", row->condition);
    tide_json_set_cstr(&alert, "level", level_name(row->level));
    tide_json_set_cstr(&alert, "account", row->account == 0 ? NULL : row->account_name);
    tide_json_set_cstr(&alert, "text", row->text);
    tide_json_set_u64(&alert, "since_unix_ms", row->since_unix_ms);
    tide_json_set_u64(&alert, "notified_unix_ms", row->notified_unix_ms);
    tide_json_set_cstr(&alert, "means", advice->means);
    tide_json_set_cstr(&alert, "to_do", advice->to_do);
    tide_json_set_cstr(&alert, "command", command);
    tide_json_append(arg, &alert);
    return true;
}

void cli_json_alerts(struct cli *cli, tide_json *array)
{
    tide_json_array(array);
    if (cli->ledger != NULL)
        (void)tide_ledger_alerts(cli->ledger, alert_to_json, array, NULL);
}

struct alert_line {
    struct tide_alert_row worst;
    unsigned count;
};

static bool alert_to_line(const struct tide_alert_row *row, void *arg)
{
    struct alert_line *line = arg;
    if (line->count++ == 0 || row->level > line->worst.level)
        line->worst = *row;
    return true;
}

static void print_alert_line(struct cli *cli, FILE *to)
{
    struct alert_line line = {.count = 0};
    if (cli->ledger == NULL ||
        tide_ledger_alerts(cli->ledger, alert_to_line, &line, NULL) != TIDE_OK || line.count == 0)
        return;
    (void)fprintf(to, "ALERT %s: %s%s%s: ", level_name(line.worst.level), line.worst.condition,
                  line.worst.account == 0 ? "" : " on ",
                  line.worst.account == 0 ? "" : line.worst.account_name);
    write_plain(to, tide_text_of(line.worst.text));
    if (line.count > 1)
        (void)fprintf(to, " (and %u more: `tidemark alerts`)", line.count - 1);
    (void)fprintf(to, "\n");
}

void cli_show(struct cli *cli, FILE *to)
{
    print_alert_line(cli, to);
    write_plain(to, tide_buf_text(&cli->out));
}

/* ---- the end ------------------------------------------------------------------------------ */

int cli_exit_code(tide_status status)
{
    switch (tide_status_class(status)) {
    case TIDE_CLASS_OK:
        return CLI_EXIT_DONE;
    case TIDE_CLASS_AUTH:
        return CLI_EXIT_SIGN_IN;
    case TIDE_CLASS_CANCELED:
        return status == TIDE_STALE ? CLI_EXIT_FAILED : CLI_EXIT_INTERRUPTED;
    default:
        return CLI_EXIT_FAILED;
    }
}

/* Whether the reader has closed our standard output. */
static bool is_closed_pipe(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return poll(&out, 1, 0) > 0 && (out.revents & POLLERR) != 0;
}

void cli_json_conclude(struct cli *cli, tide_status rc)
{
    tide_json alerts;
    if (rc != TIDE_OK) {
        tide_json error;
        tide_json_done(&cli->json);
        tide_json_object(&cli->json);
        tide_json_object(&error);
        tide_json_set_cstr(&error, "status", tide_status_name(rc));
        tide_json_set_cstr(&error, "text", cli->err.text);
        tide_json_set_cstr(&error, "hint", cli->hint);
        tide_json_set(&cli->json, "error", &error);
    }
    cli_json_alerts(cli, &alerts);
    tide_json_set(&cli->json, "alerts", &alerts);
}

static void print_json(struct cli *cli)
{
    tide_buf_clear(&cli->out);
    if (tide_json_line(&cli->json, &cli->out) == TIDE_OK)
        (void)fwrite(cli->out.data, 1, cli->out.bytes, stdout);
    else
        (void)fprintf(stderr, "tidemark: out of memory\n");
}

int cli_conclude(struct cli *cli, tide_status *rc_io)
{
    if (*rc_io == TIDE_OK && cli->err.status == TIDE_FULL)
        *rc_io = TIDE_FULL; /* the output did not fit */
    const tide_status rc = *rc_io;
    /* Every command shows alerts; one that needs no ledger tries to read them
     * and ignores errors. */
    if (cli->ledger == NULL && cli->command != NULL && rc == TIDE_OK) {
        tide_error kept = cli->err;
        /* Do not wait for a server that this command did not need. */
        if (cli_ledger_choose(cli) == TIDE_OK && (cli->shared == NULL || cli->ledger_reached))
            (void)cli_ledger_read(cli);
        cli->err = kept;
        cli->hint[0] = '\0';
    }
    return rc == TIDE_OK || cli->exit_code != 0 ? cli->exit_code : cli_exit_code(rc);
}

/* Lines of prose and help that a terminal would break within words; what is paged or exact stays as
 * it is. */
static void wrap_out(struct cli *cli)
{
    const unsigned columns = isatty(STDOUT_FILENO) == 1 ? cli_columns() : 0;
    tide_buf wrapped;
    if (columns == 0 || cli->paged || cli->exact_output)
        return;
    tide_buf_init(&wrapped, cli->mem, CLI_OUT_BYTES_MAX);
    if (cli_wrap(tide_buf_text(&cli->out), columns, 0, &wrapped) != TIDE_OK) {
        tide_buf_done(&wrapped);
        return; /* too large to be read at once */
    }
    tide_buf_done(&cli->out);
    cli->out = wrapped;
}

/* "tidemark: ", what is wrong, and below it what helps. */
static void print_failure(struct cli *cli)
{
    enum { INDENT = 10, BYTES_MAX = 8192 };
    struct winsize size = {0};
    tide_auto_buf text = tide_buf_in(cli->mem, BYTES_MAX);
    tide_auto_buf wrapped = tide_buf_in(cli->mem, 2 * BYTES_MAX);
    tide_status rc = tide_buf_print(&text, "tidemark: %s\n", cli->err.text);
    if (rc == TIDE_OK && cli->hint[0] != '\0')
        rc = tide_buf_print(&text, "%*s%s\n", INDENT, "", cli->hint);
    const bool fits = rc == TIDE_OK && isatty(STDERR_FILENO) == 1 &&
                      ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 2 * INDENT &&
                      cli_wrap(tide_buf_text(&text), size.ws_col, INDENT, &wrapped) == TIDE_OK;
    write_plain(stderr, tide_buf_text(fits ? &wrapped : &text));
}

int cli_finish(struct cli *cli, tide_status rc)
{
    int code = cli_conclude(cli, &rc);
    if (cli->want_json) {
        cli_json_conclude(cli, rc);
        print_json(cli);
    } else if (rc == TIDE_OK) {
        struct cli_pager pager;
        wrap_out(cli);
        FILE *to = cli_pager_open(cli, &pager);
        print_alert_line(cli, cli->exact_output ? stderr : to);
        if (cli->out.bytes > 0 && cli->exact_output)
            (void)fwrite(cli->out.data, 1, cli->out.bytes, to);
        else
            write_marked(to, tide_buf_text(&cli->out), marks_of(cli));
        cli_pager_close(&pager);
    } else {
        print_failure(cli);
    }
    errno = 0;
    const bool failed = fflush(stdout) != 0 || ferror(stdout);
    /* A reader that closes the pipe has read enough: `tidemark mail search ... | head`. */
    if (failed && errno != EPIPE && !is_closed_pipe()) {
        (void)fprintf(stderr, "tidemark: cannot write to standard output\n");
        code = code == 0 ? CLI_EXIT_FAILED : code;
    }
    return code;
}
