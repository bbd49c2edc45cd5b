/* width.c - how many columns text takes on a terminal: Chinese characters take two, accents that
 * combine with the letter before them none. */
#include "cli/cli.h"

#include <glib.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { COLUMNS_MIN = 20, COLUMNS_MAX = 1000 };

unsigned cli_char_width(tide_text text, size_t *bytes_out)
{
    const size_t bytes = tide_utf8_bytes(text);
    *bytes_out = bytes == 0 ? 1 : bytes;
    if (bytes == 0)
        return 1;
    if (bytes == 1)
        return 1; /* without GLib, which is loaded when it is needed */
    const gunichar c = g_utf8_get_char(text.data);
    return g_unichar_iszerowidth(c) ? 0 : g_unichar_iswide(c) ? 2 : 1;
}

unsigned cli_text_width(tide_text text)
{
    unsigned width = 0;
    for (size_t bytes; text.bytes > 0; text.data += bytes, text.bytes -= bytes)
        width += cli_char_width(text, &bytes);
    return width;
}

tide_text cli_text_fit(tide_text text, unsigned columns)
{
    size_t used = 0;
    unsigned width = 0;
    for (size_t bytes; used < text.bytes; used += bytes) {
        width += cli_char_width((tide_text){text.data + used, text.bytes - used}, &bytes);
        if (width > columns)
            break;
    }
    return (tide_text){text.data, used};
}

unsigned cli_columns(void)
{
    struct winsize size = {0};
    const char *set = getenv("COLUMNS");
    uint64_t columns = 0;
    if (set == NULL || !tide_text_to_u64(tide_text_of(set), &columns) || columns == 0) {
        if (isatty(STDOUT_FILENO) != 1)
            return 0;
        columns =
            ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
    }
    columns = columns < COLUMNS_MIN ? COLUMNS_MIN : columns;
    return columns > COLUMNS_MAX ? COLUMNS_MAX : (unsigned)columns;
}
