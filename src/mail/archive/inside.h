/* inside.h - declarations shared by the files of the archive.
 *
 *   archive.c opening, closing, shards
 *   put.c     the queue: storing, tickets, waiting
 *   writer.c  the writer thread: takes entries from the queue, commits groups
 *   store.c   writes one message or one change into its shard
 *   index.c   parses and indexes stored messages, with marks
 *   recent.c  keeps bytes in memory between storing and indexing
 *   reader.c  readers: the connections that one call uses
 *   read.c    finding and reading
 *   verify.c  reads and checks everything
 *   tally.c   counting
 *   heads.c   who messages are from and to
 *   doubt.c   copies that are not exact (ARC6)
 *
 * Threads: the writer's set of shards belongs to the writer thread alone.  Every call that reads
 * takes a reader, with a set of its own, and gives it back at its end.
 * `lock` guards the queue, the idle readers and the flags and is never held over a statement
 * (world.h WLD3).
 *
 * Invariants of readers:
 *   RDR1  a reader belongs to one call at a time.  No call waits for one: when none is idle,
 *         another is opened.  So a call may read while it visits, and a long one delays no other.
 *   RDR2  at most TIDE_READERS_IDLE are kept between calls.  The first one keeps up to
 *         TIDE_SHARDS_OPEN_MAX shards open, the others TIDE_READER_OPEN_MAX, with small caches; the
 *         least recently used shard is closed (shard.h SHD2).
 *   RDR3  a reader closes a shard before its next use if its file was replaced, moved or removed
 *         (ARC7; tide_shards_open(), tide_shards_look()), and all of them if tide_archive_forget()
 *         returned since its last use (ARC8; tide_reader_take()).
 */
#ifndef TIDE_MAIL_ARCHIVE_INSIDE_H
#define TIDE_MAIL_ARCHIVE_INSIDE_H

#include "mail/archive/shard.h"

enum {
    TIDE_ARCHIVE_RETRY_MS = 1000, /* between two tries of a group for which there was no space */
    TIDE_ARCHIVE_POLL_MS = 20,    /* how soon a wait notices its cancellation */
    TIDE_ARCHIVE_LABELS_MAX = 1000,
    TIDE_ARCHIVE_LABELS_KNOWN_MAX = 20000, /* Gmail allows 10,000 in a mailbox */
    TIDE_ARCHIVE_LABEL_BYTES_MAX = TIDE_LABEL_BYTES_MAX,
    TIDE_ARCHIVE_HISTORY_BYTES_MAX = 31,
    TIDE_INDEX_GROUP_MESSAGES = 1000,
    TIDE_INDEX_GROUP_BYTES = 16 << 20, /* raw */
    TIDE_INDEX_WAIT_MS = 2000,         /* for a group to fill while mail arrives */
    TIDE_INDEX_LAST_MESSAGES = 2000,   /* at most this many are indexed on close */
    TIDE_READERS_IDLE = 4,
    TIDE_READER_OPEN_MAX = 16, /* shards, of readers other than the first */
};

typedef enum tide_entry_kind {
    TIDE_ENTRY_MESSAGE,
    TIDE_ENTRY_LABELS,
    TIDE_ENTRY_GONE,
    TIDE_ENTRY_BACK,
    TIDE_ENTRY_DOUBT,
    TIDE_ENTRY_RENAME,
    TIDE_ENTRY_NAME,
    TIDE_ENTRY_WORK,
} tide_entry_kind;

/* Work for the writer inside its transactions that is not data from the server.  Runs once; a
 * failed commit ends it with that failure.  Owned by the caller that waits for it, or by the writer
 * once that caller has given up. */
struct tide_work {
    tide_status (*run)(tide_archive *archive, struct tide_work *work, tide_error *err);
    void (*free)(struct tide_work *work);
    bool alone; /* run it outside of transactions, after all are committed */
    /* Guarded by the archive's lock. */
    bool done; /* durable, or failed */
    bool abandoned;
    tide_status rc;
    tide_error err;
};

