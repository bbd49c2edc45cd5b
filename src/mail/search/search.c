/* search.c - one page of the matches of a query; see search.h. */
#include "mail/search/plan.h"

#include "base/check.h"
#include "mail/archive/inside.h"
#include "mail/mime/message.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    LIMIT_DEFAULT = 50,
    TOKEN_BYTES_MAX = 96,
    HEAD_BYTES_MAX = 4 << 20,    /* of from and subject */
    PARSE_BYTES_MAX = 256 << 20, /* of one message, for its snippet */
    SNIPPET_ROOM = 64 << 10,
    HEADS = 6, /* texts of head that are shown */
};

/* ---- tokens ---- */

/* "n:2019-2:1234": newest first, after that place.  "o:...": oldest first.  "r:2019:1234:50": the
 * best of the messages not newer than that place, from the 50th on. */
struct token {
    struct tide_start start;
    uint64_t offset;
};

static tide_status token_bad(tide_text text, tide_error *err)
{
    char shown[TIDE_QUERY_SHOWN_BYTES];
    tide_query_show(text, shown);
    return tide_error_set(err, TIDE_INVALID, "\"%s\" is not the token of a page of this search",
                          shown);
}

/* Takes the text before the next `end`. */
static tide_text token_field(tide_text *rest, char end)
{
    const char *found = rest->bytes == 0 ? NULL : memchr(rest->data, end, rest->bytes);
    const size_t bytes = found == NULL ? rest->bytes : (size_t)(found - rest->data);
    const tide_text field = {rest->data, bytes};
    rest->data += found == NULL ? bytes : bytes + 1;
    rest->bytes -= found == NULL ? bytes : bytes + 1;
    return field;
}

static char token_kind(const struct tide_search *search)
{
    return search->ranked ? 'r' : search->oldest_first ? 'o' : 'n';
}

static bool token_read(const struct tide_search *search, struct token *token_out)
{
    tide_text rest = search->after;
    const tide_text kind = token_field(&rest, ':');
    tide_text shard = token_field(&rest, ':');
    const tide_text id = token_field(&rest, ':');
    const tide_text year = token_field(&shard, '-');
    uint64_t year_number = 0, part = 1, offset = 0, number = 0;
    if (kind.bytes != 1 || kind.data[0] != token_kind(search) ||
        !tide_text_to_u64(year, &year_number) || year_number > TIDE_SHARD_YEAR_MAX ||
        !tide_text_to_u64(id, &number) || number > INT64_MAX / 2)
        return false;
    if (shard.bytes > 0 &&
        (!tide_text_to_u64(shard, &part) || part == 0 || part >= TIDE_SHARD_PARTS_MAX))
        return false;
    if (search->ranked ? !tide_text_to_u64(rest, &offset) || offset > TIDE_SEARCH_RANKED_MAX
                       : rest.bytes > 0)
        return false;
    *token_out = (struct token){
        .start = {.given = true,
                  .inclusive = search->ranked,
                  .place = {tide_shard_key((int32_t)year_number, (uint32_t)part), (int64_t)number}},
        .offset = offset};
    return true;
}

static tide_status token_write(char kind, const struct tide_place *place, uint64_t offset,
                               tide_buf *next)
{
    char part[16] = "", behind[24] = "";
    if (place->shard % TIDE_SHARD_PARTS_MAX > 1)
        (void)snprintf(part, sizeof part, "-%u", (unsigned)(place->shard % TIDE_SHARD_PARTS_MAX));
    if (kind == 'r')
        (void)snprintf(behind, sizeof behind, ":%" PRIu64, offset);
    tide_buf_clear(next);
    return tide_buf_print(next, "%c:%u%s:%" PRId64 "%s", kind,
                          (unsigned)(place->shard / TIDE_SHARD_PARTS_MAX), part, place->id, behind);
}

tide_status tide_search_token(const struct tide_search *search, const struct tide_stored *stored,
                              tide_buf *token)
{
    const struct tide_place place = {stored->shard, stored->rowid};
    TIDE_ASSERT(!search->ranked);
    return token_write(token_kind(search), &place, 0, token);
}

/* ---- finding ---- */

