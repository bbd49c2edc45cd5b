/* person_disk.c - what happens to the files of an archive while nothing runs. */
#include "person.h"

#include <sqlite3.h>
#include <string.h>

enum { SHARDS_MAX = 64, SHARD_BYTES_MAX = 64 << 20 };

struct shards {
    char names[SHARDS_MAX][40];
    size_t count;
};

static void note(const char *name, void *arg)
{
    struct shards *shards = arg;
    const size_t bytes = strlen(name);
    if (bytes > 3 && bytes < sizeof shards->names[0] && strcmp(name + bytes - 3, ".db") == 0 &&
        shards->count < SHARDS_MAX)
        memcpy(shards->names[shards->count++], name, bytes + 1);
}

static void dir_of(const struct person_account *account, char dir[120])
{
    (void)snprintf(dir, 120, PERSON_HOME "/archive/%s", account->email);
}

/* Of the newest year there is; false: there is none. */
static bool newest_shard(struct person *self, const struct person_account *account, char path[200])
{
    struct shards shards = {.count = 0};
    size_t newest = 0;
    char dir[120];
    dir_of(account, dir);
    if (tide_dir_list(self->world, dir, note, &shards, NULL) != TIDE_OK || shards.count == 0)
        return false;
    for (size_t i = 1; i < shards.count; i++)
        if (strcmp(shards.names[i], shards.names[newest]) > 0)
            newest = i;
    (void)snprintf(path, 200, "%s/%s", dir, shards.names[newest]);
    return true;
}

/* false: there is none. */
static bool some_shard(struct person *self, const struct person_account *account, char path[200])
{
    struct shards shards = {.count = 0};
    char dir[120];
    dir_of(account, dir);
    if (tide_dir_list(self->world, dir, note, &shards, NULL) != TIDE_OK || shards.count == 0)
        return false;
    (void)snprintf(path, 200, "%s/%s", dir, shards.names[tide_rng_below(&self->rng, shards.count)]);
    return true;
}

static void remove_logs(struct person *self, const char *path)
{
    char log[220];
    (void)snprintf(log, sizeof log, "%s-wal", path);
    (void)tide_sim_disk_remove(self->sim, log);
    (void)snprintf(log, sizeof log, "%s-shm", path);
    (void)tide_sim_disk_remove(self->sim, log);
}

static void replace(struct person *self, const char *path, tide_text bytes)
{
    tide_error err = {TIDE_OK, 0, ""};
    remove_logs(self, path);
    if (tide_file_replace(self->world, path, bytes, 0600, &err) != TIDE_OK)
        tide_sim_fail(self->sim, "a file of the test: %s", err.text);
}

static void read_file(struct person *self, const char *path, tide_buf *out)
{
    tide_error err = {TIDE_OK, 0, ""};
    tide_buf_clear(out);
    if (tide_file_read(self->world, path, SHARD_BYTES_MAX, out, &err) != TIDE_OK)
        tide_sim_fail(self->sim, "a file of the test: %s", err.text);
}

/* Whether all of a shard is in its file: after a kill it may be in the log, and the file empty. */
static bool is_whole(struct person *self, const char *path)
{
    char log[220];
    (void)snprintf(log, sizeof log, "%s-wal", path);
    return tide_sim_disk_file_bytes(self->sim, log) <= 0;
}

void person_disk_copy(struct person *self, struct person_account *account)
{
    char path[200];
    if (self->old_path[0] != '\0' || !newest_shard(self, account, path) || !is_whole(self, path))
        return;
    read_file(self, path, &self->old_shard);
    (void)snprintf(self->old_path, sizeof self->old_path, "%s", path);
}

/* ---- one by one ---- */

static bool lose_all(struct person *self, const struct person_account *account)
{
    char dir[120];
    char path[200];
    dir_of(account, dir);
    /* Without a shard nothing is lost. */
    return newest_shard(self, account, path) && tide_sim_disk_remove_dir(self->sim, dir);
}

