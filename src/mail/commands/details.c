/* details.c - what --help says about commands of the mail system beyond their sentence. */
#include "mail/commands/home.h"

#include "cli/cli.h"

/* docs/mail/search.md and the manual have the same list. */
static const char search_details[] =
    "Query: words and operators; all of them must match.\n"
    "  invoice                finds its forms, too: invoices, invoicing\n"
    "  +invoice  \"two words\"  exactly these words\n"
    "  invoic*                words that begin like this\n"
    "  -word  -from:ann       not\n"
    "  a OR b  {a b}  (a b)   either; either; a group, also after an operator: from:(a OR b)\n"
    "  from: to: cc: bcc:     people; `me` is the owner of the archive\n"
    "  from:bob@example.com   exactly this address; from:@example.com: exactly this domain;\n"
    "                         from:example.com: also those under it\n"
    "  subject: filename:     words of the subject, of the names of attachments\n"
    "  after: before:         2014/01/31, 2014/01 or 2014, in local time; or seconds since 1970\n"
    "  newer_than: older_than:  an age: 12h, 3d, 2w, 6m, 1y\n"
    "  larger: smaller:       a size: 5000, 5k, 10M\n"
    "  label: in: is: category:  a label, by name: label:travel in:inbox is:unread\n"
    "  has:attachment         messages with attachments; also has:userlabels, has:nouserlabels,\n"
    "                         has:drive, document, spreadsheet, presentation, youtube\n"
    "  list: deliveredto:     words of a mailing list's headers, of Delivered-To; slow alone\n"
    "  one AROUND 5 other     at most five words between these two, which are exact\n"
    "  rfc822msgid:           a Message-ID\n"
    "  in:anywhere            spam and trash, too\n"
    "  saved:NAME             a search of `tidemark mail saved`\n"
    "\nMarks: u unread, s starred, a attachments, g gone from Gmail.\n";

/* As browse's own help (browse/draw.c). */
static const char browse_details[] =
    "Keys:\n"
    "  j k, arrows            next, previous; in a message: scroll\n"
    "  PgDn PgUp, g G         a screen, the newest, the oldest\n"
    "  Enter, t               open the message, the whole conversation\n"
    "  n p                    next, previous message while one is open\n"
    "  /                      search as you type; Enter keeps it, Esc returns\n"
    "  space, u               select a message, select none\n"
    "  s                      save the attachments of the selected messages or this one\n"
    "  o                      open the message in a web browser, without remote images\n"
    "  r                      look for new mail in the archive\n"
    "  ?                      show the keys\n"
    "  q, Esc                 back; at the list: end, and print the selected ids\n";

static const char show_details[] =
    "The beginning of an ID is enough if no other message has it: four characters at least.\n";

static const char archive_details[] =
    "Query: as for `tidemark mail search`, but a plain word is exact: `invoice` does not take\n"
    "invoices; `invoic*` takes both. --dry-run shows what would be removed, `tidemark mail\n"
    "restore` puts it back.\n";

static const char import_details[] =
    "Beside `tidemark serve` or a sync, that process imports, and syncs go on. Ctrl-C stops the "
    "import.\n"
    "After an interruption run it again: nothing is stored twice.\n";

const struct cli_details mail_details[] = {
    {"archive", archive_details}, {"browse", browse_details}, {"import", import_details},
    {"search", search_details},   {"show", show_details},     {NULL, NULL},
};
