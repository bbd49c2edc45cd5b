/* archive.h - one account's mail on disk, in shards that sqlite3 can read for decades
 * (docs/archive-format.md is the promise).
 *
 * A shard is a SQLite file of one year (by internal date in UTC), or a part of
 * it when the year outgrows the size cap: 2019.db, 2019-2.db.  All shards are read as one archive.
 * Raw bytes are kept exactly, compressed, under their content hash; equal bytes are stored once;
 * attachments are cut out and stored once per shard, and put back byte for byte.
 *
 * Storing comes first, indexing second, with a mark per message (M9): a message that crashes the
 * parser is identified after one restart.
 *
 * Invariants (tide_archive_verify() re-reads everything):
 *   ARC1  a message that tide_archive_sync() covered survives power loss, whole.
 *   ARC2  what is read back hashes to what was put; else the message is reported by name.
 *   ARC3  (account, Gmail id) is unique over all shards; putting twice is harmless.
 *   ARC4  rowids inside a shard ascend with the internal date, in eighths of a second, so that
 *         newest-first needs no sorting.  A message whose eighth is taken gets the next free rowid:
 *         the more messages have the same date, the further behind.  Date ranges are still exact.
 *   ARC5  every shard has an id, a generation that grows with each commit, and a count of messages
 *         (M4): so an older copy is detected.
 *   ARC6  a shard records the state of each copy (M19a, enum tide_copy).  A copy that is not exact
 *         never replaces an exact one, and stays marked until bytes of the size that the server
 *         states arrive.  A held copy (M18) replaces only damaged bytes; of what the server says
 *         about the message it changes nothing.
 *   ARC7  a call reads the files that the directory has when it begins: a shard that was replaced,
 *         moved or removed since an earlier call is not read through its old handle.
 *   ARC8  a call that begins after tide_archive_forget() returned uses no page of the shard that
 *         was read before.
 */
#ifndef TIDE_MAIL_ARCHIVE_H
#define TIDE_MAIL_ARCHIVE_H

#include "base/buf.h"
#include "base/mem.h"
#include "base/status.h"
#include "base/text.h"
#include "mail/archive/content.h"
#include "world/world.h"

typedef struct tide_archive tide_archive;

enum {
    TIDE_ARCHIVE_GROUP_MESSAGES = 100,   /* per transaction (M7) ... */
    TIDE_ARCHIVE_GROUP_BYTES = 12 << 20, /* ... or this many bytes ... */
    TIDE_ARCHIVE_GROUP_MS = 1000,        /* ... or this much time */
    TIDE_ARCHIVE_QUEUE_BYTES = 32 << 20, /* between fetchers and writer (M3) */
    TIDE_ARCHIVE_SHARDS_MAX = 4096,
    TIDE_GMAIL_ID_BYTES_MAX = 64,
    TIDE_LABEL_BYTES_MAX = 512,
};

/* The state of the stored bytes of a message.  Only TIDE_COPY_EXACT permits removing the message
 * from the server. */
typedef enum tide_copy {
    TIDE_COPY_EXACT = 0,   /* as the server sent it, of the size it stated */
    TIDE_COPY_HELD = 1,    /* from another source: the server's own bytes are still to be fetched */
    TIDE_COPY_SHORT = 2,   /* shorter than the server stated, or empty */
    TIDE_COPY_DAMAGED = 3, /* read back, and different from what was stored */
    TIDE_COPIES,
} tide_copy;
const char *tide_copy_name(tide_copy copy); /* "exact", "held", "short", "damaged" */

struct tide_message;
/* How a message is parsed and its words prepared (mail/mime/message.h, mail/search/search.h).
 * Borrowed; called on the indexing thread. */
struct tide_indexer {
    tide_status (*parse)(tide_text raw, tide_arena *arena, struct tide_message *message_out);
    tide_status (*fold)(tide_text text, tide_buf *out);
};

struct tide_archive_options {
    const char *dir;     /* created when missing, unless read_only */
    const char *account; /* checked against the shards */
    tide_world *world;
    bool read_only;                     /* may run next to a writer; sees committed data */
    uint64_t shard_bytes_max;           /* 0: 4 GiB */
    int level;                          /* zstd; 0: 3 */
    bool index_later;                   /* store only; tide_archive_index() indexes */
    bool lean;                          /* small caches, for writing many shards at once */
    const struct tide_indexer *indexer; /* NULL: tide_message_parse() and tide_search_fold() */
};
tide_status tide_archive_open(const struct tide_archive_options *options, tide_mem *mem,
                              tide_archive **archive_out, tide_error *err);
