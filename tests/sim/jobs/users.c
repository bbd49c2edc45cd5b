/* users.c - users on both sides, and the troubles of the server. */
#include "jobs.h"

#include "base/encode.h"
#include "drive/local/hash.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { POOL = 10, FOLDERS = 3 };

/* ---- contents: each is made once ---- */

static const char *new_text(struct jobs_stage *stage)
{
    struct tide_drive_hasher hasher = {.quick = {.bytes = 0}};
    struct tide_drive_content content;
    tide_error err;
    static char text[64];
    if (stage->texts == JOBS_TEXTS_MAX)
        tide_sim_fail(stage->f->sim, "too many texts");
    (void)snprintf(text, sizeof text, "text %zu of %d", stage->texts, (int)stage->seed);
    OK(tide_drive_hasher_begin(&hasher, &err));
    tide_drive_hasher_add(&hasher, text, strlen(text));
    OK(tide_drive_hasher_end(&hasher, &content, &err));
    tide_drive_hasher_done(&hasher);
    tide_buf hash = heap_buf(256);
    OK(tide_base64_add(&hash, (tide_text){(const char *)content.qxh, sizeof content.qxh},
                       tide_base64_standard, true));
    (void)snprintf(stage->hashes[stage->texts++], JOBS_HASH_BYTES, "%s", tide_buf_cstr(&hash));
    tide_buf_done(&hash);
    return text;
}

bool jobs_is_known(const struct jobs_stage *stage, const char *hash)
{
    for (size_t i = 0; i < stage->texts; i++)
        if (strcmp(stage->hashes[i], hash) == 0)
            return true;
    return false;
}

/* The hash of the file at a path of a tree, in `hash`; false: there is none. */
static bool hash_at(const char *tree, const char *path, char hash[JOBS_HASH_BYTES])
{
    char end[160];
    (void)snprintf(end, sizeof end, " %s\n", path);
    const char *at = strstr(tree, end);
    if (at == NULL)
        return false;
    const char *line = at;
    while (line > tree && line[-1] != '\n')
        line--;
    if (strncmp(line, "file ", 5) != 0)
        return false;
    return sscanf(line, "file %*s %31s ", hash) == 1;
}

static char *tree_of(struct jobs_stage *stage, bool there)
{
    return there ? tree_online(stage->f) : tree_here(stage->f);
}

/* A user deletes or replaces what the path has on that side. */
static bool replaces(struct jobs_stage *stage, bool there, const char *path)
{
    char hash[JOBS_HASH_BYTES];
    char *tree = tree_of(stage, there);
    const bool has = hash_at(tree, path, hash);
    free(tree);
    for (size_t i = 0; has && i < stage->texts; i++)
        if (strcmp(stage->hashes[i], hash) == 0)
            stage->replaced[i] = true;
    return has;
}

static bool has(struct jobs_stage *stage, bool there, const char *path)
{
    char end[160];
    char *tree = tree_of(stage, there);
    (void)snprintf(end, sizeof end, " %s\n", path);
    const bool is = strstr(tree, end) != NULL;
    free(tree);
    return is;
}

/* ---- acts ---- */

static void pool_path(struct jobs_stage *stage, char path[64])
{
    const uint64_t at = tide_rng_below(&stage->rng, POOL);
    (void)snprintf(path, 64, "d%d/p%d.txt", (int)(at % FOLDERS), (int)at);
}

static void put(struct jobs_stage *stage, bool there, const char *path)
{
    char folder[64];
    (void)replaces(stage, there, path);
    (void)snprintf(folder, sizeof folder, "%.*s", (int)strcspn(path, "/"), path);
    if (there) {
        put_online(stage->f, path, new_text(stage));
    } else {
        make_here_again(stage->f, folder);
        put_here(stage->f, path, new_text(stage));
    }
}

void jobs_edit_any(struct jobs_stage *stage, bool there)
{
    char path[64];
    pool_path(stage, path);
    if (has(stage, there, path))
        put(stage, there, path);
}

static void move(struct jobs_stage *stage, bool there, const char *from, const char *to)
{
    if (!has(stage, there, from) || has(stage, there, to))
        return;
    if (there)
        online(stage->f, "move", textf("{\"path\":\"%s\",\"to\":\"%s\"}", from, to));
    else
        move_here(stage->f, from, to);
}

