/* onedrive.h - a client of Microsoft Graph's OneDrive for the drive system.
 *
 * Each function is one call under the job's governor, judged by net/judge_graph.h, sent with the
 * account's token; a 401 refreshes and tries once more (net/api/call.h).  tide_graph_reason_of()
 * says which refusal an error is about.
 *
 * `drive` is the id of a drive, empty: the account's own.  An item's id is empty for the root.
 *
 * It decides nothing: it repeats no call, compares no hash, and writes no file.
 *
 * Invariants:
 *   ODR1  every text of an answer is bounded, and a field of another type is TIDE_SERVER: it may be
 *         right next time.
 *   ODR2  nothing is overwritten or taken by name: names are created with conflictBehavior=fail,
 *         content is replaced by id (I15).
 *   ODR3  upload and download URLs get no token (I14); a link is followed at the endpoint's origin
 *         only.
 *   ODR4  content streams: no function holds more of it than the network's buffers.
 */
#ifndef TIDE_CLOUD_ONEDRIVE_H
#define TIDE_CLOUD_ONEDRIVE_H

#include "base/json.h"
#include "net/batch/batch.h"
#include "net/oauth/oauth.h"
#include "tidemark.h"

typedef struct tide_onedrive tide_onedrive;

enum {
    TIDE_ONEDRIVE_ID_BYTES_MAX = 256,
    TIDE_ONEDRIVE_NAME_BYTES_MAX = 1024, /* 255 UTF-16 units are 765 bytes of UTF-8 at most */
    TIDE_ONEDRIVE_TAG_BYTES_MAX = 512,
    TIDE_ONEDRIVE_LINK_BYTES_MAX = 16 << 10,  /* also of URLs */
    TIDE_ONEDRIVE_ITEM_BYTES_MAX = 256 << 10, /* of one item in a list */
    TIDE_ONEDRIVE_HASH_BYTES = 20,            /* QuickXorHash and SHA-1 */
    TIDE_ONEDRIVE_FRAGMENT_UNIT = 320 << 10,  /* every fragment but the last is a multiple */
    TIDE_ONEDRIVE_FRAGMENT_BYTES_MAX = 59 << 20,
};

struct tide_onedrive_options {
    const char *endpoint; /* SCHEME://HOST[:PORT]; NULL: Microsoft's */
    tide_tokens *tokens;  /* borrowed, outlives it; NULL: `bearer` */
    tide_text bearer;     /* borrowed: of a sign-in that is not stored yet */
    tide_world *world;    /* for calls without a job, and for batches; else NULL */
    /* Items are read, created, changed and deleted in batches, when a job does it: the sizes (the rest is
     * set here).  NULL: each call is a request of its own. */
    const struct tide_batch_options *batches;
};
tide_status tide_onedrive_open(const struct tide_onedrive_options *options, tide_mem *mem,
                               tide_onedrive **onedrive_out, tide_error *err);
void tide_onedrive_close(tide_onedrive *onedrive); /* NULL is fine */
/* Other limits of its batches from now on (net/batch/batch.h); it was opened with some. */
void tide_onedrive_tune(tide_onedrive *onedrive, unsigned requests, unsigned parts);
void tide_onedrive_batches(tide_onedrive *onedrive, struct tide_batch_state *state_out);
/* "items.delta"; NULL: there is none. */
const char *tide_onedrive_method_name(uint32_t method);

/* ---- drives ---- */

struct tide_onedrive_drive {
    char id[TIDE_ONEDRIVE_ID_BYTES_MAX + 1];
    char type[32];        /* "personal", "business", "documentLibrary" */
    char owner[256];      /* a name for display; "" */
    char email[256];      /* of the owner; "" */
    bool quota_known;     /* the next two are given */
    uint64_t total_bytes; /* 0: unlimited */
    uint64_t left_bytes;
};
/* Without a job (NULL) the call is charged to no account: to test a sign-in; `cancel` may be NULL and
 * counts then. */
