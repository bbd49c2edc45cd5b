#include "drive/commands/look.h"

#include "base/clocktext.h"
#include "drive/mounts.h"
#include "drive/sync/sync.h"
#include "ledger/rows.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- the stream ---- */

struct stream_ask {
    uint64_t stream; /* 0: there is none yet */
    uint32_t account;
    char name[TIDE_DRIVE_STREAM_BYTES];
    uint64_t tidemark_ms, seen_ms;
};

static bool take_cycle(const struct tide_cycle_row *row, void *arg)
{
    struct stream_ask *ask = arg;
    uint64_t end_ms = 0;
    if (tide_text_to_u64(row->end, &end_ms) && end_ms > ask->seen_ms)
        ask->seen_ms = end_ms;
    return true;
}

static bool take_stream(const struct tide_stream_row *row, void *arg)
{
    struct stream_ask *ask = arg;
    if (row->account != ask->account || !tide_text_equal(row->name, tide_text_of(ask->name)))
        return true;
    ask->stream = row->id;
    if (row->ordinal > 0)
        (void)tide_text_to_u64(row->cursor, &ask->tidemark_ms);
    return false;
}

/* ---- jobs ---- */

/* Payloads have the number of the drive, and those of actions the verb (sync/order.c).  What failed
 * before a sync that saw everything through is over. */
static tide_status look_jobs(tide_rows db, const struct tide_drive_row *row,
                             struct drive_look *look, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    tide_status rc = tide_rows_ask(
        db, "the jobs of a drive", &stmt, err,
        "SELECT j.state, k.name = 'drive.act', coalesce(json_extract(j.payload, '$.verb'), -1),"
        " count(*), coalesce(sum(j.size), 0), coalesce(sum(c.bytes_done), 0),"
        " coalesce(json_extract(j.payload, '$.look'), 0)"
        " FROM job j JOIN kind k ON k.id = j.kind LEFT JOIN claim c ON c.job = j.id"
        " WHERE j.account = ?1 AND j.state IN (0, 1, 3) AND k.name GLOB 'drive.*'"
        " AND k.name NOT IN ('drive.displaced', 'drive.concern')"
        " AND CASE WHEN k.name GLOB 'drive.*'" /* only they are JSON */
        " THEN json_extract(j.payload, '$.drive') END = ?2"
        " AND (j.state <> 3 OR j.created > ?3) GROUP BY 1, 2, 3, 7",
        row->account, row->number, look->tidemark_ms);
    while (tide_rows_next(&stmt, &rc, err)) {
        const bool act = tide_rows_get_u64(&stmt, 1) != 0;
        const tide_drive_verb verb = (tide_drive_verb)tide_rows_get_i64(&stmt, 2);
        const struct drive_transfers jobs = {.files = tide_rows_get_u64(&stmt, 3),
                                             .bytes = tide_rows_get_u64(&stmt, 4),
                                             .bytes_done = tide_rows_get_u64(&stmt, 5)};
        const tide_row_state state = (tide_row_state)tide_rows_get_i64(&stmt, 0);
        if (state == TIDE_ROW_FAILED) {
            look->failed += jobs.files;
        } else if (!act) {
            look->syncs += jobs.files;
            look->looks += tide_rows_get_u64(&stmt, 6) != 0 ? jobs.files : 0;
        } else if (state == TIDE_ROW_PENDING) {
            look->waiting += jobs.files;
            look->waiting_bytes += jobs.bytes;
        } else if (verb == TIDE_DRIVE_DOWN || verb == TIDE_DRIVE_UP || verb == TIDE_DRIVE_NEW) {
            struct drive_transfers *side = verb == TIDE_DRIVE_DOWN ? &look->down : &look->up;
            side->files += jobs.files;
            side->bytes += jobs.bytes;
            side->bytes_done += jobs.bytes_done;
        } else {
            look->others += jobs.files;
        }
    }
    return rc;
}

tide_status drive_look(tide_ledger *ledger, const struct tide_drive_row *row,
                       struct drive_look *look_out, tide_error *err)
{
    struct stream_ask ask = {.account = row->account};
    struct drive_look look = {.tidemark_ms = 0};
    tide_drive_stream_name(row->number, ask.name);
    TIDE_TRY(tide_ledger_streams(ledger, take_stream, &ask, err));
    ask.seen_ms = ask.tidemark_ms;
    if (ask.stream != 0)
        TIDE_TRY(tide_ledger_cycles(ledger, ask.stream, take_cycle, &ask, err));
    look.tidemark_ms = ask.tidemark_ms;
    look.seen_ms = ask.seen_ms;
    TIDE_TRY(look_jobs(tide_ledger_rows(ledger), row, &look, err));
    TIDE_TRY(tide_drive_counts(tide_drives_rows(tide_ledger_rows(ledger), row->number),
                               &look.counts, err));
    struct tide_drive_mount_counts shared;
    TIDE_TRY(tide_drive_mount_counts(tide_ledger_rows(ledger), row->number, &shared, err));
    look.counts.skipped_online -= shared.online;
    look.counts.skipped_here -= shared.here;
    look.shared_trouble = shared.trouble;
    if (look.counts.owed > 0 && look.counts.applied_ms < look.tidemark_ms)
        look.tidemark_ms = look.counts.applied_ms;
    *look_out = look;
    return TIDE_OK;
}