void jobs_rewrite(struct jobs_stage *stage, const char *name)
{
    unsigned at = 0;
    if (sscanf(name, "p%u.txt", &at) != 1)
        return;
    char path[64];
    (void)snprintf(path, sizeof path, "d%u/p%u.txt", at % FOLDERS, at);
    if (!has(stage, true, path))
        return;
    put(stage, true, path);
    stage->totals.faults[J33_LATE_REWRITE]++;
}

/* ---- many files, which go all at once (F40) ---- */

static void many_path(unsigned at, char path[64])
{
    (void)snprintf(path, 64, "many/m%u.txt", at);
}

unsigned jobs_many_there(struct jobs_stage *stage, bool there)
{
    char *tree = tree_of(stage, there);
    unsigned count = 0;
    for (const char *at = tree; (at = strstr(at, " many/m")) != NULL; at++)
        count++;
    free(tree);
    return count;
}

void jobs_many_make(struct jobs_stage *stage)
{
    char path[64];
    for (unsigned i = 0; i < JOBS_MANY; i++) {
        many_path(i, path);
        put(stage, true, path);
    }
}

void jobs_many_delete(struct jobs_stage *stage, bool there)
{
    char path[64];
    for (unsigned i = 0; i < JOBS_MANY; i++) {
        many_path(i, path);
        (void)replaces(stage, there, path);
        if (there)
            online(stage->f, "delete", textf("{\"path\":\"%s\"}", path));
        else
            remove_here(stage->f, path);
    }
}

static void act_on(struct jobs_stage *stage, bool there)
{
    char path[64], to[64];
    pool_path(stage, path);
    pool_path(stage, to);
    const uint64_t what = tide_rng_below(&stage->rng, 14);
    if (what == 0 || what == 13) {
        if (!replaces(stage, there, path))
            return;
        if (there)
            online(stage->f, "delete", textf("{\"path\":\"%s\"}", path));
        else
            remove_here(stage->f, path);
    } else if (what < 3) {
        if (has(stage, there, textf("d%c", to[1])))
            move(stage, there, path, to);
    } else if (what == 3 && there && replaces(stage, true, path)) { /* F30 */
        online(stage->f, "delete", textf("{\"path\":\"%s\"}", path));
        put(stage, true, path);
        stage->totals.faults[J30_CREATED_AGAIN]++;
    } else if (what == 4 && !there && replaces(stage, false, path)) { /* F19 */
        char temporary[64];
        (void)snprintf(temporary, sizeof temporary, "%.*s/save~", 2, path);
        put(stage, false, temporary);
        remove_here(stage->f, path);
        move_here(stage->f, temporary, path);
        stage->totals.faults[J19_EDITOR_RENAME]++;
    } else if (what == 5 && !there && has(stage, false, path)) { /* F20 */
        char backup[80];
        (void)snprintf(backup, sizeof backup, "%s.bak", path);
        (void)replaces(stage, false, backup);
        char *root = strdup(textf("%s/%s", stage->f->root, path));
        assert_int_equal(rename(root, textf("%s/%s", stage->f->root, backup)), 0);
        free(root);
        put(stage, false, path);
        stage->totals.faults[J20_BACKUP_AND_NEW]++;
    } else if (what == 6 && !there && has(stage, false, path)) { /* F22 */
        struct stat was;
        char *whole = strdup(textf("%s/%s", stage->f->root, path));
        assert_int_equal(stat(whole, &was), 0);
        put(stage, false, path);
        const struct timespec times[2] = {was.st_atim, was.st_mtim};
        assert_int_equal(utimensat(AT_FDCWD, whole, times, 0), 0);
        free(whole);
        stage->totals.faults[J22_MTIME_PUT_BACK]++;
    } else {
        put(stage, there, path);
    }
}

