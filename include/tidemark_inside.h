/* tidemark_inside.h - engine functions for Tidemark's own systems.  Not installed. */
#ifndef TIDEMARK_INSIDE_H
#define TIDEMARK_INSIDE_H

#include "tidemark.h"

struct tide_cancel;
struct tide_provider_limits;

/* The job's cancellation token, for code that waits on its behalf; borrowed. */
const struct tide_cancel *tide_job_cancellation(const tide_job *job);

/* Like tide_job_batch(), with a judge that has an argument of its own. */
typedef tide_status tide_judge_with(void *arg, const struct tide_response *response,
                                    uint64_t *retry_after_ms_out, tide_error *err);
tide_status tide_job_call_judged(tide_job *job, uint32_t units, uint32_t parts, uint32_t method,
                                 tide_judge_with *judge, void *judge_arg,
                                 const struct tide_request *request, struct tide_response *response,
                                 tide_error *err);

/* A part of a batch that the job sent was answered, and not with 2xx: for display (E9.1). */
void tide_job_part_failed(tide_job *job, int http);

/* Whether this job is a probe: its one item succeeded before, and the engine wants to know
 * whether it still does (E6.2).  The handler makes a real call and stores nothing. */
bool tide_job_is_probe(tide_job *job);
/* The item is done, but no call was made for it: it says nothing about the account. */
void tide_job_item_skipped(tide_job *job, size_t index);

/* The argument of the job's first effect with this `run`; NULL: it has none.  A job of items that
 * waited for units comes back with its effects, and need not add another one. */
void *tide_job_effect_arg(const tide_job *job, tide_transact_fn *run);

/* From now on the handler waits for room in a queue that other threads empty; `queue` is static
 * and names what it holds ("messages for the archive").  NULL: it waits no longer.  A wait that
 * is too long raises an alert (E6.4, B13).  Waiting for quota is not such a wait. */
void tide_job_queued(tide_job *job, const char *queue);

/* Failed jobs of an account and of these kinds become pending again, with a fresh budget: for
 * kinds that may be repeated and that nothing else would start again (E5.2).  Jobs that a user
 * canceled stay canceled. */
tide_status tide_retry_failed(tide_engine *engine, uint32_t account, const uint32_t *kinds,
                              size_t kinds_count, uint64_t *count_out, tide_error *err);

/* The same for one kind, where `is_wanted` says so; it is called as `is_over` below. */
typedef bool tide_over_fn(tide_text payload, uint64_t ended_unix_ms, void *arg);
tide_status tide_retry_failed_where(tide_engine *engine, uint32_t account, uint32_t kind,
                                    tide_over_fn *is_wanted, void *arg, tide_error *err);

/* Failed jobs of an account and of a kind become done, where `is_over` says that nothing of them
 * is left to do.  It is called in a transaction: it reads and decides, no more.
 * `ended_unix_ms` is 0 for a job that waits. */
tide_status tide_accept_failed(tide_engine *engine, uint32_t account, uint32_t kind,
                               tide_over_fn *is_over, void *arg, tide_error *err);
/* The same for jobs of an account that wait, of all kinds. */
tide_status tide_end_waiting(tide_engine *engine, uint32_t account, tide_over_fn *is_over,
                             void *arg, tide_error *err);
/* What a running job works with has changed: its waits and calls end, and it is tried again, as if
 * it had not begun; what it saved stays.  A job that does not run is left alone.  Any thread. */
void tide_job_restart(tide_engine *engine, uint64_t id);

/* A call outside of any job succeeded for this account: a sign-in was tested. */
tide_status tide_account_answered(tide_engine *engine, uint32_t account, tide_error *err);

/* From now on this process runs only jobs of these accounts and jobs without an account; jobs of
 * other accounts stay in the ledger.  Call it before the start.  `count` 0: all accounts.  A
 * command that hands work for another account to this process (engine/control/control.h) adds that
 * account. */
tide_status tide_engine_only(tide_engine *engine, const char *const *names, size_t count,
                             tide_error *err);

/* The limits of a provider that a system brings (engine/providers.h); they are copied.  Call it
 * before the start.  TIDE_EXISTS: the name is taken. */
tide_status tide_engine_provider(tide_engine *engine, const struct tide_provider_limits *limits,
                                 tide_error *err);

/* Names the methods of a provider for display, by the numbers that calls have; NULL: it has no such
 * method.  Without this they are shown as numbers.  `name_of` is called under the engine's lock. */
typedef const char *tide_method_name(uint32_t method);
tide_status tide_engine_methods(tide_engine *engine, const char *provider,
                                tide_method_name *name_of, tide_error *err);

/* The random name of this start of the engine, as `ping` answers it (engine/control/control.h). */
const char *tide_engine_run(const tide_engine *engine);
/* For a job that must not continue by itself after the process that was asked for it died: its
 * payload names that start of the engine.  Whether it is this one. */
struct json_t;
bool tide_engine_asked_here(const tide_engine *engine, const struct json_t *payload);
/* Call it before the start: the jobs of a system mostly wait for answers, and this many threads suit them.
 * A number that a user set, or the program that opened the engine, stays. */
void tide_engine_workers_want(tide_engine *engine, uint32_t workers);
/* Adds an object to every snapshot, below "systems" (E9.1); `name` is static.  Call it before the
 * start; `fill` is called from any thread, without the engine's lock. */
typedef void tide_snapshot_fn(struct json_t *object, void *arg);
tide_status tide_engine_snapshot_add(tide_engine *engine, const char *name, tide_snapshot_fn *fill,
                                     void *arg, tide_error *err);

/* For a process that stays: calls `changed` when the engine starts a job after a rest, when it rests
 * again, and when it stops.  It is called under the engine's lock: it must be brief and must
 * not call the engine.  Call this before the start. */
