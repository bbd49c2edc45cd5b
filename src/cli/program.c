/* program.c - a program with some systems: reads the command line, runs one command and prints its
 * result. */
#include "cli/cli.h"
#include "db/db.h"

#include <malloc.h>
#include <signal.h>

/* Twenty threads allocate and free messages of megabytes.  By default the C library raises
 * its threshold with the first large block and then keeps such blocks, in one heap per thread:
 * 100,000 messages needed half a gigabyte.  With these limits large blocks are returned at
 * once, and the threads share few heaps. */
enum { LARGE_BYTES = 256 << 10, HEAPS = 2, HEAP_FREE_BYTES = 4 << 20 };

static void memory_settings(void)
{
    (void)mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
    (void)mallopt(M_TRIM_THRESHOLD, HEAP_FREE_BYTES);
    (void)mallopt(M_ARENA_MAX, HEAPS);
}

static int usage(struct cli *cli, tide_status rc)
{
    cli->exit_code = CLI_EXIT_USAGE;
    return cli_finish(cli, rc);
}

/* Help and version open no directory. */
static int about(struct cli *cli)
{
    if (cli->want_help)
        cli_help(cli);
    else
        cli_print(cli, "tidemark %s\n", TIDE_VERSION);
    if (cli->want_help)
        tide_json_set_text(&cli->json, "help", tide_buf_text(&cli->out));
    else
        tide_json_set_cstr(&cli->json, "version", TIDE_VERSION);
    cli->command = NULL;
    return cli_finish(cli, TIDE_OK);
}

int cli_program(const struct tide_system *const *systems, int argc, char **argv)
{
    memory_settings();
    tide_db_tune_process();
    struct cli cli = {.mem = tide_mem_heap(), .systems = systems};
    tide_systems_check(cli.systems);
    /* A reader that closes the pipe (`| head`) makes write() fail; it must not kill us in
     * the middle of a change. */
    (void)signal(SIGPIPE, SIG_IGN);
    tide_buf_init(&cli.out, cli.mem, CLI_OUT_BYTES_MAX);
    tide_json_object(&cli.json);

    int code = CLI_EXIT_DONE;
    tide_status rc = cli_args_parse(&cli, argc, argv);
    if (rc != TIDE_OK) {
        cli.command = NULL;
        code = usage(&cli, rc);
    } else if (cli.want_help || cli.want_version) {
        code = about(&cli);
    } else {
        rc = cli_start(&cli);
        if (rc == TIDE_OK)
            rc = cli.command->run(&cli);
        code = cli_finish(&cli, rc);
    }
    cli_end(&cli);
    return code;
}
