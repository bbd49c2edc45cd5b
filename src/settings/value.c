#include "settings/value.h"

#include "base/clocktext.h"
#include "settings/schedule.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* "20", "2%", "0.2%", "12.5%"; at most one decimal makes a whole permille. */
static bool permille_parse(tide_text text, uint64_t *permille_out)
{
    uint64_t whole = 0, tenth = 0;
    if (text.bytes == 0 || text.data[text.bytes - 1] != '%')
        return tide_text_to_u64(text, permille_out);
    text.bytes--;
    while (text.bytes > 0 && text.data[text.bytes - 1] == ' ')
        text.bytes--;
    const char *point = text.bytes == 0 ? NULL : memchr(text.data, '.', text.bytes);
    if (point != NULL) {
        size_t at = (size_t)(point - text.data);
        if (text.bytes != at + 2 || !tide_text_to_u64((tide_text){point + 1, 1}, &tenth))
            return false;
        text.bytes = at;
    }
    if (!tide_text_to_u64(text, &whole) || __builtin_mul_overflow(whole, 10u, &whole))
        return false;
    *permille_out = whole + tenth;
    return true;
}

static bool bool_parse(tide_text text, uint64_t *number_out)
{
    static const char *const words[] = {"false", "true", "no", "yes", "off", "on", "0", "1"};
    for (unsigned i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (tide_text_equal(text, tide_text_of(words[i]))) {
            *number_out = i % 2;
            return true;
        }
    }
    return false;
}

static bool number_parse(tide_setting_type type, tide_text text, uint64_t *number_out)
{
    switch (type) {
    case TIDE_TYPE_INTEGER:
        return tide_text_to_u64(text, number_out);
    case TIDE_TYPE_SIZE:
        return tide_size_parse(text, number_out);
    case TIDE_TYPE_DURATION:
        return tide_duration_parse(text, number_out);
    case TIDE_TYPE_PERMILLE:
        return permille_parse(text, number_out);
    case TIDE_TYPE_BOOL:
        return bool_parse(text, number_out);
    case TIDE_TYPE_TEXT:
    case TIDE_TYPE_SCHEDULE:
    case TIDE_TYPE_URL:
    case TIDE_TYPE_ADDRESS:
    case TIDE_TYPE_SERVER:
        break;
    }
    return false;
}

static const char *type_hint(tide_setting_type type)
{
    static const char *const hints[] = {"a whole number",
                                        "a size like 64MiB",
                                        "a duration like 500ms, 10s, 5m or 7d",
                                        "thousandths like 20, or a share like 2%",
                                        "true or false",
                                        "a text",
                                        "a schedule",
                                        "a URL",
                                        "an e-mail address",
                                        "a mail server"};
    return hints[type];
}

void tide_setting_number_print(tide_setting_type type, uint64_t number,
                               char text[TIDE_SETTING_TEXT_BYTES])
{
    char small[TIDE_SIZE_TEXT_BYTES];
    switch (type) {
    case TIDE_TYPE_SIZE:
        tide_size_format(number, small);
        break;
    case TIDE_TYPE_DURATION:
        tide_duration_format(number, small);
        break;
    case TIDE_TYPE_PERMILLE:
        if (number % 10 == 0)
            (void)snprintf(small, sizeof small, "%" PRIu64 "%%", number / 10);
        else
            (void)snprintf(small, sizeof small, "%" PRIu64 ".%" PRIu64 "%%", number / 10,
                           number % 10);
        break;
    case TIDE_TYPE_BOOL:
        (void)snprintf(small, sizeof small, "%s", number ? "true" : "false");
        break;
    default:
        (void)snprintf(small, sizeof small, "%" PRIu64, number);
    }
    (void)snprintf(text, TIDE_SETTING_TEXT_BYTES, "%s", small);
}

static bool is_choice(const char *choices, tide_text text)
{
    for (const char *choice = choices; choice != NULL;) {
        const char *end = strchr(choice, '|');
        size_t bytes = end == NULL ? strlen(choice) : (size_t)(end - choice);
        if (tide_text_equal(text, (tide_text){choice, bytes}))
            return true;
        choice = end == NULL ? NULL : end + 1;
    }
    return false;
}

