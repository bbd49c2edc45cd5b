#include "cloud/onedrive/inside.h"

#include "net/api/list.h"
#include "net/judge_graph.h"

#include <string.h>

enum {
    TRY_TIMEOUT_MS = 30000,
    PAGE_BYTES_MAX = 256 << 20, /* of a page, whatever it is made of */
};

/* What the drive stores of an item, and what it decides by (D13). */
#define SELECT                                                                                     \
    "$select=id,name,size,eTag,cTag,file,folder,package,bundle,deleted,root,remoteItem,malware,"   \
    "pendingOperations,parentReference,fileSystemInfo,lastModifiedDateTime&$top=1000"

/* Without it, personal drives leave out folders that others share (D16). */
static const struct tide_header prefer = {TIDE_TEXT("Prefer"),
                                          TIDE_TEXT("Include-Feature=AddToOneDrive")};

tide_status tide_onedrive_drive_get(tide_onedrive *onedrive, tide_job *job, tide_text drive,
                                    const tide_cancel *cancel,
                                    struct tide_onedrive_drive *drive_out, tide_error *err)
{
    struct tide_api_ask ask;
    json_t *value = NULL;
    tide_onedrive_ask(&ask, onedrive, job, TIDE_ONEDRIVE_DRIVE, drive);
    if (job == NULL) {
        ask.call.cancel = cancel;
        ask.call.total_timeout_ms = TRY_TIMEOUT_MS;
    }
    tide_status rc = tide_api_ask_json(&ask, &value, err);
    if (rc == TIDE_OK)
        rc = tide_api_ask_named(&ask, tide_onedrive_drive_read(value, drive_out, err), err);
    json_decref(value);
    tide_api_ask_done(&ask);
    return rc;
}

tide_status tide_onedrive_get(tide_onedrive *onedrive, tide_job *job, tide_text drive, tide_text id,
                              struct tide_onedrive_answer *answer_out, tide_error *err)
{
    struct tide_api_ask ask;
    tide_onedrive_answer_done(answer_out);
    tide_onedrive_ask(&ask, onedrive, job, TIDE_ONEDRIVE_GET, drive);
    tide_onedrive_ask_item(&ask, id);
    tide_status rc = tide_onedrive_send_batched(onedrive, &ask, err); /* S10 */
    if (rc == TIDE_OK)
        rc = tide_onedrive_answer_read(&ask, answer_out, err);
    tide_api_ask_done(&ask);
    return rc;
}

tide_status tide_onedrive_get_at(tide_onedrive *onedrive, tide_job *job, tide_text drive,
                                 tide_text parent, tide_text path,
                                 struct tide_onedrive_answer *answer_out, tide_error *err)
{
    struct tide_api_ask ask;
    tide_onedrive_ask(&ask, onedrive, job, TIDE_ONEDRIVE_GET, drive);
    tide_onedrive_ask_below(&ask, parent, path);
    const tide_status rc = tide_onedrive_ask_answer(&ask, answer_out, err);
    tide_api_ask_done(&ask);
    return rc;
}

/* ---- pages ---- */

void tide_onedrive_page_init(struct tide_onedrive_page *page, tide_mem *mem)
{
    *page = (struct tide_onedrive_page){.items = 0};
    tide_buf_init(&page->next, mem, TIDE_ONEDRIVE_LINK_BYTES_MAX);
    tide_buf_init(&page->delta, mem, TIDE_ONEDRIVE_LINK_BYTES_MAX);
    tide_buf_init(&page->resync, mem, TIDE_ONEDRIVE_LINK_BYTES_MAX);
}

void tide_onedrive_page_done(struct tide_onedrive_page *page)
{
    tide_buf_done(&page->next);
    tide_buf_done(&page->delta);
    tide_buf_done(&page->resync);
}

/* A page on its way. */
struct listing {
    const struct tide_onedrive_sink *sink;
    struct tide_api_list list;
    tide_error err; /* of an item */
};

static tide_status on_element(void *arg, const json_t *element)
{
    struct listing *listing = arg;
    struct tide_onedrive_item item;
    TIDE_TRY(tide_onedrive_item_read(element, &item, &listing->err));
    return listing->sink->item(&item, listing->sink->arg);
}

static void on_restart(void *arg)
{
    struct listing *listing = arg;
    tide_api_list_restart(&listing->list);
    listing->err = (tide_error){TIDE_OK, 0, ""};
    if (listing->sink->restart != NULL)
        listing->sink->restart(listing->sink->arg);
}

static tide_status on_bytes(void *arg, const char *bytes, size_t count)
{
    struct listing *listing = arg;
    return tide_api_list_write(&listing->list, bytes, count);
}

/* Copies a link of the answer if it leads to the endpoint (ODR3). */
static tide_status link_read(const tide_onedrive *onedrive, const json_t *rest, const char *key,
                             tide_buf *link_out, tide_error *err)
{
    const char *path = NULL;
    tide_text link = TIDE_TEXT("");
    TIDE_TRY(tide_onedrive_text(rest, key, TIDE_ONEDRIVE_LINK_BYTES_MAX, &link, err));
    if (link.bytes == 0)
        return TIDE_OK;
    TIDE_TRY(tide_api_path_of(onedrive->api, link.data, &path, err));
    const tide_status rc = tide_buf_add(link_out, link.data, link.bytes);
    return rc == TIDE_OK ? rc : tide_error_set(err, rc, "no memory for a link");
}

