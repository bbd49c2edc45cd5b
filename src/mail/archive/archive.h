/* archive.h - one account's mail on disk: shards that anybody can read with
 * sqlite3 for decades (docs/archive-format.md is the promise).
 *
 * A shard is a SQLite file of one year (by internal date in UTC), or a part of
 * it when the year outgrows the size cap: 2019.db, 2019-2.db.  Any number of
 * them is read as one.  Raw bytes are kept exactly, compressed, under their
 * content hash; equal bytes are stored once; attachments are cut out and stored
 * once over all messages of a shard, and put back byte for byte.
 *
 * Storing comes first, indexing second, with a mark per message (M9): a message
 * that crashes the parser is known by name after one restart.
 *
 * Invariants (tide_archive_verify() re-reads everything):
 *   A1  a message that tide_archive_sync() covered survives power loss, whole.
 *   A2  what is read back hashes to what was put; else it is reported, by name.
 *   A3  (account, Gmail id) is unique over all shards; putting twice is harmless.
 *   A4  rowids inside a shard ascend with the internal date, in eighths of a second,
 *       so that newest-first needs no sorting.  A message whose eighth is taken stands
 *       behind it, at the first rowid that is free: the more messages have the same
 *       date, the further behind.  Spans of dates are exact all the same.
 *   A5  every shard has an id, a generation that grows with each commit, and a
 *       count of messages (M4): an older copy is recognised.
 *   A6  what is known about a copy is in its shard (M19a, enum tide_copy).  A copy that is
 *       not exact never takes the place of one that is, and stays marked until bytes come
 *       that are as long as the server says.
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
    TIDE_ARCHIVE_GROUP_MESSAGES = 100,   /* of one transaction (M7) ... */
    TIDE_ARCHIVE_GROUP_BYTES = 12 << 20, /* ... or so many bytes ... */
    TIDE_ARCHIVE_GROUP_MS = 1000,        /* ... or so long */
    TIDE_ARCHIVE_QUEUE_BYTES = 32 << 20, /* between fetchers and writer (M3) */
    TIDE_ARCHIVE_SHARDS_MAX = 4096,
    TIDE_GMAIL_ID_BYTES_MAX = 64,
    TIDE_LABEL_BYTES_MAX = 512,
};

/* What is known about the bytes of a message.  Only TIDE_COPY_EXACT is a proof for whoever
 * wants to remove it from the server. */
typedef enum tide_copy {
    TIDE_COPY_EXACT = 0,   /* what the server gave, as long as it said */
    TIDE_COPY_HELD = 1,    /* from elsewhere: the server's own bytes are still to be fetched */
    TIDE_COPY_SHORT = 2,   /* shorter than the server said, or empty */
    TIDE_COPY_DAMAGED = 3, /* they were read back and are not what was put */
    TIDE_COPIES,
} tide_copy;
const char *tide_copy_name(tide_copy copy); /* "exact", "held", "short", "damaged" */

struct tide_message;
/* How a message is read and how its words are prepared (mail/mime/message.h, mail/search/search.h).
 * Borrowed; called on the thread that indexes. */
struct tide_indexer {
    tide_status (*parse)(tide_text raw, tide_arena *arena, struct tide_message *message_out);
    tide_status (*fold)(tide_text text, tide_buf *out);
};

struct tide_archive_options {
    const char *dir;     /* made when missing, unless read_only */
    const char *account; /* checked against what the shards say */
    tide_world *world;
    bool read_only;                     /* beside a writer; sees what is committed */
    uint64_t shard_bytes_max;           /* 0: 4 GiB */
    int level;                          /* zstd; 0: 3 */
    bool index_later;                   /* storing only; tide_archive_index() does the rest */
    bool lean;                          /* small caches: many shards are written to at once */
    const struct tide_indexer *indexer; /* NULL: tide_message_parse() and tide_search_fold() */
};
tide_status tide_archive_open(const struct tide_archive_options *options, tide_mem *mem,
                              tide_archive **archive_out, tide_error *err);
/* Commits what is queued, then closes.  NULL is fine. */
tide_status tide_archive_close(tide_archive *archive, tide_error *err);

/* ---- putting (any thread; one writer thread inside) ---- */

