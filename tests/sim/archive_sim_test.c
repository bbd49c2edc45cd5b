/* Goal: whatever happens to the machine, what the archive acknowledged is there,
 * byte for byte (ARC1, ARC2), and what a failed commit did not store was not
 * acknowledged.  Method: the simulated world; threads put and sync while the
 * power fails at a random step, hundreds of times; disks fill up and fail; every
 * allocation fails in turn; the parser dies of a message. */
#include "sim.h"

#include "base/check.h"
#include "mail/archive/inside.h"
#include "mail/mime/message.h"
#include "support/scale.h"
#include "support/test.h"

#include <inttypes.h>
#include <stdlib.h>

enum { MESSAGES = 120, PUTTERS = 3 };

static const int64_t year_2019 = 1546300800000;

/* ---- mail that follows from its number -------------------------------------------------- */

static void make_mail(uint64_t seed, uint32_t number, tide_buf *raw)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    tide_rng rng = tide_rng_seeded(seed * 1000003 + number);
    tide_buf_clear(raw);
    TIDE_ASSERT(tide_buf_print(raw, "Subject: number %u\n\nWords of %" PRIu64 "\n", number,
                               tide_rng_next(&rng)) == TIDE_OK);
    if (number % 5 == 0) { /* an attachment, often the same one */
        tide_rng file = tide_rng_seeded(seed + number % 3);
        size_t lines = 54 + (size_t)tide_rng_below(&file, 100);
        for (size_t i = 0; i < lines * 76; i++) {
            char character = alphabet[tide_rng_below(&file, 64)];
            TIDE_ASSERT(tide_buf_add(raw, &character, 1) == TIDE_OK);
            if (i % 76 == 75)
                TIDE_ASSERT(tide_buf_add(raw, "\r\n", 2) == TIDE_OK);
        }
    }
    for (uint64_t left = tide_rng_below(&rng, 3000); left > 0; left--) {
        char character = (char)tide_rng_next(&rng);
        TIDE_ASSERT(tide_buf_add(raw, &character, 1) == TIDE_OK);
    }
}

static int64_t time_of(uint64_t seed, uint32_t number)
{
    tide_rng rng = tide_rng_seeded(seed * 7919 + number);
    return year_2019 + (int64_t)tide_rng_below(&rng, (uint64_t)3 * 31557600000);
}

static tide_status put_number(tide_archive *archive, uint64_t seed, uint32_t number,
                              const tide_cancel *cancel, uint64_t *ticket_out, tide_error *err)
{
    char id[16];
    tide_buf raw;
    const tide_text labels[] = {TIDE_TEXT("INBOX"), TIDE_TEXT("UNREAD")};
    (void)snprintf(id, sizeof id, "%08x", number * 2654435761u);
    tide_buf_init(&raw, tide_mem_heap(), 1 << 20);
    make_mail(seed, number, &raw);
    const struct tide_incoming incoming = {
        .gmail_id = tide_text_of(id),
        .thread_id = TIDE_TEXT("t"),
        .history_id = TIDE_TEXT("5"),
        .internal_ms = time_of(seed, number),
        .labels = labels,
        .labels_count = number % 3,
        .take = &raw,
    };
    tide_status rc = tide_archive_put(archive, &incoming, cancel, ticket_out, err);
    tide_buf_done(&raw);
    return rc;
}

/* ---- a reader of messages --------------------------------------------------------------- */

static tide_sim *poisoned; /* dies of poison; NULL: of nothing */
static uint32_t poison;

static tide_status parse(tide_text raw, tide_arena *arena, struct tide_message *message_out)
{
    (void)arena;
    char subject[40];
    (void)snprintf(subject, sizeof subject, "Subject: number %u\n", poison);
    if (poisoned != NULL && raw.bytes > strlen(subject) &&
        memcmp(raw.data, subject, strlen(subject)) == 0)
        tide_sim_crash(poisoned, TIDE_SIM_CRASH_KILL);
    *message_out = (struct tide_message){
        .parsed = TIDE_PARSED_WHOLE,
        .subject = {raw.data, raw.bytes < 12 ? raw.bytes : 12},
        .text = TIDE_TEXT("everyword"),
    };
    return TIDE_OK;
}

