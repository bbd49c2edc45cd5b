/* What is read in a message: examples of everything mail does to text, the whole
 * corpus, GMime as a second opinion, and thousands of broken messages. */
#include "support/groups.h"
#include "unit/mail/message_fixture.h"

extern const struct group group_headers, group_text, group_attachments, group_ceilings,
    group_corpus, group_broken;

static const struct group *const groups[] = {&group_headers,  &group_text,   &group_attachments,
                                             &group_ceilings, &group_corpus, &group_broken};

int main(void)
{
    tide_message_start();
    return groups_run(groups, sizeof groups / sizeof groups[0]);
}
