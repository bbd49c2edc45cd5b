/* access.c - keys in the ledger, and the ops by which a terminal manages them. */
#include "cli/serve/serve.h"

#include "ledger/rows.h"
#include "serve/access/keys_rows.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Below the time that a command waits for an answer. */
enum { PAIRING_WAIT_MS = TIDE_CONTROL_TIMEOUT_MS - 5000 };
static_assert((int)TIDE_PAIRING_TAKE_MS < (int)TIDE_CONTROL_TIMEOUT_MS,
              "the browser has time to come");

/* ---- the store ---- */

struct store_work {
    enum { LOAD, ADD, REVOKE } what;
    bool (*take)(void *arg, const struct tide_key *key);
    void *take_arg;
    const struct tide_key *key;
    const char *home;
    uint64_t id; /* to revoke, or to make room */
    uint64_t now_unix_ms;
};

static tide_status store_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct store_work *work = arg;
    const tide_rows rows = tide_transaction_rows(transaction);
    switch (work->what) {
    case LOAD: {
        const tide_status rc = cli_serve_tables(rows, err);
        return rc == TIDE_OK
                   ? tide_keys_rows_load(rows, work->home, work->take, work->take_arg, err)
                   : rc;
    }
    case ADD:
        return tide_keys_rows_add(rows, work->home, work->key, work->id, err);
    case REVOKE:
        break;
    }
    return tide_keys_rows_revoke(rows, work->home, work->id, work->now_unix_ms, err);
}

static tide_status store_load(void *arg, bool (*take)(void *take_arg, const struct tide_key *key),
                              void *take_arg, tide_error *err)
{
    const struct cli_serve *serve = arg;
    struct store_work work = {
        .what = LOAD, .home = serve->home, .take = take, .take_arg = take_arg};
    return tide_transact(serve->engine, store_run, &work, err);
}

static tide_status store_add(void *arg, const struct tide_key *key, uint64_t gone, tide_error *err)
{
    const struct cli_serve *serve = arg;
    struct store_work work = {.what = ADD, .home = serve->home, .key = key, .id = gone};
    return tide_transact(serve->engine, store_run, &work, err);
}

static tide_status store_revoke(void *arg, uint64_t id, uint64_t now_unix_ms, tide_error *err)
{
    const struct cli_serve *serve = arg;
    struct store_work work = {
        .what = REVOKE, .home = serve->home, .id = id, .now_unix_ms = now_unix_ms};
    return tide_transact(serve->engine, store_run, &work, err);
}

static void wake(void *arg)
{
    struct cli_serve *serve = arg;
    tide_httpd *server = cli_serve_http(serve);
    if (server != NULL)
        tide_httpd_wake(server);
}

tide_status cli_serve_access_open(struct cli_serve *serve, tide_error *err)
{
    struct cli *cli = serve->cli;
    char host[56] = "";
    (void)gethostname(host, sizeof host - 1);
    if (cli->shared != NULL)
        (void)snprintf(serve->home, sizeof serve->home, "%.55s:%.199s", host, cli->state_dir);
    const struct tide_keys_store store = {store_load, store_add, store_revoke, serve};
    tide_status rc = tide_keys_new(cli->world, cli->mem, &store, &serve->keys, err);
    if (rc == TIDE_OK)
        rc = tide_pairings_new(cli->world, cli->mem, serve->keys, wake, serve, &serve->pairings,
                               err);
    return rc;
}

void cli_serve_access_close(struct cli_serve *serve)
{
    tide_pairings_free(serve->pairings);
    tide_keys_free(serve->keys);
    serve->pairings = NULL;
    serve->keys = NULL;
}

/* ---- token ---- */

static void token_json(void *arg, const struct tide_key *key)
{
    tide_json token;
    tide_json_object(&token);
    tide_json_set_u64(&token, "id", key->id);
    tide_json_set_cstr(&token, "name", key->name);
    tide_json_set_cstr(&token, "scope", tide_key_scope_name(key->scope));
    tide_json_set_u64(&token, "created_unix_ms", key->created_unix_ms);
    tide_json_set_u64(&token, "expires_unix_ms", key->expires_unix_ms);
    tide_json_set_u64(&token, "revoked_unix_ms", key->revoked_unix_ms);
    tide_json_append(arg, &token);
}

