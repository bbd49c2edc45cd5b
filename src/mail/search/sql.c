/* sql.c - compiles a query tree to a plan of flows.
 *
 * Each node becomes a part: a MATCH expression as long as everything below it is words, a plan from
 * there on up.  Either may be negated: the code that joins parts decides whether a negation becomes
 * FTS5's NOT, an exclusion, or everything except it. */
#include "mail/search/plan.h"

#include "base/check.h"

typedef struct tide_query_node node;

enum {
    /* FTS5's parser has a stack of a hundred symbols, and a level takes three. */
    MATCH_DEEP_MAX = 12,
    TEXT_BYTES_MAX = 1 << 20,
    LABELS_MAX = 64, /* with the same name, over all shards */
};

typedef enum part_kind { PART_IGNORED, PART_MATCH, PART_PLAN } part_kind;

struct part {
    part_kind kind;
    bool negated;
    unsigned deep; /* of a MATCH */
    bool slow;     /* it has a prefix */
    tide_text match;
    struct tide_plan *plan;
    struct part *next;
};

struct list {
    struct part *first, *last;
    size_t count;
};

struct maker {
    struct tide_searching *searching;
    tide_arena *arena;
    tide_buf scratch;
    tide_status rc;
    struct tide_phrase *phrases_last;
    struct tide_form *forms_last;
    bool flat; /* count hits without the query's structure */
};

/* ---- making ---- */

static void no_memory(struct maker *maker)
{
    if (maker->rc == TIDE_OK)
        maker->rc =
            tide_error_set(maker->searching->err, TIDE_NO_MEMORY, "no memory to plan a search");
}

static void *take(struct maker *maker, size_t bytes)
{
    void *made = maker->rc == TIDE_OK ? tide_arena_take(maker->arena, bytes) : NULL;
    if (made == NULL)
        no_memory(maker);
    return made;
}

/* Keeps the text in the scratch buffer, if it was written completely. */
static tide_text keep(struct maker *maker, tide_status written)
{
    tide_text kept = {NULL, 0};
    if (written == TIDE_OK && maker->rc == TIDE_OK)
        kept = (tide_text){
            tide_arena_copy(maker->arena, tide_buf_cstr(&maker->scratch), maker->scratch.bytes),
            maker->scratch.bytes};
    if (kept.data == NULL)
        no_memory(maker);
    return kept;
}

static struct tide_plan *plan_new(struct maker *maker, tide_plan_kind kind)
{
    struct tide_plan *plan = take(maker, sizeof *plan);
    if (plan == NULL)
        return NULL;
    plan->kind = kind;
    plan->low_ms = INT64_MIN;
    plan->high_ms = INT64_MAX;
    return plan;
}

static struct part *part_new(struct maker *maker, part_kind kind, bool negated)
{
    struct part *part = take(maker, sizeof *part);
    if (part == NULL)
        return NULL;
    part->kind = kind;
    part->negated = negated;
    return part;
}

static struct part *part_plan(struct maker *maker, struct tide_plan *plan, bool negated)
{
    struct part *part = plan == NULL ? NULL : part_new(maker, PART_PLAN, negated);
    if (part != NULL)
        part->plan = plan;
    return part;
}

static struct part *part_match(struct maker *maker, tide_text match, unsigned deep, bool negated)
{
    struct part *part = match.data == NULL ? NULL : part_new(maker, PART_MATCH, negated);
    if (part == NULL)
        return NULL;
    part->match = match;
    part->deep = deep;
    return part;
}

static void list_add(struct list *list, struct part *part)
{
    part->next = NULL;
    if (list->last == NULL)
        list->first = part;
    else
        list->last->next = part;
    list->last = part;
    list->count++;
}

static void plan_add(struct tide_plan *parent, struct tide_plan *child)
{
    child->next = NULL;
    if (parent->last == NULL)
        parent->first = child;
    else
        parent->last->next = child;
    parent->last = child;
}

static void plan_exclude(struct tide_plan *parent, struct tide_plan *child)
{
    child->next = parent->excludes;
    parent->excludes = child;
}

/* ---- MATCH expressions ---- */

