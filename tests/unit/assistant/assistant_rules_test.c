/* The router and the triage (RTR1, RTR2 of rules/router.h; TRG1, TRG2 of rules/triage.h; J8, J10,
 * J21).
 *
 * Goal: the first rule whose conditions all hold decides, and says why; a message that a program
 * sent is never to be answered.
 * Method: tables of rules and messages; all combinations of triage and answer; random messages
 * against random rules, with a second, simple matcher as the model. */
#include "assistant/rules/router.h"
#include "assistant/rules/triage.h"
#include "base/rng.h"
#include "support/heap.h"
#include "support/scale.h"
#include "letters.h"

#define MODELS "models: {fast: f, better: b}\n"

static struct tide_assistant_config *config_of(const char *yaml)
{
    const struct tide_assistant_source source = {.path = "a.yaml", .yaml = tide_text_of(yaml)};
    struct tide_assistant_config *config = NULL;
    tide_error err = {TIDE_OK, 0, ""};
    if (tide_assistant_config_read(&source, tide_mem_heap(), &config, &err) != TIDE_OK)
        fail_msg("refused: %s", err.text);
    return config;
}

/* ---- the router ---- */

/* Whether a rule with these conditions applies to a message. */
static bool applies(const char *when, const char *raw)
{
    tide_auto_buf yaml = tide_buf_heap(4096);
    OK(tide_buf_print(&yaml, MODELS "rules: [{name: r, when: {%s}, route: pipeline}]\n", when));
    struct tide_assistant_config *config = config_of(tide_buf_cstr(&yaml));
    tide_auto_arena arena = tide_arena_heap(16 << 20);
    const struct tide_letter letter = letter_of(&arena, raw);
    struct tide_route route;
    tide_route_choose(config, &letter, &route);
    const bool chosen = route.rule != NULL;
    assert_int_equal(chosen, tide_rule_applies(&config->rules[0], &letter, NULL, NULL));
    assert_true(route.why[0] != '\0');
    tide_assistant_config_free(config);
    return chosen;
}

#define ANN "From: Ann Lee <Ann@Mail.Example.com>\r\n"

