/* drive_runner.c - one process that syncs a drive, to be killed: STATE FOLDER ENDPOINT [WORKERS]
 *
 * Signs in with the token "t", adds the drive in its first life, syncs until nothing is left to do, and
 * prints what it did in one line of JSON.  With "tree FOLDER": prints the folder as the cloud prints its
 * drive, a line for each item: kind, size, QuickXorHash, path. */
#include "base/encode.h"
#include "cloud/onedrive/onedrive.h"
#include "drive/local/hash.h"
#include "drive/local/scan.h"
#include "drive/sync/sync.h"
#include "ledger/rows.h"
#include "net/oauth/oauth.h"
#include "system/system.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MARKER "0123456789abcdef"

static tide_error err;

static void check(tide_status rc, const char *what)
{
    if (rc == TIDE_OK)
        return;
    (void)fprintf(stderr, "drive_runner: %s: %s: %s\n", what, tide_status_name(rc), err.text);
    exit(1);
}

/* ---- the tree ---- */

static void print_tree(const char *root, const char *path)
{
    char whole[4096];
    (void)snprintf(whole, sizeof whole, "%s/%s", root, path);
    DIR *list = opendir(whole);
    if (list == NULL)
        exit(1);
    for (const struct dirent *entry; (entry = readdir(list)) != NULL;) {
        char inside[2048], at[8192];
        struct stat info;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            strcmp(entry->d_name, TIDE_DRIVE_MARKER) == 0 ||
            strcmp(entry->d_name, ".tidemark-trash") == 0)
            continue;
        (void)snprintf(inside, sizeof inside, "%.1700s%s%s", path, *path == '\0' ? "" : "/",
                       entry->d_name);
        (void)snprintf(at, sizeof at, "%s/%s", root, inside);
        if (lstat(at, &info) != 0)
            exit(1);
        if (S_ISDIR(info.st_mode)) {
            (void)printf("folder 0 - %s\n", inside);
            print_tree(root, inside);
            continue;
        }
        struct tide_drive_content content;
        struct tide_entry found;
        int dir = -1;
        tide_auto_buf text = tide_buf_heap(256);
        check(tide_folder_open(whole, &dir, &err), whole);
        check(tide_drive_hash_file(dir, tide_text_of(entry->d_name), &content, &found, &err), at);
        tide_folder_close(dir);
        check(tide_base64_add(&text, (tide_text){(const char *)content.qxh, sizeof content.qxh},
                              tide_base64_standard, true),
              "base64");
        (void)printf("file %" PRIu64 " %s %s\n", content.bytes, tide_buf_cstr(&text), inside);
    }
    (void)closedir(list);
}

/* ---- the drive ---- */

struct home {
    tide_world *world;
    tide_secrets *secrets;
    tide_engine *engine;
    tide_drive *drive;
    const char *endpoint;
    struct tide_drive_row row;
};

static void find_drive(struct home *home)
{
    struct tide_onedrive_drive drive;
    struct tide_onedrive_answer root = {.value = NULL};
    tide_onedrive *onedrive = NULL;
    const struct tide_onedrive_options client = {
        .endpoint = home->endpoint, .bearer = TIDE_TEXT("t"), .world = home->world};
    check(tide_onedrive_open(&client, tide_mem_heap(), &onedrive, &err), "client");
    check(tide_onedrive_drive_get(onedrive, NULL, TIDE_TEXT(""), NULL, &drive, &err), "drive");
    check(tide_onedrive_get(onedrive, NULL, TIDE_TEXT(""), TIDE_TEXT(""), &root, &err), "root");
    (void)snprintf(home->row.drive_id, sizeof home->row.drive_id, "%.200s", drive.id);
    for (size_t i = 0; i < root.item.id.bytes; i++) {
        const char letter = root.item.id.data[i];
        home->row.root_id[i] = (char)(letter >= 'A' && letter <= 'Z' ? letter + 32 : letter);
    }
    tide_onedrive_answer_done(&root);
    tide_onedrive_close(onedrive);
}

static tide_status find_row(tide_transaction *transaction, void *arg, tide_error *error)
{
    struct home *home = arg;
    return tide_drives_named(tide_transaction_rows(transaction), home->row.name, &home->row, error);
}

