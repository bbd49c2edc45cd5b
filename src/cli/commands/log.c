/* log.c - `tidemark log`: what engines did, from the log files of this home (E9.4). */
#include "cli/log_file.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
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
};

/* ---- which lines ---- */

static tide_status flags_read(struct log_view *view)
{
    struct cli *cli = view->cli;
    const char *level = cli_flag(cli, "level");
    const char *limit = cli_flag(cli, "limit");
    view->run = cli_flag(cli, "run");
    view->account = cli_flag(cli, "account");
    view->limit = LIMIT_DEFAULT;
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
    tide_json_set(&cli->json, "lines", &array);
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
    bool any = false;
    for (unsigned number = FILES_MAX; number > 0; number--) {
        FILE *older = open_log(cli, number);
        if (older == NULL)
            continue;
        any = true;
        read_lines(&view, older);
        (void)fclose(older);
    }
    FILE *file = open_log(cli, 0);
    const int why = errno;
    if (file != NULL)
        read_lines(&view, file);
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
