/* Labels: the fixed ones of the system, and the user's own. */
#include "cloudbox/gmail/gmail.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char *const label_names[] = {
    "id",    "name",          "messageListVisibility", "labelListVisibility", "type",
    "color", "messagesTotal", "messagesUnread",        "threadsTotal",        "threadsUnread",
    NULL};
static const char *const color_names[] = {"textColor", "backgroundColor", NULL};

/* The only colours Gmail takes, seven bytes each. */
static const char palette[] =
    "#000000#434343#666666#999999#cccccc#efefef#f3f3f3#ffffff#fb4c2f#ffad47#fad165#16a766"
    "#43d692#4a86e8#a479e2#f691b3#f6c5be#ffe6c7#fef1d1#b9e4d0#c6f3de#c9daf8#e4d7f5#fcdee8"
    "#efa093#ffd6a2#fce8b3#89d3b2#a0eac9#a4c2f4#d0bcf1#fbc8d9#e66550#ffbc6b#fcda83#44b984"
    "#68dfa9#6d9eeb#b694e8#f7a7c0#cc3a21#eaa041#f2c960#149e60#3dc789#3c78d8#8e63ce#e07798"
    "#ac2b16#cf8933#d5ae49#0b804b#2a9c68#285bac#653e9b#b65775#822111#a46a21#aa8831#076239"
    "#1a764d#1c4587#41236d#83334c#464646#e7e7e7#0d3472#b6cff5#0d3b44#98d7e4#3d188e#e3d7ff"
    "#711a36#fbd3e0#8a1c0a#f2b2a8#7a2e0b#ffc8af#7a4706#ffdeb5#594c05#fbe983#684e07#fdedc1"
    "#0b4f30#b3efd3#04502e#a2dcc1#c2c2c2#4986e7#2da2bb#b99aff#994a64#f691b2#ff7537#ffad46"
    "#662e37#ebdbde#cca6ac#094228#42d692#16a765#757575#1e53b8#007286#7858c3#c2185b#d93025"
    "#54240e#633e04#521d28#202124#083018";

/* Names that no user label may have, besides the ids of system labels. */
static const char *const reserved[] = {"all mail",  "archive",   "chats",     "drafts",
                                       "muted",     "scheduled", "sent",      "snoozed",
                                       "sent mail", "voicemail", "important", NULL};

/* ---- answers ---- */

static void set_text(json_t *object, const char *name, const char *text)
{
    if (text[0] != '\0')
        json_object_set_new(object, name, json_string(text));
}

/* What a listing shows of a label. */
static json_t *label_brief(const struct box_label *label)
{
    json_t *value = json_pack("{s:s, s:s}", "id", label->id, "name", label->name);
    set_text(value, "messageListVisibility", label->message_visibility);
    set_text(value, "labelListVisibility", label->list_visibility);
    json_object_set_new(value, "type", json_string(label->system ? "system" : "user"));
    return value;
}

static json_t *label_with_color(const struct box_label *label)
{
    json_t *value = label_brief(label);
    if (label->text_color[0] != '\0')
        json_object_set_new(value, "color",
                            json_pack("{s:s, s:s}", "textColor", label->text_color,
                                      "backgroundColor", label->background_color));
    return value;
}

void box_gmail_labels_list(struct box_call *call)
{
    const box_mailbox *mailbox = box_user_mailbox(call->user);
    json_t *labels = json_array();
    for (uint32_t i = 0; i < box_mailbox_labels_count(mailbox); i++) {
        const struct box_label *label = box_mailbox_label(mailbox, i);
        if (!label->gone)
            json_array_append_new(labels, label_brief(label));
    }
    box_call_reply(call, json_pack("{s:o}", "labels", labels));
}

/* The label named by args[0]; NULL after a 404. */
static const struct box_label *label_arg(struct box_call *call)
{
    uint32_t number = 0;
    if (!box_mailbox_label_by_id(box_user_mailbox(call->user), call->args[0], &number)) {
        box_fail_missing(call);
        return NULL;
    }
    return box_mailbox_label(box_user_mailbox(call->user), number);
}

