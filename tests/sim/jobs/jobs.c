#include "jobs.h"

#include "ledger/rows.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LIVES = 16, ACTS_MAX = 8, CALM_SYNCS = 10, FOLDERS = 3, MANY_EVERY = 6, MANY_AT = 5 };

const char *const jobs_fault_names[JFAULTS] = {
    "F1",           "F2",        "F3",  "F4",        "F5",          "F6",
    "F8",           "F9",        "F10", "F12",       "F13",         "F14",
    "F16",          "F17",       "F18", "F19",       "F20",         "F22",
    "F24",          "F25",       "F26", "F27 apply", "F27 upload",  "F28 reordered",
    "F28 repeated", "F29",       "F30", "F31",       "F32",         "F33",
    "F34 address",  "F34 range", "F35", "F37 hash",  "F37 malware", "F38",
    "F39",          "F40",
};
const char *const jobs_plant_names[JPLANTS] = {"none",        "delete-ungated", "token-sent",
                                               "part-placed", "left-over",      "part-named"};
const char *const jobs_plant_rules[JPLANTS] = {"", "DJO1", "DJO14", "DJO2", "DJO16", "DJO7"};

bool jobs_happens(struct jobs_stage *stage, enum jobs_fault fault, uint32_t one_in)
{
    if (stage->calm || tide_rng_below(&stage->rng, one_in) != 0)
        return false;
    stage->totals.faults[fault]++;
    return true;
}

/* ---- the network: users act while bytes are on their way ---- */

static void provide(void *arg, const struct tide_request *request, uint64_t now_unix_ms,
                    tide_rng *rng, struct tide_sim_answer *answer)
{
    struct jobs_stage *stage = jobs_now;
    struct fixture *f = arg;
    const bool file = strstr(request->url, "/_files/") != NULL;
    const bool put = file && strcmp(request->method, "PUT") == 0;
    for (size_t i = 0; i < request->headers_count && file; i++)
        if (tide_text_equal(request->headers[i].name, TIDE_TEXT("Authorization")))
            tide_sim_fail(f->sim, "DJO14: %s has the token", request->url);
    if (put && jobs_happens(stage, J17_CHANGED_WHILE_UPLOADING, 12))
        for (int i = 0; i < 4; i++)
            jobs_edit_any(stage, false);
    if (file && !put && jobs_happens(stage, J35_CHANGED_WHILE_DOWNLOADING, 12))
        for (int i = 0; i < 4; i++)
            jobs_edit_any(stage, true);
    f->calls++;
    tide_sim_cloud_call(f->cloud, request, now_unix_ms, rng, answer);
    if (strstr(request->url, "createUploadSession") != NULL && answer->http == 200)
        stage->session_new = true;
    if (put)
        stage->last_sent = answer->http == 200 || answer->http == 201;
    if (put && stage->last_sent && !stage->calm && tide_rng_below(&stage->rng, 10) == 0) {
        char name[64] = "";
        const char *at = memmem(answer->body.data, answer->body.bytes, "\"name\":\"", 8);
        if (at != NULL)
            (void)sscanf(at + 8, "%63[^\"]", name);
        jobs_rewrite(stage, name);
    }
    if (file)
        f->got_bytes += answer->body.bytes;
}

/* ---- lives ---- */

/* What the process had done and not written down. */
static void note_crash(struct jobs_stage *stage)
{
    uint64_t *faults = stage->totals.faults;
    stage->totals.crashes++;
    faults[J1_BETWEEN_PAGES] += stage->in_round;
    faults[J2_BEFORE_PLANNING] += stage->seen;
    faults[J3_PLACED_NOT_COMMITTED] += stage->open[OPEN_DOWN] > 0;
    faults[J4_LAST_FRAGMENT_SENT] += stage->last_sent && stage->open[OPEN_UP] == 0;
    faults[J5_ANSWERED_NOT_COMMITTED] += stage->open[OPEN_UP] > 0;
    faults[J6_ASIDE_NO_DOWNLOAD] += stage->open[OPEN_ASIDE] > 0;
    faults[J8_SESSION_NOT_STORED] += stage->session_new;
    faults[J9_DELETED_NOT_COMMITTED] += stage->open[OPEN_DELETE] > 0;
    faults[J10_MID_MOVE] += stage->open[OPEN_MOVE] > 0;
}

