/* Users change both sides at random while the process dies again and again (I1, I2, I9, I16).
 *
 * Goal: after a calm life both trees are one, and what a user finished and none touched is there.
 * Method: the simulated world kills the process at any of its steps; the folder is a real one, so what
 * was done to it stays. */
#include "drive_sync_fixture.h"

#include "support/scale.h"

#include <sys/stat.h>

enum { LIVES = 12, POOL = 12, FOLDERS = 3, ACTS_MAX = 5, CALM_SYNCS = 6 };

struct chaos {
    struct fixture *f;
    tide_rng rng;
    unsigned texts; /* each is written once */
    char last[2][32];
};

static const char *pool_name(struct chaos *chaos)
{
    const uint64_t at = tide_rng_below(&chaos->rng, POOL);
    return textf("d%d/p%d.txt", (int)(at % FOLDERS), (int)at);
}

static const char *next_text(struct chaos *chaos, int side)
{
    (void)snprintf(chaos->last[side], sizeof chaos->last[side], "text %u", ++chaos->texts);
    return chaos->last[side];
}

static bool is_online(struct chaos *chaos, const char *path)
{
    char *tree = tree_online(chaos->f);
    char line[128];
    (void)snprintf(line, sizeof line, " %s\n", path);
    const bool is = strstr(tree, line) != NULL;
    free(tree);
    return is;
}

static void act_online(struct chaos *chaos)
{
    struct fixture *f = chaos->f;
    char path[64], to[64];
    (void)snprintf(path, sizeof path, "%s", pool_name(chaos));
    (void)snprintf(to, sizeof to, "%s", pool_name(chaos));
    const uint64_t what = tide_rng_below(&chaos->rng, 10);
    if (what == 0 && is_online(chaos, path))
        online(f, "delete", textf("{\"path\":\"%s\"}", path));
    else if (what < 3 && is_online(chaos, path) && !is_online(chaos, to) &&
             is_online(chaos, textf("d%c", to[1])))
        online(f, "move", textf("{\"path\":\"%s\",\"to\":\"%s\"}", path, to));
    else
        put_online(f, path, next_text(chaos, 0));
}

static void act_here(struct chaos *chaos)
{
    struct fixture *f = chaos->f;
    char path[64], to[64];
    (void)snprintf(path, sizeof path, "%s", pool_name(chaos));
    (void)snprintf(to, sizeof to, "%s", pool_name(chaos));
    const uint64_t what = tide_rng_below(&chaos->rng, 10);
    make_here_again(f, textf("d%c", path[1]));
    make_here_again(f, textf("d%c", to[1]));
    if (what == 0 && is_here(f, path))
        remove_here(f, path);
    else if (what < 3 && is_here(f, path) && !is_here(f, to))
        move_here(f, path, to);
    else
        put_here(f, path, next_text(chaos, 1));
}

static void live(struct chaos *chaos, int life)
{
    struct fixture *f = chaos->f;
    put_online(f, textf("on/f%d.txt", life), textf("online %d", life));
    make_here_again(f, "here");
    put_here(f, textf("here/g%d.txt", life), textf("here %d", life));
    for (uint64_t acts = tide_rng_below(&chaos->rng, ACTS_MAX); acts > 0; acts--) {
        act_online(chaos);
        act_here(chaos);
    }
    const uint64_t steps = 50 + tide_rng_below(&chaos->rng, 4000);
    tide_sim_crash_after(f->sim, steps, TIDE_SIM_CRASH_KILL);
    if (life_begin(f) == TIDE_OK)
        (void)try_sync(f, false);
    life_end(f);
    tide_sim_reboot(f->sim);
}

static bool trees_are_equal(struct fixture *f)
{
    char *here = tree_here(f), *there = tree_online(f);
    const bool equal = strcmp(here, there) == 0;
    free(here);
    free(there);
    return equal;
}

