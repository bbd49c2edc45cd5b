/* table.c - the commands of the mail system and their flags. */
#include "mail/commands/home.h"

static const struct cli_flag mail_sync_flags[] = {
    {"force", NULL, "list the whole account again; stored messages are not fetched again"},
    {"newest-first", NULL,
     "fetch the newest mail first (default where the quota makes a first sync take over 5 min)"},
    {"oldest-first", NULL, "fetch the oldest mail first, so that the tidemark moves all the time"},
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
    {"threads", NULL, "show conversations: one line for each, at its first match"},
    {"snippets", "WHEN:auto always never",
     "show the text around matches: auto (on a terminal, the default), always or never"},
    {NULL, NULL, NULL},
};

static const struct cli_flag mail_show_flags[] = {
    {"account", "EMAIL", "read from the archive of this account (default: all)"},
    {"raw", NULL, "print the message byte for byte"},
    {"thread", NULL, "show the whole conversation, oldest first"},
    {"html", NULL,
     "write it as one HTML file that a browser can open offline, to FILE or standard output"},
    {"save-attachments", "DIR", "save the attachments in DIR; never overwrite a file"},
    {NULL, NULL, NULL},
};

static const struct cli_flag mail_browse_flags[] = {
    {"account", "EMAIL", "show mail of this account (default: all)"},
    {NULL, NULL, NULL},
};

static const struct cli_flag mail_labels_flags[] = {
    {"account", "EMAIL", "count labels of this account (default: all)"},
    {NULL, NULL, NULL},
};

static const struct cli_flag mail_stats_flags[] = {
    {"account", "EMAIL", "count mail of this account (default: all)"},
    {"by", "WHAT:sender domain year label size",
     "group by sender (the default), domain, year, label or size"},
    {"limit", "N", "show at most N groups (default 20)"},
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
    {"label", "NAME:@labels", "add this label to every message"},
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
    {"label", "NAME:@labels", "select only mail with this label"},
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
    {"mail", "sync", "[EMAIL...]", 0, CLI_ARGUMENTS_MAX, mail_sync_flags,
     "Sync the archive with Gmail. Safe to interrupt; the next run resumes.", cli_mail_sync},
    {"mail", "status", "[EMAIL...]", 0, CLI_ARGUMENTS_MAX, NULL,
     "Show the state of each account: tidemark, gaps, stored mail, last run.", cli_mail_status},
    {"mail", "bad", "[list|explain ID...|retry [ID...]]", 0, CLI_ARGUMENTS_MAX, mail_bad_flags,
     "List messages that could not be fetched or read, explain why, or retry them.", cli_mail_bad},
    {"mail", "search", "QUERY...", 1, CLI_ARGUMENTS_MAX, mail_search_flags,
     "Find mail with Gmail's operators (from: subject: label: after: ...), newest first.",
     cli_mail_search},
    {"mail", "show", "ID... [FILE]", 1, CLI_ARGUMENTS_MAX, mail_show_flags,
     "Show messages, by their ids or the beginnings of these.", cli_mail_show},
    {"mail", "browse", "[QUERY...]", 0, CLI_ARGUMENTS_MAX, mail_browse_flags,
     "Read and search mail on the terminal; print the ids of messages selected there.",
     cli_mail_browse},
    {"mail", "saved", "[list|add NAME QUERY...|remove NAME]", 0, CLI_ARGUMENTS_MAX, NULL,
     "List, save or remove searches; saved:NAME in a query stands for one.", cli_mail_saved},
    {"mail", "labels", "", 0, 0, mail_labels_flags,
     "List the labels with their messages, unread ones and sizes.", cli_mail_labels},
    {"mail", "stats", "[QUERY...]", 0, CLI_ARGUMENTS_MAX, mail_stats_flags,
     "Show what fills the mailbox, and what `mail archive` could free.", cli_mail_stats},
    {"mail", "verify", "", 0, 0, mail_verify_flags,
     "Read the archive back and compare it with hashes, ledger and manifests.", cli_mail_verify},
    {"mail", "heal", "[EMAIL...]", 0, CLI_ARGUMENTS_MAX, mail_heal_flags,
     "Read the archive back and fetch again what is damaged, short or missing.", cli_mail_heal},
    {"mail", "lost", "[list|accept]", 0, 1, mail_lost_flags,
     "List mail that is lost and exists nowhere else, or accept the loss.", cli_mail_lost},
    {"mail", "export", "DIR|FILE.mbox [QUERY...]", 1, CLI_ARGUMENTS_MAX, mail_export_flags,
     "Write messages to eml, maildir or mbox files.", cli_mail_export},
    {"mail", "import", "PATH...", 1, CLI_ARGUMENTS_MAX, mail_import_flags,
     "Import mail from mbox, .eml, Maildir or Google Takeout (also .zip, .tgz) into an archive.",
     cli_mail_import},
    {"mail", "restore", "[QUERY...|ID...]", 0, CLI_ARGUMENTS_MAX, mail_restore_flags,
     "Put messages that were removed from Gmail back, from the archive.", cli_mail_restore},
    {"mail", "archive", "[QUERY...]", 0, CLI_ARGUMENTS_MAX, mail_archive_flags,
     "Archive, trash or delete mail in Gmail that is safely stored here.", cli_mail_archive},
    {"mail", "manifest", "[ID]", 0, 1, mail_manifest_flags,
     "List the runs that removed mail from Gmail, or the messages of one run.", cli_mail_manifest},
    {NULL, NULL, NULL, 0, 0, NULL, NULL, NULL},
};

