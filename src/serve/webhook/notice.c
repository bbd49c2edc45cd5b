#include "serve/webhook/notice.h"

#include "base/json.h"
#include "serve/webhook/push.h"

static tide_text text_of(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return (tide_text){json_string_value(value), json_string_length(value)};
}

tide_status tide_notices_hear(tide_text body,
                              void (*visit)(const struct tide_notice *notice, void *arg), void *arg)
{
    json_auto_t *object = NULL;
    if (body.bytes > TIDE_PUSH_BODY_BYTES_MAX || tide_json_parse(body, &object, NULL) != TIDE_OK)
        return TIDE_INVALID;
    const json_t *list = json_object_get(object, "value");
    const size_t count = json_array_size(list);
    if (!json_is_array(list) || count == 0 || count > TIDE_NOTICES_MAX)
        return TIDE_INVALID;
    for (size_t i = 0; i < count; i++) {
        const json_t *one = json_array_get(list, i);
        const struct tide_notice notice = {text_of(one, "subscriptionId"),
                                           text_of(one, "clientState")};
        if (notice.subscription.bytes > 0 && notice.secret.bytes > 0)
            visit(&notice, arg);
    }
    return TIDE_OK;
}
