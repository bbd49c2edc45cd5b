/* routes.c - the routes of the assistant.  Records, prompts and answers have text of mail in them, so they
 * need the scope `work`, as mail does; numbers need `look`. */
#include "assistant/page/page.h"

#define ASSISTANT "/api/v1/assistant/"
#define LOG       " limit after order"

#define EMAIL                                                                                      \
    "account:string thread:string message:string sender:string subject:string category:string "    \
    "confidence:string language:string style:string reasoning:string status:string "               \
    "messages:integer reworks:integer draft:string created_unix_ms:integer "                       \
    "updated_unix_ms:integer"
#define CALL                                                                                       \
    "id:integer account:string thread:string kind:string model:string state:string error:string "  \
    "tokens_in:integer tokens_out:integer latency_ms:integer job:integer begun_unix_ms:integer"
#define RUN                                                                                        \
    "id:integer account:string thread:string message:string profile:string rule:string "           \
    "status:string iterations:integer error:string begun_unix_ms:integer ended_unix_ms:integer"

const struct cli_api_object assistant_page_objects[] = {
    {"AssistantAccount",
     "account:string state:string onboarded:boolean by_status:object by_category:object "
     "records:integer given_up:integer model_calls_today:integer tokens_in_today:integer "
     "tokens_out_today:integer synced_unix_ms:integer "
     "full_sync_unix_ms:integer pushed_unix_ms:integer"},
    {"AssistantUser", "account:string state:string onboarded_unix_ms:integer ended_unix_ms:integer "
                      "history_id:string "
                      "synced_unix_ms:integer full_sync_unix_ms:integer labels:[AssistantLabel] "
                      "settings:[AssistantSetting]"},
    {"AssistantLabel", "name:string id:string?"},
    {"AssistantSetting", "name:string value:string"},
    {"AssistantEmail", EMAIL},
    {"AssistantEvent", "id:integer account:string thread:string kind:string detail:string "
                       "job:integer at_unix_ms:integer"},
    {"AssistantCall", CALL},
    {"AssistantRun", RUN},
    {"AssistantMoment", "at_unix_ms:integer what:string text:string"},
    {"AssistantCost", "day:string account:string model:string calls:integer in_tokens:integer "
                      "out_tokens:integer estimated:integer lost:integer"},
    {NULL, NULL},
};

const struct cli_api assistant_page_api[] = {
    {.method = "GET",
     .path = ASSISTANT "status",
     .group = "assistant",
     .verb = "status",
     .fields = "accounts:[AssistantAccount] configuration_error:string? alerts:[Alert]"},
    {.method = "GET",
     .path = ASSISTANT "costs",
     .group = "assistant",
     .verb = "costs",
     .params = "days",
     .fields = "costs:[AssistantCost]"},
    {.method = "GET",
     .path = ASSISTANT "users",
     .group = "assistant",
     .verb = "users",
     .fields = "users:[AssistantUser]"},
    {.method = "GET",
     .path = ASSISTANT "users/{account}",
     .group = "assistant",
     .verb = "users",
     .part = "account",
     .fields = "users:[AssistantUser]"},
    {.method = "GET",
     .path = ASSISTANT "emails",
     .group = "assistant",
     .verb = "show",
     .params = "account status category sender" LOG,
     .scope = TIDE_HTTPD_WORK,
     .fields = "emails:[AssistantEmail] next:string? total:integer?"},
    {.method = "GET",
     .path = ASSISTANT "{account}/threads/{thread}",
     .group = "assistant",
     .verb = "explain",
     .part = "thread",
     .flag_part = "account",
     .scope = TIDE_HTTPD_WORK,
     .fields = "record:object? timeline:[AssistantMoment]"},
    {.method = "GET",
     .path = ASSISTANT "events",
     .group = "assistant",
     .verb = "events",
     .params = "account thread kind" LOG,
     .scope = TIDE_HTTPD_WORK,
     .fields = "events:[AssistantEvent] next:string?"},
    {.method = "GET",
     .path = ASSISTANT "calls",
     .group = "assistant",
     .verb = "calls",
     .params = "account thread kind state" LOG,
     .scope = TIDE_HTTPD_WORK,
     .fields = "calls:[AssistantCall] next:string?"},
    {.method = "GET",
     .path = ASSISTANT "calls/{call}",
     .group = "assistant",
     .verb = "calls",
     .part = "call",
     .params = "bytes",
     .scope = TIDE_HTTPD_WORK,
     .fields = CALL " system:string prompt:string answer:string system_bytes:integer "
                    "prompt_bytes:integer answer_bytes:integer"},
    {.method = "GET",
     .path = ASSISTANT "runs",
     .group = "assistant",
     .verb = "runs",
     .params = "account thread status" LOG,
     .scope = TIDE_HTTPD_WORK,
     .fields = "runs:[AssistantRun] next:string?"},
    {.method = "GET",
     .path = ASSISTANT "runs/{run}",
     .group = "assistant",
     .verb = "runs",
     .part = "run",
     .scope = TIDE_HTTPD_WORK,
     .fields = RUN " tools:array final:string"},
    {.path = NULL},
};
