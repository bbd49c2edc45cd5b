/* What an administrator would do in Google's consoles: POST /_cloud/auth. */
#include "cloudbox/signin/auth.h"
#include "cloudbox/control/read.h"

static bool testing(struct box_call *call, const json_t *value)
{
    if (!json_is_boolean(value)) {
        box_fail_argument(call, "\"testing\" must be true or false");
        return false;
    }
    box_auth_testing(box_cloud_auth(call->cloud), json_is_true(value));
    return true;
}

static bool password_changed(struct box_call *call, const json_t *value)
{
    if (!json_is_string(value)) {
        box_fail_argument(call, "\"password_changed\" must be an address");
        return false;
    }
    const tide_text email = {json_string_value(value), json_string_length(value)};
    const struct box_user *user = box_control_user_of(call, email);
    if (user == NULL)
        return false;
    box_auth_password_changed(box_cloud_auth(call->cloud), user);
    return true;
}

static bool client(struct box_call *call, const json_t *value)
{
    static const char *const fields[] = {"id", "secret", NULL};
    tide_text id;
    tide_text secret = TIDE_TEXT_NONE; /* programs that can keep none have none */
    if (!box_control_object(call, value, "client", fields) ||
        !box_control_text(call, value, "id", &id) ||
        (json_object_get(value, "secret") != NULL &&
         !box_control_text(call, value, "secret", &secret)))
        return false;
    const tide_status rc = box_auth_add_client(box_cloud_auth(call->cloud), id, secret);
    if (rc != TIDE_OK)
        box_fail_argument(call, "that client cannot be registered: %s", tide_status_name(rc));
    return rc == TIDE_OK;
}

/* Unknown scopes would silently delegate less than was meant. */
static bool read_scopes(struct box_call *call, tide_text text, uint32_t *scopes_out)
{
    uint32_t scopes = 0;
    size_t at = 0;
    while (at < text.bytes) {
        const char *space = memchr(text.data + at, ' ', text.bytes - at);
        const size_t end = space == NULL ? text.bytes : (size_t)(space - text.data);
        const tide_text word = {text.data + at, end - at};
        const uint32_t scope = box_scopes_parse(word);
        if (word.bytes > 0 && scope == 0) {
            box_fail_argument(call, "there is no scope %.*s",
                              (int)(word.bytes > 100 ? 100 : word.bytes), word.data);
            return false;
        }
        scopes |= scope;
        at = end + 1;
    }
    *scopes_out = scopes;
    return true;
}

static bool delegate(struct box_call *call, const json_t *value)
{
    static const char *const fields[] = {"account", "user", "scope", NULL};
    tide_text account;
    tide_text scope;
    uint32_t scopes = 0;
    if (!box_control_object(call, value, "delegate", fields) ||
        !box_control_text(call, value, "account", &account))
        return false;
    struct box_user *user = box_control_user(call, value);
    if (user == NULL || !box_control_text(call, value, "scope", &scope) ||
        !read_scopes(call, scope, &scopes))
        return false;
    const tide_status rc = box_auth_delegate(box_cloud_auth(call->cloud), account, user, scopes);
    if (rc == TIDE_NOT_FOUND)
        box_fail_argument(call, "there is no service account %.*s",
                          (int)(account.bytes > 100 ? 100 : account.bytes), account.data);
    else if (rc != TIDE_OK)
        box_fail_argument(call, "that cannot be delegated: %s", tide_status_name(rc));
    return rc == TIDE_OK;
}

static const struct {
    const char *field;
    bool (*act)(struct box_call *call, const json_t *value);
} acts[] = {
    {"testing", testing},
    {"password_changed", password_changed},
    {"client", client},
    {"delegate", delegate},
};

/* One thing at a time, so that a refusal means that nothing has happened. */
void box_control_auth(struct box_call *call)
{
    static const char *const fields[] = {"testing", "password_changed", "client", "delegate", NULL};
    json_auto_t *body = box_control_body(call, fields);
    if (body == NULL)
        return;
    bool done = false;
    if (json_object_size(body) != 1)
        box_fail_argument(call, "give one of \"testing\", \"password_changed\", \"client\" and "
                                "\"delegate\"");
    else
        for (size_t i = 0; i < sizeof acts / sizeof acts[0]; i++) {
            const json_t *value = json_object_get(body, acts[i].field);
            if (value != NULL)
                done = acts[i].act(call, value);
        }
    if (done)
        box_call_reply(call, json_object());
}
