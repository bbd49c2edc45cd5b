#include "world/world.h"
#include "base/limits.h"

#include <strings.h>

void tide_response_init(struct tide_response *response, tide_mem *mem)
{
    memset(response, 0, sizeof *response);
    tide_buf_init(&response->body, mem, TIDE_BODY_BYTES_DEFAULT);
    tide_buf_init(&response->header_bytes, mem, TIDE_HEAD_BYTES_MAX);
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