/* The same; waits some seconds for a process that stops.  It gives up its engine first and then merges
 * its archives' logs into their files. */
tide_status tide_archive_open_next(const struct tide_archive_options *options, tide_mem *mem,
                                   tide_archive **archive_out, tide_error *err);
/* Commits queued writes, then closes.  NULL is fine. */
tide_status tide_archive_close(tide_archive *archive, tide_error *err);

/* ---- storing (any thread; one writer thread inside) ---- */

struct tide_incoming {
    tide_text gmail_id;
    tide_text thread_id;
    tide_text history_id; /* text: other servers may exceed 64 bits */
    int64_t internal_ms;
    const tide_text *labels; /* label ids */
    size_t labels_count;
    uint64_t said_bytes; /* the size the server states; 0: it does not */
    bool held;           /* from another source than the server (TIDE_COPY_HELD); its date has no
                          * milliseconds: those of the server's answer are adopted later */
    tide_text raw;       /* copied ... */
    tide_buf *take;      /* ... or, when not NULL, taken over with its memory and left empty; `raw`
                          * is ignored.  Saves a copy of a large message (M3). */
};
/* Queues it; waits while the queue is full.  *ticket_out covers it.
 *
 * Putting a stored message again is harmless (ARC3): labels and thread are updated if its history id
 * is not older, and it no longer counts as gone.  Its position is given by its first internal date.
 * New bytes replace the old ones, which stay in the shard; but bytes shorter than `said_bytes`
 * replace only shorter ones, and are marked (ARC6).  Damaged bytes are written again and compared.
 * Held bytes do not stay if the new ones differ in line ends only (tide_archive_sweep()). */
tide_status tide_archive_put(tide_archive *archive, const struct tide_incoming *message,
                             const tide_cancel *cancel, uint64_t *ticket_out, tide_error *err);
/* Waits until everything up to `ticket` is durable (ARC1), and makes the writer commit soon.
 *
 * When a commit fails, all waiting callers get the error and nothing is acknowledged. If disk space
 * or memory ran out, or another program locks a file, queued messages stay queued and are retried:
 * a later sync may succeed.  Any other failure is final (E1.10): every put and sync fails until the
 * archive is opened again, and messages that no sync covered must be put again. */
tide_status tide_archive_sync(tide_archive *archive, uint64_t ticket, const tide_cancel *cancel,
                              tide_error *err);
/* Moves all committed data from the logs into the shard files. */
tide_status tide_archive_checkpoint(tide_archive *archive, const tide_cancel *cancel,
                                    tide_error *err);
/* Which of these ids from the server must be fetched: out[i] true.  They are not stored, their copy
 * is short or damaged (ARC6), or they were marked as gone (M21).  Queued messages count as missing:
 * they are not durable yet. */
tide_status tide_archive_missing(tide_archive *archive, const tide_text *ids, size_t count,
                                 bool *missing_out, tide_error *err);
/* The same, and held copies count as missing too (M18). */
tide_status tide_archive_inexact(tide_archive *archive, const tide_text *ids, size_t count,
                                 bool *inexact_out, tide_error *err);
/* Which of these ids are in no shard, under this or another id. */
tide_status tide_archive_absent(tide_archive *archive, const tide_text *ids, size_t count,
                                bool *absent_out, tide_error *err);

/* A label change reported by the server; recorded with its time, the copy stays.  A change older
 * than the stored message is only recorded; one that is recorded already is skipped, so that a
 * history may be replayed.  Changes of messages that are not stored are dropped: these are fetched
 * with their labels. */
struct tide_label_change {
    tide_text gmail_id;
    tide_text label;
    bool added;
    bool unlisted; /* taken because a listing did not name it: no sign that the server has it */
    bool offered;  /* by a file: dropped once the server has said something about the message */
    int64_t at_ms;
    tide_text history_id;
};
tide_status tide_archive_labels(tide_archive *archive, const struct tide_label_change *changes,
                                size_t count, uint64_t *ticket_out, tide_error *err);
/* Whether history id `a` is earlier than `b`: numbers of any length.  An id that is unknown or not a
 * number is never earlier. */
bool tide_history_earlier(tide_text a, tide_text b);
/* Marks the bytes of a message as damaged (ARC6); ignores messages that are not stored. */
tide_status tide_archive_doubt(tide_archive *archive, tide_text gmail_id, uint64_t *ticket_out,
                               tide_error *err);
