/* account.h - a chat model as an account: its endpoint and its protocol options (J19).
 *
 * The account has a governor and a budget of its own.  Its row is in assistant_account; its key is a
 * secret (net/secrets.h) and never in a row.  The protocol options are one JSON object,
 * so that an older row has the defaults of what was added later:
 *
 *   {"endpoint":"..","dialect":"openai|anthropic","model":"..","fast_model":"..","version":"..",
 *    "auth":"bearer|x-api-key|none","limit":"max_completion_tokens|max_tokens",
 *    "json":"schema|object|off","stream":"yes|no","usage":"yes|no"}
 */
#ifndef TIDE_ASSISTANT_ACCOUNT_H
#define TIDE_ASSISTANT_ACCOUNT_H

#include "cloud/chat/chat.h"
#include "db/rows.h"
#include "net/secrets.h"

enum {
    TIDE_ASSISTANT_OPTIONS_BYTES = 2048, /* as JSON, with its end */
    TIDE_ASSISTANT_ENDPOINT_BYTES = 512,
    TIDE_ASSISTANT_NAME_BYTES = 204,
};

struct tide_assistant_account {
    uint32_t number;
    char name[TIDE_ASSISTANT_NAME_BYTES];
    char endpoint[TIDE_ASSISTANT_ENDPOINT_BYTES]; /* "": the dialect's own provider */
    tide_chat_dialect dialect;
    char model[TIDE_CHAT_MODEL_BYTES_MAX + 1];
    char fast_model[TIDE_CHAT_MODEL_BYTES_MAX + 1]; /* to classify; "": the same */
    char version[40];                               /* of Anthropic's API; "": the default */
    bool no_key, key_plain;
    bool old_limit;
    tide_chat_format format;
    bool no_stream, no_stream_usage;
};

/* Sets a field by its name in the JSON above.  TIDE_INVALID names what may be said. */
tide_status tide_assistant_option_set(struct tide_assistant_account *account, const char *name,
                                      const char *value, tide_error *err);
/* The same for "NAME=VALUE,NAME=VALUE". */
tide_status tide_assistant_options_set(struct tide_assistant_account *account, const char *list,
                                       tide_error *err);
/* What must be said was said. */
tide_status tide_assistant_options_check(const struct tide_assistant_account *account,
                                         tide_error *err);
tide_status tide_assistant_options_write(const struct tide_assistant_account *account,
                                         char options_out[TIDE_ASSISTANT_OPTIONS_BYTES],
                                         tide_error *err);
/* Unknown fields are left alone: a newer version wrote them. */
tide_status tide_assistant_options_read(tide_text options, struct tide_assistant_account *account,
                                        tide_error *err);

/* ---- rows; in a transaction ---- */

tide_status tide_assistant_account_tables(tide_rows db, tide_error *err);
/* `account` has a number and a name. */
tide_status tide_assistant_account_put(tide_rows db, const struct tide_assistant_account *account,
                                       tide_error *err);
/* TIDE_NOT_FOUND. */
tide_status tide_assistant_account_get(tide_rows db, uint32_t number,
                                       struct tide_assistant_account *account_out, tide_error *err);
tide_status tide_assistant_account_named(tide_rows db, const char *name,
                                         struct tide_assistant_account *account_out,
                                         tide_error *err);
/* The one of that name; "": the only one.  TIDE_NOT_FOUND: there is none, or there are several; err says
 * what to do. */
tide_status tide_assistant_account_choose(tide_rows db, const char *name,
                                          struct tide_assistant_account *account_out,
                                          tide_error *err);
tide_status tide_assistant_account_drop(tide_rows db, uint32_t number, tide_error *err);

/* ---- the client ---- */

/* A model, ready to be called; embedded value. */
struct tide_assistant_model {
    tide_chat *chat;
    tide_tokens *tokens; /* NULL: it wants no key */
};
/* `secrets` outlives it.  The times: chat.silence and chat.timeout.  TIDE_AUTH: no key is stored. */
tide_status tide_assistant_model_open(const struct tide_assistant_account *account,
                                      tide_world *world, tide_secrets *secrets, uint64_t silence_ms,
                                      uint64_t timeout_ms, tide_mem *mem,
                                      struct tide_assistant_model *model_out, tide_error *err);
void tide_assistant_model_close(struct tide_assistant_model *model); /* a zeroed one is fine */
/* Options of a client of this account, without a key. */
struct tide_chat_options tide_assistant_chat_options(const struct tide_assistant_account *account);

#endif