/* For help; those without a command are the first steps of a new user. */
const struct cli_example mail_examples[] = {
    {"", "account add gmail ada@example.com", "sign in to an account"},
    {"", "mail sync", "fetch its mail; safe to interrupt"},
    {"", "mail search from:bob invoice", "find mail, also offline"},
    {"account add", "account add gmail ada@example.com --client client.json",
     "with an OAuth client of your own, which is remembered"},
    {"account add", "account add gmail ada@example.com --headless",
     "on a machine without a browser"},
    {"account add", "account add gmail ada@example.com --for archive",
     "sign in again, with a permission that more commands need"},
    {"schedule add", "schedule add --at \"every 15min\" mail sync",
     "let `tidemark serve` fetch new mail"},
    {"config set", "config set governor.gmail.window_units 15000 --account ada@example.com",
     "for one account alone"},
    {"jobs retry", "jobs retry --kind mail.fetch --state failed", "retry failed fetches"},
    {"mail sync", "mail sync", "all mail accounts; the next run resumes"},
    {"mail sync", "mail sync ada@example.com --newest-first", "one account, the newest mail first"},
    {"mail sync", "mail sync --since 2y --timeout 1h", "the last two years, for an hour"},
    {"mail search", "mail search harbour invoice -draft", "words, and not this one"},
    {"mail search", "mail search from:bob has:attachment newer_than:1y --threads", "as in Gmail"},
    {"mail search", "mail search 'subject:\"annual report\"' --json", "for a program"},
    {"mail show", "mail show 1958156937e65e6e --thread", "the whole conversation"},
    {"mail show", "mail show 19581569 --save-attachments ~/Downloads",
     "the beginning of an ID is enough"},
    {"mail browse", "mail browse", "all mail; ? shows the keys"},
    {"mail browse", "mail browse from:bob newer_than:1y", "what a search finds"},
    {"mail browse", "mail export picked/ $(tidemark mail browse)",
     "write the messages that are selected there"},
    {"mail saved", "mail saved add invoices 'subject:invoice has:attachment'", "save a search"},
    {"mail saved", "mail search saved:invoices after:2025", "use it, also within another"},
    {"mail labels", "mail labels --account ada@example.com", "the labels of one account"},
    {"mail stats", "mail stats --by sender", "who fills the mailbox"},
    {"mail stats", "mail stats --by year larger:5M", "when large mail came"},
    {"mail status", "mail status", "tidemark, gaps and counts of all accounts"},
    {"mail status", "mail status ada@example.com --json", "of one, with all its gaps"},
    {"mail bad", "mail bad", "messages that could not be fetched"},
    {"mail bad", "mail bad explain 1958156937e65e6e", "why this one could not"},
    {"mail heal", "mail heal --timeout 1h", "for an hour; the next run starts over"},
    {"mail manifest", "mail manifest", "the runs that removed mail"},
    {"mail manifest", "mail manifest 3 --state refused", "what run 3 left in Gmail"},
    {"mail export", "mail export invoices.mbox label:invoices", "the mail of a label, in one file"},
    {"mail import", "mail import takeout.mbox --account ada@example.com",
     "what Google Takeout gave"},
    {"mail archive", "mail archive --older-than 1y --dry-run", "what would leave the inbox"},
    {"mail archive", "mail archive --older-than 5y --mode trash",
     "to the trash, if it is proven to be here"},
    {"mail restore", "mail restore --manifest 3", "put back what run 3 removed"},
    {"mail verify", "mail verify --sample 100", "read back one message in a hundred"},
    {NULL, NULL, NULL},
};
