/* config_edit.c - `tidemark config edit`: the settings file in the user's editor (E11.1).
 *
 * The user edits a copy beside the file; the file itself is replaced whole, and only by a text that
 * was read and found right:
 *
 *   1. copy       config.yaml.edit gets the bytes of the file, or a line on what goes there;
 *   2. edit       the editor runs on the copy;
 *   3. check      names, values and their agreement, as `config check` does;
 *   4. replace    config.yaml has the new bytes, or the old ones after a crash;
 *   5. remove     the copy.
 *
 * Invariants:
 *   CED1  what the user wrote is never lost: unless step 4 succeeded, the copy stays, and the next
 *         `config edit` opens it again.
 *   CED2  a change of config.yaml by someone else meanwhile is never overwritten: step 4 happens
 *         only if the file still has the bytes of step 1, and a copy that was kept is opened again
 *         only if the file is not newer.
 */
#include "cli/commands/config.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char empty_file[] =
    "# Settings of Tidemark, one per line, such as `workers.count: 8`.  `tidemark config list\n"
    "# --verbose` shows names, values and meaning; `tidemark config edit` checks what is written "
    "here.\n";

struct edit {
    struct cli *cli;
    char copy[CLI_PATH_BYTES + 8]; /* config.yaml.edit */
    tide_buf before, after;        /* bytes of the file, and of the copy after the edit */
    bool kept;                     /* the copy is of an earlier edit */
};

/* ---- the editor -------------------------------------------------------------------- */

static const char *editor_of(void)
{
    const char *const names[] = {"VISUAL", "EDITOR"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *editor = getenv(names[i]);
        if (editor != NULL && editor[0] != '\0')
            return editor;
    }
    return "vi";
}

/* By the shell, because an editor may have arguments ("code --wait"); the path is one of the
 * shell's, never part of its text. */
static void editor_become(const char *editor, const char *path)
{
    char line[4096];
    (void)signal(SIGINT, SIG_DFL);
    (void)signal(SIGQUIT, SIG_DFL);
    (void)signal(SIGPIPE, SIG_DFL);
    /* Standard output is the result of this command, which a program may read. */
    if (isatty(STDOUT_FILENO) != 1)
        (void)dup2(STDERR_FILENO, STDOUT_FILENO);
    if ((size_t)snprintf(line, sizeof line, "%s \"$@\"", editor) < sizeof line)
        (void)execl("/bin/sh", "sh", "-c", line, editor, path, (char *)NULL);
    _exit(127);
}

