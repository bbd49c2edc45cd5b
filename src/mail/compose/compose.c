#include "mail/compose/compose.h"

#include "base/encode.h"
#include "base/hash.h"
#include "base/json.h"
#include "mail/mime/charset.h"

#include <inttypes.h>
#include <stdio.h>

enum { BOUNDARY_BYTES = 40, LINE_BYTES_PLAIN = 78 };

/* ---- what is refused ---- */

static tide_status check_line(const char *what, tide_text text, size_t bytes_max, tide_error *err)
{
    if (text.bytes > bytes_max)
        return tide_error_set(err, TIDE_FULL, "%s is longer than %zu bytes", what, bytes_max);
    if (tide_compose_has_control(text))
        return tide_error_set(err, TIDE_INVALID, "%s has a line end or another control character",
                              what);
    return TIDE_OK;
}

static tide_status check_people(const char *what, const struct tide_mailbox *people, size_t count,
                                tide_error *err)
{
    for (size_t i = 0; i < count; i++) {
        const tide_text shown = tide_utf8_cut(people[i].address, 80);
        TIDE_TRY(check_line("a name", people[i].name, TIDE_COMPOSE_NAME_BYTES_MAX * 2, err));
        if (!tide_mailbox_is_address(people[i].address))
            return tide_error_set(err, TIDE_INVALID, "%s: \"%.*s\" is not an address", what,
                                  (int)shown.bytes, shown.data == NULL ? "" : shown.data);
    }
    return TIDE_OK;
}

static tide_status check_ids(const struct tide_compose *compose, tide_error *err)
{
    bool good = compose->message_id.bytes == 0 || tide_compose_is_id(compose->message_id);
    good = good && (compose->in_reply_to.bytes == 0 || tide_compose_is_id(compose->in_reply_to));
    for (size_t i = 0; good && i < compose->references_count; i++)
        good = tide_compose_is_id(compose->references[i]);
    if (!good)
        return tide_error_set(err, TIDE_INVALID, "the id of a message is malformed");
    for (size_t i = 0; good && i < compose->token.bytes; i++)
        good = tide_is_plain(compose->token.data[i], "-_");
    if (!good || compose->token.bytes > TIDE_COMPOSE_TOKEN_BYTES_MAX)
        return tide_error_set(err, TIDE_INVALID, "the tag of a draft is malformed");
    return TIDE_OK;
}

static tide_status check_files(const struct tide_compose *compose, tide_error *err)
{
    uint64_t bytes = compose->text.bytes;
    for (size_t i = 0; i < compose->files_count; i++) {
        const struct tide_compose_file *file = &compose->files[i];
        TIDE_TRY(
            check_line("the name of a file", file->name, TIDE_COMPOSE_FILE_NAME_BYTES_MAX, err));
        bytes += (uint64_t)file->bytes.bytes / 57 * 78;
        if (bytes > TIDE_COMPOSE_BYTES_MAX)
            return tide_error_set(err, TIDE_FULL, "the files are larger than Gmail takes (25 MB)");
    }
    return TIDE_OK;
}

static tide_status check(const struct tide_compose *compose, tide_error *err)
{
    const size_t people = compose->to_count + compose->cc_count + compose->bcc_count;
    TIDE_TRY(check_people("From", &compose->from, 1, err));
    if (people > TIDE_COMPOSE_RECIPIENTS_MAX)
        return tide_error_set(err, TIDE_FULL, "%zu recipients; Gmail takes %d", people,
                              TIDE_COMPOSE_RECIPIENTS_MAX);
    TIDE_TRY(check_people("To", compose->to, compose->to_count, err));
    TIDE_TRY(check_people("Cc", compose->cc, compose->cc_count, err));
    TIDE_TRY(check_people("Bcc", compose->bcc, compose->bcc_count, err));
    TIDE_TRY(check_line("the subject", compose->subject, TIDE_COMPOSE_SUBJECT_BYTES_MAX, err));
    TIDE_TRY(check_ids(compose, err));
    if (compose->text.bytes > TIDE_COMPOSE_TEXT_BYTES_MAX)
        return tide_error_set(err, TIDE_FULL, "the text is longer than %d bytes",
                              TIDE_COMPOSE_TEXT_BYTES_MAX);
    if (compose->references_count > TIDE_COMPOSE_REFERENCES_MAX ||
        compose->files_count > TIDE_COMPOSE_FILES_MAX)
        return tide_error_set(err, TIDE_FULL, "a message has at most %d files",
                              TIDE_COMPOSE_FILES_MAX);
    if (compose->zone_minutes < -1440 || compose->zone_minutes > 1440)
        return tide_error_set(err, TIDE_INVALID, "the time zone is malformed");
    return check_files(compose, err);
}

