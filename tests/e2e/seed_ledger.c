/* Makes a small ledger with one of everything, for the test of the commands.
 *
 * seed_ledger DIR         makes DIR/state.db
 * seed_ledger URL         the same in a PostgreSQL database
 * seed_ledger DIR alert   adds a second alert to it
 * seed_ledger DIR engine  answers on DIR/engine.sock until its input ends
 *
 * Jobs by id: 1 done long ago, 2 failed, 3 waits for 2, 4 waits until a day from now,
 * 5 canceled, 6 can run, 7 running under an owner that is gone, 8 belongs to a
 * halted account, 9 of a paused kind, 10 done. */
#include "engine/control/control.h"
#include "ledger/ledger.h"
#include "world/socket.h"

#include <stdio.h>
#include <stdlib.h>

enum { DAY_MS = 86400000, JOBS = 10 };

static tide_error err;

static void must(tide_status rc, const char *what)
{
    if (rc == TIDE_OK)
        return;
    (void)fprintf(stderr, "seed_ledger: %s: %s: %s\n", what, tide_status_name(rc), err.text);
    exit(1);
}

struct seed {
    tide_world *world;
    tide_ledger *ledger;
    uint64_t now;
    uint32_t fetch, history, verify; /* kinds */
    uint32_t me, halted;             /* accounts */
};

static tide_tx *begin(struct seed *seed)
{
    tide_tx *tx = NULL;
    must(tide_tx_begin(seed->ledger, &tx, &err), "begin");
    return tx;
}

static void names_make(struct seed *seed)
{
    tide_tx *tx = begin(seed);
    must(tide_ledger_kind(tx, "mail.fetch", TIDE_DEDUPE_PENDING, &seed->fetch, &err), "kind");
    must(tide_ledger_kind(tx, "mail.history", TIDE_DEDUPE_PENDING, &seed->history, &err), "kind");
    must(tide_ledger_kind(tx, "verify", TIDE_DEDUPE_PENDING, &seed->verify, &err), "kind");
    must(tide_ledger_account(tx, "me@example.com", "gmail", &seed->me, &err), "account");
    must(tide_ledger_account(tx, "halted@example.com", "gmail", &seed->halted, &err), "account");
    must(tide_ledger_account_halt(tx, seed->halted, true, "the owner asked", seed->now, &err),
         "halt");
    must(tide_ledger_kind_pause(tx, seed->verify, true, &err), "pause");
    must(tide_ledger_alert(tx, "bad_rate", seed->me, 2, "2 % of the last 10000 items are bad",
                           seed->now, &err),
         "alert");
    must(tide_tx_commit(tx, &err), "commit");
}

static void jobs_make(struct seed *seed)
{
    struct tide_job_new jobs[JOBS];
    struct tide_enqueued enqueued[JOBS];
    const uint32_t needs_second[] = {1};
    for (int i = 0; i < JOBS; i++)
        jobs[i] = (struct tide_job_new){
            .account = seed->me,
            .kind = i % 2 == 0 ? seed->fetch : seed->history,
            .payload = TIDE_TEXT("{\"items\":[\"a\",\"b\"]}"),
            .attempts_max = 5,
            .priority = 30,
            .lane = TIDE_LANE_BULK,
            .level = 4,
        };
    jobs[2].needs_earlier = needs_second;
    jobs[2].needs_earlier_count = 1;
    jobs[3].not_before_unix_ms = seed->now + DAY_MS;
    jobs[5].dedupe_key = TIDE_TEXT("one\x1b[31m");
    jobs[7].account = seed->halted;
    jobs[8].kind = seed->verify;
    tide_tx *tx = begin(seed);
    must(tide_ledger_enqueue(tx, jobs, JOBS, seed->now, enqueued, &err), "enqueue");
    must(tide_tx_commit(tx, &err), "commit");
    if (enqueued[0].id != 1 || enqueued[JOBS - 1].id != JOBS) {
        (void)fprintf(stderr, "seed_ledger: ids do not start at 1\n");
        exit(1);
    }
}

static void finish(struct seed *seed, uint64_t id, struct tide_finish end, uint64_t at)
{
    struct tide_job_body *body = NULL;
    struct tide_changes changes;
    bool applied = false;
    tide_changes_init(&changes, tide_mem_heap());
    tide_tx *tx = begin(seed);
    must(tide_ledger_claim(tx, &id, 1, 77, id * 100, at, tide_mem_heap(), &body, &err), "claim");
    if (body == NULL)
        must(TIDE_BUG, "a job was not claimed");
    end.id = id;
    end.token = body->token;
    must(tide_ledger_finish(tx, &end, 1, at, &applied, &changes, &err), "finish");
    must(tide_tx_commit(tx, &err), "commit");
    tide_job_body_free(tide_mem_heap(), body);
    tide_changes_done(&changes);
    if (!applied)
        must(TIDE_BUG, "a finish was not applied");
}

