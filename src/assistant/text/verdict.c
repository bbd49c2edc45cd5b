#include "assistant/text/verdict.h"

#include "assistant/match/fold.h"
#include "base/check.h"
#include "base/json.h"
#include "mail/mime/charset.h"

static const char *const confidences[] = {"low", "medium", "high"};

const char *tide_confidence_name(tide_confidence confidence)
{
    TIDE_ASSERT((unsigned)confidence <= TIDE_CONFIDENCE_HIGH);
    return confidences[confidence];
}

/* ---- finding JSON among words ------------------------------------------------------ */

/* The length of the object or list that begins at the front of `text`; 0: it does not end.  Only
 * brackets and strings are looked at; the parser judges the rest. */
static size_t value_bytes(tide_text text)
{
    size_t depth = 0;
    bool quoted = false;
    for (size_t i = 0; i < text.bytes; i++) {
        const char c = text.data[i];
        if (quoted) {
            i += c == '\\';
            quoted = c != '"';
        } else if (c == '"') {
            quoted = true;
        } else if (c == '{' || c == '[') {
            depth++;
        } else if ((c == '}' || c == ']') && --depth == 0) {
            return i + 1;
        }
    }
    return 0;
}

/* Parses the next value that begins with one of `fronts`, and moves on behind it.  NULL: there is
 * none.  The caller owns it. */
static json_t *next_value(tide_text *rest_io, const char *fronts, unsigned *tries_io)
{
    while (rest_io->bytes > 0 && *tries_io > 0) {
        size_t at = 0;
        while (at < rest_io->bytes &&
               (rest_io->data[at] == '\0' || strchr(fronts, rest_io->data[at]) == NULL))
            at++;
        *rest_io = (tide_text){rest_io->data + at, rest_io->bytes - at};
        if (rest_io->bytes == 0)
            return NULL;
        --*tries_io;
        const size_t bytes = value_bytes(*rest_io);
        json_t *value = NULL;
        const bool good = bytes > 0 && tide_json_parse((tide_text){rest_io->data, bytes}, &value,
                                                       NULL) == TIDE_OK;
        const size_t taken = good ? bytes : 1;
        *rest_io = (tide_text){rest_io->data + taken, rest_io->bytes - taken};
        if (good)
            return value;
    }
    return NULL;
}

/* ---- classification ---------------------------------------------------------------- */

/* One clean line that fits; the rest is cut. */
static void line_of(tide_text text, char *out, size_t out_bytes)
{
    tide_auto_buf line = tide_buf_heap(out_bytes - 1);
    (void)tide_clean_add(text, TIDE_CLEAN_LINE, &line);
    const tide_text trimmed = tide_text_trimmed(tide_buf_text(&line));
    if (trimmed.bytes > 0)
        memcpy(out, trimmed.data, trimmed.bytes);
    out[trimmed.bytes] = '\0';
}

static tide_text text_of(const json_t *object, const char *key)
{
    tide_text text = TIDE_TEXT("");
    (void)tide_json_get_text(object, key, &text, NULL);
    return text;
}

/* A word or a share of one; what is neither is low. */
static tide_confidence confidence_of(const json_t *value)
{
    if (json_is_number(value)) {
        const double share = json_number_value(value);
        if (!(share >= 0.5 && share <= 1))
            return TIDE_CONFIDENCE_LOW;
        return share >= 0.8 ? TIDE_CONFIDENCE_HIGH : TIDE_CONFIDENCE_MEDIUM;
    }
    const tide_text word = {json_string_value(value), json_string_length(value)};
    for (int i = 0; i <= TIDE_CONFIDENCE_HIGH; i++)
        if (word.data != NULL && tide_fold_equal(word, tide_text_of(confidences[i])))
            return (tide_confidence)i;
    return TIDE_CONFIDENCE_LOW;
}

/* "cs", "pt-BR"; "" for anything else. */
static void language_of(tide_text text, char out[TIDE_LANGUAGE_BYTES_MAX + 1])
{
    size_t letters = 0, part = 0;
    bool good = text.bytes >= 2 && text.bytes <= TIDE_LANGUAGE_BYTES_MAX;
    for (size_t i = 0; good && i < text.bytes; i++) {
        const char c = text.data[i];
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        good = letter || (c == '-' && letters >= 2);
        letters = letter ? letters + 1 : 0;
        part += c == '-';
        good = good && part <= 1 && (part > 0 || letters <= 3);
    }
    good = good && letters >= 2;
    if (good)
        memcpy(out, text.data, text.bytes);
    out[good ? text.bytes : 0] = '\0';
}

