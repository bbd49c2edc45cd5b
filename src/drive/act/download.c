#include "base/check.h"
#include "base/clocktext.h"
#include "base/hash.h"
#include "drive/act/inside.h"
#include "drive/local/hash.h"
#include "net/judge_graph.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>

enum { WRITE_BYTES = 1 << 20 }; /* bytes that are collected before they are written */

/* A download on its way into its partial file. */
struct fetching {
    const struct tide_drive_act *act;
    const struct tide_drive_download *plan;
    struct tide_drive_downloaded *out;
    int dir;
    char partial[TIDE_DRIVE_TEMPORARY_BYTES];
    struct tide_drive_hasher hasher; /* of all bytes from the start */
    uint64_t have;                   /* in the partial file */
    tide_buf pending;                /* come after these */
    tide_error failure;              /* of the disk, while bytes came */
    bool misfit;                     /* the answer had more or fewer bytes than the item says */
};

void tide_drive_downloaded_done(struct tide_drive_downloaded *downloaded)
{
    tide_onedrive_answer_done(&downloaded->live);
}

/* ---- the partial file ---- */

void tide_drive_partial_name(tide_text id, tide_text ctag, const struct tide_drive_content *content,
                             char out[TIDE_DRIVE_TEMPORARY_BYTES])
{
    const tide_text qxh = {(const char *)content->qxh, content->has_qxh ? sizeof content->qxh : 0};
    char size[24];
    (void)snprintf(size, sizeof size, " %" PRIu64 " ", content->bytes);
    uint64_t hash = TIDE_HASH_START;
    for (size_t i = 0; i < id.bytes; i++) { /* rows have ids in lower case (D13) */
        const char letter = (char)tolower((unsigned char)id.data[i]);
        hash = tide_hash(hash, (tide_text){&letter, 1});
    }
    hash = tide_hash(hash, tide_text_of(size));
    hash = tide_hash(hash, qxh);
    hash = tide_hash(hash, ctag);
    (void)snprintf(out, TIDE_DRIVE_TEMPORARY_BYTES, ".tidemark-%08" PRIx32 ".partial",
                   (uint32_t)(hash ^ hash >> 32));
}

static void name_of_live(const struct tide_onedrive_item *item,
                         char out[TIDE_DRIVE_TEMPORARY_BYTES])
{
    struct tide_drive_content content = {.bytes = item->size, .has_qxh = item->has_hash};
    memcpy(content.qxh, item->hash, sizeof content.qxh);
    tide_drive_partial_name(item->id, item->ctag, &content, out);
}

/* TIDE_OK also if there is none. */
static tide_status partial_drop(int dir, const char *partial, tide_error *err)
{
    struct tide_entry entry;
    tide_status rc = tide_folder_look(dir, tide_text_of(partial), &entry, err);
    if (rc == TIDE_OK)
        rc = tide_folder_remove(dir, tide_text_of(partial), &entry, err);
    return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
}

static tide_status start_over(struct fetching *f, tide_error *err)
{
    f->have = 0;
    tide_buf_clear(&f->pending);
    TIDE_TRY(tide_drive_hasher_begin(&f->hasher, err));
    return partial_drop(f->dir, f->partial, err);
}

static void take_partial(const void *bytes, size_t count, void *arg)
{
    tide_drive_hasher_add(arg, bytes, count);
}

/* Finds what an earlier run left, and hashes it. */
static tide_status partial_open(struct fetching *f, uint64_t bytes, tide_error *err)
{
    struct tide_entry entry;
    TIDE_TRY(tide_drive_hasher_begin(&f->hasher, err));
    f->have = 0;
    tide_buf_clear(&f->pending);
    const tide_status rc =
        tide_folder_read(f->dir, tide_text_of(f->partial), take_partial, &f->hasher, &entry, err);
    /* A long one is created here: a disk that cannot be written to is found out early.  A short one is
     * written at once; an empty one has no bytes to write. */
    if (rc == TIDE_NOT_FOUND && bytes > 0 && bytes < WRITE_BYTES)
        return TIDE_OK;
    if (rc == TIDE_NOT_FOUND)
        return tide_folder_write(f->dir, tide_text_of(f->partial), 0, TIDE_TEXT(""), err);
    if (rc == TIDE_STALE || (rc == TIDE_OK && f->hasher.quick.bytes > bytes))
        return start_over(f, err); /* not a file of ours */
    if (rc == TIDE_OK)
        f->have = f->hasher.quick.bytes;
    return rc;
}

/* ---- bytes ---- */

static tide_status flush(struct fetching *f, tide_error *err)
{
    /* Without the bytes before, it is not the file that was hashed: planned again. */
    TIDE_TRY(tide_drive_gate_disk(tide_folder_write(f->dir, tide_text_of(f->partial), f->have,
                                                    tide_buf_text(&f->pending), err),
                                  err));
    f->have += f->pending.bytes;
    tide_buf_clear(&f->pending);
    if (f->act->job != NULL)
        tide_job_beat(f->act->job, f->have);
    return TIDE_OK;
}

