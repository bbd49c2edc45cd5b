#include "cli/serve/page.h"

#include "base/check.h"
#include "cli/run/call.h"

#include <stdio.h>
#include <string.h>

enum {
    PARTS_MAX = 8,
    CAP_TEXT_BYTES = 2 * CLI_CAP_BYTES,
    NAME_BYTES = 256,
};

struct cap {
    unsigned char secret[CLI_CAP_BYTES];
    uint64_t until_ms; /* 0: free */
    uint64_t who;
    const struct tide_system *system;
    char account[NAME_BYTES];
    char item[NAME_BYTES];
    bool images;
};

struct cli_page {
    tide_lock *lock;
    struct cap caps[CLI_CAPS_MAX]; /* under the lock */
    struct route {
        struct cli_serve *serve;
        const char *name;
        char path[48];
    } routes[PARTS_MAX];
    size_t routes_count;
};

/* ---- caps ---- */

static bool text_copy(char out[NAME_BYTES], tide_text text)
{
    if (text.bytes == 0 || text.bytes >= NAME_BYTES)
        return false;
    memcpy(out, text.data, text.bytes);
    out[text.bytes] = '\0';
    return true;
}

/* A free place, or the oldest. */
static struct cap *place_of(struct cli_page *page, uint64_t now_ms)
{
    struct cap *place = &page->caps[0];
    for (size_t i = 0; i < CLI_CAPS_MAX; i++) {
        if (page->caps[i].until_ms <= now_ms)
            return &page->caps[i];
        if (page->caps[i].until_ms < place->until_ms)
            place = &page->caps[i];
    }
    return place;
}

