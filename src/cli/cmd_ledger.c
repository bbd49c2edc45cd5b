/* tidemark backup, tidemark ledger check. */
#include "cli/cli.h"

#include "base/clocktext.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

/* A directory gets a file named after the time. */
static tide_status backup_path(struct cli *cli, char path[CLI_PATH_BYTES])
{
    const char *target = cli->arguments[0];
    struct stat info;
    char when[TIDE_TIME_TEXT_BYTES];
    int used = 0;
    if (stat(target, &info) == 0 && S_ISDIR(info.st_mode)) {
        tide_time_format(cli->now_unix_ms, when);
        for (char *c = when; *c != '\0'; c++)
            *c = *c == ':' || *c == '.' ? '-' : *c;
        used = snprintf(path, CLI_PATH_BYTES, "%s/state-%s.db", target, when);
    } else {
        used = snprintf(path, CLI_PATH_BYTES, "%s", target);
    }
    if (used < 0 || used >= CLI_PATH_BYTES)
        return cli_fail(cli, TIDE_INVALID, "Use a shorter one.", "the path is too long");
    if (lstat(path, &info) == 0)
        return cli_fail(cli, TIDE_EXISTS, "A backup never overwrites: name a new file.",
                        "%.300s exists already", path);
    if (errno != ENOENT)
        return cli_hint(cli, tide_error_os(&cli->err, errno, "cannot write %.200s", path),
                        "Name a file in a directory that exists.");
    return TIDE_OK;
}

tide_status cli_backup(struct cli *cli)
{
    char path[CLI_PATH_BYTES], size[TIDE_SIZE_TEXT_BYTES];
    struct stat info;
    tide_status rc = cli_ledger_read(cli);
    if (rc == TIDE_OK)
        rc = backup_path(cli, path);
    if (rc != TIDE_OK)
        return rc;
    rc = tide_ledger_backup(cli->ledger, path, &cli->err);
    if (rc != TIDE_OK)
        return cli_hint(cli, rc, "Check that the directory exists, is yours and has room.");
    if (stat(path, &info) != 0)
        return cli_hint(cli, tide_error_os(&cli->err, errno, "the copy %.200s is gone", path),
                        "Try again with another file.");
    tide_size_human((uint64_t)info.st_size, size);
    if (!cli->quiet)
        cli_print(cli, "copied the ledger to %s (%s)\n", path, size);
    tide_json_set_cstr(&cli->json, "file", path);
    tide_json_set_u64(&cli->json, "bytes", (uint64_t)info.st_size);
    return TIDE_OK;
}

tide_status cli_ledger_verify(struct cli *cli)
{
    tide_buf problems;
    tide_json list;
    tide_status rc = cli_ledger_read(cli);
    if (rc != TIDE_OK)
        return rc;
    tide_buf_init(&problems, cli->mem, 1 << 20);
    rc = tide_ledger_check(cli->ledger, &problems, &cli->err);
    bool good = rc == TIDE_OK && problems.bytes == 0;
    if (rc == TIDE_OK || problems.bytes > 0) {
        rc = TIDE_OK;
        tide_json_array(&list);
        for (char *line = problems.data; line != NULL && *line != '\0';) {
            char *end = strchr(line, '\n');
            tide_json entry = {
                json_stringn(line, end == NULL ? strlen(line) : (size_t)(end - line)), false};
            tide_json_append(&list, &entry);
            line = end == NULL ? NULL : end + 1;
        }
        tide_json_set_bool(&cli->json, "good", good);
        tide_json_set(&cli->json, "problems", &list);
        cli_print(cli, "%s%s", tide_buf_cstr(&problems),
                  good ? "the ledger is good\n"
                       : "Keep this file, and restore a copy made by `tidemark backup`.\n");
        cli->exit_code = good ? CLI_EXIT_DONE : CLI_EXIT_FAILED;
    }
    tide_buf_done(&problems);
    return cli_hint(cli, rc, "Keep the file, and restore a copy made by `tidemark backup`.");
}
