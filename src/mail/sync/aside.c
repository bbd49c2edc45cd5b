/* aside.c - sets aside shards that are damaged as files: they cannot be opened, or some pages
 * cannot be read (M19).
 *
 * A damaged file is never written to.  It is moved with its log into its own directory,
 * damaged-TIME, where it stays and can be opened as an archive.  Its readable messages are copied
 * into new shards, and then the directory gets a file COPIED: while that is missing, the next heal
 * resumes the copying. */
#include "mail/inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { DIRS_MAX = 256 };
#define PREFIX "damaged-"
#define COPIED "copied"

struct asides {
    tide_mail *mail;
    const char *dir;
    char to[4096 + 300];
    bool made;
    char shards[160];
    tide_error *err;
};

/* ---- moving ---- */

static tide_status move_files(struct asides *asides, const char *shard)
{
    static const char *const ends[] = {".db-wal", ".db-shm", ".db"};
    const size_t count = sizeof ends / sizeof ends[0];
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < count; i++) {
        char from[4096 + 400];
        char to[4096 + 400];
        tide_error own = {TIDE_OK, 0, ""};
        (void)snprintf(from, sizeof from, "%s/%s%s", asides->dir, shard, ends[i]);
        (void)snprintf(to, sizeof to, "%s/%s%s", asides->to, shard, ends[i]);
        rc = tide_file_rename(asides->mail->world, from, to, &own);
        if (rc != TIDE_OK && i + 1 == count && asides->err != NULL)
            *asides->err = own;
        else if (i + 1 < count)
            rc = TIDE_OK; /* there may be no log */
    }
    return rc;
}

static tide_status set_aside(struct asides *asides, const char *shard)
{
    tide_status rc = TIDE_OK;
    if (!asides->made)
        rc = tide_dir_make(asides->mail->world, asides->to, asides->err);
    asides->made = rc == TIDE_OK;
    if (rc == TIDE_OK)
        rc = move_files(asides, shard);
    const size_t bytes = strlen(asides->shards);
    if (rc == TIDE_OK)
        (void)snprintf(asides->shards + bytes, sizeof asides->shards - bytes, "%s%s.db",
                       bytes == 0 ? "" : ", ", shard);
    return rc;
}

struct damaged {
    char (*names)[32];
    size_t count;
    tide_mem *mem;
    size_t capacity;
};

static void note_damaged(const char *shard, tide_status why, const char *text, void *arg)
{
    struct damaged *damaged = arg;
    (void)text;
    if (why != TIDE_CORRUPT)
        return; /* not ours to move: a foreign file, or one of a newer version */
    for (size_t i = 0; i < damaged->count; i++)
        if (strcmp(damaged->names[i], shard) == 0)
            return;
    if (!TIDE_GROW_IN(damaged->mem, damaged->names, damaged->capacity, damaged->count + 1,
                      TIDE_ARCHIVE_SHARDS_MAX))
        return; /* the next heal finds it again */
    (void)snprintf(damaged->names[damaged->count++], sizeof *damaged->names, "%s", shard);
}

static tide_status move_damaged(struct asides *asides, const char *email, tide_error *err)
{
    tide_mail *mail = asides->mail;
    struct damaged damaged = {.mem = mail->mem};
    tide_archive *archive = NULL;
    const struct tide_archive_options options = {
        .dir = asides->dir, .account = email, .world = mail->world, .read_only = true};
    if (tide_archive_open(&options, mail->mem, &archive, NULL) != TIDE_OK)
        return TIDE_OK; /* there is no archive, or opening it for writing reports the error */
    tide_status rc = tide_archive_check(archive, note_damaged, &damaged, err);
    if (rc == TIDE_OK)
        rc = tide_archive_broken(archive, note_damaged, &damaged, err);
    const tide_status closed = tide_archive_close(archive, rc == TIDE_OK ? err : NULL);
    rc = rc == TIDE_OK ? closed : rc;
    for (size_t i = 0; rc == TIDE_OK && i < damaged.count; i++)
        rc = set_aside(asides, damaged.names[i]);
    tide_mem_free(mail->mem, damaged.names, damaged.capacity * sizeof *damaged.names);
    return rc;
}

