/* plan.c - `tidemark drive plan`: what a sync would do, without doing it (D9).
 *
 * Both sides are looked at first, which writes to neither; then the same pure plan is made from the
 * same rows as in a sync, on a connection that only reads: slice by slice, so that a first sync of a
 * million files needs no memory for all of them. */
#include "base/clocktext.h"
#include "drive/commands/home.h"
#include "drive/commands/sync.h"
#include "drive/commands/words.h"
#include "drive/store/look.h"
#include "drive/store/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NEWS_MAX = 5000, PATH_BYTES_MAX = 64 << 10, LISTED_MAX = 200 };

struct planned {
    struct cli *cli;
    const struct tide_drive_row *row;
    tide_rows db;
    struct tide_drive_loaded loaded;
    struct tide_drive_plan plan;
    tide_buf path, to;
    tide_json list;
    uint64_t counts[DRIVE_VERBS];
    uint64_t down_bytes, up_bytes, same_files, listed, left_out;
    bool guarded;
};

/* ---- one action ---- */

/* Where it is, and where it will be: "" if that is the same. */
static void places(struct planned *planned, const struct tide_drive_action *action)
{
    tide_status rc = TIDE_NOT_FOUND;
    tide_buf_clear(&planned->to);
    if (action->row != 0)
        rc = tide_drive_path_here(planned->db, action->row, &planned->path, NULL);
    if (rc != TIDE_OK && action->item != 0)
        rc = tide_drive_path_of(planned->db, action->item, &planned->path, NULL);
    if (rc != TIDE_OK)
        tide_buf_clear(&planned->path);
    rc = TIDE_NOT_FOUND;
    if (action->parent_row != 0)
        rc = tide_drive_path_here(planned->db, action->parent_row, &planned->to, NULL);
    if (rc != TIDE_OK && action->parent_item != 0)
        rc = tide_drive_path_of(planned->db, action->parent_item, &planned->to, NULL);
    if (rc == TIDE_OK && planned->to.bytes > 0)
        (void)tide_buf_add(&planned->to, "/", 1);
    (void)tide_buf_add(&planned->to, action->name.data, action->name.bytes);
    if (planned->path.bytes == 0) {
        (void)tide_buf_add(&planned->path, planned->to.data, planned->to.bytes);
        tide_buf_clear(&planned->to);
    } else if (tide_text_equal(tide_buf_text(&planned->path), tide_buf_text(&planned->to)) ||
               action->verb == TIDE_DRIVE_DEL_LOCAL || action->verb == TIDE_DRIVE_DEL_REMOTE ||
               action->verb == TIDE_DRIVE_DROP) {
        tide_buf_clear(&planned->to);
    }
}

static void show_action(struct planned *planned, const struct tide_drive_action *action)
{
    struct cli *cli = planned->cli;
    char size[TIDE_SIZE_TEXT_BYTES] = "";
    tide_json one;
    const bool listed = planned->listed++ < LISTED_MAX || cli->verbose;
    planned->left_out += listed ? 0 : 1;
    if (!listed && !cli->want_json)
        return;
    places(planned, action);
    tide_json_object(&one);
    tide_json_set_cstr(&one, "action", drive_verb_name(action->verb));
    tide_json_set_text(&one, "path", tide_buf_text(&planned->path));
    if (planned->to.bytes > 0)
        tide_json_set_text(&one, "to", tide_buf_text(&planned->to));
    tide_json_set_cstr(&one, "kind", action->kind == TIDE_DRIVE_FOLDER ? "folder" : "file");
    tide_json_set_u64(&one, "bytes", action->bytes);
    tide_json_set_cstr(&one, "state", drive_state_name(action->state));
    tide_json_set_bool(&one, "conflict", action->notice != TIDE_DRIVE_QUIET);
    tide_json_append(&planned->list, &one);
    if (!listed)
        return;
    if (action->bytes > 0)
        tide_size_human(action->bytes, size);
    cli_cell(cli, "%s", drive_verb_words(action->verb));
    cli_cell_text(cli, tide_buf_text(&planned->path));
    cli_cell_text(cli, tide_buf_text(&planned->to));
    cli_cell(cli, "%s", size);
    cli_cell(cli, "%s%s%s", drive_state_words(action->state),
             action->notice != TIDE_DRIVE_QUIET && action->state != TIDE_DRIVE_READY ? "; " : "",
             action->notice == TIDE_DRIVE_QUIET ? "" : "both sides changed it");
}

/* ---- one plan ---- */

