/* home.c - one home: mirror, assistant and reader on one engine, and the cloud behind their network. */
#include "reader_sim.h"

#include "assistant/store/store.h"
#include "cloudbox/gate/service.h"
#include "cloudbox/mailbox/mime.h"
#include "ledger/rows.h"

#define ORIGIN "http://provider" /* as tide_sim_mail_open() says */
#define TOKEN  "me-0"

enum { WORKERS = 12, LATENCY_US_MAX = 20000 };

/* ---- the assistant ---- */

/* A model that sorts mail at random, and thinks for a moment. */
static tide_status model(void *arg, tide_job *job, const struct tide_assistant_question *question,
                         struct tide_assistant_answer *answer, tide_error *err)
{
    static const char *const categories[] = {"needs_response", "fyi", "waiting", "action_required"};
    struct rsim_stage *stage = arg;
    (void)err;
    TIDE_TRY(tide_job_sleep(job, 1 + tide_rng_below(&stage->rng, 300)));
    answer->tokens_in = 100;
    answer->tokens_out = 10;
    answer->latency_ms = 5;
    if (strcmp(question->kind, "classify") == 0)
        return tide_buf_print(answer->text,
                              "{\"category\":\"%s\",\"confidence\":\"high\",\"reasoning\":\"so\","
                              "\"detected_language\":\"en\",\"resolved_style\":\"business\"}",
                              categories[tide_rng_below(&stage->rng, 4)]);
    return tide_buf_add_text(answer->text, strcmp(question->kind, "context") == 0
                                               ? "{\"searches\":[]}"
                                               : "Dear Anna, yes.");
}

static tide_status gmail_of(void *arg, const struct tide_assistant_user *user,
                            tide_gmail **gmail_out, tide_error *err)
{
    struct rsim_stage *stage = arg;
    (void)user;
    (void)err;
    *gmail_out = stage->gmail;
    return TIDE_OK;
}

static tide_status put_user(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct rsim_stage *stage = arg;
    const tide_rows db = tide_transaction_rows(transaction);
    struct tide_assistant_user user = {.account = stage->account};
    if (tide_assistant_user_get(db, stage->account, &user, NULL) == TIDE_OK)
        return TIDE_OK;
    (void)snprintf(user.email, sizeof user.email, RSIM_ME);
    return tide_assistant_user_put(db, &user, err);
}

static tide_status assistant_open(struct rsim_stage *stage, tide_error *err)
{
    tide_engine *engine = stage->life.engine;
    const struct tide_assistant_jobs_options options = {
        .engine = engine,
        .world = stage->world,
        .terms = {stage->config, stage->model_account},
        .model = model,
        .model_arg = stage,
        .gmail = gmail_of,
        .gmail_arg = stage};
    TIDE_TRY(tide_mail_tokens(stage->world, stage->life.secrets, RSIM_ME, tide_mem_heap(),
                              &stage->tokens, err));
    TIDE_TRY(tide_gmail_open_patient(ORIGIN, stage->tokens, TIDE_ASSISTANT_PATIENCE_MS,
                                     tide_mem_heap(), &stage->gmail, err));
    TIDE_TRY(tide_assistant_jobs_open(&options, tide_mem_heap(), &stage->jobs, err));
    return tide_transact(engine, put_user, stage, err);
}

/* ---- lives ---- */

static tide_status systems_open(struct rsim_stage *stage, tide_error *err)
{
    const struct tide_sim_mail_options mail = {
        .world = stage->world,
        .state_dir = "/state",
        .archive_dir = "/archive",
        .email = RSIM_ME,
        .token = TOKEN,
        .setting = rsim_planted(RPLANT_NO_RESERVE) ? "governor.gmail.reserve=0" : NULL,
        .workers = WORKERS,
        .log = tide_sim_log()};
    TIDE_TRY(tide_sim_mail_open(&stage->life, &mail, err));
    tide_engine *engine = stage->life.engine;
    TIDE_TRY(tide_engine_account(engine, RSIM_ME, "gmail", &stage->account, err));
    TIDE_TRY(tide_engine_account(engine, "model", "chat", &stage->model_account, err));
    TIDE_TRY(assistant_open(stage, err));
    const struct tide_reader_options reader = {.engine = engine,
                                               .world = stage->world,
                                               .secrets = stage->life.secrets,
                                               .archive_dir = "/archive",
                                               .cache_dir = "/cache"};
    return tide_reader_open(&reader, tide_mem_heap(), &stage->reader, err);
}

tide_status rsim_life_begin(struct rsim_stage *stage, tide_error *err)
{
    stage->totals.lives++;
    stage->kinds_count = stage->queue_count = 0;
    stage->alone = 0;
    memset(stage->open, 0, sizeof stage->open);
    TIDE_TRY(systems_open(stage, err));
    TIDE_TRY(tide_engine_start(stage->life.engine, err));
    TIDE_TRY(tide_reader_watch(stage->reader, err));
    stage->running = true;
    return TIDE_OK;
}

void rsim_life_end(struct rsim_stage *stage)
{
    stage->running = stage->watched = false;
    if (stage->reader != NULL)
        tide_reader_watch_end(stage->reader);
    tide_sim_mail_close(&stage->life, stage->sim);
    tide_reader_close(stage->reader);
    stage->reader = NULL;
    tide_assistant_jobs_close(stage->jobs);
    stage->jobs = NULL;
    tide_gmail_close(stage->gmail);
    stage->gmail = NULL;
    tide_tokens_close(stage->tokens);
    stage->tokens = NULL;
}

/* What was due while no process lived is not made up for. */
void rsim_sync(struct rsim_stage *stage)
{
    const struct tide_mail_run run = {.email = RSIM_ME};
    if (stage->mirrors)
        (void)tide_mail_run(stage->life.mail, &run, NULL);
    (void)tide_assistant_sync(stage->jobs, stage->account, false, NULL);
}

/* ---- the world ---- */

void rsim_home_begin(struct rsim_stage *stage, uint32_t messages)
{
    tide_error err = {TIDE_OK, 0, ""};
    struct tide_sim_options options = {.net = {.latency_us_max = LATENCY_US_MAX}};
    const struct tide_assistant_source source = {
        .path = "assistant.yaml", .yaml = TIDE_TEXT("models: {fast: small, better: large}\n")};
    box_mime_start();
    options.net.provide = rsim_provide;
    options.net.provide_arg = stage;
    stage->cloud = tide_sim_cloud_new(
        &(struct box_options){.seed = stage->seed, .quota = BOX_QUOTA_2026, .concurrency_max = 10});
    stage->sim = tide_sim_new(stage->seed, &options);
    stage->world = tide_sim_world(stage->sim);
    stage->mailbox = tide_sim_cloud_user(
        stage->cloud, stage->sim, RSIM_ME, TOKEN,
        (struct box_mailbox_options){.messages = messages, .size_bytes = BOX_MAILBOX_SIZE_MIN});
    if (tide_assistant_config_read(&source, tide_mem_heap(), &stage->config, &err) != TIDE_OK)
        RSIM_FAIL(stage, "no configuration: %s", err.text);
}

void rsim_home_end(struct rsim_stage *stage)
{
    tide_sim_free(stage->sim);
    tide_sim_cloud_free(stage->cloud);
    tide_assistant_config_free(stage->config);
}
