/* router.h - which way a new message goes: the pipeline, or an agent (J8).
 *
 * The rules of the configuration are tried in order; the first whose conditions all hold decides.
 * Without one a message goes to the pipeline.  What is asked of a message is in its headers and
 * text, which a stranger wrote: a rule can choose between ways that the user has set up, no more.
 *
 * Invariants:
 *   RTR1  the outcome is the pipeline or a profile of the configuration.
 *   RTR2  the same message and configuration give the same outcome and words.
 */
#ifndef TIDE_ASSISTANT_RULES_ROUTER_H
#define TIDE_ASSISTANT_RULES_ROUTER_H

#include "assistant/config/config.h"
#include "assistant/text/letter.h"

enum {
    TIDE_ROUTE_WHY_BYTES = 400,
    TIDE_ROUTE_TEXT_BYTES_MAX = 64 << 10, /* of the text in which addresses are looked for */
};

struct tide_route {
    const struct tide_rule *rule;       /* that decided; NULL: none did */
    const struct tide_profile *profile; /* of the agent; NULL: the pipeline */
    char why[TIDE_ROUTE_WHY_BYTES];     /* one line, for people */
};

/* Borrowed from `config`. */
void tide_route_choose(const struct tide_assistant_config *config, const struct tide_letter *letter,
                       struct tide_route *route_out);

/* For `rules test` and `explain`: how one rule judges a message, condition by condition. */
typedef void tide_rule_word(void *arg, const char *condition, bool holds, const char *why);
/* Whether it applies.  All conditions are visited, also after one that does not hold; `word` may be
 * NULL. */
bool tide_rule_applies(const struct tide_rule *rule, const struct tide_letter *letter,
                       tide_rule_word *word, void *arg);

#endif
