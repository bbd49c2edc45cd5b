/* inside.h - shared by the files of assistant.h. */
#ifndef TIDE_ASSISTANT_INSIDE_H
#define TIDE_ASSISTANT_INSIDE_H

#include "assistant/account/account.h"
#include "assistant/assistant.h"
#include "assistant/jobs/chat.h"
#include "assistant/jobs/jobs.h"

enum { TIDE_ASSISTANT_WAIT_MS = 30000 }; /* until a job looks again for what is missing */

/* A configuration and how many handlers work by it. */
struct tide_assistant_kept;
struct tide_assistant_chat_client;
struct tide_assistant_gmail_client;

struct tide_assistant {
    struct tide_assistant_options options;
    char config_path[4096];
    tide_mem *mem;
    tide_assistant_jobs *jobs;
    tide_lock *lock;

    /* Under the lock. */
    struct tide_assistant_kept *configs; /* the first holds, unless `refused` and there is none */
    struct tide_assistant_files files;   /* as they were read last */
    tide_error refused; /* why the files as they are do not hold; TIDE_OK: they do */
    bool resident;      /* the process stays */
    struct tide_assistant_intervals {
        uint32_t fallback_minutes, full_hours, watch_hours;
    } planned; /* all 0: nothing is */
    struct tide_assistant_over {
        uint32_t account;
        uint64_t limit, day;
    } over; /* the last budget that was used up; its account 0: none is known */
    struct tide_assistant_chat_client *chats;
    struct tide_assistant_gmail_client *gmails;
};

/* ---- terms.c ---- */

/* Reads the files if one of them changed (ASN1). */
void tide_assistant_look(tide_assistant *assistant);
/* For struct tide_assistant_lender. */
tide_status tide_assistant_terms_take(void *assistant, tide_job *job,
                                      struct tide_assistant_terms *terms_out, tide_error *err);
void tide_assistant_terms_give(void *assistant, const struct tide_assistant_terms *terms);
/* The configuration, to be given back; NULL: there is none. */
const struct tide_assistant_config *tide_assistant_lend(tide_assistant *assistant);
/* The budget of assistant.yaml; 0: none. */
uint64_t tide_assistant_tokens_per_day(tide_assistant *assistant);
void tide_assistant_terms_done(tide_assistant *assistant);

/* ---- plan.c ---- */

/* Plans what these intervals say, if that is not planned. */
void tide_assistant_plan_look(tide_assistant *assistant,
                              const struct tide_assistant_config *config);

/* ---- clients.c ---- */

tide_assistant_asker tide_assistant_ask;
tide_assistant_gmail tide_assistant_gmail_of;
void tide_assistant_clients_done(tide_assistant *assistant);

#endif
