/* discovery.c - the APIs describe themselves, as Google's discovery service does.
 *
 * Client libraries that build themselves from a discovery document (Python's,
 * for example) ask for it before anything else.  Verb, path and scopes come from the tables
 * that the gate routes by, so a document never promises what the cloud does not
 * serve; parameters and schemas stand below in a shorthand:
 *
 *     name       a string            name:int   an integer
 *     name*      a list of them      name:bool  a truth value
 *     name:u64   a number in a string (also i64, byte)
 *     name:num   a double            name:X     the schema X
 *     name!      required
 */
#include "base/check.h"
#include "cloudbox/google/discovery.h"
#include "cloudbox/google/scopes.h"
#include "cloudbox/google/style.h"

#include <stdio.h>

struct shape {
    const char *method;
    const char *params; /* of the query */
    const char *request;
    const char *response;
};

static const char listing[] = "q maxResults:int pageToken labelIds* includeSpamTrash:bool";

static const struct shape shapes[] = {
    {"gmail.users.getProfile", "", NULL, "Profile"},
    {"gmail.users.watch", "", "WatchRequest", "WatchResponse"},
    {"gmail.users.messages.list", listing, NULL, "ListMessagesResponse"},
    {"gmail.users.messages.get", "format metadataHeaders*", NULL, "Message"},
    {"gmail.users.messages.modify", "", "ModifyMessageRequest", "Message"},
    {"gmail.users.messages.trash", "", NULL, "Message"},
    {"gmail.users.messages.untrash", "", NULL, "Message"},
    {"gmail.users.messages.batchModify", "", "BatchModifyMessagesRequest", NULL},
    {"gmail.users.messages.batchDelete", "", "BatchDeleteMessagesRequest", NULL},
    {"gmail.users.messages.insert", "internalDateSource deleted:bool", "Message", "Message"},
    {"gmail.users.messages.import",
     "internalDateSource deleted:bool neverMarkSpam:bool processForCalendar:bool", "Message",
     "Message"},
    {"gmail.users.messages.send", "", "Message", "Message"},
    {"gmail.users.messages.attachments.get", "", NULL, "MessagePartBody"},
    {"gmail.users.threads.list", listing, NULL, "ListThreadsResponse"},
    {"gmail.users.threads.get", "format metadataHeaders*", NULL, "Thread"},
    {"gmail.users.threads.modify", "", "ModifyThreadRequest", "Thread"},
    {"gmail.users.threads.trash", "", NULL, "Thread"},
    {"gmail.users.threads.untrash", "", NULL, "Thread"},
    {"gmail.users.drafts.list", "q maxResults:int pageToken includeSpamTrash:bool", NULL,
     "ListDraftsResponse"},
    {"gmail.users.drafts.get", "format", NULL, "Draft"},
    {"gmail.users.drafts.create", "", "Draft", "Draft"},
    {"gmail.users.drafts.update", "", "Draft", "Draft"},
    {"gmail.users.drafts.send", "", "Draft", "Message"},
    {"gmail.users.labels.list", "", NULL, "ListLabelsResponse"},
    {"gmail.users.labels.get", "", NULL, "Label"},
    {"gmail.users.labels.create", "", "Label", "Label"},
    {"gmail.users.labels.update", "", "Label", "Label"},
    {"gmail.users.labels.patch", "", "Label", "Label"},
    {"gmail.users.history.list",
     "startHistoryId:u64 historyTypes* labelId maxResults:int pageToken", NULL,
     "ListHistoryResponse"},
    {"webmasters.sites.list", "", NULL, "SitesListResponse"},
    {"webmasters.sites.get", "", NULL, "WmxSite"},
    {"webmasters.sitemaps.list", "sitemapIndex", NULL, "SitemapsListResponse"},
    {"webmasters.sitemaps.get", "", NULL, "WmxSitemap"},
    {"webmasters.searchanalytics.query", "", "SearchAnalyticsQueryRequest",
     "SearchAnalyticsQueryResponse"},
};

struct schema {
    const char *api;
    const char *name;
    const char *fields;
};

