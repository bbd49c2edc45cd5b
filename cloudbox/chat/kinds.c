/* Which kind of mail it is: signs with weights, and the names people give to kinds. */
#include "cloudbox/chat/mail.h"

#include "base/check.h"

/* What makes a mail of a kind, and how much. */
static const struct {
    box_mail_kind kind;
    int weight;
    const char *piece;
} signs[] = {
    {BOX_MAIL_SPAM, 6, "lottery"},
    {BOX_MAIL_SPAM, 6, "claim your prize"},
    {BOX_MAIL_SPAM, 6, "inheritance"},
    {BOX_MAIL_SPAM, 6, "casino"},
    {BOX_MAIL_SPAM, 6, "viagra"},
    {BOX_MAIL_SPAM, 5, "you have won"},
    {BOX_MAIL_SPAM, 5, "crypto investment"},
    {BOX_MAIL_PAYMENT, 6, "invoice"},
    {BOX_MAIL_PAYMENT, 6, "faktur"},
    {BOX_MAIL_PAYMENT, 6, "rechnung"},
    {BOX_MAIL_PAYMENT, 5, "payment due"},
    {BOX_MAIL_PAYMENT, 5, "amount due"},
    {BOX_MAIL_PAYMENT, 5, "payment reminder"},
    {BOX_MAIL_PAYMENT, 4, "iban"},
    {BOX_MAIL_PAYMENT, 4, "overdue"},
    {BOX_MAIL_PAYMENT, 4, "please pay"},
    {BOX_MAIL_PAYMENT, 4, "zaplat"},
    {BOX_MAIL_PAYMENT, 4, "splatnost"},
    {BOX_MAIL_PAYMENT, 3, "bank transfer"},
    {BOX_MAIL_NEWSLETTER, 7, "newsletter"},
    {BOX_MAIL_NEWSLETTER, 5, "unsubscribe"},
    {BOX_MAIL_NEWSLETTER, 5, "view in browser"},
    {BOX_MAIL_NEWSLETTER, 5, "abmelden"},
    {BOX_MAIL_NEWSLETTER, 5, "odhlásit"},
    {BOX_MAIL_NEWSLETTER, 4, "% off"},
    {BOX_MAIL_NEWSLETTER, 4, "sale ends"},
    {BOX_MAIL_NEWSLETTER, 3, "weekly digest"},
    {BOX_MAIL_NOTIFICATION, 6, "do not reply"},
    {BOX_MAIL_NOTIFICATION, 5, "automated message"},
    {BOX_MAIL_NOTIFICATION, 5, "automatically generated"},
    {BOX_MAIL_NOTIFICATION, 5, "has been shipped"},
    {BOX_MAIL_NOTIFICATION, 5, "verification code"},
    {BOX_MAIL_NOTIFICATION, 5, "password reset"},
    {BOX_MAIL_NOTIFICATION, 4, "security alert"},
    {BOX_MAIL_NOTIFICATION, 4, "build failed"},
    {BOX_MAIL_NOTIFICATION, 4, "delivery status"},
    {BOX_MAIL_NOTIFICATION, 3, "your order"},
    {BOX_MAIL_ACTION, 6, "action required"},
    {BOX_MAIL_ACTION, 5, "please sign"},
    {BOX_MAIL_ACTION, 5, "deadline"},
    {BOX_MAIL_ACTION, 4, "please complete"},
    {BOX_MAIL_ACTION, 4, "please fill"},
    {BOX_MAIL_ACTION, 4, "please submit"},
    {BOX_MAIL_ACTION, 4, "please approve"},
    {BOX_MAIL_ACTION, 4, "fill in the form"},
    {BOX_MAIL_ACTION, 4, "vyplňte"},
    {BOX_MAIL_ACTION, 4, "podepište"},
    {BOX_MAIL_ACTION, 3, "before friday"},
    {BOX_MAIL_REPLY, 5, "could you"},
    {BOX_MAIL_REPLY, 5, "can you"},
    {BOX_MAIL_REPLY, 5, "let me know"},
    {BOX_MAIL_REPLY, 5, "please reply"},
    {BOX_MAIL_REPLY, 5, "what do you think"},
    {BOX_MAIL_REPLY, 4, "would you"},
    {BOX_MAIL_REPLY, 4, "are you available"},
    {BOX_MAIL_REPLY, 4, "looking forward to hearing"},
    {BOX_MAIL_REPLY, 4, "můžete"},
    {BOX_MAIL_REPLY, 4, "dejte vědět"},
    {BOX_MAIL_REPLY, 4, "könnten sie"},
    {BOX_MAIL_REPLY, 3, "?"},
    {BOX_MAIL_WAITING, 6, "will get back to you"},
    {BOX_MAIL_WAITING, 6, "i'll get back"},
    {BOX_MAIL_WAITING, 6, "out of office"},
    {BOX_MAIL_WAITING, 5, "we received your request"},
    {BOX_MAIL_WAITING, 5, "we are looking into"},
    {BOX_MAIL_WAITING, 5, "ozveme se"},
    {BOX_MAIL_WAITING, 5, "melden uns"},
    {BOX_MAIL_URGENT, 5, "urgent"},
    {BOX_MAIL_URGENT, 5, "asap"},
    {BOX_MAIL_URGENT, 5, "as soon as possible"},
    {BOX_MAIL_URGENT, 5, "immediately"},
    {BOX_MAIL_URGENT, 5, "emergency"},
    {BOX_MAIL_URGENT, 5, "dringend"},
    {BOX_MAIL_URGENT, 5, "naléhav"},
    {BOX_MAIL_URGENT, 4, "lawyer"},
    {BOX_MAIL_URGENT, 4, "complaint"},
    {BOX_MAIL_PERSONAL, 4, "birthday"},
    {BOX_MAIL_PERSONAL, 4, "hugs"},
    {BOX_MAIL_PERSONAL, 4, "dinner"},
    {BOX_MAIL_PERSONAL, 3, "weekend"},
    {BOX_MAIL_PERSONAL, 3, "holiday photos"},
    {BOX_MAIL_PERSONAL, 3, "mum and dad"},
    {BOX_MAIL_MEETING, 4, "meeting"},
    {BOX_MAIL_MEETING, 4, "calendar invit"},
    {BOX_MAIL_MEETING, 3, "schedule a call"},
    {BOX_MAIL_FYI, 6, "for your information"},
    {BOX_MAIL_FYI, 6, "no action needed"},
    {BOX_MAIL_FYI, 6, "no reply needed"},
    {BOX_MAIL_FYI, 5, "just to let you know"},
    {BOX_MAIL_FYI, 4, "fyi"},
};

