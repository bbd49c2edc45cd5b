#include "assistant/inside.h"

#include "assistant/budget/budget.h"
#include "ledger/rows.h"

#include <stdio.h>

tide_status tide_assistant_all_tables(tide_rows db, tide_error *err)
{
    TIDE_TRY(tide_assistant_account_tables(db, err));
    TIDE_TRY(tide_assistant_budget_tables(db, err));
    return tide_assistant_tables(db, err);
}

static tide_status make_tables(tide_transaction *transaction, void *arg, tide_error *err)
{
    (void)arg;
    return tide_assistant_all_tables(tide_transaction_rows(transaction), err);
}

static tide_status jobs_open(tide_assistant *self, tide_error *err)
{
    const struct tide_assistant_lender lender = {
        .take = tide_assistant_terms_take, .give = tide_assistant_terms_give, .arg = self};
    const struct tide_assistant_jobs_options options = {.engine = self->options.engine,
                                                        .world = self->options.world,
                                                        .lender = &lender,
                                                        .model = tide_assistant_ask,
                                                        .model_arg = self,
                                                        .gmail = tide_assistant_gmail_of,
                                                        .gmail_arg = self};
    return tide_assistant_jobs_open(&options, self->mem, &self->jobs, err);
}

tide_status tide_assistant_open(const struct tide_assistant_options *options, tide_mem *mem,
                                tide_assistant **assistant_out, tide_error *err)
{
    TIDE_TRY(tide_transact(options->engine, make_tables, NULL, err));
    tide_assistant *self = tide_mem_new(mem, sizeof *self);
    if (self == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for the assistant");
    self->options = *options;
    (void)snprintf(self->config_path, sizeof self->config_path, "%s", options->config_path);
    self->options.config_path = self->config_path;
    self->mem = mem;
    tide_assistant_files_init(&self->files, mem);
    tide_status rc = tide_lock_new(options->world, &self->lock);
    if (rc == TIDE_OK)
        rc = jobs_open(self, err);
    if (rc != TIDE_OK) {
        tide_assistant_close(self);
        return rc;
    }
    tide_assistant_look(self); /* raises its alert now, not with the first mail */
    *assistant_out = self;
    return TIDE_OK;
}

void tide_assistant_close(tide_assistant *self)
{
    if (self == NULL)
        return;
    tide_assistant_jobs_close(self->jobs);
    tide_assistant_clients_done(self);
    tide_assistant_terms_done(self);
    tide_lock_free(self->options.world, self->lock);
    tide_mem_free(self->mem, self, sizeof *self);
}

/* ---- waking ---- */

struct finding {
    const char *email;
    struct tide_assistant_user user;
};

static tide_status find_user(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct finding *finding = arg;
    return tide_assistant_user_named(tide_transaction_rows(transaction), finding->email,
                                     &finding->user, err);
}

tide_status tide_assistant_changed(tide_assistant *self, const char *email, bool full,
                                   tide_error *err)
{
    struct finding finding = {.email = email};
    const tide_status rc = tide_transact(self->options.engine, find_user, &finding, err);
    if (rc == TIDE_NOT_FOUND || (rc == TIDE_OK && finding.user.onboarded_ms == 0))
        return tide_error_set(err, TIDE_NOT_FOUND, "the assistant does not work for %.200s", email);
    return rc == TIDE_OK ? tide_assistant_sync(self->jobs, finding.user.account, full, err) : rc;
}

struct noting {
    const char *email;
    uint64_t now_ms;
};

static tide_status note_push(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct noting *noting = arg;
    const tide_rows db = tide_transaction_rows(transaction);
    struct tide_assistant_user user;
    TIDE_TRY(tide_assistant_user_named(db, noting->email, &user, err));
    return tide_assistant_pushed_put(db, user.account, noting->now_ms, err);
}

tide_status tide_assistant_pushed(tide_assistant *self, const char *email, tide_error *err)
{
    struct noting noting = {.email = email, .now_ms = tide_world_now_unix_ms(self->options.world)};
    return tide_transact(self->options.engine, note_push, &noting, err);
}
