/* page.c - see page.h. */
#include "cloudbox/gmail/page.h"

#include "base/check.h"
#include "base/hash.h"
#include "cloudbox/gate/faults.h"
#include "cloudbox/gate/user.h"
#include "cloudbox/mailbox/mailbox.h"

#include <inttypes.h>
#include <stdio.h>

bool box_page_size(struct box_call *call, uint32_t *size_out)
{
    const tide_text text = box_call_param(call, "maxResults");
    uint64_t size = BOX_PAGE_DEFAULT;
    if (text.data != NULL) {
        const bool number = tide_text_to_u64(text, &size);
        if (number && size > BOX_PAGE_MAX)
            box_call_violation(call, "page-size", TIDE_TEXT_NONE);
        if (!number || size == 0 || size > BOX_PAGE_MAX) {
            box_fail_argument(call, "Invalid value for maxResults: %.*s",
                              (int)(text.bytes < 40 ? text.bytes : 40), text.data);
            return false;
        }
    }
    *size_out = (uint32_t)size;
    return true;
}

static uint64_t mix(uint64_t number)
{
    tide_rng rng = tide_rng_seeded(number);
    return tide_rng_next(&rng);
}

uint64_t box_page_key_number(uint64_t key, uint64_t number)
{
    return mix(key ^ mix(number));
}

uint64_t box_page_key_text(uint64_t key, tide_text text)
{
    const uint64_t hash = tide_hash(TIDE_HASH_START, text);
    return box_page_key_number(box_page_key_number(key, hash), text.bytes);
}

uint64_t box_page_key(const struct box_call *call, const char *kind)
{
    TIDE_ASSERT(call->user != NULL);
    const uint64_t seed = box_cloud_options(call->cloud)->seed;
    return box_page_key_text(box_page_key_number(seed, call->user->number), tide_text_of(kind));
}

static uint64_t token_check(uint64_t key, struct box_page_at at)
{
    return box_page_key_number(box_page_key_number(key, at.first), at.second);
}

void box_page_token(uint64_t key, struct box_page_at at, char token_out[BOX_PAGE_TOKEN_BYTES])
{
    const int bytes =
        snprintf(token_out, BOX_PAGE_TOKEN_BYTES, "%016" PRIx64 "%016" PRIx64 "%016" PRIx64,
                 at.first, at.second, token_check(key, at));
    TIDE_ASSERT(bytes == BOX_PAGE_TOKEN_BYTES - 1);
}

static bool hex_read(const char *digits, uint64_t *number_out)
{
    return box_id_parse((tide_text){digits, 16}, number_out);
}

bool box_page_open(struct box_call *call, uint64_t key, struct box_page_at start,
                   struct box_page_at *at_out)
{
    const tide_text token = box_call_param(call, "pageToken");
    if (token.bytes == 0) { /* an empty one is none: client libraries send it on the first page */
        *at_out = start;
        return true;
    }
    struct box_page_at at = {0, 0};
    uint64_t check = 0;
    if (token.bytes != BOX_PAGE_TOKEN_BYTES - 1 || !hex_read(token.data, &at.first) ||
        !hex_read(token.data + 16, &at.second) || !hex_read(token.data + 32, &check) ||
        check != token_check(key, at)) {
        box_fail_argument(call, "Invalid pageToken");
        return false;
    }
    *at_out = at;
    return true;
}

bool box_page_fault(struct box_call *call, const char *fault)
{
    struct box_faults *faults = box_cloud_faults(call->cloud);
    return faults != NULL && box_faults_strikes(faults, call, fault);
}

void box_page_set_value(json_t *object, const char *key, json_t *value)
{
    TIDE_ASSERT(json_object_set_new_nocheck(object, key, value) == 0); /* also refuses NULL */
}

void box_page_set(json_t *object, const char *key, const char *text)
{
    box_page_set_value(object, key, json_string_nocheck(text));
}

void box_page_set_id(json_t *object, const char *key, uint64_t id)
{
    char text[BOX_ID_TEXT_BYTES];
    box_id_text(id, text);
    box_page_set(object, key, text);
}

void box_page_set_number(json_t *object, const char *key, uint64_t number)
{
    char text[24];
    const int bytes = snprintf(text, sizeof text, "%" PRIu64, number);
    TIDE_ASSERT(bytes > 0 && (size_t)bytes < sizeof text);
    box_page_set(object, key, text);
}
