#include "base/check.h"
#include "base/json.h"
#include "cloudbox/mailbox/inside.h"

#include <stdio.h>

/* ---- sets: every combination of labels is kept once ---- */

void box_sets_init(struct box_sets *sets)
{
    *sets = (struct box_sets){0};
    tide_map_init(&sets->by_hash, tide_mem_heap());
    sets->sets = box_room(NULL, &sets->capacity, 1, sizeof *sets->sets);
    sets->sets[0] = (struct box_set){0};
    sets->count = 1;
}

void box_sets_done(struct box_sets *sets)
{
    box_room_free(sets->sets, sets->capacity, sizeof *sets->sets);
    box_room_free(sets->pool, sets->pool_capacity, sizeof *sets->pool);
    tide_map_done(&sets->by_hash);
}

static uint64_t hash_labels(const uint16_t *labels, size_t count)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < count; i++) {
        hash = (hash ^ labels[i]) * 0x100000001b3u;
        hash ^= hash >> 29;
    }
    return hash;
}

uint32_t box_sets_intern(struct box_sets *sets, const uint16_t *labels, size_t count)
{
    if (count == 0)
        return 0;
    TIDE_ASSERT(count <= BOX_MESSAGE_LABELS_MAX);
    uint32_t number;
    uint64_t hash = hash_labels(labels, count);
    for (;; hash++) { /* two sets with one hash stand side by side */
        if (hash == 0)
            continue;
        if (!tide_map_get(&sets->by_hash, hash, &number))
            break;
        const struct box_set *set = &sets->sets[number];
        if (set->count == count &&
            memcmp(sets->pool + set->at, labels, count * sizeof *labels) == 0)
            return number;
    }
    TIDE_ASSERT(sets->count < UINT32_MAX);
    TIDE_ASSERT(sets->pool_count + count < UINT32_MAX);
    number = (uint32_t)sets->count++;
    sets->sets = box_room(sets->sets, &sets->capacity, sets->count, sizeof *sets->sets);
    sets->pool =
        box_room(sets->pool, &sets->pool_capacity, sets->pool_count + count, sizeof *sets->pool);
    struct box_set *set = &sets->sets[number];
    *set = (struct box_set){0, (uint32_t)sets->pool_count, (uint32_t)count};
    for (size_t i = 0; i < count; i++) {
        TIDE_ASSERT(i == 0 || labels[i - 1] < labels[i]);
        sets->pool[sets->pool_count++] = labels[i];
        if (labels[i] < 64)
            set->low |= (uint64_t)1 << labels[i];
    }
    TIDE_ASSERT(tide_map_put(&sets->by_hash, hash, number));
    return number;
}

bool box_sets_has(const struct box_sets *sets, uint32_t number, uint32_t label)
{
    const struct box_set *set = &sets->sets[number];
    if (label < 64)
        return (set->low >> label & 1) != 0;
    for (size_t i = 0; i < set->count; i++)
        if (sets->pool[set->at + i] == label)
            return true;
    return false;
}

static bool among(const uint16_t *labels, size_t count, uint16_t label)
{
    for (size_t i = 0; i < count; i++)
        if (labels[i] == label)
            return true;
    return false;
}

uint32_t box_sets_change(box_mailbox *mailbox, uint32_t set, const uint16_t *add, size_t add_count,
                         const uint16_t *take, size_t take_count)
{
    uint16_t labels[BOX_MESSAGE_LABELS_MAX];
    size_t count = 0;
    size_t old_count;
    const uint16_t *old = box_mailbox_labels(mailbox, set, &old_count);
    for (size_t i = 0; i < old_count; i++)
        if (!among(take, take_count, old[i]))
            labels[count++] = old[i];
    for (size_t i = 0; i < add_count && count < BOX_MESSAGE_LABELS_MAX; i++) {
        TIDE_ASSERT(box_labels_live(mailbox, add[i]));
        size_t at = count;
        while (at > 0 && labels[at - 1] > add[i])
            at--;
        if ((at > 0 && labels[at - 1] == add[i]) || among(take, take_count, add[i]))
            continue;
        memmove(labels + at + 1, labels + at, (count - at) * sizeof *labels);
        labels[at] = add[i];
        count++;
    }
    return box_sets_intern(&mailbox->sets, labels, count);
}

