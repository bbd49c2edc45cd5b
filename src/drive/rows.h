/* rows.h - one item as each of the three trees has it (D13).
 *
 * Remote and baseline rows are known by `item`, our number for OneDrive's id; local rows by `row`,
 * our number for a directory entry.  Numbers are never 0 and never used again; the root of each
 * tree is TIDE_DRIVE_ROOT and has no row.  Size and hash are kept per side, because the server
 * rewrites some files.
 *
 * A row says what was proved.  That a row is missing proves nothing: an absent item has a remote
 * row that is `gone`, or a baseline row with `local_gone` (S2, S12, S13).
 */
#ifndef TIDE_DRIVE_ROWS_H
#define TIDE_DRIVE_ROWS_H

#include "base/text.h"
#include "drive/hash/quickxor.h"

#include <stdbool.h>
#include <stdint.h>

enum { TIDE_DRIVE_ROOT = 1, TIDE_DRIVE_STRONG_BYTES = 32 }; /* SHA-256 (D14) */

typedef enum tide_drive_kind {
    TIDE_DRIVE_FILE = 1,
    TIDE_DRIVE_FOLDER = 2,
} tide_drive_kind;

/* What a file contains, as far as a side knows it. */
struct tide_drive_content {
    uint64_t bytes;
    uint8_t qxh[TIDE_QUICKXOR_BYTES];
    uint8_t strong[TIDE_DRIVE_STRONG_BYTES]; /* of local files only */
    bool has_qxh;
    bool has_strong;
};

/* Whose inode it is.  An inode alone proves nothing: file systems use them again (D22). */
struct tide_drive_identity {
    uint64_t dev;
    uint64_t inode;
    uint64_t birth_ns; /* 0: the file system has none */
};

/* Why an item online is not synced (D16); 0: it is ignored, or its name cannot be placed here. */
typedef enum tide_drive_reason {
    TIDE_DRIVE_REASON_NONE = 0,
    TIDE_DRIVE_REASON_SHARED_FOLDER = 1, /* a shortcut: a drive of its own (mounts.h) */
    TIDE_DRIVE_REASON_SHARED_FILE = 2,
    TIDE_DRIVE_REASON_MALWARE = 3,
    TIDE_DRIVE_REASON_NOTEBOOK = 4, /* a package, or a part of one */
} tide_drive_reason;

typedef enum tide_drive_remote_state {
    TIDE_DRIVE_REMOTE_LIVE = 1,
    TIDE_DRIVE_REMOTE_GONE = 2,      /* a tombstone, or missing in a finished enumeration (S12) */
    TIDE_DRIVE_REMOTE_FORGOTTEN = 3, /* missing after the server lost its state (D34) */
    TIDE_DRIVE_REMOTE_SKIPPED = 4,   /* not synced (D16), ignored, or cannot be placed here */
    TIDE_DRIVE_REMOTE_UNSURE = 5,    /* pending, malware, or an answer is missing */
} tide_drive_remote_state;

struct tide_drive_remote {
    uint64_t item;
    uint64_t parent; /* item */
    tide_text name;
    tide_text ctag; /* only a hint where there is a hash (D15) */
    uint64_t mtime_s;
    struct tide_drive_content content;
    tide_drive_kind kind;
    tide_drive_remote_state state;
    bool stepped_aside; /* it has a name of ours for now (D24); `name` is the one it had before */
};

typedef enum tide_drive_local_state {
    TIDE_DRIVE_LOCAL_LIVE = 1,
    TIDE_DRIVE_LOCAL_SKIPPED = 2, /* ignored, refused, a link, a device (D27, D28) */
    TIDE_DRIVE_LOCAL_UNSURE =
        3, /* being written, could not be read, beneath what could not be read */
    /* 4 is TIDE_DRIVE_LOCAL_GONE of the store. */
    TIDE_DRIVE_LOCAL_UNREAD =
        5, /* unsure, and may hide what is missing elsewhere: a folder that could
                                  * not be read, an entry that could not be looked at */
} tide_drive_local_state;

struct tide_drive_local {
    uint64_t row;
    uint64_t parent; /* row */
    tide_text name;  /* bytes, as the directory has them */
    struct tide_drive_identity identity;
    struct tide_drive_content content;
    uint32_t nlink;
    tide_drive_kind kind;
    tide_drive_local_state state;
    bool stepped_aside; /* as above */
};

/* What both sides agreed on last. */
struct tide_drive_base {
    uint64_t item;
    uint64_t parent; /* item */
    tide_text name;
    tide_text local_name;
    tide_text ctag;
    uint64_t mtime_s;                 /* the remote one */
    struct tide_drive_content remote; /* as OneDrive has it */
    struct tide_drive_content local;  /* as the disk has it; differs where the server rewrote it */
    struct tide_drive_identity identity;
    uint64_t row; /* its local row then; only whether it is still that one counts */
    tide_drive_kind kind;
    bool local_gone; /* proved absent at its own path (S13) */
};

#endif
