/* show.c - `tidemark assistant show|explain`: the records, and all that happened to a thread. */
#include "assistant/commands/home.h"
#include "assistant/store/look.h"

#include <inttypes.h>
#include <string.h>

enum { SHOWN = 50 };

/* ---- show ---- */

struct shown {
    struct cli *cli;
    tide_json list;
};

static void email_json(const struct tide_assistant_email *email, tide_json *one)
{
    tide_json_set_cstr(one, "thread", email->thread_id);
    tide_json_set_cstr(one, "message", email->message_id);
    tide_json_set_cstr(one, "sender", email->sender);
    tide_json_set_cstr(one, "subject", email->subject);
    tide_json_set_cstr(one, "category", tide_assistant_category_name(email->category));
    tide_json_set_cstr(one, "confidence", email->confidence);
    tide_json_set_cstr(one, "language", email->language);
    tide_json_set_cstr(one, "style", email->style);
    tide_json_set_cstr(one, "reasoning", email->reasoning);
    tide_json_set_cstr(one, "status", tide_assistant_status_name(email->status));
    tide_json_set_u64(one, "messages", email->messages);
    tide_json_set_u64(one, "reworks", email->reworks);
    tide_json_set_cstr(one, "draft", email->draft_id);
    tide_json_set_u64(one, "created_unix_ms", email->created_ms);
    tide_json_set_u64(one, "updated_unix_ms", email->updated_ms);
}

static void show_email(const struct tide_assistant_email *email, void *arg)
{
    struct shown *shown = arg;
    struct cli *cli = shown->cli;
    tide_json one;
    char time[32];
    cli_cell(cli, "%s", cli_time(email->updated_ms, time));
    cli_cell(cli, "%s", tide_assistant_status_name(email->status));
    cli_cell(cli, "%s", tide_assistant_category_name(email->category));
    cli_cell(cli, "%s", email->sender);
    cli_cell(cli, "%s", email->subject);
    cli_cell(cli, "%s", email->thread_id);
    tide_json_object(&one);
    email_json(email, &one);
    tide_json_append(&shown->list, &one);
}

static tide_status filter_read(struct cli *cli, struct tide_assistant_filter *filter)
{
    const char *status = cli_flag(cli, "status"), *category = cli_flag(cli, "category");
    if (status != NULL) {
        filter->status = tide_assistant_status_of(tide_text_of(status));
        if (filter->status == TIDE_ASSISTANT_NO_STATUS)
            return cli_wrong(cli, "See `tidemark assistant show --help`.",
                             "\"%.60s\" is not a status", status);
    }
    if (category != NULL) {
        filter->category = tide_assistant_category_of(tide_text_of(category));
        if (filter->category == TIDE_ASSISTANT_NO_CATEGORY)
            return cli_wrong(cli, "See `tidemark assistant show --help`.",
                             "\"%.60s\" is not a category", category);
    }
    filter->sender = cli_flag(cli, "sender");
    return TIDE_OK;
}

static tide_status place_read(struct cli *cli, struct tide_assistant_cursor *cursor,
                              uint64_t *limit)
{
    const char *after = cli_flag(cli, "after"), *number = cli_flag(cli, "limit");
    if (after != NULL && !tide_assistant_cursor_of(tide_text_of(after), cursor))
        return cli_wrong(cli, "Take it from the end of the list before.",
                         "\"%.60s\" is not a place in the list", after);
    if (number != NULL)
        TIDE_TRY(cli_number(cli, number, "--limit", limit));
    if (*limit == 0 || *limit > TIDE_ASSISTANT_PAGE_MAX)
        return cli_wrong(cli, "Give a smaller one; --after shows the next ones.",
                         "--limit is 1 to %d", TIDE_ASSISTANT_PAGE_MAX);
    return TIDE_OK;
}

tide_status cli_assistant_show(struct cli *cli)
{
    static const char *const headings[] = {"CHANGED", "STATUS",  "CATEGORY",
                                           "SENDER",  "SUBJECT", "THREAD"};
    struct tide_assistant_filter filter = {.account = 0};
    struct tide_assistant_cursor cursor = {0};
    struct shown shown = {.cli = cli};
    uint64_t limit = SHOWN;
    bool more = false;
    TIDE_TRY(filter_read(cli, &filter));
    TIDE_TRY(place_read(cli, &cursor, &limit));
    TIDE_TRY(cli_ledger_read(cli));
    if (cli_flag(cli, "account") != NULL) {
        struct tide_assistant_user user;
        TIDE_TRY(assistant_user(cli, cli_flag(cli, "account"), &user));
        filter.account = user.account;
    }
    tide_json_array(&shown.list);
    cli_table_begin(cli, headings, sizeof headings / sizeof headings[0]);
    const tide_status rc =
        tide_assistant_emails(tide_ledger_rows(cli->ledger), &filter, &cursor, (size_t)limit,
                              show_email, &shown, &more, &cli->err);
    cli_table_end(cli, "Nothing yet.");
    tide_json_set(&cli->json, "emails", &shown.list);
    if (rc == TIDE_OK && more) {
        char text[TIDE_ASSISTANT_CURSOR_BYTES];
        tide_assistant_cursor_text(&cursor, text);
        cli_print(cli, "More: --after %s\n", text);
        tide_json_set_cstr(&cli->json, "next", text);
    }
    return rc;
}

/* ---- explain ---- */

