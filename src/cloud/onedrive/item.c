#include "cloud/onedrive/inside.h"

#include "base/clocktext.h"
#include "base/encode.h"

#include <string.h>

/* ---- fields ---- */

static tide_status wrong(const char *key, tide_error *err)
{
    return tide_error_set(err, TIDE_SERVER, "field \"%s\" is malformed", key);
}

tide_status tide_onedrive_text(const json_t *object, const char *key, size_t bytes_max,
                               tide_text *text_out, tide_error *err)
{
    tide_text text = TIDE_TEXT("");
    const tide_status rc = tide_json_get_text(object, key, &text, NULL);
    if (rc == TIDE_NOT_FOUND)
        return TIDE_OK;
    if (rc != TIDE_OK || text.bytes > bytes_max)
        return wrong(key, err);
    *text_out = text;
    return TIDE_OK;
}

/* A facet: an object whose presence says something; NULL: absent or null. */
static tide_status facet_of(const json_t *object, const char *key, const json_t **facet_out,
                            tide_error *err)
{
    const tide_status rc = tide_json_get_object(object, key, facet_out, NULL);
    return rc == TIDE_OK || rc == TIDE_NOT_FOUND ? TIDE_OK : wrong(key, err);
}

static tide_status has_facet(const json_t *object, const char *key, bool *has_out, tide_error *err)
{
    const json_t *facet = NULL;
    TIDE_TRY(facet_of(object, key, &facet, err));
    *has_out = facet != NULL;
    return TIDE_OK;
}

static tide_status size_of(const json_t *object, const char *key, bool *has_out, uint64_t *size_out,
                           tide_error *err)
{
    const tide_status rc = tide_json_get_u64(object, key, size_out, NULL);
    *has_out = rc == TIDE_OK;
    return rc == TIDE_OK || rc == TIDE_NOT_FOUND ? TIDE_OK : wrong(key, err);
}

/* "2026-05-04T03:02:01.1234567Z": the fraction is dropped (D43).  The year 1 is no time. */
tide_status tide_onedrive_time(const json_t *object, const char *key, uint64_t *unix_ms_out,
                               tide_error *err)
{
    enum { TO_SECONDS_BYTES = 19, TEXT_BYTES_MAX = 40 };
    tide_text text = TIDE_TEXT("");
    TIDE_TRY(tide_onedrive_text(object, key, TEXT_BYTES_MAX, &text, err));
    if (text.bytes > TO_SECONDS_BYTES && text.data[text.bytes - 1] == 'Z')
        (void)tide_time_parse((tide_text){text.data, TO_SECONDS_BYTES}, unix_ms_out);
    return TIDE_OK;
}

/* ---- hashes ---- */

/* A hash that cannot be read is no hash: the server leaves it out as often (D15). */
static bool hash_read(tide_text text, unsigned char hash_out[TIDE_ONEDRIVE_HASH_BYTES])
{
    tide_auto_buf bytes = tide_buf_heap(64);
    if (tide_base64_read(&bytes, text) != TIDE_OK || bytes.bytes != TIDE_ONEDRIVE_HASH_BYTES)
        return false;
    memcpy(hash_out, bytes.data, TIDE_ONEDRIVE_HASH_BYTES);
    return true;
}

static bool hex_read(tide_text text, unsigned char hash_out[TIDE_ONEDRIVE_HASH_BYTES])
{
    unsigned char hash[TIDE_ONEDRIVE_HASH_BYTES];
    if (text.bytes != 2 * sizeof hash)
        return false;
    for (size_t i = 0; i < sizeof hash; i++) {
        const int byte = tide_hex_byte((tide_text){text.data + 2 * i, 2});
        if (byte < 0)
            return false;
        hash[i] = (unsigned char)byte;
    }
    memcpy(hash_out, hash, sizeof hash);
    return true;
}

