#include "cloudbox/chat/mail.h"

#include "base/check.h"
#include "cloudbox/gate/http.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

/* ---- texts ---- */

/* At most so many bytes of a text, and never a null one: it is walked with pointers. */
static tide_text cut(tide_text text, size_t bytes_max)
{
    if (text.bytes <= bytes_max)
        return text.data == NULL ? TIDE_TEXT("") : text;
    while (bytes_max > 0 && ((unsigned char)text.data[bytes_max] & 0xc0) == 0x80)
        bytes_max--; /* not inside a character */
    return (tide_text){text.data, bytes_max};
}

static const char *find(tide_text text, const char *piece)
{
    const size_t bytes = strlen(piece);
    for (size_t i = 0; bytes > 0 && i + bytes <= text.bytes; i++)
        if (tolower((unsigned char)text.data[i]) == tolower((unsigned char)piece[0]) &&
            strncasecmp(text.data + i, piece, bytes) == 0)
            return text.data + i;
    return NULL;
}

bool box_text_has(tide_text text, const char *piece)
{
    return find(text, piece) != NULL;
}

static bool is_word_byte(char c)
{
    return isalnum((unsigned char)c) || ((unsigned char)c & 0x80) != 0;
}

bool box_text_has_word(tide_text text, const char *word)
{
    const size_t bytes = strlen(word);
    const char *end = text.data + text.bytes;
    while (text.bytes >= bytes) {
        const char *at = find(text, word);
        if (at == NULL)
            return false;
        const bool left = at == text.data || !is_word_byte(at[-1]);
        const bool right = at + bytes == end || !is_word_byte(at[bytes]);
        if (left && right)
            return true;
        text = (tide_text){at + 1, (size_t)(end - at) - 1};
    }
    return false;
}

char *box_text_fold(tide_text text, char *out, size_t bytes)
{
    size_t at = 0;
    for (size_t i = 0; i < text.bytes && at + 1 < bytes; i++)
        if (isalnum((unsigned char)text.data[i]))
            out[at++] = (char)tolower((unsigned char)text.data[i]);
    out[at] = '\0';
    return out;
}

static void list_add(struct box_text_list *list, tide_text text)
{
    if (list->count == BOX_FACTS_LISTED_MAX || text.bytes == 0)
        return;
    for (size_t i = 0; i < list->count; i++)
        if (tide_text_equal(list->items[i], text))
            return;
    list->items[list->count++] = text;
}

static tide_text copy(tide_arena *arena, tide_text text)
{
    const char *data = tide_arena_copy(arena, text.data == NULL ? "" : text.data, text.bytes);
    TIDE_ASSERT(data != NULL);
    return (tide_text){data, text.bytes};
}

/* ---- finding the mail ---- */

/* Takes "Name: value"; `Name` may be decorated as in "**From:**" or "- From:". */
static bool header_take(tide_text line, const char *name, tide_text *value_out)
{
    while (line.bytes > 0 && strchr("*-># \t", line.data[0]) != NULL) {
        line.data++;
        line.bytes--;
    }
    const size_t bytes = strlen(name);
    if (!box_starts(line, name) || line.bytes <= bytes || line.data[bytes] != ':')
        return false;
    tide_text value = {line.data + bytes + 1, line.bytes - bytes - 1};
    while (value.bytes > 0 && strchr("* \t", value.data[0]) != NULL) {
        value.data++;
        value.bytes--;
    }
    *value_out = box_trim(value, BOX_SPACES);
    return true;
}

/* Header lines anywhere in the text; the body follows the blank line behind
 * the last of them, or a "Body:" line. */