static void jobs_end(struct seed *seed)
{
    struct tide_item_report bad[] = {
        {TIDE_TEXT("item-1"), TIDE_TEXT("cannot be decoded"), TIDE_PERMANENT},
        {TIDE_TEXT("item-2"), TIDE_TEXT("not there any more"), TIDE_GONE},
    };
    finish(seed, 1, (struct tide_finish){.state = TIDE_ROW_DONE, .items = bad, .items_count = 2},
           seed->now - 30ull * DAY_MS);
    finish(seed, 2,
           (struct tide_finish){.state = TIDE_ROW_FAILED,
                                .attempts_add = 5,
                                .status = TIDE_SERVER,
                                .error = TIDE_TEXT("the provider said 500")},
           seed->now);
    finish(seed, 10, (struct tide_finish){.state = TIDE_ROW_DONE}, seed->now);

    struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
    struct tide_changes changes;
    uint64_t running[4], id = 7;
    size_t count = 0, running_count = 0;
    struct tide_job_body *body = NULL;
    tide_changes_init(&changes, tide_mem_heap());
    filter.id = 5;
    tide_tx *tx = begin(seed);
    must(tide_ledger_cancel(tx, &filter, seed->now, &count, running, 4, &running_count, &changes,
                            &err),
         "cancel");
    must(tide_ledger_claim(tx, &id, 1, 78, 5000, seed->now, tide_mem_heap(), &body, &err), "claim");
    must(tide_tx_commit(tx, &err), "commit");
    tide_job_body_free(tide_mem_heap(), body);
    tide_changes_done(&changes);
}

/* ---- an engine that only answers --------------------------------------------------- */

static tide_status answer(void *arg, tide_text line, tide_socket_reply *reply, tide_error *error)
{
    (void)arg;
    json_t *request = NULL;
    tide_control_op op = TIDE_OPS;
    tide_json out;
    tide_buf text;
    tide_status rc = tide_json_parse(line, &request, error);
    if (rc == TIDE_OK)
        rc = tide_control_op_read(request, &op, error);
    if (rc != TIDE_OK) {
        tide_control_refusal(error, &out);
    } else if (op == TIDE_OP_HALT) {
        (void)tide_error_set(error, TIDE_NOT_FOUND, "the engine knows no such account");
        tide_control_refusal(error, &out);
    } else {
        tide_control_ok(&out);
        tide_json_set_u64(&out, "count", 42);
        tide_json_set_cstr(&out, "why", TIDE_CONTROL_WHY_QUOTA);
        tide_json_set_cstr(&out, "text", "its account has no units until the next window");
    }
    tide_buf_init(&text, tide_mem_heap(), 1 << 16);
    if (tide_json_line(&out, &text) == TIDE_OK)
        (void)tide_socket_say(reply, (tide_text){text.data, text.bytes - 1});
    tide_buf_done(&text);
    tide_json_done(&out);
    json_decref(request);
    return TIDE_OK;
}

/* Until its standard input ends: it never outlives the test that started it. */
static void serve(tide_world *world, const char *path)
{
    tide_socket *socket = NULL;
    must(tide_socket_serve(world, tide_mem_heap(), path, answer, NULL, &socket, &err), "serve");
    (void)printf("ready\n");
    (void)fflush(stdout);
    while (getchar() != EOF)
        ;
    tide_socket_free(socket);
}

int main(int argc, char **argv)
{
    struct seed seed = {0};
    char path[4096];
    const char *mode = argc > 2 ? argv[2] : "";
    if (argc < 2)
        return 2;
    must(tide_world_real_new(tide_mem_heap(), &seed.world, &err), "world");
    seed.now = tide_world_now_unix_ms(seed.world);
    if (strcmp(mode, "engine") == 0) {
        (void)snprintf(path, sizeof path, "%s/" TIDE_CONTROL_SOCKET, argv[1]);
        serve(seed.world, path);
        tide_world_real_free(seed.world);
        return 0;
    }
    if (tide_ledger_is_postgres(argv[1]))
        (void)snprintf(path, sizeof path, "%s", argv[1]);
    else
        (void)snprintf(path, sizeof path, "%s/" TIDE_STATE_FILE, argv[1]);
    struct tide_ledger_options options = {.path = path, .run_id = "seed", .now_unix_ms = seed.now};
    must(tide_ledger_open(seed.world, &options, &seed.ledger, &err), "open");
    if (strcmp(mode, "alert") == 0) {
        tide_tx *tx = begin(&seed);
        must(tide_ledger_alert(tx, "queue_full", 0, 1, "a queue is full", seed.now, &err), "alert");
        must(tide_tx_commit(tx, &err), "commit");
    } else {
        names_make(&seed);
        jobs_make(&seed);
        jobs_end(&seed);
    }
    tide_ledger_close(seed.ledger, false);
    tide_world_real_free(seed.world);
    return 0;
}
