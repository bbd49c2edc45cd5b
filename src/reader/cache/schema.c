#include "reader/cache/inside.h"

/* Released versions are never edited; a new version is a further step.  A cache of another version is
 * deleted and begun anew: nothing has to be moved from one to the next. */
static const char version_1[] =
    "CREATE TABLE value (\n"
    "  -- history_id, window_ms, ...: what holds for the whole mailbox.\n"
    "  name TEXT PRIMARY KEY, value TEXT NOT NULL\n"
    ") WITHOUT ROWID;\n"
    "CREATE TABLE label (\n"
    "  id INTEGER PRIMARY KEY,\n"
    "  label TEXT NOT NULL UNIQUE,  -- the server's id: INBOX, Label_12; or ALL\n"
    "  name TEXT NOT NULL,          -- as people see it; '': the server does not list it\n"
    "  type TEXT NOT NULL           -- system or user\n"
    ");\n"
    "CREATE TABLE message (\n"
    "  id INTEGER PRIMARY KEY,\n"
    "  gmail_id TEXT NOT NULL UNIQUE,\n"
    "  thread_id TEXT NOT NULL,\n"
    "  history_id TEXT NOT NULL,    -- the newest one that told us about it\n"
    "  internal_ms INTEGER NOT NULL,\n"
    "  bytes INTEGER NOT NULL,\n"
    "  headers INTEGER NOT NULL,    -- 1: the columns below are known\n"
    "  sender TEXT NOT NULL, recipients TEXT NOT NULL, cc TEXT NOT NULL,\n"
    "  subject TEXT NOT NULL, snippet TEXT NOT NULL, message_id TEXT NOT NULL,\n"
    "  files INTEGER NOT NULL,\n"
    "  gone INTEGER NOT NULL,       -- 1: the server no longer has it\n"
    "  pinned INTEGER NOT NULL,     -- 1: its body stays\n"
    "  evicted INTEGER NOT NULL,    -- 1: its body had to go\n"
    "  epoch INTEGER NOT NULL       -- of the history in which the server told of it\n"
    ");\n"
    "CREATE INDEX message_thread ON message (thread_id, internal_ms);\n"
    "CREATE INDEX message_time ON message (internal_ms);\n"
    "CREATE INDEX message_pinned ON message (internal_ms) WHERE pinned = 1;\n"
    "CREATE TABLE message_label (\n"
    "  -- The labels of a message, and ALL; in the order of lists.\n"
    "  label INTEGER NOT NULL REFERENCES label (id),\n"
    "  internal_ms INTEGER NOT NULL,\n"
    "  message INTEGER NOT NULL REFERENCES message (id),\n"
    "  PRIMARY KEY (label, internal_ms, message)\n"
    ") WITHOUT ROWID;\n"
    "CREATE INDEX message_label_message ON message_label (message, label);\n"
    "CREATE TABLE folder (\n"
    "  -- How far the list of a label is known.\n"
    "  label INTEGER PRIMARY KEY REFERENCES label (id),\n"
    "  floor_ms INTEGER NOT NULL, token TEXT NOT NULL, over INTEGER NOT NULL,\n"
    "  shown_ms INTEGER NOT NULL,   -- the lowest floor it ever had\n"
    "  refreshed_ms INTEGER NOT NULL\n"
    ");\n"
    "CREATE TABLE body (\n"
    "  -- Sizes and times of bodies; small, so that the oldest is found quickly.\n"
    "  message INTEGER PRIMARY KEY REFERENCES message (id),\n"
    "  bytes INTEGER NOT NULL, used_ms INTEGER NOT NULL\n"
    ");\n"
    "CREATE INDEX body_used ON body (used_ms);\n"
    "CREATE TABLE body_raw (\n"
    "  message INTEGER PRIMARY KEY REFERENCES message (id),\n"
    "  codec INTEGER NOT NULL,      -- as in docs/archive-format.md: 0 as it is, 1 zstd\n"
    "  raw BLOB NOT NULL\n"
    ");\n"
    "CREATE TABLE change (\n"
    "  version INTEGER PRIMARY KEY AUTOINCREMENT,\n"
    "  message INTEGER NOT NULL UNIQUE\n"
    ");\n"
    "CREATE TABLE found (\n"
    "  -- What a search at the server found.\n"
    "  query TEXT NOT NULL, place INTEGER NOT NULL, gmail_id TEXT NOT NULL, at_ms INTEGER NOT "
    "NULL,\n"
    "  PRIMARY KEY (query, place)\n"
    ") WITHOUT ROWID;\n"
    "INSERT INTO label (label, name, type) VALUES ('ALL', 'All mail', 'system');\n";

