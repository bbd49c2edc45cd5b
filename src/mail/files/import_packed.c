/* import_packed.c - imports mail out of .zip, .tar, .tgz and .gz files, as Takeout delivers them,
 * without unpacking them to the disk.
 *
 * A packed file is untrusted.  Nothing is written under a name that it gives, so names need no
 * check; they only tell a mailbox from other files.  Sizes that it states are not used.  A file that
 * grows too much when it is unpacked is refused, links and special files inside are skipped, and
 * packed files inside are not unpacked.  libarchive is told to expect these formats only. */
#include "mail/files/import_inside.h"
#include "base/check.h"

#include <archive.h>
#include <archive_entry.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

enum {
    BLOCK_BYTES = 64 << 10,
    ENTRIES_MAX = 10000000,
    /* deflate reaches 1032.  Mail reaches 20, and a mailbox of one message repeated 150. */
    GROWTH_MAX = 300,
    GROWTH_FREE_BYTES = 64 << 20, /* small files may grow more */
};

struct packed {
    struct tide_importing *importing;
    const struct tide_import_source *outer;
    struct archive *archive;
    uint64_t at; /* in the packed file */
    uint64_t unpacked_bytes;
    uint64_t before_bytes; /* of the import, before this file */
    tide_status failed;    /* of reading the packed file itself; err is set */
    char block[BLOCK_BYTES];
    /* The file inside that is being read. */
    char head[TIDE_IMPORT_SNIFF_BYTES];
    size_t head_count;
    uint64_t entry_at; /* how much of it was read */
    char name[4096];
};

/* ---- the packed file --------------------------------------------------------------------- */

static la_ssize_t give_block(struct archive *archive, void *arg, const void **block_out)
{
    struct packed *packed = arg;
    size_t count = 0;
    const struct tide_import_source *outer = packed->outer;
    packed->failed = outer->read(outer->arg, packed->at, packed->block, sizeof packed->block,
                                 &count, packed->importing->err);
    if (packed->failed != TIDE_OK) {
        archive_set_error(archive, EIO, "cannot be read");
        return -1;
    }
    packed->at += count;
    packed->importing->imported.read_bytes = packed->before_bytes + packed->at;
    *block_out = packed->block;
    return (la_ssize_t)count;
}

/* A zip file has its directory at the end. */
static la_int64_t seek_to(struct archive *archive, void *arg, la_int64_t offset, int whence)
{
    struct packed *packed = arg;
    const int64_t from = whence == SEEK_SET   ? 0
                         : whence == SEEK_CUR ? (int64_t)packed->at
                                              : (int64_t)packed->outer->bytes;
    (void)archive;
    if (offset < -from || offset > INT64_MAX - from)
        return ARCHIVE_FATAL;
    packed->at = (uint64_t)(from + offset);
    return (la_int64_t)packed->at;
}

static la_int64_t skip_over(struct archive *archive, void *arg, la_int64_t count)
{
    struct packed *packed = arg;
    (void)archive;
    const uint64_t left = packed->outer->bytes > packed->at ? packed->outer->bytes - packed->at : 0;
    const uint64_t some = count < 0 ? 0 : (uint64_t)count < left ? (uint64_t)count : left;
    packed->at += some;
    return (la_int64_t)some;
}

static tide_status broken(struct packed *packed, tide_error *err)
{
    if (packed->failed != TIDE_OK)
        return packed->failed;
    const char *why = archive_error_string(packed->archive);
    if (archive_errno(packed->archive) == ENOMEM)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory to unpack %.300s",
                              packed->outer->name);
    return tide_error_set(err, TIDE_INVALID,
                          "%.300s is damaged or not complete (%.100s); download it again",
                          packed->outer->name, why == NULL ? "unknown reason" : why);
}

static tide_status packed_open(struct packed *packed, tide_error *err)
{
    struct archive *archive = archive_read_new();
    packed->archive = archive;
    if (archive == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory to unpack %.300s",
                              packed->outer->name);
    bool ok = archive_read_support_filter_gzip(archive) == ARCHIVE_OK &&
              archive_read_support_format_tar(archive) == ARCHIVE_OK &&
              archive_read_support_format_zip(archive) == ARCHIVE_OK &&
              archive_read_support_format_raw(archive) == ARCHIVE_OK && /* a single file in a .gz */
              archive_read_set_read_callback(archive, give_block) == ARCHIVE_OK &&
              archive_read_set_seek_callback(archive, seek_to) == ARCHIVE_OK &&
              archive_read_set_skip_callback(archive, skip_over) == ARCHIVE_OK &&
              archive_read_set_callback_data(archive, packed) == ARCHIVE_OK;
    if (!ok || archive_read_open1(archive) != ARCHIVE_OK)
        return broken(packed, err);
    return TIDE_OK;
}

/* ---- a file inside ------------------------------------------------------------------------ */

/* The next bytes of the file inside; *count_out 0: it has ended. */
static tide_status next_bytes(struct packed *packed, char *bytes, size_t room, size_t *count_out,
                              tide_error *err)
{
    la_ssize_t got = ARCHIVE_RETRY;
    while (got == ARCHIVE_RETRY)
        got = archive_read_data(packed->archive, bytes, room);
    if (got < 0)
        return broken(packed, err);
    *count_out = (size_t)got;
    packed->unpacked_bytes += (uint64_t)got;
    if (packed->unpacked_bytes > GROWTH_FREE_BYTES &&
        packed->unpacked_bytes / GROWTH_MAX > packed->outer->bytes)
        return tide_error_set(err, TIDE_FULL,
                              "%.300s unpacks to more than %d times its size, which mail does not; "
                              "it is not imported further",
                              packed->outer->name, GROWTH_MAX);
    return TIDE_OK;
}