struct page {
    struct tide_reader *reader;
    const struct tide_search *search;
    struct tide_searching searching;
    struct tide_ranked *list; /* from the archive's memory */
    size_t list_count;        /* elements that were allocated */
    size_t count;             /* number to show */
    size_t limit;
    bool more;
    struct token token;
    struct tide_place anchor;
};

static bool page_add(void *arg, const struct tide_place *place)
{
    struct page *page = arg;
    if (page->count == page->limit) {
        page->more = true;
        return false;
    }
    page->list[page->count++] = (struct tide_ranked){*place, 0};
    return true;
}

/* Finds the messages of the page. */
static tide_status page_find(struct page *page)
{
    struct tide_searching *searching = &page->searching;
    TIDE_TRY(tide_plan_make(searching, page->search->query));
    if (!page->search->ranked) {
        page->list = tide_mem_array(searching->mem, page->limit, sizeof *page->list);
        if (page->list == NULL)
            return tide_error_set(searching->err, TIDE_NO_MEMORY, "no memory for a page");
        page->list_count = page->limit;
        return tide_search_walk(searching, searching->plan.root, &page->token.start, page_add,
                                page);
    }
    size_t count = 0;
    TIDE_TRY(tide_search_rank(searching, &page->token.start, &page->list, &count, &page->anchor));
    page->list_count = count;
    const size_t offset = page->token.offset < count ? (size_t)page->token.offset : count;
    page->count = count - offset < page->limit ? count - offset : page->limit;
    page->more = offset + page->count < count;
    if (page->count > 0) /* else there may be no list */
        memmove(page->list, page->list + offset, page->count * sizeof *page->list);
    return TIDE_OK;
}

/* ---- showing ---- */

struct shown {
    struct tide_found found;
    tide_buf head; /* the texts of the head, one after the other */
    size_t bytes[HEADS];
    tide_buf raw;
    tide_buf snippet;
};

static tide_status head_read(struct tide_shard *shard, int64_t id, struct shown *shown,
                             tide_error *err)
{
    tide_auto_prepared *stmt = NULL;
    const int code = sqlite3_prepare_v2(shard->db.handle,
                                        "SELECT \"from\", subject, \"to\", cc, bcc, message_id,"
                                        " files, date_ms FROM head WHERE id = ?1",
                                        -1, &stmt, NULL);
    if (code != SQLITE_OK)
        return tide_db_failed(&shard->db, code, "read a head", err);
    (void)sqlite3_bind_int64(stmt, 1, id);
    bool row = false;
    tide_status rc = tide_db_step(&shard->db, stmt, &row, err);
    if (rc == TIDE_OK && row) {
        for (int i = 0; i < HEADS && rc == TIDE_OK; i++) {
            const tide_text text = tide_column_text(stmt, i);
            rc = tide_buf_add(&shown->head, text.data, text.bytes);
            shown->bytes[i] = text.bytes;
        }
        if (rc != TIDE_OK)
            (void)tide_error_set(err, rc, "no memory for the headers of a match");
        shown->found.files = tide_column_u64(stmt, HEADS);
        shown->found.has_date = sqlite3_column_type(stmt, HEADS + 1) != SQLITE_NULL;
        shown->found.date_ms = sqlite3_column_int64(stmt, HEADS + 1);
    }
    return rc;
}

/* Reads the row of one message; TIDE_NOT_FOUND is a valid result. */
static tide_status row_read(struct page *page, const struct tide_place *place, struct shown *shown)
{
    tide_error *err = page->searching.err;
    struct tide_shard *shard = NULL;
    tide_status rc = tide_reader_at(page->reader, place->shard, &shard, err);
    if (rc == TIDE_OK) {
        sqlite3_stmt *stmt = tide_db_stmt(&shard->db, TIDE_SHARD_AT);
        bool row = false;
        (void)sqlite3_bind_int64(stmt, 1, place->id);
        rc = tide_db_step(&shard->db, stmt, &row, err);
        if (rc == TIDE_OK && row)
            tide_shard_stored(shard, stmt, &shown->found.stored);
        else if (rc == TIDE_OK)
            rc = TIDE_NOT_FOUND;
        tide_db_end(stmt);
    }
    tide_buf_clear(&shown->head);
    memset(shown->bytes, 0, sizeof shown->bytes);
    if (rc == TIDE_OK)
        rc = head_read(shard, place->id, shown, err);
    return rc;
}

