/* assistant.yaml (CFG1 to CFG4 of assistant/config/config.h, TRE1 to TRE3 of tree.h; J20, J28).
 *
 * Goal: what is right is read as written, what is wrong is refused with its place and reason, and
 * the configuration that a new user gets works.
 * Method: tables of files; random edits of a complete file, of which each is read or refused with a
 * message; every failing allocation; files in a temporary directory. */
#include "assistant/config/config.h"
#include "assistant/config/tree.h"
#include "base/rng.h"
#include "support/heap.h"
#include "support/ok.h"
#include "support/scale.h"
#include "support/temp_dir.h"
#include "support/test.h"

#include <sys/stat.h>
#include <unistd.h>

#define MODELS "models: {fast: f, better: b}\n"

static const char whole[] =
    "models:\n"
    "  fast: small-1\n"
    "  better: \"large 2\"\n"
    "sync: {fallback_interval_minutes: 5, full_sync_interval_hours: 2, full_sync_days: 60}\n"
    "drafts:\n"
    "  default_style: friendly\n"
    "  rework_limit: 2\n"
    "  quote_original: yes\n"
    "budget:\n"
    "  tokens_per_day: 5000000000\n"
    "triage:\n"
    "  blacklist: ['*@ads.example.com', spam.example]\n"
    "  automated_senders: robot\n"
    "styles:\n"
    "  friendly: |\n"
    "    Short.\n"
    "    Warm.\n"
    "contacts:\n"
    "  senders: {boss@example.com: business}\n"
    "  domains:\n"
    "    '*.gov.cz': business\n"
    "    '*': friendly\n"
    "prompts:\n"
    "  draft: Write well.\n"
    "tools:\n"
    "  orders:\n"
    "    description: Finds orders.\n"
    "    parameters: {type: object, properties: {n: {type: integer, minimum: 1, default: 'x'}},\n"
    "      required: [n], additionalProperties: false}\n"
    "    command: [/bin/orders, --json]\n"
    "    timeout_seconds: 5\n"
    "    output_bytes: 1000\n"
    "  weather:\n"
    "    description: The weather.\n"
    "    url: https://weather.example/now\n"
    "    method: GET\n"
    "profiles:\n"
    "  support:\n"
    "    model: other\n"
    "    max_tokens: 500\n"
    "    temperature: 0.25\n"
    "    max_iterations: 4\n"
    "    system_prompt: You help.\n"
    "    tools: [read_thread, orders, escalate, send_reply]\n"
    "    may_send: true\n"
    "    preprocessor: crisp\n"
    "rules:\n"
    "  - name: helpdesk\n"
    "    when:\n"
    "      sender_domain: crisp.chat\n"
    "      subject_contains: [order, objednávka]\n"
    "      header_match: {X-Mailer: '^crisp', List-Id: .}\n"
    "      forwarded_from: '*@shop.example'\n"
    "    route: agent\n"
    "    profile: support\n"
    "  - name: rest\n"
    "    when: {all: true}\n"
    "    route: pipeline\n";

static tide_status read_with(const char *yaml, const char *const *environment,
                             struct tide_assistant_config **config_out, tide_error *err)
{
    const struct tide_assistant_source source = {
        .path = "assistant.yaml", .yaml = tide_text_of(yaml), .environment = environment};
    return tide_assistant_config_read(&source, tide_mem_heap(), config_out, err);
}

static struct tide_assistant_config *must_read(const char *yaml)
{
    struct tide_assistant_config *config = NULL;
    tide_error err = {TIDE_OK, 0, ""};
    if (read_with(yaml, NULL, &config, &err) != TIDE_OK)
        fail_msg("refused: %s", err.text);
    return config;
}

static void assert_refused(const char *yaml, const char *where, const char *reason)
{
    struct tide_assistant_config *config = NULL;
    tide_error err = {TIDE_OK, 0, ""};
    assert_int_equal(read_with(yaml, NULL, &config, &err), TIDE_INVALID);
    assert_null(config);
    if (strncmp(err.text, where, strlen(where)) != 0 || strstr(err.text, reason) == NULL)
        fail_msg("got \"%s\"\nexpected \"%s ... %s\" for\n%s", err.text, where, reason, yaml);
}

