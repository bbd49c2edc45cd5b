/* words.c - from a request of the API to the words of its command (WRD1, WRD2). */
#include "cli/serve/api.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char too_long[] = "A value is too long, or has a zero byte.";
static const char not_value[] = "A value is a text or a whole number from 0 on.";
static const char no_param[] = "There is no such parameter.";

/* "--name=value"; without a name the value alone, without a value the name alone. */
static const char *word_add(struct cli_api_words *words, const char *name, tide_text value)
{
    const size_t room = sizeof words->room - words->used;
    const size_t needed = (name == NULL ? 0 : strlen(name) + 3) + value.bytes + 1;
    if (words->count == CLI_API_WORDS_MAX || value.bytes > CLI_API_VALUE_BYTES_MAX ||
        needed > room || memchr(value.data == NULL ? "" : value.data, '\0', value.bytes) != NULL)
        return too_long;
    char *at = words->room + words->used;
    const int used =
        snprintf(at, room, "%s%s%s%.*s", name == NULL ? "" : "--", name == NULL ? "" : name,
                 name == NULL || value.data == NULL ? "" : "=", (int)value.bytes,
                 value.data == NULL ? "" : value.data);
    words->used += (size_t)used + 1;
    words->list[words->count++] = at;
    return NULL;
}

static const char *switch_add(struct cli_api_words *words, const char *name)
{
    return word_add(words, name, TIDE_TEXT_NONE);
}

bool cli_api_lists(const char *list, tide_text word)
{
    while (list != NULL && *list != '\0') {
        const size_t bytes = strcspn(list, " ");
        if (tide_text_equal(word, (tide_text){list, bytes}))
            return true;
        list += bytes + strspn(list + bytes, " ");
    }
    return false;
}

/* Switches change what a command does, and are never chosen by a request. */
static const struct cli_flag *flag_of(const struct cli_command *command, tide_text name)
{
    for (const struct cli_flag *flag = command->flags; flag != NULL && flag->name != NULL; flag++)
        if (flag->argument != NULL && tide_text_equal(name, tide_text_of(flag->name)))
            return flag;
    return NULL;
}

static const char *param_add(const struct cli_api *api, const struct tide_httpd_pair *param,
                             struct cli_api_words *words)
{
    if (api->query != NULL && tide_text_equal(param->name, tide_text_of(api->query)))
        return NULL; /* an argument: it comes last */
    if (api->view && tide_text_equal(param->name, TIDE_TEXT("images")))
        return NULL; /* not the command's (page.c) */
    const struct cli_flag *flag =
        cli_api_lists(api->params, param->name) ? flag_of(api->command, param->name) : NULL;
    return flag == NULL ? no_param : word_add(words, flag->name, param->value);
}

/* ---- the body of a POST ---- */

static const char *value_add(struct cli_api_words *words, const char *name, const json_t *value)
{
    char number[24];
    if (json_is_string(value))
        return word_add(words, name,
                        (tide_text){json_string_value(value), json_string_length(value)});
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return not_value;
    (void)snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    return word_add(words, name, tide_text_of(number));
}

