/* cloud_bench.c - measures the speed of the cloud in a box.
 *
 * Every other measurement runs against it, so it must never be the bottleneck: >=
 * 22,000 messages.get raw of 10 kB a second on one core with authentication, quota and
 * referee on; a million messages ready in < 5 s and < 1 GB; a page of 500 at that size
 * in < 5 ms by date, label and Message-ID; history O(page).
 *
 * Method: the logic in this process; then the program on its own port, with the
 * cheapest client we can write.  The server's CPU time, not the wall clock, gives the
 * rate of one core.  For comparison the same bytes served by libmicrohttpd alone,
 * without any logic: the limit of this front end.
 *
 * Prints a JSON line per figure: {"name","value","unit","ratio","to"}. */
#include "bench.h"
#include "cloud_load.h"

#include "base/check.h"
#include "base/json.h"
#include "cloudbox/services.h"
#include "cloudbox/mailbox/mime.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <microhttpd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MILLION = 1000000, SIZE_BYTES = 10240, PAGES = 200, NOW_S = 1790000000 };

#define NOW_MS ((uint64_t)NOW_S * 1000)

/* ---- the logic alone ---- */

static json_t *ask(box_cloud *cloud, const char *target, double *seconds_out)
{
    const struct box_header header = {TIDE_TEXT("Authorization"), TIDE_TEXT("Bearer t")};
    const struct box_request request = {.verb = BOX_GET,
                                        .target = tide_text_of(target),
                                        .headers = &header,
                                        .headers_count = 1,
                                        .origin = TIDE_TEXT("http://localhost")};
    struct box_answer answer;
    box_answer_init(&answer);
    const double start = now_s();
    box_cloud_serve(cloud, &request, NOW_MS, &answer);
    if (seconds_out != NULL)
        *seconds_out += now_s() - start;
    box_cloud_finished(cloud, &answer.ticket, NOW_MS);
    if (answer.status != 200) {
        (void)fprintf(stderr, "cloud_bench: %s: %d %s\n", target, answer.status,
                      tide_buf_cstr(&answer.body));
        exit(1);
    }
    json_t *value = NULL;
    TIDE_ASSERT(tide_json_parse(tide_buf_text(&answer.body), &value, NULL) == TIDE_OK);
    box_answer_done(&answer);
    return value;
}

/* Reads a page of that query, PAGES times, following its tokens. */
static void page(box_cloud *cloud, const char *name, const char *query)
{
    double seconds = 0;
    size_t messages = 0;
    char token[256] = "";
    for (int i = 0; i < PAGES; i++) {
        char target[1024];
        (void)snprintf(target, sizeof target,
                       "/gmail/v1/users/me/messages?prettyPrint=false&maxResults=500&%s%s%s", query,
                       token[0] == '\0' ? "" : "&pageToken=", token);
        json_t *value = ask(cloud, target, &seconds);
        messages += json_array_size(json_object_get(value, "messages"));
        const char *next = json_string_value(json_object_get(value, "nextPageToken"));
        (void)snprintf(token, sizeof token, "%s", next == NULL ? "" : next);
        json_decref(value);
    }
    figure(name, seconds * 1000 / PAGES, "ms", seconds * 1000 / PAGES / 5, "5 ms");
    if (messages == 0)
        (void)fprintf(stderr, "cloud_bench: %s found nothing\n", name);
}

static void message_id_page(box_cloud *cloud)
{
    json_t *list = ask(cloud, "/gmail/v1/users/me/messages?maxResults=1", NULL);
    const char *id = json_string_value(
        json_object_get(json_array_get(json_object_get(list, "messages"), 0), "id"));
    char target[512];
    (void)snprintf(target, sizeof target,
                   "/gmail/v1/users/me/messages/%s?format=metadata&metadataHeaders=Message-ID", id);
    json_t *message = ask(cloud, target, NULL);
    const json_t *header =
        json_array_get(json_object_get(json_object_get(message, "payload"), "headers"), 0);
    const char *value = json_string_value(json_object_get(header, "value"));
    if (value == NULL) {
        (void)fprintf(stderr, "cloud_bench: the newest message has no Message-ID\n");
        exit(1);
    }
    char query[512];
    (void)snprintf(query, sizeof query, "q=rfc822msgid:%.*s", (int)strcspn(value + 1, ">"),
                   value + 1);
    page(cloud, "cloud_list_message_id_1m", query);
    json_decref(message);
    json_decref(list);
}