struct tide_incoming {
    tide_text gmail_id;
    tide_text thread_id;
    tide_text history_id; /* text: it may exceed 64 bits at other emulators */
    int64_t internal_ms;
    const tide_text *labels; /* label ids */
    size_t labels_count;
    uint64_t said_bytes; /* how long the server says it is; 0: it does not */
    tide_text raw;       /* copied ... */
    tide_buf *take;      /* ... or, when not NULL, taken over with its room and left empty; `raw` is
                     * ignored.  Saves a copy of a large message (M3). */
};
/* Queues it; waits while the queue is full.  *ticket_out covers it.
 *
 * Putting what is there again is harmless (A3): labels and thread follow if its
 * history id is not older, and it is no longer gone.  Its place follows the
 * internal date that it came with first.  Other bytes than before replace them, and
 * the earlier ones stay in the shard; but bytes that are shorter than `said_bytes` replace
 * only shorter ones, and are marked (A6).  Bytes that were found to be damaged are written
 * anew and compared. */
tide_status tide_archive_put(tide_archive *archive, const struct tide_incoming *message,
                             const tide_cancel *cancel, uint64_t *ticket_out, tide_error *err);
/* Waits until everything up to `ticket` is durable (A1), which it hurries.
 *
 * When a commit fails, everybody who waits is told and nothing is acknowledged.
 * For lack of room or memory, or because somebody else's program holds a file,
 * what is queued stays queued and is tried again: a later sync may succeed.  Any
 * other failure is final (E1.10): every put and sync fails until the archive is
 * opened again, and what was not covered has to be put again. */
tide_status tide_archive_sync(tide_archive *archive, uint64_t ticket, const tide_cancel *cancel,
                              tide_error *err);
/* Moves everything committed out of the logs into the shard files themselves. */
tide_status tide_archive_checkpoint(tide_archive *archive, const tide_cancel *cancel,
                                    tide_error *err);
/* Which of these ids, that the server names, have to be fetched: out[i] true.  They are not
 * stored, their copy is short or damaged (A6), or they were believed to be gone (M21).  What is
 * queued counts as missing: it is not durable yet. */
tide_status tide_archive_missing(tide_archive *archive, const tide_text *ids, size_t count,
                                 bool *missing_out, tide_error *err);
/* Which of these ids are in no shard, under this or another id. */
tide_status tide_archive_absent(tide_archive *archive, const tide_text *ids, size_t count,
                                bool *absent_out, tide_error *err);

/* What the server says changed; recorded with its time, the copy stays.  A change
 * older than what the message was stored with is recorded only; one that is
 * recorded already is skipped, so that a history may be replayed.  Changes of
 * messages that are not stored are forgotten: they come with their labels. */
struct tide_label_change {
    tide_text gmail_id;
    tide_text label;
    bool added;
    int64_t at_ms;
    tide_text history_id;
};
tide_status tide_archive_labels(tide_archive *archive, const struct tide_label_change *changes,
                                size_t count, uint64_t *ticket_out, tide_error *err);
/* Marks the bytes of a message as damaged (A6); what is not stored is passed over. */
tide_status tide_archive_doubt(tide_archive *archive, tide_text gmail_id, uint64_t *ticket_out,
                               tide_error *err);
/* The server no longer has it (M5).  A later change of its labels, or its bytes, take that
 * back (M21). */
tide_status tide_archive_gone(tide_archive *archive, tide_text gmail_id, int64_t at_ms,
                              uint64_t *ticket_out, tide_error *err);
/* The server has it, as its answer without bytes says: it is not gone, and has that thread and
 * these labels if its history id is not older (M21).  What is not stored is passed over. */
tide_status tide_archive_back(tide_archive *archive, const struct tide_incoming *message,
                              uint64_t *ticket_out, tide_error *err);
/* The server was given a message back and calls it by another id now (M14).  Its row
 * keeps its place, its date and its bytes; it is no longer gone, has these labels and is
 * found by either id, which both count as stored.  What the server still tells of the
 * former id is forgotten.  If the new id is stored by itself already (it was fetched
 * meanwhile), that row stays and the old one is gone: tide_archive_find() of the new id
 * then gives another row than before.  An id that is not stored is passed over. */
struct tide_renaming {
    tide_text old_id, new_id;
    tide_text thread_id;     /* the new one */
    const tide_text *labels; /* ids */
    size_t labels_count;
    int64_t at_ms;
};
tide_status tide_archive_rename(tide_archive *archive, const struct tide_renaming *renaming,
                                uint64_t *ticket_out, tide_error *err);
