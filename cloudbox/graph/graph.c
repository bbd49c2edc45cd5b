/* graph.c - the table of Graph's methods, and how an address finds its own. */
#include "cloudbox/graph/graph.h"

#include "base/check.h"
#include "base/json.h"
#include "cloudbox/graph/inside.h"
#include "cloudbox/microsoft/scopes.h"

enum { READ = BOX_SCOPES_FILES_READ, WRITE = BOX_SCOPES_FILES_WRITE };

/* ---- methods ---- */

#define ITEM "/v1.0/{drive}/{item}"
#define METHOD(name, verb, path, scopes, units, handle)                                            \
    {                                                                                              \
        name, verb, path, scopes, (scopes) == 0 ? BOX_METER_NONE : BOX_METER_GRAPH, units, units,  \
            handle                                                                                 \
    }
static const struct box_method methods[] = {
    METHOD("graph.me.get", BOX_GET, "/v1.0/me", READ | BOX_SCOPE_USER_READ, 1, box_graph_me),
    METHOD("graph.drives.list", BOX_GET, "/v1.0/me/drives", READ, 2, box_graph_drives),
    METHOD("graph.drive.get", BOX_GET, "/v1.0/{drive}", READ, 1, box_graph_drive),
    METHOD("graph.drive.item.get", BOX_GET, ITEM, READ, 1, box_graph_get),
    METHOD("graph.drive.item.update", BOX_PATCH, ITEM, WRITE, 2, box_graph_update),
    METHOD("graph.drive.item.delete", BOX_DELETE, ITEM, WRITE, 2, box_graph_remove),
    METHOD("graph.drive.children.list", BOX_GET, ITEM "/children", READ, 2, box_graph_children),
    METHOD("graph.drive.children.create", BOX_POST, ITEM "/children", WRITE, 2, box_graph_add),
    METHOD("graph.drive.delta", BOX_GET, ITEM "/delta", READ, 1, box_graph_delta),
    METHOD("graph.drive.content.get", BOX_GET, ITEM "/content", READ, 1, box_graph_content_get),
    METHOD("graph.drive.content.put", BOX_PUT, ITEM "/content", WRITE, 2, box_graph_content_put),
    METHOD("graph.drive.upload.create", BOX_POST, ITEM "/createUploadSession", WRITE, 2,
           box_graph_session_create),
    METHOD("graph.drive.upload.commit", BOX_PUT, ITEM, WRITE, 2, box_graph_session_adopt),
    METHOD("graph.upload.put", BOX_PUT, "/_files/upload/{session}", 0, 0, box_graph_session_put),
    METHOD("graph.upload.get", BOX_GET, "/_files/upload/{session}", 0, 0, box_graph_session_get),
    METHOD("graph.upload.delete", BOX_DELETE, "/_files/upload/{session}", 0, 0,
           box_graph_session_cancel),
    METHOD("graph.upload.commit", BOX_POST, "/_files/upload/{session}", 0, 0,
           box_graph_session_commit),
    METHOD("graph.subscriptions.create", BOX_POST, "/v1.0/subscriptions", READ, 1,
           box_graph_subscribe),
    METHOD("graph.subscriptions.list", BOX_GET, "/v1.0/subscriptions", READ, 1,
           box_graph_subscriptions),
    METHOD("graph.subscriptions.get", BOX_GET, "/v1.0/subscriptions/{id}", READ, 1,
           box_graph_subscription_get),
    METHOD("graph.subscriptions.update", BOX_PATCH, "/v1.0/subscriptions/{id}", READ, 1,
           box_graph_subscription_renew),
    METHOD("graph.subscriptions.delete", BOX_DELETE, "/v1.0/subscriptions/{id}", READ, 1,
           box_graph_subscription_delete),
    METHOD("graph.drive.copy", BOX_POST, ITEM "/copy", WRITE, 2, box_graph_copy),
    METHOD("graph.monitor.get", BOX_GET, "/_files/monitor/{token}", 0, 0, box_graph_monitor),
    METHOD("graph.download.get", BOX_GET, "/_files/download/{token}", 0, 0, box_graph_download),
};
#undef METHOD

