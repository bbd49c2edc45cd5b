/* The chat model: its eyes (facts), its hands (schemas), its two ways of
 * speaking, and everything it refuses. */
#include "chat_fixture.h"

int main(void)
{
    return tests_run(NULL);
}
