#include "cloudbox/control/read.h"

#include "base/check.h"

#include <inttypes.h>

static int shown(tide_text text)
{
    return (int)(text.bytes > 100 ? 100 : text.bytes);
}

/* ---- fields ---- */

static bool field_is_known(struct box_call *call, const char *field, const char *const *fields)
{
    const char *meant = NULL;
    size_t best = 4;
    for (size_t i = 0; fields[i] != NULL; i++) {
        if (strcmp(field, fields[i]) == 0)
            return true;
        const size_t distance = tide_text_distance(tide_text_of(field), tide_text_of(fields[i]));
        if (distance < best && distance < strlen(fields[i])) {
            best = distance;
            meant = fields[i];
        }
    }
    if (meant == NULL)
        box_fail_argument(call, "unknown field \"%.100s\"", field);
    else
        box_fail_argument(call, "unknown field \"%.100s\", did you mean \"%s\"?", field, meant);
    return false;
}

static bool fields_are_known(struct box_call *call, const json_t *object, const char *const *fields)
{
    const char *field = NULL;
    json_t *value = NULL;
    json_object_foreach((json_t *)object, field, value)
    {
        if (!field_is_known(call, field, fields))
            return false;
    }
    return true;
}

json_t *box_control_body(struct box_call *call, const char *const *fields)
{
    json_t *body = box_call_body(call);
    if (body == NULL)
        return NULL;
    if (fields_are_known(call, body, fields))
        return body;
    json_decref(body);
    return NULL;
}

bool box_control_object(struct box_call *call, const json_t *object, const char *name,
                        const char *const *fields)
{
    if (json_is_object(object))
        return fields_are_known(call, object, fields);
    box_fail_argument(call, "\"%s\" must be an object", name);
    return false;
}

bool box_control_text(struct box_call *call, const json_t *body, const char *field,
                      tide_text *text_out)
{
    const json_t *value = json_object_get(body, field);
    if (!json_is_string(value) || json_string_length(value) == 0) {
        box_fail_argument(call, value == NULL ? "\"%s\" is missing" : "\"%s\" must be a text",
                          field);
        return false;
    }
    *text_out = (tide_text){json_string_value(value), json_string_length(value)};
    return true;
}

bool box_control_number(struct box_call *call, const json_t *body, const char *field, uint64_t low,
                        uint64_t high, uint64_t fallback, uint64_t *number_out)
{
    TIDE_ASSERT(high <= INT64_MAX);
    const json_t *value = json_object_get(body, field);
    if (value == NULL) {
        *number_out = fallback;
        return true;
    }
    if (!json_is_integer(value) || json_integer_value(value) < (json_int_t)low ||
        json_integer_value(value) > (json_int_t)high) {
        box_fail_argument(call, "\"%s\" must be a whole number from %" PRIu64 " to %" PRIu64, field,
                          low, high);
        return false;
    }
    *number_out = (uint64_t)json_integer_value(value);
    return true;
}

struct box_user *box_control_user_of(struct box_call *call, tide_text email)
{
    struct box_user *user = box_cloud_user(call->cloud, email);
    if (user == NULL)
        box_fail_argument(call, "there is no user %.*s", shown(email), email.data);
    return user;
}

struct box_user *box_control_user(struct box_call *call, const json_t *body)
{
    tide_text email;
    if (!box_control_text(call, body, "user", &email))
        return NULL;
    return box_control_user_of(call, email);
}

/* ---- labels and messages ---- */

bool box_control_label(struct box_call *call, tide_text text, const box_mailbox *mailbox,
                       uint16_t *labels, size_t *count)
{
    uint32_t number = 0;
    if (!box_mailbox_label_by_id(mailbox, text, &number) &&
        !box_mailbox_label_by_name(mailbox, text, &number)) {
        box_fail_argument(call, "there is no label %.*s", shown(text), text.data);
        return false;
    }
    for (size_t i = 0; i < *count; i++) {
        if (labels[i] == number)
            return true;
    }
    if (*count == BOX_MESSAGE_LABELS_MAX) {
        box_fail_argument(call, "more than %d labels", BOX_MESSAGE_LABELS_MAX);
        return false;
    }
    labels[(*count)++] = (uint16_t)number;
    return true;
}