static bool mail_from_lines(tide_text text, struct box_facts *facts)
{
    tide_text rest = text;
    tide_text line;
    const char *first = NULL;
    bool blank_seen = false;
    facts->body = TIDE_TEXT_NONE;
    while (box_line_next(&rest, &line)) {
        tide_text value;
        const bool header =
            (header_take(line, "From", &facts->from) || header_take(line, "Sender", &facts->from) ||
             header_take(line, "Subject", &facts->subject) || header_take(line, "To", &facts->to) ||
             header_take(line, "Date", &value));
        if (header && first == NULL)
            first = line.data;
        if (header_take(line, "Body", &value) || header_take(line, "Content", &value)) {
            if (first == NULL)
                first = line.data;
            facts->body = (tide_text){value.data, (size_t)(text.data + text.bytes - value.data)};
            break;
        }
        if (first != NULL && !header && box_trim(line, BOX_SPACES).bytes == 0)
            blank_seen = true;
        if (blank_seen && (facts->from.bytes > 0 || facts->subject.bytes > 0)) {
            facts->body = rest;
            break;
        }
    }
    if (facts->from.bytes == 0 && (facts->subject.bytes == 0 || facts->body.bytes == 0))
        return false;
    facts->around = (tide_text){text.data, (size_t)(first - text.data)};
    facts->body = box_trim(facts->body, BOX_SPACES);
    return true;
}

/* The first of some keys anywhere in the value. */
static tide_text json_find(const json_t *value, const char *const *keys, int depth)
{
    if (depth > BOX_FACTS_JSON_DEPTH_MAX)
        return TIDE_TEXT_NONE;
    if (json_is_object(value)) {
        const char *key = NULL;
        json_t *item = NULL;
        for (size_t k = 0; keys[k] != NULL; k++)
            json_object_foreach((json_t *)(uintptr_t)value, key, item)
            {
                char folded[40];
                box_text_fold(tide_text_of(key), folded, sizeof folded);
                if (strcmp(folded, keys[k]) == 0 && json_is_string(item))
                    return (tide_text){json_string_value(item), json_string_length(item)};
            }
        json_object_foreach((json_t *)(uintptr_t)value, key, item)
        {
            const tide_text found = json_find(item, keys, depth + 1);
            if (found.data != NULL)
                return found;
        }
    }
    if (json_is_array(value))
        for (size_t i = 0; i < json_array_size(value) && i < 100; i++) {
            const tide_text found = json_find(json_array_get(value, i), keys, depth + 1);
            if (found.data != NULL)
                return found;
        }
    return TIDE_TEXT_NONE;
}

static bool mail_from_json(tide_text text, tide_arena *arena, struct box_facts *facts)
{
    static const char *const from[] = {"from", "sender", "fromemail", "senderemail", NULL};
    static const char *const subject[] = {"subject", "title", NULL};
    static const char *const body[] = {"body",    "text",    "plain", "content",
                                       "snippet", "message", NULL};
    static const char *const to[] = {"to", "recipient", NULL};
    const char *open = text.bytes == 0 ? NULL : memchr(text.data, '{', text.bytes);
    for (int tries = 0; open != NULL && tries < 8; tries++) {
        const size_t left = text.bytes - (size_t)(open - text.data);
        json_error_t error;
        json_t *value = json_loadb(open, left, JSON_DISABLE_EOF_CHECK, &error);
        if (value != NULL) {
            facts->from = copy(arena, json_find(value, from, 0));
            facts->subject = copy(arena, json_find(value, subject, 0));
            facts->body = copy(arena, json_find(value, body, 0));
            facts->to = copy(arena, json_find(value, to, 0));
            json_decref(value);
            if (facts->from.bytes > 0 || (facts->subject.bytes > 0 && facts->body.bytes > 0)) {
                facts->around = (tide_text){text.data, (size_t)(open - text.data)};
                return true;
            }
        }
        open = memchr(open + 1, '{', left - 1);
    }
    facts->from = facts->subject = facts->to = facts->body = TIDE_TEXT_NONE;
    return false;
}

/* ---- noting what stands in it ---- */

static bool is_address_byte(char c)
{
    return isalnum((unsigned char)c) || strchr("._%+-", c) != NULL;
}

