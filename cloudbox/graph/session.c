/* session.c - upload sessions: a large file arrives in fragments and becomes an item with its last
 * byte (BGPH1).
 *
 *   created --fragment--> open --last fragment--> whole --commit--> gone
 *
 * A session that is whole and cannot be committed, since its name was taken meanwhile, stays:
 * the client commits it under another name.  So does one that was created with deferCommit.
 * All others end with their commit, their cancellation or their expiry. */
#include "base/check.h"
#include "cloudbox/graph/inside.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    SESSIONS_MAX = 256,
    ID_BYTES = 33,
    TAGS_BYTES = 200,
    FRAGMENT_UNIT = 320 << 10,
    FRAGMENT_BYTES_MAX = 60 << 20,
};
#define LIFE_MS (UINT64_C(24) * 3600 * 1000)

struct session {
    char id[ID_BYTES]; /* "": free */
    uint32_t user;     /* number */
    uint32_t slot;     /* of an item that was meant by its id; else BOX_ITEM_NONE and */
    uint32_t parent;   /* a place */
    char name[BOX_NAME_BYTES_MAX + 1];
    char match[TAGS_BYTES]; /* If-Match, which must still hold at the end; "": none */
    box_conflict conflict;
    struct box_file_times times;
    bool deferred;
    uint64_t total; /* UINT64_MAX: not known yet */
    uint64_t expires_ms;
    struct box_gather gather;
};

struct box_sessions {
    struct session list[SESSIONS_MAX];
};

/* ---- life ---- */

struct box_sessions *box_sessions_new(void)
{
    struct box_sessions *sessions = tide_mem_new(tide_mem_heap(), sizeof *sessions);
    TIDE_ASSERT(sessions != NULL);
    return sessions;
}

static void drop(struct session *session)
{
    if (session->id[0] != '\0')
        box_gather_done(&session->gather);
    *session = (struct session){0};
}

void box_sessions_free(struct box_sessions *sessions)
{
    for (size_t i = 0; i < SESSIONS_MAX; i++)
        drop(&sessions->list[i]);
    tide_mem_free(tide_mem_heap(), sessions, sizeof *sessions);
}

static struct box_sessions *sessions_of(const struct box_call *call)
{
    const struct box_graph_state *state = box_cloud_state(call->cloud, &box_graph);
    return state->sessions;
}

static struct session *find(const struct box_call *call, tide_text id)
{
    struct box_sessions *sessions = sessions_of(call);
    for (size_t i = 0; i < SESSIONS_MAX && id.bytes > 0; i++)
        if (tide_text_equal(tide_text_of(sessions->list[i].id), id))
            return &sessions->list[i];
    return NULL;
}

struct box_user *box_graph_session_user(const struct box_call *call, tide_text id)
{
    const struct session *session = find(call, id);
    return session == NULL ? NULL : box_cloud_user_at(call->cloud, session->user - 1);
}

/* A free one; what has expired makes room. */
static struct session *place_for(const struct box_call *call)
{
    struct box_sessions *sessions = sessions_of(call);
    for (size_t i = 0; i < SESSIONS_MAX; i++) {
        struct session *session = &sessions->list[i];
        if (session->id[0] != '\0' && call->now_ms >= session->expires_ms)
            drop(session);
        if (session->id[0] == '\0')
            return session;
    }
    return NULL;
}

/* The session that the address names, or a 404. */
static struct session *session_of(struct box_call *call)
{
    struct session *session = find(call, call->args[0]);
    if (session != NULL && call->now_ms < session->expires_ms)
        return session;
    if (session != NULL)
        drop(session);
    box_graph_fail(call, 404, "itemNotFound", "uploadSessionNotFound",
                   "The upload session was not found");
    return NULL;
}

/* ---- creating ---- */

/* What the body says; false: answered. */
static bool read_session(struct box_call *call, const json_t *body, struct session *session)
{
    const json_t *item = json_object_get(body, "item");
    const json_t *bytes = json_object_get(item, "fileSize");
    session->deferred = json_is_true(json_object_get(body, "deferCommit"));
    session->total = UINT64_MAX;
    if (json_is_integer(bytes) && json_integer_value(bytes) > 0)
        session->total = (uint64_t)json_integer_value(bytes);
    /* Microsoft's page says "fail"; rclone replaces files and says nothing, which works. */
    return box_graph_conflict(call, item, BOX_CONFLICT_REPLACE, &session->conflict) &&
           box_graph_times(call, item, &session->times);
}

