#include "cloudbox/serve/options.h"

#include "base/check.h"
#include "base/clocktext.h"
#include "cloudbox/gate/clock.h"
#include "cloudbox/graph/graph.h"
#include "cloudbox/mailbox/mail.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>

typedef tide_status take_option(struct box_settings *settings, tide_text value, tide_error *err);

struct option {
    const char *name;
    const char *argument; /* NULL: takes none */
    const char *help;
    take_option *take; /* NULL: `at` is the place of a bool, or of a number from low to high */
    size_t at;
    uint32_t low, high;
};

/* ---- pieces of values ---- */

static bool split_first(tide_text text, char at, tide_text *left_out, tide_text *right_out)
{
    const char *found = text.bytes == 0 ? NULL : memchr(text.data, at, text.bytes);
    if (found == NULL)
        return false;
    size_t left = (size_t)(found - text.data);
    *left_out = (tide_text){text.data, left};
    *right_out = (tide_text){found + 1, text.bytes - left - 1};
    return true;
}

static bool split_last(tide_text text, char at, tide_text *left_out, tide_text *right_out)
{
    const char *found = text.bytes == 0 ? NULL : memrchr(text.data, at, text.bytes);
    if (found == NULL)
        return false;
    size_t left = (size_t)(found - text.data);
    *left_out = (tide_text){text.data, left};
    *right_out = (tide_text){found + 1, text.bytes - left - 1};
    return true;
}

/* Cuts ",name=VALUE" from the end of `text`; false: it is not there. */
static bool cut_suffix(tide_text *text, const char *name, tide_text *value_out)
{
    tide_text head, tail;
    size_t name_bytes = strlen(name);
    if (!split_last(*text, ',', &head, &tail) || tail.bytes <= name_bytes ||
        memcmp(tail.data, name, name_bytes) != 0 || tail.data[name_bytes] != '=')
        return false;
    *text = head;
    *value_out = (tide_text){tail.data + name_bytes + 1, tail.bytes - name_bytes - 1};
    return true;
}

static bool is_email(tide_text text)
{
    tide_text local, domain;
    if (text.bytes > 254 || !split_last(text, '@', &local, &domain))
        return false;
    for (size_t i = 0; i < text.bytes; i++)
        if (text.data[i] <= ' ' || text.data[i] == ',' || text.data[i] == '/')
            return false;
    return local.bytes > 0 && domain.bytes > 0;
}

static tide_status refuse(tide_error *err, const char *option, tide_text value, const char *wanted)
{
    return tide_error_set(err, TIDE_INVALID, "--%s %.*s: %s", option,
                          (int)(value.bytes < 120 ? value.bytes : 120), value.data, wanted);
}

static tide_status take_number(const char *option, tide_text value, uint64_t low, uint64_t high,
                               uint64_t *number_out, tide_error *err)
{
    uint64_t number = 0;
    if (!tide_text_to_u64(value, &number) || number < low || number > high) {
        char wanted[100];
        (void)snprintf(wanted, sizeof wanted, "give a number from %" PRIu64 " to %" PRIu64, low,
                       high);
        return refuse(err, option, value, wanted);
    }
    *number_out = number;
    return TIDE_OK;
}

static tide_status take_u32(const char *option, tide_text value, uint32_t low, uint32_t high,
                            uint32_t *number_out, tide_error *err)
{
    uint64_t number = 0;
    tide_status rc = take_number(option, value, low, high, &number, err);
    if (rc == TIDE_OK)
        *number_out = (uint32_t)number;
    return rc;
}

void box_settings_add(struct box_setting_list *list, const struct box_setting *item)
{
    TIDE_ASSERT(TIDE_GROW(list->items, list->capacity, list->count + 1, BOX_SETTINGS_MAX));
    list->items[list->count++] = *item;
}

static tide_status list_add(const char *option, struct box_setting_list *list,
                            const struct box_setting *item, tide_error *err)
{
    if (list->count == BOX_SETTINGS_MAX)
        return tide_error_set(err, TIDE_INVALID, "--%s: at most %d of them", option,
                              BOX_SETTINGS_MAX);
    box_settings_add(list, item);
    return TIDE_OK;
}

