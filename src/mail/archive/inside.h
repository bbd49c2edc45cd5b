/* inside.h - what the files of the archive share.
 *
 *   archive.c         opening, closing, shards
 *   put.c     the queue: putting, tickets, waiting
 *   writer.c  the thread that takes from it and commits groups
 *   store.c   one message, one change, into the shard where it belongs
 *   index.c   parsing what is stored, with marks
 *   recent.c  bytes between storing and indexing
 *   read.c    finding and reading
 *   verify.c  reading everything again
 *   tally.c   counting
 *   doubt.c   copies that are not exact (A6)
 *
 * Threads: the writer's set of shards belongs to the writer thread alone.  The
 * readers' set is used by one caller at a time (tide_archive_turn_take()).
 * `lock` guards the queue and the flags and is never held over a statement (W3).
 */
#ifndef TIDE_MAIL_ARCHIVE_INSIDE_H
#define TIDE_MAIL_ARCHIVE_INSIDE_H

#include "mail/archive/shard.h"

enum {
    TIDE_ARCHIVE_RETRY_MS = 1000, /* between two tries of a group that found no room */
    TIDE_ARCHIVE_POLL_MS = 20,    /* how soon a wait sees its cancellation */
    TIDE_ARCHIVE_LABELS_MAX = 1000,
    TIDE_ARCHIVE_LABELS_KNOWN_MAX = 20000, /* Gmail allows 10,000 in a mailbox */
    TIDE_ARCHIVE_LABEL_BYTES_MAX = TIDE_LABEL_BYTES_MAX,
    TIDE_ARCHIVE_HISTORY_BYTES_MAX = 31,
    TIDE_INDEX_GROUP_MESSAGES = 1000,
    TIDE_INDEX_GROUP_BYTES = 16 << 20, /* raw */
    TIDE_INDEX_WAIT_MS = 2000,         /* for a group to fill, while mail comes */
    TIDE_INDEX_LAST_MESSAGES = 2000,   /* that closing waits for */
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

/* Something for the writer to do inside its transactions that is not a fact from
 * the server.  Runs once; a failed commit ends it with that failure.  Belongs to
 * whoever waits for it, or to the writer once nobody does. */
struct tide_work {
    tide_status (*run)(tide_archive *archive, struct tide_work *work, tide_error *err);
    void (*free)(struct tide_work *work);
    bool alone; /* run it outside of transactions, when all are committed */
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
    size_t bytes; /* what it is charged with */
    size_t self_bytes;
    union {
        struct {
            struct tide_incoming incoming; /* raw: into `raw` below */
            tide_buf raw;
            /* When it was added: where.  content 0: it was not, or had been there. */
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
        } gone; /* and of a doubt */
        struct tide_renaming renaming;
        struct {
            tide_text id, name, type;
        } name;
        struct tide_work *work;
    } as;
    /* Behind it: the texts it points to. */
};

struct tide_entries {
    struct tide_entry *first, *last;
    size_t count;
};

/* A label as the server last named it. */
struct tide_label_known {
    tide_text id, name, type; /* into room, owned */
    char *room;
    size_t room_bytes;
};

struct tide_writer {
    tide_thread *thread;
    tide_thread *indexer;
    tide_file_lock *file_lock;
    tide_shards shards; /* the writer thread's */
    tide_packer *packer;
    tide_buf scratch; /* what is left of a message; a piece of it */
    tide_buf piece;
    struct tide_cut *cuts; /* TIDE_CUTS_MAX */
    struct tide_label_known *labels;
    size_t labels_count, labels_capacity;

    /* Guarded by the archive's lock. */
    tide_cond *work; /* for the writer: something is queued, or hurried */
    tide_cond *news; /* for everybody else: durable, room, failure, end */
    struct tide_entries queue;
    struct tide_entries group; /* applied, not committed */
    size_t bytes;              /* of both */
    size_t group_bytes;
    uint64_t group_since_us;
    uint64_t ticket_last;  /* given out */
    uint64_t ticket_done;  /* durable up to here */
    uint64_t ticket_hurry; /* somebody waits for it */
    uint32_t room_waiters;
    uint64_t failures;  /* commits that failed */
    tide_error failure; /* the last one */
    bool broken;        /* for good */
    bool closing;
    bool ended;
    bool indexing; /* somebody's turn */
    bool index_stop;
    bool index_all;             /* not only what was stored in this life has to be looked at */
    struct tide_recent *recent; /* NULL: nobody indexes what is stored */
    size_t recent_bytes;
    size_t recent_next; /* to be given up */
    uint64_t stored;    /* messages committed in this life; the indexer looks at it */
    uint64_t retry_at_us;
};

struct tide_archive {
    tide_mem *mem;
    tide_world *world;
    char *texts; /* dir and account, owned */
    size_t texts_bytes;
    struct tide_archive_options options; /* defaults filled in, texts ours */
    tide_lock *lock;
    tide_cond *turn;
    bool reading; /* somebody has the turn */
    tide_shards reads;
    tide_packer *packer;        /* of the reader whose turn it is */
    struct tide_writer *writer; /* NULL: read only */
};

/* ---- archive.c ---- */
/* The readers' set, for one caller at a time.  TIDE_STOPPED in a dead world. */
tide_status tide_archive_turn_take(tide_archive *archive, tide_error *err);
void tide_archive_turn_drop(tide_archive *archive);
/* The shard with that key, open for reading; the turn is ours. */
tide_status tide_archive_reads_open(tide_archive *archive, uint32_t key,
                                    struct tide_shard **shard_out, tide_error *err);

/* ---- put.c ---- */
void tide_entry_free(tide_archive *archive, struct tide_entry *entry);
/* Has the writer do it, and waits.  TIDE_OK: `work` is the caller's again; else it
 * is freed, or will be. */
tide_status tide_archive_work(tide_archive *archive, struct tide_work *work,
                              const tide_cancel *cancel, tide_error *err);

/* ---- writer.c ---- */
void tide_archive_writer_run(void *archive);
/* A transaction on that shard, begun if it is not yet. */
tide_status tide_writer_begin(tide_archive *archive, struct tide_shard *shard, tide_error *err);

/* ---- store.c ---- */
tide_status tide_archive_apply(tide_archive *archive, struct tide_entry *entry, tide_error *err);

/* ---- doubt.c: in a transaction of the shard ---- */
/* Whether bytes are to take the place of those that are stored (A6). */
bool tide_doubt_is_better(const struct tide_stored *stored, uint64_t said_bytes, uint64_t bytes);
/* Marks a message that is new, or came again, as its bytes deserve. */
tide_status tide_doubt_new(struct tide_shard *shard, int64_t message, uint64_t said_bytes,
                           uint64_t bytes, int64_t now_ms, tide_error *err);
tide_status tide_doubt_again(struct tide_shard *shard, const struct tide_stored *stored,
                             uint64_t said_bytes, uint64_t bytes, int64_t now_ms, tide_error *err);
tide_status tide_doubt_damaged(struct tide_shard *shard, int64_t message, int64_t now_ms,
                               tide_error *err);

/* ---- recent.c ---- */
tide_status tide_recent_init(tide_archive *archive);
void tide_recent_done(tide_archive *archive);
/* With the lock.  Takes the buffer's room over, or leaves it as it is. */
void tide_recent_keep(tide_archive *archive, uint32_t shard, int64_t content, tide_buf *raw);
/* Without it.  true: *raw_out is the caller's. */
bool tide_recent_take(tide_archive *archive, uint32_t shard, int64_t content, tide_buf *raw_out);

/* ---- index.c ---- */
void tide_archive_indexer_run(void *archive);

#endif
