#include "mail/mail.h"

#include "base/check.h"
#include "base/json.h"
#include "base/limits.h"
#include "engine/accounts/archive_id.h"
#include "mail/inside.h"
#include "mail/manifest.h"
#include "mail/mime/message.h"
#include "mail/result.h"
#include "net/api/call.h"
#include "net/oauth/google.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { BUSY_MS = 2000 };

/* ---- rows ---- */

static tide_status make_tables(tide_transaction *transaction, void *arg, tide_error *err)
{
    (void)arg;
    const tide_rows db = tide_transaction_rows(transaction);
    TIDE_TRY(tide_mail_tables(db, err));
    TIDE_TRY(tide_manifest_tables(db, err));
    return tide_result_tables(db, err);
}

static tide_status read_row(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct tide_mail_row *row = arg;
    return tide_mail_row_get(tide_transaction_rows(transaction), row->account, row, err);
}

tide_status tide_mail_row_read(tide_mail *mail, uint32_t account, struct tide_mail_row *row_out,
                               tide_error *err)
{
    struct tide_mail_row row = {.account = account};
    TIDE_TRY(tide_transact(mail->engine, read_row, &row, err));
    *row_out = row;
    return TIDE_OK;
}

tide_status tide_mail_stream(tide_mail *mail, const struct tide_mail_row *row, uint64_t *stream_out,
                             tide_error *err)
{
    char name[32];
    char floor[32]; /* E5.7 */
    (void)snprintf(name, sizeof name, "mail.%" PRIu32, row->epoch);
    (void)snprintf(floor, sizeof floor, "%" PRIu64, row->since_ms);
    return tide_stream_open(mail->engine, row->account, name, floor, stream_out, err);
}

/* ---- opening and closing ---- */

/* For a command: only this process has the archive open for writing. */
static tide_status index_again(tide_job *job, void *context, tide_error *err)
{
    struct tide_mail_user *user = NULL;
    TIDE_TRY(tide_mail_user(context, tide_job_account(job), &user, err));
    return tide_archive_index_again(user->archive, tide_job_cancellation(job), err);
}

tide_status tide_mail_gate(tide_mail *mail, const struct tide_kind *kind, bool each_job,
                           uint32_t *kind_out, tide_error *err)
{
    TIDE_ASSERT(mail->gates_count < TIDE_MAIL_GATES_MAX);
    struct tide_mail_gate *gate = &mail->gates[mail->gates_count++];
    struct tide_kind gated = *kind;
    *gate = (struct tide_mail_gate){.mail = mail, .handler = kind->handler, .each_job = each_job};
    gated.handler = tide_mail_gate_run;
    gated.context = gate;
    return tide_engine_kind(mail->engine, &gated, kind_out, err);
}