tide_status tide_onedrive_drive_get(tide_onedrive *onedrive, tide_job *job, tide_text drive,
                                    const tide_cancel *cancel,
                                    struct tide_onedrive_drive *drive_out, tide_error *err);

/* ---- items ---- */

typedef enum tide_onedrive_kind {
    TIDE_ONEDRIVE_FILE,
    TIDE_ONEDRIVE_FOLDER,
    TIDE_ONEDRIVE_OTHER, /* a package (OneNote), a bundle, or nothing that is known (D16) */
} tide_onedrive_kind;

/* Texts are borrowed; empty: not given.  Times are whole seconds, 0: not given, or not a time that
 * can be meant (D43). */
struct tide_onedrive_item {
    tide_text id; /* never empty */
    tide_text name;
    tide_text etag, ctag;
    tide_text drive_id, parent_id;        /* of its parent */
    tide_text remote_drive_id, remote_id; /* of what a shortcut leads to */
    tide_text download_url;               /* valid for minutes; never store it */
    tide_onedrive_kind kind;
    bool deleted;
    bool root;
    bool remote;        /* a shortcut to an item in another drive */
    bool remote_folder; /* that is a folder */
    bool malware;
    bool pending;     /* the server still works on its content: the hash is not final (D16) */
    bool name_unsafe; /* no name of a file: "..", too long, a slash or a zero inside (I18) */
    bool has_size, has_hash, has_sha1;
    uint64_t size;
    unsigned char hash[TIDE_ONEDRIVE_HASH_BYTES]; /* QuickXorHash; not of deleted items (D15) */
    unsigned char sha1[TIDE_ONEDRIVE_HASH_BYTES];
    uint64_t created_unix_ms, modified_unix_ms; /* of the file, as its clients set them */
    uint64_t changed_unix_ms;                   /* on the server */
};

/* An item and what its texts point into; embedded value. */
struct tide_onedrive_answer {
    struct tide_onedrive_item item;
    json_t *value; /* owned; NULL: there is no item */
};
void tide_onedrive_answer_done(struct tide_onedrive_answer *answer); /* a zeroed one is fine */

/* An item with its download URL.  `answer_out` is zeroed or done.  TIDE_GONE. */
tide_status tide_onedrive_get(tide_onedrive *onedrive, tide_job *job, tide_text drive, tide_text id,
                              struct tide_onedrive_answer *answer_out, tide_error *err);
/* The item at a path below `parent`, "a/b.txt". */
tide_status tide_onedrive_get_at(tide_onedrive *onedrive, tide_job *job, tide_text drive,
                                 tide_text parent, tide_text path,
                                 struct tide_onedrive_answer *answer_out, tide_error *err);

/* ---- lists ---- */

/* Gets each item as it arrives, borrowed for the call.  `restart` is called before the first one,
 * and again before items start from the beginning: drop the earlier ones. */
struct tide_onedrive_sink {
    tide_status (*item)(const struct tide_onedrive_item *item, void *arg);
    void (*restart)(void *arg); /* NULL: not needed */
    void *arg;
};

/* Embedded value. */
struct tide_onedrive_page {
    tide_buf next;   /* the link of the next page; empty: this was the last one */
    tide_buf delta;  /* of a round's last page: the link for the next round */
    tide_buf resync; /* with TIDE_GONE: where the server wants an enumeration to begin (D34) */
    uint64_t items;
};
void tide_onedrive_page_init(struct tide_onedrive_page *page, tide_mem *mem);
void tide_onedrive_page_done(struct tide_onedrive_page *page);

/* A page of a folder's children.  `link`: `next` of the page before; "": the first.  TIDE_OK: the
 * page was whole. */
tide_status tide_onedrive_children(tide_onedrive *onedrive, tide_job *job, tide_text drive,
                                   tide_text id, const char *link,
                                   const struct tide_onedrive_sink *sink,
                                   struct tide_onedrive_page *page, tide_error *err);
