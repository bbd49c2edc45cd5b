/* assistant_sim.h - the mail assistant as it is, its jobs on the engine, in the simulated world: the cloud
 * in a box as Gmail, a model that lies, fails and thinks for minutes, a user who works in the same
 * mailbox, and processes that die at any step.
 *
 * A seed is a few lives of an hour or less, on one clock.  Messages come, the user acts: between lives,
 * while jobs wait, between two calls of a handler, and while the model thinks.  Some pushes are lost,
 * others come twice, history expires; a sync is asked for every 15 minutes and a full one every hour
 * (J4), if a process lives then.  In the end all troubles cease.  Rules:
 *
 *   ASM1  what puts a label of a category or Outbox on a thread leaves one of these (DCD1).
 *   ASM2  a thread has at most one draft of ours, whoever changed it since.
 *   ASM3  one interval of full syncs and the time of the queue after the troubles every message of the
 *         inbox that has no label and is in the window has a record.
 *   ASM4  no message is forgotten: the record knows the newest of the inbox; a history id is one that
 *         the server gave, and moves with the jobs that follow from it (JBS5).
 *   ASM5  a command of the user is acted upon once: drafts and events are not more than what asked for
 *         them.
 *   ASM6  a command of the user is acted upon.
 *   ASM7  a question is answered once, and once more for each process that died with the answer.
 *   ASM8  a handler changes nothing outside its own thread.
 *   ASM9  nothing is in work for good: no record, no job, no question, no draft that is stale.
 *   ASM10  record, labels and draft of a thread agree in the end; a thread has one record.
 *   ASM11  a message is answered by one reply at most.
 *   ASM12  one handler at a time works on a thread (JBS1).
 *
 * They hold for threads with a job that failed, tried as often as jobs are (J2), too: a full sync tries it
 * again.  The first two, ASM8, ASM11 and ASM12 are checked at each step. */
#ifndef TIDE_TESTS_SIM_ASSISTANT_H
#define TIDE_TESTS_SIM_ASSISTANT_H

#include "unit/assistant/jobs/assistant_jobs_fixture.h"

enum asim_fault {
    AFAULT_PUSH_LOST,
    AFAULT_PUSH_TWICE,
    AFAULT_HISTORY_EXPIRED,
    AFAULT_DIED_DRAFT,    /* made, its record not written */
    AFAULT_DIED_LABELS,   /* put on, the same */
    AFAULT_DIED_TRASH,    /* a stale draft in the trash, the same */
    AFAULT_DIED_REPLY,    /* sent, the same */
    AFAULT_DIED_QUESTION, /* recorded, not asked */
    AFAULT_DIED_ASKING,   /* while the model thought */
    AFAULT_DIED_ANSWERED, /* the answer not stored */
    AFAULT_DIED_SYNC,     /* seen, no jobs yet */
    AFAULT_JOB_FAILED,    /* killed, or refused, as often as a job is tried */
    AFAULT_MODEL_LIES,
    AFAULT_MODEL_FAILS,
    AFAULT_MODEL_SLOW,
    AFAULT_OVER_BUDGET,
    AFAULT_ACT_BETWEEN_CALLS,
    AFAULT_ACT_WHILE_THINKING,
    AFAULT_TAKEN_BACK, /* a command, before or after it was seen */
    AFAULT_FIDDLED,    /* labels of ours, by the user's hand */
    AFAULT_THREAD_GONE,
    AFAULT_OLD_MAIL,
    AFAULT_THROTTLED,
    AFAULT_SERVER_ERROR,
    AFAULT_RESET_AFTER, /* the effect, no answer */
    AFAULT_TRUNCATED,
    AFAULTS
};
extern const char *const asim_fault_names[AFAULTS];

