/* text.h - what generated mail says, and who says it.
 *
 * Private to generate*.c.  Tables only: people, topics, notices and sentences
 * in seven languages.  A text may contain slots, written {x}, that the
 * renderer fills from the message's own numbers:
 *
 *   {m} the owner's first name   {f} the other one's first name
 *   {p} a project                {c} a company            {v} a city
 *   {d} a date some days later   {w} its weekday          {t} a time of day
 *   {a} an amount                {i} an invoice number    {o} an order number
 *   {k} a tracking number        {r} a six-digit code     {q} a small number
 *   {y} a repository             {z} a source file        {b} a product
 *   {e} the owner's address      {h} sixteen hex digits   {D} the date of sending
 *
 * Invariants:
 *   BTXT1  German, French and Spanish texts fit ISO 8859-1, Russian ones windows-1251 and KOI8-R,
 *          Japanese ones Shift JIS, English ones ASCII.
 *   BTXT2  no text contains < > & or ", so it can stand in HTML as it is.
 *   BTXT3  a text without its slots filled is shorter than BOX_TEXT_BYTES_MAX.
 */
#ifndef BOX_GENERATE_TEXT_H
#define BOX_GENERATE_TEXT_H

#include <stddef.h>
#include <stdint.h>

enum {
    BOX_TEXT_BYTES_MAX = 700,
    BOX_TOPIC_PARAGRAPHS = 3,
    BOX_TOPIC_REPLIES = 6,
    BOX_NOTICE_PARAGRAPHS = 6,
};

typedef enum box_lang {
    BOX_EN,
    BOX_DE,
    BOX_FR,
    BOX_ES,
    BOX_JA,
    BOX_RU,
    BOX_AR,
    BOX_LANGS,
} box_lang;

/* What sort of message it is; the first three come as threads. */
typedef enum box_kind {
    BOX_TALK,
    BOX_REVIEW,
    BOX_FORUM,
    BOX_NEWSLETTER,
    BOX_SOCIAL,
    BOX_RECEIPT,
    BOX_SHIPPING,
    BOX_SECURITY,
    BOX_INVOICE,
    BOX_STATEMENT,
    BOX_INVITE,
    BOX_TRAVEL,
    BOX_PHOTOS,
    BOX_FORWARD,
    BOX_REPORT,
    BOX_SPAM,
    BOX_KINDS,
} box_kind;

struct box_person {
    const char *name;  /* as it is written */
    const char *local; /* of the address, ASCII */
};

struct box_topic {
    const char *subject;
    const char *opening[BOX_TOPIC_PARAGRAPHS];
    const char *replies[BOX_TOPIC_REPLIES];
};

struct box_notice {
    box_kind kind;
    box_lang lang;
    const char *from;   /* display name */
    const char *local;  /* of the address */
    const char *domain; /* of the address */
    const char *subject;
    const char *paragraphs[BOX_NOTICE_PARAGRAPHS];
};

/* One language. */
struct box_tongue {
    const struct box_person *people;
    size_t people_count;
    const struct box_topic *topics[3]; /* by BOX_TALK, BOX_REVIEW, BOX_FORUM */
    size_t topics_count[3];
    const char *const *sentences; /* that fit below most mail */
    size_t sentences_count;
    const char *const *print; /* the small print of companies */
    size_t print_count;
    const char *const *articles; /* what newsletters are made of */
    size_t articles_count;
    const char *hello;       /* before the name of the one addressed */
    const char *bye;         /* the sender's name follows on a line of its own */
    const char *wrote;       /* before a quotation, after the name */
    const char *weekdays[7]; /* from Sunday */
};

const struct box_tongue *box_tongue(box_lang lang);
/* All notices; kinds stand together. */
const struct box_notice *box_notices(size_t *count_out);
const char *box_project(uint64_t hash);
const char *box_company(uint64_t hash);
const char *box_city(uint64_t hash);
const char *box_product(uint64_t hash);
const char *box_repository(uint64_t hash);
const char *box_source(uint64_t hash);
const char *box_domain(uint64_t hash); /* a mail domain, all below .example */

/* The tables of the other languages. */
extern const struct box_tongue box_tongue_de, box_tongue_fr, box_tongue_es, box_tongue_ja,
    box_tongue_ru, box_tongue_ar;

#endif