bool box_control_labels(struct box_call *call, const json_t *body, const char *field,
                        const box_mailbox *mailbox, uint16_t *labels, size_t *count_out)
{
    const json_t *list = json_object_get(body, field);
    size_t count = 0;
    if (list != NULL && !json_is_array(list)) {
        box_fail_argument(call, "\"%s\" must be a list of labels", field);
        return false;
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *value = json_array_get(list, i);
        if (!json_is_string(value)) {
            box_fail_argument(call, "\"%s\" must be a list of texts", field);
            return false;
        }
        const tide_text text = {json_string_value(value), json_string_length(value)};
        if (!box_control_label(call, text, mailbox, labels, &count))
            return false;
    }
    *count_out = count;
    return true;
}

bool box_control_slots(struct box_call *call, const json_t *body, const box_mailbox *mailbox,
                       uint32_t **slots_out, size_t *count_out)
{
    const json_t *list = json_object_get(body, "ids");
    const size_t count = json_array_size(list);
    if (count == 0 || count > BOX_CONTROL_IDS_MAX) {
        box_fail_argument(call, "\"ids\" must be a list of 1 to %d message ids",
                          BOX_CONTROL_IDS_MAX);
        return false;
    }
    uint32_t *slots = tide_arena_take(call->scratch, count * sizeof *slots);
    TIDE_ASSERT(slots != NULL);
    for (size_t i = 0; i < count; i++) {
        const json_t *value = json_array_get(list, i);
        const tide_text id = {json_string_value(value), json_string_length(value)};
        slots[i] = id.data == NULL ? BOX_SLOT_NONE : box_mailbox_find(mailbox, id);
        if (slots[i] == BOX_SLOT_NONE) {
            box_fail_argument(call, "there is no message %.*s", shown(id),
                              id.data == NULL ? "" : id.data);
            return false;
        }
    }
    *slots_out = slots;
    *count_out = count;
    return true;
}

/* ---- durations ---- */

static bool unit_ms(const char *text, size_t bytes, uint64_t *ms_out)
{
    static const struct {
        const char *name;
        uint64_t ms;
    } units[] = {{"ms", 1},      {"s", 1000},     {"m", 60000},
                 {"h", 3600000}, {"d", 86400000}, {"w", 604800000}};
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strlen(units[i].name) == bytes && memcmp(units[i].name, text, bytes) == 0) {
            *ms_out = units[i].ms;
            return true;
        }
    }
    return false;
}

bool box_control_duration(tide_text text, uint64_t *ms_out)
{
    const uint64_t max_ms = UINT64_C(1000) * 366 * 86400000;
    uint64_t total_ms = 0;
    size_t at = 0;
    if (text.bytes == 0)
        return false;
    while (at < text.bytes) {
        const size_t digits = at;
        while (at < text.bytes && text.data[at] >= '0' && text.data[at] <= '9')
            at++;
        uint64_t number = 0;
        if (!tide_text_to_u64((tide_text){text.data + digits, at - digits}, &number))
            return false;
        const size_t letters = at;
        while (at < text.bytes && text.data[at] >= 'a' && text.data[at] <= 'z')
            at++;
        uint64_t each_ms = 0;
        if (!unit_ms(text.data + letters, at - letters, &each_ms) || number > max_ms / each_ms)
            return false;
        total_ms += number * each_ms;
        if (total_ms > max_ms)
            return false;
    }
    *ms_out = total_ms;
    return true;
}

void box_control_failed(struct box_call *call, const tide_error *err)
{
    if (err->status == TIDE_EXISTS)
        box_fail(call, 409, "global", "duplicate", "ALREADY_EXISTS", "%s", err->text);
    else
        box_fail_argument(call, "%s", err->text);
}
