#include "reader/store/store.h"

#include <string.h>

#define WHAT "the reader's rows"

static const char tables[] =
    "CREATE TABLE IF NOT EXISTS reader_action("
    " account INTEGER NOT NULL, id INTEGER NOT NULL, what TEXT NOT NULL, state INTEGER NOT NULL,"
    " draft TEXT NOT NULL, error TEXT NOT NULL, made_ms INTEGER NOT NULL, due_ms INTEGER NOT NULL,"
    " ended_ms INTEGER NOT NULL, undo_of INTEGER NOT NULL, changed INTEGER NOT NULL,"
    " messages INTEGER NOT NULL, begun INTEGER NOT NULL, PRIMARY KEY(account, id)) STRICT;"
    "CREATE INDEX IF NOT EXISTS reader_action_due ON reader_action(account, state, due_ms, id);"
    "CREATE INDEX IF NOT EXISTS reader_action_changed ON reader_action(account, changed);"
    "CREATE TABLE IF NOT EXISTS reader_change("
    " account INTEGER NOT NULL, action INTEGER NOT NULL, message TEXT NOT NULL,"
    " thread TEXT NOT NULL, label TEXT NOT NULL, added INTEGER NOT NULL,"
    " internal_ms INTEGER NOT NULL, live INTEGER NOT NULL,"
    " PRIMARY KEY(account, action, message, label)) STRICT;"
    "CREATE INDEX IF NOT EXISTS reader_change_message"
    " ON reader_change(account, live, message, action);"
    "CREATE INDEX IF NOT EXISTS reader_change_label"
    " ON reader_change(account, live, label, added, internal_ms, message);"
    "CREATE TABLE IF NOT EXISTS reader_draft("
    " account INTEGER NOT NULL, id TEXT NOT NULL, json TEXT NOT NULL, changed_ms INTEGER NOT NULL,"
    " outgoing TEXT NOT NULL, sending INTEGER NOT NULL, files TEXT NOT NULL,"
    " PRIMARY KEY(account, id)) STRICT;"
    "CREATE TABLE IF NOT EXISTS reader_draft_copy("
    " account INTEGER NOT NULL, id TEXT NOT NULL, copied_ms INTEGER NOT NULL,"
    " refused_ms INTEGER NOT NULL, closed_ms INTEGER NOT NULL, PRIMARY KEY(account, id)) STRICT;";

tide_status tide_reader_tables(tide_rows db, tide_error *err)
{
    return tide_rows_tables(db, tables, WHAT, err);
}

tide_status tide_reader_forget(tide_rows db, uint32_t account, tide_error *err)
{
    TIDE_TRY(tide_rows_do(db, WHAT, err, "DELETE FROM reader_change WHERE account = ?1", account));
    TIDE_TRY(tide_rows_do(db, WHAT, err, "DELETE FROM reader_action WHERE account = ?1", account));
    TIDE_TRY(
        tide_rows_do(db, WHAT, err, "DELETE FROM reader_draft_copy WHERE account = ?1", account));
    return tide_rows_do(db, WHAT, err, "DELETE FROM reader_draft WHERE account = ?1", account);
}

const char *tide_action_state_name(tide_action_state state)
{
    static const char *const names[] = {"waiting", "done", "refused", "undone"};
    return (size_t)state < sizeof names / sizeof names[0] ? names[state] : "unknown";
}

/* ---- actions ---- */

#define COLUMNS                                                                                    \
    "SELECT account, id, what, state, draft, error, made_ms, due_ms, ended_ms, undo_of, changed,"  \
    " messages, begun FROM reader_action"

static void action_read(const tide_rows_stmt *stmt, struct tide_reader_action *action)
{
    action->account = tide_rows_get_u32(stmt, 0);
    action->id = tide_rows_get_u64(stmt, 1);
    tide_rows_get_copy(stmt, 2, action->what, sizeof action->what);
    action->state = (tide_action_state)tide_rows_get_u32(stmt, 3);
    tide_rows_get_copy(stmt, 4, action->draft, sizeof action->draft);
    tide_rows_get_copy(stmt, 5, action->error, sizeof action->error);
    action->made_ms = tide_rows_get_u64(stmt, 6);
    action->due_ms = tide_rows_get_u64(stmt, 7);
    action->ended_ms = tide_rows_get_u64(stmt, 8);
    action->undo_of = tide_rows_get_u64(stmt, 9);
    action->changed = tide_rows_get_u64(stmt, 10);
    action->messages = tide_rows_get_u64(stmt, 11);
    action->begun = tide_rows_get_u64(stmt, 12) != 0;
}

