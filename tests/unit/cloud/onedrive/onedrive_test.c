/* The client of OneDrive under an engine: what a call costs, and what its account learns. */
#include "onedrive_fixture.h"

#include "net/oauth/microsoft.h"
#include "support/sweep.h"

TEST(methods_have_names)
{
    assert_null(tide_onedrive_method_name(0));
    for (uint32_t method = 1; method < TIDE_ONEDRIVE_METHODS; method++)
        assert_non_null(tide_onedrive_method_name(method));
    assert_null(tide_onedrive_method_name(TIDE_ONEDRIVE_METHODS));
    assert_string_equal(tide_onedrive_method_name(TIDE_ONEDRIVE_DELTA), "items.delta");
}

TEST(an_endpoint_is_an_address)
{
    tide_onedrive *onedrive = NULL;
    tide_error err = {0};
    static const char *const bad[] = {"", "graph.microsoft.com", "https://x/v1.0", "https://u@x"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const struct tide_onedrive_options options = {.endpoint = bad[i], .bearer = TIDE_TEXT("b")};
        assert_int_equal(tide_onedrive_open(&options, tide_mem_heap(), &onedrive, &err),
                         TIDE_INVALID);
    }
    const struct tide_onedrive_options options = {.bearer = TIDE_TEXT("b")};
    OK(tide_onedrive_open(&options, tide_mem_heap(), &onedrive, &err));
    tide_onedrive_close(onedrive);
}

CASE(microsoft_is_told_who_calls)
{
    tide_onedrive_close(f->onedrive);
    const struct tide_onedrive_options options = {.bearer = TIDE_TEXT("bearer-1"),
                                                  .world = f->world};
    OK(tide_onedrive_open(&options, f->mem, &f->onedrive, &f->err));
    answers(f, 200, ITEM);
    EXPECT(tide_onedrive_get(f->onedrive, NULL, TIDE_TEXT(""), TIDE_TEXT("A"), &f->item, &f->err),
           TIDE_OK);
    assert_string_equal(f->url, "https://graph.microsoft.com/v1.0/me/drive/items/A");
    assert_true(has_header(f, "User-Agent: NONISV|Tidemark|Tidemark/"));
}

/* ---- with a job ---- */

struct work {
    struct fixture *f;
    tide_engine *engine;
    uint32_t account;
    tide_status status;
    tide_error err;
};

static tide_status item_of(const struct tide_onedrive_item *item, void *arg)
{
    (void)item;
    (void)arg;
    return TIDE_OK;
}

static tide_status handler(tide_job *job, void *context, tide_error *err)
{
    struct work *work = context;
    const struct tide_onedrive_sink sink = {item_of, NULL, NULL};
    struct tide_onedrive_page page;
    tide_onedrive_page_init(&page, tide_mem_heap());
    work->err = (tide_error){TIDE_OK, 0, ""};
    work->status = tide_onedrive_delta(work->f->onedrive, job, TIDE_TEXT(""), TIDE_TEXT(""), "",
                                       &sink, &page, &work->err);
    tide_onedrive_page_done(&page);
    *err = work->err;
    return work->status == TIDE_AGAIN ? TIDE_AGAIN : TIDE_OK;
}