static int by_item(const void *a, const void *b)
{
    const uint64_t left = *(const uint64_t *)a, right = ((const struct tide_drive_base *)b)->item;
    return (left > right) - (left < right);
}

/* What was synced before is in every slice, and counts in the first one; what is new in its own. */
static bool is_of_slice(const struct planned *planned, const struct tide_drive_action *action)
{
    const struct tide_drive_loaded *loaded = &planned->loaded;
    const bool first = loaded->from.item == 0 && loaded->from.row == 0;
    uint64_t item = 0;
    if (action->item != 0)
        return loaded->trees.bases_count > 0 &&
                       bsearch(&action->item, loaded->bases, loaded->trees.bases_count,
                               sizeof *loaded->bases, by_item) != NULL
                   ? first
                   : action->item > loaded->from.item &&
                         (action->item <= loaded->to.item || !loaded->more);
    if (tide_drive_item_of_row(planned->db, action->row, &item, NULL) == TIDE_OK)
        return first;
    return action->row > loaded->from.row && (action->row <= loaded->to.row || !loaded->more);
}

static tide_status make_plan(struct planned *planned, const struct tide_drive_slice *from)
{
    struct cli *cli = planned->cli;
    char host[64] = "";
    (void)gethostname(host, sizeof host - 1);
    struct tide_drive_plan_options options = {
        .mode = planned->row->mode,
        .stamp = {.host = tide_text_of(host), .unix_ms = cli->now_unix_ms}};
    TIDE_TRY(
        tide_drive_guard_read(planned->db, cli->now_unix_ms, cli->mem, &options.guard, &cli->err));
    tide_status rc = tide_drive_load_from(planned->db, from, NEWS_MAX, cli->now_unix_ms, cli->mem,
                                          &planned->loaded, &cli->err);
    if (rc == TIDE_OK)
        rc = tide_drive_plan(&planned->loaded.trees, &options, cli->mem, &planned->plan, &cli->err);
    tide_drive_guard_done(&options.guard, cli->mem);
    return rc;
}

static void show_slice(struct planned *planned)
{
    for (size_t i = 0; i < planned->plan.actions_count; i++) {
        const struct tide_drive_action *action = &planned->plan.actions[i];
        if (!is_of_slice(planned, action))
            continue;
        planned->counts[action->verb]++;
        planned->same_files += action->verb == TIDE_DRIVE_BASE && action->kind == TIDE_DRIVE_FILE;
        if (action->state == TIDE_DRIVE_READY && action->verb == TIDE_DRIVE_DOWN)
            planned->down_bytes += action->bytes;
        if (action->state == TIDE_DRIVE_READY &&
            (action->verb == TIDE_DRIVE_UP || action->verb == TIDE_DRIVE_NEW))
            planned->up_bytes += action->bytes;
        if ((action->verb != TIDE_DRIVE_BASE && action->verb != TIDE_DRIVE_DROP) ||
            planned->cli->verbose)
            show_action(planned, action);
    }
}

static tide_status show_actions(struct planned *planned)
{
    static const char *const headings[] = {"ACTION", "PATH", "TO", "SIZE", "NOTE"};
    struct cli *cli = planned->cli;
    struct tide_drive_slice from = {.item = 0};
    tide_status rc = TIDE_OK;
    cli_table_begin(cli, headings, sizeof headings / sizeof headings[0]);
    for (bool more = true; rc == TIDE_OK && more;) {
        rc = make_plan(planned, &from);
        if (rc == TIDE_OK)
            show_slice(planned);
        planned->guarded = planned->guarded || planned->plan.guarded;
        from = planned->loaded.to;
        more = planned->loaded.more;
        tide_drive_plan_done(&planned->plan);
        tide_drive_loaded_done(&planned->loaded);
    }
    cli_table_end(cli, "There is nothing to do.");
    if (planned->left_out > 0)
        cli_print(cli, "and %" PRIu64 " more; --verbose lists them\n", planned->left_out);
    return rc;
}