/* An account's actions are written by one process, the one that has its lease: the next number is not
 * taken by another one meanwhile. */
static tide_status numbers_next(tide_rows db, struct tide_reader_action *action, tide_error *err)
{
    TIDE_TRY(tide_rows_number(db, WHAT, &action->id, err,
                              "SELECT coalesce(max(id), 0) + 1 FROM reader_action"
                              " WHERE account = ?1",
                              action->account));
    return tide_rows_number(db, WHAT, &action->changed, err,
                            "SELECT coalesce(max(changed), 0) + 1 FROM reader_action"
                            " WHERE account = ?1",
                            action->account);
}

static uint64_t messages_of(const struct tide_change *changes, size_t count)
{
    uint64_t messages = 0;
    for (size_t i = 0; i < count; i++)
        messages += i == 0 || !tide_text_equal(changes[i].message, changes[i - 1].message);
    return messages;
}

tide_status tide_action_add(tide_rows db, struct tide_reader_action *action,
                            const struct tide_change *changes, size_t count, tide_error *err)
{
    TIDE_TRY(numbers_next(db, action, err));
    action->state = TIDE_ACTION_WAITING;
    action->messages = messages_of(changes, count);
    TIDE_TRY(tide_rows_do(
        db, WHAT, err,
        "INSERT INTO reader_action(account, id, what, state, draft, error, made_ms, due_ms,"
        " ended_ms, undo_of, changed, messages, begun)"
        " VALUES(?1, ?2, ?3, 0, ?4, '', ?5, ?6, 0, ?7, ?8, ?9, 0)",
        action->account, action->id, (const char *)action->what, (const char *)action->draft,
        action->made_ms, action->due_ms, action->undo_of, action->changed, action->messages));
    for (size_t i = 0; i < count; i++)
        TIDE_TRY(
            tide_rows_do(db, WHAT, err,
                         "INSERT INTO reader_change(account, action, message, thread, label, added,"
                         " internal_ms, live) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, 1)",
                         action->account, action->id, changes[i].message, changes[i].thread,
                         changes[i].label, changes[i].added ? 1 : 0, changes[i].internal_ms));
    return TIDE_OK;
}

tide_status tide_action_get(tide_rows db, uint32_t account, uint64_t id,
                            struct tide_reader_action *action_out, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    const tide_status rc = tide_rows_first(db, WHAT, &stmt, err,
                                           COLUMNS " WHERE account = ?1 AND id = ?2", account, id);
    if (rc == TIDE_OK)
        action_read(&stmt, action_out);
    return rc;
}

/* A held action is due later than it was made.  An action that was begun is due, whatever its hold. */
tide_status tide_actions_clock(tide_rows db, uint32_t account, uint64_t now_ms, uint64_t hold_ms,
                               tide_error *err)
{
    TIDE_TRY(tide_rows_do(db, WHAT, err,
                          "UPDATE reader_action SET due_ms = ?2 WHERE account = ?1 AND state = 0"
                          " AND due_ms > ?2 AND (due_ms = made_ms OR begun = 1)",
                          account, now_ms));
    return tide_rows_do(db, WHAT, err,
                        "UPDATE reader_action SET due_ms = ?2 WHERE account = ?1 AND state = 0"
                        " AND due_ms > ?2",
                        account, now_ms + hold_ms);
}

tide_status tide_actions_ahead(tide_rows db, uint64_t now_ms,
                               void (*visit)(uint32_t account, void *arg), void *arg,
                               tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    tide_status rc = tide_rows_ask(
        db, WHAT, &stmt, err,
        "SELECT DISTINCT account FROM reader_action WHERE state = 0 AND made_ms > ?1", now_ms);
    while (tide_rows_next(&stmt, &rc, err))
        visit(tide_rows_get_u32(&stmt, 0), arg);
    return rc;
}

static tide_status action_first(tide_rows_stmt *stmt, tide_status rc,
                                struct tide_reader_action *action_out)
{
    if (rc == TIDE_OK)
        action_read(stmt, action_out);
    return rc;
}

