/* watch.c - `tidemark status --watch`: the same rows, once a second, until Ctrl-C (E9.3).
 *
 * Every look opens what it reads: an engine that starts or ends meanwhile, a restored home, an
 * account that is added are seen at the next one.  A look that fails is shown and tried again; only
 * the first one ends the command, since then nothing is here to be watched.
 *
 * On a terminal the rows are redrawn in place, cut to its size.  Elsewhere they are printed when they
 * have changed; with --json every look is one object on a line. */
#include "cli/status/status.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { LOOK_MS = 1000, SCREEN_BYTES_MAX = 4 << 20 };

struct watch {
    struct cli *cli;
    const tide_cancel *cancel;
    struct status_meters meters;
    bool terminal;
    tide_buf shown; /* what was printed last */
    bool gone;      /* nobody reads */
};

/* ---- one look ---- */

/* Leaves the text in cli->out and the object in cli->json. */
static tide_status look(struct watch *watch)
{
    struct cli *cli = watch->cli;
    tide_json alerts;
    tide_buf_clear(&cli->out);
    tide_json_done(&cli->json);
    tide_json_object(&cli->json);
    cli->err = (tide_error){TIDE_OK, 0, ""};
    cli->hint[0] = '\0';
    cli->now_unix_ms = tide_world_now_unix_ms(cli->world);
    const tide_status rc = status_look(cli, &watch->meters);
    tide_json_set_u64(&cli->json, "at_unix_ms", cli->now_unix_ms);
    if (rc == TIDE_OK) {
        cli_json_alerts(cli, &alerts);
        tide_json_set(&cli->json, "alerts", &alerts);
    }
    return rc;
}

/* A connection to a shared ledger is kept while it works; state.db may be another file now. */
static void look_again_later(struct cli *cli, tide_status rc)
{
    if (rc != TIDE_OK || cli->shared == NULL)
        cli_ledger_close(cli);
}

/* ---- showing it ---- */

static void screen_size(unsigned *columns_out, unsigned *rows_out)
{
    struct winsize size = {0};
    const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
    *columns_out = known && size.ws_col > 0 ? size.ws_col : 80;
    *rows_out = known && size.ws_row > 0 ? size.ws_row : 24;
}

/* The bytes of a line that fit. */
static size_t fitting(tide_text line, unsigned columns)
{
    size_t bytes = 0;
    for (unsigned used = 0; bytes < line.bytes; bytes++) {
        used += ((unsigned char)line.data[bytes] & 0xc0) != 0x80;
        if (used > columns)
            break;
    }
    return bytes;
}

/* Cuts to the terminal, so that nothing wraps and nothing scrolls. */
static tide_status screen_make(tide_text text, unsigned columns, unsigned rows, tide_buf *out)
{
    tide_status rc = TIDE_OK;
    for (unsigned row = 1; rc == TIDE_OK && text.bytes > 0 && row < rows; row++) {
        const char *end = memchr(text.data, '\n', text.bytes);
        const tide_text line = {text.data, end == NULL ? text.bytes : (size_t)(end - text.data)};
        const size_t used = line.bytes + (end != NULL);
        rc = tide_buf_add(out, line.data, fitting(line, columns - 1));
        if (rc == TIDE_OK)
            rc = tide_buf_add_text(out, "\n");
        text.data += used;
        text.bytes -= used;
    }
    return rc;
}

static unsigned lines_of(tide_text text)
{
    unsigned lines = 0;
    for (size_t i = 0; i < text.bytes; i++)
        lines += text.data[i] == '\n';
    return lines;
}

/* One write: no flicker, and a kill leaves no half of it. */
static void draw(struct watch *watch, tide_text text)
{
    unsigned columns = 0, rows = 0;
    tide_buf out;
    screen_size(&columns, &rows);
    tide_buf_init(&out, watch->cli->mem, SCREEN_BYTES_MAX);
    const unsigned up = lines_of(tide_buf_text(&watch->shown));
    tide_buf_clear(&watch->shown);
    tide_status rc = screen_make(text, columns, rows, &watch->shown);
    if (rc == TIDE_OK && up > 0)
        rc = tide_buf_print(&out, "\r\033[%uA", up < rows ? up : rows);
    for (size_t i = 0; rc == TIDE_OK && i < watch->shown.bytes; i++) {
        if (watch->shown.data[i] == '\n')
            rc = tide_buf_add_text(&out, "\033[K");
        if (rc == TIDE_OK)
            rc = tide_buf_add(&out, &watch->shown.data[i], 1);
    }
    if (rc == TIDE_OK)
        rc = tide_buf_add_text(&out, "\033[J");
    if (rc == TIDE_OK)
        (void)fwrite(tide_buf_cstr(&out), 1, out.bytes, stdout);
    tide_buf_done(&out);
}

