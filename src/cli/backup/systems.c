#include "cli/backup/systems.h"

#include "base/clocktext.h"

#include <inttypes.h>
#include <stdio.h>

tide_status backup_join(struct cli *cli, char path[CLI_PATH_BYTES], const char *dir,
                        const char *name)
{
    const int used = snprintf(path, CLI_PATH_BYTES, "%s/%s", dir, name);
    return used < 0 || used >= CLI_PATH_BYTES
               ? cli_fail(cli, TIDE_INVALID, "Use a shorter path.", "the path is too long")
               : TIDE_OK;
}

struct walk {
    struct cli *cli;
    const char *from_dir, *to_dir;
    const char *name; /* of the entry being copied */
    bool check;
    struct backup_counts *counts;
    tide_status rc;
};

static void show_file(const char *file, uint64_t bytes, void *arg)
{
    const struct walk *walk = arg;
    char size[TIDE_SIZE_TEXT_BYTES];
    tide_size_human(bytes, size);
    cli_progress(walk->cli, "copying %s of %s (%s)", file, walk->name, size);
}

static void report_unknown(struct walk *walk, const char *name)
{
    tide_json one;
    one = (tide_json){json_string(name), false};
    tide_json_append(&walk->counts->unknown, &one);
    (void)fprintf(stderr,
                  "tidemark: warning: %.300s/%s is not copied: it does not belong to tidemark\n",
                  walk->from_dir, name);
}

static tide_status copy_entry(struct walk *walk, const struct tide_system *system, const char *from,
                              const char *to)
{
    struct cli *cli = walk->cli;
    struct tide_system_copied done = {0};
    const struct tide_system_copy copy = {.world = cli->world,
                                          .mem = cli->mem,
                                          .name = walk->name,
                                          .from = from,
                                          .to = to,
                                          .free_min_bytes = cli_free_min(cli),
                                          .cancel = cli_interruptible(cli),
                                          .progress = show_file,
                                          .progress_arg = walk};
    tide_status rc = tide_system_backup(system, &copy, &done, &cli->err);
    walk->counts->copied += done.files;
    walk->counts->same += done.same;
    walk->counts->bytes += done.bytes;
    for (size_t i = 0; cli->systems[i] != NULL; i++)
        if (cli->systems[i] == system)
            walk->counts->units[i] += done.units;
    if (rc == TIDE_OK && walk->check)
        rc = tide_system_backup_check(system, &copy, &cli->err);
    return rc;
}

static void walk_entry(const char *name, void *arg)
{
    struct walk *walk = arg;
    char from[CLI_PATH_BYTES];
    char to[CLI_PATH_BYTES];
    if (walk->rc != TIDE_OK)
        return;
    const struct tide_system *system = tide_system_of_entry(walk->cli->systems, name);
    if (system == NULL) {
        report_unknown(walk, name);
        return;
    }
    walk->name = name;
    walk->rc = backup_join(walk->cli, from, walk->from_dir, name);
    if (walk->rc == TIDE_OK)
        walk->rc = backup_join(walk->cli, to, walk->to_dir, name);
    if (walk->rc == TIDE_OK)
        walk->rc = copy_entry(walk, system, from, to);
    walk->counts->archives += walk->rc == TIDE_OK;
}

void backup_units(struct cli *cli, const struct backup_counts *counts, char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; cli->systems[i] != NULL && used < bytes; i++) {
        const struct tide_system *system = cli->systems[i];
        const char *between = i == 0 ? "" : cli->systems[i + 1] == NULL ? " and " : ", ";
        const int more = snprintf(text + used, bytes - used, "%s%" PRIu64 " %s", between,
                                  counts->units[i], system->unit);
        used += more > 0 ? (size_t)more : bytes;
        tide_json_set_u64(&cli->json, system->unit_json == NULL ? system->unit : system->unit_json,
                          counts->units[i]);
    }
}

tide_status backup_archives(struct cli *cli, const char *from_dir, const char *to_dir, bool check,
                            struct backup_counts *counts)
{
    struct walk walk = {
        .cli = cli, .from_dir = from_dir, .to_dir = to_dir, .check = check, .counts = counts};
    const tide_status rc = tide_dir_list(cli->world, from_dir, walk_entry, &walk, &cli->err);
    return rc == TIDE_OK ? walk.rc : rc;
}
