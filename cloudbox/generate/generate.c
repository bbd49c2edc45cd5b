#include "cloudbox/generate/generate.h"
#include "cloudbox/generate/plan.h"
#include "cloudbox/generate/labels.h"
#include "base/check.h"

#include <math.h>

/* Salts: one hash for each question, so that answers do not depend on each other. */
enum { SALT_MESSAGE = 1, SALT_BLOCK, SALT_THREAD, SALT_TWIN, SALT_SIZE, SALT_LABELS, SALT_DATE };

enum {
    ROOTS = 8,                   /* threads a block can have */
    BURST_PLACES = 36,           /* of a block that one long thread may fill */
    TWIN_ONE_IN = 87,            /* about 1 % of all, since roots are never twins */
    TWIN_BACK_MAX = 2000,        /* how far before it its twin may be */
    DAY_MS = 24 * 60 * 60 * 1000 /* of the world */
};

static const uint64_t span_ms = UINT64_C(4383) * DAY_MS; /* twelve years */

uint64_t box_mix(uint64_t a, uint64_t b)
{
    uint64_t z = a + b * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint64_t hash_of(const struct box_generator *generator, uint64_t n, uint64_t salt)
{
    return box_mix(generator->seed ^ (salt << 56), (n << 4 | salt) + 1);
}

/* ---- threads ---- */

static uint32_t root_place(uint64_t block_hash, uint32_t k)
{
    return k * (BOX_BLOCK / ROOTS) + (uint32_t)(block_hash >> (3 * k) & 7);
}

/* The root that n belongs to by its own hash, twins aside; n when it is alone
 * or a root.  `threaded_out` tells roots from loners. */
static uint32_t own_root(const struct box_generator *generator, uint32_t n, bool *threaded_out)
{
    uint32_t place = n % BOX_BLOCK;
    uint32_t first = n - place;
    uint64_t block = hash_of(generator, first / BOX_BLOCK, SALT_BLOCK);
    uint32_t stratum = place / (BOX_BLOCK / ROOTS);
    *threaded_out = true;
    if (place == root_place(block, stratum))
        return n;
    uint64_t hash = hash_of(generator, n, SALT_THREAD);
    bool burst = (block >> 40 & 31) == 0;
    if (burst && place < BURST_PLACES && place > root_place(block, 0) && (hash >> 32 & 15) != 0)
        return first + root_place(block, 0);
    uint32_t back = (uint32_t)(hash >> 8 & 3);
    if ((hash & 255) < 96 && back <= stratum) {
        uint32_t root = root_place(block, stratum - back);
        if (root < place && !(burst && root == root_place(block, 0)))
            return first + root;
    }
    *threaded_out = false;
    return n;
}

static bool may_be_twin(const struct box_generator *generator, uint32_t n)
{
    if (n == 0 || hash_of(generator, n, SALT_TWIN) % TWIN_ONE_IN != 0)
        return false;
    uint64_t block = hash_of(generator, n / BOX_BLOCK, SALT_BLOCK);
    uint32_t place = n % BOX_BLOCK;
    return place != root_place(block, place / (BOX_BLOCK / ROOTS));
}

uint32_t box_twin(const struct box_generator *generator, uint32_t n)
{
    if (!may_be_twin(generator, n))
        return n;
    uint64_t hash = hash_of(generator, n, SALT_TWIN) / TWIN_ONE_IN;
    uint32_t back = 1 + (uint32_t)(hash % (n < TWIN_BACK_MAX ? n : TWIN_BACK_MAX));
    return may_be_twin(generator, n - back) ? n : n - back;
}

uint32_t box_parent(const struct box_generator *generator, uint32_t n)
{
    bool threaded;
    uint32_t root = own_root(generator, n, &threaded);
    for (uint32_t before = n; before-- > root;) {
        if (own_root(generator, before, &threaded) == root && box_twin(generator, before) == before)
            return before;
    }
    return n;
}

/* ---- dates (BGEN3) ---- */

/* Most mail is written by day: stretches the hours from 7 to 19 at the cost of
 * the others.  Monotone, so order stays. */
static uint64_t by_day(uint64_t ms)
{
    uint64_t day = ms / DAY_MS, rest = ms % DAY_MS;
    const uint64_t hour = DAY_MS / 24;
    if (rest < 2 * hour)
        rest = rest * 7 / 2;
    else if (rest < 20 * hour)
        rest = 7 * hour + (rest - 2 * hour) * 12 / 18;
    else
        rest = 19 * hour + (rest - 20 * hour) * 5 / 4;
    return day * DAY_MS + rest;
}

/* The number of messages per day grows with time, so the time of the n-th one
 * goes with the square root of n.  Each has its own place between its
 * neighbours'. */
static uint64_t date_of(const struct box_generator *generator, uint32_t n)
{
    uint64_t span = generator->newest_ms < span_ms ? generator->newest_ms : span_ms;
    double jitter = (double)(hash_of(generator, n, SALT_DATE) >> 40) / (double)(1 << 24);
    double share = ((double)n + jitter) / (double)generator->count;
    uint64_t ms = generator->newest_ms - span + (uint64_t)(sqrt(share) * (double)span);
    ms = by_day(ms);
    return ms > generator->newest_ms ? generator->newest_ms : ms;
}

/* ---- sizes ---- */

/* 2 to the power of exponent/256, roughly, in integers alone: the same everywhere. */
static uint64_t power_of_two(uint32_t exponent)
{
    return ((uint64_t)(256 + (exponent & 255)) << (exponent >> 8)) >> 8;
}

/* Bell-shaped on a logarithmic scale around `middle` (in 1/256 of a doubling). */
static uint64_t bell(uint64_t hash, uint32_t middle, uint32_t width)
{
    uint32_t sum =
        (uint32_t)((hash & 255) + (hash >> 8 & 255) + (hash >> 16 & 255) + (hash >> 24 & 255));
    return power_of_two(middle + sum * width / 148 - 510 * width / 148);
}

/* Half of them below twice `least`, a quarter above, and so on: a long tail. */
static uint64_t tail(uint64_t hash, uint64_t least)
{
    uint32_t doublings = (uint32_t)__builtin_clzll(hash | 1);
    uint64_t size = least << (doublings > 20 ? 20 : doublings);
    return size + (size * (hash & 1023) >> 10);
}

static uint32_t size_of(const struct box_generator *generator, const struct box_traits *traits)
{
    if (generator->size_bytes > 0) {
        uint32_t size = generator->size_bytes;
        return size < BOX_SMALLEST_BYTES ? BOX_SMALLEST_BYTES : size;
    }
    uint64_t hash = hash_of(generator, traits->n, SALT_SIZE);
    uint64_t size;
    if (traits->file)
        size = tail(hash, traits->kind == BOX_PHOTOS ? 48000 : 14000);
    else if (traits->kind == BOX_NEWSLETTER)
        size = bell(hash, 3480, 230);
    else if (traits->kind <= BOX_FORUM)
        size = bell(hash, 2960, 190);
    else
        size = bell(hash, 3080, 200);
    if (size < 1300)
        size = 1300 + (hash >> 32) % 400;
    return (uint32_t)(size > BOX_LARGEST_BYTES ? BOX_LARGEST_BYTES - (hash >> 32) % 4000000 : size);
}

/* ---- traits ---- */

static box_lang lang_of(uint64_t hash)
{
    static const uint8_t shares[BOX_LANGS] = {60, 11, 8, 7, 6, 5, 3};
    uint64_t draw = hash % 100;
    uint32_t lang = 0;
    while (draw >= shares[lang])
        draw -= shares[lang++];
    return (box_lang)lang;
}

static box_kind lone_kind(uint64_t hash)
{
    static const uint16_t shares[BOX_KINDS] = {
        [BOX_TALK] = 50,      [BOX_NEWSLETTER] = 290, [BOX_SOCIAL] = 130, [BOX_RECEIPT] = 110,
        [BOX_SHIPPING] = 100, [BOX_SECURITY] = 80,    [BOX_INVOICE] = 55, [BOX_STATEMENT] = 25,
        [BOX_INVITE] = 60,    [BOX_TRAVEL] = 36,      [BOX_PHOTOS] = 20,  [BOX_FORWARD] = 14,
        [BOX_REPORT] = 14,    [BOX_SPAM] = 16,
    };
    uint64_t draw = hash % 1000;
    uint32_t kind = 0;
    while (draw >= shares[kind])
        draw -= shares[kind++];
    return (box_kind)kind;
}

void box_traits(const struct box_generator *generator, uint32_t n, struct box_traits *traits_out)
{
    struct box_traits traits = {.n = n};
    bool threaded;
    traits.root = own_root(generator, n, &threaded);
    traits.hash = hash_of(generator, n, SALT_MESSAGE);
    traits.topic = traits.root == n ? traits.hash : hash_of(generator, traits.root, SALT_MESSAGE);
    traits.date_ms = date_of(generator, n);
    traits.lang = lang_of(traits.topic >> 32);
    uint64_t hash = traits.hash;
    if (threaded) {
        uint64_t draw = (traits.topic >> 8) % 16;
        traits.kind = draw < 11 ? BOX_TALK : draw < 14 ? BOX_REVIEW : BOX_FORUM;
        if (traits.kind == BOX_REVIEW)
            traits.lang = BOX_EN;
        uint64_t share = traits.kind == BOX_TALK ? (traits.root == n ? 30 : 44) : 12;
        traits.mine = (hash >> 16) % 100 < share;
    } else {
        traits.kind = lone_kind(hash >> 8);
        traits.mine = traits.kind == BOX_TALK && (hash >> 16 & 1) == 0;
        traits.broken = (hash >> 40) % 160 == 0;
        traits.nameless = (hash >> 48) % 130 == 0;
    }
    traits.file = traits.kind == BOX_INVOICE || traits.kind == BOX_STATEMENT ||
                  traits.kind == BOX_PHOTOS ||
                  (traits.kind == BOX_TALK && (hash >> 24) % 100 < 8) ||
                  (traits.kind == BOX_TRAVEL && (hash >> 24) % 100 < 50) ||
                  (traits.kind == BOX_FORUM && (hash >> 24) % 100 < 3);
    traits.bytes = size_of(generator, &traits);
    *traits_out = traits;
}

/* ---- Message-IDs ---- */

size_t box_message_id(const struct box_traits *traits, char text_out[BOX_MESSAGE_ID_BYTES_MAX])
{
    static const char digits[] = "0123456789abcdef";
    char *p = text_out;
    uint64_t hash = box_mix(traits->hash, 77);
    for (uint32_t i = 0; i < 16; i++)
        *p++ = digits[hash >> (60 - 4 * i) & 15];
    *p++ = '.';
    for (uint32_t i = 0; i < 8; i++)
        *p++ = digits[traits->n >> (28 - 4 * i) & 15];
    *p++ = '@';
    const char *domain = box_domain(hash >> 7);
    size_t bytes = strlen(domain);
    memcpy(p, domain, bytes);
    return (size_t)(p - text_out) + bytes;
}

uint64_t box_message_id_hash(tide_text message_id)
{
    uint64_t hash = message_id.bytes + 1;
    size_t at = 0;
    for (; at + 8 <= message_id.bytes; at += 8) {
        uint64_t word = 0;
        for (uint32_t i = 0; i < 8; i++) /* compilers make one load of it */
            word |= (uint64_t)(unsigned char)message_id.data[at + i] << (8 * i);
        hash = (hash ^ word) * 0x9fb21c651e98df25u;
        hash ^= hash >> 32;
    }
    uint64_t word = 0;
    for (uint32_t i = 0; at + i < message_id.bytes; i++)
        word |= (uint64_t)(unsigned char)message_id.data[at + i] << (8 * i);
    hash = box_mix(hash ^ word, 3);
    return hash == 0 ? 1 : hash;
}

/* ---- labels ---- */

static const char *const user_labels[BOX_GENERATED_USER_LABELS] = {
    "Work",     "Invoices", "Travel",           "Family",  "Newsletters", "Receipts",
    "Projects", "Reading",  "Projects/Harbour", "Parcels", "House",       "To do",
};
enum { WORK, INVOICES, TRAVEL, FAMILY, NEWSLETTERS, RECEIPTS, PROJECTS, READING, HARBOUR, PARCELS };

const char *box_generated_label(uint32_t user_label)
{
    TIDE_ASSERT(user_label < BOX_GENERATED_USER_LABELS);
    return user_labels[user_label];
}

/* The category Gmail would file it under and the owner's own label for it. */
static const struct {
    uint8_t category;
    uint8_t user;
    uint8_t user_percent;
    uint8_t important_percent;
} habits[BOX_KINDS] = {
    [BOX_TALK] = {BOX_LABEL_CATEGORY_PERSONAL, WORK, 30, 45},
    [BOX_REVIEW] = {BOX_LABEL_CATEGORY_FORUMS, PROJECTS, 60, 30},
    [BOX_FORUM] = {BOX_LABEL_CATEGORY_FORUMS, HARBOUR, 15, 5},
    [BOX_NEWSLETTER] = {BOX_LABEL_CATEGORY_PROMOTIONS, NEWSLETTERS, 20, 1},
    [BOX_SOCIAL] = {BOX_LABEL_CATEGORY_SOCIAL, READING, 5, 2},
    [BOX_RECEIPT] = {BOX_LABEL_CATEGORY_UPDATES, RECEIPTS, 45, 12},
    [BOX_SHIPPING] = {BOX_LABEL_CATEGORY_UPDATES, PARCELS, 25, 12},
    [BOX_SECURITY] = {BOX_LABEL_CATEGORY_UPDATES, WORK, 2, 30},
    [BOX_INVOICE] = {BOX_LABEL_CATEGORY_UPDATES, INVOICES, 70, 50},
    [BOX_STATEMENT] = {BOX_LABEL_CATEGORY_UPDATES, INVOICES, 40, 40},
    [BOX_INVITE] = {BOX_LABEL_CATEGORY_PERSONAL, WORK, 30, 60},
    [BOX_TRAVEL] = {BOX_LABEL_CATEGORY_UPDATES, TRAVEL, 80, 55},
    [BOX_PHOTOS] = {BOX_LABEL_CATEGORY_PERSONAL, FAMILY, 70, 25},
    [BOX_FORWARD] = {BOX_LABEL_CATEGORY_PERSONAL, WORK, 25, 25},
    [BOX_REPORT] = {BOX_LABEL_CATEGORY_UPDATES, WORK, 1, 10},
    [BOX_SPAM] = {BOX_LABEL_CATEGORY_PROMOTIONS, READING, 0, 0},
};

static void add_label(struct box_generated *plan, uint32_t label)
{
    TIDE_ASSERT(plan->labels_count < BOX_GENERATED_LABELS_MAX);
    plan->labels[plan->labels_count++] = (uint16_t)label;
}

/* In ascending order.  At most one of INBOX, SPAM, TRASH, and SENT stands
 * without INBOX, so six are enough. */
static void label(const struct box_generator *generator, uint32_t n,
                  const struct box_traits *traits, struct box_generated *plan)
{
    uint64_t hash = hash_of(generator, n, SALT_LABELS);
    uint32_t age = generator->count - 1 - n; /* in messages */
    bool recent = age < 40 + generator->count / 50;
    bool spam = traits->kind == BOX_SPAM;
    bool trash = !spam && (hash & 127) < (traits->mine ? 0 : 2);
    bool inbox = !spam && !trash && !traits->mine && (recent || (hash >> 8 & 255) < 36);
    bool unread = !traits->mine && (hash >> 16 & 255) < (inbox && recent ? 110 : inbox ? 40 : 5);
    if (inbox)
        add_label(plan, BOX_LABEL_INBOX);
    if (spam)
        add_label(plan, BOX_LABEL_SPAM);
    if (trash)
        add_label(plan, BOX_LABEL_TRASH);
    if (unread || (spam && (hash >> 16 & 255) < 200))
        add_label(plan, BOX_LABEL_UNREAD);
    if ((hash >> 24) % 1000 < 15 && !spam)
        add_label(plan, BOX_LABEL_STARRED);
    if ((hash >> 32) % 100 < habits[traits->kind].important_percent && !traits->mine)
        add_label(plan, BOX_LABEL_IMPORTANT);
    if (traits->mine)
        add_label(plan, BOX_LABEL_SENT);
    else if (!spam)
        add_label(plan, habits[traits->kind].category);
    /* A thread is filed as a whole: the topic decides. */
    if (box_mix(traits->topic, 5) % 100 < habits[traits->kind].user_percent && !spam &&
        plan->labels_count < BOX_GENERATED_LABELS_MAX) {
        uint64_t draw = box_mix(traits->topic, 6);
        uint32_t user = draw % 8 == 0 ? (uint32_t)(draw >> 8) % BOX_GENERATED_USER_LABELS
                                      : habits[traits->kind].user;
        add_label(plan, 1000 + user);
    }
}

/* ---- the surface ---- */

void box_generate_plan(const struct box_generator *generator, uint32_t n,
                       struct box_generated *plan_out)
{
    TIDE_ASSERT(n < generator->count);
    struct box_traits traits;
    uint32_t twin = box_twin(generator, n);
    box_traits(generator, twin, &traits);
    struct box_generated plan = {
        .date_ms = twin == n ? traits.date_ms : date_of(generator, n),
        .root = traits.root,
        .bytes = traits.bytes,
        .twin = twin,
    };
    if (!traits.nameless) {
        char text[BOX_MESSAGE_ID_BYTES_MAX];
        size_t bytes = box_message_id(&traits, text);
        plan.message_id_hash = box_message_id_hash((tide_text){text, bytes});
    }
    label(generator, n, &traits, &plan);
    TIDE_ASSERT(plan.root <= n);
    *plan_out = plan;
}

void box_generate_raw(const struct box_generator *generator, uint32_t n, tide_buf *out)
{
    TIDE_ASSERT(n < generator->count);
    struct box_traits traits;
    box_traits(generator, box_twin(generator, n), &traits);
    char *room = tide_buf_reserve(out, (size_t)traits.bytes + BOX_ROOM_SPARE);
    TIDE_ASSERT(room != NULL);
    box_render(generator, &traits, room, NULL);
    out->bytes += traits.bytes;
    out->data[out->bytes] = '\0';
}

/* One UTF-8 character of well-formed text. */
static size_t character_bytes(unsigned char lead)
{
    return lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

static void add_escaped(tide_buf *out, const char *character, size_t bytes)
{
    const char *name = NULL;
    switch (*character) {
    case '&':
        name = "&amp;";
        break;
    case '<':
        name = "&lt;";
        break;
    case '>':
        name = "&gt;";
        break;
    case '"':
        name = "&quot;";
        break;
    case '\'':
        name = "&#39;";
        break;
    default:
        break;
    }
    tide_status status =
        name != NULL ? tide_buf_add_text(out, name) : tide_buf_add(out, character, bytes);
    TIDE_ASSERT(status == TIDE_OK);
}

void box_generate_snippet(const struct box_generator *generator, uint32_t n, tide_buf *out)
{
    enum { SNIPPET_CHARACTERS = 200 };
    TIDE_ASSERT(n < generator->count);
    struct box_traits traits;
    box_traits(generator, box_twin(generator, n), &traits);
    struct box_peek peek = {.bytes = 0};
    char room[2 * BOX_ROOM_SPARE];
    box_render(generator, &traits, room, &peek);
    bool gap = false;
    uint32_t written = 0;
    for (size_t at = 0; at < peek.bytes && written < SNIPPET_CHARACTERS;) {
        const char *character = peek.text + at;
        size_t bytes = character_bytes((unsigned char)*character);
        at += bytes;
        if (*character == ' ' || *character == '\r' || *character == '\n') {
            gap = written > 0;
            continue;
        }
        if (gap && written + 1 >= SNIPPET_CHARACTERS)
            break;
        if (gap)
            add_escaped(out, " ", 1);
        written += gap ? 2 : 1;
        gap = false;
        add_escaped(out, character, bytes);
    }
}
