#include "cli/cli.h"
#include "cli/log_file.h"

#include "base/check.h"
#include "world/socket.h"
#include "world/userfile.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* How long an engine may take from its lock to its socket, and how often it is looked for. */
enum { STARTING_US = 10000000, STARTING_LOOK_US = 20000 };

extern char **environ;

/* ---- errors ----------------------------------------------------------------------- */

tide_status cli_fail(struct cli *cli, tide_status status, const char *hint, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(cli->err.text, sizeof cli->err.text, format, args);
    va_end(args);
    cli->err.status = status;
    cli->err.code = 0;
    cli->hint[0] = '\0';
    return cli_hint(cli, status, hint);
}

tide_status cli_wrong(struct cli *cli, const char *hint, const char *format, ...)
{
    char text[sizeof cli->err.text];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    cli->exit_code = CLI_EXIT_USAGE;
    return cli_fail(cli, TIDE_INVALID, hint, "%s", text);
}

tide_status cli_hint(struct cli *cli, tide_status status, const char *hint)
{
    if (status != TIDE_OK && hint != NULL && cli->hint[0] == '\0')
        (void)snprintf(cli->hint, sizeof cli->hint, "%s", hint);
    return status;
}

/* ---- directories -------------------------------------------------------------------- */

static tide_status path_join(struct cli *cli, char out[CLI_PATH_BYTES], const char *dir,
                             const char *name)
{
    if ((size_t)snprintf(out, CLI_PATH_BYTES, "%s/%s", dir, name) >= CLI_PATH_BYTES)
        return cli_fail(cli, TIDE_INVALID, "Use a shorter --home.", "the path is too long: %.100s",
                        dir);
    return TIDE_OK;
}

/* $XDG_..._HOME/tidemark, or its default below $HOME; relative ones are ignored
 * as the XDG rules say. */
static tide_status xdg_dir(struct cli *cli, const char *variable, const char *below_home,
                           char out[CLI_PATH_BYTES])
{
    const char *base = getenv(variable);
    const char *home = getenv("HOME");
    int used = -1;
    if (base != NULL && base[0] == '/')
        used = snprintf(out, CLI_PATH_BYTES, "%s/tidemark", base);
    else if (home != NULL && home[0] == '/')
        used = snprintf(out, CLI_PATH_BYTES, "%s/%s/tidemark", home, below_home);
    if (used < 0 || used >= CLI_PATH_BYTES)
        return cli_fail(cli, TIDE_INVALID, "Name a directory with --home DIR.",
                        "neither %s nor HOME names a directory", variable);
    return TIDE_OK;
}

tide_status cli_dirs(struct cli *cli)
{
    char config_dir[CLI_PATH_BYTES];
    if (cli->home == NULL)
        cli->home = getenv("TIDEMARK_HOME");
    if (cli->home != NULL && cli->home[0] == '\0')
        return cli_fail(cli, TIDE_INVALID, "Name a directory.", "--home is empty");
    if (cli->home != NULL) {
        if (strlen(cli->home) >= sizeof cli->state_dir - 32)
            return cli_fail(cli, TIDE_INVALID, "Use a shorter path.", "--home is too long");
        (void)snprintf(cli->state_dir, sizeof cli->state_dir, "%s", cli->home);
        (void)snprintf(cli->data_dir, sizeof cli->data_dir, "%s", cli->home);
        (void)snprintf(config_dir, sizeof config_dir, "%s", cli->home);
        TIDE_TRY(path_join(cli, cli->cache_dir, cli->home, "cache"));
    } else {
        TIDE_TRY(xdg_dir(cli, "XDG_STATE_HOME", ".local/state", cli->state_dir));
        TIDE_TRY(xdg_dir(cli, "XDG_DATA_HOME", ".local/share", cli->data_dir));
        TIDE_TRY(xdg_dir(cli, "XDG_CONFIG_HOME", ".config", config_dir));
        TIDE_TRY(xdg_dir(cli, "XDG_CACHE_HOME", ".cache", cli->cache_dir));
    }
    TIDE_TRY(path_join(cli, cli->ledger_path, cli->state_dir, TIDE_STATE_FILE));
    return path_join(cli, cli->config_path, config_dir, "config.yaml");
}

