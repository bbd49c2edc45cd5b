#include "mail/commands/known.h"

#include "ledger/rows.h"

#include <inttypes.h>
#include <stdio.h>

enum { IDS_SHOWN = 3 };

struct known {
    struct cli *cli;
    const struct mail_known_ask *ask;
    tide_json shards, messages, others;
    char first[IDS_SHOWN * (TIDE_GMAIL_ID_BYTES_MAX + 3)];
    uint64_t shown;
};

static bool is_settled(const struct known *known)
{
    return known->ask->look->cycles_open == 0;
}

static void shard_lost(struct known *known, const struct tide_lost_one *one)
{
    tide_json json;
    cli_print(known->cli, "  lost       %s.db %s, with %" PRIu64 " message%s", one->name, one->why,
              one->count, one->count == 1 ? "" : "s");
    if (one->broken == TIDE_OK || one->broken == TIDE_CORRUPT)
        cli_print(known->cli, "; run `tidemark mail %s` to fetch again what Gmail has\n",
                  one->broken == TIDE_OK ? "sync" : "heal");
    else
        cli_print(known->cli, ". %s\n", mail_home_broken_remedy(one->broken));
    tide_json_object(&json);
    tide_json_set_cstr(&json, "shard", one->name);
    tide_json_set_cstr(&json, "why", one->why);
    tide_json_set_u64(&json, "messages", one->count);
    tide_json_append(&known->shards, &json);
}

static void others_lost(struct known *known, const struct tide_lost_one *one)
{
    tide_json json;
    if (is_settled(known))
        cli_print(known->cli,
                  "  lost       %" PRIu64 " message%s that %s in %s.db %s neither here nor in "
                  "Gmail; their ids are unknown\n",
                  one->count, one->count == 1 ? "" : "s", one->count == 1 ? "was" : "were",
                  one->name, one->count == 1 ? "is" : "are");
    else
        cli_print(known->cli,
                  "  lost       %" PRIu64 " message%s of %s.db %s still to be fetched again\n",
                  one->count, one->count == 1 ? "" : "s", one->name,
                  one->count == 1 ? "is" : "are");
    tide_json_object(&json);
    tide_json_set_cstr(&json, "shard", one->name);
    tide_json_set_u64(&json, "messages", one->count);
    tide_json_set_bool(&json, "settled", is_settled(known));
    tide_json_append(&known->others, &json);
}

static void message_lost(struct known *known, const struct tide_lost_one *one)
{
    const size_t used = strlen(known->first);
    if (known->ask->names)
        cli_print(known->cli, "  lost       %s\n", one->name);
    else if (known->shown++ < IDS_SHOWN)
        (void)snprintf(known->first + used, sizeof known->first - used, "%s%s",
                       used == 0 ? "" : ", ", one->name);
    tide_json id;
    tide_json_object(&id);
    tide_json_set_cstr(&id, "id", one->name);
    tide_json_append(&known->messages, &id);
}

static void lost_visit(const struct tide_lost_one *one, void *arg)
{
    switch (one->kind) {
    case TIDE_LOST_SHARD:
        shard_lost(arg, one);
        break;
    case TIDE_LOST_MESSAGE:
        message_lost(arg, one);
        break;
    case TIDE_LOST_OTHERS:
        others_lost(arg, one);
        break;
    }
}

/* ---- copies ---- */

/* The second mark (M18): since when all mail is exact.  Held copies are replaced newest first. */
static tide_status held_show(const struct known *known, tide_json *one)
{
    int64_t newest_ms = 0;
    int64_t oldest_ms = 0;
    char since[32];
    TIDE_TRY(tide_archive_held_span(known->ask->archive, &newest_ms, &oldest_ms, &known->cli->err));
    if (newest_ms == 0)
        return TIDE_OK; /* all of them are gone from the server */
    cli_print(known->cli,
              "  exact      everything after %s; `tidemark mail sync` fetches Gmail's own bytes of "
              "what is held, newest first\n",
              cli_time((uint64_t)newest_ms, since));
    tide_json_set_u64(one, "exact_since_unix_ms", (uint64_t)newest_ms + 1);
    tide_json_set_u64(one, "held_oldest_unix_ms", (uint64_t)oldest_ms);
    return TIDE_OK;
}

