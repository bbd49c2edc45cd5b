#include "cloudbox/serve/gzip.h"

#include "base/check.h"
#include "cloudbox/gate/http.h"

#include <limits.h>
#include <strings.h>
#include <zlib.h>

struct box_gzip {
    z_stream stream;
};

box_gzip *box_gzip_new(void)
{
    box_gzip *gzip = tide_mem_new(tide_mem_heap(), sizeof *gzip);
    TIDE_ASSERT(gzip != NULL);
    /* 16 more window bits ask for gzip's own head. */
    int rc = deflateInit2(&gzip->stream, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
    TIDE_ASSERT(rc == Z_OK);
    return gzip;
}

void box_gzip_free(box_gzip *gzip)
{
    if (gzip == NULL)
        return;
    (void)deflateEnd(&gzip->stream);
    tide_mem_free(tide_mem_heap(), gzip, sizeof *gzip);
}

static tide_text cut(tide_text *rest, char at)
{
    const char *found = rest->bytes == 0 ? NULL : memchr(rest->data, at, rest->bytes);
    size_t bytes = found == NULL ? rest->bytes : (size_t)(found - rest->data);
    tide_text piece = {rest->data, bytes};
    size_t skipped = found == NULL ? bytes : bytes + 1;
    *rest = (tide_text){rest->data + skipped, rest->bytes - skipped};
    return box_trim(piece, BOX_BLANKS);
}

/* "q=0", "q=0.000": the client does not want it. */
static bool is_refused(tide_text parameters)
{
    while (parameters.bytes > 0) {
        tide_text parameter = cut(&parameters, ';');
        if (parameter.bytes < 3 || strncasecmp(parameter.data, "q=", 2) != 0)
            continue;
        for (size_t i = 2; i < parameter.bytes; i++)
            if (parameter.data[i] != '0' && parameter.data[i] != '.')
                return false;
        return true;
    }
    return false;
}

bool box_gzip_accepted(tide_text header)
{
    bool any = false;
    while (header.bytes > 0) {
        tide_text parameters = cut(&header, ',');
        tide_text name = cut(&parameters, ';');
        if (box_is(name, "gzip") || box_is(name, "x-gzip"))
            return !is_refused(parameters);
        if (box_is(name, "*"))
            any = !is_refused(parameters);
    }
    return any;
}

bool box_gzip_pack(box_gzip *gzip, tide_text body, tide_buf *out)
{
    TIDE_ASSERT(body.bytes < UINT_MAX);
    z_stream *stream = &gzip->stream;
    if (body.bytes <= BOX_GZIP_FROM_BYTES)
        return false;
    char *room = tide_buf_reserve(out, body.bytes);
    if (room == NULL)
        return false;
    stream->next_in = (Bytef *)(uintptr_t)body.data;
    stream->avail_in = (uInt)body.bytes;
    stream->next_out = (Bytef *)room;
    stream->avail_out = (uInt)body.bytes - 1; /* what does not get smaller is not worth it */
    int rc = deflate(stream, Z_FINISH);
    size_t packed = body.bytes - 1 - stream->avail_out;
    (void)deflateReset(stream);
    if (rc != Z_STREAM_END)
        return false;
    out->bytes += packed;
    return true;
}
