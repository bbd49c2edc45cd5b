/* crisp.h - mail that the Crisp helpdesk forwards: who the customer is and what they wrote (J15).
 *
 * Lines "Label: value" in English or Czech name the customer; the message follows a label of its
 * own, a separator line, or simply the labels.  What cannot be read so is passed through unchanged.
 * The result is data for a model: the address found here is never a recipient (reply.h RPL1).
 *
 * Invariants:
 *   CRS1  `recognized` is false, or there is a message and a name or an address.
 *   CRS2  every text is a part of the letter; time is linear in it.
 */
#ifndef TIDE_ASSISTANT_TEXT_CRISP_H
#define TIDE_ASSISTANT_TEXT_CRISP_H

#include "assistant/text/letter.h"

struct tide_crisp {
    bool recognized;
    tide_text name;    /* of the customer; "" */
    tide_text address; /* "" or as in mailbox.h MLB1 */
    tide_text message; /* passed through: the letter's text */
};

void tide_crisp_read(const struct tide_letter *letter, struct tide_crisp *crisp_out);

#endif
