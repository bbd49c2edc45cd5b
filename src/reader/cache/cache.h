/* cache.h - what the reader knows of one mailbox and the archive does not have: a SQLite file that may
 * vanish at any time (K9, K10, K12, K13).
 *
 *     schema.c    the tables
 *     cache.c     open, transactions, values
 *     messages.c  headers, labels of messages, lists and threads
 *     folders.c   names of labels, how far each list is known
 *     bodies.c    bodies, and which of them go when the cache is full
 *     changes.c   which messages changed since a version; results of searches
 *     refused.c   messages that the server does not give
 *     words.c     the words of messages, for searches
 *
 * It holds what the server said, and nothing that a person did (reader.h KR1): losing the file costs
 * network time, no data.  A file that is damaged or of another version is deleted and begun anew.
 *
 * An object is a connection, used by one thread at a time; any number of them may be open.  What writes
 * does so between tide_cache_begin() and tide_cache_end().
 *
 * Invariants:
 *   CCH1  headers, labels, the token and floor of their list, and the history id that they stand for
 *         change in one transaction: a crash leaves the state before it or after it.
 *   CCH2  a message has the pseudo label ALL if and only if it is neither gone nor labeled SPAM or
 *         TRASH; a message that is gone has no label.
 *   CCH3  an answer of the server that is older than the row changes nothing but missing headers.
 *   CCH4  eviction takes bodies only, the least recently used first; never of pinned messages or of
 *         those that `spare` names.  A body that was evicted is marked, and only
 *         tide_cache_opened() clears that.
 *   CCH5  every change of a row that lists show adds its message to the log of changes.
 *   CCH6  a message that was refused is noted until the server told of it, or that it is gone.
 *   CCH7  a message whose headers are known has a row in `words`: of all its words if its body is here,
 *         else of its headers and the server's snippet.
 */
#ifndef TIDE_READER_CACHE_H
#define TIDE_READER_CACHE_H

#include "base/buf.h"
#include "base/mem.h"
#include "base/status.h"
#include "base/text.h"
#include "world/world.h"

typedef struct tide_cache tide_cache;

enum {
    TIDE_CACHE_ID_BYTES = 65,
    TIDE_CACHE_TOKEN_BYTES = 512,
    TIDE_CACHE_LABELS_MAX = 1000,  /* of a message */
    TIDE_CACHE_CHANGES_MAX = 5000, /* told at once */
    TIDE_CACHE_FIELD_BYTES_MAX = 4096,
    TIDE_CACHE_PATH_BYTES = 4096 + 300,
};

#define TIDE_CACHE_ALL "ALL" /* all mail: neither spam nor trash */

struct tide_cache_options {
    const char *dir;     /* "~/.cache/tidemark/reader"; made when missing, unless read_only */
    const char *account; /* the address */
    tide_world *world;
    bool read_only;
};
/* TIDE_NOT_FOUND: opened to read, and there is none. */
tide_status tide_cache_open(const struct tide_cache_options *options, tide_mem *mem,
                            tide_cache **cache_out, tide_error *err);
void tide_cache_close(tide_cache *cache); /* NULL is fine */
/* Whether the file was deleted or replaced since it was opened. */
bool tide_cache_moved(tide_cache *cache);
/* Whether there is a file: somebody looked at this mailbox (KR7). */
tide_status tide_cache_exists(tide_world *world, const char *dir, const char *account,
                              bool *exists_out, tide_error *err);
/* Deletes the file of an account that is removed; it is not open. */
tide_status tide_cache_remove(tide_world *world, const char *dir, const char *account,
                              tide_error *err);

/* ---- transactions ---- */

tide_status tide_cache_begin(tide_cache *cache, tide_error *err);
/* Commits if `rc` is TIDE_OK, else rolls back and returns it. */
tide_status tide_cache_end(tide_cache *cache, tide_status rc, tide_error *err);

/* ---- values: "history_id" and so on ---- */

tide_status tide_cache_set(tide_cache *cache, const char *name, tide_text value, tide_error *err);
tide_status tide_cache_set_u64(tide_cache *cache, const char *name, uint64_t value,
                               tide_error *err);
/* "" and 0 where it was not set. */
tide_status tide_cache_get(tide_cache *cache, const char *name, char *out, size_t out_bytes,
                           tide_error *err);
tide_status tide_cache_get_u64(tide_cache *cache, const char *name, uint64_t *value_out,
                               tide_error *err);

/* ---- messages ---- */

/* A row; its texts are borrowed for the call. */
struct tide_cached {
    int64_t row;
    char id[TIDE_CACHE_ID_BYTES], thread[TIDE_CACHE_ID_BYTES];
    char history_id[32];
    int64_t internal_ms;
    uint64_t bytes;
    tide_text from, to, cc, subject, snippet, message_id;
    bool headers; /* else only its labels are known here: the archive has the rest */
    bool files;
    bool gone, pinned, evicted;
    bool body;  /* it is in the cache */
    bool stale; /* the history was lost since the server told of it */
};

