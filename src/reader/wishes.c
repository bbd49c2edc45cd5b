#include "reader/drafts.h"

#include "ledger/rows.h"
#include "reader/view/view.h"
#include "settings/settings.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- bringing ---- */

struct naming {
    const char *email;
    uint32_t account;
};

static void match_name(uint32_t account, const char *email, void *arg)
{
    struct naming *naming = arg;
    if (strcmp(email, naming->email) == 0)
        naming->account = account;
}

tide_status tide_reader_account(tide_reader *reader, const char *email, uint32_t *account_out,
                                tide_error *err)
{
    struct naming naming = {.email = email};
    TIDE_TRY(tide_reader_accounts(reader, match_name, &naming, err));
    if (naming.account == 0)
        return tide_error_set(err, TIDE_NOT_FOUND, "there is no mail account \"%.200s\"", email);
    *account_out = naming.account;
    return TIDE_OK;
}

tide_status tide_reader_begin(tide_reader *reader, uint32_t account, tide_error *err)
{
    struct tide_reader_user *user = NULL;
    tide_cache *cache = NULL;
    const struct tide_reader_job poll = {.kind = TIDE_READER_HEADERS,
                                         .account = account,
                                         .field = "folder",
                                         .key = TIDE_READER_POLL};
    const struct tide_reader_job folders = {
        .kind = TIDE_READER_FOLDERS, .account = account, .key = "folders"};
    TIDE_TRY(tide_reader_cache_take(reader, account, &user, &cache, err));
    tide_reader_cache_give(reader, user, cache);
    TIDE_TRY(tide_reader_enqueue(reader, &folders, NULL, err));
    return tide_reader_enqueue(reader, &poll, NULL, err);
}

static bool see_body(const struct tide_cached *cached, void *arg)
{
    *(bool *)arg = cached->body;
    return false;
}

tide_status tide_reader_fetch(tide_reader *reader, uint32_t account, const char *message,
                              uint64_t *job_out, tide_error *err)
{
    struct tide_reader_user *user = NULL;
    tide_cache *cache = NULL;
    struct tide_stored stored;
    bool body = false;
    const uint64_t now_ms = tide_world_now_unix_ms(reader->options.world);
    const tide_text id = tide_text_of(message);
    TIDE_TRY(tide_reader_cache_take(reader, account, &user, &cache, err));
    tide_status rc = tide_cache_begin(cache, err);
    if (rc == TIDE_OK)
        rc = tide_cache_end(cache, tide_cache_opened(cache, id, now_ms, err), err);
    if (rc == TIDE_OK)
        (void)tide_cache_find(cache, id, see_body, &body, NULL);
    tide_reader_cache_give(reader, user, cache);
    tide_archive *archive = tide_reader_archive(reader, user);
    const bool archived = tide_reader_archived(archive, id, &stored);
    if (archive != NULL)
        tide_shelf_give(reader->shelf, archive);
    *job_out = 0;
    if (rc != TIDE_OK || body || archived)
        return rc;
    const struct tide_reader_job fetch = {
        .kind = TIDE_READER_BODY, .account = account, .field = "message", .key = message};
    return tide_reader_enqueue(reader, &fetch, job_out, err);
}

tide_status tide_reader_more(tide_reader *reader, uint32_t account, const char *folder,
                             uint64_t *job_out, tide_error *err)
{
    const struct tide_reader_job page = {
        .kind = TIDE_READER_PAGE, .account = account, .field = "folder", .key = folder};
    return tide_reader_enqueue(reader, &page, job_out, err);
}

tide_status tide_reader_refresh(tide_reader *reader, uint32_t account, const char *folder,
                                uint64_t *job_out, tide_error *err)
{
    const struct tide_reader_job refresh = {
        .kind = TIDE_READER_REFRESH, .account = account, .field = "folder", .key = folder};
    return tide_reader_enqueue(reader, &refresh, job_out, err);
}

tide_status tide_reader_search(tide_reader *reader, uint32_t account, const char *query,
                               uint64_t *job_out, tide_error *err)
{
    const struct tide_reader_job search = {
        .kind = TIDE_READER_SEARCH, .account = account, .field = "query", .key = query};
    return tide_reader_enqueue(reader, &search, job_out, err);
}

/* ---- actions ---- */

