/* assistant_jobs_fixture.h - the assistant on an engine in the simulated world, the cloud in a box
 * behind its network, and a model that says what a test wants.  A life is an engine from its start to
 * its end, or to a crash; the mailbox stays. */
#ifndef TIDE_TESTS_ASSISTANT_JOBS_FIXTURE_H
#define TIDE_TESTS_ASSISTANT_JOBS_FIXTURE_H

#include "assistant/jobs/chat.h"
#include "assistant/jobs/jobs.h"
#include "assistant/store/look.h"
#include "cloudbox/mailbox/mailbox.h"
#include "cloudbox/services.h"
#include "sim.h"
#include "sim_cloud.h"
#include "support/heap.h"
#include "support/test.h"

#define ORIGIN "http://127.0.0.1:4443"
#define ME     "me@example.org"

struct fixture {
    tide_sim *sim;
    tide_sim_cloud *cloud;
    box_mailbox *mailbox;
    struct tide_assistant_config *config;

    /* Of a life. */
    tide_secrets *secrets;
    tide_tokens *tokens;
    tide_gmail *gmail;
    tide_engine *engine;
    tide_assistant_jobs *jobs;
    uint32_t account, model_account;

    struct tide_assistant_chat chat; /* with one, the cloud's model is asked */
    uint64_t cost;                   /* of the last question, by estimate */

    /* The model. */
    tide_assistant_asker *model; /* instead of the one below; its argument is the fixture */
    const char *category;        /* of the next classifications */
    const char *answer;          /* to a classification, instead */
    const char *text;            /* of drafts */
    const char *searches;
    uint64_t again_ms;       /* not now, but then: once */
    tide_status model_fails; /* with this, unless TIDE_OK */
    const char *const
        *says;             /* answers of agents, the first, the second ...; NULL: the run is over */
    unsigned asked[5];     /* classify, context, draft, rework, agent */
    char prompt[64 << 10]; /* of the last question; of agents the conversation */
    void (*during)(struct fixture *f, const char *kind); /* while the model thinks */

    bool may_die; /* failures of a life are not the test's */
    unsigned delivered;
    char thread[64]; /* of the last delivery */
    char message[64];
};

enum { ASKED_CLASSIFY, ASKED_CONTEXT, ASKED_DRAFT, ASKED_REWORK, ASKED_AGENT };

#define OK(call)                                                                                   \
    do {                                                                                           \
        tide_error err_ = {TIDE_OK, 0, ""};                                                        \
        tide_error *err = &err_;                                                                   \
        const tide_status rc_ = (call);                                                            \
        if (rc_ != TIDE_OK)                                                                        \
            fail_msg("%s: %s: %s", #call, tide_status_name(rc_), err->text);                       \
        (void)err;                                                                                 \
    } while (0)

struct fixture *begin(const char *yaml); /* NULL: the usual; a life begins, the user is onboarded */
/* Without a life.  A provider in the options is between the network and the cloud. */
struct fixture *begin_in(uint64_t seed, const struct tide_sim_options *options, const char *yaml);
void finish(struct fixture *f);
#define CASE(name) TEST_OF(name, struct fixture *f, begin(NULL), finish)

tide_status life_begin(struct fixture *f);
void life_end(struct fixture *f);
/* Waits until nothing is left to do. */
tide_status settle(struct fixture *f);
void sync_now(struct fixture *f, bool full);
void pass(struct fixture *f, uint64_t minutes);

/* ---- the user ---- */

/* A message comes in; `thread` NULL: of a new thread.  `f->thread` and `f->message` name it. */
void deliver(struct fixture *f, const char *from, const char *subject, const char *text,
             const char *thread);
void deliver_raw(struct fixture *f, const char *raw, const char *thread);
/* Puts a label on the messages of a thread, or takes it off. */
void label(struct fixture *f, const char *thread, tide_assistant_label label, bool on);
/* What the user does with the draft of a thread. */
void send_draft(struct fixture *f, const char *thread);
void discard_draft(struct fixture *f, const char *thread);
void edit_draft(struct fixture *f, const char *thread, const char *text);

/* ---- looking ---- */

/* Calls `visit` with each message of a thread that is not gone. */
typedef void message_fn(struct fixture *f, uint32_t slot, void *arg);
void each_message(struct fixture *f, const char *thread, message_fn *visit, void *arg);
/* The newest draft of the thread that is not in the trash; BOX_SLOT_NONE: none. */
uint32_t draft_in(struct fixture *f, const char *thread);
/* The mailbox's number of a label of ours. */
uint16_t label_number(struct fixture *f, tide_assistant_label label);
struct tide_assistant_email record(struct fixture *f, const char *thread); /* status 0: none */
/* "Needs Response,Outbox": our labels that any message of the thread has. */
const char *labels_of(struct fixture *f, const char *thread);
bool in_inbox(struct fixture *f, const char *thread);
/* Drafts of the thread that are not in the trash; `ours`: with our header. */
unsigned drafts_of(struct fixture *f, const char *thread, bool ours);
/* The bytes of the newest of them. */
const char *draft_text(struct fixture *f, const char *thread);
unsigned events_of(struct fixture *f, const char *thread, const char *kind);
/* "PROFILE RULE STATUS ITERATIONS TOOLS|FINAL|ERROR" of the last run of a thread; "": none. */
const char *run_of(struct fixture *f, const char *thread);
/* Messages of the thread that were sent from the account. */
unsigned sent_of(struct fixture *f, const char *thread);
/* Messages of the thread that are not drafts and have a label of that name. */
unsigned labeled(struct fixture *f, const char *thread, const char *name);
uint64_t failed_jobs(struct fixture *f);

#endif
