/* rows.h - the rows of a list by their number, of which a few pages are in memory.
 *
 * A list is what a search finds, in pages of BROWSE_PAGE_ROWS, each known by the token of the page
 * before it.  Tokens are kept of all pages that were reached, rows of the last that were looked at:
 * so a list of any length can be walked through, back and forth, in bounded memory.
 *
 * Invariants:
 *   BRW1  at most BROWSE_PAGES_MAX pages have their rows in memory.
 *   BRW2  every known page but the last has exactly BROWSE_PAGE_ROWS rows.
 */
#ifndef TIDE_MAIL_BROWSE_ROWS_H
#define TIDE_MAIL_BROWSE_ROWS_H

#include "base/json.h"
#include "base/mem.h"

enum { BROWSE_PAGE_ROWS = 200, BROWSE_PAGES_MAX = 32, BROWSE_PAGES_KNOWN_MAX = 1 << 20 };

struct browse_page {
    char *after;   /* the token it continues after; NULL: the first page */
    json_t *rows;  /* an array; NULL: not in memory */
    uint64_t used; /* when it was last looked at */
};

struct browse_rows {
    tide_mem *mem;
    struct browse_page *pages;
    size_t pages_count, pages_capacity;
    size_t last_rows; /* of the last page, once the list is complete */
    bool complete;    /* the last page has no next one */
    uint64_t looks;
};

void browse_rows_init(struct browse_rows *rows, tide_mem *mem);
void browse_rows_done(struct browse_rows *rows); /* a zeroed one is fine */
/* How many rows are known to exist; more may follow unless the list is complete. */
size_t browse_rows_known(const struct browse_rows *rows);
/* The row, borrowed until the next page is put; NULL: it is not in memory, or does not exist. */
const json_t *browse_rows_at(struct browse_rows *rows, size_t index);
/* The page to load so that rows [first, first + count) can be shown; false: none is missing. */
bool browse_rows_missing(const struct browse_rows *rows, size_t first, size_t count,
                         size_t *page_out);
const char *browse_rows_after(const struct browse_rows *rows, size_t page); /* NULL: the first */
/* Takes the answer of `mail search --json` for that page. */
tide_status browse_rows_put(struct browse_rows *rows, size_t page, const json_t *answer);

#endif