static bool sender_is_automatic(tide_text email)
{
    static const char *const names[] = {"noreply",      "no-reply", "mailer-daemon", "postmaster",
                                        "notification", "bounce",   "donotreply",    NULL};
    for (size_t i = 0; names[i] != NULL; i++)
        if (box_text_has(email, names[i]))
            return true;
    return false;
}

void box_facts_judge(struct box_facts *facts)
{
    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++) {
        const int hits = (box_text_has(facts->subject, signs[i].piece) ? 2 : 0) +
                         (box_text_has(facts->body, signs[i].piece) ? 1 : 0);
        facts->scores[signs[i].kind] += signs[i].weight * hits;
    }
    if (sender_is_automatic(facts->email))
        facts->scores[BOX_MAIL_NOTIFICATION] += 6;
    facts->automated = facts->scores[BOX_MAIL_NEWSLETTER] >= 5 ||
                       facts->scores[BOX_MAIL_NOTIFICATION] >= 5 ||
                       facts->scores[BOX_MAIL_SPAM] >= 5;
    if (facts->automated)
        facts->scores[BOX_MAIL_REPLY] /= 4;
    /* Mail that needs no answer is information, if no better kind fits. */
    int *fyi = &facts->scores[BOX_MAIL_FYI];
    static const box_mail_kind quiet[] = {BOX_MAIL_NEWSLETTER, BOX_MAIL_NOTIFICATION,
                                          BOX_MAIL_SPAM};
    for (size_t i = 0; i < 3; i++)
        if (facts->scores[quiet[i]] - 1 > *fyi)
            *fyi = facts->scores[quiet[i]] - 1;
    if (*fyi == 0)
        *fyi = 1;
    /* Friends and people who want to meet expect an answer, an emergency an act. */
    static const box_mail_kind social[] = {BOX_MAIL_PERSONAL, BOX_MAIL_MEETING};
    for (size_t i = 0; i < 2; i++)
        if (!facts->automated && facts->scores[social[i]] - 1 > facts->scores[BOX_MAIL_REPLY])
            facts->scores[BOX_MAIL_REPLY] = facts->scores[social[i]] - 1;
    if (facts->scores[BOX_MAIL_URGENT] - 2 > facts->scores[BOX_MAIL_ACTION])
        facts->scores[BOX_MAIL_ACTION] = facts->scores[BOX_MAIL_URGENT] - 2;
}

box_mail_kind box_facts_kind(const struct box_facts *facts)
{
    box_mail_kind best = BOX_MAIL_FYI;
    for (box_mail_kind kind = 0; kind < BOX_MAIL_KINDS; kind++)
        if (facts->scores[kind] > facts->scores[best])
            best = kind;
    return best;
}

