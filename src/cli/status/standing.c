/* standing.c - `tidemark` without a command: where things stand, and the next step (E9.3).
 *
 * The first thing a new user types.  It shows what `status` shows, and below it one step, the first of
 * these that applies: what keeps an account from working, what was begun and not ended, what was
 * never begun, what would keep it up to date, and what can be done with it. */
#include "cli/status/status.h"

#include "cli/archive_here.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { STEP_BYTES = 400 };

struct step {
    char why[STEP_BYTES];
    char command[STEP_BYTES]; /* behind "tidemark" */
};

static const char *text_of(const json_t *account, const char *field)
{
    const char *text = json_string_value(json_object_get(account, field));
    return text == NULL ? "" : text;
}

static bool is_now(const json_t *account, const char *word)
{
    return strcmp(text_of(account, "now"), word) == 0;
}

static json_int_t count_of(const json_t *account, const char *field)
{
    return json_integer_value(json_object_get(account, field));
}

/* "mail sync", or what the system has instead. */
static void sync_command(const struct tide_system *system, char out[STEP_BYTES])
{
    (void)snprintf(out, STEP_BYTES, "%s%s", system->next == NULL ? system->name : system->next,
                   system->next == NULL ? " sync" : "");
}

/* What keeps the account from working. */
static bool step_blocked(const json_t *account, const struct tide_system *system, struct step *step)
{
    const char *name = text_of(account, "account");
    if (is_now(account, "signed_out")) {
        (void)snprintf(step->why, STEP_BYTES, "%.200s needs a sign-in", name);
        (void)snprintf(step->command, STEP_BYTES, "account add %s %.200s", system->provider, name);
    } else if (is_now(account, "halted")) {
        (void)snprintf(step->why, STEP_BYTES, "%.200s is halted", name);
        (void)snprintf(step->command, STEP_BYTES, "account resume %.200s", name);
    } else if (is_now(account, "paused")) {
        (void)snprintf(step->why, STEP_BYTES, "%.200s is paused", name);
        (void)snprintf(step->command, STEP_BYTES, "jobs resume --account %.200s", name);
    } else if (is_now(account, "broken")) {
        (void)snprintf(step->why, STEP_BYTES, "the state of %.200s cannot be read", name);
        (void)snprintf(step->command, STEP_BYTES, "ledger check");
    } else if (is_now(account, "failed")) {
        (void)snprintf(step->why, STEP_BYTES, "jobs of %.200s failed", name);
        (void)snprintf(step->command, STEP_BYTES, "jobs list --state failed --account %.200s",
                       name);
    } else {
        return false;
    }
    return true;
}

/* What was begun and not ended, or never begun.  The account of a system that has no sync of its own,
 * such as a chat model, has no next step here. */
static bool step_unfinished(const json_t *account, const struct tide_system *system,
                            struct step *step)
{
    const char *name = text_of(account, "account");
    const bool stopped = is_now(account, "stopped");
    const bool imports = system->archives != NULL; /* then what is stored is no sync yet */
    const bool stored = count_of(account, "stored") > 0;
    const bool begun = json_is_string(json_object_get(account, "tidemark")) || (stored && !imports);
    if (system->sync_by == NULL || (!stopped && (begun || !is_now(account, "idle"))))
        return false;
    (void)snprintf(step->why, STEP_BYTES,
                   stopped  ? "the sync of %.200s was interrupted"
                   : stored ? "%.200s is signed in, and was not synced yet"
                            : "%.200s is signed in, and nothing is stored yet",
                   name);
    sync_command(system, step->command);
    return true;
}

static bool step_bad(const json_t *account, const struct tide_system *system, struct step *step)
{
    (void)system;
    if (count_of(account, "bad") == 0)
        return false;
    (void)snprintf(step->why, STEP_BYTES, "items of %.200s could not be fetched",
                   text_of(account, "account"));
    (void)snprintf(step->command, STEP_BYTES, "bad list --account %.200s",
                   text_of(account, "account"));
    return true;
}

static void step_of(const struct cli *cli, const json_t *accounts, struct step *step)
{
    static bool (*const kinds[])(const json_t *, const struct tide_system *,
                                 struct step *) = {step_blocked, step_unfinished, step_bad};
    for (size_t kind = 0; kind < sizeof kinds / sizeof kinds[0]; kind++)
        for (size_t i = 0; i < json_array_size(accounts); i++) {
            const json_t *account = json_array_get(accounts, i);
            const struct tide_system *system =
                tide_system_named(cli->systems, tide_text_of(text_of(account, "system")));
            if (system != NULL && kinds[kind](account, system, step))
                return;
        }
    if (json_is_true(json_object_get(cli->json.value, "engine"))) {
        (void)snprintf(step->why, STEP_BYTES, "all is well; see it in a browser");
        (void)snprintf(step->command, STEP_BYTES, "open");
        return;
    }
    (void)snprintf(step->why, STEP_BYTES, "all is well; keep it up to date");
    (void)snprintf(step->command, STEP_BYTES, "serve");
}