static void note_addresses(tide_text text, struct box_facts *facts)
{
    for (size_t i = 1; i + 1 < text.bytes; i++) {
        if (text.data[i] != '@')
            continue;
        size_t from = i;
        size_t to = i + 1;
        while (from > 0 && text.data[from - 1] != '\0' && is_address_byte(text.data[from - 1]))
            from--;
        while (
            to < text.bytes && text.data[to] != '\0' &&
            (isalnum((unsigned char)text.data[to]) || text.data[to] == '.' || text.data[to] == '-'))
            to++;
        while (to > i + 1 && !isalnum((unsigned char)text.data[to - 1]))
            to--;
        if (from < i && memchr(text.data + i, '.', to - i) != NULL)
            list_add(&facts->emails, (tide_text){text.data + from, to - from});
    }
}

static void note_links(tide_text text, struct box_facts *facts)
{
    const char *end = text.data + text.bytes;
    while (text.bytes > 8) {
        const char *at = find(text, "http");
        if (at == NULL)
            return;
        size_t bytes = 0;
        while (at + bytes < end && (unsigned char)at[bytes] > ' ' &&
               (unsigned char)at[bytes] < 0x7f && strchr("<>\"')]}\\", at[bytes]) == NULL)
            bytes++;
        while (bytes > 0 && strchr(".,;!?", at[bytes - 1]) != NULL)
            bytes--;
        const tide_text url = {at, bytes};
        if ((box_starts(url, "http://") && bytes > 7) || (box_starts(url, "https://") && bytes > 8))
            list_add(&facts->urls, url);
        text = (tide_text){at + 4, (size_t)(end - at) - 4};
    }
}

static void note_numbers(tide_text text, tide_arena *arena, struct box_facts *facts)
{
    for (size_t i = 0; i < text.bytes; i++) {
        const char *at = text.data + i;
        const size_t left = text.bytes - i;
        if (i > 0 && (isalnum((unsigned char)at[-1]) || at[-1] == '-'))
            continue;
        int year = 0, month = 0, day = 0, used = 0;
        char piece[32];
        (void)snprintf(piece, sizeof piece, "%.*s", (int)(left < 20 ? left : 20), at);
        if (isdigit((unsigned char)at[0])) {
            const bool iso = sscanf(piece, "%4d-%2d-%2d%n", &year, &month, &day, &used) == 3;
            const bool dots =
                !iso && sscanf(piece, "%2d.%*[ ]%2d.%*[ ]%4d%n", &day, &month, &year, &used) == 3;
            const bool tight =
                !iso && !dots && sscanf(piece, "%2d.%2d.%4d%n", &day, &month, &year, &used) == 3;
            if ((iso || dots || tight) && year >= 1990 && year < 2100 && month >= 1 &&
                month <= 12 && day >= 1 && day <= 28 + (month == 2 ? 0 : 2)) {
                char date[40];
                (void)snprintf(date, sizeof date, "%04d-%02d-%02d", year, month, day);
                list_add(&facts->dates, copy(arena, tide_text_of(date)));
                i += (size_t)used;
                continue;
            }
        }
        if (at[0] == '+' && left > 8 && isdigit((unsigned char)at[1])) {
            size_t bytes = 1;
            size_t digits = 0;
            while (bytes < left && (isdigit((unsigned char)at[bytes]) || at[bytes] == ' ')) {
                digits += isdigit((unsigned char)at[bytes]) ? 1 : 0;
                bytes++;
            }
            if (digits >= 8)
                list_add(&facts->phones, box_trim((tide_text){at, bytes}, BOX_SPACES));
            i += bytes;
        }
    }
}