static bool is_database_url(tide_text text)
{
    static const char *const starts[] = {"postgres://", "postgresql://"};
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++)
        if (text.bytes >= strlen(starts[i]) && memcmp(text.data, starts[i], strlen(starts[i])) == 0)
            return true;
    return false;
}

/* One address, without a name or comments: what a mail server takes as it is. */
static bool is_address(tide_text text)
{
    size_t at = 0;
    for (size_t i = 0; i < text.bytes; i++) {
        const unsigned char c = (unsigned char)text.data[i];
        if (c <= 0x20 || c >= 0x7f || strchr("<>()[],;:\\\"", c) != NULL)
            return false;
        if (c == '@' && at != 0)
            return false;
        at = c == '@' ? i : at;
    }
    return at > 0 && at + 1 < text.bytes;
}

/* Why it is not smtp://HOST[:PORT] or smtps://HOST[:PORT]; NULL: it is. */
static const char *server_refusal(tide_text text)
{
    static const char *const starts[] = {"smtp://", "smtps://"};
    size_t at = 0;
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++)
        if (text.bytes >= strlen(starts[i]) && memcmp(text.data, starts[i], strlen(starts[i])) == 0)
            at = strlen(starts[i]);
    if (at == 0)
        return "must begin with smtp:// or smtps://";
    if (memchr(text.data, '@', text.bytes) != NULL)
        return "must not contain a user or a password";
    for (size_t i = at; i < text.bytes; i++) {
        const unsigned char c = (unsigned char)text.data[i];
        if (c <= 0x20 || c >= 0x7f || strchr("/?#%\\\"", c) != NULL)
            return "must be smtp://HOST:PORT or smtps://HOST:PORT, and nothing after it";
    }
    return at < text.bytes && text.data[at] != ':' ? NULL : "must name a host";
}

const char *tide_setting_text_refusal(const struct tide_setting_info *info, tide_text text,
                                      char *reason, size_t reason_bytes)
{
    struct tide_setting_window windows[TIDE_SETTING_WINDOWS_MAX];
    size_t count = 0;
    const char *why = NULL;
    if (text.bytes > info->max) {
        (void)snprintf(reason, reason_bytes, "longer than %" PRIu64 " bytes", info->max);
        return reason;
    }
    for (size_t i = 0; i < text.bytes; i++)
        if ((unsigned char)text.data[i] < 0x20 || text.data[i] == 0x7f)
            return "contains a control character";
    if (info->choices != NULL && !is_choice(info->choices, text)) {
        (void)snprintf(reason, reason_bytes, "must be one of %s", info->choices);
        return reason;
    }
    if (info->type == TIDE_TYPE_SCHEDULE && !tide_schedule_parse(text, windows, &count, &why))
        return why;
    if (info->type == TIDE_TYPE_URL && text.bytes > 0 && !is_database_url(text))
        return "must begin with postgres://";
    if (info->type == TIDE_TYPE_ADDRESS && text.bytes > 0 && !is_address(text))
        return "is not an e-mail address like ada@example.com";
    if (info->type == TIDE_TYPE_SERVER && text.bytes > 0)
        return server_refusal(text);
    return NULL;
}

const char *tide_setting_number_refusal(const struct tide_setting_info *info, tide_text text,
                                        uint64_t *number, char *reason, size_t reason_bytes)
{
    if (!number_parse(info->type, text, number)) {
        (void)snprintf(reason, reason_bytes, "must be %s", type_hint(info->type));
        return reason;
    }
    if (*number < info->min || *number > info->max) {
        char low[TIDE_SETTING_TEXT_BYTES], high[TIDE_SETTING_TEXT_BYTES];
        tide_setting_number_print(info->type, info->min, low);
        tide_setting_number_print(info->type, info->max, high);
        (void)snprintf(reason, reason_bytes, "must be between %.30s and %.30s", low, high);
        return reason;
    }
    return NULL;
}
