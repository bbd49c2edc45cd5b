/* control.c - the control page, from which a test or a user steers the cloud: /_cloud/...
 *
 * It needs no sign-in: any program that reaches the port may call it.  Web pages of other
 * origins may not, so that a browser on the same machine is no way in: a request that
 * names another origin is refused. */
#include "base/check.h"
#include "base/json.h"
#include "cloudbox/chat/chat.h"
#include "cloudbox/console/console.h"
#include "cloudbox/console/data.h"
#include "cloudbox/control/control.h"
#include "cloudbox/control/read.h"
#include "cloudbox/gate/clock.h"
#include "cloudbox/gate/faults.h"
#include "cloudbox/gate/quota.h"
#include "cloudbox/google/style.h"
#include "cloudbox/push/push.h"
#include "cloudbox/signin/auth.h"

#include <stdio.h>

enum { SPEED_MAX = 1000000 };

/* ---- the record ---- */

static void serve_stats(struct box_call *call)
{
    const tide_text email = box_call_param(call, "user");
    const struct box_user *user = NULL;
    if (email.data != NULL) {
        user = box_control_user_of(call, email);
        if (user == NULL)
            return;
    }
    box_call_reply(call, box_cloud_stats(call->cloud, user, box_call_flag(call, "fetched")));
}

static void serve_stats_reset(struct box_call *call)
{
    box_cloud_stats_reset(call->cloud);
    box_call_reply(call, json_object());
}

/* ---- faults ---- */

static void serve_faults(struct box_call *call)
{
    box_call_reply(call,
                   json_pack("{s:o}", "faults", box_faults_list(box_cloud_faults(call->cloud))));
}

/* A list of rules is taken as a whole or not at all. */
static void add_rules(struct box_call *call, const json_t *list)
{
    struct box_faults *faults = box_cloud_faults(call->cloud);
    json_t *numbers = json_array();
    for (size_t i = 0; i < json_array_size(list); i++) {
        uint32_t number = 0;
        tide_error err = {0};
        if (box_faults_add(faults, json_array_get(list, i), &number, &err) == TIDE_OK) {
            json_array_append_new(numbers, json_integer(number));
            continue;
        }
        for (size_t added = 0; added < json_array_size(numbers); added++)
            (void)box_faults_remove(faults,
                                    (uint32_t)json_integer_value(json_array_get(numbers, added)));
        json_decref(numbers);
        box_fail_argument(call, "rule %zu: %s", i + 1, err.text);
        return;
    }
    box_call_reply(call, json_pack("{s:o}", "rules", numbers));
}

static void serve_faults_add(struct box_call *call)
{
    json_auto_t *body = NULL;
    tide_error err = {0};
    uint32_t number = 0;
    if (tide_json_parse(call->request->body, &body, &err) != TIDE_OK)
        box_fail_argument(call, "%s", err.text);
    else if (json_is_array(body))
        add_rules(call, body);
    else if (box_faults_add(box_cloud_faults(call->cloud), body, &number, &err) != TIDE_OK)
        box_fail_argument(call, "%s", err.text);
    else
        box_call_reply(call, json_pack("{s:I}", "rule", (json_int_t)number));
}

static void serve_faults_clear(struct box_call *call)
{
    (void)box_faults_remove(box_cloud_faults(call->cloud), 0);
    box_call_reply(call, json_object());
}

static void serve_fault_remove(struct box_call *call)
{
    uint64_t number = 0;
    if (!tide_text_to_u64(call->args[0], &number) || number == 0 || number > UINT32_MAX)
        box_fail_argument(call, "a rule has a number of 1 or more");
    else if (!box_faults_remove(box_cloud_faults(call->cloud), (uint32_t)number))
        box_fail_missing(call);
    else
        box_call_reply(call, json_object());
}

/* ---- one user's state ---- */

static const char *const only_user[] = {"user", NULL};

/* Most of these requests say whom they mean, and that is all. */
static struct box_user *read_user(struct box_call *call)
{
    json_auto_t *body = box_control_body(call, only_user);
    return body == NULL ? NULL : box_control_user(call, body);
}