/* "EUR 1,250.00", "1 250 Kč", "$99": the number next to a currency. */
static void note_amount(tide_text text, struct box_facts *facts)
{
    static const struct {
        const char *sign;
        const char *code;
    } currencies[] = {{"EUR", "EUR"}, {"€", "EUR"},  {"USD", "USD"}, {"$", "USD"},
                      {"CZK", "CZK"}, {"Kč", "CZK"}, {"GBP", "GBP"}, {"£", "GBP"}};
    for (size_t i = 0; i < sizeof currencies / sizeof currencies[0]; i++) {
        const char *at = find(text, currencies[i].sign);
        if (at == NULL)
            continue;
        const char *end = text.data + text.bytes;
        const char *from = at + strlen(currencies[i].sign);
        while (from < end && *from == ' ')
            from++;
        if (from == end || !isdigit((unsigned char)*from)) { /* then before the sign */
            from = at;
            while (from > text.data &&
                   (isdigit((unsigned char)from[-1]) || strchr(" .,", from[-1]) != NULL))
                from--;
            end = at;
        }
        char number[32];
        size_t count = 0;
        for (; from < end && count + 1 < sizeof number; from++) {
            if (isdigit((unsigned char)*from))
                number[count++] = *from;
            else if ((*from == '.' || *from == ',') && end - from > 2 && count > 0 &&
                     isdigit((unsigned char)from[1]) && isdigit((unsigned char)from[2]) &&
                     (end - from == 3 || !isdigit((unsigned char)from[3])))
                number[count++] = '.';
            else if (strchr(" .,", *from) == NULL)
                break;
        }
        number[count] = '\0';
        if (count > 0) {
            facts->amount = strtod(number, NULL);
            facts->has_amount = true;
            facts->currency = currencies[i].code;
            return;
        }
    }
}

static bool is_greeting(tide_text sentence)
{
    static const char *const words[] = {
        "hi",    "hello",     "dear", "good morning", "hey",     "hallo", "sehr geehrte",
        "liebe", "dobrý den", "ahoj", "vážen",        "bonjour", "hola",  NULL};
    for (size_t i = 0; words[i] != NULL; i++)
        if (box_starts(sentence, words[i]) && sentence.bytes < 40)
            return true;
    return false;
}

static bool asks(tide_text sentence)
{
    static const char *const words[] = {"please",      "could you",   "can you",      "would you",
                                        "let me know", "need you to", "don't forget", "make sure",
                                        "remember to", "prosím",      "můžete",       "mohl",
                                        "bitte",       "könnten",     "pouvez",       NULL};
    if (memchr(sentence.data, '?', sentence.bytes) != NULL)
        return true;
    for (size_t i = 0; words[i] != NULL; i++)
        if (box_text_has(sentence, words[i]))
            return true;
    return false;
}

static void note_sentences(tide_text text, struct box_facts *facts)
{
    size_t from = 0;
    for (size_t i = 0; i <= text.bytes; i++) {
        const bool end = i == text.bytes || text.data[i] == '\n' ||
                         (strchr(".!?", text.data[i]) != NULL && text.data[i] != '\0' &&
                          (i + 1 == text.bytes || isspace((unsigned char)text.data[i + 1])));
        if (!end)
            continue;
        const size_t to = i < text.bytes && text.data[i] != '\n' ? i + 1 : i;
        const tide_text sentence = box_trim((tide_text){text.data + from, to - from}, BOX_SPACES);
        from = i + 1;
        if (sentence.bytes < 8 || sentence.data[0] == '>' || is_greeting(sentence))
            continue;
        if (facts->summary.bytes == 0)
            facts->summary = cut(sentence, BOX_FACTS_SENTENCE_MAX);
        if (asks(sentence))
            list_add(&facts->tasks, cut(sentence, BOX_FACTS_SENTENCE_MAX));
    }
}

static void note_keywords(tide_text text, struct box_facts *facts)
{
    static const char *const dull[] = {"about", "your",      "with",   "from", "this",
                                       "that",  "have",      "please", "will", "would",
                                       "could", "regarding", NULL};
    size_t from = 0;
    for (size_t i = 0; i <= text.bytes; i++) {
        if (i < text.bytes && is_word_byte(text.data[i]))
            continue;
        const tide_text word = {text.data + from, i - from};
        from = i + 1;
        bool keep = word.bytes >= 4;
        for (size_t k = 0; keep && dull[k] != NULL; k++)
            keep = !(box_starts(word, dull[k]) && word.bytes == strlen(dull[k]));
        if (keep)
            list_add(&facts->keywords, word);
    }
}