void tide_engine_watch(tide_engine *engine, void (*changed)(void *arg), void *arg);
/* The caller watches the settings file, or the system's clock, and reports changes; the engine then
 * never wakes up to check it. */
void tide_engine_settings_watched(tide_engine *engine);
void tide_engine_settings_changed(tide_engine *engine);
/* For threads of a system that work by settings: `changed` is called after each reload that changed
 * one which counts at once.  It is called under the engine's lock: it must be brief and must not call
 * the engine.  Embedded; unfollowed before it goes. */
struct tide_settings_follower {
    void (*changed)(void *arg);
    void *arg;
    struct tide_settings_follower *next;
};
void tide_engine_settings_follow(tide_engine *engine, struct tide_settings_follower *follower);
void tide_engine_settings_unfollow(tide_engine *engine, struct tide_settings_follower *follower);
/* A setting (settings/settings.h) as it counts for an account now (E11.2); account 0: for all. */
uint64_t tide_engine_setting_u64(tide_engine *engine, uint32_t account, int setting);
void tide_engine_setting_text(tide_engine *engine, uint32_t account, int setting, char *text_out,
                              size_t text_bytes);
void tide_engine_clock_watched(tide_engine *engine);
void tide_engine_clock_changed(tide_engine *engine); /* it was set, or the machine was suspended */

/* Whether other processes work on the same ledger. */
bool tide_engine_shared(const tide_engine *engine);
/* The kind of that name.  TIDE_NOT_FOUND: this process has no handler for it. */
tide_status tide_engine_kind_named(tide_engine *engine, tide_text name, uint32_t *kind_out,
                                   tide_error *err);
/* The priority of the kind's jobs unless they name another one. */
uint8_t tide_engine_kind_priority(tide_engine *engine, uint32_t kind);
/* Call it after enqueuing jobs of an account that this process does not hold: it takes the
 * account as soon as possible, if it is free.  Until it has tried, tide_engine_wait() does not
 * return TIDE_OK.  Does nothing on SQLite. */
void tide_engine_take_soon(tide_engine *engine);
/* Whether this process holds the account, or still runs a job of it.  When it does not, files it
 * has open for the account may block another process. */
bool tide_engine_uses(tide_engine *engine, uint32_t account);
/* Cancels the jobs of a kind and an account.  For work that must not continue by itself after
 * the process that started it died. */
tide_status tide_cancel_kind_of(tide_engine *engine, const char *kind, const char *account,
                                tide_error *err);

/* Raises, changes or clears an alert that a system found by itself (E6.4): it is shown, logged, counted
 * and mailed like those of the engine, until the system clears it with level 0.  Durable when it
 * returns; one that is there as it is said costs nothing.  `condition` begins with the name of the
 * system; `account` 0: none.  Any thread, but not under a lock that an effect takes.
 *   TIDE_INVALID  the condition is the engine's, or too long */
tide_status tide_engine_alert(tide_engine *engine, uint32_t account, const char *condition,
                              int level, const char *text, tide_error *err);

/* All alerts of an account that is removed in this transaction end, also those of the engine; when it is
 * durable, what this process has of them is forgotten. */
tide_status tide_transaction_alerts_end(tide_transaction *transaction, uint32_t account,
                                        tide_error *err);
void tide_engine_alerts_forget(tide_engine *engine, uint32_t account);

/* ---- notices of alerts (E6.4) ----
 *
 * The engine decides when a user is told of an alert outside of this program, and stores that
 * durably before and after; the program brings the function that sends.  On a shared ledger one
 * process sends each notice.  None is sent while the settings name nowhere to send them. */
struct tide_notice {
    const char *condition; /* "bad_rate" */
    const char *account;   /* "": it concerns none */
    const char *text;      /* the line of `tidemark alerts` */
    const char *tag;       /* 32 hexadecimal digits, the same when it is repeated */
    int level;             /* 1 warning, 2 critical; 0: the condition has ended */
    bool still;            /* it was told before, and still holds */
    bool again; /* this notice may have been sent before: look first, if that is possible */
    uint64_t since_unix_ms, ended_unix_ms; /* ended: 0 unless the level is 0 */
    uint64_t made_unix_ms;                 /* the same when it is repeated */
};
struct tide_notifier {
    /* Sends one and waits, for at most two minutes.
     *   TIDE_OK         it was sent
     *   TIDE_UNKNOWN, TIDE_TIMEOUT, TIDE_CANCELED, TIDE_STOPPED   it may have been sent
     *   TIDE_PERMANENT, TIDE_AUTH, TIDE_INVALID, TIDE_NOT_FOUND   refused: a user has to look
     *   else            not sent; tried again later */
    tide_status (*send)(void *arg, const struct tide_notice *notice,
                        const struct tide_cancel *cancel, tide_error *err);
    void *arg;
};
/* Call it before the start; the struct is copied. */
tide_status tide_engine_notifier(tide_engine *engine, const struct tide_notifier *notifier,
                                 tide_error *err);

/* The settings of such mail as they are now, about an account; "": about none. */
enum { TIDE_ALERT_MAIL_TEXT_BYTES = 256 };
struct tide_alert_mail {
    char to[TIDE_ALERT_MAIL_TEXT_BYTES], from[TIDE_ALERT_MAIL_TEXT_BYTES];
    char server[TIDE_ALERT_MAIL_TEXT_BYTES], ca_file[TIDE_ALERT_MAIL_TEXT_BYTES];
    char account[TIDE_ALERT_MAIL_TEXT_BYTES];
};
void tide_engine_alert_mail(tide_engine *engine, const char *account,
                            struct tide_alert_mail *mail_out);

#endif
