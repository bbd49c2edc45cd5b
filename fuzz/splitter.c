/* splitter.c - any outcome of any batch: the plan keeps SPT1 to SPT5. */
#include "fuzz.h"
#include "base/limits.h"
#include "core/splitter.h"

enum { ITEMS = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct fuzz_input input = {data, bytes};
    struct tide_split_item items[ITEMS];
    struct tide_item_fate fates[ITEMS];
    struct tide_split_plan plan;
    struct tide_retry_policy policy = tide_retry_defaults();
    policy.attempts_max = 1u + fuzz_below(&input, 8);
    policy.halves_attempts = fuzz_below(&input, 3);
    policy.pause_first_ms = fuzz_u64(&input);
    policy.pause_max_ms = fuzz_u64(&input);
    tide_error err = {TIDE_OK, 0, ""};
    if (tide_retry_check(&policy, &err) != TIDE_OK)
        policy = tide_retry_defaults();
    struct tide_split_input split = {.items = items,
                                     .count = fuzz_below(&input, ITEMS + 1),
                                     .batch_status = -(int)fuzz_below(&input, 25),
                                     .attempts = fuzz_below(&input, 12),
                                     .attempts_max = fuzz_below(&input, 8),
                                     .again_at_ms = fuzz_u64(&input)};
    uint64_t now_ms = fuzz_u64(&input);
    tide_rng rng = tide_rng_seeded(fuzz_u64(&input));
    for (uint32_t i = 0; i < split.count; i++) {
        uint8_t seen = fuzz_u8(&input);
        items[i].seen = (enum tide_seen)(seen % 3);
        items[i].status = -(tide_status)(seen / 3 % 25);
    }
    if (tide_splitter_plan(&policy, &split, now_ms, &rng, fates, &plan) == TIDE_OK)
        tide_splitter_check(&split, fates, &plan);
    return 0;
}
