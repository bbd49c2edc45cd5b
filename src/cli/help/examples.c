/* examples.c - lines that a user may type, for help.  tests/e2e/cli_test.sh checks that each command and each flag
 * in them exists; systems have examples of their own. */
#include "cli/cli.h"

const struct cli_example cli_examples[] = {
    {"account halt", "account halt ada@example.com --reason \"on holiday\"",
     "stop its work until `account resume`"},
    {"status", "status --watch", "look again every second"},
    {"serve", "serve", "keep every account up to date, with a page at 127.0.0.1:7433"},
    {"schedule add", "schedule add --at \"weekly sun 03:00\" backup /media/disk/tidemark",
     "copy everything once a week"},
    {"alerts setup", "alerts setup --account ada@example.com",
     "send mail about alerts to yourself"},
    {"log", "log --follow --level warn", "follow what goes wrong"},
    {"backup", "backup /media/disk/tidemark", "copy state, archives and settings"},
    {"restore", "restore /media/disk/tidemark", "on a new machine; sign in again afterwards"},
    {"config list", "config list --changed", "what is not at its default"},
    {"config set", "config set bandwidth.down 2MiB", "limit downloads; followed within seconds"},
    {"config unset", "config unset bandwidth.down", "back to the default"},
    {"config edit", "config edit", "in your editor; a wrong file is refused, and kept"},
    {"completion", "completion zsh >~/.zfunc/_tidemark", "where distributions do not install it"},
    {"completion", "completion fish >~/.config/fish/completions/tidemark.fish",
     "the same for fish"},
    {"jobs list", "jobs list --state failed", "failed jobs, newest first"},
    {"jobs explain", "jobs explain 12", "why job 12 is not running, and what would help"},
    {"bad list", "bad list --account ada@example.com", "items that fail while others succeed"},
    {"ledger members", "ledger members --ledger postgres://db.example.org/tidemark",
     "who works on that ledger"},
    {NULL, NULL, NULL},
};
