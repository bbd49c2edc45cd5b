/* state.h - the journal behind --state: every change, one line each.
 *
 * The first line says what the cloud was made of; the others are the lines that
 * the logic hands out (struct box_options, keep) and takes back
 * (box_cloud_replay).  A line is eight hexadecimal digits, a space and JSON; the
 * digits are a checksum over this line and all before it, so that a changed, a
 * missing or a doubled line is found.
 *
 * Invariants:
 *   BSTA1  a line is written (write(2)) before its change is answered, so that a killed process
 *          loses nothing that it has answered.
 *   BSTA2  at most one process has the file.
 *   BSTA3  only the end of the file is ever repaired: an unfinished last line, and this is said.
 *          Any other damage is an error.
 */
#ifndef BOX_SERVE_STATE_H
#define BOX_SERVE_STATE_H

#include "cloudbox/gate/cloud.h"

enum { BOX_STATE_FORMAT = 1, BOX_STATE_LINE_BYTES_MAX = 1 << 30 };

typedef struct box_state box_state;

/* Opens and locks, making the file if there is none; reads its first line.
 * Messages for the user go to stderr unless `quiet`. */
tide_status box_state_open(const char *file, bool quiet, box_state **state_out, tide_error *err);
/* Writes down what is left; NULL is fine. */
void box_state_close(box_state *state);

/* What the first line says, borrowed; NULL: the file is new. */
const json_t *box_state_header(const box_state *state);
/* The first line of a new file. */
tide_status box_state_begin(box_state *state, const json_t *header, tide_error *err);
/* Every line after the first one goes to the cloud. */
tide_status box_state_replay(box_state *state, box_cloud *cloud, uint64_t *lines_out,
                             tide_error *err);

/* Appends; for struct box_options' `keep`, whose `keep_arg` is the state.  Does
 * nothing before box_state_record().  When the disk refuses, the process is sent
 * SIGTERM and box_state_error() says why: going on would promise too much. */
void box_state_keep(void *arg, tide_text line);
void box_state_record(box_state *state);
/* To the disk itself, if something was written since; any thread. */
void box_state_sync(box_state *state);
/* TIDE_OK, or what ended the keeping. */
tide_status box_state_error(box_state *state, tide_error *err);

#endif
