/* plan.c - when a process that stays looks for mail by itself (J4): once there is a user, by the intervals of
 * assistant.yaml, and anew when they change. */
#include "assistant/inside.h"

#include "ledger/rows.h"

static void count_user(const struct tide_assistant_user *user, void *arg)
{
    *(size_t *)arg += user->onboarded_ms > 0;
}

static tide_status count_users(tide_transaction *transaction, void *arg, tide_error *err)
{
    *(size_t *)arg = 0;
    return tide_assistant_users_each(tide_transaction_rows(transaction), count_user, arg, err);
}

/* Whether these intervals are not planned yet; the caller plans them. */
static bool take_turn(tide_assistant *self, const struct tide_assistant_config *config,
                      bool *first_out)
{
    const struct tide_assistant_intervals wanted = {config->fallback_interval_minutes,
                                                    config->full_sync_interval_hours,
                                                    config->watch_renewal_hours};
    struct tide_assistant_intervals *planned = &self->planned;
    tide_lock_take(self->options.world, self->lock);
    const bool due = self->resident && (planned->fallback_minutes != wanted.fallback_minutes ||
                                        planned->full_hours != wanted.full_hours ||
                                        planned->watch_hours != wanted.watch_hours);
    *first_out = planned->fallback_minutes == 0;
    if (due)
        *planned = wanted;
    tide_lock_drop(self->options.world, self->lock);
    return due;
}

void tide_assistant_plan_look(tide_assistant *self, const struct tide_assistant_config *config)
{
    bool first = false;
    if (!take_turn(self, config, &first))
        return;
    tide_status rc = tide_assistant_plan(self->jobs, config, NULL);
    if (rc == TIDE_OK && first) /* the watch may have ended while no process ran, and mail come */
        rc = tide_assistant_tick(self->jobs, "watch", NULL);
    if (rc == TIDE_OK && first)
        rc = tide_assistant_tick(self->jobs, "sync", NULL);
    if (rc == TIDE_OK)
        return;
    tide_lock_take(self->options.world, self->lock); /* with the next job */
    self->planned = (struct tide_assistant_intervals){0};
    tide_lock_drop(self->options.world, self->lock);
}

tide_status tide_assistant_watch(tide_assistant *self, tide_error *err)
{
    size_t users = 0;
    TIDE_TRY(tide_transact(self->options.engine, count_users, &users, err));
    tide_lock_take(self->options.world, self->lock);
    self->resident = true;
    tide_lock_drop(self->options.world, self->lock);
    struct tide_assistant_terms terms = {.config = tide_assistant_lend(self)};
    if (terms.config == NULL) /* the first job that has one plans */
        return TIDE_OK;
    if (users > 0)
        tide_assistant_plan_look(self, terms.config);
    tide_assistant_terms_give(self, &terms);
    return TIDE_OK;
}

void tide_assistant_watch_end(tide_assistant *self)
{
    tide_lock_take(self->options.world, self->lock);
    self->resident = false;
    tide_lock_drop(self->options.world, self->lock);
}
