/* html_token.h - reads HTML as a stream of text and tags.
 *
 * A tokenizer in the manner of the HTML standard and nothing after it: no tree, no stack.  It
 * accepts any bytes and reads each of them once.  Comments, doctypes and processing instructions
 * are skipped.
 *
 *     struct tide_html_reader reader = {.html = html};
 *     struct tide_html_token token;
 *     while (tide_html_next(&reader, &token))
 *         ...
 *
 * All texts point into the html. */
#ifndef TIDE_MAIL_HTML_TOKEN_H
#define TIDE_MAIL_HTML_TOKEN_H

#include "base/text.h"

typedef enum tide_html_kind {
    TIDE_HTML_TEXT,  /* characters; entities are not decoded */
    TIDE_HTML_OPEN,  /* <name ...> */
    TIDE_HTML_CLOSE, /* </name> */
} tide_html_kind;

struct tide_html_token {
    tide_html_kind kind;
    tide_text text; /* the characters, or the name of the tag */
};

struct tide_html_reader {
    tide_text html;
    size_t at;
    bool inside; /* of a tag: after its name, not after its '>' */
};

/* false: the html ends.  Attributes of the tag before that were not read are skipped. */
bool tide_html_next(struct tide_html_reader *reader, struct tide_html_token *token_out);

/* After a tag was returned: its next attribute.  The value is "" when it has none; entities are not
 * decoded.  false: there is none left. */
bool tide_html_attribute(struct tide_html_reader *reader, tide_text *name_out,
                         tide_text *value_out);

/* Ends a tag, skipping attributes that were not read.  false: the html ends before its '>', and a
 * browser ignores the tag. */
bool tide_html_tag_end(struct tide_html_reader *reader);

/* Takes everything before </name>, after the start tag of an element whose content is not markup
 * (script, style, title and the like), or up to the end of the html.  `name` in lower case. */
tide_text tide_html_raw(struct tide_html_reader *reader, const char *name);

/* What the character reference at the front of `text`, an '&', stands for.  Returns its bytes; 0
 * when it is none or its name is unknown.  In the value of an attribute (a URL, perhaps)
 * "&copy=1" is none. */
size_t tide_html_entity(tide_text text, bool in_attribute, uint32_t *code_out);

/* Writes a character as UTF-8 and returns its bytes; what is no character is written as U+FFFD. */
size_t tide_html_utf8(uint32_t code, char text_out[4]);

#endif
