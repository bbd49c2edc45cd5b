/* element.c - the elements that are known: shown, or dropped with their content. */
#include "mail/wash/inside.h"
#include "base/check.h"

enum { NAME_BYTES_MAX = 10 };

struct element {
    char name[NAME_BYTES_MAX + 1];
    uint8_t flags;
};

static const struct element elements[] = {
#define ROW(id, name, flags) {name, flags},
    WASH_ELEMENTS(ROW)
#undef ROW
};

tide_wash_element tide_wash_element_of(tide_text name)
{
    char lower[NAME_BYTES_MAX + 1];
    if (name.bytes > NAME_BYTES_MAX)
        return WASH_OTHER;
    for (size_t i = 0; i < name.bytes; i++)
        lower[i] =
            name.data[i] >= 'A' && name.data[i] <= 'Z' ? (char)(name.data[i] | 0x20) : name.data[i];
    lower[name.bytes] = '\0';
    /* A name with a NUL inside is not the name before it. */
    if (strlen(lower) != name.bytes)
        return WASH_OTHER;
    size_t low = 0, high = WASH_ELEMENT_COUNT;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(lower, elements[middle].name);
        if (order == 0)
            return (tide_wash_element)middle;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return WASH_OTHER;
}

const char *tide_wash_element_name(tide_wash_element element)
{
    TIDE_ASSERT(element < WASH_ELEMENT_COUNT);
    return elements[element].name;
}

unsigned tide_wash_element_flags(tide_wash_element element)
{
    TIDE_ASSERT(element < WASH_ELEMENT_COUNT);
    return elements[element].flags;
}
