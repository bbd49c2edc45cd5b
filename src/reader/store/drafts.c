#include "reader/store/store.h"

#define WHAT "the drafts"

static void draft_read(const tide_rows_stmt *stmt, struct tide_draft *draft)
{
    draft->account = tide_rows_get_u32(stmt, 0);
    tide_rows_get_copy(stmt, 1, draft->id, sizeof draft->id);
    draft->json = tide_rows_get_text(stmt, 2);
    draft->changed_ms = tide_rows_get_u64(stmt, 3);
    draft->outgoing = tide_rows_get_text(stmt, 4);
    draft->sending = tide_rows_get_u64(stmt, 5);
    draft->files = tide_rows_get_text(stmt, 6);
    draft->copied_ms = tide_rows_get_u64(stmt, 7);
    draft->refused_ms = tide_rows_get_u64(stmt, 8);
    draft->closed_ms = tide_rows_get_u64(stmt, 9);
}

#define JOINED                                                                                     \
    " FROM reader_draft d LEFT JOIN reader_draft_copy c ON c.account = d.account AND c.id = d.id"
#define COLUMNS                                                                                    \
    "SELECT d.account, d.id, d.json, d.changed_ms, d.outgoing, d.sending, d.files,"                \
    " coalesce(c.copied_ms, 0), coalesce(c.refused_ms, 0), coalesce(c.closed_ms, 0)" JOINED

static tide_status is_sent(tide_error *err)
{
    return tide_error_set(err, TIDE_EXISTS, "the draft is being sent; undo that first");
}

static tide_status sending(tide_rows db, uint32_t account, const char *id, uint64_t *action_out,
                           tide_error *err)
{
    return tide_rows_number(db, WHAT, action_out, err,
                            "SELECT sending FROM reader_draft WHERE account = ?1 AND id = ?2",
                            account, id);
}

tide_status tide_draft_put(tide_rows db, const struct tide_draft *draft, bool *created_out,
                           tide_error *err)
{
    uint64_t action = 0;
    const tide_status rc = sending(db, draft->account, draft->id, &action, err);
    if (rc != TIDE_OK && rc != TIDE_NOT_FOUND)
        return rc;
    if (action != 0)
        return is_sent(err);
    TIDE_TRY(tide_rows_do(db, WHAT, err,
                          "INSERT INTO reader_draft(account, id, json, changed_ms, outgoing,"
                          " sending, files) VALUES(?1, ?2, ?3, ?4, '', 0, '[]')"
                          " ON CONFLICT(account, id) DO UPDATE SET json = ?3, changed_ms ="
                          " CASE WHEN reader_draft.json = ?3 THEN reader_draft.changed_ms"
                          " WHEN reader_draft.changed_ms < ?4 THEN ?4"
                          " ELSE reader_draft.changed_ms + 1 END", /* RDS7 */
                          draft->account, (const char *)draft->id, draft->json, draft->changed_ms));
    if (created_out != NULL)
        *created_out = rc == TIDE_NOT_FOUND;
    return TIDE_OK;
}

tide_status tide_draft_get(tide_rows db, uint32_t account, const char *id,
                           void (*visit)(const struct tide_draft *draft, void *arg), void *arg,
                           tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    const tide_status rc = tide_rows_first(
        db, WHAT, &stmt, err, COLUMNS " WHERE d.account = ?1 AND d.id = ?2", account, id);
    if (rc == TIDE_OK) {
        struct tide_draft draft;
        draft_read(&stmt, &draft);
        visit(&draft, arg);
    }
    return rc;
}

tide_status tide_drafts_each(tide_rows db, uint32_t account,
                             void (*visit)(const struct tide_draft *draft, void *arg), void *arg,
                             tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    tide_status rc =
        tide_rows_ask(db, WHAT, &stmt, err,
                      COLUMNS " WHERE d.account = ?1 ORDER BY d.changed_ms DESC, d.id", account);
    while (tide_rows_next(&stmt, &rc, err)) {
        struct tide_draft draft;
        draft_read(&stmt, &draft);
        visit(&draft, arg);
    }
    return rc;
}

tide_status tide_drafts_after(tide_rows db, uint32_t account, const char *after,
                              bool (*visit)(const struct tide_draft *draft, void *arg), void *arg,
                              tide_error *err)
{
    bool more = true;
    tide_auto_rows stmt = {.what = NULL};
    tide_status rc =
        tide_rows_ask(db, WHAT, &stmt, err,
                      COLUMNS " WHERE d.account = ?1 AND d.id > ?2 ORDER BY d.id", account, after);
    while (more && tide_rows_next(&stmt, &rc, err)) {
        struct tide_draft draft;
        draft_read(&stmt, &draft);
        more = visit(&draft, arg);
    }
    return rc;
}

tide_status tide_draft_outgoing(tide_rows db, uint32_t account, const char *id, tide_text outgoing,
                                tide_error *err)
{
    uint64_t changed = 0;
    TIDE_TRY(
        tide_rows_change(db, WHAT, &changed, err,
                         "UPDATE reader_draft SET outgoing = ?3 WHERE account = ?1 AND id = ?2",
                         account, id, outgoing));
    return changed == 1 ? TIDE_OK
                        : tide_error_set(err, TIDE_NOT_FOUND, "there is no draft %.64s", id);
}

