/* shard.h - one shard file of an archive, and the set of shards that one thread uses.
 *
 * Inside src/mail only.  The archive and the search share it: both walk shards in key order and use
 * the statements and the schema defined here (shard_schema.c).  A set and everything in it belong
 * to one thread at a time; it starts no thread and takes no lock.
 *
 * Invariants:
 *   SHD1  a set is sorted by key; a key is found at most once.
 *   SHD2  at most `open_max` shards of a set are open, beyond those that are pinned or in a
 *         transaction; to open another, the least recently used one is closed.
 *   SHD3  a file that is not completely created (after a crash, or while its writer creates it) is
 *         invisible to readers; the writer creates it again.
 *   SHD4  wanted <= message.id <= wanted + late, where wanted = (internal_ms - start_ms) /
 *         TIDE_SHARD_UNIT_MS and `late` is one number of the shard, which only grows (ARC4). A new
 *         message gets the first free id from `wanted` on.
 *   SHD5  a shard that is damaged or not part of this archive is reported by name, and readers skip
 *         it and use the others.  A writer stops with an error.
 *   SHD6  tide_shards_open() of a read-only set does not return a shard whose file was replaced or
 *         moved, unless it is pinned (archive.h ARC7).
 */
#ifndef TIDE_MAIL_SHARD_H
#define TIDE_MAIL_SHARD_H

#include "db/migrate.h"
#include "mail/archive/archive.h"

extern const struct tide_schema tide_shard_schema;

enum {
    TIDE_SHARD_PATH_BYTES = 4096,
    TIDE_SHARD_UNIT_MS = 125, /* per id */
    TIDE_SHARD_RUNS = 4,      /* runs of consecutive ids that a writer remembers */
    TIDE_SHARD_PARTS_MAX = 4096,
    TIDE_SHARD_YEAR_MAX = 9999,
    TIDE_SHARDS_OPEN_MAX = 64,         /* of a set, by default */
    TIDE_SHARDS_WARM_MAX = 3,          /* shards being written that keep a page cache */
    TIDE_SHARD_BESIDE_CACHE_KIB = 512, /* of a reader next to a writer */
    TIDE_SHARD_BUSY_MS = 5000,         /* to wait for a user's sqlite3 on the same file */
    TIDE_SHARD_WAL_PAGES = 1000,       /* a log longer than this is moved into the file */
};

#define TIDE_SHARD_PAGE_BYTES "16384"

/* message.mark (M9) */
enum {
    TIDE_MARK_STORED = 0,
    TIDE_MARK_BEGUN = 1,
    TIDE_MARK_INDEXED = 2,
    TIDE_MARK_UNREADABLE = 3,
};

