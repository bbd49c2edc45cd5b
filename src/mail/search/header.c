/* header.c - tests a header that the index does not have, in the message itself.
 *
 * list: and deliveredto: are rare, and most queries have a word or a date beside them: then only the
 * messages that match the rest are read.  Alone they read every message, newest first. */
#include "mail/search/plan.h"

#include "base/check.h"
#include "mail/mime/header.h"
#include "mail/mime/message.h"

#include <strings.h>

enum { HEAD_BYTES_MAX = 1 << 20 };

/* The headers by which Gmail knows it; ends with NULL. */
static const char *const lists[] = {"list-id", "list-post", "mailing-list", NULL};
static const char *const delivered[] = {"delivered-to", NULL};

static bool is_named(tide_text name, const char *const *names)
{
    for (; *names != NULL; names++)
        if (name.bytes == strlen(*names) && strncasecmp(name.data, *names, name.bytes) == 0)
            return true;
    return false;
}

/* Whether a header of these names has the words or the address. */
static tide_status headers_hold(struct tide_searching *searching, tide_text raw,
                                const struct tide_plan *plan, bool *holds_out)
{
    const char *const *names = plan->column[0] == 'l' ? lists : delivered;
    raw.bytes = raw.bytes < HEAD_BYTES_MAX ? raw.bytes : HEAD_BYTES_MAX;
    while (raw.bytes > 0 && !*holds_out) {
        struct tide_mail_header header;
        size_t bytes = 0, lines = 0;
        const tide_header_line line = tide_header_read(raw, '\n', &header, &bytes, &lines);
        TIDE_ASSERT(bytes > 0 && bytes <= raw.bytes);
        if (line == TIDE_HEADER_LINE_BLANK)
            break;
        if (line == TIDE_HEADER_LINE_NAMED && is_named(header.name, names))
            TIDE_TRY(tide_header_text_holds(searching, plan, header.value, holds_out));
        raw.data += bytes;
        raw.bytes -= bytes;
    }
    return TIDE_OK;
}

/* The bytes of a message; 0: it has none any more. */
static tide_status content_of(struct tide_walk *walk, int64_t id, int64_t *content_out)
{
    tide_db *db = &walk->shard->db;
    tide_auto_stmt *row = tide_db_stmt(db, TIDE_SHARD_AT);
    bool there = false;
    (void)sqlite3_bind_int64(row, 1, id);
    TIDE_TRY(tide_db_step(db, row, &there, walk->searching->err));
    if (there) {
        struct tide_stored stored;
        tide_shard_stored(walk->shard, row, &stored);
        *content_out = stored.content;
    }
    return TIDE_OK;
}

tide_status tide_header_holds(struct tide_walk *walk, const struct tide_plan *plan, int64_t id,
                              bool *holds_out)
{
    struct tide_searching *searching = walk->searching;
    tide_auto_buf raw = tide_buf_in(searching->mem, TIDE_MESSAGE_BYTES_MAX);
    int64_t content = 0;
    *holds_out = false;
    TIDE_ASSERT(searching->packer != NULL);
    TIDE_TRY(tide_searching_wanted(searching));
    TIDE_TRY(content_of(walk, id, &content));
    if (content == 0)
        return TIDE_OK;
    const tide_status rc =
        tide_shard_raw(walk->shard, searching->packer, content, &raw, searching->err);
    if (rc == TIDE_CORRUPT) /* it has no headers that can be read; verify reports it */
        return TIDE_OK;
    TIDE_TRY(rc);
    return headers_hold(searching, tide_buf_text(&raw), plan, holds_out);
}
