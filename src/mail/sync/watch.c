/* watch.c - keeps Gmail publishing the changes of a mailbox to a topic (J4).
 *
 * A watch lasts seven days and costs 100 units.  The first plan of an account in this process
 * renews it, and later plans once a day.  It is set up before the history is read, so that a change is
 * in that history or is published.  A sync does not depend on it: a topic that Gmail refuses is
 * a notice for the user, and everything else is tried again with the next plan. */
#include "mail/inside.h"
#include "settings/settings.h"

#include <stdio.h>
#include <string.h>

enum { RENEW_MS = 24 * 3600 * 1000, REFUSED_MS = 3600 * 1000 };

static bool is_due(tide_mail *mail, const struct tide_mail_user *user, uint64_t now_ms)
{
    tide_lock_take(mail->world, mail->lock);
    const bool due = user->watch_due_ms == 0 || now_ms >= user->watch_due_ms;
    tide_lock_drop(mail->world, mail->lock);
    return due;
}

/* `refused` "": it publishes. */
static void remember(tide_mail *mail, struct tide_mail_user *user, uint64_t due_ms,
                     const char *refused)
{
    tide_lock_take(mail->world, mail->lock);
    user->watch_due_ms = due_ms;
    (void)snprintf(user->watch_refused, sizeof user->watch_refused, "%s", refused);
    tide_lock_drop(mail->world, mail->lock);
}

/* A notice of a loss is more important and stays. */
static void add_notice(tide_mail *mail, const struct tide_mail_user *user, const char *topic,
                       char notice[TIDE_MAIL_NOTICE_BYTES])
{
    tide_lock_take(mail->world, mail->lock);
    if (notice[0] == '\0' && user->watch_refused[0] != '\0')
        (void)snprintf(notice, TIDE_MAIL_NOTICE_BYTES, "no pushes to %.100s: %s", topic,
                       user->watch_refused);
    tide_lock_drop(mail->world, mail->lock);
}

static tide_status renew(tide_mail *mail, struct tide_mail_user *user, tide_job *job,
                         const char *topic, tide_error *err)
{
    tide_error why = {TIDE_OK, 0, ""};
    tide_status rc = TIDE_OK;
    do
        rc = tide_gmail_watch(user->gmail, job, topic, &why);
    while (tide_mail_wait(job, rc, TIDE_MAIL_WAIT_PACE_MS));
    const uint64_t now_ms = tide_world_now_ms(mail->world);
    switch (rc) {
    case TIDE_OK:
        remember(mail, user, now_ms + RENEW_MS, "");
        return TIDE_OK;
    case TIDE_GONE:
    case TIDE_PERMANENT:
        remember(mail, user, now_ms + REFUSED_MS, why.text);
        return TIDE_OK;
    case TIDE_AGAIN: /* no units now: mail goes first */
    case TIDE_NETWORK:
    case TIDE_SERVER:
    case TIDE_TIMEOUT:
    case TIDE_UNKNOWN:
        return TIDE_OK; /* with the next plan */
    default:            /* a refusal, the sign-in, a stop: they concern the whole job */
        if (err != NULL)
            *err = why;
        return rc;
    }
}

tide_status tide_mail_watch(tide_mail *mail, struct tide_mail_user *user, tide_job *job,
                            char notice[TIDE_MAIL_NOTICE_BYTES], tide_error *err)
{
    char topic[TIDE_SETTING_TEXT_BYTES];
    tide_engine_setting_text(mail->engine, user->account, TIDE_SET_MAIL_PUSH_TOPIC, topic,
                             sizeof topic);
    if (topic[0] == '\0')
        return TIDE_OK;
    tide_status rc = TIDE_OK;
    if (is_due(mail, user, tide_world_now_ms(mail->world)))
        rc = renew(mail, user, job, topic, err);
    add_notice(mail, user, topic, notice);
    return rc;
}