static void history_page(box_cloud *cloud)
{
    json_t *first = ask(cloud, "/gmail/v1/users/me/messages?maxResults=500", NULL);
    json_t *list = json_object_get(first, "messages");
    const char *id =
        json_string_value(json_object_get(json_array_get(list, json_array_size(list) - 1), "id"));
    char target[512];
    (void)snprintf(target, sizeof target, "/gmail/v1/users/me/messages/%s?format=minimal", id);
    json_t *message = ask(cloud, target, NULL);
    (void)snprintf(target, sizeof target,
                   "/gmail/v1/users/me/history?prettyPrint=false&maxResults=500&startHistoryId=%s",
                   json_string_value(json_object_get(message, "historyId")));
    double seconds = 0;
    for (int i = 0; i < PAGES; i++)
        json_decref(ask(cloud, target, &seconds));
    figure("cloud_history_page_1m", seconds * 1000 / PAGES, "ms", seconds * 1000 / PAGES / 5,
           "5 ms");
    json_decref(message);
    json_decref(first);
}

static void logic(void)
{
    const struct box_options options = {
        .seed = 1, .quota = BOX_QUOTA_OFF, .services = box_services_all};
    box_cloud *cloud = box_cloud_new(&options);
    tide_error err = {0};
    const double start = now_s();
    const struct box_mailbox_options mailbox = {.messages = MILLION, .now_unix_ms = NOW_MS};
    TIDE_ASSERT(box_cloud_add_mailbox(cloud, TIDE_TEXT("a@example.com"), &mailbox, &err) ==
                TIDE_OK);
    TIDE_ASSERT(box_cloud_add_token(cloud, TIDE_TEXT("t"), TIDE_TEXT("a@example.com"), &err) ==
                TIDE_OK);
    json_decref(ask(cloud, "/gmail/v1/users/me/messages?maxResults=1", NULL));
    const double ready_s = now_s() - start;
    figure("cloud_ready_1m", ready_s, "s", ready_s / 5, "5 s");
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    figure("cloud_memory_1m", (double)usage.ru_maxrss / 1024, "MB",
           (double)usage.ru_maxrss / 1024 / 1024, "1 GB");
    page(cloud, "cloud_list_all_1m", "includeSpamTrash=true");
    page(cloud, "cloud_list_date_1m", "q=after:1600000000%20before:1700000000");
    page(cloud, "cloud_list_label_1m", "labelIds=STARRED");
    page(cloud, "cloud_list_two_labels_1m", "labelIds=INBOX&labelIds=UNREAD");
    message_id_page(cloud);
    history_page(cloud);
    box_cloud_free(cloud);
}

/* ---- the program ---- */

