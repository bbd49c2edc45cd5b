/* lists.c - owed items, deletions that wait for consent, conflicts: what a user is shown by name. */
#include "base/hash.h"
#include "drive/store/store_inside.h"

enum { CLOSED = 2 }; /* as `loop` */

/* ---- owed (D4) ---- */

tide_status tide_drive_owe(tide_rows db, const struct tide_drive_owed *owed, tide_error *err)
{
    return tide_rows_do(db, TIDE_DRIVE_ROWS, err,
                        "INSERT INTO drive_@_owed(item, row, verb, name, error, attempts, next_ms,"
                        " loop, since_ms, bad) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"
                        " ON CONFLICT(item, row, loop) DO UPDATE SET verb = ?3, name = ?4,"
                        " error = ?5, attempts = ?6, next_ms = ?7, bad = ?10,"
                        " since_ms = CASE since_ms WHEN 0 THEN ?9 ELSE since_ms END",
                        owed->item, owed->row, (int)owed->verb, tide_drive_bytes_value(owed->name),
                        owed->error, owed->attempts, owed->next_ms,
                        owed->closed ? CLOSED
                        : owed->loop ? 1
                                     : 0,
                        owed->now_ms, owed->bad ? 1 : 0);
}

tide_status tide_drive_owed_paid(tide_rows db, uint64_t item, uint64_t row, tide_error *err)
{
    uint64_t rows = 0;
    TIDE_TRY(tide_rows_change(db, TIDE_DRIVE_ROWS, &rows, err,
                              "DELETE FROM drive_@_owed WHERE item = ?1 AND row = ?2 AND loop = 0",
                              item, row));
    return tide_drive_changed(db, rows, err);
}

tide_status tide_drive_undone(tide_rows db, uint64_t job, tide_error *err)
{
    TIDE_TRY(tide_rows_do(db, TIDE_DRIVE_ROWS, err,
                          "INSERT OR IGNORE INTO drive_@_undone VALUES(?1)", job));
    return tide_rows_do(db, TIDE_DRIVE_ROWS, err, "DELETE FROM drive_@_undone WHERE job < ?1",
                        job > TIDE_DRIVE_UNDONE_MAX ? job - TIDE_DRIVE_UNDONE_MAX : 0);
}

tide_status tide_drive_owed_now(tide_rows db, tide_error *err)
{
    uint64_t rows = 0;
    TIDE_TRY(tide_rows_change(db, TIDE_DRIVE_ROWS, &rows, err,
                              "UPDATE drive_@_owed SET next_ms = 0 WHERE loop <> 1"));
    return tide_drive_changed(db, rows, err);
}

tide_status tide_drive_owed_each(tide_rows db,
                                 void (*visit)(const struct tide_drive_owed *owed, void *arg),
                                 void *arg, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    TIDE_TRY(tide_rows_ask(
        db, TIDE_DRIVE_ROWS, &stmt, err,
        "SELECT item, row, verb, name, error, attempts, next_ms, loop FROM drive_@_owed"
        " ORDER BY next_ms, item, row"));
    tide_status rc = TIDE_OK;
    while (tide_rows_next(&stmt, &rc, err)) {
        const struct tide_drive_owed owed = {.item = tide_rows_get_u64(&stmt, 0),
                                             .row = tide_rows_get_u64(&stmt, 1),
                                             .verb = (tide_drive_verb)tide_rows_get_i64(&stmt, 2),
                                             .name = tide_rows_get_text(&stmt, 3),
                                             .error = tide_rows_get_text(&stmt, 4),
                                             .attempts = tide_rows_get_u32(&stmt, 5),
                                             .next_ms = tide_rows_get_u64(&stmt, 6),
                                             .loop = tide_rows_get_u64(&stmt, 7) == 1,
                                             .closed = tide_rows_get_u64(&stmt, 7) == CLOSED};
        visit(&owed, arg);
    }
    return rc;
}

static bool has_action(const struct tide_drive_plan *plan, uint64_t item, uint64_t row)
{
    for (size_t i = 0; i < plan->actions_count; i++)
        if ((item != 0 && plan->actions[i].item == item) ||
            (row != 0 && plan->actions[i].row == row))
            return true;
    return false;
}

tide_status tide_drive_owed_settle(tide_rows db, const struct tide_drive_plan *plan,
                                   uint64_t now_ms, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    tide_status rc = TIDE_OK;
    TIDE_TRY(tide_rows_do(db, TIDE_DRIVE_ROWS, err,
                          "DELETE FROM drive_@_owed WHERE loop = 2 AND (next_ms <= ?1"
                          " OR item <> 1 AND item NOT IN (SELECT item FROM drive_@_remote))",
                          now_ms));
    TIDE_TRY(tide_rows_ask(db, TIDE_DRIVE_ROWS, &stmt, err,
                           "SELECT item, row FROM drive_@_owed WHERE loop < 2"));
    while (tide_rows_next(&stmt, &rc, err)) {
        const uint64_t item = tide_rows_get_u64(&stmt, 0), row = tide_rows_get_u64(&stmt, 1);
        if (!has_action(plan, item, row)) /* SQLite lets the row that was just read go */
            TIDE_TRY(tide_rows_do(db, TIDE_DRIVE_ROWS, err,
                                  "DELETE FROM drive_@_owed WHERE item = ?1 AND row = ?2"
                                  " AND loop < 2",
                                  item, row));
    }
    return rc;
}