/* "Ann Smith <ann@x.org>" */
static void note_sender(struct box_facts *facts)
{
    struct box_facts only = {0};
    note_addresses(facts->from, &only);
    if (only.emails.count > 0)
        facts->email = only.emails.items[0];
    const char *open =
        facts->from.bytes == 0 ? NULL : memchr(facts->from.data, '<', facts->from.bytes);
    tide_text name = open == NULL
                         ? facts->from
                         : (tide_text){facts->from.data, (size_t)(open - facts->from.data)};
    name = box_trim(name, BOX_SPACES);
    while (name.bytes > 0 && (name.data[0] == '"' || name.data[0] == '\'')) {
        name.data++;
        name.bytes--;
    }
    while (name.bytes > 0 &&
           (name.data[name.bytes - 1] == '"' || name.data[name.bytes - 1] == '\''))
        name.bytes--;
    if (name.bytes == 0 || memchr(name.data, '@', name.bytes) != NULL) {
        const char *at =
            facts->email.bytes == 0 ? NULL : memchr(facts->email.data, '@', facts->email.bytes);
        name = at == NULL ? facts->email
                          : (tide_text){facts->email.data, (size_t)(at - facts->email.data)};
    }
    facts->name = name;
}

static const char *language_of(tide_text text)
{
    static const struct {
        const char *code;
        const char *words[12];
    } languages[] = {
        {"en", {"the", "and", "you", "is", "to", "for", "please", "we", "are", "your", NULL}},
        {"de", {"und", "der", "die", "ich", "sie", "bitte", "nicht", "wir", "mit", "für", NULL}},
        {"cs", {"je", "na", "prosím", "dobrý", "jsem", "se", "že", "děkuji", "pro", "vás", NULL}},
        {"fr", {"le", "les", "vous", "est", "merci", "bonjour", "et", "nous", "pour", NULL}},
        {"es", {"el", "los", "gracias", "usted", "por", "hola", "para", "que", "una", NULL}},
    };
    size_t best = 0;
    size_t most = 0;
    for (size_t i = 0; i < sizeof languages / sizeof languages[0]; i++) {
        size_t hits = 0;
        for (size_t k = 0; languages[i].words[k] != NULL; k++)
            hits += box_text_has_word(text, languages[i].words[k]) ? 1 : 0;
        if (hits > most) {
            most = hits;
            best = i;
        }
    }
    return languages[best].code;
}

void box_facts_read(tide_text text, tide_arena *arena, struct box_facts *facts_out)
{
    *facts_out = (struct box_facts){.currency = "EUR", .summary = TIDE_TEXT("")};
    text = cut(text, BOX_FACTS_BYTES_MAX);
    facts_out->is_mail = mail_from_json(text, arena, facts_out) || mail_from_lines(text, facts_out);
    if (!facts_out->is_mail) {
        facts_out->around = text;
        facts_out->body = text;
    }
    facts_out->body = cut(facts_out->body, BOX_FACTS_BYTES_MAX);
    facts_out->from = cut(facts_out->from, BOX_FACTS_SENTENCE_MAX);
    facts_out->subject = cut(facts_out->subject, BOX_FACTS_SENTENCE_MAX);
    facts_out->to = cut(facts_out->to, BOX_FACTS_SENTENCE_MAX);
    note_sender(facts_out);
    note_addresses(facts_out->from, facts_out);
    note_addresses(facts_out->body, facts_out);
    note_links(facts_out->body, facts_out);
    note_numbers(facts_out->body, arena, facts_out);
    note_amount(facts_out->body, facts_out);
    note_sentences(facts_out->body, facts_out);
    note_keywords(facts_out->subject, facts_out);
    note_keywords(facts_out->summary, facts_out);
    if (facts_out->summary.bytes == 0)
        facts_out->summary = facts_out->subject;
    facts_out->language = language_of(facts_out->body);
    box_facts_judge(facts_out);
}