/* The server no longer has it (M5).  A label change that the server reports later, or its bytes,
 * undo that (M21). */
tide_status tide_archive_gone(tide_archive *archive, tide_text gmail_id, int64_t at_ms,
                              uint64_t *ticket_out, tide_error *err);
/* The server has it, according to an answer without bytes: it is not gone, and gets this thread and
 * these labels if its history id is not older (M21).  Ignores messages that are not stored. */
tide_status tide_archive_back(tide_archive *archive, const struct tide_incoming *message,
                              uint64_t *ticket_out, tide_error *err);
/* A restored message has a new id on the server (M14).  Its row keeps position, date and bytes; it
 * is no longer gone, gets these labels and is found by either id; both count as stored.  Later
 * reports about the former id are ignored.  If the new id is already stored (it was fetched
 * meanwhile), that row stays and the old one is gone: tide_archive_find() of the new id then
 * returns another row than before.  Ignores an id that is not stored. */
struct tide_renaming {
    tide_text old_id, new_id;
    tide_text thread_id;     /* the new thread */
    const tide_text *labels; /* ids */
    size_t labels_count;
    int64_t at_ms;
};
tide_status tide_archive_rename(tide_archive *archive, const struct tide_renaming *renaming,
                                uint64_t *ticket_out, tide_error *err);
/* Label names: id, name, "system" or "user". */
tide_status tide_archive_label_name(tide_archive *archive, tide_text id, tide_text name,
                                    tide_text type, uint64_t *ticket_out, tide_error *err);

/* ---- reading (any thread) ----
 *
 * Calls wait neither for each other nor for the writer, however long one takes; every `visit` may
 * read from the archive.  While a search or a `visit` of label rows, doubted copies or gone ids
 * runs, the log of its shard cannot be truncated: tide_archive_checkpoint() waits for that, for a
 * few seconds. */

struct tide_stored {
    uint32_t shard; /* its key (struct tide_shard_state); with rowid: its position */
    int64_t rowid;
    int64_t content; /* row of its bytes in the shard */
    char gmail_id[TIDE_GMAIL_ID_BYTES_MAX + 1];
    char thread_id[TIDE_GMAIL_ID_BYTES_MAX + 1];
    char history_id[32];
    int64_t internal_ms;
    uint64_t bytes;
    uint8_t hash[TIDE_CONTENT_HASH_BYTES];
    bool indexed;
    bool gone; /* from the server */
    tide_copy copy;
};
/* Finds a message by its current id, else by a former one: then stored_out->gmail_id differs. */
tide_status tide_archive_find(tide_archive *archive, tide_text gmail_id,
                              struct tide_stored *stored_out, tide_error *err);
/* How many messages have a current id that begins with `start`: 0, 1, or 2 for more.  1: it is in
 * *stored_out. */
tide_status tide_archive_find_short(tide_archive *archive, tide_text start, unsigned *count_out,
                                    struct tide_stored *stored_out, tide_error *err);
/* The exact bytes, hash checked; TIDE_CORRUPT names the message and its shard. */
tide_status tide_archive_raw(tide_archive *archive, const struct tide_stored *stored, tide_buf *out,
                             tide_error *err);
/* Its current label ids, one per line. */
tide_status tide_archive_labels_of(tide_archive *archive, const struct tide_stored *stored,
                                   tide_buf *out, tide_error *err);
/* The same with names; "" where a shard has none.  The texts are borrowed for the call. */
struct tide_label_row {
    tide_text id, name, type;
};
typedef void tide_label_visit(const struct tide_label_row *label, void *arg);
tide_status tide_archive_label_rows(tide_archive *archive, const struct tide_stored *stored,
                                    tide_label_visit *visit, void *arg, tide_error *err);
/* All labels of all shards, oldest shard first, some more than once: the last name of an id is the
 * newest. */
tide_status tide_archive_labels_all(tide_archive *archive, tide_label_visit *visit, void *arg,
                                    tide_error *err);
/* How much has a label, in one shard: a label of several shards is visited for each. */
struct tide_label_sums {
    struct tide_label_row label;
    uint64_t messages, bytes, in_gmail, in_gmail_bytes, unread;
    int64_t oldest_ms, newest_ms;
};
tide_status tide_archive_label_sums(tide_archive *archive,
                                    void (*visit)(const struct tide_label_sums *sums, void *arg),
                                    void *arg, tide_error *err);