static const struct schema schemas[] = {
    {"gmail", "Profile", "emailAddress messagesTotal:int threadsTotal:int historyId:u64"},
    {"gmail", "WatchRequest", "topicName labelIds* labelFilterAction labelFilterBehavior"},
    {"gmail", "WatchResponse", "historyId:u64 expiration:i64"},
    {"gmail", "ListMessagesResponse", "messages*:Message nextPageToken resultSizeEstimate:int"},
    {"gmail", "Message",
     "id threadId labelIds* snippet historyId:u64 internalDate:i64 sizeEstimate:int "
     "payload:MessagePart raw:byte"},
    {"gmail", "MessagePart",
     "partId mimeType filename headers*:MessagePartHeader body:MessagePartBody "
     "parts*:MessagePart"},
    {"gmail", "MessagePartHeader", "name value"},
    {"gmail", "MessagePartBody", "attachmentId size:int data:byte"},
    {"gmail", "ModifyMessageRequest", "addLabelIds* removeLabelIds*"},
    {"gmail", "ModifyThreadRequest", "addLabelIds* removeLabelIds*"},
    {"gmail", "BatchModifyMessagesRequest", "ids* addLabelIds* removeLabelIds*"},
    {"gmail", "BatchDeleteMessagesRequest", "ids*"},
    {"gmail", "ListThreadsResponse", "threads*:Thread nextPageToken resultSizeEstimate:int"},
    {"gmail", "Thread", "id snippet historyId:u64 messages*:Message"},
    {"gmail", "ListDraftsResponse", "drafts*:Draft nextPageToken resultSizeEstimate:int"},
    {"gmail", "Draft", "id message:Message"},
    {"gmail", "ListLabelsResponse", "labels*:Label"},
    {"gmail", "Label",
     "id name type messageListVisibility labelListVisibility messagesTotal:int "
     "messagesUnread:int threadsTotal:int threadsUnread:int color:LabelColor"},
    {"gmail", "LabelColor", "textColor backgroundColor"},
    {"gmail", "ListHistoryResponse", "history*:History nextPageToken historyId:u64"},
    {"gmail", "History",
     "id:u64 messages*:Message messagesAdded*:HistoryMessageAdded "
     "messagesDeleted*:HistoryMessageDeleted labelsAdded*:HistoryLabelAdded "
     "labelsRemoved*:HistoryLabelRemoved"},
    {"gmail", "HistoryMessageAdded", "message:Message"},
    {"gmail", "HistoryMessageDeleted", "message:Message"},
    {"gmail", "HistoryLabelAdded", "message:Message labelIds*"},
    {"gmail", "HistoryLabelRemoved", "message:Message labelIds*"},
    {"searchconsole", "SitesListResponse", "siteEntry*:WmxSite"},
    {"searchconsole", "WmxSite", "siteUrl permissionLevel"},
    {"searchconsole", "SitemapsListResponse", "sitemap*:WmxSitemap"},
    {"searchconsole", "WmxSitemap",
     "path lastSubmitted isPending:bool isSitemapsIndex:bool type lastDownloaded "
     "warnings:i64 errors:i64"},
    {"searchconsole", "SearchAnalyticsQueryRequest",
     "startDate endDate dimensions* type searchType aggregationType dataState rowLimit:int "
     "startRow:int dimensionFilterGroups*:ApiDimensionFilterGroup"},
    {"searchconsole", "ApiDimensionFilterGroup", "groupType filters*:ApiDimensionFilter"},
    {"searchconsole", "ApiDimensionFilter", "dimension operator expression"},
    {"searchconsole", "SearchAnalyticsQueryResponse",
     "rows*:ApiDataRow responseAggregationType metadata:Metadata"},
    {"searchconsole", "ApiDataRow", "keys* clicks:num impressions:num ctr:num position:num"},
    {"searchconsole", "Metadata", "firstIncompleteDate firstIncompleteHour"},
};

struct api {
    const char *name;
    const char *version;
    const char *title;
    const char *service; /* its name; a cloud without it has a document without methods */
};

static const struct api apis[] = {
    {"gmail", "v1", "Gmail API", "gmail"},
    {"searchconsole", "v1", "Google Search Console API", "console"},
};

