#include "ledger/outcome.h"

#include "base/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool tide_outcome_counts(tide_status status)
{
    switch (tide_status_class(status)) {
    case TIDE_CLASS_OK:
    case TIDE_CLASS_RETRY:
    case TIDE_CLASS_THROTTLED:
    case TIDE_CLASS_AUTH:
    case TIDE_CLASS_NETWORK:
    case TIDE_CLASS_DISK:
    case TIDE_CLASS_PERMANENT:
        return status != TIDE_AGAIN && status != TIDE_NO_MEMORY && status != TIDE_FULL &&
               status != TIDE_BUSY;
    case TIDE_CLASS_GONE:
    case TIDE_CLASS_CANCELED:
    case TIDE_CLASS_BUG:
        break;
    }
    return false;
}

bool tide_outcome_is_bad(const struct tide_outcome *outcome)
{
    return outcome->failed_unix_ms > outcome->ok_unix_ms;
}

static bool names_host(const char *text, tide_text host)
{
    char name[128];
    (void)snprintf(name, sizeof name, "%.*s", (int)(host.bytes < 120 ? host.bytes : 120),
                   host.data);
    return host.bytes == 0 || strstr(text, name) != NULL;
}

bool tide_outcome_add(struct tide_outcome *outcome, tide_status status, tide_text host,
                      const char *text, uint64_t now_unix_ms)
{
    if (!tide_outcome_counts(status))
        return false;
    const bool was_bad = tide_outcome_is_bad(outcome);
    const bool known = outcome->ok_unix_ms > 0 || outcome->failed_unix_ms > 0;
    if (status == TIDE_OK) {
        outcome->ok_unix_ms = now_unix_ms;
    } else {
        /* In the same millisecond the later result counts. */
        outcome->failed_unix_ms =
            now_unix_ms > outcome->ok_unix_ms ? now_unix_ms : outcome->ok_unix_ms + 1;
        if (!was_bad || outcome->since_unix_ms == 0)
            outcome->since_unix_ms = outcome->failed_unix_ms;
        outcome->status = status;
        if (names_host(text, host))
            (void)snprintf(outcome->text, sizeof outcome->text, "%s", text);
        else
            (void)snprintf(outcome->text, sizeof outcome->text, "%.*s: %s", (int)host.bytes,
                           host.data, text);
    }
    outcome->unsaved = true;
    const bool turned = !known || was_bad != tide_outcome_is_bad(outcome);
    const uint64_t wait_ms = turned ? TIDE_OUTCOME_FLAP_MS : TIDE_OUTCOME_EVERY_MS;
    return outcome->saved_unix_ms == 0 || now_unix_ms >= outcome->saved_unix_ms + wait_ms;
}

void tide_outcome_key(uint32_t account, char key_out[32])
{
    (void)snprintf(key_out, 32, "outcome:%" PRIu32, account);
}

tide_status tide_outcome_write(const struct tide_outcome *outcome, tide_buf *out)
{
    tide_auto_json json;
    tide_json_object(&json);
    tide_json_set_u64(&json, "ok", outcome->ok_unix_ms);
    tide_json_set_u64(&json, "failed", outcome->failed_unix_ms);
    tide_json_set_u64(&json, "since", outcome->since_unix_ms);
    tide_json_set_cstr(&json, "status", tide_status_name(outcome->status));
    tide_json_set_cstr(&json, "text", outcome->text);
    return tide_json_line(&json, out);
}

static void outcome_parse(tide_text line, struct tide_outcome *outcome)
{
    json_auto_t *json = NULL;
    tide_text text = TIDE_TEXT_NONE;
    tide_text status = TIDE_TEXT_NONE;
    if (tide_json_parse(line, &json, NULL) == TIDE_OK) {
        (void)tide_json_get_u64(json, "ok", &outcome->ok_unix_ms, NULL);
        (void)tide_json_get_u64(json, "failed", &outcome->failed_unix_ms, NULL);
        (void)tide_json_get_u64(json, "since", &outcome->since_unix_ms, NULL);
        (void)tide_json_get_text(json, "status", &status, NULL);
        (void)tide_json_get_text(json, "text", &text, NULL);
        outcome->status = status.bytes == 0 ? TIDE_OK : tide_status_from_name(status.data);
        (void)snprintf(outcome->text, sizeof outcome->text, "%.*s", (int)text.bytes,
                       text.bytes == 0 ? "" : text.data);
    }
}

void tide_outcome_read(tide_ledger *ledger, uint32_t account, tide_mem *mem,
                       struct tide_outcome *outcome_out)
{
    char key[32];
    *outcome_out = (struct tide_outcome){.status = TIDE_OK};
    tide_auto_buf line = tide_buf_in(mem, 4096);
    tide_outcome_key(account, key);
    if (tide_ledger_note_get(ledger, key, &line, NULL) == TIDE_OK)
        outcome_parse(tide_buf_text(&line), outcome_out);
}
