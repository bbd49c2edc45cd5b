/* document.c - openapi.json, from the table of routes and the tables of commands. */
#include "cli/serve/api.h"

#include <stdio.h>
#include <string.h>

/* ---- objects ----
 *
 * The fields of an answer are a text, "items:[Job] next:string? total:integer": a name and a type
 * each; "?" may be null, [X] is a list of objects X.  Answers may have more fields.  Systems bring
 * their own objects. */

static const struct cli_api_object objects[] = {
    {"Standing",
     "account:string system:string now:string why:string tidemark:string? gaps:integer "
     "left:integer left_is_known:boolean stored:integer exact:integer unit:string "
     "words:string? bad:integer "
     "note:string? "
     "jobs_running:integer jobs_waiting:integer jobs_failed:integer time_left_ms:integer? "
     "rate_per_minute:integer? "
     "last_ok_unix_ms:integer last_failed_unix_ms:integer failing_since_unix_ms:integer? "
     "last_failure:string? "
     "next_try_unix_ms:integer?"},
    {"Account", "account:string provider:string paused:boolean halted:boolean halt_reason:string? "
                "halted_unix_ms:integer? endpoint:string? signed_in:string? problem:string? "
                "methods:array? errors_by_code:object?"},
    {"Job", "id:integer state:string kind:string account:string? priority:integer lane:string "
            "level:integer attempts:integer attempts_max:integer open_deps:integer cycle:integer "
            "size_bytes:integer bytes_done:integer not_before_unix_ms:integer? "
            "created_unix_ms:integer? started_unix_ms:integer? finished_unix_ms:integer? "
            "status:string error:string"},
    {"Reason", "why:string text:string"},
    {"BadItem", "item:string account:string kind:string state:string reason:string "
                "retries:integer cycle:integer first_seen_unix_ms:integer "
                "last_tried_unix_ms:integer"},
    {"Alert", "condition:string account:string? level:string since_unix_ms:integer text:string"},
    {"Schedule",
     "name:string at:string jitter_ms:integer command:array created_unix_ms:integer? "
     "next_unix_ms:integer? wanted_unix_ms:integer? last:string started_unix_ms:integer? "
     "ended_unix_ms:integer? exit_code:integer result:string runner:string "
     "runs:integer"},
    {"Series", "account:string window_max_units:integer values:array"},
    {"Stream", "id:integer name:string cursor:string cycles_done:integer cycles_open:integer "
               "moved_unix_ms:integer"},
    {"Cycle", "id:integer ordinal:integer start:string end:string total:integer "
              "outstanding:integer failed:integer bad:integer opened_unix_ms:integer"},
    {"Found", "account:string id:string thread:string internal_unix_ms:integer bytes:integer "
              "copy:string gone:boolean labels:array from:string to:string cc:string bcc:string "
              "subject:string message_id:string date_unix_ms:integer? attachments_count:integer "
              "snippet:string"},
    {"Message", "id:string thread:string internal_unix_ms:integer bytes:integer copy:string "
                "gone:boolean labels:array from:string to:string cc:string bcc:string "
                "reply_to:string subject:string date_unix_ms:integer? html:boolean text:string "
                "attachments:array attachments_count:integer problem:string?"},
    {"View", "path:string until_unix_ms:integer images:boolean"},
    {"Problem", "type:string title:string status:integer code:string detail:string"},
    {NULL, NULL},
};

static void set_ref(tide_json *schema, const char *name, size_t bytes)
{
    char ref[80];
    (void)snprintf(ref, sizeof ref, "#/components/schemas/%.*s", (int)bytes, name);
    tide_json_object(schema);
    tide_json_set_cstr(schema, "$ref", ref);
}

static void set_types(tide_json *schema, const char *type, size_t bytes, bool nullable)
{
    char name[40];
    (void)snprintf(name, sizeof name, "%.*s", (int)bytes, type);
    tide_json_object(schema);
    if (!nullable) {
        tide_json_set_cstr(schema, "type", name);
        return;
    }
    tide_json types;
    tide_json_array(&types);
    tide_json_append_cstr(&types, name);
    tide_json_append_cstr(&types, "null");
    tide_json_set(schema, "type", &types);
}