static tide_status on_begin(void *arg, uint64_t at)
{
    struct fetching *f = arg;
    if (at == f->have)
        return TIDE_OK;
    TIDE_ASSERT(at == 0); /* of onedrive.h: `from` or 0 */
    return start_over(f, &f->failure);
}

static tide_status on_bytes(void *arg, const char *bytes, size_t count)
{
    struct fetching *f = arg;
    tide_drive_hasher_add(&f->hasher, bytes, count);
    f->out->fetched_bytes += count;
    if (tide_buf_add(&f->pending, bytes, count) != TIDE_OK)
        return tide_error_set(&f->failure, TIDE_NO_MEMORY, "no memory for a download");
    return f->pending.bytes < WRITE_BYTES ? TIDE_OK : flush(f, &f->failure);
}

/* One request for what is missing. */
static tide_status fetch_once(struct fetching *f, tide_error *err)
{
    const struct tide_onedrive_item *item = &f->out->live.item;
    const struct tide_onedrive_download download = {
        .url = item->download_url.data, /* a string of jansson's: terminated */
        .from = f->have,
        .size = item->size,
        .any_size = f->plan->accept,
        .begin = on_begin,
        .sink = on_bytes,
        .arg = f,
    };
    struct tide_onedrive_got got;
    f->misfit = false;
    f->failure = (tide_error){TIDE_OK, 0, ""};
    if (f->have == item->size)
        return TIDE_OK;
    tide_status rc = tide_onedrive_download(f->act->onedrive, f->act->job, &download, &got, err);
    if (f->failure.status != TIDE_OK) {
        if (err != NULL)
            *err = f->failure;
        return f->failure.status;
    }
    f->misfit = got.misfit;
    /* What came before the connection broke is kept for the next run. */
    const tide_status flushed = flush(f, rc == TIDE_OK ? err : NULL);
    return rc == TIDE_OK ? flushed : rc;
}

/* ---- the item ---- */

/* Reads the item: its address works for minutes only, and it must still be what was planned. */
static tide_status read_item(struct fetching *f, tide_error *err)
{
    const struct tide_drive_act *act = f->act;
    tide_onedrive_answer_done(&f->out->live);
    const tide_status rc =
        tide_onedrive_get(act->onedrive, act->job, act->drive, f->plan->id, &f->out->live, err);
    if (rc == TIDE_GONE) {
        (void)partial_drop(f->dir, f->partial, NULL);
        return tide_error_set(err, TIDE_SUPERSEDED, "the file is no longer online");
    }
    if (rc != TIDE_OK)
        return rc;
    const struct tide_onedrive_item *item = &f->out->live.item;
    if (item->malware || item->pending)
        return tide_error_set(err, TIDE_SUPERSEDED, "OneDrive %s",
                              item->malware ? "found malware in the file"
                                            : "has not finished processing the file");
    if (!tide_drive_gate_content(item, &f->plan->content, f->plan->ctag)) {
        (void)partial_drop(f->dir, f->partial, NULL); /* of content that is no longer online */
        return tide_error_set(err, TIDE_SUPERSEDED, "the file changed online");
    }
    if (item->download_url.bytes == 0)
        return tide_error_set(err, TIDE_SERVER, "the file has no download address");
    return TIDE_OK;
}

/* S6. */
static tide_status check_space(const struct fetching *f, tide_error *err)
{
    uint64_t free_bytes = 0;
    const uint64_t missing = f->out->live.item.size - f->have;
    TIDE_TRY(tide_folder_free(f->dir, &free_bytes, err));
    if (free_bytes >= missing && free_bytes - missing >= f->act->free_min_bytes)
        return TIDE_OK;
    char left[TIDE_SIZE_TEXT_BYTES], wanted[TIDE_SIZE_TEXT_BYTES], kept[TIDE_SIZE_TEXT_BYTES];
    tide_size_human(free_bytes, left);
    tide_size_human(missing, wanted);
    tide_size_human(f->act->free_min_bytes, kept);
    return tide_error_set(
        err, TIDE_DISK_FULL,
        "%.*s needs %s; the disk has %s free, of which %s are kept: free some space",
        (int)f->plan->name.bytes, f->plan->name.data, wanted, left, kept);
}

/* All bytes that are missing.  An address that no longer works is replaced once; a range that does
 * not fit means from the start (D41). */
static tide_status fetch(struct fetching *f, tide_error *err)
{
    tide_status rc = fetch_once(f, err);
    if (rc == TIDE_GONE) {
        TIDE_TRY(read_item(f, err));
        rc = fetch_once(f, err);
    }
    if (rc == TIDE_GONE) /* of the address, not of the item */
        return tide_error_set(err, TIDE_SERVER, "two download addresses in a row did not work");
    if (rc != TIDE_OK && f->have > 0 && tide_graph_reason_of(err) == TIDE_GRAPH_RANGE) {
        TIDE_TRY(start_over(f, err));
        rc = fetch_once(f, err);
    }
    return rc;
}

