#include "mail/commands/home.h"

#include "mail/archive/shelf.h"
#include "mail/status.h"
#include "tidemark_inside.h"
#include "world/free_space.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

tide_status mail_home_places(struct cli *cli, struct mail_home *home)
{
    return archive_here_places(cli, home->archive_dir, home->secrets_dir);
}

tide_status mail_home_open(struct cli *cli, struct mail_home *home)
{
    const struct tide_mail_options wanted = {.archiver = home->archiver, .no_sync = home->no_sync};
    home->opened = (struct cli_engine){.options = &wanted};
    archive_here_take(&home->opened.here, &tide_mail_system);
    tide_status rc = mail_home_places(cli, home);
    if (rc == TIDE_OK)
        rc = cli_engine_open(cli, &home->opened);
    home->engine = home->opened.engine;
    home->secrets = home->opened.secrets;
    home->mail = home->opened.states[0];
    return rc;
}

tide_status mail_home_room(struct cli *cli, struct mail_home *home)
{
    tide_status rc = tide_dir_make(cli->world, home->archive_dir, &cli->err);
    if (rc == TIDE_OK)
        rc = tide_room_check(cli->world, home->archive_dir, cli_free_min(cli), &cli->err);
    return cli_hint(
        cli, rc, "Stored mail is safe. Free disk space, or lower disk.free_min, and run it again.");
}

tide_status mail_home_close(struct cli *cli, struct mail_home *home)
{
    home->opened.engine = home->engine;
    home->opened.secrets = home->secrets;
    cli_engine_settle(cli, &home->opened);
    return cli_engine_close(cli, &home->opened);
}

/* ---- asking for jobs ---- */

enum { TICK_MS = 100, TURNS_MAX = 3, SIGNED_OUT_MS = 3000 };

static tide_status start_for(struct cli *cli, struct mail_home *home, const char *email)
{
    TIDE_TRY(tide_engine_only(home->engine, &email, 1, &cli->err));
    return tide_engine_start(home->engine, &cli->err);
}

tide_status mail_home_ask(struct cli *cli, struct mail_home *home, const char *email,
                          struct cli_ask *ask_out)
{
    tide_status rc = TIDE_NOT_FOUND;
    for (unsigned turn = 0; rc == TIDE_NOT_FOUND && turn < TURNS_MAX; turn++) {
        const tide_status opened = mail_home_open(cli, home);
        if (opened == TIDE_OK) {
            TIDE_TRY(start_for(cli, home, email));
            return cli_ask_open(cli, home->engine, ask_out);
        }
        if (opened != TIDE_BUSY)
            return opened;
        cli->hint[0] = '\0';
        rc = cli_ask_open(cli, NULL, ask_out); /* it may end just now */
    }
    if (rc == TIDE_OK && !cli->quiet && !cli->want_json)
        (void)fprintf(stderr, "Process %" PRIu64 " works in this directory and does this.\n",
                      ask_out->pid);
    return cli_hint(cli, rc == TIDE_NOT_FOUND ? TIDE_BUSY : rc,
                    "Another process uses this directory but does not answer. Wait, or stop it, "
                    "and run this command again.");
}

static tide_status cannot_run(struct cli *cli, const char *email)
{
    return cli_fail(cli, TIDE_BUSY,
                    "`tidemark jobs list` and `tidemark account list` show what is paused or "
                    "halted.",
                    "the jobs of %s do not run", email);
}

/* In another process.  The ledger may learn of a new sign-in a moment late. */
static tide_status can_run_there(struct cli *cli, struct mail_home *home, const char *email)
{
    const uint64_t now_ms = tide_world_now_ms(cli->world);
    struct tide_mail_look look;
    tide_mail_look_init(&look, cli->mem);
    tide_status rc = tide_mail_look(cli->ledger, email, false, &look, &cli->err);
    if (rc != TIDE_OK || !look.signed_out)
        home->signed_out_ms = 0;
    else if (home->signed_out_ms == 0)
        home->signed_out_ms = now_ms;
    else if (now_ms - home->signed_out_ms >= SIGNED_OUT_MS)
        rc = tide_error_set(&cli->err, TIDE_AUTH, "its sign-in was refused");
    if (rc == TIDE_OK && (look.paused || look.halted))
        rc = cannot_run(cli, email);
    tide_mail_look_done(&look);
    return rc;
}