enum { APIS = sizeof apis / sizeof apis[0] };

/* ---- the shorthand ---- */

struct item {
    tide_text name;
    tide_text type;
    bool list;
    bool required;
};

/* Takes the next item off the front; false at the end. */
static bool item_next(tide_text *text, struct item *item_out)
{
    while (text->bytes > 0 && text->data[0] == ' ') {
        text->data++;
        text->bytes--;
    }
    if (text->bytes == 0)
        return false;
    const char *space = memchr(text->data, ' ', text->bytes);
    const tide_text word = {text->data, space == NULL ? text->bytes : (size_t)(space - text->data)};
    text->data += word.bytes;
    text->bytes -= word.bytes;
    const char *colon = memchr(word.data, ':', word.bytes);
    tide_text name = {word.data, colon == NULL ? word.bytes : (size_t)(colon - word.data)};
    *item_out =
        (struct item){.type = colon == NULL ? TIDE_TEXT_NONE
                                            : (tide_text){colon + 1, word.bytes - name.bytes - 1}};
    item_out->required = name.data[name.bytes - 1] == '!';
    name.bytes -= item_out->required;
    item_out->list = name.data[name.bytes - 1] == '*';
    name.bytes -= item_out->list;
    item_out->name = name;
    return true;
}

static json_t *type_of(tide_text type)
{
    static const struct {
        const char *word, *type, *format;
    } plain[] = {
        {"int", "integer", "int32"}, {"bool", "boolean", NULL},  {"num", "number", "double"},
        {"u64", "string", "uint64"}, {"i64", "string", "int64"}, {"byte", "string", "byte"},
    };
    if (type.data == NULL)
        return json_pack("{s:s}", "type", "string");
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++) {
        if (!tide_text_equal(type, tide_text_of(plain[i].word)))
            continue;
        return plain[i].format == NULL
                   ? json_pack("{s:s}", "type", plain[i].type)
                   : json_pack("{s:s, s:s}", "type", plain[i].type, "format", plain[i].format);
    }
    return json_pack("{s:s%}", "$ref", type.data, type.bytes);
}

static void set_item(json_t *object, tide_text name, json_t *value)
{
    TIDE_ASSERT(json_object_setn_new(object, name.data, name.bytes, value) == 0);
}

/* ---- a document ---- */

static json_t *schemas_of(const struct api *api)
{
    json_t *all = json_object();
    for (size_t i = 0; i < sizeof schemas / sizeof schemas[0]; i++) {
        if (strcmp(schemas[i].api, api->name) != 0)
            continue;
        json_t *fields = json_object();
        tide_text text = tide_text_of(schemas[i].fields);
        struct item item;
        while (item_next(&text, &item)) {
            json_t *type = type_of(item.type);
            set_item(fields, item.name,
                     item.list ? json_pack("{s:s, s:o}", "type", "array", "items", type) : type);
        }
        json_object_set_new(all, schemas[i].name,
                            json_pack("{s:s, s:s, s:o}", "id", schemas[i].name, "type", "object",
                                      "properties", fields));
    }
    return all;
}

static json_t *params_of(const struct box_method *method, const char *query)
{
    json_t *params = json_object();
    for (const char *open = strchr(method->path, '{'); open != NULL; open = strchr(open + 1, '{')) {
        const char *name = open[1] == '+' ? open + 2 : open + 1;
        set_item(params, (tide_text){name, strcspn(name, "}")},
                 json_pack("{s:s, s:s, s:b}", "type", "string", "location", "path", "required", 1));
    }
    tide_text text = tide_text_of(query);
    struct item item;
    while (text.data != NULL && item_next(&text, &item)) {
        json_t *param = type_of(item.type);
        json_object_set_new(param, "location", json_string("query"));
        if (item.list)
            json_object_set_new(param, "repeated", json_true());
        if (item.required)
            json_object_set_new(param, "required", json_true());
        set_item(params, item.name, param);
    }
    json_t *user = json_object_get(params, "userId");
    if (user != NULL)
        json_object_set_new(user, "default", json_string("me"));
    return params;
}

