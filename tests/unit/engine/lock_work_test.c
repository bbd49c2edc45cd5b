/* Goal: what is done under the engine's one lock grows neither with accounts x window nor with
 * items x payload: a status of many accounts, or a batch whose items all go alone, must not stop
 * the workers.
 * Method: the linker puts a counter before the two functions that read the whole window and a
 * whole payload. */
#include "engine_fixture.h"

#include "base/json.h"
#include "core/tracker.h"
#include "support/heap.h"

#include <stdatomic.h>

static atomic_uint passes, readings;

void __real_tide_tracker_each(const tide_tracker *tracker,
                              bool (*visit)(const struct tide_tracked *tracked, void *arg),
                              void *arg);
void __wrap_tide_tracker_each(const tide_tracker *tracker,
                              bool (*visit)(const struct tide_tracked *tracked, void *arg),
                              void *arg);
tide_status __real_tide_json_parse_stored(tide_text text, json_t **value_out, tide_error *err);
tide_status __wrap_tide_json_parse_stored(tide_text text, json_t **value_out, tide_error *err);

void __wrap_tide_tracker_each(const tide_tracker *tracker,
                              bool (*visit)(const struct tide_tracked *tracked, void *arg),
                              void *arg)
{
    atomic_fetch_add(&passes, 1);
    __real_tide_tracker_each(tracker, visit, arg);
}

tide_status __wrap_tide_json_parse_stored(tide_text text, json_t **value_out, tide_error *err)
{
    atomic_fetch_add(&readings, 1);
    return __real_tide_json_parse_stored(text, value_out, err);
}

enum { ACCOUNTS = 100, ITEMS = 200 };

OPENED(a_snapshot_of_many_accounts_reads_the_window_once)
{
    for (int i = 0; i < ACCOUNTS; i++) {
        uint32_t account = 0;
        const char *name = textf("account %d", i);
        OK(tide_engine_account(f->engine, name, "default", &account, err));
    }
    tide_buf json = heap_buf(16 << 20);
    atomic_store(&passes, 0);
    OK(tide_engine_snapshot(f->engine, &json, err));
    assert_true(atomic_load(&passes) <= 2);
    tide_buf_done(&json);
}

/* At its first attempt no item can be stored, so that each goes alone. */
static tide_status refuse_each(tide_job *job, void *context, tide_error *err)
{
    (void)context;
    (void)err;
    for (size_t i = 0; i < tide_job_items(job); i++) {
        if (tide_job_items(job) > 1)
            tide_job_item_failed(job, i, TIDE_SERVER, "not now");
        else
            tide_job_item_done(job, i);
    }
    return TIDE_OK;
}

OPENED(a_batch_whose_items_go_alone_is_read_a_few_times)
{
    uint32_t kind = DEFINE(f, "items", refuse_each, .items = true);
    uint32_t account = new_account(f, "a@example.org", "default");
    static char payload[ITEMS * 16];
    size_t at = (size_t)snprintf(payload, sizeof payload, "{\"items\":[");
    for (int i = 0; i < ITEMS; i++)
        at +=
            (size_t)snprintf(payload + at, sizeof payload - at, "%s\"i%d\"", i == 0 ? "" : ",", i);
    (void)snprintf(payload + at, sizeof payload - at, "]}");
    start(f);
    atomic_store(&readings, 0);
    ENQUEUE(f, .kind = kind, .account = account, .payload = payload);
    UNTIL(sql(f, "SELECT count(*) FROM job") > ITEMS / 2);
    const unsigned so_far = atomic_load(&readings);
    const int64_t ran = sql(f, "SELECT count(*) FROM job WHERE state IN (1, 2)");
    /* Two for the batch, and two for each part that ran already. */
    assert_true(so_far <= 2 + 2 * (unsigned)(ran + ITEMS / 4));
}
