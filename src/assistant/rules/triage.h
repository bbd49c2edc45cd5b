/* triage.h - what is decided about a message without a model, and after its answer (J10, J21).
 *
 *   blacklisted                    fyi, no model is asked
 *   automated, model: response     fyi
 *   automated, answer not usable   fyi, low confidence: nobody waits for an answer
 *   answer not usable              needs_response, low confidence: a person should look
 *
 * Invariants:
 *   TRG1  a message that is automated or blacklisted is never needs_response.
 *   TRG2  the style is one of the configuration's.
 */
#ifndef TIDE_ASSISTANT_RULES_TRIAGE_H
#define TIDE_ASSISTANT_RULES_TRIAGE_H

#include "assistant/config/config.h"
#include "assistant/text/letter.h"
#include "assistant/text/verdict.h"

enum { TIDE_TRIAGE_WHY_BYTES = 200 };

struct tide_triage {
    bool blacklisted;
    bool automated;
    char why[TIDE_TRIAGE_WHY_BYTES]; /* "header List-Id"; "": neither */
};
/* Tier 1: sender and headers. */
void tide_triage_look(const struct tide_assistant_config *config, const struct tide_letter *letter,
                      struct tide_triage *triage_out);

typedef enum tide_style_from {
    TIDE_STYLE_FROM_SENDER,
    TIDE_STYLE_FROM_DOMAIN,
    TIDE_STYLE_FROM_MODEL,
    TIDE_STYLE_FROM_DEFAULT,
} tide_style_from;
const char *tide_style_from_name(tide_style_from from);

struct tide_decision {
    tide_assistant_category category;
    tide_confidence confidence;
    size_t style; /* of the configuration */
    tide_style_from style_from;
    char language[TIDE_LANGUAGE_BYTES_MAX + 1];
    char reasoning[TIDE_REASONING_BYTES_MAX + 1];
};
/* Whether a model must be asked; false: the decision is made. */
bool tide_triage_needs_model(const struct tide_triage *triage);
/* The decision, after the model's answer.  `verdict` NULL: there is no usable one, and `problem`
 * says why. */
void tide_triage_decide(const struct tide_assistant_config *config,
                        const struct tide_letter *letter, const struct tide_triage *triage,
                        const struct tide_verdict *verdict, const char *problem,
                        struct tide_decision *decision_out);

/* The sender's own style, else that of the first domain that fits, else the model's (an index of
 * the configuration, or TIDE_STYLE_NONE), else the default. */
size_t tide_style_resolve(const struct tide_assistant_config *config, tide_text sender,
                          int from_model, tide_style_from *from_out);

#endif