static unsigned list_deep(const struct list *list)
{
    unsigned deep = 0;
    for (const struct part *part = list->first; part != NULL; part = part->next)
        deep = part->deep > deep ? part->deep : deep;
    return deep;
}

static tide_status list_write(struct maker *maker, const struct list *list, const char *joint)
{
    tide_status rc = tide_buf_add_text(&maker->scratch, "(");
    for (const struct part *part = list->first; part != NULL && rc == TIDE_OK; part = part->next) {
        rc = tide_buf_add(&maker->scratch, part->match.data, part->match.bytes);
        if (rc == TIDE_OK)
            rc = tide_buf_add_text(&maker->scratch, part->next == NULL ? ")" : joint);
    }
    return rc;
}

static bool list_slow(const struct list *list)
{
    bool slow = false;
    for (const struct part *part = list->first; part != NULL; part = part->next)
        slow = slow || part->slow;
    return slow;
}

/* (a AND b) NOT (c OR d); the second list may be empty. */
static struct part *match_join(struct maker *maker, const struct list *with, const char *joint,
                               const struct list *without, const char *without_joint, bool negated)
{
    TIDE_ASSERT(with->count > 0);
    if (maker->rc != TIDE_OK)
        return NULL;
    if (with->count == 1 && without->count == 0) {
        with->first->negated = negated;
        return with->first;
    }
    tide_buf_clear(&maker->scratch);
    tide_status rc = without->count == 0 ? TIDE_OK : tide_buf_add_text(&maker->scratch, "(");
    if (rc == TIDE_OK)
        rc = list_write(maker, with, joint);
    if (rc == TIDE_OK && without->count > 0) {
        rc = tide_buf_add_text(&maker->scratch, " NOT ");
        if (rc == TIDE_OK)
            rc = list_write(maker, without, without_joint);
        if (rc == TIDE_OK)
            rc = tide_buf_add_text(&maker->scratch, ")");
    }
    const unsigned deep_with = list_deep(with), deep_without = list_deep(without);
    struct part *joined = part_match(
        maker, keep(maker, rc), (deep_with > deep_without ? deep_with : deep_without) + 2, negated);
    if (joined != NULL)
        joined->slow = list_slow(with) || list_slow(without);
    return joined;
}

/* A plan for the part, its negation included. */
static struct tide_plan *plan_of(struct maker *maker, const struct part *part, bool negated)
{
    struct tide_plan *plan = part->plan;
    if (part->kind == PART_MATCH) {
        plan = plan_new(maker, TIDE_PLAN_WORDS);
        if (plan != NULL) {
            plan->text = part->match;
            plan->slow = part->slow;
        }
    }
    if (!negated || plan == NULL)
        return plan;
    struct tide_plan *rest = plan_new(maker, TIDE_PLAN_AND);
    struct tide_plan *all = plan_new(maker, TIDE_PLAN_ALL);
    if (rest == NULL || all == NULL)
        return NULL;
    plan_add(rest, all);
    plan_exclude(rest, plan);
    return rest;
}

/* A part that is too deep for one expression continues as a plan. */
static struct part *part_bounded(struct maker *maker, struct part *part)
{
    if (part == NULL || part->kind != PART_MATCH || part->deep <= MATCH_DEEP_MAX)
        return part;
    return part_plan(maker, plan_of(maker, part, false), part->negated);
}

/* ---- joining ---- */

/* Parts of an AND or OR, grouped by type. */
struct sorted {
    struct list match, match_not, plan, plan_not;
    int64_t low_ms, high_ms; /* of an AND: the intersection of all date ranges */
    bool dated;
};

static void dates_meet(struct sorted *sorted, const struct tide_plan *plan)
{
    sorted->low_ms = plan->low_ms > sorted->low_ms ? plan->low_ms : sorted->low_ms;
    sorted->high_ms = plan->high_ms < sorted->high_ms ? plan->high_ms : sorted->high_ms;
}

