/* reader_sim.h - the reader beside the mirror and the assistant, on one account, in the simulated world: the
 * three systems as they are on one engine, the cloud in a box as Gmail, a person who reads and tidies, other
 * clients in the same mailbox, and processes that die at any step.
 *
 * A seed is one of three worlds:
 *
 *     STORM  a few lives that crash, with all troubles; then calm hours
 *     EDGE   a first sync of a large mailbox at the edge of the quota, and a person who reads meanwhile
 *     DAY    a day with three sittings of a person, and nothing wrong
 *
 * Rules:
 *
 *   RSM1  no job of the account starts while one of a higher level waits (K3, E3.3).
 *   RSM2  of the reader's jobs that talk to the server one runs at a time (K4).
 *   RSM3  mail that comes is looked for within the interval of polls, and no poll is made besides (K6, K7).
 *   RSM4  no window of the quota is crossed, by the server's count; while the mirror has work, 95 % of it are
 *         used (E4.3).
 *   RSM5  a change at the server is one that the person asked for; an action is begun when no other one
 *         is, and when none with a smaller number is due (KR2); changes reach the server from actions that
 *         were begun, none is lost, and none is made again unless its job was interrupted (K11).
 *   RSM6  an action is refused if and only if the server refused it (KR3).
 *   RSM7  an action is shown at once; in the end what is shown is what the server has (KR1).
 *   RSM8  the call for an opened message starts within 50 ms, six times a minute (K15); in the end its body
 *         is here.
 *   RSM9  what the archive has is not fetched again (K12, KR5).
 *   RSM10 nothing is in work for good, and in calm hours no job fails.
 *
 * RSM1, RSM2 and RSM9 are checked at every start of a job, RSM5 at every change of the mailbox. */
#ifndef TIDE_TESTS_SIM_READER_H
#define TIDE_TESTS_SIM_READER_H

#include "assistant/jobs/jobs.h"
#include "cloudbox/mailbox/mailbox.h"
#include "reader/inside.h"
#include "reader/view/view.h"
#include "sim.h"
#include "sim_cloud.h"
#include "sim_mail.h"
#include "support/test.h"

#define RSIM_ME "me@example.org"

enum rsim_world { RWORLD_STORM, RWORLD_EDGE, RWORLD_DAY };

enum rsim_fault {
    RFAULT_DIED_ACTION, /* at the server, not recorded */
    RFAULT_DIED_BODY,   /* fetched, not stored */
    RFAULT_DIED_POLL,   /* history read, its id not moved */
    RFAULT_DIED_PAGE,   /* listed, its floor not written */
    RFAULT_OFFLINE,
    RFAULT_THROTTLED,
    RFAULT_SERVER_ERROR,
    RFAULT_RESET_AFTER, /* the effect, no answer */
    RFAULT_TRUNCATED,
    RFAULT_REFUSED,
    RFAULT_HISTORY_EXPIRED,
    RFAULT_CACHE_LOST,
    RFAULT_PREEMPTED, /* a job of the reader, by one of the reader */
    RFAULT_PREEMPTED_ACTION,
    RFAULT_TAKEN_BACK, /* an action that had not begun */
    RFAULT_INVERTED,   /* one that had */
    RFAULT_OTHER_CLIENT,
    RFAULT_GONE, /* a message that the person knows */
    RFAULTS
};
extern const char *const rsim_fault_names[RFAULTS];

