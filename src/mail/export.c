#include "mail/export.h"

#include "base/check.h"

#include <stdio.h>
#include <string.h>

enum { RAW_BYTES_MAX = 200 << 20, PATH_BYTES = 4096, PAGE = 500 };

struct exporting {
    tide_world *world;
    tide_archive *archive;
    const struct tide_export *wanted;
    tide_buf raw;
    tide_buf old;
    struct tide_exported exported;
    tide_status rc;
    tide_error *err;
};

/* An id is the server's text: only what is plain becomes a file name. */
static bool id_is_plain(const char *id)
{
    return id[0] != '\0' && id[0] != '.' &&
           strspn(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-") ==
               strlen(id);
}

static bool is_read(struct exporting *exporting, const struct tide_stored *stored)
{
    tide_buf labels;
    tide_buf_init(&labels, exporting->raw.mem, 64 << 10);
    const tide_status rc =
        tide_archive_labels_of(exporting->archive, stored, &labels, exporting->err);
    const bool unread = rc == TIDE_OK && strstr(tide_buf_cstr(&labels), "UNREAD") != NULL;
    tide_buf_done(&labels);
    return !unread;
}

static tide_status path_of(struct exporting *exporting, const struct tide_stored *stored,
                           char path[PATH_BYTES])
{
    if (!id_is_plain(stored->gmail_id))
        return tide_error_set(exporting->err, TIDE_INVALID, "the id \"%s\" makes no file name",
                              stored->gmail_id);
    const bool maildir = exporting->wanted->format == TIDE_EXPORT_MAILDIR;
    const int used =
        maildir ? snprintf(path, PATH_BYTES, "%s/cur/%s:2,%s", exporting->wanted->dir,
                           stored->gmail_id, is_read(exporting, stored) ? "S" : "")
                : snprintf(path, PATH_BYTES, "%s/%s.eml", exporting->wanted->dir, stored->gmail_id);
    if (used < 0 || used >= PATH_BYTES)
        return tide_error_set(exporting->err, TIDE_INVALID, "the path is too long: %.100s",
                              exporting->wanted->dir);
    return TIDE_OK;
}

static tide_status export_one(struct exporting *exporting, const struct tide_stored *stored)
{
    char path[PATH_BYTES];
    tide_buf_clear(&exporting->raw);
    tide_buf_clear(&exporting->old);
    tide_status rc = path_of(exporting, stored, path);
    if (rc == TIDE_OK)
        rc = tide_archive_raw(exporting->archive, stored, &exporting->raw, exporting->err);
    if (rc != TIDE_OK)
        return rc;
    const tide_text bytes = tide_buf_text(&exporting->raw);
    if (tide_file_read(exporting->world, path, RAW_BYTES_MAX, &exporting->old, NULL) == TIDE_OK &&
        tide_text_equal(tide_buf_text(&exporting->old), bytes)) {
        exporting->exported.there++;
        return TIDE_OK;
    }
    rc = tide_file_replace(exporting->world, path, bytes, 0600, exporting->err);
    if (rc == TIDE_OK) {
        exporting->exported.written++;
        exporting->exported.bytes += bytes.bytes;
    }
    return rc;
}

static bool visit(const struct tide_found *found, void *arg)
{
    struct exporting *exporting = arg;
    if (exporting->wanted->cancel != NULL &&
        tide_canceled(exporting->wanted->cancel) != TIDE_CANCEL_NONE)
        exporting->rc = tide_error_set(exporting->err, TIDE_CANCELED, "interrupted");
    else
        exporting->rc = export_one(exporting, &found->stored);
    return exporting->rc == TIDE_OK;
}

static tide_status make_dirs(struct exporting *exporting)
{
    static const char *const parts[] = {"cur", "new", "tmp"};
    tide_status rc = tide_dir_make(exporting->world, exporting->wanted->dir, exporting->err);
    if (exporting->wanted->format != TIDE_EXPORT_MAILDIR)
        return rc;
    for (size_t i = 0; rc == TIDE_OK && i < sizeof parts / sizeof parts[0]; i++) {
        char path[PATH_BYTES];
        if ((size_t)snprintf(path, sizeof path, "%s/%s", exporting->wanted->dir, parts[i]) >=
            sizeof path)
            return tide_error_set(exporting->err, TIDE_INVALID, "the path is too long");
        rc = tide_dir_make(exporting->world, path, exporting->err);
    }
    return rc;
}

tide_status tide_export_run(tide_world *world, tide_archive *archive,
                            const struct tide_export *wanted, tide_mem *mem,
                            struct tide_exported *exported_out, tide_error *err)
{
    struct exporting exporting = {.world = world, .archive = archive, .wanted = wanted, .err = err};
    tide_buf next;
    tide_buf token;
    tide_buf_init(&exporting.raw, mem, RAW_BYTES_MAX);
    tide_buf_init(&exporting.old, mem, RAW_BYTES_MAX);
    tide_buf_init(&next, mem, 4096);
    tide_buf_init(&token, mem, 4096);
    tide_status rc = make_dirs(&exporting);
    for (bool more = true; rc == TIDE_OK && more;) {
        const struct tide_search search = {.query = wanted->query,
                                           .oldest_first = true,
                                           .limit = PAGE,
                                           .after = tide_buf_text(&token)};
        tide_buf_clear(&next);
        rc = tide_search_run(archive, &search, visit, &exporting, &next, &more, err);
        if (rc == TIDE_OK)
            rc = exporting.rc;
        tide_buf_clear(&token);
        if (rc == TIDE_OK)
            rc = tide_buf_add(&token, tide_buf_cstr(&next), next.bytes);
    }
    *exported_out = exporting.exported;
    tide_buf_done(&exporting.raw);
    tide_buf_done(&exporting.old);
    tide_buf_done(&next);
    tide_buf_done(&token);
    return rc;
}
