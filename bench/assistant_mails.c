/* assistant_mails.c - measures the mail assistant in `tidemark serve` as its user sees it.
 *
 *   assistant_mails [PART]
 *
 * Gmail, the chat model and Pub/Sub are on this machine, without quotas (assistant_stage.h).  Measured are:
 *
 *   label    one mail after the other, more than a second apart as Gmail's pushes are: from the push to the
 *            label in Gmail, less what the model took
 *   mails    a burst with a model that takes 2 s and four calls at once, which allow 120 mails a minute
 *   cpu      of serve for a mail: one that is classified, one that is answered with a draft (three calls)
 *   busy     health and webhook while all workers that the account may have wait for Gmail and the model (J3)
 *
 * The mirror of the same account is woken by each push, too: its CPU time is in that of a mail.  Other
 * programs of the machine delay all of this; script/bench shows its load. */
#include "assistant_stage.h"
#include "serve_push.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FYI   "For your information: the minutes are in the shared folder."
#define REPLY "Could you confirm 12:30? Please let me know, I would book a table."

enum {
    LABELS = 60,
    BURST = 60,
    CHEAP = 200,
    SAMPLES = 300,
    MODEL_MS = 2000,
    IN_FLIGHT = 4, /* governor.chat.in_flight, unless set */
    BUSY_MAILS = 60,
    GMAIL_MS = 1000, /* over governor.latency_max fewer would run */
    BUSY_JOBS = 8,   /* at once at least: an account of Gmail begins with so many */
    PUSH_PAUSE_US = 4000,
    PUSH_APART_US = 50000, /* beyond a second */
    WAIT_S_MAX = 120,
};

static uint64_t samples[SAMPLES];

#define SETTLED "SELECT count(*) FROM assistant_email WHERE status <> 'pending'"

/* ---- push to label ---- */

static void label_one(struct assisted *stage, uint64_t *sample_us)
{
    char id[40];
    (void)sleep(1); /* pushes that come faster are taken together */
    nap_us(PUSH_APART_US);
    assisted_arrive(stage, FYI, id);
    const uint64_t begin_us = now_us();
    assisted_push(stage);
    while (!assisted_labelled(stage, id)) {
        expect(now_us() - begin_us < WAIT_S_MAX * UINT64_C(1000000), "no label");
        nap_us(1000);
    }
    const uint64_t took_us = now_us() - begin_us;
    assisted_until(stage, SETTLED, stage->arrived);
    const uint64_t model_us =
        1000 * assisted_ask(stage,
                            "SELECT coalesce(sum(latency_ms), 0) FROM assistant_call"
                            " WHERE thread_id = ?1",
                            id);
    *sample_us = took_us > model_us ? took_us - model_us : 0;
}

static void measure_labels(struct assisted *stage)
{
    uint64_t warm = 0;
    assisted_again(stage);
    label_one(stage, &warm); /* opens connections, fetches the issuer's keys */
    for (size_t i = 0; i < LABELS; i++)
        label_one(stage, &samples[i]);
    figure("assistant_label_p50", quantile_ms(samples, LABELS, 500), "ms", 0, NULL);
    figure("assistant_label_p99", quantile_ms(samples, LABELS, 990), "ms", 0, NULL);
}

/* ---- mails a minute ---- */

static void arrive_all(struct assisted *stage, unsigned count, const char *text)
{
    char id[40];
    for (unsigned i = 0; i < count; i++)
        assisted_arrive(stage, text, id);
}

static void measure_mails(struct assisted *stage)
{
    assisted_again(stage);
    assisted_slow(stage, "chat.*", MODEL_MS);
    arrive_all(stage, BURST, FYI);
    const double begin_s = now_s();
    assisted_push(stage);
    assisted_until(stage, SETTLED, stage->arrived);
    const double took_s = now_s() - begin_s;
    assisted_again(stage);
    assisted_slow(stage, NULL, 0);
    compared("assistant_mails", BURST / took_s * 60, "1/min", IN_FLIGHT * 60000.0 / MODEL_MS,
             "what the model allows");
}

/* ---- CPU ---- */

static void measure_cpu(struct assisted *stage, const char *name, unsigned count, const char *text)
{
    assisted_again(stage);
    const double before_s = serve_cpu_s(stage->serving.pid);
    const double begin_s = now_s();
    arrive_all(stage, count, text);
    assisted_push(stage);
    assisted_until(stage, SETTLED, stage->arrived);
    const double took_s = now_s() - begin_s;
    const double cpu_ms = (serve_cpu_s(stage->serving.pid) - before_s) * 1e3;
    char rate[64];
    figure(name, cpu_ms / count, "ms", 0, NULL);
    (void)snprintf(rate, sizeof rate, "%s_rate", name);
    figure(rate, count / took_s, "1/s", 0, NULL);
}

/* ---- busy ---- */

static double running(struct assisted *stage)
{
    static const char line[] = "\ntidemark_lane_jobs{lane=\"bulk\",state=\"running\"} ";
    if (client_get(&stage->page, "/metrics") != 200)
        die("/metrics", stage->page.body);
    const char *at = strstr(stage->page.body, line);
    return at == NULL ? 0 : strtod(at + strlen(line), NULL);
}

static void busy_quantiles(const char *name)
{
    char whole[80];
    (void)snprintf(whole, sizeof whole, "assistant_%s_busy_p50", name);
    figure(whole, quantile_ms(samples, SAMPLES, 500), "ms", 0, NULL);
    (void)snprintf(whole, sizeof whole, "assistant_%s_busy_p99", name);
    figure(whole, quantile_ms(samples, SAMPLES, 990), "ms", 0, NULL);
}

static void measure_busy(struct assisted *stage)
{
    const double until_s = now_s() + WAIT_S_MAX;
    assisted_again(stage);
    arrive_all(stage, BUSY_MAILS, FYI);
    assisted_slow(stage, "chat.*", MODEL_MS);
    assisted_slow(stage, "gmail.*", GMAIL_MS);
    assisted_push(stage);
    while (running(stage) < BUSY_JOBS) {
        expect(now_s() < until_s, "the workers are not busy");
        nap_us(10000);
    }
    figure("assistant_busy_jobs", running(stage), "", 0, NULL);
    for (size_t i = 0; i < SAMPLES; i++) {
        const uint64_t begin_us = now_us();
        expect(client_get(&stage->page, "/healthz") == 200, "/healthz");
        samples[i] = now_us() - begin_us;
    }
    busy_quantiles("health");
    for (size_t i = 0; i < SAMPLES; i++) {
        nap_us(PUSH_PAUSE_US);
        const uint64_t begin_us = now_us();
        assisted_push(stage);
        samples[i] = now_us() - begin_us;
    }
    busy_quantiles("webhook");
    figure("assistant_busy_jobs_after", running(stage), "", 0, NULL);
    assisted_slow(stage, NULL, 0);
    assisted_until(stage, SETTLED, stage->arrived);
}

static void measure_cpus(struct assisted *stage)
{
    measure_cpu(stage, "assistant_cpu_classified", CHEAP, FYI);
    measure_cpu(stage, "assistant_cpu_drafted", CHEAP / 4, REPLY);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*measure)(struct assisted *stage);
    } parts[] = {{"mails", measure_mails},
                 {"label", measure_labels},
                 {"cpu", measure_cpus},
                 {"busy", measure_busy}};
    static struct assisted stage;
    assisted_make(&stage, argv[0]);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (argc < 2 || strcmp(argv[1], parts[i].name) == 0)
            parts[i].measure(&stage);
    (void)serve_stop(&stage.serving);
    assisted_remove(&stage);
    return 0;
}