/* A place with a name, or an item by its id. */
static bool read_place(struct box_call *call, const json_t *body, struct box_spot *spot)
{
    const json_t *name = json_object_get(json_object_get(body, "item"), "name");
    if (spot->name.data != NULL && json_is_string(name))
        spot->name = (tide_text){json_string_value(name), json_string_length(name)};
    if (spot->name.data == NULL) {
        if (!box_drive_at(spot->drive, spot->slot)->folder)
            return true;
        box_graph_fail(call, 400, "invalidRequest", NULL,
                       "An upload session cannot be created for a folder.");
        return false;
    }
    if (!box_graph_name(call, spot->drive, spot->parent, spot->name))
        return false;
    spot->slot = box_drive_child(spot->drive, spot->parent, spot->name);
    return true;
}

static void write_url(const struct box_call *call, const struct session *session, tide_buf *out)
{
    box_print(out, "%.*s/_files/upload/%s", (int)call->request->origin.bytes,
              call->request->origin.data, session->id);
}

/* {"expirationDateTime","nextExpectedRanges","uploadUrl"}; the context is what one client looks
 * for before it resumes. */
static void reply_status(struct box_call *call, struct session *session, int status)
{
    char time_text[BOX_SECONDS_TEXT_BYTES], range[32];
    tide_auto_buf url = tide_buf_heap(BOX_TARGET_BYTES_MAX);
    const uint64_t have = session->gather.hash.bytes;
    box_seconds_text(session->expires_ms, time_text);
    write_url(call, session, &url);
    json_t *ranges = json_array();
    snprintf(range, sizeof range, "%" PRIu64 "-", have);
    if (have < session->total)
        json_array_append_new(ranges, json_string(range));
    box_answer_json(call->answer, status,
                    json_pack("{s:s, s:s, s:s, s:o}", "@odata.context",
                              "https://graph.microsoft.com/v1.0/"
                              "$metadata#microsoft.graph.uploadSession",
                              "uploadUrl", tide_buf_cstr(&url), "expirationDateTime", time_text,
                              "nextExpectedRanges", ranges),
                    false);
}

static void start(struct box_call *call, const struct box_spot *spot, struct session *session)
{
    const tide_text match = box_request_header(call->request, "If-Match");
    tide_rng rng = tide_rng_seeded(tide_rng_next(box_cloud_rng(call->cloud)) ^ call->now_ms);
    const uint64_t high = tide_rng_next(&rng), low = tide_rng_next(&rng);
    snprintf(session->id, sizeof session->id, "%016" PRIx64 "%016" PRIx64, high, low);
    snprintf(session->match, sizeof session->match, "%.*s", (int)match.bytes,
             match.data == NULL ? "" : match.data);
    snprintf(session->name, sizeof session->name, "%.*s", (int)spot->name.bytes,
             spot->name.data == NULL ? "" : spot->name.data);
    session->user = call->user->number;
    session->slot = spot->name.data == NULL ? spot->slot : BOX_ITEM_NONE;
    session->parent = spot->parent;
    session->expires_ms = call->now_ms + LIFE_MS;
    box_gather_init(&session->gather);
    reply_status(call, session, 200);
}

void box_graph_session_create(struct box_call *call)
{
    struct box_spot spot;
    struct session made = {0};
    if (!box_graph_place(call, &spot))
        return;
    json_auto_t *body = box_call_body(call);
    if (body == NULL || !read_session(call, body, &made) || !read_place(call, body, &spot) ||
        !box_graph_conditions(call, spot.drive, spot.slot))
        return;
    const bool there = spot.slot != BOX_ITEM_NONE;
    const uint64_t less = there ? box_drive_at(spot.drive, spot.slot)->content.bytes : 0;
    if (there && spot.name.data != NULL && made.conflict == BOX_CONFLICT_FAIL) {
        box_graph_fail(call, 409, "nameAlreadyExists", NULL,
                       "An item with the same name already exists under the parent");
        return;
    }
    if (box_request_header(call->request, "If-Match").bytes >= TAGS_BYTES) {
        box_graph_fail(call, 400, "invalidRequest", "malformedEntityTag", "The tags are too long.");
        return;
    }
    if (made.total != UINT64_MAX && !box_graph_fits(call, spot.drive, made.total, less))
        return;
    struct session *session = place_for(call);
    if (session == NULL) {
        box_graph_fail(call, 503, "serviceNotAvailable", NULL, "Too many upload sessions.");
        return;
    }
    *session = made;
    start(call, &spot, session);
}