/* User and system time of a process so far, in seconds. */
static double process_cpu_s(pid_t pid)
{
    char path[64];
    char text[1024] = "";
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    TIDE_ASSERT(file != NULL);
    TIDE_ASSERT(fgets(text, sizeof text, file) != NULL);
    (void)fclose(file);
    unsigned long user = 0;
    unsigned long system = 0;
    const char *after = strrchr(text, ')');
    TIDE_ASSERT(after != NULL);
    TIDE_ASSERT(sscanf(after + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
                       &system) == 2);
    return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

struct ids {
    char (*text)[24];
    size_t count;
};

static void get_raw(void *arg, uint32_t n, char *text_out, size_t text_bytes)
{
    const struct ids *ids = arg;
    (void)snprintf(text_out, text_bytes, "/gmail/v1/users/me/messages/%s?format=raw",
                   ids->text[n % ids->count]);
}

static size_t collect(char *bytes, size_t size, size_t count, void *arg)
{
    return tide_buf_add(arg, bytes, size * count) == TIDE_OK ? size * count : 0;
}

/* One request by libcurl; `post` NULL: GET.  The caller owns the answer. */
static json_t *curl_ask(uint16_t port, const char *target, const char *post)
{
    char url[1024];
    tide_buf body;
    tide_buf_init(&body, tide_mem_heap(), 64 << 20);
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%u%s", port, target);
    CURL *curl = curl_easy_init();
    struct curl_slist *headers = curl_slist_append(NULL, "Authorization: Bearer t");
    headers = curl_slist_append(headers, "Content-Type: application/json");
    (void)curl_easy_setopt(curl, CURLOPT_URL, url);
    (void)curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    (void)curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, collect);
    (void)curl_easy_setopt(curl, CURLOPT_WRITEDATA, &body);
    if (post != NULL)
        (void)curl_easy_setopt(curl, CURLOPT_POSTFIELDS, post);
    const CURLcode rc = curl_easy_perform(curl);
    long status = 0;
    (void)curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    if (rc != CURLE_OK || status != 200) {
        (void)fprintf(stderr, "cloud_bench: %s: %ld %s\n", url, status, tide_buf_cstr(&body));
        exit(1);
    }
    json_t *value = NULL;
    TIDE_ASSERT(tide_json_parse(tide_buf_text(&body), &value, NULL) == TIDE_OK);
    tide_buf_done(&body);
    curl_slist_free_all(headers);
    curl_easy_cleanup(curl);
    return value;
}

/* The newest ten pages of ids. */
static struct ids ids_of(uint16_t port)
{
    struct ids ids = {calloc(5000, 24), 0};
    char target[512] = "/gmail/v1/users/me/messages?maxResults=500";
    TIDE_ASSERT(ids.text != NULL);
    while (ids.count < 5000) {
        json_t *value = curl_ask(port, target, NULL);
        size_t index = 0;
        const json_t *message = NULL;
        json_array_foreach(json_object_get(value, "messages"), index, message)(void) snprintf(
            ids.text[ids.count++], 24, "%s", json_string_value(json_object_get(message, "id")));
        const char *next = json_string_value(json_object_get(value, "nextPageToken"));
        TIDE_ASSERT(next != NULL);
        (void)snprintf(target, sizeof target,
                       "/gmail/v1/users/me/messages?maxResults=500&pageToken=%s", next);
        json_decref(value);
    }
    return ids;
}

/* Answers per second of CPU time of one core, and of wall time. */
static double measure(const char *name, const struct load *load, pid_t pid, double target)
{
    (void)load_run(&(struct load){load->port, load->connections, 2000, load->target, load->arg,
                                  load->headers}); /* warm */
    const double before_s = process_cpu_s(pid);
    const struct load_result result = load_run(load);
    const double used_s = process_cpu_s(pid) - before_s;
    if (result.other > 0) {
        (void)fprintf(stderr, "cloud_bench: %llu answers were not 200\n",
                      (unsigned long long)result.other);
        exit(1);
    }
    char text[128];
    const double per_core = (double)result.ok / used_s;
    (void)snprintf(text, sizeof text, "%s_per_core", name);
    figure(text, per_core, "1/s", target > 0 ? per_core / target : 0,
           target > 0 ? "22,000/s" : "the front end's limit");
    (void)snprintf(text, sizeof text, "%s_clock", name);
    figure(text, (double)result.ok / result.seconds, "1/s",
           (double)result.bytes / result.seconds / 1e9, "1 GB/s of bodies");
    return per_core;
}

