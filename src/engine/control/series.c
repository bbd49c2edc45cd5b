/* series.c - the charts of accounts, for `tidemark series` and the page (control.h). */
#include "engine/control/answers.h"
#include "engine/control/control.h"
#include "engine/engine.h"

typedef enum series_name { RATE, QUOTA, HELD } series_name;
static const char *const names[] = {[RATE] = "rate", [QUOTA] = "quota", [HELD] = "held"};

struct ask {
    series_name name;
    tide_series_span span;
    tide_text account; /* empty: all */
};

static tide_status ask_read(const json_t *request, struct ask *ask, tide_error *err)
{
    tide_text name = TIDE_TEXT_NONE;
    tide_text span = TIDE_TEXT("hour");
    size_t at = 0;
    (void)tide_json_get_text(request, "name", &name, NULL);
    (void)tide_json_get_text(request, "span", &span, NULL);
    (void)tide_json_get_text(request, "account", &ask->account, NULL);
    while (at <= HELD && !tide_text_equal(name, tide_text_of(names[at])))
        at++;
    if (at > HELD)
        return tide_error_set(err, TIDE_NOT_FOUND, "series are rate, quota and held");
    ask->name = (series_name)at;
    ask->span = tide_text_equal(span, TIDE_TEXT("day")) ? TIDE_SERIES_DAY : TIDE_SERIES_HOUR;
    return TIDE_OK;
}

/* How many were stored up to the end of each step: backwards from what is known now. */
static void to_held(uint64_t total, const uint32_t *values, size_t steps, json_int_t *held)
{
    for (size_t i = steps; i > 0; i--) {
        held[i - 1] = (json_int_t)total;
        total -= values[i - 1] < total ? values[i - 1] : total;
    }
}

static json_t *values_json(const struct ask *ask, const struct tide_account_series *series,
                           uint64_t now_ms)
{
    uint32_t values[TIDE_SERIES_STEPS_MAX];
    json_int_t held[TIDE_SERIES_STEPS_MAX];
    const struct tide_series *of = series == NULL       ? NULL
                                   : ask->name == QUOTA ? &series->units
                                                        : &series->items;
    const size_t steps = tide_series_read(of, ask->span, now_ms, values);
    json_t *list = json_array();
    if (ask->name == HELD)
        to_held(series == NULL ? 0 : series->items_total, values, steps, held);
    for (size_t i = 0; i < steps; i++)
        (void)json_array_append_new(
            list, json_integer(ask->name == HELD ? held[i] : (json_int_t)values[i]));
    return list;
}

tide_status tide_control_series(tide_engine *engine, const json_t *request, tide_json *answer,
                                tide_error *err)
{
    struct ask ask = {.account = TIDE_TEXT_NONE};
    tide_json list;
    const tide_status rc = ask_read(request, &ask, err);
    if (rc != TIDE_OK)
        return rc;
    tide_json_array(&list);
    tide_lock_take(engine->world, engine->lock);
    const uint64_t now_ms = tide_world_now_ms(engine->world);
    for (size_t i = 0; i < engine->accounts_count; i++) {
        const struct tide_account *account = engine->accounts[i];
        struct tide_governor_view view;
        if (ask.account.bytes > 0 && !tide_text_equal(ask.account, tide_text_of(account->name)))
            continue;
        tide_governor_view(account->governor, now_ms, &view);
        tide_json one;
        tide_json values = {.value = values_json(&ask, account->series, now_ms)};
        tide_json_object(&one);
        tide_json_set_cstr(&one, "account", account->name);
        tide_json_set_u64(&one, "window_max_units", view.window_max);
        tide_json_set(&one, "values", &values);
        tide_json_append(&list, &one);
    }
    tide_lock_drop(engine->world, engine->lock);
    const uint32_t step_ms = tide_series_step_ms(ask.span);
    tide_json_set_cstr(answer, "name", names[ask.name]);
    tide_json_set_u64(answer, "step_ms", step_ms);
    /* The last step has not ended: its end is when the next one begins. */
    tide_json_set_u64(answer, "end_unix_ms",
                      tide_world_now_unix_ms(engine->world) + (step_ms - now_ms % step_ms));
    tide_json_set(answer, "series", &list);
    return TIDE_OK;
}
