/* query.c - any text as a search query: parsed or refused, planned, and its words looked up in
 * an index, which must accept every expression made of them.  Each word has one other form. */
#include "fuzz.h"
#include "mail/search/plan.h"

static sqlite3_stmt *asked;

static void index_make(void)
{
    sqlite3 *handle = NULL;
    TIDE_ASSERT(sqlite3_open(":memory:", &handle) == SQLITE_OK);
    TIDE_ASSERT(
        sqlite3_exec(handle,
                     "CREATE VIRTUAL TABLE words USING fts5(subject, \"from\", \"to\", text,"
                     " files, content='', tokenize='unicode61 remove_diacritics 2');"
                     "INSERT INTO words (rowid, subject, text) VALUES (1, 'a b', 'c d')",
                     NULL, NULL, NULL) == SQLITE_OK);
    TIDE_ASSERT(sqlite3_prepare_v2(handle, "SELECT rowid FROM words WHERE words MATCH ?1", -1,
                                   &asked, NULL) == SQLITE_OK);
}

static void ask(tide_text match)
{
    TIDE_ASSERT(match.data[match.bytes] == '\0');
    (void)sqlite3_bind_text(asked, 1, match.data, (int)match.bytes, SQLITE_STATIC);
    int code = sqlite3_step(asked);
    TIDE_ASSERT(code == SQLITE_ROW || code == SQLITE_DONE);
    (void)sqlite3_reset(asked);
}

/* A walk that knows the forms of all words. */
static void forms_make(struct tide_walk *walk)
{
    const struct tide_planned *plan = &walk->searching->plan;
    const struct tide_form *form = plan->forms;
    walk->forms = tide_arena_take(&walk->arena, (plan->forms_count + 1) * sizeof *walk->forms);
    TIDE_ASSERT(walk->forms != NULL);
    for (size_t i = 0; i < plan->forms_count; i++, form = form->next) {
        walk->forms[i] = tide_arena_take(&walk->arena, sizeof **walk->forms);
        TIDE_ASSERT(walk->forms[i] != NULL);
        walk->forms[i]->list[0] = form->word;
        walk->forms[i]->list[1] = TIDE_TEXT("form");
        walk->forms[i]->count = 2;
    }
    TIDE_ASSERT(form == NULL);
}

static void ask_words(struct tide_walk *walk, tide_text text)
{
    tide_text match;
    TIDE_ASSERT(tide_walk_match(walk, text, &match) == TIDE_OK);
    ask(match);
}

static void ask_all(struct tide_walk *walk, const struct tide_plan *plan)
{
    for (; plan != NULL; plan = plan->next) {
        if (plan->kind == TIDE_PLAN_WORDS)
            ask_words(walk, plan->text);
        TIDE_ASSERT((plan->first != NULL) ==
                    (plan->kind == TIDE_PLAN_AND || plan->kind == TIDE_PLAN_OR));
        ask_all(walk, plan->first);
        ask_all(walk, plan->excludes);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (asked == NULL)
        index_make();
    tide_text text = fuzz_exact((tide_text){(const char *)data, bytes});
    tide_query *query = NULL;
    tide_error err = {TIDE_OK, 0, ""};
    tide_status rc = tide_query_parse(text, 1710072000000, 3600, tide_mem_heap(), &query, &err);
    free((void *)(uintptr_t)text.data);
    TIDE_ASSERT(rc == TIDE_OK || (rc == TIDE_INVALID && err.text[0] != '\0'));
    if (rc != TIDE_OK)
        return 0;
    tide_query_check(query);
    tide_shards shards = {.mem = tide_mem_heap(), .account = "me@example.com"};
    struct tide_searching searching;
    TIDE_ASSERT(tide_searching_init(&searching, &shards, tide_mem_heap(), &err) == TIDE_OK);
    rc = tide_plan_make(&searching, query);
    TIDE_ASSERT(rc == TIDE_OK || rc == TIDE_INVALID); /* a label that no archive has */
    if (rc == TIDE_OK) {
        struct tide_walk walk = {.searching = &searching};
        tide_arena_init(&walk.arena, tide_mem_heap(), 64 << 20);
        forms_make(&walk);
        ask_all(&walk, searching.plan.root);
        if (searching.plan.hits.bytes > 0)
            ask_words(&walk, searching.plan.hits);
        tide_arena_done(&walk.arena);
    }
    tide_searching_done(&searching);
    tide_query_free(query);
    return 0;
}
