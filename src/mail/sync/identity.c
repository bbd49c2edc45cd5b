/* identity.c - checks which mailbox a sign-in opens (M19a).
 *
 * A token does not name its owner.  With b's token stored for account a, b's mail would land in a's
 * archive, a's mail would count as gone, and a restore would fill b's mailbox.  So the server is
 * asked before the first job of an account runs in a process, and again by every mail.plan; the
 * answer is compared with the account's name.
 *
 * Every kind that calls the server runs through tide_mail_gate_run(), so that no handler can skip
 * the check. */
#include "mail/inside.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { ASKED_BY_ANOTHER_MS = 50 };

/* Gmail ignores case; in its own domains also dots and anything after a plus. */
static void canonical(const char *email, char out[256])
{
    const char *at = strrchr(email, '@');
    const size_t local = at == NULL ? strlen(email) : (size_t)(at - email);
    const bool google =
        at != NULL && (strcasecmp(at, "@gmail.com") == 0 || strcasecmp(at, "@googlemail.com") == 0);
    size_t bytes = 0;
    for (size_t i = 0; i < local && bytes < 240; i++) {
        if (google && email[i] == '+')
            break;
        if (!google || email[i] != '.')
            out[bytes++] = (char)tolower((unsigned char)email[i]);
    }
    const char *domain = at == NULL ? "" : google ? "@gmail.com" : at;
    for (; *domain != '\0' && bytes < 255; domain++)
        out[bytes++] = (char)tolower((unsigned char)*domain);
    out[bytes] = '\0';
}

bool tide_mail_same_mailbox(const char *a, const char *b)
{
    char canonical_a[256];
    char canonical_b[256];
    canonical(a, canonical_a);
    canonical(b, canonical_b);
    return strcmp(canonical_a, canonical_b) == 0;
}

tide_status tide_mail_compare(const char *email, const struct tide_gmail_profile *profile,
                              tide_error *err)
{
    /* A server without a profile call (an emulator) does not say. */
    if (profile->email[0] == '\0' || tide_mail_same_mailbox(profile->email, email))
        return TIDE_OK;
    return tide_error_set(err, TIDE_AUTH,
                          "this sign-in opens the mailbox of %.100s, not of %.100s; sign in again: "
                          "`tidemark account add gmail %.100s`",
                          profile->email, email, email);
}

static tide_status ask(struct tide_mail_user *user, tide_job *job,
                       struct tide_gmail_profile *profile, bool *none_out, tide_error *err)
{
    tide_error why = {TIDE_OK, 0, ""};
    const tide_status rc = tide_gmail_profile(user->gmail, job, profile, &why);
    *none_out = rc == TIDE_GONE;
    if (rc == TIDE_OK)
        return tide_mail_compare(user->email, profile, err);
    if (rc == TIDE_GONE)
        return TIDE_OK;
    /* A refusal of this call concerns the account, not the job. */
    if (rc == TIDE_PERMANENT)
        return tide_error_set(err, TIDE_AUTH,
                              "the server does not say whose mailbox this is: %.250s", why.text);
    if (err != NULL)
        *err = why;
    return rc;
}

/* Whether the caller must ask.  TIDE_AGAIN: another job is asking. */
static tide_status claim(tide_mail *mail, struct tide_mail_user *user, tide_job *job, bool each_job,
                         bool *asks_out)
{
    tide_status rc = TIDE_OK;
    *asks_out = false;
    tide_lock_take(mail->world, mail->lock);
    /* A job that is run again after waiting for units has asked already. */
    if (!user->known || (each_job && user->profile_job != tide_job_id(job))) {
        if (user->asking) {
            rc = tide_job_again(job, tide_job_now_ms(job) + ASKED_BY_ANOTHER_MS);
        } else {
            user->asking = true;
            *asks_out = true;
        }
    }
    tide_lock_drop(mail->world, mail->lock);
    return rc;
}

static tide_status identify(tide_mail *mail, struct tide_mail_user *user, tide_job *job,
                            bool each_job, tide_error *err)
{
    struct tide_gmail_profile profile = {.messages = 0};
    bool asks = false;
    bool none = false;
    tide_status rc = claim(mail, user, job, each_job, &asks);
    if (rc != TIDE_OK || !asks)
        return rc;
    rc = ask(user, job, &profile, &none, err);
    tide_lock_take(mail->world, mail->lock);
    user->asking = false;
    user->known = rc == TIDE_OK;
    user->profile = profile;
    user->profile_none = none;
    user->profile_job = rc == TIDE_OK ? tide_job_id(job) : 0;
    tide_lock_drop(mail->world, mail->lock);
    return rc;
}

tide_status tide_mail_gate_run(tide_job *job, void *context, tide_error *err)
{
    const struct tide_mail_gate *gate = context;
    struct tide_mail_user *user = NULL;
    tide_status rc = tide_mail_user(gate->mail, tide_job_account(job), &user, err);
    if (rc == TIDE_OK)
        rc = identify(gate->mail, user, job, gate->each_job, err);
    /* The account was removed meanwhile: each handler deals with that itself. */
    if (rc != TIDE_OK && rc != TIDE_NOT_FOUND)
        return tide_mail_ended(gate->mail, job, rc, err);
    return gate->handler(job, gate->mail, err);
}
