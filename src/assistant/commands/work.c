#include "assistant/commands/work.h"

#include "assistant/commands/system.h"
#include "cli/account_seen.h"
#include "mail/commands/home.h"

#include <stdio.h>
#include <string.h>

static const struct cli_words words = {.stored = "what was done stays",
                                       .items_bad = "some threads could not be dealt with",
                                       .items_list = "`tidemark bad list` lists them."};

static bool request(void *arg, size_t account, size_t nth, struct cli_request *out)
{
    const struct assistant_work *self = arg;
    (void)account;
    *out = (struct cli_request){.kind = self->kind};
    memcpy(out->payload, self->payload, sizeof self->payload);
    memcpy(out->dedupe, self->dedupe, sizeof self->dedupe);
    return nth == 0;
}

/* ---- what keeps the model from answering ---- */

static void set_stuck(struct assistant_work *self, struct cli_watched *watched, const char *why)
{
    (void)tide_error_set(&watched->error, TIDE_BUSY, "the chat account %.100s %s", self->chat.name,
                         why);
}

/* The jobs of the user then wait for a user, or for tomorrow. */
static void look_at_chat(struct assistant_work *self, struct cli_watched *watched,
                         const json_t *snapshot, bool full)
{
    const json_t *chat = account_in_snapshot(snapshot, self->chat.name);
    const char *state = json_string_value(json_object_get(chat, "state"));
    const char *reason = json_string_value(json_object_get(chat, "reason"));
    if (state != NULL && strcmp(state, "halted") == 0)
        set_stuck(self, watched, "is halted");
    else if (json_is_true(json_object_get(chat, "paused")))
        set_stuck(self, watched, "is paused");
    else if (reason != NULL && strcmp(reason, tide_status_name(TIDE_AUTH)) == 0)
        set_stuck(self, watched, "needs another key");
    else if (full && assistant_is_over(self->cli->ledger, self->chat.number,
                                       tide_world_now_unix_ms(self->cli->world))) {
        self->over = true;
        set_stuck(self, watched, "has used up its budget of tokens");
    }
}

static tide_status look(void *arg, size_t index, const json_t *snapshot, bool full)
{
    struct assistant_work *self = arg;
    struct cli_watched *watched = &self->work.accounts[index];
    TIDE_TRY(cli_watched_look(&self->work, index, full));
    if (!watched->settled && watched->error.status == TIDE_OK)
        look_at_chat(self, watched, snapshot, full);
    return TIDE_OK;
}

static void judge(void *arg, size_t index, struct cli_ended *ended)
{
    struct assistant_work *self = arg;
    if (self->work.accounts[index].error.status != TIDE_BUSY)
        return;
    if (self->over) { /* nothing failed: it goes on by itself */
        ended->outcome = CLI_OUTCOME_UNFINISHED;
        (void)snprintf(ended->remedy, sizeof ended->remedy,
                       "What is left is done after midnight UTC, by `tidemark serve` or the next "
                       "`tidemark assistant sync`.");
        return;
    }
    (void)snprintf(ended->remedy, sizeof ended->remedy,
                   "`tidemark account list` says why; `tidemark account add chat %.100s` enters a "
                   "key.",
                   self->chat.name);
}

tide_status assistant_work_open(struct assistant_work *self, struct cli *cli, const char *kind,
                                const char *dedupe)
{
    self->cli = cli;
    self->kind = kind;
    (void)snprintf(self->dedupe, sizeof self->dedupe, "%s", dedupe);
    TIDE_TRY(assistant_chat(cli, &self->chat));
    self->work = (struct cli_work){.cli = cli,
                                   .system = &tide_assistant_system,
                                   .accounts_of = &tide_mail_system,
                                   .also = self->chat.name,
                                   .words = &words,
                                   .settles = true,
                                   .arg = self,
                                   .request = request,
                                   .look = look,
                                   .judge = judge};
    return cli_work_deadline(cli, &self->work.deadline_ms);
}

tide_status assistant_work_ask_or_run(struct cli *cli,
                                      tide_status (*open)(struct assistant_work *self,
                                                          struct cli *cli))
{
    struct assistant_work *self = tide_mem_new(cli->mem, sizeof *self);
    if (self == NULL)
        return cli_fail(cli, TIDE_NO_MEMORY, "Free some memory.", "out of memory");
    tide_status rc = open(self, cli);
    /* A process that runs does it by itself; without one there is nobody else. */
    const bool asks = rc == TIDE_OK && cli_flag(cli, "wait") == NULL && cli_engine_pid(cli) != 0;
    if (asks)
        rc = cli_work_ask(&self->work);
    else if (rc == TIDE_OK)
        rc = cli_work_run(&self->work);
    if (rc == TIDE_OK && !asks)
        cli_work_report(&self->work);
    const tide_status closed = cli_work_done(&self->work);
    if (closed != TIDE_TIMEOUT) /* else a handler that does not return uses it */
        tide_mem_free(cli->mem, self, sizeof *self);
    return rc == TIDE_OK ? closed : rc;
}
