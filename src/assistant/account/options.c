/* options.c - protocol options of a chat server, by name. */
#include "assistant/account/account.h"

#include <stdio.h>
#include <string.h>

/* ---- words and fields ---- */

/* A field with a few words. */
struct choice {
    const char *name;
    const char *words[4]; /* the first is the default */
    unsigned (*get)(const struct tide_assistant_account *account);
    void (*set)(struct tide_assistant_account *account, unsigned word);
};

static unsigned get_dialect(const struct tide_assistant_account *a)
{
    return (unsigned)a->dialect;
}
static void set_dialect(struct tide_assistant_account *a, unsigned word)
{
    a->dialect = (tide_chat_dialect)word;
}
static unsigned get_auth(const struct tide_assistant_account *a)
{
    return a->no_key ? 2 : a->key_plain ? 1 : 0;
}
static void set_auth(struct tide_assistant_account *a, unsigned word)
{
    a->key_plain = word == 1;
    a->no_key = word == 2;
}
static unsigned get_limit(const struct tide_assistant_account *a)
{
    return a->old_limit ? 1 : 0;
}
static void set_limit(struct tide_assistant_account *a, unsigned word)
{
    a->old_limit = word == 1;
}
static unsigned get_json(const struct tide_assistant_account *a)
{
    return (unsigned)a->format;
}
static void set_json(struct tide_assistant_account *a, unsigned word)
{
    a->format = (tide_chat_format)word;
}
static unsigned get_stream(const struct tide_assistant_account *a)
{
    return a->no_stream ? 1 : 0;
}
static void set_stream(struct tide_assistant_account *a, unsigned word)
{
    a->no_stream = word == 1;
}
static unsigned get_usage(const struct tide_assistant_account *a)
{
    return a->no_stream_usage ? 1 : 0;
}
static void set_usage(struct tide_assistant_account *a, unsigned word)
{
    a->no_stream_usage = word == 1;
}

static const struct choice choices[] = {
    {"dialect", {"openai", "anthropic"}, get_dialect, set_dialect},
    {"auth", {"bearer", "x-api-key", "none"}, get_auth, set_auth},
    {"limit", {"max_completion_tokens", "max_tokens"}, get_limit, set_limit},
    {"json", {"schema", "object", "off"}, get_json, set_json},
    {"stream", {"yes", "no"}, get_stream, set_stream},
    {"usage", {"yes", "no"}, get_usage, set_usage},
};
enum { CHOICES = sizeof choices / sizeof choices[0] };

/* A field with a text. */
struct field {
    const char *name;
    size_t offset, bytes;
};
#define FIELD(name)                                                                                \
    {                                                                                              \
#name, offsetof(struct tide_assistant_account, name),                                      \
            sizeof((struct tide_assistant_account *)0)->name                                       \
    }
static const struct field fields[] = {FIELD(model), FIELD(fast_model), FIELD(version),
                                      FIELD(endpoint)};
enum { FIELDS = sizeof fields / sizeof fields[0] };

static char *text_of(struct tide_assistant_account *account, size_t field)
{
    return (char *)account + fields[field].offset;
}

/* ---- by name ---- */

static tide_status choice_set(struct tide_assistant_account *account, const struct choice *choice,
                              const char *value, tide_error *err)
{
    char words[120] = "";
    for (unsigned i = 0; i < 4 && choice->words[i] != NULL; i++) {
        if (strcmp(value, choice->words[i]) == 0) {
            choice->set(account, i);
            return TIDE_OK;
        }
        const size_t used = strlen(words);
        (void)snprintf(words + used, sizeof words - used, "%s%s", i == 0 ? "" : ", ",
                       choice->words[i]);
    }
    return tide_error_set(err, TIDE_INVALID, "\"%.40s\" is no value of %s: use one of %s", value,
                          choice->name, words);
}

static tide_status unknown(const char *name, tide_error *err)
{
    char names[160] = "";
    for (size_t i = 0; i < CHOICES + FIELDS; i++) {
        const size_t used = strlen(names);
        (void)snprintf(names + used, sizeof names - used, "%s%s", i == 0 ? "" : ", ",
                       i < CHOICES ? choices[i].name : fields[i - CHOICES].name);
    }
    return tide_error_set(err, TIDE_INVALID, "there is no option \"%.40s\": use one of %s", name,
                          names);
}