tide_status drive_look_last(tide_ledger *ledger, const struct tide_drive_row *row, size_t count,
                            void (*visit)(const struct drive_change_made *change, void *arg),
                            void *arg, tide_error *err)
{
    tide_auto_rows stmt = {.what = NULL};
    /* Ids rise with time; the newest thousands are enough to look through (TIDE_DRIVE_UNDONE_MAX). */
    tide_status rc = tide_rows_ask(
        tide_drives_rows(tide_ledger_rows(ledger), row->number), "the jobs of a drive", &stmt, err,
        "SELECT json_extract(payload, '$.verb'), json_extract(payload, '$.name'),"
        " coalesce(size, 0), coalesce(finished, 0) FROM (SELECT j.* FROM job j"
        " JOIN kind k ON k.id = j.kind WHERE k.name = 'drive.act' ORDER BY j.id DESC LIMIT 5000)"
        " WHERE state = 2 AND account = ?1 AND json_extract(payload, '$.drive') = ?2"
        " AND id NOT IN (SELECT job FROM drive_@_undone) ORDER BY finished DESC, id DESC LIMIT ?3",
        row->account, row->number, (uint64_t)count);
    while (tide_rows_next(&stmt, &rc, err)) {
        const struct drive_change_made change = {.verb =
                                                     (tide_drive_verb)tide_rows_get_i64(&stmt, 0),
                                                 .name = tide_rows_get_text(&stmt, 1),
                                                 .bytes = tide_rows_get_u64(&stmt, 2),
                                                 .at_ms = tide_rows_get_u64(&stmt, 3)};
        visit(&change, arg);
    }
    return rc;
}

bool drive_look_needs_user(const struct drive_look *look)
{
    return look->failed + look->counts.owed + look->counts.conflicts + look->counts.deletions +
               look->counts.unsure + look->shared_trouble >
           0;
}

/* ---- showing ---- */

static size_t add_side(char *text, size_t used, size_t bytes, const char *verb,
                       const struct drive_transfers *side)
{
    char size[TIDE_SIZE_TEXT_BYTES];
    if (side->files == 0 || used >= bytes)
        return used;
    tide_size_human(side->bytes, size);
    const int more =
        snprintf(text + used, bytes - used, "%s%s %" PRIu64 " file%s (%s)", used > 0 ? ", " : "",
                 verb, side->files, side->files == 1 ? "" : "s", size);
    return more < 0 ? used : used + (size_t)more;
}

void drive_look_words(const struct drive_look *look, char *text, size_t text_bytes)
{
    size_t used = add_side(text, 0, text_bytes, "downloading", &look->down);
    used = add_side(text, used, text_bytes, "uploading", &look->up);
    if (look->others > 0 && used < text_bytes)
        used += (size_t)snprintf(text + used, text_bytes - used, "%s%" PRIu64 " other change%s",
                                 used > 0 ? ", " : "", look->others, look->others == 1 ? "" : "s");
    if (look->waiting > 0 && used < text_bytes)
        used += (size_t)snprintf(text + used, text_bytes - used, "%s%" PRIu64 " waiting",
                                 used > 0 ? ", " : "", look->waiting);
    if (used == 0)
        (void)snprintf(text, text_bytes, "%s", look->syncs > 0 ? "looking for changes" : "nothing");
}

static void side_json(tide_json *json, const char *key, const struct drive_transfers *side)
{
    tide_json one;
    tide_json_object(&one);
    tide_json_set_u64(&one, "files", side->files);
    tide_json_set_u64(&one, "bytes", side->bytes);
    tide_json_set_u64(&one, "bytes_done", side->bytes_done);
    tide_json_set(json, key, &one);
}

void drive_look_json(const struct drive_look *look, tide_json *json)
{
    if (look->tidemark_ms == 0)
        tide_json_set_null(json, "tidemark_unix_ms");
    else
        tide_json_set_u64(json, "tidemark_unix_ms", look->tidemark_ms);
    side_json(json, "downloading", &look->down);
    side_json(json, "uploading", &look->up);
    tide_json_set_u64(json, "other_changes", look->others);
    tide_json_set_u64(json, "waiting", look->waiting);
    tide_json_set_u64(json, "waiting_bytes", look->waiting_bytes);
    tide_json_set_bool(json, "looking", look->syncs > 0);
    tide_json_set_u64(json, "files", look->counts.files);
    tide_json_set_u64(json, "folders", look->counts.folders);
    tide_json_set_u64(json, "bytes", look->counts.bytes);
    tide_json_set_u64(json, "owed_count", look->counts.owed);
    tide_json_set_u64(json, "conflicts", look->counts.conflicts);
    tide_json_set_u64(json, "notices", look->counts.notices);
    tide_json_set_u64(json, "deletions_waiting", look->counts.deletions);
    tide_json_set_u64(json, "deletions_held", look->counts.hidden);
    tide_json_set_u64(json, "skipped_here", look->counts.skipped_here);
    tide_json_set_u64(json, "skipped_online", look->counts.skipped_online);
    tide_json_set_u64(json, "unreadable", look->counts.unsure);
    tide_json_set_u64(json, "jobs_failed", look->failed);
    tide_json_set_u64(json, "shared_not_synced", look->shared_trouble);
}
