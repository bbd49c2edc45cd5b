#include "mail/browse/rows.h"

#include "base/check.h"

#include <string.h>

void browse_rows_init(struct browse_rows *rows, tide_mem *mem)
{
    *rows = (struct browse_rows){.mem = mem};
}

void browse_rows_done(struct browse_rows *rows)
{
    for (size_t i = 0; i < rows->pages_count; i++) {
        struct browse_page *page = &rows->pages[i];
        json_decref(page->rows);
        if (page->after != NULL)
            tide_mem_free(rows->mem, page->after, strlen(page->after) + 1);
    }
    if (rows->mem != NULL)
        tide_mem_free(rows->mem, rows->pages, rows->pages_capacity * sizeof *rows->pages);
    *rows = (struct browse_rows){.mem = rows->mem};
}

size_t browse_rows_known(const struct browse_rows *rows)
{
    if (rows->pages_count == 0)
        return 0;
    const size_t whole = (rows->pages_count - 1) * BROWSE_PAGE_ROWS;
    return whole + (rows->complete ? rows->last_rows : 0);
}

const json_t *browse_rows_at(struct browse_rows *rows, size_t index)
{
    const size_t number = index / BROWSE_PAGE_ROWS;
    if (number >= rows->pages_count)
        return NULL;
    struct browse_page *page = &rows->pages[number];
    page->used = ++rows->looks;
    return json_array_get(page->rows, index % BROWSE_PAGE_ROWS);
}

const char *browse_rows_after(const struct browse_rows *rows, size_t page)
{
    return page < rows->pages_count ? rows->pages[page].after : NULL;
}

/* A page beyond the last known one cannot be asked for: the ones before it tell where it begins. */
bool browse_rows_missing(const struct browse_rows *rows, size_t first, size_t count,
                         size_t *page_out)
{
    *page_out = 0;
    if (rows->pages_count == 0)
        return true;
    const size_t to = (first + (count == 0 ? 0 : count - 1)) / BROWSE_PAGE_ROWS;
    for (size_t page = first / BROWSE_PAGE_ROWS; page <= to && page < rows->pages_count; page++) {
        *page_out = page;
        if (rows->pages[page].rows == NULL)
            return true;
    }
    *page_out = rows->pages_count - 1; /* its rows tell where the next one begins */
    return to >= rows->pages_count && rows->pages[rows->pages_count - 1].rows == NULL;
}

static tide_status page_add(struct browse_rows *rows, const char *after)
{
    char *kept = NULL;
    if (after != NULL) {
        const size_t bytes = strlen(after) + 1;
        kept = tide_mem_new(rows->mem, bytes);
        if (kept == NULL)
            return TIDE_NO_MEMORY;
        memcpy(kept, after, bytes);
    }
    if (!TIDE_GROW_IN(rows->mem, rows->pages, rows->pages_capacity, rows->pages_count + 1,
                      BROWSE_PAGES_KNOWN_MAX)) {
        if (kept != NULL)
            tide_mem_free(rows->mem, kept, strlen(kept) + 1);
        return TIDE_NO_MEMORY;
    }
    rows->pages[rows->pages_count++] = (struct browse_page){.after = kept};
    return TIDE_OK;
}

/* BRW1: the page that was not looked at for the longest time gives way. */
static void make_room(struct browse_rows *rows)
{
    struct browse_page *oldest = NULL;
    size_t loaded = 0;
    for (size_t i = 0; i < rows->pages_count; i++) {
        struct browse_page *page = &rows->pages[i];
        if (page->rows == NULL)
            continue;
        loaded++;
        if (oldest == NULL || page->used < oldest->used)
            oldest = page;
    }
    if (loaded < BROWSE_PAGES_MAX)
        return;
    json_decref(oldest->rows);
    oldest->rows = NULL;
}

tide_status browse_rows_put(struct browse_rows *rows, size_t page, const json_t *answer)
{
    json_t *messages = json_object_get(answer, "messages");
    const char *next = json_string_value(json_object_get(answer, "next"));
    if (rows->pages_count == 0)
        TIDE_TRY(page_add(rows, NULL));
    TIDE_ASSERT(page < rows->pages_count);
    const bool is_last = page + 1 == rows->pages_count;
    const bool goes_on = next != NULL && json_array_size(messages) == BROWSE_PAGE_ROWS;
    if (rows->pages[page].rows == NULL)
        make_room(rows);
    json_decref(rows->pages[page].rows);
    rows->pages[page].rows = json_incref(messages);
    rows->pages[page].used = ++rows->looks;
    if (!is_last)
        return TIDE_OK;
    rows->complete = !goes_on;
    rows->last_rows = json_array_size(messages);
    return goes_on ? page_add(rows, next) : TIDE_OK;
}