static void sort_parts(struct sorted *sorted, struct list *parts, bool both)
{
    *sorted = (struct sorted){.low_ms = INT64_MIN, .high_ms = INT64_MAX};
    for (struct part *part = parts->first, *next; part != NULL; part = next) {
        next = part->next;
        if (part->kind == PART_IGNORED)
            continue;
        if (part->kind == PART_MATCH) {
            list_add(part->negated ? &sorted->match_not : &sorted->match, part);
            continue;
        }
        /* A group's dates hold for all: years beyond them are not opened. */
        if (both && !part->negated)
            dates_meet(sorted, part->plan);
        if (both && !part->negated && part->plan->kind == TIDE_PLAN_ALL)
            sorted->dated = true;
        else
            list_add(part->negated ? &sorted->plan_not : &sorted->plan, part);
    }
}

static struct part *and_plan(struct maker *maker, const struct sorted *sorted)
{
    static const struct list none = {NULL, NULL, 0};
    struct tide_plan *plan = plan_new(maker, TIDE_PLAN_AND);
    if (plan == NULL)
        return NULL;
    plan->low_ms = sorted->low_ms;
    plan->high_ms = sorted->high_ms;
    struct part *words = NULL;
    if (sorted->match.count > 0)
        words = match_join(maker, &sorted->match, " AND ", &sorted->match_not, " OR ", false);
    else if (sorted->match_not.count > 0)
        words = match_join(maker, &sorted->match_not, " OR ", &none, "", true);
    struct tide_plan *matched = words == NULL ? NULL : plan_of(maker, words, false);
    for (const struct part *part = sorted->plan.first; part != NULL; part = part->next)
        if (part->plan->kind != TIDE_PLAN_HEADER)
            plan_add(plan, part->plan);
    if (matched != NULL && !words->negated)
        plan_add(plan, matched);
    if (plan->first == NULL) {
        struct tide_plan *all = plan_new(maker, TIDE_PLAN_ALL);
        if (all == NULL)
            return NULL;
        plan_add(plan, all);
    }
    /* Last, so that only messages that match the rest are read. */
    for (const struct part *part = sorted->plan.first; part != NULL; part = part->next)
        if (part->plan->kind == TIDE_PLAN_HEADER)
            plan_add(plan, part->plan);
    for (const struct part *part = sorted->plan_not.first; part != NULL; part = part->next)
        plan_exclude(plan, part->plan);
    if (matched != NULL && words->negated)
        plan_exclude(plan, matched);
    return maker->rc == TIDE_OK ? part_plan(maker, plan, false) : NULL;
}

static struct part *join_and(struct maker *maker, struct list *parts)
{
    static const struct list none = {NULL, NULL, 0};
    struct sorted sorted;
    sort_parts(&sorted, parts, true);
    if (sorted.plan.count > 0 || sorted.plan_not.count > 0 || sorted.dated)
        return and_plan(maker, &sorted);
    if (sorted.match.count > 0)
        return match_join(maker, &sorted.match, " AND ", &sorted.match_not, " OR ", false);
    if (sorted.match_not.count > 0) /* not a and not b: not (a or b) */
        return match_join(maker, &sorted.match_not, " OR ", &none, "", true);
    return part_new(maker, PART_IGNORED, false);
}

/* Words only: a or not b is not (b and not a). */
static struct part *or_match(struct maker *maker, const struct sorted *sorted)
{
    static const struct list none = {NULL, NULL, 0};
    if (sorted->match_not.count > 0)
        return match_join(maker, &sorted->match_not, " AND ", &sorted->match, " OR ", true);
    return match_join(maker, &sorted->match, " OR ", &none, "", false);
}

static struct part *join_or(struct maker *maker, struct list *parts)
{
    struct sorted sorted;
    sort_parts(&sorted, parts, false);
    const bool words = sorted.match.count > 0 || sorted.match_not.count > 0;
    if (sorted.plan.count == 0 && sorted.plan_not.count == 0)
        return words ? or_match(maker, &sorted) : part_new(maker, PART_IGNORED, false);
    if (!words && sorted.plan.count + sorted.plan_not.count == 1)
        return sorted.plan.count == 1 ? sorted.plan.first : sorted.plan_not.first;
    struct tide_plan *plan = plan_new(maker, TIDE_PLAN_OR);
    if (plan == NULL)
        return NULL;
    struct part *matched = words ? or_match(maker, &sorted) : NULL;
    if (matched != NULL) {
        struct tide_plan *child = plan_of(maker, matched, matched->negated);
        if (child != NULL)
            plan_add(plan, child);
    }
    for (const struct part *part = sorted.plan.first; part != NULL; part = part->next)
        plan_add(plan, part->plan);
    for (const struct part *part = sorted.plan_not.first; part != NULL; part = part->next) {
        struct tide_plan *child = plan_of(maker, part, true);
        if (child != NULL)
            plan_add(plan, child);
    }
    return maker->rc == TIDE_OK ? part_plan(maker, plan, false) : NULL;
}

