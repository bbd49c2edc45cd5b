/* table.c - the commands of the assistant and their flags. */
#include "assistant/commands/home.h"

static const struct cli_flag onboard_flags[] = {
    {"chat", "NAME", "ask the models of this chat account (default: the only one)"},
    {"timeout", "DURATION", "stop after this time, such as 10m; run it again to resume"},
    {NULL, NULL, NULL},
};

static const struct cli_flag sync_flags[] = {
    {"full", NULL, "look at the inbox of the last days itself, not only at what changed"},
    {"wait", NULL, "wait until all is done, also if a running process (`tidemark serve`) does it"},
    {"timeout", "DURATION",
     "stop after this time, such as 10m; the next run resumes (exit code 5)"},
    {NULL, NULL, NULL},
};

static const struct cli_flag classify_flags[] = {
    {"account", "EMAIL", "the account of the thread (default: the only one)"},
    {"wait", NULL, "wait until all is done, also if a running process (`tidemark serve`) does it"},
    {"timeout", "DURATION",
     "stop after this time, such as 10m; the next run resumes (exit code 5)"},
    {NULL, NULL, NULL},
};

static const struct cli_flag show_flags[] = {
    {"account", "EMAIL", "only threads of this account"},
    {"status", "STATUS:pending drafted rework_requested sent skipped archived",
     "only threads in this status"},
    {"category", "CATEGORY:needs_response action_required payment_request fyi waiting",
     "only threads of this category"},
    {"sender", "ADDRESS", "only threads whose last message is from this address"},
    {"limit", "N", "show at most N threads (default: 50)"},
    {"after", "PLACE", "continue behind a place that an earlier list named"},
    {"order", "ORDER:newest oldest", "begin with the latest change (default) or the earliest"},
    {NULL, NULL, NULL},
};

/* Those of all lists but the one of threads. */
#define LOG_FLAGS                                                                                  \
    {"account", "EMAIL", "only of this account"}, {"thread", "THREAD", "only of this thread"},     \
        {"limit", "N", "show at most N (default: 50)"},                                            \
        {"after", "ID", "continue behind the last one of an earlier list"},                        \
    {                                                                                              \
        "order", "ORDER:newest oldest", "begin with the newest (default) or the oldest"            \
    }

static const struct cli_flag events_flags[] = {
    {"kind", "KIND", "only this kind, such as classified"},
    LOG_FLAGS,
    {NULL, NULL, NULL},
};

static const struct cli_flag calls_flags[] = {
    {"kind", "KIND:classify context draft rework agent", "only calls for this"},
    {"state", "STATE:answered failed open", "only calls that ended so, or did not end yet"},
    LOG_FLAGS,
    {"bytes", "N", "of one call: show at most N bytes of each text (default: 262144)"},
    {NULL, NULL, NULL},
};

static const struct cli_flag runs_flags[] = {
    {"status", "STATUS:running done limit escalated failed", "only runs in this status"},
    LOG_FLAGS,
    {NULL, NULL, NULL},
};

static const struct cli_flag explain_flags[] = {
    {"account", "EMAIL", "the account of the thread (default: the only one)"},
    {NULL, NULL, NULL},
};

static const struct cli_flag costs_flags[] = {
    {"days", "N", "show this many days, today included (default: 30)"},
    {NULL, NULL, NULL},
};

const struct cli_command assistant_commands[] = {
    {"assistant", "onboard", "EMAIL", 1, 1, onboard_flags,
     "Set the assistant up for a Gmail account: its labels, and assistant.yaml if there is none.",
     cli_assistant_onboard},
    {"assistant", "offboard", "EMAIL", 1, 1, NULL,
     "End the assistant for an account; its records stay, and labels and drafts in Gmail.",
     cli_assistant_offboard},
    {"assistant", "sync", "[EMAIL...]", 0, CLI_ARGUMENTS_MAX, sync_flags,
     "Look for new mail and the user's labels; classify, label and draft.", cli_assistant_sync},
    {"assistant", "classify", "THREAD", 1, 1, classify_flags,
     "Have a thread classified again; a draft that is there stays if it still needs an answer.",
     cli_assistant_classify},
    {"assistant", "status", "", 0, 0, NULL,
     "Show how far the assistant is with each account, and what the model cost today.",
     cli_assistant_status},
    {"assistant", "show", "", 0, 0, show_flags,
     "List the threads that the assistant has dealt with, the latest change first.",
     cli_assistant_show},
    {"assistant", "explain", "THREAD", 1, 1, explain_flags,
     "Show all that happened to a thread: events, model calls, agents, drafts.",
     cli_assistant_explain},
    {"assistant", "users", "[EMAIL]", 0, 1, NULL,
     "List for whom the assistant works, with labels, settings and how far history was read.",
     cli_assistant_users},
    {"assistant", "events", "", 0, 0, events_flags,
     "List what happened to threads: the audit of all that the assistant did.",
     cli_assistant_events},
    {"assistant", "calls", "[CALL]", 0, 1, calls_flags,
     "List what chat models were asked; of one call show prompt and answer.", cli_assistant_calls},
    {"assistant", "runs", "[RUN]", 0, 1, runs_flags,
     "List the runs of agents; of one run show its tools and its last message.",
     cli_assistant_runs},
    {"assistant", "rules", "test MESSAGE", 2, 2, NULL,
     "Show which rule decides on a message, and why; MESSAGE is a file, or - for standard input.",
     cli_assistant_rules},
    {"assistant", "costs", "", 0, 0, costs_flags,
     "List the tokens that calls to chat models cost, by day, account and model.",
     cli_assistant_costs},
    {NULL, NULL, NULL, 0, 0, NULL, NULL, NULL},
};