/* What each changes; "@" is the label that is named. */
static const struct verb {
    const char *what;
    const char *add[2], *take[2];
    bool held; /* cannot be taken back at the server */
} verbs[] = {
    {"archive", {NULL}, {"INBOX"}, false},
    {"inbox", {"INBOX"}, {NULL}, false},
    {"trash", {"TRASH"}, {"INBOX", "SPAM"}, false},
    {"untrash", {"INBOX"}, {"TRASH"}, false},
    {"spam", {"SPAM"}, {"INBOX", "TRASH"}, false},
    {"unspam", {"INBOX"}, {"SPAM"}, false},
    {"read", {NULL}, {"UNREAD"}, false},
    {"unread", {"UNREAD"}, {NULL}, false},
    {"star", {"STARRED"}, {NULL}, false},
    {"unstar", {NULL}, {"STARRED"}, false},
    {"important", {"IMPORTANT"}, {NULL}, false},
    {"unimportant", {NULL}, {"IMPORTANT"}, false},
    {"label", {"@"}, {NULL}, false},
    {"unlabel", {NULL}, {"@"}, false},
    {"move", {"@"}, {"INBOX"}, false},
    {"delete", {TIDE_OVERLAY_GONE}, {NULL}, true},
};

static const struct verb *verb_of(const char *what)
{
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
        if (strcmp(verbs[i].what, what) == 0)
            return &verbs[i];
    return NULL;
}

struct acting {
    tide_reader *reader;
    struct tide_reader_mailbox mailbox;
    const struct verb *verb;
    const struct tide_reader_wish *wish;
    struct tide_reader_action action;
    struct tide_change *changes;
    size_t changes_count;
    struct tide_reader_shown *bases; /* of each message; .labels NULL: it is not known */
    tide_status rc;
};

enum { CHANGES_MAX = 4 * TIDE_ACTION_MESSAGES_MAX };

static const char *label_of(const struct acting *acting, const char *label)
{
    return strcmp(label, "@") == 0 ? acting->wish->label : label;
}

struct effective {
    json_t *labels; /* of the base; changed by the overlay */
};

static void overlay_apply(tide_text label, bool added, void *arg)
{
    struct effective *effective = arg;
    char name[TIDE_LABEL_BYTES_MAX + 1];
    (void)snprintf(name, sizeof name, "%.*s", (int)label.bytes, label.data);
    if (added)
        (void)json_object_set_new(effective->labels, name, json_true());
    else
        (void)json_object_del(effective->labels, name);
}

static void change_add(struct acting *acting, const struct tide_reader_shown *base,
                       const char *label, bool added)
{
    if (acting->changes_count < CHANGES_MAX)
        acting->changes[acting->changes_count++] =
            (struct tide_change){.message = tide_text_of(base->id),
                                 .thread = tide_text_of(base->thread),
                                 .label = tide_text_of(label),
                                 .added = added,
                                 .internal_ms = base->internal_ms};
}

/* RDS2: only what differs from what is shown. */
static tide_status message_changes(struct acting *acting, tide_rows db,
                                   const struct tide_reader_shown *base, tide_error *err)
{
    struct effective effective = {.labels = json_copy(base->labels)};
    const tide_status rc = tide_overlay_of(db, acting->mailbox.account, tide_text_of(base->id),
                                           overlay_apply, &effective, err);
    for (size_t i = 0; rc == TIDE_OK && i < 2 && acting->verb->add[i] != NULL; i++) {
        const char *label = label_of(acting, acting->verb->add[i]);
        if (json_object_get(effective.labels, label) == NULL)
            change_add(acting, base, label, true);
    }
    for (size_t i = 0; rc == TIDE_OK && i < 2 && acting->verb->take[i] != NULL; i++) {
        const char *label = label_of(acting, acting->verb->take[i]);
        if (json_object_get(effective.labels, label) != NULL)
            change_add(acting, base, label, false);
    }
    json_decref(effective.labels);
    return rc;
}

tide_status tide_reader_upload(tide_reader *reader, tide_transaction *transaction,
                               const struct tide_reader_action *action, uint64_t now_ms,
                               tide_error *err)
{
    const struct tide_spec spec = {.kind = reader->kinds[TIDE_READER_ACTION],
                                   .account = action->account,
                                   .dedupe = action->due_ms > now_ms ? NULL : "actions",
                                   .delay_ms =
                                       action->due_ms > now_ms ? action->due_ms - now_ms : 0};
    return tide_transaction_enqueue(transaction, &spec, 1, NULL, err);
}