tide_status tide_action_next(tide_rows db, uint32_t account, uint64_t now_ms,
                             struct tide_reader_action *action_out, tide_error *err)
{
    tide_auto_rows due = {.what = NULL};
    tide_auto_rows later = {.what = NULL};
    const tide_status rc =
        action_first(&due,
                     tide_rows_first(db, WHAT, &due, err,
                                     COLUMNS " WHERE account = ?1 AND state = 0 AND (begun = 1"
                                             " OR due_ms <= ?2) ORDER BY begun DESC, id LIMIT 1",
                                     account, now_ms),
                     action_out);
    if (rc != TIDE_NOT_FOUND)
        return rc;
    return action_first(
        &later,
        tide_rows_first(db, WHAT, &later, err,
                        COLUMNS " WHERE account = ?1 AND state = 0 ORDER BY due_ms, id LIMIT 1",
                        account),
        action_out);
}

static tide_status not_waiting(tide_error *err)
{
    return tide_error_set(err, TIDE_STALE, "this action does not wait any more");
}

tide_status tide_action_begin(tide_rows db, uint32_t account, uint64_t id, tide_error *err)
{
    uint64_t begun = 0;
    TIDE_TRY(tide_rows_change(db, WHAT, &begun, err,
                              "UPDATE reader_action SET begun = 1 WHERE account = ?1 AND id = ?2"
                              " AND state = 0",
                              account, id));
    return begun == 1 ? TIDE_OK : not_waiting(err);
}

tide_status tide_action_end(tide_rows db, uint32_t account, uint64_t id, tide_action_state state,
                            const char *error, uint64_t now_ms, tide_error *err)
{
    struct tide_reader_action numbers = {.account = account};
    uint64_t ended = 0;
    TIDE_TRY(numbers_next(db, &numbers, err));
    TIDE_TRY(tide_rows_change(db, WHAT, &ended, err,
                              "UPDATE reader_action SET state = ?3, error = ?4, ended_ms = ?5,"
                              " changed = ?6 WHERE account = ?1 AND id = ?2 AND state = 0",
                              account, id, (int)state, error, now_ms, numbers.changed));
    if (ended != 1)
        return not_waiting(err);
    return tide_rows_do(db, WHAT, err,
                        "UPDATE reader_change SET live = 0 WHERE account = ?1 AND action = ?2",
                        account, id);
}

tide_status tide_actions_each(tide_rows db, uint32_t account, uint32_t limit,
                              void (*visit)(const struct tide_reader_action *action, void *arg),
                              void *arg, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    tide_status rc =
        tide_rows_ask(db, WHAT, &stmt, err, COLUMNS " WHERE account = ?1 ORDER BY id DESC LIMIT ?2",
                      account, limit);
    while (tide_rows_next(&stmt, &rc, err)) {
        struct tide_reader_action action;
        action_read(&stmt, &action);
        visit(&action, arg);
    }
    return rc;
}

tide_status tide_actions_in(tide_rows db, uint32_t account, tide_action_state state, uint32_t limit,
                            void (*visit)(const struct tide_reader_action *action, void *arg),
                            void *arg, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    tide_status rc =
        tide_rows_ask(db, WHAT, &stmt, err,
                      COLUMNS " WHERE account = ?1 AND state = ?2 ORDER BY id DESC LIMIT ?3",
                      account, (int)state, limit);
    while (tide_rows_next(&stmt, &rc, err)) {
        struct tide_reader_action action;
        action_read(&stmt, &action);
        visit(&action, arg);
    }
    return rc;
}

tide_status tide_actions_count(tide_rows db, uint32_t account, uint64_t since_ms,
                               uint64_t *waiting_out, uint64_t *refused_out, tide_error *err)
{
    TIDE_TRY(tide_rows_number(db, WHAT, waiting_out, err,
                              "SELECT count(*) FROM reader_action WHERE account = ?1 AND state = 0",
                              account));
    return tide_rows_number(db, WHAT, refused_out, err,
                            "SELECT count(*) FROM reader_action WHERE account = ?1 AND state = 2"
                            " AND ended_ms >= ?2",
                            account, since_ms);
}

