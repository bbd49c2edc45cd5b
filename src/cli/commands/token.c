/* token.c - `tidemark open` lets a browser in; `tidemark token` manages keys of the page's API. */
#include "cli/serve/serve.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define DAY_MS 86400000ull
enum { OPEN_DAYS = 30, OPEN_WAIT_MS = 300000, DAYS_MAX = 3650 };

static void request_begin(tide_json *request, const char *op, const char *what)
{
    tide_json_object(request);
    tide_json_set_cstr(request, "op", op);
    if (what != NULL)
        tide_json_set_cstr(request, "do", what);
}

/* ---- open ---- */

static tide_status wait_for_browser(struct cli *cli, json_t **pairings_out)
{
    const uint64_t until_ms = tide_world_now_ms(cli->world) + OPEN_WAIT_MS;
    while (!cli_interrupted(cli) && tide_world_now_ms(cli->world) < until_ms) {
        tide_json request;
        json_t *answer = NULL;
        request_begin(&request, "pairing", "wait");
        const tide_status rc = cli_serve_ask(cli, &request, &answer);
        if (rc != TIDE_OK)
            return rc;
        json_t *pairings = json_incref(json_object_get(answer, "pairings"));
        json_decref(answer);
        *pairings_out = pairings;
        if (json_array_size(pairings) > 0)
            return TIDE_OK;
        json_decref(pairings);
        *pairings_out = NULL;
    }
    return cli_fail(cli, cli_interrupted(cli) ? TIDE_CANCELED : TIDE_TIMEOUT,
                    "Open the page, and run `tidemark open` again.", "no browser asked to come in");
}

static bool says_yes(void)
{
    char line[64];
    return fgets(line, sizeof line, stdin) != NULL &&
           (strcmp(line, "y\n") == 0 || strcmp(line, "yes\n") == 0 || strcmp(line, "Y\n") == 0);
}

static tide_status answer_browser(struct cli *cli, const char *code, bool approve)
{
    tide_json request;
    json_t *answer = NULL;
    request_begin(&request, "pairing", approve ? "approve" : "refuse");
    tide_json_set_cstr(&request, "code", code);
    tide_json_set_u64(&request, "lifetime_ms", OPEN_DAYS * DAY_MS);
    const tide_status rc = cli_serve_ask(cli, &request, &answer);
    if (rc == TIDE_OK && approve)
        tide_json_set_u64(&cli->json, "token",
                          (uint64_t)json_integer_value(json_object_get(answer, "id")));
    json_decref(answer);
    return cli_hint(cli, rc, "Load the page again, and run `tidemark open` again.");
}

/* Several browsers may ask; each is a question of its own. */
static tide_status ask_user(struct cli *cli, const json_t *pairings)
{
    tide_status rc = TIDE_OK;
    bool approved = false;
    for (size_t i = 0; rc == TIDE_OK && !approved && i < json_array_size(pairings); i++) {
        const json_t *one = json_array_get(pairings, i);
        const char *code = json_string_value(json_object_get(one, "code"));
        const char *agent = json_string_value(json_object_get(one, "agent"));
        const uint64_t age_ms = (uint64_t)json_integer_value(json_object_get(one, "age_ms"));
        (void)fprintf(stderr,
                      "A browser asks to come in: %s, %" PRIu64 " s ago, code %s.\n"
                      "Is this the code on your screen? [y/N] ",
                      agent == NULL ? "unknown" : agent, age_ms / 1000, code == NULL ? "" : code);
        approved = says_yes();
        rc = answer_browser(cli, code == NULL ? "" : code, approved);
        tide_json_set_cstr(&cli->json, "code", code);
        tide_json_set_cstr(&cli->json, "browser", agent);
    }
    if (rc != TIDE_OK)
        return rc;
    tide_json_set_bool(&cli->json, "approved", approved);
    if (approved)
        cli_print(cli,
                  "Let in for %d days. `tidemark token list` shows it, `tidemark token revoke` "
                  "ends it.\n",
                  OPEN_DAYS);
    else
        cli_print(cli, "Refused.\n");
    cli->exit_code = approved ? CLI_EXIT_DONE : CLI_EXIT_FAILED;
    return TIDE_OK;
}

tide_status cli_open(struct cli *cli)
{
    tide_json request;
    json_t *answer = NULL;
    json_t *pairings = NULL;
    request_begin(&request, "page", NULL);
    tide_status rc = cli_serve_ask(cli, &request, &answer);
    if (rc != TIDE_OK)
        return rc;
    const char *address = json_string_value(json_object_get(answer, "address"));
    tide_json_set_cstr(&cli->json, "address", address);
    if (cli_flag(cli, "address") != NULL) {
        cli_print(cli, "%s\n", address == NULL ? "" : address);
        json_decref(answer);
        return TIDE_OK;
    }
    (void)fprintf(stderr, "Open %s in a browser on this machine.\n",
                  address == NULL ? "" : address);
    json_decref(answer);
    (void)cli_interruptible(cli);
    rc = wait_for_browser(cli, &pairings);
    if (rc == TIDE_OK)
        rc = ask_user(cli, pairings);
    json_decref(pairings);
    return rc;
}