static void serve_history_expire(struct box_call *call)
{
    struct box_user *user = read_user(call);
    if (user == NULL)
        return;
    box_mailbox_history_expire_all(box_user_mailbox(user));
    box_call_reply(call, json_object());
}

static void serve_token_expire(struct box_call *call)
{
    const struct box_user *user = read_user(call);
    if (user == NULL)
        return;
    box_auth_expire_access(box_cloud_auth(call->cloud), user);
    box_call_reply(call, json_object());
}

static void serve_token_revoke(struct box_call *call)
{
    const struct box_user *user = read_user(call);
    if (user == NULL)
        return;
    box_auth_revoke_user(box_cloud_auth(call->cloud), user);
    box_call_reply(call, json_object());
}

static void serve_token_add(struct box_call *call)
{
    static const char *const fields[] = {"user", "token", NULL};
    json_auto_t *body = box_control_body(call, fields);
    const struct box_user *user = body == NULL ? NULL : box_control_user(call, body);
    tide_text token;
    tide_error err = {0};
    if (user != NULL && box_control_text(call, body, "token", &token)) {
        err.status = box_cloud_add_token(call->cloud, token, tide_text_of(user->email), &err);
        if (err.status == TIDE_OK)
            box_call_reply(call, json_object());
        else if (err.text[0] == '\0')
            box_fail_argument(call, "that token cannot be added: %s", tide_status_name(err.status));
        else
            box_control_failed(call, &err);
    }
}

static void serve_watch_expire(struct box_call *call)
{
    const struct box_user *user = read_user(call);
    if (user == NULL)
        return;
    box_push_expire(box_cloud_push(call->cloud), user);
    box_call_reply(call, json_object());
}

/* ---- the clock ---- */

static void serve_clock(struct box_call *call)
{
    const uint64_t now_ms = box_cloud_now(call->cloud);
    char text[BOX_TIME_TEXT_BYTES];
    box_time_text(now_ms, text);
    box_call_reply(call, json_pack("{s:I, s:s, s:I, s:f}", "now", (json_int_t)now_ms, "text", text,
                                   "outside", (json_int_t)box_cloud_outside(call->cloud), "speed",
                                   box_cloud_clock(call->cloud)->speed_permille / 1000.0));
}

/* A change of the clock, checked before anything moves. */
struct clock_change {
    uint64_t set_ms; /* 0: stays */
    int64_t speed_permille;
};

static bool read_clock(struct box_call *call, const json_t *body, struct clock_change *change)
{
    const uint64_t now_ms = box_cloud_now(call->cloud);
    const json_t *advance = json_object_get(body, "advance");
    const json_t *speed = json_object_get(body, "speed");
    uint64_t ms = 0;
    if (json_object_get(body, "set") != NULL && advance != NULL) {
        box_fail_argument(call, "either \"set\" or \"advance\"");
        return false;
    }
    /* Time goes forward only. */
    if (!box_control_number(call, body, "set", now_ms, BOX_CLOCK_MS_MAX, 0, &change->set_ms))
        return false;
    if (advance != NULL) {
        const tide_text text = {json_string_value(advance), json_string_length(advance)};
        if (!json_is_string(advance) || !box_control_duration(text, &ms)) {
            box_fail_argument(call, "\"advance\" must be a duration such as \"90s\" or \"1d12h\"");
            return false;
        }
        change->set_ms = now_ms + ms;
    }
    change->speed_permille = -1;
    if (speed != NULL) {
        if (!json_is_number(speed) || !(json_number_value(speed) >= 0) ||
            !(json_number_value(speed) <= SPEED_MAX)) {
            box_fail_argument(call, "\"speed\" must be a number from 0 to %d", SPEED_MAX);
            return false;
        }
        change->speed_permille = (int64_t)(json_number_value(speed) * 1000 + 0.5);
    }
    return true;
}

