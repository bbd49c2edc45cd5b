/* embed.c - packs the page's files into a C source; run by the build.
 *
 *     embed OUT.c PAGE FILE...
 *
 * PAGE is index.html.  DIGEST in it becomes the digest over all names and contents, so that the
 * addresses of the other files change whenever one of them does.  The same files give the same
 * output.
 *
 * Lines of scripts and style sheets that are only comments become empty ones, and the others lose their
 * indentation, and in scripts the comment at their end: a fifth of what a browser would load.  A line in an
 * error is still one of the source.  So no text may go over the end of a line. */
#include <openssl/evp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { FILE_BYTES_MAX = 1 << 20, FILES_MAX = 64, DIGEST_HEX = 16 };

struct file {
    const char *name;
    unsigned char *data;
    size_t bytes;
};

static _Noreturn void fail(const char *what, const char *name)
{
    fprintf(stderr, "embed: %s: %s\n", name, what);
    exit(1);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

static void file_read(const char *path, struct file *file)
{
    FILE *in = fopen(path, "rb");
    file->name = base_name(path);
    file->data = malloc(FILE_BYTES_MAX);
    if (in == NULL || file->data == NULL)
        fail("cannot be read", path);
    file->bytes = fread(file->data, 1, FILE_BYTES_MAX, in);
    if (ferror(in) || !feof(in))
        fail("cannot be read, or is larger than 1 MB", path);
    (void)fclose(in);
}

/* A line that begins with `//`, and lines from one that begins with a block comment to the one that
 * ends it, if nothing follows there.  All else stays as it is. */
static size_t comment_bytes(const char *text, const char *end)
{
    const char *at = text;
    while (at < end && *at == ' ')
        at++;
    if (end - at < 2 || at[0] != '/' || (at[1] != '/' && at[1] != '*'))
        return 0;
    const char *last = at;
    if (at[1] == '*') {
        const char *close = memmem(at, (size_t)(end - at), "*/", 2);
        if (close == NULL || (close + 2 < end && close[2] != '\n'))
            return 0;
        last = close + 2;
    }
    const char *line_end = memchr(last, '\n', (size_t)(end - last));
    return (size_t)((line_end == NULL ? end : line_end) - text);
}

/* What a line of a script has before the comment at its end.  One with a quote or another slash in it stays:
 * it may be a text or an address. */
static size_t code_bytes(const char *line, size_t bytes)
{
    for (size_t i = bytes; i-- > 0;) {
        if (strchr("'\"`", line[i]) != NULL)
            return bytes;
        if (line[i] == '/')
            return i >= 2 && i + 1 < bytes && memcmp(line + i - 2, " // ", 4) == 0 ? i - 2 : bytes;
    }
    return bytes;
}

static bool ends_with(const char *name, const char *end)
{
    const size_t bytes = strlen(name), end_bytes = strlen(end);
    return bytes >= end_bytes && strcmp(name + bytes - end_bytes, end) == 0;
}

static void shorten(struct file *file)
{
    const bool script = ends_with(file->name, ".js");
    const char *text = (const char *)file->data;
    const char *end = text + file->bytes;
    size_t to = 0;
    while (text < end) {
        const size_t comment = comment_bytes(text, end);
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        const size_t line = newline == NULL ? (size_t)(end - text) : (size_t)(newline + 1 - text);
        const size_t span = comment > 0 ? comment : line;
        const size_t code = comment > 0 ? 0 : script ? code_bytes(text, line) : line;
        bool begun = false;
        for (size_t i = 0; i < span; i++) {
            begun = begun || text[i] != ' ';
            if (text[i] == '\n' || (i < code && begun))
                file->data[to++] = (unsigned char)text[i];
        }
        text += span;
    }
    file->bytes = to;
}

static bool is_shortened(const char *name)
{
    return ends_with(name, ".js") || ends_with(name, ".css");
}

static void digest_of(const struct file *files, size_t count, char hex_out[DIGEST_HEX + 1])
{
    unsigned char digest[32];
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool done = context != NULL && EVP_DigestInit_ex(context, EVP_sha256(), NULL) == 1;
    for (size_t i = 0; i < count; i++) {
        const uint64_t bytes = files[i].bytes;
        done = done && EVP_DigestUpdate(context, files[i].name, strlen(files[i].name) + 1) == 1 &&
               EVP_DigestUpdate(context, &bytes, sizeof bytes) == 1 &&
               EVP_DigestUpdate(context, files[i].data, files[i].bytes) == 1;
    }
    if (!done || EVP_DigestFinal_ex(context, digest, NULL) != 1)
        fail("no digest", "libcrypto");
    EVP_MD_CTX_free(context);
    for (size_t i = 0; i < DIGEST_HEX / 2; i++)
        (void)snprintf(hex_out + 2 * i, 3, "%02x", digest[i]);
}

/* "DIGEST" in the page, by the digest. */
static void name_digest(struct file *page, const char *hex)
{
    static const char word[] = "DIGEST";
    const size_t word_bytes = sizeof word - 1;
    unsigned char *out = malloc(2 * FILE_BYTES_MAX + DIGEST_HEX);
    size_t to = 0, named = 0;
    if (out == NULL)
        fail("no memory", page->name);
    for (size_t at = 0; at < page->bytes;) {
        if (to + DIGEST_HEX > 2 * FILE_BYTES_MAX)
            fail("too large", page->name);
        if (page->bytes - at >= word_bytes && memcmp(page->data + at, word, word_bytes) == 0) {
            memcpy(out + to, hex, DIGEST_HEX);
            to += DIGEST_HEX;
            at += word_bytes;
            named++;
        } else {
            out[to++] = page->data[at++];
        }
    }
    if (named == 0)
        fail("does not name app/DIGEST/", page->name);
    free(page->data);
    page->data = out;
    page->bytes = to;
}

static const char *type_of(const char *name)
{
    static const char *const types[][2] = {
        {".html", "text/html; charset=utf-8"},
        {".js", "text/javascript; charset=utf-8"},
        {".css", "text/css; charset=utf-8"},
        {".svg", "image/svg+xml"},
        {".png", "image/png"},
    };
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; dot != NULL && i < sizeof types / sizeof types[0]; i++)
        if (strcmp(dot, types[i][0]) == 0)
            return types[i][1];
    fail("is of no type that is served", name);
}

