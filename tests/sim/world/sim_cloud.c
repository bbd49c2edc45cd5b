#include "sim_cloud.h"

#include "base/check.h"
#include "base/json.h"
#include "cloudbox/gate/service.h"
#include "cloudbox/gate/user.h"
#include "net/oauth/oauth.h"

#include <time.h>

enum { HELD_MAX = 4096 };

/* An answer that is still leaving. */
struct held {
    uint64_t until_ms;
    struct box_ticket ticket;
};

struct tide_sim_cloud {
    box_cloud *box;
    struct held held[HELD_MAX];
    size_t held_count;
};

tide_sim_cloud *tide_sim_cloud_new(const struct box_options *options)
{
    tide_sim_cloud *cloud = tide_mem_new(tide_mem_heap(), sizeof *cloud);
    TIDE_ASSERT(cloud != NULL);
    struct box_options all = *options;
    all.services = box_services_all;
    cloud->box = box_cloud_new(&all);
    return cloud;
}

void tide_sim_cloud_free(tide_sim_cloud *cloud)
{
    if (cloud == NULL)
        return;
    box_cloud_free(cloud->box);
    tide_mem_free(tide_mem_heap(), cloud, sizeof *cloud);
}

box_cloud *tide_sim_cloud_box(tide_sim_cloud *cloud)
{
    return cloud->box;
}

/* Frees the slots of answers that have left by now (SCLD1). */
static void release(tide_sim_cloud *cloud, uint64_t now_ms)
{
    for (size_t i = 0; i < cloud->held_count;) {
        if (cloud->held[i].until_ms > now_ms) {
            i++;
            continue;
        }
        box_cloud_finished(cloud->box, &cloud->held[i].ticket, now_ms);
        cloud->held[i] = cloud->held[--cloud->held_count];
    }
}

static void hold(tide_sim_cloud *cloud, const struct box_answer *from, uint64_t until_ms)
{
    if (from->ticket.slots == 0)
        return;
    TIDE_ASSERT(cloud->held_count < HELD_MAX);
    cloud->held[cloud->held_count++] = (struct held){until_ms, from->ticket};
}

/* "https://host/path?query" without what stands before the path. */
static tide_text target_of(const char *url)
{
    const char *host = strstr(url, "://");
    const char *path = strchr(host == NULL ? url : host + 3, '/');
    return path == NULL ? TIDE_TEXT("/") : tide_text_of(path);
}

/* As every server on the wire does. */
static void date(uint64_t now_unix_ms, struct tide_sim_answer *answer)
{
    const time_t now_s = (time_t)(now_unix_ms / 1000);
    struct tm parts;
    char text[40];
    TIDE_ASSERT(gmtime_r(&now_s, &parts) != NULL);
    TIDE_ASSERT(strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &parts) > 0);
    tide_sim_answer_header(answer, "Date", text);
}

/* The body, also one that the wire would stream. */
static void carry_body(const struct box_answer *from, tide_buf *out)
{
    char piece[4096];
    const struct box_source *source = &from->source;
    if (source->read == NULL)
        TIDE_ASSERT(tide_buf_add(out, tide_buf_cstr(&from->body), from->body.bytes) == TIDE_OK);
    for (uint64_t at = 0; source->read != NULL && at < source->bytes;) {
        const uint64_t left = source->bytes - at;
        const size_t count = left < sizeof piece ? (size_t)left : sizeof piece;
        source->read(source->arg, at, piece, count);
        TIDE_ASSERT(tide_buf_add(out, piece, count) == TIDE_OK);
        at += count;
    }
}

static void carry(const struct box_answer *from, struct tide_sim_answer *answer)
{
    const struct box_plan *plan = &from->plan;
    answer->http = from->status;
    carry_body(from, &answer->body);
    if (from->type[0] != '\0')
        tide_sim_answer_header(answer, "Content-Type", from->type);
    for (size_t i = 0; i < from->headers_count; i++)
        tide_sim_answer_header(answer, from->headers[i].name, from->headers[i].value);
    answer->think_us += (uint64_t)plan->delay_ms * 1000;
    if (plan->bytes_per_s > 0)
        answer->think_us += answer->body.bytes * 1000000 / plan->bytes_per_s;
    answer->stall = plan->fate == BOX_FATE_STALL;
    answer->reset = plan->fate == BOX_FATE_RESET;
    if (plan->fate == BOX_FATE_TRUNCATE)
        answer->truncate_from = answer->body.bytes / 2;
}