/* ---- words ---- */

static const char *columns_of(uint8_t fields)
{
    if (fields == TIDE_IN_ANY)
        return "";
    if ((fields & TIDE_IN_SUBJECT) != 0)
        return "{subject} : ";
    if ((fields & TIDE_IN_FROM) != 0)
        return "{from} : ";
    if ((fields & TIDE_IN_FILES) != 0)
        return "{files} : ";
    if ((fields & TIDE_IN_TEXT) != 0)
        return "{text} : ";
    TIDE_ASSERT((fields & (TIDE_IN_TO | TIDE_IN_CC | TIDE_IN_BCC)) != 0);
    return "{to} : ";
}

/* "quoted", for FTS5, which splits it into the same words as the index. */
static tide_status quoted_write(struct maker *maker, tide_text folded)
{
    tide_status rc = tide_buf_add_text(&maker->scratch, "\"");
    for (size_t i = 0; i < folded.bytes && rc == TIDE_OK; i++) {
        /* No word has a control character, and ours are marks. */
        const char c = (unsigned char)folded.data[i] < 0x20 ? ' ' : folded.data[i];
        if (c == '"')
            rc = tide_buf_add(&maker->scratch, "\"", 1);
        if (rc == TIDE_OK)
            rc = tide_buf_add(&maker->scratch, &c, 1);
    }
    return rc == TIDE_OK ? tide_buf_add_text(&maker->scratch, "\"") : rc;
}

/* `other` is near the words of the term, or empty. */
static tide_text match_write(struct maker *maker, const node *term, tide_text folded,
                             tide_text other)
{
    tide_buf_clear(&maker->scratch);
    tide_status rc = tide_buf_print(&maker->scratch, "%s%s", columns_of(term->fields),
                                    term->near > 0 ? "NEAR(" : "");
    if (rc == TIDE_OK)
        rc = quoted_write(maker, folded);
    if (rc == TIDE_OK && term->near > 0) {
        rc = tide_buf_add_text(&maker->scratch, " ");
        if (rc == TIDE_OK)
            rc = quoted_write(maker, other);
        if (rc == TIDE_OK)
            rc = tide_buf_print(&maker->scratch, ", %u)", (unsigned)term->near - 1);
    }
    if (rc == TIDE_OK && term->prefix)
        rc = tide_buf_add_text(&maker->scratch, " *");
    return keep(maker, rc);
}

/* A mark, for expand.c. */
static tide_text mark_write(struct maker *maker, const node *term, size_t number)
{
    tide_buf_clear(&maker->scratch);
    return keep(maker, tide_buf_print(&maker->scratch, "%s%c%zu%c", columns_of(term->fields),
                                      TIDE_FORM_BEGIN, number, TIDE_FORM_END));
}

/* The form of a term of one word; NULL: it has none. */
static struct tide_form *form_add(struct maker *maker, const node *term, tide_text sequence)
{
    const tide_text word = {sequence.data + 1, sequence.bytes - 2};
    if (maker->searching->exact || term->exact || term->me ||
        memchr(word.data, TIDE_WORD_GAP, word.bytes) != NULL || !tide_form_can_vary(word))
        return NULL;
    struct tide_planned *planned = &maker->searching->plan;
    struct tide_form *form = take(maker, sizeof *form);
    if (form == NULL)
        return NULL;
    form->word = word;
    if (maker->forms_last == NULL)
        planned->forms = form;
    else
        maker->forms_last->next = form;
    maker->forms_last = form;
    planned->forms_count++;
    return form;
}

static void phrase_add(struct maker *maker, const struct tide_phrase *added)
{
    struct tide_planned *planned = &maker->searching->plan;
    struct tide_phrase *phrase = take(maker, sizeof *phrase);
    if (phrase == NULL)
        return;
    *phrase = *added;
    if (maker->phrases_last == NULL)
        planned->phrases = phrase;
    else
        maker->phrases_last->next = phrase;
    maker->phrases_last = phrase;
    planned->phrases_count++;
}

