/* commands.c - the table of the commands that belong to no system, and of their flags.
 *
 * tests/e2e/cli_test.sh compares its --help with the man page and the completion. */
#include "cli/cli.h"

const struct cli_flag cli_global_flags[] = {
    {"home", "DIR", "keep settings and state in DIR instead of the XDG directories"},
    {"ledger", "URL", "use the shared ledger postgres://HOST/DATABASE"},
    {"json", NULL, "print one JSON object instead of text"},
    {"set", "NAME=VALUE", "override a setting for this run; may be repeated"},
    {"verbose", NULL, "print more detail"},
    {"quiet", NULL, "print only errors and the result"},
    {"help", NULL, "show this help; also works after a command"},
    {"version", NULL, "show the version"},
    {NULL, NULL, NULL},
};

static const struct cli_flag jobs_list_flags[] = {
    {"state", "STATE:pending running done failed canceled",
     "list only jobs that are pending, running, done, failed or canceled"},
    {"kind", "KIND", "list only jobs of this kind"},
    {"account", "ACCOUNT", "list only jobs of this account"},
    {"cycle", "N", "list only jobs of this cycle"},
    {"limit", "N", "list at most N jobs (default 100)"},
    {"after", "ID", "continue after this job, with older ones (the next page)"},
    {NULL, NULL, NULL},
};

static const struct cli_flag jobs_change_flags[] = {
    {"state", "STATE:pending running done failed canceled", "select jobs in this state"},
    {"kind", "KIND", "select jobs of this kind"},
    {"account", "ACCOUNT", "select jobs of this account"},
    {"cycle", "N", "select jobs of this cycle"},
    {"item", "ITEM", "select jobs that work on this item: a message id or a path"},
    {"all", NULL, "select all jobs, when there is no ID and no other flag"},
    {"expect", "N", "change nothing unless N jobs match: the \"total\" of `jobs list --json`"},
    {NULL, NULL, NULL},
};

static const struct cli_flag jobs_pause_flags[] = {
    {"kind", "KIND", "select jobs of this kind"},
    {"account", "ACCOUNT", "select jobs of this account"},
    {NULL, NULL, NULL},
};

static const struct cli_flag jobs_purge_flags[] = {
    {"older-than", "TIME",
     "remove jobs finished longer ago than this, such as 7d (default: purge.after)"},
    {NULL, NULL, NULL},
};

static const struct cli_flag series_flags[] = {
    {"account", "ACCOUNT", "show only this account"},
    {"span", "SPAN:hour day",
     "show the last hour in steps of 10 s, or the last day in steps of 5 min"},
    {NULL, NULL, NULL},
};

static const struct cli_flag stream_list_flags[] = {
    {"account", "ACCOUNT", "list only streams of this account"},
    {NULL, NULL, NULL},
};

static const struct cli_flag bad_list_flags[] = {
    {"kind", "KIND", "select only items of this kind"},
    {"account", "ACCOUNT", "select only items of this account"},
    {"state", "STATE:bad gone owed accepted retrying",
     "select only items that are bad, gone, owed, accepted or retrying"},
    {"limit", "N", "list at most N items (default: all)"},
    {"after", "CURSOR", "continue after \"next\" of --json (the next page)"},
    {NULL, NULL, NULL},
};

static const struct cli_flag bad_explain_flags[] = {
    {"kind", "KIND", "select only items of this kind"},
    {"account", "ACCOUNT", "select only items of this account"},
    {"state", "STATE:bad gone owed accepted retrying",
     "select only items that are bad, gone, owed, accepted or retrying"},
    {NULL, NULL, NULL},
};

static const struct cli_flag bad_change_flags[] = {
    {"kind", "KIND", "select only items of this kind"},
    {"account", "ACCOUNT", "select only items of this account"},
    {"state", "STATE:bad gone owed accepted retrying",
     "select only items that are bad, gone, owed, accepted or retrying"},
    {"all", NULL, "select all items, when there is no ITEM and no other flag"},
    {"expect", "N", "change nothing unless N items match: the \"total\" of `bad list --json`"},
    {NULL, NULL, NULL},
};

