#include "drive_sync_fixture.h"

#include "base/encode.h"
#include "cloud/onedrive/onedrive.h"
#include "cloudbox/mailbox/mime.h"
#include "drive/local/hash.h"
#include "drive/local/scan.h"
#include "drive/sync/inside.h"
#include "ledger/rows.h"
#include "support/temp_dir.h"
#include "system/system.h"

#include <dirent.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define ORIGIN "http://provider"
#define TOKEN  "bearer-1"
#define STATE  "/state"

static void provide(void *arg, const struct tide_request *request, uint64_t now_unix_ms,
                    tide_rng *rng, struct tide_sim_answer *answer)
{
    struct fixture *f = arg;
    f->calls++;
    if (f->on_call != NULL)
        f->on_call(f, request);
    tide_sim_cloud_call(f->cloud, request, now_unix_ms, rng, answer);
    if (strcmp(request->method, "GET") == 0 && strstr(request->url, "/v1.0/") == NULL)
        f->got_bytes += answer->body.bytes;
    if (strcmp(request->method, "PUT") == 0)
        f->sent_bytes++;
}

/* ---- set-up ---- */

static void find_drive(struct fixture *f)
{
    struct tide_onedrive_drive drive;
    struct tide_onedrive_answer root = {.value = NULL};
    tide_onedrive *onedrive = NULL;
    const struct tide_onedrive_options client = {
        .endpoint = ORIGIN, .bearer = TIDE_TEXT(TOKEN), .world = f->world};
    OK(tide_onedrive_open(&client, tide_mem_heap(), &onedrive, &f->err));
    OK(tide_onedrive_drive_get(onedrive, NULL, TIDE_TEXT(""), NULL, &drive, &f->err));
    OK(tide_onedrive_get(onedrive, NULL, TIDE_TEXT(""), TIDE_TEXT(""), &root, &f->err));
    (void)snprintf(f->row.drive_id, sizeof f->row.drive_id, "%.200s", drive.id);
    (void)snprintf(f->row.root_id, sizeof f->row.root_id, "%.*s", (int)root.item.id.bytes,
                   root.item.id.data);
    for (char *letter = f->row.root_id; *letter != '\0'; letter++)
        *letter = (char)(*letter >= 'A' && *letter <= 'Z' ? *letter + 32 : *letter);
    tide_onedrive_answer_done(&root);
    tide_onedrive_close(onedrive);
}

static tide_status add_drive(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct fixture *f = arg;
    const tide_rows db = tide_transaction_rows(transaction);
    struct tide_drive_row known;
    const struct tide_account_request request = {.name = "me", .endpoint = ORIGIN};
    const tide_status rc = tide_drives_named(db, f->row.name, &known, err);
    if (rc != TIDE_NOT_FOUND) {
        if (rc == TIDE_OK)
            f->row = known;
        return rc;
    }
    TIDE_TRY(tide_system_row_put("drive", db, f->row.account, &request, err));
    return tide_drives_add(db, &f->row, err);
}

tide_status life_begin(struct fixture *f)
{
    char secret[TIDE_SECRET_NAME_BYTES_MAX];
    const struct tide_engine_options engine = {.state_dir = STATE,
                                               .world = f->world,
                                               .workers = 8,
                                               .no_control_socket = true,
                                               .log_fd = getenv("TIDE_TEST_LOG") != NULL ? 2 : 0};
    tide_drive_secret_name("me", secret);
    TIDE_TRY(tide_engine_open(&engine, &f->engine, &f->err));
    TIDE_TRY(tide_sim_signed_in(f->world, STATE "/secrets", secret, TOKEN, &f->secrets, &f->err));
    const struct tide_drive_options options = {
        .engine = f->engine, .world = f->world, .secrets = f->secrets, .state_dir = STATE};
    TIDE_TRY(tide_drive_open(&options, tide_mem_heap(), &f->drive, &f->err));
    TIDE_TRY(tide_engine_account(f->engine, "me", "onedrive", &f->row.account, &f->err));
    TIDE_TRY(tide_transact(f->engine, add_drive, f, &f->err));
    return tide_engine_start(f->engine, &f->err);
}

