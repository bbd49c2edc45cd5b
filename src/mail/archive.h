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
 *   A4  rowids inside a shard ascend with the internal date, so that newest-first
 *       needs no sorting.
 *   A5  every shard has an id, a generation that grows with each commit, and a
 *       count of messages (M4): an older copy is recognised.
 */
#ifndef TIDE_MAIL_ARCHIVE_H
#define TIDE_MAIL_ARCHIVE_H

#include "base/buf.h"
#include "base/mem.h"
#include "base/status.h"
#include "base/text.h"
#include "mail/content.h"
#include "world/world.h"

typedef struct tide_archive tide_archive;

enum {
    TIDE_ARCHIVE_GROUP_MESSAGES = 100,   /* of one transaction (M7) ... */
    TIDE_ARCHIVE_GROUP_BYTES = 12 << 20, /* ... or so many bytes ... */
    TIDE_ARCHIVE_GROUP_MS = 1000,        /* ... or so long */
    TIDE_ARCHIVE_QUEUE_BYTES = 32 << 20, /* between fetchers and writer (M3) */
    TIDE_ARCHIVE_SHARDS_MAX = 4096,
    TIDE_GMAIL_ID_BYTES_MAX = 64,
};

struct tide_archive_options {
    const char *dir;     /* made when missing, unless read_only */
    const char *account; /* checked against what the shards say */
    tide_world *world;
    bool read_only;           /* beside a writer; sees what is committed */
    uint64_t shard_bytes_max; /* 0: 4 GiB */
    int level;                /* zstd; 0: 3 */
    bool index_later;         /* storing only; tide_archive_index() does the rest */
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
    tide_text raw; /* taken over: copied or kept until written */
};
/* Queues it; waits while the queue is full.  *ticket_out covers it. */
tide_status tide_archive_put(tide_archive *archive, const struct tide_incoming *message,
                             const tide_cancel *cancel, uint64_t *ticket_out, tide_error *err);
/* Waits until everything up to `ticket` is durable (A1). */
tide_status tide_archive_sync(tide_archive *archive, uint64_t ticket, const tide_cancel *cancel,
                              tide_error *err);
/* Which of these ids are not stored: out[i] true.  One query per shard. */
tide_status tide_archive_missing(tide_archive *archive, const tide_text *ids, size_t count,
                                 bool *missing_out, tide_error *err);

/* What the server says changed; recorded with its time, the copy stays. */
struct tide_label_change {
    tide_text gmail_id;
    tide_text label;
    bool added;
    int64_t at_ms;
    tide_text history_id;
};
tide_status tide_archive_labels(tide_archive *archive, const struct tide_label_change *changes,
                                size_t count, uint64_t *ticket_out, tide_error *err);
/* The server no longer has it (M5). */
tide_status tide_archive_gone(tide_archive *archive, tide_text gmail_id, int64_t at_ms,
                              uint64_t *ticket_out, tide_error *err);
/* Names of labels: id, name, "system" or "user". */
tide_status tide_archive_label_name(tide_archive *archive, tide_text id, tide_text name,
                                    tide_text type, uint64_t *ticket_out, tide_error *err);

/* ---- reading (each reader thread its own read_only archive) ---- */

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
};
tide_status tide_archive_find(tide_archive *archive, tide_text gmail_id,
                              struct tide_stored *stored_out, tide_error *err);
/* The exact bytes, hash checked; TIDE_CORRUPT names the message and its shard. */
tide_status tide_archive_raw(tide_archive *archive, const struct tide_stored *stored, tide_buf *out,
                             tide_error *err);
/* Its label ids now, one a line. */
tide_status tide_archive_labels_of(tide_archive *archive, const struct tide_stored *stored,
                                   tide_buf *out, tide_error *err);
/* All messages of [from, to), oldest first; false from `visit` ends the walk. */
tide_status tide_archive_walk(tide_archive *archive, int64_t from_ms, int64_t to_ms,
                              bool (*visit)(const struct tide_stored *stored, void *arg), void *arg,
                              tide_error *err);

/* ---- proof and care ---- */

/* Indexes what is stored and not yet indexed, at most `count_max`; a message
 * that is marked as being indexed from a run that died is skipped and named. */
tide_status tide_archive_index(tide_archive *archive, uint64_t count_max, uint64_t *done_out,
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
struct tide_shard_state {
    uint32_t key;  /* ascends with year and part; the same in every process and for ever */
    char name[32]; /* "2019-2" */
    char id[40];
    uint64_t generation;
    uint64_t messages;
    uint64_t bytes; /* of the file */
    uint64_t raw_bytes;
    int64_t oldest_ms, newest_ms;
};
size_t tide_archive_shards(tide_archive *archive);
tide_status tide_archive_shard(tide_archive *archive, size_t index,
                               struct tide_shard_state *state_out, tide_error *err);

#endif