static tide_status fold(tide_text text, tide_buf *out)
{
    return tide_buf_add(out, text.data, text.bytes);
}

static const struct tide_indexer indexer = {parse, fold};

/* ---- a world with an archive in it -------------------------------------------------------- */

struct stage {
    tide_sim *sim;
    tide_world *world;
    uint64_t seed;
    tide_archive *archive;
    struct tide_archive_options options;
    bool acknowledged[MESSAGES];
    uint32_t next; /* to be put; guarded by the baton: read and written in one step */
    uint64_t refused;
};

static void stage_init(struct stage *stage, uint64_t seed, const struct tide_sim_options *options)
{
    memset(stage, 0, sizeof *stage);
    stage->seed = seed;
    stage->sim = tide_sim_new(seed, options);
    stage->world = tide_sim_world(stage->sim);
    stage->options = (struct tide_archive_options){.dir = "/mail/me",
                                                   .account = "me",
                                                   .world = stage->world,
                                                   .shard_bytes_max = 900000,
                                                   .indexer = &indexer};
}

static tide_status stage_open(struct stage *stage, tide_error *err)
{
    return tide_archive_open(&stage->options, tide_mem_heap(), &stage->archive, err);
}

static void stage_close(struct stage *stage)
{
    (void)tide_archive_close(stage->archive, NULL);
    stage->archive = NULL;
}

/* Puts what is not acknowledged yet, in small groups, and notes what is. */
static void put_and_sync(void *arg)
{
    struct stage *stage = arg;
    tide_rng rng = tide_sim_rng(stage->sim);
    for (;;) {
        uint32_t mine[10];
        size_t count = 0;
        size_t wanted = 1 + (size_t)tide_rng_below(&rng, 10);
        uint64_t ticket = 0;
        tide_status rc = TIDE_OK;
        while (count < wanted && stage->next < MESSAGES) {
            uint32_t number = stage->next++;
            if (!stage->acknowledged[number])
                mine[count++] = number;
        }
        if (count == 0)
            return;
        for (size_t i = 0; rc == TIDE_OK && i < count; i++)
            rc = put_number(stage->archive, stage->seed, mine[i], NULL, &ticket, NULL);
        if (rc == TIDE_OK)
            rc = tide_archive_sync(stage->archive, ticket, NULL, NULL);
        for (size_t i = 0; rc == TIDE_OK && i < count; i++)
            stage->acknowledged[mine[i]] = true;
        if (rc != TIDE_OK) {
            stage->refused++;
            return; /* the next life tries again */
        }
    }
}

static void put_with_threads(struct stage *stage)
{
    tide_thread *threads[PUTTERS] = {NULL};
    stage->next = 0;
    for (size_t i = 0; i < PUTTERS; i++)
        (void)tide_world_thread(stage->world, "putter", put_and_sync, stage, &threads[i], NULL);
    for (size_t i = 0; i < PUTTERS; i++)
        tide_world_join(stage->world, threads[i]);
}

static void check_number(struct stage *stage, uint32_t number, tide_buf *wanted, tide_buf *got)
{
    char id[16];
    struct tide_stored stored;
    tide_error err = {0};
    (void)snprintf(id, sizeof id, "%08x", number * 2654435761u);
    make_mail(stage->seed, number, wanted);
    tide_buf_clear(got);
    tide_status rc = tide_archive_find(stage->archive, tide_text_of(id), &stored, &err);
    if (rc == TIDE_OK)
        rc = tide_archive_raw(stage->archive, &stored, got, &err);
    if (rc != TIDE_OK)
        tide_sim_fail(stage->sim, "message %u was acknowledged: %s", number, err.text);
    TIDE_SIM_EXPECT(stage->sim, tide_text_equal(tide_buf_text(wanted), tide_buf_text(got)));
    TIDE_SIM_EXPECT(stage->sim, stored.internal_ms == time_of(stage->seed, number));
}

