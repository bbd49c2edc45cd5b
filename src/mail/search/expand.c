/* expand.c - the MATCH expression of one shard: a plan's, with the forms that the shard has.
 *
 * A plan is made once for all shards, and a shard that is never walked is never asked for its words.
 * So an expression has a mark where a word with forms stands; it is replaced when a flow is opened. */
#include "mail/search/plan.h"

#include "base/check.h"

enum { TEXT_BYTES_MAX = 32 << 20 };

static tide_status no_memory(const struct tide_walk *walk)
{
    return tide_error_set(walk->searching->err, TIDE_NO_MEMORY,
                          "no memory for the forms of a word");
}

static const struct tide_form *form_at(const struct tide_walk *walk, size_t number)
{
    const struct tide_form *form = walk->searching->plan.forms;
    for (size_t i = 0; i < number && form != NULL; i++)
        form = form->next;
    return form;
}

tide_status tide_walk_forms(struct tide_walk *walk, size_t number,
                            const struct tide_words_found **found_out)
{
    const struct tide_form *form = form_at(walk, number);
    TIDE_ASSERT(form != NULL);
    if (walk->forms == NULL) {
        const size_t count = walk->searching->plan.forms_count;
        walk->forms = tide_arena_take(&walk->arena, count * sizeof(struct tide_words_found *));
        if (walk->forms == NULL)
            return no_memory(walk);
        memset(walk->forms, 0, count * sizeof(struct tide_words_found *));
    }
    if (walk->forms[number] == NULL) {
        struct tide_words_found *found = tide_arena_take(&walk->arena, sizeof *found);
        if (found == NULL)
            return no_memory(walk);
        found->count = 0;
        TIDE_TRY(tide_forms_find(walk, form, found));
        walk->forms[number] = found;
    }
    *found_out = walk->forms[number];
    return TIDE_OK;
}

/* ("invoice" OR "invoices"); words of the index have no quotation marks. */
static tide_status forms_write(const struct tide_words_found *found, tide_buf *out)
{
    for (size_t i = 0; i < found->count; i++) {
        TIDE_TRY(tide_buf_add_text(out, i == 0 ? "(\"" : " OR \""));
        TIDE_TRY(tide_buf_add(out, found->list[i].data, found->list[i].bytes));
        TIDE_TRY(tide_buf_add_text(out, "\""));
    }
    return tide_buf_add_text(out, ")");
}

tide_status tide_walk_match(struct tide_walk *walk, tide_text text, tide_text *match_out)
{
    *match_out = text;
    if (text.bytes == 0 || memchr(text.data, TIDE_FORM_BEGIN, text.bytes) == NULL)
        return TIDE_OK;
    tide_auto_buf out = tide_buf_in(walk->searching->mem, TEXT_BYTES_MAX);
    tide_status rc = TIDE_OK;
    for (size_t at = 0; at < text.bytes && rc == TIDE_OK;) {
        size_t run = at;
        while (run < text.bytes && text.data[run] != TIDE_FORM_BEGIN)
            run++;
        rc = tide_buf_add(&out, text.data + at, run - at);
        at = run;
        if (at == text.bytes || rc != TIDE_OK)
            break;
        size_t number = 0;
        for (at++; text.data[at] != TIDE_FORM_END; at++)
            number = number * 10 + (size_t)(text.data[at] - '0');
        at++;
        const struct tide_words_found *found = NULL;
        TIDE_TRY(tide_walk_forms(walk, number, &found));
        rc = forms_write(found, &out);
    }
    if (rc != TIDE_OK)
        return no_memory(walk);
    const char *copy = tide_arena_copy(&walk->arena, tide_buf_cstr(&out), out.bytes);
    if (copy == NULL)
        return no_memory(walk);
    *match_out = (tide_text){copy, out.bytes};
    return TIDE_OK;
}