static void hide_marker(struct jobs_stage *stage, bool hide)
{
    char marker[160], hidden[160];
    (void)snprintf(marker, sizeof marker, "%s/.tidemark-root", stage->f->root);
    (void)snprintf(hidden, sizeof hidden, "%s/marker", stage->f->dir);
    assert_int_equal(hide ? rename(marker, hidden) : rename(hidden, marker), 0);
}

/* Whether the drive knows files in the folder; else it is one like any other. */
static bool is_known(struct jobs_stage *stage, const char *folder)
{
    struct fixture *f = stage->f;
    stage->calm = true;
    tide_sim_crash_after(f->sim, 0, TIDE_SIM_CRASH_KILL);
    OK(life_begin(f));
    const bool known =
        rows_of(f,
                textf("SELECT count(*) FROM drive_@_local AS l JOIN drive_@_local AS d ON d.row ="
                      " l.parent WHERE d.parent = 1 AND d.state = 1 AND l.state = 1 AND d.name ="
                      " CAST('%s' AS BLOB)",
                      folder)) > 0;
    life_end(f);
    stage->calm = false;
    return known;
}

/* A disk that was mounted at a folder is away: another folder, an empty one, is at its place. */
static void unmount_nested(struct jobs_stage *stage, char folder[64])
{
    (void)snprintf(folder, 64, "d%d", (int)tide_rng_below(&stage->rng, FOLDERS));
    if (tide_rng_below(&stage->rng, 8) != 0 || !is_here(stage->f, folder) ||
        !is_known(stage, folder)) {
        folder[0] = '\0';
        return;
    }
    stage->totals.faults[J13_NESTED_GONE]++;
    char *mounted = strdup(textf("%s/%s", stage->f->root, folder));
    assert_int_equal(rename(mounted, textf("%s/nested", stage->f->dir)), 0);
    assert_int_equal(mkdir(mounted, 0700), 0);
    free(mounted);
}

static void mount_nested(struct jobs_stage *stage, const char *folder)
{
    if (folder[0] == '\0')
        return;
    char *mounted = strdup(textf("%s/%s", stage->f->root, folder));
    if (rmdir(mounted) != 0 && errno != ENOENT)
        tide_sim_fail(stage->f->sim, "DJO13: something is in %s, which is no longer mounted",
                      folder);
    assert_int_equal(rename(textf("%s/nested", stage->f->dir), mounted), 0);
    free(mounted);
}

static tide_status accept(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct fixture *f = arg;
    const tide_rows db = tide_drives_rows(tide_transaction_rows(transaction), f->row.number);
    uint64_t fingerprint = 0;
    TIDE_TRY(tide_drive_deletions_fingerprint(db, &fingerprint, err));
    return tide_drive_deletions_accept(db, fingerprint, tide_world_now_unix_ms(f->world), err);
}

/* One process without troubles, which syncs. */
static void calm_life(struct jobs_stage *stage, tide_transact_fn *then)
{
    struct fixture *f = stage->f;
    stage->calm = true;
    no_faults(f);
    tide_sim_crash_after(f->sim, 0, TIDE_SIM_CRASH_KILL);
    OK(life_begin(f));
    if (then != NULL)
        OK(tide_transact(f->engine, then, f, &f->err));
    else
        (void)try_sync(f, false);
    life_end(f);
    stage->calm = false;
}

/* F40: many files are deleted at once, in one seed of six, because they cost many calls.  The deletions wait
 * over crashes and restarts, until a user agrees to them. */
