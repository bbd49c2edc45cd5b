/* tokens.c - what a token must be: each row changes one thing of a good one.  No server is needed. */
#include "unit/serve/webhook/webhook_fixture.h"

#include "base/encode.h"

static const char *const issuers[] = {ISSUER, "accounts.google.com", NULL};
static const struct tide_token_rules rules = {issuers, AUDIENCE, SENDER};
enum { NOW_S = 1800000000 };

static json_t *claims_at(json_int_t now_s)
{
    return json_pack("{s:s, s:s, s:s, s:b, s:I, s:I}", "iss", ISSUER, "aud", AUDIENCE, "email",
                     SENDER, "email_verified", 1, "iat", now_s, "exp", now_s + 3600);
}

static tide_token_fault read_text(tide_text text, struct tide_token *token)
{
    return tide_token_read(text, &rules, UINT64_C(1000) * NOW_S, tide_mem_heap(), token);
}

static tide_keyset *keyset_of(const box_key *key)
{
    tide_error err;
    tide_keyset *keyset = NULL;
    tide_buf line;
    tide_json json;
    tide_json keys;
    tide_buf_init(&line, tide_mem_heap(), TIDE_KEYSET_BYTES_MAX);
    tide_json_object(&json);
    tide_json_array(&keys);
    (void)json_array_append_new(keys.value, box_key_jwk(key));
    tide_json_set(&json, "keys", &keys);
    assert_int_equal(tide_json_line(&json, &line), TIDE_OK);
    assert_int_equal(tide_keyset_read(tide_buf_text(&line), tide_mem_heap(), &keyset, &err),
                     TIDE_OK);
    tide_json_done(&json);
    tide_buf_done(&line);
    return keyset;
}

TEST(a_good_token_is_good_with_the_key_of_its_issuer_alone)
{
    struct tide_token token;
    const box_key *key = key_one();
    const box_key *other = key_two();
    tide_keyset *keyset = keyset_of(key);
    tide_keyset *others = keyset_of(other);
    char *text = token_of(key, claims_at(NOW_S));
    assert_int_equal(read_text(tide_text_of(text), &token), TIDE_TOKEN_GOOD);
    assert_string_equal(token.kid, box_key_id(key));
    assert_int_equal(token.expires_unix_s, NOW_S + 3600);
    assert_int_equal(tide_keyset_check(keyset, &token), TIDE_SIGNATURE_GOOD);
    assert_int_equal(tide_keyset_check(others, &token), TIDE_SIGNATURE_NO_KEY);
    (void)snprintf(token.kid, sizeof token.kid, "%s", box_key_id(other));
    assert_int_equal(tide_keyset_check(others, &token), TIDE_SIGNATURE_FORGED);
    tide_keyset_free(keyset);
    tide_keyset_free(others);
    free(text);
}

TEST(every_changed_byte_is_noticed)
{
    const box_key *key = key_one();
    tide_keyset *keyset = keyset_of(key);
    char *text = token_of(key, claims_at(NOW_S));
    const size_t bytes = strlen(text);
    for (size_t i = 0; i < bytes; i++) {
        struct tide_token token;
        const char kept = text[i];
        text[i] = kept == 'A' ? 'B' : kept == '.' ? '-' : 'A';
        if (read_text((tide_text){text, bytes}, &token) == TIDE_TOKEN_GOOD &&
            tide_keyset_check(keyset, &token) == TIDE_SIGNATURE_GOOD)
            fail_msg("byte %zu", i);
        text[i] = kept;
    }
    /* And every beginning of it. */
    for (size_t i = 0; i < bytes; i++) {
        struct tide_token token;
        char *cut = malloc(i + 1); /* exact, so that reading past it is detected */
        assert_non_null(cut);
        memcpy(cut, text, i);
        if (read_text((tide_text){cut, i}, &token) == TIDE_TOKEN_GOOD &&
            tide_keyset_check(keyset, &token) == TIDE_SIGNATURE_GOOD)
            fail_msg("the first %zu bytes", i);
        free(cut);
    }
    tide_keyset_free(keyset);
    free(text);
}