static const struct cli_flag account_halt_flags[] = {
    {"reason", "TEXT", "record the reason; shown until the account is resumed"},
    {NULL, NULL, NULL},
};

static const struct cli_flag account_add_flags[] = {
    {"client", "FILE",
     "use your own OAuth client: the JSON file from the provider's console; it is remembered"},
    {"guide", NULL,
     "show how to create an OAuth client, step by step, and ask for it; without --client the "
     "default on a terminal until one is known"},
    {"headless", NULL,
     "print the link and read the answer from the terminal; for machines without a browser"},
    {"service-account", "FILE", "use the key of a service account with domain-wide delegation"},
    {"endpoint", "URL", "use another server than the provider's, such as an emulator"},
    {"bearer", "TOKEN", "use a fixed token (emulators only)"},
    {"for", "PURPOSE:@purposes", "request the permission for this; see above"},
    {"key-file", "FILE", "read the key from a file that only you can read (chat; default: ask)"},
    {"no-key", NULL, "the server wants no key, such as one on this machine (chat)"},
    {"model", "NAME", "use this model (chat)"},
    {"fast-model", "NAME", "use this model to classify mail (chat; default: --model)"},
    {"dialect", "NAME:openai anthropic", "how the server is spoken to (chat; default: openai)"},
    {"with", "LIST",
     "what the server knows, as stream=no,limit=max_tokens,json=off (chat; docs/chat.md)"},
    {"name", "NAME", "name the account, if its provider allows it (default: the provider)"},
    {NULL, NULL, NULL},
};

static const struct cli_flag restore_flags[] = {
    {"replace", NULL, "move the existing home aside, as NAME.before-N; nothing is deleted"},
    {NULL, NULL, NULL},
};

static const struct cli_flag ledger_copy_flags[] = {
    {"verify", NULL, "compare the two ledgers row by row; copy nothing"},
    {"dry-run", NULL, "count the rows to copy and find those that TO cannot hold; copy nothing"},
    {"restart", NULL, "discard what an unfinished copy left in TO, and start over"},
    {NULL, NULL, NULL},
};

static const struct cli_flag config_list_flags[] = {
    {"changed", NULL, "list only settings that are not at their default"},
    {"account", "ACCOUNT", "list what counts for this account, of what can be set for it alone"},
    {NULL, NULL, NULL},
};

static const struct cli_flag config_one_flags[] = {
    {"account", "ACCOUNT", "for this account alone; the same as accounts.ACCOUNT.SETTING"},
    {NULL, NULL, NULL},
};

static const struct cli_flag worker_flags[] = {
    {"kinds", "LIST:@systems", "run only jobs of these systems (default: all)"},
    {"accounts", "LIST",
     "run only jobs of these accounts (default: all whose archive is in this home)"},
    {"workers", "N", "use N threads to run jobs (default: the setting workers.count)"},
    {"once", NULL, "exit when no job is left that can run"},
    {NULL, NULL, NULL},
};

static const struct cli_flag serve_flags[] = {
    {"listen", "127.0.0.1:PORT",
     "serve the page at this port; 0: any free one (default: the setting serve.listen)"},
    {NULL, NULL, NULL},
};

static const struct cli_flag open_flags[] = {
    {"address", NULL, "only print the address of the page"},
    {NULL, NULL, NULL},
};

static const struct cli_flag schedule_add_flags[] = {
    {"at", "TIME",
     "run it at: \"every 15min\", \"daily 03:30\", \"weekly sun 04:00\", \"30 3 * * 1-5\""},
    {"name", "NAME", "name the schedule (default: the words of the command)"},
    {"jitter", "DURATION",
     "delay each run by a random time of at most this, such as 10m (default: 0)"},
    {NULL, NULL, NULL},
};

