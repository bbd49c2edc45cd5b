/* transfer.c - a seed of transfer.h: the world, its folder and its end. */
#include "transfer.h"

#include "cloudbox/mailbox/mime.h"
#include "support/heap.h"
#include "support/temp_dir.h"

#include <inttypes.h>
#include <sys/stat.h>

enum { TRANSFERS = 8 };

const char *const transfer_plant_names[TPLANTS] = {"none",           "early-name", "hash-believed",
                                                   "not-saved",      "token-sent", "by-name",
                                                   "links-followed", "twice"};
const char *const transfer_plant_rules[TPLANTS] = {[TPLANT_NONE] = "",
                                                   [TPLANT_EARLY_NAME] = "DTR7",
                                                   [TPLANT_HASH_BELIEVED] = "DTR7",
                                                   [TPLANT_NOT_SAVED] = "DTR9",
                                                   [TPLANT_TOKEN_SENT] = "DTR14",
                                                   [TPLANT_BY_NAME] = "DTR15",
                                                   [TPLANT_LINKS_FOLLOWED] = "DTR18",
                                                   [TPLANT_TWICE] = "DTR16"};
const char *const transfer_fault_names[TFAULTS] = {
    "F4",           "F8",           "F16 disk full", "F17",   "F18",      "F26",
    "F33",          "F34 address",  "F34 no range",  "F35",   "F37 hash", "F37 malware",
    "kill at call", "kill at disk", "name taken",    "a link"};

bool transfer_is_up(const struct transfer_stage *stage)
{
    return stage->kind == TRANSFER_UP_NEW || stage->kind == TRANSFER_UP_OVER;
}

bool transfer_dead(struct transfer_stage *stage)
{
    return tide_world_dead(tide_sim_world(stage->sim));
}

bool transfer_happens(struct transfer_stage *stage, enum transfer_fault fault, uint32_t one_in)
{
    if (stage->calm || stage->only_kills || stage->quiet || transfer_dead(stage) ||
        !tide_rng_chance(&stage->rng, 1, one_in))
        return false;
    stage->totals.faults[fault]++;
    return true;
}

bool transfer_killed(struct transfer_stage *stage, enum transfer_fault fault, uint32_t one_in)
{
    if (stage->calm || stage->quiet || transfer_dead(stage) ||
        !tide_rng_chance(&stage->rng, 1, one_in))
        return false;
    stage->totals.faults[fault]++;
    stage->kills++;
    tide_sim_crash(stage->sim, TIDE_SIM_CRASH_KILL);
    return true;
}

static void open_all(struct transfer_stage *stage)
{
    tide_error err = {TIDE_OK, 0, ""};
    const struct tide_onedrive_options client = {.endpoint = "http://127.0.0.1:4443",
                                                 .bearer = TIDE_TEXT("bearer-1"),
                                                 .world = tide_sim_world(stage->sim)};
    if (mkdir(stage->dir, 0700) != 0 || mkdir(stage->root, 0700) != 0 ||
        mkdir(textf("%s/d", stage->root), 0700) != 0)
        tide_sim_fail(stage->sim, "no folder %s", stage->root);
    transfer_make_outside(stage);
    if (tide_onedrive_open(&client, tide_mem_heap(), &stage->onedrive, &err) != TIDE_OK ||
        tide_folder_open(stage->root, &stage->act.root, &err) != TIDE_OK)
        tide_sim_fail(stage->sim, "nothing can be opened: %s", err.text);
    stage->act.onedrive = stage->onedrive;
    stage->act.mem = tide_mem_heap();
    stage->act.path = stage->root;
    json_decref(tide_sim_cloud_control(
        stage->cloud, stage->sim, "POST", "/_cloud/drive/put",
        TIDE_TEXT("{\"user\":\"me@example.org\",\"path\":\"d/x\",\"content\":\"x\"}")));
}

void transfer_sim_run(const char *dir, uint64_t seed, enum transfer_plant plant,
                      struct transfer_totals *totals_out)
{
    static struct transfer_stage stage;
    stage = (struct transfer_stage){.seed = seed, .plant = plant, .rng = tide_rng_seeded(seed)};
    (void)snprintf(stage.dir, sizeof stage.dir, "%.200s/%" PRIu64, dir, seed);
    (void)snprintf(stage.root, sizeof stage.root, "%s/root", stage.dir);
    (void)snprintf(stage.outside, sizeof stage.outside, "%s/outside", stage.dir);
    box_mime_start();
    stage.cloud = tide_sim_cloud_new(
        &(struct box_options){.seed = seed, .quota = BOX_QUOTA_2026, .concurrency_max = 10});
    const struct tide_sim_options options = {.net = {.latency_us_max = 20000,
                                                     .reset_permille = 15,
                                                     .truncate_permille = 30,
                                                     .refuse_permille = 10,
                                                     .provide = transfer_provide,
                                                     .provide_arg = &stage}};
    stage.sim = tide_sim_new(seed, &options);
    transfer_now = &stage;
    (void)tide_sim_cloud_user(stage.cloud, stage.sim, "me@example.org", "bearer-1",
                              (struct box_mailbox_options){0});
    open_all(&stage);
    for (unsigned i = 0; i < TRANSFERS; i++)
        transfer_run_one(&stage, i);
    *totals_out = stage.totals;
    tide_folder_close(stage.act.root);
    tide_onedrive_close(stage.onedrive);
    tide_sim_free(stage.sim);
    tide_sim_cloud_free(stage.cloud);
    (void)temp_dir_remove(stage.dir);
}
