/* cli.h - what every command of the program `tidemark` shares.
 *
 * A command is a row of a table (commands.c): its words, its arguments, its
 * flags, one sentence and a function.  --help, the bash completion and the check
 * of the man page all come from that table, so that they cannot disagree with
 * what is parsed.
 *
 * A command writes to `out` (text) or fills `json`; main prints one of the two at
 * the end, active alerts first (E6.4).  Reading commands open the ledger read-only,
 * also while other processes run.  Changing commands send a request to the running
 * engine and write to the ledger themselves only when none runs.  On a shared ledger
 * (--ledger) they always write themselves, in a transaction of their own with a hint
 * that reaches every process.
 *
 * Invariants:
 *   CLI1  standard output is empty or complete: a command that fails prints no partial table.
 *   CLI2  with --json, standard output is one JSON object with a field "alerts", also when the
 *         command fails (then with a field "error").  Progress is on standard error, also with
 *         --json: there as events, one object per line.
 *   CLI3  every error says what happened, to what, and what to do.
 */
#ifndef TIDE_CLI_CLI_H
#define TIDE_CLI_CLI_H

#include "base/buf.h"
#include "base/json.h"
#include "engine/control/control.h"
#include "ledger/ledger.h"
#include "settings/settings.h"
#include "system/system.h"
#include "world/world.h"

#include <stdio.h>

enum {
    CLI_ARGUMENTS_MAX = 512,
    CLI_FLAGS_MAX = 16,
    CLI_PATH_BYTES = 4096,
    CLI_OUT_BYTES_MAX = 256 << 20,
    CLI_COLUMNS_MAX = 12,
    CLI_COMMANDS_MAX = 256, /* of all systems */
    CLI_LIST_MAX = 100000,  /* rows of one list */
};

/* The exit codes of the manual. */
enum {
    CLI_EXIT_DONE = 0,
    CLI_EXIT_FAILED = 1,
    CLI_EXIT_USAGE = 2,
    CLI_EXIT_BAD_ITEMS = 3,
    CLI_EXIT_SIGN_IN = 4,
    CLI_EXIT_INTERRUPTED = 5,
};

struct cli;

struct cli_flag {
    const char *name; /* without dashes */
    /* "N"; "MODE:inbox trash": these words are offered by the completion; "FILE" and "DIR" offer
     * files, ACCOUNT and EMAIL accounts; ":@systems" and ":@purposes" offer what the list of systems
     * has, ":@labels" and other such words what a system knows (system.h, names).  NULL: a switch. */
    const char *argument;
    const char *meaning;
};

struct cli_command {
    const char *group; /* "jobs" */
    const char *verb;  /* "list"; NULL: the group is the command */
    /* "[ID]", for display; DIR, FILE and PATH offer files.  Where QUERY stands, a word with one dash
     * in front is an argument: a negation. */
    const char *arguments;
    unsigned arguments_min, arguments_max;
    const struct cli_flag *flags; /* ends with a NULL name; may be NULL */
    const char *meaning;          /* one sentence */
    tide_status (*run)(struct cli *cli);
};

/* More about a command than its sentence, for --help: what its arguments mean. */
struct cli_details {
    const char *verb;
    const char *text; /* lines, each with its newline */
};

/* A line that a user may type, for help: of the command in `command` ("jobs list"), or with "" one of
 * the first steps of a new user.  Tables end with a NULL line. */
struct cli_example {
    const char *command;
    const char *line;  /* behind "tidemark" */
    const char *words; /* what it does */
};

/* Groups of commands that help lists together; NULL groups: those of the systems, one by one. */
struct cli_section {
    const char *title;
    const char *groups; /* separated by spaces */
};

/* The commands that belong to no system; each system has a table of its own (system.h), which help
 * lists between these two.  Tables end with a NULL name or group. */
extern const struct cli_command cli_commands_first[];
extern const struct cli_command cli_commands[];
extern const struct cli_flag cli_global_flags[];
extern const struct cli_command cli_command_bare; /* `tidemark` without a command */
extern const struct cli_section cli_sections[];   /* ends with a NULL title */
extern const struct cli_example cli_examples[];
/* The systems of this program (E12); ends with NULL.  commands/systems.c is the only file that
 * names them. */
extern const struct tide_system *const cli_systems[];

struct cli_flag_value {
    const struct cli_flag *flag;
    const char *value; /* "" for a switch */
};

