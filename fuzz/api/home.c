#include "home.h"

#include "../../tests/support/full_ledger.h"
#include "../../tests/support/temp_dir.h"
#include "../fuzz.h"
#include "assistant/store/store.h"
#include "cli/run/engine.h"
#include "drive/drives.h"
#include "drive/local/scan.h"
#include "mail/archive/archive.h"
#include "mail/commands/home.h"
#include "mail/mail.h"
#include "serve/access/keys.h"
#include "serve/schedule/planned.h"

#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

enum { JOBS = 120, WORKERS = 2, PATH_BYTES = 600 };

#define GRANT  "1//grant-9d1c5e0f7a"
#define BEARER "ya29.bearer-77b0c3d2e8"

static struct {
    char dir[200]; /* has "made" and "live" */
    struct cli cli;
    struct {
        struct cli_resident resident;
        struct cli_serve serve;
    } * both; /* NULL: closed */
    sqlite3 *look;
    bool dirty; /* `live` is no longer like `made` */
    uint64_t version;
    char keys[TIDE_HTTPD_PAGE + 1][TIDE_KEY_TEXT_BYTES + 1];
    const char *secrets[HOME_SECRETS];
} home;

#define MUST(call) must((call), #call)
static void must(tide_status rc, const char *what)
{
    if (rc == TIDE_OK)
        return;
    (void)fprintf(stderr, "%s: %s: %s %s\n", what, tide_status_name(rc), home.cli.err.text,
                  home.cli.hint);
    abort();
}

static const char *path_of(const char *below)
{
    static char path[PATH_BYTES];
    (void)snprintf(path, sizeof path, "%s/%s", home.dir, below);
    return path;
}

/* ---- the network ---- */

static tide_status call(tide_world *world, const struct tide_request *request,
                        struct tide_response *response, const tide_cancel *cancel, tide_error *err)
{
    static const char image[] =
        "GIF89a\1\0\1\0\200\0\0\0\0\0\377\377\377,\0\0\0\0\1\0\1\0\0\2\2D\1\0;";
    (void)world, (void)request, (void)cancel, (void)err;
    response->http = 200;
    return tide_buf_add(&response->body, image, sizeof image - 1);
}

static void world_cut_off(tide_world *world)
{
    static struct tide_world_ops ops;
    ops = *world->ops;
    ops.call = call;
    world->ops = &ops;
}

/* ---- mail ---- */

static const char plain[] =
    "From: Ada <ada@example.com>\r\nTo: me@example.com\r\nSubject: plain " HOME_MAIL_WORD
    "\r\nDate: Mon, 3 Jun 2024 10:00:00 +0000\r\n\r\n" HOME_MAIL_WORD " in plain text\r\n";
static const char begun[] = "From: " HOME_MAIL "\r\nTo: x@example.com\r\nSubject: begun\r\n"
                            "Date: Mon, 3 Jun 2024 10:00:00 +0000\r\n\r\nBegun in Gmail.\r\n";
static const char hostile[] =
    "From: \"<script>alert(1)</script>\" <x@example.com>\r\nTo: me@example.com\r\n"
    "Subject: =?utf-8?B?PGltZyBzcmM9eCBvbmVycm9yPWFsZXJ0KDEpPg0KWC1FdmlsOiAx?=\r\n"
    "MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n"
    "--b\r\nContent-Type: text/html; charset=utf-8\r\n\r\n" HOME_MAIL_WORD
    "<script>fetch('/api/v1/state')</script><img src=http://tracker.example/a.png onerror=x()>"
    "<img src=cid:one><a href=javascript:x()>a</a><form action=/api/v1/jobs/cancel></form>"
    "<style>@import url(http://t.example/x.css);a{background:url(http://t.example/b.png)}</style>"
    "<svg><a xlink:href=data:text/html,x></a></svg></body></html><h1>after\r\n"
    "--b\r\nContent-Type: image/png\r\nContent-ID: <one>\r\nContent-Transfer-Encoding: base64\r\n"
    "Content-Disposition: attachment; filename=\"../../a\r\n\tb\\\"\001.html\"\r\n\r\n"
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5E"
    "rkJggg==\r\n"
    "--b\r\nContent-Type: text/html; name=\"x.html\"\r\nContent-Disposition: attachment;"
    " filename*=utf-8''%0d%0aSet-Cookie%3a%20a%3db%00.svg\r\n\r\n<script>x()</script>\r\n"
    "--b\r\nContent-Type: message/rfc822\r\n\r\nSubject: inner\r\n\r\ninner " HOME_MAIL_WORD
    "\r\n--b--\r\n";