tide_status tide_drive_accept(tide_rows db, uint64_t item, tide_error *err)
{
    uint64_t changed = 0;
    TIDE_TRY(tide_rows_change(db, TIDE_DRIVE_ROWS, &changed, err,
                              "UPDATE drive_@_owed SET next_ms = 0, attempts = 0 WHERE item = ?1"
                              " AND verb = ?2",
                              item, (int)TIDE_DRIVE_DOWN));
    if (changed == 0)
        return tide_error_set(err, TIDE_NOT_FOUND, "no download of this item is owed");
    TIDE_TRY(tide_rows_do(db, TIDE_DRIVE_ROWS, err,
                          "INSERT OR REPLACE INTO drive_@_accepted SELECT item, ctag"
                          " FROM drive_@_remote WHERE item = ?1",
                          item));
    return tide_drive_changed(db, 1, err);
}

tide_status tide_drive_is_accepted(tide_rows db, uint64_t item, tide_text ctag, bool *accepted_out,
                                   tide_error *err)
{
    uint64_t count = 0;
    TIDE_TRY(tide_rows_number(db, TIDE_DRIVE_ROWS, &count, err,
                              "SELECT count(*) FROM drive_@_accepted WHERE item = ?1 AND ctag = ?2",
                              item, ctag));
    *accepted_out = count > 0;
    return TIDE_OK;
}

/* ---- deletions that wait (S16) ---- */

tide_status tide_drive_deletions_set(tide_rows db, const struct tide_drive_deletion *deletions,
                                     size_t count, tide_error *err)
{
    TIDE_TRY(tide_rows_do(db, TIDE_DRIVE_ROWS, err, "DELETE FROM drive_@_deletion"));
    for (size_t i = 0; i < count; i++)
        TIDE_TRY(tide_rows_do(
            db, TIDE_DRIVE_ROWS, err, "INSERT OR REPLACE INTO drive_@_deletion VALUES(?1, ?2, ?3)",
            deletions[i].item, (int)deletions[i].verb, tide_drive_bytes_value(deletions[i].name)));
    return TIDE_OK;
}

tide_status tide_drive_deletions_fingerprint(tide_rows db, uint64_t *fingerprint_out,
                                             tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    uint64_t hash = TIDE_HASH_START;
    TIDE_TRY(tide_rows_ask(db, TIDE_DRIVE_ROWS, &stmt, err,
                           "SELECT item, verb FROM drive_@_deletion ORDER BY item"));
    tide_status rc = TIDE_OK;
    while (tide_rows_next(&stmt, &rc, err)) {
        const uint64_t numbers[] = {tide_rows_get_u64(&stmt, 0), tide_rows_get_u64(&stmt, 1)};
        hash = tide_hash(hash, (tide_text){(const char *)numbers, sizeof numbers});
    }
    if (rc == TIDE_OK)
        *fingerprint_out = hash;
    return rc;
}

static tide_status compare_fingerprint(tide_rows db, uint64_t fingerprint, tide_error *err)
{
    uint64_t now = 0;
    TIDE_TRY(tide_drive_deletions_fingerprint(db, &now, err));
    return now == fingerprint
               ? TIDE_OK
               : tide_error_set(err, TIDE_STALE,
                                "the deletions that wait are others than those that were listed; "
                                "list them again");
}

tide_status tide_drive_deletions_accept(tide_rows db, uint64_t fingerprint, uint64_t now_ms,
                                        tide_error *err)
{
    TIDE_TRY(compare_fingerprint(db, fingerprint, err));
    TIDE_TRY(
        tide_rows_do(db, TIDE_DRIVE_ROWS, err,
                     "INSERT OR REPLACE INTO drive_@_consent SELECT item, ?1 FROM drive_@_deletion",
                     now_ms + TIDE_DRIVE_DAY_MS));
    return tide_drive_changed(db, 1, err);
}

/* An item without a baseline is new on the side that has it, and so crosses again (D19). */
tide_status tide_drive_deletions_restore(tide_rows db, uint64_t fingerprint, tide_error *err)
{
    TIDE_TRY(compare_fingerprint(db, fingerprint, err));
    TIDE_TRY(
        tide_rows_do(db, TIDE_DRIVE_ROWS, err,
                     "DELETE FROM drive_@_base WHERE item IN (SELECT item FROM drive_@_deletion)"));
    TIDE_TRY(tide_rows_do(db, TIDE_DRIVE_ROWS, err, "DELETE FROM drive_@_deletion"));
    return tide_drive_changed(db, 1, err);
}

