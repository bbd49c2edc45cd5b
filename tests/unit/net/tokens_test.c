/* Staying signed in, against the cloud in a box: expiry, refusal, death, crashes, and many
 * threads at once. */
#include "oauth_real.h"
#include "support/ok.h"
#include "support/heap.h"

SIGNED_IN(a_token_is_refreshed_a_minute_before_it_expires, 6)
{
    char first[512];
    char token[512];
    EXPECT(get(stage, first), TIDE_OK);
    let_pass(stage, 3599000 - 65000);
    EXPECT(get(stage, token), TIDE_OK);
    assert_string_equal(token, first);
    let_pass(stage, 6000); /* 59 s are left */
    EXPECT(get(stage, token), TIDE_OK);
    assert_string_not_equal(token, first);
    assert_int_equal(stage->provider.refreshes, 1);
    assert_int_equal(profile(stage, token), 200);
    for (int i = 0; i < 20; i++) { /* a day or so */
        let_pass(stage, HOUR_MS);
        EXPECT(get(stage, token), TIDE_OK);
        assert_int_equal(profile(stage, token), 200);
    }
    assert_int_equal(stage->provider.refreshes, 21);
    /* The last one was stored: opening again sends no request. */
    tokens_open(stage);
    EXPECT(get(stage, first), TIDE_OK);
    assert_string_equal(first, token);
    assert_int_equal(stage->provider.refreshes, 21);
}

SIGNED_IN(a_clock_that_jumps_costs_a_refresh_at_most, 7)
{
    char token[512];
    EXPECT(get(stage, token), TIDE_OK);
    tide_sim_wall_jump(stage->sim, -(int64_t)(100 * HOUR_MS)); /* a running process does not care */
    EXPECT(get(stage, token), TIDE_OK);
    assert_int_equal(stage->provider.refreshes, 0);
    let_pass(stage, 2 * HOUR_MS);
    EXPECT(get(stage, token), TIDE_OK);
    assert_int_equal(stage->provider.refreshes, 1);
    tokens_close(stage);
    /* A new one trusts the wrong stored time until the server refuses the token, then refreshes. */
    tide_sim_wall_jump(stage->sim, -(int64_t)(50 * HOUR_MS));
    let_pass(stage, 2 * HOUR_MS);
    tokens_open(stage);
    EXPECT(get(stage, token), TIDE_OK);
    assert_int_equal(profile(stage, token), 401);
    tide_tokens_refused(stage->tokens, tide_text_of(token));
    EXPECT(get(stage, token), TIDE_OK);
    assert_int_equal(profile(stage, token), 200);
    assert_int_equal(stage->provider.refreshes, 2);
}

SIGNED_IN(a_refused_token_is_refreshed_once, 8)
{
    char first[512];
    char token[512];
    EXPECT(get(stage, first), TIDE_OK);
    control(stage, "/_cloud/token/expire", "{\"user\":\"" EMAIL "\"}");
    assert_int_equal(profile(stage, first), 401);
    tide_tokens_refused(stage->tokens, tide_text_of(first));
    tide_tokens_refused(stage->tokens, tide_text_of(first)); /* two calls were under way */
    EXPECT(get(stage, token), TIDE_OK);
    assert_string_not_equal(token, first);
    assert_int_equal(profile(stage, token), 200);
    tide_tokens_refused(stage->tokens, tide_text_of(first)); /* a late one: that token is gone */
    tide_tokens_refused(stage->tokens, TIDE_TEXT("never seen"));
    tide_tokens_refused(stage->tokens, TIDE_TEXT(""));
    EXPECT(get(stage, first), TIDE_OK);
    assert_string_equal(first, token);
    assert_int_equal(stage->provider.refreshes, 1);
}

/* OAU3: the provider is asked once, however often and by whomever the token is wanted;
 * and a new sign-in, stored by another process, is noticed at the next question. */