struct cli {
    tide_mem *mem;
    const struct tide_system *const *systems; /* ends with NULL */
    tide_world *world;
    const struct cli_command *commands[CLI_COMMANDS_MAX + 1]; /* of all tables; ends with NULL */
    const char *group; /* the first word, also when no command was found; NULL: none */
    const struct cli_command *command;
    const char *arguments[CLI_ARGUMENTS_MAX];
    unsigned arguments_count;
    struct cli_flag_value values[CLI_FLAGS_MAX];
    unsigned values_count;

    const char *home;   /* --home or TIDEMARK_HOME; NULL: XDG */
    const char *shared; /* --ledger, later the chosen one: postgres://...; NULL: state.db */
    const char *sets[TIDE_SETTINGS_FLAGS_MAX];
    unsigned sets_count;
    bool want_json, verbose, quiet, want_help, want_version;
    bool paged;        /* `out` may be longer than a screen: the user's pager shows it */
    bool marked;       /* in `out`, \x01 begins bold text and \x02 ends it */
    bool exact_output; /* `out` is a message byte for byte: the alert line goes to standard error */

    char state_dir[CLI_PATH_BYTES];
    char data_dir[CLI_PATH_BYTES];  /* what users want to keep: archives */
    char cache_dir[CLI_PATH_BYTES]; /* what may be deleted at any time */
    char ledger_path[CLI_PATH_BYTES];
    char config_path[CLI_PATH_BYTES];
    uint64_t now_unix_ms; /* read once */
    uint64_t
        asked_unix_ms; /* when the user asked: now, or before a crash interrupted this request */
    tide_text
        input; /* of a command inside a process, instead of standard input; .data NULL: that */

    bool ledger_chosen;  /* `shared` is final */
    bool ledger_reached; /* the shared one answered */
    tide_ledger *ledger; /* read-only, or the one being written to */
    tide_file_lock *lock;
    tide_settings *settings;

    tide_buf out;
    tide_json json;
    struct cli_table *table;
    tide_error err;
    char hint[400]; /* what to do about it */
    int exit_code;  /* of a command that succeeded */
    void **kept; /* what a process that stays keeps for each of `systems`; NULL: it does not stay */
    tide_engine *inside; /* of this process, for a command inside it; NULL: by the control socket */
    const tide_cancel *cancel; /* of a command inside another process (run/call.h); NULL: signals */
    uint64_t progress_ms;      /* when the progress line was last written; 0: there is none */
    struct cli_log_file *log_file;
    struct tide_system_home account_home; /* of the engine, for run/account_change.h */
    void (*schedules_changed)(void *arg); /* by a request to this engine; NULL: no matter */
    void *schedules_changed_arg;
};

/* ---- the whole program (program.c) ---- */

/* Runs the command line with these systems; returns the exit code. */
int cli_program(const struct tide_system *const *systems, int argc, char **argv);

/* ---- what a process that stays keeps (kept.c) ---- */

tide_status cli_kept_begin(struct cli *cli);
void cli_kept_end(struct cli *cli);
/* What the system keeps; NULL: nothing. */
void *cli_kept(const struct cli *cli, const struct tide_system *system);

/* ---- arguments (args.c) ---- */

/* Fills `cli` from the command line.  TIDE_INVALID: usage. */
tide_status cli_args_parse(struct cli *cli, int argc, char **argv);
/* The value of a flag of this command; NULL when it was not given. */
const char *cli_flag(const struct cli *cli, const char *name);
/* A state from a flag; NULL is fine. */
tide_status cli_state_check(struct cli *cli, const char *state);
/* A number from an argument or flag; `what` names it in the error: "--limit", "the id". */
tide_status cli_number(struct cli *cli, const char *text, const char *what, uint64_t *number_out);
const struct cli_flag *cli_flag_find(const struct cli_flag *flags, tide_text name); /* NULL */
/* Bytes of the name of a flag's argument, which it has: without the words that are offered for it. */
int cli_argument_bytes(const struct cli_flag *flag);
/* Prints the help of a command, of a group (no verb) or of the program into cli->out (help/). */
void cli_help(struct cli *cli);

/* ---- doing (cli.c) ---- */

