/* plan.c - chooses the messages to restore, and how to restore each (restore.h). */
#include "mail/restore/inside.h"

#include "base/check.h"
#include "mail/search/search.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { PAGE = 100 };

/* ---- one message ---- */

/* A restore by query undoes the archiver's latest removal; without one, the message was lost in
 * another way. */
static tide_deed deed_of(const struct tide_piece *piece)
{
    const bool other_id = strcmp(piece->stored.gmail_id, piece->removal.gmail_id) != 0;
    if (piece->stored_known && piece->stored.gone)
        return TIDE_DEED_INSERT;
    if (piece->stored_known && other_id)
        return TIDE_DEED_THERE;
    const tide_removal_mode mode =
        piece->mode == TIDE_REMOVE_NOTHING && piece->origin != 0 ? piece->origin_mode : piece->mode;
    switch (mode) {
    case TIDE_REMOVE_FROM_INBOX:
        return TIDE_DEED_INBOX;
    case TIDE_REMOVE_TO_TRASH:
        return TIDE_DEED_TRASH;
    case TIDE_REMOVE_FOR_GOOD:
        return TIDE_DEED_INSERT;
    case TIDE_REMOVE_NOTHING:
        break;
    }
    return TIDE_DEED_THERE;
}

tide_status tide_piece_decide(tide_restore *restore, struct tide_piece *piece, char reason[256],
                              tide_error *err)
{
    const tide_status rc = tide_archive_find(
        restore->archive, tide_text_of(piece->removal.gmail_id), &piece->stored, err);
    if (rc != TIDE_OK && rc != TIDE_NOT_FOUND)
        return rc;
    piece->stored_known = rc == TIDE_OK;
    piece->deed = deed_of(piece);
    if (!piece->stored_known &&
        (piece->deed == TIDE_DEED_INSERT || piece->deed == TIDE_DEED_THERE)) {
        piece->deed = TIDE_DEED_REFUSE;
        (void)snprintf(reason, 256, "the archive does not have it");
    }
    return TIDE_OK;
}

tide_status tide_piece_raw(tide_restore *restore, const struct tide_piece *piece, tide_buf *raw,
                           tide_error *err)
{
    TIDE_ASSERT(piece->stored_known);
    tide_buf_clear(raw);
    if (memcmp(piece->stored.hash, piece->removal.hash, sizeof piece->stored.hash) != 0)
        return tide_error_set(err, TIDE_CORRUPT,
                              "message %s: the archive has other bytes than the manifest records",
                              piece->removal.gmail_id);
    return tide_archive_raw(restore->archive, &piece->stored, raw, err);
}

/* Errors that concern only this copy. */
static bool is_damage(tide_status rc)
{
    return rc == TIDE_CORRUPT || rc == TIDE_INVALID || rc == TIDE_FULL || rc == TIDE_NEWER;
}

static tide_status plan_piece(tide_restore *restore, struct tide_piece *piece, tide_error *err)
{
    char reason[256] = "";
    tide_error damage = {TIDE_OK, 0, ""};
    TIDE_TRY(tide_piece_decide(restore, piece, reason, err));
    tide_status rc = TIDE_OK;
    if (piece->deed == TIDE_DEED_INSERT) {
        tide_buf raw;
        tide_buf_init(&raw, restore->mem, TIDE_RESTORE_RAW_BYTES_MAX);
        rc = tide_piece_raw(restore, piece, &raw, &damage);
        tide_buf_done(&raw);
        if (is_damage(rc)) {
            piece->deed = TIDE_DEED_REFUSE;
            (void)snprintf(reason, sizeof reason, "%.250s", damage.text);
        } else if (rc != TIDE_OK) {
            if (err != NULL)
                *err = damage;
            return rc;
        }
    }
    struct tide_restore_sum *sum = &restore->state.planned[piece->deed];
    if (piece->deed == TIDE_DEED_REFUSE)
        tide_restore_refuse(restore, 0, piece->removal.gmail_id, 0, reason);
    sum->messages++;
    sum->bytes += piece->removal.bytes;
    return TIDE_OK;
}

/* ---- entries of a manifest ---- */

struct entries_page {
    tide_restore *restore;
    uint64_t manifest;
    tide_removal_state state;
    uint64_t after;
    struct tide_piece *pieces; /* PAGE of them */
    size_t count;
};

static bool page_entry(const struct tide_removal *removal, void *arg)
{
    struct entries_page *page = arg;
    page->pieces[page->count++] = (struct tide_piece){.removal = *removal};
    return page->count < PAGE;
}