SIGNED_IN(a_dead_sign_in_is_reported_with_its_cure_and_not_retried, 9)
{
    char token[512];
    EXPECT(get(stage, token), TIDE_OK);
    control(stage, "/_cloud/token/revoke", "{\"user\":\"" EMAIL "\"}");
    assert_int_equal(profile(stage, token), 401);
    tide_tokens_refused(stage->tokens, tide_text_of(token));
    for (int i = 0; i < 10; i++) {
        EXPECT(get(stage, token), TIDE_AUTH);
        assert_non_null(strstr(stage->err.text, "`tidemark account add gmail " EMAIL "`"));
        if (i == 0)
            assert_non_null(
                strstr(stage->err.text, "invalid_grant: Token has been expired or revoked."));
        let_pass(stage, HOUR_MS);
    }
    assert_int_equal(stage->provider.refreshes, 1);
    sign_in(stage);
    EXPECT(get(stage, token), TIDE_OK);
    assert_int_equal(profile(stage, token), 200);
    assert_int_equal(stage->provider.refreshes, 1);
    let_pass(stage, HOUR_MS);
    EXPECT(get(stage, token), TIDE_OK);
    assert_int_equal(stage->provider.refreshes, 2);
}

/* Each way a refresh can fail: the status is never one that would condemn the item at
 * hand, nothing is shown, and after it the provider's recovery is noticed. */
SIGNED_IN(a_failed_refresh_passes_and_shows_nothing, 10)
{
    static const struct bad_answer rows[] = {
        {MANNER_PAGE, 200, NULL, TIDE_SERVER},
        {MANNER_PAGE, 302, NULL, TIDE_SERVER},
        {MANNER_PAGE, 401, NULL, TIDE_SERVER},
        {MANNER_PAGE, 404, NULL, TIDE_SERVER},
        {MANNER_PAGE, 429, NULL, TIDE_THROTTLED},
        {MANNER_PAGE, 500, NULL, TIDE_SERVER},
        {MANNER_ECHO, 503, NULL, TIDE_SERVER},
        {MANNER_ECHO_OK, 200, NULL, TIDE_SERVER},
        {MANNER_BROKEN, 200, NULL, TIDE_SERVER},
        {MANNER_RESET, 0, NULL, TIDE_SERVER},
        {MANNER_CUSTOM, 200, "", TIDE_SERVER},
        {MANNER_CUSTOM, 200, "[]", TIDE_SERVER},
        {MANNER_CUSTOM, 400, "{\"error\":\"temporarily_unavailable\"}", TIDE_SERVER},
        {MANNER_CUSTOM, 403, "{\"error\":{\"errors\":[{\"reason\":\"userRateLimitExceeded\"}]}}",
         TIDE_THROTTLED},
    };
    char token[512];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        let_pass(stage, HOUR_MS);
        provider_answers(&stage->provider, &rows[i]);
        EXPECT(get(stage, token), rows[i].expected);
        stage->provider.manner = MANNER_GOOD;
        EXPECT(get(stage, token), TIDE_OK);
        assert_int_equal(profile(stage, token), 200);
    }
    let_pass(stage, HOUR_MS);
    tide_sim_net_down(stage->sim, true);
    EXPECT(get(stage, token), TIDE_NETWORK);
    tide_sim_net_down(stage->sim, false);
    EXPECT(get(stage, token), TIDE_OK);
    /* What users must fix, in the server's words or not. */
    let_pass(stage, HOUR_MS);
    stage->provider.manner = MANNER_ECHO;
    stage->provider.http = 401;
    EXPECT(get(stage, token), TIDE_AUTH);
    assert_non_null(strstr(stage->err.text, "invalid_client"));
    assert_non_null(strstr(stage->err.text, "[hidden]"));
}

SIGNED_IN(tokens_with_a_short_life_are_used_for_half_of_it, 11)
{
    char first[512];
    char token[512];
    let_pass(stage, HOUR_MS);
    stage->provider.manner = MANNER_SHORT;
    stage->provider.life_s = 30;
    EXPECT(get(stage, first), TIDE_OK);
    let_pass(stage, 10000);
    EXPECT(get(stage, token), TIDE_OK);
    assert_string_equal(token, first);
    let_pass(stage, 10000);
    EXPECT(get(stage, token), TIDE_OK);
    assert_string_not_equal(token, first);
    /* A token that is expired when it arrives is given out once and not requested again forever. */
    stage->provider.life_s = 0;
    let_pass(stage, 60000);
    const unsigned before = stage->provider.refreshes;
    EXPECT(get(stage, token), TIDE_OK);
    EXPECT(get(stage, token), TIDE_OK);
    assert_int_equal(stage->provider.refreshes, before + 2);
}