static unsigned run_seed(uint64_t seed)
{
    const struct tide_sim_options options = {.net = {.latency_us_max = 20000}};
    struct fixture *f = begin_in(seed, &options);
    struct chaos chaos = {.f = f, .rng = tide_rng_seeded(seed)};
    for (int life = 0; life < LIVES; life++)
        live(&chaos, life);
    tide_sim_crash_after(f->sim, 0, TIDE_SIM_CRASH_KILL);
    OK(life_begin(f));
    for (int i = 0; i < CALM_SYNCS && (i < 2 || !trees_are_equal(f)); i++) {
        sync_now(f);
        pass(f, 120);
    }
    if (!trees_are_equal(f))
        print_error("seed %" PRIu64 "\n", seed);
    assert_equal_trees(f);
    for (int life = 0; life < LIVES; life++) {
        char text[32];
        (void)snprintf(text, sizeof text, "online %d", life);
        assert_here(f, textf("on/f%d.txt", life), text);
        (void)snprintf(text, sizeof text, "here %d", life);
        assert_here(f, textf("here/g%d.txt", life), text);
    }
    assert_int_equal(rows_of(f, "SELECT count(*) FROM drive_@_owed"), 0);
    assert_int_equal(rows_of(f, "SELECT count(*) FROM drive_@_doubt"), 0);
    /* At rest nothing is left to do, and nothing of ours is left (I11, I16). */
    const uint64_t calls = f->calls;
    sync_now(f);
    sync_now(f);
    assert_true(f->calls - calls <= 4);
    /* What a crash left behind is judged by the next process (D42). */
    life_end(f);
    pass(f, 120);
    OK(life_begin(f));
    sync_now(f);
    sync_now(f);
    assert_equal_trees(f);
    if (temporaries(f) != 0)
        print_error("seed %" PRIu64 ": files of ours are left\n", seed);
    assert_int_equal(temporaries(f), 0);
    const unsigned crashes = (unsigned)tide_sim_stats(f->sim).crashes;
    finish(f);
    return crashes;
}

TEST(processes_that_die_lose_nothing)
{
    unsigned crashes = 0;
    const uint64_t seeds = scaled(10);
    for (uint64_t seed = 1; seed <= seeds; seed++)
        crashes += run_seed(seed);
    print_message("%u crashes in %" PRIu64 " worlds\n", crashes, seeds);
    assert_true(crashes >= 3 * seeds);
}

/* A new file's upload is on the server, the process died before it knew, and the user goes on writing: that
 * is no conflict (D38, I19).  The crash strikes at each of many steps. */
TEST(a_new_file_that_is_edited_after_a_crash_makes_no_copy)
{
    const struct tide_sim_options options = {.net = {.latency_us_max = 20000}};
    unsigned found = 0;
    for (uint64_t steps = 200; steps < 200 + 60 * scaled(10); steps += 60) {
        struct fixture *f = begin_in(steps, &options);
        OK(life_begin(f));
        sync_now(f);
        put_here(f, "new.txt", "first");
        tide_sim_crash_after(f->sim, steps, TIDE_SIM_CRASH_KILL);
        (void)try_sync(f, false);
        life_end(f);
        tide_sim_reboot(f->sim);
        char *tree = tree_online(f);
        found += strstr(tree, "new.txt") != NULL;
        free(tree);
        put_here(f, "new.txt", "the second one");
        tide_sim_crash_after(f->sim, 0, TIDE_SIM_CRASH_KILL);
        OK(life_begin(f));
        sync_now(f);
        sync_now(f);
        assert_here(f, "new.txt", "the second one");
        assert_equal_trees(f);
        assert_int_equal(rows_of(f, "SELECT count(*) FROM drive_@_base"), 1);
        assert_int_equal(rows_of(f, "SELECT count(*) FROM drive_@_doubt"), 0);
        finish(f);
    }
    print_message("%u times it was online\n", found);
}
