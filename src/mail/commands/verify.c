/* verify.c - `tidemark mail verify`: reads the archive, also while other processes run (M9). */
#include "mail/commands/home.h"
#include "mail/commands/known.h"

#include "base/clocktext.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- verify ---- */

struct verifying {
    struct cli *cli;
    tide_json list;
    uint64_t damaged;
    uint64_t foreign;  /* of them, files that heal leaves alone */
    uint64_t imported; /* of them, messages that Gmail does not have */
};

static void damage_row(const struct tide_damage *damage, void *arg)
{
    struct verifying *verifying = arg;
    tide_json one;
    verifying->damaged++;
    verifying->imported += tide_import_id_is(tide_text_of(damage->gmail_id));
    cli_print(verifying->cli, "DAMAGED  %s  %s  %s\n", damage->shard,
              damage->gmail_id[0] == '\0' ? "-" : damage->gmail_id, damage->what);
    tide_json_object(&one);
    tide_json_set_cstr(&one, "shard", damage->shard);
    tide_json_set_cstr(&one, "id", damage->gmail_id);
    tide_json_set_cstr(&one, "what", damage->what);
    tide_json_append(&verifying->list, &one);
}

/* What the ledger knows about the account; TIDE_NOT_FOUND: nothing. */
static tide_status look_at(struct cli *cli, const char *email, struct tide_mail_look *look)
{
    tide_error none = {TIDE_OK, 0, ""};
    tide_status rc = cli_ledger_read(cli);
    if (rc == TIDE_OK)
        rc = tide_mail_look(cli->ledger, email, false, look, &none);
    if (rc == TIDE_NOT_FOUND) {
        cli->err = (tide_error){TIDE_OK, 0, ""};
        cli->hint[0] = '\0';
    }
    return rc;
}

/* Compares the archive with the ledger and the manifests; skips one that the ledger does not
 * know. */
static tide_status compare(struct cli *cli, const char *email, tide_archive *archive)
{
    struct tide_mail_look look;
    struct tide_mail_kept kept = {0};
    tide_mail_look_init(&look, cli->mem);
    tide_status rc = look_at(cli, email, &look);
    const bool unknown = rc == TIDE_NOT_FOUND;
    if (rc == TIDE_OK && archive != NULL)
        rc = tide_mail_kept(archive, &kept, &cli->err);
    const struct mail_known_ask ask = {
        .look = &look, .archive = archive, .stored = kept.stored, .thorough = true};
    if (rc == TIDE_OK)
        rc = mail_known_show(cli, &ask, &cli->json);
    tide_mail_look_done(&look);
    return unknown ? TIDE_OK : rc;
}

/* Without an archive, takes the accounts from the ledger and reports what is missing. */
static tide_status verify_nothing(struct cli *cli, const char *named)
{
    const tide_error why = cli->err;
    char hint[sizeof cli->hint];
    struct cli_names names = {.count = 0};
    memcpy(hint, cli->hint, sizeof hint);
    cli->hint[0] = '\0';
    const tide_status rc = cli_names(cli, &tide_mail_system, &named, named != NULL, &names);
    for (size_t i = 0; rc == TIDE_OK && i < names.count; i++) {
        cli_print(cli, "%s: there is no archive\n", names.list[i]);
        (void)compare(cli, names.list[i], NULL);
    }
    cli_names_done(&names);
    if (cli->exit_code == CLI_EXIT_BAD_ITEMS)
        return TIDE_OK;
    cli->err = why; /* nothing was ever stored */
    memcpy(cli->hint, hint, sizeof hint);
    return TIDE_NOT_FOUND;
}

/* Says what to do about a file that heal leaves alone. */
static void foreign_row(const char *shard, tide_status why, const char *text, void *arg)
{
    struct verifying *verifying = arg;
    (void)text;
    if (why == TIDE_CORRUPT)
        return;
    verifying->foreign++;
    cli_print(verifying->cli, "%s.db: %s\n", shard, mail_home_broken_remedy(why));
}

static tide_status verify(struct cli *cli, const char *email, tide_archive *archive,
                          uint64_t sample)
{
    struct verifying verifying = {.cli = cli};
    uint64_t checked = 0;
    tide_json_array(&verifying.list);
    tide_status rc =
        tide_archive_verify(archive, (uint32_t)sample, damage_row, &verifying, &checked, &cli->err);
    if (rc == TIDE_OK)
        cli_print(cli, "%s: %" PRIu64 " message%s read back, %" PRIu64 " damaged\n", email, checked,
                  checked == 1 ? "" : "s", verifying.damaged);
    if (rc == TIDE_OK && verifying.damaged > 0) {
        cli->exit_code = CLI_EXIT_BAD_ITEMS;
        rc = tide_archive_broken(archive, foreign_row, &verifying, &cli->err);
    }
    if (rc == TIDE_OK && verifying.damaged > verifying.foreign + verifying.imported)
        cli_print(cli, "Run `tidemark mail heal %s` to fetch damaged messages again.\n", email);
    if (rc == TIDE_OK && verifying.imported > 0)
        cli_print(cli,
                  "%" PRIu64
                  " damaged message%s came from files and %s not in Gmail: run `tidemark "
                  "mail heal %s`, then `tidemark mail import` with the same files again.\n",
                  verifying.imported, verifying.imported == 1 ? "" : "s",
                  verifying.imported == 1 ? "is" : "are", email);
    tide_json_set_u64(&cli->json, "checked", checked);
    tide_json_set(&cli->json, "damage", &verifying.list);
    return rc == TIDE_OK ? compare(cli, email, archive) : rc;
}

static tide_status sample_of(struct cli *cli, uint64_t *sample_out)
{
    const char *sample = cli_flag(cli, "sample");
    *sample_out = 0;
    return sample == NULL ? TIDE_OK : cli_number(cli, sample, "--sample", sample_out);
}

tide_status cli_mail_verify_check(struct cli *cli)
{
    uint64_t sample = 0;
    TIDE_TRY(sample_of(cli, &sample));
    return mail_home_account_later(cli, cli_flag(cli, "account"));
}

tide_status cli_mail_verify(struct cli *cli)
{
    struct mail_home home = {0};
    char email[256];
    tide_archive *archive = NULL;
    uint64_t sample = 0;
    TIDE_TRY(sample_of(cli, &sample));
    tide_status rc = mail_home_archive(cli, &home, cli_flag(cli, "account"), email, &archive);
    if (rc == TIDE_NOT_FOUND)
        return verify_nothing(cli, cli_flag(cli, "account"));
    if (rc == TIDE_OK)
        rc = verify(cli, email, archive, sample);
    const tide_status closed = tide_archive_close(archive, &cli->err);
    return rc == TIDE_OK ? closed : rc;
}