/* Whether the downloaded content is what the item says it is. */
static bool fits(const struct tide_onedrive_item *item, const struct tide_drive_content *content)
{
    return content->bytes == item->size &&
           (!item->has_hash || item->size == 0 ||
            memcmp(content->qxh, item->hash, sizeof content->qxh) == 0);
}

/* Downloads until the content fits; TIDE_PERMANENT: it never does (D41). */
static tide_status fetch_fitting(struct fetching *f, tide_error *err)
{
    struct tide_drive_content *content = &f->out->content;
    for (unsigned tries = 1; tries <= TIDE_DRIVE_MISFITS_MAX; tries++) {
        TIDE_TRY(read_item(f, err));
        const struct tide_onedrive_item *item = &f->out->live.item;
        name_of_live(item, f->partial);
        TIDE_TRY(partial_open(f, item->size, err));
        TIDE_TRY(check_space(f, err));
        const tide_status rc = fetch(f, err);
        if (rc != TIDE_OK && !f->misfit)
            return rc;
        if (rc == TIDE_OK) {
            TIDE_TRY(tide_drive_hasher_end(&f->hasher, content, err));
            if (f->plan->accept || fits(&f->out->live.item, content))
                return TIDE_OK;
        }
        TIDE_TRY(partial_drop(f->dir, f->partial, err));
    }
    return tide_error_set(err, TIDE_PERMANENT,
                          "%d downloads had another size or hash than OneDrive says",
                          (int)TIDE_DRIVE_MISFITS_MAX);
}

/* ---- the end ---- */

/* D19: there is no hash, and both sides have a file. */
static tide_status compare(struct fetching *f, tide_error *err)
{
    struct tide_drive_content here;
    struct tide_entry entry;
    TIDE_TRY(tide_drive_gate_entry(f->dir, f->plan->name, f->plan->expected, err));
    TIDE_TRY(
        tide_drive_gate_disk(tide_drive_hash_file(f->dir, f->plan->name, &here, &entry, err), err));
    if (here.bytes != f->out->content.bytes ||
        memcmp(here.strong, f->out->content.strong, sizeof here.strong) != 0)
        return tide_error_set(err, TIDE_SUPERSEDED, "both sides have the file, and they differ");
    TIDE_TRY(partial_drop(f->dir, f->partial, err));
    f->out->entry = entry;
    f->out->same = true;
    return TIDE_OK;
}

/* An earlier run placed it, and died before that was recorded: the name has the planned content. */
static bool find_done(struct fetching *f)
{
    const struct tide_drive_content *planned = &f->plan->content;
    struct tide_drive_content content;
    struct tide_entry entry;
    tide_drive_place_again(f->dir, f->partial, f->plan->expected, f->out);
    if (tide_drive_hash_file(f->dir, f->plan->name, &content, &entry, NULL) != TIDE_OK ||
        content.bytes != planned->bytes ||
        (content.bytes > 0 &&
         (!planned->has_qxh || memcmp(content.qxh, planned->qxh, sizeof content.qxh) != 0)))
        return false;
    f->out->content = content;
    f->out->entry = entry;
    f->out->same = true;
    return true;
}

static tide_status run(struct fetching *f, tide_error *err)
{
    const struct tide_drive_download *plan = f->plan;
    tide_drive_partial_name(plan->id, plan->ctag, &plan->content, f->partial);
    /* Before the transfer, so that it is not made in vain; and again when it is placed. */
    const tide_status gate = tide_drive_gate_entry(f->dir, plan->name, plan->expected, err);
    if (gate == TIDE_SUPERSEDED && !plan->compare && find_done(f))
        return TIDE_OK;
    TIDE_TRY(gate);
    TIDE_TRY(fetch_fitting(f, err));
    if (f->out->fetched_bytes >= TIDE_DRIVE_LONG_BYTES)
        TIDE_TRY(read_item(f, err));
    if (plan->compare && plan->expected != NULL)
        return compare(f, err);
    const uint64_t mtime_ms = tide_drive_time(f->act, f->out->live.item.modified_unix_ms);
    return tide_drive_place(f->dir, f->partial, plan, mtime_ms / 1000, f->out, err);
}

tide_status tide_drive_download(const struct tide_drive_act *act,
                                const struct tide_drive_download *plan,
                                struct tide_drive_downloaded *out, tide_error *err)
{
    TIDE_ASSERT(plan->id.bytes > 0);
    struct fetching f = {.act = act, .plan = plan, .out = out, .dir = -1};
    tide_error own; /* the reason of a refusal is read from it */
    *out = (struct tide_drive_downloaded){.same = false};
    err = err != NULL ? err : &own;
    TIDE_TRY(tide_drive_gate_enter(act, plan->folder, &f.dir, err));
    tide_buf_init(&f.pending, act->mem, 2 * WRITE_BYTES);
    const tide_status rc = run(&f, err);
    tide_drive_hasher_done(&f.hasher);
    tide_buf_done(&f.pending);
    tide_folder_close(f.dir);
    return rc;
}
