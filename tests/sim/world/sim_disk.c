#include "sim_disk.h"
#include "sim_disk_inside.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct tide_file_lock {
    char *path;
    char *holder;
    bool listed;
};

/* ---- contents ------------------------------------------------------------ */

static void content_done(struct sim_content *content)
{
    free(content->bytes);
    memset(content, 0, sizeof *content);
}

static void content_size(struct sim_content *content, size_t count)
{
    if (count > content->capacity) {
        size_t capacity = content->capacity < 4096 ? 4096 : content->capacity;
        while (capacity < count)
            capacity *= 2;
        content->bytes = sim_resize(content->bytes, content->capacity, capacity);
        content->capacity = capacity;
    }
    /* What was cut off before must not shine through a later hole. */
    if (count > content->count)
        memset(content->bytes + content->count, 0, count - content->count);
    content->count = count;
}

static void content_write(struct sim_content *content, uint64_t offset, const char *data,
                          size_t bytes)
{
    if (bytes == 0)
        return;
    if (offset + bytes > content->count)
        content_size(content, (size_t)offset + bytes);
    memcpy(content->bytes + offset, data, bytes);
}

static void content_copy(struct sim_content *to, const struct sim_content *from)
{
    content_size(to, 0);
    content_size(to, from->count);
    if (from->count > 0)
        memcpy(to->bytes, from->bytes, from->count);
}

/* ---- files --------------------------------------------------------------- */

struct sim_inode *sim_inode_new(struct sim_disk *disk)
{
    if (disk->inodes_count == disk->inodes_capacity) {
        size_t old_bytes = disk->inodes_capacity * sizeof *disk->inodes;
        size_t new_bytes = old_bytes == 0 ? 16 * sizeof *disk->inodes : 2 * old_bytes;
        disk->inodes = sim_resize(disk->inodes, old_bytes, new_bytes);
        disk->inodes_capacity = new_bytes / sizeof *disk->inodes;
    }
    struct sim_inode *inode = sim_alloc(sizeof *inode);
    inode->id = ++disk->sim->objects_ever;
    inode->references = 1;
    disk->inodes[disk->inodes_count++] = inode;
    return inode;
}

static void writes_clear(struct sim_inode *inode)
{
    for (size_t i = 0; i < inode->writes_count; i++)
        free(inode->writes[i]);
    inode->writes_count = 0;
}

void sim_inode_drop(struct sim_disk *disk, struct sim_inode *inode)
{
    if (inode == NULL || --inode->references > 0)
        return;
    size_t at = 0;
    while (disk->inodes[at] != inode)
        at++;
    memmove(disk->inodes + at, disk->inodes + at + 1,
            (disk->inodes_count - at - 1) * sizeof *disk->inodes);
    disk->inodes_count--;
    disk->bytes_used -= inode->seen.count;
    content_done(&inode->seen);
    content_done(&inode->durable);
    writes_clear(inode);
    free(inode->writes);
    sim_shm_drop(inode->shm);
    free(inode);
}

static void write_remember(struct sim_disk *disk, struct sim_inode *inode, const void *data,
                           size_t bytes, uint64_t offset, bool truncate)
{
    if (inode->writes_count == inode->writes_capacity) {
        size_t old_bytes = inode->writes_capacity * sizeof *inode->writes;
        size_t new_bytes = old_bytes == 0 ? 16 * sizeof *inode->writes : 2 * old_bytes;
        inode->writes = sim_resize(inode->writes, old_bytes, new_bytes);
        inode->writes_capacity = new_bytes / sizeof *inode->writes;
    }
    struct sim_write *item = sim_alloc(sizeof *item + bytes);
    item->order = ++disk->writes_ever;
    item->offset = offset;
    item->bytes = bytes;
    item->truncate = truncate;
    if (bytes > 0)
        memcpy(item->data, data, bytes);
    inode->writes[inode->writes_count++] = item;
}

