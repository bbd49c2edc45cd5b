/* restore.c - `tidemark mail restore`: puts removed mail back into Gmail (M14). */
#include "cli/run/work.h"
#include "mail/commands/home.h"

#include "base/clocktext.h"
#include "mail/restore/restore.h"
#include "mail/result.h"
#include "tidemark_inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

enum { INSERT_UNITS = 25, IDS_BYTES_MAX = 1 << 20 };

static const char *const deed_names[TIDE_DEEDS] = {
    [TIDE_DEED_THERE] = "there",   [TIDE_DEED_INBOX] = "inbox",   [TIDE_DEED_TRASH] = "trash",
    [TIDE_DEED_INSERT] = "insert", [TIDE_DEED_REFUSE] = "refuse",
};

struct restoring {
    struct cli *cli;
    struct mail_home home;
    struct cli_ask ask;
    struct tide_restore_wanted wanted;
    tide_arena ids; /* of `wanted`, in full */
    uint32_t account;
    tide_restore *restore; /* the plan */
    struct tide_restore_state state;
    json_t *result; /* of the job; NULL: it has written none yet */
    bool denied;    /* the sign-in does not permit it */
    bool handed_over;
    struct cli_columns columns;
    struct cli_shown shown;
};

/* ---- what is meant ---- */

static tide_status read_wanted(struct cli *cli, struct mail_home *home, char email[256],
                               tide_buf *words, struct tide_restore_wanted *wanted)
{
    const char *manifest = cli_flag(cli, "manifest");
    tide_status rc = TIDE_OK;
    if (cli_flag(cli, "limit") != NULL)
        rc = cli_number(cli, cli_flag(cli, "limit"), "--limit", &wanted->limit);
    if (rc == TIDE_OK && manifest != NULL) {
        rc = cli_number(cli, manifest, "--manifest", &wanted->manifest);
        if (rc == TIDE_OK && wanted->manifest == 0)
            rc = cli_fail(cli, TIDE_NOT_FOUND, "Numbers start at 1.", "there is no manifest 0");
        wanted->email = cli_flag(cli, "account");
        wanted->ids = cli->arguments;
        wanted->ids_count = cli->arguments_count;
        return rc;
    }
    if (rc == TIDE_OK && cli->arguments_count == 0) {
        cli->exit_code = CLI_EXIT_USAGE;
        return cli_fail(cli, TIDE_INVALID,
                        "Give a query as for `tidemark mail search`, or --manifest N.",
                        "no messages selected");
    }
    if (rc == TIDE_OK)
        rc = mail_query_words(cli, 0, words->bytes_max, words);
    if (rc == TIDE_OK)
        rc = mail_home_account(cli, home, cli_flag(cli, "account"), email);
    wanted->email = email;
    wanted->query = tide_buf_cstr(words);
    return rc;
}

/* The message of a manifest that a user named. */
struct naming {
    const char *start;
    uint64_t last, seen;
    unsigned count; /* 2 for more */
    char id[TIDE_GMAIL_ID_BYTES_MAX + 1];
};

static bool naming_look(const struct tide_removal *entry, void *arg)
{
    struct naming *naming = arg;
    naming->seen++;
    naming->last = entry->id;
    if (strncmp(entry->gmail_id, naming->start, strlen(naming->start)) != 0)
        return true;
    memcpy(naming->id, entry->gmail_id, sizeof naming->id);
    return ++naming->count < 2;
}

/* The whole id for the beginning of one; an id that the manifest does not have stays as it is. */
static tide_status id_complete(struct cli *cli, tide_rows db, uint64_t manifest,
                               struct naming *naming)
{
    enum { PAGE = 1000 };
    struct tide_removal entry;
    const tide_status rc =
        tide_removal_of(db, manifest, tide_text_of(naming->start), &entry, &cli->err);
    if (rc != TIDE_NOT_FOUND)
        return rc;
    cli->err = (tide_error){TIDE_OK, 0, ""};
    if (strlen(naming->start) < MAIL_SHORT_ID_MIN)
        return TIDE_OK;
    for (uint64_t before = UINT64_MAX; naming->count < 2 && before != naming->seen;) {
        before = naming->seen;
        TIDE_TRY(tide_removal_list(db, manifest, -1, naming->last, PAGE, naming_look, naming,
                                   &cli->err));
    }
    return naming->count < 2 ? TIDE_OK
                             : cli_fail(cli, TIDE_INVALID, "Give more of the id.",
                                        "more than one message of manifest %" PRIu64
                                        " has an id that begins with %.100s",
                                        manifest, naming->start);
}