static void serve_clock_set(struct box_call *call)
{
    static const char *const fields[] = {"set", "advance", "speed", NULL};
    json_auto_t *body = box_control_body(call, fields);
    struct clock_change change;
    if (body != NULL && read_clock(call, body, &change)) {
        struct box_clock *clock = box_cloud_clock(call->cloud);
        const uint64_t outside_ms = box_cloud_outside(call->cloud);
        if (change.set_ms != 0)
            box_clock_set(clock, change.set_ms, outside_ms);
        if (change.speed_permille >= 0)
            box_clock_speed(clock, (uint32_t)change.speed_permille, outside_ms);
        box_cloud_clock_changed(call->cloud);
        serve_clock(call);
    }
}

/* ---- quota ---- */

static void serve_quota(struct box_call *call)
{
    box_call_reply(call, box_quota_json(box_cloud_quota(call->cloud)));
}

/* Everything is checked before anything is set. */
static bool read_quota(struct box_call *call, const json_t *body, box_quota_rules *rules_out)
{
    const json_t *rules = json_object_get(body, "rules");
    const tide_text name = {json_string_value(rules), json_string_length(rules)};
    *rules_out = box_quota_rules_now(box_cloud_quota(call->cloud));
    if (rules != NULL && !box_quota_rules_of(name, rules_out)) {
        box_fail_argument(call, "\"rules\" must be \"off\", \"2026\" or \"legacy\"");
        return false;
    }
    const char *field = NULL;
    json_t *value = NULL;
    json_object_foreach((json_t *)body, field, value)
    {
        uint64_t number = 0;
        if (value != rules && !box_control_number(call, body, field, 1, INT32_MAX, 0, &number))
            return false;
    }
    return true;
}

static void set_quota(struct box_quota *quota, const json_t *body, box_quota_rules rules)
{
    const char *field = NULL;
    json_t *value = NULL;
    box_quota_set_rules(quota, rules);
    json_object_foreach((json_t *)body, field, value)
    {
        (void)box_quota_set(quota, field, (uint32_t)json_integer_value(value)); /* "rules": none */
    }
}

static void serve_quota_set(struct box_call *call)
{
    const char *fields[BOX_QUOTA_SETTINGS_MAX + 2] = {"rules"};
    struct box_quota *quota = box_cloud_quota(call->cloud);
    const size_t count = box_quota_settings(quota, fields + 1);
    fields[count + 1] = NULL;
    json_auto_t *body = box_control_body(call, fields);
    box_quota_rules rules = BOX_QUOTA_OFF;
    if (body != NULL && read_quota(call, body, &rules)) {
        set_quota(quota, body, rules);
        serve_quota(call);
    }
}

/* ---- chat ---- */

static void serve_chat_add(struct box_call *call)
{
    json_auto_t *body = box_call_body(call);
    tide_error err = {0};
    if (body == NULL)
        return;
    if (box_chat_add_fixture(box_cloud_chat(call->cloud), body, &err) == TIDE_OK)
        box_call_reply(call, json_object());
    else
        box_control_failed(call, &err);
}

static void serve_chat_clear(struct box_call *call)
{
    box_chat_clear_fixtures(box_cloud_chat(call->cloud));
    box_call_reply(call, json_object());
}

/* ---- users, sites, topics ---- */

static json_t *user_json(const struct box_user *user)
{
    char history_id[24];
    (void)snprintf(history_id, sizeof history_id, "%llu",
                   (unsigned long long)box_mailbox_history_id(box_user_mailbox(user)));
    return json_pack("{s:s, s:I, s:I, s:s}", "email", user->email, "messages",
                     (json_int_t)box_mailbox_messages(box_user_mailbox(user)), "threads",
                     (json_int_t)box_mailbox_threads(box_user_mailbox(user)), "historyId",
                     history_id);
}

static void serve_users(struct box_call *call)
{
    json_t *users = json_array();
    const struct box_user *user = NULL;
    for (size_t i = 0; (user = box_cloud_user_at(call->cloud, i)) != NULL; i++)
        json_array_append_new(users, user_json(user));
    box_call_reply(call, json_pack("{s:o}", "users", users));
}