uint32_t box_sets_minus(box_mailbox *mailbox, uint32_t a, uint32_t b)
{
    size_t b_count;
    const uint16_t *b_labels = box_mailbox_labels(mailbox, b, &b_count);
    uint16_t labels[BOX_MESSAGE_LABELS_MAX];
    size_t count = 0;
    size_t a_count;
    const uint16_t *a_labels = box_mailbox_labels(mailbox, a, &a_count);
    for (size_t i = 0; i < a_count; i++)
        if (!among(b_labels, b_count, a_labels[i]))
            labels[count++] = a_labels[i];
    return box_sets_intern(&mailbox->sets, labels, count);
}

const uint16_t *box_mailbox_labels(const box_mailbox *mailbox, uint32_t label_set,
                                   size_t *count_out)
{
    TIDE_ASSERT(label_set < mailbox->sets.count);
    const struct box_set *set = &mailbox->sets.sets[label_set];
    *count_out = set->count;
    return set->count == 0 ? NULL : mailbox->sets.pool + set->at;
}

bool box_mailbox_has_label(const box_mailbox *mailbox, uint32_t slot, uint32_t label)
{
    const struct box_message *message = box_mailbox_at(mailbox, slot);
    return !message->gone && box_sets_has(&mailbox->sets, message->label_set, label);
}

/* ---- the labels themselves ---- */

static const char *const system_labels[BOX_LABELS_SYSTEM] = {
    [BOX_LABEL_INBOX] = "INBOX",
    [BOX_LABEL_SPAM] = "SPAM",
    [BOX_LABEL_TRASH] = "TRASH",
    [BOX_LABEL_UNREAD] = "UNREAD",
    [BOX_LABEL_STARRED] = "STARRED",
    [BOX_LABEL_IMPORTANT] = "IMPORTANT",
    [BOX_LABEL_SENT] = "SENT",
    [BOX_LABEL_DRAFT] = "DRAFT",
    [BOX_LABEL_CHAT] = "CHAT",
    [BOX_LABEL_CATEGORY_PERSONAL] = "CATEGORY_PERSONAL",
    [BOX_LABEL_CATEGORY_SOCIAL] = "CATEGORY_SOCIAL",
    [BOX_LABEL_CATEGORY_PROMOTIONS] = "CATEGORY_PROMOTIONS",
    [BOX_LABEL_CATEGORY_UPDATES] = "CATEGORY_UPDATES",
    [BOX_LABEL_CATEGORY_FORUMS] = "CATEGORY_FORUMS",
};

static void label_new(box_mailbox *mailbox, const char *id, const char *name)
{
    size_t number = mailbox->labels_count++;
    mailbox->labels = box_room(mailbox->labels, &mailbox->labels_capacity, mailbox->labels_count,
                               sizeof *mailbox->labels);
    struct box_label_inside *label = &mailbox->labels[number];
    *label = (struct box_label_inside){0};
    label->face.number = (uint32_t)number;
    label->face.system = number < BOX_LABELS_SYSTEM;
    (void)snprintf(label->face.name, sizeof label->face.name, "%s", name);
    if (id != NULL)
        (void)snprintf(label->face.id, sizeof label->face.id, "%s", id);
    else
        (void)snprintf(label->face.id, sizeof label->face.id, "Label_%zu",
                       number - BOX_LABELS_SYSTEM + 1);
    mailbox->user_labels += !label->face.system;
}

void box_labels_init(box_mailbox *mailbox)
{
    for (size_t i = 0; i < BOX_LABELS_SYSTEM; i++)
        label_new(mailbox, system_labels[i], system_labels[i]);
    if (mailbox->spec.generated == 0)
        return; /* an account without generated mail has no labels of its own */
    for (uint32_t i = 0; i < BOX_GENERATED_USER_LABELS; i++)
        label_new(mailbox, NULL, box_generated_label(i));
}

void box_labels_done(box_mailbox *mailbox)
{
    for (size_t i = 0; i < mailbox->labels_count; i++)
        box_index_free(&mailbox->labels[i].index);
    box_room_free(mailbox->labels, mailbox->labels_capacity, sizeof *mailbox->labels);
}