static bool plan_fires(struct sim_fault_plan *plan, const char *path)
{
    if (plan->nth == 0)
        return false;
    size_t suffix_bytes = strlen(plan->suffix);
    size_t path_bytes = path == NULL ? 0 : strlen(path);
    if (suffix_bytes > 0 &&
        (path_bytes < suffix_bytes || strcmp(path + path_bytes - suffix_bytes, plan->suffix) != 0))
        return false;
    return --plan->nth == 0;
}

int sim_inode_write(struct sim_disk *disk, struct sim_inode *inode, const char *path,
                    const void *data, size_t bytes, uint64_t offset)
{
    tide_sim *sim = disk->sim;
    const struct tide_sim_disk_options *options = &sim->options.disk;

    if (plan_fires(&disk->write_plan, path) ||
        sim_fault(sim, &sim->disk_rng, options->write_error_per_million)) {
        disk->stats.faults++;
        return SQLITE_IOERR_WRITE;
    }
    uint64_t end = offset + bytes;
    uint64_t growth = end > inode->seen.count ? end - inode->seen.count : 0;
    if ((growth > 0 && disk->bytes_used + growth > disk->bytes_max) ||
        sim_fault(sim, &sim->disk_rng, options->full_per_million)) {
        disk->stats.faults++;
        return SQLITE_FULL;
    }
    content_write(&inode->seen, offset, data, bytes);
    disk->bytes_used += growth;
    write_remember(disk, inode, data, bytes, offset, false);
    disk->stats.writes++;
    disk->stats.bytes_written += bytes;
    return SQLITE_OK;
}

int sim_inode_truncate(struct sim_disk *disk, struct sim_inode *inode, uint64_t size)
{
    if (size > inode->seen.count && disk->bytes_used + size - inode->seen.count > disk->bytes_max)
        return SQLITE_FULL;
    disk->bytes_used = disk->bytes_used - inode->seen.count + size;
    content_size(&inode->seen, (size_t)size);
    write_remember(disk, inode, NULL, 0, size, true);
    return SQLITE_OK;
}

static void write_apply(struct sim_inode *inode, const struct sim_write *item)
{
    if (item->truncate)
        content_size(&inode->durable, (size_t)item->offset);
    else
        content_write(&inode->durable, item->offset, item->data, item->bytes);
}

/* Makes durable what was written up to `order`, or loses it (SDSK3): then a few
 * may have got through before the device failed. */
static void writes_settle(struct sim_disk *disk, struct sim_inode *inode, uint64_t order, bool fail)
{
    size_t done = 0;
    while (done < inode->writes_count && inode->writes[done]->order <= order) {
        if (!fail || tide_rng_chance(&disk->sim->disk_rng, 1, 4))
            write_apply(inode, inode->writes[done]);
        free(inode->writes[done]);
        done++;
    }
    inode->writes_count -= done;
    if (inode->writes_count > 0)
        memmove(inode->writes, inode->writes + done, inode->writes_count * sizeof *inode->writes);
}

/* ---- names --------------------------------------------------------------- */

static struct sim_name *name_find(struct sim_disk *disk, const char *path)
{
    for (size_t i = 0; i < disk->names_count; i++)
        if (strcmp(disk->names[i].path, path) == 0)
            return &disk->names[i];
    return NULL;
}

static struct sim_inode *name_inode(const struct sim_name *name)
{
    return name->versions[name->versions_count - 1];
}

struct sim_inode *sim_disk_find(struct sim_disk *disk, const char *path)
{
    struct sim_name *name = name_find(disk, path);
    return name == NULL ? NULL : name_inode(name);
}

static bool dir_exists(const struct sim_disk *disk, const char *path, size_t bytes)
{
    if (bytes == 0)
        return true; /* "/" */
    for (size_t i = 0; i < disk->dirs_count; i++)
        if (strlen(disk->dirs[i]) == bytes && memcmp(disk->dirs[i], path, bytes) == 0)
            return true;
    return false;
}