static struct part *wordless(struct maker *maker, const node *term)
{
    if (term->fields == TIDE_IN_ANY && !maker->searching->strict)
        return part_new(maker, PART_IGNORED, false);
    char shown[TIDE_QUERY_SHOWN_BYTES];
    tide_query_show(term->text, shown);
    maker->rc = tide_error_set(maker->searching->err, TIDE_INVALID,
                               "\"%s\" at character %u of the query has no letter and no digit",
                               shown, (unsigned)term->at);
    return NULL;
}

/* The words of a text as the index has them, and as FTS5 is asked for them. */
static void words_read(struct maker *maker, tide_text text, tide_text *sequence_out,
                       tide_text *folded_out)
{
    struct tide_searching *searching = maker->searching;
    maker->rc = tide_words_sequence(&searching->words, text, &maker->scratch, searching->err);
    if (maker->rc != TIDE_OK)
        return;
    *sequence_out = keep(maker, TIDE_OK);
    tide_buf_clear(&maker->scratch);
    *folded_out = keep(maker, tide_search_fold(text, &maker->scratch));
}

/* The column of head with these fields. */
static const char *column_of(uint8_t fields)
{
    return fields == TIDE_IN_FROM  ? "from"
           : fields == TIDE_IN_CC  ? "cc"
           : fields == TIDE_IN_BCC ? "bcc"
                                   : "to";
}

static struct part *words_part(struct maker *maker, const node *term)
{
    struct tide_searching *searching = maker->searching;
    const tide_text text = term->me ? tide_text_of(searching->shards->account) : term->text;
    tide_text sequence = TIDE_TEXT_NONE, folded = TIDE_TEXT_NONE;
    tide_text other = TIDE_TEXT_NONE, other_folded = TIDE_TEXT_NONE;
    words_read(maker, text, &sequence, &folded);
    if (term->near > 0 && maker->rc == TIDE_OK)
        words_read(maker, term->other, &other, &other_folded);
    if (maker->rc != TIDE_OK)
        return NULL;
    if (sequence.bytes == 0 || (term->near > 0 && other.bytes == 0))
        return wordless(maker, term);
    const struct tide_form *form = form_add(maker, term, sequence);
    const size_t number = maker->searching->plan.forms_count - (form != NULL);
    const tide_text match = form != NULL ? mark_write(maker, term, number)
                                         : match_write(maker, term, folded, other_folded);
    if (maker->rc != TIDE_OK)
        return NULL;
    sequence.bytes -= term->prefix; /* the last word goes on after it */
    if (!term->negated)
        phrase_add(maker, &(struct tide_phrase){.term = term,
                                                .match = match,
                                                .sequence = sequence,
                                                .other = other,
                                                .form = form,
                                                .form_number = number});
    const bool narrow = term->address || term->me;
    if (!narrow && term->fields != TIDE_IN_CC && term->fields != TIDE_IN_BCC) {
        struct part *part = part_match(maker, match, form != NULL, term->negated);
        if (part != NULL)
            part->slow = term->prefix;
        return part;
    }
    struct tide_plan *plan = plan_new(maker, TIDE_PLAN_WORDS);
    if (plan == NULL)
        return NULL;
    plan->text = match;
    plan->slow = term->prefix;
    plan->column = column_of(term->fields);
    plan->sequence = sequence;
    plan->address = narrow ? text : TIDE_TEXT_NONE;
    return part_plan(maker, plan, term->negated);
}

/* ---- headers ---- */

static struct part *header_part(struct maker *maker, const node *term)
{
    tide_text sequence = TIDE_TEXT_NONE, folded = TIDE_TEXT_NONE;
    words_read(maker, term->text, &sequence, &folded);
    if (maker->rc != TIDE_OK)
        return NULL;
    if (sequence.bytes == 0)
        return wordless(maker, term);
    struct tide_plan *plan = plan_new(maker, TIDE_PLAN_HEADER);
    if (plan == NULL)
        return NULL;
    plan->column = term->term == TIDE_TERM_LIST ? "list" : "delivered";
    plan->sequence = sequence;
    plan->address = term->address ? term->text : TIDE_TEXT_NONE;
    return part_plan(maker, plan, term->negated);
}

