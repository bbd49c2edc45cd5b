#include "cloudbox/graph/item.h"

#include "base/encode.h"
#include "cloudbox/gate/quota.h"
#include "cloudbox/gate/user.h"
#include "cloudbox/graph/inside.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- fields ---- */

enum {
    F_ID = 1 << 0,
    F_NAME = 1 << 1,
    F_SIZE = 1 << 2,
    F_ETAG = 1 << 3,
    F_CTAG = 1 << 4,
    F_WEB = 1 << 5,
    F_CREATED = 1 << 6,
    F_MODIFIED = 1 << 7,
    F_CREATED_BY = 1 << 8,
    F_MODIFIED_BY = 1 << 9,
    F_PARENT = 1 << 10,
    F_FILE = 1 << 11,
    F_FOLDER = 1 << 12,
    F_ROOT = 1 << 13,
    F_TIMES = 1 << 14,
    F_DELETED = 1 << 15,
    F_URL = 1 << 16,
    F_PACKAGE = 1 << 17,
    F_MALWARE = 1 << 18,
    F_PENDING = 1 << 19,
    F_REMOTE = 1 << 20,
    F_ALL = (1 << 21) - 1,
};

static const struct {
    uint32_t field;
    const char *name;
} names[] = {
    {F_ID, "id"},
    {F_NAME, "name"},
    {F_SIZE, "size"},
    {F_ETAG, "eTag"},
    {F_CTAG, "cTag"},
    {F_WEB, "webUrl"},
    {F_CREATED, "createdDateTime"},
    {F_MODIFIED, "lastModifiedDateTime"},
    {F_CREATED_BY, "createdBy"},
    {F_MODIFIED_BY, "lastModifiedBy"},
    {F_PARENT, "parentReference"},
    {F_FILE, "file"},
    {F_FOLDER, "folder"},
    {F_ROOT, "root"},
    {F_TIMES, "fileSystemInfo"},
    {F_DELETED, "deleted"},
    {F_PACKAGE, "package"},
    {F_MALWARE, "malware"},
    {F_PENDING, "pendingOperations"},
    {F_REMOTE, "remoteItem"},
    {F_URL, "@microsoft.graph.downloadUrl"},
    {F_URL, "content.downloadUrl"},
};

static uint32_t field_of(tide_text name)
{
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (box_is(name, names[i].name))
            return names[i].field;
    return 0;
}

/* Some clients forget the dollar sign. */
uint32_t box_item_select(const struct box_call *call)
{
    tide_text rest = box_call_param(call, "$select");
    if (rest.bytes == 0)
        rest = box_call_param(call, "select");
    if (rest.bytes == 0)
        return F_ALL;
    uint32_t select = F_ID; /* always comes along */
    while (rest.bytes > 0) {
        const char *comma = memchr(rest.data, ',', rest.bytes);
        const size_t bytes = comma == NULL ? rest.bytes : (size_t)(comma - rest.data);
        select |= field_of(box_trim((tide_text){rest.data, bytes}, BOX_BLANKS));
        const size_t step = comma == NULL ? bytes : bytes + 1;
        rest = (tide_text){rest.data + step, rest.bytes - step};
    }
    return select;
}

/* ---- tags and times ---- */

static void tag_of(const box_drive *drive, uint32_t slot, const char *lead, uint32_t version,
                   char tag_out[BOX_TAG_BYTES])
{
    char id[BOX_ITEM_ID_BYTES];
    box_drive_id(drive, slot, id);
    snprintf(tag_out, BOX_TAG_BYTES, "%s{%s},%" PRIu32, lead, id, version);
}

void box_item_etag(const box_drive *drive, uint32_t slot, char tag_out[BOX_TAG_BYTES])
{
    tag_of(drive, slot, "", box_drive_at(drive, slot)->version, tag_out);
}

void box_item_ctag(const box_drive *drive, uint32_t slot, char tag_out[BOX_TAG_BYTES])
{
    tag_of(drive, slot, "c:", box_drive_at(drive, slot)->content_version, tag_out);
}