TEST(claims_must_be_there_and_as_expected)
{
    static const struct {
        const char *name;
        const char *value; /* JSON; NULL: absent */
        tide_token_fault fault;
    } rows[] = {
        {"iss", NULL, TIDE_TOKEN_ISSUER},
        {"iss", "\"https://accounts.google.com.evil.example\"", TIDE_TOKEN_ISSUER},
        {"iss", "\"https://accounts.google.com/\"", TIDE_TOKEN_ISSUER},
        {"iss", "[\"https://accounts.google.com\"]", TIDE_TOKEN_ISSUER},
        {"iss", "\"accounts.google.com\"", TIDE_TOKEN_GOOD},
        {"aud", NULL, TIDE_TOKEN_AUDIENCE},
        {"aud", "\"https://other.example/webhook/gmail\"", TIDE_TOKEN_AUDIENCE},
        {"aud", "\"\"", TIDE_TOKEN_AUDIENCE},
        {"aud", "[\"" AUDIENCE "\"]", TIDE_TOKEN_AUDIENCE},
        {"aud", "null", TIDE_TOKEN_AUDIENCE},
        {"email", NULL, TIDE_TOKEN_SENDER},
        {"email", "\"push@another.iam.gserviceaccount.com\"", TIDE_TOKEN_SENDER},
        {"email_verified", NULL, TIDE_TOKEN_SENDER},
        {"email_verified", "false", TIDE_TOKEN_SENDER},
        {"email_verified", "\"true\"", TIDE_TOKEN_SENDER},
        {"email_verified", "1", TIDE_TOKEN_SENDER},
        {"exp", NULL, TIDE_TOKEN_MALFORMED},
        {"exp", "\"1800003600\"", TIDE_TOKEN_MALFORMED},
        {"exp", "1800000000", TIDE_TOKEN_GOOD}, /* the last second of it */
        {"iat", NULL, TIDE_TOKEN_MALFORMED},
        {"iat", "-1", TIDE_TOKEN_MALFORMED},
        {"iat", "1799999999.5", TIDE_TOKEN_MALFORMED},
        {"exp", "9223372036854775807", TIDE_TOKEN_MALFORMED}, /* longer than a day */
        {"exp", "1799999000", TIDE_TOKEN_MALFORMED},          /* before it was issued */
        {"iat", "1800000060", TIDE_TOKEN_GOOD},               /* a clock that is a minute ahead */
        {"iat", "1800000061", TIDE_TOKEN_EARLY},
        {"nbf", "1800000060", TIDE_TOKEN_GOOD},
        {"nbf", "1800000061", TIDE_TOKEN_EARLY},
        {"nbf", "\"now\"", TIDE_TOKEN_MALFORMED},
        {"more", "{\"deep\":[1]}", TIDE_TOKEN_GOOD},
    };
    const box_key *key = key_one();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct tide_token token;
        json_t *claims = claims_at(NOW_S);
        if (rows[i].value == NULL)
            (void)json_object_del(claims, rows[i].name);
        else
            (void)json_object_set_new(claims, rows[i].name,
                                      json_loads(rows[i].value, JSON_DECODE_ANY, NULL));
        char *text = token_of(key, claims);
        const tide_token_fault fault = read_text(tide_text_of(text), &token);
        if (fault != rows[i].fault)
            fail_msg("%s %s: %s", rows[i].name, rows[i].value, tide_token_fault_name(fault));
        free(text);
    }
}

TEST(a_token_ends_with_its_time_and_a_minute)
{
    const box_key *key = key_one();
    struct tide_token token;
    char *text = token_of(key, claims_at(NOW_S - 3600 - 60));
    assert_int_equal(read_text(tide_text_of(text), &token), TIDE_TOKEN_GOOD);
    free(text);
    text = token_of(key, claims_at(NOW_S - 3600 - 61));
    assert_int_equal(read_text(tide_text_of(text), &token), TIDE_TOKEN_EXPIRED);
    free(text);
}