/* OAU1, where it matters most: the old refresh token is dead once a new one was given. */
SIGNED_IN(a_new_refresh_token_is_kept_even_when_the_disk_was_full, 12)
{
    char token[512];
    let_pass(stage, HOUR_MS);
    stage->provider.manner = MANNER_ROTATE;
    tide_sim_disk_room(stage->sim, 1);
    EXPECT(get(stage, token), TIDE_DISK_FULL);
    EXPECT(get(stage, token), TIDE_DISK_FULL);
    assert_int_equal(stage->provider.refreshes, 1); /* only the keeping was tried again */
    tide_sim_disk_room(stage->sim, 1 << 30);
    EXPECT(get(stage, token), TIDE_OK);
    assert_int_equal(stage->provider.refreshes, 1);
    tokens_open(stage);
    let_pass(stage, HOUR_MS);
    EXPECT(get(stage, token), TIDE_OK);
    assert_non_null(strstr(stage->provider.last_refresh, "rotated-refresh-"));
}

/* Storing fails, then the user signs in again: the new sign-in is not overwritten. */
SIGNED_IN(what_could_not_be_kept_gives_way_to_a_new_sign_in, 13)
{
    char token[512];
    let_pass(stage, HOUR_MS);
    stage->provider.manner = MANNER_ROTATE;
    tide_sim_disk_room(stage->sim, 1);
    EXPECT(get(stage, token), TIDE_DISK_FULL);
    tide_sim_disk_room(stage->sim, 1 << 30);
    stage->provider.manner = MANNER_GOOD;
    let_pass(stage, MINUTE_MS);
    sign_in(stage);
    EXPECT(get(stage, token), TIDE_OK);
    assert_int_equal(profile(stage, token), 200);
    let_pass(stage, HOUR_MS);
    EXPECT(get(stage, token), TIDE_OK);
    assert_null(strstr(stage->provider.last_refresh, "rotated-refresh-"));
}

/* OAU1: power is lost at each step around a refresh in turn; a token that was given out
 * is found on the disk afterwards. */
TEST(a_token_is_durable_before_it_is_used)
{
    unsigned given = 0;
    for (uint64_t steps = 1; steps < 60; steps++) {
        char token[512];
        char stored[512];
        struct stage *stage = stage_signed_in(1000 + steps);
        let_pass(stage, HOUR_MS);
        tide_sim_crash_after(stage->sim, steps, TIDE_SIM_CRASH_POWER);
        const tide_status rc = get(stage, token);
        tide_sim_crash(stage->sim, TIDE_SIM_CRASH_POWER);
        tokens_close(stage);
        tide_sim_reboot(stage->sim);
        tokens_open(stage);
        const unsigned before = stage->provider.refreshes;
        EXPECT(get(stage, stored), TIDE_OK);
        if (rc == TIDE_OK) {
            given++;
            assert_string_equal(stored, token);
            assert_int_equal(stage->provider.refreshes, before);
        } else {
            assert_int_equal(rc, TIDE_STOPPED);
        }
        assert_int_equal(profile(stage, stored), 200);
        stage_end(stage);
    }
    assert_in_range(given, 1, 58); /* both were tried */
}

STAGED(a_damaged_or_missing_sign_in_asks_for_a_new_one, 14)
{
    static const char *const bad[] = {
        "",
        "{",
        "[]",
        "{}",
        "{\"v\":1}",
        "{\"v\":0,\"type\":\"fixed\",\"access_token\":\"a\"}",
        "{\"v\":1,\"type\":\"other\"}",
        "{\"v\":1,\"type\":\"fixed\"}",
        "{\"v\":1,\"type\":\"fixed\",\"access_token\":\"a b\"}",
        "{\"v\":1,\"type\":\"fixed\",\"access_token\":\"a\",\"expires_unix_ms\":\"x\"}",
        "{\"v\":1,\"type\":\"user\",\"refresh_token\":\"HIDDEN-REFRESH-TOKEN\"}",
        "{\"v\":1,\"type\":\"user\",\"refresh_token\":HIDDEN-REFRESH-TOKEN}",
        "{\"v\":1,\"type\":\"service\",\"private_key\":\"HIDDEN-REFRESH-TOKEN\"}",
    };
    keep_secret("HIDDEN-REFRESH-TOKEN");
    EXPECT(tokens_try(stage, &tokens_options), TIDE_AUTH);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        OK(tide_secrets_put(stage->secrets, SECRET, tide_text_of(bad[i]), NULL));
        EXPECT(tokens_try(stage, &tokens_options), TIDE_AUTH);
        assert_non_null(strstr(stage->err.text, "tidemark account add gmail " EMAIL));
    }
    OK(tide_secrets_put(stage->secrets, SECRET, TIDE_TEXT("{\"v\":2,\"type\":\"fixed\"}"), NULL));
    EXPECT(tokens_try(stage, &tokens_options), TIDE_NEWER);
    assert_null(stage->tokens);
}