static tide_status page_origin(tide_rows db, uint32_t account, struct tide_piece *piece,
                               tide_error *err)
{
    struct tide_removal origin;
    if (piece->mode != TIDE_REMOVE_NOTHING)
        return TIDE_OK;
    const tide_status rc = tide_removal_origin(db, account, tide_text_of(piece->removal.gmail_id),
                                               &origin, &piece->origin_mode, err);
    if (rc == TIDE_OK)
        piece->origin = origin.id;
    return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
}

static tide_status page_read(tide_rows db, void *arg, tide_error *err)
{
    struct entries_page *page = arg;
    page->count = 0;
    TIDE_TRY(tide_removal_list(db, page->manifest, (int)page->state, page->after, PAGE, page_entry,
                               page, err));
    for (size_t i = 0; i < page->count; i++) {
        page->pieces[i].mode = page->restore->state.mode;
        TIDE_TRY(page_origin(db, page->restore->account, &page->pieces[i], err));
    }
    return TIDE_OK;
}

static bool is_named(const tide_restore *restore, const char *gmail_id)
{
    for (size_t i = 0; i < restore->ids_count; i++)
        if (strcmp(restore->ids[i], gmail_id) == 0)
            return true;
    return restore->ids_count == 0;
}

typedef tide_status each_piece(tide_restore *restore, struct tide_piece *piece, tide_error *err);

