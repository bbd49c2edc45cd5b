/* Makes records of the mail assistant, for tests and benchmarks of what shows them.
 *
 * seed_assistant DIR [RECORDS]   in DIR/state.db
 * seed_assistant URL [RECORDS]   in a PostgreSQL database
 *
 * Two users, ada@example.com and ben@example.com.  Ada has a thread "story" with one of everything; Ben a
 * thread "hostile", whose texts try to be markup, control a terminal or a reader; RECORDS more threads
 * (default: 120), the last one is the newest, each with events, a call, and each tenth with a run.
 * Every text goes through the functions of the store, as with handlers. */
#include "assistant/store/store.h"
#include "ledger/home.h"
#include "ledger/ledger.h"
#include "ledger/rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MINUTE_MS = 60000, GROUP = 2000 };

#define HOSTILE                                                                                    \
    "<img src=x onerror=\"document.title='owned'\"><script>window.owned=1</script> "               \
    "\x1b[31mred\x1b[0m \xe2\x80\xae gnp.exe"

static tide_error err;

static void must(tide_status rc, const char *what)
{
    if (rc == TIDE_OK)
        return;
    (void)fprintf(stderr, "seed_assistant: %s: %s: %s\n", what, tide_status_name(rc), err.text);
    exit(1);
}

struct seed {
    tide_ledger *ledger;
    tide_tx *tx;
    tide_rows db;
    uint64_t now_ms;
    uint32_t ada, ben;
};

static void begin(struct seed *seed)
{
    must(tide_tx_begin(seed->ledger, &seed->tx, &err), "begin");
    seed->db = tide_tx_rows(seed->tx);
    seed->db.kept = tide_tx_kept(seed->tx);
}

static void commit(struct seed *seed)
{
    must(tide_tx_commit(seed->tx, &err), "commit");
}

/* ---- users ---- */

static void user_make(struct seed *seed, const char *email, uint32_t *number)
{
    struct tide_assistant_user user = {.onboarded_ms = seed->now_ms - 90ull * MINUTE_MS};
    must(tide_ledger_account(seed->tx, email, "gmail", number, &err), "account");
    user.account = *number;
    (void)snprintf(user.email, sizeof user.email, "%s", email);
    must(tide_assistant_user_put(seed->db, &user, &err), "user");
    for (int i = 0; i < TIDE_ASSISTANT_LABELS; i++) {
        char id[TIDE_ASSISTANT_ID_BYTES];
        (void)snprintf(id, sizeof id, "Label_%d", i + 1);
        must(tide_assistant_label_put(seed->db, *number, (tide_assistant_label)i, id, &err),
             "label");
    }
    must(tide_assistant_setting_put(seed->db, *number, "signature", "Ada", &err), "setting");
    must(tide_assistant_setting_put(seed->db, *number, "crm_token", "hunter2-stored-by-mistake",
                                    &err),
         "setting");
    must(tide_assistant_sync_move(seed->db, *number, "", "778899", true, seed->now_ms, &err),
         "sync");
}

/* ---- threads ---- */

struct call {
    const char *key, *kind, *model;
    tide_text system, prompt, answer;
    const char *error;
    bool ended;
};

static void call_make(struct seed *seed, uint32_t account, const char *thread, uint64_t at_ms,
                      const struct call *made)
{
    struct tide_assistant_call call = {.account = account,
                                       .thread_id = thread,
                                       .key = made->key,
                                       .kind = made->kind,
                                       .model = made->model,
                                       .system = made->system,
                                       .prompt = made->prompt,
                                       .job = 7,
                                       .begun_ms = at_ms,
                                       .answer = made->answer,
                                       .error = made->error == NULL ? "" : made->error,
                                       .tokens_in = 912,
                                       .tokens_out = 88,
                                       .latency_ms = 640,
                                       .ended_ms = at_ms + 640};
    bool ended = false;
    must(tide_assistant_call_begin(seed->db, &call, &call.id, &ended, &err), "call");
    if (made->ended)
        must(tide_assistant_call_end(seed->db, &call, &err), "call");
}

static void run_make(struct seed *seed, uint32_t account, const char *thread, uint64_t at_ms,
                     const char *key, const char *status, tide_text tools, tide_text final)
{
    struct tide_assistant_run run = {.account = account,
                                     .thread_id = thread,
                                     .message_id = "m1",
                                     .key = key,
                                     .profile = "support",
                                     .rule = "helpdesk",
                                     .begun_ms = at_ms,
                                     .status = status,
                                     .tools = tools,
                                     .iterations = 2,
                                     .final = final,
                                     .error = "",
                                     .ended_ms = at_ms + 5000};
    must(tide_assistant_run_begin(seed->db, &run, &run.id, &err), "run");
    must(tide_assistant_run_put(seed->db, &run, &err), "run");
}