static void serve_users_add(struct box_call *call)
{
    static const char *const fields[] = {"email", "messages", "size_bytes", "seed", NULL};
    json_auto_t *body = box_control_body(call, fields);
    tide_text email;
    uint64_t messages = 0;
    uint64_t size_bytes = 0;
    uint64_t seed = 0;
    tide_error err = {0};
    if (body != NULL && box_control_text(call, body, "email", &email) &&
        box_control_number(call, body, "messages", 0, BOX_MAILBOX_MESSAGES_MAX, 0, &messages) &&
        box_control_number(call, body, "size_bytes", BOX_MAILBOX_SIZE_MIN, BOX_MAILBOX_SIZE_MAX, 0,
                           &size_bytes) &&
        box_control_number(call, body, "seed", 1, INT64_MAX, 0, &seed)) {
        const struct box_mailbox_options options = {.messages = (uint32_t)messages,
                                                    .size_bytes = (uint32_t)size_bytes,
                                                    .seed = seed,
                                                    .now_unix_ms = call->now_ms};
        if (box_cloud_add_mailbox(call->cloud, email, &options, &err) == TIDE_OK)
            box_call_reply(call, user_json(box_cloud_user(call->cloud, email)));
        else
            box_control_failed(call, &err);
    }
}

static void serve_sites_add(struct box_call *call)
{
    static const char *const fields[] = {"site", "user", "rows_per_day", NULL};
    json_auto_t *body = box_control_body(call, fields);
    const struct box_user *user = body == NULL ? NULL : box_control_user(call, body);
    tide_text site;
    uint64_t rows = 0;
    tide_error err = {0};
    if (user != NULL && box_control_text(call, body, "site", &site) &&
        box_control_number(call, body, "rows_per_day", 1, BOX_SITE_ROWS_MAX, 1000, &rows)) {
        if (box_cloud_add_site(call->cloud, site, tide_text_of(user->email), (uint32_t)rows,
                               &err) == TIDE_OK)
            box_call_reply(call, json_object());
        else
            box_control_failed(call, &err);
    }
}

static void serve_topics_add(struct box_call *call)
{
    static const char *const fields[] = {"topic", "url", NULL};
    json_auto_t *body = box_control_body(call, fields);
    tide_text topic;
    tide_text url;
    tide_error err = {0};
    if (body != NULL && box_control_text(call, body, "topic", &topic) &&
        box_control_text(call, body, "url", &url)) {
        if (box_cloud_add_topic(call->cloud, topic, url, &err) == TIDE_OK)
            box_call_reply(call, json_object());
        else
            box_control_failed(call, &err);
    }
}

/* ---- the table ---- */

static void serve_index(struct box_call *call);
static void serve(struct box_call *call);

