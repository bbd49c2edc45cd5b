/* concerns.h - what a user should know of a drive without asking: why it stopped, what waits, what has
 * failed for long (E6.4).  Numbers for alerts and metrics; report.h has the names. */
#ifndef TIDE_DRIVE_STORE_CONCERNS_H
#define TIDE_DRIVE_STORE_CONCERNS_H

#include "drive/store/store.h"

enum { TIDE_DRIVE_CONCERN_BYTES = 256 };

struct tide_drive_concerns {
    uint64_t conflicts; /* copies that were kept and are listed */
    uint64_t deletions; /* that wait for consent */
    uint64_t owed;      /* items; not those that are held because they are read-only online */
    uint64_t bad;       /* of these: refused for what they are, so that trying again may not help */
    uint64_t old;       /* owed since `owed_since` of the question, or before */
    uint64_t hidden;    /* missing as long, and not deleted online: something here cannot be read */
    uint64_t oldest_ms; /* since when the first of them is owed; 0: none is */
    char oldest[TIDE_DRIVE_CONCERN_BYTES];  /* its name, and the error */
    char trouble[TIDE_DRIVE_CONCERN_BYTES]; /* why nothing is synced; "": it is */
};
/* `owed_since`: what is owed so long counts as old. */
tide_status tide_drive_concerns(tide_rows db, uint64_t owed_since,
                                struct tide_drive_concerns *concerns_out, tide_error *err);
/* Nothing of the drive can be synced; "": it can again. */
tide_status tide_drive_trouble_set(tide_rows db, const char *text, tide_error *err);

#endif