static bool is_one_of(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static const char *filter_add(const struct cli_api *api, json_t *filter,
                              struct cli_api_words *words)
{
    static const char *const names[] = {"account", "cycle", "kind", "state"};
    const char *wrong = json_is_object(filter) ? NULL : "\"filter\" is an object.";
    for (void *at = wrong == NULL ? json_object_iter(filter) : NULL; wrong == NULL && at != NULL;
         at = json_object_iter_next(filter, at)) {
        const char *name = json_object_iter_key(at);
        wrong = !is_one_of(name, names, sizeof names / sizeof names[0]) ||
                        flag_of(api->command, tide_text_of(name)) == NULL
                    ? "A filter has no such field."
                    : value_add(words, name, json_object_iter_value(at));
    }
    return wrong;
}

/* WRD2.  An empty filter means all. */
static const char *choice_check(const json_t *filter, const json_t *expect, const json_t *ids)
{
    if (ids == NULL && (filter == NULL || expect == NULL))
        return "Name \"ids\", or a \"filter\" and in \"expect\" how many match it.";
    if (ids != NULL && expect != NULL)
        return "\"expect\" goes with a filter alone.";
    if (ids != NULL && (!json_is_array(ids) || json_array_size(ids) == 0 ||
                        json_array_size(ids) > CLI_API_IDS_MAX))
        return "\"ids\" is a list of 1 to 50.";
    if (expect != NULL && !json_is_integer(expect))
        return not_value;
    return NULL;
}

static const char *choice_add(const struct cli_api *api, const json_t *body,
                              struct cli_api_words *words)
{
    json_t *filter = json_object_get(body, "filter");
    const json_t *expect = json_object_get(body, "expect");
    const json_t *ids = json_object_get(body, "ids");
    const char *wrong = choice_check(filter, expect, ids);
    if (wrong == NULL && filter != NULL)
        wrong = filter_add(api, filter, words);
    if (wrong == NULL && ids == NULL && json_object_size(filter) == 0)
        wrong = switch_add(words, "all");
    if (wrong == NULL && expect != NULL)
        wrong = value_add(words, "expect", expect);
    if (wrong == NULL && ids != NULL)
        wrong = switch_add(words, ""); /* what follows is no flag */
    for (size_t i = 0; wrong == NULL && i < json_array_size(ids); i++)
        wrong = value_add(words, NULL, json_array_get(ids, i));
    return wrong;
}

static bool takes(const struct cli_api *api, const char *name)
{
    static const char *const choice[] = {"filter", "expect", "ids"};
    return ((api->body & CLI_API_CHOICE) != 0 && is_one_of(name, choice, 3)) ||
           ((api->body & CLI_API_REASON) != 0 && strcmp(name, "reason") == 0) ||
           cli_api_lists(api->values, tide_text_of(name)) ||
           (api->last != NULL && strcmp(name, api->last) == 0) ||
           (api->list != NULL && strcmp(name, api->list) == 0);
}

/* Fields that are flags, and none that the request does not take. */
static const char *fields_add(const struct cli_api *api, json_t *body, struct cli_api_words *words)
{
    const char *wrong = NULL;
    for (void *at = json_object_iter(body); wrong == NULL && at != NULL;
         at = json_object_iter_next(body, at)) {
        const tide_text name = tide_text_of(json_object_iter_key(at));
        if (!takes(api, name.data))
            wrong = "The body has a field that this request does not take.";
        else if (cli_api_lists(api->values, name))
            wrong = flag_of(api->command, name) == NULL
                        ? no_param
                        : value_add(words, name.data, json_object_iter_value(at));
    }
    return wrong;
}

static const char *body_add(const struct cli_api *api, json_t *body, struct cli_api_words *words)
{
    if (!json_is_object(body))
        return "The body is not a JSON object.";
    const char *wrong = fields_add(api, body, words);
    const json_t *reason = json_object_get(body, "reason");
    if (wrong == NULL && reason != NULL)
        wrong = json_is_string(reason) ? value_add(words, "reason", reason) : not_value;
    if (wrong == NULL && (api->body & CLI_API_CHOICE) != 0)
        wrong = choice_add(api, body, words);
    return wrong;
}

/* ---- all ---- */

static const char missing[] = "A parameter is missing.";

static const char *argument_add(struct cli_api_words *words, tide_text argument)
{
    return argument.data == NULL ? missing : word_add(words, NULL, argument);
}

static const char *list_add(const json_t *list, bool free, struct cli_api_words *words)
{
    const char *wrong = NULL;
    if (free && (list == NULL || (json_is_array(list) && json_array_size(list) == 0)))
        return NULL;
    if (!json_is_array(list) || json_array_size(list) == 0 ||
        json_array_size(list) > CLI_API_IDS_MAX)
        return "A list has 1 to 50 texts.";
    for (size_t i = 0; wrong == NULL && i < json_array_size(list); i++)
        wrong = json_is_string(json_array_get(list, i))
                    ? value_add(words, NULL, json_array_get(list, i))
                    : not_value;
    return wrong;
}

/* What follows the flags. */
static const char *arguments_add(const struct cli_api *api,
                                 const struct tide_httpd_request *request, const json_t *body,
                                 struct cli_api_words *words)
{
    if (api->first == NULL && api->part == NULL && api->query == NULL && api->last == NULL &&
        api->list == NULL)
        return NULL;
    const char *wrong = switch_add(words, ""); /* what follows is no flag */
    if (wrong == NULL && api->first != NULL)
        wrong = argument_add(words, tide_text_of(api->first));
    if (wrong == NULL && api->part != NULL)
        wrong = argument_add(words, tide_httpd_part(request, api->part));
    if (wrong == NULL && api->part_next != NULL)
        wrong = argument_add(words, tide_httpd_part(request, api->part_next));
    if (wrong == NULL && api->query != NULL)
        wrong = argument_add(words, tide_httpd_param(request, api->query));
    const json_t *last = api->last == NULL ? NULL : json_object_get(body, api->last);
    if (wrong == NULL && api->last != NULL)
        wrong = last == NULL ? missing : value_add(words, NULL, last);
    if (wrong == NULL && api->list != NULL)
        wrong = list_add(json_object_get(body, api->list), api->list_free, words);
    return wrong;
}

const char *cli_api_words(const struct cli_api *api, const struct tide_httpd_request *request,
                          struct cli_api_words *words)
{
    const char *wrong = NULL;
    json_auto_t *body = NULL;
    words->count = words->used = 0;
    words->list[words->count++] = api->group;
    if (api->verb != NULL)
        words->list[words->count++] = api->verb;
    if (api->always != NULL)
        wrong = switch_add(words, api->always);
    for (size_t i = 0; wrong == NULL && i < request->params_count; i++)
        wrong = param_add(api, &request->params[i], words);
    if (wrong == NULL && api->flag_part != NULL)
        wrong = word_add(words, api->flag_part, tide_httpd_part(request, api->flag_part));
    if (wrong == NULL && strcmp(api->method, "POST") == 0) {
        /* One that is no JSON stays NULL. */
        (void)tide_json_parse(request->body.bytes == 0 ? TIDE_TEXT("{}") : request->body, &body,
                              NULL);
        wrong = body_add(api, body, words);
    }
    return wrong == NULL ? arguments_add(api, request, body, words) : wrong;
}
