#include "serve/access/pairing_routes.h"

#include <stdio.h>
#include <string.h>

struct word {
    const char *found; /* in the header */
    const char *name;
};

/* Order matters: every browser also claims to be the ones after it. */
static const char *name_in(tide_text header, const struct word *words, size_t count,
                           const char *otherwise)
{
    for (size_t i = 0; i < count; i++)
        if (header.bytes > 0 &&
            memmem(header.data, header.bytes, words[i].found, strlen(words[i].found)) != NULL)
            return words[i].name;
    return otherwise;
}

void tide_pairing_agent(tide_text header, char agent_out[TIDE_PAIRING_AGENT_BYTES_MAX])
{
    static const struct word browsers[] = {{"Firefox/", "Firefox"}, {"Edg/", "Edge"},
                                           {"OPR/", "Opera"},       {"Chromium/", "Chromium"},
                                           {"Chrome/", "Chrome"},   {"Safari/", "Safari"},
                                           {"curl/", "curl"}};
    static const struct word systems[] = {
        {"Android", "Android"}, {"iPhone", "iOS"},    {"iPad", "iOS"},   {"Windows", "Windows"},
        {"Mac OS X", "macOS"},  {"CrOS", "ChromeOS"}, {"Linux", "Linux"}};
    (void)snprintf(
        agent_out, TIDE_PAIRING_AGENT_BYTES_MAX, "%s on %s",
        name_in(header, browsers, sizeof browsers / sizeof browsers[0], "an unknown program"),
        name_in(header, systems, sizeof systems / sizeof systems[0], "an unknown system"));
}

void tide_pairing_post(void *arg, const struct tide_httpd_request *request,
                       struct tide_httpd_answer *answer)
{
    tide_pairings *pairings = arg;
    struct tide_pairing_ask ask;
    char agent[TIDE_PAIRING_AGENT_BYTES_MAX];
    tide_pairing_agent(tide_httpd_header(request->head, "user-agent"), agent);
    const tide_status rc =
        tide_pairing_begin(pairings, agent, tide_pairings_now_ms(pairings), &ask);
    if (rc == TIDE_AGAIN) {
        tide_httpd_fail(answer, 429, "often", "One browser a second may ask to come in.",
                        &(struct tide_httpd_problem){.retry_after_s = 1});
    } else if (rc != TIDE_OK) {
        tide_httpd_fail(answer, 503, "pairings", "Three browsers already wait to be let in.",
                        &(struct tide_httpd_problem){.help = "Answer in the terminal, or wait two "
                                                             "minutes.",
                                                     .retry_after_s = 10});
    } else {
        tide_json json;
        tide_json_object(&json);
        tide_json_set_cstr(&json, "code", ask.code);
        tide_json_set_cstr(&json, "ticket", ask.ticket);
        tide_httpd_json(answer, 201, &json);
    }
    explicit_bzero(&ask, sizeof ask);
}

static void give(struct tide_httpd_answer *answer, const char *key)
{
    tide_json json;
    tide_json_object(&json);
    tide_json_set_cstr(&json, "key", key);
    tide_httpd_json(answer, 200, &json);
}

static void say_waiting(const struct tide_httpd_request *request, struct tide_httpd_answer *answer)
{
    tide_json json;
    if (!request->last) {
        tide_httpd_hold(answer, TIDE_PAIRING_HOLD_MS);
        return;
    }
    tide_json_object(&json);
    tide_httpd_json(answer, 202, &json);
}

void tide_pairing_get(void *arg, const struct tide_httpd_request *request,
                      struct tide_httpd_answer *answer)
{
    tide_pairings *pairings = arg;
    char key[TIDE_KEY_TEXT_BYTES + 1];
    const tide_text ticket = tide_httpd_credentials(request->head, "Pairing");
    switch (
        tide_pairing_take(pairings, ticket, tide_pairings_now_ms(pairings), request->held, key)) {
    case TIDE_PAIRING_WAITING:
        say_waiting(request, answer);
        break;
    case TIDE_PAIRING_TAKEN:
        give(answer, key);
        break;
    case TIDE_PAIRING_UNKNOWN:
        tide_httpd_fail(answer, 404, "pairing", "This request to come in is over.",
                        &(struct tide_httpd_problem){.help = "Load the page again."});
        break;
    case TIDE_PAIRING_REPLACED:
        tide_httpd_fail(answer, 409, "pairing", "A newer request waits with this ticket.", NULL);
        break;
    case TIDE_PAIRING_REFUSED:
        tide_httpd_fail(answer, 403, "refused", "The terminal did not let this browser in.", NULL);
        break;
    }
    explicit_bzero(key, sizeof key);
}
