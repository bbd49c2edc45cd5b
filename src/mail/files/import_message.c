/* import_message.c - one message: removes what was added to it, finds its id and date, stores
 * it. */
#include "mail/files/import_inside.h"
#include "base/check.h"
#include "base/encode.h"
#include "mail/files/mbox.h"
#include "mail/mime/message.h"
#include "mail/archive/shard.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    HEADERS_MAX = TIDE_MESSAGE_HEADER_LINES_MAX,
    HEADER_BYTES_MAX = TIDE_MESSAGE_HEADER_BYTES_MAX,
    ID_DIGITS = 24, /* 96 bits of the hash */
};
#define DAY_MS INT64_C(86400000)

/* What is found out about a message. */
struct found {
    tide_text rest;    /* of the raw bytes: the message itself */
    char gmail_id[24]; /* from Takeout; "": none */
    bool held;         /* stored under its Gmail id (IMP4) */
    char thread[TIDE_GMAIL_ID_BYTES_MAX + 1];
    bool dated;
    int64_t internal_ms;
    uint8_t hash[TIDE_CONTENT_HASH_BYTES];
    uint8_t
        key[TIDE_CONTENT_HASH_BYTES]; /* equal for the same message: its hash, or that of its id */
    char id[sizeof TIDE_IMPORT_ID + ID_DIGITS];
};

static void id_of(const uint8_t hash[TIDE_CONTENT_HASH_BYTES], char id[])
{
    memcpy(id, TIDE_IMPORT_ID, sizeof TIDE_IMPORT_ID - 1);
    tide_hex(hash, ID_DIGITS / 2, id + sizeof TIDE_IMPORT_ID - 1);
}

/* ---- our own note --------------------------------------------------------------------- */

static tide_status note_take(struct tide_importing *importing, const struct tide_mbox_note *note,
                             struct found *found)
{
    tide_text rest = found->rest;
    if (rest.bytes == note->bytes + 1) /* the line end that an mbox needs */
        rest.bytes--;
    TIDE_TRY(tide_content_hash(importing->packer, rest, found->hash, importing->err));
    if (memcmp(found->hash, note->hash, sizeof found->hash) == 0)
        found->rest = rest;
    else
        importing->imported.changed++; /* store it as it is */
    /* An edited note may have a time that no archive accepts; then the date is guessed. */
    found->dated = note->internal_ms >= tide_shard_year_ms(1) &&
                   note->internal_ms < tide_shard_year_ms(TIDE_SHARD_YEAR_MAX + 1);
    found->internal_ms = found->dated ? note->internal_ms : 0;
    tide_buf_clear(&importing->words);
    if (tide_mbox_decode(note->thread, &importing->words) == TIDE_OK &&
        importing->words.bytes <= TIDE_GMAIL_ID_BYTES_MAX)
        (void)snprintf(found->thread, sizeof found->thread, "%s", tide_buf_cstr(&importing->words));
    return tide_import_labels_note(importing, note->labels);
}

/* ---- Takeout -------------------------------------------------------------------------- */

/* Google writes ids in decimal where its API has hex. */
static bool hex_of(tide_text decimal, char *text, size_t text_bytes)
{
    uint64_t number = 0;
    if (!tide_text_to_u64(decimal, &number) || number == 0)
        return false;
    (void)snprintf(text, text_bytes, "%" PRIx64, number);
    return true;
}

/* "1583290388308606088@xxx" */
static bool takeout_sender(tide_text sender, char gmail_id[24])
{
    return sender.bytes > 4 && memcmp(sender.data + sender.bytes - 4, "@xxx", 4) == 0 &&
           hex_of((tide_text){sender.data, sender.bytes - 4}, gmail_id, 24);
}

/* Removes the headers that Google adds at the top, in any order.  Only Gmail names a conversation: mail
 * without one is of another mailbox (a group's), and its number says nothing here. */
