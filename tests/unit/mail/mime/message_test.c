/* What is read in a message: examples of everything mail does to text, the whole
 * corpus, GMime as a second opinion, and thousands of broken messages. */
#include "support/test.h"
#include "unit/mail/message_fixture.h"

#include <gmime/gmime.h>

int main(void)
{
    g_mime_init(); /* for the second opinion */
    return tests_run(NULL);
}