void box_seconds_text(uint64_t unix_ms, char text_out[BOX_SECONDS_TEXT_BYTES])
{
    char text[BOX_TIME_TEXT_BYTES];
    box_time_text(unix_ms, text);
    snprintf(text_out, BOX_SECONDS_TEXT_BYTES, "%.19sZ", text);
}

/* ---- writing ---- */

struct writer {
    const struct box_call *call;
    const box_drive *drive;
    uint32_t slot;
    const struct box_item *item;
    tide_text name;
    uint32_t select;
    uint32_t how;
    tide_buf *out;
    bool first;
};

/* Begins a field that is selected. */
static bool field(struct writer *writer, uint32_t which, const char *name)
{
    if ((writer->select & which) == 0)
        return false;
    box_print(writer->out, "%s\"%s\":", writer->first ? "" : ",", name);
    writer->first = false;
    return true;
}

static void write_time(struct writer *writer, uint32_t which, const char *name, uint64_t unix_ms)
{
    char text[BOX_SECONDS_TEXT_BYTES];
    box_seconds_text(unix_ms, text);
    if (field(writer, which, name))
        box_print(writer->out, "\"%s\"", text);
}

static void write_tags(struct writer *writer)
{
    const bool business = box_drive_spec(writer->drive)->business;
    const bool in_delta = (writer->how & BOX_ITEM_IN_DELTA) != 0;
    char tag[BOX_TAG_BYTES];
    tag_of(writer->drive, writer->slot, "", writer->item->version, tag);
    if (field(writer, F_ETAG, "eTag"))
        box_print(writer->out, "\"\\\"%s\\\"\"", tag);
    if (in_delta && (business || writer->item->gone))
        return;
    if (business && writer->item->folder)
        return;
    tag_of(writer->drive, writer->slot, "c:", writer->item->content_version, tag);
    if (field(writer, F_CTAG, "cTag"))
        box_print(writer->out, "\"\\\"%s\\\"\"", tag);
}

/* "/drive/root:/a/b" */
static void write_path(struct writer *writer, uint32_t slot)
{
    uint32_t chain[BOX_ITEM_DEPTH_MAX + 1];
    size_t count = 0;
    for (; slot != BOX_ITEM_ROOT && count <= BOX_ITEM_DEPTH_MAX;
         slot = box_drive_at(writer->drive, slot)->parent)
        chain[count++] = slot;
    tide_auto_buf path = tide_buf_heap(1 << 20);
    char id[BOX_ITEM_ID_BYTES], room[BOX_NAME_BYTES_MAX + 1];
    box_drive_own_id(writer->drive, id);
    box_print(&path, "/drives/%s/root:", id);
    while (count > 0) {
        const tide_text name = box_drive_name(writer->drive, chain[--count], room);
        box_add_cstr(&path, "/");
        (void)tide_percent_add(&path, name, TIDE_URL_UNRESERVED "!$&'()*+,;=@");
    }
    box_add_cstr(writer->out, ",\"path\":");
    box_add_json_text(writer->out, tide_buf_text(&path));
}

static void write_parent(struct writer *writer)
{
    char id[BOX_ITEM_ID_BYTES];
    if (!field(writer, F_PARENT, "parentReference"))
        return;
    box_drive_own_id(writer->drive, id);
    box_print(writer->out, "{\"driveId\":\"%s\",\"driveType\":\"%s\"", id,
              box_drive_spec(writer->drive)->business ? "business" : "personal");
    if (writer->slot != BOX_ITEM_ROOT) {
        box_drive_id(writer->drive, writer->item->parent, id);
        box_print(writer->out, ",\"id\":\"%s\"", id);
        /* Microsoft's page says that delta has no path; clients were written that need it, and
         * personal drives give it. */
        if ((writer->how & BOX_ITEM_IN_DELTA) == 0 || !box_drive_spec(writer->drive)->business)
            write_path(writer, writer->item->parent);
    }
    box_add_cstr(writer->out, "}");
}

