/* log.c - `tidemark log`: what engines did, from the log files of this home (E9.4). */
#include "cli/log_file.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LIMIT_DEFAULT = 100, FOLLOW_MS = 200, FILES_MAX = 99 };

struct log_view {
    struct cli *cli;
    const char *run, *account;
    tide_log_level level;
    uint64_t limit;
    json_t **lines; /* the last `limit` that match, as a ring */
    uint64_t count; /* that matched in all */
    uint64_t unreadable;
    struct place {
        uint64_t file, offset; /* the inode, and the bytes of it that were read */
    } after, next;             /* --after, and where to continue; 0: from the beginning */
};

/* ---- which lines ---- */

/* "FILE-OFFSET", as print_kept() writes it. */
static tide_status after_read(struct cli *cli, struct place *after)
{
    const char *text = cli_flag(cli, "after");
    const char *dash = text == NULL ? NULL : strchr(text, '-');
    if (text == NULL)
        return TIDE_OK;
    if (dash != NULL && tide_text_to_u64((tide_text){text, (size_t)(dash - text)}, &after->file) &&
        tide_text_to_u64(tide_text_of(dash + 1), &after->offset) && after->offset <= LONG_MAX)
        return TIDE_OK;
    return cli_wrong(cli, "Give \"next\" of `tidemark log --json`.",
                     "--after \"%.60s\" is no place in a log", text);
}

static tide_status flags_read(struct log_view *view)
{
    struct cli *cli = view->cli;
    const char *level = cli_flag(cli, "level");
    const char *limit = cli_flag(cli, "limit");
    view->run = cli_flag(cli, "run");
    view->account = cli_flag(cli, "account");
    view->limit = LIMIT_DEFAULT;
    TIDE_TRY(after_read(cli, &view->after));
    if (level != NULL &&
        (!tide_log_level_parse(tide_text_of(level), &view->level) || view->level == TIDE_LOG_NONE))
        return cli_wrong(cli, "Levels: debug, info, warn, error.", "there is no level \"%.40s\"",
                         level);
    TIDE_TRY(limit == NULL ? TIDE_OK : cli_number(cli, limit, "--limit", &view->limit));
    if (view->limit == 0 || view->limit > CLI_LIST_MAX)
        return cli_wrong(cli, "Use a smaller number.", "--limit must be between 1 and %d",
                         CLI_LIST_MAX);
    return TIDE_OK;
}

static const char *field(const json_t *line, const char *key)
{
    const char *text = json_string_value(json_object_get(line, key));
    return text == NULL ? "" : text;
}

static bool wanted(const struct log_view *view, const json_t *line)
{
    tide_log_level level = TIDE_LOG_INFO;
    (void)tide_log_level_parse(tide_text_of(field(line, "level")), &level);
    return level >= view->level &&
           (view->run == NULL || strncmp(field(line, "run"), view->run, strlen(view->run)) == 0) &&
           (view->account == NULL || strcmp(field(line, "account"), view->account) == 0);
}

/* ---- printing ---- */