static uint32_t check_acknowledged(struct stage *stage)
{
    uint32_t count = 0;
    tide_buf wanted;
    tide_buf got;
    tide_buf_init(&wanted, tide_mem_heap(), 1 << 20);
    tide_buf_init(&got, tide_mem_heap(), 1 << 20);
    for (uint32_t number = 0; number < MESSAGES; number++) {
        if (!stage->acknowledged[number])
            continue;
        check_number(stage, number, &wanted, &got);
        count++;
    }
    tide_buf_done(&wanted);
    tide_buf_done(&got);
    return count;
}

static void fail_on_damage(const struct tide_damage *damage, void *arg)
{
    struct stage *stage = arg;
    tide_sim_fail(stage->sim, "shard %s, message %s: %s", damage->shard, damage->gmail_id,
                  damage->what);
}

static uint64_t words_in(struct stage *stage, const char *sql)
{
    uint64_t sum = 0;
    struct tide_reader *reader = NULL;
    tide_status rc = tide_reader_take_all(stage->archive, &reader, NULL);
    for (struct tide_shard *shard = NULL;
         tide_reader_next(reader, TIDE_OLDEST_FIRST, &shard, &rc, NULL);) {
        int64_t count = 0;
        TIDE_ASSERT(tide_db_number(&shard->db, sql, &count, NULL) == TIDE_OK);
        sum += (uint64_t)count;
    }
    TIDE_ASSERT(rc == TIDE_OK);
    tide_reader_drop(reader);
    return sum;
}

/* In a calm world the rest goes in, everything is indexed, and all of it is right. */
static void finish(struct stage *stage)
{
    tide_error err = {0};
    uint64_t done = 0;
    uint64_t checked = 0;
    tide_sim_faults(stage->sim, false);
    if (stage_open(stage, &err) != TIDE_OK)
        tide_sim_fail(stage->sim, "open: %s", err.text);
    put_with_threads(stage);
    TIDE_SIM_EXPECT(stage->sim, check_acknowledged(stage) == MESSAGES);
    if (tide_archive_index_again(stage->archive, NULL, &err) != TIDE_OK ||
        tide_archive_index(stage->archive, UINT64_MAX, &done, &err) != TIDE_OK)
        tide_sim_fail(stage->sim, "index: %s", err.text);
    TIDE_SIM_EXPECT(stage->sim, tide_archive_verify(stage->archive, 0, fail_on_damage, stage,
                                                    &checked, &err) == TIDE_OK);
    TIDE_SIM_EXPECT(stage->sim, checked == MESSAGES);
    TIDE_SIM_EXPECT(stage->sim,
                    words_in(stage, "SELECT count(*) FROM words WHERE words MATCH 'everyword'") ==
                        MESSAGES);
    TIDE_SIM_EXPECT(stage->sim,
                    words_in(stage, "SELECT count(*) FROM message WHERE mark = 2") == MESSAGES);
    TIDE_SIM_EXPECT(stage->sim, tide_archive_close(stage->archive, &err) == TIDE_OK);
}

static void nothing(const char *name, void *arg)
{
    (void)name;
    (void)arg;
}

static bool check_dir(struct stage *stage)
{
    return tide_dir_list(stage->world, stage->options.dir, nothing, NULL, NULL) == TIDE_OK;
}