static tide_status ids_complete(struct restoring *self, tide_rows db)
{
    struct cli *cli = self->cli;
    const size_t count = self->wanted.ids_count;
    const char **ids = tide_arena_take(&self->ids, (count + 1) * sizeof *ids);
    for (size_t i = 0; ids != NULL && i < count; i++) {
        struct naming naming = {.start = self->wanted.ids[i]};
        TIDE_TRY(id_complete(cli, db, self->wanted.manifest, &naming));
        ids[i] = naming.count == 1 ? tide_arena_copy(&self->ids, naming.id, strlen(naming.id))
                                   : naming.start;
        if (ids[i] == NULL)
            ids = NULL;
    }
    if (ids == NULL)
        return cli_fail(cli, TIDE_NO_MEMORY, "Free some memory.", "out of memory");
    self->wanted.ids = ids;
    return TIDE_OK;
}

/* ---- showing ---- */

static struct tide_restore_sum sum_of(const struct tide_restore_sum sums[TIDE_DEEDS])
{
    struct tide_restore_sum all = {0};
    for (int i = 0; i < TIDE_DEED_REFUSE; i++) {
        all.messages += sums[i].messages;
        all.bytes += sums[i].bytes;
    }
    return all;
}

static void print_sums(struct cli *cli, const struct tide_restore_sum sums[TIDE_DEEDS],
                       const char *key)
{
    static const char *const lines[TIDE_DEEDS] = {
        [TIDE_DEED_THERE] = "already in Gmail",
        [TIDE_DEED_INBOX] = "put back into the inbox",
        [TIDE_DEED_TRASH] = "taken out of the trash",
        [TIDE_DEED_INSERT] = "inserted from the archive",
        [TIDE_DEED_REFUSE] = "refused",
    };
    tide_json object;
    tide_json_object(&object);
    for (int i = 0; i < TIDE_DEEDS; i++) {
        char size[TIDE_SIZE_TEXT_BYTES];
        tide_json one;
        tide_size_human(sums[i].bytes, size);
        if (sums[i].messages > 0)
            cli_print(cli, "  %8" PRIu64 "  %9s  %s\n", sums[i].messages, size, lines[i]);
        tide_json_object(&one);
        tide_json_set_u64(&one, "messages", sums[i].messages);
        tide_json_set_u64(&one, "bytes", sums[i].bytes);
        tide_json_set(&object, deed_names[i], &one);
    }
    tide_json_set(&cli->json, key, &object);
}

struct refusals {
    struct cli *cli;
    tide_json list;
};

static void print_refusal(const char *gmail_id, const char *reason, void *arg)
{
    struct refusals *refusals = arg;
    tide_json one;
    cli_print(refusals->cli, "REFUSED  %s  %s\n", gmail_id, reason);
    tide_json_object(&one);
    tide_json_set_cstr(&one, "id", gmail_id);
    tide_json_set_cstr(&one, "reason", reason);
    tide_json_append(&refusals->list, &one);
}

static void print_plan(struct restoring *self)
{
    struct cli *cli = self->cli;
    const struct tide_restore_state *state = &self->state;
    struct refusals refusals = {.cli = cli};
    cli_print(cli, "%s: nothing was changed; this would be done:\n", state->email);
    print_sums(cli, state->planned, "planned");
    if (sum_of(state->planned).messages + state->planned[TIDE_DEED_REFUSE].messages == 0)
        cli_print(cli, "  nothing: Gmail already has all of it, or the archive has none of it\n");
    if (state->planned[TIDE_DEED_TRASH].messages > 0)
        cli_print(cli,
                  "  Messages that Gmail has meanwhile removed from its trash are inserted.\n");
    tide_json_array(&refusals.list);
    tide_restore_refused(self->restore, print_refusal, &refusals);
    tide_json_set(&cli->json, "refused", &refusals.list);
    tide_json_set_bool(&cli->json, "dry_run", true);
    tide_json_set_cstr(&cli->json, "account", state->email);
    if (state->planned[TIDE_DEED_REFUSE].messages > 0)
        cli->exit_code = CLI_EXIT_BAD_ITEMS;
}