static tide_status act(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct acting *acting = arg;
    const tide_rows db = tide_transaction_rows(transaction);
    acting->changes_count = 0; /* a transaction may be repeated */
    for (size_t i = 0; i < acting->wish->messages_count; i++)
        if (acting->bases[i].labels != NULL && !acting->bases[i].gone)
            TIDE_TRY(message_changes(acting, db, &acting->bases[i], err));
    acting->action.id = 0;
    if (acting->changes_count == 0)
        return TIDE_OK;
    TIDE_TRY(tide_action_add(db, &acting->action, acting->changes, acting->changes_count, err));
    return tide_reader_upload(acting->reader, transaction, &acting->action, acting->action.made_ms,
                              err);
}

/* The base of each message, before the transaction: it reads other files. */
static tide_status bases_read(struct acting *acting, tide_error *err)
{
    size_t known = 0;
    for (size_t i = 0; i < acting->wish->messages_count; i++) {
        struct tide_reader_shown *base = &acting->bases[i];
        const tide_status rc =
            tide_shown_labels(&acting->mailbox, acting->wish->messages[i], base, err);
        if (rc == TIDE_NOT_FOUND)
            tide_shown_done(base);
        else if (rc != TIDE_OK)
            return rc;
        known += rc == TIDE_OK;
    }
    return known > 0 ? TIDE_OK
                     : tide_error_set(err, TIDE_NOT_FOUND, "none of these messages is known here");
}

static tide_status wish_check(const struct tide_reader_wish *wish, const struct verb *verb,
                              tide_error *err)
{
    if (verb == NULL)
        return tide_error_set(err, TIDE_INVALID, "there is no action \"%.40s\"", wish->what);
    if (wish->messages_count == 0 || wish->messages_count > TIDE_ACTION_MESSAGES_MAX)
        return tide_error_set(err, TIDE_INVALID, "an action is for 1 to %d messages",
                              TIDE_ACTION_MESSAGES_MAX);
    const bool names = (verb->add[0] != NULL && verb->add[0][0] == '@') ||
                       (verb->take[0] != NULL && verb->take[0][0] == '@');
    if (names && (wish->label == NULL || wish->label[0] == '\0' ||
                  strlen(wish->label) > TIDE_LABEL_BYTES_MAX))
        return tide_error_set(err, TIDE_INVALID, "\"%.40s\" needs a label", wish->what);
    return TIDE_OK;
}

/* What is done here alone, and no server is told of. */
static tide_status pin(tide_reader *reader, uint32_t account, const struct tide_reader_wish *wish,
                       bool pinned, tide_error *err)
{
    struct tide_reader_user *user = NULL;
    tide_cache *cache = NULL;
    TIDE_TRY(tide_reader_cache_take(reader, account, &user, &cache, err));
    tide_archive *archive = tide_reader_archive(reader, user);
    tide_status rc = tide_cache_begin(cache, err);
    if (rc == TIDE_OK) {
        for (size_t i = 0; rc == TIDE_OK && i < wish->messages_count; i++) {
            rc = tide_reader_shadow(cache, archive, wish->messages[i], err);
            if (rc == TIDE_OK)
                rc = tide_cache_pin(cache, wish->messages[i], pinned, err);
        }
        rc = tide_cache_end(cache, rc, err);
    }
    if (archive != NULL)
        tide_shelf_give(reader->shelf, archive);
    tide_reader_cache_give(reader, user, cache);
    const struct tide_reader_job offline = {
        .kind = TIDE_READER_OFFLINE, .account = account, .key = "offline"};
    return rc == TIDE_OK && pinned ? tide_reader_enqueue(reader, &offline, NULL, err) : rc;
}

