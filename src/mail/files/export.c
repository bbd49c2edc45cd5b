#include "mail/files/export.h"

#include "base/check.h"
#include "mail/mime/header.h"
#include "mail/files/mbox.h"
#include "world/free_space.h"
#include "mail/archive/shard.h"
#include "world/userfile.h"

#include <stdio.h>
#include <stdlib.h>

enum { RAW_BYTES_MAX = 600 << 20, PATH_BYTES = 4096, PAGE = 500, SENDER_HEADERS_MAX = 200 };

/* The labels of a message that other programs understand. */
struct flags {
    bool unread, starred, draft, trash;
};

/* Files of a Maildir, "cur/ID:2,FS", sorted. */
struct names {
    tide_mem *mem;
    char **list;
    size_t count, capacity;
    const char *part; /* the folder being listed */
    bool no_memory;
};

struct exporting {
    tide_world *world;
    tide_archive *archive;
    const struct tide_export *wanted;
    tide_mem *mem;
    tide_buf raw;
    tide_buf top;    /* our header lines for a message in an mbox */
    tide_buf labels; /* for the note */
    struct flags flags;
    tide_writing *mbox; /* of mbox_year */
    int32_t mbox_year;
    int64_t mbox_ms; /* the newest message in it */
    uint64_t mbox_messages, mbox_bytes;
    struct tide_room room;
    struct names names; /* of a Maildir */
    struct tide_exported exported;
    tide_status rc;
    tide_error *err;
};

/* An id is text from the server: only a safe one becomes a file name. */
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
        exporting->rc = tide_error_set(exporting->err, rc, "no memory for the labels of a message");
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

/* ---- eml and Maildir: one file per message ---- */

static void names_done(struct names *names)
{
    for (size_t i = 0; i < names->count; i++)
        tide_mem_free(names->mem, names->list[i], strlen(names->list[i]) + 1);
    tide_mem_free(names->mem, (void *)names->list, names->capacity * sizeof *names->list);
}

static void names_add(const char *name, void *arg)
{
    struct names *names = arg;
    const size_t bytes = strlen(names->part) + 1 + strlen(name) + 1;
    char *path = names->no_memory ? NULL : tide_mem_new(names->mem, bytes);
    if (path == NULL ||
        !TIDE_GROW_IN(names->mem, names->list, names->capacity, names->count + 1, SIZE_MAX / 16)) {
        names->no_memory = true;
        tide_mem_free(names->mem, path, bytes);
        return;
    }
    (void)snprintf(path, bytes, "%s/%s", names->part, name);
    names->list[names->count++] = path;
}

/* Compares the part after "cur/" or "new/". */
static int names_order(const void *one, const void *other)
{
    return strcmp(*(char *const *)one + 4, *(char *const *)other + 4);
}

static tide_status names_read(struct exporting *exporting)
{
    static const char *const parts[] = {"cur", "new"};
    struct names *names = &exporting->names;
    names->mem = exporting->mem;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        char dir[PATH_BYTES + 8];
        names->part = parts[i];
        (void)snprintf(dir, sizeof dir, "%s/%s", exporting->wanted->path, parts[i]);
        TIDE_TRY(tide_dir_list(exporting->world, dir, names_add, names, exporting->err));
    }
    if (names->no_memory)
        return tide_error_set(exporting->err, TIDE_NO_MEMORY, "no memory for the names in %.200s",
                              exporting->wanted->path);
    if (names->count > 1)
        qsort((void *)names->list, names->count, sizeof *names->list, names_order);
    return TIDE_OK;
}