static tide_status add_row(tide_transaction *transaction, void *arg, tide_error *error)
{
    struct home *home = arg;
    const tide_rows db = tide_transaction_rows(transaction);
    const struct tide_account_request request = {.name = "me", .endpoint = home->endpoint};
    TIDE_TRY(tide_system_row_put("drive", db, home->row.account, &request, error));
    return tide_drives_add(db, &home->row, error);
}

static void sign_in(struct home *home, const char *state)
{
    char dir[4096], name[TIDE_SECRET_NAME_BYTES_MAX];
    tide_auto_buf grant = tide_buf_heap(TIDE_SECRET_BYTES_MAX);
    (void)snprintf(dir, sizeof dir, "%s/secrets", state);
    tide_drive_secret_name("me", name);
    check(tide_secrets_open(home->world, dir, TIDE_SECRETS_FILES, tide_mem_heap(), &home->secrets,
                            &err),
          "secrets");
    check(tide_oauth_fixed("t", &grant, &err), "grant");
    check(tide_secrets_put(home->secrets, name, tide_buf_text(&grant), &err), "secret");
}

static void set_up(struct home *home, const char *state, uint32_t workers)
{
    const struct tide_engine_options engine = {
        .state_dir = state, .world = home->world, .workers = workers, .no_control_socket = true};
    check(tide_world_real_new(tide_mem_heap(), &home->world, &err), "world");
    struct tide_engine_options with_world = engine;
    with_world.world = home->world;
    check(tide_engine_open(&with_world, &home->engine, &err), "engine");
    sign_in(home, state);
    const struct tide_drive_options options = {
        .engine = home->engine, .world = home->world, .secrets = home->secrets, .state_dir = state};
    check(tide_drive_open(&options, tide_mem_heap(), &home->drive, &err), "drives");
    check(tide_engine_account(home->engine, "me", "onedrive", &home->row.account, &err), "account");
    const tide_status rc = tide_transact(home->engine, find_row, home, &err);
    if (rc == TIDE_NOT_FOUND) {
        find_drive(home);
        const tide_status made = tide_drive_marker_make(home->row.dir, MARKER, &err);
        if (made != TIDE_EXISTS)
            check(made, "marker");
        check(tide_transact(home->engine, add_row, home, &err), "add");
    } else {
        check(rc, "find");
    }
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "tree") == 0) {
        print_tree(argv[2], "");
        return 0;
    }
    if (argc < 4) {
        (void)fprintf(stderr, "usage: drive_runner STATE FOLDER ENDPOINT [WORKERS]\n");
        return 2;
    }
    struct home home = {.endpoint = argv[3]};
    struct tide_drive_state state;
    struct tide_progress progress;
    (void)snprintf(home.row.name, sizeof home.row.name, "docs");
    (void)snprintf(home.row.dir, sizeof home.row.dir, "%s", argv[2]);
    (void)snprintf(home.row.marker, sizeof home.row.marker, MARKER);
    set_up(&home, argv[1], argc > 4 ? (uint32_t)strtoul(argv[4], NULL, 10) : 16);
    check(tide_engine_start(home.engine, &err), "start");
    check(tide_drive_sync(home.drive, &home.row, false, &err), "sync");
    check(tide_engine_wait(home.engine, TIDE_WAIT_FOREVER, &err), "wait");
    tide_drive_state(home.drive, home.row.number, &state);
    tide_engine_progress(home.engine, &progress);
    (void)printf("{\"done\":%" PRIu64 ",\"failed\":%" PRIu64 ",\"downloaded\":%" PRIu64
                 ",\"uploaded\":%" PRIu64 ",\"downloaded_bytes\":%" PRIu64
                 ",\"uploaded_bytes\":%" PRIu64 "}\n",
                 progress.done, progress.failed, state.downloaded, state.uploaded,
                 state.downloaded_bytes, state.uploaded_bytes);
    check(tide_engine_close(home.engine), "close");
    tide_drive_close(home.drive);
    tide_secrets_close(home.secrets);
    tide_world_real_free(home.world);
    return progress.failed == 0 ? 0 : 1;
}