static void assert_is(tide_text text, const char *expected)
{
    if (!tide_text_equal(text, tide_text_of(expected)))
        fail_msg("got \"%.*s\", expected \"%s\"", (int)text.bytes, text.data, expected);
}

/* ---- reading ---- */

TEST(a_file_is_read_as_written)
{
    struct tide_assistant_config *config = must_read(whole);
    assert_is(config->model_fast, "small-1");
    assert_is(config->model_better, "large 2");
    assert_int_equal(config->fallback_interval_minutes, 5);
    assert_int_equal(config->full_sync_interval_hours, 2);
    assert_int_equal(config->full_sync_days, 60);
    assert_int_equal(config->watch_renewal_hours, 24);
    assert_int_equal(config->rework_limit, 2);
    assert_true(config->quote_original);
    assert_true(config->tokens_per_day == 5000000000u);
    assert_int_equal(config->blacklist.count, 2);
    assert_is(config->blacklist.at[1], "spam.example");
    assert_int_equal(config->automated_senders.count, 1);
    assert_int_equal(config->styles_count, 2); /* friendly, and the built-in business */
    assert_is(config->styles[0].text, "Short.\nWarm.\n");
    assert_is(config->styles[config->default_style].name, "friendly");
    assert_is(config->styles[config->senders[0].style].name, "business");
    assert_int_equal(config->domains_count, 2);
    assert_is(config->domains[0].who, "*.gov.cz"); /* in the order of the file */
    assert_is(config->prompts.draft, "Write well.");
    assert_is(config->prompts.classify, "");
    tide_assistant_config_free(config);
}

TEST(agents_and_their_tools_are_read_as_written)
{
    struct tide_assistant_config *config = must_read(whole);
    assert_int_equal(config->tools_count, 2);
    assert_int_equal(config->tools[0].command.count, 2);
    assert_is(config->tools[0].command.at[1], "--json");
    assert_int_equal(config->tools[0].timeout_ms, 5000);
    assert_int_equal(config->tools[0].output_bytes_max, 1000);
    assert_is(config->tools[0].schema,
              "{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\",\"minimum\":1,"
              "\"default\":\"x\"}},\"required\":[\"n\"],\"additionalProperties\":false}");
    assert_is(config->tools[1].url, "https://weather.example/now");
    assert_is(config->tools[1].method, "GET");
    const struct tide_profile *profile = &config->profiles[0];
    assert_is(profile->model, "other");
    assert_true(profile->has_temperature);
    assert_int_equal(profile->temperature_milli, 250);
    assert_int_equal(profile->max_iterations, 4);
    assert_int_equal(profile->builtins, 1u << TIDE_BUILTIN_READ_THREAD |
                                            1u << TIDE_BUILTIN_ESCALATE |
                                            1u << TIDE_BUILTIN_SEND_REPLY);
    assert_int_equal(profile->tools_count, 1);
    assert_int_equal(profile->tools[0], 0);
    assert_int_equal(profile->preprocessor, TIDE_PREPROCESSOR_CRISP);
    const struct tide_rule *rule = &config->rules[0];
    assert_int_equal(config->rules_count, 2);
    assert_int_equal(rule->headers_count, 2);
    assert_true(rule->agent && rule->profile == 0);
    assert_int_equal(rule->subject_contains.count, 2);
    assert_true(config->rules[1].all && !config->rules[1].agent);
    tide_assistant_config_free(config);
}

TEST(all_but_the_models_has_a_default)
{
    struct tide_assistant_config *config = must_read(MODELS "drafts:\nsync:   # nothing\n");
    assert_int_equal(config->fallback_interval_minutes, 15); /* J4 */
    assert_int_equal(config->full_sync_interval_hours, 1);
    assert_int_equal(config->full_sync_days, 10);
    assert_int_equal(config->rework_limit, 3); /* J13 */
    assert_int_equal(config->context_searches, 3);
    assert_int_equal(config->context_threads, 5);
    assert_int_equal(config->context_chars, 2000);
    assert_is(config->styles[config->default_style].name, "business");
    assert_int_equal(config->rules_count, 0);
    assert_true(config->automated_senders.count >= 6);
    tide_assistant_config_free(config);
}

/* ---- the configuration to begin with ---- */