/* F38: two folders, each into the other one. */
static void cross(struct jobs_stage *stage)
{
    char a[32], b[32], to_a[80], to_b[80];
    (void)snprintf(a, sizeof a, "cross%ua", stage->names);
    (void)snprintf(b, sizeof b, "cross%ub", stage->names);
    (void)snprintf(to_a, sizeof to_a, "%s/%s", a, b);
    (void)snprintf(to_b, sizeof to_b, "%s/%s", b, a);
    if (has(stage, false, a) && has(stage, false, b) && has(stage, true, a) &&
        has(stage, true, b)) {
        move(stage, false, a, to_b);
        move(stage, true, b, to_a);
        stage->names++;
        stage->totals.faults[J38_INTO_EACH_OTHER]++;
    } else {
        put(stage, true, textf("%s/x.txt", a));
        char path[64];
        (void)snprintf(path, sizeof path, "%s/y.txt", b);
        put(stage, true, path);
    }
}

/* F39: a folder is renamed online while files in it are on their way. */
static void rename_busy(struct jobs_stage *stage)
{
    char from[32], to[32], path[80];
    (void)snprintf(from, sizeof from, "busy%u", stage->names);
    (void)snprintf(to, sizeof to, "busy%u", stage->names + 1);
    (void)snprintf(path, sizeof path, "%s/z%zu.txt", from, stage->texts);
    if (has(stage, true, from) && !has(stage, true, to)) {
        if (has(stage, false, from))
            put(stage, false, path);
        move(stage, true, from, to);
        stage->totals.faults[J39_RENAMED_WHILE_UPLOADING]++;
    } else {
        put(stage, false, path);
    }
}

void jobs_act(struct jobs_stage *stage)
{
    stage->totals.acts++;
    switch (tide_rng_below(&stage->rng, 8)) {
    case 0:
        cross(stage);
        break;
    case 1:
        rename_busy(stage);
        break;
    default:
        act_on(stage, tide_rng_below(&stage->rng, 2) == 0);
    }
}

/* ---- troubles ---- */

void jobs_trouble(struct jobs_stage *stage)
{
    static const struct {
        enum jobs_fault fault;
        const char *rule;
    } troubles[] = {
        {J25_ONE_500, "{\"method\":\"graph.*\",\"count\":1,\"fault\":\"500\"}"},
        {J26_THROTTLED,
         "{\"method\":\"graph.*\",\"count\":2,\"fault\":\"429\",\"retry_after\":300}"},
        {J27_RESYNC_APPLY,
         "{\"method\":\"graph.drive.delta\",\"count\":1,\"fault\":\"resync-apply\"}"},
        {J27_RESYNC_UPLOAD,
         "{\"method\":\"graph.drive.delta\",\"count\":1,\"fault\":\"resync-upload\"}"},
        {J28_REORDERED,
         "{\"method\":\"graph.drive.delta\",\"rate\":1,\"fault\":\"delta-backwards\"}"},
        {J28_REPEATED,
         "{\"method\":\"graph.drive.delta\",\"rate\":0.5,\"fault\":\"delta-repeat\"}"},
        {J29_TOMBSTONE_LOST,
         "{\"method\":\"graph.drive.delta\",\"rate\":1,\"fault\":\"delta-no-removals\"}"},
        {J31_ECHO, "{\"method\":\"graph.drive.delta\",\"count\":1,\"fault\":\"delta-old\"}"},
        {J32_412, "{\"method\":\"graph.*\",\"count\":2,\"fault\":\"412\"}"},
        {J34_ADDRESS_DIED,
         "{\"method\":\"graph.download.get\",\"count\":1,\"fault\":\"url-expired\"}"},
        {J34_NO_RANGE, "{\"method\":\"graph.download.get\",\"count\":2,\"fault\":\"no-range\"}"},
        {J37_WRONG_HASH, "{\"method\":\"graph.drive.delta\",\"count\":1,\"fault\":\"wrong-hash\"}"},
        {J37_MALWARE, "{\"method\":\"graph.download.get\",\"count\":1,\"fault\":\"malware\"}"},
    };
    no_faults(stage->f);
    const size_t count = sizeof troubles / sizeof troubles[0];
    for (uint64_t i = tide_rng_below(&stage->rng, 3); i > 0; i--) {
        const size_t at = tide_rng_below(&stage->rng, count);
        fault(stage->f, troubles[at].rule);
        stage->totals.faults[troubles[at].fault]++;
    }
}
