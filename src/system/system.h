/* system.h - what a system on the engine is to code that names no system (E12).
 *
 * A system has kinds of jobs, tables beside the ledger, accounts of one provider, and files below
 * archive/.  It registers once: one const struct, listed in cli/commands/systems.c.  Commands that
 * belong to no system (worker, backup, restore, ledger copy, account list) walk that list.
 *
 * Members marked "required" are never NULL; for the others NULL means what is said there.
 *
 * Invariants (tide_systems_check(), at the start of the program):
 *   SYS1  names are unique in the list, and so are providers but "".
 *   SYS2  a system uses only tables whose names begin with its own and '_', and the entries of
 *         archive/ that owns_entry() claims.
 *   SYS3  open() makes tables and defines kinds; it starts no work.
 *   SYS4  close() is called after tide_engine_close() said that no handler runs.
 */
#ifndef TIDE_SYSTEM_SYSTEM_H
#define TIDE_SYSTEM_SYSTEM_H

#include "db/rows.h"
#include "ledger/ledger.h"
#include "mcp/tool.h"
#include "net/oauth/oauth.h"
#include "settings/settings.h"
#include "system/copy.h"
#include "system/ruler.h"
#include "tidemark_inside.h"

enum {
    TIDE_SYSTEMS_MAX = 16,
    TIDE_ENDPOINT_BYTES = 512,
    TIDE_SUBJECT_BYTES = 255,
    TIDE_ACCOUNT_OPTIONS_BYTES = 2048,
};

/* What the hooks work with; all borrowed. */
struct tide_system_home {
    tide_world *world;
    tide_mem *mem;
    tide_engine *engine; /* for open() */
    tide_secrets *secrets;
    const tide_settings *settings;
    const char *archive_dir;
    const char *state_dir;   /* for open(): where the engine has its ledger */
    const char *config_path; /* config.yaml; files of systems lie beside it */
    const char *cache_dir;   /* for open() and status(): what may be deleted at any time */
    void *kept;              /* what keep() made, for status(); NULL: nothing is kept */
    const struct json_t
        *shown;            /* for status(): its object in the engine's snapshot; NULL: none runs */
    uint64_t jobs_waiting; /* for status() of a system without accounts: its jobs of this one */
    const void *options;   /* during open(): the system's own; NULL: its defaults */
};

/* How far an account is. */
struct tide_account_status {
    uint64_t tidemark_unix_ms; /* 0: none yet, or `tidemark` says it */
    char tidemark[32];         /* a tidemark that is not a time: "2026-05-01"; "": none */
    uint64_t gaps;             /* parts beyond the tidemark that are not complete */
    uint64_t left;             /* what is known to be left to fetch */
    uint64_t left_units;       /* quota units that each of them costs at least; 0: unknown */
    bool more;                 /* more may be left: it is not all listed yet */
    uint64_t stored;           /* units */
    uint64_t inexact;          /* of these: not, or not known to be, what the server has */
    uint64_t bad;              /* items that cannot be had, or not yet */
    char words[120];           /* what matters of it, instead of `stored`; "": that does */
    char note[200];            /* what the user should know; "": nothing */
    struct tide_ruler ruler;   /* the stream, or the least complete one of several */
};

struct cli;
struct cli_command;
struct cli_details;
struct cli_api;
struct cli_api_object;
struct cli_page_part;
struct cli_advice;
struct cli_example;
struct tide_metrics;

/* An account that a user adds. */
struct tide_account_request {
    const char *name;            /* of the account */
    const char *const *subjects; /* what the user named: an address, sites */
    size_t subjects_count;
    const char *endpoint; /* "": the provider's own */
    /* The system's own, which account_check() made of flags; "": none. */
    char options[TIDE_ACCOUNT_OPTIONS_BYTES];
};

/* What a sign-in is for, and the OAuth scope that it needs. */
struct tide_purpose {
    const char *name;  /* "sync" */
    const char *scope; /* separated by spaces; the wider ones include the narrower */
    const char *words; /* "to read mail, and nothing else" */
};

/* A command that users may schedule (`tidemark schedule add`). */
struct tide_action {
    const char *command; /* "mail sync" */
    const char *needs;   /* a flag without which it would ask a user: "yes"; NULL: none */
    const char *at;      /* an example: "every 15min" */
    const char *words;   /* "fetches new mail" */
    /* What the command demands of its words beyond its parser, as far as it can be known before it
     * runs; reads only.  NULL: nothing. */
    tide_status (*check)(struct cli *cli);
};