tide_status tide_actions_purge(tide_rows db, uint32_t account, uint64_t before_ms, tide_error *err)
{
    TIDE_TRY(tide_rows_do(db, WHAT, err,
                          "DELETE FROM reader_change WHERE account = ?1 AND action IN"
                          " (SELECT id FROM reader_action WHERE account = ?1 AND state <> 0"
                          " AND ended_ms < ?2)",
                          account, before_ms));
    return tide_rows_do(db, WHAT, err,
                        "DELETE FROM reader_action WHERE account = ?1 AND state <> 0"
                        " AND ended_ms < ?2 AND changed <"
                        " (SELECT max(changed) FROM reader_action WHERE account = ?1)"
                        " AND id < (SELECT max(id) FROM reader_action WHERE account = ?1)",
                        account, before_ms);
}

tide_status tide_action_changes(tide_rows db, uint32_t account, uint64_t id,
                                void (*visit)(const struct tide_change *change, void *arg),
                                void *arg, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    tide_status rc = tide_rows_ask(db, WHAT, &stmt, err,
                                   "SELECT message, thread, label, added, internal_ms"
                                   " FROM reader_change WHERE account = ?1 AND action = ?2"
                                   " ORDER BY message, label",
                                   account, id);
    while (tide_rows_next(&stmt, &rc, err)) {
        const struct tide_change change = {.message = tide_rows_get_text(&stmt, 0),
                                           .thread = tide_rows_get_text(&stmt, 1),
                                           .label = tide_rows_get_text(&stmt, 2),
                                           .added = tide_rows_get_u64(&stmt, 3) != 0,
                                           .internal_ms = tide_rows_get_i64(&stmt, 4)};
        visit(&change, arg);
    }
    return rc;
}

/* ---- the overlay ---- */

tide_status tide_overlay_of(tide_rows db, uint32_t account, tide_text message,
                            void (*visit)(tide_text label, bool added, void *arg), void *arg,
                            tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    tide_status rc = tide_rows_ask(db, WHAT, &stmt, err,
                                   "SELECT label, added FROM reader_change WHERE account = ?1"
                                   " AND live = 1 AND message = ?2 ORDER BY action",
                                   account, message);
    while (tide_rows_next(&stmt, &rc, err))
        visit(tide_rows_get_text(&stmt, 0), tide_rows_get_u64(&stmt, 1) != 0, arg);
    return rc;
}

tide_status tide_overlay_added(tide_rows db, uint32_t account, tide_text label, int64_t before_ms,
                               tide_text before_id, uint32_t limit,
                               bool (*visit)(tide_text message, int64_t internal_ms, void *arg),
                               void *arg, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    tide_status rc = tide_rows_ask(
        db, WHAT, &stmt, err,
        "SELECT DISTINCT message, internal_ms FROM reader_change WHERE account = ?1 AND live = 1"
        " AND label = ?2 AND added = 1 AND (internal_ms < ?3 OR (internal_ms = ?3"
        " AND message < ?4)) ORDER BY internal_ms DESC, message DESC LIMIT ?5",
        account, label, before_ms, before_id, limit);
    bool on = true;
    while (on && tide_rows_next(&stmt, &rc, err))
        on = visit(tide_rows_get_text(&stmt, 0), tide_rows_get_i64(&stmt, 1), arg);
    return rc;
}

tide_status tide_overlay_messages(tide_rows db, uint32_t account,
                                  void (*visit)(tide_text message, void *arg), void *arg,
                                  tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    tide_status rc = tide_rows_ask(db, WHAT, &stmt, err,
                                   "SELECT DISTINCT message FROM reader_change"
                                   " WHERE account = ?1 AND live = 1",
                                   account);
    while (tide_rows_next(&stmt, &rc, err))
        visit(tide_rows_get_text(&stmt, 0), arg);
    return rc;
}

tide_status tide_overlay_changes(tide_rows db, uint32_t account, uint64_t since,
                                 void (*visit)(tide_text message, void *arg), void *arg,
                                 uint64_t *newest_out, tide_error *err)
{
    TIDE_TRY(tide_rows_number(db, WHAT, newest_out, err,
                              "SELECT coalesce(max(changed), 0) FROM reader_action"
                              " WHERE account = ?1",
                              account));
    tide_auto_rows stmt = {.what = NULL};
    tide_status rc = tide_rows_ask(db, WHAT, &stmt, err,
                                   "SELECT DISTINCT c.message FROM reader_action a"
                                   " JOIN reader_change c ON c.account = a.account"
                                   " AND c.action = a.id WHERE a.account = ?1 AND a.changed > ?2",
                                   account, since);
    while (tide_rows_next(&stmt, &rc, err))
        visit(tide_rows_get_text(&stmt, 0), arg);
    return rc;
}