tide_status tide_drive_guard_read(tide_rows db, uint64_t now_ms, tide_mem *mem,
                                  struct tide_drive_guard *guard_out, tide_error *err)
{
    const uint64_t since = now_ms < TIDE_DRIVE_DAY_MS ? 0 : now_ms - TIDE_DRIVE_DAY_MS;
    struct tide_drive_guard guard = {.done_24h = 0};
    uint64_t count = 0;
    TIDE_TRY(tide_rows_number(db, TIDE_DRIVE_ROWS, &guard.done_24h, err,
                              "SELECT count(*) FROM drive_@_deleted WHERE at_ms > ?1", since));
    TIDE_TRY(
        tide_rows_number(db, TIDE_DRIVE_ROWS, &guard.largest_24h, err,
                         "SELECT max((SELECT count(*) FROM drive_@_base),"
                         " (SELECT coalesce(max(items), 0) FROM drive_@_size WHERE hour >= ?1))",
                         since / 3600000));
    TIDE_TRY(tide_rows_number(db, TIDE_DRIVE_ROWS, &count, err,
                              "SELECT count(*) FROM drive_@_consent WHERE until_ms > ?1", now_ms));
    *guard_out = guard;
    if (count == 0)
        return TIDE_OK;
    uint64_t *items = tide_mem_array(mem, (size_t)count, sizeof *items);
    if (items == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for the accepted deletions");
    tide_auto_rows stmt = {.what = NULL};
    tide_status rc =
        tide_rows_ask(db, TIDE_DRIVE_ROWS, &stmt, err,
                      "SELECT item FROM drive_@_consent WHERE until_ms > ?1 ORDER BY item", now_ms);
    size_t used = 0;
    while (used < count && tide_rows_next(&stmt, &rc, err))
        items[used++] = tide_rows_get_u64(&stmt, 0);
    guard_out->consented = items;
    guard_out->consented_count = (size_t)count;
    if (rc != TIDE_OK)
        tide_drive_guard_done(guard_out, mem);
    return rc;
}

void tide_drive_guard_done(struct tide_drive_guard *guard, tide_mem *mem)
{
    tide_mem_free(mem, (void *)(uintptr_t)guard->consented,
                  guard->consented_count * sizeof *guard->consented);
    guard->consented = NULL;
    guard->consented_count = 0;
}

/* ---- conflicts (D21) ---- */

tide_status tide_drive_conflict_add(tide_rows db, const struct tide_drive_conflict *conflict,
                                    tide_error *err)
{
    TIDE_TRY(tide_rows_do(db, TIDE_DRIVE_ROWS, err,
                          "INSERT INTO drive_@_conflict(notice, item, name, copy, at_ms)"
                          " VALUES(?1, ?2, ?3, ?4, ?5)",
                          (int)conflict->notice, conflict->item,
                          tide_drive_bytes_value(conflict->name),
                          tide_drive_bytes_value(conflict->copy), conflict->at_ms));
    if (conflict->copy.bytes == 0)
        return TIDE_OK;
    return tide_drive_note_copy(db, conflict->item, conflict->name, conflict->at_ms, err);
}

tide_status tide_drive_conflict_end(tide_rows db, uint64_t id, tide_error *err)
{
    uint64_t changed = 0;
    TIDE_TRY(tide_rows_change(db, TIDE_DRIVE_ROWS, &changed, err,
                              "DELETE FROM drive_@_conflict WHERE id = ?1", id));
    return changed == 1 ? TIDE_OK
                        : tide_error_set(err, TIDE_NOT_FOUND, "there is no such conflict");
}

tide_status tide_drive_conflicts_each(tide_rows db,
                                      void (*visit)(const struct tide_drive_conflict *conflict,
                                                    void *arg),
                                      void *arg, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    TIDE_TRY(tide_rows_ask(db, TIDE_DRIVE_ROWS, &stmt, err,
                           "SELECT id, notice, item, name, copy, at_ms FROM drive_@_conflict"
                           " ORDER BY id"));
    tide_status rc = TIDE_OK;
    while (tide_rows_next(&stmt, &rc, err)) {
        const struct tide_drive_conflict conflict = {
            .id = tide_rows_get_u64(&stmt, 0),
            .notice = (tide_drive_notice)tide_rows_get_i64(&stmt, 1),
            .item = tide_rows_get_u64(&stmt, 2),
            .name = tide_rows_get_text(&stmt, 3),
            .copy = tide_rows_get_text(&stmt, 4),
            .at_ms = tide_rows_get_u64(&stmt, 5)};
        visit(&conflict, arg);
    }
    return rc;
}