bool box_labels_live(const box_mailbox *mailbox, uint32_t number)
{
    return number < mailbox->labels_count && !mailbox->labels[number].face.gone;
}

/* Counts are moved for the whole set, since UNREAD counts for all of them (BMBX5). */
void box_labels_move(box_mailbox *mailbox, uint32_t slot, uint32_t from, uint32_t to)
{
    const struct box_sets *sets = &mailbox->sets;
    const struct box_set *old = &sets->sets[from];
    const struct box_set *new = &sets->sets[to];
    bool old_unread = box_sets_has(sets, from, BOX_LABEL_UNREAD);
    bool new_unread = box_sets_has(sets, to, BOX_LABEL_UNREAD);

    for (size_t i = 0; i < new->count; i++) {
        uint16_t number = sets->pool[new->at + i];
        struct box_label_inside *label = &mailbox->labels[number];
        label->face.messages++;
        label->face.messages_unread += new_unread;
        label->threads_known = false;
        if (!box_sets_has(sets, from, number))
            box_index_add(mailbox, &label->index, slot);
    }
    for (size_t i = 0; i < old->count; i++) {
        uint16_t number = sets->pool[old->at + i];
        struct box_label_inside *label = &mailbox->labels[number];
        TIDE_ASSERT(label->face.messages > 0);
        TIDE_ASSERT(label->face.messages_unread >= old_unread);
        label->face.messages--;
        label->face.messages_unread -= old_unread;
        label->threads_known = false;
        if (!box_sets_has(sets, to, number))
            box_index_label_tidy(mailbox, number);
    }
}

uint32_t box_mailbox_labels_count(const box_mailbox *mailbox)
{
    return (uint32_t)mailbox->labels_count;
}

const struct box_label *box_mailbox_label(const box_mailbox *mailbox, uint32_t number)
{
    TIDE_ASSERT(number < mailbox->labels_count);
    return &mailbox->labels[number].face;
}

bool box_mailbox_label_by_id(const box_mailbox *mailbox, tide_text id, uint32_t *number_out)
{
    const tide_text prefix = TIDE_TEXT("Label_");
    uint64_t number = 0;
    if (id.bytes > prefix.bytes && memcmp(id.data, prefix.data, prefix.bytes) == 0) {
        tide_text digits = {id.data + prefix.bytes, id.bytes - prefix.bytes};
        if (!tide_text_to_u64(digits, &number) || number == 0 || number > mailbox->labels_count)
            return false;
        number += BOX_LABELS_SYSTEM - 1;
    } else {
        while (number < BOX_LABELS_SYSTEM &&
               !tide_text_equal(id, tide_text_of(system_labels[number])))
            number++;
        if (number == BOX_LABELS_SYSTEM)
            return false;
    }
    if (!box_labels_live(mailbox, (uint32_t)number) ||
        !tide_text_equal(id, tide_text_of(mailbox->labels[number].face.id)))
        return false; /* the second: "Label_01" is not "Label_1" */
    *number_out = (uint32_t)number;
    return true;
}

static char plain(char c, bool as_query)
{
    if (c >= 'A' && c <= 'Z')
        return (char)(c - 'A' + 'a');
    return as_query && (c == ' ' || c == '/') ? '-' : c;
}

static bool same_name(const char *name, tide_text wanted, bool as_query)
{
    for (size_t i = 0; i < wanted.bytes; i++)
        if (name[i] == '\0' || plain(name[i], as_query) != plain(wanted.data[i], as_query))
            return false;
    return name[wanted.bytes] == '\0';
}

static bool find_name(const box_mailbox *mailbox, tide_text name, bool as_query,
                      uint32_t *number_out)
{
    for (size_t i = 0; i < mailbox->labels_count; i++) {
        const struct box_label *label = &mailbox->labels[i].face;
        if (!label->gone && same_name(label->name, name, as_query)) {
            *number_out = label->number;
            return true;
        }
    }
    return false;
}

bool box_mailbox_label_by_name(const box_mailbox *mailbox, tide_text name, uint32_t *number_out)
{
    return name.bytes <= BOX_LABEL_NAME_BYTES_MAX && find_name(mailbox, name, true, number_out);
}