typedef enum tide_shard_sql {
    TIDE_SHARD_BEGIN,
    TIDE_SHARD_COMMIT,
    TIDE_SHARD_ROLLBACK,
    TIDE_SHARD_STATE,
    TIDE_SHARD_SPAN,
    TIDE_SHARD_LATE,
    TIDE_SHARD_DATE,
    TIDE_SHARD_BYTES,
    TIDE_SHARD_FIND,
    TIDE_SHARD_FIND_SHORT,
    TIDE_SHARD_AT,
    TIDE_SHARD_WALK,
    TIDE_SHARD_REPLACED,
    TIDE_SHARD_HAS,
    TIDE_SHARD_WHOLE,
    TIDE_SHARD_EXACT,
    TIDE_SHARD_DOUBTED,
    TIDE_SHARD_HELD,
    TIDE_SHARD_HELD_SPAN,
    TIDE_SHARD_SOME_EXACT,
    TIDE_SHARD_GONE_IDS,
    TIDE_SHARD_IDS,
    TIDE_SHARD_FORMER,
    TIDE_SHARD_THREAD_NOW,
    TIDE_SHARD_STORED_MS,
    TIDE_SHARD_LABEL_CALLED,
    TIDE_SHARD_PROBLEMS,
    TIDE_SHARD_LABELS_OF,
    TIDE_SHARD_CONTENT,
    TIDE_SHARD_CUTS,
    TIDE_SHARD_PIECE,
    TIDE_SHARD_HASH,
    TIDE_SHARD_THREAD,
    TIDE_SHARD_LABEL_ROWS,
    TIDE_SHARD_LABELS_ALL,
    TIDE_SHARD_LABEL_SUMS,
    TIDE_SHARD_UNLABELED,
    TIDE_SHARD_LABELED,
    TIDE_SHARD_TALLY,
    TIDE_SHARD_HEADS,
    TIDE_SHARD_READY,
    TIDE_SHARD_VERSION,
    TIDE_SHARD_DAY_LABEL,
    TIDE_SHARD_DAY_ALL,
    TIDE_SHARD_LESS_LABEL,
    TIDE_SHARD_LESS_ALL,
    TIDE_SHARD_COUNTS,
    TIDE_SHARD_UNREAD,
    TIDE_SHARD_READ_SQL, /* number of statements that can be prepared on a read-only file */

    TIDE_SHARD_WRITE = TIDE_SHARD_READ_SQL,
    TIDE_SHARD_STATE_ADD,
    TIDE_SHARD_STATE_SAVE,
    TIDE_SHARD_CONTENT_FIND,
    TIDE_SHARD_CONTENT_ADD,
    TIDE_SHARD_CUT_ADD,
    TIDE_SHARD_PIECE_FIND,
    TIDE_SHARD_PIECE_ADD,
    TIDE_SHARD_TAKEN,
    TIDE_SHARD_MESSAGE_ADD,
    TIDE_SHARD_MESSAGE_AGAIN,
    TIDE_SHARD_MESSAGE_CONTENT,
    TIDE_SHARD_EARLIER_ADD,
    TIDE_SHARD_DOUBT_PUT,
    TIDE_SHARD_DOUBT_TRIED,
    TIDE_SHARD_DOUBT_DROP,
    TIDE_SHARD_DATE_MEND,
    TIDE_SHARD_UNUSED,
    TIDE_SHARD_CUTS_SWEEP,
    TIDE_SHARD_CONTENT_SWEEP,
    TIDE_SHARD_CONTENT_MEND,
    TIDE_SHARD_CUTS_DROP,
    TIDE_SHARD_PIECE_MEND,
    TIDE_SHARD_EARLIER_DROP,
    TIDE_SHARD_HEAD_DROP,
    TIDE_SHARD_UNMARK,
    TIDE_SHARD_GONE,
    TIDE_SHARD_BACK,
    TIDE_SHARD_FORMER_ADD,
    TIDE_SHARD_RENAME,
    TIDE_SHARD_HISTORY,
    TIDE_SHARD_LABEL_FIND,
    TIDE_SHARD_LABEL_ADD,
    TIDE_SHARD_LABEL_DIFFERS,
    TIDE_SHARD_LABEL_NAME,
    TIDE_SHARD_LABEL_IMPORTED,
    TIDE_SHARD_LABEL_ADOPT,
    TIDE_SHARD_LABELS_NOW,
    TIDE_SHARD_LABEL_PUT,
    TIDE_SHARD_LABEL_TAKE,
    TIDE_SHARD_CHANGE_FIND,
    TIDE_SHARD_CHANGE_ADD,
    TIDE_SHARD_TO_INDEX,
    TIDE_SHARD_MARK,
    TIDE_SHARD_MARKED,
    TIDE_SHARD_DIED,
    TIDE_SHARD_AGAIN,
    TIDE_SHARD_HEAD_ADD,
    TIDE_SHARD_WORDS_ADD,
    TIDE_SHARD_WORDS_MERGE,
    TIDE_SHARD_SQL,
} tide_shard_sql;

/* Ids in [begin, end) that are all used; ids are never reused. */
struct tide_shard_run {
    int64_t begin, end;
};

