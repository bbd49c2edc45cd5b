/* files.c - what leaves the screen: saved attachments, and messages in the web browser. */
#include "mail/browse/browse.h"

#include "cli/terminal/browser.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

/* A web browser may read a file long after it was started, or reload it: the files stay when this command
 * ends, and a later one removes them. */
enum { PAGES_MS = 60 * 60 * 1000, PAGES_MAX = 10000, PAGES_NAME_BYTES = 64 };
static const char pages_name[] = "tidemark-pages-";

static const char *pages_place(size_t index)
{
    static const char *const variables[] = {"XDG_RUNTIME_DIR", "TMPDIR"};
    const size_t count = sizeof variables / sizeof variables[0];
    const char *place = index < count ? getenv(variables[index]) : "/tmp";
    return index > count ? NULL : place != NULL && place[0] == '/' ? place : "";
}

/* Only this user can read it. */
static bool pages_dir_make(struct browse_files *files)
{
    if (files->pages_dir[0] != '\0' && access(files->pages_dir, F_OK) != 0)
        files->pages_dir[0] = '\0'; /* another process took it for an old one */
    for (size_t i = 0; files->pages_dir[0] == '\0' && pages_place(i) != NULL; i++) {
        if (pages_place(i)[0] == '\0')
            continue;
        (void)snprintf(files->pages_dir, sizeof files->pages_dir, "%.4000s/%sXXXXXX",
                       pages_place(i), pages_name);
        if (mkdtemp(files->pages_dir) == NULL)
            files->pages_dir[0] = '\0';
    }
    return files->pages_dir[0] != '\0';
}

/* Others may have put anything there: only a directory of this user counts, and no link to one. */
static void sweep_dir(int place, const char *name, uint64_t now_unix_ms)
{
    struct stat info;
    if (fstatat(place, name, &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISDIR(info.st_mode) ||
        info.st_uid != geteuid() || (info.st_mode & (S_IRWXG | S_IRWXO)) != 0 ||
        (uint64_t)info.st_mtime * 1000 + PAGES_MS > now_unix_ms)
        return;
    for (unsigned page = 1; page < PAGES_MAX; page++) {
        char path[PAGES_NAME_BYTES + 32];
        (void)snprintf(path, sizeof path, "%.*s/%u.html", PAGES_NAME_BYTES, name, page);
        (void)unlinkat(place, path, 0);
    }
    (void)unlinkat(place, name, AT_REMOVEDIR);
}

void browse_files_begin(struct browse *browse)
{
    for (size_t i = 0; pages_place(i) != NULL; i++) {
        DIR *place = pages_place(i)[0] == '\0' ? NULL : opendir(pages_place(i));
        for (const struct dirent *entry = place == NULL ? NULL : readdir(place); entry != NULL;
             entry = readdir(place))
            if (strncmp(entry->d_name, pages_name, sizeof pages_name - 1) == 0 &&
                strlen(entry->d_name) < PAGES_NAME_BYTES)
                sweep_dir(dirfd(place), entry->d_name, browse->cli->now_unix_ms);
        if (place != NULL)
            (void)closedir(place);
    }
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

/* A browser without a window has the terminal until the user quits it; then its file is not needed. */
static bool html_open(struct browse *browse, const char *path)
{
    const bool text = cli_browser_look() == CLI_BROWSER_TEXT;
    if (text)
        browse_terminal_lend();
    const bool opened = cli_browser_open(path);
    if (text)
        browse_terminal_return();
    if (text || !opened)
        (void)tide_file_remove(browse->cli->world, path, NULL);
    if (opened && !text)
        browse_note(browse, "Opened in the web browser; remote images are not loaded.");
    return opened;
}

void browse_html_answer(struct browse *browse, struct cli_called *called)
{
    const char *path = browse_text(called->json.value, "file");
    if (called->status != TIDE_OK)
        browse_note_failure(browse, called);
    else if (!html_open(browse, path))
        browse_note(browse, "No web browser was found; set BROWSER to the name of one.");
}

void browse_files_end(struct browse *browse)
{
    struct browse_files *files = &browse->files;
    json_decref(files->left);
    files->left = NULL;
    if (files->pages_dir[0] != '\0')
        (void)rmdir(files->pages_dir); /* if nothing is in it */
}
