/* What is read in a message: examples of everything mail does to text, the whole
 * corpus, GMime as a second opinion, and thousands of broken messages. */
#include "support/test.h"
#include "unit/mail/message_fixture.h"

int main(void)
{
    tide_message_start();
    return tests_run(NULL);
}