TEST(what_was_acknowledged_survives_every_crash)
{
    uint64_t crashes = 0;
    uint64_t lives = 0;
    for (uint64_t seed = 1; seed <= scaled_at_least(150, 10); seed++) {
        struct tide_sim_options options = tide_sim_options_seeded(seed);
        struct stage stage;
        stage_init(&stage, seed, &options);
        tide_rng rng = tide_sim_rng(stage.sim);
        for (int life = 0; life < 6; life++) {
            tide_error err = {0};
            tide_sim_faults(stage.sim, true);
            tide_sim_crash_after(stage.sim, 1 + tide_rng_below(&rng, life % 2 == 0 ? 2000 : 200),
                                 TIDE_SIM_CRASH_SEEDED);
            if (stage_open(&stage, &err) == TIDE_OK) {
                put_with_threads(&stage);
                stage_close(&stage);
            }
            tide_sim_crash_after(stage.sim, 0, TIDE_SIM_CRASH_SEEDED);
            tide_sim_reboot(stage.sim);
            tide_sim_faults(stage.sim, false);
            /* At times read-only; the directory may be lost too. */
            stage.options.read_only = life % 3 == 0 && check_dir(&stage);
            if (stage_open(&stage, &err) != TIDE_OK)
                tide_sim_fail(stage.sim, "open after a crash: %s", err.text);
            (void)check_acknowledged(&stage);
            stage_close(&stage);
            stage.options.read_only = false;
            tide_sim_reboot(stage.sim);
            lives++;
        }
        crashes += tide_sim_stats(stage.sim).crashes;
        finish(&stage);
        tide_sim_free(stage.sim);
    }
    assert_true(crashes > lives / 2);
    print_message("%" PRIu64 " crashes in %" PRIu64 " lives\n", crashes, lives);
}

/* ---- disks --------------------------------------------------------------------------------- */

/* Nothing is lost, no false success is returned, and with room again it continues. */
TEST(a_full_disk_is_told_and_what_is_queued_is_stored_later)
{
    for (uint64_t seed = 1; seed <= scaled_at_least(40, 5); seed++) {
        struct stage stage;
        tide_error err = {0};
        uint64_t ticket = 0;
        stage_init(&stage, seed, NULL);
        assert_int_equal(stage_open(&stage, &err), TIDE_OK);
        for (uint32_t number = 0; number < 10; number++)
            assert_int_equal(put_number(stage.archive, seed, number, NULL, &ticket, &err), TIDE_OK);
        assert_int_equal(tide_archive_sync(stage.archive, ticket, NULL, &err), TIDE_OK);
        tide_sim_disk_room(stage.sim, tide_sim_disk_used(stage.sim) + seed * 1000);
        for (uint32_t number = 10; number < MESSAGES; number++)
            assert_int_equal(put_number(stage.archive, seed, number, NULL, &ticket, &err), TIDE_OK);
        assert_int_equal(tide_archive_sync(stage.archive, ticket, NULL, &err), TIDE_DISK_FULL);
        assert_int_equal(tide_archive_sync(stage.archive, ticket, NULL, &err), TIDE_DISK_FULL);
        memset(stage.acknowledged, true, 10);
        assert_int_equal(check_acknowledged(&stage), 10);
        tide_sim_disk_room(stage.sim, 1 << 30);
        tide_status rc = tide_archive_sync(stage.archive, ticket, NULL, &err);
        if (rc == TIDE_DISK_FULL) /* it was being told while we made room */
            rc = tide_archive_sync(stage.archive, ticket, NULL, &err);
        assert_int_equal(rc, TIDE_OK);
        memset(stage.acknowledged, true, MESSAGES);
        assert_int_equal(check_acknowledged(&stage), MESSAGES);
        stage_close(&stage);
        finish(&stage);
        tide_sim_free(stage.sim);
    }
}

/* E1.10: a failed sync ends it for this run; all waiters get the error. */
TEST(a_failed_sync_reaches_all_waiters_and_is_final)
{
    for (uint64_t seed = 1; seed <= scaled_at_least(60, 10); seed++) {
        struct stage stage;
        tide_error err = {0};
        stage_init(&stage, seed, NULL);
        assert_int_equal(stage_open(&stage, &err), TIDE_OK);
        tide_sim_disk_fail_sync(stage.sim, "-wal", 1 + (uint32_t)(seed % 8));
        put_with_threads(&stage);
        if (stage.refused > 0) {
            uint64_t ticket = 0;
            assert_int_equal(put_number(stage.archive, seed, 0, NULL, &ticket, &err), TIDE_IO);
            assert_int_equal(tide_archive_close(stage.archive, &err), TIDE_IO);
        } else {
            stage_close(&stage);
        }
        /* The power goes too: what the failed sync covered is gone. */
        tide_sim_crash(stage.sim, TIDE_SIM_CRASH_POWER);
        tide_sim_reboot(stage.sim);
        tide_sim_disk_fail_sync(stage.sim, "-wal", 0);
        if (stage_open(&stage, &err) != TIDE_OK)
            fail_msg("seed %" PRIu64 ": %s", seed, err.text);
        (void)check_acknowledged(&stage);
        stage_close(&stage);
        finish(&stage);
        tide_sim_free(stage.sim);
    }
}

