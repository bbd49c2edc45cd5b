#include "mail/read/pasted.h"

#include <stdlib.h>
#include <string.h>

void mail_pasted_word(struct cli *cli, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_@%+=:,./-";
    if (word[0] != '\0' && word[strspn(word, plain)] == '\0') {
        cli_print(cli, " %s", word);
        return;
    }
    /* Control characters as bash, zsh and ksh write them: some would be marks of ours. */
    bool control = false;
    for (const char *at = word; *at != '\0'; at++)
        control = control || (unsigned char)*at < 0x20 || *at == 0x7f;
    cli_print(cli, control ? " $'" : " '");
    for (; *word != '\0'; word++) {
        if ((unsigned char)*word < 0x20 || *word == 0x7f)
            cli_print(cli, "\\%03o", (unsigned)(unsigned char)*word);
        else if (*word == '\'')
            cli_print(cli, control ? "\\'" : "'\\''");
        else
            cli_print(cli, control && *word == '\\' ? "\\\\" : "%c", *word);
    }
    cli_print(cli, "'");
}

void mail_pasted_command(struct cli *cli, const char *command)
{
    const char *home = getenv("TIDEMARK_HOME");
    cli_print(cli, "tidemark");
    if (cli->home != NULL && (home == NULL || strcmp(home, cli->home) != 0)) {
        cli_print(cli, " --home");
        mail_pasted_word(cli, cli->home);
    }
    cli_print(cli, " %s", command);
}
