#include "mail/commands/outcome.h"

#include "mail/commands/known.h"

#include <inttypes.h>
#include <stdio.h>

const char *mail_outcome_name(mail_outcome outcome)
{
    switch (outcome) {
    case MAIL_OUTCOME_DONE:
        return "done";
    case MAIL_OUTCOME_BAD_ITEMS:
        return "bad_items";
    case MAIL_OUTCOME_UNFINISHED:
        return "unfinished";
    case MAIL_OUTCOME_SIGNED_OUT:
        return "signed_out";
    case MAIL_OUTCOME_PAUSED:
        return "paused";
    case MAIL_OUTCOME_HALTED:
        return "halted";
    case MAIL_OUTCOME_FAILED:
        return "failed";
    }
    return "unknown";
}

int mail_outcome_exit_code(mail_outcome outcome)
{
    switch (outcome) {
    case MAIL_OUTCOME_DONE:
        return CLI_EXIT_DONE;
    case MAIL_OUTCOME_BAD_ITEMS:
        return CLI_EXIT_BAD_ITEMS;
    case MAIL_OUTCOME_UNFINISHED:
        return CLI_EXIT_INTERRUPTED;
    case MAIL_OUTCOME_SIGNED_OUT:
        return CLI_EXIT_SIGN_IN;
    case MAIL_OUTCOME_PAUSED:
    case MAIL_OUTCOME_HALTED:
    case MAIL_OUTCOME_FAILED:
        break;
    }
    return CLI_EXIT_FAILED;
}

static unsigned weight_of(int code)
{
    static const int order[] = {CLI_EXIT_DONE, CLI_EXIT_BAD_ITEMS, CLI_EXIT_INTERRUPTED,
                                CLI_EXIT_SIGN_IN};
    const unsigned count = sizeof order / sizeof order[0];
    for (unsigned i = 0; i < count; i++)
        if (order[i] == code)
            return i;
    return count;
}

int mail_outcome_worse(int a, int b)
{
    return weight_of(a) >= weight_of(b) ? a : b;
}

static void signed_out(const struct mail_watched *watched, const char *why,
                       struct mail_ended *ended)
{
    ended->outcome = MAIL_OUTCOME_SIGNED_OUT;
    (void)snprintf(ended->reason, sizeof ended->reason, "%s",
                   why[0] == '\0' ? "its sign-in was refused" : why);
    (void)snprintf(ended->remedy, sizeof ended->remedy,
                   "Sign in again with `tidemark account add gmail %.100s` and the flags it was "
                   "added with; stored mail stays.",
                   watched->look.email);
}

static void unfinished(const struct mail_watched *watched, struct mail_ended *ended)
{
    char when[32];
    ended->outcome = MAIL_OUTCOME_UNFINISHED;
    if (watched->failure[0] == '\0')
        (void)snprintf(ended->reason, sizeof ended->reason, "not finished");
    else if (watched->next_try_ms == 0)
        (void)snprintf(ended->reason, sizeof ended->reason, "%s", watched->failure);
    else
        (void)snprintf(ended->reason, sizeof ended->reason, "%.300s; next try %s", watched->failure,
                       cli_time(watched->next_try_ms, when));
    (void)snprintf(ended->remedy, sizeof ended->remedy,
                   "Stored mail stays; run `tidemark mail sync` to resume.");
}

/* Nothing runs any more, and parts of the mailbox are not synced. */
static void parts_left(const struct mail_watched *watched, const char *undone,
                       struct mail_ended *ended)
{
    const uint64_t parts = watched->look.cycles_open;
    ended->outcome = MAIL_OUTCOME_BAD_ITEMS;
    (void)snprintf(ended->reason, sizeof ended->reason,
                   "%" PRIu64 " part%s of the mailbox not synced%s%.250s", parts,
                   parts == 1 ? " is" : "s are", undone[0] == '\0' ? "" : ": ", undone);
    (void)snprintf(
        ended->remedy, sizeof ended->remedy,
        "Run `tidemark mail sync` again: it retries failed jobs. Canceled jobs need `tidemark jobs "
        "retry --state canceled`.");
}

