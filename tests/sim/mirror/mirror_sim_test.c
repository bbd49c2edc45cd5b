/* Goal: the mirror of the campaign loses no item that appears at the instant where its listings end
 * and its feed begins (SIM10).  A seed draws such an item once in about two million.
 * Method: all new items of both providers appear at that instant; rules of mirror.h check the
 * rest, and a broken one aborts. */
#include "mirror.h"

#include "db/db.h"
#include "support/test.h"

enum { NEW_ITEMS = 3 };

static void check_instant(const struct tide_sim_provider_options *options)
{
    size_t count = 0;
    tide_sim_provider *provider = tide_sim_provider_new(options);
    const struct tide_sim_item *items = tide_sim_provider_items(provider, &count);
    assert_int_equal(count, options->items_count + NEW_ITEMS);
    for (size_t i = options->items_count; i < count; i++) {
        assert_int_equal(items[i].appears_ms, options->start_unix_ms);
        assert_int_equal(items[i].vanishes_ms, UINT64_MAX);
        assert_int_equal(items[i].kind, TIDE_SIM_ITEM_PLAIN);
    }
    tide_sim_provider_free(provider);
}

TEST(items_between_listing_and_feed_are_stored)
{
    struct mirror_plan plan = mirror_plan_seeded(1);
    plan.lives = 0;
    for (size_t i = 0; i < MIRROR_ACCOUNTS; i++) {
        plan.provider[i] =
            (struct tide_sim_provider_options){.seed = i,
                                               .start_unix_ms = plan.provider[i].start_unix_ms,
                                               .items_count = 5,
                                               .span_ms = plan.provider[i].span_ms,
                                               .new_count = NEW_ITEMS,
                                               .grow_ms = 1,
                                               .units_per_minute = 6000};
        check_instant(&plan.provider[i]);
    }
    (void)mirror_run(&plan);
}

int main(void)
{
    tide_db_tune_process();
    return tests_run(NULL);
}
