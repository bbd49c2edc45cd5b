#include "cloudbox/chat/keys.h"

#include "base/check.h"
#include "base/hash.h"
#include <stdio.h>

void box_keys_init(struct box_keys *keys)
{
    *keys = (struct box_keys){.count = 0};
    tide_map_init(&keys->numbers, tide_mem_heap());
    tide_map_init(&keys->requests, tide_mem_heap());
    (void)snprintf(keys->keys[BOX_KEYS_MAX].name, sizeof keys->keys[0].name, "others");
}

void box_keys_done(struct box_keys *keys)
{
    tide_map_done(&keys->numbers);
    tide_map_done(&keys->requests);
}

uint32_t box_keys_number(struct box_keys *keys, tide_text key)
{
    const uint64_t hash = tide_hash_key(key);
    uint32_t index = BOX_KEYS_MAX;
    if (key.bytes == 0 || tide_map_get(&keys->numbers, hash, &index))
        return index + 1;
    if (keys->count == BOX_KEYS_MAX)
        return BOX_KEYS_MAX + 1;
    index = (uint32_t)keys->count++;
    TIDE_ASSERT(tide_map_put(&keys->numbers, hash, index));
    (void)snprintf(keys->keys[index].name, sizeof keys->keys[index].name, "%.*s",
                   (int)(key.bytes < BOX_KEY_BYTES_MAX ? key.bytes : BOX_KEY_BYTES_MAX), key.data);
    for (char *c = keys->keys[index].name; *c != '\0'; c++)
        *c = *c > ' ' && *c < 0x7f ? *c : '?'; /* it becomes a name in JSON */
    return index + 1;
}

static uint64_t request_key(uint32_t number, uint64_t request)
{
    const uint64_t hash = request ^ ((uint64_t)number << 40);
    return hash == 0 ? 1 : hash;
}

void box_keys_asked(struct box_keys *keys, uint32_t number, uint64_t request)
{
    struct box_key *key = &keys->keys[number - 1];
    uint32_t ignored = 0;
    key->repeated += tide_map_get(&keys->requests, request_key(number, request), &ignored) ? 1 : 0;
    key->after_billing += key->billed ? 1 : 0;
}

void box_keys_answered(struct box_keys *keys, uint32_t number, uint64_t request, uint64_t in_tokens,
                       uint64_t out_tokens)
{
    struct box_key *key = &keys->keys[number - 1];
    key->answered++;
    key->in_tokens += in_tokens;
    key->out_tokens += out_tokens;
    uint32_t before = 0;
    const bool known = tide_map_get(&keys->requests, request_key(number, request), &before);
    if (known || keys->requests.count < BOX_KEYS_REQUESTS_MAX) /* BKEY1 */
        TIDE_ASSERT(tide_map_put(&keys->requests, request_key(number, request), before + 1));
    key->most = before >= key->most ? before + 1 : key->most;
}

void box_keys_billed(struct box_keys *keys, uint32_t number)
{
    keys->keys[number - 1].billed = true;
}

void box_keys_obeyed(struct box_keys *keys, uint32_t number)
{
    keys->keys[number - 1].obeyed++;
}

json_t *box_keys_json(const struct box_keys *keys)
{
    json_t *all = json_object();
    for (size_t i = 0; i <= BOX_KEYS_MAX; i++) {
        const struct box_key *key = &keys->keys[i];
        if (i >= keys->count && i < BOX_KEYS_MAX)
            continue;
        if (i == BOX_KEYS_MAX && key->answered == 0)
            continue;
        json_t *object = json_pack(
            "{s:I,s:I,s:I,s:I,s:I,s:I,s:I}", "answered", (json_int_t)key->answered, "repeated",
            (json_int_t)key->repeated, "most", (json_int_t)key->most, "obeyed",
            (json_int_t)key->obeyed, "after_billing", (json_int_t)key->after_billing, "in_tokens",
            (json_int_t)key->in_tokens, "out_tokens", (json_int_t)key->out_tokens);
        json_object_set_new(all, key->name, object);
    }
    return all;
}
