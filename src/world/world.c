#include "world/world.h"
#include "base/limits.h"

#include <strings.h>

void tide_response_init(struct tide_response *response, tide_mem *mem)
{
    memset(response, 0, sizeof *response);
    tide_buf_init(&response->body, mem, TIDE_BODY_BYTES_DEFAULT);
    tide_buf_init(&response->header_bytes, mem, TIDE_HEAD_BYTES_MAX);
}

struct tide_response *tide_response_new(void)
{
    struct tide_response *response = tide_mem_new(tide_mem_heap(), sizeof *response);
    if (response != NULL)
        tide_response_init(response, tide_mem_heap());
    return response;
}

void tide_response_free(struct tide_response *response)
{
    if (response == NULL)
        return;
    tide_response_done(response);
    tide_mem_free(tide_mem_heap(), response, sizeof *response);
}

int tide_response_code(const struct tide_response *response)
{
    return response->http;
}

tide_text tide_response_body(const struct tide_response *response)
{
    return (tide_text){tide_buf_cstr(&response->body), response->body.bytes};
}

void tide_response_done(struct tide_response *response)
{
    tide_buf_done(&response->body);
    tide_buf_done(&response->header_bytes);
    response->headers_count = 0;
}

tide_text tide_response_header(const struct tide_response *response, const char *name)
{
    const size_t name_bytes = strlen(name);
    for (size_t i = 0; i < response->headers_count; i++) {
        const struct tide_header *header = &response->headers[i];
        if (header->name.bytes == name_bytes &&
            strncasecmp(header->name.data, name, name_bytes) == 0)
            return header->value;
    }
    return TIDE_TEXT_NONE;
}

tide_status tide_file_lock_wait(tide_world *world, const char *path, uint64_t wait_us,
                                const tide_cancel *cancel, tide_file_lock **lock_out,
                                tide_error *err)
{
    enum { LOOK_US = 20 * 1000 };
    const uint64_t give_up_us = tide_world_now_us(world) + wait_us;
    tide_error busy = {TIDE_OK, 0, ""};
    for (;;) {
        const tide_status rc =
            tide_file_lock_take(world, path, TIDE_TEXT("tidemark"), lock_out, &busy);
        const uint64_t now_us = tide_world_now_us(world);
        if (rc != TIDE_OK && (rc != TIDE_BUSY || now_us >= give_up_us)) {
            if (err != NULL)
                *err = busy;
            return rc;
        }
        if (rc == TIDE_OK)
            return TIDE_OK;
        const tide_status slept = tide_world_sleep_until(world, now_us + LOOK_US, cancel);
        if (slept != TIDE_OK)
            return tide_error_set(err, slept, "stopped while waiting for %.200s", path);
    }
}