/* ---- the text ---- */

typedef enum way { WAY_7BIT, WAY_QUOTED, WAY_BASE64 } way;

/* How the text is written.  Boundaries begin with "=_", which neither of the encodings writes. */
static way way_of(const struct tide_compose *compose, tide_text text)
{
    size_t high = 0, line = 0;
    bool short_lines = true;
    for (size_t i = 0; i < text.bytes; i++) {
        const unsigned char c = (unsigned char)text.data[i];
        high += c >= 0x7f;
        line = c == '\n' ? 0 : line + 1;
        short_lines = short_lines && line <= LINE_BYTES_PLAIN;
    }
    if (compose->opaque || high > text.bytes / 6)
        return WAY_BASE64;
    const bool changed_by_some =
        (text.bytes >= 5 && memcmp(text.data, "From ", 5) == 0) ||
        (text.bytes > 0 &&
         (text.data[0] == '.' || memmem(text.data, text.bytes, "\n.", 2) != NULL ||
          memmem(text.data, text.bytes, "\nFrom ", 6) != NULL ||
          memmem(text.data, text.bytes, " \n", 2) != NULL ||
          memmem(text.data, text.bytes, "\t\n", 2) != NULL ||
          memmem(text.data, text.bytes, "=_", 2) != NULL));
    return high == 0 && short_lines && !changed_by_some ? WAY_7BIT : WAY_QUOTED;
}

static tide_status add_lines_base64(tide_text text, tide_buf *out)
{
    tide_auto_buf lines = tide_buf_in(out->mem, text.bytes * 2 + 1);
    for (size_t i = 0; i < text.bytes; i++) /* text in a message has CR LF */
        TIDE_TRY(text.data[i] == '\n' ? tide_buf_add(&lines, "\r\n", 2)
                                      : tide_buf_add(&lines, &text.data[i], 1));
    return tide_compose_base64(tide_buf_text(&lines), out);
}

static tide_status add_text(const struct tide_compose *compose, tide_buf *out)
{
    static const char *const names[] = {
        [WAY_7BIT] = "7bit", [WAY_QUOTED] = "quoted-printable", [WAY_BASE64] = "base64"};
    tide_auto_buf clean = tide_buf_in(out->mem, compose->text.bytes * 3 + 1);
    TIDE_TRY(tide_clean_add(compose->text, TIDE_CLEAN_TEXT, &clean));
    if (!compose->opaque && clean.bytes > 0 && clean.data[clean.bytes - 1] != '\n')
        TIDE_TRY(tide_buf_add(&clean, "\n", 1)); /* CMP3 */
    const tide_text text = tide_buf_text(&clean);
    const way chosen = way_of(compose, text);
    TIDE_TRY(tide_buf_print(out,
                            "Content-Type: text/plain; charset=utf-8\r\n"
                            "Content-Transfer-Encoding: %s\r\n\r\n",
                            names[chosen]));
    if (chosen == WAY_7BIT)
        return tide_compose_7bit(text, out);
    return chosen == WAY_QUOTED ? tide_compose_quoted(text, out) : add_lines_base64(text, out);
}

/* ---- files ---- */

static size_t token_bytes(tide_text text)
{
    size_t bytes = 0;
    while (bytes < text.bytes && tide_is_plain(text.data[bytes], "-.+_!#$&^"))
        bytes++;
    return bytes;
}

/* "application/pdf".  A message or a multipart would be taken apart by its reader, and may not be
 * base64 (RFC 2046): as a file it is only bytes. */
static tide_text type_of(const struct tide_compose_file *file)
{
    const tide_text type = file->type;
    const size_t major = token_bytes(type);
    if (major == 0 || major >= type.bytes || type.data[major] != '/' || type.bytes > 100 ||
        tide_text_starts_nocase(type, "multipart/") || tide_text_starts_nocase(type, "message/"))
        return TIDE_TEXT("application/octet-stream");
    const tide_text minor = {type.data + major + 1, type.bytes - major - 1};
    return minor.bytes > 0 && token_bytes(minor) == minor.bytes
               ? type
               : TIDE_TEXT("application/octet-stream");
}

static tide_status add_file(const struct tide_compose_file *file, tide_buf *out)
{
    const tide_text type = type_of(file);
    TIDE_TRY(tide_buf_print(out,
                            "Content-Type: %.*s\r\n"
                            "Content-Transfer-Encoding: base64\r\n"
                            "Content-Disposition: attachment",
                            (int)type.bytes, type.data));
    if (file->name.bytes > 0)
        TIDE_TRY(tide_compose_param("filename", file->name, out));
    TIDE_TRY(tide_buf_add_text(out, "\r\n\r\n"));
    return tide_compose_base64(file->bytes, out);
}