/* Values come from servers and mail: what is not plain is quoted and escaped. */
static void print_value(FILE *to, const json_t *value)
{
    const char *text = json_string_value(value);
    size_t plain = 0;
    while (text != NULL && text[plain] > ' ' && text[plain] < 0x7f && text[plain] != '"')
        plain++;
    if (text != NULL && plain > 0 && text[plain] == '\0') {
        (void)fputs(text, to);
        return;
    }
    char *quoted = json_dumps(value, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
    (void)fputs(quoted == NULL ? "?" : quoted, to);
    free(quoted);
}

/* "2026-11-16T00:25:52.118Z warn  item is bad  account=... detail=..." */
static void print_line(FILE *to, json_t *line)
{
    const char *key;
    json_t *value;
    print_value(to, json_object_get(line, "time"));
    (void)fprintf(to, " %-5.10s ", field(line, "level"));
    (void)fprintf(to, "%.100s", field(line, "event"));
    json_object_foreach(line, key, value)
    {
        if (strcmp(key, "time") == 0 || strcmp(key, "level") == 0 || strcmp(key, "event") == 0 ||
            (json_is_string(value) && json_string_length(value) == 0))
            continue;
        (void)fprintf(to, " %.40s=", key);
        print_value(to, value);
    }
    (void)fputc('\n', to);
}

static tide_status print_kept(struct log_view *view, bool lines_only)
{
    struct cli *cli = view->cli;
    tide_json array;
    tide_json_array(&array);
    char *text = NULL;
    size_t bytes = 0;
    FILE *memory = open_memstream(&text, &bytes);
    if (memory == NULL)
        return cli_fail(cli, TIDE_NO_MEMORY, "Use a smaller --limit.", "out of memory for the log");
    const uint64_t first = view->count > view->limit ? view->count - view->limit : 0;
    for (uint64_t at = first; at < view->count; at++) {
        json_t *line = view->lines[at % view->limit];
        if (!cli->want_json) {
            print_line(memory, line);
            continue;
        }
        tide_json one = {.value = json_incref(line)};
        if (!lines_only)
            tide_json_append(&array, &one);
        else if (json_dumpf(line, memory, JSON_COMPACT) == 0)
            (void)fputc('\n', memory);
        if (lines_only)
            tide_json_done(&one);
    }
    const bool whole = fclose(memory) == 0;
    if (whole && lines_only)
        (void)fwrite(text, 1, bytes, stdout);
    else if (whole)
        (void)tide_buf_add(&cli->out, text, bytes);
    free(text);
    if (lines_only) {
        tide_json_done(&array);
        return TIDE_OK;
    }
    char next[48];
    (void)snprintf(next, sizeof next, "%" PRIu64 "-%" PRIu64, view->next.file, view->next.offset);
    tide_json_set(&cli->json, "lines", &array);
    tide_json_set_cstr(&cli->json, "next", next);
    tide_json_set_u64(&cli->json, "unreadable", view->unreadable);
    return TIDE_OK;
}

/* ---- reading ---- */

static void keep(struct log_view *view, const char *text, size_t bytes)
{
    json_t *line = json_loadb(text, bytes, 0, NULL);
    if (!json_is_object(line)) {
        view->unreadable++; /* cut by a full disk or a crash */
        json_decref(line);
        return;
    }
    if (!wanted(view, line)) {
        json_decref(line);
        return;
    }
    json_t **place = &view->lines[view->count++ % view->limit];
    json_decref(*place);
    *place = line;
}

/* Reads whole lines from the current position; an incomplete line at the end is left for later. */
static void read_lines(struct log_view *view, FILE *from)
{
    char *text = NULL;
    size_t capacity = 0;
    for (;;) {
        const long at = ftell(from);
        const ssize_t bytes = getline(&text, &capacity, from);
        if (bytes <= 0)
            break;
        if (text[bytes - 1] != '\n') {
            (void)fseek(from, at, SEEK_SET);
            break;
        }
        keep(view, text, (size_t)bytes - 1);
    }
    clearerr(from);
    free(text);
}

static FILE *open_log(const struct cli *cli, unsigned number)
{
    char path[CLI_PATH_BYTES + 32];
    cli_log_path(cli, number, path);
    return fopen(path, "re");
}

static bool was_set_aside(const struct cli *cli, FILE *file)
{
    char path[CLI_PATH_BYTES + 32];
    struct stat named, ours;
    cli_log_path(cli, 0, path);
    return fstat(fileno(file), &ours) == 0 && stat(path, &named) == 0 &&
           (named.st_ino != ours.st_ino || named.st_dev != ours.st_dev);
}

/* Whether the place is in a file that is still there. */
static bool place_exists(const struct cli *cli, const struct place *place)
{
    for (unsigned number = 0; number <= FILES_MAX; number++) {
        char path[CLI_PATH_BYTES + 32];
        struct stat named;
        cli_log_path(cli, number, path);
        if (stat(path, &named) == 0 && named.st_ino == place->file)
            return (uint64_t)named.st_size >= place->offset;
    }
    return false;
}

/* Opens a log file and reads it, from --after on: files before that one are skipped.  If it is renamed
 * meanwhile, nothing is read, and the place stays for the next time. */
static FILE *open_and_read(struct log_view *view, unsigned number)
{
    FILE *file = open_log(view->cli, number);
    struct stat info;
    if (file == NULL || fstat(fileno(file), &info) != 0)
        return file;
    const bool here = info.st_ino == view->after.file;
    if (view->after.file != 0 && !here) {
        (void)fclose(file);
        errno = ENOENT;
        return NULL;
    }
    if (here)
        (void)fseek(file, (long)view->after.offset, SEEK_SET);
    view->after.file = 0;
    read_lines(view, file);
    view->next = (struct place){info.st_ino, (uint64_t)ftell(file)};
    return file;
}

static void forget_kept(struct log_view *view)
{
    for (uint64_t i = 0; i < view->limit; i++) {
        json_decref(view->lines[i]);
        view->lines[i] = NULL;
    }
    view->count = 0;
}

static tide_status follow(struct log_view *view, FILE *file)
{
    struct cli *cli = view->cli;
    const tide_cancel *cancel = cli_interruptible(cli);
    tide_status rc = print_kept(view, true);
    while (rc == TIDE_OK && !tide_canceled(cancel) && fflush(stdout) == 0) {
        forget_kept(view);
        (void)usleep(FOLLOW_MS * 1000);
        if (file == NULL)
            file = open_log(cli, 0);
        if (file == NULL)
            continue;
        const bool aside = was_set_aside(cli, file);
        read_lines(view, file);
        rc = print_kept(view, true);
        if (aside) {
            (void)fclose(file);
            file = NULL;
        }
    }
    if (file != NULL)
        (void)fclose(file);
    return rc;
}

tide_status cli_log(struct cli *cli)
{
    struct log_view view = {.cli = cli};
    TIDE_TRY(flags_read(&view));
    view.lines = calloc(view.limit, sizeof(json_t *));
    if (view.lines == NULL)
        return cli_fail(cli, TIDE_NO_MEMORY, "Use a smaller --limit.", "out of memory for the log");
    if (!place_exists(cli, &view.after))
        view.after = (struct place){0, 0}; /* it was removed: all that is left is newer */
    view.next = view.after;
    bool any = false;
    for (unsigned number = FILES_MAX; number > 0; number--) {
        FILE *older = open_and_read(&view, number);
        any = any || older != NULL;
        if (older != NULL)
            (void)fclose(older);
    }
    FILE *file = open_and_read(&view, 0);
    const int why = errno;
    tide_status rc = TIDE_OK;
    if (cli_flag(cli, "follow") != NULL) {
        rc = follow(&view, file);
        cli->exact_output = true;
    } else {
        rc = print_kept(&view, false);
        if (file == NULL && !any && why != ENOENT)
            rc = cli_fail(cli, TIDE_IO,
                          "Name the home of the process that wrote it with --home DIR.",
                          "%.200s/" CLI_LOG_NAME ": %s", cli->state_dir, strerror(why));
        else if (view.count == 0 && !cli->quiet)
            cli_print(cli, "no lines in %s/" CLI_LOG_NAME "\n", cli->state_dir);
        if (file != NULL)
            (void)fclose(file);
    }
    forget_kept(&view);
    free(view.lines);
    return rc;
}