static const struct cli_flag schedule_run_flags[] = {
    {"no-wait", NULL, "ask `tidemark serve` to run it, and do not wait for the end"},
    {NULL, NULL, NULL},
};

static const struct cli_flag token_add_flags[] = {
    {"scope", "SCOPE:metrics look work",
     "allow metrics, look (everything but mail) or work (actions, too)"},
    {"days", "N", "let it expire after N days (default: never)"},
    {NULL, NULL, NULL},
};

static const struct cli_flag log_flags[] = {
    {"run", "ID", "show only lines of this run; the first digits are enough"},
    {"account", "ACCOUNT", "show only lines about this account"},
    {"level", "LEVEL:debug info warn error",
     "show only lines of this level or above: debug, info, warn or error"},
    {"limit", "N", "show the last N lines (default 100)"},
    {"after", "PLACE", "show only lines after \"next\" of --json"},
    {"follow", NULL, "then print new lines as they are written, until Ctrl-C"},
    {NULL, NULL, NULL},
};

static const struct cli_flag status_flags[] = {
    {"watch", NULL, "look again every second, until Ctrl-C"},
    {NULL, NULL, NULL},
};

static const struct cli_flag alerts_setup_flags[] = {
    {"to", "ADDRESS", "send it to this address"},
    {"server", "URL", "through this mail server: smtp://HOST:587 (STARTTLS) or smtps://HOST:465"},
    {"from", "ADDRESS", "with this sender (default: the address it is sent to)"},
    {"user", "NAME", "sign in to the server as NAME; the password is asked for"},
    {"password-file", "FILE", "read the password from FILE, or with - from standard input"},
    {"ca-file", "FILE", "check the server's certificate against those in FILE"},
    {"account", "ACCOUNT", "instead of a server: let ACCOUNT send it to itself"},
    {"off", NULL, "send no more mail, and remove the stored password"},
    {NULL, NULL, NULL},
};

static const struct cli_flag ledger_migrate_flags[] = {
    {"role", "NAME", "grant this role the rights of a worker, and no others"},
    {NULL, NULL, NULL},
};

static const struct cli_flag completion_flags[] = {
    {"line", NULL, "print what completes the last of the words after --; for these scripts"},
    {NULL, NULL, NULL},
};

const struct cli_command cli_command_bare = {
    "", NULL, "", 0, 0, NULL, "Show where things stand, and the next step.", cli_standing};

const struct cli_section cli_sections[] = {
    {"Accounts", "account status"},
    {"Systems", NULL},
    {"By itself", "serve schedule open alerts log"},
    {"Copies and settings", "backup restore config completion"},
    {"For programs", "token metrics mcp"},
    {"Engine", "bad jobs stream series ledger worker"},
    {NULL, NULL},
};

const struct cli_command cli_commands_first[] = {
    {"account", "add", "PROVIDER NAME...", 2, CLI_ARGUMENTS_MAX, account_add_flags,
     "Sign in to an account and store the sign-in.", cli_account_add},
    {"account", "list", "", 0, 0, NULL,
     "List accounts: signed in, endpoint, paused or halted, last answer.", cli_account_list},
    {"account", "remove", "ACCOUNT", 1, 1, NULL,
     "Revoke the sign-in of an account and remove the account; its archive stays.",
     cli_account_remove},
    {"account", "halt", "ACCOUNT", 1, 1, account_halt_flags,
     "Stop all work of an account within seconds; nothing in flight is lost.", cli_account_halt},
    {"account", "resume", "ACCOUNT", 1, 1, NULL, "Resume a halted account.", cli_account_resume},
    {"account", "sync", "ACCOUNT", 1, 1, NULL,
     "Ask the running process, such as `tidemark serve`, to sync an account now.",
     cli_account_sync},
    {"status", NULL, "", 0, 0, status_flags,
     "Show all accounts, one line each: tidemark, gaps, stored, quota, time left, what runs and "
     "why.",
     cli_status},
    {NULL, NULL, NULL, 0, 0, NULL, NULL, NULL},
};