struct tide_shard {
    uint32_t key; /* year * TIDE_SHARD_PARTS_MAX + part */
    int32_t year;
    uint32_t part;            /* from 1 */
    int64_t start_ms, end_ms; /* of the year */
    char name[32];
    tide_db db; /* when open */
    bool seen;  /* found by the last scan */
    bool open;
    bool older; /* open read-only, and of an earlier version than ours */
    bool in_tx;
    bool warm;      /* used recently; has cached pages */
    bool full;      /* reached its size limit: new messages go to the next part */
    bool recovered; /* marks of a crashed run were handled */
    tide_status broken_rc;
    char broken[200]; /* why it cannot be read; "": it can (SHD5) */
    bool indexed;     /* nothing is left to index */
    bool untidy;      /* words were added: merging their segments may pay */
    bool known;       /* was open before: the fields below are valid */
    int wal_pages;    /* in its log */
    uint32_t pins;
    uint64_t used; /* for closing the least recently used one */
    /* While open: how many messages its labels had, as of a version of the file (tally.c). */
    struct json_t *counts; /* NULL: they were not counted */
    struct json_t *unread; /* likewise: of these */
    int64_t counts_version;
    /* While open for writing: as in its row, with the open transaction. */
    char id[40];
    uint64_t generation, messages, raw_bytes;
    uint64_t made_ms;
    int64_t late;                                /* SHD4 */
    struct tide_shard_run runs[TIDE_SHARD_RUNS]; /* with the open transaction */
    size_t run_next;                             /* the next one to replace */
    /* All Gmail ids in it are between these; empty while it has none. */
    char id_least[TIDE_GMAIL_ID_BYTES_MAX + 1];
    char id_greatest[TIDE_GMAIL_ID_BYTES_MAX + 1];
};

typedef struct tide_shards {
    tide_mem *mem;
    tide_world *world;
    const char *dir;     /* borrowed */
    const char *account; /* borrowed */
    bool read_only;
    bool tolerant;            /* skip damaged ones (SHD5) */
    uint32_t cache_kib;       /* per shard; 0: default */
    uint64_t bytes_max;       /* of a shard */
    struct tide_shard **list; /* by key */
    size_t count, capacity;
    size_t open_count, open_max; /* SHD2 */
    size_t warm_count;
    uint64_t uses;
} tide_shards;

void tide_shards_init(tide_shards *shards, const struct tide_archive_options *options,
                      tide_mem *mem);
void tide_shards_done(tide_shards *shards); /* rolls back open transactions */
/* Scans for new files, and forgets those that are gone. */
tide_status tide_shards_look(tide_shards *shards, tide_error *err);
/* NULL when there is none. */
struct tide_shard *tide_shards_get(tide_shards *shards, uint32_t key);
typedef enum tide_order { TIDE_OLDEST_FIRST, TIDE_NEWEST_FIRST } tide_order;
/* The one after `shard` in the order of keys or its reverse, or the first (`shard` NULL); NULL at
 * the end. */
struct tide_shard *tide_shards_next(const tide_shards *shards, tide_order order,
                                    const struct tide_shard *shard);
/* Opens it unless it is open.  TIDE_NOT_FOUND: not completely created (SHD3), or skipped (SHD5). */
tide_status tide_shards_open(tide_shards *shards, struct tide_shard *shard, tide_error *err);
/* Creates a shard with its file, and opens it. */
tide_status tide_shards_make(tide_shards *shards, int32_t year, uint32_t part,
                             struct tide_shard **shard_out, tide_error *err);
/* Decides about a failure with a shard: TIDE_OK: it is skipped from now on (SHD5); else returns
 * `rc`. */
tide_status tide_shards_pass(const tide_shards *shards, struct tide_shard *shard, tide_status rc,
                             const tide_error *err);
/* Closes it, unless it is pinned or in a transaction. */
void tide_shards_close(tide_shards *shards, struct tide_shard *shard);

/* Used by the set only; other code opens shards through the set. */
tide_status tide_shard_open(const tide_shards *shards, struct tide_shard *shard, tide_error *err);
void tide_shard_close(struct tide_shard *shard);
void tide_shard_counts_forget(struct tide_shard *shard); /* tally.c */
/* Whether its file was replaced, moved or removed since it was opened (SHD6), or was of an earlier
 * version then and has been migrated. */
