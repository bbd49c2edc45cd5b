/* sim_disk_inside.h - the disk's files, shared by sim_disk.c (contents, names,
 * crashes, the world's file operations) and sim_vfs.c (SQLite's view). */
#ifndef TIDE_SIM_DISK_INSIDE_H
#define TIDE_SIM_DISK_INSIDE_H

#include "sim_inside.h"

#include <sqlite3.h>

enum {
    SIM_SECTOR_BYTES = 512,
    SIM_SHM_SLOTS = SQLITE_SHM_NLOCK,
    SIM_SHM_REGIONS_MAX = 1024,
};

struct sim_content {
    char *bytes;
    size_t count;
    size_t capacity;
};

/* A write or a truncation that no sync has covered yet. */
struct sim_write {
    uint64_t order;
    uint64_t offset; /* of a truncation: the new size */
    size_t bytes;
    bool truncate;
    char data[];
};

/* Shared memory outlives the inode's interest in it: a handle of an earlier
 * life may still look at it until it is closed. */
struct sim_shm {
    uint32_t references; /* the inode's and the handles' */
    void *regions[SIM_SHM_REGIONS_MAX];
    size_t regions_count;
    uint32_t shared[SIM_SHM_SLOTS];
    bool exclusive[SIM_SHM_SLOTS];
};

struct sim_inode {
    uint32_t references; /* versions of names, and handles */
    uint64_t id;
    struct sim_content seen;
    struct sim_content durable;
    struct sim_write **writes; /* in order */
    size_t writes_count;
    size_t writes_capacity;
    /* SQLite's file locks, by handle */
    uint32_t shared_count;
    const void *reserved;
    const void *pending;
    const void *exclusive;
    struct sim_shm *shm;
};

/* versions[0] is what the directory durably says, the last is what is seen;
 * NULL stands for "no such file". */
struct sim_name {
    char *path;
    struct sim_inode **versions;
    size_t versions_count;
    size_t versions_capacity;
};

struct sim_fault_plan {
    char suffix[64];
    uint32_t nth; /* 0: none */
};

struct sim_disk {
    tide_sim *sim;
    struct sim_name *names;
    size_t names_count;
    size_t names_capacity;
    char **dirs;
    size_t dirs_count;
    struct sim_inode **inodes; /* all that live */
    size_t inodes_count;
    size_t inodes_capacity;
    tide_file_lock **locks;
    size_t locks_count;
    size_t locks_capacity;
    uint64_t writes_ever;
    uint64_t bytes_used;
    uint64_t bytes_max;
    struct sim_fault_plan write_plan;
    struct sim_fault_plan sync_plan;
    struct tide_sim_disk_stats stats;
    sqlite3_vfs vfs;
    char vfs_name[64];
};

/* NULL: no such name, or no such file. */
struct sim_inode *sim_disk_find(struct sim_disk *disk, const char *path);
/* Creates the file when it is missing.  NULL: its directory is missing. */
struct sim_inode *sim_disk_create(struct sim_disk *disk, const char *path);
/* A file without a name. */
struct sim_inode *sim_inode_new(struct sim_disk *disk);
void sim_inode_drop(struct sim_disk *disk, struct sim_inode *inode);
/* The name is gone; durable at once or by a toss. */
void sim_disk_unlink(struct sim_disk *disk, const char *path, bool durable);

/* What the directory of `path` says now is durable. */
void sim_disk_sync_dir(struct sim_disk *disk, const char *path);

/* SQLite result codes, for both fronts. */
int sim_inode_write(struct sim_disk *disk, struct sim_inode *inode, const char *path,
                    const void *data, size_t bytes, uint64_t offset);
int sim_inode_truncate(struct sim_disk *disk, struct sim_inode *inode, uint64_t size);
int sim_inode_sync(struct sim_disk *disk, struct sim_inode *inode, const char *path);

void sim_shm_drop(struct sim_shm *shm);
/* Gives the disk's VFS its name and registers it. */
void sim_vfs_register(struct sim_disk *disk);

#endif