static tide_status store_one(struct stage *stage, tide_error *err)
{
    uint64_t ticket = 0;
    const tide_status rc = put_number(stage->archive, stage->seed, 1, NULL, &ticket, err);
    return rc == TIDE_OK ? tide_archive_sync(stage->archive, ticket, NULL, err) : rc;
}

static uint64_t faults_of(struct stage *stage)
{
    const struct tide_sim_disk_stats stats = tide_sim_disk_stats(stage->sim);
    return stats.faults + stats.syncs_failed;
}

/* The first message makes its shard.  Whichever write or sync fails on the way is reported, and what
 * is acknowledged survives a power loss, also for who may only read (ARC1).  Returns whether one
 * failed. */
static bool store_with_a_fault(bool of_a_sync, uint32_t nth)
{
    struct stage stage;
    tide_error err = {0};
    stage_init(&stage, nth, NULL);
    stage.options.index_later = true;
    assert_int_equal(stage_open(&stage, &err), TIDE_OK);
    if (of_a_sync)
        tide_sim_disk_fail_sync(stage.sim, NULL, nth);
    else
        tide_sim_disk_fail_write(stage.sim, NULL, nth);
    const uint64_t before = faults_of(&stage);
    const tide_status rc = store_one(&stage, &err);
    const bool failed = faults_of(&stage) > before;
    if (rc != (failed ? TIDE_IO : TIDE_OK))
        tide_sim_fail(stage.sim, "%s %" PRIu32 " %s, and the archive says %s",
                      of_a_sync ? "sync" : "write", nth, failed ? "failed" : "did not fail",
                      tide_status_name(rc));
    tide_sim_crash(stage.sim, TIDE_SIM_CRASH_POWER);
    stage_close(&stage);
    tide_sim_reboot(stage.sim);
    stage.acknowledged[1] = rc == TIDE_OK;
    stage.options.read_only = true;
    assert_int_equal(stage_open(&stage, &err), TIDE_OK);
    (void)check_acknowledged(&stage);
    stage_close(&stage);
    stage.options.read_only = false;
    assert_int_equal(stage_open(&stage, &err), TIDE_OK);
    assert_int_equal(store_one(&stage, &err), TIDE_OK);
    stage_close(&stage);
    tide_sim_free(stage.sim);
    return failed;
}

TEST(a_fault_while_a_shard_is_made_is_told)
{
    for (int of_a_sync = 0; of_a_sync < 2; of_a_sync++) {
        uint32_t nth = 1;
        while (store_with_a_fault(of_a_sync == 1, nth))
            nth++;
        assert_true(nth > 5);
        print_message("%" PRIu32 " %s\n", nth - 1, of_a_sync == 1 ? "syncs" : "writes");
    }
}

/* ---- waiting --------------------------------------------------------------------------------- */

struct canceling {
    struct stage *stage;
    tide_cancel cancel;
};

static void cancel_soon(void *arg)
{
    struct canceling *canceling = arg;
    tide_world *world = canceling->stage->world;
    (void)tide_world_sleep_until(world, tide_world_now_us(world) + 300 * 1000, NULL);
    tide_world_cancel(world, &canceling->cancel, TIDE_CANCEL_USER);
}

/* The queue is bounded in bytes, a caller that waits for room can be canceled, and
 * what was queued before is stored all the same. */
