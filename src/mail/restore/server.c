/* server.c - other calls of a restore: which labels the server has, whether an insert whose answer
 * was lost has happened, and which messages are in place. */
#include "mail/restore/inside.h"

#include "base/check.h"
#include "mail/mime/message.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
    MESSAGE_ID_BYTES_MAX = 900, /* in a query */
    ARENA_BYTES_MAX = 64 << 20,
    SLACK_S = 3600, /* between our clock and the server's */
    MADE_MAX = 20000,
};

/* ---- labels ---- */

static tide_status labels_read(tide_restore *restore, tide_job *job, tide_error *err)
{
    if (restore->labels != NULL)
        return TIDE_OK;
    tide_status rc = TIDE_OK;
    do
        rc = tide_gmail_labels(restore->user->gmail, job, &restore->labels, err);
    while (tide_mail_wait(job, rc, TIDE_MAIL_WAIT_WINDOW_MS));
    return rc;
}

static void labels_forget(tide_restore *restore)
{
    json_decref(restore->labels);
    restore->labels = NULL;
}

/* The id of the server's label with that id or name; NULL: it has none. */
static const char *label_there(const tide_restore *restore, const char *key, const char *value)
{
    size_t index = 0;
    const json_t *label = NULL;
    json_array_foreach(json_object_get(restore->labels, "labels"), index, label)
    {
        const char *has = json_string_value(json_object_get(label, key));
        if (has != NULL && strcasecmp(has, value) == 0)
            return json_string_value(json_object_get(label, "id"));
    }
    return NULL;
}

static tide_status made_add(tide_restore *restore, const char *was, const char *is, tide_error *err)
{
    if (!TIDE_GROW_IN(restore->mem, restore->made, restore->made_capacity, restore->made_count + 1,
                      MADE_MAX))
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for a label");
    struct tide_label_made *one = &restore->made[restore->made_count++];
    (void)snprintf(one->was, sizeof one->was, "%s", was);
    (void)snprintf(one->is, sizeof one->is, "%s", is);
    restore->state.labels_lost += is[0] == '\0';
    return TIDE_OK;
}

/* Creates a label with its former name.  Safe to repeat: names are unique on the server. */
static tide_status label_make(tide_restore *restore, tide_job *job, const char *was,
                              const char *name, tide_error *err)
{
    uint64_t ticket = 0;
    tide_auto_buf id = tide_buf_in(restore->mem, TIDE_GMAIL_ID_BYTES_MAX);
    tide_status rc = TIDE_OK;
    do
        rc = tide_gmail_label_create(restore->user->gmail, job, tide_text_of(name), &id, err);
    while (tide_mail_wait(job, rc, TIDE_MAIL_WAIT_WINDOW_MS));
    labels_forget(restore); /* the list is outdated or uncertain now */
    if (rc == TIDE_OK)
        rc = made_add(restore, was, tide_buf_cstr(&id), err);
    if (rc == TIDE_OK)
        rc = tide_archive_label_name(restore->archive, tide_buf_text(&id), tide_text_of(name),
                                     TIDE_TEXT("user"), &ticket, err);
    if (rc == TIDE_OK)
        restore->state.labels++;
    if (rc == TIDE_EXISTS) /* a name that differs in case, or created just now */
        rc =
            tide_error_set(err, TIDE_SERVER, "the label \"%.100s\" exists but is not listed", name);
    return rc;
}

static const struct tide_label_made *made_find(const tide_restore *restore, const char *was)
{
    for (size_t i = 0; i < restore->made_count; i++)
        if (strcmp(restore->made[i].was, was) == 0)
            return &restore->made[i];
    return NULL;
}

/* Makes sure that the label exists, and records its id in `made` if it is a new one.  One of
 * Gmail's own labels that the server does not list, and one without a known name, are lost. */
static tide_status label_care(tide_restore *restore, tide_job *job, const char *was,
                              tide_error *err)
{
    struct tide_label_called called;
    if (made_find(restore, was) != NULL)
        return TIDE_OK;
    tide_status rc = labels_read(restore, job, err);
    if (rc != TIDE_OK || label_there(restore, "id", was) != NULL)
        return rc;
    rc = tide_archive_label_called(restore->archive, tide_text_of(was), &called, err);
    if (rc == TIDE_NOT_FOUND || (rc == TIDE_OK && !called.user)) {
        TIDE_SEEN("restore: a label is lost");
        return made_add(restore, was, "", err);
    }
    if (rc != TIDE_OK)
        return rc;
    const char *same = label_there(restore, "name", called.name);
    if (same != NULL)
        return made_add(restore, was, same, err);
    TIDE_SEEN("restore: a label was made again");
    return label_make(restore, job, was, called.name, err);
}