static void print_changed(struct watch *watch, tide_text text)
{
    if (tide_text_equal(tide_buf_text(&watch->shown), text))
        return;
    if (watch->shown.bytes > 0)
        (void)fputc('\n', stdout);
    (void)fwrite(text.data, 1, text.bytes, stdout);
    tide_buf_clear(&watch->shown);
    (void)tide_buf_add(&watch->shown, text.data, text.bytes); /* too large: printed again */
}

static void show_text(struct watch *watch, tide_status rc)
{
    struct cli *cli = watch->cli;
    char *text = NULL;
    size_t bytes = 0;
    FILE *memory = open_memstream(&text, &bytes);
    if (memory == NULL)
        return; /* the next look may have the memory */
    if (rc != TIDE_OK) {
        tide_buf_clear(&cli->out);
        cli_print(cli, "%s\n%s\n", cli->err.text, cli->hint);
    }
    cli_show(cli, memory);
    if (fclose(memory) == 0 && watch->terminal)
        draw(watch, (tide_text){text, bytes});
    else if (text != NULL)
        print_changed(watch, (tide_text){text, bytes});
    free(text);
}

static void show_json(struct watch *watch, tide_status rc)
{
    struct cli *cli = watch->cli;
    if (rc != TIDE_OK) {
        tide_json error;
        tide_json_object(&error);
        tide_json_set_cstr(&error, "status", tide_status_name(rc));
        tide_json_set_cstr(&error, "text", cli->err.text);
        tide_json_set_cstr(&error, "hint", cli->hint);
        tide_json_set(&cli->json, "error", &error);
    }
    tide_buf_clear(&cli->out);
    if (tide_json_line(&cli->json, &cli->out) == TIDE_OK)
        (void)fwrite(cli->out.data, 1, cli->out.bytes, stdout);
}

/* ---- the loop ---- */

/* Until the next look; less if Ctrl-C is pressed or the reader is gone. */
static void wait_for_next(struct watch *watch, uint64_t next_ms)
{
    for (;;) {
        const uint64_t now_ms = tide_world_now_ms(watch->cli->world);
        struct pollfd out = {.fd = STDOUT_FILENO, .events = 0};
        if (now_ms >= next_ms || watch->gone || tide_canceled(watch->cancel) != TIDE_CANCEL_NONE)
            return;
        if (poll(&out, 1, (int)(next_ms - now_ms)) > 0)
            watch->gone = (out.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0;
    }
}

/* The last look is shown by the end of the command, as that of `status` is. */
static tide_status watch_loop(struct watch *watch)
{
    struct cli *cli = watch->cli;
    tide_status rc = look(watch);
    if (rc != TIDE_OK)
        return rc;
    while (!watch->gone && tide_canceled(watch->cancel) == TIDE_CANCEL_NONE) {
        const uint64_t next_ms = tide_world_now_ms(cli->world) + LOOK_MS;
        if (cli->want_json)
            show_json(watch, rc);
        else
            show_text(watch, rc);
        watch->gone = fflush(stdout) != 0;
        look_again_later(cli, rc);
        wait_for_next(watch, next_ms);
        rc = look(watch);
    }
    const unsigned up = lines_of(tide_buf_text(&watch->shown));
    if (up > 0 && watch->terminal) /* over the last rows */
        (void)fprintf(stdout, "\r\033[%uA\033[J", up);
    else if (up > 0)
        (void)fputc('\n', stdout);
    return rc;
}

tide_status status_watch(struct cli *cli)
{
    struct watch watch = {.cli = cli,
                          .cancel = cli_interruptible(cli),
                          .meters = {.mem = cli->mem},
                          .terminal = isatty(STDOUT_FILENO) == 1};
    tide_buf_init(&watch.shown, cli->mem, SCREEN_BYTES_MAX);
    const tide_status rc = watch_loop(&watch);
    status_meters_done(&watch.meters);
    tide_buf_done(&watch.shown);
    return rc;
}