static void field_schema(const char *type, size_t bytes, tide_json *schema)
{
    const bool nullable = type[bytes - 1] == '?';
    bytes -= nullable;
    if (type[0] == '[') {
        tide_json items;
        set_ref(&items, type + 1, bytes - 2);
        set_types(schema, "array", 5, nullable);
        tide_json_set(schema, "items", &items);
    } else if (type[0] >= 'A' && type[0] <= 'Z') {
        set_ref(schema, type, bytes);
    } else {
        set_types(schema, type, bytes, nullable);
    }
}

static void object_schema(const char *fields, tide_json *schema)
{
    tide_json properties;
    tide_json required;
    tide_json_object(schema);
    tide_json_object(&properties);
    tide_json_array(&required);
    while (*fields != '\0') {
        char name[40];
        tide_json field;
        const size_t bytes = strcspn(fields, ":");
        (void)snprintf(name, sizeof name, "%.*s", (int)bytes, fields);
        fields += bytes + 1;
        const size_t type_bytes = strcspn(fields, " ");
        field_schema(fields, type_bytes, &field);
        tide_json_set(&properties, name, &field);
        tide_json_append_cstr(&required, name);
        fields += type_bytes + strspn(fields + type_bytes, " ");
    }
    tide_json_set_cstr(schema, "type", "object");
    tide_json_set(schema, "properties", &properties);
    tide_json_set(schema, "required", &required);
}

static void objects_add(tide_json *schemas, const struct cli_api_object *list)
{
    for (; list != NULL && list->name != NULL; list++) {
        tide_json schema;
        object_schema(list->fields, &schema);
        tide_json_set(schemas, list->name, &schema);
    }
}

static void objects_set(const struct cli_serve *serve, tide_json *components)
{
    tide_json schemas;
    tide_json_object(&schemas);
    objects_add(&schemas, objects);
    for (size_t i = 0; serve->cli->systems[i] != NULL; i++)
        objects_add(&schemas, serve->cli->systems[i]->objects);
    tide_json_set(components, "schemas", &schemas);
}

/* ---- parameters ---- */

static void value_schema(const char *argument, tide_json *schema)
{
    const char *choices = argument == NULL ? NULL : strchr(argument, ':');
    tide_json_object(schema);
    tide_json_set_cstr(schema, "type", "string");
    if (choices == NULL || choices[1] == '@')
        return;
    tide_json words;
    tide_text rest = tide_text_of(choices + 1);
    tide_json_array(&words);
    while (rest.bytes > 0) {
        char word[40];
        const size_t bytes = strcspn(rest.data, " ");
        (void)snprintf(word, sizeof word, "%.*s", (int)bytes, rest.data);
        tide_json_append_cstr(&words, word);
        rest.data += bytes + (bytes < rest.bytes ? 1 : 0);
        rest.bytes -= bytes + (bytes < rest.bytes ? 1 : 0);
    }
    tide_json_set(schema, "enum", &words);
}

static void parameter(tide_json *list, const char *name, const char *in, const char *text,
                      const char *argument)
{
    tide_json one;
    tide_json schema;
    tide_json_object(&one);
    tide_json_set_cstr(&one, "name", name);
    tide_json_set_cstr(&one, "in", in);
    tide_json_set_bool(&one, "required", strcmp(in, "query") != 0);
    if (text != NULL)
        tide_json_set_cstr(&one, "description", text);
    value_schema(argument, &schema);
    tide_json_set(&one, "schema", &schema);
    tide_json_append(list, &one);
}