tide_status mail_home_can_run(struct cli *cli, struct mail_home *home, const char *email)
{
    char why[400];
    if (home->engine == NULL)
        return can_run_there(cli, home, email);
    return tide_mail_signed_out(home->mail, email, why)
               ? tide_error_set(&cli->err, TIDE_AUTH, "%s", why)
               : TIDE_OK;
}

tide_status mail_home_sign_in(struct cli *cli, const char *email, const char *purpose)
{
    const tide_error why = cli->err;
    char hint[400];
    (void)snprintf(hint, sizeof hint,
                   "Sign in again with `tidemark account add gmail %.100s --for %s` and the flags "
                   "it was added with, then run this again.",
                   email, purpose);
    return cli_fail(cli, TIDE_AUTH, hint, "%.100s: %.250s", email, why.text);
}

tide_status mail_home_wait(struct cli *cli, struct mail_home *home, struct cli_ask *ask)
{
    tide_status waited = TIDE_TIMEOUT;
    if (home->engine != NULL)
        waited = tide_engine_wait(home->engine, TICK_MS, &cli->err);
    else
        (void)tide_world_sleep_until(cli->world, tide_world_now_us(cli->world) + TICK_MS * 1000ull,
                                     NULL);
    if (waited != TIDE_OK && waited != TIDE_TIMEOUT)
        return waited;
    tide_status rc = cli_ask_look(ask);
    if (rc != TIDE_TIMEOUT)
        return rc;
    TIDE_TRY(mail_home_can_run(cli, home, ask->email));
    if (waited == TIDE_OK)
        return cannot_run(cli, ask->email);
    return TIDE_TIMEOUT;
}

/* ---- which account ---- */

/* Archives stay where accounts are removed: those of accounts that exist come first. */
struct choice {
    unsigned count; /* archives */
    char email[256];
    const struct cli_names *known; /* accounts that exist; NULL: archives are only counted */
    unsigned known_count;          /* archives of these */
    char known_email[256];
};

void mail_home_archives(const char *archive_dir, bool (*visit)(const char *email, void *arg),
                        void *arg)
{
    DIR *folder = opendir(archive_dir);
    if (folder == NULL)
        return;
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder))
        if (strchr(entry->d_name, '@') != NULL && !visit(entry->d_name, arg))
            break;
    (void)closedir(folder);
}

/* The accounts that exist, none where the ledger cannot be read; the caller may open it to write. */
static void accounts_known(struct cli *cli, struct cli_names *names)
{
    const tide_error kept = cli->err;
    char hint[sizeof cli->hint];
    const bool opens = cli->ledger == NULL && cli->lock == NULL;
    memcpy(hint, cli->hint, sizeof hint);
    if (cli_names(cli, &tide_mail_system, NULL, 0, names) != TIDE_OK) {
        cli->err = kept;
        memcpy(cli->hint, hint, sizeof hint);
    }
    if (opens)
        cli_ledger_close(cli);
}

struct spelling {
    const char *email, *archive_dir;
    char *found;
};

/* That of the caller is the best one. */
static void spell(const struct spelling *spelling, const char *email)
{
    if (strcasecmp(email, spelling->email) == 0 && strcmp(spelling->found, spelling->email) != 0)
        (void)snprintf(spelling->found, 256, "%s", email);
}

/* An account that was added and removed again leaves a directory without mail. */
static bool spell_archive(const char *email, void *arg)
{
    const struct spelling *spelling = arg;
    char path[CLI_PATH_BYTES + 300];
    bool mail = false;
    (void)snprintf(path, sizeof path, "%s/%s", spelling->archive_dir, email);
    DIR *folder = strcasecmp(email, spelling->email) == 0 ? opendir(path) : NULL;
    if (folder == NULL)
        return true;
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        const size_t bytes = strlen(entry->d_name);
        mail = mail || (bytes > 3 && strcmp(entry->d_name + bytes - 3, ".db") == 0);
    }
    (void)closedir(folder);
    if (mail)
        spell(spelling, email);
    return true;
}

void mail_home_spelling(struct cli *cli, const char *email, char spelling_out[256])
{
    struct mail_home home = {0};
    struct cli_names names;
    struct spelling spelling = {email, home.archive_dir, spelling_out};
    const tide_error kept = cli->err;
    spelling_out[0] = '\0';
    if (mail_home_places(cli, &home) == TIDE_OK)
        mail_home_archives(home.archive_dir, spell_archive, &spelling);
    cli->err = kept;
    accounts_known(cli, &names);
    for (size_t i = 0; i < names.count; i++)
        spell(&spelling, names.list[i]);
    cli_names_done(&names);
}