/* Which of these ids are stored without that label, as far as they have no later history id than
 * `history_id` ("": whatever they have): out[i] true. */
tide_status tide_archive_unlabeled(tide_archive *archive, tide_text label, tide_text history_id,
                                   const tide_text *ids, size_t count, bool *unlabeled_out,
                                   tide_error *err);
/* A message with a label, and its position. */
struct tide_labeled {
    uint32_t shard;
    int64_t rowid;
    int64_t internal_ms;
    char gmail_id[TIDE_GMAIL_ID_BYTES_MAX + 1];
    char history_id[32];
};
/* Visits the messages with that label that the server has, oldest first, those behind the position of
 * `after` (NULL: all); `visit` returns false to stop. */
tide_status tide_archive_labeled(tide_archive *archive, tide_text label,
                                 const struct tide_labeled *after,
                                 bool (*visit)(const struct tide_labeled *labeled, void *arg),
                                 void *arg, tide_error *err);
/* Whether a shard has exactly these bytes. */
tide_status tide_archive_has(tide_archive *archive, const uint8_t hash[TIDE_CONTENT_HASH_BYTES],
                             bool *has_out, tide_error *err);
/* All messages of a conversation, oldest first; `visit` returns false to stop. */
tide_status tide_archive_thread(tide_archive *archive, tide_text thread_id,
                                bool (*visit)(const struct tide_stored *stored, void *arg),
                                void *arg, tide_error *err);
/* When it was stored here. */
tide_status tide_archive_stored_ms(tide_archive *archive, const struct tide_stored *stored,
                                   int64_t *stored_ms_out, tide_error *err);
/* The thread on the server that has this thread's messages now: itself while the server has one of
 * them, else the one that a restored message of it got, else "". */
tide_status tide_archive_thread_now(tide_archive *archive, tide_text thread_id,
                                    char thread_out[TIDE_GMAIL_ID_BYTES_MAX + 1], tide_error *err);
/* The last known name of a label; texts are terminated.  TIDE_NOT_FOUND: it is unknown, or has no
 * name. */
struct tide_label_called {
    char name[TIDE_LABEL_BYTES_MAX + 1];
    bool user; /* created by the user */
};
tide_status tide_archive_label_called(tide_archive *archive, tide_text label,
                                      struct tide_label_called *called_out, tide_error *err);
/* All messages of [from, to), oldest first (ARC4); `visit` returns false to stop. */
tide_status tide_archive_walk(tide_archive *archive, int64_t from_ms, int64_t to_ms,
                              bool (*visit)(const struct tide_stored *stored, void *arg), void *arg,
                              tide_error *err);
/* What the index read in the headers of a message, without its bytes: for lists.  Texts are decoded, and
 * borrowed for the call. */
struct tide_head {
    tide_text from, to, cc, subject;
    tide_text message_id; /* without <>, else "sha256:" and the hash */
    uint64_t files;       /* attachments */
};
/* Calls `visit` once; not at all for a message that is not indexed. */
tide_status tide_archive_head(tide_archive *archive, const struct tide_stored *stored,
                              void (*visit)(const struct tide_head *head, void *arg), void *arg,
                              tide_error *err);
/* How many messages that the server has carry a label ("": all but spam and trash) and arrived since
 * `from_ms`, by day in UTC, counted from 1970.  A day may be visited several times: its counts are to be
 * added, and some are negative.  Messages that arrived in a burst at midnight may count for the next
 * day (ARC4). */
tide_status tide_archive_days(tide_archive *archive, tide_text label, int64_t from_ms,
                              void (*visit)(int64_t day, int64_t count, void *arg), void *arg,
                              tide_error *err);
/* How many messages that the server has carry each label ("": all but spam and trash), and how many of
 * them UNREAD; a label may be visited several times: its counts are to be added. */
tide_status tide_archive_counts(tide_archive *archive,
                                void (*visit)(const char *label, int64_t count, int64_t unread,
                                              void *arg),
                                void *arg, tide_error *err);
/* Who a message is from and to.  Texts are borrowed for the call; "" where the message could not be
 * parsed. */
struct tide_parties {
    int64_t rowid;
    int64_t internal_ms;
    bool ready;                  /* indexed, or known to be unreadable: it stays as it is */
    bool sent, draft, junk;      /* by its labels; junk is spam and trash */
    tide_text from, to, cc, bcc; /* as displayed (mail/compose/mailbox.h reads them) */
};
/* The messages of a shard behind `rowid`, in the order of their rowids; `visit` returns false to
 * stop.  TIDE_NOT_FOUND: there is no such shard. */
