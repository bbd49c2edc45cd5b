#include "console/system.h"

#include "console/backup.h"
#include "console/console.h"

#include <stdio.h>
#include <string.h>

/* ---- running ---- */

static tide_status open_console(const struct tide_system_home *home, void **state_out,
                                tide_error *err)
{
    const struct tide_console_options *wanted = home->options;
    const struct tide_console_options options = {.engine = home->engine,
                                                 .world = home->world,
                                                 .secrets = home->secrets,
                                                 .archive_dir = home->archive_dir,
                                                 .workers = wanted == NULL ? 0 : wanted->workers,
                                                 .batch_max =
                                                     wanted == NULL ? 0 : wanted->batch_max};
    tide_console *console = NULL;
    const tide_status rc = tide_console_open(&options, home->mem, &console, err);
    *state_out = console;
    return rc;
}

static tide_status close_console(void *state, tide_error *err)
{
    return tide_console_close(state, err);
}

static tide_status rest(void *state, tide_error *err)
{
    return tide_console_rest(state, err);
}

/* ---- all accounts share one directory ---- */

static bool is_here(tide_world *world, const char *archive_dir, const char *account,
                    const char *archive_id)
{
    (void)account;
    return tide_console_is_here(world, archive_dir, archive_id);
}

static void archive_path(const char *archive_dir, const char *account, char *out, size_t out_bytes)
{
    (void)account;
    (void)snprintf(out, out_bytes, "%s/console", archive_dir);
}

static bool owns_entry(const char *name)
{
    return strcmp(name, "console") == 0;
}

static tide_status backup(const struct tide_system_copy *copy, struct tide_system_copied *done,
                          tide_error *err)
{
    struct tide_console_backed_up console = {0};
    const struct tide_console_backup wanted = {.from_dir = copy->from,
                                               .to_dir = copy->to,
                                               .free_min_bytes = copy->free_min_bytes,
                                               .cancel = copy->cancel,
                                               .progress = copy->progress,
                                               .progress_arg = copy->progress_arg};
    const tide_status rc = tide_console_backup(copy->world, &wanted, copy->mem, &console, err);
    *done = (struct tide_system_copied){
        .files = console.files, .bytes = console.bytes, .units = console.rows};
    return rc;
}

static tide_status backup_check(const struct tide_system_copy *copy, tide_error *err)
{
    return tide_console_backup_check(copy->world, copy->to, copy->mem, err);
}

const struct tide_system tide_console_system = {
    .name = "console",
    .provider = "console",
    .table_prefix = "console_",
    .unit = "rows of search analytics",
    .unit_json = "console_rows",
    .tables = tide_console_tables,
    .open = open_console,
    .close = close_console,
    .rest = rest,
    .is_here = is_here,
    .archive_path = archive_path,
    .secret_name = tide_console_secret_name,
    .owns_entry = owns_entry,
    .backup = backup,
    .backup_check = backup_check,
};
