/* takeout_bench.c - a large mailbox under Gmail's quota, seeded from a Takeout and not (M18).
 *
 * Goal: everything can be searched under its Gmail id at least 100 times sooner than by a plain first
 * sync, and the sync that follows costs listings, not messages: 5 units for 500 messages, and as
 * much again for each label that they have.  Its bytes become exact behind that, at the quota's pace.
 *
 * Method: the cloud in a box with a mailbox, in the simulated world.  A plain sync runs for some
 * minutes; its pace gives the time for all.  Then the mailbox is written as Takeout would (line ends of
 * Unix, lines quoted, ids in decimal), imported into an archive on the simulated disk, which takes
 * real time, and synced, which takes simulated time: the sum counts.
 *
 * takeout_bench [SEED [MESSAGES [MINUTES]]]: prints a JSON line per figure. */
#include "quota_hour.h"
#include "sim_mail.h"

#include "mail/files/import.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { UNITS_OF_500 = 5, STEP_MS = 1000, STEPS_MAX = 3600 };

static void life_begin(struct hour *hour, struct tide_sim_mail *life, bool inexact)
{
    tide_error err = {TIDE_OK, 0, ""};
    const struct tide_sim_mail_options options = {.world = hour->world,
                                                  .state_dir = "/state",
                                                  .archive_dir = "/archive",
                                                  .email = HOUR_USER,
                                                  .token = HOUR_TOKEN};
    const struct tide_mail_run sync = {.email = HOUR_USER, .inexact = inexact};
    must(tide_sim_mail_open(life, &options, &err), "open", &err);
    must(tide_mail_run(life->mail, &sync, &err), "run", &err);
    must(tide_engine_start(life->engine, &err), "start", &err);
}

static struct tide_mail_state state_of(struct tide_sim_mail *life)
{
    struct tide_mail_state state;
    tide_error err = {TIDE_OK, 0, ""};
    must(tide_mail_state(life->mail, HOUR_USER, &state, &err), "state", &err);
    return state;
}

/* ---- without a Takeout ---- */

/* The seconds that a first sync takes, from its pace. */
static double plain_s(uint64_t seed, uint32_t messages, uint64_t minutes)
{
    struct hour hour;
    struct tide_sim_mail life;
    hour_begin(&hour, seed, messages, BOX_MAILBOX_SIZE_MIN);
    life_begin(&hour, &life, false);
    pass(&hour, WARM_UP_MS);
    const uint64_t before = state_of(&life).stored;
    pass(&hour, minutes * 60000);
    const uint64_t stored = state_of(&life).stored - before;
    tide_sim_mail_close(&life, hour.sim);
    hour_end(&hour);
    expect(stored > 0, "a plain sync stores something");
    return (double)messages * (double)(minutes * 60) / (double)stored;
}

/* ---- a Takeout ---- */

static void write_body(FILE *file, tide_text raw)
{
    for (size_t at = 0; at < raw.bytes;) {
        const char *end = memchr(raw.data + at, '\n', raw.bytes - at);
        const size_t next = end == NULL ? raw.bytes : (size_t)(end - raw.data) + 1;
        size_t count = next - at;
        size_t marks = 0;
        while (marks < count && raw.data[at + marks] == '>')
            marks++;
        if (count - marks >= 5 && memcmp(raw.data + at + marks, "From ", 5) == 0)
            (void)fputc('>', file);
        const bool crlf = count >= 2 && raw.data[next - 2] == '\r';
        (void)fwrite(raw.data + at, 1, crlf ? count - 2 : count, file);
        if (crlf)
            (void)fputc('\n', file);
        at = next;
    }
    (void)fputc('\n', file);
}

static void write_takeout(box_mailbox *mailbox, const char *path)
{
    FILE *file = fopen(path, "w");
    tide_buf scratch;
    tide_buf_init(&scratch, tide_mem_heap(), 64 << 20);
    expect(file != NULL, "a file for the Takeout");
    for (uint32_t slot = 0; slot < box_mailbox_slots(mailbox); slot++) {
        const struct box_message *message = box_mailbox_at(mailbox, slot);
        const time_t at_s = (time_t)(message->date_ms / 1000);
        struct tm at;
        char date[64];
        size_t count = 0;
        (void)gmtime_r(&at_s, &at);
        (void)strftime(date, sizeof date, "%a %b %d %H:%M:%S +0000 %Y", &at);
        (void)fprintf(file, "From %" PRIu64 "@xxx %s\nX-GM-THRID: %" PRIu64 "\nX-Gmail-Labels: ",
                      message->id, date, message->thread_id);
        const uint16_t *labels = box_mailbox_labels(mailbox, message->label_set, &count);
        for (size_t i = 0; i < count; i++)
            (void)fprintf(file, "%s%s", i == 0 ? "" : ",",
                          box_mailbox_label(mailbox, labels[i])->name);
        (void)fputc('\n', file);
        write_body(file, box_mailbox_raw(mailbox, slot, &scratch));
    }
    expect(fclose(file) == 0, "the Takeout is written");
    tide_buf_done(&scratch);
}

