/* ignore.c - `tidemark drive ignore`: paths that are not synced (D10). */
#include "drive/commands/change.h"
#include "drive/commands/home.h"
#include "drive/ignore/ignore.h"
#include "drive/ignore/import.h"
#include "ledger/rows.h"
#include "world/world.h"

#include <string.h>

enum { FILE_BYTES_MAX = 1 << 20, CHANGE_BYTES_MAX = 32 << 10 };

/* ---- the rules of a drive ---- */

static void take_pattern(tide_text pattern, void *arg)
{
    tide_buf *lines = arg;
    (void)tide_buf_add(lines, pattern.data, pattern.bytes);
    (void)tide_buf_add(lines, "\n", 1);
}

static tide_status read_rules(struct cli *cli, const struct tide_drive_row *row, tide_buf *lines)
{
    return tide_drive_rules_each(tide_ledger_rows(cli->ledger), row->number, take_pattern, lines,
                                 &cli->err);
}

static bool next_line(tide_text *rest, tide_text *line)
{
    const char *end = rest->bytes == 0 ? NULL : memchr(rest->data, '\n', rest->bytes);
    if (end == NULL)
        return false;
    *line = (tide_text){rest->data, (size_t)(end - rest->data)};
    rest->bytes -= line->bytes + 1;
    rest->data = end + 1;
    return true;
}

static bool is_among(const tide_buf *lines, tide_text pattern)
{
    tide_text rest = tide_buf_text(lines);
    tide_text line;
    while (next_line(&rest, &line))
        if (tide_text_equal(line, pattern))
            return true;
    return false;
}

static tide_status list(struct cli *cli)
{
    struct tide_drive_row row;
    tide_auto_buf lines = tide_buf_in(cli->mem, TIDE_IGNORE_TEXT_BYTES_MAX * 2);
    tide_json patterns;
    tide_text line;
    TIDE_TRY(drive_one(cli, cli->arguments_count > 1 ? cli->arguments[1] : NULL, &row));
    TIDE_TRY(read_rules(cli, &row, &lines));
    tide_json_array(&patterns);
    for (tide_text rest = tide_buf_text(&lines); next_line(&rest, &line);) {
        tide_json one = {.value = json_stringn(line.data, line.bytes)};
        tide_json_append(&patterns, &one);
        cli_print(cli, "%.*s\n", (int)line.bytes, line.data);
    }
    if (lines.bytes == 0)
        cli_print(cli, "%s ignores nothing.\n", row.name);
    tide_json_set_cstr(&cli->json, "drive", row.name);
    tide_json_set(&cli->json, "patterns", &patterns);
    return TIDE_OK;
}

/* ---- changes ---- */

/* The whole list must be one, with what is added to it. */
static tide_status check(struct cli *cli, const tide_buf *had, tide_text added)
{
    tide_auto_buf all = tide_buf_in(cli->mem, TIDE_IGNORE_TEXT_BYTES_MAX);
    tide_ignore *ignore = NULL;
    tide_status rc = tide_buf_add(&all, had->data, had->bytes);
    if (rc == TIDE_OK)
        rc = tide_buf_add(&all, added.data, added.bytes);
    if (rc != TIDE_OK)
        return cli_fail(cli, rc, "Remove some patterns.", "the list of patterns is too long");
    rc = tide_ignore_new(added, cli->mem, &ignore, &cli->err);
    tide_ignore_free(ignore);
    if (rc == TIDE_OK)
        rc = tide_ignore_new(tide_buf_text(&all), cli->mem, &ignore, &cli->err);
    else
        ignore = NULL;
    tide_ignore_free(ignore);
    return cli_hint(cli, rc, "Nothing was changed. `man tidemark` has the rules of patterns.");
}

/* A job's payload is bounded: a long list is sent in parts, in its order. */
static tide_status change_part(struct cli *cli, const struct tide_drive_row *row, const char *what,
                               tide_text *rest, const tide_buf *without, uint64_t *count)
{
    tide_json change;
    tide_json patterns;
    tide_text line;
    size_t bytes = 0;
    tide_json_array(&patterns);
    while (bytes < CHANGE_BYTES_MAX && next_line(rest, &line)) {
        if (without != NULL && is_among(without, line))
            continue;
        tide_json one = {.value = json_stringn(line.data, line.bytes)};
        patterns.failed = patterns.failed || one.value == NULL;
        tide_json_append(&patterns, &one);
        bytes += line.bytes + 4;
        ++*count;
    }
    drive_change_begin(&change, "ignore", row->number);
    tide_json_set(&change, what, &patterns);
    if (bytes > 0)
        return drive_change(cli, &change);
    tide_json_done(&change);
    return TIDE_OK;
}