static struct tide_assistant_email email_of(uint32_t account, const char *thread,
                                            const char *sender, const char *subject,
                                            tide_assistant_category category, uint64_t at_ms)
{
    struct tide_assistant_email email = {.account = account,
                                         .category = category,
                                         .status = category == TIDE_ASSISTANT_NEEDS_RESPONSE
                                                       ? TIDE_ASSISTANT_PENDING
                                                       : TIDE_ASSISTANT_SKIPPED,
                                         .messages = 1,
                                         .updated_ms = at_ms};
    (void)snprintf(email.thread_id, sizeof email.thread_id, "%s", thread);
    (void)snprintf(email.message_id, sizeof email.message_id, "m1");
    (void)snprintf(email.sender, sizeof email.sender, "%s", sender);
    (void)snprintf(email.subject, sizeof email.subject, "%s", subject);
    (void)snprintf(email.confidence, sizeof email.confidence, "high");
    (void)snprintf(email.language, sizeof email.language, "en");
    (void)snprintf(email.style, sizeof email.style, "business");
    (void)snprintf(email.reasoning, sizeof email.reasoning, "It asks for a date.");
    return email;
}

static void event_make(struct seed *seed, uint32_t account, const char *thread, const char *kind,
                       const char *detail, uint64_t at_ms)
{
    const struct tide_assistant_event event = {.account = account,
                                               .thread_id = thread,
                                               .kind = kind,
                                               .detail = detail,
                                               .job = 7,
                                               .at_ms = at_ms};
    must(tide_assistant_event_add(seed->db, &event, &err), "event");
}

/* Written out of order on purpose: a timeline is by time, not by table. */
static void story_make(struct seed *seed)
{
    static const struct call asked[] = {
        {"story/1", "classify", "fast", TIDE_TEXT("You sort mail."),
         TIDE_TEXT("{\"subject\":\"Harbour plan\",\"text\":\"When can you come?\\nBen\"}"),
         TIDE_TEXT("{\"category\":\"needs_response\"}"), NULL, true},
        {"story/2", "draft", "good", TIDE_TEXT("You write drafts."),
         TIDE_TEXT("{\"subject\":\"Harbour plan\"}"), TIDE_TEXT(""),
         "the server answered 500 [server_error] try again", true},
        {"story/3", "draft", "good", TIDE_TEXT("You write drafts."),
         TIDE_TEXT("{\"subject\":\"Harbour plan\"}"), TIDE_TEXT("Dear Ben,\non Tuesday."), NULL,
         true},
        {"story/4", "agent", "good", TIDE_TEXT(""),
         TIDE_TEXT("{\"messages\":[{\"role\":\"user\",\"parts\":[{\"text\":\"hello\"}]}]}"),
         TIDE_TEXT(""), NULL, false},
    };
    const uint64_t at_ms = seed->now_ms - 30ull * MINUTE_MS;
    const struct tide_assistant_email email =
        email_of(seed->ada, "story", "ben@harbour.example", "Harbour plan",
                 TIDE_ASSISTANT_NEEDS_RESPONSE, at_ms + 2000);
    const struct tide_assistant_event drafted = {.account = seed->ada,
                                                 .thread_id = "story",
                                                 .kind = "draft_created",
                                                 .detail = "r-77",
                                                 .job = 8,
                                                 .at_ms = at_ms + 9000};
    must(tide_assistant_email_put(seed->db, &email, "classified", 7, &err), "email");
    for (unsigned i = 0; i < sizeof asked / sizeof asked[0]; i++)
        call_make(seed, seed->ada, "story", at_ms + 1000 + i * 2000, &asked[i]);
    must(tide_assistant_draft_begin(seed->db, seed->ada, "story", "tok-never-shown", at_ms + 8000,
                                    &err),
         "draft");
    must(tide_assistant_draft_made(seed->db, "tok-never-shown", "r-77", "m9", at_ms + 8500, &err),
         "draft");
    must(tide_assistant_email_move(seed->db, &drafted, TIDE_ASSISTANT_DRAFTED, &err), "move");
    run_make(seed, seed->ada, "story", at_ms + 500, "story/run", "done",
             TIDE_TEXT("[{\"number\":1,\"tool\":\"search_archive\",\"arguments\":{\"query\":"
                       "\"harbour\"},\"result\":\"2 messages\",\"failed\":false,\"ms\":12}]"),
             TIDE_TEXT("Nothing to add."));
}