static bool put_old(struct person *self, const struct person_account *account)
{
    char dir[120];
    dir_of(account, dir);
    if (self->old_path[0] == '\0' || strncmp(self->old_path, dir, strlen(dir)) != 0)
        return false;
    if (tide_sim_disk_file_bytes(self->sim, self->old_path) <= 0)
        return false;
    tide_buf now;
    tide_buf_init(&now, tide_mem_heap(), SHARD_BYTES_MAX);
    read_file(self, self->old_path, &now);
    const bool differs = !tide_text_equal(tide_buf_text(&now), tide_buf_text(&self->old_shard));
    tide_buf_done(&now);
    if (differs)
        replace(self, self->old_path, tide_buf_text(&self->old_shard));
    return differs;
}

static bool put_foreign(struct person *self, const char *path)
{
    char foreign[200];
    tide_buf bytes;
    if (!some_shard(self, &self->accounts[0], foreign) || !is_whole(self, foreign))
        return false;
    tide_buf_init(&bytes, tide_mem_heap(), SHARD_BYTES_MAX);
    read_file(self, foreign, &bytes);
    replace(self, path, tide_buf_text(&bytes));
    tide_buf_done(&bytes);
    return true;
}

static bool cut(struct person *self, const char *path)
{
    tide_buf bytes;
    tide_buf_init(&bytes, tide_mem_heap(), SHARD_BYTES_MAX);
    read_file(self, path, &bytes);
    const size_t kept = bytes.bytes / 2 / 4096 * 4096;
    if (kept > 0)
        replace(self, path, (tide_text){bytes.data, kept});
    tide_buf_done(&bytes);
    return kept > 0;
}

/* The bytes of a stored message change: of a blob, not of the structure of the file.  An empty
 * one has none. */
static bool damage(struct person *self, const struct person_account *account)
{
    static const char sql[] = "UPDATE content SET body = zeroblob(length(body)) WHERE id ="
                              " (SELECT max(id) FROM content WHERE length(body) > 0)";
    char path[200];
    sqlite3 *db = NULL;
    if (!some_shard(self, account, path))
        return false;
    const bool done = sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE,
                                      tide_world_vfs(self->world)) == SQLITE_OK &&
                      sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK &&
                      sqlite3_changes(db) == 1;
    (void)sqlite3_close(db);
    return done;
}

void person_disk_away(struct person *self, struct person_account *account)
{
    if (account->damaged_path[0] == '\0')
        return;
    remove_logs(self, account->damaged_path);
    (void)tide_sim_disk_remove(self->sim, account->damaged_path);
    account->damaged_path[0] = '\0';
}

bool person_disk_trouble(struct person *self, struct person_account *account,
                         enum person_trouble trouble)
{
    char path[200] = "";
    bool done = false;
    switch (trouble) {
    case PERSON_SHARD_LOST:
        done = some_shard(self, account, path);
        if (done) {
            remove_logs(self, path);
            (void)tide_sim_disk_remove(self->sim, path);
        }
        break;
    case PERSON_SHARD_EMPTY:
        done = some_shard(self, account, path);
        if (done)
            replace(self, path, TIDE_TEXT(""));
        break;
    case PERSON_SHARD_CUT:
        done = some_shard(self, account, path) && cut(self, path);
        break;
    case PERSON_SHARD_OLD:
    case PERSON_SHARD_ANCIENT:
        done = put_old(self, account);
        break;
    case PERSON_SHARD_FOREIGN:
        done = some_shard(self, account, path) && put_foreign(self, path);
        break;
    case PERSON_ARCHIVE_LOST:
        done = lose_all(self, account);
        break;
    default:
        TIDE_ASSERT(trouble == PERSON_DAMAGE);
        done = damage(self, account);
        break;
    }
    if (done) {
        account->damaged = true;
        account->spoilt = trouble == PERSON_DAMAGE;
        (void)snprintf(account->damaged_path, sizeof account->damaged_path, "%s", path);
        self->totals.troubles[trouble]++;
        tide_sim_note(self->sim, "disk: %s of %s", person_troubles[trouble], account->email);
    }
    return done;
}