static const struct shape *shape_of(const char *method)
{
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        if (strcmp(shapes[i].method, method) == 0)
            return &shapes[i];
    return NULL;
}

static json_t *scopes_of(uint32_t scopes)
{
    tide_auto_buf text = tide_buf_heap(4096);
    box_scopes_text(scopes, &text);
    json_t *list = json_array();
    tide_text left = tide_buf_text(&text);
    while (left.bytes > 0) {
        const char *space = memchr(left.data, ' ', left.bytes);
        const size_t bytes = space == NULL ? left.bytes : (size_t)(space - left.data);
        json_array_append_new(list, box_json_text((tide_text){left.data, bytes}));
        left.data += bytes + (space != NULL);
        left.bytes -= bytes + (space != NULL);
    }
    return list;
}

static json_t *method_of(const struct box_method *method)
{
    const struct shape *shape = shape_of(method->name);
    json_t *entry = json_pack("{s:s, s:s, s:s, s:o, s:o}", "id", method->name, "path",
                              method->path + 1, "httpMethod", box_verb_name(method->verb),
                              "parameters", params_of(method, shape == NULL ? NULL : shape->params),
                              "scopes", scopes_of(method->scopes));
    if (shape != NULL && shape->request != NULL)
        json_object_set_new(entry, "request", json_pack("{s:s}", "$ref", shape->request));
    if (shape != NULL && shape->response != NULL)
        json_object_set_new(entry, "response", json_pack("{s:s}", "$ref", shape->response));
    return entry;
}

/* The object that holds the methods of "a.b.c": resources a, b; made on the way. */
static json_t *methods_holding(json_t *document, const char *name)
{
    json_t *at = document;
    const char *word = strchr(name, '.') + 1; /* the API's name is the document itself */
    for (const char *dot = strchr(word, '.'); dot != NULL; dot = strchr(word, '.')) {
        json_t *resources = json_object_get(at, "resources");
        if (resources == NULL) {
            resources = json_object();
            json_object_set_new(at, "resources", resources);
        }
        const size_t bytes = (size_t)(dot - word);
        json_t *next = json_object_getn(resources, word, bytes);
        if (next == NULL) {
            next = json_object();
            set_item(resources, (tide_text){word, bytes}, next);
        }
        at = next;
        word = dot + 1;
    }
    json_t *methods = json_object_get(at, "methods");
    if (methods == NULL) {
        methods = json_object();
        json_object_set_new(at, "methods", methods);
    }
    return methods;
}

static bool is_upload(const struct box_method *method)
{
    return strncmp(method->path, "/upload/", 8) == 0;
}

static void add_upload(json_t *entry, const struct box_method *method)
{
    json_object_set_new(entry, "supportsMediaUpload", json_true());
    json_object_set_new(entry, "mediaUpload",
                        json_pack("{s:[s], s:{s:{s:b, s:s}, s:{s:b, s:s}}}", "accept", "message/*",
                                  "protocols", "simple", "multipart", 1, "path", method->path,
                                  "resumable", "multipart", 1, "path", method->path));
}

static void add_methods(json_t *document, const struct box_service *service)
{
    for (size_t i = 0; i < service->methods_count; i++) {
        const struct box_method *method = &service->methods[i];
        if (is_upload(method) || strncmp(method->path, "/resumable/", 11) == 0)
            continue;
        json_t *methods = methods_holding(document, method->name);
        json_object_set_new(methods, strrchr(method->name, '.') + 1, method_of(method));
    }
    for (size_t i = 0; i < service->methods_count; i++) {
        const struct box_method *method = &service->methods[i];
        json_t *entry = json_object_get(methods_holding(document, method->name),
                                        strrchr(method->name, '.') + 1);
        if (is_upload(method) && entry != NULL)
            add_upload(entry, method);
    }
}

static json_t *common_params(void)
{
    static const char *const names[] = {
        "fields",       "alt",         "key",        "quotaUser",
        "access_token", "oauth_token", "uploadType", "upload_protocol",
        "callback"};
    json_t *params = json_object();
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        json_object_set_new(params, names[i],
                            json_pack("{s:s, s:s}", "type", "string", "location", "query"));
    json_object_set_new(
        params, "prettyPrint",
        json_pack("{s:s, s:s, s:s}", "type", "boolean", "location", "query", "default", "true"));
    return params;
}

