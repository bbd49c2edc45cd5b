/* attribute.c - the attributes that are allowed, each checked by its kind. */
#include "mail/mime/charset.h"
#include "mail/wash/inside.h"

enum { NAME_BYTES_MAX = 16, WORD_BYTES_MAX = 40, ID_BYTES_MAX = 100 };

enum kind {
    KIND_TEXT,   /* anything */
    KIND_FONT,   /* names of fonts */
    KIND_MEDIA,  /* a media query */
    KIND_WORD,   /* "left" */
    KIND_LENGTH, /* "600", "100%", "2*" */
    KIND_COLOR,  /* "#ffcc00", "red" */
    KIND_FLAG,   /* it is there or not */
    KIND_ID,
    KIND_STYLE,
    KIND_LINK,
    KIND_IMAGE,
};

/* For which elements. */
enum where {
    ANY,
    ON_A,
    ON_IMG,
    ON_STYLE,
    ON_BODY,
    ON_TABLE, /* its parts too */
};

struct attribute {
    char name[NAME_BYTES_MAX];
    uint8_t kind, where;
};

/* Sorted by name.  At most 64: one bit each. */
static const struct attribute attributes[] = {
    {"align", KIND_WORD, ANY},
    {"alt", KIND_TEXT, ON_IMG},
    {"aria-hidden", KIND_WORD, ANY},
    {"aria-label", KIND_TEXT, ANY},
    {"background", KIND_IMAGE, ON_TABLE},
    {"bgcolor", KIND_COLOR, ANY},
    {"border", KIND_LENGTH, ANY},
    {"cellpadding", KIND_LENGTH, ON_TABLE},
    {"cellspacing", KIND_LENGTH, ON_TABLE},
    {"class", KIND_TEXT, ANY},
    {"clear", KIND_WORD, ANY},
    {"color", KIND_COLOR, ANY},
    {"colspan", KIND_LENGTH, ON_TABLE},
    {"dir", KIND_WORD, ANY},
    {"face", KIND_FONT, ANY},
    {"height", KIND_LENGTH, ANY},
    {"href", KIND_LINK, ON_A},
    {"hspace", KIND_LENGTH, ON_IMG},
    {"id", KIND_ID, ANY},
    {"lang", KIND_WORD, ANY},
    {"media", KIND_MEDIA, ON_STYLE},
    {"noshade", KIND_FLAG, ANY},
    {"nowrap", KIND_FLAG, ON_TABLE},
    {"role", KIND_WORD, ANY},
    {"rowspan", KIND_LENGTH, ON_TABLE},
    {"scope", KIND_WORD, ON_TABLE},
    {"size", KIND_LENGTH, ANY},
    {"span", KIND_LENGTH, ON_TABLE},
    {"src", KIND_IMAGE, ON_IMG},
    {"start", KIND_LENGTH, ANY},
    {"style", KIND_STYLE, ANY},
    {"text", KIND_COLOR, ON_BODY},
    {"title", KIND_TEXT, ANY},
    {"type", KIND_WORD, ANY},
    {"valign", KIND_WORD, ON_TABLE},
    {"value", KIND_LENGTH, ANY},
    {"vspace", KIND_LENGTH, ON_IMG},
    {"width", KIND_LENGTH, ANY},
};

enum { ATTRIBUTE_COUNT = sizeof attributes / sizeof attributes[0] };
_Static_assert(ATTRIBUTE_COUNT <= 64, "a bit for each");

