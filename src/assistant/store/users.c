#include "assistant/store/inside.h"

#include "base/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define WHAT TIDE_ASSISTANT_WHAT

/* Times are milliseconds since 1970; statuses, categories and kinds are words (status.h).  Records are
 * listed by when they changed: one index for each filter of look.h. */
static const char tables[] =
    "CREATE TABLE IF NOT EXISTS assistant_user("
    " account INTEGER PRIMARY KEY, email TEXT NOT NULL, endpoint TEXT NOT NULL,"
    " onboarded_ms INTEGER NOT NULL"
    ") STRICT;"
    "CREATE UNIQUE INDEX IF NOT EXISTS assistant_user_email ON assistant_user(lower(email));"
    "CREATE TABLE IF NOT EXISTS assistant_label("
    " account INTEGER NOT NULL, label INTEGER NOT NULL, id TEXT NOT NULL, name TEXT NOT NULL,"
    " PRIMARY KEY(account, label)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS assistant_setting("
    " account INTEGER NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL,"
    " PRIMARY KEY(account, name)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS assistant_sync("
    " account INTEGER PRIMARY KEY, history_id TEXT NOT NULL, synced_ms INTEGER NOT NULL,"
    " full_ms INTEGER NOT NULL"
    ") STRICT;"
    "CREATE TABLE IF NOT EXISTS assistant_email("
    " id INTEGER PRIMARY KEY, account INTEGER NOT NULL, thread_id TEXT NOT NULL,"
    " message_id TEXT NOT NULL, sender TEXT NOT NULL, subject TEXT NOT NULL,"
    " category TEXT NOT NULL, confidence TEXT NOT NULL, language TEXT NOT NULL,"
    " style TEXT NOT NULL, reasoning TEXT NOT NULL, status TEXT NOT NULL,"
    " messages INTEGER NOT NULL, reworks INTEGER NOT NULL, created_ms INTEGER NOT NULL,"
    " updated_ms INTEGER NOT NULL, UNIQUE(account, thread_id)"
    ") STRICT;"
    "CREATE INDEX IF NOT EXISTS assistant_email_new ON assistant_email(updated_ms, id);"
    "CREATE INDEX IF NOT EXISTS assistant_email_user"
    " ON assistant_email(account, updated_ms, id);"
    "CREATE INDEX IF NOT EXISTS assistant_email_status"
    " ON assistant_email(account, status, updated_ms, id);"
    "CREATE INDEX IF NOT EXISTS assistant_email_category"
    " ON assistant_email(account, category, updated_ms, id);"
    "CREATE INDEX IF NOT EXISTS assistant_email_sender"
    " ON assistant_email(account, sender, updated_ms, id);"
    /* The same of all users together. */
    "CREATE INDEX IF NOT EXISTS assistant_email_all_status"
    " ON assistant_email(status, updated_ms, id);"
    "CREATE INDEX IF NOT EXISTS assistant_email_all_category"
    " ON assistant_email(category, updated_ms, id);"
    "CREATE INDEX IF NOT EXISTS assistant_email_all_sender"
    " ON assistant_email(sender, updated_ms, id);"
    "CREATE TABLE IF NOT EXISTS assistant_tally("
    " account INTEGER NOT NULL, status TEXT NOT NULL, category TEXT NOT NULL,"
    " records INTEGER NOT NULL, PRIMARY KEY(account, status, category)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS assistant_event("
    " id INTEGER PRIMARY KEY, account INTEGER NOT NULL, thread_id TEXT NOT NULL,"
    " kind TEXT NOT NULL, detail TEXT NOT NULL, job INTEGER NOT NULL, at_ms INTEGER NOT NULL"
    ") STRICT;"
    "CREATE INDEX IF NOT EXISTS assistant_event_thread"
    " ON assistant_event(account, thread_id, id);"
    "CREATE INDEX IF NOT EXISTS assistant_event_user ON assistant_event(account, id);"
    "CREATE INDEX IF NOT EXISTS assistant_event_kind ON assistant_event(kind, id);"
    "CREATE INDEX IF NOT EXISTS assistant_event_user_kind"
    " ON assistant_event(account, kind, id);"
    "CREATE TABLE IF NOT EXISTS assistant_draft("
    " token TEXT NOT NULL PRIMARY KEY, account INTEGER NOT NULL, thread_id TEXT NOT NULL,"
    " state INTEGER NOT NULL, draft_id TEXT NOT NULL, message_id TEXT NOT NULL,"
    " begun_ms INTEGER NOT NULL, made_ms INTEGER NOT NULL"
    ") STRICT, WITHOUT ROWID;"
    /* STO3 */
    "CREATE UNIQUE INDEX IF NOT EXISTS assistant_draft_one"
    " ON assistant_draft(account, thread_id) WHERE state < 2;"
    "CREATE INDEX IF NOT EXISTS assistant_draft_thread"
    " ON assistant_draft(account, thread_id, state);"
    "CREATE INDEX IF NOT EXISTS assistant_draft_left"
    " ON assistant_draft(account, begun_ms) WHERE state IN (0, 2);"
    "CREATE TABLE IF NOT EXISTS assistant_mark("
    " account INTEGER NOT NULL, message_id TEXT NOT NULL, label_id TEXT NOT NULL,"
    " job INTEGER NOT NULL, begun_ms INTEGER NOT NULL, done_ms INTEGER NOT NULL,"
    " PRIMARY KEY(account, message_id, label_id, job)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS assistant_call("
    " id INTEGER PRIMARY KEY, account INTEGER NOT NULL, thread_id TEXT NOT NULL,"
    " key TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, model TEXT NOT NULL, job INTEGER NOT NULL,"
    " begun_ms INTEGER NOT NULL, ended_ms INTEGER NOT NULL, error TEXT NOT NULL,"
    " tokens_in INTEGER NOT NULL, tokens_out INTEGER NOT NULL, latency_ms INTEGER NOT NULL,"
    /* Long texts come last: SQLite reads a row from its beginning up to the last column that is
     * asked for, and lists do not ask for these. */
    " system TEXT NOT NULL, prompt TEXT NOT NULL, answer TEXT NOT NULL"
    ") STRICT;"
    "CREATE INDEX IF NOT EXISTS assistant_call_thread ON assistant_call(account, thread_id, id);"
    "CREATE INDEX IF NOT EXISTS assistant_call_begun"
    " ON assistant_call(account, begun_ms, tokens_in, tokens_out);"
    "CREATE INDEX IF NOT EXISTS assistant_call_user ON assistant_call(account, id);"
    "CREATE INDEX IF NOT EXISTS assistant_call_kind ON assistant_call(kind, id);"
    "CREATE INDEX IF NOT EXISTS assistant_call_user_kind"
    " ON assistant_call(account, kind, id);"
    "CREATE INDEX IF NOT EXISTS assistant_call_open ON assistant_call(id) WHERE ended_ms = 0;"
    "CREATE INDEX IF NOT EXISTS assistant_call_failed ON assistant_call(id) WHERE error <> '';"
    "CREATE TABLE IF NOT EXISTS assistant_run("
    " id INTEGER PRIMARY KEY, account INTEGER NOT NULL, thread_id TEXT NOT NULL,"
    " message_id TEXT NOT NULL, key TEXT NOT NULL UNIQUE, profile TEXT NOT NULL,"
    " rule TEXT NOT NULL, status TEXT NOT NULL, iterations INTEGER NOT NULL, error TEXT NOT NULL,"
    " begun_ms INTEGER NOT NULL, ended_ms INTEGER NOT NULL, tools TEXT NOT NULL,"
    " final TEXT NOT NULL, state TEXT NOT NULL"
    ") STRICT;"
    "CREATE INDEX IF NOT EXISTS assistant_run_thread ON assistant_run(account, thread_id, id);"
    "CREATE INDEX IF NOT EXISTS assistant_run_open ON assistant_run(account, id)"
    " WHERE ended_ms = 0;"
    "CREATE INDEX IF NOT EXISTS assistant_run_user ON assistant_run(account, id);"
    "CREATE INDEX IF NOT EXISTS assistant_run_status ON assistant_run(status, id);"
    "CREATE INDEX IF NOT EXISTS assistant_run_user_status"
    " ON assistant_run(account, status, id);"
    "CREATE TABLE IF NOT EXISTS assistant_failure("
    " account INTEGER NOT NULL, thread_id TEXT NOT NULL, message_id TEXT NOT NULL,"
    " failures INTEGER NOT NULL, failed_ms INTEGER NOT NULL, seen_ms INTEGER NOT NULL,"
    " PRIMARY KEY(account, thread_id)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS assistant_reply("
    " run INTEGER PRIMARY KEY, account INTEGER NOT NULL, call INTEGER NOT NULL,"
    " message_id TEXT NOT NULL, begun_ms INTEGER NOT NULL, sent_ms INTEGER NOT NULL"
    ") STRICT;";

