#include "serve/webhook/push.h"

#include "base/encode.h"
#include "base/hash.h"
#include "base/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool is_address(tide_text text)
{
    size_t ats = 0;
    for (size_t i = 0; i < text.bytes; i++) {
        if (text.data[i] <= ' ' || text.data[i] > '~')
            return false;
        ats += text.data[i] == '@';
    }
    return text.bytes >= 3 && text.bytes <= TIDE_PUSH_ADDRESS_BYTES_MAX && ats == 1 &&
           text.data[0] != '@' && text.data[text.bytes - 1] != '@';
}

/* Google has sent it as a number and as a text. */
static bool history_read(const json_t *data, struct tide_push *push)
{
    const json_t *id = json_object_get(data, "historyId");
    tide_text text = TIDE_TEXT_NONE;
    uint64_t number = 0;
    if (id == NULL)
        return true;
    if (json_is_integer(id) ? tide_json_get_u64(data, "historyId", &number, NULL) != TIDE_OK
                            : tide_json_get_text(data, "historyId", &text, NULL) != TIDE_OK ||
                                  !tide_text_to_u64(text, &number))
        return false;
    (void)snprintf(push->history_id, sizeof push->history_id, "%" PRIu64, number);
    return true;
}

static tide_status data_read(tide_text encoded, tide_mem *mem, struct tide_push *push,
                             tide_error *err)
{
    tide_text address = TIDE_TEXT_NONE;
    json_t *data = NULL;
    tide_buf text;
    tide_buf_init(&text, mem, TIDE_PUSH_BODY_BYTES_MAX);
    tide_status rc = tide_base64_read(&text, encoded);
    if (rc == TIDE_OK)
        rc = tide_json_parse(tide_buf_text(&text), &data, NULL);
    tide_buf_done(&text);
    if (rc == TIDE_OK && (tide_json_get_text(data, "emailAddress", &address, NULL) != TIDE_OK ||
                          !is_address(address) || !history_read(data, push)))
        rc = TIDE_INVALID;
    if (rc == TIDE_OK)
        (void)snprintf(push->address, sizeof push->address, "%.*s", (int)address.bytes,
                       address.data);
    json_decref(data);
    if (rc == TIDE_NO_MEMORY)
        return tide_error_set(err, rc, "no memory for a push");
    return rc == TIDE_OK
               ? rc
               : tide_error_set(err, TIDE_INVALID, "the data of the message is not Gmail's");
}

static uint64_t message_of(const json_t *body, const json_t *message)
{
    tide_text id = TIDE_TEXT_NONE;
    tide_text subscription = TIDE_TEXT_NONE;
    if (tide_json_get_text(message, "messageId", &id, NULL) != TIDE_OK &&
        tide_json_get_text(message, "message_id", &id, NULL) != TIDE_OK)
        return 0;
    (void)tide_json_get_text(body, "subscription", &subscription, NULL);
    const uint64_t hash = tide_hash_byte(tide_hash(TIDE_HASH_START, subscription), 0);
    const uint64_t both = tide_hash(hash, id);
    return both == 0 ? 1 : both;
}

tide_status tide_push_read(tide_text body, tide_mem *mem, struct tide_push *push_out,
                           tide_error *err)
{
    struct tide_push push = {.message = 0};
    const json_t *message = NULL;
    tide_text data = TIDE_TEXT_NONE;
    json_t *object = NULL;
    tide_status rc =
        body.bytes > TIDE_PUSH_BODY_BYTES_MAX ? TIDE_INVALID : tide_json_parse(body, &object, NULL);
    if (rc != TIDE_OK && rc != TIDE_NO_MEMORY)
        return tide_error_set(err, TIDE_INVALID, "the body is not JSON");
    if (rc == TIDE_OK && (tide_json_get_object(object, "message", &message, NULL) != TIDE_OK ||
                          tide_json_get_text(message, "data", &data, NULL) != TIDE_OK))
        rc = tide_error_set(err, TIDE_INVALID, "the body has no message with data");
    if (rc == TIDE_OK)
        rc = data_read(data, mem, &push, err);
    if (rc == TIDE_OK) {
        push.message = message_of(object, message);
        *push_out = push;
    }
    json_decref(object);
    return rc;
}
