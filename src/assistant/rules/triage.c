#include "assistant/rules/triage.h"

#include "assistant/match/fold.h"
#include "assistant/match/glob.h"
#include "mail/compose/mailbox.h"
#include "base/check.h"
#include "base/json.h"

#include <stdio.h>

static int shown(tide_text text)
{
    return (int)tide_utf8_cut(text, 80).bytes;
}

/* ---- tier 1: the sender ------------------------------------------------------------- */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* "noreply" is in "noreply", "noreply+42" and "github-noreply", not in "noreplying". */
static bool has_word(tide_text local, tide_text word)
{
    for (size_t at = 0; word.bytes > 0 && at + word.bytes <= local.bytes; at++) {
        const size_t end = at + word.bytes;
        if ((at == 0 || !is_letter(local.data[at - 1])) &&
            (end == local.bytes || !is_letter(local.data[end])) &&
            tide_fold_equal((tide_text){local.data + at, word.bytes}, word))
            return true;
    }
    return false;
}

static bool is_automated_sender(const struct tide_assistant_config *config, tide_text sender,
                                struct tide_triage *triage)
{
    const tide_text local = tide_mailbox_local(sender);
    for (size_t i = 0; i < config->automated_senders.count; i++) {
        const tide_text one = config->automated_senders.at[i];
        const bool whole = memchr(one.data, '@', one.bytes) != NULL;
        if (whole ? tide_glob_match(one, sender) : has_word(local, one)) {
            (void)snprintf(triage->why, sizeof triage->why, "sender %.*s", shown(sender),
                           sender.data);
            return true;
        }
    }
    return false;
}

/* ---- tier 1: headers ----------------------------------------------------------------- */

typedef enum asked { ASKED_THERE, ASKED_NOT_NO, ASKED_PRECEDENCE } asked;

/* "auto-replied (rejected)": the word in front. */
static tide_text front_word(tide_text value)
{
    size_t bytes = 0;
    while (bytes < value.bytes && strchr(" ;\t(", value.data[bytes]) == NULL)
        bytes++;
    return (tide_text){value.data, bytes};
}

static bool says_automated(asked question, tide_text value)
{
    static const char *const precedences[] = {"bulk", "list", "auto_reply", "junk"};
    const tide_text word = front_word(value);
    if (question == ASKED_NOT_NO)
        return !tide_fold_equal(word, TIDE_TEXT("no"));
    if (question == ASKED_THERE)
        return true;
    for (size_t i = 0; i < sizeof precedences / sizeof precedences[0]; i++)
        if (tide_fold_equal(word, tide_text_of(precedences[i])))
            return true;
    return false;
}

static bool has_automated_header(const struct tide_letter *letter, struct tide_triage *triage)
{
    static const struct {
        const char *name;
        asked question;
    } headers[] = {
        {"Auto-Submitted", ASKED_NOT_NO},
        {"Precedence", ASKED_PRECEDENCE},
        {"List-Id", ASKED_THERE},
        {"List-Unsubscribe", ASKED_THERE},
        {"X-Auto-Response-Suppress", ASKED_THERE},
        {"Feedback-ID", ASKED_THERE},
        {"X-Autoreply", ASKED_THERE},
        {"X-Autorespond", ASKED_THERE},
    };
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
        size_t cursor = 0;
        tide_text value = TIDE_TEXT("");
        while (tide_letter_header(letter, headers[i].name, &cursor, &value)) {
            if (says_automated(headers[i].question, value)) {
                (void)snprintf(triage->why, sizeof triage->why, "header %s", headers[i].name);
                return true;
            }
        }
    }
    return false;
}