static tide_status page_read(const tide_onedrive *onedrive, struct listing *listing, bool of_delta,
                             struct tide_onedrive_page *page, tide_error *err)
{
    json_t *rest = NULL;
    TIDE_TRY(tide_api_list_end(&listing->list, &rest, err));
    tide_status rc = link_read(onedrive, rest, "@odata.nextLink", &page->next, err);
    if (rc == TIDE_OK && of_delta)
        rc = link_read(onedrive, rest, "@odata.deltaLink", &page->delta, err);
    if (rc == TIDE_OK && of_delta && (page->next.bytes == 0) == (page->delta.bytes == 0))
        rc = tide_error_set(err, TIDE_SERVER, "a page of changes must have one of two links");
    page->items = listing->list.elements;
    json_decref(rest);
    return rc;
}

/* A 410 names where the enumeration begins (D34); one that leads elsewhere is not followed. */
static void resync_read(const struct tide_api_ask *ask, struct tide_onedrive_page *page)
{
    const char *path = NULL;
    const tide_text location = tide_response_header(&ask->response, "Location");
    if (location.bytes > 0 && tide_api_path_of(ask->api, location.data, &path, NULL) == TIDE_OK)
        (void)tide_buf_add(&page->resync, location.data, location.bytes);
}

/* Sends a call for a page.  `link` replaces the path. */
static tide_status page_get(tide_onedrive *onedrive, struct tide_api_ask *ask, const char *link,
                            const struct tide_onedrive_sink *sink, struct tide_onedrive_page *page,
                            tide_error *err)
{
    const bool of_delta = ask->call.method == TIDE_ONEDRIVE_DELTA;
    struct listing listing = {.sink = sink};
    const char *path = NULL;
    tide_status rc = TIDE_OK;
    tide_buf_clear(&page->next);
    tide_buf_clear(&page->delta);
    tide_buf_clear(&page->resync);
    page->items = 0;
    if (link[0] != '\0') {
        rc = tide_api_path_of(onedrive->api, link, &path, err);
        if (rc != TIDE_OK)
            return tide_api_ask_named(ask, rc, err);
        tide_buf_clear(&ask->path);
        tide_api_ask_add(ask, path);
    }
    tide_api_list_init(&listing.list, "value", TIDE_ONEDRIVE_ITEM_BYTES_MAX, on_element, &listing,
                       onedrive->mem);
    ask->call.headers = &prefer;
    ask->call.headers_count = 1;
    ask->call.sink = on_bytes;
    ask->call.restart = on_restart;
    ask->call.sink_arg = &listing;
    ask->call.answer_bytes_max = PAGE_BYTES_MAX;
    rc = tide_api_ask_send(ask, err);
    if (rc != TIDE_OK && listing.err.status != TIDE_OK && err != NULL)
        *err = listing.err; /* which field of which item */
    else if (rc != TIDE_OK && listing.list.failed == rc && rc == TIDE_SERVER)
        (void)tide_error_set(err, rc, "%s", listing.list.wrong);
    if (rc == TIDE_OK)
        rc = page_read(onedrive, &listing, of_delta, page, err);
    else if (rc == TIDE_GONE && of_delta)
        resync_read(ask, page);
    tide_api_list_done(&listing.list);
    return tide_api_ask_named(ask, rc, err);
}

static tide_status list_get(tide_onedrive *onedrive, tide_job *job, uint32_t method,
                            tide_text drive, tide_text id, const char *link,
                            const struct tide_onedrive_sink *sink, struct tide_onedrive_page *page,
                            tide_error *err)
{
    struct tide_api_ask ask;
    tide_onedrive_ask(&ask, onedrive, job, method, drive);
    tide_onedrive_ask_item(&ask, id);
    tide_api_ask_add(&ask, method == TIDE_ONEDRIVE_DELTA ? "/delta?" SELECT : "/children?" SELECT);
    const tide_status rc = page_get(onedrive, &ask, link, sink, page, err);
    tide_api_ask_done(&ask);
    return rc;
}

tide_status tide_onedrive_children(tide_onedrive *onedrive, tide_job *job, tide_text drive,
                                   tide_text id, const char *link,
                                   const struct tide_onedrive_sink *sink,
                                   struct tide_onedrive_page *page, tide_error *err)
{
    return list_get(onedrive, job, TIDE_ONEDRIVE_CHILDREN, drive, id, link, sink, page, err);
}

tide_status tide_onedrive_delta(tide_onedrive *onedrive, tide_job *job, tide_text drive,
                                tide_text id, const char *link,
                                const struct tide_onedrive_sink *sink,
                                struct tide_onedrive_page *page, tide_error *err)
{
    return list_get(onedrive, job, TIDE_ONEDRIVE_DELTA, drive, id, link, sink, page, err);
}
