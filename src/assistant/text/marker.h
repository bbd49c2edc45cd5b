/* marker.h - the scissors line of a draft: above it the user writes to the assistant, below it is
 * what goes to the recipient (J11, J13, J14).
 *
 * The user edits the draft in any mail program: the sign may come back without its variation
 * selector, in the middle of a line, twice, only in a repeated message, or not at all.  The first
 * one outside repeated text counts.
 *
 * Invariants:
 *   MRK1  tide_marker_find() of what tide_draft_add() wrote gives back notice and text.
 *   MRK2  what tide_draft_add() writes contains the sign exactly once, whatever the model wrote.
 *   MRK3  an instruction has at most TIDE_INSTRUCTION_BYTES_MAX bytes, whole characters.
 */
#ifndef TIDE_ASSISTANT_TEXT_MARKER_H
#define TIDE_ASSISTANT_TEXT_MARKER_H

#include "base/buf.h"

/* U+2702 U+FE0F */
#define TIDE_MARKER "\xe2\x9c\x82\xef\xb8\x8f"

enum {
    TIDE_INSTRUCTION_BYTES_MAX = 4000,
    TIDE_DRAFT_BYTES_MAX = 64 << 10, /* the text of a draft */
};

struct tide_marked {
    bool found;
    unsigned further;       /* signs below the first one, outside repeated text */
    tide_text above, below; /* trimmed; without a sign all is `below` */
};

/* Borrowed from `body`, the text of a draft. */
void tide_marker_find(tide_text body, struct tide_marked *marked_out);

/* The instruction of a rework: the text above the sign, without lines of ours and repeated ones;
 * without one, the default (J13). */
tide_status tide_rework_instruction(const struct tide_marked *marked, tide_buf *out);
/* The notes of a draft that the user began: above the sign, or all of it (J14).  May be empty. */
tide_status tide_manual_notes(const struct tide_marked *marked, tide_buf *out);

/* ---- writing ---- */

/* Above the sign of the last automatic draft (J26). */
extern const char tide_last_rework_notice[];

/* Appends a draft's body: notice (NULL: none), sign, text.  Signs in the text are taken out, it is
 * cut at TIDE_DRAFT_BYTES_MAX. */
tide_status tide_draft_add(const char *notice, tide_text text, tide_buf *out);
/* The text of a draft that says why there is none (J11).  `reason` is shown in one line, cut. */
tide_status tide_draft_error_add(tide_text reason, tide_buf *out);

#endif