/* A mail about an alert, which an account sends to itself (E6.4). */
struct tide_self_mail {
    tide_text message;      /* RFC 5322 */
    const char *message_id; /* "<id@host>", as in the message */
    bool again;             /* it may have been sent before: looked for first */
    const struct tide_cancel *cancel;
};

/* Where a system that watches says what a user should know; `what` is what it watches, and `trouble`
 * means that it cannot, or not fully.  Any thread; borrowed until watch_end(). */
struct tide_system_teller {
    void (*tell)(void *arg, const char *what, bool trouble, const char *text);
    void *arg;
};

struct tide_system {
    const char *name; /* required: "mail"; of its commands and of `worker --kinds` */
    /* Required: "gmail"; its accounts have this one.  "": it has no accounts of its own, and works on
     * those of others; then `subject` is "", and there are no purposes. */
    const char *provider;
    /* The provider's limits; NULL: the engine knows them by its name (engine/providers.c). */
    const struct tide_quota *quota;
    /* Names of its provider's methods, by the numbers that calls have; NULL: they are shown by number. */
    tide_method_name *method_name;
    const char *subject; /* required: "EMAIL", "SITE..."; what `account add` names */
    const char *next;    /* what to run after `account add`; NULL: "NAME sync" */
    /* How its command `sync` names an account: by this flag, or with "" by its argument.  NULL: it has
     * no such command. */
    const char *sync_by;
    const struct tide_oauth_provider *oauth; /* required: how to sign in */
    const struct tide_purpose *purposes;     /* required: the first is the default; ends with a NULL
                                                name */
    const char *unit;                        /* required: "messages"; what a copy counts */
    const char *unit_json;                   /* the name of that count in --json; NULL: the same */
    const struct cli_command *commands;      /* required: ends with a NULL group (cli/cli.h) */
    const struct cli_details *details; /* of some of them; ends with a NULL verb; NULL: none */
    const struct tide_action *actions; /* ends with a NULL command; NULL: none */

    /* What programs may read through `tidemark mcp`; ends with a NULL name.  Their names begin
     * with the name of the system.  NULL: nothing. */
    const struct tide_tool *tools;

    /* What the page of `tidemark serve` shows of it: routes that run its commands (cli/serve/api.h) and
     * parts of an item that a browser loads by itself (cli/serve/page.h).  Each ends with a NULL path
     * or name; NULL: none. */
    const struct cli_api *api;
    const struct cli_api_object *objects; /* in their answers; ends with a NULL name; NULL: none */
    const struct cli_page_part *parts;
    /* A topic of live updates, with what its command "status" prints; its name is that of the system.
     * watched(): a page subscribed to it, or the last one has gone; on the server's thread, briefly.
     * NULL: none. */
    const char *topic;
    void (*watched)(void *state, bool watched);

    /* What alerts that it raises by itself mean (tide_engine_alert()), and what helps (cli/advice.h); ends
     * with a NULL condition.  NULL: it raises none. */
    const struct cli_advice *advices;

    /* Makes its tables beside the ledger, or does nothing where they exist.  One of them is
     * NAME_account, a row for each account, with its `account` (the ledger's number) and `endpoint`.
     * NULL: that one, with the `name` (account.c). */
    tide_status (*tables)(tide_rows db, tide_error *err);

    /* Whether a table of it must stay in its ledger: TIDE_EXISTS, and what to do before the ledger is
     * copied (`ledger copy`).  NULL: all can be copied. */
    tide_status (*table_stays)(const char *table, tide_error *err);

    /* Required: the system on an engine that is not started yet; `home` stays until close().  A state
     * of NULL is not closed. */
    tide_status (*open)(const struct tide_system_home *home, void **state_out, tide_error *err);
    tide_status (*close)(void *state, tide_error *err);
    /* Closes files of accounts that this process no longer leases; NULL: there are none. */
    tide_status (*rest)(void *state, tide_error *err);
    /* No job runs: begins what is left to do then, in a thread of its own, and does not wait for it;
     * *more_out: it is not done yet.  NULL: nothing. */
    tide_status (*idle)(void *state, bool *more_out, tide_error *err);
    /* Whether it runs work of another command that could not go on in another process: a command that
     * is done waits for it before it ends.  NULL: never. */
    bool (*busy)(void *state);
    /* The process stays, and its engine runs: begins to watch what may change on this machine, in
     * threads of its own, which enqueue what they find.  watch_end() ends them; it is called before the
     * engine stops, also after a failure of watch().  NULL: there is nothing to watch. */
    tide_status (*watch)(void *state, const struct tide_system_teller *teller, tide_error *err);
    void (*watch_end)(void *state);
    /* Something of `subject` changed at the provider, as it says itself: enqueues what brings the
     * account up to date, and does not wait for that.  `whole`: compares all of it.  Any thread.
     * `subject`: an account, or what
     * notified() gave.  TIDE_NOT_FOUND: there is none.  NULL: the provider tells nothing. */
    tide_status (*changed)(void *state, const char *subject, bool whole, tide_error *err);
    /* It was the provider itself that told, by a push, and changed() took it: notes that, for users who
     * ask whether pushes arrive.  Any thread.  NULL: it is not noted. */
    tide_status (*pushed)(void *state, const char *subject, tide_error *err);
    /* From now on notifications of the provider reach this process at `url`; borrowed until close().
     * NULL: the provider sends none. */
    tide_status (*hear)(void *state, const char *url, tide_error *err);
    /* Whether a notification is genuine: it names a subscription of ours with its secret.  Then
     * `subject_out` is what changed() takes.  Any thread; waits for nothing. */
    bool (*notified)(void *state, tide_text subscription, tide_text secret,
                     char subject_out[TIDE_SUBJECT_BYTES]);

