/* look.h - how far a drive is, from the ledger: while an engine runs or not (D9). */
#ifndef TIDE_DRIVE_COMMANDS_LOOK_H
#define TIDE_DRIVE_COMMANDS_LOOK_H

#include "base/json.h"
#include "drive/drives.h"
#include "drive/store/report.h"
#include "ledger/ledger.h"

struct drive_transfers {
    uint64_t files, bytes, bytes_done; /* that are under way */
};
struct drive_look {
    uint64_t tidemark_ms; /* everything that was there then is on both sides; 0: none yet */
    uint64_t seen_ms;     /* when both sides were looked at last, to the end; 0: never */
    struct drive_transfers down, up;
    uint64_t others;  /* actions that run and transfer nothing */
    uint64_t waiting; /* actions that were not begun */
    uint64_t waiting_bytes;
    uint64_t syncs;  /* syncs and plans that wait or run */
    uint64_t looks;  /* of these: that only look, and plan nothing */
    uint64_t failed; /* jobs */
    struct tide_drive_counts counts;
    uint64_t shared_trouble; /* shared folders in it that are not synced, and need a user */
};
tide_status drive_look(tide_ledger *ledger, const struct tide_drive_row *row,
                       struct drive_look *look_out, tide_error *err);
/* What was changed last, newest first, `count` at most: actions that are done. */
struct drive_change_made {
    tide_drive_verb verb;
    tide_text name;
    uint64_t bytes, at_ms;
};
tide_status drive_look_last(tide_ledger *ledger, const struct tide_drive_row *row, size_t count,
                            void (*visit)(const struct drive_change_made *change, void *arg),
                            void *arg, tide_error *err);
/* Whether there is something that a user should see (D16, D21, S16, S11). */
bool drive_look_needs_user(const struct drive_look *look);

/* "downloading 3 files (2.1 GiB), uploading 5 (340 MiB), 12 waiting"; "nothing": nothing is. */
void drive_look_words(const struct drive_look *look, char *text, size_t text_bytes);
void drive_look_json(const struct drive_look *look, tide_json *json);

#endif
