/* main.c - the program `tidemark`.  It uses nothing but the library. */
#include "cli/cli.h"

int main(int argc, char **argv)
{
    return cli_program(cli_systems, argc, argv);
}