    /* What a process that stays keeps between the commands it runs, to be quick: open files.  Used by
     * any number of threads at once.  NULL: nothing. */
    tide_status (*keep)(tide_world *world, tide_mem *mem, void **kept_out, tide_error *err);
    void (*keep_end)(void *kept);

    /* Checks --endpoint; NULL: tide_endpoint_check(). */
    tide_status (*endpoint_check)(const char *endpoint, tide_error *err);
    /* Checks the subjects and sets the name of the account: `named` (the flag --name; may be NULL), or
     * its own choice.  It may set options.  NULL: `named`, or the first subject. */
    tide_status (*account_check)(struct cli *cli, const char *named,
                                 struct tide_account_request *request);
    /* Tries a sign-in before it is stored, with an access token of it; NULL: not tried.  TIDE_GONE: an
     * emulator without that call.  An error with a hint is shown as it is. */
    tide_status (*account_try)(struct cli *cli, const struct tide_account_request *request,
                               tide_text bearer);
    /* Writes the rows of an account that is added, or added again, and deletes them when it is
     * removed; its archive stays.  The tables exist; the system need not be open on the engine.
     * NULL: the row in NAME_account of tables() == NULL. */
    tide_status (*account_put)(tide_rows db, uint32_t account,
                               const struct tide_account_request *request, tide_error *err);
    tide_status (*account_drop)(tide_rows db, uint32_t account, tide_error *err);
    /* Whether an account may be removed now; the ledger is open for reading.  An error refuses it and says what
     * to do.  NULL: always. */
    tide_status (*account_leave)(struct cli *cli, const char *name);
    /* An account of another system is removed: deletes rows about it.  The tables need not exist.  NULL: it
     * keeps none. */
    tide_status (*other_drop)(tide_rows db, uint32_t account, tide_error *err);
    /* Removes one of the subjects of an account; NULL: an account has only one. */
    tide_status (*subject_remove)(const struct tide_system_home *home, const char *subject,
                                  tide_error *err);
    /* Sends a mail from the account to itself; `answer` gets what the provider said.  NULL: its accounts
     * have no mail.  TIDE_AUTH: the sign-in does not allow it; the error has the command. */
    tide_status (*mail_self)(const struct tide_system_home *home, const char *name,
                             const char *endpoint, const struct tide_self_mail *mail,
                             tide_buf *answer, tide_error *err);
    /* Required: how far the account is; reads only, while an engine runs or not.  Of a system that has no
     * accounts of its own: what it does for one of another; `words` "": nothing, and it is not shown. */
    tide_status (*status)(const struct tide_system_home *home, tide_ledger *ledger,
                          const struct tide_account_row *account, struct tide_account_status *out,
                          tide_error *err);

    /* Lines that a user may type, for help (cli/cli.h); ends with a NULL line.  NULL: none. */
    const struct cli_example *examples;
    /* Visits the names it knows of a kind, such as "labels", for completion; some more than once.  Reads
     * only what is here, and fast; what cannot be read is left out.  NULL: none. */
    void (*names)(const struct tide_system_home *home, const char *kind,
                  void (*visit)(tide_text name, void *arg), void *arg);

    /* Metrics of its own, beside those that all systems have: lines made from `shown`, its object in
     * the engine's snapshot (tide_engine_snapshot_add()).  Names begin with its own; LIN1 holds for
     * labels.  NULL: none. */
    void (*metrics)(const struct json_t *shown, struct tide_metrics *metrics);