void life_end(struct fixture *f)
{
    (void)tide_engine_close(f->engine); /* NULL, or of a world that died */
    tide_drive_close(f->drive);
    tide_secrets_close(f->secrets);
    f->engine = NULL;
    f->drive = NULL;
    f->secrets = NULL;
}

struct fixture *begin_in(uint64_t seed, const struct tide_sim_options *given)
{
    return begin_with(seed, given, provide);
}

struct fixture *begin_with(uint64_t seed, const struct tide_sim_options *given,
                           tide_sim_provide *network)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct tide_sim_options options = *given;
    assert_non_null(f);
    (void)snprintf(f->dir, sizeof f->dir, "/tmp/tidemark-sync-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    (void)snprintf(f->root, sizeof f->root, "%s/root", f->dir);
    assert_int_equal(mkdir(f->root, 0700), 0);
    box_mime_start();
    f->cloud = tide_sim_cloud_new(&(struct box_options){.seed = seed, .quota = BOX_QUOTA_OFF});
    options.start_unix_ms = (uint64_t)time(NULL) * 1000; /* as the clock of the real folder */
    options.net.provide = network;
    options.net.provide_arg = f;
    f->sim = tide_sim_new(seed, &options);
    f->world = tide_sim_world(f->sim);
    tide_sim_faults(f->sim, false);
    (void)tide_sim_cloud_user(f->cloud, f->sim, ME, TOKEN, (struct box_mailbox_options){0});
    (void)snprintf(f->row.name, sizeof f->row.name, "docs");
    (void)snprintf(f->row.dir, sizeof f->row.dir, "%s", f->root);
    (void)snprintf(f->row.marker, sizeof f->row.marker, "0123456789abcdef");
    OK(tide_drive_marker_make(f->root, f->row.marker, &f->err));
    find_drive(f);
    return f;
}

struct fixture *begin(void)
{
    const struct tide_sim_options options = {.net = {.latency_us_max = 20000}};
    struct fixture *f = begin_in(3, &options);
    if (life_begin(f) != TIDE_OK)
        fail_msg("%s", f->err.text);
    return f;
}

void finish(struct fixture *f)
{
    if (f->engine != NULL)
        life_end(f);
    tide_sim_free(f->sim);
    tide_sim_cloud_free(f->cloud);
    assert_int_equal(temp_dir_remove(f->dir), 0);
    free(f);
}

tide_status try_sync(struct fixture *f, bool full)
{
    TIDE_TRY(tide_drive_sync(f->drive, &f->row, full, &f->err));
    return tide_engine_wait(f->engine, 3600000, &f->err);
}

void sync_now(struct fixture *f)
{
    struct tide_progress progress;
    if (try_sync(f, false) != TIDE_OK)
        fail_msg("%s", f->err.text);
    tide_engine_progress(f->engine, &progress);
    assert_int_equal(progress.failed, 0);
}

void sync_changed(struct fixture *f)
{
    OK(tide_drive_sync_changed(f->drive, &f->row, &f->err));
    OK(tide_engine_wait(f->engine, 3600000, &f->err));
}

void sync_full(struct fixture *f)
{
    if (try_sync(f, true) != TIDE_OK)
        fail_msg("%s", f->err.text);
}

/* ---- users ---- */

void online(struct fixture *f, const char *what, const char *body)
{
    const char *whole = textf("{\"user\":\"" ME "\",%s", body + 1);
    json_decref(tide_sim_cloud_control(f->cloud, f->sim, "POST", textf("/_cloud/drive/%s", what),
                                       tide_text_of(whole)));
}

void put_online(struct fixture *f, const char *path, const char *text)
{
    online(f, "put", textf("{\"path\":\"%s\",\"content\":\"%s\"}", path, text));
}