const struct cli_command cli_commands[] = {
    {"backup", NULL, "DIR|FILE.db", 1, 1, NULL,
     "Copy state, archives and settings to DIR, or only the ledger to a file; safe while jobs run.",
     cli_backup},
    {"restore", NULL, "DIR", 1, 1, restore_flags,
     "Restore a home from a copy made by `backup DIR`; sign in again afterwards.", cli_restore},
    {"log", NULL, "", 0, 0, log_flags, "Show the log of this home: what its runs did.", cli_log},
    {"alerts", NULL, "", 0, 0, NULL, "List active alerts.", cli_alerts},
    {"alerts", "setup", "", 0, 0, alerts_setup_flags,
     "Set up mail about alerts: through a mail server, or from an account to itself.",
     cli_alerts_setup},
    {"alerts", "test", "", 0, 0, NULL,
     "Send a test mail as alerts are sent, and show what the server answered.", cli_alerts_test},
    {"series", NULL, "CHART", 1, 1, series_flags,
     "Show the last hour or day: rate (items stored), quota (units used) or held (items so far).",
     cli_series},
    {"stream", "list", "", 0, 0, stream_list_flags,
     "List streams: how far each is, and how many of its cycles are open.", cli_stream_list},
    {"stream", "cycles", "ID", 1, 1, NULL,
     "List the unfinished cycles of a stream: what keeps its mark from moving.", cli_stream_cycles},
    {"bad", "list", "", 0, 0, bad_list_flags,
     "List bad items: those that fail while others succeed.", cli_bad_list},
    {"bad", "explain", "ITEM", 1, 1, bad_explain_flags,
     "Explain why an item is bad and what can be done.", cli_bad_explain},
    {"bad", "retry", "[ITEM...]", 0, CLI_ARGUMENTS_MAX, bad_change_flags, "Retry bad items.",
     cli_bad_retry},
    {"bad", "accept", "[ITEM...]", 0, CLI_ARGUMENTS_MAX, bad_change_flags,
     "Accept bad items, so that their cycle can finish without them.", cli_bad_accept},
    {"jobs", "list", "", 0, 0, jobs_list_flags, "List jobs, newest first.", cli_jobs_list},
    {"jobs", "show", "ID", 1, 1, NULL, "Show all details of a job.", cli_jobs_show},
    {"jobs", "explain", "ID", 1, 1, NULL, "Explain why a job is not running and what would help.",
     cli_jobs_explain},
    {"jobs", "retry", "[ID...]", 0, CLI_ARGUMENTS_MAX, jobs_change_flags,
     "Retry failed and canceled jobs; start delayed ones at once.", cli_jobs_retry},
    {"jobs", "cancel", "[ID...]", 0, CLI_ARGUMENTS_MAX, jobs_change_flags,
     "Cancel waiting and running jobs.", cli_jobs_cancel},
    {"jobs", "accept", "[ID...]", 0, CLI_ARGUMENTS_MAX, jobs_change_flags,
     "Accept failed jobs, so that their cycle can finish without them.", cli_jobs_accept},
    {"jobs", "pause", "", 0, 0, jobs_pause_flags,
     "Pause a kind or an account: start no more of its jobs.", cli_jobs_pause},
    {"jobs", "resume", "", 0, 0, jobs_pause_flags, "Resume a paused kind or account.",
     cli_jobs_resume},
    {"jobs", "stats", "", 0, 0, NULL, "Count jobs by account, kind and state.", cli_jobs_stats},
    {"jobs", "purge", "", 0, 0, jobs_purge_flags, "Remove old finished jobs from the ledger.",
     cli_jobs_purge},
    {"jobs", "doctor", "", 0, 0, NULL, "Diagnose the ledger: bloat, dead members, stalled queues.",
     cli_jobs_doctor},
    {"config", "list", "", 0, 0, config_list_flags, "List settings with value and origin.",
     cli_config_list},
    {"config", "get", "SETTING", 1, 1, config_one_flags, "Show one setting.", cli_config_get},
    {"config", "set", "SETTING VALUE", 2, 2, config_one_flags,
     "Write a setting to the configuration file, keeping every other line.", cli_config_set},
    {"config", "unset", "SETTING", 1, 1, config_one_flags,
     "Remove a setting from the configuration file; its default applies again.", cli_config_unset},
    {"config", "edit", "", 0, 0, NULL,
     "Edit the configuration file in $VISUAL or $EDITOR; a wrong file is refused.",
     cli_config_edit},
    {"config", "path", "", 0, 0, NULL, "Print where the configuration file is.", cli_config_path},
    {"config", "check", "", 0, 0, NULL, "Check the settings in file, environment and flags.",
     cli_config_check},
    {"serve", NULL, "", 0, 0, serve_flags,
     "Run all jobs of this home until stopped, with a local page; other commands hand over to it.",
     cli_serve},
    {"schedule", "list", "", 0, 0, NULL,
     "List what `tidemark serve` runs by itself: when next, how the last run ended.",
     cli_schedule_list},
    {"schedule", "add", "[--] COMMAND...", 1, CLI_ARGUMENTS_MAX, schedule_add_flags,
     "Schedule a command; `schedule list --verbose` shows which commands can be scheduled.",
     cli_schedule_add},
    {"schedule", "remove", "NAME", 1, 1, NULL, "Remove a schedule.", cli_schedule_remove},
    {"schedule", "run", "NAME", 1, 1, schedule_run_flags, "Run the command of a schedule now.",
     cli_schedule_run},
    {"open", NULL, "", 0, 0, open_flags,
     "Pair a browser with the page of `tidemark serve`, by comparing a code.", cli_open},
    {"token", "list", "", 0, 0, NULL,
     "List the browsers and programs that may use the page and its API.", cli_token_list},
    {"token", "add", "NAME", 1, 1, token_add_flags,
     "Make a token for a program that uses the API; it is printed once.", cli_token_add},
    {"token", "revoke", "ID", 1, 1, NULL, "Revoke a token or a browser, at once.",
     cli_token_revoke},
    {"metrics", NULL, "", 0, 0, NULL,
     "Print the metrics of the running process, as Prometheus text.", cli_metrics},
    {"worker", NULL, "", 0, 0, worker_flags,
     "Run jobs of a shared ledger until stopped, as one member of a fleet.", cli_worker},
    {"mcp", NULL, "", 0, 0, NULL,
     "Let an assistant read mail and status, by the Model Context Protocol (MCP) on stdin and "
     "stdout.",
     cli_mcp},
    {"ledger", "check", "", 0, 0, NULL, "Check the ledger for damage and inconsistent rows.",
     cli_ledger_verify},
    {"ledger", "migrate", "", 0, 0, ledger_migrate_flags,
     "Create or upgrade the tables of a shared ledger; safe while workers run.",
     cli_ledger_migrate},
    {"ledger", "members", "", 0, 0, NULL,
     "List the members that work on a shared ledger, with their accounts and jobs.",
     cli_ledger_members},
    {"ledger", "copy", "FROM TO", 2, 2, ledger_copy_flags,
     "Copy a ledger from state.db to postgres://HOST/DATABASE or back, and compare.",
     cli_ledger_copy},
    {"completion", NULL, "[SHELL]", 0, CLI_ARGUMENTS_MAX, completion_flags,
     "Print the completion script for bash (the default), zsh or fish.", cli_completion},
    {NULL, NULL, NULL, 0, 0, NULL, NULL, NULL},
};
