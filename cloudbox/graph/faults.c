/* faults.c - Graph's own faults: tokens that are no longer known, pages that are empty, come twice
 * or backwards, removals that are not told, addresses that expire. */
#include "base/check.h"
#include "cloudbox/graph/inside.h"

static bool is_delta(const struct box_call *call)
{
    return call->method->handle == box_graph_delta;
}

static bool is_download(const struct box_call *call)
{
    return call->method->handle == box_graph_download;
}

static bool has_items(const struct box_call *call)
{
    return is_delta(call) || call->method->handle == box_graph_children;
}

static bool says_names(const struct box_call *call)
{
    return has_items(call) || call->method->handle == box_graph_get;
}

/* ---- instead of the answer ---- */

static void resync_apply(struct box_call *call, const struct box_strike *strike)
{
    (void)strike;
    box_graph_resync(call, "resyncChangesApplyDifferences");
}

static void resync_upload(struct box_call *call, const struct box_strike *strike)
{
    (void)strike;
    box_graph_resync(call, "resyncChangesUploadDifferences");
}

static void url_expired(struct box_call *call, const struct box_strike *strike)
{
    (void)strike;
    box_graph_fail(call, 401, "unauthenticated", NULL, "The download address has expired.");
}

static bool has_match(const struct box_call *call)
{
    return box_request_header(call->request, "If-Match").data != NULL;
}

static bool gives_bytes(const struct box_call *call)
{
    return is_download(call) || call->method->handle == box_graph_content_get;
}

static bool changes_item(const struct box_call *call)
{
    return call->method->handle == box_graph_update || call->method->handle == box_graph_remove ||
           call->method->handle == box_graph_content_put;
}

static bool is_upload(const struct box_call *call)
{
    return call->method->handle == box_graph_content_put ||
           call->method->handle == box_graph_session_put;
}

/* The tag was right. */
static void wrong_match(struct box_call *call, const struct box_strike *strike)
{
    (void)strike;
    box_graph_fail(call, 412, "resourceModified", "entityTagDoesNotMatch",
                   "ETag does not match current item's value");
}

void box_graph_malware(struct box_call *call)
{
    box_graph_fail(call, 403, "malwareDetected", "virusSuspicious",
                   "The file contains malware and cannot be downloaded.");
}

static void malware(struct box_call *call, const struct box_strike *strike)
{
    (void)strike;
    box_graph_malware(call);
}

static void locked(struct box_call *call, const struct box_strike *strike)
{
    (void)strike;
    box_graph_fail(call, 423, "resourceLocked", NULL, "The item is checked out or locked.");
}

/* ---- after it ---- */

/* Changes the items of a page, unless the answer is a refusal. */
static void spoil(struct box_call *call, void (*change)(json_t *items))
{
    json_t *page =
        json_loadb(tide_buf_cstr(&call->answer->body), call->answer->body.bytes, 0, NULL);
    json_t *items = json_object_get(page, "value");
    if (json_is_array(items)) {
        change(items);
        box_answer_json(call->answer, 200, page, false);
    } else {
        json_decref(page);
    }
}

static void turn(json_t *items)
{
    json_t *turned = json_array();
    for (size_t i = json_array_size(items); i > 0; i--)
        json_array_append(turned, json_array_get(items, i - 1));
    json_array_clear(items);
    json_array_extend(items, turned);
    json_decref(turned);
}

static void backwards(struct box_call *call, const struct box_strike *strike)
{
    (void)strike;
    spoil(call, turn);
}

static void drop_removals(json_t *items)
{
    for (size_t i = json_array_size(items); i > 0; i--)
        if (json_object_get(json_array_get(items, i - 1), "deleted") != NULL)
            json_array_remove(items, i - 1);
}

static void no_removals(struct box_call *call, const struct box_strike *strike)
{
    (void)strike;
    spoil(call, drop_removals);
}

static void drop_paths(json_t *items)
{
    size_t i = 0;
    json_t *item = NULL;
    json_array_foreach(items, i, item)
    {
        json_object_del(json_object_get(item, "parentReference"), "path");
    }
}

/* As Microsoft's page says. */
static void no_paths(struct box_call *call, const struct box_strike *strike)
{
    (void)strike;
    spoil(call, drop_paths);
}

/* A hash that no bytes have. */
static void falsify_hashes(json_t *items)
{
    size_t i = 0;
    json_t *item = NULL;
    json_array_foreach(items, i, item)
    {
        json_t *hashes = json_object_get(json_object_get(item, "file"), "hashes");
        if (hashes != NULL)
            json_object_set_new(hashes, "quickXorHash",
                                json_string("/////////////////////////////w=="));
    }
}

static void wrong_hashes(struct box_call *call, const struct box_strike *strike)
{
    (void)strike;
    spoil(call, falsify_hashes);
}

const struct box_fault box_graph_faults[BOX_GRAPH_FAULTS] = {
    {"resync-apply", BOX_ANSWERS, .fits = is_delta, .act = resync_apply},
    {"resync-upload", BOX_ANSWERS, .fits = is_delta, .act = resync_upload},
    {"412", BOX_ANSWERS, .fits = has_match, .act = wrong_match},
    {"malware", BOX_ANSWERS, .means = BOX_BY_ITEM, .fits = gives_bytes, .act = malware},
    {"locked", BOX_ANSWERS, .fits = changes_item, .act = locked},
    {"rewrite", BOX_ASKED, .fits = is_upload},
    {"url-expired", BOX_ANSWERS, .fits = is_download, .act = url_expired},
    {"no-range", BOX_ASKED, .fits = is_download},
    {"delta-empty", BOX_ASKED, .fits = is_delta},
    {"delta-repeat", BOX_ASKED, .fits = is_delta},
    {"delta-old", BOX_ASKED, .fits = is_delta},
    {"delta-backwards", BOX_SPOILS, .fits = is_delta, .act = backwards},
    {"delta-no-removals", BOX_SPOILS, .fits = is_delta, .act = no_removals},
    {"delta-no-paths", BOX_SPOILS, .fits = is_delta, .act = no_paths},
    {"wrong-hash", BOX_SPOILS, .fits = has_items, .act = wrong_hashes},
    {"hostile-names", BOX_SPOILS, .fits = says_names, .act = box_graph_hostile_names},
    {"odd-times", BOX_SPOILS, .fits = says_names, .act = box_graph_odd_times},
};