/* ---- labels ---- */

/* The label ids that a name may mean, from all shards. */
struct labels {
    tide_text ids[LABELS_MAX];
    size_t count;
    char nearest[TIDE_QUERY_SHOWN_BYTES];
    size_t nearest_distance;
};

static void label_add(struct maker *maker, struct labels *labels, tide_text id)
{
    for (size_t i = 0; i < labels->count; i++)
        if (tide_text_equal(labels->ids[i], id))
            return;
    if (labels->count == LABELS_MAX) {
        maker->rc = tide_error_set(maker->searching->err, TIDE_FULL,
                                   "more than %d labels have that name", LABELS_MAX);
        return;
    }
    const char *copy = tide_arena_copy(maker->arena, id.data, id.bytes);
    if (copy == NULL)
        no_memory(maker);
    else
        labels->ids[labels->count++] = (tide_text){copy, id.bytes};
}

/* Ignores case, as the comparison does. */
static size_t label_distance(tide_text a, tide_text b)
{
    char rooms[2][64];
    tide_text texts[2] = {a, b};
    for (size_t i = 0; i < 2; i++) {
        if (texts[i].bytes > sizeof rooms[i])
            return SIZE_MAX;
        for (size_t j = 0; j < texts[i].bytes; j++) {
            const char c = texts[i].data[j];
            rooms[i][j] = c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
        }
        texts[i].data = rooms[i];
    }
    return tide_text_distance(texts[0], texts[1]);
}

static void label_look(struct maker *maker, struct labels *labels, tide_text wanted, tide_text id,
                       tide_text name)
{
    if (tide_query_same_label(wanted, id) ||
        (name.bytes > 0 && tide_query_same_label(wanted, name))) {
        label_add(maker, labels, id);
        return;
    }
    const tide_text shown = name.bytes > 0 ? name : id;
    const size_t distance = label_distance(wanted, shown);
    if (distance < labels->nearest_distance && distance <= 3 && distance * 2 <= wanted.bytes) {
        labels->nearest_distance = distance;
        tide_query_show(shown, labels->nearest);
    }
}

static void labels_of_shard(struct maker *maker, struct tide_shard *shard, struct labels *labels,
                            tide_text wanted)
{
    struct tide_searching *searching = maker->searching;
    maker->rc = tide_shards_open(searching->shards, shard, searching->err);
    if (maker->rc != TIDE_OK) {
        if (maker->rc == TIDE_NOT_FOUND)
            maker->rc = TIDE_OK;
        return;
    }
    tide_auto_prepared *stmt = NULL;
    const int code =
        sqlite3_prepare_v2(shard->db.handle, "SELECT label, name FROM label", -1, &stmt, NULL);
    if (code != SQLITE_OK)
        maker->rc = tide_db_failed(&shard->db, code, "read the labels", searching->err);
    for (bool row = true; maker->rc == TIDE_OK && row;) {
        maker->rc = tide_db_step(&shard->db, stmt, &row, searching->err);
        if (maker->rc == TIDE_OK && row)
            label_look(maker, labels, wanted, tide_column_text(stmt, 0), tide_column_text(stmt, 1));
    }
    if (maker->rc == TIDE_CORRUPT)
        maker->rc = tide_shards_pass(searching->shards, shard, maker->rc, searching->err);
}

static struct tide_plan *label_plan(struct maker *maker, tide_text id)
{
    struct tide_plan *plan = plan_new(maker, TIDE_PLAN_LABEL);
    if (plan != NULL)
        plan->text = id;
    return plan;
}

static tide_status label_unknown(const struct labels *labels, const node *term, tide_error *err)
{
    char shown[TIDE_QUERY_SHOWN_BYTES];
    const bool near = labels->nearest[0] != '\0';
    tide_query_show(term->text, shown);
    return tide_error_set(err, TIDE_INVALID, "no label \"%s\" (at character %u of the query)%s%s%s",
                          shown, (unsigned)term->at, near ? "; did you mean \"" : "",
                          labels->nearest, near ? "\"?" : "");
}

