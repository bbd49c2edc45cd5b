#include "mail/export.h"

#include "base/check.h"
#include "mail/header.h"
#include "mail/mbox.h"
#include "mail/room.h"
#include "mail/shard.h"
#include "world/userfile.h"

#include <stdio.h>

enum { RAW_BYTES_MAX = 600 << 20, PATH_BYTES = 4096, PAGE = 500, SENDER_HEADERS_MAX = 200 };

/* What the labels of a message say to other programs. */
struct flags {
    bool unread, starred, draft, trash;
};

struct exporting {
    tide_world *world;
    tide_archive *archive;
    const struct tide_export *wanted;
    tide_mem *mem;
    tide_buf raw;
    tide_buf top;    /* lines on top of a message in an mbox */
    tide_buf labels; /* of the note */
    struct flags flags;
    tide_writing *mbox; /* of mbox_year */
    int32_t mbox_year;
    int64_t mbox_ms; /* the newest message in it */
    uint64_t mbox_messages, mbox_bytes;
    struct tide_room room;
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

/* ---- labels ---- */

static void label_seen(const struct tide_label_row *label, void *arg)
{
    struct exporting *exporting = arg;
    struct flags *flags = &exporting->flags;
    flags->unread = flags->unread || tide_text_equal(label->id, TIDE_TEXT("UNREAD"));
    flags->starred = flags->starred || tide_text_equal(label->id, TIDE_TEXT("STARRED"));
    flags->draft = flags->draft || tide_text_equal(label->id, TIDE_TEXT("DRAFT"));
    flags->trash = flags->trash || tide_text_equal(label->id, TIDE_TEXT("TRASH"));
    tide_buf *out = &exporting->labels;
    tide_status rc = out->bytes == 0 ? TIDE_OK : tide_buf_add(out, ",", 1);
    if (rc == TIDE_OK)
        rc = tide_mbox_encode(label->id, out);
    if (rc == TIDE_OK && label->name.bytes > 0 && !tide_text_equal(label->id, label->name)) {
        rc = tide_buf_add(out, ":", 1);
        if (rc == TIDE_OK)
            rc = tide_mbox_encode(label->name, out);
    }
    if (rc != TIDE_OK && exporting->rc == TIDE_OK)
        exporting->rc = tide_error_set(exporting->err, rc, "no room for the labels of a message");
}

static tide_status labels_read(struct exporting *exporting, const struct tide_stored *stored)
{
    exporting->flags = (struct flags){0};
    tide_buf_clear(&exporting->labels);
    if (exporting->wanted->format == TIDE_EXPORT_EML)
        return TIDE_OK;
    tide_status rc =
        tide_archive_label_rows(exporting->archive, stored, label_seen, exporting, exporting->err);
    return rc == TIDE_OK ? exporting->rc : rc;
}

/* ---- eml and Maildir: a file a message ---- */

static tide_status path_of(struct exporting *exporting, const struct tide_stored *stored,
                           char path[PATH_BYTES])
{
    const struct flags *flags = &exporting->flags;
    const char *dir = exporting->wanted->path;
    if (!id_is_plain(stored->gmail_id))
        return tide_error_set(exporting->err, TIDE_INVALID, "the id \"%s\" makes no file name",
                              stored->gmail_id);
    /* Flags stand in the order of the alphabet.  Gmail does not say what was answered,
     * so there is never an R. */
    const int used = exporting->wanted->format == TIDE_EXPORT_MAILDIR
                         ? snprintf(path, PATH_BYTES, "%s/cur/%s:2,%s%s%s%s", dir, stored->gmail_id,
                                    flags->draft ? "D" : "", flags->starred ? "F" : "",
                                    flags->unread ? "" : "S", flags->trash ? "T" : "")
                         : snprintf(path, PATH_BYTES, "%s/%s.eml", dir, stored->gmail_id);
    if (used < 0 || used >= PATH_BYTES)
        return tide_error_set(exporting->err, TIDE_INVALID, "the path is too long: %.100s", dir);
    return TIDE_OK;
}

static tide_status export_file(struct exporting *exporting, const struct tide_stored *stored)
{
    char path[PATH_BYTES];
    tide_writing *writing = NULL;
    bool same = false;
    tide_status rc = path_of(exporting, stored, path);
    if (rc == TIDE_OK)
        rc = tide_writing_open(exporting->mem, path, &writing, exporting->err);
    if (rc == TIDE_OK)
        rc = tide_writing_add(writing, exporting->raw.data, exporting->raw.bytes, exporting->err);
    if (rc != TIDE_OK) {
        tide_writing_drop(writing);
        return rc;
    }
    rc = tide_writing_end(writing, stored->internal_ms, &same, exporting->err);
    if (rc != TIDE_OK)
        return rc;
    exporting->exported.written += !same;
    exporting->exported.there += same;
    exporting->exported.files += !same;
    exporting->exported.bytes += same ? 0 : exporting->raw.bytes;
    return TIDE_OK;
}

/* ---- mbox: a file a year, or one ---- */

static bool is_one_file(const struct tide_export *wanted)
{
    const size_t bytes = strlen(wanted->path);
    return wanted->format == TIDE_EXPORT_MBOX && bytes > 5 &&
           strcmp(wanted->path + bytes - 5, ".mbox") == 0;
}

static tide_status mbox_close(struct exporting *exporting)
{
    bool same = false;
    tide_writing *writing = exporting->mbox;
    exporting->mbox = NULL;
    if (writing == NULL)
        return TIDE_OK;
    tide_status rc = tide_writing_end(writing, exporting->mbox_ms, &same, exporting->err);
    if (rc != TIDE_OK)
        return rc;
    exporting->exported.files += !same;
    if (same) { /* they were counted as written */
        exporting->exported.written -= exporting->mbox_messages;
        exporting->exported.there += exporting->mbox_messages;
        exporting->exported.bytes -= exporting->mbox_bytes;
    }
    return TIDE_OK;
}

/* The file where a message belongs, open. */
static tide_status mbox_open(struct exporting *exporting, const struct tide_stored *stored)
{
    char path[PATH_BYTES];
    const int32_t year = tide_shard_year(stored->internal_ms);
    const bool one = is_one_file(exporting->wanted);
    if (exporting->mbox != NULL && (one || exporting->mbox_year == year))
        return TIDE_OK;
    tide_status rc = mbox_close(exporting);
    if (rc != TIDE_OK)
        return rc;
    const int used =
        one ? snprintf(path, sizeof path, "%s", exporting->wanted->path)
            : snprintf(path, sizeof path, "%s/%04d.mbox", exporting->wanted->path, (int)year);
    if (used < 0 || used >= PATH_BYTES)
        return tide_error_set(exporting->err, TIDE_INVALID, "the path is too long");
    exporting->mbox_year = year;
    exporting->mbox_messages = 0;
    exporting->mbox_bytes = 0;
    return tide_writing_open(exporting->mem, path, &exporting->mbox, exporting->err);
}

/* "a@example.org" of "<a@example.org>" or "A <a@example.org>". */
static tide_text address_in(tide_text value)
{
    const char *open = value.bytes == 0 ? NULL : memrchr(value.data, '<', value.bytes);
    if (open == NULL)
        return memchr(value.data, '@', value.bytes) == NULL ? TIDE_TEXT_NONE : value;
    const tide_text rest = {open + 1, value.bytes - (size_t)(open + 1 - value.data)};
    const char *close = rest.bytes == 0 ? NULL : memchr(rest.data, '>', rest.bytes);
    return (tide_text){rest.data, close == NULL ? rest.bytes : (size_t)(close - rest.data)};
}

/* Who sent it by the envelope, as far as a message tells: Return-Path, else From. */
static tide_text sender_of(tide_text raw)
{
    tide_text from = TIDE_TEXT_NONE;
    for (unsigned i = 0; i < SENDER_HEADERS_MAX && raw.bytes > 0; i++) {
        struct tide_mail_header header = {TIDE_TEXT_NONE, TIDE_TEXT_NONE};
        size_t bytes = 0;
        size_t lines = 0;
        const tide_header_line kind = tide_header_read(raw, '\n', &header, &bytes, &lines);
        if (kind == TIDE_HEADER_LINE_BLANK)
            break;
        if (kind == TIDE_HEADER_LINE_NAMED && tide_text_equal_nocase(header.name, "return-path") &&
            address_in(header.value).bytes > 0)
            return address_in(header.value);
        if (kind == TIDE_HEADER_LINE_NAMED && from.bytes == 0 &&
            tide_text_equal_nocase(header.name, "from"))
            from = address_in(header.value);
        raw.data += bytes;
        raw.bytes -= bytes;
    }
    return from;
}

static tide_status to_mbox(void *arg, const char *bytes, size_t count, tide_error *err)
{
    struct exporting *exporting = arg;
    return tide_writing_add(exporting->mbox, bytes, count, err);
}

static tide_status export_to_mbox(struct exporting *exporting, const struct tide_stored *stored)
{
    const tide_text raw = tide_buf_text(&exporting->raw);
    struct tide_mbox_entry entry = {.raw = raw,
                                    .sender = sender_of(raw),
                                    .is_read = !exporting->flags.unread,
                                    .is_starred = exporting->flags.starred,
                                    .is_draft = exporting->flags.draft,
                                    .is_trash = exporting->flags.trash,
                                    .note = {.id = tide_text_of(stored->gmail_id),
                                             .thread = tide_text_of(stored->thread_id),
                                             .internal_ms = stored->internal_ms,
                                             .labels = tide_buf_text(&exporting->labels)}};
    memcpy(entry.note.hash, stored->hash, sizeof entry.note.hash);
    tide_status rc = mbox_open(exporting, stored);
    if (rc == TIDE_OK)
        rc = tide_mbox_write(&entry, &exporting->top, to_mbox, exporting, exporting->err);
    if (rc != TIDE_OK)
        return rc;
    exporting->mbox_ms = stored->internal_ms;
    exporting->mbox_messages++;
    exporting->mbox_bytes += raw.bytes;
    exporting->exported.written++;
    exporting->exported.bytes += raw.bytes;
    return TIDE_OK;
}

/* ---- all of it ---- */

static tide_status export_one(struct exporting *exporting, const struct tide_stored *stored)
{
    tide_buf_clear(&exporting->raw);
    tide_status rc = tide_room_spend(&exporting->room, stored->bytes, exporting->err);
    if (rc == TIDE_OK)
        rc = labels_read(exporting, stored);
    if (rc == TIDE_OK)
        rc = tide_archive_raw(exporting->archive, stored, &exporting->raw, exporting->err);
    if (rc != TIDE_OK)
        return rc;
    rc = exporting->wanted->format == TIDE_EXPORT_MBOX ? export_to_mbox(exporting, stored)
                                                       : export_file(exporting, stored);
    if (rc == TIDE_OK && exporting->wanted->progress != NULL)
        exporting->wanted->progress(&exporting->exported, exporting->wanted->progress_arg);
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

/* Where the files go; of a single mbox the directory around it. */
static tide_status make_dirs(struct exporting *exporting, char dir[PATH_BYTES])
{
    static const char *const parts[] = {"cur", "new", "tmp"};
    const char *path = exporting->wanted->path;
    size_t bytes = strlen(path);
    if (is_one_file(exporting->wanted)) {
        while (bytes > 0 && path[bytes - 1] != '/')
            bytes--;
        if (bytes == 0) {
            path = ".";
            bytes = 1;
        }
    }
    if (bytes + 5 >= PATH_BYTES)
        return tide_error_set(exporting->err, TIDE_INVALID, "the path is too long");
    (void)snprintf(dir, PATH_BYTES, "%.*s", (int)bytes, path);
    tide_status rc = tide_dir_make(exporting->world, dir, exporting->err);
    if (exporting->wanted->format != TIDE_EXPORT_MAILDIR)
        return rc;
    for (size_t i = 0; rc == TIDE_OK && i < sizeof parts / sizeof parts[0]; i++) {
        char part[PATH_BYTES + 8];
        (void)snprintf(part, sizeof part, "%s/%s", dir, parts[i]);
        rc = tide_dir_make(exporting->world, part, exporting->err);
    }
    return rc;
}

static tide_status export_pages(struct exporting *exporting)
{
    tide_buf next;
    tide_buf token;
    tide_buf_init(&next, exporting->mem, 4096);
    tide_buf_init(&token, exporting->mem, 4096);
    tide_status rc = TIDE_OK;
    for (bool more = true; rc == TIDE_OK && more;) {
        const struct tide_search search = {.query = exporting->wanted->query,
                                           .oldest_first = true,
                                           .limit = PAGE,
                                           .after = tide_buf_text(&token)};
        tide_buf_clear(&next);
        rc = tide_search_run(exporting->archive, &search, visit, exporting, &next, &more,
                             exporting->err);
        if (rc == TIDE_OK)
            rc = exporting->rc;
        tide_buf_clear(&token);
        if (rc == TIDE_OK)
            rc = tide_buf_add(&token, tide_buf_cstr(&next), next.bytes);
    }
    tide_buf_done(&next);
    tide_buf_done(&token);
    return rc;
}

tide_status tide_export_run(tide_world *world, tide_archive *archive,
                            const struct tide_export *wanted, tide_mem *mem,
                            struct tide_exported *exported_out, tide_error *err)
{
    struct exporting exporting = {
        .world = world, .archive = archive, .wanted = wanted, .mem = mem, .err = err};
    char dir[PATH_BYTES];
    tide_buf_init(&exporting.raw, mem, RAW_BYTES_MAX);
    tide_buf_init(&exporting.top, mem, 256 << 10);
    tide_buf_init(&exporting.labels, mem, TIDE_MBOX_NOTE_BYTES_MAX - 1024);
    tide_status rc = make_dirs(&exporting, dir);
    if (rc == TIDE_OK)
        rc = tide_room_open(&exporting.room, world, dir, wanted->free_min_bytes, err);
    if (rc == TIDE_OK)
        rc = export_pages(&exporting);
    if (rc == TIDE_OK)
        rc = mbox_close(&exporting);
    if (rc == TIDE_OK)
        rc = tide_userfile_settle(dir, err);
    tide_writing_drop(exporting.mbox);
    *exported_out = exporting.exported;
    tide_buf_done(&exporting.raw);
    tide_buf_done(&exporting.top);
    tide_buf_done(&exporting.labels);
    return rc;
}