STAGED(a_fixed_token_is_used_until_it_is_refused, 15)
{
    char token[512];
    bool revoked = true;
    OK(box_cloud_add_token(tide_sim_cloud_box(stage->provider.cloud),
                           TIDE_TEXT("demo-token-of-ada"), TIDE_TEXT(EMAIL), NULL));
    static const char *const bad[] = {"", "a b", "a\nb", "\xc3\xa9"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        EXPECT(tide_oauth_fixed(bad[i], &stage->grant, &stage->err), TIDE_INVALID);
    EXPECT(tide_oauth_fixed("demo-token-of-ada", &stage->grant, &stage->err), TIDE_OK);
    put_grant(stage, SECRET);
    tokens_open(stage);
    let_pass(stage, 1000 * HOUR_MS);
    EXPECT(get(stage, token), TIDE_OK);
    assert_string_equal(token, "demo-token-of-ada");
    assert_int_equal(profile(stage, token), 200);
    tide_tokens_refused(stage->tokens, tide_text_of(token));
    EXPECT(get(stage, token), TIDE_AUTH);
    EXPECT(get(stage, token), TIDE_AUTH);
    assert_int_equal(stage->provider.tokens, 0);
    EXPECT(tokens_revoke(stage, &revoked), TIDE_OK);
    assert_int_equal(stage->provider.revokes, 0);
    assert_false(revoked);
}

STAGED(a_revoked_sign_in_is_gone_here_and_there, 16)
{
    char token[512];
    bool revoked = false;
    tide_buf secret = heap_buf(TIDE_SECRET_BYTES_MAX);
    sign_in(stage);
    tokens_open(stage);
    EXPECT(get(stage, token), TIDE_OK);
    /* First it fails, and everything stays. */
    stage->provider.manner = MANNER_ECHO;
    stage->provider.http = 500;
    EXPECT(tokens_revoke(stage, &revoked), TIDE_SERVER);
    tide_sim_net_down(stage->sim, true);
    EXPECT(tokens_revoke(stage, &revoked), TIDE_NETWORK);
    tide_sim_net_down(stage->sim, false);
    stage->provider.manner = MANNER_GOOD;
    assert_int_equal(profile(stage, token), 200);
    EXPECT(get(stage, token), TIDE_OK);

    assert_false(revoked);
    EXPECT(tokens_revoke(stage, &revoked), TIDE_OK);
    assert_true(revoked);
    assert_int_equal(profile(stage, token), 401);
    assert_int_equal(tide_secrets_get(stage->secrets, SECRET, &secret, NULL), TIDE_NOT_FOUND);
    EXPECT(get(stage, token), TIDE_AUTH);
    EXPECT(tokens_revoke(stage, &revoked), TIDE_OK); /* twice is fine */
    tokens_close(stage);

    /* One that died elsewhere can be revoked as well. */
    sign_in(stage);
    tokens_open(stage);
    control(stage, "/_cloud/token/revoke", "{\"user\":\"" EMAIL "\"}");
    EXPECT(tokens_revoke(stage, &revoked), TIDE_OK);
}

/* ---- many threads, in the simulated world ---- */

enum { THREADS = 24 };

struct asker {
    struct stage *stage;
    tide_cancel cancel;
    tide_status rc;
    tide_error err;
    char token[512];
};

static void asker_run(void *arg)
{
    struct asker *asker = arg;
    tide_buf bearer = heap_buf(511);
    asker->rc = tide_tokens_get(asker->stage->tokens, &asker->cancel, &bearer, &asker->err);
    (void)snprintf(asker->token, sizeof asker->token, "%s", tide_buf_cstr(&bearer));
    tide_secret_wipe(&bearer);
}

static void ask_together(struct stage *stage, struct asker askers[THREADS], size_t canceled)
{
    tide_thread *threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        askers[i] = (struct asker){.stage = stage};
        OK(tide_world_thread(stage->world, "asker", asker_run, &askers[i], &threads[i], NULL));
    }
    for (size_t i = 0; i < canceled; i++)
        tide_world_cancel(stage->world, &askers[i].cancel, TIDE_CANCEL_USER);
    for (size_t i = 0; i < THREADS; i++)
        tide_world_join(stage->world, threads[i]);
}