static tide_status hashes_read(const json_t *file, struct tide_onedrive_item *item, tide_error *err)
{
    enum { HASH_TEXT_BYTES_MAX = 64 };
    const json_t *hashes = NULL;
    tide_text quick = TIDE_TEXT(""), sha1 = TIDE_TEXT("");
    TIDE_TRY(facet_of(file, "hashes", &hashes, err));
    if (hashes == NULL || item->deleted) /* those of deleted items are false */
        return TIDE_OK;
    TIDE_TRY(tide_onedrive_text(hashes, "quickXorHash", HASH_TEXT_BYTES_MAX, &quick, err));
    TIDE_TRY(tide_onedrive_text(hashes, "sha1Hash", HASH_TEXT_BYTES_MAX, &sha1, err));
    item->has_hash = hash_read(quick, item->hash);
    item->has_sha1 = hex_read(sha1, item->sha1);
    return TIDE_OK;
}

/* ---- items ---- */

/* One name that is too long must not spoil the page it comes with: as much of it as is shown is kept, and
 * it is unsafe. */
static tide_status name_read(const json_t *value, struct tide_onedrive_item *item, tide_error *err)
{
    TIDE_TRY(tide_onedrive_text(value, "name", SIZE_MAX, &item->name, err));
    size_t bytes = item->name.bytes;
    if (bytes <= TIDE_ONEDRIVE_NAME_BYTES_MAX)
        return TIDE_OK;
    bytes = TIDE_ONEDRIVE_NAME_BYTES_MAX;
    while (bytes > 0 && ((unsigned char)item->name.data[bytes] & 0xc0u) == 0x80u)
        bytes--; /* no half character */
    item->name.bytes = bytes;
    item->name_unsafe = true;
    return TIDE_OK;
}

static bool is_unsafe(tide_text name)
{
    return tide_text_equal(name, TIDE_TEXT(".")) || tide_text_equal(name, TIDE_TEXT("..")) ||
           (name.bytes > 0 && (memchr(name.data, '/', name.bytes) != NULL ||
                               memchr(name.data, '\0', name.bytes) != NULL));
}

static tide_status kind_read(const json_t *value, struct tide_onedrive_item *item, tide_error *err)
{
    const json_t *file = NULL;
    bool folder = false, package = false, bundle = false;
    TIDE_TRY(facet_of(value, "file", &file, err));
    TIDE_TRY(has_facet(value, "folder", &folder, err));
    TIDE_TRY(has_facet(value, "package", &package, err));
    TIDE_TRY(has_facet(value, "bundle", &bundle, err));
    item->kind = package || bundle || (file != NULL) == folder ? TIDE_ONEDRIVE_OTHER
                 : folder                                      ? TIDE_ONEDRIVE_FOLDER
                                                               : TIDE_ONEDRIVE_FILE;
    return file == NULL ? TIDE_OK : hashes_read(file, item, err);
}

static tide_status facets_read(const json_t *value, struct tide_onedrive_item *item,
                               tide_error *err)
{
    const json_t *remote = NULL;
    const json_t *parent = NULL;
    TIDE_TRY(has_facet(value, "deleted", &item->deleted, err));
    TIDE_TRY(has_facet(value, "root", &item->root, err));
    TIDE_TRY(has_facet(value, "malware", &item->malware, err));
    TIDE_TRY(has_facet(value, "pendingOperations", &item->pending, err));
    TIDE_TRY(facet_of(value, "remoteItem", &remote, err));
    item->remote = remote != NULL;
    if (remote == NULL)
        return TIDE_OK;
    TIDE_TRY(has_facet(remote, "folder", &item->remote_folder, err));
    TIDE_TRY(tide_onedrive_text(remote, "id", TIDE_ONEDRIVE_ID_BYTES_MAX, &item->remote_id, err));
    TIDE_TRY(facet_of(remote, "parentReference", &parent, err));
    return tide_onedrive_text(parent, "driveId", TIDE_ONEDRIVE_ID_BYTES_MAX, &item->remote_drive_id,
                              err);
}

static tide_status times_read(const json_t *value, struct tide_onedrive_item *item, tide_error *err)
{
    const json_t *times = NULL;
    TIDE_TRY(facet_of(value, "fileSystemInfo", &times, err));
    TIDE_TRY(tide_onedrive_time(times, "createdDateTime", &item->created_unix_ms, err));
    TIDE_TRY(tide_onedrive_time(times, "lastModifiedDateTime", &item->modified_unix_ms, err));
    return tide_onedrive_time(value, "lastModifiedDateTime", &item->changed_unix_ms, err);
}