static const char binary[] = "\0\xff\xfe:\r\n\r\n\0\x80\r\n--\r\n" HOME_MAIL_WORD;

static tide_archive *archive_open(const char *where, const char *account)
{
    char archives[PATH_BYTES];
    char dir[PATH_BYTES + 300];
    tide_archive *archive = NULL;
    (void)snprintf(archives, sizeof archives, "%s/%s/archive", home.dir, where);
    tide_mail_dir(archives, account, dir, sizeof dir);
    const struct tide_archive_options options = {
        .dir = dir, .account = account, .world = home.cli.world};
    MUST(tide_archive_open(&options, tide_mem_heap(), &archive, &home.cli.err));
    return archive;
}

static void archive_put(tide_archive *archive, const char *id, const char *label, tide_text raw)
{
    const tide_text labels[] = {tide_text_of(label), TIDE_TEXT("UNREAD")};
    const struct tide_incoming message = {.gmail_id = tide_text_of(id),
                                          .thread_id = TIDE_TEXT("thread"),
                                          .history_id = TIDE_TEXT("7"),
                                          .internal_ms = 1717408800000,
                                          .labels = labels,
                                          .labels_count = 2,
                                          .said_bytes = raw.bytes,
                                          .raw = raw};
    uint64_t ticket = 0;
    MUST(tide_archive_put(archive, &message, NULL, &ticket, &home.cli.err));
    MUST(tide_archive_sync(archive, ticket, NULL, &home.cli.err));
}

static void archive_make(const char *account)
{
    tide_archive *archive = archive_open("made", account);
    archive_put(archive, "plain", "INBOX", TIDE_TEXT(plain));
    archive_put(archive, "hostile", "INBOX", TIDE_TEXT(hostile));
    archive_put(archive, "begun", "DRAFT", TIDE_TEXT(begun));
    archive_put(archive, "binary", "INBOX", TIDE_TEXT(binary));
    MUST(tide_archive_close(archive, &home.cli.err));
}

void home_mail_put(tide_text raw)
{
    tide_archive *archive = archive_open("live", HOME_MAIL);
    archive_put(archive, HOME_GIVEN, "INBOX", raw);
    MUST(tide_archive_close(archive, &home.cli.err));
    home.dirty = true;
}

/* ---- serve ---- */

static void look_open(void)
{
    char sql[PATH_BYTES + 64];
    TIDE_ASSERT(sqlite3_open_v2(path_of("live/state.db"), &home.look, SQLITE_OPEN_READONLY, NULL) ==
                SQLITE_OK);
    (void)snprintf(sql, sizeof sql, "ATTACH '%s' AS mail",
                   path_of("live/archive/" HOME_MAIL "/2024.db"));
    if (sqlite3_exec(home.look, sql, NULL, NULL, NULL) != SQLITE_OK) {
        (void)fprintf(stderr, "%s: %s\n", sql, sqlite3_errmsg(home.look));
        abort();
    }
}

/* The command line `tidemark serve --home DIR`, as program.c starts it. */
static void command_open(const char *where)
{
    static char dir[PATH_BYTES];
    char *argv[] = {(char *)(uintptr_t) "tidemark", (char *)(uintptr_t) "serve",
                    (char *)(uintptr_t) "--home", dir};
    struct cli *cli = &home.cli;
    (void)snprintf(dir, sizeof dir, "%s", path_of(where));
    *cli = (struct cli){.mem = tide_mem_heap(), .systems = cli_systems};
    tide_buf_init(&cli->out, cli->mem, CLI_OUT_BYTES_MAX);
    tide_json_object(&cli->json);
    MUST(cli_args_parse(cli, sizeof argv / sizeof argv[0], argv));
    MUST(cli_start(cli));
    world_cut_off(cli->world);
}