TEST(the_starter_works_and_says_the_truth_about_defaults)
{
    tide_auto_buf yaml = tide_buf_heap(64 << 10);
    OK(tide_assistant_starter(NULL, NULL, "a \"quoted\" name # 1", &yaml));
    struct tide_assistant_config *config = must_read(tide_buf_cstr(&yaml));
    assert_is(config->model_better, "a \"quoted\" name # 1");
    assert_int_equal(config->full_sync_days, 60); /* recommended (J4) */
    assert_int_equal(config->rules_count, 1);
    assert_false(config->rules[0].agent);
    assert_false(config->profiles[0].may_send);

    /* Every commented line without a space after its '#' is a setting: all of them together, too. */
    tide_auto_buf open = tide_buf_heap(64 << 10);
    for (const char *at = tide_buf_cstr(&yaml); *at != '\0';) {
        const size_t bytes = strcspn(at, "\n") + 1;
        const bool setting = at[0] == '#' && at[1] != ' ' && at[1] != '\n';
        const bool indented =
            at[0] == '#' && strncmp(at, "#  ", 3) == 0 && strncmp(at, "#  - ", 5) != 0 &&
            strncmp(at, "#    when", 9) != 0 && strncmp(at, "#      ", 7) != 0 &&
            strncmp(at, "#    route", 10) != 0 && strncmp(at, "#    profile", 12) != 0;
        const size_t skipped = setting || indented ? 1 : 0;
        if (strncmp(at, "  full_sync_days", 16) == 0)
            OK(tide_buf_add_text(&open, "#"));
        OK(tide_buf_add(&open, at + skipped, bytes - skipped));
        at += bytes;
    }
    tide_buf tools = heap_buf(64 << 10); /* what stands below "#tools:" is one example */
    const char *example = strstr(tide_buf_cstr(&yaml), "#tools:");
    assert_non_null(example);
    for (const char *at = example; *at != '\0';) {
        const size_t bytes = strcspn(at, "\n") + 1;
        OK(tide_buf_add(&tools, at + 1, bytes - 1));
        at += bytes;
    }
    char *cut = strstr(open.data, "\ntools:");
    assert_non_null(cut);
    open.bytes = (size_t)(cut + 1 - open.data);
    OK(tide_buf_add(&open, tools.data, tools.bytes));
    struct tide_assistant_config *opened = must_read(tide_buf_cstr(&open));
    struct tide_assistant_config *defaults = must_read(MODELS);
    assert_int_equal(opened->tools_count, 1);
    assert_int_equal(opened->tools[0].timeout_ms, 20000);
    assert_int_equal(opened->watch_renewal_hours, defaults->watch_renewal_hours);
    assert_int_equal(opened->fallback_interval_minutes, defaults->fallback_interval_minutes);
    assert_int_equal(opened->full_sync_interval_hours, defaults->full_sync_interval_hours);
    assert_int_equal(opened->rework_limit, defaults->rework_limit);
    assert_int_equal(opened->draft_max_tokens, defaults->draft_max_tokens);
    assert_int_equal(opened->context_searches, defaults->context_searches);
    assert_int_equal(opened->context_threads, defaults->context_threads);
    assert_int_equal(opened->context_chars, defaults->context_chars);
    assert_int_equal(opened->quote_original, defaults->quote_original);
    assert_true(opened->tokens_per_day == defaults->tokens_per_day);
    assert_int_equal(opened->profiles[0].max_iterations, 10); /* J15 */
    assert_int_equal(opened->automated_senders.count, defaults->automated_senders.count);
    for (size_t i = 0; i < defaults->automated_senders.count; i++)
        assert_true(
            tide_text_equal(opened->automated_senders.at[i], defaults->automated_senders.at[i]));
    assert_int_equal(defaults->full_sync_days, 10);
    tide_assistant_config_free(config);
    tide_assistant_config_free(opened);
    tide_assistant_config_free(defaults);
    tide_buf_done(&tools);
}

/* ---- refusals ---- */