/* ---- committing ---- */

/* Where the item goes now; false: answered. */
static bool place_now(struct box_call *call, const struct session *session, struct box_spot *spot)
{
    *spot = (struct box_spot){
        .drive = box_user_drive(call->user), .slot = session->slot, .parent = session->parent};
    if (session->slot == BOX_ITEM_NONE) {
        spot->name = tide_text_of(session->name);
        if (!box_drive_at(spot->drive, spot->parent)->gone) {
            spot->slot = box_drive_child(spot->drive, spot->parent, spot->name);
            return true;
        }
    } else if (!box_drive_at(spot->drive, session->slot)->gone) {
        spot->parent = box_drive_at(spot->drive, session->slot)->parent;
        return true;
    }
    box_graph_missing(call);
    return false;
}

/* Of a session whose bytes are all here; it ends unless the name is taken. */
static void commit(struct box_call *call, struct session *session, const struct box_spot *spot)
{
    const bool checked = session->match[0] != '\0';
    if (checked && !box_graph_tag_fits(tide_text_of(session->match), spot->drive, spot->slot)) {
        box_graph_fail(call, 412, "resourceModified", "entityTagDoesNotMatch",
                       "ETag does not match current item's value");
        return;
    }
    struct box_content content = box_content_stored(&session->gather);
    box_graph_put(call, spot, &content, session->times, session->conflict, checked);
    box_content_drop(&content);
    if (call->answer->status < 300)
        drop(session);
}

/* Without a body to the session's address: commits what was deferred. */
void box_graph_session_commit(struct box_call *call)
{
    struct session *session = session_of(call);
    struct box_spot spot;
    if (session == NULL)
        return;
    if (session->gather.hash.bytes != session->total)
        box_graph_fail(call, 400, "invalidRequest", "uploadSessionIncomplete",
                       "The upload session is not complete.");
    else if (place_now(call, session, &spot))
        commit(call, session, &spot);
}

/* PUT of an item with "@microsoft.graph.sourceUrl": commits a session under this name. */
void box_graph_session_adopt(struct box_call *call)
{
    struct box_spot spot;
    if (!box_graph_place(call, &spot))
        return;
    json_auto_t *body = box_call_body(call);
    if (body == NULL)
        return;
    const char *url = json_string_value(json_object_get(body, "@microsoft.graph.sourceUrl"));
    const char *name = json_string_value(json_object_get(body, "name"));
    const char *last = url == NULL ? NULL : strrchr(url, '/');
    struct session *session = last == NULL ? NULL : find(call, tide_text_of(last + 1));
    if (session == NULL || session->user != call->user->number) {
        box_graph_fail(call, 404, "itemNotFound", "uploadSessionNotFound",
                       "The upload session was not found");
        return;
    }
    if (session->gather.hash.bytes != session->total) {
        box_graph_fail(call, 400, "invalidRequest", "uploadSessionIncomplete",
                       "The upload session is not complete.");
        return;
    }
    /* A folder and a name, or the whole path. */
    if (spot.slot != BOX_ITEM_NONE && box_drive_at(spot.drive, spot.slot)->folder && name != NULL) {
        spot.parent = spot.slot;
        spot.name = tide_text_of(name);
        spot.slot = box_drive_child(spot.drive, spot.parent, spot.name);
    }
    if (box_graph_conflict(call, body, session->conflict, &session->conflict) &&
        box_graph_times(call, body, &session->times))
        commit(call, session, &spot);
}

/* ---- fragments ---- */

struct fragment {
    uint64_t first;
    uint64_t last;
    uint64_t total;
};