static tide_status takeout_take(struct tide_importing *importing, struct found *found)
{
    bool cut = false;
    for (unsigned i = 0; i < 2 && found->rest.bytes > 0; i++) {
        struct tide_mail_header header = {TIDE_TEXT_NONE, TIDE_TEXT_NONE};
        size_t bytes = 0;
        size_t lines = 0;
        if (tide_header_read(found->rest, '\n', &header, &bytes, &lines) != TIDE_HEADER_LINE_NAMED)
            break;
        if (tide_text_equal_nocase(header.name, "x-gm-thrid"))
            found->held = hex_of(header.value, found->thread, sizeof found->thread);
        else if (tide_text_equal_nocase(header.name, "x-gmail-labels"))
            TIDE_TRY(tide_import_labels_takeout(importing, header.value));
        else
            break;
        found->rest.data += bytes;
        found->rest.bytes -= bytes;
        cut = true;
    }
    importing->imported.takeout += cut;
    return TIDE_OK;
}

/* ---- date and conversation ---------------------------------------------------------------- */

/* Some programs write 1970 for "unknown", and some clocks are wrong. */
static bool plausible(const struct tide_importing *importing, int64_t ms)
{
    return ms > 366 * DAY_MS && ms <= importing->wanted->now_ms + 2 * DAY_MS;
}

/* The first "<a@b>" of a list of ids. */
static tide_text first_id(tide_text value)
{
    const char *open = value.bytes == 0 ? NULL : memchr(value.data, '<', value.bytes);
    if (open == NULL)
        return tide_text_trimmed(value);
    const tide_text rest = {open + 1, value.bytes - (size_t)(open + 1 - value.data)};
    const char *close = rest.bytes == 0 ? NULL : memchr(rest.data, '>', rest.bytes);
    return (tide_text){rest.data, close == NULL ? rest.bytes : (size_t)(close - rest.data)};
}

struct heads {
    bool has_date;
    int64_t date_ms;
    tide_text own, parent, root; /* Message-ID, In-Reply-To, the first of References */
};

static void heads_read(tide_text rest, struct heads *heads)
{
    const char line_end =
        rest.bytes > 0 && memchr(rest.data, '\n', rest.bytes) == NULL ? '\r' : '\n';
    if (rest.bytes > HEADER_BYTES_MAX)
        rest.bytes = HEADER_BYTES_MAX;
    for (unsigned i = 0; i < HEADERS_MAX && rest.bytes > 0; i++) {
        struct tide_mail_header header = {TIDE_TEXT_NONE, TIDE_TEXT_NONE};
        size_t bytes = 0;
        size_t lines = 0;
        const tide_header_line kind = tide_header_read(rest, line_end, &header, &bytes, &lines);
        if (kind == TIDE_HEADER_LINE_BLANK)
            return;
        rest.data += bytes;
        rest.bytes -= bytes;
        if (kind != TIDE_HEADER_LINE_NAMED)
            continue;
        if (!heads->has_date && tide_text_equal_nocase(header.name, "date"))
            heads->has_date = tide_message_date(header.value, &heads->date_ms);
        else if (heads->own.bytes == 0 && tide_text_equal_nocase(header.name, "message-id"))
            heads->own = first_id(header.value);
        else if (heads->parent.bytes == 0 && tide_text_equal_nocase(header.name, "in-reply-to"))
            heads->parent = first_id(header.value);
        else if (heads->root.bytes == 0 && tide_text_equal_nocase(header.name, "references"))
            heads->root = first_id(header.value);
    }
}

/* From the From_ line or our note, else guessed (IMP2). */
static void date_find(struct tide_importing *importing, const struct tide_import_one *one,
                      const struct heads *heads, struct found *found)
{
    if (found->dated)
        return;
    found->dated = true;
    if (one->has_date && plausible(importing, one->date_ms)) {
        found->internal_ms = one->date_ms;
    } else if (heads->has_date && plausible(importing, heads->date_ms)) {
        found->internal_ms = heads->date_ms;
        importing->imported.by_header++;
    } else if (one->file_ms != INT64_MIN && plausible(importing, one->file_ms)) {
        found->internal_ms = one->file_ms;
        importing->imported.by_file++;
    } else {
        found->internal_ms = 0;
        importing->imported.undated++;
    }
}