static void next_json(struct cli *cli, const struct step *step)
{
    tide_json next;
    tide_json_object(&next);
    tide_json_set_cstr(&next, "why", step->why);
    tide_json_set_cstr(&next, "command", step->command);
    tide_json_set(&cli->json, "next", &next);
}

/* An empty home: what can be added. */
static void show_providers(struct cli *cli, struct step *step)
{
    cli_print(cli,
              "Tidemark mirrors your cloud accounts onto your own disk. Nothing is set up in %s "
              "yet.\n\nNext: sign in to an account.\n",
              cli->state_dir);
    for (size_t i = 0; cli->systems[i] != NULL; i++) {
        const struct tide_system *system = cli->systems[i];
        char added[80];
        if (system->provider[0] == '\0')
            continue;
        (void)snprintf(added, sizeof added, "tidemark account add %s %s", system->provider,
                       system->subject);
        cli_print(cli, "  %-40s %s\n", added, system->name);
    }
    cli_print(cli,
              "\n`tidemark account add --help` says what they are; `tidemark --help` shows all "
              "commands.\n");
    (void)snprintf(step->why, STEP_BYTES, "no account is set up");
    (void)snprintf(step->command, STEP_BYTES, "account add %s %s",
                   cli->systems[0] == NULL ? "PROVIDER" : cli->systems[0]->provider,
                   cli->systems[0] == NULL ? "NAME" : cli->systems[0]->subject);
}

/* No account, but archives: what was imported before the first sign-in can be searched by now. */
static void show_archives(struct cli *cli, const json_t *archives, struct step *step)
{
    size_t i = 0;
    const json_t *one = NULL;
    cli_print(cli, "No account is signed in yet. Stored in %s, and there to be searched:\n",
              cli->data_dir);
    json_array_foreach(archives, i, one)
    {
        const struct tide_system *system =
            tide_system_named(cli->systems, tide_text_of(text_of(one, "system")));
        cli_print(cli, "  %s  %" PRIu64 " %s\n", text_of(one, "account"),
                  (uint64_t)count_of(one, "stored"), system == NULL ? "" : system->unit);
    }
    one = json_array_get(archives, 0);
    (void)snprintf(step->why, STEP_BYTES, "sign in, and new %s is fetched", text_of(one, "system"));
    (void)snprintf(step->command, STEP_BYTES, "account add %s %.200s", text_of(one, "provider"),
                   text_of(one, "account"));
    cli_print(cli, "\nNext: %s.\n  tidemark %s\n\n`tidemark --help` shows all commands.\n",
              step->why, step->command);
}

static tide_status show_nothing(struct cli *cli)
{
    struct step step = {.why = ""};
    char archive_dir[CLI_PATH_BYTES];
    char secrets_dir[CLI_PATH_BYTES];
    tide_json none;
    tide_json archives;
    TIDE_TRY(archive_here_places(cli, archive_dir, secrets_dir));
    tide_buf_clear(&cli->out);
    status_alone(cli, archive_dir, NULL, &archives);
    if (json_array_size(archives.value) > 0)
        show_archives(cli, archives.value, &step);
    else
        show_providers(cli, &step);
    tide_json_array(&none);
    tide_json_set(&cli->json, "accounts", &none);
    tide_json_set(&cli->json, "archives", &archives);
    tide_json_set_bool(&cli->json, "engine", false);
    next_json(cli, &step);
    return TIDE_OK;
}

tide_status cli_standing(struct cli *cli)
{
    struct step step = {.why = ""};
    tide_status rc = cli_ledger_read(cli);
    if (rc == TIDE_NOT_FOUND && cli->shared == NULL) {
        cli->err = (tide_error){TIDE_OK, 0, ""};
        cli->hint[0] = '\0';
        return show_nothing(cli);
    }
    if (rc == TIDE_OK)
        rc = status_look(cli, NULL);
    if (rc != TIDE_OK)
        return rc;
    const json_t *accounts = json_object_get(cli->json.value, "accounts");
    if (json_array_size(accounts) == 0)
        return show_nothing(cli);
    step_of(cli, accounts, &step);
    cli_print(cli, "\nNext: %s.\n  tidemark %s\n\n`tidemark --help` shows all commands.\n",
              step.why, step.command);
    next_json(cli, &step);
    return TIDE_OK;
}