/* Bugs on purpose, each found by a rule (plants.c). */
enum rsim_plant {
    RPLANT_NONE,
    RPLANT_LEVELS,         /* all kinds are of level 4 */
    RPLANT_TOGETHER,       /* jobs of the reader do not wait for each other */
    RPLANT_POLL_STOPS,     /* after a while no poll is due any more */
    RPLANT_POLL_ALWAYS,    /* polls are as frequent when nobody looks */
    RPLANT_DEAR,           /* calls are charged twice: the quota is not used */
    RPLANT_CHEAP,          /* calls are charged half */
    RPLANT_NEWEST_FIRST,   /* the newest action is uploaded first */
    RPLANT_ACTION_LOST,    /* some are recorded and not made */
    RPLANT_ACTION_TWICE,   /* an end is not recorded */
    RPLANT_REFUSED_KEPT,   /* a refusal counts as done */
    RPLANT_REFUSED_ALWAYS, /* a failure of the server counts as a refusal */
    RPLANT_OVERLAY_BLIND,  /* what a person did is not shown until the server has it */
    RPLANT_LABELS_BLIND,   /* label changes of other clients are not stored */
    RPLANT_HISTORY_FIRST,  /* the history id moves before the messages are here */
    RPLANT_NO_RESERVE,     /* no units are kept for what is opened */
    RPLANT_FETCH_AGAIN,    /* bodies that the archive has are fetched */
    RPLANT_ACTION_STUCK,   /* nothing uploads an action */
    RPLANTS
};
extern const char *const rsim_plant_names[RPLANTS];
extern const char *const rsim_plant_rules[RPLANTS];

/* What was done and not written down; a crash that finds it is a fault of its own. */
enum rsim_open { ROPEN_ACTION, ROPEN_BODY, ROPEN_POLL, ROPEN_PAGE, ROPENS };

struct rsim_totals {
    uint64_t faults[RFAULTS];
    uint64_t lives, crashes, starts, acts, actions, opens, messages, calls, polls;
    uint64_t used_permille, edges;              /* of the quota, summed over worlds of that kind */
    uint64_t open_ms_highest, fresh_ms_highest; /* summed over worlds: of one seed the highest */
};

/* ---- jobs as they are seen from outside (watch.c) ---- */

enum { RSIM_KINDS_MAX = 64, RSIM_JOBS_MAX = 8192 };

struct rsim_kind {
    char name[40];
    tide_handler *handler;
    void *context;
    uint32_t number;
    uint8_t level; /* as the system that defined it meant */
    bool alone;
};

struct rsim_job {
    uint64_t id;
    const struct rsim_kind *kind;
    uint64_t
        waits_us; /* since then nothing but its turn is missing; UINT64_MAX: it does not wait */
    bool runs;
};

/* ---- what the person asked for (person.c, server.c) ---- */

enum {
    RSIM_ACTIONS_MAX = 2048,
    RSIM_CHANGES_MAX = 12, /* of an action: three messages, up to three labels each */
    RSIM_OPENS_MAX = 2048,
    RSIM_ARRIVALS_MAX = 2048,
};

struct rsim_change {
    char message[BOX_ID_TEXT_BYTES];
    char label[64];
    bool added;
    unsigned effects; /* calls that reached the server */
};

struct rsim_action {
    uint64_t id, due_ms;
    bool accepted; /* the person was told so; else it may not exist */
    bool gone;     /* the crash took it before it was accepted */
    bool begun, ended;
    bool
        unsure; /* the process died in the life in which it was begun or ended: perhaps it was not */
    tide_action_state state;
    bool refused; /* by the server */
    unsigned excuses;
    uint32_t life; /* of the last beginning, effect or end */
    struct rsim_change changes[RSIM_CHANGES_MAX];
    size_t changes_count;
};

struct rsim_opened {
    char message[BOX_ID_TEXT_BYTES];
    uint64_t asked_us;
    bool called; /* its call reached the server, or there was nothing to fetch */
    bool timed;  /* RSM8 */
};

struct rsim_stage {
    uint64_t seed;
    enum rsim_world world_kind;
    enum rsim_plant plant;
    tide_rng rng;
    struct rsim_totals totals;
    tide_sim *sim;
    tide_world *world;
    tide_sim_cloud *cloud;
    box_mailbox *mailbox;
    struct tide_assistant_config *config;
    bool calm;       /* the troubles are over */
    bool expired;    /* a history id */
    unsigned cursed; /* an rsim_open at which processes die often */
    unsigned delivered;

