/* control_request.c - requests on the control socket: parsed, their op and filter read, and the
 * filter applied to a small ledger and undone again.  No request may damage the ledger or affect
 * more than it names. */
#include "fuzz.h"
#include "engine/control/control.h"

#include <stdio.h>
#include <unistd.h>

enum { JOBS = 6, NOW_UNIX_MS = 1700000000 };

static tide_ledger *ledger;
static tide_world *world;
static char dir[64];

static void ledger_remove(void)
{
    static const char *const names[] = {"state.db", "state.db-wal", "state.db-shm"};
    tide_ledger_close(ledger, true);
    tide_world_real_free(world);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[96];
        (void)snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        (void)unlink(path);
    }
    (void)rmdir(dir);
}

static void ledger_fill(void)
{
    tide_error err = {TIDE_OK, 0, ""};
    tide_tx *tx = NULL;
    uint32_t account = 0, kind = 0;
    TIDE_ASSERT(tide_tx_begin(ledger, &tx, &err) == TIDE_OK);
    TIDE_ASSERT(tide_ledger_account(tx, "ann", "default", &account, &err) == TIDE_OK);
    TIDE_ASSERT(tide_ledger_kind(tx, "k", TIDE_DEDUPE_PENDING, &kind, &err) == TIDE_OK);
    struct tide_job_new jobs[JOBS] = {{0}};
    struct tide_enqueued made[JOBS];
    for (int i = 0; i < JOBS; i++)
        jobs[i] = (struct tide_job_new){.account = i % 2 == 0 ? account : 0,
                                        .kind = kind,
                                        .payload = TIDE_TEXT("{}"),
                                        .attempts_max = 5,
                                        .level = 1};
    TIDE_ASSERT(tide_ledger_enqueue(tx, jobs, JOBS, NOW_UNIX_MS, made, &err) == TIDE_OK);
    TIDE_ASSERT(tide_tx_commit(tx, &err) == TIDE_OK);
}

/* Opened once: opening is slower than all the rest. */
static void ledger_open(void)
{
    tide_error err = {TIDE_OK, 0, ""};
    char path[96];
    (void)snprintf(dir, sizeof dir, "%s/tide_fuzz_XXXXXX",
                   access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    TIDE_ASSERT(mkdtemp(dir) != NULL);
    (void)snprintf(path, sizeof path, "%s/state.db", dir);
    TIDE_ASSERT(tide_world_real_new(tide_mem_heap(), &world, &err) == TIDE_OK);
    struct tide_ledger_options options = {
        .path = path, .run_id = "fuzz", .now_unix_ms = NOW_UNIX_MS};
    TIDE_ASSERT(tide_ledger_open(world, &options, &ledger, &err) == TIDE_OK);
    ledger_fill();
    TIDE_ASSERT(atexit(ledger_remove) == 0);
}

static tide_status change(tide_tx *tx, tide_control_op op, const struct tide_job_filter *filter,
                          size_t *count, struct tide_changes *changes, tide_error *err)
{
    uint64_t running[JOBS];
    size_t running_count = 0;
    if (op == TIDE_OP_RETRY)
        return tide_ledger_retry(tx, filter, NOW_UNIX_MS, count, changes, err);
    if (op == TIDE_OP_ACCEPT)
        return tide_ledger_accept(tx, filter, NOW_UNIX_MS, count, changes, err);
    return tide_ledger_cancel(tx, filter, NOW_UNIX_MS, count, running, JOBS, &running_count,
                              changes, err);
}

static void carry_out(const json_t *request, tide_control_op op)
{
    tide_error err = {TIDE_OK, 0, ""};
    struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
    if (tide_control_filter_read(request, ledger, &filter, &err) != TIDE_OK) {
        TIDE_ASSERT(err.text[0] != '\0');
        return;
    }
    struct tide_changes changes;
    tide_tx *tx = NULL;
    size_t count = 0;
    tide_changes_init(&changes, tide_mem_heap());
    TIDE_ASSERT(tide_tx_begin(ledger, &tx, &err) == TIDE_OK);
    tide_status rc = change(tx, op, &filter, &count, &changes, &err);
    TIDE_ASSERT(rc == TIDE_OK || err.text[0] != '\0');
    TIDE_ASSERT(count <= (filter.id != 0 ? 1 : JOBS));
    tide_tx_rollback(tx);
    tide_changes_done(&changes);
}

/* The client reads answers from a socket too. */
static void read_answer(const json_t *answer)
{
    tide_error err = {TIDE_OK, 0, ""};
    if (tide_control_answer(answer, &err) == TIDE_OK)
        return;
    TIDE_ASSERT(err.text[0] != '\0' || json_is_object(answer));
    tide_json refusal;
    if (err.status == TIDE_OK)
        err.status = TIDE_INVALID;
    tide_control_refusal(&err, &refusal);
    TIDE_ASSERT(!refusal.failed);
    tide_json_done(&refusal);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    if (ledger == NULL)
        ledger_open();
    tide_text line = fuzz_exact((tide_text){(const char *)data, bytes});
    tide_error err = {TIDE_OK, 0, ""};
    json_t *request = NULL;
    tide_control_op op = TIDE_OPS;
    if (tide_json_parse(line, &request, &err) == TIDE_OK) {
        if (tide_control_op_read(request, &op, &err) == TIDE_OK)
            carry_out(request, op);
        else
            TIDE_ASSERT(op == TIDE_OPS && err.text[0] != '\0');
        read_answer(request);
    }
    json_decref(request);
    free((void *)(uintptr_t)line.data);
    return 0;
}