TEST(a_full_queue_makes_putters_wait_until_canceled)
{
    struct stage stage;
    struct canceling canceling = {.stage = &stage};
    tide_error err = {0};
    tide_thread *thread = NULL;
    stage_init(&stage, 3, NULL);
    assert_int_equal(stage_open(&stage, &err), TIDE_OK);
    tide_sim_freeze(stage.sim, "archive", 2000 * 1000);
    assert_int_equal(
        tide_world_thread(stage.world, "canceler", cancel_soon, &canceling, &thread, NULL),
        TIDE_OK);
    char *large = calloc(1, 10 << 20);
    uint64_t put_count = 0;
    uint64_t ticket = 0;
    tide_status rc = TIDE_OK;
    for (int i = 0; rc == TIDE_OK; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "%d", i);
        memcpy(large, id, 8);
        struct tide_incoming incoming = {
            .gmail_id = tide_text_of(id), .internal_ms = year_2019, .raw = {large, 10 << 20}};
        rc = tide_archive_put(stage.archive, &incoming, &canceling.cancel, &ticket, &err);
        put_count += rc == TIDE_OK;
        assert_true(stage.archive->writer->bytes <= TIDE_ARCHIVE_QUEUE_BYTES);
    }
    assert_int_equal(rc, TIDE_CANCELED);
    assert_int_equal(put_count, 3);
    assert_int_equal(tide_archive_sync(stage.archive, ticket, &canceling.cancel, &err),
                     TIDE_CANCELED);
    assert_int_equal(tide_archive_sync(stage.archive, ticket, NULL, &err), TIDE_OK);
    tide_world_join(stage.world, thread);
    /* One that is larger than the queue passes, alone. */
    free(large);
    large = calloc(1, 40 << 20);
    struct tide_incoming incoming = {
        .gmail_id = TIDE_TEXT("huge"), .internal_ms = year_2019, .raw = {large, 40 << 20}};
    assert_int_equal(tide_archive_put(stage.archive, &incoming, NULL, &ticket, &err), TIDE_OK);
    assert_int_equal(tide_archive_sync(stage.archive, ticket, NULL, &err), TIDE_OK);
    free(large);
    assert_int_equal(tide_archive_close(stage.archive, &err), TIDE_OK);
    tide_sim_free(stage.sim);
}

/* Without a request to sync: after a second it is durable all the same (M7). */
TEST(a_group_is_committed_when_it_is_a_second_old)
{
    struct stage stage;
    tide_error err = {0};
    uint64_t ticket = 0;
    stage_init(&stage, 5, NULL);
    stage.options.index_later = true; /* it would hurry the writer */
    assert_int_equal(stage_open(&stage, &err), TIDE_OK);
    assert_int_equal(put_number(stage.archive, 5, 1, NULL, &ticket, &err), TIDE_OK);
    (void)tide_world_sleep_until(stage.world, tide_world_now_us(stage.world) + 1500 * 1000, NULL);
    assert_int_equal(stage.archive->writer->ticket_done, ticket);
    tide_sim_crash(stage.sim, TIDE_SIM_CRASH_POWER);
    stage_close(&stage);
    tide_sim_reboot(stage.sim);
    stage.acknowledged[1] = true;
    assert_int_equal(stage_open(&stage, &err), TIDE_OK);
    assert_int_equal(check_acknowledged(&stage), 1);
    stage_close(&stage);
    tide_sim_free(stage.sim);
}

/* ---- the index -------------------------------------------------------------------------------- */

/* The parser dies of one message: after two deaths it is known by name, and all
 * the others are indexed (M9). */