/* From the message itself: the index stores no text. */
static tide_status snippet_make(struct page *page, struct shown *shown)
{
    struct tide_searching *searching = &page->searching;
    tide_buf_clear(&shown->raw);
    tide_buf_clear(&shown->snippet);
    tide_status rc =
        tide_reader_raw(page->reader, &shown->found.stored, &shown->raw, searching->err);
    if (rc == TIDE_CORRUPT) /* it is a match in any case; verify reports it */
        return TIDE_OK;
    if (rc != TIDE_OK)
        return rc;
    struct tide_message message;
    tide_auto_arena arena = tide_arena_in(searching->mem, PARSE_BYTES_MAX);
    rc = tide_message_parse(tide_buf_text(&shown->raw), &arena, &message);
    if (rc == TIDE_OK)
        rc = tide_search_snippet(searching, message.text, &shown->snippet);
    else
        (void)tide_error_set(searching->err, rc, "no memory to read %s",
                             shown->found.stored.gmail_id);
    return rc;
}

static void heads_cut(struct shown *shown)
{
    tide_text *const heads[HEADS] = {&shown->found.from, &shown->found.subject,
                                     &shown->found.to,   &shown->found.cc,
                                     &shown->found.bcc,  &shown->found.message_id};
    const char *at = tide_buf_cstr(&shown->head);
    for (size_t i = 0; i < HEADS; i++) {
        *heads[i] = (tide_text){at, shown->bytes[i]};
        at += shown->bytes[i];
    }
}

static tide_status page_show(struct page *page,
                             bool (*visit)(const struct tide_found *found, void *arg), void *arg)
{
    struct shown shown = {.bytes = {0}};
    tide_mem *mem = page->searching.mem;
    tide_status rc = TIDE_OK;
    bool going = true;
    tide_buf_init(&shown.head, mem, HEAD_BYTES_MAX);
    tide_buf_init(&shown.raw, mem, TIDE_MESSAGE_BYTES_MAX);
    tide_buf_init(&shown.snippet, mem, SNIPPET_ROOM);
    for (size_t i = 0; i < page->count && rc == TIDE_OK && going; i++) {
        shown.found = (struct tide_found){.rank = page->list[i].rank};
        rc = tide_searching_wanted(&page->searching);
        if (rc == TIDE_OK)
            rc = row_read(page, &page->list[i].place, &shown);
        if (rc == TIDE_NOT_FOUND) { /* words without their message: skip */
            rc = TIDE_OK;
            continue;
        }
        if (rc == TIDE_OK && page->search->snippets)
            rc = snippet_make(page, &shown);
        if (rc != TIDE_OK)
            break;
        heads_cut(&shown);
        shown.found.snippet = (tide_text){tide_buf_cstr(&shown.snippet), shown.snippet.bytes};
        going = visit(&shown.found, arg);
    }
    tide_buf_done(&shown.snippet);
    tide_buf_done(&shown.raw);
    tide_buf_done(&shown.head);
    return rc;
}

/* ---- the page ---- */

static tide_status page_run(struct page *page,
                            bool (*visit)(const struct tide_found *found, void *arg), void *arg,
                            tide_buf *next)
{
    TIDE_TRY(page_find(page));
    TIDE_TRY(page_show(page, visit, arg));
    if (!page->more || next == NULL)
        return TIDE_OK;
    const struct tide_place *place =
        page->search->ranked ? &page->anchor : &page->list[page->count - 1].place;
    return token_write(token_kind(page->search), place, page->token.offset + page->count, next);
}

