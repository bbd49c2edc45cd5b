/* commands.c - the one table of commands and flags.
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
    {"state", "STATE", "list only jobs that are pending, running, done, failed or canceled"},
    {"kind", "KIND", "list only jobs of this kind"},
    {"account", "ACCOUNT", "list only jobs of this account"},
    {"cycle", "N", "list only jobs of this cycle"},
    {"limit", "N", "list at most N jobs (default 100)"},
    {"before", "ID", "list only jobs older than ID (the next page)"},
    {NULL, NULL, NULL},
};

static const struct cli_flag jobs_change_flags[] = {
    {"state", "STATE", "select jobs in this state"},
    {"kind", "KIND", "select jobs of this kind"},
    {"account", "ACCOUNT", "select jobs of this account"},
    {"cycle", "N", "select jobs of this cycle"},
    {"all", NULL, "select all jobs, when there is no ID and no other flag"},
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

static const struct cli_flag bad_list_flags[] = {
    {"kind", "KIND", "select only items of this kind"},
    {"account", "ACCOUNT", "select only items of this account"},
    {"state", "STATE", "select only items that are bad, gone, owed, accepted or retrying"},
    {NULL, NULL, NULL},
};

static const struct cli_flag bad_change_flags[] = {
    {"kind", "KIND", "select only items of this kind"},
    {"account", "ACCOUNT", "select only items of this account"},
    {"all", NULL, "select all items, when there is no ITEM and no other flag"},
    {NULL, NULL, NULL},
};

static const struct cli_flag account_halt_flags[] = {
    {"reason", "TEXT", "record the reason; shown until the account is resumed"},
    {NULL, NULL, NULL},
};

static const struct cli_flag account_add_flags[] = {
    {"client", "FILE", "use your own OAuth client: the JSON file from Google's console"},
    {"headless", NULL,
     "print the link and read the answer from the terminal; for machines without a browser"},
    {"service-account", "FILE", "use the key of a service account with domain-wide delegation"},
    {"endpoint", "URL", "use another server than Google's, such as an emulator"},
    {"bearer", "TOKEN", "use a fixed token (emulators only)"},
    {"for", "PURPOSE", "request permission for sync (read only, the default), archive or delete"},
    {"name", "NAME", "name this sign-in (console only; default: console)"},
    {NULL, NULL, NULL},
};

static const struct cli_flag mail_sync_flags[] = {
    {"force", NULL, "list the whole account again; stored messages are not fetched again"},
    {"newest-first", NULL, "process the newest slices of time first"},
    {"since", "DATE", "fetch only mail from this date on: 2019-01-31, 2019 or an age like 2y"},
    {"max", "N", "fetch at most N messages in this run"},
    {"timeout", "DURATION",
     "stop after this time, such as 10m; the next run resumes (exit code 5)"},
    {NULL, NULL, NULL},
};

static const struct cli_flag mail_bad_flags[] = {
    {"account", "EMAIL", "select only messages of this account"},
    {NULL, NULL, NULL},
};

static const struct cli_flag mail_search_flags[] = {
    {"account", "EMAIL", "search the archive of this account"},
    {"limit", "N", "show at most N messages (default 20)"},
    {"after-page", "TOKEN", "show the page after the one that printed this token"},
    {"rank", NULL, "show the best matches first instead of the newest"},
    {"oldest-first", NULL, "show the oldest first"},
    {NULL, NULL, NULL},
};

static const struct cli_flag mail_show_flags[] = {
    {"account", "EMAIL", "read from the archive of this account"},
    {"raw", NULL, "print the message byte for byte"},
    {"thread", NULL, "show the whole conversation, oldest first"},
    {"save-attachments", "DIR", "save the attachments in DIR; never overwrite a file"},
    {NULL, NULL, NULL},
};

static const struct cli_flag mail_verify_flags[] = {
    {"account", "EMAIL", "check the archive of this account"},
    {"sample", "N", "check only one message in N"},
    {NULL, NULL, NULL},
};

static const struct cli_flag mail_heal_flags[] = {
    {"timeout", "DURATION",
     "stop after this time, such as 10m; the next run starts over (exit code 5)"},
    {NULL, NULL, NULL},
};

static const struct cli_flag mail_lost_flags[] = {
    {"account", "EMAIL", "select only this account"},
    {NULL, NULL, NULL},
};

static const struct cli_flag mail_export_flags[] = {
    {"account", "EMAIL", "export from the archive of this account"},
    {"format", "FORMAT",
     "write eml (a file per message, the default), maildir or mbox (a file per year)"},
    {"replace", NULL, "overwrite existing files that have other content"},
    {NULL, NULL, NULL},
};

static const struct cli_flag mail_import_flags[] = {
    {"account", "EMAIL", "import into the archive of this account; a new one needs no sign-in"},
    {"label", "NAME", "add this label to every message"},
    {"dry-run", NULL, "show what would be stored; store nothing"},
    {NULL, NULL, NULL},
};

static const struct cli_flag mail_restore_flags[] = {
    {"manifest", "N", "restore what manifest N removed, or only its messages ID"},
    {"account", "EMAIL", "restore into this account"},
    {"limit", "N", "restore at most N messages"},
    {"dry-run", NULL, "show what would be done; change nothing"},
    {"yes", NULL, "do not ask for confirmation"},
    {NULL, NULL, NULL},
};

static const struct cli_flag mail_archive_flags[] = {
    {"account", "EMAIL", "select mail of this account"},
    {"mode", "MODE", "choose inbox (out of the inbox, the default), trash or delete (for good)"},
    {"older-than", "AGE", "select only mail older than this: 30d, 6m, 1y"},
    {"label", "NAME", "select only mail with this label"},
    {"larger-than", "SIZE", "select only mail larger than this: 5M"},
    {"limit", "N", "select at most N messages, the newest first"},
    {"dry-run", NULL, "show what would be done; change nothing"},
    {"quick", NULL, "in a dry run, do not read the stored copies back from the disk"},
    {"no-sync", NULL, "do not sync the archive before and after"},
    {"resume", "MANIFEST", "resume the run of this manifest, which did not finish"},
    {"yes", NULL, "do not ask for confirmation"},
    {NULL, NULL, NULL},
};

static const struct cli_flag mail_manifest_flags[] = {
    {"account", "EMAIL", "list only runs of this account"},
    {"state", "STATE", "list only messages that are planned, asked, removed, refused or restored"},
    {NULL, NULL, NULL},
};

static const struct cli_flag console_sites_flags[] = {
    {"name", "NAME", "use this sign-in (default: console)"},
    {NULL, NULL, NULL},
};

static const struct cli_flag console_backfill_flags[] = {
    {"from", "DATE", "fetch from this day on, such as 2026-01-31 (default: 16 months ago)"},
    {"to", "DATE", "fetch up to this day (default: yesterday, Pacific time)"},
    {"days", "N", "fetch N days up to the last final one, instead of --from"},
    {"type", "TYPES",
     "fetch a list of web, image, video, news, discover, googleNews (default: web)"},
    {"dimensions", "LIST", "fetch by a list of query, page, country, device (default: all four)"},
    {"workers", "N", "send N HTTP requests at once, 1 to 10 (default 3)"},
    {"batch", "N", "put up to N queries into one HTTP request, 1 to 50 (default: grows to 50)"},
    {"rows", "N", "request N rows per page, 1 to 25000 (default 25000)"},
    {"no-totals", NULL, "do not fetch the totals of each day"},
    {"again", NULL, "fetch days again that are stored and final"},
    {NULL, NULL, NULL},
};

static const struct cli_flag console_sync_flags[] = {
    {"workers", "N", "send N HTTP requests at once, 1 to 10 (default 3)"},
    {NULL, NULL, NULL},
};

static const struct cli_flag console_report_flags[] = {
    {"from", "DATE", "report from this day on (default: 28 days before --to)"},
    {"to", "DATE", "report up to this day (default: last stored; with --compare last final)"},
    {"type", "TYPE", "report this search type (default: web)"},
    {"by", "DIMENSION", "list the top query, page, country or device (default: query)"},
    {"limit", "N", "list the top N (default 10)"},
    {"compare", NULL, "compare with the same number of days before; all days must be stored"},
    {"compare-from", "DATE", "compare with the days from this one on"},
    {"csv", "WHAT", "print CSV: days or top"},
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
    {NULL, NULL, NULL},
};

static const struct cli_flag worker_flags[] = {
    {"kinds", "LIST", "run only jobs of mail, console or both (default: mail,console)"},
    {"accounts", "LIST",
     "run only jobs of these accounts (default: all whose archive is in this home)"},
    {"workers", "N", "use N threads to run jobs (default: the setting workers.count)"},
    {"once", NULL, "exit when no job is left that can run"},
    {NULL, NULL, NULL},
};

static const struct cli_flag log_flags[] = {
    {"run", "ID", "show only lines of this run; the first digits are enough"},
    {"account", "ACCOUNT", "show only lines about this account"},
    {"level", "LEVEL", "show only lines of this level or above: debug, info, warn or error"},
    {"limit", "N", "show the last N lines (default 100)"},
    {"follow", NULL, "then print new lines as they are written, until Ctrl-C"},
    {NULL, NULL, NULL},
};

static const struct cli_flag ledger_migrate_flags[] = {
    {"role", "NAME", "grant this role the rights of a worker, and no others"},
    {NULL, NULL, NULL},
};

const struct cli_command cli_commands[] = {
    {"jobs", "list", "", 0, 0, jobs_list_flags, "List jobs, newest first.", cli_jobs_list},
    {"jobs", "show", "ID", 1, 1, NULL, "Show all details of a job.", cli_jobs_show},
    {"jobs", "explain", "ID", 1, 1, NULL, "Explain why a job is not running and what would help.",
     cli_jobs_explain},
    {"jobs", "retry", "[ID]", 0, 1, jobs_change_flags,
     "Retry failed and canceled jobs; start delayed ones at once.", cli_jobs_retry},
    {"jobs", "cancel", "[ID]", 0, 1, jobs_change_flags, "Cancel waiting and running jobs.",
     cli_jobs_cancel},
    {"jobs", "accept", "[ID]", 0, 1, jobs_change_flags,
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
    {"alerts", NULL, "", 0, 0, NULL, "List active alerts.", cli_alerts},
    {"log", NULL, "", 0, 0, log_flags, "Show the log of this home: what its runs did.", cli_log},
    {"bad", "list", "", 0, 0, bad_list_flags,
     "List bad items: those that fail while others succeed.", cli_bad_list},
    {"bad", "explain", "ITEM", 1, 1, bad_list_flags,
     "Explain why an item is bad and what can be done.", cli_bad_explain},
    {"bad", "retry", "[ITEM]", 0, 1, bad_change_flags, "Retry bad items.", cli_bad_retry},
    {"bad", "accept", "[ITEM]", 0, 1, bad_change_flags,
     "Accept bad items, so that their cycle can finish without them.", cli_bad_accept},
    {"mail", "sync", "[EMAIL...]", 0, 4, mail_sync_flags,
     "Sync the archive with Gmail. Safe to interrupt; the next run resumes.", cli_mail_sync},
    {"mail", "status", "[EMAIL...]", 0, 4, NULL,
     "Show the state of each account: tidemark, gaps, stored mail, last run.", cli_mail_status},
    {"mail", "bad", "[list|explain ID|retry [ID]]", 0, 2, mail_bad_flags,
     "List messages that could not be fetched or read, explain why, or retry them.", cli_mail_bad},
    {"mail", "search", "QUERY...", 1, 4, mail_search_flags,
     "Find mail with Gmail's operators (from: subject: label: after: ...), newest first.",
     cli_mail_search},
    {"mail", "show", "ID", 1, 1, mail_show_flags, "Show a message.", cli_mail_show},
    {"mail", "verify", "", 0, 0, mail_verify_flags,
     "Read the archive back and compare it with hashes, ledger and manifests.", cli_mail_verify},
    {"mail", "heal", "[EMAIL...]", 0, 4, mail_heal_flags,
     "Read the archive back and fetch again what is damaged, short or missing.", cli_mail_heal},
    {"mail", "lost", "[list|accept]", 0, 1, mail_lost_flags,
     "List mail that is lost and exists nowhere else, or accept the loss.", cli_mail_lost},
    {"mail", "export", "DIR|FILE.mbox [QUERY]", 1, 2, mail_export_flags,
     "Write messages to eml, maildir or mbox files.", cli_mail_export},
    {"mail", "import", "PATH...", 1, 4, mail_import_flags,
     "Import mail from mbox, .eml, Maildir or Google Takeout into an archive.", cli_mail_import},
    {"mail", "restore", "[QUERY...|ID...]", 0, 4, mail_restore_flags,
     "Put messages that were removed from Gmail back, from the archive.", cli_mail_restore},
    {"mail", "archive", "[QUERY...]", 0, 4, mail_archive_flags,
     "Archive, trash or delete mail in Gmail that is safely stored here.", cli_mail_archive},
    {"mail", "manifest", "[ID]", 0, 1, mail_manifest_flags,
     "List the runs that removed mail from Gmail, or the messages of one run.", cli_mail_manifest},
    {"console", "sites", "", 0, 0, console_sites_flags,
     "List the properties that a sign-in can read, and which of them were added.",
     cli_console_sites},
    {"console", "backfill", "SITE", 1, 1, console_backfill_flags,
     "Fetch the search analytics of many days. Safe to interrupt; the next run resumes.",
     cli_console_backfill},
    {"console", "sync", "[SITE...]", 0, 60, console_sync_flags,
     "Fetch days that are new, were not final, or lack rows.", cli_console_sync},
    {"console", "status", "[SITE...]", 0, 60, NULL,
     "Show the last complete day of each series, and what is stored.", cli_console_status},
    {"console", "report", "SITE", 1, 1, console_report_flags,
     "Show the totals of a range of days, and the top queries or pages.", cli_console_report},
    {"console", "remove", "SITE", 1, 1, NULL, "Stop fetching a site; stored data stays.",
     cli_console_remove},
    {"account", "add", "gmail EMAIL | console SITE...", 2, 60, account_add_flags,
     "Sign in to an account and store the sign-in.", cli_account_add},
    {"account", "remove", "EMAIL", 1, 1, NULL,
     "Revoke the sign-in of an account and remove the account; its archive stays.",
     cli_account_remove},
    {"account", "list", "", 0, 0, NULL,
     "List accounts: signed in, endpoint, paused or halted, last answer.", cli_account_list},
    {"account", "halt", "ACCOUNT", 1, 1, account_halt_flags,
     "Stop all work of an account within seconds; nothing in flight is lost.", cli_account_halt},
    {"account", "resume", "ACCOUNT", 1, 1, NULL, "Resume a halted account.", cli_account_resume},
    {"config", "list", "", 0, 0, config_list_flags, "List settings with value and origin.",
     cli_config_list},
    {"config", "get", "NAME", 1, 1, NULL, "Show one setting.", cli_config_get},
    {"config", "set", "NAME VALUE", 2, 2, NULL,
     "Write a setting to the configuration file, keeping every other line.", cli_config_set},
    {"config", "check", "", 0, 0, NULL, "Check the settings in file, environment and flags.",
     cli_config_check},
    {"backup", NULL, "DIR|FILE.db", 1, 1, NULL,
     "Copy state and archives to DIR, or only the ledger to a file; safe while jobs run.",
     cli_backup},
    {"restore", NULL, "DIR", 1, 1, restore_flags,
     "Restore a home from a copy made by `backup DIR`; sign in again afterwards.", cli_restore},
    {"worker", NULL, "", 0, 0, worker_flags,
     "Run jobs of a shared ledger until stopped, as one member of a fleet.", cli_worker},
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
    {"completion", NULL, "", 0, 0, NULL, "Print the bash completion script.", cli_completion_bash},
    {NULL, NULL, NULL, 0, 0, NULL, NULL, NULL},
};