static bool parent_exists(const struct sim_disk *disk, const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL || dir_exists(disk, path, (size_t)(slash - path));
}

static struct sim_name *name_add(struct sim_disk *disk, const char *path)
{
    if (disk->names_count == disk->names_capacity) {
        size_t old_bytes = disk->names_capacity * sizeof *disk->names;
        size_t new_bytes = old_bytes == 0 ? 16 * sizeof *disk->names : 2 * old_bytes;
        disk->names = sim_resize(disk->names, old_bytes, new_bytes);
        disk->names_capacity = new_bytes / sizeof *disk->names;
    }
    struct sim_name *name = &disk->names[disk->names_count++];
    name->path = sim_copy_text(path);
    name->versions_capacity = 4;
    name->versions = sim_alloc(name->versions_capacity * sizeof *name->versions);
    name->versions_count = 1; /* durably, there is no such file */
    return name;
}

/* Takes over one reference to `inode`. */
static void name_set(struct sim_name *name, struct sim_inode *inode)
{
    if (name->versions_count == name->versions_capacity) {
        size_t old_bytes = name->versions_capacity * sizeof *name->versions;
        name->versions = sim_resize(name->versions, old_bytes, 2 * old_bytes);
        name->versions_capacity *= 2;
    }
    name->versions[name->versions_count++] = inode;
}

/* Keeps one version, which is durable from now on. */
static void name_settle(struct sim_disk *disk, struct sim_name *name, size_t version)
{
    struct sim_inode *kept = name->versions[version];
    for (size_t i = 0; i < name->versions_count; i++)
        if (i != version)
            sim_inode_drop(disk, name->versions[i]);
    name->versions[0] = kept;
    name->versions_count = 1;
}

static void names_settle_for(struct sim_disk *disk, const struct sim_inode *inode)
{
    for (size_t i = 0; i < disk->names_count; i++)
        if (name_inode(&disk->names[i]) == inode)
            name_settle(disk, &disk->names[i], disk->names[i].versions_count - 1);
}

void sim_disk_sync_dir(struct sim_disk *disk, const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t dir_bytes = slash == NULL ? 0 : (size_t)(slash - path) + 1;
    for (size_t i = 0; i < disk->names_count; i++) {
        struct sim_name *name = &disk->names[i];
        if (strncmp(name->path, path, dir_bytes) == 0 &&
            strchr(name->path + dir_bytes, '/') == NULL)
            name_settle(disk, name, name->versions_count - 1);
    }
}

struct sim_inode *sim_disk_create(struct sim_disk *disk, const char *path)
{
    if (!parent_exists(disk, path))
        return NULL;
    struct sim_name *name = name_find(disk, path);
    if (name == NULL)
        name = name_add(disk, path);
    if (name_inode(name) == NULL)
        name_set(name, sim_inode_new(disk));
    return name_inode(name);
}

void sim_disk_unlink(struct sim_disk *disk, const char *path, bool durable)
{
    struct sim_name *name = name_find(disk, path);
    if (name == NULL)
        return;
    if (name_inode(name) != NULL)
        name_set(name, NULL);
    if (durable)
        sim_disk_sync_dir(disk, path);
}

/* ---- syncing ------------------------------------------------------------- */

static tide_status wait_for_disk(struct sim_disk *disk)
{
    tide_sim *sim = disk->sim;
    uint64_t latency_us = tide_rng_below(&sim->disk_rng, sim->options.disk.sync_us_max + 1u);
    return sim_block(sim, SIM_WAIT_DISK, NULL, 0, sim->now_us + latency_us, NULL);
}

