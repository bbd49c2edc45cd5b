/* onedrive_item.c - items of OneDrive, in any JSON (cloud/onedrive/inside.h). */
#include "cloud/onedrive/inside.h"
#include "fuzz.h"

static void check_text(tide_text text, size_t bytes_max)
{
    TIDE_ASSERT(text.data != NULL);
    TIDE_ASSERT(text.bytes <= bytes_max);
}

static void check_item(const json_t *value)
{
    struct tide_onedrive_item item;
    tide_error err = {TIDE_OK, 0, ""};
    const tide_status rc = tide_onedrive_item_read(value, &item, &err);
    TIDE_ASSERT(rc == TIDE_OK || (rc == TIDE_SERVER && err.text[0] != '\0'));
    if (rc != TIDE_OK)
        return;
    check_text(item.id, TIDE_ONEDRIVE_ID_BYTES_MAX);
    check_text(item.name, TIDE_ONEDRIVE_NAME_BYTES_MAX);
    check_text(item.etag, TIDE_ONEDRIVE_TAG_BYTES_MAX);
    check_text(item.ctag, TIDE_ONEDRIVE_TAG_BYTES_MAX);
    check_text(item.parent_id, TIDE_ONEDRIVE_ID_BYTES_MAX);
    check_text(item.drive_id, TIDE_ONEDRIVE_ID_BYTES_MAX);
    check_text(item.remote_id, TIDE_ONEDRIVE_ID_BYTES_MAX);
    check_text(item.remote_drive_id, TIDE_ONEDRIVE_ID_BYTES_MAX);
    check_text(item.download_url, TIDE_ONEDRIVE_LINK_BYTES_MAX);
    TIDE_ASSERT(item.id.bytes > 0);
    TIDE_ASSERT(!(item.deleted && item.has_hash));
    TIDE_ASSERT(item.modified_unix_ms % 1000 == 0);
    TIDE_ASSERT(item.remote || item.remote_id.bytes == 0);
    TIDE_ASSERT(item.name_unsafe || item.name.bytes == 0 ||
                memchr(item.name.data, '/', item.name.bytes) == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    json_t *value = NULL;
    if (tide_json_parse((tide_text){(const char *)data, bytes}, &value, NULL) != TIDE_OK)
        return 0;
    struct tide_onedrive_drive drive;
    check_item(value);
    (void)tide_onedrive_drive_read(value, &drive, NULL);
    json_decref(value);
    return 0;
}