/* A hint of any archive is kept. */
static void label_note(struct tide_search_labels *notes, const struct labels *labels,
                       const node *term)
{
    struct tide_search_label *note = notes->list;
    while (note < notes->list + notes->count && note->at != term->at)
        note++;
    if (note == notes->list + TIDE_SEARCH_LABELS_MAX)
        return;
    const bool first = note == notes->list + notes->count;
    if (first) {
        *note = (struct tide_search_label){.at = term->at};
        notes->count++;
    }
    note->known = note->known || labels->count > 0;
    if (first || labels->nearest[0] != '\0')
        (void)label_unknown(labels, term, &note->why);
}

tide_status tide_search_labels_check(const struct tide_search_labels *labels, tide_error *err)
{
    for (size_t i = 0; i < labels->count; i++)
        if (!labels->list[i].known)
            return tide_error_set(err, TIDE_INVALID, "%s", labels->list[i].why.text);
    return TIDE_OK;
}

static struct part *label_part(struct maker *maker, const node *term)
{
    struct tide_searching *searching = maker->searching;
    if (term->system)
        return part_plan(maker, label_plan(maker, term->text), term->negated);
    struct labels labels = {.nearest_distance = SIZE_MAX};
    for (size_t i = 0; i < searching->shards->count && maker->rc == TIDE_OK; i++)
        labels_of_shard(maker, searching->shards->list[i], &labels, term->text);
    if (maker->rc != TIDE_OK)
        return NULL;
    if (searching->labels != NULL)
        label_note(searching->labels, &labels, term);
    if (labels.count == 0 && searching->lenient)
        return part_plan(maker, plan_new(maker, TIDE_PLAN_NONE), term->negated);
    if (labels.count == 0) {
        maker->rc = label_unknown(&labels, term, searching->err);
        return NULL;
    }
    struct tide_plan *plan = label_plan(maker, labels.ids[0]);
    if (labels.count > 1 && plan != NULL) {
        struct tide_plan *any = plan_new(maker, TIDE_PLAN_OR);
        for (size_t i = 0; i < labels.count && any != NULL; i++) {
            plan = label_plan(maker, labels.ids[i]);
            if (plan != NULL)
                plan_add(any, plan);
        }
        plan = any;
    }
    return part_plan(maker, plan, term->negated);
}

/* ---- the tree ---- */

static struct part *compile(struct maker *maker, const node *at);

static struct part *leaf_part(struct maker *maker, const node *term, tide_plan_kind kind)
{
    struct tide_plan *plan = plan_new(maker, kind);
    if (plan == NULL)
        return NULL;
    if (term->term == TIDE_TERM_DATE) {
        plan->low_ms = term->low;
        plan->high_ms = term->high;
    }
    plan->low = term->low;
    plan->high = term->high;
    plan->text = term->text;
    return part_plan(maker, plan, term->negated);
}

/* The recursion is as deep as the tree (QRY3). */
static struct part *compile_all(struct maker *maker, const node *at)
{
    struct list parts = {NULL, NULL, 0};
    for (const node *child = at->first; child != NULL; child = child->next) {
        struct part *part = part_bounded(maker, compile(maker, child));
        if (part == NULL)
            return NULL;
        list_add(&parts, part);
    }
    return at->term == TIDE_TERM_AND ? join_and(maker, &parts) : join_or(maker, &parts);
}

static struct part *compile(struct maker *maker, const node *at)
{
    if (maker->rc != TIDE_OK)
        return NULL;
    switch (at->term) {
    case TIDE_TERM_AND:
    case TIDE_TERM_OR:
        return compile_all(maker, at);
    case TIDE_TERM_WORDS:
        return words_part(maker, at);
    case TIDE_TERM_LABEL:
        return label_part(maker, at);
    case TIDE_TERM_NONE:
        return leaf_part(maker, at, TIDE_PLAN_NONE);
    case TIDE_TERM_BYTES:
        return leaf_part(maker, at, TIDE_PLAN_BYTES);
    case TIDE_TERM_ATTACHMENT:
        return leaf_part(maker, at, TIDE_PLAN_ATTACHMENT);
    case TIDE_TERM_LIST:
    case TIDE_TERM_DELIVERED:
        return header_part(maker, at);
    case TIDE_TERM_USER_LABEL:
        return leaf_part(maker, at, TIDE_PLAN_USER_LABEL);
    case TIDE_TERM_MESSAGE_ID:
        return leaf_part(maker, at, TIDE_PLAN_MESSAGE_ID);
    case TIDE_TERM_ALL:
    case TIDE_TERM_DATE:
        break;
    }
    return leaf_part(maker, at, TIDE_PLAN_ALL);
}