TEST(the_token_chooses_neither_algorithm_nor_key)
{
    static const struct {
        const char *header;
        tide_token_fault fault;
    } rows[] = {
        {"{\"alg\":\"none\",\"kid\":\"1\"}", TIDE_TOKEN_ALGORITHM},
        {"{\"alg\":\"None\",\"kid\":\"1\"}", TIDE_TOKEN_ALGORITHM},
        {"{\"alg\":\"HS256\",\"kid\":\"1\"}", TIDE_TOKEN_ALGORITHM},
        {"{\"alg\":\"RS384\",\"kid\":\"1\"}", TIDE_TOKEN_ALGORITHM},
        {"{\"alg\":\"PS256\",\"kid\":\"1\"}", TIDE_TOKEN_ALGORITHM},
        {"{\"alg\":\"ES256\",\"kid\":\"1\"}", TIDE_TOKEN_ALGORITHM},
        {"{\"alg\":\"rs256\",\"kid\":\"1\"}", TIDE_TOKEN_ALGORITHM},
        {"{\"alg\":[\"RS256\"],\"kid\":\"1\"}", TIDE_TOKEN_ALGORITHM},
        {"{\"alg\":\"none\",\"alg\":\"RS256\",\"kid\":\"1\"}", TIDE_TOKEN_MALFORMED},
        {"{\"kid\":\"1\"}", TIDE_TOKEN_ALGORITHM},
        {"{\"alg\":\"RS256\",\"kid\":\"1\",\"crit\":[\"b64\"]}", TIDE_TOKEN_ALGORITHM},
        {"{\"alg\":\"RS256\"}", TIDE_TOKEN_MALFORMED},
        {"{\"alg\":\"RS256\",\"kid\":\"\"}", TIDE_TOKEN_MALFORMED},
        {"{\"alg\":\"RS256\",\"kid\":1}", TIDE_TOKEN_MALFORMED},
        {"[]", TIDE_TOKEN_ALGORITHM},
        {"{\"alg\":\"RS256\",\"kid\":\"1\"", TIDE_TOKEN_MALFORMED},
        {"{\"alg\":\"RS256\",\"kid\":\"1\"} ", TIDE_TOKEN_GOOD}, /* the signature is missing */
    };
    json_t *claims = claims_at(NOW_S);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct tide_token token;
        char *text = token_raw(rows[i].header, claims, TIDE_TEXT_NONE);
        const tide_token_fault fault = read_text(tide_text_of(text), &token);
        if (fault != rows[i].fault && !(rows[i].header[0] == '[' && fault == TIDE_TOKEN_MALFORMED))
            fail_msg("%s: %s", rows[i].header, tide_token_fault_name(fault));
        free(text);
    }
    json_decref(claims);
}

/* The classic one: the public key, which everybody has, as the secret of an HMAC. */
TEST(the_public_key_is_no_secret)
{
    const box_key *key = key_one();
    tide_keyset *keyset = keyset_of(key);
    struct tide_token token;
    json_t *claims = claims_at(NOW_S);
    tide_buf pem;
    char header[200];
    tide_buf_init(&pem, tide_mem_heap(), BOX_JWT_BYTES_MAX);
    box_key_public_pem(key, &pem);
    static const char *const algorithms[] = {"HS256", "RS256"};
    static const tide_token_fault faults[] = {TIDE_TOKEN_ALGORITHM, TIDE_TOKEN_GOOD};
    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(header, sizeof header, "{\"alg\":\"%s\",\"kid\":\"%s\"}", algorithms[i],
                       box_key_id(key));
        char *text = token_raw(header, claims, tide_buf_text(&pem));
        assert_int_equal(read_text(tide_text_of(text), &token), faults[i]);
        if (faults[i] == TIDE_TOKEN_GOOD)
            assert_int_equal(tide_keyset_check(keyset, &token), TIDE_SIGNATURE_FORGED);
        free(text);
    }
    /* No signature at all, with a key that exists. */
    char *text = token_raw(header, claims, TIDE_TEXT_NONE);
    assert_int_equal(read_text(tide_text_of(text), &token), TIDE_TOKEN_GOOD);
    assert_int_equal(tide_keyset_check(keyset, &token), TIDE_SIGNATURE_FORGED);
    free(text);
    json_decref(claims);
    tide_buf_done(&pem);
    tide_keyset_free(keyset);
}

TEST(what_is_no_token_is_malformed)
{
    static const char *const wrong[] = {
        "",
        ".",
        "..",
        "...",
        "a.b.c",
        "e30.e30.",
        "e30.e30",
        "e30.e30.e30.e30",
        "e30 .e30.",
        "e30=.e30.",
        "e30.e30.=",
        "\x80.e30.",
        "bnVsbA.e30.",
    };
    struct tide_token token;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        if (read_text(tide_text_of(wrong[i]), &token) == TIDE_TOKEN_GOOD)
            fail_msg("%s", wrong[i]);
    /* Huge: one that is good but for its size, and one of nothing but letters. */
    const box_key *key = key_one();
    json_t *claims = claims_at(NOW_S);
    char *filler = malloc(TIDE_TOKEN_BYTES_MAX + 1);
    assert_non_null(filler);
    memset(filler, 'a', TIDE_TOKEN_BYTES_MAX);
    filler[TIDE_TOKEN_BYTES_MAX] = '\0';
    assert_int_equal(read_text(tide_text_of(filler), &token), TIDE_TOKEN_MALFORMED);
    (void)json_object_set_new(claims, "filler", json_string(filler));
    char *text = token_of(key, claims);
    assert_int_equal(read_text(tide_text_of(text), &token), TIDE_TOKEN_MALFORMED);
    free(filler);
    free(text);
}

