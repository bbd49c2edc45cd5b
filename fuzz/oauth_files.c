/* oauth_files.c - files from users and stored grants (net/oauth/oauth.h): any bytes as a client
 * file, as a service account's key and as a grant.  A grant that was read is written and read
 * back to the same. */
#include "fuzz.h"
#include "net/oauth/google.h"
#include "net/oauth/inside.h"

static void client(tide_text file)
{
    struct tide_oauth_client read;
    tide_error err = {TIDE_OK, 0, ""};
    if (tide_oauth_client_read(&tide_oauth_google, file, &read, &err) != TIDE_OK) {
        TIDE_ASSERT(err.status != TIDE_OK && err.text[0] != '\0');
        return;
    }
    const char *const urls[] = {read.auth_url, read.token_url, read.device_url, read.revoke_url};
    TIDE_ASSERT(tide_oauth_is_token(tide_text_of(read.client_id)));
    for (size_t i = 0; i < 4; i++)
        TIDE_ASSERT(urls[i][0] == '\0' || tide_oauth_is_url(tide_text_of(urls[i])));
}

static void key(tide_text file)
{
    tide_buf grant;
    tide_error err = {TIDE_OK, 0, ""};
    tide_buf_init(&grant, tide_mem_heap(), TIDE_SECRET_BYTES_MAX);
    const tide_status rc =
        tide_oauth_service_account(file, "ada@example.com", "scope", &grant, &err);
    TIDE_ASSERT((rc == TIDE_OK) == (grant.bytes > 0));
    TIDE_ASSERT(rc == TIDE_OK || err.text[0] != '\0');
    tide_secret_wipe(&grant);
}

static void grant(tide_text json)
{
    struct tide_mem_wiping wiping;
    struct tide_grant first;
    struct tide_grant second;
    tide_buf line;
    tide_mem_wiping_init(&wiping, tide_mem_heap());
    tide_grant_init(&first, &wiping.base);
    tide_grant_init(&second, &wiping.base);
    tide_buf_init(&line, &wiping.base, 1 << 20);
    if (json.bytes <= TIDE_SECRET_BYTES_MAX && tide_grant_read(json, &first, NULL) == TIDE_OK) {
        TIDE_ASSERT(tide_grant_write(&first, &line, NULL) == TIDE_OK);
        TIDE_ASSERT(tide_grant_read(tide_buf_text(&line), &second, NULL) == TIDE_OK);
        TIDE_ASSERT(tide_grant_same(&first, &second));
        TIDE_ASSERT(first.expires_unix_ms == second.expires_unix_ms);
    }
    tide_grant_done(&first);
    tide_grant_done(&second);
    tide_secret_wipe(&line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    const tide_text file = fuzz_exact((tide_text){(const char *)data, bytes});
    client(file);
    key(file);
    grant(file);
    free((void *)(uintptr_t)file.data);
    return 0;
}