/* Names of categories as people choose them. */
static const struct {
    const char *folded;
    box_mail_kind kind;
} synonyms[] = {
    {"needsresponse", BOX_MAIL_REPLY},
    {"needsreply", BOX_MAIL_REPLY},
    {"toreply", BOX_MAIL_REPLY},
    {"respond", BOX_MAIL_REPLY},
    {"response", BOX_MAIL_REPLY},
    {"reply", BOX_MAIL_REPLY},
    {"question", BOX_MAIL_REPLY},
    {"support", BOX_MAIL_REPLY},
    {"actionrequired", BOX_MAIL_ACTION},
    {"action", BOX_MAIL_ACTION},
    {"task", BOX_MAIL_ACTION},
    {"todo", BOX_MAIL_ACTION},
    {"paymentrequest", BOX_MAIL_PAYMENT},
    {"payment", BOX_MAIL_PAYMENT},
    {"invoice", BOX_MAIL_PAYMENT},
    {"bill", BOX_MAIL_PAYMENT},
    {"finance", BOX_MAIL_PAYMENT},
    {"receipt", BOX_MAIL_PAYMENT},
    {"waiting", BOX_MAIL_WAITING},
    {"awaiting", BOX_MAIL_WAITING},
    {"followup", BOX_MAIL_WAITING},
    {"pending", BOX_MAIL_WAITING},
    {"newsletter", BOX_MAIL_NEWSLETTER},
    {"marketing", BOX_MAIL_NEWSLETTER},
    {"promotion", BOX_MAIL_NEWSLETTER},
    {"promo", BOX_MAIL_NEWSLETTER},
    {"bulk", BOX_MAIL_NEWSLETTER},
    {"notification", BOX_MAIL_NOTIFICATION},
    {"automated", BOX_MAIL_NOTIFICATION},
    {"alert", BOX_MAIL_NOTIFICATION},
    {"update", BOX_MAIL_NOTIFICATION},
    {"personal", BOX_MAIL_PERSONAL},
    {"social", BOX_MAIL_PERSONAL},
    {"private", BOX_MAIL_PERSONAL},
    {"family", BOX_MAIL_PERSONAL},
    {"friend", BOX_MAIL_PERSONAL},
    {"meeting", BOX_MAIL_MEETING},
    {"calendar", BOX_MAIL_MEETING},
    {"event", BOX_MAIL_MEETING},
    {"urgent", BOX_MAIL_URGENT},
    {"critical", BOX_MAIL_URGENT},
    {"important", BOX_MAIL_URGENT},
    {"emergency", BOX_MAIL_URGENT},
    {"spam", BOX_MAIL_SPAM},
    {"junk", BOX_MAIL_SPAM},
    {"phishing", BOX_MAIL_SPAM},
    {"scam", BOX_MAIL_SPAM},
    {"fyi", BOX_MAIL_FYI},
    {"information", BOX_MAIL_FYI},
    {"informational", BOX_MAIL_FYI},
    {"info", BOX_MAIL_FYI},
    {"other", BOX_MAIL_FYI},
    {"none", BOX_MAIL_FYI},
    {"noaction", BOX_MAIL_FYI},
};

int box_facts_suit(const struct box_facts *facts, tide_text name)
{
    char folded[64];
    box_text_fold(name, folded, sizeof folded);
    const size_t bytes = strlen(folded);
    if (bytes > 0 && folded[bytes - 1] == 's' && strcmp(folded, "needsresponses") != 0)
        folded[bytes - 1] = '\0'; /* "invoices" */
    int best = -1;
    for (size_t i = 0; i < sizeof synonyms / sizeof synonyms[0]; i++) {
        char word[64];
        box_text_fold(tide_text_of(synonyms[i].folded), word, sizeof word);
        const bool whole = strcmp(folded, word) == 0;
        /* "needs_urgent_reply" has the words, but "whole" names are meant first. */
        const bool piece = !whole && strlen(word) >= 4 && strstr(folded, word) != NULL;
        if (whole)
            return facts->scores[synonyms[i].kind] * 2 + 1;
        if (piece && facts->scores[synonyms[i].kind] * 2 > best)
            best = facts->scores[synonyms[i].kind] * 2;
    }
    return best;
}

const char *box_kind_name(box_mail_kind kind)
{
    static const char *const names[BOX_MAIL_KINDS] = {
        "fyi",        "needs_response", "action_required", "payment_request", "waiting",
        "newsletter", "notification",   "personal",        "meeting",         "urgent",
        "spam"};
    TIDE_ASSERT(kind < BOX_MAIL_KINDS);
    return names[kind];
}