static void serve_close(void)
{
    if (home.both == NULL)
        return;
    (void)sqlite3_close(home.look);
    home.look = NULL;
    cli_serve_stopping(&home.both->serve);
    cli_serve_stopped(&home.both->serve);
    MUST(cli_engine_close(&home.cli, &home.both->resident.open));
    cli_end(&home.cli);
    free(home.both);
    home.both = NULL;
}

/* As commands/serve.c and resident/resident.c do; but nothing waits for signals. */
static void serve_open(void)
{
    struct cli *cli = &home.cli;
    home.both = calloc(1, sizeof *home.both);
    TIDE_ASSERT(home.both != NULL);
    home.both->serve.cli = home.both->resident.cli = cli;
    home.both->serve.resident = &home.both->resident;
    home.both->resident.name = "serve";
    cli->schedules_changed = cli_serve_schedules_changed;
    cli->schedules_changed_arg = &home.both->serve;
    archive_here_take_all(&home.both->resident.open.here, cli);
    tide_log_init(&home.both->resident.log, TIDE_LOG_ERROR, TIDE_LOG_PLAIN, "serve",
                  tide_log_to_file, stderr);
    home.both->resident.open.log = &home.both->resident.log;
    MUST(cli_ledger_choose(cli));
    home.both->resident.open.workers = WORKERS;
    MUST(cli_engine_open(cli, &home.both->resident.open));
    MUST(tide_engine_start(home.both->resident.open.engine, &cli->err));
    MUST(cli_serve_started(&home.both->serve));
}

/* ---- making it ---- */

static tide_status schedule_add(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct tide_planned planned = {.name = "yearly",
                                   .at = "0 0 29 2 *",
                                   .words = "[\"alerts\"]",
                                   .created_unix_ms = FULL_NOW,
                                   .covered_unix_ms = *(uint64_t *)arg};
    return tide_planned_add(tide_transaction_rows(transaction), &planned, err);
}

/* A drive with something of each kind that a user decides. */
static tide_status drive_add(tide_transaction *transaction, void *arg, tide_error *err)
{
    const tide_rows db = tide_transaction_rows(transaction);
    struct tide_drive_row row = {.account = 1, .drive_id = "d", .root_id = "r", .marker = "m"};
    static const struct tide_drive_deletion deletion = {7, TIDE_DRIVE_DEL_REMOTE, {"gone", 4}};
    static const struct tide_drive_conflict conflict = {
        .notice = TIDE_DRIVE_K3, .item = 7, .name = {"kept", 4}, .copy = {"", 0}, .at_ms = 1};
    static const struct tide_drive_owed owed = {
        .item = 7, .verb = TIDE_DRIVE_DOWN, .name = {"owed", 4}, .error = {"x", 1}, .next_ms = 1};
    (void)arg;
    (void)snprintf(row.name, sizeof row.name, "One");
    (void)snprintf(row.dir, sizeof row.dir, "%s", path_of("One"));
    TIDE_TRY(tide_drives_add(db, &row, err));
    TIDE_ASSERT(mkdir(row.dir, 0700) == 0);
    TIDE_TRY(tide_drive_marker_make(row.dir, row.marker, err));
    const tide_rows own = tide_drives_rows(db, row.number);
    TIDE_TRY(tide_rows_do(own, "the drive", err,
                          "INSERT INTO drive_@_remote(item, parent, name, key, kind, state, bytes,"
                          " etag, ctag, mtime_s, round) VALUES(7, 1, CAST('owed' AS BLOB),"
                          " CAST('owed' AS BLOB), 0, 0, 1, 'e', 'c', 1, 1)"));
    TIDE_TRY(tide_drive_deletions_set(own, &deletion, 1, err));
    TIDE_TRY(tide_drive_conflict_add(own, &conflict, err));
    return tide_drive_owe(own, &owed, err);
}