bool tide_shard_outdated(struct tide_shard *shard);
/* Reads its row again. */
tide_status tide_shard_state_load(struct tide_shard *shard, tide_error *err);
/* The size of the file and its log. */
tide_status tide_shard_bytes(struct tide_shard *shard, uint64_t *bytes_out, tide_error *err);

/* Begins a transaction on one shard and reads its row. */
tide_status tide_shard_begin(struct tide_shard *shard, tide_error *err);
tide_status tide_shard_commit(struct tide_shard *shard, uint64_t bytes_max, tide_error *err);
void tide_shard_rollback(struct tide_shard *shard);
/* Moves the log into the file; `all`: also truncates the log. */
tide_status tide_shard_checkpoint(struct tide_shard *shard, bool all, tide_error *err);

/* Whether it may have that id, by its least and greatest id. */
bool tide_shard_may_have(const struct tide_shard *shard, tide_text gmail_id);
/* Fills all fields but `shard`; *found_out false: not there. */
tide_status tide_shard_find(struct tide_shard *shard, tide_text gmail_id, bool *found_out,
                            struct tide_stored *stored_out, tide_error *err);
/* The same by a former id. */
tide_status tide_shard_find_former(struct tide_shard *shard, tide_text gmail_id, bool *found_out,
                                   struct tide_stored *stored_out, tide_error *err);
/* Reads a row of the columns that FIND, AT and WALK share. */
void tide_shard_stored(const struct tide_shard *shard, sqlite3_stmt *row,
                       struct tide_stored *stored_out);
/* A column that is a hash; zeros when it is not one. */
void tide_shard_hash(sqlite3_stmt *row, int at, uint8_t hash_out[TIDE_CONTENT_HASH_BYTES]);
/* The whole message, joined, hash checked (ARC2). */
tide_status tide_shard_raw(struct tide_shard *shard, tide_packer *packer, int64_t content,
                           tide_buf *out, tide_error *err);

/* Whether it is readable and equals these bytes; damage is no error, other failures are. */
tide_status tide_shard_content_is(struct tide_shard *shard, tide_packer *packer, int64_t content,
                                  tide_text raw, bool *is_out, tide_error *err);
/* Whether it is readable and differs from these bytes in more than line ends. */
tide_status tide_shard_content_differs(struct tide_shard *shard, tide_packer *packer,
                                       int64_t content, tide_text raw, bool *differs_out,
                                       tide_error *err);
/* Whether it is readable and is not just the beginning of these bytes. */
tide_status tide_shard_content_adds(struct tide_shard *shard, tide_packer *packer, int64_t content,
                                    tide_text raw, bool *adds_out, tide_error *err);
tide_status tide_shard_piece_is(struct tide_shard *shard, tide_packer *packer, int64_t piece,
                                tide_text bytes, bool *is_out, tide_error *err);

/* The first id that a new message of that date can get (SHD4), in a transaction. */
tide_status tide_shard_place(struct tide_shard *shard, int64_t internal_ms, int64_t *id_out,
                             tide_error *err);
/* How far ids are behind their dates, with the open transaction (SHD4). */
tide_status tide_shard_late(struct tide_shard *shard, int64_t *late_out, tide_error *err);
/* The id that a date maps to; for dates inside the year, and its end. */
static inline int64_t tide_shard_wanted(const struct tide_shard *shard, int64_t internal_ms)
{
    return (internal_ms - shard->start_ms) / TIDE_SHARD_UNIT_MS;
}

/* Calendar, UTC. */
int32_t tide_shard_year(int64_t ms);
int64_t tide_shard_year_ms(int32_t year); /* its first millisecond */
static inline uint32_t tide_shard_key(int32_t year, uint32_t part)
{
    return (uint32_t)year * TIDE_SHARD_PARTS_MAX + part;
}

#endif