tide_status cli_start(struct cli *cli)
{
    tide_status rc = tide_world_real_new(cli->mem, &cli->world, &cli->err);
    if (rc != TIDE_OK)
        return cli_hint(cli, rc, "Free some memory and try again.");
    cli->now_unix_ms = cli->asked_unix_ms = tide_world_now_unix_ms(cli->world);
    return cli_dirs(cli);
}

void cli_release(struct cli *cli)
{
    cli_ledger_close(cli);
    cli_log_file_close(cli);
    tide_settings_free(cli->settings);
    tide_json_done(&cli->json);
    tide_buf_done(&cli->out);
}

void cli_end(struct cli *cli)
{
    cli_release(cli);
    if (cli->world != NULL)
        tide_world_real_free(cli->world);
}

tide_status cli_settings(struct cli *cli)
{
    struct tide_settings_sources sources = {
        .file = cli->config_path,
        .environment = (const char *const *)environ,
        .flags = cli->sets,
        .flags_count = cli->sets_count,
    };
    if (cli->settings != NULL)
        return TIDE_OK;
    tide_status rc = tide_settings_load(cli->world, &sources, cli->mem, &cli->settings, &cli->err);
    if (rc == TIDE_INVALID && strncmp(cli->err.text, "--set", 5) == 0)
        cli->exit_code = CLI_EXIT_USAGE; /* the value comes from the command line */
    if (rc != TIDE_INVALID)
        return cli_hint(cli, rc, "Name a readable directory with --home DIR.");
    return cli_hint(cli, rc,
                    "Correct it there and run `tidemark config check`; `tidemark config list "
                    "--verbose` shows names, bounds and meaning.");
}

/* ---- the ledger ----------------------------------------------------------------------- */

/* Adds a hint on what the user can do about a ledger that does not open. */
static tide_status ledger_hint(struct cli *cli, tide_status rc)
{
    switch (rc) {
    case TIDE_NOT_FOUND:
        return cli_hint(
            cli, rc,
            "Nothing has run in this directory yet. Begin with `tidemark account add`, or "
            "name another directory with --home DIR.");
    case TIDE_CORRUPT:
        return cli_hint(cli, rc,
                        "Nothing was changed. Keep the file, restore a copy made by `tidemark "
                        "backup`, and try again.");
    case TIDE_INVALID:
        return cli_hint(
            cli, rc,
            "Nothing was changed. Move that file elsewhere, or name another directory with "
            "--home DIR.");
    case TIDE_NEWER:
        return cli_hint(cli, rc, "Nothing was changed. Use the newer version of tidemark.");
    case TIDE_DISK_FULL:
        return cli_hint(cli, rc, "Free space on that disk and try again.");
    case TIDE_BUSY:
        return cli_hint(cli, rc, "Wait for it to finish and try again.");
    case TIDE_IO:
        return cli_hint(cli, rc,
                        "Check that the directory and state.db belong to you and can be read and "
                        "written.");
    default:
        return cli_hint(cli, rc, "Run `tidemark ledger check`.");
    }
}

static tide_status ledger_must_exist(struct cli *cli)
{
    struct stat info;
    if (stat(cli->ledger_path, &info) == 0 && S_ISREG(info.st_mode))
        return TIDE_OK;
    if (stat(cli->state_dir, &info) != 0)
        (void)tide_error_set(&cli->err, TIDE_NOT_FOUND, "there is no directory %.300s",
                             cli->state_dir);
    else
        (void)tide_error_set(&cli->err, TIDE_NOT_FOUND, "there is no ledger %.300s",
                             cli->ledger_path);
    return ledger_hint(cli, TIDE_NOT_FOUND);
}

static tide_status ledger_open(struct cli *cli, bool read_only)
{
    TIDE_TRY(cli_ledger_choose(cli));
    if (cli->shared != NULL)
        return cli_shared_open(cli, read_only, false);
    TIDE_TRY(ledger_must_exist(cli));
    char run_id[40];
    (void)snprintf(run_id, sizeof run_id, "command-%d", (int)getpid());
    struct tide_ledger_options options = {
        .path = cli->ledger_path,
        .run_id = run_id,
        .now_unix_ms = cli->now_unix_ms,
        .read_only = read_only,
        .must_exist = true,
    };
    return ledger_hint(cli, tide_ledger_open(cli->world, &options, &cli->ledger, &cli->err));
}