struct told {
    struct cli *cli;
    tide_json record, timeline;
};

static void line_begin(struct told *told, uint64_t at_ms, const char *what, tide_json *one)
{
    char time[32];
    cli_print(told->cli, "%s  %-10s ", cli_time(at_ms, time), what);
    tide_json_object(one);
    tide_json_set_u64(one, "at_unix_ms", at_ms);
    tide_json_set_cstr(one, "what", what);
}

static void tell_email(const struct tide_assistant_email *email, void *arg)
{
    struct told *told = arg;
    struct cli *cli = told->cli;
    cli_print(cli, "Thread %s: %s\nFrom %s\n", email->thread_id, email->subject, email->sender);
    cli_print(cli, "%s, classified as %s with %s confidence%s%s\n",
              tide_assistant_status_name(email->status),
              tide_assistant_category_name(email->category),
              email->confidence[0] != '\0' ? email->confidence : "no",
              email->reasoning[0] != '\0' ? ": " : "", email->reasoning);
    email_json(email, &told->record);
}

static void tell_event(const struct tide_assistant_event *event, void *arg)
{
    struct told *told = arg;
    tide_json one;
    line_begin(told, event->at_ms, "event", &one);
    cli_print(told->cli, "%s%s%s\n", event->kind, event->detail[0] != '\0' ? ": " : "",
              event->detail);
    tide_json_set_cstr(&one, "kind", event->kind);
    tide_json_set_cstr(&one, "detail", event->detail);
    tide_json_set_u64(&one, "job", event->job);
    tide_json_append(&told->timeline, &one);
}

static void tell_call(const struct tide_assistant_call *call, void *arg)
{
    struct told *told = arg;
    tide_json one;
    line_begin(told, call->begun_ms, "model", &one);
    if (!call->ended)
        cli_print(told->cli, "%s asks %s; no answer yet\n", call->kind, call->model);
    else
        cli_print(told->cli,
                  "%s asks %s: %s (%" PRIu64 " and %" PRIu64 " tokens, %" PRIu64 " ms)\n",
                  call->kind, call->model, call->error[0] != '\0' ? call->error : "answered",
                  call->tokens_in, call->tokens_out, call->latency_ms);
    tide_json_set_cstr(&one, "kind", call->kind);
    tide_json_set_cstr(&one, "model", call->model);
    tide_json_set_text(&one, "system", call->system);
    tide_json_set_text(&one, "prompt", call->prompt);
    tide_json_set_bool(&one, "ended", call->ended);
    tide_json_set_text(&one, "answer", call->answer);
    tide_json_set_cstr(&one, "error", call->error);
    tide_json_set_u64(&one, "tokens_in", call->tokens_in);
    tide_json_set_u64(&one, "tokens_out", call->tokens_out);
    tide_json_set_u64(&one, "latency_ms", call->latency_ms);
    tide_json_append(&told->timeline, &one);
}

static void tell_run(const struct tide_assistant_run *run, void *arg)
{
    struct told *told = arg;
    tide_json one;
    line_begin(told, run->begun_ms, "agent", &one);
    cli_print(told->cli, "%s by rule \"%s\": %s after %" PRIu32 " answers\n", run->profile,
              run->rule, run->status, run->iterations);
    tide_json_set_cstr(&one, "profile", run->profile);
    tide_json_set_cstr(&one, "rule", run->rule);
    tide_json_set_cstr(&one, "status", run->status);
    tide_json_set_u64(&one, "iterations", run->iterations);
    tide_json_set_raw(&one, "tools", run->tools);
    tide_json_set_text(&one, "final", run->final);
    tide_json_set_cstr(&one, "error", run->error);
    tide_json_append(&told->timeline, &one);
}

static void tell_draft(const struct tide_assistant_draft *draft, void *arg)
{
    static const char *const states[] = {"is being made", "is there", "is to be trashed",
                                         "is gone"};
    struct told *told = arg;
    tide_json one;
    line_begin(told, draft->made_ms, "draft", &one);
    cli_print(told->cli, "%s %s\n", draft->draft_id, states[draft->state]);
    tide_json_set_cstr(&one, "draft", draft->draft_id);
    tide_json_set_cstr(&one, "state", states[draft->state]);
    tide_json_append(&told->timeline, &one);
}

tide_status cli_assistant_explain(struct cli *cli)
{
    struct tide_assistant_user user;
    struct told told = {.cli = cli};
    TIDE_TRY(cli_ledger_read(cli));
    TIDE_TRY(assistant_user(cli, cli_flag(cli, "account"), &user));
    tide_json_object(&told.record);
    tide_json_array(&told.timeline);
    const struct tide_assistant_explain explain = {.email = tell_email,
                                                   .event = tell_event,
                                                   .call = tell_call,
                                                   .run = tell_run,
                                                   .draft = tell_draft,
                                                   .arg = &told};
    tide_status rc = tide_assistant_explain(tide_ledger_rows(cli->ledger), user.account,
                                            cli->arguments[0], &explain, &cli->err);
    if (rc == TIDE_NOT_FOUND)
        rc = cli_fail(cli, rc, "`tidemark assistant show` lists the threads that it knows.",
                      "the assistant knows no thread %.100s of %.200s", cli->arguments[0],
                      user.email);
    tide_json_set(&cli->json, "record", &told.record);
    tide_json_set(&cli->json, "timeline", &told.timeline);
    return rc;
}