static const char *type_of(tide_text name)
{
    static const char *const types[][2] = {
        {".txt", "text/plain"},       {".jpg", "image/jpeg"},
        {".md", "text/markdown"},     {".pdf", "application/pdf"},
        {".csv", "text/csv"},         {".odt", "application/vnd.oasis.opendocument.text"},
        {".json", "application/json"}};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        const size_t bytes = strlen(types[i][0]);
        if (name.bytes > bytes &&
            box_is((tide_text){name.data + name.bytes - bytes, bytes}, types[i][0]))
            return types[i][1];
    }
    return "application/octet-stream";
}

/* A shortcut is neither file nor folder; what it leads to is. */
static void write_remote(struct writer *writer)
{
    const struct box_lead *lead = box_drive_lead(writer->drive, writer->slot);
    if (lead == NULL || !field(writer, F_REMOTE, "remoteItem"))
        return;
    box_print(writer->out, "{\"id\":\"%s\",\"name\":", lead->item);
    box_add_json_text(writer->out, writer->name);
    box_add_cstr(writer->out, lead->folder ? ",\"folder\":{\"childCount\":0}"
                                           : ",\"file\":{\"mimeType\":"
                                             "\"application/octet-stream\"}");
    box_print(writer->out, ",\"parentReference\":{\"driveId\":\"%s\",\"driveType\":\"%s\"}}",
              lead->drive, lead->drive[0] == 'b' ? "business" : "personal");
}

static void write_marks(struct writer *writer)
{
    char queued[BOX_SECONDS_TEXT_BYTES];
    box_seconds_text(writer->item->changed_ms, queued);
    if (writer->item->mark == BOX_MARK_MALWARE && field(writer, F_MALWARE, "malware"))
        box_add_cstr(writer->out, "{\"description\":\"Virus:DOS/EICAR_Test_File\"}");
    if (writer->item->mark == BOX_MARK_PENDING && field(writer, F_PENDING, "pendingOperations"))
        box_print(writer->out, "{\"pendingContentUpdate\":{\"queuedDateTime\":\"%s\"}}", queued);
}

static void write_folder(struct writer *writer)
{
    const struct box_item *item = writer->item;
    if (item->mark == BOX_MARK_SHORTCUT) {
        write_remote(writer);
    } else if (item->mark == BOX_MARK_PACKAGE) {
        if (field(writer, F_PACKAGE, "package"))
            box_add_cstr(writer->out, "{\"type\":\"oneNote\"}");
    } else if (field(writer, F_FOLDER, "folder")) {
        box_print(writer->out, "{\"childCount\":%" PRIu32 "}", item->count);
    }
    if (writer->slot == BOX_ITEM_ROOT && field(writer, F_ROOT, "root"))
        box_add_cstr(writer->out, "{}");
}

static void write_kind(struct writer *writer)
{
    const struct box_item *item = writer->item;
    if (item->folder) {
        write_folder(writer);
        return;
    }
    if (!field(writer, F_FILE, "file"))
        return;
    box_print(writer->out, "{\"mimeType\":\"%s\"", type_of(writer->name));
    if (!item->gone) {
        uint8_t hash[BOX_QUICKXOR_BYTES];
        char text[BOX_QUICKXOR_TEXT_BYTES];
        box_content_hash(&item->content, hash);
        if (item->mark == BOX_MARK_PENDING)
            hash[0] ^= 0xff; /* that of bytes which are still to come */
        box_quickxor_text(hash, text);
        box_print(writer->out, ",\"hashes\":{\"quickXorHash\":\"%s\"}", text);
    }
    box_add_cstr(writer->out, "}");
}

static void write_person(struct writer *writer, uint32_t which, const char *name)
{
    const struct box_user *user = writer->call->user;
    if (user != NULL && field(writer, which, name))
        box_print(writer->out, "{\"user\":{\"email\":\"%s\",\"displayName\":\"%s\"}}", user->email,
                  user->email);
}