TEST(what_is_wrong_is_refused_with_its_place)
{
    static const struct {
        const char *yaml, *where, *reason;
    } cases[] = {
        {"", "assistant.yaml:1:1", "models.fast is missing"},
        {"models: {fast: f}\n", "assistant.yaml:1:1", "models.better is missing"},
        {"models: {fast: , better: b}\n", "assistant.yaml:1:", "models.fast: has no value"},
        {"models: 5\n", "assistant.yaml:1:9", "expected names and values"},
        {"- a\n", "assistant.yaml:1:1", "expected names and values"},
        {MODELS "synch: {}\n", "assistant.yaml:2:1", "did you mean \"sync\"?"},
        {MODELS "sync:\n  full_sync_day: 3\n", "assistant.yaml:3:3",
         "sync.full_sync_day: there is no setting \"full_sync_day\"; did you mean "
         "\"full_sync_days\"?"},
        {MODELS "sync: {xyzzy: 1}\n", "assistant.yaml:2:8", "there is no setting \"xyzzy\""},
        {MODELS "sync: {full_sync_days: 0}\n", "assistant.yaml:2:24",
         "0 is not between 1 and 3650"},
        {MODELS "sync: {full_sync_days: ten}\n", "assistant.yaml:2:24", "not a whole number"},
        {MODELS "sync: {full_sync_days: -1}\n", "assistant.yaml:2:24", "not a whole number"},
        {MODELS "sync: {full_sync_days: [1]}\n", "assistant.yaml:2:24", "expected one value"},
        {MODELS "drafts: {quote_original: maybe}\n", "assistant.yaml:2:26",
         "neither true nor false"},
        {MODELS "drafts: {default_style: busyness}\n", "assistant.yaml:2:25",
         "did you mean \"business\"?"},
        {MODELS "styles: {'a b': x}\n", "assistant.yaml:2:17", "is not a name"},
        {MODELS "styles: {a: {fil: x}}\n", "assistant.yaml:2:14", "did you mean \"file\"?"},
        {MODELS "styles: {a: {file: ../x}}\n", "assistant.yaml:2:20", "below the folder"},
        {MODELS "styles: {a: {file: /etc/passwd}}\n", "assistant.yaml:2:20", "below the folder"},
        {MODELS "styles: {a: {file: a//b}}\n", "assistant.yaml:2:20", "below the folder"},
        {MODELS "contacts: {senders: {a@b.c: nice}}\n", "assistant.yaml:2:29",
         "there is no style \"nice\""},
        {MODELS "contacts: {senders: {b.c: business}}\n", "assistant.yaml:2:27", "not an address"},
        {MODELS "contacts: {domains: {a@b.c: business}}\n", "assistant.yaml:2:29",
         "is not a domain"},
        {MODELS "triage: {blacklist: [a, [b]]}\n", "assistant.yaml:2:25", "expected one value"},
        {MODELS "rules: {a: b}\n", "assistant.yaml:2:8", "expected a list"},
        {MODELS "rules: [{name: x, when: {all: true}, route: agent}]\n", "assistant.yaml:2:9",
         "no profile"},
        {MODELS "rules: [{name: x, when: {all: true}, route: agent, profile: y}]\n",
         "assistant.yaml:2:61", "there is no profile \"y\""},
        {MODELS "rules: [{name: x, when: {all: true}, route: both}]\n", "assistant.yaml:2:45",
         "neither pipeline nor agent"},
        {MODELS "rules: [{name: x, when: {}, route: pipeline}]\n", "assistant.yaml:2:25",
         "rules[1].when: is empty"},
        {MODELS "rules: [{name: x, route: pipeline}]\n", "assistant.yaml:2:9", "has no when"},
        {MODELS "rules: [{when: {all: true}, route: pipeline}]\n", "assistant.yaml:2:9",
         "has no name"},
        {MODELS "rules: [{name: x, when: {all: false}, route: pipeline}]\n", "assistant.yaml:2:31",
         "can only be true"},
        {MODELS "rules: [{name: x, when: {sender: a}, route: pipeline}]\n", "assistant.yaml:2:26",
         "there is no setting \"sender\""},
        {MODELS "rules: [{name: x, when: {sender_mail: a}, route: pipeline}]\n",
         "assistant.yaml:2:26", "did you mean \"sender_email\"?"},
        {MODELS "rules: [{name: x, when: {subject_contains: []}, route: pipeline}]\n",
         "assistant.yaml:2:44", "never apply"},
        {MODELS "rules: [{name: x, when: {header_match: {A: '(b'}}, route: pipeline}]\n",
         "assistant.yaml:2:44", "rules[1].when.header_match.A: a ( is not closed, at character 3"},
        {MODELS "rules: [{name: x, when: {header_match: {A: '(b)\\1'}}, route: pipeline}]\n",
         "assistant.yaml:2:44", "references to groups"},
        {MODELS "rules: [{name: x, when: {header_match: {'A b': c}}, route: pipeline}]\n",
         "assistant.yaml:2:48", "not the name of a header"},
        {MODELS "rules: [{name: x, when: {all: true}, route: pipeline}, {name: y, when: {all: "
                "true}, route: pipeline}]\n",
         "assistant.yaml:2:56", "never reached: rule x"},
        {MODELS "rules: [{name: x, when: {sender_email: a@b.c}, route: pipeline}, {name: x, when: "
                "{all: true}, route: pipeline}]\n",
         "assistant.yaml:2:73", "earlier rule"},
        {MODELS "profiles: {p: {model: m}}\n", "assistant.yaml:2:15", "no system_prompt"},
        {MODELS "profiles: {p: {system_prompt: s, temperature: 2.5}}\n", "assistant.yaml:2:47",
         "not a number from 0 to 2"},
        {MODELS "profiles: {p: {system_prompt: s, max_iterations: 99}}\n", "assistant.yaml:2:50",
         "not between 1 and 50"},
        {MODELS "profiles: {p: {system_prompt: s, tools: [send_reply]}}\n", "assistant.yaml:2:42",
         "may_send"},
        {MODELS "profiles: {p: {system_prompt: s, tools: [escalat]}}\n", "assistant.yaml:2:42",
         "did you mean \"escalate\"?"},
        {MODELS "tools: {escalate: {description: d, command: [x]}}\n", "assistant.yaml:2:19",
         "built-in"},
        {MODELS "tools: {t: {description: d}}\n", "assistant.yaml:2:12", "a command or a url"},
        {MODELS "tools: {t: {description: d, command: rm -rf}}\n", "assistant.yaml:2:38",
         "no shell"},
        {MODELS "tools: {t: {description: d, url: 'file:///etc'}}\n", "assistant.yaml:2:34",
         "not an http or https URL"},
        {MODELS "tools: {t: {description: d, url: 'http://a b'}}\n", "assistant.yaml:2:34",
         "not an http or https URL"},
        {MODELS "tools: {t: {description: d, command: [x], parameters: {type: array}}}\n",
         "assistant.yaml:2:55", "type: object"},
        {MODELS "tools: {t: {command: [x]}}\n", "assistant.yaml:2:12", "no description"},
        {"a: &x 1\n", "assistant.yaml:1:7", "anchors and tags"},
        {"a: !!str 1\n", "assistant.yaml:1:", "anchors and tags"},
        {"a: *x\n", "assistant.yaml:1:", "aliases are not used"},
        {"a: {b: 1\n", "assistant.yaml:", "not YAML"},
        {"a: 1\na: 2\n", "assistant.yaml:2:1", "\"a\" is given twice, first in line 1"},
        {"--- {}\n--- {}\n", "assistant.yaml:2:1", "second document"},
        {"%YAML 1.1\n", "assistant.yaml:1:1", "directives"},
        {"a: \"\\u0007\"\n", "assistant.yaml:1:4", "control character"},
        {"a: \xff\n", "assistant.yaml:1:4", "not UTF-8"},
        {"a: [[[[[[[[[[[[[[1]]]]]]]]]]]]]]\n", "assistant.yaml:1:15", "nested too deeply"},
        {"? [a]\n: b\n", "assistant.yaml:1:3", "not a plain word"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_refused(cases[i].yaml, cases[i].where, cases[i].reason);
}

TEST(everything_is_bounded)
{
    tide_auto_buf yaml = tide_buf_heap(2 << 20);
    OK(tide_buf_print(&yaml, MODELS "rules:\n"));
    for (int i = 0; i <= TIDE_ASSISTANT_RULES_MAX; i++)
        OK(tide_buf_print(&yaml, "  - {name: r%d, when: {sender_email: a@b.c}, route: pipeline}\n",
                          i));
    assert_refused(tide_buf_cstr(&yaml), "assistant.yaml:3:", "has more than 200 rules");

    tide_buf_clear(&yaml);
    OK(tide_buf_print(&yaml, MODELS "triage:\n  blacklist: ["));
    for (int i = 0; i < TIDE_TREE_CHILDREN_MAX + 1; i++)
        OK(tide_buf_print(&yaml, "a%d, ", i));
    OK(tide_buf_print(&yaml, "b]\n"));
    assert_refused(tide_buf_cstr(&yaml), "assistant.yaml:3:", "the list is too long");

    tide_buf_clear(&yaml);
    OK(tide_buf_print(&yaml, MODELS "styles:\n  long: |\n"));
    for (int i = 0; i < TIDE_ASSISTANT_PROMPT_BYTES_MAX / 64 + 1; i++)
        OK(tide_buf_print(&yaml, "    %064d\n", i));
    assert_refused(tide_buf_cstr(&yaml), "assistant.yaml:", "longer than 65536 bytes");

    tide_buf_clear(&yaml);
    while (yaml.bytes <= TIDE_TREE_BYTES_MAX)
        OK(tide_buf_print(&yaml, "# %060d\n", 0));
    assert_refused(tide_buf_cstr(&yaml), "assistant.yaml:1:1", "too large");

    tide_buf_clear(&yaml);
    OK(tide_buf_print(&yaml, "a:\n"));
    for (int i = 0; i < 15; i++) {
        OK(tide_buf_print(&yaml, "- ["));
        for (int j = 0; j < 1500; j++)
            OK(tide_buf_print(&yaml, "1,"));
        OK(tide_buf_print(&yaml, "1]\n"));
    }
    assert_refused(tide_buf_cstr(&yaml), "assistant.yaml:", "too many entries");
}

/* ---- environment ---- */

TEST(the_environment_wins_also_with_its_former_names)
{
    static const char *const environment[] = {"PATH=/bin",
                                              "GMA_SYNC_FALLBACK_INTERVAL_MINUTES=7",
                                              "GMA_SYNC_FULL_SYNC_INTERVAL_HOURS=3",
                                              "GMA_SYNC_FULL_SYNC_DAYS=90",
                                              "GMA_LLM_CONTEXT_MODEL=ignored",
                                              "GMA_LLM_CLASSIFY_MODEL=quick",
                                              "GMA_LLM_DRAFT_MODEL=ignored-too",
                                              "GMA_MODELS_BETTER=thorough",
                                              "GMA_BUDGET_TOKENS_PER_DAY=0",
                                              "GMA_SYNC_PUBSUB_TOPIC=projects/x/topics/y",
                                              "GMA_SERVER_PORT=4000",
                                              NULL};
    struct tide_assistant_config *config = NULL;
    tide_error err = {TIDE_OK, 0, ""};
    OK(read_with(whole, environment, &config, &err));
    assert_int_equal(config->fallback_interval_minutes, 7);
    assert_int_equal(config->full_sync_interval_hours, 3);
    assert_int_equal(config->full_sync_days, 90);
    assert_is(config->model_fast, "quick");
    assert_is(config->model_better, "thorough");
    assert_true(config->tokens_per_day == 0);
    assert_int_equal(config->rework_limit, 2); /* not in the environment */
    tide_assistant_config_free(config);
}

TEST(a_wrong_variable_is_refused_by_its_name)
{
    static const struct {
        const char *variable, *message;
    } cases[] = {
        {"GMA_SYNC_FULL_SYNC_DAYS=many",
         "environment GMA_SYNC_FULL_SYNC_DAYS: \"many\" is not a whole number"},
        {"GMA_SYNC_FULL_SYNC_DAYS=", "environment GMA_SYNC_FULL_SYNC_DAYS: has no value"},
        {"GMA_SYNC_FULL_SYNC_DAYS=99999",
         "environment GMA_SYNC_FULL_SYNC_DAYS: 99999 is not between 1 and 3650"},
        {"GMA_SYNC_FULL_SYNC_DAY=3", "environment: there is no variable GMA_SYNC_FULL_SYNC_DAY; "
                                     "did you mean GMA_SYNC_FULL_SYNC_DAYS?"},
        {"GMA_MODELS_FAST=a\x01", "environment GMA_MODELS_FAST: is not a text in UTF-8"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *const environment[] = {cases[i].variable, NULL};
        struct tide_assistant_config *config = NULL;
        tide_error err = {TIDE_OK, 0, ""};
        assert_int_equal(read_with(whole, environment, &config, &err), TIDE_INVALID);
        assert_string_equal(err.text, cases[i].message);
    }
}

/* ---- files ---- */

struct place {
    char dir[64];
    char path[128];
};

static void put_file(const struct place *place, const char *name, tide_text content)
{
    FILE *file = fopen(textf("%s/%s", place->dir, name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(content.data, 1, content.bytes, file), content.bytes);
    assert_int_equal(fclose(file), 0);
}

static int place_make(void **state)
{
    struct place *place = calloc(1, sizeof *place);
    assert_non_null(place);
    (void)snprintf(place->dir, sizeof place->dir, "/tmp/tide-assistant-XXXXXX");
    assert_non_null(mkdtemp(place->dir));
    (void)snprintf(place->path, sizeof place->path, "%s/assistant.yaml", place->dir);
    assert_int_equal(mkdir(textf("%s/prompts", place->dir), 0700), 0);
    *state = place;
    return 0;
}

static int place_end(void **state)
{
    struct place *place = *state;
    (void)temp_dir_remove(place->dir);
    free(place);
    return 0;
}

static tide_status load(const struct place *place, struct tide_assistant_config **config_out,
                        tide_error *err)
{
    return tide_assistant_config_load(place->path, NULL, tide_mem_heap(), config_out, err);
}

TEST_ON(a_prompt_can_be_a_file_beside_the_configuration, struct place *place, place_make, place_end)
{
    put_file(place, "prompts/draft.md", TIDE_TEXT("Write.\n"));
    put_file(place, "style.md", TIDE_TEXT("Brief."));
    put_file(place, "assistant.yaml",
             TIDE_TEXT(MODELS "prompts: {draft: {file: prompts/draft.md}}\n"
                              "styles: {brief: {file: style.md}}\n"));
    struct tide_assistant_config *config = NULL;
    tide_error err = {TIDE_OK, 0, ""};
    OK(load(place, &config, &err));
    assert_is(config->prompts.draft, "Write.\n");
    assert_is(config->styles[0].text, "Brief.");
    tide_assistant_config_free(config);
}

TEST_ON(a_file_that_is_missing_large_empty_or_elsewhere_is_refused, struct place *place, place_make,
        place_end)
{
    struct tide_assistant_config *config = NULL;
    tide_error err = {TIDE_OK, 0, ""};
    assert_int_equal(load(place, &config, &err), TIDE_NOT_FOUND);
    char *large = calloc(1, TIDE_ASSISTANT_PROMPT_BYTES_MAX + 1);
    assert_non_null(large);
    memset(large, 'a', TIDE_ASSISTANT_PROMPT_BYTES_MAX + 1);
    put_file(place, "large.md", (tide_text){large, TIDE_ASSISTANT_PROMPT_BYTES_MAX + 1});
    free(large);
    put_file(place, "empty.md", TIDE_TEXT(""));
    put_file(place, "binary.md", TIDE_TEXT("a\0b"));
    assert_int_equal(symlink("/etc/passwd", textf("%s/link.md", place->dir)), 0);
    assert_int_equal(symlink("/etc", textf("%s/linked", place->dir)), 0);
    static const struct {
        const char *name, *reason;
    } cases[] = {
        {"missing.md", "cannot be read"}, {"large.md", "longer than"},
        {"empty.md", "is empty"},         {"binary.md", "not a text"},
        {"link.md", "cannot be read"},    {"linked/passwd", "cannot be read"},
        {"prompts", "cannot be read"},    {"../x", "below the folder"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *yaml = textf(MODELS "prompts:\n  draft:\n    file: %s\n", cases[i].name);
        put_file(place, "assistant.yaml", tide_text_of(yaml));
        assert_int_equal(load(place, &config, &err), TIDE_INVALID);
        const char *where = textf("%s:4:11: prompts.draft.file: ", place->path);
        if (strncmp(err.text, where, strlen(where)) != 0 ||
            strstr(err.text, cases[i].reason) == NULL)
            fail_msg("%s: got \"%s\"", cases[i].name, err.text);
    }
}

/* CFI1 */
TEST_ON(files_that_change_come_or_go_are_noticed, struct place *place, place_make, place_end)
{
    struct tide_assistant_config *config = NULL;
    struct tide_assistant_files files;
    const char *const names[] = {"assistant.yaml", "prompts/draft.md", "missing.md"};
    tide_assistant_files_init(&files, tide_mem_heap());
    assert_true(tide_assistant_files_changed(&files, place->path)); /* none was read */
    put_file(place, "prompts/draft.md", TIDE_TEXT("Write.\n"));
    put_file(place, "assistant.yaml",
             TIDE_TEXT(MODELS "styles: {a: {file: prompts/draft.md}, b: {file: missing.md}}\n"));
    assert_int_equal(
        tide_assistant_config_load_files(place->path, NULL, tide_mem_heap(), &files, &config, NULL),
        TIDE_INVALID);
    const struct tide_assistant_file_seen *seen = files.first;
    for (size_t i = 0; i < 3; i++, seen = seen->next) {
        assert_non_null(seen);
        assert_string_equal(seen->name, names[i]);
        assert_int_equal(seen->there, i < 2);
        assert_int_equal(seen->read, i < 2);
    }
    assert_null(seen);
    assert_false(tide_assistant_files_changed(&files, place->path));
    put_file(place, "missing.md", TIDE_TEXT("Here.\n"));
    assert_true(tide_assistant_files_changed(&files, place->path));
    assert_int_equal(unlink(textf("%s/missing.md", place->dir)), 0);
    assert_false(tide_assistant_files_changed(&files, place->path));
    put_file(place, "prompts/draft.md", TIDE_TEXT("Write more.\n"));
    assert_true(tide_assistant_files_changed(&files, place->path));
    tide_assistant_files_done(&files);
}

/* ---- any input ---- */

/* A complete file with bytes changed, dropped and doubled: read, or refused with a place. */
TEST(a_spoilt_file_is_read_or_refused_with_a_place)
{
    tide_rng rng = tide_rng_seeded(3);
    uint64_t refused = 0, rounds = scaled(20000);
    for (uint64_t round = 0; round < rounds; round++) {
        tide_auto_buf yaml = tide_buf_heap(64 << 10);
        OK(tide_buf_add_text(&yaml, whole));
        for (uint64_t edits = 1 + tide_rng_below(&rng, 3); edits > 0; edits--) {
            const size_t at = tide_rng_below(&rng, yaml.bytes);
            const size_t from = tide_rng_below(&rng, yaml.bytes);
            const size_t count = 1 + tide_rng_below(&rng, 12);
            if (tide_rng_chance(&rng, 1, 2))
                yaml.data[at] = "{}[]:,-#'\"|>&*!%? \nax1\xc3"[tide_rng_below(&rng, 23)];
            else if (at + count <= yaml.bytes && from + count <= yaml.bytes)
                memmove(yaml.data + at, yaml.data + from, count);
        }
        struct tide_assistant_config *config = NULL;
        tide_error err = {TIDE_OK, 0, ""};
        const tide_status rc = read_with(tide_buf_cstr(&yaml), NULL, &config, &err);
        if (rc != TIDE_OK) {
            unsigned line = 0, column = 0;
            assert_int_equal(rc, TIDE_INVALID);
            if (sscanf(err.text, "assistant.yaml:%u:%u: ", &line, &column) != 2 || line == 0)
                fail_msg("no place in \"%s\"", err.text);
            refused++;
        }
        tide_assistant_config_free(config);
    }
    assert_true(refused > rounds / 4 && refused < rounds);
}

TEST(a_failed_allocation_is_reported_and_leaks_nothing)
{
    const struct tide_assistant_source source = {.path = "a.yaml", .yaml = tide_text_of(whole)};
    for (uint64_t fail_at = 0;; fail_at++) {
        struct tide_mem_faulty mem;
        tide_mem_faulty_once(&mem, fail_at);
        struct tide_assistant_config *config = NULL;
        tide_error err = {TIDE_OK, 0, ""};
        const tide_status rc = tide_assistant_config_read(&source, &mem.base, &config, &err);
        tide_assistant_config_free(config);
        assert_int_equal(mem.bytes_live, 0);
        assert_int_equal(rc, mem.fired ? TIDE_NO_MEMORY : TIDE_OK);
        if (!mem.fired)
            break;
    }
}