TEST(a_message_that_kills_the_parser_is_known_by_name)
{
    for (uint64_t seed = 1; seed <= scaled_at_least(20, 3); seed++) {
        struct stage stage;
        tide_error err = {0};
        stage_init(&stage, seed, NULL);
        stage.options.index_later = true;
        poison = (uint32_t)(seed * 31 % MESSAGES);
        assert_int_equal(stage_open(&stage, &err), TIDE_OK);
        put_with_threads(&stage);
        stage_close(&stage);
        tide_sim_reboot(stage.sim);
        uint64_t deaths = 0;
        for (;;) {
            uint64_t done = 0;
            poisoned = stage.sim;
            assert_int_equal(stage_open(&stage, &err), TIDE_OK);
            tide_status rc = tide_archive_index(stage.archive, UINT64_MAX, &done, &err);
            poisoned = NULL;
            if (rc == TIDE_OK)
                break;
            stage_close(&stage);
            tide_sim_reboot(stage.sim);
            deaths++;
            assert_true(deaths < 10);
        }
        assert_int_equal(deaths, 2);
        assert_int_equal(words_in(&stage, "SELECT count(*) FROM message WHERE mark = 2"),
                         MESSAGES - 1);
        assert_int_equal(words_in(&stage,
                                  "SELECT count(*) FROM message WHERE mark = 3 AND problem LIKE"
                                  " 'the program crashed%'"),
                         1);
        assert_int_equal(check_acknowledged(&stage), MESSAGES);
        stage_close(&stage);
        finish(&stage); /* with a better parser it is tried again, on request */
        tide_sim_free(stage.sim);
    }
}

/* ---- memory ------------------------------------------------------------------------------------ */

static tide_status scenario(struct stage *stage, tide_mem *mem)
{
    tide_error err = {0};
    tide_archive *archive = NULL;
    uint64_t ticket = 0;
    uint64_t done = 0;
    struct tide_stored stored;
    bool missing = false;
    const tide_text id = TIDE_TEXT("00000000"); /* number 0 */
    tide_buf raw;
    tide_buf_init(&raw, mem, 1 << 20);
    stage->options.index_later = true;
    tide_status rc = tide_archive_open(&stage->options, mem, &archive, &err);
    for (uint32_t number = 0; rc == TIDE_OK && number < 6; number++)
        rc = put_number(archive, stage->seed, number, NULL, &ticket, &err);
    const struct tide_label_change change = {
        .gmail_id = id, .label = TIDE_TEXT("L"), .added = true, .history_id = TIDE_TEXT("9")};
    if (rc == TIDE_OK)
        rc = tide_archive_label_name(archive, TIDE_TEXT("L"), TIDE_TEXT("l"), TIDE_TEXT("user"),
                                     &ticket, &err);
    if (rc == TIDE_OK)
        rc = tide_archive_labels(archive, &change, 1, &ticket, &err);
    if (rc == TIDE_OK)
        rc = tide_archive_gone(archive, id, 1, &ticket, &err);
    if (rc == TIDE_OK)
        rc = tide_archive_sync(archive, ticket, NULL, &err);
    if (rc == TIDE_OK)
        rc = tide_archive_missing(archive, &id, 1, &missing, &err);
    if (rc == TIDE_OK)
        rc = tide_archive_find(archive, id, &stored, &err);
    if (rc == TIDE_OK)
        rc = tide_archive_raw(archive, &stored, &raw, &err);
    if (rc == TIDE_OK)
        rc = tide_archive_index(archive, UINT64_MAX, &done, &err);
    if (rc == TIDE_OK)
        rc = tide_archive_verify(archive, 0, fail_on_damage, stage, &done, &err);
    if (rc == TIDE_OK)
        rc = tide_archive_checkpoint(archive, NULL, &err);
    tide_status closed = tide_archive_close(archive, &err);
    tide_buf_done(&raw);
    return rc == TIDE_OK ? closed : rc;
}

TEST(the_archive_survives_every_failed_allocation)
{
    for (uint64_t fail_at = 0;; fail_at++) {
        struct stage stage;
        struct tide_mem_faulty mem;
        stage_init(&stage, 9, NULL);
        tide_mem_faulty_once(&mem, fail_at);
        tide_status rc = scenario(&stage, &mem.base);
        if (mem.bytes_live != 0)
            tide_sim_fail(stage.sim, "allocation %" PRIu64 ": %zu bytes left", fail_at,
                          mem.bytes_live);
        if (!mem.fired) {
            assert_int_equal(rc, TIDE_OK);
            assert_true(fail_at > 50);
            tide_sim_free(stage.sim);
            return;
        }
        /* Some of it is only tried again: a group that found no memory. */
        assert_true(rc == TIDE_NO_MEMORY || rc == TIDE_OK);
        finish(&stage);
        tide_sim_free(stage.sim);
    }
}
