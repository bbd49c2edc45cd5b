/* tools.h - what programs may read of archived mail (mcp/tool.h): search, a message, a thread.
 *
 * Each call opens the archive read-only and closes it again; a sync may run beside it.  No text of
 * a message or of an argument becomes a path: an account is one of the directories that exist.
 */
#ifndef TIDE_MAIL_TOOLS_H
#define TIDE_MAIL_TOOLS_H

#include "cli/cli.h"
#include "mail/archive/archive.h"
#include "mcp/tool.h"

extern const struct tide_tool mail_tools[]; /* table.c; ends with a NULL name */

enum {
    MAIL_TOOL_SEARCH_MAX = 50,
    MAIL_TOOL_SEARCH_DEFAULT = 20,
    MAIL_TOOL_THREAD_MAX = 20,
    MAIL_TOOL_THREAD_DEFAULT = 10,
    MAIL_TOOL_TEXT_MAX = 64 << 10, /* bytes of a message's text in one result */
    MAIL_TOOL_TEXT_DEFAULT = 16 << 10,
    MAIL_TOOL_TURN_MAX = 16 << 10, /* of each message of a thread */
    MAIL_TOOL_TURN_DEFAULT = 4 << 10,
    MAIL_TOOL_PAGE_BYTES = 96 << 10, /* of all texts of a page of a thread */
    MAIL_TOOL_HEAD_MAX = 1000,       /* of one header */
    MAIL_TOOL_FILES_MAX = 50,
};

/* ---- archive.c ---- */

struct mail_tool_archive {
    char email[256];
    tide_archive *archive;
};
/* The archive of the argument `account`, or the only one.  With several and no argument the error
 * names them. */
tide_status mail_tool_open(struct tide_tool_call *call, struct mail_tool_archive *at_out);
/* Adds account, notice and the shards that cannot be read to the result, and closes. */
tide_status mail_tool_close(struct tide_tool_call *call, struct mail_tool_archive *at,
                            tide_status rc);
tide_status mail_tool_no_message(struct tide_tool_call *call, const struct mail_tool_archive *at,
                                 const char *id);
/* TIDE_CANCELED if the call is no longer wanted. */
tide_status mail_tool_wanted(const struct tide_tool_call *call);

/* The query with saved searches in place of their names (mail/commands/saved.c). */
tide_status mail_tool_query(struct cli *cli, const char *text, tide_buf *query);
/* A message by its id or the beginning of it. */
tide_status mail_tool_find(struct tide_tool_call *call, const struct mail_tool_archive *at,
                           const char *id, struct tide_stored *stored_out);

/* ---- message.c ---- */

/* The fields that the archive knows by itself: id, thread, times, size. */
void mail_tool_stored(const struct tide_stored *stored, tide_json *json);

/* The part of a message that is shown. */
struct mail_tool_part {
    uint64_t offset;    /* of the text */
    uint64_t bytes_max; /* of the text */
    size_t shown;       /* bytes that were added; set by mail_tool_show() */
};
/* Reads the message, and adds its fields with one part of its text. */
tide_status mail_tool_show(struct tide_tool_call *call, const struct mail_tool_archive *at,
                           const struct tide_stored *stored, struct mail_tool_part *part,
                           tide_json *json);

tide_status mail_tool_message(struct tide_tool_call *call);
tide_status mail_tool_search(struct tide_tool_call *call); /* search.c */
tide_status mail_tool_thread(struct tide_tool_call *call); /* thread.c */

#endif