static void delete_many(struct jobs_stage *stage)
{
    struct fixture *f = stage->f;
    if (stage->seed % MANY_EVERY != 0)
        return;
    if (stage->many == MANY_NONE && stage->totals.lives == MANY_AT) {
        jobs_many_make(stage);
        calm_life(stage, NULL);
        calm_life(stage, NULL);
        if (jobs_many_there(stage, false) != JOBS_MANY)
            return;
        stage->many = MANY_DELETED;
        stage->many_online = tide_rng_below(&stage->rng, 2) == 0;
        jobs_many_delete(stage, stage->many_online);
    } else if (stage->many == MANY_DELETED && stage->totals.lives == 2 * MANY_AT) {
        pass(f, 60);
        calm_life(stage, NULL);
        pass(f, 60);
        calm_life(stage, NULL);
        if (jobs_many_there(stage, !stage->many_online) != JOBS_MANY)
            tide_sim_fail(f->sim, "DJO5: deleted without consent");
        calm_life(stage, accept);
        stage->many = MANY_ACCEPTED;
        stage->totals.faults[J40_MANY_DELETED]++;
    }
}

static uint64_t now_unix_ms(tide_world *world)
{
    const struct jobs_stage *stage = jobs_now;
    return stage->real_ops->now_unix_ms(world) - stage->clock_back_ms;
}

/* The clock of this machine is put back now and then; that of the server is not. */
static void take_clock(struct jobs_stage *stage)
{
    static struct tide_world_ops ops;
    stage->real_ops = stage->f->world->ops;
    ops = *stage->real_ops;
    ops.now_unix_ms = now_unix_ms;
    stage->f->world->ops = &ops;
}

static void live(struct jobs_stage *stage)
{
    struct fixture *f = stage->f;
    char nested[64];
    stage->totals.lives++;
    delete_many(stage);
    for (uint64_t acts = tide_rng_below(&stage->rng, ACTS_MAX); acts > 0; acts--)
        jobs_act(stage);
    jobs_trouble(stage);
    memset(stage->open, 0, sizeof stage->open);
    stage->in_round = stage->seen = stage->last_sent = stage->session_new = false;
    const bool unmounted = jobs_happens(stage, J12_UNMOUNTED, 12);
    if (unmounted)
        hide_marker(stage, true);
    unmount_nested(stage, nested);
    if (jobs_happens(stage, J24_CLOCK_BACK, 12))
        stage->clock_back_ms = 1000 * tide_rng_below(&stage->rng, 7200);
    const uint64_t before = tide_sim_stats(f->sim).crashes;
    const bool dies = tide_rng_below(&stage->rng, 5) != 0;
    const uint64_t steps = tide_rng_below(&stage->rng, 3) == 0 ? 4000 : 1200;
    tide_sim_crash_after(f->sim, dies ? 100 + tide_rng_below(&stage->rng, steps) : 0,
                         TIDE_SIM_CRASH_SEEDED);
    if (life_begin(f) == TIDE_OK)
        (void)try_sync(f, tide_rng_below(&stage->rng, 6) == 0);
    if (tide_sim_stats(f->sim).crashes > before)
        note_crash(stage);
    life_end(f);
    tide_sim_reboot(f->sim);
    stage->clock_back_ms = 0;
    mount_nested(stage, nested);
    if (unmounted)
        hide_marker(stage, false);
    pass(f, tide_rng_below(&stage->rng, 400));
}

/* ---- the end ---- */

static bool are_equal(struct fixture *f)
{
    char *here = tree_here(f), *there = tree_online(f);
    const bool equal = strcmp(here, there) == 0;
    free(here);
    free(there);
    return equal;
}