tide_status tide_assistant_tables(tide_rows db, tide_error *err)
{
    return tide_rows_tables(db, tables, WHAT, err);
}

/* ---- users ---- */

#define ENDED "ended_ms" /* a setting */
#define USER_COLUMNS                                                                               \
    "SELECT account, email, endpoint, onboarded_ms, COALESCE((SELECT CAST(value AS BIGINT)"        \
    " FROM assistant_setting s WHERE s.account = assistant_user.account AND s.name = '" ENDED      \
    "'), 0) FROM assistant_user"

static void user_read(const tide_rows_stmt *stmt, struct tide_assistant_user *user)
{
    user->account = tide_rows_get_u32(stmt, 0);
    tide_rows_get_copy(stmt, 1, user->email, sizeof user->email);
    tide_rows_get_copy(stmt, 2, user->endpoint, sizeof user->endpoint);
    user->onboarded_ms = tide_rows_get_u64(stmt, 3);
    user->ended_ms = tide_rows_get_u64(stmt, 4);
}

tide_status tide_assistant_user_put(tide_rows db, const struct tide_assistant_user *user,
                                    tide_error *err)
{
    TIDE_ASSERT(user->account > 0);
    TIDE_ASSERT(user->email[0] != '\0');
    TIDE_ASSERT(user->ended_ms == 0 || user->onboarded_ms == 0);
    TIDE_TRY(tide_rows_do(db, WHAT, err,
                          "INSERT INTO assistant_user(account, email, endpoint, onboarded_ms)"
                          " VALUES(?1, ?2, ?3, ?4) ON CONFLICT(account) DO UPDATE SET email = ?2,"
                          " endpoint = ?3, onboarded_ms = ?4",
                          user->account, user->email, user->endpoint, user->onboarded_ms));
    if (user->ended_ms == 0)
        return tide_rows_do(db, WHAT, err,
                            "DELETE FROM assistant_setting WHERE account = ?1 AND name = ?2",
                            user->account, ENDED);
    char text[32];
    (void)snprintf(text, sizeof text, "%" PRIu64, user->ended_ms);
    return tide_assistant_setting_put(db, user->account, ENDED, text, err);
}