struct tide_entry {
    struct tide_entry *next;
    tide_entry_kind kind;
    uint64_t ticket;
    size_t bytes; /* its share of the queue's limit */
    size_t self_bytes;
    union {
        struct {
            struct tide_incoming incoming; /* raw: points into `raw` below */
            tide_buf raw;
            /* Where it was added.  content 0: it was not added, or existed already. */
            uint32_t shard;
            int64_t content;
        } message;
        struct {
            struct tide_label_change *changes;
            size_t count;
        } labels;
        struct {
            tide_text gmail_id;
            int64_t at_ms;
        } gone; /* also used for doubts */
        struct tide_renaming renaming;
        struct {
            tide_text id, name, type;
        } name;
        struct tide_work *work;
    } as;
    /* Followed by the texts it points to. */
};

struct tide_entries {
    struct tide_entry *first, *last;
    size_t count;
};

/* A label as the server last named it. */
struct tide_label_known {
    tide_text id, name, type; /* point into room, owned */
    char *room;
    size_t room_bytes;
};

struct tide_writer {
    tide_thread *thread;
    tide_thread *indexer;
    tide_file_lock *file_lock;
    tide_shards shards; /* used by the writer thread only */
    tide_packer *packer;
    tide_buf scratch; /* a message without its cuts, or one piece */
    tide_buf piece;
    struct tide_cut *cuts; /* TIDE_CUTS_MAX */
    struct tide_label_known *labels;
    size_t labels_count, labels_capacity;

    /* Guarded by the archive's lock. */
    tide_cond *work; /* wakes the writer: an entry is queued, or a commit is requested */
    tide_cond *news; /* wakes all others: durable, space, failure, end */
    struct tide_entries queue;
    struct tide_entries group; /* applied, not committed */
    size_t bytes;              /* of queue and group */
    size_t group_bytes;
    uint64_t group_since_us;
    uint64_t ticket_last;  /* the last one issued */
    uint64_t ticket_done;  /* durable up to here */
    uint64_t ticket_hurry; /* a caller waits for it */
    uint32_t room_waiters;
    uint64_t failures;  /* commits that failed */
    tide_error failure; /* the last one */
    bool broken;        /* permanently */
    bool closing;
    bool ended;
    uint64_t index_turns;   /* issued to callers that index, one at a time, in order */
    uint64_t index_turn_of; /* the one that may index now */
    bool index_stop;
    bool index_now;             /* do not wait for a group to fill */
    uint64_t index_seen;        /* `stored` when the indexer looked last */
    bool index_left;            /* it has not indexed all of that */
    tide_error index_error;     /* of its last try; TIDE_OK: it succeeded */
    bool index_all;             /* index all shards, not only what this process stored */
    struct tide_recent *recent; /* NULL: stored messages are not indexed */
    size_t recent_bytes;
    size_t recent_next; /* the next one to drop */
    uint64_t stored;    /* messages committed by this process; read by the indexer */
    uint64_t retry_at_us;
};

struct tide_reader {
    tide_archive *archive;
    tide_shards shards;
    tide_packer *packer;
    bool first;       /* opened with the archive */
    uint64_t forgets; /* of the archive, when its shards were opened */
};

struct tide_archive {
    tide_mem *mem;
    tide_world *world;
    char *texts; /* dir and account, owned */
    size_t texts_bytes;
    struct tide_archive_options options; /* defaults filled in; owns the texts */
    tide_lock *lock;
    struct tide_reader *idle[TIDE_READERS_IDLE]; /* [0]: the first one, unless it is in use */
    size_t readers;                              /* open, idle or in use */
    uint64_t forgets;                            /* calls of tide_archive_forget() */
    struct tide_writer *writer;                  /* NULL: read only */
};

/* ---- reader.c ---- */
/* Takes a reader (RDR1), which knows the shards of an earlier scan.  *reader_out must be NULL; it is
 * set or stays NULL, and the caller gives it back in any case. */
tide_status tide_reader_take(tide_archive *archive, struct tide_reader **reader_out,
                             tide_error *err);