tide_status tide_onedrive_item_read(const json_t *value, struct tide_onedrive_item *item_out,
                                    tide_error *err)
{
    const json_t *parent = NULL;
    const tide_text none = TIDE_TEXT("");
    struct tide_onedrive_item item = {.id = none,
                                      .name = none,
                                      .etag = none,
                                      .ctag = none,
                                      .drive_id = none,
                                      .parent_id = none,
                                      .remote_drive_id = none,
                                      .remote_id = none,
                                      .download_url = none};
    const struct {
        const char *key;
        size_t bytes_max;
        tide_text *text;
    } texts[] = {
        {"id", TIDE_ONEDRIVE_ID_BYTES_MAX, &item.id},
        {"eTag", TIDE_ONEDRIVE_TAG_BYTES_MAX, &item.etag},
        {"cTag", TIDE_ONEDRIVE_TAG_BYTES_MAX, &item.ctag},
        {"@microsoft.graph.downloadUrl", TIDE_ONEDRIVE_LINK_BYTES_MAX, &item.download_url},
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        TIDE_TRY(tide_onedrive_text(value, texts[i].key, texts[i].bytes_max, texts[i].text, err));
    TIDE_TRY(name_read(value, &item, err));
    if (item.id.bytes == 0)
        return tide_error_set(err, TIDE_SERVER, "an item has no \"id\"");
    TIDE_TRY(facet_of(value, "parentReference", &parent, err));
    TIDE_TRY(tide_onedrive_text(parent, "id", TIDE_ONEDRIVE_ID_BYTES_MAX, &item.parent_id, err));
    TIDE_TRY(
        tide_onedrive_text(parent, "driveId", TIDE_ONEDRIVE_ID_BYTES_MAX, &item.drive_id, err));
    TIDE_TRY(size_of(value, "size", &item.has_size, &item.size, err));
    TIDE_TRY(facets_read(value, &item, err));
    TIDE_TRY(kind_read(value, &item, err));
    TIDE_TRY(times_read(value, &item, err));
    item.name_unsafe = item.name_unsafe || is_unsafe(item.name);
    *item_out = item;
    return TIDE_OK;
}

/* ---- drives ---- */

static tide_status copy_of(const json_t *object, const char *key, char *copy, size_t room,
                           tide_error *err)
{
    tide_text text = TIDE_TEXT("");
    TIDE_TRY(tide_onedrive_text(object, key, room - 1, &text, err));
    memcpy(copy, text.data, text.bytes);
    copy[text.bytes] = '\0';
    return TIDE_OK;
}

tide_status tide_onedrive_drive_read(const json_t *value, struct tide_onedrive_drive *drive_out,
                                     tide_error *err)
{
    struct tide_onedrive_drive drive = {.quota_known = false};
    const json_t *owner = NULL;
    const json_t *user = NULL;
    const json_t *quota = NULL;
    bool total = false, left = false;
    TIDE_TRY(copy_of(value, "id", drive.id, sizeof drive.id, err));
    if (drive.id[0] == '\0')
        return tide_error_set(err, TIDE_SERVER, "the drive has no \"id\"");
    TIDE_TRY(copy_of(value, "driveType", drive.type, sizeof drive.type, err));
    TIDE_TRY(facet_of(value, "owner", &owner, err));
    TIDE_TRY(facet_of(owner, "user", &user, err));
    TIDE_TRY(copy_of(user, "displayName", drive.owner, sizeof drive.owner, err));
    TIDE_TRY(copy_of(user, "email", drive.email, sizeof drive.email, err));
    TIDE_TRY(facet_of(value, "quota", &quota, err));
    TIDE_TRY(size_of(quota, "total", &total, &drive.total_bytes, err));
    TIDE_TRY(size_of(quota, "remaining", &left, &drive.left_bytes, err));
    drive.quota_known = total && left;
    *drive_out = drive;
    return TIDE_OK;
}