tide_status cli_ledger_read(struct cli *cli)
{
    return cli->ledger != NULL ? TIDE_OK : ledger_open(cli, true);
}

static bool note_running(const struct tide_job_row *row, void *arg)
{
    (void)row;
    *(bool *)arg = true;
    return false;
}

/* A ledger we wrote to is closed as clean only if no row is still claimed by a dead engine;
 * otherwise the next engine must reclaim the rows, as it would have without us (E1.7). */
void cli_ledger_close(struct cli *cli)
{
    if (cli->ledger != NULL) {
        bool running = false;
        struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
        filter.state = TIDE_ROW_RUNNING;
        filter.count_max = 1;
        tide_status rc = TIDE_OK;
        if (cli->lock != NULL)
            rc = tide_ledger_jobs(cli->ledger, &filter, note_running, &running, NULL);
        tide_ledger_close(cli->ledger, rc == TIDE_OK && !running);
    }
    if (cli->lock != NULL)
        tide_file_lock_drop(cli->world, cli->lock);
    cli->ledger = NULL;
    cli->lock = NULL;
}

static void lock_holder(char holder[80])
{
    (void)snprintf(holder, 80, "tidemark command, process %d", (int)getpid());
}

static tide_status lock_take(struct cli *cli)
{
    char path[CLI_PATH_BYTES], holder[80];
    TIDE_TRY(path_join(cli, path, cli->state_dir, TIDE_CONTROL_LOCK));
    lock_holder(holder);
    tide_status rc = tide_home_lock(cli->world, path, holder, true, &cli->lock, &cli->err);
    if (rc == TIDE_BUSY)
        return cli_hint(cli, rc,
                        "It holds this directory but does not answer on its socket. Wait, or stop "
                        "that process, and try again.");
    return ledger_hint(cli, rc);
}

tide_status cli_lock(struct cli *cli)
{
    TIDE_TRY(tide_dir_make(cli->world, cli->state_dir, &cli->err));
    return lock_take(cli);
}

tide_status cli_ledger_write(struct cli *cli)
{
    tide_status rc = cli_ledger_choose(cli);
    /* Check first: in a directory without a ledger not even a lock file
     * is created. */
    if (rc == TIDE_OK && cli->shared == NULL)
        rc = ledger_must_exist(cli);
    cli_ledger_close(cli);
    if (rc == TIDE_OK && cli->shared == NULL)
        rc = lock_take(cli);
    if (rc == TIDE_OK)
        rc = ledger_open(cli, false);
    return rc;
}

/* ---- the engine ------------------------------------------------------------------------ */

static tide_status answer_line(void *arg, tide_text line)
{
    tide_buf *answer = arg;
    if (answer->bytes > 0)
        return TIDE_INVALID; /* an answer is one line */
    return tide_buf_add(answer, line.data, line.bytes);
}

/* The engine is in this process. */
static tide_status ask_here(struct cli *cli, tide_json *request, json_t **answer_out)
{
    json_t *answer = tide_control_here(cli->inside, request->value);
    tide_json_done(request);
    const tide_status rc = answer == NULL
                               ? cli_fail(cli, TIDE_NO_MEMORY, "Free some memory.", "out of memory")
                               : tide_control_answer(answer, &cli->err);
    if (rc == TIDE_OK)
        *answer_out = answer;
    else
        json_decref(answer);
    return rc;
}

static bool engine_is_starting(struct cli *cli, const char *lock)
{
    struct tide_path_info info = {.kind = TIDE_PATH_NONE};
    char holder[80];
    lock_holder(holder);
    return tide_path_look(lock, &info, NULL) == TIDE_OK && info.kind != TIDE_PATH_NONE &&
           tide_home_has_engine(cli->world, lock, holder);
}