/* ---- changing labels ---- */

static bool name_valid(tide_text name)
{
    if (name.bytes == 0 || name.bytes > BOX_LABEL_NAME_BYTES_MAX)
        return false;
    while (name.bytes > 0) {
        size_t bytes = tide_utf8_bytes(name);
        if (bytes == 0)
            return false;
        name.data += bytes;
        name.bytes -= bytes;
    }
    return true;
}

#define COPY_TEXT(to, from) ((void)snprintf((to), sizeof(to), "%s", (from)))

tide_status box_apply_label(box_mailbox *mailbox, uint32_t number, const struct box_label *wanted)
{
    bool fresh = number == mailbox->labels_count;
    TIDE_ASSERT(number <= mailbox->labels_count);
    if (fresh &&
        (mailbox->user_labels >= BOX_LABELS_MAX || mailbox->labels_count >= BOX_LABEL_NUMBERS_MAX))
        return TIDE_FULL;
    if (!fresh && mailbox->labels[number].face.gone)
        return TIDE_NOT_FOUND;
    tide_text name = {wanted->name, strnlen(wanted->name, sizeof wanted->name)};
    if (!name_valid(name))
        return TIDE_INVALID;
    if (!fresh && mailbox->labels[number].face.system &&
        !tide_text_equal(name, tide_text_of(mailbox->labels[number].face.name)))
        return TIDE_INVALID;
    uint32_t holder;
    if (find_name(mailbox, name, false, &holder) && holder != number)
        return TIDE_EXISTS;

    if (fresh)
        label_new(mailbox, NULL, wanted->name);
    struct box_label *label = &mailbox->labels[number].face;
    COPY_TEXT(label->name, wanted->name);
    COPY_TEXT(label->list_visibility, wanted->list_visibility);
    COPY_TEXT(label->message_visibility, wanted->message_visibility);
    COPY_TEXT(label->text_color, wanted->text_color);
    COPY_TEXT(label->background_color, wanted->background_color);
    return TIDE_OK;
}

tide_status box_mailbox_label_create(box_mailbox *mailbox, const struct box_label *wanted,
                                     uint32_t *number_out)
{
    uint32_t number = (uint32_t)mailbox->labels_count;
    tide_status rc = box_apply_label(mailbox, number, wanted);
    if (rc != TIDE_OK)
        return rc;
    box_report_label(mailbox, "label_create", number);
    *number_out = number;
    return TIDE_OK;
}

tide_status box_mailbox_label_update(box_mailbox *mailbox, uint32_t number,
                                     const struct box_label *wanted)
{
    TIDE_ASSERT(number < mailbox->labels_count);
    struct box_label copy = *wanted; /* it may be the label's own struct */
    tide_status rc = box_apply_label(mailbox, number, &copy);
    if (rc == TIDE_OK)
        box_report_label(mailbox, "label_update", number);
    return rc;
}

/* Every message that had it changes, oldest first (BMBX4). */
void box_apply_label_remove(box_mailbox *mailbox, uint32_t number)
{
    TIDE_ASSERT(box_labels_live(mailbox, number));
    TIDE_ASSERT(!mailbox->labels[number].face.system);
    box_index_settle(mailbox, &mailbox->labels[number].index);
    /* Taken out, because relabelling tidies the label's own index. */
    struct box_index index = mailbox->labels[number].index;
    mailbox->labels[number].index = (struct box_index){0};
    uint16_t take[1] = {(uint16_t)number};
    for (size_t i = 0; i < index.count; i++) {
        uint32_t slot = index.slots[i];
        if (!box_mailbox_has_label(mailbox, slot, number))
            continue;
        uint32_t set = box_sets_change(mailbox, mailbox->slots[slot].label_set, NULL, 0, take, 1);
        box_apply_relabel(mailbox, slot, set);
    }
    TIDE_ASSERT(mailbox->labels[number].face.messages == 0);
    box_index_free(&index);
    mailbox->labels[number].face.gone = true;
    mailbox->user_labels--;
}

void box_mailbox_label_remove(box_mailbox *mailbox, uint32_t number)
{
    box_apply_label_remove(mailbox, number);
    box_report_label(mailbox, "label_remove", number);
}