tide_status tide_assistant_user_end(tide_rows db, uint32_t account, uint64_t now_ms,
                                    tide_error *err)
{
    struct tide_assistant_user user;
    TIDE_TRY(tide_assistant_user_get(db, account, &user, err));
    if (user.ended_ms > 0)
        return TIDE_OK;
    user.onboarded_ms = 0;
    user.ended_ms = now_ms;
    TIDE_TRY(tide_assistant_user_put(db, &user, err));
    /* What happens to the mailbox from now on is not looked at later either. */
    return tide_rows_do(db, WHAT, err,
                        "UPDATE assistant_sync SET history_id = '' WHERE account = ?1", account);
}

tide_status tide_assistant_user_get(tide_rows db, uint32_t account,
                                    struct tide_assistant_user *user_out, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    const tide_status rc =
        tide_rows_first(db, WHAT, &stmt, err, USER_COLUMNS " WHERE account = ?1", account);
    if (rc == TIDE_NOT_FOUND)
        return tide_error_set(err, rc, "account %u is not a user of the assistant",
                              (unsigned)account);
    if (rc == TIDE_OK)
        user_read(&stmt, user_out);
    return rc;
}

tide_status tide_assistant_user_named(tide_rows db, const char *email,
                                      struct tide_assistant_user *user_out, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    bool there = false;
    TIDE_TRY(tide_rows_has(db, "assistant_user", WHAT, &there, err));
    const tide_status rc =
        !there ? TIDE_NOT_FOUND
               : tide_rows_first(db, WHAT, &stmt, err,
                                 USER_COLUMNS " WHERE lower(email) = lower(?1)", email);
    if (rc == TIDE_NOT_FOUND)
        return tide_error_set(err, rc, "%.200s is not a user of the assistant", email);
    if (rc == TIDE_OK)
        user_read(&stmt, user_out);
    return rc;
}