/* A conversation is named after its first message, as far as the headers tell. */
static tide_status thread_find(struct tide_importing *importing, const struct heads *heads,
                               struct found *found)
{
    const tide_text root = heads->root.bytes > 0     ? heads->root
                           : heads->parent.bytes > 0 ? heads->parent
                                                     : heads->own;
    uint8_t hash[TIDE_CONTENT_HASH_BYTES];
    if (found->thread[0] != '\0' || root.bytes == 0)
        return TIDE_OK;
    TIDE_TRY(tide_content_hash(importing->packer, root, hash, importing->err));
    id_of(hash, found->thread);
    return TIDE_OK;
}

/* ---- stored before? -------------------------------------------------------------------- */

struct missing {
    const struct tide_importing *importing;
    bool has[TIDE_IMPORT_LABELS_MAX];
};

static tide_text label_at(const struct tide_importing *importing, size_t index)
{
    const size_t begin = index == 0 ? 0 : importing->ends[index - 1];
    return (tide_text){importing->texts.data + begin, importing->ends[index] - begin};
}

static void label_there(const struct tide_label_row *row, void *arg)
{
    struct missing *missing = arg;
    for (size_t i = 0; i < missing->importing->ends_count; i++)
        if (tide_text_equal(label_at(missing->importing, i), row->id))
            missing->has[i] = true;
}

/* An imported message that is imported again with other labels gets these too. */
static tide_status labels_add(struct tide_importing *importing, const struct found *found,
                              const struct tide_stored *stored)
{
    struct missing missing = {.importing = importing};
    struct tide_label_change changes[TIDE_IMPORT_LABELS_MAX];
    size_t count = 0;
    if (importing->wanted->dry_run || importing->ends_count == 0)
        return TIDE_OK;
    if (stored != NULL)
        TIDE_TRY(tide_archive_label_rows(importing->wanted->archive, stored, label_there, &missing,
                                         importing->err));
    for (size_t i = 0; i < importing->ends_count; i++) {
        if (!missing.has[i])
            changes[count++] = (struct tide_label_change){.gmail_id = tide_text_of(found->id),
                                                          .label = label_at(importing, i),
                                                          .added = true,
                                                          .offered = true,
                                                          .at_ms = importing->wanted->now_ms,
                                                          .history_id = TIDE_TEXT("")};
    }
    if (count > 0)
        TIDE_TRY(tide_archive_labels(importing->wanted->archive, changes, count, &importing->ticket,
                                     importing->err));
    return TIDE_OK;
}

static uint64_t bits(const uint8_t *bytes, size_t count)
{
    uint64_t number = 0;
    for (size_t i = 0; i < count; i++)
        number = number << 8 | bytes[i];
    return number;
}

/* The second half of the hash of its bytes: of an id of ours 96 bits are compared, as many as it
 * has. */
static uint32_t rest_of(const struct found *found)
{
    return (uint32_t)bits(found->hash + 8, 4);
}

/* Whether this run has seen it; records it if not. */
static tide_status seen_before(struct tide_importing *importing, const struct found *found,
                               bool *seen_out)
{
    const uint64_t key = bits(found->key, 8) | 1;
    uint32_t rest = 0;
    *seen_out = tide_map_get(&importing->seen, key, &rest) && rest == rest_of(found);
    if (*seen_out || importing->seen.count >= TIDE_IMPORT_MESSAGES_MAX)
        return TIDE_OK;
    if (!tide_map_put(&importing->seen, key, rest_of(found)))
        return tide_error_set(importing->err, TIDE_NO_MEMORY, "no memory to remember a message");
    return TIDE_OK;
}

/* Stored under its Gmail id, whatever the bytes; other messages may have the same ones.  Damaged bytes
 * are replaced (archive.h ARC6). */