/* Names of labels: id, name, "system" or "user". */
tide_status tide_archive_label_name(tide_archive *archive, tide_text id, tide_text name,
                                    tide_text type, uint64_t *ticket_out, tide_error *err);

/* ---- reading (any thread; several take turns, so that a thread which reads much
 * is better off with a read_only archive of its own) ---- */

struct tide_stored {
    uint32_t shard; /* its key (struct tide_shard_state); with rowid: where it is */
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
/* By the id it has, else by one that it had: stored_out->gmail_id then is another one. */
tide_status tide_archive_find(tide_archive *archive, tide_text gmail_id,
                              struct tide_stored *stored_out, tide_error *err);
/* The exact bytes, hash checked; TIDE_CORRUPT names the message and its shard. */
tide_status tide_archive_raw(tide_archive *archive, const struct tide_stored *stored, tide_buf *out,
                             tide_error *err);
/* Its label ids now, one a line. */
tide_status tide_archive_labels_of(tide_archive *archive, const struct tide_stored *stored,
                                   tide_buf *out, tide_error *err);
/* The same with their names; "" where a shard does not know them.  The texts are borrowed for the
 * call; `visit` must not read from the archive. */
struct tide_label_row {
    tide_text id, name, type;
};
typedef void tide_label_visit(const struct tide_label_row *label, void *arg);
tide_status tide_archive_label_rows(tide_archive *archive, const struct tide_stored *stored,
                                    tide_label_visit *visit, void *arg, tide_error *err);
/* All labels of all shards from the oldest on, some more than once: the last name of an id is
 * the newest. */
tide_status tide_archive_labels_all(tide_archive *archive, tide_label_visit *visit, void *arg,
                                    tide_error *err);
/* Whether any shard that was there when the archive was opened has those very bytes. */
tide_status tide_archive_has(tide_archive *archive, const uint8_t hash[TIDE_CONTENT_HASH_BYTES],
                             bool *has_out, tide_error *err);
/* All messages of a conversation, oldest first; false from `visit` ends it. */
tide_status tide_archive_thread(tide_archive *archive, tide_text thread_id,
                                bool (*visit)(const struct tide_stored *stored, void *arg),
                                void *arg, tide_error *err);
/* When it was stored here. */
tide_status tide_archive_stored_ms(tide_archive *archive, const struct tide_stored *stored,
                                   int64_t *stored_ms_out, tide_error *err);
/* The thread at the server that this thread's messages belong to now: itself while the
 * server has one of them, else the one that a message of it got when it was given back,
 * else "". */
tide_status tide_archive_thread_now(tide_archive *archive, tide_text thread_id,
                                    char thread_out[TIDE_GMAIL_ID_BYTES_MAX + 1], tide_error *err);
/* What a label was called when the server last named it; texts are terminated.
 * TIDE_NOT_FOUND: it is not known, or has no name. */
struct tide_label_called {
    char name[TIDE_LABEL_BYTES_MAX + 1];
    bool user; /* made by a person */
};
tide_status tide_archive_label_called(tide_archive *archive, tide_text label,
                                      struct tide_label_called *called_out, tide_error *err);
/* All messages of [from, to), oldest first (A4); false from `visit` ends the walk. */
tide_status tide_archive_walk(tide_archive *archive, int64_t from_ms, int64_t to_ms,
                              bool (*visit)(const struct tide_stored *stored, void *arg), void *arg,
                              tide_error *err);

/* ---- proof and care ---- */

/* Indexes what is stored and not yet indexed, newest first, at most `count_max`.
 * Messages that were being indexed when an earlier run died are tried one by
 * one; one that was alone when it died again is marked as unreadable, with its
 * reason, and not tried any more (M9). */
tide_status tide_archive_index(tide_archive *archive, uint64_t count_max, uint64_t *done_out,
                               tide_error *err);
/* Those that could not be indexed, or not wholly: each with its reason. */
tide_status tide_archive_unreadable(tide_archive *archive,
                                    void (*visit)(const struct tide_stored *stored,
                                                  const char *problem, void *arg),
                                    void *arg, tide_error *err);
/* How many messages are what, over all shards. */
struct tide_archive_tally {
    uint64_t gone;                /* from the server; kept here */
    uint64_t unindexed;           /* their turn comes */
    uint64_t unreadable;          /* stored, but not even their head could be read */
    uint64_t partly;              /* indexed, but not wholly */
    uint64_t copies[TIDE_COPIES]; /* all but TIDE_COPY_EXACT, which are the rest */
};
tide_status tide_archive_tally(tide_archive *archive, struct tide_archive_tally *tally_out,
                               tide_error *err);
/* A message whose copy is not exact (A6). */
struct tide_doubted {
    char gmail_id[TIDE_GMAIL_ID_BYTES_MAX + 1];
    tide_copy copy;
    bool gone;
    uint64_t bytes, said_bytes; /* 0: not known */
    uint64_t tries;             /* how often the server gave no better bytes */
    uint64_t next_ms;           /* when it is worth asking again */
};
/* All of them; false from `visit` ends it.  `visit` must not read from the archive. */
tide_status tide_archive_doubted(tide_archive *archive,
                                 bool (*visit)(const struct tide_doubted *doubted, void *arg),
                                 void *arg, tide_error *err);
/* Forgets earlier bytes (of messages that the server later gave other ones for) that can no longer
 * be read: nobody has them. */
tide_status tide_archive_tidy(tide_archive *archive, const tide_cancel *cancel, tide_error *err);
/* Tries those that are marked as unreadable again with the next index run. */
tide_status tide_archive_index_again(tide_archive *archive, const tide_cancel *cancel,
                                     tide_error *err);
struct tide_damage {
    const char *shard;
    char gmail_id[TIDE_GMAIL_ID_BYTES_MAX + 1]; /* "" when it is the shard itself */
    char what[200];
};
/* Re-reads and re-hashes everything, or one message in `sample` (0: all). */
tide_status tide_archive_verify(tide_archive *archive, uint32_t sample,
                                void (*damaged)(const struct tide_damage *damage, void *arg),
                                void *arg, uint64_t *checked_out, tide_error *err);
/* SQLite's own check of every shard that can be opened: those with damaged pages, with the first
 * complaint. */
tide_status tide_archive_check(tide_archive *archive,
                               void (*visit)(const char *shard, tide_status rc, const char *why,
                                             void *arg),
                               void *arg, tide_error *err);
/* Copies every message that the damaged shards in `dir` still give and the archive does not have,
 * durably: bytes, labels, former ids, what is gone.  Adds to *salvaged. */
struct tide_salvaged {
    uint64_t copied;
    uint64_t unreadable; /* their rows are known, but not their bytes */
};
tide_status tide_archive_salvage(tide_archive *archive, const char *dir,
                                 struct tide_salvaged *salvaged, tide_error *err);
/* Syncs the files of a shard (by its key) and drops what the system remembers of them, so
 * that a connection that is opened afterwards reads from the disk (M13).  Checkpoint
 * first.  TIDE_NOT_FOUND. */
tide_status tide_archive_forget(tide_archive *archive, uint32_t shard, tide_error *err);
struct tide_shard_state {
    uint32_t key;  /* ascends with year and part; the same in every process and for ever */
    char name[32]; /* "2019-2" */
    char id[40];
    uint64_t generation;
    uint64_t messages;
    uint64_t bytes; /* of the file */
    uint64_t raw_bytes;
    int64_t oldest_ms, newest_ms;
    uint64_t made_ms; /* when the file was made; 0 in what the ledger remembers */
    /* How many messages are gone from the server, and the sum of their row numbers: it changes
     * with them. */
    uint64_t gone, gone_sum;
};
/* The ids of a shard's messages that are gone from the server; `visit` must not read. */
tide_status tide_archive_gone_ids(tide_archive *archive, uint32_t shard,
                                  void (*visit)(const char *gmail_id, void *arg), void *arg,
                                  tide_error *err);
/* Of an archive that was opened to be read: the shards that cannot be, with the reason.  All
 * other functions pass them over. */
tide_status tide_archive_broken(tide_archive *archive,
                                void (*visit)(const char *shard, tide_status rc, const char *why,
                                              void *arg),
                                void *arg, tide_error *err);
/* Looks for new ones, and counts them; the shards are in the order of their keys. */
size_t tide_archive_shards(tide_archive *archive);
tide_status tide_archive_shard(tide_archive *archive, size_t index,
                               struct tide_shard_state *state_out, tide_error *err);

#endif
