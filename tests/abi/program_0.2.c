/* program_0.2.c - a program as it was compiled with the header of 0.2.
 *
 * It does not include tidemark.h: what it uses stands here as it was then, so that it continues
 * telling whether old binaries work with the library of today.  Never change it; add another
 * one with the next version. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct tide_engine tide_engine;
typedef struct tide_job tide_job;
typedef int tide_status;
typedef struct tide_error {
    tide_status status;
    int code;
    char text[400];
} tide_error;
typedef struct tide_text {
    const char *data;
    size_t bytes;
} tide_text;

struct tide_engine_options {
    const char *state_dir;
    const char *ledger;
    bool (*may_take)(void *arg, const char *account, const char *provider, const char *archive);
    void *may_take_arg;
    const char *settings_file;
    const char *const *set;
    void (*log_line)(void *arg, const char *line, size_t bytes);
    void *log_arg;
    int log_fd;
    uint32_t workers;
    void *world, *settings, *log;
    bool log_json, no_control_socket;
    uint8_t reserved_flags[6];
    uint64_t reserved[8];
};
struct tide_kind {
    const char *name;
    tide_status (*handler)(tide_job *job, void *context, tide_error *err);
    void *context;
    int lane;
    uint8_t priority, level;
    uint16_t attempts_max;
    uint32_t payload_bytes_max, stall_after_ms;
    bool dedupe_running, not_preemptible, items;
    uint8_t reserved_flags[5];
    uint64_t reserved[6];
};
struct tide_spec {
    uint32_t kind, account;
    uint64_t cycle;
    const char *dedupe, *payload;
    const uint64_t *needs;
    size_t needs_count;
    const uint32_t *needs_index;
    size_t needs_index_count;
    uint64_t size_bytes, delay_ms;
    int16_t priority;
    bool force, no_cycle;
    uint8_t reserved_flags[4];
    uint64_t reserved[4];
};
struct tide_schedule {
    const char *name;
    uint32_t kind;
    uint64_t period_ms;
    const char *payload;
    bool at_start, per_account;
    uint8_t reserved_flags[6];
    uint64_t reserved[6];
};
struct tide_stream_state {
    uint64_t cycles_finished, cycles_opened;
    char cursor[256];
    uint64_t reserved[6];
};
struct tide_progress {
    uint64_t done, failed, retried, split, bad;
    uint32_t running[2], waiting[2], window;
    uint64_t tracker_bytes, ledger_writes;
    bool idle;
    uint8_t reserved_flags[7];
    uint64_t reserved[16];
};
tide_status tide_engine_open(const struct tide_engine_options *, tide_engine **, tide_error *);
tide_status tide_engine_start(tide_engine *, tide_error *);
tide_status tide_engine_wait(tide_engine *, uint64_t, tide_error *);
tide_status tide_engine_close(tide_engine *);
tide_status tide_engine_kind(tide_engine *, const struct tide_kind *, uint32_t *, tide_error *);
tide_status tide_engine_schedule(tide_engine *, const struct tide_schedule *, tide_error *);
tide_status tide_stream_open(tide_engine *, uint32_t, const char *, const char *, uint64_t *,
                             tide_error *);
tide_status tide_cycle_open(tide_engine *, uint64_t, const char *, const char *,
                            const struct tide_spec *, size_t, uint64_t *, tide_error *);
tide_status tide_stream_state(tide_engine *, uint64_t, struct tide_stream_state *, tide_error *);
tide_text tide_job_payload(const tide_job *);
void tide_engine_progress(tide_engine *, struct tide_progress *);

enum { JOBS = 20, CANARY = 0x5a };
static int sum;

static tide_status add(tide_job *job, void *context, tide_error *err)
{
    int number = 0;
    (void)err;
    if (sscanf(tide_job_payload(job).data, "{\"number\":%d}", &number) != 1)
        return -2;
    __atomic_fetch_add((int *)context, number, __ATOMIC_RELAXED);
    return 0;
}

/* What the library fills in is followed by bytes that it must not touch. */
struct guarded {
    struct tide_progress progress;
    unsigned char after[64];
    struct tide_stream_state stream;
    unsigned char after_stream[64];
};

static bool untouched(const unsigned char *bytes)
{
    for (size_t i = 0; i < 64; i++)
        if (bytes[i] != CANARY)
            return false;
    return true;
}

int main(int argc, char **argv)
{
    const char *const set[] = {"workers.count=6", NULL};
    struct tide_engine_options options = {.state_dir = argc > 1 ? argv[1] : "state", .set = set};
    struct tide_kind kind = {.name = "add", .handler = add, .context = &sum, .attempts_max = 1};
    struct tide_spec specs[JOBS] = {{0}};
    char payloads[JOBS][32];
    uint32_t first = 0;
    uint64_t stream = 0;
    tide_engine *engine = NULL;
    tide_error err = {0, 0, ""};
    struct guarded seen;
    memset(&seen, CANARY, sizeof seen);
    seen.stream.cursor[0] = 0;

    tide_status rc = tide_engine_open(&options, &engine, &err);
    if (rc == 0)
        rc = tide_engine_kind(engine, &kind, &specs[0].kind, &err);
    for (int i = 0; i < JOBS; i++) {
        (void)snprintf(payloads[i], sizeof payloads[i], "{\"number\":%d}", i + 1);
        specs[i].kind = specs[0].kind;
        specs[i].payload = payloads[i];
        specs[i].needs_index = &first;
        specs[i].needs_index_count = i > 0; /* the first one before all others */
    }
    struct tide_schedule schedule = {.name = "yearly",
                                     .kind = specs[0].kind,
                                     .period_ms = (uint64_t)365 * 86400000,
                                     .payload = "{\"number\":1000}",
                                     .at_start = true};
    if (rc == 0)
        rc = tide_stream_open(engine, 0, "numbers", "", &stream, &err);
    if (rc == 0)
        rc = tide_cycle_open(engine, stream, "", "twenty", specs, JOBS, NULL, &err);
    if (rc == 0)
        rc = tide_engine_schedule(engine, &schedule, &err);
    if (rc == 0)
        rc = tide_engine_start(engine, &err);
    /* The cursor moves in a transaction after the last job's. */
    for (int tries = 0; rc == 0 && tries < 600; tries++) {
        rc = tide_stream_state(engine, stream, &seen.stream, &err);
        if (seen.stream.cycles_finished == 1 && __atomic_load_n(&sum, __ATOMIC_RELAXED) == 1210)
            break;
        tide_status waited = tide_engine_wait(engine, 100, &err);
        if (waited != 0 && waited != -9)
            rc = waited;
    }
    if (engine != NULL)
        tide_engine_progress(engine, &seen.progress);
    (void)tide_engine_close(engine);
    if (rc != 0 || err.status == -2)
        (void)fprintf(stderr, "%d: %s\n", rc, err.text);
    (void)printf("sum %d, cursor %s, %s\n", sum, seen.stream.cursor,
                 untouched(seen.after) && untouched(seen.after_stream) ? "whole" : "overwritten");
    return rc == 0 && sum == 1210 && strcmp(seen.stream.cursor, "twenty") == 0 &&
                   untouched(seen.after) && untouched(seen.after_stream)
               ? 0
               : 1;
}