tide_status tide_assistant_users_each(tide_rows db,
                                      void (*visit)(const struct tide_assistant_user *user,
                                                    void *arg),
                                      void *arg, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    struct tide_assistant_user user;
    bool there = false;
    TIDE_TRY(tide_rows_has(db, "assistant_user", WHAT, &there, err));
    if (!there)
        return TIDE_OK;
    tide_status rc = tide_rows_ask(db, WHAT, &stmt, err, USER_COLUMNS " ORDER BY account");
    while (tide_rows_next(&stmt, &rc, err)) {
        user_read(&stmt, &user);
        visit(&user, arg);
    }
    return rc;
}

tide_status tide_assistant_user_remove(tide_rows db, uint32_t account, tide_error *err)
{
    static const char *const statements[] = {
        "DELETE FROM assistant_label WHERE account = ?1",
        "DELETE FROM assistant_setting WHERE account = ?1",
        "DELETE FROM assistant_sync WHERE account = ?1",
        "DELETE FROM assistant_email WHERE account = ?1",
        "DELETE FROM assistant_tally WHERE account = ?1",
        "DELETE FROM assistant_event WHERE account = ?1",
        "DELETE FROM assistant_draft WHERE account = ?1",
        "DELETE FROM assistant_mark WHERE account = ?1",
        "DELETE FROM assistant_call WHERE account = ?1",
        "DELETE FROM assistant_run WHERE account = ?1",
        "DELETE FROM assistant_reply WHERE account = ?1",
        "DELETE FROM assistant_user WHERE account = ?1",
    };
    for (size_t i = 0; i < sizeof statements / sizeof statements[0]; i++)
        TIDE_TRY(tide_rows_do(db, WHAT, err, statements[i], account));
    return tide_assistant_failures_drop(db, account, err);
}

/* ---- labels and settings ---- */

tide_status tide_assistant_label_put(tide_rows db, uint32_t account, tide_assistant_label label,
                                     const char *id, tide_error *err)
{
    TIDE_ASSERT(label < TIDE_ASSISTANT_LABELS);
    TIDE_ASSERT(id[0] != '\0');
    return tide_rows_do(db, WHAT, err,
                        "INSERT INTO assistant_label(account, label, id, name)"
                        " VALUES(?1, ?2, ?3, ?4)"
                        " ON CONFLICT(account, label) DO UPDATE SET id = ?3, name = ?4",
                        account, (int)label, id, tide_assistant_label_name(label));
}

tide_status tide_assistant_labels_get(tide_rows db, uint32_t account,
                                      struct tide_assistant_labels *labels_out, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    struct tide_assistant_labels labels;
    memset(&labels, 0, sizeof labels);
    tide_status rc = tide_rows_ask(
        db, WHAT, &stmt, err, "SELECT label, id FROM assistant_label WHERE account = ?1", account);
    while (tide_rows_next(&stmt, &rc, err)) {
        const uint64_t label = tide_rows_get_u64(&stmt, 0);
        if (label < TIDE_ASSISTANT_LABELS)
            tide_rows_get_copy(&stmt, 1, labels.ids[label], sizeof labels.ids[label]);
    }
    if (rc == TIDE_OK)
        *labels_out = labels;
    return rc;
}