/* Which address asks for each: its kind, and its last word ("": the thing itself). */
static const struct {
    box_address_kind kind;
    const char *what;
} asked[] = {
    {BOX_ADDRESS_ME, ""},
    {BOX_ADDRESS_DRIVES, ""},
    {BOX_ADDRESS_DRIVE, ""},
    {BOX_ADDRESS_ITEM, ""},
    {BOX_ADDRESS_ITEM, ""},
    {BOX_ADDRESS_ITEM, ""},
    {BOX_ADDRESS_ITEM, "children"},
    {BOX_ADDRESS_ITEM, "children"},
    {BOX_ADDRESS_ITEM, "delta"},
    {BOX_ADDRESS_ITEM, "content"},
    {BOX_ADDRESS_ITEM, "content"},
    {BOX_ADDRESS_ITEM, "createUploadSession"},
    {BOX_ADDRESS_ITEM, ""},
    {BOX_ADDRESS_PASS, "upload"},
    {BOX_ADDRESS_PASS, "upload"},
    {BOX_ADDRESS_PASS, "upload"},
    {BOX_ADDRESS_PASS, "upload"},
    {BOX_ADDRESS_SUBSCRIPTIONS, ""},
    {BOX_ADDRESS_SUBSCRIPTIONS, ""},
    {BOX_ADDRESS_SUBSCRIPTION, ""},
    {BOX_ADDRESS_SUBSCRIPTION, ""},
    {BOX_ADDRESS_SUBSCRIPTION, ""},
    {BOX_ADDRESS_ITEM, "copy"},
    {BOX_ADDRESS_PASS, "monitor"},
    {BOX_ADDRESS_PASS, "download"},
};
enum { METHODS = sizeof methods / sizeof methods[0] };
_Static_assert(METHODS == sizeof asked / sizeof asked[0], "every method has its address");

/* ---- routing ---- */

/* What a fault rule's "id" names, and "poison" draws by: the id or the path of the item. */
static void set_args(struct box_call *call, const struct box_address *address)
{
    call->args_count = 1;
    if (address->more.bytes > 0)
        call->args[0] = address->more;
    else if (address->path.bytes > 0)
        call->args[0] = address->path;
    else if (address->id.data != NULL)
        call->args[0] = address->id;
    else
        call->args[0] = TIDE_TEXT("root");
}

/* Whom an address with its own permission was made for. */
static struct box_user *pass_user(const struct box_call *call, const struct box_address *address)
{
    if (box_is(address->what, "upload"))
        return box_graph_session_user(call, address->more);
    const char *what = box_is(address->what, "monitor") ? "monitor" : "download";
    return box_graph_pass_user(call, what, address->more);
}

static const struct box_method *route(struct box_call *call, bool *verb_wrong_out)
{
    struct box_address address;
    if (!box_address_parse(&call->target, call->scratch, &address))
        return NULL;
    call->service = &box_graph;
    for (size_t i = 0; i < METHODS; i++) {
        if (asked[i].kind != address.kind || !box_is(address.what, asked[i].what))
            continue;
        if (methods[i].verb != call->request->verb) {
            *verb_wrong_out = true;
            continue;
        }
        set_args(call, &address);
        if (address.kind == BOX_ADDRESS_PASS)
            call->user = pass_user(call, &address);
        return &methods[i];
    }
    return NULL;
}

/* ---- the service ---- */

static void *open_graph(box_cloud *cloud)
{
    (void)cloud;
    struct box_graph_state *state = tide_mem_new(tide_mem_heap(), sizeof *state);
    TIDE_ASSERT(state != NULL);
    state->sessions = box_sessions_new();
    state->subscriptions = box_subscriptions_new();
    return state;
}

static void close_graph(void *arg)
{
    struct box_graph_state *state = arg;
    box_sessions_free(state->sessions);
    box_subscriptions_free(state->subscriptions);
    tide_mem_free(tide_mem_heap(), state, sizeof *state);
}

static tide_status replay(box_cloud *cloud, const json_t *change, tide_error *err)
{
    tide_text email;
    const tide_status rc = tide_json_get_text(change, "user", &email, err);
    if (rc != TIDE_OK)
        return rc;
    const struct box_user *user = box_cloud_user(cloud, email);
    if (user == NULL)
        return tide_error_set(err, TIDE_CORRUPT, "a change of %.*s, who does not exist",
                              (int)email.bytes, email.data);
    return box_drive_replay(box_user_drive(user), change, err);
}

const struct box_service box_graph = {
    .name = "graph",
    .methods = methods,
    .methods_count = METHODS,
    .style = &box_graph_style,
    .route = route,
    .open = open_graph,
    .close = close_graph,
    .changed = box_graph_changed,
    .delivery_next = box_graph_delivery_next,
    .delivery_ended = box_graph_delivery_ended,
    .delivery_wake_at_ms = box_graph_delivery_wake_at_ms,
    .user_open = box_graph_user_open,
    .user_close = box_graph_user_close,
    .limits = box_graph_limits,
    .limits_count = BOX_GRAPH_LIMITS,
    .refuse = box_graph_refuse,
    .answered = box_graph_answered,
    .faults = box_graph_faults,
    .faults_count = BOX_GRAPH_FAULTS,
    .record = box_graph_record,
    .record_reset = box_graph_record_reset,
    .ops = "drive",
    .replay = replay,
    .batch = box_graph_batch,
    .distant = true,
    .sink = box_graph_sink,
};