/* A 401 is followed by a refresh and one more call; a throttled call makes the account wait. */
CASE(a_job_calls_with_the_accounts_tokens)
{
    static const char grant[] =
        "{\"v\":1,\"type\":\"user\",\"provider\":\"microsoft\",\"client_id\":\"c\","
        "\"refresh_token\":\"r\",\"token_url\":\"" ORIGIN
        "/token\",\"revoke_url\":\"\",\"scopes\":\"Files.ReadWrite\",\"access_token\":\"bearer-1\","
        "\"expires_unix_ms\":4000000000000}";
    const struct tide_tokens_options tokens_options = {.provider = &tide_oauth_microsoft,
                                                       .secret = "onedrive/me",
                                                       .account = "me",
                                                       .sign_in = "sign in"};
    struct work work = {.f = f};
    tide_secrets *secrets = NULL;
    tide_tokens *tokens = NULL;
    uint32_t kind = 0;
    OK(tide_secrets_open(f->world, "/secrets", TIDE_SECRETS_FILES, f->mem, &secrets, NULL));
    OK(tide_secrets_put(secrets, "onedrive/me", tide_text_of(grant), NULL));
    OK(tide_tokens_open(f->world, secrets, &tokens_options, f->mem, &tokens, NULL));
    tide_onedrive_close(f->onedrive);
    const struct tide_onedrive_options options = {.endpoint = ORIGIN, .tokens = tokens};
    OK(tide_onedrive_open(&options, f->mem, &f->onedrive, NULL));
    const struct tide_engine_options engine = {
        .state_dir = "/state", .world = f->world, .no_control_socket = true, .workers = 2};
    OK(tide_engine_open(&engine, &work.engine, NULL));
    const struct tide_kind call = {.name = "call", .handler = handler, .context = &work};
    OK(tide_engine_kind(work.engine, &call, &kind, NULL));
    OK(tide_engine_account(work.engine, "me", "onedrive", &work.account, NULL));
    OK(tide_engine_start(work.engine, NULL));

    const struct tide_spec spec = {.kind = kind, .account = work.account};
    answers(f, 200, "{\"value\":[],\"@odata.deltaLink\":\"" ORIGIN "/d\"}");
    OK(tide_enqueue(work.engine, &spec, 1, NULL, NULL));
    OK(tide_engine_wait(work.engine, TIDE_WAIT_FOREVER, NULL));
    assert_int_equal(work.status, TIDE_OK);
    assert_true(has_header(f, "Authorization: Bearer bearer-1\n"));

    answers(f, 401, "{\"error\":{\"code\":\"InvalidAuthenticationToken\"}}");
    const unsigned before = f->requests;
    OK(tide_enqueue(work.engine, &spec, 1, NULL, NULL));
    OK(tide_engine_wait(work.engine, TIDE_WAIT_FOREVER, NULL));
    assert_int_equal(work.status, TIDE_AUTH); /* the second token is refused as well */
    assert_int_equal(f->requests, before + 2);
    assert_int_equal(f->refreshes, 1);
    assert_true(has_header(f, "Authorization: Bearer bearer-2\n"));
    OK(tide_engine_close(work.engine));
    tide_tokens_close(tokens);
    tide_secrets_close(secrets);
}

/* ---- memory ---- */

static tide_status read_a_page(struct fixture *f)
{
    const struct tide_onedrive_options options = {
        .endpoint = ORIGIN, .bearer = TIDE_TEXT("bearer-1"), .world = f->world};
    const struct tide_onedrive_sink sink = {item_of, NULL, NULL};
    struct tide_onedrive_page page;
    tide_onedrive_page_init(&page, f->mem);
    answers(f, 200, "{\"value\":[" ITEM "],\"@odata.deltaLink\":\"" ORIGIN "/d\"}");
    tide_status rc = tide_onedrive_open(&options, f->mem, &f->onedrive, &f->err);
    if (rc == TIDE_OK)
        rc = tide_onedrive_delta(f->onedrive, NULL, TIDE_TEXT(""), TIDE_TEXT(""), "", &sink, &page,
                                 &f->err);
    tide_onedrive_page_done(&page);
    return rc;
}

TEST(a_page_survives_every_failed_allocation)
{
    for (struct tide_mem_faulty mem = {0}; sweep_next(&mem);) {
        struct fixture *f = begin_in(&mem.base);
        const tide_status rc = read_a_page(f);
        finish(f);
        assert_int_equal(mem.bytes_live, 0);
        assert_true(mem.fired ? rc != TIDE_OK : rc == TIDE_OK);
    }
}
