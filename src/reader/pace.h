/* pace.h - when the reader looks for new mail by itself (K1, K7, K9).
 *
 * Pure: the state of one account and the time go in, what to do and when to come back come out.
 *
 *     INITIAL  the chosen window is not listed yet (K8)
 *     ACTIVE   a person looks at the reader
 *     PASSIVE  nobody does
 *
 * Invariants:
 *   PCE1  between two polls there is nothing to do: `wake_ms` is the time of the next one, or of the
 *         folder list.
 *   PCE2  a change to ACTIVE is due at once, unless the last poll is younger than the active interval.
 *   PCE3  while `saving`, polls have the passive interval, whoever looks.
 */
#ifndef TIDE_READER_PACE_H
#define TIDE_READER_PACE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum tide_reader_state {
    TIDE_READER_INITIAL,
    TIDE_READER_ACTIVE,
    TIDE_READER_PASSIVE,
} tide_reader_state;
const char *tide_reader_state_name(tide_reader_state state); /* "active" */

enum { TIDE_READER_FOLDERS_MS = 24 * 3600 * 1000 }; /* between two lists of folders */

struct tide_pace {
    bool watched; /* a page is open */
    bool saving;  /* on battery, or a metered link */
    bool initial; /* the window is not listed yet */
    uint64_t active_ms, passive_ms;
    uint64_t polled_ms;  /* when the last poll was asked for; 0: never */
    uint64_t folders_ms; /* the same of the folder list */
};

struct tide_pace_due {
    bool poll, folders;
    uint64_t wake_ms; /* when something is due again */
};

tide_reader_state tide_pace_state(const struct tide_pace *pace);
struct tide_pace_due tide_pace_look(const struct tide_pace *pace, uint64_t now_ms);

#endif
