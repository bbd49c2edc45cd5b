/* files.c - what leaves the screen: saved attachments, and messages in the web browser. */
#include "mail/browse/browse.h"

#include "cli/terminal/browser.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- attachments ---- */

static void ask_next(struct browse *browse)
{
    struct browse_files *files = &browse->files;
    const size_t left = json_array_size(files->left);
    const json_t *row = left == 0 ? NULL : json_array_get(files->left, left - 1);
    if (row == NULL) {
        browse_note(browse, "Saved %zu attachment%s in %.200s.", files->saved,
                    files->saved == 1 ? "" : "s", files->to);
        return;
    }
    const char *const words[] = {"mail",
                                 "show",
                                 "--save-attachments",
                                 files->to,
                                 "--account",
                                 browse_text(row, "account"),
                                 "--",
                                 browse_text(row, "id"),
                                 NULL};
    if (browse_ask(browse->asking, BROWSE_SAVE, words) != TIDE_OK)
        browse_note(browse, "out of memory");
}

/* "~" is the home directory, as in a shell. */
static void dir_of(const char *typed, char dir[CLI_PATH_BYTES])
{
    const char *home = getenv("HOME");
    if (typed[0] == '~' && (typed[1] == '/' || typed[1] == '\0') && home != NULL)
        (void)snprintf(dir, CLI_PATH_BYTES, "%s%s", home, typed + 1);
    else
        (void)snprintf(dir, CLI_PATH_BYTES, "%s", typed[0] == '\0' ? "." : typed);
}

void browse_save(struct browse *browse, const char *dir)
{
    struct browse_files *files = &browse->files;
    const char *key = NULL;
    json_t *row = NULL;
    json_decref(files->left);
    files->left = json_array();
    files->saved = 0;
    dir_of(dir, files->to);
    json_object_foreach(browse->selected, key, row)
    {
        (void)json_array_append(files->left, row);
    }
    if (json_array_size(files->left) == 0 && browse->message.open) {
        row = json_pack("{s:s,s:s}", "account", browse->message.account, "id", browse->message.id);
        (void)json_array_append_new(files->left, row);
    } else if (json_array_size(files->left) == 0) {
        (void)json_array_append_new(files->left, json_deep_copy(browse_list_chosen(browse)));
    }
    if (json_array_size(files->left) == 0)
        browse_note(browse, "There is no message to save from.");
    else
        ask_next(browse);
}

void browse_save_answer(struct browse *browse, struct cli_called *called)
{
    struct browse_files *files = &browse->files;
    if (called->status != TIDE_OK) {
        browse_note_failure(browse, called);
        return;
    }
    files->saved += json_array_size(json_object_get(called->json.value, "saved"));
    (void)json_array_remove(files->left, json_array_size(files->left) - 1);
    ask_next(browse);
}

/* ---- the web browser ---- */

/* Only this user can read it. */
static bool pages_dir_make(struct browse_files *files)
{
    const char *places[] = {getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"), "/tmp"};
    for (size_t i = 0; files->pages_dir[0] == '\0' && i < sizeof places / sizeof places[0]; i++) {
        if (places[i] == NULL || places[i][0] != '/')
            continue;
        (void)snprintf(files->pages_dir, sizeof files->pages_dir, "%.4000s/tidemark-XXXXXX",
                       places[i]);
        if (mkdtemp(files->pages_dir) == NULL)
            files->pages_dir[0] = '\0';
    }
    return files->pages_dir[0] != '\0';
}

static void page_path(const struct browse_files *files, unsigned page,
                      char path[CLI_PATH_BYTES + 32])
{
    (void)snprintf(path, CLI_PATH_BYTES + 32, "%s/%u.html", files->pages_dir, page);
}

void browse_html(struct browse *browse)
{
    struct browse_files *files = &browse->files;
    const json_t *row = browse->message.open ? NULL : browse_list_chosen(browse);
    char path[CLI_PATH_BYTES + 32];
    if (row == NULL && !browse->message.open)
        return;
    if (!pages_dir_make(files)) {
        browse_note(browse, "There is no directory for temporary files: %.100s", strerror(errno));
        return;
    }
    page_path(files, ++files->pages, path);
    const char *const words[] = {"mail",
                                 "show",
                                 "--html",
                                 "--account",
                                 row == NULL ? browse->message.account
                                             : browse_text(row, "account"),
                                 "--",
                                 row == NULL ? browse->message.id : browse_text(row, "id"),
                                 path,
                                 NULL};
    if (browse_ask(browse->asking, BROWSE_HTML, words) != TIDE_OK)
        browse_note(browse, "out of memory");
}

void browse_html_answer(struct browse *browse, struct cli_called *called)
{
    const char *path = browse_text(called->json.value, "file");
    if (called->status != TIDE_OK)
        browse_note_failure(browse, called);
    else if (cli_browser_open(path))
        browse_note(browse, "Opened in the web browser; remote images are not loaded.");
    else
        browse_note(browse, "No web browser was found; set BROWSER to the name of one.");
}

void browse_files_end(struct browse *browse)
{
    struct browse_files *files = &browse->files;
    char path[CLI_PATH_BYTES + 32];
    json_decref(files->left);
    files->left = NULL;
    for (unsigned page = 1; page <= files->pages; page++) {
        page_path(files, page, path);
        (void)tide_file_remove(browse->cli->world, path, NULL);
    }
    if (files->pages_dir[0] != '\0')
        (void)rmdir(files->pages_dir);
    files->pages_dir[0] = '\0';
}