/* Asks once; if `patient`, an engine that is starting is waited for. */
static tide_status socket_ask(struct cli *cli, tide_text request, bool patient, tide_buf *answer)
{
    char path[CLI_PATH_BYTES], lock[CLI_PATH_BYTES];
    const uint64_t give_up_us = tide_world_now_us(cli->world) + STARTING_US;
    TIDE_TRY(path_join(cli, path, cli->state_dir, TIDE_CONTROL_SOCKET));
    TIDE_TRY(path_join(cli, lock, cli->state_dir, TIDE_CONTROL_LOCK));
    for (;;) {
        const tide_status rc =
            tide_socket_ask(cli->world, cli->mem, path, request, TIDE_CONTROL_TIMEOUT_MS, NULL,
                            answer_line, answer, &cli->err);
        const uint64_t now_us = tide_world_now_us(cli->world);
        if (rc != TIDE_NOT_FOUND || !patient || now_us >= give_up_us ||
            !engine_is_starting(cli, lock))
            return rc;
        if (tide_world_sleep_until(cli->world, now_us + STARTING_LOOK_US, NULL) != TIDE_OK)
            return rc;
    }
}

static tide_status ask_there(struct cli *cli, tide_json *request, bool patient, bool *runs_out,
                             json_t **answer_out)
{
    tide_buf line, answer;
    json_t *parsed = NULL;
    tide_buf_init(&line, cli->mem, 1 << 16);
    tide_buf_init(&answer, cli->mem, 64 << 20);
    *runs_out = true;

    tide_status rc = tide_json_line(request, &line);
    if (rc == TIDE_OK) {
        tide_text text = tide_buf_text(&line);
        text.bytes--; /* tide_socket_ask() adds the line end */
        rc = socket_ask(cli, text, patient, &answer);
        if (rc == TIDE_NOT_FOUND)
            *runs_out = false;
        else if (rc != TIDE_OK)
            (void)cli_hint(cli, rc, "The engine did not answer. Check its log, and try again.");
    }
    if (rc == TIDE_OK)
        rc = cli_hint(cli, tide_json_parse(tide_buf_text(&answer), &parsed, &cli->err),
                      "Engine and command are of different versions; restart the engine.");
    if (rc == TIDE_OK)
        rc = tide_control_answer(parsed, &cli->err);
    if (rc == TIDE_OK) {
        *answer_out = parsed;
        parsed = NULL;
    }
    json_decref(parsed);
    tide_json_done(request);
    tide_buf_done(&line);
    tide_buf_done(&answer);
    return rc;
}

static tide_status engine_ask(struct cli *cli, tide_json *request, bool patient, bool *runs_out,
                              json_t **answer_out)
{
    *runs_out = true;
    return cli->inside != NULL ? ask_here(cli, request, answer_out)
                               : ask_there(cli, request, patient, runs_out, answer_out);
}

tide_status cli_engine_ask(struct cli *cli, tide_json *request, bool *runs_out, json_t **answer_out)
{
    return engine_ask(cli, request, false, runs_out, answer_out);
}

uint64_t cli_engine_pid(struct cli *cli)
{
    tide_json request;
    json_t *answer = NULL;
    bool runs = false;
    tide_control_request(TIDE_OP_PING, &request);
    if (cli_engine_ask(cli, &request, &runs, &answer) != TIDE_OK)
        return 0;
    const uint64_t pid = (uint64_t)json_integer_value(json_object_get(answer, "pid"));
    json_decref(answer);
    return pid;
}

bool cli_engine_ended(tide_status rc)
{
    return rc == TIDE_STOPPED || rc == TIDE_CANCELED || rc == TIDE_UNKNOWN;
}

tide_status cli_change_ask(struct cli *cli, tide_json *request, bool *runs_out, json_t **answer_out)
{
    *runs_out = false;
    const tide_status rc = cli_ledger_choose(cli);
    if (rc == TIDE_OK && cli->shared == NULL)
        return engine_ask(cli, request, true, runs_out, answer_out);
    tide_json_done(request);
    *runs_out = rc != TIDE_OK; /* on an error the caller must not write either */
    return rc != TIDE_OK ? rc : TIDE_NOT_FOUND;
}

tide_status cli_input(struct cli *cli, size_t bytes_max, tide_buf *out)
{
    if (cli->input.data == NULL)
        return cli_hint(cli, tide_file_read(cli->world, "/dev/stdin", bytes_max, out, &cli->err),
                        "Give it on standard input, as in `< FILE`.");
    if (cli->input.bytes > bytes_max)
        return cli_fail(cli, TIDE_FULL, "Give less.", "more than %zu bytes of input", bytes_max);
    return tide_buf_add(out, cli->input.data, cli->input.bytes);
}