TEST(each_condition_asks_what_its_name_says)
{
    static const struct {
        const char *when, *raw;
        bool applies;
    } cases[] = {
        {"all: true", "\r\n", true},
        {"sender_email: ann@mail.example.com", ANN "\r\n", true},
        {"sender_email: ann@example.com", ANN "\r\n", false},
        {"sender_email: [x@y.z, '*@mail.example.com']", ANN "\r\n", true},
        {"sender_domain: mail.example.com", ANN "\r\n", true},
        {"sender_domain: example.com", ANN "\r\n", false},
        {"sender_domain: '*.example.com'", ANN "\r\n", true},
        {"sender_domain: '*'", "From: nobody\r\n\r\n", false},
        /* The name of a sender is not the address. */
        {"sender_email: boss@example.com", "From: \"boss@example.com\" <evil@x.org>\r\n\r\n",
         false},
        {"subject_contains: FAKTURA", "Subject: =?utf-8?Q?Va=C5=A1e_faktura?=\r\n\r\n", true},
        {"subject_contains: \"VA\xc5\xa0"
         "E\"",
         "Subject: =?utf-8?Q?Va=C5=A1e_faktura?=\r\n\r\n", true},
        {"subject_contains: [a, b]", "Subject: xyz\r\n\r\n", false},
        {"header_match: {x-mailer: '^crisp'}", "X-Mailer: Crisp 2\r\n\r\n", true},
        {"header_match: {X-Mailer: '^crisp'}", "X-Mailer: not crisp\r\n\r\n", false},
        {"header_match: {X-A: '1', X-B: '2'}", "X-A: 1\r\n\r\n", false},
        {"header_match: {X-A: '1', X-B: '2'}", "X-A: 1\r\nX-B: 2\r\n\r\n", true},
        {"header_match: {X-A: '2'}", "X-A: 1\r\nX-A: 2\r\n\r\n", true}, /* any of that name */
        {"header_match: {X-A: '.'}", "X-A: \r\n\r\n", false},
        {"forwarded_from: a@b.cz", "X-Forwarded-From: A@B.cz\r\n\r\n", true},
        {"forwarded_from: a@b.cz", "Reply-To: Shop <a@b.cz>\r\n\r\n", true},
        {"forwarded_from: a@b.cz", "From: a@b.cz\r\n\r\n", true},
        {"forwarded_from: a@b.cz", "From: x@y.z\r\n\r\nSent by (a@b.cz).\r\n", true},
        {"forwarded_from: a@b.cz", "From: x@y.z\r\n\r\nSent by aa@b.cz.\r\n", false},
        {"forwarded_from: a@b.cz", "From: x@y.z\r\n\r\nSent by a@b.cz.org\r\n", false},
        {"forwarded_from: b.cz", "From: x@y.z\r\n\r\nSent by aa@b.cz.\r\n", true},
        {"sender_domain: mail.example.com, subject_contains: x", ANN "Subject: y\r\n\r\n", false},
        {"sender_domain: mail.example.com, subject_contains: x", ANN "Subject: x\r\n\r\n", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (applies(cases[i].when, cases[i].raw) != cases[i].applies)
            fail_msg("case %zu: when {%s}, message\n%s", i, cases[i].when, cases[i].raw);
}

static const char two_rules[] =
    MODELS "profiles: {shop: {system_prompt: s}, vip: {system_prompt: s}}\n"
           "rules:\n"
           "  - {name: orders, when: {subject_contains: order}, route: agent, profile: shop}\n"
           "  - {name: vip, when: {sender_email: ann@example.com}, route: agent, profile: vip}\n"
           "  - {name: quiet, when: {sender_domain: example.com}, route: pipeline}\n";

TEST(the_first_rule_that_applies_decides_and_says_why)
{
    static const struct {
        const char *raw, *rule, *profile, *why;
    } cases[] = {
        {"From: ann@example.com\r\nSubject: My Order\r\n\r\n", "orders", "shop",
         "rule orders: the subject contains \"order\": the agent shop"},
        {"From: ann@example.com\r\nSubject: Hello\r\n\r\n", "vip", "vip",
         "rule vip: the sender is ann@example.com: the agent vip"},
        {"From: bob@example.com\r\n\r\n", "quiet", NULL,
         "rule quiet: the sender is bob@example.com: the pipeline"},
        {"From: bob@example.org\r\n\r\n", NULL, NULL, "no rule applies: the pipeline"},
    };
    struct tide_assistant_config *config = config_of(two_rules);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tide_auto_arena arena = tide_arena_heap(16 << 20);
        const struct tide_letter letter = letter_of(&arena, cases[i].raw);
        struct tide_route route;
        tide_route_choose(config, &letter, &route);
        assert_string_equal(route.why, cases[i].why);
        assert_int_equal(route.rule == NULL, cases[i].rule == NULL);
        if (route.rule != NULL)
            assert_says(route.rule->name, cases[i].rule);
        assert_int_equal(route.profile == NULL, cases[i].profile == NULL);
        if (route.profile != NULL)
            assert_says(route.profile->name, cases[i].profile);
    }
    tide_assistant_config_free(config);
}

static void add_word(void *arg, const char *condition, bool holds, const char *why)
{
    tide_buf *out = arg;
    OK(tide_buf_print(out, "%s %s: %s\n", condition, holds ? "yes" : "no", why));
}

TEST(every_condition_of_a_rule_is_explained)
{
    struct tide_assistant_config *config = config_of(
        MODELS "rules: [{name: r, when: {sender_email: x@y.z, subject_contains: order,\n"
               "  header_match: {X-A: b, X-B: c}, forwarded_from: s@t.u}, route: pipeline}]\n");
    tide_auto_arena arena = tide_arena_heap(16 << 20);
    const struct tide_letter letter =
        letter_of(&arena, ANN "Subject: order\r\nX-A: a\r\n\r\nfrom s@t.u\r\n");
    tide_auto_buf words = tide_buf_heap(4096);
    assert_false(tide_rule_applies(&config->rules[0], &letter, add_word, &words));
    assert_string_equal(tide_buf_cstr(&words),
                        "sender_email no: the sender is Ann@Mail.Example.com\n"
                        "subject_contains yes: the subject contains \"order\"\n"
                        "header_match no: the header X-A does not fit\n"
                        "header_match no: there is no header X-B\n"
                        "forwarded_from yes: the text has s@t.u\n");
    const struct tide_letter unsigned_letter = letter_of(&arena, "Subject: x\r\n\r\ntext\r\n");
    tide_buf_clear(&words);
    assert_false(tide_rule_applies(&config->rules[0], &unsigned_letter, add_word, &words));
    assert_non_null(strstr(tide_buf_cstr(&words), "sender_email no: the sender is unknown\n"));
    tide_assistant_config_free(config);
}

/* Rules and messages of few words, so that all outcomes are common. */
TEST(the_router_agrees_with_a_simple_one)
{
    tide_rng rng = tide_rng_seeded(5);
    static const char *const names[] = {"ann", "bob"}, *const hosts[] = {"a.cz", "b.cz"},
                             *const words[] = {"order", "hello", "ORDER hello"};
    for (uint64_t round = 0; round < scaled(2000); round++) {
        tide_auto_buf yaml = tide_buf_heap(4096);
        OK(tide_buf_print(&yaml, MODELS "rules:\n"));
        struct {
            int name, host, word; /* -1: not asked */
        } rules[3];
        for (int i = 0; i < 3; i++) {
            rules[i].name = (int)tide_rng_below(&rng, 3) - 1;
            rules[i].host = (int)tide_rng_below(&rng, 3) - 1;
            rules[i].word = (int)tide_rng_below(&rng, 3) - 1; /* order, hello */
            if (rules[i].name + rules[i].host + rules[i].word == -3)
                rules[i].word = 0;
            OK(tide_buf_print(&yaml, "  - {name: r%d, route: pipeline, when: {", i));
            if (rules[i].name >= 0)
                OK(tide_buf_print(&yaml, "sender_email: '%s@*', ", names[rules[i].name]));
            if (rules[i].host >= 0)
                OK(tide_buf_print(&yaml, "sender_domain: %s, ", hosts[rules[i].host]));
            if (rules[i].word >= 0)
                OK(tide_buf_print(&yaml, "subject_contains: %s, ", words[rules[i].word]));
            OK(tide_buf_print(&yaml, "}}\n"));
        }
        const int name = (int)tide_rng_below(&rng, 2), host = (int)tide_rng_below(&rng, 2);
        const int word = (int)tide_rng_below(&rng, 3);
        int expected = -1;
        for (int i = 2; i >= 0; i--)
            if ((rules[i].name < 0 || rules[i].name == name) &&
                (rules[i].host < 0 || rules[i].host == host) &&
                (rules[i].word < 0 || rules[i].word == word || word == 2))
                expected = i;
        struct tide_assistant_config *config = config_of(tide_buf_cstr(&yaml));
        tide_auto_arena arena = tide_arena_heap(16 << 20);
        const struct tide_letter letter =
            letter_of(&arena, textf("From: X <%s@%s>\r\nSubject: %s\r\n\r\n", names[name],
                                    hosts[host], words[word]));
        struct tide_route route;
        tide_route_choose(config, &letter, &route);
        const int chosen = route.rule == NULL ? -1 : (int)(route.rule - config->rules);
        if (chosen != expected)
            fail_msg("round %" PRIu64 ": %d, expected %d\n%s", round, chosen, expected,
                     tide_buf_cstr(&yaml));
        tide_assistant_config_free(config);
    }
}

/* ---- tier 1 ---- */

static struct tide_triage look(const char *yaml, const char *raw)
{
    struct tide_assistant_config *config = config_of(yaml);
    tide_auto_arena arena = tide_arena_heap(16 << 20);
    const struct tide_letter letter = letter_of(&arena, raw);
    struct tide_triage triage;
    tide_triage_look(config, &letter, &triage);
    tide_assistant_config_free(config);
    return triage;
}

TEST(automated_mail_is_known_by_sender_and_headers)
{
    static const struct {
        const char *raw, *why; /* "": not automated */
    } cases[] = {
        {"From: noreply@x.cz\r\n\r\n", "sender noreply@x.cz"},
        {"From: No-Reply@x.cz\r\n\r\n", "sender No-Reply@x.cz"},
        {"From: mailer-daemon@x.cz\r\n\r\n", "sender mailer-daemon@x.cz"},
        {"From: postmaster@x.cz\r\n\r\n", "sender postmaster@x.cz"},
        {"From: notifications@x.cz\r\n\r\n", "sender notifications@x.cz"},
        {"From: bounce+12=a@x.cz\r\n\r\n", "sender bounce+12=a@x.cz"},
        {"From: github-noreply@x.cz\r\n\r\n", "sender github-noreply@x.cz"},
        {"From: noreply2@x.cz\r\n\r\n", "sender noreply2@x.cz"},
        {"From: noreplying@x.cz\r\n\r\n", ""},
        {"From: trebounce@x.cz\r\n\r\n", ""},
        {"From: ann@noreply.cz\r\n\r\n", ""},
        {"From: noreply <ann@x.cz>\r\n\r\n", ""},
        {"Auto-Submitted: auto-replied (x)\r\n\r\n", "header Auto-Submitted"},
        {"Auto-Submitted: no\r\n\r\n", ""},
        {"Auto-Submitted: No ; x\r\n\r\n", ""},
        {"Precedence: Bulk\r\n\r\n", "header Precedence"},
        {"Precedence: list\r\n\r\n", "header Precedence"},
        {"Precedence: auto_reply\r\n\r\n", "header Precedence"},
        {"Precedence: junk\r\n\r\n", "header Precedence"},
        {"Precedence: first-class\r\n\r\n", ""},
        {"list-id: <x.y>\r\n\r\n", "header List-Id"},
        {"List-Unsubscribe: <mailto:x>\r\n\r\n", "header List-Unsubscribe"},
        {"X-Auto-Response-Suppress: All\r\n\r\n", "header X-Auto-Response-Suppress"},
        {"Feedback-ID: 1\r\n\r\n", "header Feedback-ID"},
        {"X-Autoreply: yes\r\n\r\n", "header X-Autoreply"},
        {"X-Autorespond: x\r\n\r\n", "header X-Autorespond"},
        {"Subject: List-Id: x\r\n\r\nPrecedence: bulk\r\n", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct tide_triage triage = look(MODELS, cases[i].raw);
        assert_false(triage.blacklisted);
        assert_int_equal(triage.automated, cases[i].why[0] != '\0');
        assert_string_equal(triage.why, cases[i].why);
        assert_true(tide_triage_needs_model(&triage));
    }
}

TEST(a_blacklisted_sender_needs_no_model)
{
    static const char yaml[] = MODELS "triage: {blacklist: ['*@ads.cz', '*.spam.cz', x@y.z]}\n";
    struct tide_triage triage = look(yaml, "From: A@ADS.cz\r\nList-Id: x\r\n\r\n");
    assert_true(triage.blacklisted);
    assert_string_equal(triage.why, "blacklist *@ads.cz");
    assert_false(tide_triage_needs_model(&triage));
    triage = look(yaml, "From: a@b.spam.cz\r\n\r\n");
    assert_string_equal(triage.why, "blacklist *.spam.cz");
    triage = look(yaml, "From: a@spam.cz\r\n\r\n");
    assert_false(triage.blacklisted);
    triage = look(yaml, "\r\n");
    assert_false(triage.blacklisted);
}

/* ---- styles ---- */

TEST(a_style_comes_from_sender_domain_model_or_default_in_this_order)
{
    struct tide_assistant_config *config = config_of(
        MODELS "styles: {s: S, d: D, m: M}\n"
               "contacts: {senders: {a@x.cz: s}, domains: {'*.gov': d, x.cz: d, '*.cz': m}}\n");
    static const struct {
        const char *sender;
        int model;
        const char *style;
        tide_style_from from;
    } cases[] = {
        {"A@x.CZ", 2, "s", TIDE_STYLE_FROM_SENDER},
        {"b@x.cz", 2, "d", TIDE_STYLE_FROM_DOMAIN},
        {"b@y.cz", 0, "m", TIDE_STYLE_FROM_DOMAIN},
        {"b@y.org", 2, "m", TIDE_STYLE_FROM_MODEL},
        {"b@y.org", TIDE_STYLE_NONE, "business", TIDE_STYLE_FROM_DEFAULT},
        {"", TIDE_STYLE_NONE, "business", TIDE_STYLE_FROM_DEFAULT},
        {"b@y.org", 99, "business", TIDE_STYLE_FROM_DEFAULT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tide_style_from from = TIDE_STYLE_FROM_DEFAULT;
        const size_t style =
            tide_style_resolve(config, tide_text_of(cases[i].sender), cases[i].model, &from);
        assert_says(config->styles[style].name, cases[i].style);
        assert_int_equal(from, cases[i].from);
    }
    tide_assistant_config_free(config);
}

/* ---- deciding ---- */

/* All combinations of what tier 1 saw and what the model said. */
TEST(the_decision_follows_the_table)
{
    struct tide_assistant_config *config = config_of(MODELS);
    tide_auto_arena arena = tide_arena_heap(1 << 20);
    const struct tide_letter letter = letter_of(&arena, ANN "\r\n");
    for (int seen = 0; seen < 3; seen++) {
        struct tide_triage triage = {.blacklisted = seen == 1, .automated = seen == 2};
        (void)snprintf(triage.why, sizeof triage.why, "%s", seen == 0 ? "" : "because");
        for (int said = TIDE_ASSISTANT_NO_CATEGORY; said < TIDE_ASSISTANT_CATEGORIES; said++) {
            const bool silent = said == TIDE_ASSISTANT_NO_CATEGORY;
            const struct tide_verdict verdict = {.category = (tide_assistant_category)said,
                                                 .confidence = TIDE_CONFIDENCE_HIGH,
                                                 .style = 0,
                                                 .language = "cs",
                                                 .reasoning = "model"};
            struct tide_decision decision;
            tide_triage_decide(config, &letter, &triage, silent ? NULL : &verdict, "garbage",
                               &decision);
            tide_assistant_category expected =
                silent ? TIDE_ASSISTANT_NEEDS_RESPONSE : (tide_assistant_category)said;
            if (seen == 1 || (seen == 2 && expected == TIDE_ASSISTANT_NEEDS_RESPONSE))
                expected = TIDE_ASSISTANT_FYI;
            assert_int_equal(decision.category, expected);
            if (seen != 1)
                assert_int_equal(decision.confidence,
                                 silent ? TIDE_CONFIDENCE_LOW : TIDE_CONFIDENCE_HIGH);
            assert_true(decision.reasoning[0] != '\0');
            assert_int_equal(strstr(decision.reasoning, "garbage") != NULL, silent && seen != 1);
            assert_true(decision.style < config->styles_count); /* TRG2 */
            assert_string_equal(decision.language, silent || seen == 1 ? "" : "cs");
        }
    }
    tide_assistant_config_free(config);
}