/* What each method does, beside its row in `methods`. */
static const struct {
    box_handler *handle;
    const char *text;
} entries[] = {
    {serve_index, "this page"},
    {serve_stats, "what was asked: ?user=EMAIL, ?fetched=1"},
    {serve_stats_reset, "forget the record"},
    {serve_faults, "the fault rules"},
    {serve_faults_add, "a rule or a list: {\"method\":\"*\",\"rate\":0.01,\"fault\":\"503\"}"},
    {serve_faults_clear, "remove all rules"},
    {serve_fault_remove, "remove one rule"},
    {box_control_mail, "mail arrives: {\"user\",\"raw\":base64,\"labels\",\"date\"}, or "
                       "?user=EMAIL with the message as the body"},
    {box_control_mail_delete, "deleted elsewhere: {\"user\",\"ids\"}"},
    {box_control_mail_label, "sorted elsewhere: {\"user\",\"ids\",\"add\",\"remove\"}"},
    {box_control_drive_tree, "a line for each item of a drive: ?user=EMAIL"},
    {box_control_drive_bin, "the same of what is in its recycle bin: ?user=EMAIL"},
    {box_control_drive_mark,
     "it is odd: {\"user\",\"path\",\"as\":\"none|package|malware|pending\"}"},
    {box_control_drive_shortcut,
     "shared by another: {\"user\",\"path\",\"to\":{\"user\",\"path\"}}, "
     "\"role\":\"read|write\"; of one that is there: \"lost\":true|false"},
    {box_control_drive_put, "a file changes: {\"user\",\"path\",\"content\"} or \"size\",\"seed\""},
    {box_control_drive_folder, "a folder is there: {\"user\",\"path\"}"},
    {box_control_drive_move, "{\"user\",\"path\",\"to\"}"},
    {box_control_drive_delete, "{\"user\",\"path\"}"},
    {box_control_drive_touch, "its eTag moves: {\"user\",\"path\"}"},
    {box_control_drive_fill, "more generated files: {\"user\",\"files\",\"size\"}"},
    {box_control_drive_set,
     "{\"user\",\"forget\":true}: delta tokens give 410; \"total\": its size"},
    {serve_history_expire, "history ids so far give 404: {\"user\"}"},
    {serve_token_add, "a bearer token that never expires: {\"user\",\"token\"}"},
    {serve_token_expire, "access tokens expire now: {\"user\"}"},
    {serve_token_revoke, "the grant is gone: {\"user\"}"},
    {box_control_auth,
     "{\"testing\":true}, {\"password_changed\":EMAIL}, {\"client\":{\"id\",\"secret\"}} "
     "or {\"delegate\":{\"account\",\"user\",\"scope\"}}"},
    {serve_watch_expire, "watches end: {\"user\"}"},
    {serve_clock, "the cloud's time"},
    {serve_clock_set, "{\"set\":unix ms} or {\"advance\":\"1h\"}, {\"speed\":60}"},
    {serve_quota, "the limits"},
    {serve_quota_set, "{\"rules\":\"off|2026|legacy\",\"user_units_per_minute\":6000,...}"},
    {serve_chat_add, "an answer of the chat model: {\"contains\",\"reply\",\"tool\"}"},
    {serve_chat_clear, "remove these answers"},
    {serve_users, "who is there"},
    {serve_users_add, "{\"email\",\"messages\",\"size_bytes\",\"seed\"}"},
    {serve_sites_add, "{\"site\",\"user\",\"rows_per_day\"}"},
    {serve_topics_add, "{\"topic\",\"url\"}: where notifications go"},
};

#define METHOD(method_name, method_verb, method_path)                                              \
    {                                                                                              \
        .name = method_name, .verb = method_verb, .path = method_path, .meter = BOX_METER_NONE,    \
        .handle = serve                                                                            \
    }
static const struct box_method methods[] = {
    METHOD("cloud.index", BOX_GET, "/"),
    METHOD("cloud.stats", BOX_GET, "/_cloud/stats"),
    METHOD("cloud.stats.reset", BOX_POST, "/_cloud/stats/reset"),
    METHOD("cloud.faults.list", BOX_GET, "/_cloud/faults"),
    METHOD("cloud.faults.add", BOX_POST, "/_cloud/faults"),
    METHOD("cloud.faults.clear", BOX_DELETE, "/_cloud/faults"),
    METHOD("cloud.faults.remove", BOX_DELETE, "/_cloud/faults/{rule}"),
    METHOD("cloud.mail.deliver", BOX_POST, "/_cloud/mail"),
    METHOD("cloud.mail.delete", BOX_POST, "/_cloud/mail/delete"),
    METHOD("cloud.mail.label", BOX_POST, "/_cloud/mail/label"),
    METHOD("cloud.drive.tree", BOX_GET, "/_cloud/drive"),
    METHOD("cloud.drive.bin", BOX_GET, "/_cloud/drive/bin"),
    METHOD("cloud.drive.mark", BOX_POST, "/_cloud/drive/mark"),
    METHOD("cloud.drive.shortcut", BOX_POST, "/_cloud/drive/shortcut"),
    METHOD("cloud.drive.put", BOX_POST, "/_cloud/drive/put"),
    METHOD("cloud.drive.folder", BOX_POST, "/_cloud/drive/folder"),
    METHOD("cloud.drive.move", BOX_POST, "/_cloud/drive/move"),
    METHOD("cloud.drive.delete", BOX_POST, "/_cloud/drive/delete"),
    METHOD("cloud.drive.touch", BOX_POST, "/_cloud/drive/touch"),
    METHOD("cloud.drive.fill", BOX_POST, "/_cloud/drive/fill"),
    METHOD("cloud.drive.set", BOX_POST, "/_cloud/drive"),
    METHOD("cloud.history.expire", BOX_POST, "/_cloud/history/expire"),
    METHOD("cloud.token.add", BOX_POST, "/_cloud/token"),
    METHOD("cloud.token.expire", BOX_POST, "/_cloud/token/expire"),
    METHOD("cloud.token.revoke", BOX_POST, "/_cloud/token/revoke"),
    METHOD("cloud.auth", BOX_POST, "/_cloud/auth"),
    METHOD("cloud.watch.expire", BOX_POST, "/_cloud/watch/expire"),
    METHOD("cloud.clock.get", BOX_GET, "/_cloud/clock"),
    METHOD("cloud.clock.set", BOX_POST, "/_cloud/clock"),
    METHOD("cloud.quota.get", BOX_GET, "/_cloud/quota"),
    METHOD("cloud.quota.set", BOX_POST, "/_cloud/quota"),
    METHOD("cloud.chat.add", BOX_POST, "/_cloud/chat"),
    METHOD("cloud.chat.clear", BOX_DELETE, "/_cloud/chat"),
    METHOD("cloud.users.list", BOX_GET, "/_cloud/users"),
    METHOD("cloud.users.add", BOX_POST, "/_cloud/users"),
    METHOD("cloud.sites.add", BOX_POST, "/_cloud/sites"),
    METHOD("cloud.topics.add", BOX_POST, "/_cloud/topics"),
};
#undef METHOD
_Static_assert(sizeof methods / sizeof methods[0] == sizeof entries / sizeof entries[0],
               "every method of the control page has its entry");