void tide_triage_look(const struct tide_assistant_config *config, const struct tide_letter *letter,
                      struct tide_triage *triage_out)
{
    struct tide_triage triage = {.blacklisted = false};
    const tide_text sender = tide_letter_sender(letter);
    for (size_t i = 0; !triage.blacklisted && i < config->blacklist.count; i++) {
        const tide_text glob = config->blacklist.at[i];
        triage.blacklisted = tide_glob_match_address(glob, sender);
        if (triage.blacklisted)
            (void)snprintf(triage.why, sizeof triage.why, "blacklist %.*s", shown(glob), glob.data);
    }
    if (!triage.blacklisted)
        triage.automated =
            is_automated_sender(config, sender, &triage) || has_automated_header(letter, &triage);
    *triage_out = triage;
}

/* ---- styles ---------------------------------------------------------------------------- */

const char *tide_style_from_name(tide_style_from from)
{
    static const char *const names[] = {"sender", "domain", "model", "default"};
    TIDE_ASSERT((unsigned)from <= TIDE_STYLE_FROM_DEFAULT);
    return names[from];
}

size_t tide_style_resolve(const struct tide_assistant_config *config, tide_text sender,
                          int from_model, tide_style_from *from_out)
{
    const tide_text domain = tide_mailbox_domain(sender);
    for (size_t i = 0; sender.bytes > 0 && i < config->senders_count; i++) {
        if (tide_mailbox_equal(config->senders[i].who, sender)) {
            *from_out = TIDE_STYLE_FROM_SENDER;
            return config->senders[i].style;
        }
    }
    for (size_t i = 0; domain.bytes > 0 && i < config->domains_count; i++) {
        if (tide_glob_match(config->domains[i].who, domain)) {
            *from_out = TIDE_STYLE_FROM_DOMAIN;
            return config->domains[i].style;
        }
    }
    if (from_model >= 0 && (size_t)from_model < config->styles_count) {
        *from_out = TIDE_STYLE_FROM_MODEL;
        return (size_t)from_model;
    }
    *from_out = TIDE_STYLE_FROM_DEFAULT;
    return config->default_style;
}

/* ---- deciding --------------------------------------------------------------------------- */

bool tide_triage_needs_model(const struct tide_triage *triage)
{
    return !triage->blacklisted;
}

void tide_triage_decide(const struct tide_assistant_config *config,
                        const struct tide_letter *letter, const struct tide_triage *triage,
                        const struct tide_verdict *verdict, const char *problem,
                        struct tide_decision *decision_out)
{
    struct tide_decision decision = {.category = TIDE_ASSISTANT_NEEDS_RESPONSE,
                                     .confidence = TIDE_CONFIDENCE_LOW};
    if (triage->blacklisted) {
        decision.category = TIDE_ASSISTANT_FYI;
        decision.confidence = TIDE_CONFIDENCE_HIGH;
        (void)snprintf(decision.reasoning, sizeof decision.reasoning, "%s", triage->why);
    } else if (verdict != NULL) {
        decision.category = verdict->category;
        decision.confidence = verdict->confidence;
        memcpy(decision.language, verdict->language, sizeof decision.language);
        memcpy(decision.reasoning, verdict->reasoning, sizeof decision.reasoning);
    } else {
        (void)snprintf(decision.reasoning, sizeof decision.reasoning, "no usable answer: %.300s",
                       problem == NULL ? "the model was not reached" : problem);
    }
    if (triage->automated && decision.category == TIDE_ASSISTANT_NEEDS_RESPONSE) {
        decision.category = TIDE_ASSISTANT_FYI; /* TRG1 */
        (void)snprintf(decision.reasoning, sizeof decision.reasoning,
                       "sent by a program (%s), so no response%s%.300s", triage->why,
                       verdict == NULL ? "; no usable answer: " : "",
                       verdict != NULL || problem == NULL ? "" : problem);
    }
    decision.style = tide_style_resolve(config, tide_letter_sender(letter),
                                        verdict == NULL || triage->blacklisted ? TIDE_STYLE_NONE
                                                                               : verdict->style,
                                        &decision.style_from);
    TIDE_ASSERT(decision.style < config->styles_count);
    *decision_out = decision;
}
