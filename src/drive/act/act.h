/* act.h - carries out one action of a plan: transfers, folders, moves, deletions.
 *
 * Each function is one action.  It talks to OneDrive (cloud/onedrive) and to the disk (world/folder.h),
 * says in its outcome what it found and did, and writes nothing to the database (D1): the caller
 * commits the outcome with the job's `done` (D3), and an action that is run again after a crash
 * finds its effect and reports it.
 *
 *   download.c  content from OneDrive into a partial file; checks it
 *   place.c     gives the partial file its name; what it displaced
 *   change.c    folders, moves, deletions, on both sides
 *   upload.c    content to OneDrive in fragments; checks what was sent
 *   session.c   begins, resumes and looks up uploads
 *   gate.c      compares what is there with what was planned
 *
 * Statuses of all of them:
 *   TIDE_OK          the effect is there and durable
 *   TIDE_SUPERSEDED  what is there is not what was planned: nothing was changed, plan again (S10)
 *   TIDE_PERMANENT   a bad item: the text says why
 *   TIDE_DISK_FULL   no room here, or none online
 *   TIDE_EXISTS      the name is taken online, though it was thought free (D30)
 *   else             of the calls and of the disk: try again, nothing is lost
 *
 * Invariants (tests/unit/drive/act; DAC3 with kills in drive_act_kill_test.c):
 *   DAC1  right before an effect the stamp of the local entry, and for what replaces or removes an item
 *         the item itself, is compared with the plan (S10).
 *   DAC2  no name of a user ever has partial bytes (I7), and no byte leaves the root (I18).
 *   DAC3  after any crash the next run of the action transfers what was durable not again.
 */
#ifndef TIDE_DRIVE_ACT_ACT_H
#define TIDE_DRIVE_ACT_ACT_H

#include "cloud/onedrive/onedrive.h"
#include "drive/rows.h"
#include "world/folder.h"

enum {
    TIDE_DRIVE_TEMPORARY_BYTES = 32, /* ".tidemark-0123abcd.partial" with its end */
    TIDE_DRIVE_MISFITS_MAX = 3,      /* downloads of content that does not fit (D41) */
    /* Content of this size takes a while: the item is read again before it is placed. */
    TIDE_DRIVE_LONG_BYTES = 10 << 20,
    /* Of an upload; held in memory, so that exactly what was hashed is sent (D39). */
    TIDE_DRIVE_FRAGMENT_BYTES = 16 * TIDE_ONEDRIVE_FRAGMENT_UNIT,
    TIDE_DRIVE_LOOKED_UP_MS = 120000, /* how long a finished upload is looked for (D38) */
};

/* What an action works with; all of it is borrowed. */
struct tide_drive_act {
    tide_onedrive *onedrive;
    tide_job *job;           /* NULL: calls are charged to no account */
    tide_text drive;         /* OneDrive's id; empty: the account's own */
    int root;                /* of the folder */
    uint64_t free_min_bytes; /* that stay free on its disk (S6) */
    tide_mem *mem;
    const char *path;     /* of the root, absolute: for the record in the trash */
    const char *desktop;  /* the desktop's trash; NULL: there is none */
    uint64_t now_unix_ms; /* also for that record; times of files after it are not believed */

    /* Of an upload: its session (D6). */
    tide_text resume; /* what an earlier run saved; empty: nothing */
    /* Durable when it returns; then the session is found again after a crash. */
    tide_status (*save)(void *arg, tide_text resume, tide_error *err);
    tide_status (*sleep)(void *arg, uint64_t wait_ms); /* fails when the job must end */
    /* Right before an item is deleted online: it is still absent here; NULL: that is known (S10, S13). */
    tide_status (*still_absent)(void *arg, tide_error *err);
    bool (*closes)(void *arg); /* the last byte is sent next; false: end instead.  NULL: go on */
    void *arg;
};

/* ---- download.c, place.c ---- */

struct tide_drive_download {
    tide_text id;
    tide_text folder; /* "a/b" below the root; empty: the root */
    tide_text name;
    const struct tide_entry *expected; /* what has the name here; NULL: nothing */
    struct tide_drive_content content; /* of the remote row: bytes and, if it has one, qxh */
    tide_text ctag;                    /* of the remote row; counts where there is no hash (D15) */
    bool compare; /* no hash: the file here is kept if it has the same bytes (D19) */
    bool accept;  /* place it also if size or hash do not fit (`drive accept`, D41) */
};
/* Embedded; a zeroed one is done. */
struct tide_drive_downloaded {
    struct tide_onedrive_answer live; /* as it is online, also with TIDE_SUPERSEDED; may be empty */
    struct tide_drive_content content; /* of the downloaded bytes, both hashes */
    struct tide_entry entry;           /* of the file that has the name now */
    bool same;                         /* `compare`: it had these bytes, nothing was placed */
    uint64_t fetched_bytes;            /* over the network, in this run */
    char displaced[TIDE_DRIVE_TEMPORARY_BYTES]; /* name of the file that was replaced; "" */
    struct tide_entry displaced_entry;          /* of that file */
};
void tide_drive_downloaded_done(struct tide_drive_downloaded *downloaded);