void put_here(struct fixture *f, const char *path, const char *text)
{
    FILE *file = fopen(textf("%s/%s", f->root, path), "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fclose(file), 0);
}

void make_here(struct fixture *f, const char *path)
{
    assert_int_equal(mkdir(textf("%s/%s", f->root, path), 0700), 0);
}

void remove_here(struct fixture *f, const char *path)
{
    assert_int_equal(remove(textf("%s/%s", f->root, path)), 0);
}

void move_here(struct fixture *f, const char *from, const char *to)
{
    char old[256];
    (void)snprintf(old, sizeof old, "%s/%s", f->root, from);
    assert_int_equal(rename(old, textf("%s/%s", f->root, to)), 0);
}

bool is_here(struct fixture *f, const char *path)
{
    return access(textf("%s/%s", f->root, path), F_OK) == 0;
}

void assert_here(struct fixture *f, const char *path, const char *text)
{
    char bytes[4096] = "";
    FILE *file = fopen(textf("%s/%s", f->root, path), "r");
    if (file == NULL)
        fail_msg("%s is not here", path);
    const size_t count = fread(bytes, 1, sizeof bytes - 1, file);
    bytes[count] = '\0';
    (void)fclose(file);
    assert_string_equal(bytes, text);
}

/* ---- trees ---- */

struct lines {
    char **list;
    size_t count;
};

static void add_line(struct lines *lines, const char *line)
{
    lines->list = realloc(lines->list, (lines->count + 1) * sizeof *lines->list);
    lines->list[lines->count++] = strdup(line);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static char *join(struct lines *lines)
{
    size_t bytes = 1;
    if (lines->count > 0)
        qsort(lines->list, lines->count, sizeof *lines->list, by_text);
    for (size_t i = 0; i < lines->count; i++)
        bytes += strlen(lines->list[i]) + 1;
    char *text = calloc(bytes, 1), *at = text;
    for (size_t i = 0; i < lines->count; i++) {
        at += snprintf(at, bytes, "%s\n", lines->list[i]);
        free(lines->list[i]);
    }
    free(lines->list);
    return text;
}

static void walk(struct fixture *f, const char *path, struct lines *lines)
{
    DIR *list = opendir(textf("%s/%s", f->root, path));
    assert_non_null(list);
    for (const struct dirent *entry; (entry = readdir(list)) != NULL;) {
        char whole[1024], line[1400];
        struct stat info;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            strncmp(entry->d_name, ".tidemark-", 10) == 0)
            continue;
        (void)snprintf(whole, sizeof whole, "%s%s%s", path, *path == '\0' ? "" : "/",
                       entry->d_name);
        assert_int_equal(lstat(textf("%s/%s", f->root, whole), &info), 0);
        if (S_ISDIR(info.st_mode)) {
            (void)snprintf(line, sizeof line, "folder 0 - %s", whole);
            add_line(lines, line);
            walk(f, whole, lines);
            continue;
        }
        struct tide_drive_content content;
        struct tide_entry found;
        char hash[64] = "";
        tide_error err;
        int dir = -1;
        OK(tide_folder_open(textf("%s/%s", f->root, path), &dir, &err));
        OK(tide_drive_hash_file(dir, tide_text_of(entry->d_name), &content, &found, &err));
        tide_folder_close(dir);
        tide_buf text = heap_buf(256);
        OK(tide_base64_add(&text, (tide_text){(const char *)content.qxh, sizeof content.qxh},
                           tide_base64_standard, true));
        (void)snprintf(hash, sizeof hash, "%s", tide_buf_cstr(&text));
        tide_buf_done(&text);
        (void)snprintf(line, sizeof line, "file %" PRIu64 " %s %s", content.bytes, hash, whole);
        add_line(lines, line);
    }
    (void)closedir(list);
}

char *tree_here(struct fixture *f)
{
    struct lines lines = {.list = NULL};
    walk(f, "", &lines);
    return join(&lines);
}

char *tree_online(struct fixture *f)
{
    struct lines lines = {.list = NULL};
    tide_buf text = tide_sim_cloud_text(f->cloud, f->sim, "/_cloud/drive?user=" ME);
    char *rest = strdup(tide_buf_cstr(&text)), *whole = rest;
    tide_buf_done(&text);
    for (char *line; (line = strsep(&rest, "\n")) != NULL;)
        if (*line != '\0')
            add_line(&lines, line);
    free(whole);
    return join(&lines);
}

void assert_equal_trees(struct fixture *f)
{
    char *here = tree_here(f), *there = tree_online(f);
    if (strcmp(here, there) != 0)
        print_error("here:\n%sonline:\n%s", here, there);
    assert_string_equal(here, there);
    free(here);
    free(there);
}

static unsigned count_ours(const char *path)
{
    unsigned count = 0;
    DIR *list = opendir(path);
    assert_non_null(list);
    for (const struct dirent *entry; (entry = readdir(list)) != NULL;) {
        struct stat info;
        const char *inside = textf("%s/%s", path, entry->d_name);
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (strcmp(entry->d_name, ".tidemark-root") != 0 &&
            strcmp(entry->d_name, ".tidemark-trash") != 0 &&
            strncmp(entry->d_name, ".tidemark-", 10) == 0)
            count++;
        else if (lstat(inside, &info) == 0 && S_ISDIR(info.st_mode)) {
            char *copy = strdup(inside);
            count += count_ours(copy);
            free(copy);
        }
    }
    (void)closedir(list);
    return count;
}

unsigned temporaries(struct fixture *f)
{
    return count_ours(f->root);
}

struct asking {
    struct fixture *f;
    const char *sql;
    uint64_t number;
};

static tide_status ask(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct asking *asking = arg;
    return tide_rows_number(
        tide_drives_rows(tide_transaction_rows(transaction), asking->f->row.number), "rows",
        &asking->number, err, asking->sql);
}

uint64_t rows_of(struct fixture *f, const char *sql)
{
    struct asking asking = {.f = f, .sql = sql};
    OK(tide_transact(f->engine, ask, &asking, &f->err));
    return asking.number;
}

/* ---- settings ---- */

struct change {
    struct fixture *f;
    const char *pattern;
    tide_drive_mode mode;
};

static tide_status add_rule(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct change *change = arg;
    return tide_drive_rules_add(tide_transaction_rows(transaction), change->f->row.number,
                                tide_text_of(change->pattern), err);
}

void ignore(struct fixture *f, const char *pattern)
{
    struct change change = {.f = f, .pattern = pattern};
    OK(tide_transact(f->engine, add_rule, &change, &f->err));
}

static tide_status accept(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct fixture *f = arg;
    const tide_rows db = tide_drives_rows(tide_transaction_rows(transaction), f->row.number);
    uint64_t fingerprint = 0;
    TIDE_TRY(tide_drive_deletions_fingerprint(db, &fingerprint, err));
    return tide_drive_deletions_accept(db, fingerprint, tide_world_now_unix_ms(f->world), err);
}

void accept_deletions(struct fixture *f)
{
    OK(tide_transact(f->engine, accept, f, &f->err));
}

static tide_status write_mode(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct change *change = arg;
    return tide_drives_mode_set(tide_transaction_rows(transaction), change->f->row.number,
                                change->mode, err);
}

void set_mode(struct fixture *f, tide_drive_mode mode)
{
    struct change change = {.f = f, .mode = mode};
    OK(tide_transact(f->engine, write_mode, &change, &f->err));
}

void fault(struct fixture *f, const char *rule)
{
    tide_sim_cloud_fault(f->cloud, f->sim, rule);
}

void no_faults(struct fixture *f)
{
    json_decref(
        tide_sim_cloud_control(f->cloud, f->sim, "DELETE", "/_cloud/faults", TIDE_TEXT("")));
}

void pass(struct fixture *f, uint64_t seconds)
{
    const uint64_t until_us = tide_world_now_us(f->world) + seconds * 1000000u;
    (void)tide_world_sleep_until(f->world, until_us, NULL);
}

void make_here_again(struct fixture *f, const char *path)
{
    (void)mkdir(textf("%s/%s", f->root, path), 0700);
}
