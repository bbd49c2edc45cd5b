#include "assistant/text/crisp.h"

#include "assistant/match/fold.h"
#include "mail/compose/mailbox.h"
#include "assistant/text/quote.h"
#include "mail/mime/charset.h"

enum { LABELS_LINES_MAX = 40, VALUE_BYTES_MAX = 300 };

typedef enum label { LABEL_NONE, LABEL_NAME, LABEL_ADDRESS, LABEL_MESSAGE, LABEL_OTHER } label;

struct known {
    const char *word;
    label label;
};

/* Czech words also without their accents, as forms are often written. */
static const struct known words[] = {
    {"from", LABEL_NAME},
    {"name", LABEL_NAME},
    {"customer", LABEL_NAME},
    {"visitor", LABEL_NAME},
    {"od", LABEL_NAME},
    {"jm\xc3\xa9no", LABEL_NAME},
    {"jmeno", LABEL_NAME},
    {"z\xc3\xa1kazn\xc3\xadk", LABEL_NAME},
    {"zakaznik", LABEL_NAME},
    {"n\xc3\xa1v\xc5\xa1t\xc4\x9bvn\xc3\xadk", LABEL_NAME},
    {"navstevnik", LABEL_NAME},
    {"email", LABEL_ADDRESS},
    {"e-mail", LABEL_ADDRESS},
    {"reply-to", LABEL_ADDRESS},
    {"message", LABEL_MESSAGE},
    {"zpr\xc3\xa1va", LABEL_MESSAGE},
    {"zprava", LABEL_MESSAGE},
    {"dotaz", LABEL_MESSAGE},
    {"subject", LABEL_OTHER},
    {"p\xc5\x99"
     "edm\xc4\x9bt",
     LABEL_OTHER},
    {"predmet", LABEL_OTHER},
    {"phone", LABEL_OTHER},
    {"telefon", LABEL_OTHER},
    {"page", LABEL_OTHER},
    {"str\xc3\xa1nka", LABEL_OTHER},
    {"stranka", LABEL_OTHER},
    {"date", LABEL_OTHER},
    {"datum", LABEL_OTHER},
    {"to", LABEL_OTHER},
    {"komu", LABEL_OTHER},
};

/* "Jméno: Jana Nováková"; the colon is among the first bytes of the line. */
static label label_of(tide_text line, tide_text *value_out)
{
    const char *colon = line.bytes == 0 ? NULL : memchr(line.data, ':', line.bytes);
    if (colon == NULL)
        return LABEL_NONE;
    const tide_text word = tide_text_trimmed((tide_text){line.data, (size_t)(colon - line.data)});
    for (size_t i = 0; word.bytes <= 24 && i < sizeof words / sizeof words[0]; i++) {
        if (!tide_fold_equal(word, tide_text_of(words[i].word)))
            continue;
        *value_out =
            tide_text_trimmed((tide_text){colon + 1, line.bytes - (size_t)(colon + 1 - line.data)});
        return words[i].label;
    }
    return LABEL_NONE;
}

/* A line of at least three '-', '=' or '_', and nothing else. */
static bool is_separator(tide_text line)
{
    for (size_t i = 1; i < line.bytes; i++)
        if (line.data[i] != line.data[0])
            return false;
    return line.bytes >= 3 && strchr("-=_", line.data[0]) != NULL;
}

/* "Jana Nováková <jana@example.cz>", or either of them. */
static void take_person(tide_text value, struct tide_crisp *crisp)
{
    const struct tide_mailbox mailbox = tide_mailbox_first(value);
    const tide_text name = mailbox.address.bytes > 0 ? mailbox.name : value;
    if (crisp->name.bytes == 0 && name.bytes > 0 && name.bytes <= VALUE_BYTES_MAX)
        crisp->name = name;
    if (crisp->address.bytes == 0)
        crisp->address = mailbox.address;
}

static void take_address(tide_text value, struct tide_crisp *crisp)
{
    size_t at = 0;
    tide_text address = TIDE_TEXT("");
    if (crisp->address.bytes == 0 && tide_mailbox_find(value, &at, &address))
        crisp->address = address;
}

/* Reads the labels at the front.  What is left in *rest_io is the message. */
static void read_labels(tide_text *rest_io, struct tide_crisp *crisp)
{
    bool labelled = false;
    for (unsigned lines = 0; rest_io->bytes > 0 && lines < LABELS_LINES_MAX; lines++) {
        const tide_text before = *rest_io;
        const tide_text line = tide_text_trimmed(tide_text_line(rest_io));
        tide_text value = TIDE_TEXT("");
        const label known = label_of(line, &value);
        if (known == LABEL_NAME)
            take_person(value, crisp);
        else if (known == LABEL_ADDRESS)
            take_address(value, crisp);
        if (known == LABEL_MESSAGE && value.bytes > 0) { /* it begins in this line */
            *rest_io = (tide_text){value.data, (size_t)(before.data + before.bytes - value.data)};
            return;
        }
        labelled = labelled || (known != LABEL_NONE && known != LABEL_MESSAGE);
        if (known == LABEL_MESSAGE || (labelled && is_separator(line)))
            return;
        if (labelled && line.bytes > 0 && known == LABEL_NONE) { /* the message, without a label */
            *rest_io = before;
            return;
        }
    }
}

/* The address that a header names, in the order in which it is trusted. */
static tide_text address_of_headers(const struct tide_letter *letter)
{
    size_t cursor = 0;
    tide_text value = TIDE_TEXT("");
    tide_text address = tide_mailbox_first(letter->reply_to).address;
    if (address.bytes == 0 && tide_letter_header(letter, "X-Forwarded-From", &cursor, &value))
        address = tide_mailbox_first(value).address;
    return address;
}

void tide_crisp_read(const struct tide_letter *letter, struct tide_crisp *crisp_out)
{
    struct tide_crisp crisp = {.name = TIDE_TEXT(""), .address = TIDE_TEXT("")};
    tide_text rest = letter->text;
    read_labels(&rest, &crisp);
    if (crisp.address.bytes == 0 && crisp.name.bytes > 0)
        crisp.address = address_of_headers(letter);
    crisp.message = tide_text_trimmed(rest);
    crisp.recognized = crisp.message.bytes > 0 && (crisp.name.bytes > 0 || crisp.address.bytes > 0);
    if (!crisp.recognized)
        crisp = (struct tide_crisp){
            .name = TIDE_TEXT(""), .address = TIDE_TEXT(""), .message = letter->text};
    *crisp_out = crisp;
}