static tide_status change(struct cli *cli, const struct tide_drive_row *row, const char *what,
                          tide_text lines, const tide_buf *without)
{
    uint64_t count = 0;
    tide_status rc = TIDE_OK;
    while (rc == TIDE_OK && lines.bytes > 0)
        rc = change_part(cli, row, what, &lines, without, &count);
    if (rc != TIDE_OK)
        return cli_hint(cli, rc, "`tidemark drive ignore list` shows the patterns.");
    cli_print(cli, "%s: %s %llu pattern%s; this counts from the next sync on.\n", row->name,
              strcmp(what, "add") == 0 ? "added" : "removed", (unsigned long long)count,
              count == 1 ? "" : "s");
    tide_json_set_cstr(&cli->json, "drive", row->name);
    tide_json_set_u64(&cli->json, strcmp(what, "add") == 0 ? "added" : "removed", count);
    return TIDE_OK;
}

static tide_status add(struct cli *cli, const struct tide_drive_row *row, tide_text lines)
{
    tide_auto_buf had = tide_buf_in(cli->mem, TIDE_IGNORE_TEXT_BYTES_MAX * 2);
    TIDE_TRY(read_rules(cli, row, &had));
    TIDE_TRY(check(cli, &had, lines));
    return change(cli, row, "add", lines, &had);
}

/* What the words of the command line are as lines. */
static tide_status words(struct cli *cli, tide_buf *lines)
{
    for (unsigned i = 2; i < cli->arguments_count; i++) {
        if (cli->arguments[i][0] == '\0' || strchr(cli->arguments[i], '\n') != NULL)
            return cli_wrong(cli, "Give one pattern in each argument.",
                             "a pattern cannot be empty or have several lines");
        take_pattern(tide_text_of(cli->arguments[i]), lines);
    }
    return TIDE_OK;
}

static tide_status import(struct cli *cli, const struct tide_drive_row *row)
{
    const char *name = cli_flag(cli, "format");
    tide_ignore_format format = TIDE_IGNORE_PATTERNS;
    tide_auto_buf text = tide_buf_in(cli->mem, FILE_BYTES_MAX);
    tide_auto_buf lines = tide_buf_in(cli->mem, TIDE_IGNORE_TEXT_BYTES_MAX * 2);
    if (name != NULL && tide_ignore_format_of(name, &format, &cli->err) != TIDE_OK)
        return cli_wrong(cli, "See `tidemark drive ignore --help`.", "%s", cli->err.text);
    TIDE_TRY(cli_hint(
        cli, tide_file_read(cli->world, cli->arguments[2], FILE_BYTES_MAX, &text, &cli->err),
        "Name a readable file."));
    TIDE_TRY(cli_hint(
        cli, tide_ignore_import(tide_buf_text(&text), format, &lines, &cli->err),
        "Nothing was changed. Take the line out, and add what it means with `drive ignore add`."));
    if (lines.bytes == 0)
        return cli_fail(cli, TIDE_INVALID, "Check --format.", "%.300s has no rule",
                        cli->arguments[2]);
    return add(cli, row, tide_buf_text(&lines));
}

tide_status cli_drive_ignore(struct cli *cli)
{
    const char *what = cli->arguments_count == 0 ? "list" : cli->arguments[0];
    const bool adds = strcmp(what, "add") == 0;
    const bool imports = strcmp(what, "import") == 0;
    struct tide_drive_row row;
    tide_auto_buf lines = tide_buf_in(cli->mem, TIDE_IGNORE_TEXT_BYTES_MAX * 2);
    if (strcmp(what, "list") == 0 && cli->arguments_count <= 2)
        return list(cli);
    if (!adds && !imports && strcmp(what, "remove") != 0)
        return cli_wrong(cli, "See `tidemark drive ignore --help`.",
                         "\"%.60s\" is not list, add, remove or import", what);
    if (cli->arguments_count < 3 || (imports && cli->arguments_count > 3))
        return cli_wrong(cli, "See `tidemark drive ignore --help`.", "%s needs a drive and %s",
                         what, imports ? "a file" : "patterns");
    TIDE_TRY(drive_one(cli, cli->arguments[1], &row));
    if (imports)
        return import(cli, &row);
    TIDE_TRY(words(cli, &lines));
    return adds ? add(cli, &row, tide_buf_text(&lines))
                : change(cli, &row, "remove", tide_buf_text(&lines), NULL);
}
