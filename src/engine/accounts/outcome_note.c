/* outcome_note.c - keeps the outcome of an account's last calls, in memory and in the ledger. */
#include "engine/engine.h"

struct outcome_write {
    struct tide_write write;
    uint32_t account;
    struct tide_outcome outcome;
};

static tide_status outcome_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct outcome_write *request = arg;
    char key[32];
    tide_auto_buf line = tide_buf_in(transaction->engine->mem, 4096);
    tide_outcome_key(request->account, key);
    tide_status rc = tide_outcome_write(&request->outcome, &line);
    if (rc != TIDE_OK)
        rc = tide_error_set(err, rc, "no memory for a note");
    if (rc == TIDE_OK)
        rc = tide_ledger_note(transaction->tx, key, tide_buf_text(&line), err);
    return rc;
}

static void outcome_drop(tide_engine *engine, struct tide_write *write)
{
    tide_mem_free(engine->mem, write, sizeof(struct outcome_write));
}

static void save(tide_engine *engine, struct tide_account *account)
{
    struct outcome_write *request = tide_mem_new(engine->mem, sizeof *request);
    if (request == NULL)
        return; /* the next outcome is saved instead */
    account->outcome.unsaved = false;
    account->outcome.saved_unix_ms = tide_world_now_unix_ms(engine->world);
    request->account = account->id;
    request->outcome = account->outcome;
    request->write = (struct tide_write){.run = outcome_run, .arg = request, .drop = outcome_drop};
    tide_write_push(engine, &request->write);
}

void tide_account_came_to(tide_engine *engine, struct tide_account *account, tide_status status,
                          tide_text host, const char *text)
{
    if (tide_outcome_add(&account->outcome, status, host, text,
                         tide_world_now_unix_ms(engine->world)))
        save(engine, account);
}

tide_status tide_account_answered(tide_engine *engine, uint32_t id, tide_error *err)
{
    struct outcome_write request = {.account = id};
    tide_lock_take(engine->world, engine->lock);
    struct tide_account *account = tide_engine_account_of(engine, id);
    if (account != NULL) {
        (void)tide_outcome_add(&account->outcome, TIDE_OK, TIDE_TEXT_NONE, "",
                               tide_world_now_unix_ms(engine->world));
        account->outcome.unsaved = false;
        request.outcome = account->outcome;
    }
    tide_lock_drop(engine->world, engine->lock);
    request.write = (struct tide_write){.run = outcome_run, .arg = &request};
    return account == NULL ? TIDE_OK : tide_write_run(engine, &request.write, err);
}

void tide_outcomes_save(tide_engine *engine)
{
    for (size_t i = 0; i < engine->accounts_count; i++)
        if (engine->accounts[i]->outcome.unsaved)
            save(engine, engine->accounts[i]);
}