/* A page of changes in a drive, or below the folder `id`, which another user shares (D16).  `link`: of
 * the page or the round before; "": everything.  TIDE_OK: the page was
 * whole, and exactly one of `next` and `delta` is set (D31).  TIDE_GONE: enumerate again;
 * tide_graph_reason_of() says which kind of resync (D34). */
tide_status tide_onedrive_delta(tide_onedrive *onedrive, tide_job *job, tide_text drive,
                                tide_text id, const char *link,
                                const struct tide_onedrive_sink *sink,
                                struct tide_onedrive_page *page, tide_error *err);

/* ---- changes ---- */

/* TIDE_EXISTS: the name is taken (D30), possibly by an earlier try: a batch whose answer is lost may be
 * sent again, and after TIDE_UNKNOWN or TIDE_SERVER the folder may exist. */
tide_status tide_onedrive_folder_create(tide_onedrive *onedrive, tide_job *job, tide_text drive,
                                        tide_text parent, tide_text name,
                                        struct tide_onedrive_answer *answer_out, tide_error *err);

struct tide_onedrive_update {
    tide_text name;            /* empty: stays */
    tide_text parent_id;       /* empty: stays */
    uint64_t created_unix_ms;  /* 0: stays */
    uint64_t modified_unix_ms; /* 0: stays */
    tide_text if_match;        /* eTag or cTag; empty: in any state */
};
/* Renames, moves, sets times.  TIDE_SUPERSEDED: the tag is another one; TIDE_EXISTS; TIDE_GONE. */
tide_status tide_onedrive_update(tide_onedrive *onedrive, tide_job *job, tide_text drive,
                                 tide_text id, const struct tide_onedrive_update *update,
                                 struct tide_onedrive_answer *answer_out, tide_error *err);
/* Moves to the recycle bin (S17).  TIDE_SUPERSEDED: the tag is another one.  TIDE_GONE: it is not
 * there, possibly since an earlier try. */
tide_status tide_onedrive_delete(tide_onedrive *onedrive, tide_job *job, tide_text drive,
                                 tide_text id, tide_text if_match, tide_error *err);

/* ---- uploads ---- */

/* Where content goes: a new name, or the place of an item's content (ODR2). */
struct tide_onedrive_target {
    tide_text drive;
    tide_text id;       /* of the item to replace; empty: a new one, */
    tide_text parent;   /* in this folder, */
    tide_text name;     /* with this name */
    tide_text if_match; /* of a replacement: cTag or eTag; empty: in any state */
    bool personal;      /* the drive is: its server checks the room before the first byte */
};

/* An upload in progress; embedded value. */
struct tide_onedrive_session {
    tide_buf url; /* secret as long as it is valid */
    uint64_t expires_unix_ms;
};
void tide_onedrive_session_init(struct tide_onedrive_session *session, tide_mem *mem);
void tide_onedrive_session_done(struct tide_onedrive_session *session);

/* Begins an upload of `bytes` bytes, at least one.  Nothing is visible online before the last
 * fragment (S7).  `modified_unix_ms` 0: now. */
tide_status tide_onedrive_session_create(tide_onedrive *onedrive, tide_job *job,
                                         const struct tide_onedrive_target *target, uint64_t bytes,
                                         uint64_t modified_unix_ms,
                                         struct tide_onedrive_session *session_out,
                                         tide_error *err);

struct tide_onedrive_fragment {
    const char *url;
    uint64_t from, bytes, total;
    tide_source_read *source; /* gives `bytes` bytes */
    void (*rewind)(void *source_arg);
    void *source_arg;
};
/* How far an upload is; embedded value. */
struct tide_onedrive_sent {
    bool finished; /* and `answer` has the item, if the server gave it (D38) */
    bool next_known;
    uint64_t next; /* the lowest byte that the server still expects (D37) */
    uint64_t expires_unix_ms;
    struct tide_onedrive_answer answer;
};
void tide_onedrive_sent_done(struct tide_onedrive_sent *sent); /* a zeroed one is fine */

