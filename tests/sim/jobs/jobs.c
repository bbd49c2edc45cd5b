#include "jobs.h"

#include "ledger/rows.h"

#include <sys/stat.h>
#include <unistd.h>

enum { LIVES = 16, ACTS_MAX = 8, CALM_SYNCS = 10 };

const char *const jobs_fault_names[JFAULTS] = {
    "F1",           "F2",       "F3",          "F4",  "F5",        "F6",          "F8",
    "F9",           "F10",      "F12",         "F16", "F17",       "F18",         "F19",
    "F20",          "F22",      "F25",         "F26", "F27 apply", "F27 upload",  "F28 reordered",
    "F28 repeated", "F29",      "F30",         "F31", "F32",       "F34 address", "F34 range",
    "F35",          "F37 hash", "F37 malware", "F38", "F39",
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

static void live(struct jobs_stage *stage)
{
    struct fixture *f = stage->f;
    stage->totals.lives++;
    for (uint64_t acts = tide_rng_below(&stage->rng, ACTS_MAX); acts > 0; acts--)
        jobs_act(stage);
    jobs_trouble(stage);
    memset(stage->open, 0, sizeof stage->open);
    stage->in_round = stage->seen = stage->last_sent = stage->session_new = false;
    const bool unmounted = jobs_happens(stage, J12_UNMOUNTED, 12);
    if (unmounted)
        hide_marker(stage, true);
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
    stage->calm = false;
    for (int life = 0; life < LIVES; life++)
        live(stage);
    rest(stage);
    stage->totals.texts = stage->texts;
    *totals_out = stage->totals;
    finish(stage->f);
    free(stage);
}
