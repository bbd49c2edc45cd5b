/* table.c - the commands of the mail system and their flags. */
#include "mail/commands/home.h"

static const struct cli_flag mail_sync_flags[] = {
    {"force", NULL, "list the whole account again; stored messages are not fetched again"},
    {"newest-first", NULL, "process the newest slices of time first"},
    {"since", "DATE", "fetch only mail from this date on: 2019-01-31, 2019 or an age like 2y"},
    {"max", "N", "fetch at most N messages in this run"},
    {"exact", "WHEN:on off",
     "fetch Gmail's own bytes of messages that Takeout seeded, behind all else (default on)"},
    {"timeout", "DURATION",
     "stop after this time, such as 10m; the next run resumes (exit code 5)"},
    {"no-wait", NULL, "ask the running process (`tidemark serve`) to do it, and do not wait"},
    {NULL, NULL, NULL},
};

static const struct cli_flag mail_bad_flags[] = {
    {"account", "EMAIL", "select only messages of this account"},
    {NULL, NULL, NULL},
};

static const struct cli_flag mail_search_flags[] = {
    {"account", "EMAIL", "search the archive of this account (default: all)"},
    {"limit", "N", "show at most N messages (default 20)"},
    {"after", "TOKEN", "show the page after the one that printed this token"},
    {"rank", NULL, "show the best matches of one account first instead of the newest"},
    {"oldest-first", NULL, "show the oldest first"},
    {NULL, NULL, NULL},
};

static const struct cli_flag mail_show_flags[] = {
    {"account", "EMAIL", "read from the archive of this account"},
    {"raw", NULL, "print the message byte for byte"},
    {"thread", NULL, "show the whole conversation, oldest first"},
    {"html", NULL,
     "write it as one HTML file that a browser can open offline, to FILE or standard output"},
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
    {"format", "FORMAT:eml maildir mbox",
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
    {"mode", "MODE:inbox trash delete",
     "choose inbox (out of the inbox, the default), trash or delete (for good)"},
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
    {"state", "STATE:planned asked removed refused restored",
     "list only messages that are planned, asked, removed, refused or restored"},
    {NULL, NULL, NULL},
};

const struct cli_command mail_commands[] = {
    {"mail", "sync", "[EMAIL...]", 0, 4, mail_sync_flags,
     "Sync the archive with Gmail. Safe to interrupt; the next run resumes.", cli_mail_sync},
    {"mail", "status", "[EMAIL...]", 0, 4, NULL,
     "Show the state of each account: tidemark, gaps, stored mail, last run.", cli_mail_status},
    {"mail", "bad", "[list|explain ID|retry [ID]]", 0, 2, mail_bad_flags,
     "List messages that could not be fetched or read, explain why, or retry them.", cli_mail_bad},
    {"mail", "search", "QUERY...", 1, 4, mail_search_flags,
     "Find mail with Gmail's operators (from: subject: label: after: ...), newest first.",
     cli_mail_search},
    {"mail", "show", "ID [FILE]", 1, 2, mail_show_flags, "Show a message.", cli_mail_show},
    {"mail", "verify", "", 0, 0, mail_verify_flags,
     "Read the archive back and compare it with hashes, ledger and manifests.", cli_mail_verify},
    {"mail", "heal", "[EMAIL...]", 0, 4, mail_heal_flags,
     "Read the archive back and fetch again what is damaged, short or missing.", cli_mail_heal},
    {"mail", "lost", "[list|accept]", 0, 1, mail_lost_flags,
     "List mail that is lost and exists nowhere else, or accept the loss.", cli_mail_lost},
    {"mail", "export", "DIR|FILE.mbox [QUERY]", 1, 2, mail_export_flags,
     "Write messages to eml, maildir or mbox files.", cli_mail_export},
    {"mail", "import", "PATH...", 1, 4, mail_import_flags,
     "Import mail from mbox, .eml, Maildir or Google Takeout (also .zip, .tgz) into an archive.",
     cli_mail_import},
    {"mail", "restore", "[QUERY...|ID...]", 0, 4, mail_restore_flags,
     "Put messages that were removed from Gmail back, from the archive.", cli_mail_restore},
    {"mail", "archive", "[QUERY...]", 0, 4, mail_archive_flags,
     "Archive, trash or delete mail in Gmail that is safely stored here.", cli_mail_archive},
    {"mail", "manifest", "[ID]", 0, 1, mail_manifest_flags,
     "List the runs that removed mail from Gmail, or the messages of one run.", cli_mail_manifest},
    {NULL, NULL, NULL, 0, 0, NULL, NULL, NULL},
};