/* ---- copying ---- */

struct dirs {
    char names[DIRS_MAX][64];
    size_t count;
};

static void note_dir(const char *name, void *arg)
{
    struct dirs *dirs = arg;
    if (strncmp(name, PREFIX, sizeof PREFIX - 1) == 0 && dirs->count < DIRS_MAX &&
        strlen(name) < sizeof dirs->names[0])
        (void)snprintf(dirs->names[dirs->count++], sizeof dirs->names[0], "%s", name);
}

static bool is_copied(tide_mail *mail, const char *mark)
{
    tide_auto_buf none = tide_buf_in(mail->mem, 256);
    const bool there = tide_file_read(mail->world, mark, 256, &none, NULL) == TIDE_OK;
    return there;
}

/* `archive` is opened for the first directory that needs it. */
static tide_status copy_dir(struct asides *asides, const char *email, const char *name,
                            tide_archive **archive, struct tide_salvaged *salvaged, tide_error *err)
{
    tide_mail *mail = asides->mail;
    char dir[4096 + 400];
    char mark[4096 + 420];
    const struct tide_archive_options options = {
        .dir = asides->dir, .account = email, .world = mail->world, .index_later = true};
    (void)snprintf(dir, sizeof dir, "%s/%s", asides->dir, name);
    (void)snprintf(mark, sizeof mark, "%s/%s", dir, COPIED);
    if (is_copied(mail, mark))
        return TIDE_OK;
    if (*archive == NULL)
        TIDE_TRY(tide_archive_open(&options, mail->mem, archive, err));
    TIDE_TRY(tide_archive_salvage(*archive, dir, salvaged, err));
    return tide_file_replace(
        mail->world, mark,
        TIDE_TEXT("The readable messages of these files are in the archive again.\n"), 0600, err);
}

static tide_status copy_all(struct asides *asides, const char *email,
                            struct tide_salvaged *salvaged, tide_error *err)
{
    tide_mail *mail = asides->mail;
    tide_archive *archive = NULL;
    struct dirs *dirs = tide_mem_new(mail->mem, sizeof *dirs);
    if (dirs == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for damaged shards");
    tide_status rc = tide_dir_list(mail->world, asides->dir, note_dir, dirs, err);
    if (rc == TIDE_NOT_FOUND)
        rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < dirs->count; i++)
        rc = copy_dir(asides, email, dirs->names[i], &archive, salvaged, err);
    const tide_status closed = tide_archive_close(archive, rc == TIDE_OK ? err : NULL);
    tide_mem_free(mail->mem, dirs, sizeof *dirs);
    return rc == TIDE_OK ? closed : rc;
}

tide_status tide_mail_set_aside(tide_mail *mail, const char *email, struct tide_mail_aside *aside,
                                tide_error *err)
{
    char dir[4096 + 256];
    struct tide_salvaged salvaged = {0};
    struct asides asides = {.mail = mail, .dir = dir, .err = err};
    tide_mail_dir(mail->archive_dir, email, dir, sizeof dir);
    (void)snprintf(asides.to, sizeof asides.to, "%s/" PREFIX "%" PRIu64, dir,
                   tide_world_now_unix_ms(mail->world));
    tide_status rc = move_damaged(&asides, email, err);
    if (rc == TIDE_OK)
        rc = copy_all(&asides, email, &salvaged, err);
    if (aside != NULL) {
        memcpy(aside->shards, asides.shards, sizeof aside->shards);
        (void)snprintf(aside->dir, sizeof aside->dir, "%s", asides.to);
        aside->copied = salvaged.copied;
        aside->unreadable = salvaged.unreadable;
    }
    return rc;
}