    /* Of a life. */
    struct tide_sim_mail life;
    tide_tokens *tokens;
    tide_gmail *gmail; /* the assistant's */
    tide_assistant_jobs *jobs;
    tide_reader *reader;
    uint32_t account, model_account;
    bool running, watched;
    unsigned open[ROPENS];
    uint64_t sync_due_us;
    struct rsim_kind kinds[RSIM_KINDS_MAX];
    size_t kinds_count;
    struct rsim_job queue[RSIM_JOBS_MAX];
    size_t queue_count;
    unsigned alone; /* jobs of the reader that run */

    uint64_t id_highest; /* of a job that was seen */
    struct rsim_action actions[RSIM_ACTIONS_MAX];
    size_t actions_count;
    uint64_t chosen_ms;        /* when the next action was looked for */
    uint64_t begun_id;         /* the action that was begun last */
    uint64_t reached_id;       /* the action of the last change at the server */
    uint64_t excused_until_us; /* a call that was given up may still reach the server */
    struct rsim_opened opened[RSIM_OPENS_MAX];
    size_t opened_count;
    uint64_t arrived_us[RSIM_ARRIVALS_MAX]; /* of mail that no poll has looked for */
    size_t arrived_count;
    uint64_t polls, looks_us; /* when the person began to look */
    bool mirrors;             /* the mirror follows the mailbox */
    size_t opened_calm;       /* those before were opened in the storm */
};
extern struct rsim_stage *rsim_now; /* of the functions that the linker puts in between */

#define RSIM_FAIL(stage, ...) tide_sim_fail((stage)->sim, __VA_ARGS__)

/* reader_sim.c */
void rsim_run(uint64_t seed, enum rsim_plant plant, struct rsim_totals *totals_out);
bool rsim_happens(struct rsim_stage *stage, enum rsim_fault fault, uint32_t one_in);
/* With TIDE_SIM_LOG in the environment the story of a seed is told on standard error. */
void rsim_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
uint64_t rsim_us(struct rsim_stage *stage);
/* Sleeps; syncs of mirror and assistant begin when they are due.  false: the process died. */
bool rsim_pass(struct rsim_stage *stage, uint64_t us);

/* home.c: the three systems on one engine. */
void rsim_home_begin(struct rsim_stage *stage, uint32_t messages);
void rsim_home_end(struct rsim_stage *stage);
tide_status rsim_life_begin(struct rsim_stage *stage, tide_error *err);
void rsim_life_end(struct rsim_stage *stage);
void rsim_sync(struct rsim_stage *stage); /* mirror and assistant look for changes */

/* person.c */
void rsim_comes(struct rsim_stage *stage, uint64_t age_ms);
void rsim_opens(struct rsim_stage *stage, uint32_t slot, bool timed);
void rsim_acts(struct rsim_stage *stage); /* on messages of its choice */
void rsim_step(struct rsim_stage *stage); /* anything that happens in a mailbox */
void rsim_look(struct rsim_stage *stage, bool watched);
void rsim_trouble(struct rsim_stage *stage);
/* Not gone, no draft, not in spam or trash; BOX_SLOT_NONE: none was found. */
uint32_t rsim_some_slot(struct rsim_stage *stage);

/* server.c */
tide_sim_provide rsim_provide;
void rsim_note_crash(struct rsim_stage *stage);
struct rsim_action *rsim_action(struct rsim_stage *stage, uint64_t id); /* NULL: none such */
void rsim_note_begun(struct rsim_stage *stage, uint64_t id);            /* RSM5 */
uint64_t rsim_units(struct rsim_stage *stage); /* that the server counted so far; RSM4 */

/* watch.c */
const struct rsim_kind *rsim_kind_of(struct rsim_stage *stage, const tide_job *job);
bool rsim_is_readers(const struct rsim_kind *kind);

/* plants.c: something is done and not written down, if `rc` says so; the process may die. */
void rsim_open_at(tide_status rc, enum rsim_open open);
void rsim_close_at(tide_status rc, enum rsim_open open);
bool rsim_planted(enum rsim_plant plant);
bool rsim_in_archive(struct rsim_stage *stage, const char *id);

/* rules.c */
void rsim_check_shown(struct rsim_stage *stage, const struct rsim_action *action); /* RSM7 */
void rsim_check_end(struct rsim_stage *stage);

#endif
