/* The assistant of a home (assistant/assistant.h): what it waits for may come while it runs, and a file that
 * becomes wrong changes nothing (ASN1, ASN2). */
#include "assistant_jobs_fixture.h"

#include "assistant/account/account.h"
#include "assistant/assistant.h"
#include "ledger/rows.h"
#include "mail/mail.h"
#include "net/oauth/key.h"
#include "support/temp_dir.h"
#include "tidemark_inside.h"

#include <stdlib.h>
#include <unistd.h>

static const char good[] = "models: {fast: tide-fast, better: tide-good}\n";

static struct home {
    char dir[64], path[96];
    tide_assistant *assistant;
} home;

static void write_file(const char *text)
{
    FILE *file = fopen(home.path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void enqueue_named(struct fixture *f, const char *kind, const char *payload)
{
    struct tide_spec spec = {.account = f->account, .payload = payload};
    OK(tide_engine_kind_named(f->engine, tide_text_of(kind), &spec.kind, err));
    OK(tide_enqueue(f->engine, &spec, 1, NULL, err));
}

/* A sign-in and an engine; neither a configuration nor a chat account. */
static struct fixture *begin_home(void)
{
    const struct tide_sim_options options = {.net = {.latency_us_max = 20000}};
    struct fixture *f = begin_in(11, &options, NULL);
    tide_world *world = tide_sim_world(f->sim);
    char secret[TIDE_SECRET_NAME_BYTES_MAX];
    home = (struct home){.dir = "/tmp/tide-assistant-XXXXXX"};
    assert_non_null(mkdtemp(home.dir));
    (void)snprintf(home.path, sizeof home.path, "%s/assistant.yaml", home.dir);
    tide_mail_secret_name(ME, secret);
    OK(tide_sim_signed_in(world, "/secrets", secret, "me-0", &f->secrets, err));
    const struct tide_engine_options engine = {
        .state_dir = "/state", .world = world, .no_control_socket = true, .workers = 3};
    OK(tide_engine_open(&engine, &f->engine, err));
    OK(tide_engine_account(f->engine, ME, "gmail", &f->account, err));
    OK(tide_engine_account(f->engine, "model", "chat", &f->model_account, err));
    const struct tide_assistant_options open = {
        .engine = f->engine, .world = world, .secrets = f->secrets, .config_path = home.path};
    OK(tide_assistant_open(&open, tide_mem_heap(), &home.assistant, err));
    OK(tide_engine_start(f->engine, err));
    return f;
}

static void finish_home(struct fixture *f)
{
    assert_int_equal(tide_engine_close(f->engine), TIDE_OK);
    tide_assistant_close(home.assistant);
    tide_secrets_close(f->secrets);
    tide_sim_free(f->sim);
    tide_sim_cloud_free(f->cloud);
    tide_assistant_config_free(f->config);
    free(f);
    assert_int_equal(temp_dir_remove(home.dir), 0);
}
#define HOME_CASE(name) TEST_OF(name, struct fixture *f, begin_home(), finish_home)

/* ---- what is there ---- */

static tide_status put_named(tide_rows db, uint32_t number, const char *name, tide_error *err)
{
    struct tide_assistant_account account = {.number = number, .no_key = false};
    (void)snprintf(account.name, sizeof account.name, "%s", name);
    (void)snprintf(account.endpoint, sizeof account.endpoint, ORIGIN);
    (void)snprintf(account.model, sizeof account.model, "tide-good");
    return tide_assistant_account_put(db, &account, err);
}

static tide_status put_model(tide_transaction *transaction, void *arg, tide_error *err)
{
    return put_named(tide_transaction_rows(transaction), *(uint32_t *)arg, "model", err);
}

static tide_status put_other(tide_transaction *transaction, void *arg, tide_error *err)
{
    return put_named(tide_transaction_rows(transaction), *(uint32_t *)arg, "other", err);
}

static tide_status read_user(tide_transaction *transaction, void *arg, tide_error *err)
{
    const tide_rows db = tide_transaction_rows(transaction);
    struct tide_assistant_user *user = arg;
    return tide_assistant_user_named(db, ME, user, err);
}

static bool is_onboarded(struct fixture *f)
{
    struct tide_assistant_user user = {.account = 0};
    return tide_transact(f->engine, read_user, &user, NULL) == TIDE_OK && user.onboarded_ms > 0;
}

struct counting {
    const char *text;
    uint64_t count;
};

static tide_status count_alerts(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct counting *counting = arg;
    return tide_rows_number(
        tide_transaction_rows(transaction), "the alerts", &counting->count, err,
        "SELECT count(*) FROM alert WHERE condition = ?1 OR instr(text, ?1) > 0", counting->text);
}

/* Whether there is an alert of that condition, or with that text. */
static bool alerted(struct fixture *f, const char *text)
{
    struct counting counting = {.text = text};
    OK(tide_transact(f->engine, count_alerts, &counting, err));
    return counting.count > 0;
}

static void put_key(struct fixture *f, const char *secret)
{
    tide_auto_secret grant = tide_buf_in(tide_mem_heap(), TIDE_SECRET_BYTES_MAX);
    OK(tide_oauth_key("key-0a1B2c3D4e5F6a7B8c9D", "1", &grant, err));
    OK(tide_secrets_put(f->secrets, secret, tide_buf_text(&grant), err));
}

/* ---- the cases ---- */

/* Onboarding was asked for before there was anything to work with. */
HOME_CASE(jobs_wait_for_a_configuration_and_a_model)
{
    enqueue_named(f, TIDE_ASSISTANT_ONBOARD_KIND,
                  "{\"email\":\"" ME "\",\"endpoint\":\"" ORIGIN "\"}");
    pass(f, 5);
    assert_false(is_onboarded(f));
    assert_true(alerted(f, TIDE_ASSISTANT_ALERT_CONFIG));
    write_file(good);
    pass(f, 5);
    assert_false(is_onboarded(f));
    assert_false(alerted(f, TIDE_ASSISTANT_ALERT_CONFIG));
    assert_true(alerted(f, TIDE_ASSISTANT_ALERT_MODEL));
    OK(tide_transact(f->engine, put_model, &f->model_account, err));
    (void)settle(f);
    assert_true(is_onboarded(f));
    assert_false(alerted(f, TIDE_ASSISTANT_ALERT_MODEL));
    assert_int_equal(failed_jobs(f), 0);
}

HOME_CASE(a_configuration_that_becomes_wrong_changes_nothing)
{
    write_file(good);
    OK(tide_transact(f->engine, put_model, &f->model_account, err));
    enqueue_named(f, TIDE_ASSISTANT_ONBOARD_KIND,
                  "{\"email\":\"" ME "\",\"endpoint\":\"" ORIGIN "\"}");
    (void)settle(f);
    write_file("models: {fast: tide-fast, bettr: tide-good}\n");
    OK(tide_assistant_changed(home.assistant, ME, false, err));
    (void)settle(f);
    assert_true(alerted(f, "assistant.yaml:1"));
    assert_int_equal(failed_jobs(f), 0);
    write_file("models: {fast: tide-fast, better: tide-good} # again\n");
    OK(tide_assistant_changed(home.assistant, ME, true, err));
    (void)settle(f);
    assert_false(alerted(f, TIDE_ASSISTANT_ALERT_CONFIG));
    assert_int_equal(failed_jobs(f), 0);
}

static void write_prompt(const char *text)
{
    char path[160];
    (void)snprintf(path, sizeof path, "%s/classify.md", home.dir);
    if (text == NULL) {
        assert_int_equal(unlink(path), 0);
        return;
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

struct asking {
    const char *text;
    uint64_t count;
};

static tide_status count_calls(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct asking *asking = arg;
    return tide_rows_number(tide_transaction_rows(transaction), "the calls", &asking->count, err,
                            "SELECT count(*) FROM assistant_call WHERE instr(system, ?1) > 0",
                            asking->text);
}

/* Mail comes; whether the model was asked with this in its instruction. */
static bool asks_with(struct fixture *f, const char *text)
{
    struct asking asking = {.text = text};
    deliver(f, "anna@example.com", text, "Can you come?", NULL);
    OK(tide_assistant_changed(home.assistant, ME, false, err));
    (void)settle(f);
    OK(tide_transact(f->engine, count_calls, &asking, err));
    return asking.count == 1;
}

/* ASN1: assistant.yaml itself stays as it is. */
HOME_CASE(a_prompt_file_that_changes_is_read_again_and_one_that_is_wrong_changes_nothing)
{
    tide_auto_secret grant = tide_buf_in(tide_mem_heap(), TIDE_SECRET_BYTES_MAX);
    OK(tide_oauth_key("key-0a1B2c3D4e5F6a7B8c9D", "1", &grant, err));
    OK(tide_secrets_put(f->secrets, "chat/model", tide_buf_text(&grant), err));
    OK(tide_transact(f->engine, put_model, &f->model_account, err));
    write_prompt("Sort as the first clerk.");
    write_file("models: {fast: tide-fast, better: tide-good}\n"
               "prompts: {classify: {file: classify.md}}\n");
    enqueue_named(f, TIDE_ASSISTANT_ONBOARD_KIND,
                  "{\"email\":\"" ME "\",\"endpoint\":\"" ORIGIN "\"}");
    (void)settle(f);
    assert_true(asks_with(f, "first clerk"));
    write_prompt("Sort as the second clerk.");
    assert_true(asks_with(f, "second clerk"));
    write_prompt("\x01"); /* no text: the last one holds */
    assert_false(asks_with(f, "\x01"));
    assert_true(alerted(f, "assistant.yaml:2:"));
    assert_true(alerted(f, "classify.md is not a text"));
    write_prompt(NULL);
    assert_false(asks_with(f, "nobody"));
    assert_true(alerted(f, "classify.md cannot be read"));
    write_prompt("Sort as the third clerk.");
    assert_true(asks_with(f, "third clerk"));
    assert_false(alerted(f, TIDE_ASSISTANT_ALERT_CONFIG));
    assert_int_equal(failed_jobs(f), 0);
}

/* J27: the day's tokens are used up.  An alert says so until the next day, in which mail is dealt with. */
HOME_CASE(over_the_budget_an_alert_stands_until_the_next_day)
{
    put_key(f, "chat/model");
    OK(tide_transact(f->engine, put_model, &f->model_account, err));
    write_file("models: {fast: tide-fast, better: tide-good}\nbudget: {tokens_per_day: 10}\n");
    enqueue_named(f, TIDE_ASSISTANT_ONBOARD_KIND,
                  "{\"email\":\"" ME "\",\"endpoint\":\"" ORIGIN "\"}");
    (void)settle(f);
    deliver(f, "anna@example.com", "Lunch", "Could you tell me when you come?", NULL);
    OK(tide_assistant_changed(home.assistant, ME, false, err));
    pass(f, 5);
    assert_true(alerted(f, TIDE_ASSISTANT_ALERT_BUDGET));
    assert_int_equal(record(f, f->thread).status, TIDE_ASSISTANT_NO_STATUS);
    write_file(good);
    enqueue_named(f, TIDE_ASSISTANT_SYNC_KIND, "{}"); /* reads it */
    pass(f, 24 * 60);
    (void)settle(f);
    assert_int_not_equal(record(f, f->thread).status, TIDE_ASSISTANT_NO_STATUS);
    assert_false(alerted(f, TIDE_ASSISTANT_ALERT_BUDGET));
    assert_int_equal(failed_jobs(f), 0);
}

/* J27: a budget that is raised counts at once, also for mail that waits. */
HOME_CASE(a_larger_budget_ends_the_waiting)
{
    put_key(f, "chat/model");
    OK(tide_transact(f->engine, put_model, &f->model_account, err));
    write_file("models: {fast: tide-fast, better: tide-good}\nbudget: {tokens_per_day: 10}\n");
    enqueue_named(f, TIDE_ASSISTANT_ONBOARD_KIND,
                  "{\"email\":\"" ME "\",\"endpoint\":\"" ORIGIN "\"}");
    (void)settle(f);
    deliver(f, "anna@example.com", "Lunch", "Could you tell me when you come?", NULL);
    OK(tide_assistant_changed(home.assistant, ME, false, err));
    pass(f, 5);
    assert_true(alerted(f, TIDE_ASSISTANT_ALERT_BUDGET));
    write_file(good);
    pass(f, 30);
    assert_int_not_equal(record(f, f->thread).status, TIDE_ASSISTANT_NO_STATUS);
    assert_false(alerted(f, TIDE_ASSISTANT_ALERT_BUDGET));
    assert_int_equal(failed_jobs(f), 0);
}

/* The user removes a chat account that does not work, and names another one: mail whose question was
 * canceled with the first one is classified with the next full sync. */
HOME_CASE(another_chat_account_is_asked_what_the_first_cannot_answer)
{
    uint32_t other = 0;
    OK(tide_transact(f->engine, put_model, &f->model_account, err)); /* without a key */
    write_file(good);
    enqueue_named(f, TIDE_ASSISTANT_ONBOARD_KIND,
                  "{\"email\":\"" ME "\",\"endpoint\":\"" ORIGIN "\"}");
    (void)settle(f);
    deliver(f, "anna@example.com", "Lunch", "Could you tell me when you come?", NULL);
    OK(tide_assistant_changed(home.assistant, ME, false, err));
    pass(f, 5);
    assert_int_equal(record(f, f->thread).status, TIDE_ASSISTANT_NO_STATUS);
    OK(tide_cancel_kind(f->engine, "assistant.ask", err)); /* as the removal of its account does */
    put_key(f, "chat/other");
    OK(tide_engine_account(f->engine, "other", "chat", &other, err));
    OK(tide_transact(f->engine, put_other, &other, err));
    write_file("models: {account: other, fast: tide-fast, better: tide-good}\n");
    OK(tide_assistant_changed(home.assistant, ME, true, err));
    pass(f, 5);
    assert_int_not_equal(record(f, f->thread).status, TIDE_ASSISTANT_NO_STATUS);
    assert_int_equal(failed_jobs(f), 0);
}

/* J6: who is no user, or not yet, is not woken. */
HOME_CASE(a_change_of_an_unknown_mailbox_wakes_nobody)
{
    assert_int_equal(tide_assistant_changed(home.assistant, "eve@example.com", false, NULL),
                     TIDE_NOT_FOUND);
    assert_int_equal(failed_jobs(f), 0);
}