/* Labels that cannot or must not be set: drafts and chats are restored as plain messages, and a
 * message that was in the trash would be lost there again. */
static bool label_wanted(tide_text label, bool insert)
{
    static const tide_text never[] = {{"TRASH", 5}, {"DRAFT", 5}, {"CHAT", 4}};
    for (size_t i = 0; i < sizeof never / sizeof never[0]; i++)
        if (tide_text_equal(label, never[i]))
            return false;
    return label.bytes > 0 && label.bytes <= TIDE_GMAIL_ID_BYTES_MAX &&
           (insert || !tide_text_equal(label, TIDE_TEXT("SENT")));
}

/* The n-th label of a list separated by spaces; false at its end. */
static bool label_next(const char **list, tide_text *label_out)
{
    while (**list == ' ')
        ++*list;
    *label_out = (tide_text){*list, strcspn(*list, " ")};
    *list += label_out->bytes;
    return label_out->bytes > 0;
}

tide_status tide_restore_labels(tide_restore *restore, tide_job *job, const char *labels,
                                bool insert, tide_text labels_out[TIDE_RESTORE_LABELS_MAX],
                                size_t *count_out, tide_error *err)
{
    tide_text label;
    /* All labels first: recorded texts may move while others are added. */
    for (const char *list = labels; label_next(&list, &label);) {
        char was[TIDE_GMAIL_ID_BYTES_MAX + 1];
        if (!label_wanted(label, insert))
            continue;
        (void)snprintf(was, sizeof was, "%.*s", (int)label.bytes, label.data);
        TIDE_TRY(label_care(restore, job, was, err));
    }
    size_t count = 0;
    for (const char *list = labels; label_next(&list, &label);) {
        char was[TIDE_GMAIL_ID_BYTES_MAX + 1];
        if (!label_wanted(label, insert) || count == TIDE_RESTORE_LABELS_MAX)
            continue;
        (void)snprintf(was, sizeof was, "%.*s", (int)label.bytes, label.data);
        const struct tide_label_made *made = made_find(restore, was);
        const tide_text now = made == NULL ? label : tide_text_of(made->is);
        if (now.bytes > 0)
            labels_out[count++] = now;
    }
    *count_out = count;
    return TIDE_OK;
}

/* ---- an insert whose answer was lost ---- */

struct look {
    tide_restore *restore;
    tide_job *job;
    const struct tide_piece *piece;
    uint64_t first_ms; /* it was not inserted before this time */
    char candidates[TIDE_RESTORE_COMPARED_MAX][TIDE_GMAIL_ID_BYTES_MAX + 1];
    size_t count;
    bool too_many;
    bool found;
    struct tide_found_again again;
};

struct facts_ask {
    uint32_t account;
    tide_text gmail_id;
    struct tide_removal_facts facts;
};

static tide_status facts_read(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct facts_ask *ask = arg;
    return tide_removal_facts(tide_transaction_rows(transaction), ask->account, ask->gmail_id,
                              &ask->facts, err);
}

static bool was_compared(const tide_restore *restore, const char *id)
{
    for (size_t i = 0; i < restore->compared_count; i++)
        if (strcmp(restore->compared[i], id) == 0)
            return true;
    return false;
}

/* Compares a message that a sync stored meanwhile; one that was stored before the first manifest
 * named ours is another message with the same bytes. */
static tide_status look_local(struct look *look, const char *id, bool *known_out, tide_error *err)
{
    struct tide_stored stored;
    int64_t stored_ms = 0;
    tide_archive *archive = look->restore->archive;
    tide_status rc = tide_archive_find(archive, tide_text_of(id), &stored, err);
    *known_out = rc == TIDE_OK;
    if (rc == TIDE_NOT_FOUND)
        return TIDE_OK;
    if (rc == TIDE_OK)
        rc = tide_archive_stored_ms(archive, &stored, &stored_ms, err);
    if (rc != TIDE_OK || stored.gone || strcmp(stored.gmail_id, id) != 0 ||
        stored_ms < (int64_t)look->first_ms ||
        memcmp(stored.hash, look->piece->removal.hash, sizeof stored.hash) != 0)
        return rc;
    TIDE_SEEN("restore: a sync had fetched what was inserted");
    look->found = true;
    (void)snprintf(look->again.id, sizeof look->again.id, "%s", id);
    (void)snprintf(look->again.thread_id, sizeof look->again.thread_id, "%s", stored.thread_id);
    return TIDE_OK;
}