static void parameters(const struct tide_httpd_route *route, const struct cli_api *api,
                       tide_json *operation)
{
    const bool posts = strcmp(route->method, "POST") == 0;
    tide_json list;
    tide_json_array(&list);
    for (const char *at = route->path; (at = strchr(at, '{')) != NULL; at++) {
        char name[40];
        (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(at + 1, "}"), at + 1);
        parameter(&list, name, "path", NULL, NULL);
    }
    if (posts && !(route->flags & TIDE_HTTPD_REPEATS))
        parameter(&list, "Idempotency-Key", "header",
                  "chosen by the client; the same key and body give the same answer for 24 h",
                  NULL);
    if (api != NULL && api->query != NULL)
        parameter(&list, api->query, "query", api->command->arguments, NULL);
    if (api != NULL && api->view)
        parameter(&list, "images", "query", "yes: the user agreed to load remote images",
                  "WORD:yes no");
    const struct cli_flag *flag = api == NULL ? NULL : api->command->flags;
    for (; flag != NULL && flag->name != NULL; flag++)
        if (cli_api_lists(api->params, tide_text_of(flag->name)))
            parameter(&list, flag->name, "query", flag->meaning, flag->argument);
    tide_json_set(operation, "parameters", &list);
}

/* ---- bodies ---- */

#define JSON "application/json"

static void property(tide_json *properties, const char *name, const char *type, const char *text)
{
    tide_json schema;
    set_types(&schema, type, strlen(type), false);
    tide_json_set_cstr(&schema, "description", text);
    tide_json_set(properties, name, &schema);
}

static void content_set(tide_json *of, const char *media, tide_json *schema)
{
    tide_json content;
    tide_json type;
    tide_json_object(&content);
    tide_json_object(&type);
    tide_json_set(&type, "schema", schema);
    tide_json_set(&content, media, &type);
    tide_json_set(of, "content", &content);
}

/* The body that the command reads. */
static void input(const struct cli_api *api, tide_json *operation)
{
    tide_json request;
    tide_json schema;
    tide_json_object(&request);
    if (api->input == CLI_API_FILE)
        tide_json_object(&schema); /* any bytes */
    else
        set_types(&schema, "object", strlen("object"), false);
    content_set(&request, api->input == CLI_API_FILE ? "application/octet-stream" : JSON, &schema);
    tide_json_set(operation, "requestBody", &request);
}

/* Fields that are flags of the command, or its arguments. */
static void values(const struct cli_api *api, tide_json *properties)
{
    const struct cli_flag *flag = api->command->flags;
    for (; flag != NULL && flag->name != NULL; flag++) {
        tide_json schema;
        if (!cli_api_lists(api->values, tide_text_of(flag->name)))
            continue;
        value_schema(flag->argument, &schema);
        tide_json_set_cstr(&schema, "description", flag->meaning);
        tide_json_set(properties, flag->name, &schema);
    }
    if (api->last != NULL)
        property(properties, api->last, "string", "required");
    if (api->list != NULL)
        property(properties, api->list, "array",
                 api->list_free ? "up to 50 texts" : "required: 1 to 50 texts");
}

static void body(const struct cli_api *api, tide_json *operation)
{
    tide_json request;
    tide_json schema;
    tide_json properties;
    tide_json_object(&request);
    tide_json_object(&schema);
    tide_json_object(&properties);
    if ((api->body & CLI_API_CHOICE) != 0) {
        property(&properties, "filter", "object", "account, kind, state, cycle; {}: all");
        property(
            &properties, "expect", "integer",
            "with a filter: how many match it, as \"total\" of the list; else nothing is done");
        property(&properties, "ids", "array", "these instead, 1 to 50");
    }
    if ((api->body & CLI_API_REASON) != 0)
        property(&properties, "reason", "string", "shown until the account is resumed");
    values(api, &properties);
    tide_json_set_cstr(&schema, "type", "object");
    tide_json_set(&schema, "properties", &properties);
    tide_json_set_bool(&schema, "additionalProperties", false);
    content_set(&request, JSON, &schema);
    tide_json_set(operation, "requestBody", &request);
}