int sim_inode_sync(struct sim_disk *disk, struct sim_inode *inode, const char *path)
{
    tide_sim *sim = disk->sim;
    if (sim->current->locks_held > 0)
        sim->stats.locks_over_sync++;
    sim_step(sim, SIM_OP_SYNC, inode->id, path);
    if (sim->dead)
        return SQLITE_IOERR_FSYNC;

    /* Others write while this waits; what they write is not covered (SDSK2). */
    const uint64_t order = disk->writes_ever;
    inode->references++;
    tide_status rc = wait_for_disk(disk);
    int sql = SQLITE_IOERR_FSYNC;
    if (rc != TIDE_STOPPED) {
        bool fail = plan_fires(&disk->sync_plan, path) ||
                    sim_fault(sim, &sim->disk_rng, sim->options.disk.sync_error_per_million);
        writes_settle(disk, inode, order, fail);
        disk->stats.syncs++;
        disk->stats.syncs_failed += fail;
        if (!fail) {
            names_settle_for(disk, inode);
            sql = SQLITE_OK;
        }
    }
    sim_inode_drop(disk, inode);
    return sql;
}

/* ---- crash --------------------------------------------------------------- */

/* Half the files are nearly lucky or nearly lost, so that the first and the
 * last writes of a long list also meet an odd fate alone. */
static void write_toss(struct sim_disk *disk, struct sim_inode *inode, const struct sim_write *item,
                       uint32_t keep_percent)
{
    tide_rng *rng = &disk->sim->disk_rng;
    if (!item->truncate && item->bytes > 1 && tide_rng_chance(rng, 1, 6)) {
        disk->stats.torn++;
        uint64_t at = 0;
        while (at < item->bytes) {
            uint64_t left_in_sector = SIM_SECTOR_BYTES - (item->offset + at) % SIM_SECTOR_BYTES;
            uint64_t part = item->bytes - at < left_in_sector ? item->bytes - at : left_in_sector;
            uint64_t kept = tide_rng_chance(rng, 1, 2) ? part : 0;
            if (tide_rng_chance(rng, 1, 16))
                kept = tide_rng_below(rng, part + 1); /* torn inside the sector */
            content_write(&inode->durable, item->offset + at, item->data + at, (size_t)kept);
            at += part;
        }
    } else if (tide_rng_chance(rng, keep_percent, 100)) {
        disk->stats.kept++;
        write_apply(inode, item);
    } else {
        disk->stats.dropped++;
    }
}

static void inode_lose_power(struct sim_disk *disk, struct sim_inode *inode)
{
    static const uint32_t moods[] = {0, 5, 50, 50, 95, 100};
    tide_rng *rng = &disk->sim->disk_rng;
    uint32_t keep_percent = moods[tide_rng_below(rng, sizeof moods / sizeof *moods)];
    for (size_t i = 0; i < inode->writes_count; i++)
        write_toss(disk, inode, inode->writes[i], keep_percent);
    writes_clear(inode);
    disk->bytes_used -= inode->seen.count;
    content_copy(&inode->seen, &inode->durable);
    disk->bytes_used += inode->seen.count;
}

void sim_disk_reboot(struct sim_disk *disk, bool forgets)
{
    if (forgets) {
        for (size_t i = 0; i < disk->names_count; i++) {
            struct sim_name *name = &disk->names[i];
            if (name->versions_count > 1)
                name_settle(disk, name,
                            (size_t)tide_rng_below(&disk->sim->disk_rng, name->versions_count));
        }
        for (size_t i = 0; i < disk->inodes_count; i++)
            inode_lose_power(disk, disk->inodes[i]);
    }
    for (size_t i = 0; i < disk->inodes_count; i++) {
        struct sim_inode *inode = disk->inodes[i];
        inode->shared_count = 0;
        inode->reserved = NULL;
        inode->pending = NULL;
        inode->exclusive = NULL;
        sim_shm_drop(inode->shm);
        inode->shm = NULL;
    }
    for (size_t i = 0; i < disk->locks_count; i++)
        disk->locks[i]->listed = false; /* the process that held it is gone */
    disk->locks_count = 0;
}