    /* The directory of the account's archive, and whether an entry of archive/ is its own.  NULL:
     * archive/NAME, for all accounts. */
    void (*archive_path)(const char *archive_dir, const char *account, char *out, size_t out_bytes);
    bool (*owns_entry)(const char *name);
    /* Visits the accounts that have an archive of their own here, added or not, and how many units one of
     * them has; without the ledger.  `visit` returns false to stop.  NULL, both: there is none for one
     * account alone that could be older than the account. */
    void (*archives)(const char *archive_dir, bool (*visit)(const char *name, void *arg),
                     void *arg);
    tide_status (*archive_stored)(const struct tide_system_home *home, const char *name,
                                  uint64_t *stored_out, tide_error *err);
    /* Copies an entry, and reads the copy back.  NULL: all its files (copy.c); those have units as
     * file_units() says, which with `check` also finds what is wrong with a file.  NULL: none. */
    tide_status (*backup)(const struct tide_system_copy *copy, struct tide_system_copied *done,
                          tide_error *err);
    tide_status (*backup_check)(const struct tide_system_copy *copy, tide_error *err);
    tide_status (*file_units)(const struct tide_system_copy *copy, const char *path, bool check,
                              uint64_t *units_out, tide_error *err);
    /* Visits the files beside config.yaml that the system works by, and that a copy of the home has: their
     * names relative to its folder and below it, without control characters, at most 200 bytes.  They
     * count as units.  `config_path` may be that of a copy, where the file itself is missing.
     * TIDE_INVALID: something in them is wrong, and files may be left out.  NULL: there are none. */
    tide_status (*settings_files)(const char *config_path, tide_mem *mem,
                                  void (*visit)(const char *name, void *arg), void *arg,
                                  tide_error *err);
};

/* Lists end with NULL. */
size_t tide_systems_count(const struct tide_system *const *systems);
/* NULL: none has this name or provider, or owns this entry. */
const struct tide_system *tide_system_named(const struct tide_system *const *systems,
                                            tide_text name);
const struct tide_system *tide_system_of_provider(const struct tide_system *const *systems,
                                                  const char *provider);
const struct tide_system *tide_system_of_entry(const struct tide_system *const *systems,
                                               const char *entry);
void tide_system_archive_path(const struct tide_system *system, const char *archive_dir,
                              const char *account, char *out, size_t out_bytes);

/* ---- accounts (account.c) ---- */

tide_status tide_system_tables(const struct tide_system *system, tide_rows db, tide_error *err);
/* Adds the account: to the ledger, its archive to this home (engine/accounts/archive_id.h), and its
 * rows.  A known one gets the new endpoint.  TIDE_INVALID: a shared ledger places it elsewhere. */
tide_status tide_system_account_add(const struct tide_system *system,
                                    const struct tide_system_home *home,
                                    const struct tide_account_request *request, tide_error *err);
/* Its jobs must have ended.  The others of `systems` forget it as well. */
tide_status tide_system_account_remove(const struct tide_system *system,
                                       const struct tide_system *const *systems,
                                       tide_engine *engine, const char *name, tide_error *err);
/* The endpoint of an account.  TIDE_NOT_FOUND: it was not added, or removed. */
tide_status tide_system_account_look(const struct tide_system *system, tide_ledger *ledger,
                                     const char *name, char endpoint_out[TIDE_ENDPOINT_BYTES],
                                     tide_error *err);
/* Its accounts by name; none where it was never used. */
tide_status tide_system_accounts(const struct tide_system *system, tide_ledger *ledger,
                                 void (*visit)(const char *name, void *arg), void *arg,
                                 tide_error *err);
/* The row that NULL means in account_put(), for those that write more. */
tide_status tide_system_row_put(const char *system, tide_rows db, uint32_t account,
                                const struct tide_account_request *request, tide_error *err);

/* ---- copies (copy.c) ---- */

/* Adds to *done, even if it fails. */
tide_status tide_system_backup(const struct tide_system *system,
                               const struct tide_system_copy *copy, struct tide_system_copied *done,
                               tide_error *err);
tide_status tide_system_backup_check(const struct tide_system *system,
                                     const struct tide_system_copy *copy, tide_error *err);
/* The name of an account's sign-in among the secrets. */
void tide_system_secret_name(const struct tide_system *system, const char *account,
                             char out[TIDE_SECRET_NAME_BYTES_MAX]);
/* Whether the archive `archive_id` of the account is in this directory. */
bool tide_system_is_here(const struct tide_system *system, tide_world *world,
                         const char *archive_dir, const char *account, const char *archive_id);
void tide_systems_check(const struct tide_system *const *systems);

#endif