/* Fills `room`, fewer only at the end. */
static tide_status fill(struct packed *packed, char *bytes, size_t room, size_t *count_out,
                        tide_error *err)
{
    *count_out = 0;
    for (size_t got = 1; got > 0 && *count_out < room; *count_out += got)
        TIDE_TRY(next_bytes(packed, bytes + *count_out, room - *count_out, &got, err));
    packed->entry_at += *count_out;
    return TIDE_OK;
}

static tide_status from_entry(void *arg, uint64_t at, char *bytes, size_t room, size_t *count_out,
                              tide_error *err)
{
    struct packed *packed = arg;
    size_t again = 0;
    if (at < packed->head_count) { /* what was looked at first */
        again = packed->head_count - (size_t)at;
        again = again < room ? again : room;
        memcpy(bytes, packed->head + at, again);
    }
    *count_out = again;
    if (again == room || packed->head_count < sizeof packed->head)
        return TIDE_OK; /* or all of it was */
    TIDE_ASSERT(at + again == packed->entry_at);
    size_t count = 0;
    TIDE_TRY(fill(packed, bytes + again, room - again, &count, err));
    *count_out += count;
    return TIDE_OK;
}

/* For error messages, which may go to a terminal. */
static void name_take(struct packed *packed, struct archive_entry *entry)
{
    const char *name = archive_entry_pathname_utf8(entry);
    if (name == NULL)
        name = archive_entry_pathname(entry); /* not UTF-8: the bytes as they are */
    (void)snprintf(packed->name, sizeof packed->name, "%s", name == NULL ? "" : name);
    for (char *c = packed->name; *c != '\0'; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = '?';
}

static tide_status import_entry(struct packed *packed, struct archive_entry *entry)
{
    struct tide_importing *importing = packed->importing;
    name_take(packed, entry);
    if (archive_entry_filetype(entry) != AE_IFREG && archive_entry_filetype(entry) != 0)
        return TIDE_OK;
    if (archive_entry_hardlink(entry) != NULL)
        return TIDE_OK;
    if (archive_entry_is_encrypted(entry))
        return tide_error_set(importing->err, TIDE_INVALID,
                              "%.300s is encrypted; unpack it with its password",
                              packed->outer->name);
    packed->head_count = 0;
    packed->entry_at = 0;
    TIDE_TRY(fill(packed, packed->head, sizeof packed->head, &packed->head_count, importing->err));
    struct tide_import_source source = {
        .name = packed->name,
        .read = from_entry,
        .arg = packed,
        .changed_ms = archive_entry_mtime_is_set(entry) ? (int64_t)archive_entry_mtime(entry) * 1000
                                                        : packed->outer->changed_ms,
        .packed = true,
    };
    /* A .gz names no file: it has the name of the packed one, without its end. */
    if (archive_format(packed->archive) == ARCHIVE_FORMAT_RAW) {
        const size_t bytes = strlen(packed->outer->name);
        (void)snprintf(packed->name, sizeof packed->name, "%.*s",
                       (int)(bytes > 3 ? bytes - 3 : bytes), packed->outer->name);
        source.named = packed->outer->named;
        source.changed_ms = packed->outer->changed_ms;
    }
    return tide_import_source(importing, &source);
}

static tide_status import_entries(struct packed *packed, tide_error *err)
{
    const uint64_t files = packed->importing->imported.files;
    for (uint64_t count = 0; count < ENTRIES_MAX; count++) {
        struct archive_entry *entry = NULL;
        int code = ARCHIVE_RETRY;
        while (code == ARCHIVE_RETRY)
            code = archive_read_next_header(packed->archive, &entry);
        if (code == ARCHIVE_EOF && packed->importing->imported.files == files &&
            packed->outer->named)
            return tide_error_set(err, TIDE_INVALID, "%.300s has no mail in it",
                                  packed->outer->name);
        if (code == ARCHIVE_EOF)
            return TIDE_OK;
        if (code != ARCHIVE_OK && code != ARCHIVE_WARN) /* a name in an unknown encoding */
            return broken(packed, err);
        TIDE_TRY(import_entry(packed, entry));
    }
    return tide_error_set(err, TIDE_FULL, "%.300s has more than %d files in it",
                          packed->outer->name, ENTRIES_MAX);
}

tide_status tide_import_packed(struct tide_importing *importing,
                               const struct tide_import_source *source)
{
    struct packed *packed = tide_mem_new(importing->mem, sizeof *packed);
    if (packed == NULL)
        return tide_error_set(importing->err, TIDE_NO_MEMORY, "no memory to unpack %.300s",
                              source->name);
    packed->importing = importing;
    packed->outer = source;
    packed->before_bytes = importing->imported.read_bytes;
    tide_status rc = packed_open(packed, importing->err);
    if (rc == TIDE_OK)
        rc = import_entries(packed, importing->err);
    if (packed->archive != NULL)
        (void)archive_read_free(packed->archive);
    tide_mem_free(importing->mem, packed, sizeof *packed);
    return rc;
}