static bool verdict_of(const json_t *object, const tide_text *styles, size_t styles_count,
                       struct tide_verdict *verdict)
{
    *verdict = (struct tide_verdict){.style = TIDE_STYLE_NONE};
    verdict->category = tide_assistant_category_of(text_of(object, "category"));
    if (verdict->category == TIDE_ASSISTANT_NO_CATEGORY)
        return false;
    verdict->confidence = confidence_of(json_object_get(object, "confidence"));
    const tide_text style = text_of(object, "resolved_style");
    for (size_t i = 0; i < styles_count; i++)
        if (tide_text_equal(styles[i], style))
            verdict->style = (int)i;
    language_of(text_of(object, "detected_language"), verdict->language);
    line_of(text_of(object, "reasoning"), verdict->reasoning, sizeof verdict->reasoning);
    return true;
}

tide_status tide_verdict_read(tide_text answer, const tide_text *styles, size_t styles_count,
                              struct tide_verdict *verdict_out, tide_error *err)
{
    if (answer.bytes > TIDE_VERDICT_BYTES_MAX)
        return tide_error_set(err, TIDE_INVALID, "the answer is too long");
    unsigned tries = TIDE_VERDICT_TRIES_MAX;
    bool found = false;
    struct tide_verdict first;
    json_t *object = NULL;
    tide_status rc = TIDE_OK;
    while (rc == TIDE_OK && (object = next_value(&answer, "{", &tries)) != NULL) {
        struct tide_verdict verdict;
        const bool said = json_object_get(object, "category") != NULL;
        if (said && !verdict_of(object, styles, styles_count, &verdict))
            rc = tide_error_set(err, TIDE_INVALID, "the answer has an unknown category");
        else if (said && found && verdict.category != first.category)
            rc = tide_error_set(err, TIDE_INVALID, "the answer has two categories");
        else if (said && !found)
            first = verdict;
        found = found || said;
        json_decref(object);
    }
    if (rc == TIDE_OK && !found)
        rc = tide_error_set(err, TIDE_INVALID, "the answer has no category");
    if (rc == TIDE_OK)
        *verdict_out = first;
    return rc;
}

/* ---- searches ----------------------------------------------------------------------- */

static void add_search(struct tide_searches *searches, size_t count_max, const json_t *value)
{
    if (searches->count >= count_max || !json_is_string(value))
        return;
    char *query = searches->queries[searches->count];
    line_of((tide_text){json_string_value(value), json_string_length(value)}, query,
            sizeof searches->queries[0]);
    bool fresh = query[0] != '\0';
    for (size_t i = 0; i < searches->count; i++)
        fresh = fresh && strcmp(searches->queries[i], query) != 0;
    searches->count += fresh;
}

tide_status tide_searches_read(tide_text answer, size_t count_max,
                               struct tide_searches *searches_out, tide_error *err)
{
    unsigned tries = TIDE_VERDICT_TRIES_MAX;
    if (count_max > TIDE_SEARCHES_MAX)
        count_max = TIDE_SEARCHES_MAX;
    if (answer.bytes > TIDE_VERDICT_BYTES_MAX)
        return tide_error_set(err, TIDE_INVALID, "the answer is too long");
    json_t *value = next_value(&answer, "{[", &tries);
    const json_t *list = json_is_object(value) ? (json_object_get(value, "searches") != NULL
                                                      ? json_object_get(value, "searches")
                                                      : json_object_get(value, "queries"))
                                               : value;
    struct tide_searches searches = {.count = 0};
    size_t index = 0;
    const json_t *one = NULL;
    json_array_foreach(list, index, one)
    {
        add_search(&searches, count_max, one);
    }
    const bool good = json_is_array(list);
    json_decref(value);
    if (!good)
        return tide_error_set(err, TIDE_INVALID, "the answer has no list of searches");
    *searches_out = searches;
    return TIDE_OK;
}