static tide_status held_is_there(struct tide_importing *importing, const struct found *found,
                                 bool *there_out)
{
    struct tide_stored stored;
    const tide_status rc = tide_archive_find(importing->wanted->archive, tide_text_of(found->id),
                                             &stored, importing->err);
    *there_out = rc == TIDE_OK && stored.copy != TIDE_COPY_DAMAGED;
    if (rc == TIDE_NOT_FOUND)
        return TIDE_OK;
    /* Once the server has said something about it, the server defines its labels. */
    return rc == TIDE_OK && stored.copy == TIDE_COPY_HELD && stored.history_id[0] == '\0'
               ? labels_add(importing, found, &stored)
               : rc;
}

static tide_status is_there(struct tide_importing *importing, const struct found *found,
                            bool *there_out)
{
    tide_archive *archive = importing->wanted->archive;
    struct tide_stored stored;
    tide_status rc = seen_before(importing, found, there_out);
    if (rc != TIDE_OK || *there_out)
        return rc == TIDE_OK ? labels_add(importing, found, NULL) : rc;
    if (archive == NULL)
        return TIDE_OK;
    if (found->held)
        return held_is_there(importing, found, there_out);
    /* The server's own copy, whatever its bytes. */
    if (found->gmail_id[0] != '\0') {
        rc = tide_archive_find(archive, tide_text_of(found->gmail_id), &stored, importing->err);
        *there_out = rc == TIDE_OK && stored.copy != TIDE_COPY_HELD;
        if (*there_out || (rc != TIDE_OK && rc != TIDE_NOT_FOUND))
            return rc;
    }
    rc = tide_archive_has(archive, found->hash, there_out, importing->err);
    if (rc != TIDE_OK || !*there_out)
        return rc;
    rc = tide_archive_find(archive, tide_text_of(found->id), &stored, importing->err);
    if (rc == TIDE_NOT_FOUND)
        return TIDE_OK; /* stored by a sync: the server defines its labels */
    /* No server has them: only their file can replace damaged bytes (archive.h ARC6). */
    *there_out = rc != TIDE_OK || stored.copy != TIDE_COPY_DAMAGED;
    return rc == TIDE_OK ? labels_add(importing, found, &stored) : rc;
}

/* ---- storing ---------------------------------------------------------------------------- */

static tide_status flags_take(struct tide_importing *importing, const char *flags)
{
    static const struct {
        char flag;
        const char *label;
    } known[] = {{'F', "STARRED"}, {'T', "TRASH"}, {'D', "DRAFT"}};
    if (flags == NULL)
        return TIDE_OK;
    if (strchr(flags, 'S') == NULL)
        TIDE_TRY(tide_import_label_id(importing, TIDE_TEXT("UNREAD")));
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strchr(flags, known[i].flag) != NULL)
            TIDE_TRY(tide_import_label_id(importing, tide_text_of(known[i].label)));
    }
    return TIDE_OK;
}

static tide_status store(struct tide_importing *importing, struct tide_import_one *one,
                         const struct found *found)
{
    tide_text labels[TIDE_IMPORT_LABELS_MAX];
    tide_buf *raw = one->raw;
    const size_t bytes = found->rest.bytes;
    importing->imported.stored++;
    importing->imported.held += found->held;
    importing->imported.bytes += bytes;
    if (importing->wanted->dry_run)
        return TIDE_OK;
    for (size_t i = 0; i < importing->ends_count; i++)
        labels[i] = label_at(importing, i);
    if (bytes > 0)
        memmove(raw->data, found->rest.data, bytes);
    raw->bytes = bytes;
    const struct tide_incoming incoming = {.gmail_id = tide_text_of(found->id),
                                           .thread_id = tide_text_of(found->thread),
                                           .history_id = TIDE_TEXT(""),
                                           .internal_ms = found->internal_ms,
                                           .labels = labels,
                                           .labels_count = importing->ends_count,
                                           .held = found->held,
                                           .take = raw};
    tide_status rc =
        tide_archive_put(importing->wanted->archive, &incoming, importing->wanted->cancel,
                         &importing->ticket, importing->err);
    importing->under_bytes += bytes;
    if (rc != TIDE_OK || importing->under_bytes < TIDE_IMPORT_UNDER_BYTES)
        return rc;
    importing->under_bytes = 0;
    return tide_archive_sync(importing->wanted->archive, importing->ticket,
                             importing->wanted->cancel, importing->err);
}