void tide_sim_cloud_call(void *arg, const struct tide_request *request, uint64_t now_unix_ms,
                         tide_rng *rng, struct tide_sim_answer *answer)
{
    (void)rng; /* the cloud's chance comes from its own seed */
    tide_sim_cloud *cloud = arg;
    release(cloud, now_unix_ms);
    struct box_header headers[BOX_HEADERS_MAX];
    TIDE_ASSERT(request->headers_count <= BOX_HEADERS_MAX);
    for (size_t i = 0; i < request->headers_count; i++)
        headers[i] = (struct box_header){request->headers[i].name, request->headers[i].value};
    const struct box_request inner = {
        .verb = box_verb_of(tide_text_of(request->method)),
        .target = target_of(request->url),
        .headers = headers,
        .headers_count = request->headers_count,
        .body = request->body,
        .origin = TIDE_TEXT("http://provider"),
    };
    struct box_answer from;
    box_answer_init(&from);
    box_cloud_serve(cloud->box, &inner, now_unix_ms, &from);
    date(now_unix_ms, answer);
    carry(&from, answer);
    const uint64_t leaves_ms = now_unix_ms + answer->think_us / 1000;
    hold(cloud, &from, leaves_ms + (from.plan.fate == BOX_FATE_STALL ? from.plan.stall_ms : 0));
    box_answer_done(&from);
}

json_t *tide_sim_cloud_ask(tide_sim_cloud *cloud, const char *method, const char *target,
                           tide_text body, uint64_t now_unix_ms, int *http_out)
{
    const struct box_request request = {.verb = box_verb_of(tide_text_of(method)),
                                        .target = tide_text_of(target),
                                        .body = body,
                                        .origin = TIDE_TEXT("http://provider")};
    struct box_answer answer;
    box_answer_init(&answer);
    box_cloud_serve(cloud->box, &request, now_unix_ms, &answer);
    hold(cloud, &answer, now_unix_ms);
    if (http_out != NULL)
        *http_out = answer.status;
    json_t *value = NULL;
    (void)tide_json_parse(tide_buf_text(&answer.body), &value, NULL);
    box_answer_done(&answer);
    return value;
}

tide_buf tide_sim_cloud_text(tide_sim_cloud *cloud, tide_sim *sim, const char *target)
{
    const struct box_request request = {
        .verb = BOX_GET, .target = tide_text_of(target), .origin = TIDE_TEXT("http://provider")};
    struct box_answer answer;
    tide_buf text = tide_buf_heap((size_t)1 << 28);
    box_answer_init(&answer);
    box_cloud_serve(cloud->box, &request, tide_sim_net_unix_ms(sim), &answer);
    if (answer.status / 100 != 2 ||
        tide_buf_add(&text, answer.body.data, answer.body.bytes) != TIDE_OK)
        tide_sim_fail(sim, "the cloud says %d to GET %s", answer.status, target);
    box_answer_done(&answer);
    return text;
}

json_t *tide_sim_cloud_control(tide_sim_cloud *cloud, tide_sim *sim, const char *method,
                               const char *target, tide_text body)
{
    int http = 0;
    json_t *answer =
        tide_sim_cloud_ask(cloud, method, target, body, tide_sim_net_unix_ms(sim), &http);
    if (http / 100 != 2)
        tide_sim_fail(sim, "the cloud says %d to %s %s %.*s", http, method, target, (int)body.bytes,
                      body.bytes > 0 ? body.data : "");
    return answer;
}

box_mailbox *tide_sim_cloud_user(tide_sim_cloud *cloud, tide_sim *sim, const char *email,
                                 const char *token, struct box_mailbox_options mailbox)
{
    tide_error err = {TIDE_OK, 0, ""};
    const tide_text user = tide_text_of(email);
    mailbox.now_unix_ms = tide_sim_net_unix_ms(sim);
    if (box_cloud_add_mailbox(cloud->box, user, &mailbox, &err) != TIDE_OK ||
        box_cloud_add_token(cloud->box, tide_text_of(token), user, &err) != TIDE_OK)
        tide_sim_fail(sim, "no mailbox: %s", err.text);
    return box_user_mailbox(box_cloud_user(cloud->box, user));
}

void tide_sim_cloud_fault(tide_sim_cloud *cloud, tide_sim *sim, const char *rule)
{
    tide_error err = {TIDE_OK, 0, ""};
    if (box_cloud_add_fault(cloud->box, tide_text_of(rule), &err) != TIDE_OK)
        tide_sim_fail(sim, "%s: %s", rule, err.text);
}

tide_status tide_sim_signed_in(tide_world *world, const char *dir, const char *name,
                               const char *token, tide_secrets **secrets_out, tide_error *err)
{
    tide_buf grant;
    tide_buf_init(&grant, tide_mem_heap(), TIDE_SECRET_BYTES_MAX);
    tide_status rc =
        tide_secrets_open(world, dir, TIDE_SECRETS_FILES, tide_mem_heap(), secrets_out, err);
    if (rc == TIDE_OK && tide_secrets_get(*secrets_out, name, &grant, err) != TIDE_OK) {
        tide_buf_clear(&grant);
        rc = tide_oauth_fixed(token, &grant, err);
        if (rc == TIDE_OK)
            rc = tide_secrets_put(*secrets_out, name, tide_buf_text(&grant), err);
    }
    tide_secret_wipe(&grant);
    return rc;
}