/* The same, and scans for new shards. */
tide_status tide_reader_take_all(tide_archive *archive, struct tide_reader **reader_out,
                                 tide_error *err);
/* The same, and opens the shard with that key.  TIDE_NOT_FOUND as tide_shards_open(). */
tide_status tide_reader_take_at(tide_archive *archive, uint32_t key,
                                struct tide_reader **reader_out, struct tide_shard **shard_out,
                                tide_error *err);
void tide_reader_drop(struct tide_reader *reader); /* NULL is fine */
static inline void tide_reader_drop_at(struct tide_reader **reader)
{
    tide_reader_drop(*reader);
}
/* Given back at the end of its block. */
#define tide_auto_reader __attribute__((cleanup(tide_reader_drop_at))) struct tide_reader
/* Opens the shard with that key. */
tide_status tide_reader_at(struct tide_reader *reader, uint32_t key, struct tide_shard **shard_out,
                           tide_error *err);
/* Walks the shards that can be read: opens the one after *shard, which is NULL at first.  False at
 * the end, and if *rc is or becomes a failure. */
bool tide_reader_next(struct tide_reader *reader, tide_order order, struct tide_shard **shard,
                      tide_status *rc, tide_error *err);
void tide_readers_close(tide_archive *archive); /* all must have been given back */

/* ---- read.c ---- */
tide_status tide_reader_raw(struct tide_reader *reader, const struct tide_stored *stored,
                            tide_buf *out, tide_error *err);

/* ---- put.c ---- */
void tide_entry_free(tide_archive *archive, struct tide_entry *entry);
/* Hands work to the writer and waits.  TIDE_OK: the caller owns `work` again; else it is or will be
 * freed. */
tide_status tide_archive_work(tide_archive *archive, struct tide_work *work,
                              const tide_cancel *cancel, tide_error *err);
/* Hands `one` to the writer, for each of its shards, opened, and waits.  `alone` as in tide_work. */
typedef tide_status tide_shard_work(tide_archive *archive, struct tide_shard *shard,
                                    tide_error *err);
tide_status tide_archive_each(tide_archive *archive, tide_shard_work *one, bool alone,
                              const tide_cancel *cancel, tide_error *err);

/* ---- writer.c ---- */
void tide_archive_writer_run(void *archive);
/* Begins a transaction on that shard unless one is open. */
tide_status tide_writer_begin(tide_archive *archive, struct tide_shard *shard, tide_error *err);

/* ---- store.c ---- */
tide_status tide_archive_apply(tide_archive *archive, struct tide_entry *entry, tide_error *err);

/* ---- doubt.c: in a transaction of the shard ---- */
/* Whether new bytes should replace the stored ones (ARC6). */
bool tide_doubt_is_better(const struct tide_stored *stored, uint64_t said_bytes, uint64_t bytes);
/* Marks a message that was stored, or put again, by the state of its bytes. */
tide_status tide_doubt_new(struct tide_shard *shard, int64_t message, uint64_t said_bytes,
                           uint64_t bytes, int64_t now_ms, tide_error *err);
tide_status tide_doubt_again(struct tide_shard *shard, const struct tide_stored *stored,
                             uint64_t said_bytes, uint64_t bytes, int64_t now_ms, tide_error *err);
tide_status tide_doubt_held(struct tide_shard *shard, int64_t message, int64_t now_ms,
                            tide_error *err);
tide_status tide_doubt_damaged(struct tide_shard *shard, int64_t message, int64_t now_ms,
                               tide_error *err);

/* ---- recent.c ---- */
tide_status tide_recent_init(tide_archive *archive);
void tide_recent_done(tide_archive *archive);
/* With the lock.  Takes over the buffer's memory, or leaves the buffer as it is. */
void tide_recent_keep(tide_archive *archive, uint32_t shard, int64_t content, tide_buf *raw);
/* Without the lock.  true: the caller owns *raw_out. */
bool tide_recent_take(tide_archive *archive, uint32_t shard, int64_t content, tide_buf *raw_out);

/* ---- index.c ---- */
void tide_archive_indexer_run(void *archive);

#endif