static void summary(struct planned *planned, uint64_t seen_ms, tide_json *drives)
{
    struct cli *cli = planned->cli;
    char down[TIDE_SIZE_TEXT_BYTES];
    char up[TIDE_SIZE_TEXT_BYTES];
    char when[32];
    tide_json one;
    tide_json counts;
    const uint64_t ups = planned->counts[TIDE_DRIVE_UP] + planned->counts[TIDE_DRIVE_NEW];
    tide_size_human(planned->down_bytes, down);
    tide_size_human(planned->up_bytes, up);
    cli_print(cli,
              "%s: %" PRIu64 " downloads (%s), %" PRIu64 " uploads (%s), %" PRIu64
              " deletions; %" PRIu64 " files are the same on both sides already.\n",
              planned->row->name, planned->counts[TIDE_DRIVE_DOWN], down, ups, up,
              planned->counts[TIDE_DRIVE_DEL_LOCAL] + planned->counts[TIDE_DRIVE_DEL_REMOTE],
              planned->same_files);
    if (planned->guarded)
        cli_print(cli, "The deletions are so many that they wait for your consent.\n");
    cli_print(cli, "Planned from what was seen on both sides %s. Nothing was changed.\n",
              seen_ms == 0 ? "in unfinished looks" : cli_time(seen_ms, when));
    tide_json_object(&one);
    tide_json_object(&counts);
    for (size_t i = 0; i < DRIVE_VERBS; i++)
        tide_json_set_u64(&counts, drive_verb_name((tide_drive_verb)i), planned->counts[i]);
    tide_json_set_cstr(&one, "drive", planned->row->name);
    tide_json_set_u64(&one, "seen_unix_ms", seen_ms);
    tide_json_set(&one, "counts", &counts);
    tide_json_set_u64(&one, "download_bytes", planned->down_bytes);
    tide_json_set_u64(&one, "upload_bytes", planned->up_bytes);
    tide_json_set_bool(&one, "deletions_wait", planned->guarded);
    tide_json_set(&one, "actions", &planned->list);
    tide_json_append(drives, &one);
}

static tide_status plan_drive(struct cli *cli, const struct tide_drive_row *row, uint64_t seen_ms,
                              tide_json *drives)
{
    struct planned planned = {.cli = cli, .row = row};
    bool own = false;
    planned.db = drive_rows(cli, row->number);
    planned.path = tide_buf_in(cli->mem, PATH_BYTES_MAX);
    planned.to = tide_buf_in(cli->mem, PATH_BYTES_MAX);
    tide_json_array(&planned.list);
    tide_status rc = tide_rows_snapshot(planned.db, "the rows of a drive", &own, &cli->err);
    if (rc == TIDE_OK)
        rc = show_actions(&planned);
    if (rc == TIDE_OK)
        summary(&planned, seen_ms, drives);
    tide_rows_snapshot_end(planned.db, own);
    tide_json_done(&planned.list);
    tide_buf_done(&planned.path);
    tide_buf_done(&planned.to);
    return rc;
}

/* ---- the command ---- */

/* A look that failed for one account must not hide the plan of the others, nor be taken for one. */
static tide_status look_first(struct cli *cli, struct drive_sync *sync)
{
    TIDE_TRY(cli_work_run(&sync->work));
    for (size_t i = 0; i < sync->work.count; i++) {
        struct cli_ended ended;
        cli_outcome_judge(&sync->work, i, &ended);
        for (size_t j = 0; ended.outcome == CLI_OUTCOME_DONE && j < sync->drives.count; j++)
            if (strcmp(sync->drives.rows[j].account_name, sync->work.accounts[i].name) == 0)
                sync->synced[j].looked = true;
        if (ended.outcome == CLI_OUTCOME_DONE)
            continue;
        cli->exit_code = cli_outcome_worse(cli->exit_code, cli_outcome_exit_code(ended.outcome));
        cli_print(cli, "%s could not be looked at: %s\n", sync->work.accounts[i].name,
                  ended.reason);
    }
    return TIDE_OK;
}

tide_status cli_drive_plan(struct cli *cli)
{
    const bool look = cli_flag(cli, "stored") == NULL;
    struct drive_sync sync = {.cli = cli, .look_only = true};
    tide_json drives;
    tide_json_array(&drives);
    tide_status rc = drive_sync_prepare(&sync, cli->arguments, cli->arguments_count);
    if (rc == TIDE_OK && look)
        rc = look_first(cli, &sync);
    if (rc == TIDE_OK)
        rc = cli_ledger_read(cli);
    for (size_t i = 0; rc == TIDE_OK && i < sync.drives.count; i++) {
        struct drive_look is;
        rc = drive_look(cli->ledger, &sync.drives.rows[i], &is, &cli->err);
        if (rc == TIDE_OK)
            rc = plan_drive(cli, &sync.drives.rows[i],
                            sync.synced[i].looked ? cli->now_unix_ms : is.seen_ms, &drives);
    }
    tide_json_set(&cli->json, "drives", &drives);
    const tide_status closed = drive_sync_done(&sync);
    return rc == TIDE_OK ? closed : rc;
}
