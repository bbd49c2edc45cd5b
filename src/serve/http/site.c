#include "serve/http/site.h"

#include "base/check.h"

#include <string.h>
#include <strings.h>
#include <zlib.h>

/* Scripts and styles are ours, nothing is inline, nothing comes from elsewhere, no script makes
 * markup out of text, and no other page frames this one. */
static const char page_csp[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'";

static bool takes_gzip(const struct tide_httpd_head *head)
{
    tide_text rest = tide_httpd_header(head, "accept-encoding");
    while (rest.bytes > 0) {
        const char *comma = memchr(rest.data, ',', rest.bytes);
        const size_t bytes = comma == NULL ? rest.bytes : (size_t)(comma - rest.data);
        size_t from = 0;
        while (from < bytes && rest.data[from] == ' ')
            from++;
        /* gzip;q=0.5 would do; gzip;q=0 means no.  A client that weighs it gets the plain file. */
        if (tide_httpd_word_is((tide_text){rest.data + from, bytes - from}, "gzip"))
            return true;
        const size_t step = comma == NULL ? bytes : bytes + 1;
        rest = (tide_text){rest.data + step, rest.bytes - step};
    }
    return false;
}

static bool unpack(const struct tide_httpd_file *file, tide_buf *out)
{
    z_stream z = {.next_in = (unsigned char *)(uintptr_t)file->gzip,
                  .avail_in = (unsigned)file->gzip_bytes};
    char *room = tide_buf_reserve(out, file->bytes + 1);
    if (room == NULL || inflateInit2(&z, 15 + 16) != Z_OK)
        return false;
    z.next_out = (unsigned char *)room;
    z.avail_out = (unsigned)file->bytes + 1;
    const int rc = inflate(&z, Z_FINISH);
    (void)inflateEnd(&z);
    TIDE_ASSERT(rc == Z_STREAM_END && z.total_out == file->bytes); /* the build packed it */
    out->bytes += file->bytes;
    return true;
}

static void give(const struct tide_httpd_file *file, const struct tide_httpd_request *request,
                 struct tide_httpd_answer *answer)
{
    answer->status = 200;
    answer->type = file->type;
    if (takes_gzip(request->head)) {
        answer->encoding = "gzip";
        answer->borrowed = (tide_text){(const char *)file->gzip, file->gzip_bytes};
    } else {
        answer->failed = !unpack(file, &answer->body);
        tide_httpd_set(answer, "Vary", "Accept-Encoding");
    }
}

static const struct tide_httpd_site *site_of(void *arg)
{
    return arg == NULL ? &tide_httpd_site_page : arg;
}

void tide_httpd_site_index(void *arg, const struct tide_httpd_request *request,
                           struct tide_httpd_answer *answer)
{
    give(&site_of(arg)->files[0], request, answer);
    answer->csp = page_csp;
}

void tide_httpd_site_file(void *arg, const struct tide_httpd_request *request,
                          struct tide_httpd_answer *answer)
{
    const struct tide_httpd_site *site = site_of(arg);
    const tide_text name = tide_httpd_part(request, "file");
    const bool current =
        tide_text_equal(tide_httpd_part(request, "digest"), tide_text_of(site->digest));
    for (size_t i = 1; current && i < site->files_count; i++)
        if (tide_text_equal(tide_text_of(site->files[i].name), name)) {
            give(&site->files[i], request, answer);
            answer->immutable = true;
            return;
        }
    tide_httpd_fail(answer, 404, "path", "There is no such file.",
                    &(struct tide_httpd_problem){.help = "Load the page again."});
}
