#include "signin_help.h"

static const struct box_service *const help_services[] = {&box_gmail, &box_mail, &box_pubsub,
                                                          &box_signin, NULL};

static void help_keep(void *arg, tide_text line)
{
    tide_buf *kept = arg;
    box_add(kept, line.data, line.bytes);
    box_add(kept, "\n", 1);
}

void help_start(struct help *help, uint64_t seed, bool auto_consent)
{
    *help = (struct help){.now_ms = START_MS};
    tide_buf_init(&help->kept, tide_mem_heap(), (size_t)1 << 30);
    help->options = (struct box_options){.seed = seed,
                                         .auto_consent = auto_consent,
                                         .services = help_services,
                                         .keep = help_keep,
                                         .keep_arg = &help->kept};
    help->cloud = box_cloud_new(&help->options);
    box_answer_init(&help->answer);
}

void help_stop(struct help *help)
{
    box_answer_done(&help->answer);
    box_cloud_free(help->cloud);
    tide_buf_done(&help->kept);
}

struct box_user *help_user(struct help *help, const char *email)
{
    struct box_user *user = box_cloud_user_need(help->cloud, tide_text_of(email), NULL);
    assert_non_null(user);
    return user;
}

void help_replay(struct help *help, const struct help *from, uint64_t seed)
{
    help_start(help, seed, from->options.auto_consent);
    help->now_ms = from->now_ms;
    const char *line = tide_buf_cstr(&from->kept);
    while (*line != '\0') {
        const char *end = strchr(line, '\n');
        tide_error err = {0};
        if (box_cloud_replay(help->cloud, (tide_text){line, (size_t)(end - line)}, &err) != TIDE_OK)
            fail_msg("replay of %.*s: %s", (int)(end - line), line, err.text);
        line = end + 1;
    }
}

static int help_serve(struct help *help, box_verb verb, const char *target, const char *body)
{
    struct box_header headers[3];
    size_t count = 0;
    char bearer[2100];
    if (body[0] != '\0')
        headers[count++] = (struct box_header){
            TIDE_TEXT("Content-Type"),
            tide_text_of(help->type != NULL ? help->type : "application/x-www-form-urlencoded")};
    if (help->site != NULL)
        headers[count++] =
            (struct box_header){TIDE_TEXT("Sec-Fetch-Site"), tide_text_of(help->site)};
    if (help->token != NULL) {
        (void)snprintf(bearer, sizeof bearer, "Bearer %s", help->token);
        headers[count++] = (struct box_header){TIDE_TEXT("Authorization"), tide_text_of(bearer)};
    } else if (help->basic != NULL) {
        headers[count++] =
            (struct box_header){TIDE_TEXT("Authorization"), tide_text_of(help->basic)};
    }
    const struct box_request request = {.verb = verb,
                                        .target = tide_text_of(target),
                                        .headers = headers,
                                        .headers_count = count,
                                        .body = tide_text_of(body),
                                        .origin = TIDE_TEXT(ORIGIN)};
    const struct box_ticket none = {0};
    box_answer_clear(&help->answer);
    help->answer.plan = (struct box_plan){0};
    help->answer.ticket = none;
    box_cloud_serve(help->cloud, &request, help->now_ms, &help->answer);
    box_cloud_finished(help->cloud, &help->answer.ticket, help->now_ms);
    return help->answer.status;
}

int help_get(struct help *help, const char *target)
{
    return help_serve(help, BOX_GET, target, "");
}

int help_post(struct help *help, const char *target, const char *body)
{
    return help_serve(help, BOX_POST, target, body);
}

const char *help_body(const struct help *help)
{
    return tide_buf_cstr(&help->answer.body);
}

json_t *help_json(const struct help *help)
{
    json_t *value = json_loads(help_body(help), 0, NULL);
    assert_non_null(value);
    return value;
}

const char *help_header(const struct help *help, const char *name)
{
    for (size_t i = 0; i < help->answer.headers_count; i++) {
        if (strcmp(help->answer.headers[i].name, name) == 0)
            return help->answer.headers[i].value;
    }
    return NULL;
}

const char *help_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    if (text == NULL)
        fail_msg("there is no text \"%s\"", key);
    return text;
}

static BIGNUM *help_number(const json_t *jwk, const char *name)
{
    tide_auto_buf bytes = tide_buf_heap(4096);
    assert_true(box_base64_decode(tide_text_of(help_text(jwk, name)), &bytes));
    BIGNUM *number = BN_bin2bn((const unsigned char *)bytes.data, (int)bytes.bytes, NULL);
    return number;
}

static EVP_PKEY *help_public_key(const json_t *jwk)
{
    BIGNUM *n = help_number(jwk, "n");
    BIGNUM *e = help_number(jwk, "e");
    OSSL_PARAM_BLD *build = OSSL_PARAM_BLD_new();
    assert_int_equal(OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_N, n), 1);
    assert_int_equal(OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_E, e), 1);
    OSSL_PARAM *params = OSSL_PARAM_BLD_to_param(build);
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, "RSA", NULL);
    EVP_PKEY *key = NULL;
    assert_int_equal(EVP_PKEY_fromdata_init(context), 1);
    assert_int_equal(EVP_PKEY_fromdata(context, &key, EVP_PKEY_PUBLIC_KEY, params), 1);
    EVP_PKEY_CTX_free(context);
    OSSL_PARAM_free(params);
    OSSL_PARAM_BLD_free(build);
    BN_free(n);
    BN_free(e);
    return key;
}

static json_t *help_piece(const char *start, const char *end)
{
    tide_auto_buf text = tide_buf_heap(64 << 10);
    assert_true(box_base64_decode((tide_text){start, (size_t)(end - start)}, &text));
    json_t *value = json_loads(tide_buf_cstr(&text), 0, NULL);
    assert_non_null(value);
    return value;
}

json_t *help_claims(const json_t *jwks, const char *token)
{
    const json_t *jwk = json_array_get(json_object_get(jwks, "keys"), 0);
    const char *dot = strchr(token, '.');
    assert_non_null(dot);
    const char *second = strchr(dot + 1, '.');
    assert_non_null(second);
    json_auto_t *header = help_piece(token, dot);
    assert_string_equal(help_text(header, "alg"), "RS256");
    assert_string_equal(help_text(header, "kid"), help_text(jwk, "kid"));

    tide_auto_buf signature = tide_buf_heap(4096);
    assert_true(box_base64_decode(tide_text_of(second + 1), &signature));
    EVP_PKEY *key = help_public_key(jwk);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    assert_int_equal(EVP_DigestVerifyInit(context, NULL, EVP_sha256(), NULL, key), 1);
    assert_int_equal(EVP_DigestVerify(context, (const unsigned char *)signature.data,
                                      signature.bytes, (const unsigned char *)token,
                                      (size_t)(second - token)),
                     1);
    EVP_MD_CTX_free(context);
    EVP_PKEY_free(key);
    return help_piece(dot + 1, second);
}