/* The file that an earlier export made for this message: "ID" or "ID:2,...". */
static const char *names_find(const struct names *names, const char *id)
{
    const size_t bytes = strlen(id);
    size_t low = 0;
    size_t high = names->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (strcmp(names->list[middle] + 4, id) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    /* "ID" itself, or the first name that continues it; "ID-1" may be in between. */
    for (; low < names->count && strncmp(names->list[low] + 4, id, bytes) == 0; low++) {
        const char behind = names->list[low][4 + bytes];
        if (behind == '\0' || behind == ':')
            return names->list[low];
    }
    return NULL;
}

/* Flags are in alphabetical order.  Gmail does not tell what was answered or forwarded; flags that
 * a mail program set for that are kept (EXP2). */
static void flags_text(const struct flags *flags, const char *former, char out[8])
{
    const char *theirs = former == NULL ? NULL : strstr(former, ":2,");
    const bool passed = theirs != NULL && strchr(theirs, 'P') != NULL;
    const bool answered = theirs != NULL && strchr(theirs, 'R') != NULL;
    (void)snprintf(out, 8, "%s%s%s%s%s%s", flags->draft ? "D" : "", flags->starred ? "F" : "",
                   passed ? "P" : "", answered ? "R" : "", flags->unread ? "" : "S",
                   flags->trash ? "T" : "");
}

/* Renames a file of an earlier export to its new flags.  Under that name it is compared and written
 * like any other.  It is kept if the new name is taken. */
static tide_status name_again(struct exporting *exporting, const char *former, const char *path)
{
    char old[PATH_BYTES + 300];
    struct tide_path_info info;
    (void)snprintf(old, sizeof old, "%s/%s", exporting->wanted->path, former);
    TIDE_TRY(tide_path_look(path, &info, exporting->err));
    if (info.kind != TIDE_PATH_NONE)
        return TIDE_OK;
    return tide_userfile_replace(old, path, exporting->err);
}

static tide_status path_of(struct exporting *exporting, const struct tide_stored *stored,
                           char path[PATH_BYTES])
{
    const char *dir = exporting->wanted->path;
    const bool maildir = exporting->wanted->format == TIDE_EXPORT_MAILDIR;
    const char *former = maildir ? names_find(&exporting->names, stored->gmail_id) : NULL;
    char flags[8];
    flags_text(&exporting->flags, former, flags);
    const int used =
        maildir ? snprintf(path, PATH_BYTES, "%s/cur/%s:2,%s", dir, stored->gmail_id, flags)
                : snprintf(path, PATH_BYTES, "%s/%s.eml", dir, stored->gmail_id);
    if (used < 0 || used >= PATH_BYTES)
        return tide_error_set(exporting->err, TIDE_INVALID, "the path is too long: %.100s", dir);
    return former == NULL ? TIDE_OK : name_again(exporting, former, path);
}

static void problem(struct exporting *exporting, const char *text)
{
    if (exporting->wanted->problem != NULL)
        exporting->wanted->problem(text, exporting->wanted->progress_arg);
}

/* Gives a file its name (EXP1). */
static tide_status file_end(struct exporting *exporting, tide_writing *writing, int64_t changed_ms,
                            bool *same_out, bool *kept_out)
{
    tide_error why = {TIDE_OK, 0, ""};
    const tide_status rc = exporting->wanted->replace
                               ? tide_writing_end(writing, changed_ms, same_out, exporting->err)
                               : tide_writing_end_keeping(writing, changed_ms, same_out, &why);
    *kept_out = !exporting->wanted->replace && rc == TIDE_EXISTS;
    if (*kept_out) {
        (void)strncat(why.text, " with other content and was kept",
                      sizeof why.text - strlen(why.text) - 1);
        problem(exporting, why.text);
        exporting->exported.kept++;
        return TIDE_OK;
    }
    if (rc != TIDE_OK && !exporting->wanted->replace)
        *exporting->err = why;
    return rc;
}

static tide_status export_file(struct exporting *exporting, const struct tide_stored *stored)
{
    char path[PATH_BYTES];
    tide_writing *writing = NULL;
    bool same = false;
    bool kept = false;
    tide_status rc = path_of(exporting, stored, path);
    if (rc == TIDE_OK)
        rc = tide_writing_open(exporting->mem, path, &writing, exporting->err);
    if (rc == TIDE_OK)
        rc = tide_writing_add(writing, exporting->raw.data, exporting->raw.bytes, exporting->err);
    if (rc != TIDE_OK) {
        tide_writing_drop(writing);
        return rc;
    }
    TIDE_TRY(file_end(exporting, writing, stored->internal_ms, &same, &kept));
    if (kept)
        return TIDE_OK;
    exporting->exported.written += !same;
    exporting->exported.there += same;
    exporting->exported.files += !same;
    exporting->exported.bytes += same ? 0 : exporting->raw.bytes;
    return TIDE_OK;
}

/* ---- mbox: one file per year, or one ---- */

static bool is_one_file(const struct tide_export *wanted)
{
    const size_t bytes = strlen(wanted->path);
    return wanted->format == TIDE_EXPORT_MBOX && bytes > 5 &&
           strcmp(wanted->path + bytes - 5, ".mbox") == 0;
}

static tide_status mbox_close(struct exporting *exporting)
{
    bool same = false;
    bool kept = false;
    tide_writing *writing = exporting->mbox;
    exporting->mbox = NULL;
    if (writing == NULL)
        return TIDE_OK;
    TIDE_TRY(file_end(exporting, writing, exporting->mbox_ms, &same, &kept));
    exporting->exported.files += !same && !kept;
    if (same || kept) { /* they were counted as written */
        exporting->exported.written -= exporting->mbox_messages;
        exporting->exported.there += same ? exporting->mbox_messages : 0;
        exporting->exported.bytes -= exporting->mbox_bytes;
    }
    return TIDE_OK;
}

/* Opens the file for a message. */
static tide_status mbox_open(struct exporting *exporting, const struct tide_stored *stored)
{
    char path[PATH_BYTES];
    const int32_t year = tide_shard_year(stored->internal_ms);
    const bool one = is_one_file(exporting->wanted);
    if (exporting->mbox != NULL && (one || exporting->mbox_year == year))
        return TIDE_OK;
    TIDE_TRY(mbox_close(exporting));
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

/* The envelope sender, as far as a message tells: Return-Path, else From. */
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
    TIDE_TRY(mbox_open(exporting, stored));
    TIDE_TRY(tide_mbox_write(&entry, &exporting->top, to_mbox, exporting, exporting->err));
    exporting->mbox_ms = stored->internal_ms;
    exporting->mbox_messages++;
    exporting->mbox_bytes += raw.bytes;
    exporting->exported.written++;
    exporting->exported.bytes += raw.bytes;
    return TIDE_OK;
}

/* ---- the export ---- */

/* Reads a message; false: it cannot be read, or its id makes no file name (EXP3). */
static tide_status read_one(struct exporting *exporting, const struct tide_stored *stored,
                            bool *readable_out)
{
    tide_error why = {TIDE_OK, 0, ""};
    char text[500];
    TIDE_TRY(labels_read(exporting, stored));
    tide_status rc = id_is_plain(stored->gmail_id)
                         ? tide_archive_raw(exporting->archive, stored, &exporting->raw, &why)
                         : tide_error_set(&why, TIDE_CORRUPT, "its id cannot be a file name");
    *readable_out = rc == TIDE_OK;
    if (rc == TIDE_CORRUPT || rc == TIDE_NOT_FOUND) {
        (void)snprintf(text, sizeof text, "message %.60s is left out: %.400s", stored->gmail_id,
                       why.text);
        problem(exporting, text);
        exporting->exported.damaged++;
        return TIDE_OK;
    }
    if (rc != TIDE_OK)
        *exporting->err = why;
    return rc;
}

static tide_status export_one(struct exporting *exporting, const struct tide_stored *stored)
{
    bool readable = false;
    tide_buf_clear(&exporting->raw);
    TIDE_TRY(tide_room_spend(&exporting->room, stored->bytes, exporting->err));
    TIDE_TRY(read_one(exporting, stored, &readable));
    if (!readable)
        return TIDE_OK;
    TIDE_TRY(exporting->wanted->format == TIDE_EXPORT_MBOX ? export_to_mbox(exporting, stored)
                                                           : export_file(exporting, stored));
    if (exporting->wanted->progress != NULL)
        exporting->wanted->progress(&exporting->exported, exporting->wanted->progress_arg);
    return TIDE_OK;
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

/* Creates the directories of the files; for a single mbox its directory. */
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
    tide_auto_buf next = tide_buf_in(exporting->mem, 4096);
    tide_auto_buf token = tide_buf_in(exporting->mem, 4096);
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
    if (rc == TIDE_OK && wanted->format == TIDE_EXPORT_MAILDIR)
        rc = names_read(&exporting);
    if (rc == TIDE_OK)
        rc = tide_room_open(&exporting.room, world, dir, wanted->free_min_bytes, err);
    if (rc == TIDE_OK)
        rc = export_pages(&exporting);
    if (rc == TIDE_OK)
        rc = mbox_close(&exporting);
    if (rc == TIDE_OK)
        rc = tide_userfile_settle(dir, err);
    tide_writing_drop(exporting.mbox);
    names_done(&exporting.names);
    *exported_out = exporting.exported;
    tide_buf_done(&exporting.raw);
    tide_buf_done(&exporting.top);
    tide_buf_done(&exporting.labels);
    return rc;
}