static char *copy_text(tide_text text)
{
    char *copy = strndup(text.data, text.bytes);
    TIDE_ASSERT(copy != NULL);
    return copy;
}

/* ---- where to listen ---- */

static bool is_loopback(const char *host)
{
    struct in_addr v4;
    struct in6_addr v6;
    if (strcmp(host, "localhost") == 0)
        return true;
    if (inet_pton(AF_INET, host, &v4) == 1)
        return (ntohl(v4.s_addr) >> 24) == 127;
    return inet_pton(AF_INET6, host, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

static bool is_address(const char *host)
{
    struct in6_addr any;
    return strcmp(host, "localhost") == 0 || inet_pton(AF_INET, host, &any) == 1 ||
           inet_pton(AF_INET6, host, &any) == 1;
}

static tide_status take_listen(struct box_settings *settings, tide_text value, tide_error *err)
{
    static const char wanted[] = "give ADDRESS:PORT, as 127.0.0.1:8080 or [::1]:8080; port 0 "
                                 "picks a free one";
    tide_text host = TIDE_TEXT("127.0.0.1");
    tide_text port = value;
    (void)split_last(value, ':', &host, &port);
    if (host.bytes >= 2 && host.data[0] == '[' && host.data[host.bytes - 1] == ']')
        host = (tide_text){host.data + 1, host.bytes - 2};
    uint64_t number = 0;
    if (!tide_text_to_u64(port, &number) || number > 65535 || host.bytes == 0 ||
        host.bytes >= sizeof settings->host)
        return refuse(err, "listen", value, wanted);
    memcpy(settings->host, host.data, host.bytes);
    settings->host[host.bytes] = '\0';
    settings->port = (uint16_t)number;
    return is_address(settings->host) ? TIDE_OK : refuse(err, "listen", value, wanted);
}

static tide_status take_tls(struct box_settings *settings, tide_text value, tide_error *err)
{
    tide_text cert, key;
    if (!split_last(value, ',', &cert, &key) || cert.bytes == 0 || key.bytes == 0)
        return refuse(err, "tls", value, "give CERT,KEY, two PEM files");
    free(settings->tls_cert);
    free(settings->tls_key);
    settings->tls_cert = copy_text(cert);
    settings->tls_key = copy_text(key);
    return TIDE_OK;
}

static tide_status take_public(struct box_settings *settings, tide_text value, tide_error *err)
{
    (void)value, (void)err;
    settings->public_count++;
    return TIDE_OK;
}

/* ---- rules of the cloud ---- */

static tide_status take_quota(struct box_settings *settings, tide_text value, tide_error *err)
{
    if (tide_text_equal(value, TIDE_TEXT("2026")))
        settings->cloud.quota = BOX_QUOTA_2026;
    else if (tide_text_equal(value, TIDE_TEXT("legacy")))
        settings->cloud.quota = BOX_QUOTA_LEGACY;
    else if (tide_text_equal(value, TIDE_TEXT("off")))
        settings->cloud.quota = BOX_QUOTA_OFF;
    else
        return refuse(err, "quota", value, "give 2026, legacy or off");
    return TIDE_OK;
}

static tide_status take_latency(struct box_settings *settings, tide_text value, tide_error *err)
{
    tide_text base = value, jitter = TIDE_TEXT("0");
    (void)split_first(value, ',', &base, &jitter);
    tide_status rc = take_u32("latency", base, 0, 600000, &settings->cloud.latency_ms, err);
    if (rc == TIDE_OK)
        rc = take_u32("latency", jitter, 0, 600000, &settings->cloud.jitter_ms, err);
    return rc;
}

static tide_status take_history_days(struct box_settings *settings, tide_text value,
                                     tide_error *err)
{
    uint64_t days = 0;
    tide_status rc = take_number("history-days", value, 1, 36500, &days, err);
    if (rc == TIDE_OK)
        settings->cloud.history_keep_ms = days * 86400000;
    return rc;
}

static tide_status take_seed(struct box_settings *settings, tide_text value, tide_error *err)
{
    settings->seed_given = true;
    return take_number("seed", value, 0, UINT64_MAX, &settings->cloud.seed, err);
}

static tide_status take_clock(struct box_settings *settings, tide_text value, tide_error *err)
{
    uint64_t unix_ms = 0;
    if ((!tide_text_to_u64(value, &unix_ms) && !tide_time_parse(value, &unix_ms)) || unix_ms == 0 ||
        unix_ms > BOX_CLOCK_MS_MAX)
        return refuse(err, "clock", value,
                      "give milliseconds since 1970 or a time as 2026-05-04T03:02:01Z");
    settings->cloud.start_unix_ms = unix_ms;
    return TIDE_OK;
}

/* ---- what is in it ---- */

static tide_status take_mailbox(struct box_settings *settings, tide_text value, tide_error *err)
{
    static const char wanted[] = "give EMAIL=MESSAGES or EMAIL=MESSAGES,size=BYTES";
    struct box_setting item = {.left = TIDE_TEXT_NONE};
    tide_text rest = value, size, count;
    if (cut_suffix(&rest, "size", &size)) {
        uint64_t bytes;
        if (!tide_size_parse(size, &bytes) || bytes < BOX_MAILBOX_SIZE_MIN ||
            bytes > BOX_MAILBOX_SIZE_MAX)
            return refuse(err, "mailbox", value, "a size is from 1000 bytes to 50 MiB");
        item.size_bytes = (uint32_t)bytes;
    }
    if (!split_last(rest, '=', &item.left, &count) || !is_email(item.left))
        return refuse(err, "mailbox", value, wanted);
    tide_status rc = take_u32("mailbox", count, 0, BOX_MAILBOX_MESSAGES_MAX, &item.number, err);
    for (size_t i = 0; rc == TIDE_OK && i < settings->mailboxes.count; i++)
        if (tide_text_equal(settings->mailboxes.items[i].left, item.left))
            return refuse(err, "mailbox", value, "this address was given twice");
    return rc == TIDE_OK ? list_add("mailbox", &settings->mailboxes, &item, err) : rc;
}

static tide_status take_drive(struct box_settings *settings, tide_text value, tide_error *err)
{
    struct box_setting item = {.left = TIDE_TEXT_NONE};
    tide_text rest = value, size, count;
    uint64_t bytes = 0;
    item.business = rest.bytes > 9 && memcmp(rest.data + rest.bytes - 9, ",business", 9) == 0;
    rest.bytes -= item.business ? 9 : 0;
    if (cut_suffix(&rest, "size", &size) &&
        (!tide_size_parse(size, &bytes) || bytes > BOX_DRIVE_FILE_BYTES))
        return refuse(err, "drive", value, "a size is up to 250 GiB");
    item.size_bytes = bytes;
    if (!split_last(rest, '=', &item.left, &count) || !is_email(item.left))
        return refuse(err, "drive", value, "give EMAIL=FILES[,size=BYTES][,business]");
    tide_status rc = take_u32("drive", count, 0, BOX_FILES_MAX, &item.number, err);
    for (size_t i = 0; rc == TIDE_OK && i < settings->drives.count; i++)
        if (tide_text_equal(settings->drives.items[i].left, item.left))
            return refuse(err, "drive", value, "this address was given twice");
    return rc == TIDE_OK ? list_add("drive", &settings->drives, &item, err) : rc;
}

static tide_status take_corpus(struct box_settings *settings, tide_text value, tide_error *err)
{
    struct box_setting item = {.left = TIDE_TEXT_NONE};
    if (!split_first(value, '=', &item.left, &item.right) || !is_email(item.left)) {
        item.left = TIDE_TEXT_NONE;
        item.right = value;
    }
    if (item.right.bytes == 0)
        return refuse(err, "corpus", value, "give a directory, or EMAIL=DIRECTORY");
    return list_add("corpus", &settings->corpora, &item, err);
}

static tide_status take_token(struct box_settings *settings, tide_text value, tide_error *err)
{
    struct box_setting item = {.left = TIDE_TEXT_NONE};
    if (!split_last(value, '=', &item.left, &item.right) || item.left.bytes == 0 ||
        !is_email(item.right))
        return tide_error_set(err, TIDE_INVALID, "--token: give TOKEN=EMAIL");
    return list_add("token", &settings->tokens, &item, err);
}

static tide_status take_site(struct box_settings *settings, tide_text value, tide_error *err)
{
    struct box_setting item = {.number = 0};
    tide_text rest = value, rows;
    if (cut_suffix(&rest, "rows", &rows)) {
        tide_status rc = take_u32("site", rows, 1, 10000000, &item.number, err);
        if (rc != TIDE_OK)
            return rc;
    }
    if (!split_last(rest, '=', &item.left, &item.right) || item.left.bytes == 0 ||
        !is_email(item.right))
        return refuse(err, "site", value,
                      "give SITE=EMAIL, as sc-domain:example.com=demo@example.com");
    return list_add("site", &settings->sites, &item, err);
}

static tide_status take_topic(struct box_settings *settings, tide_text value, tide_error *err)
{
    struct box_setting item = {.left = TIDE_TEXT_NONE};
    if (!split_first(value, '=', &item.left, &item.right) || item.left.bytes == 0 ||
        item.right.bytes < 8 ||
        (memcmp(item.right.data, "http://", 7) != 0 && memcmp(item.right.data, "https://", 8) != 0))
        return refuse(err, "topic", value, "give projects/P/topics/T=http://...");
    return list_add("topic", &settings->topics, &item, err);
}

static tide_status take_fault(struct box_settings *settings, tide_text value, tide_error *err)
{
    struct box_setting item = {.left = value};
    if (value.bytes == 0 ||
        (value.data[0] != '{' && (!split_first(value, '=', &item.left, &item.right) ||
                                  item.left.bytes == 0 || item.right.bytes == 0)))
        return refuse(
            err, "fault", value,
            "give METHOD=FAULT or METHOD=FAULT@RATE, as gmail.*=503@0.01, or a JSON rule");
    tide_auto_buf json = tide_buf_heap(BOX_TARGET_BYTES_MAX);
    tide_status rc = box_settings_fault(&item, &json, err);
    return rc == TIDE_OK ? list_add("fault", &settings->faults, &item, err) : rc;
}

static tide_status take_service_account(struct box_settings *settings, tide_text value,
                                        tide_error *err)
{
    struct box_setting item = {.left = TIDE_TEXT_NONE};
    if (!split_first(value, '=', &item.left, &item.right) || !is_email(item.left) ||
        item.right.bytes == 0)
        return refuse(err, "service-account", value, "give EMAIL=FILE; its key is written to FILE");
    return list_add("service-account", &settings->service_accounts, &item, err);
}

static tide_status take_state(struct box_settings *settings, tide_text value, tide_error *err)
{
    if (value.bytes == 0)
        return refuse(err, "state", value, "give a file");
    settings->state = value.data; /* the rest of an argument, hence terminated */
    return TIDE_OK;
}

/* ---- the program ---- */

#define AT(field) offsetof(struct box_settings, field)
static const struct option options[] = {
    {"listen", "ADDRESS:PORT", "where to serve (127.0.0.1:8080); port 0 picks a free one",
     .take = take_listen},
    {"public", NULL, "needed twice to listen beyond loopback", .take = take_public},
    {"tls", "CERT,KEY", "serve https with these two PEM files", .take = take_tls},
    {"mailbox", "EMAIL=N[,size=BYTES]", "a user with N generated messages; may be repeated",
     .take = take_mailbox},
    {"corpus", "[EMAIL=]DIR", "real messages: every .eml, .msg and .txt below DIR",
     .take = take_corpus},
    {"drive", "EMAIL=N[,size=BYTES][,business]",
     "N generated files in the user's OneDrive, personal or of a business; may be repeated",
     .take = take_drive},
    {"token", "TOKEN=EMAIL", "a bearer token that never expires and may do everything",
     .take = take_token},
    {"service-account", "EMAIL=FILE", "make a service account and write its key to FILE",
     .take = take_service_account},
    {"site", "SITE=EMAIL[,rows=N]", "a Search Console property with N rows a day",
     .take = take_site},
    {"topic", "TOPIC=URL", "where the notifications of a Pub/Sub topic are pushed",
     .take = take_topic},
    {"quota", "2026|legacy|off", "whose quota holds (2026)", .take = take_quota},
    {"concurrency", "N", "calls in flight per Gmail user (10)", .at = AT(cloud.concurrency_max),
     .low = 1, .high = 1000000},
    {"fault", "JSON|METHOD=FAULT[@RATE]", "what goes wrong, and how often; may be repeated",
     .take = take_fault},
    {"latency", "MS[,JITTER]", "how long every API call takes (0)", .take = take_latency},
    {"batch-serial", NULL, "serve the parts of a batch one after another",
     .at = AT(cloud.batch_serial)},
    {"auto-consent", NULL, "the sign-in page agrees by itself", .at = AT(cloud.auto_consent)},
    {"list-inversions", "PERMILLE", "neighbours swapped in a listing (0)",
     .at = AT(cloud.list_inversions_permille), .low = 0, .high = 1000},
    {"history-days", "N", "how long history is kept (7)", .take = take_history_days},
    {"token-life", "SECONDS", "life of an access token (3599)", .at = AT(cloud.token_life_s),
     .low = 1, .high = 366 * 86400},
    {"seed", "N", "where all chance comes from (1)", .take = take_seed},
    {"clock", "TIME", "the cloud's time at the start, as unix milliseconds or ISO 8601 (now)",
     .take = take_clock},
    {"state", "FILE", "keep every change in FILE and take it up again", .take = take_state},
    {"quiet", NULL, "print nothing but the ready line and errors", .at = AT(quiet)},
    {"verbose", NULL, "print a line for every request", .at = AT(verbose)},
    {"completion", NULL, "print the bash completion", .at = AT(completion)},
    {"help", NULL, "show this help", .at = AT(help)},
    {"version", NULL, "show the version", .at = AT(version)},
};

enum { OPTIONS_COUNT = sizeof options / sizeof options[0] };

static const struct option *option_find(tide_text name)
{
    for (size_t i = 0; i < OPTIONS_COUNT; i++)
        if (tide_text_equal(name, tide_text_of(options[i].name)))
            return &options[i];
    return NULL;
}

static tide_status unknown_option(tide_text name, tide_error *err)
{
    const char *nearest = NULL;
    size_t best = name.bytes / 2 + 2;
    for (size_t i = 0; i < OPTIONS_COUNT; i++) {
        size_t distance = tide_text_distance(name, tide_text_of(options[i].name));
        if (distance < best) {
            best = distance;
            nearest = options[i].name;
        }
    }
    int shown = (int)(name.bytes < 60 ? name.bytes : 60);
    if (nearest == NULL)
        return tide_error_set(err, TIDE_INVALID, "there is no option --%.*s", shown, name.data);
    return tide_error_set(err, TIDE_INVALID, "there is no option --%.*s; did you mean --%s?", shown,
                          name.data, nearest);
}

static tide_status take_argument(int argc, char *const *argv, int *index,
                                 struct box_settings *settings, tide_error *err)
{
    const char *word = argv[*index];
    if (word[0] != '-' || word[1] != '-' || word[2] == '\0')
        return tide_error_set(err, TIDE_INVALID, "unexpected \"%.60s\"; options have two dashes",
                              word);
    tide_text name = tide_text_of(word + 2), value = TIDE_TEXT_NONE;
    bool has_value = split_first(name, '=', &name, &value);
    const struct option *option = option_find(name);
    if (option == NULL)
        return unknown_option(name, err);
    if (option->argument == NULL && has_value)
        return tide_error_set(err, TIDE_INVALID, "--%s takes no value", option->name);
    if (option->argument != NULL && !has_value) {
        if (*index + 1 >= argc)
            return tide_error_set(err, TIDE_INVALID, "--%s needs a value: %s", option->name,
                                  option->argument);
        value = tide_text_of(argv[++*index]);
    }
    if (option->take != NULL)
        return option->take(settings, value, err);
    void *at = (char *)settings + option->at;
    if (option->argument != NULL)
        return take_u32(option->name, value, option->low, option->high, at, err);
    *(bool *)at = true;
    return TIDE_OK;
}

static tide_status check_together(const struct box_settings *settings, tide_error *err)
{
    if (settings->quiet && settings->verbose)
        return tide_error_set(err, TIDE_INVALID, "--quiet and --verbose exclude each other");
    if (!is_loopback(settings->host) && settings->public_count < 2)
        return tide_error_set(err, TIDE_INVALID,
                              "--listen %s reaches beyond this machine, where anyone could read "
                              "and change what is in the cloud; give --public twice if you mean it",
                              settings->host);
    return TIDE_OK;
}

tide_status box_settings_parse(int argc, char *const *argv, struct box_settings *settings,
                               tide_error *err)
{
    *settings = (struct box_settings){
        .cloud = {.seed = 1, .quota = BOX_QUOTA_2026}, .host = "127.0.0.1", .port = 8080};
    for (int i = 1; i < argc; i++) {
        tide_status rc = take_argument(argc, argv, &i, settings, err);
        if (rc != TIDE_OK)
            return rc;
    }
    settings->demo = settings->mailboxes.count == 0 && settings->corpora.count == 0;
    return check_together(settings, err);
}

static void list_done(struct box_setting_list *list)
{
    tide_mem_free(tide_mem_heap(), list->items, list->capacity * sizeof *list->items);
}

void box_settings_done(struct box_settings *settings)
{
    list_done(&settings->mailboxes);
    list_done(&settings->drives);
    list_done(&settings->corpora);
    list_done(&settings->tokens);
    list_done(&settings->sites);
    list_done(&settings->topics);
    list_done(&settings->faults);
    list_done(&settings->service_accounts);
    free(settings->tls_cert);
    free(settings->tls_key);
}

/* METHOD=FAULT[@RATE] in the words of cloudbox/gate/faults.h. */
tide_status box_settings_fault(const struct box_setting *fault, tide_buf *json_out, tide_error *err)
{
    if (fault->right.data == NULL) {
        box_add(json_out, fault->left.data, fault->left.bytes);
        return TIDE_OK;
    }
    tide_text name = fault->right, rate = TIDE_TEXT("1");
    (void)split_last(fault->right, '@', &name, &rate);
    char number[32], *end = NULL;
    double value = -1;
    if (rate.bytes > 0 && rate.bytes < sizeof number) {
        memcpy(number, rate.data, rate.bytes);
        number[rate.bytes] = '\0';
        value = strtod(number, &end);
    }
    if (end == NULL || end == number || *end != '\0' || !(value >= 0 && value <= 1))
        return refuse(err, "fault", fault->right, "a rate is from 0 to 1");
    box_add_cstr(json_out, "{\"method\":");
    box_add_json_text(json_out, fault->left);
    box_add_cstr(json_out, ",\"fault\":");
    box_add_json_text(json_out, name);
    box_print(json_out, ",\"rate\":%.9g}", value);
    return TIDE_OK;
}

void box_settings_help(FILE *out)
{
    fprintf(out,
            "usage: tidemark-cloud [OPTION]...\n\n"
            "A cloud in a box: Gmail, Search Console, Google sign-in and a chat model on this\n"
            "machine, with their quotas and, on request, their failures.  When it serves it\n"
            "prints one line, \"ready http://ADDRESS:PORT\".\n\n");
    for (size_t i = 0; i < OPTIONS_COUNT; i++) {
        char left[64];
        (void)snprintf(left, sizeof left, "--%s%s%s", options[i].name,
                       options[i].argument == NULL ? "" : " ",
                       options[i].argument == NULL ? "" : options[i].argument);
        fprintf(out, "  %-36s %s\n", left, options[i].help);
    }
    fprintf(out,
            "\nWithout --mailbox and --corpus there is one user, %s, with 1,000\n"
            "messages and the token %s:\n\n"
            "  curl -H 'Authorization: Bearer %s' \\\n"
            "    http://127.0.0.1:8080/gmail/v1/users/me/messages\n",
            BOX_DEMO_EMAIL, BOX_DEMO_TOKEN, BOX_DEMO_TOKEN);
}

void box_settings_completion(FILE *out)
{
    fprintf(out,
            "# bash completion for tidemark-cloud, printed by tidemark-cloud --completion\n"
            "_tidemark_cloud() {\n"
            "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
            "    case $before in\n"
            "    --quota) COMPREPLY=($(compgen -W '2026 legacy off' -- \"$word\")); return ;;\n"
            "    --state|--tls|--corpus) COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n"
            "    esac\n"
            "    COMPREPLY=($(compgen -W '");
    for (size_t i = 0; i < OPTIONS_COUNT; i++)
        fprintf(out, "%s--%s", i == 0 ? "" : " ", options[i].name);
    fprintf(out, "' -- \"$word\"))\n}\ncomplete -F _tidemark_cloud tidemark-cloud\n");
}
