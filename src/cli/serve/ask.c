#include "cli/serve/serve.h"

#include <string.h>

tide_status cli_serve_ask(struct cli *cli, tide_json *request, json_t **answer_out)
{
    bool runs = false;
    tide_status rc = cli_engine_ask(cli, request, &runs, answer_out);
    /* Another command has the home, and knows no such op. */
    const bool other = rc == TIDE_INVALID &&
                       strncmp(cli->err.text, "there is no op", strlen("there is no op")) == 0;
    if (runs && !other)
        return rc;
    return cli_fail(cli, TIDE_NOT_FOUND,
                    "Start it: `tidemark serve`, or `systemctl --user start tidemark`.",
                    "`tidemark serve` does not run in %.300s", cli->state_dir);
}