static const struct attribute *attribute_of(tide_text name)
{
    char lower[NAME_BYTES_MAX];
    if (name.bytes >= NAME_BYTES_MAX)
        return NULL;
    for (size_t i = 0; i < name.bytes; i++)
        lower[i] =
            name.data[i] >= 'A' && name.data[i] <= 'Z' ? (char)(name.data[i] | 0x20) : name.data[i];
    lower[name.bytes] = '\0';
    if (strlen(lower) != name.bytes) /* a NUL inside */
        return NULL;
    size_t low = 0, high = ATTRIBUTE_COUNT;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(lower, attributes[middle].name);
        if (order == 0)
            return &attributes[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

static bool is_for(const struct attribute *attribute, tide_wash_element element)
{
    if (element == WASH_STYLE)
        return attribute->where == ON_STYLE;
    switch ((enum where)attribute->where) {
    case ANY:
        return true;
    case ON_A:
        return element == WASH_A;
    case ON_IMG:
        return element == WASH_IMG;
    case ON_STYLE:
        return false;
    case ON_BODY:
        return element == WASH_BODY;
    case ON_TABLE:
        return element == WASH_TABLE || (tide_wash_element_flags(element) & WASH_PART) != 0;
    }
    return false;
}

/* ---- values ---- */

/* With entities decoded; borrowed from the html or from wash->value. */
static tide_text decoded(struct tide_wash *wash, tide_text value)
{
    const char *found = value.bytes == 0 ? NULL : memchr(value.data, '&', value.bytes);
    if (found == NULL)
        return value;
    tide_buf_clear(&wash->value);
    size_t begin = 0, at = (size_t)(found - value.data);
    tide_status rc = TIDE_OK;
    while (rc == TIDE_OK && found != NULL) {
        rc = tide_buf_add(&wash->value, value.data + begin, at - begin);
        uint32_t code = '&';
        size_t bytes =
            tide_html_entity((tide_text){value.data + at, value.bytes - at}, true, &code);
        char text[4];
        if (rc == TIDE_OK)
            rc = tide_buf_add(&wash->value, text, tide_html_utf8(code, text));
        begin = at + (bytes > 0 ? bytes : 1);
        found = memchr(value.data + begin, '&', value.bytes - begin);
        at = found == NULL ? value.bytes : (size_t)(found - value.data);
    }
    if (rc == TIDE_OK)
        rc = tide_buf_add(&wash->value, value.data + begin, value.bytes - begin);
    if (rc != TIDE_OK)
        wash->out.rc = rc;
    return tide_buf_text(&wash->value);
}

static bool is_alnum(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Whether it has only letters, digits and characters of `more`, and 1 to `max` of them. */
static bool made_of(tide_text value, const char *more, size_t max)
{
    if (value.bytes == 0 || value.bytes > max)
        return false;
    for (size_t i = 0; i < value.bytes; i++) {
        char c = value.data[i];
        if (!is_alnum(c) && (c == '\0' || strchr(more, c) == NULL))
            return false;
    }
    return true;
}

static const char *characters_of(enum kind kind)
{
    switch (kind) {
    case KIND_WORD:
        return "-_";
    case KIND_LENGTH:
        return ".%*+-";
    case KIND_COLOR:
        return "#";
    case KIND_MEDIA:
        return " ():,.-";
    case KIND_ID:
        return "-_.:";
    default:
        return "";
    }
}

/* Writes the value; false: it is not allowed. */
static bool put_value(struct tide_wash *wash, enum kind kind, tide_text value, bool data_too)
{
    struct tide_wash_out *out = &wash->out;
    value = decoded(wash, value);
    if (out->rc != TIDE_OK)
        return false;
    size_t begin = out->buf->bytes;
    switch (kind) {
    case KIND_FLAG:
        return true;
    case KIND_TEXT:
        tide_wash_value(out, value);
        return true;
    case KIND_FONT:
        if (value.bytes > 0 && memchr(value.data, ':', value.bytes) != NULL)
            return false;
        tide_wash_value(out, value);
        return true;
    case KIND_STYLE:
        tide_wash_declarations(out, value);
        return out->buf->bytes > begin;
    case KIND_LINK:
        return tide_wash_link(wash, value);
    case KIND_IMAGE:
        return tide_wash_image(wash, value, data_too);
    case KIND_MEDIA:
        value = tide_text_trimmed(value);
        if (!made_of(value, characters_of(kind), ID_BYTES_MAX))
            return false;
        break;
    case KIND_ID:
        if (!made_of(value, characters_of(kind), ID_BYTES_MAX))
            return false;
        if (value.bytes < 2 || memcmp(value.data, "m-", 2) != 0)
            tide_wash_put(out, "m-", 2);
        break;
    case KIND_WORD:
    case KIND_LENGTH:
    case KIND_COLOR:
        value = tide_text_trimmed(value);
        if (!made_of(value, characters_of(kind), WORD_BYTES_MAX))
            return false;
        break;
    }
    tide_wash_put(out, value.data, value.bytes);
    return true;
}

static void put_attribute(struct tide_wash *wash, const struct attribute *attribute,
                          tide_text value)
{
    struct tide_wash_out *out = &wash->out;
    size_t begin = out->buf->bytes;
    tide_wash_put(out, " ", 1);
    tide_wash_put_cstr(out, attribute->name);
    tide_wash_put(out, "=\"", 2);
    if (!put_value(wash, (enum kind)attribute->kind, value, attribute->where == ON_IMG)) {
        tide_wash_back(out, begin);
        return;
    }
    tide_wash_put(out, "\"", 1);
    if (attribute->kind == KIND_LINK)
        tide_wash_put_cstr(out, " rel=\"noopener noreferrer\"");
}

/* ---- <body>, which becomes a <div> with the colors of the page in its style ---- */

struct page {
    tide_text background, color, style;
};

/* Whether the attribute is kept for later. */
static bool page_takes(struct page *page, const struct attribute *attribute, tide_text value)
{
    if (strcmp(attribute->name, "bgcolor") == 0)
        page->background = value;
    else if (strcmp(attribute->name, "text") == 0)
        page->color = value;
    else if (attribute->kind == KIND_STYLE)
        page->style = value;
    else
        return false;
    return true;
}

static void add_color(struct tide_wash *wash, tide_buf *css, const char *property, tide_text value)
{
    value = tide_text_trimmed(decoded(wash, value));
    if (wash->out.rc == TIDE_OK && made_of(value, "#", WORD_BYTES_MAX))
        wash->out.rc = tide_buf_print(css, "%s%.*s;", property, (int)value.bytes, value.data);
}

static void put_page(struct tide_wash *wash, const struct page *page)
{
    struct tide_wash_out *out = &wash->out;
    tide_buf *css = &wash->url;
    tide_buf_clear(css);
    add_color(wash, css, "background-color:", page->background);
    add_color(wash, css, "color:", page->color);
    tide_text style = decoded(wash, page->style);
    if (out->rc == TIDE_OK)
        out->rc = tide_buf_add(css, style.data, style.bytes);
    if (out->rc != TIDE_OK || css->bytes == 0)
        return;
    size_t begin = out->buf->bytes;
    tide_wash_put_cstr(out, " style=\"");
    size_t empty = out->buf->bytes;
    tide_wash_declarations(out, tide_buf_text(css));
    if (out->buf->bytes == empty)
        tide_wash_back(out, begin);
    else
        tide_wash_put(out, "\"", 1);
}

void tide_wash_attributes(struct tide_wash *wash, tide_wash_element element)
{
    uint64_t seen = 0; /* of an attribute that comes twice the first counts, as in browsers */
    struct page page = {TIDE_TEXT(""), TIDE_TEXT(""), TIDE_TEXT("")};
    tide_text name, value;
    while (tide_html_attribute(&wash->reader, &name, &value)) {
        wash->out.work += name.bytes + value.bytes + 1;
        const struct attribute *attribute = attribute_of(name);
        if (attribute == NULL || !is_for(attribute, element))
            continue;
        uint64_t bit = UINT64_C(1) << (attribute - attributes);
        if ((seen & bit) != 0)
            continue;
        seen |= bit;
        if (element != WASH_BODY || !page_takes(&page, attribute, value))
            put_attribute(wash, attribute, value);
    }
    if (element == WASH_BODY)
        put_page(wash, &page);
}