void box_gmail_labels_get(struct box_call *call)
{
    const struct box_label *label = label_arg(call);
    if (label == NULL)
        return;
    uint32_t threads = 0, unread = 0;
    box_mailbox_label_threads(box_user_mailbox(call->user), label->number, &threads, &unread);
    json_t *value = label_with_color(label);
    json_object_set_new(value, "messagesTotal", json_integer(label->messages));
    json_object_set_new(value, "messagesUnread", json_integer(label->messages_unread));
    json_object_set_new(value, "threadsTotal", json_integer(threads));
    json_object_set_new(value, "threadsUnread", json_integer(unread));
    box_call_reply(call, value);
}

/* ---- reading ---- */

static bool in_palette(const char *color)
{
    if (strlen(color) != 7)
        return false;
    for (size_t at = 0; at + 7 < sizeof palette; at += 7)
        if (strncasecmp(palette + at, color, 7) == 0)
            return true;
    return false;
}

static bool name_valid(const char *name)
{
    const size_t bytes = strlen(name);
    if (bytes == 0 || bytes > BOX_LABEL_NAME_BYTES_MAX || strspn(name, " \t") == bytes)
        return false;
    /* '/' nests labels; an empty level has no name. */
    if (name[0] == '/' || name[bytes - 1] == '/' || strstr(name, "//") != NULL)
        return false;
    for (size_t i = 0; reserved[i] != NULL; i++)
        if (strcasecmp(reserved[i], name) == 0)
            return false;
    return true;
}

/* Whether a system label has that name or id, case aside. */
static bool names_system(const box_mailbox *mailbox, const char *name)
{
    for (uint32_t i = 0; i < BOX_LABELS_SYSTEM; i++) {
        const struct box_label *label = box_mailbox_label(mailbox, i);
        if (strcasecmp(label->id, name) == 0 || strcasecmp(label->name, name) == 0)
            return true;
    }
    return false;
}

/* Copies a member into `out` when it is there.  false: it is not a text, holds
 * a NUL, or is too long; answered with 400. */
static bool read_text(struct box_call *call, const json_t *body, const char *name, char *out,
                      size_t out_bytes)
{
    const json_t *value = json_object_get(body, name);
    if (value == NULL || json_is_null(value))
        return true;
    const char *text = json_string_value(value);
    if (text == NULL || strlen(text) != json_string_length(value) || strlen(text) >= out_bytes) {
        if (strcmp(name, "name") == 0)
            box_fail_argument(call, "Invalid label name");
        else
            box_fail_argument(call, "Invalid value at 'label.%s'", name);
        return false;
    }
    memcpy(out, text, strlen(text) + 1);
    return true;
}

/* Whether `value`, which is what the body says of `name`, is allowed; a body that
 * says nothing leaves what was there, also when that was never set. */
static bool one_of(struct box_call *call, const json_t *body, const char *name, const char *value,
                   const char *const *allowed)
{
    if (!json_is_string(json_object_get(body, name)))
        return true;
    for (size_t i = 0; allowed[i] != NULL; i++)
        if (strcmp(allowed[i], value) == 0)
            return true;
    box_fail_argument(call, "Invalid value at 'label.%s': \"%s\"", name, value);
    return false;
}

/* Both values or neither; null takes the colour away. */
static bool read_color(struct box_call *call, const json_t *body, struct box_label *label)
{
    const json_t *color = json_object_get(body, "color");
    if (color == NULL)
        return true;
    label->text_color[0] = '\0';
    label->background_color[0] = '\0';
    if (json_is_null(color))
        return true;
    if (!json_is_object(color)) {
        box_fail_argument(call, "Invalid value at 'label.color'");
        return false;
    }
    if (!box_gmail_known(call, color, color_names))
        return false;
    const char *text = json_string_value(json_object_get(color, "textColor"));
    const char *background = json_string_value(json_object_get(color, "backgroundColor"));
    if (text == NULL || background == NULL) {
        box_fail_argument(call, "Label color needs both textColor and backgroundColor");
        return false;
    }
    if (!in_palette(text) || !in_palette(background)) {
        box_fail_argument(call, "Label color %.20s is not on the allowed color palette",
                          in_palette(text) ? background : text);
        return false;
    }
    snprintf(label->text_color, sizeof label->text_color, "%s", text);
    snprintf(label->background_color, sizeof label->background_color, "%s", background);
    return true;
}

