#include "cli/cli.h"

/* The one table of commands and flags.  The end-to-end test compares its --help
 * with the man page and the completion. */

const struct cli_flag cli_global_flags[] = {
    {"home", "DIR", "keep settings and state in DIR instead of the XDG directories"},
    {"ledger", "URL", "work on the ledger postgres://HOST/DATABASE that many machines share"},
    {"json", NULL, "print one JSON object instead of text"},
    {"set", "NAME=VALUE", "give a setting another value for this run; may be repeated"},
    {"verbose", NULL, "say more about what is done"},
    {"quiet", NULL, "print nothing but errors and what was asked for"},
    {"help", NULL, "show this help, also behind a command"},
    {"version", NULL, "show the version"},
    {NULL, NULL, NULL},
};

static const struct cli_flag jobs_list_flags[] = {
    {"state", "STATE", "only pending, running, done, failed or canceled ones"},
    {"kind", "KIND", "only jobs of this kind"},
    {"account", "ACCOUNT", "only jobs of this account"},
    {"cycle", "N", "only jobs of this cycle"},
    {"limit", "N", "at most N jobs (default 100)"},
    {"before", "ID", "only jobs older than ID: the next page"},
    {NULL, NULL, NULL},
};

static const struct cli_flag jobs_change_flags[] = {
    {"state", "STATE", "only jobs in this state"},
    {"kind", "KIND", "only jobs of this kind"},
    {"account", "ACCOUNT", "only jobs of this account"},
    {"cycle", "N", "only jobs of this cycle"},
    {"all", NULL, "all jobs, when nothing else is given"},
    {NULL, NULL, NULL},
};

static const struct cli_flag jobs_pause_flags[] = {
    {"kind", "KIND", "this kind"},
    {"account", "ACCOUNT", "this account"},
    {NULL, NULL, NULL},
};

static const struct cli_flag jobs_purge_flags[] = {
    {"older-than", "TIME",
     "finished longer ago than this, as 7d (default: the setting purge.after)"},
    {NULL, NULL, NULL},
};

static const struct cli_flag bad_list_flags[] = {
    {"kind", "KIND", "only items of this kind"},
    {"account", "ACCOUNT", "only items of this account"},
    {"state", "STATE", "only bad, gone, owed, accepted or retrying ones"},
    {NULL, NULL, NULL},
};

static const struct cli_flag bad_change_flags[] = {
    {"kind", "KIND", "only items of this kind"},
    {"account", "ACCOUNT", "only items of this account"},
    {"all", NULL, "all items, when none is named"},
    {NULL, NULL, NULL},
};

static const struct cli_flag account_halt_flags[] = {
    {"reason", "TEXT", "why; shown until it is resumed"},
    {NULL, NULL, NULL},
};

static const struct cli_flag account_add_flags[] = {
    {"client", "FILE", "your own OAuth client, as Google's console gives it"},
    {"headless", NULL, "print the link and take the answer, where there is no browser"},
    {"service-account", "FILE", "the key of a service account with domain-wide delegation"},
    {"endpoint", "URL", "another server than Google's: an emulator"},
    {"bearer", "TOKEN", "a fixed token, for emulators only"},
    {"for", "PURPOSE", "what it is for: sync (reading, the default), archive or delete"},
    {"name", "NAME", "a name for this sign-in (console; default: console)"},
    {NULL, NULL, NULL},
};

static const struct cli_flag mail_sync_flags[] = {
    {"force", NULL, "list the whole account again; what is stored is not fetched again"},
    {"newest-first", NULL, "take the newest slices of time first"},
    {"since", "DATE", "only mail from then on: 2019-01-31, 2019 or an age like 2y"},
    {"max", "N", "fetch at most N messages in this run"},
    {"timeout", "DURATION", "stop after this time, as 10m; the next run resumes (exit code 5)"},
    {NULL, NULL, NULL},
};

static const struct cli_flag mail_bad_flags[] = {
    {"account", "EMAIL", "only messages of this account"},
    {NULL, NULL, NULL},
};

static const struct cli_flag mail_search_flags[] = {
    {"account", "EMAIL", "in the archive of this account"},
    {"limit", "N", "at most N messages (default 20)"},
    {"after-page", "TOKEN", "the page after the one that named this token"},
    {"rank", NULL, "the best matches first instead of the newest"},
    {"oldest-first", NULL, "the oldest first"},
    {NULL, NULL, NULL},
};

static const struct cli_flag mail_show_flags[] = {
    {"account", "EMAIL", "in the archive of this account"},
    {"raw", NULL, "the message byte for byte"},
    {"thread", NULL, "the whole conversation, oldest first"},
    {"save-attachments", "DIR", "write its attachments into DIR, over nothing that is there"},
    {NULL, NULL, NULL},
};