/* A user of the assistant with one of each record. */
static tide_status assistant_add(tide_transaction *transaction, void *arg, tide_error *err)
{
    const tide_rows db = tide_transaction_rows(transaction);
    static const struct tide_assistant_user user = {
        .account = 1, .email = HOME_MAIL, .onboarded_ms = 1};
    static const struct tide_assistant_email email = {.account = 1,
                                                      .thread_id = "thread",
                                                      .message_id = "plain",
                                                      .subject = "<script>",
                                                      .status = TIDE_ASSISTANT_PENDING};
    static const struct tide_assistant_call call = {.account = 1,
                                                    .thread_id = "thread",
                                                    .key = "classify",
                                                    .kind = "classify",
                                                    .model = "m",
                                                    .prompt = {"<b>", 3},
                                                    .begun_ms = 1,
                                                    .error = ""};
    static const struct tide_assistant_run run = {.account = 1,
                                                  .thread_id = "thread",
                                                  .message_id = "plain",
                                                  .key = "agent",
                                                  .profile = "p",
                                                  .rule = "r",
                                                  .status = "running",
                                                  .tools = {"[]", 2},
                                                  .error = "",
                                                  .begun_ms = 1};
    uint64_t id = 0;
    bool ended = false;
    (void)arg;
    TIDE_TRY(tide_assistant_user_put(db, &user, err));
    TIDE_TRY(tide_assistant_email_put(db, &email, "classified", 1, err));
    TIDE_TRY(tide_assistant_call_begin(db, &call, &id, &ended, err));
    return tide_assistant_run_begin(db, &run, &id, err);
}

/* Wants of the running process: keys, a sign-in, a schedule. */
static void fill(void)
{
    struct cli_serve *serve = &home.both->serve;
    struct tide_secrets *secrets = home.both->resident.open.secrets;
    char name[TIDE_SECRET_NAME_BYTES_MAX];
    uint64_t now_unix_ms = tide_world_now_unix_ms(home.cli.world);
    size_t count = 0;
    for (int scope = TIDE_HTTPD_METRICS; scope <= TIDE_HTTPD_PAGE; scope++) {
        uint64_t id = 0;
        MUST(tide_keys_add(serve->keys, TIDE_TEXT("fuzz"), (tide_httpd_scope)scope, 0,
                           home.keys[scope], &id, &home.cli.err));
        home.secrets[count++] = home.keys[scope];
    }
    tide_mail_secret_name(HOME_MAIL, name);
    MUST(tide_secrets_put(secrets, name,
                          TIDE_TEXT("{\"v\":1,\"type\":\"fixed\",\"refresh_token\":\"" GRANT
                                    "\",\"access_token\":\"" BEARER "\",\"client_secret\":\"" GRANT
                                    "\"}"),
                          &home.cli.err));
    home.secrets[count++] = GRANT;
    home.secrets[count++] = BEARER;
    MUST(tide_transact(serve->engine, schedule_add, &now_unix_ms, &home.cli.err));
    MUST(tide_transact(serve->engine, drive_add, NULL, &home.cli.err));
    MUST(tide_transact(serve->engine, assistant_add, NULL, &home.cli.err));
}

static int copy_one(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    char to[PATH_BYTES * 2];
    (void)walk;
    const int used =
        snprintf(to, sizeof to, "%s/live%s", home.dir, path + strlen(home.dir) + strlen("/made"));
    TIDE_ASSERT(used > 0 && (size_t)used < sizeof to);
    if (type == FTW_D)
        return mkdir(to, 0700);
    if (!S_ISREG(info->st_mode))
        return 0;
    const int from_fd = open(path, O_RDONLY | O_CLOEXEC);
    const int to_fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, info->st_mode & 0777);
    TIDE_ASSERT(from_fd >= 0 && to_fd >= 0);
    for (off_t left = info->st_size; left > 0;) {
        const ssize_t copied = copy_file_range(from_fd, NULL, to_fd, NULL, (size_t)left, 0);
        TIDE_ASSERT(copied > 0);
        left -= copied;
    }
    return close(from_fd) | close(to_fd);
}

static void reset(void)
{
    serve_close();
    (void)temp_dir_remove(path_of("live"));
    TIDE_ASSERT(nftw(path_of("made"), copy_one, 16, FTW_PHYS) == 0);
    command_open("live");
    serve_open();
    look_open();
    home.version = home_version();
    home.dirty = false;
}

static void end(void)
{
    serve_close();
    (void)temp_dir_remove(home.dir);
}