tide_status tide_draft_take(tide_rows db, const struct tide_draft *draft, tide_error *err)
{
    uint64_t revision = 0;
    const char *id = draft->id;
    TIDE_TRY(tide_draft_put(db, draft, /* created_out= */ NULL, err));
    TIDE_TRY(tide_draft_outgoing(db, draft->account, id, draft->outgoing, err));
    TIDE_TRY(tide_draft_files(db, draft->account, id, draft->files, draft->changed_ms, err));
    TIDE_TRY(tide_rows_number(db, WHAT, &revision, err,
                              "SELECT changed_ms FROM reader_draft WHERE account = ?1 AND id = ?2",
                              draft->account, id));
    return tide_draft_is(db, draft->account, id, TIDE_DRAFT_COPIED, revision, err);
}

tide_status tide_draft_files(tide_rows db, uint32_t account, const char *id, tide_text files,
                             uint64_t now_ms, tide_error *err)
{
    uint64_t action = 0;
    TIDE_TRY(sending(db, account, id, &action, err));
    if (action != 0)
        return is_sent(err);
    return tide_rows_do(db, WHAT, err,
                        "UPDATE reader_draft SET files = ?3, changed_ms ="
                        " CASE WHEN changed_ms < ?4 THEN ?4 ELSE changed_ms + 1 END"
                        " WHERE account = ?1 AND id = ?2",
                        account, id, files, now_ms);
}

tide_status tide_draft_is(tide_rows db, uint32_t account, const char *id, tide_draft_mark mark,
                          uint64_t changed_ms, tide_error *err)
{
    static const char *const set[] = {
        [TIDE_DRAFT_COPIED] = "UPDATE reader_draft_copy SET copied_ms = ?3"
                              " WHERE account = ?1 AND id = ?2",
        [TIDE_DRAFT_REFUSED] = "UPDATE reader_draft_copy SET refused_ms = ?3"
                               " WHERE account = ?1 AND id = ?2",
        [TIDE_DRAFT_CLOSED] = "UPDATE reader_draft_copy SET closed_ms = ?3"
                              " WHERE account = ?1 AND id = ?2",
    };
    uint64_t action = 0;
    TIDE_TRY(sending(db, account, id, &action, err));
    TIDE_TRY(tide_rows_do(db, WHAT, err,
                          "INSERT INTO reader_draft_copy(account, id, copied_ms, refused_ms,"
                          " closed_ms) VALUES(?1, ?2, 0, 0, 0) ON CONFLICT(account, id) DO NOTHING",
                          account, id));
    return tide_rows_do(db, WHAT, err, set[mark], account, id, changed_ms);
}

tide_status tide_drafts_ahead(tide_rows db, void (*visit)(uint32_t account, void *arg), void *arg,
                              tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    tide_status rc = tide_rows_ask(db, WHAT, &stmt, err,
                                   "SELECT DISTINCT d.account" JOINED " WHERE d.sending = 0"
                                   " AND d.changed_ms <> coalesce(c.copied_ms, 0)"
                                   " AND d.changed_ms <> coalesce(c.refused_ms, 0)");
    while (tide_rows_next(&stmt, &rc, err))
        visit(tide_rows_get_u32(&stmt, 0), arg);
    return rc;
}

/* ---- copies: changes of no action ---- */

tide_status tide_copy_hide(tide_rows db, uint32_t account, const char *message, tide_error *err)
{
    return tide_rows_do(db, WHAT, err,
                        "INSERT INTO reader_change(account, action, message, thread, label, added,"
                        " internal_ms, live) VALUES(?1, 0, ?2, '', ?3, 1, 0, 1)"
                        " ON CONFLICT(account, action, message, label) DO NOTHING",
                        account, message, TIDE_OVERLAY_GONE);
}

tide_status tide_copy_unhide(tide_rows db, uint32_t account, const char *message, tide_error *err)
{
    return tide_rows_do(db, WHAT, err,
                        "DELETE FROM reader_change WHERE account = ?1 AND action = 0"
                        " AND message = ?2",
                        account, message);
}

tide_status tide_copies_each(tide_rows db, uint32_t account,
                             void (*visit)(tide_text message, void *arg), void *arg,
                             tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    tide_status rc = tide_rows_ask(
        db, WHAT, &stmt, err, "SELECT message FROM reader_change WHERE account = ?1 AND action = 0",
        account);
    while (tide_rows_next(&stmt, &rc, err))
        visit(tide_rows_get_text(&stmt, 0), arg);
    return rc;
}

tide_status tide_draft_end(tide_rows db, uint32_t account, const char *id, tide_error *err)
{
    TIDE_TRY(tide_rows_do(db, WHAT, err,
                          "DELETE FROM reader_draft_copy WHERE account = ?1 AND id = ?2", account,
                          id));
    return tide_rows_do(db, WHAT, err, "DELETE FROM reader_draft WHERE account = ?1 AND id = ?2",
                        account, id);
}

tide_status tide_draft_send(tide_rows db, uint32_t account, const char *id, uint64_t action,
                            tide_error *err)
{
    uint64_t before = 0;
    TIDE_TRY(sending(db, account, id, &before, err));
    if (action != 0 && before != 0 && before != action)
        return is_sent(err);
    return tide_rows_do(db, WHAT, err,
                        "UPDATE reader_draft SET sending = ?3 WHERE account = ?1 AND id = ?2",
                        account, id, action);
}

tide_status tide_draft_drop(tide_rows db, uint32_t account, const char *id, tide_error *err)
{
    uint64_t action = 0;
    const tide_status rc = sending(db, account, id, &action, err);
    if (rc != TIDE_OK)
        return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
    if (action != 0)
        return is_sent(err);
    return tide_draft_end(db, account, id, err);
}