static void hostile_make(struct seed *seed)
{
    static const struct call asked = {
        "hostile/1",        "classify",         "fast" HOSTILE, TIDE_TEXT(HOSTILE),
        TIDE_TEXT(HOSTILE), TIDE_TEXT(HOSTILE), HOSTILE,        true};
    const uint64_t at_ms = seed->now_ms - 20ull * MINUTE_MS;
    struct tide_assistant_email email =
        email_of(seed->ben, "hostile", HOSTILE, HOSTILE, TIDE_ASSISTANT_FYI, at_ms);
    (void)snprintf(email.reasoning, sizeof email.reasoning, "%s", HOSTILE);
    must(tide_assistant_email_put(seed->db, &email, "classified", 7, &err), "email");
    event_make(seed, seed->ben, "hostile", "agent_ended", HOSTILE, at_ms);
    call_make(seed, seed->ben, "hostile", at_ms, &asked);
    run_make(seed, seed->ben, "hostile", at_ms, "hostile/run", "failed",
             TIDE_TEXT("[{\"number\":1,\"tool\":\"<b>x</b>\",\"arguments\":{\"<i>\":\"<script>\"},"
                       "\"result\":\"<img src=x onerror=alert(1)>\",\"failed\":true,\"ms\":1}]"),
             TIDE_TEXT(HOSTILE));
}

static void many_make(struct seed *seed, unsigned from, unsigned to, unsigned records)
{
    static char prompt[4000];
    memset(prompt, 'p', sizeof prompt);
    for (unsigned i = from; i < to; i++) {
        char thread[32], sender[64], subject[64];
        const uint64_t at_ms = seed->now_ms - (uint64_t)(records - i) * MINUTE_MS - 60 * MINUTE_MS;
        const uint32_t account = i % 100 == 99 ? seed->ben : seed->ada;
        (void)snprintf(thread, sizeof thread, "t%u", i);
        (void)snprintf(sender, sizeof sender, "sender%u@example.org", i % 1000);
        (void)snprintf(subject, sizeof subject, "Subject number %u", i);
        const struct tide_assistant_email email =
            email_of(account, thread, sender, subject,
                     (tide_assistant_category)(1 + i % (TIDE_ASSISTANT_CATEGORIES - 1)), at_ms);
        const struct call asked = {thread,
                                   "classify",
                                   "fast",
                                   TIDE_TEXT("You sort mail."),
                                   {prompt, sizeof prompt},
                                   TIDE_TEXT("{}"),
                                   NULL,
                                   true};
        must(tide_assistant_email_put(seed->db, &email, "classified", i + 1, &err), "email");
        call_make(seed, account, thread, at_ms, &asked);
        if (i % 10 == 0)
            run_make(seed, account, thread, at_ms, thread, "done", TIDE_TEXT("[]"),
                     TIDE_TEXT("Done."));
    }
}

int main(int argc, char **argv)
{
    struct seed seed = {.now_ms = 0};
    tide_world *world = NULL;
    char path[4096];
    const unsigned records = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 120;
    if (argc < 2)
        return 2;
    must(tide_world_real_new(tide_mem_heap(), &world, &err), "world");
    seed.now_ms = tide_world_now_unix_ms(world);
    (void)snprintf(path, sizeof path, "%s%s", argv[1],
                   tide_ledger_is_postgres(argv[1]) ? "" : "/" TIDE_STATE_FILE);
    const struct tide_ledger_options options = {
        .path = path, .run_id = "seed", .now_unix_ms = seed.now_ms};
    must(tide_ledger_open(world, &options, &seed.ledger, &err), "open");
    begin(&seed);
    must(tide_assistant_tables(seed.db, &err), "tables");
    user_make(&seed, "ada@example.com", &seed.ada);
    user_make(&seed, "ben@example.com", &seed.ben);
    commit(&seed);
    for (unsigned i = 0; i < records; i += GROUP) {
        begin(&seed);
        many_make(&seed, i, i + GROUP < records ? i + GROUP : records, records);
        commit(&seed);
    }
    begin(&seed);
    story_make(&seed);
    hostile_make(&seed);
    commit(&seed);
    tide_ledger_close(seed.ledger, false);
    tide_world_real_free(world);
    return 0;
}
