/* gmail_client_fixture.h - what every file of the tests of the Gmail calls needs: an engine
 * in the simulated world, the cloud in a box behind a network that can lie, one job per
 * call, and ways to look at what the cloud holds. */
#ifndef TIDE_TESTS_GMAIL_CLIENT_FIXTURE_H
#define TIDE_TESTS_GMAIL_CLIENT_FIXTURE_H

#include "cloud/gmail_drafts.h"
#include "cloudbox/services.h"
#include "cloudbox/mailbox/mailbox.h"
#include "sim.h"
#include "sim_cloud.h"
#include "support/test.h"

#define ORIGIN "http://127.0.0.1:4443"
#define ME     "me@example.org"

struct fixture;
typedef tide_status play(struct fixture *f, tide_job *job, tide_error *err);

struct fixture {
    tide_sim *sim;
    tide_sim_cloud *cloud;
    tide_secrets *secrets;
    tide_tokens *tokens;
    struct tide_mem_faulty mem; /* of the client */
    tide_gmail *gmail;
    tide_engine *engine;
    uint32_t kind, account;

    /* The job that runs, and what came of it. */
    play *play;
    tide_status status;
    tide_error err;
    uint64_t took_ms;

    /* The network. */
    const char *say; /* instead of the cloud's answer */
    const char *say_type;
    int say_http;
    /* Whether the connection ends here: before the cloud has the request, or after. */
    bool (*cut)(struct fixture *f, bool after);
    unsigned requests;  /* to the API */
    unsigned refreshes; /* of the token */
    char url[4096];     /* of the last one */
    char method[16];
    char authorization[64];
    char encoding[64];
    char agent[64];
    tide_buf body;

    /* What the calls work on. */
    char id[64];
    const char *query;
    tide_text text;
    tide_text ids[TIDE_GMAIL_IDS_MAX + 1];
    size_t ids_count;
    const char *const *add, *const *take;
    struct tide_gmail_profile profile;
    struct tide_gmail_page page;
    struct tide_gmail_message message;
    struct tide_gmail_history history;
    json_t *labels;
    tide_buf new_id;
    char thread_id[64];
    const char *const *headers;
    struct tide_gmail_thread thread;
    struct tide_gmail_parts parts;
    struct tide_gmail_draft draft;
    struct tide_gmail_drafts drafts;
    struct tide_gmail_send send;
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

/* With a token that can be refreshed, at ORIGIN. */
struct fixture *begin(uint32_t messages);
struct fixture *begin_with(const char *endpoint, const char *grant, uint32_t messages);
void finish(struct fixture *f);
#define CASE(name, messages) TEST_OF(name, struct fixture *f, begin(messages), finish)

/* Calls wait for their units inside. */
void be_patient(struct fixture *f);

/* Drops what the last calls answered. */
void forget(struct fixture *f);

/* Runs one call in a job of its own. */
tide_status run(struct fixture *f, play *call);
void run_ok(struct fixture *f, play *call);

/* ---- the calls: what run() plays ---- */

tide_status play_profile(struct fixture *f, tide_job *job, tide_error *err);
tide_status play_list(struct fixture *f, tide_job *job, tide_error *err);
tide_status play_get(struct fixture *f, tide_job *job, tide_error *err);
tide_status play_minimal(struct fixture *f, tide_job *job, tide_error *err);
tide_status play_history(struct fixture *f, tide_job *job, tide_error *err);
tide_status play_labels(struct fixture *f, tide_job *job, tide_error *err);
tide_status play_label_create(struct fixture *f, tide_job *job, tide_error *err);
tide_status play_modify(struct fixture *f, tide_job *job, tide_error *err);
tide_status play_delete(struct fixture *f, tide_job *job, tide_error *err);
tide_status play_insert(struct fixture *f, tide_job *job, tide_error *err);
tide_status play_label_ensure(struct fixture *f, tide_job *job, tide_error *err);
tide_status play_thread_get(struct fixture *f, tide_job *job, tide_error *err);
tide_status play_thread_look(struct fixture *f, tide_job *job, tide_error *err);
tide_status play_thread_modify(struct fixture *f, tide_job *job, tide_error *err);
tide_status play_trash(struct fixture *f, tide_job *job, tide_error *err);
tide_status play_draft_create(struct fixture *f, tide_job *job, tide_error *err);
tide_status play_draft_find(struct fixture *f, tide_job *job, tide_error *err);
tide_status play_draft_get(struct fixture *f, tide_job *job, tide_error *err);
tide_status play_draft_delete(struct fixture *f, tide_job *job, tide_error *err);
tide_status play_drafts_list(struct fixture *f, tide_job *job, tide_error *err);
tide_status play_reply_send(struct fixture *f, tide_job *job, tide_error *err);

/* ---- looking at the cloud ---- */

json_t *ask(struct fixture *f, const char *method, const char *target, const char *body,
            int *http_out);
void control(struct fixture *f, const char *method, const char *target, const char *body);
uint64_t units(struct fixture *f);
box_mailbox *mailbox_of(struct fixture *f);
void assert_stored(struct fixture *f, tide_text id, tide_text bytes);
bool has_label(struct fixture *f, tide_text id, const char *label);
tide_text id_at(const json_t *ids, size_t index);

/* Puts a message into the mailbox, in the thread `thread_id` ("": a new one, which it then names),
 * `minute` after the start of 2026; `id` is its id. */
void put(struct fixture *f, const char *raw, uint64_t minute);

/* The first page of the mailbox; `id` and `ids` name its messages. */
void look(struct fixture *f, size_t ids_count);

#endif