/* ---- hits ---- */

/* The words searched for, joined as in the query, without terms that are not words and without
 * negations: enough to count hits in the matches.  The phrases are taken from the list in the order
 * in which they were added.  NULL: there are none below. */
static struct part *hits_of(struct maker *maker, const node *at, struct tide_phrase **phrase)
{
    static const struct list none = {NULL, NULL, 0};
    if (at->first == NULL) {
        if (*phrase == NULL || (*phrase)->term != at)
            return NULL;
        const tide_text match = (*phrase)->match;
        *phrase = (*phrase)->next;
        return part_match(maker, match, 0, false);
    }
    struct list parts = none;
    for (const node *child = at->first; child != NULL; child = child->next) {
        struct part *part = hits_of(maker, child, phrase);
        if (part != NULL)
            list_add(&parts, part);
        else if (at->term == TIDE_TERM_OR) /* matches without these words as well */
            maker->flat = true;
    }
    if (list_deep(&parts) > MATCH_DEEP_MAX)
        maker->flat = true;
    return parts.count == 0 || maker->flat
               ? NULL
               : match_join(maker, &parts, at->term == TIDE_TERM_AND ? " AND " : " OR ", &none, "",
                            false);
}

static void hits_plan(struct maker *maker, const tide_query *query)
{
    static const struct list none = {NULL, NULL, 0};
    struct tide_planned *planned = &maker->searching->plan;
    struct tide_phrase *phrase = planned->phrases;
    const struct part *hits = hits_of(maker, query->root, &phrase);
    if (maker->flat) {
        struct list parts = none;
        for (phrase = planned->phrases; phrase != NULL; phrase = phrase->next) {
            struct part *part = part_match(maker, phrase->match, 0, false);
            if (part != NULL)
                list_add(&parts, part);
        }
        hits = parts.count == 0 ? NULL : match_join(maker, &parts, " OR ", &none, "", false);
    }
    if (hits != NULL)
        planned->hits = hits->match;
}

/* ---- the whole query ---- */

static struct part *label_excluded(struct maker *maker, const char *id)
{
    return part_plan(maker, label_plan(maker, tide_text_of(id)), true);
}

static struct part *root_part(struct maker *maker, const tide_query *query)
{
    struct list parts = {NULL, NULL, 0};
    struct part *part = query == NULL ? part_plan(maker, plan_new(maker, TIDE_PLAN_ALL), false)
                                      : part_bounded(maker, compile(maker, query->root));
    if (part == NULL)
        return NULL;
    if (part->kind == PART_IGNORED) {
        maker->rc = tide_error_set(maker->searching->err, TIDE_INVALID,
                                   "the query has no letter and no digit to search for");
        return NULL;
    }
    list_add(&parts, part);
    if (query == NULL || !query->spam_trash) {
        struct part *spam = label_excluded(maker, "SPAM");
        struct part *trash = label_excluded(maker, "TRASH");
        if (spam == NULL || trash == NULL)
            return NULL;
        list_add(&parts, spam);
        list_add(&parts, trash);
    }
    return join_and(maker, &parts);
}

tide_status tide_plan_make(struct tide_searching *searching, const tide_query *query)
{
    struct maker maker = {.searching = searching, .arena = &searching->arena, .rc = TIDE_OK};
    tide_buf_init(&maker.scratch, searching->mem, TEXT_BYTES_MAX);
    struct tide_planned *planned = &searching->plan;
    *planned = (struct tide_planned){.hits = {"", 0}};
    struct part *root = root_part(&maker, query);
    if (root != NULL)
        planned->root = plan_of(&maker, root, root->negated);
    if (query != NULL && maker.rc == TIDE_OK)
        hits_plan(&maker, query);
    tide_buf_done(&maker.scratch);
    return maker.rc;
}