static double program(const char *path, size_t *answer_bytes_out)
{
    const char *const args[] = {path,          "--listen",
                                "127.0.0.1:0", "--quiet",
                                "--quota",     "2026",
                                "--mailbox",   "a@example.com=20000,size=10240",
                                "--token",     "t=a@example.com",
                                NULL};
    struct server server = server_start(args);
    const uint16_t port = (uint16_t)strtoul(strrchr(server.url, ':') + 1, NULL, 10);
    json_decref(curl_ask(port, "/_cloud/quota",
                         "{\"user_units_per_minute\":2000000000,"
                         "\"project_units_per_minute\":2000000000}"));
    struct ids ids = ids_of(port);
    const struct load load = {port, 8, 100000, get_raw, &ids, "Authorization: Bearer t\r\n"};
    const double per_core = measure("cloud_get_raw_10k", &load, server.pid, 22000);
    json_t *stats = curl_ask(port, "/_cloud/stats", NULL);
    const json_t *calls = json_object_get(
        json_object_get(
            json_object_get(json_object_get(json_object_get(stats, "users"), "a@example.com"),
                            "methods"),
            "gmail.users.messages.get"),
        "calls");
    if (json_integer_value(calls) != 102000)
        (void)fprintf(stderr, "cloud_bench: the referee counted %lld calls, not 102000\n",
                      (long long)json_integer_value(calls));
    json_decref(stats);
    *answer_bytes_out = (size_t)SIZE_BYTES / 3 * 4 + 500;
    free(ids.text);
    (void)server_stop(&server);
    return per_core;
}

/* ---- the limit: the same front end without any logic ---- */

struct plain {
    char *bytes;
    size_t count;
};

static enum MHD_Result plain_answer(void *arg, struct MHD_Connection *connection, const char *url,
                                    const char *method, const char *version, const char *upload,
                                    size_t *upload_bytes, void **state)
{
    (void)url, (void)method, (void)version, (void)upload, (void)upload_bytes;
    const struct plain *plain = arg;
    static int seen;
    if (*state == NULL) {
        *state = &seen;
        return MHD_YES;
    }
    struct MHD_Response *response =
        MHD_create_response_from_buffer(plain->count, plain->bytes, MHD_RESPMEM_MUST_COPY);
    const enum MHD_Result rc = MHD_queue_response(connection, 200, response);
    MHD_destroy_response(response);
    return rc;
}

static _Noreturn void plain_serve(size_t bytes, int port_fd)
{
    struct plain plain = {calloc(1, bytes), bytes};
    TIDE_ASSERT(plain.bytes != NULL);
    memset(plain.bytes, 'x', bytes);
    const struct sockaddr_in local = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct MHD_Daemon *daemon =
        MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD, 0, NULL, NULL, plain_answer, &plain,
                         MHD_OPTION_SOCK_ADDR, &local, MHD_OPTION_END);
    TIDE_ASSERT(daemon != NULL);
    const uint16_t port = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT)->port;
    TIDE_ASSERT(write(port_fd, &port, sizeof port) == sizeof port);
    for (;;)
        (void)pause();
}

static double front_end(size_t bytes)
{
    int ends[2];
    TIDE_ASSERT(pipe(ends) == 0);
    const pid_t pid = fork();
    TIDE_ASSERT(pid >= 0);
    if (pid == 0)
        plain_serve(bytes, ends[1]);
    uint16_t port = 0;
    TIDE_ASSERT(read(ends[0], &port, sizeof port) == sizeof port);
    char one[1][24] = {"x"};
    struct ids ids = {one, 1};
    const struct load load = {port, 8, 100000, get_raw, &ids, ""};
    const double per_core = measure("cloud_front_end_alone", &load, pid, 0);
    (void)kill(pid, SIGTERM);
    (void)waitpid(pid, NULL, 0);
    (void)close(ends[0]);
    (void)close(ends[1]);
    return per_core;
}

int main(int argc, char **argv)
{
    (void)argc;
    char path[BENCH_PATH_BYTES];
    build_path(argv[0], "cloudbox/serve/tidemark-cloud", path);
    (void)curl_global_init(CURL_GLOBAL_DEFAULT);
    box_mime_start();
    size_t bytes = 0;
    const double cloud = program(path, &bytes);
    const double alone = front_end(bytes);
    figure("cloud_get_raw_10k_of_front_end", cloud, "1/s", cloud / alone,
           "libmicrohttpd without logic");
    logic();
    return 0;
}