static tide_status look_candidate(struct look *look, const char *id, tide_error *err)
{
    struct facts_ask ask = {.account = look->restore->account, .gmail_id = tide_text_of(id)};
    bool known = false;
    if (ask.gmail_id.bytes == 0 || ask.gmail_id.bytes > TIDE_GMAIL_ID_BYTES_MAX)
        return tide_error_set(err, TIDE_SERVER, "a listing has an entry without an id");
    TIDE_TRY(tide_transact(look->restore->mail->engine, facts_read, &ask, err));
    if (ask.facts.claimed || was_compared(look->restore, id))
        return TIDE_OK;
    TIDE_TRY(look_local(look, id, &known, err));
    if (known)
        return TIDE_OK;
    if (look->count == TIDE_RESTORE_COMPARED_MAX) {
        look->too_many = true;
        return TIDE_OK;
    }
    (void)snprintf(look->candidates[look->count++], sizeof look->candidates[0], "%s", id);
    return TIDE_OK;
}

static tide_status look_listed(struct look *look, const char *query, tide_error *err)
{
    char token[2048] = "";
    tide_status rc = TIDE_OK;
    for (int page_number = 0; rc == TIDE_OK && !look->found; page_number++) {
        struct tide_gmail_page page = {0};
        if (page_number == TIDE_RESTORE_LOOK_PAGES_MAX) {
            look->too_many = true;
            break;
        }
        do
            rc = tide_gmail_list(look->restore->user->gmail, look->job, query, tide_text_of(token),
                                 &page, err);
        while (tide_mail_wait(look->job, rc, TIDE_MAIL_WAIT_WINDOW_MS));
        size_t index = 0;
        const json_t *entry = NULL;
        json_array_foreach(page.ids, index, entry) if (rc == TIDE_OK && !look->found) rc =
            look_candidate(look, json_string_value(json_object_get(entry, "id")), err);
        const bool last = page.next.bytes == 0 || page.next.bytes >= sizeof token;
        if (rc == TIDE_OK && !last)
            (void)snprintf(token, sizeof token, "%.*s", (int)page.next.bytes, page.next.data);
        tide_gmail_page_done(&page);
        if (last)
            break;
    }
    return rc;
}

/* Fetches unknown messages and compares the bytes; those that differ are not fetched again. */
static tide_status look_compare(struct look *look, tide_error *err)
{
    tide_restore *restore = look->restore;
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && !look->found && i < look->count; i++) {
        struct tide_gmail_message message;
        uint8_t hash[TIDE_CONTENT_HASH_BYTES];
        tide_gmail_message_init(&message, restore->mem);
        do
            rc = tide_gmail_get(restore->user->gmail, look->job, tide_text_of(look->candidates[i]),
                                &message, err);
        while (tide_mail_wait(look->job, rc, TIDE_MAIL_WAIT_WINDOW_MS));
        if (rc == TIDE_OK)
            rc = tide_content_hash(restore->packer, tide_buf_text(&message.raw), hash, err);
        if (rc == TIDE_OK && memcmp(hash, look->piece->removal.hash, sizeof hash) == 0) {
            look->found = true;
            (void)snprintf(look->again.id, sizeof look->again.id, "%s", look->candidates[i]);
            (void)snprintf(look->again.thread_id, sizeof look->again.thread_id, "%.*s",
                           (int)message.thread_id.bytes, message.thread_id.data);
        } else if (rc == TIDE_OK && restore->compared_count < TIDE_RESTORE_COMPARED_MAX) {
            (void)snprintf(restore->compared[restore->compared_count++],
                           sizeof restore->compared[0], "%s", look->candidates[i]);
        } else if (rc == TIDE_GONE) {
            rc = TIDE_OK;
        }
        tide_gmail_message_done(&message);
        tide_job_beat(look->job, 0);
    }
    return rc;
}

/* Whether a Message-ID can be used in a query without being misread. */
static bool is_askable(tide_text message_id)
{
    for (size_t i = 0; i < message_id.bytes; i++) {
        const unsigned char c = (unsigned char)message_id.data[i];
        if (c <= ' ' || c >= 127 || strchr("\"(){}<>|", c) != NULL)
            return false;
    }
    return message_id.bytes > 0 && message_id.bytes <= MESSAGE_ID_BYTES_MAX;
}

/* By Message-ID.  Without one by its second: that of its Date header, and that in which the server
 * must have received it, in case it did not understand the header. */