/* "bytes a-b/total" */
static bool fragment_parse(tide_text text, struct fragment *fragment_out)
{
    struct fragment fragment;
    if (!box_starts(text, "bytes "))
        return false;
    text = (tide_text){text.data + 6, text.bytes - 6};
    const char *dash = text.bytes == 0 ? NULL : memchr(text.data, '-', text.bytes);
    const char *slash = text.bytes == 0 ? NULL : memchr(text.data, '/', text.bytes);
    if (dash == NULL || slash == NULL || dash > slash)
        return false;
    const tide_text first = {text.data, (size_t)(dash - text.data)};
    const tide_text last = {dash + 1, (size_t)(slash - dash) - 1};
    const tide_text total = {slash + 1, text.bytes - (size_t)(slash + 1 - text.data)};
    if (!tide_text_to_u64(first, &fragment.first) || !tide_text_to_u64(last, &fragment.last) ||
        !tide_text_to_u64(total, &fragment.total) || fragment.last < fragment.first ||
        fragment.last >= fragment.total)
        return false;
    *fragment_out = fragment;
    return true;
}

/* Whether the fragment is the next one; false: answered. */
static bool fragment_fits(struct box_call *call, const struct session *session,
                          const struct fragment *fragment, uint64_t bytes)
{
    const uint64_t have = session->gather.hash.bytes;
    if (fragment->last - fragment->first + 1 != bytes) {
        box_graph_fail(call, 400, "invalidRequest", "fragmentLengthMismatch",
                       "The body has another length than Content-Range says.");
        return false;
    }
    if (session->total != UINT64_MAX && fragment->total != session->total) {
        box_graph_fail(call, 400, "invalidRequest", NULL,
                       "The total length differs from that of the session.");
        return false;
    }
    if (fragment->first != have) {
        const bool early = fragment->first > have;
        box_graph_fail(call, 416, "invalidRange", early ? "fragmentOutOfOrder" : "fragmentOverlap",
                       early ? "The uploaded fragment is not the next one."
                             : "The uploaded fragment overlaps with data that has already been "
                               "received.");
        return false;
    }
    if (fragment->last + 1 != fragment->total && bytes % FRAGMENT_UNIT != 0) {
        box_call_violation(call, "fragment-size", TIDE_TEXT_NONE);
        box_graph_fail(call, 400, "invalidRequest", NULL,
                       "Fragments but the last must be a multiple of 320 KiB.");
        return false;
    }
    return true;
}

void box_graph_session_put(struct box_call *call)
{
    struct session *session = session_of(call);
    struct fragment fragment;
    struct box_spot spot;
    if (session == NULL)
        return;
    if (box_request_header(call->request, "Authorization").data != NULL)
        box_call_violation(call, "token-leaked", TIDE_TEXT("upload"));
    const struct box_gather *received = box_graph_received(call);
    if (!fragment_parse(box_request_header(call->request, "Content-Range"), &fragment)) {
        box_graph_fail(call, 400, "invalidRequest", NULL, "Content-Range is missing or wrong.");
        return;
    }
    if (!fragment_fits(call, session, &fragment, received->hash.bytes) ||
        !box_graph_fits(call, box_user_drive(call->user), fragment.total, 0))
        return;
    session->total = fragment.total;
    session->expires_ms = call->now_ms + LIFE_MS;
    box_gather_join(&session->gather, received);
    if (session->gather.hash.bytes < session->total || session->deferred)
        reply_status(call, session, 202);
    else if (place_now(call, session, &spot))
        commit(call, session, &spot);
}

/* ---- asking and ending ---- */

void box_graph_session_get(struct box_call *call)
{
    struct session *session = session_of(call);
    if (session != NULL)
        reply_status(call, session, 200);
}

void box_graph_session_cancel(struct box_call *call)
{
    struct session *session = session_of(call);
    if (session == NULL)
        return;
    drop(session);
    box_call_reply_empty(call);
}

bool box_graph_session_sink(const struct box_call *call, struct box_sink *sink_out)
{
    return call->method->handle == box_graph_session_put &&
           box_graph_receive(FRAGMENT_BYTES_MAX, sink_out);
}