/* OAU2, over many orders of threads: at expiry, after a refusal, and when it fails. */
TEST(however_many_ask_there_is_one_refresh)
{
    const long seeds = (long)scaled(150);
    for (long seed = 1; seed <= seeds; seed++) {
        struct asker askers[THREADS];
        const struct tide_sim_options options = {.spurious_permille = 50,
                                                 .unfair = seed % 2 == 0,
                                                 .yield_permille = seed % 3 == 0 ? 1000 : 0};
        struct stage *stage = stage_start((uint64_t)seed, options);
        sign_in(stage);
        tokens_open(stage);
        let_pass(stage, HOUR_MS);
        ask_together(stage, askers, 0);
        for (size_t i = 0; i < THREADS; i++) {
            TIDE_SIM_EXPECT(stage->sim, askers[i].rc == TIDE_OK);
            TIDE_SIM_EXPECT(stage->sim, strcmp(askers[i].token, askers[0].token) == 0);
        }
        TIDE_SIM_EXPECT(stage->sim, stage->provider.refreshes == 1);

        for (size_t i = 0; i < THREADS; i++)
            tide_tokens_refused(stage->tokens, tide_text_of(askers[0].token));
        ask_together(stage, askers, 0);
        TIDE_SIM_EXPECT(stage->sim, stage->provider.refreshes == 2);

        /* A failure is shared by all who waited; who comes later tries once more. */
        let_pass(stage, HOUR_MS);
        stage->provider.manner = MANNER_PAGE;
        stage->provider.http = 503;
        ask_together(stage, askers, 0);
        for (size_t i = 0; i < THREADS; i++) {
            TIDE_SIM_EXPECT(stage->sim, askers[i].rc == TIDE_SERVER);
            TIDE_SIM_EXPECT(stage->sim, askers[i].err.status == TIDE_SERVER);
        }
        TIDE_SIM_EXPECT(stage->sim, stage->provider.refreshes <= 2 + THREADS / 2);

        stage->provider.manner = MANNER_GRANT;
        const unsigned before = stage->provider.refreshes;
        ask_together(stage, askers, 0);
        for (size_t i = 0; i < THREADS; i++)
            TIDE_SIM_EXPECT(stage->sim, askers[i].rc == TIDE_AUTH);
        TIDE_SIM_EXPECT(stage->sim, stage->provider.refreshes == before + 1); /* OAU3 */
        stage_end(stage);
    }
}

/* Who is canceled leaves, and if it was the one who refreshed, another takes over. */
TEST(a_canceled_refresh_is_taken_over)
{
    const long seeds = (long)scaled(150);
    unsigned taken_over = 0;
    for (long seed = 1; seed <= seeds; seed++) {
        struct asker askers[THREADS];
        struct stage *stage = stage_signed_in((uint64_t)seed);
        let_pass(stage, HOUR_MS);
        ask_together(stage, askers, THREADS / 2);
        for (size_t i = 0; i < THREADS; i++) {
            const bool canceled = i < THREADS / 2;
            TIDE_SIM_EXPECT(stage->sim,
                            askers[i].rc == TIDE_OK || (canceled && askers[i].rc == TIDE_CANCELED));
            taken_over += canceled && askers[i].rc == TIDE_CANCELED;
        }
        TIDE_SIM_EXPECT(stage->sim, profile(stage, askers[THREADS - 1].token) == 200);
        stage_end(stage);
    }
    assert_true(taken_over > 0);
}

/* A bad network, a bad disk, pauses and jumps of the clock: whatever comes back, it is
 * one of the promised statuses, shows nothing, and without faults the token works again. */