/* Everything listed is stored, and it is far less than the server said it has. */
static bool is_short(const struct mail_watched *watched)
{
    const struct tide_mail_look *look = &watched->look;
    return watched->archive != NULL && look->since_ms == 0 &&
           tide_mail_is_short(mail_known_count(look, watched->kept.stored), look->messages_total);
}

static void too_few(const struct mail_watched *watched, struct mail_ended *ended)
{
    ended->outcome = MAIL_OUTCOME_BAD_ITEMS;
    (void)snprintf(ended->reason, sizeof ended->reason,
                   "not synced: the server counts %" PRIu64
                   " messages but listed so few that only %" PRIu64 " are stored",
                   watched->look.messages_total, watched->kept.stored);
    (void)snprintf(ended->remedy, sizeof ended->remedy,
                   "Run `tidemark mail sync` again: it lists everything again.");
}

static void bad_items(const struct mail_watched *watched, struct mail_ended *ended)
{
    const bool bad = watched->bad > watched->bad_first;
    const bool failed = watched->failed > watched->failed_first;
    if (!bad && !failed)
        return;
    ended->outcome = MAIL_OUTCOME_BAD_ITEMS;
    (void)snprintf(ended->reason, sizeof ended->reason, "%s",
                   bad ? "some messages could not be fetched"
                       : "some jobs failed or were canceled");
    (void)snprintf(ended->remedy, sizeof ended->remedy, "%s%s%s",
                   bad ? "`tidemark mail bad` lists the messages." : "", bad && failed ? " " : "",
                   failed ? "`tidemark jobs list --state failed` and `--state canceled` list the "
                            "jobs."
                          : "");
}

/* The errors of an archive begin with the path of the shard. */
static bool names_shard(const struct mail_watched *watched, const tide_error *failed)
{
    return strstr(failed->text, watched->look.email) != NULL &&
           strstr(failed->text, ".db: ") != NULL;
}

static void could_not_begin(const struct mail_watched *watched, const tide_error *failed,
                            struct mail_ended *ended)
{
    ended->outcome = MAIL_OUTCOME_FAILED;
    (void)snprintf(ended->reason, sizeof ended->reason, "%.380s", failed->text);
    if (failed->status == TIDE_CORRUPT)
        (void)snprintf(ended->remedy, sizeof ended->remedy,
                       "Run `tidemark mail heal %.100s`: it moves the damaged file aside and "
                       "fetches its mail again.",
                       watched->look.email);
    else if ((failed->status == TIDE_INVALID || failed->status == TIDE_NEWER) &&
             names_shard(watched, failed))
        (void)snprintf(ended->remedy, sizeof ended->remedy, "%s",
                       mail_home_broken_remedy(failed->status));
}

void mail_outcome_judge(const struct mail_watched *watched, const tide_error *failed,
                        const char *undone, struct mail_ended *ended_out)
{
    const struct tide_mail_look *look = &watched->look;
    struct mail_ended ended = {.outcome = MAIL_OUTCOME_DONE};
    const bool settled = mail_watched_settled(watched);
    if (failed->status == TIDE_AUTH) {
        signed_out(watched, failed->text, &ended);
    } else if (failed->status != TIDE_OK) {
        could_not_begin(watched, failed, &ended);
    } else if (look->halted) {
        ended.outcome = MAIL_OUTCOME_HALTED;
        (void)snprintf(ended.reason, sizeof ended.reason, "%.380s", look->halt_reason);
        (void)snprintf(ended.remedy, sizeof ended.remedy,
                       "Resume it with `tidemark account resume %.100s`.", look->email);
    } else if (look->paused) {
        ended.outcome = MAIL_OUTCOME_PAUSED;
        (void)snprintf(ended.reason, sizeof ended.reason, "paused by command");
        (void)snprintf(ended.remedy, sizeof ended.remedy,
                       "Resume it with `tidemark jobs resume --account %.100s`.", look->email);
    } else if (!settled && watched->signed_out) {
        signed_out(watched, watched->failure, &ended);
    } else if (!settled) {
        unfinished(watched, &ended);
    } else if (undone != NULL && look->cycles_open > 0) {
        parts_left(watched, undone, &ended);
    } else if (is_short(watched)) {
        too_few(watched, &ended);
    } else {
        bad_items(watched, &ended);
    }
    *ended_out = ended;
}