static void responses(const struct tide_httpd_route *route, const struct cli_api *api,
                      tide_json *operation)
{
    tide_json all;
    tide_json good;
    tide_json bad;
    char status[8] = "200";
    tide_json_object(&all);
    tide_json_object(&good);
    tide_json_set_cstr(&good, "description", "the answer");
    if (api != NULL) {
        tide_json schema;
        object_schema(api->fields, &schema);
        content_set(&good, JSON, &schema);
        (void)snprintf(status, sizeof status, "%d", api->status == 0 ? 200 : api->status);
    } else if (strcmp(route->method, "POST") == 0) {
        (void)snprintf(status, sizeof status, "201");
    }
    tide_json_set(&all, status, &good);
    tide_json_object(&bad);
    tide_json_set_cstr(&bad, "description", "a problem (application/problem+json, RFC 9457)");
    tide_json_set(&all, "default", &bad);
    tide_json_set(operation, "responses", &all);
}

/* ---- routes ---- */

static void security(const struct tide_httpd_route *route, tide_json *operation)
{
    tide_json list;
    tide_json_array(&list);
    if (route->scope != TIDE_HTTPD_NONE) {
        tide_json one;
        tide_json scopes;
        tide_json_object(&one);
        tide_json_array(&scopes);
        tide_json_append_cstr(&scopes, tide_key_scope_name(route->scope));
        tide_json_set(&one, "key", &scopes);
        tide_json_append(&list, &one);
    }
    tide_json_set(operation, "security", &list);
}

static void route_document(const struct tide_httpd_route *route, tide_json *paths)
{
    const struct cli_api *api = route->handler == cli_api_run ? route->arg : NULL;
    json_t *path = json_object_get(paths->value, route->path);
    tide_json operation;
    char method[8];
    (void)snprintf(method, sizeof method, "%s", route->method);
    for (char *at = method; *at != '\0'; at++)
        *at = (char)(*at - 'A' + 'a');
    tide_json_object(&operation);
    if (api != NULL) {
        char text[120];
        (void)snprintf(text, sizeof text, "As `tidemark %s%s%s%s%s --json`.", api->group,
                       api->verb == NULL ? "" : " ", api->verb == NULL ? "" : api->verb,
                       api->first == NULL ? "" : " ", api->first == NULL ? "" : api->first);
        tide_json_set_cstr(&operation, "summary", api->command->meaning);
        tide_json_set_cstr(&operation, "description", text);
    }
    parameters(route, api, &operation);
    if (api != NULL && strcmp(route->method, "POST") == 0)
        body(api, &operation);
    else if (api != NULL && api->input != 0)
        input(api, &operation);
    security(route, &operation);
    responses(route, api, &operation);
    if (path == NULL) {
        tide_json fresh;
        tide_json_object(&fresh);
        tide_json_set(&fresh, method, &operation);
        tide_json_set(paths, route->path, &fresh);
    } else {
        (void)json_object_set_new(path, method, operation.value);
    }
}

tide_status cli_api_document(const struct cli_serve *serve, tide_buf *text)
{
    tide_json all, info, paths, components, schemes, key;
    tide_json_object(&all);
    tide_json_object(&info);
    tide_json_object(&paths);
    tide_json_object(&components);
    tide_json_object(&schemes);
    tide_json_object(&key);
    tide_json_set_cstr(&all, "openapi", "3.1.0");
    tide_json_set_cstr(&info, "title", "Tidemark");
    tide_json_set_cstr(&info, "version", TIDE_VERSION);
    tide_json_set(&all, "info", &info);
    for (size_t i = 0; i < serve->routes_count; i++)
        route_document(&serve->routes[i], &paths);
    tide_json_set(&all, "paths", &paths);
    tide_json_set_cstr(&key, "type", "http");
    tide_json_set_cstr(&key, "scheme", "bearer");
    tide_json_set_cstr(&key, "description",
                       "from `tidemark token add`; scopes are metrics, look, work and page");
    tide_json_set(&schemes, "key", &key);
    tide_json_set(&components, "securitySchemes", &schemes);
    objects_set(serve, &components);
    tide_json_set(&all, "components", &components);
    const tide_status rc = tide_json_line(&all, text);
    tide_json_done(&all);
    return rc;
}
