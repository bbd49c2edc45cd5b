/* reader_hour.c - an hour of a person who opens six messages a minute while the first sync of the same account
 * uses the whole quota, simulated (K15).
 *
 * Goal: the call for an opened message never waits for a window, and the sync loses nothing: 97 % of 6,000 units a
 * minute are used (E4.3).
 *
 *   reader_hour [SEED [MINUTES]]
 *
 * The times are of the simulated world: how long the engine makes a call wait, without the speed of a machine.
 * Prints a JSON line per figure. */
#include "quota_hour.h"
#include "reader/reader.h"
#include "sim_mail.h"

#include <stdlib.h>
#include <string.h>

enum {
    OPENS_PER_MINUTE = 6,
    OPENS_MAX = OPENS_PER_MINUTE * 600,
    MESSAGES_PER_MINUTE = 310,
    OLD = 1500,      /* the oldest: a slow first sync has them last */
    WAY_US = 50000,  /* to the server, at most (quota_hour.c) */
    CALL_US = 50000, /* K15 */
};

struct stage {
    struct hour hour;
    struct tide_sim_mail life;
    tide_reader *reader;
    uint32_t account;
    uint32_t messages;
    char waits[40]; /* the id that was opened; "": its call came */
    uint64_t asked_us;
    uint64_t samples[OPENS_MAX];
    size_t count;
};

static void seen(void *arg, const struct tide_request *request)
{
    struct stage *stage = arg;
    const char *id = strstr(request->url, "/users/me/messages/");
    if (stage->waits[0] == '\0' || id == NULL || strstr(id, "format=raw") == NULL ||
        strncmp(id + strlen("/users/me/messages/"), stage->waits, strlen(stage->waits)) != 0)
        return;
    stage->waits[0] = '\0';
    stage->samples[stage->count++] = tide_world_now_us(stage->hour.world) - stage->asked_us;
}

static void begin(struct stage *stage, uint64_t seed, uint64_t minutes)
{
    tide_error err = {TIDE_OK, 0, ""};
    stage->messages = (uint32_t)(minutes + 4) * MESSAGES_PER_MINUTE + OLD;
    hour_begin(&stage->hour, seed, stage->messages, BOX_MAILBOX_SIZE_MIN);
    stage->hour.seen = seen;
    stage->hour.seen_arg = stage;
    const struct tide_sim_mail_options mail = {.world = stage->hour.world,
                                               .state_dir = "/state",
                                               .archive_dir = "/archive",
                                               .email = HOUR_USER,
                                               .token = HOUR_TOKEN};
    const struct tide_mail_run sync = {.email = HOUR_USER};
    must(tide_sim_mail_open(&stage->life, &mail, &err), "open", &err);
    const struct tide_reader_options reader = {.engine = stage->life.engine,
                                               .world = stage->hour.world,
                                               .secrets = stage->life.secrets,
                                               .archive_dir = "/archive",
                                               .cache_dir = "/cache"};
    must(tide_reader_open(&reader, tide_mem_heap(), &stage->reader, &err), "reader", &err);
    must(tide_reader_account(stage->reader, HOUR_USER, &stage->account, &err), "account", &err);
    must(tide_mail_run(stage->life.mail, &sync, &err), "run", &err);
    must(tide_engine_start(stage->life.engine, &err), "start", &err);
    must(tide_reader_watch(stage->reader, &err), "watch", &err);
    tide_reader_look(stage->reader, true);
}

static void end(struct stage *stage)
{
    tide_reader_watch_end(stage->reader);
    tide_sim_mail_close(&stage->life, stage->hour.sim);
    tide_reader_close(stage->reader);
    hour_end(&stage->hour);
}

/* Every message is opened once. */
static void open_one(struct stage *stage, box_mailbox *mailbox, uint64_t number)
{
    tide_error err = {TIDE_OK, 0, ""};
    uint64_t job = 0;
    const uint32_t slot = (uint32_t)(number % OLD);
    if (stage->waits[0] != '\0') { /* ten seconds later its call has not come */
        stage->samples[stage->count++] = tide_world_now_us(stage->hour.world) - stage->asked_us;
    }
    box_id_text(box_mailbox_at(mailbox, slot)->id, stage->waits);
    stage->asked_us = tide_world_now_us(stage->hour.world);
    must(tide_reader_fetch(stage->reader, stage->account, stage->waits, &job, &err), "open", &err);
    if (job == 0) /* it is in the window that was listed, and has a body already */
        stage->waits[0] = '\0';
}

int main(int argc, char **argv)
{
    static struct stage stage;
    const uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    const uint64_t minutes = argc > 2 ? strtoull(argv[2], NULL, 10) : 60;
    tide_rng rng = tide_rng_seeded(seed);
    expect(minutes * OPENS_PER_MINUTE <= OPENS_MAX, "too many minutes");
    begin(&stage, seed, minutes);
    box_mailbox *mailbox = box_user_mailbox(
        box_cloud_user(tide_sim_cloud_box(stage.hour.cloud), tide_text_of(HOUR_USER)));
    pass(&stage.hour, WARM_UP_MS);
    const struct truth before = truth_of(&stage.hour);
    for (uint64_t i = 0; i < minutes * OPENS_PER_MINUTE; i++) {
        const uint64_t at_ms = tide_rng_below(&rng, 10000);
        pass(&stage.hour, at_ms);
        open_one(&stage, mailbox, i);
        pass(&stage.hour, 10000 - at_ms);
    }
    const struct truth after = truth_of(&stage.hour);
    const double used = (double)(after.used - before.used) / (double)(minutes * UNITS_PER_MINUTE);
    size_t waited = 0;
    for (size_t i = 0; i < stage.count; i++)
        waited += stage.samples[i] > CALL_US + WAY_US;
    figure("reader_hour_opens", (double)stage.count, "", 0, NULL);
    figure("reader_hour_call_p50", quantile_ms(stage.samples, stage.count, 500), "ms", 0, NULL);
    figure("reader_hour_call_p99", quantile_ms(stage.samples, stage.count, 990), "ms", 0, NULL);
    figure("reader_hour_waited", (double)waited, "opens", 0, "none");
    figure("reader_hour_used", used * 100, "%", used / 0.97, "97 %");
    figure("reader_hour_windows_crossed", (double)after.crossed, "calls", 0, "none");
    end(&stage);
    return stage.count > 0 && waited == 0 && used >= 0.95 && after.crossed == 0 ? 0 : 1;
}