static tide_status define_kinds(tide_mail *mail, tide_error *err)
{
    /* mail.plan has the highest priority; history is short.  Lists and fetches share one priority
     * from the settings (E3.4): older jobs run first, and those are the lists of a plan. */
    const bool sync = !mail->options.no_sync;
    /* On a shared ledger an account goes to a process that has the handlers its jobs need: a worker
     * without them offers the account to the command (decision 33). */
    const bool alone = !tide_engine_shared(mail->engine);
    const bool archiver = alone || mail->options.archiver;
    const struct {
        struct tide_kind kind;
        uint32_t *number;
        bool wanted;
    } kinds[] = {
        {{.name = TIDE_MAIL_PLAN_KIND,
          .handler = tide_mail_plan,
          .priority = 80,
          .dedupe_running = true},
         &mail->plan_kind,
         sync},
        {{.name = "mail.list", .handler = tide_mail_list}, &mail->list_kind, sync},
        {{.name = "mail.history", .handler = tide_mail_history, .lane = TIDE_KIND_INTERACTIVE},
         &mail->history_kind,
         sync},
        {{.name = "mail.fetch", .handler = tide_mail_fetch, .items = true},
         &mail->fetch_kind,
         sync},
        /* Behind everything else (M18): more are chosen when the chosen ones are fetched. */
        {{.name = "mail.exact", .handler = tide_mail_exact, .priority = 3, .items = true},
         &mail->exact_kind,
         sync},
        {{.name = "mail.held", .handler = tide_mail_held, .priority = 2}, &mail->held_kind, sync},
        {{.name = TIDE_MAIL_INDEX_KIND, .handler = index_again}, &mail->index_kind, sync},
        {{.name = "mail.heal", .handler = tide_mail_heal}, &mail->heal_kind, sync},
        {{.name = TIDE_MAIL_ACCEPT_KIND, .handler = tide_mail_accept}, &mail->accept_kind, sync},
        {{.name = "mail.absent", .handler = tide_mail_absent}, &mail->absent_kind, sync},
        {{.name = "mail.labels", .handler = tide_mail_labels_job}, &mail->labels_kind, sync},
        {{.name = "mail.confirm", .handler = tide_mail_confirm, .items = true},
         &mail->confirm_kind,
         sync},
        {{.name = TIDE_MAIL_REMOVE,
          .handler = tide_mail_remove,
          .lane = TIDE_KIND_INTERACTIVE,
          .priority = 90,
          .level = 1,
          .not_preemptible = true,
          .dedupe_running = true},
         &mail->remove_kind,
         archiver},
        {{.name = TIDE_MAIL_CHOOSE,
          .handler = tide_mail_choose,
          .lane = TIDE_KIND_INTERACTIVE,
          .priority = 90,
          .level = 1},
         &mail->choose_kind,
         archiver},
        {{.name = TIDE_MAIL_RESTORE,
          .handler = tide_mail_restore,
          .priority = 75, /* a user waits */
          .not_preemptible = true,
          .dedupe_running = true},
         &mail->restore_kind,
         archiver},
        /* A disk may be slow, and a packed file may have much that is no mail. */
        {{.name = TIDE_MAIL_IMPORT,
          .handler = tide_mail_import,
          .priority = 75,
          .stall_after_ms = 3600000,
          .not_preemptible = true,
          .dedupe_running = true},
         &mail->import_kind,
         alone},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct tide_kind kind = kinds[i].kind;
        kind.context = mail;
        const bool calls = kind.handler != index_again && kind.handler != tide_mail_import;
        if (kinds[i].wanted && !calls)
            TIDE_TRY(tide_engine_kind(mail->engine, &kind, kinds[i].number, err));
        else if (kinds[i].wanted)
            TIDE_TRY(tide_mail_gate(mail, &kind, kinds[i].number == &mail->plan_kind,
                                    kinds[i].number, err));
    }
    return TIDE_OK;
}

/* Jobs of a dead process do nothing (tide_engine_asked_here()); here they leave the ledger.  On a
 * shared one they may belong to a live process; there a command cancels them for its own
 * account, whose archive no other process has open. */
static tide_status cancel_leftovers(tide_mail *mail, tide_error *err)
{
    static const char *const kinds[] = {TIDE_MAIL_CHOOSE, TIDE_MAIL_REMOVE, TIDE_MAIL_RESTORE,
                                        TIDE_MAIL_IMPORT};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        TIDE_TRY(tide_cancel_kind(mail->engine, kinds[i], err));
    return TIDE_OK;
}

