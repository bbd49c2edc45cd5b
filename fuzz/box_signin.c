/* box_signin.c - signing in: steps separated by a record separator (1e).  The first byte of a
 * step says which: 'a'uthorize (the rest is the query), 'c'onsent, 't'oken, 'r'evoke (the rest
 * is the form), 'b'asic (a token request whose first line is an Authorization header), 'i'nfo
 * about a token (the rest is the query), 'u'serinfo with the token unchanged, 'm'inutes pass.  A
 * first step 'p' shows pages instead of consenting by itself.
 *
 * Steps may use the results of earlier ones: @c the code, @a the access token, @r the
 * refresh token, @k the ticket of the page. */
#include "box.h"

#include "cloudbox/signin/auth.h"

enum { STEPS_MAX = 10, TEXT_MAX = 4096 };

struct session {
    box_cloud *cloud;
    uint64_t now_ms;
    char code[TEXT_MAX], access[TEXT_MAX], refresh[TEXT_MAX], ticket[TEXT_MAX];
};

/* Making a key takes longer than everything else, so all clouds get the first one's; signatures
 * are not checked. */
static char *key_line;

static void take_key(void *arg, tide_text line)
{
    (void)arg;
    if (key_line == NULL && memmem(line.data, line.bytes, "auth-key", 8) != NULL)
        key_line = fuzz_cstr(line);
}

static box_cloud *cloud_new(bool pages)
{
    const struct box_options options = {
        .seed = 1, .auto_consent = !pages, .keep = take_key, .services = box_services_all};
    const struct box_mailbox_options mailbox = {.messages = 1, .now_unix_ms = FUZZ_START_MS};
    box_cloud *cloud = box_cloud_new(&options);
    TIDE_ASSERT(box_cloud_add_mailbox(cloud, TIDE_TEXT("a@x.org"), &mailbox, NULL) == TIDE_OK);
    TIDE_ASSERT(box_cloud_add_mailbox(cloud, TIDE_TEXT("b@x.org"), &mailbox, NULL) == TIDE_OK);
    if (key_line == NULL)
        json_decref(box_auth_jwks(box_cloud_auth(cloud)));
    else
        TIDE_ASSERT(box_cloud_replay(cloud, tide_text_of(key_line), NULL) == TIDE_OK);
    return cloud;
}

static tide_text expand(const struct session *session, tide_text text)
{
    tide_buf out;
    tide_buf_init(&out, tide_mem_heap(), 1 << 20);
    for (size_t i = 0; i < text.bytes; i++) {
        const char name = text.data[i] == '@' && i + 1 < text.bytes ? text.data[i + 1] : '\0';
        const char *value = name == 'c'   ? session->code
                            : name == 'a' ? session->access
                            : name == 'r' ? session->refresh
                            : name == 'k' ? session->ticket
                                          : NULL;
        if (value == NULL) {
            box_add(&out, &text.data[i], 1);
            continue;
        }
        i++;
        if (out.bytes < 64 << 10)
            box_add_cstr(&out, value);
    }
    const tide_text exact = fuzz_exact(tide_buf_text(&out));
    tide_buf_done(&out);
    return exact;
}

/* The text after `name` up to one of `ends`. */
static void take(const char *text, const char *name, const char *ends, char *out)
{
    const char *at = text == NULL ? NULL : strstr(text, name);
    if (at == NULL)
        return;
    at += strlen(name);
    const size_t bytes = strcspn(at, ends);
    if (bytes >= TEXT_MAX)
        return;
    memcpy(out, at, bytes);
    out[bytes] = '\0';
}

static void learn(struct session *session, const struct box_answer *answer)
{
    take(fuzz_header(answer, "Location"), "code=", "&", session->code);
    tide_buf text;
    tide_buf_init(&text, tide_mem_heap(), BOX_ANSWER_BYTES_MAX);
    box_add(&text, answer->body.data, answer->body.bytes);
    take(tide_buf_cstr(&text), "\"access_token\": \"", "\"", session->access);
    take(tide_buf_cstr(&text), "\"refresh_token\": \"", "\"", session->refresh);
    take(tide_buf_cstr(&text), "name=ticket value=\"", "\"", session->ticket);
    tide_buf_done(&text);
}

static void send(struct session *session, box_verb verb, const char *path, tide_text query,
                 const char *authorization, tide_text body)
{
    tide_buf target;
    tide_buf_init(&target, tide_mem_heap(), 1 << 20);
    box_add_cstr(&target, path);
    if (query.data != NULL)
        box_add(&target, "?", 1);
    box_add(&target, query.data, query.bytes);
    const struct box_header headers[] = {
        {TIDE_TEXT("Content-Type"), TIDE_TEXT("application/x-www-form-urlencoded")},
        {TIDE_TEXT("Authorization"), tide_text_of(authorization)},
    };
    struct box_answer answer;
    fuzz_serve(session->cloud,
               &(struct box_request){.verb = verb,
                                     .target = tide_buf_text(&target),
                                     .headers = headers,
                                     .headers_count = authorization[0] == '\0' ? 1 : 2,
                                     .body = body,
                                     .origin = TIDE_TEXT("http://127.0.0.1:1")},
               session->now_ms, &answer);
    learn(session, &answer);
    fuzz_answered(session->cloud, &answer, session->now_ms);
    tide_buf_done(&target);
}

static void step(struct session *session, uint8_t kind, tide_text text)
{
    struct fuzz_input input = {(const uint8_t *)text.data, text.bytes};
    char *line = NULL;
    switch (kind) {
    case 'a':
        send(session, BOX_GET, "/o/oauth2/v2/auth", text, "", TIDE_TEXT_NONE);
        break;
    case 'c':
        send(session, BOX_POST, "/o/oauth2/v2/auth", TIDE_TEXT_NONE, "", text);
        break;
    case 'r':
        send(session, BOX_POST, "/revoke", TIDE_TEXT_NONE, "", text);
        break;
    case 'b':
        line = fuzz_cstr(fuzz_text(&input, '\n'));
        text = (tide_text){(const char *)input.data, input.bytes};
        send(session, BOX_POST, "/token", TIDE_TEXT_NONE, line, text);
        free(line);
        break;
    case 'i':
        send(session, BOX_GET, "/tokeninfo", text, "", TIDE_TEXT_NONE);
        break;
    case 'u':
        line = fuzz_cstr(text);
        send(session, BOX_GET, "/oauth2/v3/userinfo", TIDE_TEXT_NONE, line, TIDE_TEXT_NONE);
        free(line);
        break;
    case 'm':
        session->now_ms += text.bytes == 0 ? 60000 : (uint64_t)(uint8_t)text.data[0] * 60000;
        break;
    default:
        send(session, BOX_POST, "/token", TIDE_TEXT_NONE, "", text);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct fuzz_input input = {data, bytes};
    struct session session = {.now_ms = FUZZ_START_MS};
    session.cloud = cloud_new(bytes > 0 && data[0] == 'p');
    for (int i = 0; i < STEPS_MAX && fuzz_more(&input); i++) {
        const tide_text piece = fuzz_text(&input, '\x1e');
        struct fuzz_input one = {(const uint8_t *)piece.data, piece.bytes};
        const uint8_t kind = fuzz_u8(&one);
        const tide_text text = expand(&session, (tide_text){(const char *)one.data, one.bytes});
        step(&session, kind, text);
        fuzz_text_free(text);
    }
    fuzz_cloud_end(session.cloud);
    return 0;
}