/* ---- create and free ---------------------------------------------------- */

struct sim_disk *sim_disk_new(tide_sim *sim)
{
    struct sim_disk *disk = sim_alloc(sizeof *disk);
    disk->sim = sim;
    disk->bytes_max = sim->options.disk.bytes_max;
    /* SQLite's generator belongs to the process, not to a VFS; this makes its
     * salts and nonces start again from the seed. */
    int prng_seed = (int)(tide_rng_next(&sim->disk_rng) >> 34) | 1;
    TIDE_ASSERT(sqlite3_initialize() == SQLITE_OK);
    (void)sqlite3_test_control(SQLITE_TESTCTRL_PRNG_SEED, prng_seed, NULL);
    sim_vfs_register(disk);
    return disk;
}

void sim_disk_free(struct sim_disk *disk)
{
    (void)sqlite3_vfs_unregister(&disk->vfs);
    for (size_t i = 0; i < disk->names_count; i++) {
        name_settle(disk, &disk->names[i], 0);
        sim_inode_drop(disk, disk->names[i].versions[0]);
        free(disk->names[i].versions);
        free(disk->names[i].path);
    }
    if (disk->inodes_count > 0)
        tide_sim_fail(disk->sim, "%zu file(s) are still open at the end", disk->inodes_count);
    for (size_t i = 0; i < disk->dirs_count; i++)
        free(disk->dirs[i]);
    free(disk->dirs);
    free(disk->names);
    free(disk->inodes);
    free(disk->locks);
    free(disk);
}

/* ---- the world's files --------------------------------------------------- */

static tide_status stopped(tide_error *err, const char *path)
{
    return tide_error_set(err, TIDE_STOPPED, "%s: the world is dead", path);
}

static tide_status status_of_sql(int sql, const char *what, const char *path, tide_error *err)
{
    if (sql == SQLITE_OK)
        return TIDE_OK;
    if (sql == SQLITE_FULL)
        return tide_error_set(err, TIDE_DISK_FULL, "%s %s: no space left", what, path);
    return tide_error_set(err, TIDE_IO, "%s %s: input/output error", what, path);
}

tide_status sim_file_read(tide_world *world, const char *path, size_t bytes_max, tide_buf *out,
                          tide_error *err)
{
    tide_sim *sim = sim_of(world);
    sim_step(sim, SIM_OP_FILE, 0, path);
    if (sim->dead)
        return stopped(err, path);
    struct sim_inode *inode = sim_disk_find(sim->disk, path);
    if (inode == NULL)
        return tide_error_set(err, TIDE_NOT_FOUND, "read %s: no such file", path);
    if (inode->seen.count > bytes_max)
        return tide_error_set(err, TIDE_FULL, "read %s: more than %zu bytes", path, bytes_max);
    tide_status rc = tide_buf_add(out, inode->seen.bytes, inode->seen.count);
    return rc == TIDE_OK ? rc : tide_error_set(err, rc, "read %s", path);
}

/* The steps of a careful program: a new file, written and synced, takes the
 * old one's name; then the directory is synced.  Until then a toss decides
 * which of the two is found after a power loss. */
tide_status sim_file_replace(tide_world *world, const char *path, tide_text content, unsigned mode,
                             tide_error *err)
{
    tide_sim *sim = sim_of(world);
    struct sim_disk *disk = sim->disk;
    (void)mode; /* there is one user here */
    sim_step(sim, SIM_OP_FILE, content.bytes, path);
    if (sim->dead)
        return stopped(err, path);
    if (!parent_exists(disk, path))
        return tide_error_set(err, TIDE_IO, "create %s: no such directory", path);

    struct sim_inode *inode = sim_inode_new(disk);
    int sql = sim_inode_write(disk, inode, path, content.data, content.bytes, 0);
    if (sql == SQLITE_OK)
        sql = sim_inode_sync(disk, inode, path);
    if (sql != SQLITE_OK) {
        sim_inode_drop(disk, inode);
        return sim->dead ? stopped(err, path) : status_of_sql(sql, "write", path, err);
    }
    struct sim_name *name = name_find(disk, path);
    if (name == NULL)
        name = name_add(disk, path);
    name_set(name, inode);
    if (wait_for_disk(disk) == TIDE_STOPPED)
        return stopped(err, path);
    sim_disk_sync_dir(disk, path);
    return TIDE_OK;
}