/* Imports and indexes it, as `mail import` does. */
static void import(const struct hour *hour, const char *path, uint32_t messages)
{
    tide_archive *archive = NULL;
    char dir[300];
    tide_error err = {TIDE_OK, 0, ""};
    struct tide_imported imported = {0};
    tide_mail_dir("/archive", HOUR_USER, dir, sizeof dir);
    const struct tide_archive_options options = {
        .dir = dir, .account = HOUR_USER, .world = hour->world, .index_later = true, .lean = true};
    must(tide_archive_open(&options, tide_mem_heap(), &archive, &err), "open an archive", &err);
    const struct tide_import wanted = {.archive = archive,
                                       .now_ms = (int64_t)tide_world_now_unix_ms(hour->world),
                                       .disk_path = dir};
    must(tide_import_run(hour->world, &wanted, &path, 1, tide_mem_heap(), &imported, &err),
         "import", &err);
    for (uint64_t done = 1; done > 0;)
        must(tide_archive_index(archive, 500, &done, &err), "index", &err);
    expect(imported.held == messages, "every message has its Gmail id");
    must(tide_archive_close(archive, &err), "close an archive", &err);
}

/* Whether everything can be searched under its Gmail id. */
static void check_searchable(const struct hour *hour, uint32_t messages)
{
    tide_archive *archive = NULL;
    char dir[300];
    tide_error err = {TIDE_OK, 0, ""};
    struct tide_archive_tally tally;
    tide_mail_dir("/archive", HOUR_USER, dir, sizeof dir);
    const struct tide_archive_options options = {
        .dir = dir, .account = HOUR_USER, .world = hour->world, .read_only = true};
    must(tide_archive_open(&options, tide_mem_heap(), &archive, &err), "open an archive", &err);
    must(tide_archive_tally(archive, &tally, &err), "count", &err);
    expect(tally.unindexed == 0 && tally.gone == 0, "everything is indexed, and nothing is gone");
    for (uint32_t slot = 0; slot < messages; slot += messages / 50 + 1) {
        struct tide_stored stored;
        char id[BOX_ID_TEXT_BYTES];
        box_id_text(box_mailbox_at(hour->mailbox, slot)->id, id);
        must(tide_archive_find(archive, tide_text_of(id), &stored, &err), "find", &err);
        expect(stored.indexed, "a message is indexed under its Gmail id");
    }
    must(tide_archive_close(archive, &err), "close an archive", &err);
}

/* Simulated seconds until the sync has ended. */
static double sync_s(struct hour *hour, struct tide_sim_mail *life)
{
    const uint64_t began_us = tide_world_now_us(hour->world);
    for (int step = 0; step < STEPS_MAX; step++) {
        pass(hour, STEP_MS);
        const struct tide_mail_state state = state_of(life);
        if (state.cycles > 0 && state.cycles_open == 0)
            return (double)(tide_world_now_us(hour->world) - began_us) / 1e6;
    }
    die("sync", "did not end in an hour");
}

/* How many labels a message has. */
static double labels_each(box_mailbox *mailbox)
{
    double sum = 0;
    for (uint32_t i = 0; i < box_mailbox_labels_count(mailbox); i++)
        sum += box_mailbox_label(mailbox, i)->messages;
    return sum / box_mailbox_messages(mailbox);
}

static double seeded_s(uint64_t seed, uint32_t messages)
{
    struct hour hour;
    struct tide_sim_mail life;
    char dir[BENCH_PATH_BYTES];
    char path[BENCH_PATH_BYTES + 16];
    hour_begin(&hour, seed, messages, BOX_MAILBOX_SIZE_MIN);
    dir_make(dir);
    (void)snprintf(path, sizeof path, "%s/all.mbox", dir);
    write_takeout(hour.mailbox, path);
    const double began_s = now_s();
    import(&hour, path, messages);
    const double import_s = now_s() - began_s;
    dir_remove(dir);
    life_begin(&hour, &life, true);
    const double synced_s = sync_s(&hour, &life);
    const struct truth truth = truth_of(&hour);
    const double per_500 = (double)truth.used / ((double)messages / 500);
    figure("takeout_import", import_s, "s", 0, NULL);
    figure("takeout_sync", synced_s, "s", 0, NULL);
    figure("takeout_units", (double)truth.used, "units", 0, NULL);
    figure("takeout_units_per_500", per_500, "units",
           per_500 / (UNITS_OF_500 * (1 + labels_each(hour.mailbox))), "a listing and each label");
    expect(truth.gotten == 0, "no message is fetched");
    tide_sim_mail_close(&life, hour.sim);
    check_searchable(&hour, messages);
    /* Then the exact bytes, newest first, at the pace of the quota. */
    life_begin(&hour, &life, false);
    pass(&hour, WARM_UP_MS);
    const uint64_t before = truth_of(&hour).gotten;
    pass(&hour, 60000);
    figure("takeout_exact_per_s", (double)(truth_of(&hour).gotten - before) / GET_UNITS / 60,
           "messages/s", 0, NULL);
    tide_sim_mail_close(&life, hour.sim);
    hour_end(&hour);
    return import_s + synced_s;
}

int main(int argc, char **argv)
{
    const char *scale = getenv("TIDE_TEST_SCALE");
    const uint64_t percent = scale == NULL ? 100 : strtoull(scale, NULL, 10);
    const uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    const uint32_t messages = argc > 2        ? (uint32_t)number(argv[2], 10000000)
                              : percent < 100 ? 2000
                                              : 200000;
    const uint64_t minutes = argc > 3 ? strtoull(argv[3], NULL, 10) : 10;
    const double plain = plain_s(seed, messages, minutes);
    const double seeded = seeded_s(seed, messages);
    figure("takeout_plain", plain, "s", 0, NULL);
    figure("takeout_searchable", seeded, "s", 0, NULL);
    figure("takeout_sooner", plain / seeded, "times", plain / seeded / 100, "100 times");
    return 0;
}