const struct box_service box_control = {
    .name = "cloud",
    .methods = methods,
    .methods_count = sizeof methods / sizeof methods[0],
    .style = &box_google_style,
    .exempt = true, /* a fault rule must not prevent its own removal */
};

static void serve_index(struct box_call *call)
{
    tide_buf *out = &call->answer->body;
    box_answer_clear(call->answer);
    (void)snprintf(call->answer->type, sizeof call->answer->type, "text/html; charset=utf-8");
    box_add_cstr(out, "<!DOCTYPE html>\n<html lang=en>\n<meta charset=utf-8>\n"
                      "<title>tidemark-cloud</title>\n<style>body{font:16px/1.5 "
                      "system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem}"
                      "pre{white-space:pre-wrap;font-size:14px}:root{color-scheme:light dark}"
                      "</style>\n<h1>tidemark-cloud</h1>\n"
                      "<p>A cloud in a box. Nothing here is real.\n<h2>Control</h2>\n<pre>\n");
    for (size_t i = 0; i < box_control.methods_count; i++)
        box_print(out, "%-6s %-24s %s\n", box_verb_name(methods[i].verb), methods[i].path,
                  entries[i].text);
    box_add_cstr(out, "</pre>\n");
    for (const struct box_service *const *service = box_cloud_options(call->cloud)->services;
         *service != NULL; service++) {
        if (*service == &box_control || (*service)->methods_count == 0)
            continue;
        box_print(out, "<h2>%s</h2>\n<pre>\n", (*service)->name);
        for (size_t i = 0; i < (*service)->methods_count; i++)
            box_print(out, "%-6s %s\n", box_verb_name((*service)->methods[i].verb),
                      (*service)->methods[i].path);
        box_add_cstr(out, "</pre>\n");
    }
}

/* A browser says where a request comes from; programs say nothing. */
static bool is_from_elsewhere(const struct box_request *request)
{
    const tide_text origin = box_request_header(request, "Origin");
    const tide_text site = box_request_header(request, "Sec-Fetch-Site");
    if (origin.data != NULL && !tide_text_equal(origin, request->origin))
        return true;
    return site.data != NULL && !tide_text_equal(site, TIDE_TEXT("same-origin")) &&
           !tide_text_equal(site, TIDE_TEXT("none"));
}

static void serve(struct box_call *call)
{
    const size_t index = (size_t)(call->method - methods);
    TIDE_ASSERT(index < sizeof entries / sizeof entries[0]);
    if (is_from_elsewhere(call->request)) {
        box_fail(call, 403, "global", "forbidden", "PERMISSION_DENIED",
                 "Pages of other origins may not steer this cloud.");
        return;
    }
    entries[index].handle(call);
}