/* Removes what was added at the top, and reads it. */
static tide_status unwrap(struct tide_importing *importing, struct tide_import_one *one,
                          struct found *found)
{
    struct tide_mbox_note note;
    tide_import_labels_clear(importing);
    const bool in_mbox = one->sender.bytes > 0;
    if (in_mbox && tide_mbox_note_read(found->rest, &note, &found->rest))
        TIDE_TRY(note_take(importing, &note, found));
    else if (in_mbox && takeout_sender(one->sender, found->gmail_id))
        TIDE_TRY(takeout_take(importing, found));
    TIDE_TRY(flags_take(importing, one->flags));
    if (one->group.bytes > 0) { /* a message of another mailbox, with a number of that one */
        found->held = false;
        found->gmail_id[0] = '\0';
        TIDE_TRY(tide_import_label_name(importing, one->group));
    }
    if (importing->wanted->label != NULL)
        TIDE_TRY(tide_import_label_local(importing, tide_text_of(importing->wanted->label)));
    return TIDE_OK;
}

/* Whether other bytes than these came from Takeout under its Gmail id.  Then one of the two is another
 * message, and none must be lost because of a wrong number (IMP4). */
static tide_status id_is_taken(struct tide_importing *importing, const struct found *found,
                               bool *taken_out)
{
    tide_archive *archive = importing->wanted->archive;
    struct tide_stored stored;
    uint32_t rest = 0;
    *taken_out =
        tide_map_get(&importing->seen, bits(found->key, 8) | 1, &rest) && rest != rest_of(found);
    if (*taken_out || archive == NULL)
        return TIDE_OK;
    const tide_status rc =
        tide_archive_find(archive, tide_text_of(found->gmail_id), &stored, importing->err);
    *taken_out = rc == TIDE_OK && stored.copy == TIDE_COPY_HELD &&
                 memcmp(stored.hash, found->hash, sizeof stored.hash) != 0;
    return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
}

/* Its id: Gmail's, or made from its bytes (IMP4). */
static tide_status name(struct tide_importing *importing, struct found *found)
{
    bool taken = false;
    if (found->held) {
        memcpy(found->id, found->gmail_id, strlen(found->gmail_id) + 1);
        TIDE_TRY(tide_content_hash(importing->packer, tide_text_of(found->id), found->key,
                                   importing->err));
        TIDE_TRY(id_is_taken(importing, found, &taken));
    }
    if (found->held && !taken)
        return TIDE_OK;
    found->held = false;
    memcpy(found->key, found->hash, sizeof found->key);
    id_of(found->hash, found->id);
    return TIDE_OK;
}

tide_status tide_import_message(struct tide_importing *importing, struct tide_import_one *one)
{
    struct found found = {.rest = tide_buf_text(one->raw)};
    struct heads heads = {0};
    bool there = false;
    importing->imported.messages++;
    if (found.rest.bytes == 0) {
        importing->imported.empty++;
        return TIDE_OK;
    }
    TIDE_TRY(tide_room_spend(&importing->room, found.rest.bytes, importing->err));
    TIDE_TRY(unwrap(importing, one, &found));
    TIDE_TRY(tide_content_hash(importing->packer, found.rest, found.hash, importing->err));
    TIDE_TRY(name(importing, &found));
    TIDE_TRY(is_there(importing, &found, &there));
    if (there) {
        importing->imported.there++;
        return TIDE_OK;
    }
    heads_read(found.rest, &heads);
    date_find(importing, one, &heads, &found);
    TIDE_TRY(thread_find(importing, &heads, &found));
    return store(importing, one, &found);
}
