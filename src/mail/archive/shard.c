/* shard.c - one shard file: opening, transactions, reading a message. */
#include "mail/archive/shard.h"
#include "base/check.h"
#include "base/encode.h"

#include <jansson.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* The columns of a message that FIND, AT and WALK share; one function reads them. */
/* A message without its bytes is still a row, so that it can be reported by name. */
#define STORED                                                                                     \
    "SELECT m.id, m.gmail_id, m.thread_id, m.history_id, m.internal_ms, m.bytes, c.hash, m.mark,"  \
    " m.gone_ms, m.content, m.problem, (SELECT d.kind FROM doubt d WHERE d.message = m.id)"        \
    " FROM message m LEFT JOIN content c ON c.id = m.content "

/* Bytes that no message has. */
#define UNUSED                                                                                     \
    "SELECT id FROM content EXCEPT SELECT content FROM message EXCEPT SELECT content FROM earlier"

static const char *const statements[TIDE_SHARD_SQL] = {
    [TIDE_SHARD_BEGIN] = "BEGIN",
    [TIDE_SHARD_COMMIT] = "COMMIT",
    [TIDE_SHARD_ROLLBACK] = "ROLLBACK",
    [TIDE_SHARD_STATE] = "SELECT id, account, year, part, generation, messages, raw_bytes, late,"
                         " (SELECT min(id) FROM (SELECT min(gmail_id) AS id FROM message"
                         " UNION ALL SELECT min(gmail_id) FROM former)),"
                         " (SELECT max(id) FROM (SELECT max(gmail_id) AS id FROM message"
                         " UNION ALL SELECT max(gmail_id) FROM former)), made_ms FROM shard",
    /* The oldest message is at most `late` rowids after the first (SHD4), and so on. */
    [TIDE_SHARD_SPAN] = "SELECT (SELECT min(internal_ms) FROM message WHERE id <="
                        " (SELECT min(id) FROM message) + shard.late),"
                        " (SELECT max(internal_ms) FROM message WHERE id >="
                        " (SELECT max(id) FROM message) - shard.late),"
                        " (SELECT count(*) FROM message WHERE gone_ms IS NOT NULL),"
                        " (SELECT coalesce(sum(id), 0) FROM message WHERE gone_ms IS NOT NULL)"
                        " FROM shard",
    [TIDE_SHARD_GONE_IDS] = "SELECT gmail_id FROM message WHERE gone_ms IS NOT NULL",
    [TIDE_SHARD_LATE] = "SELECT late FROM shard",
    [TIDE_SHARD_DATE] = "SELECT internal_ms FROM message WHERE id = ?1",
    [TIDE_SHARD_BYTES] = "SELECT c.page_count * s.page_size FROM pragma_page_count() c,"
                         " pragma_page_size() s",
    [TIDE_SHARD_FIND] = STORED "WHERE m.gmail_id = ?1",
    [TIDE_SHARD_FIND_SHORT] = STORED "WHERE m.gmail_id >= ?1 AND m.gmail_id < ?2"
                                     " ORDER BY m.gmail_id LIMIT 2",
    [TIDE_SHARD_AT] = STORED "WHERE m.id = ?1",
    [TIDE_SHARD_WALK] = STORED "WHERE m.id >= ?1 AND m.id <= ?2 + (SELECT late FROM shard)"
                               " AND m.internal_ms >= ?4 AND m.internal_ms < ?5"
                               " ORDER BY m.id LIMIT ?3",
    [TIDE_SHARD_REPLACED] =
        "SELECT m.id, m.gmail_id, m.thread_id, m.history_id, m.internal_ms, c.bytes, c.hash,"
        " m.mark, m.gone_ms, e.content, NULL, 0 FROM earlier e JOIN message m ON m.id = e.message"
        " JOIN content c ON c.id = e.content ORDER BY e.rowid LIMIT ?3 OFFSET ?1 + ?2 * 0",
    [TIDE_SHARD_HAS] = "SELECT 1 FROM message WHERE gmail_id = ?1"
                       " UNION ALL SELECT 1 FROM former WHERE gmail_id = ?1",
    /* Stored, on the server as far as known, and exact; or a former id: its message has a new
     * one. */
    [TIDE_SHARD_WHOLE] = "SELECT 1 FROM message m WHERE m.gmail_id = ?1 AND m.gone_ms IS NULL AND"
                         " NOT EXISTS (SELECT 1 FROM doubt d WHERE d.message = m.id AND d.kind > 1)"
                         " UNION ALL SELECT 1 FROM former WHERE gmail_id = ?1"
                         " AND NOT EXISTS (SELECT 1 FROM message WHERE gmail_id = ?1)",
    /* The same without held copies. */
    [TIDE_SHARD_EXACT] = "SELECT 1 FROM message m WHERE m.gmail_id = ?1 AND m.gone_ms IS NULL AND"
                         " NOT EXISTS (SELECT 1 FROM doubt d WHERE d.message = m.id)"
                         " UNION ALL SELECT 1 FROM former WHERE gmail_id = ?1"
                         " AND NOT EXISTS (SELECT 1 FROM message WHERE gmail_id = ?1)",
    [TIDE_SHARD_DOUBTED] = "SELECT m.gmail_id, d.kind, m.gone_ms, m.bytes, d.said_bytes, d.tries,"
                           " d.next_ms FROM doubt d JOIN message m ON m.id = d.message"
                           " WHERE d.kind > 1 ORDER BY d.message DESC",
    [TIDE_SHARD_HELD] = "SELECT d.message, m.gmail_id FROM doubt d JOIN message m"
                        " ON m.id = d.message WHERE d.kind = 1 AND d.message < ?1"
                        " AND d.next_ms <= ?2 AND m.gone_ms IS NULL ORDER BY d.message DESC",
    [TIDE_SHARD_SOME_EXACT] = "SELECT m.gmail_id FROM message m WHERE m.gone_ms IS NULL"
                              " AND m.history_id <> ''"
                              " AND NOT EXISTS (SELECT 1 FROM doubt d WHERE d.message = m.id)"
                              " ORDER BY m.id DESC LIMIT 1",
    [TIDE_SHARD_HELD_SPAN] = "SELECT max(m.internal_ms), min(m.internal_ms) FROM doubt d"
                             " JOIN message m ON m.id = d.message"
                             " WHERE d.kind = 1 AND m.gone_ms IS NULL",
    [TIDE_SHARD_FORMER] = STORED "JOIN former f ON f.message = m.id WHERE f.gmail_id = ?1"
                                 " ORDER BY f.until_ms DESC LIMIT 1",
    /* The thread itself while the server has a message in it, before the thread that replaced
     * it. */
    [TIDE_SHARD_THREAD_NOW] = "SELECT 1, thread_id FROM message WHERE thread_id = ?1"
                              " AND gone_ms IS NULL"
                              " UNION ALL SELECT 0, m.thread_id FROM former f"
                              " JOIN message m ON m.id = f.message"
                              " WHERE f.thread_id = ?1 AND m.gone_ms IS NULL LIMIT 1",
    [TIDE_SHARD_STORED_MS] = "SELECT stored_ms FROM message WHERE id = ?1",
    [TIDE_SHARD_LABEL_CALLED] = "SELECT name, type FROM label WHERE label = ?1",
    /* Former ids too: a restored message is found by either.  One aggregate at a time, or SQLite
     * reads the whole index instead of its ends. */
    [TIDE_SHARD_IDS] = "SELECT (SELECT min(id) FROM (SELECT min(gmail_id) AS id FROM message"
                       " UNION ALL SELECT min(gmail_id) FROM former)),"
                       " (SELECT max(id) FROM (SELECT max(gmail_id) AS id FROM message"
                       " UNION ALL SELECT max(gmail_id) FROM former))",
    [TIDE_SHARD_PROBLEMS] =
        STORED "WHERE m.problem IS NOT NULL AND m.id > ?1 ORDER BY m.id LIMIT 1",
    [TIDE_SHARD_LABELS_OF] = "SELECT l.label FROM message_label m JOIN label l ON l.id = m.label"
                             " WHERE m.message = ?1 ORDER BY l.label",
    [TIDE_SHARD_HASH] = "SELECT 1 FROM content WHERE hash = ?1",
    [TIDE_SHARD_THREAD] = STORED "WHERE m.thread_id = ?1 AND m.id > ?2 ORDER BY m.id LIMIT 1",
    [TIDE_SHARD_LABEL_ROWS] =
        "SELECT l.label, l.name, l.type FROM message_label m JOIN label l ON l.id = m.label"
        " WHERE m.message = ?1 ORDER BY l.label",
    [TIDE_SHARD_LABELS_ALL] = "SELECT label, name, type FROM label ORDER BY id",
    /* "held" as tide_stored_in_gmail() has it. */
    [TIDE_SHARD_LABEL_SUMS] =
        "SELECT l.label, l.name, l.type, count(*), sum(m.bytes), sum(m.held),"
        " sum(m.held * m.bytes), count(u.message), min(m.internal_ms), max(m.internal_ms)"
        " FROM label l JOIN message_label n ON n.label = l.id"
        " JOIN (SELECT a.id, a.bytes, a.internal_ms, a.gone_ms IS NULL"
        "   AND NOT a.gmail_id GLOB '" TIDE_IMPORT_ID "?*'"
        "   AND (a.history_id <> '' OR coalesce(d.kind, 0) = 1) AS held"
        "   FROM message a LEFT JOIN doubt d ON d.message = a.id) m ON m.id = n.message"
        " LEFT JOIN message_label u ON u.message = n.message"
        "   AND u.label = (SELECT id FROM label WHERE label = 'UNREAD')"
        " GROUP BY l.id ORDER BY l.id",
    [TIDE_SHARD_UNLABELED] =
        "SELECT 1 FROM message m WHERE m.gmail_id = ?1 AND NOT EXISTS (SELECT 1 FROM message_label "
        "n"
        " JOIN label l ON l.id = n.label WHERE n.message = m.id AND l.label = ?2)"
        " AND (?3 = '' OR length(m.history_id) < length(?3)"
        "  OR (length(m.history_id) = length(?3) AND m.history_id <= ?3))",
    [TIDE_SHARD_LABELED] =
        "SELECT m.id, m.gmail_id, m.internal_ms, m.history_id FROM label l JOIN message_label n"
        " ON n.label = l.id JOIN message m ON m.id = n.message"
        " WHERE l.label = ?1 AND n.message > ?2 AND m.gone_ms IS NULL ORDER BY n.message",
    [TIDE_SHARD_CONTENT] =
        "SELECT hash, bytes, body_bytes, codec, dict, body FROM content WHERE id = ?1",
    [TIDE_SHARD_CUTS] = "SELECT at, piece, line, crlf FROM cut WHERE content = ?1 ORDER BY at",
    [TIDE_SHARD_PIECE] = "SELECT bytes, codec, dict, body FROM piece WHERE id = ?1",
    /* Each count uses an index that has exactly these rows. */
    [TIDE_SHARD_TALLY] = "SELECT (SELECT count(*) FROM message WHERE gone_ms IS NOT NULL),"
                         " (SELECT count(*) FROM message WHERE mark < 2),"
                         " (SELECT count(*) FROM message WHERE problem IS NOT NULL AND mark = 3),"
                         " (SELECT count(*) FROM message WHERE problem IS NOT NULL AND mark = 2),"
                         " (SELECT count(*) FROM doubt WHERE kind = 1),"
                         " (SELECT count(*) FROM doubt WHERE kind = 2),"
                         " (SELECT count(*) FROM doubt WHERE kind = 3),"
                         " (SELECT count(*) FROM message"
                         "   WHERE gmail_id GLOB '" TIDE_IMPORT_ID "*'),"
                         " (SELECT count(*) FROM doubt d JOIN message m ON m.id = d.message"
                         "   WHERE d.kind = 3 AND m.gmail_id GLOB '" TIDE_IMPORT_ID "*')",
    [TIDE_SHARD_HEADS] =
        "SELECT message.id, message.internal_ms, message.mark, head.\"from\", head.\"to\","
        " head.cc, head.bcc,"
        " (SELECT group_concat(label.label, ' ') FROM message_label"
        "   JOIN label ON label.id = message_label.label WHERE message_label.message = message.id"
        "   AND label.label IN ('SENT', 'DRAFT', 'SPAM', 'TRASH'))"
        " FROM message LEFT JOIN head ON head.id = message.id"
        " WHERE message.id > ?1 ORDER BY message.id",
    [TIDE_SHARD_READY] = "SELECT (SELECT messages FROM shard) -"
                         " (SELECT count(*) FROM message WHERE mark < 2)",
    [TIDE_SHARD_VERSION] = "SELECT id, generation FROM shard",
    /* Counts of a range of ids, which are times; then those in it that do not count after all. */
    [TIDE_SHARD_DAY_LABEL] = "SELECT count(*) FROM message_label WHERE label ="
                             " (SELECT id FROM label WHERE label = ?1)"
                             " AND message >= ?2 AND message < ?3",
    [TIDE_SHARD_DAY_ALL] = "SELECT count(*) FROM message WHERE id >= ?1 AND id < ?2",
    [TIDE_SHARD_LESS_LABEL] = "SELECT m.id FROM message m WHERE m.gone_ms IS NOT NULL AND EXISTS"
                              " (SELECT 1 FROM message_label l WHERE l.message = m.id AND l.label ="
                              " (SELECT id FROM label WHERE label = ?1))",
    [TIDE_SHARD_LESS_ALL] = "SELECT id FROM message WHERE gone_ms IS NOT NULL UNION"
                            " SELECT message FROM message_label WHERE label IN"
                            " (SELECT id FROM label WHERE label IN ('SPAM', 'TRASH'))",
    [TIDE_SHARD_COUNTS] =
        "SELECT l.label, count(*) FROM message_label m JOIN label l ON l.id = m.label"
        " GROUP BY m.label"
        " UNION ALL SELECT l.label, -count(*) FROM message_label m JOIN label l ON l.id = m.label"
        "  WHERE m.message IN (SELECT id FROM message WHERE gone_ms IS NOT NULL) GROUP BY m.label"
        " UNION ALL SELECT '', (SELECT messages FROM shard) - (SELECT count(*) FROM"
        "  (SELECT id FROM message WHERE gone_ms IS NOT NULL UNION"
        "   SELECT message FROM message_label WHERE label IN"
        "   (SELECT id FROM label WHERE label IN ('SPAM', 'TRASH'))))",
    [TIDE_SHARD_UNREAD] =
        "SELECT l.label, count(*) FROM message_label u CROSS JOIN message_label m"
        "  ON m.message = u.message JOIN label l ON l.id = m.label"
        "  WHERE u.label = (SELECT id FROM label WHERE label = 'UNREAD') AND u.message NOT IN"
        "  (SELECT id FROM message WHERE gone_ms IS NOT NULL) GROUP BY m.label"
        " UNION ALL SELECT '', count(*) FROM message_label"
        "  WHERE label = (SELECT id FROM label WHERE label = 'UNREAD') AND message NOT IN"
        "  (SELECT id FROM message WHERE gone_ms IS NOT NULL UNION"
        "   SELECT message FROM message_label WHERE label IN"
        "   (SELECT id FROM label WHERE label IN ('SPAM', 'TRASH')))",

    [TIDE_SHARD_WRITE] = "BEGIN IMMEDIATE",
    [TIDE_SHARD_STATE_ADD] =
        "INSERT INTO shard (id, account, year, part, start_ms, generation, messages, raw_bytes,"
        " late, made_ms, made_by) VALUES (?1, ?2, ?3, ?4, ?5, 0, 0, 0, 0, ?6, ?7)",
    [TIDE_SHARD_STATE_SAVE] =
        "UPDATE shard SET generation = ?1, messages = ?2, raw_bytes = ?3, late = ?4",
    [TIDE_SHARD_CONTENT_FIND] = "SELECT id FROM content WHERE hash = ?1",
    [TIDE_SHARD_CONTENT_ADD] =
        "INSERT INTO content (hash, bytes, body_bytes, codec, body) VALUES (?1, ?2, ?3, ?4, ?5)",
    [TIDE_SHARD_CUT_ADD] =
        "INSERT INTO cut (content, at, piece, line, crlf) VALUES (?1, ?2, ?3, ?4, ?5)",
    [TIDE_SHARD_PIECE_FIND] = "SELECT id FROM piece WHERE hash = ?1",
    [TIDE_SHARD_PIECE_ADD] = "INSERT INTO piece (hash, bytes, codec, body) VALUES (?1, ?2, ?3, ?4)",
    [TIDE_SHARD_TAKEN] = "SELECT id FROM message WHERE id >= ?1 ORDER BY id",
    [TIDE_SHARD_MESSAGE_ADD] =
        "INSERT INTO message (id, gmail_id, thread_id, history_id, internal_ms, content, bytes,"
        " stored_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    /* The server has it, even if it was marked as gone. */
    [TIDE_SHARD_MESSAGE_AGAIN] =
        "UPDATE message SET thread_id = ?2, history_id = ?3, gone_ms = NULL WHERE id = ?1",
    /* New bytes.  An indexed message stays indexed: a contentless index cannot delete words without
     * being given them again. */
    [TIDE_SHARD_MESSAGE_CONTENT] = "UPDATE message SET content = ?2, bytes = ?3 WHERE id = ?1",
    [TIDE_SHARD_EARLIER_ADD] =
        "INSERT INTO earlier (message, content, until_ms) VALUES (?1, ?2, ?3)",
    [TIDE_SHARD_DOUBT_PUT] =
        "INSERT INTO doubt (message, kind, said_bytes, since_ms, tries, next_ms)"
        " VALUES (?1, ?2, ?3, ?4, 0, ?4) ON CONFLICT (message) DO UPDATE"
        " SET kind = excluded.kind, said_bytes = max(said_bytes, excluded.said_bytes),"
        " next_ms = min(next_ms, excluded.next_ms)",
    /* Delays of an hour, two, four, ... a week. */
    [TIDE_SHARD_DOUBT_TRIED] = "UPDATE doubt SET tries = tries + 1, next_ms = ?2 + min(604800000, "
                               "3600000 << min(tries, 8))"
                               " WHERE message = ?1",
    [TIDE_SHARD_DOUBT_DROP] = "DELETE FROM doubt WHERE message = ?1",
    [TIDE_SHARD_DATE_MEND] = "UPDATE message SET internal_ms = ?2 WHERE id = ?1",
    [TIDE_SHARD_UNUSED] = UNUSED " LIMIT 1",
    [TIDE_SHARD_CUTS_SWEEP] = "DELETE FROM cut WHERE content IN (" UNUSED ")",
    /* Pieces stay: other bodies share them. */
    [TIDE_SHARD_CONTENT_SWEEP] = "DELETE FROM content WHERE id IN (" UNUSED ")",
    [TIDE_SHARD_CONTENT_MEND] =
        "UPDATE content SET bytes = ?2, body_bytes = ?3, codec = ?4, dict = NULL, body = ?5,"
        " hash = ?1 WHERE id = ?6",
    [TIDE_SHARD_CUTS_DROP] = "DELETE FROM cut WHERE content = ?1",
    [TIDE_SHARD_PIECE_MEND] =
        "UPDATE piece SET bytes = ?2, codec = ?3, dict = NULL, body = ?4, hash = ?1 WHERE id = ?5",
    [TIDE_SHARD_EARLIER_DROP] = "DELETE FROM earlier WHERE message = ?1 AND content = ?2",
    [TIDE_SHARD_HEAD_DROP] = "DELETE FROM head WHERE id = ?1",
    [TIDE_SHARD_UNMARK] =
        "UPDATE message SET mark = 0, deaths = 0, problem = NULL WHERE id = ?1 AND mark >= 2",
    [TIDE_SHARD_BACK] = "UPDATE message SET gone_ms = NULL WHERE id = ?1 AND gone_ms IS NOT NULL",
    [TIDE_SHARD_GONE] = "UPDATE message SET gone_ms = ?2 WHERE id = ?1 AND gone_ms IS NULL",
    [TIDE_SHARD_FORMER_ADD] =
        "INSERT INTO former (message, gmail_id, thread_id, until_ms) VALUES (?1, ?2, ?3, ?4)",
    [TIDE_SHARD_RENAME] =
        "UPDATE message SET gmail_id = ?2, thread_id = ?3, gone_ms = NULL WHERE id = ?1",
    [TIDE_SHARD_HISTORY] = "UPDATE message SET history_id = ?2 WHERE id = ?1",
    [TIDE_SHARD_LABEL_FIND] = "SELECT id FROM label WHERE label = ?1",
    [TIDE_SHARD_LABEL_ADD] = "INSERT INTO label (label, name, type) VALUES (?1, ?2, ?3)",
    [TIDE_SHARD_LABEL_DIFFERS] =
        "SELECT 1 FROM label WHERE label = ?1 AND (name IS NOT ?2 OR type IS NOT ?3)",
    [TIDE_SHARD_LABEL_NAME] = "UPDATE label SET name = ?2, type = ?3 WHERE label = ?1",
    /* A label that an import named, before the server said which one it is. */
    [TIDE_SHARD_LABEL_IMPORTED] = "SELECT 1 FROM label WHERE label = ?2 AND name = ?2 AND ?1 <> ?2"
                                  " AND type IS NOT 'local'"
                                  " AND NOT EXISTS (SELECT 1 FROM label WHERE label = ?1)",
    [TIDE_SHARD_LABEL_ADOPT] = "UPDATE label SET label = ?1, type = ?3 WHERE label = ?2",
    [TIDE_SHARD_LABELS_NOW] = "SELECT label FROM message_label WHERE message = ?1",
    [TIDE_SHARD_LABEL_PUT] = "INSERT OR IGNORE INTO message_label (message, label) VALUES (?1, ?2)",
    [TIDE_SHARD_LABEL_TAKE] = "DELETE FROM message_label WHERE message = ?1 AND label = ?2",
    [TIDE_SHARD_CHANGE_FIND] = "SELECT 1 FROM label_change WHERE message = ?1 AND label = ?2"
                               " AND added = ?3 AND history_id = ?4",
    [TIDE_SHARD_CHANGE_ADD] = "INSERT INTO label_change (message, label, added, at_ms, history_id)"
                              " VALUES (?1, ?2, ?3, ?4, ?5)",
    [TIDE_SHARD_TO_INDEX] = "SELECT m.id, m.gmail_id, m.content, m.bytes, m.deaths, c.hash"
                            " FROM message m LEFT JOIN content c ON c.id = m.content"
                            " WHERE m.mark = 0 ORDER BY m.id DESC LIMIT ?1",
    [TIDE_SHARD_MARK] = "UPDATE message SET mark = ?2, problem = ?3 WHERE id = ?1",
    [TIDE_SHARD_MARKED] = "SELECT id, deaths FROM message WHERE mark = 1",
    [TIDE_SHARD_DIED] =
        "UPDATE message SET deaths = deaths + 1, mark = ?2, problem = ?3 WHERE id = ?1",
    [TIDE_SHARD_AGAIN] = "UPDATE message SET mark = 0, deaths = 0, problem = NULL WHERE id IN"
                         " (SELECT id FROM message WHERE problem IS NOT NULL) AND mark = 3",
    /* Head and words are written together: a row has both or neither. */
    [TIDE_SHARD_HEAD_ADD] =
        "INSERT OR IGNORE INTO head (id, message_id, date_ms, \"from\", \"to\", cc, bcc, subject,"
        " files) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    [TIDE_SHARD_WORDS_ADD] = "INSERT INTO words (rowid, text, subject, \"from\", \"to\", files)"
                             " VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    /* A few megabytes at a time. */
    [TIDE_SHARD_WORDS_MERGE] = "INSERT INTO words (words, rank) VALUES ('merge', 1000)",
};

/* ---- calendar ----------------------------------------------------------------- */

enum { DAY_MS = 86400 * 1000 };

int64_t tide_shard_year_ms(int32_t year)
{
    /* Days from the year 1 to `year`, less those before 1970. */
    int64_t before = (int64_t)year - 1;
    int64_t days = before * 365 + before / 4 - before / 100 + before / 400 - 719162;
    return days * DAY_MS;
}

int32_t tide_shard_year(int64_t ms)
{
    /* An estimate, at most one year off; corrected below. */
    int32_t year = (int32_t)(ms / ((int64_t)DAY_MS * 146097 / 400) + 1970);
    while (tide_shard_year_ms(year) > ms)
        year--;
    while (tide_shard_year_ms(year + 1) <= ms)
        year++;
    return year;
}

/* ---- opening ------------------------------------------------------------------ */

static tide_status path_of(const tide_shards *shards, const struct tide_shard *shard,
                           char path_out[TIDE_SHARD_PATH_BYTES], tide_error *err)
{
    int count = snprintf(path_out, TIDE_SHARD_PATH_BYTES, "%s/%s.db", shards->dir, shard->name);
    return count > 0 && count < TIDE_SHARD_PATH_BYTES
               ? TIDE_OK
               : tide_error_set(err, TIDE_INVALID, "path too long: %.100s...", shards->dir);
}

static tide_status state_load(struct tide_shard *shard, const char *account, tide_error *err)
{
    sqlite3_stmt *row = tide_db_stmt(&shard->db, TIDE_SHARD_STATE);
    bool there = false;
    TIDE_TRY(tide_db_step(&shard->db, row, &there, err));
    if (!there)
        return tide_error_set(err, TIDE_NOT_FOUND, "%s: not completely created", shard->db.path);
    tide_text owner = tide_column_text(row, 1);
    tide_status rc = TIDE_OK;
    if (account != NULL && !tide_text_equal(owner, tide_text_of(account)))
        rc = tide_error_set(err, TIDE_INVALID,
                            "%s: contains the mail of %.*s, not of %s; move the file away",
                            shard->db.path, (int)owner.bytes, owner.data, account);
    else if (sqlite3_column_int(row, 2) != shard->year || tide_column_u32(row, 3) != shard->part)
        rc = tide_error_set(err, TIDE_INVALID, "%s: contains part %u of %d; rename the file back",
                            shard->db.path, tide_column_u32(row, 3), sqlite3_column_int(row, 2));
    if (rc == TIDE_OK) {
        tide_column_copy(row, 0, shard->id, sizeof shard->id);
        shard->generation = tide_column_u64(row, 4);
        shard->messages = tide_column_u64(row, 5);
        shard->raw_bytes = tide_column_u64(row, 6);
        shard->late = sqlite3_column_int64(row, 7);
        shard->known = true;
        tide_column_copy(row, 8, shard->id_least, sizeof shard->id_least);
        tide_column_copy(row, 9, shard->id_greatest, sizeof shard->id_greatest);
        shard->made_ms = tide_column_u64(row, 10);
    }
    tide_db_end(row);
    return rc;
}

tide_status tide_shard_state_load(struct tide_shard *shard, tide_error *err)
{
    return state_load(shard, NULL, err);
}

/* The row is written after the schema; a crash in between is repaired here. */
static tide_status state_make(const tide_shards *shards, struct tide_shard *shard, tide_error *err)
{
    uint8_t random[16];
    char id[33];
    tide_world_random(shards->world, random, sizeof random);
    tide_hex(random, sizeof random, id);
    return tide_db_do(&shard->db, err, TIDE_SHARD_STATE_ADD, id, shards->account, shard->year,
                      shard->part, shard->start_ms, tide_world_now_unix_ms(shards->world),
                      TIDE_TEXT("tidemark " TIDE_VERSION));
}

static tide_status size_look(struct tide_shard *shard, uint64_t bytes_max, tide_error *err)
{
    uint64_t bytes = 0;
    TIDE_TRY(tide_shard_bytes(shard, &bytes, err));
    shard->full = bytes >= bytes_max && shard->messages > 0; /* an empty one is never full */
    return TIDE_OK;
}

tide_status tide_shard_bytes(struct tide_shard *shard, uint64_t *bytes_out, tide_error *err)
{
    tide_auto_stmt *row = tide_db_stmt(&shard->db, TIDE_SHARD_BYTES);
    bool there = false;
    TIDE_TRY(tide_db_step(&shard->db, row, &there, err));
    if (there)
        *bytes_out = tide_column_u64(row, 0);
    return TIDE_OK;
}

static int log_grew(void *arg, sqlite3 *handle, const char *name, int pages)
{
    struct tide_shard *shard = arg;
    (void)handle;
    (void)name;
    shard->wal_pages = pages;
    return SQLITE_OK;
}

static tide_status open_to_write(const tide_shards *shards, struct tide_shard *shard,
                                 uint32_t version, tide_error *err)
{
    if (version == 0) /* larger pages waste less space next to large values (measured) */
        TIDE_TRY(tide_db_exec(&shard->db, "PRAGMA page_size = " TIDE_SHARD_PAGE_BYTES, err));
    TIDE_TRY(tide_db_wal(&shard->db, err));
    TIDE_TRY(tide_migrate(&shard->db, &tide_shard_schema, version, err));
    TIDE_TRY(tide_db_statements(&shard->db, statements, TIDE_SHARD_SQL, err));
    (void)sqlite3_wal_hook(shard->db.handle, log_grew, shard);
    tide_status rc = state_load(shard, shards->account, err);
    if (rc == TIDE_NOT_FOUND) {
        TIDE_SEEN("shard: made in two steps");
        rc = state_make(shards, shard, err);
        if (rc == TIDE_OK)
            rc = state_load(shard, shards->account, err);
    }
    return rc == TIDE_OK ? size_look(shard, shards->bytes_max, err) : rc;
}

static tide_status open_to_read(const tide_shards *shards, struct tide_shard *shard,
                                uint32_t version, tide_error *err)
{
    if (version == 0)
        return tide_error_set(err, TIDE_NOT_FOUND, "%s: not completely created", shard->db.path);
    /* Tables that an earlier version lacks are empty temporary tables of this connection: nothing
     * was in doubt there.  Once a writer has migrated the file, these would hide the real tables,
     * so the shard is opened again (tide_shards_open()). */
    shard->older = version < tide_shard_schema.steps_count;
    if (shard->older)
        TIDE_TRY(
            tide_db_exec(&shard->db,
                         "CREATE TEMP TABLE doubt (message INTEGER PRIMARY KEY, kind, said_bytes,"
                         " since_ms, tries, next_ms)",
                         err));
    TIDE_TRY(tide_db_statements(&shard->db, statements, TIDE_SHARD_READ_SQL, err));
    return state_load(shard, shards->account, err);
}

/* Only the first steps of creating a shard use a rollback journal.  A read-only process cannot roll
 * them back, and need not: the shard is still empty (SHD3). */
static tide_status failed_to_open(const tide_shards *shards, const struct tide_shard *shard,
                                  const char *path, const tide_error *failure, tide_error *err)
{
    if (shards->read_only && failure->code == SQLITE_READONLY_ROLLBACK) {
        TIDE_SEEN("shard: a reader met one that is not wholly made");
        return tide_error_set(err, TIDE_NOT_FOUND, "%s: not completely created", shard->name);
    }
    bool exists = true;
    if (shards->read_only && failure->code == SQLITE_CANTOPEN &&
        tide_db_exists(path, tide_world_vfs(shards->world), &exists, NULL) == TIDE_OK && !exists)
        return tide_error_set(err, TIDE_NOT_FOUND, "%s: the file was moved or removed", path);
    if (err != NULL)
        *err = *failure;
    return failure->status;
}

tide_status tide_shard_open(const tide_shards *shards, struct tide_shard *shard, tide_error *err)
{
    TIDE_ASSERT(!shard->open);
    char path[TIDE_SHARD_PATH_BYTES];
    TIDE_TRY(path_of(shards, shard, path, err));
    const struct tide_db_options options = {
        .path = path,
        .vfs = tide_world_vfs(shards->world),
        .read_only = shards->read_only,
        .busy_timeout_ms = TIDE_SHARD_BUSY_MS,
        .cache_kib = shards->cache_kib,
    };
    uint32_t version = 0;
    tide_error failure = {0};
    tide_status rc = tide_db_open(&options, shards->mem, &shard->db, &failure);
    if (rc != TIDE_OK)
        return failed_to_open(shards, shard, path, &failure, err);
    rc = tide_migrate_look(&shard->db, &tide_shard_schema, &version, &failure);
    if (rc == TIDE_OK)
        rc = shards->read_only ? open_to_read(shards, shard, version, &failure)
                               : open_to_write(shards, shard, version, &failure);
    if (rc != TIDE_OK) {
        tide_db_close(&shard->db);
        return failed_to_open(shards, shard, path, &failure, err);
    }
    shard->open = true;
    return TIDE_OK;
}

bool tide_shard_outdated(struct tide_shard *shard)
{
    int64_t version = 0;
    int moved = 0;
    if (!shard->open)
        return false;
    if (sqlite3_file_control(shard->db.handle, "main", SQLITE_FCNTL_HAS_MOVED, &moved) ==
            SQLITE_OK &&
        moved != 0)
        return true;
    return shard->older &&
           tide_db_number(&shard->db, "PRAGMA user_version", &version, NULL) == TIDE_OK &&
           version >= (int64_t)tide_shard_schema.steps_count;
}

void tide_shard_close(struct tide_shard *shard)
{
    if (!shard->open)
        return;
    shard->older = false;
    if (shard->in_tx)
        tide_shard_rollback(shard);
    tide_db_close(&shard->db);
    tide_shard_counts_forget(shard);
    shard->open = false;
}

/* ---- transactions ---------------------------------------------------------------- */

tide_status tide_shard_begin(struct tide_shard *shard, tide_error *err)
{
    TIDE_ASSERT(shard->open);
    TIDE_ASSERT(!shard->in_tx);
    TIDE_TRY(tide_db_run(&shard->db, tide_db_stmt(&shard->db, TIDE_SHARD_WRITE), err));
    shard->in_tx = true;
    /* Read again, because a failed transaction may have left wrong numbers. */
    tide_status rc = state_load(shard, NULL, err);
    if (rc != TIDE_OK)
        tide_shard_rollback(shard);
    return rc;
}

tide_status tide_shard_commit(struct tide_shard *shard, uint64_t bytes_max, tide_error *err)
{
    TIDE_ASSERT(shard->in_tx);
    shard->generation++; /* ARC5 */
    sqlite3_stmt *stmt = tide_db_ask(&shard->db, TIDE_SHARD_STATE_SAVE, shard->generation);
    tide_bind_u64(stmt, 2, shard->messages);
    tide_bind_u64(stmt, 3, shard->raw_bytes);
    (void)sqlite3_bind_int64(stmt, 4, shard->late);
    TIDE_TRY(tide_db_run(&shard->db, stmt, err));
    if (sqlite3_changes(shard->db.handle) != 1)
        return tide_error_set(err, TIDE_CORRUPT, "%s: its state row is missing", shard->db.path);
    TIDE_TRY(tide_db_run(&shard->db, tide_db_stmt(&shard->db, TIDE_SHARD_COMMIT), err));
    shard->in_tx = false;
    return size_look(shard, bytes_max, err);
}

void tide_shard_rollback(struct tide_shard *shard)
{
    /* SQLite rolls back by itself after some failures. */
    if (!sqlite3_get_autocommit(shard->db.handle))
        (void)tide_db_run(&shard->db, tide_db_stmt(&shard->db, TIDE_SHARD_ROLLBACK), NULL);
    shard->in_tx = false;
    memset(shard->runs, 0, sizeof shard->runs); /* some of them were rolled back */
}

tide_status tide_shard_checkpoint(struct tide_shard *shard, bool all, tide_error *err)
{
    TIDE_ASSERT(!shard->in_tx);
    int pages = 0;
    int moved = 0;
    int code = sqlite3_wal_checkpoint_v2(
        shard->db.handle, NULL, all ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE,
        &pages, &moved);
    if (code == SQLITE_OK) {
        if (moved == pages)
            shard->wal_pages = 0;
        return TIDE_OK;
    }
    return tide_db_failed(&shard->db, code, "move the log into the file", err);
}

/* ---- positions ------------------------------------------------------------------- */

tide_status tide_shard_late(struct tide_shard *shard, int64_t *late_out, tide_error *err)
{
    sqlite3_stmt *row = tide_db_stmt(&shard->db, TIDE_SHARD_LATE);
    bool there = false;
    tide_status rc = tide_db_step(&shard->db, row, &there, err);
    if (rc == TIDE_OK && there)
        *late_out = sqlite3_column_int64(row, 0);
    tide_db_end(row);
    if (rc == TIDE_OK && !there)
        rc = tide_error_set(err, TIDE_CORRUPT, "%s: its state row is missing", shard->db.path);
    return rc;
}

/* Imports have thousands of messages with one date.  Each would walk over all ids before it; a run
 * that was walked once is remembered. */
static struct tide_shard_run *run_at(struct tide_shard *shard, int64_t id)
{
    for (size_t i = 0; i < TIDE_SHARD_RUNS; i++)
        if (id >= shard->runs[i].begin && id < shard->runs[i].end)
            return &shard->runs[i];
    return NULL;
}

tide_status tide_shard_place(struct tide_shard *shard, int64_t internal_ms, int64_t *id_out,
                             tide_error *err)
{
    TIDE_ASSERT(shard->in_tx);
    const int64_t wanted = tide_shard_wanted(shard, internal_ms);
    struct tide_shard_run *run = run_at(shard, wanted);
    int64_t id = run == NULL ? wanted : run->end;
    tide_auto_stmt *row = tide_db_ask(&shard->db, TIDE_SHARD_TAKEN, id);
    bool there = false;
    TIDE_TRY(tide_db_step(&shard->db, row, &there, err));
    while (there && sqlite3_column_int64(row, 0) == id) {
        id++;
        TIDE_TRY(tide_db_step(&shard->db, row, &there, err));
    }
    if (run == NULL && id > wanted) {
        TIDE_SEEN("shard: a time is taken");
        run = &shard->runs[shard->run_next++ % TIDE_SHARD_RUNS];
        run->begin = wanted;
    }
    if (run != NULL)
        run->end = id;
    if (id - wanted > shard->late)
        shard->late = id - wanted;
    *id_out = id;
    return TIDE_OK;
}

/* ---- reading --------------------------------------------------------------------- */

bool tide_shard_may_have(const struct tide_shard *shard, tide_text gmail_id)
{
    tide_text ends[] = {tide_text_of(shard->id_least), tide_text_of(shard->id_greatest)};
    int order[2];
    for (int i = 0; i < 2; i++) {
        size_t bytes = ends[i].bytes < gmail_id.bytes ? ends[i].bytes : gmail_id.bytes;
        order[i] = memcmp(gmail_id.data, ends[i].data, bytes);
        if (order[i] == 0)
            order[i] = (gmail_id.bytes > ends[i].bytes) - (gmail_id.bytes < ends[i].bytes);
    }
    return order[0] >= 0 && order[1] <= 0;
}

void tide_shard_hash(sqlite3_stmt *row, int at, uint8_t hash_out[TIDE_CONTENT_HASH_BYTES])
{
    memset(hash_out, 0, TIDE_CONTENT_HASH_BYTES);
    if (sqlite3_column_bytes(row, at) == TIDE_CONTENT_HASH_BYTES)
        memcpy(hash_out, sqlite3_column_blob(row, at), TIDE_CONTENT_HASH_BYTES);
}

void tide_shard_stored(const struct tide_shard *shard, sqlite3_stmt *row,
                       struct tide_stored *stored_out)
{
    stored_out->shard = shard->key;
    stored_out->rowid = sqlite3_column_int64(row, 0);
    tide_column_copy(row, 1, stored_out->gmail_id, sizeof stored_out->gmail_id);
    tide_column_copy(row, 2, stored_out->thread_id, sizeof stored_out->thread_id);
    tide_column_copy(row, 3, stored_out->history_id, sizeof stored_out->history_id);
    stored_out->internal_ms = sqlite3_column_int64(row, 4);
    stored_out->bytes = tide_column_u64(row, 5);
    tide_shard_hash(row, 6, stored_out->hash);
    stored_out->indexed = sqlite3_column_int(row, 7) == TIDE_MARK_INDEXED;
    stored_out->gone = sqlite3_column_type(row, 8) != SQLITE_NULL;
    stored_out->content = sqlite3_column_int64(row, 9);
    const int copy = sqlite3_column_int(row, 11);
    stored_out->copy = copy > 0 && copy < TIDE_COPIES ? (tide_copy)copy : TIDE_COPY_EXACT;
}

static tide_status find_by(struct tide_shard *shard, tide_shard_sql sql, tide_text gmail_id,
                           bool *found_out, struct tide_stored *stored_out, tide_error *err)
{
    tide_auto_stmt *row = tide_db_ask(&shard->db, sql, gmail_id);
    TIDE_TRY(tide_db_step(&shard->db, row, found_out, err));
    if (*found_out)
        tide_shard_stored(shard, row, stored_out);
    return TIDE_OK;
}

tide_status tide_shard_find(struct tide_shard *shard, tide_text gmail_id, bool *found_out,
                            struct tide_stored *stored_out, tide_error *err)
{
    return find_by(shard, TIDE_SHARD_FIND, gmail_id, found_out, stored_out, err);
}

tide_status tide_shard_find_former(struct tide_shard *shard, tide_text gmail_id, bool *found_out,
                                   struct tide_stored *stored_out, tide_error *err)
{
    return find_by(shard, TIDE_SHARD_FORMER, gmail_id, found_out, stored_out, err);
}

struct reading {
    struct tide_shard *shard;
    tide_packer *packer;
    struct tide_cut *cuts;
    int64_t *pieces; /* parallel to the cuts */
    size_t cuts_capacity, pieces_capacity;
    size_t cuts_count;
    tide_buf left;
    tide_buf piece;
    tide_buf *out;
};

static tide_status no_memory(const struct tide_shard *shard, tide_error *err)
{
    return tide_error_set(err, TIDE_NO_MEMORY, "%s: no memory to read a message", shard->db.path);
}

static tide_status read_cuts(struct reading *reading, int64_t content, tide_error *err)
{
    struct tide_shard *shard = reading->shard;
    tide_mem *mem = shard->db.mem;
    tide_auto_stmt *row = tide_db_ask(&shard->db, TIDE_SHARD_CUTS, content);
    tide_status rc = TIDE_OK;
    for (bool there = false;;) {
        rc = tide_db_step(&shard->db, row, &there, err);
        if (rc != TIDE_OK || !there)
            break;
        size_t count = reading->cuts_count + 1;
        if (!tide_mem_grow(mem, (void **)&reading->cuts, &reading->cuts_capacity, count,
                           TIDE_CUTS_MAX, sizeof reading->cuts[0]) ||
            !tide_mem_grow(mem, (void **)&reading->pieces, &reading->pieces_capacity, count,
                           TIDE_CUTS_MAX, sizeof reading->pieces[0])) {
            rc = no_memory(shard, err);
            break;
        }
        reading->cuts[count - 1] = (struct tide_cut){
            .at = (size_t)sqlite3_column_int64(row, 0),
            .line = tide_column_u32(row, 2),
            .crlf = sqlite3_column_int(row, 3) != 0,
        };
        reading->pieces[count - 1] = sqlite3_column_int64(row, 1);
        reading->cuts_count = count;
    }
    return rc;
}

/* Columns from `at` on: bytes, codec, dict, body. */
static tide_status unpack_row(struct reading *reading, sqlite3_stmt *row, int at, tide_buf *out,
                              tide_error *err)
{
    if (sqlite3_column_type(row, at + 2) != SQLITE_NULL)
        return tide_error_set(err, TIDE_NEWER, "packed with a dictionary; use a newer version");
    const char *body = sqlite3_column_blob(row, at + 3);
    size_t body_bytes = (size_t)sqlite3_column_bytes(row, at + 3);
    if (body == NULL && body_bytes > 0)
        return no_memory(reading->shard, err);
    return tide_content_unpack(reading->packer, sqlite3_column_int64(row, at + 1),
                               (tide_text){body, body_bytes}, tide_column_u64(row, at), out, err);
}

static tide_status give_piece(void *arg, size_t index, tide_text *piece_out, tide_error *err)
{
    struct reading *reading = arg;
    struct tide_shard *shard = reading->shard;
    tide_auto_stmt *row = tide_db_ask(&shard->db, TIDE_SHARD_PIECE, reading->pieces[index]);
    bool there = false;
    tide_status rc = tide_db_step(&shard->db, row, &there, err);
    tide_buf_clear(&reading->piece);
    if (rc == TIDE_OK && !there)
        rc = tide_error_set(err, TIDE_CORRUPT, "a piece of it is missing");
    TIDE_TRY(rc);
    TIDE_TRY(unpack_row(reading, row, 0, &reading->piece, err));
    *piece_out = tide_buf_text(&reading->piece);
    return TIDE_OK;
}

static tide_status take_bytes(void *arg, const char *bytes, size_t count)
{
    struct reading *reading = arg;
    return tide_buf_add(reading->out, bytes, count);
}

/* A message without cuts is its body and needs no second copy. */
static tide_status read_body(struct reading *reading, sqlite3_stmt *row, tide_error *err)
{
    if (reading->cuts_count == 0)
        return unpack_row(reading, row, 2, reading->out, err);
    return unpack_row(reading, row, 2, &reading->left, err);
}

static tide_status read_content(struct reading *reading, int64_t content,
                                uint8_t hash_out[TIDE_CONTENT_HASH_BYTES], uint64_t *bytes_out,
                                tide_error *err)
{
    struct tide_shard *shard = reading->shard;
    sqlite3_stmt *row = tide_db_ask(&shard->db, TIDE_SHARD_CONTENT, content);
    bool there = false;
    tide_status rc = tide_db_step(&shard->db, row, &there, err);
    if (rc == TIDE_OK && !there)
        rc = tide_error_set(err, TIDE_CORRUPT, "its bytes are missing");
    if (rc == TIDE_OK) {
        tide_shard_hash(row, 0, hash_out);
        *bytes_out = tide_column_u64(row, 1);
        rc = read_body(reading, row, err);
    }
    tide_db_end(row);
    if (rc == TIDE_OK && reading->cuts_count > 0) {
        rc = tide_content_join(tide_buf_text(&reading->left), reading->cuts, reading->cuts_count,
                               give_piece, reading, take_bytes, reading, err);
        if (rc == TIDE_NO_MEMORY)
            (void)no_memory(shard, err); /* take_bytes could not report it */
    }
    return rc;
}

tide_status tide_shard_raw(struct tide_shard *shard, tide_packer *packer, int64_t content,
                           tide_buf *out, tide_error *err)
{
    tide_mem *mem = shard->db.mem;
    struct reading reading = {.shard = shard, .packer = packer, .out = out};
    uint8_t hash[TIDE_CONTENT_HASH_BYTES];
    uint8_t wanted[TIDE_CONTENT_HASH_BYTES];
    uint64_t bytes = 0;
    const size_t before = out->bytes;
    tide_buf_init(&reading.left, mem, TIDE_MESSAGE_BYTES_MAX);
    tide_buf_init(&reading.piece, mem, TIDE_MESSAGE_BYTES_MAX);

    tide_status rc = read_cuts(&reading, content, err);
    if (rc == TIDE_OK)
        rc = read_content(&reading, content, wanted, &bytes, err);
    tide_text got = {out->data == NULL ? "" : out->data + before, out->bytes - before};
    if (rc == TIDE_OK && got.bytes != bytes)
        rc = tide_error_set(err, TIDE_CORRUPT, "%zu bytes instead of %" PRIu64, got.bytes, bytes);
    if (rc == TIDE_OK)
        rc = tide_content_hash(packer, got, hash, err);
    if (rc == TIDE_OK && memcmp(hash, wanted, sizeof hash) != 0)
        rc = tide_error_set(err, TIDE_CORRUPT, "its hash is wrong");
    if (rc != TIDE_OK && out->data != NULL) {
        out->bytes = before;
        out->data[before] = '\0';
    }
    tide_buf_done(&reading.left);
    tide_buf_done(&reading.piece);
    tide_mem_free(mem, reading.cuts, reading.cuts_capacity * sizeof reading.cuts[0]);
    tide_mem_free(mem, reading.pieces, reading.pieces_capacity * sizeof reading.pieces[0]);
    return rc;
}

/* ---- comparing ------------------------------------------------------------------- */

/* Whether the error means damaged bytes, and nothing else. */
static bool is_damage(tide_status rc)
{
    return rc == TIDE_CORRUPT || rc == TIDE_INVALID || rc == TIDE_FULL;
}

tide_status tide_shard_content_is(struct tide_shard *shard, tide_packer *packer, int64_t content,
                                  tide_text raw, bool *is_out, tide_error *err)
{
    tide_auto_buf read = tide_buf_in(shard->db.mem, TIDE_MESSAGE_BYTES_MAX);
    const tide_status rc = tide_shard_raw(shard, packer, content, &read, err);
    *is_out = rc == TIDE_OK && tide_text_equal(tide_buf_text(&read), raw);
    return is_damage(rc) ? TIDE_OK : rc;
}

tide_status tide_shard_content_adds(struct tide_shard *shard, tide_packer *packer, int64_t content,
                                    tide_text raw, bool *adds_out, tide_error *err)
{
    tide_auto_buf read = tide_buf_in(shard->db.mem, TIDE_MESSAGE_BYTES_MAX);
    const tide_status rc = tide_shard_raw(shard, packer, content, &read, err);
    const tide_text old = tide_buf_text(&read);
    *adds_out = rc == TIDE_OK && (old.bytes > raw.bytes ||
                                  (old.bytes > 0 && memcmp(old.data, raw.data, old.bytes) != 0));
    return is_damage(rc) ? TIDE_OK : rc;
}

/* Whether both are the same text, where CR LF and LF are one line end. */
static bool same_lines(tide_text a, tide_text b)
{
    size_t i = 0;
    size_t j = 0;
    while (i < a.bytes && j < b.bytes) {
        const bool a_crlf = a.data[i] == '\r' && i + 1 < a.bytes && a.data[i + 1] == '\n';
        const bool b_crlf = b.data[j] == '\r' && j + 1 < b.bytes && b.data[j + 1] == '\n';
        i += a_crlf;
        j += b_crlf;
        if (a.data[i++] != b.data[j++])
            return false;
    }
    return i == a.bytes && j == b.bytes;
}

tide_status tide_shard_content_differs(struct tide_shard *shard, tide_packer *packer,
                                       int64_t content, tide_text raw, bool *differs_out,
                                       tide_error *err)
{
    tide_auto_buf read = tide_buf_in(shard->db.mem, TIDE_MESSAGE_BYTES_MAX);
    const tide_status rc = tide_shard_raw(shard, packer, content, &read, err);
    *differs_out = rc == TIDE_OK && !same_lines(tide_buf_text(&read), raw);
    return is_damage(rc) ? TIDE_OK : rc;
}

tide_status tide_shard_piece_is(struct tide_shard *shard, tide_packer *packer, int64_t piece,
                                tide_text bytes, bool *is_out, tide_error *err)
{
    struct reading reading = {.shard = shard, .packer = packer, .pieces = &piece};
    tide_text read = TIDE_TEXT_NONE;
    tide_buf_init(&reading.piece, shard->db.mem, TIDE_MESSAGE_BYTES_MAX);
    tide_status rc = give_piece(&reading, 0, &read, err);
    *is_out = rc == TIDE_OK && tide_text_equal(read, bytes);
    tide_buf_done(&reading.piece);
    return is_damage(rc) ? TIDE_OK : rc;
}
