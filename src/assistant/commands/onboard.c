/* onboard.c - `tidemark assistant onboard EMAIL` (J9): the assistant begins to work for an account. */
#include "assistant/assistant.h"
#include "assistant/commands/work.h"
#include "base/json.h"
#include "cli/archive_here.h"
#include "mail/commands/home.h"
#include "mail/mail.h"

#include <stdio.h>
#include <string.h>

#define SCOPE "https://www.googleapis.com/auth/gmail.modify"

enum { STARTER_BYTES_MAX = 64 << 10 };

struct onboarding {
    struct assistant_work work;
    char email[256], endpoint[TIDE_ENDPOINT_BYTES];
    bool before;  /* it was onboarded already */
    bool written; /* assistant.yaml */
};

/* ---- the account ---- */

static tide_status find_account(struct onboarding *self, const char *email)
{
    struct cli *cli = self->work.cli;
    char hint[400];
    const tide_status rc =
        tide_system_account_look(&tide_mail_system, cli->ledger, email, self->endpoint, &cli->err);
    (void)snprintf(self->email, sizeof self->email, "%.255s", email);
    if (rc != TIDE_NOT_FOUND)
        return rc;
    (void)snprintf(hint, sizeof hint,
                   "Add it with `tidemark account add gmail %.100s --for assistant`.", email);
    return cli_fail(cli, rc, hint, "there is no mail account \"%.200s\"", email);
}

/* J9 changes labels and J11 writes drafts: a sign-in that may only read would fail with the first mail. */
static tide_status check_scope(const struct onboarding *self)
{
    struct cli *cli = self->work.cli;
    char archive_dir[CLI_PATH_BYTES], secrets_dir[CLI_PATH_BYTES], hint[400];
    tide_secrets *secrets = NULL;
    tide_tokens *tokens = NULL;
    TIDE_TRY(archive_here_places(cli, archive_dir, secrets_dir));
    TIDE_TRY(tide_secrets_open(cli->world, secrets_dir, TIDE_SECRETS_BEST, cli->mem, &secrets,
                               &cli->err));
    tide_status rc =
        tide_mail_tokens(cli->world, secrets, self->email, cli->mem, &tokens, &cli->err);
    const bool covers = rc == TIDE_OK && tide_tokens_cover(tokens, SCOPE);
    tide_tokens_close(tokens);
    tide_secrets_close(secrets);
    (void)snprintf(hint, sizeof hint,
                   "Sign in again with `tidemark account add gmail %.100s --for assistant` and the "
                   "flags it was added with, then run this again.",
                   self->email);
    if (rc == TIDE_AUTH && cli->shared != NULL) { /* the machine that has it will say */
        cli->err = (tide_error){TIDE_OK, 0, ""};
        return TIDE_OK;
    }
    if (rc != TIDE_OK)
        return cli_hint(cli, rc, hint);
    return covers
               ? TIDE_OK
               : cli_fail(cli, TIDE_AUTH, hint,
                          "the sign-in of %.100s may only read mail; the assistant changes labels "
                          "and writes drafts",
                          self->email);
}

/* ---- the configuration ---- */

/* A chat account that --chat names is written into a new file; one that is there says it itself. */
static tide_status check_named(struct cli *cli, const struct tide_assistant_config *config)
{
    const char *wanted = cli_flag(cli, "chat");
    if (wanted == NULL || tide_text_equal(config->model_account, tide_text_of(wanted)))
        return TIDE_OK;
    return cli_wrong(cli, "Set models.account there, and omit --chat.",
                     "assistant.yaml exists, and does not name the chat account %.100s", wanted);
}

static tide_status write_starter(struct onboarding *self, const char *path)
{
    struct cli *cli = self->work.cli;
    const char *wanted = cli_flag(cli, "chat");
    struct tide_assistant_account chat;
    tide_auto_buf yaml = tide_buf_in(cli->mem, STARTER_BYTES_MAX);
    TIDE_TRY(assistant_chat_named(cli, wanted == NULL ? "" : wanted, &chat));
    TIDE_TRY(cli_config_dir_make(cli)); /* a new user has none */
    tide_status rc = tide_assistant_starter(
        wanted, chat.fast_model[0] == '\0' ? chat.model : chat.fast_model, chat.model, &yaml);
    if (rc == TIDE_OK)
        rc = tide_file_replace(cli->world, path, tide_buf_text(&yaml), 0600, &cli->err);
    self->written = rc == TIDE_OK;
    return cli_hint(cli, rc, "Make its directory writable.");
}

