#include "cli/run/display.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { LINE_MS = 10000, EVENT_MS = 1000, BLOCK_BYTES_MAX = 1 << 20 };

static void screen_size(unsigned *columns_out, unsigned *rows_out)
{
    struct winsize size = {0};
    *columns_out = 80;
    *rows_out = 24;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0)
        return;
    if (size.ws_col > 0)
        *columns_out = size.ws_col;
    if (size.ws_row > 0)
        *rows_out = size.ws_row;
}

static void write_out(const char *data, size_t bytes)
{
    while (bytes > 0) {
        const ssize_t wrote = write(STDERR_FILENO, data, bytes);
        if (wrote <= 0)
            return; /* the terminal is closed: the work continues */
        data += wrote;
        bytes -= (size_t)wrote;
    }
}

/* The lines of the block that is on the terminal.  One that became narrower may have wrapped them to
 * more rows, or cut them: moving up by as many rows as they would take wrapped would write over what
 * was there before the block.  So a part of the old block may stay above the new one; nothing of
 * anyone else's is lost. */
static unsigned lines_drawn(const struct cli_display *display)
{
    const tide_text text = tide_buf_text(&display->drawn);
    unsigned lines = 0;
    for (size_t i = 0; i < text.bytes; i++)
        lines += text.data[i] == '\n';
    return lines;
}

/* A single write: no flicker, and a kill leaves no partial output. */
static void draw(struct cli_display *display, const struct cli_live *lives, size_t count)
{
    unsigned columns = 0;
    unsigned rows = 0;
    unsigned lines = 0;
    tide_buf out;
    screen_size(&columns, &rows);
    const unsigned up = lines_drawn(display);
    tide_buf_init(&out, display->cli->mem, BLOCK_BYTES_MAX);
    tide_buf_clear(&display->drawn);
    if (cli_live_block(display->of, lives, count, columns, rows, display->color, &display->drawn,
                       &lines) == TIDE_OK) {
        (void)tide_buf_add_text(&out, "\033[?25l\r");
        if (up > 0)
            (void)tide_buf_print(&out, "\033[%uA", up);
        const tide_text text = tide_buf_text(&display->drawn);
        for (size_t i = 0; i < text.bytes; i++) {
            if (text.data[i] == '\n')
                (void)tide_buf_add_text(&out, "\033[K");
            (void)tide_buf_add(&out, &text.data[i], 1);
        }
        (void)tide_buf_add_text(&out, "\033[J\033[?25h");
        write_out(tide_buf_cstr(&out), out.bytes);
    }
    display->columns = columns;
    tide_buf_done(&out);
}

static void set_or_null(tide_json *json, const char *field, uint64_t number)
{
    if (number == CLI_UNKNOWN)
        tide_json_set_null(json, field);
    else
        tide_json_set_u64(json, field, number);
}

static void set_rate(tide_json *json, const char *field, bool known, double per_s)
{
    if (json->value != NULL)
        (void)json_object_set_new(json->value, field, known ? json_real(per_s) : json_null());
}

/* {"event":"progress",...}: one object per line. */
static void event(const struct cli_display *display, const struct cli_live *live, bool handed_over,
                  tide_buf *out)
{
    const struct cli_columns *of = display->of;
    tide_json json;
    tide_json_object(&json);
    tide_json_set_cstr(&json, "event", "progress");
    tide_json_set_u64(&json, "at_unix_ms", tide_world_now_unix_ms(display->cli->world));
    tide_json_set_cstr(&json, "system", display->system);
    tide_json_set_cstr(&json, "account", live->name);
    tide_json_set_cstr(&json, "phase", live->phase[0] == '\0' ? NULL : live->phase);
    tide_json_set_bool(&json, "handed_over", handed_over);
    tide_json_set_u64(&json, of->done_json, live->done);
    set_or_null(&json, "total", live->total);
    if (of->tidemark)
        tide_json_set_u64(&json, "watermark_unix_ms", live->tidemark_ms);
    tide_json_set_u64(&json, "bytes", live->bytes);
    set_rate(&json, of->rate_json, live->rate_known, live->done_per_s);
    set_rate(&json, "bytes_per_s", live->rate_known, live->bytes_per_s);
    for (size_t i = 0; i < CLI_LIVE_MORE_MAX && of->more[i].name != NULL; i++)
        tide_json_set_u64(&json, of->more[i].json, live->more[i]);
    tide_json_set_u64(&json, "quota_used_units", live->quota_used);
    tide_json_set_u64(&json, "quota_max_units", live->quota_max);
    tide_json_set_u64(&json, "in_flight", live->in_flight);
    tide_json_set_u64(&json, "retried", live->retried);
    tide_json_set_u64(&json, "bad", live->bad);
    set_or_null(&json, "left_ms", live->left_ms);
    tide_json_set_cstr(&json, "note", live->note[0] == '\0' ? NULL : live->note);
    (void)tide_json_line(&json, out);
    tide_json_done(&json);
}

/* A terminal that changed its size is redrawn at once. */
static bool is_due(const struct cli_display *display, uint64_t now_ms, bool fresh)
{
    unsigned columns = 0;
    unsigned rows = 0;
    if (display->cli->want_json)
        return now_ms - display->shown_ms >= EVENT_MS;
    if (!display->terminal)
        return now_ms - display->shown_ms >= LINE_MS;
    screen_size(&columns, &rows);
    return fresh || columns != display->columns;
}

void cli_display_show(struct cli_display *display, const struct cli_live *lives, size_t count,
                      bool handed_over, bool fresh, bool last)
{
    const uint64_t now_ms = tide_world_now_ms(display->cli->world);
    tide_buf out;
    if (display->cli->quiet || !(last || is_due(display, now_ms, fresh)))
        return;
    display->shown_ms = now_ms;
    if (display->terminal && !display->cli->want_json) {
        draw(display, lives, count);
        return;
    }
    tide_buf_init(&out, display->cli->mem, BLOCK_BYTES_MAX);
    for (size_t i = 0; i < count; i++) {
        if (display->cli->want_json)
            event(display, &lives[i], handed_over, &out);
        else
            (void)cli_live_line(display->of, &lives[i], &out);
    }
    write_out(tide_buf_cstr(&out), out.bytes);
    tide_buf_done(&out);
}

void cli_display_open(struct cli *cli, const char *system, const struct cli_columns *of,
                      struct cli_display *display)
{
    const char *term = getenv("TERM");
    const char *no_color = getenv("NO_COLOR");
    *display = (struct cli_display){.cli = cli, .system = system, .of = of};
    tide_buf_init(&display->drawn, cli->mem, BLOCK_BYTES_MAX);
    display->terminal = isatty(STDERR_FILENO) == 1 && term != NULL && strcmp(term, "dumb") != 0;
    display->color = display->terminal && (no_color == NULL || no_color[0] == '\0');
    display->shown_ms = tide_world_now_ms(cli->world);
}

void cli_display_close(struct cli_display *display)
{
    if (display->cli != NULL)
        tide_buf_done(&display->drawn);
    *display = (struct cli_display){.cli = NULL};
}
