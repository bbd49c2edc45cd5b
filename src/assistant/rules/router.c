#include "assistant/rules/router.h"

#include "assistant/match/fold.h"
#include "assistant/match/glob.h"
#include "mail/compose/mailbox.h"
#include "base/json.h"

#include <stdarg.h>
#include <stdio.h>

enum { SHOWN_BYTES = 60, ADDRESSES_MAX = 200 /* looked at in one text */ };

/* One rule being asked. */
struct asking {
    const struct tide_letter *letter;
    tide_rule_word *word;
    void *arg;
    bool all;                         /* all conditions so far hold */
    char first[TIDE_ROUTE_WHY_BYTES]; /* the words of those that hold, joined */
};

static int shown(tide_text text)
{
    return (int)tide_utf8_cut(text, SHOWN_BYTES).bytes;
}

static void say(struct asking *asking, const char *condition, bool holds, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static void say(struct asking *asking, const char *condition, bool holds, const char *format, ...)
{
    char why[TIDE_ROUTE_WHY_BYTES / 2];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(why, sizeof why, format, args);
    va_end(args);
    asking->all = asking->all && holds;
    const size_t used = strlen(asking->first);
    if (holds && used + 2 < sizeof asking->first)
        (void)snprintf(asking->first + used, sizeof asking->first - used, "%s%s",
                       used == 0 ? "" : "; ", why);
    if (asking->word != NULL)
        asking->word(asking->arg, condition, holds, why);
}

/* ---- conditions -------------------------------------------------------------------- */

static void ask_sender(struct asking *asking, const struct tide_texts *wanted, bool domain)
{
    if (wanted->count == 0)
        return;
    const char *condition = domain ? "sender_domain" : "sender_email";
    const tide_text sender = tide_letter_sender(asking->letter);
    const tide_text value = domain ? tide_mailbox_domain(sender) : sender;
    for (size_t i = 0; i < wanted->count; i++) {
        if (value.bytes > 0 && tide_glob_match(wanted->at[i], value)) {
            say(asking, condition, true, "the sender is %.*s", shown(sender), sender.data);
            return;
        }
    }
    const tide_text seen = sender.bytes > 0 ? sender : TIDE_TEXT("unknown");
    say(asking, condition, false, "the sender is %.*s", shown(seen), seen.data);
}

static void ask_subject(struct asking *asking, const struct tide_texts *wanted)
{
    for (size_t i = 0; i < wanted->count; i++) {
        if (tide_fold_contains(asking->letter->subject, wanted->at[i])) {
            say(asking, "subject_contains", true, "the subject contains \"%.*s\"",
                shown(wanted->at[i]), wanted->at[i].data);
            return;
        }
    }
    if (wanted->count > 0)
        say(asking, "subject_contains", false, "the subject does not contain it");
}

static void ask_header(struct asking *asking, const struct tide_rule_header *wanted)
{
    size_t cursor = 0;
    tide_text value = TIDE_TEXT("");
    bool there = false;
    char name[TIDE_ASSISTANT_NAME_BYTES_MAX * 2];
    (void)snprintf(name, sizeof name, "%.*s", (int)wanted->name.bytes, wanted->name.data);
    while (tide_letter_header(asking->letter, name, &cursor, &value)) {
        there = true;
        if (tide_pattern_search(wanted->pattern, value)) {
            say(asking, "header_match", true, "the header %s fits \"%.*s\"", name,
                shown(wanted->source), wanted->source.data);
            return;
        }
    }
    say(asking, "header_match", false,
        there ? "the header %s does not fit" : "there is no header %s", name);
}

static bool wanted_address(const struct tide_texts *wanted, tide_text address)
{
    for (size_t i = 0; address.bytes > 0 && i < wanted->count; i++)
        if (tide_glob_match_address(wanted->at[i], address))
            return true;
    return false;
}

/* One of the addresses in the text, as a forwarding program writes it there. */
static bool in_text(const struct asking *asking, const struct tide_texts *wanted,
                    tide_text *address_out)
{
    const tide_text text = tide_utf8_cut(asking->letter->text, TIDE_ROUTE_TEXT_BYTES_MAX);
    size_t at = 0;
    for (unsigned seen = 0; seen < ADDRESSES_MAX && tide_mailbox_find(text, &at, address_out);
         seen++)
        if (wanted_address(wanted, *address_out))
            return true;
    return false;
}

static void ask_forwarded(struct asking *asking, const struct tide_texts *wanted)
{
    const struct tide_letter *letter = asking->letter;
    if (wanted->count == 0)
        return;
    size_t cursor = 0;
    tide_text value = TIDE_TEXT("");
    (void)tide_letter_header(letter, "X-Forwarded-From", &cursor, &value);
    const struct {
        const char *where;
        tide_text address;
    } places[] = {
        {"X-Forwarded-From", tide_mailbox_first(value).address},
        {"Reply-To", tide_mailbox_first(letter->reply_to).address},
        {"the text", TIDE_TEXT("")},
        {"From", tide_letter_sender(letter)},
    };
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        tide_text address = places[i].address;
        if (i == 2 ? in_text(asking, wanted, &address) : wanted_address(wanted, address)) {
            say(asking, "forwarded_from", true, "%s has %.*s", places[i].where, shown(address),
                address.data);
            return;
        }
    }
    say(asking, "forwarded_from", false, "neither the headers nor the text have it");
}

static bool ask_rule(const struct tide_rule *rule, struct asking *asking)
{
    asking->all = true;
    if (rule->all)
        say(asking, "all", true, "it is for every message");
    ask_sender(asking, &rule->sender_email, false);
    ask_sender(asking, &rule->sender_domain, true);
    ask_subject(asking, &rule->subject_contains);
    for (size_t i = 0; i < rule->headers_count; i++)
        ask_header(asking, &rule->headers[i]);
    ask_forwarded(asking, &rule->forwarded_from);
    return asking->all;
}

/* ---- rules -------------------------------------------------------------------------- */

bool tide_rule_applies(const struct tide_rule *rule, const struct tide_letter *letter,
                       tide_rule_word *word, void *arg)
{
    struct asking asking = {.letter = letter, .word = word, .arg = arg};
    return ask_rule(rule, &asking);
}

void tide_route_choose(const struct tide_assistant_config *config, const struct tide_letter *letter,
                       struct tide_route *route_out)
{
    struct tide_route route = {.rule = NULL};
    (void)snprintf(route.why, sizeof route.why, "no rule applies: the pipeline");
    for (size_t i = 0; route.rule == NULL && i < config->rules_count; i++) {
        const struct tide_rule *rule = &config->rules[i];
        struct asking asking = {.letter = letter};
        if (!ask_rule(rule, &asking))
            continue;
        route.rule = rule;
        route.profile = rule->agent ? &config->profiles[rule->profile] : NULL;
        (void)snprintf(route.why, sizeof route.why, "rule %.*s: %.200s: %s%.*s",
                       (int)rule->name.bytes, rule->name.data, asking.first,
                       rule->agent ? "the agent " : "the pipeline",
                       rule->agent ? (int)route.profile->name.bytes : 0,
                       rule->agent ? route.profile->name.data : "");
    }
    *route_out = route;
}
