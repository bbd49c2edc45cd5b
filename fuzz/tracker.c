/* tracker.c - any sequence of valid operations on a tracker: TRK1 to TRK6 hold after each. */
#include "fuzz.h"
#include "base/limits.h"
#include "core/tracker.h"

enum { IDS = 40, ACCOUNTS = 4 };

struct run {
    tide_tracker *tracker;
    struct fuzz_input input;
    uint64_t now_ms;
    uint64_t token;
};

static struct tide_brief brief_read(struct run *run)
{
    struct fuzz_input *input = &run->input;
    uint8_t shape = fuzz_u8(input);
    return (struct tide_brief){.id = 1u + fuzz_below(input, IDS),
                               .account = fuzz_below(input, ACCOUNTS),
                               .kind = 1,
                               .priority = (uint8_t)fuzz_below(input, TIDE_PRIORITY_MAX + 1),
                               .not_before_ms = shape & 1 ? run->now_ms + fuzz_u8(input) : 0,
                               .open_deps = shape & 2 ? 1 : 0,
                               .lane = shape >> 2 & 1,
                               .level = (uint8_t)(1 + (shape >> 3 & 3))};
}

static void refill(struct run *run)
{
    struct tide_refill refill;
    if (!tide_tracker_refill(run->tracker, &refill))
        return;
    uint32_t loaded = 0;
    struct tide_brief last = {0};
    uint32_t wanted = fuzz_below(&run->input, 4);
    uint64_t evicted = 0;
    while (loaded < wanted && loaded < refill.count_max) {
        struct tide_brief brief = brief_read(run);
        brief.account = refill.account;
        (void)tide_tracker_add(run->tracker, &brief, run->now_ms, &evicted);
        last = brief;
        loaded++;
    }
    tide_tracker_refilled(run->tracker, &refill, loaded, loaded == 0 ? NULL : &last);
}

/* The next step that the state of the job allows. */
static void move(struct run *run, uint64_t id, uint8_t op)
{
    const struct tide_tracked *job = tide_tracker_find(run->tracker, id);
    if (job == NULL)
        return;
    tide_job_state state = job->state;
    bool claimed = state >= TIDE_JOB_CLAIMED;
    if (op % 4 == 3 && (claimed || state == TIDE_JOB_CLAIMING))
        tide_tracker_put_back(run->tracker, id, run->now_ms + op, 1, run->now_ms);
    else if (op % 4 == 2 && claimed)
        tide_tracker_ending(run->tracker, id, run->now_ms);
    else if (state == TIDE_JOB_READY)
        tide_tracker_claiming(run->tracker, id, run->now_ms);
    else if (state == TIDE_JOB_CLAIMING)
        tide_tracker_claimed(run->tracker, id, ++run->token, run->now_ms);
    else if (state == TIDE_JOB_CLAIMED)
        tide_tracker_started(run->tracker, id, run->now_ms);
    else if (state == TIDE_JOB_RUNNING && op % 4 == 1)
        tide_tracker_parked(run->tracker, id, run->now_ms + op, run->now_ms);
}

static void step(struct run *run)
{
    struct fuzz_input *input = &run->input;
    uint8_t op = fuzz_u8(input);
    uint64_t id = 1u + fuzz_below(input, IDS), evicted = 0;
    struct tide_brief brief;
    switch (op & 7) {
    case 0:
    case 1:
        brief = brief_read(run);
        (void)tide_tracker_add(run->tracker, &brief, run->now_ms, &evicted);
        break;
    case 2:
    case 3:
        move(run, id, op >> 3);
        break;
    case 4:
        (void)tide_tracker_release(run->tracker, id, fuzz_below(input, ACCOUNTS), op >> 7,
                                   run->now_ms);
        break;
    case 5:
        run->now_ms += fuzz_u8(input);
        while (tide_tracker_due(run->tracker, run->now_ms) != 0)
            continue;
        break;
    case 6:
        refill(run);
        break;
    default:
        if (op & 8)
            tide_tracker_remove(run->tracker, id);
        else if (op & 16)
            tide_tracker_more(run->tracker, fuzz_below(input, ACCOUNTS));
        else
            (void)tide_tracker_priority(run->tracker, id,
                                        (uint8_t)fuzz_below(input, TIDE_PRIORITY_MAX + 1));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct run run = {.input = {data, bytes}, .now_ms = 1000};
    uint32_t window_max = 1u + fuzz_below(&run.input, 24);
    TIDE_ASSERT(tide_tracker_new(window_max, tide_mem_heap(), &run.tracker) == TIDE_OK);
    for (int i = 0; fuzz_more(&run.input) && i < 1000; i++) {
        step(&run);
        TIDE_ASSERT(tide_tracker_check(run.tracker));
        TIDE_ASSERT(tide_tracker_count(run.tracker) <= window_max); /* TRK1 */
    }
    tide_tracker_free(run.tracker);
    return 0;
}