static void check_contents(struct jobs_stage *stage)
{
    struct fixture *f = stage->f;
    char *tree = tree_here(f), *rest = tree;
    for (size_t i = 0; i < stage->texts; i++)
        if (!stage->replaced[i] && strstr(tree, stage->hashes[i]) == NULL)
            tide_sim_fail(f->sim, "DJO1: text %zu is lost", i);
    for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
        char hash[JOBS_HASH_BYTES], name[256];
        if (sscanf(line, "file %*s %31s %255[^\n]", hash, name) != 2)
            continue;
        if (!jobs_is_known(stage, hash))
            tide_sim_fail(f->sim, "DJO7: %s has bytes that no user made", name);
        if (strstr(name, "recovered") != NULL || strstr(name, "tidemark-") != NULL)
            tide_sim_fail(f->sim, "DJO16: %s is no name of a user", name);
    }
    free(tree);
}

static void show_one(const struct tide_drive_owed *owed, void *arg)
{
    (void)arg;
    (void)fprintf(stderr, "owed: %.*s, item %d, row %d, verb %d, %d attempts: %.*s\n",
                  (int)owed->name.bytes, owed->name.data, (int)owed->item, (int)owed->row,
                  (int)owed->verb, (int)owed->attempts, (int)owed->error.bytes, owed->error.data);
}

static tide_status show(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct fixture *f = arg;
    return tide_drive_owed_each(tide_drives_rows(tide_transaction_rows(transaction), f->row.number),
                                show_one, NULL, err);
}

static void show_owed(struct fixture *f)
{
    OK(tide_transact(f->engine, show, f, &f->err));
    char *here = tree_here(f), *there = tree_online(f);
    (void)fprintf(stderr, "here:\n%sonline:\n%s", here, there);
    free(here);
    free(there);
}

static void rest(struct jobs_stage *stage)
{
    struct fixture *f = stage->f;
    stage->calm = true;
    no_faults(f);
    tide_sim_crash_after(f->sim, 0, TIDE_SIM_CRASH_KILL);
    if (life_begin(f) != TIDE_OK)
        tide_sim_fail(f->sim, "a calm life does not begin: %s", f->err.text);
    for (int i = 0; i < CALM_SYNCS && (i < 3 || !are_equal(f)); i++) {
        (void)try_sync(f, i == 1); /* lost tombstones are found */
        if (rows_of(f, "SELECT count(*) FROM drive_@_deletion") > 0)
            accept_deletions(f);
        pass(f, 3700);
    }
    if (!are_equal(f)) {
        show_owed(f);
        tide_sim_fail(f->sim, "DJO2: the trees differ");
    }
    if (rows_of(f, "SELECT (SELECT count(*) FROM drive_@_owed) + (SELECT count(*) FROM"
                   " drive_@_doubt)") != 0) {
        show_owed(f);
        tide_sim_fail(f->sim, "DJO2: something is owed");
    }
    const uint64_t calls = f->calls, got = f->got_bytes;
    sync_now(f);
    sync_now(f);
    if (f->calls - calls > 4 || f->got_bytes != got)
        tide_sim_fail(f->sim, "DJO11: %d calls at rest", (int)(f->calls - calls));
    if (temporaries(f) != 0)
        tide_sim_fail(f->sim, "DJO16: a file of ours is left");
    check_contents(stage);
}

void jobs_run(uint64_t seed, enum jobs_plant plant, struct jobs_totals *totals_out)
{
    const struct tide_sim_options options = {.net = {.latency_us_max = 20000}};
    struct jobs_stage *stage = calloc(1, sizeof *stage);
    assert_non_null(stage);
    *stage = (struct jobs_stage){.seed = seed, .plant = plant, .rng = tide_rng_seeded(seed)};
    stage->calm = true;
    jobs_now = stage;
    stage->f = begin_with(seed, &options, provide);
    take_clock(stage);
    stage->calm = false;
    for (int life = 0; life < LIVES; life++)
        live(stage);
    rest(stage);
    stage->totals.texts = stage->texts;
    *totals_out = stage->totals;
    finish(stage->f);
    free(stage);
}
