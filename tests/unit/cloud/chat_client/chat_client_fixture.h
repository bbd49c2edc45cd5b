/* chat_client_fixture.h - what every file of the tests of the chat client needs: an engine in the
 * simulated world, the cloud's model behind a network that can lie, and one job per call, in every
 * way to speak to a model. */
#ifndef TIDE_TESTS_CHAT_CLIENT_FIXTURE_H
#define TIDE_TESTS_CHAT_CLIENT_FIXTURE_H

#include "cloud/chat/chat.h"
#include "cloudbox/chat/chat.h"
#include "cloudbox/services.h"
#include "net/judge_chat.h"
#include "sim.h"
#include "sim_cloud.h"
#include "support/test.h"

#define ORIGIN "http://127.0.0.1:4443"
#define KEY    "key-0a1B2c3D4e5F6a7B8c9D"
#define NAME   "model"

/* The ways to speak: dialect, version, streamed or not. */
enum { WAYS = 6 };
struct way {
    const char *name;
    tide_chat_dialect dialect;
    const char *version;
    bool no_stream;
    bool key_plain;
};
extern const struct way ways[WAYS];

struct fixture;
typedef tide_status play(struct fixture *f, tide_job *job, tide_error *err);

struct fixture {
    tide_sim *sim;
    tide_sim_cloud *cloud;
    tide_secrets *secrets;
    tide_tokens *tokens;
    struct tide_mem_faulty mem; /* of the client */
    tide_chat *chat;
    const struct way *way;
    tide_engine *engine;
    uint32_t kind, account;

    /* The job that runs, and what came of it. */
    play *play;
    tide_status status;
    tide_error err;
    uint64_t took_ms;
    bool give_up; /* the job returns its status to the engine */

    /* The network. */
    const char *say; /* instead of the cloud's answer */
    const char *say_type;
    int say_http;
    unsigned requests;
    char url[1024]; /* of the last one */
    char method[16];
    char authorization[128], plain_key[128], version[64], accept[64];
    tide_buf body;

    const struct tide_chat_talk *talk;
    struct tide_chat_answer answer;
};

#define OK(f, call)                                                                                \
    do {                                                                                           \
        tide_error err_ = {TIDE_OK, 0, ""};                                                        \
        tide_error *err = &err_;                                                                   \
        const tide_status rc_ = (call);                                                            \
        if (rc_ != TIDE_OK)                                                                        \
            tide_sim_fail((f)->sim, "%s: %s: %s", #call, tide_status_name(rc_), err->text);        \
        (void)err;                                                                                 \
    } while (0)

/* ---- life ---- */

struct fixture *begin(void);
void finish(struct fixture *f);
#define CASE(name) TEST_OF(name, struct fixture *f, begin(), finish)
/* Opens the client another way, with the stored key; `change` may be NULL. */
void speak(struct fixture *f, const struct way *way, void (*change)(struct tide_chat_options *o));

/* ---- calls ---- */

/* One call in a job of its own. */
tide_status run(struct fixture *f, play *call);
/* The talk, as a job. */
tide_status say(struct fixture *f, const struct tide_chat_talk *talk);
void say_ok(struct fixture *f, const struct tide_chat_talk *talk);
/* It fails so, with an error that says this. */
void say_fails(struct fixture *f, const struct tide_chat_talk *talk, tide_status status,
               const char *text);
void forget(struct fixture *f);
json_t *body_of(struct fixture *f); /* of the last request; the caller's */

/* ---- the cloud ---- */

void fault(struct fixture *f, const char *rule); /* the fields after "method" */
void no_faults(struct fixture *f);
void fixture_reply(struct fixture *f, const char *contains, const char *reply);
uint64_t count(struct fixture *f, const char *part, const char *what); /* of the record, by KEY */

/* ---- talks ---- */

extern const struct tide_chat_talk hello;  /* a word, to be answered in words */
extern const struct tide_chat_talk mail;   /* a mail, to be classified as JSON */
extern const struct tide_chat_talk tooled; /* a mail, with tools */

#endif
