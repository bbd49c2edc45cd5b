/* inside.h - shared by the executors. */
#ifndef TIDE_DRIVE_ACT_INSIDE_H
#define TIDE_DRIVE_ACT_INSIDE_H

#include "drive/act/act.h"
#include "drive/local/hash.h"

/* ---- gate.c ---- */

/* A failure of the disk as the outcome of an action: an entry that is missing, taken or another one
 * than planned is TIDE_SUPERSEDED. */
tide_status tide_drive_gate_disk(tide_status rc, tide_error *err);
/* Opens "a/b" below the root; TIDE_SUPERSEDED: it is no longer a folder. */
tide_status tide_drive_gate_enter(const struct tide_drive_act *act, tide_text folder, int *dir_out,
                                  tide_error *err);
/* What has the name is `expected`; NULL: nothing has it. */
tide_status tide_drive_gate_entry(int dir, tide_text name, const struct tide_entry *expected,
                                  tide_error *err);
/* Whether the content online is that of the row (D15): size and hash, else size and cTag. */
bool tide_drive_gate_content(const struct tide_onedrive_item *item,
                             const struct tide_drive_content *content, tide_text ctag);
/* The modification time of a file if it may be believed, else 0 (D43): one in the future is that of a clock
 * that was wrong, and would make every later edit look old. */
uint64_t tide_drive_time(const struct tide_drive_act *act, uint64_t unix_ms);

/* ---- place.c ---- */

/* Gives the partial file the planned name (D42), and looks at what has which name now. */
tide_status tide_drive_place(int dir, const char *partial, const struct tide_drive_download *plan,
                             uint64_t mtime_s, struct tide_drive_downloaded *out, tide_error *err);
/* Finishes a placement that a crash cut short: the file that was replaced has the name of such ones, and
 * `out` has it. */
void tide_drive_place_again(int dir, const char *partial, const struct tide_entry *expected,
                            struct tide_drive_downloaded *out);

/* ---- session.c ---- */

/* An upload on its way. */
struct tide_drive_sending {
    const struct tide_drive_act *act;
    const struct tide_drive_upload *plan;
    struct tide_drive_uploaded *out;
    int dir, file;
    char id[TIDE_ONEDRIVE_ID_BYTES_MAX + 1]; /* whose content is replaced; "": a new item */
    struct tide_drive_content replaces;
    struct tide_onedrive_session session;
    char *bytes;                     /* of one fragment */
    struct tide_drive_hasher hasher; /* of all bytes before `hashed` */
    uint64_t hashed;
    uint64_t next;     /* the lowest byte that the server expects */
    unsigned sessions; /* that were begun in this run */
    unsigned refused;  /* of them because of their tag (D36) */
    bool blind;        /* without If-Match: look before the last fragment */
    bool finished;     /* out->live is the item */
};

/* Continues the saved session, or begins one and saves it before its first byte (D37).  After it the
 * upload may be `finished`. */
tide_status tide_drive_session_find(struct tide_drive_sending *s, tide_error *err);
tide_status tide_drive_session_begin(struct tide_drive_sending *s, tide_error *err);
/* Where it stands.  TIDE_GONE: it ended. */
tide_status tide_drive_session_ask(struct tide_drive_sending *s, tide_error *err);
void tide_drive_session_drop(struct tide_drive_sending *s);
/* Whether the item online has our bytes; then the upload is finished.  TIDE_GONE: there is none. */
tide_status tide_drive_session_look(struct tide_drive_sending *s, tide_error *err);
/* What is replaced is still what was planned; TIDE_SUPERSEDED. */
tide_status tide_drive_session_gate(struct tide_drive_sending *s, tide_error *err);

#endif