static bool choose(const char *email, void *arg)
{
    struct choice *choice = arg;
    choice->count++;
    (void)snprintf(choice->email, sizeof choice->email, "%s", email);
    for (size_t i = 0; choice->known != NULL && i < choice->known->count; i++)
        if (strcmp(choice->known->list[i], email) == 0) {
            choice->known_count++;
            (void)snprintf(choice->known_email, sizeof choice->known_email, "%s", email);
        }
    return true;
}

/* Which of several archives: that of the only account that exists. */
static tide_status choose_known(struct cli *cli, const struct mail_home *home, char email_out[256])
{
    struct cli_names names;
    struct choice choice = {.known = &names};
    accounts_known(cli, &names);
    mail_home_archives(home->archive_dir, choose, &choice);
    cli_names_done(&names);
    if (choice.known_count > 1)
        return cli_fail(cli, TIDE_INVALID, "Name one with --account EMAIL.",
                        "there are %u mail accounts", choice.known_count);
    if (choice.known_count == 0)
        return cli_fail(
            cli, TIDE_INVALID, "Name one with --account EMAIL.",
            "there are %u mail archives, and none of them is of an account that is added here",
            choice.count);
    (void)snprintf(email_out, 256, "%s", choice.known_email);
    return TIDE_OK;
}

tide_status mail_home_account(struct cli *cli, struct mail_home *home, const char *named,
                              char email_out[256])
{
    struct choice choice = {0};
    /* It becomes the name of a directory, and may come from a request (cli/serve/api.h).  One without
     * '@' is the archive of another system, or, if it is empty, that of all. */
    if (named != NULL && (named[0] == '.' || strchr(named, '/') != NULL ||
                          strchr(named, '@') == NULL || strlen(named) > 255))
        return cli_fail(cli, TIDE_NOT_FOUND, "`tidemark account list` shows the accounts.",
                        "there is no mail account \"%.200s\"", named);
    if (named != NULL) {
        (void)snprintf(email_out, 256, "%s", named);
        return TIDE_OK;
    }
    mail_home_archives(home->archive_dir, choose, &choice);
    if (choice.count == 0)
        return cli_fail(cli, TIDE_NOT_FOUND,
                        "Add one with `tidemark account add gmail EMAIL`, then run "
                        "`tidemark mail sync`.",
                        "there is no mail archive in %s", home->archive_dir);
    if (choice.count > 1)
        return choose_known(cli, home, email_out);
    (void)snprintf(email_out, 256, "%s", choice.email);
    return TIDE_OK;
}

tide_status mail_home_account_later(struct cli *cli, const char *named)
{
    struct mail_home home = {0};
    char email[256];
    TIDE_TRY(cli_names_later(cli, &tide_mail_system, &named, named != NULL, true));
    TIDE_TRY(mail_home_places(cli, &home));
    const tide_status rc = mail_home_account(cli, &home, named, email);
    if (rc != TIDE_NOT_FOUND)
        return rc;
    cli->err = (tide_error){TIDE_OK, 0, ""};
    cli->hint[0] = '\0';
    return TIDE_OK;
}

static tide_status archive_take(struct cli *cli, struct mail_home *home, tide_shelf *shelf,
                                const char *named, char email_out[256], tide_archive **archive_out)
{
    char dir[CLI_PATH_BYTES + 300];
    TIDE_TRY(mail_home_places(cli, home));
    TIDE_TRY(mail_home_account(cli, home, named, email_out));
    (void)snprintf(dir, sizeof dir, "%s/%s", home->archive_dir, email_out);
    if (access(dir, F_OK) != 0 && errno == ENOENT)
        return cli_fail(cli, TIDE_NOT_FOUND,
                        cli_ledger_choose(cli) == TIDE_OK && cli->shared != NULL
                            ? "`tidemark account list` shows whether it is elsewhere; `tidemark "
                              "mail sync` creates it where its sign-in is."
                            : "`tidemark mail sync` creates it; `tidemark account list` shows the "
                              "accounts.",
                        "there is no archive of %.200s here", email_out);
    const struct tide_archive_options options = {
        .dir = dir, .account = email_out, .world = cli->world, .read_only = true};
    tide_status rc = tide_shelf_take(shelf, &options, cli->mem, archive_out, &cli->err);
    if (rc == TIDE_INVALID || rc == TIDE_NEWER)
        return cli_hint(cli, rc, mail_home_broken_remedy(rc));
    return cli_hint(cli, rc,
                    "`tidemark mail sync` creates the archive; `tidemark account list` "
                    "shows the accounts.");
}

