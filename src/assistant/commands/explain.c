/* explain.c - `tidemark assistant explain`: all that happened to a thread, in the order of time.
 *
 * Events, model calls, runs and drafts are in one timeline.  Each has `what`, a sentence in `text`, and the
 * fields of its list; what a model was asked and answered is in `tidemark assistant calls CALL`. */
#include "assistant/commands/list.h"

#include <inttypes.h>
#include <stdio.h>

enum { TEXT_BYTES = 1000 };

struct told {
    struct assistant_list list;
    const char *account;
    tide_json record;
    bool has_record;
};

/* Behind all that are not later, so that what was added first stays first. */
static void moment_add(struct told *told, uint64_t at_ms, const char *what, const char *text,
                       tide_json *one)
{
    json_t *line = told->list.items.value;
    size_t low = 0, high = json_array_size(line);
    tide_json_set_cstr(one, "account", told->account);
    tide_json_set_u64(one, "at_unix_ms", at_ms);
    tide_json_set_cstr(one, "what", what);
    tide_json_set_cstr(one, "text", text);
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const json_t *at = json_object_get(json_array_get(line, middle), "at_unix_ms");
        if ((uint64_t)json_integer_value(at) <= at_ms)
            low = middle + 1;
        else
            high = middle;
    }
    if (one->failed || line == NULL || json_array_insert(line, low, one->value) != 0)
        told->list.items.failed = true;
    tide_json_done(one);
}

static void tell_email(const struct tide_assistant_email *email, void *arg)
{
    struct told *told = arg;
    struct cli *cli = told->list.cli;
    cli_print(cli, "Thread %s, %s\n", email->thread_id, tide_assistant_status_name(email->status));
    assistant_print_line(cli, "Subject", tide_text_of(email->subject));
    assistant_print_line(cli, "From", tide_text_of(email->sender));
    cli_print(cli, "Category: %s, confidence %s\n", tide_assistant_category_name(email->category),
              email->confidence[0] != '\0' ? email->confidence : "not known");
    assistant_print_line(cli, "Why", tide_text_of(email->reasoning));
    cli_print(cli, "\n");
    assistant_email_json(email, told->account, &told->record);
    told->has_record = true;
}

static void tell_event(const struct tide_assistant_event *event, void *arg)
{
    char text[TEXT_BYTES];
    tide_json one;
    (void)snprintf(text, sizeof text, "%s%s%s", event->kind, event->detail[0] != '\0' ? ": " : "",
                   event->detail);
    tide_json_object(&one);
    assistant_event_json(event, &one);
    moment_add(arg, event->at_ms, "event", text, &one);
}

static void tell_call(const struct tide_assistant_call *call, void *arg)
{
    char text[TEXT_BYTES];
    tide_json one;
    if (!call->ended)
        (void)snprintf(text, sizeof text, "%s asks %s: no answer yet", call->kind, call->model);
    else
        (void)snprintf(text, sizeof text,
                       "%s asks %s: %s (%" PRIu64 " and %" PRIu64 " tokens, %" PRIu64 " ms)",
                       call->kind, call->model, call->error[0] != '\0' ? call->error : "answered",
                       call->tokens_in, call->tokens_out, call->latency_ms);
    tide_json_object(&one);
    assistant_call_json(call, &one);
    moment_add(arg, call->begun_ms, "call", text, &one);
}

static void tell_run(const struct tide_assistant_run *run, void *arg)
{
    char text[TEXT_BYTES];
    tide_json one;
    (void)snprintf(text, sizeof text, "%s by rule \"%s\": %s after %" PRIu32 " answers%s%s",
                   run->profile, run->rule, run->status, run->iterations,
                   run->error[0] != '\0' ? ", " : "", run->error);
    tide_json_object(&one);
    assistant_run_json(run, &one);
    moment_add(arg, run->begun_ms, "run", text, &one);
}

static void tell_draft(const struct tide_assistant_draft *draft, void *arg)
{
    static const char *const states[] = {"making", "live", "stale", "gone"};
    static const char *const words[] = {"is being made", "is in Gmail", "is to be trashed",
                                        "is gone"};
    char text[TEXT_BYTES];
    tide_json one;
    (void)snprintf(text, sizeof text, "%s%s%s", draft->draft_id,
                   draft->draft_id[0] != '\0' ? " " : "", words[draft->state]);
    tide_json_object(&one);
    tide_json_set_cstr(&one, "draft", draft->draft_id);
    tide_json_set_cstr(&one, "state", states[draft->state]);
    moment_add(arg, draft->made_ms > 0 ? draft->made_ms : draft->begun_ms, "draft", text, &one);
}

static void print_timeline(struct cli *cli, const json_t *line)
{
    size_t i = 0;
    json_t *one = NULL;
    char time[32];
    json_array_foreach(line, i, one)
    {
        const uint64_t at_ms = (uint64_t)json_integer_value(json_object_get(one, "at_unix_ms"));
        const char *what = json_string_value(json_object_get(one, "what"));
        const char *text = json_string_value(json_object_get(one, "text"));
        cli_print(cli, "%s  %-5s  ", cli_time(at_ms, time), what);
        assistant_print(cli, tide_text_of(text == NULL ? "" : text));
        if (json_string_value(json_object_get(one, "model")) != NULL)
            cli_print(cli, " [call %" PRIu64 "]",
                      (uint64_t)json_integer_value(json_object_get(one, "id")));
        cli_print(cli, "\n");
    }
}

tide_status cli_assistant_explain(struct cli *cli)
{
    struct tide_assistant_user user;
    struct told told = {.list = {.cli = cli}};
    const struct tide_assistant_explain explain = {.email = tell_email,
                                                   .event = tell_event,
                                                   .call = tell_call,
                                                   .run = tell_run,
                                                   .draft = tell_draft,
                                                   .arg = &told};
    TIDE_TRY(cli_ledger_read(cli));
    TIDE_TRY(assistant_user(cli, cli_flag(cli, "account"), &user));
    told.account = user.email;
    tide_json_array(&told.list.items);
    tide_status rc = tide_assistant_explain(tide_ledger_rows(cli->ledger), user.account,
                                            cli->arguments[0], &explain, &cli->err);
    if (rc == TIDE_NOT_FOUND)
        rc = assistant_no_thread(cli, user.email, cli->arguments[0]);
    print_timeline(cli, told.list.items.value);
    if (told.has_record)
        tide_json_set(&cli->json, "record", &told.record);
    else
        tide_json_set_null(&cli->json, "record");
    tide_json_set(&cli->json, "timeline", &told.list.items);
    return rc;
}