/* ---- token ---- */

tide_status cli_token_add(struct cli *cli)
{
    const char *scope = cli_flag(cli, "scope");
    const char *days_text = cli_flag(cli, "days");
    uint64_t days = 0;
    tide_json request;
    json_t *answer = NULL;
    if (scope == NULL)
        return cli_wrong(cli, "Give --scope metrics, look (all but mail) or work (actions, too).",
                         "a token needs a scope");
    tide_status rc = days_text == NULL ? TIDE_OK : cli_number(cli, days_text, "--days", &days);
    if (rc == TIDE_OK && days > DAYS_MAX)
        rc =
            cli_wrong(cli, "Omit it for a token without an end.", "--days is at most %d", DAYS_MAX);
    if (rc != TIDE_OK)
        return rc;
    request_begin(&request, "token", "add");
    tide_json_set_cstr(&request, "name", cli->arguments[0]);
    tide_json_set_cstr(&request, "scope", scope);
    tide_json_set_u64(&request, "lifetime_ms", days * DAY_MS);
    rc = cli_serve_ask(cli, &request, &answer);
    if (rc != TIDE_OK)
        return cli_hint(cli, rc, "See `tidemark token add --help`.");
    const uint64_t id = (uint64_t)json_integer_value(json_object_get(answer, "id"));
    const char *key = json_string_value(json_object_get(answer, "key"));
    if (!cli->quiet)
        (void)fprintf(stderr,
                      "Token %" PRIu64 ". It is shown this once; send it as the header "
                      "`Authorization: Bearer TOKEN`.\n",
                      id);
    cli_print(cli, "%s\n", key == NULL ? "" : key);
    tide_json_set_u64(&cli->json, "id", id);
    tide_json_set_cstr(&cli->json, "key", key);
    json_decref(answer);
    return TIDE_OK;
}

static uint64_t number(const json_t *object, const char *field)
{
    const json_int_t value = json_integer_value(json_object_get(object, field));
    return value < 0 ? 0 : (uint64_t)value;
}

static const char *state_of(const struct cli *cli, const json_t *token)
{
    const uint64_t expires = number(token, "expires_unix_ms");
    return number(token, "revoked_unix_ms") > 0         ? "revoked"
           : expires > 0 && expires <= cli->now_unix_ms ? "expired"
                                                        : "valid";
}

tide_status cli_token_list(struct cli *cli)
{
    static const char *const headings[] = {"ID", "NAME", "SCOPE", "STATE", "CREATED", "EXPIRES"};
    tide_json request;
    json_t *answer = NULL;
    request_begin(&request, "token", "list");
    const tide_status rc = cli_serve_ask(cli, &request, &answer);
    if (rc != TIDE_OK)
        return rc;
    const json_t *tokens = json_object_get(answer, "tokens");
    tide_json list;
    tide_json_array(&list);
    cli_table_begin(cli, headings, 6);
    for (size_t i = 0; i < json_array_size(tokens); i++) {
        json_t *token = json_array_get(tokens, i);
        const char *name = json_string_value(json_object_get(token, "name"));
        const char *scope = json_string_value(json_object_get(token, "scope"));
        char when[32];
        (void)json_object_set_new(token, "state", json_string(state_of(cli, token)));
        cli_cell(cli, "%" PRIu64, number(token, "id"));
        cli_cell_text(cli, tide_text_of(name == NULL ? "" : name));
        cli_cell(cli, "%s", scope == NULL ? "" : scope);
        cli_cell(cli, "%s", state_of(cli, token));
        cli_cell(cli, "%s", cli_time(number(token, "created_unix_ms"), when));
        cli_cell(cli, "%s", cli_time(number(token, "expires_unix_ms"), when));
        tide_json_append(&list, &(tide_json){.value = json_incref(token)});
    }
    cli_table_end(cli,
                  "no tokens; `tidemark open` lets a browser in, `tidemark token add` a program");
    tide_json_set(&cli->json, "tokens", &list);
    json_decref(answer);
    return TIDE_OK;
}

tide_status cli_token_revoke(struct cli *cli)
{
    uint64_t id = 0;
    tide_json request;
    json_t *answer = NULL;
    tide_status rc = cli_number(cli, cli->arguments[0], "the token's id", &id);
    if (rc != TIDE_OK)
        return rc;
    request_begin(&request, "token", "revoke");
    tide_json_set_u64(&request, "id", id);
    rc = cli_serve_ask(cli, &request, &answer);
    json_decref(answer);
    if (rc == TIDE_OK) {
        cli_print(cli, "Token %" PRIu64 " is revoked.\n", id);
        tide_json_set_u64(&cli->json, "revoked", id);
    }
    return cli_hint(cli, rc, "`tidemark token list` shows the ids.");
}