static tide_status act_on(struct acting *acting, tide_error *err)
{
    tide_reader *reader = acting->reader;
    const size_t count = acting->wish->messages_count;
    acting->bases = tide_mem_array(reader->mem, count, sizeof *acting->bases);
    acting->changes = tide_mem_array(reader->mem, CHANGES_MAX, sizeof *acting->changes);
    tide_status rc = acting->bases == NULL || acting->changes == NULL
                         ? tide_error_set(err, TIDE_NO_MEMORY, "no memory for the action")
                         : bases_read(acting, err);
    if (rc == TIDE_OK)
        rc = tide_transact(reader->options.engine, act, acting, err);
    for (size_t i = 0; acting->bases != NULL && i < count; i++)
        tide_shown_done(&acting->bases[i]);
    tide_mem_free(reader->mem, acting->bases, count * sizeof *acting->bases);
    tide_mem_free(reader->mem, acting->changes, CHANGES_MAX * sizeof *acting->changes);
    return rc;
}

static tide_status send_off(tide_reader *reader, uint32_t account,
                            const struct tide_reader_wish *wish,
                            struct tide_reader_action *action_out, tide_error *err)
{
    struct tide_reader_user *user = NULL;
    const uint64_t now_ms = tide_world_now_unix_ms(reader->options.world);
    if (wish->draft == NULL || wish->messages_count > 0)
        return tide_error_set(err, TIDE_INVALID, "\"send\" needs a draft, and no message");
    TIDE_TRY(tide_reader_user(reader, account, &user, err));
    struct tide_reader_action action = {
        .account = account,
        .made_ms = now_ms,
        .due_ms = now_ms +
                  tide_engine_setting_u64(reader->options.engine, account, TIDE_SET_READER_HOLD)};
    (void)snprintf(action.what, sizeof action.what, "%s", TIDE_READER_SEND);
    TIDE_TRY(tide_reader_send(reader, user, wish->draft, &action, err));
    *action_out = action;
    return TIDE_OK;
}

tide_status tide_reader_act(tide_reader *reader, uint32_t account,
                            const struct tide_reader_wish *wish,
                            struct tide_reader_action *action_out, tide_error *err)
{
    struct tide_reader_user *user = NULL;
    struct acting acting = {.reader = reader, .wish = wish, .verb = verb_of(wish->what)};
    const uint64_t now_ms = tide_world_now_unix_ms(reader->options.world);
    *action_out = (struct tide_reader_action){.account = account};
    if (strcmp(wish->what, "pin") == 0 || strcmp(wish->what, "unpin") == 0)
        return pin(reader, account, wish, wish->what[0] == 'p', err);
    if (strcmp(wish->what, TIDE_READER_SEND) == 0)
        return send_off(reader, account, wish, action_out, err);
    if (strcmp(wish->what, "keep") == 0)
        return wish->draft != NULL && wish->messages_count == 0
                   ? tide_reader_draft_close(reader, account, wish->draft, err)
                   : tide_error_set(err, TIDE_INVALID, "\"keep\" needs a draft, and no message");
    TIDE_TRY(wish_check(wish, acting.verb, err));
    TIDE_TRY(tide_reader_cache_take(reader, account, &user, &acting.mailbox.cache, err));
    const uint64_t hold_ms =
        acting.verb->held
            ? tide_engine_setting_u64(reader->options.engine, account, TIDE_SET_READER_HOLD)
            : 0;
    acting.mailbox.mem = reader->mem;
    acting.mailbox.account = account;
    acting.mailbox.archive = tide_reader_archive(reader, user);
    acting.action = (struct tide_reader_action){
        .account = account, .made_ms = now_ms, .due_ms = now_ms + hold_ms};
    (void)snprintf(acting.action.what, sizeof acting.action.what, "%s", wish->what);
    const tide_status rc = act_on(&acting, err);
    if (acting.mailbox.archive != NULL)
        tide_shelf_give(reader->shelf, acting.mailbox.archive);
    tide_reader_cache_give(reader, user, acting.mailbox.cache);
    if (rc == TIDE_OK)
        *action_out = acting.action;
    return rc;
}

/* ---- undo ---- */

struct undoing {
    tide_reader *reader;
    uint32_t account;
    uint64_t id;
    uint64_t now_ms;
    struct tide_reader_action inverse;
    struct tide_change *changes;
    size_t count;
    tide_buf texts; /* what the changes point into */
};

/* Offsets into `texts` until all are there: it moves while it grows. */
static tide_text kept(struct undoing *undoing, tide_text text)
{
    const size_t at = undoing->texts.bytes;
    (void)tide_buf_add(&undoing->texts, text.bytes == 0 ? "" : text.data, text.bytes);
    return (tide_text){(const char *)(uintptr_t)at, text.bytes};
}

