/* ruler.h - how complete a stream of time is, as one line of characters.
 *
 *     ====================--//--////........
 *
 * Each cell is an equal part of the time from from_ms to to_ms.  Displays of any size can draw it, and a
 * stream with thousands of gaps takes no more room than one without.
 *
 * Invariants:
 *   RUL1  of several states in one cell the worst is shown, so a gap is never hidden.
 *   RUL2  a ruler that was not begun has no cells, and marking it does nothing.
 */
#ifndef TIDE_SYSTEM_RULER_H
#define TIDE_SYSTEM_RULER_H

#include <stdint.h>

enum { TIDE_RULER_CELLS = 96 };

/* From good to bad. */
#define TIDE_RULER_COMPLETE '=' /* before the tidemark */
#define TIDE_RULER_BEYOND   '-' /* stored, but something before it is not */
#define TIDE_RULER_BAD      'x' /* complete but for items that cannot be had */
#define TIDE_RULER_GAP      '/' /* work is left */
#define TIDE_RULER_FAILED   '!' /* waits for the user */

struct tide_ruler {
    uint64_t from_ms, to_ms;          /* unix time */
    char cells[TIDE_RULER_CELLS + 1]; /* "": there is none */
};

/* All cells are complete.  Without a span of time there is no ruler. */
void tide_ruler_begin(struct tide_ruler *ruler, uint64_t from_ms, uint64_t to_ms);
/* Marks [from_ms, to_ms), as far as it is on the ruler; an empty span marks the cell that it is in. */
void tide_ruler_mark(struct tide_ruler *ruler, uint64_t from_ms, uint64_t to_ms, char state);

#endif
