/* channel.c - a handler with progress and cancellation.
 *
 * One long job digs a channel, metre by metre.  It reports its progress, saves it durably every
 * ten metres, and ends when it is canceled.  Stop the program in any way (Ctrl-C, kill -9), or
 * let it cancel its own job (--cancel-at METRES); run it again and it resumes, not from the
 * start.
 *
 *     channel DIR [--ledger URL] [--cancel-at METRES] */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tidemark.h>
#include <unistd.h>

enum { METRES = 300, METRE_MS = 8, SAVE_EVERY = 10 };

struct dig {
    atomic_int began_at; /* -1: not yet */
    atomic_int metres;
};

static tide_status dig(tide_job *job, void *context, tide_error *err)
{
    struct dig *dig = context;
    int metres = 0;
    /* What an earlier attempt saved; empty at the first. */
    (void)sscanf(tide_job_resume(job).data, "%d", &metres);
    atomic_store(&dig->metres, metres);
    atomic_store(&dig->began_at, metres);
    while (metres < METRES) {
        /* The work.  It ends with TIDE_CANCELED when the job is canceled, when the engine stops
         * and when the claim was lost.  A computation would call tide_job_canceled() as often. */
        tide_status rc = tide_job_sleep(job, METRE_MS);
        if (rc != TIDE_OK)
            return tide_error_set(err, rc, "left at metre %d", metres);
        atomic_store(&dig->metres, ++metres);
        tide_job_beat(job, (uint64_t)metres); /* alive, and the progress: `tidemark jobs show` */
        if (metres % SAVE_EVERY == 0) {
            char resume[16];
            (void)snprintf(resume, sizeof resume, "%d", metres);
            rc = tide_job_save(job, tide_text_of(resume), err);
            if (rc != TIDE_OK)
                return rc; /* TIDE_STALE: another worker has the job now */
        }
    }
    return TIDE_OK;
}

/* The same job in every run: the name identifies the call, so calling again returns the same id.
 * A canceled job is retried. */
static tide_status find_job(tide_engine *engine, uint32_t kind, uint64_t *id_out, tide_error *err)
{
    tide_status rc =
        tide_enqueue_once(engine, "the channel", &(struct tide_spec){.kind = kind}, 1, id_out, err);
    if (rc == TIDE_OK && tide_job_ended(engine, *id_out, NULL) == TIDE_CANCELED)
        rc = tide_retry_job(engine, *id_out, err);
    return rc;
}

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    (void)number;
    interrupted = 1;
}

/* How the job ended, or TIDE_STOPPED when the program was stopped before. */
static tide_status watch(tide_engine *engine, struct dig *state, uint64_t id, int cancel_at,
                         tide_error *err)
{
    int shown = -1;
    for (;;) {
        tide_status rc = tide_job_ended(engine, id, err);
        const int metres = atomic_load(&state->metres);
        if (metres / 20 != shown / 20 && atomic_load(&state->began_at) >= 0)
            (void)printf("%3d of %d metres\n", shown = metres, METRES);
        if (rc != TIDE_TIMEOUT)
            return rc;
        if (interrupted)
            return TIDE_STOPPED;
        if (metres >= cancel_at)
            (void)tide_cancel_job(engine, id, NULL); /* repeating it is harmless */
        (void)usleep(20000);
    }
}

int main(int argc, char **argv)
{
    struct tide_engine_options options = {.state_dir = argc > 1 ? argv[1] : "channel-state"};
    int cancel_at = METRES + 1;
    for (int i = 2; i + 1 < argc; i += 2)
        if (strcmp(argv[i], "--ledger") == 0)
            options.ledger = argv[i + 1];
        else if (strcmp(argv[i], "--cancel-at") == 0)
            cancel_at = (int)strtol(argv[i + 1], NULL, 10);
    (void)signal(SIGINT, on_signal);
    (void)signal(SIGTERM, on_signal);
    struct dig state = {-1, 0};
    struct tide_kind kind = {.name = "dig", .handler = dig, .context = &state};
    tide_engine *engine = NULL;
    tide_error err = {TIDE_OK, 0, ""};
    uint32_t kind_id = 0;
    uint64_t job = 0;
    tide_status rc = tide_engine_open(&options, &engine, &err);
    if (rc == TIDE_OK)
        rc = tide_engine_kind(engine, &kind, &kind_id, &err);
    if (rc == TIDE_OK)
        rc = find_job(engine, kind_id, &job, &err);
    if (rc == TIDE_OK)
        rc = tide_engine_start(engine, &err);
    if (rc == TIDE_OK)
        rc = watch(engine, &state, job, cancel_at, &err);
    (void)tide_engine_close(engine); /* a running job is put back */
    (void)printf("%s at %d of %d metres; this run began at %d\n", tide_status_name(rc),
                 atomic_load(&state.metres), METRES, atomic_load(&state.began_at));
    if (rc != TIDE_OK && rc != TIDE_CANCELED && rc != TIDE_STOPPED)
        (void)fprintf(stderr, "channel: %s\n", err.text);
    return rc == TIDE_OK ? 0 : rc == TIDE_CANCELED || rc == TIDE_STOPPED ? 3 : 1;
}
