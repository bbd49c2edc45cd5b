/* examples.c - lines that a user of the mail system may type, for help. */
#include "mail/commands/home.h"

const struct cli_example mail_examples[] = {
    {"mail sync", "mail sync", "all mail accounts; the next run resumes"},
    {"mail sync", "mail sync ada@example.com --newest-first", "one account, the newest mail first"},
    {"mail sync", "mail sync --since 2y --timeout 1h", "the last two years, for an hour"},
    {"mail search", "mail search from:bob has:attachment newer_than:1y", "as in Gmail"},
    {"mail export", "mail export invoices.mbox label:invoices", "the mail of a label, in one file"},
    {"mail import", "mail import takeout.mbox --account ada@example.com",
     "what Google Takeout gave"},
    {"mail archive", "mail archive --older-than 1y --dry-run", "what would leave the inbox"},
    {"mail archive", "mail archive --older-than 5y --mode trash",
     "to the trash, if it is proven to be here"},
    {"mail restore", "mail restore --manifest 3", "put back what run 3 removed"},
    {"mail verify", "mail verify --sample 100", "read back one message in a hundred"},
    {NULL, NULL, NULL},
};
