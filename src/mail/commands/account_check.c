#include "mail/commands/account_check.h"

#include "cloud/gmail.h"
#include "mail/mail.h"
#include "net/endpoint.h"
#include "net/oauth/google.h"

#include <stdio.h>

enum { BEARER_BYTES_MAX = 16 << 10 };

tide_status account_check_endpoint(struct cli *cli)
{
    const char *endpoint = cli_flag(cli, "endpoint");
    tide_error why = {TIDE_OK, 0, ""};
    if (endpoint == NULL || tide_endpoint_check(endpoint, &why) == TIDE_OK)
        return TIDE_OK;
    return cli_wrong(cli, "Correct --endpoint, or omit it to use Google's server.", "%s", why.text);
}

static tide_status another_mailbox(struct cli *cli, const char *email, const char *mailbox)
{
    char hint[400];
    (void)snprintf(
        hint, sizeof hint,
        "Nothing was added. Sign in as %.100s, or add the mailbox under its own address: "
        "`tidemark account add gmail %.100s`.",
        email, mailbox);
    return cli_fail(cli, TIDE_AUTH, hint, "this sign-in opens the mailbox of %.100s, not of %.100s",
                    mailbox, email);
}

/* The hint depends on why the server did not answer. */
static tide_status refused(struct cli *cli, tide_status rc, const char *endpoint)
{
    const tide_error why = cli->err;
    const tide_text host =
        tide_endpoint_host(endpoint == NULL ? "https://gmail.googleapis.com" : endpoint);
    const bool unreachable = tide_status_class(rc) == TIDE_CLASS_NETWORK || rc == TIDE_TIMEOUT;
    if (unreachable)
        return cli_fail(cli, rc,
                        "Nothing was added. Check the address and the connection, and run the "
                        "command again.",
                        "%.*s cannot be reached: %.300s", (int)host.bytes, host.data, why.text);
    if (tide_status_class(rc) == TIDE_CLASS_AUTH)
        return cli_fail(
            cli, rc, "Nothing was added. Sign in with an account that the server accepts.",
            "%.*s does not accept this sign-in: %.300s", (int)host.bytes, host.data, why.text);
    return cli_fail(cli, rc, "Nothing was added. Run the command again, or check the address.",
                    "%.*s did not say whose mailbox this is: %.300s", (int)host.bytes, host.data,
                    why.text);
}

tide_status account_check_mailbox(struct cli *cli, const char *email, const char *endpoint,
                                  tide_text grant)
{
    struct tide_gmail_profile profile = {.messages = 0};
    const tide_cancel *cancel = cli_interruptible(cli);
    tide_buf bearer;
    tide_buf_init(&bearer, cli->mem, BEARER_BYTES_MAX);
    tide_status rc =
        tide_oauth_try(&tide_oauth_google, cli->world, grant, cancel, cli->mem, &bearer, &cli->err);
    if (rc == TIDE_OK)
        rc = tide_gmail_whose(cli->world, endpoint, tide_buf_text(&bearer), cli->mem, cancel,
                              &profile, &cli->err);
    tide_secret_wipe(&bearer);
    tide_buf_done(&bearer);
    if (rc == TIDE_GONE) { /* an emulator without that call */
        cli->err = (tide_error){TIDE_OK, 0, ""};
        return TIDE_OK;
    }
    if (rc != TIDE_OK)
        return refused(cli, rc, endpoint);
    if (tide_mail_compare(email, &profile, NULL) != TIDE_OK)
        return another_mailbox(cli, email, profile.email);
    return TIDE_OK;
}
