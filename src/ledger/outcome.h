/* outcome.h - the latest results of an account's calls: when one succeeded last, when one failed
 * last and why (E9.1, E9.3).
 *
 * The engine keeps it with the account, and in a note of the ledger for commands that run without
 * an engine.  The note is written when a success follows a failure or the reverse, once a minute
 * otherwise, and when the engine stops; so the order of the two times is right even after a crash,
 * except for the last TIDE_OUTCOME_EVERY_MS.
 *
 * Pure: `now` is an argument. */
#ifndef TIDE_ENGINE_OUTCOME_H
#define TIDE_ENGINE_OUTCOME_H

#include "ledger/ledger.h"

enum {
    TIDE_OUTCOME_TEXT_BYTES = 260,
    TIDE_OUTCOME_FLAP_MS = 2000,   /* a change within this time is written with the next result */
    TIDE_OUTCOME_EVERY_MS = 60000, /* accuracy of the stored times while the state lasts */
};

struct tide_outcome {
    uint64_t ok_unix_ms;     /* 0: never */
    uint64_t failed_unix_ms; /* 0: never */
    tide_status status;      /* of that failure */
    uint64_t since_unix_ms;  /* the first failure of its kind (offline or not) after that success */
    char text[TIDE_OUTCOME_TEXT_BYTES];
    uint64_t saved_unix_ms; /* when it was last written to the ledger */
    bool unsaved;           /* a result came after that */
};

/* Whether a status says anything about the remote: a canceled call does not. */
bool tide_outcome_counts(tide_status status);
/* Adds the result of a call.  true: write the note now. */
bool tide_outcome_add(struct tide_outcome *outcome, tide_status status, tide_text host,
                      const char *text, uint64_t now_unix_ms);
/* Whether the last known result is a failure. */
bool tide_outcome_is_bad(const struct tide_outcome *outcome);
/* Since when the remote cannot be reached; 0: it can, as far as is known. */
uint64_t tide_outcome_offline_ms(const struct tide_outcome *outcome);

/* The note in the ledger. */
void tide_outcome_key(uint32_t account, char key_out[32]);
tide_status tide_outcome_write(const struct tide_outcome *outcome, tide_buf *out);
/* Zeroed when there is no note, or none that can be read. */
void tide_outcome_read(tide_ledger *ledger, uint32_t account, tide_mem *mem,
                       struct tide_outcome *outcome_out);

#endif