/* One that is wrong is refused here, with its line. */
static tide_status configure(struct onboarding *self)
{
    struct cli *cli = self->work.cli;
    struct tide_assistant_config *config = NULL;
    char path[CLI_PATH_BYTES];
    TIDE_TRY(assistant_config_path(cli, path));
    tide_status rc = assistant_config(cli, &config);
    if (rc == TIDE_OK)
        rc = check_named(cli, config);
    tide_assistant_config_free(config);
    if (rc != TIDE_NOT_FOUND)
        return rc;
    cli->err = (tide_error){TIDE_OK, 0, ""};
    cli->hint[0] = '\0';
    return write_starter(self, path);
}

/* ---- what was made ---- */

static void show(struct onboarding *self)
{
    struct cli *cli = self->work.cli;
    char path[CLI_PATH_BYTES];
    tide_json labels;
    (void)assistant_config_path(cli, path);
    tide_json_array(&labels);
    for (unsigned i = 0; i < TIDE_ASSISTANT_LABELS; i++)
        tide_json_append_cstr(&labels, tide_assistant_label_name((tide_assistant_label)i));
    tide_json_set(&cli->json, "labels", &labels);
    tide_json_set_cstr(&cli->json, "chat", self->work.chat.name);
    tide_json_set_cstr(&cli->json, "configuration", path);
    tide_json_set_bool(&cli->json, "configuration_written", self->written);
    tide_json_set_bool(&cli->json, "before", self->before);
    if (self->written)
        cli_print(cli, "  wrote %s to begin with: read it, and change what does not fit\n", path);
    cli_print(cli, "  labels in Gmail: %s and the eight below it\n",
              tide_assistant_label_name(TIDE_ASSISTANT_LABEL_PARENT));
    cli_print(cli, "  models: those of the chat account %s\n", self->work.chat.name);
    cli_print(
        cli,
        "New mail is dealt with by `tidemark serve`, or now by `tidemark assistant sync`; with "
        "--full also\nwhat is in the inbox already.\n");
}

/* ---- the command ---- */

static tide_status put_payload(struct onboarding *self)
{
    struct cli *cli = self->work.cli;
    tide_auto_buf text = tide_buf_in(cli->mem, sizeof self->work.payload - 1);
    tide_auto_json payload;
    tide_json_object(&payload);
    tide_json_set_cstr(&payload, "email", self->email);
    tide_json_set_cstr(&payload, "endpoint", self->endpoint);
    if (tide_json_line(&payload, &text) != TIDE_OK)
        return cli_fail(cli, TIDE_INVALID, "Add the account with a shorter --endpoint.",
                        "the endpoint of %.100s is too long", self->email);
    memcpy(self->work.payload, tide_buf_cstr(&text), text.bytes + 1);
    return TIDE_OK;
}

static tide_status prepare(struct onboarding *self, struct cli *cli)
{
    struct tide_assistant_user user;
    self->work.cli = cli;
    TIDE_TRY(cli_ledger_read(cli));
    TIDE_TRY(find_account(self, cli->arguments[0]));
    TIDE_TRY(check_scope(self));
    TIDE_TRY(configure(self));
    TIDE_TRY(assistant_work_open(&self->work, cli, TIDE_ASSISTANT_ONBOARD_KIND, "onboard"));
    self->work.work.kind = TIDE_ASSISTANT_ONBOARD_KIND; /* what else it has to do may wait */
    if (assistant_used(cli) == TIDE_OK)
        self->before = tide_assistant_user_named(tide_ledger_rows(cli->ledger), self->email, &user,
                                                 NULL) == TIDE_OK &&
                       user.onboarded_ms > 0;
    cli->err = (tide_error){TIDE_OK, 0, ""};
    cli->hint[0] = '\0';
    TIDE_TRY(put_payload(self));
    TIDE_TRY(cli_work_accounts(&self->work.work, 1));
    memcpy(self->work.work.accounts[0].name, self->email, sizeof self->email);
    return TIDE_OK;
}

tide_status cli_assistant_onboard(struct cli *cli)
{
    struct onboarding *self = tide_mem_new(cli->mem, sizeof *self);
    if (self == NULL)
        return cli_fail(cli, TIDE_NO_MEMORY, "Free some memory.", "out of memory");
    tide_status rc = prepare(self, cli);
    if (rc == TIDE_OK)
        rc = cli_work_run(&self->work.work);
    if (rc == TIDE_OK) {
        cli_work_report(&self->work.work);
        if (cli->exit_code == CLI_EXIT_DONE)
            show(self);
    }
    const tide_status closed = cli_work_done(&self->work.work);
    if (closed != TIDE_TIMEOUT) /* else a handler that does not return uses it */
        tide_mem_free(cli->mem, self, sizeof *self);
    return rc == TIDE_OK ? closed : rc;
}