/* Sends a fragment.  TIDE_INVALID: its size is not allowed.  TIDE_GONE: the session is.  With the
 * reason TIDE_GRAPH_RANGE, and after TIDE_UNKNOWN or TIDE_TIMEOUT: ask for the status. */
tide_status tide_onedrive_fragment_put(tide_onedrive *onedrive, tide_job *job,
                                       const struct tide_onedrive_fragment *fragment,
                                       struct tide_onedrive_sent *sent_out, tide_error *err);
/* TIDE_GONE: the session is, because it ended or because it was finished (D38). */
tide_status tide_onedrive_session_status(tide_onedrive *onedrive, tide_job *job, const char *url,
                                         struct tide_onedrive_sent *sent_out, tide_error *err);
/* TIDE_OK also if there is no such session. */
tide_status tide_onedrive_session_cancel(tide_onedrive *onedrive, tide_job *job, const char *url,
                                         tide_error *err);
/* Content of zero bytes, which a session cannot carry (D36). */
tide_status tide_onedrive_put_empty(tide_onedrive *onedrive, tide_job *job,
                                    const struct tide_onedrive_target *target,
                                    struct tide_onedrive_answer *answer_out, tide_error *err);

/* ---- downloads ---- */

struct tide_onedrive_download {
    const char *url;  /* `download_url` of an item just read */
    uint64_t from;    /* the bytes before are there */
    uint64_t size;    /* of the whole content: more than that is refused */
    bool any_size;    /* it is not: all that comes is taken */
    const char *etag; /* of the download before, so that `from` counts; NULL or "": none */
    /* Called once before the first byte: where it belongs, `from` or 0. */
    tide_status (*begin)(void *arg, uint64_t at);
    tide_sink_write *sink;
    void *arg;
};
struct tide_onedrive_got {
    uint64_t at;    /* where the first byte belonged */
    uint64_t bytes; /* how many came */
    bool misfit;    /* TIDE_SERVER, because the answer has more or fewer bytes than the item says */
    char etag[TIDE_ONEDRIVE_TAG_BYTES_MAX + 1]; /* of the content, for the next try; "" */
};
/* Downloads into the sink.  TIDE_OK: all bytes up to `size` came; whether they are the right ones
 * is for the caller to check.  `got_out` is filled also after a failure.  TIDE_GONE: the URL
 * no longer works, read the item again.  Reason TIDE_GRAPH_RANGE: start at 0.  Bodies of other
 * answers never reach the sink (D41). */
tide_status tide_onedrive_download(tide_onedrive *onedrive, tide_job *job,
                                   const struct tide_onedrive_download *download,
                                   struct tide_onedrive_got *got_out, tide_error *err);

/* ---- subscriptions ---- */

enum { TIDE_ONEDRIVE_WATCH_MINUTES_MAX = 42300 };
struct tide_onedrive_watch {
    char id[TIDE_ONEDRIVE_ID_BYTES_MAX + 1];
    uint64_t expires_unix_ms;
};
/* Asks for a notification at `url` whenever something in the drive changes. */
tide_status tide_onedrive_watch_create(tide_onedrive *onedrive, tide_job *job, tide_text drive,
                                       const char *url, tide_text secret, uint64_t until_unix_ms,
                                       struct tide_onedrive_watch *watch_out, tide_error *err);
tide_status tide_onedrive_watch_renew(tide_onedrive *onedrive, tide_job *job, tide_text id,
                                      uint64_t until_unix_ms, struct tide_onedrive_watch *watch_out,
                                      tide_error *err);
/* TIDE_OK also if there is no such subscription. */
tide_status tide_onedrive_watch_remove(tide_onedrive *onedrive, tide_job *job, tide_text id,
                                       tide_error *err);

#endif