tide_status sim_file_remove(tide_world *world, const char *path, tide_error *err)
{
    tide_sim *sim = sim_of(world);
    sim_step(sim, SIM_OP_FILE, 0, path);
    if (sim->dead)
        return stopped(err, path);
    if (sim_disk_find(sim->disk, path) == NULL)
        return tide_error_set(err, TIDE_NOT_FOUND, "remove %s: no such file", path);
    sim_disk_unlink(sim->disk, path, false);
    if (wait_for_disk(sim->disk) == TIDE_STOPPED)
        return stopped(err, path);
    sim_disk_sync_dir(sim->disk, path);
    return TIDE_OK;
}

tide_status sim_file_rename(tide_world *world, const char *path, const char *to, tide_error *err)
{
    tide_sim *sim = sim_of(world);
    sim_step(sim, SIM_OP_FILE, 0, path);
    if (sim->dead)
        return stopped(err, path);
    struct sim_inode *inode = sim_disk_find(sim->disk, path);
    if (inode == NULL)
        return tide_error_set(err, TIDE_NOT_FOUND, "rename %s: no such file", path);
    if (sim_disk_find(sim->disk, to) != NULL)
        return tide_error_set(err, TIDE_EXISTS, "rename %s: %s is there", path, to);
    struct sim_name *name = name_find(sim->disk, to);
    if (name == NULL)
        name = name_add(sim->disk, to);
    inode->references++;
    name_set(name, inode);
    sim_disk_unlink(sim->disk, path, false);
    if (wait_for_disk(sim->disk) == TIDE_STOPPED)
        return stopped(err, path);
    sim_disk_sync_dir(sim->disk, to);
    return TIDE_OK;
}

/* What a failed sync lost is seen until the cache is dropped (SDSK3); then it is not. */
tide_status sim_file_forget(tide_world *world, const char *path, tide_error *err)
{
    tide_sim *sim = sim_of(world);
    struct sim_disk *disk = sim->disk;
    sim_step(sim, SIM_OP_FILE, 0, path);
    if (sim->dead)
        return stopped(err, path);
    struct sim_inode *inode = sim_disk_find(disk, path);
    if (inode == NULL)
        return tide_error_set(err, TIDE_NOT_FOUND, "sync %s: no such file", path);
    inode->references++;
    const int sql = sim_inode_sync(disk, inode, path);
    if (sql == SQLITE_OK) {
        disk->bytes_used -= inode->seen.count;
        content_copy(&inode->seen, &inode->durable);
        for (size_t i = 0; i < inode->writes_count; i++) { /* of others, meanwhile */
            const struct sim_write *item = inode->writes[i];
            if (item->truncate)
                content_size(&inode->seen, (size_t)item->offset);
            else
                content_write(&inode->seen, item->offset, item->data, item->bytes);
        }
        disk->bytes_used += inode->seen.count;
    }
    sim_inode_drop(disk, inode);
    if (sql != SQLITE_OK)
        return sim->dead ? stopped(err, path) : status_of_sql(sql, "sync", path, err);
    return TIDE_OK;
}

/* With all its parents.  Directories are durable at once: no rule of ours
 * hangs on losing one. */