static tide_status each_in(tide_restore *restore, tide_removal_state state, each_piece *each,
                           tide_error *err)
{
    struct entries_page page = {
        .restore = restore, .manifest = restore->state.manifest, .state = state};
    uint64_t done = 0;
    tide_status rc = TIDE_OK;
    page.pieces = tide_mem_array(restore->mem, PAGE, sizeof *page.pieces);
    if (page.pieces == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory to read a manifest");
    do {
        rc = tide_restore_read(restore, page_read, &page, err);
        for (size_t i = 0; rc == TIDE_OK && i < page.count; i++) {
            struct tide_piece *piece = &page.pieces[i];
            page.after = piece->removal.id;
            if (!is_named(restore, piece->removal.gmail_id) ||
                (restore->limit > 0 && done >= restore->limit))
                continue;
            rc = each(restore, piece, err);
            done++;
        }
    } while (rc == TIDE_OK && page.count == PAGE && (restore->limit == 0 || done < restore->limit));
    tide_mem_free(restore->mem, page.pieces, PAGE * sizeof *page.pieces);
    return rc;
}

tide_status tide_restore_each(tide_restore *restore,
                              tide_status (*each)(tide_restore *restore, struct tide_piece *piece,
                                                  tide_error *err),
                              tide_error *err)
{
    return each_in(restore, TIDE_REMOVAL_REMOVED, each, err);
}

/* ---- entries whose removal was asked, with unknown result ---- */

static void asked_reason(const tide_restore *restore, char reason[256])
{
    (void)snprintf(reason, 256,
                   "the run ended before Gmail confirmed the removal: run `tidemark mail archive "
                   "--resume %" PRIu64 "`, then restore it",
                   restore->state.manifest);
}

static tide_status plan_asked(tide_restore *restore, struct tide_piece *piece, tide_error *err)
{
    char reason[256];
    (void)err;
    asked_reason(restore, reason);
    tide_restore_refuse(restore, 0, piece->removal.gmail_id, 0, reason);
    restore->state.planned[TIDE_DEED_REFUSE].messages++;
    restore->state.planned[TIDE_DEED_REFUSE].bytes += piece->removal.bytes;
    return TIDE_OK;
}

static tide_status refuse_asked(tide_restore *restore, struct tide_piece *piece, tide_error *err)
{
    char reason[256];
    (void)err;
    asked_reason(restore, reason);
    tide_restore_refuse(restore, piece->removal.id, piece->removal.gmail_id, piece->removal.bytes,
                        reason);
    return TIDE_OK;
}

/* ---- the matches of a query ---- */

struct matches {
    tide_restore *restore;
    bool write;               /* else only count */
    uint64_t count;           /* matches that count, and entries that existed before */
    size_t found_count;       /* in the page */
    struct tide_piece *found; /* PAGE of them */
};

static bool match_take(const struct tide_found *found, void *arg)
{
    struct matches *matches = arg;
    struct tide_piece *piece = &matches->found[matches->found_count++];
    *piece = (struct tide_piece){.mode = TIDE_REMOVE_NOTHING, .stored = found->stored};
    return matches->found_count < PAGE;
}

/* The labels a message has in the archive; those that do not fit are left out. */
static tide_status match_labels(tide_restore *restore, struct tide_piece *piece, tide_error *err)
{
    tide_auto_buf labels = tide_buf_in(restore->mem, 1 << 20);
    const tide_status rc = tide_archive_labels_of(restore->archive, &piece->stored, &labels, err);
    size_t used = labels.bytes < sizeof piece->removal.labels ? labels.bytes
                                                              : sizeof piece->removal.labels - 1;
    while (rc == TIDE_OK && used > 0 && labels.data[used - 1] != '\n')
        used--; /* of a label that was cut off */
    for (size_t i = 0; rc == TIDE_OK && i < used; i++)
        piece->removal.labels[i] = labels.data[i] == '\n' ? ' ' : labels.data[i];
    if (used > 0)
        piece->removal.labels[used - 1] = '\0';
    return rc;
}

static void match_entry(const tide_restore *restore, struct tide_piece *piece, uint64_t now_ms)
{
    struct tide_removal *removal = &piece->removal;
    removal->manifest = restore->state.manifest;
    removal->bytes = piece->stored.bytes;
    removal->internal_ms = piece->stored.internal_ms;
    removal->state = TIDE_REMOVAL_REMOVED;
    removal->changed_ms = now_ms;
    memcpy(removal->hash, piece->stored.hash, sizeof removal->hash);
    (void)snprintf(removal->gmail_id, sizeof removal->gmail_id, "%s", piece->stored.gmail_id);
    (void)snprintf(removal->thread_id, sizeof removal->thread_id, "%s", piece->stored.thread_id);
}

/* Decides which of the page count: messages that are gone, and those that the archiver removed;
 * entries already in the manifest are kept (MAN3).  The others become `over`. */
static tide_status matches_sort(tide_rows db, void *arg, tide_error *err)
{
    struct matches *matches = arg;
    tide_restore *restore = matches->restore;
    for (size_t i = 0; i < matches->found_count; i++) {
        struct tide_piece *piece = &matches->found[i];
        struct tide_removal other;
        struct tide_removal_facts facts = {0};
        const tide_text id = tide_text_of(piece->stored.gmail_id);
        tide_status rc =
            tide_removal_origin(db, restore->account, id, &other, &piece->origin_mode, NULL);
        if (rc == TIDE_OK) {
            piece->origin = other.id;
            (void)snprintf(piece->removal.labels, sizeof piece->removal.labels, "%s", other.labels);
        }
        piece->over = !piece->stored.gone && rc != TIDE_OK;
        if (rc == TIDE_OK || rc == TIDE_NOT_FOUND)
            rc = tide_removal_facts(db, restore->account, id, &facts, NULL);
        piece->over = piece->over || facts.moved; /* on the server, and stored twice */
        if (!piece->over && restore->state.manifest != 0) {
            rc = tide_removal_of(db, restore->state.manifest, id, &other, NULL);
            piece->over = rc == TIDE_OK;
        }
        if (rc != TIDE_OK && rc != TIDE_NOT_FOUND)
            return tide_error_set(err, rc, "cannot read the manifests");
        if (restore->limit > 0 && matches->count >= restore->limit)
            piece->over = true;
        matches->count += !piece->over;
    }
    return TIDE_OK;
}

static tide_status matches_write(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct matches *matches = arg;
    for (size_t i = 0; i < matches->found_count; i++) {
        if (!matches->found[i].over)
            TIDE_TRY(tide_removal_add(tide_transaction_rows(transaction),
                                      &matches->found[i].removal, err));
    }
    return TIDE_OK;
}

static tide_status matches_page(struct matches *matches, tide_error *err)
{
    tide_restore *restore = matches->restore;
    const uint64_t now_ms = tide_world_now_unix_ms(restore->world);
    tide_status rc = tide_restore_read(restore, matches_sort, matches, err);
    for (size_t i = 0; rc == TIDE_OK && i < matches->found_count; i++) {
        struct tide_piece *piece = &matches->found[i];
        if (piece->over)
            continue;
        if (piece->origin == 0)
            rc = match_labels(restore, piece, err);
        match_entry(restore, piece, now_ms);
        if (rc == TIDE_OK && !matches->write)
            rc = plan_piece(restore, piece, err);
    }
    if (rc == TIDE_OK && matches->write)
        rc = tide_transact(restore->mail->engine, matches_write, matches, err);
    return rc;
}

/* All matches of the query, spam and trash included: lost messages were mostly in the trash
 * before. */
static tide_status query_of(tide_restore *restore, tide_query **query_out, tide_error *err)
{
    char text[sizeof restore->query + 32];
    const int64_t now_ms = (int64_t)tide_world_now_unix_ms(restore->world);
    (void)snprintf(text, sizeof text, "%s", restore->query);
    TIDE_TRY(tide_query_parse(tide_text_of(text), now_ms, TIDE_QUERY_LOCAL, restore->mem, query_out,
                              err));
    tide_query_free(*query_out);
    (void)snprintf(text, sizeof text, "(%s) in:anywhere", restore->query);
    return tide_query_parse(tide_text_of(text), now_ms, TIDE_QUERY_LOCAL, restore->mem, query_out,
                            err);
}

static tide_status each_match(struct matches *matches, tide_error *err)
{
    tide_restore *restore = matches->restore;
    tide_query *query = NULL;
    bool more = true;
    char after[4096] = "";
    TIDE_TRY(query_of(restore, &query, err));
    tide_auto_buf next = tide_buf_in(restore->mem, sizeof after - 1);
    matches->found = tide_mem_array(restore->mem, PAGE, sizeof *matches->found);
    tide_status rc = TIDE_OK;
    if (matches->found == NULL)
        rc = tide_error_set(err, TIDE_NO_MEMORY, "no memory to search");
    while (rc == TIDE_OK && more && (restore->limit == 0 || matches->count < restore->limit)) {
        const struct tide_search search = {
            .query = query, .limit = PAGE, .oldest_first = true, .after = tide_text_of(after)};
        matches->found_count = 0;
        tide_buf_clear(&next);
        rc = tide_search_run(restore->archive, &search, match_take, matches, &next, &more, err);
        (void)snprintf(after, sizeof after, "%s", tide_buf_cstr(&next));
        if (rc == TIDE_OK)
            rc = matches_page(matches, err);
    }
    tide_mem_free(restore->mem, matches->found, PAGE * sizeof *matches->found);
    tide_query_free(query);
    return rc;
}

/* ---- both ---- */

static tide_status unfinished(tide_rows db, void *arg, tide_error *err)
{
    tide_restore *restore = arg;
    struct tide_manifest manifest;
    const tide_status rc =
        tide_manifest_unfinished(db, restore->account, restore->query, &manifest, err);
    if (rc == TIDE_OK)
        restore->state.manifest = manifest.id;
    return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
}

static uint64_t planned_count(const tide_restore *restore)
{
    uint64_t count = 0;
    for (int i = 0; i < TIDE_DEEDS; i++)
        count += restore->state.planned[i].messages;
    return count;
}

tide_status tide_restore_plan(tide_restore *restore, tide_error *err)
{
    if (restore->query[0] != '\0')
        TIDE_TRY(tide_restore_read(restore, unfinished, restore, err));
    if (restore->state.manifest != 0)
        TIDE_TRY(tide_restore_each(restore, plan_piece, err));
    if (restore->query[0] == '\0')
        TIDE_TRY(each_in(restore, TIDE_REMOVAL_ASKED, plan_asked, err));
    if (restore->query[0] == '\0')
        return TIDE_OK;
    struct matches matches = {.restore = restore, .count = planned_count(restore)};
    return each_match(&matches, err);
}

static tide_status add_manifest(tide_transaction *transaction, void *arg, tide_error *err)
{
    tide_restore *restore = arg;
    struct tide_manifest manifest = {.account = restore->account,
                                     .mode = TIDE_REMOVE_NOTHING,
                                     .made_ms = tide_world_now_unix_ms(restore->world)};
    (void)snprintf(manifest.query, sizeof manifest.query, "%s", restore->query);
    TIDE_TRY(tide_manifest_add(tide_transaction_rows(transaction), &manifest, err));
    restore->state.manifest = manifest.id;
    return TIDE_OK;
}

static tide_status collect_piece(tide_restore *restore, struct tide_piece *piece, tide_error *err)
{
    if (!TIDE_GROW_IN(restore->mem, restore->entries, restore->entries_capacity,
                      restore->entries_count + 1, TIDE_RESTORE_ENTRIES_MAX))
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for %zu messages",
                              restore->entries_count + 1);
    restore->entries[restore->entries_count++] = piece->removal.id;
    return TIDE_OK;
}

tide_status tide_restore_collect(tide_restore *restore, tide_error *err)
{
    tide_status rc = TIDE_OK;
    if (restore->query[0] != '\0') {
        rc = tide_restore_read(restore, unfinished, restore, err);
        const bool resumed = restore->state.manifest != 0;
        if (rc == TIDE_OK && !resumed)
            rc = tide_transact(restore->mail->engine, add_manifest, restore, err);
        if (rc == TIDE_OK && resumed)
            rc = tide_restore_each(restore, collect_piece, err);
        struct matches matches = {
            .restore = restore, .write = true, .count = restore->entries_count};
        if (rc == TIDE_OK)
            rc = each_match(&matches, err);
    }
    restore->entries_count = 0;
    if (rc == TIDE_OK && restore->query[0] == '\0')
        rc = each_in(restore, TIDE_REMOVAL_ASKED, refuse_asked, err);
    return rc == TIDE_OK ? tide_restore_each(restore, collect_piece, err) : rc;
}