/* What the server said about a message. */
struct tide_cache_message {
    tide_text id, thread, history_id;
    int64_t internal_ms;
    uint64_t bytes;
    const tide_text *labels; /* ids */
    size_t labels_count;
    bool headers; /* the texts below are known */
    bool files;
    tide_text from, to, cc, subject, snippet, message_id;
};
/* Adds or updates it (CCH3). */
tide_status tide_cache_put(tide_cache *cache, const struct tide_cache_message *message,
                           tide_error *err);
/* A label was added or taken at that history id ("": now).  TIDE_NOT_FOUND: the message has no row. */
tide_status tide_cache_label(tide_cache *cache, tide_text id, tide_text label, bool added,
                             tide_text history_id, tide_error *err);
/* The server no longer has it; a message without a row gets one that says so. */
tide_status tide_cache_gone(tide_cache *cache, tide_text id, tide_error *err);
tide_status tide_cache_pin(tide_cache *cache, tide_text id, bool pinned, tide_error *err);

typedef bool tide_cached_visit(const struct tide_cached *cached, void *arg); /* false: stop */
/* TIDE_NOT_FOUND. */
tide_status tide_cache_find(tide_cache *cache, tide_text id, tide_cached_visit *visit, void *arg,
                            tide_error *err);
/* Whether there is a row. */
tide_status tide_cache_has(tide_cache *cache, tide_text id, bool *has_out, tide_error *err);
/* Its labels, ALL not among them. */
tide_status tide_cache_labels_of(tide_cache *cache, int64_t row,
                                 void (*visit)(tide_text label, void *arg), void *arg,
                                 tide_error *err);

/* Where a list continues: after the message with this time and row. */
struct tide_cache_place {
    int64_t internal_ms;
    int64_t row;
};
#define TIDE_CACHE_TOP ((struct tide_cache_place){INT64_MAX, INT64_MAX})
/* Messages of a label, newest first, after `place`. */
tide_status tide_cache_list(tide_cache *cache, tide_text label, struct tide_cache_place place,
                            uint32_t limit, tide_cached_visit *visit, void *arg, tide_error *err);
/* Oldest first. */
tide_status tide_cache_thread(tide_cache *cache, tide_text thread, tide_cached_visit *visit,
                              void *arg, tide_error *err);
/* How many messages have the label, and how many of them UNREAD. */
tide_status tide_cache_count(tide_cache *cache, tide_text label, uint64_t *total_out,
                             uint64_t *unread_out, tide_error *err);
/* How many messages each label has, and ALL, and how many of them UNREAD; also labels that the server
 * does not list.  It reads a row for each label, however many messages there are. */
tide_status tide_cache_counts(tide_cache *cache,
                              void (*visit)(tide_text label, uint64_t count, uint64_t unread,
                                            void *arg),
                              void *arg, tide_error *err);
/* Messages without a body that were neither evicted nor refused: pinned ones, then those that arrived since then
 * (INT64_MAX: none); newest first. */
tide_status tide_cache_bodyless(tide_cache *cache, int64_t since_ms, uint32_t limit,
                                tide_cached_visit *visit, void *arg, tide_error *err);
/* Stale ones that arrived since then and were not refused, newest first. */
tide_status tide_cache_stale(tide_cache *cache, int64_t since_ms, uint32_t limit,
                             tide_cached_visit *visit, void *arg, tide_error *err);
/* The server was asked for it, or the archive answers for it: it is not stale.  In a transaction. */
tide_status tide_cache_current(tide_cache *cache, tide_text id, tide_error *err);
/* Rows that may be deleted because the archive has all that they say; deletes one. */
tide_status tide_cache_rows(tide_cache *cache, int64_t after_row, uint32_t limit,
                            tide_cached_visit *visit, void *arg, tide_error *err);
tide_status tide_cache_drop(tide_cache *cache, int64_t row, tide_error *err);

/* ---- labels and lists ---- */

struct tide_cache_label {
    tide_text id, name, type; /* "system" or "user" */
};
/* The names of all labels, as the server lists them now; others are no longer shown. */
tide_status tide_cache_labels_put(tide_cache *cache, const struct tide_cache_label *labels,
                                  size_t count, tide_error *err);
tide_status tide_cache_labels_each(tide_cache *cache,
                                   void (*visit)(const struct tide_cache_label *label, void *arg),
                                   void *arg, tide_error *err);

/* How far a list is known: every message of it that arrived since floor_ms has a row here or is in the
 * archive.  The floor of ALL holds for each label. */
struct tide_cache_folder {
    bool known;                         /* it was listed before; else the rest is zero */
    int64_t floor_ms;                   /* INT64_MAX: nothing is */
    int64_t shown_ms;                   /* the lowest floor it had: rows are shown from it on */
    char token[TIDE_CACHE_TOKEN_BYTES]; /* of the page that follows; "": ask from the floor on */
    bool over;                          /* there is nothing before the floor */
    uint64_t refreshed_ms;
};
tide_status tide_cache_folder_get(tide_cache *cache, tide_text label,
                                  struct tide_cache_folder *folder_out, tide_error *err);
