/* names.h - which names may cross between a disk and OneDrive (D27, D28).
 *
 * A name that the other side refuses is reported and skipped with all that is beneath it; it is
 * never changed to one that fits.  The rules are looked up here before a call is made; the server
 * may know more of them.
 *
 * Invariants (tests/unit/drive/drive_names_test.c):
 *   DNM1  a name that may come here is one path component: not empty, not "." or "..", no '/' and
 *         no NUL, and fits a directory entry.  So no path made of such names leaves its root.
 *   DNM2  names of our own (".tidemark-...") never cross, in either direction.
 */
#ifndef TIDE_DRIVE_NAMES_NAMES_H
#define TIDE_DRIVE_NAMES_NAMES_H

#include "base/text.h"

enum {
    TIDE_DRIVE_NAME_UNITS_MAX = 255, /* of UTF-16, online */
    TIDE_DRIVE_NAME_BYTES_MAX = 255, /* here */
    TIDE_DRIVE_PATH_UNITS_MAX = 400, /* online, with its slashes */
    TIDE_DRIVE_DEPTH_MAX = 400,      /* a path of one-letter folders has fewer */
};
#define TIDE_DRIVE_FILE_BYTES_MAX (UINT64_C(250) << 30)

typedef enum tide_drive_refusal {
    TIDE_DRIVE_NAME_OK,
    TIDE_DRIVE_NAME_EMPTY,
    TIDE_DRIVE_NAME_DOTS,       /* "." or ".." */
    TIDE_DRIVE_NAME_SEPARATOR,  /* '/' or NUL inside */
    TIDE_DRIVE_NAME_NOT_UTF8,   /* */
    TIDE_DRIVE_NAME_CHARACTER,  /* one of " * : < > ? \ | or a control character */
    TIDE_DRIVE_NAME_SPACE,      /* at an end */
    TIDE_DRIVE_NAME_FINAL_DOT,  /* */
    TIDE_DRIVE_NAME_RESERVED,   /* CON, desktop.ini, ... */
    TIDE_DRIVE_NAME_VTI,        /* "_vti_" inside */
    TIDE_DRIVE_NAME_TILDE,      /* at the start */
    TIDE_DRIVE_NAME_LONG,       /* the name */
    TIDE_DRIVE_NAME_PATH_LONG,  /* its path */
    TIDE_DRIVE_NAME_OURS,       /* */
    TIDE_DRIVE_NAME_FILE_LARGE, /* no name: more than 250 GB */
} tide_drive_refusal;

struct tide_drive_name_rules {
    bool business; /* OneDrive for Business and SharePoint refuse a few names more */
    bool at_root;  /* the name is directly in the root */
};

/* May a local name be created online? */
tide_drive_refusal tide_drive_name_up(tide_text name, struct tide_drive_name_rules rules);
/* May a name from online be created here? */
tide_drive_refusal tide_drive_name_down(tide_text name);
/* `units` of UTF-16 in the path from the root, slashes counted. */
tide_drive_refusal tide_drive_path_up(size_t units);
/* Whether the name is one of ours (DNM2): ".tidemark-..." and "tidemark-move-XXXXXXXX" (D24). */
bool tide_drive_name_is_ours(tide_text name);
/* Whether a path below the root, as "a/b/c", consists of names that may come here. */
bool tide_drive_path_is_inside(tide_text path);
/* "has a character that OneDrive does not allow": the end of a sentence about the name. */
const char *tide_drive_refusal_text(tide_drive_refusal refusal);

#endif