static const struct cli_flag mail_verify_flags[] = {
    {"account", "EMAIL", "the archive of this account"},
    {"sample", "N", "only one message in N"},
    {NULL, NULL, NULL},
};

static const struct cli_flag mail_heal_flags[] = {
    {"timeout", "DURATION",
     "stop after this time, as 10m; the next run begins again (exit code 5)"},
    {NULL, NULL, NULL},
};

static const struct cli_flag mail_lost_flags[] = {
    {"account", "EMAIL", "only of this account"},
    {NULL, NULL, NULL},
};

static const struct cli_flag mail_export_flags[] = {
    {"account", "EMAIL", "from the archive of this account"},
    {"format", "FORMAT",
     "eml (one file a message, the default), maildir or mbox (one file a year)"},
    {"replace", NULL, "overwrite files that are there with other content"},
    {NULL, NULL, NULL},
};

static const struct cli_flag mail_import_flags[] = {
    {"account", "EMAIL", "into the archive of this account; a new one needs no sign-in"},
    {"label", "NAME", "give every message this label"},
    {"dry-run", NULL, "only say what would be stored"},
    {NULL, NULL, NULL},
};

static const struct cli_flag mail_restore_flags[] = {
    {"manifest", "N", "what this manifest removed, or only the messages ID of it"},
    {"account", "EMAIL", "into this account"},
    {"limit", "N", "at most N messages"},
    {"dry-run", NULL, "show what would be done, and change nothing"},
    {"yes", NULL, "do it without asking"},
    {NULL, NULL, NULL},
};

static const struct cli_flag mail_archive_flags[] = {
    {"account", "EMAIL", "of this account"},
    {"mode", "MODE", "inbox (out of the inbox, the default), trash or delete (for good)"},
    {"older-than", "AGE", "only mail older than this: 30d, 6m, 1y"},
    {"label", "NAME", "only mail with this label"},
    {"larger-than", "SIZE", "only mail larger than this: 5M"},
    {"limit", "N", "at most N messages, the newest first"},
    {"dry-run", NULL, "show what would happen; nothing is changed"},
    {"quick", NULL, "in a dry run, do not read the copies back from the disk"},
    {"no-sync", NULL, "do not bring the archive up to date before and after"},
    {"resume", "MANIFEST", "go on with a run that did not end"},
    {"yes", NULL, "do not ask, however much it is"},
    {NULL, NULL, NULL},
};

static const struct cli_flag mail_manifest_flags[] = {
    {"account", "EMAIL", "only runs of this account"},
    {"state", "STATE", "only planned, asked, removed, refused or restored messages"},
    {NULL, NULL, NULL},
};

static const struct cli_flag console_sites_flags[] = {
    {"name", "NAME", "of this sign-in (default: console)"},
    {NULL, NULL, NULL},
};

static const struct cli_flag console_backfill_flags[] = {
    {"from", "DATE", "the first day, as 2026-01-31 (default: 16 months ago)"},
    {"to", "DATE", "the last day (default: yesterday, Pacific time)"},
    {"days", "N", "so many days up to the last final one, instead of --from"},
    {"type", "TYPES", "web, image, video, news, discover, googleNews; a list (default: web)"},
    {"dimensions", "LIST", "of query, page, country, device (default: all four)"},
    {"workers", "N", "HTTP requests at once, 1 to 10 (default 3); 1 asks one by one"},
    {"batch", "N", "queries in one HTTP request, 1 to 50 (default: grows to 50)"},
    {"rows", "N", "rows of a page, 1 to 25000 (default 25000)"},
    {"no-totals", NULL, "do not ask for the totals of each day"},
    {"again", NULL, "also days that are stored and final"},
    {NULL, NULL, NULL},
};

static const struct cli_flag console_sync_flags[] = {
    {"workers", "N", "HTTP requests at once, 1 to 10 (default 3)"},
    {NULL, NULL, NULL},
};

static const struct cli_flag console_report_flags[] = {
    {"from", "DATE", "the first day (default: 28 days before --to)"},
    {"to", "DATE",
     "the last day (default: the last one stored; with --compare the last final one)"},
    {"type", "TYPE", "of this search type (default: web)"},
    {"by", "DIMENSION", "the best of query, page, country or device (default: query)"},
    {"limit", "N", "so many of them (default 10)"},
    {"compare", NULL, "beside the same number of days before; all days must be stored"},
    {"compare-from", "DATE", "beside the days from this one on"},
    {"csv", "WHAT", "as CSV: days, or top"},
    {NULL, NULL, NULL},
};

static const struct cli_flag restore_flags[] = {
    {"replace", NULL,
     "put the home that is there aside, as NAME.before-N; nothing of it is removed"},
    {NULL, NULL, NULL},
};

