/* users.c - the files of both users, here and online, and what is outside of the root. */
#include "transfer.h"

#include "drive/local/hash.h"
#include "support/heap.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

static void must(struct transfer_stage *stage, bool ok, const char *what)
{
    if (!ok)
        tide_sim_fail(stage->sim, "the test itself fails: %s", what);
}

/* ---- contents ---- */

void transfer_note(struct transfer_stage *stage, uint64_t bytes, const uint8_t *qxh)
{
    must(stage, stage->known_count < TRANSFER_KNOWN_MAX, "too many contents");
    struct transfer_known *known = &stage->known[stage->known_count++];
    known->bytes = bytes;
    memcpy(known->qxh, qxh, sizeof known->qxh);
}

bool transfer_is_known(const struct transfer_stage *stage, uint64_t bytes, const uint8_t *qxh)
{
    for (size_t i = 0; i < stage->known_count; i++)
        if (stage->known[i].bytes == bytes &&
            (bytes == 0 || memcmp(stage->known[i].qxh, qxh, sizeof stage->known[i].qxh) == 0))
            return true;
    return false;
}

/* New content: letters that no other content has. */
static char *content_new(struct transfer_stage *stage, uint64_t bytes)
{
    tide_rng rng = tide_rng_seeded(stage->seed * 1000 + ++stage->next_content);
    char *text = malloc((size_t)bytes + 9);
    must(stage, text != NULL, "no memory");
    for (uint64_t at = 0; at < bytes; at += 8) {
        const uint64_t word = tide_rng_next(&rng);
        for (unsigned i = 0; i < 8; i++)
            text[at + i] = (char)('a' + (word >> 8 * i) % 16);
    }
    text[bytes] = '\0';
    tide_quickxor hash = {.bytes = 0};
    uint8_t qxh[TIDE_QUICKXOR_BYTES];
    tide_quickxor_add(&hash, text, (size_t)bytes);
    tide_quickxor_end(&hash, qxh);
    transfer_note(stage, bytes, qxh);
    return text;
}

/* As an editor saves: a new file, renamed over the old one, with a time that no other has. */
void transfer_put_here(struct transfer_stage *stage, const char *name, uint64_t bytes)
{
    char *text = content_new(stage, bytes);
    const char *draft = textf("%s/draft", stage->dir), *path = textf("%s/d/%s", stage->root, name);
    const int file = open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    must(stage, file >= 0 && write(file, text, (size_t)bytes) == (ssize_t)bytes, "write a draft");
    const struct timespec times[2] = {{.tv_sec = 1700000000 + (time_t)stage->next_content},
                                      {.tv_sec = 1700000000 + (time_t)stage->next_content}};
    must(stage, futimens(file, times) == 0 && close(file) == 0, "close a draft");
    must(stage, rename(draft, path) == 0, "rename a draft");
    free(text);
}

void transfer_put_online(struct transfer_stage *stage, const char *name, uint64_t bytes)
{
    char *text = content_new(stage, bytes);
    tide_auto_buf body = tide_buf_heap((size_t)64 << 20);
    must(stage,
         tide_buf_print(&body, "{\"user\":\"me@example.org\",\"path\":\"d/%s\",\"content\":\"%s\"}",
                        name, text) == TIDE_OK,
         "no memory");
    json_decref(tide_sim_cloud_control(stage->cloud, stage->sim, "POST", "/_cloud/drive/put",
                                       tide_buf_text(&body)));
    free(text);
}

/* ---- the outside ---- */

void transfer_make_outside(struct transfer_stage *stage)
{
    must(stage, mkdir(stage->outside, 0700) == 0, "make the outside");
    const int file = open(textf("%s/secret", stage->outside), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    must(stage, file >= 0 && write(file, "secret", 6) == 6 && close(file) == 0, "write a secret");
}

/* The folder becomes a link to the outside, and later a folder again. */
void transfer_link_folder(struct transfer_stage *stage)
{
    const char *folder = textf("%s/d", stage->root), *away = textf("%s/away", stage->dir);
    if (stage->linked)
        must(stage, unlink(folder) == 0 && rename(away, folder) == 0, "put the folder back");
    else
        must(stage, rename(folder, away) == 0 && symlink(stage->outside, folder) == 0,
             "replace the folder by a link");
    stage->linked = !stage->linked;
}

static void check_outside(struct transfer_stage *stage)
{
    unsigned others = 0;
    char text[16] = "";
    DIR *list = opendir(stage->outside);
    must(stage, list != NULL, "list the outside");
    for (const struct dirent *entry; (entry = readdir(list)) != NULL;)
        others += entry->d_name[0] != '.' || strncmp(entry->d_name, ".tidemark", 9) == 0;
    (void)closedir(list);
    const int file = open(textf("%s/secret", stage->outside), O_RDONLY | O_CLOEXEC);
    const ssize_t count = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (file >= 0)
        (void)close(file);
    if (others != 1 || count != 6 || strcmp(text, "secret") != 0)
        tide_sim_fail(stage->sim, "DTR18: what is outside of the root was touched");
}

/* ---- the root ---- */

static void check_file(struct transfer_stage *stage, int dir, const char *name)
{
    struct tide_drive_content content;
    struct tide_entry entry;
    tide_error err = {TIDE_OK, 0, ""};
    must(stage, tide_drive_hash_file(dir, tide_text_of(name), &content, &entry, &err) == TIDE_OK,
         "hash a file");
    if (!transfer_is_known(stage, content.bytes, content.qxh))
        tide_sim_fail(stage->sim, "DTR7: %s has %" PRIu64 " bytes that no user wrote", name,
                      content.bytes);
}

void transfer_check_disk(struct transfer_stage *stage)
{
    check_outside(stage);
    const char *path = stage->linked ? textf("%s/away", stage->dir) : textf("%s/d", stage->root);
    DIR *list = opendir(path);
    must(stage, list != NULL, "list the folder");
    for (const struct dirent *entry; (entry = readdir(list)) != NULL;)
        if (entry->d_name[0] != '.')
            check_file(stage, dirfd(list), entry->d_name);
    (void)closedir(list);
}