tide_status sim_dir_make(tide_world *world, const char *path, tide_error *err)
{
    tide_sim *sim = sim_of(world);
    struct sim_disk *disk = sim->disk;
    sim_step(sim, SIM_OP_FILE, 0, path);
    if (sim->dead)
        return stopped(err, path);
    if (path[0] != '/')
        return tide_error_set(err, TIDE_INVALID, "%s: not an absolute path", path);
    for (size_t end = 1; end <= strlen(path); end++) {
        if ((path[end] != '/' && path[end] != '\0') || dir_exists(disk, path, end))
            continue;
        disk->dirs = sim_resize(disk->dirs, disk->dirs_count * sizeof *disk->dirs,
                                (disk->dirs_count + 1) * sizeof *disk->dirs);
        char *dir = sim_copy_text(path);
        dir[end] = '\0';
        disk->dirs[disk->dirs_count++] = dir;
    }
    return TIDE_OK;
}

/* Files only, in the order in which their names first appeared. */
tide_status sim_dir_list(tide_world *world, const char *path,
                         void (*visit)(const char *name, void *arg), void *arg, tide_error *err)
{
    tide_sim *sim = sim_of(world);
    struct sim_disk *disk = sim->disk;
    sim_step(sim, SIM_OP_FILE, 0, path);
    if (sim->dead)
        return stopped(err, path);
    size_t bytes = strlen(path);
    while (bytes > 0 && path[bytes - 1] == '/')
        bytes--;
    if (!dir_exists(disk, path, bytes))
        return tide_error_set(err, TIDE_NOT_FOUND, "%s: no such directory", path);
    for (size_t i = 0; i < disk->names_count; i++) {
        const char *name = disk->names[i].path;
        if (strncmp(name, path, bytes) == 0 && name[bytes] == '/' &&
            strchr(name + bytes + 1, '/') == NULL && name_inode(&disk->names[i]) != NULL)
            visit(name + bytes + 1, arg);
    }
    return TIDE_OK;
}

tide_status sim_disk_room_left(tide_world *world, const char *path, uint64_t *bytes_out,
                               tide_error *err)
{
    tide_sim *sim = sim_of(world);
    struct sim_disk *disk = sim->disk;
    if (sim->dead)
        return stopped(err, path);
    *bytes_out = disk->bytes_max > disk->bytes_used ? disk->bytes_max - disk->bytes_used : 0;
    return TIDE_OK;
}

tide_status sim_file_lock(tide_world *world, const char *path, tide_text holder,
                          tide_file_lock **lock_out, tide_error *err)
{
    tide_sim *sim = sim_of(world);
    struct sim_disk *disk = sim->disk;
    sim_step(sim, SIM_OP_FILE_LOCK, 0, path);
    if (sim->dead)
        return stopped(err, path);
    for (size_t i = 0; i < disk->locks_count; i++)
        if (strcmp(disk->locks[i]->path, path) == 0)
            return tide_error_set(err, TIDE_BUSY, "%s", disk->locks[i]->holder);
    struct sim_inode *inode = sim_disk_create(disk, path);
    if (inode == NULL)
        return tide_error_set(err, TIDE_IO, "lock %s: no such directory", path);
    int sql = sim_inode_truncate(disk, inode, 0);
    if (sql == SQLITE_OK)
        sql = sim_inode_write(disk, inode, path, holder.data, holder.bytes, 0);
    if (sql != SQLITE_OK)
        return status_of_sql(sql, "write", path, err);

    if (disk->locks_count == disk->locks_capacity) {
        size_t old_bytes = disk->locks_capacity * sizeof *disk->locks;
        size_t new_bytes = old_bytes == 0 ? 8 * sizeof *disk->locks : 2 * old_bytes;
        disk->locks = sim_resize(disk->locks, old_bytes, new_bytes);
        disk->locks_capacity = new_bytes / sizeof *disk->locks;
    }
    tide_file_lock *lock = sim_alloc(sizeof *lock);
    lock->path = sim_copy_text(path);
    lock->holder = sim_alloc(holder.bytes + 1);
    if (holder.bytes > 0)
        memcpy(lock->holder, holder.data, holder.bytes);
    lock->listed = true;
    disk->locks[disk->locks_count++] = lock;
    *lock_out = lock;
    return TIDE_OK;
}

