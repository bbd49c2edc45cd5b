#include "drive/names/names.h"

#include "drive/names/key.h"

#include <stdint.h>
#include <strings.h>

static bool is(tide_text name, const char *word)
{
    return name.bytes == strlen(word) && strncasecmp(name.data, word, name.bytes) == 0;
}

static bool starts(tide_text name, const char *start)
{
    const size_t bytes = strlen(start);
    return name.bytes >= bytes && strncasecmp(name.data, start, bytes) == 0;
}

static bool has(tide_text name, const char *part)
{
    const size_t bytes = strlen(part);
    for (size_t i = 0; i + bytes <= name.bytes; i++)
        if (strncasecmp(name.data + i, part, bytes) == 0)
            return true;
    return false;
}

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* "tidemark-move-" and eight digits: a step of an exchange of names.  Only this exact form is ours,
 * so that a user's "tidemark-move-notes" is a file like any other. */
static bool is_step_aside(tide_text name)
{
    static const char start[] = "tidemark-move-";
    if (name.bytes != sizeof start - 1 + 8 || memcmp(name.data, start, sizeof start - 1) != 0)
        return false;
    for (size_t i = sizeof start - 1; i < name.bytes; i++)
        if (!is_hex(name.data[i]))
            return false;
    return true;
}

bool tide_drive_name_is_ours(tide_text name)
{
    return starts(name, ".tidemark-") || is_step_aside(name);
}

tide_drive_refusal tide_drive_name_down(tide_text name)
{
    if (name.bytes == 0)
        return TIDE_DRIVE_NAME_EMPTY;
    if (memchr(name.data, '/', name.bytes) != NULL || memchr(name.data, '\0', name.bytes) != NULL)
        return TIDE_DRIVE_NAME_SEPARATOR;
    if ((name.bytes == 1 && name.data[0] == '.') || (name.bytes == 2 && starts(name, "..")))
        return TIDE_DRIVE_NAME_DOTS;
    if (name.bytes > TIDE_DRIVE_NAME_BYTES_MAX)
        return TIDE_DRIVE_NAME_LONG;
    if (!tide_drive_is_utf8(name))
        return TIDE_DRIVE_NAME_NOT_UTF8;
    return tide_drive_name_is_ours(name) ? TIDE_DRIVE_NAME_OURS : TIDE_DRIVE_NAME_OK;
}

static bool has_forbidden(tide_text name)
{
    for (size_t i = 0; i < name.bytes; i++) {
        const unsigned char c = (unsigned char)name.data[i];
        if (c < 0x20 || c == 0x7f || strchr("\"*:<>?\\|", c) != NULL)
            return true;
        if (c == 0xc2 && i + 1 < name.bytes && (unsigned char)name.data[i + 1] < 0xa0)
            return true; /* U+0080 to U+009F are control characters too */
    }
    return false;
}

static bool is_reserved(tide_text name, struct tide_drive_name_rules rules)
{
    static const char *const words[] = {".lock", "desktop.ini", "CON", "PRN", "AUX", "NUL"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (is(name, words[i]))
            return true;
    if (name.bytes == 4 && (starts(name, "COM") || starts(name, "LPT")) && name.data[3] >= '0' &&
        name.data[3] <= '9')
        return true;
    return rules.business && rules.at_root && is(name, "forms");
}

tide_drive_refusal tide_drive_name_up(tide_text name, struct tide_drive_name_rules rules)
{
    const tide_drive_refusal here = tide_drive_name_down(name);
    if (here != TIDE_DRIVE_NAME_OK)
        return here;
    if (has_forbidden(name))
        return TIDE_DRIVE_NAME_CHARACTER;
    if (name.data[0] == ' ' || name.data[name.bytes - 1] == ' ')
        return TIDE_DRIVE_NAME_SPACE;
    if (name.data[name.bytes - 1] == '.')
        return TIDE_DRIVE_NAME_FINAL_DOT;
    if (is_reserved(name, rules))
        return TIDE_DRIVE_NAME_RESERVED;
    if (has(name, "_vti_"))
        return TIDE_DRIVE_NAME_VTI;
    if (starts(name, "~$") || (rules.business && name.data[0] == '~'))
        return TIDE_DRIVE_NAME_TILDE;
    return tide_drive_utf16_units(name) > TIDE_DRIVE_NAME_UNITS_MAX ? TIDE_DRIVE_NAME_LONG
                                                                    : TIDE_DRIVE_NAME_OK;
}

tide_drive_refusal tide_drive_path_up(size_t units)
{
    return units > TIDE_DRIVE_PATH_UNITS_MAX ? TIDE_DRIVE_NAME_PATH_LONG : TIDE_DRIVE_NAME_OK;
}

bool tide_drive_path_is_inside(tide_text path)
{
    size_t depth = 0;
    for (size_t start = 0; start <= path.bytes; depth++) {
        const char *slash = memchr(path.data + start, '/', path.bytes - start);
        const size_t end = slash == NULL ? path.bytes : (size_t)(slash - path.data);
        const tide_text name = {path.data + start, end - start};
        if (depth >= TIDE_DRIVE_DEPTH_MAX || tide_drive_name_down(name) != TIDE_DRIVE_NAME_OK)
            return false;
        start = end + 1;
    }
    return true;
}

const char *tide_drive_refusal_text(tide_drive_refusal refusal)
{
    switch (refusal) {
    case TIDE_DRIVE_NAME_OK:
        return "is fine";
    case TIDE_DRIVE_NAME_EMPTY:
        return "is empty";
    case TIDE_DRIVE_NAME_DOTS:
        return "would name another folder";
    case TIDE_DRIVE_NAME_SEPARATOR:
        return "has a slash or a NUL inside";
    case TIDE_DRIVE_NAME_NOT_UTF8:
        return "is not UTF-8";
    case TIDE_DRIVE_NAME_CHARACTER:
        return "has a character that OneDrive does not allow";
    case TIDE_DRIVE_NAME_SPACE:
        return "begins or ends with a space";
    case TIDE_DRIVE_NAME_FINAL_DOT:
        return "ends with a dot";
    case TIDE_DRIVE_NAME_RESERVED:
        return "is a name that OneDrive reserves";
    case TIDE_DRIVE_NAME_VTI:
        return "has \"_vti_\" inside, which OneDrive reserves";
    case TIDE_DRIVE_NAME_TILDE:
        return "begins with a tilde, which OneDrive reserves";
    case TIDE_DRIVE_NAME_LONG:
        return "is too long";
    case TIDE_DRIVE_NAME_PATH_LONG:
        return "is too deep: its path is longer than 400 characters";
    case TIDE_DRIVE_NAME_OURS:
        return "belongs to Tidemark";
    case TIDE_DRIVE_NAME_FILE_LARGE:
        return "is larger than 250 GB";
    }
    return "is refused";
}