/* The gzip header has no time and no name: the same bytes in, the same bytes out. */
static size_t pack(const struct file *file, unsigned char *out, size_t out_bytes)
{
    z_stream z = {.next_in = file->data, .avail_in = (unsigned)file->bytes};
    if (deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY) != Z_OK)
        fail("no memory", file->name);
    z.next_out = out;
    z.avail_out = (unsigned)out_bytes;
    if (deflate(&z, Z_FINISH) != Z_STREAM_END)
        fail("cannot be packed", file->name);
    const size_t bytes = z.total_out;
    (void)deflateEnd(&z);
    return bytes;
}

static size_t write_bytes(FILE *out, size_t number, const struct file *file)
{
    const size_t room = 2 * FILE_BYTES_MAX + (64 << 10);
    unsigned char *packed = malloc(room);
    if (packed == NULL)
        fail("no memory", file->name);
    const size_t bytes = pack(file, packed, room);
    fprintf(out, "static const unsigned char file_%zu[] = {", number);
    for (size_t i = 0; i < bytes; i++)
        fprintf(out, "%s%u,", i % 24 == 0 ? "\n    " : "", packed[i]);
    fprintf(out, "\n};\n\n");
    free(packed);
    return bytes;
}

int main(int argc, char **argv)
{
    static struct file files[FILES_MAX];
    size_t packed[FILES_MAX];
    char hex[DIGEST_HEX + 1];
    const size_t count = (size_t)argc - 2;
    if (argc < 3 || count > FILES_MAX)
        fail("usage: embed OUT.c PAGE FILE...", "arguments");
    for (size_t i = 0; i < count; i++)
        file_read(argv[i + 2], &files[i]);
    for (size_t i = 0; i < count; i++)
        if (is_shortened(files[i].name))
            shorten(&files[i]);
    digest_of(files, count, hex);
    name_digest(&files[0], hex);
    FILE *out = fopen(argv[1], "wb");
    if (out == NULL)
        fail("cannot be written", argv[1]);
    fprintf(out, "/* Made from web/ by web/embed.c. */\n#include \"serve/http/site.h\"\n\n");
    for (size_t i = 0; i < count; i++)
        packed[i] = write_bytes(out, i, &files[i]);
    fprintf(out, "static const struct tide_httpd_file files[] = {\n");
    for (size_t i = 0; i < count; i++)
        fprintf(out, "    {\"%s\", \"%s\", file_%zu, %zu, %zu},\n", files[i].name,
                type_of(files[i].name), i, packed[i], files[i].bytes);
    fprintf(out,
            "};\n\nconst struct tide_httpd_site tide_httpd_site_page = {\"%s\", files, %zu};\n",
            hex, count);
    for (size_t i = 0; i < count; i++)
        free(files[i].data);
    if (fclose(out) != 0)
        fail("cannot be written", argv[1]);
    return 0;
}
