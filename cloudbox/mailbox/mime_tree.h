/* mime_tree.h - the parts of a message, as borrowed pieces of its bytes.
 *
 * Private to mime*.c.  The structure is found here in one pass over the lines,
 * with a stack of its own: nesting of any depth costs no stack of C, and what
 * is found is always the same (BMIM1).  GMime reads what is hard about headers:
 * parameters, encoded words and the names of charsets.
 *
 * Invariants:
 *   BTRE1  part 0 is the message; a parent stands before its children.
 *   BTRE2  bodies lie within their parent's body.
 *   BTRE3  at most BOX_PARTS_MAX parts and BOX_PARTS_DEEP levels (BMIM2).
 */
#ifndef BOX_MIME_TREE_H
#define BOX_MIME_TREE_H

#include "cloudbox/mailbox/mime.h"

enum {
    BOX_TYPE_BYTES = 128,          /* "text/plain"; longer ones are cut */
    BOX_PARAM_BYTES_MAX = 16384,   /* of a structured header that is looked into */
    BOX_VALUE_BYTES_MAX = 1 << 20, /* of any header's value */
    BOX_HEADERS_TOLD_MAX = 20000,  /* of one message */
};

typedef enum box_transfer {
    BOX_TRANSFER_PLAIN,
    BOX_TRANSFER_BASE64,
    BOX_TRANSFER_QUOTED,
    BOX_TRANSFER_UU
} box_transfer;

struct box_part {
    uint32_t parent;           /* itself for the message */
    uint32_t depth;            /* 0 for the message */
    uint32_t place;            /* among its siblings */
    uint32_t children;         /* how many */
    tide_text head;            /* header lines, without the empty one */
    tide_text body;            /* as it was sent */
    char type[BOX_TYPE_BYTES]; /* as it says, in lower case */
    bool hollow;               /* a multipart without parts */
    char charset[64];          /* "" when not given */
    box_transfer transfer;
    tide_text boundary; /* of a multipart; in the arena */
    tide_text filename; /* UTF-8, in the arena; empty when it has none */
    bool attached;      /* Content-Disposition: attachment */
    bool inlined;       /* Content-Disposition: inline */
};

struct box_tree {
    tide_arena arena;
    struct box_part *parts;
    size_t capacity;
    uint32_t count;
};

void box_tree_init(struct box_tree *tree, tide_text raw);
void box_tree_done(struct box_tree *tree);
/* "", "0", "1.0"; in the tree's arena. */
tide_text box_part_id(struct box_tree *tree, uint32_t index);
/* The type it declares; a multipart without parts is a text. */
const char *box_part_type(const struct box_part *part);
bool box_part_is_text(const struct box_part *part);
bool box_part_is_multipart(const struct box_part *part);
/* Its body decoded from the transfer encoding, up to `bytes_max` of what was
 * sent; with `out` NULL it is only counted.  Returns the count. */
size_t box_part_decode(const struct box_part *part, size_t bytes_max, tide_buf *out);

/* ---- header lines ---- */

/* The block of header lines at the start of `text` and what follows the empty
 * line. */
void box_head_split(tide_text text, tide_text *head_out, tide_text *body_out);
/* Takes the next header off `rest`; lines that are none are skipped.  The value
 * is as it was sent, folds included. */
bool box_head_next(tide_text *rest, tide_text *name_out, tide_text *raw_value_out);
bool box_is(tide_text name, const char *wanted); /* case aside */
/* Unfolded, without surrounding spaces, no NUL; bytes as they are. */
tide_text box_value_plain(tide_text raw_value, tide_arena *arena);
/* The same with encoded words decoded, as well-formed UTF-8. */
tide_text box_value_decoded(tide_text raw_value, tide_arena *arena);

/* ---- text ---- */

bool box_utf8_valid(tide_text text);
/* Appends as well-formed UTF-8; what the charset does not know becomes U+FFFD. */
void box_add_utf8(tide_buf *out, const char *charset, tide_text text);
/* The body of a text part as UTF-8. */
void box_part_text(const struct box_part *part, size_t bytes_max, tide_buf *out);
/* What a reader of the HTML sees. */
void box_add_html_text(tide_buf *out, tide_text html);

tide_text box_arena_text(tide_arena *arena, const char *data, size_t bytes);

#endif