static void hex(const unsigned char *bytes, size_t count, char *out)
{
    for (size_t i = 0; i < count; i++)
        (void)snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

/* Its time does not depend on where they differ. */
static bool is_same(const unsigned char *secret, tide_text text)
{
    char own[CAP_TEXT_BYTES + 1];
    unsigned differs = text.bytes != CAP_TEXT_BYTES;
    hex(secret, CLI_CAP_BYTES, own);
    for (size_t i = 0; text.bytes == CAP_TEXT_BYTES && i < CAP_TEXT_BYTES; i++)
        differs |= (unsigned)(unsigned char)(own[i] ^ text.data[i]);
    return differs == 0;
}

static bool cap_find(struct cli_serve *serve, tide_text text, struct cap *cap_out)
{
    struct cli_page *page = serve->page;
    tide_world *world = serve->cli->world;
    bool found = false;
    tide_lock_take(world, page->lock);
    const uint64_t now_ms = tide_world_now_ms(world);
    for (size_t i = 0; i < CLI_CAPS_MAX; i++)
        if (page->caps[i].until_ms > now_ms && is_same(page->caps[i].secret, text)) {
            *cap_out = page->caps[i];
            found = true;
        }
    tide_lock_drop(world, page->lock);
    return found && tide_keys_still(serve->keys, cap_out->who);
}

void cli_page_view(const struct cli_api *api, const struct tide_httpd_request *request,
                   tide_json *json)
{
    struct cli_serve *serve = api->serve;
    tide_world *world = serve->cli->world;
    char path[CAP_TEXT_BYTES + 8];
    struct cap cap = {.who = request->who->id, .system = api->system};
    cap.images = tide_text_equal(tide_httpd_param(request, "images"), TIDE_TEXT("yes"));
    if (!text_copy(cap.account, tide_httpd_part(request, api->flag_part)) ||
        !text_copy(cap.item, tide_httpd_part(request, api->part)))
        return; /* the command found no such item */
    tide_world_random(world, cap.secret, sizeof cap.secret);
    tide_lock_take(world, serve->page->lock);
    const uint64_t now_ms = tide_world_now_ms(world);
    cap.until_ms = now_ms + CLI_CAP_MS;
    *place_of(serve->page, now_ms) = cap;
    tide_lock_drop(world, serve->page->lock);

    tide_json view;
    memcpy(path, "/v/", 3);
    hex(cap.secret, sizeof cap.secret, path + 3);
    memcpy(path + 3 + CAP_TEXT_BYTES, "/", 2);
    tide_json_object(&view);
    tide_json_set_cstr(&view, "path", path);
    tide_json_set_u64(&view, "until_unix_ms", tide_world_now_unix_ms(world) + CLI_CAP_MS);
    tide_json_set_bool(&view, "images", cap.images);
    tide_json_set(json, "view", &view);
    explicit_bzero(&cap, sizeof cap);
}

/* ---- parts ---- */

static const struct cli_page_part *part_of(const struct tide_system *system, const char *name)
{
    for (const struct cli_page_part *part = system->parts; part != NULL && part->name != NULL;
         part++)
        if (strcmp(part->name, name) == 0)
            return part;
    return NULL;
}

static void run(const struct route *route, const struct cli_page_part *part, const struct cap *cap,
                const struct tide_httpd_request *request, struct tide_httpd_answer *answer)
{
    struct cli_page_ask ask = {.account = cap->account,
                               .item = cap->item,
                               .cancel = request->cancel,
                               .kept = cli_kept(route->serve->cli, cap->system)};
    if (part->numbered && !tide_text_to_u64(tide_httpd_part(request, "number"), &ask.number)) {
        tide_httpd_fail(answer, 404, "path", "There is no such part.", NULL);
        return;
    }
    struct cli *call = cli_call_open(route->serve->cli, request->cancel);
    if (call == NULL)
        return; /* answered as a 500 */
    const tide_status rc = part->answer(call, &ask, answer);
    if (rc != TIDE_OK) {
        const int status = cli_api_status(rc);
        tide_httpd_fail(
            answer, status, tide_status_name(rc), call->err.text,
            &(struct tide_httpd_problem){.help = call->hint[0] == '\0' ? NULL : call->hint,
                                         .retry_after_s = status == 503 ? 1 : 0});
    }
    cli_call_close(call);
}

static void part_get(void *arg, const struct tide_httpd_request *request,
                     struct tide_httpd_answer *answer)
{
    const struct route *route = arg;
    struct cap cap;
    if (!cap_find(route->serve, tide_httpd_part(request, "cap"), &cap)) {
        tide_httpd_fail(answer, 401, "key", "This address is not known here any more.",
                        &(struct tide_httpd_problem){.help = "Open the message again."});
        return;
    }
    const struct cli_page_part *part = part_of(cap.system, route->name);
    if (part == NULL)
        tide_httpd_fail(answer, 404, "path", "There is no such part.", NULL);
    else if (part->network && !cap.images)
        tide_httpd_fail(answer, 403, "consent", "The user did not agree to load remote images.",
                        NULL);
    else
        run(route, part, &cap, request, answer);
    explicit_bzero(&cap, sizeof cap);
}

/* ---- routes ---- */

static bool has_route(const struct cli_page *page, const char *name)
{
    for (size_t i = 0; i < page->routes_count; i++)
        if (strcmp(page->routes[i].name, name) == 0)
            return true;
    return false;
}

static void route_add(struct cli_serve *serve, const struct cli_page_part *part)
{
    TIDE_ASSERT(serve->page->routes_count < PARTS_MAX);
    TIDE_ASSERT(serve->routes_count < CLI_SERVE_ROUTES_MAX);
    struct route *route = &serve->page->routes[serve->page->routes_count++];
    route->serve = serve;
    route->name = part->name;
    (void)snprintf(route->path, sizeof route->path, "/v/{cap}/%s%s", part->name,
                   part->numbered ? "/{number}" : "");
    serve->routes[serve->routes_count++] = (struct tide_httpd_route){
        .method = "GET",
        .path = route->path,
        .way = part->network ? TIDE_HTTPD_FETCH : TIDE_HTTPD_READER,
        .handler = part_get,
        .arg = route,
    };
}

tide_status cli_page_routes(struct cli_serve *serve, tide_error *err)
{
    serve->page = tide_mem_new(serve->cli->mem, sizeof *serve->page);
    if (serve->page == NULL || tide_lock_new(serve->cli->world, &serve->page->lock) != TIDE_OK)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for the page");
    for (size_t i = 0; serve->cli->systems[i] != NULL; i++) {
        const struct cli_page_part *part = serve->cli->systems[i]->parts;
        for (; part != NULL && part->name != NULL; part++)
            if (!has_route(serve->page, part->name))
                route_add(serve, part);
    }
    return TIDE_OK;
}

void cli_page_free(struct cli_serve *serve)
{
    struct cli_page *page = serve->page;
    if (page == NULL)
        return;
    if (page->lock != NULL)
        tide_lock_free(serve->cli->world, page->lock);
    explicit_bzero(page, sizeof *page);
    tide_mem_free(serve->cli->mem, page, sizeof *page);
    serve->page = NULL;
}
