/* verify.c - `tidemark drive verify`: hashes the files here again and compares them with what both sides
 * agreed on (D9).  It changes nothing. */
#include "base/clocktext.h"
#include "drive/commands/home.h"
#include "drive/local/hash.h"
#include "drive/local/scan.h"
#include "drive/store/report.h"
#include "world/folder.h"

#include <inttypes.h>
#include <string.h>

enum { BATCH = 500, PATH_BYTES_MAX = 64 << 10 };

struct verify {
    struct cli *cli;
    const struct tide_drive_row *row;
    int root;
    tide_rows db;
    struct tide_drive_kept batch[BATCH];
    size_t count;
    tide_buf path;
    tide_json list;
    uint64_t files, bytes;
    uint64_t same, changed, damaged, missing, unread;
};

static void take(const struct tide_drive_kept *kept, void *arg)
{
    struct verify *verify = arg;
    verify->batch[verify->count++] = *kept;
}

static void report(struct verify *verify, const char *what, const char *words)
{
    tide_json one;
    tide_json_object(&one);
    tide_json_set_text(&one, "path", tide_buf_text(&verify->path));
    tide_json_set_cstr(&one, "result", what);
    tide_json_append(&verify->list, &one);
    cli_cell(verify->cli, "%s", verify->row->name);
    cli_cell(verify->cli, "%s", words);
    cli_cell_text(verify->cli, tide_buf_text(&verify->path));
}

/* Its folder, and its name in it. */
static tide_status enter(struct verify *verify, int *dir_out, tide_text *name_out)
{
    const tide_text path = tide_buf_text(&verify->path);
    size_t at = path.bytes;
    while (at > 0 && path.data[at - 1] != '/')
        at--;
    *name_out = (tide_text){path.data + at, path.bytes - at};
    return tide_folder_enter(verify->root, (tide_text){path.data, at == 0 ? 0 : at - 1}, dir_out,
                             NULL);
}

static bool is_same(const struct tide_drive_content *is, const struct tide_drive_content *was)
{
    if (is->bytes != was->bytes)
        return false;
    return was->has_strong ? memcmp(is->strong, was->strong, sizeof is->strong) == 0
                           : !was->has_qxh || memcmp(is->qxh, was->qxh, sizeof is->qxh) == 0;
}

static void one(struct verify *verify, const struct tide_drive_kept *kept)
{
    struct tide_drive_content content;
    struct tide_entry entry;
    tide_text name;
    int dir = -1;
    if (tide_drive_path_here(verify->db, kept->row, &verify->path, NULL) != TIDE_OK) {
        (void)tide_drive_path_of(verify->db, kept->item, &verify->path, NULL);
        verify->missing++;
        report(verify, "missing", "is missing");
        return;
    }
    tide_status rc = enter(verify, &dir, &name);
    if (rc == TIDE_OK)
        rc = tide_drive_hash_file(dir, name, &content, &entry, NULL);
    tide_folder_close(dir);
    verify->files++;
    if (rc == TIDE_NOT_FOUND) {
        verify->missing++;
        report(verify, "missing", "is missing");
    } else if (rc != TIDE_OK) {
        verify->unread++;
        report(verify, "unread", "could not be read");
    } else if (is_same(&content, &kept->content)) {
        verify->same++;
        verify->bytes += content.bytes;
    } else if (entry.mtime_ns == kept->mtime_ns && content.bytes == kept->content.bytes) {
        verify->damaged++;
        report(verify, "damaged", "has other bytes with the same time and size");
    } else {
        verify->changed++;
        report(verify, "changed", "was changed since the last sync");
    }
}

static tide_status check_marker(struct cli *cli, const struct tide_drive_row *row, int *root_out)
{
    const tide_status rc = drive_folder_open(row, root_out, &cli->err);
    return cli_hint(cli, rc, "Mount it, or put the folder back where it was.");
}