/* The exit code of the editor; -1: it did not end by itself. */
static int editor_run(const char *editor, const char *path)
{
    /* Ctrl-C is for the editor. */
    void (*const old_int)(int) = signal(SIGINT, SIG_IGN);
    void (*const old_quit)(int) = signal(SIGQUIT, SIG_IGN);
    int status = 0;
    const pid_t child = fork();
    if (child == 0)
        editor_become(editor, path);
    pid_t ended = child;
    do {
        ended = child < 0 ? child : waitpid(child, &status, 0);
    } while (ended < 0 && child > 0 && errno == EINTR);
    (void)signal(SIGINT, old_int);
    (void)signal(SIGQUIT, old_quit);
    return ended > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* ---- the copy ---------------------------------------------------------------------- */

static bool newer(const struct stat *a, const struct stat *b)
{
    return a->st_mtim.tv_sec != b->st_mtim.tv_sec ? a->st_mtim.tv_sec > b->st_mtim.tv_sec
                                                  : a->st_mtim.tv_nsec > b->st_mtim.tv_nsec;
}

/* Looks for a copy that an earlier edit left (CED1, CED2). */
static tide_status copy_look(struct edit *edit)
{
    struct stat copy, file;
    struct cli *cli = edit->cli;
    edit->kept = stat(edit->copy, &copy) == 0;
    if (!edit->kept || stat(cli->config_path, &file) != 0 || !newer(&file, &copy))
        return TIDE_OK;
    return cli_fail(cli, TIDE_EXISTS,
                    "Take over what you need with `tidemark config set`, then remove that copy.",
                    "%.300s has an earlier edit, and config.yaml has changed since", edit->copy);
}

static tide_status copy_make(struct edit *edit)
{
    struct cli *cli = edit->cli;
    tide_status rc = tide_file_read(cli->world, cli->config_path, TIDE_SETTINGS_FILE_BYTES_MAX,
                                    &edit->before, &cli->err);
    const bool none = rc == TIDE_NOT_FOUND;
    if (none)
        rc = TIDE_OK;
    if (rc == TIDE_OK)
        rc = copy_look(edit);
    if (rc == TIDE_OK && !edit->kept)
        rc = tide_file_replace(cli->world, edit->copy,
                               none ? tide_text_of(empty_file) : tide_buf_text(&edit->before), 0600,
                               &cli->err);
    else if (rc == TIDE_OK && !cli->quiet)
        (void)fprintf(stderr, "This is your earlier edit, which was not put in place: %s\n",
                      edit->copy);
    return cli_hint(cli, rc, "The file was not changed.");
}

static void copy_remove(struct edit *edit)
{
    (void)tide_file_remove(edit->cli->world, edit->copy, NULL);
}

/* ---- taking it over ------------------------------------------------------------------ */

/* The values of a text, checked; the caller frees them. */
static tide_status values_of(struct edit *edit, const char *path, tide_text yaml,
                             tide_settings **settings_out)
{
    struct cli *cli = edit->cli;
    TIDE_TRY(tide_settings_new(cli->mem, settings_out));
    tide_status rc = tide_settings_add_yaml(*settings_out, path, yaml, &cli->err);
    return rc == TIDE_OK ? tide_settings_check(*settings_out, &cli->err) : rc;
}

/* CED2. */
static tide_status file_is_as_before(struct edit *edit)
{
    struct cli *cli = edit->cli;
    tide_auto_buf now = tide_buf_in(cli->mem, TIDE_SETTINGS_FILE_BYTES_MAX);
    tide_status rc =
        tide_file_read(cli->world, cli->config_path, TIDE_SETTINGS_FILE_BYTES_MAX, &now, &cli->err);
    if (rc != TIDE_OK && rc != TIDE_NOT_FOUND)
        return rc;
    if (tide_text_equal(tide_buf_text(&now), tide_buf_text(&edit->before)))
        return TIDE_OK;
    return tide_error_set(&cli->err, TIDE_STALE, "%.300s has changed while you edited it",
                          cli->config_path);
}

struct shown {
    struct cli *cli;
    tide_json list;
    unsigned count;
    bool later; /* one of them takes effect at the next start */
};

static void show_difference(void *arg, const tide_settings *before, const tide_settings *after,
                            tide_setting setting)
{
    struct shown *shown = arg;
    char name[TIDE_SETTING_NAME_BYTES];
    char was[TIDE_SETTING_TEXT_BYTES], is[TIDE_SETTING_TEXT_BYTES];
    tide_json one;
    tide_setting_name(tide_setting_is_own(before, setting) ? before : after, setting, name);
    tide_setting_print(before, setting, was);
    tide_setting_print(after, setting, is);
    tide_json_object(&one);
    tide_json_set_cstr(&one, "name", name);
    tide_json_set_cstr(&one, "value", is);
    tide_json_set_cstr(&one, "before", was);
    tide_json_append(&shown->list, &one);
    if (!shown->cli->quiet)
        cli_print(shown->cli, "%s = %s (it was %s)\n", name, is, was);
    shown->later = shown->later || !tide_setting_info(setting)->live;
    shown->count++;
}

static void show_changes(struct edit *edit, const tide_settings *after)
{
    struct cli *cli = edit->cli;
    tide_settings *before = NULL;
    struct shown shown = {.cli = cli};
    bool runs = false;
    tide_json_array(&shown.list);
    /* A file that was wrong before counts as one without settings. */
    if (values_of(edit, cli->config_path, tide_buf_text(&edit->before), &before) != TIDE_OK)
        cli->err = (tide_error){TIDE_OK, 0, ""};
    if (before != NULL)
        tide_settings_differences(before, after, show_difference, &shown);
    tide_settings_free(before);
    const bool told = config_reload(cli, &runs);
    if (shown.count == 0)
        cli_print(cli, "the file is changed, and no value is\n");
    if (runs && shown.later)
        cli_print(cli, "some of it takes effect at the next start of the engine\n");
    tide_json_set(&cli->json, "changes", &shown.list);
    tide_json_set_bool(&cli->json, "engine", told);
}

/* Under the lock of `config set`, which would undo the edit with what it read before. */
static tide_status replace(struct edit *edit)
{
    struct cli *cli = edit->cli;
    tide_file_lock *lock = NULL;
    TIDE_TRY(tide_settings_lock(cli->world, cli->config_path, &lock, &cli->err));
    tide_status rc = file_is_as_before(edit);
    if (rc == TIDE_OK)
        rc = tide_file_replace(cli->world, cli->config_path, tide_buf_text(&edit->after), 0600,
                               &cli->err);
    tide_file_lock_drop(cli->world, lock);
    return rc;
}

static tide_status take_over(struct edit *edit)
{
    struct cli *cli = edit->cli;
    tide_settings *after = NULL;
    char hint[sizeof cli->hint];
    (void)snprintf(hint, sizeof hint,
                   "The settings are as they were. Your edit is kept in %.200s: `tidemark config "
                   "edit` opens it again.",
                   edit->copy);
    tide_status rc = values_of(edit, edit->copy, tide_buf_text(&edit->after), &after);
    if (rc == TIDE_OK)
        rc = replace(edit);
    if (rc == TIDE_OK) {
        copy_remove(edit);
        show_changes(edit, after);
    }
    tide_settings_free(after);
    return cli_hint(cli, rc, hint);
}

static tide_status edited(struct edit *edit)
{
    struct cli *cli = edit->cli;
    const char *editor = editor_of();
    const int code = editor_run(editor, edit->copy);
    tide_status rc = tide_file_read(cli->world, edit->copy, TIDE_SETTINGS_FILE_BYTES_MAX,
                                    &edit->after, &cli->err);
    if (rc != TIDE_OK)
        return cli_hint(cli, rc, "The settings are as they were.");
    const tide_text after = tide_buf_text(&edit->after);
    const bool same = tide_text_equal(after, tide_buf_text(&edit->before)) ||
                      (edit->before.bytes == 0 && tide_text_equal(after, tide_text_of(empty_file)));
    if (same)
        copy_remove(edit);
    if (code != 0)
        return cli_fail(cli, TIDE_INVALID,
                        same ? "Name your editor in VISUAL or EDITOR."
                             : "Your edit is kept beside config.yaml: `tidemark config edit` opens "
                               "it again.",
                        "the editor `%.100s` failed; the settings are as they were", editor);
    if (!same)
        return take_over(edit);
    cli_print(cli, "nothing was changed\n");
    return TIDE_OK;
}

tide_status cli_config_edit(struct cli *cli)
{
    struct edit edit = {.cli = cli};
    (void)snprintf(edit.copy, sizeof edit.copy, "%s.edit", cli->config_path);
    tide_buf_init(&edit.before, cli->mem, TIDE_SETTINGS_FILE_BYTES_MAX);
    tide_buf_init(&edit.after, cli->mem, TIDE_SETTINGS_FILE_BYTES_MAX);
    tide_json_set_cstr(&cli->json, "file", cli->config_path);
    tide_status rc = cli_config_dir_make(cli);
    if (rc == TIDE_OK)
        rc = copy_make(&edit);
    if (rc == TIDE_OK)
        rc = edited(&edit);
    tide_buf_done(&edit.before);
    tide_buf_done(&edit.after);
    return rc;
}