static void print_result(struct restoring *self)
{
    struct cli *cli = self->cli;
    const struct tide_restore_state *state = &self->state;
    struct refusals refusals = {.cli = cli};
    cli_print(cli, "%s: %" PRIu64 " message%s restored (manifest %" PRIu64 ")\n", state->email,
              sum_of(state->done).messages, sum_of(state->done).messages == 1 ? "" : "s",
              state->manifest);
    print_sums(cli, state->done, "done");
    if (state->labels > 0)
        cli_print(cli, "%" PRIu64 " label%s created again.\n", state->labels,
                  state->labels == 1 ? " was" : "s were");
    if (state->labels_lost > 0)
        cli_print(cli, "%" PRIu64 " label%s could not be restored: %s unknown.\n",
                  state->labels_lost, state->labels_lost == 1 ? "" : "s",
                  state->labels_lost == 1 ? "its name is" : "their names are");
    if (state->twice > 0)
        cli_print(cli,
                  "%" PRIu64 " message%s fetched by a sync before the new id was known: "
                  "the archive has %s twice, once as gone.\n",
                  state->twice, state->twice == 1 ? " was" : "s were",
                  state->twice == 1 ? "it" : "them");
    tide_json_array(&refusals.list);
    tide_restore_answer_refused(self->result, print_refusal, &refusals);
    tide_json_set(&cli->json, "refused", &refusals.list);
    tide_json_set_cstr(&cli->json, "account", state->email);
    tide_json_set_u64(&cli->json, "manifest", state->manifest);
    tide_json_set_u64(&cli->json, "labels_made", state->labels);
    tide_json_set_u64(&cli->json, "labels_lost", state->labels_lost);
    tide_json_set_u64(&cli->json, "stored_twice", state->twice);
    tide_json_set_bool(&cli->json, "handed_over", self->handed_over);
    if (state->done[TIDE_DEED_REFUSE].messages > 0)
        cli->exit_code = CLI_EXIT_BAD_ITEMS;
}

static void show_progress(struct restoring *self, bool last)
{
    const struct tide_restore_state *state = &self->state;
    struct cli_live *live = &self->shown.live;
    live->done = sum_of(state->done).messages;
    live->total = sum_of(state->planned).messages;
    live->bytes = sum_of(state->done).bytes;
    live->more[0] = state->done[TIDE_DEED_REFUSE].messages;
    cli_shown_tick(&self->shown, self->home.engine, last);
}

/* ---- doing ---- */

/* Asks on a terminal; a script needs --yes. */
static tide_status confirm(struct restoring *self)
{
    struct cli *cli = self->cli;
    char size[TIDE_SIZE_TEXT_BYTES];
    char answer[16] = "";
    if (cli_flag(cli, "yes") != NULL)
        return TIDE_OK;
    const struct tide_restore_sum sum = sum_of(self->state.planned);
    tide_size_human(sum.bytes, size);
    if (isatty(STDIN_FILENO) != 1) {
        cli->exit_code = CLI_EXIT_USAGE;
        return cli_fail(cli, TIDE_INVALID,
                        "Add --yes to restore, or --dry-run to see what would be done.",
                        "%" PRIu64 " message%s (%s) would be put back into %s", sum.messages,
                        sum.messages == 1 ? "" : "s", size, self->state.email);
    }
    (void)fprintf(stderr, "Put %" PRIu64 " message%s (%s) back into %s? [y/N] ", sum.messages,
                  sum.messages == 1 ? "" : "s", size, self->state.email);
    if (fgets(answer, sizeof answer, stdin) == NULL || (answer[0] != 'y' && answer[0] != 'Y'))
        return cli_fail(cli, TIDE_CANCELED, "Nothing was changed.", "not confirmed");
    return TIDE_OK;
}

/* What the job has done so far. */
static void take_result(struct restoring *self)
{
    json_t *result = NULL;
    if (tide_result_get(tide_ledger_rows(self->cli->ledger), self->ask.job, &result, NULL) !=
        TIDE_OK)
        return;
    json_decref(self->result);
    self->result = result;
    self->denied = tide_restore_answer(result, &self->state);
}

/* Until the job has ended.  A stopped engine ends it, and so does canceling it in another process;
 * either way it writes down what it did. */
static tide_status wait_for_job(struct restoring *self)
{
    struct cli *cli = self->cli;
    bool stopping = false;
    tide_status rc = TIDE_TIMEOUT;
    while (rc == TIDE_TIMEOUT) {
        rc = mail_home_wait(cli, &self->home, &self->ask);
        take_result(self);
        show_progress(self, rc != TIDE_TIMEOUT);
        if (!cli_interrupted(cli) || stopping)
            continue;
        stopping = true;
        if (self->home.engine != NULL)
            tide_engine_stop(self->home.engine);
        else if (!cli_ask_cancel(&self->ask))
            return TIDE_STOPPED;
    }
    return stopping && rc == TIDE_CANCELED ? TIDE_STOPPED : rc;
}

static tide_status run_job(struct restoring *self)
{
    char dedupe[64];
    tide_json payload;
    TIDE_TRY(cli_ask_clear(&self->ask, TIDE_MAIL_RESTORE, self->state.email));
    tide_restore_dedupe(self->account, dedupe);
    tide_json_object(&payload);
    tide_restore_ask(&self->wanted, &payload);
    TIDE_TRY(cli_ask_job(&self->ask, TIDE_MAIL_RESTORE, self->state.email, dedupe, &payload));
    return wait_for_job(self);
}