static const struct cli_flag ledger_copy_flags[] = {
    {"verify", NULL, "copy nothing: compare the two, row by row"},
    {"dry-run", NULL, "only count what would be copied, and look for what TO could not hold"},
    {"restart", NULL, "throw away what an unfinished copy left in TO, and begin again"},
    {NULL, NULL, NULL},
};

static const struct cli_flag config_list_flags[] = {
    {"changed", NULL, "only settings that are not at their default"},
    {NULL, NULL, NULL},
};

static const struct cli_flag worker_flags[] = {
    {"kinds", "LIST", "only jobs of mail, console or both (default: mail,console)"},
    {"accounts", "LIST", "only these accounts (default: all whose archive is here)"},
    {"workers", "N", "threads that run jobs (default: the setting workers.count)"},
    {"once", NULL, "end when nothing is left that could run"},
    {NULL, NULL, NULL},
};

static const struct cli_flag log_flags[] = {
    {"run", "ID", "only lines of this run; the first digits will do"},
    {"account", "ACCOUNT", "only lines about this account"},
    {"level", "LEVEL", "only lines at least this important: debug, info, warn or error"},
    {"limit", "N", "the last N lines (default 100)"},
    {"follow", NULL, "then print new lines as they come, until Ctrl-C"},
    {NULL, NULL, NULL},
};

static const struct cli_flag ledger_migrate_flags[] = {
    {"role", "NAME", "let this role work on the ledger, and no more than that"},
    {NULL, NULL, NULL},
};

