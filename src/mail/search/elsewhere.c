#include "mail/search/elsewhere.h"

#include "base/check.h"
#include "mail/search/plan.h"

#include <inttypes.h>

enum { PLAN_BYTES_MAX = 16 << 20 };

struct tide_elsewhere {
    tide_mem *mem;
    struct tide_shard shard; /* the database in the place of one; never opened or closed */
    struct tide_shard *list[1];
    tide_shards shards;
    struct tide_searching searching;
    struct tide_walk walk;
    bool began, function;
};

/* ---- whether a header holds what a query asks of it ---- */

#define HOLDS "tide_header_holds"

/* (header, words in sequence, address) */
static void header_holds(sqlite3_context *context, int count, sqlite3_value **values)
{
    tide_elsewhere *self = sqlite3_user_data(context);
    tide_text texts[3];
    bool holds = false;
    TIDE_ASSERT(count == 3);
    for (int i = 0; i < 3; i++) {
        const char *data = (const char *)sqlite3_value_text(values[i]);
        texts[i] = data == NULL ? TIDE_TEXT_NONE
                                : (tide_text){data, (size_t)sqlite3_value_bytes(values[i])};
    }
    const struct tide_plan plan = {.sequence = texts[1], .address = texts[2]};
    if (tide_header_text_holds(&self->searching, &plan, texts[0], &holds) != TIDE_OK)
        sqlite3_result_error_nomem(context);
    else
        sqlite3_result_int(context, holds);
}

/* ---- open ---- */

static tide_status begin(tide_elsewhere *self, const struct tide_elsewhere_options *options,
                         tide_error *err)
{
    sqlite3 *handle = options->db->handle;
    TIDE_TRY(tide_searching_init(&self->searching, &self->shards, self->mem, err));
    self->began = true;
    self->searching.lenient = options->lenient;
    self->searching.cancel = options->cancel;
    tide_arena_init(&self->walk.arena, self->mem, PLAN_BYTES_MAX);
    self->walk.searching = &self->searching;
    self->walk.shard = &self->shard;
    const int code =
        sqlite3_create_function(handle, HOLDS, 3, SQLITE_UTF8, self, header_holds, NULL, NULL);
    if (code != SQLITE_OK)
        return tide_db_failed(&self->shard.db, code, "prepare a search", err);
    self->function = true;
    return tide_plan_make(&self->searching, options->query);
}

