/* once.c - joins the server's POSTs with the rows of their answers (serve/once/once.h).
 *
 * A row without an answer means that its handler runs, or that it was interrupted by a crash.  A home
 * has one process at a time, so a list of what runs here tells the two apart. */
#include "cli/serve/serve.h"

#include "ledger/rows.h"
#include "serve/once/once.h"

#include <string.h>

struct running {
    uint64_t who; /* 0: free */
    char key[TIDE_HTTPD_ONCE_BYTES_MAX + 1];
};

struct cli_once {
    tide_lock *lock;
    struct running running[TIDE_HTTPD_READERS]; /* under the lock */
};

/* ---- what runs ---- */

static struct running *find(struct cli_once *once, uint64_t who, tide_text key)
{
    for (size_t i = 0; i < TIDE_HTTPD_READERS; i++)
        if (once->running[i].who == who &&
            (who == 0 || tide_text_equal(key, tide_text_of(once->running[i].key))))
            return &once->running[i];
    return NULL;
}

/* false: it runs already.  Each reader runs one, so there is a free place. */
static bool take(struct cli_serve *serve, uint64_t who, tide_text key)
{
    struct cli_once *once = serve->once;
    tide_lock_take(serve->cli->world, once->lock);
    const bool runs = find(once, who, key) != NULL;
    struct running *place = find(once, 0, TIDE_TEXT_NONE);
    const bool taken = !runs && place != NULL && key.bytes < sizeof place->key;
    if (taken) {
        place->who = who;
        memcpy(place->key, key.data, key.bytes);
        place->key[key.bytes] = '\0';
    }
    tide_lock_drop(serve->cli->world, once->lock);
    return taken;
}

static void drop(struct cli_serve *serve, uint64_t who, tide_text key)
{
    tide_lock_take(serve->cli->world, serve->once->lock);
    struct running *place = find(serve->once, who, key);
    if (place != NULL)
        place->who = 0;
    tide_lock_drop(serve->cli->world, serve->once->lock);
}

/* ---- the rows ---- */

struct step {
    struct tide_once_name name;
    const unsigned char *digest; /* NULL: the end */
    uint64_t now_unix_ms;
    struct tide_once_row row;
    tide_buf body;
};

static tide_status step_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct step *step = arg;
    const tide_rows rows = tide_transaction_rows(transaction);
    if (step->digest == NULL)
        return tide_once_end(rows, &step->name, step->row.status, tide_buf_text(&step->body), err);
    return tide_once_begin(rows, &step->name, step->digest, step->now_unix_ms, &step->row,
                           &step->body, err);
}

static void stored(const struct step *step, struct tide_httpd_answer *answer)
{
    tide_httpd_text(answer, step->row.status,
                    step->row.status < 400 ? "application/json" : "application/problem+json",
                    tide_buf_text(&step->body));
}

tide_httpd_again cli_once_begin(void *arg, const struct tide_httpd_who *who, tide_text key,
                                const unsigned char digest[32], struct tide_httpd_answer *answer,
                                uint64_t *asked_unix_ms_out)
{
    struct cli_serve *serve = arg;
    struct step step = {.name = {serve->home, who->id, key},
                        .digest = digest,
                        .now_unix_ms = tide_world_now_unix_ms(serve->cli->world)};
    tide_error err = {TIDE_OK, 0, ""};
    if (!take(serve, who->id, key))
        return TIDE_HTTPD_RUNNING;
    tide_buf_init(&step.body, serve->cli->mem, TIDE_ONCE_BODY_BYTES_MAX);
    const tide_status rc = tide_transact(serve->engine, step_run, &step, &err);
    const tide_httpd_again again = rc != TIDE_OK                       ? TIDE_HTTPD_CANNOT
                                   : step.row.once == TIDE_ONCE_FIRST  ? TIDE_HTTPD_FIRST
                                   : step.row.once == TIDE_ONCE_STORED ? TIDE_HTTPD_STORED
                                                                       : TIDE_HTTPD_OTHER;
    *asked_unix_ms_out = step.row.asked_unix_ms;
    if (again == TIDE_HTTPD_STORED)
        stored(&step, answer);
    if (again != TIDE_HTTPD_FIRST)
        drop(serve, who->id, key);
    tide_buf_done(&step.body);
    return again;
}

void cli_once_end(void *arg, const struct tide_httpd_who *who, tide_text key,
                  const struct tide_httpd_answer *answer)
{
    struct cli_serve *serve = arg;
    struct step step = {.name = {serve->home, who->id, key}};
    const tide_text body = tide_httpd_answer_body(answer);
    tide_error err = {TIDE_OK, 0, ""};
    tide_buf_init(&step.body, serve->cli->mem, TIDE_ONCE_BODY_BYTES_MAX);
    if (!answer->failed && answer->status < 500 &&
        tide_buf_add(&step.body, body.data, body.bytes) == TIDE_OK)
        step.row.status = answer->status;
    /* A failure leaves a row without an answer, as a crash does. */
    (void)tide_transact(serve->engine, step_run, &step, &err);
    tide_buf_done(&step.body);
    drop(serve, who->id, key);
}

/* ---- all ---- */

tide_status cli_once_new(struct cli_serve *serve, tide_error *err)
{
    struct cli_once *once = tide_mem_new(serve->cli->mem, sizeof *once);
    if (once == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for the API");
    serve->once = once;
    const tide_status rc = tide_lock_new(serve->cli->world, &once->lock);
    return rc == TIDE_OK ? rc : tide_error_set(err, rc, "no memory for the API");
}

void cli_once_free(struct cli_serve *serve)
{
    if (serve->once == NULL)
        return;
    if (serve->once->lock != NULL)
        tide_lock_free(serve->cli->world, serve->once->lock);
    tide_mem_free(serve->cli->mem, serve->once, sizeof *serve->once);
    serve->once = NULL;
}