tide_status mail_home_archive(struct cli *cli, struct mail_home *home, const char *named,
                              char email_out[256], tide_archive **archive_out)
{
    return archive_take(cli, home, NULL, named, email_out, archive_out);
}

tide_status mail_home_take(struct cli *cli, struct mail_home *home, const char *named,
                           char email_out[256], tide_archive **archive_out)
{
    return archive_take(cli, home, cli_kept(cli, &tide_mail_system), named, email_out, archive_out);
}

void mail_home_give(struct cli *cli, tide_archive *archive)
{
    tide_shelf_give(cli_kept(cli, &tide_mail_system), archive);
}

/* ---- what cannot be read ---- */

const char *mail_home_broken_remedy(tide_status why)
{
    if (why == TIDE_NEWER)
        return "Install the version of Tidemark that wrote it, or a newer one.";
    if (why == TIDE_INVALID)
        return "Move the file out of the archive, then run `tidemark mail sync`: it fetches the "
               "missing mail again.";
    return "Run `tidemark mail heal`: it moves the file aside and fetches its mail again.";
}

/* One archive or shard that is left out; a command that reads it again does not name it again. */
static void broken_note(struct cli *cli, const char *kind, const char *name, const char *why,
                        const char *remedy)
{
    json_t *list = json_object_get(cli->json.value, "broken");
    const json_t *known = NULL;
    size_t index = 0;
    tide_json one;
    json_array_foreach(list, index, known)
    {
        const char *known_name = json_string_value(json_object_get(known, kind));
        const char *known_why = json_string_value(json_object_get(known, "what"));
        if (known_name != NULL && known_why != NULL && strcmp(known_name, name) == 0 &&
            strcmp(known_why, why) == 0)
            return;
    }
    if (!cli->want_json)
        (void)fprintf(stderr,
                      "tidemark: warning: %s%s cannot be read; its messages are left out: %s\n"
                      "          %s\n",
                      name, strcmp(kind, "shard") == 0 ? ".db" : "", why, remedy);
    tide_json_object(&one);
    tide_json_set_cstr(&one, kind, name);
    tide_json_set_cstr(&one, "what", why);
    tide_json_set_cstr(&one, "remedy", remedy);
    if (one.value != NULL)
        (void)json_array_append(list, one.value);
    tide_json_done(&one);
}

static void broken_begin(struct cli *cli)
{
    tide_json list;
    if (json_object_get(cli->json.value, "broken") != NULL)
        return;
    tide_json_array(&list);
    tide_json_set(&cli->json, "broken", &list);
}

static void broken_shard(const char *shard, tide_status rc, const char *why, void *arg)
{
    struct cli *cli = arg;
    cli->exit_code = CLI_EXIT_BAD_ITEMS;
    broken_note(cli, "shard", shard, why, mail_home_broken_remedy(rc));
}

tide_status mail_home_broken(struct cli *cli, tide_archive *archive)
{
    broken_begin(cli);
    return tide_archive_broken(archive, broken_shard, cli, &cli->err);
}

tide_status mail_home_broken_met(struct cli *cli, tide_archive *archive)
{
    broken_begin(cli);
    return tide_archive_broken_met(archive, broken_shard, cli, &cli->err);
}

bool mail_home_pass(struct cli *cli, const char *email, size_t archives, tide_status rc)
{
    if (archives < 2 || rc == TIDE_OK || rc == TIDE_NO_MEMORY || rc == TIDE_CANCELED)
        return false;
    const tide_error why = cli->err;
    char remedy[sizeof cli->hint];
    (void)snprintf(remedy, sizeof remedy, "%s",
                   rc == TIDE_INVALID
                       ? "If it is a copy of an archive, move its directory elsewhere."
                       : cli->hint);
    cli->err = (tide_error){TIDE_OK, 0, ""};
    cli->hint[0] = '\0';
    cli->exit_code = CLI_EXIT_BAD_ITEMS;
    broken_begin(cli);
    broken_note(cli, "account", email, why.text, remedy);
    return true;
}
