/* A walk is in order of time, over all shards (ARC4). */
#include "archive_fixture.h"
#include "support/heap.h"

/* ARC4 with late arrivals, several shards, and parts that overlap in time. */
CASE(a_walk_is_in_order_of_time_over_all_shards)
{
    enum { COUNT = 2000 };
    static int64_t times[COUNT];
    tide_rng rng = tide_rng_seeded(7);
    f->options.shard_bytes_max = 600000; /* some parts a year */
    open_archive(f);
    for (size_t i = 0; i < COUNT; i++) {
        char id[16];
        char raw[300];
        times[i] = year_2019 + (int64_t)tide_rng_below(&rng, (uint64_t)3 * 31557600000);
        if (tide_rng_chance(&rng, 1, 3) && i > 0)
            times[i] = times[tide_rng_below(&rng, i)];
        (void)snprintf(id, sizeof id, "%zx", i);
        for (size_t j = 0; j < sizeof raw - 1; j++)
            raw[j] = (char)(33 + tide_rng_below(&rng, 90));
        raw[sizeof raw - 1] = '\0';
        put_text(f, id, times[i], raw);
    }
    sync_all(f);
    assert_true(tide_archive_shards(f->archive) > 5);
    assert_int_equal(walk(f, INT64_MIN, INT64_MAX, 0), COUNT);
    assert_int_equal(walk(f, INT64_MIN, INT64_MAX, 100), 100);
    for (int i = 0; i < 50; i++) {
        int64_t from_ms = times[tide_rng_below(&rng, COUNT)];
        int64_t to_ms = times[tide_rng_below(&rng, COUNT)];
        uint64_t wanted = 0;
        for (size_t j = 0; j < COUNT; j++)
            wanted += times[j] >= from_ms && times[j] < to_ms;
        assert_int_equal(walk(f, from_ms, to_ms, UINT64_MAX), wanted);
    }
    assert_int_equal(walk(f, year_2019 - 5, year_2019 - 1, 0), 0);
    assert_sound(f, COUNT);
    reopen_to_read(f);
    assert_int_equal(walk(f, INT64_MIN, INT64_MAX, 0), COUNT);
}

/* ARC4 where it is hardest: an import in which nothing has a date of its own. */
OPENED(ten_thousand_messages_of_one_date_are_distinguished_from_others)
{
    enum { CROWD = 10000, NEIGHBOURS = 100 };
    const int64_t date_ms = year_2019 + 10 * 1000 * 1000 + 7; /* not where an id begins */
    for (int i = 0; i < CROWD; i++) {
        const char *id = textf("id%d", i);
        put_text(f, id, date_ms, "without a date");
        if (i == CROWD / 2) { /* a writer that has forgotten how far it was */
            sync_all(f);
            reopen(f);
        }
    }
    /* On either side, among those that had to stand behind their date, and far behind. */
    for (int i = -NEIGHBOURS; i < NEIGHBOURS; i++) {
        const char *id = textf("n%d", i + NEIGHBOURS);
        put_text(f, id, date_ms + (i < 0 ? i : i + 1) * 20 * 1000, "with a date");
    }
    put_text(f, "next", date_ms + 1, "in the same eighth of a second");
    sync_all(f);
    const uint64_t all = CROWD + 2 * NEIGHBOURS + 1;
    assert_int_equal(tide_archive_shards(f->archive), 1);
    assert_sound(f, all);
    struct tide_shard_state shard;
    OK(tide_archive_shard(f->archive, 0, &shard, &f->err));
    assert_int_equal(shard.oldest_ms, date_ms - NEIGHBOURS * 20 * 1000);
    assert_int_equal(shard.newest_ms, date_ms + NEIGHBOURS * 20 * 1000);
    struct walked walked = {.f = f, .unordered = true, .from_ms = INT64_MIN, .to_ms = INT64_MAX};
    OK(tide_archive_walk(f->archive, INT64_MIN, INT64_MAX, walk_on, &walked, &f->err));
    assert_int_equal(walked.count, all);
    const struct {
        int64_t from_ms, to_ms;
        uint64_t count;
    } spans[] = {
        {date_ms, date_ms + 1, CROWD},
        {date_ms + 1, date_ms + 2, 1},
        {date_ms + 2, year_2020, NEIGHBOURS},
        {year_2019, date_ms, NEIGHBOURS},
        {date_ms + 20 * 1000, date_ms + 60 * 1000, 2},
        {date_ms - 20 * 1000, date_ms + 2, CROWD + 2},
    };
    for (size_t i = 0; i < sizeof spans / sizeof spans[0]; i++) {
        walked = (struct walked){
            .f = f, .unordered = true, .from_ms = spans[i].from_ms, .to_ms = spans[i].to_ms};
        OK(tide_archive_walk(f->archive, spans[i].from_ms, spans[i].to_ms, walk_on, &walked,
                             &f->err));
        assert_int_equal(walked.count, spans[i].count);
    }
    close_archive(f);
    /* No message is further behind than there are messages of one date, and the row says how far. */
    assert_in_range(ask(f, "2019", "SELECT late FROM shard"), CROWD, CROWD + 2 * NEIGHBOURS);
    assert_int_equal(ask(f, "2019",
                         "SELECT max(message.id - (internal_ms - start_ms) / 125) - max("
                         "late) FROM message, shard"),
                     0);
    assert_int_equal(ask(f, "2019",
                         "SELECT count(*) FROM shard, (SELECT internal_ms, max("
                         "internal_ms) OVER (ORDER BY id) AS newest FROM message)"
                         " WHERE newest > internal_ms + (late + 1) * 125"),
                     0);
}