tide_status tide_elsewhere_open(const struct tide_elsewhere_options *options, tide_mem *mem,
                                tide_elsewhere **elsewhere_out, tide_error *err)
{
    tide_elsewhere *self = tide_mem_new(mem, sizeof *self);
    if (self == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for a search");
    self->mem = mem;
    self->shard.db = *options->db;
    self->shard.open = true;
    self->list[0] = &self->shard;
    self->shards = (tide_shards){
        .mem = mem, .account = options->account, .list = self->list, .count = 1, .capacity = 1};
    const tide_status rc = begin(self, options, err);
    if (rc == TIDE_OK)
        *elsewhere_out = self;
    else
        tide_elsewhere_close(self);
    return rc;
}

void tide_elsewhere_close(tide_elsewhere *self)
{
    if (self == NULL)
        return;
    if (self->function)
        (void)sqlite3_create_function(self->shard.db.handle, HOLDS, 3, SQLITE_UTF8, NULL, NULL,
                                      NULL, NULL);
    if (self->began) {
        tide_arena_done(&self->walk.arena);
        tide_searching_done(&self->searching);
    }
    tide_mem_free(self->mem, self, sizeof *self);
}

/* ---- the condition ---- */

struct writing {
    tide_elsewhere *self;
    tide_buf *sql;
    bool loose;
};

static tide_status quoted(tide_buf *sql, tide_text text)
{
    TIDE_TRY(tide_buf_add_text(sql, "'"));
    for (size_t i = 0; i < text.bytes; i++) {
        TIDE_TRY(tide_buf_add(sql, &text.data[i], 1));
        if (text.data[i] == '\'')
            TIDE_TRY(tide_buf_add_text(sql, "'"));
    }
    return tide_buf_add_text(sql, "'");
}

/* Of the caller's table; NULL: it does not have that header. */
static const char *header_of(const char *column)
{
    return strcmp(column, "from") == 0 ? "m.sender"
           : strcmp(column, "to") == 0 ? "m.recipients || ', ' || m.cc"
           : strcmp(column, "cc") == 0 ? "m.cc"
                                       : NULL;
}

static tide_status words_write(const struct writing *writing, const struct tide_plan *plan)
{
    tide_buf *sql = writing->sql;
    tide_text match = TIDE_TEXT_NONE;
    const char *header = plan->column == NULL ? NULL : header_of(plan->column);
    if (plan->column != NULL && header == NULL)
        return tide_buf_add_text(sql, "0");
    TIDE_TRY(tide_walk_match(&writing->self->walk, plan->text, &match));
    TIDE_TRY(tide_buf_add_text(sql, "m.id IN (SELECT rowid FROM words WHERE words MATCH "));
    TIDE_TRY(quoted(sql, match));
    TIDE_TRY(tide_buf_add_text(sql, ")"));
    if (header == NULL)
        return TIDE_OK;
    TIDE_TRY(tide_buf_print(sql, " AND " HOLDS "(%s, ", header));
    TIDE_TRY(quoted(sql, plan->sequence));
    TIDE_TRY(tide_buf_add_text(sql, ", "));
    TIDE_TRY(quoted(sql, plan->address));
    return tide_buf_add_text(sql, ")");
}

static tide_status label_write(const struct writing *writing, const struct tide_plan *plan,
                               bool negated)
{
    if (writing->loose)
        return tide_buf_add_text(writing->sql, negated ? "0" : "1");
    TIDE_TRY(tide_buf_add_text(writing->sql, "EXISTS (SELECT 1 FROM message_label ml JOIN label l"
                                             " ON l.id = ml.label WHERE ml.message = m.id AND "));
    if (plan->kind == TIDE_PLAN_USER_LABEL)
        return tide_buf_add_text(writing->sql, "l.type = 'user')");
    TIDE_TRY(tide_buf_add_text(writing->sql, "l.label = "));
    TIDE_TRY(quoted(writing->sql, plan->text));
    return tide_buf_add_text(writing->sql, ")");
}

static tide_status plan_write(const struct writing *writing, const struct tide_plan *plan,
                              bool negated);

/* `negated`: inside of an exclusion, which turns what is certain into what is possible. */
static tide_status kind_write(const struct writing *writing, const struct tide_plan *plan,
                              bool negated)
{
    tide_buf *sql = writing->sql;
    switch (plan->kind) {
    case TIDE_PLAN_ALL:
        return tide_buf_add_text(sql, "1");
    case TIDE_PLAN_NONE:
    case TIDE_PLAN_HEADER:
        break;
    case TIDE_PLAN_WORDS:
        return words_write(writing, plan);
    case TIDE_PLAN_LABEL:
    case TIDE_PLAN_USER_LABEL:
        return label_write(writing, plan, negated);
    case TIDE_PLAN_BYTES:
        return tide_buf_print(sql, "m.bytes >= %" PRId64 " AND m.bytes < %" PRId64, plan->low,
                              plan->high);
    case TIDE_PLAN_ATTACHMENT:
        return tide_buf_add_text(sql, "m.files > 0");
    case TIDE_PLAN_MESSAGE_ID:
        TIDE_TRY(tide_buf_add_text(sql, "trim(m.message_id, '<> ') = "));
        return quoted(sql, plan->text);
    case TIDE_PLAN_AND:
    case TIDE_PLAN_OR:
        for (const struct tide_plan *child = plan->first; child != NULL; child = child->next) {
            if (child != plan->first)
                TIDE_TRY(tide_buf_add_text(sql, plan->kind == TIDE_PLAN_OR ? " OR " : " AND "));
            TIDE_TRY(plan_write(writing, child, negated));
        }
        for (const struct tide_plan *child = plan->excludes; child != NULL; child = child->next) {
            TIDE_TRY(tide_buf_add_text(sql, " AND NOT "));
            TIDE_TRY(plan_write(writing, child, !negated));
        }
        return TIDE_OK;
    }
    return tide_buf_add_text(sql, "0");
}

/* As deep as the tree of the query (query_tree.h QRY3). */
static tide_status plan_write(const struct writing *writing, const struct tide_plan *plan,
                              bool negated)
{
    tide_buf *sql = writing->sql;
    TIDE_TRY(tide_buf_add_text(sql, "(("));
    TIDE_TRY(kind_write(writing, plan, negated));
    TIDE_TRY(tide_buf_add_text(sql, ")"));
    if (plan->low_ms != INT64_MIN)
        TIDE_TRY(tide_buf_print(sql, " AND m.internal_ms >= %" PRId64, plan->low_ms));
    if (plan->high_ms != INT64_MAX)
        TIDE_TRY(tide_buf_print(sql, " AND m.internal_ms < %" PRId64, plan->high_ms));
    return tide_buf_add_text(sql, ")");
}

tide_status tide_elsewhere_condition(tide_elsewhere *self, bool loose, tide_buf *sql,
                                     tide_error *err)
{
    const struct writing writing = {self, sql, loose};
    self->searching.err = err;
    const tide_status rc = plan_write(&writing, self->searching.plan.root, false);
    return rc == TIDE_FULL || rc == TIDE_NO_MEMORY
               ? tide_error_set(err, rc, "the query is too large")
               : rc;
}

/* ---- what labels alone say ---- */

typedef enum answer { NO, MAYBE, YES } answer;

struct asking {
    bool (*has)(tide_text label, void *arg);
    void *arg;
};

static answer ask(const struct asking *asking, const struct tide_plan *plan)
{
    answer all = plan->kind == TIDE_PLAN_OR ? NO : YES;
    switch (plan->kind) {
    case TIDE_PLAN_NONE:
        return NO;
    case TIDE_PLAN_LABEL:
        return asking->has(plan->text, asking->arg) ? YES : NO;
    case TIDE_PLAN_ALL:
    case TIDE_PLAN_AND:
    case TIDE_PLAN_OR:
        break;
    default:
        return MAYBE;
    }
    for (const struct tide_plan *child = plan->first; child != NULL; child = child->next) {
        const answer one = ask(asking, child);
        if (plan->kind == TIDE_PLAN_OR ? one > all : one < all)
            all = one;
    }
    for (const struct tide_plan *child = plan->excludes; child != NULL; child = child->next) {
        const answer not = (answer)(YES - ask(asking, child));
        all = not < all ? not : all;
    }
    const bool dated = plan->low_ms != INT64_MIN || plan->high_ms != INT64_MAX;
    return all == YES && dated ? MAYBE : all;
}

bool tide_elsewhere_may(const tide_elsewhere *self, bool (*has)(tide_text label, void *arg),
                        void *arg)
{
    const struct asking asking = {has, arg};
    return ask(&asking, self->searching.plan.root) != NO;
}
