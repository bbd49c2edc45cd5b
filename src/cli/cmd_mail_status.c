/* tidemark mail status: where each account stands, beside anything (M6b). */
#include "cli/mail_watch.h"

tide_status cli_mail_status(struct cli *cli)
{
    struct mail_names names;
    return mail_names(cli, &names);
}
