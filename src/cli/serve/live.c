/* live.c - publishes the state once a second, for all pages together and only while one looks. */
#include "cli/serve/serve.h"

#include "cli/run/call.h"

#include <string.h>

enum { EVERY_MS = 1000, CALL_BYTES_MAX = TIDE_HTTPD_TOPIC_BYTES_MAX };

enum { TOPICS_MAX = 1 + TIDE_SYSTEMS_MAX };

/* The command behind a topic. */
struct behind {
    const char *words[2];
    size_t words_count;
    const struct tide_system *system; /* NULL: of none */
};

struct cli_live_state {
    struct cli_serve *serve;
    tide_thread *thread;
    tide_lock *lock;
    tide_cond *news;
    tide_cancel cancel;
    struct tide_httpd_topic topics[TOPICS_MAX];
    struct behind behind[TOPICS_MAX];
    size_t topics_count;
    bool watched[TOPICS_MAX]; /* under the lock */
    tide_ledger *ledger;      /* of the thread, while a page looks; NULL: not open */
    bool stopping;
};

const struct tide_httpd_topic *cli_live_topics(const struct cli_serve *serve, size_t *count_out)
{
    *count_out = serve->live->topics_count;
    return serve->live->topics;
}

static void topics_make(struct cli_live_state *live)
{
    struct cli *cli = live->serve->cli;
    live->topics[0] = (struct tide_httpd_topic){"state", TIDE_HTTPD_LOOK};
    live->behind[0] = (struct behind){{"status", NULL}, 1, NULL};
    live->topics_count = 1;
    for (size_t i = 0; cli->systems[i] != NULL; i++) {
        const struct tide_system *system = cli->systems[i];
        if (system->topic == NULL)
            continue;
        live->topics[live->topics_count] =
            (struct tide_httpd_topic){system->topic, TIDE_HTTPD_WORK};
        live->behind[live->topics_count++] = (struct behind){{system->name, "status"}, 2, system};
    }
}

/* A system that this process has open. */
static void tell(struct cli_serve *serve, const struct tide_system *system, bool watched)
{
    const struct cli_engine *open = &serve->resident->open;
    for (size_t i = 0; system != NULL && i < open->here.taken_count; i++)
        if (open->here.taken[i] == system && open->states[i] != NULL)
            system->watched(open->states[i], watched);
}

/* On the server's thread. */
void cli_live_watched(void *arg, const char *topic, bool watched)
{
    struct cli_serve *serve = arg;
    struct cli_live_state *live = serve->live;
    for (size_t i = 0; i < live->topics_count; i++)
        if (strcmp(live->topics[i].name, topic) == 0)
            tell(serve, live->behind[i].system, watched);
    tide_lock_take(serve->cli->world, live->lock);
    for (size_t i = 0; i < live->topics_count; i++)
        if (strcmp(live->topics[i].name, topic) == 0)
            live->watched[i] = watched;
    tide_cond_wake_all(serve->cli->world, live->news);
    tide_lock_drop(serve->cli->world, live->lock);
}

static void publish(struct cli_live_state *live, size_t topic)
{
    struct cli *cli = live->serve->cli;
    struct cli_called called;
    tide_buf text;
    if (cli_call_again(cli, live->behind[topic].words, live->behind[topic].words_count,
                       &live->cancel, &live->ledger, &called) != TIDE_OK)
        return;
    tide_buf_init(&text, cli->mem, CALL_BYTES_MAX);
    /* A state that does not fit is not published: the page asks for it. */
    if (called.status == TIDE_OK && tide_json_line(&called.json, &text) == TIDE_OK)
        (void)tide_httpd_publish(cli_serve_http(live->serve), live->topics[topic].name,
                                 (tide_text){text.data, text.bytes - 1});
    tide_buf_done(&text);
    cli_called_done(&called);
}

/* Nobody looks any more. */
static void ledger_close(struct cli_live_state *live)
{
    if (live->ledger != NULL)
        tide_ledger_close(live->ledger, false);
    live->ledger = NULL;
}

static void live_main(void *arg)
{
    struct cli_live_state *live = arg;
    tide_world *world = live->serve->cli->world;
    tide_lock_take(world, live->lock);
    while (!live->stopping) {
        bool any = false;
        for (size_t i = 0; i < live->topics_count && !live->stopping; i++) {
            if (!live->watched[i])
                continue;
            any = true;
            tide_lock_drop(world, live->lock);
            publish(live, i);
            tide_lock_take(world, live->lock);
        }
        if (!any)
            ledger_close(live);
        if (!live->stopping)
            (void)tide_cond_wait(world, live->news, live->lock,
                                 any ? tide_world_now_us(world) + EVERY_MS * (uint64_t)1000
                                     : TIDE_NEVER);
    }
    tide_lock_drop(world, live->lock);
    ledger_close(live);
}

tide_status cli_live_new(struct cli_serve *serve, tide_error *err)
{
    struct cli_live_state *live = tide_mem_new(serve->cli->mem, sizeof *live);
    if (live == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for live updates");
    live->serve = serve;
    serve->live = live;
    topics_make(live);
    tide_status rc = tide_lock_new(serve->cli->world, &live->lock);
    if (rc == TIDE_OK)
        rc = tide_cond_new(serve->cli->world, &live->news);
    return rc == TIDE_OK ? rc : tide_error_set(err, rc, "no memory for live updates");
}

tide_status cli_live_start(struct cli_serve *serve, tide_error *err)
{
    return tide_world_thread(serve->cli->world, "live", live_main, serve->live,
                             &serve->live->thread, err);
}

void cli_live_stopping(struct cli_serve *serve)
{
    struct cli_live_state *live = serve->live;
    if (live == NULL || live->thread == NULL)
        return;
    tide_world_cancel(serve->cli->world, &live->cancel, TIDE_CANCEL_STOP);
    tide_lock_take(serve->cli->world, live->lock);
    live->stopping = true;
    tide_cond_wake_all(serve->cli->world, live->news);
    tide_lock_drop(serve->cli->world, live->lock);
}

void cli_live_join(struct cli_serve *serve)
{
    if (serve->live != NULL && serve->live->thread != NULL) {
        tide_world_join(serve->cli->world, serve->live->thread);
        serve->live->thread = NULL;
    }
}

void cli_live_free(struct cli_serve *serve)
{
    struct cli_live_state *live = serve->live;
    if (live == NULL)
        return;
    if (live->news != NULL)
        tide_cond_free(serve->cli->world, live->news);
    if (live->lock != NULL)
        tide_lock_free(serve->cli->world, live->lock);
    tide_mem_free(serve->cli->mem, live, sizeof *live);
    serve->live = NULL;
}