static const char version_2[] =
    "CREATE TABLE refused (\n"
    "  -- Messages that the server lists and does not give, and when it last said so.\n"
    "  gmail_id TEXT PRIMARY KEY, why TEXT NOT NULL, at_ms INTEGER NOT NULL\n"
    ") WITHOUT ROWID;\n";

/* As in a shard of the archive (mail/archive/shard_schema.c), but with the texts: rows change and go. */
static const char version_3[] = "CREATE VIRTUAL TABLE words USING fts5(\n"
                                "  -- The words of a message; rowid is message.id.\n"
                                "  text, subject, \"from\", \"to\", files,\n"
                                "  detail=full, tokenize='unicode61 remove_diacritics 2'\n"
                                ");\n";
/* Counts are kept, not counted: a list of folders is asked for at each change, and a mailbox has any
 * number of messages.  UNREAD has its own row, as each label. */
#define UNREAD "(SELECT id FROM label WHERE label = 'UNREAD')"
static const char version_4[] =
    "CREATE TABLE tally (\n"
    "  label INTEGER PRIMARY KEY REFERENCES label (id),\n"
    "  total INTEGER NOT NULL,      -- messages that have the label\n"
    "  unread INTEGER NOT NULL      -- of these, with UNREAD\n"
    ");\n"
    "INSERT INTO tally SELECT m.label, count(*), count(u.message) FROM message_label m\n"
    "  LEFT JOIN message_label u ON u.message = m.message AND u.label = " UNREAD
    " GROUP BY m.label;\n"
    "CREATE TRIGGER message_label_added AFTER INSERT ON message_label BEGIN\n"
    "  INSERT OR IGNORE INTO tally VALUES (NEW.label, 0, 0);\n"
    "  UPDATE tally SET total = total + 1, unread = unread + EXISTS (SELECT 1 FROM message_label\n"
    "    WHERE message = NEW.message AND label = " UNREAD ") WHERE label = NEW.label;\n"
    "  UPDATE tally SET unread = unread + 1 WHERE NEW.label IS " UNREAD " AND label IN\n"
    "    (SELECT label FROM message_label WHERE message = NEW.message AND label <> NEW.label);\n"
    "END;\n"
    "CREATE TRIGGER message_label_taken AFTER DELETE ON message_label BEGIN\n"
    "  UPDATE tally SET total = total - 1, unread = unread - (OLD.label IS " UNREAD " OR EXISTS\n"
    "    (SELECT 1 FROM message_label WHERE message = OLD.message AND label = " UNREAD "))\n"
    "    WHERE label = OLD.label;\n"
    "  UPDATE tally SET unread = unread - 1 WHERE OLD.label IS " UNREAD " AND label IN\n"
    "    (SELECT label FROM message_label WHERE message = OLD.message);\n"
    "END;\n";

static const char *const steps[] = {version_1, version_2, version_3, version_4};

/* "tidr" in ASCII. */
const struct tide_schema tide_cache_schema = {
    .what = "cache of the reader",
    .application_id = 0x74696472,
    .steps = steps,
    .steps_count = sizeof steps / sizeof steps[0],
};