/* ---- the whole ---- */

/* Any id will do (CMP2: no part can contain it); this one comes out the same again. */
static void boundary_of(const struct tide_compose *compose, char boundary[BOUNDARY_BYTES])
{
    const uint64_t hash = tide_hash(TIDE_HASH_START, compose->message_id);
    (void)snprintf(boundary, BOUNDARY_BYTES, "=_tidemark_%016" PRIx64, hash);
}

static tide_status add_parts(const struct tide_compose *compose, tide_buf *out)
{
    char boundary[BOUNDARY_BYTES];
    boundary_of(compose, boundary);
    TIDE_TRY(tide_buf_print(out,
                            "Content-Type: multipart/mixed;\r\n boundary=\"%s\"\r\n\r\n--%s\r\n",
                            boundary, boundary));
    TIDE_TRY(add_text(compose, out));
    for (size_t i = 0; i < compose->files_count; i++) {
        TIDE_TRY(tide_buf_print(out, "\r\n--%s\r\n", boundary));
        TIDE_TRY(add_file(&compose->files[i], out));
    }
    return tide_buf_print(out, "\r\n--%s--\r\n", boundary);
}

static tide_status add_id(const char *header, tide_text id, tide_buf *out)
{
    return id.bytes == 0 ? TIDE_OK
                         : tide_buf_print(out, "%s: <%.*s>\r\n", header, (int)id.bytes, id.data);
}

static tide_status add_headers(const struct tide_compose *compose, tide_buf *out)
{
    if (compose->dated)
        TIDE_TRY(tide_compose_date(compose->date_unix_ms, compose->zone_minutes, out));
    TIDE_TRY(tide_compose_mailboxes("From", &compose->from, 1, out));
    TIDE_TRY(tide_compose_mailboxes("To", compose->to, compose->to_count, out));
    TIDE_TRY(tide_compose_mailboxes("Cc", compose->cc, compose->cc_count, out));
    TIDE_TRY(tide_compose_mailboxes("Bcc", compose->bcc, compose->bcc_count, out));
    if (compose->subject.bytes > 0)
        TIDE_TRY(tide_compose_text_header("Subject", compose->subject, out));
    TIDE_TRY(add_id("Message-ID", compose->message_id, out));
    TIDE_TRY(add_id("In-Reply-To", compose->in_reply_to, out));
    for (size_t i = 0; i < compose->references_count; i++)
        TIDE_TRY(tide_buf_print(out, "%s<%.*s>", i == 0 ? "References: " : "\r\n ",
                                (int)compose->references[i].bytes, compose->references[i].data));
    if (compose->references_count > 0)
        TIDE_TRY(tide_buf_add_text(out, "\r\n"));
    if (compose->token.bytes > 0)
        TIDE_TRY(tide_buf_print(out, "X-Tidemark-Draft: %.*s\r\n", (int)compose->token.bytes,
                                compose->token.data));
    return tide_buf_add_text(out, "MIME-Version: 1.0\r\n");
}

static tide_status add_all(const struct tide_compose *compose, tide_buf *out)
{
    TIDE_TRY(add_headers(compose, out));
    return compose->files_count == 0 ? add_text(compose, out) : add_parts(compose, out);
}

/* One allocation where the files make the size. */
static tide_status make_room(const struct tide_compose *compose, tide_buf *out)
{
    size_t bytes = out->bytes + 3 * compose->text.bytes + 4096;
    for (size_t i = 0; i < compose->files_count; i++)
        bytes += compose->files[i].bytes.bytes / 57 * 78 + 2048;
    return compose->files_count == 0 || bytes > out->bytes_max ? TIDE_OK
                                                               : tide_buf_room(out, bytes);
}

tide_status tide_compose_add(const struct tide_compose *compose, tide_buf *out, tide_error *err)
{
    const size_t before = out->bytes;
    TIDE_TRY(check(compose, err));
    tide_status rc = make_room(compose, out);
    if (rc == TIDE_OK)
        rc = add_all(compose, out);
    if (rc == TIDE_OK && out->bytes - before > TIDE_COMPOSE_BYTES_MAX)
        rc = TIDE_FULL;
    if (rc == TIDE_FULL)
        return tide_error_set(err, rc, "the message is larger than Gmail takes");
    return rc == TIDE_OK ? rc : tide_error_set(err, rc, "the message could not be written");
}