/* Schedules of the engine itself would enqueue jobs while a GET is looked at; and each account is one
 * of its system. */
static const char settled[] = "DELETE FROM schedule;"
                              "UPDATE mail_account SET email = '" HOME_EMPTY "' WHERE account = 2;"
                              "UPDATE account SET provider = 'console' WHERE id > 2;"
                              "UPDATE console_account SET name = 'pau\"sed@example.com';";
/* An item that can be tried again: its kind has a handler. */
static const char bad_item[] =
    "INSERT INTO bad(account, kind, item, state, first_seen, last_tried, retries, reason)"
    " SELECT 1, kind.id, 'mail-1', bad.state, 1, 2, 3, 'x' FROM kind, bad"
    " WHERE kind.name = 'mail.fetch' AND bad.item = 'item-10' LIMIT 1;";

static void ledger_run(const char *sql)
{
    sqlite3 *db = NULL;
    TIDE_ASSERT(sqlite3_open(path_of("made/state.db"), &db) == SQLITE_OK);
    TIDE_ASSERT(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK && sqlite3_changes(db) > 0);
    (void)sqlite3_close(db);
}

static void make(void)
{
    /* In memory where that is possible: every POST is synced. */
    const char *const temps[] = {"/dev/shm", getenv("TMPDIR"), "/tmp"};
    for (size_t i = 0; i < 3; i++) {
        (void)snprintf(home.dir, sizeof home.dir, "%.100s/tidemark-fuzz-XXXXXX",
                       temps[i] == NULL ? "/tmp" : temps[i]);
        if (mkdtemp(home.dir) != NULL)
            break;
    }
    TIDE_ASSERT(mkdir(path_of("made"), 0700) == 0);
    /* Sign-ins go to files, and no setting comes from outside. */
    TIDE_ASSERT(clearenv() == 0 && setenv("TZ", "UTC", 1) == 0);
    (void)signal(SIGPIPE, SIG_IGN);
    command_open("made");
    full_ledger_make(home.cli.world, path_of("made/state.db"), JOBS);
    ledger_run(settled);
    archive_make(HOME_MAIL);
    archive_make(HOME_REMOVED);
    serve_open();
    fill();
    serve_close();
    ledger_run(bad_item);
    (void)atexit(end);
}

/* ---- for the target ---- */

struct cli_serve *home_open(void)
{
    if (home.dir[0] == '\0') {
        make();
        home.dirty = true;
    }
    if (home.dirty || home_version() != home.version)
        reset();
    return &home.both->serve;
}

const char *home_key(tide_httpd_scope scope)
{
    return scope == TIDE_HTTPD_NONE ? NULL : home.keys[scope];
}

const char *const *home_secrets(void)
{
    return home.secrets;
}

static uint64_t names_hash;

static uint64_t mix(uint64_t hash, const void *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ ((const unsigned char *)data)[i]) * UINT64_C(1099511628211);
    return hash;
}

/* The order of a directory is no matter; a log of a database comes and goes with its readers. */
static int name_one(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    const char *dash = strrchr(path + walk->base, '-');
    (void)info;
    if (type != FTW_D && (dash == NULL || (strcmp(dash, "-wal") != 0 && strcmp(dash, "-shm") != 0)))
        names_hash += mix(UINT64_C(14695981039346656037), path, strlen(path));
    return 0;
}

static uint64_t number(const char *sql)
{
    sqlite3_stmt *stmt = NULL;
    TIDE_ASSERT(sqlite3_prepare_v2(home.look, sql, -1, &stmt, NULL) == SQLITE_OK);
    TIDE_ASSERT(sqlite3_step(stmt) == SQLITE_ROW);
    const uint64_t found = (uint64_t)sqlite3_column_int64(stmt, 0);
    (void)sqlite3_finalize(stmt);
    return found;
}

uint64_t home_version(void)
{
    names_hash = 0;
    TIDE_ASSERT(nftw(path_of("live"), name_one, 16, FTW_PHYS) == 0);
    const uint64_t numbers[] = {names_hash, number("PRAGMA main.data_version"),
                                number("PRAGMA mail.data_version")};
    return mix(UINT64_C(14695981039346656037), numbers, sizeof numbers);
}
