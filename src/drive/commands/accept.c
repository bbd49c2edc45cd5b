/* accept.c - `tidemark drive accept`: takes a file whose size or hash never fits (D41). */
#include "drive/commands/change.h"
#include "drive/commands/home.h"
#include "drive/store/report.h"

enum { PATH_BYTES_MAX = 64 << 10 };

struct finding {
    tide_rows db;
    tide_text wanted;
    tide_buf path;
    uint64_t item;
    bool other; /* something else is owed for this path */
};

static void find_owed(const struct tide_drive_owed *owed, void *arg)
{
    struct finding *finding = arg;
    tide_status rc = TIDE_NOT_FOUND;
    if (owed->row != 0)
        rc = tide_drive_path_here(finding->db, owed->row, &finding->path, NULL);
    if (rc != TIDE_OK && owed->item != 0)
        rc = tide_drive_path_of(finding->db, owed->item, &finding->path, NULL);
    if (rc != TIDE_OK || !tide_text_equal(tide_buf_text(&finding->path), finding->wanted))
        return;
    if (owed->verb == TIDE_DRIVE_DOWN)
        finding->item = owed->item;
    else
        finding->other = true;
}

tide_status cli_drive_accept(struct cli *cli)
{
    struct tide_drive_row row;
    struct finding finding = {.wanted = tide_text_of(cli->arguments[1])};
    tide_json change;
    TIDE_TRY(drive_one(cli, cli->arguments[0], &row));
    finding.db = drive_rows(cli, row.number);
    finding.path = tide_buf_in(cli->mem, PATH_BYTES_MAX);
    const tide_status rc = tide_drive_owed_each(finding.db, find_owed, &finding, &cli->err);
    tide_buf_done(&finding.path);
    if (rc != TIDE_OK)
        return rc;
    if (finding.item == 0)
        return cli_fail(cli, TIDE_NOT_FOUND, "`tidemark drive status` lists what is owed.",
                        finding.other ? "%.500s is owed, but not as a download"
                                      : "no download of \"%.500s\" is owed",
                        cli->arguments[1]);
    drive_change_begin(&change, "accept", row.number);
    tide_json_set_u64(&change, "item", finding.item);
    TIDE_TRY(cli_hint(cli, drive_change(cli, &change), "Nothing was changed. Run it again."));
    cli_print(cli,
              "%s: the next sync takes %s as OneDrive sends it, whatever its hash; a later version "
              "is compared again.\n",
              row.name, cli->arguments[1]);
    tide_json_set_cstr(&cli->json, "drive", row.name);
    tide_json_set_cstr(&cli->json, "accepted", cli->arguments[1]);
    return TIDE_OK;
}
