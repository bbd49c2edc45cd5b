/* page.h - what all listings of Gmail share: page sizes and page tokens.
 *
 * A token is opaque text: a position in two numbers and a check over them and
 * over the key of the listing it belongs to.  A token of another query, of
 * another mailbox, or an invented one does not open.  It holds no state of ours, so
 * any number of listings can be under way.
 */
#ifndef BOX_GMAIL_PAGE_H
#define BOX_GMAIL_PAGE_H

#include "cloudbox/gate/service.h"

enum {
    BOX_PAGE_DEFAULT = 100,
    BOX_PAGE_MAX = 500,
    BOX_PAGE_TOKEN_BYTES = 3 * 16 + 1,
};

/* maxResults.  false: the answer is a 400; one beyond the limit is also a
 * violation in the referee's book. */
bool box_page_size(struct box_call *call, uint32_t *size_out);

/* The key of a listing, put together from all that decides what it lists. */
uint64_t box_page_key(const struct box_call *call, const char *kind);
uint64_t box_page_key_text(uint64_t key, tide_text text);
uint64_t box_page_key_number(uint64_t key, uint64_t number);

struct box_page_at {
    uint64_t first;
    uint64_t second;
};
void box_page_token(uint64_t key, struct box_page_at at, char token_out[BOX_PAGE_TOKEN_BYTES]);
/* Where the call's pageToken stands, `start` without one.  false: the answer is
 * a 400. */
bool box_page_open(struct box_call *call, uint64_t key, struct box_page_at start,
                   struct box_page_at *at_out);

/* Whether a fault of that name strikes; never when there are no faults. */
bool box_page_fault(struct box_call *call, const char *fault);

/* Members of an answer.  Texts are known to be plain ASCII, so nothing fails;
 * a value is taken. */
void box_page_set_value(json_t *object, const char *key, json_t *value);
void box_page_set(json_t *object, const char *key, const char *text);
void box_page_set_id(json_t *object, const char *key, uint64_t id);
void box_page_set_number(json_t *object, const char *key, uint64_t number); /* as a string */

#endif
