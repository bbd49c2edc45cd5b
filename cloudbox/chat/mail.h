/* mail.h - what can be known about a mail by looking at its words.
 *
 * Finds a mail in a text (header lines and a body, or JSON with such fields),
 * and collects what a reader would note: who, what about, which kind of mail,
 * in which language, what is asked for.  Rules and word lists only; the same
 * text gives the same facts.  All texts are in the given arena or borrowed.
 */
#ifndef BOX_CHAT_MAIL_H
#define BOX_CHAT_MAIL_H

#include "base/mem.h"
#include "base/text.h"

#include <jansson.h>

enum {
    BOX_FACTS_LISTED_MAX = 8,        /* addresses, tasks, ... of each kind */
    BOX_FACTS_BYTES_MAX = 256 << 10, /* of text that is looked at */
    BOX_FACTS_SENTENCE_MAX = 240,
    BOX_FACTS_JSON_DEPTH_MAX = 8,
};

typedef enum box_mail_kind {
    BOX_MAIL_FYI,
    BOX_MAIL_REPLY,
    BOX_MAIL_ACTION,
    BOX_MAIL_PAYMENT,
    BOX_MAIL_WAITING,
    BOX_MAIL_NEWSLETTER,
    BOX_MAIL_NOTIFICATION,
    BOX_MAIL_PERSONAL,
    BOX_MAIL_MEETING,
    BOX_MAIL_URGENT,
    BOX_MAIL_SPAM,
    BOX_MAIL_KINDS,
} box_mail_kind;

struct box_text_list {
    tide_text items[BOX_FACTS_LISTED_MAX];
    size_t count;
};

struct box_facts {
    bool is_mail;
    tide_text around; /* what is not the mail: instructions; all of it without a mail */
    tide_text body;
    tide_text from; /* the whole header */
    tide_text name;
    tide_text email;
    tide_text to;
    tide_text subject;
    tide_text summary;    /* a sentence */
    const char *language; /* "en", "de", "cs", "fr", "es" */
    int scores[BOX_MAIL_KINDS];
    struct box_text_list emails;
    struct box_text_list urls;
    struct box_text_list dates; /* YYYY-MM-DD */
    struct box_text_list phones;
    struct box_text_list tasks; /* sentences that ask for something */
    struct box_text_list keywords;
    double amount;
    bool has_amount;
    const char *currency;
    bool automated; /* answers to it are not read */
};

/* `text` is terminated nowhere and borrowed. */
void box_facts_read(tide_text text, tide_arena *arena, struct box_facts *facts_out);

/* Fills the scores from the other facts; box_facts_read() has done it. */
void box_facts_judge(struct box_facts *facts);
/* The kind with the best score. */
box_mail_kind box_facts_kind(const struct box_facts *facts);
/* How well a name like "needs_response" or "Payment Requests" suits the mail;
 * -1: it names no kind. */
int box_facts_suit(const struct box_facts *facts, tide_text name);
const char *box_kind_name(box_mail_kind kind);

/* ---- small helpers around texts, without regard to ASCII case ---- */

bool box_text_has(tide_text text, const char *piece);
/* Whether the word stands alone in it. */
bool box_text_has_word(tide_text text, const char *word);
/* "messageId", "message-id" and "Message ID" all fold to "messageid"; cut at
 * the room.  Returns `out`. */
char *box_text_fold(tide_text text, char *out, size_t bytes);

#endif