tide_status tide_mail_open(const struct tide_mail_options *options, tide_mem *mem,
                           tide_mail **mail_out, tide_error *err)
{
    tide_mail *mail = tide_mem_new(mem, sizeof *mail);
    if (mail == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for the mail system");
    mail->mem = mem;
    mail->world = options->world;
    mail->engine = options->engine;
    mail->secrets = options->secrets;
    mail->options = *options;
    (void)snprintf(mail->archive_dir, sizeof mail->archive_dir, "%s", options->archive_dir);
    tide_status rc = tide_lock_new(mail->world, &mail->lock);
    if (rc == TIDE_OK)
        rc = tide_cond_new(mail->world, &mail->opened);
    if (rc == TIDE_OK)
        rc = define_kinds(mail, err);
    if (rc == TIDE_OK)
        rc = tide_transact(mail->engine, make_tables, NULL, err);
    if (rc == TIDE_OK && !tide_engine_shared(mail->engine))
        rc = cancel_leftovers(mail, err);
    if (rc != TIDE_OK) {
        (void)tide_mail_close(mail, NULL);
        return rc;
    }
    *mail_out = mail;
    return TIDE_OK;
}

static tide_status user_close(tide_mail *mail, struct tide_mail_user *user, tide_error *err)
{
    /* Merge the log into the shard when no process uses it, because users copy the files.  A
     * failure is harmless: the log is as durable as the file. */
    if (user->archive != NULL)
        (void)tide_archive_checkpoint(user->archive, NULL, NULL);
    const tide_status rc = tide_archive_close(user->archive, err);
    tide_gmail_close(user->gmail);
    tide_tokens_close(user->tokens);
    tide_claims_done(&user->claims);
    tide_mem_free(mail->mem, user, sizeof *user);
    return rc;
}

tide_status tide_mail_close(tide_mail *mail, tide_error *err)
{
    if (mail == NULL)
        return TIDE_OK;
    tide_status rc = TIDE_OK;
    for (size_t i = 0; i < mail->users_count; i++) {
        const tide_status closed = user_close(mail, mail->users[i], err);
        if (rc == TIDE_OK)
            rc = closed;
    }
    if (mail->opened != NULL)
        tide_cond_free(mail->world, mail->opened);
    if (mail->lock != NULL)
        tide_lock_free(mail->world, mail->lock);
    tide_restores_close(mail);
    tide_mem_free(mail->mem, mail->signed_out,
                  mail->signed_out_capacity * sizeof *mail->signed_out);
    tide_mem_free(mail->mem, mail, sizeof *mail);
    return rc;
}

/* ---- accounts ---- */

tide_status tide_mail_tokens(tide_world *world, tide_secrets *secrets, const char *email,
                             tide_mem *mem, tide_tokens **tokens_out, tide_error *err)
{
    char secret[TIDE_SECRET_NAME_BYTES_MAX];
    char sign_in[300];
    tide_mail_secret_name(email, secret);
    (void)snprintf(sign_in, sizeof sign_in, "tidemark account add gmail %s", email);
    const struct tide_tokens_options tokens = {
        .provider = &tide_oauth_google, .secret = secret, .account = email, .sign_in = sign_in};
    return tide_tokens_open(world, secrets, &tokens, mem, tokens_out, err);
}

static struct tide_mail_user *user_new(tide_mail *mail, const char *email, tide_error *err)
{
    struct tide_mail_user *user = tide_mem_new(mail->mem, sizeof *user);
    if (user == NULL) {
        (void)tide_error_set(err, TIDE_NO_MEMORY, "no memory for %s", email);
        return NULL;
    }
    tide_claims_init(&user->claims, mail->mem);
    (void)snprintf(user->email, sizeof user->email, "%s", email);
    return user;
}

static tide_status user_archive(tide_mail *mail, struct tide_mail_user *user, tide_error *err)
{
    char dir[4096 + 256];
    tide_mail_dir(mail->archive_dir, user->email, dir, sizeof dir);
    const struct tide_archive_options options = {
        .dir = dir, .account = user->email, .world = mail->world};
    return tide_archive_open_next(&options, mail->mem, &user->archive, err);
}

static tide_status user_fill(tide_mail *mail, struct tide_mail_user *user,
                             const struct tide_mail_row *row, tide_error *err)
{
    char dir[4096 + 256];
    bool shared = false;
    tide_mail_dir(mail->archive_dir, row->email, dir, sizeof dir);
    const struct tide_placing placing = {.account = row->account,
                                         .name = row->email,
                                         .dir = dir,
                                         .secret = tide_secrets_where(mail->secrets)};
    user->account = row->account;
    TIDE_TRY(tide_archive_place(mail->engine, mail->world, &placing, &shared, err));
    TIDE_TRY(
        tide_mail_tokens(mail->world, mail->secrets, row->email, mail->mem, &user->tokens, err));
    TIDE_TRY(tide_gmail_open(row->endpoint[0] == '\0' ? NULL : row->endpoint, user->tokens,
                             mail->mem, &user->gmail, err));
    if (user->archive == NULL)
        TIDE_TRY(user_archive(mail, user, err));
    TIDE_TRY(tide_mail_prove(mail, user, err));
    return tide_archiver_forget_unplanned(mail, user->account, err);
}

/* With the lock.  An account, or with 0 the archive of that name, whoever uses it. */
static struct tide_mail_user *user_known(tide_mail *mail, uint32_t account, const char *email)
{
    for (size_t i = 0; i < mail->users_count; i++) {
        struct tide_mail_user *user = mail->users[i];
        if (account != 0 ? user->account == account : strcmp(user->email, email) == 0)
            return user;
    }
    return NULL;
}

/* Takes the archive that an import uses without an account out of the list; its account is being
 * opened, so no other caller looks for it. */
static struct tide_mail_user *guest_take(tide_mail *mail, const char *email)
{
    struct tide_mail_user *guest = NULL;
    tide_lock_take(mail->world, mail->lock);
    for (size_t i = 0; guest == NULL && i < mail->users_count; i++)
        if (mail->users[i]->account == 0 && strcmp(mail->users[i]->email, email) == 0) {
            guest = mail->users[i];
            mail->users[i] = mail->users[--mail->users_count];
        }
    tide_lock_drop(mail->world, mail->lock);
    return guest;
}

/* The import still uses it. */
static void guest_back(tide_mail *mail, struct tide_mail_user *guest)
{
    tide_gmail_close(guest->gmail);
    tide_tokens_close(guest->tokens);
    guest->gmail = NULL;
    guest->tokens = NULL;
    guest->account = 0;
    tide_lock_take(mail->world, mail->lock);
    mail->users[mail->users_count++] = guest;
    tide_lock_drop(mail->world, mail->lock);
}

static tide_status user_open(tide_mail *mail, const struct tide_mail_row *row,
                             struct tide_mail_user **user_out, tide_error *err)
{
    struct tide_mail_user *guest = guest_take(mail, row->email);
    struct tide_mail_user *user = guest != NULL ? guest : user_new(mail, row->email, err);
    if (user == NULL)
        return TIDE_NO_MEMORY;
    const tide_status rc = user_fill(mail, user, row, err);
    if (rc == TIDE_OK)
        *user_out = user;
    else if (guest != NULL)
        guest_back(mail, guest);
    else
        (void)user_close(mail, user, NULL);
    return rc;
}

/* Two jobs may call this at once, but only one may open the archive: the second waits for the
 * first.  TIDE_NOT_FOUND: the caller must open it, and then call user_opened(). */
static tide_status user_wait(tide_mail *mail, uint32_t account, const char *email,
                             struct tide_mail_user **user_out)
{
    tide_status rc = TIDE_OK;
    tide_lock_take(mail->world, mail->lock);
    struct tide_mail_user *user = user_known(mail, account, email);
    while (rc != TIDE_STOPPED && user == NULL && mail->opening) {
        rc = tide_cond_wait(mail->world, mail->opened, mail->lock, TIDE_NEVER);
        user = user_known(mail, account, email);
    }
    if (user != NULL) {
        *user_out = user;
        rc = TIDE_OK;
    } else if (rc != TIDE_STOPPED) {
        mail->opening = true;
        rc = TIDE_NOT_FOUND;
    }
    tide_lock_drop(mail->world, mail->lock);
    return rc;
}

/* `user` NULL: it could not be opened. */
static void user_opened(tide_mail *mail, struct tide_mail_user *user)
{
    tide_lock_take(mail->world, mail->lock);
    if (user != NULL)
        mail->users[mail->users_count++] = user;
    mail->opening = false;
    tide_cond_wake_all(mail->world, mail->opened);
    tide_lock_drop(mail->world, mail->lock);
}

static tide_status user_room(const tide_mail *mail, tide_error *err)
{
    return mail->users_count < TIDE_MAIL_ACCOUNTS_MAX
               ? TIDE_OK
               : tide_error_set(err, TIDE_FULL, "more than %d mail accounts in one process",
                                TIDE_MAIL_ACCOUNTS_MAX);
}

static tide_status user_add(tide_mail *mail, uint32_t account, struct tide_mail_user **user_out,
                            tide_error *err)
{
    struct tide_mail_row row;
    TIDE_TRY(tide_mail_row_read(mail, account, &row, err));
    TIDE_TRY(user_room(mail, err));
    return user_open(mail, &row, user_out, err);
}

/* Fetched messages could not be stored: a call would waste quota units. */
static tide_status user_works(const struct tide_mail_user *user, tide_error *err)
{
    return !__atomic_load_n(&user->broken, __ATOMIC_RELAXED)
               ? TIDE_OK
               : tide_error_set(err, TIDE_DISK_FULL,
                                "the archive of %s failed; check the disk, then start again",
                                user->email);
}

tide_status tide_mail_user(tide_mail *mail, uint32_t account, struct tide_mail_user **user_out,
                           tide_error *err)
{
    tide_status rc = user_wait(mail, account, "", user_out);
    if (rc == TIDE_STOPPED)
        return tide_error_set(err, rc, "stopped while an archive was opened");
    if (rc == TIDE_OK)
        return user_works(*user_out, err);
    struct tide_mail_user *user = NULL;
    rc = user_add(mail, account, &user, err);
    user_opened(mail, user);
    if (rc == TIDE_OK)
        *user_out = user;
    return rc;
}

/* ---- archives by name ---- */

struct named_ask {
    const char *email;
    uint32_t account; /* 0: none */
};

static void named_visit(const struct tide_mail_row *row, void *arg)
{
    struct named_ask *ask = arg;
    if (strcmp(row->email, ask->email) == 0)
        ask->account = row->account;
}

static tide_status named_find(tide_transaction *transaction, void *arg, tide_error *err)
{
    return tide_mail_rows(tide_transaction_rows(transaction), named_visit, arg, err);
}

static tide_status guest_add(tide_mail *mail, const char *email, struct tide_mail_user **user_out,
                             tide_error *err)
{
    TIDE_TRY(user_room(mail, err));
    struct tide_mail_user *user = user_new(mail, email, err);
    if (user == NULL)
        return TIDE_NO_MEMORY;
    const tide_status rc = user_archive(mail, user, err);
    if (rc == TIDE_OK)
        *user_out = user;
    else
        (void)user_close(mail, user, NULL);
    return rc;
}

tide_status tide_mail_user_named(tide_mail *mail, const char *email,
                                 struct tide_mail_user **user_out, tide_error *err)
{
    struct named_ask ask = {.email = email};
    TIDE_TRY(tide_transact(mail->engine, named_find, &ask, err));
    tide_status rc = TIDE_AUTH;
    if (ask.account != 0)
        rc = tide_mail_user(mail, ask.account, user_out, err);
    if (rc != TIDE_AUTH)
        return rc;
    if (err != NULL) /* without a sign-in its archive alone is opened */
        *err = (tide_error){TIDE_OK, 0, ""};
    rc = user_wait(mail, 0, email, user_out);
    if (rc == TIDE_STOPPED)
        return tide_error_set(err, rc, "stopped while an archive was opened");
    if (rc == TIDE_OK)
        return user_works(*user_out, err);
    struct tide_mail_user *user = NULL;
    rc = guest_add(mail, email, &user, err);
    user_opened(mail, user);
    if (rc == TIDE_OK)
        *user_out = user;
    return rc;
}

bool tide_mail_imports(tide_mail *mail)
{
    tide_lock_take(mail->world, mail->lock);
    const bool imports = mail->imports > 0;
    tide_lock_drop(mail->world, mail->lock);
    return imports;
}

tide_status tide_mail_archived(struct tide_mail_user *user, tide_status rc, tide_error *err)
{
    if (rc != TIDE_IO && rc != TIDE_BUSY && rc != TIDE_CORRUPT)
        return rc;
    if (rc != TIDE_BUSY)
        __atomic_store_n(&user->broken, true, __ATOMIC_RELAXED);
    if (err != NULL)
        err->status = TIDE_DISK_FULL;
    return TIDE_DISK_FULL;
}

/* ---- refused sign-ins ---- */

static struct tide_mail_signed_out *signed_out_of(tide_mail *mail, uint32_t account)
{
    for (size_t i = 0; i < mail->signed_out_count; i++)
        if (mail->signed_out[i].account == account)
            return &mail->signed_out[i];
    return NULL;
}

static void signed_in(tide_mail *mail, uint32_t account)
{
    tide_lock_take(mail->world, mail->lock);
    struct tide_mail_signed_out *out = signed_out_of(mail, account);
    if (out != NULL)
        *out = mail->signed_out[--mail->signed_out_count];
    tide_lock_drop(mail->world, mail->lock);
}

static void signed_out(tide_mail *mail, uint32_t account, const char *why)
{
    struct tide_mail_row row;
    const bool named = tide_mail_row_read(mail, account, &row, NULL) == TIDE_OK;
    tide_lock_take(mail->world, mail->lock);
    struct tide_mail_signed_out *out = signed_out_of(mail, account);
    if (out == NULL && named &&
        TIDE_GROW_IN(mail->mem, mail->signed_out, mail->signed_out_capacity,
                     mail->signed_out_count + 1, TIDE_ACCOUNTS_MAX)) {
        out = &mail->signed_out[mail->signed_out_count++];
    }
    if (out != NULL && named) {
        out->account = account;
        memcpy(out->email, row.email, sizeof out->email);
        (void)snprintf(out->text, sizeof out->text, "%s", why);
    }
    tide_lock_drop(mail->world, mail->lock);
}

bool tide_mail_signed_out(tide_mail *mail, const char *email, char text_out[400])
{
    bool out = false;
    tide_lock_take(mail->world, mail->lock);
    for (size_t i = 0; !out && i < mail->signed_out_count; i++) {
        out = strcmp(mail->signed_out[i].email, email) == 0;
        if (out)
            memcpy(text_out, mail->signed_out[i].text, sizeof mail->signed_out[i].text);
    }
    tide_lock_drop(mail->world, mail->lock);
    return out;
}

tide_status tide_mail_ended(tide_mail *mail, tide_job *job, tide_status rc, const tide_error *err)
{
    /* The previous owner of the account has not closed its archive yet. */
    if (rc == TIDE_BUSY && tide_engine_shared(mail->engine))
        return tide_job_again(job, tide_job_now_ms(job) + BUSY_MS);
    if (rc == TIDE_OK)
        signed_in(mail, tide_job_account(job));
    if (rc == TIDE_AUTH)
        signed_out(mail, tide_job_account(job), err == NULL ? "" : err->text);
    return rc;
}

bool tide_mail_wait(tide_job *job, tide_status rc, uint32_t patience_ms)
{
    return tide_api_wait(job, rc, patience_ms);
}

/* ---- running ---- */

void tide_mail_request(const struct tide_mail_run *run, uint32_t account,
                       struct tide_mail_request *request_out)
{
    (void)snprintf(request_out->payload, sizeof request_out->payload,
                   "{\"force\":%s,\"order\":%d,\"slice_days\":%" PRIu32 ",\"since\":%" PRIu64
                   ",\"heal\":%s,\"inexact\":%s}",
                   run->force ? "true" : "false", (int)run->order, run->slice_days, run->since_ms,
                   run->heal ? "true" : "false", run->inexact ? "true" : "false");
    (void)snprintf(request_out->dedupe, sizeof request_out->dedupe, "%s/%" PRIu32,
                   run->heal ? "heal" : "plan", account);
}

tide_status tide_mail_run(tide_mail *mail, const struct tide_mail_run *run, tide_error *err)
{
    uint32_t account = 0;
    TIDE_ASSERT(mail->plan_kind != 0); /* not opened without syncing */
    TIDE_TRY(tide_engine_account(mail->engine, run->email, "gmail", &account, err));
    struct tide_mail_row row;
    TIDE_TRY(tide_mail_row_read(mail, account, &row, err));
    if (run->since_ms >= tide_world_now_unix_ms(mail->world))
        return tide_error_set(err, TIDE_INVALID, "the start of the sync is in the future");
    /* Report an archive that cannot be opened here, not through a failed job. */
    struct tide_mail_user *user = NULL;
    if (run->heal && !run->elsewhere)
        TIDE_TRY(tide_mail_set_aside(mail, row.email, run->aside, err));
    if (!run->elsewhere)
        TIDE_TRY(tide_mail_user(mail, account, &user, err));
    if (user != NULL) {
        tide_lock_take(mail->world, mail->lock);
        user->budget = run->budget;
        tide_lock_drop(mail->world, mail->lock);
    }
    struct tide_mail_request request;
    tide_mail_request(run, account, &request);
    const struct tide_spec spec = {.kind = mail->plan_kind,
                                   .account = account,
                                   .payload = request.payload,
                                   .dedupe = request.dedupe};
    TIDE_TRY(tide_enqueue(mail->engine, &spec, 1, NULL, err));
    tide_engine_take_soon(mail->engine);
    return TIDE_OK;
}

struct changed_ask {
    const char *wanted;
    char name[sizeof((struct tide_mail_row *)0)->email]; /* "": none */
};

static void changed_visit(const struct tide_mail_row *row, void *arg)
{
    struct changed_ask *ask = arg;
    if (tide_mail_same_mailbox(row->email, ask->wanted))
        (void)snprintf(ask->name, sizeof ask->name, "%s", row->email);
}

static tide_status changed_find(tide_transaction *transaction, void *arg, tide_error *err)
{
    return tide_mail_rows(tide_transaction_rows(transaction), changed_visit, arg, err);
}

tide_status tide_mail_changed(tide_mail *mail, const char *email, bool whole, tide_error *err)
{
    struct changed_ask ask = {.wanted = email};
    const tide_status rc = tide_transact(mail->engine, changed_find, &ask, err);
    if (rc != TIDE_OK)
        return rc;
    if (ask.name[0] == '\0')
        return tide_error_set(err, TIDE_NOT_FOUND, "%.200s is not an account of the mail system",
                              email);
    /* The job opens the archive, also if that is here: this caller must not wait for it. */
    const struct tide_mail_run run = {.email = ask.name, .force = whole, .elsewhere = true};
    return tide_mail_run(mail, &run, err);
}

enum { INDEX_GROUP = 200 }; /* so that the caller can stop between two groups */

tide_status tide_mail_index(tide_mail *mail, uint64_t *done_out, tide_error *err)
{
    uint64_t done = 0;
    for (size_t i = 0; done == 0; i++) {
        tide_lock_take(mail->world, mail->lock);
        tide_archive *archive = i < mail->users_count ? mail->users[i]->archive : NULL;
        tide_lock_drop(mail->world, mail->lock);
        if (archive == NULL)
            break; /* that was the last */
        TIDE_TRY(tide_archive_index(archive, INDEX_GROUP, &done, err));
    }
    *done_out = done;
    return TIDE_OK;
}

tide_status tide_mail_index_soon(tide_mail *mail, bool *left_out, tide_error *err)
{
    *left_out = false;
    for (size_t i = 0;; i++) {
        bool left = false;
        tide_lock_take(mail->world, mail->lock);
        tide_archive *archive = i < mail->users_count ? mail->users[i]->archive : NULL;
        tide_lock_drop(mail->world, mail->lock);
        if (archive == NULL)
            return TIDE_OK; /* that was the last */
        TIDE_TRY(tide_archive_index_soon(archive, &left, err));
        *left_out = *left_out || left;
    }
}

/* An account that this process does not lease gets no jobs; its next use opens it again. */
static struct tide_mail_user *user_resting(tide_mail *mail)
{
    struct tide_mail_user *resting = NULL;
    tide_lock_take(mail->world, mail->lock);
    for (size_t i = 0; resting == NULL && i < mail->users_count; i++)
        if (!tide_engine_uses(mail->engine, mail->users[i]->account)) {
            resting = mail->users[i];
            mail->users[i] = mail->users[--mail->users_count];
        }
    tide_lock_drop(mail->world, mail->lock);
    return resting;
}

tide_status tide_mail_rest(tide_mail *mail, tide_error *err)
{
    tide_status rc = TIDE_OK;
    for (struct tide_mail_user *user = user_resting(mail); user != NULL;
         user = user_resting(mail)) {
        const tide_status closed = user_close(mail, user, err);
        rc = rc == TIDE_OK ? closed : rc;
    }
    return rc;
}

bool tide_mail_spent(tide_mail *mail, const struct tide_mail_budget *budget)
{
    tide_lock_take(mail->world, mail->lock);
    const bool spent = budget->spent;
    tide_lock_drop(mail->world, mail->lock);
    return spent;
}

struct state_ask {
    uint64_t stream;
    uint64_t finished;
    struct tide_mail_state *state;
};

static tide_status state_mark(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct state_ask *ask = arg;
    const tide_status rc = tide_mail_mark_get(tide_transaction_rows(transaction), ask->stream,
                                              ask->finished, ask->state->history_id, err);
    return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
}

static void state_add(const struct tide_shard_state *shard, void *arg)
{
    struct tide_mail_state *state = arg;
    state->shards++;
    state->stored += shard->messages;
    state->raw_bytes += shard->raw_bytes;
    state->archive_bytes += shard->bytes;
}

static tide_status state_archive(tide_mail *mail, uint32_t account, struct tide_mail_state *state,
                                 tide_error *err)
{
    struct tide_mail_user *user = NULL;
    TIDE_TRY(tide_mail_user(mail, account, &user, err));
    return tide_archive_states(user->archive, state_add, state, err);
}

tide_status tide_mail_state(tide_mail *mail, const char *email, struct tide_mail_state *state_out,
                            tide_error *err)
{
    struct tide_mail_state state = {.stored = 0};
    struct tide_mail_row row;
    struct tide_stream_state stream;
    uint32_t account = 0;
    struct state_ask ask = {.state = &state};
    TIDE_TRY(tide_engine_account(mail->engine, email, "gmail", &account, err));
    TIDE_TRY(state_archive(mail, account, &state, err)); /* checks the archive before the row is
                                                         * read */
    TIDE_TRY(tide_mail_row_read(mail, account, &row, err));
    TIDE_TRY(tide_mail_stream(mail, &row, &ask.stream, err));
    TIDE_TRY(tide_stream_state(mail->engine, ask.stream, &stream, err));
    state.messages_total = row.messages_total;
    state.last_run_ms = row.last_run_ms;
    state.cycles = stream.cycles_opened;
    state.cycles_open = stream.cycles_opened - stream.cycles_finished;
    state.since_ms = row.since_ms;
    memcpy(state.notice, row.notice, sizeof state.notice);
    if (!tide_text_to_u64(tide_text_of(stream.cursor), &state.tidemark_ms) &&
        row.floor_ms > row.since_ms)
        state.tidemark_ms = row.floor_ms;
    if (row.lost && row.lost_ms < state.tidemark_ms)
        state.tidemark_ms = row.lost_ms;
    ask.finished = stream.cycles_finished;
    TIDE_TRY(tide_transact(mail->engine, state_mark, &ask, err));
    *state_out = state;
    return TIDE_OK;
}
