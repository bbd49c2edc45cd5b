/* Many threads put at once. */
#include "archive_fixture.h"
#include "support/heap.h"

enum { PUTTERS = 4 };

struct putter {
    struct fixture *f;
    int number;
    uint64_t count;
    uint64_t failures;
};

static void put_many(void *arg)
{
    struct putter *putter = arg;
    tide_rng rng = tide_rng_seeded((uint64_t)putter->number);
    for (uint64_t i = 0; i < putter->count; i++) {
        tide_buf raw = heap_buf(10 << 20);
        make_mail(&rng, &raw);
        const char *id = textf("%d-%" PRIu64, putter->number, i);
        struct tide_incoming incoming =
            mail(id, year_2019 + (int64_t)tide_rng_below(&rng, 31557600000 * 2), TIDE_TEXT_NONE);
        incoming.take = &raw;
        uint64_t ticket = 0;
        bool missing = true;
        if (tide_archive_put(putter->f->archive, &incoming, NULL, &ticket, NULL) != TIDE_OK)
            putter->failures++;
        else if (i % 20 == 0 &&
                 (tide_archive_sync(putter->f->archive, ticket, NULL, NULL) != TIDE_OK ||
                  tide_archive_missing(putter->f->archive, &incoming.gmail_id, 1, &missing, NULL) !=
                      TIDE_OK ||
                  missing))
            putter->failures++;
        tide_buf_done(&raw);
    }
}

CASE(many_threads_put_at_once)
{
    struct putter putters[PUTTERS];
    tide_thread *threads[PUTTERS];
    uint64_t count = scaled(300);
    f->options.index_later = false;
    f->options.indexer = &simple_indexer;
    open_archive(f);
    for (int i = 0; i < PUTTERS; i++) {
        putters[i] = (struct putter){.f = f, .number = i + 1, .count = count};
        OK(tide_world_thread(f->world, "putter", put_many, &putters[i], &threads[i], NULL));
    }
    for (int i = 0; i < PUTTERS; i++) {
        tide_world_join(f->world, threads[i]);
        assert_int_equal(putters[i].failures, 0);
    }
    close_archive(f); /* commits what is queued */
    f->options.read_only = true;
    open_archive(f);
    for (int i = 0; i < PUTTERS; i++) {
        tide_rng rng = tide_rng_seeded((uint64_t)i + 1);
        for (uint64_t j = 0; j < count; j++) {
            tide_buf raw = heap_buf(10 << 20);
            make_mail(&rng, &raw);
            (void)tide_rng_next(&rng);
            const char *id = textf("%d-%" PRIu64, i + 1, j);
            assert_raw(f, id, tide_buf_text(&raw));
            tide_buf_done(&raw);
        }
    }
    assert_sound(f, PUTTERS * count);
}