void sim_file_unlock(tide_world *world, tide_file_lock *lock)
{
    if (lock == NULL)
        return;
    tide_sim *sim = sim_of(world);
    struct sim_disk *disk = sim->disk;
    sim_step(sim, SIM_OP_FILE_LOCK, 1, lock->path);
    for (size_t i = 0; lock->listed && i < disk->locks_count; i++) {
        if (disk->locks[i] == lock) {
            disk->locks[i] = disk->locks[--disk->locks_count];
            lock->listed = false;
        }
    }
    free(lock->path);
    free(lock->holder);
    free(lock);
}

/* ---- for tests ----------------------------------------------------------- */

const char *sim_disk_vfs(tide_world *world)
{
    return sim_of(world)->disk->vfs_name;
}

struct tide_sim_disk_stats tide_sim_disk_stats(tide_sim *sim)
{
    return sim->disk->stats;
}

void tide_sim_disk_room(tide_sim *sim, uint64_t bytes_max)
{
    sim->disk->bytes_max = bytes_max;
}

uint64_t tide_sim_disk_used(tide_sim *sim)
{
    return sim->disk->bytes_used;
}

static void plan_set(struct sim_fault_plan *plan, const char *path, uint32_t nth)
{
    (void)snprintf(plan->suffix, sizeof plan->suffix, "%s", path == NULL ? "" : path);
    plan->nth = nth;
}

void tide_sim_disk_fail_write(tide_sim *sim, const char *path, uint32_t nth)
{
    plan_set(&sim->disk->write_plan, path, nth);
}

void tide_sim_disk_fail_sync(tide_sim *sim, const char *path, uint32_t nth)
{
    plan_set(&sim->disk->sync_plan, path, nth);
}

bool tide_sim_disk_rot(tide_sim *sim, const char *path)
{
    struct sim_inode *inode = sim_disk_find(sim->disk, path);
    if (inode == NULL || inode->seen.count == 0)
        return false;
    uint64_t bit = tide_rng_below(&sim->disk_rng, inode->seen.count * 8);
    inode->seen.bytes[bit / 8] ^= (char)(1 << (bit % 8));
    if (bit / 8 < inode->durable.count)
        inode->durable.bytes[bit / 8] = inode->seen.bytes[bit / 8];
    return true;
}

bool tide_sim_disk_remove(tide_sim *sim, const char *path)
{
    if (sim_disk_find(sim->disk, path) == NULL)
        return false;
    sim_disk_unlink(sim->disk, path, true);
    return true;
}

/* Whether a path is the directory or below it. */
static bool is_in(const char *path, const char *dir)
{
    const size_t bytes = strlen(dir);
    return strncmp(path, dir, bytes) == 0 && (path[bytes] == '/' || path[bytes] == '\0');
}

bool tide_sim_disk_remove_dir(tide_sim *sim, const char *path)
{
    struct sim_disk *disk = sim->disk;
    bool removed = false;
    for (size_t i = disk->names_count; i > 0; i--)
        if (is_in(disk->names[i - 1].path, path))
            removed = tide_sim_disk_remove(sim, disk->names[i - 1].path) || removed;
    size_t kept = 0;
    for (size_t i = 0; i < disk->dirs_count; i++) {
        if (is_in(disk->dirs[i], path))
            free(disk->dirs[i]);
        else
            disk->dirs[kept++] = disk->dirs[i];
    }
    removed = removed || kept < disk->dirs_count;
    disk->dirs_count = kept;
    return removed;
}

int64_t tide_sim_disk_file_bytes(tide_sim *sim, const char *path)
{
    struct sim_inode *inode = sim_disk_find(sim->disk, path);
    return inode == NULL ? -1 : (int64_t)inode->seen.count;
}
