/* pasted.h - commands that a user copies from the output and gives to a shell. */
#ifndef TIDE_MAIL_READ_PASTED_H
#define TIDE_MAIL_READ_PASTED_H

#include "cli/cli.h"

/* Prints a blank and the word, as a shell takes it. */
void mail_pasted_word(struct cli *cli, const char *word);
/* Prints the command up to its words: "tidemark mail search", with --home where this one has it. */
void mail_pasted_command(struct cli *cli, const char *command);

#endif