tide_status tide_cache_folder_put(tide_cache *cache, tide_text label,
                                  const struct tide_cache_folder *folder, tide_error *err);
/* The history is lost: every token and floor is forgotten, and rows are stale until the server told of
 * them again; they stay and are shown (K9). */
tide_status tide_cache_folders_reset(tide_cache *cache, tide_error *err);

/* ---- bodies ---- */

/* A body, for a message that has a row. */
tide_status tide_cache_body_put(tide_cache *cache, tide_text id, tide_text raw, uint64_t now_ms,
                                tide_error *err);
/* Appends it.  TIDE_NOT_FOUND; TIDE_CORRUPT. */
tide_status tide_cache_body_get(tide_cache *cache, tide_text id, tide_buf *out, tide_error *err);
/* A person opened it: it is the last to go, and may be fetched again. */
tide_status tide_cache_opened(tide_cache *cache, tide_text id, uint64_t now_ms, tide_error *err);
/* Bytes that the file uses. */
tide_status tide_cache_size(tide_cache *cache, uint64_t *bytes_out, tide_error *err);
/* Evicts at most `count_max` bodies while the file uses more than `limit` bytes; between transactions.
 * One that was used in the last minute stays: it is on somebody's screen. */
struct tide_cache_evict {
    uint64_t limit;
    uint32_t count_max;
    bool (*spare)(tide_text id, void *arg); /* NULL: none */
    void *arg;
};
struct tide_cache_evicted {
    uint64_t done;     /* how many */
    bool more;         /* it is still too large, and another call may help */
    uint64_t later_ms; /* it is still too large, and another call helps from then on; 0: never */
};
tide_status tide_cache_evict(tide_cache *cache, const struct tide_cache_evict *evict,
                             uint64_t now_ms, struct tide_cache_evicted *out, tide_error *err);

/* ---- changes ---- */

/* The newest version. */
tide_status tide_cache_version(tide_cache *cache, uint64_t *version_out, tide_error *err);
/* It is shown otherwise, though the server said nothing: adds it to the log, if it has a row.  In a
 * transaction. */
tide_status tide_cache_told(tide_cache *cache, tide_text id, tide_error *err);
/* Visits the ids that changed after `since`, each once; *whole_out: the log reaches back so far. */
tide_status tide_cache_changes(tide_cache *cache, uint64_t since,
                               void (*visit)(tide_text id, void *arg), void *arg, bool *whole_out,
                               tide_error *err);

/* Results of a search at the server, in its order.  `place` 0 forgets earlier ones of that query. */
tide_status tide_cache_found_add(tide_cache *cache, tide_text query, uint64_t place, tide_text id,
                                 uint64_t now_ms, tide_error *err);
tide_status tide_cache_found(tide_cache *cache, tide_text query,
                             void (*visit)(tide_text id, void *arg), void *arg, tide_error *err);

/* ---- searches here ---- */

/* For mail/search/elsewhere.h; borrowed. */
const struct tide_db *tide_cache_db(const tide_cache *cache);

enum { TIDE_CACHE_WHERE_BYTES_MAX = 8 << 20 };
struct tide_cache_where {
    tide_text condition; /* SQL about a row m of messages */
    struct tide_cache_place place;
    uint32_t limit;
};
/* Messages that the server has and for which the condition holds, newest first, after `place`. */
tide_status tide_cache_where(tide_cache *cache, const struct tide_cache_where *where,
                             bool (*visit)(tide_text id, struct tide_cache_place place, void *arg),
                             void *arg, tide_error *err);

/* ---- messages that the server does not give ---- */

/* Notes that the server refused it, for that reason. */
tide_status tide_cache_refused_add(tide_cache *cache, tide_text id, tide_text why, uint64_t now_ms,
                                   tide_error *err);
/* TIDE_NOT_FOUND: it was not refused. */
tide_status tide_cache_refused_why(tide_cache *cache, tide_text id, char *why_out, size_t why_bytes,
                                   tide_error *err);
/* Nothing is noted of it any more. */
tide_status tide_cache_refused_drop(tide_cache *cache, tide_text id, tide_error *err);
/* Those that were refused before that time, longest ago first; also those of a time after `now_ms`: the
 * clock was set back. */
tide_status tide_cache_refused(tide_cache *cache, uint64_t before_ms, uint64_t now_ms,
                               uint32_t limit, void (*visit)(tide_text id, void *arg), void *arg,
                               tide_error *err);
tide_status tide_cache_refused_count(tide_cache *cache, uint64_t *count_out, tide_error *err);

/* Compares history ids, which are numbers of any length. */
int tide_history_compare(tide_text a, tide_text b);

#endif
