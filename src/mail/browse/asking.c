#include "mail/browse/asking.h"

#include <errno.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct question {
    tide_buf words; /* each terminated; of the one that waits */
    bool waits;
    bool runs;
    bool stale; /* the one that runs: its answer is not wanted */
    tide_cancel cancel;
    bool answered;
    struct cli_called called;
};

struct browse_asking {
    struct cli *host;
    tide_world *world;
    tide_lock *lock;
    tide_cond *asked;
    tide_thread *thread;
    int event;
    bool over;
    struct question questions[BROWSE_TOPICS];
};

/* ---- the thread ---- */

static struct question *next_of(browse_asking *asking)
{
    for (int topic = 0; topic < BROWSE_TOPICS; topic++)
        if (asking->questions[topic].waits)
            return &asking->questions[topic];
    return NULL;
}

static void tell(const browse_asking *asking)
{
    const uint64_t one = 1;
    while (write(asking->event, &one, sizeof one) < 0 && errno == EINTR)
        continue;
}

static tide_status run_words(browse_asking *asking, struct question *question, tide_buf *words,
                             struct cli_called *called_out)
{
    const char *list[BROWSE_WORDS_MAX];
    size_t count = 0;
    for (size_t at = 0; at < words->bytes; at += strlen(words->data + at) + 1)
        list[count++] = words->data + at;
    return cli_call(asking->host, list, count, &question->cancel, called_out);
}

/* The lock is held, except while the command runs. */
static void answer(browse_asking *asking, struct question *question)
{
    struct cli_called called = {.status = TIDE_NO_MEMORY};
    tide_buf words = question->words;
    tide_buf_init(&question->words, asking->host->mem, BROWSE_WORDS_BYTES_MAX);
    question->waits = false;
    question->stale = false;
    question->runs = true;
    question->cancel = (tide_cancel){TIDE_CANCEL_NONE};
    tide_lock_drop(asking->world, asking->lock);
    (void)run_words(asking, question, &words, &called);
    tide_buf_done(&words);
    tide_lock_take(asking->world, asking->lock);
    question->runs = false;
    if (question->stale || asking->over) {
        cli_called_done(&called);
        return;
    }
    question->called = called;
    question->answered = true;
    tell(asking);
}

static void run(void *arg)
{
    browse_asking *asking = arg;
    tide_lock_take(asking->world, asking->lock);
    while (!asking->over) {
        struct question *question = next_of(asking);
        if (question != NULL)
            answer(asking, question);
        else if (tide_cond_wait(asking->world, asking->asked, asking->lock, TIDE_NEVER) ==
                 TIDE_STOPPED)
            break;
    }
    tide_lock_drop(asking->world, asking->lock);
}

/* ---- its life ---- */

tide_status browse_asking_new(struct cli *host, browse_asking **asking_out)
{
    browse_asking *asking = tide_mem_new(host->mem, sizeof *asking);
    if (asking == NULL)
        return cli_fail(host, TIDE_NO_MEMORY, "Free some memory.", "out of memory");
    asking->host = host;
    asking->world = host->world;
    for (int topic = 0; topic < BROWSE_TOPICS; topic++)
        tide_buf_init(&asking->questions[topic].words, host->mem, BROWSE_WORDS_BYTES_MAX);
    asking->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    tide_status rc = asking->event < 0
                         ? tide_error_set(&host->err, TIDE_IO, "cannot open a descriptor")
                         : tide_lock_new(asking->world, &asking->lock);
    if (rc == TIDE_OK)
        rc = tide_cond_new(asking->world, &asking->asked);
    if (rc == TIDE_OK)
        rc = tide_world_thread(asking->world, "browse", run, asking, &asking->thread, &host->err);
    if (rc != TIDE_OK) {
        browse_asking_free(asking);
        return cli_hint(host, rc, "Free some memory, or close other programs.");
    }
    *asking_out = asking;
    return TIDE_OK;
}

/* The lock is held. */
static void forget(browse_asking *asking, struct question *question)
{
    question->waits = false;
    tide_buf_clear(&question->words);
    if (question->answered)
        cli_called_done(&question->called);
    question->answered = false;
    question->stale = question->runs;
    if (question->runs)
        tide_world_cancel(asking->world, &question->cancel, TIDE_CANCEL_USER);
}

static void end_thread(browse_asking *asking)
{
    tide_lock_take(asking->world, asking->lock);
    asking->over = true;
    for (int topic = 0; topic < BROWSE_TOPICS; topic++)
        forget(asking, &asking->questions[topic]);
    tide_cond_wake_all(asking->world, asking->asked);
    tide_lock_drop(asking->world, asking->lock);
    tide_world_join(asking->world, asking->thread);
}

void browse_asking_free(browse_asking *asking)
{
    if (asking == NULL)
        return;
    if (asking->thread != NULL)
        end_thread(asking);
    for (int topic = 0; topic < BROWSE_TOPICS; topic++)
        tide_buf_done(&asking->questions[topic].words);
    if (asking->asked != NULL)
        tide_cond_free(asking->world, asking->asked);
    if (asking->lock != NULL)
        tide_lock_free(asking->world, asking->lock);
    if (asking->event >= 0)
        (void)close(asking->event);
    tide_mem_free(asking->host->mem, asking, sizeof *asking);
}

int browse_asking_fd(const browse_asking *asking)
{
    return asking->event;
}

/* ---- questions and answers ---- */

tide_status browse_ask(browse_asking *asking, browse_topic topic, const char *const *words)
{
    struct question *question = &asking->questions[topic];
    tide_status rc = TIDE_OK;
    size_t count = 0;
    tide_lock_take(asking->world, asking->lock);
    forget(asking, question);
    for (; rc == TIDE_OK && words[count] != NULL; count++)
        rc = count == BROWSE_WORDS_MAX
                 ? TIDE_FULL
                 : tide_buf_add(&question->words, words[count], strlen(words[count]) + 1);
    question->waits = rc == TIDE_OK;
    if (question->waits)
        tide_cond_wake_one(asking->world, asking->asked);
    tide_lock_drop(asking->world, asking->lock);
    return rc;
}

void browse_ask_no_more(browse_asking *asking, browse_topic topic)
{
    tide_lock_take(asking->world, asking->lock);
    forget(asking, &asking->questions[topic]);
    tide_lock_drop(asking->world, asking->lock);
}

/* The descriptor is emptied before the answers are looked at: one that comes later fills it again. */
bool browse_answer_take(browse_asking *asking, browse_topic *topic_out,
                        struct cli_called *called_out)
{
    uint64_t told = 0;
    bool taken = false;
    while (read(asking->event, &told, sizeof told) < 0 && errno == EINTR)
        continue;
    tide_lock_take(asking->world, asking->lock);
    for (int topic = 0; topic < BROWSE_TOPICS; topic++) {
        struct question *question = &asking->questions[topic];
        if (!question->answered)
            continue;
        if (taken) {
            tell(asking); /* more are left */
            break;
        }
        taken = true;
        question->answered = false;
        *topic_out = (browse_topic)topic;
        *called_out = question->called;
    }
    tide_lock_drop(asking->world, asking->lock);
    return taken;
}