static json_t *document_of(const struct api *api, const struct box_call *call)
{
    const tide_text origin = call->request->origin;
    char root[512];
    (void)snprintf(root, sizeof root, "%.*s/", (int)(origin.bytes > 500 ? 500 : origin.bytes),
                   origin.data == NULL ? "" : origin.data);
    const struct box_service *service = box_cloud_service(call->cloud, api->service);
    uint32_t scopes = 0;
    for (size_t i = 0; service != NULL && i < service->methods_count; i++)
        scopes |= service->methods[i].scopes;
    json_auto_t *scope_list = scopes_of(scopes);
    json_t *scope_names = json_object();
    size_t index = 0;
    json_t *scope = NULL;
    json_array_foreach(scope_list, index, scope)
        json_object_set_new(scope_names, json_string_value(scope),
                            json_pack("{s:s}", "description", json_string_value(scope)));
    char id[64];
    (void)snprintf(id, sizeof id, "%s:%s", api->name, api->version);
    json_t *document =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:o, s:{s:{s:o}}}",
                  "kind", "discovery#restDescription", "discoveryVersion", "v1", "id", id, "name",
                  api->name, "version", api->version, "title", api->title, "protocol", "rest",
                  "rootUrl", root, "servicePath", "", "baseUrl", root, "basePath", "", "batchPath",
                  "batch", "parameters", common_params(), "auth", "oauth2", "scopes", scope_names);
    TIDE_ASSERT(document != NULL);
    json_object_set_new(document, "schemas", schemas_of(api));
    if (service != NULL)
        add_methods(document, service);
    return document;
}

/* ---- handlers ---- */

static void document_get(struct box_call *call)
{
    for (size_t i = 0; i < APIS; i++) {
        if (tide_text_equal(call->args[0], tide_text_of(apis[i].name)) &&
            tide_text_equal(call->args[1], tide_text_of(apis[i].version))) {
            box_call_reply(call, document_of(&apis[i], call));
            return;
        }
    }
    box_fail_missing(call);
}

/* Each API's own host has its document at one path: the host decides. */
static void own_document_get(struct box_call *call)
{
    const tide_text host = box_request_header(call->request, "Host");
    const bool console = host.bytes >= 13 && memcmp(host.data, "searchconsole", 13) == 0;
    box_call_reply(call, document_of(&apis[console ? 1 : 0], call));
}

static void directory_get(struct box_call *call)
{
    const tide_text origin = call->request->origin;
    json_t *items = json_array();
    for (size_t i = 0; i < APIS; i++) {
        char url[600];
        (void)snprintf(url, sizeof url, "%.*s/discovery/v1/apis/%s/%s/rest",
                       (int)(origin.bytes > 500 ? 500 : origin.bytes),
                       origin.data == NULL ? "" : origin.data, apis[i].name, apis[i].version);
        json_array_append_new(items, json_pack("{s:s, s:s, s:s, s:s, s:b}", "name", apis[i].name,
                                               "version", apis[i].version, "title", apis[i].title,
                                               "discoveryRestUrl", url, "preferred", 1));
    }
    box_call_reply(call, json_pack("{s:s, s:s, s:o}", "kind", "discovery#directoryList",
                                   "discoveryVersion", "v1", "items", items));
}

static const struct box_method methods[] = {
    {"discovery.apis.list", BOX_GET, "/discovery/v1/apis", 0, BOX_METER_NONE, 0, 0, directory_get},
    {"discovery.apis.getRest", BOX_GET, "/discovery/v1/apis/{api}/{version}/rest", 0,
     BOX_METER_NONE, 0, 0, document_get},
    {"discovery.apis.getRest", BOX_GET, "/$discovery/rest", 0, BOX_METER_NONE, 0, 0,
     own_document_get},
};

const struct box_service box_discovery = {
    .name = "discovery",
    .methods = methods,
    .methods_count = sizeof methods / sizeof methods[0],
    .style = &box_google_style,
};