TEST(with_faults_every_status_is_a_documented_one)
{
    const long seeds = (long)scaled(150);
    for (long seed = 1; seed <= seeds; seed++) {
        struct asker askers[THREADS];
        char token[512];
        const struct tide_sim_options options = tide_sim_options_seeded((uint64_t)seed);
        struct stage *stage = stage_start((uint64_t)seed, options);
        tide_sim_faults(stage->sim, false);
        sign_in(stage);
        tokens_open(stage);
        tide_sim_faults(stage->sim, true);
        for (int round = 0; round < 3; round++) {
            let_pass(stage, HOUR_MS);
            ask_together(stage, askers, (size_t)round);
            for (size_t i = 0; i < THREADS; i++) {
                const tide_status rc = askers[i].rc;
                TIDE_SIM_EXPECT(stage->sim, rc == TIDE_OK || rc == TIDE_NETWORK ||
                                                rc == TIDE_SERVER || rc == TIDE_TIMEOUT ||
                                                rc == TIDE_CANCELED || rc == TIDE_THROTTLED ||
                                                rc == TIDE_IO || rc == TIDE_DISK_FULL);
                check_shows_nothing(&askers[i].err);
            }
        }
        tide_sim_faults(stage->sim, false);
        let_pass(stage, HOUR_MS);
        EXPECT(get(stage, token), TIDE_OK);
        TIDE_SIM_EXPECT(stage->sim, profile(stage, token) == 200);
        stage_end(stage);
    }
}

/* ---- threads of the real world ---- */

struct racer {
    tide_tokens *tokens;
    long rounds;
    unsigned refusals;
    tide_status rc;
};

/* Asks again and again; now and then the server "refuses" what it got. */
static void racer_run(void *arg)
{
    struct racer *racer = arg;
    tide_buf bearer = heap_buf(512);
    for (long i = 0; racer->rc == TIDE_OK && i < racer->rounds; i++) {
        racer->rc = tide_tokens_get(racer->tokens, NULL, &bearer, NULL);
        if (racer->rc == TIDE_OK && i % 16 == 15)
            tide_tokens_refused(racer->tokens, tide_buf_text(&bearer));
    }
    tide_secret_wipe(&bearer);
}

/* Real threads over a gate: all of them find the token refused at once, and there is
 * exactly one refresh; then everything at once, for the race detector. */
REALLY(real_threads_share_one_refresh)
{
    enum { RACERS = 16 };
    struct racer racers[RACERS];
    tide_thread *threads[RACERS];
    tide_tokens *tokens = NULL;
    real_sign_in();
    tide_buf bearer = heap_buf(512);
    OK(tide_tokens_open(real.world, real.secrets, &tokens_options, tide_mem_heap(), &tokens, NULL));
    for (unsigned round = 1; round <= 20; round++) {
        OK(tide_tokens_get(tokens, NULL, &bearer, NULL));
        tide_tokens_refused(tokens, tide_buf_text(&bearer));
        for (size_t i = 0; i < RACERS; i++) {
            racers[i] = (struct racer){.tokens = tokens, .rounds = 1};
            OK(tide_world_thread(real.world, "racer", racer_run, &racers[i], &threads[i], NULL));
        }
        for (size_t i = 0; i < RACERS; i++) {
            tide_world_join(real.world, threads[i]);
            assert_int_equal(racers[i].rc, TIDE_OK);
        }
        assert_int_equal(real.refreshes, round);
    }
    for (size_t i = 0; i < RACERS; i++) {
        racers[i] = (struct racer){.tokens = tokens, .rounds = (long)scaled(64)};
        OK(tide_world_thread(real.world, "racer", racer_run, &racers[i], &threads[i], NULL));
    }
    for (size_t i = 0; i < RACERS; i++) {
        tide_world_join(real.world, threads[i]);
        assert_int_equal(racers[i].rc, TIDE_OK);
    }
    tide_tokens_close(tokens);
    tide_secret_wipe(&bearer);
}

/* A secret that others can read must not make a mail bad (TIDE_INVALID would). */
REALLY(a_sign_in_that_others_can_read_needs_its_owner)
{
    tide_tokens *tokens = NULL;
    tide_error err = {0};
    real_sign_in();
    const char *path = textf("%s/gmail%%2F" EMAIL, real.dir);
    assert_int_equal(chmod(path, 0644), 0);
    EXPECT_OF(
        tide_tokens_open(real.world, real.secrets, &tokens_options, tide_mem_heap(), &tokens, &err),
        TIDE_AUTH, &err);
    assert_non_null(strstr(err.text, "chmod 600 "));
    assert_null(tokens);
}