tide_status tide_assistant_option_set(struct tide_assistant_account *account, const char *name,
                                      const char *value, tide_error *err)
{
    for (size_t i = 0; i < CHOICES; i++)
        if (strcmp(name, choices[i].name) == 0)
            return choice_set(account, &choices[i], value, err);
    for (size_t i = 0; i < FIELDS; i++) {
        if (strcmp(name, fields[i].name) != 0)
            continue;
        if (strlen(value) >= fields[i].bytes || value[strcspn(value, "\r\n\t")] != '\0')
            return tide_error_set(err, TIDE_INVALID, "%s has at most %zu bytes, on one line", name,
                                  fields[i].bytes - 1);
        (void)snprintf(text_of(account, i), fields[i].bytes, "%s", value);
        return TIDE_OK;
    }
    return unknown(name, err);
}

tide_status tide_assistant_options_set(struct tide_assistant_account *account, const char *list,
                                       tide_error *err)
{
    while (*list != '\0') {
        char one[TIDE_CHAT_MODEL_BYTES_MAX + 60];
        const size_t bytes = strcspn(list, ",");
        if (bytes >= sizeof one)
            return tide_error_set(err, TIDE_INVALID, "an option is too long");
        (void)snprintf(one, sizeof one, "%.*s", (int)bytes, list);
        char *equals = strchr(one, '=');
        if (equals == NULL)
            return tide_error_set(err, TIDE_INVALID, "\"%.40s\" is not NAME=VALUE", one);
        *equals = '\0';
        TIDE_TRY(tide_assistant_option_set(account, one, equals + 1, err));
        list += bytes + (list[bytes] == ',' ? 1 : 0);
    }
    return TIDE_OK;
}

tide_status tide_assistant_options_check(const struct tide_assistant_account *account,
                                         tide_error *err)
{
    if (account->model[0] == '\0')
        return tide_error_set(err, TIDE_INVALID, "no model is named");
    if (account->dialect == TIDE_CHAT_OPENAI && (account->version[0] != '\0' || account->key_plain))
        return tide_error_set(err, TIDE_INVALID,
                              "version and auth=x-api-key are for the dialect anthropic");
    if (account->dialect == TIDE_CHAT_ANTHROPIC && account->old_limit)
        return tide_error_set(err, TIDE_INVALID, "limit is for the dialect openai");
    return TIDE_OK;
}

/* ---- as JSON ---- */

tide_status tide_assistant_options_write(const struct tide_assistant_account *account,
                                         char options_out[TIDE_ASSISTANT_OPTIONS_BYTES],
                                         tide_error *err)
{
    tide_auto_json object = {.value = NULL};
    tide_auto_buf line = tide_buf_heap(TIDE_ASSISTANT_OPTIONS_BYTES - 1);
    tide_json_object(&object);
    for (size_t i = 0; i < CHOICES; i++) {
        const unsigned word = choices[i].get(account);
        if (word != 0 || i == 0)
            tide_json_set_cstr(&object, choices[i].name, choices[i].words[word]);
    }
    for (size_t i = 0; i < FIELDS; i++) {
        const char *text = (const char *)account + fields[i].offset;
        if (text[0] != '\0')
            tide_json_set_cstr(&object, fields[i].name, text);
    }
    const tide_status rc = tide_json_line(&object, &line);
    if (rc != TIDE_OK)
        return tide_error_set(err, rc, "the options of a chat account are too long");
    (void)snprintf(options_out, TIDE_ASSISTANT_OPTIONS_BYTES, "%.*s", (int)line.bytes - 1,
                   line.data); /* without the end of the line */
    return TIDE_OK;
}

tide_status tide_assistant_options_read(tide_text options, struct tide_assistant_account *account,
                                        tide_error *err)
{
    json_auto_t *value = NULL;
    TIDE_TRY(tide_json_parse_stored(options, &value, err));
    for (size_t i = 0; i < CHOICES + FIELDS; i++) {
        const char *name = i < CHOICES ? choices[i].name : fields[i - CHOICES].name;
        const char *text = json_string_value(json_object_get(value, name));
        if (text != NULL)
            TIDE_TRY(tide_assistant_option_set(account, name, text, err));
    }
    return TIDE_OK;
}