tide_status tide_archive_parties(tide_archive *archive, uint32_t shard, int64_t rowid,
                                 bool (*visit)(const struct tide_parties *parties, void *arg),
                                 void *arg, tide_error *err);
/* Another number after every commit to a shard, and when one came, went or was replaced (ARC5); cheap. */
tide_status tide_archive_version(tide_archive *archive, uint64_t *version_out, tide_error *err);
/* How many messages of a shard are ready; cheap. */
tide_status tide_archive_ready(tide_archive *archive, uint32_t shard, uint64_t *count_out,
                               tide_error *err);

/* ---- checks and maintenance ---- */

/* Indexes stored messages that are not indexed yet, newest first, at most `count_max`.  Messages
 * that were being indexed when an earlier run crashed are tried one by one; if the process crashes
 * again on a single message, that message is marked as unreadable, with the reason, and skipped
 * from then on (M9). */
tide_status tide_archive_index(tide_archive *archive, uint64_t count_max, uint64_t *done_out,
                               tide_error *err);
/* Has the archive's own thread index now what is stored, and does not wait for it.  *left_out: not
 * all of it is indexed yet.  The error is that of the thread's last try, which it repeats. */
tide_status tide_archive_index_soon(tide_archive *archive, bool *left_out, tide_error *err);
/* Messages that could not be indexed, or only in part: each with the reason. */
tide_status tide_archive_unreadable(tide_archive *archive,
                                    void (*visit)(const struct tide_stored *stored,
                                                  const char *problem, void *arg),
                                    void *arg, tide_error *err);
/* The prefix of the id of a message that no server sent (mail/files/import.h): none is asked for it. */
#define TIDE_IMPORT_ID "import-"
bool tide_import_id_is(tide_text id);
/* Whether Gmail has the message, as far as is known: it was not imported, and is not gone. */
bool tide_stored_in_gmail(const struct tide_stored *stored);
/* Message counts over all shards. */
struct tide_archive_tally {
    uint64_t gone;                /* from the server; kept here */
    uint64_t imported;            /* under an id of ours: never on the server */
    uint64_t imported_damaged;    /* of them, also in copies[TIDE_COPY_DAMAGED] */
    uint64_t unindexed;           /* to be indexed */
    uint64_t unreadable;          /* stored, but even their headers could not be parsed */
    uint64_t partly;              /* indexed in part */
    uint64_t copies[TIDE_COPIES]; /* all but TIDE_COPY_EXACT, which are the rest */
};
tide_status tide_archive_tally(tide_archive *archive, struct tide_archive_tally *tally_out,
                               tide_error *err);
/* A message whose copy is not exact, and not held (ARC6). */
struct tide_doubted {
    char gmail_id[TIDE_GMAIL_ID_BYTES_MAX + 1];
    tide_copy copy;
    bool gone;
    uint64_t bytes, said_bytes; /* 0: unknown */
    uint64_t tries;             /* fetches that returned nothing better */
    uint64_t next_ms;           /* when the next try is due */
};
/* Visits all of them; `visit` returns false to stop. */
tide_status tide_archive_doubted(tide_archive *archive,
                                 bool (*visit)(const struct tide_doubted *doubted, void *arg),
                                 void *arg, tide_error *err);
/* A held copy that the server may still replace, with its position. */
struct tide_held {
    uint32_t shard;
    int64_t rowid;
    char gmail_id[TIDE_GMAIL_ID_BYTES_MAX + 1];
};
/* Visits held copies of messages that the server has, whose next try is due at `now_ms`, newest
 * first, those before the position of `after` (NULL: all); `visit` returns false to stop. */
tide_status tide_archive_held(tide_archive *archive, const struct tide_held *after, uint64_t now_ms,
                              bool (*visit)(const struct tide_held *held, void *arg), void *arg,
                              tide_error *err);
/* The id of a new message of which the server sent the exact bytes, and has it as far as known; "":
 * there is none. */
tide_status tide_archive_some_exact(tide_archive *archive,
                                    char gmail_id_out[TIDE_GMAIL_ID_BYTES_MAX + 1],
                                    tide_error *err);
/* The internal date of the newest held copy, and of the oldest; 0: there is none.  Copies of messages
 * that are gone from the server do not count. */
tide_status tide_archive_held_span(tide_archive *archive, int64_t *newest_ms_out,
                                   int64_t *oldest_ms_out, tide_error *err);