const struct cli_command cli_commands[] = {
    {"jobs", "list", "", 0, 0, jobs_list_flags, "List jobs, newest first.", cli_jobs_list},
    {"jobs", "show", "ID", 1, 1, NULL, "Show everything the ledger knows about a job.",
     cli_jobs_show},
    {"jobs", "explain", "ID", 1, 1, NULL, "Say why a job is not running, and what would help.",
     cli_jobs_explain},
    {"jobs", "retry", "[ID]", 0, 1, jobs_change_flags,
     "Let failed and canceled jobs run again, and waiting ones at once.", cli_jobs_retry},
    {"jobs", "cancel", "[ID]", 0, 1, jobs_change_flags, "Cancel jobs that wait or run.",
     cli_jobs_cancel},
    {"jobs", "accept", "[ID]", 0, 1, jobs_change_flags,
     "Accept that jobs failed, so that their cycle can finish without them.", cli_jobs_accept},
    {"jobs", "pause", "", 0, 0, jobs_pause_flags, "Start no more jobs of a kind or an account.",
     cli_jobs_pause},
    {"jobs", "resume", "", 0, 0, jobs_pause_flags, "Undo a pause.", cli_jobs_resume},
    {"jobs", "stats", "", 0, 0, NULL, "Count jobs by account, kind and state.", cli_jobs_stats},
    {"jobs", "purge", "", 0, 0, jobs_purge_flags, "Remove old finished jobs from the ledger.",
     cli_jobs_purge},
    {"jobs", "doctor", "", 0, 0, NULL, "Say what is wrong with the ledger as a running thing.",
     cli_jobs_doctor},
    {"alerts", NULL, "", 0, 0, NULL, "List active alerts.", cli_alerts},
    {"log", NULL, "", 0, 0, log_flags, "Show what happened, in this run and earlier ones.",
     cli_log},
    {"bad", "list", "", 0, 0, bad_list_flags, "List items that fail by themselves.", cli_bad_list},
    {"bad", "explain", "ITEM", 1, 1, bad_list_flags, "Say why an item is bad and what can be done.",
     cli_bad_explain},
    {"bad", "retry", "[ITEM]", 0, 1, bad_change_flags, "Try bad items again.", cli_bad_retry},
    {"bad", "accept", "[ITEM]", 0, 1, bad_change_flags,
     "Accept that items are bad, so that their cycle can finish.", cli_bad_accept},
    {"mail", "sync", "[EMAIL...]", 0, 4, mail_sync_flags,
     "Bring the archive up to date with Gmail; stop it as you like, it goes on where it was.",
     cli_mail_sync},
    {"mail", "status", "[EMAIL...]", 0, 4, NULL,
     "Show where each account stands: its tidemark, every gap, what is stored, the last run.",
     cli_mail_status},
    {"mail", "bad", "[list|explain ID|retry [ID]]", 0, 2, mail_bad_flags,
     "Name messages that could not be fetched or read, say why, and try them again.", cli_mail_bad},
    {"mail", "search", "QUERY...", 1, 4, mail_search_flags,
     "Find mail with Gmail's operators, newest first.", cli_mail_search},
    {"mail", "show", "ID", 1, 1, mail_show_flags, "Show a message.", cli_mail_show},
    {"mail", "verify", "", 0, 0, mail_verify_flags,
     "Read everything back, and compare it with what is known about it.", cli_mail_verify},
    {"mail", "heal", "[EMAIL...]", 0, 4, mail_heal_flags,
     "Read everything back, and fetch again what is damaged, short or missing.", cli_mail_heal},
    {"mail", "lost", "[list|accept]", 0, 1, mail_lost_flags,
     "Name what exists nowhere else and is lost, or accept the loss.", cli_mail_lost},
    {"mail", "export", "DIR|FILE.mbox [QUERY]", 1, 2, mail_export_flags,
     "Write messages as files: eml, maildir or mbox.", cli_mail_export},
    {"mail", "import", "PATH...", 1, 4, mail_import_flags,
     "Take mail from mbox, .eml, Maildir and Google Takeout into an archive.", cli_mail_import},
    {"mail", "restore", "[QUERY...|ID...]", 0, 4, mail_restore_flags,
     "Put messages that were removed from Gmail back, from the archive.", cli_mail_restore},
    {"mail", "archive", "[QUERY...]", 0, 4, mail_archive_flags,
     "Take mail that is safely stored here out of Gmail.", cli_mail_archive},
    {"mail", "manifest", "[ID]", 0, 1, mail_manifest_flags,
     "List what was taken out of Gmail: the runs, or the messages of one.", cli_mail_manifest},
    {"console", "sites", "", 0, 0, console_sites_flags,
     "List the properties that a sign-in can read, and which of them were added.",
     cli_console_sites},
    {"console", "backfill", "SITE", 1, 1, console_backfill_flags,
     "Fetch the search analytics of many days; stop it as you like, it goes on where it was.",
     cli_console_backfill},
    {"console", "sync", "[SITE...]", 0, 60, console_sync_flags,
     "Fetch the days that are new, were not final, or lack rows.", cli_console_sync},
    {"console", "status", "[SITE...]", 0, 60, NULL,
     "Show up to which day each series is complete, and what is stored.", cli_console_status},
    {"console", "report", "SITE", 1, 1, console_report_flags,
     "Show totals of days, and the best queries or pages.", cli_console_report},
    {"console", "remove", "SITE", 1, 1, NULL, "Stop fetching a site; what is stored stays.",
     cli_console_remove},
    {"account", "add", "gmail EMAIL | console SITE...", 2, 60, account_add_flags,
     "Sign in to an account and keep its sign-in.", cli_account_add},
    {"account", "remove", "EMAIL", 1, 1, NULL,
     "Give the sign-in of an account back and forget both; its archive stays.", cli_account_remove},
    {"account", "list", "", 0, 0, NULL,
     "List accounts: whether they are signed in, where, and whether paused or halted.",
     cli_account_list},
    {"account", "halt", "ACCOUNT", 1, 1, account_halt_flags,
     "Stop all work of an account within seconds; nothing in flight is lost.", cli_account_halt},
    {"account", "resume", "ACCOUNT", 1, 1, NULL, "Undo a halt.", cli_account_resume},
    {"config", "list", "", 0, 0, config_list_flags, "List settings with value and origin.",
     cli_config_list},
    {"config", "get", "NAME", 1, 1, NULL, "Show one setting.", cli_config_get},
    {"config", "set", "NAME VALUE", 2, 2, NULL,
     "Write a setting into the configuration file, keeping every other line.", cli_config_set},
    {"config", "check", "", 0, 0, NULL, "Check file, environment and flags.", cli_config_check},
    {"backup", NULL, "DIR|FILE.db", 1, 1, NULL,
     "Copy state and archives, also while everything runs, into DIR; or the ledger into a file.",
     cli_backup},
    {"restore", NULL, "DIR", 1, 1, restore_flags,
     "Make a home out of a copy that `backup DIR` made; sign in again afterwards.", cli_restore},
    {"worker", NULL, "", 0, 0, worker_flags,
     "Work on a shared ledger until it is stopped: one process of a fleet.", cli_worker},
    {"ledger", "check", "", 0, 0, NULL, "Check the ledger and its rules.", cli_ledger_verify},
    {"ledger", "migrate", "", 0, 0, ledger_migrate_flags,
     "Make or upgrade the tables of a shared ledger; while it is worked on, too.",
     cli_ledger_migrate},
    {"ledger", "members", "", 0, 0, NULL,
     "List the processes that work on a shared ledger, and what each holds.", cli_ledger_members},
    {"ledger", "copy", "FROM TO", 2, 2, ledger_copy_flags,
     "Copy a ledger into a new one, from state.db to postgres://HOST/DATABASE or back, and "
     "compare.",
     cli_ledger_copy},
    {"completion", NULL, "", 0, 0, NULL, "Print the bash completion.", cli_completion_bash},
    {NULL, NULL, NULL, 0, 0, NULL, NULL, NULL},
};
