/* searchconsole_rows.h - extracts rows from an answer while it streams in.
 *
 * A full page is 25,000 small objects, 4.6 MB: a JSON library would build a tree of
 * 300,000 nodes first.  Here each row is parsed in place and passed to the sink; only
 * the rest of the answer goes to the library.
 *
 * It repairs nothing: text that is not JSON, or a row without its keys or its clicks
 * and impressions, is TIDE_SERVER.
 *
 * Invariants:
 *   GSR1  TIDE_OK at the end means: the whole text is one JSON object, and every row of "rows" was
 *         passed to the sink, in order, once; and the other promises of net/api/list.h.
 */
#ifndef TIDE_CLOUD_SEARCHCONSOLE_ROWS_H
#define TIDE_CLOUD_SEARCHCONSOLE_ROWS_H

#include "base/json.h"
#include "cloud/searchconsole.h"
#include "net/api/list.h"

enum { TIDE_SC_ROW_BYTES_MAX = 256 << 10 };

/* Embedded. */
struct tide_sc_rows {
    uint32_t dimensions;
    const struct tide_sc_sink *sink; /* borrowed */
    struct tide_api_list list;
    tide_buf text[TIDE_SC_DIMENSIONS]; /* unescaped keys */
    const char *wrong;                 /* with a row; a literal */
    uint64_t bytes;
};

void tide_sc_rows_init(struct tide_sc_rows *self, uint32_t dimensions,
                       const struct tide_sc_sink *sink, tide_mem *mem);
void tide_sc_rows_done(struct tide_sc_rows *self);
/* Another answer begins. */
void tide_sc_rows_restart(void *self);
/* A tide_sink_write. */
tide_status tide_sc_rows_write(void *self, const char *bytes, size_t count);
/* The answer ended; fills all of the page. */
tide_status tide_sc_rows_end(struct tide_sc_rows *self, struct tide_sc_page *page_out,
                             tide_error *err);

#endif
