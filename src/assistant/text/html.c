#include "assistant/text/html.h"

#include "assistant/match/fold.h"
#include "assistant/text/quote.h"
#include "mail/mime/html_token.h"
#include "mail/mime/message.h"

enum { DEEP_MAX = 64 /* blockquotes in each other; deeper ones are only counted */ };

struct walk {
    struct tide_html_reader reader;
    size_t from; /* of the HTML that was not converted yet */
    bool cites[DEEP_MAX];
    size_t depth, deeper; /* open blockquotes; of them beyond DEEP_MAX */
    size_t cited;         /* open ones that repeat a message */
    tide_buf *out;
};

/* Appends the text of the HTML up to `end`, in lines with '>' inside a citation. */
static tide_status convert(struct walk *walk, size_t end)
{
    const tide_text html = {walk->reader.html.data + walk->from, end - walk->from};
    walk->from = end;
    if (html.bytes == 0)
        return TIDE_OK;
    if (walk->out->bytes > 0 && walk->out->data[walk->out->bytes - 1] != '\n')
        TIDE_TRY(tide_buf_add(walk->out, "\n", 1));
    if (walk->cited == 0)
        return tide_html_text(html, walk->out);
    tide_auto_buf text = tide_buf_in(walk->out->mem, walk->out->bytes_max);
    const tide_status rc = tide_html_text(html, &text);
    if (rc != TIDE_OK && rc != TIDE_FULL)
        return rc;
    for (tide_text rest = tide_buf_text(&text); rest.bytes > 0;) {
        const tide_text line = tide_text_line(&rest);
        TIDE_TRY(tide_buf_add(walk->out, "> ", 2));
        if (line.bytes > 0)
            TIDE_TRY(tide_buf_add(walk->out, line.data, line.bytes));
        TIDE_TRY(tide_buf_add(walk->out, "\n", 1));
    }
    return rc;
}

static bool is_citation(struct tide_html_reader *reader)
{
    tide_text name = TIDE_TEXT_NONE, value = TIDE_TEXT_NONE;
    bool cites = false;
    while (tide_html_attribute(reader, &name, &value)) {
        const bool type = tide_fold_equal(name, TIDE_TEXT("type"));
        const bool class = tide_fold_equal(name, TIDE_TEXT("class"));
        cites = cites || (type && tide_fold_equal(value, TIDE_TEXT("cite"))) ||
                (class && value.bytes <= 1000 && tide_fold_contains(value, TIDE_TEXT("quote"))) ||
                tide_fold_equal(name, TIDE_TEXT("cite"));
    }
    return cites;
}

static tide_status open_quote(struct walk *walk, size_t begin)
{
    const bool cites = is_citation(&walk->reader);
    if (!tide_html_tag_end(&walk->reader))
        return TIDE_OK;
    if (walk->depth == DEEP_MAX) {
        walk->deeper++;
        return TIDE_OK;
    }
    if (cites)
        TIDE_TRY(convert(walk, begin));
    walk->cites[walk->depth++] = cites;
    walk->cited += cites;
    return TIDE_OK;
}

static tide_status close_quote(struct walk *walk)
{
    (void)tide_html_tag_end(&walk->reader);
    if (walk->deeper > 0) {
        walk->deeper--;
        return TIDE_OK;
    }
    if (walk->depth == 0)
        return TIDE_OK;
    if (walk->cites[walk->depth - 1])
        TIDE_TRY(convert(walk, walk->reader.at));
    walk->depth--;
    walk->cited -= walk->cites[walk->depth];
    return TIDE_OK;
}

/* What stands in these is no markup: a <blockquote> there is none. */
static const char *raw_element(tide_text name)
{
    static const char *const names[] = {"script", "style", "title", "iframe", "textarea"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (tide_fold_equal(name, tide_text_of(names[i])))
            return names[i];
    return NULL;
}

tide_status tide_html_quoted_text(tide_text html, tide_buf *out)
{
    struct walk walk = {.reader = {.html = html}, .out = out};
    struct tide_html_token token;
    tide_status rc = TIDE_OK;
    while (rc == TIDE_OK && tide_html_next(&walk.reader, &token)) {
        if (token.kind == TIDE_HTML_TEXT)
            continue;
        const bool quote = tide_fold_equal(token.text, TIDE_TEXT("blockquote"));
        const char *raw = token.kind == TIDE_HTML_OPEN ? raw_element(token.text) : NULL;
        if (quote && token.kind == TIDE_HTML_OPEN)
            rc = open_quote(&walk, (size_t)(token.text.data - html.data) - 1);
        else if (quote)
            rc = close_quote(&walk);
        else if (raw != NULL && tide_html_tag_end(&walk.reader))
            (void)tide_html_raw(&walk.reader, raw);
    }
    return rc == TIDE_OK ? convert(&walk, html.bytes) : rc;
}