tide_status tide_search_run(tide_archive *archive, const struct tide_search *search,
                            bool (*visit)(const struct tide_found *found, void *arg), void *arg,
                            tide_buf *next, bool *more_out, tide_error *err)
{
    TIDE_ASSERT(visit != NULL);
    TIDE_ASSERT(more_out != NULL);
    if (search->limit > TIDE_SEARCH_PAGE_MAX)
        return tide_error_set(err, TIDE_INVALID, "a page has %d messages at most, not %u",
                              TIDE_SEARCH_PAGE_MAX, (unsigned)search->limit);
    if (search->ranked && search->oldest_first)
        return tide_error_set(err, TIDE_INVALID, "either the best first or the oldest first");
    struct page page = {.search = search,
                        .limit = search->limit == 0 ? LIMIT_DEFAULT : search->limit};
    if (search->after.bytes > 0 &&
        (search->after.bytes > TOKEN_BYTES_MAX || !token_read(search, &page.token)))
        return token_bad(search->after, err);
    tide_status rc = tide_reader_take_all(archive, &page.reader, err);
    if (rc == TIDE_OK)
        rc = tide_searching_init(&page.searching, &page.reader->shards, archive->mem, err);
    if (rc == TIDE_OK) {
        page.searching.descending = !search->oldest_first;
        page.searching.strict = search->strict;
        page.searching.exact = search->exact;
        page.searching.lenient = search->lenient || search->labels != NULL;
        page.searching.labels = search->labels;
        page.searching.cancel = search->cancel;
        page.searching.packer = page.reader->packer;
        rc = page_run(&page, visit, arg, next);
        tide_mem_free(archive->mem, page.list, page.list_count * sizeof *page.list);
        tide_searching_done(&page.searching);
    }
    tide_reader_drop(page.reader);
    if (rc == TIDE_OK)
        *more_out = page.more;
    return rc;
}

/* ---- counting ---- */

struct counting {
    struct tide_searching searching;
    struct tide_shard *shard;
    sqlite3_stmt *stmt; /* of `shard` */
    uint64_t count, bytes;
    tide_status rc;
};

static void counting_leave(struct counting *counting)
{
    (void)sqlite3_finalize(counting->stmt);
    counting->stmt = NULL;
    if (counting->shard != NULL)
        counting->shard->pins--;
    counting->shard = NULL;
}

static tide_status counting_enter(struct counting *counting, uint32_t key)
{
    counting_leave(counting);
    counting->shard = tide_shards_get(counting->searching.shards, key);
    counting->shard->pins++; /* the statement must not outlive its connection */
    tide_db *db = &counting->shard->db;
    const int code = sqlite3_prepare_v2(db->handle, "SELECT bytes FROM message WHERE id = ?1", -1,
                                        &counting->stmt, NULL);
    return code == SQLITE_OK ? TIDE_OK : tide_db_failed(db, code, "count", counting->searching.err);
}

static bool count_add(void *arg, const struct tide_place *place)
{
    struct counting *counting = arg;
    if (counting->shard == NULL || counting->shard->key != place->shard)
        counting->rc = counting_enter(counting, place->shard);
    bool row = false;
    if (counting->rc == TIDE_OK) {
        (void)sqlite3_bind_int64(counting->stmt, 1, place->id);
        counting->rc =
            tide_db_step(&counting->shard->db, counting->stmt, &row, counting->searching.err);
    }
    if (row) {
        counting->count++;
        counting->bytes += tide_column_u64(counting->stmt, 0);
    }
    if (counting->stmt != NULL)
        tide_db_end(counting->stmt);
    return counting->rc == TIDE_OK;
}

tide_status tide_search_count(tide_archive *archive, const tide_query *query, uint64_t *count_out,
                              uint64_t *bytes_out, tide_error *err)
{
    struct counting counting = {.rc = TIDE_OK};
    tide_auto_reader *reader = NULL;
    tide_status rc = tide_reader_take_all(archive, &reader, err);
    if (rc == TIDE_OK)
        rc = tide_searching_init(&counting.searching, &reader->shards, archive->mem, err);
    if (rc == TIDE_OK) {
        const struct tide_start start = {.given = false};
        counting.searching.packer = reader->packer;
        rc = tide_plan_make(&counting.searching, query);
        if (rc == TIDE_OK)
            rc = tide_search_walk(&counting.searching, counting.searching.plan.root, &start,
                                  count_add, &counting);
        counting_leave(&counting);
        tide_searching_done(&counting.searching);
    }
    rc = rc == TIDE_OK ? counting.rc : rc;
    if (rc == TIDE_OK) {
        *count_out = counting.count;
        *bytes_out = counting.bytes;
    }
    return rc;
}