static tide_status copies_show(struct known *known, tide_json *one)
{
    const struct mail_known_ask *ask = known->ask;
    struct cli *cli = known->cli;
    struct tide_archive_tally tally = {0};
    tide_json json;
    TIDE_TRY(ask->archive == NULL ? TIDE_OK : tide_archive_tally(ask->archive, &tally, &cli->err));
    uint64_t inexact = 0;
    for (int copy = TIDE_COPY_HELD; copy < TIDE_COPIES; copy++)
        inexact += tally.copies[copy];
    const uint64_t exact = ask->stored > inexact ? ask->stored - inexact : 0;
    const uint64_t held = tally.copies[TIDE_COPY_HELD];
    if (ask->always || inexact > 0) {
        cli_print(cli, "  copies     %" PRIu64 " exact", exact);
        if (held > 0)
            cli_print(cli, ", %" PRIu64 " held until Gmail's own arrive", held);
        if (tally.copies[TIDE_COPY_SHORT] > 0)
            cli_print(cli, ", %" PRIu64 " shorter than Gmail said", tally.copies[TIDE_COPY_SHORT]);
        if (tally.copies[TIDE_COPY_DAMAGED] > 0)
            cli_print(cli, ", %" PRIu64 " damaged", tally.copies[TIDE_COPY_DAMAGED]);
        cli_print(cli, "; %" PRIu64 " exist only here%s\n", tally.gone,
                  inexact > held + tally.imported_damaged
                      ? "; run `tidemark mail heal` to fetch those that are short or damaged again"
                      : "");
    }
    if (tally.imported_damaged > 0)
        cli_print(cli,
                  "  imported   %" PRIu64
                  " of the damaged came from files and %s not in Gmail; run "
                  "`tidemark mail import` with the same files again\n",
                  tally.imported_damaged, tally.imported_damaged == 1 ? "is" : "are");
    TIDE_TRY(held > 0 ? held_show(known, one) : TIDE_OK);
    tide_json_object(&json);
    tide_json_set_u64(&json, "exact", exact);
    for (int copy = TIDE_COPY_HELD; copy < TIDE_COPIES; copy++)
        tide_json_set_u64(&json, tide_copy_name((tide_copy)copy), tally.copies[copy]);
    tide_json_set_u64(&json, "only_here", tally.gone);
    tide_json_set(one, "copies", &json);
    tide_json_set_u64(one, "imported_damaged", tally.imported_damaged); /* of copies.damaged */
    return TIDE_OK;
}

tide_status mail_known_missing(const struct tide_mail_look *look, tide_archive *archive,
                               uint64_t stored, uint64_t *missing_out, tide_error *err)
{
    const struct tide_mail_count count = {.archive = archive,
                                          .stored = stored,
                                          .recorded = look->bad + look->owed + look->accepted +
                                                      look->retrying,
                                          .total = look->messages_total};
    return tide_mail_missing(&count, missing_out, err);
}

/* A listing that left out messages, but too few to be refused (tide_mail_is_short()). */
static tide_status unlisted_show(const struct known *known, tide_json *one)
{
    const struct tide_mail_look *look = known->ask->look;
    const bool all = look->since_ms == 0 && look->tidemark_ms > 0 && look->cycles_open == 0;
    uint64_t missing = 0;
    if (all)
        TIDE_TRY(mail_known_missing(look, known->ask->archive, known->ask->stored, &missing,
                                    &known->cli->err));
    const uint64_t unlisted = tide_mail_unlisted(missing, look->messages_total);
    tide_json_set_u64(one, "unlisted", unlisted);
    if (unlisted > 0)
        cli_print(known->cli,
                  "  unlisted   the server counts %" PRIu64 " message%s more than it listed; "
                  "run `tidemark mail sync --force %s` to list everything again\n",
                  unlisted, unlisted == 1 ? "" : "s", look->email);
    return TIDE_OK;
}

tide_status mail_known_show(struct cli *cli, const struct mail_known_ask *ask, tide_json *one)
{
    struct known known = {.cli = cli, .ask = ask};
    struct tide_mail_lost lost = {0};
    tide_json json;
    const struct tide_lost_ask wanted = {.db = tide_ledger_rows(cli->ledger),
                                         .archive = ask->archive,
                                         .account = ask->look->account,
                                         .thorough = ask->thorough,
                                         .mem = cli->mem};
    tide_json_array(&known.shards);
    tide_json_array(&known.messages);
    tide_json_array(&known.others);
    tide_status rc = copies_show(&known, one);
    if (rc == TIDE_OK)
        rc = unlisted_show(&known, one);
    if (rc == TIDE_OK)
        rc = tide_mail_lost(&wanted, lost_visit, &known, &lost, &cli->err);
    if (rc == TIDE_OK && lost.messages > 0 && !ask->names)
        cli_print(cli,
                  "  lost       %" PRIu64 " message%s that exist%s nowhere else: %s%s; `tidemark "
                  "mail lost` lists them and says what to do\n",
                  lost.messages, lost.messages == 1 ? "" : "s", lost.messages == 1 ? "s" : "",
                  known.first, lost.messages > IDS_SHOWN ? ", ..." : "");
    if (lost.shards + lost.messages + lost.others > 0 && cli->exit_code == CLI_EXIT_DONE)
        cli->exit_code = CLI_EXIT_BAD_ITEMS;
    tide_json_object(&json);
    tide_json_set(&json, "shards", &known.shards);
    tide_json_set(&json, "messages", &known.messages);
    tide_json_set(&json, "others", &known.others);
    tide_json_set(one, "lost", &json);
    return rc;
}