tide_status tide_assistant_setting_put(tide_rows db, uint32_t account, const char *name,
                                       const char *value, tide_error *err)
{
    return tide_rows_do(db, WHAT, err,
                        "INSERT INTO assistant_setting(account, name, value) VALUES(?1, ?2, ?3)"
                        " ON CONFLICT(account, name) DO UPDATE SET value = ?3",
                        account, name, value);
}

tide_status tide_assistant_setting_get(tide_rows db, uint32_t account, const char *name,
                                       char *value, size_t value_bytes, tide_error *err)
{
    return tide_rows_copy(db, WHAT, value, value_bytes, err,
                          "SELECT value FROM assistant_setting WHERE account = ?1 AND name = ?2",
                          account, name);
}

tide_status tide_assistant_settings_each(tide_rows db, uint32_t account,
                                         void (*visit)(const char *name, const char *value,
                                                       void *arg),
                                         void *arg, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    tide_status rc = tide_rows_ask(
        db, WHAT, &stmt, err,
        "SELECT name, value FROM assistant_setting WHERE account = ?1 ORDER BY name", account);
    while (tide_rows_next(&stmt, &rc, err))
        visit(tide_assistant_text_of(&stmt, 0), tide_assistant_text_of(&stmt, 1), arg);
    return rc;
}

/* ---- sync ---- */

#define PUSHED "pushed_ms" /* a setting */

tide_status tide_assistant_pushed_put(tide_rows db, uint32_t account, uint64_t now_ms,
                                      tide_error *err)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%" PRIu64, now_ms);
    return tide_assistant_setting_put(db, account, PUSHED, text, err);
}

tide_status tide_assistant_pushed_get(tide_rows db, uint32_t account, uint64_t *pushed_ms_out,
                                      tide_error *err)
{
    return tide_rows_number(db, WHAT, pushed_ms_out, err,
                            "SELECT COALESCE(MAX(CAST(value AS BIGINT)), 0) FROM assistant_setting"
                            " WHERE account = ?1 AND name = '" PUSHED "'",
                            account);
}

tide_status tide_assistant_sync_get(tide_rows db, uint32_t account,
                                    struct tide_assistant_sync *sync_out, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    struct tide_assistant_sync sync = {.synced_ms = 0};
    const tide_status rc = tide_rows_first(
        db, WHAT, &stmt, err,
        "SELECT history_id, synced_ms, full_ms FROM assistant_sync WHERE account = ?1", account);
    if (rc == TIDE_OK) {
        tide_rows_get_copy(&stmt, 0, sync.history_id, sizeof sync.history_id);
        sync.synced_ms = tide_rows_get_u64(&stmt, 1);
        sync.full_ms = tide_rows_get_u64(&stmt, 2);
    }
    if (rc != TIDE_OK && rc != TIDE_NOT_FOUND)
        return rc;
    *sync_out = sync;
    return TIDE_OK;
}

tide_status tide_assistant_sync_move(tide_rows db, uint32_t account, const char *from,
                                     const char *to, bool full, uint64_t now_ms, tide_error *err)
{
    uint64_t changed = 0;
    TIDE_TRY(tide_rows_do(db, WHAT, err,
                          "INSERT INTO assistant_sync(account, history_id, synced_ms, full_ms)"
                          " VALUES(?1, '', 0, 0) ON CONFLICT(account) DO NOTHING",
                          account));
    TIDE_TRY(tide_rows_change(db, WHAT, &changed, err,
                              "UPDATE assistant_sync SET history_id = ?3, synced_ms = ?4,"
                              " full_ms = CASE WHEN ?5 = 1 THEN ?4 ELSE full_ms END"
                              " WHERE account = ?1 AND history_id = ?2",
                              account, from, to, now_ms, full ? 1 : 0));
    if (changed == 1)
        return TIDE_OK;
    return tide_error_set(err, TIDE_STALE, "the history id of account %u is no longer \"%.60s\"",
                          (unsigned)account, from);
}
