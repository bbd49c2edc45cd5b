/* token.h - a bug on purpose that campaigns of drives share: pre-signed addresses get the token (I14).
 * Needs --wrap=tide_api_call. */
#ifndef TIDE_TESTS_SIM_TOKEN_H
#define TIDE_TESTS_SIM_TOKEN_H

#include <stdbool.h>

/* Of the campaign: whether it is planted now. */
bool seeds_token_is_sent(void);

#endif