/* In our engine, or in the process that has the directory; if that ends first, in ours. */
static tide_status drive(struct restoring *self)
{
    struct cli *cli = self->cli;
    const char *email = self->state.email;
    (void)cli_interruptible(cli);
    const uint64_t planned = sum_of(self->state.planned).messages;
    self->columns = (struct cli_columns){.done = "restored",
                                         .done_json = "restored",
                                         .rate = "msg/s",
                                         .rate_json = "messages_per_s",
                                         .more = {{"refused", "refused"}}};
    if (planned > 0) /* the other deeds cost less, or nothing */
        self->columns.units_each =
            self->state.planned[TIDE_DEED_INSERT].messages * INSERT_UNITS / planned;
    cli_shown_open(cli, &tide_mail_system, &self->columns, email, &self->shown);
    self->home.archiver = true;
    tide_status rc = TIDE_OK;
    do {
        cli_ask_close(&self->ask);
        rc = mail_home_ask(cli, &self->home, email, &self->ask);
        self->handed_over = self->home.engine == NULL;
        if (rc == TIDE_OK)
            rc = run_job(self);
    } while (rc != TIDE_OK && self->ask.gone && !cli_interrupted(cli));
    if (self->denied || rc == TIDE_AUTH)
        return mail_home_sign_in(cli, email, "archive");
    if (rc == TIDE_OK || rc == TIDE_STOPPED)
        print_result(self);
    if (rc == TIDE_STOPPED) {
        cli_print(cli, "For the rest, run `tidemark mail restore --manifest %" PRIu64 " --yes`\n",
                  self->state.manifest);
        cli->exit_code = CLI_EXIT_INTERRUPTED;
        return TIDE_OK;
    }
    return cli_hint(cli, rc,
                    "Restored messages stay restored; run the same command again to resume.");
}

/* Reads only: safe while other processes run. */
static tide_status plan(struct restoring *self, tide_archive **archive_out)
{
    struct cli *cli = self->cli;
    bool has = false;
    char email[256];
    TIDE_TRY(cli_ledger_read(cli));
    const tide_rows db = tide_ledger_rows(cli->ledger);
    tide_status rc = tide_rows_has(db, "mail_removal", "the manifests", &has, &cli->err);
    if (rc == TIDE_OK && !has)
        return cli_fail(cli, TIDE_NOT_FOUND, "`tidemark account add gmail EMAIL` adds one.",
                        "there is no mail account");
    if (rc == TIDE_OK && self->wanted.ids_count > 0)
        rc = ids_complete(self, db);
    if (rc == TIDE_OK)
        rc = tide_restore_account(db, &self->wanted, &self->account, self->state.email, &cli->err);
    if (rc == TIDE_OK)
        rc = mail_home_archive(cli, &self->home, self->state.email, email, archive_out);
    if (rc == TIDE_OK)
        rc = tide_restore_open(cli->world, db, *archive_out, &self->wanted, cli->mem,
                               &self->restore, &cli->err);
    if (rc == TIDE_OK) {
        self->state = *tide_restore_state(self->restore);
        memcpy(self->state.email, email, sizeof email);
    }
    return cli_hint(
        cli, rc,
        "`tidemark mail search --help` lists the operators, `tidemark account list` the accounts.");
}

static tide_status do_wanted(struct restoring *self)
{
    const uint64_t planned = sum_of(self->state.planned).messages;
    if (cli_flag(self->cli, "dry-run") != NULL) {
        print_plan(self);
        return TIDE_OK;
    }
    TIDE_TRY(planned > 0 ? confirm(self) : TIDE_OK);
    if (planned == 0 && self->state.planned[TIDE_DEED_REFUSE].messages == 0) {
        print_result(self);
        return TIDE_OK;
    }
    return drive(self);
}

tide_status cli_mail_restore(struct cli *cli)
{
    struct restoring self = {.cli = cli};
    tide_archive *archive = NULL;
    char email[256] = "";
    tide_auto_buf words = tide_buf_in(cli->mem, 1024);
    tide_arena_init(&self.ids, cli->mem, IDS_BYTES_MAX);
    tide_status rc = mail_home_places(cli, &self.home);
    if (rc == TIDE_OK)
        rc = read_wanted(cli, &self.home, email, &words, &self.wanted);
    if (rc == TIDE_OK)
        rc = plan(&self, &archive);
    if (rc == TIDE_OK)
        rc = do_wanted(&self);
    tide_restore_close(self.restore);
    tide_arena_done(&self.ids);
    (void)tide_archive_close(archive, NULL);
    cli_ask_close(&self.ask);
    cli_display_close(&self.shown.display);
    json_decref(self.result);
    const tide_status closed = mail_home_close(cli, &self.home);
    return rc == TIDE_OK ? closed : rc;
}