static tide_status verify_drive(struct verify *verify)
{
    struct cli *cli = verify->cli;
    uint64_t after = 0;
    TIDE_TRY(check_marker(cli, verify->row, &verify->root));
    tide_status rc = TIDE_OK;
    do {
        verify->count = 0;
        verify->db = drive_rows(cli, verify->row->number);
        rc = tide_drive_kept_each(verify->db, after, BATCH, take, verify, &cli->err);
        for (size_t i = 0; rc == TIDE_OK && i < verify->count; i++) {
            one(verify, &verify->batch[i]);
            after = verify->batch[i].item;
            cli_progress(cli, "%s: %" PRIu64 " files compared", verify->row->name, verify->files);
            if (cli_interrupted(cli))
                rc = cli_fail(cli, TIDE_CANCELED, "Run it again; nothing was changed.",
                              "interrupted");
        }
    } while (rc == TIDE_OK && verify->count == BATCH);
    tide_folder_close(verify->root);
    return rc;
}

static void summary(struct verify *verify, tide_json *drives)
{
    struct cli *cli = verify->cli;
    char size[TIDE_SIZE_TEXT_BYTES];
    tide_json one;
    tide_size_human(verify->bytes, size);
    tide_json_object(&one);
    tide_json_set_cstr(&one, "drive", verify->row->name);
    tide_json_set_u64(&one, "same", verify->same);
    tide_json_set_u64(&one, "bytes", verify->bytes);
    tide_json_set_u64(&one, "changed", verify->changed);
    tide_json_set_u64(&one, "damaged", verify->damaged);
    tide_json_set_u64(&one, "missing", verify->missing);
    tide_json_set_u64(&one, "unread", verify->unread);
    tide_json_set(&one, "differences", &verify->list);
    tide_json_append(drives, &one);
    if (verify->changed + verify->damaged + verify->missing + verify->unread > 0)
        cli->exit_code = CLI_EXIT_BAD_ITEMS;
    cli_print(cli, "%s: %" PRIu64 " files (%s) are as they were synced", verify->row->name,
              verify->same, size);
    if (verify->changed > 0)
        cli_print(cli, ", %" PRIu64 " changed since", verify->changed);
    if (verify->damaged > 0)
        cli_print(cli, ", %" PRIu64 " DAMAGED", verify->damaged);
    if (verify->missing > 0)
        cli_print(cli, ", %" PRIu64 " missing", verify->missing);
    if (verify->unread > 0)
        cli_print(cli, ", %" PRIu64 " could not be read", verify->unread);
    cli_print(cli, ".\n");
}

tide_status cli_drive_verify(struct cli *cli)
{
    static const char *const headings[] = {"DRIVE", "FILE", "PATH"};
    struct drive_list drives;
    tide_json list;
    struct verify *verify = tide_mem_new(cli->mem, sizeof *verify);
    if (verify == NULL)
        return cli_fail(cli, TIDE_NO_MEMORY, "Free some memory.", "out of memory");
    tide_json_array(&list);
    (void)cli_interruptible(cli);
    tide_status rc = drive_list_named(cli, cli->arguments, cli->arguments_count, &drives);
    if (rc == TIDE_OK)
        rc = drive_list_synced(cli, &drives);
    for (size_t i = 0; rc == TIDE_OK && i < drives.count; i++) {
        *verify = (struct verify){.cli = cli, .row = &drives.rows[i], .root = -1};
        verify->path = tide_buf_in(cli->mem, PATH_BYTES_MAX);
        tide_json_array(&verify->list);
        cli_table_begin(cli, headings, sizeof headings / sizeof headings[0]);
        rc = verify_drive(verify);
        cli_progress(cli, NULL);
        cli_table_end(cli, "No file differs.");
        if (rc == TIDE_OK)
            summary(verify, &list);
        tide_buf_done(&verify->path);
        tide_json_done(&verify->list);
    }
    tide_json_set(&cli->json, "drives", &list);
    drive_list_done(&drives);
    tide_mem_free(cli->mem, verify, sizeof *verify);
    return rc;
}
