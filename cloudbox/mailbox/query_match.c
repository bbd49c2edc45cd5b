/* query_match.c - whether one message matches; see query.h. */
#include "cloudbox/mailbox/query_tree.h"

#include "base/check.h"

typedef struct box_query_node node;

enum {
    RAW_BYTES_MAX = 256 << 20,
    FOLDED_BYTES_MAX = 256 << 20,
    ARENA_BYTES_MAX = 1 << 30,
};

/* One message under the eye: its parts are made when a term first asks. */
struct look {
    box_mailbox *mailbox;
    uint32_t slot;
    const struct box_message *message;
    tide_text raw;
    bool has_raw, has_head, has_body;
    struct box_view head, body;
    tide_buf raw_scratch;
    tide_buf folded;      /* of whatever is compared at the moment */
    tide_buf folded_head; /* from, to, cc, bcc, subject: one a line */
    tide_buf folded_text;
    tide_arena arena;
};

static tide_text look_raw(struct look *look)
{
    if (!look->has_raw) {
        tide_mem *mem = tide_mem_heap();
        tide_buf_init(&look->raw_scratch, mem, RAW_BYTES_MAX);
        tide_buf_init(&look->folded, mem, FOLDED_BYTES_MAX);
        tide_buf_init(&look->folded_head, mem, FOLDED_BYTES_MAX);
        tide_buf_init(&look->folded_text, mem, FOLDED_BYTES_MAX);
        tide_arena_init(&look->arena, mem, ARENA_BYTES_MAX);
        look->raw = box_mailbox_raw(look->mailbox, look->slot, &look->raw_scratch);
        look->has_raw = true;
    }
    return look->raw;
}

static void look_done(struct look *look)
{
    if (!look->has_raw)
        return;
    tide_buf_done(&look->raw_scratch);
    tide_buf_done(&look->folded);
    tide_buf_done(&look->folded_head);
    tide_buf_done(&look->folded_text);
    tide_arena_done(&look->arena);
}

static const struct box_view *look_head(struct look *look)
{
    if (!look->has_head) {
        const tide_text raw = look_raw(look);
        box_mime_headers(raw, &look->arena, &look->head);
        look->has_head = true;
    }
    return &look->head;
}

static const struct box_view *look_body(struct look *look)
{
    if (!look->has_body) {
        const tide_text raw = look_raw(look);
        box_mime_view(raw, &look->arena, &look->body);
        look->has_body = true;
    }
    return &look->body;
}

static bool contains(const tide_buf *folded, tide_text piece)
{
    return piece.bytes <= folded->bytes &&
           memmem(folded->data, folded->bytes, piece.data, piece.bytes) != NULL;
}

static bool text_contains(struct look *look, tide_text text, tide_text piece)
{
    tide_buf_clear(&look->folded);
    box_query_fold(text, &look->folded);
    return contains(&look->folded, piece);
}

/* In the head first: it is cheap, and what stands there need not be looked for
 * in the body. */
static bool words_match(struct look *look, tide_text words)
{
    const struct box_view *head = look_head(look);
    if (look->folded_head.bytes == 0) {
        const tide_text fields[] = {head->from, head->to, head->cc, head->bcc, head->subject};
        for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
            box_query_fold(fields[i], &look->folded_head);
            (void)tide_buf_add(&look->folded_head, "\n", 1); /* no phrase goes across */
        }
    }
    if (contains(&look->folded_head, words))
        return true;
    const struct box_view *body = look_body(look);
    if (look->folded_text.bytes == 0)
        box_query_fold(body->text, &look->folded_text);
    return contains(&look->folded_text, words);
}

static bool filename_match(struct look *look, tide_text name)
{
    const tide_text names = look_body(look)->filenames;
    for (size_t at = 0; at < names.bytes;) {
        const char *end = memchr(names.data + at, '\n', names.bytes - at);
        const size_t bytes = end != NULL ? (size_t)(end - names.data) - at : names.bytes - at;
        if (text_contains(look, (tide_text){names.data + at, bytes}, name))
            return true;
        at += bytes + 1;
    }
    return false;
}

static tide_text header_of(struct look *look, box_query_header header)
{
    const struct box_view *head = look_head(look);
    switch (header) {
    case BOX_QUERY_FROM:
        return head->from;
    case BOX_QUERY_TO:
        return head->to;
    case BOX_QUERY_CC:
        return head->cc;
    case BOX_QUERY_BCC:
        return head->bcc;
    case BOX_QUERY_LIST:
        return head->list_id;
    case BOX_QUERY_DELIVERED_TO:
        break;
    }
    return head->delivered_to;
}

static bool message_id_match(struct look *look, tide_text wanted)
{
    tide_text id = look_head(look)->message_id;
    if (id.bytes >= 2 && id.data[0] == '<' && id.data[id.bytes - 1] == '>')
        id = (tide_text){id.data + 1, id.bytes - 2};
    return tide_text_equal(id, wanted);
}

static bool has_user_label(struct look *look)
{
    size_t count = 0;
    const uint16_t *labels = box_mailbox_labels(look->mailbox, look->message->label_set, &count);
    return count > 0 && labels[count - 1] >= BOX_LABELS_SYSTEM; /* they are sorted */
}

static bool in_range(const node *at, uint64_t number)
{
    return number >= at->low && (at->high == UINT64_MAX || number < at->high);
}

static bool holds(struct look *look, const node *at)
{
    switch (at->term) {
    case BOX_TERM_ALL:
        return true;
    case BOX_TERM_LABEL:
        return box_mailbox_has_label(look->mailbox, look->slot, at->label);
    case BOX_TERM_DATE:
        return in_range(at, look->message->date_ms);
    case BOX_TERM_SIZE:
        return in_range(at, look->message->bytes);
    case BOX_TERM_USER_LABELS:
        return has_user_label(look);
    case BOX_TERM_MESSAGE_ID:
        return message_id_match(look, at->text);
    case BOX_TERM_HEADER:
        return text_contains(look, header_of(look, at->header), at->text);
    case BOX_TERM_SUBJECT:
        return text_contains(look, look_head(look)->subject, at->text);
    case BOX_TERM_WORDS:
        return words_match(look, at->text);
    case BOX_TERM_FILENAME:
        return filename_match(look, at->text);
    case BOX_TERM_ATTACHMENT:
        return look_body(look)->has_attachment;
    case BOX_TERM_AND:
    case BOX_TERM_OR:
    case BOX_TERM_NONE:
        break;
    }
    return false;
}

/* As deep as the groups of the query, which are bounded. */
static bool matches(struct look *look, const node *at)
{
    if (at->term != BOX_TERM_AND && at->term != BOX_TERM_OR)
        return holds(look, at) != at->negated;
    const bool both = at->term == BOX_TERM_AND;
    for (const node *child = at->first; child != NULL; child = child->next)
        if (matches(look, child) != both)
            return !both;
    return both;
}

bool box_query_match(const box_query *query, box_mailbox *mailbox, uint32_t slot)
{
    struct look look;
    look.mailbox = mailbox;
    look.slot = slot;
    look.message = box_mailbox_at(mailbox, slot);
    look.has_raw = look.has_head = look.has_body = false;
    TIDE_ASSERT(look.message != NULL);
    const bool found = matches(&look, query->root);
    look_done(&look);
    return found;
}