TEST(only_sound_rsa_keys_are_taken)
{
    const box_key *key = key_one();
    json_t *good = box_key_jwk(key);
    const char *n = json_string_value(json_object_get(good, "n"));
    char short_n[100];
    (void)snprintf(short_n, sizeof short_n, "%.86s", n);
    const struct {
        const char *name, *value; /* NULL: absent */
    } rows[] = {
        {"kty", "EC"}, {"kty", NULL}, {"alg", "RS512"}, {"use", "enc"},    {"kid", NULL},
        {"kid", ""},   {"n", NULL},   {"n", short_n},   {"n", "!"},        {"e", NULL},
        {"e", "AQ"},   {"e", "AA"},   {"e", ""},        {"e", "AQAAAAAB"},
    };
    tide_error err;
    tide_keyset *keyset = NULL;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        json_t *jwk = json_copy(good);
        if (rows[i].value == NULL)
            (void)json_object_del(jwk, rows[i].name);
        else
            (void)json_object_set_new(jwk, rows[i].name, json_string(rows[i].value));
        json_t *set = json_pack("{s:[o]}", "keys", jwk);
        char *text = json_dumps(set, JSON_COMPACT);
        if (tide_keyset_read(tide_text_of(text), tide_mem_heap(), &keyset, &err) != TIDE_SERVER)
            fail_msg("%s: %s", rows[i].name, rows[i].value);
        free(text);
        json_decref(set);
    }
    static const char *const wrong[] = {"",
                                        "{}",
                                        "[]",
                                        "{\"keys\":{}}",
                                        "{\"keys\":[]}",
                                        "{\"keys\":[1,null,\"x\",[]]}",
                                        "{\"keys\":[{}]",
                                        "<html>"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        if (tide_keyset_read(tide_text_of(wrong[i]), tide_mem_heap(), &keyset, &err) != TIDE_SERVER)
            fail_msg("%s", wrong[i]);
    json_decref(good);
}

TEST(keys_live_as_long_as_their_answer_says)
{
    static const struct {
        const char *cache, *age;
        uint64_t ms;
    } rows[] = {
        {"public, max-age=20000, must-revalidate", "", 20000000},
        {"max-age=20000", "5000", 15000000},
        {"MAX-AGE=600", "", 600000},
        {"public,max-age=600", "", 600000},
        {"max-age=600", "900", TIDE_ISSUER_LIFE_MS_MIN},
        {"max-age=0", "", TIDE_ISSUER_LIFE_MS_MIN},
        {"max-age=99999999999999999999", "", TIDE_ISSUER_LIFE_MS_DEFAULT},
        {"max-age=18446744073709551615", "", TIDE_ISSUER_LIFE_MS_MAX},
        {"max-age=", "", TIDE_ISSUER_LIFE_MS_DEFAULT},
        {"s-max-age=7", "", TIDE_ISSUER_LIFE_MS_DEFAULT},
        {"no-store", "", TIDE_ISSUER_LIFE_MS_DEFAULT},
        {"", "", TIDE_ISSUER_LIFE_MS_DEFAULT},
        {"max-age=600", "soon", 600000},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (tide_issuer_life_ms(tide_text_of(rows[i].cache), tide_text_of(rows[i].age)) !=
            rows[i].ms)
            fail_msg("%s", rows[i].cache);
}

TEST(keys_come_only_over_a_line_that_nobody_changes)
{
    static const char *const safe[] = {"https://www.googleapis.com/oauth2/v3/certs",
                                       "http://127.0.0.1:8080/certs", "http://localhost/certs",
                                       "http://[::1]:1/"};
    static const char *const unsafe[] = {"",
                                         "http://www.googleapis.com/oauth2/v3/certs",
                                         "https://",
                                         "https:///certs",
                                         "http://127.0.0.1.evil.example/certs",
                                         "http://localhost@evil.example/",
                                         "ftp://127.0.0.1/",
                                         "file:///etc/passwd",
                                         "https://a b/",
                                         "www.googleapis.com"};
    for (size_t i = 0; i < sizeof safe / sizeof safe[0]; i++)
        assert_true(tide_issuer_url_is_safe(safe[i]));
    for (size_t i = 0; i < sizeof unsafe / sizeof unsafe[0]; i++)
        if (tide_issuer_url_is_safe(unsafe[i]))
            fail_msg("%s", unsafe[i]);
}
