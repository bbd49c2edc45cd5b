/* table.c - the commands of the reader and their flags. */
#include "reader/commands/home.h"

static const struct cli_flag list_flags[] = {
    {"limit", "N", "show at most N messages (default: 50)"},
    {"after", "TOKEN", "continue after the page before, with the token that it printed"},
    {"before", "UNIX_MS", "begin with messages that arrived before this time"},
    {NULL, NULL, NULL},
};

static const struct cli_flag changes_flags[] = {
    {"since", "VERSION", "show what changed since this version, as an earlier answer named it"},
    {NULL, NULL, NULL},
};

static const struct cli_flag search_flags[] = {
    {"limit", "N", "show at most N messages (default: 50)"},
    {"after", "TOKEN", "continue after the page before, with the token that it printed"},
    {NULL, NULL, NULL},
};

static const struct cli_flag actions_flags[] = {
    {"limit", "N", "show at most N actions (default: 50)"},
    {"state", "STATE:waiting done refused undone", "show only actions in this state"},
    {NULL, NULL, NULL},
};

static const struct cli_flag people_flags[] = {
    {"limit", "N", "show at most N people, up to 20 (default: 12)"},
    {NULL, NULL, NULL},
};

static const struct cli_flag account_flags[] = {
    {"account", "EMAIL", "of this account"},
    {NULL, NULL, NULL},
};

static const struct cli_flag fetch_flags[] = {
    {"folder", "LABEL", "fetch the top of this list: INBOX, ALL, or the id of a label"},
    {"more", "1", "with --folder: fetch the page that follows what is known of it"},
    {"message", "ID", "fetch the body of this message"},
    {"query", "QUERY", "search at the server; `reader found` shows the results"},
    {NULL, NULL, NULL},
};

static const struct cli_flag act_flags[] = {
    {"account", "EMAIL", "of this account"},
    {"do",
     "ACTION:archive inbox trash untrash spam unspam read unread star unstar important unimportant "
     "label unlabel move delete pin unpin send keep",
     "what to do with the messages, or with a draft"},
    {"label", "LABEL", "with label, unlabel and move: the id of the label"},
    {"draft", "DRAFT", "with send and keep: the id of the draft"},
    {NULL, NULL, NULL},
};

static const struct cli_flag continue_flags[] = {
    {"message", "ID", "the message that is the draft"},
    {NULL, NULL, NULL},
};

const struct cli_command reader_commands[] = {
    {"reader", "status", "", 0, 0, NULL, "Show what the reader does for each account.",
     cli_reader_status},
    {"reader", "folders", "ACCOUNT", 1, 1, NULL, "List the labels of a mailbox with their counts.",
     cli_reader_folders},
    {"reader", "list", "ACCOUNT LABEL", 2, 2, list_flags,
     "List messages of a label, newest first; ALL is all mail but spam and trash.",
     cli_reader_list},
    {"reader", "days", "ACCOUNT LABEL", 2, 2, NULL,
     "Count the messages of a label by day, in UTC, newest first.", cli_reader_days},
    {"reader", "show", "MESSAGE", 1, 1, account_flags,
     "Show a message, from the archive or the cache.", cli_reader_show},
    {"reader", "thread", "THREAD", 1, 1, account_flags, "Show the messages of a conversation.",
     cli_reader_thread},
    {"reader", "changes", "ACCOUNT", 1, 1, changes_flags,
     "Show the messages that changed since a version.", cli_reader_changes},
    {"reader", "fetch", "ACCOUNT", 1, 1, fetch_flags,
     "Ask `tidemark serve` to fetch a list, a page, a body or a search, before everything else.",
     cli_reader_fetch},
    {"reader", "search", "ACCOUNT QUERY...", 2, 60, search_flags,
     "Search what is here of a mailbox, in the archive or the cache, newest first.",
     cli_reader_search},
    {"reader", "found", "ACCOUNT QUERY", 2, 2, NULL,
     "Show what a search at the server found so far.", cli_reader_found},
    {"reader", "act", "[MESSAGE...]", 0, CLI_ARGUMENTS_MAX, act_flags,
     "Archive, trash, star, label or mark messages, or send a draft; it is uploaded in order, also "
     "after a restart.",
     cli_reader_act},
    {"reader", "actions", "ACCOUNT", 1, 1, actions_flags,
     "List what was done, and what of it waits or was refused.", cli_reader_actions},
    {"reader", "undo", "ACTION", 1, 1, account_flags,
     "Take back an action, or do the opposite if the server has it.", cli_reader_undo},
    {"reader", "people", "ACCOUNT TYPED", 2, 2, people_flags,
     "Complete a recipient from the mail that is stored here, those you write to most first.",
     cli_reader_people},
    {"reader", "drafts", "ACCOUNT", 1, 1, NULL, "List messages that are being written.",
     cli_reader_drafts},
    {"reader", "draft", "DRAFT", 1, 1, account_flags, "Show a message that is being written.",
     cli_reader_draft},
    {"reader", "continue", "ACCOUNT", 1, 1, continue_flags,
     "Continue a draft that was begun in Gmail: from now on it is one of those that are written "
     "here.",
     cli_reader_continue},
    {"reader", "save", "DRAFT", 1, 1, account_flags,
     "Save a message that is being written, from a JSON object on standard input.",
     cli_reader_save},
    {"reader", "discard", "DRAFT", 1, 1, account_flags,
     "Throw a draft away, here and at the server.", cli_reader_discard},
    {"reader", "attach", "DRAFT NAME", 2, 2, account_flags,
     "Attach standard input to a draft, as a file of this name.", cli_reader_attach},
    {"reader", "detach", "DRAFT NAME", 2, 2, account_flags, "Take a file out of a draft.",
     cli_reader_detach},
    {NULL, NULL, NULL, 0, 0, NULL, NULL, NULL},
};