tide_status cli_start(struct cli *cli);
/* Finds the directories of cli->home, or of the environment. */
tide_status cli_dirs(struct cli *cli);
void cli_end(struct cli *cli);
void cli_release(struct cli *cli); /* all but the world, which may be another command's */
/* Sets the error and a hint on what to do about it; returns `status`. */
tide_status cli_fail(struct cli *cli, tide_status status, const char *hint, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The same for a wrong command line: exit code 2. */
tide_status cli_wrong(struct cli *cli, const char *hint, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Adds a hint to an error that came from below, unless it has one. */
tide_status cli_hint(struct cli *cli, tide_status status, const char *hint);
tide_status cli_settings(struct cli *cli); /* loads them once */
/* Writes a setting to the configuration file; a running engine notices it (commands/config.c).
 * Call cli_settings() afterwards to see it, if it was not called before. */
tide_status cli_config_write(struct cli *cli, const char *name, const char *value);
/* Makes the directory of that file, with its parents, where it is missing. */
tide_status cli_config_dir_make(struct cli *cli);

tide_status cli_ledger_read(struct cli *cli);
/* Appends what the command is given on standard input.  TIDE_FULL: more than that. */
tide_status cli_input(struct cli *cli, size_t bytes_max, tide_buf *out);

/* Sends a request to the engine of this directory.  TIDE_OK: *answer_out is its answer, owned.
 * TIDE_NOT_FOUND with *runs_out false: no engine runs.  Takes the request. */
tide_status cli_engine_ask(struct cli *cli, tide_json *request, bool *runs_out,
                           json_t **answer_out);
/* The process of the engine of this directory; 0: none answers. */
uint64_t cli_engine_pid(struct cli *cli);
/* Whether an engine ended instead of answering; what was asked may have been done. */
bool cli_engine_ended(tide_status rc);
/* The same for a change that a command makes itself on a shared ledger: then no engine gets the
 * request, and *runs_out is false.  Waits for an engine that is starting. */
tide_status cli_change_ask(struct cli *cli, tide_json *request, bool *runs_out,
                           json_t **answer_out);
/* Opens the ledger for writing; no engine can start meanwhile.  A shared ledger has no such lock
 * and needs none. */
tide_status cli_ledger_write(struct cli *cli);
void cli_ledger_close(struct cli *cli);
/* Locks the state directory, created if missing: no engine can start meanwhile.
 * TIDE_BUSY: one runs. */
tide_status cli_lock(struct cli *cli);

/* ---- a ledger that many machines share (shared.c) ---- */

/* Determines which ledger this command uses: --ledger, else the setting ledger.url, else
 * state.db.  Loads the settings. */
tide_status cli_ledger_choose(struct cli *cli);
/* A URL with a password on a command line is refused: every user of the machine can read it. */
tide_status cli_url_refuse_password(struct cli *cli, const char *url);
/* For commands that need a shared ledger. */
tide_status cli_shared_only(struct cli *cli);
/* Opens the shared ledger; `upgrade` creates or upgrades its tables, which otherwise must exist. */
tide_status cli_shared_open(struct cli *cli, bool read_only, bool upgrade);
/* Creates the tables of the systems that are missing; the ledger is open. */
tide_status cli_systems_tables(struct cli *cli);
/* Adds a hint on what the user can do about `rc`. */
tide_status cli_shared_hint(struct cli *cli, tide_status rc);
/* Its URL without a password, for messages. */
const char *cli_shared_name(const struct cli *cli);
/* Sends the other processes a hint, with this transaction; does nothing on state.db. */
tide_status cli_tell(struct cli *cli, tide_tx *tx, tide_hint hint, uint32_t account);

/* ---- long commands (busy.c) ---- */

/* From now on the first SIGINT or SIGTERM cancels the token; a second one ends the program at once.
 * What is stored stays stored in both cases. */
const tide_cancel *cli_interruptible(struct cli *cli);
bool cli_interrupted(const struct cli *cli);
/* The setting `disk.free_min`; the settings are loaded. */
uint64_t cli_free_min(const struct cli *cli);
/* A line on a terminal that the next one overwrites, at most five times a second; nothing
 * without a terminal or with --quiet.  NULL clears it. */
void cli_progress(struct cli *cli, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- showing (show.c) ---- */

void cli_print(struct cli *cli, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A table: headings first, then cells row by row, then the end, which prints. */
void cli_table_begin(struct cli *cli, const char *const *headings, unsigned columns);
void cli_cell(struct cli *cli, const char *format, ...) __attribute__((format(printf, 2, 3)));
void cli_cell_text(struct cli *cli, tide_text text);
void cli_table_end(struct cli *cli, const char *when_empty);
/* How many columns text takes on a terminal; invalid bytes take one each (width.c). */
unsigned cli_text_width(tide_text text);
unsigned cli_char_width(tide_text text, size_t *bytes_out); /* of its first character */
/* Its beginning that takes at most so many columns. */
tide_text cli_text_fit(tide_text text, unsigned columns);
/* The width to which output is fitted: COLUMNS, or the terminal's; 0: it is not fitted. */
unsigned cli_columns(void);
/* "2026-05-04 03:02:01" in the user's time zone (TZ), "-" for 0.  JSON has UTC. */
const char *cli_time(uint64_t unix_ms, char text[32]);
/* Prints active alerts and the text so far, for commands that show it more than once. */
void cli_show(struct cli *cli, FILE *to);
/* Puts active alerts into the first line or the field "alerts"; then prints
 * everything.  Returns the exit code. */
int cli_finish(struct cli *cli, tide_status rc);
/* The first half of it: the exit code, and the object of --json with the error and the alerts. */
int cli_conclude(struct cli *cli, tide_status *rc);
void cli_json_conclude(struct cli *cli, tide_status rc);
void cli_json_alerts(struct cli *cli, tide_json *array);
int cli_exit_code(tide_status status);

/* ---- commands ---- */

/* A command for the table of any system: enqueues a job NAME.sync for each account that is named, or
 * for all, and waits until no job of the system is left (run/work.h). */
tide_status cli_sync(struct cli *cli);
tide_status cli_log(struct cli *cli);
/* Cancels jobs and waits until those that run have ended. */
tide_status cli_jobs_stop(struct cli *cli, const struct tide_control_filter *named);
/* The same, and accepts them all: no command reports them again. */
tide_status cli_jobs_end(struct cli *cli, const struct tide_control_filter *named);
/* The same for the jobs of an account and a kind. */
tide_status cli_jobs_end_of(struct cli *cli, const char *account, const char *kind);
tide_status cli_jobs_list(struct cli *cli);
tide_status cli_jobs_show(struct cli *cli);
tide_status cli_jobs_explain(struct cli *cli);
tide_status cli_jobs_retry(struct cli *cli);
tide_status cli_jobs_cancel(struct cli *cli);
tide_status cli_jobs_accept(struct cli *cli);
tide_status cli_jobs_pause(struct cli *cli);
tide_status cli_jobs_resume(struct cli *cli);
tide_status cli_jobs_stats(struct cli *cli);
tide_status cli_jobs_purge(struct cli *cli);
tide_status cli_jobs_doctor(struct cli *cli);
tide_status cli_alerts(struct cli *cli);
tide_status cli_alerts_setup(struct cli *cli);
tide_status cli_alerts_test(struct cli *cli);
tide_status cli_status(struct cli *cli);
tide_status cli_series(struct cli *cli);
tide_status cli_stream_list(struct cli *cli);
tide_status cli_stream_cycles(struct cli *cli);
tide_status cli_bad_list(struct cli *cli);
tide_status cli_bad_explain(struct cli *cli);
tide_status cli_bad_retry(struct cli *cli);
tide_status cli_bad_accept(struct cli *cli);
tide_status cli_account_list(struct cli *cli);
tide_status cli_account_halt(struct cli *cli);
tide_status cli_account_resume(struct cli *cli);
tide_status cli_account_sync(struct cli *cli);
tide_status cli_config_list(struct cli *cli);
tide_status cli_config_get(struct cli *cli);
tide_status cli_config_set(struct cli *cli);
tide_status cli_config_unset(struct cli *cli);
tide_status cli_config_edit(struct cli *cli);
tide_status cli_config_path(struct cli *cli);
tide_status cli_config_check(struct cli *cli);
tide_status cli_backup(struct cli *cli);
tide_status cli_restore(struct cli *cli);
tide_status cli_ledger_verify(struct cli *cli);
tide_status cli_ledger_migrate(struct cli *cli);
tide_status cli_ledger_members(struct cli *cli);
tide_status cli_worker(struct cli *cli);
tide_status cli_serve(struct cli *cli);
tide_status cli_metrics(struct cli *cli);
tide_status cli_schedule_list(struct cli *cli);
tide_status cli_schedule_add(struct cli *cli);
tide_status cli_schedule_remove(struct cli *cli);
tide_status cli_schedule_run(struct cli *cli);
tide_status cli_open(struct cli *cli);
tide_status cli_token_list(struct cli *cli);
tide_status cli_token_add(struct cli *cli);
tide_status cli_token_revoke(struct cli *cli);
tide_status cli_ledger_copy(struct cli *cli);
tide_status cli_mcp(struct cli *cli);
tide_status cli_completion(struct cli *cli);
tide_status cli_standing(struct cli *cli);
tide_status cli_account_add(struct cli *cli);
tide_status cli_account_remove(struct cli *cli);

#endif
