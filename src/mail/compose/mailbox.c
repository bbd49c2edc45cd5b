#include "mail/compose/mailbox.h"

#include "mail/mime/charset.h"

#include <strings.h>

static bool is_atom(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("!#$%&'*+-/=?^_`{|}~", c) != NULL);
}

static bool is_host(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
}

/* Atoms with single dots between them. */
static bool is_dotted(tide_text text, bool (*is_part)(char c))
{
    bool part = false;
    for (size_t i = 0; i < text.bytes; i++) {
        if (text.data[i] == '.' && !part)
            return false;
        part = text.data[i] != '.';
        if (part && !is_part(text.data[i]))
            return false;
    }
    return part;
}

bool tide_mailbox_is_address(tide_text text)
{
    const char *at = text.bytes == 0 ? NULL : memchr(text.data, '@', text.bytes);
    if (at == NULL || text.bytes > TIDE_MAILBOX_BYTES_MAX)
        return false;
    const size_t local = (size_t)(at - text.data);
    return local <= 64 && is_dotted((tide_text){text.data, local}, is_atom) &&
           is_dotted((tide_text){at + 1, text.bytes - local - 1}, is_host);
}

tide_text tide_mailbox_local(tide_text address)
{
    const char *at =
        tide_mailbox_is_address(address) ? memchr(address.data, '@', address.bytes) : NULL;
    return at == NULL ? TIDE_TEXT("") : (tide_text){address.data, (size_t)(at - address.data)};
}

tide_text tide_mailbox_domain(tide_text address)
{
    const size_t local = tide_mailbox_local(address).bytes;
    return local == 0 ? TIDE_TEXT("")
                      : (tide_text){address.data + local + 1, address.bytes - local - 1};
}

bool tide_mailbox_equal(tide_text a, tide_text b)
{
    return a.bytes == b.bytes && (a.bytes == 0 || strncasecmp(a.data, b.data, a.bytes) == 0);
}

/* One entry, without the comma after it: "Name <address>", "address" or "Group: address". */
static bool read_one(tide_text entry, tide_text angle, bool has_angle,
                     struct tide_mailbox *mailbox_out)
{
    entry = tide_text_trimmed(entry);
    struct tide_mailbox mailbox = {.name = TIDE_TEXT("")};
    if (has_angle) {
        mailbox.address = tide_text_trimmed(angle);
        mailbox.name =
            tide_text_trimmed((tide_text){entry.data, (size_t)(angle.data - 1 - entry.data)});
    } else {
        const char *space = entry.bytes == 0 ? NULL : memrchr(entry.data, ' ', entry.bytes);
        const size_t skipped = space == NULL ? 0 : (size_t)(space + 1 - entry.data);
        mailbox.address = (tide_text){entry.data + skipped, entry.bytes - skipped};
        if (skipped > 1 && entry.data[skipped - 2] != ':')
            return false; /* words that happen to end in an address are no list of mailboxes */
    }
    if (!tide_mailbox_is_address(mailbox.address))
        return false;
    *mailbox_out = mailbox;
    return true;
}

/* Takes the entries of a header apart.  The first one that names no mailbox is *wrong_out. */
static size_t read_all(tide_text header, struct tide_mailbox *mailboxes_out, size_t count_max,
                       tide_text *wrong_out)
{
    size_t count = 0, begin = 0;
    tide_text angle = TIDE_TEXT_NONE;
    bool quoted = false, open = false, has_angle = false;
    if (header.bytes == 0)
        return 0; /* a header that is not there has no bytes to point into */
    for (size_t i = 0; i <= header.bytes && count < count_max; i++) {
        const char c = i == header.bytes ? ',' : header.data[i];
        if (quoted && c == '\\' && i + 1 < header.bytes) {
            i++;
        } else if (c == '"' && !open && i < header.bytes) {
            quoted = !quoted;
        } else if (!quoted && !open && !has_angle && c == '<') {
            open = true;
            angle = (tide_text){header.data + i + 1, 0};
        } else if (open && c == '>') {
            open = false;
            has_angle = true;
            angle.bytes = (size_t)(header.data + i - angle.data);
        } else if (i == header.bytes || (c == ',' && !quoted && !open)) {
            const tide_text entry = {header.data + begin, i - begin};
            const bool good = entry.bytes > 0 && !open &&
                              read_one(entry, angle, has_angle, &mailboxes_out[count]);
            count += good;
            if (!good && wrong_out->bytes == 0)
                *wrong_out = tide_text_trimmed(entry);
            begin = i + 1;
            has_angle = false;
        }
    }
    return count;
}

size_t tide_mailboxes_read(tide_text header, struct tide_mailbox *mailboxes_out, size_t count_max)
{
    tide_text wrong = TIDE_TEXT_NONE;
    return read_all(header, mailboxes_out, count_max, &wrong);
}

bool tide_mailboxes_typed(tide_text text, struct tide_mailbox *mailboxes_out, size_t count_max,
                          size_t *count_out, tide_text *wrong_out)
{
    *wrong_out = TIDE_TEXT("");
    *count_out = read_all(text, mailboxes_out, count_max, wrong_out);
    /* Room for one more: a list that ends here is whole. */
    if (wrong_out->bytes == 0 && *count_out == count_max)
        *wrong_out = mailboxes_out[count_max - 1].address;
    return wrong_out->bytes == 0;
}

struct tide_mailbox tide_mailbox_first(tide_text header)
{
    struct tide_mailbox mailbox = {TIDE_TEXT(""), TIDE_TEXT("")};
    (void)tide_mailboxes_read(header, &mailbox, 1);
    return mailbox;
}

/* Whether the signs at both ends belong to the text around it: "(ann@example.org)." */
static tide_text without_ends(tide_text text)
{
    while (text.bytes > 0 && !is_host(text.data[text.bytes - 1]))
        text.bytes--;
    while (text.bytes > 0 && !is_host(text.data[0]))
        text = (tide_text){text.data + 1, text.bytes - 1};
    return text;
}

bool tide_mailbox_find(tide_text text, size_t *at_io, tide_text *address_out)
{
    for (size_t from = *at_io; from < text.bytes;) {
        const char *sign = memchr(text.data + from, '@', text.bytes - from);
        if (sign == NULL)
            break;
        const size_t at = (size_t)(sign - text.data);
        size_t begin = at, end = at + 1;
        while (begin > from && at - begin <= 64 &&
               (is_atom(text.data[begin - 1]) || text.data[begin - 1] == '.'))
            begin--;
        while (end < text.bytes && end - at <= TIDE_MAILBOX_BYTES_MAX &&
               (is_host(text.data[end]) || text.data[end] == '.'))
            end++;
        const tide_text found = without_ends((tide_text){text.data + begin, end - begin});
        from = end;
        if (tide_mailbox_is_address(found) &&
            memchr(tide_mailbox_domain(found).data, '.', tide_mailbox_domain(found).bytes)) {
            *at_io = from;
            *address_out = found;
            return true;
        }
    }
    *at_io = text.bytes;
    return false;
}