/* Deletes bytes that no message has any more: of held copies that the server's own replaced. */
tide_status tide_archive_sweep(tide_archive *archive, const tide_cancel *cancel, tide_error *err);
/* Deletes earlier bytes (of messages for which the server later sent others) that can no longer be
 * read: no source has them. */
tide_status tide_archive_tidy(tide_archive *archive, const tide_cancel *cancel, tide_error *err);
/* Retries messages marked as unreadable in the next index run. */
tide_status tide_archive_index_again(tide_archive *archive, const tide_cancel *cancel,
                                     tide_error *err);
struct tide_damage {
    const char *shard;
    char gmail_id[TIDE_GMAIL_ID_BYTES_MAX + 1]; /* "": the shard itself */
    char what[200];
};
/* Reads and hashes everything again, or one message in `sample` (0: all). */
tide_status tide_archive_verify(tide_archive *archive, uint32_t sample,
                                void (*damaged)(const struct tide_damage *damage, void *arg),
                                void *arg, uint64_t *checked_out, tide_error *err);
/* Runs SQLite's own check on every shard that can be opened; visits those with damaged pages, with
 * the first error. */
tide_status tide_archive_check(tide_archive *archive,
                               void (*visit)(const char *shard, tide_status rc, const char *why,
                                             void *arg),
                               void *arg, tide_error *err);
/* Copies every message that is readable in the damaged shards in `dir` and missing in the archive,
 * durably: bytes, labels, former ids, gone marks.  Adds to *salvaged. */
struct tide_salvaged {
    uint64_t copied;
    uint64_t unreadable; /* rows known, bytes unreadable */
};
tide_status tide_archive_salvage(tide_archive *archive, const char *dir,
                                 struct tide_salvaged *salvaged, tide_error *err);
/* Syncs the files of a shard (by its key) and drops them from the caches of the system and of this
 * archive, so that later calls read from the disk (ARC8, M13).  Checkpoint first.  TIDE_NOT_FOUND. */
tide_status tide_archive_forget(tide_archive *archive, uint32_t shard, tide_error *err);
struct tide_shard_state {
    uint32_t key;  /* ascends with year and part; the same in every process and forever */
    char name[32]; /* "2019-2" */
    char id[40];
    uint64_t generation;
    uint64_t messages;
    uint64_t bytes; /* of the file */
    uint64_t raw_bytes;
    int64_t oldest_ms, newest_ms;
    uint64_t made_ms; /* when the file was created; 0 in the ledger's record */
    /* How many messages are gone from the server, and the sum of their rowids, which changes with
     * them. */
    uint64_t gone, gone_sum;
};
/* Visits the ids of a shard's messages that are gone from the server. */
tide_status tide_archive_gone_ids(tide_archive *archive, uint32_t shard,
                                  void (*visit)(const char *gmail_id, void *arg), void *arg,
                                  tide_error *err);
/* For an archive opened read_only: the shards that cannot be read, with the reason.  All other
 * functions skip them. */
typedef void tide_broken_visit(const char *shard, tide_status rc, const char *why, void *arg);
tide_status tide_archive_broken(tide_archive *archive, tide_broken_visit *visit, void *arg,
                                tide_error *err);
/* Opens none for that: visits those of them that calls have met so far. */
tide_status tide_archive_broken_met(tide_archive *archive, tide_broken_visit *visit, void *arg,
                                    tide_error *err);
/* Looks for new and removed shards.  TIDE_NOT_FOUND: the archive itself was removed. */
tide_status tide_archive_look(tide_archive *archive, tide_error *err);
/* The same for everything that is kept open for calls to come, and closes what was replaced, moved or
 * removed. */
tide_status tide_archive_let_go(tide_archive *archive, tide_error *err);
/* Whether no shard was found that cannot be read; and how many are open for calls to come. */
bool tide_archive_is_sound(tide_archive *archive, size_t *open_out);
/* Looks for new shards and visits the state of each, in the order of their keys. */
tide_status tide_archive_states(tide_archive *archive,
                                void (*visit)(const struct tide_shard_state *shard, void *arg),
                                void *arg, tide_error *err);
/* The same one by one, each time with a look for new shards; for callers that do something long in
 * between. */
size_t tide_archive_shards(tide_archive *archive);
tide_status tide_archive_shard(tide_archive *archive, size_t index,
                               struct tide_shard_state *state_out, tide_error *err);

#endif