static tide_status token_add(struct cli_serve *serve, const json_t *request, tide_json *answer,
                             tide_error *err)
{
    tide_text name = TIDE_TEXT_NONE;
    tide_text scope_name = TIDE_TEXT_NONE;
    tide_httpd_scope scope = TIDE_HTTPD_NONE;
    uint64_t lifetime_ms = 0;
    uint64_t id = 0;
    char key[TIDE_KEY_TEXT_BYTES + 1];
    tide_status rc = tide_json_get_text(request, "name", &name, err);
    if (rc == TIDE_OK)
        rc = tide_json_get_text(request, "scope", &scope_name, err);
    if (rc == TIDE_OK)
        rc = tide_json_get_u64(request, "lifetime_ms", &lifetime_ms, err);
    /* Only a browser that was compared with a terminal gets the scope of the page. */
    if (rc == TIDE_OK && (!tide_key_scope_parse(scope_name, &scope) || scope == TIDE_HTTPD_PAGE))
        rc = tide_error_set(err, TIDE_INVALID, "scopes of tokens are metrics, look and work");
    if (rc == TIDE_OK)
        rc = tide_keys_add(serve->keys, name, scope, lifetime_ms, key, &id, err);
    if (rc == TIDE_OK) {
        tide_json_set_u64(answer, "id", id);
        tide_json_set_cstr(answer, "key", key);
    }
    explicit_bzero(key, sizeof key);
    return rc;
}

static const char *wanted(const json_t *request)
{
    const char *what = json_string_value(json_object_get(request, "do"));
    return what == NULL ? "" : what;
}

tide_status cli_serve_op_token(void *arg, const json_t *request, tide_json *answer, tide_error *err)
{
    struct cli_serve *serve = arg;
    const char *what = wanted(request);
    if (strcmp(what, "add") == 0)
        return token_add(serve, request, answer, err);
    if (strcmp(what, "revoke") == 0) {
        uint64_t id = 0;
        const tide_status rc = tide_json_get_u64(request, "id", &id, err);
        return rc == TIDE_OK ? tide_keys_revoke(serve->keys, id, err) : rc;
    }
    if (strcmp(what, "list") != 0)
        return tide_error_set(err, TIDE_INVALID, "token: \"do\" is add, list or revoke");
    tide_json tokens;
    tide_json_array(&tokens);
    tide_keys_each(serve->keys, token_json, &tokens);
    tide_json_set(answer, "tokens", &tokens);
    return TIDE_OK;
}

/* ---- pairing ---- */

static tide_status pairing_wait(struct cli_serve *serve, tide_json *answer)
{
    struct tide_pairing_row rows[TIDE_PAIRINGS_MAX];
    tide_json list;
    (void)tide_pairing_wait(serve->pairings, tide_world_now_us(serve->cli->world) +
                                                 PAIRING_WAIT_MS * (uint64_t)1000);
    const size_t count =
        tide_pairing_list(serve->pairings, tide_pairings_now_ms(serve->pairings), rows);
    tide_json_array(&list);
    for (size_t i = 0; i < count; i++) {
        tide_json row;
        tide_json_object(&row);
        tide_json_set_cstr(&row, "code", rows[i].code);
        tide_json_set_cstr(&row, "agent", rows[i].agent);
        tide_json_set_u64(&row, "age_ms", rows[i].age_ms);
        tide_json_append(&list, &row);
    }
    tide_json_set(answer, "pairings", &list);
    return TIDE_OK;
}

tide_status cli_serve_op_pairing(void *arg, const json_t *request, tide_json *answer,
                                 tide_error *err)
{
    struct cli_serve *serve = arg;
    const char *what = wanted(request);
    tide_text code = TIDE_TEXT_NONE;
    uint64_t lifetime_ms = 0;
    uint64_t id = 0;
    if (strcmp(what, "wait") == 0)
        return pairing_wait(serve, answer);
    tide_status rc = tide_json_get_text(request, "code", &code, err);
    if (rc == TIDE_OK && strcmp(what, "refuse") == 0)
        return tide_pairing_refuse(serve->pairings, code, err);
    if (rc == TIDE_OK && strcmp(what, "approve") != 0)
        rc = tide_error_set(err, TIDE_INVALID, "pairing: \"do\" is wait, approve or refuse");
    if (rc == TIDE_OK)
        rc = tide_json_get_u64(request, "lifetime_ms", &lifetime_ms, err);
    if (rc == TIDE_OK)
        rc = tide_pairing_approve(serve->pairings, code, lifetime_ms, 0, &id, err);
    if (rc == TIDE_OK)
        tide_json_set_u64(answer, "id", id);
    return rc;
}
