/* terms.c - what handlers work by: assistant.yaml as it is now, and the chat account (ASN1, ASN2). */
#include "assistant/inside.h"

#include "base/check.h"
#include "ledger/rows.h"
#include "tidemark_inside.h"

#include <stdio.h>
#include <string.h>

struct tide_assistant_kept {
    struct tide_assistant_config *config;
    unsigned lent;
    struct tide_assistant_kept *next;
};

/* ---- the files ---- */

static void kept_free(tide_assistant *self, struct tide_assistant_kept *kept)
{
    tide_assistant_config_free(kept->config);
    tide_mem_free(self->mem, kept, sizeof *kept);
}

/* Under the lock: those that no handler works by, but the first. */
static void prune(tide_assistant *self)
{
    if (self->configs == NULL)
        return;
    for (struct tide_assistant_kept **at = &self->configs->next; *at != NULL;) {
        struct tide_assistant_kept *kept = *at;
        if (kept->lent > 0) {
            at = &kept->next;
            continue;
        }
        *at = kept->next;
        kept_free(self, kept);
    }
}

/* Under the lock. */
static tide_status load(tide_assistant *self, tide_error *err)
{
    struct tide_assistant_kept *kept = tide_mem_new(self->mem, sizeof *kept);
    if (kept == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for the configuration");
    /* Those that are read now are looked at from now on, also if they are refused (ASN1). */
    tide_assistant_files_done(&self->files);
    tide_assistant_files_init(&self->files, self->mem);
    const tide_status rc =
        tide_assistant_config_load_files(self->options.config_path, self->options.environment,
                                         self->mem, &self->files, &kept->config, err);
    if (rc != TIDE_OK) {
        tide_mem_free(self->mem, kept, sizeof *kept);
        return rc;
    }
    kept->next = self->configs;
    self->configs = kept;
    prune(self);
    return TIDE_OK;
}

/* The alert is raised and cleared outside of the lock, by what was last seen under it. */
void tide_assistant_look(tide_assistant *self)
{
    tide_error refused;
    tide_lock_take(self->options.world, self->lock);
    const bool changed = tide_assistant_files_changed(&self->files, self->options.config_path);
    if (changed) {
        self->refused = (tide_error){TIDE_OK, 0, ""};
        self->refused.status = load(self, &self->refused);
    }
    const bool there = self->files.first != NULL && self->files.first->there;
    refused = self->refused;
    tide_lock_drop(self->options.world, self->lock);
    /* That there is none is no fault before a user wants the assistant. */
    if (changed)
        (void)tide_engine_alert(self->options.engine, 0, TIDE_ASSISTANT_ALERT_CONFIG,
                                refused.status == TIDE_OK || !there ? 0 : 1, refused.text, NULL);
}

uint64_t tide_assistant_tokens_per_day(tide_assistant *self)
{
    tide_lock_take(self->options.world, self->lock);
    const uint64_t tokens = self->configs == NULL ? 0 : self->configs->config->tokens_per_day;
    tide_lock_drop(self->options.world, self->lock);
    return tokens;
}

void tide_assistant_terms_done(tide_assistant *self)
{
    tide_assistant_files_done(&self->files);
    while (self->configs != NULL) {
        struct tide_assistant_kept *kept = self->configs;
        TIDE_ASSERT(kept->lent == 0);
        self->configs = kept->next;
        kept_free(self, kept);
    }
}

/* ---- lending ---- */

struct choosing {
    char name[TIDE_ASSISTANT_NAME_BYTES];
    struct tide_assistant_account account;
};

static tide_status choose(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct choosing *choosing = arg;
    return tide_assistant_account_choose(tide_transaction_rows(transaction), choosing->name,
                                         &choosing->account, err);
}

const struct tide_assistant_config *tide_assistant_lend(tide_assistant *self)
{
    const struct tide_assistant_config *config = NULL;
    tide_lock_take(self->options.world, self->lock);
    if (self->configs != NULL) {
        self->configs->lent++;
        config = self->configs->config;
    }
    tide_lock_drop(self->options.world, self->lock);
    return config;
}

/* ASN2: the job comes back; a user sees why. */
static tide_status wait_for(tide_assistant *self, tide_job *job, const char *condition,
                            const char *text)
{
    (void)tide_engine_alert(self->options.engine, 0, condition, 1, text, NULL);
    return tide_job_again(job, tide_job_now_ms(job) + TIDE_ASSISTANT_WAIT_MS);
}

tide_status tide_assistant_terms_take(void *arg, tide_job *job,
                                      struct tide_assistant_terms *terms_out, tide_error *err)
{
    tide_assistant *self = arg;
    tide_assistant_look(self);
    const struct tide_assistant_config *config = tide_assistant_lend(self);
    if (config == NULL) {
        tide_lock_take(self->options.world, self->lock);
        const tide_error refused = self->refused;
        tide_lock_drop(self->options.world, self->lock);
        return wait_for(self, job, TIDE_ASSISTANT_ALERT_CONFIG, refused.text);
    }
    struct tide_assistant_terms terms = {.config = config};
    struct choosing choosing = {.account = {.number = 0}};
    tide_error why = {TIDE_OK, 0, ""};
    (void)snprintf(choosing.name, sizeof choosing.name, "%.*s", (int)config->model_account.bytes,
                   config->model_account.bytes == 0 ? "" : config->model_account.data);
    const tide_status rc = tide_transact(self->options.engine, choose, &choosing, &why);
    if (rc != TIDE_OK) {
        tide_assistant_terms_give(self, &terms);
        if (rc == TIDE_NOT_FOUND)
            return wait_for(self, job, TIDE_ASSISTANT_ALERT_MODEL, why.text);
        if (err != NULL)
            *err = why;
        return rc;
    }
    (void)tide_engine_alert(self->options.engine, 0, TIDE_ASSISTANT_ALERT_MODEL, 0, "", NULL);
    tide_assistant_plan_look(self, config);
    terms.model_account = choosing.account.number;
    *terms_out = terms;
    return TIDE_OK;
}

void tide_assistant_terms_give(void *arg, const struct tide_assistant_terms *terms)
{
    tide_assistant *self = arg;
    tide_lock_take(self->options.world, self->lock);
    for (struct tide_assistant_kept *kept = self->configs; kept != NULL; kept = kept->next)
        if (kept->config == terms->config) {
            TIDE_ASSERT(kept->lent > 0);
            kept->lent--;
        }
    prune(self);
    tide_lock_drop(self->options.world, self->lock);
}
