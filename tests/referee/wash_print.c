/* wash_print.c - washes standard input to standard output.
 *
 * wash_print         one html; its images follow on standard error
 * wash_print --many  many: each is its length in decimal, a line end, its bytes; so is each result
 */
#include "mail/wash/wash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 512 << 20 };

static void must(bool good, const char *what)
{
    if (!good) {
        (void)fprintf(stderr, "wash_print: %s\n", what);
        exit(1);
    }
}

static void print_list(const char *prefix, const tide_text *items, size_t count)
{
    for (size_t i = 0; i < count; i++)
        (void)fprintf(stderr, "%s%zu %.*s\n", prefix, i, (int)items[i].bytes, items[i].data);
}

static void wash_one(tide_text html, bool many)
{
    tide_buf out;
    tide_arena arena;
    struct tide_washed washed;
    tide_buf_init(&out, NULL, ROOM);
    tide_arena_init(&arena, tide_mem_heap(), ROOM);
    must(tide_html_wash(html, &arena, &out, &washed) == TIDE_OK, "it failed");
    if (many)
        (void)printf("%zu\n", out.bytes);
    must(fwrite(tide_buf_cstr(&out), 1, out.bytes, stdout) == out.bytes, "cannot write");
    if (!many) {
        print_list("img/", washed.remote, washed.remote_count);
        print_list("cid/", washed.cids, washed.cids_count);
    }
    tide_arena_done(&arena);
    tide_buf_done(&out);
}

int main(int argc, char **argv)
{
    tide_buf in;
    char piece[65536];
    size_t bytes = 0;
    tide_buf_init(&in, NULL, ROOM);
    while ((bytes = fread(piece, 1, sizeof piece, stdin)) > 0)
        must(tide_buf_add(&in, piece, bytes) == TIDE_OK, "the input is too large");
    if (argc > 1 && strcmp(argv[1], "--many") == 0) {
        const char *at = tide_buf_cstr(&in), *end = at + in.bytes;
        while (at < end) {
            char *line = NULL;
            bytes = (size_t)strtoul(at, &line, 10);
            must(*line == '\n' && bytes < (size_t)(end - line), "the input is not --many");
            wash_one((tide_text){line + 1, bytes}, true);
            at = line + 1 + bytes;
        }
    } else {
        wash_one(tide_buf_text(&in), false);
    }
    tide_buf_done(&in);
    must(fflush(stdout) == 0, "cannot write");
    return 0;
}
