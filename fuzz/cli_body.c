/* cli_body.c - any body, path and query of the routes of the API that run commands.
 *
 * The first byte chooses the route, then come up to four lines: the parts of the path, then the
 * parameters as "name=value" up to an empty line; the rest is the body.  Whatever it is, the words that
 * would be run hold what cli/serve/api.h promises (WRD1, WRD2), checked here in another way: they are
 * parsed as a command line, and its command, its flags and its arguments are looked at. */
#include "fuzz.h"

#include "cli/cli.h"
#include "cli/serve/api.h"

enum { ROUTES_MAX = 128 };

static struct cli_api routes[ROUTES_MAX];
static size_t routes_count;

static void table_take(const struct cli *cli, const struct cli_api *table)
{
    for (; table != NULL && table->path != NULL; table++) {
        TIDE_ASSERT(routes_count < ROUTES_MAX);
        routes[routes_count] = *table;
        routes[routes_count].command = cli_api_command(cli, table);
        TIDE_ASSERT(routes[routes_count++].command != NULL);
    }
}

static struct cli *parse(int argc, char **argv, tide_status *rc)
{
    struct cli *cli = calloc(1, sizeof *cli);
    TIDE_ASSERT(cli != NULL);
    cli->mem = tide_mem_heap();
    cli->systems = cli_systems;
    tide_buf_init(&cli->out, cli->mem, CLI_OUT_BYTES_MAX);
    tide_json_object(&cli->json);
    *rc = cli_args_parse(cli, argc, argv);
    return cli;
}

static void parsed_free(struct cli *cli)
{
    tide_json_done(&cli->json);
    tide_buf_done(&cli->out);
    free(cli);
}

static void routes_make(void)
{
    char *argv[] = {(char *)(uintptr_t) "tidemark", (char *)(uintptr_t) "alerts"};
    tide_status rc = TIDE_OK;
    struct cli *cli = parse(2, argv, &rc);
    TIDE_ASSERT(rc == TIDE_OK);
    table_take(cli, cli_api_table);
    for (size_t i = 0; cli_systems[i] != NULL; i++)
        table_take(cli, cli_systems[i]->api);
    parsed_free(cli);
}

/* WRD1 */
static void check_flags(const struct cli_api *api, const struct cli *cli)
{
    TIDE_ASSERT(cli->home == NULL && cli->shared == NULL && cli->sets_count == 0);
    TIDE_ASSERT(!cli->want_help && !cli->want_version && !cli->want_json && !cli->verbose);
    TIDE_ASSERT(cli->command == api->command);
    for (unsigned i = 0; i < cli->values_count; i++) {
        const struct cli_flag *flag = cli->values[i].flag;
        if (flag->argument == NULL) /* a switch: the route's own, or an empty filter */
            TIDE_ASSERT((api->always != NULL && strcmp(flag->name, api->always) == 0) ||
                        ((api->body & CLI_API_CHOICE) != 0 && strcmp(flag->name, "all") == 0));
    }
}

/* WRD2 */
static void check_choice(const struct cli_api *api, const struct cli *cli)
{
    bool expects = false;
    for (unsigned i = 0; i < cli->values_count; i++)
        expects = expects || strcmp(cli->values[i].flag->name, "expect") == 0;
    if ((api->body & CLI_API_CHOICE) != 0)
        TIDE_ASSERT(expects != (cli->arguments_count > 0));
}

static void check_words(const struct cli_api *api, const struct cli_api_words *words)
{
    char *argv[CLI_API_WORDS_MAX + 1] = {(char *)(uintptr_t) "tidemark"};
    tide_status rc = TIDE_OK;
    TIDE_ASSERT(words->count <= CLI_API_WORDS_MAX);
    for (size_t i = 0; i < words->count; i++)
        argv[i + 1] = (char *)(uintptr_t)words->list[i];
    struct cli *cli = parse((int)words->count + 1, argv, &rc);
    if (rc == TIDE_OK) { /* else it is answered with 400 */
        check_flags(api, cli);
        check_choice(api, cli);
    }
    parsed_free(cli);
}

static tide_text line_of(struct fuzz_input *input)
{
    return fuzz_exact(fuzz_text(input, '\n'));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static struct cli_api_words words;
    struct fuzz_input input = {data, bytes};
    struct tide_httpd_pair params[4];
    if (routes_count == 0)
        routes_make();
    const struct cli_api *api = &routes[fuzz_u8(&input) % routes_count];
    const struct tide_httpd_route route = {.method = api->method, .path = api->path};
    struct tide_httpd_request request = {.route = &route, .params = params};
    size_t parts = 0;
    for (const char *at = strchr(api->path, '{'); at != NULL; at = strchr(at + 1, '{'))
        request.parts[parts++] = line_of(&input);
    while (fuzz_more(&input) && request.params_count < 4) {
        tide_text line = fuzz_text(&input, '\n');
        if (line.bytes == 0)
            break;
        struct fuzz_input pair = {(const uint8_t *)line.data, line.bytes};
        params[request.params_count].name = fuzz_exact(fuzz_text(&pair, '='));
        params[request.params_count++].value =
            fuzz_exact((tide_text){(const char *)pair.data, pair.bytes});
    }
    request.body = fuzz_exact((tide_text){(const char *)input.data, input.bytes});
    const char *wrong = cli_api_words(api, &request, &words);
    if (wrong == NULL)
        check_words(api, &words);
    else
        TIDE_ASSERT(wrong[0] != '\0');
    for (size_t i = 0; i < parts; i++)
        free((void *)(uintptr_t)request.parts[i].data);
    for (size_t i = 0; i < request.params_count; i++) {
        free((void *)(uintptr_t)params[i].name.data);
        free((void *)(uintptr_t)params[i].value.data);
    }
    free((void *)(uintptr_t)request.body.data);
    return 0;
}