/* Lays a body over `label`.  false: answered with 400. */
static bool read_label(struct box_call *call, const json_t *body, struct box_label *label)
{
    static const char *const in_list[] = {"labelShow", "labelShowIfUnread", "labelHide", NULL};
    static const char *const in_messages[] = {"show", "hide", NULL};
    char id[BOX_ID_TEXT_BYTES] = "";
    if (!box_gmail_known(call, body, label_names) || !read_text(call, body, "id", id, sizeof id) ||
        !read_text(call, body, "name", label->name, sizeof label->name) ||
        !read_text(call, body, "labelListVisibility", label->list_visibility,
                   sizeof label->list_visibility) ||
        !read_text(call, body, "messageListVisibility", label->message_visibility,
                   sizeof label->message_visibility) ||
        !read_color(call, body, label) ||
        !one_of(call, body, "labelListVisibility", label->list_visibility, in_list) ||
        !one_of(call, body, "messageListVisibility", label->message_visibility, in_messages))
        return false;
    if (id[0] != '\0' && label->id[0] != '\0' && strcmp(id, label->id) != 0) {
        box_fail_argument(call, "Label id in the body does not match the path");
        return false;
    }
    if (!name_valid(label->name) || names_system(box_user_mailbox(call->user), label->name)) {
        box_fail_argument(call, "Invalid label name");
        return false;
    }
    return true;
}

/* ---- changing ---- */

static void reply_status(struct box_call *call, tide_status status, uint32_t number)
{
    switch (status) {
    case TIDE_OK:
        box_call_reply(call,
                       label_with_color(box_mailbox_label(box_user_mailbox(call->user), number)));
        break;
    case TIDE_EXISTS:
        box_fail(call, 409, "global", "aborted", "ABORTED", "Label name exists or conflicts");
        break;
    case TIDE_FULL:
        box_fail_argument(call, "Number of labels cannot exceed %d", BOX_LABELS_MAX);
        break;
    default:
        box_fail_argument(call, "Invalid label name");
        break;
    }
}

/* What a label has when nothing is said. */
static struct box_label label_default(void)
{
    return (struct box_label){.list_visibility = "labelShow", .message_visibility = "show"};
}

void box_gmail_labels_create(struct box_call *call)
{
    json_auto_t *body = box_call_body(call);
    if (body == NULL)
        return;
    struct box_label wanted = label_default();
    if (read_label(call, body, &wanted)) {
        uint32_t number = 0;
        const tide_status status =
            box_mailbox_label_create(box_user_mailbox(call->user), &wanted, &number);
        reply_status(call, status, number);
    }
}

/* update replaces the label with the body, patch lays the body over it. */
static void change(struct box_call *call, bool patch)
{
    const struct box_label *label = label_arg(call);
    if (label == NULL)
        return;
    if (label->system) {
        box_fail_argument(call, "Cannot modify a system label");
        return;
    }
    json_auto_t *body = box_call_body(call);
    if (body == NULL)
        return;
    struct box_label wanted = label_default();
    if (patch)
        wanted = *label;
    memcpy(wanted.id, label->id, sizeof wanted.id);
    const uint32_t number = label->number;
    if (read_label(call, body, &wanted))
        reply_status(call, box_mailbox_label_update(box_user_mailbox(call->user), number, &wanted),
                     number);
}

void box_gmail_labels_update(struct box_call *call)
{
    change(call, false);
}

void box_gmail_labels_patch(struct box_call *call)
{
    change(call, true);
}

void box_gmail_labels_delete(struct box_call *call)
{
    const struct box_label *label = label_arg(call);
    if (label == NULL)
        return;
    if (label->system) {
        box_fail_argument(call, "Invalid delete request");
        return;
    }
    box_mailbox_label_remove(box_user_mailbox(call->user), label->number);
    box_call_reply_empty(call);
}