static void inverse_add(const struct tide_change *change, void *arg)
{
    struct undoing *undoing = arg;
    if (undoing->count == CHANGES_MAX)
        return;
    undoing->changes[undoing->count++] =
        (struct tide_change){.message = kept(undoing, change->message),
                             .thread = kept(undoing, change->thread),
                             .label = kept(undoing, change->label),
                             .added = !change->added,
                             .internal_ms = change->internal_ms};
}

static tide_text placed(const struct undoing *undoing, tide_text text)
{
    return (tide_text){tide_buf_text(&undoing->texts).data + (uintptr_t)text.data, text.bytes};
}

static tide_status inverse_queue(struct undoing *undoing, tide_transaction *transaction,
                                 const struct tide_reader_action *action, tide_error *err)
{
    const tide_rows db = tide_transaction_rows(transaction);
    undoing->count = 0;
    tide_buf_rest(&undoing->texts);
    TIDE_TRY(tide_action_changes(db, undoing->account, undoing->id, inverse_add, undoing, err));
    for (size_t i = 0; i < undoing->count; i++) {
        struct tide_change *change = &undoing->changes[i];
        change->message = placed(undoing, change->message);
        change->thread = placed(undoing, change->thread);
        change->label = placed(undoing, change->label);
    }
    undoing->inverse = (struct tide_reader_action){.account = undoing->account,
                                                   .made_ms = undoing->now_ms,
                                                   .due_ms = undoing->now_ms,
                                                   .undo_of = action->id};
    (void)snprintf(undoing->inverse.what, sizeof undoing->inverse.what, "undo");
    TIDE_TRY(tide_action_add(db, &undoing->inverse, undoing->changes, undoing->count, err));
    return tide_reader_upload(undoing->reader, transaction, &undoing->inverse, undoing->now_ms,
                              err);
}

static tide_status undo(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct undoing *undoing = arg;
    struct tide_reader_action action;
    const tide_rows db = tide_transaction_rows(transaction);
    undoing->inverse.id = 0;
    const tide_status rc = tide_action_get(db, undoing->account, undoing->id, &action, err);
    if (rc == TIDE_NOT_FOUND)
        return tide_error_set(err, rc, "there is no action %" PRIu64, undoing->id);
    if (rc != TIDE_OK)
        return rc;
    if (action.state == TIDE_ACTION_WAITING && !action.begun) {
        if (action.draft[0] != '\0') { /* it can be written on */
            TIDE_TRY(tide_draft_send(db, undoing->account, action.draft, 0, err));
            TIDE_TRY(tide_reader_copy_quiet(undoing->reader, transaction, undoing->account, err));
        }
        return tide_action_end(db, undoing->account, undoing->id, TIDE_ACTION_UNDONE, "",
                               undoing->now_ms, err);
    }
    if (action.state == TIDE_ACTION_REFUSED || action.state == TIDE_ACTION_UNDONE)
        return tide_error_set(err, TIDE_STALE, "this action has no effect any more");
    if (strcmp(action.what, "delete") == 0 || action.draft[0] != '\0')
        return tide_error_set(err, TIDE_STALE, "it is too late to undo this");
    return inverse_queue(undoing, transaction, &action, err);
}

tide_status tide_reader_undo(tide_reader *reader, uint32_t account, uint64_t action,
                             uint64_t *inverse_out, tide_error *err)
{
    struct undoing undoing = {.reader = reader,
                              .account = account,
                              .id = action,
                              .now_ms = tide_world_now_unix_ms(reader->options.world),
                              .texts = tide_buf_in(reader->mem, 4 << 20)};
    undoing.changes = tide_mem_array(reader->mem, CHANGES_MAX, sizeof *undoing.changes);
    const tide_status rc = undoing.changes == NULL
                               ? tide_error_set(err, TIDE_NO_MEMORY, "no memory to undo")
                               : tide_transact(reader->options.engine, undo, &undoing, err);
    tide_mem_free(reader->mem, undoing.changes, CHANGES_MAX * sizeof *undoing.changes);
    tide_buf_done(&undoing.texts);
    if (rc == TIDE_OK)
        *inverse_out = undoing.inverse.id;
    return rc;
}
