#include "cli/run/call.h"

#include <stdio.h>
#include <string.h>

enum { WORDS_MAX = CLI_ARGUMENTS_MAX };

static tide_status parse(struct cli *call, const char *const *words, size_t words_count)
{
    char *argv[WORDS_MAX + 1] = {(char *)(uintptr_t) "tidemark"};
    if (words_count > WORDS_MAX)
        return cli_wrong(call, "Give fewer.", "more than %d words", WORDS_MAX);
    for (size_t i = 0; i < words_count; i++)
        argv[i + 1] = (char *)(uintptr_t)words[i]; /* only read */
    return cli_args_parse(call, (int)words_count + 1, argv);
}

static struct cli *call_new(const struct cli *host)
{
    struct cli *call = tide_mem_new(host->mem, sizeof *call);
    if (call == NULL)
        return NULL;
    call->mem = host->mem;
    call->systems = host->systems;
    tide_buf_init(&call->out, call->mem, CLI_OUT_BYTES_MAX);
    tide_json_object(&call->json);
    return call;
}

/* The home is the host's, whatever the words say; settings are loaded anew, since the host's change
 * while it runs. */
static void take_home(const struct cli *host, struct cli *call, const tide_cancel *cancel)
{
    call->world = host->world;
    call->now_unix_ms = call->asked_unix_ms = tide_world_now_unix_ms(host->world);
    call->home = host->home;
    call->shared = host->shared;
    call->sets_count = host->sets_count;
    memcpy(call->sets, host->sets, sizeof call->sets);
    memcpy(call->state_dir, host->state_dir, sizeof call->state_dir);
    memcpy(call->data_dir, host->data_dir, sizeof call->data_dir);
    memcpy(call->cache_dir, host->cache_dir, sizeof call->cache_dir);
    memcpy(call->ledger_path, host->ledger_path, sizeof call->ledger_path);
    memcpy(call->config_path, host->config_path, sizeof call->config_path);
    call->inside = host->inside != NULL ? host->inside : host->account_home.engine;
    call->kept = host->kept;
    call->cancel = cancel;
    call->quiet = true;
    call->want_json = true;
}

struct cli *cli_call_open(const struct cli *host, const tide_cancel *cancel)
{
    struct cli *call = call_new(host);
    if (call != NULL)
        take_home(host, call, cancel);
    return call;
}

void cli_call_close(struct cli *call)
{
    cli_release(call);
    tide_mem_free(call->mem, call, sizeof *call);
}

static void first_line(tide_text text, char line[400])
{
    size_t bytes = 0;
    while (bytes < text.bytes && text.data[bytes] != '\n')
        bytes++;
    (void)snprintf(line, 400, "%.*s", (int)(bytes < 399 ? bytes : 399),
                   bytes == 0 ? "" : text.data);
}

/* The command ran: what is left of it goes to the caller. */
static void call_end(struct cli *call, tide_status rc, struct cli_called *called_out)
{
    called_out->exit_code = cli_conclude(call, &rc);
    called_out->status = rc;
    first_line(rc == TIDE_OK ? tide_buf_text(&call->out) : tide_text_of(call->err.text),
               called_out->line);
    (void)snprintf(called_out->hint, sizeof called_out->hint, "%s",
                   rc == TIDE_OK ? "" : call->hint);
    cli_json_conclude(call, rc);
    called_out->json = call->json;
    call->json = (tide_json){.value = NULL};
}

static tide_status call_run(struct cli *call, tide_status parsed)
{
    if (parsed != TIDE_OK) {
        call->exit_code = CLI_EXIT_USAGE;
        return parsed;
    }
    if (call->want_help || call->want_version || call->command == NULL)
        return cli_wrong(call, "Name a command.", "nothing to run");
    return call->command->run(call);
}

tide_status cli_call(const struct cli *host, const char *const *words, size_t words_count,
                     const tide_cancel *cancel, struct cli_called *called_out)
{
    const struct cli_call_from from = {.input = TIDE_TEXT("")};
    return cli_call_asked(host, words, words_count, &from, cancel, called_out);
}

tide_status cli_call_asked(const struct cli *host, const char *const *words, size_t words_count,
                           const struct cli_call_from *from, const tide_cancel *cancel,
                           struct cli_called *called_out)
{
    struct cli *call = call_new(host);
    *called_out = (struct cli_called){.status = TIDE_NO_MEMORY};
    if (call == NULL)
        return TIDE_NO_MEMORY;
    const tide_status parsed = parse(call, words, words_count);
    take_home(host, call, cancel);
    if (from->asked_unix_ms != 0)
        call->asked_unix_ms = from->asked_unix_ms;
    call->input = from->input;
    call_end(call, call_run(call, parsed), called_out);
    cli_call_close(call);
    return TIDE_OK;
}

tide_status cli_call_again(const struct cli *host, const char *const *words, size_t words_count,
                           const tide_cancel *cancel, tide_ledger **ledger,
                           struct cli_called *called_out)
{
    struct cli *call = call_new(host);
    *called_out = (struct cli_called){.status = TIDE_NO_MEMORY};
    if (call == NULL)
        return TIDE_NO_MEMORY;
    const tide_status parsed = parse(call, words, words_count);
    take_home(host, call, cancel);
    call->ledger = *ledger;
    *ledger = NULL;
    /* What opening it would do: settings are read, which may name another one. */
    if (call->ledger != NULL && (cli_ledger_choose(call) != TIDE_OK || call->shared != NULL))
        cli_ledger_close(call);
    call_end(call, call_run(call, parsed), called_out);
    if (called_out->status == TIDE_OK && call->shared == NULL && call->lock == NULL) {
        *ledger = call->ledger;
        call->ledger = NULL;
    }
    cli_call_close(call);
    return TIDE_OK;
}

void cli_called_done(struct cli_called *called)
{
    tide_json_done(&called->json);
}

static tide_status call_check(struct cli *call, const struct cli *host, cli_call_checker *check,
                              void *arg)
{
    if (call->home != NULL || call->shared != NULL || call->sets_count > 0 || call->want_help ||
        call->want_version)
        return cli_wrong(call, "Name them before the words of this command.",
                         "--home, --ledger and --set are those of the process that runs it");
    if (call->command == NULL)
        return cli_wrong(call, "Name a command.", "nothing to run");
    take_home(host, call, NULL);
    return check(call, arg);
}

tide_status cli_call_check(struct cli *host, const char *const *words, size_t words_count,
                           cli_call_checker *check, void *arg)
{
    struct cli *call = call_new(host);
    if (call == NULL)
        return cli_fail(host, TIDE_NO_MEMORY, "Free some memory.", "out of memory");
    tide_status rc = parse(call, words, words_count);
    if (rc != TIDE_OK)
        call->exit_code = CLI_EXIT_USAGE;
    else
        rc = call_check(call, host, check, arg);
    if (rc != TIDE_OK) {
        host->err = call->err;
        memcpy(host->hint, call->hint, sizeof host->hint);
        host->exit_code = call->exit_code;
    }
    cli_call_close(call);
    return rc;
}
