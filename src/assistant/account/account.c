#include "assistant/account/account.h"

#include "net/oauth/key.h"

#include <stdio.h>
#include <string.h>

#define WHAT "the chat accounts"

static const char tables[] =
    "CREATE TABLE IF NOT EXISTS assistant_account("
    " account INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, endpoint TEXT NOT NULL,"
    " options TEXT NOT NULL"
    ") STRICT;";

tide_status tide_assistant_account_tables(tide_rows db, tide_error *err)
{
    return tide_rows_tables(db, tables, WHAT, err);
}

tide_status tide_assistant_account_put(tide_rows db, const struct tide_assistant_account *account,
                                       tide_error *err)
{
    char options[TIDE_ASSISTANT_OPTIONS_BYTES];
    TIDE_TRY(tide_assistant_options_write(account, options, err));
    /* An account of this name with another number was removed from the ledger. */
    TIDE_TRY(tide_rows_do(db, WHAT, err,
                          "DELETE FROM assistant_account WHERE name = ?1 AND account <> ?2",
                          account->name, account->number));
    return tide_rows_do(db, WHAT, err,
                        "INSERT INTO assistant_account(account, name, endpoint, options)"
                        " VALUES(?1, ?2, ?3, ?4) ON CONFLICT(account) DO UPDATE SET"
                        " name = ?2, endpoint = ?3, options = ?4",
                        account->number, account->name, account->endpoint, options);
}

static tide_status row_read(const tide_rows_stmt *stmt, struct tide_assistant_account *account_out,
                            tide_error *err)
{
    struct tide_assistant_account account = {.number = tide_rows_get_u32(stmt, 0)};
    tide_rows_get_copy(stmt, 1, account.name, sizeof account.name);
    tide_rows_get_copy(stmt, 2, account.endpoint, sizeof account.endpoint);
    TIDE_TRY(tide_assistant_options_read(tide_rows_get_text(stmt, 3), &account, err));
    *account_out = account;
    return TIDE_OK;
}

#define COLUMNS "SELECT account, name, endpoint, options FROM assistant_account"

tide_status tide_assistant_account_get(tide_rows db, uint32_t number,
                                       struct tide_assistant_account *account_out, tide_error *err)
{
    tide_auto_rows stmt = {0};
    TIDE_TRY(tide_rows_first(db, WHAT, &stmt, err, COLUMNS " WHERE account = ?1", number));
    return row_read(&stmt, account_out, err);
}

tide_status tide_assistant_account_named(tide_rows db, const char *name,
                                         struct tide_assistant_account *account_out,
                                         tide_error *err)
{
    tide_auto_rows stmt = {0};
    TIDE_TRY(tide_rows_first(db, WHAT, &stmt, err, COLUMNS " WHERE name = ?1", name));
    return row_read(&stmt, account_out, err);
}

tide_status tide_assistant_account_choose(tide_rows db, const char *name,
                                          struct tide_assistant_account *account_out,
                                          tide_error *err)
{
    if (name[0] != '\0') {
        const tide_status rc = tide_assistant_account_named(db, name, account_out, err);
        return rc != TIDE_NOT_FOUND
                   ? rc
                   : tide_error_set(
                         err, rc,
                         "assistant.yaml names the chat account \"%.100s\", and there is "
                         "none of that name: `tidemark account add chat %.100s`",
                         name, name);
    }
    tide_auto_rows stmt = {0};
    struct tide_assistant_account first;
    tide_status rc = TIDE_OK;
    size_t count = 0;
    TIDE_TRY(tide_rows_ask(db, WHAT, &stmt, err, COLUMNS " ORDER BY account LIMIT 2"));
    while (tide_rows_next(&stmt, &rc, err)) {
        if (count++ == 0)
            TIDE_TRY(row_read(&stmt, &first, err));
    }
    if (rc == TIDE_OK && count == 1)
        *account_out = first;
    else if (rc == TIDE_OK)
        rc = tide_error_set(err, TIDE_NOT_FOUND,
                            count == 0
                                ? "there is no chat account: `tidemark account add chat NAME "
                                  "--model MODEL`"
                                : "there are several chat accounts: name one in assistant.yaml, "
                                  "as models.account");
    return rc;
}

tide_status tide_assistant_account_drop(tide_rows db, uint32_t number, tide_error *err)
{
    return tide_rows_do(db, WHAT, err, "DELETE FROM assistant_account WHERE account = ?1", number);
}

/* ---- the client ---- */

struct tide_chat_options tide_assistant_chat_options(const struct tide_assistant_account *account)
{
    return (struct tide_chat_options){
        .dialect = account->dialect,
        .endpoint = account->endpoint[0] == '\0' ? NULL : account->endpoint,
        .model = account->model,
        .key_plain = account->key_plain,
        .version = account->version[0] == '\0' ? NULL : account->version,
        .old_limit = account->old_limit,
        .format = account->format,
        .no_stream = account->no_stream,
        .no_stream_usage = account->no_stream_usage,
    };
}

static tide_status tokens_open(const struct tide_assistant_account *account, tide_world *world,
                               tide_secrets *secrets, tide_mem *mem, tide_tokens **tokens_out,
                               tide_error *err)
{
    char secret[TIDE_SECRET_NAME_BYTES_MAX];
    char command[TIDE_ASSISTANT_NAME_BYTES + 40];
    /* As tide_system_secret_name() has it. */
    (void)snprintf(secret, sizeof secret, "chat/%s", account->name);
    (void)snprintf(command, sizeof command, "tidemark account add chat %s", account->name);
    const struct tide_tokens_options options = {.provider = &tide_oauth_keys,
                                                .secret = secret,
                                                .account = account->name,
                                                .sign_in = command};
    return tide_tokens_open(world, secrets, &options, mem, tokens_out, err);
}

tide_status tide_assistant_model_open(const struct tide_assistant_account *account,
                                      tide_world *world, tide_secrets *secrets, uint64_t silence_ms,
                                      uint64_t timeout_ms, tide_mem *mem,
                                      struct tide_assistant_model *model_out, tide_error *err)
{
    struct tide_assistant_model model = {.chat = NULL};
    struct tide_chat_options options = tide_assistant_chat_options(account);
    if (!account->no_key)
        TIDE_TRY(tokens_open(account, world, secrets, mem, &model.tokens, err));
    options.tokens = model.tokens;
    options.world = world;
    options.silence_ms = (uint32_t)silence_ms;
    options.total_ms = (uint32_t)timeout_ms;
    const tide_status rc = tide_chat_open(&options, mem, &model.chat, err);
    if (rc == TIDE_OK)
        *model_out = model;
    else
        tide_tokens_close(model.tokens);
    return rc;
}

void tide_assistant_model_close(struct tide_assistant_model *model)
{
    tide_chat_close(model->chat);
    tide_tokens_close(model->tokens);
    *model = (struct tide_assistant_model){.chat = NULL};
}
