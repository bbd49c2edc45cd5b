/* webhook_test.c - the names of outcomes, which are labels of metrics.  The parts are beside it. */
#include "unit/serve/webhook/webhook_fixture.h"

TEST(outcomes_have_names_of_their_own)
{
    for (int i = 0; i < TIDE_WEBHOOK_OUTCOMES; i++) {
        const char *name = tide_webhook_outcome_name((tide_webhook_outcome)i);
        assert_true(name != NULL && name[0] != '\0' &&
                    strspn(name, "abcdefghijklmnopqrstuvwxyz_") == strlen(name));
        for (int k = 0; k < i; k++)
            assert_string_not_equal(name, tide_webhook_outcome_name((tide_webhook_outcome)k));
    }
}
