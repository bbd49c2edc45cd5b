/* table.c - the commands of the Search Console system and their flags. */
#include "console/commands/home.h"

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
    {"workers", "N", "send N HTTP requests at once, 1 to 10 (default: console.workers)"},
    {"batch", "N",
     "put up to N queries into one HTTP request, 1 to 50 (default: grows to console.batch)"},
    {"rows", "N", "request N rows per page, 1 to 25000 (default 25000)"},
    {"no-totals", NULL, "do not fetch the totals of each day"},
    {"again", NULL, "fetch days again that are stored and final"},
    {NULL, NULL, NULL},
};

static const struct cli_flag console_sync_flags[] = {
    {"workers", "N", "send N HTTP requests at once, 1 to 10 (default: console.workers)"},
    {"name", "NAME", "sync the sites of this sign-in, instead of SITE"},
    {"no-wait", NULL, "ask the running process (`tidemark serve`) to do it, and do not wait"},
    {NULL, NULL, NULL},
};

static const struct cli_flag console_report_flags[] = {
    {"from", "DATE", "report from this day on (default: 28 days before --to)"},
    {"to", "DATE", "report up to this day (default: last stored; with --compare last final)"},
    {"type", "TYPE", "report this search type (default: web)"},
    {"by", "DIMENSION:query page country device",
     "list the top query, page, country or device (default: query)"},
    {"limit", "N", "list the top N (default 10)"},
    {"compare", NULL, "compare with the same number of days before; all days must be stored"},
    {"compare-from", "DATE", "compare with the days from this one on"},
    {"csv", "WHAT:days top", "print CSV: days or top"},
    {NULL, NULL, NULL},
};

const struct cli_command console_commands[] = {
    {"console", "sites", "", 0, 0, console_sites_flags,
     "List the properties that a sign-in can read, and which of them were added.",
     cli_console_sites},
    {"console", "backfill", "SITE", 1, 1, console_backfill_flags,
     "Fetch the search analytics of many days. Safe to interrupt; the next run resumes.",
     cli_console_backfill},
    {"console", "sync", "[SITE...]", 0, CLI_ARGUMENTS_MAX, console_sync_flags,
     "Fetch days that are new, were not final, or lack rows.", cli_console_sync},
    {"console", "status", "[SITE...]", 0, CLI_ARGUMENTS_MAX, NULL,
     "Show the last complete day of each series, and what is stored.", cli_console_status},
    {"console", "report", "SITE", 1, 1, console_report_flags,
     "Show the totals of a range of days, and the top queries or pages.", cli_console_report},
    {"console", "remove", "SITE", 1, 1, NULL, "Stop fetching a site; stored data stays.",
     cli_console_remove},
    {NULL, NULL, NULL, 0, 0, NULL, NULL, NULL},
};
