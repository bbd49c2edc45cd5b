/* tidemark-cloud: starts what the options ask for, says that it is ready, and
 * ends cleanly on SIGTERM and SIGINT. */
#include "cloudbox/serve/account.h"
#include "cloudbox/serve/server.h"
#include "cloudbox/serve/setup.h"

#include <curl/curl.h>
#include <signal.h>

enum { EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* Blocked in every thread; the main thread waits for them. */
static void block_signals(sigset_t *ends)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    (void)sigaction(SIGPIPE, &ignore, NULL);
    (void)sigaction(SIGXFSZ, &ignore, NULL); /* a file that may not grow is an error of write */
    (void)sigemptyset(ends);
    (void)sigaddset(ends, SIGTERM);
    (void)sigaddset(ends, SIGINT);
    (void)pthread_sigmask(SIG_BLOCK, ends, NULL);
}

/* Until a signal; what was written goes to the disk once a second. */
static void wait_for_end(const sigset_t *ends, box_state *state)
{
    const struct timespec second = {.tv_sec = 1};
    for (;;) {
        int got = state == NULL ? sigwaitinfo(ends, NULL) : sigtimedwait(ends, NULL, &second);
        if (got > 0)
            return;
        if (state != NULL)
            box_state_sync(state);
    }
}

static void greet(const struct box_settings *settings, const char *origin)
{
    if (settings->demo && !settings->quiet)
        fprintf(stderr,
                "%s; try:\n  curl -H 'Authorization: Bearer %s' "
                "%s/gmail/v1/users/me/messages\n",
                BOX_DEMO_EMAIL " has 1,000 messages", BOX_DEMO_TOKEN, origin);
    printf("ready %s\n", origin);
    (void)fflush(stdout);
}

/* Only now is the address known at which their keys get tokens. */
static tide_status write_accounts(const struct box_settings *settings, struct box_shared *shared,
                                  const char *origin, tide_error *err)
{
    tide_status rc = TIDE_OK;
    (void)pthread_mutex_lock(&shared->lock);
    for (size_t i = 0; rc == TIDE_OK && i < settings->service_accounts.count; i++) {
        const struct box_setting *item = &settings->service_accounts.items[i];
        /* The file's name ends its argument, hence is terminated. */
        rc = box_account_write(shared->cloud, item->left, item->right.data, origin, err);
    }
    (void)pthread_mutex_unlock(&shared->lock);
    return rc;
}

static tide_status run(struct box_settings *settings, struct box_shared *shared, tide_error *err)
{
    sigset_t ends;
    box_state *state = NULL;
    box_deliver *deliver = NULL;
    box_server *server = NULL;
    tide_status rc = TIDE_OK;
    block_signals(&ends);
    if (settings->state != NULL)
        rc = box_state_open(settings->state, settings->quiet, &state, err);
    if (rc == TIDE_OK)
        rc = box_setup(settings, shared, state, err);
    if (rc == TIDE_OK) {
        deliver = box_deliver_start(shared, settings->verbose);
        rc = box_server_start(settings, shared, deliver, &server, err);
    }
    if (rc == TIDE_OK)
        rc = write_accounts(settings, shared, box_server_origin(server), err);
    if (rc == TIDE_OK) {
        greet(settings, box_server_origin(server));
        wait_for_end(&ends, state);
    }
    box_server_stop(server);
    box_deliver_stop(deliver);
    box_cloud_free(shared->cloud);
    if (rc == TIDE_OK && state != NULL) {
        box_state_sync(state);
        rc = box_state_error(state, err);
    }
    box_state_close(state);
    return rc;
}

int main(int argc, char **argv)
{
    struct box_settings settings;
    struct box_shared shared;
    tide_error err = {.status = TIDE_OK};
    tide_status rc = box_settings_parse(argc, argv, &settings, &err);
    int code = 0;
    if (settings.help) {
        box_settings_help(stdout);
    } else if (settings.version) {
        printf("tidemark-cloud " TIDE_VERSION "\n");
    } else if (rc != TIDE_OK) {
        fprintf(stderr, "tidemark-cloud: %s\nSee `tidemark-cloud --help`.\n", err.text);
        code = EXIT_USAGE;
    } else if (settings.completion) {
        box_settings_completion(stdout);
    } else {
        (void)curl_global_init(CURL_GLOBAL_DEFAULT);
        box_shared_init(&shared);
        if (run(&settings, &shared, &err) != TIDE_OK) {
            fprintf(stderr, "tidemark-cloud: %s\n", err.text);
            code = EXIT_FAILED;
        }
        (void)pthread_mutex_destroy(&shared.lock);
        curl_global_cleanup();
    }
    box_settings_done(&settings);
    return code;
}