/* Downloads to a partial file beside the target, whose name is made from id, cTag, size and hash: so
 * a partial file is resumed only by the content that it is a part of (D41).  It stays after a failure,
 * and after `compare` found other bytes: then TIDE_SUPERSEDED with `content`, whose hash the remote
 * row lacks. */
tide_status tide_drive_download(const struct tide_drive_act *act,
                                const struct tide_drive_download *plan,
                                struct tide_drive_downloaded *out, tide_error *err);
/* The name of that file. */
void tide_drive_partial_name(tide_text id, tide_text ctag, const struct tide_drive_content *content,
                             char out[TIDE_DRIVE_TEMPORARY_BYTES]);
/* Ten seconds after a file was replaced: removes the old one.  A program that had it open may
 * have written to it meanwhile: then it gets the name `copy` instead, and *kept_out is true (D42, k1).
 * TIDE_EXISTS: that name is taken.  TIDE_OK also if it is gone. */
tide_status tide_drive_displaced_end(const struct tide_drive_act *act, tide_text folder,
                                     const char *displaced, const struct tide_entry *entry,
                                     tide_text copy, bool *kept_out, tide_error *err);

/* ---- upload.c, session.c ---- */

struct tide_drive_upload {
    tide_text id;                       /* whose content is replaced; empty: a new item */
    tide_text parent_id, name;          /* of a new item */
    struct tide_drive_content replaces; /* the remote row's, which is replaced */
    tide_text ctag;                     /* of that row */
    tide_text folder, here;             /* the file: its folder below the root, its name */
    struct tide_entry entry;            /* as it was when it was hashed */
    struct tide_drive_content content;  /* of the file, both hashes */
    bool business;                      /* a drive whose server rewrites some files (D40) */
};
/* Embedded; a zeroed one is done. */
struct tide_drive_uploaded {
    struct tide_onedrive_answer
        live;            /* as it is online now, also with TIDE_SUPERSEDED; may be empty */
    bool rewritten;      /* the server changed the bytes (D40) */
    uint64_t sent_bytes; /* over the network, in this run */
};
void tide_drive_uploaded_done(struct tide_drive_uploaded *uploaded);

/* Uploads by session: nothing is visible before the last fragment (S7), and that one is sent only if
 * all bytes together have the planned strong hash (D39).  A replacement is guarded by If-Match (D36).
 * An upload that an earlier run finished is found and not repeated (D38). */
tide_status tide_drive_upload(const struct tide_drive_act *act,
                              const struct tide_drive_upload *plan, struct tide_drive_uploaded *out,
                              tide_error *err);

/* The upload that `act->resume` is of is not wanted any more: its session is ended (D5).  One that is
 * over, or cannot be reached, ends by itself. */
void tide_drive_upload_forget(const struct tide_drive_act *act);

/* ---- change.c ---- */

/* An item as its remote row has it. */
struct tide_drive_online {
    tide_text id;
    tide_text parent_id;
    tide_text name;
    tide_drive_kind kind;
    struct tide_drive_content content; /* of a file */
    tide_text ctag;
};
/* An entry as its local row has it. */
struct tide_drive_here {
    tide_text folder; /* below the root */
    tide_text name;
    struct tide_entry entry; /* of a folder only its identity counts */
};

/* Whether the item has its planned content now, before something is done because of it: TIDE_SUPERSEDED
 * with `answer_out`, which is empty if the item is gone.  `answer_out` is zeroed or done. */
tide_status tide_drive_still_online(const struct tide_drive_act *act,
                                    const struct tide_drive_online *was,
                                    struct tide_onedrive_answer *answer_out, tide_error *err);
/* Creates a folder; one that is there already is taken: folders without baseline merge (D24).
 * `answer_out` is zeroed or done. */
tide_status tide_drive_mkdir_remote(const struct tide_drive_act *act, tide_text parent_id,
                                    tide_text name, struct tide_onedrive_answer *answer_out,
                                    tide_error *err);
tide_status tide_drive_mkdir_local(const struct tide_drive_act *act, tide_text folder,
                                   tide_text name, struct tide_entry *entry_out, tide_error *err);
/* Moves and renames.  TIDE_OK also if it is at its new place already. */
tide_status tide_drive_move_remote(const struct tide_drive_act *act,
                                   const struct tide_drive_online *was, tide_text parent_id,
                                   tide_text name, struct tide_onedrive_answer *answer_out,
                                   tide_error *err);
tide_status tide_drive_move_local(const struct tide_drive_act *act,
                                  const struct tide_drive_here *was, tide_text folder,
                                  tide_text name, struct tide_entry *entry_out, tide_error *err);
/* To the recycle bin; a folder only if it is empty (S18).  TIDE_OK also if it is gone. */
tide_status tide_drive_delete_remote(const struct tide_drive_act *act,
                                     const struct tide_drive_online *was, tide_error *err);
/* To the trash, a file only if it has the content of the baseline now (S4); a folder only if it
 * is empty.  TIDE_OK also if it is gone. */
tide_status tide_drive_delete_local(const struct tide_drive_act *act,
                                    const struct tide_drive_here *was,
                                    const struct tide_drive_content *baseline, tide_error *err);

#endif