static void write_more(struct writer *writer)
{
    const struct box_item *item = writer->item;
    char id[BOX_ITEM_ID_BYTES];
    box_drive_id(writer->drive, writer->slot, id);
    if (field(writer, F_WEB, "webUrl"))
        box_print(writer->out, "\"https://onedrive.live.com?id=%s\"", id);
    write_time(writer, F_CREATED, "createdDateTime", item->made_ms);
    write_time(writer, F_MODIFIED, "lastModifiedDateTime", item->changed_ms);
    write_person(writer, F_CREATED_BY, "createdBy");
    write_person(writer, F_MODIFIED_BY, "lastModifiedBy");
    if (field(writer, F_TIMES, "fileSystemInfo")) {
        char made[BOX_SECONDS_TEXT_BYTES], changed[BOX_SECONDS_TEXT_BYTES];
        box_seconds_text(item->file_made_ms, made);
        box_seconds_text(item->file_changed_ms, changed);
        box_print(writer->out, "{\"createdDateTime\":\"%s\",\"lastModifiedDateTime\":\"%s\"}", made,
                  changed);
    }
    if (!item->folder && (writer->how & BOX_ITEM_IN_DELTA) == 0 &&
        field(writer, F_URL, "@microsoft.graph.downloadUrl")) {
        box_add_cstr(writer->out, "\"");
        box_graph_download_url(writer->call, writer->slot, writer->out);
        box_add_cstr(writer->out, "\"");
    }
}

/* Of an item that is gone little is said: a business drive gives no name, a personal one no
 * size. */
static void write_gone(struct writer *writer)
{
    const bool business = box_drive_spec(writer->drive)->business;
    if (!business && field(writer, F_NAME, "name"))
        box_add_json_text(writer->out, writer->name);
    if (business && !writer->item->folder && field(writer, F_SIZE, "size"))
        box_print(writer->out, "%" PRIu64, writer->item->content.bytes);
    write_parent(writer);
    write_kind(writer);
    if (field(writer, F_DELETED, "deleted"))
        box_add_cstr(writer->out, "{\"state\":\"deleted\"}");
}

void box_item_write(const struct box_call *call, const box_drive *drive, uint32_t slot,
                    uint32_t select, uint32_t how, tide_buf *out)
{
    char room[BOX_NAME_BYTES_MAX + 1], id[BOX_ITEM_ID_BYTES];
    struct writer writer = {.call = call,
                            .drive = drive,
                            .slot = slot,
                            .item = box_drive_at(drive, slot),
                            .name = box_drive_name(drive, slot, room),
                            .select = select,
                            .how = how,
                            .out = out,
                            .first = true};
    const struct box_item *former =
        (how & BOX_ITEM_FORMER) != 0 ? box_drive_former(drive, slot) : NULL;
    if (former != NULL) {
        writer.item = former;
        writer.name = tide_text_of(former->name);
    }
    box_drive_id(drive, slot, id);
    box_add_cstr(out, "{");
    if (field(&writer, F_ID, "id"))
        box_print(out, "\"%s\"", id);
    if (writer.item->gone) {
        write_gone(&writer);
    } else {
        if (field(&writer, F_NAME, "name"))
            box_add_json_text(out, writer.name);
        if (field(&writer, F_SIZE, "size"))
            box_print(out, "%" PRIu64, writer.item->content.bytes);
        write_tags(&writer);
        write_parent(&writer);
        write_kind(&writer);
        write_marks(&writer);
        write_more(&writer);
    }
    box_add_cstr(out, "}");
}

void box_item_reply(struct box_call *call, box_drive *drive, uint32_t slot, int status)
{
    box_answer_clear(call->answer);
    call->answer->status = status;
    snprintf(call->answer->type, sizeof call->answer->type, "application/json; charset=utf-8");
    box_item_write(call, drive, slot, box_item_select(call), 0, &call->answer->body);
    box_drive_show(drive, slot);
}