/* Bugs on purpose, each found by a rule (plants.c). */
enum asim_plant {
    APLANT_NONE,
    APLANT_DRAFT_NOT_LOOKED_FOR, /* a draft that was perhaps made is made */
    APLANT_DRAFT_KEPT,           /* stale drafts are not trashed */
    APLANT_LABEL_KEPT,           /* the old label is not taken off */
    APLANT_HISTORY_FIRST,        /* the id moves before the jobs are there */
    APLANT_GAP_BLIND,            /* after an expired id no command is looked for */
    APLANT_INBOX_BLIND,          /* a full sync lists nothing */
    APLANT_MARK_FORGOTTEN,       /* our own label is the user's */
    APLANT_MARK_GREEDY,          /* the user's label is ours */
    APLANT_ANSWER_TWICE,         /* an answer is asked for again */
    APLANT_ANSWER_LOST,          /* an answer is not stored */
    APLANT_OTHER_THREAD,         /* labels go to a thread that is not the job's */
    APLANT_NO_RECORD,            /* a classification has its label and no record */
    APLANT_DRAFT_NOT_GONE,       /* a draft that was sent or discarded still counts as there */
    APLANT_STUCK_LEFT,           /* neither jobs that failed nor their records are looked for */
    APLANT_REPLY_TWICE,          /* a reply that was perhaps sent is sent */
    APLANT_TOGETHER,             /* handlers do not wait for each other */
    APLANT_DONE_HALFWAY,         /* Done leaves the thread in the inbox */
    APLANTS
};
extern const char *const asim_plant_names[APLANTS];
extern const char *const asim_plant_rules[APLANTS];

struct asim_totals {
    uint64_t faults[AFAULTS];
    uint64_t lives, crashes, acts, messages, questions, drafts, replies;
};

/* What was done and not written down; a crash that finds it is a fault of its own. */
enum asim_open {
    AOPEN_DRAFT,
    AOPEN_LABELS,
    AOPEN_TRASH,
    AOPEN_REPLY,
    AOPEN_QUESTION,
    AOPEN_ASKING,
    AOPEN_ANSWERED,
    AOPEN_SYNC,
    AOPENS
};

struct asim_thread {
    char id[64];
    unsigned inbound, done, rework, needs, forced; /* what others and the user did */
    unsigned drafts;                               /* that agents were told to make */
    unsigned touched;    /* drafts that the user sent, discarded or edited */
    unsigned orphans;    /* drafts whose round was killed: another message may begin it again */
    bool unrecorded;     /* a draft was made, and its round is not over */
    unsigned made, sent; /* drafts and replies of ours */
    unsigned expected;   /* changes that handlers of the thread are about to make */
    unsigned handlers;   /* that work on it */
    bool agent;          /* an agent ran */
    bool returned;       /* the user moved it into the inbox */
    bool fiddled;        /* the user changed labels of ours by hand, and nothing did since */
};

struct asim_question {
    char key[160];
    uint32_t life; /* that got the answer; 0: none */
};

enum { ASIM_THREADS_MAX = 12, ASIM_QUESTIONS_MAX = 1024, ASIM_DRAFTS_MAX = 1024 };

struct asim_stage {
    struct fixture *f;
    uint64_t seed;
    enum asim_plant plant;
    tide_rng rng;
    struct asim_totals totals;
    bool calm;
    struct asim_thread threads[ASIM_THREADS_MAX];
    unsigned threads_count;
    struct asim_question questions[ASIM_QUESTIONS_MAX];
    unsigned questions_count;
    bool ours[ASIM_DRAFTS_MAX];        /* drafts of the mailbox, by index */
    uint64_t sync_due_us, full_due_us; /* J4 */
    uint64_t budget_until_us;          /* the model answers nothing until then */
    unsigned cursed;                   /* an asim_open at which processes die often */
    bool running;                      /* a life is on */
    bool crashed;                      /* the last one ended so */
    unsigned open[AOPENS];
};
extern struct asim_stage *asim_now; /* of the functions that the linker puts in between */

void asim_run(uint64_t seed, enum asim_plant plant, struct asim_totals *totals_out);
bool asim_happens(struct asim_stage *stage, enum asim_fault fault, uint32_t one_in);
/* With TIDE_SIM_LOG in the environment the story of a seed is told on standard error. */
void asim_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void asim_say_jobs(struct asim_stage *stage); /* those that did not end well */
struct asim_thread *asim_thread(struct asim_stage *stage, const char *id); /* NULL: none such */
uint64_t asim_now_us(struct asim_stage *stage);

/* users.c */
void asim_act(struct asim_stage *stage);
void asim_trouble(struct asim_stage *stage);

/* model.c */
tide_assistant_asker asim_model;

/* plants.c: something is done and not written down, if `rc` says so; the process may die. */
void asim_opens(tide_status rc, enum asim_open open);

/* rules.c */
tide_sim_provide asim_provide;
void asim_note_failed(struct asim_stage *stage);  /* jobs that failed before the calm hours */
void asim_check_intake(struct asim_stage *stage); /* ASM3, ASM4 */
void asim_check_end(struct asim_stage *stage);    /* the others that hold in the end */

#endif
