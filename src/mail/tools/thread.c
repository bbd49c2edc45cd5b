/* thread.c - `mail_thread`: the messages of a conversation, oldest first, a page at a time.
 *
 * A page continues after the id of a message, not after a number of messages: mail that arrives
 * meanwhile moves nothing. */
#include "mail/tools/tools.h"

struct turns {
    struct tide_tool_call *call;
    const struct mail_tool_archive *at;
    tide_json list;
    const char *after; /* skip up to this id; NULL: it was seen, or the first page */
    uint64_t limit, bytes_each;
    size_t bytes; /* of all texts so far */
    bool more;
    char last[TIDE_GMAIL_ID_BYTES_MAX + 1];
    tide_status rc;
};

static bool is_full(const struct turns *turns)
{
    return json_array_size(turns->list.value) >= turns->limit ||
           turns->bytes >= MAIL_TOOL_PAGE_BYTES;
}

/* A message that cannot be read is named; the others are shown. */
static void unread_add(struct turns *turns, const struct tide_stored *stored)
{
    struct cli *cli = turns->call->cli;
    tide_json one;
    tide_json_object(&one);
    mail_tool_stored(stored, &one);
    tide_json_set_cstr(&one, "problem", cli->err.text);
    tide_json_append(&turns->list, &one);
    cli->err = (tide_error){TIDE_OK, 0, ""};
    cli->hint[0] = '\0';
}

static bool turn_add(const struct tide_stored *stored, void *arg)
{
    struct turns *turns = arg;
    struct mail_tool_part part = {.bytes_max = turns->bytes_each};
    tide_json one;
    if (turns->after != NULL) {
        if (strcmp(turns->after, stored->gmail_id) == 0)
            turns->after = NULL;
        return true;
    }
    turns->more = is_full(turns);
    if (turns->more)
        return false;
    tide_json_object(&one);
    turns->rc = mail_tool_show(turns->call, turns->at, stored, &part, &one);
    if (turns->rc == TIDE_OK) {
        tide_json_append(&turns->list, &one);
    } else {
        tide_json_done(&one);
        if (turns->rc != TIDE_CORRUPT)
            return false;
        unread_add(turns, stored);
        turns->rc = TIDE_OK;
    }
    turns->bytes += part.shown;
    memcpy(turns->last, stored->gmail_id, sizeof turns->last);
    return true;
}

/* Of a message, or the argument itself: clients have the ids of both. */
static tide_status thread_of(struct tide_tool_call *call, const struct mail_tool_archive *at,
                             struct tide_stored *stored_out)
{
    const char *id = tide_tool_text(call, "id");
    *stored_out = (struct tide_stored){.shard = 0};
    tide_status rc = tide_archive_find(at->archive, tide_text_of(id), stored_out, &call->cli->err);
    if (rc != TIDE_NOT_FOUND)
        return rc;
    if (strlen(id) > TIDE_GMAIL_ID_BYTES_MAX)
        return mail_tool_no_message(call, at, id);
    *stored_out = (struct tide_stored){.shard = 0};
    memcpy(stored_out->thread_id, id, strlen(id) + 1);
    call->cli->err = (tide_error){TIDE_OK, 0, ""};
    return TIDE_OK;
}

static tide_status turns_show(struct turns *turns, const struct tide_stored *stored)
{
    struct cli *cli = turns->call->cli;
    tide_status rc = TIDE_OK;
    if (stored->thread_id[0] == '\0') /* a message of no thread */
        (void)turn_add(stored, turns);
    else
        rc = tide_archive_thread(turns->at->archive, tide_text_of(stored->thread_id), turn_add,
                                 turns, &cli->err);
    rc = rc == TIDE_OK ? turns->rc : rc;
    if (rc == TIDE_OK && turns->after != NULL)
        rc = cli_fail(cli, TIDE_NOT_FOUND, "Take \"next\" of the result before.",
                      "the thread has no message \"%.100s\"", turns->after);
    return rc;
}

tide_status mail_tool_thread(struct tide_tool_call *call)
{
    struct mail_tool_archive at;
    struct tide_stored stored;
    struct turns turns = {.call = call,
                          .at = &at,
                          .after = tide_tool_text(call, "after"),
                          .limit = tide_tool_number(call, "limit", MAIL_TOOL_THREAD_DEFAULT),
                          .bytes_each =
                              tide_tool_number(call, "max_bytes_each", MAIL_TOOL_TURN_DEFAULT)};
    const bool first = turns.after == NULL;
    tide_json_array(&turns.list);
    tide_status rc = mail_tool_open(call, &at);
    if (rc == TIDE_OK)
        rc = thread_of(call, &at, &stored);
    if (rc == TIDE_OK)
        rc = turns_show(&turns, &stored);
    if (rc == TIDE_OK && first && json_array_size(turns.list.value) == 0)
        rc = mail_tool_no_message(call, &at, tide_tool_text(call, "id"));
    if (rc == TIDE_OK) {
        tide_json_set_cstr(call->result, "thread", stored.thread_id);
        if (turns.more)
            tide_json_set_cstr(call->result, "next", turns.last);
    }
    tide_json_set(call->result, "messages", &turns.list);
    return mail_tool_close(call, &at, rc);
}