static tide_status look_queries(struct look *look, const struct tide_message *message,
                                tide_error *err)
{
    char query[MESSAGE_ID_BYTES_MAX + 64];
    if (is_askable(message->message_id)) {
        (void)snprintf(query, sizeof query, "rfc822msgid:%.*s", (int)message->message_id.bytes,
                       message->message_id.data);
        return look_listed(look, query, err);
    }
    TIDE_SEEN("restore: looked for a message without Message-ID");
    tide_status rc = TIDE_OK;
    if (message->has_date && message->date_ms > 1000) {
        const int64_t date_s = message->date_ms / 1000;
        (void)snprintf(query, sizeof query, "after:%" PRId64 " before:%" PRId64, date_s - 1,
                       date_s + 2);
        rc = look_listed(look, query, err);
    }
    const uint64_t now_s = tide_world_now_unix_ms(look->restore->world) / 1000;
    const uint64_t first_s = look->first_ms / 1000;
    (void)snprintf(query, sizeof query, "after:%" PRIu64 " before:%" PRIu64,
                   first_s > SLACK_S ? first_s - SLACK_S : 0, now_s + SLACK_S);
    return rc == TIDE_OK && !look->found ? look_listed(look, query, err) : rc;
}

tide_status tide_restore_look(tide_restore *restore, tide_job *job, const struct tide_piece *piece,
                              tide_text raw, struct tide_found_again *found_out, tide_error *err)
{
    struct facts_ask ask = {.account = restore->account,
                            .gmail_id = tide_text_of(piece->removal.gmail_id)};
    struct tide_message message;
    if (restore->looking != piece->removal.id) {
        restore->looking = piece->removal.id;
        restore->compared_count = 0;
    }
    struct look *look = tide_mem_new(restore->mem, sizeof *look);
    if (look == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory to look for a message");
    look->restore = restore;
    look->job = job;
    look->piece = piece;
    tide_auto_arena arena = tide_arena_in(restore->mem, ARENA_BYTES_MAX);
    tide_status rc = tide_transact(restore->mail->engine, facts_read, &ask, err);
    look->first_ms = ask.facts.first_ms;
    if (rc == TIDE_OK)
        rc = tide_message_parse(raw, &arena, &message);
    if (rc == TIDE_OK)
        rc = look_queries(look, &message, err);
    if (rc == TIDE_OK && !look->found)
        rc = look_compare(look, err);
    if (rc == TIDE_OK && look->found)
        *found_out = look->again;
    else if (rc == TIDE_OK && look->too_many)
        rc = tide_error_set(err, TIDE_INVALID,
                            "an earlier insert of %s may have happened, and too much mail has "
                            "arrived since to tell; run `tidemark mail sync`, then restore again",
                            piece->removal.gmail_id);
    else if (rc == TIDE_OK)
        rc = TIDE_NOT_FOUND;
    tide_mem_free(restore->mem, look, sizeof *look);
    return rc;
}

/* ---- messages that are in place ---- */

static void seen_mark(struct tide_piece *const *pieces, size_t count,
                      const struct tide_gmail_page *page, bool *seen)
{
    size_t index = 0;
    const json_t *entry = NULL;
    json_array_foreach(page->ids, index, entry)
    {
        const char *id = json_string_value(json_object_get(entry, "id"));
        for (size_t i = 0; id != NULL && i < count; i++)
            seen[i] = seen[i] || strcmp(pieces[i]->removal.gmail_id, id) == 0;
    }
}

tide_status tide_restore_seen(tide_restore *restore, tide_job *job,
                              struct tide_piece *const *pieces, size_t count, tide_deed deed,
                              bool *seen_out, tide_error *err)
{
    int64_t first_ms = INT64_MAX;
    int64_t last_ms = 0;
    char query[128];
    char token[2048] = "";
    tide_status rc = TIDE_OK;
    for (size_t i = 0; i < count; i++) {
        const int64_t at_ms = pieces[i]->removal.internal_ms;
        first_ms = at_ms < first_ms ? at_ms : first_ms;
        last_ms = at_ms > last_ms ? at_ms : last_ms;
        seen_out[i] = false;
    }
    (void)snprintf(query, sizeof query, "%s after:%" PRId64 " before:%" PRId64,
                   deed == TIDE_DEED_INBOX ? "in:inbox" : "-in:trash",
                   first_ms > 1000 ? first_ms / 1000 - 1 : 0, last_ms / 1000 + 2);
    for (int i = 0; rc == TIDE_OK && i < TIDE_RESTORE_LOOK_PAGES_MAX; i++) {
        struct tide_gmail_page page = {0};
        do
            rc = tide_gmail_list(restore->user->gmail, job, query, tide_text_of(token), &page, err);
        while (tide_mail_wait(job, rc, TIDE_MAIL_WAIT_WINDOW_MS));
        if (rc == TIDE_OK)
            seen_mark(pieces, count, &page, seen_out);
        const bool last = page.next.bytes == 0 || page.next.bytes >= sizeof token;
        if (!last)
            (void)snprintf(token, sizeof token, "%.*s", (int)page.next.bytes, page.next.data);
        tide_gmail_page_done(&page);
        if (last)
            break;
    }
    return rc;
}
